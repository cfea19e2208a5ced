# SPDX-License-Identifier: Apache-2.0
"""Models of many operators' layers side by side: the C that is generated for them gives the reference's bits.

Each operator's own file tries its kernels call by call. Here it is the choice of kernels, the plan of the memory, and
the C around the calls.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.calls.host import library_table
from tests.ops.cases import WARNINGS, Case, assert_exact
from tests.ops.objects import run
from tests.ops.strategies import strategy_of
from tinyet import assets
from tinyet.ops import OPS

GROUPS = [[op.name for op in OPS[i::8]] for i in range(8)]
"""Operators whose layers are in one model."""


@pytest.mark.parametrize("names", GROUPS, ids=lambda names: names[0])
def test_host(names: list[str]) -> None:
    @settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.tuples(*(st.lists(strategy_of(name), min_size=3, max_size=3) for name in names)))
    def check(drawn: tuple[list[Case], ...]) -> None:
        assert_exact([case for cases in drawn for case in cases])

    check()


def test_headers_are_cxx() -> None:
    """Sketches are C++, and may call kernels."""
    headers = "".join(f'#include "{header}"\n' for header in library_table().headers)
    include = f"-I{assets.path('firmware') / 'include'}"
    run(["g++", "-x", "c++", "-std=c++17", *WARNINGS, include, "-fsyntax-only", "-"], headers.encode())
