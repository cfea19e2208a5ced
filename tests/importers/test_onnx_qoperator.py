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


# ---------------------------------------------------------------- each operator, of random integers

_KINDS = {"int8": onnx.TensorProto.INT8, "uint8": onnx.TensorProto.UINT8, "bool": onnx.TensorProto.BOOL}
IMAGE = (1, 3, 7, 9)
ONE = ("x", "s", "z", "t", "u")
TWO = ("x", "s", "z", "w", "s2", "z2", "t", "u")
GEMM = (*TWO[:6], "b", "t", "u")

Lone = tuple[str, tuple[str, ...], dict[str, tuple[int, ...]], dict[str, Any]]
"""An operator, what it reads, the shapes of those that are no constants, its attributes and its weights' shape."""


def pooling(**attributes: Any) -> Lone:
    return "QLinearAveragePool", ONE, {"x": IMAGE}, {"kernel_shape": [3, 2], **attributes}


CASES: dict[str, Lone] = {
    "Sigmoid": ("QLinearSigmoid", ONE, {"x": (4, 300)}, {}),
    "LeakyRelu": ("QLinearLeakyRelu", ONE, {"x": (4, 300)}, {"alpha": 0.17}),
    "Softmax": ("QLinearSoftmax", ONE, {"x": (4, 11)}, {"axis": -1, "opset": 13}),
    "Softmax of two axes": ("QLinearSoftmax", ONE, {"x": (2, 3, 5)}, {"axis": 1, "opset": 12}),
    "AveragePool": pooling(pads=[1, 0, 1, 1]),
    "AveragePool that counts": pooling(pads=[1, 0, 1, 1], count_include_pad=1),
    "AveragePool rounded up": pooling(ceil_mode=1, strides=[2, 2], pads=[1, 1, 1, 1]),
    "AveragePool of last": pooling(strides=[2, 2], channels_last=1),
    "GlobalAveragePool": ("QLinearGlobalAveragePool", ONE, {"x": IMAGE}, {}),
    "GlobalAveragePool of last": ("QLinearGlobalAveragePool", ONE, {"x": IMAGE}, {"channels_last": 1}),
    "Add": ("QLinearAdd", TWO, {"x": (2, 256), "w": (2, 256)}, {}),
    "Mul": ("QLinearMul", TWO, {"x": (2, 256), "w": (2, 256)}, {}),
    "Concat": (
        "QLinearConcat",
        ("t", "u", "x", "s", "z", "w", "s2", "z2"),
        {"x": (2, 256), "w": (2, 3)},
        {"axis": 1},
    ),
    "Where": ("QLinearWhere", ("c", *TWO), {"c": (2, 256), "x": (2, 256), "w": (2, 1)}, {}),
    "MatMul of two": ("QLinearMatMul", TWO, {"x": (2, 3, 20), "w": (2, 20, 7)}, {}),
    "MatMul": ("QLinearMatMul", TWO, {"x": (2, 3, 20)}, {"weights": (20, 7)}),
    "Gemm": ("QGemm", GEMM, {"x": (3, 20)}, {"weights": (20, 7)}),
    "Gemm times": ("QGemm", GEMM, {"x": (3, 20)}, {"weights": (20, 7), "alpha": 0.5}),
    "Conv": ("QLinearConv", (*TWO, "b"), {"x": (1, 4, 6, 6)}, {"weights": (6, 2, 3, 3), "group": 2}),
    "Conv of last": (
        "QLinearConv",
        (*TWO, "b"),
        {"x": (1, 6, 6, 4)},
        {"weights": (6, 2, 3, 3), "group": 2, "channels_last": 1, "pads": [1, 1, 0, 1]},
    ),
}


def integers(rng: Rng, kind: str, *shape: int) -> Array:
    low, high = (0, 2) if kind == "bool" else (-128, 128) if kind == "int8" else (0, 256)
    return np.asarray(rng.integers(low, high, shape), kind)


def real(number: float) -> Array:
    return np.asarray(number, np.float32)


def lone(name: str, kind: str, rng: Rng) -> tuple[Any, dict[str, Array]]:
    """A model of one operator with random scales, zero points and weights, and a sample."""
    op, reads, shapes, given = CASES[name]
    attributes = dict(given)
    weights = attributes.pop("weights", None)
    held: dict[str, Array] = {key: integers(rng, kind) for key in ("z", "z2", "u")}
    held |= {key: real(rng.uniform(0.01, 0.1)) for key in ("s", "s2")}
    held["t"] = real(rng.uniform(0.05, 0.3))
    if op in ("QLinearSigmoid", "QLinearSoftmax"):  # ONNX Runtime takes no others
        held |= {"t": real(1 / 256), "u": np.array(-128 if kind == "int8" else 0, kind)}
    if weights is not None:
        channels = weights[0] if op == "QLinearConv" else weights[-1]
        held |= {
            "w": integers(rng, kind, *weights),
            "b": rng.integers(-9999, 9999, channels).astype(np.int32),
        }
        if op == "QLinearConv":
            held["s2"] = rng.uniform(0.01, 0.02, channels).astype(np.float32)
            held["z2"] = np.full(channels, 0 if kind == "int8" else 3, kind)
    kinds = {key: "bool" if key == "c" else kind for key in shapes}
    domain = (
        "" if op in ("QLinearMatMul", "QLinearConv") and "channels_last" not in given else "com.microsoft"
    )
    made = helper.make_node(op, reads, ["y"], name="net/y", domain=domain, **attributes)
    constants = {key: held[key] for key in reads if key not in shapes}
    sample = {key: integers(rng, kinds[key], *shape) for key, shape in shapes.items()}
    return of_integers(made, {key: (kinds[key], shapes[key]) for key in shapes}, kind, constants), sample


