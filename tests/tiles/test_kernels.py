# SPDX-License-Identifier: Apache-2.0
"""What kernels with printed tiles say that they cost, and which files they bring."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from benchmarks import kernels
from benchmarks.cost_grids import of_type
from tinyet.boards import Flash
from tinyet.boards.cpus import Target
from tinyet.delegates import CORTEX_M
from tinyet.delegates.cortex_m import (
    conv2d_k8,
    conv2d_tiles,
    depthwise,
    depthwise_3x3,
    int4,
    linear_tiles,
    linear_w4,
)
from tinyet.delegates.cortex_m.conv2d import geometry
from tinyet.delegates.cortex_m.conv2d_tiles import (
    COPIED,
    DIGITS,
    DIGITS_ROWS,
    FOUR,
    PACKED,
    PACKED_WINDOWS,
    SHORT,
    WIDE,
    WIDE_WINDOWS,
    Band,
    Family,
)
from tinyet.delegates.cortex_m.rounding import Form, choose
from tinyet.ir import DType, Node, constant
from tinyet.numerics import quantize_multipliers, requantize
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.linear import Linear
from tinyet.opset import DENSE, Call, Cost, Exact, Kernel
from tinyet.tiles import depthwise_code, patches, planes
from tinyet.tiles.core import ARMV7E_M
from tinyet.tiles.function import function
from tinyet.tiles.tile import Tile, Weights
from tinyet.timing.cores import CORES
from tinyet.timing.work import total

M4, M7, M33 = (Target(cpu, frozenset({"dsp"})) for cpu in ("cortex-m4", "cortex-m7", "cortex-m33"))
POINTWISE = kernels.conv((25, 5, 64), 64, (1, 1))
REACHING = kernels.conv((9, 9, 8), 12, (3, 3))
ODD = kernels.conv((5, 5, 3), 7, (3, 3), relu=False)
"""Odd numbers of pixels, of channels and of input values, and a two-sided rounding."""


MANY_ROWS = kernels.weighted(Linear(kernels.RELU), kernels.activation("x", (125, 64)), (64, 64), True)
"""A fully connected layer of as many rows as that has pixels."""


FEW = (kernels.conv((12, 12, 8), 24, (1, 1)), kernels.conv((5, 5, 3), 7, (1, 1), relu=False))


def kernel_of(symbol: str) -> Kernel:
    return next(k for op in (Conv2d, Linear) for k in CORTEX_M.kernels[op] if k.symbol == symbol)


def stated(
    node: Node, family: Family | linear_tiles.Family | depthwise_3x3.Family | str, target: Target = M4
) -> tuple[Call, Cost, Exact]:
    """family: or the kernel's name."""
    kernel = kernel_of(family if isinstance(family, str) else family.symbol)
    assert kernel.why_not(node, target) is None
    assert kernel.cost_model is not None
    assert kernel.cost_model.exact is not None
    call = kernel.lower(node, target)
    cost = kernel.cost(node, target, call)
    assert cost is not None
    return call, cost, kernel.cost_model.exact(node, DENSE, target.cpu)


OF_ROWS = [
    (node, family)
    for node in (kernels.linear(640, 128), kernels.linear(61, 7))
    for family in (linear_tiles.PACKED, linear_tiles.STRAIGHT, linear_tiles.WIDE)
]


DEPTHWISE = kernels.conv((25, 5, 64), 0, (3, 3))
STRIDED = kernels.conv((48, 48, 16), 0, (3, 3), 2, relu=False)
"""One tile of each group of channels; one of all groups after another, since the output may lie over the input."""
OF_PLANES = [
    *(
        (node, family)
        for node in (DEPTHWISE, STRIDED)
        for family in (depthwise_3x3.BYTES, depthwise_3x3.WIDE)
    ),
    (kernels.conv((12, 12, 32), 0, (5, 5)), "tinyet_depthwise_s8_chw_dsp"),
    *(
        (of_type(kernels.linear(*shape), "s16"), symbol)
        for shape in ((640, 128), (61, 7))
        for symbol in ("tinyet_linear_s16_1x4_dsp", "tinyet_linear_s16_w16_1x4_dsp")
    ),
    *(
        (of_type(node, "s16"), f"tinyet_conv2d_s16{weights}_{form}_4x2_dsp")
        for node in (POINTWISE, REACHING, ODD)
        for weights in ("", "_w16")
        for form in ("direct", "im2col")
    ),
    *((of_type(MANY_ROWS, "s16"), f"tinyet_linear_s16{weights}_4x2_dsp") for weights in ("", "_w16")),
    *((of_type(node, "s16"), "tinyet_depthwise_s16_chw_3x3_dsp") for node in (DEPTHWISE, STRIDED)),
    (of_type(kernels.conv((12, 12, 32), 0, (5, 5)), "s16"), "tinyet_depthwise_s16_chw_dsp"),
]


