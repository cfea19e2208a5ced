# SPDX-License-Identifier: Apache-2.0
"""Results far from the range that LiteRT fixes for them, clamps beyond their input, averages, tiny and huge values: the
compiled program's output against the float model."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tinyet
from tests.torch_helpers import Lambda, find, input_params, output_params
from tinyet import TinyetQuantizer, dynamic_config, int8_config, int16_config
from tinyet.errors import QuantizationError
from tinyet.fx.capture import capture
from tinyet.program import Program
from tinyet.quantization.config import QuantConfig
from tinyet.quantization.quantize import quantize
from tinyet.quantization.training import prepare_training

Function = Callable[[torch.Tensor], torch.Tensor]

_RNG = np.random.default_rng(4)
ROWS = torch.from_numpy(_RNG.normal(0, 1, (64, 8)).astype(np.float32))
IMAGES = torch.from_numpy(_RNG.normal(0, 1, (32, 3, 8, 8)).astype(np.float32))


def layer(make: Callable[[], nn.Module]) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(7)
        return make()


LINEAR = layer(lambda: nn.Linear(8, 8))
WIDE = layer(lambda: nn.Linear(8, 360))
CONV = layer(lambda: nn.Conv2d(3, 4, 3, padding=1))
assert isinstance(LINEAR, nn.Linear)
WEIGHT, BIAS = LINEAR.weight.detach(), LINEAR.bias.detach()


def compiled(
    function: Function, data: torch.Tensor, config: QuantConfig | None = None
) -> tuple[Program, float]:
    """The program, and its SQNR in dB over the data; at most 200."""
    model = Lambda(function).eval()
    quantizer = None if config is None else TinyetQuantizer(config)
    calibration = None if config is not None and config.dynamic else [data]
    program = tinyet.compile(model, (data[:1],), calibration=calibration, quantizer=quantizer)
    with torch.no_grad():
        exact = torch.cat([model(row[None]).flatten() for row in data]).double().numpy()
    found = np.concatenate([np.ravel(program.run(row[None].numpy())).astype(np.float64) for row in data])
    power, noise = float((exact**2).sum()), float(((exact - found) ** 2).sum())
    return program, min(200.0, 10 * math.log10(power / max(noise, power * 1e-20)))


def ops(program: Program) -> list[str]:
    return [node.op for node in program.graph.nodes]


FAR: list[tuple[str, Function, torch.Tensor, float]] = [
    ("softmax over 360", lambda x: F.softmax(WIDE(x), -1), ROWS, 34),
    ("log_softmax below -16", lambda x: F.log_softmax(50 * LINEAR(x), -1), ROWS, 39),
    ("log_softmax of little", lambda x: F.log_softmax(LINEAR(x) / 100, -1), ROWS, 54),
    ("sigmoid far below", lambda x: torch.sigmoid(LINEAR(x) - 6), ROWS, 34),
    ("sigmoid far above", lambda x: torch.sigmoid(LINEAR(x) + 6), ROWS, 54),
    ("tanh of little", lambda x: torch.tanh(LINEAR(x) / 100), ROWS, 36),
    ("hardsigmoid far below", lambda x: F.hardsigmoid(LINEAR(x) / 10 - 2.9), ROWS, 28),
    ("two sigmoids", lambda x: torch.cat([torch.sigmoid(LINEAR(x) - 6), torch.sigmoid(x - 6)], 1), ROWS, 34),
    ("clamp beyond", lambda x: torch.clamp(torch.tanh(x), 5, 6), ROWS, 150),
    ("relu6 that is never reached", lambda x: F.relu6(LINEAR(x) - 50) + x, ROWS, 38),
    ("pool, clamp", lambda x: F.max_pool2d(100 * CONV(x), 2).clamp(0, 1), IMAGES, 25),
    ("average, clamp", lambda x: F.avg_pool2d(100 * CONV(x), 2).clamp(0, 1), IMAGES, 20),
    ("slice, clamp", lambda x: (100 * CONV(x))[:, 1:].clamp(0, 1), IMAGES, 22),
    ("part of what is split, clamp", lambda x: LINEAR(x).chunk(2, 1)[0].clamp(-0.02, 0.02), ROWS, 22),
    ("average of all", lambda x: F.adaptive_avg_pool2d(CONV(x), 1), IMAGES, 36),
    ("tiny values", lambda x: (LINEAR(x) * 1e-10) * 1e10, ROWS, 36),
    ("tiny inputs beside a bias", lambda x: LINEAR(x * 1e-7), ROWS, 40),
    ("tiny weights", lambda x: F.linear(x, WEIGHT * 1e-12), ROWS, 36),
    ("huge values", lambda x: (LINEAR(x) * 1e30) * 1e-30, ROWS, 36),
    ("log10 of tiny values", lambda x: torch.log10((F.softplus(x) + 0.1) * 1e-8), ROWS, 40),
    ("matmul of tiny values", lambda x: (x[:, :, None] * 1e-15) @ (x[:, None, :] * 1e-15), ROWS, 30),
    ("matmul of huge values", lambda x: (x[:, :, None] * 1e18) @ (x[:, None, :] * 1e18), ROWS, 30),
    ("matmul of both", lambda x: (x[:, :, None] * 1e30) @ (x[:, None, :] * 1e-30), ROWS, 30),
    ("a branch of zeros", lambda x: LINEAR(x) * 0.0 + 1e-12 * x, ROWS, 38),
    ("layer_norm of little", lambda x: F.layer_norm(x * 1e-6, (8,)), ROWS, 26),
]


@pytest.mark.parametrize(("function", "data", "at_least"), [f[1:] for f in FAR], ids=[f[0] for f in FAR])
def test_is_as_near_as_its_own_range_allows(function: Function, data: torch.Tensor, at_least: float) -> None:
    assert compiled(function, data)[1] > at_least


@pytest.mark.parametrize(
    "function", [FAR[0][1], FAR[3][1], FAR[15][1]], ids=[FAR[0][0], FAR[3][0], FAR[15][0]]
)
def test_int16_too(function: Function) -> None:
    assert compiled(function, ROWS, int16_config())[1] > 46


def test_dynamic_layers_take_tiny_inputs() -> None:
    assert compiled(lambda x: F.linear(x * 1e-12, WEIGHT), ROWS, dynamic_config())[1] > 36


def both(x: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(F.softmax(LINEAR(x), -1) * 3 - 6)


def test_litert_scales_for_who_wants_litert_bits() -> None:
    for config, small, large in (
        (int8_config(), None, None),
        (int8_config(outputs="litert"), (1 / 256, -128), (1 / 256, -128)),
        (int16_config(outputs="litert"), (1 / 32768, 0), (1 / 32768, 0)),
    ):
        program = quantize(capture(Lambda(both), ROWS[:1]), [ROWS], TinyetQuantizer(config))
        (softmax,), (sigmoid,) = find(program, "softmax"), find(program, "sigmoid")
        assert small is None or output_params(sigmoid) == small
        assert large is None or output_params(softmax) == large
        if small is None:
            assert output_params(sigmoid)[0] < 1 / 2560  # type: ignore[index]
    with pytest.raises(QuantizationError, match="no 'float' outputs"):
        int8_config(outputs="float")


def test_a_usual_classifier_keeps_litert_scale() -> None:
    model = Lambda(lambda x: F.softmax(6 * LINEAR(x), -1))
    for config in (int8_config(), int16_config()):
        program = quantize(capture(model, ROWS[:1]), [ROWS], TinyetQuantizer(config))
        (node,) = find(program, "softmax")
        assert output_params(node) in ((1 / 256, -128), (1 / 32768, 0))


def test_clamps_that_the_input_serves_share_its_parameters() -> None:
    """A ReLU of what others read, too, costs no change of scale; a clamp to a sliver has to."""

    def two(low: float, high: float) -> tuple[object, object]:
        def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            y = LINEAR(x)
            return y * 0.5, y.clamp(low, high)

        program = quantize(capture(Lambda(function), ROWS[:1]), [ROWS])
        (node,) = find(program, "clamp")
        return input_params(node), output_params(node)

    own, result = two(0.0, 100.0)
    assert own == result
    own, result = two(-0.01, 0.01)
    assert own != result


def test_a_clamp_behind_movers_goes_into_the_layer() -> None:
    program, _ = compiled(lambda x: F.relu(F.max_pool2d(CONV(x), 2)), IMAGES)
    assert "clamp" not in ops(program)
    assert "requantize" not in ops(program)


def test_averages_in_other_windows() -> None:
    """A mean over all; a depthwise convolution with ones; where windows differ in size, the input's steps."""
    for function, op in (
        (lambda x: F.avg_pool2d(CONV(x), 8), "mean"),
        (lambda x: F.avg_pool2d(CONV(x), 4, 2, 1), "conv2d"),
        (lambda x: F.avg_pool2d(CONV(x), 4, 2, 1, count_include_pad=False), "avg_pool2d"),
        (lambda x: F.adaptive_avg_pool2d(CONV(x), (3, 5)), "adaptive_avg_pool2d"),
    ):
        program, sqnr = compiled(function, IMAGES)
        assert ops(program).count(op) == (2 if op == "conv2d" else 1)
        assert sqnr > 30


def test_training_finds_the_same_ranges() -> None:
    session = prepare_training(Lambda(both), (ROWS[:1],), batch_size=64)
    for _ in range(3):
        session(ROWS)
    program = session.convert()
    (sigmoid,) = find(program, "sigmoid")
    assert output_params(sigmoid)[0] < 1 / 2560  # type: ignore[index]
    tiny = prepare_training(Lambda(lambda x: LINEAR(x) * 1e-8), (ROWS[:1],), batch_size=64)
    assert float(tiny(ROWS).detach().abs().max()) > 1e-9
    assert "linear" in ops(tinyet.compile(tiny.convert()))


def test_a_range_beyond_float32_is_told_with_its_place() -> None:
    model = Lambda(lambda x: LINEAR(x) * 3e38)
    with pytest.raises(QuantizationError, match="more than a float32 holds") as error:
        quantize(capture(model, ROWS[:1]), [ROWS.clamp(-0.5, 0.5)])
    assert "test_ranges.py" in str(error.value)
