# SPDX-License-Identifier: Apache-2.0
"""Printed sums and patches for Helium: what they refuse, and on an emulated Cortex-M55 the same as their twins in C,
general and vector registers as they were, the instructions that they say; one firmware for all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.calls import board
from tests.calls.board import STRICT, Image
from tests.calls.emulated import skip_missing
from tests.tiles import harness
from tests.tiles.harness import c_array
from tinyet.assets import kernel_sources
from tinyet.build.gcc import build_firmware
from tinyet.device.device import open_device
from tinyet.errors import InternalError
from tinyet.tiles import helium_patches
from tinyet.tiles.helium import Sums, files
from tinyet.tiles.helium_patches import Patches

CHANNELS = 8
SUMS = (
    Sums(1, 1, 1, 0, 0, 8, pairs=4),
    Sums(1, 1, 2, 0, 0, 24),
    Sums(1, 1, 4, 0, 0, 64, pairs=2),
    Sums(1, 1, 22, 0, 0, 352),
    Sums(1, 1, 40, 0, 0, 640),  # pointers move
    Sums(3, 3, 1, 160, 16, 16),
    Sums(3, 3, 2, 640, 32, 64),  # a stride of two
    Sums(3, 1, 3, 1200, 0, 12),
    Sums(2, 5, 1, 4400, 16, 16),
    Sums(1, 1, 6, 0, 0, 96, pairs=2, held=True),
    Sums(1, 1, 12, 0, 0, 640, held=True),  # pointers move
    Sums(3, 3, 2, 640, 32, 32, held=True),
    Sums(3, 3, 1, 320, 16, 32, pairs=2, held=True),  # a stride of two: two chunks of columns
    Sums(1, 5, 1, 640, 16, 16, held=True),
)
"""Inputs that all stay in registers, that all but one do, that pixels share, that are held for all channels; near and
far."""

PATCHES = (
    Patches(1, 5, 5, 1, 16),
    Patches(3, 9, 300, 6, 32),
    Patches(10, 4, 12, 2, 48),
    Patches(2, 40, 5000, 20, 80),  # several vectors; rows far apart
    Patches(11, 16, 70, 127, 176),
)
RUN = 3
"""Pixels of a call."""

TEXT = """
%(includes)s

%(arrays)s

typedef void (*sums_function)(const int8_t *weights, const int8_t *pixels, int32_t *sums, const int32_t *end);

__attribute__((naked)) static void nothing(const int8_t *w, const int8_t *x, int32_t *s, const int32_t *e) {
  __asm__ volatile("bx.n lr");
}

/* Whether the function leaves r4 ... r11 and d8 ... d15 as they were, with values of their own in them. */
__attribute__((naked, noinline)) static uint32_t guarded(const int8_t *w, const int8_t *x, int32_t *s, const int32_t *e,
                                                         sums_function f) {
  __asm__ volatile(
      ".syntax unified\\n"
      "push {r4-r11, lr}\\n"
      "vpush {d8-d15}\\n"
      "ldr r12, [sp, #100]\\n"
%(poison)s
      "blx r12\\n"
      "movs r0, #0\\n"
%(check)s
      "vpop {d8-d15}\\n"
      "pop {r4-r11, pc}\\n");
}

static int32_t sums[%(sums)d][4 * %(channels)d + 2];
static int8_t copies[%(copies)d][1024];

static const struct {
  sums_function function;
  const void *first;
  void *sums;
  const void *end;
} entries[] = {%(entries)s};

