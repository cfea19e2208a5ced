# SPDX-License-Identifier: Apache-2.0
"""What an attribute has to do with the dimensions of its operator's tensors: declared where the attribute is, so that
whoever reorders or shortens a tensor can change the attributes along.

    @dataclass(frozen=True)
    class Slice(Attrs):
        axis: int = field(metadata=AXIS)
        start: int = field(metadata=START)
        stop: int = field(metadata=STOP)

Axes are those of the first input. An attribute without a role is the same whatever happens to the tensors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Any

from tinyet.ir import Attrs, Shape


class Role(Enum):
    """AXIS: an axis. AXES: several of them. PER_AXIS: for each axis, what is added before and behind. START, STOP:
    bounds along the axis. SHAPE: the shape of the output. GROUPS: runs of channels, each for itself."""

    AXIS = "axis"
    AXES = "axes"
    PER_AXIS = "per_axis"
    START = "start"
    STOP = "stop"
    SHAPE = "shape"
    GROUPS = "groups"


def _metadata(role: Role) -> Mapping[str, Role]:
    return MappingProxyType({"role": role})


AXIS = _metadata(Role.AXIS)
AXES = _metadata(Role.AXES)
PER_AXIS = _metadata(Role.PER_AXIS)
START = _metadata(Role.START)
STOP = _metadata(Role.STOP)
SHAPE = _metadata(Role.SHAPE)
GROUPS = _metadata(Role.GROUPS)


def roles(attrs: Attrs) -> Iterator[tuple[str, Role]]:
    """The names and roles of the attributes that have one."""
    for field in dataclasses.fields(attrs):
        if "role" in field.metadata:
            yield field.name, field.metadata["role"]


def reordered(attrs: Attrs, order: Sequence[int], shape: Shape) -> Attrs:
    """The attributes for a first input whose axes lie in this order, and an output of this shape."""
    change: Mapping[Role, Callable[[Any], Any]] = {
        Role.AXIS: order.index,
        Role.AXES: lambda axes: tuple(sorted(order.index(axis) for axis in axes)),
        Role.PER_AXIS: lambda entries: tuple(entries[axis] for axis in order),
        Role.SHAPE: lambda _: shape,
    }
    found = ((name, role) for name, role in roles(attrs) if role in change)
    changes = {name: change[role](getattr(attrs, name)) for name, role in found}
    return dataclasses.replace(attrs, **changes) if changes else attrs
