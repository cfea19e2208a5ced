# SPDX-License-Identifier: Apache-2.0
"""Mistakes that people make, each with what becomes of it when the answer is followed. `test_mistakes.py` makes them,
and holds docs/mistakes.md to what comes out.

A new one is one entry of MISTAKES: `wrong` and `right` are calls (an `Attempt`, or any function without arguments), the
functions of the model stand above the list, the line at fault being a line of its own.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import tinyet
from tinyet.errors import (
    DynamicShape,
    ModelError,
    QuantizationError,
    TinyetError,
    UnsupportedOp,
    UnsupportedShape,
    UsageError,
)
from tinyet.program import Program


class Function(nn.Module):
    """A model that computes a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


class Attempt:
    """A call of `tinyet.compile`.

    model: a module, or the function that its forward() calls. example: the example inputs. options: further arguments.
    """

    def __init__(self, model: nn.Module | Callable[..., Any], *example: Any, **options: Any) -> None:
        self.function = model
        self.model = model if isinstance(model, nn.Module) else Function(model)
        self.example, self.options = example, options

    @property
    def source(self) -> tuple[list[str], int]:
        """The lines of the model's function or class, and the number of the first."""
        own = self.function if not isinstance(self.function, nn.Module) else type(self.function)
        return inspect.getsourcelines(own)

    def __call__(self) -> Program:
        return tinyet.compile(self.model, self.example, **self.options)


@dataclass(frozen=True)
class Mistake:
    """title: what somebody does, in Markdown. wrong: the call that does it, which raises `error`.

    at: the piece of the model's source line that the answer must name with file and line; or, where the fault is no
        line of the model (an argument, a layer of torch's), the words that say where.
    right: what the answer tells to do instead. same: both compute the same, which is held with wrong's model in torch.
    """

    title: str
    wrong: Callable[[], object]
    error: type[TinyetError]
    at: str
    right: Callable[[], object]
    same: bool = field(default=True, kw_only=True)


# ---------------------------------------------------------------- models, wrong and right

ROW = torch.linspace(-2, 2, 8).reshape(1, 8)
IMAGE = torch.linspace(-1, 1, 192).reshape(1, 3, 8, 8)


def running_sum(x: Tensor) -> Tensor:
    return x.cumsum(1)


def running_sum_right(x: Tensor) -> Tensor:
    return x @ torch.ones(8, 8).triu()


def best_two(x: Tensor) -> Tensor:
    values, _ = x.topk(2)
    return values


def scores(x: Tensor) -> Tensor:
    return x * 1.0


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


