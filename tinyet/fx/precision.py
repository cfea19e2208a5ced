# SPDX-License-Identifier: Apache-2.0
"""Models in other floats than float32: half, bfloat16, double. tinyet computes in float32, and says so."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.export import ExportedProgram

from tinyet.errors import ModelError
from tinyet.fx.edit import dtype_name

_EXACT = (torch.float16, torch.bfloat16)

_SAID: WeakKeyDictionary[ExportedProgram, tuple[str, ...]] = WeakKeyDictionary()


def in_float32(module: nn.Module) -> tuple[nn.Module, tuple[str, ...]]:
    """The module, or a copy of it with all its floats in float32 where it has others; and what to tell of that."""
    found = _others([*module.named_parameters(), *module.named_buffers()])
    if not found:
        return module, ()
    return copy.deepcopy(module).float(), (
        "the model's weights are "
        + " and ".join(f"{dtype_name(dtype)} ({', '.join(names)})" for dtype, names in found.items())
        + "; the firmware's are made of float32, "
        + ("which holds them exactly" if set(found) <= set(_EXACT) else "to which float64 is rounded"),
    )


def refuse_others(program: ExportedProgram) -> None:
    """Raise ModelError for an exported program whose inputs are other floats: its operators are fixed to them."""
    names = set(program.graph_signature.user_inputs)
    found = _others([(n.name, n.meta.get("val")) for n in program.graph.nodes if n.name in names])
    if found:
        raise ModelError(
            "the program was exported with inputs of "
            + " and ".join(f"{dtype_name(dtype)} ({', '.join(names)})" for dtype, names in found.items()),
            hint="export it in float32: torch.export.export(model.float(), (x.float(),)); float32 holds the values of "
            "float16 and bfloat16 exactly",
        )


def say(program: ExportedProgram, remarks: tuple[str, ...]) -> None:
    """Keep what is to be told of a captured program."""
    if remarks:
        _SAID[program] = remarks


def said_of(program: ExportedProgram) -> tuple[str, ...]:
    """The notes on a captured program."""
    return _SAID.get(program, ())


def _others(values: Iterable[tuple[str, object]]) -> dict[torch.dtype, list[str]]:
    """Names of floats that are no float32, by type; of each the first, and how many there are."""
    found: dict[torch.dtype, list[str]] = {}
    for name, value in values:
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype is not torch.float32:
            found.setdefault(value.dtype, []).append(name)
    return {d: [n[0], *([f"{len(n)} in all"] if len(n) > 1 else [])] for d, n in found.items()}
