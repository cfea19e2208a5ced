# SPDX-License-Identifier: Apache-2.0
"""The command line from a .tet file on: what each command prints and writes, and how it fails."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from rich.cells import cell_len

from tests import small
from tests.cli.command import listing, part, plain, refused, tinyet
from tinyet.budget.fit import Limits
from tinyet.cli.options import size_in_bytes
from tinyet.projects import open_project

_CC = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler for this machine (cc)")
ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = small.program()


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a program in it. The environment says nothing of terminals or colours."""
    plain(monkeypatch)
    monkeypatch.chdir(tmp_path)
    _PROGRAM.save(tmp_path / "small.tet")
    return tmp_path


@pytest.fixture
def project(here: Path) -> Path:
    assert tinyet("generate", "small.tet", "--board", "mps2_an386", "-o", "p").status == 0
    return here / "p"


def _data(path: Path, count: int = 4, **more: Any) -> Path:
    with path.open("wb") as file:
        np.savez(file, inputs=small.images(count), **more)
    return path


def _fits(text: str) -> None:
    assert max(map(cell_len, text.splitlines())) <= 100, text


# ---- generate ----


def test_generate_writes_a_project_and_says_what_is_next(here: Path) -> None:
    ended = tinyet("generate", "small.tet", "--board", "mps2_an386")
    assert ended.status == 0
    assert "build/small: small for mps2_an386, 3 layers" in ended.out
    assert "next: tinyet build build/small" in ended.out
    # The program's one note, and no progress bar.
    assert ended.err == (
        "notes:\n  - head (net.py:14): return self.head(x): this is worth telling\n"
        "  - no labelled data, so `validate` cannot tell the accuracy: a .tet file holds none; "
        "--evaluation FILE.npz gives some\n"
    )
    project = open_project(here / "build" / "small")
    assert project.program.hash == _PROGRAM.hash
    assert (project.path / "platformio.ini").is_file()
    assert not [path for path in listing(here) if path.endswith(".part")]


def test_generate_takes_name_kind_and_limits(here: Path) -> None:
    arguments = ("--kind", "cmake", "--name", "kws", "-o", "c", "--max-ram", "16K", "--max-flash", "64k")
    ended = tinyet("generate", "small.tet", "--board", "microbit", *arguments, "--save", "copy.tet")
    assert ended.status == 0, ended.err
    project = open_project("c")
    assert (project.name, project.board.name, project.manifest["kind"]) == ("kws", "microbit", "cmake")
    assert project.limits == Limits(max_ram=16384, max_flash=65536)
    assert (here / "c" / "lib" / "kws" / "src" / "kws.c").is_file()
    assert (here / "copy.tet").read_bytes() == _PROGRAM.data


def test_the_same_command_gives_the_same_files(here: Path) -> None:
    for out in ("a", "b"):
        assert tinyet("generate", "small.tet", "--board", "microbit", "-o", out).status == 0
    assert listing(here / "a") == listing(here / "b")
    for path in listing(here / "a"):
        if (here / "a" / path).is_file():
            assert (here / "a" / path).read_bytes() == (here / "b" / path).read_bytes(), path


def test_generating_again_keeps_the_users_main(project: Path) -> None:
    (project / "src" / "main.c").write_text("int main(void) { return 0; }\n")
    assert tinyet("generate", "small.tet", "--board", "microbit", "-o", "p").status == 0
    assert (project / "src" / "main.c").read_text() == "int main(void) { return 0; }\n"
    assert open_project(project).board.name == "microbit"


def test_an_own_board_travels_with_the_project(here: Path) -> None:
    source = ROOT / "boards" / "microbit.toml"
    text = source.read_text().replace("bytes = 0x4000", "bytes = 0x3000")
    (here / "mine.toml").write_text(text)
    assert tinyet("generate", "small.tet", "--board", "mine.toml", "-o", "p").status == 0
    (here / "mine.toml").unlink()
    assert open_project("p").board.name == "mine"
    assert tinyet("analyze", "p").status == 0


