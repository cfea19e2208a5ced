# SPDX-License-Identifier: Apache-2.0
"""The table of advice for operators that cannot be lowered: each entry is met by a program that `torch.export` makes,
and what it advises compiles, and computes the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import tinyet
from tinyet.errors import UnsupportedOp
from tinyet.importers.torch.aten import ADVICE
from tinyet.reference import run_graph


@dataclass(frozen=True)
class Given:
    """The inputs of the model: x (1, 8) within 0.1 … 0.9, image (1, 2, 6, 6), volume (1, 2, 3, 6, 6), index (1, 2)."""

    x: Tensor
    image: Tensor
    volume: Tensor
    index: Tensor


GIVEN = Given(
    torch.linspace(0.1, 0.9, 8).flip(0).reshape(1, 8),
    torch.linspace(-1, 1, 72).reshape(1, 2, 6, 6),
    torch.linspace(-1, 1, 216).reshape(1, 2, 3, 6, 6),
    torch.tensor([[5, 2]]),
)

KERNEL = torch.linspace(-1, 1, 24).reshape(3, 2, 1, 2, 2)
TABLE = torch.linspace(-1, 1, 24).reshape(6, 4)
POINTS = torch.linspace(0, 1, 24).reshape(3, 8)
CUBE = torch.linspace(-1, 1, 128).reshape(2, 8, 8)
BORDERS = torch.tensor([0.25, 0.5])
PATCHES = torch.eye(8).reshape(-1, 2, 2, 2)

Function = Callable[[Given], Any]


def frames(volume: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """A function of images on each slice of a volume."""
    return torch.stack([function(image) for image in volume.unbind(2)], 2)


def mask(g: Given) -> Tensor:
    return torch.arange(8) == g.index.unsqueeze(-1)


def repeated(g: Given) -> Tensor:
    """More computed places than are written to one by one."""
    return g.index.repeat(1, 5)


def products(g: Given) -> Tensor:
    parts = [g.x[:, :1]]
    for i in range(1, 8):
        parts.append(parts[-1] * g.x[:, i : i + 1])
    return torch.cat(parts, 1)


def unpooled(g: Given) -> Tensor:
    values, places = F.max_pool2d(g.image, 2, return_indices=True)
    return F.max_unpool2d(values, places, (2, 2))


def shifted(g: Given) -> Tensor:
    """From -3.2 to 3.2: remainders of negative numbers differ."""
    return g.x * 8 - 4


def wave(function: Callable[[Tensor], Tensor]) -> Function:
    return lambda g: function(g.x)


# name → what meets it, and what computes the same as the advice has it; None: there is nothing to compute instead
CASES: dict[str, tuple[Function, Function | None]] = {
    "conv3d": (
        lambda g: F.conv3d(g.volume, KERNEL),
        lambda g: frames(g.volume, lambda image: F.conv2d(image, KERNEL[:, :, 0])),
    ),
    "conv_transpose3d": (
        lambda g: F.conv_transpose3d(g.volume, KERNEL[:2]),
        lambda g: frames(g.volume, lambda image: F.conv_transpose2d(image, KERNEL[:2, :, 0])),
    ),
    "max_pool3d": (
        lambda g: F.max_pool3d(g.volume, (3, 2, 2)),
        lambda g: frames(g.volume, lambda image: F.max_pool2d(image, 2)).amax(2, keepdim=True),
    ),
    "avg_pool3d": (
        lambda g: F.avg_pool3d(g.volume, (3, 2, 2)),
        lambda g: frames(g.volume, lambda image: F.avg_pool2d(image, 2)).mean(2, keepdim=True),
    ),
    "upsample_trilinear3d": (
        lambda g: F.interpolate(g.volume, size=(3, 12, 12), mode="trilinear"),
        lambda g: frames(g.volume, lambda image: F.interpolate(image, size=(12, 12), mode="bilinear")),
    ),
    "upsample_nearest3d": (
        lambda g: F.interpolate(g.volume, size=(3, 12, 12)),
        lambda g: frames(g.volume, lambda image: F.interpolate(image, size=(12, 12))),
    ),
    "bernoulli": (lambda g: F.dropout2d(g.image), lambda g: F.dropout2d(g.image, training=False)),
    "native_dropout": (lambda g: F.dropout(g.x), lambda g: F.dropout(g.x, training=False)),
    "rand": (lambda g: g.x + torch.rand(8), None),
    "randn": (lambda g: g.x + torch.randn(8), None),
    "rand_like": (lambda g: torch.rand_like(g.x), None),
    "randn_like": (lambda g: torch.randn_like(g.x), None),
    "randint": (lambda g: g.x + torch.randint(3, (8,)), None),
    "normal": (lambda g: torch.normal(g.x, 1.0), None),
    "rrelu": (lambda g: F.rrelu(g.image), lambda g: F.leaky_relu(g.image, (1 / 8 + 1 / 3) / 2)),
    "choose_qparams_symmetric": (
        lambda g: torch.ops.quantized_decomposed.choose_qparams_symmetric(g.x, -128, 127, 1e-9, torch.int8),
        None,
    ),
    "cumprod": (lambda g: g.x.cumprod(1), products),
    "scatter": (
        lambda g: g.x.scatter(1, repeated(g), 7.0),
        lambda g: torch.where(mask(g).any(1), 7.0, g.x),
    ),
    "scatter_add": (
        lambda g: g.x.scatter_add(1, repeated(g), g.x.repeat(1, 2)[:, :10]),
        lambda g: (
            g.x + ((torch.arange(8) == repeated(g).unsqueeze(-1)) * g.x.repeat(1, 2)[:, :10, None]).sum(1)
        ),
    ),
    "index_put": (
        lambda g: g.x.index_put((torch.tensor([0]), g.index[0]), torch.zeros(2)),
        lambda g: torch.where(mask(g).any(1), 0.0, g.x),
    ),
    "cross_entropy_loss": (lambda g: F.cross_entropy(g.x, torch.tensor([1])), None),
    "nll_loss_nd": (lambda g: F.nll_loss(g.x, torch.tensor([1])), None),
    "grid_sampler_2d": (lambda g: F.grid_sample(g.image, torch.zeros(1, 4, 4, 2)), None),
    "upsample_bicubic2d": (lambda g: F.interpolate(g.image, size=(9, 9), mode="bicubic"), None),
    "_upsample_bilinear2d_aa": (
        lambda g: F.interpolate(g.image, size=(9, 9), mode="bilinear", antialias=True),
        lambda g: F.interpolate(g.image, size=(9, 9), mode="bilinear"),
    ),
    "col2im": (
        lambda g: F.fold(F.conv2d(g.image, PATCHES).flatten(2), (6, 6), 2),
        lambda g: F.conv_transpose2d(F.conv2d(g.image, PATCHES), PATCHES),
    ),
    "max_unpool2d": (unpooled, None),
    "fractional_max_pool2d": (lambda g: F.fractional_max_pool2d(g.image, 2, output_size=3), None),
    "embedding_bag": (
        lambda g: F.embedding_bag(g.index, TABLE, mode="mean"),
        lambda g: F.embedding(g.index, TABLE).mean(1),
    ),
    "embedding_renorm": (
        lambda g: F.embedding(g.index, nn.Parameter(TABLE.clone()), max_norm=1.0),
        lambda g: F.embedding(g.index, TABLE.renorm(2, 0, 1.0)),
    ),
    "_cdist_forward": (
        lambda g: torch.cdist(g.x, POINTS),
        lambda g: (g.x.unsqueeze(-2) - POINTS).square().sum(-1).sqrt(),
    ),
    "bilinear": (
        lambda g: F.bilinear(g.x, g.x, CUBE),
        lambda g: torch.einsum("bi,oij,bj->bo", g.x, CUBE, g.x),
    ),
    "pow": (lambda g: g.x ** (g.x + 1), lambda g: torch.exp((g.x + 1) * torch.log(g.x))),
    "remainder": (lambda g: shifted(g) % 3, lambda g: shifted(g) - 3 * torch.floor(shifted(g) / 3)),
    "fmod": (
        lambda g: torch.fmod(shifted(g), 3),
        lambda g: shifted(g) - 3 * torch.sign(shifted(g) / 3) * torch.floor(torch.abs(shifted(g) / 3)),
    ),
    "fmax": (lambda g: torch.fmax(g.x, POINTS), lambda g: torch.maximum(g.x, POINTS)),
    "fmin": (lambda g: torch.fmin(g.x, POINTS), lambda g: torch.minimum(g.x, POINTS)),
    "bucketize": (
        lambda g: torch.bucketize(g.x, BORDERS).float(),
        lambda g: (g.x.unsqueeze(-1) > BORDERS).float().sum(-1),
    ),
    "searchsorted": (
        lambda g: torch.searchsorted(BORDERS, g.x).float(),
        lambda g: (g.x.unsqueeze(-1) > BORDERS).float().sum(-1),
    ),
    "tan": (wave(torch.tan), lambda g: torch.sin(g.x) / torch.cos(g.x)),
    "sinh": (wave(torch.sinh), lambda g: (torch.exp(g.x) - torch.exp(-g.x)) / 2),
    "cosh": (wave(torch.cosh), lambda g: (torch.exp(g.x) + torch.exp(-g.x)) / 2),
    "asinh": (wave(torch.asinh), lambda g: torch.log(g.x + torch.sqrt(g.x * g.x + 1))),
    "acosh": (
        lambda g: torch.acosh(g.x + 1),
        lambda g: torch.log(g.x + 1 + torch.sqrt((g.x + 1) * (g.x + 1) - 1)),
    ),
    "atanh": (wave(torch.atanh), lambda g: torch.log((1 + g.x) / (1 - g.x)) / 2),
    "asin": (wave(torch.asin), None),
    "acos": (wave(torch.acos), None),
    "atan": (wave(torch.atan), None),
    "atan2": (lambda g: torch.atan2(g.x, g.x), None),
    "erfinv": (wave(torch.erfinv), None),
    "lgamma": (wave(torch.lgamma), None),
    "histc": (lambda g: torch.histc(g.x), None),
    "linalg_inv_ex": (lambda g: torch.linalg.inv(g.image[0]), None),
    "_linalg_svd": (lambda g: torch.linalg.svd(g.image[0]).S, None),
    "_linalg_det": (lambda g: torch.linalg.det(g.image[0]), None),
    "_local_scalar_dense": (lambda g: g.x * g.x.sum().item(), lambda g: g.x * g.x.sum()),
    "_native_batch_norm_legit": (lambda g: F.batch_norm(g.image, None, None, training=True), None),
    "_native_batch_norm_legit_functional": (
        lambda g: F.batch_norm(g.image, torch.zeros(2), torch.ones(2), training=True),
        None,
    ),
}


class All(nn.Module):
    """A model with the results of all functions as its outputs."""

    def __init__(self, functions: list[Function]) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, x: Tensor, image: Tensor, volume: Tensor, index: Tensor) -> list[Any]:
        given = Given(x, image, volume, index)
        return [function(given) for function in self.functions]


INPUTS = (GIVEN.x, GIVEN.image, GIVEN.volume, GIVEN.index)


ALONE = "embedding_renorm"
"""It writes to its table, which torch.export does not do beside other writes."""


def test_every_entry_is_met() -> None:
    """Nearly all in one program, which is refused for all of them, once each."""
    assert CASES.keys() == ADVICE.keys()
    complaints: list[str] = []
    for names in (CASES.keys() - {ALONE}, {ALONE}):
        with pytest.raises(UnsupportedOp) as caught:
            tinyet.compile(All([met for name, (met, _) in CASES.items() if name in names]), INPUTS)
        complaints += caught.value.what.split("\n  - ")[1:]
    for name, hint in ADVICE.items():
        met = [c for c in complaints if f".{name}." in c.split(":")[0]]
        assert met, f"no operator of the program is called {name}"
        assert all(c.endswith(f"do: {hint}") for c in met), met


def test_what_is_advised_computes_the_same() -> None:
    chosen = {name: pair for name, pair in CASES.items() if pair[1] is not None}
    program = tinyet.compile(All([right for _, right in chosen.values() if right is not None]), INPUTS)
    found = run_graph(program.graph, [np.asarray(x) for x in (*INPUTS[:3], GIVEN.index.int())])
    differ = {"bernoulli", "native_dropout", "rrelu", "_upsample_bilinear2d_aa"}
    for (name, (met, _)), result in zip(chosen.items(), found, strict=True):
        if name not in differ:
            wanted = met(GIVEN).detach().numpy()
            np.testing.assert_allclose(np.asarray(result, np.float64), wanted, 1e-4, 1e-5, err_msg=name)
