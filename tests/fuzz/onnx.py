# SPDX-License-Identifier: Apache-2.0
"""Mutants of .onnx files, quantized and float. What is taken is a program that a .tet file holds, and its C answers the
reference's bits under sanitizers; or, of a float one, a torch module that answers as its graph."""

from __future__ import annotations

import math
import random
import tempfile
from pathlib import Path
from typing import Any

from tests.fuzz.builds import Builds
from tests.fuzz.onnx_ml_seeds import ml_seeds
from tests.fuzz.onnx_mutations import damage, mutated
from tests.fuzz.onnx_seeds import float_seeds, quantized_seeds
from tests.fuzz.run import Case, Outcome, Result, refusal
from tinyet.importers.onnx.importer import import_model
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


def _as_module(model: OnnxModel) -> Outcome:
    """What becomes of a float model on its way to calibration: the module proves itself."""
    from tinyet.to_module.convert import to_module

    with refusal() as refused:
        to_module(import_model(model, name="mutant")[0])
    if refused:
        assert str(refused[0])
        return Outcome.REFUSED
    return Outcome.EXACT


class OnnxFiles:
    """Quantized models. See the module."""

    name = "onnx"
    floats = False

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tinyet-fuzz-"))
        self.seeds = [*float_seeds(), *ml_seeds()] if self.floats else quantized_seeds()
        self.builds = Builds()

    def mutate(self, rng: random.Random) -> Case:
        return _mutant(self.seeds, rng)

    def check(self, case: Case) -> Outcome | None:
        with refusal() as refused:
            model = read_model(case.data, "mutant.onnx", "mutant.onnx")
        if refused:
            assert str(refused[0])
            return Outcome.REFUSED
        if model.is_quantized is self.floats:
            return Outcome.SAME  # no mutant of this kind: the other takes those
        # A byte of a sum is as good as a die.
        die = sum(case.data[-64:])
        if self.floats and die % 4 == 0 and sum(math.prod(v.shape) for v in model.inputs) <= MOST_ELEMENTS:
            return _as_module(model)
        path = self.folder / "model.onnx"
        path.write_bytes(case.data)
        return self.builds.add_imported(case, lambda: from_onnx(path, float_io=die % 3 == 0), die)

    def flush(self) -> list[Result]:
        (self.folder / "model.onnx").unlink(missing_ok=True)
        return self.builds.flush()


class OnnxFloatFiles(OnnxFiles):
    """Float models; some go on to be torch modules, as for calibration."""

    name = "onnx_float"
    floats = True

    def __init__(self) -> None:
        super().__init__()
        # Before the job's memory and time are counted: torch, and what it makes at first, is no part of a mutant.
        for seed in self.seeds:
            _as_module(read_model(seed.SerializeToString(), "seed.onnx", "seed.onnx"))
