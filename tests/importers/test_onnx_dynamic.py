# SPDX-License-Identifier: Apache-2.0
"""Models of ONNX Runtime's quantize_dynamic: layers that quantize their input at run time have its answers."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.importers.onnx_models import Float32, helper, model, node, onnx, saved
from tinyet.errors import UnsupportedOp, UsageError
from tinyet.importers.onnx.oracle import run_onnxruntime
from tinyet.ir import Array, DType
from tinyet.opening.files import from_onnx

pytest.importorskip("onnxruntime")


def normal(rng: np.random.Generator, *shape: int) -> Float32:
    return rng.standard_normal(shape).astype(np.float32)


def quantized(proto: Any, folder: Path, weights: str = "QInt8", **options: Any) -> Path:
    from onnxruntime import quantization as q

    out = folder / "dynamic.onnx"
    logging.disable(logging.WARNING)
    try:
        q.quantize_dynamic(
            str(saved(proto, folder, "float.onnx")), str(out), weight_type=q.QuantType[weights],
            op_types_to_quantize=["Conv", "MatMul", "Gemm", "LSTM"], **options,
        )  # fmt: skip
    finally:
        logging.disable(logging.NOTSET)
    return out


def dense(rng: np.random.Generator) -> Any:
    """With a bias behind it, before it, and none; one input that is read by two layers."""
    nodes = [
        node("Gemm", ["x", "v", "b"], "g", transB=1),
        node("Relu", ["g"], "r"),
        node("MatMul", ["r", "w"], "m"),
        node("Add", ["c", "m"], "a"),
        node("MatMul", ["r", "u"], "n"),
        node("Add", ["a", "n"], "y"),
    ]
    constants: dict[str, Array] = {
        "v": normal(rng, 12, 7), "b": normal(rng, 12), "w": normal(rng, 12, 5), "c": normal(rng, 5),
        "u": normal(rng, 12, 5),
    }  # fmt: skip
    return model(nodes, {"x": (3, 7)}, constants)


def images(rng: np.random.Generator) -> Any:
    nodes = [
        node("Conv", ["x", "v", "b"], "c", pads=[1, 0, 1, 2], strides=[2, 1]),
        node("Relu", ["c"], "r"),
        node("Conv", ["r", "w"], "d", group=4, pads=[1, 1, 1, 1]),
        node("Flatten", ["d"], "f"),
        node("MatMul", ["f", "u"], "y"),
    ]
    constants: dict[str, Array] = {
        "v": normal(rng, 4, 3, 3, 3), "b": normal(rng, 4), "w": normal(rng, 8, 1, 3, 3), "u": normal(rng, 192, 5)
    }  # fmt: skip
    return model(nodes, {"x": (1, 3, 8, 6)}, constants)


def rows(rng: np.random.Generator) -> Any:
    nodes = [node("Conv", ["x", "v", "b"], "y", pads=[1, 1])]
    return model(nodes, {"x": (1, 3, 9)}, {"v": normal(rng, 4, 3, 3), "b": normal(rng, 4)})


def expect_close(path: Path, found_by: Any, samples: int = 6) -> float:
    """The share of outputs that are not ONNX Runtime's to the last bit; all are within the last bits of float32."""
    rng = np.random.default_rng(9)
    shape = tuple(d.dim_value for d in onnx.load(path).graph.input[0].type.tensor_type.shape.dim)
    differ = total = 0
    for _ in range(samples):
        x = normal(rng, *shape)
        (wanted,) = run_onnxruntime(path, {"x": x})
        found = np.asarray(found_by.run(x))
        np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=1e-5, atol=1e-5)
        differ, total = differ + int((found != wanted).sum()), total + wanted.size
    return differ / total


@pytest.mark.parametrize("weights", ["QInt8", "QUInt8"])
@pytest.mark.parametrize("net", [dense, images, rows])
def test_beside_onnxruntime(net: Any, weights: str, tmp_path: Path) -> None:
    path = quantized(net(np.random.default_rng(3)), tmp_path, weights)
    program = from_onnx(path)
    layers = [n for n in program.graph.nodes if n.op in ("dynamic_linear", "dynamic_conv2d")]
    assert len(layers) == {dense: 3, images: 3, rows: 1}[net]
    assert {n.input(1).dtype for n in layers} == {DType.INT8}
    assert expect_close(path, program) == 0
    assert program.notes == () or {"9 bits" in note.text for note in program.notes} == {True}


