# SPDX-License-Identifier: Apache-2.0
"""A kernel call as data: a `Call` and its arrays as a request to a call server. No C is compiled for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tests.calls.table import FunctionTable, Layout, layouts_of, struct_bytes
from tinyet.device import calls
from tinyet.device.calls import Address, Argument, Invocation, Memory, Request, Result
from tinyet.errors import InternalError
from tinyet.ir import Array, Node, Tensor
from tinyet.opset import (
    DENSE,
    Arg,
    Call,
    ConstantArg,
    EventArg,
    InputArg,
    Layouts,
    LiteralArg,
    OutputArg,
    ParamsArg,
    ScratchArg,
    StateArg,
    Struct,
)

PATTERN = 0xA5
"""What memory holds that nothing fills, here as in the server."""


@dataclass(frozen=True)
class Server:
    """What a request is made for: a table of functions, and how the server's compiler lays out their structs.
    memory_bytes: for all blocks together; 0 where each has memory of its own."""

    table: FunctionTable
    layouts: Mapping[str, Layout]
    pointer_bytes: int
    memory_bytes: int


def server_of(table: FunctionTable, told: calls.Layouts) -> Server:
    return Server(table, layouts_of(table, told), told.pointer_bytes, told.memory_bytes)


@dataclass(frozen=True)
class Shared:
    """An input and an output, by their numbers, in one block: the input begins `distance` bytes behind the output, or
    before it where that is negative."""

    input: int
    output: int
    distance: int


@dataclass(frozen=True)
class Placement:
    """Where activations lie.

    shared: inputs that share memory with an output. shift: bytes before the first one of each block of activations, by
    which addresses are odd; a multiple of what the widest type of the node needs. layouts: how the first input and the
    output lie; the call was lowered for them.
    """

    shared: tuple[Shared, ...] = ()
    shift: int = 0
    layouts: Layouts = DENSE


APART = Placement()
"""Each tensor in memory of its own."""


@dataclass(frozen=True)
class Span:
    """Bytes of a block: runs of so many, one every `stride` bytes."""

    block: int
    offset: int
    runs: int
    run: int
    stride: int

    @property
    def end(self) -> int:
        return self.offset + (self.runs - 1) * self.stride + self.run

    @property
    def places(self) -> slice | npt.NDArray[np.intp]:
        """Of each byte the index in the block."""
        if self.runs == 1:
            return slice(self.offset, self.end)
        starts = self.offset + np.arange(self.runs)[:, None] * self.stride
        return (starts + np.arange(self.run)).ravel()


def span_of(block: int, offset: int, tensor: Tensor, pixel_stride: int) -> Span:
    """Where a tensor lies: without gaps, or with a pixel every so many bytes."""
    if pixel_stride == 0:
        return Span(block, offset, 1, tensor.type.bytes, tensor.type.bytes)
    pixel = tensor.shape[-1] * tensor.dtype.bytes
    return Span(block, offset, tensor.type.bytes // pixel, pixel, pixel_stride)


@dataclass(frozen=True)
class PreparedCall:
    """A call as a request.

    outputs: where each lies. free: the blocks of scratch memory and state, in which anything may be left. Of all other
    memory that comes back each byte is as it was.
    """

    node: Node
    request: Request
    outputs: tuple[Span, ...]
    free: frozenset[int]

    def arrays(self, result: Result) -> list[Array]:
        """The outputs."""
        back = self._returned(result)
        found = []
        for span, tensor in zip(self.outputs, self.node.outputs, strict=True):
            data = np.frombuffer(back[span.block], np.uint8)[span.places].tobytes()
            found.append(np.frombuffer(data, tensor.dtype.numpy).reshape(tensor.shape))
        return found

    def touched(self, result: Result) -> list[str]:
        """What the call wrote outside its outputs, a line a block."""
        found = []
        for number, after in self._returned(result).items():
            if number in self.free:
                continue
            memory = self.request.blocks[number]
            before = memory.data if memory.data is not None else bytes([PATTERN]) * memory.bytes
            if before == after:
                continue
            changed = np.frombuffer(before, np.uint8) != np.frombuffer(after, np.uint8)
            for span in self.outputs:
                if span.block == number:
                    changed[span.places] = False
            if changed.any():
                found.append(f"byte {int(changed.argmax())} of block {number} is not the call's to write")
        return found

    def _returned(self, result: Result) -> dict[int, bytes]:
        numbers = [i for i, block in enumerate(self.request.blocks) if block.returned]
        return dict(zip(numbers, result.returned, strict=True))


def prepare(
    server: Server,
    call: Call,
    node: Node,
    arrays: Sequence[Array | None],
    placement: Placement = APART,
    *,
    all_back: bool = True,
) -> PreparedCall:
    """A library kernel's call as a request.

    arrays: one for each of the node's inputs, constants included; None where one is absent. all_back: the server
    returns inputs and constants, too, so that `touched` sees them. Raises InternalError for a function that the server
    does not have, and for arguments that it does not take.
    """
    return _Preparation(server, call, node, arrays, all_back).made(placement)


class _Preparation:
    def __init__(
        self, server: Server, call: Call, node: Node, arrays: Sequence[Array | None], all_back: bool
    ) -> None:
        self.server, self.call, self.node, self.arrays, self.all_back = server, call, node, arrays, all_back
        self.blocks: list[Memory] = []
        self.pointers: list[tuple[Address, Address]] = []
        self.inputs: dict[int, Address] = {}
        self.outputs: list[Address] = []
        self.constants: dict[str, Address] = {}
        self.others: dict[type[Arg], Address] = {}

    def made(self, placement: Placement) -> PreparedCall:
        self._activations(placement)
        for constant in self.call.constants:
            self.constants[constant.name] = self._filled(constant.data, max(constant.align, 8))
        free = set()
        for kind, size, data in (
            (ScratchArg, self.call.scratch_bytes, None),
            (StateArg, self.call.state_bytes, bytes(self.call.state_bytes)),
        ):
            if size:
                self.others[kind] = self._add(Memory(size, data))
                free.add(self.others[kind].block)
        if self.call.params is not None:
            self._parameters(self.call.params)
        invocations = []
        if self.call.init is not None:
            invocations.append(self._invocation(self.call.init.symbol, self.call.init.args))
        if not isinstance(self.call.symbol, str):
            raise InternalError(f"{self.call.kernel} is a function of its own, which no server has")
        invocations.append(self._invocation(self.call.symbol, self.call.args))
        spans = (
            span_of(at.block, at.offset, tensor, placement.layouts.output)
            for at, tensor in zip(self.outputs, self.node.outputs, strict=True)
        )
        request = Request(tuple(self.blocks), tuple(invocations), tuple(self.pointers))
        return PreparedCall(self.node, request, tuple(spans), frozenset(free))

    def _add(self, memory: Memory, offset: int = 0) -> Address:
        self.blocks.append(memory)
        return Address(len(self.blocks) - 1, offset)

    def _filled(self, data: Array, align: int = 8) -> Address:
        """C has no empty arrays: one element stands for them."""
        raw = np.ascontiguousarray(data).tobytes() or bytes(data.itemsize)
        return self._add(Memory(len(raw), raw, self.all_back, align))

    def _activations(self, placement: Placement) -> None:
        """Outputs with the inputs that share their memory, then all that have their own."""
        shift, seen = placement.shift, dict[int, Address]()
        for index, output in enumerate(self.node.outputs):
            size = span_of(0, 0, output, placement.layouts.output).end
            near = {s.input: s.distance for s in placement.shared if s.output == index}
            sizes = {i: len(self._raw(i)) for i in near}
            low = min([0, *near.values()])
            high = max([size, *(near[i] + sizes[i] for i in near)])
            data = bytearray([PATTERN]) * (shift + high - low)
            at = Address(len(self.blocks), shift - low)
            for i, distance in near.items():
                start = at.offset + distance
                data[start : start + sizes[i]] = self._raw(i)
                self.inputs[i] = seen[id(self.node.inputs[i])] = Address(at.block, start)
            self.outputs.append(self._add(Memory(len(data), bytes(data), True), at.offset))
        for i, tensor in enumerate(self.node.inputs):
            if tensor is None or i in self.inputs:
                continue
            if id(tensor) not in seen:
                raw = self._raw(i) if i > 0 else self._spread(tensor, placement.layouts.input)
                seen[id(tensor)] = (
                    self._filled(tensor.array)
                    if tensor.is_constant
                    else self._add(
                        Memory(shift + len(raw), bytes([PATTERN]) * shift + raw, self.all_back), shift
                    )
                )
            self.inputs[i] = seen[id(tensor)]

    def _spread(self, tensor: Tensor, pixel_stride: int) -> bytes:
        """The first input as it lies."""
        span = span_of(0, 0, tensor, pixel_stride)
        data = np.full(span.end, PATTERN, np.uint8)
        data[span.places] = np.frombuffer(self._raw(0), np.uint8)
        return data.tobytes()

    def _raw(self, index: int) -> bytes:
        array = self.arrays[index]
        assert array is not None
        return np.ascontiguousarray(array).tobytes()

    def _parameters(self, params: Struct) -> None:
        made = struct_bytes(params, self.server.layouts)
        at = self._add(Memory(len(made.data), made.data))
        self.others[ParamsArg] = at
        for offset, name in made.pointers:
            self.pointers.append((Address(at.block, offset), self.constants[name]))

    def _invocation(self, symbol: str, args: Sequence[Arg]) -> Invocation:
        number = self.server.table.numbers.get(symbol)
        if number is None:
            raise InternalError(f"the call server has no function {symbol}")
        given = tuple(self._argument(arg) for arg in args)
        members = self.server.table.functions[number].members
        have = tuple(
            "address" if isinstance(g, Address) else "real" if isinstance(g, float) else "word" for g in given
        )
        if have != members:
            raise InternalError(f"{symbol} takes {', '.join(members)}; the call gives {', '.join(have)}")
        return Invocation(number, given)

    def _argument(self, arg: Arg) -> Argument:
        match arg:
            case InputArg(index):
                return self.inputs[index]
            case OutputArg(index):
                return self.outputs[index]
            case ConstantArg(name):
                return self.constants[name]
            case LiteralArg(value):
                return value
            case EventArg():
                return 0
        return self.others[type(arg)]
