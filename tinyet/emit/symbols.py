# SPDX-License-Identifier: Apache-2.0
"""The names in C of what a generated model defines."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tinyet.boards import Memory
from tinyet.deployment import Deployment, Step, StoredArray
from tinyet.emit.constants import NONE_COMMON, Common
from tinyet.emit.definitions import ModelCode, StepView, code_of
from tinyet.emit.fusion import (
    FusionGroupView,
)
from tinyet.emit.instance import instance_of
from tinyet.emit.kernels import shareable
from tinyet.emit.model import kernel_files
from tinyet.opset import (
    Definition,
)


@dataclass(frozen=True)
class Symbols:
    """Names of the definitions in `model_files`: the functions printed for calls, and for each step the arrays and
    parameters that no earlier step needs.

    arrays: by their names. parameters: for each step that has some, their name, and those of the arrays that they may
    point at, by their roles. placed: the memory of each variable and array that was given one. calls: the C of each
    layer's call, by its index; of one that is computed by rows, of its first tile.
    """

    functions: Mapping[Definition, str]
    constants: Mapping[Step, tuple[str, ...]]
    arrays: Mapping[str, StoredArray]
    parameters: Mapping[Step, tuple[str, Mapping[str | int, str]]]
    calls: Mapping[int, str]
    placed: Mapping[str, Memory]


def symbols_of(deployment: Deployment, name: str, common: Common = NONE_COMMON) -> Symbols:
    """name, common: as for `model_files`."""
    code = code_of(
        deployment,
        instance_of(deployment, name),
        shareable(kernel_files(deployment))[0],
        common=common,
    )
    arrays = {text: stored for stored, text in code.constants}
    made = {step: (own.name, names) for step, (names, own) in code.made.items() if own is not None}
    return Symbols(code.functions, code.own_constants, arrays, made, _calls(code.steps), _placed(code, name))


def _calls(views: Sequence[StepView | FusionGroupView]) -> dict[int, str]:
    found: dict[int, str] = {}
    for view in views:
        made = (
            [(view.index, view.call)]
            if isinstance(view, StepView)
            else [(c.layer, c.call) for c in view.cases]
        )
        for layer, call in made:
            if layer is not None and call is not None:
                found.setdefault(layer, textwrap.dedent("\n".join(call.statement)))
    return found


def _placed(code: ModelCode, name: str) -> dict[str, Memory]:
    places, found = code.deployment.places, dict[str, Memory]()
    if places.arena is not None:
        found[f"{name}_arena"] = places.arena
    if places.second is not None:
        found[instance_of(code.deployment, name).second] = places.second
    if places.state is not None:
        found |= {state.name: places.state for state in code.states.values()}
    copies = {copy.source: copy.name for copy in code.copies}
    for stored, text in code.constants:
        memory = places.weights.get(stored.uses[0][0].name)
        if memory is not None:
            found[copies.get(text, text)] = memory
    return found
