# SPDX-License-Identifier: Apache-2.0
"""Quantized ONNX models have ONNX Runtime's answers, bit for bit: drawn models, of each kind of integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.importers.onnx_models import Float32, expect_equal, helper, model, node, onnx, quantized, saved
from tests.ops.emulated import require_emulator
from tinyet.errors import UnsupportedShape
from tinyet.importers.onnx.oracle import run_onnxruntime
from tinyet.ir import Array, DType
from tinyet.opening.files import from_onnx
from tinyet.oracles import compare
from tinyet.program import Program
from tinyet.projects.one import generate

pytest.importorskip("onnxruntime")

Rng = np.random.Generator
Net = tuple[list[Any], dict[str, tuple[int, ...]], dict[str, Array]]
KINDS = ("s8s8", "u8s8", "u8u8")


def normal(rng: Rng, *shape: int, scale: float = 1.0) -> Float32:
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def conv(rng: Rng) -> Net:
    c, n, k = int(rng.integers(1, 9)), int(rng.integers(1, 9)), int(rng.integers(1, 4))
    attributes = {"strides": [int(rng.integers(1, 3))] * 2, "pads": [int(p) for p in rng.integers(0, k, 4)]}
    nodes = [node("Conv", ["x", "w", "b"], "c", **attributes), node("Relu", ["c"], "y")]
    return nodes, {"x": (1, c, 9, 8)}, {"w": normal(rng, n, c, k, k), "b": normal(rng, n)}


def depthwise(rng: Rng) -> Net:
    c, times = int(rng.integers(2, 8)), int(rng.integers(1, 3))
    nodes = [node("Conv", ["x", "w"], "y", group=c, auto_pad="SAME_UPPER", strides=[2, 1])]
    return nodes, {"x": (1, c, 7, 8)}, {"w": normal(rng, c * times, 1, 3, 3)}


def conv1d(rng: Rng) -> Net:
    nodes = [node("Conv", ["x", "w", "b"], "y", dilations=[2], pads=[2, 1], group=2)]
    return nodes, {"x": (1, 4, 20)}, {"w": normal(rng, 6, 2, 3), "b": normal(rng, 6)}


def gemm(rng: Rng) -> Net:
    k, n = int(rng.integers(1, 60)), int(rng.integers(1, 12))
    nodes = [node("Gemm", ["x", "w", "b"], "y", transB=1)]
    return nodes, {"x": (3, k)}, {"w": normal(rng, n, k), "b": normal(rng, n)}


def matmul(rng: Rng) -> Net:
    nodes = [node("MatMul", ["x", "w"], "m"), node("Relu", ["m"], "y")]
    return nodes, {"x": (2, 5, 17)}, {"w": normal(rng, 17, 6)}


def products(rng: Rng) -> Net:
    """Of values only, as attention has them: scores of four heads, and what they weigh."""
    nodes = [
        node("Transpose", ["z"], "t", perm=[0, 2, 1]),
        node("MatMul", ["x", "t"], "s"),
        node("MatMul", ["s", "z"], "m"),
        node("MatMul", ["m", "w"], "y"),
    ]
    return nodes, {"x": (4, 6, 9), "z": (4, 6, 9)}, {"w": normal(rng, 9, 5)}


def add(_rng: Rng) -> Net:
    nodes = [node("Add", ["x", "z"], "y")]
    return nodes, {"x": (1, 3, 8, 8), "z": (1, 3, 8, 8)}, {}


def mul(_rng: Rng) -> Net:
    nodes = [node("Mul", ["x", "z"], "y")]
    return nodes, {"x": (1, 3, 8, 8), "z": (1, 3, 8, 8)}, {}


def squeeze_excite(rng: Rng) -> Net:
    """A channel's weight for each of its pixels."""
    nodes = [
        node("GlobalAveragePool", ["x"], "g"),
        node("Conv", ["g", "w"], "c"),
        node("HardSigmoid", ["c"], "h", alpha=1 / 6),
        node("Mul", ["x", "h"], "y"),
    ]
    return nodes, {"x": (1, 6, 5, 5)}, {"w": normal(rng, 6, 6, 1, 1)}


