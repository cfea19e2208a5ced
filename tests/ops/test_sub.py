# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import strategies as st

from tests.ops import bodies, elementwise
from tests.ops.cases import Case
from tinyet.ir import DType
from tinyet.ops.sub import OP, Sub

torch = pytest.importorskip("torch")


def sub_nodes(dtypes: tuple[DType, ...] = elementwise.ALL, constants: bool = True) -> st.SearchStrategy[Case]:
    return elementwise.pair(st.builds(Sub, elementwise.clamps), dtypes, constants=constants)


test_host = bodies.host(sub_nodes())

test_litert = bodies.equals_litert("SUB", sub_nodes(elementwise.INTEGERS, constants=False))

test_torch = bodies.equals_torch(
    torch.sub, elementwise.pair(st.just(Sub()), (DType.FLOAT32,), constants=False)
)

# The kernel for scales without an exact affine form, on all scales.
test_specification_kernel = bodies.one_kernel(OP, "tinyet_sub_s8", sub_nodes((DType.INT8,)))
