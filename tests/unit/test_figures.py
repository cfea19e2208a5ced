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
