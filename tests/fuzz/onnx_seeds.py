# SPDX-License-Identifier: Apache-2.0
"""Small .onnx files that between them use every operator that the importer knows: in float32, between QuantizeLinear
and DequantizeLinear, and of constants alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.fuzz.onnx_seeds_own import own_seeds
from tests.importers.onnx_models import helper, model
from tinyet.ir import Array

Shape = tuple[int, ...]


def floats(*shape: int) -> Array:
    """Reals that differ, around zero."""
    count = int(np.prod(shape))
    return (
        np.linspace(-1.0, 1.0, count, dtype=np.float32) if count > 1 else np.full(1, 0.5, np.float32)
    ).reshape(shape)


def ints(*values: Any) -> Array:
    return np.array(values, np.int64)


IMAGE: Shape = (1, 2, 4, 6)
ROWS: Shape = (2, 6)
ABSENT = np.zeros(0, np.float32)
"""In place of an input that is not there."""


@dataclass(frozen=True)
class Layer:
    """A node that reads constants, x, and constants behind it. outputs: how many it has. floats_only: whether it is
    taken in float models alone. whole: whether x is whole numbers, or truth values, and what comes out is."""

    op: str
    x: Shape = ROWS
    held: Sequence[Array] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    floats_only: bool = False
    whole: bool = False
    before: Sequence[Array] = ()


_PLAIN = """
    Abs Ceil Celu Cos Elu Erf Exp Floor HardSigmoid HardSwish Identity LeakyRelu Log LogSoftmax Mish Neg Reciprocal Relu
    Round Selu Sigmoid Sign Sin Softmax Softplus Sqrt Tanh ThresholdedRelu
