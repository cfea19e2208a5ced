# SPDX-License-Identifier: Apache-2.0
"""A size of a model's inputs that is known only when it runs: which values it may have, and where it stands."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from tinyet.ir.graph import Tensor
from tinyet.ir.limits import MAX_NAME

MOST_SIZES = 4096
"""Values that a size may have: each is planned, lowered and checked by itself."""
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True)
class Size:
    """One dimension of one or more inputs.

    name: as it is called where it was declared; a C identifier. values: what it may be, ascending; graphs are for the
    last of them, and become those of another by `resize`. axes: of each input, states left aside, the axis that has
    this many elements, or None.
    """

    name: str
    values: range
    axes: tuple[int | None, ...]

    @property
    def most(self) -> int:
        return self.values[-1]

    def __str__(self) -> str:
        step = f" in steps of {self.values.step}" if self.values.step > 1 else ""
        return f"{self.name}, {self.values[0]} to {self.most}{step}"

    def complaints(self, inputs: tuple[Tensor, ...]) -> list[str]:
        """All that is wrong with it for these inputs of a graph."""
        found = []
        if not _NAME.fullmatch(self.name) or len(self.name) > MAX_NAME:
            found.append(f"the size {self.name!r} has no name of letters, digits and _")
        if not 2 <= len(self.values) <= MOST_SIZES or self.values[0] < 1 or self.values.step < 1:
            found.append(
                f"the size {self.name} has {len(self.values)} values, there can be 2 to {MOST_SIZES}"
            )
        if len(self.axes) != len(inputs) or all(axis is None for axis in self.axes):
            found.append(f"the size {self.name} is of {len(self.axes)} inputs, there are {len(inputs)}")
            return found
        for tensor, axis in zip(inputs, self.axes, strict=True):
            if axis is not None and not 0 <= axis < len(tensor.shape):
                found.append(f"input {tensor.name} has no axis {axis}")
            elif axis is not None and len(self.values) and tensor.shape[axis] != self.most:
                found.append(f"axis {axis} of input {tensor.name} is {tensor.shape[axis]}, not {self.most}")
        return found

    def encoded(self) -> str:
        """The text that a file has of it."""
        values = [self.values.start, self.values.stop, self.values.step]
        return json.dumps({"name": self.name, "values": values, "axes": list(self.axes)}, sort_keys=True)


def size_decoded(text: str) -> Size:
    """The size of a file's text. Raises ValueError, with what is wrong, for what `encoded` does not write."""
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if not isinstance(found, dict) or set(found) != {"name", "values", "axes"}:
        raise ValueError("it must have name, values and axes")
    name, values, axes = found["name"], found["values"], found["axes"]
    if not isinstance(name, str):
        raise ValueError("its name is no text")
    if not isinstance(values, list) or len(values) != 3 or not all(_is_count(value) for value in values):
        raise ValueError("its values are no range")
    if not isinstance(axes, list) or not all(axis is None or _is_count(axis) for axis in axes):
        raise ValueError("its axes are none")
    if values[2] == 0:
        raise ValueError("its values are no range")
    return Size(name, range(*values), tuple(axes))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31
