# SPDX-License-Identifier: Apache-2.0
"""Drawn nodes that work element by element, along rows, or resize, for the kernels of cortex_m; and the quantizations
that its nodes have."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from tests.ops import drawing
from tests.ops.cases import Case
from tinyet import ops
from tinyet.ir import Array, Attrs, DType, Node, QuantParams, Shape, Tensor, TensorType, constant
from tinyet.ops.adaptive_avg_pool2d import AdaptiveAvgPool2d
from tinyet.ops.add import Add
from tinyet.ops.amax import Amax
from tinyet.ops.amin import Amin
from tinyet.ops.argmax import ArgMax
from tinyet.ops.batch_norm import BatchNorm
from tinyet.ops.clamp import Clamp
from tinyet.ops.expand import Expand
from tinyet.ops.flip import Flip
from tinyet.ops.maximum import Maximum
from tinyet.ops.mean import Mean
from tinyet.ops.minimum import Minimum
from tinyet.ops.mul import Mul
from tinyet.ops.permute import Permute
from tinyet.ops.requantize import Requantize
from tinyet.ops.resize import Resize
from tinyet.ops.slice import Slice
from tinyet.ops.softmax import LITERT_S8, Softmax
from tinyet.ops.sub import Sub
from tinyet.ops.sum import Sum
from tinyet.ops.unfold import Unfold
from tinyet.opset import complaints


def quants(rng: np.random.Generator, scale: float) -> QuantParams:
    return QuantParams.per_tensor(scale, int(rng.choice([-128, 127, 0, int(rng.integers(-128, 128))])))


def clamp(rng: np.random.Generator, out_scale: float) -> tuple[float, float]:
    """None, ReLU, and bounds inside the range."""
    bounds = (
        (-math.inf, math.inf),
        (0.0, math.inf),
        (0.0, 60 * out_scale),
        (-20 * out_scale, 30 * out_scale),
    )
    return bounds[int(rng.integers(4))]


def output_quant(rng: np.random.Generator, scale: float, bounds: tuple[float, float]) -> QuantParams:
    """Under ReLU the zero point is mostly where a quantizer puts it."""
    return (
        QuantParams.per_tensor(scale, -128) if bounds[0] == 0 and rng.random() < 0.7 else quants(rng, scale)
    )


@st.composite
def pairs_of_shapes(draw: st.DrawFn) -> tuple[Shape, Shape]:
    """Of one shape, or one with a value for each row or column of the other, or for all of it; sometimes of neither
    kind."""
    rows, row = draw(st.integers(1, 9)), draw(st.integers(1, 19))
    whole: Shape = (rows, row)
    others: tuple[Shape, ...] = (whole, whole, (rows, 1), (1, row), (1, row), (1, 1))
    if draw(st.integers(0, 9)) == 0:
        whole, others = (2, *whole), ((2, 1, row), (2, rows, 1))
    other = draw(st.sampled_from(others))
    return (whole, other) if draw(st.booleans()) else (other, whole)


@st.composite
def elementwise_nodes(draw: st.DrawFn) -> Case:
    """Sums, differences and products of two tensors, with quantizations as they come."""
    rng = drawing.random(draw)
    shapes = draw(pairs_of_shapes())
    scale = float(2.0 ** rng.uniform(-4, 4))
    operator = draw(st.sampled_from((Add, Sub, Mul, Mul)))
    a, b = (
        Tensor(n, TensorType(shape, DType.INT8, quants(rng, scale * rng.uniform(0.2, 1))))
        for n, shape in zip("ab", shapes, strict=True)
    )
    if operator is Mul:
        # Outputs that about fill int8, or that mostly leave it, or are next to nothing.
        scale = a.type.scale * b.type.scale * float(rng.choice([100, 100, 3, 3000]) * rng.uniform(0.8, 2))
    bounds = clamp(rng, scale)
    node = drawing.node_of(operator(clamp=bounds), [a, b], output_quant(rng, scale, bounds))
    return Case(node, tuple(drawing.int8_data(rng, shape) for shape in shapes))


@st.composite
def extremum_nodes(draw: st.DrawFn) -> Case:
    """The larger and the lesser of two tensors, or of one and a constant."""
    rng = drawing.random(draw)
    shapes, operator = draw(pairs_of_shapes()), draw(st.sampled_from((Maximum, Minimum)))
    quant = quants(rng, 0.5)
    a, b = (Tensor(n, TensorType(shape, DType.INT8, quant)) for n, shape in zip("ab", shapes, strict=True))
    if draw(st.booleans()):
        fixed = constant("b", np.array(int(rng.integers(-128, 128)), np.int8), quant)
        node = drawing.node_of(operator(), [a, fixed] if draw(st.booleans()) else [fixed, a], quant)
        return Case(node, (drawing.int8_data(rng, a.shape),))
    node = drawing.node_of(operator(), [a, b], quant)
    return Case(node, tuple(drawing.int8_data(rng, shape) for shape in shapes))


@st.composite
def one_operand_nodes(draw: st.DrawFn) -> Case:
    """All values of an int8, through requantization, bounds, or arithmetic with a scalar."""
    rng = drawing.random(draw)
    count = 256 + draw(st.integers(0, 5))
    scale = float(2.0 ** rng.uniform(-4, 4))
    x = Tensor("x", TensorType((count,), DType.INT8, quants(rng, scale * rng.uniform(0.2, 2))))
    data = np.resize(np.arange(-128, 128), count).astype(np.int8)
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return Case(drawing.node_of(Requantize(), [x], quants(rng, scale)), (data,))
    if kind == 1:
        low, high = sorted(rng.uniform(-100, 100, 2) * scale)
        quant = x.type.quant if draw(st.booleans()) else quants(rng, scale)
        attrs = Clamp(float(draw(st.sampled_from((low, -math.inf)))), float(high))
        return Case(drawing.node_of(attrs, [x], quant), (data,))
    fixed = constant("c", np.array(int(rng.integers(-128, 128)), np.int8), quants(rng, scale))
    operator = draw(st.sampled_from((Add, Sub, Mul)))
    if operator is Mul:
        scale = x.type.scale * fixed.type.scale * float(rng.uniform(20, 200))
    inputs = draw(st.sampled_from(([x, fixed], [fixed, x], [x, x])))
    return Case(drawing.node_of(operator(), inputs, quants(rng, scale)), (data,))


@st.composite
def batch_norm_nodes(draw: st.DrawFn) -> Case:
    """A factor and an offset for each channel, of the last axis or another; some channels are of one value."""
    rng = drawing.random(draw)
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=2, max_size=4)))
    axis = draw(st.sampled_from((len(shape) - 1, len(shape) - 1, 0, 1)))
    x = Tensor("x", TensorType(shape, DType.INT8, quants(rng, 1.0)))
    count = shape[axis]
    factors = rng.choice([1.0, -1.0, 0.0, 0.5], count) * 2.0 ** rng.choice([0, 0, rng.uniform(-6, 2)], count)
    factors = np.where(rng.random(count) < 0.5, factors * rng.uniform(0.5, 1, count), factors)
    offsets = rng.uniform(-100, 100, count)
    constants = [constant(n, v.astype(np.float32)) for n, v in (("m", factors), ("o", offsets))]
    scale = float(rng.uniform(0.5, 2))
    bounds = clamp(rng, scale)
    node = drawing.node_of(BatchNorm(axis, bounds), [x, *constants], output_quant(rng, scale, bounds))
    return Case(node, (drawing.int8_data(rng, shape),))


@st.composite
def bilinear_nodes(draw: st.DrawFn) -> Case:
    """Images made larger and smaller, by factors of two and by others; also of extremes only, and of pairs whose middle
    is halfway between two outputs."""
    rng = drawing.random(draw)
    batch, *size = draw(drawing.images)
    channels = draw(st.integers(4, 11))
    aligned, centred = draw(st.sampled_from(((True, False), (False, True), (False, True), (False, False))))
    factor = draw(st.sampled_from((1, 2, 2, 4, 8, 16, 0)))
    out = [n * factor if factor else draw(st.integers(1, 20)) for n in size]
    ratios = [(n - 1) / max(wide - 1, 1) if aligned else n / wide for n, wide in zip(size, out, strict=True)]
    x = Tensor("x", TensorType((batch, *size, channels), DType.INT8, quants(rng, 0.1)))
    data = drawing.int8_data(rng, x.shape)
    kind = draw(st.integers(0, 2))
    if kind:
        data[...] = rng.choice([-128, 127] if kind == 1 else [-2, -1, 0, 1], x.shape)
    attrs = Resize(out[0], out[1], "bilinear", aligned, centred, *ratios)
    return Case(drawing.node_of(attrs, [x], x.type.quant), (data,))


@st.composite
def softmax_nodes(draw: st.DrawFn) -> Case:
    """Rows, short and long, of input scales from which all differences count to those of which the first is nothing;
    of values close to each other and of extremes."""
    rng = drawing.random(draw)
    shape = draw(st.integers(1, 4)), draw(st.one_of(st.integers(4, 20), st.sampled_from((3, 64, 301, 700))))
    scale = float(draw(st.sampled_from((0.01, 0.05, 0.1, 0.3, 1.0, 12.0))) * rng.uniform(0.8, 1.2))
    x = Tensor("x", TensorType(shape, DType.INT8, quants(rng, scale)))
    data = drawing.int8_data(rng, shape)
    kind = draw(st.integers(0, 3))
    if kind:
        data[...] = rng.choice(((-128, 127), (5, 5), (100, 101, 90))[kind - 1], shape)
    node = drawing.node_of(Softmax(1), [x], QuantParams.per_tensor(*LITERT_S8))
    return Case(node, (data,))


@st.composite
def summed_nodes(draw: st.DrawFn) -> Case:
    """Means and sums over all pixels of an image, more than int16 holds the sum of and fewer; of extremes alone, too;
    odd numbers of channels."""
    rng = drawing.random(draw)
    several = st.sampled_from((2, 4, 8)), st.sampled_from((255, 256, 257, 512, 513))
    count = draw(st.one_of(*several, st.integers(2, 70), st.integers(2, 900)))
    height = draw(st.sampled_from([n for n in (1, 2, 3, 4, 5) if count % n == 0]))
    shape = draw(st.integers(1, 2)), height, count // height, draw(st.integers(2, 19))
    x = Tensor("x", TensorType(shape, DType.INT8, quants(rng, 1.0)))
    mean = draw(st.booleans())
    attrs = Mean((1, 2), True) if mean else Sum((1, 2), True)
    node = drawing.node_of(attrs, [x], quants(rng, 0.7 if mean else 0.7 * count))
    data = drawing.int8_data(rng, x.shape)
    if draw(st.booleans()):
        data[...] = draw(st.sampled_from((-128, 127)))
    return Case(node, (data,))


@st.composite
def summed_row_nodes(draw: st.DrawFn) -> Case:
    """Means and sums of one row to several fours of them, of whole vectors and others; over several axes, too; of equal
    scales, where means of two, four, eight … values are halves."""
    rng = drawing.random(draw)
    count = draw(st.one_of(st.sampled_from((2, 4, 16, 64, 700)), st.integers(2, 70)))
    shape = draw(st.sampled_from((draw(st.integers(1, 3)), 1))), draw(st.integers(1, 6)), count
    x = Tensor("x", TensorType(shape, DType.INT8, quants(rng, 1.0)))
    axes = draw(st.sampled_from(((2,), (2,), (1, 2))))
    mean = draw(st.booleans())
    attrs = Mean(axes, draw(st.booleans())) if mean else Sum(axes, draw(st.booleans()))
    node = drawing.node_of(
        attrs, [x], quants(rng, draw(st.sampled_from((0.7, 1.0))) * (1 if mean else count))
    )
    assume(not complaints(ops.op_of(node), node))
    data = drawing.int8_data(rng, x.shape)
    if draw(st.integers(0, 3)) == 0:
        data[...] = draw(st.sampled_from((-128, 127)))
    return Case(node, (data,))


@st.composite
def run_nodes(draw: st.DrawFn) -> Case:
    """Slices, permutations that leave the last axis, axes turned round or repeated, windows along one, of all types:
    runs within a vector and beyond, up to four loops around them."""
    rng = drawing.random(draw)
    rank = draw(st.integers(2, 6))
    shape = *(draw(st.integers(1, 4)) for _ in range(rank - 1)), draw(st.integers(1, 40))
    axis = draw(st.integers(0, rank - 1))
    start = draw(st.integers(0, shape[axis] - 1))
    attrs: Attrs = Slice(axis, start, draw(st.integers(start + 1, shape[axis])), draw(st.integers(1, 2)))
    kind = draw(st.integers(0, 5))
    if kind == 0:
        attrs = Permute((*draw(st.permutations(range(rank - 1))), rank - 1))
    elif kind == 1:
        attrs = Flip(tuple(sorted(draw(st.sets(st.integers(0, rank - 2), min_size=1)))))
    elif kind == 2:
        attrs = Expand((draw(st.integers(1, 3)), *shape))
        shape = *(draw(st.sampled_from((1, size))) for size in shape[:-1]), shape[-1]
    elif kind == 3:
        attrs = Unfold(axis, draw(st.integers(1, shape[axis])), draw(st.integers(1, 2)))
    dtype = draw(st.sampled_from((DType.INT8, DType.INT16, DType.FLOAT32)))
    quant = None if dtype is DType.FLOAT32 else QuantParams.per_tensor(0.1, 0)
    x = Tensor("x", TensorType(shape, dtype, quant))
    data: Array = rng.normal(size=shape).astype(np.float32)
    if quant is not None:
        data = drawing.integer_data(rng, shape, dtype)
    return Case(drawing.node_of(attrs, [x], quant), (data,))


@st.composite
def adaptive_nodes(draw: st.DrawFn, dtype: DType) -> Case:
    """Windows that overlap and differ, of two pixels to as many as are taken; whole vectors of channels and others;
    extremes alone, and values next to zero, whose averages are halves."""
    rng = drawing.random(draw)
    size = draw(st.integers(1, 17)), draw(st.integers(2, 17))
    shape = draw(st.integers(1, 2)), *size, draw(st.integers(1, 20))
    zero_point = int(rng.integers(-128, 128)) if dtype is DType.INT8 else 0
    x = Tensor("x", TensorType(shape, dtype, QuantParams.per_tensor(0.1, zero_point)))
    attrs = AdaptiveAvgPool2d(draw(st.integers(1, size[0])), draw(st.integers(1, size[1])))
    node = drawing.node_of(attrs, [x], x.type.quant)
    assume(not complaints(ops.op_of(node), node))
    data = drawing.integer_data(rng, shape, dtype)
    kind = draw(st.integers(0, 2))
    if kind:
        data[...] = rng.choice(list(dtype.range) if kind == 1 else [-2, -1, 0, 1], shape)
    return Case(node, (data,))


@st.composite
def selected_nodes(draw: st.DrawFn, attrs: type[Amax | Amin | ArgMax], dtype: DType) -> Case:
    """Over the first, the middle or the last of three axes, of one vector and several, with a rest; few values, so that
    many are equal, and extremes."""
    rng = drawing.random(draw)
    shape = draw(st.integers(1, 4)), draw(st.integers(1, 20)), draw(st.integers(1, 40))
    axis = draw(st.sampled_from((0, 1, 2, 2)))
    x = Tensor("x", TensorType(shape, dtype, QuantParams.per_tensor(0.01, 0)))
    low, high = dtype.range
    data = rng.integers(low, high + 1, shape)
    kind = draw(st.integers(0, 2))
    if kind:
        data = rng.choice([low, high] if kind == 1 else [-2, -1, -1], shape)
    keepdims = draw(st.booleans())
    made: Attrs = ArgMax(axis, keepdims)
    if not issubclass(attrs, ArgMax):
        made = attrs((axis,), keepdims)
    out = TensorType((), DType.INT32) if attrs is ArgMax else x.type
    node = Node(made, (x,), (Tensor("y", out),))
    typed = TensorType(ops.infer(node)[0], out.dtype, out.quant)
    return Case(node.replace(outputs=[Tensor("y", typed)]), (data.astype(dtype.numpy),))
