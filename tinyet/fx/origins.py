# SPDX-License-Identifier: Apache-2.0
"""Debug handles: which line of the user's Python, in which module, asked for a node of an exported graph.

`stamp` writes the handle into `meta["custom"]`, the one entry that torch carries unchanged through
transformations and through exporting again; `origin_of` reads it. Nodes that others inserted (quantize,
dequantize) have no handle of their own and take that of the nearest producer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import fx, nn

from tinyet.fx.source_locations import frame_of_stack_trace, portable_path
from tinyet.ir import Origin

_KEY = "tinyet"


class FileModule(nn.Module):
    """A module that was made of a model's file, whose debug handles say where in that file.

    origins: of submodules, by their paths. input_names: the file's names of the inputs.
    """

    def __init__(self) -> None:
        super().__init__()
        self.origins: dict[str, Origin] = {}
        self.input_names: tuple[str, ...] = ()


def op_name(node: fx.Node) -> str:
    """`aten.conv2d.default` for an ATen call; the function's name for others."""
    target = node.target
    return (
        str(target)
        if not callable(target) or "." in str(target)
        else getattr(target, "__name__", str(target))
    )


def module_stack(node: fx.Node) -> list[tuple[str, str]]:
    """(path, qualified class name) from the outermost module to the one that called the operator."""
    stack = node.meta.get("nn_module_stack") or {}
    result = []
    for path, kind in stack.values():
        name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
        result.append((str(path), name))
    return result


def _derive(node: fx.Node, root: Path | None = None, of_file: Mapping[str, Origin] | None = None) -> Origin:
    frame = frame_of_stack_trace(node.meta.get("stack_trace"))
    stack = module_stack(node)
    for path, _ in reversed(stack):
        if of_file is not None and path in of_file:
            return replace(of_file[path], aten=op_name(node), key=node.name)
    return Origin(
        aten=op_name(node),
        module=stack[-1][0] if stack else "",
        file=portable_path(frame.file, root) if frame else "",
        line=frame.line if frame else 0,
        text=frame.text if frame else _layer(stack),
        key=node.name,
    )


def _layer(stack: Sequence[tuple[str, str]]) -> str:
    """`Conv2d of the Sequential`: the module that called the operator, and the whole model, when both and all between
    are torch's own, so that no line of the user's is known; else nothing."""
    if not stack or not all(name.startswith("torch.nn.") for _, name in stack):
        return ""
    kinds = [name.rpartition(".")[2] for _, name in stack]
    return f"{kinds[-1]} of the {kinds[0]}" if len(kinds) > 1 else kinds[0]


def _stamped(node: fx.Node) -> Origin | None:
    fields: dict[str, Any] | None = (node.meta.get("custom") or {}).get(_KEY)
    return Origin(**fields) if fields else None


def stamp_node(node: fx.Node, origin: Origin) -> None:
    """Write `origin` as the node's handle."""
    fields = {name: getattr(origin, name) for name in ("aten", "module", "file", "line", "text", "key")}
    node.meta["custom"] = {**(node.meta.get("custom") or {}), _KEY: fields}


def stamp(graph: fx.Graph, root: Path | None = None, of_file: Mapping[str, Origin] | None = None) -> None:
    """Give every computing node that has none its handle; its name in this graph becomes the handle's key.

    root: directory to which file names are made relative. of_file: the origins of a FileModule.
    """
    for node in graph.nodes:
        if node.op == "call_function" and _stamped(node) is None:
            stamp_node(node, _derive(node, root, of_file))


def _own(node: fx.Node) -> Origin:
    return _stamped(node) or _derive(node)


def _completed(own: Origin, found: Origin | None) -> Origin:
    if own.is_known or found is None:
        return own
    return Origin(own.aten, own.module or found.module, found.file, found.line, found.text, own.key)


def _nearest(node: fx.Node, step: Callable[[fx.Node], Iterable[fx.Node]]) -> Origin | None:
    """The handle of the nearest node, breadth first along `step`, that says where it is from."""
    seen: set[fx.Node] = set()
    queue = deque(step(node))
    while queue:
        other = queue.popleft()
        if other in seen:
            continue
        seen.add(other)
        found = _own(other)
        if found.is_known:
            return found
        queue += step(other)
    return None


def origin_of(node: fx.Node) -> Origin:
    """The node's handle; when it does not say where, with the place of the nearest producer that does, or
    else (the input's quantize node) of the nearest reader."""
    own = _own(node)
    if own.is_known:
        return own
    found = _nearest(node, lambda n: n.all_input_nodes) or _nearest(node, lambda n: n.users)
    return _completed(own, found)


def origins_of(graph: fx.Graph) -> dict[fx.Node, Origin]:
    """`origin_of` each node of the graph, in one go."""
    own = {node: _own(node) for node in graph.nodes}
    above = _all_nearest(own, list(graph.nodes), lambda n: n.all_input_nodes)
    below = _all_nearest(own, list(reversed(graph.nodes)), lambda n: n.users)
    return {node: _completed(origin, above[node] or below[node]) for node, origin in own.items()}


def _all_nearest(
    own: Mapping[fx.Node, Origin], order: Sequence[fx.Node], step: Callable[[fx.Node], Iterable[fx.Node]]
) -> dict[fx.Node, Origin | None]:
    """`_nearest` of all nodes, in an order in which each comes after those that are a step away from it. Breadth first
    means: by the shortest way, and of those of one length by the first in the order of the steps."""
    found: dict[fx.Node, tuple[int, Origin | None]] = {}
    for node in order:
        best: tuple[int, Origin | None] = len(order), None
        for other in step(node):
            distance, origin = (0, own[other]) if own[other].is_known else found[other]
            if origin is not None and distance < best[0]:
                best = distance, origin
        found[node] = best[0] + 1, best[1]
    return {node: origin for node, (_, origin) in found.items()}


def handle_only(custom: object) -> dict[str, object]:
    """Of a node's `custom` metadata as a file has them, the handle if it is one; torch and others keep things there,
    too."""
    fields = custom.get(_KEY) if isinstance(custom, dict) else None
    kinds = {"aten": str, "module": str, "file": str, "line": int, "text": str, "key": str}
    if not isinstance(fields, dict) or {name: type(value) for name, value in fields.items()} != kinds:
        return {}
    return {_KEY: fields}


def is_stamped(node: fx.Node) -> bool:
    """Whether the node has its handle."""
    return _stamped(node) is not None
