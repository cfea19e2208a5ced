# SPDX-License-Identifier: Apache-2.0
"""A converter's integers as samples: the C, and the buffers of real converters."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests.ops import bodies, drawing
from tests.ops.cases import Case
from tests.ops.signalling import answers, case, numbers
from tinyet import ops
from tinyet.ir import DType
from tinyet.ops.samples import Samples

S16, S32 = DType.INT16, DType.INT32


@st.composite
def samples_nodes(draw: st.DrawFn) -> Case:
    rng, dtype = drawing.random(draw), draw(st.sampled_from((S16, S32)))
    shift = draw(st.integers(*((0, 15) if dtype is S16 else (1, 31))))
    offset = draw(st.sampled_from((0, 2048, 32768, 65535, -32768)))
    attrs = Samples(shift, offset, dtype is S16 and draw(st.booleans()))
    shape = draw(st.sampled_from(((5,), (2, 7), (1, 3, 2))))
    return case(attrs, [numbers(rng, shape, dtype)], [S16])


test_host = bodies.host(samples_nodes())


def test_buffers() -> None:
    halves = np.array([0, 1, 32767, 32768, 65535], np.uint16).view(np.int16)
    found = answers(case(Samples(0, 32768, True), [halves], [S16]))[0]
    assert found.tolist() == [-32768, -32767, -1, 0, 32767]
    words = np.array([0x7FFFFF00, -0x80000000, 0x00010000, -0x00010001], np.int64).astype(np.int32)
    assert answers(case(Samples(16, 0, False), [words], [S16]))[0].tolist() == [32767, -32768, 1, -2]
    assert answers(case(Samples(14, 0, False), [words], [S16]))[0].tolist() == [32767, -32768, 4, -5]


def test_refused() -> None:
    good = case(Samples(0, 0, False), [np.zeros(3, np.int16)], [S16])
    word = case(Samples(1, 0, False), [np.zeros(3, np.int32)], [S16])
    for drawn, attrs, why in (
        (good, Samples(16, 0, False), "shift"),
        (word, Samples(0, 0, False), "shift"),
        (word, Samples(1, 0, True), "unsigned"),
        (good, Samples(0, 65536, False), "offset"),
    ):
        assert why in str(ops.op_of(good.node).check(drawn.node.replace(attrs=attrs)))
