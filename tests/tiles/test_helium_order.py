# SPDX-License-Identifier: Apache-2.0
"""The order of code for Helium: what its lines are decoded to, which of them stay behind which, and that loops are in
the order that costs the fewest cycles."""

from __future__ import annotations

import struct
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.calls import board
from tests.calls.emulated import skip_missing
from tinyet.tiles.helium import Sums
from tinyet.tiles.helium_blocks import Blocks
from tinyet.tiles.helium_blocks_s16 import Blocks16
from tinyet.tiles.helium_depthwise import Channels
from tinyet.tiles.helium_depthwise_s16 import Channels16
from tinyet.tiles.helium_linear import Products, Rounding, Rounding16
from tinyet.tiles.helium_order import decoded, listed, loads_between
from tinyet.tiles.helium_straight import Straight
from tinyet.timing.instruction import Instruction
from tinyet.timing.pipelines import PIPELINES
from tinyet.timing.thumb import decode, is_wide
from tinyet.timing.vectors import SINGLE

_END = ("bne", "le ", "cmp")
_VPST = "vpst"
SUMS = Sums(1, 1, 2, 0, 0, 32)
SHIFTS = (9, 10, 11, 8, 10, 12, 9, 10)
TURNS = {
    "sums": SUMS.turn,
    "far sums": Sums(1, 1, 40, 0, 0, 640).turn,
    "shared sums": Sums(3, 3, 1, 320, 16, 16).turn,
    "sums of int16": Sums(1, 1, 2, 0, 0, 32, bits=16).turn,
    "products": Products(8).turn,
    "outputs": Rounding(False, True, True, False).turn,
    "outputs of int16": Rounding16(4, True, True, True).turn,
    "blocks": Blocks(SUMS, False, True, True, False, 2).turn,
    "unsigned blocks": Blocks(SUMS, True, False, False, True, 2).turn,
    "blocks of int16": Blocks16(Sums(1, 1, 2, 0, 0, 32, bits=16, pixels=3), 4, True, True, 2).turn,
    "straight": Straight(SUMS, SHIFTS, False, -9, -50, None).rounding,
    "depthwise": Channels(1, 3, 64, True, False, False, True, True).turn,
    "depthwise, folded": Channels(2, 1, 64, True, True, False, False, False).turn,
    "depthwise of int16": Channels16(1, 4, 64, 3, True, False, False).turn,
}


def code(turn: list[str]) -> list[str]:
    return [line for line in turn if not line.startswith(_END)]


def assembled(lines: list[str], where: Path) -> list[Instruction]:
    text = "\n".join((".syntax unified", ".thumb", *lines, ""))
    gcc = ("arm-none-eabi-gcc", "-mcpu=cortex-m55", "-mfloat-abi=hard", "-mthumb", "-x", "assembler")
    subprocess.run((*gcc, "-c", "-", "-o", where / "a.o"), input=text, text=True, check=True)
    copied = ("arm-none-eabi-objcopy", "-O", "binary", where / "a.o", where / "a.bin")
    subprocess.run(copied, check=True)
    halves = [half for (half,) in struct.iter_unpack("<H", (where / "a.bin").read_bytes())]
    found, at = [], 0
    while at < len(halves):
        wide = is_wide(halves[at])
        found.append(decode(*halves[at : at + 1 + wide]))
        at += 1 + wide
    return found


def registers(what: Instruction) -> tuple[set[int], set[int]]:
    """(read, written), of vectors their first quarters."""

    def first(numbers: set[int]) -> set[int]:
        return {n for n in numbers if n < SINGLE or n % 4 == 0}

    reads = {*what.operands, *what.address, *what.shifted, *what.late}
    return first(reads), first({*what.results, *what.updated})


@pytest.mark.parametrize("name", TURNS)
def test_lines_are_what_the_assembler_makes_of_them(name: str, tmp_path: Path) -> None:
    skip_missing([board.M55])
    lines = code(TURNS[name])
    for line, real in zip(lines, assembled(lines, tmp_path), strict=True):
        if line.startswith(_VPST):
            continue
        ours = decoded(line)
        said = ours.kind, ours.registers, registers(ours)
        assert said == (real.kind, real.registers, registers(real)), line


def test_what_stays_behind_what() -> None:
    lines = (
        *("ldm.w r5!, {r0, r2}", "vldrb.u8 q2, [r0, q5]", "vmladav.s8 r0, q2, q0", "stm.w sp, {r0, r2}"),
        *("vldrw.32 q4, [sp, #0]", "vctp.16 r3", "sub.w r3, r3, #8", "vpstt", "vstrht.16 q4, [r1], #16"),
        *("vstrht.16 q2, [r1], #16", "vldrb.u8 q2, [r2, q5]"),
    )
    order = listed(lines)
    at = {line: order.index(line) for line in lines}
    assert Counter(order) == Counter(lines)
    assert [line for line in order if "sp" in line] == ["stm.w sp, {r0, r2}", "vldrw.32 q4, [sp, #0]"]
    assert at["vmladav.s8 r0, q2, q0"] < at["stm.w sp, {r0, r2}"]
    assert at["vctp.16 r3"] < at["sub.w r3, r3, #8"]
    assert at["vctp.16 r3"] < at["vpstt"] == at["vstrht.16 q4, [r1], #16"] - 1
    assert at["vpstt"] + 2 == at["vstrht.16 q2, [r1], #16"] < at["vldrb.u8 q2, [r2, q5]"]


def test_loads_alternate_with_products() -> None:
    weights = [f"vldrw.32 q{q}, [r3], #16" for q in (6, 7)]
    products = [f"vmladava.s8 r{r}, q0, q{6 + r // 8}" for r in (0, 2, 8, 10)]
    order = loads_between(["ldm.w r3!, {r0, r2, r8, r10}", *weights, *products])
    assert order[1:] == [weights[0], *products[:2], weights[1], *products[2:]]


def test_loads_wait_for_what_reads_their_register() -> None:
    lines = ["vmladava.s8 r0, q0, q6", "vldrw.32 q6, [r3], #16", "vldrw.32 q7, [r3], #16"]
    lines.append("vmladava.s8 r2, q7, q6")
    assert loads_between(lines) == lines


@pytest.mark.parametrize(
    ("turn", "cycles"),
    [
        (Sums(1, 1, 1, 0, 0, 16).turn, (24, 26)),
        (SUMS.turn, (40, 42)),
        (Sums(3, 3, 1, 320, 16, 32, held=True).turn, (40, 42)),
        (Products(1).turn, (24, 26)),
        (Channels(4, 1, 24, True, True, True, False, False, tiles=5).turn, (215, 217)),
        (Channels(2, 1, 24, True, True, False, False, False, tiles=5).turn, (233, 239)),
    ],
)
def test_cycles_of_a_turn(turn: list[str], cycles: tuple[int, int]) -> None:
    """On Cortex-M55 and M85, without the end of the loop: eight products beside LDM and STM are 24 at least."""
    instructions = list(map(decoded, code(turn)))
    found = [PIPELINES[core].straight(instructions, instructions) for core in ("cortex-m55", "cortex-m85")]
    assert all(ours <= most for ours, most in zip(found, cycles, strict=True)), found
