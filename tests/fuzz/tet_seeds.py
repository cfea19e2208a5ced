# SPDX-License-Identifier: Apache-2.0
"""Small programs that between them use every operator in every type that it has: what mutants are made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.fuzz.tet_signals import signals
from tinyet import ops
from tinyet.ir import (
    Attrs,
    DType,
    Graph,
    Node,
    Note,
    Origin,
    QuantParams,
    Shape,
    Tensor,
    TensorType,
    constant,
)
from tinyet.numerics import Int64
from tinyet.ops.adaptive_avg_pool2d import AdaptiveAvgPool2d
from tinyet.ops.add import Add
from tinyet.ops.amax import Amax
from tinyet.ops.amin import Amin
from tinyet.ops.argmax import ArgMax
from tinyet.ops.argsort import ArgSort
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.batch_norm import BatchNorm
from tinyet.ops.biquads import Biquads
from tinyet.ops.cast import Cast
from tinyet.ops.clamp import Clamp
from tinyet.ops.compare import Compare
from tinyet.ops.concat import Concat
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.copy import Copy
from tinyet.ops.cumsum import CumSum
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.div import Div
from tinyet.ops.dynamic_conv2d import DynamicConv2d
from tinyet.ops.dynamic_linear import DynamicLinear
from tinyet.ops.embedding import Embedding
from tinyet.ops.expand import Expand
from tinyet.ops.flip import Flip
from tinyet.ops.gather import Gather
from tinyet.ops.gru import Gru
from tinyet.ops.l2_normalize import L2Normalize
from tinyet.ops.layer_norm import LayerNorm
from tinyet.ops.linear import Linear
from tinyet.ops.linear_bands import LinearBands
from tinyet.ops.linear_single_rounding import LinearSingleRounding
from tinyet.ops.log_softmax import LogSoftmax
from tinyet.ops.lookup import Lookup
from tinyet.ops.lstm import Lstm
from tinyet.ops.matmul import MatMul
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.maximum import Maximum
from tinyet.ops.mean import Mean
from tinyet.ops.minimum import Minimum
from tinyet.ops.mul import Mul
from tinyet.ops.pad import Pad
from tinyet.ops.pairwise import Pairwise
from tinyet.ops.permute import Permute
from tinyet.ops.prelu import PRelu
from tinyet.ops.quantize import Quantize
from tinyet.ops.region import Region
from tinyet.ops.requantize import Requantize
from tinyet.ops.reshape import Reshape
from tinyet.ops.resize import Resize
from tinyet.ops.rnn import Rnn
from tinyet.ops.shared.unary_functions import FUNCTIONS
from tinyet.ops.slice import Slice
from tinyet.ops.softmax import Softmax
from tinyet.ops.squared_difference import SquaredDifference
from tinyet.ops.state_write import StateWrite
from tinyet.ops.sub import Sub
from tinyet.ops.sum import Sum
from tinyet.ops.sum_of_squares import SumOfSquares
from tinyet.ops.svdf import Svdf
from tinyet.ops.tree_ensemble import TreeEnsemble
from tinyet.ops.unary import Unary
from tinyet.ops.unfold import Unfold
from tinyet.ops.where import Where
from tinyet.opset import DelegateName
from tinyet.program import Program

S8, S16, F32, I32, U8 = DType.INT8, DType.INT16, DType.FLOAT32, DType.INT32, DType.UINT8
TYPES = (S8, S16, F32)
RELU = (0.0, float("inf"))
Quant = tuple[float, int] | None

# Scales that suit sums, products and quotients of such inputs alike.
QUANTS: dict[DType, Quant] = {S8: (0.05, -3), S16: (0.001, 0), F32: None, I32: None, U8: None}


def value(name: str, shape: Shape, dtype: DType, quant: Quant = None) -> Tensor:
    """A tensor that is computed or given; quantized as QUANTS says where nothing else is said."""
    chosen = quant or QUANTS[dtype]
    return Tensor(name, TensorType(shape, dtype, QuantParams.per_tensor(*chosen) if chosen else None))


def numbers(shape: Shape, low: int = -127, high: int = 127) -> Int64:
    count = int(np.prod(shape))
    return np.asarray((np.arange(count) * 37) % (high - low + 1) + low, np.int64).reshape(shape)


def weights(shape: Shape, dtype: DType, *, channels: bool = True, narrow: bool = False) -> Tensor:
    """Of a layer whose input has `dtype`: float32, or int8 (int4 where narrow) with a scale for each channel."""
    if dtype is F32:
        return constant("w", (numbers(shape) / 256).astype(np.float32))
    count = shape[0] if channels else 1
    quant = QuantParams(tuple(0.004 + 0.001 * i for i in range(count)), (0,) * count, 0 if channels else None)
    if narrow:
        return constant("w", numbers(shape, -8, 7).astype(np.int8), quant, DType.INT4)
    return constant("w", numbers(shape).astype(np.int8), quant)


def bias(count: int, dtype: DType) -> Tensor:
    kind = {F32: np.float32, S8: np.int32, S16: np.int64}[dtype]
    return constant("b", numbers((count,), -90, 90).astype(kind))


def floats(name: str, shape: Shape) -> Tensor:
    return constant(name, (numbers(shape, 1, 60) / 32).astype(np.float32))


def small(name: str, shape: Shape, dtype: DType) -> Tensor:
    """A constant operand."""
    if dtype is F32:
        return floats(name, shape)
    chosen = QUANTS[dtype]
    assert chosen is not None
    return constant(name, numbers(shape).astype(dtype.numpy), QuantParams.per_tensor(*chosen))


def node(
    attrs: Attrs, inputs: Sequence[Tensor | None], dtype: DType, quant: Quant = None, out: str = "y"
) -> Node:
    """A node with one output, in its shape by the operator's own rule."""
    draft = Node(attrs, tuple(inputs), (Tensor(out, TensorType((), F32)),))
    (shape,) = ops.infer(draft)
    origin = Origin(f"aten.{attrs.name}.default", "layer", "model.py", 7, f"y = {attrs.name}(x)", out)
    return draft.replace(outputs=[value(out, shape, dtype, quant)], origins=(origin,))


