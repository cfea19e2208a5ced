# SPDX-License-Identifier: Apache-2.0
"""Files of many small operators, run by TFLM's interpreter and LiteRT's reference kernels, and by tinyet: integers
are to be equal, float32 within stated units in the last place."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from tinyet.boards.cpus import HOST
from tinyet.ir import Array
from tinyet.opening.files import from_tflite
from tinyet.ops import op_of
from tinyet.oracles.tflite import run_litert, run_tflm
from tinyet.program import Program
from tinyet.tflite import Model, Operator, Quantization, Subgraph, TensorInfo
from tinyet.tflite.options import Options
from tinyet.tflite.write import write_model

Oracle = Literal["tflm", "litert"]
MODULES = {"tflm": "tflite_micro", "litert": "ai_edge_litert"}
BOTH: tuple[Oracle, ...] = ("tflm", "litert")


@dataclass(frozen=True)
class Value:
    """A tensor that is given or computed. high, low: of what is drawn for it, where that is bounded."""

    shape: tuple[int, ...]
    type: str = "float32"
    scale: float = 0.0
    zero_point: int = 0
    low: float | None = None
    high: float | None = None

    @property
    def quantization(self) -> Quantization | None:
        return Quantization((float(np.float32(self.scale)),), (self.zero_point,)) if self.scale else None


@dataclass(frozen=True, eq=False)
class Fixed:
    """A constant."""

    data: Array
    scale: float = 0.0
    zero_point: int = 0


@dataclass
class File:
    """Operators beside one another in one file, each with inputs and outputs of its own."""

    tensors: list[TensorInfo] = field(default_factory=list)
    values: list[tuple[int, Value]] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    ulps: list[float] = field(default_factory=list)

    def add(
        self,
        code: str,
        inputs: Sequence[Value | Fixed],
        outputs: Value | Sequence[Value],
        options: Options | None = None,
        ulps: float = 0,
        version: int = 1,
    ) -> None:
        """ulps: how far a float32 output may be, in units in the last place of its largest value."""
        taken = [self._input(x) for x in inputs]
        made = []
        for value in (outputs,) if isinstance(outputs, Value) else outputs:
            made.append(len(self.tensors))
            name = f"out_{len(self.outputs)}"
            self.tensors.append(TensorInfo(name, value.shape, value.type, None, value.quantization))
            self.outputs.append(made[-1])
            self.ulps.append(ulps)
        self.operators.append(Operator(code, tuple(taken), tuple(made), options, version=version))

    def _input(self, x: Value | Fixed) -> int:
        index = len(self.tensors)
        if isinstance(x, Value):
            self.values.append((index, x))
            name = f"in_{len(self.values)}"
            self.tensors.append(TensorInfo(name, x.shape, x.type, None, x.quantization))
        else:
            quant = Quantization((float(np.float32(x.scale)),), (x.zero_point,)) if x.scale else None
            data = np.ascontiguousarray(x.data)
            type_ = "bool" if data.dtype == np.bool_ else data.dtype.name
            self.tensors.append(TensorInfo(f"held_{index}", x.data.shape, type_, data.tobytes(), quant))
        return index

    def model(self) -> Model:
        inputs = tuple(index for index, _ in self.values)
        return Model(
            (Subgraph("main", tuple(self.tensors), inputs, tuple(self.outputs), tuple(self.operators)),)
        )

    def check(self, oracles: Sequence[Oracle] = BOTH, draws: int = 2, seed: int = 0) -> None:
        """Run with drawn inputs by all that are installed, and compare. Skips where none is."""
        present = [o for o in oracles if importlib.util.find_spec(MODULES[o]) is not None]
        if not present:
            pytest.skip(f"none of {', '.join(MODULES[o] for o in oracles)} is installed")
        rng = np.random.default_rng(seed)
        runs = [[drawn(rng, value) for _, value in self.values] for _ in range(draws)]
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "one.tflite"
            path.write_bytes(write_model(self.model()))
            for oracle in present:
                program = from_tflite(path, runtime=oracle)
                _assert_kernels(program)
                wanted = (run_tflm if oracle == "tflm" else run_litert)(path, runs)
                for given, answers in zip(runs, wanted, strict=True):
                    found = program.run(*[_as_taken(x) for x in given], as_float=False)
                    found = list(found) if isinstance(found, list | tuple) else [found]
                    self._compare(oracle, found, answers)

    def _compare(self, oracle: Oracle, found: Sequence[Array], wanted: Sequence[Array]) -> None:
        wrong = []
        at = 0
        for op in self.operators:
            for _ in op.outputs:
                ours, theirs = found[at].reshape(-1), wanted[at].reshape(-1)
                assert ours.size == theirs.size, (op.code, found[at].shape, wanted[at].shape)
                if theirs.dtype.kind == "f":
                    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
                    finite = np.abs(theirs[np.isfinite(theirs)])
                    one = np.spacing(np.float32(max(float(finite.max(initial=0)), 2.0**-126)))
                    with np.errstate(all="ignore"):
                        far = float(np.where(same, 0, np.abs(ours.astype(float) - theirs)).max() / one)
                    bad = not far <= self.ulps[at]
                else:
                    # Truth values are 0 and 1 in the graph, and int64 is int32.
                    off = np.abs(ours.astype(np.int64) - theirs.astype(np.int64))
                    far, bad = float(off.max(initial=0)), bool(off.any())
                if bad:
                    info = [self.tensors[i] for i in (*op.inputs, *op.outputs)]
                    types = [(t.type, t.shape, t.quantization) for t in info]
                    wrong.append(f"{op.code} differs from {oracle} by {far}: {op.options} {types}")
                at += 1
        assert not wrong, "\n".join(wrong)


def _assert_kernels(program: Program) -> None:
    """Every node has C."""
    target = HOST
    without = [
        node
        for node in program.graph.nodes
        if not op_of(node).view and all(k.why_not(node, target) is not None for k in op_of(node).kernels)
    ]
    assert not without, without


def _as_taken(x: Array) -> Array:
    return x.astype(np.int32) if x.dtype in (np.dtype(np.int64), np.dtype(np.bool_)) else x


def drawn(rng: np.random.Generator, value: Value) -> Array:
    """Whole numbers of the whole range, floats around 0, or as the value bounds them."""
    if value.type == "float32":
        if value.low is not None and value.high is not None:
            return rng.uniform(value.low, value.high, value.shape).astype(np.float32)
        return (rng.standard_normal(value.shape) * 3).astype(np.float32)
    if value.type == "bool":
        return rng.integers(0, 2, value.shape).astype(np.bool_)
    kind = np.dtype(value.type)
    least, most = np.iinfo(kind).min, np.iinfo(kind).max
    low = least if value.low is None else int(value.low)
    high = most if value.high is None else int(value.high)
    return np.asarray(rng.integers(low, high, value.shape, endpoint=True)).astype(kind)


def scaled(
    rng: np.random.Generator, shape: tuple[int, ...], type_: str = "int8", around: float = 0.05
) -> Value:
    """A value of a drawn quantization; int16 has a zero point of 0."""
    scale = float(np.float32(around * np.exp(rng.uniform(-1, 1))))
    return Value(shape, type_, scale, 0 if type_ == "int16" else int(rng.integers(-128, 128)))
