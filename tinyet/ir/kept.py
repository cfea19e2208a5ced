# SPDX-License-Identifier: Apache-2.0
"""What has been made and may be asked for again: that asked for last stays."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """Values by keys. Where all weigh more than `most`, those go that were asked for longest ago, never the last one.
    weigh: one of them."""

    def __init__(self, most: int, weigh: Callable[[T], int]) -> None:
        self.most, self.weigh = most, weigh
        self._found: dict[Hashable, T] = {}
        self._weight = 0

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, made where it is not there."""
        if key in self._found:
            value = self._found[key] = self._found.pop(key)
            return value
        value = self._found[key] = make()
        self._weight += self.weigh(value)
        while self._weight > self.most and len(self._found) > 1:
            self._weight -= self.weigh(self._found.pop(next(iter(self._found))))
        return value
