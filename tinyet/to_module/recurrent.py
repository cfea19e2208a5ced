# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers: torch's own, and SVDF as what it is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from tinyet.errors import RefusedError
from tinyet.fx.recurrent_ops import GRU, LSTM, RNN
from tinyet.ir import Array
from tinyet.ops import gru as gru_op
from tinyet.ops import lstm as lstm_op
from tinyet.ops import rnn as rnn_op
from tinyet.ops import svdf as svdf_op
from tinyet.ops.gru import Gru
from tinyet.ops.lstm import Lstm
from tinyet.ops.rnn import Rnn
from tinyet.ops.shared.recurrent import Recurrent
from tinyet.ops.svdf import Svdf
from tinyet.to_module.build import Build, Value
from tinyet.to_module.form import plain
from tinyet.to_module.network import Function, parameter

Parameters = dict[str, nn.Parameter]


class Layer(nn.Module):
    """A recurrent layer in one direction: x (N, T, I) and its states (N, H), or none for zeros → y (N, T, H) and its
    states behind the last step.

    inner: torch's layer, of batches first. backwards: its operator where steps are taken from the last to the first,
    of x, the states and the layer's parameters.
    """

    def __init__(self, inner: nn.RNNBase, backwards: Callable[..., Any] | None) -> None:
        super().__init__()
        self.inner = inner
        self.backwards = backwards
        self.sizes = [inner.proj_size or inner.hidden_size, inner.hidden_size]
        self.is_lstm = isinstance(inner, nn.LSTM)

    def forward(self, x: torch.Tensor, *states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if self.backwards is not None:
            kinds = self.sizes[: 1 + self.is_lstm]
            given = states or tuple(x.new_zeros(len(x), size) for size in kinds)
            return tuple(self.backwards(self.inner, x, *given)[: 1 + len(kinds)])
        first = tuple(state.unsqueeze(0) for state in states)
        known = (first if self.is_lstm else first[0],) if first else ()
        y, last = self.inner(x, *known)
        return (y, *(state.squeeze(0) for state in (last if self.is_lstm else (last,))))


def _give(
    b: Build, inner: nn.RNNBase, weights: Mapping[str, Array | None], states: tuple[int, ...],
    backwards: Callable[..., Any],
) -> None:  # fmt: skip
    """weights: by torch's names; None stands for zeros. states: the node's inputs that are its first states."""
    attrs = b.node.attrs
    assert isinstance(attrs, Recurrent)
    own = dict(inner.named_parameters())
    for name, data in weights.items():
        if f"{name}_l0" in own:
            zeros = np.zeros(tuple(own[f"{name}_l0"].shape), np.float32)
            setattr(inner, f"{name}_l0", parameter(zeros if data is None else data))
    layer = Layer(inner, backwards if attrs.reverse else None)
    firsts = [b.value(index) for index in states]
    known = [value for value in firsts if value.data is None or np.any(value.data)]
    given = [b.take(0), *([b.take(index) for index in states] if known else [])]
    made = b.step(layer, given, "", 1 + len(states))
    for position, slot in enumerate(made if attrs.sequence else made[1:]):
        b.give(slot, plain(len(b.node.outputs[position].shape)), position=position)


def lstm(b: Build) -> None:
    attrs = b.attrs(Lstm)
    if attrs.cell_clip is not None:
        raise RefusedError(
            "keeps its cell within bounds, as no layer of torch does", "train it without cell_clip"
        )
    w_ih, w_hh = b.array(lstm_op.W_IH, "weights"), b.array(lstm_op.W_HH, "recurrent weights")
    bias, w_hr = b.optional_array(lstm_op.BIAS, "bias"), b.optional_array(lstm_op.W_HR, "projection")
    units = w_ih.shape[0] // 4
    projected = 0 if w_hr is None else w_hr.shape[0]
    inner = nn.LSTM(w_ih.shape[1], units, bias=bias is not None, batch_first=True, proj_size=projected)
    found = {"weight_ih": w_ih, "weight_hh": w_hh, "bias_ih": bias, "bias_hh": None, "weight_hr": w_hr}
    _give(b, inner, found, (lstm_op.H, lstm_op.C), _lstm_backwards)


def _lstm_backwards(inner: Any, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> Any:
    bias = inner.bias_ih_l0 + inner.bias_hh_l0 if inner.bias else None
    w_hr = inner.weight_hr_l0 if inner.proj_size else None
    return LSTM(x, h, c, inner.weight_ih_l0, inner.weight_hh_l0, bias, w_hr, True)


def gru(b: Build) -> None:
    b.attrs(Gru)
    w_ih, w_hh = b.array(gru_op.W_IH, "weights"), b.array(gru_op.W_HH, "recurrent weights")
    biases = b.optional_array(gru_op.B_IH, "bias"), b.optional_array(gru_op.B_HH, "recurrent bias")
    some = any(bias is not None for bias in biases)
    inner = nn.GRU(w_ih.shape[1], w_ih.shape[0] // 3, bias=some, batch_first=True)
    found = {"weight_ih": w_ih, "weight_hh": w_hh, "bias_ih": biases[0], "bias_hh": biases[1]}
    _give(b, inner, found, (gru_op.H,), _gru_backwards)


def _gru_backwards(inner: Any, x: torch.Tensor, h: torch.Tensor) -> Any:
    biases = (inner.bias_ih_l0, inner.bias_hh_l0) if inner.bias else (None, None)
    return GRU(x, h, inner.weight_ih_l0, inner.weight_hh_l0, *biases, True)


def rnn(b: Build) -> None:
    attrs = b.attrs(Rnn)
    w_ih, w_hh = b.array(rnn_op.W_IH, "weights"), b.array(rnn_op.W_HH, "recurrent weights")
    bias = b.optional_array(rnn_op.BIAS, "bias")
    inner = nn.RNN(
        w_ih.shape[1],
        w_ih.shape[0],
        nonlinearity=attrs.nonlinearity,
        bias=bias is not None,
        batch_first=True,
    )
    found = {"weight_ih": w_ih, "weight_hh": w_hh, "bias_ih": bias, "bias_hh": None}
    _give(b, inner, found, (rnn_op.H,), _rnn_backwards)


def _rnn_backwards(inner: Any, x: torch.Tensor, h: torch.Tensor) -> Any:
    bias = inner.bias_ih_l0 + inner.bias_hh_l0 if inner.bias else None
    return RNN(x, h, inner.weight_ih_l0, inner.weight_hh_l0, bias, inner.nonlinearity, True)


def svdf(b: Build) -> None:
    """A fully connected layer whose newest results go behind those of the frames before, and a convolution over them,
    of as many filters a group as the rank is."""
    attrs = b.attrs(Svdf)
    w_feature, w_time = b.array(svdf_op.W_FEATURE, "weights"), b.array(svdf_op.W_TIME, "weights of time")
    bias = b.optional_array(svdf_op.BIAS, "bias")
    x, state = b.take(svdf_op.X), b.take(svdf_op.STATE)
    (filters, memory), batch = w_time.shape, x.shape[0]
    feature = nn.Linear(w_feature.shape[1], filters, False)
    feature.weight = parameter(w_feature)
    units = filters // attrs.rank
    time = nn.Conv1d(filters, units, memory, groups=units, bias=bias is not None)
    time.weight = parameter(w_time.reshape(units, attrs.rank, memory))
    if bias is not None:
        time.bias = parameter(bias)
    (newest,) = b.step(feature, [x], "feature")
    row = Value(newest, (batch, filters), plain(2))
    kept = b.step(Function(_Remembering(memory), 2), [row, state], "memory", 2)
    frames = Value(kept[0], (batch, filters, memory), plain(3))
    (answers,) = b.step(time, [frames], "time")
    (made,) = b.step(nn.Flatten(), [Value(answers, (batch, units, 1), plain(3))])
    b.give(made, plain(2), clamp=attrs.clamp)
    b.give(kept[1], plain(2), position=1)


class _Remembering:
    """The newest value of each filter (N, F) behind those before it (N, F * memory): (N, F, memory), and flat."""

    def __init__(self, memory: int) -> None:
        self.memory = memory

    def __call__(self, newest: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        before = state.reshape(-1, newest.shape[1], self.memory)
        frames = torch.cat([before[:, :, 1:], newest.unsqueeze(2)], 2)
        return frames, frames.reshape(-1, newest.shape[1] * self.memory)
