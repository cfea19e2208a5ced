# SPDX-License-Identifier: Apache-2.0
"""A graph made a program without torch's tracing is the program that torch.export makes of it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn
from torch.export import ExportedProgram

from tests.torch_helpers import Lambda
from tinyet.fx.as_exported import as_exported
from tinyet.fx.capture import capture
from tinyet.fx.decompose import _REGISTRATIONS, decompose, decomposition_table, stays
from tinyet.fx.edit import bind
from tinyet.fx.origins import stamp
from tinyet.fx.respell import respelled
from tinyet.quantization.quantize import quantize


class Keeps(nn.Module):
    """Has a weight twice, a parameter that is not used, buffers of every kind, and one that it writes."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.idle = nn.Parameter(torch.ones(2))
        self.register_buffer("Last_1", torch.zeros(1, 4))
        self.register_buffer("passing", torch.ones(4), persistent=False)
        self.plain = torch.full((4,), 2.0)

    Last_1: torch.Tensor
    passing: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.second(torch.relu(self.first(x))) * self.passing + self.plain + self.Last_1
        self.Last_1.copy_(y)
        doubled: torch.Tensor = y * 2
        return doubled


class Named(nn.Module):
    """Its arguments are called as its operators are, or in capitals; some results are not used."""

    def forward(self, add: torch.Tensor, B_1: torch.Tensor) -> dict[str, torch.Tensor]:  # noqa: N803
        low, _, high = (add + B_1 + add).split(2, 1)
        return {"high": high.max(1)[0], "low": low + 1}


GRAPHS: dict[str, tuple[Callable[[], nn.Module], tuple[torch.Tensor, ...]]] = {
    "what is kept": (Keeps, (torch.randn(1, 4),)),
    "names": (Named, (torch.randn(1, 6), torch.randn(1, 6))),
    "recurrent": (lambda: nn.LSTM(3, 5, batch_first=True), (torch.randn(1, 4, 3),)),
    "pictures": (
        lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        (torch.randn(1, 2, 8, 8),),
    ),
}


def exported(model: nn.Module, inputs: tuple[Any, ...]) -> ExportedProgram:
    with torch.no_grad():
        return torch.export.export(model, inputs)


def described(program: ExportedProgram) -> dict[str, Any]:
    """All of a program that anybody reads."""
    signature, call = program.graph_signature, program.module_call_graph
    assert call[0].signature is not None
    return {
        "nodes": [_node(node) for node in program.graph.nodes],
        "inputs": [(s.kind, s.arg.name, s.target, s.persistent) for s in signature.input_specs],
        "outputs": [(s.kind, s.arg.name, s.target) for s in signature.output_specs],
        "state": {name: id(value) for name, value in program.state_dict.items()},
        "constants": {name: id(value) for name, value in program.constants.items()},
        "trees": (program.call_spec.in_spec, program.call_spec.out_spec),
        "arguments": call[0].signature.forward_arg_names,
        "modules": [entry.fqn for entry in call],
    }


def _node(node: fx.Node) -> object:
    values = node.meta.get("val")
    values = values if isinstance(values, (tuple, list)) else [values]
    forms = [
        (tuple(v.shape), v.dtype, v.stride(), v.requires_grad) for v in values if isinstance(v, torch.Tensor)
    ]
    origin = (node.meta.get("custom"), node.meta.get("stack_trace")) if node.op == "call_function" else None
    arguments = str(bind(node) if node.op == "call_function" else node.args)
    return node.op, node.name, str(node.target), arguments, forms, origin


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_as_torch_makes_it(name: str) -> None:
    make, inputs = GRAPHS[name]
    module = exported(make().eval(), inputs).module(check_guards=False)
    assert isinstance(module, fx.GraphModule)
    stamp(module.graph)
    made = as_exported(module, inputs)
    assert made is not None
    assert described(made) == described(exported(module, inputs))


def test_quantized_as_torch_makes_it() -> None:
    """Weights of int8, and scales that are found at run time."""
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
    inputs = (torch.randn(1, 6),)
    module = quantize(capture(model, inputs), [inputs] * 4).module(check_guards=False)
    assert isinstance(module, fx.GraphModule)
    stamp(module.graph)
    made = as_exported(module, inputs)
    assert made is not None
    assert described(made) == described(exported(module, inputs))


