# SPDX-License-Identifier: Apache-2.0
"""The alarm: it rings for networks that quantization spoils, says where that begins, and is silent for the others."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import ExportedProgram

import tinyet
from tests import small
from tests.networks.suite import NETWORKS as SUITE
from tests.quality import ruined_networks
from tests.quality.ruined_networks import Ruined
from tests.torch_helpers import mlperf_models
from tinyet.answers import Accuracy, Answers, OutputQuality, Quality
from tinyet.data import Data
from tinyet.errors import ProgramError, QuantizationError, TinyetWarning
from tinyet.program import Program, from_bytes
from tinyet.quality.alarm import MOST_SAMPLES, Judge, measure, measured
from tinyet.quantization import quantize
from tinyet.quantization.batches import MOST_KEPT, KeptSamples
from tinyet.quantization.fronts import Mended
from tinyet.quantization.quantizer import TinyetQuantizer
from tinyet.reference import Session
from tinyet.reference.nearly import NearSession

SPOILT: dict[Callable[[], Ruined], list[tuple[str, str]]] = {
    ruined_networks.sound: [("log", "torch.log(torch.matmul(power, self.mel) + 1e-6)")],
    ruined_networks.table: [("div", "(x - self.mean) / self.std")],
    ruined_networks.motion: [
        ("sqrt", "torch.sqrt((moved * moved).mean(2) + 1e-6)"),
        ("mean", ".abs().mean(2)"),
        ("div", "(self.features(x) - self.mean) / self.std"),
    ],
}


@pytest.fixture
def unmended(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands before the first layer stays as it is, int8 throughout, as plain PT2E has it."""

    def as_it_is(program: ExportedProgram, quantizer: TinyetQuantizer, _samples: object) -> Mended:
        return Mended(program, quantizer)

    monkeypatch.setattr(quantize, "mend_fronts", as_it_is)


@pytest.mark.usefixtures("unmended")
@pytest.mark.parametrize("make", SPOILT, ids=lambda make: make.__name__)
def test_it_rings_and_says_where_it_begins(make: Callable[[], Ruined]) -> None:
    network = make()
    with pytest.warns(TinyetWarning, match="the integers' answers are not the model's") as told:
        program = tinyet.compile(network.module, network.example_inputs, calibration=network.calibration)
    answers = program.answers
    assert answers is not None
    assert not answers.healthy
    assert answers.source == "calibration"
    assert [each.op for each in answers.begins] == [op for op, _ in SPOILT[make]]
    for each, (_, line) in zip(answers.begins, SPOILT[make], strict=True):
        assert f"{network.name}.py:" in each.layer
        assert line in each.layer
    alarm = str(told[0].message)
    assert f"begins at {SPOILT[make][0][0]}" in alarm
    assert "tinyet.diagnose(" in alarm
    assert told[0].filename == __file__
    assert from_bytes(program.data, "net.tet").answers == answers


@pytest.mark.usefixtures("unmended")
def test_strict_refuses() -> None:
    network = ruined_networks.table()
    arguments: dict[str, Any] = {"calibration": network.calibration, "strict": True}
    with pytest.raises(QuantizationError, match=r"SQNR .* dB \(18 are enough\)") as refused:
        tinyet.compile(network.module, network.example_inputs, **arguments)
    assert "(x - self.mean) / self.std" in (refused.value.where or "")
    assert "tinyet.diagnose(" in (refused.value.hint or "")


