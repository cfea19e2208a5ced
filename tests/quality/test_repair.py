# SPDX-License-Identifier: Apache-2.0
"""What stands before the first layer is mended where int8 spoils it, exactly in float, and else is left alone."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import tinyet
from tests.quality.ruined_networks import NETWORKS, Ruined, motion, sound, table
from tests.torch_helpers import Lambda, mlperf_models, pieces
from tinyet import TinyetQuantizer, int8_config, int16_config
from tinyet.fx.capture import capture
from tinyet.fx.examples import Inputs, example_of
from tinyet.ir import DType
from tinyet.ops.matmul import MatMul
from tinyet.program import Program
from tinyet.quantization.fronts import Mended, mend_fronts
from tinyet.quantization.quantize import quantize_fully

pytest.importorskip("torchao")


def accuracy(program: Program, network: Ruined) -> float:
    """Of the program's own integers."""
    x, y = network.evaluation
    answers = [np.asarray(program.run(sample[None].numpy())).argmax() for sample in x]
    return float((np.array(answers) == y.numpy()).mean())


def mended(model: nn.Module, samples: list[torch.Tensor], quantizer: TinyetQuantizer | None = None) -> Mended:
    """samples: batches of the model's one input."""
    program = capture(model, example_of((samples[0],)))
    inputs: list[Inputs] = [(sample,) for sample in samples]
    return mend_fronts(program, quantizer or TinyetQuantizer(), inputs)


@pytest.mark.parametrize("make", NETWORKS, ids=lambda make: make.__name__)
def test_ruined_networks_end_within_a_point_of_float(make: Callable[[], Ruined], tmp_path: Path) -> None:
    network = make()
    program = tinyet.compile(network.module, network.example_inputs, calibration=network.calibration)
    assert accuracy(program, network) >= network.float_accuracy() - 0.01
    assert program.answers is not None
    assert program.answers.healthy
    (note,) = [n for n in program.notes if "18 are enough" in n.text]
    assert note.origin is not None
    assert note.origin.file.endswith(f"{network.name}.py")
    # Learned layers are integers as before.
    layers = [n for n in program.graph.nodes if n.op in ("conv2d", "linear")]
    learned = [n for n in layers if n.optional_input(2) is not None]
    assert {n.output.dtype for n in learned} == {DType.INT8}
    project = tinyet.generate(program, "mps2_an386", tmp_path / network.name)
    assert project.validate(network.evaluation[0][:8, None].numpy(), on="host").bit_exact


def test_without_mending_they_are_ruined() -> None:
    """The networks are what they are said to be: else the test above would show nothing."""
    for network in (table(), motion()):
        program = capture(network.module, example_of(network.example_inputs))
        plain = quantize_fully(program, network.calibration, mend=False)
        compiled = tinyet.compile(plain.program)
        assert accuracy(compiled, network) < network.float_accuracy() - 0.2


def test_the_transform_of_a_sound_is_in_int16_and_its_logarithm_in_float() -> None:
    network = sound()
    program = tinyet.compile(network.module, network.example_inputs, calibration=network.calibration)
    transforms = [
        n for n in program.graph.nodes if isinstance(n.attrs, MatMul) and n.output.dtype is DType.INT16
    ]
    assert len(transforms) == 2
    assert program.inputs[0].dtype is DType.INT16
    (log,) = [n for n in program.graph.nodes if "function=log" in str(n.attrs) or "'log'" in str(n.attrs)]
    assert log.output.dtype is DType.FLOAT32


