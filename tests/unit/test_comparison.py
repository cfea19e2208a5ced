# SPDX-License-Identifier: Apache-2.0
"""`tinyet compare`: reports, programs, projects and firmwares beside each other, and limits for what may change."""

from __future__ import annotations

import dataclasses
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyet
from tests import small
from tests.unit.test_size import image
from tinyet.analysis import analyze
from tinyet.comparison.compare import Row
from tinyet.comparison.conditions import condition_of
from tinyet.comparison.sides import FIGURES, side_of
from tinyet.data import Data
from tinyet.errors import DataError, UsageError
from tinyet.program import Program
from tinyet.validation import LayerResult, ValidationResult

_BOARD = "mps2_an386"


def result(instructions: int = 1000, layers: dict[str, int] | None = None, **other: Any) -> ValidationResult:
    """Of an emulated run, as `validate` gives it."""
    counts = {"conv": 700, "head": 250} if layers is None else layers
    record = ValidationResult(
        on="qemu",
        board=_BOARD,
        samples=10,
        mismatches=0,
        first_mismatch=None,
        accuracy=0.9,
        host_accuracy=0.9,
        float_accuracy=0.9,
        count=instructions,
        count_unit="instructions",
        macs=500,
        arena_bytes=64,
        ram_bytes=100,
        flash_bytes=4000,
        stack_bytes=80,
        layers=tuple(
            LayerResult(name, name, "conv2d", f"tinyet_{name}", "", "", 100, count, None)
            for name, count in counts.items()
        ),
        outputs=[[np.zeros(1, np.int8)]],
    )
    return dataclasses.replace(record, **other)


def test_each_figure_says_what_became_of_it() -> None:
    found = tinyet.compare(result(), result(1100, flash_bytes=3000, accuracy=0.95))
    changes = {c.figure: c for c in found.changes}
    assert list(changes) == [name for name in FIGURES if name in changes], "in one order"
    assert (changes["instructions"].difference, changes["instructions"].share) == (100, 0.1)
    verdicts = {name: c.verdict for name, c in changes.items() if c.verdict != "same"}
    assert verdicts == {"instructions": "worse", "flash_bytes": "better", "accuracy": "better"}
    assert found.notes == ()


def test_layers_are_matched_by_name() -> None:
    found = tinyet.compare(result(), result(layers={"stem": 300, "head": 260}))
    assert [(p.name, p.before is None, p.after is None) for p in found.parts] == [
        ("stem", True, False),
        ("head", False, False),
        ("conv", False, True),
    ]
    executed = FIGURES["instructions"]
    assert found.rows() == [
        Row("conv", "conv", executed, "700", "", "only before", 700),
        Row("stem", "stem", executed, "", "300", "only after", 300),
        Row("head", "head", executed, "250", "260", "+10 (+4.0 %)", 10),
    ]
    assert tinyet.compare(result(), result()).rows() == []


def test_another_kernel_is_a_difference_where_no_figure_is() -> None:
    second = result()
    layer = dataclasses.replace(second.layers[1], kernel="tinyet_other")
    found = tinyet.compare(result(), dataclasses.replace(second, layers=(second.layers[0], layer)))
    (row,) = found.rows()
    assert (row.name, row.kernel, row.change) == ("head", "head → other", "")


def test_what_was_counted_otherwise_is_not_compared() -> None:
    """Cycles of a board are no instructions of an emulator, nor what kernels state."""
    found = tinyet.compare(result(), result(count_unit="cycles", on="serial:/dev/ttyACM0"))
    assert not {"instructions", "cycles"} & {c.figure for c in found.changes}
    assert found.notes == (f"they are of two boards, {_BOARD}, qemu and {_BOARD}, serial:/dev/ttyACM0",)
    beside = tinyet.compare(result(), analyze(small.program(), _BOARD))
    assert {c.figure for c in beside.changes} == {"arena_bytes", "macs"} | {
        name for name in ("ram_bytes", "flash_bytes") if name in beside.after.figures
    }
    names = [layer.name for layer in analyze(small.program(), _BOARD).layers]
    executed = result(layers=dict.fromkeys(names, 100))
    for layer in tinyet.compare(executed, analyze(small.program(), _BOARD)).parts:
        assert layer.after is not None
        assert "stated_instructions" in layer.after.figures
        assert {c.figure for c in layer.changes} == {"macs"}


