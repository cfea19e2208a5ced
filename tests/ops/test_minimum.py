# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import strategies as st

from tests.ops import bodies, elementwise
from tests.ops.cases import Case
from tinyet.ir import DType
from tinyet.ops.minimum import Minimum

torch = pytest.importorskip("torch")


def minimum_nodes(
    dtypes: tuple[DType, ...] = elementwise.ALL, constants: bool = True
) -> st.SearchStrategy[Case]:
    return elementwise.pair(st.just(Minimum()), dtypes, same_scale=True, constants=constants)


test_host = bodies.host(minimum_nodes())

test_litert = bodies.equals_litert("MINIMUM", minimum_nodes(elementwise.INTEGERS, constants=False))

test_torch = bodies.equals_torch(torch.minimum, minimum_nodes((DType.FLOAT32,), constants=False))


def test_scales_must_agree() -> None:
    elementwise.expect_one_scale(Minimum())