def program(name: str, *nodes: Node, outputs: Sequence[Tensor] = ()) -> Program:
    """Of nodes in order; inputs are what nobody computes, outputs the last node's and `outputs`."""
    made = {t for n in nodes for t in n.outputs}
    read = dict.fromkeys(t for n in nodes for t in n.inputs if t is not None and not t.is_constant)
    inputs = tuple(t for t in read if t not in made)
    graph = Graph(name, inputs, (*nodes[-1].outputs, *outputs), nodes)
    notes = (Note("a note", nodes[0].origins[0] if nodes[0].origins else None),)
    return Program(name, ops.check_whole(graph, name), None, notes)


def seeds() -> list[Program]:
    """All of them."""
    made = [
        *_elementwise(),
        *_weighted(),
        *_images(),
        *_movement(),
        *_axes(),
        *_conversions(),
        *_bytes(),
        *_recurrent(),
        *_kept(),
        *_wholes(),
        *_features(),
        *_forests(),
        *signals(),
    ]
    used = {n.op for p in made for n in p.graph.nodes}
    assert used >= {op.name for op in ops.OPS} | {"region"}, {op.name for op in ops.OPS} - used
    return made


def _elementwise() -> list[Program]:
    made = []
    for dtype in TYPES:
        x, z = value("x", (1, 2, 3, 2), dtype), value("z", (3, 1), dtype)
        tag = dtype.suffix
        plain = (Add(), Sub(clamp=RELU), Maximum(), Minimum())
        made += [program(f"{attrs.name}_{tag}", node(attrs, [x, z], dtype)) for attrs in plain]
        made.append(program(f"mul_{tag}", node(Mul(), [x, z], dtype, (0.002, 4) if dtype is S8 else None)))
        if dtype is not F32:
            made.append(program(f"squared_difference_{tag}", node(SquaredDifference(), [x, z], dtype)))
        made.append(program(f"mul_one_{tag}", node(Mul(), [x, small("c", (1,), dtype)], dtype)))
        made.append(program(f"add_constant_{tag}", node(Add(), [x, small("c", (2,), dtype)], dtype)))
        made.append(program(f"prelu_{tag}", node(PRelu(), [x, small("c", (2,), dtype)], dtype)))
        made.append(program(f"clamp_{tag}", node(Clamp(-1.0, 2.5), [x], dtype)))
        if dtype is not S16:
            made.append(program(f"div_{tag}", node(Div(clamp=(-3.0, 3.0)), [x, z], dtype)))
        norm = [x, floats("m", (2,)), floats("o", (2,))]
        made.append(program(f"batch_norm_{tag}", node(BatchNorm(3, RELU), norm, dtype)))
    unaries = {
        F32: sorted(FUNCTIONS),
        S8: ("abs", "exp", "hardswish", "leaky_relu", "log", "softplus", "tanh"),
    }
    unaries[S16] = ("abs", "gelu", "leaky_relu", "neg", "sigmoid", "exp")
    for dtype, functions in unaries.items():
        for function in FUNCTIONS:
            if function in functions:
                x = value("x", (2, 5), dtype)
                quant = (2.0**-15, 0) if function == "sigmoid" and dtype is S16 else None
                made.append(
                    program(f"{function}_{dtype.suffix}", node(Unary(function, 0.5, 2.0), [x], dtype, quant))
                )
    return made


