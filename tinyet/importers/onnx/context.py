# SPDX-License-Identifier: Apache-2.0
"""The context of the handlers: values by name, the current node, emission."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.onnx.read import WIDE, OnnxModel, OnnxNode
from tinyet.importers.onnx.values import EVERY, Bytes, Float32, Integers, Numbers, Scale, Value, plain_reals
from tinyet.ir import Array, Attrs, DType, Node, Note, Origin, QuantParams, Tensor, TensorType
from tinyet.ir.budget import Budget
from tinyet.messages.text import c_identifier, unused
from tinyet.numerics import QuantizeRounding, dequantize
from tinyet.ops import op_of
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.lookup import Lookup
from tinyet.ops.permute import Permute
from tinyet.ops.quantize import Quantize
from tinyet.ops.reshape import Reshape
from tinyet.opset.rule import complaints

WIDE_LAYERS = (
    "layers between values of 16 bits are computed in integers, by ONNX Runtime in float32: "
    "results can differ by a few steps"
)

Handler = Callable[["Context"], Value | Sequence[Value]]
"""The value of the node at hand, or those of its outputs."""


@dataclass(eq=False)
class Context:
    """Collects the graph while the nodes are walked in order."""

    model: OnnxModel
    exact: bool = False
    values: dict[str, Value] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    readers: dict[str, list[OnnxNode]] = field(default_factory=dict)
    budget: Budget = field(init=False)
    _names: set[str] = field(default_factory=set)
    _node: OnnxNode | None = None
    _reals: dict[Value, Tensor] = field(default_factory=dict)
    _folded: dict[Tensor, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.budget = Budget(self.model.constant_bytes)
        for node in self.model.nodes:
            for name in node.inputs:
                self.readers.setdefault(name, []).append(node)

    # ------------------------------------------------------------ the node at hand

    def enter(self, node: OnnxNode | None) -> None:
        """From here on, emitted nodes come from this node."""
        self._node = node

    @property
    def node(self) -> OnnxNode:
        assert self._node is not None
        return self._node

    @property
    def origin(self) -> Origin:
        return (
            Origin("input", file=self.model.file)
            if self._node is None
            else self._node.origin(self.model.file)
        )

    def attribute(self, name: str, default: Any) -> Any:
        """An attribute of the kind of its default; raises RefusedError for another kind."""
        value = self.node.attributes.get(name)
        if value is None:
            return default
        if isinstance(default, float) and isinstance(value, (int, float)):
            return float(value)
        if not isinstance(value, list if isinstance(default, (list, tuple)) else type(default)):
            raise RefusedError(f"has {name} = {str(value)[:60]}", shape=False)
        return value

    def inexact(self, text: str, hint: str = "") -> None:
        """Something in which the program may differ from ONNX Runtime by a last bit: a note, or a refusal where exact
        results were asked for. Of a float model nobody expects the same bits; of one of 16 bits a single note says it
        of all (`importer`)."""
        if self.exact:
            raise RefusedError(text, hint or "leave exact away to take it as it is")
        if self.model.is_quantized and not self.model.has_int16:
            self.notes.append(Note(text, self.origin))

    # ------------------------------------------------------------ inputs

    def has(self, position: int) -> bool:
        return position < len(self.node.inputs) and bool(self.node.inputs[position])

    def value(self, position: int) -> Value:
        if not self.has(position):
            raise RefusedError(f"has no input {position}", shape=False)
        return self.values[self.node.inputs[position]]

    def constant(self, position: int, role: str) -> Numbers:
        """An input that must be a constant, called `role` in the refusal."""
        found = self.value(position)
        if not isinstance(found, Numbers):
            raise RefusedError(f"computes its {role}", f"make the {role} a constant of the model")
        return found

    def weights(self, position: int, role: str) -> Float32:
        """A constant of real numbers. Raises RefusedError for plain integers, which no layer of floats has."""
        found = self.constant(position, role)
        if found.scale is None and found.data.dtype.kind != "f":
            raise RefusedError(
                f"has a {role} of {found.data.dtype}", "store it in float32, or quantize the model"
            )
        return np.asarray(found.real, np.float32)

    def integers(self, position: int, role: str, default: Sequence[int] | None = None) -> list[int]:
        """A constant input of whole numbers, flat; `default` where it is absent."""
        if not self.has(position) and default is not None:
            return list(default)
        return self.constant(position, role).integers()

    def real(self, value: Value) -> Tensor:
        """The value in float32."""
        if isinstance(value, Tensor):
            if value.dtype is not DType.FLOAT32:
                raise RefusedError(f"computes with {value.dtype.value} values", "cast them to float")
            return value
        if isinstance(value, Integers):
            raise RefusedError("computes with integers", "put a DequantizeLinear before it")
        if value not in self._reals:
            if isinstance(value, Numbers):
                self._reals[value] = self._real_constant(value)
            else:
                kind = TensorType(value.tensor.shape, DType.FLOAT32)
                made = self.dequantized(value.tensor)
                for function in value.functions:
                    made = self.emit_as(function, [made], kind)
                self._reals[value] = made
        return self._reals[value]

    def _real_constant(self, value: Numbers) -> Tensor:
        """A constant in float32. In a model of 16 bits, whose operators of integers are formed later, its integers stay
        behind a Dequantize."""
        scale, name = value.scale, value.name or "constant"
        if scale is None or not self.model.has_int16 or scale.axis is not None:
            return self.held(name, np.asarray(value.real, np.float32))
        if scale.dtype not in ("int8", "uint8", *WIDE):
            return self.held(name, np.asarray(value.real, np.float32))
        quant = scale.per_tensor()
        data = value.data.astype(np.int64) - scale.shift
        return self.dequantized(self.held(name, data.astype(np.int16 if scale.is_wide else np.int8), quant))

    def dequantized(self, x: Tensor) -> Tensor:
        """In float32. Constants may be quantized by channel: the passes fold what no operator of integers takes."""
        kind = TensorType(x.shape, DType.FLOAT32)
        if not x.is_constant:
            return self.emit_as(Dequantize(), [x], kind)
        self.budget.run(kind.count, kind.bytes)
        self.budget.hold(kind.bytes)
        assert x.type.quant is not None
        out = Tensor(self.name(f"{x.name}_real"), kind)
        self.nodes.append(Node(Dequantize(), (x,), (out,), (self.origin,)))
        self._folded[out] = Tensor(out.name, kind, dequantize(x.array, x.type.quant))
        return out

    # ------------------------------------------------------------ readers of the node at hand

    def quantizers(self, name: str) -> list[OnnxNode] | None:
        """The QuantizeLinear nodes of one and the same scale that alone read a value; None where others do."""
        readers = self.readers.get(name, [])
        if not readers or name in self.model.outputs:
            return None
        if any(r.op != "QuantizeLinear" or r.inputs[0] != name or name in r.inputs[1:] for r in readers):
            return None
        return (
            readers if len({(r.inputs[1:], repr(r.attributes.get("axis"))) for r in readers}) == 1 else None
        )

    def target(self) -> Scale | None:
        """The scale of the only quantizer of the node's result; None where it is used in float, too, and for one of 16
        bits, for which ONNX Runtime has no operators of integers."""
        readers = self.quantizers(self.node.outputs[0])
        scale = None if readers is None else self.scale_of(readers[0])
        return None if scale is None or scale.is_wide else scale

    def scale_of(self, node: OnnxNode) -> Scale:
        """Of a QuantizeLinear or DequantizeLinear. Raises RefusedError for one that is computed, or makes no sense."""
        parts = [self.values.get(name) for name in node.inputs[1:3]]
        if not parts or not all(isinstance(p, Numbers) for p in parts):
            raise RefusedError("computes its scale or zero point", "quantize ahead of time (quantize_static)")
        if node.attributes.get("block_size") or node.attributes.get("output_dtype"):
            raise RefusedError("quantizes by blocks", "quantize per tensor or per channel")
        scale = np.asarray(parts[0].data)  # type: ignore[union-attr]
        zero = np.asarray(parts[1].data) if len(parts) > 1 else None  # type: ignore[union-attr]
        if scale.dtype != np.float32 or not (np.isfinite(scale).all() and (scale > 0).all()):
            raise RefusedError("has a scale that is no positive float32")
        if zero is None:
            zero = np.zeros(scale.shape, np.uint8)
        if zero.dtype.kind not in "iu" or zero.size != scale.size or max(scale.ndim, zero.ndim) > 1:
            raise RefusedError(f"has zero points {zero.shape} of {zero.dtype} beside scales {scale.shape}")
        axis = node.attributes.get("axis", 1)
        by_channel = scale.ndim == 1 and scale.size > 1
        if not isinstance(axis, int):
            raise RefusedError(f"has axis = {axis}", shape=False)
        return Scale(
            scale.reshape(-1),
            zero.reshape(-1).astype(np.int64),
            axis if by_channel else None,
            zero.dtype.name,
        )

    # ------------------------------------------------------------ emission

    def name(self, wanted: str) -> str:
        """The last steps of a name's path as a C identifier that nothing else has."""
        steps = [step for step in re.split(r"[/:]+", wanted) if step][-2:]
        return unused(c_identifier(steps), self._names)

    def held(self, name: str, data: Array, quant: QuantParams | None = None) -> Tensor:
        """A constant of the graph. Raises RefusedError for one that no graph has, or for which there is no room."""
        self.budget.hold(data.nbytes)
        data = np.ascontiguousarray(data).reshape(data.shape)
        if data.dtype == np.int64:
            if data.size and not -(2**31) <= int(data.min()) <= int(data.max()) < 2**31:
                raise RefusedError("reads a constant of numbers beyond 32 bits")
            data = data.astype(np.int32)
        if data.dtype.name not in {d.value for d in DType}:
            raise RefusedError(f"reads a constant of {data.dtype}", "use float32")
        return Tensor(self.name(name), TensorType(tuple(data.shape), DType(data.dtype.name), quant), data)

    def emit_as(
        self, attrs: Attrs, inputs: Sequence[Tensor | None], type_: TensorType, name: str = ""
    ) -> Tensor:
        """Append a node with one output of a given type. Raises RefusedError for one that is no node of the graph's."""
        title = name or (self._node.outputs[0] if self._node is not None else "value")
        (out,) = self.emit_many(attrs, inputs, [type_], title)
        return out

    def emit_many(
        self, attrs: Attrs, inputs: Sequence[Tensor | None], types: Sequence[TensorType], name: str = ""
    ) -> tuple[Tensor, ...]:
        """The same, with several outputs; by default called after the node at hand."""
        for type_ in types:
            self.budget.run(type_.count, type_.bytes)
        outputs = tuple(Tensor(self.name(name or self.node.name or self.node.op), type_) for type_ in types)
        node = Node(attrs, tuple(inputs), outputs, (self.origin,))
        # Constants behind a Dequantize are constants once they are folded.
        as_folded = node.replace(inputs=[t if t is None else self._folded.get(t, t) for t in inputs])
        if found := complaints(op_of(node), as_folded):
            raise RefusedError("; ".join(found))
        self.nodes.append(node)
        return outputs

    def emit(
        self,
        attrs: Attrs,
        inputs: Sequence[Tensor | None],
        quant: QuantParams | None = None,
        dtype: DType | None = None,
        name: str = "",
    ) -> Tensor:
        """The same, of the shape that the operator gives; by default of the first input's type."""
        first = inputs[0]
        assert first is not None
        dtype = first.dtype if dtype is None else dtype
        quant = first.type.quant if quant is None and dtype is first.dtype else quant
        draft = Node(attrs, tuple(inputs), (Tensor("draft", TensorType((1,), dtype, quant)),), (self.origin,))
        (shape,) = op_of(draft).infer(draft)
        return self.emit_as(attrs, inputs, TensorType(tuple(shape), dtype, quant), name)

    def permute(self, x: Tensor, order: Sequence[int]) -> Tensor:
        """Dimension i of the result is dimension order[i]; nothing is emitted for the identity."""
        return x if list(order) == list(range(len(x.shape))) else self.emit(Permute(tuple(order)), [x])

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        return x if tuple(shape) == x.shape else self.emit(Reshape(tuple(shape)), [x])

    def image(self, x: Tensor) -> Tensor:
        """(N, C, H, W) as (N, H, W, C), or (N, C, L) as (N, 1, L, C)."""
        if len(x.shape) == 3:
            x = self.permute(x, (0, 2, 1))
            return self.reshape(x, (x.shape[0], 1, *x.shape[1:]))
        if len(x.shape) != 4:
            raise RefusedError(f"works on {len(x.shape)} dimensions", "images have 4, rows 3")
        return self.permute(x, (0, 2, 3, 1))

    def from_image(self, y: Tensor, rank: int) -> Tensor:
        """The way back, to as many dimensions as the input had."""
        if rank == 3:
            return self.permute(self.reshape(y, (y.shape[0], *y.shape[2:])), (0, 2, 1))
        return self.permute(y, (0, 3, 1, 2))

    # ------------------------------------------------------------ quantizing

    def lookup(self, x: Tensor, results: Float32, to: Scale, name: str = "") -> Tensor:
        """The integers of `to` for the real number that each integer of x stands for: QuantizeLinear of each."""
        quant = to.per_tensor()
        if np.isnan(results).any():
            self.inexact(
                "it is no number for some inputs, which gives the zero point; in ONNX Runtime the lowest integer"
            )
        table = (to.quantized(results).astype(np.int64) - to.shift).astype(np.int8)
        # in the order of the bytes: 0 … 127, -128 … -1
        ordered = np.roll(table, -128).reshape(1, 256)
        held = self.held(f"{x.name}_table", ordered, quant)
        return self.emit_as(Lookup(0), [x, held], TensorType(x.shape, DType.INT8, quant), name)

    def to_scale(
        self, value: Value, to: Scale, name: str = "", rounding: QuantizeRounding = "half_even"
    ) -> Integers:
        """The result of a QuantizeLinear; `rounding` of values computed in float32."""
        quant, unsigned = to.per_tensor(), to.dtype == "uint8"
        if isinstance(value, Numbers):
            data = (to.quantized(np.asarray(value.real)).astype(np.int64) - to.shift).astype(np.int8)
            return Integers(self.held(name or value.name or "constant", data, quant), unsigned)
        if isinstance(value, Integers):
            raise RefusedError("quantizes integers", shape=False)
        if isinstance(value, Bytes):
            if value.is_plain and value.tensor.type.quant == quant:
                return Integers(value.tensor, unsigned)
            return Integers(self.lookup(value.tensor, value.reals, to, name), unsigned)
        x = self.real(value)
        return Integers(
            self.emit_as(Quantize(rounding), [x], TensorType(x.shape, DType.INT8, quant), name), unsigned
        )

    def to_wide(self, value: Value, to: Scale, name: str) -> Integers:
        """The result of a QuantizeLinear to 16 bits."""
        self.inexact(WIDE_LAYERS)
        x = self.real(value)
        kind = TensorType(x.shape, DType.INT16, to.per_tensor())
        return Integers(self.emit_as(Quantize(), [x], kind, name), to.dtype == "uint16")

    def meaning(self, value: Integers, scale: Scale) -> Bytes:
        """The result of a DequantizeLinear; another scale than that of the integers gives them another meaning."""
        quant = scale.per_tensor()
        tensor = value.tensor
        if (scale.dtype == "uint8") is not value.unsigned:
            raise RefusedError(f"takes the integers for {scale.dtype}", shape=False)
        if tensor.type.quant != quant:
            same = self.held(
                f"{tensor.name}_table", np.roll(EVERY, -128).astype(np.int8).reshape(1, 256), quant
            )
            tensor = self.emit_as(Lookup(0), [tensor, same], TensorType(tensor.shape, DType.INT8, quant))
        return Bytes(tensor, value.unsigned, plain_reals(quant))


def through(value: Bytes, function: Attrs, results: Float32) -> Bytes:
    """A function of each number."""
    return replace(value, reals=np.asarray(results, np.float32), functions=(*value.functions, function))
