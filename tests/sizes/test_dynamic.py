# SPDX-License-Identifier: Apache-2.0
"""A size that is known at run time: bit-exact at every one, on this machine and on an emulated board, and refused where
it cannot be."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyet
from tinyet.auditing.audit import audit
from tinyet.boards import load_board
from tinyet.deployment import deploy
from tinyet.errors import DataError, ModelError, ProgramError, TinyetError, UsageError
from tinyet.planning.objective import Objective
from tinyet.program import Program

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402


class Sequence(nn.Module):
    """A convolution, pooling, a recurrent layer, and three ways out: all steps, their mean, the last one."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(5, 8, 3, padding=1)
        self.depthwise = nn.Conv1d(8, 8, 3, padding=1, groups=8, stride=2)
        self.point = nn.Conv1d(8, 6, 1)
        self.lstm = nn.LSTM(6, 6, batch_first=True)
        self.out = nn.Linear(6, 3)
        self.place = nn.Parameter(torch.randn(1, 6, 6))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y = torch.relu(self.depthwise(torch.relu(self.conv(x))))
        steps = self.point(y).transpose(1, 2)
        steps = steps + self.place[:, : steps.shape[1]]
        hidden, _ = self.lstm(steps)
        return torch.softmax(hidden, 1), self.out(hidden.mean(1)), self.out(steps[:, -1])


def compiled(
    module: nn.Module, shape: tuple[int, ...], dims: Any, *, integers: bool = True, **more: Any
) -> Program:
    torch.manual_seed(3)
    batches = [torch.randn(shape) for _ in range(3)] if integers else None
    return tinyet.compile(
        module.eval(), (torch.randn(shape),), calibration=batches, dynamic_shapes=dims, **more
    )


def dim(least: int = 1, most: int = 12, name: str = "t") -> Any:
    return torch.export.Dim(name, min=least, max=most)


@pytest.fixture(scope="module")
def sequence() -> Program:
    torch.manual_seed(1)
    return compiled(Sequence(), (1, 5, 12), ({2: dim()},), name="seq")


def test_every_size_on_this_machine(sequence: Program, tmp_path: Path) -> None:
    """All sizes, with bytes behind the smaller inputs that nobody may read, and weights that are copied into the arena
    ahead of each layer, under the sanitizers."""
    assert sequence.size is not None
    assert str(sequence.size) == "t, 1 to 12"
    assert any("each of its 12 sizes" in note.text for note in sequence.notes)  # torch counts the steps
    project = tinyet.generate(
        sequence, "mps2_an386", tmp_path / "p", kind="cmake", place={"weights": "arena"}
    )
    assert any(found.ahead for found in tinyet.analyze(project).placed)
    result = project.validate(on="host")
    assert [each.size for each in result.at_sizes] == list(range(1, 13))
    assert result.bit_exact
    sizes = result.to_json()["at_sizes"]
    assert isinstance(sizes, list)
    assert [each["bit_exact"] for each in sizes] == [True] * 12


def test_every_size_on_a_board(sequence: Program, tmp_path: Path) -> None:
    project = tinyet.generate(
        sequence, "mps2_an386", tmp_path / "p", kind="cmake", context=True, selftest=True
    )
    project.build()
    result = project.validate()
    assert result.bit_exact
    assert len(result.at_sizes) == 12
    assert audit(project).ok
    counts = [each.count for each in result.at_sizes]
    assert counts[0] * 2 < counts[-1]  # a shorter sequence is not the longest with a mask


