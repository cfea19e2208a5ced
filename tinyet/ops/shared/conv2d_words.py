# SPDX-License-Identifier: Apache-2.0
"""Kernels of int8 convolutions for cores whose only products are of 32 or 64 bits (tinyet_packed_words.h,
tinyet_packed_twos.h, tinyet_conv2d_paired.h, tinyet_conv2d_paired_6x2.h, tinyet_conv2d_outer.h,
tinyet_conv2d_winograd.h, tinyet_depthwise_planes.h), and for those that multiply bytes (tinyet_byte_products.h)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tinyet.boards.cpus import Target
from tinyet.ir import Node
from tinyet.ops.shared import (
    byte_products,
    depthwise_planes,
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
from tinyet.ops.shared.access_orders import by_copied_vectors, of_input, pixel_walk, window_walk
from tinyet.ops.shared.convolution import HEADERS, attrs_of, refuse_depthwise, shape_struct
from tinyet.ops.shared.cost_models_words import COST_MODELS
from tinyet.ops.shared.winograd import by_tiles
from tinyet.opset import (
    AccessOrder,
    Call,
    Constant,
    FieldValue,
    Kernel,
    Pointer,
    Struct,
    library_call,
    with_cost_models,
)

ONE_PRODUCT = ("tinyet_one_product.h",)
PACKED_WORDS = (*HEADERS, "tinyet_packed_words.h")
PACKED_TWOS = (*PACKED_WORDS, "tinyet_packed_twos.h")
BYTES = (*PACKED_WORDS, "tinyet_byte_products.h")
WINOGRAD = (*HEADERS, *ONE_PRODUCT, "tinyet_conv2d_winograd.h")
PAIRED = (*HEADERS, *ONE_PRODUCT, "tinyet_conv2d_paired.h")
OUTER = (*HEADERS, *ONE_PRODUCT, "tinyet_straight.h", "tinyet_conv2d_outer.h")


def shaped_call(
    symbol: str, node: Node, fields: Mapping[str, FieldValue], constants: Sequence[Constant], scratch: int
) -> Call:
    """A library kernel whose params begin with the shape; of int8."""
    params = Struct(f"{symbol}_params", {"shape": shape_struct(node), **fields})
    return library_call(symbol, node, [0], params, constants, scratch)


def packed_words_call(symbol: str, node: Node) -> Call:
    fields = {"shape": shape_struct(node), "words": packed_words.fields(node)}
    params = Struct("tinyet_conv2d_s8_packed_words_params", fields)
    constants = (packed_words.stream(node),)
    return library_call(symbol, node, [0], params, constants, packed_words.patch_bytes(node))


def lower_packed_words(node: Node, _target: Target) -> Call:
    return packed_words_call("tinyet_conv2d_s8_packed_words", node)


def lower_1x1_packed_words(node: Node, _target: Target) -> Call:
    return packed_words_call("tinyet_conv2d_1x1_s8_packed_words", node)


def lower_depthwise_planes(node: Node, target: Target) -> Call:
    # Only the assembly for Xtensa has planes of several channels, and extends weights.
    xtensa = target.family == "xtensa"
    fields, constants = (
        {"words": packed_words.fields(node)},
        [packed_words.plane_stream(node, by_bytes=xtensa)],
    )
    scratch = depthwise_planes.scratch_bytes(node) if xtensa else packed_words.plane_bytes(node)
    return shaped_call("tinyet_depthwise_s8_chw_3x3", node, fields, constants, scratch)


def packed_twos_call(symbol: str, node: Node) -> Call:
    fields = {"shape": shape_struct(node), **packed_twos.fields(node)}
    params = Struct("tinyet_conv2d_s8_packed_twos_params", fields)
    return library_call(symbol, node, [0], params, (packed_twos.stream(node),), packed_twos.patch_bytes(node))


def lower_packed_twos(node: Node, _target: Target) -> Call:
    return packed_twos_call("tinyet_conv2d_s8_packed_twos", node)


def lower_1x1_packed_twos(node: Node, _target: Target) -> Call:
    return packed_twos_call("tinyet_conv2d_1x1_s8_packed_twos", node)


def lower_depthwise_twos(node: Node, _target: Target) -> Call:
    fields, constants = packed_twos.plane_fields(node), [packed_twos.plane_stream(node)]
    scratch = packed_twos.plane_bytes(node)
    return shaped_call("tinyet_depthwise_s8_chw_3x3_twos", node, fields, constants, scratch)


def lower_4x4(node: Node, _target: Target) -> Call:
    words = packed_words.fields(node, above=0)
    fields: dict[str, FieldValue] = {"words": words, "weights": Pointer("weights")}
    constants, scratch = packed_words.block_constants(node), packed_words.block_bytes(node)
    return shaped_call("tinyet_conv2d_s8_4x4", node, fields, constants, scratch)


def lower_paired(node: Node, _target: Target) -> Call:
    constants, scratch = paired.constants(node), paired.scratch_bytes(node)
    return shaped_call("tinyet_conv2d_s8_paired_4x2", node, paired.fields(node), constants, scratch)


def lower_paired_threes(node: Node, target: Target) -> Call:
    # The assembly for RISC-V has no direct tiles: it multiplies sums by unsigned numbers, and clamps them by branches.
    riscv = target.family == "riscv"
    turn = paired_threes.TURN if riscv else paired_threes.THUMB_TURN
    constants = paired_threes.constants(node, with_direct=not riscv, turn=turn)
    scratch = paired_threes.scratch_bytes(node)
    fields = paired_threes.fields(node)
    return shaped_call("tinyet_conv2d_s8_paired_threes_6x4", node, fields, constants, scratch)


def lower_outer_threes(node: Node, _target: Target) -> Call:
    constants, scratch = outer_threes.constants(node), outer_threes.scratch_bytes(node)
    return shaped_call(
        "tinyet_conv2d_s8_outer_threes_3x4", node, paired_threes.fields(node), constants, scratch
    )


def lower_paired_threes_of_two(node: Node, _target: Target) -> Call:
    fields: dict[str, FieldValue] = {
        "words": packed_words.fields(node, above=0),
        "weights": Pointer("weights"),
    }
    constants, scratch = paired_twos.constants(node), paired_threes.scratch_bytes(node)
    return shaped_call("tinyet_conv2d_s8_paired_threes_6x2", node, fields, constants, scratch)


def lower_paired_fours(node: Node, _target: Target) -> Call:
    constants, scratch = paired.constants_in_fours(node), paired.scratch_bytes_in_fours(node)
    return shaped_call("tinyet_conv2d_s8_paired_fours_4x1", node, paired.fields(node), constants, scratch)


def lower_paired_checked(node: Node, _target: Target) -> Call:
    fields, constants = paired_checked.fields(node), [paired_checked.stream(node)]
    scratch = paired_checked.scratch_bytes(node)
    return shaped_call("tinyet_conv2d_s8_paired_checked_8x1", node, fields, constants, scratch)


def lower_paired_fives(node: Node, _target: Target) -> Call:
    fields, constants = paired_fives.fields(node), [paired_fives.stream(node)]
    scratch = paired_fives.scratch_bytes(node)
    return shaped_call("tinyet_conv2d_s8_paired_fives_5x2", node, fields, constants, scratch)


def lower_winograd(node: Node, _target: Target) -> Call:
    fields, constants = winograd_words.fields(node), winograd_words.constants(node)
    scratch = winograd_words.scratch_bytes(node)
    return shaped_call("tinyet_conv2d_s8_winograd_f4x4", node, fields, constants, scratch)


def lower_wide_winograd(node: Node, _target: Target) -> Call:
    fields, constants = winograd_words.wide_fields(node), winograd_words.wide_constants(node)
    scratch = winograd_words.wide_scratch_bytes(node)
    return shaped_call("tinyet_conv2d_s8_w16_winograd_f4x4", node, fields, constants, scratch)


def lower_depthwise_2x1(node: Node, _target: Target) -> Call:
    fields, scratch = depthwise_planes.fields_of_2x1(node), depthwise_planes.scratch_bytes(node)
    constants = depthwise_planes.constants(node)
    return shaped_call("tinyet_depthwise_s8_chw_3x3_2x1", node, fields, constants, scratch)


def lower_depthwise_columns_2x1(node: Node, _target: Target) -> Call:
    fields, scratch = depthwise_planes.fields_of_2x1(node), depthwise_planes.scratch_bytes(node)
    constants = depthwise_planes.constants(node, transposed=True)
    return shaped_call("tinyet_depthwise_s8_cwh_3x3_2x1", node, fields, constants, scratch)


def lower_depthwise_threes(node: Node, _target: Target) -> Call:
    fields = {**depthwise_planes.fields(node), "weights": Pointer("weights")}
    constants, scratch = (
        depthwise_planes.constants_of_threes(node),
        depthwise_planes.scratch_bytes_of_threes(node),
    )
    return shaped_call("tinyet_depthwise_s8_chw_3x3_threes", node, fields, constants, scratch)


def lower_depthwise_fives(node: Node, _target: Target) -> Call:
    fields = {**depthwise_planes.fields(node), "weights": Pointer("weights")}
    constants, scratch = (
        depthwise_planes.constants_of_fives(node),
        depthwise_planes.scratch_bytes_of_fives(node),
    )
    return shaped_call("tinyet_depthwise_s8_chw_3x3_fives", node, fields, constants, scratch)


def lower_bytes(node: Node, _target: Target) -> Call:
    fields: dict[str, FieldValue] = {"words": byte_products.words(node), "weights": Pointer("weights")}
    constants = byte_products.stream(node), byte_products.lifted(node)
    scratch = byte_products.patch_bytes(node)
    return shaped_call("tinyet_conv2d_s8_bytes_4x1", node, fields, constants, scratch)


def depthwise_bytes_call(symbol: str, node: Node) -> Call:
    fields: dict[str, FieldValue] = {"words": byte_products.words(node), "weights": Pointer("weights")}
    constants = byte_products.stream(node), byte_products.signed(node)
    fields = {"shape": shape_struct(node), **fields}
    params = Struct("tinyet_depthwise_s8_bytes_params", fields)
    return library_call(symbol, node, [0], params, constants, packed_words.plane_bytes(node))


def lower_depthwise_bytes(node: Node, _target: Target) -> Call:
    return depthwise_bytes_call("tinyet_depthwise_s8_bytes", node)


def lower_depthwise_bytes_3x3(node: Node, _target: Target) -> Call:
    return depthwise_bytes_call("tinyet_depthwise_s8_bytes_3x3", node)


def refuse_groups(node: Node, _target: Target) -> str | None:
    return None if attrs_of(node).groups == 1 else "only one group"


def refuse_1x1(node: Node, _target: Target) -> str | None:
    attrs = attrs_of(node)
    if node.input(1).shape[1:3] != (1, 1) or attrs.groups != 1:
        return "only 1x1 kernels of one group"
    if (attrs.stride_h, attrs.stride_w) != (1, 1) or node.input(0).shape[1:3] != node.output.shape[1:3]:
        return "only stride 1 without padding"
    return None


def refuse_packed_words(node: Node, target: Target) -> str | None:
    return refuse_groups(node, target) or packed_words.refuse(node)


def refuse_paired(node: Node, target: Target) -> str | None:
    return refuse_groups(node, target) or paired.refuse(node)


def refuse_paired_threes(node: Node, target: Target) -> str | None:
    return refuse_groups(node, target) or paired_threes.refuse(node)


def refuse_paired_fours(node: Node, target: Target) -> str | None:
    return refuse_groups(node, target) or paired.refuse_in_fours(node)


def refuse_paired_checked(node: Node, target: Target) -> str | None:
    return refuse_groups(node, target) or paired_checked.refuse(node)


def refuse_paired_fives(node: Node, target: Target) -> str | None:
    return refuse_groups(node, target) or paired_fives.refuse(node)


def refuse_winograd(node: Node, _target: Target) -> str | None:
    return winograd_words.refuse(node)


def refuse_1x1_packed_words(node: Node, target: Target) -> str | None:
    return refuse_1x1(node, target) or packed_words.refuse(node)


def refuse_packed_twos(node: Node, target: Target) -> str | None:
    return refuse_groups(node, target) or packed_twos.refuse(node)


def refuse_1x1_packed_twos(node: Node, target: Target) -> str | None:
    return refuse_1x1(node, target) or packed_twos.refuse(node)


def refuse_depthwise_3x3(node: Node, target: Target) -> str | None:
    attrs = attrs_of(node)
    if node.input(1).shape[1:3] != (3, 3) or (attrs.dilation_h, attrs.dilation_w) != (1, 1):
        return "only 3x3 without dilation"
    return refuse_depthwise(node, target)


def refuse_depthwise_planes(node: Node, target: Target) -> str | None:
    return refuse_depthwise_3x3(node, target) or packed_words.refuse(node)


def refuse_depthwise_twos(node: Node, target: Target) -> str | None:
    return refuse_depthwise_3x3(node, target) or packed_twos.refuse_planes(node)


def refuse_bytes(node: Node, target: Target) -> str | None:
    return refuse_groups(node, target) or byte_products.refuse(node, byte_products.patch_bytes(node))


def refuse_depthwise_bytes(node: Node, target: Target) -> str | None:
    attrs, (_, kernel_h, kernel_w, _) = attrs_of(node), node.input(1).shape
    if (attrs.dilation_h, attrs.dilation_w) != (1, 1):
        return "only without dilation"
    if kernel_h * kernel_w > 255:
        return "more taps than a byte counts"
    return refuse_depthwise(node, target) or byte_products.refuse(node, packed_words.plane_bytes(node))


def refuse_depthwise_bytes_3x3(node: Node, target: Target) -> str | None:
    return refuse_depthwise_3x3(node, target) or byte_products.refuse(node, packed_words.plane_bytes(node))


def refuse_depthwise_2x1(node: Node, target: Target) -> str | None:
    return refuse_depthwise_3x3(node, target) or depthwise_planes.refuse(node)


def refuse_depthwise_threes(node: Node, target: Target) -> str | None:
    return refuse_depthwise_3x3(node, target) or depthwise_planes.refuse_threes(node)


def refuse_depthwise_fives(node: Node, target: Target) -> str | None:
    return refuse_depthwise_3x3(node, target) or depthwise_planes.refuse_fives(node)


@of_input
def by_summed_pixels(node: Node) -> AccessOrder:
    """A pixel's sums are complete before any of them is written."""
    return window_walk(node).by_pixels(gathered=True)


