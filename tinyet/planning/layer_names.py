# SPDX-License-Identifier: Apache-2.0
"""Names of a model's layers: after the paths of the user's modules, in every report and in the C."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from tinyet.ir import Graph, Node
from tinyet.ops.region import Region


def identifier(text: str) -> str:
    """The ASCII letters and digits of `text`, one underscore for all that is between; maybe empty, or a digit first.

    Underscores at the ends and doubled ones, which C and C++ keep for themselves, do not come out.
    """
    return re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_")


def kind(node: Node) -> str:
    """The kind of a node in a word: its operator, or the delegate that took the region."""
    return node.attrs.delegate if isinstance(node.attrs, Region) else node.op


def module_of(node: Node) -> str:
    """The path of the module that the node is named after, empty when it has none.

    Of a region, that of the module around all of it; of one that was lowered on purpose, that of the call: the paths
    inside it begin at the lowered module.
    """
    if isinstance(node.attrs, Region):
        calls = [origin for origin in node.origins if origin.aten.startswith("tinyet.")]
        return common_module([origin.module for origin in calls or node.origins])
    return "" if node.origin is None else node.origin.module


def common_module(paths: Sequence[str]) -> str:
    """The path of the innermost module that all of them are in."""
    split = [path.split(".") for path in paths]
    shared = []
    for parts in zip(*split, strict=False):
        if len(set(parts)) != 1:
            break
        shared.append(parts[0])
    return ".".join(shared)


def layer_names(nodes: Sequence[Node]) -> tuple[str, ...]:
    """A name for each layer: `features.0` for the layer of the module features.0.

    If a module computes several things, the operator stands behind its path (`block.add`), except for those with
    weights. A module that is called again has a number (`conv`, `conv_2`). Without a module it is operator and index.
    Their identifiers are unique, too, so they are the names in C.
    """
    modules = [module_of(node) for node in nodes]
    weighted = [any(t is not None and t.is_constant for t in node.inputs) for node in nodes]
    users = Counter(modules)
    heavy = Counter(m for m, w in zip(modules, weighted, strict=True) if w)
    around = {m[:dot.start()] for m in set(modules) for dot in re.finditer(r"\.", m)}  # fmt: skip
    wanted = []
    for index, (node, module, has_weights) in enumerate(zip(nodes, modules, weighted, strict=True)):
        if not identifier(module):
            wanted.append(f"{kind(node)}_{index}")
        elif module in around or not (has_weights if heavy[module] else users[module] == 1):
            wanted.append(f"{module}.{kind(node)}")
        else:
            wanted.append(module)
    taken: dict[str, int] = {}
    for index, name in enumerate(wanted):
        taken.setdefault(identifier(name), index)
    numbers: Counter[str] = Counter()
    found = []
    for index, name in enumerate(wanted):
        unique = name
        while taken.setdefault(identifier(unique), index) != index:
            numbers[name] += 1
            unique = f"{name}_{numbers[name] + 1}"
        found.append(unique)
    return tuple(found)


def names_of(graph: Graph, calls: Sequence[Node]) -> dict[Node, str]:
    """Names of the layers. They follow the order of the graph, not that of the calls, which depends on the kernels:
    so a layer has one name whichever kernel computes it."""
    computed = set(calls)
    ordered = [node for node in graph.nodes if node in computed]
    return dict(zip(ordered, layer_names(ordered), strict=True))
