# SPDX-License-Identifier: Apache-2.0
"""Small files that ask for much: refused with the operator's name and index before anything is allocated."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.importers.onnx_models import model, node, onnx
from tests.tflite_files import Writer
from tinyet.errors import ModelError, RefusedError, TinyetError
from tinyet.files.reading import read_bounded
from tinyet.ir import DType, Graph, Node, QuantParams, Tensor, TensorType
from tinyet.ir.budget import MAX_FOLDED_MACS, Budget
from tinyet.opening.files import from_onnx, from_tflite
from tinyet.ops.cast import Cast
from tinyet.ops.matmul import MatMul
from tinyet.ops.quantize import Quantize
from tinyet.ops.sub import Sub
from tinyet.passes.fold_constants import after_lowering
from tinyet.passes.tabulate_bytes import tabulate_bytes
from tinyet.tflite import Model
from tinyet.tflite.options import (
    AddOptions,
    Conv2DOptions,
    GatherOptions,
    SVDFOptions,
    VarHandleOptions,
)
from tinyet.tflite.write import write_model

MOST_BYTES = 200 << 20


@contextmanager
def frugal() -> Iterator[None]:
    """The block allocates no more than the budget of a small file, and some."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()


def refusal_of(take: Callable[[Path], Any], data: bytes, path: Path) -> str:
    path.write_bytes(data)
    with frugal(), pytest.raises(TinyetError) as refused:
        take(path)
    assert isinstance(refused.value, ModelError)
    return str(refused.value)


# ---------------------------------------------------------------- .onnx

BIG = np.array([1 << 15, 1 << 15])
HUGE = np.array([1 << 40, 1 << 20])


ONNX_CASES: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "ConstantOfShape, node 0": (
        [node("ConstantOfShape", ["s"], "c"), node("Add", ["x", "c"], "y")],
        {"s": BIG},
    ),
    "Expand, node 1": (
        [node("Neg", ["one"], "c"), node("Expand", ["c", "s"], "d"), node("Add", ["x", "d"], "y")],
        {"one": np.ones(1, np.float32), "s": HUGE},
    ),
    "Expand, node 0": ([node("Expand", ["x", "s"], "y")], {"s": np.array([1 << 20, 1 << 12, 1])}),
    "Tile, node 0": (
        [node("Tile", ["one", "s"], "c"), node("Add", ["x", "c"], "y")],
        {"one": np.ones((1, 1), np.float32), "s": BIG},
    ),
    "Gather, node 1": (
        [
            node("Range", ["zero", "many", "one"], "i"),
            node("Gather", ["t", "i"], "c"),
            node("Add", ["x", "c"], "y"),
        ],
        {
            "zero": np.array(0),
            "many": np.array(1 << 20),
            "one": np.array(1),
            "t": np.ones((2, 99), np.float32),
        },
    ),
    "Range, node 0": (
        [node("Range", ["zero", "many", "one"], "c"), node("Add", ["x", "c"], "y")],
        {
            "zero": np.array(0.0, np.float32),
            "many": np.array(1e30, np.float32),
            "one": np.array(1.0, np.float32),
        },
    ),
    "Pad, node 0": ([node("Pad", ["x", "s"], "y")], {"s": np.array([0, 0, 0, 0, 0, 0, 1 << 15, 1 << 15])}),
    "Resize, node 0": (
        [
            node(
                "Resize",
                ["x", "", "", "s"],
                "y",
                coordinate_transformation_mode="asymmetric",
                nearest_mode="floor",
            )
        ],
        {"s": np.array([1, 2, 4 << 14, 4 << 14])},
    ),
}


