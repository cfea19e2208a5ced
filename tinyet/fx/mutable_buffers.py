# SPDX-License-Identifier: Apache-2.0
"""Buffers that `forward()` writes: what a module keeps from run to run.

In a captured graph they are constants which a `copy_` at the end overwrites. Whoever folds constants, quantizes or
computes node by node must not take them for such: `take_out` makes inputs and outputs of them for as long, `put_back`
makes them what they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx.graph import CodeGen
from torch.utils import _pytree as pytree

from tinyet.errors import ModelError, bullet_list
from tinyet.fx.edit import get_constant
from tinyet.fx.origins import origin_of, stamp_node

aten = torch.ops.aten


@dataclass(frozen=True)
class Buffer:
    """A buffer that forward() writes. name: its path in the module; first: what it is before the first run."""

    name: str
    first: torch.Tensor


@dataclass(frozen=True)
class Kept:
    """The buffers of a module that stand behind its user's inputs and outputs, in both in this order.

    codegen: how the module's results were put together before.
    """

    buffers: tuple[Buffer, ...] = ()
    codegen: CodeGen | None = None


def written_buffers(program: ExportedProgram) -> Iterator[tuple[str, fx.Node, fx.Node]]:
    """(path in the module, placeholder, what it is in the next run) of each buffer that the program writes."""
    paths = {
        spec.arg.name: str(spec.target)
        for spec in program.graph_signature.input_specs
        if spec.kind is InputKind.BUFFER
    }
    for node in program.graph.nodes:
        if _writes(node) and node.args[0].op == "placeholder" and node.args[0].name in paths:
            yield paths[node.args[0].name], node.args[0], node.args[1]


def _writes(node: fx.Node) -> bool:
    return node.op == "call_function" and node.target is aten.copy_.default


def take_out(module: fx.GraphModule) -> Kept:
    """Make an input, behind all others, and an output, behind all others, of each buffer that the graph writes.

    module: functional but for the `copy_` of these buffers. Raises ModelError, listing them with their lines, for
    buffers that are written and on which no output depends.
    """
    graph = module.graph
    writes = [n for n in graph.nodes if _writes(n) and get_constant(module, n.args[0]) is not None]
    if not writes:
        return Kept()
    _refuse_unread(graph, writes)
    last_input = [n for n in graph.nodes if n.op == "placeholder"][-1:]
    output = graph.output_node()
    output.args = (tuple(pytree.tree_leaves(output.args[0])),)
    buffers: list[Buffer] = []
    for write in writes:
        held: Any = write.args[0]
        value = get_constant(module, held)
        assert value is not None
        buffers.append(Buffer(str(held.target), value.detach().clone().contiguous()))
        with graph.inserting_after(last_input[0]) if last_input else graph.inserting_before(held):
            entry = graph.placeholder("kept_" + "".join(c if c.isalnum() else "_" for c in str(held.target)))
        entry.meta = dict(held.meta)
        last_input = [entry]
        output.args = ((*output.args[0], _cloned(write.args[1])),)
        for user in list(write.users):
            user.replace_input_with(write, write.args[1])
        graph.erase_node(write)
        # A buffer may be read by several nodes that get it.
        for node in [n for n in graph.nodes if n.op == "get_attr" and n.target == held.target]:
            node.replace_all_uses_with(entry)
            graph.erase_node(node)
    codegen = graph._codegen
    graph.set_codegen(CodeGen())
    graph.eliminate_dead_code()
    graph.lint()
    module.recompile()
    return Kept(tuple(buffers), codegen)


def put_back(module: fx.GraphModule, kept: Kept) -> None:
    """The inverse of `take_out`, of the same module after whatever was done to it."""
    if not kept.buffers:
        return
    graph, count = module.graph, len(kept.buffers)
    entries = [n for n in graph.nodes if n.op == "placeholder"][-count:]
    output = graph.output_node()
    places: list[fx.Node] = []
    for buffer, entry in zip(kept.buffers, entries, strict=True):
        _register(module, buffer)
        with graph.inserting_before(next(iter(graph.nodes))):
            places.append(graph.get_attr(buffer.name))
        places[-1].meta = dict(entry.meta)
        entry.replace_all_uses_with(places[-1])
        graph.erase_node(entry)
    results = list(pytree.tree_leaves(output.args[0]))
    with graph.inserting_before(output):
        # What is given out of a buffer is what it was before it is written.
        output.args = (
            [_own(graph, value) if _base(value) in places else value for value in results[:-count]],
        )
        # All are read before the first is written: a value may lie where another buffer does.
        values = [_own(graph, value) for value in results[-count:]]
        for place, value in zip(places, values, strict=True):
            stamp_node(graph.call_function(aten.copy_.default, (place, value)), origin_of(value))
    assert kept.codegen is not None
    graph.set_codegen(kept.codegen)
    graph.lint()
    module.recompile()


def _base(value: Any) -> Any:
    """The value behind any number of views; else the value itself."""
    while isinstance(value.target, torch._ops.OpOverload) and value.target.is_view:
        value = value.args[0]
    return value


def _own(graph: fx.Graph, value: fx.Node) -> fx.Node:
    """The value where nobody else's is: a clone of what is a view, or not computed."""
    if isinstance(value.target, torch._ops.OpOverload) and not value.target.is_view:
        return value
    clone = graph.call_function(aten.clone.default, (value,))
    stamp_node(clone, origin_of(value))
    return clone


