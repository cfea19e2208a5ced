# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the layers with constant weights: the library's structs, their constants, and its limits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cmsis_nn.buffer_sizes import Code
from tinyet.delegates.cmsis_nn.wrapper import Local, checked, context, delegated_call, dims, pair
from tinyet.ir import Array, Node
from tinyet.numerics import Int64, clamp_range
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.convolution import attrs_of
from tinyet.ops.shared.factors import output_factors
from tinyet.ops.shared.integers import magnitudes
from tinyet.ops.shared.weighted import int_bias
from tinyet.ops.shared.window import Window
from tinyet.opset import Call, Constant

MOST_PIXELS = 32767
"""Sizes and positions are int16 in some of the library's loops."""

MOST_SUM = 2**30
"""Upper limit of a sum times its power of two: see build_options.h in library.py."""

SUM_REASON = "sums, rescaled to the output, could leave 31 bits"

MVE_WEIGHTS_BYTES = 16
"""The matrix products for MVE load the next sixteen weights before they know that there are none."""


def refuse_sizes(node: Node) -> str | None:
    """Of images and weights."""
    for shape in (node.input(0).shape, node.input(1).shape, node.output.shape):
        if max(shape) > MOST_PIXELS:
            return f"a dimension of {max(shape)}, the library counts to {MOST_PIXELS}"
    return None


def refuse_sums(node: Node) -> str | None:
    """Sums as far as they can go; the library shifts them left before it multiplies them."""
    bound = 255 * magnitudes(node.input(1).array) + np.abs(int_bias(node))
    _, shift = output_factors(node)
    return SUM_REASON if np.any(bound << np.maximum(shift, 0) >= MOST_SUM) else None


def refuse_weighted(node: Node) -> str | None:
    return refuse_sizes(node) or refuse_sums(node)


def refuse_several_scales(node: Node, _target: Target) -> str | None:
    """Of a function that knows one scale for all weights."""
    quant = node.input(1).type.quant
    assert quant is not None
    return "only one scale for all weights" if len(set(quant.scale)) > 1 else refuse_weighted(node)


def refuse_groups(groups: int, channels: int) -> str | None:
    """Of a depthwise function, with any number of output channels a group."""
    one_each = groups == channels and groups > 1
    return None if one_each else "only one input channel a group, several groups"


def weighted_constants(
    node: Node, weights: Array, code: Code, bias_name: str = "bias"
) -> tuple[Constant, ...]:
    """weights, bias, multiplier and shift of each output channel; always with a bias, for not all code does without.

    The code for MVE reads whole vectors: there the arrays are longer by what it reads and does not use.
    """
    bias, flat = int_bias(node), weights.reshape(-1)
    if code is Code.MVE:
        flat, bias = np.pad(flat, (0, MVE_WEIGHTS_BYTES)), np.pad(bias, (0, -len(bias) % 4))
    shape = "x".join(map(str, weights.shape))
    factors = factor_constants(*output_factors(node), code)
    return Constant("weights", flat, shape), Constant("bias", bias.astype(np.int32)), *factors


def convolution_locals(
    node: Node,
    attrs: Window,
    input_hw: tuple[int, int],
    pad: tuple[int, int],
    stride: tuple[int, int],
    *,
    multiplier: int | None = None,
) -> list[Local]:
    """The structs `params`, `quant`, `input_dims`, `filter_dims`, `bias_dims` and `output_dims`.

    input_hw, pad, stride: of the rows, then of the columns; pad: above and on the left. multiplier: output channels a
    group of a depthwise convolution, None for an ordinary one.
    """
    batch, _, _, in_c = node.input(0).shape
    _, out_h, out_w, out_c = node.output.shape
    _, kernel_h, kernel_w, group_c = node.input(1).shape
    low, high = clamp_range(clamp_of(node), node.output.type)
    # A kernel of one tap has no dilation; the short functions want to see a 1.
    dilation = (attrs.dilation_h if kernel_h > 1 else 1, attrs.dilation_w if kernel_w > 1 else 1)
    fields = [
        ("input offset", str(-node.input(0).type.zero_point)),
        ("output offset", str(node.output.type.zero_point)),
        *([("multiplier", str(multiplier))] if multiplier is not None else []),
        ("stride w, h", pair(stride[1], stride[0])),
        ("padding", pair(pad[1], pad[0])),
        ("dilation", pair(dilation[1], dilation[0])),
        ("clamp", pair(low, high)),
    ]
    depthwise = multiplier is not None
    filters = (1, kernel_h, kernel_w, out_c) if depthwise else (out_c, kernel_h, kernel_w, group_c)
    return [
        Local("cmsis_nn_dw_conv_params" if depthwise else "cmsis_nn_conv_params", "params", tuple(fields)),
        quant_local(),
        dims("input_dims", batch, *input_hw, in_c),
        dims("filter_dims", *filters),
        dims("bias_dims", 1, 1, 1, out_c),
        dims("output_dims", batch, out_h, out_w, out_c),
    ]


