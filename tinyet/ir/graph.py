# SPDX-License-Identifier: Apache-2.0
"""Tensors, nodes and the graph of them.

Values are frozen; `Tensor` and `Node` compare by identity, so they can be dictionary keys. A node's operator
is the class of its `attrs`: `Node(Conv2d(stride_h=2, …), inputs, outputs, origins)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tinyet.errors import InternalError
from tinyet.ir.limits import MAX_TEXT
from tinyet.ir.types import Array, DType, QuantParams, Shape, TensorType
from tinyet.messages.text import printable, storable


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value in the graph; a constant when `data` is there (its shape and dtype agree with `type`)."""

    name: str
    type: TensorType
    data: Array | None = None

    def __repr__(self) -> str:
        return f"<{'constant' if self.is_constant else 'tensor'} {self.name}: {self.type}>"

    @property
    def is_constant(self) -> bool:
        return self.data is not None

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def array(self) -> Array:
        """The constant's value; raises InternalError when there is none."""
        if self.data is None:
            raise InternalError(f"tensor {self.name} is not a constant")
        return self.data


def place_of(name: str, location: str) -> str:
    """`name (location)`, the form in which every report names a layer or a place in the model; either may be empty."""
    return f"{name} ({location})" if name and location else name or location


@dataclass(frozen=True)
class Origin:
    """The debug handle: which line of the user's Python asked for this computation.

    `text` is that line; where no line is the user's (a layer of an nn.Sequential, which torch itself calls), it says
    which layer. `key` is the name that the value had in the exported graph; it ties an integer node to its float graph.
    All are cut to what a file may hold (MAX_TEXT).
    """

    aten: str = ""
    module: str = ""
    file: str = ""
    line: int = 0
    text: str = ""
    key: str = ""

    def __post_init__(self) -> None:
        for name in ("aten", "module", "file", "text", "key"):
            object.__setattr__(self, name, storable(getattr(self, name), MAX_TEXT))

    @property
    def location(self) -> str:
        """`file:line`, with the file as the user wrote it; empty when it is not known."""
        return printable(f"{self.file}:{self.line}") if self.file else ""

    @property
    def source(self) -> str:
        """The location with the text of the line behind it."""
        return f"{self.location}: {printable(self.text)}" if self.location and self.text else self.location

    @property
    def place(self) -> str:
        """Module path and line, `features.0 (model.py:12)`, as every report names a place in the model, or path and
        layer, `0 (Conv2d of the Sequential)`; or what of it is known."""
        return (
            place_of(printable(self.module), self.location or printable(self.text))
            or printable(self.aten)
            or "(no source)"
        )

    @property
    def is_known(self) -> bool:
        """Whether it says where in the user's model."""
        return bool(self.file or self.text)

    def __str__(self) -> str:
        return f"{self.place}: {printable(self.text)}" if self.location and self.text else self.place


@dataclass(frozen=True)
class Note:
    """Something that a person should know about one place of the model: what, and the source line."""

    text: str
    origin: Origin | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", storable(self.text, MAX_TEXT))

    def __str__(self) -> str:
        text = printable(self.text)
        return f"{self.origin}: {text}" if self.origin else text


@dataclass(frozen=True)
class Attrs:
    """Base of every operator's attributes. The class *is* the operator; `name` is what people read.

    opaque: only functions of the operator's author see the attributes, so that they may hold text.
    """

    name: ClassVar[str] = ""
    opaque: ClassVar[bool] = False


@dataclass(frozen=True, eq=False)
class Node:
    attrs: Attrs
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    origins: tuple[Origin, ...] = ()

    def __repr__(self) -> str:
        into = ", ".join(str(t.type) for t in self.outputs)
        return f"<node {self.op} -> {into}{f', {self.origin.place}' if self.origin else ''}>"

    @property
    def op(self) -> str:
        return self.attrs.name

    def input(self, index: int) -> Tensor:
        """The input that must be there."""
        tensor = self.inputs[index] if index < len(self.inputs) else None
        if tensor is None:
            raise InternalError(f"{self.op} has no input {index}", self.where)
        return tensor

    def optional_input(self, index: int) -> Tensor | None:
        return self.inputs[index] if index < len(self.inputs) else None

    @property
    def output(self) -> Tensor:
        if len(self.outputs) != 1:
            raise InternalError(f"{self.op} has {len(self.outputs)} outputs, not one", self.where)
        return self.outputs[0]

    @property
    def origin(self) -> Origin | None:
        """The origin of the node's own operator, without nodes folded into it; None where unknown."""
        stem = re.sub(r"\dd$", "", self.op)  # conv1d is a conv2d, too
        named = [origin for origin in self.origins if origin.module] or self.origins
        return next((origin for origin in named if stem in origin.aten), named[0] if named else None)

    @property
    def where(self) -> str | None:
        """Module path, line and source text of the node's own operator."""
        return None if self.origin is None else str(self.origin)

    def replace(
        self,
        *,
        attrs: Attrs | None = None,
        inputs: Sequence[Tensor | None] | None = None,
        outputs: Sequence[Tensor] | None = None,
        origins: Sequence[Origin] | None = None,
    ) -> Node:
        return Node(
            self.attrs if attrs is None else attrs,
            self.inputs if inputs is None else tuple(inputs),
            self.outputs if outputs is None else tuple(outputs),
            self.origins if origins is None else tuple(origins),
        )


