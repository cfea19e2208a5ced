# SPDX-License-Identifier: Apache-2.0
"""Networks over sequences: masks, attention, normalisation, embeddings, recurrent layers."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.networks.network import IMAGES, ROWS, SERIES, WORDS, Theme, conv1d, linear, normal, tokens


def _scores(m: Any, x: torch.Tensor) -> torch.Tensor:
    scores: torch.Tensor = m.a(x) @ m.b(x).transpose(1, 2) / math.sqrt(8)
    return scores


def _embedding(rows: int, *, uneven: bool = False) -> nn.Module:
    layer = nn.Embedding(rows, 8)
    with torch.no_grad():
        layer.weight.uniform_(-1, 1)
        if uneven:
            layer.weight.mul_(torch.logspace(-1.5, 1.0, rows)[:, None])
    return layer


def _step(m: Any, x: torch.Tensor, h: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    state = torch.tanh(m.a(x) + h)
    return m.b(state), state


def _projected(m: Any, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y, (h, c) = m.r(m.a(x), (h.unsqueeze(0), c.unsqueeze(0)))
    return y, h[0], c[0]


def _causal(m: Any, x: torch.Tensor) -> torch.Tensor:
    y = F.relu(m.a(F.pad(x, (2, 0))))
    result: torch.Tensor = x + m.b(F.pad(y, (4, 0)))
    return result


MASKS = Theme("masks")
add = MASKS.add

CAUSAL = torch.ones(6, 6).tril().bool()
BEFORE = torch.full((6, 6), -math.inf).triu(1)


for fill in (-math.inf, -1e9, -1e4, -100.0):

    def filled(m: Any, x: torch.Tensor, fill: float = fill) -> torch.Tensor:
        return _scores(m, x).masked_fill(~CAUSAL, fill).softmax(-1) @ x

    add(f"masked_fill with {fill:g}", WORDS, filled, a=linear(), b=linear())

add(
    "a sum with minus infinity",
    WORDS,
    lambda m, x: (_scores(m, x) + BEFORE).softmax(-1) @ x,
    a=linear(),
    b=linear(),
)
add(
    "a sum with -1e4",
    WORDS,
    lambda m, x: (_scores(m, x) + BEFORE.clamp(-1e4)).softmax(-1) @ x,
    a=linear(),
    b=linear(),
)
add(
    "where with minus infinity",
    WORDS,
    lambda m, x: torch.where(CAUSAL, _scores(m, x), -math.inf).softmax(-1),
    a=linear(),
    b=linear(),
)
add(
    "a masked softmax over channels",
    ROWS,
    lambda m, x: m.a(x).masked_fill(torch.arange(8) > 4, -1e4).softmax(-1),
    a=linear(gain=4.0),
)
add(
    "a masked log_softmax",
    ROWS,
    lambda m, x: m.a(x).masked_fill(torch.arange(8) > 4, -8.0).log_softmax(-1),
    a=linear(gain=2.0),
)
add("a mask of zeros", WORDS, lambda m, x: m.a(x.masked_fill(torch.arange(8) > 5, 0.0)), a=linear())
add(
    "a masked maximum",
    WORDS,
    lambda m, x: m.a(x).masked_fill(~CAUSAL[:, :1].expand(6, 8) & (torch.arange(8) > 2), -1e4).amax(-1),
    a=linear(),
)
add(
    "causal attention",
    WORDS,
    lambda m, x: F.scaled_dot_product_attention(m.a(x), m.b(x), x, is_causal=True),
    a=linear(),
    b=linear(),
)
add(
    "attention with a boolean mask",
    WORDS,
    lambda m, x: F.scaled_dot_product_attention(m.a(x), m.b(x), x, attn_mask=CAUSAL),
    a=linear(),
    b=linear(),
)
add(
    "attention with a mask of minus infinity",
    WORDS,
    lambda m, x: F.scaled_dot_product_attention(m.a(x), m.b(x), x, attn_mask=BEFORE),
    a=linear(),
    b=linear(),
)
add(
    "MultiheadAttention with a mask", WORDS,
    lambda m, x: m.a(x, x, x, attn_mask=BEFORE, need_weights=False)[0],
    a=lambda: nn.MultiheadAttention(8, 2, batch_first=True),
)  # fmt: skip
add(
    "MultiheadAttention with a boolean mask", WORDS,
    lambda m, x: m.a(x, x, x, attn_mask=~CAUSAL, need_weights=False)[0],
    a=lambda: nn.MultiheadAttention(8, 2, batch_first=True),
)  # fmt: skip


ATTENTION = Theme("attention and normalisation")
add = ATTENTION.add

add(
    "attention",
    WORDS,
    lambda m, x: F.scaled_dot_product_attention(m.a(x), m.b(x), m.c(x)),
    a=linear(),
    b=linear(),
    c=linear(),
)
add(
    "attention with sharp scores",
    WORDS,
    lambda m, x: F.scaled_dot_product_attention(m.a(x), m.b(x), x),
    a=linear(gain=6.0),
    b=linear(gain=6.0),
)
add(
    "MultiheadAttention", WORDS, lambda m, x: m.a(x, x, x, need_weights=False)[0],
    a=lambda: nn.MultiheadAttention(8, 2, batch_first=True),
)  # fmt: skip
add("layer norm", WORDS, lambda m, x: m.b(m.n(m.a(x))), a=linear(), b=linear(), n=lambda: nn.LayerNorm(8))
add("layer norm of tiny variance", normal(6, 8, scale=1e-3), lambda m, x: m.n(x), n=lambda: nn.LayerNorm(8))
add("layer norm of far values", normal(6, 8, offset=10.0), lambda m, x: m.n(x), n=lambda: nn.LayerNorm(8))
add("layer norm of huge values", normal(6, 8, scale=1e4), lambda m, x: m.n(x), n=lambda: nn.LayerNorm(8))
add("group norm", IMAGES, lambda m, x: m.n(x), n=lambda: nn.GroupNorm(1, 3))
add("instance norm", IMAGES, lambda m, x: m.n(x), n=lambda: nn.InstanceNorm2d(3, affine=True))
add("rms norm", WORDS, lambda m, x: m.n(m.a(x)), a=linear(), n=lambda: nn.RMSNorm(8, eps=1e-5))
add("normalised rows", WORDS, lambda m, x: F.normalize(m.a(x), dim=-1), a=linear())
add(
    "cosine similarity",
    (ROWS, ROWS),
    lambda m, x, y: F.cosine_similarity(m.a(x), m.b(y)),
    a=linear(),
    b=linear(),
)
add("an embedding", tokens(6, below=11), lambda m, x: m.a(m.e(x)), a=linear(), e=lambda: _embedding(11))
add(
    "an embedding, rows of different size",
    tokens(6, below=11),
    lambda m, x: m.a(m.e(x)),
    a=linear(),
    e=lambda: _embedding(11, uneven=True),
)
add(
    "an embedding and positions",
    tokens(6, below=11),
    lambda m, x: m.a(m.e(x) + m.p.weight),
    a=linear(),
    e=lambda: _embedding(11),
    p=linear(8, 6, gain=0.05),
)
add(
    "GRU",
    normal(4, 5),
    lambda m, x: m.a(m.r(x.transpose(1, 2))[0][:, -1]),
    a=linear(8, 3),
    r=lambda: nn.GRU(4, 8, batch_first=True),
)
add(
    "GRU both ways, without biases",
    normal(10, 4),
    lambda m, x: m.a(m.r(x)[0].mean(1)),
    a=linear(16, 3),
    r=lambda: nn.GRU(4, 8, bidirectional=True, batch_first=True, bias=False),
)
add(
    "LSTM",
    normal(4, 4),
    lambda m, x: m.a(m.r(x)[0][:, -1]),
    a=linear(8, 3),
    r=lambda: nn.LSTM(4, 8, batch_first=True),
)
add(
    "LSTM of two layers, both ways",
    normal(5, 4),
    lambda m, x: m.a(m.r(x)[0][:, -1]),
    a=linear(16, 3),
    r=lambda: nn.LSTM(4, 8, 2, bidirectional=True, batch_first=True),
)
add(
    "LSTM with a projection, from a state to a state",
    (normal(6, 8), normal(4, scale=0.3), normal(8, scale=0.5)),
    _projected,
    a=linear(),
    r=lambda: nn.LSTM(8, 8, proj_size=4, batch_first=True),
)
add(
    "RNN of two layers",
    normal(10, 4),
    lambda m, x: m.a(m.r(x)[1][-1]),
    a=linear(8, 3),
    r=lambda: nn.RNN(4, 8, 2, batch_first=True),
)
add(
    "a cell of ReLU",
    (ROWS, normal(8, scale=0.3)),
    lambda m, x, h: m.r(m.a(x), h),
    a=linear(),
    r=lambda: nn.RNNCell(8, 8, nonlinearity="relu"),
)
add(
    "a state that is passed",
    (ROWS, normal(8, scale=0.3)),
    _step,
    a=linear(),
    b=linear(),
)
add("a gated unit", WORDS, lambda m, x: F.glu(m.a(x), -1), a=linear(8, 16))
add(
    "causal convolutions",
    SERIES,
    _causal,
    a=conv1d(padding=0),
    b=conv1d(dilation=2, padding=0),
)


THEMES = (MASKS, ATTENTION)
