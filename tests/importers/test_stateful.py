# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers that go on where the run before has stopped."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import tinyet
from tinyet.errors import ModelError, UsageError

KINDS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}


class Steps(nn.Module):
    """A recurrent network over (1, steps, 5), every step's answer."""

    def __init__(self, kind: str, **options: object) -> None:
        super().__init__()
        self.layer = KINDS[kind](5, 7, batch_first=True, **options)
        self.leave = nn.Linear(14 if options.get("bidirectional") else 7, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.leave(self.layer(x)[0])
        return y


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_give_what_the_whole_gives(kind: str) -> None:
    """In float, three steps a run; and anew after a reset."""
    torch.manual_seed(1)
    model, x = Steps(kind, num_layers=2).eval(), torch.randn(1, 12, 5)
    program = tinyet.compile(model, (x[:, :3],), stateful=True)
    assert len(program.states) == (4 if kind == "lstm" else 2)
    want = model(x).detach().numpy()
    session = program.session()
    for _ in range(2):
        got = np.concatenate([session.run(piece.numpy()) for piece in x.split(3, 1)], 1)
        np.testing.assert_allclose(got, want, atol=1e-5)
        session.reset()


def test_integers_and_their_float_graph_go_on() -> None:
    """The first run is that of the stateless program; the next one is not, and stays near the float network."""
    torch.manual_seed(1)
    model, x = Steps("gru").eval(), torch.randn(16, 6, 5)
    batches = list(x.split(1))
    plain = tinyet.compile(model, (x[:1],), calibration=batches)
    program = tinyet.compile(model, (x[:1],), calibration=batches, stateful=True)
    assert program.float_graph is not None
    assert len(program.float_graph.states) == len(program.states) == 1
    session, first = program.session(), x[:1].numpy()
    assert np.array_equal(session.run(first), plain.run(first))
    again = session.run(first)
    assert not np.array_equal(again, plain.run(first))
    exact = model(torch.cat([x[:1], x[:1]], 1)).detach().numpy()[:, 6:]
    assert np.abs(again - exact).max() < 0.05


def test_what_cannot_go_on_is_refused() -> None:
    x = torch.zeros(1, 4, 5)
    with pytest.raises(ModelError, match="go backwards in time") as found:
        tinyet.compile(Steps("lstm", bidirectional=True).eval(), (x,), stateful=True)
    assert "test_stateful.py" in str(found.value)
    with pytest.raises(ModelError, match="no recurrent layer that begins"):
        tinyet.compile(nn.Linear(5, 3).eval(), (x,), stateful=True)
    with pytest.raises(UsageError, match="stateful already"):
        tinyet.compile(tinyet.streaming(Steps("gru").eval(), (x,), axis=1), stateful=True)
