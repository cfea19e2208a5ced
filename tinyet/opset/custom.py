# SPDX-License-Identifier: Apache-2.0
"""One use of a custom operator in a model, as the functions that its author writes see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from tinyet.ir import Array, Attrs, DType, Node, QuantParams, Shape, Tensor, TensorType

Scalar = int | float | bool | str | None


Params = tuple[tuple[str, Scalar | tuple[Scalar, ...]], ...]


Argument = int | float | bool | Array


@dataclass(frozen=True)
class CustomAttrs(Attrs):
    """The non-tensor arguments of the PyTorch call, by name: numbers and lists of numbers. One subclass an operator."""

    opaque: ClassVar[bool] = True
    pointwise: ClassVar[bool] = False
    params: Params = ()


@dataclass(frozen=True, eq=False)
class Value:
    """An input or the output, as the functions of an operator see it.

    quant: scale and zero point, None for floats. data: the values of a constant, None for what is computed.
    """

    shape: Shape
    dtype: DType
    quant: QuantParams | None
    data: Array | None = None

    @property
    def type(self) -> TensorType:
        """The dtype as tinyet.numerics names it."""
        return TensorType(self.shape, self.dtype, self.quant)

    @property
    def count(self) -> int:
        """Number of elements."""
        return self.type.count

    @property
    def scale(self) -> float:
        """Real size of one step of an int8 value."""
        return self.type.scale

    @property
    def zero_point(self) -> int:
        """The integer that stands for 0."""
        return self.type.zero_point


@dataclass(frozen=True, eq=False)
class CallSite:
    """One use of an operator in a model: its tensor arguments in order (None where absent), its other arguments by
    name, and its result (None while only its shape is asked for)."""

    inputs: tuple[Value | None, ...]
    params: Mapping[str, Scalar | tuple[Scalar, ...]]
    output: Value | None = None

    @property
    def x(self) -> Value:
        """The first input."""
        assert self.inputs[0] is not None
        return self.inputs[0]

    @property
    def out(self) -> Value:
        """The result."""
        assert self.output is not None
        return self.output


def _value(tensor: Tensor) -> Value:
    return Value(tensor.shape, tensor.dtype, tensor.type.quant, tensor.data)


def site_of(node: Node, *, output: bool = True) -> CallSite:
    attrs = node.attrs
    assert isinstance(attrs, CustomAttrs)
    return CallSite(
        tuple(None if t is None else _value(t) for t in node.inputs),
        MappingProxyType(dict(attrs.params)),
        _value(node.output) if output else None,
    )
