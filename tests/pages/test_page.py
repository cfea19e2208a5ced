# SPDX-License-Identifier: Apache-2.0
"""Pages of reports in a real browser: every number on them is the JSON's, whatever names hold; they load nothing."""

from __future__ import annotations

import copy
import dataclasses
import html
import html.parser
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import pytest

import tinyet
from tests import small
from tests.golden.programs import separable
from tests.pages.browser import Browser
from tests.streamed import residual
from tests.unit.test_comparison import result
from tinyet import assets
from tinyet.advising.trials import Advice
from tinyet.answers.confusion import Confusion
from tinyet.ir import DType
from tinyet.pages.page import page_of, unpacked

_BOARD = "mps2_an386"
_EVIL = "</script><script>document.title='owned'</script><b>@script@ @report@ \u2028 &amp;"

in_browser = pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")


class _Page(html.parser.HTMLParser):
    """The elements of a document with a data-path: path, text or data-value, digits, what the value was multiplied by;
    and all text."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: list[tuple[str, str, int, int]] = []
        self.rows = 0
        self.tags: set[str] = set()
        self._open: tuple[str, int, int] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.add(tag)
        self.rows += tag == "tr"
        path = found.get("data-path")
        self._open = None
        if path is not None and "data-value" in found:
            self.numbers.append((path, str(found["data-value"]), 0, 1))
        elif path is not None:
            self._open = (path, int(found.get("data-digits") or 0), int(found.get("data-times") or 1))

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            path, digits, times = self._open
            found = re.match(r"[-−]?[\d\u202f]+(\.\d+)?", data)
            text = "" if found is None else found[0].replace("−", "-").replace("\u202f", "")
            self.numbers.append((path, text, digits, times))
            self._open = None


class Dump(Protocol):
    """The document that a browser makes of a page, after a script, in a window of a width in pixels; asserted: nothing
    was thrown, nothing was loaded."""

    def __call__(self, page: str, script: str = "", width: int = 1200) -> tuple[_Page, str]: ...


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dump]:
    where = tmp_path_factory.mktemp("pages")
    with Browser(where / "profile") as browser:

        def dump_it(page: str, script: str = "", width: int = 1200) -> tuple[_Page, str]:
            file = where / "page.html"
            file.write_text(page.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
            text, complaints = browser.document(file, width)
            assert not complaints
            parsed = _Page()
            parsed.feed(text)
            return parsed, text

        yield dump_it


def at(record: Any, path: str) -> Any:
    for key in path.split("."):
        record = record[int(key)] if isinstance(record, list) else record[key]
    return record


def assert_numbers(parsed: _Page, reports: Mapping[str, Any]) -> set[str]:
    """Each number is what stands at its path in the reports. Returns the paths."""
    assert parsed.numbers
    for path, text, digits, times in parsed.numbers:
        value = times * at(reports, path)
        assert text, path
        assert float(text) == pytest.approx(value, abs=0.5001 * 10**-digits), path
    return {path for path, *_ in parsed.numbers}


@cache
def _analysis(which: str) -> dict[str, Any]:
    if which == "rows":
        return tinyet.analyze(_program(residual(DType.INT8)), _BOARD, optimize="size").to_json()
    return tinyet.analyze(separable(), _BOARD).to_json()


def _program(given: Any) -> Any:
    return given


@in_browser
def test_every_number_of_an_analysis_is_the_jsons(dump: Dump) -> None:
    for which in ("whole", "rows"):
        report = _analysis(which)
        parsed, _ = dump(page_of("net", analysis=report))
        paths = assert_numbers(parsed, {"analysis": report})
        for key in ("macs", "cycles", "instructions", "constant_bytes", "output_bytes"):
            layers = {
                f"analysis.layers.{i}.{key}"
                for i, layer in enumerate(report["layers"])
                if layer[key] is not None
            }
            assert layers <= paths, key
        assert {f"analysis.arena.{i}.bytes" for i in range(len(report["arena"]))} <= paths
        assert {f"analysis.memories.{i}.bytes" for i in range(len(report["memories"]))} <= paths
        assert {
            f"analysis.memories.1.taken.{i}.bytes" for i in range(len(report["memories"][1]["taken"]))
        } <= paths
        assert {"analysis.arena_bytes", "analysis.milliseconds", "analysis.macs"} <= paths


@in_browser
def test_validation_and_comparison_likewise(dump: Dump) -> None:
    validation, comparison = result().to_json(), tinyet.compare(result(), result(1100)).to_json()
    parsed, _ = dump(page_of("net", validation=validation, comparison=comparison))
    paths = assert_numbers(parsed, {"validation": validation, "comparison": comparison})
    assert {
        "validation.layers.1.instructions",
        "validation.flash_bytes",
        "comparison.figures.0.after",
    } <= paths


def _labelled(classes: int = 3) -> dict[str, Any]:
    """A validation of the layers of `_analysis("whole")`, of which each thing is there that a page shows."""
    names = [layer["name"] for layer in _analysis("whole")["layers"]]
    cells = ((0, 0, 5), (0, 2, 1), (1, 1, 3), (classes - 1, 1, 2))
    found = result(
        layers=dict.fromkeys(names, 100),
        confusion=Confusion(("cat", "dog", "owl"), cells, cells[:3], cells[1:]),
    )
    layers = [
        dataclasses.replace(layer, sqnr_db=30.25 + i, histogram=(0, 7, 1, 40 + i), at_ends=i)
        for i, layer in enumerate(found.layers)
    ]
    return dataclasses.replace(found, layers=tuple(layers)).to_json()


@in_browser
def test_the_graph_opens_a_layer_with_its_values(dump: Dump) -> None:
    report, validation = _analysis("whole"), _labelled()
    step = "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: '%s'}));"
    script = "document.querySelector('g.node').focus();" + step % "ArrowDown" + step % "Enter"
    parsed, text = dump(page_of("net", analysis=report, validation=validation), script)
    paths = assert_numbers(parsed, {"analysis": report, "validation": validation})
    (shown,) = re.findall(r"<dialog.*?</dialog>", text, re.DOTALL)
    layer = report["layers"][1]
    assert html.escape(layer["call"], quote=False) in shown
    assert html.escape(layer["source"], quote=False) in shown
    there = {f"validation.layers.1.{key}" for key in ("at_ends", "histogram.1", "histogram.3")}
    assert there | {"analysis.layers.1.low", "analysis.layers.1.high"} <= paths
    noise = {f"validation.layers.{i}.sqnr_db" for i in range(len(report["layers"]))}
    assert noise <= {path for path, *_ in parsed.numbers}
    edges = re.search(r'class="edges" d="([^"]*)"', text)
    assert edges is not None
    assert edges[1].count("M") == sum(len(layer["reads"]) for layer in report["layers"])


@in_browser
def test_confusion_is_a_matrix_or_a_list(dump: Dump) -> None:
    for classes in (3, 1000):
        validation = _labelled(classes)
        parsed, text = dump(page_of("net", validation=validation))
        paths = assert_numbers(parsed, {"validation": validation})
        for kind in ("device", "host", "float"):
            cells = validation["confusion"][kind]
            wanted = {
                f"validation.confusion.{kind}.{i}.2"
                for i, cell in enumerate(cells)
                if classes == 3 or cell[0] != cell[1]
            }
            assert wanted == {path for path in paths if path.startswith(f"validation.confusion.{kind}")}
        assert ("<caption>" in text) == (classes == 3)
        assert "owl" in text
    assert {"validation.accuracy", "validation.host_accuracy", "validation.float_accuracy"} <= paths


@in_browser
def test_a_report_of_quantize(dump: Dump) -> None:
    report = json.loads((Path(__file__).parent / "quantize.json").read_text())
    parsed, text = dump(page_of("net", quantization=report))
    paths = assert_numbers(parsed, {"quantization": report})
    for key in ("layers", "operators"):
        assert {f"quantization.{key}.{i}.alone_sqnr_db" for i in range(len(report[key]))} <= paths
    assert {
        "quantization.health.accuracy",
        "quantization.health.confusion.host.0.2",
        "quantization.flash_bytes",
    } <= paths
    assert "are the model" in text


@in_browser
def test_a_row_opens_its_layer_and_a_heading_sorts(dump: Dump) -> None:
    report = _analysis("whole")
    sort = "[...document.querySelectorAll('th button')].find((b) => b.textContent === 'MACs').click();"
    first = "document.querySelector('tbody tr').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}));"
    parsed, text = dump(page_of("net", analysis=report), sort + first)
    paths = assert_numbers(parsed, {"analysis": report})
    most = max(report["layers"], key=lambda layer: layer["macs"])
    assert "<dialog" in text
    assert f"analysis.layers.{most['index']}.candidates.0.instructions" in paths
    assert 'aria-sort="descending"' in text


@in_browser
def test_the_arena_is_walked_with_the_keyboard(dump: Dump) -> None:
    report = _analysis("whole")
    step = "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}));"
    script = "document.querySelector('rect.block').focus();" + step
    _, text = dump(page_of("net", analysis=report), script)
    told = re.search(r'<div id="told"[^>]*>(.*?)</div>', text)
    assert told is not None
    block = report["arena"][1]
    assert block["name"] in told[1]
    assert f"{block['bytes']:,} bytes at {block['offset']:,}" in told[1]


@in_browser
def test_a_narrow_page_is_readable(dump: Dump) -> None:
    """As wide as the window, with letters of nine pixels in its pictures; no key is torn from its name, and
    nothing lies over the last line."""
    script = """
    const all = (what) => [...document.querySelectorAll(what)];
    const put = document.body.dataset, wide = (svg) => svg.getBoundingClientRect().width;
    put.over = document.documentElement.scrollWidth - innerWidth;
    put.keys = all(".key > span").length;
    put.torn = all(".key > span").filter((key) => key.getClientRects().length > 1).length;
    put.letters = Math.min(...all("svg").map((svg) => 11 * wide(svg) / svg.viewBox.baseVal.width));
    const told = document.getElementById("told"), [main] = all("main");
    put.bar = told.getBoundingClientRect().height;
    told.textContent = "one line";
    put.room = parseFloat(getComputedStyle(main).paddingBottom) - told.getBoundingClientRect().height;
    """
    _, text = dump(page_of("net", analysis=_analysis("whole"), validation=_labelled()), script, 500)
    found = {key: float(value) for key, value in re.findall(r'data-(\w+)="([-\d.]+)"', _body(text))}
    assert found["over"] <= 0
    assert found["keys"] > 5
    assert found["torn"] == 0
    assert found["letters"] > 9
    assert found["bar"] == 0
    assert found["room"] > 0


def _body(text: str) -> str:
    """The first tag of a document's body."""
    return text.partition("<body")[2].partition(">")[0]


