# SPDX-License-Identifier: Apache-2.0
"""The context of the ATen handlers: values by fx node, constants whose layout can still change, emission."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import fx

from tinyet.errors import RefusedError
from tinyet.fx.edit import dtype_name
from tinyet.ir import ITSELF, Array, Attrs, DType, Node, Origin, QuantParams, Shape, Tensor, TensorType
from tinyet.messages.text import c_identifier, unused
from tinyet.ops.cast import Cast
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.permute import Permute
from tinyet.ops.reshape import Reshape


@dataclass(frozen=True, eq=False)
class Constant:
    """A constant that is not in the graph yet, so that its reader can choose its layout.

    With `quant`, data holds integers that stand for dequantized float32 values. dtype: the IR's type where
    numpy's does not say it: INT4.
    """

    name: str
    data: Array
    quant: QuantParams | None = None
    dtype: DType | None = None

    @property
    def shape(self) -> Shape:
        return tuple(self.data.shape)

    def permute(self, order: Sequence[int]) -> Constant:
        """Dimensions in another order; the quantization axis moves along."""
        quant = self.quant
        if quant is not None and quant.axis is not None:
            quant = replace(quant, axis=list(order).index(quant.axis))
        return replace(self, data=np.ascontiguousarray(self.data.transpose(order)), quant=quant)

    def insert_axis(self, axis: int) -> Constant:
        """A new dimension of size 1 in front of dimension `axis`."""
        quant = self.quant
        if quant is not None and quant.axis is not None and quant.axis >= axis:
            quant = replace(quant, axis=quant.axis + 1)
        return replace(self, data=np.expand_dims(self.data, axis), quant=quant)

    def reshape(self, shape: Sequence[int]) -> Constant | None:
        """The same values under another shape; None when that would tear the quantization axis apart."""
        if self.quant is not None and self.quant.axis is not None:
            return None
        return replace(self, data=self.data.reshape(shape))

    def named(self, name: str) -> Constant:
        return replace(self, name=name)

    def real(self) -> Array:
        """The float32 values."""
        if self.quant is None:
            return self.data
        shape = [1] * self.data.ndim
        if self.quant.axis is not None:
            shape[self.quant.axis] = -1
        zero = np.array(self.quant.zero_point, np.int64).reshape(shape)
        scale = np.array(self.quant.scale, np.float64).reshape(shape)
        return np.asarray((self.data.astype(np.int64) - zero) * scale, np.float32)


@dataclass(frozen=True, eq=False)
class StandIn(Tensor):
    """The placeholder that the readers of a refused node get, so that they can be checked as well. It has the right
    shape; a lack of anything else is no fault of its readers: argument readers accept it for anything.

    has_type: it stands for a tensor of a type that a graph has; else (complex, a Python number) nothing can read it.
    """

    has_type: bool = True


@dataclass(frozen=True, eq=False)
class Dynamic:
    """A value that the device quantizes by its own range.

    x: the float value. eps: the smallest scale. stage: which part of it: "parameters" (scale or zero point),
    "integers" or "real" (their real values).
    """

    x: Tensor
    eps: float
    stage: str


Value = Tensor | Constant | Dynamic | tuple[Any, ...]
Args = Mapping[str, Any]
Handler = Callable[["Context", Args], Value]


def dtype_of(value: torch.Tensor) -> DType:
    """The IR's type for a torch tensor: float32, uint8, int8, int16, or int32 for wider integers; else RefusedError."""
    if value.dtype is torch.float32:
        return DType.FLOAT32
    if value.dtype in (torch.int64, torch.int32):
        return DType.INT32
    if value.dtype is torch.uint8:
        return DType.UINT8
    if value.dtype in (torch.int8, torch.int16):
        return DType.INT8 if value.dtype is torch.int8 else DType.INT16
    kind = dtype_name(value.dtype)
    hint = "use a float mask and multiply" if value.dtype is torch.bool else "convert it to float32"
    raise RefusedError(f"computes {kind} values", hint)


_SMALL = (DType.INT8, DType.INT16)


def type_of(shape: Shape, dtype: DType) -> TensorType:
    """The type of a value that torch does not know for quantized: of int8 and int16 each stands for itself."""
    return TensorType(shape, dtype, ITSELF if dtype in _SMALL else None)


def shape_of(node: fx.Node) -> Shape:
    """The static shape of the node's (first) value."""
    value = node.meta["val"]
    value = value[0] if isinstance(value, (tuple, list)) else value
    return tuple(int(size) for size in value.shape)


