# SPDX-License-Identifier: Apache-2.0
"""Estimates of cycles without an emulator: tables, arithmetic, the plugin's files, and what can be missing."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.golden.programs import separable
from tests.unit.test_size import image
from tinyet import assets
from tinyet.boards import Flash, all_boards, load_board
from tinyet.boards.cpus import CPUS, RUNS_CODE_OF
from tinyet.cycles import profile
from tinyet.cycles.code import Code, Function, read_code
from tinyet.cycles.estimate import CycleEstimate, Estimator
from tinyet.cycles.inference import cycle_model, flash_sentence
from tinyet.cycles.plugin import build_plugin, core_of, plugin_api
from tinyet.cycles.profile import Block, Profiler, Run, Segment
from tinyet.errors import EmulatorError, MissingTool, ToolchainError, UsageError
from tinyet.project import Project
from tinyet.projects.one import generate
from tinyet.timing.cores import CORES, TABLES, WITHOUT_MODEL
from tinyet.timing.instruction import Instruction
from tinyet.timing.table import Core
from tinyet.timing.thumb import decode
from tinyet.timing.work import Work, total

LDR, LDR_INDEXED = decode(0x6808), decode(0x5888)  # ldr r0, [r1]; ldr r0, [r1, r2]
LDR_R1, LDR_R1_BY_R0 = decode(0x6811), decode(0x6801)  # ldr r1, [r2]; ldr r1, [r0]
STR, STR_INDEXED = decode(0x6018), decode(0x5098)  # str r0, [r3]; str r0, [r3, r2]
ADDS, NOP, BNE, B, BX, BL = (
    decode(0x1C40),
    decode(0xBF00),
    decode(0xD1FE),
    decode(0xE7FE),
    decode(0x4770),
    decode(0xF000, 0xF800),
)
PUSH_4, POP_4_PC = decode(0xB50E), decode(0xBD0E)  # {r1, r2, r3, lr}, {r1, r2, r3, pc}


# ---- the tables ----


@pytest.mark.parametrize(
    ("block", "cycles"),
    [
        # The examples of the manual's section on load and store timings.
        ([LDR, LDR_R1], 3),
        ([LDR_INDEXED, STR], 3),
        ([LDR_INDEXED, STR_INDEXED], 3),
        ([LDR_INDEXED, LDR_R1, LDR_R1], 4),
        # The second load's address is what the first one loads.
        ([LDR, LDR_R1_BY_R0], 4),
        ([LDR, ADDS, LDR], 5),
        # An address that the instruction before has computed.
        ([ADDS, LDR_R1], 3),
        ([ADDS, LDR_R1_BY_R0], 4),
        ([decode(0x1D1B), STR], 3),  # adds r3, r3, #4; str r0, [r3]
        ([decode(0x4353), STR_INDEXED], 4),  # muls r3, r2; str r0, [r3, r2]
        ([STR, STR], 2),
        ([STR_INDEXED, LDR], 4),
        # 1+N
        ([PUSH_4], 5),
        ([decode(0xE9D1, 0x2300)], 3),  # ldrd r2, r3, [r1]
        ([decode(0xFB01, 0x2003)], 1),  # mla
        ([decode(0xFB81, 0x0102)], 1),  # smull
        ([decode(0xFB91, 0xF0F2)], 7),  # sdiv
        ([decode(0xEE00, 0x0A81)], 3),  # vmla.f32
    ],
)
def test_cycles_of_the_cortex_m4(block: Sequence[Instruction], cycles: int) -> None:
    assert CORES["cortex-m4"].straight(block) == cycles


@pytest.mark.parametrize(
    ("core", "kind", "cycles"),
    [
        # cycles when not taken, and more when taken; DDI 0432C, DDI 0484C: table 3-1
        ("cortex-m0", BNE, (1, 2)),
        ("cortex-m0", B, (1, 2)),
        ("cortex-m0", BL, (1, 3)),
        ("cortex-m0", BX, (1, 2)),
        ("cortex-m0", POP_4_PC, (5, 3)),
        ("cortex-m0", PUSH_4, (5, 0)),
        ("cortex-m0", LDR, (2, 0)),
        ("cortex-m0", STR_INDEXED, (2, 0)),
        ("cortex-m0plus", BNE, (1, 1)),
        ("cortex-m0plus", BL, (2, 1)),
        ("cortex-m0plus", BX, (1, 1)),
        ("cortex-m0plus", POP_4_PC, (5, 2)),
        ("cortex-m3", decode(0xFB01, 0x2003), (2, 0)),
        ("cortex-m3", decode(0xFB81, 0x0102), (5, 0)),
        ("cortex-m4", POP_4_PC, (5, 3)),
        ("cortex-m4", BL, (1, 2)),
        ("cortex-m4", BX, (1, 3)),
    ],
)
def test_cycles_of_single_instructions(core: str, kind: Instruction, cycles: tuple[int, int]) -> None:
    model = CORES[core]
    assert (model.straight([kind]), model.refill(kind)) == cycles


def test_every_core_has_a_model_or_a_reason() -> None:
    assert set(CORES) | set(WITHOUT_MODEL) == {*CPUS, *RUNS_CODE_OF}
    assert not set(CORES) & set(WITHOUT_MODEL)
    for core in CORES.values():
        assert core.source
        assert core.assumed
    for name in ("cortex-m7", "cortex-m33", "cortex-m55"):
        assert "publishes no table" in CORES[name].source


# ---- the arithmetic ----

AT = 0x100
# A loop of a load, an addition and a branch back; then a return.
LOOP = Code(
    {
        AT: LDR,
        AT + 2: ADDS,
        AT + 4: BNE,
        AT + 6: BX,
        AT + 8: BL,
        AT + 12: decode(0xD5FE)._replace(size=4),
        AT + 16: ADDS,
    },
    {},
)


def segment(*blocks: Block, waits: tuple[int, int, int] = (0, 0, 0)) -> Segment:
    return Segment(list(blocks), *waits)


EMPTY = segment(Block(AT + 8, 1, 1))
NOTHING = Run((), segment(Block(AT + 6, 1, 1)))
MARKED = Run((EMPTY,) * 8, segment(Block(AT + 6, 1, 1), Block(AT + 2, 1, 8)))


def run(rounds: int) -> Run:
    loop = segment(
        Block(AT, 3, rounds, {(AT, 3): rounds - 1}), Block(AT + 6, 1, 1, {(AT, 3): 1}), Block(AT + 8, 1, 1)
    )
    between = segment(Block(AT + 6, 1, 1), Block(AT + 2, 1, 5))
    return Run((loop, loop), between)


def test_the_cost_of_telling_layers_apart_is_in_no_figure() -> None:
    layers, between = Estimator(CORES["cortex-m4"], LOOP, None).mean((NOTHING, MARKED), [run(10), run(20)])
    # 15 rounds of LDR 2, ADDS, BNE 1+2 but for the last, and BX 1+3; the call is that of an empty layer.
    layer = Work(15 * 4 + 14 * 2 + 4, 46, loads=15, taken_branches=14 + 1)
    assert layers == (layer, layer)
    # Five additions of which each layer's marks take one.
    assert between == Work(3, 3)


def test_a_branch_that_goes_on_behind_itself_is_not_taken() -> None:
    estimator = Estimator(CORES["cortex-m4"], LOOP, None)
    none = Run((EMPTY,) * 8, segment())

    def taken(*blocks: Block) -> int:
        layers, _ = estimator.mean(
            (Run((), segment()), none), [Run((segment(EMPTY.blocks[0], *blocks),), segment())]
        )
        return layers[0].taken_branches

    def behind(start: int, count: int) -> Block:
        return Block(AT + 6, 1, 3, {(start, 1): count})

    assert taken(Block(AT + 4, 1, 10), behind(AT + 4, 3)) == 7 + 3  # and the three returns
    assert taken(Block(AT + 12, 1, 10), Block(AT + 16, 1, 2, {(AT + 12, 1): 2})) == 8  # 32 bits long
    assert taken(Block(AT + 12, 1, 10), behind(AT + 12, 3)) == 10 + 3  # that is not behind it
    assert (
        taken(Block(AT + 8, 1, 10), Block(AT + 12, 1, 10, {(AT + 8, 1): 10})) == 10 + 10
    )  # a call may go there


def test_a_block_is_costed_behind_what_ran_before_it() -> None:
    class Remembering(Core):
        def straight(self, block: Sequence[Instruction], before: Sequence[Instruction] = ()) -> int:
            return 1000 * len(before) + len(block)

    core = Remembering(**vars(TABLES["cortex-m4"]))
    loop = Block(AT, 3, 10, {(AT, 3): 8, (AT + 6, 1): 1})
    empty = (Run((), segment()), Run((segment(),) * 8, segment()))
    layers, _ = Estimator(core, LOOP, None).mean(empty, [Run((segment(loop),), segment())])
    # Once behind nothing, once behind a return, eight times behind itself, whose steady state is asked for.
    assert layers[0].cycles == 10 * 3 + 1000 * (1 + 8 * 4 * 3) + 2 * 10


def test_waits_for_the_flash() -> None:
    # Beside the call that is taken off, 100 additions of 2 bytes: a line of 8 bytes is 4 cycles of work.
    additions = Block(AT + 2, 1, 100)
    empty = (Run((), segment()), Run((segment(),) * 8, segment()))
    for prefetch, wait_states, waits in (
        (False, 5, 5 * (10 + 7)),
        (True, 5, 5 * (6 + 7) + (6 - 4) * 4),
        (True, 3, 3 * (6 + 7)),  # a read of 4 cycles is over in time
        (True, 100, 100 * (6 + 7) + 97 * 4),
    ):
        flash = Flash(wait_states, 8, 64, 8, prefetch)
        reads = segment(additions, waits=(10, 4, 7))
        layers, _ = Estimator(CORES["cortex-m4"], LOOP, flash).mean(empty, [Run((reads,), segment())])
        assert layers == (Work(100 + waits, 100, wait_cycles=waits),)


def test_an_estimate_adds_up() -> None:
    layers = (Work(1000, 800, 200, 100, 300, 4, 50, 6), Work(500, 400))
    estimate = CycleEstimate(
        "Cortex-M4", "a table", ("a thing",), "mps2_an386", 25_000_000, layers, Work(40, 30)
    )
    assert estimate.cycles == 1540
    assert estimate.milliseconds == pytest.approx(0.0616)
    assert estimate.whole == total((*layers, Work(40, 30))) == Work(1540, 1230, 200, 100, 300, 4, 50, 6)
    record = estimate.to_json()
    assert record["cycles"] == 1540
    assert record["between"] == dataclasses.asdict(Work(40, 30))


@pytest.mark.parametrize(
    ("flash", "sentence"),
    [
        (None, "the board's file does not say how long its flash lets the core wait: not at all"),
        (Flash(0, 4, 1, 1, prefetch=False), "the flash lets the core wait for nothing, as the board's file says"),
        (Flash(2, 8, 3, 4, prefetch=False), "for each line of 8 bytes that is not among the last 3 of code or 4"),
        (Flash(9, 8, 64, 1, prefetch=False, shared=True), "not among the last 64 of code and data"),
        (Flash(0, 4, 1, 1, prefetch=False, family="nRF51"), "for nothing, which is what is known of the family nRF51"),
        (Flash(3, 8, 3, 4, prefetch=False, family="nRF52"), "; which is what is known of the family nRF52, not"),
        (Flash(5, 16, 64, 8, prefetch=True), "less for the line behind the one that is executed, which is read ahead"),
    ],
)  # fmt: skip
def test_what_is_assumed_of_the_flash(flash: Flash | None, sentence: str) -> None:
    assert sentence in flash_sentence(flash)


# ---- the plugin's files, the firmware's code ----


def test_a_file_of_the_plugins(tmp_path: Path) -> None:
    text = (
        "segment -1\n100 3 5\nbehind 100 3 3\nbehind 1f0 1 1\nbehind 100 3 1\nflash 4 3 2\n"
        "segment 0\n1f0 1 2\nflash 0 0 0\n"
        "segment -1\n100 3 1\nflash 1 0 0\nend\n"
    )
    found = profile._parse(text, tmp_path)
    assert found.layers == (Segment([Block(0x1F0, 1, 2)]),)
    # Code that was translated twice, or ran in several pieces, is the same block: its branch was taken in what is left
    # of all of its runs.
    behind = {(0x100, 3): 4, (0x1F0, 1): 1}
    assert found.between == Segment([Block(0x100, 3, 6, behind)], 5, 3, 2)
    for cut in ("", text.removesuffix("end\n")):
        with pytest.raises(EmulatorError, match="without its end"):
            profile._parse(cut, tmp_path)


def test_a_firmware_without_symbols(tmp_path: Path) -> None:
    elf = tmp_path / "firmware.elf"
    elf.write_bytes(b"\x7fELF")
    with pytest.raises(ToolchainError, match="cannot be read") as caught:
        read_code(elf)
    assert "do not strip it" in str(caught.value.hint)


def test_a_firmware_without_the_harness(tmp_path: Path) -> None:
    elf = tmp_path / "firmware.elf"
    elf.write_bytes(image())
    code = read_code(elf)
    assert code.functions["run"] == Function(0x10, 0x30)
    assert code.instructions == {}  # nothing says what is code there
    board = load_board("mps2_an386")
    with pytest.raises(
        ToolchainError, match=r"no function tinyet_platform_counter_restart, .*tinyet_trace_end"
    ):
        Profiler(board, elf, code, tmp_path, tmp_path, None, timeout=1.0)


# ---- what can be missing ----


@pytest.fixture
def bin_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory on PATH."""
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", str(place))
    return place


