# SPDX-License-Identifier: Apache-2.0
"""int4 weights and the operators that read them: who keeps them, who gets int8, and that it is told."""

from __future__ import annotations

import numpy as np

from tests.passes.build import Builder, assert_same, ops_of, per_tensor
from tinyet import passes
from tinyet.ir import DType, Graph, Tensor, constant
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.embedding import Embedding
from tinyet.ops.linear import Linear
from tinyet.ops.matmul import MatMul
from tinyet.passes.common_subexpressions import share_common_subexpressions
from tinyet.passes.fold_constants import after_lowering
from tinyet.passes.widen_int4 import widen_int4

X, Y, W = per_tensor(0.1, 3), per_tensor(0.5, -1), per_tensor(0.05)


def int4(b: Builder, *shape: int, name: str = "w") -> Tensor:
    return constant(name, b.rng.integers(-8, 8, shape).astype(np.int8), W, DType.INT4)


def types(graph: Graph) -> dict[str, DType]:
    return {t.name: t.dtype for t in graph.constants}


def test_kept_where_there_is_a_kernel() -> None:
    b = Builder()
    x = b.input(1, 4, 4, 2, quant=X)
    image = b.emit(Conv2d(), x, int4(b, 3, 3, 3, 2), quant=Y)
    flat = b.reshape(image, 1, 12)
    graph = b.graph(b.emit(Linear(), flat, int4(b, 5, 12, name="v"), quant=Y))
    assert widen_int4(graph) == (graph, ())


def test_widened_where_there_is_none() -> None:
    """Beside a convolution that could keep them: a constant has one type."""
    b = Builder()
    x, w = b.input(1, 4, 4, 2, quant=X), int4(b, 2, 2, 2, 2, name="kernel")
    graph = b.graph(b.emit(ConvTranspose2d(), x, w, quant=Y), b.emit(Conv2d(), x, w, quant=Y))
    widened, notes = widen_int4(graph)
    assert types(widened) == {"kernel": DType.INT8}
    assert [note.text for note in notes] == [
        "conv_transpose2d has no kernel for int4 weights: kernel is held in int8, 16 bytes"
    ]
    assert notes[0].origin is not None
    assert notes[0].origin.key == graph.nodes[0].output.name
    assert_same(graph, widened)


def test_behind_dequantize() -> None:
    """Before integer operators are formed it is the reader of the Dequantize that counts."""
    b = Builder(checked=False)
    x = b.dequantize(b.input(2, 3, 4, quant=X))
    known, unknown = int4(b, 5, 4, name="known"), int4(b, 2, 4, 3, name="unknown")
    b.emit(Linear(), x, b.dequantize(known), name="linear")
    b.emit(MatMul(), x, b.dequantize(unknown), name="matmul")
    graph = b.graph(*(node.output for node in b.nodes[-4:] if node.op != "dequantize"))
    widened, notes = widen_int4(graph)
    assert types(widened) == {"known": DType.INT4, "unknown": DType.INT8}
    assert [n.text.split()[0] for n in notes] == ["matmul"]


def test_products_of_int4_constants_become_integer() -> None:
    """A batch of matrices and an embedding's table: widened, then lowered as int8 ones are."""
    b = Builder(checked=False)
    x = b.dequantize(b.input(2, 3, 4, quant=X))
    product = b.emit(MatMul(), x, b.dequantize(int4(b, 2, 4, 3, name="batch")))
    graph, notes = passes.run(b.graph(b.dequantize(b.quantize(product, Y))))
    assert "matmul" in ops_of(graph)
    assert types(graph) == {"batch": DType.INT8}
    assert len([n for n in notes if "int4" in n.text]) == 1
    b = Builder(checked=False)
    indices = Tensor("i", constant("i", np.zeros(3, np.int32)).type)
    b.inputs.append(indices)
    rows = b.emit(Embedding(), indices, b.dequantize(int4(b, 6, 2, name="table")), dtype=DType.FLOAT32)
    graph, notes = passes.run(b.graph(b.dequantize(b.quantize(rows, W))))
    assert types(graph) == {"table": DType.INT8}
    assert any("embedding has no kernel for int4" in n.text for n in notes)


def test_constants_of_other_types_stay_apart() -> None:
    """The same bytes as int4 and as int8 are two constants; as int4 twice, one."""
    b = Builder(checked=False)
    x = b.input(1, 4, quant=X)
    narrow = int4(b, 4, 4)
    again = constant("again", narrow.array, W, DType.INT4)
    wide = constant("wide", narrow.array, W)
    outs = [b.emit(Linear(), x, w, quant=Y, name=f"y{i}") for i, w in enumerate((narrow, again, wide))]
    shared = share_common_subexpressions(b.graph(*outs))
    assert types(shared) == {"w": DType.INT4, "wide": DType.INT8}
    assert_same(b.graph(*outs), shared)


def test_weights_of_float_layers_are_folded() -> None:
    """However large: nothing dequantizes int4 at run time."""
    b = Builder(checked=False)
    w = int4(b, 40, 50)
    graph = b.graph(b.emit(Linear(), b.input(1, 50), b.dequantize(w)))
    folded = after_lowering(graph)
    assert ops_of(folded) == ["linear"]
    (floats,) = folded.constants
    np.testing.assert_array_equal(floats.array, w.array.astype(np.float32) * np.float32(0.05))
