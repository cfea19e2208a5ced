# SPDX-License-Identifier: Apache-2.0
"""A snapshot of a module: taken before it runs, compared afterwards, and restored.

Everything that can be reached from the module through attributes, lists, dicts, sets and objects of the user's own
classes: tensors and numpy arrays by their values, all else by identity.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from tinyet.fx.source_locations import is_users_module

_MOST = 100_000
"""Containers and tensors that are looked at."""

_LATE = 1_000_000
"""A large counter value that shows whether anything depends on it. Most periods divide it."""

_DICTS_OF_A_MODULE = ("_parameters", "_buffers", "_modules")


@dataclass(frozen=True, eq=False)
class Change:
    """One thing that is not as it was. path: as a user would write it behind `self.`; put: makes it so again, on what
    was restored; is_there: whether it is otherwise than memoize now; written: into a tensor or an array; put_late:
    of a whole number, puts what it may be after many calls; buffer: into a buffer of a module, or one in its place."""

    path: str
    put: Callable[[], None]
    is_there: Callable[[], bool]
    written: bool = False
    buffer: bool = False
    put_late: Callable[[], None] | None = None


class _Missing:
    """Stands for a key that a dict does not have."""


@dataclass(eq=False)
class _Dict:
    """A dict, or the attributes of an object. names: of its keys behind `path`."""

    path: str
    held: dict[Any, Any]
    is_attributes: bool
    has_buffers: bool = False
    saved: dict[Any, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.saved = dict(self.held)

    def restore(self) -> None:
        if any(True for _ in self.changes()) or list(self.held) != list(self.saved):
            self.held.clear()
            self.held.update(self.saved)

    def changes(self) -> Iterator[Change]:
        for key in dict.fromkeys((*self.saved, *self.held)):
            if self._differs(key):
                value = self.held.get(key, _Missing)
                yield Change(
                    _name(self.path, key, self.is_attributes),
                    _setter(self.held, key, value),
                    partial(self._differs, key),
                    buffer=self.has_buffers and _alike(self.saved.get(key), value),
                    put_late=_setter(self.held, key, _LATE) if type(value) is int else None,
                )

    def _differs(self, key: Hashable) -> bool:
        return not _same(self.saved.get(key, _Missing), self.held.get(key, _Missing))


def _alike(one: object, other: object) -> bool:
    """Whether both are tensors of one shape and type."""
    tensors = isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
    return tensors and one.shape == other.shape and one.dtype is other.dtype  # type: ignore[attr-defined]


def _setter(held: dict[Any, Any], key: Hashable, value: object) -> Callable[[], None]:
    def put() -> None:
        if value is _Missing:
            held.pop(key, None)
        else:
            held[key] = value

    return put


@dataclass(eq=False)
class _Sequence:
    """A list, deque or set."""

    path: str
    held: Any
    saved: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.saved = list(self.held)

    def restore(self) -> None:
        if self._differs():
            self._put(self.saved)

    def changes(self) -> Iterator[Change]:
        if self._differs():
            now = list(self.held)
            yield Change(self.path, lambda: self._put(now), self._differs)

    def _differs(self) -> bool:
        now = list(self.held)
        return len(now) != len(self.saved) or not all(map(_same, now, self.saved))

    def _put(self, items: list[Any]) -> None:
        self.held.clear()
        (self.held.update if isinstance(self.held, set) else self.held.extend)(items)


@dataclass(eq=False)
class _Values:
    """A tensor or a numpy array. buffers: the identities of all tensors that are a module's buffers."""

    path: str
    held: Any
    buffers: set[int]
    saved: Any = field(init=False)

    def __post_init__(self) -> None:
        self.saved = self._now()

    def _now(self) -> Any:
        return self.held.detach().clone() if isinstance(self.held, torch.Tensor) else self.held.copy()

    def restore(self) -> None:
        if self._differs():
            self._put(self.saved)

    def changes(self) -> Iterator[Change]:
        if self._differs():
            now = self._now()
            yield Change(
                self.path, lambda: self._put(now), self._differs, True, id(self.held) in self.buffers
            )

    def _differs(self) -> bool:
        return self.held.shape != self.saved.shape or not equal(self.held, self.saved)

    def _put(self, value: Any) -> None:
        if isinstance(self.held, torch.Tensor):
            if self.held.shape == value.shape:
                self.held.data.copy_(value)
            else:
                self.held.data = value.clone()
        else:
            self.held[...] = value