# ---------------------------------------------------------------- conditions


@pytest.mark.parametrize(
    ("text", "before", "after", "holds"),
    [
        ("instructions>+1%", 100, 101, False),
        ("instructions>+1%", 100, 102, True),
        ("instructions>=+1%", 100, 101, True),
        ("instructions>+0%", 100, 100, False),
        ("instructions > +5", 100, 106, True),
        ("instructions<-5", 100, 94, True),
        ("instructions<-5", 100, 95, False),
        ("flash_bytes>64K", 1, 65536, False),
        ("flash_bytes>64K", 1, 65537, True),
        ("flash_bytes>1.5M", 1, 3 << 19, False),
        ("accuracy<0.9", 0.5, 0.89, True),
        ("accuracy<-0.005", 0.9, 0.896, False),
        ("accuracy<-0.005", 0.9, 0.89, True),
        ("mismatches>+1%", 0, 1, True),
        ("sqnr_db<-1%", -10, -11, True),
    ],
)
def test_a_condition_holds(text: str, before: float, after: float, holds: bool) -> None:
    assert condition_of(text).holds(before, after) is holds


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("instructions", "no condition"),
        ("instructions>1%", "a change, which has a sign"),
        ("speed>+1%", "no figure speed"),
        ("instructions>+1x", "no condition"),
        ("instructions=+1", "no condition"),
        ("instructions>+١", "no condition"),
        ("", "no condition"),
    ],
)
def test_what_is_no_condition_is_refused(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        condition_of(text)


def test_broken_names_each_layer_and_refuses_what_is_not_known() -> None:
    found = tinyet.compare(result(), result(1020, layers={"conv": 800, "head": 260}))
    assert found.broken(["instructions>+5%", "arena_bytes>64"]) == ()
    assert found.broken(["instructions>+1%", "layers.instructions>+10%"]) == (
        "instructions>+1%: 1 000 → 1 020, +20 (+2.0 %)",
        "layers.instructions>+10%, conv: 700 → 800, +100 (+14.3 %)",
    )
    with pytest.raises(UsageError) as error:
        found.broken(["cycles>1", "nonsense", "layers.sqnr_db<10", "instructions>+1%"])
    assert error.value.what.count("\n") == 2, "all of them"
    assert "no layer of both has sqnr_db" in error.value.what
    assert "instructions, arena_bytes" in str(error.value.hint)


# ---------------------------------------------------------------- files


def test_a_report_is_the_same_side_as_its_object(tmp_path: Path) -> None:
    for thing in (result(), analyze(small.program(), _BOARD)):
        path = tmp_path / "report.json"
        path.write_text(json.dumps(thing.to_json()))
        first, second = side_of(thing, None, None), side_of(path, None, None)
        assert (first.figures, first.parts, first.board) == (second.figures, second.parts, second.board)


def _changed(**fields: Any) -> dict[str, Any]:
    return {**result().to_json(), **fields}


@pytest.mark.parametrize(
    ("report", "what"),
    [
        ([], "no report"),
        ({}, "no report"),
        ({"version": 1, "name": "x"}, "no report"),
        (_changed(version=3), "version 3, and 4 is known"),
        (_changed(instructions="many"), "instructions is no number"),
        (_changed(instructions=True), "instructions is no number"),
        (_changed(layers=7), "no list of layers"),
        (_changed(layers=[{}]), "no list of layers"),
        (_changed(layers=[{"name": "a", "instructions": []}]), "instructions is no number"),
    ],
)
def test_a_report_of_a_stranger_is_checked(tmp_path: Path, report: Any, what: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps(report))
    with pytest.raises(DataError, match=what) as error:
        tinyet.compare(path, result())
    assert str(path) in str(error.value.where)


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 100_000, '{"bit_exact": NaN, "version": 4, "layers": []}x', "\xff"]
)
def test_what_is_no_json_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(DataError, match="cannot be read"):
        tinyet.compare(path, result())


