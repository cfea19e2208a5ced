# SPDX-License-Identifier: Apache-2.0
"""Each operator of floats as a torch module: the same answers as the graph's reference, also when it is captured; and
refusals of what is none."""

from __future__ import annotations

import numpy as np
import pytest

from tests.to_module.drawn import DRAWN, graph_of
from tinyet import ops
from tinyet.compiler import compiled
from tinyet.errors import UnsupportedOp, UnsupportedShape
from tinyet.ir import DType, Graph, Node, Origin, QuantParams, Tensor, TensorType
from tinyet.ops.cast import Cast
from tinyet.ops.compare import Compare
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.dynamic_linear import DynamicLinear
from tinyet.ops.linear import Linear
from tinyet.ops.lookup import Lookup
from tinyet.ops.maximum import Maximum
from tinyet.ops.pairwise import Pairwise
from tinyet.reference.evaluate import run_graph
from tinyet.to_module.convert import to_module
from tinyet.to_module.handlers import HANDLERS
from tinyet.to_module.proof import differs, drawn

CASES = 40

# Operators of integers, of signals, and what stands between integers and floats.
OF_NO_FLOATS = {
    "biquads",
    "dequantize",
    # These become layers of floats.
    "dynamic_conv2d",
    "dynamic_linear",
    "l2_normalize",
    "linear_bands",
    "linear_single_rounding",
    "log_bands",
    "lookup",
    "quantize",
    "requantize",
    "samples",
    "squared_difference",
    "sum_of_squares",
    *(op.name for op in ops.OPS if op.name.startswith("signal_")),
}


def test_every_operator_of_floats_has_a_row() -> None:
    assert {op.name for op in ops.OPS if op.attrs not in HANDLERS} == OF_NO_FLOATS


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_nodes(name: str) -> None:
    """`to_module` raises where an answer differs."""
    graph = graph_of(dict.fromkeys(range(CASES), DRAWN[name]))
    assert len(graph.nodes) >= CASES // 2
    module, examples = to_module(graph)
    assert not module.training
    assert [tuple(x.shape) for x in examples] == [t.shape for t in graph.inputs]


@pytest.mark.parametrize("part", range(4))
def test_drawn_nodes_are_captured(part: int) -> None:
    """Each comes back from torch's graph as an operator of tinyet's, with the same answers and the file's places."""
    names = list(DRAWN)[part::4]
    seeds = {2 * number + more: DRAWN[name] for number, name in enumerate(names) for more in (0, 1)}
    graph = graph_of(seeds)
    module, examples = to_module(graph)
    program = compiled(module, examples, name="drawn", prune=False)
    arrays = drawn(graph, 3)
    found = run_graph(program.graph, arrays)
    for tensor, wanted, array in zip(graph.outputs, run_graph(graph, arrays), found, strict=True):
        assert not differs(tensor, wanted, np.asarray(array).reshape(wanted.shape))
    # A pass puts a copy where an output is an input, and permutes elsewhere.
    computed = [node for node in program.graph.nodes if node.op not in ("copy", "permute")]
    assert {origin.file for node in computed for origin in node.origins} == {"drawn.tflite"}
    assert [t.name for t in program.graph.inputs] == [t.name for t in graph.inputs]


def _graph(inputs: list[Tensor], nodes: list[Node]) -> Graph:
    return Graph("g", tuple(inputs), nodes[-1].outputs, tuple(nodes))


def _tensor(name: str, *shape: int, dtype: DType = DType.FLOAT32) -> Tensor:
    return Tensor(name, TensorType(shape, dtype))


def test_truth_values_are_torchs() -> None:
    """A comparison of comparisons, and a float of that."""
    x, y = _tensor("x", 3, 4), _tensor("y", 3, 4)
    a, b = (_tensor(name, 3, 4, dtype=DType.INT32) for name in "ab")
    c, d, e = (_tensor(name, 3, 4, dtype=DType.INT32) for name in "cde")
    zero = Tensor("zero", TensorType((), DType.INT32), np.zeros((), np.int32))
    nodes = [
        Node(Compare("greater"), (x, y), (a,)),
        Node(Compare("greater_equal"), (y, x), (b,)),
        Node(Pairwise("bit_and"), (a, b), (c,)),
        Node(Compare("equal"), (c, zero), (d,)),
        Node(Pairwise("maximum"), (d, a), (e,)),
        Node(Cast(), (e,), (_tensor("f", 3, 4),)),
    ]
    module, examples = to_module(_graph([x, y], nodes))
    assert compiled(module, examples, name="truth").graph.outputs[0].dtype is DType.FLOAT32


def test_weights_that_are_integers_become_what_they_stand_for() -> None:
    x = _tensor("x", 1, 3)
    kind = TensorType((2, 3), DType.INT8, QuantParams((0.5, 0.25), (0, 0), 0))
    held = Tensor("w", kind, np.array([[1, 2, 3], [4, 5, 6]], np.int8))
    node = Node(DynamicLinear(), (x, held, None), (_tensor("y", 1, 2),))
    plain = Tensor(
        "w", TensorType((2, 3), DType.FLOAT32), np.array([[0.5, 1, 1.5], [1, 1.25, 1.5]], np.float32)
    )
    module, _ = to_module(_graph([x], [node.replace(attrs=Linear(), inputs=(x, plain, None))]))
    again, _ = to_module(_graph([x], [node]))
    (wanted,), (found,) = (list(m.parameters()) for m in (module, again))
    assert wanted.equal(found)


def test_all_refusals_are_told_with_their_places() -> None:
    x, numbers = _tensor("x", 2, 256), _tensor("n", 4, dtype=DType.INT32)
    made = _tensor("m", 4, dtype=DType.INT32)
    table = Tensor(
        "t", TensorType((1, 256), DType.INT8, QuantParams.per_tensor(1.0, 0)), np.zeros((1, 256), np.int8)
    )
    source = _tensor("b", 4, dtype=DType.UINT8)
    nodes = [
        Node(Pairwise("mul"), (numbers, numbers), (made,), (Origin("MUL", "net.scale", "a.tflite", 3),)),
        Node(Lookup(0), (source, table), (Tensor("l", TensorType((4,), DType.INT8, table.type.quant)),)),
        Node(Maximum(), (x, x), (_tensor("y", 2, 256),)),
    ]
    graph = Graph("g", (x, numbers, source), tuple(t for n in nodes for t in n.outputs), tuple(nodes))
    with pytest.raises(UnsupportedOp) as caught:
        to_module(graph)
    text = str(caught.value)
    assert "net.scale (a.tflite:3)" in text
    assert "mul of int32" in text
    assert "lookup" in text
    assert "a.tflite" in text


def test_a_quantized_input_is_refused() -> None:
    x = Tensor("x", TensorType((1, 4, 4, 1), DType.INT8, QuantParams.per_tensor(0.1, 3)))
    weights = Tensor("w", TensorType((1, 1, 1, 1), DType.FLOAT32), np.ones((1, 1, 1, 1), np.float32))
    with pytest.raises(UnsupportedShape, match="give a float model"):
        to_module(_graph([x], [Node(Conv2d(), (x, weights, None), (_tensor("y", 1, 4, 4, 1),))]))
