# SPDX-License-Identifier: Apache-2.0
"""The checker accepts right plans and names what is wrong with each kind of broken one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests import streamed
from tests.streamed import deployed
from tinyet.boards.cpus import HOST
from tinyet.errors import InternalError
from tinyet.ir import DType, Graph
from tinyet.memory import MemoryPlan, check_plan, planner
from tinyet.memory.accesses import Access, Alias, Piece, Span
from tinyet.memory.check import check_accesses
from tinyet.planning import layouts

X, A, B = Span("x", 0, 8, 4), Span("a", 8, 8, 4), Span("b", 8, 8, 4)
C, Y, W, Z = Span("c", 12, 4, 4), Span("y", 16, 4, 4), Span("w", 20, 4, 4), Span("z", 16, 8, 4)


@dataclass(frozen=True)
class Case:
    """x(8) → a(8) → b(8), in place over a → y(4) reads b and, later, c = the upper half of b; w(4) is y's
    neighbour in the window z(8) = y then w."""

    arena: int = 40
    x: Span = X
    a: Span = A
    b: Span = B
    c: Span = C
    y: Span = Y
    w: Span = W
    z: Span = Z
    scratch: tuple[int, int, int] = (24, 16, 8)
    may: frozenset[tuple[str, str]] = frozenset({("a", "b")})
    order: tuple[int, ...] = (0, 1, 2, 3)
    late_reader: tuple[Span, ...] = ()
    aliases: tuple[Alias, ...] = field(
        default=(
            Alias("c", (Piece(0, 4, "b", 4),)),
            Alias("z", (Piece(0, 4, "y", 0), Piece(4, 4, "w", 0))),
        )
    )

    def check(self) -> None:
        steps = [
            Access("first", (self.x,), (self.a,), self.scratch),
            Access("relu", (self.a,), (self.b,), None, self.may),
            Access("left", (self.b,), (self.y,)),
            Access("right", (self.c, *self.late_reader), (self.w,)),
        ]
        check_accesses([steps[i] for i in self.order], self.arena, [self.x], [self.z], self.aliases)


def moved(span: Span, by: int) -> Span:
    return dataclasses.replace(span, offset=span.offset + by)


def test_accepts_the_right_plan() -> None:
    Case().check()
    # The input is dead after the first call, so a later tensor may lie over it.
    Case(y=Span("y", 0, 4), w=Span("w", 4, 4), z=Span("z", 0, 8)).check()


BROKEN: dict[str, tuple[Callable[[Case], Case], str]] = {
    "offset moved by one": (
        lambda c: dataclasses.replace(c, y=moved(c.y, 1)),
        "y at offset 17 is not aligned to 4 bytes",
    ),
    "offset moved to a neighbour": (
        lambda c: dataclasses.replace(c, y=moved(c.y, 4)),
        "end: reads byte 0 of z at offset 16, which holds nothing",
    ),
    "steps swapped": (
        lambda c: dataclasses.replace(c, order=(0, 2, 1, 3)),
        "reads b, which nothing has computed",
    ),
    "arena shrunk": (
        lambda c: dataclasses.replace(c, arena=39),
        "scratch at 24 to 40 leaves the arena of 39 bytes",
    ),
    "negative offset": (lambda c: dataclasses.replace(c, x=moved(c.x, -4)), "x at -4 to 4 leaves the arena"),
    "written over while read": (
        lambda c: dataclasses.replace(c, may=frozenset()),
        r"call 1 \(relu\): writes b over a while reading it",
    ),
    "in place but not exactly": (
        lambda c: dataclasses.replace(c, b=moved(c.b, 4), c=moved(c.c, 4), y=moved(c.y, 4)),
        "b lies across a, not just over it",
    ),
    "in place over something still read": (
        lambda c: dataclasses.replace(c, late_reader=(c.a,)),
        r"call 3 .right.: reads byte 0 of a at offset 8, which holds byte 0 of b, written by call 1",
    ),
    "scratch over an operand": (
        lambda c: dataclasses.replace(c, scratch=(0, 16, 8)),
        "scratch memory overlaps x",
    ),
    "scratch not aligned": (
        lambda c: dataclasses.replace(c, scratch=(20, 16, 8)),
        "scratch at offset 20 is not aligned to 8 bytes",
    ),
    "view at the wrong byte": (
        lambda c: dataclasses.replace(c, c=moved(c.c, -4)),
        "reads byte 0 of c at offset 8, which holds byte 0 of b",
    ),
    "window's parts exchanged": (
        lambda c: dataclasses.replace(c, y=moved(c.y, 4), w=moved(c.w, -4)),
        "end: reads byte 0 of z at offset 16, which holds byte 0 of w",
    ),
    "output overwritten": (
        lambda c: dataclasses.replace(c, w=moved(c.w, -4)),
        r"holds byte 0 of w, written by call 3 \(right\)",
    ),
    "step left out": (
        lambda c: dataclasses.replace(c, order=(0, 1, 2)),
        "alias z: its sources are never computed",
    ),
    "computed twice": (lambda c: dataclasses.replace(c, order=(0, 0, 1, 2, 3)), "writes a a second time"),
    "read with the wrong size": (
        lambda c: dataclasses.replace(c, late_reader=(Span("y", 16, 3),)),
        "reads 3 bytes of y, which has 4",
    ),
    "alias beyond its source": (
        lambda c: dataclasses.replace(c, aliases=(Alias("c", (Piece(0, 4, "b", 5),)), *c.aliases[1:])),
        "alias c: its bytes are not all bytes of b",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_names_what_is_wrong(name: str) -> None:
    breaks, message = BROKEN[name]
    with pytest.raises(InternalError, match=message):
        breaks(Case()).check()


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (Span("y", 4, 8), None),
        (Span("y", 4, 5), None),
        (Span("y", 4, 9), "y lies across x, not just over it"),
        (Span("y", 6, 6), "y lies across x, not just over it"),
        (Span("y", 4, 4, 1, 2, 4), "y lies across x, not just over it"),
    ],
)
def test_over_the_first_bytes_of_what_it_replaces(write: Span, message: str | None) -> None:
    x = Span("x", 4, 8)
    step = Access("one", (x,), (write,), overwrites=frozenset({("x", "y")}))
    if message is None:
        check_accesses([step], 16, [x], [write])
        return
    with pytest.raises(InternalError, match=message):
        check_accesses([step], 16, [x], [write])


def test_scratch_destroys_what_lies_under_it() -> None:
    x, y, z = Span("x", 0, 4), Span("y", 4, 4), Span("z", 12, 4)
    steps = [Access("one", (y,), (z,), (0, 4, 1)), Access("two", (x,), (Span("o", 8, 4),))]
    with pytest.raises(
        InternalError, match="reads byte 0 of x at offset 0, which holds byte 0 of scratch of call 0"
    ):
        check_accesses(steps, 16, [x, y], [])


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        (4, None),
        (5, "reads byte 0 of y at offset 5, which holds byte 1 of y"),
        (8, "reads byte 0 of y at offset 8, which holds byte 0 of z"),
    ],
)
def test_what_is_computed_again_lies_where_it_is(offset: int, message: str | None) -> None:
    x, y, z = Span("x", 0, 4), Span("y", 4, 4), Span("z", 8, 4)
    twice = Access("twice", (x,), (Span("y", offset, 4),), again=frozenset({"y"}))
    steps = [Access("one", (x,), (y, z)), twice, Access("last", (y,), (Span("o", 12, 4),))]
    if message is None:
        check_accesses(steps, 16, [x], [])
        return
    with pytest.raises(InternalError, match=message):
        check_accesses(steps, 16, [x], [])


def test_inputs_and_outputs_of_one_call_must_be_apart() -> None:
    with pytest.raises(InternalError, match="inputs x and y overlap"):
        check_accesses([], 8, [Span("x", 0, 4), Span("y", 3, 4)])
    pair = Access("pair", (), (Span("a", 0, 4), Span("b", 2, 4)))
    with pytest.raises(InternalError, match="outputs a and b overlap"):
        check_accesses([pair], 8)


def test_a_long_list_is_cut() -> None:
    reads = tuple(Span(f"t{i}", 0, 1) for i in range(30))
    with pytest.raises(InternalError, match="and 10 more"):
        check_accesses([Access("all", reads, ())], 1)


def test_the_plan_that_is_taken_is_checked_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[MemoryPlan] = []

    def noted(graph: Graph, plan: MemoryPlan, *args: Any, **options: Any) -> None:
        checked.append(plan)
        check_plan(graph, plan, *args, **options)

    monkeypatch.setattr(layouts, "check_plan", noted)
    monkeypatch.setattr(
        planner, "check_plan", lambda *_, **__: pytest.fail("checked while plans are compared")
    )
    deployment = deployed(streamed.chain(DType.INT8), HOST)
    assert deployment.plan.fusion_groups
    assert checked == [deployment.plan]

    planned = layouts.planned

    def broken(*args: Any, **options: Any) -> MemoryPlan:
        plan = planned(*args, **options)
        return dataclasses.replace(
            plan, blocks=tuple(dataclasses.replace(block, offset=0) for block in plan.blocks)
        )

    monkeypatch.setattr(layouts, "planned", broken)
    with pytest.raises(InternalError):
        deployed(streamed.chain(DType.INT8), HOST)
