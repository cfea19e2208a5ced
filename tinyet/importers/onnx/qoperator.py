# SPDX-License-Identifier: Apache-2.0
"""The QOperator format: operators that include the scales of their operands and of their result. Each is read as its
meaning, DequantizeLinear nodes, an operator and a QuantizeLinear, for which ONNX Runtime has the same kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

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
}
"""The plain operator and its operands: each with scale and zero point, then those of the result."""

TAKEN = frozenset({*_PLAIN, "QLinearConv", "QGemm", "QLinearConcat"})


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
        if node.attributes.get("channels_last"):
            raise RefusedError("has its channels last")
        if node.op == "QLinearConv":
            _expect(given, 8, 9)
            operands = [given[0:3], given[3:6]]
            return self._split(node, "Conv", operands, given[6:8], given[8:], (1, 0))
        if node.op == "QGemm":
            _expect(given, 8, 9)
            if len(given) == 8:
                raise RefusedError("gives float32")
            axis = 0 if node.attributes.get("transB") else 1
            return self._split(node, "Gemm", [given[0:3], given[3:6]], given[7:9], given[6:7], (1, axis))
        if node.op == "QLinearConcat":
            count = (len(given) - 2) // 3
            _expect(given, 2 + 3 * max(count, 1))
            operands = [given[2 + 3 * i : 5 + 3 * i] for i in range(count)]
            return self._split(node, "Concat", operands, given[:2], (), (1,) * count)
        op, count = _PLAIN[node.op]
        _expect(given, 3 * count + 2)
        operands = [given[3 * i : 3 * i + 3] for i in range(count)]
        return self._split(node, op, operands, given[3 * count :], (), (1,) * count)

    def _scale(self, name: str) -> Float32:
        """A constant, flat. Raises RefusedError for another."""
        found = self.constants.get(name)
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
    ) -> list[OnnxNode]:
        """operands: value, scale and zero point of each; axes: along which each has several scales."""
        out = node.outputs[0]

        def made(op_: str, inputs: Sequence[str], output: str, **attributes: int) -> OnnxNode:
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
        # The opset that is an attribute of a QLinearSoftmax is that of the operator it stands for.
        attributes = {
            key: value for key, value in node.attributes.items() if key not in ("channels_last", "opset")
        }
        nodes.append(OnnxNode(op, node.name, node.index, tuple(reals), (f"{out}@real",), attributes))
        nodes.append(made("QuantizeLinear", (f"{out}@real", *result), out))
        return nodes


def _expect(given: Sequence[str], least: int, most: int | None = None) -> None:
    if not least <= len(given) <= (most or least):
        raise RefusedError(f"has {len(given)} inputs")
