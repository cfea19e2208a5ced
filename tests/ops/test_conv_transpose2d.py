# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.ops import bodies, drawing
from tests.ops.cases import Case, tensor
from tests.oracle import litert
from tinyet import ops
from tinyet.ir import DType, Node, constant
from tinyet.numerics import clamp_range
from tinyet.ops import conv_transpose2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d


@st.composite
def conv_transpose2d_nodes(
    draw: st.DrawFn,
    dtype: DType | None = None,
    clamps: tuple[int, ...] = (0, 1, 2, 3),
    dilation: int = 3,
    groups: int = 3,
) -> Case:
    kind = dtype or draw(st.sampled_from((DType.INT8, DType.INT16, DType.FLOAT32)))
    batch, height, width = draw(st.integers(1, 2)), draw(st.integers(1, 5)), draw(st.integers(1, 5))
    groups = draw(st.integers(1, groups))
    channels, out_c = groups * draw(st.integers(1, 6)), groups * draw(st.integers(1, 6))
    found: dict[str, int] = {}
    kernel = []
    for letter, size, sides in (("h", height, ("top", "bottom")), ("w", width, ("left", "right"))):
        stride, step, taps = draw(st.integers(1, 4)), draw(st.integers(1, dilation)), draw(st.integers(1, 5))
        room = (size - 1) * stride + step * (taps - 1)
        before = draw(st.integers(0, min(3, room)))
        after = draw(st.integers(0, min(3, room - before)))
        found |= {f"pad_{sides[0]}": before, f"pad_{sides[1]}": after}
        found |= {f"stride_{letter}": stride, f"dilation_{letter}": step}
        found[f"out_pad_{letter}"] = draw(st.integers(0, max(stride, step) - 1))
        kernel.append(taps)
    attrs = ConvTranspose2d(**found, groups=groups, clamp=drawing.CLAMPS[draw(st.sampled_from(clamps))])
    x = draw(drawing.activations("x", (batch, height, width, channels), kind))
    w = draw(drawing.weights((out_c, *kernel, channels // groups), kind))
    quant = draw(drawing.quants_of_sums(x, w))
    node = drawing.node_of(attrs, [x, w, draw(drawing.biases(out_c, kind))], quant)
    return Case(node, (drawing.data(drawing.random(draw), x.shape, kind),))


test_host = bodies.host(conv_transpose2d_nodes())


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@drawing.quick
@given(
    st.sampled_from((DType.INT8, DType.INT16)).flatmap(
        lambda d: conv_transpose2d_nodes(d, (0, 1, 2), dilation=1, groups=1)
    )
)
def test_litert(case: Case) -> None:
    """TRANSPOSE_CONV without padding, cropped: output pixels do not depend on each other."""
    node, a = case.node, conv_transpose2d.attrs_of(case.node)
    assume(a.out_pad_h <= a.pad_bottom and a.out_pad_w <= a.pad_right)
    x, w, out = node.input(0).type, node.input(1), node.output.type
    assert w.type.quant is not None
    count, kernel_h, kernel_w, _ = w.shape
    full_h, full_w = (x.shape[1] - 1) * a.stride_h + kernel_h, (x.shape[2] - 1) * a.stride_w + kernel_w
    shape = (x.shape[0], full_h, full_w, count)
    scales = np.broadcast_to(w.type.quant.scale, (count,)).tolist()
    values, element = drawing.bias_values(node), x.dtype.numpy
    inputs = [
        litert.TensorSpec((4,), np.int32, data=shape),
        litert.TensorSpec(w.shape, np.int8, scales, 0, data=w.array),
        litert.TensorSpec(x.shape, element, x.scale, x.zero_point, data=case.inputs[0]),
        litert.TensorSpec((count,), values.dtype, [x.scale * s for s in scales], 0, data=values),
    ]
    (full,) = litert.run(
        "TRANSPOSE_CONV",
        inputs,
        [litert.TensorSpec(shape, element, out.scale, out.zero_point)],
        padding="VALID",
        activation=("NONE", "RELU", "RELU6")[drawing.CLAMPS.index(a.clamp)],
        stride_h=a.stride_h,
        stride_w=a.stride_w,
    )
    want = full[:, a.pad_top : a.pad_top + out.shape[1], a.pad_left : a.pad_left + out.shape[2]]
    np.testing.assert_array_equal(drawing.reference(case), want)


@drawing.quick
@given(conv_transpose2d_nodes())
def test_torch(case: Case) -> None:
    """float: sums of 151 products of magnitude 30 within 1e-3. Integers: what the rule rounds."""
    torch = pytest.importorskip("torch")
    node, a = case.node, conv_transpose2d.attrs_of(case.node)
    assume(a.pad_top == a.pad_bottom and a.pad_left == a.pad_right)
    integer = node.output.dtype is not DType.FLOAT32
    x, w = (array.astype(np.float64) for array in (case.inputs[0], node.input(1).array))
    bias = node.optional_input(2)
    if integer:
        x = x - node.input(0).type.zero_point
    count, kernel_h, kernel_w, depth = w.shape
    # torch's weights are (in, out / groups, kernel_h, kernel_w)
    grouped = w.reshape(a.groups, count // a.groups, kernel_h, kernel_w, depth).transpose(0, 4, 1, 2, 3)
    want = torch.nn.functional.conv_transpose2d(
        torch.from_numpy(x).permute(0, 3, 1, 2),
        torch.from_numpy(grouped.reshape(a.groups * depth, count // a.groups, kernel_h, kernel_w)),
        None if bias is None else torch.from_numpy(bias.array.astype(np.float64)),
        (a.stride_h, a.stride_w),
        (a.pad_top, a.pad_left),
        (a.out_pad_h, a.out_pad_w),
        a.groups,
        (a.dilation_h, a.dilation_w),
    )
    want = want.permute(0, 2, 3, 1).numpy()
    if not integer:
        np.testing.assert_allclose(drawing.reference(case), want.clip(*a.clamp), rtol=0, atol=1e-3)
        return
    quant, out = node.input(1).type.quant, node.output.type
    assert quant is not None
    exact = want * (node.input(0).type.scale * np.array(quant.scale) / out.scale)
    low, high = clamp_range(a.clamp, out)
    error = np.abs(drawing.reference(case) - np.clip(exact + out.zero_point, low, high))
    # int8 rounds twice. int16 rounds once, and its multiplier of 15 bits is off by as much as 2**-15 of itself.
    assert (error <= (1.0 if out.dtype is DType.INT8 else 0.5 + np.abs(exact) * 2.0**-15) + 1e-6).all()


@pytest.mark.parametrize(
    ("x", "w", "bias", "attrs", "words"),
    [
        ((1, 4, 4, 3), (2, 1, 1, 4), None, ConvTranspose2d(), "3 channels in and 2 out do not divide"),
        ((1, 4, 4, 4), (3, 1, 1, 4), (4,), ConvTranspose2d(), "bias of shape"),
        ((1, 4, 4, 4), (3, 1, 1, 4), None, ConvTranspose2d(pad_top=2, pad_bottom=2), "leave nothing of 4x4"),
        ((4, 4, 4), (3, 1, 1, 4), None, ConvTranspose2d(), "must have 4 dimensions"),
    ],
)
def test_shape_errors(
    x: tuple[int, ...], w: tuple[int, ...], bias: tuple[int, ...] | None, attrs: ConvTranspose2d, words: str
) -> None:
    bodies.expect_shape_error(attrs, x, w, bias, words)


def test_macs() -> None:
    """A 2x2 kernel with stride 2: every output pixel is reached by one tap."""
    w = constant("w", np.zeros((6, 2, 2, 4), np.float32))
    node = Node(ConvTranspose2d(stride_h=2, stride_w=2), (tensor("x", (1, 5, 5, 4), DType.FLOAT32), w), ())
    out = tensor("y", ops.infer(node)[0], DType.FLOAT32)
    assert conv_transpose2d.OP.macs(node.replace(outputs=[out])) == 10 * 10 * 6 * 4
