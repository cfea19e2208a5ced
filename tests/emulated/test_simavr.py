# SPDX-License-Identifier: Apache-2.0
"""The harness on an AVR in simavr: projects are validated there, and cycles are those of Microchip's table."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from benchmarks import costs, kernels
from tests import small
from tests.emulated.avr import FLAGS, HZ, run_on_avr
from tests.emulated.simavr import build_runner, execute
from tests.emulated.test_costs import ALL, BY_VALUES, DRAWN_EACH, compared, run
from tinyet import assets
from tinyet.boards import load_board
from tinyet.delegates import PORTABLE
from tinyet.device.device import open_device
from tinyet.errors import EmulatorError
from tinyet.ir import Node
from tinyet.numerics import high_mul, round_shift
from tinyet.ops.shared.row_sums import RowSums
from tinyet.opset import Kernel, cost
from tinyet.projects.one import generate
from tinyet.validation import ValidationResult

pytestmark = pytest.mark.emulated

UNO = "atmega328p"
# ATmega328P data sheet, "Instruction Set Summary": code of registers that nothing else uses, and its cycles. A branch
# that goes elsewhere takes one more, a skip one more for each word that it skips.
TABLE = {
    "nop": 1, "mov r20, r21": 1, "movw r20, r22": 1, "ldi r20, 5": 1, "add r20, r21": 1, "adc r20, r21": 1,
    "sub r20, r21": 1, "sbc r20, r21": 1, "subi r20, 5": 1, "sbci r20, 5": 1, "cp r20, r21": 1, "cpc r20, r21": 1,
    "cpi r20, 5": 1, "and r20, r21": 1, "or r20, r21": 1, "eor r20, r21": 1, "com r20": 1, "neg r20": 1, "inc r20": 1,
    "dec r20": 1, "asr r20": 1, "lsr r20": 1, "ror r20": 1, "swap r20": 1, "bst r20, 3": 1, "bld r20, 3": 1, "sec": 1,
    "adiw r26, 1": 2, "sbiw r26, 1": 2, "mul r20, r21": 2, "muls r20, r21": 2, "mulsu r20, r21": 2, "fmul r20, r21": 2,
    "fmuls r20, r21": 2, "fmulsu r20, r21": 2,
    "ld r20, X": 2, "ld r20, X+": 2, "ld r20, Z+": 2, "ldd r20, Z+7": 2, "lds r20, 0x200": 2, "st X, r20": 2,
    "st X+, r20": 2, "std Z+7, r20": 2, "sts 0x200, r20": 2, "push r20\npop r20": 4, "lpm r20, Z": 3, "lpm r20, Z+": 3,
    "in r20, 0x3d": 1, "out 0x15, r20": 1, "sbi 0x15, 0": 2, "cbi 0x15, 0": 2,
    "rjmp 1f\n1:": 2, "jmp 1f\n1:": 3, "rcall 1f\nrjmp 2f\n1: ret\n2:": 3 + 4 + 2,
    "call 1f\nrjmp 2f\n1: ret\n2:": 4 + 4 + 2,
    "sec\nbrcs 1f\n1:": 1 + 2, "clc\nbrcs 1f\n1:": 1 + 1,
    "ldi r20, 1\nsbrc r20, 1\nnop": 1 + 2, "ldi r20, 2\nsbrc r20, 1\nnop": 1 + 1 + 1,
    "ldi r20, 1\nsbrc r20, 1\nlds r21, 0x200": 1 + 3, "mov r20, r21\ncpse r20, r21\nnop": 1 + 2,
}  # fmt: skip
COUNTED = """
#include <avr/io.h>
#include "tinyet_platform.h"
void tinyet_platform_abort(void);
#define COUNT(code)                                                                                     \\
  {                                                                                                     \\
    GPIOR0 = 1;                                                                                         \\
    __asm__ volatile("ldi r26, 0\\nldi r27, 2\\nldi r30, 0\\nldi r31, 2\\n" code ::: "r0", "r1", "r20",  \\
                     "r21", "r22", "r23", "r26", "r27", "r30", "r31", "memory");                        \\
    __asm__ volatile("clr r1");                                                                         \\
    GPIOR0 = 0;                                                                                         \\
    const uint8_t cycles = GPIOR1;                                                                      \\
    tinyet_platform_write(&cycles, 1);                                                                  \\
  }
