# SPDX-License-Identifier: Apache-2.0
"""Generated Arduino libraries: what the IDE and the Library Manager ask of them, by the rules of arduino-lint.

The numbers in comments are arduino-lint's own names for its rules. Rules on what is not generated are left out:
submodules, an index of libraries, tags, spelling, whether addresses answer.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import stat
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import small, tiny_model
from tests.golden_files import Golden
from tests.whole_project import fix_version, whole
from tinyet import assets
from tinyet.boards import Arduino, Board, all_boards, load_board
from tinyet.build.builder import HARNESS
from tinyet.data import Data
from tinyet.emit.kinds.arduino import library_name
from tinyet.emit.project import Kind, project_files
from tinyet.errors import ProjectError, ToolchainError, UsageError
from tinyet.project import Project
from tinyet.projects.one import generate

_FOLDERS = ("src", "examples", "extras")
_CATEGORIES = (
    "Display", "Communication", "Signal Input/Output", "Sensors", "Device Control", "Timing", "Data Storage",
    "Data Processing", "Other",
)  # fmt: skip
_ALIASES = ("atmelavr", "atmelmegaavr", "atmelsam", "espressif32", "espressif8266", "intel_arc32", "nordicnrf52",
            "raspberrypi")  # fmt: skip
_SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
_NAME = re.compile(r"([a-zA-Z][a-zA-Z0-9 _.\-]*|[0-9][a-zA-Z0-9 _.\-]*[a-zA-Z][a-zA-Z0-9 _.\-]*)")
_PATH_NAME = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9_.-]*")


def _board(fqbn: str = "arduino:mbed_nano:nano33ble") -> Board:
    return dataclasses.replace(load_board("mps2_an386"), arduino=Arduino(fqbn))


def _files(model: str = "tiny") -> dict[str, str]:
    facts = dataclasses.replace(tiny_model.FACTS, name=model, macro=model.upper())
    sources = {
        path.replace("tiny.", f"{model}."): text.replace("tiny_", f"{model}_").replace("TINY_", f"{model.upper()}_")
        for path, text in tiny_model.sources().items()
    } if model != "tiny" else tiny_model.sources()  # fmt: skip
    files = project_files("arduino", _board(), facts, sources)
    library = f"{library_name(model)}/"
    assert {path for path in files if not path.startswith(library)} == {".gitignore", "tinyet.json"}
    return {path.removeprefix(library): text for path, text in files.items() if path.startswith(library)}


def _properties(files: Mapping[str, str]) -> dict[str, str]:
    # LP005: each line is a comment, empty, or key=value.
    lines = [line for line in files["library.properties"].splitlines() if line and not line.startswith("#")]
    pairs = [line.split("=", 1) for line in lines]
    assert all(len(pair) == 2 for pair in pairs)
    keys = [key for key, _ in pairs]
    assert len(set(keys)) == len(keys)
    return dict(pairs)


MODELS = ["tiny", "keyword_spotting", "mnist_model", "arduino_thing", "_3d", "math", "x" * 80]


@pytest.mark.parametrize("model", MODELS)
def test_library_properties(model: str) -> None:
    files = _files(model)
    assert "library.properties" in files  # LP001 to LP003
    assert "src/library.properties" not in files  # LP004
    values = _properties(files)
    known = {"name", "version", "author", "maintainer", "sentence", "paragraph", "category"}
    assert set(values) == known | {
        "architectures",
        "includes",
        "dot_a_linkage",
    }  # LP006, LP007 ...; no depends
    name = values["name"]
    assert 1 <= len(name) <= 63  # LP008, LP009
    assert _NAME.fullmatch(name)  # LP011
    assert "arduino" not in name.lower()  # LP012, LP014
    assert " " not in name  # LP015
    assert "library" not in name.lower()  # LP016
    assert _SEMVER.fullmatch(values["version"])  # LP020, LP021
    assert values["author"]  # LP024
    assert values["maintainer"]  # LP026
    assert "arduino" not in values["maintainer"].lower()  # LP027, LP057
    assert values["sentence"]  # LP032
    assert not values["paragraph"].startswith(values["sentence"])  # LP036
    assert values["category"] in _CATEGORIES  # LP038, LP039
    architectures = values["architectures"].split(",")
    assert all(architectures)  # LP044
    assert not set(architectures) & set(_ALIASES)  # LP045
    assert all(a == a.lower() for a in architectures)  # LP046
    assert values["dot_a_linkage"] == "true"  # LP049, LP050
    assert values["includes"] == f"{name}.h"  # LP051, LP052, LS008
    assert f"src/{name}.h" in files


def test_whole_library(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    fix_version(monkeypatch)
    golden(whole(project_files("arduino", _board(), tiny_model.FACTS, tiny_model.sources())), "arduino.txt")


def test_a_short_name_has_the_recommended_length() -> None:
    assert len(library_name("keywords")) <= 16  # LP010


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("tiny", "TinyModel"),
        ("keyword_spotting", "KeywordSpottingModel"),
        ("kws12", "Kws12Model"),
        ("mnist_model", "MnistModel"),
        ("math", "MathModel"),
        ("arduino_thing", "ThingModel"),
        ("_3d", "3dModel"),
        ("_", "Model"),
    ],
)
def test_names(model: str, name: str) -> None:
    assert library_name(model) == name


@pytest.mark.parametrize("model", MODELS)
def test_structure(model: str) -> None:
    files = _files(model)
    name = _properties(files)["name"]
    folders = {path.split("/")[0] for path in files if "/" in path}
    assert folders <= set(_FOLDERS)  # LS009, LS011, LS012, LD005, LD006
    assert any(
        path.startswith("src/") and path.count("/") == 1 and path.endswith(".h") for path in files
    )  # LS001
    assert not any("/utility/" in path for path in files)  # LS010
    assert ".development" not in files  # LS006
    assert not any(path.endswith(".exe") for path in files)  # LS007
    assert {"README.md", "LICENSE", "keywords.txt"} <= set(files)  # LD001, LD002
    assert "Apache License" in files["LICENSE"]
    sketches = {path for path in files if path.endswith((".ino", ".pde"))}
    assert sketches == {f"examples/Run{name}/Run{name}.ino", "examples/Harness/Harness.ino"}  # LD003, LD004
    for path in sketches:
        folder, file = path.split("/")[1:]
        assert file == f"{folder}.ino"  # SS: a sketch's folder has its name
        assert _PATH_NAME.fullmatch(file)
        assert len(folder) <= 63
    for path, text in files.items():
        assert all(_PATH_NAME.fullmatch(part) for part in path.removeprefix(".").split("/")), path
        assert not re.search(
            r"^\s*#\s*include\s*[<\"](?!Arduino\.h)arduino\.h", text, re.MULTILINE | re.IGNORECASE
        )  # LC001
        assert not re.search(r"\{\{|\{%", text), path
        assert text.endswith("\n"), path
    # On file systems that take upper and lower case for the same, too.
    assert len({path.lower() for path in files}) == len(files)


def test_the_sketch_folders_hold_what_they_include() -> None:
    files = _files()
    for path, text in files.items():
        folder = path.rpartition("/")[0]
        for included in re.findall(r'^#include "(.+)"', text, re.MULTILINE):
            assert f"{folder}/{included}" in files, (path, included)
        for included in re.findall(r"^#include <([^>]*(?:Model|tiny)[^>]*)>", text, re.MULTILINE):
            assert f"src/{included}" in files, (path, included)


def test_keywords() -> None:
    files = _files()
    found: dict[str, set[str]] = {}
    for line in files["keywords.txt"].splitlines():
        if line and not line.startswith("#"):
            assert re.fullmatch(r"\w+\t(KEYWORD2|LITERAL1)", line), line
            word, kind = line.split("\t")
            found.setdefault(kind, set()).add(word)
    assert {"tiny_run", "tiny_input_0", "tiny_set_input_0", "tiny_output_1"} <= found["KEYWORD2"]
    assert "tiny_get_output_1" not in found["KEYWORD2"]
    header = files["src/tiny/tiny.h"]
    for word in found["LITERAL1"] - {"TINYET_OK"}:
        assert re.search(rf"#define {word} ", header), word


def test_every_board_with_a_name_in_arduino_gives_a_library() -> None:
    boards = [board for board in all_boards() if board.arduino]
    for board in boards:
        files = project_files("arduino", board, tiny_model.FACTS, tiny_model.sources())
        assert board.arduino is not None
        assert board.arduino.fqbn in files["TinyModel/README.md"]
        assert f"Serial.begin({board.baud})" in files["TinyModel/examples/RunTinyModel/RunTinyModel.ino"]


def test_a_board_without_a_name_in_arduino_is_refused() -> None:
    with pytest.raises(UsageError, match=r"mps2_an386.*\[arduino\]"):
        project_files("arduino", load_board("mps2_an386"), tiny_model.FACTS, tiny_model.sources())


@pytest.mark.parametrize(("board", "architectures"), [("mps2_an386", "mbed_nano"), ("mps2_an385", "*")])
def test_the_architectures_are_those_that_the_kernels_are_for(
    tmp_path: Path, board: str, architectures: str
) -> None:
    """The board's own for the kernels of its processor, all for the portable ones."""
    path = tmp_path / "own.toml"
    path.write_text(_toml(board) + '[arduino]\nfqbn = "arduino:mbed_nano:nano33ble"\n', encoding="utf-8")
    project = generate(small.program(), path, tmp_path / "p", kind="arduino")
    properties = (project.path / "SmallModel/library.properties").read_text(encoding="utf-8")
    assert f"\narchitectures={architectures}\n" in properties


