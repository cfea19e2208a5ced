# SPDX-License-Identifier: Apache-2.0
"""Mending and what is said of single layers, reports and advice go together: what one makes, the others can name."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
import torch
from torch import nn

import tinyet
from tests.cli.command import plain
from tests.cli.command import tinyet as command
from tests.quality.ruined_networks import table
from tinyet import TinyetQuantizer, int4_config, int8_config, int16_config
from tinyet.errors import ModelError, QuantizationError
from tinyet.fx.capture import capture
from tinyet.fx.examples import example_of
from tinyet.quality.parts import operator_names, operators_named
from tinyet.quality.sensitivity import measure
from tinyet.quality.yardstick import Yardstick
from tinyet.quantization.config import QuantConfig

pytest.importorskip("torchao")


@functools.cache
def raw() -> nn.Module:
    """The table's network without a scaler: the first layer reads years beside incomes."""
    network = table().module
    assert isinstance(network.body, nn.Sequential)
    first = network.body[0]
    assert isinstance(first, nn.Linear)
    mean, std = network.get_buffer("mean"), network.get_buffer("std")
    reading = nn.Linear(6, 24)
    with torch.no_grad():
        reading.weight.copy_(first.weight / std)
        reading.bias.copy_(first.bias - (first.weight * mean / std).sum(1))
    assert isinstance(network.head, nn.Module)
    return nn.Sequential(reading, *list(network.body)[1:], network.head).eval()


def healthy(model: nn.Module, quantizer: TinyetQuantizer) -> bool:
    network = table()
    answers = tinyet.compile(
        model, network.example_inputs, calibration=network.calibration, quantizer=quantizer
    ).answers
    assert answers is not None
    return answers.healthy


@pytest.mark.parametrize("config", [int8_config(), int16_config(), None], ids=["int8", "int16", "float"])
def test_a_module_that_is_told_its_type_is_mended_all_the_same(config: QuantConfig | None) -> None:
    """What rescales the columns stands in that module; nobody has spoken of it."""
    assert healthy(raw(), TinyetQuantizer(int8_config()).set_module_name("0", config))


@pytest.mark.parametrize("setting", ["first", "all"])
def test_what_stands_before_a_layer_in_float_is_mended_too(setting: str) -> None:
    quantizer = TinyetQuantizer()
    chosen = (
        quantizer.set_module_name("body.0", None) if setting == "first" else quantizer.set_op("linear", None)
    )
    assert healthy(table().module, chosen)


def test_a_report_of_a_mended_network_names_the_users_operators_only() -> None:
    network = table()
    program = capture(raw(), example_of(network.example_inputs))
    names = operator_names(program)
    x, y = network.evaluation
    yardstick = Yardstick(program, [(row[None],) for row in x[:200]], [int(label) for label in y[:200]])
    found = measure(program, network.calibration, TinyetQuantizer(int4_config(bits=2)), yardstick=yardstick)
    assert found.exceptions
    for entry in found.exceptions:
        assert entry.part is not None
        own = [operator.name for operator in entry.part.operators]
        assert set(own) <= set(names)
        if not entry.module:  # what the name means is what was measured
            assert operators_named(program, entry.name) == own
    best = max(found.exceptions, key=lambda entry: entry.gain_db)
    assert best.gain_db > 3


def test_strict_prints_the_quantizer_that_it_accepts() -> None:
    network = table()

    def strictly(quantizer: TinyetQuantizer | None) -> tinyet.Program:
        return tinyet.compile(
            network.module,
            network.example_inputs,
            calibration=network.calibration,
            quantizer=quantizer,
            strict=True,
        )

    with pytest.raises(ModelError, match="2 layer") as refused:
        strictly(None)
    assert refused.value.hint is not None
    program = strictly(
        eval(refused.value.hint.partition("on purpose: ")[2], {"TinyetQuantizer": TinyetQuantizer})
    )
    assert program.answers is not None
    assert program.answers.healthy


def test_a_session_says_what_to_do_where_rounding_makes_nan() -> None:
    network = table()
    session = tinyet.prepare_training(network.module, network.example_inputs)
    with pytest.raises(QuantizationError, match="NaN") as refused:
        list(map(session, network.calibration))
    assert "calibration=batches" in (refused.value.hint or "")
    mended = tinyet.prepare_training(
        network.module, network.example_inputs, calibration=network.calibration
    ).eval()
    x, y = network.evaluation
    mended.train()
    mended(x)
    right = (mended.eval()(x).argmax(1) == y).double().mean()
    assert float(right) > network.float_accuracy() - 0.02


def test_the_alarm_repeats_what_was_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain(monkeypatch)
    monkeypatch.chdir(tmp_path)
    place = Path(__file__).resolve().parents[2] / "examples" / "got_worse"
    Path("net.py").write_text(
        f"import sys\nsys.path.insert(0, {str(place)!r})\n"
        "from table import calibration, evaluation, example_inputs, model\n",
        encoding="utf-8",
    )
    said = ("--no-prune", "--config", "int8", "--op=sub..div=int8", "--observer", "minmax")
    ended = command("quantize", "net.py", *said, "-o", "net.tet")
    assert f"  to look closer: tinyet quantize net.py {' '.join(said)} --report\n" in ended.err