def image_locals(node: Node, multiplier: int | None = None) -> list[Local]:
    """convolution_locals of a convolution as it stands."""
    a, (_, in_h, in_w, _) = attrs_of(node), node.input(0).shape
    pads, strides = (a.pad_top, a.pad_left), (a.stride_h, a.stride_w)
    return convolution_locals(node, a, (in_h, in_w), pads, strides, multiplier=multiplier)


def factor_constants(multiplier: Int64, shift: Int64, code: Code) -> tuple[Constant, ...]:
    """multiplier and shift of each channel, as long as the code for MVE reads them."""
    missing = -len(multiplier) % 4 if code is Code.MVE else 0
    named = (("multiplier", multiplier), ("shift", shift))
    return tuple(Constant(name, np.pad(values, (0, missing)).astype(np.int32)) for name, values in named)


def quant_local() -> Local:
    """The library's struct is not const, its contents are only read."""
    fields = (("", "(int32_t *)multiplier"), ("", "(int32_t *)shift"))
    return Local("cmsis_nn_per_channel_quant_params", "quant", fields)


def per_tensor_quant(multiplier: int, shift: int) -> Local:
    """`quant` of a function that knows one factor."""
    fields = (("multiplier", str(multiplier)), ("shift", str(shift)))
    return Local("cmsis_nn_per_tensor_quant_params", "quant", fields)


def first_factor(node: Node) -> Local:
    """per_tensor_quant of a layer whose channels all have the same."""
    multiplier, shift = output_factors(node)
    return per_tensor_quant(int(multiplier[0]), int(shift[0]))


CONVOLUTION_ARGUMENTS = (
    "&context",
    "&params",
    "&quant",
    "&input_dims",
    "input",
    "&filter_dims",
    "weights",
    "&bias_dims",
    "bias",
    "&output_dims",
    "output",
)


def upscaled_arguments(upscale: str = "/* not upscaled */ NULL") -> list[str]:
    """Arguments of arm_convolve_s8, which can put zeros between the pixels of its input."""
    return [*CONVOLUTION_ARGUMENTS[:9], upscale, *CONVOLUTION_ARGUMENTS[9:]]


def weighted_call(
    function: str,
    text: str,
    structs: Sequence[Local],
    arguments: Sequence[str],
    constants: Sequence[Constant],
    scratch_bytes: int = 0,
    ctype: str = "int8_t",
) -> Call:
    """delegated_call of one function that fills its context with scratch memory."""
    return delegated_call(
        function,
        text,
        [context(scratch_bytes), *structs, checked(function, arguments)],
        constants=constants,
        scratch_bytes=scratch_bytes,
        ctype=ctype,
    )


def summary(node: Node, attrs: Window) -> str:
    """One line about a node, for the comment above its function."""
    sizes = ["x".join(map(str, s[1:])) for s in (node.input(0).shape, node.output.shape)]
    kernel = "x".join(map(str, node.input(1).shape[1:3]))
    return f"{node.op} {sizes[0]} -> {sizes[1]}, kernel {kernel}, stride {attrs.stride_h}x{attrs.stride_w}"
