# SPDX-License-Identifier: Apache-2.0
"""Calibration in float64: what it computes, and that a program does not depend on the processor that quantized it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn

import tinyet
from tests.torch_helpers import Lambda
from tinyet.fx.capture import capture
from tinyet.fx.exact import Exact
from tinyet.quantization.observers import (
    HistogramObserver,
    WeightPerChannelObserver,
    _float64_by_default,
    last_borders,
    rebinned,
)
from tinyet.quantization.quantize import calibrate, prepare
from tinyet.quantization.quantizer import TinyetQuantizer

ROOT = Path(__file__).resolve().parents[2]
OTHER_SET = {
    "ATEN_CPU_CAPABILITY": "default",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "MKL_CBWR": "COMPATIBLE",
    "OPENBLAS_CORETYPE": "Nehalem",
}
"""Environment in which torch and the libraries under it use what every x86-64 processor has."""


def drawn(*shape: int, seed: int) -> torch.Tensor:
    """Numbers in -1 ... 1, made of integers, so that they are the same everywhere."""
    return torch.from_numpy(
        np.random.default_rng(seed).integers(-9999, 9999, shape).astype(np.float32) / 9999
    )


class Network(nn.Module):
    """A bit of everything that sums: convolutions, a norm, attention, a weight that is computed."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(6, 16, 3, padding=1)
        self.batch_norm = nn.BatchNorm2d(16)
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.layer_norm = nn.LayerNorm(16)
        self.mixed = nn.Linear(16, 48)
        self.head = nn.utils.parametrizations.weight_norm(nn.Linear(16, 8))
        for seed, parameter in enumerate(self.parameters()):
            parameter.data.copy_(drawn(*parameter.shape, seed=seed) * 0.4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.depthwise(F.relu(self.batch_norm(self.conv(x))))
        x = F.relu(x).flatten(2).transpose(1, 2)
        q, k, v = self.mixed(self.layer_norm(x)).chunk(3, -1)
        x = x + F.softmax(q @ k.transpose(1, 2), -1) @ v
        return self.head(F.gelu(x).mean(1))  # type: ignore[no-any-return]


def programs() -> str:
    """Which instructions torch uses, and a hash of programs in two ways of quantization, in hex."""
    data = drawn(24, 6, 8, 8, seed=100)
    digest = hashlib.sha256()
    quantizer = TinyetQuantizer(tinyet.int8_config(observer="mse", weights="mse"))
    for improved, chosen in ((False, None), (True, quantizer)):
        program = tinyet.compile(
            Network().eval(),
            (data[:1],),
            calibration=data.split(8),
            quantizer=chosen,
            equalize=improved,
            correct_bias=improved,
            learn_rounding=improved,
        )
        digest.update(program.data)
    return f"{torch.backends.cpu.get_cpu_capability()} {digest.hexdigest()}"


def test_a_program_does_not_depend_on_the_processor() -> None:
    elsewhere = subprocess.run(
        [sys.executable, "-m", "tests.quantization.test_exact"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), **OTHER_SET},
        stdout=subprocess.PIPE, text=True, check=True, timeout=600,
    )  # fmt: skip
    (own, first), (other, second) = programs().split(), elsewhere.stdout.split()
    if own == other:
        pytest.skip(f"torch knows one instruction set on this processor: {own}")
    assert first == second


def test_sums_are_those_of_float64() -> None:
    x = torch.tensor([[1e8, 1.0, -1e8]])
    weight = torch.ones(1, 3)
    model = Lambda(lambda x: F.linear(x, weight) + torch.zeros(1, dtype=torch.float32)).eval()
    (result,) = Exact(capture(model, x).module(check_guards=False)).run(x)
    assert result.dtype is torch.float64
    assert result.item() == 1.0


@torch.library.custom_op("tinyet_test::only_float32", mutates_args=())
def only_float32(x: torch.Tensor) -> torch.Tensor:
    assert x.dtype is torch.float32
    return x + 1


@only_float32.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def test_operators_of_others_get_float32() -> None:
    model = Lambda(lambda x: torch.ops.tinyet_test.only_float32(x * 2) * 0.1).eval()
    x = torch.tensor([0.3])
    result = Exact(capture(model, x).module(check_guards=False)).run(x)
    assert result.dtype is torch.float64
    assert (
        result.item()
        == (np.float32(np.float64(np.float32(0.3)) * 2) + np.float32(1)).astype(np.float64) * 0.1
    )


def test_observers_see_float32_and_pass_float64_on() -> None:
    data = drawn(4, 3, 6, 6, seed=1)
    prepared = prepare(capture(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval(), data[:1]))
    seen: list[torch.dtype] = []
    for module in prepared.module.modules():
        if isinstance(module, HistogramObserver):
            module.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].dtype))
    assert calibrate(prepared, [data]) == 4
    assert set(seen) == {torch.float32}
    with torch.no_grad():
        result = Exact(prepared.module).run(data[:1])
    assert result.dtype is torch.float64
    assert not torch.equal(result, result.float().double()), "rounded on the way"