def narrow(node: Node, least: int = -7) -> Node:
    """The same layer with int4 weights of `least` and more."""
    w = of_type(node, "s8_w4").input(1)
    values = np.where(w.array == -7, least, w.array).astype(np.int8)
    return node.replace(
        inputs=[node.input(0), constant("w", values, w.type.quant, DType.INT4), node.inputs[2]]
    )


OF_INT4 = [
    *((narrow(node, least), DIGITS) for node in (POINTWISE, ODD, REACHING) for least in (-7, -8)),
    (narrow(kernels.conv((8, 8, 5), 6, (3, 3))), DIGITS),
    (narrow(MANY_ROWS), DIGITS_ROWS),
    *((narrow(kernels.linear(*shape)), linear_w4.SYMBOL) for shape in ((640, 128), (61, 7), (4000, 4))),
]


@pytest.mark.parametrize("target", [M4, M7, M33], ids=lambda target: target.cpu)
@pytest.mark.parametrize(
    ("node", "family"),
    [
        *((node, family) for node in (POINTWISE, ODD) for family in (WIDE, PACKED, SHORT, COPIED, FOUR)),
        *((REACHING, family) for family in (WIDE_WINDOWS, PACKED_WINDOWS)),
        *((MANY_ROWS, family) for family in conv2d_tiles.ROWS if family is not DIGITS_ROWS),
        *OF_INT4,
        *((node, conv2d_k8.SYMBOL) for node in FEW),
        *OF_ROWS,
        *OF_PLANES,
    ],
    ids=lambda case: getattr(case, "symbol", ""),
)
def test_what_is_printed_is_what_is_stated(
    node: Node, family: Family | linear_tiles.Family | depthwise_3x3.Family | str, target: Target
) -> None:
    """The files of a call are those of the functions whose code it states, each to the byte."""
    call, cost, exact = stated(node, family, target)
    assert {name for name in call.files if name.endswith(".c")} == {f"{name}.c" for name in exact.functions}
    assert exact.functions.items() <= cost.shared.items()
    # Of weights that are copied nothing is read from where they lie.
    assert (exact.reads.get("read weights", 0) == 0) is (family == COPIED)
    for name, size in exact.functions.items():
        # One instruction a line, of four bytes.
        body = call.files[f"{name}.c"].split("__asm__")[1].split("#else")[0]
        lines = [line for line in body.splitlines() if line.strip().startswith('"')]
        assert size == 4 * sum(not line.endswith(':\\n"') for line in lines)


def test_calls_of_odd_layers_are_counted_one_by_one() -> None:
    """25 pixels of 7 channels: by twos of channels, 12 times two pixels and once one, each for the 6 first channels and
    once more for the last two; by fours, 13 times two pixels, each for the 4 first channels and for the 4 last."""
    g, r = geometry(ODD), conv2d_tiles.chosen_rounding(ODD, WIDE)
    m4 = CORES["cortex-m4"]
    two, one = (function(tile) for tile in conv2d_tiles.tiles_of(g, r, WIDE, ARMV7E_M))
    _, _, exact = stated(ODD, WIDE)
    see_two, see_one = (
        patches.function(p).work(m4, patches.turns_of(p)) for p in conv2d_tiles.patches_of(g, WIDE)
    )
    expected = total(
        [
            *(two.work(m4, 6).times(12), two.work(m4, 2).times(12), one.work(m4, 6), one.work(m4, 2)),
            *(see_two.times(12), see_one),
        ]
    )
    assert exact.instructions == expected.instructions
    assert exact.cycles["cortex-m4"] == expected.cycles
    (packed,) = (function(tile) for tile in conv2d_tiles.tiles_of(g, r, PACKED, ARMV7E_M))
    _, _, exact = stated(ODD, PACKED)
    (see,) = (patches.function(p).work(m4, patches.turns_of(p)) for p in conv2d_tiles.patches_of(g, PACKED))
    assert exact.instructions == 26 * packed.work(m4, 4).instructions + 13 * see.instructions
    (four,) = (function(tile) for tile in conv2d_tiles.tiles_of(g, r, FOUR, ARMV7E_M))
    _, _, exact = stated(ODD, FOUR)
    last = function(conv2d_tiles.last_of(g, r, FOUR, ARMV7E_M)).work(m4, 1)
    assert exact.instructions == 7 * (four.work(m4, 6) + last).instructions + 14 * see.instructions


