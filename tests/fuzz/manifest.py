# SPDX-License-Identifier: Apache-2.0
"""Mutants of tinyet.json and of the journal of an update. Reading one, and generating over it, changes nothing outside
of the project, and of the user's files in it only what the manifest says, by its digest, that tinyet wrote."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

from tests.fuzz.run import Case, Outcome, Result, refusal
from tinyet.build.tree import read_manifest, write_project

FILES = {
    "src/main.c": "new\n",
    "lib/x.h": "new\n",
    "tinyet.json": '{"tinyet": "1.0", "yours": ["src/main.c"]}\n',
}
OLD = {"src/main.c": "old\n", "lib/x.h": "old\n", "lib/gone.h": "old\n"}
MINE = "mine, and nobody else's\n"

PATHS = (
    "../outside/mine.c", "/etc/passwd", "..", ".", "", "a/../../outside/mine.c", "src", "lib/../mine.c",
    "./mine.c", "link/mine.c", "link", "mine.c", "tinyet.json", ".tinyet.lock", ".tinyet-update/journal.json",
    "a\0b", "x" * 9000, "lib//x.h", "C:\\x", "lib\\x.h", "src/main.c/x", "lib/x.h", "lib/gone.h", "\x1b[2J",
    "a\nb", "é", "~/x", "new/src",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 1 << 70, "", "x", "x" * 9000, [], [1], {}, {"x": 1}, [[]], "\ud800", "\x1b[2J",
    [None],
)  # fmt: skip


class Manifests:
    """A mutant is JSON for one of both files, in front of a newline and the other's name."""

    name = "manifests"

    def __init__(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="tinyet-fuzz-"))

    def mutate(self, rng: random.Random) -> Case:
        kind = rng.choice(("manifest", "manifest", "journal"))
        value: dict[str, Any] = _manifest() if kind == "manifest" else _journal()
        labels = [_change(value, rng) for _ in range(rng.choice((1, 1, 2, 3)))]
        text = json.dumps(value)
        match rng.randrange(20):
            case 0:
                text = text[: rng.randrange(len(text))]
            case 1:
                text = rng.choice(("[", '{"files":', '{"a":')) * rng.choice((10, 5000, 200_000))
            case 2:
                text = text.replace("1", "9" * 10_000, 1)
            case 3:
                text = rng.choice(("null", "[]", "3", '"x"', "NaN", "", " " * (1 << 20)))
        return Case(f"{kind}: {'; '.join(labels)}", f"{kind}\n".encode() + text.encode())

    def check(self, case: Case) -> Outcome | None:
        kind, _, data = case.data.partition(b"\n")
        project = self._prepare()
        if kind == b"journal":
            _lay_update(project)
            (project / ".tinyet-update" / "journal.json").write_bytes(data)
        else:
            (project / "tinyet.json").write_bytes(data)
        # The first refusal is the one that counts; what follows must be as harmless.
        with refusal() as unreadable:
            read_manifest(project)
        with refusal() as refused:
            write_project(project, FILES)
        outside = self.top / "outside"
        assert [p.name for p in sorted(self.top.iterdir())] == ["outside", "project"]
        assert [p.name for p in outside.iterdir()] == ["mine.c"]
        assert (outside / "mine.c").read_text() == MINE
        assert (project / "link").is_symlink(), "a link of the user's is gone"
        listed = _digest(MINE) in case.data.decode("utf-8", "replace") or b'"mine.c": "' in case.data
        if not listed:
            assert (project / "mine.c").read_text() == MINE, "a file of the user's is gone"
        if not refused:
            assert {path: (project / path).read_text() for path in ("lib/x.h",)} == {"lib/x.h": "new\n"}
        return Outcome.REFUSED if unreadable else Outcome.REFUSED_LATER if refused else Outcome.EXACT

    def _prepare(self) -> Path:
        """A project with files of tinyet's and of the user's, a link out of it, and what it leads to."""
        shutil.rmtree(self.top)
        project, outside = self.top / "project", self.top / "outside"
        for path, text in (OLD | {"mine.c": MINE}).items():
            place = project / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        outside.mkdir()
        (outside / "mine.c").write_text(MINE)
        (project / "link").symlink_to(outside, target_is_directory=True)
        (project / "tinyet.json").write_text(json.dumps(_manifest()))
        return project

    def flush(self) -> list[Result]:
        shutil.rmtree(self.top, ignore_errors=True)
        self.top.mkdir()
        return []


def _lay_update(project: Path) -> None:
    for folder in ("new", "old"):
        (project / ".tinyet-update" / folder / "lib").mkdir(parents=True)
    (project / ".tinyet-update" / "new" / "lib" / "x.h").write_text("new\n")
    (project / ".tinyet-update" / "new" / "link").symlink_to("../../../outside", target_is_directory=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _manifest() -> dict[str, Any]:
    return {
        "tinyet": "1.0",
        "kind": "cmake",
        "model": "kws",
        "hash": "0" * 64,
        "board": "microbit",
        "arena_bytes": 100,
        "layers": 3,
        "model_dir": "lib/kws/src",
        "desc": "harness/model_desc.c",
        "yours": ["src/main.c"],
        "delegates": ["portable"],
        "require_delegate": False,
        "limits": {"max_ram": None, "max_flash": 1000},
        "files": {path: _digest(text) for path, text in OLD.items()},
    }


def _journal() -> dict[str, Any]:
    found = {"lib/x.h": _digest("old\n"), "lib/gone.h": _digest("old\n")}
    return {"forward": True, "new": ["lib/x.h"], "removed": ["lib/gone.h"], "found": found}


def _change(value: dict[str, Any], rng: random.Random) -> str:
    """Change one thing; returns what."""
    key = rng.choice(list(value)) if value else "x"
    old = value.get(key)
    match rng.randrange(4):
        case 0:
            value.pop(key, None)
            return f"no {key}"
        case 1:
            value[key] = copy.deepcopy(rng.choice(VALUES))
        case _:
            path = rng.choice(PATHS)
            if isinstance(old, dict):
                old[path] = rng.choice((_digest("old\n"), _digest(MINE), "0" * 64, 3))
            elif isinstance(old, list):
                old.append(path)
            else:
                value[key] = path
    return f"{key} = {str(value[key])!r}"[:200]
