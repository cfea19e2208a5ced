# SPDX-License-Identifier: Apache-2.0
"""A model's C files as a project that people open in the tool they use. Pure: returns texts.

Each kind of project has its module in `tinyet.emit.kinds`; the manifest `tinyet.json` is the same for all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tinyet.boards import Board, all_boards
from tinyet.emit.facts import ModelFacts, TensorFacts
from tinyet.emit.kinds import KINDS, Kind, kinds_for, maker
from tinyet.errors import UsageError
from tinyet.version import __version__

__all__ = ["KINDS", "Kind", "ModelFacts", "Options", "TensorFacts", "check_kind", "project_files"]


@dataclass(frozen=True)
class Options:
    """What a project must be built and checked with again, as it was given to `generate`.

    delegates: names, in the order in which they are asked. max_ram, max_flash: limits in bytes, or None. operators:
    names of those that a file of the user's registers.
    """

    delegates: tuple[str, ...] = ()
    require_delegate: bool = False
    max_ram: int | None = None
    max_flash: int | None = None
    operators: tuple[str, ...] = ()


NO_OPTIONS = Options()


def check_kind(kind: str, board: Board) -> Kind:
    """Return a kind of project by its name. Raises UsageError: it is unknown, or the board cannot have it."""
    for known in KINDS:
        if kind == known:
            reason = maker(known).refusal(board)
            if reason is None:
                return known
            boards = [other.name for other in all_boards() if known in kinds_for(other)]
            raise UsageError(
                what=f"there can be no {kind} project for the board {board.name}: {reason}",
                where="--project",
                hint=f"kinds for {board.name}: {', '.join(kinds_for(board))}\nboards for {kind}: {', '.join(boards)}",
            )
    raise UsageError(
        what=f"there is no project kind {kind!r}", where="--project", hint=f"one of {', '.join(KINDS)}"
    )


def project_files(
    kind: Kind,
    board: Board,
    facts: ModelFacts,
    model_sources: Mapping[str, str],
    options: Options = NO_OPTIONS,
) -> dict[str, str]:
    """Return a whole project: relative POSIX path -> text, sorted by path.

    model_sources: file name -> text of `<name>.h`, `<name>.c` and every kernel source and header they need.
    Raises UsageError for an unknown kind, or a board that cannot have it.
    """
    tree = maker(check_kind(kind, board)).tree(board, facts, model_sources)
    manifest: dict[str, object] = {
        "tinyet": __version__,
        "kind": kind,
        "model": facts.name,
        "hash": facts.hash,
        "board": board.name,
        "arena_bytes": facts.arena_bytes,
        "layers": facts.layers,
        "model_dir": tree.model_dir,
        "desc": tree.desc,
        "yours": list(tree.yours),
        "delegates": list(options.delegates),
        "require_delegate": options.require_delegate,
        "limits": {"max_ram": options.max_ram, "max_flash": options.max_flash},
    }
    if options.operators:
        manifest["operators"] = list(options.operators)
    return dict(sorted({**tree.files, "tinyet.json": json.dumps(manifest, indent=2) + "\n"}.items()))