""".split()  # noqa: SIM905
_POOL = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [0, 0, 1, 1]}

_PAIRS = (
    "Add And BitwiseAnd BitwiseOr BitwiseXor Div Max Min Mod Mul Or Sub Sum Xor".split()  # noqa: SIM905
)
_RELATIONS = "Equal Greater GreaterOrEqual Less LessOrEqual".split()  # noqa: SIM905

LAYERS: tuple[Layer, ...] = (
    *(Layer(op) for op in _PLAIN),
    *(Layer(op, held=[floats(6)]) for op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu")),
    *(Layer(op, IMAGE) for op in ("GlobalAveragePool",)),
    *(
        Layer(op, IMAGE, [ints(2, 3)], {"keepdims": 0})
        for op in ("ReduceMax", "ReduceMin", "ReduceMean", "ReduceSum")
    ),
    Layer("ArgMax", attributes={"axis": 1}),
    Layer("AveragePool", IMAGE, attributes={**_POOL, "count_include_pad": 1}),
    Layer("MaxPool", IMAGE, attributes=_POOL),
    Layer("BatchNormalization", IMAGE, [floats(2), floats(2), floats(2), np.ones(2, np.float32)]),
    Layer("Cast", attributes={"to": 1}),
    Layer("Clip", held=[np.array(-0.5, np.float32), np.array(0.75, np.float32)]),
    Layer("Concat", held=[floats(2, 3)], attributes={"axis": 1}),
    Layer("Conv", IMAGE, [floats(4, 2, 3, 3), floats(4)], {"pads": [1, 1, 1, 1]}),
    Layer("Conv", (1, 2, 6), [floats(4, 1, 3), floats(4)], {"group": 2}),
    Layer("ConvTranspose", IMAGE, [floats(2, 3, 2, 2), floats(3)], {"strides": [2, 2]}),
    Layer("DepthToSpace", (1, 4, 2, 3), attributes={"blocksize": 2}),
    Layer("Dropout"),
    Layer("Expand", (2, 1), [ints(2, 3)]),
    Layer("Flatten", IMAGE),
    Layer("Gather", held=[ints(1, 2)], attributes={"axis": 1}),
    Layer("Gemm", held=[floats(3, 6), floats(3)], attributes={"transB": 1}),
    Layer("MatMul", held=[floats(6, 3)]),
    Layer("Pad", IMAGE, [ints(0, 0, 1, 2, 0, 0, 0, 1)]),
    Layer("Reshape", IMAGE, [ints(0, -1)]),
    Layer(
        "Resize",
        IMAGE,
        [ABSENT, np.array([1, 1, 2, 3], np.float32)],
        {"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"},
    ),
    Layer("Slice", IMAGE, [ints(1, 0), ints(4, 2), ints(3, 2), ints(2, 1)]),
    Layer("SpaceToDepth", IMAGE, attributes={"blocksize": 2}),
    Layer("Split", held=[ints(2, 4)], attributes={"axis": 1}, outputs=2),
    Layer("Squeeze", (1, 2, 1, 3), [ints(2)]),
    Layer("Transpose", IMAGE, attributes={"perm": [0, 2, 3, 1]}),
    Layer("Unsqueeze", held=[ints(1)]),
    Layer("Gelu", attributes={"approximate": "tanh"}),
    Layer("Pow", held=[np.array(3.0, np.float32)]),
    *(Layer(op, held=[floats(6), floats(1)]) for op in ("Sum", "Mean")),
    Layer("GlobalMaxPool", IMAGE),
    *(Layer(op, IMAGE, [ints(1)]) for op in ("ReduceL1", "ReduceL2", "ReduceSumSquare")),
    Layer("LayerNormalization", held=[floats(6), floats(6)]),
    Layer("InstanceNormalization", IMAGE, [floats(2), floats(2)]),
    Layer("GroupNormalization", IMAGE, [floats(1), floats(1)], {"num_groups": 1}),
    Layer("CumSum", held=[np.array(1)]),
    Layer("Resize", IMAGE, [ABSENT, np.array([1, 1, 1.5, 0.5], np.float32)], {"mode": "linear"}),
    Layer("Resize", IMAGE, [ABSENT, np.array([1, 2, 0.6, 1.7], np.float32)]),
    Layer("Gather", (12, 2), [ints(*range(0, 120, 10)) % 11]),
    Layer("LSTM", (3, 1, 2), [floats(1, 16, 2), floats(1, 16, 4), floats(1, 32)], {"hidden_size": 4}, 3),
    Layer(
        "GRU",
        (3, 1, 2),
        [floats(1, 12, 2), floats(1, 12, 4), floats(1, 24)],
        {"hidden_size": 4, "linear_before_reset": 1},
        2,
    ),
    Layer("RNN", (3, 1, 2), [floats(1, 4, 2), floats(1, 4, 4), floats(1, 8)], {"hidden_size": 4}, 2),
    Layer("Einsum", IMAGE, [floats(4, 3)], {"equation": "bchw,hk->bkc"}),
    Layer("Tile", held=[ints(1, 2)]),
    Layer("ScatterND", (4, 3), [ints((0,), (2,)), floats(2, 3)]),
    Layer("Where", held=[floats(6)], before=[np.array([True, False] * 3)]),
    Layer("GatherElements", IMAGE, [ints(1, 0).reshape(1, 2, 1, 1)], {"axis": 1}),
    Layer("ArgMin", attributes={"axis": 1}),
    *(Layer(op, held=[ints(3, 0, -1, 2, 5, 1)], whole=True) for op in _PAIRS),
    *(Layer(op, held=[ints(1)], whole=True) for op in ("ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum")),
    *(Layer(op, whole=True) for op in ("Abs", "Neg", "Not", "Relu", "Sign")),
    Layer("Clip", held=[np.array(0), np.array(3)], whole=True),
    Layer("Pow", held=[np.array(3)], whole=True),
    *(Layer(op, held=[ints(3, 0, -1, 2, 5, 1)], whole=True) for op in _RELATIONS),
    Layer("Gather", before=[floats(4, 3)], whole=True),
)

_FOLDED_ALONE = """
    Cos Erf Exp IsInf IsNaN Log NonZero Reciprocal ReduceL1 ReduceL2 ReduceMean ReduceSumSquare Relu Sigmoid Sign Sin
    Size Tanh Trilu
