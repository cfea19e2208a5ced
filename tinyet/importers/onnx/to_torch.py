# SPDX-License-Identifier: Apache-2.0
"""A float ONNX model as a torch module, for `tinyet.compile`: one submodule a node, named after the node.

The nodes are run once while the module is built, on tensors without memory, so that all shapes are known; nodes that
depend on constants and shapes alone are computed then.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from tinyet.errors import Complaints, ModelError, RefusedError, TinyetError
from tinyet.fx.origins import FileModule
from tinyet.importers.onnx.fold import FOLDED, constant_of, filled, folded
from tinyet.importers.onnx.importer import is_known, unsupported
from tinyet.importers.onnx.read import OnnxModel, OnnxNode, OnnxValue
from tinyet.importers.onnx.torch_handlers import TABLE
from tinyet.importers.onnx.torch_steps import OF_INTEGERS, Build, Function, Step
from tinyet.ir import Array
from tinyet.ir.budget import Budget
from tinyet.messages.text import shown


class OnnxModule(FileModule):
    """The whole model; inputs and outputs in the file's order."""

    def __init__(self, model: OnnxModel) -> None:
        super().__init__()
        self.input_names = tuple(value.name for value in model.inputs)
        self.outputs = list(model.outputs)
        self.steps: list[tuple[str, list[str], list[str]]] = []

    def place(self, step: Step, file: str) -> str:
        """Put a step where its node's name says; the path that it got."""
        parts = [p for p in step.node.name.replace("::", "/").replace(".", "/").split("/") if p]
        parts = ["".join(c if c.isalnum() or c == "_" else "_" for c in p) or "_" for p in parts[-8:]]
        parts = parts or [f"node_{step.node.index}"]
        owner: nn.Module = self
        for place, part in enumerate(parts[:-1]):
            inner = owner._modules.get(part)
            if inner is None or isinstance(inner, Step):
                parts[place] = _unused(owner, part)
                inner = nn.Module()
                owner.add_module(parts[place], inner)
            owner = inner
        parts[-1] = _unused(owner, parts[-1])
        owner.add_module(parts[-1], step)
        path = ".".join(parts)
        self.origins[path] = step.node.origin(file)
        return path

    def forward(self, *inputs: torch.Tensor) -> Any:
        values = dict(zip(self.input_names, inputs, strict=True))
        for path, read, given in self.steps:
            result = self.get_submodule(path)(*(values[name] for name in read))
            results = result if isinstance(result, tuple) else (result,)
            values.update(zip(given, results, strict=False))
        found = tuple(values[name] for name in self.outputs)
        return found[0] if len(found) == 1 else found


def _unused(owner: nn.Module, wanted: str) -> str:
    """A name that a module has for nothing yet: neither for an attribute of its own nor for a module in it."""
    name, count = wanted, 0
    while hasattr(owner, name):
        count += 1
        name = f"{wanted}_{count}"
    return name


def examples_of(model: OnnxModel) -> tuple[torch.Tensor, ...]:
    """Zeros of the inputs' shapes and types; what is no float32 of the floats is float32 here, and truth values are."""
    return tuple(torch.zeros(value.shape, dtype=_dtype_of(value)) for value in model.inputs)


def _dtype_of(value: OnnxValue) -> torch.dtype:
    kinds = {"float64": torch.float32, "float16": torch.float32, "bool": torch.float32}
    found: torch.dtype = kinds.get(value.dtype) or getattr(torch, value.dtype)
    return found


