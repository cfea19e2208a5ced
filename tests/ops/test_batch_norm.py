# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.ops import bodies, drawing
from tests.ops.cases import Case, tensor
from tests.oracle import litert
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, DType, Node, constant
from tinyet.numerics import dequantize
from tinyet.ops import batch_norm
from tinyet.ops.batch_norm import BatchNorm


@st.composite
def batch_norm_nodes(
    draw: st.DrawFn, dtype: DType | None = None, clamps: tuple[int, ...] = (0, 1, 2, 3), tame: bool = False
) -> Case:
    kind = dtype or draw(st.sampled_from((DType.INT8, DType.INT16, DType.FLOAT32)))
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    axis = draw(st.integers(0, len(shape) - 1))
    rng = drawing.random(draw)
    count = shape[axis]
    multiplier = rng.standard_normal(count).astype(np.float32)
    offset = (3 * rng.standard_normal(count)).astype(np.float32)
    if not tame:
        multiplier = np.where(rng.random(count) < 0.2, rng.choice([0, 1e-9, -1e-5]), multiplier)
        offset = np.where(rng.random(count) < 0.2, rng.choice([0, 1e-9, 300]), offset)
    x = draw(drawing.activations("x", shape, kind))
    held = [constant(n, v.astype(np.float32)) for n, v in (("m", multiplier), ("o", offset))]
    attrs = BatchNorm(axis, drawing.CLAMPS[draw(st.sampled_from(clamps))])
    node = drawing.node_of(attrs, [x, *held], draw(drawing.quants(kind)))
    assume(kind is not DType.INT16 or batch_norm.OP.check(node) is None)
    return Case(node, (drawing.data(rng, shape, kind),))


test_host = bodies.host(batch_norm_nodes())


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@drawing.quick
@given(batch_norm_nodes(DType.INT8, (0, 1, 2), tame=True))
def test_litert(case: Case) -> None:
    """As the DEPTHWISE_CONV_2D that it is defined to be."""
    node, a = case.node, batch_norm.attrs_of(case.node)
    x, out, c = node.input(0).type, node.output.type, batch_norm.channels(node)
    moved = np.moveaxis(case.inputs[0], a.axis, -1)
    shape = (1, 1, moved.size // moved.shape[-1], moved.shape[-1])
    scales = (batch_norm.channel_scales(node) / x.scale).tolist()
    biases = [x.scale * s for s in scales]
    inputs = [
        litert.TensorSpec(shape, np.int8, x.scale, x.zero_point, data=moved.reshape(shape)),
        litert.TensorSpec((1, 1, 1, len(scales)), np.int8, scales, 0, 3, data=c.weight),
        litert.TensorSpec((len(scales),), np.int32, biases, 0, data=c.bias),
    ]
    name = ("NONE", "RELU", "RELU6")[drawing.CLAMPS.index(a.clamp)]
    output = litert.TensorSpec(shape, np.int8, out.scale, out.zero_point)
    (want,) = litert.run("DEPTHWISE_CONV_2D", inputs, [output], padding="VALID", activation=name)
    got = np.moveaxis(drawing.reference(case), a.axis, -1).reshape(shape)
    # LiteRT has the scales as float32, ours are float64: a result on the border may fall to the other side.
    assert np.abs(got.astype(int) - want.astype(int)).max() <= 1
    assert np.count_nonzero(got != want) <= got.size // 50 + 1


@drawing.quick
@given(batch_norm_nodes())
def test_real_numbers(case: Case) -> None:
    """float: two roundings of values up to 300. Integers: from the exact value, saturated, at most half a unit of the
    output and one and a half of the sum, to which the offset and the first of two roundings are rounded (and in int16
    2**-15 of it); a weight shrunk beside a huge offset adds its error, half a unit for each of x."""
    node, a = case.node, batch_norm.attrs_of(case.node)
    across = [1] * len(node.output.shape)
    across[a.axis] = -1
    m, o = (node.input(i).array.astype(np.float64).reshape(across) for i in (1, 2))
    x: Array = case.inputs[0]
    if node.output.dtype is DType.FLOAT32:
        exact = np.clip(x.astype(np.float64) * m + o, *a.clamp)
        np.testing.assert_allclose(drawing.reference(case), exact, rtol=0, atol=1e-4)
        return
    quant, source = node.output.type.quant, node.input(0).type.quant
    assert quant is not None
    assert source is not None
    real = dequantize(x, source).astype(np.float64) * m + o
    low, high = (
        node.output.type.scale * (edge - node.output.type.zero_point) for edge in node.output.dtype.range
    )
    exact = np.clip(np.clip(real, *a.clamp), low, high)
    unit = batch_norm.channel_scales(node).reshape(across)
    lowest, highest = node.output.dtype.range
    bound = 0.5 * node.output.type.scale + 1.5 * unit
    bound = bound - unit * lowest * (unit > np.abs(m) * source.scale[0] / highest * 1.001)
    if node.output.dtype is DType.INT16:
        bound = bound + 2.0**-15 * np.abs(exact)
    if np.isfinite(a.clamp[1]) or np.isfinite(a.clamp[0]):
        bound = bound + node.output.type.scale / 2  # the clamp's bounds are rounded, too
    got = dequantize(drawing.reference(case), quant).astype(np.float64)
    assert (np.abs(got - exact) <= bound + 1e-6).all()


@pytest.mark.parametrize(
    ("axis", "count", "words"),
    [(2, 3, "axis 2 of 2"), (-1, 3, "axis -1 of 2"), (1, 2, "factors for 3 channels")],
)
def test_shape_errors(axis: int, count: int, words: str) -> None:
    held = constant("c", np.ones(count, np.float32))
    x = tensor("x", (2, 3), DType.FLOAT32)
    with pytest.raises(UnsupportedShape, match=words):
        ops.infer(Node(BatchNorm(axis), (x, held, held), (x,)))


def test_type_rule() -> None:
    x = tensor("x", (3,), scale=0.1)
    one = constant("m", np.ones(3, np.float32))
    node = Node(BatchNorm(0), (x, one, one), (tensor("y", (3,), scale=0.1),))
    assert batch_norm.check(node) is None
    wrong = {
        "float32 constants": node.replace(inputs=[x, dataclasses.replace(one, data=None), one]),
        "finite": node.replace(inputs=[x, one, constant("o", np.array([1, np.nan, 1], np.float32))]),
        "far too small": node.replace(outputs=[tensor("y", (3,), scale=1e-6)]),
        "no int8 to float32": node.replace(outputs=[tensor("y", (3,), DType.FLOAT32)]),
    }
    for words, bad in wrong.items():
        assert words in (batch_norm.check(bad) or "")
