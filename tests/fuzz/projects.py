# SPDX-License-Identifier: Apache-2.0
"""A project's folder that somebody has laid links, folders and files into, generated again with other options. Nothing
outside of it changes, nor what is the user's in it; and where generating is refused, nothing changes at all."""

from __future__ import annotations

import functools
import json
import os
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.run import Case, Outcome, Result, refusal
from tests.fuzz.tet_seeds import seeds
from tinyet.build.manifest import MANIFEST
from tinyet.data import Data
from tinyet.program import Program
from tinyet.projects.one import generate

BOARDS = {
    "platformio": ("mps2_an386", "uno_r4_wifi"),
    "cmake": ("mps2_an386", "mps2_an385"),
    "arduino": ("uno_r4_wifi", "nano_33_ble"),
    "zephyr": ("nano_33_ble", "mps2_an386"),
    "model": ("mps2_an386", "microbit"),
}
"""For each kind of project."""

NEW = (
    ".tinyet.lock", ".tinyet-update", ".tinyet-update/journal.json", ".tinyet-update/new", "{name}.zip",
    ".{name}.zip.part", "{name}.zip.part", "{name}.tmp", "build", "src", "lib", "harness", ".pio", "evaluation.npz",
    "board.toml", "{name}", "{name}/src", "README.md.tmp",
)  # fmt: skip
"""Where things are laid that no project has, or whose names drafts could have."""

MINE = "mine, and nobody else's\n"


@functools.cache
def _program() -> Program:
    """An image's convolution in integers, on a machine of no kind in particular."""
    return next(
        p
        for p in seeds()
        if len(p.inputs) == 1
        and p.inputs[0].dtype.value == "int8"
        and any(n.op == "conv2d" for n in p.graph.nodes)
    )


class Projects:
    """A mutant is a list of what is done to a folder, and the options of the second generation, as JSON."""

    name = "projects"

    def __init__(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="tinyet-fuzz-"))
        self.kept = Path(tempfile.mkdtemp(prefix="tinyet-fuzz-kept-"))

    def mutate(self, rng: random.Random) -> Case:
        kind = rng.choice(sorted(BOARDS))
        first = _PLAIN | {
            "kind": kind,
            "board": rng.choice(BOARDS[kind]),
            "archive": kind == "arduino" and rng.random() < 0.7,
        }
        second = _options(kind if rng.random() < 0.8 else rng.choice(sorted(BOARDS)), rng)
        places = _paths(first)
        changes = []
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            what = rng.choice(
                (
                    "link",
                    "link",
                    "link to a folder",
                    "loose link",
                    "link inside",
                    "folder",
                    "file",
                    "gone",
                    "hard link",
                )
            )
            place = (
                rng.choice(places)
                if rng.random() < 0.6
                else rng.choice(NEW).format(name=rng.choice((first["name"], second["name"])))
            )
            changes.append(
                [what, rng.choice([place, str(Path(place).parent)]) if "folder" in what else place]
            )
        value = {"first": first, "second": second, "changes": changes}
        return Case(f"{kind}: {changes}, {second}"[:300], json.dumps(value).encode())

    def check(self, case: Case) -> Outcome | None:
        value = json.loads(case.data)
        shutil.rmtree(self.top)
        project, outside = self.top / "project", self.top / "outside"
        shutil.copytree(self._made(value["first"]), project, symlinks=True)
        (outside / "folder").mkdir(parents=True)
        for path in (outside / "mine.c", outside / "folder" / "mine.c", project / "mine.c"):
            path.write_text(MINE)
        done = [_change(project, outside, what, place) for what, place in value["changes"]]
        before, around = _snapshot(project), _snapshot(outside)
        with refusal() as refused:
            _generate(value["second"], project)
        assert _snapshot(outside) == around, f"something outside has changed: {done}"
        assert [p.name for p in sorted(self.top.iterdir())] == ["outside", "project"]
        after = _snapshot(project)
        assert after.get("mine.c") == before.get("mine.c"), "a file of the user's has changed"
        if refused:
            assert str(refused[0])
            changed = sorted(p for p in before.keys() | after.keys() if before.get(p) != after.get(p))
            # The lock is there while a project is written, and may stay.
            assert [p for p in changed if not p.startswith((".tinyet.lock", ".tinyet-update"))] == []
            return Outcome.REFUSED
        return Outcome.EXACT

    def _made(self, options: dict[str, Any]) -> Path:
        """A project as it was generated, kept for the next mutants."""
        place = self.kept / json.dumps(options, sort_keys=True).encode().hex()[:200]
        if not place.exists():
            with refusal():
                _generate(options, place)
            place.mkdir(exist_ok=True)
        return place

    def flush(self) -> list[Result]:
        shutil.rmtree(self.top, ignore_errors=True)
        self.top.mkdir()
        return []