def _toml(board: str) -> str:
    return (assets.path("boards") / f"{board}.toml").read_text(encoding="utf-8") + "\n"


def _generate(tmp_path: Path, **options: object) -> Project:
    path = tmp_path / "own.toml"
    path.write_text(_toml("mps2_an386") + '[arduino]\nfqbn = "vendor:arch:board"\n', encoding="utf-8")
    return generate(small.program(), path, tmp_path / "p", kind="arduino", **options)  # type: ignore[arg-type]


def test_generating_again_gives_the_same_and_keeps_the_users_sketch(tmp_path: Path) -> None:
    def snapshot() -> dict[str, bytes]:
        return {
            path.relative_to(tmp_path / "p").as_posix(): path.read_bytes()
            for path in (tmp_path / "p").rglob("*")
            if path.is_file()
        }

    _generate(tmp_path)
    first = snapshot()
    _generate(tmp_path)
    assert snapshot() == first
    sketch = tmp_path / "p/SmallModel/examples/RunSmallModel/RunSmallModel.ino"
    properties = tmp_path / "p/SmallModel/library.properties"
    mine = {
        sketch: sketch.read_text().replace("return false;", "return true;"),
        properties: properties.read_text().replace("The tinyet authors", "Me"),
    }
    for path, text in mine.items():
        path.write_text(text)
    (sketch.parent / "sensor.h").write_text("// mine\n")
    _generate(tmp_path)
    assert {path: path.read_text() for path in mine} == mine
    assert (sketch.parent / "sensor.h").read_text() == "// mine\n"
    (tmp_path / "p/SmallModel/examples/Harness/Harness.ino").write_text("// changed\n")
    with pytest.raises(ProjectError, match=r"Harness\.ino"):
        _generate(tmp_path)


