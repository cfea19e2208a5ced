# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawing
from tests.ops.cases import Case, tensor
from tests.oracle import litert
from tinyet import ops
from tinyet.ir import DType, Node, QuantParams, constant
from tinyet.ops import conv2d
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.shared.convolution import attrs_of

KINDS = ("1x1", "depthwise", "grouped", "any")


@st.composite
def conv2d_nodes(
    draw: st.DrawFn,
    dtype: DType | None = None,
    kind: str | None = None,
    clamps: tuple[int, ...] = (0, 1, 2, 3),
) -> Case:
    dtype = dtype or draw(st.sampled_from((DType.INT8, DType.INT16, DType.FLOAT32)))
    kind = kind or draw(st.sampled_from(KINDS))
    batch, height, width = draw(drawing.images)
    clamp = drawing.CLAMPS[draw(st.sampled_from(clamps))]
    window: dict[str, Any] = draw(drawing.windows(height, width))
    kernel_h, kernel_w = window.pop("kernel_h"), window.pop("kernel_w")
    if kind == "1x1":
        kernel_h = kernel_w = 1
        window = {}
    groups = 1
    if kind == "depthwise":
        groups = draw(st.integers(1, 10))
        channels, out_c = groups, groups * draw(st.sampled_from((1, 1, 2, 3)))
    else:
        groups = draw(st.integers(2, 3)) if kind == "grouped" else 1
        channels, out_c = groups * draw(st.integers(1, 18)), groups * draw(st.integers(1, 7))
    x = draw(drawing.activations("x", (batch, height, width, channels), dtype))
    w = draw(drawing.weights((out_c, kernel_h, kernel_w, channels // groups), dtype))
    attrs = Conv2d(**window, groups=groups, clamp=clamp)
    quant = draw(drawing.quants_of_sums(x, w))
    node = drawing.node_of(attrs, [x, w, draw(drawing.biases(out_c, dtype))], quant)
    return Case(node, (drawing.data(drawing.random(draw), x.shape, dtype),))


@pytest.mark.parametrize("kind", KINDS)
def test_host(kind: str) -> None:
    """Every portable kernel that takes a node, not only the one that would be chosen."""
    bodies.host(conv2d_nodes(kind=kind))()


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@drawing.quick
@given(st.sampled_from((DType.INT8, DType.INT16)).flatmap(lambda d: conv2d_nodes(d, clamps=(0, 1, 2))))
def test_litert(case: Case) -> None:
    """CONV_2D (which has groups), and DEPTHWISE_CONV_2D where each group has one channel."""
    node, a = case.node, attrs_of(case.node)
    w, out = node.input(1), node.output.type
    x_type = node.input(0).type
    assert w.type.quant is not None
    x = drawing.padded(case, x_type.zero_point)
    element = x_type.dtype.numpy
    values = drawing.bias_values(node)
    scales = w.type.quant.scale
    image = litert.TensorSpec(x.shape, element, x_type.scale, x_type.zero_point, data=x)
    biases = litert.TensorSpec(values.shape, values.dtype, [x_type.scale * s for s in scales], 0, data=values)
    output = litert.TensorSpec(out.shape, element, out.scale, out.zero_point)
    options: dict[str, litert.Option] = {
        "padding": "VALID",
        "activation": ("NONE", "RELU", "RELU6")[drawing.CLAMPS.index(a.clamp)],
        "stride_h": a.stride_h,
        "stride_w": a.stride_w,
        "dilation_h": a.dilation_h,
        "dilation_w": a.dilation_w,
    }
    weights = litert.TensorSpec(w.shape, np.int8, scales, 0, data=w.array)
    (want,) = litert.run("CONV_2D", [image, weights, biases], [output], **options)
    np.testing.assert_array_equal(drawing.reference(case), want)
    if a.groups == x.shape[3]:
        moved = np.moveaxis(w.array, 0, 3)[:, :, 0][None]
        per_channel = np.broadcast_to(scales, w.shape[:1]).tolist()
        weights = litert.TensorSpec(moved.shape, np.int8, per_channel, 0, 3, data=moved)
        options["depth_multiplier"] = w.shape[0] // a.groups
        (want,) = litert.run("DEPTHWISE_CONV_2D", [image, weights, biases], [output], **options)
        np.testing.assert_array_equal(drawing.reference(case), want)


@drawing.quick
@given(conv2d_nodes(DType.FLOAT32, clamps=(0, 1)))
def test_torch(case: Case) -> None:
    """Against float64: a float32 sum of 289 products of magnitude 30 stays within 1e-3 of the exact one."""
    torch = pytest.importorskip("torch")
    node, a = case.node, attrs_of(case.node)
    x = torch.from_numpy(drawing.padded(case, 0).astype(np.float64)).permute(0, 3, 1, 2)
    w = torch.from_numpy(node.input(1).array.astype(np.float64)).permute(0, 3, 1, 2)
    bias = node.optional_input(2)
    b = None if bias is None else torch.from_numpy(bias.array.astype(np.float64))
    stride, dilation = (a.stride_h, a.stride_w), (a.dilation_h, a.dilation_w)
    want = torch.nn.functional.conv2d(x, w, b, stride, 0, dilation, a.groups).clamp(*a.clamp)
    want = want.permute(0, 2, 3, 1).numpy()
    np.testing.assert_allclose(drawing.reference(case), want, rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    ("x", "w", "bias", "attrs", "words"),
    [
        ((1, 4, 4, 3), (2, 1, 1, 4), None, Conv2d(), "3 channels in and 2 out do not divide"),
        ((1, 4, 4, 4), (3, 1, 1, 2), None, Conv2d(groups=2), "4 channels in and 3 out do not divide"),
        ((1, 4, 4, 4), (3, 5, 1, 4), None, Conv2d(), "5x1 window does not fit"),
        ((1, 4, 4, 4), (3, 1, 1, 4), (4,), Conv2d(), "bias of shape"),
        ((4, 4, 4), (3, 1, 1, 4), None, Conv2d(), "must have 4 dimensions"),
    ],
)
def test_shape_errors(
    x: tuple[int, ...], w: tuple[int, ...], bias: tuple[int, ...] | None, attrs: Conv2d, words: str
) -> None:
    bodies.expect_shape_error(attrs, x, w, bias, words)


def test_type_rule() -> None:
    weights = np.ones((2, 1, 1, 3), np.int8)
    good = constant("w", weights, QuantParams((0.1, 0.2), (0, 0), 0))
    x, y = tensor("x", (1, 4, 4, 3), scale=0.5), tensor("y", (1, 4, 4, 2), scale=0.5)
    node = Node(Conv2d(), (x, good, constant("b", np.zeros(2, np.int32))), (y,))
    check = conv2d.OP.check
    assert check(node) is None
    wrong = {
        "constants": (x, dataclasses.replace(good, data=None), None),
        "symmetrically": (x, constant("w", weights, QuantParams.per_tensor(0.1, 1)), None),
        "axis 3": (x, constant("w", weights, QuantParams((0.1,) * 3, (0,) * 3, 3)), None),
        "int32": (x, good, constant("b", np.zeros(2, np.float32))),
        "overflow": (x, good, constant("b", np.array([0, 2**31 - 1], np.int32))),
        "int8 by float32": (x, constant("w", weights.astype(np.float32)), None),
    }
    for words, inputs in wrong.items():
        assert words in (check(node.replace(inputs=inputs)) or "")


def test_macs() -> None:
    w = constant("w", np.zeros((6, 3, 2, 2), np.float32))
    node = Node(Conv2d(groups=2), (tensor("x", (1, 5, 5, 4), DType.FLOAT32), w), ())
    out = tensor("y", ops.infer(node)[0], DType.FLOAT32)
    assert conv2d.OP.macs(node.replace(outputs=[out])) == 3 * 4 * 6 * 3 * 2 * 2