def test_other_graphs_are_traced() -> None:
    """Functions that are no operators, methods, and arguments that are not one tensor each."""
    graph = fx.Graph()
    x = graph.placeholder("x")
    for target in (torch.relu, operator.add):
        module = fx.GraphModule({}, _ending(graph, x, target))
        assert as_exported(module, (torch.ones(2),)) is None
    pair = exported(Lambda(lambda pair: pair[0] + pair[1]), ((torch.ones(2), torch.ones(2)),))
    module = pair.module(check_guards=False)
    assert as_exported(module, (torch.ones(2), torch.ones(2))) is None


def _ending(graph: fx.Graph, x: fx.Node, target: Callable[..., Any]) -> fx.Graph:
    copied = fx.Graph()
    made: dict[fx.Node, fx.Node] = {}
    copied.graph_copy(graph, made)
    arguments = (made[x],) if target is torch.relu else (made[x], made[x])
    copied.output(copied.call_function(target, arguments))
    return copied


ONES, KERNEL = torch.ones(3, 3, 3), torch.ones(3, 3, 3, 1)
WEIGHT, BIAS = torch.ones(3, 3), torch.ones(3)
GROUPS, CAUSAL = torch.ones(4, 1, 2, 2), torch.ones(6, 6).tril()
LEFT: tuple[tuple[Callable[..., Any], tuple[int, ...]], ...] = (
    (lambda x: F.conv1d(x, ONES), (1, 3, 9)),
    (lambda x: F.conv2d(x, KERNEL, padding=1), (1, 3, 9, 9)),
    (lambda x: F.linear(x, WEIGHT, BIAS), (2, 3)),
    (lambda x: x @ WEIGHT @ BIAS, (2, 3)),
    (lambda x: torch.log_softmax(torch.softmax(x, -1), 1), (2, 4)),
    (lambda x: F.layer_norm(x, (4,)) + F.pad(x, (1, 0))[:, 1:], (2, 4)),
    (lambda x: F.max_pool1d(F.avg_pool1d(x, 2), 2, 1), (1, 2, 9)),
    (lambda x: F.max_pool2d(F.avg_pool2d(x, 2), 2, 1), (1, 2, 9, 9)),
    (lambda x: F.adaptive_avg_pool1d(x, 3) + F.adaptive_avg_pool2d(x[None], (2, 3))[0], (1, 2, 9)),
    (lambda x: torch.cat([torch.relu(x).view(4, 2), *x.split(2, 1)]), (2, 4)),
    (lambda x: F.conv_transpose1d(F.prelu(x, BIAS), ONES, BIAS, 2, 1), (1, 3, 9)),
    (lambda x: F.conv_transpose2d(x, KERNEL, None, 2, 1, 1, dilation=2), (1, 3, 9, 9)),
    (lambda x: F.conv_transpose2d(x, GROUPS, groups=2), (1, 4, 5, 5)),
    (lambda x: F.interpolate(x, scale_factor=2) + F.interpolate(x, 18, mode="linear"), (1, 3, 9)),
    (lambda x: F.interpolate(x, (7, 5), mode="bilinear", align_corners=True), (1, 3, 9, 9)),
    (
        lambda x: F.interpolate(x, scale_factor=(2, 3), mode="bilinear") - F.interpolate(x, (18, 27)),
        (1, 3, 9, 9),
    ),
)


class Spelled(nn.Module):
    """Two batch norms, a flatten in order and one that is not needed, recurrent layers that begin with zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(2, 4, 3), nn.Conv2d(4, 4, 1)
        self.norm, self.plain = nn.BatchNorm2d(4), nn.BatchNorm2d(4, affine=False)
        self.lstm, self.gru = nn.LSTM(9, 5, batch_first=True), nn.GRU(5, 5, batch_first=True)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.plain(self.second(self.norm(self.first(x)).relu())).flatten(2)
        z, _ = self.gru(self.lstm(y)[0])
        return z.reshape(1, -1), torch.zeros(36) + y.reshape(36) + torch.ones(36, dtype=torch.int32)


class Turned(nn.Module):
    """Axes by numbers from both ends, one that goes, and what does nothing in eval mode."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = F.dropout(F.relu6(x.transpose(1, -1)), 0.3, self.training) + x.transpose(-1, 1)
        return y, y.squeeze(0).t() - 1, y.transpose(0, 2).squeeze(-1), y.squeeze(1)


