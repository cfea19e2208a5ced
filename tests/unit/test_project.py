# SPDX-License-Identifier: Apache-2.0
"""The text of generated projects, and how they are written to disk: whole or not at all."""

from __future__ import annotations

import configparser
import dataclasses
import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

import tinyet
from tests import small, tiny_model
from tests.golden_files import Golden
from tests.whole_project import fix_version, whole
from tinyet.boards import all_boards, load_board
from tinyet.budget.fit import FitRequest, fitted
from tinyet.build import manifest
from tinyet.build.tree import write_project
from tinyet.deployment import Deployment
from tinyet.emit.facts import ModelFacts, TensorFacts
from tinyet.emit.project import Kind, project_files
from tinyet.errors import InternalError, ProjectError, UsageError
from tinyet.ir import DType

_KINDS: tuple[Kind, ...] = ("platformio", "cmake")


def _files(
    kind: Kind = "platformio", board: str = "mps2_an386", facts: ModelFacts = tiny_model.FACTS
) -> dict[str, str]:
    return project_files(kind, load_board(board), facts, tiny_model.sources())


def _snapshot(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


# ---- the text ----


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("board", [board.name for board in all_boards() if board.bare_metal])
def test_every_bare_metal_board_gives_a_whole_project(kind: Kind, board: str) -> None:
    files = _files(kind, board)
    description = load_board(board)
    assert list(files) == sorted(files)
    support = {
        path.removeprefix("platform/support/") for path in files if path.startswith("platform/support/")
    }
    wanted = [*description.support_sources, *description.support_headers, "linker.ld"]
    assert support >= {Path(path).name for path in wanted}
    assert {"lib/tiny/src/tiny.c", "harness/main.c", "harness/tinyet_harness.h", "src/main.c"} <= set(files)
    for path, text in files.items():
        assert not re.search(r"\{\{|\{%", text), path
        assert text.endswith("\n"), path
        assert str(Path.home()) not in text, path
        if path.endswith(".c"):
            assert text.startswith("/* SPDX-License-Identifier: Apache-2.0 */\n"), path
        # Whatever a file of the project includes by name is in the project.
        for name in re.findall(r'#include "(.+)"', text):
            assert any(other.endswith(f"/{name}") for other in files), (path, name)


@pytest.mark.parametrize("kind", _KINDS)
def test_the_same_input_gives_the_same_text(kind: Kind) -> None:
    assert _files(kind) == _files(kind)


@pytest.mark.parametrize(("kind", "board"), [("platformio", "nano_33_ble"), ("cmake", "mps2_an386")])
def test_whole_projects(monkeypatch: pytest.MonkeyPatch, kind: Kind, board: str, golden: Golden) -> None:
    fix_version(monkeypatch)
    golden(whole(_files(kind, board)), f"{kind}.txt")


@pytest.mark.parametrize("board", ["mps2_an386", "nucleo_u575zi_q", "uno_r4_wifi"])
def test_platformio_ini_without_and_with_only_a_framework(board: str, golden: Golden) -> None:
    golden(_files(board=board)["platformio.ini"], f"platformio_{board}.ini")


def test_platformio_ini_has_the_application_and_the_harness() -> None:
    ini = configparser.ConfigParser(interpolation=None)
    ini.read_string(_files()["platformio.ini"])
    assert ini.sections() == ["platformio", "env", "env:mps2_an386", "env:harness"]
    assert ini["platformio"]["default_envs"] == "mps2_an386"
    assert ini["env"]["build_flags"].split() == ["-O2", "-ffp-contract=off", "-Wall", "-Wextra"]
    assert ini["env:harness"]["build_flags"].split()[-1] == "-DTINYET_TRACE=1"
    assert "+<../harness/>" in ini["env:harness"]["build_src_filter"]


def test_the_platform_describes_the_board() -> None:
    files = _files(board="netduinoplus2")
    board = json.loads(files["platform/boards/netduinoplus2.json"])
    assert board["build"]["machine_flags"] == [
        "-mthumb",
        "-mcpu=cortex-m4",
        "-mfloat-abi=hard",
        "-mfpu=fpv4-sp-d16",
    ]
    assert board["upload"] == {"maximum_size": 1 << 20, "maximum_ram_size": 128 << 10}
    # The UART is the second serial port of this machine.
    assert board["build"]["qemu"].endswith("-serial null -serial stdio")
    platform = json.loads(files["platform/platform.json"])
    assert platform["packages"]["toolchain-gccarmnoneeabi"]["optional"] is True
    assert json.loads(files["lib/tiny/library.json"])["name"] == "tiny"
    assert "ORIGIN = 0x08000000, LENGTH = 0x100000" in files["platform/support/linker.ld"]


def test_a_board_without_qemu_is_offered_none() -> None:
    board = dataclasses.replace(load_board("mps2_an386"), qemu=None)
    files = project_files("platformio", board, tiny_model.FACTS, tiny_model.sources())
    assert json.loads(files["platform/boards/mps2_an386.json"])["build"]["qemu"] == ""
    assert "qemu" not in files["README.md"]


def test_the_application_embeds_the_sample() -> None:
    files = _files()
    text = files["src/tiny_sample.h"].partition("tiny_sample_0[8] = {")[2].partition("}")[0]
    values = [int(value, 16) for value in text.replace("\n", "").split(",") if value.strip()]
    assert bytes(values) == tiny_model.FACTS.samples[0]
    assert "*volatile sample_0 = tiny_sample_0;" in files["src/main.c"]
    assert "memcpy(tiny_input_0(), sample_0, sizeof tiny_sample_0);" in files["src/main.c"]


def test_the_application_prints_each_output_in_its_own_type() -> None:
    plain = TensorFacts("index", DType.INT32, (1,), 4, 16, None, None)
    facts = dataclasses.replace(tiny_model.FACTS, outputs=(plain,))
    main = _files(facts=facts)["src/main.c"]
    assert "const int32_t *const values = tiny_output_0();" in main
    assert "print_real" not in main
    assert "static void print_real" in _files()["src/main.c"]


def test_the_manifest_names_the_model() -> None:
    manifest = json.loads(_files("cmake")["tinyet.json"])
    assert (manifest["kind"], manifest["model"], manifest["board"]) == ("cmake", "tiny", "mps2_an386")
    assert manifest["hash"] == tiny_model.FACTS.hash
    assert manifest["yours"] == ["src/main.c"]


def test_cmake_lists_every_source() -> None:
    text = _files("cmake")["CMakeLists.txt"]
    assert "${model_dir}/tiny.c\n" in text
    assert "${model_dir}/tinyet_common.h\n" in text
    assert "${support_dir}/tinyet_uart_cmsdk.c\n" in text
    assert "-Werror" not in text
    assert "TINYET_UART_BASE=0x40004000\n" in text


def test_facts_that_contradict_themselves_are_refused() -> None:
    with pytest.raises(UsageError, match="makefile"):
        project_files("makefile", all_boards()[0], tiny_model.FACTS, {})  # type: ignore[arg-type]
    with pytest.raises(InternalError, match="hold"):
        TensorFacts("x", DType.INT16, (2, 3), 6, 0, None, None)
    with pytest.raises(InternalError, match="only one of scale and zero point"):
        TensorFacts("x", DType.INT8, (6,), 6, 0, 0.5, None)
    changes: tuple[Mapping[str, object], ...] = (
        {"name": "two words"}, {"hash": "abc"}, {"samples": (b"short",)}, {"outputs": ()}
    )  # fmt: skip
    for change in changes:
        with pytest.raises(InternalError):
            dataclasses.replace(tiny_model.FACTS, **change)  # type: ignore[arg-type]


# ---- the disk ----


@pytest.mark.parametrize("exists", [False, True])
def test_a_new_project_appears_whole(tmp_path: Path, exists: bool) -> None:
    directory = tmp_path / "deep" / "project"
    if exists:
        directory.mkdir(parents=True)
    files: dict[str, str | bytes] = {**_files(), "tiny.tet": b"\x00\xff\r\n"}
    result = write_project(directory, files)
    assert result.written == tuple(sorted(files))
    found = _snapshot(directory)
    assert set(found) == set(files)
    assert found["tiny.tet"] == b"\x00\xff\r\n"
    assert found["src/main.c"].decode() == files["src/main.c"]
    assert [path.name for path in directory.parent.iterdir()] == ["project"]
    assert directory.stat().st_mode & 0o055


def test_writing_again_changes_nothing_and_keeps_the_users_files(tmp_path: Path) -> None:
    directory = tmp_path / "p"
    write_project(directory, _files())
    first = _snapshot(directory)
    own = {
        "user.ini": "[env]\n",
        "src/helper.c": "int helper;\n",
        "src/main.c": "int main(void) { return 1; }\n",
    }
    for path, text in own.items():
        (directory / path).write_text(text)
    for _ in range(2):
        result = write_project(directory, _files())
        assert result.kept == ("src/main.c",)
        assert result.removed == ()
        assert _snapshot(directory) == first | {path: text.encode() for path, text in own.items()}


def test_what_is_no_longer_part_of_the_project_is_removed(tmp_path: Path) -> None:
    directory = tmp_path / "p"
    write_project(directory, _files("platformio"))
    (directory / "notes.txt").write_text("mine")
    result = write_project(directory, _files("cmake"))
    assert "platformio.ini" in result.removed
    assert set(_snapshot(directory)) == {*_files("cmake"), "notes.txt"}
    assert not (directory / "platform" / "builder").exists()


def test_a_changed_main_is_kept_although_the_new_model_has_another(tmp_path: Path) -> None:
    directory = tmp_path / "p"
    write_project(directory, _files())
    smaller = dataclasses.replace(tiny_model.FACTS, outputs=tiny_model.FACTS.outputs[:1])
    assert write_project(directory, _files(facts=smaller)).kept == ()
    assert (directory / "src/main.c").read_text() == _files(facts=smaller)["src/main.c"]
    (directory / "src/main.c").write_text("mine")
    assert write_project(directory, _files()).kept == ("src/main.c",)
    assert (directory / "src/main.c").read_text() == "mine"


def test_work_of_the_users_is_never_written_over(tmp_path: Path) -> None:
    directory = tmp_path / "p"
    old = {path: text for path, text in _files().items() if path != "harness/main.c"}
    write_project(directory, old)
    (directory / "platformio.ini").write_text("[env]\n")
    (directory / "lib/tiny/src/tiny.c").write_text("int changed;\n")
    (directory / "harness/main.c").write_text("not written by tinyet\n")
    before = _snapshot(directory)
    with pytest.raises(ProjectError) as caught:
        write_project(directory, _files())
    for path in ("platformio.ini", "lib/tiny/src/tiny.c", "harness/main.c"):
        assert path in caught.value.what
    assert _snapshot(directory) == before
    # Changes to tinyet's own files can be given up; a file of the user's cannot.
    with pytest.raises(ProjectError, match=r"harness/main\.c") as caught:
        write_project(directory, _files(), overwrite=True)
    assert "platformio.ini" not in caught.value.what
    (directory / "harness/main.c").unlink()
    write_project(directory, _files(), overwrite=True)
    assert (directory / "platformio.ini").read_text() == _files()["platformio.ini"]


def test_other_directories_are_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ProjectError, match="not a tinyet project"):
        write_project(tmp_path, _files())
    assert _snapshot(tmp_path) == {"thesis.txt": b"mine"}
    with pytest.raises(ProjectError):
        write_project(tmp_path / "thesis.txt", _files())
    assert _snapshot(tmp_path) == {"thesis.txt": b"mine"}


