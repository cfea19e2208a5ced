# SPDX-License-Identifier: Apache-2.0
"""A graph as a person reads it."""

from __future__ import annotations

import dataclasses

import numpy as np

from tinyet.ir.graph import Attrs, Graph
from tinyet.ir.types import Array


def attrs_text(attrs: Attrs) -> str:
    """`name=value` of every attribute that differs from its default."""
    parts = []
    for item in dataclasses.fields(attrs):
        value = getattr(attrs, item.name)
        if isinstance(value, Graph):
            parts.append(f"{item.name}={value.name}")
        elif item.default is dataclasses.MISSING or value != item.default:
            parts.append(f"{item.name}={value}")
    return ", ".join(parts)


def subgraphs(attrs: Attrs) -> tuple[Graph, ...]:
    """The graphs among an operator's attributes."""
    values = (getattr(attrs, item.name) for item in dataclasses.fields(attrs))
    return tuple(value for value in values if isinstance(value, Graph))


def _initial(array: Array) -> str:
    """The values of a state before the first run, in a few words."""
    values = np.unique(array)
    return str(values[0]) if len(values) == 1 else f"{len(values)} different values"


def to_text(graph: Graph) -> str:
    """The graph as a person reads it: a line a value, with types and source lines. Stable across runs."""
    lines = [f"graph {graph.name}"]
    lines += [f"  input  %{t.name}: {t.type}" for t in graph.user_inputs]
    lines += [
        f"  state  %{s.name}: {s.value.type}, at first {_initial(s.initial.array)}" for s in graph.states
    ]
    lines += [f"  const  %{t.name}: {t.type}" for t in graph.constants]
    for node in graph.nodes:
        outs = ", ".join(f"%{t.name}" for t in node.outputs)
        ins = ", ".join("-" if t is None else f"%{t.name}" for t in node.inputs)
        attributes = attrs_text(node.attrs)
        lines.append(f"  {outs} = {node.op}({ins})" + (f" {{{attributes}}}" if attributes else ""))
        lines += [f"      : {t.type}" for t in node.outputs]
        lines += [f"      # {origin}" for origin in node.origins]
        for inner in subgraphs(node.attrs):
            lines += ["      " + line for line in to_text(inner).splitlines()]
    lines += [f"  keep   %{s.name} = %{s.next.name}" for s in graph.states]
    lines += [f"  return {', '.join('%' + t.name for t in graph.user_outputs)}"]
    return "\n".join(lines) + "\n"
