# SPDX-License-Identifier: Apache-2.0
"""A model of two layers, written by hand in the form of generated code, for tests of projects.

Input: int8 [8]. Layer 0: clamp(3 x - 5). Layer 1: sums of neighbours, clamped (output 0, int8 [4]) and their
mean (output 1, float32 [1]).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from tinyet import assets
from tinyet.emit.facts import ModelFacts, TensorFacts
from tinyet.ir import DType

NAME = "tiny"
SAMPLE = (-128, -1, 0, 1, 2, 33, 44, 127)

FACTS = ModelFacts(
    name=NAME,
    macro="TINY",
    hash="0123456789abcdef" * 4,
    arena_bytes=32,
    layers=2,
    inputs=(TensorFacts("x", DType.INT8, (1, 8), 8, 0, 0.25, 1),),
    outputs=(
        TensorFacts("pairs", DType.INT8, (1, 4), 4, 16, 0.5, -3),
        TensorFacts("mean", DType.FLOAT32, (1,), 4, 20, None, None),
    ),
    samples=(struct.pack("8b", *SAMPLE),),
)

_HEADER = """\
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TINY_H
#define TINY_H

#include "tinyet_common.h"

#define TINY_ARENA_BYTES 32u
#define TINY_NUM_LAYERS 2
#define TINY_NUM_INPUTS 1
#define TINY_NUM_OUTPUTS 2
#define TINY_INPUT_0_OFFSET 0u
#define TINY_INPUT_0_BYTES 8u
#define TINY_INPUT_0_COUNT 8u
#define TINY_INPUT_0_SCALE 0.25f
#define TINY_INPUT_0_ZERO_POINT 1
#define TINY_OUTPUT_0_OFFSET 16u
#define TINY_OUTPUT_0_BYTES 4u
#define TINY_OUTPUT_0_COUNT 4u
#define TINY_OUTPUT_0_SCALE 0.5f
#define TINY_OUTPUT_0_ZERO_POINT -3
#define TINY_OUTPUT_1_OFFSET 20u
#define TINY_OUTPUT_1_BYTES 4u
#define TINY_OUTPUT_1_COUNT 1u

extern uint8_t tiny_arena[TINY_ARENA_BYTES];

static inline int8_t *tiny_input_0(void) { return (int8_t *)(tiny_arena + TINY_INPUT_0_OFFSET); }
static inline const int8_t *tiny_output_0(void) {
  return (const int8_t *)(tiny_arena + TINY_OUTPUT_0_OFFSET);
}
static inline const float *tiny_output_1(void) {
  return (const float *)(const void *)(tiny_arena + TINY_OUTPUT_1_OFFSET);
}

tinyet_status tiny_run(void);

#endif
"""

_SOURCE = """\
/* SPDX-License-Identifier: Apache-2.0 */
#include "tiny.h"

uint8_t tiny_arena[TINY_ARENA_BYTES] TINYET_ALIGNED(16) TINYET_ARENA_PLACE;

static void scale(const int8_t *x, int8_t *y) {
  for (uint32_t i = 0u; i < 8u; i++) {
    y[i] = (int8_t)tinyet_clamp(3 * x[i] - 5, -128, 127);
  }
}

static void pairs(const int8_t *x, int8_t *y, float *mean) {
  float sum = 0.0f;
  for (uint32_t i = 0u; i < 4u; i++) {
    y[i] = (int8_t)tinyet_clamp(x[2u * i] + x[2u * i + 1u], -128, 127);
    sum += (float)y[i];
  }
  *mean = sum / 4.0f;
}

tinyet_status tiny_run(void) {
  uint8_t *const arena = tiny_arena;
  TINYET_LAYER_BEGIN(0u);
  scale((const int8_t *)arena, (int8_t *)(arena + 8));
  TINYET_LAYER_END(0u);
  TINYET_LAYER_BEGIN(1u);
  pairs((const int8_t *)(arena + 8), (int8_t *)(arena + 16), (float *)(void *)(arena + 20));
  TINYET_LAYER_END(1u);
  return TINYET_OK;
}
"""


def sources() -> dict[str, str]:
    """The model's C files with the part of the runtime they need."""
    common = (assets.path("firmware") / "include" / "tinyet_common.h").read_text(encoding="utf-8")
    return {"tiny.h": _HEADER, "tiny.c": _SOURCE, "tinyet_common.h": common}


def expected(sample: Sequence[int]) -> tuple[list[int], float]:
    """What the model computes, in Python."""
    middle = [max(-128, min(127, 3 * x - 5)) for x in sample]
    pairs = [max(-128, min(127, a + b)) for a, b in zip(middle[::2], middle[1::2], strict=True)]
    return pairs, sum(pairs) / 4