def test_firmwares_are_compared_by_symbol(tmp_path: Path) -> None:
    run, larger = (struct.pack("<II", 0x11, size) for size in (0x20, 0x24))
    (tmp_path / "a.elf").write_bytes(image())
    (tmp_path / "b").write_bytes(image().replace(run, larger))
    found = tinyet.compare(tmp_path / "a.elf", tmp_path / "b")
    assert {c.figure: c.before for c in found.changes} == {"flash_bytes": 0x48, "ram_bytes": 0x108}
    (row,) = found.rows()
    assert row == Row("run", "", "flash", "32", "36", "+4 (+12.5 %)", 4)


def test_nothing_in_common_is_refused(tmp_path: Path) -> None:
    elf = tmp_path / "a.elf"
    elf.write_bytes(image())
    with pytest.raises(UsageError, match="no figure in common"):
        tinyet.compare(elf, result(ram_bytes=None, flash_bytes=None))


# ---------------------------------------------------------------- answers


def _negated(program: Program) -> Program:
    """The same but for the weights of the last layer."""
    node = program.graph.nodes[-1]
    weights = node.inputs[1]
    assert weights is not None
    other = dataclasses.replace(weights, data=np.negative(weights.array))
    last = dataclasses.replace(node, inputs=(node.inputs[0], other, *node.inputs[2:]))
    graph = program.graph.replace(nodes=(*program.graph.nodes[:-1], last))
    return dataclasses.replace(program, graph=graph, float_graph=None)


def test_programs_are_compared_by_their_answers() -> None:
    first = small.program()
    same = tinyet.compare(first, first).answers
    assert same is not None
    assert same.same_program
    second = _negated(first)
    alone = tinyet.compare(first, second).answers
    assert alone is not None
    assert (alone.synthetic, alone.samples, alone.equal) == (True, 1, 0)
    given = small.images(6)
    outputs = first.evaluate(given, as_float=False).outputs[0].reshape(6, -1)
    labels = outputs.argmax(axis=1)
    labels[0] = (labels[0] + 1) % 5
    others = second.evaluate(given, as_float=False).outputs[0].reshape(6, -1)
    found = tinyet.compare(first, second, evaluation=Data((given,), labels))
    assert found.answers is not None
    assert found.answers.equal == int((outputs == others).all(axis=1).sum())
    right = float((others.argmax(axis=1) == labels).mean())
    assert found.answers.accuracies == (5 / 6, right)
    scale = first.outputs[0].type.quant
    assert scale is not None
    apart = np.abs(outputs.astype(int) - others.astype(int)).max() * scale.scale[0]
    assert found.answers.largest == pytest.approx(apart)
    assert found.changes[-1].figure == "accuracy"
    assert found.broken(["accuracy<0.99"]) != ()


def test_programs_of_other_inputs_have_no_answers_to_compare() -> None:
    found = tinyet.compare(
        small.program(), small.program(size=8), evaluation=Data((np.zeros((1, 6, 6, 3), np.float32),))
    )
    assert found.answers is None
    assert "not compared" in found.notes[0]


def test_the_markdown_is_a_table_whatever_names_hold() -> None:
    text = tinyet.compare(result(layers={"a|<b>": 1}), result(1100, layers={"a|<b>": 2})).to_markdown(["x>1"])
    lines = text.splitlines()
    assert "| executed instructions | 1 000 | 1 100 | +100 (+10.0 %) 🔺 |" in lines
    (row,) = [line for line in lines if "(+100.0 %)" in line]
    assert row.replace("\\|", "").count("|") == 7
    assert "<b>" not in row
    assert "- ❌ x\\>1" in lines or "- ❌ x>1" in lines
