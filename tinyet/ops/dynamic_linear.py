# SPDX-License-Identifier: Apache-2.0
"""Fully connected layer that quantizes its input at run time, with a fused clamp: dynamic.py says how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tinyet.boards.cpus import Target
from tinyet.ir import Attrs, Node
from tinyet.numerics import NO_CLAMP
from tinyet.ops.shared import cost_models, dynamic, fully_connected
from tinyet.ops.shared.access_orders import by_copy
from tinyet.opset import Call, CostModel, FieldValue, Kernel, Op, Struct, library_call


@dataclass(frozen=True)
class DynamicLinear(Attrs):
    """inputs: x float32 (…, K); weights int8 (N, K) constant; bias float32 (N,) constant or None.
    Output: float32 (…, N).

    clamp: bounds of the fused activation. eps: the smallest scale of x, which is quantized as a
    whole. rule: how, and whose rule that is.
    """

    name: ClassVar[str] = "dynamic_linear"
    clamp: tuple[float, float] = NO_CLAMP
    eps: float = dynamic.DEFAULT_EPS
    rule: dynamic.Rule = "torch"


def lower(node: Node, _target: Target) -> Call:
    """Scratch: a float for each output, and x in int8."""
    fields: dict[str, FieldValue] = {**fully_connected.size_fields(node), "layer": dynamic.layer_struct(node)}
    constants = dynamic.constants(node, fully_connected.row_weights(node), round_to=4)
    scratch = 4 * node.output.shape[-1] + node.input(0).type.count
    params = Struct("tinyet_dynamic_linear_params", fields)
    return library_call("tinyet_dynamic_linear_f32", node, [0], params, constants, scratch)


OP = Op(
    attrs=DynamicLinear,
    summary="fully connected layer with int8 weights, its float input quantized at run time, fused clamp",
    infer=fully_connected.infer,
    inputs=(2, 3),
    reference=dynamic.reference_of(fully_connected.exact_sums),
    iteration=dynamic.whole_input(fully_connected.iterate),
    check=dynamic.check,
    kernels=(
        Kernel(
            "tinyet_dynamic_linear_f32",
            "f32",
            lower,
            ("tinyet_dynamic.h", "tinyet_conv2d.h", "tinyet_int16x2.h", "tinyet_dot_1x4.h"),
            ("tinyet_dynamic_linear_f32.c", "tinyet_dynamic_quantize.c"),
            cost_model=CostModel(
                lambda node: {**cost_models.linear(node), "quantized": node.input(0).type.count}
            ),
            access_order=by_copy,
        ),
    ),
)
