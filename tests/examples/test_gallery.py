# SPDX-License-Identifier: Apache-2.0
"""The gallery: every model compiles from the weights that it ships with, as the command line does it, is as good as it
is said to be, and computes the same bits on an emulated board; so do the applications around two of them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tinyet
from tests import forked
from tests.examples.loading import EXAMPLES, load
from tests.ops.emulated import require_emulator
from tinyet.errors import EmulatorError
from tinyet.ir import Array
from tinyet.numerics import quantize
from tinyet.opening import ModelOptions, read

torch = pytest.importorskip(
    "torch", reason="torch is not installed: the networks are trained and quantized here"
)
pytest.importorskip("torchao", reason="torchao is not installed: the networks are quantized here")

BOARD = "mps2_an386"
IMAGES = EXAMPLES.parent / "docs" / "images"
LARGEST_PICTURE = 60_000


@dataclass(frozen=True)
class Example:
    """floor: of the int8 model's accuracy, or ROC AUC, on `samples` held-out samples. arena: bytes at most."""

    name: str
    floor: float
    samples: int
    arena: int


GALLERY = [
    Example("keyword_spotting", 0.95, 60, 10_600),
    Example("gesture", 0.95, 100, 4_200),
    Example("anomaly", 0.95, 0, 300),
    Example("image", 0.92, 70, 7_000),
]
CLASSIFIERS = [example for example in GALLERY if example.samples]

gallery = load("gallery.py")


@cache
def demo(name: str) -> Any:
    """The demo's module; its model's is demo(name).model, whatever it is called there."""
    return load(f"{name}/demo.py")


@cache
def compiled(name: str) -> Any:
    return read(str(EXAMPLES / name / "model.py"), ModelOptions(name=name))


def predictions(program: tinyet.Program, samples: Array) -> Array:
    return np.array([np.ravel(program.run(sample, as_float=False)).argmax() for sample in samples])


@pytest.mark.parametrize("example", GALLERY, ids=lambda e: e.name)
def test_the_weights_ship_and_nothing_is_left_in_float(example: Example) -> None:
    assert (EXAMPLES / example.name / f"{example.name}.pt").stat().st_size < 120_000
    # An autoencoder has no classes, which the command line remarks.
    remarks = [line for line in compiled(example.name).warnings if not line.startswith("evaluation()")]
    assert remarks == []


@pytest.mark.parametrize("example", CLASSIFIERS, ids=lambda e: e.name)
def test_a_classifier_is_accurate(example: Example) -> None:
    found = compiled(example.name)
    samples, labels = (a[: example.samples] for a in (found.evaluation.arrays[0], found.evaluation.labels))
    assert len(np.unique(labels)) == found.program.outputs[0].shape[-1]
    assert (predictions(found.program, samples) == labels).mean() >= example.floor


def test_faults_are_told_from_health() -> None:
    anomaly = demo("anomaly")
    program = compiled("anomaly").program
    healthy, (faulty, names) = anomaly.motor.healthy(60, 910_000), anomaly.motor.faulty(15, 960_000)
    assert set(names) == set(anomaly.motor.FAULTS)
    samples = np.concatenate([healthy, faulty])
    held = gallery.real([quantize(samples, program.inputs[0].type)], program.inputs[0])
    outputs = np.concatenate([program.run(sample).reshape(1, -1) for sample in samples])
    scores = anomaly.anomaly.scores(held, outputs)
    assert anomaly.roc_auc(scores[:60], scores[60:]) >= GALLERY[2].floor


def test_the_area_under_a_curve() -> None:
    area = demo("anomaly").roc_auc
    assert area(np.array([1.0, 2.0]), np.array([3.0, 4.0])) == 1.0
    assert area(np.array([3.0, 4.0]), np.array([1.0, 2.0])) == 0.0
    assert area(np.array([1.0, 3.0]), np.array([2.0, 3.0])) == pytest.approx((1 + 0 + 1 + 0.5) / 4)


def test_the_same_seed_gives_the_same_data_and_another_one_other_data() -> None:
    makers: tuple[Callable[[int], Array], ...] = (
        lambda seed: demo("keyword_spotting").words.recordings(1, seed)[0],
        lambda seed: demo("gesture").motion.windows(1, seed)[0],
        lambda seed: demo("anomaly").motor.faulty(1, seed)[0],
        lambda seed: demo("image").signs.pictures(1, seed)[0],
    )
    for make in makers:
        first = make(5)
        np.testing.assert_array_equal(first, make(5))
        assert all((a != b).any() for a, b in zip(first, make(6), strict=True))


# ---------------------------------------------------------------- on the board


def check_on_board(example: Example, files: dict[str, str], where: Path) -> tinyet.Project:
    """Generate, build, and run seven samples; `files` replace the generated application."""
    require_emulator()
    found = compiled(example.name)
    samples = found.evaluation.arrays[0][-7:]
    project = tinyet.generate(found.program, BOARD, where / example.name, sample=[samples[0]])
    gallery.use_application(project, files)
    project.build()
    result = project.validate(samples, on="qemu", sqnr_samples=0)
    assert result.bit_exact, result.first_mismatch
    assert result.samples == 7
    assert result.arena_bytes <= example.arena
    return project


