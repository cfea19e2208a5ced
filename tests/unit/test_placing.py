# SPDX-License-Identifier: Apache-2.0
"""Which memory each object gets: as asked, as the estimate of accesses says, and never more than there is."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import small
from tests.golden.programs import Builder, bias_s32, input_s8, weights_s8
from tinyet import assets
from tinyet.analysis import analyze
from tinyet.boards import Board, Flash, Memory, load_board
from tinyet.budget.fit import FitRequest, Limits, check_fit, fitted, objective_of
from tinyet.budget.placing import check_addresses, held, placed, waits, weight_traffic
from tinyet.cli.options import place_of
from tinyet.deployment import Deployment
from tinyet.emit.model import model_files
from tinyet.emit.symbols import symbols_of
from tinyet.errors import BoardError, FitError, UsageError
from tinyet.ir import Graph
from tinyet.ops.conv2d import Conv2d
from tinyet.planning.places import USUAL
from tinyet.project import Project
from tinyet.projects.one import generate

PROGRAM = small.program()
AN386 = load_board("mps2_an386")
SLOW = Flash(wait_states=6, line_bytes=4, code_lines=1, data_lines=1, prefetch=False)
FAST = Memory("fast", 0x10000000, 512, "rwx", 0, 0)
MIDDLE = Memory("middle", 0x21000000, 1 << 20, "rwx", 2, 2)
AROUND = 1216
"""Bytes of RAM for the stack and the firmware's own data."""


def board(*extra: Memory, flash: Flash | None = SLOW, **ram: object) -> Board:
    return dataclasses.replace(
        AN386,
        target=dataclasses.replace(AN386.target, flash=flash),
        ram=dataclasses.replace(AN386.ram, **ram),  # type: ignore[arg-type]
        extra_memories=extra,
    )


def deployed(where: Board, place: Mapping[str, str], limits: Limits = Limits()) -> Deployment:  # noqa: B008
    return fitted(FitRequest(PROGRAM.graph, where, objective_of(where, limits=limits, place=place), limits))


# ---------------------------------------------------------------- as asked


def test_nothing_is_placed_without_being_asked() -> None:
    assert deployed(board(FAST, MIDDLE), {}).places == USUAL


def test_by_name() -> None:
    found = deployed(board(FAST, MIDDLE), {"arena": "middle", "weights": "fast", "head": "flash"})
    assert [(p.name, p.memory.name, p.copied) for p in placed(found, board(FAST, MIDDLE))] == [
        ("arena", "middle", False),
        ("weights of conv", "fast", True),
        ("weights of head", "flash", False),
    ]


def test_all_that_is_wrong_is_listed() -> None:
    fixed = Memory("fixed", 0x60000000, 4096, "rx", 4)
    with pytest.raises(UsageError) as caught:
        deployed(
            board(FAST, fixed),
            {"arena": "fixed", "state": "fast", "body": "fast", "head": "tcm", "weights": "auto"},
        )
    assert caught.value.what.splitlines()[1:] == [
        "  - arena: fixed cannot be written",
        "  - state: no layer keeps memory of its own; states from run to run are in the arena",
        "  - body: nothing is called that",
        "  - head: mps2_an386 has no memory 'tcm'",
    ]
    assert caught.value.hint == (
        "objects: arena, state, weights, conv, head; memories of mps2_an386: flash, ram, fast, fixed, or auto; "
        "of weights also arena, ahead of each call"
    )


def test_what_is_too_large_for_its_memory() -> None:
    tiny, other = (dataclasses.replace(FAST, name=n, bytes=100, origin=o) for n, o in (("a", 0), ("b", 4096)))
    where = board(tiny, dataclasses.replace(other, bytes=400))
    with pytest.raises(FitError) as caught:
        check_fit(deployed(where, {"arena": "a", "weights": "b"}), where)
    assert re.search(r"a: (\d+) bytes were placed there, mps2_an386 has 100, \d+ too few", str(caught.value))
    assert "b: 576 bytes were placed there, mps2_an386 has 400, 176 too few" in str(caught.value)
    assert "416 bytes: weights of head" in str(caught.value)


