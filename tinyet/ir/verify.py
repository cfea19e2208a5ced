# SPDX-License-Identifier: Apache-2.0
"""What makes a graph well formed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tinyet.errors import InternalError
from tinyet.ir.graph import Graph, Node, Tensor
from tinyet.ir.types import Shape


def verify(graph: Graph, infer: Callable[[Node], Sequence[Shape]], after: str) -> None:
    """Raise InternalError, naming the pass `after` which it was broken, unless the graph is well formed:
    values defined before use and once, names unique, constants as typed, shapes as the operators' rules say."""
    problems: list[str] = []
    defined: set[Tensor] = set(graph.inputs)
    names: dict[str, Tensor] = {t.name: t for t in graph.inputs}
    if len(names) != len(graph.inputs):
        problems.append("two inputs share a name")

    def named(tensor: Tensor) -> None:
        if names.setdefault(tensor.name, tensor) is not tensor:
            problems.append(f"two tensors are called {tensor.name}")

    for node in graph.nodes:
        label = f"{node.op} ({', '.join(t.name for t in node.outputs)})"
        for tensor in node.inputs:
            if tensor is None:
                continue
            named(tensor)
            if tensor.is_constant:
                data = tensor.array
                if tuple(data.shape) != tensor.shape or data.dtype != tensor.dtype.numpy:
                    problems.append(
                        f"constant {tensor.name} is {data.dtype}{data.shape}, typed {tensor.type}"
                    )
            elif tensor not in defined:
                problems.append(f"{label} reads {tensor.name} before it is computed")
        for tensor in node.outputs:
            named(tensor)
            if tensor in defined or tensor.is_constant:
                problems.append(f"{label} computes {tensor.name} a second time")
            defined.add(tensor)
        shapes = tuple(tuple(s) for s in infer(node))
        actual = tuple(t.shape for t in node.outputs)
        if shapes != actual:
            problems.append(f"{label} should give {shapes}, typed {actual}")
    problems += [
        f"output {t.name} is never computed" for t in graph.outputs if t not in defined and not t.is_constant
    ]
    if problems:
        raise InternalError(f"invalid graph after {after}:\n" + "\n".join(f"  - {p}" for p in problems))