def test_rows_of_a_fully_connected_layer_are_pixels() -> None:
    """They take the same functions, as often, as those of a pointwise convolution; one row is refused."""
    for rows, pixels in zip(conv2d_tiles.ROWS, (FOUR, PACKED, WIDE, DIGITS), strict=True):
        many, points = (narrow(n) if rows.weights.int4 else n for n in (MANY_ROWS, POINTWISE))
        (call, _, exact), (other, _, same) = stated(many, rows), stated(points, pixels)
        assert exact.instructions == same.instructions
        assert exact.cycles["cortex-m4"] == same.cycles["cortex-m4"]
        assert call.scratch_bytes == other.scratch_bytes
        assert rows.pixels > 1
        one = of_type(kernels.linear(64, 64), "s8_w4" if rows.weights.int4 else "s8")
        assert "output pixels, needs" in str(kernel_of(rows.symbol).why_not(one, M4))


def test_int4_weights_by_which_tile() -> None:
    """A weight of -8 whose digits below are less than zero has no place: nibbles take it. Where sums of a fourth
    channel have more than 20 bits, rows take 64. One or two channels that would be many are a tile of their own."""
    for least, weights in ((-7, Weights.DIGITS), (-8, Weights.NIBBLES)):
        assert conv2d_tiles.of_layer(DIGITS, narrow(POINTWISE, least)).weights is weights
        assert linear_w4.tile_of(narrow(kernels.linear(640, 128), least)).weights is Weights.CROSSED_DIGITS
    assert linear_w4.tile_of(narrow(kernels.linear(4000, 4))).weights is Weights.LONG_DIGITS
    ends = {}
    for count in (4, 5, 6, 7, 14, 18, 21, 25):
        node = narrow(kernels.conv((8, 8, 5), count, (3, 3)))
        g, r = geometry(node), int4.chosen_rounding(node)
        last = conv2d_tiles.has_last(g, DIGITS)
        ends[count] = conv2d_tiles.last_of(g, r, DIGITS, ARMV7E_M).channels if last else 0
    assert ends == {4: 0, 5: 1, 6: 2, 7: 0, 14: 2, 18: 0, 21: 1, 25: 0}


def test_int4_digits_hold_what_they_may() -> None:
    """Of four channels of one weight each: what has a place, and what is too small, or has sums too large."""

    def fits(*weights: int, depth: int = 1) -> bool:
        w, ones = np.tile(np.array(weights, np.int64)[:, None], depth), np.ones(4, np.int64)
        shift = -1 - int(depth).bit_length()
        clamp = -128, 127
        r = choose(w, 0 * ones, 2**30 * ones, shift * ones, 0, clamp, int4.MOST_BEFORE, int4.LEAST_BEFORE)
        return int4.have_signs(r, np.arange(4)[None])

    assert fits(-8, -7, -7, -7)
    assert fits(0, -8, 1, -8)
    assert fits(7, 7, 7, 7)
    assert not fits(0, -8, 0, -8)
    assert not fits(-1, -8, 1, 1)
    assert not fits(-1, 0, -8, 1)
    assert not fits(-1, 0, 0, -8)
    assert fits(7, 7, 7, 7, depth=500)
    assert not fits(7, 7, 7, 7, depth=600)