""".split()  # noqa: SIM905

FOLDS: tuple[Layer, ...] = (
    *(Layer(op, held=[floats(2, 3), floats(3)]) for op in ("Pow", "Div", "Max", "Min")),
    *(Layer(op, held=[ints(4, 5), ints(2)]) for op in ("Add", "Sub", "Mul", "Div")),
    *(Layer(op, held=[ints(4, 5), ints(2)]) for op in ("Equal", "Greater", "Less")),
    *(Layer(op, held=[np.array([True, False]), np.array([True])]) for op in ("And", "Or")),
    Layer("Not", held=[np.array([True, False])]),
    Layer("Where", held=[np.array([True, False]), ints(4, 5), ints(2)]),
    *(Layer(op, held=[floats(2, 3)]) for op in ("Abs", "Ceil", "Floor", "Identity", "Neg", "Round", "Sqrt")),
    Layer("Cast", held=[floats(2, 3)], attributes={"to": 7}),
    Layer("Clip", held=[floats(2, 3), np.array(-0.5, np.float32)]),
    Layer("Concat", held=[ints(1, 2), ints(3)], attributes={"axis": 0}),
    Layer("Expand", held=[floats(1, 3), ints(2, 3)]),
    Layer("Flatten", held=[floats(2, 3)]),
    Layer("Gather", held=[floats(4, 3), ints(2, 0)], attributes={"axis": 0}),
    Layer("Range", held=[np.array(1), np.array(7), np.array(2)]),
    *(Layer(op, held=[floats(2, 3)]) for op in ("ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum")),
    Layer("Reshape", held=[floats(2, 3), ints(3, -1)]),
    Layer("ScatterND", held=[floats(4, 3), ints((0, 1), (2, 2)), floats(2)]),
    Layer("Slice", held=[floats(4, 3), ints(1), ints(3)]),
    Layer("Split", held=[floats(4, 3), ints(1, 3)], outputs=2),
    Layer("Squeeze", held=[floats(1, 3), ints(0)]),
    Layer("Tile", held=[floats(2, 3), ints(2, 1)]),
    Layer("Transpose", held=[floats(2, 3)]),
    Layer("Unsqueeze", held=[floats(2, 3), ints(0)]),
    Layer("ConstantOfShape", held=[ints(2, 3)]),
    *(Layer(op, held=[floats(2, 3)]) for op in _FOLDED_ALONE),
    *(Layer(op, held=[ints(4, 5), ints(2)]) for op in ("Mod", "GreaterOrEqual", "LessOrEqual", "CastLike")),
    *(Layer(op, held=[ints(4, 5), ints(2)]) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")),
    Layer("BitwiseNot", held=[ints(4, 5)]),
    Layer("BitShift", held=[ints(4, 5).astype(np.uint8), ints(2).astype(np.uint8)], attributes={"direction": "LEFT"}),
    Layer("Xor", held=[np.array([True, False]), np.array([True])]),
    *(Layer(op, held=[floats(2, 3), floats(3)]) for op in ("Mean", "Sum")),
    *(Layer(op, held=[floats(2, 3)], attributes={"axis": 1}) for op in ("ArgMax", "ArgMin")),
    Layer("Compress", held=[floats(4, 3), np.array([True, False, True, False])], attributes={"axis": 0}),
    Layer("CumSum", held=[floats(2, 3), np.array(1)]),
    Layer("EyeLike", held=[floats(3, 3)]),
    Layer("GatherElements", held=[floats(2, 3), ints((0, 1), (2, 0))], attributes={"axis": 1}),
    Layer("GatherND", held=[floats(4, 3), ints((0, 1), (2, 2))]),
    Layer("MatMul", held=[floats(2, 3), floats(3, 4)]),
    Layer("OneHot", held=[ints(1, 0), np.array(3), floats(2)]),
    Layer("Pad", held=[floats(2, 3), ints(0, 1, 1, 0)]),
    Layer("ScatterElements", held=[floats(2, 3), ints((0, 1), (2, 0)), floats(2, 2)], attributes={"axis": 1}),
    Layer("TopK", held=[floats(2, 3), ints(2)], outputs=2),
)  # fmt: skip


def _inputs(held: Sequence[Array], constants: dict[str, Array]) -> list[str]:
    names = []
    for data in held:
        name = "" if data is ABSENT else f"c{len(constants)}"
        if name:
            constants[name] = data
        names.append(name)
    return names


def of_floats(layer: Layer) -> Any:
    constants: dict[str, Array] = {}
    outputs = [f"y{i}" for i in range(layer.outputs)]
    made = helper.make_node(
        layer.op,
        [*_inputs(layer.before, constants), "x", *_inputs(layer.held, constants)],
        outputs,
        name=f"net/{layer.op}",
        **layer.attributes,
    )
    proto = model([made], {"x": layer.x}, constants, outputs, opset=21)
    if layer.whole:
        truth = layer.op in ("And", "Not", "Or", "Xor")
        proto.graph.input[0].type.tensor_type.elem_type = 9 if truth else 7  # ONNX's bool and int64
    return proto


def of_integers(layer: Layer, kind: str = "int8") -> Any:
    """The same between QuantizeLinear and DequantizeLinear; weights are int8, the bias int32."""
    zero = {"int16": 0, "uint16": 32768}.get(kind, 3)
    constants: dict[str, Array] = {"s": np.array(0.02, np.float32), "z": np.array(zero, kind)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], name="q"),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["dq"], name="dq"),
    ]
    before, names = _inputs(layer.before, constants), _inputs(layer.held, constants)
    if layer.op in ("Conv", "Gemm", "MatMul"):
        axis = {"Conv": 0, "Gemm": 0, "MatMul": 1}[layer.op]
        weights = constants[names[0]]
        constants["ws"] = np.full(weights.shape[axis], 0.01, np.float32)
        constants["wz"] = np.zeros(weights.shape[axis], np.int8)
        constants[names[0]] = np.rint(weights * 100).astype(np.int8)
        nodes.append(helper.make_node("DequantizeLinear", [names[0], "ws", "wz"], ["w"], name="w", axis=axis))
        names[0] = "w"
        if len(names) > 1:
            constants["bs"] = np.full(weights.shape[axis], np.float32(0.02) * np.float32(0.01), np.float32)
            constants["bz"] = np.zeros(weights.shape[axis], np.int32)
            constants[names[1]] = np.rint(constants[names[1]] * 1000).astype(np.int32)
            nodes.append(
                helper.make_node("DequantizeLinear", [names[1], "bs", "bz"], ["b"], name="b", axis=0)
            )
            names[1] = "b"
    results = [f"r{i}" for i in range(layer.outputs)]
    nodes.append(
        helper.make_node(
            layer.op, [*before, "dq", *names], results, name=f"net/{layer.op}", **layer.attributes
        )
    )
    if layer.op in ("ArgMax", "ArgMin"):
        return model(nodes, {"x": layer.x}, constants, results, opset=20)
    for i, result in enumerate(results):
        nodes.append(helper.make_node("QuantizeLinear", [result, "s", "z"], [f"u{i}"], name=f"u{i}"))
        nodes.append(helper.make_node("DequantizeLinear", [f"u{i}", "s", "z"], [f"y{i}"], name=f"y{i}"))
    return model(nodes, {"x": layer.x}, constants, [f"y{i}" for i in range(layer.outputs)], opset=20)


def of_constants(layer: Layer, quantized: bool) -> Any:
    """What a node makes of constants, its largest number added to x."""
    constants: dict[str, Array] = {}
    outputs = [f"r{i}" for i in range(layer.outputs)]
    nodes = [
        helper.make_node(
            layer.op, _inputs(layer.held, constants), outputs, name="net/fold", **layer.attributes
        ),
        helper.make_node("Cast", ["r0"], ["f"], name="net/cast", to=1),
        helper.make_node("ReduceMax", ["f"], ["m"], name="net/most", keepdims=0),
    ]
    if quantized:
        constants |= {"s": np.array(0.02, np.float32), "z": np.array(3, np.int8)}
        nodes += [
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], name="q"),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["dq"], name="dq"),
        ]
    nodes.append(helper.make_node("Add", ["dq" if quantized else "x", "m"], ["y"], name="net/add"))
    return model(nodes, {"x": ROWS}, constants, opset=20)


def _shaped(quantized: bool) -> Any:
    """A shape that is computed of an input's: Shape, Constant, Gather, Concat, Reshape."""
    constants: dict[str, Array] = {"first": np.array(0)}
    before = []
    x = "x"
    if quantized:
        constants |= {"s": np.array(0.02, np.float32), "z": np.array(3, np.int8)}
        before = [
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], name="q"),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["dq"], name="dq"),
        ]
        x = "dq"
    nodes = [
        *before,
        helper.make_node("Shape", [x], ["size"], name="size"),
        helper.make_node("Gather", ["size", "first"], ["n"], name="n", axis=0),
        helper.make_node("Constant", [], ["one"], name="one", value_ints=[0]),
        helper.make_node("Unsqueeze", ["n", "one"], ["n1"], name="n1"),
        helper.make_node("Constant", [], ["rest"], name="rest", value_ints=[-1]),
        helper.make_node("Concat", ["n1", "rest"], ["to"], name="to", axis=0),
        helper.make_node("Reshape", [x, "to"], ["y"], name="y"),
    ]
    return model(nodes, {"x": IMAGE}, constants, opset=20)


def quantized_seeds() -> list[Any]:
    layers = [layer for layer in LAYERS if not layer.floats_only and not layer.whole]
    made = [of_integers(layer, kind) for kind in ("int8", "uint8", "int16") for layer in layers]
    wide = [of_integers(layer, "uint16") for layer in layers if layer.op in ("Conv", "Gemm", "Add")]
    return [*made, *wide, *own_seeds(), *(of_constants(fold, True) for fold in FOLDS), _shaped(True)]


def float_seeds() -> list[Any]:
    return [
        *(of_floats(layer) for layer in LAYERS),
        *(of_constants(fold, False) for fold in FOLDS),
        _shaped(False),
    ]