def _weighted() -> list[Program]:
    made = []
    for dtype in TYPES:
        tag = dtype.suffix
        image = value("x", (1, 4, 5, 2), dtype)
        out: Quant = (0.02, 5) if dtype is S8 else None
        for narrow in (False, True) if dtype is S8 else (False,):
            w4 = "w4" if narrow else ""
            ins: list[Tensor | None] = [image, weights((3, 3, 2, 2), dtype, narrow=narrow), bias(3, dtype)]
            attrs = Conv2d(stride_h=2, dilation_w=2, pad_top=1, pad_right=2, clamp=RELU)
            made.append(program(f"conv_{tag}{w4}", node(attrs, ins, dtype, out)))
            ins = [image, weights((2, 2, 3, 1), dtype, narrow=narrow), None]
            made.append(program(f"depthwise_{tag}{w4}", node(Conv2d(pad_left=1, groups=2), ins, dtype, out)))
            ins = [value("x", (2, 7), dtype), weights((5, 7), dtype, narrow=narrow), bias(5, dtype)]
            made.append(program(f"linear_{tag}{w4}", node(Linear(), ins, dtype, out)))
            if dtype is not F32 and not w4:
                made.append(program(f"linear_once_{tag}", node(LinearSingleRounding(), ins, dtype, out)))
        ins = [image, weights((4, 2, 2, 1), dtype, channels=False), bias(4, dtype)]
        made.append(program(f"multiplier_{tag}", node(Conv2d(groups=2), ins, dtype, out)))
        ins = [image, weights((3, 1, 1, 2), dtype), bias(3, dtype)]
        made.append(program(f"conv_1x1_{tag}", node(Conv2d(), ins, dtype, out)))
        if dtype is S16:
            made.append(program("conv_short", node(Conv2d(rounding="int32_accumulator"), ins, dtype, out)))
        ins = [image, weights((2, 3, 2, 2), dtype), bias(2, dtype)]
        attrs2 = ConvTranspose2d(stride_h=2, stride_w=3, pad_top=1, out_pad_w=1)
        made.append(program(f"transposed_{tag}", node(attrs2, ins, dtype, out)))
        pair = [value("x", (2, 3, 4), dtype), value("z", (4, 2), dtype)]
        made.append(program(f"matmul_{tag}", node(MatMul(), pair, dtype, (0.05, 2) if dtype is S8 else None)))
    x = value("x", (1, 4, 4, 2), F32)
    made.append(
        program(
            "dynamic_conv", node(DynamicConv2d(pad_top=1), [x, weights((3, 2, 2, 2), S8), bias(3, F32)], F32)
        )
    )
    ins = [x, weights((2, 2, 2, 1), S8), None]
    made.append(program("dynamic_depthwise", node(DynamicConv2d(groups=2), ins, F32)))
    ins = [value("x", (2, 6), F32), weights((3, 6), S8, narrow=True), bias(3, F32)]
    made.append(program("dynamic_linear", node(DynamicLinear(clamp=RELU), ins, F32)))
    return made


