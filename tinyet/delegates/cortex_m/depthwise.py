# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions on planes of int16 (tinyet_depthwise_chw_dsp.h, tinyet_depthwise_dsp.h)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.int16x2 import NHW2C2
from tinyet.delegates.cortex_m.packing import join_bytes, words
from tinyet.delegates.cortex_m.rounding import Form, Rounding, rounding
from tinyet.delegates.cortex_m.rounding_s16 import Rounding16
from tinyet.delegates.cortex_m.summary import summary
from tinyet.delegates.cortex_m.wrapper import specialised_call
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.shared.access_orders import of_input, window_walk
from tinyet.ops.shared.convolution import attrs_of
from tinyet.opset import (
    DENSE,
    AccessOrder,
    AccessOrders,
    Call,
    Constant,
    Kernel,
    Layouts,
    LayoutSupport,
    only_strides,
)
from tinyet.opset.cost import cycles_of
from tinyet.tiles import windows_code
from tinyet.tiles.core import CorePage, page_of
from tinyet.tiles.depthwise import Rows
from tinyet.tiles.planes import Planes, files
from tinyet.tiles.windows import Windows
from tinyet.tiles.windows_forms import best

HEADERS = (
    "tinyet_dsp.h",
    "tinyet_s16_dsp.h",
    "tinyet_tile_dsp.h",
    "tinyet_depthwise_chw_dsp.h",
    "tinyet_depthwise_rows_dsp.h",
    "tinyet_depthwise_windows_dsp.h",
    "tinyet_depthwise_dsp.h",
)

# More output rows are made of one filling of the planes up to so many bytes of scratch, or this part of what the layer
# reads and writes; more of it for the kernel that is there for speed.
SCRATCH, SCRATCH_PART, WIDE_SCRATCH_PART = 1500, 32, 16
# int8 weights shifted further than this leave int16.
MOST_BEFORE = 8
# How much longer a strided layer may take, so that its output may lie over its input.
MOST_BY_STRIPS = 1.1
LARGEST_OFFSET = 1020  # of LDRD, in bytes
LARGEST_IMMEDIATE = 4095  # of ADDW and STRB
MOST_AT_A_TURN = 4
# Of a kernel row by itself, up to so many taps are one part; of a longer one a part has so many.
LONGEST_ROW, TAPS_OF_PART = 16, 8
MOST_TAPS = 1000  # words of weights on the stack, where addresses reach so far
STRAIGHT_VALUES = 48  # that are widened by straight code, at most


@dataclass(frozen=True)
class Axis:
    """One axis of the image: sizes in pixels, steps in bytes."""

    size: int
    step: int
    out: int
    out_step: int
    kernel: int
    stride: int
    dilation: int
    pad: int
    out_two: int
    """To the next output but one."""


