# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers as operators of torch: one call for all steps of one direction of one layer.

`tinyet::lstm`, `tinyet::gru` and `tinyet::rnn` take batches first: x (N, T, I), the state before the first step h
(N, R), for the LSTM the cell c (N, H), then the weights as torch's layers hold them (w_ih, w_hh, biases or None; a
projection w_hr or None), of several gates one above the other. They give y (N, T, R), the state behind each step, and
the last state; the LSTM the last cell, and the cells behind each step (N, T, H), too, which calibration wants to see.
reverse: steps are taken from the last to the first, and y keeps the order of x.

All of them can be differentiated: backwards, the steps are computed once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional as F

Maybe = torch.Tensor | None


def _order(steps: int, reverse: bool) -> Sequence[int]:
    return range(steps - 1, -1, -1) if reverse else range(steps)


def lstm_steps(
    x: torch.Tensor, h: torch.Tensor, c: torch.Tensor, w_ih: torch.Tensor, w_hh: torch.Tensor, bias: Maybe,
    w_hr: Maybe, reverse: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """Gates in torch's order: i, f, g, o."""
    sums = F.linear(x, w_ih, bias)
    states, cells = [h] * x.shape[1], [c] * x.shape[1]
    for t in _order(x.shape[1], reverse):
        i, f, g, o = (sums[:, t] + F.linear(h, w_hh)).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        if w_hr is not None:
            h = F.linear(h, w_hr)
        states[t], cells[t] = h, c
    return torch.stack(states, 1), h, c, torch.stack(cells, 1)


def gru_steps(
    x: torch.Tensor, h: torch.Tensor, w_ih: torch.Tensor, w_hh: torch.Tensor, b_ih: Maybe, b_hh: Maybe,
    reverse: bool,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Gates in torch's order: r, z, n; r acts behind the product with w_hh and its bias."""
    sums = F.linear(x, w_ih, b_ih)
    states = [h] * x.shape[1]
    for t in _order(x.shape[1], reverse):
        r_x, z_x, n_x = sums[:, t].chunk(3, 1)
        r_h, z_h, n_h = F.linear(h, w_hh, b_hh).chunk(3, 1)
        z = torch.sigmoid(z_x + z_h)
        h = (1 - z) * torch.tanh(n_x + torch.sigmoid(r_x + r_h) * n_h) + z * h
        states[t] = h
    return torch.stack(states, 1), h


def rnn_steps(
    x: torch.Tensor, h: torch.Tensor, w_ih: torch.Tensor, w_hh: torch.Tensor, bias: Maybe,
    nonlinearity: str, reverse: bool,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """nonlinearity: tanh or relu."""
    sums = F.linear(x, w_ih, bias)
    act = torch.tanh if nonlinearity == "tanh" else torch.relu
    states = [h] * x.shape[1]
    for t in _order(x.shape[1], reverse):
        h = act(sums[:, t] + F.linear(h, w_hh))
        states[t] = h
    return torch.stack(states, 1), h


_Steps = Callable[..., tuple[torch.Tensor, ...]]


@torch.library.custom_op("tinyet::lstm", mutates_args=())
def lstm(
    x: torch.Tensor, h: torch.Tensor, c: torch.Tensor, w_ih: torch.Tensor, w_hh: torch.Tensor,
    bias: torch.Tensor | None, w_hr: torch.Tensor | None, reverse: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    return lstm_steps(x, h, c, w_ih, w_hh, bias, w_hr, reverse)


@torch.library.custom_op("tinyet::gru", mutates_args=())
def gru(
    x: torch.Tensor, h: torch.Tensor, w_ih: torch.Tensor, w_hh: torch.Tensor, b_ih: torch.Tensor | None,
    b_hh: torch.Tensor | None, reverse: bool,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    return gru_steps(x, h, w_ih, w_hh, b_ih, b_hh, reverse)


@torch.library.custom_op("tinyet::rnn", mutates_args=())
def rnn(
    x: torch.Tensor, h: torch.Tensor, w_ih: torch.Tensor, w_hh: torch.Tensor, bias: torch.Tensor | None,
    nonlinearity: str, reverse: bool,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    return rnn_steps(x, h, w_ih, w_hh, bias, nonlinearity, reverse)


def _shapes(x: torch.Tensor, *states: torch.Tensor) -> list[torch.Tensor]:
    """Placeholders for y and the last states, from those for x and the first states."""
    y = x.new_empty((*x.shape[:2], states[0].shape[1]))
    return [y, *(torch.empty_like(state) for state in states)]


def _lstm_shapes(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor, *_: object) -> tuple[torch.Tensor, ...]:
    return (*_shapes(x, h, c), x.new_empty((*x.shape[:2], c.shape[1])))


def _other_shapes(x: torch.Tensor, h: torch.Tensor, *_: object) -> tuple[torch.Tensor, ...]:
    return tuple(_shapes(x, h))


def _derive(op: Any, steps: _Steps) -> None:
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:  # noqa: ARG001 - torch's signature
        ctx.options = [None if isinstance(v, torch.Tensor) else v for v in inputs]
        ctx.save_for_backward(*(v if isinstance(v, torch.Tensor) else None for v in inputs))

    def backward(ctx: Any, *grads: Maybe) -> tuple[Maybe, ...]:
        with torch.enable_grad():
            saved = [None if v is None else v.detach().requires_grad_() for v in ctx.saved_tensors]
            given = [o if v is None else v for v, o in zip(saved, ctx.options, strict=True)]
            results = steps(*given)
        known = [(y, grad) for y, grad in zip(results, grads, strict=True) if grad is not None]
        found = iter(
            torch.autograd.grad(
                [y for y, _ in known],
                [v for v in saved if v is not None],
                [grad for _, grad in known],
                allow_unused=True,
            )
        )
        return tuple(None if v is None else next(found) for v in saved)

    op.register_autograd(backward, setup_context=setup_context)


for _op, _steps, _fake in (
    (lstm, lstm_steps, _lstm_shapes), (gru, gru_steps, _other_shapes), (rnn, rnn_steps, _other_shapes),
):  # fmt: skip
    _op.register_fake(_fake)
    _derive(_op, _steps)

LSTM, GRU, RNN = torch.ops.tinyet.lstm.default, torch.ops.tinyet.gru.default, torch.ops.tinyet.rnn.default

RECURRENT: frozenset[object] = frozenset({LSTM, GRU, RNN})
"""All of them."""

Y, H_N, C_N, CELLS = range(4)
"""Which result is which."""
