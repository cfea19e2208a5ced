# SPDX-License-Identifier: Apache-2.0
"""Single pictures, notebooks, and graphs for other viewers: all of it is the JSON's, whatever names hold."""

from __future__ import annotations

import copy
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import tinyet
from tests import small
from tests.cli.command import tinyet as run
from tests.golden.programs import separable
from tests.pages.test_page import _EVIL, _analysis, _labelled
from tests.unit.test_comparison import result
from tinyet.analysis import Analysis, analyze
from tinyet.pages import viewers
from tinyet.pages.pictures import PICTURES

_SVG = "{http://www.w3.org/2000/svg}"


def _evil() -> dict[str, Any]:
    report = copy.deepcopy(_analysis("whole"))
    for layer in report["layers"]:
        layer["name"] = layer["op"] = layer["kernel"] = layer["line"] = layer["source"] = layer["value"] = (
            _EVIL
        )
    for block in report["arena"]:
        block["name"] = block["line"] = _EVIL
    return report


def test_the_picture_of_the_arena_has_its_blocks_to_scale() -> None:
    report = _analysis("rows")
    tree = ET.fromstring(PICTURES["arena"](report))
    blocks = [r for r in tree.iter(f"{_SVG}rect") if "block" in r.get("class", "")]
    assert len(blocks) == len(report["arena"])
    scale = {
        round(float(str(rect.get("height"))) / block["bytes"], 3)
        for rect, block in zip(blocks, report["arena"], strict=True)
        if block["bytes"] > report["arena_bytes"] / 20
    }
    assert max(scale) - min(scale) < 0.01 * max(scale)
    for rect, block in zip(blocks, report["arena"], strict=True):
        said = rect.findtext(f"{_SVG}title") or ""
        assert f"{block['bytes']:,} bytes at {block['offset']:,}" in said


def test_names_of_values_at_one_place_are_not_printed_over_each_other() -> None:
    report = _analysis("whole")
    largest = max(report["arena"], key=lambda block: int(block["bytes"]))
    report["arena"].append({**largest, "name": "a_view"})
    tree = ET.fromstring(PICTURES["arena"](report))
    names = [text.text for text in tree.iter(f"{_SVG}text") if text.get("class") is None]
    assert largest["name"] in names
    assert "a_view" not in names
    assert any((title.text or "").startswith("a_view: ") for title in tree.iter(f"{_SVG}title"))


def test_the_picture_of_the_layers_has_their_time() -> None:
    report = _analysis("whole")
    tree = ET.fromstring(PICTURES["layers"](report))
    bars = list(tree.iter(f"{_SVG}rect"))
    counts = [layer[report["time"]] for layer in report["layers"]]
    widths = [float(str(bar.get("width"))) for bar in bars]
    assert [round(width / max(widths), 2) for width in widths] == [round(n / max(counts), 2) for n in counts]
    assert {f"{count:,}" for count in counts} <= {text.text for text in tree.iter(f"{_SVG}text")}


@pytest.mark.parametrize("name", list(PICTURES))
def test_text_of_a_model_is_text_in_a_picture(name: str) -> None:
    picture = PICTURES[name](_evil())
    tags = {element.tag.removeprefix(_SVG) for element in ET.fromstring(picture).iter()}
    assert tags <= {"svg", "style", "text", "rect", "line", "title"}
    assert picture == PICTURES[name](_evil())


def test_notebooks_show_results_with_their_figures_and_no_markup_of_models(tmp_path: Path) -> None:
    program = separable()
    analysis = analyze(program, "mps2_an386")
    project = tinyet.generate(program, "mps2_an386", tmp_path / "p", kind="cmake")
    validation = result(layers={_EVIL: 12_345})
    compared = tinyet.compare(result(), result(1100))
    shown = {
        "program": program._repr_html_(),
        "analysis": analysis._repr_html_(),
        "project": project._repr_html_(),
        "validation": validation._repr_html_(),
        "comparison": compared._repr_html_(),
    }
    assert f"{analysis.arena_bytes:,}" in shown["analysis"]
    assert f"{analysis.arena_bytes:,}" in shown["project"]
    assert shown["analysis"].count("<svg") == len(PICTURES)
    assert "12,345" in shown["validation"]
    assert "1,100" in shown["comparison"]
    assert all(node.op in shown["program"] for node in program.graph.nodes)
    for name, text in shown.items():
        ET.fromstring(text)  # well-formed, all tags closed
        assert not re.search(r"<(script|b>@)", text), name


def _measured() -> tuple[Any, Any]:
    return _analysis("whole"), _labelled()