def test_copies_count_as_ram() -> None:
    where = board(FAST, MIDDLE)
    usual, copied, away = (
        deployed(where, place) for place in ({}, {"weights": "ram"}, {"weights": "ram", "arena": "middle"})
    )
    arena = held(usual, where)["ram"]
    assert held(copied, where)["ram"] == arena + held(usual, where)["flash"]
    assert held(away, where)["ram"] == held(usual, where)["flash"]
    small_ram = board(FAST, MIDDLE, bytes=AROUND + 700)
    with pytest.raises(FitError, match=r"copies of weights \d+(.*\n)*.*--place arena=fast"):
        check_fit(deployed(small_ram, {"weights": "ram"}), small_ram)


def test_of_the_command_line() -> None:
    assert place_of(["auto", "arena=dtcm", "conv=ram"]) == {
        "arena": "dtcm",
        "state": "auto",
        "weights": "auto",
        "conv": "ram",
    }
    with pytest.raises(UsageError, match="--place dtcm names no object and memory"):
        place_of(["dtcm"])


def test_a_project_keeps_it(tmp_path: Path) -> None:
    asked = {"arena": "psram", "weights": "auto"}
    generate(PROGRAM, "mps2_an386", tmp_path / "net", kind="cmake", place=asked)
    again = Project(tmp_path / "net")
    assert again.place == asked
    assert again.deployment.places.arena == again.board.extra_memories[0]
    found = analyze(again)
    assert {p.name: p.memory.name for p in found.placed}["arena"] == "psram"
    report = found.to_json()
    assert {"name": "arena", "layer": "", "memory": "psram"}.items() <= dict(report["placed"][0]).items()  # type: ignore[index]
    assert [m.name for m in found.memories if m.model_bytes] == ["flash", "psram"]