int main(void) {
  %s
  while ((UCSR0A & (1 << UDRE0)) == 0) {
  }
  for (volatile uint8_t i = 0; i < 200; i++) {
  }
  tinyet_platform_abort();
}
"""


def test_instructions_take_the_cycles_of_the_table(tmp_path: Path) -> None:
    build_runner()
    codes = [code.replace("\n", r"\n") for code in ("", *TABLE)]
    elf = linked_alone(COUNTED % "\n  ".join(f'COUNT("{code}")' for code in codes), tmp_path)
    nothing, *counted = execute(elf, UNO, HZ, 1.0).output
    assert dict(zip(TABLE, (count - nothing for count in counted), strict=True)) == TABLE


ROUNDED = """
#include <avr/io.h>
#include "tinyet_common.h"
#include "tinyet_platform.h"
int main(void) {
  int32_t numbers[3]; /* a, b, bits; behind the last no bits */
  for (tinyet_platform_read(numbers, sizeof numbers); numbers[2] >= 0; tinyet_platform_read(numbers, sizeof numbers)) {
    const int32_t found[2] = {tinyet_high_mul(numbers[0], numbers[1]), tinyet_round_shift(numbers[0], numbers[2])};
    tinyet_platform_write(found, sizeof found);
  }
  for (volatile uint8_t i = 0; i < 200; i++) {
  }
  tinyet_platform_abort();
}
"""


def linked_alone(main: str, folder: Path) -> Path:
    """A firmware for the Uno's chip, of one C file and the platform."""
    source, firmware, elf = folder / "main.c", assets.path("firmware"), folder / "x.elf"
    source.write_text(main, encoding="utf-8")
    defines = ["-DTINYET_CLOCK_HZ=16000000u", "-Wl,--defsym=tinyet_stack_limit=0x700"]
    sources = [source, firmware / "platform" / "tinyet_simavr.c"]
    command: list[str | Path] = [
        "avr-gcc",
        f"-mmcu={UNO}",
        *FLAGS,
        *defines,
        f"-I{firmware / 'include'}",
        *sources,
        "-o",
        elf,
    ]
    subprocess.run(command, check=True, timeout=120)
    return elf


def test_the_rounding_rule(tmp_path: Path) -> None:
    """Its product and its shift are assembly on AVR: numbers of all sizes, and those at the ends of 32 bits."""
    build_runner()
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-(2**31), 2**31, 4000) >> rng.integers(0, 32, 4000) for _ in range(2))
    ends = np.array([0, 1, -1, 2**30, -(2**30), 2**31 - 1, -(2**31), -(2**31) + 1, 255, -65536])
    pairs = np.array(np.meshgrid(ends, ends)).reshape(2, -1)
    a, b = np.concatenate([a, pairs[0]]), np.concatenate([b, pairs[1]])
    bits = np.arange(a.size) % 32
    asked = np.concatenate([np.stack([a, b, bits], 1), [[0, 0, -1]]]).astype(np.int32)
    found = execute(linked_alone(ROUNDED, tmp_path), UNO, HZ, 60.0, asked.tobytes()).output
    wanted = np.stack([high_mul(a, b), round_shift(a, bits)], 1).astype(np.int32)
    assert np.array_equal(np.frombuffer(found, np.int32).reshape(-1, 2), wanted)


def test_the_runner_is_clean(tmp_path: Path) -> None:
    build_runner()
    source = assets.path("simavr") / "tinyet_simavr.c"
    warned = ["-Wall", "-Wextra", "-Werror", "-isystem", "/usr/include/simavr"]
    command: list[str | Path] = ["gcc", "-std=gnu11", "-O2", *warned, "-c", source, "-o", tmp_path / "x.o"]
    subprocess.run(command, check=True, timeout=120)


