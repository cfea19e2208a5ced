# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawing
from tests.ops.cases import Case, tensor
from tests.ops.test_conv2d import KINDS as KINDS_OF_CONVOLUTION
from tests.ops.test_conv2d import conv2d_nodes
from tests.ops.test_dynamic_linear import KINDS, RULES, inputs
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node, QuantParams, constant
from tinyet.ops.dynamic_conv2d import DynamicConv2d
from tinyet.ops.shared import dynamic
from tinyet.ops.shared.convolution import attrs_of


@st.composite
def dynamic_conv2d_nodes(
    draw: st.DrawFn,
    kinds: tuple[str, ...] = KINDS,
    kind: str | None = None,
    rules: tuple[dynamic.Rule, ...] = RULES,
) -> Case:
    """Shapes and weights of int8 convolutions."""
    node = draw(conv2d_nodes(DType.INT8, kind)).node
    x, w = tensor("x", node.input(0).shape, DType.FLOAT32), node.input(1)
    bias = draw(drawing.biases(w.shape[0], DType.FLOAT32))
    rule = draw(st.sampled_from(rules if x.shape[0] == 1 else ("torch",)))
    window = dataclasses.asdict(node.attrs)
    del window["rounding"]
    node = drawing.node_of(DynamicConv2d(**window, rule=rule), [x, w, bias])
    return Case(node, (inputs(drawing.random(draw), x.shape, draw(st.sampled_from(kinds))),))


@pytest.mark.parametrize("kind", KINDS_OF_CONVOLUTION)
def test_host(kind: str) -> None:
    """Every kernel that takes a node, not only the one that would be chosen."""
    bodies.host(dynamic_conv2d_nodes(kind=kind))()


@drawing.quick
@given(dynamic_conv2d_nodes(("plain", "positive", "negative", "tiny", "symmetric", "zeros"), None, RULES[:1]))
def test_float_convolution_of_the_quantized_values(case: Case) -> None:
    """The exact convolution of the numbers' real values, in float64, rounded: within a few float32 roundings."""
    torch = pytest.importorskip("torch")
    node, x = case.node, case.inputs[0]
    a, w, bias = attrs_of(node), node.input(1), node.optional_input(2)
    scale, zero_point = dynamic.choose_params(x, dynamic.DEFAULT_EPS)
    numbers = dynamic.quantized(x, scale, zero_point).astype(np.float64) - zero_point
    pads = ((0, 0), (a.pad_top, a.pad_bottom), (a.pad_left, a.pad_right), (0, 0))
    image = torch.from_numpy(np.pad(numbers, pads) * float(scale)).permute(0, 3, 1, 2)
    scales = dynamic.weight_scales(node).astype(np.float64).reshape(-1, 1, 1, 1)
    kernel = torch.from_numpy(w.array.astype(np.float64) * scales).permute(0, 3, 1, 2)
    stride, dilation = (a.stride_h, a.stride_w), (a.dilation_h, a.dilation_w)
    run = torch.nn.functional.conv2d
    sums = run(image, kernel, None, stride, 0, dilation, a.groups).permute(0, 2, 3, 1).numpy()
    wanted = np.clip(sums + (0 if bias is None else bias.array), *a.clamp)
    np.testing.assert_allclose(drawing.reference(case), wanted, rtol=1e-6, atol=1e-5)


def test_shapes_and_macs_are_those_of_conv2d() -> None:
    x = tensor("x", (1, 5, 5, 4), DType.FLOAT32)
    w = constant("w", np.ones((6, 3, 2, 2), np.int8), QuantParams.per_tensor(0.1, 0))
    node = Node(DynamicConv2d(groups=2), (x, w), (tensor("y", (1, 3, 4, 6), DType.FLOAT32),))
    assert ops.infer(node) == ((1, 3, 4, 6),)
    assert ops.op_of(node).macs(node) == 3 * 4 * 6 * 3 * 2 * 2
    with pytest.raises(UnsupportedShape, match="4 channels in and 6 out do not divide"):
        ops.infer(node.replace(attrs=DynamicConv2d(groups=1)))
