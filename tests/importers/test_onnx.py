# SPDX-License-Identifier: Apache-2.0
"""ONNX files: what is checked before anything is made of them, and float models by way of torch."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.importers.onnx_models import Float32, helper, model, node, onnx, quantized, saved
from tinyet import ops
from tinyet.errors import DynamicShape, ModelError, TinyetError, UnsupportedOp, UsageError
from tinyet.importers.onnx.importer import import_model
from tinyet.importers.onnx.oracle import run_onnxruntime
from tinyet.importers.onnx.read import parse, read_model
from tinyet.ir import Array, DType
from tinyet.opening import ModelOptions, kind_of, read
from tinyet.opening.files import from_onnx

torch = pytest.importorskip("torch")


def normal(rng: np.random.Generator, *shape: int) -> Float32:
    return rng.standard_normal(shape).astype(np.float32)


def small(rng: np.random.Generator, **given: Any) -> Any:
    nodes = [
        node("Conv", ["x", "w", "b"], "c", pads=[1, 1, 1, 1]),
        node("Relu", ["c"], "r"),
        node("GlobalAveragePool", ["r"], "g"),
        node("Shape", ["g"], "size"),
        node("Gather", ["size", "zero"], "n", axis=0),
        node("Concat", ["n", "rest"], "s", axis=0),
        node("Reshape", ["g", "s"], "f"),
        node("Gemm", ["f", "v"], "y"),
    ]
    constants: dict[str, Array] = {
        "w": normal(rng, 4, 3, 3, 3),
        "b": normal(rng, 4),
        "v": normal(rng, 4, 5),
        "zero": np.array([0]),
        "rest": np.array([-1]),
    }
    return model(nodes, {"x": (1, 3, 8, 8)}, constants, **given)


# ---------------------------------------------------------------- files


def test_what_is_no_model(tmp_path: Path) -> None:
    for data in (b"", b"\x00" * 40, b"nothing of the kind", onnx.ModelProto().SerializeToString()):
        with pytest.raises(ModelError):
            read_model(data, "a.onnx", "a.onnx")
    with pytest.raises(ModelError, match="cannot be read"):
        from_onnx(tmp_path / "absent.onnx")


def test_old_opsets_are_refused() -> None:
    proto = small(np.random.default_rng(0), opset=12)
    with pytest.raises(ModelError, match="opset 12") as refused:
        read_model(proto.SerializeToString(), "a.onnx", "a.onnx")
    assert "convert_version" in str(refused.value)


def test_constants_in_other_files_are_refused() -> None:
    proto = small(np.random.default_rng(0))
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    with pytest.raises(ModelError, match="another file"):
        read_model(proto.SerializeToString(), "a.onnx", "a.onnx")


def test_sizes_that_are_not_known() -> None:
    """The first dimension is a batch, of which one is taken; others have no number."""
    proto = small(np.random.default_rng(0))
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    found = read_model(proto.SerializeToString(), "a.onnx", "a.onnx")
    assert found.inputs[0].shape == (1, 3, 8, 8)
    assert found.notes == ("input 'x': its first dimension ('batch') is taken as 1",)
    proto.graph.input[0].type.tensor_type.shape.dim[3].dim_param = "width"
    with pytest.raises(DynamicShape, match="dimension 3 of input 'x' is 'width'"):
        read_model(proto.SerializeToString(), "a.onnx", "a.onnx")


def test_all_complaints_at_once_with_their_places(tmp_path: Path) -> None:
    nodes = [
        node("Det", ["x"], "d"),
        node("DequantizeLinear", ["q", "s"], "e"),
        node("Einsum", ["x"], "f", equation="ij->ji"),
        node("Add", ["d", "f"], "y"),
    ]
    constants: dict[str, Array] = {"q": np.array(3, np.uint8), "s": np.array(0.5, np.float32)}
    for kind in (nodes, [n for n in nodes if n.op_type != "DequantizeLinear"]):
        path = saved(model(kind, {"x": (4, 4)}, constants), tmp_path)
        with pytest.raises(UnsupportedOp) as refused:
            from_onnx(path)
        text = str(refused.value)
        assert "Det, node 0 ('net/d'): is not supported" in text
        assert "Einsum, node" in text
        assert "net.onnx" in text


def test_names_given_twice_or_never() -> None:
    first = model([node("Relu", ["z"], "y")], {"x": (3,)}, {})
    with pytest.raises(ModelError, match="'z', which nothing before it gives"):
        read_model(first.SerializeToString(), "a.onnx", "a.onnx")
    second = model([node("Relu", ["x"], "y"), node("Abs", ["x"], "y")], {"x": (3,)}, {})
    with pytest.raises(ModelError, match="gives 'y' again"):
        read_model(second.SerializeToString(), "a.onnx", "a.onnx")


def test_mutated_files_end_in_an_error_of_ours() -> None:
    """A few bytes, or a field, of a quantized model changed: it is taken whole, or refused; never anything else."""
    rng = np.random.default_rng(1)
    samples = [{"x": normal(rng, 1, 3, 8, 8)} for _ in range(3)]
    data = quantized(small(rng), samples).SerializeToString()
    drawn = random.Random(4)
    taken, refused = 0, set[str]()
    for round_ in range(400):
        broken = bytearray(data)
        if round_ % 2:
            broken = bytearray(_field_changed(data, drawn))
        else:
            for _ in range(drawn.randint(1, 4)):
                broken[drawn.randrange(len(broken))] = drawn.randrange(256)
        try:
            graph, _ = import_model(read_model(bytes(broken), "a.onnx", "a.onnx"), name="net")
            ops.check(graph, "import")
            taken += 1
        except TinyetError as error:
            refused.add(error.title)
    assert 50 < taken < 350
    assert refused <= {
        "model error",
        "unsupported operator",
        "unsupported shape",
        "dynamic shape",
        "quantization error",
    }


def _field_changed(data: bytes, drawn: random.Random) -> bytes:
    proto = parse(data, "a.onnx")
    graph = proto.graph
    chosen = drawn.choice(graph.node)
    constant = drawn.choice(graph.initializer)
    number = drawn.choice([-(2**62), -1, 0, 1, 3, 127, 2**31, 2**62])
    changes: list[Callable[[], Any]] = [
        lambda: chosen.input.append(constant.name),
        lambda: chosen.input.pop() if chosen.input else None,
        lambda: setattr(chosen, "op_type", drawn.choice(graph.node).op_type),
        lambda: chosen.input.__setitem__(0, drawn.choice(graph.node).output[0]),
        lambda: chosen.attribute.append(helper.make_attribute(drawn.choice(["axis", "group"]), number)),
        lambda: chosen.attribute.append(
            helper.make_attribute(drawn.choice(["pads", "strides"]), [number] * 4)
        ),
        lambda: constant.dims.append(number),
        lambda: setattr(constant, "data_type", drawn.randrange(24)),
        lambda: setattr(constant, "raw_data", constant.raw_data[: drawn.randrange(9)]),
        lambda: constant.CopyFrom(
            onnx.numpy_helper.from_array(np.full((3,), drawn.choice([np.nan, 0, -1])), constant.name)
        ),
        lambda: setattr(graph.input[0].type.tensor_type.shape.dim[drawn.randrange(4)], "dim_value", number),
        lambda: setattr(graph.output[0], "name", drawn.choice(graph.node).output[0]),
    ]
    drawn.choice(changes)()
    return bytes(proto.SerializeToString())


# ---------------------------------------------------------------- float models

R = np.random.default_rng(3)
ROW = {"x": (2, 5)}
IMAGE = {"x": (1, 4, 6, 8)}


ELEMENTS = (
    *(
        "Abs",
        "Ceil",
        "Cos",
        "Elu",
        "Erf",
        "Exp",
        "Floor",
        "HardSigmoid",
        "HardSwish",
        "LeakyRelu",
        "Mish",
        "Neg",
    ),
    *("Relu", "Selu", "Sigmoid", "Sin", "Softmax", "Softplus", "Tanh"),
)


def one(
    op: str,
    shapes: Mapping[str, tuple[int, ...]],
    constants: Mapping[str, Array] | None = None,
    **attributes: Any,
) -> Any:
    """A model of one node, that reads all inputs and constants in order."""
    names = [*shapes, *(constants or {})]
    outputs = attributes.pop("outputs", ["y"])
    opset = attributes.pop("opset", 18)
    made = helper.make_node(op, attributes.pop("reads", names), outputs, name=f"net/{op}", **attributes)
    return model([made], shapes, constants or {}, outputs=[o for o in outputs if o], opset=opset)


FLOATS: dict[str, Any] = {
    **{name: one(name, ROW) for name in ELEMENTS},
    "Gelu": one("Gelu", ROW, opset=20),
    "Clip": one("Clip", ROW, {"low": np.array(-0.5, np.float32), "high": np.array(0.7, np.float32)}),
    "PRelu": one("PRelu", IMAGE, {"slope": normal(R, 4, 1, 1)}),
    **{op: one(op, {"x": (2, 5), "z": (1, 5)}) for op in ("Add", "Sub", "Mul", "Max", "Min")},
    "Div": one("Div", ROW, {"d": np.abs(normal(R, 5)) + 1}),
    "Conv": one("Conv", IMAGE, {"w": normal(R, 6, 2, 3, 3), "b": normal(R, 6)}, group=2, pads=[0, 1, 2, 1]),
    "ConvTranspose": one("ConvTranspose", IMAGE, {"w": normal(R, 4, 3, 2, 2)}, strides=[2, 2]),
    "Conv1d": one("Conv", {"x": (1, 3, 12)}, {"w": normal(R, 2, 3, 3)}, auto_pad="SAME_UPPER"),
    "Gemm": one("Gemm", ROW, {"w": normal(R, 5, 3), "b": normal(R, 3)}, alpha=0.5),
    "MatMul": one("MatMul", {"x": (2, 3, 5), "z": (2, 5, 4)}),
    "BatchNormalization": one(
        "BatchNormalization", IMAGE, {k: np.abs(normal(R, 4)) + 0.1 for k in ("s", "b", "m", "v")}
    ),
    "LayerNormalization": one("LayerNormalization", ROW, {"s": normal(R, 5), "b": normal(R, 5)}),
    "MaxPool": one("MaxPool", IMAGE, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 0]),
    "AveragePool": one("AveragePool", IMAGE, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    "GlobalMaxPool": one("GlobalMaxPool", IMAGE),
    "ReduceMean": one("ReduceMean", IMAGE, {"axes": np.array([1, 3])}, keepdims=0),
    "ReduceSum": one("ReduceSum", IMAGE, {"axes": np.array([2])}),
    "ReduceL2": one("ReduceL2", IMAGE, {"axes": np.array([-1])}),
    "LogSoftmax": one("LogSoftmax", ROW, axis=0),
    "Flatten": one("Flatten", IMAGE, axis=2),
    "Transpose": one("Transpose", IMAGE, perm=[0, 3, 1, 2]),
    "Unsqueeze": one("Unsqueeze", ROW, {"axes": np.array([0, 3])}),
    "Slice": one(
        "Slice",
        IMAGE,
        {"a": np.array([1, 0]), "e": np.array([6, 99]), "d": np.array([3, 2]), "s": np.array([2, 1])},
    ),
    "Split": one("Split", IMAGE, {"s": np.array([1, 3])}, axis=1, outputs=["y", "z"]),
    "Gather": one("Gather", IMAGE, {"i": np.array([2, 0])}, axis=1),
    "Concat": one("Concat", {"x": (2, 3), "z": (2, 4)}, axis=1),
    "Pad": one("Pad", IMAGE, {"p": np.array([0, 0, 1, 2, 0, 0, 0, 1])}, mode="reflect"),
    "Expand": one("Expand", {"x": (1, 5)}, {"s": np.array([3, 1])}),
    "Resize": one(
        "Resize", IMAGE, {"f": np.array([1, 1, 2, 2], np.float32)}, reads=["x", "", "f"], mode="linear"
    ),
    "DepthToSpace": one("DepthToSpace", IMAGE, blocksize=2, mode="CRD"),
    "SpaceToDepth": one("SpaceToDepth", IMAGE, blocksize=2),
    "LSTM": one(
        "LSTM",
        {"x": (6, 1, 3)},
        {"w": normal(R, 2, 16, 3), "r": normal(R, 2, 16, 4), "b": normal(R, 2, 32)},
        hidden_size=4,
        direction="bidirectional",
        outputs=["y", "h", "c"],
    ),
    "GRU": one(
        "GRU",
        {"x": (6, 1, 3)},
        {"w": normal(R, 1, 12, 3), "r": normal(R, 1, 12, 4), "b": normal(R, 1, 24)},
        hidden_size=4,
        linear_before_reset=1,
        outputs=["", "h"],
    ),
    "RNN": one(
        "RNN",
        {"x": (6, 1, 3)},
        {"w": normal(R, 1, 4, 3), "r": normal(R, 1, 4, 4)},
        hidden_size=4,
        outputs=["y", "h"],
    ),
}


@pytest.mark.parametrize("name", FLOATS)
def test_float_operator(name: str, tmp_path: Path) -> None:
    """Beside ONNX Runtime in float32: functions and the order of sums are another's."""
    pytest.importorskip("onnxruntime")
    proto = FLOATS[name]
    rng = np.random.default_rng(8)
    inputs = {
        i.name: normal(rng, *(d.dim_value for d in i.type.tensor_type.shape.dim)) for i in proto.graph.input
    }
    program = from_onnx(saved(proto, tmp_path))
    found = program.run(*inputs.values())
    results = found if isinstance(found, list) else [found]
    for result, wanted in zip(results, run_onnxruntime(proto.SerializeToString(), inputs), strict=True):
        assert result.shape == wanted.shape
        np.testing.assert_allclose(
            np.asarray(result, np.float64), np.asarray(wanted, np.float64), rtol=2e-5, atol=5e-6
        )
    assert {node.origins[-1].file for node in program.graph.nodes if node.origins[-1].file} <= {"net.onnx"}