def test_model_explorer_has_every_layer_edge_and_figure() -> None:
    analysis, validation = _measured()
    collection: Any = viewers.model_explorer(analysis, validation)
    (graph,) = collection["graphs"]
    nodes = {node["id"]: node for node in graph["nodes"]}
    assert len(nodes) == len(analysis["layers"]) + 1
    for layer in analysis["layers"]:
        node = nodes[f"layer {layer['index']}"]
        sources = ["inputs" if i < 0 else f"layer {i}" for i in layer["reads"]]
        assert [edge["sourceNodeId"] for edge in node["incomingEdges"]] == sources
        said = {pair["key"]: pair["value"] for pair in node["attrs"]}
        assert said["stated_instructions"] == f"{layer['instructions']:,}"
        assert said["instructions"] == "100"
        assert said["call"] == layer["call"]
    data: Any = viewers.node_data(analysis, validation)
    noise = data["sqnr_db"][graph["id"]]["results"]
    assert [noise[f"layer {i}"]["value"] for i in range(len(noise))] == [
        layer["sqnr_db"] for layer in validation["layers"]
    ]
    alone = viewers.node_data(analysis)
    assert "instructions" not in alone, "what kernels state is not what was executed"
    assert "stated_instructions" in alone


def test_model_explorers_own_records_take_it() -> None:
    explorer = pytest.importorskip("model_explorer.graph_builder", reason="model_explorer is not installed")
    data_of = pytest.importorskip("model_explorer.node_data_builder")
    dacite = pytest.importorskip("dacite", reason="dacite is not installed")
    analysis, validation = _measured()
    strict = dacite.Config(strict=True)
    found = dacite.from_dict(explorer.GraphCollection, viewers.model_explorer(analysis, validation), strict)
    assert len(found.graphs[0].nodes) == len(analysis["layers"]) + 1
    for data in viewers.node_data(analysis, validation).values():
        for one in data.values():
            dacite.from_dict(data_of.GraphNodeData, one, strict)


def test_netrons_graph_is_onnx_with_figures_as_attributes() -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    for analysis, validation in (_measured(), (_evil(), None)):
        data = viewers.netron(analysis, validation)
        assert data == viewers.netron(analysis, validation)
        model = onnx.load_from_string(data)
        assert len(model.graph.node) == len(analysis["layers"])
        made = {"inputs"}
        for node, layer in zip(model.graph.node, analysis["layers"], strict=True):
            assert set(node.input) <= made
            made |= set(node.output)
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            assert attributes["stated_instructions"] == layer["instructions"]
            assert attributes["call"].decode() == layer["call"]
            if validation is not None:
                assert attributes["sqnr_db"] == pytest.approx(validation["layers"][layer["index"]]["sqnr_db"])
        assert {value.name for value in model.graph.output} <= made


def test_the_commands_write_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small.program().save(tmp_path / "small.tet")
    report = analyze(small.program(), "mps2_an386")
    assert (
        run(
            "analyze", "small.tet", "--board", "mps2_an386", "--svg", "arena=a.svg", "--svg", "layers=l.svg"
        ).status
        == 0
    )
    for file, name in (("a.svg", "arena"), ("l.svg", "layers")):
        assert Path(file).read_text() == PICTURES[name](json.loads(json.dumps(report.to_json())))
    names = [layer.name for layer in report.layers]
    Path("v.json").write_text(json.dumps(result(layers=dict.fromkeys(names, 77)).to_json()))
    asked = ("--board", "mps2_an386", "--measured", "v.json")
    assert run("export", "small.tet", "--model-explorer", "g.json", *asked).status == 0
    assert json.loads(Path("g.json").read_text())["label"] == "small"
    (data,) = json.loads(Path("g.instructions.json").read_text()).values()
    assert {one["value"] for one in data["results"].values()} == {77}
    assert isinstance(report, Analysis)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("analyze", "small.tet", "--svg", "a.svg"), "names no picture"),
        (("analyze", "small.tet", "--svg", "stack=a.svg"), "names no picture"),
        (("export", "small.tet"), "nothing to write"),
        (("export", "small.tet", "--model-explorer", "g.txt"), "does not end in .json"),
        (("export", "small.tet", "-o", "a.tflite", "--board", "microbit"), "are of graphs"),
        (("export", "small.tet", "--netron", "g.onnx", "--measured", "small.tet"), "cannot be read"),
    ],
)
def test_wrong_command_lines(
    words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    small.program().save(tmp_path / "small.tet")
    ended = run(*words)
    assert ended.status != 0
    assert said in " ".join(ended.err.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.tet"]