@in_browser
def test_advice_on_a_page(dump: Dump) -> None:
    helping = Advice("rows", "--optimize size", -1024, 12, 100, 2345, True)
    report = _analysis("whole") | {
        "advice": [helping.to_json(), Advice("no", "-", refused="it cannot be").to_json()]
    }
    parsed, text = dump(page_of("net", analysis=report))
    paths = assert_numbers(parsed, {"analysis": report})
    figures = ("arena_bytes", "flash_bytes", "instructions", "cycles")
    assert {f"analysis.advice.0.{key}" for key in figures} <= paths
    assert "analysis.advice.1.arena_bytes" not in paths
    assert "it cannot be" in text


@in_browser
def test_text_of_a_model_is_text(dump: Dump) -> None:
    report = copy.deepcopy(_analysis("whole"))
    for layer in report["layers"]:
        layer["name"] = layer["line"] = layer["source"] = _EVIL
    for block in report["arena"]:
        block["name"] = _EVIL
    report["notes"] = [_EVIL]
    parsed, text = dump(page_of(_EVIL, analysis=report, remarks=[_EVIL]))
    assert "b" not in parsed.tags
    title = re.search(r"<title>(.*?)</title>", text)
    assert title is not None
    assert title[1].startswith("&lt;/script&gt;")
    assert_numbers(parsed, {"analysis": report})


