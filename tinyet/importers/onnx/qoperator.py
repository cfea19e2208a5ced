# SPDX-License-Identifier: Apache-2.0
"""The QOperator format: operators that include the scales of their operands and of their result. Each is read as its
meaning, DequantizeLinear nodes, an operator and a QuantizeLinear, for which ONNX Runtime has the same kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.onnx.read import OnnxModel, OnnxNode
from tinyet.importers.onnx.values import Float32
from tinyet.ir import Array

_PLAIN = {
    "QLinearAdd": ("Add", 2),
    "QLinearMul": ("Mul", 2),
    "QLinearSigmoid": ("Sigmoid", 1),
    "QLinearLeakyRelu": ("LeakyRelu", 1),
    "QLinearAveragePool": ("AveragePool", 1),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", 1),
    "QLinearSoftmax": ("Softmax", 1),
    "QLinearMatMul": ("MatMul", 2),
    "QLinearReduceMean": ("ReduceMean", 1),
}
"""The plain operator and its operands: each with scale and zero point, then those of the result."""

_IMAGE = 4
"""Dimensions of what a global pool reads."""

TAKEN = frozenset({*_PLAIN, "QLinearConv", "QGemm", "QLinearConcat", "QLinearWhere"})


def as_qdq(model: OnnxModel) -> OnnxModel:
    """The model without such operators; one that cannot be read so stays as it is."""
    if not any(node.op in TAKEN for node in model.nodes):
        return model
    rewriting = _Rewriting(model.constants)
    nodes: list[OnnxNode] = []
    for node in model.nodes:
        try:
            nodes += rewriting.of(node) if node.op in TAKEN else [node]
        except RefusedError:
            nodes.append(node)
    return replace(model, nodes=tuple(nodes), constants={**model.constants, **rewriting.made})


@dataclass
class _Rewriting:
    """made: constants that the file has not."""

    constants: Mapping[str, Array]
    made: dict[str, Array] = field(default_factory=dict)

    def of(self, node: OnnxNode) -> list[OnnxNode]:
        """Raises RefusedError for inputs that such an operator has not."""
        given = node.inputs
        if node.op == "QLinearConv":
            _expect(given, 8, 9)
            operands = [given[0:3], given[3:6]]
            return self._split(node, "Conv", operands, given[6:8], given[8:], (1, 0))
        if node.op == "QGemm":
            _expect(given, 6, 9)
            axis = 0 if node.attributes.get("transB") else 1
            operands = [given[0:3], (given[3], self._scaled(node, given[4]), given[5])]
            plain = replace(node, attributes={**node.attributes, "alpha": 1.0})
            # Without a scale of its own the result is float32.
            return self._split(plain, "Gemm", operands, given[7:9], given[6:7], (1, axis))
        if node.op == "QLinearConcat":
            count = (len(given) - 2) // 3
            _expect(given, 2 + 3 * max(count, 1))
            operands = [given[2 + 3 * i : 5 + 3 * i] for i in range(count)]
            return self._split(node, "Concat", operands, given[:2], (), (1,) * count)
        if node.op == "QLinearWhere":
            _expect(given, 9)
            return self._split(node, "Where", [given[1:4], given[4:7]], given[7:9], (), (1, 1), given[:1])
        op, count = _PLAIN[node.op]
        _expect(given, 3 * count + 2)
        operands = [given[3 * i : 3 * i + 3] for i in range(count)]
        return self._split(node, op, operands, given[3 * count :], (), (1,) * count)

    def _scaled(self, node: OnnxNode, scale: str) -> str:
        """The scale of weights times the factor of their products, of which the bias' scale, too, is a multiple."""
        alpha = node.attributes.get("alpha", 1.0)
        if not isinstance(alpha, (int, float)) or alpha <= 0:
            raise RefusedError(f"has alpha = {str(alpha)[:40]}")
        if alpha == 1:
            return scale
        name = f"{node.outputs[0]}@weight_scale"
        with np.errstate(over="ignore", under="ignore"):
            self.made[name] = np.asarray(np.float32(alpha) * self._scale(scale), np.float32)
        return name

    def _scale(self, name: str) -> Float32:
        """A constant, flat. Raises RefusedError for another."""
        found = self.made.get(name, self.constants.get(name))
        if found is None or found.dtype != np.float32:
            raise RefusedError("computes its scales")
        return np.asarray(found, np.float32).reshape(-1)

    def _split(
        self,
        node: OnnxNode,
        op: str,
        operands: Sequence[Sequence[str]],
        result: Sequence[str],
        bias: Sequence[str],
        axes: Sequence[int],
        before: Sequence[str] = (),
    ) -> list[OnnxNode]:
        """operands: value, scale and zero point of each; axes: along which each has several scales; before: inputs in
        front of the operands, as they are."""
        out = node.outputs[0]

        def made(op_: str, inputs: Sequence[str], output: str, **attributes: Any) -> OnnxNode:
            kept = tuple(name for name in inputs if name) if op_ != op else tuple(inputs)
            return OnnxNode(op_, node.name, node.index, kept, (output,), attributes)

        nodes, reals = [], []
        for place, (operand, axis) in enumerate(zip(operands, axes, strict=True)):
            reals.append(f"{out}@{place}")
            nodes.append(made("DequantizeLinear", operand, reals[-1], axis=axis))
        if bias and bias[0]:
            scale, zero, real = (f"{out}@{role}" for role in ("bias_scale", "bias_zero", "bias"))
            one, each = (self._scale(operands[i][1]) for i in (0, 1))
            with np.errstate(over="ignore", under="ignore"):
                self.made[scale] = np.asarray(one[:1] * each, np.float32)
            self.made[zero] = np.zeros(self.made[scale].shape, np.int32)
            nodes.append(made("DequantizeLinear", (bias[0], scale, zero), real, axis=0))
            reals.append(real)
        attributes = {key: value for key, value in node.attributes.items() if key != "channels_last"}
        inputs, before_end = (*before, *reals), f"{out}@real" if result else out
        if not node.attributes.get("channels_last"):
            nodes.append(OnnxNode(op, node.name, node.index, inputs, (before_end,), attributes))
            return [*nodes, made("QuantizeLinear", (before_end, *result), out)] if result else nodes
        rank = self._rank(node)
        first, last = (0, rank - 1, *range(1, rank - 1)), (0, *range(2, rank), 1)
        moved = (f"{out}@first", *inputs[1:])
        return [
            *nodes,
            made("Transpose", reals[:1], moved[0], perm=list(first)),
            OnnxNode(op, node.name, node.index, moved, (before_end,), attributes),
            made("QuantizeLinear", (before_end, *result), f"{out}@integers"),
            made("Transpose", (f"{out}@integers",), out, perm=list(last)),
        ]

    def _rank(self, node: OnnxNode) -> int:
        """Dimensions of what a node with its channels last reads. Raises RefusedError where nothing says how many."""
        kernel = node.attributes.get("kernel_shape")
        weights = self.constants.get(node.inputs[3]) if node.op == "QLinearConv" else None
        if weights is not None:
            return weights.ndim
        if isinstance(kernel, list):
            return 2 + len(kernel)
        if node.op == "QLinearGlobalAveragePool":
            return _IMAGE
        raise RefusedError("has its channels last")


def _expect(given: Sequence[str], least: int, most: int | None = None) -> None:
    if not least <= len(given) <= (most or least):
        raise RefusedError(f"has {len(given)} inputs")
