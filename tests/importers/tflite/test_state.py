# SPDX-License-Identifier: Apache-2.0
"""Layers that remember, variables, and branches: beside TFLM and LiteRT, run after run."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.importers.tflite.originals import RUNTIMES, assert_models, assert_same, installed
from tests.tflite_files import Writer
from tinyet import from_tflite
from tinyet.errors import TinyetError, UnsupportedShape
from tinyet.tflite import Model, Runtime, Subgraph
from tinyet.tflite.options import (
    AddOptions,
    BidirectionalSequenceLSTMOptions,
    CallOnceOptions,
    ConcatenationOptions,
    IfOptions,
    SVDFOptions,
    UnidirectionalSequenceLSTMOptions,
    VarHandleOptions,
    WhileOptions,
)
from tinyet.tflite.write import write_model

runtimes = pytest.mark.parametrize(
    "runtime",
    [
        pytest.param(r, marks=pytest.mark.skipif(not installed(r), reason=f"needs {RUNTIMES[r]}"))
        for r in ("tflm", "litert")
    ],
)
TANH = 4


def add_svdf(w: Writer, rng: np.random.Generator, kind: str, rank: int, relu: int) -> tuple[int, int]:
    """An SVDF with an int8 or int16 state, or float32: (its input, its output)."""
    inputs, units, memory = 9, 4, 5
    filters, integer = units * rank, kind != "float32"
    outer = "int8" if integer else kind
    x = w.value((1, inputs), outer, 0.03 if integer else None, -5 if integer else 0)
    if integer:
        feature = w.constant(rng.integers(-127, 128, (filters, inputs)).astype(np.int8), (0.01,))
        reach = 127 if kind == "int8" else 32767
        scale = 3 / reach
        time = w.constant(rng.integers(-reach, reach + 1, (filters, memory)).astype(kind), (1 / reach,))
        bias = w.constant(rng.integers(-999, 999, units).astype(np.int32), (scale / reach,))
    else:
        feature = w.constant(rng.standard_normal((filters, inputs)).astype(np.float32))
        time = w.constant(rng.standard_normal((filters, memory)).astype(np.float32))
        bias, scale = w.constant(rng.standard_normal(units).astype(np.float32)), None
    state = w.value((1, filters * memory), kind, scale, variable=True)
    y = w.value((1, units), outer, 0.05 if integer else None, 3 if integer else 0)
    w.call("SVDF", (x, feature, time, bias, state), (y,), SVDFOptions(rank, relu))
    return x, y


@runtimes
def test_svdf(runtime: Runtime, tmp_path: Path) -> None:
    rng, w = np.random.default_rng(1), Writer()
    kinds = ["int16", "float32"] if runtime == "litert" else ["int16", "int8", "float32"]
    # LiteRT's integers want a ReLU to be there.
    kinds_and_relu = [
        (kind, relu) for kind in kinds for relu in (1, 0) if relu or (runtime, kind) != ("litert", "int16")
    ]
    ends = [add_svdf(w, rng, kind, rank, relu) for kind, relu in kinds_and_relu for rank in (1, 2)]
    inputs, outputs = zip(*ends, strict=True)
    answers = assert_same(w, inputs, outputs, runtime, tmp_path, runs=7, ulps=8)
    assert not np.array_equal(answers[0][0], answers[-1][0])


def add_lstm(
    w: Writer,
    rng: np.random.Generator,
    kind: str,
    *,
    inner: bool,
    major: bool = False,
    own_scale: bool = False,
    clip: float = 0.0,
    x: int | None = None,
) -> tuple[int, int]:
    """An LSTM of five steps. inner: with the intermediate tensors that LiteRT wants. own_scale: the output's is not the
    state's. x: its input, where there is one."""
    inputs, units, batch, steps = 7, 6, 2 if kind == "float32" else 1, 5
    shape = (steps, batch, inputs) if major else (batch, steps, inputs)
    integer = kind == "int8"

    def weights(columns: int) -> int:
        if integer:
            return w.constant(
                rng.integers(-127, 128, (units, columns)).astype(np.int8), (float(rng.uniform(0.003, 0.02)),)
            )
        return w.constant(rng.standard_normal((units, columns)).astype(np.float32))

    def bias() -> int:
        if integer:
            return w.constant(rng.integers(-3000, 3000, units).astype(np.int32), (1e-4,))
        return w.constant(rng.standard_normal(units).astype(np.float32))

    if x is None:
        x = w.value(shape, kind, 0.02 if integer else None, 11 if integer else 0)
    matrices = [weights(n) for n in (inputs,) * 4 + (units,) * 4]
    biases = [bias() for _ in range(4)]
    h = w.value((batch, units), kind, 1 / 128 if integer else None, -3 if integer else 0, variable=True)
    cell = "int16" if integer else kind
    c = w.value((batch, units), cell, 2.0**-11 if integer else None, variable=True)
    scale = 1 / 100 if own_scale else 1 / 128
    y = w.value((*shape[:2], units), kind, scale if integer else None, -3 if integer else 0)
    operands = (x, *matrices, -1, -1, -1, *biases, -1, -1, h, c, -1, -1, -1, -1)
    options = UnidirectionalSequenceLSTMOptions(TANH, clip, 0.0, major)
    between: tuple[int, ...] = ()
    if inner and integer:
        between = (*(w.value((), "int16", 2.0**-12) for _ in range(4)), w.value((), "int8", 1 / 128, -3))
    w.call("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, (y,), options, intermediates=between)
    return x, y


@runtimes
def test_lstm(runtime: Runtime, tmp_path: Path) -> None:
    rng, w = np.random.default_rng(2), Writer()
    add = partial(add_lstm, w, rng, inner=runtime == "litert")
    ends = [add(kind, clip=clip) for kind in ("int8", "float32") for clip in (0.0, 0.5)]
    ends += [add("float32", major=True), add("int8", major=True)]
    if runtime == "tflm":
        ends.append(add("int8", own_scale=True))
    inputs, outputs = zip(*ends, strict=True)
    answers = assert_same(w, inputs, outputs, runtime, tmp_path, runs=4, ulps=16)
    assert not np.array_equal(answers[0][0], answers[-1][0])


def add_both_ways(
    w: Writer,
    rng: np.random.Generator,
    *,
    major: bool = False,
    merged: bool = True,
    clip: float = 0.0,
    batch: int = 0,
) -> tuple[int, tuple[int, ...]]:
    """A layer that goes both ways: (its input, its outputs). LiteRT is wrong of a second sample where samples come
    before steps and both ways have one output."""
    inputs, units, steps, batch = 7, (6, 6), 5, batch or (1 if merged and not major else 2)

    def drawn(*shape: int) -> int:
        return w.constant(rng.standard_normal(shape).astype(np.float32))

    x = w.value((steps, batch, inputs) if major else (batch, steps, inputs), "float32", None)
    operands, states = [x], list[int]()
    for n in units:
        matrices = [drawn(n, columns) for columns in (inputs,) * 4 + (n,) * 4]
        operands += [*matrices, -1, -1, -1, *(drawn(n) for _ in range(4)), -1, -1]
        states += [w.value((batch, n), "float32", None, variable=True) for _ in "hc"]
    operands += [*states, *(-1,) * 9]
    widths = (sum(units),) if merged else units
    shape = (steps, batch) if major else (batch, steps)
    outputs = tuple(w.value((*shape, n), "float32", None) for n in widths)
    options = BidirectionalSequenceLSTMOptions(TANH, clip, 0.0, merged, major)
    w.call("BIDIRECTIONAL_SEQUENCE_LSTM", tuple(operands), outputs, options)
    return x, outputs


@pytest.mark.skipif(not installed("litert"), reason="needs ai_edge_litert")
def test_lstm_both_ways(tmp_path: Path) -> None:
    """TFLM has none. Where its state goes on from run to run, so does that of the way back."""
    rng, w = np.random.default_rng(3), Writer()
    cases = [
        add_both_ways(w, rng, major=major, merged=merged)
        for major in (False, True)
        for merged in (True, False)
    ]
    cases.append(add_both_ways(w, rng, clip=0.5))
    inputs, outputs = [x for x, _ in cases], [y for _, each in cases for y in each]
    assert_same(w, inputs, outputs, "litert", tmp_path, runs=3, ulps=16)


def test_of_several_samples_the_runtime_is_wrong(tmp_path: Path) -> None:
    w = Writer()
    x, outputs = add_both_ways(w, np.random.default_rng(3), batch=2)
    path = tmp_path / "two.tflite"
    path.write_bytes(write_model(w.model((x,), outputs)))
    assert any("only the first of several samples" in note.text for note in from_tflite(path).notes)


def test_of_both_ways_only_floats_are_taken(tmp_path: Path) -> None:
    w = Writer()
    x, y = w.value((1, 5, 7), "int8", 0.1), w.value((1, 5, 8), "int8", 0.1)
    matrices = [w.constant(np.ones((4, n), np.int8), (0.1,)) for n in (7,) * 4 + (4,) * 4]
    way = (*matrices, *(-1,) * 9)
    states = [w.value((1, 4), "int8", 0.1, variable=True) for _ in range(4)]
    options = BidirectionalSequenceLSTMOptions(TANH, 0.0, 0.0, True, False)
    w.call("BIDIRECTIONAL_SEQUENCE_LSTM", (x, *way, *way, *states, *(-1,) * 9), (y,), options)
    path = tmp_path / "int8.tflite"
    path.write_bytes(write_model(w.model((x,), (y,))))
    with pytest.raises(UnsupportedShape, match="REVERSE_V2, have int8"):
        from_tflite(path)


@runtimes
def test_two_lstms_one_of_them_backwards(runtime: Runtime, tmp_path: Path) -> None:
    """As Keras converts a layer that goes both ways: the second between two reversals."""
    rng, w = np.random.default_rng(4), Writer()
    inputs, outputs = [], []
    for kind in ("int8", "float32"):
        x, there = add_lstm(w, rng, kind, inner=runtime == "litert")
        axis = w.constant(np.array([1], np.int32))
        given, made = w.tensors[x].shape, w.tensors[there].shape
        quants = ((0.02, 11), (1 / 128, -3)) if kind == "int8" else ((None, 0), (None, 0))
        reversed_ = w.call("REVERSE_V2", (x, axis), (w.value(given, kind, *quants[0]),))
        _, back = add_lstm(w, rng, kind, inner=runtime == "litert", x=reversed_)
        turned = w.call("REVERSE_V2", (back, axis), (w.value(made, kind, *quants[1]),))
        joined = w.value((*made[:2], 2 * made[2]), kind, *quants[1])
        inputs.append(x)
        outputs.append(w.call("CONCATENATION", (there, turned), (joined,), ConcatenationOptions(2)))
    assert_same(w, inputs, outputs, runtime, tmp_path, runs=3, ulps=16)


def counting(scale: float = 0.5) -> Model:
    """Two variables: one that begins at a constant and to which the input is added, one that holds the run before."""
    main, once = Writer(), Writer()
    shape, data = (2, 3), np.arange(6, dtype=np.int8).reshape(2, 3)
    for w in (main, once):
        w.call("VAR_HANDLE", (), (w.value((), "resource", None),), VarHandleOptions("", "sum"))
    once.call("ASSIGN_VARIABLE", (0, once.constant(data, (scale,))), ())
    main.call("VAR_HANDLE", (), (main.value((), "resource", None),), VarHandleOptions("", "last"))
    main.call("CALL_ONCE", (), (), CallOnceOptions(1))
    x = main.value(shape, "int8", scale)
    before, last = main.value(shape, "int8", scale), main.value(shape, "int8", scale)
    main.call("READ_VARIABLE", (0,), (before,))
    after = main.call("ADD", (before, x), (main.value(shape, "int8", scale),), AddOptions())
    main.call("ASSIGN_VARIABLE", (0, after), ())
    main.call("READ_VARIABLE", (1,), (last,))
    main.call("ASSIGN_VARIABLE", (1, x), ())
    y = main.call("ADD", (after, last), (main.value(shape, "int8", 1.3 * scale, 5),), AddOptions())
    subgraphs = (main.model((x,), (y,)).subgraphs[0], once.model((), ()).subgraphs[0])
    return Model(subgraphs)


@pytest.mark.skipif(not installed("tflm"), reason="needs tflite_micro")
def test_variables(tmp_path: Path) -> None:
    """In TFLM alone: LiteRT refuses to read a variable that nobody has assigned."""
    assert_models(counting(), "tflm", tmp_path, runs=5)


def looping(times: int) -> Model:
    """WHILE that adds x to itself, and counts."""
    scale = 0.25
    main, condition, body = Writer(), Writer(), Writer()
    count = condition.value((), "int32", None)
    y = condition.value((1, 4), "int8", scale)
    limit = condition.constant(np.array(times, np.int32))
    goes_on = condition.call("LESS", (count, limit), (condition.value((), "bool", None),))
    counted, given = body.value((), "int32", None), body.value((1, 4), "int8", scale)
    one = body.constant(np.array(1, np.int32))
    following = body.call("ADD", (counted, one), (body.value((), "int32", None),), AddOptions())
    twice = body.call("ADD", (given, given), (body.value((1, 4), "int8", scale),), AddOptions())
    x, zero = main.value((1, 4), "int8", scale), main.constant(np.array(0, np.int32))
    ended, found = main.value((), "int32", None), main.value((1, 4), "int8", scale)
    main.call("WHILE", (zero, x), (ended, found), WhileOptions(1, 2))
    out = main.call("ADD", (found, x), (main.value((1, 4), "int8", scale),), AddOptions())
    return Model(
        (
            main.model((x,), (out,)).subgraphs[0],
            condition.model((count, y), (goes_on,)).subgraphs[0],
            body.model((counted, given), (following, twice)).subgraphs[0],
        )
    )


@pytest.mark.skipif(not installed("tflm"), reason="needs tflite_micro")
@pytest.mark.parametrize("times", [0, 1, 3])
def test_loops_that_count(times: int, tmp_path: Path) -> None:
    assert_models(looping(times), "tflm", tmp_path)


def test_loops_without_an_end_are_refused(tmp_path: Path) -> None:
    assert "more than 1024 steps" in refusal(looping(2000), tmp_path)


def branches(taken: bool) -> Model:
    """IF with a constant condition."""
    main = Writer()
    shape, scale = (1, 4), 0.25

    def adding(times: int) -> Subgraph:
        w = Writer()
        x = w.value(shape, "int8", scale)
        y = x
        for _ in range(times):
            y = w.call("ADD", (y, x), (w.value(shape, "int8", scale),), AddOptions())
        return w.model((x,), (y,)).subgraphs[0]

    x = main.value(shape, "int8", scale)
    condition = main.constant(np.array([taken]))
    y = main.call("IF", (condition, x), (main.value(shape, "int8", scale),), IfOptions(1, 2))
    z = main.call("ADD", (y, x), (main.value(shape, "int8", scale),), AddOptions())
    return Model((main.model((x,), (z,)).subgraphs[0], adding(1), adding(2)))


@pytest.mark.skipif(not installed("tflm"), reason="needs tflite_micro")
@pytest.mark.parametrize("taken", [True, False])
def test_if(taken: bool, tmp_path: Path) -> None:
    assert_models(branches(taken), "tflm", tmp_path)


def refusal(model: Model, tmp_path: Path) -> str:
    path = tmp_path / "refused.tflite"
    path.write_bytes(write_model(model))
    with pytest.raises(TinyetError) as caught:
        from_tflite(path)
    return str(caught.value)


def test_computed_conditions_are_refused(tmp_path: Path) -> None:
    w = Writer()
    x, c = w.value((1, 4), "int8"), w.value((1,), "bool", None)
    y = w.call("IF", (c, x), (w.value((1, 4), "int8"),), IfOptions(1, 1))
    inner = Writer()
    i = inner.value((1, 4), "int8")
    model = Model((w.model((x, c), (y,)).subgraphs[0], inner.model((i,), (i,)).subgraphs[0]))
    assert "has a condition that is computed" in refusal(model, tmp_path)


@pytest.mark.parametrize("loop", [IfOptions(0, 0), WhileOptions(0, 0)])
def test_subgraphs_that_call_themselves_are_refused(loop: IfOptions | WhileOptions, tmp_path: Path) -> None:
    w = Writer()
    x = w.value((1,), "bool", None)
    c = w.constant(np.array([True]))
    code = "IF" if isinstance(loop, IfOptions) else "WHILE"
    operands = (c, x) if code == "IF" else (x,)
    y = w.call(code, operands, (w.value((1,), "bool", None),), loop)
    assert "without end" in refusal(w.model((x,), (y,)), tmp_path)


def test_missing_subgraphs_are_refused(tmp_path: Path) -> None:
    w = Writer()
    x = w.value((1, 4), "int8")
    w.call("CALL_ONCE", (), (), CallOnceOptions(7))
    y = w.call("ADD", (x, x), (w.value((1, 4), "int8"),), AddOptions())
    assert "subgraph 7" in refusal(w.model((x,), (y,)), tmp_path)