@dataclass(eq=False)
class Context:
    """Collects the graph while the fx nodes are walked in order."""

    origins: Mapping[fx.Node, Origin]
    nodes: list[Node] = field(default_factory=list)
    values: dict[fx.Node, Value] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)
    _held: dict[Constant, Tensor] = field(default_factory=dict)
    _origins: tuple[Origin, ...] = ()
    _node: fx.Node | None = None

    # ------------------------------------------------------------ the node at hand

    def enter(self, node: fx.Node) -> None:
        """From here on, emitted nodes come from this fx node."""
        self._node = node
        self._origins = (self.origins[node],)

    @property
    def node(self) -> fx.Node:
        assert self._node is not None
        return self._node

    @property
    def origin(self) -> Origin:
        """The origin of the current fx node."""
        return self._origins[0]

    @property
    def shape(self) -> Shape:
        """Shape of the result of the fx node at hand, as torch says."""
        return shape_of(self.node)

    def results_used(self) -> set[int]:
        """Which results of the fx node at hand, an operator with several, somebody reads."""
        return {int(user.args[1]) for user in self.node.users if user.users}  # type: ignore[arg-type]

    def name(self, wanted: str) -> str:
        """`wanted` as a C identifier that no other value has."""
        return unused(c_identifier([wanted]), self._names)

    def parameter_name(self, role: str) -> str:
        """The name of a weight of the current module: `blocks.0.conv` and "weight" → blocks_0_conv_weight."""
        return f"{self._origins[0].module or self.node.name}_{role}"

    # ------------------------------------------------------------ reading arguments

    def constant(self, argument: object) -> Constant | None:
        """The argument as a constant; None when it is computed. Numbers and lists of them are constants
        too."""
        if isinstance(argument, fx.Node):
            value = self.values[argument]
            return value if isinstance(value, Constant) else None
        if isinstance(argument, (bool, int, float)):
            return Constant(f"{self.node.name}_scalar", np.asarray(argument, np.float32))
        return None

    def tensor(self, argument: object) -> Tensor:
        """The argument as a value of the graph."""
        constant = self.constant(argument)
        if constant is not None:
            return self.hold(constant)
        if isinstance(argument, fx.Node):
            value = self.values[argument]
            if isinstance(value, Tensor):
                return value
            if isinstance(value, Dynamic):
                raise RefusedError(
                    "reads a value that is quantized at run time",
                    "only linear layers and convolutions can: quantize this one statically, or leave it in float",
                )
        raise RefusedError(f"cannot read {argument}", "use one tensor here")

    def real(self, argument: object) -> Tensor:
        """The argument as a float32 value. Integers count as such where torch computes in float for another operand's
        sake; raises RefusedError where it computes with integers, which only indices and truth values may be."""
        tensor = self.tensor(argument)
        if tensor.dtype is DType.FLOAT32 or isinstance(tensor, StandIn):
            return tensor
        value = self.node.meta["val"]
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            return self.as_float(argument)
        raise RefusedError(
            f"computes with {tensor.dtype.value} values",
            "call .float() on them: integers have arithmetic, comparisons, indices and orders, no more",
        )

    def as_int32(self, x: Tensor) -> Tensor:
        """Plain int8 or int16 values as int32; any other value as it is."""
        if x.dtype not in _SMALL or x.type.quant != ITSELF or isinstance(x, StandIn):
            return x
        return self.emit(Cast(), [x], x.shape, DType.INT32, name=f"{x.name}_int32")

    def as_float(self, argument: object) -> Tensor:
        """The argument, of any type that can be, as a float32 value."""
        constant = self.constant(argument)
        if constant is not None and constant.quant is None:
            return self.hold(replace(constant, data=np.asarray(constant.data, np.float32), dtype=None))
        tensor = self.tensor(argument)
        if tensor.dtype is DType.FLOAT32 or isinstance(tensor, StandIn):
            return tensor
        if tensor.type.quant == ITSELF and tensor.dtype in _SMALL:
            return self.emit(Dequantize(), [tensor], tensor.shape, name=f"{tensor.name}_float")
        if tensor.dtype not in (DType.INT32, DType.UINT8):
            raise RefusedError(
                f"converts {tensor.dtype.value} to float32",
                "take float32 or integers of up to 64 bits in its place",
            )
        return self.emit(Cast(), [tensor], tensor.shape, name=f"{tensor.name}_float")

    def optional_constant(self, argument: object, role: str) -> Constant | None:
        """A constant argument or None; raises RefusedError when it is computed."""
        if argument is None:
            return None
        constant = self.constant(argument)
        if constant is None and isinstance(argument, fx.Node) and isinstance(self.values[argument], StandIn):
            constant = Constant(role, np.zeros(shape_of(argument), np.float32))
        if constant is None:
            raise RefusedError(
                f"the {role} is computed, not a constant", f"make the {role} a parameter or buffer"
            )
        return constant

    def hold(self, constant: Constant) -> Tensor:
        """The constant as a value of the graph (behind a Dequantize, when it is quantized). The same one
        each time."""
        if constant in self._held:
            return self._held[constant]
        data = np.ascontiguousarray(constant.data).reshape(constant.data.shape)
        if data.dtype in (np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.bool_)):
            data = data.astype(np.float32 if data.dtype.kind == "f" else np.int32)
        if data.dtype.name not in {d.value for d in DType}:
            raise RefusedError(f"reads a constant of type {data.dtype.name}", "use float32 constants")
        kind = type_of(tuple(data.shape), constant.dtype or DType(data.dtype.name))
        if constant.quant is not None:
            kind = replace(kind, quant=constant.quant)
        held = Tensor(self.name(constant.name), kind, data)
        if constant.quant is not None:
            held = self.emit(Dequantize(), [held], held.shape, name=f"{held.name}_real")
        self._held[constant] = held
        return held

    # ------------------------------------------------------------ emitting

    def emit(
        self,
        attrs: Attrs,
        inputs: Sequence[Tensor | None],
        shape: Sequence[int],
        dtype: DType = DType.FLOAT32,
        quant: QuantParams | None = None,
        name: str | None = None,
    ) -> Tensor:
        """Append a node with one output, called as the fx node at hand if that name is free."""
        if any(size < 1 for size in shape):
            raise RefusedError(f"makes an empty tensor of shape {tuple(shape)}", "leave it out")
        out = Tensor(self.name(name or self.node.name), TensorType(tuple(shape), dtype, quant))
        self.nodes.append(Node(attrs, tuple(inputs), (out,), self._origins))
        return out

    def append(
        self,
        attrs: Attrs,
        inputs: Sequence[Tensor | None],
        outputs: Sequence[Tensor],
        inside: Sequence[Origin] = (),
    ) -> None:
        """Append a node with outputs that the row has made itself, under names from `name`.

        inside: origins of its nodes; the fx node at hand is named after them when it has a place in a file.
        """
        here = [o for o in self._origins if o.file or not inside]
        self.nodes.append(Node(attrs, tuple(inputs), tuple(outputs), (*inside, *here)))

    def move(
        self, attrs: Attrs, inputs: Sequence[Tensor], shape: Sequence[int], name: str | None = None
    ) -> Tensor:
        """emit for an operator that keeps dtype and quantization of its inputs."""
        first = inputs[0].type
        return self.emit(attrs, inputs, shape, first.dtype, first.quant, name)

    def permute(self, x: Tensor, order: Sequence[int], name: str | None = None) -> Tensor:
        """Dimension i of the result is dimension order[i]; nothing is emitted for the identity."""
        if list(order) == list(range(len(x.shape))):
            return x
        return self.move(Permute(tuple(order)), [x], [x.shape[axis] for axis in order], name)

    def reshape(self, x: Tensor, shape: Sequence[int], name: str | None = None) -> Tensor:
        """The same elements under another shape; nothing is emitted when it is the same."""
        return x if tuple(shape) == x.shape else self.move(Reshape(tuple(shape)), [x], shape, name)


def axis_of(axis: int, rank: int) -> int:
    """A possibly negative axis as 0 … rank - 1."""
    return axis + rank if axis < 0 else axis


def axes_of(dim: object, rank: int) -> tuple[int, ...]:
    """The axes that an operator goes over, in order: an axis, a list of them, or all for None and []."""
    listed = [dim] if isinstance(dim, int) else list(dim or range(rank))  # type: ignore[call-overload]
    return tuple(sorted(axis_of(axis, rank) for axis in listed))


def pair(value: object) -> tuple[int, int]:
    """An int, or a list of one or two ints, as (h, w)."""
    if isinstance(value, int):
        return value, value
    items = [int(v) for v in value]  # type: ignore[attr-defined]
    return (items[0], items[0]) if len(items) == 1 else (items[0], items[1])
