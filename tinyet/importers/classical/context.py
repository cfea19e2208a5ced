# SPDX-License-Identifier: Apache-2.0
"""The context of the handlers: the graph as it grows, the estimator at hand, and the steps that many share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tinyet.errors import RefusedError
from tinyet.ir import Attrs, DType, Graph, Node, Note, Origin, QuantParams, Tensor, TensorType
from tinyet.messages.text import c_identifier, printable, shown, unused
from tinyet.ops import op_of
from tinyet.ops.add import Add
from tinyet.ops.argmax import ArgMax
from tinyet.ops.cast import Cast
from tinyet.ops.clamp import Clamp
from tinyet.ops.compare import Compare
from tinyet.ops.concat import Concat
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.gather import Gather
from tinyet.ops.linear import Linear
from tinyet.ops.mul import Mul
from tinyet.ops.reshape import Reshape
from tinyet.ops.shared.forest import Numeric
from tinyet.ops.shared.unary_functions import FunctionName
from tinyet.ops.slice import Slice
from tinyet.ops.softmax import Softmax
from tinyet.ops.sub import Sub
from tinyet.ops.sum import Sum
from tinyet.ops.unary import Unary
from tinyet.opset import complaints

Handler = Callable[["Context", Any, Tensor], Tensor]
"""What a method of a fitted estimator computes of features, (1, n) float32: of `transform` and of scores (1, m), of
`predict` (1,)."""

Methods = Mapping[str, Handler]
"""The handlers of an estimator, by the names of its methods."""


@dataclass(eq=False)
class Context:
    """Collects the graph. missing_values: features may be NaN, and go where training has sent them. leaf_dtype: of what
    trees add up, float32 or int16. file: that the model was read from, if it was.

    fractions: of values that are numbers in int32, which stand for 2^-fraction times themselves. All steps take them,
    in float32 but where they only compare.
    """

    missing_values: bool = False
    leaf_dtype: DType = DType.FLOAT32
    file: str = ""
    fractions: dict[Tensor, int] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    place: str = ""
    estimator: Any = None
    _names: set[str] = field(default_factory=set)

    @property
    def origin(self) -> Origin:
        if self.file:
            return Origin("trees", self.place, self.file, text=self.place)
        kind = type(self.estimator).__name__
        text = kind if self.estimator is None else " ".join(shown(repr(self.estimator), 300).split())
        return Origin(kind, self.place or kind, text=text)

    def note(self, text: str) -> None:
        self.notes.append(Note(text, self.origin))

    # ------------------------------------------------------------ emission

    def name(self, wanted: str) -> str:
        return unused(c_identifier([wanted]), self._names)

    def held(
        self, name: str, data: npt.ArrayLike, dtype: npt.DTypeLike = np.float32, *, finite: bool = True
    ) -> Tensor:
        """A constant. Raises RefusedError for numbers that float32 does not have, where they have to be finite."""
        given = np.asarray(data)
        with np.errstate(over="ignore"):
            made = np.ascontiguousarray(given.astype(dtype))
        if finite and made.dtype.kind == "f" and not np.isfinite(made).all():
            raise RefusedError(f"has {name} that are no finite float32", "fit it on scaled data")
        kind = TensorType(tuple(made.shape), DType(made.dtype.name))
        return Tensor(self.name(name), kind, made)

    def emit(
        self,
        attrs: Attrs,
        inputs: Sequence[Tensor | None],
        dtype: DType | None = None,
        quant: QuantParams | None = None,
    ) -> Tensor:
        """Append a node; its output has the first input's type if no other is given. Raises RefusedError for one that
        is no node of the graph's."""
        first = inputs[0]
        assert first is not None
        kind = first.dtype if dtype is None else dtype
        scale = first.type.quant if dtype is None and quant is None else quant
        draft = Node(attrs, tuple(inputs), (Tensor("draft", TensorType((1,), kind, scale)),), (self.origin,))
        (shape,) = op_of(draft).infer(draft)
        stem = self.place.replace(".", "_") or type(self.estimator).__name__
        out = Tensor(self.name(f"{stem}_{attrs.name}"), TensorType(tuple(shape), kind, scale))
        node = draft.replace(outputs=(out,))
        if found := complaints(op_of(node), node):
            raise RefusedError("; ".join(found))
        self.nodes.append(node)
        return out

    # ------------------------------------------------------------ steps

    def real(self, x: Tensor) -> Tensor:
        """In float32."""
        if x in self.fractions:
            return self.of_fixed_point(x)
        return x if x.dtype is DType.FLOAT32 else self.emit(Dequantize(), [x], DType.FLOAT32)

    def of_fixed_point(self, x: Tensor) -> Tensor:
        """What a value in fixed point stands for, in float32; any other as it is."""
        if x not in self.fractions:
            return x
        whole = self.emit(Cast(), [x], DType.FLOAT32)
        return self.emit(Mul(), [whole, self.held("step", [[math.ldexp(1.0, -self.fractions[x])]])])

    def linear(self, x: Tensor, weights: npt.ArrayLike, bias: npt.ArrayLike | None) -> Tensor:
        """x @ weights.T + bias; weights: (outputs, inputs)."""
        held = [self.held("weights", weights), None if bias is None else self.held("bias", bias)]
        return self.emit(Linear(), [self.real(x), *held])

    def add(self, x: Tensor, other: Tensor | npt.ArrayLike) -> Tensor:
        return self.emit(Add(), [self.of_fixed_point(x), self.operand(other)])

    def sub(self, x: Tensor, other: Tensor | npt.ArrayLike) -> Tensor:
        return self.emit(Sub(), [self.of_fixed_point(x), self.operand(other)])

    def mul(self, x: Tensor, other: Tensor | npt.ArrayLike) -> Tensor:
        return self.emit(Mul(), [self.of_fixed_point(x), self.operand(other)])

    def operand(self, other: Tensor | npt.ArrayLike) -> Tensor:
        return self.of_fixed_point(other) if isinstance(other, Tensor) else self.held("operand", other)

    def relu(self, x: Tensor) -> Tensor:
        return self.emit(Clamp(0.0), [self.of_fixed_point(x)])

    def unary(self, function: FunctionName, x: Tensor) -> Tensor:
        return self.emit(Unary(function), [self.of_fixed_point(x)])

    def sum(self, x: Tensor, axis: int, keepdims: bool = False) -> Tensor:
        return self.emit(Sum((axis,), keepdims), [self.of_fixed_point(x)])

    def softmax(self, x: Tensor) -> Tensor:
        return self.emit(Softmax(len(x.shape) - 1), [self.of_fixed_point(x)])

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        x = self.of_fixed_point(x)
        return x if tuple(shape) == x.shape else self.emit(Reshape(tuple(shape)), [x])

    def concat(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0] if len(parts) == 1 else self.emit(Concat(1), list(parts))

    def argmax(self, x: Tensor) -> Tensor:
        """(1, n) → the place of the greatest, (1,)."""
        return self.emit(ArgMax(1), [x], DType.INT32)

    def above(self, x: Tensor, bound: float, *, equal: bool = False) -> Tensor:
        """(1, 1) → whether it is greater than a bound, (1,) int32; or equal, too."""
        relation = Compare("greater_equal" if equal else "greater")
        if x in self.fractions:
            steps = math.ldexp(bound, self.fractions[x])
            whole = math.ceil(steps) if equal else math.floor(steps)
            held = self.held("bound", [[min(max(whole, -(2**31)), 2**31 - 1)]], np.int32)
        else:
            held = self.held("bound", [[bound]])
        return self.reshape(self.emit(relation, [x, held], DType.INT32), (1,))

    def columns(self, x: Tensor, indices: Sequence[int]) -> Tensor:
        """Some features, in this order."""
        count = x.shape[1]
        if list(indices) == list(range(count)):
            return x
        steps = set(np.diff(indices).tolist()) if len(indices) > 1 else {1}
        if steps == {1}:
            return self.emit(Slice(1, int(indices[0]), int(indices[0]) + len(indices)), [x])
        return self.emit(Gather(1), [x, self.held("columns", indices, np.int32)])

    def column(self, x: Tensor, index: int) -> Tensor:
        return self.columns(x, [index])

    def with_first(self, x: Tensor) -> Tensor:
        """(1, 1) → (1, 2): 0 before it, so that softmax and argmax are those of two classes."""
        return self.mul(x, np.array([[0.0, 1.0]]))