def test_code_that_a_flash_does_not_keep_is_read_again() -> None:
    """Of 32 pairs by four pixels, whose code is straight: all of it in each turn of the loop over channels, 32 times
    four pixels. Short code is kept."""
    for family, turns in ((FOUR, 32 * 32), (SHORT, 0)):
        _, _, exact = stated(POINTWISE, family)
        (tile,) = (size for name, size in exact.functions.items() if "_tile_" in name)
        assert (tile > 1024) is (turns > 0)
        assert exact.reads["printed code that is read again"] == turns * tile
    # A turn of the loop over pairs that is as long is read again, too.
    deep = stated(kernels.conv((8, 8, 256), 8, (1, 1)), PACKED)[2]
    assert deep.reads["printed code that is read again"] > 1.5 * 32 * 2 * max(deep.functions.values())


def test_rows_lie_in_scratch_with_their_padding() -> None:
    """Of 12 bytes: as many as 512 bytes have room for. Of 528 bytes: those of one output row, of two where a pair of
    pixels may be in two."""
    first = geometry(kernels.conv((49, 10, 1), 64, (10, 4), 2))
    assert conv2d_tiles.band_of(first, PACKED) == Band(outputs=17, rows=42, columns=12)
    assert conv2d_tiles.padded_bytes(first, PACKED) == 42 * 12
    deep = geometry(kernels.conv((16, 16, 32), 64, (3, 3), 2))
    assert conv2d_tiles.band_of(deep, PACKED) == Band(outputs=1, rows=3, columns=17)
    assert conv2d_tiles.padded_bytes(deep, PACKED) == 3 * 17 * 32
    odd = geometry(kernels.conv((16, 18, 32), 64, (3, 3), 2))
    assert conv2d_tiles.band_of(odd, PACKED) == Band(outputs=2, rows=5, columns=19)
    assert conv2d_tiles.padded_bytes(geometry(POINTWISE), PACKED) == 0


def test_windows_lie_in_scratch_with_their_padding() -> None:
    """Two in a row share the columns that both see; two of which one is in the next row do not."""
    deep = geometry(kernels.conv((16, 16, 32), 64, (3, 3), 2))
    assert conv2d_tiles.band_of(deep, PACKED_WINDOWS) == Band(outputs=0, rows=3, columns=5)
    assert conv2d_tiles.padded_bytes(deep, PACKED_WINDOWS) == 3 * 5 * 32
    odd = geometry(kernels.conv((16, 18, 32), 64, (3, 3), 2))
    assert conv2d_tiles.band_of(odd, PACKED_WINDOWS) == Band(outputs=0, rows=3, columns=6)
    kernel = kernel_of(PACKED_WINDOWS.symbol)
    assert kernel.why_not(POINTWISE, M4) == "no less scratch than for rows"


def test_windows_take_less_scratch_and_more_time() -> None:
    first = kernels.conv((49, 10, 1), 64, (10, 4), 2)
    for rows, windows in ((PACKED, PACKED_WINDOWS), (WIDE, WIDE_WINDOWS)):
        (_, of_rows, _), (_, of_windows, _) = (stated(first, family) for family in (rows, windows))
        assert of_windows.scratch < of_rows.scratch / 2
        assert of_rows.time < of_windows.time < 1.15 * of_rows.time


def test_four_pixels_for_few_inputs() -> None:
    """What a layer of many inputs gains by two pixels is less than what one of few inputs loses by them."""
    few, many = (kernels.conv((24, 24, channels), 16, (1, 1)) for channels in (8, 128))
    for node, faster, slower in ((few, FOUR, PACKED), (many, PACKED, FOUR)):
        assert stated(node, faster)[1].time < stated(node, slower)[1].time


@pytest.mark.parametrize("scale", [2.0**-7, 2.0**-5, 2.0**-2, 2.0])
def test_a_rounding_of_any_factor(scale: float) -> None:
    """Of factors of one half and more, and of others in the same layer: what is printed rounds as they are defined."""
    rng = np.random.default_rng(5)
    scales = tuple(scale * rng.uniform(0.5, 4, 6))
    multiplier, shift = quantize_multipliers(np.array(scales))
    depth, zero_point = 5, -3
    r = choose(
        rng.integers(-127, 128, (6, depth)), np.arange(6) * 50, multiplier, shift, zero_point, (-128, 127), 8
    )
    plain = conv2d_tiles.any_factor(r)
    if r.form is not Form.PLAIN:
        assert plain is None
        return
    assert plain is not None
    sums = rng.integers(-depth * 2**14, depth * 2**14, (1000, 6))
    m, offset, right, before, mask = plain.T
    lifted = sums << before
    high = (lifted * m + offset * 2**32 + (lifted >> 31 & mask) * 2**32 + 2**31) >> 32
    want = np.clip(requantize(sums, multiplier, shift) + zero_point, -128, 127)
    assert (np.clip(high >> right, -128, 127) == want).all()


