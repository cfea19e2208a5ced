# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawing, recurring
from tests.ops.cases import Case, expected
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType
from tinyet.ops.gru import B_HH, B_IH, GATES, W_HH, W_IH, Gru


@st.composite
def gru_nodes(draw: st.DrawFn, dtype: DType | None = None) -> Case:
    kind = dtype or draw(st.sampled_from(recurring.KINDS))
    x, h = draw(recurring.square_inputs(kind))
    inputs, units = x.shape[2], h.shape[1]
    tensors = [
        x,
        h,
        draw(recurring.weights("w_ih", (GATES * units, inputs), kind, GATES, 0.02)),
        draw(recurring.weights("w_hh", (GATES * units, units), kind, GATES)),
        draw(recurring.biases("b_ih", GATES * units, kind)),
        draw(recurring.biases("b_hh", GATES * units, kind)),
    ]
    attrs = Gru(draw(st.booleans()), draw(st.booleans()))
    return recurring.case(attrs, tensors, [h.type] * (1 + attrs.sequence), drawing.random(draw))


test_host = bodies.host(gru_nodes())


@drawing.quick
@given(gru_nodes(DType.FLOAT32))
def test_torch(case: Case) -> None:
    """Gates and order of steps: within 1e-4 of float64, over at most five steps."""
    node = case.node
    units = node.input(W_HH).shape[1]
    biases = [recurring.bias_or_zeros(node, i, GATES * units) for i in (B_IH, B_HH)]
    weights = [node.input(W_IH).array, node.input(W_HH).array]
    for got, want in zip(
        expected(node, case.inputs), recurring.torch_answer("GRU", case, weights, biases), strict=True
    ):
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=0, atol=1e-4)


@drawing.quick
@given(st.sampled_from((DType.INT8, DType.INT16)).flatmap(gru_nodes))
def test_cut_anywhere(case: Case) -> None:
    """A sequence in two calls, the state handed on, gives what it gives in one."""
    recurring.assert_cut_anywhere(case)


def test_close_to_float() -> None:
    """A layer of 24 units over 40 steps, integers of its own ranges: 30 dB above the noise of quantization; in int16,
    its weights apart, 65."""
    assert recurring.signal_to_noise(Gru(), GATES, (B_IH, B_HH), DType.INT8) > 30
    assert recurring.signal_to_noise(Gru(), GATES, (B_IH, B_HH), DType.INT16, same_weights=True) > 65


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (((2, 5), (2, 4), (12, 3), (12, 4)), "input 0 must have 3 dimensions"),
        (((2, 5, 3), (2, 4), (16, 3), (16, 4)), "3 gates"),
        (((2, 5, 3), (2, 5), (12, 3), (12, 5)), "a state of 5 values for 4 units"),
        (((2, 5, 3), (2, 4), (12, 3), (12, 4), (4,)), "a bias of shape"),
        (((2, 5, 3), (2, 4), (12, 3), (12, 4), None, (4,)), "a bias of shape"),
    ],
)
def test_shape_errors(shapes: tuple[tuple[int, ...] | None, ...], words: str) -> None:
    with pytest.raises(UnsupportedShape, match=words):
        recurring.infer_floats(Gru(), 2, shapes)


@pytest.mark.parametrize(("changed", "words"), recurring.WRONG_TYPES)
def test_type_rule(changed: dict[str, object], words: str | None) -> None:
    recurring.expect_complaint(Gru(), GATES, changed, words)
