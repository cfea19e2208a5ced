# SPDX-License-Identifier: Apache-2.0
"""What the command line shows, whole: tables, reports, blocks of errors, and the words of the help."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.cells import cell_len

from tests import small
from tests.cli.command import plain, refused, tinyet
from tests.golden_files import Golden
from tinyet import cli
from tinyet.boards import all_boards, board_names, load_board
from tinyet.build.doctor import NEEDED, Check
from tinyet.cli import ui
from tinyet.cycles.estimate import CycleEstimate
from tinyet.mismatch.locate import Mismatch
from tinyet.program import Program
from tinyet.project import Project
from tinyet.timing.work import Work
from tinyet.validation import LayerResult, PartResult, ValidationResult


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a program in it."""
    plain(monkeypatch)
    monkeypatch.chdir(tmp_path)
    small.program().save(tmp_path / "small.tet")
    return tmp_path


def shown(*arguments: str, status: int = 0) -> str:
    """Standard output, and standard error below it where there is any. Nothing is wider than 100 columns."""
    ended = tinyet(*arguments)
    assert ended.status == status, ended
    assert max(map(cell_len, ended.out.splitlines()), default=0) <= 100, ended.out
    return ended.out + (f"---- standard error\n{ended.err}" if ended.err else "")


# ---- generate ----


def test_generate(golden: Golden) -> None:
    golden(shown("generate", "small.tet", "--board", "microbit"), "generate.txt")


def test_strict_refuses_float_layers(here: Path, golden: Golden) -> None:
    """But for the reshape, which moves bytes and computes nothing."""
    Program("real", small.graph(real=True)).save(here / "real.tet")
    error = refused(here, "model error", "generate", "real.tet", "--board", "microbit", "--strict")
    golden(error, "strict.txt")
    assert "nothing is quantized" in shown("generate", "real.tet", "--board", "microbit")


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("ram", ("--max-ram", "1K")),
        ("flash", ("--max-flash", "100")),
        ("both", ("--max-ram", "1K", "--max-flash", "100")),
    ],
)
def test_what_does_not_fit_is_told_with_the_largest_contributors(
    here: Path, golden: Golden, name: str, limits: tuple[str, ...]
) -> None:
    error = refused(here, "does not fit", "generate", "small.tet", "--board", "microbit", *limits)
    golden(error, f"does_not_fit_{name}.txt")


def test_a_required_delegate_lists_every_fallback(here: Path, golden: Golden) -> None:
    arguments = ("--board", "mps2_an385", "--delegates", "cortex_m", "--require-delegate")
    golden(refused(here, "unsupported operator", "generate", "small.tet", *arguments), "require_delegate.txt")


# ---- analyze ----


def test_analyze(here: Path, golden: Golden) -> None:
    golden(shown("analyze", "small.tet", "--board", "microbit", "--json", "a.json"), "analyze.txt")
    text = (here / "a.json").read_text(encoding="utf-8")
    golden(text, "analyze.json")
    record = json.loads(text)
    assert record["macs"] == 6 * 6 * 4 * 27 + 36 * 5
    assert record["arena_bytes"] >= record["arena_lower_bound"] > 0


# ---- validate ----