def _images() -> list[Program]:
    made = []
    for dtype in TYPES:
        tag = dtype.suffix
        x = value("x", (1, 5, 4, 2), dtype)
        window = {"kernel_h": 3, "kernel_w": 2, "stride_h": 2, "pad_top": 1, "pad_right": 1}
        made.append(program(f"max_pool_{tag}", node(MaxPool2d(**window), [x], dtype)))
        pool = AvgPool2d(**window, count_include_pad=False)
        made.append(program(f"avg_pool_{tag}", node(pool, [x], dtype)))
        made.append(
            program(f"avg_pool_by_{tag}", node(AvgPool2d(kernel_h=2, kernel_w=2, divisor=3), [x], dtype))
        )
        made.append(program(f"adaptive_{tag}", node(AdaptiveAvgPool2d(2, 3), [x], dtype)))
        made.append(
            program(f"nearest_{tag}", node(Resize(7, 3, "nearest", False, False, 0.714, 1.333), [x], dtype))
        )
        made.append(
            program(f"bilinear_{tag}", node(Resize(3, 6, "bilinear", False, True, 1.667, 0.667), [x], dtype))
        )
        pads = ((0, 0), (1, 2), (-1, 1), (0, 0))
        made.append(program(f"pad_{tag}", node(Pad(pads, "constant", 0.5), [x], dtype)))
        made.append(
            program(f"reflect_{tag}", node(Pad(((0, 0), (2, 1), (1, 0), (0, 0)), "reflect"), [x], dtype))
        )
    return made


def _movement() -> list[Program]:
    made = []
    for dtype in TYPES:
        tag = dtype.suffix
        x, z = value("x", (2, 3, 4), dtype), value("z", (2, 1, 4), dtype)
        made.append(program(f"permute_{tag}", node(Permute((2, 0, 1)), [x], dtype)))
        made.append(program(f"flip_{tag}", node(Flip((0, 2)), [x], dtype)))
        made.append(program(f"unfold_{tag}", node(Unfold(2, 2, 2), [x], dtype)))
        made.append(program(f"slice_{tag}", node(Slice(2, 1, 4, 2), [x], dtype)))
        made.append(program(f"concat_{tag}", node(Concat(1), [x, z, small("c", (2, 2, 4), dtype)], dtype)))
        made.append(program(f"expand_{tag}", node(Expand((3, 2, 5, 4)), [z], dtype)))
        made.append(program(f"reshape_{tag}", node(Reshape((6, 4)), [x], dtype)))
        made.append(program(f"copy_{tag}", node(Copy(), [x], dtype)))
        table = small("t", (5, 3), dtype)
        made.append(program(f"embedding_{tag}", node(Embedding(), [value("x", (2, 2), I32), table], dtype)))
        for kind, places in (("rows", (5,)), ("elements", (2, 5, 4))):
            made.append(program(f"gather_{kind}_{tag}", node(Gather(1), [x, value("p", places, I32)], dtype)))
        condition, other = value("c", (2, 3, 4), I32), value("w", (1,), dtype)
        made.append(program(f"where_{tag}", node(Where(), [condition, x, other], dtype)))
    return made


