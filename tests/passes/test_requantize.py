# SPDX-License-Identifier: Apache-2.0
"""Changes of scale, and integers kept integers."""

from __future__ import annotations

import math

import numpy as np

from tests.passes.build import Builder, assert_same, ops_of, origins_of, per_tensor, random_inputs
from tinyet.ir import DType, Graph, Tensor, TensorType
from tinyet.numerics import dequantize
from tinyet.ops.add import Add
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.clamp import Clamp
from tinyet.ops.concat import Concat
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.embedding import Embedding
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.mean import Mean
from tinyet.ops.requantize import Requantize
from tinyet.ops.slice import Slice
from tinyet.passes.fold_requantize import fold_requantize
from tinyet.passes.keep_integers import keep_integers
from tinyet.reference import run_graph

A, B, COARSE = per_tensor(0.1, 3), per_tensor(0.07, -20), per_tensor(0.5, 0)


def assert_close(before: Graph, after: Graph) -> None:
    """Outputs differ by at most one step: two roundings became one."""
    for seed in range(3):
        arrays = random_inputs(before, seed)
        for x, y in zip(run_graph(before, arrays), run_graph(after, arrays), strict=True):
            assert x.dtype == y.dtype
            assert np.abs(x.astype(np.int64) - y.astype(np.int64)).max() <= 1


def test_equal_scales_are_dropped() -> None:
    b = Builder()
    x = b.input(2, 3, quant=A)
    y = b.emit(Slice(0, 0, 1), b.emit(Requantize(), x, quant=A))
    z = b.quantize(b.dequantize(x), A)
    before = b.graph(y, b.emit(Slice(0, 1, 2), z), z)
    after = fold_requantize(before)
    assert_same(before, after)
    # What leaves as an output must be computed by something.
    assert ops_of(after) == ["slice", "dequantize", "copy", "slice"]


def test_quantize_of_dequantize_is_a_requantize() -> None:
    b = Builder()
    before = b.graph(b.quantize(b.dequantize(b.input(40, 40, quant=A)), COARSE))
    after = fold_requantize(before)
    assert ops_of(after) == ["dequantize", "requantize"]
    assert_close(before, after)


def test_producers_write_the_scale_that_is_wanted() -> None:
    b = Builder()
    x = b.input(1, 8, 8, 4, quant=A)
    weights = b.const(b.rng.integers(-127, 128, (6, 1, 1, 4)), per_tensor(0.01))
    y = b.emit(Conv2d(), x, weights, quant=per_tensor(0.2, 0))
    y = b.emit(MaxPool2d(2, 2, kernel_h=2, kernel_w=2), y)
    y = b.emit(Requantize(), b.permute(y, 0, 3, 1, 2), quant=COARSE)
    mean = b.emit(Requantize(), b.emit(Mean((1, 2)), x, quant=A), quant=per_tensor(0.1, 4))
    before = b.graph(y, mean)
    after = fold_requantize(before)
    assert ops_of(after) == ["conv2d", "max_pool2d", "permute", "mean", "requantize"]
    assert after.nodes[0].output.type.quant == COARSE
    assert len(origins_of(after, "conv2d")[0]) == 2
    assert_close(before, after)


def test_what_was_saturated_still_is() -> None:
    """The first scale ends at 12.4 and -13.1, the second reaches further: a clamp takes the place of its
    ends."""
    b = Builder()
    x, y = b.input(50, 50, quant=COARSE), b.input(50, 50, quant=COARSE)
    before = b.graph(b.emit(Requantize(), b.emit(Add(), x, y, quant=A), quant=per_tensor(0.4, 0)))
    after = fold_requantize(before)
    assert ops_of(after) == ["add"]
    attrs = after.nodes[0].attrs
    assert isinstance(attrs, Add)
    assert np.allclose(attrs.clamp, (-13.1, 12.4))
    assert_close(before, after)


def test_a_clamp_that_changes_the_scale() -> None:
    b = Builder()
    x, y = b.input(50, 50, quant=A), b.input(50, 50, quant=B)
    total = b.emit(Add(), x, y, quant=per_tensor(0.3, 0))
    before = b.graph(b.emit(Clamp(0.0, math.inf), total, quant=per_tensor(0.15, -128)))
    after = fold_requantize(before)
    assert ops_of(after) == ["add"]
    # One step of the first scale is two of the second.
    for seed in range(3):
        arrays = random_inputs(before, seed)
        old, new = (run_graph(g, arrays)[0] for g in (before, after))
        real = [dequantize(a, g.outputs[0].type.quant or A) for a, g in ((old, before), (new, after))]
        assert np.abs(real[0] - real[1]).max() <= 0.31
        assert old.min() == new.min() == -128


def test_requantize_of_what_others_read_or_of_an_average_stays() -> None:
    b = Builder()
    x = b.input(1, 4, 4, 2, quant=A)
    pooled = b.emit(AvgPool2d(2, 2, kernel_h=2, kernel_w=2), x)
    shared = b.emit(Add(), x, x, quant=B)
    before = b.graph(b.emit(Requantize(), pooled, quant=B), shared, b.emit(Requantize(), shared, quant=A))
    assert ops_of(fold_requantize(before)) == ops_of(before)


def test_dequantize_sinks_through_movers() -> None:
    b = Builder()
    x, y = b.input(2, 3, quant=A), b.input(2, 5, quant=A)
    joined = b.emit(Concat(1), b.dequantize(x), b.dequantize(y))
    before = b.graph(b.emit(Slice(0, 0, 1), joined))
    after = keep_integers(before)
    assert_same(before, after)
    assert ops_of(after) == ["concat", "slice", "dequantize"]
    assert after.nodes[0].output.type.quant == A


def test_embedding_table_stays_integer() -> None:
    b = Builder(checked=False)
    indices = b.const([[1, 2, 8], [0, 0, 3]])
    indices = Tensor("i", TensorType(indices.shape, DType.INT32), indices.array.astype(np.int32))
    table = b.dequantize(b.const(b.rng.integers(-128, 128, (9, 4)), A))
    before = b.graph(b.emit(Embedding(), indices, table, dtype=DType.FLOAT32))
    after = keep_integers(before)
    assert_same(before, after)
    assert ops_of(after) == ["embedding", "dequantize"]


def test_movers_of_different_scales_stay_float() -> None:
    b = Builder()
    x, y = b.input(2, 3, quant=A), b.input(2, 5, quant=B)
    before = b.graph(b.emit(Concat(1), b.dequantize(x), b.dequantize(y)))
    assert ops_of(keep_integers(before)) == ops_of(before)


def test_quantize_rises_above_a_concat_with_integers() -> None:
    b = Builder()
    joined = b.emit(Concat(0), b.dequantize(b.input(4, 8, quant=A)), b.input(2, 8))
    before = b.graph(b.quantize(joined, B))
    after = keep_integers(before)
    assert_same(before, after)
    assert ops_of(after) == ["dequantize", "quantize", "quantize", "concat"]
    assert after.outputs == before.outputs
    assert ops_of(fold_requantize(after))[1] == "requantize"