_PLAIN: dict[str, Any] = {"name": "net", "evaluation": False}


def _options(kind: str, rng: random.Random) -> dict[str, Any]:
    def some(*values: Any) -> Any:
        return rng.choice(values)

    return {
        "kind": kind,
        "board": some(*BOARDS[kind]),
        "name": some(*["net", "net", "other"] * 5, "main"),
        "archive": kind == "arduino" and some(True, True, False),
        "tflm_header": some(False, False, True),
        "optimize": some("balanced", "speed", "size"),
        "max_ram": some(*[None, 1 << 16] * 6, 100),
        "max_flash": some(*[None, 1 << 18] * 6, 1000),
        "input_rows": rng.random() < 0.1,
        "context": rng.random() < 0.2,
        **some({}, {}, {"delegates": ["portable"], "require_delegate": True}, {"require_delegate": True}),
        "evaluation": kind != "model" and some(False, False, True),
        "library_version": some(*[None, "2.0.1"] * 5, "x") if kind == "arduino" else None,
        "homepage": some(None, "https://example.org") if kind == "arduino" else None,
    }


def _generate(options: dict[str, Any], place: Path) -> None:
    given = dict(options)
    if given.pop("evaluation"):
        (x,) = _program().inputs
        given["evaluation"] = Data((np.zeros((2, *x.shape[1:]), x.dtype.numpy),))
    generate(_program(), given.pop("board"), place, **given)


@functools.cache
def _paths_of(text: str) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "made"
        with refusal():
            _generate(json.loads(text), place)
        found = sorted(str(p.relative_to(place)) for p in place.rglob("*")) if place.exists() else []
    return (*found, MANIFEST)


def _paths(options: dict[str, Any]) -> tuple[str, ...]:
    """All that a project of these options has."""
    return _paths_of(json.dumps(options, sort_keys=True))


def _change(project: Path, outside: Path, what: str, path: str) -> str:
    """Lay something into the project; what was done."""
    place = project / path
    if place == project:
        return "nothing"
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(place):
            shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink()
        match what:
            case "link":
                place.symlink_to(outside / "mine.c")
            case "link to a folder":
                place.symlink_to(outside / "folder", target_is_directory=True)
            case "loose link":
                place.symlink_to(outside / "nothing")
            case "link inside":
                place.symlink_to(project / "mine.c")
            case "hard link":
                place.hardlink_to(outside / "mine.c")
            case "folder":
                place.mkdir()
            case "file":
                place.write_text(MINE)
    except OSError as error:
        return f"{what} at {path}: {error.strerror}"
    return f"{what} at {path}"


def _snapshot(folder: Path) -> dict[str, bytes]:
    """All that lies in a folder: what is in files, where links lead."""
    found: dict[str, bytes] = {}
    for top, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(top) / name
            key = str(path.relative_to(folder))
            if path.is_symlink():
                found[key] = f"-> {path.readlink()}".encode()
            elif path.is_file():
                found[key] = path.read_bytes()
            else:
                found[key] = b"a folder"
    return found
