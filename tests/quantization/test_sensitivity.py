# SPDX-License-Identifier: Apache-2.0
"""Which layer suffers, what exceptions bring and cost, and the search for the cheapest set that is good enough."""

from __future__ import annotations

import json

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import ExportedProgram

from tests.torch_helpers import pieces
from tinyet.boards import load_board
from tinyet.compiler import compile as compile_model
from tinyet.compiler import cost_on
from tinyet.deployment import deploy
from tinyet.errors import QuantizationError
from tinyet.fx.capture import capture
from tinyet.quality.search import accuracy_of, search
from tinyet.quality.sensitivity import Cost, Sensitivity, exceptions_for, measure
from tinyet.quantization.config import int4_config, int8_config, int16_config
from tinyet.quantization.quantize import quantize
from tinyet.quantization.quantizer import TinyetQuantizer

IMAGES = torch.rand(48, 2, 6, 6, generator=torch.Generator().manual_seed(31))
BOARD = "mps2_an386"


class Net(nn.Module):
    """`bad` has weights of which a few dwarf the others: they quantize badly."""

    def __init__(self) -> None:
        super().__init__()
        self.good = nn.Conv2d(2, 4, 3)
        self.bad = nn.Conv2d(4, 4, 3)
        self.head = nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.bad(F.relu(self.good(x))))
        return self.head(x.flatten(1))  # type: ignore[no-any-return]


def network() -> Net:
    with torch.random.fork_rng():
        torch.manual_seed(4)
        model = Net().eval()
    # One channel is small, and the weights that read it large: beside these the others are rounded to nothing.
    for parameter in model.good.parameters():
        parameter.data[0] *= 0.05
    model.bad.weight.data[:, 0] *= 20
    with torch.no_grad():
        model.head.bias.sub_(model(IMAGES).mean(0))  # so that all classes occur
    return model


@pytest.fixture(scope="module")
def program() -> ExportedProgram:
    return capture(network(), IMAGES[:1])


@pytest.fixture(scope="module")
def measured(program: ExportedProgram) -> Sensitivity:
    return measure(program, [IMAGES], TinyetQuantizer(int4_config(weights="minmax")), cost=cost_on(BOARD))


def test_the_bad_layer_is_found(measured: Sensitivity) -> None:
    assert [layer.module for layer in measured.layers] == ["good", "bad", "head"]
    worst = measured.worst[0]
    assert worst.module == "bad"
    assert worst.op == "aten.conv2d.default"
    assert "test_sensitivity.py" in worst.source
    assert "self.bad(" in worst.source
    others = [layer.alone_sqnr_db for layer in measured.layers if layer.module != "bad"]
    assert all(
        db is not None and worst.alone_sqnr_db is not None and db > worst.alone_sqnr_db + 3 for db in others
    )
    assert next(entry for entry in measured.exceptions if entry.module == "bad").gain_db > 3
    assert all(
        {o.name for o in entry.part.operators} >= {"conv2d_1"} for entry in measured.exceptions if entry.part
    )
    assert [part.name for part in measured.operators] == ["x", "conv2d", "bad", "linear"] or [
        part.module for part in measured.operators
    ] == ["", "good", "bad", "head"]
    assert measured.worst_operators[0].module == "bad"


def test_costs_are_those_of_compiled_programs(program: ExportedProgram, measured: Sensitivity) -> None:
    quantizer = TinyetQuantizer(int4_config(weights="minmax"))
    target = load_board(BOARD).target

    def compiled(chosen: TinyetQuantizer) -> Cost:
        graph = compile_model(quantize(program, [IMAGES], chosen), name="net").graph
        deployment = deploy(graph, target)
        return Cost(deployment.constant_bytes, deployment.plan.arena_bytes)

    base = compiled(quantizer)
    assert measured.cost == base
    for entry in measured.exceptions:
        if entry.module == "bad":
            config = exceptions_for(int4_config())[entry.config]
            spent = compiled(quantizer.copy().set_module_name("bad", config))
            assert entry.flash_bytes == spent.flash_bytes - base.flash_bytes
            assert entry.arena_bytes == spent.arena_bytes - base.arena_bytes
    assert {entry.config for entry in measured.exceptions if entry.module == "bad"} == {"int8", "float"}


