# SPDX-License-Identifier: Apache-2.0
"""`tinyet.streaming` from torch to integers: the program of the window made to take frames, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import tinyet as tn
from tests.cli.command import tinyet
from tinyet.errors import ModelError, UsageError
from tinyet.numerics import quantize
from tinyet.program import Program, load
from tinyet.reference import Session, run_graph

FRAMES = 16


class Listener(nn.Module):
    """A causal convolution, two recurrent layers of which one gives its steps and one the last, and two answers."""

    def __init__(self) -> None:
        super().__init__()
        self.front = nn.Conv1d(4, 6, 3)
        self.first = nn.LSTM(6, 5, batch_first=True)
        self.second = nn.GRU(5, 4, batch_first=True)
        self.head = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.relu(self.front(F.pad(x, (2, 0)))).transpose(1, 2)
        y, _ = self.first(y)
        _, last = self.second(y)
        return self.head(last[-1]), y[:, -1]


class Refused(nn.Module):
    """All that looks at other steps than those of the past."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv1d(4, 6, 1)
        self.backwards = nn.LSTM(6, 5, batch_first=True, bidirectional=True)
        self.where = nn.Parameter(torch.linspace(-1, 1, 6 * FRAMES).reshape(1, 6, FRAMES))
        self.up = nn.ConvTranspose1d(6, 6, 2, stride=2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = self.enter(x)
        placed = (x + self.where).mean(2)
        weighed = (x * torch.softmax(x, 2)).sum(2)
        excited = (x * torch.sigmoid(x.mean(2, keepdim=True))).amax(2)
        both, _ = self.backwards(x.transpose(1, 2))
        return placed, weighed, excited, both.mean(1), self.up(x).mean(2)


class Centred(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(4, 6, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.mean(self.conv(x), 2)


WINDOW = torch.zeros(1, 4, FRAMES)


def windows(count: int) -> list[torch.Tensor]:
    return list(torch.randn(count, 1, 4, FRAMES, generator=torch.Generator().manual_seed(1)))


@pytest.fixture(scope="module")
def listener() -> nn.Module:
    torch.manual_seed(0)
    return Listener().eval()


@pytest.fixture(scope="module")
def windowed(listener: nn.Module) -> Program:
    return tn.compile(listener, (WINDOW,), calibration=windows(8), name="listener")


def test_it_listens(listener: nn.Module, windowed: Program) -> None:
    """After a reset and a window of frames, what the network over the window gives; integers and float graph."""
    program = tn.compile(tn.streaming(listener, WINDOW, axis=-1), calibration=windows(8), name="listener")
    assert program.data == windowed.streaming(2).data
    assert [t.shape for t in program.inputs] == [(1, 4, 1)]
    assert any("all frames since the reset" in note.text for note in program.notes)
    given = quantize(windows(3)[2].numpy(), windowed.inputs[0].type)
    session = Session(program.graph)
    for _ in range(2):
        for frame in range(FRAMES):
            got = session.outputs([np.ascontiguousarray(given[:, :, frame : frame + 1])])
        for answer, wanted in zip(got, run_graph(windowed.graph, [given]), strict=True):
            np.testing.assert_array_equal(answer, wanted)
        session.reset()
    assert program.float_graph is not None
    assert windowed.float_graph is not None
    real, reference = windows(3)[2].numpy(), Session(program.float_graph)
    for frame in range(FRAMES):
        got = reference.outputs([np.ascontiguousarray(real[:, :, frame : frame + 1])])
    for answer, wanted in zip(got, run_graph(windowed.float_graph, [real]), strict=True):
        np.testing.assert_array_equal(answer, wanted)


def test_all_that_cannot_be_streamed_is_named_with_its_line() -> None:
    with pytest.raises(ModelError) as error:
        tn.compile(tn.streaming(Refused().eval(), WINDOW, axis=2))
    text = error.value.what
    assert text.startswith("5 layer(s)")
    for line, why in {
        "placed = ": "another value of",
        "weighed = ": "softmax works along time",
        "excited = ": "is of the whole window, beside single steps",
        "both, _ = ": "from the last step to the first",
        "self.up(x)": "conv_transpose2d makes 2 steps of each",
    }.items():
        assert any(line in found and why in found for found in text.splitlines()), (line, text)


def test_padding_at_the_edges_names_the_layer_and_the_way_out() -> None:
    model = Centred().eval()
    with pytest.raises(ModelError) as error:
        tn.compile(tn.streaming(model, WINDOW, axis=2))
    assert "conv (" in error.value.what
    assert "1 before the first and 1 behind the last step" in error.value.what
    assert 'edges="continue"' in str(error.value.hint)
    program = tn.compile(tn.streaming(model, WINDOW, axis=2, edges="continue"))
    assert "up to 1 before the newest" in program.notes[0].text
    assert "in the place of padding" in program.notes[1].text


def test_what_is_asked_for_is_checked(windowed: Program) -> None:
    for arguments, word in (
        ({"axis": 3}, "no axis 3"),
        ({"axis": None}, "no axis is time"),
        ({"axis": "time"}, "an axis"),
        ({"axis": (2, 2)}, "2 axes for 1"),
        ({"axis": 0}, "1 frames in the window"),
        ({"axis": 2, "hop": 0}, "hop"),
        ({"axis": 2, "hop": FRAMES + 1}, "17 frames a run"),
        ({"axis": 2, "edges": "wrap"}, "edges"),
    ):
        with pytest.raises(UsageError, match=word):
            windowed.streaming(**arguments)
    with pytest.raises(ModelError, match="has states"):
        windowed.streaming(2).streaming(2)
    with pytest.raises(UsageError, match="takes a module"):
        tn.streaming(windowed, WINDOW, axis=2)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="its own example inputs"):
        tn.compile(tn.streaming(Centred().eval(), WINDOW, axis=2), (WINDOW,))


_FILE = """\
import torch
from torch import nn
import tinyet

def model():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv1d(2, 3, 3), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten()).eval()
    return tinyet.streaming(net, torch.zeros(1, 2, 8), axis=2, hop=2)

def calibration():
    return list(torch.randn(4, 1, 2, 8))
"""


def test_on_the_command_line(windowed: Program, tmp_path: Path) -> None:
    """A program of windows, and a file whose model() streams."""
    whole, parts = tmp_path / "whole.tet", tmp_path / "parts.tet"
    windowed.save(whole)
    ended = tinyet("compile", whole, "-o", parts, "--streaming", "2", "--hop", "4")
    assert ended.status == 0, ended.err
    assert "takes 4 new frame(s) a run" in ended.out + ended.err
    assert load(parts).data == windowed.streaming(2, hop=4).data
    source = tmp_path / "net.py"
    source.write_text(_FILE)
    ended = tinyet("compile", source, "-o", parts)
    assert ended.status == 0, ended.err
    assert load(parts).inputs[0].shape == (1, 2, 2)
    ended = tinyet("compile", whole, "-o", parts, "--hop", "4")
    assert ended.status == 2
    assert "--streaming AXIS" in ended.err