def pools(rng: Rng) -> Net:
    nodes = [
        node("Conv", ["x", "w"], "c"),
        node("MaxPool", ["c"], "m", kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 0]),
        node("GlobalAveragePool", ["m"], "g"),
        node("Flatten", ["g"], "y"),
    ]
    return nodes, {"x": (1, 5, 9, 8)}, {"w": normal(rng, 7, 5, 1, 1)}


def ceiled_pool(rng: Rng) -> Net:
    nodes = [
        node("Conv", ["x", "w"], "c"),
        node("MaxPool", ["c"], "y", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    ]
    return nodes, {"x": (1, 3, 8, 10)}, {"w": normal(rng, 4, 3, 1, 1)}


def sigmoid(_rng: Rng) -> Net:
    return [node("Sigmoid", ["x"], "y")], {"x": (1, 300)}, {}


def leaky_relu(rng: Rng) -> Net:
    return [node("LeakyRelu", ["x"], "y", alpha=float(rng.uniform(0.01, 0.3)))], {"x": (1, 300)}, {}


def concat(rng: Rng) -> Net:
    nodes = [
        node("Conv", ["x", "w"], "c"),
        node("Concat", ["c", "x"], "j", axis=1),
        node("Transpose", ["j"], "t", perm=[0, 2, 3, 1]),
        node("Reshape", ["t", "s"], "y"),
    ]
    return nodes, {"x": (1, 3, 5, 4)}, {"w": normal(rng, 2, 3, 1, 1, scale=3), "s": np.array([0, -1])}


def resize(rng: Rng) -> Net:
    nodes = [
        node("Conv", ["x", "w"], "c"),
        node(
            "Resize",
            ["c", "", "f"],
            "y",
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        ),
    ]
    return nodes, {"x": (1, 2, 4, 3)}, {"w": normal(rng, 4, 2, 1, 1), "f": np.array([1, 1, 2, 3], np.float32)}


def residual(rng: Rng) -> Net:
    """A block of a residual network, and its head."""
    nodes = [
        node("Conv", ["x", "w1", "b1"], "c1", pads=[1, 1, 1, 1]),
        node("Relu", ["c1"], "r1"),
        node("Conv", ["r1", "w2", "b2"], "c2", pads=[1, 1, 1, 1]),
        node("Add", ["c2", "r1"], "a"),
        node("Clip", ["a", "zero", "six"], "r2"),
        node("GlobalAveragePool", ["r2"], "g"),
        node("Flatten", ["g"], "f"),
        node("Gemm", ["f", "w3", "b3"], "y"),
    ]
    constants: dict[str, Array] = {
        "w1": normal(rng, 8, 3, 3, 3, scale=0.3),
        "b1": normal(rng, 8),
        "w2": normal(rng, 8, 8, 3, 3, scale=0.1),
        "b2": normal(rng, 8),
        "w3": normal(rng, 8, 5),
        "b3": normal(rng, 5),
        "zero": np.array(0, np.float32),
        "six": np.array(6, np.float32),
    }
    return nodes, {"x": (1, 3, 8, 8)}, constants


EXACT: tuple[Callable[[Rng], Net], ...] = (
    conv, depthwise, conv1d, gemm, matmul, products, mul, pools, ceiled_pool, sigmoid, leaky_relu, concat, resize,
)  # fmt: skip
NOTED: tuple[Callable[[Rng], Net], ...] = (add, squeeze_excite, residual)


def made(
    net: Callable[[Rng], Net], kind: str, seed: int, per_channel: bool, path: Path, exact: bool
) -> tuple[Program, Any, Sequence[Mapping[str, Float32]]]:
    rng = np.random.default_rng(seed)
    nodes, inputs, constants = net(rng)
    samples = [{name: normal(rng, *shape) for name, shape in inputs.items()} for _ in range(6)]
    proto = quantized(model(nodes, inputs, constants), samples, kind, per_channel)
    return from_onnx(saved(proto, path), exact=exact), proto, samples


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("net", EXACT, ids=lambda n: n.__name__)
def test_equals_onnxruntime(net: Callable[[Rng], Net], kind: str, tmp_path: Path) -> None:
    for seed in range(3):
        program, proto, samples = made(net, kind, seed, per_channel=seed % 2 == 0, path=tmp_path, exact=True)
        expect_equal(program, proto, samples)
        assert program.inputs[0].dtype is DType.INT8


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("net", NOTED, ids=lambda n: n.__name__)
def test_of_several_operators(net: Callable[[Rng], Net], kind: str, tmp_path: Path) -> None:
    """Sums have no exact form for every pair of scales, and then a note; these have."""
    exact = 0
    for seed in range(4):
        program, proto, samples = made(net, kind, seed, per_channel=seed % 2 == 0, path=tmp_path, exact=False)
        if not any("65,536" in note.text for note in program.notes):
            expect_equal(program, proto, samples)
            exact += 1
    assert exact >= 3


def test_what_is_not_exact_is_said(tmp_path: Path) -> None:
    """Halves, which no affine form rounds to even."""
    rng = np.random.default_rng(0)
    x = helper.make_tensor_value_info
    scales = {"s": np.array(0.5, np.float32), "t": np.array(1.0, np.float32), "z": np.array(3, np.int8)}
    nodes = [
        node("DequantizeLinear", ["a", "s", "z"], "fa"),
        node("DequantizeLinear", ["b", "s", "z"], "fb"),
        node("Add", ["fa", "fb"], "fy"),
        node("QuantizeLinear", ["fy", "t", "z"], "y"),
    ]
    int8 = onnx.TensorProto.INT8
    graph = helper.make_graph(
        nodes,
        "net",
        [x("a", int8, [64]), x("b", int8, [64])],
        [x("y", int8, [64])],
        [onnx.numpy_helper.from_array(v, k) for k, v in scales.items()],
    )
    path = saved(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), tmp_path
    )
    program = from_onnx(path)
    (note,) = program.notes
    assert "of the 65,536" in note.text
    assert note.origin is not None
    assert note.origin.place == "net.fy (net.onnx:2)"
    a, b = (rng.integers(-128, 128, 64).astype(np.int8) for _ in "ab")
    (wanted,) = run_onnxruntime(path, {"a": a, "b": b})
    assert np.abs(np.asarray(program.run(a, b), np.int64) - wanted.astype(np.int64)).max() <= 1
    with pytest.raises(UnsupportedShape, match=r"of the 65,536"):
        from_onnx(path, exact=True)