def test_a_directory_in_place_of_a_file_is_the_users(tmp_path: Path) -> None:
    write_project(tmp_path / "p", _files())
    (tmp_path / "p" / "README.md").unlink()
    (tmp_path / "p" / "README.md").mkdir()
    (tmp_path / "p" / "README.md" / "notes.txt").write_text("mine")
    with pytest.raises(ProjectError, match=r"README\.md"):
        write_project(tmp_path / "p", _files(), overwrite=True)
    assert (tmp_path / "p" / "README.md" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("text", ["not json", "[1]", '{"files": {"../outside.txt": "00"}}', '{"files": [3]}'])
def test_a_manifest_is_not_trusted(tmp_path: Path, text: str) -> None:
    directory = tmp_path / "p"
    directory.mkdir()
    (tmp_path / "outside.txt").write_text("mine")
    (directory / "tinyet.json").write_text(text)
    with pytest.raises(ProjectError):
        write_project(directory, _files())
    assert (tmp_path / "outside.txt").read_text() == "mine"
    assert set(_snapshot(directory)) == {"tinyet.json"}


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_at_any_step_leaves_things_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: bool, error: BaseException
) -> None:
    directory = tmp_path / "p"
    if again:
        write_project(directory, _files("platformio"))
        (directory / "notes.txt").write_text("mine")
    before = _snapshot(tmp_path)
    rename = Path.rename
    moves = 0
    last = 0

    def failing(self: Path, target: Path) -> Path:
        nonlocal moves
        moves += 1
        if moves == last:
            raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    while True:
        moves, last = 0, last + 1
        try:
            write_project(directory, _files("cmake"))
        except (ProjectError, KeyboardInterrupt):
            assert _snapshot(tmp_path) == before
            assert directory.exists() == again
        else:
            break
    # A move for each file that goes and each that comes.
    gone, come = (_files().keys() if again else set()), _files("cmake").keys()
    assert last == 1 + len(gone & come) * 2 + len(gone ^ come)


