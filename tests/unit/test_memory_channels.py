# SPDX-License-Identifier: Apache-2.0
"""Inputs of a concatenation of channels are written where they stand in it, pixels apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from tests.unit.test_memory_storage import Builder, anyone, checked, execute, plan_of
from tinyet.errors import InternalError
from tinyet.ir import Tensor
from tinyet.memory import Storage
from tinyet.memory.concat_elision import elide_concats


def test_channels_side_by_side() -> None:
    """As in a dense block: each layer reads all before it, and writes its channels beside them."""
    b = Builder()
    x = b.mix(b.input(6, 6, 3), shape=(6, 6, 8))
    for _ in range(3):
        x = b.concat(x, b.mix(x, shape=(6, 6, 4)), axis=2)
    graph = b.graph(b.mix(x, shape=(10,)))
    plan = plan_of(graph, may_stride=anyone)
    assert {node.op for node in plan.calls} == {"mix"}
    # One block of 20 channels; the input beside it, or the output.
    assert (plan.arena_bytes, plan.optimal) == (36 * 20 + 36 * 3, True)
    pixel_strides = [plan.pixel_stride(node.output) for node in graph.nodes if node.op == "concat"]
    assert pixel_strides == [20, 20, 0]
    execute(graph, plan, {})
    copied = plan_of(graph)
    assert sum(node.op == "concat" for node in copied.calls) == 3
    assert copied.arena_bytes == 36 * (16 + 4 + 20)


def test_the_check_refuses_pixels_at_wrong_places() -> None:
    b = Builder()
    x = b.input(4, 2)
    y, z = b.mix(x, shape=(4, 2)), b.mix(x, shape=(4, 3))
    graph = b.graph(b.mix(b.concat(y, z, axis=1), shape=(4,)))
    plan = plan_of(graph, may_stride=anyone)
    checked(graph, plan)
    at = plan.storage[z]
    assert (plan.storage[y].pixel_stride, at.pixel_stride) == (5, 5)
    for wrong in (
        Storage(at.block, at.offset - 1, at.pixel_stride),  # over the other part
        Storage(at.block, at.offset + 1, at.pixel_stride),  # behind its place
        Storage(at.block, at.offset, at.pixel_stride + 1),  # too far apart
        Storage(at.block, at.offset),  # not apart at all
    ):
        with pytest.raises(InternalError):
            checked(graph, dataclasses.replace(plan, storage={**plan.storage, z: wrong}))


def test_what_cannot_stand_side_by_side() -> None:
    """Inputs and outputs of the model, a tensor twice, at two places, and what is only renamed."""

    def calls(make: Callable[[Builder], tuple[Tensor, ...]]) -> int:
        b = Builder()
        graph = b.graph(*make(b))
        plan = plan_of(graph, may_stride=anyone)
        execute(graph, plan, {})
        return sum(node.op == "concat" for node in plan.calls)

    def layer(b: Builder) -> Tensor:
        return b.mix(b.input(3, 1), shape=(3, 2))

    def twice(b: Builder) -> tuple[Tensor, ...]:
        x = layer(b)
        return (b.concat(x, x, axis=1),)

    def two_places(b: Builder) -> tuple[Tensor, ...]:
        x, y = layer(b), layer(b)
        return (b.concat(x, y, axis=1), b.concat(y, x, axis=1))

    def read_at_the_end(b: Builder) -> tuple[Tensor, ...]:
        x = layer(b)
        return (x, b.concat(x, layer(b), axis=1))

    def renamed(b: Builder) -> tuple[Tensor, ...]:
        x = b.reshape(layer(b), 2, 3)
        return (b.concat(x, b.mix(b.input(2, 1), shape=(2, 1)), axis=1),)

    assert calls(lambda b: (b.concat(b.input(3, 2), layer(b), axis=1),)) == 1
    assert calls(twice) == 1
    assert calls(two_places) == 2  # a copy wants whole runs of pixels, too
    assert calls(read_at_the_end) == 1
    assert calls(renamed) == 1
    assert calls(lambda b: (b.concat(layer(b), layer(b), axis=1),)) == 0


def test_two_that_want_one_place_are_not_interleaved_both() -> None:
    """Behind the same tensor, in two concatenations, even where every kernel leaves room between pixels."""
    b = Builder()
    x, y, z = (b.mix(b.input(3, 1), shape=(3, 2)) for _ in range(3))
    first, second = b.concat(x, y, axis=1), b.concat(x, z, axis=1)
    graph = b.graph(b.mix(first, second, shape=(3, 1)))
    elided = elide_concats(graph, lambda _node, _tensor, _pixel_stride: True, ())
    assert [node.output for node in elided.elided] == [first]
