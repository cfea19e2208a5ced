# SPDX-License-Identifier: Apache-2.0
"""Stages of tinyet's work: each stage announces itself, and a listener shows it. Without a listener, as when tinyet
is used from Python, nothing happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


def stage(name: str) -> None:
    """Say that a stage begins, which ends when the next one begins. name: as a person reads it: `planning memory`."""
    listener = _listener.get()
    if listener is not None:
        listener(name)


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Tell the listener the name of each stage that begins in the block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def part(name: str, number: int, count: int) -> Iterator[None]:
    """Stages that begin in the block are those of one part of several that are alike: `microbit (3 of 11): planning
    memory`. number: from 1 on. The part is told as it begins, too."""
    listener = _listener.get()
    if listener is None:
        yield
        return
    title = f"{name} ({number} of {count})"
    listener(title)
    with listening(lambda inner: listener(f"{title}: {inner}")):
        yield
