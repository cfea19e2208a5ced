# SPDX-License-Identifier: Apache-2.0
"""Whether a quantized model is healthy, what heals it at no cost, and only then what costs bytes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import ExportedProgram

from tests.torch_helpers import pieces
from tinyet.compiler import cost_on
from tinyet.errors import QuantizationError
from tinyet.fx.capture import capture
from tinyet.ir import Graph
from tinyet.quality.remedies import Diagnosis, Settings, Trial, Workbench, best_of, choose, diagnose
from tinyet.quality.search import accuracy_of
from tinyet.quality.sensitivity import Cost, Exception_, Sensitivity
from tinyet.quality.yardstick import Accuracy, OutputQuality, Quality, Yardstick, compare, shipped
from tinyet.quantization.config import int4_config, int8_config
from tinyet.quantization.quantizer import TinyetQuantizer

_IMAGES = torch.randn(48, 3, 6, 6, generator=torch.Generator().manual_seed(1))
_BOARD = "mps2_an386"

# ---------------------------------------------------------------- figures


def test_decibels_of_all_and_of_what_moves() -> None:
    exact = np.array([[1000.0], [1001.0], [999.0]])
    quality = compare(exact, exact + np.array([[0.5], [-0.5], [0.5]]))
    assert quality.sqnr_db == pytest.approx(10 * math.log10(3_000_002 / 0.75))
    assert quality.moving_db == pytest.approx(10 * math.log10(2 / 0.75))
    assert quality.enough, "eight bits hold no more beside 1000"
    coarse = compare(exact, exact + np.array([[20.0], [-20.0], [20.0]]))
    assert coarse.sqnr_db is not None
    assert coarse.sqnr_db > 30
    assert coarse.drowned
    assert not coarse.enough
    perfect = compare(exact, exact)
    assert (perfect.sqnr_db, perfect.moving_db) == (math.inf, math.inf)
    assert compare(0 * exact, exact).sqnr_db is None
    assert compare(exact, exact * math.nan).sqnr_db == -math.inf
    masked = np.where(exact == 999.0, -np.inf, exact)
    assert compare(masked, np.where(exact == 999.0, -5.5, exact)).sqnr_db == math.inf, (
        "no finite value to compare"
    )


@pytest.mark.parametrize(
    ("lost", "won", "samples", "suffers"),
    [(30, 5, 1000, True), (3, 2, 1000, False), (9, 0, 1000, False), (16, 9, 500, False), (5, 0, 20, True)],
)
def test_a_loss_of_accuracy_is_more_than_a_point_and_more_than_chance(
    lost: int, won: int, samples: int, suffers: bool
) -> None:
    right = samples // 2
    accuracy = Accuracy(samples, right - lost + won, right, lost, won, samples - lost - won)
    assert accuracy.suffers == suffers
    quality = Quality((OutputQuality(30.0, 30.0),), 32, accuracy=accuracy)
    assert quality.healthy is not suffers


def test_accuracy_decides_where_there_are_labels_enough() -> None:
    noisy = (OutputQuality(12.0, 12.0),)
    good = Accuracy(200, 190, 190, 2, 2, 195)
    assert Quality(noisy, 32, accuracy=good).healthy
    assert not Quality(noisy, 32).healthy
    assert not Quality(noisy, 32, accuracy=replace(good, samples=20, alike=20)).healthy, "too few"
    assert not Quality(noisy, 32, accuracy=replace(good, alike=100)).healthy, "right by luck"
    worse = Accuracy(200, 182, 190, 14, 6, 185)
    assert not worse.suffers
    assert not Quality(noisy, 32, accuracy=worse).healthy, "four points may be chance: decibels decide"
    assert Quality((OutputQuality(30.0, 30.0),), 32, accuracy=worse).healthy


def test_the_worst_output_counts() -> None:
    base = Quality((OutputQuality(60.0, 50.0), OutputQuality(3.0, 3.0)), 32)
    better = Quality((OutputQuality(50.0, 40.0), OutputQuality(20.0, 20.0)), 32)
    assert not base.healthy
    assert base.sqnr_db == 3.0
    assert better.healthy
    assert better.gain_over(base) == 17.0
    assert Quality((), 32, equal=0.99).gain_over(Quality((), 32, equal=0.9)) == pytest.approx(10.0)
    assert not Quality((), 32, equal=0.5).healthy


def test_of_what_brings_nearly_as_much_the_simplest_is_best() -> None:
    def trial(gain: float, **settings: Any) -> Trial:
        return Trial(Settings(**settings), Quality((), 32), gain)

    both, one = trial(27.6, equalize=True, correct_bias=True), trial(26.8, equalize=True)
    assert best_of([both, one]) is one
    assert best_of([both, trial(20.0, equalize=True)]) is both
    assert best_of([trial(math.inf, equalize=True), one]) == trial(math.inf, equalize=True)
    assert best_of([trial(0.9, equalize=True)]) is None


def _diagnosis(base: Quality, given: Settings, exceptions: tuple[Exception_, ...]) -> Diagnosis:
    graph = Graph("g", (), (), ())
    return Diagnosis(given, graph, base, (), None, Sensitivity(base.sqnr_db, None, (), exceptions))


def test_what_is_advised_keeps_what_was_given() -> None:
    dear = Exception_("a", "float", 30.0, 15.0, 500, 100, is_enough=True)
    cheap = Exception_("b", "int16", 20.0, 5.0, 10, 10, is_enough=True)
    small = Exception_("c", "int16", 15.5, 0.5, 0, 0)
    noisy = Quality((OutputQuality(15.0, 15.0),), 32)
    found = _diagnosis(noisy, Settings(equalize=True), (dear, cheap, small))
    assert found.exceptions == (dear, cheap)
    assert found.flags == ("--equalize", "--layer", "b=int16")
    assert found.suffices
    assert _diagnosis(noisy, Settings(equalize=True), (small,)).flags == ()
    # Where it is accuracy that suffers, decibels do not say what is enough.
    lost = Accuracy(100, 80, 95, 15, 0, 85)
    wrong = _diagnosis(Quality((OutputQuality(25.0, 25.0),), 32, accuracy=lost), Settings(), (dear, cheap))
    assert wrong.flags == ("--layer", "a=float")
    assert not wrong.suffices


# ---------------------------------------------------------------- a model that equalization heals


class _Unequal(nn.Module):
    """Channels of very different size in front of a depthwise convolution, which makes them alike again."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, padding=1)
        self.depthwise = nn.Conv2d(6, 6, 3, padding=1, groups=6)
        self.head = nn.Conv2d(6, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.depthwise(torch.relu(self.conv(x))))
        return self.head(x).flatten(1)  # type: ignore[no-any-return]