def test_strict_is_content_with_integers() -> None:
    assert tinyet("generate", "small.tet", "--board", "microbit", "--strict").status == 0


# ---- errors of generate ----


def test_unknown_board_with_the_nearest_names(here: Path) -> None:
    error = refused(here, "board error", "generate", "small.tet", "--board", "mps2_an368")
    assert "'mps2_an368'" in error
    assert "mps2_an386" in part(error, "do").split("?")[0]


def test_a_board_file_with_mistakes(here: Path) -> None:
    (here / "mine.toml").write_text('title = "Mine"\n')
    error = refused(here, "board error", "generate", "small.tet", "--board", "mine.toml")
    assert "cpu is missing" in error
    assert part(error, "at") == "mine.toml"


def test_too_large_for_the_board_itself(here: Path) -> None:
    small.program(channels=600).save(here / "large.tet")
    error = refused(here, "does not fit", "generate", "large.tet", "--board", "microbit")
    assert "microbit has 16384" in error
    small.program(hidden=9000).save(here / "large.tet")
    error = refused(here, "does not fit", "generate", "large.tet", "--board", "microbit")
    assert "microbit has 262144" in error


def test_a_foreign_directory_is_left_alone(here: Path) -> None:
    (here / "mine").mkdir()
    (here / "mine" / "thesis.txt").write_text("years of work")
    error = refused(here, "project error", "generate", "small.tet", "--board", "microbit", "-o", "mine")
    assert part(error, "at") == "mine"
    (here / "file").write_text("")
    refused(here, "usage error", "generate", "small.tet", "--board", "microbit", "-o", "file", status=2)


def test_a_changed_file_of_the_project_is_left_alone(here: Path, project: Path) -> None:
    (project / "platformio.ini").write_text("mine")
    error = refused(here, "project error", "generate", "small.tet", "--board", "microbit", "-o", "p")
    assert "platformio.ini (changed since tinyet wrote it)" in error
    assert (project / "platformio.ini").read_text() == "mine"


@pytest.mark.parametrize("length", [0, 20, 1000, -1])
def test_a_damaged_program(here: Path, length: int) -> None:
    (here / "bad.tet").write_bytes(_PROGRAM.data[:length])
    error = refused(here, "program error", "generate", "bad.tet", "--board", "microbit")
    assert part(error, "at") == "bad.tet"
    refused(here, "program error", "analyze", "bad.tet")


@pytest.mark.parametrize("model", ["missing.tet", "missing.py", "missing.py:net", "notes.txt", "folder"])
def test_what_is_no_model(here: Path, model: str) -> None:
    (here / "notes.txt").write_text("")
    (here / "folder").mkdir()
    error = refused(here, "usage error", "generate", model, "--board", "microbit", status=2)
    assert "file.py:factory" in part(error, "do")


