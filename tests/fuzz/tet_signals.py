# SPDX-License-Identifier: Apache-2.0
"""Small programs of operators on signals: seeds beside tet_seeds.py's."""

from __future__ import annotations

import numpy as np

from tests.ops.cases import Case
from tests.ops.signalling import case
from tinyet import ops
from tinyet.ir import Array, DType, Graph
from tinyet.ops.cast import Cast
from tinyet.ops.concat import Concat
from tinyet.ops.log_bands import LogBands
from tinyet.ops.reshape import Reshape
from tinyet.ops.samples import Samples
from tinyet.ops.signal_delay import SignalDelay
from tinyet.ops.signal_energy import SignalEnergy
from tinyet.ops.signal_fft_auto_scale import SignalFftAutoScale
from tinyet.ops.signal_filter_bank import SignalFilterBank
from tinyet.ops.signal_filter_bank_log import SignalFilterBankLog
from tinyet.ops.signal_filter_bank_spectral_subtraction import SignalFilterBankSpectralSubtraction
from tinyet.ops.signal_filter_bank_square_root import SignalFilterBankSquareRoot
from tinyet.ops.signal_framer import SignalFramer
from tinyet.ops.signal_irfft import SignalIrfft
from tinyet.ops.signal_overlap_add import SignalOverlapAdd
from tinyet.ops.signal_pcan import ENTRIES, SignalPcan
from tinyet.ops.signal_rfft import SignalRfft
from tinyet.ops.signal_stacker import SignalStacker
from tinyet.ops.signal_window import SignalWindow
from tinyet.program import Program

S16, S32, U32, F32 = DType.INT16, DType.INT32, DType.UINT32, DType.FLOAT32


def _zeros(dtype: DType, *shape: int) -> Array:
    return np.zeros(shape, dtype.numpy)


def _cases() -> dict[str, Case]:
    sound, channels, number = _zeros(S16, 4), _zeros(U32, 3), _zeros(S32)
    starts, widths = np.array([0, 1, 2], np.int16), np.array([1, 2, 1], np.int16)
    made = {
        "window": case(SignalWindow(12), [sound], [S16], [_zeros(S16, 4)]),
        "auto_scale": case(SignalFftAutoScale(), [sound], [S16, S32]),
        "energy": case(SignalEnergy(1, 2), [sound], [U32]),
        "bank": case(
            SignalFilterBank(),
            [channels],
            [U32],
            [_zeros(S16, 3), _zeros(S16, 3), starts, np.zeros(3, np.int16), widths],
        ),
        "root": case(SignalFilterBankSquareRoot(), [_zeros(U32, 3, 2), number], [U32]),
        "subtraction": case(
            SignalFilterBankSpectralSubtraction(409, 15975, 983, 15401, 819, 10, 14, False),
            [channels, channels],
            [U32, U32],
        ),
        "pcan": case(SignalPcan(6), [channels, channels], [U32], [_zeros(S16, ENTRIES)]),
        "log": case(SignalFilterBankLog(64, 3), [channels], [S16]),
        "log_bands": case(
            LogBands(8, 1.0),
            [_zeros(S16, 2, 6)],
            [S16],
            [np.linspace(0, 1, 6, dtype=np.float32), np.eye(2, 5, 1, dtype=np.float32)],
        ),
        "samples": case(Samples(3, 2048, True), [sound], [S16]),
        "delay": case(SignalDelay(), [sound, _zeros(S16, 2)], [S16, S16]),
        "framer": case(SignalFramer(5, 2), [sound, _zeros(S16, 4), number], [S16, S32, S16, S32]),
        "stacker": case(SignalStacker(1, 1), [sound, _zeros(S16, 8), number], [S16, S32, S16, S32]),
        "kept_cast": case(Cast(), [channels], [S32]),
        "words": case(Reshape((3, 1)), [channels], [U32]),
        "words_together": case(Concat(0), [channels, channels], [U32]),
    }
    for dtype in (S16, S32, F32):
        tag = dtype.suffix
        made[f"rfft_{tag}"] = case(SignalRfft(12), [_zeros(dtype, 2, 7)], [dtype])
        made[f"irfft_{tag}"] = case(SignalIrfft(10), [_zeros(dtype, 12)], [dtype])
    for dtype in (S16, F32):
        frames = _zeros(dtype, 2, 5)
        made[f"overlap_{dtype.suffix}"] = case(
            SignalOverlapAdd(2), [frames, _zeros(dtype, 3)], [dtype, dtype]
        )
    return made


def signals() -> list[Program]:
    """One a node."""
    found = []
    for name, made in _cases().items():
        node = made.node
        inputs = tuple(t for t in node.inputs if t is not None and not t.is_constant)
        graph = Graph(f"signal_{name}", inputs, node.outputs, (node,))
        found.append(Program(graph.name, ops.check_whole(graph, graph.name), None, ()))
    return found
