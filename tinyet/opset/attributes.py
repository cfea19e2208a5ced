# SPDX-License-Identifier: Apache-2.0
"""The types of an operator's attributes: numbers, truth values, words of an enumeration (Literal), graphs, and tuples
of these.

There is no free text among them: `schema` refuses an operator that declares some. So whatever is made of an attribute
on the way to C is a number or one of a few words that stand in this package's own source, and never what somebody
wrote into a file. Two kinds of text remain, neither of which is written into C: a `DelegateName`, by which a delegate
is looked up, and the parameters of custom operators, which only the functions of their author see.
"""

from __future__ import annotations

import math
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, Literal, NewType, Union

from tinyet.errors import InternalError, UsageError
from tinyet.ir import Attrs, Graph
from tinyet.ir.limits import MAX_TEXT
from tinyet.messages.text import shown

DelegateName = NewType("DelegateName", str)
"""The name of a delegate: letters, digits, and _ . + - between them."""

MAX_INT = 2**31 - 1
MAX_FLOAT = (2 - 2.0**-23) * 2.0**127
MAX_ITEMS = 4096
"""Of a tuple."""


def delegate_name(text: str) -> DelegateName:
    """Raises UsageError for a text that cannot be one."""
    if not _is_a(text, DelegateName):
        raise UsageError(
            f"{text!r} cannot be the name of a delegate", hint="letters, digits, and _ . + - between"
        )
    return DelegateName(text)


_SCHEMAS: dict[type[Attrs], Mapping[str, Any]] = {}


def schema(kind: type[Attrs]) -> Mapping[str, Any]:
    """The declared type of each attribute; raises InternalError for one that attributes cannot have."""
    known = _SCHEMAS.get(kind)
    if known is not None:
        return known
    hints = typing.get_type_hints(kind)
    found = {field.name: hints[field.name] for field in fields(kind)}
    for name, hint in found.items():
        if not _allowed(hint, text=kind.opaque):
            raise InternalError(f"attribute {kind.name}.{name} is declared {hint}: no attribute is text")
    _SCHEMAS[kind] = found
    return found


def _allowed(hint: Any, *, text: bool) -> bool:
    parts = typing.get_args(hint)
    if typing.get_origin(hint) is Literal:
        return all(isinstance(part, str) and re.fullmatch("[a-z0-9_]+", part) for part in parts)
    if parts:
        return all(part is Ellipsis or _allowed(part, text=text) for part in parts)
    return hint in (bool, int, float, types.NoneType, Graph, DelegateName) or (text and hint is str)


def read(kind: type[Attrs], values: object, graphs: Mapping[int, Graph]) -> Attrs:
    """Attributes from what a file's JSON holds; a graph is an index of `graphs`. Raises ValueError that lists all that
    is wrong."""
    if not isinstance(values, dict):
        raise ValueError(f"the attributes are a {type(values).__name__}")
    declared = schema(kind)
    problems = [f"there is no attribute {name[:64]!r}" for name in values if name not in declared]
    found: dict[str, Any] = {}
    for field in fields(kind):
        if field.name not in values:
            if field.default is MISSING and field.default_factory is MISSING:
                problems.append(f"{field.name} is missing")
            continue
        value, hint = _tuples(values[field.name]), declared[field.name]
        if hint is Graph and type(value) is int:
            value = graphs.get(value)
        found[field.name] = value
    problems += [text for name, value in found.items() if (text := _complaint(name, value, declared[name]))]
    if problems:
        raise ValueError("; ".join(problems))
    return kind(**found)


def attribute_complaints(attrs: Attrs) -> list[str]:
    """The errors in the values of attributes, each by its declared type."""
    values = ((name, getattr(attrs, name), hint) for name, hint in schema(type(attrs)).items())
    return [text for name, value, hint in values if (text := _complaint(name, value, hint))]


def _tuples(value: Any) -> Any:
    """JSON's lists back as tuples."""
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value


def _complaint(name: str, value: object, hint: Any) -> str | None:
    if _is_a(value, hint):
        return None
    return f"{name} is {shown(value, 80)}"


def _is_a(value: object, hint: Any) -> bool:
    """Whether a value has a declared type, and is within the bounds that all of that type have."""
    # bool is an int to Python, and a bool is never meant where a number is wanted.
    kind = type(value)
    if hint is int:
        return kind is int and abs(typing.cast(int, value)) <= MAX_INT
    if hint is float:
        # Not NaN; an infinity, or what is finite as a float32, too.
        number = float(typing.cast(float, value)) if kind is float or _is_a(value, int) else math.nan
        return math.isinf(number) or abs(number) <= MAX_FLOAT
    if hint is DelegateName:
        return isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_.+-]{1,64}", value) is not None
    origin = typing.get_origin(hint)
    if origin is tuple:
        if not isinstance(value, tuple) or len(value) > MAX_ITEMS:
            return False
        parts = typing.get_args(hint)
        wanted = [parts[0]] * len(value) if parts[1:] == (...,) else parts
        return len(value) == len(wanted) and all(_is_a(v, w) for v, w in zip(value, wanted, strict=True))
    if origin is Literal:
        return isinstance(value, str) and value in typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_is_a(value, part) for part in typing.get_args(hint))
    if hint is str:
        return isinstance(value, str) and len(value) <= MAX_TEXT
    return kind is hint
