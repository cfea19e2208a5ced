# SPDX-License-Identifier: Apache-2.0
"""Reads and changes a captured graph: arguments of a call, constants in and out, calls that keep their origin."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx, nn

from tinyet.fx.origins import origin_of, stamp_node


def bind(node: fx.Node) -> dict[str, Any]:
    """The call's arguments by the names of the operator's schema, defaults filled in; getitem: self and
    index."""
    if node.target is operator.getitem:
        return {"self": node.args[0], "index": node.args[1]}
    schema = node.target._schema  # type: ignore[union-attr]
    bound: dict[str, Any] = {}
    for position, argument in enumerate(schema.arguments):
        if argument.name in node.kwargs:
            bound[argument.name] = node.kwargs[argument.name]
        elif not argument.kwarg_only and position < len(node.args):
            bound[argument.name] = node.args[position]
        else:
            bound[argument.name] = argument.default_value if argument.has_default_value() else None
    return bound


def dtype_name(dtype: torch.dtype) -> str:
    """The dtype in torch's words: float16."""
    return str(dtype).removeprefix("torch.")


def get_constant(module: fx.GraphModule, node: object) -> torch.Tensor | None:
    """The value of a get_attr node; None for anything else."""
    if not isinstance(node, fx.Node) or node.op != "get_attr":
        return None
    value: Any = module
    for part in str(node.target).split("."):
        value = getattr(value, part)
    return value if isinstance(value, torch.Tensor) else None


def add_constant(module: fx.GraphModule, before: fx.Node, name: str, value: torch.Tensor) -> fx.Node:
    """A new get_attr node of a new buffer (or parameter, if `value` is one) called `name` or name_1, …."""
    base = "".join(c if c.isalnum() else "_" for c in name)
    unique, count = base, 0
    while hasattr(module, unique):
        count += 1
        unique = f"{base}_{count}"
    if isinstance(value, nn.Parameter):
        module.register_parameter(unique, value)
    else:
        module.register_buffer(unique, value.detach().contiguous())
    with module.graph.inserting_before(before):
        node = module.graph.get_attr(unique)
    mode = before.meta["val"].fake_mode if hasattr(before.meta.get("val"), "fake_mode") else None
    node.meta["val"] = (
        mode.from_tensor(value.detach(), static_shapes=True) if mode is not None else value.detach()
    )
    return node


def add_call(
    graph: fx.Graph,
    before: fx.Node,
    target: Callable[..., Any],
    args: tuple[Any, ...],
    like: fx.Node,
    **options: Any,
) -> fx.Node:
    """A call in front of `before` that carries the origin and module of `like`; its value is computed from
    args."""
    with graph.inserting_before(before):
        node = graph.call_function(target, args, options)
    for key in ("stack_trace", "nn_module_stack"):
        if key in like.meta:
            node.meta[key] = like.meta[key]
    stamp_node(node, origin_of(like))
    values = fx.node.map_arg(args, lambda n: n.meta["val"])
    node.meta["val"] = target(*values, **options)
    return node


def drop_unused(module: fx.GraphModule) -> None:
    """Delete constants that no node reads, recompile, and check the graph."""
    graph = module.graph
    for node in list(graph.nodes):
        if node.op == "get_attr" and not node.users:
            graph.erase_node(node)
    used = {str(node.target) for node in graph.nodes if node.op == "get_attr"}
    named = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    for name, _ in named:
        if name not in used:
            owner_path, _, leaf = name.rpartition(".")
            delattr(module.get_submodule(owner_path), leaf)
    graph.lint()
    module.recompile()
