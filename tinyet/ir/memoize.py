# SPDX-License-Identifier: Apache-2.0
"""Memoization of facts about a node that several kernels ask for."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Hashable
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from tinyet.ir.graph import Node, Tensor
from tinyet.ir.kept import Kept

_MOST_BYTES = 2**20
"""Of constants of the layers of which `memoize_by_weights` keeps what one function gave, which may be several times as
large."""
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


def memoize_by_weights(function: Callable[Concatenate[Node, P], R]) -> Callable[Concatenate[Node, P], R]:
    """The same for a function of a layer's attributes, constants and quantization, that does not look at its image:
    layers of a program that is read again share what it gave, and layers by tiles. What was asked for last is kept."""
    found = Kept[tuple[R, int]](_MOST_BYTES, lambda made: made[1])

    @memoize
    @functools.wraps(function)
    def ask(node: Node, /, *args: P.args, **kwargs: P.kwargs) -> R:
        def made() -> tuple[R, int]:
            size = sum(t.data.nbytes for t in node.inputs if t is not None and t.data is not None)
            return function(node, *args, **kwargs), size

        return found.get((_weights_of(node), args, tuple(sorted(kwargs.items()))), made)[0]

    return ask


@memoize
def _weights_of(node: Node) -> Hashable:
    inputs = tuple(None if t is None else (t.dtype, t.type.quant, _digest(t)) for t in node.inputs)
    return node.attrs, inputs, tuple((t.dtype, t.type.quant) for t in node.outputs)


@memoize
def _digest(tensor: Tensor) -> Hashable:
    """Of a constant."""
    if tensor.data is None:
        return None
    return tensor.shape, hashlib.sha256(np.ascontiguousarray(tensor.data).tobytes()).digest()
