# SPDX-License-Identifier: Apache-2.0
"""`.tflite` files on the command line: generated, validated, compared with their own runtime, refused."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.command import plain, refused, tinyet
from tests.tflite_files import Writer, small_cnn
from tests.to_module.float_files import network
from tinyet.ir import DType
from tinyet.opening.files import from_tflite
from tinyet.program import load
from tinyet.tflite.write import write_model

needs_runtime = pytest.mark.skipif(
    importlib.util.find_spec("tflite_micro") is None and importlib.util.find_spec("ai_edge_litert") is None,
    reason="needs tflite-micro or ai-edge-litert",
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    plain(monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.tflite").write_bytes(write_model(small_cnn()))
    (tmp_path / "bytes.tflite").write_bytes(write_model(small_cnn("uint8")))
    return tmp_path


def test_compile(here: Path) -> None:
    ended = tinyet("compile", "small.tflite", "-o", "small.tet")
    assert ended.status == 0, ended
    program = load(here / "small.tet")
    assert program.name == "small"
    assert [node.op for node in program.graph.nodes][:2] == ["conv2d", "avg_pool2d"]
    # An operator's place is its index in the file, its name the layer's.
    origin = program.graph.nodes[0].origin
    assert origin is not None
    assert (origin.aten, origin.location) == ("CONV_2D", "small.tflite:0")


@needs_runtime
@pytest.mark.parametrize("name", ["small", "bytes"])
def test_generate_and_validate_beside_the_original(here: Path, name: str) -> None:
    """On this machine: the board's C, its own runtime's answers."""
    generated = tinyet("generate", f"{name}.tflite", "--board", "mps2_an386", "-o", "project")
    assert generated.status == 0, generated
    kind = np.int8 if name == "small" else np.uint8
    low = np.iinfo(kind).min
    data = np.random.default_rng(0).integers(low, low + 256, (5, 8, 8, 2)).astype(kind)
    np.savez(here / "data.npz", x=data)
    ran = tinyet(
        *("validate", "project", "--on", "host", "--evaluation", "data.npz", "--oracle", f"{name}.tflite"),
        *("--json", "report.json"),
    )
    assert ran.status == 0, ran
    oracle = json.loads((here / "report.json").read_text())["oracle"]
    assert oracle["agrees"]
    assert oracle["runs"] == 5


@needs_runtime
def test_another_original_is_told(here: Path) -> None:
    assert tinyet("generate", "small.tflite", "--board", "mps2_an386", "-o", "project").status == 0
    (here / "other.tflite").write_bytes(write_model(small_cnn(seed=5)))
    ended = tinyet("validate", "project", "--on", "host", "--oracle", "other.tflite")
    assert ended.status == 1
    error = ended.err
    assert "1 of 1 samples differ from" in error
    assert "run 0, output 0, element" in error
    assert "--runtime says whose arithmetic" in error


def test_what_cannot_be_said_of_a_tflite(here: Path) -> None:
    error = refused(
        here, "usage error", "compile", "small.tflite", "-o", "x.tet", "--float-io", "--stateful", status=2
    )
    assert "--float-io, --stateful: this .tflite model is quantized already" in error
    error = refused(
        here, "usage error", "compile", "small.tflite", "-o", "x.tet", "--runtime", "other", status=2
    )
    assert "--runtime tflm or litert" in error


def test_all_that_is_not_taken_is_listed(here: Path) -> None:
    w = Writer()
    x = w.value((2, 3), "string", None)
    y = w.call("HASHTABLE_FIND", (x,), (w.value((2, 3)),))
    z = w.call("CUSTOM", (y,), (w.value((2, 3)),), custom="Mine")
    other = w.call("UNIQUE", (w.value((2, 3)),), (w.value((2, 3)),))
    (here / "odd.tflite").write_bytes(w.file((), (z, other)))
    error = refused(here, "unsupported operator", "compile", "odd.tflite", "-o", "x.tet")
    assert "HASHTABLE_FIND, operator 0" in error
    assert "UNIQUE, operator 2" in error
    assert "Mine, operator 1" in error  # though it reads what another was to compute


needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")


@pytest.fixture
def floats(here: Path) -> Path:
    """A float model, calibration data, and evaluation data with the float model's own answers for labels."""
    (here / "float.tflite").write_bytes(write_model(network()))
    images = np.random.default_rng(4).normal(0, 1, (24, 16, 16, 3)).astype(np.float32)
    labels = from_tflite("float.tflite").evaluate(images).outputs[0].argmax(-1)
    np.savez(here / "calib.npz", image=images)
    np.savez(here / "eval.npz", image=images, labels=labels)
    return here


@needs_torch
def test_a_float_file_is_quantized_by_every_command(floats: Path) -> None:
    compiled = tinyet("compile", "float.tflite", "--calibration", "calib.npz", "--strict", "-o", "a.tet")
    assert compiled.status == 0, compiled
    quantized = tinyet(
        *("quantize", "float.tflite", "--calibration", "calib.npz", "--layer", "block.pointwise=int16"),
        *("--evaluation", "eval.npz", "--report", "--worst", "1", "-o", "b.tet", "--json", "report.json"),
    )
    assert quantized.status == 0, quantized
    assert "block.pointwise" in quantized.out
    report = json.loads((floats / "report.json").read_text())
    assert "24 samples" in quantized.out
    assert "float.tflite:0: net/stem/Value" in [part["source"] for part in report["operators"]]
    kinds = {
        name: {t.dtype for node in load(floats / name).graph.nodes for t in node.outputs}
        for name in ("a.tet", "b.tet")
    }
    assert kinds == {"a.tet": {DType.INT8}, "b.tet": {DType.INT8, DType.INT16}}
    generated = tinyet(
        *("generate", "float.tflite", "--calibration", "calib.npz", "--evaluation", "eval.npz"),
        *("--board", "mps2_an386", "-o", "project"),
    )
    assert generated.status == 0, generated
    assert "stem (float.tflite:0)" in next((floats / "project").rglob("float_model.c")).read_text()


@needs_torch
def test_what_a_file_is_not_quantized_with(floats: Path) -> None:
    assert "give --calibration" in refused(
        floats, "usage error", "quantize", "float.tflite", "--report", status=2
    )
    small = ("small.tflite", "--calibration", "calib.npz", "-o", "a.tet")
    assert "quantized already" in refused(floats, "usage error", "compile", *small, status=2)
    assert "quantized already" in refused(floats, "usage error", "quantize", *small, status=2)
    labels = ("float.tflite", "--calibration", "calib.npz", "--evaluation", "calib.npz", "--report")
    assert "holds no labels" in refused(floats, "data error", "quantize", *labels, status=1)
