# SPDX-License-Identifier: Apache-2.0
"""Networks of unusual ranges: clamps, constants, small and large outputs, tiny and huge inputs."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.networks.network import IMAGES, ROWS, SERIES, Theme, conv, conv1d, linear, normal, uniform


def _and_a_clamp(y: torch.Tensor, low: float, high: float) -> tuple[torch.Tensor, torch.Tensor]:
    return y * 0.5, y.clamp(low, high)


def _scaled_linear(gain: float) -> nn.Module:
    layer = nn.Linear(8, 8, bias=False)
    with torch.no_grad():
        layer.weight.mul_(gain)
    return layer


def _uneven() -> nn.Module:
    layer = nn.Conv2d(3, 4, 3, padding=1)
    with torch.no_grad():
        layer.weight.mul_(torch.tensor([0.02, 0.3, 2.0, 15.0]).reshape(4, 1, 1, 1))
    return layer


def _batch_norm(variance: float, channels: int = 3) -> nn.Module:
    layer = nn.BatchNorm2d(channels)
    assert layer.running_var is not None
    layer.running_var.fill_(variance)
    return layer


# ---------------------------------------------------------------- clamps

CLAMPS = Theme("clamps")
add = CLAMPS.add

add("clamp of the input", ROWS, lambda m, x: m.a(x.clamp(-0.5, 0.5)), a=linear())
add("clamp of the input alone", uniform(8), lambda m, x: x.clamp(5.0, 6.0))
add("clamp above the range", ROWS, lambda m, x: torch.sigmoid(m.a(x)).clamp(5.0, 6.0) + x, a=linear())
add("clamp below the range", ROWS, lambda m, x: torch.sigmoid(m.a(x)).clamp(-3.0, -2.0), a=linear())
add("clamp reaching out of the range", ROWS, lambda m, x: torch.sigmoid(m.a(x)).clamp(0.8, 3.0), a=linear())
add("clamp_min above the range", ROWS, lambda m, x: torch.tanh(m.a(x)).clamp_min(1.5), a=linear())
add(
    "clamp above the range of what is read twice",
    ROWS,
    lambda m, x: _and_a_clamp(m.a(x), 30.0, 40.0),
    a=linear(),
)
add("clamp to a sliver", ROWS, lambda m, x: m.a(m.b(x).clamp(0.0, 0.01)), a=linear(), b=linear())
add("clamp behind a layer to a sliver", ROWS, lambda m, x: m.a(x).clamp(0.10, 0.12), a=linear())
add("slice, then clamp to a sliver", ROWS, lambda m, x: m.a(x)[:, :4].clamp(0.0, 0.5), a=linear(gain=20.0))
add(
    "pool, then clamp to a sliver",
    IMAGES,
    lambda m, x: F.max_pool2d(m.a(x), 2).clamp(0.0, 0.5),
    a=conv(gain=20.0),
)
add(
    "average pool, then clamp to a sliver",
    IMAGES,
    lambda m, x: F.avg_pool2d(m.a(x), 2).clamp(-0.2, 0.2),
    a=conv(gain=20.0),
)
add(
    "reshape, then relu6 of large values",
    ROWS,
    lambda m, x: F.relu6(m.a(x).reshape(1, 2, 4)),
    a=linear(gain=50.0),
)
add(
    "cat, then relu6 of large values",
    ROWS,
    lambda m, x: F.relu6(torch.cat([m.a(x), x], 1)),
    a=linear(gain=50.0),
)
add("hardtanh between layers", ROWS, lambda m, x: m.b(F.hardtanh(m.a(x))), a=linear(gain=8.0), b=linear())
add(
    "relu6 behind a layer that rarely gets there", ROWS,
    lambda m, x: F.relu6(m.a(x)), a=linear(gain=0.2),
)  # fmt: skip
add("relu of what is negative throughout but little", ROWS, lambda m, x: F.relu(m.a(x) - 1.5), a=linear())
add("a clamp and another reader", ROWS, lambda m, x: _and_a_clamp(m.a(x), 0.0, 0.05), a=linear(gain=4.0))
add("a clamp of a clamp", ROWS, lambda m, x: m.a(x).clamp(-1.0, 1.0).clamp(0.9, 5.0), a=linear(gain=4.0))
add("clamp_min above most", ROWS, lambda m, x: torch.clamp_min(m.a(x), 2.0), a=linear(gain=4.0))
add("clamp_max below most", ROWS, lambda m, x: torch.clamp_max(m.a(x), -2.0), a=linear(gain=4.0))
add(
    "threshold",
    ROWS,
    lambda m, x: F.threshold(m.a(x), 0.1, -1.0),
    a=linear(),
)


# ---------------------------------------------------------------- constants

CONSTANTS = Theme("far constants")
add = CONSTANTS.add

add("pad with a far constant", SERIES, lambda m, x: m.a(F.pad(x, (2, 2), value=30.0)), a=conv1d(padding=0))
add("pad with a near constant", SERIES, lambda m, x: m.a(F.pad(x, (2, 2), value=1.0)), a=conv1d(padding=0))
add(
    "pad with minus ten before a pool", IMAGES,
    lambda m, x: F.max_pool2d(F.pad(m.a(x), (1, 1, 1, 1), value=-10.0), 2), a=conv(),
)  # fmt: skip
add(
    "pad outside the range with zeros",
    uniform(8, low=3.0, high=4.0),
    lambda m, x: m.a(F.pad(x, (0, 4))),
    a=linear(12),
)
add("add a far constant", ROWS, lambda m, x: m.a(x) + 1013.0, a=linear())
add("add a far constant and take it away", ROWS, lambda m, x: (m.a(x) + 20.0) - 20.0, a=linear())
add(
    "subtract the air pressure",
    normal(8, scale=5.0, offset=1013.0),
    lambda m, x: m.a((x - 1013.0) / 5.0),
    a=linear(),
)
add("inputs far from zero", uniform(8, low=20.0, high=21.0), lambda m, x: m.a(x), a=linear())
add("times a thousand", ROWS, lambda m, x: m.a(x) * 1000.0, a=linear())
add("times a thousandth", ROWS, lambda m, x: m.a(x) * 0.001, a=linear())
add("divided by a hundred", ROWS, lambda m, x: torch.tanh(m.a(x) / 100.0), a=linear())
add("a constant divided", uniform(8, low=0.5, high=4.0), lambda m, x: m.a(3.0 / x), a=linear())
add("a constant without a part in it", ROWS, lambda m, x: 7.0 - m.a(x), a=linear())
add("a bias far from the weights", ROWS, lambda m, x: m.a(x), a=linear(bias=100.0))
add(
    "a bias far from the weights, relu",
    ROWS,
    lambda m, x: m.b(F.relu(m.a(x))),
    a=linear(bias=-1.0),
    b=linear(),
)
add("full of one value", ROWS, lambda m, x: m.a(torch.full_like(x, 2.5)) + x, a=linear())


# ---------------------------------------------------------------- outputs

OUTPUTS = Theme("small and large outputs")
add = OUTPUTS.add

add("sigmoid far below", ROWS, lambda m, x: torch.sigmoid(m.a(x) - 6.0), a=linear())
add("sigmoid far above", ROWS, lambda m, x: torch.sigmoid(m.a(x) + 6.0), a=linear())
add("sigmoid", ROWS, lambda m, x: torch.sigmoid(m.a(x)), a=linear(gain=4.0))
add("sigmoid that gates", ROWS, lambda m, x: x * torch.sigmoid(m.a(x) - 5.0), a=linear())
add("tanh of little", ROWS, lambda m, x: torch.tanh(m.a(x) * 0.01), a=linear())
add("tanh of much", ROWS, lambda m, x: torch.tanh(m.a(x)), a=linear(gain=20.0))
add("softmax over ten", ROWS, lambda m, x: m.a(x).softmax(-1), a=linear(8, 10, gain=6.0))
add("softmax over 360", ROWS, lambda m, x: m.a(x).softmax(-1), a=linear(8, 360, gain=2.0))
add("softmax over 360, nearly even", ROWS, lambda m, x: m.a(x).softmax(-1), a=linear(8, 360, gain=0.3))
add("log_softmax over ten", ROWS, lambda m, x: m.a(x).log_softmax(-1), a=linear(8, 10, gain=2.0))
add("log_softmax below -16", ROWS, lambda m, x: m.a(x).log_softmax(-1), a=linear(8, 10, gain=30.0))
add("log_softmax of little", ROWS, lambda m, x: m.a(x).log_softmax(-1), a=linear(8, 10, gain=0.05))
add("hardsigmoid far below", ROWS, lambda m, x: F.hardsigmoid(m.a(x) - 2.6), a=linear(gain=0.5))
add("outputs of different size", ROWS, lambda m, x: (m.a(x), 200.0 * m.b(x)), a=linear(gain=0.01), b=linear())
add("softmax, then a layer", ROWS, lambda m, x: m.b(m.a(x).softmax(-1)), a=linear(8, 64), b=linear(64, 4))
add("gelu of little", ROWS, lambda m, x: F.gelu(m.a(x)), a=linear(gain=0.02))
add("elu, mostly negative", ROWS, lambda m, x: F.elu(m.a(x) - 3.0), a=linear())
add("softplus far below", ROWS, lambda m, x: F.softplus(m.a(x) - 5.0), a=linear())
add("silu", ROWS, lambda m, x: m.b(F.silu(m.a(x))), a=linear(gain=3.0), b=linear())
add("hardswish", IMAGES, lambda m, x: m.b(F.hardswish(m.a(x))), a=conv(gain=4.0), b=conv(4, 4))
add("mish and leaky_relu", ROWS, lambda m, x: F.leaky_relu(m.b(F.mish(m.a(x))), 0.01), a=linear(), b=linear())
add("exp", ROWS, lambda m, x: torch.exp(m.a(x)), a=linear(gain=0.5))
add("exp of little", ROWS, lambda m, x: torch.exp(m.a(x) - 6.0), a=linear(gain=0.5))
add("log of what is positive", uniform(8, low=0.2, high=5.0), lambda m, x: m.a(torch.log(x)), a=linear())
add("square root", uniform(8, high=4.0), lambda m, x: m.a(torch.sqrt(x)), a=linear())
add("a reciprocal square root", uniform(8, low=0.3, high=4.0), lambda m, x: m.a(torch.rsqrt(x)), a=linear())
add("squares and their sum", ROWS, lambda m, x: torch.sqrt((m.a(x) ** 2).sum(-1) + 0.1), a=linear())
add("a quotient", (ROWS, uniform(8, low=1.0, high=3.0)), lambda m, x, y: m.a(x) / y, a=linear())
add("cosine and sine", ROWS, lambda m, x: torch.cos(m.a(x)) + torch.sin(x), a=linear())
add("absolute values", ROWS, lambda m, x: m.b(m.a(x).abs()), a=linear(), b=linear())


# ---------------------------------------------------------------- tiny and huge

SIZES = Theme("tiny and huge values")
add = SIZES.add

add("tiny inputs", normal(8, scale=1e-5), lambda m, x: m.a(x), a=lambda: nn.Linear(8, 8, bias=False))
add("tinier inputs", normal(8, scale=1e-8), lambda m, x: m.a(x), a=lambda: nn.Linear(8, 8, bias=False))
add(
    "tiny values between",
    ROWS,
    lambda m, x: m.b(m.a(x) * 1e-6) * 1e6,
    a=linear(),
    b=lambda: nn.Linear(8, 8, bias=False),
)
add("tiny weights", ROWS, lambda m, x: m.a(x), a=lambda: _scaled_linear(1e-6))
add(
    "tiny weights and large ones",
    ROWS,
    lambda m, x: m.b(m.a(x)),
    a=lambda: _scaled_linear(1e-5),
    b=lambda: _scaled_linear(1e5),
)
add("huge inputs", normal(8, scale=1e6), lambda m, x: m.a(x), a=linear())
add("huge inputs, huge weights", normal(8, scale=1e6), lambda m, x: m.a(x), a=linear(gain=1e6))
add("mean over huge values", normal(4, 16, scale=1e5, offset=3e5), lambda m, x: m.a(x.mean(-1)), a=linear(4))
add("sum over many", SERIES, lambda m, x: m.a(F.relu(m.b(x)).sum(-1)), a=linear(4), b=conv1d())
add(
    "logarithm of tiny powers",
    uniform(8, low=1e-7, high=1e-5),
    lambda m, x: torch.log10(x),
)
add(
    "matrix product of huge and tiny",
    (normal(6, 8, scale=1e4), normal(8, 6, scale=1e-5)),
    lambda m, x, y: x @ y,
)
add(
    "channels of very different size",
    IMAGES,
    lambda m, x: m.b(F.relu(m.a(x))),
    a=_uneven,
    b=conv(4, 4),
)
add(
    "inputs of very different size",
    (ROWS, normal(8, scale=300.0)),
    lambda m, x, y: m.a(x) + m.b(y),
    a=linear(),
    b=linear(gain=0.001),
)
add("a residual fifty times as large", ROWS, lambda m, x: 50.0 * x + m.a(x), a=linear())
add("a residual a fiftieth as large", ROWS, lambda m, x: 0.02 * x + m.a(x), a=linear())
add("squares of huge values", normal(8, scale=1000.0), lambda m, x: x * x)
add("a batch norm of tiny variance", IMAGES, lambda m, x: m.n(x), n=lambda: _batch_norm(1e-6))
add(
    "a batch norm of tiny variance behind a layer",
    normal(3, 8, 8, scale=1e-3),
    lambda m, x: F.relu(m.n(m.a(x))),
    a=conv(bias=False),
    n=lambda: _batch_norm(1e-6, 4),
)


THEMES = (CLAMPS, CONSTANTS, OUTPUTS, SIZES)
