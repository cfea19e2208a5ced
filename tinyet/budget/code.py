# SPDX-License-Identifier: Apache-2.0
"""Flash by owner: code by kernel and by layer, each function once, as estimated and as linked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tinyet.deployment import Deployment, Step
from tinyet.opset import Definition

# Behind a function's name: the digest of a kernel's text, and what a compiler calls a part or a copy of it.
_ENDING = re.compile(r"(_[0-9a-f]{8})?(\..*)?$")


def plain_name(symbol: str) -> str:
    """The name of a function in C, of that of its symbol."""
    return _ENDING.sub("", symbol)


@dataclass(frozen=True)
class Function:
    """Code that is there once, whoever needs it.

    made: for calls with certain constants, not of a library. bytes: as stated, None where they are not. steps: the
    layers that need it, in order.
    """

    name: str
    made: bool
    bytes: int | None
    steps: tuple[Step, ...]

    @property
    def kernels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(step.choice.kernel.symbol for step in self.steps))


def functions_of(deployment: Deployment, names: Mapping[Definition, str]) -> tuple[Function, ...]:
    """All functions of the model's kernels, in the order in which layers first need them.

    names: of the functions that were made for calls. A library's function whose kernel states no cost has no bytes.
    """
    sizes: dict[tuple[str, bool], int | None] = {}
    steps: dict[tuple[str, bool], list[Step]] = {}
    for step in deployment.calls:
        cost, symbol = deployment.cost_of(step), step.call.symbol
        needed: dict[tuple[str, bool], int | None] = {}
        if isinstance(symbol, Definition):
            needed[names[symbol], True] = None if cost is None else cost.code
        elif cost is None:
            needed[symbol, False] = None
        if cost is not None:
            needed |= {(name, False): size for name, size in cost.shared.items()}
        for key, size in needed.items():
            sizes[key] = sizes.get(key) or size
            steps.setdefault(key, []).append(step)
    return tuple(
        Function(name, made, sizes[name, made], tuple(users)) for (name, made), users in steps.items()
    )


def call_bytes(deployment: Deployment, step: Step) -> int | None:
    """Bytes of code that a layer has alone: its call, where that is to a library; None where that is not stated."""
    calls = [call for call in deployment.calls_of(step) if not isinstance(call.call.symbol, Definition)]
    costs = [deployment.cost_of(call) for call in calls]
    return (
        None if any(cost is None for cost in costs) else sum(cost.code for cost in costs if cost is not None)
    )
