# SPDX-License-Identifier: Apache-2.0
"""int8 depthwise convolutions for Helium (tinyet_depthwise_mve.h)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d import Geometry, geometry
from tinyet.delegates.cortex_m.conv2d_mve import refuse_core, rounding_of
from tinyet.delegates.cortex_m.rounding_mve import HEADERS_EVEN, RoundingMve
from tinyet.delegates.cortex_m.summary import summary
from tinyet.delegates.cortex_m.wrapper import largest_divisor, numbers, specialised_call
from tinyet.ir import Array, Node
from tinyet.ops.shared.convolution import attrs_of
from tinyet.opset import (
    DENSE,
    Call,
    Constant,
    CostModel,
    Exact,
    FieldValue,
    Kernel,
    Layouts,
    LayoutSupport,
    only_strides,
)
from tinyet.tiles.helium import LANES
from tinyet.tiles.helium_depthwise import Channels, files, fits_narrow, fits_row

SYMBOL, SYMBOL_EVEN = "tinyet_depthwise_s8_mve", "tinyet_depthwise_s8_rne_mve"
HEADERS = ("tinyet_dsp.h", "tinyet_mve.h", "tinyet_depthwise_mve.h")
AROUND = "tinyet_depthwise_mve.c"
SOURCES, SOURCES_EVEN = (AROUND, f"{SYMBOL}.c"), (AROUND, f"{SYMBOL_EVEN}.c")
TILE = 8
"""Outputs whose sums are in registers."""
MOST_TILES = 6
"""In a turn of their loop."""
MOST_GROUPS = 3
LARGEST_LANE, LARGEST_PLACE = 255, 65535
"""Offsets of a gather's bytes, and of scattered ones."""
BAND = 640
"""Outputs of a band, about: what is in scratch beside the plane grows with them."""


@dataclass(frozen=True)
class Patch:
    """What a gather takes: (height, width) outputs; lanes: (groups, 16) offsets in the plane as (row, column);
    taps: (outputs or groups, 16) which weight is in a lane, -1 for none."""

    outputs: tuple[int, int]
    lanes: tuple[tuple[tuple[int, int], ...], ...]
    taps: tuple[tuple[int, ...], ...]

    @property
    def count(self) -> int:
        return self.outputs[0] * self.outputs[1]

    @property
    def reach(self) -> tuple[int, int]:
        """The largest row and column of a lane."""
        places = [place for group in self.lanes for place in group]
        return max(y for y, _ in places), max(x for _, x in places)


def patch_of(g: Geometry, outputs: tuple[int, int]) -> Patch | None:
    """None where so many outputs see more than sixteen values."""
    height, width = (
        (count - 1) * stride + (taps - 1) * dilation + 1
        for count, stride, taps, dilation in zip(
            outputs,
            (g.stride_h, g.stride_w),
            (g.kernel_h, g.kernel_w),
            (g.dilation_h, g.dilation_w),
            strict=True,
        )
    )
    if height * width > LANES:
        return None
    places = [(y, x) for y in range(height) for x in range(width)]
    taps = []
    for oy in range(outputs[0]):
        for ox in range(outputs[1]):
            tap = {
                (oy * g.stride_h + ky * g.dilation_h, ox * g.stride_w + kx * g.dilation_w): ky * g.kernel_w
                + kx
                for ky in range(g.kernel_h)
                for kx in range(g.kernel_w)
            }
            taps.append(tuple(tap.get(place, -1) for place in places) + (-1,) * (LANES - len(places)))
    return Patch(outputs, (tuple(places + [(0, 0)] * (LANES - len(places))),), tuple(taps))


