# SPDX-License-Identifier: Apache-2.0
"""Estimates of cycles: what QEMU's plugin counts, against code that is counted by hand and against the harness."""

from __future__ import annotations

import dataclasses
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.calls.board import STRICT
from tests.golden.programs import separable
from tests.ops.emulated import require_emulator
from tests.unit.test_thumb import disassembly, wrong
from tinyet import assets
from tinyet.boards import Flash, load_board
from tinyet.build.gcc import build_firmware
from tinyet.cycles.code import read_code
from tinyet.cycles.estimate import Estimator
from tinyet.cycles.inference import cycle_model
from tinyet.cycles.plugin import build_plugin
from tinyet.cycles.profile import Profiler, Segment
from tinyet.delegates import CMSIS_NN, PORTABLE
from tinyet.emit.project import Kind
from tinyet.projects.one import generate
from tinyet.timing.cores import CORES
from tinyet.timing.instruction import Kind as InstructionKind
from tinyet.timing.work import Work

MODEL = Path(__file__).with_name("cycles_model.c")
HARNESS_MODEL = Path(__file__).with_name("harness_model.c")
INPUT = bytes(4)

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(
        shutil.which("gcc") is None and shutil.which("cc") is None, reason="there is no C compiler"
    ),
]


@dataclasses.dataclass(frozen=True)
class Built:
    """The model with its harness for a board, and the plugin."""

    name: str
    elf: Path
    plugin: Path

    def start(self, where: Path, flash: Flash | None = None) -> Profiler:
        return Profiler(
            load_board(self.name), self.elf, read_code(self.elf), self.plugin, where, flash, timeout=60.0
        )

    def estimator(self, flash: Flash | None = None) -> Estimator:
        return Estimator(CORES[load_board(self.name).cpu], read_code(self.elf), flash)


