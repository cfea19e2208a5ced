# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions with int16 activations for Helium (tinyet_depthwise_mve.h)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d import Geometry, geometry
from tinyet.delegates.cortex_m.conv2d_mve import struct_of
from tinyet.delegates.cortex_m.conv2d_s16_mve import BYTES, refuse_rounding, rounding_of
from tinyet.delegates.cortex_m.depthwise_mve import (
    AROUND,
    HEADERS,
    LARGEST_PLACE,
    MOST_TILES,
    TILE,
    Patch,
    Plan,
    band_of,
    neighbouring_tiles,
    pixels_of,
    refuse_taps,
)
from tinyet.delegates.cortex_m.rounding_s16 import Rounding16
from tinyet.delegates.cortex_m.summary import summary
from tinyet.delegates.cortex_m.wrapper import largest_divisor, numbers, specialised_call
from tinyet.ir import Array, Node
from tinyet.opset import Call, Constant, CostModel, Exact, FieldValue, Kernel, Layouts
from tinyet.tiles import int16
from tinyet.tiles.helium_depthwise_s16 import LANES, MOST_GROUPS, Channels16, files, fits_row

SYMBOL = "tinyet_depthwise_s16_mve"
SOURCES = (AROUND, f"{SYMBOL}.c")
MOST_GROUPS_OF_TWO = 2


def patch_of(g: Geometry, outputs: tuple[int, int]) -> Patch:
    """In as many gathers as so many outputs need; taps: (groups * outputs, lanes)."""
    seen = [
        {
            (oy * g.stride_h + ky * g.dilation_h, ox * g.stride_w + kx * g.dilation_w): ky * g.kernel_w + kx
            for ky in range(g.kernel_h)
            for kx in range(g.kernel_w)
        }
        for oy in range(outputs[0])
        for ox in range(outputs[1])
    ]
    places = sorted({place for taps in seen for place in taps})
    filled = [*places, *[(0, 0)] * (-len(places) % LANES)]
    lanes = [tuple(filled[i : i + LANES]) for i in range(0, len(filled), LANES)]
    taps = tuple(
        tuple(
            taps.get(place, -1) if LANES * k + i < len(places) else -1
            for i, place in enumerate(lanes_of_group)
        )
        for k, lanes_of_group in enumerate(lanes)
        for taps in seen
    )
    return Patch(outputs, tuple(lanes), taps)


