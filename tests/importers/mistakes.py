# SPDX-License-Identifier: Apache-2.0
"""Mistakes that people make, each with what becomes of it when the answer is followed. `test_mistakes.py` makes them,
and holds docs/mistakes.md to what comes out.

A new one is one entry of MISTAKES: `wrong` and `right` are calls (an `Attempt`, or any function without arguments), the
functions of the model stand in `mistaken_models.py`, the line at fault being a line of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

import tinyet
from tests.importers import mistaken_models as models
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


class Attempt:
    """A call of `tinyet.compile`.

    model: a module, or the function that its forward() calls. example: the example inputs. options: further arguments.
    """

    def __init__(self, model: nn.Module | Callable[..., Any], *example: Any, **options: Any) -> None:
        self.function = model
        self.model = model if isinstance(model, nn.Module) else models.Function(model)
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


# ---------------------------------------------------------------- the list

MISTAKES = (
    Mistake(
        "`x.cumprod(1)`",
        Attempt(models.running_product, models.ROW),
        UnsupportedOp,
        "x.cumprod(1)",
        Attempt(models.running_product_right, models.ROW),
    ),
    Mistake(
        "`x // 3`",
        Attempt(models.floor_division, models.ROW),
        UnsupportedShape,
        "x // 3",
        Attempt(models.floor_division_right, models.ROW),
    ),
    Mistake(
        "`vector_norm(x, 3)`",
        Attempt(models.norm_of_order_3, models.ROW),
        UnsupportedShape,
        "vector_norm(x, 3",
        Attempt(models.norm_of_order_2, models.ROW),
        same=False,
    ),
    Mistake(
        "`x[x > 0]`: a result whose size depends on values",
        Attempt(models.positive_only, models.ROW),
        DynamicShape,
        "x[x > 0]",
        Attempt(models.positive_only_right, models.ROW),
        same=False,
    ),
    Mistake(
        "noise made in `forward()`",
        Attempt(models.added_noise, models.ROW),
        UnsupportedOp,
        "torch.randn(8)",
        Attempt(models.given_noise, models.ROW, models.ROW),
        same=False,
    ),
    Mistake(
        "an adaptive max pool to a size that does not divide the image's",
        Attempt(models.uneven_pool, models.IMAGE),
        UnsupportedShape,
        "F.adaptive_max_pool2d(x, (3, 3))",
        Attempt(models.even_pool, models.IMAGE),
        same=False,
    ),
    Mistake(
        "a model that does not run on its own example inputs",
        Attempt(models.other_size, models.ROW),
        ModelError,
        "x.reshape(1, 9)",
        Attempt(models.other_size, torch.zeros(1, 9)),
        same=False,
    ),
    Mistake(
        "`if` on a tensor",
        Attempt(models.either_side, models.ROW),
        ModelError,
        "if x.sum() > 0:",
        Attempt(models.either_side_right, models.ROW),
    ),
    Mistake(
        "a loop that runs as often as a tensor says",
        Attempt(models.as_often_as_told, models.ROW),
        ModelError,
        "range(int(x.abs().sum()))",
        Attempt(models.as_often_as_always, models.ROW),
    ),
    Mistake(
        "`assert` on a tensor",
        Attempt(models.asserted, models.ROW),
        ModelError,
        "assert x.max()",
        Attempt(models.not_asserted, models.ROW),
    ),
    Mistake(
        "`float(x[0, 0])`",
        Attempt(models.python_number, models.ROW),
        ModelError,
        "float(x[0, 0])",
        Attempt(models.python_number_right, models.ROW),
    ),
    Mistake(
        "`x.max().item()`",
        Attempt(models.item, models.ROW),
        UnsupportedOp,
        "x.max().item()",
        Attempt(models.item_right, models.ROW),
    ),
    Mistake(
        "complex numbers as an input",
        Attempt(models.Spectrum(), torch.complex(models.ROW, models.ROW)),
        ModelError,
        "input 0, spectrum",
        Attempt(models.spectrum_right, models.ROW, models.ROW),
        same=False,
    ),
    Mistake(
        "whole numbers to a power that leaves 32 bits",
        Attempt(models.great_power, models.INDEX),
        UnsupportedShape,
        "index**20",
        Attempt(models.great_power_right, models.INDEX),
    ),
    Mistake(
        "`x.int()`",
        Attempt(models.to_int, models.ROW),
        UnsupportedShape,
        "x.int()",
        Attempt(models.to_int_right, models.ROW),
    ),
    Mistake(
        "`x.double()`",
        Attempt(models.to_double, models.ROW),
        UnsupportedShape,
        "x.double()",
        Attempt(models.to_double_right, models.ROW),
    ),
    Mistake(
        "`F.dropout(x, 0.5)`, which drops in eval mode, too",
        Attempt(models.dropped, models.ROW),
        UnsupportedOp,
        "F.dropout(x, 0.5)",
        Attempt(models.dropped_in_training, models.ROW),
        same=False,
    ),
    Mistake(
        "the angle of complex numbers",
        Attempt(models.phase, models.ROW),
        UnsupportedOp,
        "torch.angle(torch.fft.rfft(x))",
        Attempt(models.parts_of_spectrum, models.ROW),
        same=False,
    ),
    Mistake(
        "a bicubic resize",
        Attempt(models.bicubic, models.IMAGE),
        UnsupportedOp,
        'mode="bicubic"',
        Attempt(models.bilinear, models.IMAGE),
        same=False,
    ),
    Mistake(
        "the loss as a part of the model",
        Attempt(models.with_loss, models.ROW),
        UnsupportedOp,
        "F.cross_entropy(",
        Attempt(models.without_loss, models.ROW),
        same=False,
    ),
    Mistake(
        "a batch norm with the statistics of the batch",
        Attempt(models.own_statistics, models.IMAGE),
        UnsupportedOp,
        "training=True",
        Attempt(models.known_statistics, models.IMAGE),
        same=False,
    ),
    Mistake(
        "`None` among the outputs",
        Attempt(models.and_nothing, models.ROW),
        ModelError,
        "output 1",
        Attempt(models.one_output, models.ROW),
        same=False,
    ),
    Mistake(
        "a layer without kernels in an `nn.Sequential`",
        Attempt(nn.Sequential(nn.Flatten(0, 1), nn.MaxPool3d((1, 2, 2))), models.IMAGE[None]),
        UnsupportedOp,
        "1 (MaxPool3d of the Sequential)",
        Attempt(nn.Sequential(nn.Flatten(0, 1), nn.MaxPool2d(2)), models.IMAGE[None]),
    ),
    Mistake(
        "layers of an `nn.Sequential` that do not fit",
        Attempt(nn.Sequential(nn.ReLU(), nn.Linear(9, 2)), models.ROW),
        ModelError,
        "1 (Linear of the Sequential)",
        Attempt(nn.Sequential(nn.ReLU(), nn.Linear(8, 2)), models.ROW),
        same=False,
    ),
    Mistake(
        "an input too few",
        Attempt(models.scaled, models.ROW),
        ModelError,
        "missing 1 required positional argument: 'factor'",
        Attempt(models.scaled, models.ROW, torch.ones(1)),
        same=False,
    ),
    Mistake(
        "a string as an example input",
        Attempt(models.scaled, models.ROW, "twice"),
        ModelError,
        "example input 1",
        Attempt(models.scaled, models.ROW, torch.tensor(3.0)),
        same=False,
    ),
    Mistake(
        "no example inputs",
        lambda: tinyet.compile(models.LINEAR),
        UsageError,
        "example_inputs",
        lambda: tinyet.compile(models.LINEAR, (models.ROW,)),
        same=False,
    ),
    Mistake(
        "example inputs beside an exported program",
        lambda: tinyet.compile(models.exported(), (models.ROW,)),
        UsageError,
        "example_inputs",
        lambda: tinyet.compile(models.exported()),
        same=False,
    ),
    Mistake(
        "a program that was exported with a dynamic dimension",
        lambda: tinyet.compile(models.exported(dynamic_shapes=({0: torch.export.Dim("batch")},))),
        DynamicShape,
        "input input",
        lambda: tinyet.compile(models.exported()),
        same=False,
    ),
    Mistake(
        "a model that torch.ao has quantized",
        Attempt(models.packed(), models.ROW),
        ModelError,
        "at: Sequential",
        Attempt(models.LINEAR, models.ROW, calibration=models.BATCHES),
        same=False,
    ),
    Mistake(
        "a model on the meta device",
        Attempt(nn.Linear(8, 2, device="meta"), models.ROW),
        ModelError,
        "weight, bias",
        Attempt(models.LINEAR, models.ROW),
        same=False,
    ),
    Mistake(
        "calibration samples without the batch dimension",
        Attempt(models.LINEAR, models.ROW, calibration=[batch[0] for batch in models.BATCHES]),
        QuantizationError,
        "calibration batch 0",
        Attempt(models.LINEAR, models.ROW, calibration=[batch[0].unsqueeze(0) for batch in models.BATCHES]),
        same=False,
    ),
    Mistake(
        "labels in the calibration data",
        Attempt(models.LINEAR, models.ROW, calibration=[(batch, torch.zeros(1)) for batch in models.BATCHES]),
        QuantizationError,
        "calibration batch 0",
        Attempt(models.LINEAR, models.ROW, calibration=models.BATCHES),
        same=False,
    ),
    Mistake(
        "calibration data of another type",
        Attempt(models.LINEAR, models.ROW, calibration=[batch.to(torch.uint8) for batch in models.BATCHES]),
        QuantizationError,
        "calibration batch 0, input 0",
        Attempt(
            models.LINEAR, models.ROW, calibration=[batch.to(torch.uint8).float() for batch in models.BATCHES]
        ),
        same=False,
    ),
    Mistake(
        "NaN in the calibration data",
        Attempt(models.LINEAR, models.ROW, calibration=[batch.log() for batch in models.BATCHES]),
        QuantizationError,
        "calibration batch 0, input 0",
        Attempt(models.LINEAR, models.ROW, calibration=models.BATCHES),
        same=False,
    ),
    Mistake(
        "a function outside of where it is defined, on calibration data",
        Attempt(models.logarithm, models.ROW, calibration=models.BATCHES),
        QuantizationError,
        "torch.log(x)",
        Attempt(models.logarithm_right, models.ROW, calibration=models.BATCHES),
        same=False,
    ),
    Mistake(
        "no calibration data for what needs it",
        Attempt(models.LINEAR, models.ROW, equalize=True),
        QuantizationError,
        "calibration data",
        Attempt(models.LINEAR, models.ROW, equalize=True, calibration=models.BATCHES),
        same=False,
    ),
    Mistake(
        "a name that is none in C",
        Attempt(models.LINEAR, models.ROW, name="my model"),
        UsageError,
        "my model",
        Attempt(models.LINEAR, models.ROW, name="my_model"),
        same=False,
    ),
    Mistake(
        "more labels than the model has classes",
        Attempt(models.LINEAR, models.ROW, labels=("yes", "no", "maybe")),
        ModelError,
        "label(s)",
        Attempt(models.LINEAR, models.ROW, labels=("yes", "no")),
        same=False,
    ),
    Mistake(
        "numpy in `forward()`",
        Attempt(models.numpy_inside, models.ROW),
        ModelError,
        "x.numpy()",
        Attempt(models.numpy_inside_right, models.ROW),
    ),
    Mistake(
        "state in an attribute that is no buffer",
        Attempt(models.Averaging(), models.ROW),
        ModelError,
        "self.average = 0.5",
        Attempt(models.AveragingRight(), models.ROW),
    ),
)
