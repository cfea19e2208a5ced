# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawing, drawn, elementwise
from tests.ops.cases import Case, expected, tensor
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node, Tensor, TensorType
from tinyet.ops.where import OP, Where

torch = pytest.importorskip("torch")


@st.composite
def where_nodes(draw: st.DrawFn) -> Case:
    """Each input of the output's shape or a single element; conditions other than 0 and 1, too."""
    shape = draw(drawn.shapes(1, 3))
    values = draw(drawn.types(shape, drawn.MOVABLE))
    shapes = [shape if draw(st.booleans()) else (1,) * draw(st.integers(0, len(shape))) for _ in range(3)]
    shapes[draw(st.integers(0, 2))] = shape
    types = [
        TensorType(each, dtype, quant)
        for each, dtype, quant in zip(
            shapes,
            (DType.INT32, values.dtype, values.dtype),
            (None, values.quant, values.quant),
            strict=True,
        )
    ]
    tensors = [Tensor(f"x{i}", t) for i, t in enumerate(types)]
    arrays = [elementwise.values(t, draw(drawn.seeds)) for t in types]
    arrays[0] = np.asarray(
        arrays[0] * (np.random.default_rng(draw(drawn.seeds)).random(shapes[0]) < 0.5), np.int32
    )
    node = Node(Where(), tuple(tensors), (Tensor("y", values),))
    assert OP.check(node) is None
    assert ops.infer(node) == (shape,)
    return Case(node, tuple(arrays))


test_host = bodies.host(where_nodes())


@drawing.quick
@given(where_nodes())
def test_torch(case: Case) -> None:
    condition, a, b = (torch.from_numpy(x) for x in case.inputs)
    want = torch.where(condition != 0, a, b).numpy()
    np.testing.assert_array_equal(expected(case.node, case.inputs)[0], want)


def test_refusals() -> None:
    condition, y = tensor("c", (2, 3), DType.INT32), tensor("y", (2, 3), DType.FLOAT32)
    with pytest.raises(UnsupportedShape, match="neither of one shape nor single elements"):
        ops.infer(Node(Where(), (condition, y, tensor("b", (3,), DType.FLOAT32)), (y,)))
    assert "condition must be int32" in str(OP.check(Node(Where(), (y, y, y), (y,))))
    assert "one type" in str(OP.check(Node(Where(), (condition, y, condition), (y,))))
    coarse, fine = tensor("a", (2, 3), scale=0.5), tensor("b", (2, 3), scale=0.25)
    assert "one quantization" in str(OP.check(Node(Where(), (condition, coarse, fine), (fine,))))
