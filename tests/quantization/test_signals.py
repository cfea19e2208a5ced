# SPDX-License-Identifier: Apache-2.0
"""Features of signals in front of a quantized network stay in float32, and it is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import tinyet
from tinyet import features
from tinyet.ir import DType

SOUNDS = (
    torch.randn(8, 1, 400, generator=torch.Generator().manual_seed(7))
    * torch.logspace(0, 3, 8)[:, None, None]
)
WINDOW = torch.hann_window(64)


def by_hand(x: Tensor) -> Tensor:
    """(1, 400) to (1, 12, 33): nothing of tinyet's."""
    power = torch.stft(x, 64, 30, window=WINDOW, center=False, return_complex=True).abs() ** 2
    return torch.log10(power + 1e-3).transpose(1, 2) * 10 - 5


class Net(nn.Module):
    def __init__(self, front: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.front = front
        self.norm = nn.BatchNorm1d(12)
        self.norm.running_mean = torch.linspace(-3, 3, 12)
        self.conv = nn.Conv1d(12, 8, 5)
        self.last = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.last(torch.relu(self.conv(self.norm(self.front(x)))).mean(-1))
        return y


def compiled(
    front: Callable[[Tensor], Tensor], quantizer: tinyet.TinyetQuantizer | None = None
) -> tinyet.Program:
    return tinyet.compile(Net(front).eval(), (SOUNDS[0],), calibration=list(SOUNDS), quantizer=quantizer)


STATISTICS = nn.Sequential(
    features.Frame(32, 32), features.Statistics(["rms", "peak_to_peak", "skewness", "kurtosis", "mean"] * 2)
)
LOG_MEL = features.LogMel(4000, 64, 30, 20)


@pytest.mark.parametrize("front", [by_hand, STATISTICS, LOG_MEL], ids=["by hand", "statistics", "log mel"])
def test_in_front_in_float(front: Callable[[Tensor], Tensor]) -> None:
    program = compiled(front)
    types = {node.op: node.input(0).dtype for node in program.graph.nodes if node.op in ("conv2d", "linear")}
    assert set(types.values()) == {DType.INT8}
    places = [node.op for node in program.graph.nodes]
    ahead = program.graph.nodes[: places.index("quantize")]
    assert all(node.output.dtype is DType.FLOAT32 for node in ahead)
    assert places.count("quantize") == 1
    (note,) = [n for n in program.notes if "stay in float32" in n.text]
    assert note.origin is not None
    assert note.origin.line
    wanted = Net(front).eval()
    with torch.no_grad():
        answers = [(wanted(x).numpy(), program.run(x.numpy())) for x in SOUNDS]
    noise = sum(float(((a - b) ** 2).sum()) for a, b in answers)
    assert noise * 300 < sum(float((a**2).sum()) for a, _ in answers)


def test_what_the_quantizer_is_told() -> None:
    told = tinyet.TinyetQuantizer().set_module_name("front", tinyet.int8_config())
    with pytest.warns(tinyet.TinyetWarning, match="the integers' answers are not the model's"):
        program = compiled(LOG_MEL, told)
    (log,) = [node for node in program.graph.nodes if "log" in node.origins[-1].key]
    assert log.output.dtype is DType.INT8


class Behind(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(400, 64)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        magnitude: Tensor = torch.fft.rfft(torch.relu(y) * y).abs()
        return magnitude * 2 - 1


def test_behind_a_learned_layer_all_is_as_it_was() -> None:
    program = tinyet.compile(Behind().eval(), (SOUNDS[0],), calibration=list(SOUNDS))
    types = [(node.op, node.output.dtype) for node in program.graph.nodes]
    assert ("linear", DType.INT8) in types
    assert ("sub", DType.INT8) in types
    assert ("signal_rfft", DType.FLOAT32) in types
    assert not any("stay in float32" in note.text for note in program.notes)


def test_training() -> None:
    """Quantization-aware training has the same front."""
    model = Net(LOG_MEL)
    training = tinyet.prepare_training(model, (SOUNDS[0],), calibration=list(SOUNDS))
    training.train()
    training(SOUNDS[0]).square().mean().backward()
    found = [p for p in training.parameters() if p.requires_grad]
    assert found
    assert all(p.grad is not None for p in found)
    program = tinyet.compile(training.convert())
    kinds = {node.op: node.input(0).dtype for node in program.graph.nodes}
    assert kinds["signal_rfft"] is kinds["unary"] is DType.FLOAT32
    assert kinds["conv2d"] is DType.INT8