def _axes() -> list[Program]:
    x = value("x", (2, 3, 4), S8)
    made = [program("softmax_s8_s16", node(Softmax(2), [x], S16, (2.0**-16, -32768)))]
    for dtype in TYPES:
        tag = dtype.suffix
        x = value("x", (2, 3, 4), dtype)
        made.append(program(f"mean_{tag}", node(Mean((1,)), [x], dtype)))
        made.append(
            program(f"sum_{tag}", node(Sum((0, 2), True), [x], dtype, (0.3, 7) if dtype is S8 else None))
        )
        made.append(program(f"amax_{tag}", node(Amax((2,)), [x], dtype)))
        made.append(program(f"amin_{tag}", node(Amin((0,), True), [x], dtype)))
        made.append(program(f"argmax_{tag}", node(ArgMax(1), [x], I32)))
        made.append(program(f"argsort_{tag}", node(ArgSort(1, 2, True), [x], I32)))
        out: Quant = {S8: (1 / 256, -128), S16: (2.0**-15, 0), F32: None}[dtype]
        made.append(program(f"softmax_{tag}", node(Softmax(2), [x], dtype, out)))
        if dtype is S8:
            made.append(program("l2_normalize_s8", node(L2Normalize(), [x], S8, (1 / 128, 0))))
        if dtype is not S16:
            out = None if dtype is F32 else (1 / 16, 127)
            made.append(
                program(f"cumsum_{tag}", node(CumSum(1), [x], dtype, (0.2, 7) if dtype is S8 else None))
            )
            made.append(program(f"log_softmax_{tag}", node(LogSoftmax(1), [x], dtype, out)))
            ins = [x, floats("w", (3, 4)), floats("b", (3, 4))]
            made.append(program(f"layer_norm_{tag}", node(LayerNorm(1), ins, dtype)))
    return made


def _conversions() -> list[Program]:
    made = []
    for dtype in (S8, S16):
        tag = dtype.suffix
        made.append(program(f"quantize_{tag}", node(Quantize(), [value("x", (7,), F32)], dtype)))
        made.append(program(f"dequantize_{tag}", node(Dequantize(), [value("x", (7,), dtype)], F32)))
        for other in (S8, S16):
            again = node(
                Requantize(), [value("x", (7,), dtype)], other, (0.03, 2) if other is S8 else (0.0007, 0)
            )
            made.append(program(f"requantize_{tag}_{other.suffix}", again))
    for dtype in (F32, I32):
        operands = [value("x", (2, 3), dtype), value("z", (1,), dtype)]
        made.append(program(f"compare_{dtype.suffix}", node(Compare("greater"), operands, I32)))
    for function in ("add", "mul", "floor_div"):
        whole = [value("x", (2, 3), I32), value("z", (2, 3), I32)]
        made.append(program(f"pairwise_{function}", node(Pairwise(function), whole, I32)))
    return made


def _bytes() -> list[Program]:
    made = [program(f"cast_{t.suffix}", node(Cast(), [value("x", (7,), t)], F32)) for t in (U8, I32)]
    image = value("x", (1, 3, 5, 2), U8)
    for dtype in (S8, S16):
        for rows in (1, 2):
            table = small("t", (rows, 256), dtype)
            made.append(program(f"lookup_{dtype.suffix}_{rows}", node(Lookup(3), [image, table], dtype)))
    quant = QuantParams.per_tensor(1 / 255, -128)
    flip = constant("t", np.arange(-128, 128, dtype=np.int8).reshape(1, 256), quant)
    turned = node(Permute((0, 3, 1, 2)), [image], U8, None, "turned")
    made.append(program("flip", turned, node(Lookup(0), [turned.output, flip], S8, (1 / 255, -128))))
    return made


