# SPDX-License-Identifier: Apache-2.0
"""What is computed of constants and shapes when an ONNX file is read: ONNX Runtime's numbers, for every operator that
the older exporter of torch writes; and what it leaves behind of masks and of assignments to slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.importers.onnx_models import helper, model, node, onnx, saved
from tinyet.errors import UnsupportedOp, UnsupportedShape
from tinyet.importers.onnx.fold import FOLDED, folded
from tinyet.importers.onnx.oracle import run_onnxruntime
from tinyet.importers.onnx.read import OnnxNode
from tinyet.ir import Array
from tinyet.ir.budget import Budget
from tinyet.opening.files import from_onnx

OPSET = 18
R = np.random.default_rng(5)


class Case(NamedTuple):
    inputs: Sequence[Any]
    attributes: Mapping[str, Any] = {}
    outputs: int = 1


def whole(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


A, B = whole(7, -7, 12, 5), whole(3, 3, -5, 2)
X = np.abs(R.standard_normal((3, 4))).astype(np.float32) + np.float32(0.1)
FLAGS = np.array([[True, False, True], [False, True, True]])
BITS = np.array([12, 5], np.uint8)
AXIS = whole(1)

CASES: dict[str, Case] = {
    **{op: Case([A, B]) for op in ("Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Equal", "Greater", "Less")},
    **{op: Case([A, B]) for op in ("GreaterOrEqual", "LessOrEqual")},
    "Pow": Case([A, np.abs(B)]),
    "Mod of floats": Case([A.astype(np.float32), B.astype(np.float32)], {"fmod": 1}),
    "Div of one by many": Case([whole(7), B]),
    **{op: Case([FLAGS, FLAGS[:1]]) for op in ("And", "Or", "Xor")},
    "Not": Case([FLAGS]),
    **{op: Case([X]) for op in ("Exp", "Log", "Sqrt", "Reciprocal", "Sin", "Cos", "Tanh", "Sigmoid", "Erf", "Relu")},
    **{op: Case([X * 3 - 2]) for op in ("Abs", "Neg", "Sign", "Floor", "Ceil", "Round", "Identity", "IsNaN", "IsInf")},
    "Sum": Case([X, X[:1], X]), "Mean": Case([X, X[:1]]), "MatMul": Case([X, X.T.copy()]),
    "BitShift": Case([BITS, np.array([1, 2], np.uint8)], {"direction": "LEFT"}),
    **{op: Case([BITS, BITS[::-1].copy()]) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")},
    "BitwiseNot": Case([BITS]),
    "Cast": Case([X * 9], {"to": 7}), "CastLike": Case([A, X]), "Clip": Case([A, np.int64(-3), np.int64(6)]),
    "Shape-like Size": Case([X]), "Range": Case([np.int64(2), np.int64(11), np.int64(4)]),
    "Where": Case([FLAGS, whole(1, 2, 3), whole(0)]), "Compress": Case([A, np.array([True, False, True])]),
    "Concat": Case([A, B], {"axis": 0}), "Flatten": Case([X], {"axis": 0}), "Reshape": Case([X, whole(2, -1)]),
    "Transpose": Case([X], {"perm": [1, 0]}), "Squeeze": Case([X[None], whole(0)]), "Unsqueeze": Case([X, whole(0, 3)]),
    "Slice": Case([A, whole(3), whole(0), whole(0), whole(-2)]), "Split": Case([A, whole(1, 3)], {"axis": 0}, 2),
    "Expand": Case([whole(4), whole(2, 3)]), "Tile": Case([A, whole(3)]), "Pad": Case([X, whole(0, 1, 2, 0)]),
    "Pad of an axis": Case([X, whole(1, 2), np.float32(3), whole(-1)]),
    "Gather": Case([X, np.array([[2, 0], [1, -1]])]), "GatherElements": Case([A, whole(3, -4)]),
    "GatherND": Case([X, np.array([[2, 3], [0, 1]])]),
    "ScatterElements": Case([A, whole(1, -1), whole(50, 60)]),
    "ScatterND": Case([A, np.array([[1], [3]]), whole(50, 60)]),
    "NonZero": Case([FLAGS]), "OneHot": Case([whole(0, 2), np.int64(3), whole(4, 9)]),
    "Trilu": Case([X, np.int64(1)], {"upper": 0}), "EyeLike": Case([X], {"k": 1}),
    "CumSum": Case([A, np.int64(0)], {"reverse": 1}), "TopK": Case([X, whole(2)], {"axis": 1}, 2),
    "ArgMax": Case([X], {"axis": 1}), "ArgMin": Case([X], {"axis": 0, "keepdims": 0}),
    **{f"Reduce{kind}": Case([X, AXIS]) for kind in ("Max", "Min", "Prod", "Mean", "L1", "L2", "SumSquare")},
    "ReduceSum": Case([A]),
}  # fmt: skip


class Charged(Budget):
    """bytes_held: what was asked for."""

    bytes_held = 0

    def hold(self, size: int) -> None:
        super().hold(size)
        self.bytes_held += size


def op_of(name: str) -> str:
    return {"Shape-like Size": "Size"}.get(name, name.split(maxsplit=1)[0])


def test_every_operator_is_here() -> None:
    assert {op_of(name) for name in CASES} == FOLDED


def test_numbers_are_onnxruntimes() -> None:
    """All of them in one model; and no result is larger than was charged for it."""
    pytest.importorskip("onnxruntime")
    nodes, held, names, wanted = [], [], [], []
    for index, (name, (inputs, attributes, count)) in enumerate(CASES.items()):
        op, reads = op_of(name), [f"i{index}_{k}" for k in range(len(inputs))]
        outputs = [f"o{index}_{k}" for k in range(count)]
        nodes.append(helper.make_node(op, reads, outputs, **attributes))
        held += [onnx.numpy_helper.from_array(np.asarray(x), n) for x, n in zip(inputs, reads, strict=True)]
        names += outputs
        one = OnnxNode(op, name, index, tuple(reads), tuple(outputs), attributes)
        given = [np.asarray(x) for x in inputs]
        charged = Charged()
        found = folded(one, given, OPSET, charged)
        assert 8 * sum(x.size for x in found) <= charged.bytes_held, name
        wanted += found
    nodes.append(node("Identity", ["x"], "y"))
    shaped = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for n, x in zip(names, wanted, strict=True)
    ]
    border = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1]) for n in "xy"]
    graph = helper.make_graph(nodes, "net", border[:1], [*shaped, border[1]], held)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    found = run_onnxruntime(proto.SerializeToString(), {"x": np.zeros(1, np.float32)})
    for title, ours, theirs in zip(names, wanted, found, strict=False):
        assert ours.dtype == theirs.dtype, title
        if ours.dtype.kind == "f":
            far = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
            assert (far <= 1e-6 * np.abs(theirs.astype(np.float64))).all(), title
        else:
            np.testing.assert_array_equal(ours, theirs, err_msg=title)


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        ("Pad", [np.zeros((1, 1), np.float32), whole(0, 0, 1 << 20, 1 << 20)]),
        ("OneHot", [whole(*range(64)), np.int64(1 << 40), whole(0, 1)]),
        ("MatMul", [np.zeros((1 << 16, 1), np.float32), np.zeros((1, 1 << 16), np.float32)]),
        ("GatherND", [np.zeros((2, 1 << 12), np.float32), np.zeros((1 << 14, 1), np.int64)]),
    ],
)
def test_what_grows_is_charged_before(op: str, inputs: Sequence[Array], tmp_path: Path) -> None:
    names = [f"c{k}" for k in range(len(inputs))]
    nodes = [
        node(op, names, "made"), node("Cast", ["made"], "f", to=1), node("ReduceSum", ["f"], "s", keepdims=0),
        node("Add", ["x", "s"], "y"),
    ]  # fmt: skip
    path = saved(model(nodes, {"x": (2, 3)}, dict(zip(names, inputs, strict=True))), tmp_path)
    with pytest.raises((UnsupportedShape, UnsupportedOp), match="elements of constants"):
        from_onnx(path)


# ---------------------------------------------------------------- networks of the older exporter

SHAPE = (1, 4, 6, 8)


def padded_to_fours() -> Any:
    """F.pad by (4 - h % 4) % 4 rows."""
    nodes = [
        node("Shape", ["x"], "shape"),
        node("Gather", ["shape", "two"], "h", axis=0),
        node("Mod", ["h", "four"], "m"),
        node("Sub", ["four", "m"], "d"),
        node("Mod", ["d", "four"], "rows"),
        node("Unsqueeze", ["rows", "zero"], "r"),
        node("Concat", ["zeros", "r", "zero"], "pads", axis=0),
        node("Pad", ["x", "pads"], "y"),
    ]
    return model(nodes, {"x": SHAPE}, {
        "two": np.array(2), "four": np.array(4), "zero": whole(0), "zeros": whole(0, 0, 0, 0, 0, 0),
    })  # fmt: skip


def masked() -> Any:
    """torch.where of a triangle, as in attention."""
    nodes = [
        node("ConstantOfShape", ["size"], "ones", value=helper.make_tensor("v", 1, [1], [1.0])),
        node("Trilu", ["ones", "one"], "t", upper=1),
        node("Cast", ["t"], "mask", to=9),
        node("Where", ["mask", "least", "x"], "y"),
    ]
    held = {"size": whole(6, 8), "one": np.array(1), "least": np.array(-9, np.float32)}
    return model(nodes, {"x": SHAPE}, held)


def written() -> Any:
    """y = x.clone(); y[:, 1:3, 2:] = 2 * x[:, :2, :4]; y[:, ::3] = 0.5"""
    at = np.stack(np.meshgrid([0], [1, 2], range(2, 6), range(8), indexing="ij"), -1)
    stripes = np.stack(np.meshgrid([0], [0, 3], indexing="ij"), -1)
    nodes = [
        node("Slice", ["x", "from", "to", "axes"], "part"),
        node("Mul", ["part", "twice"], "doubled"),
        node("ScatterND", ["x", "at", "doubled"], "first"),
        node("ScatterND", ["first", "stripes", "halves"], "y"),
    ]
    return model(nodes, {"x": SHAPE}, {
        "from": whole(0, 0), "to": whole(2, 4), "axes": whole(1, 2), "twice": np.array(2, np.float32),
        "at": at, "stripes": stripes, "halves": np.full((1, 2, 6, 8), 0.5, np.float32),
    })  # fmt: skip


def unfolded() -> Any:
    """Windows of two rows, by a Gather of two dimensions, and these once more."""
    nodes = [node("Gather", ["x", "windows"], "w", axis=2), node("Tile", ["w", "times"], "y")]
    return model(
        nodes, {"x": SHAPE}, {"windows": np.arange(5)[:, None] + np.arange(2), "times": whole(1, 2, 1, 1, 1)}
    )


@pytest.mark.parametrize("net", [padded_to_fours, masked, written, unfolded], ids=lambda n: n.__name__)
def test_networks(net: Any, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("onnxruntime")
    proto, x = net(), R.standard_normal(SHAPE).astype(np.float32)
    (wanted,) = run_onnxruntime(proto.SerializeToString(), {"x": x})
    np.testing.assert_array_equal(from_onnx(saved(proto, tmp_path)).run(x), wanted)


def test_scattered_values_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    nodes = [node("ScatterND", ["x", "at", "u"], "y")]
    proto = model(nodes, {"x": (4, 3), "u": (2, 3)}, {"at": np.array([[3], [0]])})
    with pytest.raises(UnsupportedShape, match="scattered indices"):
        from_onnx(saved(proto, tmp_path))