def single_patch(g: Geometry) -> Patch:
    """Of one output, in as many gathers as its taps need."""
    places = [(ky * g.dilation_h, kx * g.dilation_w) for ky in range(g.kernel_h) for kx in range(g.kernel_w)]
    missing = -len(places) % LANES
    taps = np.append(np.arange(len(places)), np.full(missing, -1)).reshape(-1, LANES)
    filled = [*places, *[(0, 0)] * missing]
    lanes = [tuple(filled[i : i + LANES]) for i in range(0, len(filled), LANES)]
    return Patch((1, 1), tuple(lanes), tuple(tuple(map(int, row)) for row in taps))


@dataclass(frozen=True)
class Plan:
    """patch: see there. band: output rows at a time; row: bytes of a row of the plane; tiles: of eight outputs."""

    geometry: Geometry
    patch: Patch
    band: int
    row: int

    @property
    def band_in(self) -> int:
        g = self.geometry
        return (self.band - 1) * g.stride_h + (g.kernel_h - 1) * g.dilation_h + 1

    @property
    def tiles(self) -> int:
        height, width = self.patch.outputs
        patches = -(-self.band // height) * -(-self.geometry.out_w // width)
        return -(-patches * self.patch.count // TILE)

    @property
    def bands(self) -> int:
        return -(-self.geometry.out_h // self.band)

    @property
    def planes(self) -> int:
        """Of a channel each, taken from the image at once where their number is even."""
        return 1 + (self.geometry.in_c % 2 == 0)

    @property
    def scratch_bytes(self) -> int:
        of_tiles = self.tiles * (TILE // self.patch.count * 4 + TILE * 2)
        return self.planes * (of_tiles + self.band_in * self.row) + self.band_in * 2 * self.geometry.in_w

    @property
    def largest_lane(self) -> int:
        y, x = self.patch.reach
        return y * self.row + x


def plan(node: Node, layouts: Layouts = DENSE) -> Plan:
    g = geometry(node, layouts)
    span_w = (g.kernel_w - 1) * g.dilation_w + 1
    row = max(g.pad_left + g.in_w, (g.out_w - 1) * g.stride_w + span_w)
    shapes = [shape for shape in ((2, 2), (1, 2), (2, 1)) if shape[0] <= g.out_h and shape[1] <= g.out_w]
    patches = [found for shape in shapes if (found := patch_of(g, shape)) is not None]
    patch = patches[0] if patches else single_patch(g)
    return Plan(g, patch, band_of(g, patch, g.out_w * g.out_pixel_stride), row)


def band_of(g: Geometry, patch: Patch, place: int) -> int:
    """Rows of outputs that are made at once; place: bytes from row to row of the output."""
    band = max(min(g.out_h, LARGEST_PLACE // place, -(-BAND // g.out_w)), 1)
    # Bands of equal height, as far as that goes; of whole patches.
    band = -(-g.out_h // -(-g.out_h // band))
    height = patch.outputs[0]
    return min(max(band - band % height, height) if band < g.out_h else band, g.out_h)


def refuse_taps(node: Node, target: Target, most: int) -> str | None:
    """What there is against a layer whatever its plan; most: taps of its kernel."""
    if (reason := refuse_core(node, target)) is not None:
        return reason
    channels = node.input(0).shape[3]
    if attrs_of(node).groups != channels or node.output.shape[3] != channels:
        return "only depthwise ones with one output a channel"
    taps = math.prod(node.input(1).shape[1:3])
    return f"{taps} taps, takes up to {most}" if taps > most else None


def refuse(node: Node, target: Target) -> str | None:
    if (reason := refuse_taps(node, target, MOST_GROUPS * LANES)) is not None:
        return reason
    g, p, channels = geometry(node), plan(node), node.input(0).shape[3]
    if p.largest_lane > LARGEST_LANE:
        reach = f"a kernel reaches {p.largest_lane} bytes in a plane, takes up to {LARGEST_LANE}"
        return f"an image of {g.in_w} columns: {reach}"
    if 2 * g.out_w * channels > LARGEST_PLACE or 7 * channels > LARGEST_PLACE:
        return "rows too long for offsets of 16 bits"
    if p.band_in * p.row > LARGEST_PLACE:
        return "a plane too large for offsets of 16 bits"
    return rounding_of(node).refused


def stream(r: RoundingMve) -> Array:
    """(channels, bytes), int8: see tinyet_depthwise_mve.h."""
    taps = r.weights.shape[1]
    weights = np.pad(r.weights, ((0, 0), (0, 4 - taps % 4))).astype(np.int8)
    ends = np.stack([r.multiplier, r.shift, r.bias], axis=1).astype("<i4")
    return np.concatenate([np.ascontiguousarray(ends).view(np.int8), weights], axis=1)


def vectors(p: Plan) -> Array:
    taps = np.array(p.patch.taps)
    which = np.where(taps < 0, p.geometry.kernel_h * p.geometry.kernel_w, taps)  # a zero stands there
    lanes = np.array([[y * p.row + x for y, x in group] for group in p.patch.lanes])
    return np.concatenate([which, lanes]).astype(np.uint8).view(np.int8)


def channels_of(p: Plan, r: RoundingMve) -> Channels:
    """What is printed for all channels of a band."""
    groups, eights = len(p.patch.lanes), p.geometry.in_w // TILE
    by_rows = p.planes == 2 and p.geometry.in_w % TILE == 0 and fits_row(eights, p.row)
    return Channels(
        p.patch.count,
        groups,
        stream(r).shape[1],
        p.planes == 2,
        not r.corrects,
        not r.even and fits_narrow(groups, r.one_sided, int((-r.shift).max())),
        r.low > -128,
        r.high < 127,
        largest_divisor(p.tiles, MOST_TILES),
        *((eights, p.row) if by_rows else (0, 0)),
        whole=p.tiles <= MOST_TILES,
        even=r.even,
    )


def lower(node: Node, target: Target, layouts: Layouts = DENSE) -> Call:
    p, r = plan(node, layouts), rounding_of(node)
    g = p.geometry
    data, printed = stream(r), channels_of(p, r)
    fields: dict[str, FieldValue] = {
        "bytes": 1,
        "steps": g.in_c // p.planes,
        "batch": g.batch,
        "in_h": g.in_h,
        "in_w": g.in_w,
        "in_c": g.in_c,
        "out_h": g.out_h,
        "out_w": g.out_w,
        "out_pixel": g.out_pixel_stride,
        "stride_h": g.stride_h,
        "stride_w": g.stride_w,
        "pad_top": g.pad_top,
        "pad_left": g.pad_left,
        "zero_point": node.input(0).type.zero_point,
        "band": p.band,
        "band_in": p.band_in,
        "row": p.row,
        "patch_h": p.patch.outputs[0],
        "patch_w": p.patch.outputs[1],
        "groups": len(p.patch.lanes),
        "tiles": p.tiles,
        "stream": data.shape[1],
        "planes": p.planes,
        "rounding": r.struct,
    }
    constants = (
        Constant("weights", data.ravel(), "of each channel its rounding, then its weights"),
        Constant("vectors", vectors(p).ravel(), "which weight is in a lane, then the lanes' offsets"),
        Constant("shape", np.array(numbers(fields), np.int32), "tinyet_depthwise_shape_mve"),
    )
    body = (
        "tinyet_depthwise_state_mve state;",
        "tinyet_depthwise_job_mve *band = tinyet_depthwise_begin_mve(&state, input, output, scratch, weights,",
        "    vectors, (const tinyet_depthwise_shape_mve *)(const void *)shape);",
        "for (; band != NULL; band = tinyet_depthwise_next_mve(&state)) {",
        f"  {printed.name}(band);",
        "}",
    )
    symbol = SYMBOL_EVEN if r.even else SYMBOL
    made = specialised_call(symbol, summary(node), constants, body, scratch_bytes=p.scratch_bytes)
    return replace(made, files=files(printed))


def takes(node: Node, layouts: Layouts) -> bool:
    if not only_strides(node, layouts) or layouts.input:
        return False
    return 2 * node.output.shape[2] * (layouts.output or 0) <= LARGEST_PLACE


def replaces(node: Node, index: int) -> bool:
    """A channel is copied before any of its outputs is written."""
    same = node.input(0).shape == node.output.shape
    return index == 0 and same and plan(node).bands == 1


# ---------------------------------------------------------------- what costs grow with


def pixels_of(p: Plan) -> list[int]:
    """Of each band of an image, what is taken of a channel."""
    g = p.geometry
    firsts = np.minimum(np.arange(0, g.out_h, p.band), g.out_h - p.band) * g.stride_h - g.pad_top
    rows = np.minimum(firsts + p.band_in, g.in_h) - np.maximum(firsts, 0)
    return [int(count) * g.in_w for count in np.maximum(rows, 0)]


def neighbouring_tiles(p: Plan) -> int:
    """Tiles of a band whose patches are neighbours in a row, none overlapping another."""
    width, columns = p.patch.outputs[1], -(-p.geometry.out_w // p.patch.outputs[1])
    patches, last = TILE // p.patch.count, p.geometry.out_w - width
    firsts = np.arange(p.tiles) * patches
    x = np.minimum(firsts % columns * width, last)
    inside = firsts < columns * -(-p.band // p.patch.outputs[0])
    return int(np.sum(inside & (x + (patches - 1) * width <= last)))


def work(node: Node, layouts: Layouts = DENSE) -> Mapping[str, int]:
    """What is around the printed function."""
    p, r = plan(node, layouts), rounding_of(node)
    g, count = p.geometry, p.geometry.batch * p.bands
    kind = f"{p.patch.count} of {len(p.patch.lanes)}"
    form = "narrow" if channels_of(p, r).narrow else "wide"
    eights = g.batch * sum(-(-pixels // TILE) for pixels in pixels_of(p))
    neighbours = neighbouring_tiles(p)
    others = p.tiles - neighbours
    return {
        "call": 1,
        "tile of neighbours": neighbours,
        "its planes": neighbours * p.planes,
        "patch": others * TILE // p.patch.count,
        "output laid": others * TILE,
        "tile of two planes": others if p.planes == 2 else 0,
        "row of pixels": p.band_in,
        "eight pixels": p.band_in * -(-g.in_w // TILE),
        "band": count,
        "byte of the planes": count * p.band_in * p.row * p.planes,
        # What cycles grow with beside the exact instructions.
        "channel": count * g.in_c,
        f"taken eight{' of a row' if channels_of(p, r).eights else ''}": eights * (g.in_c // p.planes),
        f"tile, {kind}": count * g.in_c * p.tiles,
        f"rounded tile, {form}": count * g.in_c * p.tiles,
    }


def exact(node: Node, layouts: Layouts, _core: str) -> Exact:
    p, r = plan(node, layouts), rounding_of(node)
    g, printed = p.geometry, channels_of(p, r)
    bands = [printed.instructions(g.in_c, pixels, p.tiles) for pixels in pixels_of(p)]
    return Exact(
        instructions=g.batch * sum(bands), cycles={}, functions={printed.name: printed.code_bytes}, reads={}
    )


COST_MODELS: Mapping[str, CostModel] = {
    symbol: CostModel(work, layout_work=work, exact=exact) for symbol in (SYMBOL, SYMBOL_EVEN)
}

_KERNEL = Kernel(
    SYMBOL,
    "s8",
    lower,
    HEADERS,
    SOURCES,
    refuse,
    "cortex_m",
    layout_support=LayoutSupport(lower, takes),
    replaces=replaces,
)
KERNELS = (
    _KERNEL,
    replace(
        _KERNEL, symbol=SYMBOL_EVEN, dtypes="s8_rne", headers=(*HEADERS, *HEADERS_EVEN), sources=SOURCES_EVEN
    ),
)
