# SPDX-License-Identifier: Apache-2.0
"""Mistakes that people make, each with what becomes of it when the answer is followed. `test_mistakes.py` makes them,
and holds docs/mistakes.md to what comes out.

A new one is one entry of MISTAKES: `wrong` and `right` are calls (an `Attempt`, or any function without arguments), the
functions of the model stand above the list, the line at fault being a line of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import tinyet
from tests.torch_helpers import Lambda
from tinyet.errors import DynamicShape, ModelError, TinyetError, UnsupportedOp, UnsupportedShape
from tinyet.program import Program


class Attempt:
    """A call of `tinyet.compile`.

    model: a module, or the function that its forward() calls. example: the example inputs. options: further arguments.
    """

    def __init__(self, model: nn.Module | Callable[..., Any], *example: Any, **options: Any) -> None:
        self.function = model
        self.model = model if isinstance(model, nn.Module) else Lambda(model)
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
    return x.clamp(min=0)


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
