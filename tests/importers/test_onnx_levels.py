# SPDX-License-Identifier: Apache-2.0
"""Each operator between a DequantizeLinear and a QuantizeLinear is ONNX Runtime's as it is by default, where scales
meet halves exactly, too; and what it is at other levels of optimization is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.importers.onnx_models import Float32, helper, node, onnx, saved, value
from tinyet.errors import UnsupportedShape
from tinyet.importers.onnx.functions import sigmoid, tanh
from tinyet.importers.onnx.oracle import LEVELS, run_onnxruntime
from tinyet.ir import Array
from tinyet.opening.files import from_onnx
from tinyet.oracles import compare
from tinyet.program import Program

pytest.importorskip("onnxruntime")

SHAPE = (1, 6, 7, 4)
BY_CHANNEL = np.array([0.5, 1.5, 0.25, 2, 3, -4], np.float32).reshape(6, 1, 1)
R = np.random.default_rng(3)


class Net(NamedTuple):
    """One operator: its constants, its attributes, whether it has two operands."""

    op: str
    constants: Mapping[str, Array] = {}
    attributes: Mapping[str, Any] = {}
    two: bool = False


def weights(*shape: int) -> Float32:
    return (R.standard_normal(shape) * 0.3 + 0.05).astype(np.float32)


EXACT = {
    "AveragePool": Net("AveragePool", {}, {"kernel_shape": [2, 2], "strides": [2, 1]}),
    "AveragePool padded": Net("AveragePool", {}, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    "AveragePool of padding": Net(
        "AveragePool", {}, {"kernel_shape": [3, 2], "pads": [1, 1, 1, 0], "count_include_pad": 1}
    ),
    "GlobalAveragePool": Net("GlobalAveragePool"),
    "Softmax": Net("Softmax", {}, {"axis": -1}),
    "Softmax of channels": Net("Softmax", {}, {"axis": 1}),
    "Sub": Net("Sub", two=True),
    "Max": Net("Max", two=True),
    "Min": Net("Min", two=True),
    **{f"{op} by channel": Net(op, {"k": BY_CHANNEL}) for op in ("Add", "Sub", "Mul", "Div", "Max", "PRelu")},
    "Pad": Net("Pad", {"p": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "v": np.array(0.75, np.float32)}),
    "Concat": Net("Concat", {}, {"axis": 1}, two=True),
    "Sigmoid": Net("Sigmoid"),
    "Tanh": Net("Tanh"),
    "Conv of floats": Net("Conv", {"w": weights(5, 6, 3, 3), "b": weights(5)}),
    "Conv of floats without bias": Net("Conv", {"w": weights(5, 6, 1, 1)}),
}
SUMMED = {
    "ReduceSum": Net("ReduceSum", {"a": np.array([1])}),
    "BatchNormalization": Net("BatchNormalization", {k: np.abs(weights(6)) + 0.1 for k in "sbmv"}),
    "LogSoftmax": Net("LogSoftmax", {}, {"axis": -1}),
    "ConvTranspose of floats": Net("ConvTranspose", {"w": weights(6, 5, 2, 2), "b": weights(5)}),
}
"""In float32, by both, and in another order."""
SCALES = ((0.25, 1.0), (0.5, 2.0), (0.1, 1.0), (0.03, 1.7))
"""Of the input, and of the output in terms of that."""


def between(net: Net, kind: str, draw: int) -> tuple[Any, dict[str, Array]]:
    """The operator between bytes, and a sample."""
    rng, dtype = np.random.default_rng(draw), np.dtype(kind)
    low, names = int(np.iinfo(dtype).min), ["x", "z"][: 1 + net.two]
    scale, ratio = SCALES[draw % len(SCALES)]
    zero = -128 if net.op == "Softmax" else int(rng.integers(-40, 40))
    parameters = {
        "in_scale": np.array(scale, np.float32),
        "in_zero": np.array(int(rng.integers(-20, 20)) + low + 128, dtype),
        "out_scale": np.array(1 / 256 if net.op == "Softmax" else scale * ratio, np.float32),
        "out_zero": np.array(zero + low + 128, dtype),
    }
    nodes = [
        *(node("DequantizeLinear", [f"{n}_q", "in_scale", "in_zero"], n) for n in names),
        node(net.op, [*names, *net.constants], "y", **net.attributes),
        node("QuantizeLinear", ["y", "out_scale", "out_zero"], "y_q"),
    ]
    tensor = onnx.TensorProto.INT8 if kind == "int8" else onnx.TensorProto.UINT8
    held = {**parameters, **net.constants}
    graph = helper.make_graph(
        nodes,
        "net",
        [value(f"{n}_q", SHAPE, tensor) for n in names],
        [value("y_q", None, tensor)],
        [onnx.numpy_helper.from_array(data, name) for name, data in held.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    return proto, {f"{n}_q": rng.integers(low, low + 256, SHAPE).astype(dtype) for n in names}


def expect_its_integers(program: Program, proto: Any, sample: Mapping[str, Array]) -> None:
    (wanted,) = run_onnxruntime(proto.SerializeToString(), sample)
    np.testing.assert_array_equal(program.run(*sample.values()), wanted)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("name", EXACT)
def test_integers(name: str, kind: str, tmp_path: Path) -> None:
    for draw in range(len(SCALES)):
        proto, sample = between(EXACT[name], kind, draw)
        expect_its_integers(from_onnx(saved(proto, tmp_path), exact=True), proto, sample)


@pytest.mark.parametrize("name", SUMMED)
def test_sums_in_float_are_noted(name: str, tmp_path: Path) -> None:
    proto, sample = between(SUMMED[name], "int8", 3)
    path = saved(proto, tmp_path)
    program = from_onnx(path)
    assert any("computed in float32" in note.text for note in program.notes)
    with pytest.raises(UnsupportedShape, match="computed in float32"):
        from_onnx(path, exact=True)
    (wanted,) = run_onnxruntime(path, sample)
    found = np.asarray(program.run(*sample.values()), np.int64)
    assert np.abs(found - wanted.astype(np.int64)).max() <= 1


def test_other_bytes_than_its_input_s_are_no_integer_operator(tmp_path: Path) -> None:
    """Signed in, unsigned out: ONNX Runtime computes in float32."""
    proto, _ = between(EXACT["Softmax"], "int8", 0)
    held = {t.name: t for t in proto.graph.initializer}
    held["out_zero"].CopyFrom(onnx.numpy_helper.from_array(np.array(0, np.uint8), "out_zero"))
    proto.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.UINT8
    with pytest.raises(UnsupportedShape, match="Softmax is computed in float32"):
        from_onnx(saved(proto, tmp_path), exact=True)


def test_nothing_divided_by_nothing(tmp_path: Path) -> None:
    proto, _ = between(Net("Div", two=True), "int8", 0)
    with pytest.raises(UnsupportedShape, match="0 divided by 0"):
        from_onnx(saved(proto, tmp_path), exact=True)


def test_functions_have_its_last_bits() -> None:
    """As ONNX Runtime 1.32 gives them on processors with FMA; most of these are not what float64 gives."""
    x = np.array([-17.25, -6.5, -1.625, -0.375, 0.75], np.float32)
    for function, last_bits in (
        (sigmoid, ("0x1.0p-25", "0x1.8986p-10", "0x1.50ee04p-3", "0x1.a11c02p-2", "0x1.5bbd5p-1")),
        (tanh, ("-0x1.0p+0", "-0x1.ffff68p-1", "-0x1.d9c6fap-1", "-0x1.6ef53ep-2", "0x1.45324p-1")),
    ):
        assert function(x).tolist() == [float.fromhex(word) for word in last_bits]


def ran(program: Program, given: Sequence[Array]) -> list[list[Array]]:
    found = program.run(*given)
    return [[np.asarray(found)]]


def test_the_oracle_names_the_level_that_agrees(tmp_path: Path) -> None:
    """By default a pool is of integers; without optimizations of floats, whose halves meet other zero points."""
    proto, sample = between(EXACT["AveragePool"], "int8", 2)
    path = saved(proto, tmp_path)
    program, given = from_onnx(path), list(sample.values())
    assert LEVELS[0] == "ORT_ENABLE_ALL"
    found = compare(path, program, [given], ran(program, given))
    assert found.agrees
    assert found.runtime.endswith("(ORT_ENABLE_ALL)")
    assert found.advice == ""
    floats = run_onnxruntime(path, sample, "ORT_DISABLE_ALL")
    other = compare(path, program, [given], [floats])
    assert not other.agrees
    assert "ORT_DISABLE_ALL agrees" in other.advice
    assert "ORT_ENABLE_EXTENDED differs in 1 of 1" in other.advice
    assert "exact=True" in other.advice
    assert "--runtime" not in other.advice


def test_a_bias_that_is_no_row_is_noted_once(tmp_path: Path) -> None:
    """ONNX Runtime makes int32 of rows alone."""
    held: dict[str, Array] = {
        "in_scale": np.array(0.05, np.float32), "in_zero": np.array(7, np.int8), "w_scale": np.array(0.01, np.float32),
        "w_zero": np.array(0, np.int8), "wq": R.integers(-127, 128, (6, 5)).astype(np.int8), "b": weights(1, 5),
        "out_scale": np.array(0.02, np.float32), "out_zero": np.array(-4, np.int8),
    }  # fmt: skip
    nodes = [
        node("DequantizeLinear", ["x_q", "in_scale", "in_zero"], "x"),
        node("DequantizeLinear", ["wq", "w_scale", "w_zero"], "w"),
        node("Gemm", ["x", "w", "b"], "y"),
        node("QuantizeLinear", ["y", "out_scale", "out_zero"], "y_q"),
    ]
    border = [value("x_q", (3, 6), onnx.TensorProto.INT8), value("y_q", None, onnx.TensorProto.INT8)]
    initial = [onnx.numpy_helper.from_array(np.asarray(data), name) for name, data in held.items()]
    graph = helper.make_graph(nodes, "net", border[:1], border[1:], initial)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = saved(proto, tmp_path)
    assert [note.text.split(",")[0] for note in from_onnx(path).notes] == ["its bias is no row"]
    held["b"] = held["b"].reshape(5)
    proto.graph.initializer[5].CopyFrom(onnx.numpy_helper.from_array(held["b"], "b"))
    expect_its_integers(
        from_onnx(saved(proto, tmp_path), exact=True),
        proto,
        {"x_q": np.arange(18, dtype=np.int8).reshape(3, 6)},
    )
