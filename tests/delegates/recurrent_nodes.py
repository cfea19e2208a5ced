# SPDX-License-Identifier: Apache-2.0
"""Nodes for the kernels of recurrent layers."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests.ops.cases import Case
from tests.ops.test_gru import gru_nodes
from tests.ops.test_lstm import lstm_nodes
from tests.ops.test_rnn import rnn_nodes
from tinyet.ir import DType, Tensor


def without_lowest(case: Case) -> Case:
    """As quantizers make weights: from -127 on."""
    inputs = [
        Tensor(t.name, t.type, np.maximum(t.array, -127))
        if t and t.is_constant and t.dtype is DType.INT8
        else t
        for t in case.node.inputs
    ]
    return Case(case.node.replace(inputs=inputs), case.inputs)


def recurrent_nodes() -> st.SearchStrategy[Case]:
    """int8, of each kind, LSTMs without and with a projection, and in TFLM's arithmetic."""
    nodes = st.one_of(
        gru_nodes(DType.INT8),
        lstm_nodes(DType.INT8, projected=False, plain=True),
        lstm_nodes(DType.INT8, projected=True, plain=True),
        lstm_nodes(DType.INT8, projected=False, tflm=True),
        rnn_nodes(DType.INT8),
    )
    return st.one_of(nodes, *[nodes.map(without_lowest)] * 3)
