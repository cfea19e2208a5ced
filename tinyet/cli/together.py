# SPDX-License-Identifier: Apache-2.0
"""What `tinyet generate` and `tinyet analyze` say of a project of several models."""

from __future__ import annotations

from tinyet.cli import ui
from tinyet.emit.kinds import PROJECT_KINDS
from tinyet.project import Project
from tinyet.projects.together import TogetherProject


def tell_together(project: Project, json: str | None) -> None:
    """Which bytes of the arena each model has. json: the file for the report; "-" for nothing else."""
    assert isinstance(project, TogetherProject)
    if not PROJECT_KINDS[str(project.manifest["kind"])].application:
        # It keeps no programs: its header says where each lies.
        ui.say(f"{project.path}: one arena of {ui.size(int(str(project.manifest['arena_bytes'])))}")
        ui.say(f'next: compile the .c files with your own, and include "{project.name}.h"')
        return
    shared, common = project.shared, project.common
    if json is not None:
        facts = {"name": project.name, "board": project.board.name, "kind": str(project.manifest["kind"])}
        pieces = {name: vars(piece) for name, piece in shared.pieces.items()}
        sizes = {"arena_bytes": shared.arena_bytes, "apart_bytes": shared.apart_bytes}
        parameters = [{**vars(each), "models": list(each.models)} for each in project.shared_parameters]
        sizes |= {"common_bytes": common.bytes, "saved_bytes": common.saved_bytes}
        ui.write_json(
            json,
            {
                "version": 1,
                **facts,
                "path": str(project.path),
                **sizes,
                "parameters": parameters,
                "models": pieces,
            },
        )
    if json == "-":
        return
    ui.say(
        f"{project.path}: {', '.join(project.programs)} for {project.board.name}, "
        f"one arena of {ui.size(shared.arena_bytes)}; apart {ui.size(shared.apart_bytes)}"
    )
    ui.table(
        [("model", "text"), ("states", "number"), ("from", "number"), ("rest", "number"), ("from", "number")],
        [(name, p.kept_bytes, p.kept, p.bytes, p.start) for name, p in shared.pieces.items()],
    )
    if common.arrays:
        ui.say(
            f"constants: {ui.size(common.bytes)} are in common to some of them, {ui.size(common.saved_bytes)} "
            "fewer than if each had its own"
        )
    shared_by_name = project.shared_parameters
    if shared_by_name:
        once = sum(each.once for each in shared_by_name)
        ui.say(
            f"weights of one parameter in several models: {len(shared_by_name)}, of which {once} are there once"
        )
        ui.notes([str(each) for each in shared_by_name if not each.once])
    ui.say(f"schedule: {project.manifest['schedule']}; proved")