def of_integers(
    made: Any, inputs: dict[str, tuple[str, tuple[int, ...]]], out: str, constants: dict[str, Array]
) -> Any:
    """A model of a node whose inputs and result are integers."""
    graph = helper.make_graph(
        [made],
        "net",
        [helper.make_tensor_value_info(key, _KINDS[kind], shape) for key, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info("y", _KINDS[out], None)],
        [onnx.numpy_helper.from_array(np.asarray(data), key) for key, data in constants.items()],
    )
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=8)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("name", CASES)
def test_each_operator(name: str, kind: str, tmp_path: Path) -> None:
    for seed in range(3):
        proto, sample = lone(name, kind, np.random.default_rng(seed))
        program = from_onnx(saved(proto, tmp_path))
        (wanted,) = run_onnxruntime(proto.SerializeToString(), sample)
        found = program.run(*(x.astype(np.int32) if x.dtype == np.bool_ else x for x in sample.values()))
        if name == "Add" and program.notes:  # scales for which there is no affine form
            assert np.abs(np.asarray(found, np.int64) - wanted.astype(np.int64)).max() <= 1
            continue
        np.testing.assert_array_equal(found, wanted)


def test_weights_of_the_whole_range(tmp_path: Path) -> None:
    """255 less a zero point of 0 is more than two bytes together hold."""
    held: dict[str, Array] = {
        "s": real(0.05), "z": np.array(3, np.uint8), "w": np.array([[255, 254, 0], [1, 255, 128]], np.uint8),
        "s2": real(0.01), "z2": np.array(0, np.uint8), "t": real(0.9), "u": np.array(9, np.uint8),
    }  # fmt: skip
    made = helper.make_node("QLinearMatMul", TWO, ["y"], name="net/y")
    proto = of_integers(made, {"x": ("uint8", (4, 2))}, "uint8", held)
    program = from_onnx(saved(proto, tmp_path), exact=True)
    assert "3 times the multiplications" in program.notes[0].text
    x = integers(np.random.default_rng(1), "uint8", 4, 2)
    np.testing.assert_array_equal(program.run(x), run_onnxruntime(proto.SerializeToString(), {"x": x})[0])


def test_a_result_in_float(tmp_path: Path) -> None:
    """A QGemm without a scale of its result."""
    proto, sample = lone("Gemm", "int8", np.random.default_rng(2))
    del proto.graph.node[0].input[-2:]
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None))
    (wanted,) = run_onnxruntime(proto.SerializeToString(), sample)
    found = np.asarray(from_onnx(saved(proto, tmp_path)).run(sample["x"]), np.float64)
    np.testing.assert_allclose(found, np.asarray(wanted, np.float64), rtol=1e-5, atol=1e-4)


def test_a_mean_that_onnxruntime_has_no_kernel_for(tmp_path: Path) -> None:
    """QLinearReduceMean is only defined there: it is the mean, rounded."""
    proto, sample = lone("GlobalAveragePool", "int8", np.random.default_rng(2))
    made = proto.graph.node[0]
    made.op_type = "QLinearReduceMean"
    made.attribute.append(helper.make_attribute("axes", [2, 3]))
    program = from_onnx(saved(proto, tmp_path))
    s, z, t, u = (np.asarray(onnx.numpy_helper.to_array(c), np.float64) for c in proto.graph.initializer)
    wanted = (sample["x"].astype(np.float64) - z).mean(axis=(2, 3), keepdims=True) * s / t + u
    found = np.asarray(program.run(sample["x"]), np.float64)
    assert np.abs(found - np.clip(wanted, -128, 127)).max() <= 0.5 + 1e-3


@pytest.mark.parametrize(
    ("op", "said"), [("QLinearTanh", "QuantFormat.QDQ"), ("MatMulIntegerToFloat", "quantize_dynamic")]
)
def test_what_is_not_known_is_refused_with_advice(op: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOp, match=f"{op}, node 0") as refused:
        from_onnx(saved(bytes_in_bytes_out(op), tmp_path))
    assert said in str(refused.value)