@dataclass(frozen=True)
class State:
    """A tensor that survives from run to run.

    value: what nodes read, as the run before left it. next: what it is for the next run, of the same type. initial:
    the constant that it is before the first run, and after a reset.
    """

    value: Tensor
    next: Tensor
    initial: Tensor

    @property
    def name(self) -> str:
        return self.value.name


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes in an order in which every value is computed before it is read.

    initial: a constant for each state. A graph with states is one with more inputs and outputs: its last inputs are the
    states' values, its last outputs what these are in the next run, in the same order. So whoever rewrites nodes need
    not know of them; `user_inputs` and `user_outputs` are those that a caller sees.
    """

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    nodes: tuple[Node, ...]
    initial: tuple[Tensor, ...] = ()
    _producer: Mapping[Tensor, Node] = field(init=False, repr=False)
    _consumers: Mapping[Tensor, tuple[Node, ...]] = field(init=False, repr=False)

    def __repr__(self) -> str:
        """In a line; `to_text` tells all of it."""
        return (
            f"<graph {self.name}: {_names(self.inputs)} -> {_names(self.outputs)}, {len(self.nodes)} nodes>"
        )

    def __post_init__(self) -> None:
        producer: dict[Tensor, Node] = {}
        consumers: dict[Tensor, list[Node]] = {}
        for node in self.nodes:
            for tensor in node.outputs:
                producer[tensor] = node
            for used in dict.fromkeys(t for t in node.inputs if t is not None):
                consumers.setdefault(used, []).append(node)
        object.__setattr__(self, "_producer", producer)
        object.__setattr__(self, "_consumers", {t: tuple(n) for t, n in consumers.items()})

    @property
    def user_inputs(self) -> tuple[Tensor, ...]:
        return self.inputs[: len(self.inputs) - len(self.initial)]

    @property
    def user_outputs(self) -> tuple[Tensor, ...]:
        return self.outputs[: len(self.outputs) - len(self.initial)]

    @property
    def states(self) -> tuple[State, ...]:
        values, nexts = self.inputs[len(self.user_inputs) :], self.outputs[len(self.user_outputs) :]
        return tuple(map(State, values, nexts, self.initial))

    def producer(self, tensor: Tensor) -> Node | None:
        return self._producer.get(tensor)

    def consumers(self, tensor: Tensor) -> tuple[Node, ...]:
        return self._consumers.get(tensor, ())

    @property
    def constants(self) -> tuple[Tensor, ...]:
        """Every constant that a node or an output reads, in order of first use."""
        used = (t for node in self.nodes for t in node.inputs if t is not None)
        return tuple(dict.fromkeys(t for t in (*used, *self.outputs) if t.is_constant))

    def replace(
        self,
        *,
        inputs: Sequence[Tensor] | None = None,
        outputs: Sequence[Tensor] | None = None,
        nodes: Iterable[Node] | None = None,
        initial: Sequence[Tensor] | None = None,
    ) -> Graph:
        return Graph(
            self.name,
            self.inputs if inputs is None else tuple(inputs),
            self.outputs if outputs is None else tuple(outputs),
            self.nodes if nodes is None else tuple(nodes),
            self.initial if initial is None else tuple(initial),
        )


def _names(tensors: Sequence[Tensor]) -> str:
    return ", ".join(tensor.name for tensor in tensors)


def substitute(graph: Graph, mapping: Mapping[Tensor, Tensor]) -> Graph:
    """Every read of a key becomes a read of its value (followed to the end of chains); outputs too."""
    if not mapping:
        return graph

    def final(tensor: Tensor) -> Tensor:
        while tensor in mapping:
            tensor = mapping[tensor]
        return tensor

    nodes = [
        node.replace(inputs=[None if t is None else final(t) for t in node.inputs])
        if any(t in mapping for t in node.inputs if t is not None)
        else node
        for node in graph.nodes
    ]
    return graph.replace(nodes=nodes, outputs=[final(t) for t in graph.outputs])


def constant(name: str, data: Array, quant: QuantParams | None = None, dtype: DType | None = None) -> Tensor:
    """A constant tensor of the array's own shape and dtype; `dtype` says INT4 of an int8 array.

    Raises InternalError when the array does not hold that type.
    """
    data = np.ascontiguousarray(data)
    kind = DType(data.dtype.name) if dtype is None else dtype
    if kind.numpy != data.dtype or (
        kind is DType.INT4 and (data.min(initial=0) < -8 or data.max(initial=0) > 7)
    ):
        raise InternalError(f"constant {name}: {data.dtype} values are no {kind.value}")
    return Tensor(name, TensorType(tuple(data.shape), kind, quant), data)