def add_tool(where: Path, name: str, script: str = "exit 0") -> None:
    tool = where / name
    tool.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    tool.chmod(0o755)


def qemu_help(version: str, *options: str) -> str:
    lines = [f"QEMU emulator version {version} (Debian)", "usage: qemu-system-arm [options]", *options]
    return "\n".join(f"echo '{line}'" for line in lines)


BOARD = load_board("mps2_an386")
PLUGIN_HELP = "-plugin [file=]<file>[,<argname>=<argvalue>]"


@pytest.mark.usefixtures("bin_dir")
@pytest.mark.parametrize("name", ["esp32s3", "esp32", "arduino_uno"])
def test_a_core_without_a_model(name: str, tmp_path: Path) -> None:
    board = load_board(name)
    with pytest.raises(UsageError) as caught:
        cycle_model(board, tmp_path)
    assert f"no model of the cycles of {board.cpu}" in caught.value.what
    assert caught.value.where == name
    assert "--on serial:PORT" in str(caught.value.hint)
    assert "cortex-m4" in str(caught.value.hint)


def test_every_board_with_a_model_has_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinyet.cycles.inference.build_plugin", lambda _, where: where)
    boards = [board for board in all_boards() if board.cpu in CORES]
    for board in boards:
        model = cycle_model(board, tmp_path)
        assert model.core is core_of(board)
        assert model.machine.qemu is not None
        assert model.machine.target == board.target
        assert model.stands_in == (board.qemu is None)
    assert {board.cpu for board in boards} >= {
        "cortex-m0",
        "cortex-m0plus",
        "cortex-m4",
        "cortex-m7",
        "cortex-m33",
    }


