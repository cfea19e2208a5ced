# SPDX-License-Identifier: Apache-2.0
"""What the tests of operators on signals share: nodes, data, and TFLM's answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import strategies as st

from tests.ops.cases import Case, expected
from tests.oracle import tflm
from tinyet import ops
from tinyet.ir import Array, Attrs, DType, Node, QuantParams, Shape, Tensor, TensorType, constant

needs_tflm = pytest.mark.skipif(not tflm.available(), reason="needs tflite-micro")

ITSELF = QuantParams.per_tensor(1.0, 0)
sounds = st.sampled_from((DType.INT16, DType.INT32, DType.FLOAT32))


def type_of(shape: Shape, dtype: DType) -> TensorType:
    return TensorType(shape, dtype, ITSELF if dtype is DType.INT16 else None)


def numbers(rng: np.random.Generator, shape: Shape, dtype: DType) -> npt.NDArray[Any]:
    """Of all sizes, as likely with few bits as with many; one in ten is an extreme."""
    if dtype is DType.FLOAT32:
        return (rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 3)).astype(np.float32)
    low, high = dtype.range
    values = rng.integers(low, high + 1, shape, np.int64) >> rng.integers(0, dtype.bits, shape)
    edge = rng.choice(np.array([low, high, 0, 1], np.int64), shape)
    return np.asarray(np.where(rng.random(shape) < 0.1, edge, values)).astype(dtype.numpy).reshape(shape)


def case(
    attrs: Attrs, inputs: Sequence[Array], outputs: Sequence[DType], constants: Sequence[Array] = ()
) -> Case:
    """A node on these arrays and, behind them, constants; the outputs have the shapes that the operator says."""
    given = [Tensor(f"x{i}", type_of(x.shape, DType(x.dtype.name))) for i, x in enumerate(inputs)]
    fixed = [constant(f"c{i}", x) for i, x in enumerate(constants)]
    draft = Node(
        attrs, (*given, *fixed), tuple(Tensor(f"y{i}", type_of((), d)) for i, d in enumerate(outputs))
    )
    made = [
        Tensor(f"y{i}", type_of(s, d)) for i, (s, d) in enumerate(zip(ops.infer(draft), outputs, strict=True))
    ]
    node = draft.replace(outputs=made)
    assert ops.op_of(node).check(node) is None
    return Case(node, tuple(inputs))


def answers(case: Case) -> tuple[npt.NDArray[Any], ...]:
    """The reference's."""
    return expected(case.node, case.inputs)


def refused(node: Node) -> str:
    """Why a node of right shapes is."""
    return str(ops.op_of(node).check(node))
