# SPDX-License-Identifier: Apache-2.0
"""`tinyet doctor`: which tools are here, and how to install the others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated

import typer

from tinyet.build.doctor import NEEDED, Check, checks
from tinyet.cli import ui
from tinyet.errors import UsageError


def doctor(
    kind: Annotated[
        str, typer.Option(help="the kind of project to insist on: " + ", ".join(NEEDED))
    ] = "platformio",
) -> int:
    """Show which tools are here, and how to install the others.

    Exit status 1 when one is missing that projects of this kind need, without a network: capturing a model, building
    it and, where an emulator runs such firmware, running it.
    """
    if kind not in NEEDED:
        raise UsageError(f"there is no project kind {kind!r}", "--kind", f"one of {', '.join(NEEDED)}")
    needed = NEEDED[kind]
    with ui.working("looking for tools"):
        found = checks()
    _show(found, needed)
    return 1 if any(not check.ok and check.name in needed for check in found) else 0


def _show(found: Sequence[Check], basic: Collection[str]) -> None:
    rows = [
        (
            check.name,
            check.version or ("MISSING" if check.name in basic else "not here"),
            check.needed_for + ("" if check.name in basic else " (optional)"),
        )
        for check in found
    ]
    ui.table([("tool", "name"), ("found", "text"), ("for", "text")], rows)
    missing = [check for check in found if not check.ok]
    if not missing:
        ui.say("\nnothing is missing")
        return
    ui.say("\nto install what is missing:")
    # One command may bring several tools.
    for command in dict.fromkeys(check.install for check in missing):
        names = ", ".join(check.name for check in missing if check.install == command)
        ui.say(f"  # {names}")
        ui.say(f"  {command}")
