# SPDX-License-Identifier: Apache-2.0
"""The rules of a well-formed graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tinyet.ir.graph import Graph, Node, State, Tensor
from tinyet.ir.limits import MAX_GRAPH_BYTES, MAX_MACS


def problems_of(graph: Graph, complaints: Callable[[Node], Sequence[str]]) -> list[str]:
    """Why a graph is not well formed: values must be defined before use and once, names unique, constants as typed,
    and nodes such that `complaints` has none about them."""
    problems: list[str] = []
    defined: set[Tensor] = set(graph.inputs)
    names: dict[str, Tensor] = {}

    def named(tensor: Tensor) -> None:
        if names.setdefault(tensor.name, tensor) is not tensor:
            problems.append(f"two tensors are called {tensor.name}")

    for tensor in graph.inputs:
        named(tensor)
        if tensor.is_constant:
            problems.append(f"input {tensor.name} is a constant")
    if len(defined) != len(graph.inputs):
        problems.append("two inputs are one tensor")
    count = len(graph.initial)
    if count > min(len(graph.inputs), len(graph.outputs)):
        problems.append(f"{count} states need an input and an output each")
        return problems
    for state in graph.states:
        named(state.initial)
        problems += [f"state {state.name}: {text}" for text in _state_problems(state)]
    for node in graph.nodes:
        label = f"{node.op} ({', '.join(t.name for t in node.outputs)})"
        for read in dict.fromkeys(node.inputs):
            if read is None:
                continue
            named(read)
            if read.is_constant:
                data = read.array
                if tuple(data.shape) != read.shape or data.dtype != read.dtype.numpy:
                    problems.append(f"constant {read.name} is {data.dtype}{data.shape}, typed {read.type}")
            elif read not in defined:
                problems.append(f"{label} reads {read.name} before it is computed")
        for tensor in node.outputs:
            named(tensor)
            if tensor in defined or tensor.is_constant:
                problems.append(f"{label} computes {tensor.name} a second time")
            defined.add(tensor)
        problems += [f"{label}: {complaint}" for complaint in complaints(node)]
    problems += [
        f"output {t.name} is never computed" for t in graph.outputs if t not in defined and not t.is_constant
    ]
    return problems


def _state_problems(state: State) -> list[str]:
    """While operators are lowered, the types of a state's two ends may differ but for their shapes."""
    found = []
    if not state.initial.is_constant:
        found.append("what it is at first is no constant")
    elif (
        state.initial.array.shape != state.initial.shape
        or state.initial.array.dtype != state.initial.dtype.numpy
    ):
        found.append(f"what it is at first is typed {state.initial.type}, and is not that")
    if not state.value.shape == state.next.shape == state.initial.shape:
        shapes = state.initial.shape, state.value.shape, state.next.shape
        found.append("its shapes are {} at first, {} when read and {} when written".format(*shapes))
    return found


def size_complaints(graph: Graph, macs: Callable[[Node], int]) -> list[str]:
    """Why a graph whose nodes are sound is too large as a whole; `macs` counts a node's multiply-accumulates."""
    tensors = dict.fromkeys((*graph.inputs, *(t for n in graph.nodes for t in n.outputs)))
    total = sum(t.type.bytes for t in tensors)
    if total > MAX_GRAPH_BYTES:
        return [f"what it computes has {total} bytes together, at most {MAX_GRAPH_BYTES}"]
    count = sum(macs(node) for node in graph.nodes)
    return [f"it has {count} multiply-accumulates, at most {MAX_MACS}"] if count > MAX_MACS else []
