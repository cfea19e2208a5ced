# SPDX-License-Identifier: Apache-2.0
"""State that a model keeps between calls, outside of inputs and outputs: found by running it, and refused.

torch.export takes what a module holds for constants: `self.h = f(x, self.h)` would be frozen as it was at the first
call. What `forward()` changes is harmless where no output depends on it: a position code that is made at the first
call, a value kept for a debugger, a counter. Buffers are no constants to it: `mutable_buffers`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from tinyet.errors import ModelError, bullet_list
from tinyet.fx.examples import Example, example_of
from tinyet.fx.module_snapshot import Change, Held, equal
from tinyet.fx.source_locations import Frame, frame_at

HINT = (
    'hold it in a buffer, which is kept from run to run: self.register_buffer("h", torch.zeros(…)) in __init__(), '
    "self.h.copy_(…) in forward(). Or make it an input and an output: def forward(self, x, h): …; return y, h"
)


def refuse_state(module: nn.Module, example_inputs: Sequence[torch.Tensor] | Example) -> None:
    """Raise ModelError, listing with the user's lines all that an output depends on and forward() changes, but for
    buffers: torch.export tells that these are written, and they become states.

    module: in eval mode. It is run, at least twice; what it holds is put back.
    """
    inputs, held = example_of(example_inputs), Held(module)
    try:
        first = _outputs(module, inputs)
        changes = [change for change in held.changes() if not change.buffer]
        held.restore_buffers()
        again = _alike(first, _outputs(module, inputs))
        if changes:
            _refuse(module, inputs, held, changes, None if again else first)
        elif not again:
            raise ModelError(
                "two runs with the same inputs give different outputs, and nothing changed that the module holds: it "
                "keeps state elsewhere",
                hint=HINT + "; a random number that is drawn without torch is such a state, too",
            )
    finally:
        held.restore()


def _refuse(
    module: nn.Module,
    inputs: Example,
    held: Held,
    changes: Sequence[Change],
    first: list[Any] | None,
) -> None:
    """changes: what is otherwise after one run. first: the outputs of that, where those of the second run differ."""
    if first is None:
        inputs = _others(inputs)
        held.restore_buffers()
        after = _outputs(module, inputs)
        held.restore()
        first = _outputs(module, inputs)
        counters = [change for change in changes if change.put_late is not None]
        if _alike(after, first) and not any(_matters(module, inputs, held, c, first) for c in counters):
            _refuse_written(module, inputs, held, changes)
            return
    guilty = [change for change in changes if _matters(module, inputs, held, change, first)] or changes
    raise ModelError(
        "forward() changes what the model holds, and its outputs depend on it at the next call:\n"
        + _listed(module, inputs, held, guilty),
        hint=HINT,
    )


def _refuse_written(module: nn.Module, inputs: Example, held: Held, changes: Sequence[Change]) -> None:
    """torch.export takes no writing into tensors, be it without effect."""
    written = [change for change in changes if change.written]
    if written:
        raise ModelError(
            "forward() writes into what the model holds:\n" + _listed(module, inputs, held, written),
            hint="no output depends on it: leave it away, or do it in training only (if self.training: …); a batch "
            "norm in training mode writes, too: call eval() on it",
        )


def _listed(module: nn.Module, inputs: Example, held: Held, changes: Sequence[Change]) -> str:
    """The changes, each with its line."""
    places = _places(module, inputs, held, changes)
    return bullet_list([f"{change.path} {places.get(change, '')}".rstrip() for change in changes])


def _outputs(module: nn.Module, inputs: Example) -> list[Any]:
    """The tensors (and all else) of one run, each with the same random numbers."""
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        # The CPU's alone: torch.manual_seed keeps a traceback for each other kind of device.
        torch.default_generator.manual_seed(0)
        leaves = pytree.tree_leaves(inputs.run(module))
    return [leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]


def _alike(first: list[Any], second: list[Any]) -> bool:
    if len(first) != len(second):
        return False
    return all(
        a.shape == b.shape and equal(a, b)
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
        else type(a) is type(b)
        for a, b in zip(first, second, strict=True)
    )


def _others(inputs: Example) -> Example:
    """Inputs with other values in the same ranges: the same elements in the opposite order, floats half as large."""
    others = [value.flatten().flip(0).reshape(value.shape) for value in inputs]
    return inputs.replaced([other * 0.5 if other.is_floating_point() else other for other in others])


def _matters(module: nn.Module, inputs: Example, held: Held, change: Change, fresh: list[Any]) -> bool:
    """Whether the outputs are others with this one change on what the user left."""
    for put in (change.put, change.put_late):
        if put is None:
            continue
        held.restore()
        put()
        try:
            if not _alike(_outputs(module, inputs), fresh):
                return True
        except Exception:  # noqa: BLE001 - the model's own: it cannot be run so
            return True
        finally:
            held.restore()
    return False


def _places(module: nn.Module, inputs: Example, held: Held, changes: Sequence[Change]) -> dict[Change, Frame]:
    """The user's lines behind which the changes are there, by running the module line by line."""
    held.restore()
    waiting = list(changes)
    found: dict[Change, Frame] = {}
    last: list[Frame | None] = [None]

    def look() -> None:
        for change in [c for c in waiting if c.is_there()]:
            waiting.remove(change)
            if last[0] is not None:
                found[change] = last[0]

    def on_line(frame: FrameType, event: str, _argument: object) -> Callable[..., Any] | None:
        place = frame_at(frame.f_code, frame.f_lineno)
        if place is None:
            return None
        if event != "call":
            look()
        caller = frame.f_back
        if event == "return":
            last[0] = frame_at(caller.f_code, caller.f_lineno) if caller is not None else None
        elif event == "line":
            last[0] = place
        return on_line

    with _traced(on_line):
        _outputs(module, inputs)
    held.restore()
    return found


@contextmanager
def _traced(function: Callable[..., Any]) -> Iterator[None]:
    before = sys.gettrace()
    sys.settrace(function)
    try:
        yield
    finally:
        sys.settrace(before)
