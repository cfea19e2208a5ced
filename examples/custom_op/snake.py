# SPDX-License-Identifier: Apache-2.0
"""The snake activation, x + sin(alpha * x)^2 / alpha, as an operator of our own: all that tinyet must know.

Import it, or name it: `tinyet --plugin examples/custom_op/snake.py compile examples/custom_op/model.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

import tinyet
from tinyet.custom import Argument, CallSite
from tinyet.ir import Array
from tinyet.numerics import dequantize, float32, quantize

# ---------------------------------------------------------------- in PyTorch


@torch.library.custom_op("examples::snake", mutates_args=())
def snake(x: torch.Tensor, alpha: float) -> torch.Tensor:
    return x + torch.sin(alpha * x) ** 2 / alpha


@snake.register_fake
def _(x: torch.Tensor, _alpha: float) -> torch.Tensor:
    return torch.empty_like(x)


# ---------------------------------------------------------------- float32


def snake_f32(site: CallSite, inputs: Sequence[Array | None]) -> Array:
    """The operations of the C function, in its order: that makes them equal to the last bit."""
    x = np.asarray(inputs[0], np.float32)
    alpha = np.float32(site.params["alpha"])
    wave = float32.sin(alpha * x)
    return np.asarray(x + wave * wave / alpha, np.float32)


FLOAT_C = """
#include "tinyet_math.h"

void snake_f32(const float *x, float *out, int32_t count, float alpha) {
  for (int32_t i = 0; i < count; i++) {
    const float wave = tinyet_sinf(alpha * x[i]);
    out[i] = x[i] + wave * wave / alpha;
  }
}
"""


def float_arguments(site: CallSite) -> Mapping[str, Argument]:
    return {"count": site.x.count, "alpha": np.float32(site.params["alpha"])}


# ---------------------------------------------------------------- int8


def table(site: CallSite) -> Array:
    """The result for each of the 256 values of an int8, in the order of their bytes: 0 … 127, -128 … -1."""
    every = np.arange(256).astype(np.uint8).view(np.int8)
    assert site.x.quant is not None
    real = snake_f32(site, [dequantize(every, site.x.quant)])
    return quantize(real, site.out.type)


def snake_s8(site: CallSite, inputs: Sequence[Array | None]) -> Array:
    x = np.asarray(inputs[0], np.int8)
    return table(site)[x.view(np.uint8)]


INT8_C = """
void snake_s8(const int8_t *x, int8_t *out, int32_t count, const TINYET_ROM int8_t *table) {
  for (int32_t i = 0; i < count; i++) {
    out[i] = table[(uint8_t)x[i]];
  }
}
"""


def int8_arguments(site: CallSite) -> Mapping[str, Argument]:
    return {"count": site.x.count, "table": table(site)}


# ---------------------------------------------------------------- all together

tinyet.custom_op(
    snake,
    summary="x + sin(alpha * x)^2 / alpha",
    infer=lambda site: site.x.shape,
    float32=tinyet.Form(snake_f32, "snake_f32", FLOAT_C, float_arguments),
    int8=tinyet.Form(snake_s8, "snake_s8", INT8_C, int8_arguments),
    inplace=(0,),
    pointwise=True,
)
