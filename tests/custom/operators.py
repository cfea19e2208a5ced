# SPDX-License-Identifier: Apache-2.0
"""Operators for tests: as a user would register them, in a file of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

import tinyet
from tinyet.custom import Argument, CallSite
from tinyet.ir import Array
from tinyet.numerics import quantize_multiplier, requantize


@torch.library.custom_op("tests::windowed_peak", mutates_args=())
def windowed_peak(x: torch.Tensor, window: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    """The largest element of each frame of sizes[0] elements, each element times its place's weight."""
    frames = x.reshape(x.shape[0], -1, sizes[0])
    return (frames * window).amax(2)


@windowed_peak.register_fake
def _(x: torch.Tensor, _window: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    return x.new_empty(x.shape[0], x.shape[1] // sizes[0])


def frame_of(site: CallSite) -> int:
    sizes = site.params["sizes"]
    assert isinstance(sizes, tuple)
    assert isinstance(sizes[0], int)
    return sizes[0]


def infer(site: CallSite) -> Sequence[int]:
    return site.x.shape[0], site.x.shape[1] // frame_of(site)


def peak_f32(site: CallSite, inputs: Sequence[Array | None]) -> Array:
    x, window = (np.asarray(a, np.float32) for a in inputs)
    frames = x.reshape(x.shape[0], -1, frame_of(site)) * window
    return np.asarray(frames.max(axis=2), np.float32)


def arguments_f32(site: CallSite) -> Mapping[str, Argument]:
    return {"count": site.out.count, "size": frame_of(site)}


PEAK_F32 = """
void peak_f32(const float *x, const float *window, float *out, void *scratch, int32_t count, int32_t size) {
  float *const products = (float *)scratch;
  for (int32_t i = 0; i < count; i++) {
    for (int32_t j = 0; j < size; j++) {
      products[j] = x[i * size + j] * window[j];
    }
    float best = products[0];
    for (int32_t j = 1; j < size; j++) {
      best = products[j] > best ? products[j] : best;
    }
    out[i] = best;
  }
}
"""


def weights(site: CallSite) -> Array:
    """The window in 1/64."""
    window = site.inputs[1]
    assert window is not None
    assert window.data is not None
    return np.round(window.data.astype(np.float64) * 64).astype(np.int16)


def peak_s8(site: CallSite, inputs: Sequence[Array | None]) -> Array:
    x = np.asarray(inputs[0], np.int64) - site.x.zero_point
    best = (x.reshape(x.shape[0], -1, frame_of(site)) * weights(site).astype(np.int64)).max(axis=2)
    factor = quantize_multiplier(site.x.scale / 64 / site.out.scale)
    out = requantize(best, factor.multiplier, factor.shift) + site.out.zero_point
    return np.clip(out, -128, 127).astype(np.int8)


def arguments_s8(site: CallSite) -> Mapping[str, Argument]:
    factor = quantize_multiplier(site.x.scale / 64 / site.out.scale)
    return {
        "count": site.out.count,
        "size": frame_of(site),
        "zero_points": np.array([site.x.zero_point, site.out.zero_point], np.int32),
        "multiplier": factor.multiplier,
        "shift": factor.shift,
        "window": weights(site),
    }


PEAK_S8 = """
tinyet_status peak_s8(const int8_t *x, int8_t *out, int32_t count, int32_t size, const int32_t *zero_points,
                      int32_t multiplier, int32_t shift, const int16_t *window) {
  if (size < 1) {
    return -1;
  }
  for (int32_t i = 0; i < count; i++) {
    int32_t best = INT32_MIN;
    for (int32_t j = 0; j < size; j++) {
      const int32_t product = (x[i * size + j] - zero_points[0]) * window[j];
      best = product > best ? product : best;
    }
    const int32_t scaled = tinyet_requantize(best, multiplier, shift) + zero_points[1];
    out[i] = (int8_t)tinyet_clamp(scaled, -128, 127);
  }
  return TINYET_OK;
}
"""


def wants_weights_of_16_bits(site: CallSite) -> str | None:
    return "the window leaves 9 bits" if np.abs(weights(site)).max() > 511 else None


tinyet.custom_op(
    windowed_peak,
    infer=infer,
    float32=tinyet.Form(
        peak_f32, "peak_f32", PEAK_F32, arguments_f32, scratch=lambda site: 4 * frame_of(site)
    ),
    int8=tinyet.Form(peak_s8, "peak_s8", PEAK_S8, arguments_s8, inputs=(0,), check=wants_weights_of_16_bits),
    name="peak",
    macs=lambda site: site.x.count,
)


@torch.library.custom_op("tests::halve", mutates_args=())
def halve(x: torch.Tensor) -> torch.Tensor:
    return x * 0.5


@halve.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


# Float only: in a quantized model it stays in float32.
tinyet.custom_op(
    torch.ops.tests.halve.default,
    infer=lambda site: site.x.shape,
    float32=tinyet.Form(
        lambda _site, inputs: np.asarray(np.asarray(inputs[0], np.float32) * np.float32(0.5)),
        "halve_f32",
        "void halve_f32(const float *x, float *out, int32_t count, float factor) {\n"
        "  for (int32_t i = 0; i < count; i++) {\n    out[i] = x[i] * factor;\n  }\n}\n",
        lambda site: {"count": site.x.count, "factor": 0.5},
    ),
    inplace=(0,),
    pointwise=True,
)