def _network(spread: float) -> _Unequal:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = _Unequal().eval()
    factors = torch.logspace(-spread, spread, 6)
    with torch.no_grad():
        model.conv.weight *= factors.reshape(-1, 1, 1, 1)
        model.conv.bias.mul_(factors)  # type: ignore[union-attr]
        model.depthwise.weight /= factors.reshape(-1, 1, 1, 1)
    return model


def _bench(program: ExportedProgram, config: Any = int8_config) -> Workbench:
    def make(observer: str | None) -> TinyetQuantizer:
        return TinyetQuantizer(config() if observer is None else config(observer))

    return Workbench(program, [_IMAGES], make, Yardstick(program, [(x,) for x in pieces(_IMAGES)]))


@pytest.fixture(scope="module")
def unequal() -> ExportedProgram:
    return capture(_network(2.5), _IMAGES[:1])


def test_what_is_free_heals_and_nothing_that_costs_is_proposed(unequal: ExportedProgram) -> None:
    phases: list[tuple[str, int, int | None]] = []
    found = diagnose(
        _bench(unequal), Settings(), ("mse",), whole=("int16",), progress=lambda *now: phases.append(now)
    )
    assert not found.quality.healthy
    assert found.healed
    assert found.flags == ("--equalize",)
    assert found.remedy is not None
    assert found.remedy.gain_db > 10
    assert (found.remedy.quality.sqnr_db or 0) > 30
    assert found.exceptions == ()
    assert found.whole == ()
    tried = {trial.settings for trial in found.free}
    assert tried >= {Settings(True), Settings(False, True), Settings(True, True), Settings(observer="mse")}
    assert {layer.module for layer in found.sensitivity.layers} == {"conv", "depthwise", "head"}
    assert "conv" in {layer.module for layer in found.culprits}
    assert "head" not in {layer.module for layer in found.culprits}
    assert {name for name, _, _ in phases} == {
        "measuring the quantized model",
        "trying what is free",
        "measuring the best of what is free",
        "measuring operators",
    }
    assert found.to_json()["advice"] == ["--equalize"]