@pytest.mark.parametrize(
    "options", [("--calibration", "d.npz"), ("--float-io",), ("--channels-last",), ("--dump", "ir")]
)
def test_a_tet_program_is_compiled_already(here: Path, options: tuple[str, ...]) -> None:
    error = refused(here, "usage error", "generate", "small.tet", "--board", "microbit", *options, status=2)
    assert options[0] in error


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--board",),
        ("--board", "microbit", "--max-ram", "much"),
        ("--board", "microbit", "--max-ram", "-1"),
        ("--board", "microbit", "--kind", "make"),
        ("--board", "microbit", "--name", "a b"),
        ("--board", "microbit", "--what"),
        ("--board", "microbit", "another.tet"),
    ],
)
def test_a_wrong_command_line_is_status_2(here: Path, arguments: tuple[str, ...]) -> None:
    refused(here, "usage error", "generate", "small.tet", *arguments, status=2)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("65536", 65536),
        ("64k", 65536),
        ("64K", 65536),
        ("64KiB", 65536),
        ("1.5M", 3 << 19),
        ("1 m", 1 << 20),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert size_in_bytes(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "k", "1g", "1.3", "1e3", "0x10", "nan", "1kk"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        size_in_bytes(text)


# ---- compile ----


def test_compile_wants_a_model_and_a_tet(here: Path) -> None:
    (here / "m.py").write_text("")
    assert "compiled already" in refused(here, "usage error", "compile", "small.tet", "-o", "b.tet", status=2)
    assert "-o m.tet" in refused(here, "usage error", "compile", "m.py", "-o", "m.bin", status=2)
    assert "no directory" in refused(here, "usage error", "compile", "m.py", "-o", "no/m.tet", status=2)
    refused(here, "usage error", "compile", "m.py", status=2)


# ---- validate ----


@_CC
def test_validate_on_the_host(here: Path, project: Path) -> None:
    predicted = [int(np.argmax(_PROGRAM.run(image))) for image in small.images(4)]
    labels = np.array([predicted[0], predicted[1], predicted[2], (predicted[3] + 1) % 5])
    data = _data(here / "d.npz", labels=labels)
    ended = tinyet("validate", project, "--on", "host", "--evaluation", data, "--json", "v.json")
    assert ended.status == 0, ended.err
    # The program is made up: what it computes in integers is not what it does in float, and that is told first.
    assert ended.err.startswith("ALARM: the integers' answers are not the model's: accuracy 75.0 %")
    assert "begins at linear" in ended.err
    _fits(ended.out)
    for word in (
        "conv2d",
        "max_pool2d",
        "linear",
        "SQNR",
        "MACs",
        "yes, 4 of 4 samples",
        "device 75.00 %",
    ):
        assert word in ended.out
    assert "instructions" not in ended.out  # the host counts nanoseconds
    record = json.loads((here / "v.json").read_text())
    assert record["bit_exact"] is True
    assert record["accuracy"] == 0.75
    assert record["samples"] == 4
    assert [layer["op"] for layer in record["layers"]] == ["conv2d", "max_pool2d", "linear"]
    only = tinyet(
        "validate", project, "--on", "host", "--evaluation", data, "--max-samples", "2", "--json", "-"
    )
    assert json.loads(only.out)["samples"] == 2


@_CC
def test_a_wrong_value_on_the_device_is_found(here: Path, project: Path) -> None:
    """The C computes something else than the program: the layer, the place and the user's line are named."""
    source = project / "lib" / "small" / "src" / "small.c"
    text = source.read_text()
    (end,) = re.findall(r"TINYET_LAYER_END\(2u?\);", text)
    source.write_text(text.replace(end, f"small_arena[SMALL_OUTPUT_0_OFFSET + 3u] ^= 1u; {end}"))
    ended = tinyet("validate", project, "--on", "host", "--json", "v.json")
    assert ended.status == 1
    assert "NO, 0 of 1 synthetic sample" in ended.out
    assert ended.err.startswith("mismatch: 1 of 1 samples differ from the host reference\n")
    assert "first layer that differs: 2 head (linear, " in ended.err
    assert "element [0, 3]: device " in ended.err
    assert "that differ: 1\n" in ended.err
    assert part(ended.err, "at") == "head (net.py:14): return self.head(x)"
    assert "Traceback" not in ended.err
    found = json.loads((here / "v.json").read_text())["first_mismatch"]
    assert (found["layer"], found["name"], found["source"]) == (
        2,
        "head",
        "head (net.py:14): return self.head(x)",
    )
    assert found["device"] != found["host"]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"inputs": np.zeros((4, 6, 6), np.float32)}, "(samples, 6, 6, 3)"),
        ({"inputs": np.zeros((4, 3, 6, 6), np.float32)}, "(samples, 6, 6, 3)"),
        ({"inputs": np.zeros((0, 6, 6, 3), np.float32)}, "no sample"),
        ({"a": np.zeros(3), "b": np.zeros(3)}, "the model's inputs are x"),
        ({"labels": np.zeros(3, np.int64)}, "no input array"),
        ({"inputs": small.images(3), "labels": np.zeros(2, np.int64)}, "different numbers of samples"),
        ({"inputs": small.images(2), "labels": np.zeros((2, 5), np.int64)}, "one class index a sample"),
    ],
)
def test_data_of_a_wrong_shape(here: Path, project: Path, arrays: dict[str, Any], message: str) -> None:
    with (here / "d.npz").open("wb") as file:
        np.savez(file, **arrays)
    error = refused(
        here, "data error", "validate", project, "--on", "host", "--evaluation", "d.npz", "--json", "v.json"
    )
    assert message in error


