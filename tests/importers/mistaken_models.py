# SPDX-License-Identifier: Apache-2.0
"""The models of `mistakes.py`, wrong and right; each line at fault is a line of its own."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Function(nn.Module):
    """A model that computes a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


ROW = torch.linspace(-2, 2, 8).reshape(1, 8)
IMAGE = torch.linspace(-1, 1, 192).reshape(1, 3, 8, 8)


def running_product(x: Tensor) -> Tensor:
    return x.cumprod(1)


def running_product_right(x: Tensor) -> Tensor:
    parts = [x[:, :1]]
    for i in range(1, 8):
        parts.append(parts[-1] * x[:, i : i + 1])
    return torch.cat(parts, 1)


def floor_division(x: Tensor) -> Tensor:
    return x // 3


def floor_division_right(x: Tensor) -> Tensor:
    return torch.floor(x / 3)


def norm_of_order_3(x: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(x, 3, dim=1)
    return length


def norm_of_order_2(x: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(x, 2, dim=1)
    return length


def positive_only(x: Tensor) -> Tensor:
    return x[x > 0]


def positive_only_right(x: Tensor) -> Tensor:
    return torch.where(x > 0, x, 0.0)


def added_noise(x: Tensor) -> Tensor:
    return x + torch.randn(8)


def given_noise(x: Tensor, noise: Tensor) -> Tensor:
    return x + noise


def uneven_pool(x: Tensor) -> Tensor:
    return F.adaptive_max_pool2d(x, (3, 3))


def even_pool(x: Tensor) -> Tensor:
    return F.adaptive_max_pool2d(x, (4, 4))


def other_size(x: Tensor) -> Tensor:
    return x.reshape(1, 9)


def numpy_inside(x: Tensor) -> Tensor:
    return torch.from_numpy(abs(x.numpy()))


def numpy_inside_right(x: Tensor) -> Tensor:
    return x.abs()


class Averaging(nn.Module):
    """A buffer that it only seems to be: nobody registered it."""

    def __init__(self) -> None:
        super().__init__()
        self.average = torch.zeros(1, 8)

    def forward(self, x: Tensor) -> Tensor:
        self.average = 0.5 * self.average + 0.5 * x
        return self.average * 2


class AveragingRight(nn.Module):
    average: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("average", torch.zeros(1, 8))

    def forward(self, x: Tensor) -> Tensor:
        self.average.copy_(0.5 * self.average + 0.5 * x)
        return self.average * 2


def either_side(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return x * 2
    return -x


def either_side_right(x: Tensor) -> Tensor:
    return torch.where(x.sum() > 0, x * 2, -x)


def as_often_as_told(x: Tensor) -> Tensor:
    for _ in range(int(x.abs().sum())):
        x = x * 0.5
    return x


def as_often_as_always(x: Tensor) -> Tensor:
    for _ in range(9):
        x = x * 0.5
    return x


def asserted(x: Tensor) -> Tensor:
    assert x.max() < 100
    return x + 1


def not_asserted(x: Tensor) -> Tensor:
    return x + 1


def python_number(x: Tensor) -> Tensor:
    return x * float(x[0, 0])


def python_number_right(x: Tensor) -> Tensor:
    return x * x[0, 0]


def item(x: Tensor) -> Tensor:
    return x / x.max().item()


def item_right(x: Tensor) -> Tensor:
    return x / x.max()


class Spectrum(nn.Module):
    def forward(self, spectrum: Tensor) -> Tensor:
        return spectrum.real + spectrum.imag


def spectrum_right(real: Tensor, imaginary: Tensor) -> Tensor:
    return real + imaginary


def great_power(index: Tensor) -> Tensor:
    return index**20


def great_power_right(index: Tensor) -> Tensor:
    return index.float() ** 20


def to_int(x: Tensor) -> Tensor:
    return x.int() * 0.5


def to_int_right(x: Tensor) -> Tensor:
    return torch.sign(x) * torch.floor(torch.abs(x)) * 0.5


def to_double(x: Tensor) -> Tensor:
    return x.double().exp()


def to_double_right(x: Tensor) -> Tensor:
    return x.exp()


def dropped(x: Tensor) -> Tensor:
    return F.dropout(x, 0.5)


def dropped_in_training(x: Tensor) -> Tensor:
    return F.dropout(x, 0.5, training=False)


def phase(x: Tensor) -> Tensor:
    return torch.angle(torch.fft.rfft(x))


def parts_of_spectrum(x: Tensor) -> tuple[Tensor, Tensor]:
    z = torch.fft.rfft(x)
    return z.real, z.imag


def bicubic(x: Tensor) -> Tensor:
    return F.interpolate(x, scale_factor=2, mode="bicubic")


def bilinear(x: Tensor) -> Tensor:
    return F.interpolate(x, scale_factor=2, mode="bilinear")


def with_loss(x: Tensor) -> Tensor:
    return F.cross_entropy(x, torch.tensor([1]))


def without_loss(x: Tensor) -> Tensor:
    return x * 1.0


def own_statistics(x: Tensor) -> Tensor:
    return F.batch_norm(x, torch.zeros(3), torch.ones(3), training=True)


def known_statistics(x: Tensor) -> Tensor:
    return F.batch_norm(x, torch.zeros(3), torch.ones(3))


def and_nothing(x: Tensor) -> tuple[Tensor, None]:
    return x + 1, None


def one_output(x: Tensor) -> Tensor:
    return x + 1


def scaled(x: Tensor, factor: Tensor) -> Tensor:
    return x * factor


def logarithm(x: Tensor) -> Tensor:
    return torch.log(x)


def logarithm_right(x: Tensor) -> Tensor:
    return torch.log(x.clamp(min=1e-3))


def packed() -> nn.Module:
    """A model that torch.ao has quantized."""
    float_model = nn.Sequential(nn.Linear(8, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made: nn.Module = torch.ao.quantization.quantize_dynamic(float_model, {nn.Linear}, dtype=torch.qint8)
    return made


def exported(**options: Any) -> torch.export.ExportedProgram:
    return torch.export.export(nn.ReLU(), (torch.zeros(4, 8),), **options)


LINEAR = nn.Linear(8, 2)
BATCHES = [torch.linspace(-1, 1 + i, 8).reshape(1, 8) for i in range(4)]
INDEX = torch.tensor([[5, 2]])