_RIGHT = ValidationResult(
    on="qemu",
    board="mps2_an386",
    samples=40,
    mismatches=0,
    first_mismatch=None,
    accuracy=0.975,
    host_accuracy=0.975,
    float_accuracy=1.0,
    count=123_456,
    count_unit="instructions",
    macs=4_068,
    arena_bytes=504,
    ram_bytes=1_300,
    flash_bytes=21_004,
    stack_bytes=312,
    layers=(
        LayerResult(
            "body.conv", "conv2d", "conv2d", "tinyet_conv2d_s8_packed_2x4_dsp", "net.py:11", "net.py:11: …",
            3_888, 110_000, 40.52,
        ),
        LayerResult(
            "body.pool", "pool", "max_pool2d", "tinyet_max_pool2d_s8", "net.py:12", "net.py:12: …", 0, 10_456, 38.0
        ),
        LayerResult(
            "the.path.of.a.module.that.is.longer.than.what.a.line.has.room.for.0",
            "y", "delegate", "accelerator_run", "", "", 180, 3_000, None,
            (PartResult("fetch", "", 1_000), PartResult("compute", "net.py:14: …", 2_000)),
        ),
    ),
    outputs=[],
)  # fmt: skip
_ESTIMATED = _RIGHT.with_estimate(
    CycleEstimate(
        "Cortex-M4",
        "Cortex-M4 Technical Reference Manual (DDI 0439D), tables 3-1 and 7-1",
        ("a division takes 7 cycles (2 to 12, by its operands)", "the flash lets the core wait for nothing"),
        "mps2_an386",
        25_000_000,
        (
            Work(150_500, 110_000, 25_000, 3_000, 52_000, 0, 1_000, 12_345),
            Work(14_000, 10_456, 2_000, 1_000, 0, 0, 800, 0),
            Work(4_321, 3_000, 500, 100, 180, 2, 75, 6),
        ),
        Work(40, 30, 2, 1, 0, 0, 5, 0),
        (165_432, 171_234),
    )
)
_WRONG = dataclasses.replace(
    _RIGHT,
    on="serial:/dev/ttyACM0",
    mismatches=3,
    first_mismatch=Mismatch(
        7, 1, "body.pool", "pool", "max_pool2d", "tinyet_max_pool2d_s8", (0, 1, 2, 3), -5, 4, 17,
        "body.pool (net.py:12): F.max_pool2d(x, 2)",
    ),
    accuracy=None,
    host_accuracy=None,
    float_accuracy=None,
    count_unit="cycles",
    stack_bytes=None,
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("right", _RIGHT),
        ("host", dataclasses.replace(_RIGHT, on="host", count_unit="nanoseconds", ram_bytes=None, flash_bytes=None)),
        ("estimated", _ESTIMATED),
        ("wrong", _WRONG),
        ("wrong_somewhere", dataclasses.replace(_WRONG, first_mismatch=None)),
    ],
)  # fmt: skip
def test_validate(
    monkeypatch: pytest.MonkeyPatch, golden: Golden, name: str, result: ValidationResult
) -> None:
    shown("generate", "small.tet", "--board", "mps2_an386", "-o", "p")
    monkeypatch.setattr(Project, "validate", lambda *_, **__: result)
    golden(shown("validate", "p", status=0 if result.bit_exact else 1), f"validate_{name}.txt")


