# SPDX-License-Identifier: Apache-2.0
"""ONNX files: what is checked before anything is made of them, and float models by way of torch."""

from __future__ import annotations

import random
import subprocess
import sys
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
        node("Unique", ["x"], "f"),
        node("Add", ["d", "f"], "y"),
    ]
    constants: dict[str, Array] = {"q": np.array(3, np.uint8), "s": np.array(0.5, np.float32)}
    for kind in (nodes, [n for n in nodes if n.op_type != "DequantizeLinear"]):
        path = saved(model(kind, {"x": (4, 4)}, constants), tmp_path)
        with pytest.raises(UnsupportedOp) as refused:
            from_onnx(path)
        text = str(refused.value)
        assert "Det, node 0 ('net/d'): is not supported" in text
        assert "Unique, node" in text
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


RESIZES: tuple[tuple[Mapping[str, tuple[int, ...]], list[float], dict[str, Any]], ...] = (
    (IMAGE, [1, 1, 0.5, 2], {"nearest_mode": "ceil"}),
    (IMAGE, [1, 1, 1.7, 0.6], {"coordinate_transformation_mode": "asymmetric"}),
    (IMAGE, [1, 2, 1, 1], {}),
    ({"x": (3, 5)}, [2, 3], {"coordinate_transformation_mode": "align_corners"}),
    (IMAGE, [1, 1, 1.7, 0.6], {"mode": "linear", "coordinate_transformation_mode": "asymmetric"}),
    (IMAGE, [1, 1, 3, 2], {"mode": "linear", "coordinate_transformation_mode": "align_corners"}),
    ({"x": (1, 2, 7)}, [1, 1, 2], {"mode": "linear"}),
    ({"x": (1, 2, 7)}, [1, 1, 3], {}),
)


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
    "LSTM of rows, backwards": one(
        "LSTM",
        {"x": (6, 2, 3)},
        {"w": normal(R, 1, 16, 3), "r": normal(R, 1, 16, 4), "b": normal(R, 1, 32), "h": normal(R, 1, 2, 4)},
        reads=["x", "w", "r", "b", "", "h"],
        hidden_size=4,
        direction="reverse",
        outputs=["y", "", "c"],
    ),
    **{op: one(op, {"x": (2, 5), "z": (1, 5), "u": (2, 1)}) for op in ("Sum", "Mean")},
    "Max of three": one("Max", {"x": (2, 5), "z": (1, 5), "u": (2, 1)}),
    **{name: one(name, ROW) for name in ("Celu", "Sign", "Reciprocal", "ThresholdedRelu")},
    **{f"Pow {n}": one("Pow", {"x": (2, 5)}, {"n": np.array(n, np.float32)}) for n in (2.0, 3.0)},
    "Gelu of tanh": one("Gelu", ROW, opset=20, approximate="tanh"),
    "InstanceNormalization": one("InstanceNormalization", IMAGE, {"s": normal(R, 4), "b": normal(R, 4)}),
    "GroupNormalization": one(
        "GroupNormalization", IMAGE, {"s": normal(R, 4), "b": normal(R, 4)}, num_groups=2, opset=21
    ),
    "GroupNormalization of groups": one(
        "GroupNormalization", IMAGE, {"s": normal(R, 2), "b": normal(R, 2)}, num_groups=2
    ),
    "AveragePool rounded up": one(
        "AveragePool", IMAGE, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 0, 1, 0], ceil_mode=1
    ),
    "AveragePool of one side": one("AveragePool", IMAGE, kernel_shape=[3, 3], pads=[1, 0, 0, 2]),
    "ReduceL1": one("ReduceL1", IMAGE, {"axes": np.array([1])}),
    "ReduceSumSquare": one("ReduceSumSquare", IMAGE, {"axes": np.array([1, 2])}, keepdims=0),
    "CumSum": one("CumSum", IMAGE, {"axis": np.array(2)}),
    "Tile": one("Tile", {"x": (1, 3, 2)}, {"n": np.array([2, 1, 3])}),
    "Gather of many": one("Gather", {"x": (24, 2)}, {"i": np.arange(0, 240, 10)[::-1] % 23}),
    "GatherElements": one(
        "GatherElements", IMAGE, {"i": np.array([3, 0, 2]).reshape(1, 3, 1, 1)[:, :, :, :]}, axis=1
    ),
    **{
        f"Einsum {equation}": one("Einsum", dict(zip("xz", shapes, strict=False)), equation=equation)
        for equation, shapes in {
            "bhid,bhjd->bhij": ((1, 2, 3, 4), (1, 2, 5, 4)),
            "ij,jk": ((3, 4), (4, 2)),
            "bi,bj->bji": ((2, 3), (2, 4)),
            "ijk->ki": ((2, 3, 4),),
            "ab,ab->": ((3, 4), (3, 4)),
            "ijk,jl->il": ((2, 3, 4), (3, 5)),
        }.items()
    },
    "Einsum of weights": one("Einsum", {"x": (2, 3, 4)}, {"w": normal(R, 4, 2, 5)}, equation="bsd,dhk->bhsk"),
    "Einsum of weights first": one(
        "Einsum", {"x": (3, 4)}, {"w": normal(R, 4, 5)}, reads=["w", "x"], equation="dk,sd->ks"
    ),
    "Where of a mask": one(
        "Where",
        ROW,
        {"m": np.array([[True, False] * 2 + [True]]), "e": np.array(-3.0, np.float32)},
        reads=["m", "x", "e"],
    ),
    "ScatterND": one("ScatterND", {"x": (4, 3)}, {"i": np.array([[1], [3]]), "u": normal(R, 2, 3)}, opset=17),
    "ScatterND of values": one(
        "ScatterND",
        {"x": (4, 3), "u": (2, 3)},
        {"i": np.array([[1], [2]])},
        reads=["x", "i", "u"],
        opset=17,
    ),
    **{
        f"Resize {number}": one(
            "Resize", shape, {"f": np.array(factors, np.float32)}, reads=["x", "", "f"], **attributes
        )
        for number, (shape, factors, attributes) in enumerate(RESIZES)
    },
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


