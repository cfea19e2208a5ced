# SPDX-License-Identifier: Apache-2.0
"""Configurations and observers: types, ranges, and what holds where layers of different types meet."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn
from torch.export import ExportedProgram

from tests.torch_helpers import Lambda, find, input_params, output_params, run
from tinyet.errors import QuantizationError
from tinyet.fx.capture import capture
from tinyet.quantization.config import (
    QuantConfig,
    dynamic_config,
    int4_config,
    int8_config,
    int16_config,
)
from tinyet.quantization.observers import (
    MseObserver,
    PercentileObserver,
    WeightPerChannelMseObserver,
    WeightPerChannelObserver,
    activation_observer,
)
from tinyet.quantization.quantize import quantize
from tinyet.quantization.quantizer import TinyetQuantizer

GENERATOR = torch.Generator().manual_seed(11)
IMAGES = torch.randn(16, 3, 8, 8, generator=GENERATOR)
AFFINE: dict[str, Any] = {
    "dtype": torch.int8,
    "qscheme": torch.per_tensor_affine,
    "quant_min": -128,
    "quant_max": 127,
}


def conv(inputs: int = 3, outputs: int = 4) -> nn.Conv2d:
    with torch.random.fork_rng():
        torch.manual_seed(inputs + 10 * outputs)
        return nn.Conv2d(inputs, outputs, 3, padding=1)


def quantized(model: nn.Module, quantizer: TinyetQuantizer, data: torch.Tensor = IMAGES) -> ExportedProgram:
    return quantize(capture(model, data[:1]), [data], quantizer)


def limits(program: ExportedProgram) -> set[tuple[int, int]]:
    """(lowest, highest) number of the weights' types."""
    return {
        (node.args[4], node.args[5])  # type: ignore[misc]
        for node in find(program, "dequantize_per_channel")
    }


def types_at(node: fx.Node) -> list[torch.dtype | None]:
    """The types that a value goes through in front of a node, nearest first; empty for float."""
    found: list[torch.dtype | None] = []
    source = node.all_input_nodes[0]
    while "dequantize" in str(source.target) or "quantize" in str(source.target):
        if "dequantize" in str(source.target):
            found.append(source.args[5])  # type: ignore[arg-type]
        source = source.all_input_nodes[0]
    return found


def error(observer: Any, data: torch.Tensor) -> float:
    """Mean squared error of data quantized as the observer says."""
    scale, zero_point = observer.calculate_qparams()
    fake = torch.fake_quantize_per_tensor_affine(data, scale, zero_point.int(), -128, 127)
    return float(((fake - data) ** 2).mean())


# ---------------------------------------------------------------- observers


def test_mse_observer_finds_the_least_error() -> None:
    data = torch.randn(20_000, generator=GENERATOR) * 0.1
    data[:3] = torch.tensor([9.0, -7.0, 5.0])
    mse, minmax = (activation_observer(name)(**AFFINE) for name in ("mse", "minmax"))
    for observer in (mse, minmax):
        observer(data)
    assert isinstance(mse, MseObserver)
    # A finer search over the same ends, by brute force.
    best = min(
        float(((torch.fake_quantize_per_tensor_affine(data, s, int(z), -128, 127) - data) ** 2).mean())
        for low in torch.linspace(-7.0, -0.3, 60)
        for high in torch.linspace(0.3, 9.0, 60)
        for s in [float(high - low) / 255]
        for z in [round(-128 - float(low) / s)]
    )
    assert error(mse, data) < 1.05 * best < error(minmax, data)


def test_mse_observer_of_values_that_end_at_zero_keeps_the_zero() -> None:
    observer = activation_observer("mse")(**AFFINE)
    observer(torch.rand(1000, generator=GENERATOR))
    scale, zero_point = observer.calculate_qparams()
    assert int(zero_point) == -128
    assert 0.9 / 255 < float(scale) <= 1.001 / 255


@pytest.mark.parametrize("name", ["mse", "percentile"])
def test_constant_values_have_parameters(name: str) -> None:
    observer = activation_observer(name)(**AFFINE)
    observer(torch.zeros(10))
    scale, _ = observer.calculate_qparams()
    assert float(scale) > 0


def test_percentile_cuts_what_lies_outside() -> None:
    data = torch.arange(-500.0, 501.0)
    observer = activation_observer("percentile:90")(**AFFINE)
    assert isinstance(observer, PercentileObserver)
    observer(data)
    scale, zero_point = observer.calculate_qparams()
    low, high = (float(scale) * (q - int(zero_point)) for q in (-128, 127))
    assert abs(low + 450) < 6
    assert abs(high - 450) < 6


def test_percentile_cuts_one_side_behind_relu() -> None:
    observer = activation_observer("percentile:90")(**AFFINE)
    observer(torch.arange(0.0, 1000.0))
    scale, zero_point = observer.calculate_qparams()
    assert int(zero_point) == -128
    assert abs(float(scale) * 255 - 900) < 6


