# SPDX-License-Identifier: Apache-2.0
"""Drawn nodes of operators whose kernels state costs, beside those that benchmarks/costs.py draws itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import get_args

import numpy as np
import numpy.typing as npt

from benchmarks import kernels as layers
from tinyet import ops
from tinyet.ir import Attrs, DType, Node, QuantParams, Shape, Tensor, TensorType, constant
from tinyet.ops.adaptive_avg_pool2d import AdaptiveAvgPool2d
from tinyet.ops.add import Add
from tinyet.ops.amax import Amax
from tinyet.ops.amin import Amin
from tinyet.ops.argmax import ArgMax
from tinyet.ops.batch_norm import BatchNorm
from tinyet.ops.cast import Cast
from tinyet.ops.clamp import Clamp
from tinyet.ops.compare import Compare, Relation
from tinyet.ops.concat import Concat
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.div import Div
from tinyet.ops.dynamic_conv2d import DynamicConv2d
from tinyet.ops.dynamic_linear import DynamicLinear
from tinyet.ops.embedding import Embedding
from tinyet.ops.gru import Gru
from tinyet.ops.layer_norm import LayerNorm
from tinyet.ops.linear import Linear
from tinyet.ops.log_bands import LogBands
from tinyet.ops.log_softmax import LogSoftmax
from tinyet.ops.lookup import Lookup
from tinyet.ops.lstm import Lstm
from tinyet.ops.matmul import MatMul
from tinyet.ops.maximum import Maximum
from tinyet.ops.minimum import Minimum
from tinyet.ops.pad import MODES, Pad
from tinyet.ops.permute import Permute
from tinyet.ops.prelu import PRelu
from tinyet.ops.quantize import Quantize
from tinyet.ops.requantize import Requantize
from tinyet.ops.reshape import Reshape
from tinyet.ops.resize import Resize, ResizeMode
from tinyet.ops.rnn import Rnn
from tinyet.ops.shared.forest import Tree, forest_of
from tinyet.ops.shared.unary_functions import FUNCTIONS
from tinyet.ops.slice import Slice
from tinyet.ops.softmax import Softmax
from tinyet.ops.sub import Sub
from tinyet.ops.sum_of_squares import SumOfSquares
from tinyet.ops.tree_ensemble import TreeEnsemble
from tinyet.ops.unary import Unary
from tinyet.ops.where import Where

RELATIONS: tuple[Relation, ...] = get_args(Relation)

Draw = Callable[[np.random.Generator], Node | None]


def image(rng: np.random.Generator, largest: int = 14) -> Shape:
    """(1, H, W, C)."""
    return (
        1,
        int(rng.integers(1, largest)),
        int(rng.integers(1, largest)),
        int(rng.choice([1, 2, 3, 4, 6, 8, 16, 20, 48])),
    )


def kept(attrs: Attrs, *inputs: Tensor) -> Node:
    """A node whose output is quantized as its first input."""
    node = Node(attrs, inputs, (Tensor("y", inputs[0].type),))
    shape, type_ = ops.infer(node)[0], inputs[0].type
    return node.replace(outputs=[Tensor("y", TensorType(shape, type_.dtype, type_.quant))])


def reshape(rng: np.random.Generator) -> Node:
    count = int(rng.integers(1, 2000))
    return kept(Reshape((count, 1)), layers.activation("x", (1, count), relu=False))


def pad(rng: np.random.Generator) -> Node:
    shape, mode = image(rng), MODES[int(rng.choice([0, 0, 0, 1, 2]))]
    pads = [(0, 0)] * 4
    for axis in (1, 2, 3) if rng.random() < 0.25 else (1, 2):
        most = min(3, shape[axis]) if mode == "reflect" else 3
        before, after = (int(n) for n in rng.integers(0, most, 2))
        pads[axis] = (before, after)
    return kept(Pad(tuple(pads), mode), layers.activation("x", shape, relu=False))


def permute(rng: np.random.Generator) -> Node:
    order = tuple(int(n) for n in rng.permutation(4))
    return kept(Permute(order), layers.activation("x", image(rng), relu=False))


def cut(rng: np.random.Generator) -> Node:
    shape, axis = image(rng), int(rng.integers(1, 4))
    start = int(rng.integers(0, shape[axis]))
    stop = int(rng.integers(start + 1, shape[axis] + 1))
    return kept(
        Slice(axis, start, stop, int(rng.choice([1, 1, 2]))), layers.activation("x", shape, relu=False)
    )


def clamp(rng: np.random.Generator) -> Node:
    x = layers.activation("x", (1, int(rng.integers(40, 3000))), relu=False)
    return kept(Clamp(float(rng.choice([-1.0, 0.0])), float(rng.choice([math.inf, 3.0]))), x)


def requantize(rng: np.random.Generator) -> Node:
    x = layers.activation("x", (1, int(rng.integers(40, 3000))), relu=False)
    return layers.with_output(Requantize(), [x], float(rng.choice([0.04, 0.07, 0.2])), False)


NUMBERS: Mapping[str, tuple[float, float]] = {
    "celu": (1.5, 0.0),
    "elu": (1.0, 0.0),
    "hardshrink": (0.5, 0.0),
    "leaky_relu": (0.01, 0.0),
    "pow": (2.5, 0.0),
    "softplus": (1.0, 20.0),
    "softshrink": (0.5, 0.0),
    "threshold": (0.1, 20.0),
}
"""What functions have beside x."""


def unary(rng: np.random.Generator) -> Node:
    x = layers.activation("x", (1, int(rng.integers(4, 3000))), relu=False)
    function = sorted(FUNCTIONS)[int(rng.integers(len(FUNCTIONS)))] if rng.random() < 0.8 else "sigmoid"
    return layers.with_output(Unary(function, *NUMBERS.get(function, (0.0, 0.0))), [x], 1 / 200, False)


def concat(rng: np.random.Generator) -> Node:
    axis, inputs = int(rng.choice([1, 2, 3, 3])), []
    shape = list(image(rng))
    for i in range(int(rng.integers(2, 5))):
        shape[axis] = int(rng.choice([1, 2, 3, 4, 8, 12, 16, 20, 48]))
        inputs.append(layers.activation(f"x{i}", tuple(shape), relu=False))
    return kept(Concat(axis), *inputs)


def plain(name: str, shape: Shape, dtype: DType) -> Tensor:
    return Tensor(name, TensorType(shape, dtype))


def compare(rng: np.random.Generator) -> Node:
    shape, dtype = (1, int(rng.integers(4, 2000))), DType.INT32 if rng.random() < 0.5 else DType.FLOAT32
    relation = RELATIONS[int(rng.integers(len(RELATIONS)))]
    attrs = Compare(relation)
    return Node(
        attrs, (plain("a", shape, dtype), plain("b", shape, dtype)), (plain("y", shape, DType.INT32),)
    )


def where(rng: np.random.Generator) -> Node:
    shape = (1, int(rng.integers(4, 2000)))
    choice = rng.random()
    a, b = (layers.activation(n, shape, relu=False) for n in "ab")
    if choice < 0.3:
        a, b = widened(a), widened(b)
    elif choice < 0.6:
        a, b = as_float(a), as_float(b)
    return Node(Where(), (plain("c", shape, DType.INT32), a, b), (Tensor("y", a.type),))


def cast(rng: np.random.Generator) -> Node:
    shape, dtype = (1, int(rng.integers(4, 2000))), DType.INT32 if rng.random() < 0.5 else DType.UINT8
    return Node(Cast(), (plain("x", shape, dtype),), (plain("y", shape, DType.FLOAT32),))


def argmax(rng: np.random.Generator) -> Node:
    x, choice, attrs = (
        layers.activation("x", image(rng), relu=False),
        rng.random(),
        ArgMax(int(rng.integers(1, 4))),
    )
    x = widened(x) if choice < 0.25 else as_float(x) if choice < 0.5 else x
    if choice > 0.75:
        x = plain("x", x.shape, DType.INT32)
    node = Node(attrs, (x,), (plain("y", (1,), DType.INT32),))
    return node.replace(outputs=[plain("y", ops.infer(node)[0], DType.INT32)])


def over_axes(kind: Callable[[tuple[int, ...]], Attrs]) -> Draw:
    """Over all pixels, or all channels."""

    def draw(rng: np.random.Generator) -> Node:
        axes = (1, 2) if rng.random() < 0.6 else (3,)
        return kept(kind(axes), layers.activation("x", image(rng), relu=False))

    return draw


def embedding(rng: np.random.Generator) -> Node:
    rows, width = int(rng.integers(2, 40)), int(rng.integers(1, 80))
    type_ = layers.activation("t", (rows, width), relu=False).type
    table = constant("t", rng.integers(-128, 128, (rows, width)).astype(np.int8), type_.quant)
    count = int(rng.integers(1, 30))
    out = Tensor("y", TensorType((1, count, width), DType.INT8, type_.quant))
    return Node(Embedding(), (plain("x", (1, count), DType.INT32), table), (out,))


def tree_ensemble(rng: np.random.Generator) -> Node:
    """Full trees, of any type. No comparison follows from those before it, which a compiler would leave out."""
    outputs, features = int(rng.choice([1, 2, 3, 5, 10])), int(rng.integers(2, 30))
    width = outputs if rng.random() < 0.7 else 1
    kind = (DType.FLOAT32, DType.FLOAT32, DType.INT16, DType.INT8)[int(rng.integers(4))]
    fixed, missing = rng.random() < 0.5, kind is DType.FLOAT32 and rng.random() < 0.5
    trees = []
    for _ in range(int(rng.integers(1, 40))):
        inner = 2 ** int(rng.integers(1, 7)) - 1
        number = np.arange(2 * inner + 1)
        left = np.where(number < inner, 2 * number + 1, -1).astype(np.int32)
        asked = rng.integers(0, features, len(number)).astype(np.int32)
        values = rng.standard_normal((len(number), width)).astype(np.float32)
        sides = np.full(len(number), True) if missing else None
        target = int(rng.integers(0, outputs - width + 1))
        thresholds = split_points(rng, asked, inner, features)
        trees.append(Tree(left, left + np.int32(1), asked, thresholds, values, target, sides))
    forest = forest_of(trees, np.zeros(outputs))
    if kind is not DType.FLOAT32:
        most = kind.range[1]
        forest = replace(forest, thresholds=np.rint(forest.thresholds * most).astype(kind.numpy))
    if fixed:
        forest = forest.fixed_point().forest
    arrays = [forest.features, forest.thresholds, forest.children, forest.roots, forest.values]
    arrays += [forest.targets, forest.base, *([] if forest.missing is None else [forest.missing])]
    x = layers.activation("x", (int(rng.integers(1, 4)), features), relu=False)
    x = {DType.FLOAT32: as_float, DType.INT16: widened}.get(kind, lambda t: t)(x)
    held = [constant(f"c{i}", array) for i, array in enumerate(arrays)]
    sums = DType.INT32 if fixed else DType.FLOAT32
    return Node(TreeEnsemble(), (x, *held), (plain("y", (x.shape[0], outputs), sums),))


def split_points(
    rng: np.random.Generator, asked: npt.NDArray[np.int32], inner: int, features: int
) -> npt.NDArray[np.float32]:
    """A threshold for each node of a full tree, from -1 to 1: within what the nodes above leave of its feature."""
    found = np.zeros(len(asked), np.float32)
    bounds = {0: np.array([[-1.0, 1.0]] * features)}
    for node in range(inner):
        own, feature = bounds.pop(node), asked[node]
        low, high = own[feature]
        found[node] = low + (high - low) * rng.uniform(0.4, 0.6)
        for side, child in enumerate((2 * node + 1, 2 * node + 2)):
            bounds[child] = own.copy()
            bounds[child][feature, 1 - side] = found[node]
    return found


def lookup(rng: np.random.Generator) -> Node:
    shape = image(rng)
    type_ = layers.activation("y", shape, relu=False).type
    flip, channels = rng.random() < 0.4, shape[3] if rng.random() < 0.3 else 1
    entries = np.arange(256)[None, :] - 128 if flip else rng.integers(-128, 128, (channels, 256))
    y, table = Tensor("y", type_), constant("t", entries.astype(np.int8), type_.quant)
    if not flip and rng.random() < 0.5:
        y = widened(y)
        table = constant("t", (entries * 256).astype(np.int16), y.type.quant)
    return Node(Lookup(3), (plain("x", shape, DType.UINT8), table), (y,))


def dynamic_conv2d(rng: np.random.Generator) -> Node | None:
    shape, kernel, pad = image(rng), int(rng.choice([1, 3])), int(rng.integers(0, 2))
    groups = shape[3] if rng.random() < 0.4 else 1
    out_c = shape[3] if groups > 1 else int(rng.choice([1, 2, 3, 4, 8, 12]))
    pads = dict.fromkeys(("pad_top", "pad_bottom", "pad_left", "pad_right"), pad)
    if min(shape[1:3]) + 2 * pad < kernel:
        return None
    x = layers.activation("x", shape, relu=False)
    made = layers.weighted(
        Conv2d(**pads, groups=groups), x, (out_c, kernel, kernel, shape[3] // groups), False
    )
    attrs = DynamicConv2d(**pads, groups=groups)
    return at_run_time(attrs, made)


def dynamic_linear(rng: np.random.Generator) -> Node:
    rows, depth, count = int(rng.integers(1, 5)), int(rng.integers(3, 150)), int(rng.integers(1, 60))
    x = layers.activation("x", (rows, depth), relu=False)
    return at_run_time(DynamicLinear(), layers.weighted(Linear(layers.NONE), x, (count, depth), False))


def at_run_time(attrs: Attrs, node: Node) -> Node:
    """A layer with int8 weights, its input quantized when it is there."""
    inputs = [as_float(node.input(0)), node.input(1), as_float(node.input(2))]
    return Node(attrs, tuple(inputs), (as_float(node.output),))


def log_softmax(rng: np.random.Generator) -> Node:
    x = layers.activation("x", (int(rng.integers(1, 6)), int(rng.integers(2, 60))), relu=False)
    scale, zero = (1 / 16, 127) if rng.random() < 0.5 else (0.08, 120)
    y = Tensor("y", TensorType(x.shape, DType.INT8, QuantParams.per_tensor(scale, zero)))
    return Node(LogSoftmax(1), (x,), (y,))


def log_bands(rng: np.random.Generator) -> Node:
    """Frames of any length of four stages and less, or such as end within a quarter; triangular bands."""
    radices = rng.choice([2, 3, 4, 5], int(rng.integers(1, 4)), p=[0.2, 0.2, 0.35, 0.25])
    length = 8 * int(np.prod(radices))
    size = length if rng.random() < 0.7 else length - 8 * int(rng.integers(0, 1 + length // 32))
    bands, bins = int(rng.integers(1, 41)), np.arange(length // 2 + 1)
    middles = rng.uniform(0, length / 2, (bands, 1))
    filters = np.maximum(0.0, 1 - np.abs(bins - middles) / rng.uniform(0.7, 9, (bands, 1)))
    window = np.hanning(size + 2)[1:-1]
    frames = int(rng.integers(1, 4))
    x, y = (
        Tensor(name, TensorType((frames, values), DType.INT16, QuantParams.per_tensor(scale, 0)))
        for name, values, scale in (("x", size, 1.0), ("y", bands, 2.0**-9))
    )
    constants = [constant(n, v.astype(np.float32)) for n, v in (("window", window), ("filters", filters))]
    return Node(LogBands(length, 1.0), (x, *constants), (y,))


def resize(rng: np.random.Generator) -> Node:
    shape = image(rng, 9)
    out_h, out_w = (int(size * rng.choice([0.5, 1, 1, 1.5, 2, 2, 3])) or 1 for size in shape[1:3])
    mode: ResizeMode = "nearest" if rng.random() < 0.5 else "bilinear"
    ratios = shape[1] / out_h, shape[2] / out_w
    attrs = Resize(out_h, out_w, mode, False, mode == "bilinear", *ratios)
    return kept(attrs, layers.activation("x", shape, relu=False))


def adaptive(rng: np.random.Generator) -> Node:
    shape = image(rng)
    attrs = AdaptiveAvgPool2d(int(rng.integers(1, 5)), int(rng.integers(1, 5)))
    return kept(attrs, layers.activation("x", shape, relu=False))


def transposed(rng: np.random.Generator) -> Node | None:
    shape = image(rng, 8)
    stride, kernel = int(rng.choice([1, 2, 2, 3])), int(rng.choice([2, 3, 4]))
    out_c, crop = int(rng.choice([1, 2, 4, 5, 8, 12, 16])), int(rng.integers(0, 2))
    groups = int(rng.choice([1, 1, 1, 2]))
    if shape[3] % groups or out_c % groups:
        return None
    pads = dict.fromkeys(("pad_top", "pad_bottom", "pad_left", "pad_right"), crop)
    relu = bool(rng.random() < 0.6)
    attrs = ConvTranspose2d(
        **pads, stride_h=stride, stride_w=stride, groups=groups, clamp=layers.RELU if relu else layers.NONE
    )
    if (min(shape[1:3]) - 1) * stride + kernel <= 2 * crop:
        return None
    return layers.weighted(
        attrs, layers.activation("x", shape), (out_c, kernel, kernel, shape[3] // groups), relu
    )


def matmul(rng: np.random.Generator) -> Node:
    batch, rows, depth, columns = (int(n) for n in rng.integers(1, (4, 13, 33, 33)))
    relu = bool(rng.random() < 0.5)
    a = layers.activation("a", (batch, rows, depth), relu=False)
    b = layers.activation("b", (batch, depth, columns), relu=False)
    attrs = MatMul(layers.RELU if relu else layers.NONE)
    return layers.with_output(attrs, [a, b], 0.05 * 0.05 * 74 * 74 * math.sqrt(depth) / 60, relu)


def batch_norm(rng: np.random.Generator) -> Node:
    shape, relu, axis = image(rng), bool(rng.random() < 0.5), int(rng.choice([1, 3, 3]))
    factors = [constant(n, rng.uniform(0.3, 1.2, shape[axis]).astype(np.float32)) for n in ("f", "o")]
    attrs = BatchNorm(axis, layers.RELU if relu else layers.NONE)
    return layers.with_output(attrs, [layers.activation("x", shape, relu=False), *factors], 0.05, relu)


def pair(kind: Callable[[], Attrs], *, of_channel: bool = False) -> Draw:
    """Two operands of one shape, or one element of the second for each channel, or for each pixel."""

    def draw(rng: np.random.Generator) -> Node:
        shape = image(rng)
        other = shape
        if of_channel or rng.random() < 0.3:
            other = (*shape[:3], 1) if not of_channel and rng.random() < 0.4 else (shape[3],)
        return kept(
            kind(), layers.activation("a", shape, relu=False), layers.activation("b", other, relu=False)
        )

    return draw


def layer_norm(rng: np.random.Generator) -> Node:
    shape = (1, int(rng.integers(1, 9)), int(rng.integers(2, 70)))
    x = layers.activation("x", shape, relu=False)
    return layers.with_output(LayerNorm(2), [x], 0.03, False)


def sum_of_squares(rng: np.random.Generator) -> Node:
    depth = 2 if rng.random() < 0.5 else int(rng.integers(1, 60))
    x = Tensor("x", TensorType((1, int(rng.integers(1, 100)), depth), DType.FLOAT32))
    node = Node(SumOfSquares(), (x,), (Tensor("y", x.type),))
    return node.replace(outputs=[Tensor("y", TensorType(ops.infer(node)[0], DType.FLOAT32))])


def quantize(rng: np.random.Generator) -> Node:
    x = Tensor("x", TensorType((1, int(rng.integers(4, 2000))), DType.FLOAT32))
    return layers.with_output(Quantize(), [x], 0.02, False)


def dequantize(rng: np.random.Generator) -> Node:
    x = layers.activation("x", (1, int(rng.integers(4, 2000))), relu=False)
    return Node(Dequantize(), (x,), (Tensor("y", TensorType(x.shape, DType.FLOAT32)),))


def of_gates(rng: np.random.Generator, name: str, shape: tuple[int, int], gates: int) -> Tensor:
    """A recurrent layer's matrix."""
    scales = np.repeat(rng.uniform(0.5, 1, gates) / (100 * math.sqrt(shape[1])), shape[0] // gates)
    quant = QuantParams(tuple(scales.tolist()), (0,) * shape[0], 0)
    return constant(name, rng.integers(-127, 128, shape).astype(np.int8), quant)


def sequence(rng: np.random.Generator) -> tuple[Tensor, int]:
    """x (N, T, I) and the number of units."""
    shape = int(rng.integers(1, 3)), int(rng.integers(1, 9)), int(rng.integers(1, 50))
    quant = QuantParams.per_tensor(0.02, 5)
    return Tensor("x", TensorType(shape, DType.INT8, quant)), int(rng.integers(1, 33))


def lstm(rng: np.random.Generator) -> Node:
    (x, units), projected = sequence(rng), bool(rng.random() < 0.5)
    outputs = int(rng.integers(1, 33)) if projected else units
    h = Tensor("h", TensorType((x.shape[0], outputs), DType.INT8, QuantParams.per_tensor(1 / 128, 0)))
    c = Tensor("c", TensorType((x.shape[0], units), DType.INT16, QuantParams.per_tensor(2.0**-12, 0)))
    matrices = (
        of_gates(rng, "w_ih", (4 * units, x.shape[2]), 4),
        of_gates(rng, "w_hh", (4 * units, outputs), 4),
    )
    w_hr = of_gates(rng, "w_hr", (outputs, units), 1) if projected else None
    sequence_too, tflm = rng.random(2) < (0.5, 0.3)
    rule = Lstm(sequence=bool(sequence_too), arithmetic="tflm" if tflm and not projected else "litert")
    return layer(rule, (x, h, c, *matrices, None, w_hr), (h, c))


def square(attrs: Attrs, gates: int, rng: np.random.Generator) -> Node:
    """A recurrent layer whose state is its units."""
    x, units = sequence(rng)
    h = Tensor("h", TensorType((x.shape[0], units), DType.INT8, QuantParams.per_tensor(1 / 128, 0)))
    rows = gates * units
    matrices = (of_gates(rng, "w_ih", (rows, x.shape[2]), gates), of_gates(rng, "w_hh", (rows, units), gates))
    return layer(attrs, (x, h, *matrices), (h,))


def layer(attrs: Attrs, inputs: tuple[Tensor | None, ...], states: tuple[Tensor, ...]) -> Node:
    """With a state behind each step, of the type of the first state, where it is asked for, and the last states."""
    shapes = ops.infer(Node(attrs, inputs, states))
    first = (states[0],) if len(shapes) > len(states) else ()
    kinds = [TensorType(s, t.dtype, t.type.quant) for s, t in zip(shapes, (*first, *states), strict=True)]
    return Node(attrs, inputs, tuple(Tensor(f"out{i}", kind) for i, kind in enumerate(kinds)))


def gru(rng: np.random.Generator) -> Node:
    return square(Gru(sequence=bool(rng.random() < 0.5)), 3, rng)


def rnn(rng: np.random.Generator) -> Node:
    relu = bool(rng.random() < 0.3)
    return square(Rnn(sequence=bool(rng.random() < 0.5), nonlinearity="relu" if relu else "tanh"), 1, rng)


DRAWN: Mapping[type[Attrs], Draw] = {
    Reshape: reshape,
    Pad: pad,
    Permute: permute,
    Slice: cut,
    Clamp: clamp,
    Requantize: requantize,
    Unary: unary,
    Resize: resize,
    AdaptiveAvgPool2d: adaptive,
    ConvTranspose2d: transposed,
    MatMul: matmul,
    BatchNorm: batch_norm,
    Maximum: pair(Maximum),
    Minimum: pair(Minimum),
    PRelu: pair(PRelu, of_channel=True),
    Div: pair(Div),
    LayerNorm: layer_norm,
    SumOfSquares: sum_of_squares,
    Quantize: quantize,
    Dequantize: dequantize,
    Concat: concat,
    Compare: compare,
    Where: where,
    Cast: cast,
    ArgMax: argmax,
    Amax: over_axes(Amax),
    Amin: over_axes(Amin),
    Embedding: embedding,
    TreeEnsemble: tree_ensemble,
    Lookup: lookup,
    LogBands: log_bands,
    LogSoftmax: log_softmax,
    DynamicConv2d: dynamic_conv2d,
    DynamicLinear: dynamic_linear,
    Lstm: lstm,
    Gru: gru,
    Rnn: rnn,
}


def of_type(node: Node, dtypes: str) -> Node:
    """An int8 node with int16 activations ("s16"), int4 weights ("s8_w4"), sums that are rounded to even ("s8_rne") or
    all in float ("f32"), where that is what a kernel computes."""
    if isinstance(node.attrs, TreeEnsemble):  # drawn of all types
        return node
    if dtypes == "s8_rne":
        return node.replace(attrs=replace(node.attrs, rounding="half_even"))  # type: ignore[call-arg]
    if dtypes == "s16":
        tensors: dict[Tensor, Tensor] = {
            t: widened(t) for t in (*node.inputs, *node.outputs) if t is not None
        }
        if (
            isinstance(node.attrs, (Add, Sub))
            and node.output.type.count % 2
            and not node.input(1).is_constant
        ):
            tensors[node.input(1)] = of_smaller_scale(widened(node.input(1)))
        of_unary = isinstance(node.attrs, Unary) and node.attrs.function in ("sigmoid", "tanh")
        if of_unary or (isinstance(node.attrs, Softmax) and node.output.type.scale == 1 / 256):
            tensors[node.output] = as_litert(node.output)
    elif dtypes == "f32":
        tensors = {t: as_float(t) for t in (*node.inputs, *node.outputs) if t is not None}
    elif dtypes in ("s8_s16", "s16_s8") and isinstance(node.attrs, (Clamp, Requantize)):
        tensor = node.output if dtypes == "s8_s16" else node.input(0)
        tensors = {tensor: widened(tensor)}
    elif dtypes in ("f32_s16", "s16_f32") and isinstance(node.attrs, (Quantize, Dequantize)):
        tensor = node.output if dtypes == "f32_s16" else node.input(0)
        tensors = {tensor: widened(tensor)}
    elif dtypes == "s8_w4" and len(node.inputs) > 1:
        tensors = {node.input(1): narrowed(node.input(1))}
    else:
        return node
    inputs = [None if t is None else tensors.get(t, t) for t in node.inputs]
    return node.replace(inputs=inputs, outputs=[tensors.get(t, t) for t in node.outputs])


def as_float(tensor: Tensor) -> Tensor:
    if tensor.is_constant:
        return constant(tensor.name, (tensor.array / 64).astype(np.float32))
    return Tensor(tensor.name, TensorType(tensor.shape, DType.FLOAT32))


def widened(tensor: Tensor) -> Tensor:
    """int16 of the same range, with a zero point of 0; a bias as int64; weights as they are."""
    if tensor.dtype is DType.INT32:
        return constant(tensor.name, tensor.array.astype(np.int64) << 8)
    if tensor.is_constant or tensor.dtype is not DType.INT8:
        return tensor
    quant = QuantParams.per_tensor(tensor.type.scale / 256, 0)
    return Tensor(tensor.name, TensorType(tensor.shape, DType.INT16, quant))


def of_smaller_scale(tensor: Tensor) -> Tensor:
    """Of sums, so that there are some whose operands have two scales: those of odd numbers of values."""
    quant = QuantParams.per_tensor(0.7 * tensor.type.scale, 0)
    return Tensor(tensor.name, TensorType(tensor.shape, DType.INT16, quant))


def as_litert(tensor: Tensor) -> Tensor:
    """Of the scale that LiteRT's formulas of sigmoid, tanh and softmax have in int16."""
    return Tensor(tensor.name, TensorType(tensor.shape, DType.INT16, QuantParams.per_tensor(2.0**-15, 0)))


def narrowed(weights: Tensor) -> Tensor:
    """int4 weights of about the same range, as quantizers make them."""
    array = np.clip(weights.array // 16, -7, 7).astype(np.int8)
    quant = weights.type.quant
    assert quant is not None
    wider = QuantParams(tuple(16 * scale for scale in quant.scale), quant.zero_point, quant.axis)
    return constant(weights.name, array, wider, DType.INT4)