def gathers_of(g: Geometry, patch: Patch) -> int:
    """Of a channel; patches at the ends of rows and columns overlap others."""
    height, width = patch.outputs
    return -(-g.out_h // height) * -(-g.out_w // width) * len(patch.lanes)


@dataclass(frozen=True)
class Plan16(Plan):
    """row: of the plane, in bytes."""

    @property
    def planes(self) -> int:
        return 1

    @property
    def groups(self) -> int:
        return len(self.patch.lanes)

    @property
    def place(self) -> int:
        """Bytes from row to row of the output."""
        return BYTES * self.geometry.out_w * self.geometry.out_c


def plan(node: Node) -> Plan16:
    g = geometry(node)
    span_w = (g.kernel_w - 1) * g.dilation_w + 1
    row = BYTES * max(g.pad_left + g.in_w, (g.out_w - 1) * g.stride_w + span_w)
    shapes = [shape for shape in ((1, 2), (2, 1)) if shape[0] <= g.out_h and shape[1] <= g.out_w]
    found = [patch_of(g, shape) for shape in shapes]
    found = [patch for patch in found if len(patch.lanes) <= MOST_GROUPS_OF_TWO]
    patch = min(found, key=lambda each: gathers_of(g, each)) if found else patch_of(g, (1, 1))
    return Plan16(g, patch, band_of(g, patch, BYTES * g.out_w * g.out_c), row)


def refuse(node: Node, target: Target) -> str | None:
    if (reason := refuse_taps(node, target, MOST_GROUPS * LANES)) is not None:
        return reason
    p, channels = plan(node), node.input(0).shape[3]
    if p.patch.outputs[0] * p.place > LARGEST_PLACE or (TILE - 1) * BYTES * channels > LARGEST_PLACE:
        return "rows too long for offsets of 16 bits"
    if p.band_in * p.row > LARGEST_PLACE:
        return "a plane too large for offsets of 16 bits"
    return refuse_rounding(node, target)


def stream(p: Plan16, r: Rounding16) -> Array:
    """(channels, bytes), int8: see tinyet_depthwise_mve.h."""
    taps = r.weights.shape[1]
    zeros = LANES * p.groups - taps if p.patch.count == 1 else 4 - taps % 4
    weights = np.pad(r.weights, ((0, 0), (0, zeros))).astype(np.int8)
    ends = np.stack([r.multiplier, r.bias], axis=1).astype("<i4")
    return np.concatenate([np.ascontiguousarray(ends).view(np.int8), weights], axis=1)


def vectors(p: Plan16) -> Array:
    """Which weight is in a lane, of two outputs, then the lanes' offsets."""
    taps = np.array(p.patch.taps)
    which = np.where(taps < 0, p.geometry.kernel_h * p.geometry.kernel_w, taps)  # a zero stands there
    lanes = np.array([[y * p.row + BYTES * x for y, x in group] for group in p.patch.lanes])
    both = np.concatenate([which, lanes]) if p.patch.count > 1 else lanes
    return np.ascontiguousarray(both.astype("<u2")).view(np.int8)


def channels_of(p: Plan16, r: Rounding16) -> Channels16:
    """What is printed for all channels of a band."""
    eights = p.geometry.in_w // TILE
    by_rows = p.geometry.in_w % TILE == 0 and fits_row(eights, p.row)
    return Channels16(
        p.patch.count,
        p.groups,
        stream(p, r).shape[1],
        r.exponent,
        r.low > int16.LOW,
        r.high < int16.HIGH,
        r.low == 0,
        largest_divisor(p.tiles, MOST_TILES),
        *((eights, p.row) if by_rows else (0, 0)),
        whole=p.tiles <= MOST_TILES,
    )


def lower(node: Node, target: Target) -> Call:
    p, r = plan(node), rounding_of(node)
    g = p.geometry
    data, printed = stream(p, r), channels_of(p, r)
    fields: dict[str, FieldValue] = {
        "bytes": BYTES,
        "steps": g.in_c,
        "batch": g.batch,
        "in_h": g.in_h,
        "in_w": g.in_w,
        "in_c": BYTES * g.in_c,
        "out_h": g.out_h,
        "out_w": g.out_w,
        "out_pixel": BYTES * g.out_c,
        "stride_h": g.stride_h,
        "stride_w": BYTES * g.stride_w,
        "pad_top": g.pad_top,
        "pad_left": BYTES * g.pad_left,
        "zero_point": 0,
        "band": p.band,
        "band_in": p.band_in,
        "row": p.row,
        "patch_h": p.patch.outputs[0],
        "patch_w": p.patch.outputs[1],
        "groups": p.groups,
        "tiles": p.tiles,
        "stream": data.shape[1],
        "planes": p.planes,
        "rounding": struct_of(r),
    }
    constants = (
        Constant("weights", data.ravel(), "of each channel its rounding, then its weights"),
        Constant("vectors", vectors(p).ravel(), "which weight is in a lane, then the lanes' offsets"),
        Constant("shape", np.array(numbers(fields), np.int32), "tinyet_depthwise_shape_mve"),
    )
    body = (
        "tinyet_depthwise_state_mve state;",
        "tinyet_depthwise_job_mve *band = tinyet_depthwise_begin_mve(&state, (const int8_t *)input, (int8_t *)output,",
        "    scratch, weights, vectors, (const tinyet_depthwise_shape_mve *)(const void *)shape);",
        "for (; band != NULL; band = tinyet_depthwise_next_mve(&state)) {",
        f"  {printed.name}(band);",
        "}",
    )
    made = specialised_call(
        SYMBOL, summary(node), constants, body, scratch_bytes=p.scratch_bytes, element="int16_t"
    )
    return replace(made, files=files(printed))


def replaces(node: Node, index: int) -> bool:
    """A channel is copied before any of its outputs is written."""
    same = node.input(0).shape == node.output.shape
    return index == 0 and same and plan(node).bands == 1


def work(node: Node) -> Mapping[str, int]:
    """What is around the printed function."""
    p, r = plan(node), rounding_of(node)
    g, count = p.geometry, p.geometry.batch * p.bands
    neighbours = neighbouring_tiles(p)
    others = p.tiles - neighbours
    eights = g.batch * sum(-(-pixels // TILE) for pixels in pixels_of(p))
    return {
        "call": 1,
        "tile of neighbours": neighbours,
        "tile of eight neighbours": neighbours if p.patch.count == 1 else 0,
        "patch": others * TILE // p.patch.count,
        "output laid": others * TILE,
        "row of pixels": p.band_in,
        "eight pixels": p.band_in * -(-g.in_w // TILE),
        "band": count,
        "byte of the planes": count * p.band_in * p.row,
        # What cycles grow with beside the exact instructions.
        "channel": count * g.in_c,
        f"taken eight{' of a row' if channels_of(p, r).eights else ''}": eights * g.in_c,
        f"tile, {p.patch.count}": count * g.in_c * p.tiles,
        f"gathers of a tile, {p.patch.count}": count * g.in_c * p.tiles * p.groups,
    }


def exact(node: Node, _layouts: Layouts, _core: str) -> Exact:
    p, r = plan(node), rounding_of(node)
    g, printed = p.geometry, channels_of(p, r)
    bands = [printed.instructions(g.in_c, pixels, p.tiles) for pixels in pixels_of(p)]
    return Exact(
        instructions=g.batch * sum(bands), cycles={}, functions={printed.name: printed.code_bytes}, reads={}
    )


COST_MODELS: Mapping[str, CostModel] = {SYMBOL: CostModel(work, exact=exact)}

KERNELS = (Kernel(SYMBOL, "s16", lower, HEADERS, SOURCES, refuse, "cortex_m", replaces=replaces),)
