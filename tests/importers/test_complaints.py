# SPDX-License-Identifier: Apache-2.0
"""What a program is refused for is told once, where it is; what follows from it is not told at all."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tinyet
from tests.torch_helpers import Lambda
from tinyet.errors import ModelError, UnsupportedOp, UnsupportedShape

ROW = torch.linspace(-1, 1, 8).reshape(1, 8)


def complaints(
    function: Callable[..., Any] | nn.Module, *inputs: torch.Tensor, kind: type[ModelError] = UnsupportedOp
) -> list[str]:
    """The operators that are complained about, in order, with what is said of them."""
    model = function if isinstance(function, nn.Module) else Lambda(function)
    with pytest.raises(kind) as caught:
        tinyet.compile(model, inputs)
    return re.findall(r"\n  - (.*)", caught.value.what)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        # complex values have no type here: what reads them is not looked at
        (
            lambda x: torch.view_as_real(torch.fft.rfft(x).exp() * 2),
            ["aten.exp.default: is not supported on complex values"],
        ),
        (
            lambda x: torch.angle(torch.fft.rfft(x)) + torch.fft.rfft(x).abs().cumprod(1),
            [
                "aten.angle.default: is not supported on complex values",
                "aten.cumprod.default: is not supported",
            ],
        ),
        # integers where floats are wanted, and a table that is computed
        (lambda x: torch.bucketize(x, ROW[0]) * 0.5, ["aten.bucketize.Tensor: is not supported"]),
        (lambda x: torch.bucketize(x, ROW[0]).abs(), ["aten.bucketize.Tensor: is not supported"]),
        (lambda x: F.embedding(torch.tensor([0]), x.cumprod(1)), ["aten.cumprod.default: is not supported"]),
        # numbers of Python
        (
            lambda x: torch.tensor(x[0].tolist()),
            ["aten._local_scalar_dense.default: is not supported (8 times)"],
        ),
        # what is wrong with a reader itself is told
        (
            lambda x: torch.linalg.vector_norm(x.cumprod(1), 3),
            [
                "aten.cumprod.default: is not supported",
                "aten.linalg_vector_norm.default: a norm of order 3.0",
            ],
        ),
    ],
)
def test_what_follows_is_not_told(function: Callable[..., Any], expected: list[str]) -> None:
    assert complaints(function, ROW) == expected


def test_equal_complaints_of_a_line_are_counted() -> None:
    """One a line and reason; those of different lines stay apart."""

    def two_lines(x: torch.Tensor) -> torch.Tensor:
        y = x.cumprod(1).cumprod(1)
        return y.cumprod(1)

    expected = ["aten.cumprod.default: is not supported (2 times)", "aten.cumprod.default: is not supported"]
    assert complaints(two_lines, ROW) == expected


def test_a_layer_without_a_line_of_the_users_is_named() -> None:
    """In errors and in the graph: by its path, its kind, and the model's."""
    inner = nn.Sequential(nn.Linear(8, 8), nn.RReLU())
    model = nn.Sequential(nn.ReLU(), inner)
    with pytest.raises(
        UnsupportedOp, match=r"in 1\.1: is not supported\n    at: 1\.1 \(RReLU of the Sequential\)"
    ):
        tinyet.compile(model, (ROW,))
    inner[1] = nn.Softmax(1)
    batches = [ROW * factor for factor in (1, 2, 3)]
    for calibration in (None, batches):
        graph = tinyet.compile(model, (ROW,), calibration=calibration).graph
        places = {node.op: node.origins[-1].place for node in graph.nodes if node.op in ("linear", "softmax")}
        assert places == {
            "linear": "1.0 (Linear of the Sequential)",
            "softmax": "1.1 (Softmax of the Sequential)",
        }
        assert all(str(origin) == origin.place for node in graph.nodes for origin in node.origins)
    with pytest.raises(UnsupportedOp, match=r"at: Conv3d\n"):
        tinyet.compile(nn.Conv3d(1, 1, 1), (torch.zeros(1, 1, 2, 2, 2),))


class TwoMasks(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor, spectrum: torch.Tensor) -> torch.Tensor:
        return x * mask + spectrum.abs()


def test_all_inputs_that_cannot_be_are_told() -> None:
    with pytest.raises(ModelError) as caught:
        tinyet.compile(TwoMasks(), (ROW, ROW.to(torch.complex128), ROW.to(torch.complex64)))
    found = re.findall(r"- (input .*)\n    at: (.*)\n    do: (.*)", caught.value.what)
    assert [what for what, _, _ in found] == [
        "input 1, mask: it is complex128",
        "input 2, spectrum: it is complex64",
    ]
    assert all("x * mask + spectrum.abs()" in where for _, where, _ in found)


def test_integers_are_told_what_they_are_for() -> None:
    (complaint,) = complaints(lambda x: x.argmin(1), torch.tensor([[1, 2]]), kind=UnsupportedShape)
    assert complaint == "aten.argmin.default: computes with int32 values"