@pytest.fixture(scope="module")
def validated(tmp_path_factory: pytest.TempPathFactory) -> ValidationResult:
    build_runner()
    where = tmp_path_factory.mktemp("simavr") / "p"
    project = generate(small.program(channels=2), "arduino_uno", where, kind="arduino")
    data = (
        np.random.default_rng(1).uniform(-5, 5, (3, *project.program.inputs[0].shape[1:])).astype(np.float32)
    )
    return project.validate(data)


def test_a_project_is_validated(validated: ValidationResult) -> None:
    """By default in simavr, which is the board's only emulator, and without a build of Arduino's."""
    assert (validated.on, validated.count_unit, validated.bit_exact) == ("simavr", "cycles", True)
    assert validated.samples == 3
    assert validated.cycles is not None
    assert validated.instructions is None
    own = [layer.count or 0 for layer in validated.layers]
    assert all(own)
    assert 0 <= validated.cycles - sum(own) < 100
    assert 0 < (validated.stack_bytes or 0) < 512


def test_cycles_are_those_that_a_timer_counts() -> None:
    """On the chip itself, a timer of which ticks every 1024 cycles; the harness runs on one with more memory."""
    build_runner()
    nodes = [kernels.conv((8, 6, 3), 4, (3, 3)), kernels.conv((5, 6, 4), 0, (3, 3)), kernels.linear(64, 10)]
    graph, rng = kernels.side_by_side(nodes), np.random.default_rng(3)
    inputs = [costs.values(t, rng) for t in graph.inputs]
    timed = run_on_avr(graph, inputs, UNO)
    counted = kernels.run(graph, inputs, load_board("arduino_uno"), [PORTABLE], with_time=True)
    cycles = sum(time.cycles["avr5"] for time in counted.time)
    assert timed.cycles - 100 * len(counted.time) <= cycles <= timed.cycles + 1024
    assert sum(counted.counts) < cycles < 2 * sum(counted.counts)


def test_other_boards_have_no_chip(tmp_path: Path) -> None:
    with pytest.raises(EmulatorError, match="simavr has no chip"):
        open_device(load_board("microbit"), tmp_path / "x.elf", "simavr")


SHIFTED, BY_SHIFTS = 0.25, "_w4"
"""Largest error of a layer of int4 weights: sums are rounded by shifts, bit by bit, whose number follows from scales,
which are drawn from a wider range there; no part of a cost counts them."""


def drawn() -> list[tuple[Node, Kernel]]:
    """Of each kernel with a stated cost, a layer that is none of those that rates are fitted to; sums a tile of rows at
    a time are no layers of their own."""
    board = load_board("arduino_uno")
    table = cost.measured(cost.core_of(board.target))
    assert table is not None
    found: dict[str, tuple[Node, Kernel]] = {}
    for attrs, of_op in PORTABLE.kernels.items():
        for kernel in of_op if attrs is not RowSums else ():
            if kernel.symbol in table.kernels and kernel.symbol not in found:
                for node in costs.grid(attrs, kernel, board, costs.COMPARE, 1):
                    found[kernel.symbol] = node, kernel
    return list(found.values())


def test_stated_cycles() -> None:
    """Every kernel on a drawn layer of its own, many in a firmware: what it states is near what simavr counts."""
    build_runner()
    board, cases = load_board("arduino_uno"), drawn()
    assert len(cases) > 40
    stated = counted = 0
    for some in costs.firmwares(cases, board):
        measured, _ = run([(node, PORTABLE, kernel) for node, kernel in some], board)
        for step, count, time in zip(measured.deployment.steps, measured.counts, measured.time, strict=True):
            if count == 0:  # its output's bytes lie in the input
                continue
            symbol, own = step.choice.kernel.symbol, time.cycles["avr5"]
            limit = SHIFTED if symbol.endswith(BY_SHIFTS) else DRAWN_EACH
            said = compared(step, count, board, limit)
            assert said.cycles is not None
            assert symbol in BY_VALUES or abs(said.cycles / own - 1) <= limit, (
                f"{symbol}, {step.node.input(0).shape} to {step.node.outputs[0].shape}, {step.node.attrs}: "
                f"{said.cycles} cycles stated, {own} counted"
            )
            stated, counted = stated + said.cycles, counted + own
    assert abs(stated / counted - 1) <= ALL
