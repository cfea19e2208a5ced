# SPDX-License-Identifier: Apache-2.0
"""A model's C files as a project that people open in the tool they use. Pure: returns texts.

Each kind of project has its module in `tinyet.emit.kinds`; the manifest `tinyet.json` is the same for all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tinyet.boards import Board, all_boards
from tinyet.emit.facts import ModelFacts, TensorFacts
from tinyet.emit.kinds import KINDS, PROJECT_KINDS, Kind, kinds_for
from tinyet.errors import UsageError
from tinyet.version import __version__

__all__ = ["KINDS", "Kind", "ModelFacts", "Options", "TensorFacts", "check_kind", "project_files"]


@dataclass(frozen=True)
class Options:
    """The options of `generate` that a later build or check of the project needs again.

    delegates: names, in the order in which they are asked. max_ram, max_flash: limits in bytes, or None. stack: bytes
    for everything but an inference, or None; reserved: of the whole stack, 0 for the board's own. optimize: the aim of
    the choice of kernels; pins: layer → kernel, if the user has chosen; place: object → memory, likewise. operators:
    names of those that a file of the user's registers. archive: the .zip file beside the library, or None.
    tflm_header: whether the model has the names of TensorFlow Lite Micro, too. buffers: where inputs and outputs lie.
    context: callers give the memory of each instance. selftest: the model tests itself. max_step: how long a slice of
    a run may be, as it was given; None for a run as a whole. models: name → hash of each of several; schedule: which
    of these never run at the same time.
    """

    delegates: tuple[str, ...] = ()
    require_delegate: bool = False
    max_ram: int | None = None
    max_flash: int | None = None
    stack: int | None = None
    reserved: int = 0
    optimize: str = "balanced"
    input_rows: bool = False
    buffers: str = "arena"
    pins: Mapping[str, str] = field(default_factory=dict)
    place: Mapping[str, str] = field(default_factory=dict)
    operators: tuple[str, ...] = ()
    archive: str | None = None
    tflm_header: bool = False
    context: bool = False
    selftest: bool = False
    max_step: str | None = None
    models: Mapping[str, str] = field(default_factory=dict)
    schedule: str = ""


NO_OPTIONS = Options()

_NUMBER = r"(0|[1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d{2}|655[0-2]\d|6553[0-5])"
_VERSION = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}", re.ASCII)
# The characters of addresses that have no special meaning in any file that the address goes into.
_HOMEPAGE = re.compile(r"https?://[\w.\-]+(:\d+)?(/[\w.~/?#@!&*+,=%:\-]*)?", re.ASCII)


def check_kind(kind: str, board: Board) -> Kind:
    """Return a kind of project by its name. Raises UsageError: it is unknown, or the board cannot have it."""
    # By comparison: a caller's value need not be hashable.
    known = next((made for name, made in PROJECT_KINDS.items() if name == kind), None)
    if known is None:
        raise UsageError(
            what=f"there is no project kind {kind!r}", where="--kind", hint=f"one of {', '.join(KINDS)}"
        )
    reason = known.refusal(board)
    if reason is not None:
        boards = [other.name for other in all_boards() if kind in kinds_for(other)]
        raise UsageError(
            what=f"there can be no {kind} project for the board {board.name}: {reason}",
            where="--kind",
            hint=f"kinds for {board.name}: {', '.join(kinds_for(board))}\nboards for {kind}: {', '.join(boards)}",
        )
    return known.name


def is_bare(kind: str, board: Board) -> bool:
    """Whether a project's application is started by tinyet's own code, not by a framework's."""
    return kind in PROJECT_KINDS and PROJECT_KINDS[kind].bare(board)


def framework_of(kind: Kind, board: Board) -> str | None:
    """The framework whose linker script a project's application is linked with; None for tinyet's, or the user's."""
    return PROJECT_KINDS[kind].framework(board)


def check_library(kind: Kind, version: str | None, homepage: str | None, *, archive: bool) -> None:
    """Raise UsageError for options that a library of this kind of project does not have."""
    chosen = PROJECT_KINDS[kind]
    if not chosen.library and (version is not None or homepage is not None):
        others = sorted(name for name, other in PROJECT_KINDS.items() if other.library)
        raise UsageError(
            f"a {kind} project holds no library that has a version or a home page",
            "--library-version" if version is not None else "--homepage",
            f"leave it away; kinds that have one: {', '.join(others)}",
        )
    if archive and chosen.archive is None:
        raise UsageError(
            "a .zip file is written of Arduino libraries only",
            "--archive",
            "--kind arduino, or leave it away",
        )
    if version is not None and not _VERSION.fullmatch(version):
        raise UsageError(
            f"{version!r} is not a version that all build tools read",
            "--library-version",
            "three numbers below 65536: 1.0.0",
        )
    if homepage is not None and not _HOMEPAGE.fullmatch(homepage):
        raise UsageError(f"{homepage!r} is not a web address", "--homepage", "https://example.com/my-library")


def project_files(
    kind: Kind,
    board: Board,
    facts: ModelFacts,
    model_sources: Mapping[str, str],
    options: Options = NO_OPTIONS,
    *,
    readme: str | None = None,
) -> dict[str, str]:
    """Return a whole project: relative POSIX path -> text, sorted by path.

    model_sources: file name -> text of `<name>.h`, `<name>.c` and every kernel source and header they need.
    readme: in place of the kind's own README.md.
    Raises UsageError for an unknown kind, or a board that cannot have it.
    """
    tree = PROJECT_KINDS[check_kind(kind, board)].tree(board, facts, model_sources)
    files = dict(tree.files)
    if readme is not None:
        files |= {path: readme for path in files if path.rpartition("/")[2] == "README.md"}
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
        "limits": {"max_ram": options.max_ram, "max_flash": options.max_flash, "stack": options.stack},
        "stack_bytes": options.reserved or board.stack_bytes,
        "optimize": options.optimize,
    }
    if options.input_rows:
        manifest["input_rows"] = True
    if options.buffers != "arena":
        manifest["buffers"] = options.buffers
    if options.pins:
        manifest["pins"] = dict(options.pins)
    if options.place:
        manifest["place"] = dict(options.place)
    if options.archive:
        manifest["archive"] = options.archive
    if options.operators:
        manifest["operators"] = list(options.operators)
    if options.models:
        manifest |= {"models": dict(options.models), "schedule": options.schedule}
    if options.context:
        manifest["context"] = True
    if options.selftest:
        manifest["selftest"] = True
    if options.max_step is not None:
        manifest["max_step"] = options.max_step
    if options.tflm_header:
        manifest["tflm_header"] = True
    return dict(sorted({**files, "tinyet.json": json.dumps(manifest, indent=2) + "\n"}.items()))
