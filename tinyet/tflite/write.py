# SPDX-License-Identifier: Apache-2.0
"""Records → a .tflite file: what `read_model` reads, written by the same schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import flatbuffers
import numpy as np

from tinyet.tflite.enumerations import BUILTINS, CUSTOM, TYPES
from tinyet.tflite.options import TYPES as OPTION_TYPES
from tinyet.tflite.options import Options
from tinyet.tflite.records import Model, Operator, Quantization, Signature, Subgraph, TensorInfo

_VERSION = 3
_FIRST_FREE = 127
"""The code from which on the old field of one byte says "see the new one"."""

_SLOTS = {"b": "PrependInt8Slot", "i": "PrependInt32Slot", "I": "PrependUint32Slot", "?": "PrependBoolSlot"}


class _Writer:
    """Builds tables from the leaves up, the same bytes for the same records. Buffer 0 is the empty one."""

    def __init__(self, model: Model) -> None:
        self.b = flatbuffers.Builder(1 << 16)
        self.buffers: list[bytes] = [b""]
        self._known: dict[bytes, int] = {b"": 0}
        every = (op for subgraph in model.subgraphs for op in subgraph.operators)
        self.codes = list(dict.fromkeys((op.code, op.custom, op.version) for op in every))

    def buffer_of(self, data: bytes | None) -> int:
        """The index of the buffer with these bytes."""
        data = data or b""
        if data not in self._known:
            self._known[data] = len(self.buffers)
            self.buffers.append(data)
        return self._known[data]

    def text(self, value: str) -> int:
        return int(self.b.CreateString(value))

    def ints(self, values: Sequence[float], kind: type[np.generic] = np.int32) -> int:
        return int(self.b.CreateNumpyVector(np.asarray(values, kind)))

    def offsets(self, values: Sequence[int]) -> int:
        self.b.StartVector(4, len(values), 4)
        for value in reversed(values):
            self.b.PrependUOffsetTRelative(value)
        return int(self.b.EndVector())

    def bytes_(self, data: bytes) -> int:
        """A vector of bytes that begins at a multiple of 16, as constants must."""
        self.b.StartVector(1, len(data), 16)
        head = self.b.head = self.b.Head() - len(data)
        self.b.Bytes[head : head + len(data)] = data
        return int(self.b.EndVector())

    def slot(self, number: int, offset: int | None) -> None:
        if offset is not None:
            self.b.PrependUOffsetTRelativeSlot(number, offset, 0)

    def quantization(self, q: Quantization) -> int:
        scale, zero = self.ints(q.scale, np.float32), self.ints(q.zero_point, np.int64)
        self.b.StartObject(7)
        self.slot(2, scale)
        self.slot(3, zero)
        self.b.PrependInt32Slot(6, q.axis, 0)
        return int(self.b.EndObject())

    def tensor(self, t: TensorInfo) -> int:
        quantization = None if t.quantization is None else self.quantization(t.quantization)
        name, shape = self.text(t.name), self.ints(t.shape)
        signature = self.ints(t.signature) if t.signature else None
        self.b.StartObject(8)
        self.slot(0, shape)
        self.b.PrependInt8Slot(1, TYPES.index(t.type), 0)
        self.b.PrependUint32Slot(2, self.buffer_of(t.data), 0)
        self.slot(3, name)
        self.slot(4, quantization)
        self.b.PrependBoolSlot(5, t.variable, False)
        self.slot(7, signature)
        return int(self.b.EndObject())

    def options(self, options: Options) -> int:
        """The table, every field written: readers older than a default would read another."""
        leaves: dict[int, int] = {}
        for slot, f in enumerate(fields(options)):
            value = getattr(options, f.name)
            if f.metadata["kind"] == "text":
                leaves[slot] = self.text(value)
            elif f.metadata["kind"] == "[i]":
                leaves[slot] = self.ints(value)
        self.b.StartObject(len(fields(options)))
        for slot, f in enumerate(fields(options)):
            value, kind = getattr(options, f.name), f.metadata["kind"]
            if slot in leaves:
                self.slot(slot, leaves[slot])
            elif kind == "f":
                self.b.PrependFloat32Slot(slot, value, None)
            else:
                getattr(self.b, _SLOTS[kind])(slot, value, None)
        return int(self.b.EndObject())

    def operator(self, op: Operator) -> int:
        options = None if op.options is None else self.options(op.options)
        inputs, outputs = self.ints(op.inputs), self.ints(op.outputs)
        custom = self.bytes_(op.custom_options) if op.custom_options else None
        intermediates = self.ints(op.intermediates) if op.intermediates else None
        self.b.StartObject(9)
        self.b.PrependUint32Slot(0, self.codes.index((op.code, op.custom, op.version)), 0)
        self.slot(1, inputs)
        self.slot(2, outputs)
        if op.options is not None:
            self.b.PrependUint8Slot(3, 1 + OPTION_TYPES.index(type(op.options).__name__), 0)
        self.slot(4, options)
        self.slot(5, custom)
        self.slot(8, intermediates)
        return int(self.b.EndObject())

    def subgraph(self, g: Subgraph) -> int:
        tensors = self.offsets([self.tensor(t) for t in g.tensors])
        operators = self.offsets([self.operator(op) for op in g.operators])
        inputs, outputs, name = self.ints(g.inputs), self.ints(g.outputs), self.text(g.name)
        self.b.StartObject(5)
        for slot, offset in enumerate((tensors, inputs, outputs, operators, name)):
            self.slot(slot, offset)
        return int(self.b.EndObject())

    def code(self, code: str, custom: str, version: int) -> int:
        number = BUILTINS.index(code)
        name = self.text(custom) if code == CUSTOM else None
        self.b.StartObject(4)
        self.b.PrependInt8Slot(0, min(number, _FIRST_FREE), 0)
        self.slot(1, name)
        self.b.PrependInt32Slot(2, version, 1)
        self.b.PrependInt32Slot(3, number, 0)
        return int(self.b.EndObject())

    def buffer(self, data: bytes) -> int:
        held = self.bytes_(data) if data else None
        self.b.StartObject(1)
        self.slot(0, held)
        return int(self.b.EndObject())

    def named(self, pairs: Sequence[tuple[str, int]]) -> int:
        made = []
        for title, index in pairs:
            name = self.text(title)
            self.b.StartObject(2)
            self.slot(0, name)
            self.b.PrependUint32Slot(1, index, 0)
            made.append(int(self.b.EndObject()))
        return self.offsets(made)

    def signature(self, s: Signature) -> int:
        inputs, outputs, key = self.named(s.inputs), self.named(s.outputs), self.text(s.key)
        self.b.StartObject(5)
        for slot, offset in enumerate((inputs, outputs, key)):
            self.slot(slot, offset)
        self.b.PrependUint32Slot(4, s.subgraph, 0)
        return int(self.b.EndObject())


def write_model(model: Model) -> bytes:
    """The file. Tensors with equal bytes share a buffer."""
    w = _Writer(model)
    subgraphs = w.offsets([w.subgraph(g) for g in model.subgraphs])
    codes = w.offsets([w.code(*code) for code in w.codes])
    buffers = w.offsets([w.buffer(data) for data in w.buffers])
    signatures = w.offsets([w.signature(s) for s in model.signatures])
    description = w.text(model.description)
    w.b.StartObject(8)
    w.b.PrependUint32Slot(0, _VERSION, 0)
    for slot, offset in ((1, codes), (2, subgraphs), (3, description), (4, buffers), (7, signatures)):
        w.slot(slot, offset)
    w.b.Finish(w.b.EndObject(), file_identifier=b"TFL3")
    return bytes(w.b.Output())