@_CC
def test_data_that_is_not_a_number(here: Path, project: Path) -> None:
    images = small.images(2)
    images[1, 2, 3, 0] = np.nan
    with (here / "d.npz").open("wb") as file:
        np.savez(file, inputs=images)
    error = refused(
        here, "data error", "validate", project, "--on", "host", "--evaluation", "d.npz", "--json", "v"
    )
    assert "NaN" in error


def test_validate_without_a_project_or_a_build(here: Path, project: Path) -> None:
    refused(here, "project error", "validate", "nowhere")
    refused(here, "data error", "validate", project, "--evaluation", "missing.npz")
    error = refused(here, "project error", "validate", project)
    assert part(error, "do") == f"tinyet build {project}"
    refused(here, "project error", "build", here)


@pytest.mark.parametrize("arguments", [("--on", "moon"), ("--on", "serial:"), ("--max-samples", "0")])
def test_validate_with_a_wrong_command_line(here: Path, project: Path, arguments: tuple[str, ...]) -> None:
    refused(here, "usage error", "validate", project, *arguments, status=2)


def test_a_project_whose_parts_do_not_belong_together(here: Path, project: Path) -> None:
    small.program(channels=5).save(project / "small.tet")
    assert "is not the program" in refused(here, "project error", "analyze", project)
    (project / "tinyet.json").write_text('{"model": 3, "board": [], "files": {}}')
    assert "- model is 3\n  - board is []" in refused(here, "project error", "analyze", project)
    (project / "tinyet.json").write_text('{"model": "small", "files": {}}')
    assert "board, hash, kind" in refused(here, "project error", "analyze", project)
    (project / "tinyet.json").write_text("[")
    refused(here, "project error", "analyze", project)


# ---- analyze ----


def test_analyze_a_project_on_its_own_board_or_another(project: Path) -> None:
    assert "on mps2_an386" in tinyet("analyze", project).out
    assert "on microbit" in tinyet("analyze", project, "--board", "microbit").out
    only = tinyet("analyze", project, "--json", "-")
    assert json.loads(only.out)["name"] == "small"


def test_a_report_that_cannot_be_written(here: Path) -> None:
    error = refused(here, "usage error", "analyze", "small.tet", "--json", "no/a.json", status=2)
    assert part(error, "at") == "no/a.json"


# ---- boards, help ----


def test_one_board_that_is_not_there() -> None:
    ended = tinyet("boards", "nano_33_bel")
    assert ended.status == 1
    assert "did you mean nano_33_ble?" in ended.err


def test_help_and_version() -> None:
    assert tinyet().out == tinyet("--help").out
    for command in ("generate", "compile", "build", "validate", "analyze", "boards", "doctor"):
        assert command in tinyet().out
        assert tinyet(command, "--help").status == 0
    assert tinyet("--version").out.startswith("tinyet ")
    assert tinyet("--debug").status == 2


def test_an_unknown_command(here: Path) -> None:
    refused(here, "usage error", "destroy", status=2)


# ---- how commands end ----


