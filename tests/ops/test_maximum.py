# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import strategies as st

from tests.ops import bodies, elementwise
from tests.ops.cases import Case
from tinyet.ir import DType
from tinyet.ops.maximum import Maximum

torch = pytest.importorskip("torch")


def maximum_nodes(
    dtypes: tuple[DType, ...] = elementwise.ALL, constants: bool = True
) -> st.SearchStrategy[Case]:
    return elementwise.pair(st.just(Maximum()), dtypes, same_scale=True, constants=constants)


test_host = bodies.host(maximum_nodes())

test_litert = bodies.equals_litert("MAXIMUM", maximum_nodes(elementwise.INTEGERS, constants=False))

test_torch = bodies.equals_torch(torch.maximum, maximum_nodes((DType.FLOAT32,), constants=False))


def test_scales_must_agree() -> None:
    elementwise.expect_one_scale(Maximum())
