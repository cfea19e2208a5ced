# SPDX-License-Identifier: Apache-2.0
"""One C call with every constant decided: its arguments, parameters, packed constants and scratch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Union

from tinyet.errors import InternalError
from tinyet.ir import Array, Node, Origin


@dataclass(frozen=True)
class InputArg:
    """Pointer to input `index` of the node: into the arena, or to a const array when it is a constant.

    The kernel need not know which, so such an array is in RAM on AVR. The pointers of `ConstantArg` and `Pointer` have
    TINYET_ROM in their C type.
    """

    index: int


@dataclass(frozen=True)
class OutputArg:
    """Pointer to output `index` of the node."""

    index: int


@dataclass(frozen=True)
class ScratchArg:
    """`void *` to the call's scratch bytes in the arena."""


@dataclass(frozen=True)
class ParamsArg:
    """Pointer to the call's parameter struct. It is valid during the call: where constants have an address space of
    their own, the struct is copied for each."""


@dataclass(frozen=True)
class ConstantArg:
    """Pointer to one of the call's own constants, by name."""

    name: str


@dataclass(frozen=True)
class StateArg:
    """`void *` to the call's state: bytes of its own that survive from one inference to the next."""


@dataclass(frozen=True)
class EventArg:
    """`uint32_t`: number of the call's first event, for TINYET_EVENT_BEGIN and TINYET_EVENT_END."""


@dataclass(frozen=True)
class LiteralArg:
    """A number: an int (int32_t or uint32_t), or a float that is passed as a float32."""

    value: int | float


@dataclass(frozen=True)
class SizeArg:
    """`int32_t`: the size that the run was asked for, of a model that has one."""


Arg = InputArg | OutputArg | ScratchArg | ParamsArg | ConstantArg | StateArg | EventArg | LiteralArg | SizeArg


class Varying(int):
    """A number of a call that depends on the size of a run: as an int, what it is at the largest. numbers: at each."""

    numbers: tuple[int, ...]

    @staticmethod
    def of(numbers: Sequence[int]) -> Varying:
        """numbers: at each value of the size, ascending."""
        found = Varying(numbers[-1])
        found.numbers = tuple(numbers)
        return found


class VaryingReal(float):
    """The same of a real number."""

    numbers: tuple[float, ...]

    @staticmethod
    def of(numbers: Sequence[float]) -> VaryingReal:
        """numbers: at each value of the size, ascending."""
        found = VaryingReal(numbers[-1])
        found.numbers = tuple(numbers)
        return found


@dataclass(frozen=True)
class Constant:
    """A const array in the layout the kernel wants; its numpy dtype decides the C element type.

    `name` is its role ("weights"); the emitter makes it unique. `align` is in bytes.
    """

    name: str
    data: Array
    comment: str = ""
    align: int = 4


@dataclass(frozen=True)
class Pointer:
    """A struct field that points at one of the call's constants."""

    constant: str


FieldValue = Union[int, float, bool, Pointer, tuple[int, ...], tuple[float, ...], "Struct"]


@dataclass(frozen=True)
class Struct:
    """A `static const` parameter struct; fields in the order of the C declaration. A field may be a struct itself."""

    ctype: str
    fields: Mapping[str, FieldValue]


@dataclass(frozen=True)
class Init:
    """A call made once, before the first inference: `tinyet_status symbol(args)`.

    args: constants, parameters, state and literals of the same call; there are no inputs yet.
    """

    symbol: str
    args: tuple[Arg, ...]


@dataclass(frozen=True)
class Event:
    """A part of a call that can be told apart while it runs: in profiles, and when it fails or faults."""

    label: str
    origins: tuple[Origin, ...] = ()


@dataclass(frozen=True)
class Definition:
    """A C function made for one call: a wrapper around an always-inline kernel, say, with the layer's constants in it.

    It has no name yet. The emitter gives it one, after the layer that calls it, and prints equal ones once.

    kernel:     what reports call it.
    returns:    what stands before the name: "TINYET_FUNCTION void".
    parameters: "const int8_t *input", … in the order of the call's arguments.
    body:       lines of C, indented.
    comment:    what it computes, for the line above; empty for none.
    """

    kernel: str = field(compare=False)
    returns: str
    parameters: tuple[str, ...]
    body: tuple[str, ...]
    comment: str = field(default="", compare=False)


@dataclass(frozen=True)
class Call:
    """One C call, complete.

    symbol: a function of a library by its name, or one made for this call.
    returns_status: the function returns a tinyet_status, which the generated code passes on when it is not TINYET_OK.
    state_bytes: static memory beside the arena, 8-byte aligned, zero at the start.
    init: what prepares state before the first inference.
    events: its parts; the function brackets part k by TINYET_EVENT_BEGIN(first + k) and TINYET_EVENT_END(first + k).
    files: C files that it brings beside those of its kernel: {name: text}; the generated code includes the headers.
    frame_bytes: of stack, of a function that is printed for it and whose frame grows with the layer.
    """

    symbol: str | Definition
    args: tuple[Arg, ...]
    params: Struct | None = None
    constants: tuple[Constant, ...] = ()
    scratch_bytes: int = 0
    returns_status: bool = False
    state_bytes: int = 0
    init: Init | None = None
    events: tuple[Event, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    frame_bytes: int = 0

    def __post_init__(self) -> None:
        names = [self.symbol] if isinstance(self.symbol, str) else []
        names += [self.init.symbol] if self.init is not None else []
        names += _names(self.params) if self.params is not None else []
        wrong = [name for name in names if not _NAME.fullmatch(name)]
        if wrong:
            raise InternalError(f"a kernel makes C of {wrong[0]!r}, which is no name")

    @property
    def kernel(self) -> str:
        """The function's name in reports."""
        return self.symbol.kernel if isinstance(self.symbol, Definition) else self.symbol


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _names(struct: Struct) -> list[str]:
    """Of types and fields."""
    inner = [name for value in struct.fields.values() if isinstance(value, Struct) for name in _names(value)]
    return [struct.ctype, *struct.fields, *inner]


WIDTH = 118  # of a line of generated C


def wrapped(line: str) -> list[str]:
    """A line of C, broken at spaces after commas where it is too long; what follows is indented by four more."""
    lines, indent = [], " " * (len(line) - len(line.lstrip()) + 4)
    while len(line) > WIDTH:
        at = line.rfind(", ", len(indent) + 1, WIDTH)
        if at < 0:
            break
        lines.append(line[: at + 1])
        line = indent + line[at + 2 :]
    return [*lines, line]


def library_call(
    symbol: str,
    node: Node,
    inputs: Sequence[int],
    params: Struct | None,
    constants: Sequence[Constant] = (),
    scratch_bytes: int = 0,
) -> Call:
    """The usual shape of a library kernel: `f(inputs…, outputs…, [scratch,] [params])`."""
    args: list[Arg] = [InputArg(i) for i in inputs]
    args += [OutputArg(i) for i in range(len(node.outputs))]
    if scratch_bytes:
        args.append(ScratchArg())
    if params is not None:
        args.append(ParamsArg())
    return Call(symbol, tuple(args), params, tuple(constants), scratch_bytes)
