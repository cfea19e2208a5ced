# SPDX-License-Identifier: Apache-2.0
"""Pruning through attention, recurrent layers, tables and splits: small graphs, line by line."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.build import lines, per_tensor
from tests.passes.test_prune import IMAGE, ZERO, Sparse, pruned
from tinyet.ir import DType, Graph, Tensor, TensorType
from tinyet.ops.concat import Concat
from tinyet.ops.embedding import Embedding
from tinyet.ops.gather import Gather
from tinyet.ops.layer_norm import LayerNorm
from tinyet.ops.linear import Linear
from tinyet.ops.matmul import MatMul
from tinyet.ops.rnn import Rnn
from tinyet.ops.slice import Slice
from tinyet.ops.softmax import OUT_SCALE, OUT_ZERO_POINT, Softmax

SHARES = per_tensor(OUT_SCALE, OUT_ZERO_POINT)


def project(
    b: Sparse, x: Tensor, width: int, dead: tuple[int, ...] = (), unread: tuple[int, ...] = ()
) -> Tensor:
    """A linear layer; its dead outputs are 0."""
    integer = x.type.quant is not None
    weights = b.weights(width, x.shape[-1], quant=integer, dead=dead, unread=unread)
    biases = b.rng.integers(-9, 10, width).astype(np.float32)
    biases[list(dead)] = 0
    quant = per_tensor(0.2, -10) if integer else None
    return b.emit(Linear(), x, weights, b.bias(x, weights, biases), quant=quant)


def heads(b: Sparse, x: Tensor, count: int) -> Tensor:
    """(1, T, D) to (1, heads, T, D / heads)."""
    _, steps, width = x.shape
    return b.permute(b.reshape(x, 1, steps, count, width // count), 0, 2, 1, 3)


def attention(
    b: Sparse,
    x: Tensor,
    count: int,
    dead: dict[str, tuple[int, ...]],
    unread: tuple[int, ...] = (),
) -> Graph:
    integer = x.type.quant is not None
    q, k, v = (project(b, x, 8, dead.get(name, ())) for name in "qkv")
    q, k, v = (heads(b, each, count) for each in (q, k, v))
    scores = b.emit(MatMul(), q, b.permute(k, 0, 1, 3, 2), quant=ZERO if integer else None)
    weights = b.emit(Softmax(3), scores, quant=SHARES if integer else None)
    mixed = b.emit(MatMul(), weights, v, quant=ZERO if integer else None)
    _, _, steps, _ = mixed.shape
    joined = b.reshape(b.permute(mixed, 0, 2, 1, 3), 1, steps, 8)
    return b.graph(project(b, joined, 3, unread=unread))


@pytest.mark.parametrize("integer", [True, False])
def test_a_query_channel_of_zeros_goes_with_the_key_that_it_meets(integer: bool) -> None:
    """Of two heads of four, in both the channels 1 and 3 of the queries are zero."""
    b = Sparse()
    x = b.input(1, 5, 6, quant=IMAGE if integer else None)
    after = pruned(attention(b, x, 2, {"q": (1, 3, 5, 7)}))
    layers = [n.output.shape[-1] for n in after.nodes if isinstance(n.attrs, Linear)]
    assert layers == [4, 4, 8, 3]


def test_a_channel_of_one_head_alone_stays() -> None:
    """A tensor of heads has as many channels in each."""
    b = Sparse()
    before = attention(b, b.input(1, 5, 6, quant=IMAGE), 2, {"q": (1,)})
    assert pruned(before) is before


@pytest.mark.parametrize("integer", [True, False])
def test_values_go_through_the_weights_into_the_projection(integer: bool) -> None:
    """Channels 0 and 4 are zero, channels 2 and 6 are read by nobody."""
    b = Sparse()
    x = b.input(1, 5, 6, quant=IMAGE if integer else None)
    after = pruned(attention(b, x, 2, {"v": (0, 4)}, unread=(2, 6)))
    layers = [n.output.shape[-1] for n in after.nodes if isinstance(n.attrs, Linear)]
    assert layers == [8, 8, 4, 3]
    assert after.nodes[-1].input(1).shape == (3, 4)


def test_inputs_of_a_recurrent_layer_that_are_zero_or_unread() -> None:
    """Of float channels 1 is zero, 3 is read by no gate."""
    b = Sparse()
    x = project(b, b.input(1, 5, 3), 4, dead=(1,))
    recurrent, state = b.weights(6, 4, quant=False, unread=(3,)), b.input(1, 6)
    y = b.emit(Rnn(sequence=False), x, state, recurrent, b.weights(6, 6, quant=False), b.const(np.ones(6)))
    after = pruned(b.graph(y))
    assert lines(after) == ["linear(1x5x3, 2x3, 2) -> 1x5x2", "rnn(1x5x2, 1x6, 6x2, 6x6, 6) -> 1x6"]


def test_columns_of_a_table() -> None:
    """What nobody reads of the vectors of an embedding goes from its table."""
    b = Sparse()
    indices = Tensor("indices", TensorType((1, 5), DType.INT32))
    b.inputs.append(indices)
    table = b.const(b.rng.integers(-9, 10, (7, 6)), ZERO)
    y = b.emit(Embedding(), indices, table, quant=ZERO, dtype=DType.INT8)
    rows = Tensor("rows", TensorType((2,), DType.INT32), np.array([3, 1], np.int32))
    y = b.emit(Gather(1), y, rows, quant=ZERO)
    after = pruned(b.graph(project(b, y, 3, unread=(0, 5))))
    assert lines(after) == [
        "embedding(1x5, 7x4) -> 1x5x4",
        "gather(1x5x4, 2) -> 1x2x4",
        "linear(1x2x4, 3x4, 3) -> 1x2x3",
    ]


def test_splits_of_a_layer_that_are_joined_again() -> None:
    """Every second channel and the first half of a layer, side by side."""
    b = Sparse()
    y = b.layer(b.input(1, 4, 4, 3, quant=IMAGE), 8, dead=(0, 5), bias=0)
    y = b.emit(Concat(3), b.emit(Slice(3, 4, 8), y), b.emit(Slice(3, 0, 4), y))
    after = pruned(b.graph(b.layer(y, 2)))
    assert [n.output.shape[3] for n in after.nodes] == [6, 3, 3, 6, 2]


@pytest.mark.parametrize(("order", "left"), [((0, 1, 2, 3), 4), ((0, 3, 2, 1), 3)])
def test_a_layer_norm_over_the_channels_needs_them_all(order: tuple[int, ...], left: int) -> None:
    """Over another axis it does not."""
    b = Sparse()
    y = b.layer(b.input(1, 4, 4, 3, quant=IMAGE), 4, dead=(1,), bias=0)
    scales = b.const(np.ones(4)), b.const(np.zeros(4))
    y = b.emit(LayerNorm(3, 1e-5), b.permute(y, *order), *scales, quant=ZERO)
    after = pruned(b.graph(b.layer(b.permute(y, *order), 2)))
    assert after.nodes[0].output.shape[3] == left