@of_input
def by_strips(node: Node) -> AccessOrder:
    """Windows of a row's neighbouring pixels are copied before these are written."""
    walk = window_walk(node)
    return walk.by_pixels(packed_twos.strip(node), walk.row, gathered=True)


@of_input
def by_strips_of_vectors(node: Node) -> AccessOrder:
    """The same of neighbouring pixels of an image."""
    return pixel_walk(node).by_pixels(packed_twos.strip(node), gathered=True)


@of_input
def by_three_pixels(node: Node) -> AccessOrder:
    """Three pixels' patches are copied before these are written."""
    return window_walk(node).by_pixels(3, gathered=True)


@of_input
def by_four_pixels(node: Node) -> AccessOrder:
    """Four pixels' patches are copied before these are written."""
    return window_walk(node).by_pixels(4, gathered=True)


@of_input
def by_five_pixels(node: Node) -> AccessOrder:
    """Five pixels' patches are copied before these are written."""
    return window_walk(node).by_pixels(5, gathered=True)


@of_input
def by_six_pixels(node: Node) -> AccessOrder:
    """Six pixels' patches are copied before these are written."""
    return window_walk(node).by_pixels(6, gathered=True)


@of_input
def by_eight_pixels(node: Node) -> AccessOrder:
    """Eight pixels' patches are copied before these are written."""
    return window_walk(node).by_pixels(8, gathered=True)


