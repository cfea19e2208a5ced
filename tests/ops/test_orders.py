# SPDX-License-Identifier: Apache-2.0
"""An operator that takes another order of its dimensions computes the same in it, bit for bit, by its reference."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import find, given, settings

from tests.ops import drawing
from tests.ops.cases import Case
from tests.ops.strategies import strategy_of
from tinyet import ops
from tinyet.ir import Array, Attrs
from tinyet.passes.layout_domains import Frame, Label, Port, frame_of

NAMES = [op.name for op in ops.OPS if op.name != "permute"]
"""Permutes are what the other orders are to make superfluous."""

TAKE_OTHERS = frozenset(NAMES) - {
    *("adaptive_avg_pool2d", "avg_pool2d", "conv2d", "conv_transpose2d", "dynamic_conv2d", "max_pool2d"),
    *("biquads", "gru", "lstm", "resize", "rnn", "svdf", "tree_ensemble"),
    *(op.name for op in ops.OPS if op.name.startswith("signal_")),
}
"""Of the rest, the kernels have images, sequences and rows of features in one order alone; at most sizes of 1 may
change places."""


def orders(frame: Frame) -> list[tuple[Label, Attrs]]:
    """All orders that a node takes, but for the one that it is in."""
    found = ((label, frame.relabel(label)) for label in itertools.permutations(range(frame.rank)))
    return [(label, attrs) for label, attrs in found if attrs is not None and label != frame.identity]


def moved(x: Array, port: Port | None, label: Label) -> Array:
    if port is None:
        return x
    return np.ascontiguousarray(x.transpose(port.layout(label))).reshape(port.stored_shape(label))


@pytest.mark.parametrize("name", NAMES)
def test_bit_for_bit(name: str) -> None:
    @settings(max_examples=15, deadline=None)
    @given(strategy_of(name))
    def check(case: Case) -> None:
        node = case.node
        frame = frame_of(node)
        # One tensor that is read twice would have to be given twice.
        if frame is None or len(set(node.inputs)) < len(node.inputs):
            return
        rest = iter(case.inputs)
        inputs = [None if t is None else t.array if t.is_constant else next(rest) for t in node.inputs]
        (want,) = ops.evaluate(node, inputs)
        for label, attrs in orders(frame):
            there = [
                t if t is None or port is None else port.stored(t, label)
                for t, port in zip(node.inputs, frame.inputs, strict=True)
            ]
            other = node.replace(
                attrs=attrs, inputs=there, outputs=(frame.output.stored(node.output, label),)
            )
            arrays = [
                None if x is None else moved(x, port, label)
                for x, port in zip(inputs, frame.inputs, strict=True)
            ]
            (got,) = ops.evaluate(other, arrays)
            assert got.tobytes() == moved(want, frame.output, label).tobytes(), label

    check()


@pytest.mark.parametrize("name", sorted(TAKE_OTHERS))
def test_takes_another_order(name: str) -> None:
    def takes(case: Case) -> bool:
        frame = frame_of(case.node)
        return frame is not None and bool(orders(frame))

    find(strategy_of(name), takes, settings=drawing.exists)
