# SPDX-License-Identifier: Apache-2.0
"""Recursive filters: the C, scipy's answers, sequences in pieces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal

from tests.ops import bodies, drawing
from tests.ops.cases import Case, expected, tensor
from tests.ops.signalling import case, numbers
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node
from tinyet.ops.biquads import Biquads


@st.composite
def biquads_nodes(draw: st.DrawFn) -> Case:
    rows, steps, count = (draw(st.integers(1, most)) for most in (3, 12, 3))
    rng = drawing.random(draw)
    poles = rng.uniform(0, 0.95, count) * np.exp(1j * rng.uniform(0, np.pi, count))
    back = np.stack([-2 * poles.real, np.abs(poles) ** 2], -1)
    sections = np.concatenate([rng.standard_normal((count, 3)), back], 1).astype(np.float32)
    given = [numbers(rng, shape, DType.FLOAT32) for shape in ((rows, steps), (rows, count, 2))]
    return case(Biquads(), given, [DType.FLOAT32] * 2, [sections])


test_host = bodies.host(biquads_nodes())


@drawing.quick
@given(biquads_nodes())
def test_scipy(drawn: Case) -> None:
    x, state = (given.astype(np.float64) for given in drawn.inputs)
    b0, b1, b2, a1, a2 = drawn.node.input(2).array.astype(np.float64).T
    sos = np.stack([b0, b1, b2, np.ones_like(b0), a1, a2], -1)
    y, left = signal.sosfilt(sos, x, axis=1, zi=state.transpose(1, 0, 2))
    found = expected(drawn.node, drawn.inputs)
    size = 1e-5 * max(np.abs(part).max() for part in (x, state, y, left))
    np.testing.assert_allclose(found[0].astype(np.float64), y, rtol=1e-3, atol=size * 10)
    np.testing.assert_allclose(
        found[1].astype(np.float64), left.transpose(1, 0, 2), rtol=1e-3, atol=size * 10
    )


@drawing.quick
@given(biquads_nodes())
def test_cut_anywhere(drawn: Case) -> None:
    x, state = drawn.inputs
    whole, last = expected(drawn.node, drawn.inputs)
    parts = []
    for piece in np.array_split(x, min(3, x.shape[1]), 1):
        sections = drawn.node.input(2).array
        y, state = expected(
            case(Biquads(), [piece, state], [DType.FLOAT32] * 2, [sections]).node, (piece, state)
        )
        parts.append(y)
    np.testing.assert_array_equal(np.concatenate(parts, 1), whole)
    np.testing.assert_array_equal(state, last)


@pytest.mark.parametrize(
    "shapes", [((2, 8), (2, 1, 2), (1, 6)), ((2, 8), (1, 1, 2), (1, 5)), ((8,), (1, 1, 2), (1, 5))]
)
def test_shapes(shapes: tuple[tuple[int, ...], ...]) -> None:
    tensors = [tensor(name, shape, DType.FLOAT32) for name, shape in zip("xsc", shapes, strict=True)]
    with pytest.raises(UnsupportedShape, match="biquads: x"):
        ops.infer(Node(Biquads(), tuple(tensors), (tensors[0], tensors[1])))
