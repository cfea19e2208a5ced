# SPDX-License-Identifier: Apache-2.0
"""Two-dimensional convolution, NHWC, that quantizes its input at run time, with a fused clamp: dynamic.py says how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tinyet.boards.cpus import Target
from tinyet.ir import Node
from tinyet.ops.shared import convolution, cost_models, dynamic
from tinyet.ops.shared.access_orders import by_copy
from tinyet.ops.shared.convolution import DEPTHWISE, PATCHES, Convolution, refuse_depthwise
from tinyet.opset import Call, Constant, CostModel, Kernel, Op, Struct, library_call


@dataclass(frozen=True)
class DynamicConv2d(Convolution):
    """A Convolution: x float32, weights int8, bias float32 or None. Output: float32. Padding is 0.

    eps: the smallest scale of x, which is quantized as a whole. rule: how, and whose rule that is.
    """

    name: ClassVar[str] = "dynamic_conv2d"
    eps: float = dynamic.DEFAULT_EPS
    rule: dynamic.Rule = "torch"


def layer_call(symbol: str, node: Node, constants: Sequence[Constant], own: int) -> Call:
    """Scratch: a float for each output channel, what the kernel needs for itself, and x in int8."""
    fields = {"shape": convolution.shape_struct(node), "layer": dynamic.layer_struct(node)}
    scratch = 4 * node.output.shape[3] + own + node.input(0).type.count
    return library_call(symbol, node, [0], Struct("tinyet_dynamic_conv2d_params", fields), constants, scratch)


def lower(node: Node, _target: Target) -> Call:
    constants = dynamic.constants(node, convolution.pair_weights(node))
    return layer_call("tinyet_dynamic_conv2d_f32", node, constants, convolution.patch_bytes(node))


def lower_depthwise(node: Node, _target: Target) -> Call:
    constants = dynamic.constants(node, convolution.quad_weights(node), round_to=4)
    return layer_call("tinyet_dynamic_depthwise_f32", node, constants, convolution.tap_bytes(node))


OP = Op(
    attrs=DynamicConv2d,
    summary="convolution with int8 weights, its float input quantized at run time, fused clamp",
    infer=convolution.infer,
    inputs=(2, 3),
    reference=dynamic.reference_of(convolution.exact_sums),
    iteration=dynamic.whole_input(convolution.iterate),
    part=convolution.part,
    check=dynamic.check,
    kernels=(
        Kernel(
            "tinyet_dynamic_depthwise_f32",
            "f32",
            lower_depthwise,
            (*DEPTHWISE, "tinyet_dynamic.h"),
            ("tinyet_dynamic_depthwise_f32.c", "tinyet_dynamic_quantize.c"),
            refuse_depthwise,
            cost_model=CostModel(
                lambda node: {**cost_models.depthwise(node), "quantized": node.input(0).type.count}
            ),
            access_order=by_copy,
        ),
        Kernel(
            "tinyet_dynamic_conv2d_f32",
            "f32",
            lower,
            (*PATCHES, "tinyet_dynamic.h"),
            ("tinyet_dynamic_conv2d_f32.c", "tinyet_dynamic_quantize.c"),
            cost_model=CostModel(
                lambda node: {**cost_models.conv2d(node), "quantized": node.input(0).type.count}
            ),
            access_order=by_copy,
        ),
    ),
)