class Counting(nn.Module):
    runs: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("runs", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.runs += 1
        return x * self.runs


def counted_outside(x: Tensor, runs: Tensor) -> tuple[Tensor, Tensor]:
    runs = runs + 1
    return x * runs, runs


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


class Masked(nn.Module):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return x.masked_fill(mask, 0.0)


def masked_right(x: Tensor, mask: Tensor) -> Tensor:
    return x.masked_fill(mask > 0.5, 0.0)


def whole_numbers(index: Tensor) -> Tensor:
    return index + 1


def whole_numbers_right(index: Tensor) -> Tensor:
    return index.float() + 1


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


def spectrum(x: Tensor) -> Tensor:
    return torch.abs(torch.fft.rfft(x))


def given_spectrum(x: Tensor) -> Tensor:
    return x.abs()


def bicubic(x: Tensor) -> Tensor:
    return F.interpolate(x, scale_factor=2, mode="bicubic")


def bilinear(x: Tensor) -> Tensor:
    return F.interpolate(x, scale_factor=2, mode="bilinear")


def picked(x: Tensor, index: Tensor) -> Tensor:
    return x.gather(1, index)


def picked_right(x: Tensor, index: Tensor) -> Tensor:
    mask = torch.arange(8) == index.unsqueeze(-1)
    return (x.unsqueeze(1) * mask).sum(-1)


def backwards(x: Tensor) -> Tensor:
    return x.flip(1)


def backwards_right(x: Tensor) -> Tensor:
    return x.index_select(1, torch.arange(7, -1, -1))


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


# ---------------------------------------------------------------- the list

MISTAKES = (
    Mistake(
        "`x.cumsum(1)`",
        Attempt(running_sum, ROW),
        UnsupportedOp,
        "x.cumsum(1)",
        Attempt(running_sum_right, ROW),
    ),
    Mistake(
        "`x.topk(2)`", Attempt(best_two, ROW), UnsupportedOp, "x.topk(2)", Attempt(scores, ROW), same=False
    ),
    Mistake(
        "`x // 3`",
        Attempt(floor_division, ROW),
        UnsupportedShape,
        "x // 3",
        Attempt(floor_division_right, ROW),
    ),
    Mistake(
        "`vector_norm(x, 3)`",
        Attempt(norm_of_order_3, ROW),
        UnsupportedShape,
        "vector_norm(x, 3",
        Attempt(norm_of_order_2, ROW),
        same=False,
    ),
    Mistake(
        "`x[x > 0]`: a result whose size depends on values",
        Attempt(positive_only, ROW),
        DynamicShape,
        "x[x > 0]",
        Attempt(positive_only_right, ROW),
        same=False,
    ),
    Mistake(
        "noise made in `forward()`",
        Attempt(added_noise, ROW),
        UnsupportedOp,
        "torch.randn(8)",
        Attempt(given_noise, ROW, ROW),
        same=False,
    ),
    Mistake(
        "an adaptive max pool to a size that does not divide the image's",
        Attempt(uneven_pool, IMAGE),
        UnsupportedShape,
        "F.adaptive_max_pool2d(x, (3, 3))",
        Attempt(even_pool, IMAGE),
        same=False,
    ),
    Mistake(
        "a model that does not run on its own example inputs",
        Attempt(other_size, ROW),
        ModelError,
        "x.reshape(1, 9)",
        Attempt(other_size, torch.zeros(1, 9)),
        same=False,
    ),
    Mistake(
        "`if` on a tensor",
        Attempt(either_side, ROW),
        ModelError,
        "if x.sum() > 0:",
        Attempt(either_side_right, ROW),
    ),
    Mistake(
        "a loop that runs as often as a tensor says",
        Attempt(as_often_as_told, ROW),
        ModelError,
        "range(int(x.abs().sum()))",
        Attempt(as_often_as_always, ROW),
    ),
    Mistake(
        "`assert` on a tensor",
        Attempt(asserted, ROW),
        ModelError,
        "assert x.max()",
        Attempt(not_asserted, ROW),
    ),
    Mistake(
        "`float(x[0, 0])`",
        Attempt(python_number, ROW),
        ModelError,
        "float(x[0, 0])",
        Attempt(python_number_right, ROW),
    ),
    Mistake(
        "`x.max().item()`", Attempt(item, ROW), UnsupportedOp, "x.max().item()", Attempt(item_right, ROW)
    ),
    Mistake(
        "a mask of truth values as an input",
        Attempt(Masked(), ROW, ROW > 0),
        ModelError,
        "input 1, mask",
        Attempt(masked_right, ROW, (ROW > 0).float()),
        same=False,
    ),
    Mistake(
        "arithmetic with integers",
        Attempt(whole_numbers, INDEX),
        UnsupportedShape,
        "index + 1",
        Attempt(whole_numbers_right, INDEX),
    ),
    Mistake("`x.int()`", Attempt(to_int, ROW), UnsupportedShape, "x.int()", Attempt(to_int_right, ROW)),
    Mistake(
        "`x.double()`",
        Attempt(to_double, ROW),
        UnsupportedShape,
        "x.double()",
        Attempt(to_double_right, ROW),
    ),
    Mistake(
        "`F.dropout(x, 0.5)`, which drops in eval mode, too",
        Attempt(dropped, ROW),
        UnsupportedOp,
        "F.dropout(x, 0.5)",
        Attempt(dropped_in_training, ROW),
        same=False,
    ),
    Mistake(
        "a Fourier transform",
        Attempt(spectrum, ROW),
        UnsupportedOp,
        "torch.fft.rfft(x)",
        Attempt(given_spectrum, ROW),
        same=False,
    ),
    Mistake(
        "a bicubic resize",
        Attempt(bicubic, IMAGE),
        UnsupportedOp,
        'mode="bicubic"',
        Attempt(bilinear, IMAGE),
        same=False,
    ),
    Mistake(
        "`x.gather(1, index)`",
        Attempt(picked, ROW, INDEX),
        UnsupportedOp,
        "x.gather(1, index)",
        Attempt(picked_right, ROW, INDEX),
    ),
    Mistake(
        "`x.flip(1)`", Attempt(backwards, ROW), UnsupportedOp, "x.flip(1)", Attempt(backwards_right, ROW)
    ),
    Mistake(
        "the loss as a part of the model",
        Attempt(with_loss, ROW),
        UnsupportedOp,
        "F.cross_entropy(",
        Attempt(without_loss, ROW),
        same=False,
    ),
    Mistake(
        "a batch norm with the statistics of the batch",
        Attempt(own_statistics, IMAGE),
        UnsupportedOp,
        "training=True",
        Attempt(known_statistics, IMAGE),
        same=False,
    ),
    Mistake(
        "`None` among the outputs",
        Attempt(and_nothing, ROW),
        ModelError,
        "output 1",
        Attempt(one_output, ROW),
        same=False,
    ),
    Mistake(
        "a layer without kernels in an `nn.Sequential`",
        Attempt(nn.Sequential(nn.Flatten(0, 1), nn.MaxPool3d((1, 2, 2))), IMAGE[None]),
        UnsupportedOp,
        "1 (MaxPool3d of the Sequential)",
        Attempt(nn.Sequential(nn.Flatten(0, 1), nn.MaxPool2d(2)), IMAGE[None]),
    ),
    Mistake(
        "layers of an `nn.Sequential` that do not fit",
        Attempt(nn.Sequential(nn.ReLU(), nn.Linear(9, 2)), ROW),
        ModelError,
        "1 (Linear of the Sequential)",
        Attempt(nn.Sequential(nn.ReLU(), nn.Linear(8, 2)), ROW),
        same=False,
    ),
    Mistake(
        "an input too few",
        Attempt(scaled, ROW),
        ModelError,
        "missing 1 required positional argument: 'factor'",
        Attempt(scaled, ROW, torch.ones(1)),
        same=False,
    ),
    Mistake(
        "a Python number as an example input",
        Attempt(scaled, ROW, 3),
        ModelError,
        "example input 1",
        Attempt(scaled, ROW, torch.tensor(3.0)),
        same=False,
    ),
    Mistake(
        "no example inputs",
        lambda: tinyet.compile(LINEAR),
        UsageError,
        "example_inputs",
        lambda: tinyet.compile(LINEAR, (ROW,)),
        same=False,
    ),
    Mistake(
        "example inputs beside an exported program",
        lambda: tinyet.compile(exported(), (ROW,)),
        UsageError,
        "example_inputs",
        lambda: tinyet.compile(exported()),
        same=False,
    ),
    Mistake(
        "a program that was exported with a dynamic dimension",
        lambda: tinyet.compile(exported(dynamic_shapes=({0: torch.export.Dim("batch")},))),
        DynamicShape,
        "input input",
        lambda: tinyet.compile(exported()),
        same=False,
    ),
    Mistake(
        "a model that torch.ao has quantized",
        Attempt(packed(), ROW),
        ModelError,
        "at: Sequential",
        Attempt(LINEAR, ROW, calibration=BATCHES),
        same=False,
    ),
    Mistake(
        "a model on the meta device",
        Attempt(nn.Linear(8, 2, device="meta"), ROW),
        ModelError,
        "weight, bias",
        Attempt(LINEAR, ROW),
        same=False,
    ),
    Mistake(
        "calibration samples without the batch dimension",
        Attempt(LINEAR, ROW, calibration=[batch[0] for batch in BATCHES]),
        QuantizationError,
        "calibration batch 0",
        Attempt(LINEAR, ROW, calibration=[batch[0].unsqueeze(0) for batch in BATCHES]),
        same=False,
    ),
    Mistake(
        "labels in the calibration data",
        Attempt(LINEAR, ROW, calibration=[(batch, torch.zeros(1)) for batch in BATCHES]),
        QuantizationError,
        "calibration batch 0",
        Attempt(LINEAR, ROW, calibration=BATCHES),
        same=False,
    ),
    Mistake(
        "calibration data of another type",
        Attempt(LINEAR, ROW, calibration=[batch.to(torch.uint8) for batch in BATCHES]),
        QuantizationError,
        "calibration batch 0, input 0",
        Attempt(LINEAR, ROW, calibration=[batch.to(torch.uint8).float() for batch in BATCHES]),
        same=False,
    ),
    Mistake(
        "NaN in the calibration data",
        Attempt(LINEAR, ROW, calibration=[batch.log() for batch in BATCHES]),
        QuantizationError,
        "calibration batch 0, input 0",
        Attempt(LINEAR, ROW, calibration=BATCHES),
        same=False,
    ),
    Mistake(
        "a function outside of where it is defined, on calibration data",
        Attempt(logarithm, ROW, calibration=BATCHES),
        QuantizationError,
        "torch.log(x)",
        Attempt(logarithm_right, ROW, calibration=BATCHES),
        same=False,
    ),
    Mistake(
        "no calibration data for what needs it",
        Attempt(LINEAR, ROW, equalize=True),
        QuantizationError,
        "calibration data",
        Attempt(LINEAR, ROW, equalize=True, calibration=BATCHES),
        same=False,
    ),
    Mistake(
        "a name that is none in C",
        Attempt(LINEAR, ROW, name="my model"),
        UsageError,
        "my model",
        Attempt(LINEAR, ROW, name="my_model"),
        same=False,
    ),
    Mistake(
        "more labels than the model has classes",
        Attempt(LINEAR, ROW, labels=("yes", "no", "maybe")),
        ModelError,
        "label(s)",
        Attempt(LINEAR, ROW, labels=("yes", "no")),
        same=False,
    ),
    Mistake(
        "numpy in `forward()`",
        Attempt(numpy_inside, ROW),
        ModelError,
        "x.numpy()",
        Attempt(numpy_inside_right, ROW),
    ),
    Mistake(
        "state in a buffer that `forward()` writes",
        Attempt(Counting(), ROW),
        ModelError,
        "self.runs += 1",
        Attempt(counted_outside, ROW, torch.zeros(1)),
        same=False,
    ),
)