def test_uint8_at_the_border(tmp_path: Path) -> None:
    """A model of bytes takes bytes and gives bytes."""
    rng = np.random.default_rng(5)
    nodes, inputs, constants = gemm(rng)
    samples = [{"x": normal(rng, *inputs["x"])} for _ in range(4)]
    proto = quantized(model(nodes, inputs, constants), samples, "u8u8")
    first, last = proto.graph.node[0], proto.graph.node[-1]
    quantizer = next(n for n in proto.graph.node if n.op_type == "QuantizeLinear" and n.input[0] == "x")
    proto.graph.node.remove(quantizer)
    proto.graph.node.remove(last)
    del first
    uint8 = onnx.TensorProto.UINT8
    proto.graph.input[0].CopyFrom(helper.make_tensor_value_info(quantizer.output[0], uint8, inputs["x"]))
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info(last.input[0], uint8, None))
    program = from_onnx(saved(proto, tmp_path), exact=True)
    assert (program.inputs[0].dtype, program.outputs[0].dtype) == (DType.UINT8, DType.UINT8)
    x = rng.integers(0, 256, inputs["x"]).astype(np.uint8)
    (wanted,) = run_onnxruntime(proto.SerializeToString(), {quantizer.output[0]: x})
    np.testing.assert_array_equal(program.run(x), wanted)


