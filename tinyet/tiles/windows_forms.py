# SPDX-License-Identifier: Apache-2.0
"""Which form the function of depthwise output rows has for a layer (windows_code.py): all are tried, but for those that
are dearer than another one whatever registers they get."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

from tinyet.errors import InternalError
from tinyet.tiles.core import ARMV7E_M
from tinyet.tiles.nest import blocks_of
from tinyet.tiles.operation import branch_if_unequal
from tinyet.tiles.windows import Windows
from tinyet.tiles.windows_code import ROWS, Code, code_of, function_of
from tinyet.timing.cores import CORES

LARGEST_BLOCK = 8
"""Outputs at a time, at most."""
LARGEST_KEPT = 1024
"""Bytes of code that an STM32F4's flash keeps."""
_M4 = "cortex-m4"
_ROWS = 4
"""For which forms are compared."""
_CODE_OF_CYCLES = 8
"""Percent of code that a percent of cycles is worth."""


def best(windows: Windows) -> Windows:
    """The same by blocks, a loop over kernel rows or none, and an order of products that take the fewest cycles on
    Cortex-M4, where a percent of them is worth eight percent of code; of no more code than a flash keeps, if there are
    such."""
    form = _best(replace(windows, channels=1))
    return replace(windows, block=form.block, turn=form.turn, by_taps=form.by_taps)


@cache
def _best(windows: Windows) -> Windows:
    """Of a single channel, for all numbers of them; of forms of one price the first."""
    codes: list[Code] = []
    for form in forms(windows):
        try:
            codes.append(code_of(form))
        except InternalError:
            continue
    small = [code for code in codes if code.bytes <= LARGEST_KEPT]
    large = [code for code in codes if code.bytes > LARGEST_KEPT]
    found = _cheapest(small) or _cheapest(large)
    if found is None:
        raise InternalError(f"{windows}: no form of it fits the core")
    return found.w


def _cheapest(codes: Sequence[Code]) -> Code | None:
    """Of those that fit the core; of several of one price the first."""
    found: list[tuple[int, int]] = []
    for least, number in sorted((_price(code, least_cycles(code)), i) for i, code in enumerate(codes)):
        if found and least > min(found)[0]:
            break
        try:
            work = function_of(codes[number]).work(_M4, _ROWS)
        except InternalError:
            continue
        found.append((_price(codes[number], work.cycles), number))
    return codes[min(found)[1]] if found else None


def _price(code: Code, cycles: int) -> int:
    return code.bytes * int(cycles**_CODE_OF_CYCLES)


def least_cycles(code: Code) -> int:
    """Whatever registers it gets: one an instruction, and what it takes to go back in a loop."""
    back = CORES[_M4].refill(branch_if_unequal(ROWS).timed(ARMV7E_M, {}))
    blocks = blocks_of(len(code.found), code.loops, {**code.turns, ROWS: _ROWS})
    ends = {loop.last for loop in code.loops}
    return sum(
        times * (last + 1 - first + back * (taken and last in ends))
        for (first, last, taken), times in blocks.items()
    )


def forms(windows: Windows) -> Iterator[Windows]:
    longest = max(run.count for run in windows.runs)
    turns = [n for n in range(1, windows.kernel_rows + 1) if windows.kernel_rows % n == 0]
    for block in range(1, min(LARGEST_BLOCK, longest) + 1):
        if block * windows.between % 2 and block < longest:
            continue
        for turn in {turns[0], turns[-1]}:
            # Of one output both orders are the same.
            for by_taps in (False, True)[: min(block, 2)]:
                yield replace(windows, block=block, turn=turn, by_taps=by_taps)