def _recurrent() -> list[Program]:
    """Layers over sequences, with and without what may be absent."""
    made = []
    for dtype in (S8, F32):
        tag = dtype.suffix
        x, h = value("x", (2, 3, 5), dtype), value("h", (2, 4), dtype)
        c = value("c", (2, 4), S16 if dtype is S8 else F32, (2.0**-12, 0) if dtype is S8 else None)

        def matrix(rows: int, columns: int, dtype: DType = dtype) -> Tensor:
            own = weights((rows, columns), dtype, channels=False)
            return Tensor(f"w_{columns}", own.type, own.data)

        own = bias(12, dtype)
        other = Tensor("b_h", own.type, own.data)
        square = [x, h, matrix(12, 5), matrix(12, 4)]
        made.append(program(f"gru_{tag}", layer(Gru(), [*square, own, other], [h, h])))
        made.append(program(f"gru_last_{tag}", layer(Gru(reverse=True, sequence=False), square, [h])))
        plain = [x, h, matrix(4, 5), matrix(4, 4)]
        made.append(program(f"rnn_{tag}", layer(Rnn(), [*plain, bias(4, dtype)], [h, h])))
        made.append(program(f"rnn_relu_{tag}", layer(Rnn(nonlinearity="relu"), plain, [h, h])))
        whole = [x, h, c, matrix(16, 5), matrix(16, 4), bias(16, dtype)]
        made.append(program(f"lstm_{tag}", layer(Lstm(), whole, [h, h, c])))
        state = value("h", (2, 3), dtype)
        projected = [x, state, c, matrix(16, 5), matrix(16, 3), None, matrix(3, 4)]
        made.append(program(f"lstm_projected_{tag}", layer(Lstm(sequence=False), projected, [state, c])))
        tflm = Lstm(arithmetic="tflm", cell_clip=3.0)
        made.append(program(f"lstm_lut_{tag}", layer(tflm, whole, [h, h, c])))
        frame, memory = value("x", (2, 5), dtype), value("memory", (2, 12), dtype)
        filters = [weights(shape, dtype, channels=False) for shape in ((4, 5), (4, 3))]
        named = [Tensor(f"filters_{i}", t.type, t.data) for i, t in enumerate(filters)]
        y = value("y", (2, 2), dtype)
        made.append(
            program(f"svdf_{tag}", layer(Svdf(2), [frame, memory, *named, bias(2, dtype)], [y, memory]))
        )
    return made


def _kept() -> list[Program]:
    """States: a sum, a ring of frames, and two of which the one becomes the other."""
    made = []
    for dtype in TYPES:
        tag = dtype.suffix
        x, h = value("x", (2, 3), dtype), value("h", (2, 3), dtype)
        total = node(Add(), [x, h], dtype, None, "total")
        kept = node(StateWrite(), [total.output, h], dtype, None, "h_next")
        shown = node(Reshape((6,)), [total.output], dtype, None, "shown")
        made.append(_keeping(f"sum_kept_{tag}", [x], [h], [total, shown, kept], [kept]))
        frame, ring = value("x", (1, 3), dtype), value("ring", (4, 3), dtype)
        later = node(Slice(0, 1, 4), [ring], dtype, None, "later")
        whole = node(Concat(0), [later.output, frame], dtype, None, "whole")
        shown = node(Copy(), [whole.output], dtype, None, "shown")
        kept = node(StateWrite(), [whole.output, ring], dtype, None, "ring_next")
        made.append(_keeping(f"ring_kept_{tag}", [frame], [ring], [later, whole, shown, kept], [kept]))
        before = value("g", (2, 3), dtype)
        shown = node(Copy(), [before], dtype, None, "shown")
        apart = node(Copy(), [h], dtype, None, "apart")
        moved = node(StateWrite(), [apart.output, before], dtype, None, "g_next")
        taken = node(StateWrite(), [x, h], dtype, None, "h_next")
        made.append(
            _keeping(f"delay_kept_{tag}", [x], [h, before], [apart, shown, taken, moved], [taken, moved])
        )
    return made


def _keeping(
    name: str, inputs: Sequence[Tensor], states: Sequence[Tensor], nodes: Sequence[Node], kept: Sequence[Node]
) -> Program:
    """A program whose last node that keeps nothing gives its output."""
    (*_, shown) = (n for n in nodes if n not in kept)
    first = tuple(small(f"{t.name}_initial", t.shape, t.dtype) for t in states)
    graph = Graph(name, (*inputs, *states), (shown.output, *(k.output for k in kept)), tuple(nodes), first)
    assert not ops.state_problems(graph)
    return Program(name, ops.check_whole(graph, name))


def layer(attrs: Attrs, inputs: Sequence[Tensor | None], kinds: Sequence[Tensor]) -> Node:
    """A node with outputs of these types, in its shapes by the operator's own rule."""
    shapes = ops.infer(Node(attrs, tuple(inputs), tuple(kinds)))
    types = (TensorType(s, t.dtype, t.type.quant) for s, t in zip(shapes, kinds, strict=True))
    return Node(attrs, tuple(inputs), tuple(Tensor(f"y{i}", kind) for i, kind in enumerate(types)))


