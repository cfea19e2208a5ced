# SPDX-License-Identifier: Apache-2.0
"""What a model keeps between calls is refused where outputs depend on it; the model is left as it was found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from tests.torch_helpers import line_of, run
from tinyet.errors import ModelError
from tinyet.fx.capture import capture
from tinyet.fx.module_snapshot import Held
from tinyet.fx.state import refuse_state

X = torch.randn(1, 4, generator=torch.Generator().manual_seed(5))


class Notes:
    """An object of the user's that a module holds."""

    def __init__(self) -> None:
        self.h = torch.zeros(1, 4)


class Keeps(nn.Module):
    """Something of every kind that a module can hold."""

    fc: Any
    buffer: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.h = torch.zeros(1, 4)
        self.list: list[torch.Tensor] = []
        self.dict = {"h": torch.zeros(1, 4)}
        self.notes = Notes()
        self.count = 0
        self.cache: torch.Tensor | None = None
        self.register_buffer("buffer", torch.zeros(1, 4))


class Assigned(Keeps):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.h = torch.tanh(self.fc(x) + self.h)  # wrong
        return self.h


class InPlace(Keeps):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.h.copy_(self.fc(x) + self.h)  # wrong
        return self.h * 2


class Appended(Keeps):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.list.append(self.fc(x))  # wrong
        return torch.stack(self.list).sum(0)


class InADict(Keeps):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.dict["h"] = self.fc(x) + self.dict["h"]  # wrong
        return self.dict["h"] * 1


class InAnObject(Keeps):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.notes.h = self.fc(x) + self.notes.h  # wrong
        return self.notes.h * 1


class Counted(Keeps):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1  # wrong
        return self.fc(x) * self.count  # type: ignore[no-any-return]


class CountedLong(Keeps):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1  # wrong
        return self.fc(x) if self.count < 100 else x


class BufferOfAnotherShape(Keeps):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.buffer = torch.cat([self.buffer, self.fc(x)])  # wrong
        return self.buffer.sum(0)


class CachesTheInput(Keeps):
    """The second call gives what the first did, but only for the same input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.cache is None:
            self.cache = self.fc(x)  # wrong
        return self.cache + x


class WritesWithoutEffect(Keeps):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.buffer += 1  # wrong
        return self.fc(x)  # type: ignore[no-any-return]


REFUSED = {
    Assigned: "h", InPlace: "h", Appended: "list", InADict: "dict['h']", InAnObject: "notes.h", Counted: "count",
    CountedLong: "count", BufferOfAnotherShape: "buffer",
    CachesTheInput: "cache", WritesWithoutEffect: "buffer",
}  # fmt: skip


def _state(model: Keeps) -> list[Any]:
    """What the model holds: the objects themselves, and their values."""
    objects = [model.h, model.dict["h"], model.notes.h, model.buffer, model.cache, model.fc.weight]
    values = [None if value is None else value.tolist() for value in objects]
    flags = [child.training for child in model.modules()]
    return [*map(id, objects), values, list(model.list), list(model.dict), model.count, flags]


@pytest.mark.parametrize("kind", REFUSED)
def test_state_is_refused_with_its_line_and_put_back(kind: type[Keeps]) -> None:
    model = kind().train()
    model.fc.eval()
    before = _state(model)
    with pytest.raises(ModelError) as caught:
        capture(model, X)
    assert f"- {REFUSED[kind]} " in str(caught.value)
    assert f"test_state.py:{line_of(kind, '# wrong')}" in str(caught.value)
    assert _state(model) == before


class Harmless(Keeps):
    """Kept, counted and made at the first call, and no output is another for it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.cache is None:
            self.cache = torch.arange(4.0)
        self.count += 1
        self.h = self.fc(x)
        self.list.append(self.h)
        return self.h + self.cache


def test_harmless_caches_compile_and_leave_no_trace() -> None:
    model = Harmless().train()
    before = _state(model)
    program = capture(model, X)
    assert _state(model) == before
    assert torch.allclose(run(program, 2 * X), model.fc(2 * X) + torch.arange(4.0))


def test_all_state_is_listed_and_nothing_else() -> None:
    class Several(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.third = Assigned(), Appended(), Harmless()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.third(self.second(self.first(x)))  # type: ignore[no-any-return]

    with pytest.raises(ModelError) as caught:
        capture(Several(), X)
    text = str(caught.value)
    assert "- first.h " in text
    assert "- second.list " in text
    assert "third" not in text


def test_state_outside_the_module() -> None:
    outside = SimpleNamespace(h=torch.zeros(1, 4))

    class Elsewhere(Keeps):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            outside.h = outside.h + self.fc(x)
            return outside.h  # type: ignore[no-any-return]

    with pytest.raises(ModelError, match="two runs with the same inputs"):
        capture(Elsewhere(), X)


def test_a_buffer_beside_other_state_is_not_blamed() -> None:
    class Both(Keeps):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.buffer.copy_(self.fc(x) + self.buffer)
            self.h = self.h + self.buffer
            return self.h + self.buffer

    with pytest.raises(ModelError, match=r"register_buffer") as caught:
        capture(Both(), X)
    assert "- h " in str(caught.value)
    assert "- buffer " not in str(caught.value)


def test_harmless_caches_beside_a_buffer() -> None:
    class Both(Harmless):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.buffer.mul_(0.5).add_(super().forward(x))
            return self.buffer * 2

    model = Both()
    before = _state(model)
    capture(model, X)
    assert _state(model) == before


def test_the_hint_works_when_followed() -> None:
    class Passed(Keeps):
        def forward(self, x: torch.Tensor, h: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            h = torch.tanh(self.fc(x) + h)
            return h * 2, h

    program = capture(Passed(), (X, torch.zeros(1, 4)))
    assert len(program.graph_signature.user_outputs) == 2


def test_an_error_leaves_the_module_as_it_was() -> None:
    class Fails(Keeps):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.h, self.count = self.fc(x), self.count + 1
            self.buffer.add_(1)
            raise ValueError("no")

    model = Fails().train()
    before = _state(model)
    with pytest.raises(ModelError, match="the model raises ValueError"):
        capture(model, X)
    assert _state(model) == before


def test_weights_made_at_the_first_call_stay() -> None:
    model = nn.Sequential(nn.LazyLinear(3)).train()
    program = capture(model, X)
    assert model[0].weight.shape == (3, 4)
    assert model.training
    assert torch.allclose(run(program, X), model(X))


def test_random_numbers_are_no_state() -> None:
    class Noisy(Keeps):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(x) + torch.rand(4)  # type: ignore[no-any-return]

    seed = torch.initial_seed()
    refuse_state(Noisy(), (X,))
    assert torch.initial_seed() == seed


def test_held_restores_shapes_and_containers() -> None:
    model = Keeps()
    held = Held(model)
    model.h.resize_(2, 2)
    model.dict.clear()
    model.list += [X]
    model.extra = 3  # type: ignore[assignment]
    del model.count
    assert {change.path for change in held.changes()} == {"h", "dict['h']", "list", "extra", "count"}
    held.restore()
    assert held.changes() == []
    assert model.h.shape == (1, 4)
    assert model.count == 0
    assert not hasattr(model, "extra")