def test_the_host_reference_takes_any_size(sequence: Program, tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(1, 5, 12)).astype(np.float32)
    for value in (1, 7, 12):
        steps, *rest = sequence.run(x[:, :, :value])
        own = sequence.at(value).run(x[:, :, :value])
        assert steps.shape == (1, (value + 1) // 2, 6)
        for a, b in zip((steps, *rest), own, strict=True):
            np.testing.assert_array_equal(a, b)
    with pytest.raises(DataError, match="13 elements along t"):
        sequence.run(np.zeros((1, 5, 13), np.float32))
    with pytest.raises(UsageError, match="no size 13"):
        sequence.at(13)
    sequence.save(tmp_path / "seq.tet")
    again = tinyet.load(tmp_path / "seq.tet")
    assert (again.size, again.data, again.hash) == (sequence.size, sequence.data, sequence.hash)
    assert "t, 1 to 12" in repr(again)


def test_floats_and_steps(tmp_path: Path) -> None:
    """A size in steps of 4, of two inputs, in float32, of images' width."""

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(2, 3, 3, padding=1)

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            z: Tensor = self.conv(x)
            result: Tensor = torch.max_pool2d(z, 2) * torch.sigmoid(
                torch.cat([y, y[:, :, :, -2:]], 3)[..., :-2]
            )
            return result

    quarter = dim(1, 3, "quarter")
    shapes = {"x": {3: 4 * quarter}, "y": None}
    with pytest.raises(TinyetError):  # y has half as many, and is declared to be fixed
        tinyet.compile(
            Two().eval(), (torch.randn(1, 2, 4, 12), torch.randn(1, 3, 2, 6)), dynamic_shapes=shapes
        )

    class One(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(2, 3, 3, padding=1)

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            z: Tensor = self.conv(x) * torch.sigmoid(torch.cat([y, y[..., -2:]], 3)[..., 2:])
            result: Tensor = torch.max_pool2d(z, 2)
            return result

    program = tinyet.compile(
        One().eval(), (torch.randn(1, 2, 4, 12), torch.randn(1, 3, 4, 12)),
        dynamic_shapes=({3: 4 * quarter}, {3: 4 * quarter}), name="one",
    )  # fmt: skip
    assert program.size is not None
    assert list(program.size.values) == [4, 8, 12]
    project = tinyet.generate(program, "mps2_an385", tmp_path / "p", kind="cmake")
    assert project.validate(on="host").bit_exact


class Last(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = torch.tanh(x)
        return y[:, -2:]


def test_a_view_that_moves_with_the_size_is_a_copy() -> None:
    """The last steps lie where the size says: for one size they are bytes of what they are taken from."""
    program = compiled(Last(), (1, 9, 4), ({1: dim(3, 9)},), integers=False)
    target = load_board("mps2_an385").target
    fixed, sized = deploy(program.graph, target), deploy(program.graph, target, size=program.size)
    assert [step.node.op for step in fixed.steps] == ["unary"]
    assert [step.node.op for step in sized.steps] == ["unary", "slice"]
    assert sized.sized is not None
    assert [each.graph.outputs[0].shape for each in sized.sized.at.values()] == [(1, 2, 4)] * 7


@pytest.mark.usefixtures("young")
def test_a_graph_goes_with_its_plans() -> None:
    """Also where its kernels are for all sizes, and hold it at each, to say whether they work in place."""
    program = compiled(nn.Conv1d(8, 8, 3, groups=8, padding=1), (1, 8, 9), ({2: dim(3, 9)},))
    target = load_board("mps2_an385").target
    aim = Objective(pins={"permute_0": "tinyet_transpose"})
    found = deploy(program.graph, target, objective=aim, size=program.size)
    assert any(each.choice.kernel.replaces is not None for each in found.decision.chosen.values())
    gone = weakref.ref(program.graph)
    del program, found
    gc.collect(0)
    assert gone() is None


class ByLength(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x) if x.shape[1] > 5 else x


class Flat(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(24, 2)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.linear(x.flatten(1))
        return y


class Middle(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = torch.relu(x[:, 7:8])
        return result


class Fixed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1, 8, 2))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x * self.weight
        return y


@pytest.mark.parametrize(
    ("module", "what"),
    [
        (ByLength(), "at t = 2 output 0"),
        (Flat(), "at t = 2 the model raises"),
        (Fixed(), "at t = 2 the model raises"),
        (Middle(), "at t = 2"),
    ],
)
def test_what_is_for_one_size_is_refused(module: nn.Module, what: str) -> None:
    shape = (1, 8, 3) if isinstance(module, Flat) else (1, 8, 2)
    with pytest.raises(ModelError, match=what) as caught:
        compiled(module, shape, ({1: dim(2, 8)},), integers=False)
    assert "test_dynamic.py" in str(caught.value)


@pytest.mark.parametrize(
    ("shapes", "what"),
    [
        (({1: torch.export.Dim("t")},), "no largest value"),
        (({1: dim(2, 9)},), "8 elements along axis 1, which goes up to 9"),
        (({1: dim(2, 8), 2: dim(1, 2, "u")},), "two dynamic axes"),
        (({1: torch.export.Dim.AUTO},), "no dimension with a largest value"),
        (({},), "declares none"),
        ({"z": {1: dim(2, 8)}}, "names z"),
        (({4: dim(2, 8)},), "no axis 4"),
        ((), "no entry for each input"),
        (({1: dim(2, 8)}, None), "no entry for each input"),
        (({1: dim(1, 5000)},), "5000 values"),
    ],
)
def test_declarations_that_are_none(shapes: Any, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        compiled(nn.ReLU(), (1, 8, 2), shapes, integers=False)


def test_what_goes_with_no_size(sequence: Program, tmp_path: Path) -> None:
    for more, what in (
        ({"context": True, "max_step": "1ms"}, "cut for one size"),
        ({"input_rows": True}, "row by row"),
        ({"place": {"arena": "psram+ram"}}, "one piece where a run is told the size"),
    ):
        with pytest.raises(UsageError, match=what):
            tinyet.generate(sequence, "mps2_an386", tmp_path / "p", **more)
    with pytest.raises(UsageError, match="shares no arena"):
        tinyet.generate(
            [sequence, replace(sequence.at(3), name="other")], "mps2_an386", tmp_path / "p", name="two"
        )
    with pytest.raises(UsageError, match="fixed number of frames"):
        sequence.streaming(2)
    with pytest.raises(UsageError, match="of a module"):
        tinyet.compile(torch.export.export(nn.ReLU(), (torch.zeros(2, 3),)), dynamic_shapes=({0: dim(1, 2)},))
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{", "record of the size"),
        ("[1]", "must have name"),
        ('{"axes": [2], "name": "t", "values": [1, 13, 0]}', "no range"),
        ('{"axes": [2], "name": "t;", "values": [1, 13, 1]}', "letters, digits"),
        ('{"axes": [1], "name": "t", "values": [1, 13, 1]}', "is 5, not 12"),
        ('{"axes": [9], "name": "t", "values": [1, 13, 1]}', "no axis 9"),
        ('{"axes": [2, 2], "name": "t", "values": [1, 13, 1]}', "of 2 inputs"),
        ('{"axes": [2], "name": "t", "values": [1, 2147483647, 1]}', "values, there can be"),
        ('{"axes": [2], "name": "t", "values": [12, 1, 1]}', "values, there can be"),
    ],
)
def test_files_of_strangers(sequence: Program, text: str, what: str) -> None:
    from tinyet.program import from_bytes
    from tinyet.tet import wire
    from tinyet.tet.format import DIGEST_BYTES, seal

    record = wire.root_of(sequence.data[:-DIGEST_BYTES])[2]()
    record.size = text
    with pytest.raises(ProgramError, match=what):
        from_bytes(seal(wire.write(record)), "x.tet")
