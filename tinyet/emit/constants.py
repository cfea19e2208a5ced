# SPDX-License-Identifier: Apache-2.0
"""The constants that models of one project have in common: each array is there once, in a file of the project's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tinyet.deployment import ArrayKey, Deployment, StoredArray
from tinyet.emit.names import Names
from tinyet.planning.layer_names import identifier


@dataclass(frozen=True, eq=False)
class CommonArray:
    """name: in C. stored: of the first model that has it, aligned for all. models: their names."""

    name: str
    stored: StoredArray
    models: tuple[str, ...]

    @property
    def saved_bytes(self) -> int:
        """Of the others' copies."""
        return (len(self.models) - 1) * self.stored.bytes


@dataclass(frozen=True, eq=False)
class Common:
    """Arrays of several models, by `StoredArray.key`. file: the name of the C files that hold them, without its end."""

    file: str = ""
    arrays: Mapping[ArrayKey, CommonArray] = field(default_factory=dict)

    def of(self, stored: StoredArray) -> str | None:
        """The name in C of an array that is there for others, too."""
        found = self.arrays.get(stored.key)
        return None if found is None else found.name

    @property
    def bytes(self) -> int:
        """Of all of them, each once."""
        return sum(array.stored.bytes for array in self.arrays.values())

    @property
    def saved_bytes(self) -> int:
        return sum(array.saved_bytes for array in self.arrays.values())


NONE_COMMON = Common()


def common_of(project: str, deployments: Mapping[str, Deployment]) -> Common:
    """The arrays that two models or more have: of the same bytes, the same elements and in the same address space.

    project: its name. deployments: by the models' names. Names are made of the first model's layers.
    """
    uses: dict[ArrayKey, list[tuple[str, StoredArray]]] = {}
    for model, deployment in deployments.items():
        for stored in deployment.arrays:
            uses.setdefault(stored.key, []).append((model, stored))
    names = Names()
    found: dict[ArrayKey, CommonArray] = {}
    for key, there in uses.items():
        if len(there) < 2:
            continue
        _, first = there[0]
        name = names.unique(f"{project}_{identifier(first.uses[0][0].name)}_{first.role}")
        align = max(stored.align for _, stored in there)
        found[key] = CommonArray(name, replace(first, align=align), tuple(model for model, _ in there))
    return Common(f"{project}_constants", found)
