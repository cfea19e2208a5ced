# SPDX-License-Identifier: Apache-2.0
"""int8 and int16 in one model: where types meet, values are requantized and nothing becomes float."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.build import Builder, ops_of, per_tensor
from tinyet import ops
from tinyet.ir import Attrs, DType, Graph, QuantParams, Tensor, constant
from tinyet.ops.add import Add
from tinyet.ops.clamp import Clamp
from tinyet.ops.concat import Concat
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.linear import Linear
from tinyet.ops.matmul import MatMul
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.mul import Mul
from tinyet.ops.quantize import Quantize
from tinyet.ops.reshape import Reshape
from tinyet.ops.softmax import Softmax
from tinyet.passes import run
from tinyet.reference import run_graph

NARROW, WIDE = per_tensor(0.05, -10), per_tensor(0.0003)
TYPES = {NARROW: DType.INT8, WIDE: DType.INT16}


class Model(Builder):
    """Float operators between pairs of Quantize and Dequantize, as an importer leaves them."""

    def __init__(self) -> None:
        super().__init__(checked=False)

    def pair(self, x: Tensor, quant: QuantParams) -> Tensor:
        dtype = TYPES.get(quant, DType.INT16)
        integer = self.emit(Quantize(), x, quant=quant, dtype=dtype)
        return self.emit(Dequantize(), integer, dtype=DType.FLOAT32)

    def weights(self, *shape: int) -> Tensor:
        data = self.rng.integers(-127, 128, shape).astype(np.int8)
        quant = QuantParams(tuple(self.rng.uniform(0.001, 0.01, shape[0])), (0,) * shape[0], 0)
        self._count += 1
        return self.emit(Dequantize(), constant(f"w{self._count}", data, quant), dtype=DType.FLOAT32)


def lowered(graph: Graph, tolerance: float) -> Graph:
    """After all passes: integers throughout, and outputs within `tolerance` of what the float graph gives."""
    after, notes = run(graph, float_io=True)
    assert not notes, [str(n) for n in notes]
    for node in after.nodes:
        assert ops.op_of(node).check(node) is None
        if not isinstance(node.attrs, Quantize | Dequantize):
            assert all(
                t.dtype is not DType.FLOAT32 for t in (*node.inputs, *node.outputs) if t is not None
            ), node.op
    rng = np.random.default_rng(1)
    for _ in range(3):
        arrays = [rng.uniform(-4, 4, t.shape).astype(np.float32) for t in graph.inputs]
        for want, got in zip(run_graph(graph, arrays), run_graph(after, arrays), strict=True):
            np.testing.assert_allclose(
                np.asarray(got, float), np.asarray(want, float), rtol=0, atol=tolerance
            )
    return after


def dtypes(graph: Graph, attrs: type[Attrs]) -> set[str]:
    """Types that activations have at an operator."""
    nodes = [n for n in graph.nodes if isinstance(n.attrs, attrs)]
    assert nodes
    tensors = (t for n in nodes for t in (n.input(0), *n.outputs))
    return {t.dtype.value for t in tensors}


@pytest.mark.parametrize(
    ("first", "second", "out"), [(NARROW, WIDE, WIDE), (WIDE, NARROW, NARROW), (WIDE, WIDE, NARROW)]
)
@pytest.mark.parametrize("attrs", [Add(), Mul(), MatMul()])
def test_two_operands(attrs: Attrs, first: QuantParams, second: QuantParams, out: QuantParams) -> None:
    b = Model()
    x, y = (b.pair(b.input(4, 4), q) for q in (first, second))
    after = lowered(b.graph(b.pair(b.emit(attrs, x, y), out)), 1.02 * max(out.one_scale, 2e-3))
    assert dtypes(after, type(attrs)) == {"int16"}


@pytest.mark.parametrize(("x", "out"), [(NARROW, WIDE), (WIDE, NARROW), (WIDE, WIDE)])
def test_layers_with_weights(x: QuantParams, out: QuantParams) -> None:
    b = Model()
    value = b.pair(b.input(1, 4, 4, 3), x)
    conv = b.emit(Conv2d(clamp=(0.0, 6.0)), value, b.weights(5, 3, 3, 3), b.const(b.rng.uniform(-1, 1, 5)))
    flat = b.emit(Reshape((1, 20)), b.pair(conv, out))
    after = lowered(b.graph(b.pair(b.emit(Linear(), flat, b.weights(4, 20)), WIDE)), 3 * out.one_scale)
    assert dtypes(after, Conv2d) == {"int16"}
    (node,) = (n for n in after.nodes if isinstance(n.attrs, Conv2d))
    assert node.input(2).dtype is DType.INT64


def test_constants_take_the_type_of_the_operator() -> None:
    b = Model()
    x = b.pair(b.input(2, 6), WIDE)
    y = b.pair(b.emit(Add(), x, b.const(b.rng.uniform(-2, 2, (1, 6)))), WIDE)
    narrow = b.emit(
        Dequantize(), constant("eight", np.arange(6).astype(np.int8), NARROW), dtype=DType.FLOAT32
    )
    after = lowered(b.graph(b.pair(b.emit(Mul(), y, narrow), WIDE)), 3 * WIDE.one_scale)
    assert {c.dtype for c in after.constants} == {DType.INT16}
    assert ops_of(after) == ["quantize", "add", "mul", "dequantize"]


def test_softmax_has_the_scale_that_it_must_have() -> None:
    b = Model()
    narrow = per_tensor(1 / 256, -128)
    x = b.pair(b.input(3, 5), WIDE)
    TYPES[narrow] = DType.INT8
    after = lowered(b.graph(b.pair(b.emit(Softmax(1), x), narrow)), 1.02 / 256)
    assert ops_of(after) == ["quantize", "softmax", "requantize", "dequantize"]


def test_what_moves_values_takes_the_type_of_its_output() -> None:
    b = Model()
    x, y = b.pair(b.input(1, 4, 4, 2), NARROW), b.pair(b.input(1, 4, 4, 2), WIDE)
    pool = b.emit(MaxPool2d(kernel_h=2, kernel_w=2, stride_h=2, stride_w=2), b.emit(Concat(3), x, y))
    after = lowered(b.graph(b.pair(pool, WIDE)), 1e-6)
    assert dtypes(after, Concat) == {"int16"}
    assert ops_of(after).count("requantize") == 1


def test_a_clamp_changes_the_type_by_itself() -> None:
    b = Model()
    x = b.pair(b.input(2, 8), WIDE)
    twice = b.emit(Add(), x, x)
    kept = b.pair(twice, WIDE)
    after = lowered(b.graph(kept, b.pair(b.emit(Clamp(0.0, 3.0), kept), NARROW)), 1.02 * NARROW.one_scale)
    assert dtypes(after, Clamp) == {"int16", "int8"}
