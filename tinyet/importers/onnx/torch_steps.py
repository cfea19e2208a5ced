# SPDX-License-Identifier: Apache-2.0
"""The arguments of a handler of `torch_handlers`, a node and its inputs, and its result: a step, a torch module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from tinyet.errors import RefusedError
from tinyet.importers.onnx.read import OnnxNode
from tinyet.ir import Array
from tinyet.ir.budget import Budget

Function = Callable[..., Any]
"""The step that holds the parameters, and the computed inputs in order → the result, or a tuple of several."""


OF_INTEGERS = frozenset(
    """
    Abs Add ArgMax Cast Clip Concat DepthToSpace Div Dropout Expand Flatten Gather Identity Max Min Mul Neg Pad Pow
    ReduceMax ReduceMin ReduceProd ReduceSum Relu Reshape ScatterND Slice SpaceToDepth Split Squeeze Sub Sum Tile
    Transpose Unsqueeze Where
    """.split()  # noqa: SIM905
)
"""Operators that ONNX also defines for integers, and torch computes for them. Tensors without memory do not know
torch's types."""


class Step(nn.Module):
    """One node."""

    def __init__(self, node: OnnxNode) -> None:
        super().__init__()
        self.node = node
        self.function: Function | None = None

    def forward(self, *inputs: torch.Tensor) -> Any:
        assert self.function is not None
        return self.function(self, *inputs)


class Build:
    """The arguments of a handler: the node's inputs, constants apart from computed ones."""

    def __init__(
        self, node: OnnxNode, step: Step, given: Sequence[torch.Tensor | Array | None], budget: Budget
    ) -> None:
        self.node = node
        self.step = step
        self.given = given
        self.budget = budget

    def with_inputs(self, given: Sequence[torch.Tensor | Array | None]) -> Build:
        """The same node with other inputs."""
        return Build(self.node, self.step, given, self.budget)

    def attribute(self, name: str, default: Any) -> Any:
        value = self.node.attributes.get(name)
        if value is None:
            return default
        if isinstance(default, float) and isinstance(value, (int, float)):
            return float(value)
        if not isinstance(value, type(default)):
            raise RefusedError(f"has {name} = {str(value)[:60]}", shape=False)
        return value

    def has(self, position: int) -> bool:
        return position < len(self.given) and self.given[position] is not None

    def constant(self, position: int, role: str) -> Array:
        value = self.given[position] if position < len(self.given) else None
        if not isinstance(value, np.ndarray):
            raise RefusedError(f"computes its {role}", f"make the {role} a constant of the model")
        return value

    def integers(self, position: int, role: str, default: Sequence[int] | None = None) -> list[int]:
        if not self.has(position) and default is not None:
            return list(default)
        value = self.constant(position, role)
        if value.dtype.kind not in "iu":
            raise RefusedError(f"has a {role} of {value.dtype}")
        return [int(n) for n in value.reshape(-1)]

    def example(self, position: int = 0) -> torch.Tensor:
        """The input as it is while the module is built: its shape and type, no numbers."""
        value = self.given[position] if position < len(self.given) else None
        if value is None:
            raise RefusedError(f"has no input {position}", shape=False)
        if not isinstance(value, np.ndarray):
            return value
        return torch.from_numpy(np.empty(0, value.dtype)).new_empty(value.shape, device="meta")

    def rank(self, position: int = 0) -> int:
        return self.example(position).ndim

    def weights(self, position: int, role: str) -> Array:
        """A constant of a layer. Raises RefusedError for one that is no floats, which no layer of floats has."""
        value = self.constant(position, role)
        if value.dtype.kind != "f":
            raise RefusedError(f"has a {role} of {value.dtype}", "store it in float32, or quantize the model")
        return value

    def hold(self, role: str, data: Array) -> str:
        """A constant as a parameter of the step."""
        self.budget.hold(8 * data.size)
        if data.dtype.kind != "f":
            data = data.astype(np.int64)
            self.step.register_buffer(role, torch.from_numpy(data.copy()))
        else:
            self.step.register_parameter(
                role, nn.Parameter(torch.from_numpy(data.astype(np.float32)), requires_grad=False)
            )
        return role

    def arguments(self) -> Callable[[Step, tuple[torch.Tensor, ...]], list[torch.Tensor]]:
        """All inputs in order, the constants among them as parameters."""
        plan: list[str | int] = []
        computed = 0
        for position, value in enumerate(self.given):
            if isinstance(value, np.ndarray):
                if self.node.op not in OF_INTEGERS:
                    self.weights(position, "constant")
                plan.append(self.hold(f"constant_{position}", value))
            elif value is not None:
                plan.append(computed)
                computed += 1
        return lambda step, inputs: [getattr(step, p) if isinstance(p, str) else inputs[p] for p in plan]
