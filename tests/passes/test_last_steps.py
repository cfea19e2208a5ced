# SPDX-License-Identifier: Apache-2.0
"""Of recurrent layers, only the steps that are read are computed."""

from __future__ import annotations

import numpy as np

from tests.passes.build import Builder, assert_same
from tinyet import ops
from tinyet.ir import DType, Graph, Node, Tensor, TensorType
from tinyet.ops.concat import Concat
from tinyet.ops.gru import Gru
from tinyet.ops.shared.recurrent import Recurrent
from tinyet.ops.slice import Slice
from tinyet.passes.dead_time_steps import last_steps
from tinyet.passes.merge_reshapes import merge_reshapes

STEPS = 6


def layer(b: Builder, x: Tensor, *, reverse: bool = False, units: int = 3) -> tuple[Tensor, Tensor]:
    """A GRU's sequence and last state, float32."""
    sizes = ((3 * units, x.shape[2]), (3 * units, units), (3 * units,), (3 * units,))
    weights = [b.const(b.rng.normal(size=size) * 0.3) for size in sizes]
    number = len(b.nodes)
    names = [f"y{number}", f"h{number}"]
    inputs = (x, b.const(np.zeros((x.shape[0], units))), *weights)
    draft = Node(Gru(reverse=reverse), inputs, tuple(Tensor(n, TensorType((), DType.FLOAT32)) for n in names))
    y, h = (Tensor(n, TensorType(s, DType.FLOAT32)) for n, s in zip(names, ops.infer(draft), strict=True))
    b.nodes.append(draft.replace(outputs=(y, h)))
    return y, h


def checked(b: Builder, *outputs: Tensor) -> tuple[Graph, list[tuple[Recurrent, int]]]:
    """The graph behind the pass, which computes what it computed; its layers, and how many steps each computes."""
    graph = b.graph(*outputs)
    after = last_steps(graph)
    assert_same(graph, after)
    assert [t.name for t in after.outputs] == [t.name for t in outputs]
    layers = [node for node in after.nodes if isinstance(node.attrs, Recurrent)]
    return after, [
        (node.attrs, node.input(0).shape[1]) for node in layers if isinstance(node.attrs, Recurrent)
    ]


def test_the_last_step_is_the_last_state() -> None:
    """Also behind permutes and reshapes, of batches, and at the start of a sequence that is taken backwards."""
    b = Builder()
    x = b.input(2, STEPS, 4)
    moved = b.permute(layer(b, x)[0], 1, 0, 2)
    shaped = b.reshape(layer(b, x)[0], 2, STEPS, 1, 3)
    results = [
        b.emit(Slice(0, STEPS - 1, STEPS), moved),
        b.emit(Slice(1, STEPS - 1, STEPS), shaped),
        b.emit(Slice(1, 0, 1), layer(b, x, reverse=True)[0]),
    ]
    after, layers = checked(b, *results)
    assert layers == [(Gru(sequence=False), STEPS)] * 2 + [(Gru(reverse=True, sequence=False), STEPS)]
    assert "slice" not in [node.op for node in after.nodes]


def test_both_directions_put_together_are_taken_apart() -> None:
    """Of the one that goes backwards, the last step is the first that it computes."""
    b = Builder()
    x = b.input(1, STEPS, 4)
    both = b.emit(Concat(2), layer(b, x)[0], layer(b, x, reverse=True)[0])
    after, layers = checked(b, b.reshape(b.emit(Slice(1, STEPS - 1, STEPS), both), 1, 6))
    assert layers == [(Gru(sequence=False), STEPS), (Gru(reverse=True, sequence=False), 1)]
    assert [node.op for node in merge_reshapes(after).nodes].count("slice") == 1


def test_steps_behind_all_that_are_read_are_not_computed() -> None:
    b = Builder()
    x = b.input(1, STEPS, 4)
    forward, backward = layer(b, x)[0], layer(b, x, reverse=True)[0]
    cut = [
        b.emit(Slice(1, 0, 2), forward),
        b.emit(Slice(1, 3, 4), forward),
        b.emit(Slice(1, 2, STEPS, 2), backward),
    ]
    _, layers = checked(b, *cut)
    assert layers == [(Gru(), 4), (Gru(reverse=True), 4)]


def test_what_others_read_stays() -> None:
    """The whole sequence is an output, goes into another layer, is sliced along another axis, or the last state of all
    steps is read beside some of them."""
    b = Builder()
    x = b.input(1, STEPS, 4)
    given, between, across = layer(b, x)[0], layer(b, x)[0], layer(b, x)[0]
    some, last = layer(b, x)
    stack = layer(b, between)[0]
    results = [
        given,
        b.emit(Slice(1, STEPS - 1, STEPS), stack),
        b.emit(Slice(2, 0, 1), across),
        b.emit(Slice(1, 0, 2), some),
        last,
    ]
    _, layers = checked(b, *results)
    assert layers == [(Gru(), STEPS)] * 4 + [(Gru(sequence=False), STEPS)]


def test_a_slice_of_what_no_layer_gives_stays_where_it_is() -> None:
    b = Builder()
    x = b.input(1, STEPS, 4)
    both = b.emit(Concat(2), layer(b, x)[0], x)
    after, _ = checked(b, b.emit(Slice(1, STEPS - 1, STEPS), both))
    assert [node.op for node in after.nodes] == ["gru", "concat", "slice"]
