# SPDX-License-Identifier: Apache-2.0
"""Small .onnx files with operators of integers: of the QOperator format, and of layers that quantize while they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tests.importers.onnx_models import helper, model
from tinyet.ir import Array

IMAGE = (1, 2, 4, 6)
ONE = ("q", "s", "z", "t", "z")
TWO = ("q", "s", "z", "w", "ws", "wz", "t", "z")


def _bytes(kind: str, *shape: int) -> Array:
    count = int(np.prod(shape))
    return (np.arange(count) * 37 % 256 - (128 if kind == "int8" else 0)).astype(kind).reshape(shape)


def _held(kind: str, weights: Sequence[int] = (), outputs: int = 1) -> dict[str, Array]:
    return {
        "s": np.array(0.02, np.float32),
        "z": np.array(3, kind),
        "t": np.array(0.05, np.float32),
        "w": _bytes(kind, *weights),
        "ws": np.array(0.01, np.float32),
        "wz": np.array(1, kind),
        "b": (np.arange(outputs) * 100 - 150).astype(np.int32),
        "c": np.array([True, False] * 3),
    }


def _between(
    op: str,
    reads: Sequence[str],
    x: Sequence[int],
    kind: str,
    weights: Sequence[int] = (6,),
    outputs: int = 1,
    **attributes: Any,
) -> Any:
    """An operator between a QuantizeLinear and a DequantizeLinear."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], name="q"),
        helper.make_node(op, reads, ["r"], name=f"net/{op}", domain="com.microsoft", **attributes),
        helper.make_node("DequantizeLinear", ["r", "t", "z"], ["y"], name="y"),
    ]
    return _model(nodes, x, _held(kind, weights, outputs))


def _model(nodes: Sequence[Any], x: Sequence[int], constants: Mapping[str, Array]) -> Any:
    proto = model(nodes, {"x": x}, constants, opset=20)
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return proto


def _qoperators(kind: str) -> list[Any]:
    pool: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    return [
        _between("QLinearAdd", TWO, (2, 6), kind),
        _between("QLinearMul", TWO, (2, 6), kind),
        _between("QLinearSigmoid", ONE, (2, 6), kind),
        _between("QLinearLeakyRelu", ONE, (2, 6), kind, alpha=0.2),
        _between("QLinearSoftmax", ONE, (2, 6), kind, axis=1, opset=13),
        _between("QLinearSoftmax", ONE, (2, 3, 2), kind, axis=1, opset=12),
        _between("QLinearAveragePool", ONE, IMAGE, kind, **pool),
        _between("QLinearAveragePool", ONE, (1, 4, 6, 2), kind, channels_last=1, **pool),
        _between("QLinearGlobalAveragePool", ONE, IMAGE, kind, channels_last=0),
        _between("QLinearReduceMean", ONE, IMAGE, kind, axes=[2, 3], keepdims=0),
        _between("QLinearConcat", ("t", "z", "q", "s", "z", "w", "ws", "wz"), (2, 6), kind, (2, 3), axis=1),
        _between("QLinearWhere", ("c", *TWO), (2, 6), kind),
        _between("QLinearMatMul", TWO, (2, 6), kind, (6, 3)),
        _between("QGemm", (*TWO[:6], "b", "t", "z"), (2, 6), kind, (3, 6), 3, transB=1, alpha=0.5),
        _between("QLinearConv", (*TWO, "b"), IMAGE, kind, (3, 2, 3, 3), 3, pads=[1, 1, 1, 1]),
    ]


def _dynamic(op: str, x: Sequence[int], weights: Sequence[int], kind: str) -> Any:
    """As quantize_dynamic writes a layer with a bias."""
    channels = weights[0] if op == "ConvInteger" else weights[-1]
    sizes = (1, channels, 1, 1) if op == "ConvInteger" else (channels,)
    bias = np.linspace(-1, 1, channels, dtype=np.float32).reshape(sizes)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "qs", "qz"], name="q"),
        helper.make_node(op, ["q", "w", "qz", "wz"], ["i"], name=f"net/{op}"),
        helper.make_node("Cast", ["i"], ["f"], name="f", to=1),
        helper.make_node("Mul", ["qs", "ws"], ["m"], name="m"),
        helper.make_node("Mul", ["f", "m"], ["r"], name="r"),
        helper.make_node("Add", ["r", "bias"], ["y"], name="y"),
    ]
    return _model(nodes, x, {**_held(kind, weights), "bias": bias})


def _contrib(kind: str) -> list[Any]:
    """ONNX Runtime's own nodes of such layers."""
    held = {**_held(kind, (6, 3)), "bias": np.linspace(-1, 1, 3, dtype=np.float32)}
    to_float = ["q", "w", "qs", "ws", "qz", "wz", "bias"]
    made: list[tuple[str, list[str]]] = [
        ("DynamicQuantizeMatMul", ["x", "w", "ws", "wz", "bias"]),
        ("MatMulIntegerToFloat", to_float),
    ]
    first = helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "qs", "qz"], name="q")
    return [
        _model(
            [first, helper.make_node(op, reads, ["y"], name=f"net/{op}", domain="com.microsoft")],
            (2, 6),
            held,
        )
        for op, reads in made
    ]


def own_seeds() -> list[Any]:
    found: list[Any] = []
    for kind in ("int8", "uint8"):
        found += _qoperators(kind)
        found.append(_dynamic("MatMulInteger", (2, 6), (6, 3), kind))
        found.append(_dynamic("ConvInteger", IMAGE, (3, 2, 3, 3), kind))
        found += _contrib(kind)
    return found