def _columns(seed: int, *shape: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sizes between 1e-3 and 1e4, and middles up to 100 times as far from 0, of the shape."""
    rng = torch.Generator().manual_seed(seed)
    size = 10 ** (torch.rand(*shape, generator=rng) * 7 - 3)
    return size, size * (torch.rand(*shape, generator=rng) * 200 - 100)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["linear", "linear without bias", "conv1d", "conv1d padded", "conv2d"])
def test_columns_are_rescaled_exactly(kind: str, seed: int) -> None:
    """A learned layer reads raw units. Shifted and scaled, with other weights, it gives the same."""
    torch.manual_seed(seed)
    layers: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
        "linear": (nn.Linear(6, 4), (1, 6)),
        "linear without bias": (nn.Linear(6, 4, bias=False), (1, 6)),
        "conv1d": (nn.Conv1d(6, 4, 3), (1, 6, 10)),
        "conv1d padded": (nn.Conv1d(6, 4, 3, padding=1), (1, 6, 10)),
        "conv2d": (nn.Conv2d(6, 4, 2, bias=False), (1, 6, 5, 5)),
    }
    layer, shape = layers[kind]
    size, middle = _columns(seed, 1, 6, *[1] * (len(shape) - 2))
    if kind == "conv1d padded":
        middle = middle * 0  # a shift would not be that of the zeros around
    weight: torch.Tensor = layer.weight  # type: ignore[assignment]
    with torch.no_grad():
        weight /= size
    x = torch.randn(16, *shape[1:]) * size + middle
    result = mended(layer.eval(), pieces(x))
    assert result.notes
    with torch.no_grad():
        wanted = copy.deepcopy(layer).double()(x.double())
        got = torch.cat([result.program.module()(sample) for sample in pieces(x)])
    # Both round to float32, beside sums as large as the middles make them.
    largest = float((x.double().abs() / size.double()).max())
    assert float((got - wanted).abs().max()) < 2e-6 * largest


def test_raw_units_without_a_scaler() -> None:
    size, middle = _columns(3, 1, 6)
    first = nn.Linear(6, 16)
    model = nn.Sequential(first, nn.ReLU(), nn.Linear(16, 3)).eval()
    torch.manual_seed(2)
    with torch.no_grad():
        first.weight.copy_(torch.randn(16, 6) / size)
        first.bias.copy_(torch.randn(16) - (first.weight * middle).sum(1))
    x = torch.randn(64, 6) * size + middle
    program = tinyet.compile(model, (x[:1],), calibration=pieces(x))
    with torch.no_grad():
        wanted = model(x)
    got = torch.tensor(np.concatenate([program.run(sample[None].numpy()) for sample in x]))
    noise, signal = (got - wanted).square().mean(), (wanted - wanted.mean(0)).square().mean()
    assert float(10 * torch.log10(signal / noise)) > 25


def _scaled(x: torch.Tensor) -> torch.Tensor:
    return (x - 0.5) / 0.25


HEALTHY: dict[str, tuple[nn.Module, torch.Tensor]] = {
    "no front": (nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)), torch.randn(16, 6)),
    "a scaler of like columns": (nn.Sequential(Lambda(_scaled), nn.Linear(6, 3)), torch.rand(16, 6)),
    "no learned layer": (Lambda(lambda x: torch.log(x.abs() + 1e-6)), torch.randn(16, 6) * 1e3),
    "one channel": (nn.Conv2d(1, 4, 3), torch.randn(16, 1, 8, 8)),
    "behind a layer": (
        nn.Sequential(nn.Linear(6, 6), Lambda(torch.exp), nn.Linear(6, 3)),
        torch.randn(16, 6),
    ),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_what_is_healthy_is_left_alone(name: str) -> None:
    model, x = HEALTHY[name]
    quantizer = TinyetQuantizer()
    program = capture(model.eval(), example_of((x[:1],)))
    result = mend_fronts(program, quantizer, [(sample,) for sample in pieces(x)])
    assert result.program is program
    assert result.quantizer is quantizer
    assert not result.notes


def test_trained_networks_are_left_alone() -> None:
    models = mlperf_models()
    sounds = models.keyword_test()[0]
    images = torch.rand(8, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    for model, x in ((models.ds_cnn(), sounds[:320:10]), (models.resnet8(), images)):
        program = capture(model.eval(), example_of((x[:1],)))
        result = mend_fronts(program, TinyetQuantizer(), [(sample,) for sample in pieces(x)])
        assert result.program is program
        assert not result.notes


def test_what_the_user_has_said_stays() -> None:
    network = table()
    for quantizer in (
        TinyetQuantizer().set_op("sub", int8_config()).set_op("div", int8_config()),
        TinyetQuantizer().set_global(None),
    ):
        result = mended(network.module, network.calibration, quantizer)
        assert result.quantizer is quantizer
        assert not result.notes


def test_int16_is_mended_too() -> None:
    """Sixteen bits hold no volts beside an income either."""
    network = table()
    program = tinyet.compile(
        network.module,
        network.example_inputs,
        calibration=network.calibration,
        quantizer=TinyetQuantizer(int16_config()),
    )
    assert accuracy(program, network) >= network.float_accuracy() - 0.01


class _Products(nn.Module):
    """A matrix in a buffer, a division by one, and one by a number."""

    matrix: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        rng = torch.Generator().manual_seed(5)
        self.register_buffer("matrix", torch.randn(16, 5, generator=rng))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.matmul(x, self.matrix) / (self.matrix[0].abs() + 0.5) / 3.0


def test_matrices_in_buffers_and_divisors_are_int16(tmp_path: Path) -> None:
    x = torch.randn(16, 3, 16, generator=torch.Generator().manual_seed(6))
    program = tinyet.compile(
        _Products(),
        (x[:1],),
        calibration=pieces(x),
        quantizer=TinyetQuantizer(int16_config()),
        name="products",
    )
    assert not program.notes
    assert {t.dtype for node in program.graph.nodes for t in node.outputs} == {DType.INT16}
    wanted = _Products()(x)
    got = torch.tensor(np.concatenate([program.run(sample[None].numpy()) for sample in x]))
    # Two hundred times less than int8 would lose.
    assert float((got - wanted).abs().max()) < 4e-4 * float(wanted.abs().max())
    project = tinyet.generate(program, "mps2_an386", tmp_path / "products")
    assert project.validate(x.numpy(), on="host").bit_exact
