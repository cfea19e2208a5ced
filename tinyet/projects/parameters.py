# SPDX-License-Identifier: Apache-2.0
"""Parameters that several programs have, as entry points of one module do: which of them are there once, and why
others are not.

A parameter is the same where the float models have a constant of one name and the same values. Its integers are the
same where both were quantized by these values alone; its bytes, where the kernels that read it pack it alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tinyet.deployment import ArrayKey, Deployment, Step
from tinyet.emit.constants import Common
from tinyet.ir import Tensor
from tinyet.program import Program


@dataclass(frozen=True)
class SharedParameter:
    """A parameter of several models. models: their names. bytes: of its values, in one of them. once: it lies in flash
    once for all of them; why: what keeps it from that, empty where nothing does."""

    name: str
    models: tuple[str, ...]
    bytes: int
    once: bool
    why: str

    def __str__(self) -> str:
        return f"{self.name} of {', '.join(self.models)}: {self.why or 'once'}"


def shared_parameters(
    programs: Mapping[str, Program], deployments: Mapping[str, Deployment], common: Common
) -> tuple[SharedParameter, ...]:
    """All weights, of two dimensions and more, that two programs or more have, in the order of the first."""
    found: dict[tuple[str, bytes], list[str]] = {}
    for model, program in programs.items():
        graph = program.graph if program.float_graph is None else program.float_graph
        for tensor in graph.constants:
            if len(tensor.shape) > 1:
                found.setdefault((tensor.name, tensor.array.tobytes()), []).append(model)
    return tuple(
        _shared(name, models, programs, deployments, common)
        for (name, _), models in found.items()
        if len(models) > 1
    )


def _shared(
    name: str,
    models: list[str],
    programs: Mapping[str, Program],
    deployments: Mapping[str, Deployment],
    common: Common,
) -> SharedParameter:
    tensors = {model: _constant(programs[model], name) for model in models}
    missing = [model for model, tensor in tensors.items() if tensor is None]
    size = max((tensor.type.bytes for tensor in tensors.values() if tensor is not None), default=0)
    if missing:
        why = f"a part of other constants in {', '.join(missing)}"
        return SharedParameter(name, tuple(models), size, once=False, why=why)
    first = tensors[models[0]]
    assert first is not None
    for model in models[1:]:
        if differing := _differing(first, tensors[model], model):
            return SharedParameter(name, tuple(models), size, once=False, why=differing)
    readers = {model: _readers(deployments[model], name) for model in models}
    packed = [_packed(deployments[model], readers[model]) for model in models]
    held = [common.arrays[key].models for key in packed[0] if key in common.arrays]
    if packed[0] and all(keys == packed[0] for keys in packed) and len(held) == len(packed[0]):
        return SharedParameter(name, tuple(models), size, once=True, why="")
    kernels = {model: ", ".join(s.choice.kernel.symbol for s in readers[model]) or "none" for model in models}
    if len(set(kernels.values())) > 1:
        why = "equal integers, for kernels that pack them differently: "
        why += ", ".join(f"{kernel} in {model}" for model, kernel in kernels.items())
    else:
        why = f"equal integers, packed by {kernels[models[0]]} with others that are not: biases hold the input's scale"
    return SharedParameter(name, tuple(models), size, once=False, why=why)


def _constant(program: Program, name: str) -> Tensor | None:
    return next((tensor for tensor in program.graph.constants if tensor.name == name), None)


def _differing(first: Tensor, other: Tensor | None, model: str) -> str:
    """What two quantizations of a parameter differ in; empty where they are the same."""
    assert other is not None
    if first.dtype is not other.dtype:
        return f"{first.dtype.value}, and {other.dtype.value} in {model}"
    if first.shape != other.shape:
        return f"{list(first.shape)}, and {list(other.shape)} in {model}: channels were removed"
    if first.type.quant != other.type.quant:
        return f"other scales in {model}"
    if first.array.tobytes() != other.array.tobytes():
        return f"other integers in {model}"
    return ""


def _readers(deployment: Deployment, name: str) -> list[Step]:
    return [s for s in deployment.steps if any(t is not None and t.name == name for t in s.node.inputs)]


def _packed(deployment: Deployment, steps: list[Step]) -> set[ArrayKey]:
    """The arrays that hold the weights of these layers: of each the largest, as many as it has weights."""
    found = set[ArrayKey]()
    for step in steps:
        weights = [t for t in step.node.inputs if t is not None and t.is_constant and len(t.shape) > 1]
        mine = [a for a in deployment.arrays if any(user is step for user, _ in a.uses)]
        found.update(a.key for a in sorted(mine, key=lambda a: -a.bytes)[: len(weights)])
    return found