def test_all_tools_that_are_missing_are_named(tmp_path: Path, bin_dir: Path) -> None:
    with pytest.raises(MissingTool) as caught:
        build_plugin(BOARD, tmp_path)
    assert "a C compiler for this machine" in caught.value.what
    assert "qemu-system-arm" in caught.value.what
    assert len(str(caught.value.hint).splitlines()) == 2
    add_tool(bin_dir, "gcc")
    with pytest.raises(MissingTool) as caught:
        build_plugin(BOARD, tmp_path)
    assert "C compiler" not in caught.value.what


def test_a_qemu_without_plugins(tmp_path: Path, bin_dir: Path) -> None:
    add_tool(bin_dir, "gcc")
    add_tool(bin_dir, "qemu-system-arm", qemu_help("7.2.0", "-m size"))
    with pytest.raises(UsageError, match="built without plugins") as caught:
        build_plugin(BOARD, tmp_path)
    assert caught.value.where == str(bin_dir / "qemu-system-arm")
    assert "--enable-plugins" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("version", "api"), [("4.2.1", 1), ("7.2.22", 1), ("8.2.0", 1), ("9.0.0", 2), ("10.1.0", 2)]
)
def test_the_interface_to_plugins_is_that_of_the_qemu(version: str, api: int, bin_dir: Path) -> None:
    add_tool(bin_dir, "qemu-system-arm", qemu_help(version, PLUGIN_HELP))
    assert plugin_api("qemu-system-arm") == api