def test_the_manifest_says_where_the_model_is(tmp_path: Path) -> None:
    project = _generate(tmp_path)
    manifest = json.loads((project.path / "tinyet.json").read_text())
    assert manifest["kind"] == "arduino"
    assert manifest["model_dir"] == "SmallModel/src"
    assert manifest["desc"] == "SmallModel/examples/Harness/model_desc.c"
    assert manifest["yours"] == [
        "SmallModel/examples/RunSmallModel/RunSmallModel.ino",
        "SmallModel/library.properties",
    ]


def test_the_zip_file_is_one_library_and_the_same_bytes_whenever_it_is_made(tmp_path: Path) -> None:
    """The IDE wants one folder in the archive, with library.properties in it, and nothing that is not the library's."""
    samples = {"evaluation": Data((small.images(40),))}
    project = _generate(tmp_path, archive=True, **samples)
    target = project.path / "SmallModel.zip"
    assert project.archive == target
    first = target.read_bytes()
    with zipfile.ZipFile(target) as archive:
        assert archive.testzip() is None
        entries = archive.infolist()
        texts = {entry.filename: archive.read(entry) for entry in entries}
    assert [entry.filename for entry in entries] == sorted(texts)
    assert {(entry.date_time, entry.external_attr >> 16, entry.compress_type) for entry in entries} == {
        ((1980, 1, 1, 0, 0, 0), 0o100644, zipfile.ZIP_STORED)
    }
    here = {path.relative_to(project.path).as_posix(): path.read_bytes() for path in _all_files(project.path)}
    outside = {"SmallModel.zip", ".gitignore", "tinyet.json", "small.tet", "evaluation.npz", "own.toml"}
    assert {path for path in here if not path.startswith("SmallModel/")} <= outside
    assert texts == {path: data for path, data in here.items() if path.startswith("SmallModel/")}
    assert project.evaluation is not None  # `validate` still finds it
    assert project.validate(on="host").samples == 40
    # What is the user's goes with it; what his system leaves lying about does not.
    for path in _all_files(project.path):
        os.utime(path, (2e9, 2e9))
    (project.path / "SmallModel/.DS_Store").write_text("litter")
    (project.path / "SmallModel/link.h").symlink_to(tmp_path / "own.toml")
    assert _generate(tmp_path, archive=True, **samples).archive == target
    assert target.read_bytes() == first
    (project.path / "SmallModel/examples/RunSmallModel/sensor.h").write_text("// mine\n")
    _generate(tmp_path, archive=True)
    with zipfile.ZipFile(target) as archive:
        assert set(archive.namelist()) - set(texts) == {"SmallModel/examples/RunSmallModel/sensor.h"}
    # A file of an earlier library is worse than none, and one that is not ours is left alone.
    assert _generate(tmp_path).archive is None
    assert not target.exists()
    target.write_text("mine")
    with pytest.raises(ProjectError, match=r"SmallModel\.zip \(not written by tinyet\)"):
        _generate(tmp_path, archive=True)
    assert target.read_text() == "mine"


