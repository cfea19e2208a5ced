# SPDX-License-Identifier: Apache-2.0
"""The context of the handlers: values by the file's tensor indices, constants, states, emission."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.tflite.names import Names, path_of, plain
from tinyet.importers.tflite.values import Constant, constant_of, quant_of, type_of
from tinyet.ir import (
    Array,
    Attrs,
    DType,
    Node,
    Note,
    Origin,
    QuantParams,
    Shape,
    State,
    Tensor,
    TensorType,
)
from tinyet.ir.budget import Budget
from tinyet.ops import op_of
from tinyet.ops.reshape import Reshape
from tinyet.opset.rule import complaints
from tinyet.tflite import Model, Operator, Runtime, Subgraph, TensorInfo
from tinyet.tflite.options import Options

Handler = Callable[["Context"], None]
"""Gives every output of the operator at hand a value: by `emit`, or by `alias`."""

O = TypeVar("O", bound=Options)  # noqa: E741

_NUMBER = 16
"""Elements of an array that Python works through while it makes one number a number of its own."""


@dataclass(eq=False)
class Variable:
    """The content of a resource. initial: its value from the subgraph that runs once. value: its value at the current
    row; None before its first access."""

    initial: Constant | None = None
    value: Tensor | None = None


@dataclass(eq=False)
class Collected:
    """The collected result of all subgraphs. run: runs the rows of all operators of a subgraph that another one
    calls; raises RefusedError. variables: by their shared names."""

    model: Model
    file: str
    runtime: Runtime
    run: Callable[[Context], None]
    names: Names = field(default_factory=Names)
    nodes: list[Node] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    calls: int = 0
    variables: dict[str, Variable] = field(default_factory=dict)
    budget: Budget = field(init=False)

    def __post_init__(self) -> None:
        held = {id(t.data): len(t.data) for g in self.model.subgraphs for t in g.tensors if t.data}
        self.budget = Budget(sum(held.values()))

    def inside(self, number: int) -> Context:
        """Another subgraph on its way into the same graph. Raises RefusedError where there is none of this number."""
        if not 0 <= number < len(self.model.subgraphs):
            raise RefusedError(f"calls subgraph {number}, which is not there", shape=False)
        return Context(self, self.model.subgraphs[number])


@dataclass(eq=False)
class Context:
    """One subgraph on its way into the graph, and the operator at hand. handles: tensors that stand for a variable, and
    its name. once: whether the subgraph runs once, before all others. depth: how many others called it."""

    all: Collected
    subgraph: Subgraph
    titles: Mapping[int, str] = field(default_factory=dict)
    values: dict[int, Tensor] = field(default_factory=dict)
    handles: dict[int, str] = field(default_factory=dict)
    once: bool = False
    depth: int = 0
    _constants: dict[int, Constant] = field(default_factory=dict)
    _held: dict[int, Tensor] = field(default_factory=dict)
    _number: int = -1

    # ------------------------------------------------------------ the operator at hand

    def enter(self, number: int) -> None:
        """From here on, emitted nodes come from the subgraph's operator of this index."""
        self._number = number

    @property
    def op(self) -> Operator:
        return self.subgraph.operators[self._number]

    @property
    def runtime(self) -> Runtime:
        return self.all.runtime

    @property
    def origin(self) -> Origin:
        """The operator's index in place of a line, the Keras layer's path in place of a module's."""
        if self._number < 0:
            return Origin("input", file=self.all.file)
        op = self.op
        name = self.subgraph.tensors[op.outputs[0]].name if op.outputs else ""
        title = op.custom or op.code
        return Origin(title, path_of(name), self.all.file, self._number, name.split(";")[0], name)

    def options(self, kind: type[O]) -> O:
        """The operator's options, defaults where the file has none. Raises RefusedError for another operator's."""
        found = self.op.options
        if found is None:
            return kind()
        if not isinstance(found, kind):
            raise RefusedError(f"has the options of another operator ({type(found).__name__})", shape=False)
        return found

    def parameter_name(self, role: str) -> str:
        """The name of a weight of the current operator, after its layer: `block.conv` → block_conv_weight."""
        steps = self.origin.module.split(".")[-2:] if self.origin.module else [self.op.code.lower()]
        return "_".join([*steps, role])

    def note(self, text: str) -> None:
        """Something that the user should know about the operator at hand."""
        self.all.notes.append(Note(text, self.origin))

    # ------------------------------------------------------------ inputs

    def expect_inputs(self, least: int, most: int | None = None) -> None:
        """Raises RefusedError for another number of inputs."""
        count = len(self.op.inputs)
        if not least <= count <= (least if most is None else most):
            raise RefusedError(f"has {count} inputs", shape=False)

    def has(self, position: int) -> bool:
        return position < len(self.op.inputs) and self.op.inputs[position] >= 0

    def info(self, position: int) -> TensorInfo:
        """The file's own record of an input."""
        return self.subgraph.tensors[self._index(position)]

    def out_info(self, position: int = 0) -> TensorInfo:
        return self.subgraph.tensors[self.out_index(position)]

    def out_index(self, position: int = 0) -> int:
        """Which tensor of the subgraph an output is."""
        if position >= len(self.op.outputs):
            raise RefusedError(f"has no output {position}", shape=False)
        return self.op.outputs[position]

    def expect_new_outputs(self) -> None:
        """Raises RefusedError where an output of the operator at hand is there already."""
        for index in self.op.outputs:
            info = self.subgraph.tensors[index]
            taken = index in self.values or index in self._constants or index in self.subgraph.inputs
            if taken or info.data is not None or self.op.outputs.count(index) > 1:
                raise RefusedError(f"gives {info.name!r}, which is there already")

    def _index(self, position: int) -> int:
        if not self.has(position):
            raise RefusedError(f"has no input {position}", shape=False)
        return self.op.inputs[position]

    def find_constant(self, position: int) -> Constant | None:
        """An input as a constant; None where it is computed."""
        return self._constant_of(self._index(position))

    def _constant_of(self, index: int) -> Constant | None:
        info = self.subgraph.tensors[index]
        if index not in self.values and info.data is None and info.shape == (0,):
            # An empty tensor has no bytes: the shape of a scalar, a list of no axes.
            return Constant(info.name, np.zeros(info.shape, np.int32))
        if info.data is None or index in self.values:
            return self._constants.get(index)
        if index not in self._constants:
            self._constants[index] = constant_of(info, self.all.budget)
        return self._constants[index]

    def constant(self, position: int, role: str) -> Constant:
        """An input that must be a constant, called `role` in the refusal."""
        found = self.find_constant(position)
        if found is None:
            raise RefusedError(f"computes its {role}", f"make the {role} a constant of the model")
        return found

    def numbers(self, position: int, role: str) -> list[int]:
        """A constant input of whole numbers, flat."""
        data = self.constant(position, role).data
        if data.dtype.kind not in "iu":
            raise RefusedError(f"has a {role} of {data.dtype}")
        self.all.budget.fold(_NUMBER * data.size)
        return [int(n) for n in data.reshape(-1)]

    def number(self, position: int, role: str) -> int:
        """A constant input of one whole number."""
        found = self.numbers(position, role)
        if len(found) != 1:
            raise RefusedError(f"has {len(found)} numbers as its {role}")
        return found[0]

    def x(self, position: int) -> Tensor:
        """An input as a value of the graph; a constant becomes one. Raises RefusedError where it is absent."""
        return self.value(self._index(position))

    def value(self, index: int) -> Tensor:
        """A tensor of the subgraph as a value of the graph; a constant becomes one. Raises RefusedError if no node
        computes it."""
        if index in self.values:
            return self.values[index]
        found = self._constant_of(index)
        if found is None:
            raise RefusedError(f"reads tensor {self.subgraph.tensors[index].name!r}, which nobody computes")
        if index not in self._held:
            self._held[index] = self.hold(found)
        return self._held[index]

    def hold(self, constant: Constant, dtype: DType | None = None) -> Tensor:
        """A constant as a tensor of the graph. Raises RefusedError for one that no graph has."""
        data, kind = constant.data, dtype or constant.dtype
        if data.dtype.kind == "b":
            data = data.astype(np.int32)
        if kind is None and data.dtype in (np.dtype(np.int64), np.dtype(np.uint32), np.dtype(np.uint16)):
            if data.size and not -(2**31) <= int(data.min()) <= int(data.max()) < 2**31:
                raise RefusedError(f"reads {constant.name!r}, which holds numbers beyond 32 bits")
            data = data.astype(np.int32)
        name = data.dtype.name if kind is None else kind.value
        if name not in {d.value for d in DType}:
            raise RefusedError(f"reads {constant.name!r}, a constant of {name}")
        made = DType(name)
        quant = constant.quant if made not in (DType.FLOAT32, DType.UINT8) else None
        if quant is None and made in (DType.INT8, DType.INT16):
            quant = QuantParams.per_tensor(1.0, 0)
        if made in (DType.INT32, DType.INT64) and kind is None:
            quant = None
        self.all.budget.hold(data.nbytes)
        data = np.ascontiguousarray(data).reshape(data.shape)
        return Tensor(
            self.all.names.fresh(constant.name or "constant"), TensorType(data.shape, made, quant), data
        )

    def filled(self, shape: Shape, value: float, dtype: DType) -> Array:
        """An array of one number. Raises RefusedError where it is larger than the budget has."""
        self.all.budget.hold(math.prod(shape) * dtype.bytes)
        return np.full(shape, value, dtype.numpy)

    def new_constant(self, name: str, data: Array, quant: QuantParams | None = None) -> Tensor:
        """A constant that the row has made itself."""
        return self.hold(Constant(name, data, quant))

    # ------------------------------------------------------------ outputs

    def out_type(self, position: int = 0) -> TensorType:
        """The type that the file gives an output, in the graph's terms."""
        return type_of(self.out_info(position))

    def emit(self, attrs: Attrs, inputs: Sequence[Tensor | None], position: int = 0) -> Tensor:
        """Append the node that computes an output of the operator at hand, of the type that the file says."""
        type_, name = self.out_type(position), self.out_info(position).name
        index = self.out_index(position)
        if index in self.subgraph.outputs and not plain(name):
            name = "output"
        out = self.emit_as(attrs, inputs, type_, self.titles.get(index) or name)
        self.alias(out, position)
        return out

    def emit_as(
        self, attrs: Attrs, inputs: Sequence[Tensor | None], type_: TensorType, name: str = ""
    ) -> Tensor:
        """Append a node with one output of a given type: a step on the way. Raises RefusedError for one that is no node
        of the graph's."""
        (out,) = self.emit_many(attrs, inputs, (type_,), (name or self.out_info().name,))
        return out

    def emit_many(
        self, attrs: Attrs, inputs: Sequence[Tensor | None], types: Sequence[TensorType], names: Sequence[str]
    ) -> tuple[Tensor, ...]:
        """The same with several outputs."""
        for type_ in types:
            self.all.budget.run(type_.count, type_.bytes)
        outputs = tuple(Tensor(self.all.names.fresh(n), t) for n, t in zip(names, types, strict=True))
        node = Node(attrs, tuple(inputs), outputs, (self.origin,))
        found = complaints(op_of(node), node)
        if found:
            raise RefusedError("; ".join(found))
        self.all.nodes.append(node)
        return outputs

    def alias(self, tensor: Tensor, position: int = 0) -> None:
        """A value that is there already is an output of the operator at hand."""
        self.values[self.out_index(position)] = tensor

    def given(self, index: int) -> Tensor | Constant:
        """A tensor of the subgraph: a constant if it is one. Raises RefusedError if no node computes it."""
        if index in self.values and index not in self._constants:
            return self.values[index]
        found = self._constants.get(index)
        info = self.subgraph.tensors[index]
        if found is None and info.data is not None:
            found = constant_of(info, self.all.budget)
        if found is None:
            raise RefusedError(f"has a subgraph whose {info.name!r} nobody computes")
        return found

    def know(self, index: int, found: Constant) -> None:
        """A tensor of the subgraph is this constant."""
        self._constants[index] = found
        self.values.pop(index, None)

    def fold(self, data: Array, position: int = 0) -> None:
        """An output is a constant: the row has computed it."""
        info = self.out_info(position)
        self.keep_constant(self.out_index(position), Constant(info.name, data, quant_of(info)))

    def keep_constant(self, index: int, constant: Constant) -> None:
        """Declare the file's tensor of this index a constant."""
        self._constants[index] = constant

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """The value under another shape; itself where that is its own."""
        shape = tuple(shape)
        if x.shape == shape:
            return x
        return self.emit_as(Reshape(shape), [x], TensorType(shape, x.dtype, x.type.quant))

    # ------------------------------------------------------------ states

    def state(self, position: int) -> Tensor:
        """The value that a variable input has before this run: a state of the graph, at first zero."""
        index = self._index(position)
        if index not in self.values:
            info = self.info(position)
            if not info.variable:
                raise RefusedError(f"needs input {position} to be a variable tensor")
            self.values[index] = self.begin_state(info.name, type_of(info))
        return self.values[index]

    def begin_state(self, name: str, type_: TensorType, initial: Array | None = None) -> Tensor:
        """A state of the graph, as a run finds it. initial: its initial value, by default zero."""
        zero = type_.zero_point if type_.quant is not None else 0
        self.all.budget.run(type_.count, type_.bytes)
        data = self.filled(type_.shape, zero, type_.dtype) if initial is None else initial
        value = Tensor(self.all.names.fresh(name or "state"), type_)
        first = Tensor(self.all.names.fresh(f"{value.name}_initial"), type_, data)
        # Until a handler keeps something, it keeps its value.
        self.all.states.append(State(value, value, first))
        return value

    def keep(self, position: int, value: Tensor) -> None:
        """Set the next value of the state behind an input; operators that follow read it, too."""
        index = self._index(position)
        self.replace_state(self.values[index], value)
        self.values[index] = value

    def replace_state(self, before: Tensor, value: Tensor) -> None:
        """Replace the next value of a state."""
        self.all.states[:] = [
            State(s.value, value, s.initial) if s.next is before else s for s in self.all.states
        ]
