# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.calls.exact import assert_kernels
from tests.ops import bodies, drawing, elementwise
from tests.ops.cases import Case, tensor
from tests.oracle import litert
from tinyet.ir import DType, Node
from tinyet.numerics import clamp_range
from tinyet.ops.div import Div, factor, reciprocals, sign_headroom
from tinyet.ops.shared import broadcast

torch = pytest.importorskip("torch")


def div_nodes(
    dtypes: tuple[DType, ...] = elementwise.BOTH, constants: bool = True
) -> st.SearchStrategy[Case]:
    return elementwise.pair(st.builds(Div, elementwise.clamps), dtypes, constants=constants)


test_host = bodies.host(div_nodes())


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@drawing.quick
@given(div_nodes((DType.INT8,), constants=False))
def test_litert(case: Case) -> None:
    """Wherever LiteRT defines the result: no division by zero, no shift by more than 31 bits."""
    attrs, node = case.node.attrs, case.node
    assert isinstance(attrs, Div)
    a, b = np.broadcast_arrays(
        broadcast.offset(node, 0, case.inputs[0]), broadcast.offset(node, 1, case.inputs[1])
    )
    signed = np.where(b < 0, -a, a)
    shift = reciprocals(b)[1] + sign_headroom(signed) - factor(node).shift
    defined = (b != 0) & (shift <= 31)
    assume(not np.any(b == 0))
    want = elementwise.run_litert("DIV", case, activation=elementwise.ACTIVATIONS[attrs.clamp])
    assert np.array_equal(elementwise.reference(case)[defined], want[defined])


@drawing.quick
@given(div_nodes((DType.INT8,), constants=False))
def test_close_to_real(case: Case) -> None:
    node = case.node
    a, b = (broadcast.offset(node, i, case.inputs[i]) * node.input(i).type.scale for i in (0, 1))
    with np.errstate(all="ignore"):
        real = a / b / node.output.type.scale + node.output.type.zero_point
    assert isinstance(node.attrs, Div)
    low, high = clamp_range(node.attrs.clamp, node.output.type)
    error = np.abs(np.clip(real, low, high) - elementwise.reference(case))
    assert np.nanmax(error, initial=0) <= 0.5 + 1e-4


test_torch = bodies.equals_torch(
    torch.div, elementwise.pair(st.just(Div()), (DType.FLOAT32,), constants=False)
)


def test_by_zero() -> None:
    a = np.array([5, -7, 0, 127], np.int8)
    node = Node(
        Div(),
        (tensor("a", (4,), scale=0.1), tensor("b", (4,), scale=0.1, zero_point=3)),
        (tensor("y", (4,), scale=0.1, zero_point=-9),),
    )
    case = Case(node, (a, np.full(4, 3, np.int8)))
    assert elementwise.reference(case).tolist() == [127, -128, -9, 127]
    assert_kernels([case])
