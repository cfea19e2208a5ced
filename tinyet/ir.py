# SPDX-License-Identifier: Apache-2.0
"""The graph that every pass reads and writes.

Values are frozen; `Tensor` and `Node` compare by identity, so they can be dictionary keys. A node's operator
is the class of its `attrs`: `Node(Conv2d(stride_h=2, …), inputs, outputs, origins)`.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tinyet.errors import InternalError, QuantizationError

Array = npt.NDArray[np.generic]
Shape = tuple[int, ...]


class DType(enum.Enum):
    """Element type of a tensor; the value is numpy's name, but for int4, which numpy holds as int8.

    INT4 (weights, packed two to a byte by the kernels that read them) and INT64 (biases of int16 layers) are for
    constants only.
    """

    INT4 = "int4"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"

    @property
    def bits(self) -> int:
        return 4 if self is DType.INT4 else 8 * int(np.dtype(self.value).itemsize)

    @property
    def bytes(self) -> int:
        """Of one element; an int4 takes a whole byte when it stands alone."""
        return (self.bits + 7) // 8

    @property
    def numpy(self) -> np.dtype[np.generic]:
        return np.dtype("int8" if self is DType.INT4 else self.value)

    @property
    def c(self) -> str:
        """The C type."""
        return "float" if self is DType.FLOAT32 else f"{self.numpy.name}_t"

    @property
    def suffix(self) -> str:
        """Short name in kernel symbols: s4, s8, s16, s32, s64, f32."""
        return "f32" if self is DType.FLOAT32 else f"s{self.bits}"

    @property
    def range(self) -> tuple[int, int]:
        """Smallest and largest integer; raises for float32."""
        if self is DType.FLOAT32:
            raise InternalError("float32 has no range of integers")
        return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1


@dataclass(frozen=True)
class QuantParams:
    """real = scale * (q - zero_point), per tensor (axis None, one scale) or per index of `axis`.

    Scales are held as the float64 value of a float32, because float32 is what the device computes with.
    Raises QuantizationError when a scale is not finite and positive, or the lengths differ.
    """

    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", tuple(float(np.float32(s)) for s in self.scale))
        object.__setattr__(self, "zero_point", tuple(int(z) for z in self.zero_point))
        if len(self.scale) != len(self.zero_point) or not self.scale:
            raise QuantizationError(f"{len(self.scale)} scales beside {len(self.zero_point)} zero points")
        if self.axis is None and len(self.scale) != 1:
            raise QuantizationError(f"{len(self.scale)} scales but no axis")
        bad = [s for s in self.scale if not (math.isfinite(s) and s > 0)]
        if bad:
            raise QuantizationError(f"scale {bad[0]} is not a positive finite number")

    @staticmethod
    def per_tensor(scale: float, zero_point: int) -> QuantParams:
        return QuantParams((scale,), (zero_point,))

    @property
    def one_scale(self) -> float:
        if self.axis is not None:
            raise InternalError("a per-channel tensor has no single scale")
        return self.scale[0]

    @property
    def one_zero_point(self) -> int:
        if self.axis is not None:
            raise InternalError("a per-channel tensor has no single zero point")
        return self.zero_point[0]


@dataclass(frozen=True)
class TensorType:
    shape: Shape
    dtype: DType
    quant: QuantParams | None = None

    @property
    def count(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return (self.count * self.dtype.bits + 7) // 8

    @property
    def scale(self) -> float:
        if self.quant is None:
            raise InternalError(f"tensor of type {self} has no scale")
        return self.quant.one_scale

    @property
    def zero_point(self) -> int:
        if self.quant is None:
            raise InternalError(f"tensor of type {self} has no zero point")
        return self.quant.one_zero_point

    def __str__(self) -> str:
        text = f"{self.dtype.value}[{'x'.join(map(str, self.shape))}]"
        if self.quant is not None:
            if self.quant.axis is None:
                text += f" scale={self.quant.scale[0]:.9g} zero_point={self.quant.zero_point[0]}"
            else:
                text += f" {len(self.quant.scale)} scales on axis {self.quant.axis}"
        return text


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value in the graph; a constant when `data` is there (its shape and dtype agree with `type`)."""

    name: str
    type: TensorType
    data: Array | None = None

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


@dataclass(frozen=True)
class Origin:
    """The debug handle: which line of the user's Python asked for this computation.

    `key` is the name that the value had in the exported graph; it ties an integer node to its float twin.
    """

    aten: str = ""
    module: str = ""
    file: str = ""
    line: int = 0
    text: str = ""
    key: str = ""

    @property
    def location(self) -> str:
        """`file:line`, with the file as the user wrote it, or what is known instead."""
        return f"{self.file}:{self.line}" if self.file else (self.module or self.aten or "(no source)")

    def __str__(self) -> str:
        return f"{self.location}: {self.text}" if self.text else self.location


