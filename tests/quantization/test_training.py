# SPDX-License-Identifier: Apache-2.0
"""Quantization-aware training: it learns, it is what the firmware computes, and it recovers what PTQ loses."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.torch_helpers import Lambda, find, pieces, run
from tinyet import compile as compile_model
from tinyet import generate
from tinyet.errors import QuantizationError
from tinyet.fx.capture import capture
from tinyet.fx.exact import Exact
from tinyet.quantization.config import dynamic_config, int4_config, int8_config, int16_config
from tinyet.quantization.quantize import calibrate, convert, prepare, quantize
from tinyet.quantization.quantizer import TinyetQuantizer
from tinyet.quantization.training import Training, prepare_training

ROOT = Path(__file__).resolve().parents[2]
IMAGES = torch.randn(32, 3, 8, 8, generator=torch.Generator().manual_seed(8))


def scores_of(session: Training, x: torch.Tensor) -> torch.Tensor:
    """The one output of a network in training."""
    scores = session(x)
    assert isinstance(scores, torch.Tensor)
    return scores


def network() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(9)
        model = nn.Sequential(
            nn.Conv2d(3, 6, 3, bias=False), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(54, 4),
        )  # fmt: skip
        model.train()
        for batch in pieces(IMAGES, 8):
            model(batch)
    return model.eval()


@pytest.mark.parametrize("config", [int8_config(), int8_config("mse"), int16_config(), int4_config()])
def test_before_training_it_is_the_models_own_function(config: Any) -> None:
    model = network()
    session = prepare_training(model, IMAGES[:1], batch_size=8, quantizer=TinyetQuantizer(config))
    with torch.no_grad():
        for batch in pieces(IMAGES, 8):
            session(batch)
    program = session.convert()
    tolerance = 0.5 if config.weight.quant_max == 7 else 0.06
    torch.testing.assert_close(run(program, IMAGES[:1]), model(IMAGES[:1]).detach(), atol=tolerance, rtol=0)
    limits = {node.args[5] for node in find(program, "dequantize_per_channel")}
    assert limits == {config.weight.quant_max}
    assert find(program, "native_batch_norm") == []


def test_converted_program_computes_what_was_trained() -> None:
    model = network()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    session = prepare_training(model, IMAGES[:1], batch_size=8, quantizer=TinyetQuantizer(int4_config()))
    optimizer = torch.optim.Adam(session.parameters(), lr=1e-2)
    labels = torch.arange(32) % 4
    losses = []
    for _ in range(10):
        for x, y in zip(pieces(IMAGES, 8), pieces(labels, 8), strict=True):
            optimizer.zero_grad()
            loss = F.cross_entropy(scores_of(session, x), y)
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
    assert losses[-1] < 0.7 * losses[0]
    session.freeze_ranges()
    # In float64: float32 convolutions of eight images and of one may differ in the last bit, and so in a tie.
    with torch.no_grad():
        trained = torch.cat([Exact(session.captured(8).module).run(batch) for batch in pieces(IMAGES, 8)])
    program = session.convert()
    converted = Exact(program.module(check_guards=False))
    with torch.no_grad():
        answers = torch.cat([converted.run(x) for x in pieces(IMAGES)])
    torch.testing.assert_close(answers, trained, atol=1e-6, rtol=1e-6)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    # and training can go on
    session.freeze_ranges(False)
    F.cross_entropy(scores_of(session, IMAGES[:8]), labels[:8]).backward()


def test_prepare_and_convert_alone_train_at_the_firmwares_own_size() -> None:
    prepared = prepare(capture(network(), IMAGES[:1]), training=True)
    calibrate(prepared, [IMAGES])
    program = convert(prepared)
    plain = quantize(capture(network(), IMAGES[:1]), [IMAGES])
    torch.testing.assert_close(run(program, IMAGES[:1]), run(plain, IMAGES[:1]), atol=0.1, rtol=0)


def test_several_inputs_and_outputs() -> None:
    layer = nn.Linear(6, 3)
    model = Lambda(lambda a, b: (layer(a + b), torch.sigmoid(layer(a))))
    a, b = torch.randn(8, 6), torch.randn(8, 6)
    session = prepare_training(model, (a[:1], b[:1]), batch_size=4)
    for start in (0, 4):
        outputs = session(a[start : start + 4], b[start : start + 4])
        assert [tuple(y.shape) for y in outputs] == [(4, 3), (4, 3)]
    assert [tuple(y.shape) for y in run(session.convert(), a[:1], b[:1])] == [(1, 3), (1, 3)]


def test_mistakes() -> None:
    session = prepare_training(network(), IMAGES[:2])
    for inputs, message in [
        ((IMAGES[:5],), "batch of 5 samples is no multiple of the example inputs' 2"),
        ((IMAGES[:0],), "batch of 0 samples"),
        ((IMAGES[:4, :, :7],), "input 0 has shape"),
        ((IMAGES[:4].double(),), "input 0 is torch.float64"),
        ((IMAGES[:4], IMAGES[:4]), "2 inputs, the model takes 1"),
        ((IMAGES[:4].numpy(),), "no tensor"),
    ]:
        with pytest.raises(QuantizationError, match=message):
            session(*inputs)
    with pytest.raises(QuantizationError, match="run time cannot be trained"):
        prepare_training(network(), IMAGES[:1], quantizer=TinyetQuantizer(dynamic_config()))
    with pytest.raises(QuantizationError, match="batch_size 3"):
        prepare_training(network(), IMAGES[:2], batch_size=3)


def example() -> ModuleType:
    """examples/digits/qat.py as a module."""
    pytest.importorskip("sklearn", reason="needs scikit-learn's digits")
    spec = importlib.util.spec_from_file_location("digits_qat", ROOT / "examples" / "digits" / "qat.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_training_recovers_what_two_bits_lose(tmp_path: Path) -> None:
    qat = example()
    result = qat.compare(qat.HARD)
    assert result.ptq < result.exact - 0.08, "two bits must hurt, or there is nothing to recover"
    assert result.qat > result.ptq + 0.06
    assert result.qat > result.exact - 0.04
    program = compile_model(result.program, name="digits")
    project = generate(program, "mps2_an386", tmp_path / "digits")
    images, labels = qat.digits.evaluation()
    validated = project.validate(images[:60].numpy(), labels=labels[:60].numpy(), on="host")
    assert validated.bit_exact
    assert validated.accuracy is not None
    assert validated.accuracy > result.qat - 0.1
