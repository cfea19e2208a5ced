# SPDX-License-Identifier: Apache-2.0
"""Instruction counts of the kernels whose sums are rounded by two products, loop by loop as in their C files."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from tinyet.ir import Node
from tinyet.numerics import clamp_range
from tinyet.ops.shared import (
    counting,
    outer_threes,
    packed_twos,
    packed_words,
    paired,
    paired_checked,
    paired_fives,
    paired_threes,
    paired_twos,
    winograd_words,
)
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.convolution import attrs_of
from tinyet.ops.shared.cost_models import axes, axis
from tinyet.ops.shared.cost_models_bytes import COST_MODELS as OF_BYTES
from tinyet.ops.shared.cost_models_planes import COST_MODELS as OF_PLANES
from tinyet.ops.shared.cost_models_planes import outputs
from tinyet.ops.shared.one_product import Rounding
from tinyet.ops.shared.straight import Straight, straight
from tinyet.ops.shared.two_products import Rescaling
from tinyet.ops.shared.window_parts import (
    copied,
    filled,
    gathered,
    gathered_in_twos,
    pointwise,
    windows_in_fives,
    windows_in_threes,
    windows_in_twos,
)
from tinyet.ops.shared.winograd import TOGETHER
from tinyet.opset import CostModel, Exact, Layouts

Parts = counting.Parts
BLOCK = packed_words.CHANNELS


def blocks(node: Node, pixels: int) -> Parts:
    """tinyet_packed_pixel, so many times."""
    out_c, runs = node.output.shape[-1], packed_words.all_runs(node)
    taps = [end - start for start, end in runs]
    return {
        "call": 1,
        "pixel": pixels,
        "pixel with a last block": pixels * int(out_c % BLOCK != 0),
        "block": pixels * -(-out_c // BLOCK),
        "run": pixels * len(runs),
        "four taps": pixels * sum(n // 4 for n in taps),
        "tap": pixels * sum(n % 4 for n in taps),
        **outputs(node, pixels * out_c),
    }


def in_words(channels: int) -> int:
    """Inputs that a turn of the loop copies where words lie at multiples of four; all by themselves otherwise."""
    return 8 if channels % 4 == 0 else 1


def packed_conv2d(node: Node) -> Mapping[str, int]:
    """tinyet_conv2d_s8_packed_words."""
    parts = blocks(node, math.prod(node.output.shape[:3]))
    gathered(parts, node, in_words(node.input(0).shape[3]))
    return parts


def packed_rows(node: Node) -> Mapping[str, int]:
    """tinyet_conv2d_1x1_s8_packed_words, tinyet_linear_s8_packed_words."""
    pixels, depth = math.prod(node.output.shape[:-1]), node.input(0).shape[-1]
    parts = blocks(node, pixels)
    copied(parts, pixels, depth, in_words(depth))
    return parts


def twos(node: Node, pixels: int, strips: int) -> Parts:
    """Blocks of tinyet_conv2d_s8_packed_twos.c, of so many pixels: as many instructions as there stand."""
    sums = packed_twos.rescaling(node)
    assert isinstance(sums, Rescaling)
    out_c = node.output.shape[-1]
    blocks, rest = -(-out_c // BLOCK), int(out_c % BLOCK != 0)
    of_blocks = blocks * (56 + 21 * sums.two_sided) + packed_twos.in_runs(node).instructions
    return {
        "call": 1,
        "strip": strips,
        "pixel": pixels * (1 - rest),
        "pixel with a last block": pixels * rest,
        "instruction of blocks": pixels * of_blocks,
    }


def twos_conv2d(node: Node) -> Mapping[str, int]:
    """tinyet_conv2d_s8_packed_twos."""
    a, (_, kernel_h, kernel_w, channels) = attrs_of(node), node.input(1).shape
    batch, out_h, out_w, _ = node.output.shape
    strip = packed_twos.strip(node)
    in_row = -(-out_w // strip)
    parts = twos(node, batch * out_h * out_w, batch * out_h * in_row)
    rows, _ = axes(node, a, kernel_h, kernel_w)
    # Of each row of outputs, where windows' columns lie: all of the first strip, then those that it does not share.
    shared = packed_twos.shared_columns(node)
    taps = np.arange(kernel_w)
    at = np.arange(out_w)[:, None] * a.stride_w - a.pad_left + taps * a.dilation_w
    new = (taps >= shared) | (np.arange(out_w) == 0)[:, None]
    within = (at >= 0) & (at < node.input(0).shape[2])
    there, beside = int((new & within).sum()), int((new & ~within).sum())
    inside = rows.inside.sum(axis=1)
    # Where rows are few inputs, or all there is, a strip's columns in the image are gathered at once.
    neighbours = a.dilation_w == 1 and a.stride_w == kernel_w - shared
    at_once = (inside == kernel_h) & (neighbours and (channels < 4 or kernel_h == 1))
    for first in range(0, out_w, strip) if at_once.any() else ():
        begin = first * a.stride_w - a.pad_left + (shared if first else 0)
        end = (min(first + strip, out_w) - 1) * a.stride_w - a.pad_left + kernel_w
        columns = min(end, node.input(0).shape[2]) - max(begin, 0)
        if columns > 0:
            times = batch * int(at_once.sum())
            counting.add(parts, "columns at once", times)
            if kernel_h == 1:
                counting.add(parts, "inputs of a turn", times * (columns * channels // 4))
                counting.add(parts, "input", times * (columns * channels % 4))
            else:
                of_columns = columns * (5 + kernel_h * (channels + 4))
                counting.add(parts, "instruction of columns", times * of_columns)
    outside, seen = int((inside == 0).sum()), int(((inside > 0) & ~at_once).sum())
    in_image = int(inside[~at_once].sum())
    counting.add(parts, "output row", batch * out_h)
    counting.add(parts, "row", batch * in_image * there)
    counting.add(parts, "column", batch * seen * there)
    count = batch * in_image * there
    counting.add(parts, "inputs of a turn", count * (channels // 4))
    counting.add(parts, "input", count * (channels % 4))
    filled(parts, batch * (out_h * beside + outside * there), kernel_h * channels)
    above, below = ~rows.inside[:, 0] & (inside > 0), ~rows.inside[:, -1] & (inside > 0)
    counting.add(parts, "blank piece", batch * there * int(above.sum() + below.sum()))
    blank = int((kernel_h - inside[inside > 0]).sum())
    counting.add(parts, "blank input", batch * there * blank * channels)
    moved = batch * out_h * (in_row - 1) if shared else 0
    counting.add(parts, "move", moved)
    counting.add(parts, "four words moved", moved * -(-shared * kernel_h * channels // 4))
    return by_bytes(parts, node)


def twos_rows(node: Node) -> Mapping[str, int]:
    """tinyet_conv2d_1x1_s8_packed_twos."""
    pixels, depth, strip = math.prod(node.output.shape[:-1]), node.input(0).shape[-1], packed_twos.strip(node)
    whole, rest = divmod(pixels, strip)
    parts = twos(node, pixels, whole + (rest != 0))
    for strips, count in ((whole, strip), (int(rest != 0), rest)):
        counting.add(parts, "inputs of a turn", strips * (count * depth // 4))
        counting.add(parts, "input", strips * (count * depth % 4))
    return by_bytes(parts, node)


def by_bytes(parts: Parts, node: Node) -> Parts:
    """The same where inputs are read byte by byte because words may lie across multiples of four."""
    if node.input(0).shape[3] % 4 != 0:
        counting.add(parts, "inputs of a turn by bytes", parts.pop("inputs of a turn", 0))
    return parts


def two_taps_rows(node: Node) -> Mapping[str, int]:
    """tinyet_linear_s8_two_taps."""
    (out_c, depth), rows = node.input(1).shape, math.prod(node.output.shape[:-1])
    pairs, in_row = -(-depth // 2), -(-out_c // BLOCK)
    alone = in_row - out_c // (2 * BLOCK) * 2  # RISC-V takes two blocks at once
    return {
        "call": 1,
        "row": rows,
        "two inputs": rows * pairs,
        "block": rows * in_row,
        "block by itself": rows * alone,
        "two taps": rows * in_row * pairs,
        "two taps by themselves": rows * alone * pairs,
        "odd two taps": rows * in_row * (pairs % 2),
        **outputs(node, rows * out_c),
    }


def conv2d_4x4(node: Node) -> Mapping[str, int]:
    """tinyet_conv2d_s8_4x4."""
    (batch, out_h, out_w, out_c), taps = node.output.shape, math.prod(node.input(1).shape[1:])
    pixels = out_h * out_w
    fours = batch * -(-pixels // 4)
    tiles = fours * -(-out_c // BLOCK)
    parts: Parts = {
        "call": 1,
        "pixel": batch * pixels,
        "four pixels": fours,
        "tile": tiles,
        "four taps": tiles * -(-taps // 4),
        "channel": fours * out_c,
        **outputs(node, batch * pixels * out_c),
    }
    gathered(parts, node, 4)
    counting.copied(parts, "clear", 1, packed_words.block_bytes(node))
    return parts


def conv2d_paired(node: Node) -> Mapping[str, int]:
    """tinyet_conv2d_s8_paired_4x2."""
    found, (batch, out_h, out_w, out_c) = paired.rounding(node), node.output.shape
    assert isinstance(found, Rounding)
    (low, high), pixels = clamp_range(clamp_of(node), node.output.type), out_h * out_w
    fours, steps = -(-math.prod(node.input(1).shape[1:]) // 4), batch * -(-pixels // 4)
    tiles = steps * -(-out_c // 2)
    parts: Parts = {
        "call": 1,
        "pixel": batch * pixels,
        "step": steps,
        "tile": tiles,
        "two-sided tile": tiles * found.two_sided,
        "clamped": batch * pixels * out_c * ((low, high) != (-128, 127)),
    }
    counting.copied(parts, "clear", 1, 32 * fours)
    rest = pixels % 4
    counting.add(parts, "step apart", steps if out_c % 2 else batch * int(rest != 0))
    counting.copied(parts, "apart", batch * (pixels if out_c % 2 else rest), out_c)
    gathered_in_twos(parts, node)
    return parts | {"four taps": tiles * fours, "odd four taps": tiles * (fours % 2)}


THUMB = "Thumb "
"""What names of parts begin with that the assembly for these cores has by itself."""


def instructions_of_parts(lengths: Sequence[int], pixels: int, *, two_sided: bool) -> tuple[int, int]:
    """Of tinyet_conv2d_s8_paired_threes_6x4.c, as they stand in the assembly for RISC-V: of the taps of a tile of six
    pixels or of three, whose parts have so many, and of all else."""
    six = pixels > 3
    turns = sum(max(-(-(taps - 1) // paired_threes.TURN), 1) for taps in lengths)
    of_taps = (40 if six else 22) * sum(lengths) + 3 * turns
    opened, moved = (14, 6) if six else (7, 3)
    around = 5 + 20 * len(lengths)
    if len(lengths) == 1 and not (two_sided and not six):
        outputs = 4 * (7 + opened + 6 * pixels + pixels - 1) + 1
        return of_taps, around + outputs + two_sided * (9 + 8 * pixels)
    before = (16 if six else 8) + 8 + (2 if six else 0)
    of_channel = opened + moved + 6
    around += sum(
        before + 4 * (of_channel + 1 + pixels + 2 * pixels * (k > 0)) + 5 for k in range(len(lengths) - 1)
    )
    last = of_channel + 10 + 8 * pixels + pixels - 1 + 2 * pixels * (len(lengths) > 1)
    return of_taps, around + before + 4 * last + 1


def thumb_instructions_of_parts(
    lengths: Sequence[int], pixels: int, direct: int, *, two_sided: bool
) -> tuple[int, int]:
    """The same as they stand in the assembly for Thumb, which has two of a tile's channels at a time."""
    six = pixels > 3
    turns = sum(max(-(-(taps - 1) // paired_threes.THUMB_TURN), 1) for taps in lengths)
    of_taps = (12 if six else 7) * sum(lengths) + 4 * turns
    rows = 3 if six else 2  # moves from pixel to pixel, and back
    around = 10 + 20 * len(lengths)
    if direct == paired_threes.DIRECT:
        around += 5 + 2 * (2 + six + 16 * pixels // 3) + 2
    elif len(lengths) == 1 and direct:
        around += 6 + 2 * (2 + six + 17 * pixels // 3) + 2
    elif len(lengths) == 1:
        outputs = 2 * (7 + 5 * pixels // 3 + 6 * pixels + rows) + 2
        around += 7 + outputs + two_sided * (1 + 4 * pixels)
    else:
        added = 8 + 2 * (14 * pixels // 3)
        outputs = 2 * (2 + six + 5 * pixels if direct else 7 + 9 * pixels + rows) + 4
        around += 2 - 2 * pixels + added * len(lengths) + 2 * (len(lengths) - 1) + 4 + outputs
    return 2 * of_taps, 2 * around + 3


def instructions_of_parts_of_two(lengths: Sequence[int], pixels: int, *, two_sided: bool) -> tuple[int, int]:
    """The same of tinyet_conv2d_s8_paired_threes_6x2.c, for Xtensa; outputs as if no half were below zero."""
    words = 4 if pixels > 3 else 2
    turns = sum(-(-taps // paired_twos.TURN) for taps in lengths)
    of_taps = (4 + 9 * words // 2) * sum(lengths) + 5 * turns - len(lengths)
    opened, several = 7 * words // 2, len(lengths) > 1
    around = 5 + len(lengths) * (12 + 2 * words + 5 + words)
    around += sum(
        3 + 2 * (opened + 4 + words + pixels + 2 * pixels * (k > 0)) for k in range(len(lengths) - 1)
    )
    of_channel = opened + 13 + pixels + 9 * pixels + two_sided * (2 * pixels + 2)
    return of_taps, around + 6 + words + 2 * of_channel + several * (5 + 4 * pixels)


def in_threes(
    node: Node,
    channels: int,
    instructions: Mapping[str, Callable[[Sequence[int], int, int], tuple[int, int]]],
) -> Parts:
    """Tiles of three pixels in two words, by so many channels. instructions: of a tile's parts, by taps, pixels, and
    what it is if it is direct; for each of the cores that have assembly, by the word that their parts begin with."""
    batch, out_h, out_w, out_c = node.output.shape
    pixels = out_h * out_w
    rest = pixels % paired_threes.PIXELS
    of_three = batch * int(0 < rest <= 3)
    steps = batch * -(-pixels // paired_threes.PIXELS)
    parts: Parts = {"call": 1, "step": steps}
    for core, of in instructions.items():
        wide = core == THUMB
        for chosen, of_tile in paired_threes.tiles(node, channels, wide=wide):
            lengths = [end - start for start, end in of_tile]
            direct = paired_threes.direct(node, chosen, of_tile, wide=wide)
            for times, each in ((steps - of_three, 6), (of_three, 3)):
                taps, others = of(lengths, each, direct)
                counting.add(parts, f"{core}instruction of taps", times * taps)
                counting.add(parts, f"{core}instruction of outputs", times * others)
    windows_in_threes(parts, node)
    counting.copied(parts, "apart", batch * int(rest % 3 != 0), rest * out_c)
    return parts


def conv2d_paired_threes(node: Node) -> Mapping[str, int]:
    """tinyet_conv2d_s8_paired_threes_6x4."""
    found, count = straight(node), node.output.type.count
    assert isinstance(found, Straight)
    low, high = clamp_range(clamp_of(node), node.output.type)
    two_sided = found.two_sided

    def of_riscv(lengths: Sequence[int], pixels: int, _direct: int) -> tuple[int, int]:
        return instructions_of_parts(lengths, pixels, two_sided=two_sided)

    of_thumb = partial(thumb_instructions_of_parts, two_sided=two_sided)
    parts = in_threes(node, paired_threes.CHANNELS, {"": of_riscv, THUMB: of_thumb})
    return parts | {"clamped": count * ((low, high) != (-128, 127))}


def instructions_of_sums(parts: int, direct: int) -> int:
    """Of tinyet_conv2d_s8_outer_threes_3x4.c, behind the taps of a tile, as they stand in the assembly."""
    if direct == paired_threes.DIRECT:
        return 83
    several = parts > 1
    before = 37 + (parts - 2) * 57 if several else 0
    return before + (100 if direct else 193) + 18 * several


def conv2d_outer_threes(node: Node) -> Mapping[str, int]:
    """tinyet_conv2d_s8_outer_threes_3x4."""
    batch, out_h, out_w, out_c = node.output.shape
    low, high = clamp_range(clamp_of(node), node.output.type)
    pixels = out_h * out_w
    rest, steps = pixels % outer_threes.PIXELS, batch * -(-pixels // outer_threes.PIXELS)
    parts: Parts = {"call": 1, "step": steps}
    for channels, of_tile in paired_threes.tiles(node, wide=True):
        lengths = [end - start for start, end in of_tile]
        direct = paired_threes.direct(node, channels, of_tile, wide=True)
        counting.add(parts, "tap of a tile", steps * sum(lengths))
        counting.add(parts, "turn", steps * sum(-(-taps // outer_threes.TURN) for taps in lengths))
        counting.add(parts, "part", steps * len(lengths))
        around = steps * instructions_of_sums(len(lengths), direct)
        counting.add(parts, "instruction of direct tiles", around * (direct > 0))
        counting.add(parts, "instruction of other tiles", around * (direct == 0))
    windows_in_threes(parts, node)
    counting.add(parts, "step apart", batch * int(rest != 0))
    counting.copied(parts, "apart", batch * int(rest != 0), rest * out_c)
    return parts | {"clamped": batch * pixels * out_c * ((low, high) != (-128, 127))}


def weights_of_outer_threes(node: Node, _layouts: Layouts, _core: str) -> Exact:
    """All weights are read for each three pixels: of a flash behind a cache that is too small for them, again."""
    batch, out_h, out_w, _ = node.output.shape
    steps = batch * -(-out_h * out_w // outer_threes.PIXELS)
    return Exact(0, {}, {}, {"read weights": steps * outer_threes.constants(node)[1].data.nbytes})


def conv2d_paired_threes_of_two(node: Node) -> Mapping[str, int]:
    """tinyet_conv2d_s8_paired_threes_6x2."""
    sums = packed_words.rescaling(node)
    assert isinstance(sums, Rescaling)
    two_sided = sums.two_sided

    def of_xtensa(lengths: Sequence[int], pixels: int, _direct: int) -> tuple[int, int]:
        return instructions_of_parts_of_two(lengths, pixels, two_sided=two_sided)

    parts = in_threes(node, paired_twos.CHANNELS, {"": of_xtensa})
    return parts | {"two-sided output": node.output.type.count * sums.two_sided}


def conv2d_paired_fours(node: Node) -> Mapping[str, int]:
    """tinyet_conv2d_s8_paired_fours_4x1."""
    found = paired.rounding(node)
    assert isinstance(found, Rounding)
    (batch, out_h, out_w, out_c), (low, high) = (
        node.output.shape,
        clamp_range(clamp_of(node), node.output.type),
    )
    pixels, f = out_h * out_w, paired.in_fours(node)
    steps, taps, twos = batch * -(-pixels // 4), f.weights.shape[1], int(f.twos.sum())
    fours = taps // paired.FOUR
    parts: Parts = {
        "call": 1,
        "step": steps,
        "channel": steps * out_c,
        "two-sided channel": steps * out_c * found.two_sided,
        # Where weights are large is hardly drawn, so that a fit could not tell: as many instructions as there stand.
        "instruction of runs": steps
        * (18 * fours * out_c + 4 * fours * twos + 13 * int(np.count_nonzero(f.alone))),
        "turn": steps * out_c * -(-fours // 4),
        "channel with a weight by itself": steps * int(np.count_nonzero(f.alone.any(axis=1))),
        "clamped": batch * pixels * out_c * ((low, high) != (-128, 127)),
    }
    gathered_in_twos(parts, node)
    counting.copied(parts, "clear", 1, 8 * taps)
    rest = pixels % 4
    counting.add(parts, "step apart", batch * int(rest != 0))
    counting.copied(parts, "apart", batch * int(rest != 0), rest * out_c)
    return parts


def conv2d_paired_checked(node: Node) -> Mapping[str, int]:
    """tinyet_conv2d_s8_paired_checked_8x1."""
    (batch, out_h, out_w, out_c), (low, high) = (
        node.output.shape,
        clamp_range(clamp_of(node), node.output.type),
    )
    pixels, fours = out_h * out_w, -(-math.prod(node.input(1).shape[1:]) // paired_checked.TAPS)
    whole, rest = divmod(pixels, paired_checked.PIXELS)
    steps = batch * (whole + (rest > 0))
    parts: Parts = {
        "call": 1,
        "pixel": batch * pixels,
        "step": steps,
        "channel": steps * out_c,
        "four taps": steps * out_c * fours,
        "turn": steps * out_c * -(-fours // 8),
        "clamped": batch * pixels * out_c * ((low, high) != (-128, 127)),
    }
    in_rows, _ = paired_checked.padded(node)
    if in_rows:
        _, in_h, in_w, in_c = node.input(0).shape
        counting.copied(parts, "row of the image", batch * in_h, in_w * in_c)
        counting.copied(parts, "clear", batch, math.prod(paired_checked.padded(node)) * in_c)
    gathered_in_twos(parts, node, paired_checked.PIXELS, padded=in_rows > 0)
    if pointwise(node):
        del parts["two windows"]
    words = paired_checked.WORDS * paired_checked.TAPS * fours
    counting.copied(parts, "clear", 1 + batch * (rest > 0), 4 * words)
    counting.add(parts, "step apart", batch * int(rest != 0))
    counting.copied(parts, "apart", batch * int(rest != 0), rest * out_c)
    return parts


def conv2d_paired_fives(node: Node) -> Mapping[str, int]:
    """tinyet_conv2d_s8_paired_fives_5x2."""
    batch, out_h, out_w, out_c = node.output.shape
    low, high = clamp_range(clamp_of(node), node.output.type)
    pixels, taps = out_h * out_w, math.prod(node.input(1).shape[1:])
    rest, steps = pixels % paired_fives.PIXELS, batch * -(-pixels // paired_fives.PIXELS)
    found = paired_fives.parts(node)
    assert isinstance(found, paired_fives.Parts)
    whole, others = (steps * len(of) // paired_fives.CHANNELS for of in (found.whole, found.others))
    lengths = found.split, taps - found.split
    turns = whole * paired_fives.turns(taps) + others * sum(map(paired_fives.turns, lengths))
    parts: Parts = {
        "call": 1,
        "step": steps,
        "pair of channels": whole,
        "pair in parts": others,
        "step of one part": steps * int(whole > 0),
        "step of two parts": steps * int(others > 0),
        "tap": (whole + others) * taps,
        "turn": turns,
        "clamped": batch * pixels * out_c * ((low, high) != (-128, 127)),
    }
    in_rows, _ = paired_checked.padded(node)
    if in_rows:
        _, in_h, in_w, in_c = node.input(0).shape
        counting.copied(parts, "row of the image", batch * in_h, in_w * in_c)
        counting.copied(parts, "clear", batch, math.prod(paired_checked.padded(node)) * in_c)
    windows_in_fives(parts, node, padded=in_rows > 0)
    counting.add(parts, "step apart", batch * int(rest != 0))
    counting.copied(parts, "apart", batch * int(rest != 0), rest * out_c)
    return parts


def winograd_tiles(node: Node, times: int) -> Parts:
    """What the kernels of Winograd's F(4x4) have in common; inputs are transformed so many times."""
    found, a = winograd_words.rounding(node), attrs_of(node)
    assert isinstance(found, Rounding)
    (batch, in_h, in_w, in_c), (_, out_h, out_w, out_c) = node.input(0).shape, node.output.shape
    low, high = clamp_range(clamp_of(node), node.output.type)
    rows, columns = -(-out_h // 4), -(-out_w // 4)
    tiles, blocks = rows * columns, winograd_words.blocks(node)
    steps = batch * -(-tiles // TOGETHER)
    parts: Parts = {
        "call": 1,
        "step": times * steps,
        "place": times * batch * tiles,
        "transformed pair": times * batch * -(-tiles // 2) * in_c,
        "block": steps * blocks,
        "channel of a block": steps * blocks * in_c,
        "odd block": steps * blocks * (in_c % 2),
        "tile": batch * tiles * out_c,
        "tile that is not all in the image": batch * (tiles - out_h // 4 * (out_w // 4)) * out_c,
        "output of such a tile": batch * (out_h * out_w - 16 * (out_h // 4) * (out_w // 4)) * out_c,
        "clamped": batch * out_h * out_w * out_c * ((low, high) != (-128, 127)),
    }
    along = axis(in_h, rows, 6, 4, 1, a.pad_top), axis(in_w, columns, 6, 4, 1, a.pad_left)
    windows_in_twos(parts, along, times * batch, in_c)
    counting.copied(parts, "clear", int(tiles % TOGETHER != 0), winograd_words.input_bytes(node))
    return parts


def wide_winograd(node: Node) -> Mapping[str, int]:
    """tinyet_conv2d_s8_w16_winograd_f4x4."""
    return winograd_tiles(node, 1)


def winograd(node: Node) -> Mapping[str, int]:
    """tinyet_conv2d_s8_winograd_f4x4."""
    parts = winograd_words.parts(node)
    return winograd_tiles(node, 1 if winograd_words.kept(node) else parts) | {
        "part": parts,
        "transformed block": winograd_words.blocks(node),
        "transformed weights": winograd_words.blocks(node) * node.input(0).shape[3],
    }


COST_MODELS: Mapping[str, CostModel] = {
    **OF_BYTES,
    **OF_PLANES,
    "tinyet_conv2d_s8_packed_words": CostModel(packed_conv2d),
    "tinyet_conv2d_1x1_s8_packed_words": CostModel(packed_rows),
    "tinyet_linear_s8_packed_words": CostModel(packed_rows),
    "tinyet_conv2d_s8_packed_twos": CostModel(twos_conv2d),
    "tinyet_conv2d_1x1_s8_packed_twos": CostModel(twos_rows),
    "tinyet_linear_s8_two_taps": CostModel(two_taps_rows),
    "tinyet_conv2d_s8_4x4": CostModel(conv2d_4x4),
    "tinyet_conv2d_s8_paired_4x2": CostModel(conv2d_paired),
    "tinyet_conv2d_s8_paired_threes_6x4": CostModel(conv2d_paired_threes),
    "tinyet_conv2d_s8_outer_threes_3x4": CostModel(conv2d_outer_threes, exact=weights_of_outer_threes),
    "tinyet_conv2d_s8_paired_threes_6x2": CostModel(conv2d_paired_threes_of_two),
    "tinyet_conv2d_s8_paired_fours_4x1": CostModel(conv2d_paired_fours),
    "tinyet_conv2d_s8_paired_checked_8x1": CostModel(conv2d_paired_checked),
    "tinyet_conv2d_s8_paired_fives_5x2": CostModel(conv2d_paired_fives),
    "tinyet_conv2d_s8_winograd_f4x4": CostModel(winograd),
    "tinyet_conv2d_s8_w16_winograd_f4x4": CostModel(wide_winograd),
}
"""By the kernels' names."""
