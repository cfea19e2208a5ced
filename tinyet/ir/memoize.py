# SPDX-License-Identifier: Apache-2.0
"""Memoization of facts about a node that several kernels ask for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from tinyet.ir.graph import Node

P = ParamSpec("P")
R = TypeVar("R")


def memoize(function: Callable[Concatenate[Node, P], R]) -> Callable[Concatenate[Node, P], R]:
    """A function of a node, and of hashable arguments, that keeps what it gave as long as the node is there. Callers
    share the result, and leave it as it is."""
    found: WeakKeyDictionary[Node, dict[Hashable, R]] = WeakKeyDictionary()

    @functools.wraps(function)
    def ask(node: Node, /, *args: P.args, **kwargs: P.kwargs) -> R:
        of_node = found.setdefault(node, {})
        key = args, tuple(sorted(kwargs.items()))
        if key not in of_node:
            of_node[key] = function(node, *args, **kwargs)
        return of_node[key]

    return ask