@in_browser
def test_a_thousand_layers(dump: Dump) -> None:
    """In one page of less than 2 MB, with all that was measured of them."""
    report, validation = copy.deepcopy(_analysis("whole")), _labelled()
    kinds, blocks, ran = report["layers"], report["arena"], validation["layers"]
    count = 1000
    report["layers"] = [
        {**kinds[i % len(kinds)], "index": i, "name": f"layer_{i}", "reads": sorted({max(i - 2, -1), i - 1})}
        for i in range(count)
    ]
    report["arena"] = [{**blocks[i % len(blocks)], "first": i, "last": i + 2} for i in range(count)]
    histogram = list(range(1000, 1032))
    validation["layers"] = [
        {**ran[i % len(ran)], "name": f"layer_{i}", "histogram": histogram} for i in range(count)
    ]
    page = page_of("large", analysis=report, validation=validation)
    assert len(page.encode()) < 2_000_000
    parsed, text = dump(page)
    assert parsed.rows > 2 * count
    paths = assert_numbers(parsed, {"analysis": report, "validation": validation})
    assert {f"analysis.layers.{count - 1}.instructions", f"validation.layers.{count - 1}.sqnr_db"} <= paths
    assert text.count('class="node"') == count


def test_a_page_loads_nothing_and_holds_its_json() -> None:
    report = _analysis("whole")
    page = page_of("net", analysis=report)
    assert not re.search(r"""(src|href)\s*=\s*["']""", page.partition("<script")[0])
    assert "default-src 'none'" in page
    held = re.search(r'<script type="application/json" id="report">(.*?)</script>', page, re.DOTALL)
    assert held is not None
    assert unpacked(json.loads(held[1]))["analysis"] == json.loads(json.dumps(report))
    for name in ("page.js", "d3.v7.min.js", "page.css"):
        text = (assets.path("templates") / "page" / name).read_text(encoding="utf-8")
        assert "</script" not in text
        assert text.strip() in page
    assert page == page_of("net", analysis=report)


def test_the_commands_write_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.cli.command import tinyet as run

    monkeypatch.chdir(tmp_path)
    small.program().save(tmp_path / "small.tet")
    assert run("analyze", "small.tet", "--html", "a.html", "--json", "a.json").status == 0
    assert run("compare", "small.tet", "a.json", "--html", "c.html").status == 0
    for name, key in (("a", "analysis"), ("c", "comparison")):
        page = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
        held = re.search(r'<script type="application/json" id="report">(.*?)</script>', page, re.DOTALL)
        assert held is not None
        assert unpacked(json.loads(held[1]))[key] is not None
    assert json.loads((tmp_path / "a.json").read_text())["arena"]