@pytest.fixture(scope="module", params=["mps2_an386", "microbit", "mps2_an500", "mps3_an547"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    require_emulator(request.param)
    where = tmp_path_factory.mktemp("place, with a comma")
    board = load_board(request.param)
    return Built(
        board.name, build_firmware(board, [MODEL], [], where, flags=STRICT), build_plugin(board, where)
    )


# Board → cycles of a layer by the tables of its core's manual: the call and the return, then the function.
BY_HAND = {
    "mps2_an386": (
        # LDR, MOVS; 100 x (LDR 2, LDR 1 behind another, STR, MULS, SUBS, BNE), and 2 for each taken branch
        (3 + 4) + (2 + 1) + 100 * (2 + 1 + 1 + 1 + 1 + 1) + 99 * 2,
        # PUSH 1+N, MOVS, POP 1+N+P; 2 x (LDR, MOVS, SUBS, BNE), 128 x (LDR, ADDS, SUBS, BNE)
        3 + 3 + 1 + 6 + 2 * (2 + 1 + 1 + 1) + 1 * 2 + 128 * (2 + 1 + 1 + 1) + 126 * 2,
        # MOVS; 100 x (LSRS, BCC, SUBS, BNE), 50 NOP, 50 + 99 branches taken
        (3 + 4) + 1 + 100 * 4 + 50 + (50 + 99) * 2,
    ),
    "microbit": (
        (4 + 3) + (2 + 1) + 100 * (2 + 2 + 2 + 1 + 1 + 1) + 99 * 2,
        4 + 3 + 1 + 6 + 2 * (2 + 1 + 1 + 1) + 1 * 2 + 128 * (2 + 1 + 1 + 1) + 126 * 2,
        (4 + 3) + 1 + 100 * 4 + 50 + (50 + 99) * 2,
    ),
    # By the pipelines of pipelines.py. A call and a return, the rounds, the first of which begins with the function;
    # and 6 cycles for each branch that goes where it seldom goes, in each place from which a round begins.
    "mps2_an500": (
        # LDR with MOVS, 2 cycles later LDR with LDR, STR, MULS with SUBS, BNE
        (1 + 1) + 6 + 99 * 4 + 6,
        # PUSH, MOVS with LDR, 2 cycles later LDR with ADDS, SUBS with BNE
        (1 + 1) + 5 + 126 * 2 + 2 * 1 + 4 + (2 + 1) * 6,
        # MOVS with LSRS, BCC; SUBS with BNE, in every other round NOP with SUBS, BNE
        (1 + 1) + 2 + 99 * 1 + 50 * 1 + 50 * 2 + (49 + 1) * 6,
    ),
    "mps3_an547": (
        # LDR with MOVS, 2 cycles later LDR, LDR, STR, MULS with SUBS, BNE; a taken branch a cycle more, a return 3
        (2 + 4) + 7 + 99 * 5 + 99,
        # PUSH with MOVS, LDR with MOVS, 2 cycles later LDR with ADDS, SUBS, BNE
        (2 + 4) + 6 + 126 * 3 + 2 * 2 + 5 + 127,
        # MOVS, LSRS, BCC; SUBS, BNE, in every other round NOP with SUBS, BNE
        (2 + 4) + 3 + 99 * 2 + 50 * 2 + 50 * 2 + (50 + 99),
    ),
}


def test_code_that_is_counted_by_hand(built: Built, tmp_path: Path) -> None:
    with built.start(tmp_path) as profiler:
        runs = [profiler.run([INPUT]) for _ in range(2)]
    assert runs[0] == runs[1]
    layers, _ = built.estimator().mean(profiler.empty, runs)
    assert tuple(layer.cycles for layer in layers) == BY_HAND[built.name]
    one, two, three = layers
    assert one == Work(
        one.cycles, 1 + 2 + 600 + 1, loads=201, stores=100, multiplies=100, taken_branches=99 + 2
    )
    assert two == Work(
        two.cycles, 1 + 2 + 2 * 4 + 128 * 4 + 1, loads=2 + 128 + 1, stores=1, taken_branches=1 + 126 + 2
    )
    assert three == Work(three.cycles, 1 + 1 + 400 + 50 + 1, taken_branches=50 + 99 + 2)
    assert list(tmp_path.iterdir()) == []


# Board → instructions that bring an address: LUI and ADDI, or L32R, which is a load.
ADDRESS = {"riscv32_virt": 2, "xtensa_lx60": 1}


@pytest.mark.parametrize("name", ADDRESS)
def test_code_of_other_cores_that_is_counted_by_hand(name: str, tmp_path: Path) -> None:
    require_emulator(name)
    board = load_board(name)
    elf = build_firmware(board, [MODEL], [], tmp_path, flags=STRICT)
    one_run = Built(name, elf, build_plugin(board, tmp_path))
    with one_run.start(tmp_path) as profiler:
        layers, _ = one_run.estimator().mean(profiler.empty, [profiler.run([INPUT])])
    address, literal = ADDRESS[name], int(ADDRESS[name] == 1)
    call_and_return = 3 + 3
    assert layers == (
        Work(
            # the second load's result is read right behind it
            call_and_return + address + 1 + 100 * 7 + 99 * 2,
            1 + address + 1 + 600 + 1,
            loads=200 + literal,
            stores=100,
            multiplies=100,
            taken_branches=99 + 2,
        ),
        Work(
            call_and_return + 1 + 2 * (address + 1 + 2) + 1 * 2 + 128 * 4 + 126 * 2,
            1 + 1 + 2 * (address + 1 + 2) + 128 * 4 + 1,
            loads=128 + 2 * literal,
            taken_branches=1 + 126 + 2,
        ),
        Work(
            call_and_return + 1 + 100 * 4 + 50 + (50 + 99) * 2,
            1 + 1 + 400 + 50 + 1,
            taken_branches=50 + 99 + 2,
        ),
    )


@pytest.mark.parametrize(
    ("flash", "data_reads"),
    [
        # the literal beside the code, and 16 lines of the table; twice where there is one line only
        (Flash(3, 16, 1, 1, prefetch=False), 2 * (1 + 16)),
        (Flash(2, 16, 64, 32, prefetch=True), 1 + 16),
        (Flash(3, 4, 64, 128, prefetch=False), 1 + 64),
        (Flash(3, 4, 64, 1, prefetch=False), 2 * (1 + 64)),
        # the code of the loop and the table share 256 lines, or take each other's places in 32
        (Flash(3, 4, 256, 1, prefetch=False, shared=True), 1 + 64),
        (Flash(3, 4, 32, 1, prefetch=False, shared=True), 2 * (1 + 64)),
    ],
)
def test_reads_of_the_flash(built: Built, flash: Flash, data_reads: int, tmp_path: Path) -> None:
    with built.start(tmp_path, flash) as profiler:
        run = profiler.run([INPUT])
    reading, skipping = run.layers[1:]
    assert reading.data_reads == data_reads
    assert (skipping.data_reads, run.layers[0].data_reads) == (0, 1)
    if flash.line_bytes == 16:
        # The call and the function, which is in one line: its loop reads no more.
        assert 1 <= skipping.code_reads <= 4
    layers, _ = built.estimator(flash).mean(profiler.empty, [run])
    plain, _ = built.estimator().mean(profiler.empty, [run])
    assert [layer.cycles - layer.wait_cycles for layer in layers] == [layer.cycles for layer in plain]
    # Lines of 16 bytes take longer to execute than to read.
    first, empty = (
        flash.wait_states * (part.code_reads - (part.next_reads if flash.prefetch else 0) + part.data_reads)
        for part in (reading, profiler.empty[1].layers[-1])
    )
    assert layers[1].wait_cycles == first - empty


def test_parts_of_layers_end_no_run(tmp_path: Path) -> None:
    """Those that a delegate tells apart read the counter, too."""
    require_emulator()
    board = load_board("mps2_an386")
    elf, plugin = (
        build_firmware(board, [HARNESS_MODEL], [], tmp_path, flags=STRICT),
        build_plugin(board, tmp_path),
    )
    with Built(board.name, elf, plugin).start(tmp_path) as profiler:
        plain, profiled = (
            profiler.run([(1000).to_bytes(4, "little") + bytes([fault]) + bytes(595), bytes(16)])
            for fault in (0, 9)
        )
    assert len(profiled.layers) == len(plain.layers) == 3
    assert 3000 < instructions(plain.layers[1]) <= instructions(profiled.layers[1]) < 3100


def instructions(segment: Segment) -> int:
    return sum(block.instructions * block.count for block in segment.blocks)


@pytest.mark.parametrize(
    "name",
    [
        *("mps2_an385", "mps2_an386", "mps2_an500", "mps2_an505", "mps3_an547", "nrf51_dk"),
        *("riscv32_virt", "xtensa_lx60"),
    ],
)
def test_layers_add_up_to_the_whole_and_to_the_harnesss_instructions(name: str, tmp_path: Path) -> None:
    require_emulator(name)
    # A Zephyr project has no harness for emulators: it is compiled when it is asked for.
    kind: Kind = "zephyr" if load_board(name).zephyr else "cmake"
    project = generate(separable(), name, tmp_path / "project", kind=kind)
    if kind == "cmake":
        project.build()
    result = project.validate(estimate=True)
    estimate = result.estimate
    assert result.bit_exact
    assert estimate is not None
    assert [layer.estimate.instructions for layer in result.layers if layer.estimate] == [
        layer.count for layer in result.layers
    ]
    assert len(estimate.layers) == len(result.layers)
    # The harness reads a timer on the nRF51, in whole ticks.
    assert result.instructions is not None
    assert abs(estimate.whole.instructions - result.instructions) <= 8
    assert estimate.cycles == sum(layer.cycles for layer in estimate.layers) + estimate.between.cycles
    # Two instructions are issued in a cycle at most.
    assert 0.6 < estimate.cycles / estimate.whole.instructions < 2.5
    if estimate.ends is not None:
        assert estimate.ends[0] <= estimate.cycles <= estimate.ends[1]
    assert estimate.machine == name
    assert estimate.milliseconds == 1e3 * estimate.cycles / load_board(name).clock_hz
    assert result.cycles is None  # an estimate is no count


@pytest.mark.skipif(assets.cmsis_nn_dir() is None, reason="the sources of CMSIS-NN are not here")
def test_vectors(tmp_path: Path) -> None:
    """CMSIS-NN's kernels of Helium, in low-overhead loops: decoded as the disassembler does, and counted as the harness
    does."""
    require_emulator("mps3_an547")
    project = generate(
        separable(), "mps3_an547", tmp_path / "project", kind="cmake", delegates=(CMSIS_NN, PORTABLE)
    )
    project.build()
    result = project.validate(estimate=True)
    assert result.bit_exact
    assert result.estimate is not None
    assert [layer.estimate.instructions for layer in result.layers if layer.estimate] == [
        layer.count for layer in result.layers
    ]
    seen: Counter[InstructionKind] = Counter()
    elf = project.firmware("qemu", tmp_path)
    assert wrong(disassembly(elf, "-m", "armv8.1-m.main"), seen) == []
    assert {"vector_load", "vector_store", "vector_multiply", "vector_dot", "loop_start", "loop_end"} <= set(
        seen
    )
    # More than one instruction a cycle is not issued of vectors.
    assert result.estimate.cycles > 0.9 * result.estimate.whole.instructions


def test_a_board_that_qemu_does_not_have(tmp_path: Path) -> None:
    """Another board's machine runs the code of its core; the time is that of its own clock and flash."""
    require_emulator()
    project = generate(separable(), "nucleo_f446re", tmp_path / "project", kind="zephyr")
    result = project.validate(on="host", estimate=True)
    estimate = result.estimate
    assert result.bit_exact
    assert estimate is not None
    assert (estimate.machine, estimate.clock_hz) == ("mps2_an386", 180_000_000)
    assert any("5 cycles longer for each line of 16 bytes" in sentence for sentence in estimate.assumed)
    assert estimate.whole.wait_cycles > 0
    assert result.count_unit == "nanoseconds"


M85 = Path(__file__).parents[2] / "benchmarks" / "boards" / "ek_ra8d1.toml"


@pytest.mark.parametrize("name", ["pico", "nrf5340_dk", "nucleo_h743zi", "esp32c3", M85])
def test_the_machine_that_stands_in_has_the_boards_target(name: str | Path, tmp_path: Path) -> None:
    require_emulator()
    board = load_board(name)
    model = cycle_model(board, tmp_path)
    assert model.stands_in
    assert model.machine.target == board.target
    elf = build_firmware(model.machine, [MODEL], [], tmp_path, flags=STRICT)
    estimate = model.estimate(elf, [[INPUT]], tmp_path, timeout=60.0)
    assert len(estimate.layers) == 3
    assert estimate.layers[0].multiplies == 100
    assert (estimate.model == "Cortex-M85") == (name == M85)
    assert any("the code is that of the cortex-m55" in said for said in estimate.assumed) == (name == M85)
