# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers and cells stay whole when they are captured: one node a layer and direction, torch's numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.importers.test_importer import check_same, tensor
from tests.torch_helpers import Lambda, ops, unrolled
from tinyet.errors import UnsupportedShape
from tinyet.fx import recurrent_ops
from tinyet.fx.capture import capture
from tinyet.importers.torch.importer import import_program
from tinyet.importers.torch.saved import load_saved
from tinyet.ir import Graph
from tinyet.ops.shared.recurrent import Recurrent


class Layers(nn.Module):
    """Layers that all read the same sequence, or states; all that they give is the model's output."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: torch.Tensor, *states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results: list[torch.Tensor] = []
        for layer in self.layers:
            given: Any = states[0] if len(states) == 1 else states
            found = layer(x, given) if states else layer(x)
            for part in found if isinstance(found, tuple) else (found,):
                results += part if isinstance(part, tuple) else (part,)
        return tuple(results)


def recurrents(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes if isinstance(node.attrs, Recurrent)]


def test_every_kind_of_layer() -> None:
    model = Layers(
        nn.LSTM(3, 4, batch_first=True),
        nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2, batch_first=True, dropout=0.5),
        nn.LSTM(3, 4, bias=False, bidirectional=True, batch_first=True),
        nn.GRU(3, 4, 2, batch_first=True, dropout=0.5),
        nn.GRU(3, 4, bias=False, bidirectional=True, batch_first=True),
        nn.RNN(3, 4, batch_first=True, bidirectional=True),
        nn.RNN(3, 4, nonlinearity="relu", bias=False, batch_first=True),
    )
    graph = check_same(model, tensor(2, 5, 3))
    assert recurrents(graph) == ["lstm"] * 7 + ["gru"] * 4 + ["rnn"] * 3
    names = {t.name for t in graph.constants}
    assert {"layers_1_weight_hr_l1_reverse", "layers_3_bias_hh_l1", "layers_5_weight_ih_l0"} <= names


def test_steps_first_with_and_without_a_batch() -> None:
    model = Layers(nn.LSTM(3, 4, 2, bidirectional=True), nn.GRU(3, 4), nn.RNN(3, 4, 2))
    for x in (tensor(5, 2, 3), tensor(5, 3)):
        assert recurrents(check_same(model, x)) == ["lstm"] * 4 + ["gru", "rnn", "rnn"]


def test_given_states() -> None:
    x, h, c = tensor(5, 2, 3), tensor(4, 2, 4), tensor(4, 2, 6)
    check_same(Layers(nn.LSTM(3, 6, 2, bidirectional=True, proj_size=4)), x, h, c)
    check_same(Layers(nn.GRU(3, 4, 2, bidirectional=True), nn.RNN(3, 4, 4)), x, h)
    same = Lambda(lambda x, h: model(x, (h, h))[0])  # one value for both of an LSTM's
    model = nn.LSTM(3, 4)
    check_same(same, x, h[:1])


def test_cells() -> None:
    x, h, c = tensor(2, 3), tensor(2, 4), tensor(2, 4)
    check_same(Layers(nn.LSTMCell(3, 4), nn.LSTMCell(3, 4, bias=False)), x, h, c)
    cells = Layers(nn.GRUCell(3, 4), nn.RNNCell(3, 4), nn.RNNCell(3, 4, nonlinearity="relu", bias=False))
    assert recurrents(check_same(cells, x, h)) == ["gru", "rnn", "rnn"]
    assert recurrents(check_same(Layers(nn.LSTMCell(3, 4), *cells.layers), x[0])) == [
        "lstm",
        "gru",
        "rnn",
        "rnn",
    ]


def test_who_reads_one_last_state_reads_it_alone() -> None:
    """Else those of all layers are put together, and in integers get one scale."""
    layer = nn.GRU(3, 4, 3, bidirectional=True)

    def last(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        states = layer(x)[1]
        return states[-1], torch.cat([states[-2], states[0]], 1), layer(y)[1][2], layer(x)[1].unbind()[1]

    model = Lambda(last)
    model.layer = layer
    graph = check_same(model, tensor(5, 2, 3), tensor(5, 3))
    joined = [node for node in graph.nodes if node.op == "concat" and node.output.shape[0] == 6]
    assert not joined


def test_what_torch_has_unrolled_already_is_taken_as_it_is() -> None:
    model = nn.GRU(3, 4).eval()
    graph = import_program(unrolled(model, (tensor(3, 1, 3),)), name="m")
    assert not recurrents(graph)


def test_steps_are_as_torch_computes_them_and_can_be_differentiated() -> None:
    """Also where a result is not used, or an argument is absent."""
    torch.manual_seed(1)
    wide = torch.float64
    x, h, c = (torch.randn(*shape, dtype=wide, requires_grad=True) for shape in ((2, 3, 3), (2, 2), (2, 4)))
    w = [torch.randn(*shape, dtype=wide, requires_grad=True) for shape in ((16, 3), (16, 2), (16,), (2, 4))]
    for reverse in (False, True):
        lstm = torch.ops.tinyet.lstm
        assert torch.autograd.gradcheck(lambda *a: lstm(*a, reverse)[0], (x, h, c, *w))  # noqa: B023
        assert torch.autograd.gradcheck(lambda *a: lstm(*a, reverse)[2:], (x, h, c, *w))  # noqa: B023
    g = [torch.randn(*shape, dtype=wide, requires_grad=True) for shape in ((6, 3), (6, 2))]
    assert torch.autograd.gradcheck(lambda *a: torch.ops.tinyet.gru(*a, None, None, True), (x, h, *g))
    r = [torch.randn(*shape, dtype=wide, requires_grad=True) for shape in ((2, 3), (2, 2), (2,))]
    assert torch.autograd.gradcheck(lambda *a: torch.ops.tinyet.rnn(*a, "tanh", False), (x, h, *r))
    assert {str(op) for op in recurrent_ops.RECURRENT} == {
        f"tinyet.{n}.default" for n in ("lstm", "gru", "rnn")
    }


def test_a_number_of_steps_costs_nothing() -> None:
    programs = [capture(nn.LSTM(3, 4).eval(), (tensor(steps, 1, 3),)) for steps in (2, 500)]
    assert ops(programs[0]) == ops(programs[1])


def test_dropping_in_training_is_refused() -> None:
    model = nn.LSTM(3, 4, 2, dropout=0.5).train()
    program = torch.export.export(model, (tensor(5, 1, 3),))
    with pytest.raises(UnsupportedShape, match=r"call model.eval\(\)"):
        import_program(program, name="m")


def test_calls_of_one_layer_have_one_bias() -> None:
    """Trained copies would part."""
    layer = nn.LSTM(3, 4, batch_first=True)
    model = Lambda(lambda x, y: layer(x)[0] + layer(y)[0])
    model.layer = layer
    program = capture(model, (tensor(1, 5, 3), tensor(1, 5, 3)))
    assert len(list(program.named_parameters())) == 3
    assert recurrents(check_same(model, tensor(1, 5, 3), tensor(1, 5, 3))) == ["lstm", "lstm"]


def test_a_captured_program_can_be_kept_in_a_file(tmp_path: Path) -> None:
    x = tensor(5, 1, 3)
    torch.export.save(capture(nn.GRU(3, 4), (x,)), tmp_path / "gru.pt2")
    assert recurrents(import_program(load_saved(tmp_path / "gru.pt2"), name="m")) == ["gru"]


# ---------------------------------------------------------------- cells in loops


class Loop(nn.Module):
    """Two cells, one above the other; what each step gives, and the last states."""

    def __init__(self, axis: int, batch: int) -> None:
        super().__init__()
        self.axis, self.batch = axis, batch
        self.lower, self.upper = nn.LSTMCell(3, 4), nn.GRUCell(4, 5)
        self.head = nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        h = c = torch.zeros(self.batch, 4)
        state = torch.ones(self.batch, 5)
        outputs = []
        for t in range(x.shape[self.axis]):
            h, c = self.lower(x.select(self.axis, t), (h, c))
            state = self.upper(h, state)
            outputs.append(self.head(state))
        return torch.stack(outputs, 1), c, state


class Plain(nn.Module):
    """States alone, put together; of vectors, too."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state, states = None, []
        for part in x[1:-1].unbind():
            state = self.cell(part, state)
            states.append(state[0] if isinstance(state, tuple) else state)
        return torch.stack(states)


