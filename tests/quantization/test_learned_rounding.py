# SPDX-License-Identifier: Apache-2.0
"""Learned rounding: what it makes less is the error of the layer's output, and no weight moves by more than a step."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import fx, nn
from torch.export import ExportedProgram

import tinyet
from tests.torch_helpers import Lambda, run
from tinyet.errors import QuantizationError
from tinyet.fx.capture import capture
from tinyet.fx.edit import get_constant
from tinyet.fx.exact import Exact
from tinyet.quantization import learned_rounding
from tinyet.quantization.config import dynamic_config, int4_config, int8_config
from tinyet.quantization.learned_rounding import Rounded, learn_rounding
from tinyet.quantization.quantize import quantize, quantize_fully
from tinyet.quantization.quantizer import TinyetQuantizer


def mixed(*shape: int, seed: int = 4) -> torch.Tensor:
    """Numbers whose neighbours in the second dimension are alike, as features of real data are."""
    x = torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) - 0.4
    return 0.3 * x + x[:, :1]


def made(*layers: nn.Module) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(6)
        for layer in layers:
            for parameter in layer.parameters():
                nn.init.uniform_(parameter, -0.5, 0.5)
    return nn.Sequential(*layers).eval()


class Seen(Exact):
    """Keeps the value of each call."""

    def __init__(self, program: ExportedProgram) -> None:
        super().__init__(program.module(check_guards=False))
        self.values: dict[str, torch.Tensor] = {}

    def run_node(self, n: fx.Node) -> Any:
        self.values[n.name] = super().run_node(n)
        return self.values[n.name]


def of_layer(program: ExportedProgram, name: str, samples: torch.Tensor) -> torch.Tensor:
    """What the node gives for each sample."""
    seen, values = Seen(program), []
    for x in samples.split(1):
        with torch.no_grad():
            seen.run(x)
        values.append(seen.values[name])
    return torch.cat(values)


def integers(program: ExportedProgram) -> list[torch.Tensor]:
    """Those of each weight."""
    module: Any = program.module(check_guards=False)
    nodes = [n for n in module.graph.nodes if "dequantize_per_channel" in str(n.target)]
    found = [get_constant(module, node.args[0]) for node in nodes]
    return [value for value in found if value is not None]


def learned(
    model: nn.Module, x: torch.Tensor, config: Any
) -> tuple[ExportedProgram, ExportedProgram, ExportedProgram, tuple[Rounded, ...]]:
    """In float, to nearest, learned; and which layers."""
    program = capture(model, x[:1])
    nearest = quantize(program, [x], TinyetQuantizer(config))
    result, layers = learn_rounding(program, nearest, [(each,) for each in x.split(1)])
    return program, nearest, result, layers


LAYERS: list[tuple[nn.Module, tuple[int, ...], str]] = [
    (nn.Linear(12, 5), (40, 12), "linear"),
    (nn.Linear(12, 5, bias=False), (20, 3, 12), "linear"),
    (nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2), (12, 4, 20), "conv1d"),
    (nn.Conv2d(4, 6, 3, padding=1), (12, 4, 7, 6), "conv2d"),
    (nn.Conv2d(4, 6, (3, 2), stride=(2, 1), dilation=(1, 2), groups=2), (12, 4, 9, 7), "conv2d"),
    (nn.Conv2d(4, 8, 3, padding=(0, 1), groups=4), (12, 4, 7, 6), "conv2d"),
]


@pytest.mark.parametrize(("layer", "shape", "name"), LAYERS)
@pytest.mark.parametrize("clamp", [None, nn.ReLU(), nn.ReLU6()])
def test_the_layers_error_becomes_less(
    layer: nn.Module, shape: tuple[int, ...], name: str, clamp: nn.Module | None
) -> None:
    x = mixed(*shape)
    model = made(layer) if clamp is None else made(layer, clamp)
    program, nearest, result, (rounded,) = learned(model, x, int4_config())
    behind = torch.relu if isinstance(clamp, nn.ReLU) else (lambda y: y.clamp(0, 6)) if clamp else lambda y: y
    wanted, before, after = (behind(of_layer(p, name, x)) for p in (program, nearest, result))
    # Weights are float32's in the program and the learning's are float64's.
    assert rounded.before == pytest.approx(float((before - wanted).square().mean()), rel=1e-4)
    assert rounded.after == pytest.approx(float((after - wanted).square().mean()), rel=1e-4)
    # Nine weights of a channel are few to choose from.
    assert rounded.after < (0.97 if len(shape) == 4 and layer.groups == 4 else 0.9) * rounded.before
    (old,), (new,) = integers(nearest), integers(result)
    assert int((new - old).abs().max()) == 1
    assert int((new != old).sum()) == rounded.changed
    assert rounded.weights == old.numel()
    assert int(new.abs().max()) <= 7


def test_no_single_weight_would_be_better_rounded_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """And of all the ways to round eight weights, what is found is among the best tenth."""
    monkeypatch.setattr(learned_rounding, "_DAMPING", 0.0)
    x, model = mixed(60, 8), made(nn.Linear(8, 1))
    weight, bias = (parameter.detach().double() for parameter in model.parameters())
    program, nearest, result, (rounded,) = learned(model, x, int4_config())
    (old,), (new,) = integers(nearest), integers(result)
    scale = next(float(v) for n, v in nearest.named_buffers() if "_scale" in n and v.shape == (1,))
    other = torch.where(weight / scale >= old, old + 1, old - 1).clamp(-7, 7)
    wanted, given = of_layer(program, "linear", x), of_layer(nearest, "dequantize_per_tensor", x)

    def error_of(choice: tuple[bool, ...]) -> float:
        values = torch.where(torch.tensor(choice), other, old) * scale
        return float((given @ values.T.double() + bias - wanted).square().mean())

    errors = {choice: error_of(choice) for choice in itertools.product((False, True), repeat=8)}
    taken = tuple((new != old).flatten().tolist())
    assert errors[taken] == pytest.approx(rounded.after, rel=1e-4)
    for place in range(8):
        neighbour = (*taken[:place], not taken[place], *taken[place + 1 :])
        assert errors[neighbour] >= errors[taken] * (1 - 1e-6)
    assert sum(error < errors[taken] for error in errors.values()) < len(errors) // 10


def test_the_whole_network_is_nearer_to_the_float_one() -> None:
    model = made(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, groups=8), nn.ReLU(), nn.Flatten(),
        nn.Linear(128, 5),
    )  # fmt: skip
    x, unseen = mixed(48, 3, 6, 6), mixed(16, 3, 6, 6, seed=5)
    with torch.no_grad():
        wanted = torch.cat([model(each) for each in unseen.split(1)])
    errors = []
    for learn in (False, True):
        program = tinyet.compile(
            model, (x[:1],), calibration=[x], quantizer=TinyetQuantizer(int4_config()), learn_rounding=learn
        )
        answers = [torch.from_numpy(program.run(each.numpy(), as_float=True)) for each in unseen.split(1)]
        errors.append(float((torch.cat(answers) - wanted).square().mean()))
    assert errors[1] < 0.6 * errors[0]


def test_beside_the_other_steps() -> None:
    model, x = made(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)), mixed(24, 3, 6, 6)
    result = quantize_fully(
        capture(model, x[:1]), [x], TinyetQuantizer(int8_config()),
        equalize=True, correct_bias=True, learn_rounding=True,
    )  # fmt: skip
    assert [layer.name for layer in result.rounded] == ["conv2d", "linear"]
    assert result.equalized
    torch.testing.assert_close(run(result.program, x[:1]), model(x[:1]).detach(), atol=0.1, rtol=0)


def test_quantized_at_run_time() -> None:
    model, x = made(nn.Linear(12, 5)), mixed(40, 12)
    program = capture(model, x[:1])
    nearest = quantize(program, [], TinyetQuantizer(dynamic_config()))
    result, (rounded,) = learn_rounding(program, nearest, [(each,) for each in x.split(1)])
    assert rounded.changed
    assert rounded.after < 0.9 * rounded.before
    torch.testing.assert_close(run(result, x[:1]), model(x[:1]).detach(), atol=0.05, rtol=0)


def test_what_keeps_the_nearest_integers() -> None:
    twice = nn.Linear(6, 6)
    x = mixed(16, 6)
    with_shared = Lambda(lambda x: twice(torch.relu(twice(x))))
    _, nearest, result, layers = learned(with_shared, x, int4_config())
    assert layers == ()
    assert all(torch.equal(a, b) for a, b in zip(integers(nearest), integers(result), strict=True))
    up = made(nn.ConvTranspose2d(3, 4, 2), nn.ReLU(), nn.Conv2d(4, 2, 3))
    _, _, _, layers = learned(up, mixed(16, 3, 5, 5), int8_config())
    assert [layer.name for layer in layers] == ["conv2d"]


def test_without_data() -> None:
    with pytest.raises(QuantizationError, match="learn roundings"):
        tinyet.compile(made(nn.Linear(4, 2)), (torch.rand(1, 4),), learn_rounding=True)