def test_what_is_free_keeps_a_wanted_accuracy(unequal: ExportedProgram) -> None:
    samples = [(x,) for x in pieces(_IMAGES)]
    exact = unequal.module(check_guards=False)
    labels = [int(exact(x).argmax()) for (x,) in samples]
    bench = _bench(unequal)
    found = choose(bench, accuracy_of(samples, labels), 0.85, Settings(), cost=cost_on(_BOARD))
    assert found.base_accuracy < 0.85
    assert found.settings.equalize
    assert found.found.exceptions == {}
    assert found.found.accuracy >= 0.85
    assert found.free[-1][1] >= 0.85
    # What is counted is what ships.
    quality = replace(bench.yardstick, labels=labels).quality(found.graph, accuracy=True)
    assert quality.accuracy is not None
    assert quality.accuracy.share == found.found.accuracy


# ---------------------------------------------------------------- others


@pytest.fixture(scope="module")
def equal() -> ExportedProgram:
    return capture(_network(0.0), _IMAGES[:1])


def test_a_healthy_model_is_left_alone(equal: ExportedProgram) -> None:
    found = diagnose(_bench(equal), Settings(), ("mse", "minmax"), whole=("int16",), cost=cost_on(_BOARD))
    assert found.quality.healthy
    proposals = (found.free, found.exceptions, found.whole, found.flags)
    assert not any(proposals)
    assert found.remedy is None
    assert len(found.sensitivity.layers) == 3
    assert found.sensitivity.cost is not None
    assert not found.culprits


def test_what_costs_bytes_is_tried_where_nothing_free_is_enough(equal: ExportedProgram) -> None:
    """Two bits are too few for all three layers."""
    bench = _bench(equal, lambda observer="histogram": int4_config(observer, bits=2))
    # Where kernels have no weights of their own form, so that half the bits are half the bytes.
    found = diagnose(bench, Settings(), whole=("int8",), cost=cost_on("mps2_an385"), worst=1)
    assert not found.quality.healthy
    assert not found.healed
    assert {trial.settings for trial in found.free} == {
        Settings(True),
        Settings(False, True),
        Settings(True, True),
    }
    assert found.advised is not None
    assert (found.advised.config, found.advised.is_enough) == ("int8", True)
    assert found.advised.bytes > 0
    assert found.flags[-2:] == found.advised.flags
    assert found.suffices
    assert found.whole == (), "a part of them is enough"
    assert len({entry.name for entry in found.sensitivity.exceptions}) == 1


def test_all_layers_are_tried_where_no_exception_can_be_had(equal: ExportedProgram) -> None:
    price = cost_on("mps2_an385")

    def alike(quantized: ExportedProgram) -> Cost:
        most = [n.args[5] for n in quantized.graph.nodes if "dequantize_per_channel" in str(n.target)]
        if len(most) < 3 or len(set(most)) > 1:
            raise QuantizationError("weights of different bits")
        return price(quantized)

    bench = _bench(equal, lambda observer="histogram": int4_config(observer, bits=2))
    found = diagnose(bench, Settings(), whole=("int8",), cost=alike, worst=1)
    assert {entry.refused for entry in found.sensitivity.exceptions} == {"weights of different bits"}
    (whole,) = found.whole
    assert (whole.name, whole.config, whole.is_enough) == ("", "int8", True)
    assert whole.bytes > 0
    assert found.advised == whole
    assert found.flags[-2:] == ("--config", "int8")


def test_an_output_of_indices_is_compared_by_how_many_are_equal() -> None:
    class Index(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = _network(0.0)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.body(x).argmax(-1)  # type: ignore[no-any-return]

    program = capture(Index().eval(), _IMAGES[:1])
    bench = _bench(program)
    quality = bench.yardstick.quality(shipped(bench.quantized(Settings())))
    assert quality.outputs == ()
    assert quality.sqnr_db is None
    assert 0.8 < quality.equal <= 1.0
