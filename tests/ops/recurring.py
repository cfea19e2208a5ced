# SPDX-License-Identifier: Apache-2.0
"""What the strategies of recurrent layers share: their tensors and their data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from tests.ops import drawing
from tests.ops.cases import Case
from tinyet import ops
from tinyet.ir import Array, Attrs, DType, Node, QuantParams, Shape, Tensor, TensorType, constant

KINDS = (DType.INT8, DType.FLOAT32)


@st.composite
def weights(
    draw: st.DrawFn, name: str, shape: Shape, dtype: DType, gates: int, reach: float = 0.05
) -> Tensor:
    """Of a layer's matrix: a scale for each gate's rows, or one for all. reach: the largest scale."""
    rng = drawing.random(draw)
    if dtype is DType.FLOAT32:
        return constant(name, (rng.standard_normal(shape) / np.sqrt(shape[1])).astype(np.float32))
    if draw(st.booleans()):
        quant = QuantParams.per_tensor(rng.uniform(reach / 50, reach), 0)
    else:
        scales = np.repeat(rng.uniform(reach / 50, reach, gates), shape[0] // gates)
        quant = QuantParams(tuple(scales.tolist()), (0,) * shape[0], 0)
    return constant(name, drawing.int8_data(rng, shape), quant)


@st.composite
def biases(draw: st.DrawFn, name: str, count: int, dtype: DType) -> Tensor | None:
    rng = drawing.random(draw)
    if draw(st.booleans()):
        return None
    values = rng.standard_normal(count).astype(np.float32)
    return constant(name, values if dtype is DType.FLOAT32 else (3000 * values).astype(np.int32))


def case(
    attrs: Attrs, inputs: Sequence[Tensor | None], outputs: Sequence[TensorType], rng: np.random.Generator
) -> Case:
    """outputs: types but for their shapes, of y and of the last states."""
    made = tuple(Tensor(f"out{i}", kind) for i, kind in enumerate(outputs))
    shapes = ops.infer(Node(attrs, tuple(inputs), made))
    typed = [
        Tensor(t.name, TensorType(shape, t.dtype, t.type.quant))
        for t, shape in zip(made, shapes, strict=True)
    ]
    data: list[Array] = []
    for tensor in inputs:
        if tensor is None or tensor.is_constant:
            continue
        if tensor.dtype is DType.FLOAT32:
            data.append(rng.standard_normal(tensor.shape).astype(np.float32))
        else:
            data.append(drawing.integer_data(rng, tensor.shape, tensor.dtype))
    return Case(Node(attrs, tuple(inputs), tuple(typed)), tuple(data))