def test_a_generated_path_that_leaves_the_project_is_a_bug(tmp_path: Path) -> None:
    for path in ("../x", "/x", "", "a\\b"):
        with pytest.raises(InternalError):
            write_project(tmp_path / "p", {**_files(), path: "x"})
    with pytest.raises(InternalError, match=re.escape(manifest.MANIFEST)):
        write_project(tmp_path / "p", {"a": "x"})
    assert not (tmp_path / "p").exists()


def test_a_project_knows_what_was_just_made_for_it_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not made again as long as program and manifest are those that were written."""
    program = small.program()
    kept, other, changed = (
        tinyet.generate(program, "mps2_an386", tmp_path / name) for name in ("kept", "other", "changed")
    )
    asked = []

    def counted(wanted: FitRequest) -> Deployment:
        asked.append(wanted.objective.optimize)
        return fitted(wanted)

    monkeypatch.setattr("tinyet.project.fitted", counted)
    assert kept.program is program
    assert kept.deployment is kept.deployment_of(program)
    assert not asked
    opened = tinyet.open_project(tmp_path / "kept")
    assert opened.program is not program
    assert opened.deployment is not kept.deployment
    assert asked == ["balanced"]
    other.manifest["optimize"] = "size"
    assert other.deployment is not kept.deployment
    assert asked == ["balanced", "size"]
    small.program(channels=5).save(tmp_path / "changed" / f"{changed.name}.tet")
    with pytest.raises(ProjectError, match="is not the program"):
        _ = changed.program