@dataclass(frozen=True)
class Note:
    """Something that a person should know about one place of the model: what, and the source line."""

    text: str
    origin: Origin | None = None

    def __str__(self) -> str:
        return f"{self.origin}: {self.text}" if self.origin else self.text


@dataclass(frozen=True)
class Attrs:
    """Base of every operator's attributes. The class *is* the operator; `name` is what people read."""

    name: ClassVar[str] = ""


@dataclass(frozen=True, eq=False)
class Node:
    attrs: Attrs
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    origins: tuple[Origin, ...] = ()

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
    def where(self) -> str | None:
        return str(self.origins[-1]) if self.origins else None

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


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes in an order in which every value is computed before it is read."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    nodes: tuple[Node, ...]
    _producer: Mapping[Tensor, Node] = field(init=False, repr=False)
    _consumers: Mapping[Tensor, tuple[Node, ...]] = field(init=False, repr=False)

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
    ) -> Graph:
        return Graph(
            self.name,
            self.inputs if inputs is None else tuple(inputs),
            self.outputs if outputs is None else tuple(outputs),
            self.nodes if nodes is None else tuple(nodes),
        )


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


def verify(graph: Graph, infer: Callable[[Node], Sequence[Shape]], after: str) -> None:
    """Raise InternalError, naming the pass `after` which it was broken, unless the graph is well formed:
    values defined before use and once, names unique, constants as typed, shapes as the operators' rules say."""
    problems: list[str] = []
    defined: set[Tensor] = set(graph.inputs)
    names: dict[str, Tensor] = {t.name: t for t in graph.inputs}
    if len(names) != len(graph.inputs):
        problems.append("two inputs share a name")

    def named(tensor: Tensor) -> None:
        if names.setdefault(tensor.name, tensor) is not tensor:
            problems.append(f"two tensors are called {tensor.name}")

    for node in graph.nodes:
        label = f"{node.op} ({', '.join(t.name for t in node.outputs)})"
        for tensor in node.inputs:
            if tensor is None:
                continue
            named(tensor)
            if tensor.is_constant:
                data = tensor.array
                if tuple(data.shape) != tensor.shape or data.dtype != tensor.dtype.numpy:
                    problems.append(
                        f"constant {tensor.name} is {data.dtype}{data.shape}, typed {tensor.type}"
                    )
            elif tensor not in defined:
                problems.append(f"{label} reads {tensor.name} before it is computed")
        for tensor in node.outputs:
            named(tensor)
            if tensor in defined or tensor.is_constant:
                problems.append(f"{label} computes {tensor.name} a second time")
            defined.add(tensor)
        shapes = tuple(tuple(s) for s in infer(node))
        actual = tuple(t.shape for t in node.outputs)
        if shapes != actual:
            problems.append(f"{label} should give {shapes}, typed {actual}")
    problems += [
        f"output {t.name} is never computed" for t in graph.outputs if t not in defined and not t.is_constant
    ]
    if problems:
        raise InternalError(f"invalid graph after {after}:\n" + "\n".join(f"  - {p}" for p in problems))


def attrs_text(attrs: Attrs) -> str:
    """`name=value` of every attribute that differs from its default."""
    parts = []
    for item in dataclasses.fields(attrs):
        value = getattr(attrs, item.name)
        if isinstance(value, Graph):
            parts.append(f"{item.name}={value.name}")
        elif item.default is dataclasses.MISSING or value != item.default:
            parts.append(f"{item.name}={value}")
    return ", ".join(parts)


def subgraphs(attrs: Attrs) -> tuple[Graph, ...]:
    """The graphs among an operator's attributes."""
    values = (getattr(attrs, item.name) for item in dataclasses.fields(attrs))
    return tuple(value for value in values if isinstance(value, Graph))


def to_text(graph: Graph) -> str:
    """The graph as a person reads it: a line a value, with types and source lines. Stable across runs."""
    lines = [f"graph {graph.name}"]
    lines += [f"  input  %{t.name}: {t.type}" for t in graph.inputs]
    lines += [f"  const  %{t.name}: {t.type}" for t in graph.constants]
    for node in graph.nodes:
        outs = ", ".join(f"%{t.name}" for t in node.outputs)
        ins = ", ".join("-" if t is None else f"%{t.name}" for t in node.inputs)
        attributes = attrs_text(node.attrs)
        lines.append(f"  {outs} = {node.op}({ins})" + (f" {{{attributes}}}" if attributes else ""))
        lines += [f"      : {t.type}" for t in node.outputs]
        lines += [f"      # {origin}" for origin in node.origins]
        for inner in subgraphs(node.attrs):
            lines += ["      " + line for line in to_text(inner).splitlines()]
    lines += [f"  return {', '.join('%' + t.name for t in graph.outputs)}"]
    return "\n".join(lines) + "\n"
