# SPDX-License-Identifier: Apache-2.0
"""An arena in two memories: what lies where, that each holds what it was given, and what cannot be."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from tests import small
from tests.emulated.test_states import remembering
from tests.streamed import everything
from tests.unit.test_placing import AROUND, FAST, MIDDLE, board, deployed
from tinyet import assets
from tinyet.budget.fit import FitRequest, Limits, check_fit, fitted, objective_of
from tinyet.budget.placing import arena_traffic, held, placed
from tinyet.deployment import Deployment
from tinyet.emit.model import model_files
from tinyet.errors import FitError, InternalError, UsageError
from tinyet.ir import DType, Node
from tinyet.memory.buffers import Buffer, interference
from tinyet.memory.check import check_plan
from tinyet.memory.live_ranges import LiveRange, gaps, live_range
from tinyet.memory.split import Split, place_split
from tinyet.ops import op_of
from tinyet.opset import AccessOrder
from tinyet.planning.places import ARENA, SECOND
from tinyet.program import Program
from tinyet.projects.one import generate

TINY = dataclasses.replace(FAST, bytes=200)


def split_of(program: Program, fast: int, most: int | None = None) -> Deployment:
    where = board(dataclasses.replace(FAST, bytes=fast), MIDDLE, read_waits=2, write_waits=2)
    limits = Limits(max_ram=most)
    objective = objective_of(where, limits=limits, place={"arena": "fast+ram"})
    return fitted(FitRequest(program.graph, where, objective, limits))


def check(found: Deployment) -> None:
    scratch = {step.node: step.call.scratch_bytes for step in found.steps if step.call.scratch_bytes}
    kernels = {step.node: step.choice.kernel for step in found.steps}

    def access_order(node: Node, index: int) -> AccessOrder | None:
        order = kernels[node].access_order
        return None if order is None else order(node, index)

    def replaces(node: Node, index: int) -> bool:
        own = kernels[node].replaces
        return own is not None and own(node, index)

    check_plan(
        found.graph,
        found.plan,
        op_of,
        scratch,
        access_order=access_order,
        replaces=replaces,
        align=4,
        scratch_align=8,
    )


def test_each_piece_in_its_memory() -> None:
    where = board(TINY, MIDDLE, read_waits=2, write_waits=2)
    found = deployed(where, {"arena": "fast+ram", "weights": "flash"})
    plan = found.plan
    assert plan.second_from is not None
    assert 0 < plan.second_from <= 200 < plan.arena_bytes
    rows = {each.name: each for each in placed(found, where)}
    assert (rows[ARENA].memory.name, rows[ARENA].bytes) == ("fast", plan.second_from)
    assert (rows[SECOND].memory.name, rows[SECOND].bytes) == ("ram", plan.arena_bytes - plan.second_from)
    assert held(found, where)["fast"] == plan.second_from
    assert rows[ARENA].waits == 0
    whole = arena_traffic(deployed(where, {}))[0]
    first, second = arena_traffic(found)
    assert (first.read + second.read, first.written + second.written) == (whole.read, whole.written)
    assert rows[SECOND].waits == 2 * (second.read + second.written) / where.ram.line_bytes
    assert second.read + second.written < whole.read + whole.written


@pytest.mark.parametrize(
    ("program", "fast", "most"),
    [
        (everything(DType.INT8), 1500, 5000),
        (remembering(), 200, None),
    ],
    ids=["rows", "states"],
)
def test_rows_and_states(program: Program, fast: int, most: int | None) -> None:
    """Windows of rows, and states with their mark, are in one of the pieces each; the check is one of regions."""
    found = split_of(program, fast, most)
    plan = found.plan
    assert plan.second_from is not None
    assert plan.second_from <= fast
    assert bool(plan.fusion_groups) is (most is not None)
    check(found)
    block = next(b for b in plan.blocks if b.offset >= plan.second_from and b.bytes > 16)
    wrong = dataclasses.replace(found, plan=dataclasses.replace(plan, second_from=block.offset + 16))
    with pytest.raises(InternalError, match=r"is not within the arena's first piece and its second piece"):
        check(wrong)


def test_all_of_it_in_the_first() -> None:
    found = split_of(small.program(), 640)
    assert found.plan.second_from is None
    assert (found.places.arena, found.places.second) == (dataclasses.replace(FAST, bytes=640), None)


def test_nothing_in_the_first() -> None:
    with pytest.raises(
        UsageError, match="nothing of the arena fits into the 8 bytes that fast has left"
    ) as caught:
        split_of(small.program(), 8)
    assert caught.value.hint == "--place arena=ram; or place less in fast"


def test_the_second_is_too_small() -> None:
    narrow = dataclasses.replace(MIDDLE, bytes=64)
    where = board(TINY, narrow)
    with pytest.raises(FitError, match=r"middle: \d+ bytes were placed there, mps2_an386 has 64"):
        check_fit(deployed(where, {"arena": "fast+middle"}), where)
    ram = dataclasses.replace(where, ram=dataclasses.replace(where.ram, bytes=AROUND + 600))
    with pytest.raises(FitError, match=r"RAM: arena \d+"):
        check_fit(deployed(ram, {"arena": "fast+ram", "weights": "ram"}), ram)


def test_what_is_no_pair_of_memories() -> None:
    for to, said in {
        "fast+tcm": "arena: mps2_an386 has no memory 'tcm'",
        "fast+fast": "arena: fast+fast names no two memories; the first is filled first",
        "fast+ram+middle": "arena: fast+ram+middle names no two memories; the first is filled first",
        "fast+flash": "arena: flash cannot be written",
        "+ram": "arena: mps2_an386 has no memory ''",
    }.items():
        with pytest.raises(UsageError) as caught:
            deployed(board(TINY, MIDDLE), {"arena": to})
        assert caught.value.what.splitlines()[1:] == [f"  - {said}"]


def test_not_together_with(tmp_path: Path) -> None:
    where = board(TINY, MIDDLE)
    objective = objective_of(where, place={"arena": "fast+ram"}, buffers="caller")
    with pytest.raises(UsageError, match="one piece where inputs and outputs lie in the caller's buffers"):
        fitted(FitRequest(small.program().graph, where, objective))
    place = {"arena": "psram+ram"}
    own = tmp_path / "own.toml"
    own.write_text((assets.path("boards") / "mps2_an386.toml").read_text().replace("0x01000000", "200"))
    with pytest.raises(UsageError, match="one arena of a model, and this one is in two memories"):
        generate(small.program(), own, tmp_path / "p", kind="cmake", place=place, tflm_header=True)
    with pytest.raises(UsageError, match="with context the caller gives the memory of arena"):
        generate(small.program(), own, tmp_path / "p", kind="cmake", place=place, context=True)
    assert not (tmp_path / "p").exists()


def test_two_arrays_of_c() -> None:
    files = model_files(split_of(small.program(), 200), "net", ["net"])
    assert (
        "uint8_t net_arena[NET_ARENA_BYTES] TINYET_ALIGNED(16) TINYET_IN(TINYET_FAST_SECTION);"
        in files["net.c"]
    )
    assert "uint8_t net_arena_2[NET_ARENA_2_BYTES] TINYET_ALIGNED(16);" in files["net.c"]
    assert "extern uint8_t net_arena_2[NET_ARENA_2_BYTES];" in files["net.h"]
    other = model_files(deployed(board(TINY, MIDDLE), {"arena": "fast+middle"}), "net", ["net"])["net.c"]
    assert "net_arena_2[NET_ARENA_2_BYTES] TINYET_ALIGNED(16) TINYET_IN(TINYET_MIDDLE_SECTION);" in other


def drawn(seed: int) -> tuple[list[Buffer], list[LiveRange], Split]:
    rng = np.random.default_rng(seed)
    found, ranges = [], []
    for number in range(int(rng.integers(2, 24))):
        first = int(rng.integers(0, 20))
        steps, size = int(rng.integers(1, 8)), int(rng.integers(1, 200))
        b = Buffer(f"b{number}", size, first, first + steps - 1, int(rng.choice([1, 4, 8])))
        found.append(b)
        at = np.arange(first, first + steps + 1)
        ranges.append(live_range(b.name, at, np.zeros(steps, np.int64), np.full(steps, size), size, b.align))
    worth = {b.name: float(rng.integers(0, 1000)) for b in found if rng.random() < 0.8}
    return found, ranges, Split(int(rng.integers(16, 600)) // 16 * 16, 1 << 20, worth)


def test_drawn_buffers_are_apart_and_within_the_capacity() -> None:
    """A piece is without any only where nothing that gains anything fits, or all of it does."""
    split = 0
    for seed in range(150):
        buffers, ranges, wanted = drawn(seed)
        made = place_split(buffers, ranges, wanted, 1000)
        gaining = [b for b in buffers if wanted.worth.get(b.name, 0) > 0 and b.bytes <= wanted.capacity]
        if made is None:
            assert not gaining or len(gaining) == len(buffers), seed
            continue
        split += 1
        placement, start = made
        at = placement.offsets
        ends = [at[b.name] + b.bytes for b in buffers if at[b.name] < start]
        assert max(ends) <= start <= wanted.capacity, seed
        assert placement.peak == max(at[b.name] + b.bytes for b in buffers)
        near = interference(buffers, gaps(ranges))
        for i, b in enumerate(buffers):
            assert at[b.name] % b.align == 0
            for other in (buffers[n.other] for n in near[i]):
                assert at[b.name] + b.bytes <= at[other.name] or at[other.name] + other.bytes <= at[b.name]
        assert {b.name for b in gaining} >= {name for name in at if at[name] < start}, seed
    assert split > 100


def test_what_gains_more_goes_first() -> None:
    buffers = [Buffer("cold", 64, 0, 3, 4), Buffer("hot", 64, 0, 3, 4), Buffer("idle", 8, 0, 3, 4)]
    ranges = [
        live_range(b.name, np.arange(5), np.zeros(4, np.int64), np.full(4, b.bytes), b.bytes, 4)
        for b in buffers
    ]
    made = place_split(buffers, ranges, Split(64, 72, {"cold": 10, "hot": 20}), 0)
    assert made is not None
    assert made[1] == 64
    assert {n for n, at in made[0].offsets.items() if at < 64} == {"hot"}


def test_the_second_has_room() -> None:
    """What gains most would leave more to the second piece than that has room for."""
    sizes = {"large": (96, 0, 1), "beside": (64, 0, 1), "later": (96, 3, 4)}
    worth = {"large": 10.0, "beside": 20.0, "later": 15.0}
    buffers = [Buffer(name, *each, 4) for name, each in sizes.items()]
    ranges = [
        live_range(
            b.name, np.arange(b.first, b.first + 3), np.zeros(2, np.int64), np.full(2, b.bytes), b.bytes, 4
        )
        for b in buffers
    ]
    for rest, first in ((96, {"beside", "later"}), (64, {"large", "later"})):
        made = place_split(buffers, ranges, Split(96, rest, worth), 0)
        assert made is not None
        placement, start = made
        assert {name for name, at in placement.offsets.items() if at < start} == first
        assert placement.peak - start <= rest


def test_an_arena_that_neither_memory_has_room_for() -> None:
    where = board(dataclasses.replace(FAST, bytes=208), dataclasses.replace(MIDDLE, bytes=160))
    found = deployed(where, {"arena": "fast+middle"})
    assert deployed(where, {}).plan.arena_bytes > 208
    check_fit(found, where)