def test_percentile_of_hundred_cuts_nothing() -> None:
    data = torch.randn(1000, generator=GENERATOR)
    all_of_it, minmax = (activation_observer(name)(**AFFINE) for name in ("percentile:100", "minmax"))
    for observer in (all_of_it, minmax):
        observer(data)
    for a, b in zip(all_of_it.calculate_qparams(), minmax.calculate_qparams(), strict=True):
        torch.testing.assert_close(a, b, check_dtype=False)


@pytest.mark.parametrize("name", ["entropy", "minmax:3", "percentile:x", "percentile:12", "percentile:101"])
def test_unknown_observers_are_refused(name: str) -> None:
    with pytest.raises(QuantizationError):
        int8_config(name)


def test_unknown_weight_observer_and_bits_are_refused() -> None:
    with pytest.raises(QuantizationError, match="weight observer 'histogram'"):
        int8_config(weights="histogram")
    with pytest.raises(QuantizationError, match="5 bits"):
        int4_config(bits=5)


def test_mse_weights_are_nearer_for_four_bits() -> None:
    weight = torch.randn(6, 40, generator=GENERATOR)
    weight[0] = 0
    errors = {}
    for kind in (WeightPerChannelObserver, WeightPerChannelMseObserver):
        observer = kind(
            dtype=torch.int8, quant_min=-7, quant_max=7, qscheme=torch.per_channel_symmetric, ch_axis=0
        )
        observer(weight)
        scale, zero_point = observer.calculate_qparams()
        assert bool((zero_point == 0).all())
        fake = torch.fake_quantize_per_channel_affine(weight, scale, zero_point.int(), 0, -7, 7)
        errors[kind] = ((fake - weight) ** 2).sum(1)
    assert bool((errors[WeightPerChannelMseObserver] <= errors[WeightPerChannelObserver] + 1e-6).all())
    assert float(errors[WeightPerChannelMseObserver].sum()) < 0.95 * float(
        errors[WeightPerChannelObserver].sum()
    )


def test_weights_range_follows_the_weight() -> None:
    observer = WeightPerChannelObserver(
        dtype=torch.int8, quant_min=-127, quant_max=127, qscheme=torch.per_channel_symmetric, ch_axis=0
    )
    observer(torch.full((2, 3), 10.0))
    observer(torch.full((2, 3), 1.0))
    assert torch.equal(observer.max_val, torch.ones(2))


# ---------------------------------------------------------------- types


@pytest.mark.parametrize(
    ("config", "dtype", "weights"),
    [
        (int8_config("mse", "mse"), torch.int8, (-127, 127)),
        (int8_config("percentile:99.9"), torch.int8, (-127, 127)),
        (int16_config(), torch.int16, (-127, 127)),
        (int4_config(), torch.int8, (-7, 7)),
        (int4_config(bits=2), torch.int8, (-1, 1)),
    ],
)
def test_types_of_activations_and_weights(
    config: QuantConfig, dtype: torch.dtype, weights: tuple[int, int]
) -> None:
    model = nn.Sequential(conv(), nn.ReLU(), nn.Flatten(), nn.Linear(256, 3))
    program = quantized(model, TinyetQuantizer(config))
    assert limits(program) == {weights}
    quantizes = find(program, "quantize_per_tensor")
    assert {node.args[5] for node in quantizes} == {dtype}
    if dtype is torch.int16:
        assert {node.args[2] for node in quantizes} == {0}
        torch.testing.assert_close(run(program, IMAGES[:1]), model(IMAGES[:1]).detach(), atol=0.02, rtol=0)


def test_int16_softmax_and_sigmoid_have_known_ranges() -> None:
    program = quantized(Lambda(lambda x: F.softmax(torch.sigmoid(x), -1)), TinyetQuantizer(int16_config()))
    for name in ("sigmoid", "softmax"):
        (node,) = find(program, name)
        assert output_params(node) == (1 / 32768, 0)


def test_transposed_convolutions_keep_eight_bits() -> None:
    model = nn.Sequential(conv(), nn.ConvTranspose2d(4, 3, 2, stride=2))
    assert limits(quantized(model, TinyetQuantizer(int4_config()))) == {(-7, 7), (-127, 127)}


