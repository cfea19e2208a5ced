# SPDX-License-Identifier: Apache-2.0
"""RISC-V and Xtensa without an FPU: float arithmetic, a network through both kinds of project, the C library.

Operators are tested in test_operators.py and test_generated.py, the harness in test_harness.py, as on other boards.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import numpy as np
import pytest

import tinyet
from tests import small
from tests.calls.board import STRICT
from tests.ops.emulated import require_emulator
from tests.planned import check_planned
from tinyet.boards import Board, load_board
from tinyet.build.gcc import build_firmware
from tinyet.delegates import CMSIS_NN, CORTEX_M
from tinyet.device import qemu
from tinyet.emit.project import Kind
from tinyet.errors import UnsupportedOp

RISCV = "riscv32_virt"
BOARDS = (RISCV, "xtensa_lx60")

pytestmark = pytest.mark.emulated


@pytest.fixture(params=BOARDS)
def board(request: pytest.FixtureRequest) -> Board:
    require_emulator(request.param)
    return load_board(request.param)


_ARITHMETIC = r"""
#include <stdio.h>
#include <string.h>
#include <stdint.h>

static uint32_t state = 1u, hash = 0u;

static uint32_t next(void) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

static float number(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void add(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  hash = hash * 31u + (value != value ? 0x7FC00000u : bits);
}

int main(void) {
  static const uint32_t clear[] = {0xFFFFFFFFu, 0x83FFFFFFu, 0xBFFFFFFFu}, set[] = {0u, 0u, 0x20000000u};
  for (uint32_t i = 0u; i < PAIRS; i++) {
    const uint32_t x = next(), y = next();
    const float a = number((x & clear[i % 3u]) | set[i % 3u]), b = number((y & clear[i % 3u]) | set[i % 3u]);
    add(a + b);
    add(a - b);
    add(a * b);
    add(a / b);
    add((float)(int32_t)x);
    hash = hash * 31u + (uint32_t)(a < b) + 2u * (uint32_t)(a <= b) + 4u * (uint32_t)(a == b);
    const uint64_t wide = (uint64_t)x * y * (x ^ 0x9E3779B9u), part = ((uint64_t)y << 32 | x) >> y % 64u | 1u;
    const uint32_t small = y >> x % 32u | 1u;
    const int64_t both = (int64_t)wide / (int32_t)(y | 1u);
    hash = hash * 31u + (uint32_t)(wide >> 32) + (uint32_t)both + (uint32_t)(wide / part) + (uint32_t)(wide % part);
    hash = hash * 31u + x / small + x % small + (uint32_t)((int32_t)x / (int32_t)(y >> 16 | 1u));
    hash = hash * 31u + (uint32_t)(number(x & 0x4EFFFFFFu));
  }
  printf("%08lx\n", (unsigned long)hash);
  return 0;
}
"""
PAIRS = 6000


def test_float_arithmetic_without_an_fpu(board: Board, tmp_path: Path) -> None:
    """libgcc, and on Xtensa what it leaves out, against IEEE 754 as this machine has it: numbers of all sizes, also
    subnormal ones, and products that become subnormal; division of integers. Each kind of NaN is the same."""
    mask = 0xFFFFFFFF
    state, words = 1, []
    for _ in range(2 * PAIRS):
        state ^= (state << 13) & mask
        state ^= state >> 17
        state ^= (state << 5) & mask
        words.append(state)
    x, y = np.array(words, np.uint32).reshape(PAIRS, 2).T
    kind = np.arange(PAIRS) % 3
    clear = np.array([0xFFFFFFFF, 0x83FFFFFF, 0xBFFFFFFF], np.uint32)[kind]
    set_ = np.array([0, 0, 0x20000000], np.uint32)[kind]
    a, b = (((bits & clear) | set_).view(np.float32) for bits in (x, y))
    with np.errstate(all="ignore"):
        results = [a + b, a - b, a * b, a / b, x.view(np.int32).astype(np.float32)]
    subnormal = [np.count_nonzero((r != 0) & (np.abs(r) < 2.0**-126)) for r in results]
    assert min(subnormal[:4]) > 10
    order = (a < b) + 2 * (a <= b) + 4 * (a == b)
    columns = [np.where(np.isnan(r), np.uint32(0x7FC00000), r.view(np.uint32)) for r in results]
    integers = [[_integers(p, q) for p, q in zip(x.tolist(), y.tolist(), strict=True)]]
    rows = np.concatenate([np.stack([*columns, order], axis=1).astype(np.uint32), *integers], axis=1)
    wanted = 0
    for row in rows.reshape(-1).tolist():
        wanted = (wanted * 31 + row) & mask
    assert _printed(_ARITHMETIC.replace("PAIRS", f"{PAIRS}u"), board, tmp_path) == f"{wanted:08x}"


def _integers(x: int, y: int) -> list[int]:
    """What the program adds for the integers of a pair, modulo 2^32."""

    def divided(a: int, b: int) -> int:
        """Towards zero, as C does."""
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)

    def signed(a: int, bits: int) -> int:
        return a - (1 << bits) if a >> (bits - 1) else a

    wide = x * y * (x ^ 0x9E3779B9) % (1 << 64)
    part = (y << 32 | x) >> y % 64 | 1
    both = divided(signed(wide, 64), signed(y | 1, 32))
    small = y >> x % 32 | 1
    exponent = (x >> 23 & 0x9D) - 127
    significand = x & 0x7FFFFF | 0x800000
    whole = 0 if exponent < 0 else significand << exponent >> 23
    values = (
        (wide >> 32) + both + wide // part + wide % part,
        x // small + x % small + divided(signed(x, 32), y >> 16 | 1),
        whole,
    )
    return [value % (1 << 32) for value in values]


def _printed(source: str, board: Board, directory: Path) -> str:
    """The first line that a program prints on a board."""
    (directory / "main.c").write_text(source)
    elf = build_firmware(board, [directory / "main.c"], [], directory / "b", harness=False, flags=STRICT)
    link = qemu.start(board, elf)
    try:
        text = b""
        deadline = time.monotonic() + 30
        while b"\n" not in text:
            text += link.read(deadline)
    finally:
        link.close()
    return text.decode().splitlines()[0]


def test_a_network_through_both_kinds_of_project(board: Board, tmp_path: Path) -> None:
    program = small.program()
    counts = set()
    kinds: tuple[Kind, ...] = ("cmake", "platformio")
    for kind in kinds:
        if kind == "cmake" and shutil.which("cmake") is None:
            pytest.skip("cmake is not installed")
        project = tinyet.generate(program, board, tmp_path / kind, kind=kind)
        size = project.build()
        result = project.validate(small.images(3), on="qemu", sqnr_samples=0)
        assert result.samples == 3
        assert result.bit_exact, result.first_mismatch
        assert result.count_unit == "instructions"
        assert result.arena_bytes == project.deployment.plan.arena_bytes
        assert result.stack_bytes is not None
        assert 0 < result.stack_bytes < size.stack
        check_planned(project, size)
        assert result.instructions is not None
        counts.add(result.instructions)
    # The compiler has the same options in both.
    assert len(counts) == 1


_USES_THE_LIBRARY = r"""
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Thread_local int begun = 5;
_Thread_local int cleared;
static const char *word = "word";
static int constructed;
__attribute__((constructor)) static void construct(void) { constructed = begun; }

int main(void) {
  char *heap = malloc(1000);
  strcpy(heap, word);
  char *more = realloc(heap, 100000);
  errno = 0;
  (void)strtol("99999999999999", NULL, 10);
  const int refused = errno == ERANGE;
  printf("%s %d %d %d %d %.3f\n", more, begun, cleared, constructed, refused, (double)sqrtf(2.0f));
  free(more);
  return 0;
}
"""


def test_the_c_library(tmp_path: Path) -> None:
    """What the startup code owes to picolibc: initialized and cleared variables, those of threads, a heap, a stream."""
    require_emulator(RISCV)
    assert _printed(_USES_THE_LIBRARY, load_board(RISCV), tmp_path) == "word 5 0 5 1 1.414"


def test_kernels_for_arm_are_refused(tmp_path: Path) -> None:
    """A delegate says why, and the portable kernels take over, unless it was required."""
    program = small.program()
    for delegate in (CORTEX_M, CMSIS_NN):
        project = tinyet.generate(program, RISCV, tmp_path / delegate.name, delegates=[delegate])
        assert {step.choice.kernel.delegate for step in project.deployment.steps} == {"portable"}
        with pytest.raises(UnsupportedOp, match="rv32imac is not an Arm core"):
            tinyet.generate(program, RISCV, tmp_path / "none", delegates=[delegate], require_delegate=True)