def whole(nodes: list[Any], inputs: Mapping[str, Any], constants: Mapping[str, Array]) -> Any:
    """A model whose inputs may be of other types than float32: name → (type, shape)."""
    proto = model(nodes, {}, constants, opset=18)
    kinds = {
        "int64": onnx.TensorProto.INT64,
        "bool": onnx.TensorProto.BOOL,
        "float32": onnx.TensorProto.FLOAT,
    }
    proto.graph.input.extend(
        helper.make_tensor_value_info(name, kinds[kind], shape) for name, (kind, shape) in inputs.items()
    )
    kind = kinds["float32"] if nodes[-1].op_type in ("Cast", "Where", "Gather") else kinds["int64"]
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", kind, None))
    return proto


NUMBERS = {"x": ("int64", (3, 5)), "z": ("int64", (1, 5))}
WHOLE: dict[str, Any] = {
    **{op: whole([node(op, ["x", "z"], "y")], NUMBERS, {}) for op in ("Add", "Sub", "Mul", "Max", "Min")},
    "Div": whole([node("Div", ["x", "n"], "y")], {"x": NUMBERS["x"]}, {"n": np.array(-3)}),
    "Mod": whole([node("Mod", ["x", "n"], "y")], {"x": NUMBERS["x"]}, {"n": np.array(3)}),
    "fmod": whole([node("Mod", ["x", "n"], "y", fmod=1)], {"x": NUMBERS["x"]}, {"n": np.array(3)}),
    **{op: whole([node(op, ["x"], "y")], {"x": NUMBERS["x"]}, {}) for op in ("Abs", "Neg", "Sign")},
    **{
        op: whole([node(op, ["x", "a"], "y", keepdims=0)], {"x": NUMBERS["x"]}, {"a": np.array([1])})
        for op in ("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin")
    },
    "Concat": whole([node("Concat", ["x", "n"], "y", axis=0)], {"x": NUMBERS["x"]}, {"n": np.ones((1, 5), np.int64)}),
    "Clip": whole([node("Clip", ["x", "n"], "y")], {"x": NUMBERS["x"]}, {"n": np.array(1)}),
    **{
        op: whole([node(op, ["x", "z"], "m"), node("Cast", ["m"], "y", to=1)], NUMBERS, {})
        for op in ("Equal", "Less", "GreaterOrEqual")
    },
    "logic": whole(
        [node("Not", ["x"], "n"), node("And", ["n", "z"], "a"), node("Or", ["a", "x"], "o"),
         node("Xor", ["o", "z"], "p"), node("Cast", ["p"], "y", to=1)],
        {"x": ("bool", (3, 5)), "z": ("bool", (1, 5))},
        {},
    ),
    "ArgMin": whole([node("ArgMin", ["x"], "y", axis=1, keepdims=0)], {"x": ("float32", (3, 5))}, {}),
    "a computed mask": whole(
        [node("Greater", ["x", "z"], "m"), node("Where", ["m", "x", "z"], "y")],
        {"x": ("float32", (3, 5)), "z": ("float32", (1, 5))},
        {},
    ),
    "computed places": whole(
        [node("Mod", ["x", "n"], "p"), node("Gather", ["z", "p"], "y", axis=1)],
        {"x": ("int64", (3, 2)), "z": ("float32", (2, 4))},
        {"n": np.array(4)},
    ),
    "a table": whole(
        [node("Mod", ["x", "n"], "p"), node("Gather", ["t", "p"], "y")],
        {"x": ("int64", (3, 2))},
        {"n": np.array(4), "t": normal(R, 4, 6)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_and_truth(name: str, tmp_path: Path) -> None:
    """Exactly ONNX Runtime's."""
    pytest.importorskip("onnxruntime")
    proto, rng = WHOLE[name], np.random.default_rng(8)
    given: dict[str, Array] = {}
    for each in proto.graph.input:
        kind, shape = each.type.tensor_type.elem_type, [d.dim_value for d in each.type.tensor_type.shape.dim]
        low, high = (0, 2) if kind == onnx.TensorProto.BOOL else (-3, 4)
        given[each.name] = rng.integers(low, high, shape).astype(helper.tensor_dtype_to_np_dtype(kind))
    program = from_onnx(saved(proto, tmp_path))
    (wanted,) = run_onnxruntime(proto.SerializeToString(), given)
    taken = [x.astype(t.dtype.numpy) for x, t in zip(given.values(), program.inputs, strict=True)]
    np.testing.assert_array_equal(program.run(*taken), wanted)


def test_without_torch(tmp_path: Path) -> None:
    """A float model that stays one, from its file to a project's C, in a process that has no torch."""
    path = saved(small(np.random.default_rng(2)), tmp_path)
    script = f"""
import sys
sys.modules["torch"] = sys.modules["torchao"] = None
import tinyet, tinyet.errors
program = tinyet.from_onnx({str(path)!r}, channels_last=True)
opened = tinyet.open({str(path)!r}, strict=False)
print([node.op for node in program.graph.nodes], program.inputs[0].shape, opened.inputs[0].shape)
try:
    tinyet.from_onnx({str(path)!r}, [1])
except tinyet.errors.ToolchainError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=300
    )
    assert "'conv2d'" in done.stdout
    assert "(1, 8, 8, 3) (1, 3, 8, 8)" in done.stdout
    assert "quantized by way of torch, which is not there" in done.stdout


def test_states_are_carried_on(tmp_path: Path) -> None:
    """A stateful program begins where the run before has stopped, as a longer sequence would."""
    rng = np.random.default_rng(4)
    constants = {"w": normal(rng, 1, 16, 3), "r": normal(rng, 1, 16, 4)}
    x = normal(rng, 6, 1, 3)
    wanted = from_onnx(saved(one("LSTM", {"x": (6, 1, 3)}, constants, hidden_size=4), tmp_path)).run(x)
    path = saved(one("LSTM", {"x": (3, 1, 3)}, constants, hidden_size=4), tmp_path)
    session = from_onnx(path, stateful=True).session()
    halves = [np.asarray(session.run(part)) for part in (x[:3], x[3:])]
    np.testing.assert_array_equal(np.concatenate(halves), wanted)


def test_layers_by_their_names(tmp_path: Path) -> None:
    """A quantizer's settings go by the file's names, and so do notes and reports."""
    from tinyet import TinyetQuantizer, int16_config

    rng = np.random.default_rng(2)
    path = saved(small(rng), tmp_path)
    data = [torch.from_numpy(normal(rng, 1, 3, 8, 8)) for _ in range(8)]
    quantizer = TinyetQuantizer().set_module_name("net.y", int16_config())
    program = from_onnx(path, data, quantizer=quantizer)
    (linear,) = [n for n in program.graph.nodes if n.op == "linear"]
    assert linear.output.dtype is DType.INT16
    assert linear.where == "net.y (net.onnx:7): node 7, Gemm"
    (conv,) = [n for n in program.graph.nodes if n.op == "conv2d"]
    assert conv.output.dtype is DType.INT8


def test_options_of_a_float_model(tmp_path: Path) -> None:
    path = saved(small(np.random.default_rng(2)), tmp_path)
    with pytest.raises(UsageError, match="no input has four dimensions"):
        from_onnx(saved(one("Relu", ROW), tmp_path, "rows.onnx"), channels_last=True)
    with pytest.raises(ModelError, match="compute in float"):
        from_onnx(path, strict=True)
    with pytest.raises(UsageError, match="delegates choose kernels for a board"):
        from_onnx(path, delegates=["portable"])
    with pytest.raises(TinyetError, match="no calibration data"):
        from_onnx(path, equalize=True)
    with pytest.raises(TypeError):
        from_onnx(path, colour="red")
    assert from_onnx(path, board="mps2_an386", labels=list("abcde")).labels == tuple("abcde")


@pytest.mark.parametrize(
    ("equation", "inputs", "said"),
    [
        ("ii->i", 1, "no ellipsis"),
        ("...i->...", 1, "no ellipsis"),
        ("ij,jk,kl->il", 3, "one or two operands"),
        ("ij,ik->jk", 2, "sizes 2 and 3 for 'i'"),
        ("ij,kj->il", 2, "of the operands'"),
        ("ijk,kl->il", 2, "calls dimensions of"),
    ],
)
def test_sums_that_are_no_product_of_matrices(equation: str, inputs: int, said: str, tmp_path: Path) -> None:
    shapes = dict(zip("xzu", ((2, 3), (3, 3), (3, 2)), strict=True))
    given = dict(list(shapes.items())[:inputs])
    with pytest.raises(ModelError, match=said):
        from_onnx(saved(one("Einsum", given, equation=equation), tmp_path))


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