def test_one_channel_is_a_tile_of_its_own() -> None:
    one = kernels.conv((8, 8, 5), 1, (3, 3))
    _, _, exact = stated(one, WIDE)
    assert all("2x1" in name or "patches" in name for name in exact.functions)
    assert kernel_of(PACKED.symbol).why_not(one, M4) == "1 output channels, takes 4 to 3840"


def test_taps_of_one_row_are_taken_for_rows() -> None:
    """Then windows that reach out are copied without what lies between their taps."""
    node = dataclasses.replace(
        kernels.conv((1, 60, 24), 8, (1, 5)), attrs=Conv2d(dilation_w=4, pad_left=8, pad_right=8)
    )
    g = geometry(node)
    (see,) = conv2d_tiles.patches_of(g, PACKED_WINDOWS)
    assert (see.rows, see.taps, see.values, see.given) == (5, 1, 24, True)
    assert conv2d_tiles.padded_bytes(g, PACKED_WINDOWS) == 2 * 5 * 24


def test_rows_of_outputs_that_are_no_whole_fours_are_counted() -> None:
    """Seven outputs: four, and four of which one is the last again."""
    node = kernels.linear(61, 7)
    made = function(linear_tiles.tile_of(node, linear_tiles.PACKED))
    _, _, exact = stated(node, linear_tiles.PACKED)
    assert exact.instructions == 2 * made.work(CORES["cortex-m4"], 4).instructions


def test_more_code_is_for_more_inputs_than_a_turn_has() -> None:
    few = kernels.linear(32, 8)
    assert kernel_of(linear_tiles.PACKED.symbol).why_not(few, M4) is None
    assert "16 pairs of inputs" in str(kernel_of(linear_tiles.STRAIGHT.symbol).why_not(few, M4))
    deep = kernels.linear(640, 128)
    short, long = (stated(deep, family)[2] for family in (linear_tiles.PACKED, linear_tiles.STRAIGHT))
    assert long.cycles["cortex-m4"] < short.cycles["cortex-m4"]
    assert sum(long.functions.values()) > sum(short.functions.values())


def test_more_instructions_may_be_fewer_cycles() -> None:
    """Of DS-CNN's pointwise layers: loads of several registers are one instruction, loads side by side a cycle each."""
    (_, _, wide), (_, _, packed) = (stated(POINTWISE, family) for family in (WIDE, PACKED))
    assert packed.instructions > 1.3 * wide.instructions
    assert packed.cycles["cortex-m4"] < 0.9 * wide.cycles["cortex-m4"]


def test_a_core_of_two_issues_has_functions_of_its_own() -> None:
    """Their names say so; both orders have the same weights, and the core's own takes less of its time."""
    for node, family in (
        (POINTWISE, PACKED),
        (POINTWISE, WIDE),
        (kernels.linear(640, 128), linear_tiles.PACKED),
    ):
        (m4, _, other), (m7, cost, own) = (stated(node, family, target) for target in (M4, M7))
        assert all(name.endswith("_m7") for name in own.functions if name.startswith("tinyet_tile_"))
        assert (m4.constants[0].data == m7.constants[0].data).all()
        assert own.cycles["cortex-m7"] < 0.85 * other.cycles["cortex-m7"]
        assert cost.cycles is not None
        assert own.cycles["cortex-m7"] < cost.cycles
        assert "cortex-m4" not in own.cycles


def test_layers_with_equal_tiles_share_them() -> None:
    other = kernels.conv((10, 5, 64), 64, (1, 1))
    assert stated(POINTWISE, PACKED)[0].files == stated(other, PACKED)[0].files
    strided = dataclasses.replace(
        conv2d_tiles.tile_of(geometry(other), conv2d_tiles.chosen_rounding(other, PACKED), PACKED),
        step=80,
    )
    assert strided.name not in str(stated(other, PACKED)[0].files)


