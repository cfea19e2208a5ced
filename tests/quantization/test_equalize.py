# SPDX-License-Identifier: Apache-2.0
"""Cross-layer equalization changes no float result and makes quantization better; bias correction gives means
back."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import ExportedProgram

from tests.torch_helpers import pieces, run
from tinyet.errors import QuantizationError
from tinyet.fx.capture import capture
from tinyet.quantization.config import int4_config
from tinyet.quantization.equalize import equalize
from tinyet.quantization.lowering import lower_program
from tinyet.quantization.quantize import quantize, quantize_fully
from tinyet.quantization.quantizer import TinyetQuantizer
from tinyet.reference import run_graph

GENERATOR = torch.Generator().manual_seed(21)
IMAGES = torch.randn(24, 3, 8, 8, generator=GENERATOR)
SAMPLES = [(x,) for x in pieces(IMAGES)]
# Magnitudes of channels that lie far apart, as folded batch norms leave them.
SPREAD = torch.tensor([1.0, 30.0, 0.02, 4.0, 0.3, 9.0])


def conv(inputs: int, outputs: int, groups: int = 1, spread: bool = False) -> nn.Conv2d:
    with torch.random.fork_rng():
        torch.manual_seed(inputs + 10 * outputs + groups)
        layer = nn.Conv2d(inputs, outputs, 3, padding=1, groups=groups)
    assert layer.bias is not None
    if spread:
        layer.weight.data *= SPREAD.reshape(-1, 1, 1, 1)
        layer.bias.data *= SPREAD
    return layer


def linear(inputs: int, outputs: int) -> nn.Linear:
    with torch.random.fork_rng():
        torch.manual_seed(inputs)
        return nn.Linear(inputs, outputs)


def network(between: Callable[[torch.Tensor], torch.Tensor], second: nn.Module) -> nn.Module:
    """Two layers, of which the second makes up for the spread of the first's channels."""
    first = conv(3, 6, spread=True)
    weight = copy.deepcopy(second.weight.data)
    assert isinstance(weight, torch.Tensor)
    if weight.shape[1] % 6 == 0:
        repeated = SPREAD.repeat_interleave(weight.shape[1] // 6)
        weight /= repeated.reshape(1, -1, *[1] * (weight.ndim - 2))
    elif len(weight) % 6 == 0:
        weight /= SPREAD.repeat_interleave(len(weight) // 6).reshape(-1, 1, 1, 1)
    second = copy.deepcopy(second)
    second.weight = nn.Parameter(weight)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = first, second

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(between(self.first(x)))  # type: ignore[no-any-return]

    return Net().eval()


PAIRS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], nn.Module]] = {
    "nothing": (lambda x: x, conv(6, 4)),
    "relu": (F.relu, conv(6, 4)),
    "leaky relu": (lambda x: F.leaky_relu(x, 0.1), conv(6, 4)),
    "depthwise": (F.relu, conv(6, 6, groups=6)),
    "multiplier": (F.relu, conv(6, 12, groups=6)),
    "max pool": (lambda x: F.max_pool2d(F.relu(x), 2), conv(6, 4)),
    "pad": (lambda x: F.pad(F.relu(x), (0, 1, 0, 1)), conv(6, 4)),
    "average and flatten": (lambda x: F.adaptive_avg_pool2d(F.relu(x), 1).flatten(1), linear(6, 4)),
    "flatten": (lambda x: F.relu(x).flatten(1), linear(6 * 64, 4)),
}


@pytest.mark.parametrize("case", PAIRS.values(), ids=PAIRS.keys())
def test_float_results_stay_and_integers_are_nearer(
    case: tuple[Callable[[torch.Tensor], torch.Tensor], nn.Module],
) -> None:
    model = network(*case)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    program = capture(model, IMAGES[:1])
    equalized, pairs = equalize(program, SAMPLES)
    assert [pair.second for pair in pairs] == [
        "linear" if isinstance(model.second, nn.Linear) else "conv2d_1"
    ]
    wanted = model(IMAGES[:1]).detach()
    torch.testing.assert_close(
        run(equalized, IMAGES[:1]), wanted, rtol=1e-4, atol=1e-4 * float(wanted.abs().max())
    )
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert noise(model, quantize(program, [IMAGES], equalize=True)) < 0.5 * noise(
        model, quantize(program, [IMAGES])
    )


def noise(model: nn.Module, program: ExportedProgram) -> float:
    """Squared error relative to each output channel's own power, over the images; the mean of the channels."""
    with torch.no_grad():
        exact = torch.cat([model(x) for x in pieces(IMAGES)])
    error = torch.cat([run(program, x) for x in pieces(IMAGES)]) - exact
    powers = [(y.transpose(0, 1).flatten(1) ** 2).mean(1) for y in (error, exact)]
    return float((powers[0] / powers[1]).mean())