def test_a_context_has_its_arena_from_the_caller(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the caller gives the memory of arena"):
        generate(PROGRAM, "mps2_an386", tmp_path / "net", context=True, place={"arena": "psram"})
    with pytest.raises(UsageError, match="place is a list"):
        generate(PROGRAM, "mps2_an386", tmp_path / "net", place=["arena"])  # type: ignore[arg-type]


def test_a_framework_without_such_a_section(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"by a project of arduino:\n.*- dtcm: the board file names no section"
    ):
        generate(PROGRAM, "portenta_h7", tmp_path / "net", kind="arduino", place={"arena": "dtcm"})
    assert not (tmp_path / "net").exists()
    generate(PROGRAM, "portenta_h7", tmp_path / "net", kind="arduino", place={"weights": "ram"})


# ---------------------------------------------------------------- by the estimate


def test_what_gains_most_goes_first() -> None:
    """All assignments of the two layers, those that have room: none waits less."""
    for size in (0, 176, 416, 600, 1 << 20):
        fast = dataclasses.replace(FAST, bytes=max(size, 1))
        where = board(fast, flash=SLOW, read_waits=6, write_waits=6)
        found = deployed(where, {"weights": "auto"})
        traffic = {s.name: weight_traffic(found, s) for s in found.steps if found.arrays_of(s)}
        assert all(t.read >= t.bytes > 0 for t in traffic.values())
        best = min(
            sum(waits(where, m, traffic[n]) or 0.0 for n, m in zip(traffic, memories, strict=True))
            for memories in itertools.product([where.flash, where.ram, fast], repeat=len(traffic))
            if sum(t.bytes for t, m in zip(traffic.values(), memories, strict=True) if m == fast)
            <= fast.bytes
        )
        own = sum(p.waits or 0.0 for p in placed(found, where) if p.layer)
        assert own == pytest.approx(best), size
        assert held(found, where)["fast"] <= fast.bytes


def test_the_arena_goes_where_it_waits_least() -> None:
    slow_ram = board(dataclasses.replace(FAST, bytes=4096), MIDDLE, read_waits=3, write_waits=3)
    assert deployed(slow_ram, {"arena": "auto"}).places.arena == slow_ram.extra_memories[0]
    full = board(dataclasses.replace(FAST, bytes=100), MIDDLE, read_waits=3, write_waits=3)
    assert deployed(full, {"arena": "auto"}).places.arena == MIDDLE
    # Equal ones, and such as nobody has stated: it stays.
    assert deployed(board(dataclasses.replace(FAST, bytes=4096)), {"arena": "auto"}).places.arena is None
    unknown = board(
        dataclasses.replace(MIDDLE, read_waits=None, write_waits=None), read_waits=3, write_waits=3
    )
    assert deployed(unknown, {"arena": "auto"}).places.arena is None


def test_an_arena_that_the_ram_has_no_room_for() -> None:
    where = board(MIDDLE, bytes=AROUND + 100)
    with pytest.raises(FitError):
        check_fit(deployed(where, {}), where)
    moved = deployed(where, {"arena": "auto"})
    assert moved.places.arena == MIDDLE
    check_fit(moved, where)


def test_copies_ahead_of_a_layer() -> None:
    """The plan, which is proved like any other, has memory for them while the layer runs."""
    where = board(FAST, MIDDLE)
    found = deployed(where, {"conv": "arena", "head": "arena"})
    usual = deployed(where, {})
    for step in (each for each in found.steps if found.arrays_of(each)):
        own = next(s.call.scratch_bytes for s in usual.steps if s.name == step.name)
        copies = sum(-(-a.bytes // 16) * 16 for a in found.arrays_of(step))
        assert step.call.scratch_bytes == -(-own // 16) * 16 + copies, step
        assert step.node in found.plan.scratch
    # One behind the other in time: less than both at once.
    weights = held(usual, where)["flash"]
    assert usual.plan.arena_bytes < found.plan.arena_bytes < usual.plan.arena_bytes + weights
    assert [p.ahead for p in placed(found, where)] == [False, True, True]
    text = model_files(found, "net", ["test"])["net.c"]
    assert text.count("memcpy(net_arena + ") == len(found.arrays)


def narrowing() -> Graph:
    """The first layer has the large values, later ones the weights that are read for many pixels."""
    b = Builder("narrowing")
    y = x = input_s8("x", (1, 24, 24, 4), 0.05, -7)
    for number, (into, out, stride) in enumerate(((4, 8, 4), (8, 32, 1), (32, 32, 1), (32, 8, 1))):
        y = b.add(
            Conv2d(stride_h=stride, stride_w=stride),
            *(y, weights_s8(f"w{number}", (out, 1, 1, into), 37), bias_s32(f"b{number}", out, 411)),
            out=f"y{number}",
            source="",
            quant=(0.031, -128),
        )
    return b.finish((x,), y).graph


def test_the_estimate_copies_ahead_what_has_no_room_for_good() -> None:
    graph = narrowing()
    where = board(bytes=AROUND + 4000)
    limits = Limits(max_ram=where.ram.bytes)  # all of it, without the harness
    # These read weights where they lie; others copy them by themselves.
    pins = {f"conv2d_{number}": "tinyet_conv2d_s8_packed_2x4_dsp" for number in (1, 2, 3)}

    def made(place: Mapping[str, str]) -> Deployment:
        objective = objective_of(where, limits=limits, pins=pins, place=place)
        return fitted(FitRequest(graph, where, objective, limits))

    usual, found = made({}), made({"weights": "auto"})
    check_fit(found, where)
    assert found.places.ahead
    assert not found.places.weights.keys() & found.places.ahead
    waited = [sum(p.waits or 0.0 for p in placed(each, where) if p.layer) for each in (usual, found)]
    assert waited[1] < waited[0]
    for step in found.steps:
        if step.name in found.places.ahead:
            assert weight_traffic(found, step).read > 2 * weight_traffic(found, step).bytes, step


def test_weights_that_are_read_once_are_not_copied_ahead() -> None:
    """There is room for it, and nothing is gained: a copy reads them once, too."""
    where = board(bytes=AROUND + 900)
    check_fit(deployed(where, {"conv": "ram", "head": "arena"}), where)
    found = deployed(where, {"weights": "auto"})
    assert (set(found.places.weights), found.places.ahead) == ({"conv"}, frozenset())


def test_a_flash_that_nobody_has_timed_keeps_its_weights() -> None:
    assert deployed(board(FAST, flash=None), {"weights": "auto"}).places == USUAL


# ---------------------------------------------------------------- the C


def test_host_and_board_have_one_text() -> None:
    found = deployed(board(FAST, MIDDLE), {"arena": "middle", "weights": "fast"})
    text = model_files(found, "net", ["test"])["net.c"]
    assert "TINYET_ALIGNED(16) TINYET_IN(TINYET_MIDDLE_SECTION);" in text
    assert "memcpy(head_weights_copy, head_weights, sizeof head_weights_copy);" in text
    assert "#error \"fast: the board file names no section of zephyr's linker script there" in text
    assert set(symbols_of(found, "net").placed) == {"net_arena", "conv_weights_copy", "head_weights_copy"}


def test_addresses_are_checked() -> None:
    expected = {"a": FAST, "b": FAST, "c": MIDDLE}
    assert (
        check_addresses(
            [("a", FAST.origin, 256), ("b", FAST.origin + 256, 256), ("c", MIDDLE.origin, 4)], expected
        )
        == []
    )
    faults = check_addresses([("a", FAST.origin, 256), ("b", FAST.origin + 255, 258)], expected)
    assert faults == [
        "b lies at 0x100000ff to 0x10000201, outside of fast: 0x10000000 to 0x10000200",
        "c has no symbol, so nobody knows whether it lies in middle",
        "a and b lie over each other at 0x100000ff",
    ]


# ---------------------------------------------------------------- board files


def faults_of(where: Path, keys: str, more: str = "") -> str:
    """What is said of a board file with more keys in its dtcm, and more tables."""
    text = (assets.path("boards") / "mps3_an547.toml").read_text()
    own = where / "own.toml"
    own.write_text(text.replace("bytes = 0x00080000", f"bytes = 0x00080000\n{keys}") + more)
    with pytest.raises(BoardError) as caught:
        load_board(own)
    return caught.value.what


def test_keys_of_a_memory(tmp_path: Path) -> None:
    said = faults_of(
        tmp_path,
        "read_waits = 5000\nline_bytes = 3\nspeed = 1",
        '[memory.dtcm.sections]\narduino = "-o x"\nmbed = ".x"\n',
    )
    for fault in (
        "memory.dtcm.read_waits is 5000",
        "memory.dtcm.line_bytes is 3; it is one of 4, 8, 16, 32, 64",
        "memory.dtcm.sections.arduino is '-o x'; it is written as in '.dtcm_bss'",
        "memory.dtcm.sections.mbed is not known here",
        "memory.dtcm.speed is not known here",
    ):
        assert fault in said, fault


def test_contradictions_of_memories(tmp_path: Path) -> None:
    said = faults_of(
        tmp_path,
        "read_waits = 0",
        """
[memory.auto]
origin = 0x30000000
bytes = 16
family = "x"

[memory.qspi]
origin = 0x90000000
bytes = 4096
read_only = true
read_waits = 9
write_waits = 1
""",
    )
    for fault in (
        "memory.auto cannot be told from --place NAME=auto",
        "memory.dtcm.write_waits is missing",
        "memory.auto.family is of waits, and there are no read_waits",
        "memory.qspi.write_waits is stated of a memory that is read_only",
    ):
        assert fault in said, fault
