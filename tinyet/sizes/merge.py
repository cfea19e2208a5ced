# SPDX-License-Identifier: Apache-2.0
"""One call for all values of a size: the calls that a kernel makes of a node at each of them, as one in which the
numbers that differ are functions of the size.

Nothing is known here of what a number means. A kernel's calls are merged if they differ in numbers alone, and in
constants of which each is the beginning of the longest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tinyet.opset import (
    Arg,
    Call,
    Constant,
    Definition,
    FieldValue,
    LiteralArg,
    ParamsArg,
    SizeArg,
    Struct,
    wrapped,
)
from tinyet.opset.call import Varying, VaryingReal
from tinyet.sizes.extents import formula

SIZE = "size"
"""The parameter of generated functions."""
_NUMBER = re.compile(r"(?<![\w.])-?\d+u?(?![\w.])")
"""A decimal integer literal of C, with its sign, or unsigned."""
_COMMENT = re.compile(r"/\*.*?\*/")


class DifferentCalls(Exception):  # noqa: N818 - it is the reason for a refusal, no fault
    """Why calls at several sizes are not one call."""


def merged(calls: Sequence[Call], values: Sequence[int], *, open_code: bool) -> Call:
    """calls: of one kernel and one node at each of `values`, ascending, the last of which is the largest size.

    open_code: a function that is made for the call compiles where its numbers are no constants.

    The result is the last call, with `Varying` numbers in its parameters; a function that is made for it has the size
    as one more argument. Raises DifferentCalls.
    """
    last = calls[-1]
    for call in calls:
        _same_kind(call, last)
    _constants(calls)
    params = last.params
    if params is not None:
        found = _merge([call.params for call in calls])
        assert isinstance(found, Struct)
        params = found
        if _varies(params) and last.init is not None and ParamsArg() in last.init.args:
            raise DifferentCalls("what prepares it before the first run depends on the size")
    symbol, args = last.symbol, last.args
    if isinstance(symbol, Definition):
        made = _definition([call.symbol for call in calls], values, open_code=open_code)
        if made is not symbol:
            symbol, args = made, (*args, SizeArg())
    return replace(last, symbol=symbol, args=args, params=params)


def _same_kind(call: Call, last: Call) -> None:
    if call.args != last.args:
        literal = any(isinstance(arg, LiteralArg) for arg in last.args)
        raise DifferentCalls("a number is an argument of its own" if literal else "it has other arguments")
    if isinstance(call.symbol, str) and call.symbol != last.symbol:
        raise DifferentCalls(f"it is {call.symbol} at one size and {last.kernel} at another")
    if call.scratch_bytes > last.scratch_bytes:
        raise DifferentCalls("it needs more scratch memory at a smaller size")
    if call.state_bytes != last.state_bytes or call.init != last.init:
        raise DifferentCalls("its state depends on the size")
    if len(call.events) != len(last.events) or call.files != last.files:
        raise DifferentCalls("its parts depend on the size")


def _constants(calls: Sequence[Call]) -> None:
    """Each constant is the beginning of the last call's."""
    last = calls[-1]
    for call in calls[:-1]:
        if [c.name for c in call.constants] != [c.name for c in last.constants]:
            raise DifferentCalls("it has other constants at another size")
        for own, whole in zip(call.constants, last.constants, strict=True):
            if not is_beginning(own, whole):
                raise DifferentCalls(f"its {own.name} are others at another size")


def is_beginning(own: Constant, whole: Constant) -> bool:
    """Whether the bytes of one constant begin those of another."""
    if own.data is whole.data:
        return True
    if own.data.dtype != whole.data.dtype:
        return False
    return np.ascontiguousarray(whole.data).tobytes().startswith(np.ascontiguousarray(own.data).tobytes())


