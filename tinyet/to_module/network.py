# SPDX-License-Identifier: Apache-2.0
"""The module that a graph becomes: a list of steps, each a submodule at the path that its node's name says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from tinyet.fx.origins import FileModule
from tinyet.ir import Graph, Origin, Shape
from tinyet.messages.text import c_identifier

_MOST_STEPS = 8
"""Of a name's path: those at its end."""


class Network(FileModule):
    """Inputs and outputs in the graph's order; a state of the graph is a buffer, which a run reads and writes."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.input_names = tuple(tensor.name for tensor in graph.user_inputs)
        self.outputs: list[str] = []
        self.steps: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []
        self.states: list[tuple[str, str, str]] = []

    def keep(self, name: str, slot: str, first: torch.Tensor) -> None:
        """A state: a buffer, and what a run reads it as."""
        path = _unused(self, c_identifier([name]))
        self.register_buffer(path, first)
        self.states.append((path, slot, slot))

    def place(self, step: nn.Module, name: str, origin: Origin, role: str) -> str:
        """Put a step where a name says; the path that it got. role: what it is, behind the name, where another step has
        the name."""
        parts = [p for p in name.replace("::", "/").replace(".", "/").split("/") if p]
        parts = [
            "".join(c if c.isalnum() or c == "_" else "_" for c in p) or "_" for p in parts[-_MOST_STEPS:]
        ]
        parts = parts or [role or "step"]
        owner: nn.Module = self
        for place, part in enumerate(parts[:-1]):
            inner = owner._modules.get(part)
            if type(inner) is not nn.Module:
                parts[place] = _unused(owner, part)
                inner = nn.Module()
                owner.add_module(parts[place], inner)
            owner = inner
        last = parts[-1]
        if role and (hasattr(owner, last) or last[0].isdigit()):
            last = f"{last}_{role}"
        parts[-1] = _unused(owner, last)
        owner.add_module(parts[-1], step)
        path = ".".join(parts)
        self.origins[path] = origin
        return path

    def forward(self, *inputs: torch.Tensor) -> Any:
        values = dict(zip(self.input_names, inputs, strict=True))
        # Written at the end, and read by then: what is read is what the run before has left.
        values |= {slot: self.get_buffer(path).clone() for path, slot, _ in self.states}
        for path, read, given in self.steps:
            result = self.get_submodule(path)(*(values[name] for name in read))
            values.update(zip(given, result if isinstance(result, tuple) else (result,), strict=True))
        for path, _, behind in self.states:
            self.get_buffer(path).copy_(values[behind])
        found = tuple(values[name] for name in self.outputs)
        return found[0] if len(found) == 1 else found


def _unused(owner: nn.Module, wanted: str) -> str:
    """A name that a module has for nothing yet: neither for an attribute of its own nor for a module in it."""
    name, count = wanted, 0
    while hasattr(owner, name):
        count += 1
        name = f"{wanted}_{count}"
    return name


class Function(nn.Module):
    """An operator without weights. held: those of its arguments, by their places, that are constants."""

    def __init__(
        self, function: Callable[..., Any], count: int, held: Mapping[int, torch.Tensor] | None = None
    ) -> None:
        super().__init__()
        self.function = function
        self.names: list[str | None] = [None] * count
        for place, data in (held or {}).items():
            self.names[place] = f"constant_{place}"
            self.register_buffer(f"constant_{place}", data)

    def forward(self, *computed: torch.Tensor) -> Any:
        rest = iter(computed)
        return self.function(*(next(rest) if name is None else self.get_buffer(name) for name in self.names))


def moved(x: torch.Tensor, order: Sequence[int] | None, shape: Shape | None) -> torch.Tensor:
    """A tensor's dimensions in another order, then under another shape."""
    x = x if order is None else x.permute(*order)
    return x if shape is None else x.reshape(shape)


def parameter(data: Any) -> nn.Parameter:
    """An array, or a tensor, as weights that can be trained."""
    return nn.Parameter(torch.tensor(data, dtype=torch.float32))
