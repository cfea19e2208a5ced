# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import strategies as st

from tests.ops import bodies, elementwise
from tests.ops.cases import Case, tensor
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node
from tinyet.ops.mul import Mul

torch = pytest.importorskip("torch")


def mul_nodes(dtypes: tuple[DType, ...] = elementwise.ALL, constants: bool = True) -> st.SearchStrategy[Case]:
    return elementwise.pair(st.builds(Mul, elementwise.clamps), dtypes, constants=constants)


test_host = bodies.host(mul_nodes())

test_litert = bodies.equals_litert("MUL", mul_nodes(elementwise.INTEGERS, constants=False))

test_torch = bodies.equals_torch(
    torch.mul, elementwise.pair(st.just(Mul()), (DType.FLOAT32,), constants=False)
)


def test_shapes() -> None:
    node = Node(Mul(), (tensor("a", (2, 3)), tensor("b", (4,))), (tensor("y", (2, 3)),))
    with pytest.raises(UnsupportedShape, match="do not broadcast"):
        ops.infer(node)
