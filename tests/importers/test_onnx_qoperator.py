# SPDX-License-Identifier: Apache-2.0
"""Models in the QOperator format have ONNX Runtime's answers, bit for bit, as those in the QDQ format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.importers.onnx_models import expect_equal, helper, model, node, onnx, quantized, saved
from tests.importers.test_onnx_integers import (
    Net,
    Rng,
    concat,
    conv1d,
    depthwise,
    matmul,
    normal,
    pools,
    residual,
)
from tinyet.errors import UnsupportedOp
from tinyet.importers.onnx.oracle import run_onnxruntime
from tinyet.ir import Array
from tinyet.opening.files import from_onnx

pytest.importorskip("onnxruntime")


def classifier(rng: Rng) -> Net:
    """What the QOperator format has operators of its own for, and a MaxPool, which has none."""
    nodes = [
        node("Conv", ["x", "w"], "c"),
        node("LeakyRelu", ["c"], "l", alpha=0.2),
        node("MaxPool", ["l"], "m", kernel_shape=[2, 2]),
        node("AveragePool", ["m"], "p", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 0, 0]),
        node("Sigmoid", ["p"], "s"),
        node("Mul", ["p", "s"], "u"),
        node("Flatten", ["u"], "f"),
        node("Gemm", ["f", "v", "b"], "g", transB=1),
        node("Softmax", ["g"], "y", axis=-1),
    ]
    constants: dict[str, Array] = {"w": normal(rng, 4, 3, 1, 1), "v": normal(rng, 6, 36), "b": normal(rng, 6)}
    return nodes, {"x": (1, 3, 8, 8)}, constants


@pytest.mark.parametrize("kind", ["s8s8", "u8u8"])
@pytest.mark.parametrize(
    "net", [classifier, residual, pools, concat, depthwise, conv1d, matmul], ids=lambda n: n.__name__
)
def test_equals_onnxruntime(net: Any, kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    nodes, inputs, constants = net(rng)
    samples = [{name: normal(rng, *shape) for name, shape in inputs.items()} for _ in range(4)]
    float_model = model(nodes, inputs, constants)
    proto = quantized(float_model, samples, kind, kind == "s8s8", form="QOperator")
    assert any(n.op_type.startswith("Q") and n.op_type != "QuantizeLinear" for n in proto.graph.node)
    program = from_onnx(saved(proto, tmp_path), exact=net is not residual)
    expect_equal(program, proto, samples)


def bytes_in_bytes_out(op: str, **attributes: Any) -> Any:
    """One operator without a QuantizeLinear or a DequantizeLinear."""
    held = {
        "s": np.array(0.05, np.float32), "z": np.array(3, np.int8), "w": np.array([[3, -4], [5, 90]], np.int8),
        "ws": np.array([0.01, 0.02], np.float32), "wz": np.zeros(2, np.int8), "t": np.array(0.07, np.float32),
    }  # fmt: skip
    made = helper.make_node(op, ["x", "s", "z", "w", "ws", "wz", "t", "z"], ["y"], name="net/y", **attributes)
    border = [helper.make_tensor_value_info(n, onnx.TensorProto.INT8, [1, 2]) for n in "xy"]
    initial = [onnx.numpy_helper.from_array(v, k) for k, v in held.items()]
    graph = helper.make_graph([made], "net", border[:1], border[1:], initial)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_integers_at_the_border(tmp_path: Path) -> None:
    path = saved(bytes_in_bytes_out("QLinearMatMul"), tmp_path)
    program, x = from_onnx(path, exact=True), np.array([[77, -100]], np.int8)
    assert [n.where for n in program.graph.nodes if n.op == "linear"] == [
        "net.y (net.onnx:0): node 0, MatMul"
    ]
    (wanted,) = run_onnxruntime(path, {"x": x})
    np.testing.assert_array_equal(program.run(x), wanted)


@pytest.mark.parametrize(
    ("op", "said"), [("QLinearWhere", "QOperator format"), ("MatMulIntegerToFloat", "quantized at run time")]
)
def test_what_is_not_known_is_refused_with_advice(op: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOp, match=f"{op}, node 0") as refused:
        from_onnx(saved(bytes_in_bytes_out(op), tmp_path))
    assert said in str(refused.value)
    assert "QuantFormat.QDQ" in str(refused.value)