@pytest.mark.parametrize(
    "between",
    [
        F.relu6,
        F.sigmoid,
        lambda x: F.relu(x) + 1,
        lambda x: F.pad(x, (1, 1, 1, 1), value=2.0),
        lambda x: F.relu(x) * x.mean(),
        lambda x: x.permute(0, 1, 3, 2).flip(1),
    ],
    ids=["relu6", "sigmoid", "add", "pad with 2", "read twice", "channels in another order"],
)
def test_what_does_not_commute_is_left_alone(between: Callable[[torch.Tensor], torch.Tensor]) -> None:
    program = capture(network(between, conv(6, 4)), IMAGES[:1])
    assert equalize(program, SAMPLES) == (program, ())


def test_shared_and_grouped_weights_are_left_alone() -> None:
    layer = conv(3, 3)
    shared = capture(nn.Sequential(layer, nn.ReLU(), layer), IMAGES[:1])
    assert equalize(shared, SAMPLES)[1] == ()
    grouped = capture(network(F.relu, conv(6, 4, groups=2)), IMAGES[:1])
    assert equalize(grouped, SAMPLES)[1] == ()


def test_chain_and_dead_channels() -> None:
    first, second, third = conv(3, 6, spread=True), conv(6, 6, groups=6), conv(6, 4)
    first.weight.data[2] = 0
    assert first.bias is not None
    first.bias.data[2] = -1  # never alive behind relu
    model = nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), third).eval()
    equalized, pairs = equalize(capture(model, IMAGES[:1]), SAMPLES)
    assert [(pair.first, pair.second) for pair in pairs] == [("conv2d", "conv2d_1"), ("conv2d_1", "conv2d_2")]
    assert pairs[0].factors[2] == 1.0
    wanted = model(IMAGES[:1]).detach()
    torch.testing.assert_close(run(equalized, IMAGES[:1]), wanted, rtol=1e-4, atol=1e-4)


def test_float_graph_is_the_equalized_model() -> None:
    model = network(F.relu, conv(6, 6, groups=6))
    program = capture(model, IMAGES[:1])
    lowered = lower_program(program, name="net", calibration=[IMAGES], equalize=True)
    assert lowered.float_graph is not None
    (output,) = run_graph(lowered.float_graph, [IMAGES[:1].numpy()])
    torch.testing.assert_close(torch.from_numpy(output), model(IMAGES[:1]).detach(), rtol=1e-3, atol=1e-3)
    assert [n.op for n in lowered.float_graph.nodes] == [
        n.op for n in (lower_program(program, name="net").float_graph or lowered.float_graph).nodes
    ]


def test_without_data_there_is_nothing_to_equalize_with() -> None:
    program = capture(network(F.relu, conv(6, 4)), IMAGES[:1])
    with pytest.raises(QuantizationError, match="no calibration data"):
        lower_program(program, name="net", equalize=True)


# ---------------------------------------------------------------- bias correction


def channel_means(model: nn.Module, program: ExportedProgram) -> torch.Tensor:
    """Mean error of each output channel over the images."""
    with torch.no_grad():
        exact = torch.cat([model(x) for x in pieces(IMAGES)])
    return (torch.cat([run(program, x) for x in pieces(IMAGES)]) - exact).transpose(0, 1).flatten(1).mean(1)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("transposed", [False, True])
def test_mean_errors_vanish(bias: bool, transposed: bool) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(2)
        first = nn.Conv2d(3, 8, 3, bias=bias)
        last = nn.ConvTranspose2d(8, 5, 2, bias=bias) if transposed else nn.Conv2d(8, 5, 3, bias=bias)
    model = nn.Sequential(first, nn.ReLU(), last).eval()
    program = capture(model, IMAGES[:1])
    quantizer = TinyetQuantizer(int4_config())
    plain = channel_means(model, quantize(program, [IMAGES], quantizer)).abs()
    corrected = channel_means(model, quantize(program, [IMAGES], quantizer, correct_bias=True)).abs()
    assert float(corrected.max()) < 0.2 * float(plain.max())


def test_correction_reaches_through_layers_and_linear_outputs() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 16), nn.ReLU(), nn.Linear(16, 4)
        ).eval()
    program = capture(model, IMAGES[:1])
    quantizer = TinyetQuantizer(int4_config(bits=3))
    before = noise(model, quantize(program, [IMAGES], quantizer))
    result = quantize_fully(program, [IMAGES], quantizer, equalize=True, correct_bias=True)
    assert noise(model, result.program) < before
    assert float(channel_means(model, result.program).abs().max()) < 0.02