def by_tiles_once(node: Node, index: int) -> AccessOrder | None:
    """By tiles of F(4x4), unless inputs are read once more for each part of the output channels."""
    once = winograd_words.kept(node) > 0 or winograd_words.parts(node) == 1
    return by_tiles(4)(node, index) if once else None


def by_channels(node: Node, index: int) -> bool:
    """A channel's image is copied before its outputs, which lie where it lay, are written: of an output that begins
    where the input does, value c of any pixel lies where value c of another did. Images behind it are not smaller."""
    return index == 0 and node.output.type.bytes <= node.input(0).type.bytes


KERNELS = with_cost_models(
    (
        Kernel(
            "tinyet_conv2d_1x1_s8_packed_words",
            "s8",
            lower_1x1_packed_words,
            PACKED_WORDS,
            ("tinyet_conv2d_s8_packed_words.c", "tinyet_packed_words.c"),
            refuse_1x1_packed_words,
            access_order=by_copied_vectors,
        ),
        Kernel(
            "tinyet_conv2d_s8_packed_words",
            "s8",
            lower_packed_words,
            PACKED_WORDS,
            ("tinyet_conv2d_s8_packed_words.c", "tinyet_packed_words.c"),
            refuse_packed_words,
            access_order=by_summed_pixels,
        ),
        Kernel(
            "tinyet_conv2d_s8_paired_4x2",
            "s8",
            lower_paired,
            PAIRED,
            ("tinyet_conv2d_s8_paired_4x2.c",),
            refuse_paired,
            access_order=by_four_pixels,
        ),
        Kernel(
            "tinyet_conv2d_s8_paired_threes_6x4",
            "s8",
            lower_paired_threes,
            (*PAIRED, "tinyet_straight.h"),
            ("tinyet_conv2d_s8_paired_threes_6x4.c",),
            refuse_paired_threes,
            access_order=by_six_pixels,
        ),
        Kernel(
            "tinyet_conv2d_s8_outer_threes_3x4",
            "s8",
            lower_outer_threes,
            OUTER,
            ("tinyet_conv2d_s8_outer_threes_3x4.c",),
            refuse_paired_threes,
            access_order=by_three_pixels,
        ),
        Kernel(
            "tinyet_conv2d_s8_paired_threes_6x2",
            "s8",
            lower_paired_threes_of_two,
            (*PACKED_WORDS, "tinyet_conv2d_paired_6x2.h"),
            ("tinyet_conv2d_s8_paired_threes_6x2.c",),
            refuse_packed_words,
            access_order=by_six_pixels,
        ),
        Kernel(
            "tinyet_conv2d_s8_paired_fours_4x1",
            "s8",
            lower_paired_fours,
            PAIRED,
            ("tinyet_conv2d_s8_paired_fours_4x1.c",),
            refuse_paired_fours,
            access_order=by_four_pixels,
        ),
        Kernel(
            "tinyet_conv2d_s8_paired_checked_8x1",
            "s8",
            lower_paired_checked,
            PAIRED,
            ("tinyet_conv2d_s8_paired_checked_8x1.c",),
            refuse_paired_checked,
            access_order=by_eight_pixels,
        ),
        Kernel(
            "tinyet_conv2d_s8_paired_fives_5x2",
            "s8",
            lower_paired_fives,
            PAIRED,
            ("tinyet_conv2d_s8_paired_fives_5x2.c",),
            refuse_paired_fives,
            access_order=by_five_pixels,
        ),
        Kernel(
            "tinyet_conv2d_s8_winograd_f4x4",
            "s8",
            lower_winograd,
            WINOGRAD,
            ("tinyet_conv2d_s8_winograd_f4x4.c",),
            refuse_winograd,
            access_order=by_tiles_once,
        ),
        Kernel(
            "tinyet_conv2d_s8_w16_winograd_f4x4",
            "s8",
            lower_wide_winograd,
            WINOGRAD,
            ("tinyet_conv2d_s8_winograd_f4x4.c",),
            refuse_winograd,
            access_order=by_tiles(4),
        ),
        Kernel(
            "tinyet_conv2d_1x1_s8_packed_twos",
            "s8",
            lower_1x1_packed_twos,
            PACKED_TWOS,
            ("tinyet_conv2d_s8_packed_twos.c",),
            refuse_1x1_packed_twos,
            access_order=by_strips_of_vectors,
        ),
        Kernel(
            "tinyet_conv2d_s8_packed_twos",
            "s8",
            lower_packed_twos,
            PACKED_TWOS,
            ("tinyet_conv2d_s8_packed_twos.c",),
            refuse_packed_twos,
            access_order=by_strips,
        ),
        Kernel(
            "tinyet_conv2d_s8_4x4",
            "s8",
            lower_4x4,
            (*PACKED_WORDS, "tinyet_conv2d_4x4.h"),
            ("tinyet_conv2d_s8_4x4.c",),
            refuse_packed_words,
            access_order=by_four_pixels,
        ),
        Kernel(
            "tinyet_depthwise_s8_chw_3x3_2x1",
            "s8",
            lower_depthwise_2x1,
            (*HEADERS, *ONE_PRODUCT, "tinyet_depthwise_planes.h"),
            ("tinyet_depthwise_s8_chw_3x3_2x1.c",),
            refuse_depthwise_2x1,
            replaces=by_channels,
        ),
        Kernel(
            "tinyet_depthwise_s8_cwh_3x3_2x1",
            "s8",
            lower_depthwise_columns_2x1,
            (*HEADERS, *ONE_PRODUCT, "tinyet_depthwise_planes.h"),
            ("tinyet_depthwise_s8_chw_3x3_2x1.c",),
            refuse_depthwise_2x1,
            replaces=by_channels,
        ),
        Kernel(
            "tinyet_depthwise_s8_chw_3x3_threes",
            "s8",
            lower_depthwise_threes,
            (*HEADERS, *ONE_PRODUCT, "tinyet_depthwise_planes.h"),
            ("tinyet_depthwise_s8_chw_3x3_threes.c",),
            refuse_depthwise_threes,
            replaces=by_channels,
        ),
        Kernel(
            "tinyet_depthwise_s8_chw_3x3_fives",
            "s8",
            lower_depthwise_fives,
            (*HEADERS, *ONE_PRODUCT, "tinyet_depthwise_planes.h"),
            ("tinyet_depthwise_s8_chw_3x3_fives.c",),
            refuse_depthwise_fives,
            replaces=by_channels,
        ),
        Kernel(
            "tinyet_depthwise_s8_chw_3x3",
            "s8",
            lower_depthwise_planes,
            PACKED_WORDS,
            ("tinyet_depthwise_s8_chw_3x3.c",),
            refuse_depthwise_planes,
            replaces=by_channels,
        ),
        Kernel(
            "tinyet_depthwise_s8_chw_3x3_twos",
            "s8",
            lower_depthwise_twos,
            PACKED_TWOS,
            ("tinyet_depthwise_s8_chw_3x3_twos.c",),
            refuse_depthwise_twos,
            replaces=by_channels,
        ),
        Kernel(
            "tinyet_conv2d_s8_bytes_4x1",
            "s8",
            lower_bytes,
            BYTES,
            ("tinyet_conv2d_s8_bytes_4x1.c",),
            refuse_bytes,
            access_order=by_four_pixels,
            first_on="avr",
        ),
        Kernel(
            "tinyet_depthwise_s8_bytes",
            "s8",
            lower_depthwise_bytes,
            BYTES,
            ("tinyet_depthwise_s8_bytes.c",),
            refuse_depthwise_bytes,
            replaces=by_channels,
            first_on="avr",
        ),
        Kernel(
            "tinyet_depthwise_s8_bytes_3x3",
            "s8",
            lower_depthwise_bytes_3x3,
            BYTES,
            ("tinyet_depthwise_s8_bytes.c",),
            refuse_depthwise_bytes_3x3,
            replaces=by_channels,
            first_on="avr",
        ),
    ),
    COST_MODELS,
)
