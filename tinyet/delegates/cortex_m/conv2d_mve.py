# SPDX-License-Identifier: Apache-2.0
"""Convolutions for Helium, of several groups as of one, four or three pixels by two channels at a time
(tinyet_conv2d_mve.h): all of int8 ones, and how those with int16 activations (conv2d_s16_mve.py) are laid out. Plans
count inputs in bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d import Geometry, geometry, walk
from tinyet.delegates.cortex_m.groups_mve import of_one_group, refuse_groups
from tinyet.delegates.cortex_m.rounding_mve import HEADERS_EVEN, RoundingMve, rounding_mve
from tinyet.delegates.cortex_m.rounding_s16 import Rounding16
from tinyet.delegates.cortex_m.summary import summary
from tinyet.delegates.cortex_m.wrapper import numbers, specialised_call
from tinyet.ir import Array, Node
from tinyet.numerics import Int64
from tinyet.ops.shared.access_orders import of_input
from tinyet.ops.shared.convolution import attrs_of
from tinyet.ops.shared.factors import rounds_half_even
from tinyet.opset import (
    DENSE,
    AccessOrder,
    Call,
    Constant,
    CostModel,
    Exact,
    FieldValue,
    Kernel,
    Layouts,
    LayoutSupport,
    Struct,
    only_strides,
)
from tinyet.tiles import helium_patches, helium_straight, int16
from tinyet.tiles.helium import (
    FEWER_PIXELS,
    FREE_FACTOR,
    LANES,
    LEAST_FREE,
    MOST_VECTORS,
    PIXELS,
    Sums,
)
from tinyet.tiles.helium_blocks import GROUP, Blocks, Printed, files
from tinyet.tiles.helium_blocks_s16 import Blocks16
from tinyet.tiles.helium_patches import Patches
from tinyet.tiles.helium_straight import Straight

SYMBOL, SYMBOL_EVEN = "tinyet_conv2d_s8_4x2_mve", "tinyet_conv2d_s8_rne_4x2_mve"
HEADERS = ("tinyet_dsp.h", "tinyet_mve.h", "tinyet_conv2d_mve.h")
AROUND = "tinyet_conv2d_mve.c"
SOURCES, SOURCES_EVEN = (AROUND, f"{SYMBOL}.c"), (AROUND, f"{SYMBOL_EVEN}.c")
LEAST_BYTES = 16
"""Behind the window, for vectors that begin in it."""
MOST_PATCH_BLOCKS = 12
"""Side by side, whose patches are made at a time."""
MOST_HELD = 40
"""Vectors of a pixel whose loops, one for each two of them, are worth their code."""
LEAST_STRAIGHT = 32
"""Blocks of an image that are worth straight code for each channel."""
ROUNDED_GROUP, AROUND_BLOCK = 23, 25
"""Instructions, about: of four channels of a block, of a block beside its sums and these."""
EXTRA_STRIDES = 3
"""Rows of the window beside those that a kernel spans, in strides: so often it moves down before it is copied."""


def no_helium(target: Target) -> str | None:
    return None if "mve" in target.features else f"{target.cpu} has no Helium instructions"


def refuse_core(node: Node, target: Target) -> str | None:
    """Why the core cannot compute the node: sums are rounded to even in floats, which Helium has beside an FPU."""
    floats = rounds_half_even(node) and "fpu" not in target.features
    return no_helium(target) or (f"{target.cpu} has no FPU here" if floats else None)


def vectors(values: int) -> int:
    return -(-values // LANES)


@dataclass(frozen=True)
class Plan:
    """How a layer's pixels lie before its sums.

    pointwise: as they are. patch: bytes of a pixel's copy of its own; 0 where pixels see the window itself.
    window_rows, row: of the window; 0 for none. channels: of the output, in fours. Of the geometry in_c and the pixels'
    strides are bytes. slab: sums are of some of the channels, from where the caller says.
    """

    geometry: Geometry
    pointwise: bool
    patch: int
    window_rows: int
    row: int
    sums: Sums
    channels: int
    slab: bool = False

    @property
    def size(self) -> int:
        """Bytes of an output."""
        return self.sums.bits // 8

    @property
    def out_bytes(self) -> int:
        """Of a pixel."""
        return self.size * self.geometry.out_c

    @property
    def span_h(self) -> int:
        return (self.geometry.kernel_h - 1) * self.geometry.dilation_h + 1

    @property
    def pixels(self) -> int:
        """Of a block."""
        return self.sums.pixels

    @property
    def seen(self) -> int:
        """Bytes of a block's pixels, pointwise."""
        return (
            (self.pixels - 1) * self.sums.step + LANES * vectors(self.geometry.in_c) if self.pointwise else 0
        )

    @property
    def patches_bytes(self) -> int:
        size = PIXELS * self.patch_blocks * self.patch + LEAST_BYTES if self.patch else self.seen
        return size + -size % 16

    @property
    def patch_blocks(self) -> int:
        """Of four neighbours in a row, whose patches are made at a time."""
        return min(max(self.geometry.out_w // PIXELS, 1), MOST_PATCH_BLOCKS) if not self.staged else 1

    @property
    def staged(self) -> bool:
        """Whether vectors of words cannot go where outputs do."""
        return self.geometry.out_c % 4 != 0 or self.geometry.out_pixel_stride % 4 != 0

    @property
    def scratch_bytes(self) -> int:
        window = self.window_rows * self.row + LEAST_BYTES if self.window_rows else 0
        return (4 + self.size) * self.pixels * self.channels + self.patches_bytes + window

    @property
    def step(self) -> int:
        """Bytes from what a pixel sees to what the next one does."""
        return self.geometry.stride_w * self.geometry.in_c

    @property
    def taps(self) -> tuple[int, int, int]:
        """Of a kernel row that is copied: how many parts, their bytes, and from one to the next."""
        g = self.geometry
        if g.dilation_w == 1:
            return 1, g.kernel_w * g.in_c, 0
        return g.kernel_w, g.in_c, g.dilation_w * g.in_c

    @property
    def patches(self) -> Patches | None:
        """The printed copies of what pixels see; None where they see the window itself, or by a loop in C."""
        g, (taps, tap_bytes, _) = self.geometry, self.taps
        if (
            taps != 1
            or not self.patch
            or not helium_patches.fits(g.kernel_h, tap_bytes, self.step, self.patch)
        ):
            return None
        return Patches(g.kernel_h, tap_bytes, g.dilation_h * self.row, self.step, self.patch)

    def blocks_of(self, r: RoundingMve | Rounding16) -> Printed:
        """What is printed: of int8 straight code of enough blocks."""
        groups = 2 if self.channels % (2 * GROUP) == 0 else 1
        if isinstance(r, Rounding16):
            return Blocks16(self.sums, r.exponent, r.low > int16.LOW, r.high < int16.HIGH, groups)
        lowest = r.one_sided and r.zero_point == -128 == r.low
        if r.even:
            return Blocks(self.sums, True, r.low > -128, r.high < 127, lowest, groups, even=True)
        shifts = (*map(int, -r.shift), *[1] * (self.channels - self.geometry.out_c))
        low, high = (r.low if r.low > -128 else None), (r.high if r.high < 127 else None)
        many = self.geometry.out_h * self.geometry.out_w >= PIXELS * LEAST_STRAIGHT and not self.slab
        if many and helium_straight.fits(self.sums, shifts, low is not None and high is not None):
            return Straight(with_free_lanes(self, r), shifts, r.one_sided, r.zero_point, low, high)
        return Blocks(self.sums, r.one_sided, r.low > -128, r.high < 127, lowest, groups)


def with_pairs(sums: Sums, channels: int) -> Sums:
    """With as many pairs of channels in a turn as are worth their code, and divide them."""
    all_pairs = channels // 2
    pairs = max(n for n in range(1, sums.most_pairs + 1) if all_pairs % n == 0)
    return replace(sums, pairs=pairs, whole=pairs == all_pairs and not sums.held)


def with_free_lanes(p: Plan, r: RoundingMve) -> Sums:
    """Whose biases are made of free lanes, where there are enough."""
    free = LANES - p.geometry.in_c
    most = FREE_FACTOR * (FREE_FACTOR * (free - 1)) + FREE_FACTOR // 2
    enough = p.pointwise and free >= LEAST_FREE and not p.sums.held and int(np.abs(r.bias).max()) <= most
    return replace(p.sums, free=free) if enough else p.sums


def free_lanes(bias: Int64, free: int) -> tuple[Int64, Int64]:
    """Constants of the last lanes, and (channels, lanes) weights, the sum of whose products is the bias."""
    constants = np.array([FREE_FACTOR] * (free - 1) + [1])
    last = (bias + FREE_FACTOR // 2) % FREE_FACTOR - FREE_FACTOR // 2
    rest, found = (bias - last) // FREE_FACTOR, []
    for _ in range(free - 1):
        found.append(np.clip(rest, -FREE_FACTOR, FREE_FACTOR))
        rest = rest - found[-1]
    return constants, np.stack([*found, last], axis=1)


def pairs_of(sums: Sums, channels: int) -> Sums:
    """The same in fewest instructions: inputs held or not."""
    found = [with_pairs(sums, channels)]
    if sums.chunks:
        found.append(with_pairs(replace(sums, held=True), channels))
    return min(found, key=lambda each: each.instructions(channels))


def pointwise_sums(g: Geometry, channels: int, bits: int) -> Sums:
    """Of blocks of four pixels, or of three, if a row has fewer instructions then."""
    step, count = g.stride_w * g.in_c, vectors(g.in_c)
    fours = pairs_of(Sums(1, 1, count, 0, 0, step, bits=bits), channels)
    if g.out_w < FEWER_PIXELS or count > MOST_HELD:
        return fours
    # Its vectors as columns, so that those of neighbours are held together.
    vector_by_vector = Sums(1, count, 1, 0, LANES, step, held=True, pixels=FEWER_PIXELS, bits=bits)
    threes = with_pairs(vector_by_vector, channels)
    groups = channels // GROUP

    def row(sums: Sums) -> int:
        rounding = groups * (ROUNDED_GROUP + (sums.pixels != PIXELS))
        return -(-g.out_w // sums.pixels) * (sums.instructions(channels) + rounding + AROUND_BLOCK)

    return min((fours, threes), key=row)


def plan(node: Node, layouts: Layouts = DENSE) -> Plan:
    return plan_of(geometry(node, layouts))


def plan_of(g: Geometry, bits: int = 8) -> Plan:
    """bits: of an input and of an output."""
    channels = g.out_c + -g.out_c % 4
    taps = g.kernel_h * g.kernel_w
    by_fours = g.in_c % 4 == 0
    if taps == 1 and g.inside and by_fours:
        return Plan(g, True, 0, 0, 0, pointwise_sums(g, channels, bits), channels)
    rows, row = window_of(g)
    patch = LANES * vectors(taps * g.in_c)
    # Where neighbouring columns of a kernel row are whole vectors, pixels share them; else a kernel row is one piece.
    whole = g.in_c % LANES == 0 or g.dilation_w > 1
    along = (g.kernel_w, vectors(g.in_c)) if whole else (1, vectors(g.kernel_w * g.in_c))
    if by_fours and g.kernel_h * math.prod(along) <= patch // LANES * 5 // 4:
        column = g.dilation_w * g.in_c if whole else 0
        sums = Sums(g.kernel_h, *along, g.dilation_h * row, column, g.stride_w * g.in_c, bits=bits)
        return Plan(g, False, 0, rows, row, pairs_of(sums, channels), channels)
    sums = Sums(1, 1, patch // LANES, 0, 0, patch, bits=bits)
    return Plan(g, False, patch, rows, row, pairs_of(sums, channels), channels)


def window_of(g: Geometry) -> tuple[int, int]:
    """Rows of a window, and their bytes."""
    span_w = (g.kernel_w - 1) * g.dilation_w + 1
    columns = (max(g.out_w, PIXELS) - 1) * g.stride_w + span_w
    row = columns * g.in_c + -(columns * g.in_c) % 4
    span_h = (g.kernel_h - 1) * g.dilation_h + 1
    return min(span_h + EXTRA_STRIDES * g.stride_h, (g.out_h - 1) * g.stride_h + span_h), row


def refuse(node: Node, target: Target) -> str | None:
    if (reason := refuse_core(node, target) or refuse_groups(node)) is not None:
        return reason
    g = geometry(node)
    seen = g.kernel_h * g.kernel_w * vectors(g.in_c)
    if seen > MOST_VECTORS:
        return f"{seen} vectors of weights a channel, takes up to {MOST_VECTORS}"
    return rounding_of(of_one_group(node)).refused


def rounding_of(node: Node) -> RoundingMve:
    return rounding_mve(node, attrs_of(node).clamp)


def weight_vectors(p: Plan, weights: Int64) -> Int64:
    """(channels, depth) → (channels, vectors, lanes), zeros where nothing is to be multiplied."""
    g, s = p.geometry, p.sums
    lanes = s.lanes
    if p.pointwise or p.patch:
        filled = np.pad(weights, ((0, 0), (0, s.vectors * lanes - weights.shape[1])))
        return filled.reshape(len(weights), s.vectors, lanes)
    rows = weights.reshape(len(weights), g.kernel_h, s.columns, -1)
    rows = np.pad(rows, ((0, 0), (0, 0), (0, 0), (0, s.depth * lanes - rows.shape[3])))
    parts = rows.reshape(len(weights), g.kernel_h, s.columns, s.depth, lanes)
    ky, kx, block = np.array(s.places).T
    return np.asarray(parts[:, ky, kx, block], np.int64)


def stream(p: Plan, r: RoundingMve | Rounding16) -> tuple[Array, int]:
    """The stream of tinyet_conv2d_mve.h, int8, and how many bytes come before multipliers and shifts."""
    behind = p.channels - p.geometry.out_c
    weights = np.pad(weight_vectors(p, r.weights), ((0, behind), (0, 0), (0, 0))).astype(np.int8)
    pairs = weights.reshape(p.channels // 2, 2, p.sums.vectors, p.sums.lanes).swapaxes(1, 2)
    bias = np.pad(r.bias, (0, behind)).astype("<i4").repeat(p.pixels).view(np.int8).reshape(len(pairs), -1)
    body = np.concatenate([bias, pairs.reshape(len(pairs), -1)], axis=1).ravel()
    free = p.blocks_of(r).sums.free
    if free:
        constants, lanes = free_lanes(np.pad(r.bias, (0, behind)), free)
        weights[:, 0, -free:] = lanes
        first = np.pad(constants, (LANES - free, 0)).astype(np.int8)
        body = np.concatenate([first, weights.ravel()])
    if p.sums.held:
        body = held_stream(p.sums, bias, pairs)
    ends = np.pad(r.multiplier, (0, behind), constant_values=2**30)
    if isinstance(r, RoundingMve) and not r.even:
        ends = np.stack([ends, np.pad(r.shift, (0, behind), constant_values=-1)], axis=1)
    return np.concatenate([body, ends.astype("<i4").view(np.int8).ravel()]), len(body)


def held_stream(sums: Sums, bias: Array, pairs: Array) -> Array:
    """Of sums whose inputs are held. bias: (pairs, bytes); pairs: (pairs, vectors, 2, lanes)."""
    parts, first = [], 0
    for advance in sums.advances:
        for chunk in sums.chunks:
            weights = pairs[:, first : first + len(chunk)].reshape(len(pairs), -1)
            parts.append(weights if first else np.concatenate([bias, weights], axis=1))
            first += len(chunk)
        parts.append(np.array([advance], "<i4").view(np.int8))
    return np.concatenate([part.ravel() for part in parts])


def lower(node: Node, target: Target, layouts: Layouts = DENSE) -> Call:
    r = rounding_of(of_one_group(node))
    return call(SYMBOL_EVEN if r.even else SYMBOL, plan(node, layouts), r, summary(node))


def call(symbol: str, p: Plan, r: RoundingMve | Rounding16, text: str) -> Call:
    """Of the kernel of this name; `text` says what it computes."""
    made = piece(p, r)
    element = "int8_t" if p.size == 1 else "int16_t"
    found = specialised_call(
        symbol, text, made.constants, made.body, scratch_bytes=p.scratch_bytes, element=element
    )
    return replace(found, files=made.files)


@dataclass(frozen=True)
class Piece:
    """A convolution in a function: its constants, C and printed files."""

    constants: tuple[Constant, ...]
    body: tuple[str, ...]
    files: Mapping[str, str]


def piece(
    p: Plan,
    r: RoundingMve | Rounding16,
    source: str = "input",
    output: str = "output",
    number: str = "",
    out_row: int = 0,
) -> Piece:
    """source, output: what C calls them. number: what ends the constants' names. out_row: bytes from row to row of the
    output, or 0 where these follow each other."""
    g = p.geometry
    data, ends = stream(p, r)
    taps, tap_bytes, tap_step = p.taps
    fields: dict[str, FieldValue] = {
        "batch": g.batch,
        "in_h": g.in_h,
        "in_w": g.in_w,
        "in_c": g.in_c,
        "out_h": g.out_h,
        "out_w": g.out_w,
        "out_c": p.out_bytes,
        "stride_h": g.stride_h,
        "pad_top": g.pad_top,
        "pad_left": g.pad_left,
        "step": p.step,
        "out_pixel": g.out_pixel_stride,
        "out_row": out_row or g.out_w * g.out_pixel_stride,
        "zero_point": g.zero_point,
        "groups": p.channels // GROUP,
        "channels": p.size * p.channels,
        "ends": ends,
        "pixels": p.pixels,
        "seen": p.seen,
        "window_rows": p.window_rows,
        "row": p.row,
        "span_h": p.span_h,
        "patch": p.patch,
        "kernel_h": g.kernel_h,
        "dilation_h": g.dilation_h,
        "taps": taps,
        "tap_bytes": tap_bytes,
        "tap_step": tap_step,
        "patches_bytes": p.patches_bytes,
        "patch_blocks": p.patch_blocks,
        "rounding": r.struct if isinstance(r, RoundingMve) else struct_of(r),
    }
    weights, shape = f"weights{number}", f"shape{number}"
    constants = (
        Constant(weights, data, "bias and weights of two channels after another, then the rounding"),
        Constant(shape, np.array(numbers(fields), np.int32), "tinyet_conv2d_shape_mve"),
    )
    printed = p.blocks_of(r)
    of_bytes = f"{source}, {output}" if p.size == 1 else f"(const int8_t *){source}, (int8_t *){output}"
    body = (
        "tinyet_conv2d_state_mve state;",
        f"const int8_t *pixels = tinyet_conv2d_begin_mve(&state, {of_bytes}, scratch, {weights},",
        f"    (const tinyet_conv2d_shape_mve *)(const void *){shape});",
        "for (; pixels != NULL; pixels = tinyet_conv2d_next_mve(&state)) {",
        *(f"  {line}" for line in patches_code(p)),
        f"  {printed.name}({weights}, pixels, &state.blocks);",
        "}",
    )
    patches = helium_patches.files(p.patches) if p.patches is not None else {}
    return Piece(constants, body, {**files(printed), **patches})


def struct_of(r: Rounding16) -> Struct:
    """The tinyet_rounding_mve, of which such an output has bounds alone."""
    clamped = int(r.low > int16.LOW or r.high < int16.HIGH)
    fields = {"one_sided": 0, "clamped": clamped, "zero_point": 0, "low": r.low, "high": r.high}
    return Struct("tinyet_rounding_mve", fields)


def patches_code(p: Plan) -> tuple[str, ...]:
    """What makes the patches of a call's pixels."""
    if not p.patch:
        return ()
    if p.patches is None:
        call = "tinyet_conv2d_patches_mve(state.patch, state.pixels, state.run, state.shape);"
    else:
        call = f"{p.patches.name}(state.patch, state.pixels, state.run);"
    return "do {", f"  {call}", "} while (state.whole == 0 && tinyet_conv2d_run_mve(&state) != 0);"


def takes(node: Node, layouts: Layouts) -> bool:
    return only_strides(node, layouts) and not layouts.input


@of_input
def by_blocks(node: Node) -> AccessOrder:
    return blocks_order(node, plan(node).pixels)


def blocks_order(node: Node, pixels: int) -> AccessOrder:
    """A block of pixels at a time, whose sums are there before they are written."""
    w = walk(node)
    run = w.image if geometry(node).out_h == 1 else w.row
    return w.by_pixels(pixels, run, moved_back=run >= pixels, gathered=True)


# ---------------------------------------------------------------- what costs grow with


@dataclass(frozen=True)
class Count:
    """Of a whole layer: blocks of four pixels, calls of what is printed for them, runs of patches."""

    blocks: int
    calls: int
    runs: int


def count_of(p: Plan) -> Count:
    g = p.geometry
    if p.patch:
        blocks, calls, runs = patch_calls(p)
    else:
        blocks, calls, runs = (
            g.out_h * -(-g.out_w // p.pixels),
            sum(row_calls(p, y) for y in range(g.out_h)),
            0,
        )
    return Count(g.batch * blocks, g.batch * calls, g.batch * runs)


def patch_calls(p: Plan) -> tuple[int, int, int]:
    """Blocks, calls, runs of an image, as next_patches of the kernel goes through it."""
    g, blocks, calls, runs = p.geometry, 0, 0, 0
    pixel, pixels = 0, g.out_h * g.out_w
    while pixel < pixels:
        left = g.out_w - pixel % g.out_w
        count = min(left // PIXELS, p.patch_blocks)
        if p.staged or count == 0:
            count = 1
        end = min(pixel + PIXELS * count, pixels)
        runs += (end - 1) // g.out_w - pixel // g.out_w + 1
        pixel, blocks, calls = end, blocks + count, calls + 1
    return blocks, calls, runs


def row_calls(p: Plan, y: int) -> int:
    """Of a row of pixels that see the image or a window. Of the last image: what sees values behind it is copied."""
    g = p.geometry
    last = g.out_w - p.pixels
    if last <= 0 or p.staged:
        return -(-g.out_w // p.pixels)
    whole = last // p.pixels
    if p.pointwise:
        row = y * g.stride_h * g.in_w * g.in_c
        near = g.in_h * g.in_w * g.in_c - p.seen
        whole = min(whole, max(near - row, 0) // (p.pixels * p.step))
    return 1 + (-(-(last - p.pixels * whole) // p.pixels) if last > p.pixels * whole else 0)


def work(node: Node, layouts: Layouts = DENSE) -> Mapping[str, int]:
    return work_of(plan(node, layouts), rounding_of(of_one_group(node)))


def work_of(p: Plan, r: RoundingMve | Rounding16) -> Mapping[str, int]:
    """What is around the blocks."""
    straight = ", straight" if isinstance(p.blocks_of(r), Straight) else ""
    g, count = p.geometry, count_of(p)
    rows = g.batch * g.out_h
    parts = {
        "call": 1,
        "row": rows,
        "call of blocks": count.calls,
        "staged block": count.blocks if p.staged else 0,
        "staged vector": count.blocks * p.pixels * vectors(p.out_bytes) if p.staged else 0,
        "short row": rows if g.out_w < p.pixels and not p.patch else 0,
        # What cycles grow with beside the exact instructions.
        f"block{straight}": count.blocks,
        f"four channels{straight}": count.blocks * (p.channels // 4),
        "vector of products": count.blocks * p.channels * p.pixels * p.sums.vectors,
        "loaded vector": count.blocks * p.sums.loads(p.channels),
        "pair of channels": count.blocks * p.channels // 2 * p.sums.visits,
    }
    if p.window_rows:
        steps = g.batch * ((g.out_h - 1) * g.stride_h + p.span_h)
        inside = g.batch * min(g.in_h, steps // g.batch)
        moves = rows // (1 + EXTRA_STRIDES)
        parts["row of the window"] = steps
        parts["vector of the window"] = inside * vectors(min(g.in_w * g.in_c, p.row))
        parts["padding of the window"] = steps * p.row - inside * min(g.in_w * g.in_c, p.row)
        parts["window moved"] = moves
        parts["moved vector"] = moves * vectors(max(p.span_h - g.stride_h, 0) * p.row)
    if p.patch:
        parts["call of patches"] = count.calls
        parts["run of patches"] = count.runs
    if p.patch and p.patches is None:
        taps, tap_bytes, _ = p.taps
        pixels = rows * g.out_w
        parts["patch"] = pixels
        parts["row of a patch"] = pixels * g.kernel_h
        parts["tap of a patch"] = pixels * g.kernel_h * taps
        parts["vector of a patch"] = pixels * g.kernel_h * taps * vectors(tap_bytes)
    return parts


def exact(node: Node, layouts: Layouts, _core: str) -> Exact:
    return exact_of(plan(node, layouts), rounding_of(of_one_group(node)))


def exact_of(p: Plan, r: RoundingMve | Rounding16) -> Exact:
    g, count, printed = p.geometry, count_of(p), p.blocks_of(r)
    instructions = printed.instructions(count.calls, count.blocks, p.channels)
    functions = {printed.name: printed.code_bytes}
    if p.patches is not None:
        instructions += p.patches.instructions(count.runs, g.batch * g.out_h * g.out_w)
        functions[p.patches.name] = p.patches.code_bytes
    return Exact(instructions=instructions, cycles={}, functions=functions, reads={})


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
    access_order=by_blocks,
)
KERNELS = (
    _KERNEL,
    replace(
        _KERNEL, symbol=SYMBOL_EVEN, dtypes="s8_rne", headers=(*HEADERS, *HEADERS_EVEN), sources=SOURCES_EVEN
    ),
)
