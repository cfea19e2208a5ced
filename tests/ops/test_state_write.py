# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops import bodies, drawn
from tests.ops.cases import Case, expected
from tinyet.ops.state_write import StateWrite


@st.composite
def state_write_nodes(draw: st.DrawFn) -> Case:
    type_ = draw(drawn.types(draw(drawn.shapes(1, 4, 5)), drawn.MOVABLE))
    return drawn.case_of(StateWrite(), [type_, type_], type_, draw(drawn.seeds))


test_host = bodies.host(state_write_nodes())


@settings(max_examples=20, deadline=None)
@given(state_write_nodes())
def test_the_new_value_is_kept(case: Case) -> None:
    assert np.array_equal(expected(case.node, case.inputs)[0], case.inputs[0])