def test_output_rows_and_planes_are_counted_tile_by_tile() -> None:
    """25x5 along the height, two channels at a time: 32 times five rows, twice two and one alone. 48x48, stride 2: tile
    after tile of all four groups, each of which widens its rows anew; the first tile's first row is above the image."""
    m4 = CORES["cortex-m4"]

    def expected(node: Node, groups: int) -> tuple[int, int, int]:
        """Instructions, tiles, and rows of the planes that are in the image."""
        g, r = depthwise.cheapest(node, three=True), depthwise.rounding_of(node)
        rows, filled = depthwise_3x3.rows_of(node, g, r), depthwise.planes_of(g)
        assert filled is not None
        inside = depthwise.filled_rows(g)
        counts = [min(g.tile, g.v.out - top) for top in range(0, g.v.out, g.tile)]
        done = [depthwise_code.function(rows).work(m4, depthwise_code.turns_of(rows, n)) for n in counts]
        done += [planes.function(filled).work(m4, planes.turns_of(filled, n)) for n in inside]
        return groups * sum(work.instructions for work in done), len(counts), sum(inside)

    instructions, *rest = expected(DEPTHWISE, 32)
    assert rest == [1, 5]
    assert stated(DEPTHWISE, depthwise_3x3.BYTES)[2].instructions == instructions
    instructions, tiles, rows = expected(STRIDED, 4)
    assert (tiles > 1, rows) == (True, 3 * tiles - 1 + (24 - tiles) * 2)
    assert stated(STRIDED, depthwise_3x3.BYTES)[2].instructions == instructions


def test_strides_are_in_the_code() -> None:
    """Layers of one shape share both functions; where pixels are further apart, they are others."""
    kernel = kernel_of(depthwise_3x3.WIDE.symbol)
    assert kernel.layout_support is not None
    dense = kernel.lower(DEPTHWISE, M4)
    apart = kernel.layout_support.lower(DEPTHWISE, M4, dataclasses.replace(DENSE, input=96, output=80))
    assert not set(dense.files) & set(apart.files)
    assert dense.files == kernel.lower(kernels.conv((25, 5, 64), 0, (3, 3)), M4).files


def test_turns_leave_little_before_the_loop() -> None:
    """32 pairs are two and three turns of ten; 15 one, and two turns of seven; what is short has no loop."""
    turns = {pairs: SHORT.turn_of(pairs) for pairs in (1, 14, 15, 16, 20, 32, 72, 144)}
    assert turns == {1: 1, 14: 13, 15: 7, 16: 7, 20: 9, 32: 10, 72: 10, 144: 13}
    for pairs in range(1, 500):
        tile = Tile(2, 4, PACKED.weights, pairs, 12, 8, straight=SHORT.straight, turn=SHORT.turn_of(pairs))
        assert tile.before + (tile.turn if tile.turns else 0) <= SHORT.straight
        assert tile.before + tile.turns * tile.turn == pairs
    tile = conv2d_tiles.tile_of(geometry(POINTWISE), conv2d_tiles.chosen_rounding(POINTWISE, SHORT), SHORT)
    assert (tile.before, tile.turns, tile.turn) == (2, 3, 10)


def test_short_code_leaves_room_for_what_is_around_it() -> None:
    """In a kilobyte, beside what gathers a window of three rows of nine values, for a band's wrapper."""
    first = kernels.conv((48, 48, 3), 8, (3, 3), 2)
    for family in (SHORT, COPIED):
        assert sum(stated(first, family)[2].functions.values()) <= 960


def test_what_a_flash_decides() -> None:
    """Short code takes longer, and is read faster where each line of the flash lets the core wait; weights in RAM let
    it wait for nothing."""
    waiting = dataclasses.replace(M4, flash=Flash(5, 16, 64, 8, prefetch=True))

    def cycles(family: Family, target: Target) -> int:
        kernel = kernel_of(family.symbol)
        cost = kernel.cost(POINTWISE, target, kernel.lower(POINTWISE, target))
        assert cost is not None
        assert cost.cycles is not None
        return cost.cycles

    assert cycles(PACKED, M4) < cycles(SHORT, M4) < cycles(WIDE, M4)
    assert cycles(SHORT, M4) < cycles(COPIED, M4)
    assert cycles(COPIED, waiting) < cycles(SHORT, waiting)
    assert cycles(SHORT, waiting) < min(cycles(PACKED, waiting), cycles(WIDE, waiting))
