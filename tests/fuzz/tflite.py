# SPDX-License-Identifier: Apache-2.0
"""Mutants of .tflite files: of their records, and of their bytes. What is taken is a program that a .tet file holds,
and its C answers the reference's bits under sanitizers; of a float one, a torch module that answers as its graph."""

from __future__ import annotations

import math
import random
import tempfile
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.builds import Builds
from tests.fuzz.run import Case, Outcome, Result, refusal
from tests.fuzz.tflite_seeds import seeds
from tests.to_module.float_files import network
from tinyet.importers.tflite.floats import holds_integers, with_float_weights
from tinyet.importers.tflite.importer import import_model
from tinyet.opening.files import from_tflite
from tinyet.tflite import Model, Operator, Quantization, Subgraph, TensorInfo
from tinyet.tflite.enumerations import BUILTINS, TYPES
from tinyet.tflite.read import read_model
from tinyet.tflite.write import write_model

NUMBERS = (0, 1, -1, 2, 3, 7, 127, 128, 255, 256, 1 << 16, (1 << 31) - 1, -(1 << 31))
SIZES = (0, 1, 2, 3, 5, 64, 4096, 1 << 20, (1 << 31) - 1)
SCALES = (0.0, -1.0, 1.0, 1e-30, 1e30, 1e-45, float("inf"), float("nan"), 0.02)
NAMES = (
    "",
    "x",
    "a/b;c/d",
    "\x1b[2J",
    "*/ int pwned;",
    "é" * 40,
    "while",
    "0/1",
    "x" * 600,
    "serving_default_x:0",
)
MOST_ELEMENTS = 1 << 12
"""Of the inputs of a module that is run."""
_MOST = 1 << 22
"""Bytes of a constant that a mutant is given."""


class TfliteFiles:
    """See the module."""

    name = "tflite"

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tinyet-fuzz-"))
        self.seeds = list(seeds())
        self.builds = Builds()

    def mutate(self, rng: random.Random) -> Case:
        number = rng.randrange(len(self.seeds))
        model, labels = self.seeds[number], [f"seed {number}"]
        for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
            model, label = _changed(model, rng)
            labels.append(label)
        data = bytearray(write_model(model))
        if len(labels) == 1 or rng.random() < 0.2:
            labels.append(_damage(data, rng))
        return Case("; ".join(labels), bytes(data))

    def check(self, case: Case) -> Outcome | None:
        path = self.folder / "model.tflite"
        path.write_bytes(case.data)
        # The last byte of a length is as good as a die.
        die = len(case.data) + sum(case.data[-64:])
        return self.builds.add_imported(
            case, lambda: from_tflite(path, runtime="litert" if die % 3 == 0 else "tflm"), die
        )

    def flush(self) -> list[Result]:
        (self.folder / "model.tflite").unlink(missing_ok=True)
        return self.builds.flush()


class TfliteFloatFiles(TfliteFiles):
    """Float models, some with weights of int8 or float16, on their way to calibration: each becomes a torch module."""

    name = "tflite_float"

    def __init__(self) -> None:
        super().__init__()
        self.seeds = [model for model in self.seeds if not holds_integers(model)]
        self.seeds += [network(weights) for weights in ("float32", "int8", "float16")]
        # Before the job's memory and time are counted: torch, and what it makes at first, is no part of a mutant.
        for model in self.seeds:
            _as_module(model)

    def check(self, case: Case) -> Outcome | None:
        with refusal() as refused:
            model = read_model(case.data, "mutant.tflite")
        if refused:
            assert str(refused[0])
            return Outcome.REFUSED
        inputs = [g.tensors[index].shape for g in model.subgraphs[:1] for index in g.inputs]
        if holds_integers(model) or sum(map(math.prod, inputs)) > MOST_ELEMENTS:
            return Outcome.SAME
        return _as_module(model)


def _as_module(model: Model) -> Outcome:
    """What becomes of a float model: the module proves itself."""
    from tinyet.to_module.convert import to_module

    with refusal() as refused:
        to_module(import_model(with_float_weights(model, "mutant"), name="mutant", file="mutant")[0])
    if refused:
        assert str(refused[0])
        return Outcome.REFUSED
    return Outcome.EXACT


def _changed(model: Model, rng: random.Random) -> tuple[Model, str]:
    """One record of a subgraph, changed."""
    number = rng.randrange(len(model.subgraphs))
    g = model.subgraphs[number]
    kind = rng.randrange(3) if g.tensors and g.operators else 3
    if kind == 0:
        at = rng.randrange(len(g.tensors))
        made, label = _tensor(g.tensors[at], rng)
        g = replace(g, tensors=(*g.tensors[:at], made, *g.tensors[at + 1 :]))
        label = f"tensor {at}: {label}"
    elif kind == 1:
        at = rng.randrange(len(g.operators))
        op, label = _operator(g.operators[at], rng, len(g.tensors))
        g = replace(g, operators=(*g.operators[:at], op, *g.operators[at + 1 :]))
        label = f"operator {at}: {label}"
    elif kind == 2:
        g, label = _graph(g, rng)
    else:
        label = "nothing"
    before, behind = model.subgraphs[:number], model.subgraphs[number + 1 :]
    return replace(model, subgraphs=(*before, g, *behind)), f"subgraph {number}: {label}"


