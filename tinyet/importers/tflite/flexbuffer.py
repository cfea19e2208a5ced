# SPDX-License-Identifier: Apache-2.0
"""The options of custom operators: numbers by name, in a flexbuffer."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from flatbuffers import flexbuffers

from tinyet.custom import Scalar
from tinyet.errors import RefusedError

DAMAGED = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError, struct.error)
"""Exceptions of the flexbuffer reader for damaged ones; LookupError for a missing name."""

_INT32 = -(2**31), 2**31 - 1


def integers_of(data: bytes, names: Sequence[str]) -> dict[str, int]:
    """The whole numbers, and truth values as 0 and 1, of these names. Raises RefusedError that lists those that are
    missing, or are no int32.

    Only the requested names are read: maps within maps could stand for far more than the bytes that they take.
    """
    try:
        root = flexbuffers.GetRoot(data)
        found: Any = root.AsMap if root.IsMap else None
    except DAMAGED as error:
        raise RefusedError("has damaged options", shape=False) from error
    if found is None:
        raise RefusedError("has no options by name", shape=False)
    numbers: dict[str, int] = {}
    for name in names:
        try:
            value = found[name]
            number = value.AsInt if value.IsInt or value.IsBool else None
        except DAMAGED:
            number = None
        if number is not None and _INT32[0] <= number <= _INT32[1]:
            numbers[name] = int(number)
    missing = [name for name in names if name not in numbers]
    if missing:
        raise RefusedError(f"has no option {', '.join(missing)} that is an int32", shape=False)
    return numbers


MOST_OPTIONS = 256
"""Of an operator that users register; and the most numbers of a list."""


def scalars_of(data: bytes) -> tuple[tuple[str, Scalar | tuple[Scalar, ...]], ...]:
    """All options by name: numbers, truth values, text, and lists of these. Raises RefusedError for damaged ones, and
    for others."""
    try:
        root = flexbuffers.GetRoot(data)
        if not root.IsMap or len(root.AsMap) > MOST_OPTIONS:
            raise RefusedError(f"has no options by name, or more than {MOST_OPTIONS}", shape=False)
        names = [str(key.AsKey) for key in root.AsMap.Keys]
        return tuple((name, _option(name, root.AsMap[name])) for name in names)
    except DAMAGED as error:
        raise RefusedError("has damaged options", shape=False) from error


def _option(name: str, value: Any) -> Scalar | tuple[Scalar, ...]:
    # A map counts as a vector, too.
    if not value.IsMap and (value.IsVector or value.IsTypedVector):
        items = value.AsVector if value.IsVector else value.AsTypedVector
        if len(items) <= MOST_OPTIONS:
            return tuple(_scalar(name, item) for item in items)
    return _scalar(name, value)


def _scalar(name: str, value: Any) -> Scalar:
    if value.IsBool:
        return bool(value.AsBool)
    if value.IsInt:
        return int(value.AsInt)
    if value.IsFloat:
        return float(value.AsFloat)
    if value.IsString:
        return str(value.AsString)
    raise RefusedError(f"has an option {name} that is no number, text, or list of them", shape=False)