# ---------------------------------------------------------------- from the features to the outputs

METHODS = ("predict", "predict_proba", "decision_function", "score_samples", "transform", "anomaly_score")
"""scikit-learn's, and one of ours: a number that is the greater, the less a sample is like those of the training."""

INPUTS = (DType.FLOAT32, DType.INT16, DType.INT8)
"""Types that features may have."""

LEAVES = (DType.FLOAT32, DType.INT16)
"""Types of what trees add up."""


@dataclass(frozen=True)
class Imported:
    """A graph with an output for each method, in their order. labels: names of the classes of the first; or none."""

    graph: Graph
    notes: tuple[Note, ...]
    labels: tuple[str, ...]


def features(ctx: Context, width: int, dtype: DType, scale: float, zero_point: int) -> Tensor:
    """The input: a row of features, of integers that stand for scale * (q - zero_point)."""
    quant = None if dtype is DType.FLOAT32 else QuantParams.per_tensor(scale, zero_point)
    return Tensor(ctx.name("features"), TensorType((1, width), dtype, quant))


def finished(
    ctx: Context,
    name: str,
    x: Tensor,
    outputs: Sequence[Tensor],
    methods: Sequence[str],
    labels: tuple[str, ...],
) -> Imported:
    """The graph, its outputs called after their methods."""
    outputs = [ctx.of_fixed_point(tensor) for tensor in outputs]
    made = {tensor for node in ctx.nodes for tensor in node.outputs}
    renamed: dict[Tensor, Tensor] = {}
    for tensor, method in zip(outputs, methods, strict=True):
        if tensor in made:  # an estimator that changes nothing gives its input
            renamed.setdefault(tensor, Tensor(ctx.name(method), tensor.type))
    nodes = [
        node.replace(
            inputs=[None if t is None else renamed.get(t, t) for t in node.inputs],
            outputs=[renamed.get(t, t) for t in node.outputs],
        )
        for node in ctx.nodes
    ]
    graph = Graph(name, (x,), tuple(renamed.get(t, t) for t in outputs), tuple(nodes))
    return Imported(graph, tuple(dict.fromkeys(ctx.notes)), labels)


# ---------------------------------------------------------------- attributes


def array(estimator: Any, name: str) -> Numeric:
    """A fitted attribute, dense, in float64."""
    value = getattr(estimator, name, None)
    if value is None:
        raise RefusedError(f"has no {name}: it is not fitted", "fit it first")
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value, np.float64)


def only(estimator: Any, **allowed: Any) -> None:
    """Raise RefusedError, naming all, for parameters that are set to something else than what is known. allowed: a
    value, or a tuple of values."""
    wrong = []
    for name, values in allowed.items():
        value = getattr(estimator, name, None)
        known = values if isinstance(values, tuple) else (values,)
        # Arrays and objects compare in ways of their own.
        if not any(value is one or (type(value) is type(one) and value == one) for one in known):
            wrong.append(f"{name}={printable(repr(value)[:60])}")
    if wrong:
        can = "; ".join(
            f"{name}: {' or '.join(map(repr, v if isinstance(v, tuple) else (v,)))}"
            for name, v in allowed.items()
        )
        raise RefusedError(f"has {', '.join(wrong)}", f"what is known: {can}")