def quantized_once(nodes: list[Any]) -> list[Any]:
    """A pair of QuantizeLinear and DequantizeLinear in front, so that it is read as a quantized model."""
    pair = [
        node("QuantizeLinear", ["x", "scale", "zero"], "q"),
        node("DequantizeLinear", ["q", "scale", "zero"], "dq"),
    ]
    for each in nodes:
        each.input[:] = ["dq" if name == "x" else name for name in each.input]
    return [*pair, *nodes]


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("case", sorted(ONNX_CASES))
def test_small_onnx_files_that_ask_for_much(case: str, quantized: bool, tmp_path: Path) -> None:
    nodes, constants = ONNX_CASES[case]
    nodes = [onnx.NodeProto.FromString(n.SerializeToString()) for n in nodes]
    if quantized:
        nodes = quantized_once(nodes)
        constants = constants | {"scale": np.array(0.1, np.float32), "zero": np.array(0, np.int8)}
    proto = model(nodes, {"x": (1, 2, 4, 4)}, constants)
    text = refusal_of(from_onnx, proto.SerializeToString(), tmp_path / "small.onnx")
    op, number = case.split(", node ")
    assert f"- {op}, node {int(number) + 2 * quantized} ('net/" in text, text


# ---------------------------------------------------------------- .tflite


def adding(w: Writer, made: int, shape: tuple[int, ...]) -> Model:
    """What an operator makes of constants, added to an input: (1,) → shape."""
    x = w.value((1,), "float32", None)
    w.call("ADD", (x, made), (w.value(shape, "float32", None),), AddOptions())
    return w.model((x,), (len(w.tensors) - 1,))


def made_by(code: str, shape: tuple[int, ...], *constants: np.ndarray, options: Any = None) -> Model:
    w = Writer()
    inputs = tuple(w.constant(data) for data in constants)
    made = w.call(code, inputs, (w.value(shape, "float32", None),), options)
    return adding(w, made, shape)


def filled(w: Writer, shape: tuple[int, ...], kind: Any = np.float32) -> int:
    """A constant that is made by FILL."""
    sizes, number = w.constant(np.array(shape, np.int32)), w.constant(np.array(1, kind))
    return w.call("FILL", (sizes, number), (w.value(shape, np.dtype(kind).name, None),))


def convolved() -> Model:
    """A convolution of two constants, each within its bounds."""
    w = Writer()
    image, weights = filled(w, (1, 64, 64, 64)), filled(w, (64, 3, 3, 64))
    made = w.call(
        "CONV_2D", (image, weights), (w.value((1, 64, 64, 64), "float32", None),), Conv2DOptions(0, 1, 1)
    )
    return adding(w, made, (1, 64, 64, 64))


def gathered() -> Model:
    w = Writer()
    table = w.constant(np.ones((2, 4096), np.float32))
    indices = w.constant(np.zeros(1 << 14, np.int32))
    shape = (1 << 14, 4096)
    made = w.call("GATHER", (table, indices), (w.value(shape, "float32", None),), GatherOptions())
    return adding(w, made, shape)


def ranged(*bounds: float, count: int) -> Model:
    return made_by("RANGE", (count,), *(np.array(b, np.float32) for b in bounds))


def memoize() -> Model:
    """Variables that nobody has set: each begins with zeros of its own."""
    w, shape = Writer(), (1 << 11, 1 << 11)
    for number in range(20):
        handle = w.call("VAR_HANDLE", (), (w.value((), "resource", None),), VarHandleOptions("", str(number)))
        made = w.call("READ_VARIABLE", (handle,), (w.value(shape, "float32", None),))
    return adding(w, made, shape)


def delayed() -> Model:
    """SVDF with a state of much."""
    w = Writer()
    x = w.value((1, 1), "float32", None)
    weights, time = w.constant(np.ones((1 << 12, 1), np.float32)), filled(w, (1 << 12, 1 << 10))
    state = w.value((1, 1 << 22), "float32", None, variable=True)
    y = w.value((1, 1 << 12), "float32", None)
    for _ in range(9):
        w.call("SVDF", (x, weights, time, -1, state), (y,), SVDFOptions(1))
    return w.model((x,), (y,))


ONE = np.ones((1, 1), np.float32)
MUCH = np.array([1 << 15, 1 << 15], np.int32)

