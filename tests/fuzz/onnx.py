# SPDX-License-Identifier: Apache-2.0
"""Mutants of .onnx files, quantized and float. What is taken of a quantized one is a program that a .tet file holds,
and its C answers the reference's bits under sanitizers; of a float one, a torch module that runs."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

from tests.fuzz.builds import Builds
from tests.fuzz.onnx_mutations import damage, mutated
from tests.fuzz.onnx_seeds import float_seeds, quantized_seeds
from tests.fuzz.run import Case, Outcome, Result, refusal
from tinyet.importers.onnx.read import OnnxModel, read_model
from tinyet.opening.files import from_onnx

MOST_ELEMENTS = 1 << 12
"""Of an input of a module that is run."""


def _mutant(seeds: list[Any], rng: random.Random) -> Case:
    number = rng.randrange(len(seeds))
    proto, labels = mutated(seeds[number], rng)
    data = bytearray(proto.SerializeToString())
    if data and (not labels or rng.random() < 0.1):
        labels.append(damage(data, rng))
    return Case(f"seed {number}; {'; '.join(labels)}", bytes(data))


def _converted(model: OnnxModel) -> Outcome:
    """What becomes of a float model on its way to torch."""
    import torch

    from tinyet.importers.onnx.to_torch import to_torch

    with refusal() as refused:
        module, examples = to_torch(model)
    if refused:
        assert str(refused[0])
        return Outcome.REFUSED
    if sum(x.numel() for x in examples) > MOST_ELEMENTS:
        return Outcome.UNUSED
    with torch.no_grad():
        module(*examples)
    return Outcome.EXACT


class OnnxFiles:
    """Quantized models. See the module."""

    name = "onnx"

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tinyet-fuzz-"))
        self.seeds = quantized_seeds()
        self.builds = Builds()

    def mutate(self, rng: random.Random) -> Case:
        return _mutant(self.seeds, rng)

    def check(self, case: Case) -> Outcome | None:
        with refusal() as refused:
            model = read_model(case.data, "mutant.onnx", "mutant.onnx")
        if refused:
            assert str(refused[0])
            return Outcome.REFUSED
        if not model.is_quantized:
            return Outcome.SAME  # no mutant of this kind: the other takes those
        path = self.folder / "model.onnx"
        path.write_bytes(case.data)
        # A byte of a sum is as good as a die.
        die = sum(case.data[-64:])
        return self.builds.add_imported(case, lambda: from_onnx(path, float_io=die % 3 == 0), die)

    def flush(self) -> list[Result]:
        (self.folder / "model.onnx").unlink(missing_ok=True)
        return self.builds.flush()


class OnnxFloatFiles:
    """Float models. See the module."""

    name = "onnx_float"

    def __init__(self) -> None:
        self.seeds = float_seeds()
        # Before the job's memory and time are counted: torch, and what it makes at first, is no part of a mutant.
        for seed in self.seeds:
            _converted(read_model(seed.SerializeToString(), "seed.onnx", "seed.onnx"))

    def mutate(self, rng: random.Random) -> Case:
        return _mutant(self.seeds, rng)

    def check(self, case: Case) -> Outcome | None:
        with refusal() as refused:
            model = read_model(case.data, "mutant.onnx", "mutant.onnx")
        if refused:
            assert str(refused[0])
            return Outcome.REFUSED
        return _converted(model)

    def flush(self) -> list[Result]:
        return []
