# SPDX-License-Identifier: Apache-2.0
"""The state of an export: the file's tensors by index, constants, calls, notes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tinyet.exporters.tflite.limits import TITLES, VERSIONS, complaint
from tinyet.ir import Array, DType, Node, Note, QuantParams, Shape, Tensor, TensorType
from tinyet.tflite import Operator, Quantization, Runtime, TensorInfo
from tinyet.tflite.options import Options

Handler = Callable[["Context"], None]
"""Writes operators that compute every output of the node at hand."""


class RefusedError(Exception):
    """Raised by a row for a node that no operator computes to the same bits. reason: what it is, without a full stop;
    hint: what to do about it."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason, self.hint = reason, hint


def quantization_of(quant: QuantParams | None) -> Quantization | None:
    """The file's record of a quantization."""
    return None if quant is None else Quantization(quant.scale, quant.zero_point, quant.axis or 0)


@dataclass(eq=False)
class Context:
    """One subgraph on its way into the file, and the node at hand. handles: of the variables, by the states' values."""

    runtime: Runtime
    tensors: list[TensorInfo] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    notes: dict[Note, None] = field(default_factory=dict)
    handles: dict[Tensor, int] = field(default_factory=dict)
    _indices: dict[Tensor, int] = field(default_factory=dict)
    _node: Node | None = None

    # ------------------------------------------------------------ the node at hand

    def enter(self, node: Node) -> None:
        """From here on, what is written computes this node."""
        self._node = node

    @property
    def node(self) -> Node:
        assert self._node is not None
        return self._node

    def note(self, text: str) -> None:
        """Something that the user should know about the node at hand; said once of each place."""
        self.notes[Note(text, self._node.origin if self._node else None)] = None

    def unlike(self, runtime: Runtime, text: str) -> None:
        """`text` says what a runtime does otherwise, or has not: a note in a file that is for the other one. Raises
        RefusedError in a file for this one."""
        if runtime == self.runtime:
            raise RefusedError(f"{TITLES[runtime]} {text}")
        self.note(f"in the .tflite file: {TITLES[runtime]} {text}")

    def in_float(self) -> None:
        """The node at hand adds floats, in another order than the runtimes do."""
        self.notes[Note("in the .tflite file: floats are summed in another order, last bits may differ")] = (
            None
        )

    # ------------------------------------------------------------ tensors

    def add(self, info: TensorInfo) -> int:
        self.tensors.append(info)
        return len(self.tensors) - 1

    def of(self, tensor: Tensor) -> int:
        """The index of a tensor of the graph; constants come with their bytes, int4 ones a byte each."""
        if tensor not in self._indices:
            data = None if tensor.data is None else little(tensor.array)
            kind = "int8" if tensor.dtype is DType.INT4 else tensor.dtype.value
            info = TensorInfo(tensor.name, tensor.shape, kind, data, quantization_of(tensor.type.quant))
            self._indices[tensor] = self.add(info)
        return self._indices[tensor]

    def alias(self, tensor: Tensor, index: int) -> None:
        """A tensor of the graph is one of the file's that is there already."""
        self._indices[tensor] = index

    def x(self, position: int = 0) -> int:
        """An input of the node at hand."""
        return self.of(self.node.input(position))

    @property
    def out(self) -> int:
        """The output of the node at hand."""
        return self.of(self.node.output)

    def value(self, type_: TensorType, suffix: str = "step") -> int:
        """A value on the way to the output of the node at hand."""
        name = f"{self.node.output.name}_{suffix}"
        return self.add(TensorInfo(name, type_.shape, type_.dtype.value, None, quantization_of(type_.quant)))

    def like(self, index: int, shape: Shape) -> int:
        """A value of a tensor's type, under another shape."""
        return self.add(replace(self.tensors[index], shape=tuple(shape), data=None))

    def constant(self, data: Array, suffix: str, quant: QuantParams | None = None) -> int:
        """A constant that the row has made itself."""
        name = f"{self.node.output.name}_{suffix}"
        return self.add(
            TensorInfo(name, tuple(data.shape), data.dtype.name, little(data), quantization_of(quant))
        )

    def numbers(self, values: Sequence[int] | Sequence[Sequence[int]], suffix: str) -> int:
        """A constant of int32: axes, shapes, paddings."""
        return self.constant(np.array(values, np.int32), suffix)

    def quantized(self, index: int, quant: Quantization) -> bool:
        """Give a tensor without a quantization one; whether it has this one now."""
        info = self.tensors[index]
        if info.quantization is None:
            self.tensors[index] = replace(info, quantization=quant)
        return self.tensors[index].quantization == quant

    # ------------------------------------------------------------ operators

    def call(self, code: str, inputs: Sequence[int], output: int, options: Options | None = None) -> int:
        """Append an operator with one output, whose index it gives back. Raises RefusedError where the runtime does not
        take its first input; notes it where it is the other one."""
        if inputs:
            first = self.tensors[inputs[0]]
            for runtime in TITLES:
                found = complaint(runtime, code, first.type, len(first.shape))
                if found is not None:
                    self.unlike(runtime, found)
        version = VERSIONS.get(code, 1)
        self.operators.append(Operator(code, tuple(inputs), (output,), options, version=version))
        return output


def little(data: Array) -> bytes:
    """The bytes of a constant, row-major, little endian."""
    return np.ascontiguousarray(data).astype(data.dtype.newbyteorder("<")).tobytes()