def test_cells_in_a_loop_are_layers() -> None:
    for axis, shape in ((0, (6, 2, 3)), (1, (2, 6, 3))):
        assert recurrents(check_same(Loop(axis, 2), tensor(*shape))) == ["lstm", "gru"]
    for cell in (nn.RNNCell(3, 4), nn.LSTMCell(3, 4)):
        for x in (tensor(7, 3), tensor(7, 2, 3)):
            graph = check_same(Plain(cell), x)
            assert len(recurrents(graph)) == 1
            assert "concat" not in [node.op for node in graph.nodes]


def test_steps_that_read_what_others_made_stay_steps() -> None:
    """A decoder that is fed with its own output, a state that somebody changes, and cells that are read."""
    cell, lstm = nn.GRUCell(4, 4), nn.LSTMCell(4, 4)

    def decoder(x: torch.Tensor) -> Any:
        state = x
        for _ in range(3):
            state = cell(torch.tanh(state), state)
        return state

    def changed(x: torch.Tensor) -> Any:
        state = x
        for _ in range(3):
            state = cell(x, state) * 0.5
        return state

    def cells(x: torch.Tensor) -> Any:
        h, c = lstm(x)
        total = c
        for _ in range(2):
            h, c = lstm(x, (h, c))
            total = total + c
        return total

    for function, layer in ((decoder, cell), (changed, cell), (cells, lstm)):
        model = Lambda(function)
        model.layer = layer
        assert len(recurrents(check_same(model, tensor(2, 4)))) == 3
