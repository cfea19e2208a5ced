# SPDX-License-Identifier: Apache-2.0
"""int8 recurrent layers with weights of int16 (tinyet_dsp_gates.h): twice the flash, and less to widen."""

from __future__ import annotations

from tinyet.boards.cpus import Target
from tinyet.ir import Node
from tinyet.ops import gru, lstm, rnn
from tinyet.ops.shared.claims_of_recurrent import of_function, wide
from tinyet.opset import Call, Claim, Kernel
from tinyet.opset.kernel import Lower, Refuse, accept_all


def kernel(name: str, lower: Lower, claim: Claim, refuse: Refuse = accept_all) -> Kernel:
    header, source = f"tinyet_dsp_{name}.h", f"tinyet_dsp_{name}_s8.c"
    return Kernel(f"tinyet_dsp_{name}_s8", "s8", lower, (header,), (source,), refuse, "cortex_m", claim=claim)


def lower_lstm(node: Node, _target: Target) -> Call:
    return lstm.lower_wide(node, "tinyet_dsp_lstm_s8")


def lower_gru(node: Node, _target: Target) -> Call:
    return gru.layer_call(node, "tinyet_dsp_gru_s8", wide=True)


def lower_rnn(node: Node, _target: Target) -> Call:
    return rnn.layer_call(node, "tinyet_dsp_rnn_s8", wide=True)


LSTM = (kernel("lstm", lower_lstm, wide(lstm.sizes_of, lstm.parts), lstm.refuse_projected),)
GRU = (kernel("gru", lower_gru, wide(gru.sizes_of, gru.parts)),)
RNN = (kernel("rnn", lower_rnn, of_function(wide(rnn.sizes_of, rnn.parts), rnn.is_relu)),)