class Twice(nn.Module):
    """An output is what is spelled, given twice, beside an input that is called as a function of Python's."""

    def forward(self, input: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # noqa: A002
        flat = (input + 1).flatten(1)
        return flat, input, flat


class Masks(nn.Module):
    """What a mask leaves of a value, of whole numbers' types and of parts; sums and squares."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        mask = CAUSAL <= 0
        y = x.masked_fill(mask, float("-inf")).softmax(-1) + torch.where(x > 0, x, 0.25)
        turned = y.transpose(1, 2).masked_fill(mask, 0.5)
        low, high, _ = torch.where(y.transpose(1, 2) > 0, turned, -1.0).chunk(3, 1)
        first, _ = y.chunk(2, -1)
        whole = (y * 8).to(torch.int32)
        return (
            1 - low,
            high.square(),
            first.sum(),
            whole.to(torch.int8),
            whole.float() + 2,
            (y > 0).float() * y,
        )


class Cells(nn.Module):
    """Cells begin with zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.gru, self.rnn = nn.LSTMCell(3, 4), nn.GRUCell(4, 5), nn.RNNCell(5, 4)
        self.relu = nn.RNNCell(4, 3, nonlinearity="relu")

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y, kept = self.lstm(x)
        return self.relu(self.rnn(self.gru(y))), kept


def test_spelled_as_torch_decomposes() -> None:
    cases: tuple[tuple[nn.Module, tuple[int, ...]], ...] = (
        (Spelled(), (1, 2, 5, 5)),
        (Turned(), (1, 2, 3)),
        (Twice(), (1, 2, 3)),
        (Masks(), (1, 6, 6)),
        (Cells(), (1, 3)),
    )
    for model, shape in cases:
        program = exported(model.eval(), (torch.randn(shape),))
        before = described(program)
        made = respelled(program, _others(program))
        assert made is not None
        assert described(made) == described(_decomposed(program))
        assert described(program) == before


OTHERWISE: tuple[Callable[..., Any], ...] = (
    lambda x: x.mT.flatten(1),
    lambda x: x.flatten(2),
    lambda x: x.reshape(1, 4, 6).flatten(1) + torch.relu_(x + 1).sum(),
    lambda x: F.batch_norm(x, None, None, training=True),
    lambda x: torch.zeros_like(x).flatten(1),
    lambda x: x.to(torch.float32).flatten(1),
    lambda x: x.chunk(2),
    lambda x: torch.rsub(x, 1, alpha=2),
    lambda x: x.sum(dtype=torch.float64),
    lambda x: (x * 2).to(torch.int32).masked_fill(x > 0, 1),
    lambda x: torch.where(x > 0, x, 1),
    lambda x: torch.where(x > 0, x.double(), 0.5),
)


@pytest.mark.parametrize("case", range(len(OTHERWISE)))
def test_what_torch_decomposes(case: int) -> None:
    """What is copied, changed in place, or of other operators."""
    program = exported(Lambda(OTHERWISE[case]), (torch.randn(1, 4, 6),))
    assert respelled(program, _others(program)) is None


def _others(program: ExportedProgram) -> set[fx.Node]:
    with _REGISTRATIONS.within() as table:
        return {node for node in program.graph.nodes if not stays(node, table)}


def _decomposed(program: ExportedProgram) -> ExportedProgram:
    """By torch, with the registrations that it has made before."""
    with _REGISTRATIONS.within() as table:
        core: ExportedProgram = program.run_decompositions(table)
    return core


NOT_LEFT: tuple[tuple[Callable[..., Any], tuple[int, ...]], ...] = (
    (lambda x: x.flatten(1) + 1, (1, 2, 3)),
    (lambda x: torch.cat(x.chunk(2, 1)), (1, 4)),
    (lambda x: torch.relu_(x + 1), (1, 4)),
    (lambda x: (x + 1, x * 2)[0], (1, 4)),
)


@pytest.mark.parametrize("case", range(len(LEFT)))
def test_nothing_to_decompose(case: int) -> None:
    """A program of core operators is left as it is: torch's decomposition would give the same."""
    function, shape = LEFT[case]
    program = exported(Lambda(function), (torch.randn(shape),))
    assert decompose(program) is program
    assert described(_decomposed(program))["nodes"] == described(program)["nodes"]


@pytest.mark.parametrize("case", range(len(NOT_LEFT)))
def test_something_to_decompose(case: int) -> None:
    function, shape = NOT_LEFT[case]
    program = exported(Lambda(function), (torch.randn(shape),))
    nodes = described(decompose(program))["nodes"]
    assert nodes == described(program.run_decompositions(decomposition_table()))["nodes"]
    assert nodes != described(program)["nodes"]
