# SPDX-License-Identifier: Apache-2.0
"""Checks of public functions' arguments: one for each kind, with the same words everywhere.

Each gives the value in the form that is worked with, or raises UsageError with what was given instead and what to give.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tinyet.errors import UsageError

T = TypeVar("T")

_LONGEST = 60
_PLACES = ("host", "qemu", "renode", "simavr")


def described(value: object) -> str:
    """A value in a few words: `the string 'x.pt'`, `a list of 3`, `the class Linear`, `a Tensor`."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, (str, os.PathLike)):
        text = str(value)
        return f"the string {text!r}" if len(text) <= _LONGEST else f"a string of {len(text)} characters"
    if isinstance(value, (bool, int, float)):
        return f"the number {value!r}"
    if isinstance(value, (list, tuple, dict, set)):
        return f"a {type(value).__name__} of {len(value)}"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"the function {value.__qualname__}"
    return f"a {type(value).__name__}"


def path_given(value: object, argument: str) -> Path:
    """A path. `argument` says what of, as in "load takes the path of a .tet file"."""
    if isinstance(value, (str, os.PathLike)) and isinstance(os.fspath(value), str):
        return Path(value)
    raise UsageError(f"{argument}, not {described(value)}", hint="a str, or a pathlib.Path")


def text_given(value: object, argument: str, hint: str) -> str:
    if isinstance(value, str):
        return value
    raise UsageError(f"{argument} is text, not {described(value)}", hint=hint)


def whole_given(value: object, argument: str, hint: str, least: int = 1) -> int:
    """A whole number of at least `least`; numpy's count, too."""
    try:
        number = None if isinstance(value, bool) else value.__index__()  # type: ignore[attr-defined]
    except AttributeError:
        number = None
    if isinstance(number, int) and number >= least:
        return number
    raise UsageError(f"{argument} is a whole number from {least} on, not {described(value)}", hint=hint)


def seconds_given(value: object, argument: str) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 and math.isfinite(value):
        return float(value)
    raise UsageError(
        f"{argument} is a number of seconds above 0, not {described(value)}", hint="for example 60.0"
    )


def function_given(value: object, argument: str, hint: str) -> Callable[..., object] | None:
    """A function, or None where there need not be one."""
    if value is None or (callable(value) and not isinstance(value, type)):
        return value
    raise UsageError(f"{argument} is a function, not {described(value)}", hint=hint)


def instance_given(value: object, kind: type[T], what: str, hint: str) -> T:
    """A value of a class of tinyet's. what: "generate takes a Program"."""
    if isinstance(value, kind):
        return value
    raise UsageError(f"{what}, not {described(value)}", hint=hint)


def place_given(value: object) -> str:
    """The place to run: `host`, `qemu`, `renode`, `simavr` or `serial:PORT`."""
    if isinstance(value, str) and (value in _PLACES or (value.startswith("serial:") and value != "serial:")):
        return value
    what = repr(value) if isinstance(value, str) else described(value)
    raise UsageError(f"{what} is none of {', '.join(_PLACES)}, serial:PORT", hint='for example on="host"')


RUNTIMES = ("tflm", "litert")
"""Whose kernels give a model its integers: TensorFlow Lite Micro's, or LiteRT's reference kernels."""


def runtime_given(value: object) -> None:
    if value not in RUNTIMES:
        raise UsageError(f"runtime={value!r} is not known", hint='runtime="tflm" or runtime="litert"')


EDGES = ("exact", "continue")
"""The treatment of padding in time: see over_time.stream."""


@dataclass(frozen=True)
class OverTime:
    """The time axis of a network over a window. axis: of all inputs, or one for each, None where an input has none;
    negative ones count from the end. hop, edges: see over_time.stream."""

    axis: int | tuple[int | None, ...] | None
    hop: int | None = None
    edges: str = "exact"


def over_time_given(axis: object, hop: object, edges: object) -> OverTime:
    hint = "the number of the axis that is time: axis=2"
    given = tuple(axis) if isinstance(axis, (list, tuple)) else (axis,)
    axes = tuple(None if a is None else whole_given(a, "an axis", hint, -(1 << 6)) for a in given)
    if all(a is None for a in axes):
        raise UsageError("no axis is time", hint=hint)
    frames = None if hop is None else whole_given(hop, "hop", "how many frames a run takes: hop=1")
    if edges not in EDGES:
        raise UsageError(f"edges is one of {', '.join(EDGES)}, not {edges!r}", hint='edges="exact"')
    return OverTime(axes if isinstance(axis, (list, tuple)) else axes[0], frames, str(edges))