def to_torch(model: OnnxModel) -> tuple[OnnxModule, tuple[torch.Tensor, ...]]:
    """The model as a module in eval mode, and example inputs of its shapes. Raises UnsupportedOp (UnsupportedShape)
    with all complaints at once."""
    module, complaints = OnnxModule(model), Complaints(model.file)
    values: dict[str, torch.Tensor | Array] = {**model.constants}
    refused: set[str] = set()
    walk = _Walk(
        module,
        model,
        TABLE,
        Budget(model.constant_bytes),
        FakeTensorMode(allow_fallback_kernels=False, allow_non_fake_inputs=True),
    )

    def step(node: OnnxNode) -> None:
        results = walk.convert(node, [values[n] if n else None for n in node.inputs])
        given = [n for n in node.outputs if n]
        if len(results) < len(given):
            raise RefusedError(f"gives {len(given)} outputs, {len(results)} are known")
        values.update((n, x) for n, x in zip(node.outputs, results, strict=False) if n)

    def take(value: OnnxValue) -> None:
        values[value.name] = walk.example(value)

    for value in model.inputs:
        if not complaints.attempt(f"input {value.name}", partial(take, value)):
            refused.add(value.name)
    for node in model.nodes:
        if refused & set(node.inputs):
            refused |= set(node.outputs)
            if not is_known(node.op, TABLE):
                complaints.add(node.title, unsupported(node.op))
        elif not complaints.attempt(node.title, partial(step, node)):
            refused |= set(node.outputs)
            if walk.budget.is_spent:
                break
    complaints.raise_any()
    if constant := [n for n in model.outputs if isinstance(values.get(n), np.ndarray) or n not in values]:
        names = ", ".join(shown(n, 80) for n in constant)
        raise ModelError(f"outputs that are constants, or that nothing gives: {names}", model.file)
    return module.eval(), examples_of(model)


@contextmanager
def _unlogged() -> Iterator[None]:
    """torch writes to its log what it raises as well."""
    log = logging.getLogger(FakeTensorMode.__module__)
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:160]


@dataclass(frozen=True)
class _Walk:
    """The state of the conversion of each node. fake: tensors have shapes and types there, and no memory."""

    module: OnnxModule
    model: OnnxModel
    table: Mapping[str, Callable[[Build], Function]]
    budget: Budget
    fake: FakeTensorMode

    def example(self, value: OnnxValue) -> torch.Tensor:
        """An input while the module is built. Raises RefusedError for one that torch hardly computes with."""
        if value.dtype == "uint16":
            raise RefusedError("is uint16", "take int32, or float32")
        self.budget.run(math.prod(value.shape), 4 * math.prod(value.shape))
        with self.fake:
            return torch.empty(value.shape, dtype=_dtype_of(value))

    def convert(
        self, node: OnnxNode, given: Sequence[torch.Tensor | Array | None]
    ) -> Sequence[torch.Tensor | Array]:
        """The node's results; only types and shapes are known unless they are constants; such a node becomes a
        step."""
        if node.op == "Constant":
            return [constant_of(node)]
        if node.op == "Shape" and given and given[0] is not None:
            size = np.array(given[0].shape, np.int64)
            return [size[slice(node.attributes.get("start") or 0, node.attributes.get("end"))]]
        if node.op == "ConstantOfShape" and given and isinstance(given[0], np.ndarray):
            return [filled(node, given[0], self.budget)]
        arrays = [x for x in given if x is None or isinstance(x, np.ndarray)]
        if node.op in FOLDED and given and len(arrays) == len(given):
            return folded(node, arrays, self.model.opset, self.budget)
        handler = self.table.get(node.op)
        if handler is None:
            raise unsupported(node.op)
        step = Step(node)
        computed = [(n, x) for n, x in zip(node.inputs, given, strict=True) if isinstance(x, torch.Tensor)]
        whole = next((x.dtype for _, x in computed if not x.dtype.is_floating_point), None)
        if whole is not None and node.op not in OF_INTEGERS:
            raise RefusedError(
                f"computes with {str(whole).removeprefix('torch.')} values", "cast them to float"
            )
        results = self._results(step, handler, given, [x for _, x in computed])
        for x in results:
            if x.numel() == 0:
                raise RefusedError("makes an empty tensor")
            self.budget.run(x.numel(), x.numel() * x.element_size())
        path = self.module.place(step, self.model.file)
        self.module.steps.append((path, [n for n, _ in computed], list(node.outputs)))
        return results

    def _results(
        self,
        step: Step,
        handler: Callable[[Build], Function],
        given: Sequence[torch.Tensor | Array | None],
        computed: Sequence[torch.Tensor],
    ) -> Sequence[torch.Tensor]:
        try:
            step.function = handler(Build(step.node, step, given, self.budget))
            with torch.no_grad(), _unlogged(), self.fake:
                result = step(*computed)
        except (RefusedError, TinyetError):
            raise
        # Errors of torch and numpy for sizes and types that do not fit have no common base.
        except Exception as error:
            raise RefusedError(f"cannot be: {_first_line(error)}") from error
        return result if isinstance(result, tuple) else (result,)
