# SPDX-License-Identifier: Apache-2.0
"""Figures of documents: every page is what the results of the benchmarks give, and each result can be measured anew."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import record
from tinyet.build.doctor import Check

ROOT = Path(__file__).parents[2]


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("figures", ROOT / "scripts" / "figures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FIGURES = script()
RESULTS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in record.FOLDER.glob("*.json")}
TABLES = ROOT / "benchmarks" / "tables"
TABLE = re.compile(r"^(\|.*\|)\n\|[ :|-]+\|\n((?:\|.*\n)+)", re.MULTILINE)
FIGURE = re.compile(r"[-+−±~]?(\d{1,3}([, ]\d{3})+|\d+\.\d+)\b")

TFLM = "its other columns are of TFLM, which its own Makefile builds: no benchmark here does"
ERRORS = "printed by benchmarks/costs.py, hours of emulation, when it fits what kernels state"
TYPED = {
    (
        "coming-from-tflm.md",
        "| hello_world, int8 | TFLM, reference kernels | tinyet behind the header |",
    ): TFLM,
    (
        "coming-from-tflm.md",
        "| micro_speech, int8 | TFLM, reference kernels | TFLM, CMSIS-NN 7.0.0 | tinyet behind the header |",
    ): TFLM,
    (
        "compilers.md",
        "| | GCC 12.2 | Clang 14.0 | Clang 19.1 |",
    ): "of three compilers, which few machines have",
    ("kernels.md", "| kernel, on M4 | mean | largest |"): ERRORS,
    ("kernels.md", "| kernel | M4, mean | largest | M3, mean | largest |"): ERRORS,
    (
        "kernels.md",
        "| | `tinyet_conv2d_f32` | `2x4` | of it |",
    ): "one column is of a kernel that is never chosen there",
    (
        "kernels.md",
        "| layer | kernel | input, bytes | distance |",
    ): "not measured: sizes, and what kernels state",
    (
        "kernels.md",
        "| kernels | what is assembly, or has fewer bits | cycles a value, the compiler's -> now |",
    ): "beside the compiler's code for AVR, which is gone",
    (
        "onnx.md",
        "| | default, extended | basic | none |",
    ): "shares of drawn bytes, by the level of ONNX Runtime's optimizations and by processor",
    (
        "onnx.md",
        "| | rounded to even | rounded twice, portable kernels | rounded twice, all kernels |",
    ): "one block, from a file of ONNX Runtime's quantizer, which no benchmark writes",
    (
        "quantization.md",
        "| | own scales | one scale | requantized bytes | MACs | flash | arena |",
    ): "one scale is what a converter does; tinyet has no option for it",
    (
        "quantization.md",
        "| weights | float | after training | in training |",
    ): "printed by examples/digits/qat.py, which trains",
    (
        "reports.md",
        "| network | calls | compile | plan | generate | before: compile | before: plan |",
    ): "seconds of one machine, beside those of a version that is gone",
}
"""Tables of measured figures that no result gives, and why: page and head of the table."""


@pytest.mark.parametrize("page", FIGURES.pages(), ids=lambda page: page.name)
def test_a_page_is_what_the_results_give(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == FIGURES.text(page), "python scripts/figures.py"


def test_every_figure_is_on_a_page_and_of_a_result() -> None:
    marked = [
        match[2] for page in FIGURES.pages() for match in FIGURES.MARKED.finditer(page.read_text("utf-8"))
    ]
    assert set(marked) == FIGURES.FIGURES.keys()
    source = "".join(path.read_text(encoding="utf-8") for path in TABLES.glob("*.py"))
    assert set(re.findall(r'\bresult\("(\w+)"\)', source)) == RESULTS.keys()


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_says_how_it_was_measured(name: str) -> None:
    python, benchmark, *words = shlex.split(RESULTS[name]["command"])
    assert python == "python"
    assert words[-2:] == ["--results", name]
    text = (ROOT / benchmark).read_text(encoding="utf-8")
    assert all(f'"{word}"' in text for word in words[:-2] if word.startswith("--"))
    assert "add_option(parser)" in text
    assert re.fullmatch(r"[0-9a-f]{12}", RESULTS[name]["commit"]), "measured with sources of one commit"
    assert {"arm-none-eabi-gcc", "qemu-system-arm"} <= RESULTS[name]["tools"].keys()


def typed_tables(text: str) -> list[str]:
    """The heads of tables outside of marks that hold measured figures: two cells or more, behind the first column,
    begin with a number of four digits or more, or a decimal one."""
    found = []
    for match in TABLE.finditer(FIGURES.MARKED.sub("", text)):
        cells = [cell.strip() for row in match[2].splitlines() for cell in row.strip("|").split("|")[1:]]
        if sum(bool(FIGURE.match(cell)) for cell in cells) >= 2:
            found.append(match[1])
    return found


def test_measured_tables_are_of_results() -> None:
    """A table that somebody types is a table that nobody measures again."""
    typed = {
        (page.name, head)
        for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
        for head in typed_tables(page.read_text(encoding="utf-8"))
    }
    assert typed - TYPED.keys() == set(), "benchmarks/*.py --results NAME, and a figure in benchmarks/tables/"
    assert TYPED.keys() - typed == set(), "these are of results now"


@pytest.mark.parametrize("cell", ["1,024", "12 345 678", "0.31", "2,201,814 (2.6, 576)", "−0.4 %", "47.6 dB"])
def test_a_typed_table_is_found(cell: str) -> None:
    rows = f"| | a | b |\n|---|--:|--:|\n| one | {cell} | 2 |\n| two | 3 | {cell} |\n"
    assert typed_tables(f"Text.\n\n{rows}\nText.\n") == ["| | a | b |"]
    assert typed_tables(f"Text.\n\n<!-- figures: memory -->\n{rows}<!-- end -->\n") == []
    assert typed_tables(f"Text.\n\n{rows.replace(cell, 'int8, 4 bytes')}\n") == []


def test_a_stale_figure_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "It is <!-- figures: networks_measured -->0.01<!-- end --> that counts.\n", encoding="utf-8"
    )
    table = FIGURES.FIGURES["networks_measured"]()
    assert f"| {RESULTS['mlperf_tiny']['figures'][0]['instructions']:,} |" in table
    assert FIGURES.text(page) == (
        f"It is <!-- figures: networks_measured -->{table}<!-- end --> that counts.\n"
    )


def test_a_result_is_the_same_for_the_same_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "FOLDER", tmp_path / "results")
    monkeypatch.setattr(record, "checks", lambda: [Check("torch", True, "2.13", "", "")])
    monkeypatch.setattr(sys, "argv", [str(ROOT / "benchmarks" / "optimize.py"), "ds_cnn", "--results", "one"])
    record.write("one", {"kernel": "tinyet_add_s8"})
    first = (tmp_path / "results" / "one.json").read_bytes()
    record.write("one", {"kernel": "tinyet_add_s8"})
    assert (tmp_path / "results" / "one.json").read_bytes() == first
    written = json.loads(first)
    assert written["command"] == "python benchmarks/optimize.py ds_cnn --results one"
    assert written["tools"]["torch"] == "2.13"
    assert written["figures"] == {"kernel": "tinyet_add_s8"}
    record.write(None, {})
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["one.json"]