@dataclass(frozen=True)
class Geometry:
    """u: the axis that is contiguous in a plane. group: channels at a time. three: by the kernel for 3x3.
    traffic: bytes of an image's inputs and outputs. size: bytes of a value. wide: weights are int16. pairs: the output
    is pairs of pixels (int16x2.NHW2C2). by_tiles: all groups of a tile of output rows come before the next tile;
    row_bytes: of an output row then."""

    u: Axis
    v: Axis
    transposed: bool
    group: int
    three: bool
    traffic: int
    size: int = 1
    wide: bool = False
    pairs: bool = False
    by_tiles: bool = False
    row_bytes: int = 0

    @property
    def tap_pairs(self) -> int:
        """Of a kernel row."""
        return -(-self.u.kernel // 2)

    @property
    def part(self) -> int:
        """Values: all that the last outputs look at."""
        if self.three:
            return 2 * ((self.u.out + 1) // 2 + 1 if self.u.stride == 1 else self.u.out + 1)
        values = (self.u.out - 1) * self.u.stride // self.u.dilation + 2 * self.tap_pairs
        return values + values % 2

    @cached_property
    def row_words(self) -> int:
        return self.u.dilation * self.part // 2

    def tile_rows(self, tile: int) -> int:
        return (tile - 1) * self.v.stride + (self.v.kernel - 1) * self.v.dilation + 1

    def planes_bytes(self, tile: int) -> int:
        return 4 * self.group * self.tile_rows(tile) * self.row_words

    @property
    def scratch(self) -> int:
        """Of the planes, in bytes."""
        return self.planes_bytes(self.tile)

    def rows_within(self, scratch: int) -> int:
        """Output rows of the largest tile whose planes take up to so many bytes. By tiles, the rows themselves are
        counted, too: so far must the output lie before the input."""
        sizes = (self.planes_bytes(n) + n * self.row_bytes for n in range(1, self.v.out + 1))
        return max((n for n, size in enumerate(sizes, 1) if size <= scratch), default=1)

    @property
    def kept(self) -> int:
        """Rows of the planes that the next tile finds there."""
        return 0 if self.by_tiles else max(self.tile_rows(self.tile) - self.tile * self.v.stride, 0)

    @cached_property
    def tile(self) -> int:
        """Output rows at a time: all, or as many as scratch allows, evenly."""
        most = self.rows_within(max(SCRATCH, self.traffic // SCRATCH_PART))
        if self.wide:
            # Planes of fewer words are filled by two words a store (LDRD's reach), as long as they are.
            near = (LARGEST_OFFSET + 3) * self.group
            of_more = self.rows_within(max(SCRATCH, self.traffic // WIDE_SCRATCH_PART))
            of_near = self.rows_within(near)
            most = max(most, min(of_more, of_near) if self.planes_bytes(most) <= near else of_more)
        tile = -(-self.v.out // -(-self.v.out // most))
        if self.three and tile < self.v.out and self.v.out % 2 == 0 and tile % 2 and most > 1:
            tile += 1 if tile < most else -1  # for two rows at a time
        return tile

    @property
    def turn(self) -> int:
        """Pairs of outputs a turn of the loop over an output row, or two, of the kernel for 3x3."""
        pairs = self.u.out // 2
        most = self.most_at_a_turn if self.two_rows else MOST_AT_A_TURN
        return next(n for n in range(most, 0, -1) if pairs % n == 0)

    @property
    def most_at_a_turn(self) -> int:
        """Of pairs of outputs of two rows: as far as an address reaches; fewer where flash counts for more than the
        branch."""
        reach = (LARGEST_IMMEDIATE - self.v.out_step) // self.u.out_two
        return min(MOST_AT_A_TURN if self.wide or self.u.out // 2 == 3 else 2, reach)

    @cached_property
    def two_rows(self) -> bool:
        """Whether the kernel for 3x3 computes two output rows at a time."""
        u, v, tile = self.u, self.v, self.tile
        return (
            (u.stride, v.stride, v.dilation) == (1, 1, 1)
            and v.out > 1
            and (tile == v.out or (tile % 2 == 0 and v.out % 2 == 0))
            and self.most_at_a_turn > 0
            and 12 * self.row_words <= LARGEST_OFFSET
        )

    @property
    def apart(self) -> int:
        """Outputs so far apart along u look at the same part of a row."""
        return self.u.dilation // math.gcd(self.u.dilation, self.u.stride)

    @property
    def block(self) -> int:
        """Outputs at a time, where the kernel is not the one for 3x3."""
        return min(4, self.u.out // min(self.apart, self.u.out))

    @property
    def blocks(self) -> int:
        """Of an output row."""
        runs = min(self.apart, self.u.out)
        return sum(-(-len(range(run, self.u.out, self.apart)) // self.block) for run in range(runs))

    @cached_property
    def instructions(self) -> float:
        """Of one channel, roughly: what decides between the axes, and on the group."""
        if self.three:
            two = 22 if self.two_rows else 23 if self.u.stride == 1 else 24
            row = 10 + two * (self.u.out // 2) + 13 * (self.u.out % 2)
        else:
            row = self.blocks * (12 + self.v.kernel * self.tap_pairs * (1 + 2 * self.block) + 6 * self.block)
        tile = self.tile
        tiles, rows = -(-self.v.out // tile), self.tile_rows(tile)
        kept = self.kept * (tiles - 1)
        again = (
            0 if self.kept else max(rows - tile * self.v.stride, 0) * (tiles - 1)
        )  # taken out of the image
        filling = 10 + (13 if self.group == 4 else 8) * self.row_words
        of_tiles = 55 * tiles + (14 * (tiles - 1) + 2.3 * kept * self.row_words)
        return row * self.v.out + (self.v.size + again) * filling / self.group + of_tiles

    def refuse(self) -> str | None:
        """Why the kernel for 3x3 cannot compute it, or None."""
        if self.u.dilation != 1 or self.u.stride > 2:
            return "needs dilation 1 and stride 1 or 2 along one axis"
        if (
            8 * self.v.dilation * self.row_words > LARGEST_OFFSET
            or 4 * self.v.stride * self.row_words > LARGEST_IMMEDIATE
            or self.u.out_two > LARGEST_IMMEDIATE
        ):
            return "rows are too long"
        return None


def geometries(node: Node, *, three: bool, wide: bool = False) -> list[Geometry]:
    """u along the width, and u along the height, each with all numbers of channels at a time, whose values are at most
    a word of a pixel."""
    a = attrs_of(node)
    size = node.output.type.dtype.bytes
    _, in_h, in_w, channels = node.input(0).shape
    _, out_h, out_w, out_c = node.output.shape
    _, kernel_h, kernel_w, _ = node.input(1).shape
    stride_h, stride_w = (s if o > 1 else 1 for s, o in ((a.stride_h, out_h), (a.stride_w, out_w)))
    dilation_h, dilation_w = (
        d if k > 1 else 1 for d, k in ((a.dilation_h, kernel_h), (a.dilation_w, kernel_w))
    )
    pixel, out_pixel = size * channels, size * out_c
    width = Axis(in_w, pixel, out_w, out_pixel, kernel_w, stride_w, dilation_w, a.pad_left, 2 * out_pixel)
    row = out_w * out_pixel
    height = Axis(in_h, in_w * pixel, out_h, row, kernel_h, stride_h, dilation_h, a.pad_top, 2 * row)
    traffic = size * (node.input(0).type.count + node.output.type.count) // node.input(0).shape[0]
    return [
        Geometry(u, v, transposed, group, three, traffic, size, wide)
        for u, v, transposed in ((width, height, False), (height, width, True))
        for group in (2, 4)
        if group <= channels and group * size <= 4
    ]


def refuse_any(node: Node, target: Target) -> str | None:
    if (reason := refuse_windows(node)) is not None:
        return reason
    return "tinyet_depthwise_s8_chw_3x3_dsp is made for it" if refuse(node, target) is None else None


def refuse_windows(node: Node) -> str | None:
    """What no printed rows of any size are for, whatever the types are."""
    channels = node.input(0).shape[3]
    if attrs_of(node).groups != channels:
        return "only one channel in a group"
    if channels < 2:
        return "a single channel"
    return "too many taps for the stack" if math.prod(node.input(1).shape[1:3]) > MOST_TAPS else None


def refuse(node: Node, target: Target) -> str | None:
    if (reason := refuse_three(node)) is not None:
        return reason
    plain = rounding_of(node).form is Form.PLAIN
    return "a factor of one half and more, or sums too large for its rounding" if plain else None


def refuse_three(node: Node) -> str | None:
    """What no printed rows of 3x3 are for, whatever the types are."""
    channels = node.input(0).shape[3]
    if attrs_of(node).groups != channels or node.input(1).shape[0] != channels:
        return "only one channel in and out a group"
    if node.input(1).shape[1:3] != (3, 3):
        return "only 3x3 kernels"
    if channels < 2:
        return "a single channel"
    reasons = [g.refuse() for g in geometries(node, three=True)]
    return reasons[0] if all(reasons) else None


def cheapest(node: Node, *, three: bool, wide: bool = False) -> Geometry:
    """The cheapest form of the kernel, for a node that was not refused; where the image shrinks, by tiles if that
    takes hardly longer: the output may then lie over the input."""
    taken = [g for g in geometries(node, three=three, wide=wide) if not three or g.refuse() is None]
    best = min(taken, key=lambda g: g.instructions)
    _, _, out_w, out_c = node.output.shape
    by_tiles = [
        replace(g, by_tiles=True, row_bytes=g.size * out_w * out_c)
        for g in taken
        if not g.transposed and g.v.stride > 1 and g.group < node.input(0).shape[3]
    ]
    overlapping = min(by_tiles, key=lambda g: g.instructions, default=best)
    worth = overlapping.tile < overlapping.v.out
    return overlapping if worth and overlapping.instructions <= MOST_BY_STRIPS * best.instructions else best


def apart(g: Geometry, layouts: Layouts) -> Geometry:
    """The same where pixels have a stride."""

    def axis(a: Axis, pixels: int, out_pixels: int) -> Axis:
        found = replace(a, step=pixels * layouts.input or a.step)
        if not layouts.output:
            return found
        return replace(found, out_step=out_pixels * layouts.output, out_two=2 * out_pixels * layouts.output)

    if g.transposed:
        return replace(g, u=axis(g.u, g.v.size, g.v.out), v=axis(g.v, 1, 1))
    return replace(g, u=axis(g.u, 1, 1), v=axis(g.v, g.u.size, g.u.out))


def in_pairs(node: Node, *, wide: bool) -> Geometry | None:
    """The cheapest by the kernel for 3x3 that can write pairs of pixels, with neighbours along the width."""
    _, _, out_w, channels = node.output.shape
    if out_w % 2:
        return None
    found = []
    for g in geometries(node, three=True, wide=wide):
        u = replace(g.u, out_step=4, out_two=4 * channels)
        paired = replace(g, u=u, v=replace(g.v, out_step=2 * out_w * channels), pairs=True)
        if not g.transposed and paired.refuse() is None:
            found.append(paired)
    return min(found, key=lambda g: g.instructions, default=None)


def geometry_in(node: Node, layouts: Layouts, *, wide: bool) -> Geometry:
    """Of the kernel for 3x3."""
    g = in_pairs(node, wide=wide) if layouts.writes is NHW2C2 else cheapest(node, three=True, wide=wide)
    assert g is not None
    return apart(g, layouts)


def takes(node: Node, layouts: Layouts, *, wide: bool) -> bool:
    if layouts.reads is not None:
        return False
    if layouts.writes is NHW2C2:
        return in_pairs(node, wide=wide) is not None
    return geometry_in(node, layouts, wide=wide).refuse() is None


def self_contained(r: Rounding, zero_point: int) -> tuple[Int64, Int64, Int64]:
    """Bias, multiplier and shift of each channel, (channels,), from which tinyet_offset_dsp makes the offset.

    A channel whose output is the same for every input (multiplier 0) gets a bias of which that output is made.
    """
    down = r.shift if r.form is Form.TWO_SIDED else np.full_like(r.shift, r.exponent)  # PLAIN has exponent 0
    fixed = (r.offset >> down) - zero_point
    # Right shifts of exponent - 1, 1 and 1, behind a multiplication by 1/2.
    instead = {
        Form.ONE_SIDED: (fixed << r.exponent, 2),
        Form.TWO_SIDED: (fixed << 2, 1),
        Form.PLAIN: (fixed << 2, -1),
    }[r.form]
    still = r.multiplier == 0
    return (
        np.where(still, instead[0], r.bias),
        np.where(still, 2**30, r.multiplier),
        np.where(still, instead[1], r.shift),
    )


def oriented(r: Rounding | Rounding16, node: Node, transposed: bool) -> Int64:
    """The weights, (channels, taps along v, taps along u)."""
    kernel = r.weights.reshape(len(r.weights), *node.input(1).shape[1:3])
    return kernel.transpose(0, 2, 1) if transposed else kernel


def windows_of(node: Node, g: Geometry, r: Rounding | Rounding16) -> Windows:
    """What computes the output rows of a tile: of a group of channels, or of those of one plane."""
    u, v = g.u, g.v
    multiplier = node.output.shape[3] // node.input(0).shape[3]
    taps, kernel_rows, rest, kernel_row = u.kernel, v.kernel, 0, v.dilation * g.row_words
    if v.kernel == 1 and u.kernel > LONGEST_ROW:
        # Of a long row the parts are as rows, so that there may be a loop over them.
        taps, kernel_row = TAPS_OF_PART, TAPS_OF_PART // 2
        kernel_rows, rest = divmod(u.kernel, TAPS_OF_PART)
    return best(
        Windows(
            outputs=u.out,
            taps=taps,
            kernel_rows=kernel_rows,
            rest=rest,
            stride=u.stride,
            dilation=u.dilation,
            part=g.part,
            kernel_row=kernel_row,
            next_row=v.stride * g.row_words,
            plane=0 if multiplier > 1 else g.tile_rows(g.tile) * g.row_words,
            channels=multiplier if multiplier > 1 else g.group,
            step=u.out_step,
            below=v.out_step,
            form=r.form,
            exponent=r.exponent,
            zero_point=node.output.type.zero_point,
            low=r.low,
            high=r.high,
            block=u.out,
            turn=kernel_rows,
            by_taps=False,
            bits=8 * g.size,
        )
    )


def stream_any(r: Rounding, kernel: Int64, zero_point: int) -> Int64:
    """The stream of tinyet_depthwise_windows_dsp.h, (words,). kernel: (channels, taps along v, taps along u)."""
    bias, multiplier, shift = self_contained(r, zero_point)
    before = replace(r, shift=shift).before
    factor = 2 * multiplier if r.form is Form.PLAIN else multiplier
    ends = np.stack([bias << before, factor, shift], axis=1)
    return words(np.concatenate([taps_of(kernel), ends], axis=1).ravel())


def taps_of(kernel: Int64) -> Int64:
    """(channels, words): the taps of each channel, four a word, with zeros behind the last."""
    taps = kernel.reshape(len(kernel), -1)
    return join_bytes(np.pad(taps, ((0, 0), (0, -taps.shape[1] % 4))).reshape(len(kernel), -1, 4))


def rounding_of(node: Node) -> Rounding:
    return rounding(node, attrs_of(node).clamp, MOST_BEFORE)


def shape_literal(node: Node, g: Geometry) -> tuple[str, str]:
    """The tinyet_depthwise_shape_dsp as a C initialiser, in two lines."""
    batch, _, _, channels = node.input(0).shape
    u, v = g.u, g.v
    parts: Sequence[tuple[str, tuple[int, ...]]] = (
        ("", (g.size, batch, channels, g.group, node.output.shape[3] // channels)),
        ("in", (u.size, v.size, u.step, v.step)),
        ("out", (u.out, v.out, u.out_step, v.out_step, int(g.pairs))),
        ("kernel", (u.kernel, v.kernel)),
        ("stride", (u.stride, v.stride)),
        ("dilation", (u.dilation, v.dilation)),
        ("pad", (u.pad, v.pad)),
        ("zero points", (node.input(0).type.zero_point, node.output.type.zero_point)),
        ("planes", (g.part, g.tile, int(g.by_tiles))),
    )
    texts = [(f"/* {title} */ " if title else "") + ", ".join(map(str, values)) for title, values in parts]
    return "{" + ", ".join(texts[:3]) + ",", "    " + ", ".join(texts[3:]) + "}"


def call(
    node: Node,
    g: Geometry,
    name: str,
    packed: Int64,
    rows: Rows | Windows,
    printed: Mapping[str, str],
    page: CorePage,
) -> Call:
    """Of the kernel of that name. packed: the stream of weights. rows: what computes output rows; printed: its
    files for that page."""
    (first, second), planes = shape_literal(node, g), planes_of(g)
    together = rows.together if isinstance(rows, Rows) else 1
    body = (
        f"const tinyet_depthwise_shape_dsp shape = {first}",
        f"{second};",
        f"tinyet_depthwise_dsp(input, output, scratch, weights, /* words */ {rows.channel_words},",
        f"    /* rows */ {together}, {page.named(planes.name) if planes else 'NULL'},",
        f"    {page.named(rows.name)}, shape);",
    )
    constant = Constant("weights", packed.astype(np.int32), "weights, bias and rounding of each channel")
    element = f"int{8 * g.size}_t"
    made = specialised_call(name, summary(node), [constant], body, scratch_bytes=g.scratch, element=element)
    return replace(made, files={**printed, **(files(planes, page) if planes else {})})


def lower_any(node: Node, target: Target, layouts: Layouts = DENSE) -> Call:
    page = page_of(cycles_of(target))
    g, r = apart(cheapest(node, three=False), layouts), rounding_of(node)
    packed = stream_any(r, oriented(r, node, g.transposed), node.output.type.zero_point)
    return windows_call(node, g, "tinyet_depthwise_s8_chw_dsp", packed, windows_of(node, g, r), page)


def windows_call(node: Node, g: Geometry, name: str, packed: Int64, windows: Windows, page: CorePage) -> Call:
    """Of the kernel of that name for any size."""
    made = call(node, g, name, packed, windows, windows_code.files(windows, page), page)
    return replace(made, frame_bytes=windows_code.made(windows, page).frame_bytes)


def planes_of(g: Geometry) -> Planes | None:
    """What takes rows out of the image; None where no output sees a pixel."""
    u = g.u
    reach = (u.out - 1) * u.stride + (u.kernel - 1) * u.dilation + 1
    count = min(u.pad + u.size, reach) - u.pad
    if count < 1:
        return None
    return Planes(
        first=u.pad,
        count=count,
        step=u.step,
        row_step=g.v.step,
        channels=g.group,
        row_words=g.row_words,
        plane_words=g.tile_rows(g.tile) * g.row_words,
        dilation=u.dilation,
        part=g.part if u.dilation > 1 else 0,
        straight=STRAIGHT_VALUES // (2 * g.group),
        bits=8 * g.size,
    )


def filled_rows(g: Geometry) -> list[int]:
    """Of each tile, how many rows it widens that are in the image."""
    rows, v = g.tile_rows(g.tile), g.v
    found = []
    for top in range(0, v.out, g.tile):
        begin, above = g.kept if top else 0, v.pad - top * v.stride
        found.append(max(min(rows, above + v.size) - max(begin, above), 0))
    return found


def first_rows(g: Geometry, tops: Int64) -> Int64:
    """The first row along v that the tile of output rows from each of `tops` on reads, or one behind it. What the
    tile before has left in the planes is not read again."""
    return np.asarray(tops * g.v.stride - g.v.pad + np.where(tops > 0, g.kept, 0), np.int64)


def order_of(node: Node, g: Geometry) -> AccessOrder | None:
    """Each tile of the image is widened before it is written, but group by group of channels."""
    channels = node.input(0).shape[3]
    if g.by_tiles:
        return window_walk(node).by_rows(g.tile)
    if g.group < channels or (g.transposed and g.tile < g.v.out):
        return None
    walk = window_walk(node)
    if g.tile == g.v.out:
        return walk.by_pixels(walk.image, gathered=True)
    tops = first_rows(g, np.arange(g.v.out, dtype=np.int64) // g.tile * g.tile)
    rows = np.clip(tops, 0, walk.in_h)
    return replace(walk, tops=np.asarray(rows, np.int64)).by_rows(g.tile, gathered=True)


def replaced(node: Node, g: Geometry) -> bool:
    """Whether no value is read after the one of the same pixel and channel has been written."""
    if node.input(0).shape != node.output.shape or node.input(0).shape[3] % g.group:
        return False  # of a last group with fewer channels, some are computed twice
    tops = np.arange(g.tile, g.v.out, g.tile, dtype=np.int64)
    return bool((first_rows(g, tops) >= tops).all())


def access_order_of(chosen: Callable[[Node], Geometry]) -> AccessOrders:
    """Of the kernel that computes a node with the geometry that is chosen for it."""
    return of_input(lambda node: order_of(node, chosen(node)))


def replaces_of(chosen: Callable[[Node], Geometry]) -> Callable[[Node, int], bool]:
    return lambda node, index: index == 0 and replaced(node, chosen(node))


ANY = partial(cheapest, three=False)

KERNEL = Kernel(
    "tinyet_depthwise_s8_chw_dsp",
    "s8",
    lower_any,
    HEADERS,
    (),
    refuse_any,
    "cortex_m",
    layout_support=LayoutSupport(lower_any, only_strides),
    access_order=access_order_of(ANY),
    replaces=replaces_of(ANY),
)