def test_a_float_model_is_quantized(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    path = saved(small(rng), tmp_path)
    data = [torch.from_numpy(normal(rng, 1, 3, 8, 8)) for _ in range(16)]
    program = from_onnx(path, data)
    assert all(t.dtype is DType.INT8 for n in program.graph.nodes for t in n.outputs)
    assert [t.name for t in program.inputs] == ["x"]
    (conv,) = [n for n in program.graph.nodes if n.op == "conv2d"]
    assert conv.where == "net.c (net.onnx:0): node 0, Conv"
    x = data[0].numpy()
    wanted = np.asarray(run_onnxruntime(path, {"x": x})[0], np.float64)
    found = np.asarray(program.run(x, as_float=True), np.float64)
    assert np.abs(found - wanted).max() < 0.1 * np.abs(wanted).max()


def test_arguments_without_effect(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    path = saved(small(rng), tmp_path)
    with pytest.raises(UsageError, match="exact=True"):
        from_onnx(path, exact=True)
    whole = saved(quantized(small(rng), [{"x": normal(rng, 1, 3, 8, 8)}]), tmp_path, "q.onnx")
    with pytest.raises(UsageError, match="calibration: the model is quantized already"):
        from_onnx(whole, [torch.zeros(1, 3, 8, 8)])
    assert kind_of(str(whole)) == ".onnx"
    with pytest.raises(UsageError, match="channels_last: this ONNX model is quantized already"):
        read(str(whole), ModelOptions(channels_last=True))
    compiled = read(str(whole), ModelOptions(name="keywords"))
    assert compiled.program.name == "keywords"
    np.savez(tmp_path / "data.npz", x=normal(rng, 8, 3, 8, 8))
    floats = read(str(path), ModelOptions(calibration=tmp_path / "data.npz"))
    assert floats.program.inputs[0].dtype is DType.INT8
