# SPDX-License-Identifier: Apache-2.0
"""Networks in which values come together or have several readers: concatenations, maxima, choices, sums."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tests.networks.network import IMAGES, ROWS, SERIES, Theme, conv, conv1d, linear, normal, uniform

PROPORTIONS = (1.0, 5.0, 50.0)
"""How many times as large as the other one of two values is."""


def _with_pressure(m: Any, x: torch.Tensor, p: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    features = m.a(x).mean((2, 3))
    return m.b(features), torch.cat([features, p], 1)


def _nested(m: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = m.a(x)
    inner = torch.cat([y, 6 * m.b(y)], 1)
    return m.c(inner), torch.cat([inner, 40 * y], 1)


def _heads(m: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    y = m.a(x)
    return m.b(y), m.c(y), torch.sigmoid(y)


def _sums(m: Any, x: torch.Tensor) -> torch.Tensor:
    y = m.a(x)
    z = m.b(x + y)
    result: torch.Tensor = m.c(x + y + z) + 10 * (x + y) - z
    return result


def _residuals(m: Any, x: torch.Tensor) -> torch.Tensor:
    for layer in (m.a, m.b, m.c, m.a, m.b, m.c):
        x = x + F.relu(layer(x))
    return x


def _excite(m: Any, x: torch.Tensor) -> torch.Tensor:
    y = m.a(x)
    gate = torch.sigmoid(m.c(F.relu(m.b(y.mean((2, 3))))) - 4.0)
    result: torch.Tensor = y * gate[:, :, None, None]
    return result


def _standardised(x: torch.Tensor) -> torch.Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt((centred * centred).mean(-1, keepdim=True) + 1e-3)


JOINS = Theme("concatenations")
add = JOINS.add

for factor in PROPORTIONS:
    f = factor

    def two(m: Any, x: torch.Tensor, f: float = f) -> torch.Tensor:
        return torch.cat([m.a(x), f * m.b(x)], 1)

    def head(m: Any, x: torch.Tensor, f: float = f) -> tuple[torch.Tensor, torch.Tensor]:
        y = m.a(x)
        return y.mean((2, 3)), m.c(torch.cat([y, f * m.b(y)], 1))

    def layer_behind(m: Any, x: torch.Tensor, f: float = f) -> torch.Tensor:
        joined: torch.Tensor = m.c(torch.cat([m.a(x), f * F.relu(m.b(x))], 1))
        return joined

    def itself(m: Any, x: torch.Tensor, f: float = f) -> tuple[torch.Tensor, torch.Tensor]:
        return m.a(x), torch.cat([x, f * x], 1)

    def pooled(m: Any, x: torch.Tensor, f: float = f) -> torch.Tensor:
        y = m.a(x)
        joined: torch.Tensor = m.c(torch.cat([F.max_pool2d(y, 2), f * F.avg_pool2d(m.b(y), 2)], 1))
        return joined

    def sliced(m: Any, x: torch.Tensor, f: float = f) -> tuple[torch.Tensor, torch.Tensor]:
        y = m.a(x)
        return m.b(y[:, :, ::2]), torch.cat([y[:, :, 1::2], f * y[:, :, ::2]], 1)

    def padded(m: Any, x: torch.Tensor, f: float = f) -> torch.Tensor:
        y = m.a(x)
        joined: torch.Tensor = m.c(torch.cat([F.pad(y, (0, 4)), f * m.b(x)[:, :, :20]], 1))
        return joined

    def largest(m: Any, x: torch.Tensor, f: float = f) -> tuple[torch.Tensor, torch.Tensor]:
        y = m.a(x)
        return torch.tanh(y), torch.maximum(y, f * m.b(x))

    name = f"×{factor:g}"
    add(f"cat of two layers {name}", IMAGES, two, a=conv(), b=conv())
    add(f"cat and a head beside {name}", IMAGES, head, a=conv(), b=conv(4, 4), c=conv(8, 4))
    add(f"cat before a layer {name}", IMAGES, layer_behind, a=conv(), b=conv(), c=conv(8, 4))
    add(f"cat of the input {name}", IMAGES, itself, a=conv())
    add(f"cat of pools {name}", IMAGES, pooled, a=conv(), b=conv(4, 4), c=conv(8, 4))
    add(f"cat of slices {name}", IMAGES, sliced, a=conv(), b=conv(4, 4))
    add(f"cat of pads {name}", SERIES, padded, a=conv1d(), b=conv1d(4, 4, 3, padding=3), c=conv1d(8, 4))
    add(f"maximum and a reader beside {name}", ROWS, largest, a=linear(), b=linear())

PRESSURE = normal(1, scale=4.0, offset=1013.0)

add(
    "cat with a constant",
    ROWS,
    lambda m, x: m.b(torch.cat([m.a(x), torch.full((1, 2), 30.0)], 1)),
    a=linear(),
    b=linear(10),
)
add(
    "cat with zeros",
    ROWS,
    lambda m, x: m.b(torch.cat([m.a(x), torch.zeros(1, 2)], 1)),
    a=linear(),
    b=linear(10),
)
add("cat of inputs", (ROWS, normal(8, scale=0.01)), lambda m, x, y: m.a(torch.cat([x, y], 1)), a=linear(16))
add(
    "cat of inputs that others read",
    (ROWS, normal(8, scale=0.01)),
    lambda m, x, y: (torch.cat([x, 100 * y], 1), m.a(y)),
    a=linear(),
)
add(
    "features beside a pressure",
    (IMAGES, PRESSURE),
    lambda m, x, p: m.b(torch.cat([m.a(x).mean((2, 3)), (p - 1013) / 4], 1)),
    a=conv(),
    b=linear(5, 3),
)
add(
    "features and a raw pressure",
    (IMAGES, PRESSURE),
    _with_pressure,
    a=conv(),
    b=linear(4, 3),
)
add("cat of a cat", IMAGES, _nested, a=conv(), b=conv(4, 4), c=conv(8, 4))
add(
    "cat of sigmoid, tanh and relu",
    ROWS,
    lambda m, x: m.b(torch.cat([torch.sigmoid(m.a(x)), torch.tanh(m.a(x)), F.relu(m.a(x))], 1)),
    a=linear(gain=3.0),
    b=linear(24),
)
add(
    "cat of gates",
    ROWS,
    lambda m, x: torch.cat([torch.sigmoid(m.a(x)), torch.sigmoid(m.b(x))], 1),
    a=linear(),
    b=linear(),
)
add(
    "cat of a value with itself", ROWS, lambda m, x: m.b(torch.cat([m.a(x)] * 2, 1)), a=linear(), b=linear(16)
)
add(
    "stack of unlike rows",
    ROWS,
    lambda m, x: (m.b(m.a(x)), torch.stack([m.a(x), 40 * m.b(x)], 1)),
    a=linear(),
    b=linear(),
)
add(
    "a stack that is averaged",
    ROWS,
    lambda m, x: torch.stack([m.a(x), 3 * m.b(x), x], 1).mean(1),
    a=linear(),
    b=linear(),
)
add(
    "minimum of unlike",
    ROWS,
    lambda m, x: (m.a(x) * 0.5, torch.minimum(m.a(x), 30 * m.b(x))),
    a=linear(),
    b=linear(),
)
add("maximum with a constant", ROWS, lambda m, x: torch.maximum(m.a(x), torch.tensor([0.1] * 8)), a=linear())
add(
    "where by a fixed choice",
    ROWS,
    lambda m, x: (torch.tanh(m.a(x)), torch.where(torch.arange(8) > 3, m.a(x), 40 * m.b(x))),
    a=linear(),
    b=linear(),
)
add(
    "where with zeros",
    ROWS,
    lambda m, x: m.b(torch.where(torch.arange(8) > 3, m.a(x), 0.0)),
    a=linear(),
    b=linear(),
)
add(
    "select_scatter",
    ROWS,
    lambda m, x: (m.a(x), torch.select_scatter(m.a(x), 30 * m.b(x)[:, 0], 1, 2)),
    a=linear(),
    b=linear(),
)
add(
    "slice_scatter",
    ROWS,
    lambda m, x: (m.a(x), torch.slice_scatter(m.a(x), 30 * m.b(x)[:, :2], 1, 2, 4)),
    a=linear(),
    b=linear(),
)
add(
    "rolls beside a cat",
    SERIES,
    lambda m, x: torch.cat([x.roll(1, -1), x.roll(3, -1), 8 * m.a(x)], 1),
    a=conv1d(),
)


SHARED = Theme("shared producers")
add = SHARED.add

add(
    "one layer, heads of different size",
    ROWS,
    _heads,
    a=linear(),
    b=linear(gain=0.01),
    c=linear(gain=50.0),
)
add("one layer twice", ROWS, lambda m, x: m.a(m.a(x)) + m.a(20 * x), a=linear())
add("a sum of all before", ROWS, _sums, a=linear(), b=linear(), c=linear())
add(
    "a long chain of residuals",
    ROWS,
    _residuals,
    a=linear(gain=0.5),
    b=linear(gain=0.5),
    c=linear(gain=0.5),
)
add("squeeze and excite", IMAGES, _excite, a=conv(), b=linear(4, 2), c=linear(2, 4))
add("a mean that is taken off", SERIES, lambda m, x: m.a(x - x.mean(-1, keepdim=True)), a=conv1d())
add("a far mean that is taken off", normal(4, 16, offset=30.0), lambda m, x: x - x.mean(-1, keepdim=True))
add(
    "standardised in the model",
    uniform(4, 16, low=4.0, high=9.0),
    lambda m, x: m.a(_standardised(x)),
    a=conv1d(),
)
add(
    "differences of neighbours",
    uniform(4, 16, low=4.0, high=9.0),
    lambda m, x: m.a(x[..., 1:] - x[..., :-1]),
    a=conv1d(),
)
add("product of a layer with itself", ROWS, lambda m, x: m.a(x) * m.a(x), a=linear())
add("broadcast sums", (normal(4, 1), normal(1, 6)), lambda m, x, y: m.a(x * 3 + y), a=linear(6))
add(
    "broadcast products",
    (normal(4, 6), uniform(1, 6, low=0.0, high=0.02)),
    lambda m, x, y: m.a(x * y),
    a=linear(6),
)
add(
    "largest and smallest of a row",
    SERIES,
    lambda m, x: m.b(m.a(x).amax(-1)) - m.a(x).amin(-1),
    a=conv1d(gain=3.0),
    b=linear(4, 4),
)
add(
    "a distance to rows of a table",
    ROWS,
    lambda m, x: ((m.a(x).unsqueeze(1) - m.t.weight) ** 2).sum(-1),
    a=linear(),
    t=linear(8, 5),
)


THEMES = (JOINS, SHARED)