def test_a_histogram_is_moved_without_loss() -> None:
    """Widening the range spreads counts in 16ths over the new bins: none may be lost, as float32 would beyond 2**24."""
    observer = HistogramObserver(dtype=torch.int8, quant_min=-128, quant_max=127)
    observer(torch.zeros(1 << 24))
    observer(torch.tensor([-1.0, 0.5]))
    observer(torch.tensor([3.0]))
    assert observer.histogram.dtype is torch.float64
    assert observer.histogram.sum().item() == (1 << 24) + 3
    scale, zero_point = observer.calculate_qparams()
    assert (scale.dtype, scale.shape, zero_point.dtype) == (torch.float32, (1,), torch.int32)
    assert torch.get_default_dtype() is torch.float32


def test_computed_weights_are_rounded_once() -> None:
    """The norm of 4096 numbers summed in float32 would be off by more than half a unit in the last place."""
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(4096, 1, bias=False)).eval()
    direction, length = drawn(1, 4096, seed=3), torch.tensor([[3.0]])
    layer.parametrizations.weight.original0.data.copy_(length)
    layer.parametrizations.weight.original1.data.copy_(direction)
    program = capture(layer, drawn(1, 4096, seed=4))
    exact = direction.double() * (3.0 / direction.double().norm())
    assert torch.equal(program.state_dict["weight"], exact.float())
    assert layer.weight.dtype is torch.float32, "the user's own module stays as it is"


def test_modules_of_a_graph() -> None:
    """Fake quantizers, which training puts where observers are, compute in float32 what goes on as float64."""
    prepared = prepare(capture(nn.Linear(3, 2).eval(), torch.ones(1, 3)), training=True)
    assert isinstance(prepared.module, fx.GraphModule)
    assert calibrate(prepared, [drawn(4, 3, seed=5)]) == 4
    assert Exact(prepared.module).run(torch.ones(1, 3)).dtype is torch.float64


if __name__ == "__main__":
    sys.stdout.write(programs())


@pytest.mark.parametrize("seed", range(12))
def test_the_search_over_a_histogram_is_torchaos(seed: int) -> None:
    """Normal, heavy-tailed, one-sided and few values."""
    random = torch.Generator().manual_seed(seed)
    observer = HistogramObserver(dtype=torch.int8, quant_min=-128, quant_max=127)
    for _ in range(2):
        values = torch.randn(3 if seed % 4 == 3 else 3000, generator=random)
        observer((values, values**5, values.relu(), values)[seed % 4])
    with _float64_by_default():
        found, expected = observer._range(), observer._non_linear_param_search()
    assert torch.equal(torch.stack(found), torch.stack(expected))


def test_borders_below_values() -> None:
    """As torch looks them up, where values lie below and above all borders, and on some of them."""
    random = torch.Generator().manual_seed(3)
    for count in (1, 5, 200):
        borders = torch.randn(count, generator=random).sort()[0]
        values = torch.cat([torch.randn(300, generator=random) * 2, borders, borders]).sort()[0]
        assert torch.equal(last_borders(values, borders), torch.bucketize(values, borders, right=True) - 1)


@pytest.mark.parametrize("counted", [0, 1, 40, 2048])
def test_few_values_are_moved_as_many_are(counted: int) -> None:
    """Of a histogram with few values only their bins are looked at: to the last bit that makes no difference."""
    generator = np.random.default_rng(counted)
    histogram = torch.zeros(2048, dtype=torch.float64)
    where = torch.from_numpy(generator.permutation(2048)[:counted])
    histogram[where] = torch.from_numpy(generator.uniform(0, 9, counted))
    middles = -1 + (torch.arange(2048 * 16, dtype=torch.float64) + 0.5) * (3.0 / 2048 / 16)
    borders = -1.7 + torch.arange(2049, dtype=torch.float64) * (4.1 / 2048)
    at = last_borders(middles, borders).clamp(0, 2047)
    wanted = torch.bincount(at, weights=histogram.repeat_interleave(16) / 16, minlength=2048)
    assert torch.equal(rebinned(histogram, middles, borders), wanted)


def test_weights_are_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the same in each sample of a calibration."""
    shown: list[tuple[int, ...]] = []
    forward = WeightPerChannelObserver.forward

    def noted(self: WeightPerChannelObserver, x: torch.Tensor) -> torch.Tensor:
        shown.append(tuple(x.shape))
        return forward(self, x)

    monkeypatch.setattr(WeightPerChannelObserver, "forward", noted)
    data = [drawn(1, 6, 8, 8, seed=seed) for seed in range(5)]
    prepared = prepare(capture(Network().eval(), (data[0],)), TinyetQuantizer())
    shown.clear()
    assert calibrate(prepared, data) == 5
    assert sorted(shown) == sorted([(16, 6, 3, 3), (16, 1, 3, 3), (48, 16), (8, 16)])