def test_report_is_json(measured: Sensitivity) -> None:
    record = json.loads(json.dumps(measured.to_json(), allow_nan=False))
    assert [layer["module"] for layer in record["layers"]] == ["good", "bad", "head"]
    assert "bad" in {entry["module"] for entry in record["exceptions"]}


def test_only_the_worst_layers_are_tried_when_so_wished(program: ExportedProgram) -> None:
    seen: list[tuple[int, int | None]] = []
    found = measure(
        program, [IMAGES], TinyetQuantizer(int4_config(weights="minmax")), exceptions={"float": None}, worst=1,
        progress=lambda done, total: seen.append((done, total)),
    )  # fmt: skip
    (entry,) = found.exceptions
    assert entry.part is not None
    assert "conv2d_1" in {operator.name for operator in entry.part.operators}
    assert (entry.config, entry.flash_bytes) == ("float", None)
    assert seen == [(1, 1)]


def test_what_a_layer_may_have_instead() -> None:
    assert list(exceptions_for(int8_config())) == ["int16", "float"]
    assert list(exceptions_for(int16_config())) == ["float"]
    assert list(exceptions_for(int4_config())) == ["int8", "int16", "float"]


def test_variant_that_cannot_be_compiled_is_refused_with_its_reason(program: ExportedProgram) -> None:
    integers: list[int] = []

    def cost(quantized: ExportedProgram) -> Cost:
        integers.append(sum("dequantize" in str(node.target) for node in quantized.graph.nodes))
        if integers[-1] < integers[0]:
            raise QuantizationError("no kernels for float")
        return Cost(1, 1)

    found = measure(program, [IMAGES], TinyetQuantizer(int4_config(weights="minmax")), cost=cost)
    refused = [entry for entry in found.exceptions if entry.config == "float"]
    assert {entry.refused for entry in refused} == {"no kernels for float"}
    assert found.exceptions[-len(refused) :] == tuple(refused), "they come last"
    assert len(refused) < len(found.exceptions)


# ---------------------------------------------------------------- search

# In float64, in which the evaluation computes, too: no tie of two classes is decided by a processor's float32 sums.
LABELS = [int(network().double()(x.double()).argmax()) for x in pieces(IMAGES)]
EVALUATION = accuracy_of([(x,) for x in pieces(IMAGES)], LABELS)


def test_float_model_answers_its_own_labels(program: ExportedProgram) -> None:
    assert EVALUATION(program) == 1.0


def test_nothing_is_done_where_nothing_is_needed(program: ExportedProgram) -> None:
    found = search(program, [IMAGES], EVALUATION, 0.0, TinyetQuantizer(int4_config()))
    assert found.exceptions == {}
    assert found.sensitivity is None
    assert len(found.steps) == 1


def test_search_reaches_the_aim_with_few_exceptions(program: ExportedProgram) -> None:
    quantizer = TinyetQuantizer(int4_config(weights="minmax", bits=2))
    base = EVALUATION(quantize(program, [IMAGES], quantizer))
    found = search(program, [IMAGES], EVALUATION, 0.95, quantizer, cost=cost_on(BOARD))
    assert base < 0.9, "two bits must hurt, or there is nothing to search"
    assert found.base_accuracy == base
    assert found.accuracy >= 0.95
    assert found.accuracy == EVALUATION(quantize(program, [IMAGES], found.quantizer))
    assert 0 < len(found.exceptions) <= 3
    # No exception that costs bytes is there for nothing, as the search itself has verified.
    assert found.sensitivity is not None
    costs = {(entry.name, entry.config): entry.bytes for entry in found.sensitivity.exceptions}
    for path, kind in found.exceptions.items():
        fewer = {(p, k) for p, k in found.exceptions.items() if p != path}
        if costs.get((path, kind), 1) >= 0:
            assert [step.accuracy < 0.95 for step in found.steps if set(step.exceptions) == fewer] == [True]


def test_aim_that_cannot_be_reached_is_an_error(program: ExportedProgram) -> None:
    with pytest.raises(QuantizationError, match=r"accuracy of 1\.5000: the best of \d+ tried reached [01]\."):
        search(program, [IMAGES], EVALUATION, 1.5, TinyetQuantizer(int8_config()), exceptions={"float": None})