def _broken(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def obtain(*_: object) -> None:
        raise error

    # `analyze` imports it when it runs.
    for module in ("generate", "model"):
        monkeypatch.setattr(f"tinyet.cli.{module}.obtain", obtain)


def test_a_bug_is_one_block_and_says_how_to_see_more(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _broken(monkeypatch, RuntimeError("the roof is on fire"))
    error = refused(here, "internal error", "analyze", "small.tet")
    assert "RuntimeError: the roof is on fire" in error
    assert "this is a bug" in part(error, "do")
    assert "--debug" in part(error, "do")
    ended = tinyet("--debug", "analyze", "small.tet")
    assert ended.status == 1
    assert "Traceback (most recent call last)" in ended.err


def test_debug_shows_the_traceback_of_an_expected_error_too() -> None:
    ended = tinyet("--debug", "analyze", "missing.tet")
    assert ended.status == 2
    assert ended.err.startswith("Traceback")
    assert "\nusage error: there is no file missing.tet\n" in ended.err


def test_an_interrupt_is_one_line_and_130(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _broken(monkeypatch, KeyboardInterrupt())
    ended = tinyet("generate", "small.tet", "--board", "microbit")
    assert (ended.status, ended.out, ended.err) == (130, "", "interrupted\n")
    assert listing(here) == ["small.tet"]


def test_an_interrupt_while_the_project_is_written(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def model_files(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tinyet.projects.one.model_files", model_files)
    assert tinyet("generate", "small.tet", "--board", "microbit").status == 130
    assert listing(here) == ["small.tet"]


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in tinyet("generate", "missing.tet", "--board", "microbit").err
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1;31m" in tinyet("generate", "missing.tet", "--board", "microbit").err
    monkeypatch.setenv("NO_COLOR", "1")
    assert "31m" not in tinyet("generate", "missing.tet", "--board", "microbit").err


# ---- without torch ----

_WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # importing it fails
from tinyet.cli import run
for line in sys.argv[1:]:
    status = run(line.split())
    assert status == 0, (line, status)
loaded = [name for name, module in sys.modules.items() if name.startswith("torch") and module is not None]
assert not loaded, loaded
"""


def _without_torch(here: Path, *lines: str) -> None:
    root = ROOT
    subprocess.run(
        [sys.executable, "-c", _WITHOUT_TORCH, *lines],
        cwd=here,
        env={**os.environ, "PYTHONPATH": str(root)},
        check=True,
        timeout=300,
        stdout=subprocess.DEVNULL,
    )


@_CC
def test_a_tet_program_needs_no_torch(here: Path) -> None:
    _without_torch(
        here,
        "generate small.tet --board microbit -o p --strict",
        "analyze small.tet",
        "analyze p",
        "validate p --on host",
        "boards",
    )


@pytest.mark.emulated
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="arm-none-eabi-gcc is not installed")
@pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="qemu-system-arm is not installed")
def test_build_and_validate_on_the_board_need_no_torch(here: Path) -> None:
    pytest.importorskip("platformio", reason="platformio is not installed")
    _without_torch(
        here,
        "generate small.tet --board mps2_an386 -o p",
        "build p --json b.json",
        "validate p --json v.json",
        "analyze p --json a.json",
    )
    record = json.loads((here / "v.json").read_text())
    assert record["bit_exact"] is True
    assert record["instructions"] > record["macs"]
    assert record["flash_bytes"] > 1000
    assert 0 < record["stack_bytes"] <= record["stack_bound"]["bytes"]
    built, analyzed = (json.loads((here / f"{name}.json").read_text()) for name in "ba")
    assert built["stack"] == analyzed["stack"]
    assert built["stack"]["firmware"]["bytes"] == sum(f["bytes"] for f in built["stack"]["firmware"]["chain"])
    assert built["stack"]["inference"]["bytes"] < built["stack"]["firmware"]["bytes"]
    assert built["stack"]["reserved_bytes"] == analyzed["planned_stack"]["total_bytes"]
    total = built["ram_bytes"] + built["stack"]["firmware"]["bytes"]
    assert built["ram_with_stack_bytes"] == analyzed["ram_with_stack_bytes"] == total
    assert total == record["ram_with_stack_bytes"]
    page = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    section = page.partition("## `tinyet build`")[2].partition("## ")[0]
    assert re.findall(r"^\| `(\w+)`", section, re.MULTILINE) == list(built)


@pytest.mark.emulated
@pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="qemu-system-arm is not installed")
def test_one_model_on_many_boards(here: Path) -> None:
    """Too large for one is no failure; what is of one board only is refused, and so are boards without an emulator."""
    small.program(size=64, hidden=70).save(here / "wide.tet")
    ended = tinyet("validate", "wide.tet", "--boards", "microbit, mps2_an386", "--json", "b.json")
    assert ended.status == 0, ended
    record = json.loads((here / "b.json").read_text())
    tight, roomy = record["boards"]
    assert (tight["verdict"], tight["result"]) == ("too large", None)
    assert "does not fit" in tight["error"]
    assert (roomy["verdict"], roomy["on"], roomy["cpu"]) == ("exact", "qemu", "cortex-m4")
    assert roomy["result"]["instructions"] > 0
    assert roomy["milliseconds"] > 0
    assert f"{roomy['result']['flash_bytes']:,}".replace(",", " ") in ended.out
    one = refused(
        here, "usage error", "validate", "wide.tet", "--boards", "microbit", "--trace", "t", status=2
    )
    assert "--trace: of one board" in one
    error = refused(here, "usage error", "validate", "wide.tet", "--boards", "nucleo_f446re", status=2)
    assert "no emulator has them" in error


def test_without_torch_a_model_file_is_refused_with_what_to_install(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "m.py").write_text("")
    for name in [
        name for name in sys.modules if name.startswith(("tinyet.importers.torch", "tinyet.quantization"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "torch.export", None)
    error = refused(here, "toolchain error", "generate", "m.py", "--board", "microbit")
    assert "tinyet[torch]" in part(error, "do")


def test_the_manifest_holds_the_hash_and_the_limits(project: Path) -> None:
    manifest = json.loads((project / "tinyet.json").read_text())
    assert manifest["hash"] == _PROGRAM.hash
    assert manifest["limits"] == {"max_ram": None, "max_flash": None, "stack": None}


# ---- labelled data ----


@_CC
def test_labelled_data_goes_along_with_a_program(here: Path) -> None:
    """A .tet holds none: it is given beside it, the project keeps it, and without it no figure pretends to be one."""
    data = _data(here / "x.npz", labels=np.zeros(4, int))
    ended = tinyet("generate", "small.tet", "--board", "mps2_an386", "-o", "p", "--evaluation", data)
    assert "labelled" not in ended.err
    assert tinyet("validate", "p", "--on", "host", "--json", "v.json").status == 0
    with_data = json.loads((here / "v.json").read_text())
    assert (with_data["samples"], with_data["synthetic"], with_data["data_note"]) == (4, False, None)
    assert with_data["accuracy"] is not None
    assert all(layer["sqnr_db"] is not None for layer in with_data["layers"])
    tinyet("generate", "small.tet", "--board", "mps2_an386", "-o", "q")
    ended = tinyet("validate", "q", "--on", "host", "--json", "v.json")
    without = json.loads((here / "v.json").read_text())
    assert (without["samples"], without["synthetic"], without["accuracy"]) == (1, True, None)
    assert "says nothing of accuracy" in without["data_note"]
    assert without["data_note"] in ended.err
    assert [layer["sqnr_db"] for layer in without["layers"]] == [None] * len(without["layers"])
    assert "yes, 1 of 1 synthetic sample" in ended.out


def test_labelled_data_that_would_be_lost(here: Path) -> None:
    data = _data(here / "x.npz")
    ended = tinyet("generate", "small.tet", "--board", "mps2_an386", "-o", "p", "--evaluation", data)
    assert "the samples have no labels" in ended.err
    command = ("generate", "small.tet", "--board", "mps2_an386", "--kind", "model", "--evaluation", data)
    error = refused(here, "usage error", *command, status=2)
    assert "keep no samples" in error
