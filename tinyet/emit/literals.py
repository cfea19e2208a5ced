# SPDX-License-Identifier: Apache-2.0
"""Numbers, arrays and structs as C text. The only place that knows how C spells a value."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np

from tinyet.ir import Array
from tinyet.opset import WIDTH, FieldValue, Pointer, Struct

CTYPES = {"int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t", "uint16": "uint16_t", "int32": "int32_t"}
CTYPES |= {"uint32": "uint32_t", "int64": "int64_t", "float32": "float"}


def integer(value: int) -> str:
    """A C integer constant of type int (or int32_t); the smallest one has no literal of its own."""
    return "(-2147483647 - 1)" if value == -(2**31) else str(value)


def real(value: float) -> str:
    """A float constant that reads back as the same float32."""
    if math.isnan(value):
        return "TINYET_NAN"
    if math.isinf(value):
        return "TINYET_INFINITY" if value > 0 else "-TINYET_INFINITY"
    single = np.float32(value)
    text = str(single)
    if np.float32(text) != single:
        text = repr(float(single))
    return f"{text}f" if any(c in text for c in ".e") else f"{text}.0f"


def array(data: Array) -> list[str]:
    """The elements, in row-major order, as lines that fit the page."""
    values = data.ravel().tolist()
    if data.dtype.kind == "f":
        return packed([f"{real(value)}," for value in values])
    if data.dtype == np.uint32:
        return packed([f"0x{value:08x}u," for value in values])
    return packed([f"{integer(value)}," for value in values])


def packed(texts: Sequence[str]) -> list[str]:
    """Texts one after another in lines that fit the page."""
    lines: list[str] = []
    ends, at, begin = [*accumulate(len(text) + 1 for text in texts)], 0, 0
    while at < len(texts):
        # A space stands between two, and none behind the last.
        after = max(bisect_right(ends, begin + WIDTH - 1, at), at + 1)
        lines.append(" ".join(texts[at:after]))
        at, begin = after, ends[after - 1]
    return lines


def field(value: FieldValue, name_of: Callable[[str], str], indent: int) -> str:
    """One field's initialiser; `name_of` gives the C name of a call's constant."""
    if isinstance(value, Struct):
        return struct(value, name_of, indent + 2)
    if isinstance(value, Pointer):
        return name_of(value.constant)
    if isinstance(value, tuple):
        return "{" + ", ".join(real(v) if isinstance(v, float) else integer(v) for v in value) + "}"
    if isinstance(value, float):
        return real(value)
    return integer(int(value))


def struct(value: Struct, name_of: Callable[[str], str], indent: int = 0) -> str:
    """A designated initialiser in the order of the declaration, a field a line when it is short on nesting."""
    pad = " " * (indent + 2)
    lines = [f"{pad}.{name} = {field(item, name_of, indent)}," for name, item in value.fields.items()]
    return "{\n" + "\n".join(lines) + "\n" + " " * indent + "}"
