# SPDX-License-Identifier: Apache-2.0
"""Calibration data that fits, and data that does not; accuracy after quantization; lone batch norms."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
import torch
from torch import nn
from torch.export import ExportedProgram

from tests.torch_helpers import Lambda, mlperf_models, ops, pieces, run
from tinyet.errors import QuantizationError
from tinyet.fx.capture import capture
from tinyet.quantization.config import int8_config
from tinyet.quantization.quantize import calibrate, convert, is_quantized, prepare, quantize, samples
from tinyet.quantization.quantizer import TinyetQuantizer

DATA = torch.randn(40, 3, 6, generator=torch.Generator().manual_seed(4))


def model() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(5)
        return nn.Sequential(nn.Flatten(), nn.Linear(18, 8), nn.ReLU(), nn.Linear(8, 4)).eval()


def test_batches_are_cut_to_the_examples_size() -> None:
    example = (torch.zeros(2, 3), torch.zeros(2))
    batches = [(torch.arange(18.0).reshape(6, 3), torch.arange(6.0)), [torch.zeros(2, 3), torch.zeros(2)]]
    cut = list(samples(batches, example))
    assert [index for index, _ in cut] == [0, 0, 0, 1]
    assert torch.equal(cut[1][1][0], torch.arange(6.0, 12.0).reshape(2, 3))
    assert torch.equal(cut[2][1][1], torch.tensor([4.0, 5.0]))


def test_quantized_program_is_close_and_keeps_the_module_untouched() -> None:
    float_model = model()
    before = {name: value.clone() for name, value in float_model.state_dict().items()}
    program = quantize(capture(float_model, DATA[:1]), pieces(DATA, 10))
    assert is_quantized(program)
    for x in pieces(DATA, 1):
        torch.testing.assert_close(run(program, x), float_model(x).detach(), atol=0.05, rtol=0)
    assert all(torch.equal(before[name], value) for name, value in float_model.state_dict().items())


@pytest.mark.usefixtures("young")
def test_nothing_of_it_is_held() -> None:
    """Who quantizes many models does not hold all of them."""
    prepared = prepare(capture(model(), DATA[:1]))
    calibrate(prepared, [DATA])
    held: list[weakref.ref[object]] = [weakref.ref(prepared.module), weakref.ref(convert(prepared))]
    del prepared
    gc.collect(1)
    assert [ref() for ref in held] == [None, None]


def test_result_does_not_depend_on_how_data_is_batched() -> None:
    captured = capture(model(), DATA[:1])
    one, many = quantize(captured, [DATA]), quantize(captured, pieces(DATA, 7))
    assert torch.equal(run(one, DATA[:1]), run(many, DATA[:1]))


def test_progress_counts_batches() -> None:
    seen: list[tuple[int, int | None]] = []
    prepared = prepare(capture(model(), DATA[:1]))
    count = calibrate(prepared, pieces(DATA, 10), lambda done, total: seen.append((done, total)))
    assert (count, seen) == (40, [(1, 4), (2, 4), (3, 4), (4, 4)])
    seen.clear()
    calibrate(prepared, iter(pieces(DATA, 20)), lambda done, total: seen.append((done, total)))
    assert seen == [(1, None), (2, None)]


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([], "there are no calibration batches"),
        ([DATA[:0]], "there are no calibration batches"),
        (
            [DATA, torch.zeros(4, 3, 5)],
            r"batch 1, input 0 has shape \(4, 3, 5\), the model takes \(1, 3, 6\)",
        ),
        ([DATA, torch.zeros(3, 6)], r"batch 1, input 0 has shape \(3, 6\)"),
        ([(DATA, torch.zeros(40))], "batch 0 has 2 tensors, the model takes 1"),
        ([{"x": DATA}], "batch 0 is a dict"),
        ([DATA.int()], "batch 0, input 0 is torch.int32"),
        ([DATA, DATA / 0], "batch 1, input 0 holds 720 values that are NaN or infinite"),
    ],
)
def test_data_that_does_not_fit(batches: list[object], message: str) -> None:
    with pytest.raises(QuantizationError, match=message):
        quantize(capture(model(), DATA[:1]), batches)


def test_nan_inside_the_model_is_named() -> None:
    program = capture(Lambda(lambda x: torch.log(x).exp()), DATA[:1])
    with pytest.raises(
        QuantizationError, match=r"aten.log.default gives NaN or infinity on calibration batch 1"
    ):
        quantize(program, [DATA.abs() + 1, DATA])
    quantizer = TinyetQuantizer(int8_config("minmax"))
    with pytest.raises(QuantizationError, match=r"aten\.log\.default becomes NaN or infinite"):
        quantize(program, [DATA], quantizer)


def test_error_of_the_users_loader_is_passed_on() -> None:
    def loader() -> Iterator[torch.Tensor]:
        yield DATA
        raise OSError("disk gone")

    with pytest.raises(QuantizationError, match="batch 1 raises OSError: disk gone") as caught:
        quantize(capture(model(), DATA[:1]), loader())
    assert "test_quantize.py:" in str(caught.value)


def test_quantized_twice_is_an_error() -> None:
    program = quantize(capture(model(), DATA[:1]), [DATA])
    with pytest.raises(QuantizationError, match="quantized already"):
        prepare(program)


def test_lone_batch_norm_is_precise() -> None:
    net = nn.Sequential(nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 1)).eval()
    norm = net[0]
    assert isinstance(norm, nn.BatchNorm2d)
    assert norm.running_var is not None
    norm.running_var.copy_(torch.linspace(0.5, 2, 8))
    data = torch.randn(32, 8, 4, 4, generator=torch.Generator().manual_seed(6))
    captured = capture(net, data[:1])
    program = quantize(captured, [data])
    assert [op for op in ops(program) if "quantize" not in op] == ["conv2d", "relu", "conv2d"]
    torch.testing.assert_close(run(program, data[:1]), net(data[:1]).detach(), atol=0.08, rtol=0)


def test_steps_are_open_for_training() -> None:
    prepared = prepare(capture(model(), DATA[:1]))
    calibrate(prepared, [DATA])
    program = convert(prepared)
    assert torch.equal(run(program, DATA[:1]), run(quantize(capture(model(), DATA[:1]), [DATA]), DATA[:1]))


def accuracy(program: ExportedProgram, data: torch.Tensor, labels: torch.Tensor) -> float:
    """Percent of right answers, one sample at a time."""
    module = program.module(check_guards=False)
    with torch.no_grad():
        answers = [int(module(data[i : i + 1]).argmax()) for i in range(len(data))]
    return float((torch.tensor(answers) == labels).float().mean()) * 100


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ds_cnn", "resnet8"])
def test_trained_networks_lose_at_most_half_a_point(name: str) -> None:
    models = mlperf_models()
    network = getattr(models, name)()
    if name == "ds_cnn":
        data, labels = models.keyword_test()
        tenth = torch.arange(len(data)) % 10 == 0
        calibration, data, labels = data[tenth], data[~tenth], labels[~tenth]
    else:
        calibration, (data, labels) = models.cifar10("calibration")[0], models.cifar10("test")
    program = capture(network, calibration[:1])
    before = accuracy(program, data, labels)
    after = accuracy(quantize(program, [calibration]), data, labels)
    assert after >= before - 0.5, f"{before:.1f} % in float, {after:.1f} % in int8"