# ---------------------------------------------------------------- at run time


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = conv()
        self.head = nn.Linear(256, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.softmax(self.head(F.relu(self.body(x)).flatten(1)), -1)


def test_dynamic_layers_quantize_their_own_inputs_only() -> None:
    model = Two()
    program = quantized(model, TinyetQuantizer(dynamic_config()))
    assert len(find(program, "choose_qparams")) == 2
    assert [n for n in find(program, "quantize_per_tensor") if "tensor" not in str(n.target)] == []
    for name in ("relu", "softmax"):
        (node,) = find(program, name)
        assert types_at(node) == []
    torch.testing.assert_close(run(program, IMAGES[:1]), model(IMAGES[:1]).detach(), atol=0.02, rtol=0)


def test_dynamic_needs_no_calibration_data() -> None:
    quantizer = TinyetQuantizer(dynamic_config())
    assert not quantizer.needs_calibration
    assert TinyetQuantizer(dynamic_config()).set_module_name("head", int8_config()).needs_calibration
    program = quantize(capture(Two(), IMAGES[:1]), [], quantizer)
    assert len(find(program, "choose_qparams")) == 2


def test_dynamic_head_behind_an_int8_body() -> None:
    quantizer = TinyetQuantizer(int8_config()).set_module_name("head", dynamic_config())
    program = quantized(Two(), quantizer)
    (choose,) = find(program, "choose_qparams")
    assert types_at(choose) != []  # chosen for what the int8 body gives
    (softmax,) = find(program, "softmax")
    assert types_at(softmax) == [torch.int8]


# ---------------------------------------------------------------- seams


@pytest.mark.parametrize(
    ("body", "head", "expected"),
    [
        (int8_config(), int16_config(), [torch.int16, torch.int8]),
        (int16_config(), int8_config(), [torch.int8, torch.int16]),
        (int8_config(), int4_config(), [torch.int8]),
        (None, int8_config(), [torch.int8]),
        (int16_config(), None, [torch.int16]),
    ],
)
def test_a_reader_of_another_type_quantizes_for_itself(
    body: QuantConfig | None, head: QuantConfig | None, expected: list[torch.dtype]
) -> None:
    first, second = conv(), conv(4, 5)

    class Seam(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = first, second

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(F.relu(self.body(x)))  # type: ignore[no-any-return]

    quantizer = TinyetQuantizer(None).set_global(None)
    quantizer.set_module_name("body", body).set_module_name("head", head).set_op("relu", body)
    program = quantized(Seam(), quantizer)
    convolutions = find(program, "conv2d")
    assert types_at(convolutions[1]) == expected
    assert types_at(convolutions[0]) == ([] if body is None else [body.activation.dtype])
    torch.testing.assert_close(run(program, IMAGES[:1]), Seam()(IMAGES[:1]).detach(), atol=0.35, rtol=0)


def test_one_value_read_by_two_types_is_quantized_for_each() -> None:
    body, left, right = conv(), conv(4, 4), conv(4, 4)

    class Fork(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.left, self.right = body, left, right

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            y = self.body(x)
            return self.left(y), self.right(y)

    program = quantized(Fork(), TinyetQuantizer(int8_config()).set_module_name("right", int16_config()))
    first, second, third = find(program, "conv2d")
    assert types_at(second) == [torch.int8]
    assert types_at(third) == [torch.int16, torch.int8]
    assert input_params(second) == output_params(first)


@pytest.mark.parametrize("wide_first", [False, True])
def test_concat_of_two_types_brings_all_to_its_own(wide_first: bool) -> None:
    class Join(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.narrow, self.wide = conv(), conv(3, 5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            parts = [self.narrow(x), self.wide(x)]
            return torch.cat(parts[::-1] if wide_first else parts, 1)

    program = quantized(Join(), TinyetQuantizer(int8_config()).set_module_name("wide", int16_config()))
    (cat,) = find(program, "cat")
    assert {input_params(cat, 0), input_params(cat, 1), output_params(cat)} == {input_params(cat, 0)}
    assert all(source.args[5] is torch.int8 for source in cat.all_input_nodes)


@pytest.mark.parametrize("function", [lambda x: F.max_pool2d(x, 2), lambda x: x.permute(0, 2, 3, 1)])
def test_movers_behind_another_type_stay_of_one_type(function: Any) -> None:
    layer = conv()
    quantizer = TinyetQuantizer(int8_config()).set_op("conv2d", int16_config())
    program = quantized(Lambda(lambda x: function(layer(x))), quantizer)
    (node,) = [*find(program, "max_pool2d"), *find(program, "permute")]
    assert types_at(node) == [torch.int8, torch.int16]
    assert output_params(node) == input_params(node)


def test_split_behind_another_type() -> None:
    layer = conv()
    quantizer = TinyetQuantizer(int8_config()).set_op("conv2d", int16_config())
    program = quantized(Lambda(lambda x: torch.add(*layer(x).split(2, 1))), quantizer)
    parts = [n for n in program.graph.nodes if n.target is operator.getitem]
    assert len(parts) == 2
    (add,) = find(program, "add")
    assert input_params(add, 0) == input_params(add, 1) == output_params(parts[0])
    assert all(source.args[5] is torch.int8 for source in add.all_input_nodes)
