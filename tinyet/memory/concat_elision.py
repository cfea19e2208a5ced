# SPDX-License-Identifier: Apache-2.0
"""Concatenations of channels that need no copy: their parts lie interleaved, pixel by pixel.

Tensors that share one strided block are a group: pixel p of each lies `pixel_stride` bytes behind its pixel p - 1,
and the tensors begin at different bytes of a pixel. Kernels that write or read a part must be able to skip the rest
of a pixel.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from tinyet.ir import Graph, Node, Tensor
from tinyet.ops.concat import Concat

MayStride = Callable[[Node, Tensor, int], bool]
"""Whether a node's kernel can read or write one of its tensors with a pixel every so many bytes, more than it has."""


def no_stride(_node: Node, _tensor: Tensor, _pixel_stride: int) -> bool:
    """Of kernels that all want their pixels one after another."""
    return False


@dataclass(frozen=True, eq=False)
class Group:
    """Tensors of `pixels` pixels each. at: the byte of a pixel, of `pixel_stride` bytes, at which each tensor's
    begins."""

    at: Mapping[Tensor, int]
    pixels: int
    pixel_stride: int

    def apart(self, tensor: Tensor) -> bool:
        """Whether something lies between the tensor's pixels."""
        return _width(tensor) != self.pixel_stride

    @property
    def bytes(self) -> int:
        return self.pixels * self.pixel_stride


@dataclass(frozen=True)
class ConcatElision:
    """elided: the concatenations that need no call. groups: of the tensors of each; no tensor is in two."""

    elided: frozenset[Node]
    groups: tuple[Group, ...]


def elide_concats(graph: Graph, may_stride: MayStride, copied: Collection[Node]) -> ConcatElision:
    """Elide all concatenations that can be, except those of `copied`, in the order of the graph.

    A concatenation whose strides some kernel does not support is left as it is, and so is one of whole runs of bytes,
    which needs no strides.
    """
    groups: dict[Tensor, Group] = {}
    elided: set[Node] = set()
    for node in graph.nodes:
        if node in copied or not _by_channels(node):
            continue
        joined = _joined(node, groups)
        if joined is not None and _possible(joined, graph, may_stride, {*elided, node}):
            elided.add(node)
            groups.update(dict.fromkeys(joined.at, joined))
    return ConcatElision(frozenset(elided), tuple(dict.fromkeys(groups.values())))


def _by_channels(node: Node) -> bool:
    """Does it join pixels of two tensors and more, which are all in the arena?"""
    if not isinstance(node.attrs, Concat) or len(node.inputs) < 2:
        return False
    shape = node.output.shape
    inside = all(t is not None and not t.is_constant for t in node.inputs)
    return inside and node.attrs.axis == len(shape) - 1 and math.prod(shape[:-1]) > 1


def _joined(node: Node, groups: Mapping[Tensor, Group]) -> Group | None:
    """The groups of a concatenation's tensors as one; None where a tensor would have to lie at two places."""
    at: dict[Tensor, int] = {}
    for tensor, begin in [(node.output, 0), *_starts(node)]:
        group = groups.get(tensor)
        others = {tensor: 0} if group is None else group.at
        shift = begin - others[tensor]
        for other, place in others.items():
            if at.setdefault(other, place + shift) != place + shift:
                return None
    start = min(at.values())
    end = max(place + _width(tensor) for tensor, place in at.items())
    at = {tensor: place - start for tensor, place in at.items()}
    return Group(at, math.prod(node.output.shape[:-1]), end - start)


def _starts(node: Node) -> list[tuple[Tensor, int]]:
    """Each input of a concatenation, and its first byte of a pixel."""
    found, at = [], 0
    for index in range(len(node.inputs)):
        tensor = node.input(index)
        found.append((tensor, at))
        at += _width(tensor)
    return found


def _possible(group: Group, graph: Graph, may_stride: MayStride, strided: Collection[Node]) -> bool:
    """Are all written bytes distinct, and can all users of a part of a pixel skip the rest?"""
    written = sorted((place, _width(t)) for t, place in group.at.items() if graph.producer(t) not in strided)
    if any(a + width > b for (a, width), (b, _) in itertools.pairwise(written)):
        return False
    ends = {*graph.inputs, *graph.outputs}
    for tensor in filter(group.apart, group.at):
        producer = graph.producer(tensor)
        users = [*graph.consumers(tensor), *([] if producer is None else [producer])]
        if tensor in ends or not all(
            user in strided or may_stride(user, tensor, group.pixel_stride) for user in users
        ):
            return False
    return True


def _width(tensor: Tensor) -> int:
    """Bytes of a pixel."""
    return tensor.shape[-1] * tensor.dtype.bytes
