# SPDX-License-Identifier: Apache-2.0
"""From the sensor to the answer of a classical model, three programs: features and a forest that knows gestures, a
spectrum and an isolation forest that hears faults of a motor, a network and k-means that tell unknown words.

All data is synthesised by the examples; what is fitted and what is compared on are different seeds.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn import cluster, ensemble
from torch import nn

import tinyet
from tinyet import features
from tinyet.anomaly.threshold import choose_threshold

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
Numbers = npt.NDArray[Any]


@dataclass(frozen=True)
class Demonstration:
    """A program and unseen samples of it. labels: of the output `answer`. own: how often the model by itself, in float
    and in PyTorch and scikit-learn, is right of them."""

    program: tinyet.Program
    samples: Numbers
    labels: Numbers
    answer: int
    own: float

    def accuracy(self) -> float:
        """Of the program on this machine, whose bits devices have."""
        found = self.program.evaluate(self.samples).outputs[self.answer].reshape(-1)
        return float((found == self.labels).mean())


@contextmanager
def importing(example: str) -> Iterator[Callable[[str], Any]]:
    """Modules of an example; each example calls its own `model`."""
    places = [str(EXAMPLES), str(EXAMPLES / example)]
    sys.path[:0] = places
    known = set(sys.modules)
    try:
        yield importlib.import_module
    finally:
        del sys.path[: len(places)]
        for name in set(sys.modules) - known:
            if getattr(sys.modules[name], "__file__", None) and str(EXAMPLES) in str(
                sys.modules[name].__file__
            ):
                del sys.modules[name]


def behind(first: nn.Module, last: nn.Module) -> nn.Module:
    return nn.Sequential(first, last).eval()


def of_all(module: nn.Module, samples: Numbers) -> Numbers:
    """What a module gives of all samples, (samples, n)."""
    with torch.no_grad():
        return np.asarray(module(torch.from_numpy(samples)).numpy())


class Motion(nn.Module):
    """(1, 3, 128) raw int16 accelerations to (1, 21) statistics, of every second sample."""

    def __init__(self) -> None:
        super().__init__()
        self.statistics = features.Statistics(
            ["mean", "deviation", "least", "greatest", "skewness", "kurtosis", "zero_crossings"]
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.statistics(x[:, :, ::2].float() * (1 / 8192)).flatten(1)


@cache
def gestures() -> Demonstration:
    with importing("gesture") as module:
        motion = module("motion")
    (x, y), (unseen, labels) = (motion.windows(each, seed) for each, seed in ((100, 1_000), (40, 900_000)))
    front = Motion()
    forest = ensemble.RandomForestClassifier(16, max_depth=8, random_state=0).fit(of_all(front, x), y)
    whole = behind(front, tinyet.sklearn_to_torch(forest, leaf_dtype="int16"))
    program = tinyet.compile(whole, (torch.from_numpy(unseen[:1]),), name="gestures", labels=motion.CLASSES)
    return Demonstration(program, unseen, labels, 0, float(forest.score(of_all(front, unseen), labels)))


class Vibration(nn.Module):
    """(1, 768) raw int16 accelerations to (1, 23) logarithms of powers: Welch's over five windows of 256 samples, the
    first 16 bins and seven sums of 16."""

    def __init__(self) -> None:
        super().__init__()
        self.power = features.PowerSpectrum(256, 128)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        power = self.power(x.float() * (1 / 4096)).mean(-2)
        higher = power[:, 16:128].reshape(-1, 7, 16).sum(-1)
        return torch.log(torch.cat([power[:, :16], higher], 1) + 1e-4)


@cache
def motor() -> Demonstration:
    with importing("anomaly") as module:
        motors = module("motor")

    def recorded(seeds: range, fault: str | None = None) -> Numbers:
        sounds = np.stack([motors.vibration(seed, fault)[:768] for seed in seeds])
        return np.clip(np.rint(sounds * 4096), -32768, 32767).astype(np.int16)

    front = Vibration()
    healthy, fresh = recorded(range(1_000, 1_400)), recorded(range(2_000, 2_200))
    forest = ensemble.IsolationForest(n_estimators=50, max_samples=128, random_state=0)
    forest.fit(of_all(front, healthy))
    whole = behind(front, tinyet.sklearn_to_torch(forest, "anomaly_score", leaf_dtype="int16"))
    scoring = tinyet.compile(whole, (torch.from_numpy(healthy[:1]),), name="motor")
    program = tinyet.with_flag(scoring, fresh, false_alarms=0.02)
    faulty = [recorded(range(950_000, 950_030), fault) for fault in motors.FAULTS]
    unseen = np.concatenate([recorded(range(900_000, 900_120)), *faulty])
    labels = np.repeat([0, 1], [120, len(unseen) - 120])
    bound = np.quantile(-forest.score_samples(of_all(front, fresh)), 0.98)
    own = (-forest.score_samples(of_all(front, unseen)) > bound) == labels
    return Demonstration(program, unseen, labels, 1, float(own.mean()))


class Distance(nn.Module):
    """A network without its classifier, and how far what it makes of a sound is from the words that it knows."""

    def __init__(self, network: nn.Module, words: cluster.KMeans) -> None:
        super().__init__()
        self.network = network
        self.words = tinyet.sklearn_to_torch(words, "anomaly_score")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.words(self.network(x))
        return found


@cache
def unknown_word() -> Demonstration:
    """Unknown are silence, and words that the network was trained to call unknown: k-means has met neither."""
    with importing("keyword_spotting") as module:
        keywords = module("model")
        network = keywords.model().layers.eval()
        names = list(keywords.CLASSES)
        (x, y), (chosen, chosen_is), (unseen, labels) = (
            keywords._recorded(each, seed) for each, seed in ((40, 1_000), (20, 2_000), (20, 900_000))
        )
    known = torch.tensor([names.index(word) for word in ("yes", "no", "stop", "go")])
    with torch.no_grad():
        words = cluster.KMeans(8, random_state=0).fit(network(x[torch.isin(y, known)]).numpy())
        distances = [words.transform(network(each).numpy()).min(1) for each in (chosen, unseen)]
    is_unknown = [(~torch.isin(each, known)).numpy().astype(int) for each in (chosen_is, labels)]
    whole = Distance(network, words).eval()
    quantizer = tinyet.TinyetQuantizer(tinyet.int8_config()).set_module_name("words", None)
    scoring = tinyet.compile(
        whole, (x[:1],), calibration=list(x[:96].split(12)), quantizer=quantizer, name="unknown_word"
    )
    program = tinyet.with_flag(scoring, chosen.numpy(), labels=is_unknown[0])
    bound = choose_threshold(distances[0], is_unknown[0]).value
    own = float(((distances[1] > bound) == is_unknown[1]).mean())
    return Demonstration(program, unseen.numpy(), is_unknown[1], 1, own)


DEMONSTRATIONS: Mapping[str, Callable[[], Demonstration]] = {
    "gestures: statistics, random forest": gestures,
    "motor: spectrum, isolation forest": motor,
    "unknown word: network, k-means": unknown_word,
}