def equal(a: Any, b: Any) -> bool:
    """Whether two tensors, or two arrays, have the same values, NaN among them."""
    if isinstance(a, torch.Tensor):
        a, b = a.detach(), b.detach()
    return bool(((a == b) | ((a != a) & (b != b))).all())


def _same(a: object, b: object) -> bool:
    """Whether a slot holds what it held: the same object, or an equal number or text."""
    return a is b or (type(a) is type(b) and isinstance(a, (int, float, str, bytes)) and (a == b or a != a))


def _name(path: str, key: object, is_attribute: bool) -> str:
    if is_attribute:
        return path if key in _DICTS_OF_A_MODULE else (f"{path}.{key}" if path else str(key))
    return f"{path}[{key!r}]" if isinstance(key, (str, int)) else f"{path}[…]"


_Entry = _Dict | _Sequence | _Values


class Held:
    """A snapshot of a module."""

    def __init__(self, module: nn.Module) -> None:
        self._entries: list[_Entry] = []
        self._seen: dict[int, object] = {}
        # Both the dicts of buffers and these themselves.
        self._buffers = {id(b) for m in module.modules() for b in (m._buffers, *m._buffers.values())}
        self._look(module, "")

    def changes(self) -> list[Change]:
        """The differences from the snapshot."""
        return [change for entry in self._entries for change in entry.changes()]

    def restore(self) -> None:
        """Put everything back."""
        for entry in self._entries:
            entry.restore()

    def restore_buffers(self) -> None:
        """Put back what buffers hold, and which tensors are in their places, and nothing else."""
        for entry in self._entries:
            if any(change.buffer for change in entry.changes()):
                entry.restore()

    def _look(self, start: object, start_path: str) -> None:
        stack: list[tuple[object, str, bool]] = [(start, start_path, False)]
        while stack and len(self._entries) < _MOST:
            value, path, is_attributes = stack.pop()
            if id(value) in self._seen:
                continue
            self._seen[id(value)] = value  # kept alive, so that no other object gets its id
            if isinstance(value, dict):
                self._entries.append(_Dict(path, value, is_attributes, id(value) in self._buffers))
                stack += [
                    (
                        item,
                        _name(path, key, is_attributes),
                        is_attributes and key in _DICTS_OF_A_MODULE and isinstance(item, dict),
                    )
                    for key, item in value.items()
                ][::-1]
            elif isinstance(value, (list, deque, set, tuple)):
                if not isinstance(value, tuple):
                    self._entries.append(_Sequence(path, value))
                stack += [(item, f"{path}[{i}]", False) for i, item in enumerate(value)][::-1]
            elif _has_values(value):
                self._entries.append(_Values(path, value, self._buffers))
            elif isinstance(value, nn.Module) or _is_users_object(value):
                stack.append((vars(value), path, True))


def _has_values(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufc"
    return (
        isinstance(value, torch.Tensor)
        and value.layout is torch.strided
        and value.device.type != "meta"
        and not is_lazy(value)
    )


def _is_users_object(value: object) -> bool:
    return (
        not isinstance(value, (type, torch.Tensor, np.ndarray, weakref.ref))
        and hasattr(value, "__dict__")
        and is_users_module(type(value).__module__)
    )


@contextmanager
def left_as_found(module: nn.Module) -> Iterator[None]:
    """Restore the module's content at the end, also when an error is raised."""
    held = Held(module)
    try:
        yield
    finally:
        held.restore()