def test_a_compiler_that_fails(tmp_path: Path, bin_dir: Path) -> None:
    add_tool(bin_dir, "cc", "echo 'no such header' >&2; exit 1")
    add_tool(bin_dir, "qemu-system-arm", qemu_help("7.2.0", PLUGIN_HELP))
    with pytest.raises(ToolchainError, match="no such header"):
        build_plugin(BOARD, tmp_path)


def test_a_system_without_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    with pytest.raises(UsageError, match="Linux and macOS only"):
        build_plugin(BOARD, tmp_path)


def test_what_is_missing_is_said_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A validation may take minutes."""
    project = generate(separable(), "esp32", tmp_path / "p")
    monkeypatch.setattr(Project, "firmware", lambda *_, **__: pytest.fail("it has begun"))
    with pytest.raises(UsageError, match="no model of the cycles of xtensa-lx6"):
        project.validate(on="host", estimate=True)


@pytest.mark.parametrize("api", [1, 2])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_plugin_compiles_without_a_warning(compiler: str, api: int, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    source = assets.path("qemu") / "tinyet_profile.c"
    flags = [
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-Wsign-conversion",
        "-Werror",
        "-shared",
        "-fPIC",
    ]
    subprocess.run(
        [compiler, *flags, f"-DTINYET_QEMU_PLUGIN_API={api}", source, "-o", tmp_path / "p.so"],
        check=True,
        timeout=60,
    )