def silent(module: nn.Module, batches: list[tuple[torch.Tensor, ...]]) -> Answers:
    """The answers of a module that compiles without a warning, even strictly."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", TinyetWarning)
        program = tinyet.compile(module, batches[0], calibration=batches, name="net")
    assert program.answers is not None
    assert program.answers.healthy
    assert program.answers.begins == ()
    return program.answers


def test_ds_cnn_is_healthy() -> None:
    models = mlperf_models()
    x, _ = models.keyword_test()
    answers = silent(models.ds_cnn(), [(torch.as_tensor(image)[None],) for image in x[::10]])
    assert answers.classifies
    assert answers.quality.samples == MOST_SAMPLES


def test_resnet8_is_healthy() -> None:
    models = mlperf_models()
    x, _ = models.cifar10("calibration")
    silent(models.resnet8(), [(torch.as_tensor(image)[None],) for image in x[:64]])


@pytest.mark.parametrize(
    "network",
    [each for each in SUITE if each.name in ("GRU", "GRU both ways, without biases") or "LSTM" in each.name],
    ids=lambda network: network.name,
)
def test_recurrent_networks_are_healthy(network: Any) -> None:
    calibration, _ = network.samples()
    silent(network.build(), [tuple(x[i : i + 1] for x in calibration) for i in range(len(calibration[0]))])


# ---------------------------------------------------------------- the measurement

PROGRAM = small.program()
IMAGES = [[image[None]] for image in small.images(6)]


def found(program: Program, samples: Any = IMAGES) -> Answers:
    answers = measure(program, samples, "calibration")
    assert answers is not None
    return answers


def test_it_needs_a_float_graph_and_samples() -> None:
    assert measure(replace(PROGRAM, float_graph=None), IMAGES, "calibration") is None
    assert measure(PROGRAM, [], "calibration") is None


def test_figures_are_those_of_the_formulas() -> None:
    assert PROGRAM.float_graph is not None
    exact = np.stack([Session(PROGRAM.float_graph).outputs(image)[0] for image in IMAGES]).astype(np.float64)
    real = np.stack([np.asarray(PROGRAM.run(*image, as_float=True)) for image in IMAGES]).astype(np.float64)
    noise = np.sum((real - exact) ** 2)
    answers = found(PROGRAM)
    output = answers.quality.outputs[0]
    assert output.sqnr_db == pytest.approx(10 * np.log10(np.sum(exact**2) / noise), abs=0.006)
    moving = np.sum((exact - exact.mean(0)) ** 2)
    assert output.moving_db == pytest.approx(10 * np.log10(moving / noise), abs=0.006)
    changed = real.reshape(len(IMAGES), -1).argmax(1) != exact.reshape(len(IMAGES), -1).argmax(1)
    assert answers.changed == changed.sum()


def test_near_sums_are_nearly_those_of_the_reference() -> None:
    assert PROGRAM.float_graph is not None
    exact, near = (
        Session(PROGRAM.float_graph).values(IMAGES[0]),
        NearSession(PROGRAM.float_graph).values(IMAGES[0]),
    )
    assert exact.keys() == near.keys()
    for tensor, value in exact.items():
        assert near[tensor].dtype == value.dtype
        np.testing.assert_allclose(
            near[tensor].astype(np.float64), value.astype(np.float64), rtol=1e-5, atol=1e-5
        )


def test_what_is_never_compared_is_no_fault() -> None:
    """The values of a graph against themselves: no noise, nothing changed, nothing that begins."""
    assert PROGRAM.float_graph is not None
    judge = Judge(PROGRAM.float_graph, PROGRAM.float_graph, False)
    for image in IMAGES:
        judge.add(Session(PROGRAM.float_graph).values(image), image)
    answers = judge.answers("evaluation")
    assert answers is not None
    assert (answers.healthy, answers.changed, answers.begins) == (True, 0, ())
    assert answers.quality.sqnr_db == np.inf


def test_infinity_in_place_of_a_number_is_all_noise() -> None:
    assert PROGRAM.float_graph is not None
    judge = Judge(PROGRAM.float_graph, PROGRAM.float_graph, False)
    output = PROGRAM.float_graph.outputs[0]
    values = dict(Session(PROGRAM.float_graph).values(IMAGES[0]))
    values[output] = np.full_like(values[output], -np.inf)
    judge.add(values, IMAGES[0])
    answers = judge.answers("evaluation")
    assert answers is not None
    assert not answers.healthy
    assert answers.quality.sqnr_db == -np.inf
    assert Answers.to_json(answers)["sqnr_db"] is None


BAD = Quality((OutputQuality(9.0, 9.0),), 256)


def named(lost: int, won: int, alike: int) -> Accuracy:
    return Accuracy(256, 200 - lost + won, 200, lost, won, alike)


def test_labels_know_better_than_decibels() -> None:
    assert not Answers("evaluation", BAD, ("y",)).healthy
    assert Answers("evaluation", replace(BAD, accuracy=named(1, 1, 250)), ("y",)).healthy
    assert not Answers("evaluation", replace(BAD, accuracy=named(40, 2, 210)), ("y",)).healthy


def test_a_classifier_that_names_other_classes_is_ill_whatever_its_decibels() -> None:
    good = Quality((OutputQuality(30.0, 20.0),), 16)
    # A tenth, 1.6 of 16, and two standard deviations of chance, 2.4.
    assert Answers("calibration", good, ("y",), changed=3, classifies=True).healthy
    assert not Answers("calibration", good, ("y",), changed=5, classifies=True).healthy
    assert Answers("calibration", good, ("y",), changed=5, classifies=False).healthy


def test_evaluation_data_is_asked_only_where_decibels_are_bad() -> None:
    asked: list[Program] = []

    def evaluation(program: Program) -> Data:
        asked.append(program)
        images = np.stack([image[0] for (image,) in IMAGES] * 20)
        labels = np.array([int(np.argmax(np.asarray(program.run(x[None])))) for x in images])
        return Data((images,), labels)

    ill = measured(PROGRAM, IMAGES, evaluation)
    assert len(asked) == 1
    assert ill.answers is not None
    assert ill.answers.source == "evaluation"
    assert ill.answers.quality.accuracy is not None
    assert ill.answers.quality.accuracy.share == 1.0
    assert PROGRAM.float_graph is not None
    own = replace(PROGRAM, graph=PROGRAM.float_graph, float_graph=PROGRAM.float_graph)
    assert measured(own, IMAGES, evaluation).answers is not None
    assert len(asked) == 1


def test_samples_are_kept_in_equal_steps_however_many_there_are() -> None:
    kept = KeptSamples()
    for number in range(1000):
        kept.add((torch.tensor([float(number)]),))
    numbers = [int(sample[0][0]) for sample in kept.samples]
    assert MOST_KEPT <= len(numbers) < 2 * MOST_KEPT
    assert set(np.diff(numbers)) == {numbers[1]}
    assert numbers[-1] > 1000 - 2 * numbers[1]
    sequence = KeptSamples(all_of=True)
    for number in range(1000):
        sequence.add((torch.tensor([float(number)]),))
    assert [int(sample[0][0]) for sample in sequence.samples] == list(range(MOST_KEPT))


# ---------------------------------------------------------------- in a file


def test_a_file_keeps_it_and_the_hash_does_not_count_it() -> None:
    for answers in (
        found(PROGRAM),
        Answers("evaluation", replace(BAD, accuracy=named(3, 2, 240), equal=0.5), ("y",), 3, True),
        Answers(
            "calibration", Quality((OutputQuality(np.inf, None), OutputQuality(None, -np.inf)), 2), ("a", "b")
        ),
    ):
        program = replace(PROGRAM, answers=answers)
        assert from_bytes(program.data, "a.tet").answers == answers
        assert program.hash == PROGRAM.hash
    assert from_bytes(PROGRAM.data, "a.tet").answers is None


@pytest.mark.parametrize(
    ("was", "becomes", "complaint"),
    [
        ('"source"', '"sourc"', "it must have"),
        ('"calibration"', '"somebody"', "its source"),
        ('"samples": 6', '"samples": 0', "samples"),
        ('"samples": 6', '"samples": -6', "no count"),
        ('"changed": 2', '"changed": 7', "samples"),
        ('"equal": 1.0', '"equal": 1.5', "share of equal"),
        ('"outputs": [[', '"outputs": [[1, ', "no row of 3"),
        ('"classifies": false', '"classifies": 0', "classifies"),
        ('"begins": [', '"begins": [[],[],[],[],', "no list of at most"),
        ('{"', '["', "record of answers"),
    ],
)
def test_a_record_that_nobody_wrote_is_refused(was: str, becomes: str, complaint: str) -> None:
    class Forged(Answers):
        def encoded(self) -> str:
            text = super().encoded()
            assert was in text
            return text.replace(was, becomes, 1)

    answers = replace(found(PROGRAM), changed=2)
    forged = Forged(**{name: getattr(answers, name) for name in vars(answers)})
    with pytest.raises(ProgramError, match=complaint):
        from_bytes(replace(PROGRAM, answers=forged).data, "a.tet")


def test_a_record_beside_no_float_graph_is_refused() -> None:
    alone = replace(PROGRAM, float_graph=None, answers=found(PROGRAM))
    with pytest.raises(ProgramError, match="no float graph"):
        from_bytes(alone.data, "a.tet")