def contrib(op: str, zero: int, *, biased: bool, per_channel: bool) -> Any:
    """ONNX Runtime's own nodes, which its optimizer makes of the others."""
    rng = np.random.default_rng(5)
    wide = (5,) if per_channel else ()
    kind = np.uint8 if zero else np.int8
    constants: dict[str, Array] = {
        "w": rng.integers(0, 128, (7, 5)).astype(kind),
        "ws": np.asarray(rng.uniform(0.01, 0.02, wide), np.float32),
        "wz": np.full(wide, zero, kind),
        "b": normal(rng, 5),
    }
    bias = ["b"] if biased else []
    if op == "DynamicQuantizeMatMul":
        nodes = [node(op, ["x", "w", "ws", "wz", *bias], "y", domain="com.microsoft")]
    else:
        made = helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"], name="net/q")
        behind = node(op, ["q", "w", "s", "ws", "z", "wz", *bias], "y", domain="com.microsoft")
        nodes = [made, behind]
    proto = model(nodes, {"x": (2, 7)}, constants)
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return proto


@pytest.mark.parametrize(("zero", "biased", "per_channel"), [(0, True, True), (3, False, False)])
@pytest.mark.parametrize("op", ["DynamicQuantizeMatMul", "MatMulIntegerToFloat"])
def test_nodes_of_onnxruntime(op: str, zero: int, biased: bool, per_channel: bool, tmp_path: Path) -> None:
    path = saved(contrib(op, zero, biased=biased, per_channel=per_channel), tmp_path)
    program = from_onnx(path, exact=True)
    assert [n.op for n in program.graph.nodes] == ["dynamic_linear"]
    assert expect_close(path, program) == 0


def test_an_optimized_model(tmp_path: Path) -> None:
    """As ONNX Runtime stores it, with nodes of its own."""
    import onnxruntime

    path = quantized(dense(np.random.default_rng(3)), tmp_path)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    own = {n.op_type for n in onnx.load(tmp_path / "optimized.onnx").graph.node}
    assert own & {"DynamicQuantizeMatMul", "MatMulIntegerToFloat"}
    program = from_onnx(tmp_path / "optimized.onnx")
    assert sum(n.op == "dynamic_linear" for n in program.graph.nodes) == 3
    assert expect_close(path, program) == 0


def test_a_bias_that_is_none(tmp_path: Path) -> None:
    """What is added is of another shape than one number a channel: it stays an addition."""
    proto = dense(np.random.default_rng(3))
    for each in proto.graph.initializer:
        if each.name == "c":
            each.CopyFrom(onnx.numpy_helper.from_array(normal(np.random.default_rng(1), 3, 5), "c"))
    path = quantized(proto, tmp_path)
    program = from_onnx(path)
    assert [n.op for n in program.graph.nodes].count("add") == 2
    assert expect_close(path, program) == 0


def test_what_is_not_such_a_layer(tmp_path: Path) -> None:
    """LSTMs, integers that somebody else reads, and calibration data beside what is quantized."""
    proto = contrib("MatMulIntegerToFloat", 0, biased=True, per_channel=False)
    proto.graph.node.append(helper.make_node("Cast", ["q"], ["f"], name="net/f", to=1))
    proto.graph.output.append(helper.make_tensor_value_info("f", onnx.TensorProto.FLOAT, None))
    with pytest.raises(UnsupportedOp, match="DynamicQuantizeLinear, node 0") as refused:
        from_onnx(saved(proto, tmp_path))
    assert "quantize_static" in str(refused.value)
    rng = np.random.default_rng(2)
    constants = {"w": normal(rng, 1, 16, 3), "r": normal(rng, 1, 16, 4)}
    lstm = helper.make_node("LSTM", ["x", "w", "r"], ["y"], name="net/lstm", hidden_size=4)
    path = quantized(model([lstm], {"x": (5, 1, 3)}, constants), tmp_path)
    with pytest.raises(UnsupportedOp, match="DynamicQuantizeLSTM") as refused:
        from_onnx(path)
    assert "float model" in str(refused.value)
    with pytest.raises(UsageError, match="calibration: the model is quantized already"):
        from_onnx(quantized(dense(rng), tmp_path), [normal(rng, 3, 7)])