def _all_files(place: Path) -> list[Path]:
    return sorted(path for path in place.rglob("*") if path.is_file())


def test_version_and_home_page_are_the_libraries_own(tmp_path: Path) -> None:
    place = "SmallModel/library.properties"
    text = (_generate(tmp_path).path / place).read_text()
    assert "\nversion=1.0.0\n" in text
    assert "url=" not in text
    options = {"library_version": "2.13.0", "homepage": "https://example.com/~me/lib?x=1&y=%20#top"}
    text = (_generate(tmp_path, **options).path / place).read_text()
    assert "\nversion=2.13.0\n" in text
    assert f"\nurl={options['homepage']}\n" in text
    for kind, path in (("platformio", "lib/small/library.json"), ("cmake", "CMakeLists.txt")):
        made = generate(small.program(), "mps2_an386", tmp_path / kind, kind=kind, **options)  # type: ignore[arg-type]
        text = (made.path / path).read_text()
        if kind == "cmake":
            assert f'project(small VERSION 2.13.0 HOMEPAGE_URL "{options["homepage"]}" LANGUAGES C)' in text
        else:
            values = json.loads(text)
            assert (values["version"], values["homepage"]) == tuple(options.values())


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("arduino", {"library_version": "1.0"}, "three numbers"),
        ("arduino", {"library_version": "1.0.0-rc1"}, "three numbers"),
        ("cmake", {"library_version": "01.0.0"}, "three numbers"),
        ("cmake", {"library_version": "1.0.65536"}, "three numbers"),
        ("arduino", {"homepage": "example.com"}, "not a web address"),
        ("cmake", {"homepage": 'https://x/")\nexecute_process('}, "not a web address"),
        ("arduino", {"homepage": "https://x/a\nname=b"}, "not a web address"),
        ("model", {"library_version": "1.0.0"}, "no library that has a version"),
        ("zephyr", {"homepage": "https://x/"}, "no library that has a version"),
        ("platformio", {"archive": True}, "Arduino libraries only"),
    ],
)
def test_what_a_library_cannot_be_given_is_refused(
    tmp_path: Path, kind: Kind, options: Mapping[str, object], said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        generate(small.program(), "nano_33_ble", tmp_path / "p", kind=kind, **options)  # type: ignore[arg-type]
    assert said in str(caught.value)
    assert not (tmp_path / "p").exists()


# ---- the build ----

_CLI = """#!/bin/sh
printf '%s\\n' "$@" >> "$LOG"
while [ $# -gt 0 ]; do
  case "$1" in
    --build-path) build="$2"; shift;;
  esac
  last="$1"
  shift
done
mkdir -p "$build"
cp "$ELF" "$build/$(basename "$last").ino.elf"
"""


def test_without_arduino_cli_the_error_says_what_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = _generate(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match="arduino-cli is not installed") as caught:
        project.build()
    assert caught.value.hint is not None
    assert "arduino-cli core install vendor:arch" in caught.value.hint
    assert "IDE" in caught.value.hint
    with pytest.raises(ProjectError, match="has not been built"):
        project.elf(HARNESS)


def test_the_build_runs_arduino_cli_for_both_sketches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a program in its place that writes down what it is asked for."""
    if os.name == "nt":
        pytest.skip("the program in arduino-cli's place is a shell script")
    elf = tmp_path / "some.elf"
    compiler = ["arm-none-eabi-gcc", "-nostdlib", "-mcpu=cortex-m4", "-mthumb", "-Wl,-e0"]
    source = tmp_path / "some.c"
    source.write_text("int data[3] = {1, 2, 3};\nint f(void) { return data[0]; }\n")
    try:
        subprocess.run([*compiler, str(source), "-o", str(elf)], check=True, timeout=60)
    except FileNotFoundError:
        pytest.skip("arm-none-eabi-gcc is not installed")
    place = tmp_path / "bin"
    place.mkdir()
    program = place / "arduino-cli"
    program.write_text(_CLI)
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    monkeypatch.setenv("ELF", str(elf))
    project = _generate(tmp_path)
    assert project.build().ram == 12
    words = (tmp_path / "log").read_text().splitlines()
    root = project.path.absolute()
    for sketch in ("RunSmallModel", "Harness"):
        expected = ["compile", "--fqbn", "vendor:arch:board", "--library", f"{root}/SmallModel"]
        expected += ["--build-path", f"{root}/build/{sketch}", f"{root}/SmallModel/examples/{sketch}"]
        assert words[:8] == expected
        words = words[8:]
    assert words == []
    assert project.elf(HARNESS) == project.path / "build/Harness/Harness.ino.elf"
    assert project.sizes.ram_bytes == 12


@pytest.mark.parametrize(
    ("more", "levels"),
    [((), ["O2", "fp-contract=off"]), (("-DTINYET_KEEP_OPTIMIZATION",), ["fp-contract=off"])],
)
def test_a_sketch_may_keep_its_cores_optimization(
    more: tuple[str, ...], levels: list[str], tmp_path: Path
) -> None:
    """But not its contraction of products and sums."""
    (tmp_path / "model.c").write_text('#include "tinyet_common.h"\n')
    arduino = ("-DARDUINO=10800", "-D__arm__=1", *more)
    include = f"-I{assets.path('firmware') / 'include'}"
    done = subprocess.run(
        ["gcc", "-E", *arduino, include, tmp_path / "model.c"],
        capture_output=True, text=True, check=True, timeout=10,
    )  # fmt: skip
    assert re.findall(r'^#pragma GCC optimize\("(.*)"\)', done.stdout, re.MULTILINE) == levels