@pytest.mark.parametrize("options", [(), ("--estimate",)])
def test_cycles_are_estimated_where_they_are_asked_for(
    options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def validate(_: Project, **given: object) -> ValidationResult:
        return _ESTIMATED if given["estimate"] else _RIGHT

    shown("generate", "small.tet", "--board", "mps2_an386", "-o", "p")
    monkeypatch.setattr(Project, "validate", validate)
    assert ("ESTIMATED cycles" in shown("validate", "p", *options)) == bool(options)
    record = json.loads(shown("validate", "p", *options, "--json", "-"))
    assert (record["estimate"] is not None) == bool(options)
    assert record["cycles"] is None


# ---- boards ----


def test_boards(golden: Golden) -> None:
    text = shown("boards")
    golden(text, "boards.txt")
    assert re.findall(r"^ (\w+) ", text, re.MULTILINE) == ["board", *board_names()]


@pytest.mark.parametrize("name", board_names())
def test_every_board_is_told_with_its_facts(name: str) -> None:
    board = load_board(name)
    told = [board.title, board.cpu, board.isa, f"{board.clock_hz / 1e6:g} MHz", f"{board.flash.origin:#010x}"]
    told += [board.arduino.fqbn] if board.arduino else []
    told += [board.zephyr.board] if board.zephyr else []
    told += [board.platformio.platform, board.platformio.board] if board.platformio else []
    told += [f"{board.uart.base:#010x}"] if board.uart else []
    text = shown("boards", name)
    for fact in (*told, *board.emulators):
        assert fact in text


@pytest.mark.parametrize("name", ["arduino_uno", "mps3_an547", "nano_33_ble", "nrf5340_dk", "riscv32_virt"])
def test_one_board_whole(name: str, golden: Golden) -> None:
    golden(shown("boards", name), f"board_{name}.txt")


# ---- doctor ----

_ALL = ("renode", "host cc", *dict.fromkeys(name for names in NEEDED.values() for name in names))


def _doctor(monkeypatch: pytest.MonkeyPatch, *options: str, status: int = 0, **missing: str) -> str:
    """What doctor shows where some tools are missing; their values are how to install them."""
    found = [
        Check(
            name, name not in missing, None if name in missing else "1.0", "something", missing.get(name, "x")
        )
        for name in _ALL
    ]
    monkeypatch.setattr("tinyet.cli.doctor.checks", lambda: found)
    return shown("doctor", *options, status=status)


def test_doctor_with_everything(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    golden(_doctor(monkeypatch), "doctor.txt")


def test_doctor_without_something_optional(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    golden(_doctor(monkeypatch, renode="get renode"), "doctor_optional.txt")


def test_doctor_with_one_command_for_two_tools(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    missing = {"torch": "pip install it", "torchao": "pip install it", "west": "pip install west"}
    golden(_doctor(monkeypatch, status=1, **missing), "doctor_missing.txt")


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in NEEDED for name in NEEDED[kind]])
def test_doctor_without_something_needed(monkeypatch: pytest.MonkeyPatch, kind: str, name: str) -> None:
    out = _doctor(monkeypatch, "--kind", kind, status=1, **{name: "apt-get install it"})
    assert "MISSING" in out
    assert "apt-get install it" in out


def test_doctor_of_one_kind_does_not_insist_on_the_tools_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    _doctor(monkeypatch, "--kind", "arduino", west="get west")
    _doctor(monkeypatch, "--kind", "zephyr", west="get west", status=1)
    refused_kind = tinyet("doctor", "--kind", "onions")
    assert refused_kind.status == 2
    assert "platformio, cmake, arduino, zephyr" in refused_kind.err


# ---- check ----


def test_check(here: Path, golden: Golden) -> None:
    """A folder as a table, one model as a list; what is damaged or too large is an error below, and the others are
    there none the less."""
    golden(shown("check", "small.tet", "--board", "microbit"), "check.txt")
    (here / "zoo" / "sub").mkdir(parents=True)
    small.program().save(here / "zoo" / "sub" / "small.tet")
    small.program(size=64, hidden=600).save(here / "zoo" / "wide.tet")
    (here / "zoo" / "broken.tflite").write_bytes(b"TFL3" * 9)
    (here / "zoo" / "no_model.py").write_text("def something():\n    raise SystemExit\n")
    text = shown("check", "zoo", "--board", "microbit", "--json", "c.json", status=1)
    golden(text, "check_folder.txt")
    record = json.loads((here / "c.json").read_text())
    assert [one["verdict"] for one in record["models"]] == ["refused", "ok", "too large"]
    assert record["models"][0]["macs"] is None
    assert record["models"][1]["operators"]["conv2d"] == 1
    tinyet("generate", "small.tet", "--board", "microbit", "-o", "p")
    assert "tinyet analyze DIR" in refused(here, "usage error", "check", "p", status=2)
    (here / "empty").mkdir()
    assert "no model below" in refused(here, "usage error", "check", "empty", status=2)


def test_budgets(here: Path, golden: Golden) -> None:
    """Each limit that is broken, and each mistake in the file; the others pass."""
    (here / "models").mkdir()
    small.program().save(here / "models" / "small.tet")
    one = '[[tool.tinyet.budgets]]\nmodel = "small.tet"\nboard = "microbit"\n'
    file = here / "models" / "pyproject.toml"
    file.write_text(one + 'arena_bytes = 460\nflash_bytes = "14K"\n')
    assert tinyet("check", "--budgets", "models/pyproject.toml").status == 0
    file.write_text(file.read_text() + one + "arena_bytes = 459\nmilliseconds = 0.5\nmacs = 1e9\n")
    golden(shown("check", "--budgets", "models/pyproject.toml", status=1), "budgets.txt")
    limit = "macs = 1e9\n"
    gone, nowhere = one.replace("small", "gone"), one.replace("microbit", "nowhere")
    file.write_text(gone + limit + nowhere + limit + one + limit)
    golden(shown("check", "--budgets", "models/pyproject.toml", status=1), "budgets_missing.txt")
    file.write_text(
        one.replace("microbit", "hifive1") + "speed = 3\nmacs = '3x'\n" + "[[tool.tinyet.budgets]]\n"
    )
    golden(refused(here, "data error", "check", "--budgets", "models/pyproject.toml"), "budgets_wrong.txt")
    file.write_text("[tool.tinyet]\nbudgets = 3\n")
    assert "no budgets" in refused(here, "data error", "check", "--budgets", "models/pyproject.toml")
    assert "no model to check" in refused(here, "usage error", "check", status=2)


# ---- compare ----


def test_compare(here: Path, golden: Golden) -> None:
    """Programs, and the form for a pull request; a limit that is broken is an error, and everything is written."""
    small.program(channels=8).save(here / "wide.tet")
    golden(shown("compare", "small.tet", "wide.tet", "--board", "microbit"), "compare.txt")
    limits = ("--fail-if", "arena_bytes>+10%", "--fail-if", "layers.macs>+50%")
    ended = tinyet("compare", "small.tet", "wide.tet", "--board", "microbit", *limits, "--markdown", "c.md")
    assert ended.status == 1
    golden(ended.err, "compare_limits.txt")
    golden((here / "c.md").read_text(encoding="utf-8"), "compare.md")
    error = refused(
        here, "usage error", "compare", "small.tet", "small.tet", "--fail-if", "instructions>1", status=2
    )
    assert "instructions is not known of small.tet" in error


# ---- help ----

_GROUP: Any = typer.main.get_command(cli.app)
_COMMANDS = {"tinyet": _GROUP, **_GROUP.commands}


@pytest.mark.parametrize("name", _COMMANDS)
def test_the_words_of_the_help(monkeypatch: pytest.MonkeyPatch, name: str, golden: Golden) -> None:
    """What tinyet says there; the layout, and what is said of types and defaults, is that of typer's version."""
    monkeypatch.setenv("COLUMNS", "80")
    command = _COMMANDS[name]
    rows = [
        [*(p.opts if p.param_type_name == "option" else ()), *([p.metavar] if p.metavar else ()), p.help]
        for p in command.params
        if "--help" not in p.opts
    ]
    page = " ".join(tinyet(*([] if command is _GROUP else [name]), "--help").out.split())
    for text in (command.help, *(text for row in rows for text in row)):
        assert " ".join(text.split()) in page
    golden("\n".join([command.help, "", *map("  ".join, rows)]) + "\n", f"help_{name}.txt")


def test_the_help_tells_what_each_command_does_and_waits_for_none() -> None:
    page = " ".join(tinyet("--help").out.split())
    for command in _GROUP.commands.values():
        assert command.help.partition("\n")[0] in page
    asked = "run(['--help']); run(['check', '--help']); run(['analyze', '--help'])"
    program = f"import sys; from tinyet.cli import run; {asked}; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    *_, modules = done.stdout.splitlines()
    assert {"tinyet.cli.app", "tinyet.cli.check", "tinyet.cli.analyze"} <= set(modules.split())
    assert not {"numpy", "torch", "tinyet.ops", "tinyet.deployment"} & set(modules.split())


# ---- tables ----


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 200])
def test_no_table_loses_a_character_at_any_width(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    columns: list[tuple[str, ui.Kind]] = [
        *(("layer", "text"), ("op", "name"), ("MACs", "number"), ("bytes", "number")),
        *(("kernel", "detail"), ("line", "detail")),
    ]
    rows: list[tuple[ui.Cell, ...]] = [
        (
            f"stage{n}.blocks.{n}.attention.projection",
            "conv_transpose2d",
            1_234_567_890 + n,
            n,
            f"kernel_{n}",
            f"m.py:{n}",
        )
        for n in (1, 22, 333)
    ]
    ui.table(columns, rows)
    printed = capsys.readouterr().out
    whole = "".join(printed.split())
    for row in rows:
        number = f"{row[2]:,}".replace(",", " ")
        assert number in printed, "digits stay together"
        assert str(row[4]) in printed
        assert str(row[5]) in printed
    letters = sorted(c for row in rows for c in str(row[0]))
    assert not Counter(letters) - Counter(whole)
    assert "…" not in printed
    if width >= 80:
        assert max(map(cell_len, printed.splitlines())) <= width


def test_boards_at_80_columns_take_two_lines_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = shown("boards").splitlines()
    assert len(lines) <= 2 * len(all_boards()) + 6
    assert max(map(len, lines)) <= 80
