# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers by kernels for cores with DSP and with Helium: what they refuse, and their gates over all int16."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given

from tests.calls import board
from tests.calls.emulated import assert_own, calls_of, check_library, drawn_cases, of_image, skip_missing
from tests.calls.exact import assert_kernels
from tests.delegates.recurrent_nodes import recurrent_nodes, without_lowest
from tests.ops import drawing
from tests.ops.cases import Case
from tests.ops.test_lstm import lstm_nodes
from tinyet.boards.cpus import Target
from tinyet.delegates import CORTEX_M, Delegate
from tinyet.delegates.cortex_m.recurrent import DSP, GRU, LSTM, MVE, RNN, Family
from tinyet.ir import DType, Node, QuantParams, Tensor, TensorType, constant
from tinyet.ops.gru import Gru
from tinyet.ops.lstm import Lstm
from tinyet.ops.rnn import Rnn

HELIUM = Target("cortex-m55", frozenset({"dsp", "mve"}))
WITHOUT = Target("cortex-m33", frozenset({"dsp"}))


def of(family: Family) -> Delegate:
    """The delegate with the recurrent kernels of one family only."""
    core = f"_{family.name}"
    layers = {Lstm: LSTM, Gru: GRU, Rnn: RNN}
    return Delegate(
        "only", {op: tuple(k for k in found if k.symbol.endswith(core)) for op, found in layers.items()}
    )


# ---------------------------------------------------------------- Helium


def test_helium_on_host() -> None:
    """A project for a core with Helium computes the same on the host, where it is plain C."""

    @drawing.called
    @given(recurrent_nodes())
    def run(case: Case) -> None:
        assert_kernels([case], of(MVE), HELIUM)

    run()


@pytest.mark.emulated
def test_helium_on_the_device() -> None:
    check_library(recurrent_nodes(), of(MVE), (board.M55, board.M55_CLANG))


@pytest.mark.emulated
def test_helium_of_each_depth() -> None:
    """Sums of inputs and states that vectors hold throughout, with a half and without, and of such that are read again:
    as few as one vector, as many as five, and whole eights of units."""
    images = (board.M55, board.M55_CLANG)
    skip_missing(images)
    sizes = ((7, 64), (16, 40), (24, 48), (32, 24), (40, 16), (48, 72), (56, 8), (64, 32), (72, 64))
    for inputs, units in sizes:
        for tflm in (False, True):
            nodes = lstm_nodes(DType.INT8, projected=False, plain=not tflm, tflm=tflm, sizes=(inputs, units))
            (case,) = drawn_cases(nodes.map(without_lowest), 1)
            assert all(calls_of(case, of(MVE), images).values())


# ---------------------------------------------------------------- all int16


def arguments(stride: int, arithmetic: Literal["litert", "tflm"] = "litert") -> Case:
    """An LSTM of one step whose cells behind it are -sigmoid(f) in four units, and in four what sigmoid(i), nearly 1,
    lets through of tanh(g): f and g take all values of int16, with a stride those of 127 in so many times 127."""
    first, second = np.meshgrid(np.arange(-64, 63), np.arange(-128, 128, stride), indexing="ij")
    x = np.stack([first.ravel(), second.ravel()], axis=1).astype(np.int8)[:, None]
    batch, units = len(x), 8
    weights, bias = np.zeros((4 * units, 2), np.int8), np.zeros(4 * units, np.int32)
    starts = np.array([-24600, -8200, 8200, 24600])
    for gate, some in ((1, slice(0, 4)), (2, slice(4, 8))):
        rows = np.arange(units)[some] + gate * units
        weights[rows], bias[rows] = (1, 127), starts
    bias[4:8], bias[units + 4 : 2 * units] = 32767, -32768  # i is nearly 1, f nearly 0
    bias[3 * units :] = 32767
    cells = np.tile(np.repeat(np.array([-32768, 0], np.int16), 4), (batch, 1))
    activation, one = QuantParams.per_tensor(1.0, 0), QuantParams((2.0**-12,) * 32, (0,) * 32, 0)
    h = TensorType((batch, units), DType.INT8, QuantParams.per_tensor(1 / 128, 0))
    c = TensorType((batch, units), DType.INT16, QuantParams.per_tensor(2.0**-15, 0))
    inputs = (
        Tensor("x", TensorType(x.shape, DType.INT8, activation)),
        constant("h", np.zeros(h.shape, np.int8), h.quant),
        constant("c", cells, c.quant),
        constant("w_ih", weights, one),
        constant("w_hh", np.zeros((4 * units, units), np.int8), one),
        constant("bias", bias),
    )
    attrs = Lstm(sequence=False, arithmetic=arithmetic)
    return Case(Node(attrs, inputs, (Tensor("h_n", h), Tensor("c_n", c))), (x,))


def test_arguments_are_all() -> None:
    x = arguments(1).inputs[0].astype(np.int64) @ (1, 127)
    sums = np.clip(x + np.array([-24600, -8200, 8200, 24600]), -32768, 32767)
    assert len(np.unique(sums)) == 2**16


@pytest.mark.emulated
@pytest.mark.parametrize("arithmetic", ["litert", "tflm"])
def test_gates_on_the_device(arithmetic: Literal["litert", "tflm"]) -> None:
    """Sigmoid and tanh by the instructions of cores with DSP and with Helium, of all values of int16."""
    skip_missing((board.M4, board.M55))
    case = arguments(1, arithmetic)
    assert calls_of(case, CORTEX_M, (board.M55,))[board.M55] > 0
    assert_own(of_image(case, of(DSP), board.M4), board.M4)


# ---------------------------------------------------------------- refusals


def refusal(family: Family, target: Target, a: int, b: int, bias: int = 0) -> str | None:
    """Of an LSTM of four units whose first two rows have these weights."""
    weights = np.zeros((16, 1), np.int8)
    weights[:2, 0] = a, b
    state = QuantParams.per_tensor(1 / 128, 0)
    rows = QuantParams((0.01,) * 16, (0,) * 16, 0)
    h, c = (
        TensorType((1, 4), DType.INT8, state),
        TensorType((1, 4), DType.INT16, QuantParams.per_tensor(2.0**-12, 0)),
    )
    inputs = (
        Tensor("x", TensorType((1, 1, 1), DType.INT8, QuantParams.per_tensor(0.01, 0))),
        *(Tensor("h", h), Tensor("c", c)),
        constant("w_ih", weights, rows),
        constant("w_hh", np.zeros((16, 4), np.int8), rows),
        constant("bias", np.full(16, bias, np.int32)),
    )
    node = Node(Lstm(sequence=False), inputs, (Tensor("h_n", h), Tensor("c_n", c)))
    return of(family).kernels[Lstm][0].why_not(node, target)


def test_refusals() -> None:
    assert refusal(DSP, WITHOUT, 127, -128) is None
    assert "-128" in str(refusal(DSP, WITHOUT, -1, -128))
    assert refusal(DSP, WITHOUT, 0, 0, bias=2**23 - 1) is None
    assert "2**23" in str(refusal(DSP, WITHOUT, 0, 0, bias=2**23))
    assert "no Helium" in str(refusal(MVE, WITHOUT, 0, 0))
    assert refusal(MVE, HELIUM, -1, -128, bias=2**23) is None
