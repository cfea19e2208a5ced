# SPDX-License-Identifier: Apache-2.0
"""Whether a linked firmware has each placed object in its memory: the addresses of its symbols against the board's."""

from __future__ import annotations

from tinyet.budget.code import plain_name
from tinyet.budget.placing import check_addresses
from tinyet.build.size import Size
from tinyet.deployment import Deployment
from tinyet.emit.symbols import symbols_of
from tinyet.errors import ProjectError, bullet_list
from tinyet.planning.places import USUAL


def check_placed(deployment: Deployment, name: str, size: Size, where: str) -> None:
    """Raise ProjectError, with all faults, unless what was placed lies where it should, and nothing over it.

    name: of the model, as for `model_files`. size: of the firmware at `where`.
    """
    if deployment.places == USUAL:
        return
    expected = symbols_of(deployment, name).placed
    found = [(plain_name(symbol.name), symbol.address, symbol.bytes) for symbol in size.symbols]
    if faults := check_addresses(found, expected):
        raise ProjectError(
            f"not placed as planned: {len(faults)}\n{bullet_list(faults)}",
            where,
            "the linker script decides where sections lie: take the one that was generated with the project",
        )
