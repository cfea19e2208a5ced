# SPDX-License-Identifier: Apache-2.0
"""tinyet.json and the journal of an update may be anyone's: bounded, of known forms, and no way out of the project."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tinyet.build.manifest import is_inside, read
from tinyet.build.tree import read_manifest, write_project
from tinyet.errors import ProjectError

FILES = {
    "src/main.c": "int main(void) { return 0; }\n",
    "tinyet.json": '{"tinyet": "1.0", "kind": "cmake"}\n',
}


def _put(directory: Path, text: str | bytes) -> None:
    directory.mkdir(exist_ok=True)
    (directory / "tinyet.json").write_bytes(text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"files": ' * 100_000,
        "9" * 100_000,
        b"\xff\xfe",
        "",
        "{",
        " " * (1 << 22) + "{}",
        "[]",
        "null",
        '"x"',
        "3",
    ],
)
def test_what_is_no_manifest_is_refused_at_once(tmp_path: Path, text: str | bytes) -> None:
    _put(tmp_path / "p", text)
    for act in (read_manifest, lambda p: write_project(p, FILES)):
        with pytest.raises(ProjectError, match=r"cannot read the manifest|is not one that tinyet wrote"):
            act(tmp_path / "p")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["p", "tinyet.json"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tinyet", 1),
        ("tinyet", "1\n2"),
        ("kind", ["cmake"]),
        ("model", "../x"),
        ("model", "x y"),
        ("model", ""),
        ("hash", "0" * 63),
        ("board", "../../etc/passwd"),
        ("board", "/tmp/x"),
        ("arena_bytes", -1),
        ("arena_bytes", True),
        ("layers", 1e300),
        ("layers", 1 << 64),
        ("model_dir", "../lib"),
        ("model_dir", "/tmp"),
        ("desc", "a/../../b"),
        ("yours", "src/main.c"),
        ("yours", ["../x"]),
        ("delegates", {"a": 1}),
        ("delegates", ["\x1b[2J"]),
        ("require_delegate", "yes"),
        ("limits", [1]),
        ("limits", {"max_ram": -1}),
        ("operators", [1]),
        ("files", []),
        ("files", {"../x": "0" * 64}),
        ("files", {"/etc/passwd": "0" * 64}),
        ("files", {"a": 3}),
        ("files", {".tinyet-update/journal.json": "0" * 64}),
    ],
)
def test_fields_of_another_form_are_named(tmp_path: Path, field: str, value: Any) -> None:
    _put(tmp_path, json.dumps({"tinyet": "1.0", "later": {"any": "thing"}, field: value}))
    with pytest.raises(ProjectError, match=f"is not one that tinyet wrote:\n  - {field} is "):
        read(tmp_path)


def test_all_that_is_wrong_is_listed(tmp_path: Path) -> None:
    _put(tmp_path, json.dumps({"kind": 1, "model": 2, "files": {"..": ""}}))
    with pytest.raises(ProjectError) as caught:
        read(tmp_path)
    assert caught.value.what.count("  - ") == 3


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "..",
        "/",
        "/a",
        "a/..",
        "../a",
        "a//b",
        "./a",
        "a/.",
        "a/",
        "a\\b",
        "c:a",
        "a\0b",
        "x" * 513,
        3,
        None,
    ],
)
def test_paths_that_are_none(path: object) -> None:
    assert not is_inside(path)


@pytest.mark.parametrize("path", ["a", "a/b.c", "..a/b..", ".gitignore", "lib/é.h"])
def test_paths_that_stay_inside(path: str) -> None:
    assert is_inside(path)


# ---- what a stranger's folder could do to files outside of it ----


def _outside(tmp_path: Path) -> tuple[Path, Path]:
    """A project, and a file beside it that nothing may touch."""
    write_project(tmp_path / "p", FILES)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "main.c").write_text("precious")
    return tmp_path / "p", tmp_path / "mine" / "main.c"


def _journal(project: Path, **values: Any) -> None:
    update = project / ".tinyet-update"
    update.mkdir(exist_ok=True)
    record = {"forward": True, "new": [], "removed": [], "found": {}} | values
    (update / "journal.json").write_text(json.dumps(record))


@pytest.mark.parametrize(
    "path", ["../mine/main.c", "/etc/passwd", "a/../../mine/main.c", 3, [], ".tinyet-update/x"]
)
def test_a_journal_with_a_way_out_is_refused(tmp_path: Path, path: Any) -> None:
    project, precious = _outside(tmp_path)
    for values in ({"new": [path]}, {"removed": [path]}):
        _journal(project, **values, found={str(path): ""})
        with pytest.raises(ProjectError, match="not what tinyet left"):
            read_manifest(project)
    assert precious.read_text() == "precious"


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "9" * 100_000, "{}", "[]", '{"forward": true, "new": 3}', b"\xff"]
)
def test_a_journal_that_is_none_is_refused(tmp_path: Path, text: str | bytes) -> None:
    project, _ = _outside(tmp_path)
    _journal(project)
    (project / ".tinyet-update" / "journal.json").write_bytes(
        text if isinstance(text, bytes) else text.encode()
    )
    with pytest.raises(ProjectError, match="not what tinyet left"):
        read_manifest(project)


@pytest.mark.parametrize("forward", [True, False, "yes", None])
def test_a_file_whose_state_a_journal_does_not_know_stays(tmp_path: Path, forward: object) -> None:
    project, _ = _outside(tmp_path)
    (project / "mine.c").write_text("precious")
    _journal(project, forward=forward, new=["mine.c"])
    with pytest.raises(ProjectError, match="not what tinyet left"):
        read_manifest(project)
    assert (project / "mine.c").read_text() == "precious"


@pytest.mark.parametrize("folder", ["new", "old"])
@pytest.mark.parametrize("forward", [True, False])
def test_nothing_is_moved_through_a_link(tmp_path: Path, folder: str, forward: bool) -> None:
    """Neither out of the project nor into it."""
    project, precious = _outside(tmp_path)
    digest = hashlib.sha256((project / "src/main.c").read_bytes()).hexdigest()
    _journal(
        project,
        forward=forward,
        new=["main.c"],
        removed=["src/main.c"],
        found={"src/main.c": digest, "main.c": ""},
    )
    (project / ".tinyet-update" / folder).symlink_to(precious.parent, target_is_directory=True)
    with pytest.raises(ProjectError, match="not what tinyet left"):
        read_manifest(project)
    assert [path.name for path in precious.parent.iterdir()] == ["main.c"]
    assert precious.read_text() == "precious"
    assert (project / "src/main.c").is_file()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in this file system")
def test_a_pipe_is_no_manifest(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tinyet.json")
    with pytest.raises(ProjectError, match="cannot read the manifest: it is no regular file"):
        read(tmp_path)
