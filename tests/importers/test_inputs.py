# SPDX-License-Identifier: Apache-2.0
"""What a model takes: int16 of a converter, masks, and tensors nested in any way, with numbers among them."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tinyet
from tinyet.errors import DataError, ModelError, QuantizationError
from tinyet.fx.capture import capture
from tinyet.fx.examples import example_of
from tinyet.importers.torch.importer import import_program
from tinyet.ir import ITSELF, DType
from tinyet.quantization.batches import batches_of
from tinyet.reference import run_graph


class Microphone(nn.Module):
    """Samples as a converter gives them, and some of them handed through."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv1d(1, 4, 9, stride=4), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.head(torch.relu(self.conv(x / 32768)).mean(2)), x[:, :, :5]


@pytest.mark.parametrize("quantized", [False, True])
def test_int16_samples(quantized: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    data = rng.integers(-32768, 32768, (6, 1, 1, 64)).astype(np.int16)
    batches = [torch.from_numpy(each) for each in data]
    net = Microphone().eval()
    program = tinyet.compile(net, (batches[0],), calibration=batches if quantized else None)
    (x,) = program.inputs
    assert (x.dtype, x.type.quant) == (DType.INT16, ITSELF)
    for batch in batches:
        y, first = program.run(batch.numpy())
        wanted, same = net(batch)
        np.testing.assert_allclose(
            np.asarray(y, np.float64), wanted.detach(), atol=0.02 if quantized else 1e-5
        )
        np.testing.assert_array_equal(first, same)
        assert first.dtype == np.int16
    with pytest.raises(
        DataError, match=r"int16 as a converter gives it, the array holds fractions such as 0\.5"
    ):
        program.run(np.full((1, 1, 64), 0.5, np.float32))
    project = tinyet.generate(program, "mps2_an386", tmp_path / "net")
    result = project.validate(data[:, 0], on="host")
    assert result.bit_exact
    header = next((tmp_path / "net").rglob("microphone.h")).read_text()
    assert "int16_t *microphone_input_0(void)" in header


def test_calibration_of_int16_does_not_wrap() -> None:
    example = (torch.zeros(1, 4, dtype=torch.int16),)
    (batch,) = batches_of([np.full((1, 4), 30000)], example, "data.npz")
    assert batch[0].dtype is torch.int16
    with pytest.raises(DataError, match=r"takes int16, the array holds 40000 … 40000"):
        batches_of([np.full((1, 4), 40000)], example, "data.npz")


class Masked(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor, small: torch.Tensor) -> tuple[torch.Tensor, ...]:
        kept = torch.where(mask, x, -1.0), x.masked_fill(~mask, 2.0), mask, x * mask
        return *kept, small, small.float() * 0.5, small.long(), small > 3, small + 1.1


def test_masks_and_small_integers() -> None:
    x, mask = torch.randn(1, 4), torch.tensor([[True, False, True, False]])
    for dtype in (torch.int8, torch.int16, torch.int32):
        small = torch.tensor([[1, -2, 5, 100]], dtype=dtype)
        graph = import_program(capture(Masked(), (x, mask, small)), name="net")
        given = [x.numpy(), np.array([[7, 0, -1, 0]], np.int32), small.numpy()]
        wanted = Masked()(x, mask, small)
        for found, expected in zip(run_graph(graph, given), wanted, strict=True):
            np.testing.assert_allclose(np.asarray(found, np.float64), expected.numpy(), rtol=1e-6)


Pair = namedtuple("Pair", "left right")


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, batch: Any, pair: Any, factor: float = 1.0, *, scale: Any = None) -> Any:
        y = self.linear(batch["image"]) * factor + pair.left - pair.right["deep"]
        return {"y": y if scale is None else y * scale, "rest": [batch["other"]]}


A, B, C, D, E = torch.randn(5, 1, 4)
BATCH, PAIR = {"image": A, "other": B}, Pair(C, {"deep": D})
NAMES = ["batch_image", "batch_other", "pair_left", "pair_right_deep"]


def test_nested_inputs_and_numbers() -> None:
    net = Nested().eval()
    for example, names in (
        ((BATCH, PAIR, 1.5), NAMES),
        ({"batch": BATCH, "pair": PAIR, "factor": 2, "scale": E}, [*NAMES, "scale"]),
        ({"batch": BATCH, "pair": PAIR, "scale": None}, NAMES),
    ):
        graph = import_program(capture(net, example), name="net")
        found = run_graph(graph, [x.numpy() for x in (A, B, C, D, E)[: len(names)]])
        wanted = net(**example) if isinstance(example, dict) else net(*example)
        assert [tensor.name for tensor in graph.inputs] == names
        np.testing.assert_allclose(np.asarray(found[0], np.float64), wanted["y"].detach(), atol=1e-6)
        np.testing.assert_array_equal(found[1], B)
    exported = torch.export.export(net, (BATCH,), {"pair": PAIR, "scale": E})
    assert len(import_program(exported, name="net").inputs) == 5


def test_nested_calibration() -> None:
    other_order = {"pair": PAIR, "batch": {"other": B, "image": A}, "factor": 2}
    example = {"batch": BATCH, "pair": PAIR, "factor": 2}
    program = tinyet.compile(Nested().eval(), example, calibration=[other_order, (A, B, C, D)])
    assert str(program.inputs[0].dtype) == "DType.INT8"
    assert [note.text for note in program.notes][:1] == [
        "example input 'factor' (2) is a constant of the program"
    ]
    with pytest.raises(QuantizationError, match=r"calibration batch 1 is nested otherwise"):
        list(example_of(example).batches([other_order, ({"image": A}, B)]))


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ((BATCH, {"deep": "x"}), r"example input 1\['deep'\] is the string 'x', not a tensor"),
        ({"x": A, "y": np.zeros(3)}, r"example input 'y' is a ndarray, not a tensor"),
        ((1.5, None), r"example input 0 is the number 1.5, not a tensor"),
        ({1: A}, r"keys are no names"),
        ({}, r"example inputs are"),
    ],
)
def test_what_cannot_be_an_input(given: Any, what: str) -> None:
    with pytest.raises(ModelError, match=what):
        example_of(given)