TFLITE_CASES: dict[str, Callable[[], Model]] = {
    "RANGE, operator 0": lambda: ranged(0.0, 1e9, 1.0, count=1_000_000_000),
    "ZEROS_LIKE, operator 0": lambda: made_by("ZEROS_LIKE", (1 << 15, 1 << 15), ONE),
    "FILL, operator 0": lambda: made_by("FILL", (1 << 15, 1 << 15), MUCH, ONE[0, 0]),
    "BROADCAST_TO, operator 0": lambda: made_by("BROADCAST_TO", (1 << 12, 1 << 11), ONE, MUCH),
    "TILE, operator 0": lambda: made_by("TILE", (1 << 15, 1 << 15), ONE, MUCH),
    "PAD, operator 0": lambda: made_by(
        "PAD", (1 << 15, 1), ONE, np.array([[0, (1 << 29)], [0, 0]], np.int32)
    ),
    "GATHER, operator 0": gathered,
    "CONV_2D, operator 2": convolved,
    "READ_VARIABLE, operator": memoize,
    "SVDF, operator": delayed,
}


@pytest.mark.parametrize("case", sorted(TFLITE_CASES))
def test_small_tflite_files_that_ask_for_much(case: str, tmp_path: Path) -> None:
    text = refusal_of(from_tflite, write_model(TFLITE_CASES[case]()), tmp_path / "small.tflite")
    assert f"- {case}" in text, text


@pytest.mark.parametrize(
    "bounds", [(0.0, np.nan, 1.0), (0.0, np.inf, 1.0), (0.0, 3.0, np.nan), (0.0, 3.0, 1e-45)]
)
def test_ranges_without_an_end(bounds: tuple[float, ...], tmp_path: Path) -> None:
    assert "RANGE, operator 0" in refusal_of(
        from_tflite, write_model(ranged(*bounds, count=3)), tmp_path / "a.tflite"
    )


def test_ranges_are_added_up_in_the_original_order(tmp_path: Path) -> None:
    """One step after another in float32."""
    path = tmp_path / "range.tflite"
    path.write_bytes(write_model(ranged(0.1, 100.0, 0.3, count=333)))
    program = from_tflite(path)
    steps = np.cumsum(np.array([0.1, *[0.3] * 332], np.float32), dtype=np.float32)
    np.testing.assert_array_equal(program.run(np.zeros(1, np.float32)), steps)


# ---------------------------------------------------------------- passes


def test_nodes_of_constants_beyond_the_budget_stay() -> None:
    """Folding is not worth any price: the model computes them."""
    side = 1 + int(MAX_FOLDED_MACS ** (1 / 3))
    kind = TensorType((side, side), DType.FLOAT32)
    ones = np.ones((side, side), np.float32)
    y = Tensor("y", kind)
    graph = Graph("g", (), (y,), (Node(MatMul(), (Tensor("a", kind, ones), Tensor("b", kind, ones)), (y,)),))
    assert after_lowering(graph).nodes == graph.nodes


def test_tables_of_bytes_are_not_made_to_be_thrown_away() -> None:
    shape = (1, 1 << 18)
    bytes_, real = TensorType(shape, DType.UINT8), TensorType(shape, DType.FLOAT32)
    x, wide, moved = Tensor("x", bytes_), Tensor("wide", real), Tensor("moved", real)
    means = Tensor("means", real, np.ones(shape, np.float32))
    y = Tensor("y", TensorType(shape, DType.INT8, QuantParams.per_tensor(1.0, 0)))
    nodes = (
        Node(Cast(), (x,), (wide,)),
        Node(Sub(), (wide, means), (moved,)),
        Node(Quantize(), (moved,), (y,)),
    )
    graph = Graph("g", (x,), (y,), nodes)
    with frugal():
        assert tabulate_bytes(graph).nodes == nodes


def test_reading_a_file_takes_what_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "three"
    path.write_bytes(b"abc")
    with frugal():
        assert read_bounded(path, 1 << 40) == b"abc"
    with pytest.raises(OSError, match="more than 2 bytes"):
        read_bounded(path, 2)


def test_a_budget_says_what_was_asked_for_and_is_spent() -> None:
    budget = Budget(10)
    budget.hold(1 << 26)
    assert not budget.is_spent
    with pytest.raises(
        RefusedError, match=r"asks for 81 bytes of constants, beside 67,108,864 before it; at most 67,108,944"
    ):
        budget.hold(81)
    assert budget.is_spent
