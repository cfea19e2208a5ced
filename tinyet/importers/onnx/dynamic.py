# SPDX-License-Identifier: Apache-2.0
"""Layers that quantize their input at run time, one layer as many nodes, as quantize_dynamic writes them:

    q, s, z = DynamicQuantizeLinear(x)
    y = Cast(MatMulInteger(q, weights, z, weight_zero)) * (s * weight_scale) + bias      or ConvInteger

Each such group is read as one node, by the name of ONNX Runtime's own for the first, DynamicQuantizeMatMul: x, weights,
their scale, their zero point, the bias; and so are ONNX Runtime's MatMulIntegerToFloat nodes behind a
DynamicQuantizeLinear.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tinyet.importers.onnx.read import OnnxModel, OnnxNode

LINEAR, CONVOLUTION = "DynamicQuantizeMatMul", "DynamicQuantizeConv"
"""The names of the nodes that groups become; there is no second in ONNX Runtime."""

_INTEGER = {"MatMulInteger": LINEAR, "ConvInteger": CONVOLUTION}
_FLOAT = 1
"""ONNX's number of the type."""


def as_layers(model: OnnxModel) -> OnnxModel:
    """The model with such groups as one node each; others stay as they are."""
    if not any(node.op in (*_INTEGER, "MatMulIntegerToFloat") for node in model.nodes):
        return model
    return _Grouping(model).run()


@dataclass
class _Grouping:
    """replaced: what stands in the place of a node of the file, by its index; nothing for a part of a group."""

    model: OnnxModel
    readers: dict[str, list[OnnxNode]] = field(default_factory=dict)
    makers: dict[str, OnnxNode] = field(default_factory=dict)
    replaced: dict[int, OnnxNode | None] = field(default_factory=dict)

    def run(self) -> OnnxModel:
        for node in self.model.nodes:
            for name in node.inputs:
                self.readers.setdefault(name, []).append(node)
            self.makers.update((name, node) for name in node.outputs if name)
        for node in self.model.nodes:
            if node.op in _INTEGER:
                self._group(node)
            elif node.op == "MatMulIntegerToFloat":
                self._to_float(node)
        nodes = (self.replaced.get(node.index, node) for node in self.model.nodes)
        return replace(self.model, nodes=tuple(node for node in nodes if node is not None))

    def _only_reader(self, name: str, op: str) -> OnnxNode | None:
        found = self.readers.get(name, [])
        return found[0] if len(found) == 1 and found[0].op == op and name not in self.model.outputs else None

    def _source(self, values: str, zero_point: str) -> OnnxNode | None:
        """The DynamicQuantizeLinear that gives both."""
        maker = self.makers.get(values)
        if maker is None or maker.op != "DynamicQuantizeLinear" or len(maker.inputs) != 1:
            return None
        is_whole = len(maker.outputs) == 3 and maker.outputs[0] == values and maker.outputs[2] == zero_point
        return maker if is_whole else None

    def _scale(self, name: str, source: OnnxNode) -> str | None:
        """The weights' scale in a product of it and the input's."""
        product = self.makers.get(name)
        if product is None or product.op != "Mul" or len(product.inputs) != 2:
            return None
        return _other(product, source.outputs[1])

    def _group(self, node: OnnxNode) -> None:
        given = (*node.inputs, "", "", "", "")[:4]
        source = self._source(given[0], given[2])
        cast = self._only_reader(node.outputs[0], "Cast")
        if source is None or cast is None or cast.attributes.get("to") != _FLOAT:
            return
        scaled = self._only_reader(cast.outputs[0], "Mul")
        product = None if scaled is None else _other(scaled, cast.outputs[0])
        scale = None if product is None else self._scale(product, source)
        if scaled is None or scale is None:
            return
        last, bias = scaled, ""
        added = self._only_reader(scaled.outputs[0], "Add")
        if added is not None:
            found = self._bias(_other(added, scaled.outputs[0]) or "", node, given[1])
            last, bias = (added, found) if found else (last, bias)
        inputs = (source.inputs[0], given[1], scale, given[3], bias)
        self.replaced.update({part.index: None for part in (node, cast, scaled)})
        self.replaced[last.index] = OnnxNode(
            _INTEGER[node.op], node.name, node.index, inputs, last.outputs, node.attributes
        )

    def _bias(self, name: str, node: OnnxNode, weights_name: str) -> str:
        """The constant of one number a channel behind this name; "" where there is none."""
        maker, constants = self.makers.get(name), self.model.constants
        weights = constants.get(weights_name)
        if weights is None or weights.ndim < 2:
            return ""
        channels = weights.shape[0] if node.op == "ConvInteger" else weights.shape[-1]
        data = constants.get(name)
        shape: Sequence[int] = () if data is None else data.shape
        if maker is not None and maker.op == "Reshape" and maker.inputs:
            name, *sizes = maker.inputs
            data, wanted = constants.get(name), constants.get(sizes[0]) if sizes else None
            if wanted is None or wanted.dtype.kind not in "iu" or wanted.size > weights.ndim:
                return ""
            shape = [int(n) if n != -1 else channels for n in wanted.reshape(-1)]
        behind = 0 if node.op == "MatMulInteger" else weights.ndim - 2
        place = len(shape) - 1 - behind
        along = place >= 0 and shape[place] == channels == math.prod(shape)
        return name if along and data is not None and data.size == channels and data.dtype.kind == "f" else ""

    def _to_float(self, node: OnnxNode) -> None:
        """inputs: values, weights, both scales, both zero points, the bias."""
        given = (*node.inputs, *[""] * 7)[:7]
        source = self._source(given[0], given[4])
        if source is None or source.outputs[1] != given[2]:
            return
        inputs = (source.inputs[0], given[1], given[3], given[5], given[6])
        self.replaced[node.index] = replace(node, op=LINEAR, inputs=inputs)


def _other(node: OnnxNode, name: str) -> str | None:
    """The other one of two inputs."""
    if len(node.inputs) != 2 or name not in node.inputs:
        return None
    return node.inputs[1 - node.inputs.index(name)]
