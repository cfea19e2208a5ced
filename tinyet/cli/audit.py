# SPDX-License-Identifier: Apache-2.0
"""`tinyet audit`: whether a firmware holds the program's weights, and whose its other bytes are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tinyet.auditing.audit import Audit
from tinyet.auditing.audit import audit as audit_project
from tinyet.auditing.owners import Owner
from tinyet.cli import ui
from tinyet.cli.options import Directory, JsonFile
from tinyet.errors import MismatchError
from tinyet.projects import open_project


def audit(
    directory: Directory,
    elf: Annotated[
        Path | None,
        typer.Option(
            "--elf", metavar="FILE", help="the firmware, by default the project's application as it was built"
        ),
    ] = None,
    program: Annotated[
        Path | None,
        typer.Option(
            "--program", metavar="TET", help="the program, where the project has kept none (--kind model)"
        ),
    ] = None,
    link_map: Annotated[
        Path | None,
        typer.Option(
            "--link-map",
            metavar="FILE",
            help="the linker's map of the firmware: whose bytes without a symbol are",
        ),
    ] = None,
    json: JsonFile = None,
) -> int:
    """Prove that a firmware holds the program's weights.

    All constants are packed again from the program and compared with the ELF file, the weights are read back one by
    one, and every other byte of flash is assigned to an owner. Whatever differs is named with its layer and channel,
    and the exit status is 1, as it is for bytes that nobody owns.
    """
    with ui.stages("reading the project"):
        found = audit_project(open_project(directory), elf, program=program, link_map=link_map)
    if json is not None:
        ui.write_json(json, found.to_json())
    if json != "-":
        _show(found)
    if found.ok:
        return 0
    lost = [f"{s.bytes} bytes at {s.start:#x}, in {s.name}, are nobody's" for s in found.unexplained]
    ui.show_error(
        MismatchError(
            "\n".join([*found.faults, *lost]),
            str(found.elf),
            "build it again from the project; for bytes that are nobody's, --link-map tells whose they are",
        )
    )
    return 1


def _show(found: Audit) -> None:
    rows: list[tuple[str | int | None, ...]] = [
        (w.layer, w.name, w.dtype, w.count, w.read_back or "–") for w in found.weights
    ]
    ui.table(
        [
            ("layer", "text"),
            ("constant", "text"),
            ("type", "name"),
            ("values", "number"),
            ("read back", "number"),
        ],
        rows,
    )
    total, back = sum(w.count for w in found.weights), sum(w.read_back for w in found.weights)
    at = [a for a in found.arrays if a.address is not None]
    checked, structs = found.parameters
    ui.facts(
        found.elf.name,
        [
            ("program", found.program_hash),
            ("arrays found", f"{len(at)} of {len(found.arrays)}, {ui.size(sum(a.bytes for a in at))}"),
            ("values read back", f"{ui.number(back)} of {ui.number(total)}, the others as they are packed"),
            ("parameters checked", f"{checked} of {structs}, field by field"),
            *((owner.value, ui.size(found.bytes_of(owner))) for owner in Owner if found.bytes_of(owner)),
        ],
    )
