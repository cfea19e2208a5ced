# SPDX-License-Identifier: Apache-2.0
"""Kernels and functions, with the layers that they are there for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tinyet.accounts.layers import LayerAnalysis, sum_known
from tinyet.budget.code import Function, call_bytes
from tinyet.deployment import Deployment, Step


@dataclass(frozen=True)
class FunctionAnalysis:
    """Code that is in flash once, whoever needs it. wrapper: made for calls with certain constants, not of a library.

    bytes: as its kernel states them. linked_bytes: as the linker has it; None where nothing is built, and where the
    compiler has made it part of its caller. kernels: that call it, or are it; layers: that need it, by index.
    """

    name: str
    wrapper: bool
    bytes: int | None
    linked_bytes: int | None
    kernels: tuple[str, ...]
    layers: tuple[int, ...]


@dataclass(frozen=True)
class KernelAnalysis:
    """All layers that one kernel computes. code_bytes: of functions and calls, each function with the first kernel that
    needs it; None where that is not stated. constant_bytes, instructions, cycles: the sums of its layers'."""

    kernel: str
    delegate: str
    layers: tuple[int, ...]
    instructions: int | None
    cycles: int | None
    code_bytes: int | None
    constant_bytes: int


def function_analyses(
    functions: Sequence[Function], linked: Mapping[str, int] | None
) -> tuple[FunctionAnalysis, ...]:
    """linked: bytes by the name in C, of what was built."""
    return tuple(
        FunctionAnalysis(
            name=f.name,
            wrapper=f.made,
            bytes=f.bytes,
            linked_bytes=None if linked is None else linked.get(f.name),
            kernels=f.kernels,
            layers=tuple(dict.fromkeys(s.index for s in f.steps)),
        )
        for f in functions
    )


def kernels_of(
    deployment: Deployment, functions: Sequence[Function], layers: Sequence[LayerAnalysis]
) -> tuple[KernelAnalysis, ...]:
    """The layers by their kernels."""
    users: dict[tuple[str, str], list[Step]] = {}
    for step in deployment.steps:
        users.setdefault((step.choice.kernel.symbol, step.choice.delegate.name), []).append(step)
    found = []
    for (kernel, delegate), steps in users.items():
        indices = {s.index for s in steps}
        code = [f.bytes for f in functions if f.steps[0].index in indices]
        code += [call_bytes(deployment, s) for s in steps]
        own = [layers[s.index] for s in steps]
        found.append(
            KernelAnalysis(
                kernel=kernel,
                delegate=delegate,
                layers=tuple(s.index for s in steps),
                instructions=sum_known([layer.instructions for layer in own]),
                cycles=sum_known([layer.cycles for layer in own]),
                code_bytes=sum_known(code),
                constant_bytes=sum(layer.constant_bytes for layer in own),
            )
        )
    return tuple(found)