static tinyet_status run(void) {
  memset(sums, 0x5a, sizeof sums);
  for (uint32_t i = 0; i < %(count)du; i++) {
    TINYET_LAYER_BEGIN(i);
    wrong[i] = guarded((const int8_t *)entries[i].first, (const int8_t *)pixels, (int32_t *)entries[i].sums,
                       (const int32_t *)entries[i].end, entries[i].function);
    TINYET_LAYER_END(i);
  }
%(twins)s
  return TINYET_OK;
}
"""


def stream(rng: np.random.Generator, sums: Sums) -> np.ndarray:
    """Words of biases and weights; where inputs are held, with the steps between them."""
    count = CHANNELS // 2 * 8
    words = rng.integers(-(2**31), 2**31, count * (1 + sums.vectors))
    if not sums.held:
        return words
    parts = np.split(words, [count * (1 + sums.columns * (i + 1)) for i in range(len(sums.advances) - 1)])
    return np.concatenate([np.append(part, step) for part, step in zip(parts, sums.advances, strict=True)])


def model(rng: np.random.Generator) -> str:
    """Layer 0 calls an empty function, layer i + 1 the sums i, those behind them the patches. The output: a word for
    each, 0 where all is right."""
    arrays = [c_array("int32_t", "pixels", rng.integers(-(2**31), 2**31, 4096))]
    entries, twins = ["{nothing, NULL, NULL, NULL}"], []
    for i, each in enumerate(SUMS, 1):
        arrays.append(c_array("int32_t", f"weights_{i}", stream(rng, each)))
        entries.append(f"{{{each.name}, weights_{i}, sums[{i}] + 1, sums[{i}] + {1 + 4 * CHANNELS}}}")
        sizes = [len(chunk) for chunk in each.chunks] if each.held else []
        shape = (
            f"{each.rows}, {each.columns}, {each.depth}, {each.row}, {each.column}, {each.step}, {len(sizes)}"
        )
        twins += [
            "  {",
            "    static int32_t wanted[sizeof sums[0] / 4];",
            f"    static const int32_t taps[] = {{{', '.join(map(str, (*each.taps, *sizes)))}}};",
            f"    const tinyet_sums_shape_mve shape = {{{shape}}};",
            "    memset(wanted, 0x5a, sizeof wanted);",
            f"    tinyet_sums_mve_twin((const int8_t *)weights_{i}, (const int8_t *)pixels, wanted + 1,",
            f"                         wanted + 1 + {4 * CHANNELS}, taps, &shape);",
            f"    wrong[{i}] |= memcmp(wanted, sums[{i}], sizeof wanted) != 0 ? 2u : 0u;",
            "  }",
        ]
    for i, patches in enumerate(PATCHES):
        entries.append(f"{{(sums_function)(void (*)(void)){patches.name}, copies[{i}], (void *){RUN}, NULL}}")
        numbers = f"{patches.rows}, {patches.bytes}, {patches.row}, {patches.step}, {patches.patch}"
        # Behind a pixel's rows lies what its last vector has more.
        size = patches.rows * patches.bytes
        twins += [
            "  {",
            "    static int8_t wanted[sizeof copies[0]];",
            f"    const tinyet_patches_shape_mve shape = {{{numbers}}};",
            "    memset(wanted, 0, sizeof wanted);",
            f"    tinyet_patches_mve_twin(wanted, (const int8_t *)pixels, {RUN}, &shape);",
            f"    for (int32_t p = 0; p < {RUN}; p++) {{",
            f"      const int32_t at = p * {patches.patch};",
            f"      wrong[{len(SUMS) + 1 + i}] |= memcmp(wanted + at, copies[{i}] + at,",
            f"                       {size}) != 0 ? 2u : 0u;",
            "    }",
            "  }",
        ]
    core, vector = range(4, 12), range(16, 32)
    poison = [f"mov r{r}, #{0x51 + r}\\n" for r in core] + [f"vmov s{r}, r{4 + r % 8}\\n" for r in vector]
    differs = 'it ne\\n" "movne r0, #1\\n'
    check = [f'cmp r{r}, #{0x51 + r}\\n" "{differs}' for r in core]
    check += [f'vmov r1, s{r}\\n" "cmp r1, r{4 + r % 8}\\n" "{differs}' for r in vector]
    text = TEXT % {
        "includes": "\n".join(f'#include "{each.name}.h"' for each in (*SUMS, *PATCHES)),
        "arrays": "\n".join(arrays),
        "entries": ", ".join(entries),
        "poison": "\n".join(f'      "{line}"' for line in poison),
        "check": "\n".join(f'      "{line}"' for line in check),
        "count": len(entries),
        "sums": len(SUMS) + 1,
        "copies": len(PATCHES),
        "channels": CHANNELS,
        "twins": "\n".join(twins),
    }
    return harness.model("sums", len(entries), text)


@pytest.mark.emulated
@pytest.mark.parametrize("image", [board.M55, board.M55_CLANG], ids=str)
def test_sums_registers_and_instructions(image: Image, tmp_path: Path) -> None:
    skip_missing([image])
    printed = [*map(files, SUMS), *map(helium_patches.files, PATCHES)]
    for name, text in (item for each in printed for item in each.items()):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "model.c").write_text(model(np.random.default_rng(3)), encoding="utf-8")
    kernel_sources.write(tmp_path, ["tinyet_conv2d_s8_4x2_mve.c"])
    flags = (*STRICT, "-Wno-unused-parameter", "-Wno-cast-align")
    elf = build_firmware(
        image.board,
        sorted(tmp_path.glob("*.c")),
        [tmp_path],
        tmp_path / "build",
        flags=flags,
        compiler=image.compiler,
    )
    with open_device(image.board, elf, "qemu") as device:
        result = device.run([bytes(4)])
    wrong = np.frombuffer(result.outputs[0], np.uint32)[1:]
    stated = {each.name: each.instructions(CHANNELS) for each in SUMS}
    stated |= {each.name: each.instructions(1, RUN) for each in PATCHES}
    assert {name: w for name, w in zip(stated, wrong, strict=True) if w} == {}
    nothing, *counts = result.layer_counts
    # The empty function returns by an instruction of its own.
    assert {name: count - nothing + 1 for name, count in zip(stated, counts, strict=True)} == stated


def test_what_there_is_not() -> None:
    with pytest.raises(InternalError):
        Sums(3, 3, 20, 1000, 320, 320)
    with pytest.raises(InternalError):
        Sums(1, 1, 1, 0, 0, 6)
    with pytest.raises(InternalError):
        Sums(1, 1, 1, 0, 0, 8, pairs=3).instructions(CHANNELS)
    with pytest.raises(InternalError):
        Patches(12, 4, 12, 2, 48)
    with pytest.raises(InternalError):
        Patches(3, 9, 300, 128, 32)
