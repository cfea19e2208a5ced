# SPDX-License-Identifier: Apache-2.0
"""The graph in the chosen layouts: operators relabelled, conversions put in, weights reordered."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np

from tinyet.errors import InternalError
from tinyet.ir import Array, Graph, Node, Origin, Shape, Tensor, TensorType
from tinyet.ops.permute import Permute
from tinyet.ops.reshape import Reshape
from tinyet.passes.layout import Labels, Problem, Use, choose_labels
from tinyet.passes.layout_domains import Label, Layout, canonical
from tinyet.passes.merge_reshapes import merge_reshapes
from tinyet.passes.rewrite import Names, all_origins


def optimize_layout(graph: Graph) -> Graph:
    """The same function with the fewest bytes moved between layouts.

    Exact, except that a float Linear whose weights take up a Permute adds its products in another order.
    """
    problem = Problem(graph)
    return merge_reshapes(_Rewriter(problem, choose_labels(problem)).run())


@dataclass
class _Rewriter:
    problem: Problem
    labels: Labels
    names: Names = field(init=False)
    nodes: list[Node] = field(default_factory=list)
    stored: dict[Tensor, tuple[Tensor, Layout]] = field(default_factory=dict)
    converted: dict[tuple[Tensor, Layout], tuple[Tensor, Layout]] = field(default_factory=dict)
    reshaped: dict[tuple[Tensor, Shape], Tensor] = field(default_factory=dict)
    constants: dict[tuple[Tensor, Layout, Shape], Tensor] = field(default_factory=dict)
    columns: dict[Node, Array] = field(default_factory=dict)
    spent: set[str] = field(default_factory=set)

    def run(self) -> Graph:
        graph = self.problem.graph
        self.names = Names(graph)
        for tensor in graph.inputs:
            self.stored[tensor] = tensor, tuple(range(len(tensor.shape)))
        for node in graph.nodes:
            if not isinstance(node.attrs, Permute):
                self._node(node)
        outputs = []
        for tensor in graph.outputs:
            value, path = self.problem.trace(tensor)
            identity = tuple(range(len(tensor.shape)))
            outputs.append(self._read(value, path, identity, tensor.shape, all_origins(path.permutes)))
        return graph.replace(nodes=self.nodes, outputs=outputs)

    def _node(self, node: Node) -> None:
        label = self.labels.get(node)
        if node in self.problem.linears and self._absorb(node):
            return
        inputs = [
            None if t is None else self._input(node, port, t, label) for port, t in enumerate(node.inputs)
        ]
        columns = self.columns.get(node)
        if columns is not None:
            weights = node.input(1)
            taken = np.ascontiguousarray(weights.array[:, columns])
            inputs[1] = Tensor(self.names.fresh(f"{weights.name}_permuted"), weights.type, taken)
        frame = self.problem.frames.get(node)
        if frame is None or label is None or label == frame.identity:
            self.nodes.append(node.replace(inputs=inputs))
            self.stored.update((t, (t, tuple(range(len(t.shape))))) for t in node.outputs)
            return
        attrs = frame.relabel(label)
        if attrs is None:
            raise InternalError(f"{node.op} cannot work in the layout chosen for it", node.where)
        old = node.output
        new = Tensor(old.name, TensorType(frame.output.stored_shape(label), old.dtype, old.type.quant))
        self.nodes.append(node.replace(attrs=attrs, inputs=inputs, outputs=(new,)))
        self.stored[old] = new, frame.output.layout(label)

    def _input(self, node: Node, index: int, tensor: Tensor, label: Label | None) -> Tensor:
        frame = self.problem.frames.get(node)
        port = None if frame is None else frame.inputs[index]
        value, path = self.problem.trace(tensor)
        layout, shape = tuple(range(len(tensor.shape))), tensor.shape
        if port is not None and label is not None and frame is not None and label != frame.identity:
            layout, shape = port.layout(label), port.stored_shape(label)
        return self._read(value, path, layout, shape, all_origins(path.permutes) or node.origins)

    def _absorb(self, node: Node) -> bool:
        """Reshape the bytes as they lie, if the Linear layers behind can read them so."""
        value, _ = self.problem.trace(node.input(0))
        if value.is_constant:
            return False
        use = self.problem.first_use[node]
        have, written = self.stored[value]
        if use.absorbed is None or not self.problem.absorbs(use, value.shape, written):
            return False
        shape = node.input(0).shape[use.absorbed :]
        order = [axis - use.absorbed for axis in use.on_input(written) if axis >= use.absorbed]
        columns = np.arange(node.output.shape[-1]).reshape(shape).transpose(order).ravel()
        if not np.array_equal(columns, np.arange(columns.size)):
            self.columns.update((linear, columns) for linear in self.problem.linears[node])
        self.nodes.append(node.replace(inputs=(have,)))
        self.stored[node.output] = node.output, tuple(range(len(node.output.shape)))
        return True

    # ------------------------------------------------------------ conversions

    def _read(
        self, value: Tensor, use: Use, layout: Layout, shape: Shape, origins: tuple[Origin, ...]
    ) -> Tensor:
        """A value in a layout of the reader's input, under the shape that the reader expects."""
        wanted = use.on_value(layout)
        if value.is_constant:
            return self._constant(value, wanted, shape)
        tensor, written = self.stored[value]
        # The debug handle without its key: a conversion is not the value that the key names.
        origins = tuple(dataclasses.replace(origin, key="") for origin in origins)
        bytes_wanted = canonical(wanted, value.shape)
        if canonical(written, value.shape) != bytes_wanted:
            key = value, bytes_wanted
            if key not in self.converted:
                order = tuple(written.index(axis) for axis in wanted)
                name = self._name(value, use, layout)
                type_ = TensorType(tuple(value.shape[axis] for axis in wanted), value.dtype, value.type.quant)
                permuted = Tensor(name, type_)
                self.nodes.append(Node(Permute(order), (tensor,), (permuted,), origins))
                self.converted[key] = permuted, wanted
            tensor = self.converted[key][0]
        if tensor.shape == shape:
            return tensor
        if (tensor, shape) not in self.reshaped:
            name = self.names.fresh(f"{tensor.name}_view")
            view = Tensor(name, TensorType(shape, tensor.dtype, tensor.type.quant))
            self.nodes.append(Node(Reshape(shape), (tensor,), (view,), origins))
            self.reshaped[tensor, shape] = view
        return self.reshaped[tensor, shape]

    def _name(self, value: Tensor, use: Use, layout: Layout) -> str:
        """The name that the last Permute on the way gave, if it was for this very order and is still free."""
        if use.permutes and layout == tuple(range(len(layout))):
            name = use.permutes[-1].output.name
            if name not in self.spent:
                self.spent.add(name)
                return name
        return self.names.fresh(f"{value.name}_permuted")

    def _constant(self, value: Tensor, layout: Layout, shape: Shape) -> Tensor:
        if layout == tuple(range(len(layout))) and shape == value.shape:
            return value
        key = value, layout, shape
        if key not in self.constants:
            data = np.ascontiguousarray(value.array.transpose(layout)).reshape(shape)
            type_ = TensorType(shape, value.dtype, value.type.quant)
            self.constants[key] = Tensor(self.names.fresh(f"{value.name}_permuted"), type_, data)
        return self.constants[key]