@pytest.mark.emulated
def test_a_board_hears_words(tmp_path: Path) -> None:
    """Front end and network in one firmware, from microphone buffers to scores."""
    module, program = demo("keyword_spotting"), compiled("keyword_spotting").program
    sounds = module.words.recordings(1, 650_000)[0][2:5]
    project = check_on_board(GALLERY[0], module.application(sounds), tmp_path)
    heard = module.listen(project)
    assert len(heard) == 3
    assert all(module.agrees(program, *pair) for pair in zip(sounds, heard, strict=True))
    # What is compared can differ.
    assert not module.agrees(program, sounds[0], heard[1])
    assert not module.agrees(program, sounds[0], replace(heard[0], scores=heard[0].scores + 1))
    assert all(0 < h.network < h.front_end < 10_000_000 for h in heard)


@pytest.mark.emulated
def test_a_board_sees_gestures_in_a_stream(tmp_path: Path) -> None:
    module, program = demo("gesture"), compiled("gesture").program
    classes = module.motion.CLASSES
    stream = module.motion.stream([classes.index(n) for n in ("circle", "tap", "shake")], 1, module.LENGTH)
    project = check_on_board(GALLERY[1], module.application(stream), tmp_path)
    printed = gallery.run_application(project)
    assert printed == module.expected(program, stream)
    assert {line.split()[0] for line in printed} >= {"circle", "tap", "shake"}
    with pytest.raises(EmulatorError, match="did not come to its end"):
        gallery.run_application(project, seconds=0.01)


@pytest.mark.emulated
def test_a_board_sees_signs(tmp_path: Path) -> None:
    check_on_board(GALLERY[3], {}, tmp_path)


@pytest.mark.emulated
def test_a_demo_from_its_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The smallest one, with fewer motors; bit for bit is what its status says."""
    require_emulator()
    module = demo("anomaly")
    for name, count in (("HEALTHY", 12), ("EACH_FAULT", 3), ("LIFE", 10)):
        monkeypatch.setattr(module, name, count)
    out, copy = tmp_path / "out", tmp_path / "copy.svg"
    monkeypatch.setattr(sys, "argv", ["demo.py", "--out", str(out), "--plot", str(copy)])
    assert module.main() == 0
    printed = capsys.readouterr().out
    assert "True (46 samples, 0 differ)" in printed
    assert "instructions per inference" in printed
    if importlib.util.find_spec("matplotlib") is None:
        assert "pip install 'tinyet[examples]'" in printed
    else:
        assert copy.read_bytes() == (out / "anomaly.svg").read_bytes()


# ---------------------------------------------------------------- plots


def test_a_plot_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'tinyet[examples]'")
    labels, found = np.array([0, 1, 1, 2]), np.array([0, 1, 2, 2])
    texts = []
    for name in ("a", "b"):
        given = gallery.Options(tinyet.load_board(BOARD), tmp_path / name, None)
        gallery.plot(
            given,
            "matrix",
            lambda figure: gallery.draw_confusion(figure.subplots(), labels, found, ["x", "y", "z"], "title"),
            inches=(3.0, 3.0),
        )
        texts.append((tmp_path / name / "matrix.svg").read_bytes())
    assert texts[0] == texts[1]
    assert b"dc:date" not in texts[0]


def test_without_matplotlib_a_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    given = gallery.Options(tinyet.load_board(BOARD), tmp_path, None)
    gallery.plot(given, "matrix", lambda _figure: pytest.fail("drew"), inches=(3.0, 3.0))
    assert "pip install 'tinyet[examples]'" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("example", GALLERY, ids=lambda e: e.name)
def test_the_pictures_in_the_docs(example: Example) -> None:
    path = IMAGES / f"{example.name}.svg"
    assert path.stat().st_size < LARGEST_PICTURE
    root = ET.parse(path).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert f"images/{example.name}.svg" in (IMAGES.parent / "gallery.md").read_text(encoding="utf-8")


# ---------------------------------------------------------------- training


def test_training_learns_and_is_reproducible(tmp_path: Path) -> None:
    module = demo("gesture").gestures
    inputs, labels = module._performed(40, seed=1_000)

    def train(network: Any) -> None:
        def loss(output: Any, target: Any) -> Any:
            return torch.nn.functional.nll_loss(torch.log(output + 1e-6), target)

        gallery.fit(network, inputs, labels, loss, epochs=12, batch=20)

    first, second = (gallery.trained(module.Gesture, train, tmp_path / f"{name}.pt") for name in "ab")
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert (first(inputs).argmax(1) == labels).float().mean() > 0.7
    # What was written is taken the next time, and nothing is trained.
    again = gallery.trained(module.Gesture, lambda _network: pytest.fail("trained"), tmp_path / "a.pt")
    assert torch.equal(again(inputs), first(inputs))


def test_every_demo_uses_the_gallery() -> None:
    for example in (*GALLERY, Example("digits", 0.0, 0, 0)):
        module: ModuleType = load(f"{example.name}/demo.py")
        assert example.name == module.NAME
        assert "gallery.deploy(" in (EXAMPLES / example.name / "demo.py").read_text(encoding="utf-8")


@pytest.mark.emulated
def test_the_listener(tmp_path: Path) -> None:
    """The keyword network over a stream, by its own tests, as its user runs them."""
    require_emulator(BOARD)
    copy = tmp_path / "examples"
    for part in ("keyword_spotting", "gallery.py"):
        source = EXAMPLES / part
        if source.is_dir():
            shutil.copytree(source, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / part)
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "keyword_spotting"]
    result = forked.python(command, copy, environment())
    assert result.returncode == 0, result.stdout + result.stderr
    assert "3 passed" in result.stdout


def environment() -> dict[str, str]:
    """With this checkout's tinyet, wherever the command runs."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(EXAMPLES.parent), *sys.path))}
