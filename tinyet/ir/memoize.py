# SPDX-License-Identifier: Apache-2.0
"""Memoization of facts about a node that several kernels ask for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


def memoize(function: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[T, P], R]:
    """A function of a node, or of what else is equal to itself only, and of hashable arguments, that keeps what it gave
    as long as the node is there. Callers share the result, and leave it as it is."""
    found: WeakKeyDictionary[T, dict[Hashable, R]] = WeakKeyDictionary()

    @functools.wraps(function)
    def ask(node: T, /, *args: P.args, **kwargs: P.kwargs) -> R:
        of_node = found.get(node)
        if of_node is None:
            of_node = found[node] = {}
        key = (args, tuple(sorted(kwargs.items()))) if kwargs else args
        if key not in of_node:
            of_node[key] = function(node, *args, **kwargs)
        return of_node[key]

    return ask