def _merge(values: Sequence[FieldValue | Struct | None]) -> FieldValue | Struct:
    """A field at each size, as one."""
    last = values[-1]
    if isinstance(last, Struct):
        structs = [v for v in values if isinstance(v, Struct) and v.ctype == last.ctype]
        if len(structs) != len(values) or any(list(s.fields) != list(last.fields) for s in structs):
            raise DifferentCalls("its parameters have another form at another size")
        return Struct(last.ctype, {name: _merge([s.fields[name] for s in structs]) for name in last.fields})
    if isinstance(last, tuple):
        if any(not isinstance(v, tuple) or len(v) != len(last) for v in values):
            raise DifferentCalls("its parameters have another form at another size")
        columns = zip(*(v for v in values if isinstance(v, tuple)), strict=True)
        return tuple(_merge(list(column)) for column in columns)  # type: ignore[return-value]
    assert last is not None
    if all(v == last and type(v) is type(last) for v in values):
        return last
    if type(last) is int and all(type(v) is int for v in values):
        return Varying.of([v for v in values if isinstance(v, int)])
    if type(last) is float and all(type(v) is float for v in values):
        return VaryingReal.of([v for v in values if isinstance(v, float)])
    raise DifferentCalls("a parameter that is no number depends on the size")


def _varies(value: FieldValue) -> bool:
    if isinstance(value, Struct):
        return any(_varies(item) for item in value.fields.values())
    if isinstance(value, tuple):
        return any(isinstance(item, Varying | VaryingReal) for item in value)
    return isinstance(value, Varying | VaryingReal)


def _definition(symbols: Sequence[str | Definition], values: Sequence[int], *, open_code: bool) -> Definition:
    """A function whose bodies differ in integers, with these computed from its last parameter."""
    last = symbols[-1]
    assert isinstance(last, Definition)
    definitions = [s for s in symbols if isinstance(s, Definition)]
    if len(definitions) != len(symbols) or any(
        (d.returns, d.parameters, d.kernel) != (last.returns, last.parameters, last.kernel)
        for d in definitions
    ):
        raise DifferentCalls("it is another function at another size")
    bodies = ["\n".join(d.body) for d in definitions]
    if len(set(bodies)) == 1:
        return last
    if not open_code:
        raise DifferentCalls("its code is made for one size")
    # Lines are broken by their lengths, which numbers change.
    texts = [re.sub(r",\s+", ", ", body) for body in bodies]
    pieces = [_NUMBER.split(text) for text in texts]
    if any(other != pieces[-1] for other in pieces):
        raise DifferentCalls("its code is another at another size")
    found = [_NUMBER.findall(text) for text in texts]
    body = pieces[-1][0]
    for column, behind in zip(zip(*found, strict=True), pieces[-1][1:], strict=True):
        body += _opened(column, values, body) + behind
    lines = tuple(line for part in body.split("\n") for line in wrapped(part))
    return replace(last, parameters=(*last.parameters, f"int32_t {SIZE}"), body=lines)


def _opened(literals: Sequence[str], values: Sequence[int], body: str) -> str:
    """The C of a number whose literals at each size are these. body: what stands before it."""
    if len(set(literals)) == 1:
        return literals[0]
    if body.rstrip().endswith("["):
        raise DifferentCalls("an array in its code has the size")
    text = formula([int(literal.removesuffix("u")) for literal in literals], values, SIZE)
    if text is None:
        raise DifferentCalls("a number in its code is no simple function of the size")
    return f"(uint32_t){text}" if literals[0].endswith("u") else text


def varying(params: Struct) -> list[tuple[str, Varying | VaryingReal]]:
    """The fields that depend on the size, as C reaches them: ("shape.in_w", …), ("size[5]", …)."""
    found: list[tuple[str, Varying | VaryingReal]] = []
    for name, value in params.fields.items():
        if isinstance(value, Struct):
            found += [(f"{name}.{inner}", number) for inner, number in varying(value)]
        elif isinstance(value, tuple):
            found += [
                (f"{name}[{i}]", item)
                for i, item in enumerate(value)
                if isinstance(item, Varying | VaryingReal)
            ]
        elif isinstance(value, Varying | VaryingReal):
            found.append((name, value))
    return found


def takes_size(args: Sequence[Arg]) -> bool:
    """Whether a call hands the size on."""
    return any(isinstance(arg, SizeArg) for arg in args)
