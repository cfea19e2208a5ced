# SPDX-License-Identifier: Apache-2.0
"""Nodes for the kernels of recurrent layers."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.ops.cases import Case
from tests.ops.test_gru import gru_nodes
from tests.ops.test_lstm import lstm_nodes
from tests.ops.test_rnn import rnn_nodes
from tinyet.ir import DType


def recurrent_nodes() -> st.SearchStrategy[Case]:
    """int8, of each kind, without projections."""
    return st.one_of(gru_nodes(DType.INT8), lstm_nodes(DType.INT8, projected=False), rnn_nodes(DType.INT8))
