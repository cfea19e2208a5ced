# SPDX-License-Identifier: Apache-2.0
"""Drawn nodes of each operator of floats, between permutes, so that values come in many forms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Graph, Node, Origin, Shape, Tensor, TensorType, constant
from tinyet.ops.adaptive_avg_pool2d import AdaptiveAvgPool2d
from tinyet.ops.add import Add
from tinyet.ops.amax import Amax
from tinyet.ops.amin import Amin
from tinyet.ops.argmax import ArgMax
from tinyet.ops.argsort import ArgSort
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.batch_norm import BatchNorm
from tinyet.ops.clamp import Clamp
from tinyet.ops.compare import Compare
from tinyet.ops.concat import Concat
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.copy import Copy
from tinyet.ops.cumsum import CumSum
from tinyet.ops.div import Div
from tinyet.ops.embedding import Embedding
from tinyet.ops.expand import Expand
from tinyet.ops.flip import Flip
from tinyet.ops.gather import Gather
from tinyet.ops.gru import Gru
from tinyet.ops.layer_norm import LayerNorm
from tinyet.ops.linear import Linear
from tinyet.ops.log_softmax import LogSoftmax
from tinyet.ops.lstm import Lstm
from tinyet.ops.matmul import MatMul
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.maximum import Maximum
from tinyet.ops.mean import Mean
from tinyet.ops.minimum import Minimum
from tinyet.ops.mul import Mul
from tinyet.ops.pad import MODES, Pad
from tinyet.ops.permute import Permute
from tinyet.ops.prelu import PRelu
from tinyet.ops.reshape import Reshape
from tinyet.ops.resize import Resize
from tinyet.ops.rnn import Rnn
from tinyet.ops.shared.forest import Tree, forest_of
from tinyet.ops.shared.unary_functions import FUNCTIONS, FunctionName
from tinyet.ops.slice import Slice
from tinyet.ops.softmax import Softmax
from tinyet.ops.sub import Sub
from tinyet.ops.sum import Sum
from tinyet.ops.svdf import Svdf
from tinyet.ops.tree_ensemble import TreeEnsemble
from tinyet.ops.unary import Unary
from tinyet.ops.unfold import Unfold
from tinyet.ops.where import Where

CLAMPS = ((-math.inf, math.inf), (0.0, math.inf), (0.0, 6.0), (-1.0, 1.0), (-math.inf, 0.5), (0.25, math.inf))


class Draw:
    """A source of random numbers, and a graph that grows: its inputs and nodes."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.inputs: list[Tensor] = []
        self.nodes: list[Node] = []
        self.count = 0

    def size(self, low: int = 1, high: int = 5) -> int:
        return int(self.rng.integers(low, high + 1))

    def flag(self) -> bool:
        return bool(self.rng.integers(2))

    def one_of(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def shape(self, low: int = 1, high: int = 4) -> Shape:
        return tuple(self.size(1, 4) for _ in range(self.size(low, high)))

    def image(self, low: int = 1) -> Shape:
        return self.one_of(1, 1, 2), self.size(low, 9), self.size(low, 9), self.size(1, 6)

    def numbers(self, *shape: int) -> Array:
        return np.asarray(self.rng.normal(0, 1, shape), np.float32).reshape(shape)

    def held(self, data: Array) -> Tensor:
        self.count += 1
        return constant(f"c{self.count}", data)

    def value(self, shape: Shape, dtype: DType = DType.FLOAT32) -> Tensor:
        """An input; half of them are images in another order than the graph's, or have lost a dimension."""
        self.count += 1
        order = [int(n) for n in self.rng.permutation(len(shape))] if self.flag() else list(range(len(shape)))
        source = Tensor(
            f"x{self.count}", TensorType(tuple(shape[order.index(i)] for i in range(len(shape))), dtype)
        )
        self.inputs.append(source)
        if order == list(range(len(shape))):
            return source
        moved = self.node(Permute(tuple(order)), source)
        if self.flag():
            return moved
        small = self.node(Reshape(tuple(n for n in shape if n != 1)), moved)
        return self.node(Reshape(shape), small)

    def node(self, attrs: Attrs, *inputs: Tensor | None, dtype: DType = DType.FLOAT32) -> Tensor:
        """The first output of a new node, whose shapes are the operator's. Raises UnsupportedShape where there are
        none."""
        return self.node_of_many(attrs, *inputs, dtype=dtype)[0]

    def node_of_many(
        self, attrs: Attrs, *inputs: Tensor | None, dtype: DType = DType.FLOAT32
    ) -> tuple[Tensor, ...]:
        self.count += 1
        if dtype is DType.FLOAT32 and isinstance(attrs, (Permute, Reshape)):
            dtype = next(t.dtype for t in inputs if t is not None)
        origin = Origin("OP", f"net.layer_{self.count}", "drawn.tflite", self.count)
        probe = Node(attrs, tuple(inputs), (Tensor("y", TensorType((), dtype)),), (origin,))
        shapes = ops.infer(probe)
        outputs = tuple(Tensor(f"y{self.count}_{i}", TensorType(s, dtype)) for i, s in enumerate(shapes))
        made = probe.replace(outputs=outputs)
        assert ops.op_of(made).check(made) is None, ops.op_of(made).check(made)
        self.nodes.append(made)
        return outputs


def _window(d: Draw) -> dict[str, int]:
    pads = {f"pad_{side}": d.one_of(0, 0, 1, 2) for side in ("top", "bottom", "left", "right")}
    if d.flag():
        pads |= {"pad_bottom": pads["pad_top"], "pad_right": pads["pad_left"]}
    return {"stride_h": d.size(1, 3), "stride_w": d.size(1, 3), **pads}


def _dilated(d: Draw) -> dict[str, int]:
    return {**_window(d), "dilation_h": d.one_of(1, 1, 2), "dilation_w": d.one_of(1, 1, 2)}


def _conv2d(d: Draw) -> None:
    groups, kernel = d.size(1, 3), (d.size(1, 3), d.size(1, 3))
    batch, height, width, _ = d.image()
    per = d.size(1, 3)
    x = d.value((batch, height, width, groups * per))
    out = groups * d.size(1, 3)
    bias = d.held(d.numbers(out)) if d.flag() else None
    window: dict[str, Any] = _dilated(d)
    attrs = Conv2d(**window, groups=groups, clamp=d.one_of(*CLAMPS))
    d.node(attrs, x, d.held(d.numbers(out, *kernel, per)), bias)


def _conv_transpose2d(d: Draw) -> None:
    groups, per, kernel = d.size(1, 3), d.size(1, 3), (d.size(2, 4), d.size(2, 4))
    batch, height, width, _ = d.image()
    x = d.value((batch, height, width, groups * per))
    out = groups * d.size(1, 3)
    bias = d.held(d.numbers(out)) if d.flag() else None
    stride = d.size(2, 3)
    attrs = ConvTranspose2d(
        stride_h=stride, stride_w=stride, pad_top=d.size(0, 1), pad_left=1, pad_bottom=d.size(1, 2),
        pad_right=d.size(0, 2),
        out_pad_h=d.size(0, 1), groups=groups, clamp=d.one_of(*CLAMPS),
    )  # fmt: skip
    d.node(attrs, x, d.held(d.numbers(out, *kernel, per)), bias)


def _max_pool2d(d: Draw) -> None:
    kind = _window(d) if d.flag() else {"dilation_h": d.size(1, 2), "dilation_w": 2}
    # No window lies wholly in the padding.
    d.node(MaxPool2d(**kind, kernel_h=d.size(3, 4), kernel_w=d.size(3, 4)), d.value(d.image()))


def _avg_pool2d(d: Draw) -> None:
    attrs = AvgPool2d(
        **_dilated(d), kernel_h=d.size(1, 4), kernel_w=d.size(1, 4), count_include_pad=d.flag(),
        divisor=d.one_of(None, None, 3),
    )  # fmt: skip
    d.node(attrs, d.value(d.image()))


def _resize(d: Draw) -> None:
    batch, height, width, channels = d.image(2)
    corners = d.flag()
    out = d.size(1, 12), d.size(1, 12)

    def ratio(size: int, to: int) -> float:
        if corners:
            return float(np.float32(size - 1) / np.float32(to - 1)) if to > 1 else 0.0
        return float(np.float32(size) / np.float32(to))

    attrs = Resize(
        *out, d.one_of("nearest", "bilinear"), corners, not corners and d.flag(), ratio(height, out[0]),
        ratio(width, out[1]),
    )  # fmt: skip
    d.node(attrs, d.value((batch, height, width, channels)))


def _linear(d: Draw) -> None:
    shape = d.shape(1, 4)
    out = d.size()
    bias = d.held(d.numbers(out)) if d.flag() else None
    d.node(Linear(d.one_of(*CLAMPS)), d.value(shape), d.held(d.numbers(out, shape[-1])), bias)


def _matmul(d: Draw) -> None:
    rows, depth, columns = d.size(), d.size(), d.size()
    batch = d.shape(0, 2)
    left = d.value((*batch, rows, depth))
    if d.flag():
        d.node(MatMul(d.one_of(*CLAMPS)), left, d.held(d.numbers(depth, columns)))
    else:
        d.node(MatMul(), left, d.value((*(n if d.flag() else 1 for n in batch), depth, columns)))


def _batch_norm(d: Draw) -> None:
    shape = d.shape(1, 4)
    axis = d.size(0, len(shape) - 1)
    factors = d.held(d.numbers(shape[axis])), d.held(d.numbers(shape[axis]))
    d.node(BatchNorm(axis, d.one_of(*CLAMPS)), d.value(shape), *factors)


def _layer_norm(d: Draw) -> None:
    shape = (*d.shape(1, 3), d.size(2, 5))
    axis = d.size(0, len(shape) - 1)
    weight, bias = (d.held(d.numbers(*shape[axis:])) if d.flag() else None for _ in range(2))
    d.node(LayerNorm(axis, 1e-3), d.value(shape), weight, bias)


def _prelu(d: Draw) -> None:
    shape = d.image()
    slope = d.one_of((), (shape[3],), (1, 1, shape[3]), shape[1:], (shape[1], 1, 1), (1, 1, 1))
    d.node(PRelu(), d.value(shape), d.held(d.numbers(*slope)))


def _embedding(d: Draw) -> None:
    d.node(Embedding(), d.value(d.shape(1, 3), DType.INT32), d.held(d.numbers(d.size(2, 6), d.size())))


def _tree_ensemble(d: Draw) -> None:
    """Trees of one node or three."""
    features, width = d.size(1, 5), d.size(1, 3)
    trees = []
    for _ in range(d.size(1, 4)):
        left = np.array([1, 3, -1, -1, -1] if d.flag() else [1, -1, -1, -1, -1], np.int32)
        asked = d.rng.integers(0, features, 5).astype(np.int32)
        sides = d.rng.random(5) < 0.5 if d.flag() else None
        numbers, leaves = (np.asarray(d.numbers(*s), np.float32) for s in ((5,), (5, width)))
        trees.append(Tree(left, left + np.int32(1), asked, numbers, leaves, 0, sides))
    made = forest_of(trees, d.numbers(width))
    arrays = [made.features, made.thresholds, made.children, made.roots, made.values, made.targets, made.base]
    arrays += [] if made.missing is None else [made.missing]
    d.node(TreeEnsemble(), d.value((d.size(1, 3), features)), *map(d.held, arrays))


def _of_two(kind: Callable[..., Attrs], **more: tuple[object, ...]) -> Callable[[Draw], None]:
    def draw(d: Draw) -> None:
        shape = d.shape(1, 4)
        other = tuple(n if d.flag() else 1 for n in shape)[d.size(0, len(shape)) :]
        left = d.value(shape)
        right = d.value(other) if d.flag() else d.held(np.abs(d.numbers(*other)) + np.float32(0.5))
        pair = (left, right) if d.flag() else (right, left)
        d.node(kind(**{name: d.one_of(*found) for name, found in more.items()}), *pair)

    return draw


def _chosen(d: Draw) -> None:
    """A comparison, and a choice by it, of operands of one shape or one element."""
    shape = d.shape(1, 4)
    relation = d.one_of("equal", "not_equal", "greater", "greater_equal")
    right = d.value(shape) if d.flag() else d.held(d.numbers())
    condition = d.node(Compare(relation), d.value(shape), right, dtype=DType.INT32)
    d.node(Where(), condition, d.value(shape), d.value(shape) if d.flag() else d.held(d.numbers()))


def _reduction(kind: Callable[..., Attrs]) -> Callable[[Draw], None]:
    def draw(d: Draw) -> None:
        shape = d.shape(1, 4)
        axes = tuple(axis for axis in range(len(shape)) if d.flag()) or (0,)
        d.node(kind(axes=axes, keepdims=d.flag()), d.value(shape))

    return draw


def _along(
    kind: Callable[..., Attrs], dtype: DType = DType.FLOAT32, **more: object
) -> Callable[[Draw], None]:
    def draw(d: Draw) -> None:
        shape = d.shape(1, 4)
        d.node(kind(axis=d.size(0, len(shape) - 1), **more), d.value(shape), dtype=dtype)

    return draw


def _argsort(d: Draw) -> None:
    shape = d.shape(1, 4)
    axis = d.size(0, len(shape) - 1)
    places = d.node(ArgSort(axis, d.size(1, shape[axis]), d.flag()), x := d.value(shape), dtype=DType.INT32)
    if len(shape) > 1:
        d.node(Gather(axis), x, places)


def _gather(d: Draw) -> None:
    shape = d.shape(1, 4)
    axis = d.size(0, len(shape) - 1)
    known = d.rng.integers(-shape[axis], shape[axis], d.size()).astype(np.int32)
    places = d.held(known) if d.flag() or shape[axis] < 2 else d.value((d.size(),), DType.INT32)
    d.node(Gather(axis), d.value(shape), places)


def _concat(d: Draw) -> None:
    shape = d.shape(1, 4)
    axis = d.size(0, len(shape) - 1)
    shapes = [(*shape[:axis], d.size(), *shape[axis + 1 :]) for _ in range(d.size(1, 3))]
    d.node(Concat(axis), *(d.value(s) if d.flag() else d.held(d.numbers(*s)) for s in shapes), d.value(shape))


def _pad(d: Draw) -> None:
    mode, shape = d.one_of(*MODES), tuple(n + 2 for n in d.shape(1, 4))
    low = -1 if mode == "constant" else 0
    pads = tuple((d.size(low, 1), d.size(low, 2)) if d.flag() else (0, 0) for _ in shape)
    d.node(Pad(pads, mode, d.one_of(0.0, -1.5)), d.value(shape))


def _reshape(d: Draw) -> None:
    shape = d.shape(1, 4)
    count = math.prod(shape)
    half = next(n for n in (4, 3, 2, 1) if count % n == 0)
    d.node(Reshape(d.one_of((count,), (half, count // half), (1, half, 1, count // half))), d.value(shape))


def _slice(d: Draw) -> None:
    shape = d.shape(1, 4)
    axis = d.size(0, len(shape) - 1)
    start = d.size(0, shape[axis] - 1)
    d.node(Slice(axis, start, d.size(start + 1, shape[axis]), d.size(1, 2)), d.value(shape))


def _unfold(d: Draw) -> None:
    shape = (*d.shape(0, 2), d.size(4, 8), *d.shape(0, 1))
    axis = max(range(len(shape)), key=lambda at: shape[at])
    d.node(Unfold(axis, d.size(1, 2), d.size(1, 2), d.size(1, 2)), d.value(shape))


def _expand(d: Draw) -> None:
    shape = d.shape(1, 4)
    wide = tuple(n if n != 1 else d.size() for n in shape)
    d.node(Expand((*d.shape(0, 4 - len(shape)), *wide) if len(shape) < 4 else wide), d.value(shape))


def _flip(d: Draw) -> None:
    shape = d.shape(1, 4)
    d.node(Flip(tuple(axis for axis in range(len(shape)) if d.flag()) or (0,)), d.value(shape))


_POSITIVE: tuple[FunctionName, ...] = ("log", "sqrt", "rsqrt", "log1p", "pow")


def unary(function: FunctionName) -> Callable[[Draw], None]:
    def draw(d: Draw) -> None:
        x = d.value(d.shape(1, 4))
        if function in _POSITIVE:
            x = d.node(Unary("abs"), x)
        alpha, beta = float(np.float32(d.rng.uniform(0.3, 2))), d.one_of(1.0, 20.0)
        d.node(Unary(function, alpha, beta), x)

    return draw


def _recurrent(kind: Callable[..., Attrs], gates: int, biases: int, states: int) -> Callable[[Draw], None]:
    def draw(d: Draw) -> None:
        batch, steps, inputs, units = d.one_of(1, 2), d.size(), d.size(), d.size()
        x = d.value((batch, steps, inputs))
        firsts = [
            d.value((batch, units)) if d.flag() else d.held(np.zeros((batch, units), np.float32))
            for _ in range(states)
        ]
        weights = [d.held(d.numbers(gates * units, n)) for n in (inputs, units)]
        rest = [d.held(d.numbers(gates * units)) if d.flag() else None for _ in range(biases)]
        d.node_of_many(kind(reverse=d.flag(), sequence=d.flag()), x, *firsts, *weights, *rest)

    return draw


def _projected(d: Draw) -> None:
    batch, inputs, units, outputs = d.one_of(1, 2), d.size(), d.size(3, 5), d.size(1, 2)
    x = d.value((batch, d.size(), inputs))
    firsts = d.value((batch, outputs)), d.value((batch, units))
    weights = d.held(d.numbers(4 * units, inputs)), d.held(d.numbers(4 * units, outputs))
    d.node_of_many(
        Lstm(reverse=d.flag()),
        x,
        *firsts,
        *weights,
        d.held(d.numbers(4 * units)),
        d.held(d.numbers(outputs, units)),
    )


def _svdf(d: Draw) -> None:
    batch, inputs, units, rank, memory = d.one_of(1, 2), d.size(), d.size(), d.size(1, 2), d.size(2, 4)
    filters = units * rank
    x, state = d.value((batch, inputs)), d.value((batch, filters * memory))
    bias = d.held(d.numbers(units)) if d.flag() else None
    weights = d.held(d.numbers(filters, inputs)), d.held(d.numbers(filters, memory))
    d.node_of_many(Svdf(rank, d.one_of(*CLAMPS)), x, state, *weights, bias)


DRAWN: Mapping[str, Callable[[Draw], None]] = {
    "adaptive_avg_pool2d": lambda d: void(
        d.node(AdaptiveAvgPool2d(d.size(1, 4), d.size(1, 4)), d.value(d.image(4)))
    ),
    "add": _of_two(Add, clamp=CLAMPS),
    "amax": _reduction(Amax),
    "amin": _reduction(Amin),
    "argmax": _along(ArgMax, DType.INT32),
    "argsort": _argsort,
    "avg_pool2d": _avg_pool2d,
    "batch_norm": _batch_norm,
    "clamp": lambda d: void(d.node(Clamp(*d.one_of(*CLAMPS[1:])), d.value(d.shape()))),
    "compare": _chosen,
    "concat": _concat,
    "conv2d": _conv2d,
    "conv_transpose2d": _conv_transpose2d,
    "copy": lambda d: void(d.node(Copy(), d.value(d.shape()))),
    "cumsum": _along(CumSum),
    "div": _of_two(Div, clamp=CLAMPS),
    "embedding": _embedding,
    "expand": _expand,
    "flip": _flip,
    "gather": _gather,
    "gru": _recurrent(Gru, 3, 2, 1),
    "layer_norm": _layer_norm,
    "linear": _linear,
    "log_softmax": _along(LogSoftmax),
    "lstm": _recurrent(Lstm, 4, 1, 2),
    "lstm, projected": _projected,
    "matmul": _matmul,
    "max_pool2d": _max_pool2d,
    "maximum": _of_two(Maximum),
    "mean": _reduction(Mean),
    "minimum": _of_two(Minimum),
    "mul": _of_two(Mul, clamp=CLAMPS),
    "pad": _pad,
    "permute": lambda d: void(
        d.node(Permute(tuple(int(n) for n in d.rng.permutation(3))), d.value(d.shape(3, 3)))
    ),
    "prelu": _prelu,
    "reshape": _reshape,
    "resize": _resize,
    "rnn": _recurrent(Rnn, 1, 1, 1),
    "slice": _slice,
    "softmax": _along(Softmax),
    "sub": _of_two(Sub, clamp=CLAMPS),
    "sum": _reduction(Sum),
    "svdf": _svdf,
    "tree_ensemble": _tree_ensemble,
    "unfold": _unfold,
    **{f"unary {function}": unary(function) for function in FUNCTIONS},
}
"""By operator: draws a node or two of it."""


def void(_made: object) -> None:
    """Nothing of what was made is needed."""


def graph_of(seeds: Mapping[int, Callable[[Draw], None]]) -> Graph:
    """Drawn nodes side by side, each from a seed of its own; those that have no shape are left away."""
    inputs: list[Tensor] = []
    nodes: list[Node] = []
    for seed, draw in seeds.items():
        d = Draw(seed)
        d.count = 1000 * seed
        try:
            draw(d)
        except UnsupportedShape:
            continue
        inputs += d.inputs
        nodes += d.nodes
    read = {t for node in nodes for t in node.inputs}
    outputs = [t for node in nodes for t in node.outputs if t not in read]
    return ops.check(Graph("drawn", tuple(inputs), tuple(outputs), tuple(nodes)), "drawing")
