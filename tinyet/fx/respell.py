# SPDX-License-Identifier: Apache-2.0
"""Operators that are another one's name for the same, spelled as torch's decomposition spells them, node by node.

Most networks have few other operators to decompose than batch norms, a flatten, masks, numbers of another type, and the
zeros that a recurrent layer begins with. torch would run the whole model once more to replace them, at some
milliseconds a node.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature, OutputKind, OutputSpec, TensorArgument

from tinyet.fx.as_exported import Copy

aten = torch.ops.aten

Spelling = tuple[OpOverload, tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class _Scalar:
    """An argument that is a float32 number, which an operator in front makes a tensor."""

    number: float


def _value(node: object) -> Tensor | None:
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    return value if isinstance(value, Tensor) else None


def _batch_norm(node: fx.Node) -> Spelling | None:
    """In eval mode."""
    if node.kwargs or len(node.args) != 9:
        return None
    x, weight, bias, mean, variance, training, momentum, eps, _ = node.args
    if training is not False or mean is None or variance is None:
        return None
    target = aten._native_batch_norm_legit_no_training.default
    return target, (x, weight, bias, mean, variance, momentum, eps), {}


def _view(node: fx.Node) -> Spelling | None:
    """Of bytes that lie in order; others are copied first."""
    x, seen = _value(node.args[0]), _value(node)
    if x is None or seen is None or node.kwargs or not x.is_contiguous() or x.shape == seen.shape:
        return None
    shape: Any = list(seen.shape)
    if not all(isinstance(size, int) for size in (*shape, *x.shape)):
        return None
    if node.target is aten.reshape.default:
        shape = node.args[1]
    return aten.view.default, (node.args[0], list(shape)), {}


def _full(number: int) -> Callable[[fx.Node], Spelling | None]:
    def spelled(node: fx.Node) -> Spelling | None:
        made = _value(node)
        if made is None or len(node.args) != 1 or set(node.kwargs) - {"dtype", "device", "pin_memory"}:
            return None
        given = {name: value for name, value in node.kwargs.items() if name != "dtype" and value is not None}
        return (
            aten.full.default,
            (node.args[0], number),
            {"dtype": made.dtype, "layout": torch.strided, **given},
        )

    return spelled


def _permute(node: fx.Node) -> Spelling | None:
    """Of two axes."""
    x = _value(node.args[0])
    axes: Any = node.args[1:] if node.target is aten.transpose.int else (0, 1)
    if x is None or node.kwargs or x.ndim < 2 or not all(isinstance(axis, int) for axis in axes):
        return None
    order = list(range(x.ndim))
    first, second = axes
    order[first], order[second] = order[second], order[first]
    return aten.permute.default, (node.args[0], order), {}


def _squeeze(node: fx.Node) -> Spelling | None:
    return None if node.kwargs else (aten.squeeze.dims, (node.args[0], [node.args[1]]), {})


def _relu6(node: fx.Node) -> Spelling:
    return aten.hardtanh.default, (node.args[0], 0, 6), {}


def _dropout(node: fx.Node) -> Spelling | None:
    """In eval mode."""
    unused = len(node.args) == 3 and node.args[2] is False
    return (aten.clone.default, (node.args[0],), {}) if unused else None


def _converted(node: fx.Node) -> Spelling | None:
    """To another type."""
    x, made = _value(node.args[0]), _value(node)
    if x is None or made is None or x.dtype == made.dtype or node.kwargs or len(node.args) != 2:
        return None
    return aten._to_copy.default, (node.args[0],), {"dtype": made.dtype}


def _asserted(node: fx.Node) -> Spelling | None:
    """What torch.export puts in front of a conversion."""
    if len(node.args) != 1 or list(node.kwargs) != ["dtype", "device", "layout"]:
        return None
    dtype, rest = node.kwargs["dtype"], {name: node.kwargs[name] for name in ("device", "layout")}
    return node.target, (node.args[0], None, None, dtype), rest  # type: ignore[return-value]


def _masked_fill(node: fx.Node) -> Spelling | None:
    x, mask, *rest = node.args
    return _chosen(node, x, lambda scalar: (mask, scalar, x), rest)


def _where(node: fx.Node) -> Spelling | None:
    mask, x, *rest = node.args
    return _chosen(node, x, lambda scalar: (mask, x, scalar), rest)


def _chosen(
    node: fx.Node, x: object, args_of: Callable[[_Scalar], tuple[Any, ...]], rest: list[Any]
) -> Spelling | None:
    """A number or x, both float32. rest: the arguments behind those of tensors."""
    value = _value(x)
    if len(rest) != 1 or type(rest[0]) is not float or value is None or value.dtype is not torch.float32:
        return None
    return None if node.kwargs else (aten.where.self, args_of(_Scalar(rest[0])), {})


def _chunks(node: fx.Node) -> Spelling | None:
    x = _value(node.args[0])
    if x is None or node.kwargs or len(node.args) != 3:
        return None
    count: Any = node.args[1]
    axis: Any = node.args[2]
    size = x.shape[axis]
    if type(size) is not int or not size:
        return None
    return aten.split.Tensor, (node.args[0], -(-size // count), axis), {}


def _rsub(node: fx.Node) -> Spelling | None:
    return None if node.kwargs or len(node.args) != 2 else (aten.sub.Tensor, node.args[::-1], {})


def _sum(node: fx.Node) -> Spelling | None:
    return None if node.kwargs else (aten.sum.dim_IntList, (node.args[0], []), {})


def _square(node: fx.Node) -> Spelling:
    return aten.pow.Tensor_Scalar, (node.args[0], 2), {}


_SPELLINGS: dict[OpOverload, Callable[[fx.Node], Spelling | None]] = {
    aten.batch_norm.default: _batch_norm,
    aten.flatten.using_ints: _view,
    aten.reshape.default: _view,
    aten.zeros.default: _full(0),
    aten.ones.default: _full(1),
    aten.transpose.int: _permute,
    aten.t.default: _permute,
    aten.squeeze.dim: _squeeze,
    aten.relu6.default: _relu6,
    aten.dropout.default: _dropout,
    aten.to.dtype: _converted,
    aten._assert_tensor_metadata.default: _asserted,
    aten.masked_fill.Scalar: _masked_fill,
    aten.where.ScalarOther: _where,
    aten.chunk.default: _chunks,
    aten.rsub.Scalar: _rsub,
    aten.sum.default: _sum,
    aten.square.default: _square,
}
_NO_RESULT = frozenset((aten._assert_tensor_metadata.default,))
_LEFT = frozenset((
    aten.lstm.input, aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input,
    aten.lstm_cell.default, aten.gru_cell.default, aten.rnn_tanh_cell.default, aten.rnn_relu_cell.default,
))  # fmt: skip
"""Composite operators that torch leaves as they are, as they are to be kept whole."""


def respelled(program: ExportedProgram, others: Container[fx.Node]) -> ExportedProgram | None:
    """The program that torch's decomposition makes, by other means; None where it takes torch's.

    others: the nodes that decomposition does not leave as they are. The program is not changed, and shares its weights.
    """
    kinds = {spec.kind for spec in program.graph_signature.output_specs}
    if kinds != {OutputKind.USER_OUTPUT}:
        return None
    spellings: dict[fx.Node, Spelling] = {}
    for node in program.graph.nodes:
        if node not in others or node.target in _LEFT:
            continue
        if node.target is operator.getitem and not node.users:
            continue
        spell = _SPELLINGS.get(node.target)
        needed = node.users or node.target in _NO_RESULT
        found = spell(node) if spell is not None and needed else None
        if found is None:
            return None
        spellings[node] = found
    return _Respelled(program, spellings).program()


class _Respelled(Copy):
    """The program's graph, with some nodes in other words."""

    def __init__(self, program: ExportedProgram, spellings: dict[fx.Node, Spelling]) -> None:
        super().__init__()
        self.original, self.spellings = program, spellings

    def program(self) -> ExportedProgram:
        for node in self.original.graph.nodes:
            if node.op == "call_function":
                self._call(node)
            else:
                self.copies[node] = made = self.graph.node_copy(node, self.copies.__getitem__)
                made.name = node.name  # Also of an input that is called as a function of Python's.
        for parts in self.parts.values():
            for part in parts:
                if not part.users:
                    self.graph.erase_node(part)
        signature = self.original.graph_signature
        results = self.graph.output_node().args[0]
        assert isinstance(results, (tuple, list))
        outputs = [
            OutputSpec(spec.kind, TensorArgument(result.name), spec.target)
            if isinstance(result, fx.Node)
            else spec
            for spec, result in zip(signature.output_specs, results, strict=True)
        ]
        return ExportedProgram(
            root=self.original.graph_module,
            graph=self.graph,
            graph_signature=ExportGraphSignature(copy.deepcopy(signature.input_specs), outputs),
            state_dict=self.original.state_dict,
            range_constraints=self.original.range_constraints,
            module_call_graph=copy.deepcopy(self.original.module_call_graph),
            example_inputs=self.original.example_inputs,
            constants=self.original.constants,
            verifiers=self.original.verifiers,
        )

    def _call(self, node: fx.Node) -> None:
        if node.target is operator.getitem:
            self.take(node)
            return
        target, args, kwargs = self.spellings.get(node, (node.target, node.args, node.kwargs))
        assert isinstance(target, OpOverload)
        several = node in self.spellings and len(target._schema.returns) > 1
        value = node.meta.get("val")
        scalars = {arg: self._scalar(node, arg.number) for arg in args if isinstance(arg, _Scalar)}
        args = tuple(scalars[arg] if isinstance(arg, _Scalar) else arg for arg in args)
        if several or scalars:
            with torch.no_grad():
                value = target(*fx.map_arg(args, lambda n: n.meta["val"]), **kwargs)
        self.call(node, target, args, kwargs, value)
        if several:
            self.copies[node] = self.parts[node][0]

    def _scalar(self, of: fx.Node, number: float) -> fx.Node:
        """The number as a tensor, made for `of`."""
        target = aten.scalar_tensor.default
        form = {"dtype": torch.float32, "layout": torch.strided, "device": torch.device("cpu")}
        with of.meta["val"].fake_mode:
            value = target(number, **form)
        made = self._make(of, target, "scalar_tensor", (number,), form, value)
        self.copies[made] = made
        return made