def test_float_at_the_border(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    nodes, inputs, constants = residual(rng)
    samples = [{"x": normal(rng, *inputs["x"])} for _ in range(4)]
    proto = quantized(model(nodes, inputs, constants), samples)
    program = from_onnx(saved(proto, tmp_path), float_io=True)
    assert (program.inputs[0].dtype, program.outputs[0].dtype) == (DType.FLOAT32, DType.FLOAT32)
    for sample in samples:
        (wanted,) = run_onnxruntime(proto.SerializeToString(), sample)
        np.testing.assert_array_equal(program.run(sample["x"]), wanted)


FUNCTIONS = {
    **dict.fromkeys(("Sigmoid", "HardSigmoid"), 1 / 256),
    **dict.fromkeys(("Tanh", "Erf"), 1 / 128),
    **dict.fromkeys(("LeakyRelu", "Elu", "HardSwish", "Exp", "Relu", "Abs", "Softplus", "Neg", "Mish"), 0.04),
    **dict.fromkeys(("Gelu", "Selu", "Celu", "ThresholdedRelu", "Sign", "Pow"), 0.04),
}


@pytest.mark.parametrize("op", FUNCTIONS)
def test_functions_of_one_byte(op: str, tmp_path: Path) -> None:
    """All 256 values, of several scales."""
    rng = np.random.default_rng(9)
    every = np.arange(-128, 128).astype(np.int8)
    for _ in range(3):
        constants = {
            "s": np.array(rng.uniform(0.01, 0.08), np.float32),
            "z": np.array(rng.integers(-128, 128), np.int8),
            "t": np.array(FUNCTIONS[op] * rng.uniform(0.8, 1.2), np.float32),
            "u": np.array(-20, np.int8),
        }
        nodes = [
            node("DequantizeLinear", ["a", "s", "z"], "f"),
            node(op, ["f", *(["e"] if op == "Pow" else [])], "g"),
            node("QuantizeLinear", ["g", "t", "u"], "y"),
        ]
        constants |= {"e": np.array(3, np.float32)} if op == "Pow" else {}
        sides = [[helper.make_tensor_value_info(n, onnx.TensorProto.INT8, [256])] for n in ("a", "y")]
        held = [onnx.numpy_helper.from_array(v, k) for k, v in constants.items()]
        graph = helper.make_graph(nodes, "net", *sides, held)
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=8)
        path = saved(proto, tmp_path)
        (wanted,) = run_onnxruntime(path, {"a": every})
        np.testing.assert_array_equal(from_onnx(path, exact=True).run(every), wanted)


@pytest.mark.emulated
def test_on_the_board(tmp_path: Path) -> None:
    """A small network of all kinds of layers, as firmware: ONNX Runtime's answers on a Cortex-M4 and a Cortex-M0."""
    require_emulator()
    program, proto, samples = made(residual, "s8s8", 1, True, tmp_path, exact=False)
    expect_equal(program, proto, samples)
    scale, zero = program.inputs[0].type.scale, program.inputs[0].type.zero_point
    given = [np.clip(np.rint(s["x"] / np.float32(scale)) + zero, -128, 127).astype(np.int8) for s in samples]
    for board in ("mps2_an386", "nrf51_dk"):
        project = generate(program, board, tmp_path / board, kind="cmake", sample=[given[0]])
        project.build()
        assert project.validate(np.concatenate(given), on="qemu").samples == len(given)
    data = np.stack([x[0] for x in given])
    project = generate(program, "mps2_an386", tmp_path / "beside", kind="cmake")
    on_host = project.validate(data, on="host")
    path = saved(proto, tmp_path)
    found = compare(path, program, [[x] for x in given], on_host.outputs)
    assert found.agrees
    assert found.runtime.startswith("ONNX Runtime")
    wrong = [[np.bitwise_xor(out[0], 1)] for out in on_host.outputs]
    assert compare(path, program, [[x] for x in given], wrong).differing == len(given)
