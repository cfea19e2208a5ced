# SPDX-License-Identifier: Apache-2.0
"""Convolutions of one group and fully connected layers with int16 activations for Helium, whose sums have 64 bits
(tinyet_wide_sums_mve.h)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d import Geometry, geometry
from tinyet.delegates.cortex_m.conv2d_mve import no_helium, vectors
from tinyet.ir import Array, DType, Node
from tinyet.numerics import Int64, clamp_range, reduced_multiplier
from tinyet.ops.linear import Linear
from tinyet.ops.shared import counting
from tinyet.ops.shared.access_orders import by_vectors, by_window_pixels
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.convolution import attrs_of
from tinyet.ops.shared.counting import Parts
from tinyet.ops.shared.factors import has_int32_accumulator, output_factors
from tinyet.opset import Call, Constant, CostModel, FieldValue, Kernel, Pointer, Struct, library_call

CONV2D, LINEAR = "tinyet_conv2d_s16_wide_mve", "tinyet_linear_s16_wide_mve"
HEADERS = ("tinyet_dsp.h", "tinyet_mve.h", "tinyet_wide_sums_mve.h")
OUTPUTS, EIGHT = 4, 8
SIZES = (
    *("batch", "in_h", "in_w", "in_c", "out_h", "out_w"),
    *("kernel_h", "kernel_w", "stride_h", "stride_w", "dilation_h", "dilation_w", "pad_top", "pad_left"),
)


def refuse(node: Node, target: Target) -> str | None:
    if (reason := no_helium(target)) is not None:
        return reason
    if not isinstance(node.attrs, Linear) and attrs_of(node).groups != 1:
        return "only one group"
    if node.input(1).dtype is not DType.INT8:
        return "only weights of int8"
    return "sums have 32 bits" if has_int32_accumulator(node) else None


def matrix(node: Node) -> Array:
    """The weights, (outputs, depth)."""
    return node.input(1).array.reshape(node.input(1).shape[0], -1)


def stream(node: Node) -> Array:
    """The stream of tinyet_wide_sums_mve.h, int32."""
    weights, bias = matrix(node), node.optional_input(2)
    (count, depth), (multiplier, shift) = weights.shape, output_factors(node)
    fours, missing = -(-count // OUTPUTS), -count % OUTPUTS
    values = np.zeros(count, np.int64) if bias is None else bias.array.astype(np.int64)
    biases = np.pad(values, (0, missing)).astype("<i8").view("<i4").reshape(fours, -1)
    filled = np.pad(weights, ((0, missing), (0, -depth % EIGHT))).astype(np.int8)
    eights = filled.reshape(fours, OUTPUTS, -1, EIGHT).swapaxes(1, 2)
    factors = np.stack([reduced_multiplier(multiplier), 15 - shift], axis=1)
    ends = np.pad(factors, ((0, missing), (0, 0)), mode="edge").astype("<i4").reshape(fours, -1)
    packed = np.ascontiguousarray(eights).reshape(fours, -1).view("<i4")
    return np.concatenate([biases, packed, ends], axis=1).ravel().astype(np.int32)


def outputs_of(node: Node) -> Struct:
    count, depth = matrix(node).shape
    low, high = clamp_range(clamp_of(node), node.output.type)
    return Struct(
        "tinyet_wide_outputs_mve",
        {"stream": Pointer("stream"), "depth": depth, "count": count, "low": low, "high": high},
    )


def call(node: Node, symbol: str, sizes: Mapping[str, FieldValue], scratch: int = 0) -> Call:
    params = Struct(f"{symbol}_params", {**sizes, "outputs": outputs_of(node)})
    text = "of four outputs after another biases, weights, multipliers and shifts"
    return library_call(symbol, node, [0], params, [Constant("stream", stream(node), text)], scratch)


def rows_of(node: Node) -> int:
    return math.prod(node.output.shape[:-1])


def lower_linear(node: Node, _target: Target) -> Call:
    return call(node, LINEAR, {"rows": rows_of(node)})


def lower_conv2d(node: Node, _target: Target) -> Call:
    g = geometry(node)
    fields = {name: getattr(g, name) for name in SIZES}
    return call(node, CONV2D, fields, 2 * g.kernel_h * g.kernel_w * g.in_c)


# ---------------------------------------------------------------- costs


def products(node: Node) -> Parts:
    rows, (count, depth) = rows_of(node), matrix(node).shape
    fours = rows * -(-count // OUTPUTS)
    return {"call": 1, "row": rows, "four outputs": fours, "eight inputs of four": fours * -(-depth // EIGHT)}


def spans(
    size: int, out: int, stride: int, dilation: int, pad: int, taps: Sequence[int], wide: int
) -> list[Int64]:
    """For each output and each first tap of `wide` side by side, how many of these are before the image, in it, and
    behind it: int64 (outputs * taps,) each."""
    starts = (np.arange(out)[:, None] * stride - pad + np.array(taps) * dilation).ravel()
    before = np.clip(-starts, 0, wide)
    behind = np.clip(starts + wide - size, 0, wide)
    return [before, wide - before - behind, behind]


def copied(g: Geometry) -> Parts:
    """What windows are made of."""
    down = spans(g.in_h, g.out_h, g.stride_h, g.dilation_h, g.pad_top, range(g.kernel_h), 1)
    wide = g.kernel_w if g.dilation_w == 1 else 1
    across = spans(g.in_w, g.out_w, g.stride_w, g.dilation_w, g.pad_left, range(0, g.kernel_w, wide), wide)
    there = g.batch * int(down[1].sum())
    gone = g.batch * (len(down[1]) - int(down[1].sum()))
    parts: Parts = {
        "window": g.batch * g.out_h * g.out_w,
        "row of a window": (there + gone) * g.out_w,
        "taps": (there + gone) * len(across[1]),
    }

    def runs(kind: str, times: int, counts: Int64) -> None:
        sizes = 2 * g.in_c * counts[counts > 0]
        counting.add(parts, kind, times * len(sizes))
        counting.add(parts, f"vector of a {kind}", times * int(sum(map(vectors, sizes.tolist()))))

    runs("fill", gone, np.full(len(across[1]), wide))
    for kind, counts in zip(("fill", "copy", "fill"), across, strict=True):
        runs(kind, there, counts)
    return parts


def work_conv2d(node: Node) -> Mapping[str, int]:
    g, parts = geometry(node), products(node)
    direct = g.pointwise and not (g.pad_top or g.pad_left)
    parts |= {"image": g.batch, "line": g.batch * g.out_h}
    return parts if direct else {**parts, **copied(g)}


def kernels(symbol: str) -> tuple[Kernel, ...]:
    lower, work = (lower_linear, products) if symbol == LINEAR else (lower_conv2d, work_conv2d)
    return (
        Kernel(
            symbol,
            "s16",
            lower,
            HEADERS,
            (f"{symbol}.c",),
            refuse,
            "cortex_m",
            cost_model=CostModel(work),
            access_order=by_vectors if symbol == LINEAR else by_window_pixels,
        ),
    )


CONV2D_KERNELS, LINEAR_KERNELS = kernels(CONV2D), kernels(LINEAR)
