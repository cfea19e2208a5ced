# SPDX-License-Identifier: Apache-2.0
"""What follows from iterations: an output computed block by block, by rows and by steps, is the whole output, bit for
bit. A node of some rows has the attributes of `part`, and what is outside of its inputs among their rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from tests.ops.cases import Case
from tests.ops.strategies import strategy_of
from tinyet import ops
from tinyet.ir import Array, DType, Node, QuantParams, Tensor, TensorType
from tinyet.ops.add import Add
from tinyet.ops.batch_norm import BatchNorm
from tinyet.ops.concat import Concat
from tinyet.ops.copy import Copy
from tinyet.ops.cumsum import CumSum
from tinyet.ops.flip import Flip
from tinyet.ops.matmul import MatMul
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.mean import Mean
from tinyet.ops.permute import Permute
from tinyet.ops.softmax import Softmax
from tinyet.opset import Blocks, Op, Outside, TileMap, blocks

NEVER = {
    *("dynamic_conv2d", "dynamic_linear"),  # the range of all of the input
    *("biquads", "lstm", "gru", "rnn", "svdf"),  # states
    *("signal_delay", "signal_fft_auto_scale", "signal_filter_bank_spectral_subtraction", "signal_framer"),
    *("signal_overlap_add", "signal_stacker"),  # several results
    "signal_filter_bank",  # places with a meaning of their own
}
"""Operators that are computed as a whole only."""


def stretched(data: Array, axis: int, first: int, last: int, outside: Outside) -> Array | None:
    """Indices `first` to `last` of an axis; None where some are outside, and nothing is there."""
    before, after = max(-first, 0), max(last - data.shape[axis] + 1, 0)
    pads = [(before, after) if a == axis else (0, 0) for a in range(data.ndim)]
    if before or after:
        if outside is None:
            return None
        more: dict[str, Any] = {"mode": outside} if isinstance(outside, str) else {"constant_values": outside}
        data = np.pad(data, pads, **more)
    return data.take(range(first + before, last + before + 1), axis)


def sized(tensor: Tensor, axis: int, size: int) -> Tensor:
    shape = (*tensor.shape[:axis], size, *tensor.shape[axis + 1 :])
    return Tensor(tensor.name, replace(tensor.type, shape=shape))


def given_to(case: Case) -> list[Array | None]:
    """An array for each input."""
    held = dict(
        zip(dict.fromkeys(t for t in case.node.inputs if t and not t.is_constant), case.inputs, strict=True)
    )
    return [None if t is None else t.array if t.is_constant else held[t] for t in case.node.inputs]


def block_by_block(op: Op, case: Case, axis: int, found: Blocks) -> Array | None:
    """The output, computed as nodes of so many indices; None where something is read that is not there."""
    node, inputs = case.node, given_to(case)
    attrs = op.part(node, axis, found.size)
    if isinstance(attrs, str):
        return None
    small = node.replace(
        attrs=Copy() if attrs is None else attrs,
        inputs=[
            sized(t, found.read[i], found.extent) if t is not None and i in found.read else t
            for i, t in enumerate(node.inputs)
        ],
        outputs=[sized(node.output, axis, found.size)],
    )
    assert ops.infer(small) == (small.output.shape,)
    made = []
    for number in range(node.output.shape[axis] // found.size):
        first = number * found.stride + found.first
        parts = list(inputs)
        for index, place in found.read.items():
            data = parts[index]
            assert data is not None
            parts[index] = stretched(data, place, first, first + found.extent - 1, found.outside[index])
            if parts[index] is None:
                return None
        made.append(ops.evaluate(small, parts)[0])
    return np.concatenate(made, axis)


def joined(found: Blocks, times: int) -> Blocks:
    """Blocks of so many times the size."""
    return replace(
        found,
        size=found.size * times,
        stride=found.stride * times,
        extent=found.extent + (times - 1) * found.stride,
    )


def compared(op: Op, case: Case, least: int) -> int:
    """How many axes of the output could be taken apart into so many blocks; all are compared."""
    node, tried = case.node, 0
    space = op.iteration(node)
    if isinstance(space, str) or len(node.outputs) != 1 or op.carried:
        return 0
    whole: Array | None = None
    for axis, size in enumerate(node.output.shape):
        found = blocks(node, space, axis, least)
        if size < least or isinstance(found, str) or not found.read:
            continue
        if any(node.input(index).is_constant for index in found.read):
            continue
        for times in (1, 2, 3):
            if size // found.size % times:
                continue
            several = joined(found, times)
            with np.errstate(all="ignore"):
                whole = ops.evaluate(node, given_to(case))[0] if whole is None else whole
                made = block_by_block(op, case, axis, several)
            if made is not None:
                # Where float padding is left out of a sum, a zero's sign may differ.
                np.testing.assert_array_equal(made, whole, f"axis {axis} of {node.attrs}, {several}")
                tried += 1
    return tried


@pytest.mark.parametrize("op", ops.OPS, ids=lambda op: op.name)
def test_blocks_of_an_output_are_the_output(op: Op) -> None:
    tried = 0

    @given(strategy_of(op.name))
    @settings(max_examples=80, deadline=None)
    def check(case: Case) -> None:
        nonlocal tried
        tried += compared(op, case, 2)

    check()
    assert (tried == 0) == (op.name in NEVER)


def test_why_there_are_no_rows() -> None:
    def tensor(name: str, *shape: int) -> Tensor:
        return Tensor(name, TensorType(shape, DType.FLOAT32))

    def constant_of(name: str, *shape: int) -> Tensor:
        return Tensor(name, TensorType(shape, DType.FLOAT32), np.ones(shape, np.float32))

    x = tensor("x", 1, 6, 4, 2)
    scale = constant_of("scale", 6)
    for attrs, inputs, out, why in (
        (BatchNorm(1), (x, scale, scale), (1, 6, 4, 2), "another value of scale for each row"),
        (Flip((1,)), (x,), (1, 6, 4, 2), "from the last one to the first"),
        (CumSum(1), (x,), (1, 6, 4, 2), "goes on from what it has made before"),
        (Softmax(1), (x,), (1, 6, 4, 2), "makes all rows of the same"),
        (Permute((0, 3, 2, 1)), (x,), (1, 2, 4, 6), "of another axis of x"),
        (Add(), (x, constant_of("places", 6, 1, 1)), (1, 6, 4, 2), "another value of places"),
        (Concat(1), (x, x), (1, 12, 4, 2), "other places"),
        (Mean((1,), keepdims=True), (x,), (1, 1, 4, 2), "of another axis of x"),
        (Mean((1, 2), keepdims=True), (x,), (1, 1, 1, 2), "no image of several rows"),
    ):
        found = ops.tile_map(Node(attrs, inputs, (tensor("y", *out),)))
        assert isinstance(found, str), attrs
        assert why in found, found


def test_several_rows_a_tile() -> None:
    """As many of the smallest tiles as are asked for, or there are; of sums over an image so many that no row counts
    twice; and of rows of single pixels none more."""

    def tensor(*shape: int) -> Tensor:
        return Tensor("x", TensorType(shape, DType.INT8, QuantParams.per_tensor(0.1, 0)))

    pool, sums = MaxPool2d(kernel_h=3, kernel_w=3, stride_h=2, stride_w=2), Mean((1, 2), keepdims=True)
    for attrs, x, y, times, window, stride, out in (
        (pool, tensor(1, 15, 9, 4), tensor(1, 7, 4, 4), 2, 5, 4, 2),
        (pool, tensor(1, 5, 9, 4), tensor(1, 2, 4, 4), 3, 5, 4, 2),
        (sums, tensor(1, 6, 9, 4), tensor(1, 1, 1, 4), 2, 2, 2, 0),
        (sums, tensor(1, 9, 9, 4), tensor(1, 1, 1, 4), 2, 1, 1, 0),
        (Add(), tensor(1, 1, 9, 4), tensor(1, 1, 9, 4), 2, 1, 1, 1),
    ):
        inputs = (x, x) if isinstance(attrs, Add) else (x,)
        rule = ops.tile_map(Node(attrs, inputs, (y,)), times=times)
        assert isinstance(rule, TileMap)
        assert (rule.window, rule.stride, rule.out) == (window, stride, out)


def test_rows_along_other_axes() -> None:
    """Positions of several heads, (1, heads, positions, channels): one at a time, for none lies beside the next."""

    def tensor(name: str, *shape: int) -> Tensor:
        return Tensor(name, TensorType(shape, DType.FLOAT32))

    x, heads, keys = tensor("x", 1, 8, 4, 2), tensor("heads", 1, 4, 8, 2), tensor("keys", 1, 4, 2, 8)
    scores = tensor("scores", 1, 4, 8, 8)
    for attrs, inputs, out, axis, read, found in (
        (Permute((0, 2, 1, 3)), (x,), heads, 2, 1, (0,)),
        (MatMul(), (heads, keys), scores, 2, 2, (0,)),
        (Softmax(3), (scores,), scores, 2, 2, (0,)),
        (Permute((0, 2, 1, 3)), (heads,), x, 1, 2, (0,)),
        (Softmax(3), (scores,), scores, 3, 2, "makes all rows of the same"),
        (Permute((0, 2, 1, 3)), (x,), heads, 2, 2, "of another axis of x"),
        (MaxPool2d(kernel_h=1, kernel_w=2), (heads,), tensor("y", 1, 4, 7, 2), 2, 2, "do not lie together"),
    ):
        rule = ops.tile_map(Node(attrs, inputs, (out,)), (axis, read))
        if isinstance(found, str):
            assert isinstance(rule, str)
            assert found in rule
        else:
            assert isinstance(rule, TileMap)
            assert (rule.inputs, rule.axis, rule.read) == (found, axis, read)
            assert (rule.window, rule.stride, rule.out, rule.before) == (1, 1, 1, 0)