def _features() -> list[Program]:
    x, state = value("x", (2, 6), F32), value("state", (2, 2, 2), F32)
    sections = constant("sections", (numbers((2, 5)) / 512).astype(np.float32))
    runs = [constant(f"run_{i}", np.array(each, np.int32)) for i, each in enumerate(([0, 2, 3], [2, 4, 3]))]
    bands = [x, constant("w", (numbers((9,)) / 64).astype(np.float32)), *runs]
    return [
        program("biquads", layer(Biquads(), [x, state, sections], [x, state])),
        program("linear_bands", layer(LinearBands(), bands, [x])),
        program("sum_of_squares", layer(SumOfSquares(), [x], [x])),
    ]


def _forests() -> list[Program]:
    """Two trees, one of which is a leaf; of features of each type."""
    made = []
    for dtype in TYPES:
        asked = constant("features", np.array([1, 0], np.int32))
        thresholds = constant("thresholds", np.array([3, -2], dtype.numpy))
        children = constant("children", np.array([[1, ~0], [~1, ~2]], np.int32))
        roots = constant("roots", np.array([0, ~1], np.int32))
        leaves = constant("leaves", np.array([[0.5], [1.5], [-2.0]], np.float32))
        targets, base = constant("targets", np.array([0, 1], np.int32)), floats("base", (2,))
        held = [asked, thresholds, children, roots, leaves, targets, base]
        y = value("y", (2, 2), F32)
        x = value("x", (2, 3), dtype)
        made.append(program(f"forest_{dtype.suffix}", layer(TreeEnsemble(), [x, *held], [y])))
        whole = constant("whole", np.array([[5], [-32768], [7]], np.int16))
        start = constant("start", np.array([1, -1], np.int32))
        fixed = [x, *held[:4], whole, targets, start]
        made.append(
            program(f"fixed_{dtype.suffix}", layer(TreeEnsemble(), fixed, [value("y", (2, 2), DType.INT32)]))
        )
    missing = constant("missing", np.array([1, 0], np.uint8))
    last = made[-2].graph.nodes[0]
    made.append(program("forest_missing", layer(TreeEnsemble(), [*last.inputs, missing], [y])))
    return made


def _wholes() -> list[Program]:
    """Several nodes, several outputs, a region, a float graph beside the integer one, labels."""
    x = value("x", (1, 4, 4, 2), S8)
    conv = node(
        Conv2d(pad_top=1, clamp=RELU), [x, weights((2, 2, 2, 2), S8), bias(2, S8)], S8, (0.05, -3), "conv"
    )
    both = node(Add(), [conv.output, small("c", (2,), S8)], S8, None, "both")
    flat = node(Reshape((1, 24)), [both.output], S8, None, "flat")
    real = node(Dequantize(), [flat.output], F32, None, "real")
    best = node(ArgMax(1), [real.output], I32, None, "best")
    chain = program("chain", conv, both, flat, real, best, outputs=[conv.output])
    made = [chain, Program("labelled", _single(best), None, (), ("yes", 'no "??/'))]
    inner_x, inner_y = value("p", (2, 3), F32), value("q", (2, 3), F32)
    inner = Graph(
        "inner", (inner_x,), (inner_y,), (node(Unary("sin"), [inner_x], F32).replace(outputs=[inner_y]),)
    )
    given, taken = value("x", (2, 3), F32), value("y", (2, 3), F32)
    region = Node(Region(DelegateName("portable"), inner), (given,), (taken,))
    behind = node(Unary("abs"), [taken], F32, None, "size")
    made.append(program("regional", region, behind))
    twin_x = value("x", (2, 5), F32)
    twin_node = node(Unary("tanh"), [twin_x], F32)
    twin = Graph("tanh", (twin_x,), twin_node.outputs, (twin_node,))
    own = program("twin", node(Unary("tanh"), [value("x", (2, 5), S8)], S8)).graph
    made.append(Program("twin", own, twin))
    return made


def _single(of: Node) -> Graph:
    return Graph("single", tuple(t for t in of.inputs if t is not None), of.outputs, (of,))
