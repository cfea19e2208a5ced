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