def _cloned(value: Any) -> Any:
    """The value that a clone copies; else the value itself."""
    while value.op == "call_function" and value.target is aten.clone.default:
        value = value.args[0]
    return value


def _register(module: fx.GraphModule, buffer: Buffer) -> None:
    """Hold the buffer, as it is at first, where its path says."""
    *path, leaf = buffer.name.split(".")
    owner: nn.Module = module
    for part in path:
        if not isinstance(getattr(owner, part, None), nn.Module):
            owner.add_module(part, nn.Module())
        owner = owner.get_submodule(part)
    if hasattr(owner, leaf):
        delattr(owner, leaf)
    owner.register_buffer(leaf, buffer.first.clone())


def _refuse_unread(graph: fx.Graph, writes: Sequence[fx.Node]) -> None:
    """Raise ModelError for what is written and reaches no output, be it by way of another buffer, in any run."""
    needed: set[fx.Node] = set()
    stack = [graph.output_node()]
    while stack:
        node = stack.pop()
        if node in needed:
            continue
        needed.add(node)
        stack += node.all_input_nodes
        if node.op == "get_attr":
            stack += [write.args[1] for write in writes if write.args[0].target == node.target]  # type: ignore[union-attr,misc]
    idle = [w for w in writes if not any(n.op == "get_attr" and n.target == w.args[0].target for n in needed)]  # type: ignore[union-attr]
    if idle:
        lines = [f"{write.args[0].target} {origin_of(write.args[1])}" for write in idle]  # type: ignore[union-attr,arg-type]
        raise ModelError(
            "forward() writes to buffers of the model on which no output depends:\n" + bullet_list(lines),
            hint="leave it away, or do it in training only (if self.training: …); a batch norm in training mode "
            "writes, too: call model.eval()",
        )


class Running:
    """Runs of a module of `take_out`, one after the other: each reads what the one before left."""

    def __init__(self, run: Callable[..., Any], kept: Kept) -> None:
        """run: takes the module's inputs, gives its outputs."""
        self._run, self._kept = run, kept
        self.reset()

    def reset(self) -> None:
        """Make the buffers what they are before the first run."""
        self.buffers: tuple[torch.Tensor, ...] = tuple(buffer.first for buffer in self._kept.buffers)

    def __call__(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        """One run: the user's inputs to the user's outputs."""
        results: list[torch.Tensor] = pytree.tree_leaves(self._run(*inputs, *self.buffers))
        count = len(results) - len(self.buffers)
        self.buffers = tuple(value.detach() for value in results[count:])
        return results[:count]
