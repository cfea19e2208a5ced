# SPDX-License-Identifier: Apache-2.0
"""Transposed convolutions of one group for Helium, of int8 and int16: for each row of phases an ordinary convolution
(conv2d_mve.py, conv2d_s16_mve.py) whose channels are those of all phases side by side, so that its pixels are whole
pieces of an output row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import conv2d_mve, conv2d_s16_mve, rounding_mve, rounding_s16
from tinyet.delegates.cortex_m.conv2d import Geometry
from tinyet.delegates.cortex_m.conv2d_mve import HEADERS, Plan, no_helium, plan_of
from tinyet.delegates.cortex_m.rounding_mve import RoundingMve
from tinyet.delegates.cortex_m.rounding_s16 import Rounding16, parts_refusal
from tinyet.delegates.cortex_m.wrapper import specialised_call
from tinyet.ir import DType, Node
from tinyet.ir.memoize import memoize
from tinyet.numerics import Int64, clamp_range
from tinyet.ops import conv_transpose2d
from tinyet.ops.shared.factors import output_factors
from tinyet.ops.shared.weighted import int_bias
from tinyet.opset import DENSE, Call, Constant, CostModel, Exact, Kernel, Layouts
from tinyet.tiles.helium import MOST_VECTORS, PIXELS

SYMBOLS = {
    DType.INT8: "tinyet_conv_transpose2d_s8_4x2_mve",
    DType.INT16: "tinyet_conv_transpose2d_s16_4x2_mve",
}
SOURCES = {DType.INT8: conv2d_mve.SOURCES, DType.INT16: conv2d_s16_mve.SOURCES}


@dataclass(frozen=True)
class Taps:
    """Of neighbouring output rows or columns, as many as the stride: which tap reads which input.

    first: the first input that is read, from that of the same number on, not behind it; count: of inputs. read:
    (which of the outputs, tap, input from the first on).
    """

    first: int
    count: int
    read: tuple[tuple[int, int, int], ...]


def taps_of(outputs: range, kernel: int, stride: int, pad: int) -> Taps:
    found = [
        (i, tap, (output + pad - tap) // stride)
        for i, output in enumerate(outputs)
        for tap in range(kernel)
        if (output + pad - tap) % stride == 0
    ]
    first = min([0, *(place for _, _, place in found)])
    last = max([0, *(place for _, _, place in found)])
    return Taps(first, last - first + 1, tuple((i, tap, place - first) for i, tap, place in found))


@dataclass(frozen=True)
class RowPhase:
    """Every so many-th output row, from `row` on. one: the convolution; weights: (its channels, kernel_h, kernel_w,
    in_c), zeros where a phase has no tap."""

    row: int
    one: Geometry
    weights: Int64


@memoize
def phases_of(node: Node) -> tuple[RowPhase, ...]:
    """Of one image."""
    a, x, w = conv_transpose2d.attrs_of(node), node.input(0), node.input(1).array.astype(np.int64)
    (_, in_h, in_w, in_c), (_, out_h, out_w, out_c) = x.shape, node.output.shape
    across = taps_of(range(a.stride_w), w.shape[2], a.stride_w, a.pad_left)
    found = []
    for row in range(min(a.stride_h, out_h)):
        down = taps_of(range(row, row + 1), w.shape[1], a.stride_h, a.pad_top)
        weights = np.zeros((a.stride_w, out_c, down.count, across.count, in_c), np.int64)
        for _, ky, y in down.read:
            for phase, kx, at in across.read:
                weights[phase, :, y, at] = w[:, ky, kx]
        one = Geometry(
            batch=1,
            in_h=in_h,
            in_w=in_w,
            in_c=in_c,
            out_h=(out_h - row + a.stride_h - 1) // a.stride_h,
            out_w=out_w // a.stride_w,
            out_c=a.stride_w * out_c,
            kernel_h=down.count,
            kernel_w=across.count,
            stride_h=1,
            stride_w=1,
            dilation_h=1,
            dilation_w=1,
            pad_top=-down.first,
            pad_left=-across.first,
            in_pixel_stride=in_c,
            out_pixel_stride=a.stride_w * out_c,
            zero_point=x.type.zero_point,
        )
        found.append(RowPhase(row, one, weights.reshape(-1, *weights.shape[2:])))
    return tuple(found)


@memoize
def roundings(node: Node) -> tuple[RoundingMve | Rounding16, ...]:
    """Of each row of phases."""
    a, x, out = conv_transpose2d.attrs_of(node), node.input(0).type, node.output.type
    clamp, found = clamp_range(a.clamp, out), list[RoundingMve | Rounding16]()
    bias, multiplier, shift = (np.tile(v, a.stride_w) for v in (int_bias(node), *output_factors(node)))
    for phase in phases_of(node):
        matrix = phase.weights.reshape(len(phase.weights), -1)
        if x.dtype is DType.INT16:
            upper = conv2d_s16_mve.UPPER
            found.append(rounding_s16.choose(matrix, bias, multiplier, shift, clamp, upper))
        else:
            folded = np.asarray(bias - x.zero_point * matrix.sum(axis=1), np.int64)
            found.append(rounding_mve.choose(matrix, folded, multiplier, shift, out.zero_point, clamp))
    return tuple(found)


def refusal(r: RoundingMve | Rounding16) -> str | None:
    return r.refused if isinstance(r, RoundingMve) else r.refusal or parts_refusal(r, [r.weights])


def plans(node: Node) -> list[Plan]:
    if node.input(0).dtype is DType.INT16:
        return [conv2d_s16_mve.plan_in_bytes(phase.one) for phase in phases_of(node)]
    return [plan_of(phase.one) for phase in phases_of(node)]


def refuse(node: Node, target: Target) -> str | None:
    if (reason := no_helium(target)) is not None:
        return reason
    a = conv_transpose2d.attrs_of(node)
    if a.groups != 1 or (a.dilation_h, a.dilation_w) != (1, 1):
        return "only one group, and no dilation"
    if node.output.shape[2] % a.stride_w:
        return f"output rows of {node.output.shape[2]} pixels, needs a multiple of {a.stride_w}"
    for p in plans(node):
        g = p.geometry
        seen = g.kernel_h * g.kernel_w * conv2d_mve.vectors(g.in_c)
        if seen > MOST_VECTORS:
            return f"{seen} vectors of weights a channel, takes up to {MOST_VECTORS}"
        if p.patch and g.out_w % PIXELS:
            return f"copied windows of {g.out_w} pixels a row, which are no fours"
    return next(filter(None, map(refusal, roundings(node))), None)


def lower(node: Node, _target: Target) -> Call:
    a, (batch, in_h, in_w, in_c) = conv_transpose2d.attrs_of(node), node.input(0).shape
    _, out_h, out_w, out_c = node.output.shape
    dtype = node.input(0).dtype
    row_bytes = out_w * out_c * dtype.bytes
    constants, body, files = list[Constant](), list[str](), dict[str, str]()
    for i, (phase, p, r) in enumerate(zip(phases_of(node), plans(node), roundings(node), strict=True)):
        to = f"output + {phase.row * row_bytes}" if phase.row else "output"
        made = conv2d_mve.piece(p, r, output=to, number=str(i), out_row=a.stride_h * row_bytes)
        constants += made.constants
        body += ["{", *(f"  {line}" for line in made.body), "}"]
        files |= made.files
    if batch > 1:
        moved = f"  input += {in_h * in_w * in_c}, output += {out_h * out_w * out_c};"
        body = [f"for (int32_t n = 0; n < {batch}; n++) {{", *(f"  {line}" for line in body), moved, "}"]
    read, written = ("x".join(map(str, t.shape[1:])) for t in (node.input(0), node.output))
    kernel = "x".join(map(str, node.input(1).shape[1:3]))
    summary = f"{read} -> {written}, transposed, kernel {kernel}, stride {a.stride_h}x{a.stride_w}"
    scratch = max(p.scratch_bytes for p in plans(node))
    element = f"{dtype.value}_t"
    call = specialised_call(SYMBOLS[dtype], summary, constants, body, scratch_bytes=scratch, element=element)
    return replace(call, files=files)


def work(node: Node, _layouts: Layouts = DENSE) -> Mapping[str, int]:
    """What is around the blocks, of all images."""
    found: dict[str, int] = {}
    batch = node.output.shape[0]
    for p, r in zip(plans(node), roundings(node), strict=True):
        for part, times in conv2d_mve.work_of(p, r).items():
            found["phase" if part == "call" else part] = found.get(part, 0) + batch * times
    return {"call": 1, **found, "phase": batch * len(plans(node))}


def exact(node: Node, _layouts: Layouts, _core: str) -> Exact:
    batch, instructions, functions = node.output.shape[0], 0, dict[str, int]()
    for p, r in zip(plans(node), roundings(node), strict=True):
        one = conv2d_mve.exact_of(p, r)
        instructions += batch * one.instructions
        functions.update(one.functions)
    return Exact(instructions=instructions, cycles={}, functions=functions, reads={})


def code(node: Node) -> Mapping[str, int]:
    """Of the wrapper."""
    patched = sum(p.patch > 0 for p in plans(node))
    return {"call": 1, "phase": len(plans(node)), "patches": patched, "images": int(node.output.shape[0] > 1)}


KERNELS = tuple(
    Kernel(
        symbol,
        dtype.suffix,
        lower,
        HEADERS,
        SOURCES[dtype],
        refuse,
        "cortex_m",
        cost_model=CostModel(work, code, exact=exact),
    )
    for dtype, symbol in SYMBOLS.items()
)