def _graph(g: Subgraph, rng: random.Random) -> tuple[Subgraph, str]:
    index = rng.randrange(len(g.tensors))
    match rng.randrange(5):
        case 0:
            return replace(g, inputs=rng.choice(((), (index,), (*g.inputs, index)))), f"inputs, {index}"
        case 1:
            return replace(
                g, outputs=rng.choice(((), (index,), (*g.outputs, index), g.inputs))
            ), f"outputs, {index}"
        case 2:
            return replace(
                g, operators=tuple(rng.sample(g.operators, len(g.operators)))
            ), "operators in another order"
        case 3:
            gone = rng.randrange(len(g.operators))
            return replace(
                g, operators=(*g.operators[:gone], *g.operators[gone + 1 :])
            ), f"without operator {gone}"
    twice = rng.choice(g.operators)
    return replace(g, operators=(*g.operators, twice)), "an operator twice"


def _tensor(t: TensorInfo, rng: random.Random) -> tuple[TensorInfo, str]:
    match rng.randrange(9) if t.data else rng.randrange(7):
        case 7 | 8:
            return replace(t, data=_numbers(t, rng)), "numbers"
        case 0:
            shape = tuple(rng.choice(SIZES) if rng.random() < 0.4 else n for n in t.shape)
            return replace(t, shape=rng.choice((shape, (*t.shape, 1), t.shape[1:]))), "shape"
        case 1:
            return replace(t, type=rng.choice(TYPES)), "type"
        case 2:
            scales = tuple(rng.choice(SCALES) for _ in range(rng.choice((0, 1, 2, 4))))
            zero = tuple(rng.choice((*NUMBERS, 1 << 40)) for _ in scales)
            return replace(
                t, quantization=Quantization(scales, zero, rng.choice((0, 1, 3, -1, 9)))
            ), "quantization"
        case 3:
            return replace(t, quantization=None), "not quantized"
        case 4:
            return replace(t, name=rng.choice(NAMES)), "name"
        case 5:
            return replace(t, variable=not t.variable), "variable"
    length = rng.choice((0, 1, 4, 12, len(t.data or b"") + 1, len(t.data or b"") - 1, len(t.data or b"")))
    return replace(t, data=rng.randbytes(max(0, min(length, _MOST)))), f"{length} bytes"


def _numbers(t: TensorInfo, rng: random.Random) -> bytes:
    """A constant's bytes, one of its numbers changed."""
    assert t.data is not None
    kind = np.dtype(
        {"bool": "uint8", "bfloat16": "uint16"}.get(t.type, t.type if t.type in _NUMBERED else "uint8")
    )
    data = np.frombuffer(t.data[: len(t.data) // kind.itemsize * kind.itemsize], kind).copy()
    if data.size:
        value = rng.choice(SCALES) if kind.kind == "f" else rng.choice((*NUMBERS, *SIZES))
        with np.errstate(all="ignore"):
            data[rng.randrange(data.size)] = np.array(value).astype(kind)
    return data.tobytes()


_NUMBERED = ("float32", "float16", "float64", "int8", "int16", "int32", "int64", "uint32")


def _operator(op: Operator, rng: random.Random, tensors: int) -> tuple[Operator, str]:
    match rng.randrange(5):
        case 0:
            return replace(op, code=rng.choice(BUILTINS)), "code"
        case 1:
            inputs = [rng.randrange(-1, tensors) if rng.random() < 0.5 else i for i in op.inputs]
            return replace(op, inputs=tuple(inputs[: rng.choice((0, 1, 9, 9, 9))])), "inputs"
        case 2:
            return replace(
                op, outputs=rng.choice(((rng.randrange(tensors),), (), (*op.outputs, 0)))
            ), "outputs"
        case 3:
            return replace(op, options=None), "without options"
    if op.options is None:
        custom = bytearray(op.custom_options or rng.randbytes(9))
        label = _damage(custom, rng)
        return replace(op, custom_options=bytes(custom)), f"custom options: {label}"
    changed: dict[str, Any] = {}
    numbers = [f for f in fields(op.options) if f.metadata["kind"] in ("i", "I", "b", "?", "f")]
    if not numbers:
        return op, "nothing"
    field = rng.choice(numbers)
    kind = field.metadata["kind"]
    changed[field.name] = (
        rng.choice(SCALES)
        if kind == "f"
        else rng.choice((True, False))
        if kind == "?"
        else rng.choice([n for n in NUMBERS if kind == "i" or (n >= 0 if kind == "I" else -128 <= n < 128)])
    )
    return replace(op, options=replace(op.options, **changed)), f"options {changed}"


def _damage(data: bytearray, rng: random.Random) -> str:
    if len(data) < 4:
        data.extend(bytes(4))
    match rng.randrange(3):
        case 0:
            at = rng.randrange(len(data) + 1)
            del data[at:]
            return f"cut at {at}"
        case 1:
            at = rng.randrange(len(data) // 4) * 4
            data[at : at + 4] = rng.choice((0, 1, 4, 0xFFFF_FFFF, 0x7FFF_FFFF, len(data))).to_bytes(
                4, "little"
            )
            return f"word {at}"
    at = rng.randrange(len(data))
    data[at] ^= 1 << rng.randrange(8)
    return f"a bit of byte {at}"
