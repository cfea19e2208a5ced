# SPDX-License-Identifier: Apache-2.0
"""A float ONNX model as a torch module, for `tinyet.compile`: one submodule a node, called after the node.

The nodes are run once on zeros while the module is built, so that all shapes are known; what depends on constants and
shapes alone is computed then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from tinyet.errors import Complaints, ModelError, RefusedError
from tinyet.importers.onnx.fold import FOLDED, constant_of, filled, folded
from tinyet.importers.onnx.importer import advice
from tinyet.importers.onnx.read import OnnxModel, OnnxNode
from tinyet.ir import Array, Origin

Function = Callable[..., Any]
"""The step that holds the parameters, and the computed inputs in order → the result, or a tuple of several."""


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
    """What a row is given: the node's inputs, constants apart from computed ones."""

    def __init__(self, node: OnnxNode, step: Step, given: Sequence[torch.Tensor | Array | None]) -> None:
        self.node = node
        self.step = step
        self.given = given

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
        """The input as it is while the module is built."""
        value = self.given[position] if position < len(self.given) else None
        if value is None:
            raise RefusedError(f"has no input {position}", shape=False)
        return torch.from_numpy(np.ascontiguousarray(value)) if isinstance(value, np.ndarray) else value

    def rank(self, position: int = 0) -> int:
        return self.example(position).ndim

    def hold(self, role: str, data: Array) -> str:
        """A constant as a parameter of the step."""
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
                plan.append(self.hold(f"constant_{position}", value))
            elif value is not None:
                plan.append(computed)
                computed += 1
        return lambda step, inputs: [getattr(step, p) if isinstance(p, str) else inputs[p] for p in plan]


class OnnxModule(nn.Module):
    """The whole model; inputs and outputs in the file's order."""

    def __init__(self, model: OnnxModel) -> None:
        super().__init__()
        self.inputs = [value.name for value in model.inputs]
        self.outputs = list(model.outputs)
        self.steps: list[tuple[str, list[str], list[str]]] = []
        self.origins: dict[str, Origin] = {}

    def place(self, step: Step, file: str) -> str:
        """Put a step where its node's name says; the path that it got."""
        parts = [p for p in step.node.name.replace("::", "/").replace(".", "/").split("/") if p]
        parts = ["".join(c if c.isalnum() or c == "_" else "_" for c in p) or "_" for p in parts[-8:]]
        parts = [f"node_{p}" if hasattr(nn.Module, p) else p for p in parts] or [f"node_{step.node.index}"]
        owner: nn.Module = self
        for part in parts[:-1]:
            inner = owner._modules.get(part)
            if inner is None or isinstance(inner, Step):
                inner = nn.Module()
                owner.add_module(part if part not in owner._modules else f"{part}_{step.node.index}", inner)
            owner = inner
        last = parts[-1]
        if hasattr(owner, last):
            last = f"{last}_{step.node.index}"
        owner.add_module(last, step)
        path = next(name for name, module in self.named_modules() if module is step)
        self.origins[path] = step.node.origin(file)
        return str(path)

    def forward(self, *inputs: torch.Tensor) -> Any:
        values = dict(zip(self.inputs, inputs, strict=True))
        for path, read, given in self.steps:
            result = self.get_submodule(path)(*(values[name] for name in read))
            results = result if isinstance(result, tuple) else (result,)
            values.update(zip(given, results, strict=False))
        found = tuple(values[name] for name in self.outputs)
        return found[0] if len(found) == 1 else found


def examples_of(model: OnnxModel) -> tuple[torch.Tensor, ...]:
    """Zeros of the inputs' shapes and types; what is no float32 of the floats is float32 here, and truth values are."""
    kinds = {"float64": torch.float32, "float16": torch.float32, "bool": torch.float32}
    return tuple(
        torch.zeros(value.shape, dtype=kinds.get(value.dtype) or getattr(torch, value.dtype))
        for value in model.inputs
    )


def to_torch(model: OnnxModel) -> tuple[OnnxModule, tuple[torch.Tensor, ...]]:
    """The model as a module in eval mode, and example inputs of its shapes. Raises UnsupportedOp (UnsupportedShape)
    with all complaints at once."""
    from tinyet.importers.onnx.torch_rows import TABLE

    examples = examples_of(model)
    module, complaints = OnnxModule(model), Complaints(model.file)
    values: dict[str, torch.Tensor | Array] = {**model.constants}
    values |= dict(zip(module.inputs, examples, strict=True))
    refused: set[str] = set()
    for node in model.nodes:
        if refused & set(node.inputs):
            refused |= set(node.outputs)
            continue
        try:
            results = _convert(module, node, [values[n] if n else None for n in node.inputs], TABLE, model)
            values.update(zip(node.outputs, results, strict=False))
        except RefusedError as error:
            refused |= set(node.outputs)
            complaints.add(node.title, error)
        # What torch says of sizes and types that do not fit.
        except (RuntimeError, IndexError, ValueError, TypeError, OverflowError) as error:
            refused |= set(node.outputs)
            complaints.add(node.title, RefusedError(f"cannot be: {_first_line(error)}"))
    complaints.raise_any()
    if constant := [n for n in model.outputs if isinstance(values.get(n), np.ndarray) or n not in values]:
        raise ModelError(
            f"outputs that are constants, or that nothing gives: {', '.join(constant)}", model.file
        )
    return module.eval(), examples


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:160]


def _convert(
    module: OnnxModule,
    node: OnnxNode,
    given: Sequence[torch.Tensor | Array | None],
    table: Any,
    model: OnnxModel,
) -> Sequence[torch.Tensor | Array]:
    """The node's results on zeros; what is no constant becomes a step."""
    if node.op == "Constant":
        return [constant_of(node)]
    if node.op == "Shape" and given and given[0] is not None:
        size = np.array(given[0].shape, np.int64)
        return [size[slice(node.attributes.get("start") or 0, node.attributes.get("end"))]]
    if node.op == "ConstantOfShape" and given and isinstance(given[0], np.ndarray):
        return [filled(node, given[0])]
    arrays = [x for x in given if x is None or isinstance(x, np.ndarray)]
    if node.op in FOLDED and given and len(arrays) == len(given):
        return folded(node, arrays, model.opset)
    row = table.get(node.op)
    if row is None:
        raise RefusedError("is not supported", advice(node.op), shape=False)
    step = Step(node)
    step.function = row(Build(node, step, given))
    computed = [(n, x) for n, x in zip(node.inputs, given, strict=True) if isinstance(x, torch.Tensor)]
    with torch.no_grad():
        result = step(*(x for _, x in computed))
    results = result if isinstance(result, tuple) else (result,)
    if any(x.numel() == 0 for x in results):
        raise RefusedError("makes an empty tensor")
    path = module.place(step, model.file)
    module.steps.append((path, [n for n, _ in computed], list(node.outputs)))
    return results
