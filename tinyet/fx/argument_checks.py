# SPDX-License-Identifier: Apache-2.0
"""Whether what a user gives as a model is one; if not, what it is and what to give instead."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from torch import nn
from torch.export import ExportedProgram

from tinyet.errors import UsageError
from tinyet.errors.arguments import described
from tinyet.files.sniffing import sniffed_error

_TAKES = "a model is an nn.Module, or what torch.export.export made of one"


def check_model(model: object) -> None:
    """Raise UsageError unless it is an nn.Module of Python, or an ExportedProgram."""
    if isinstance(model, torch.jit.ScriptModule):
        raise UsageError(
            "the model is TorchScript: its Python, which torch.export captures, is gone",
            hint="give the module that was scripted or traced; its class takes the weights back:\n"
            "net.load_state_dict(scripted.state_dict())",
        )
    if not isinstance(model, (nn.Module, ExportedProgram)):
        raise _no_model(model)


def _no_model(given: object) -> UsageError:
    if isinstance(given, (str, os.PathLike)):
        return _of_file(Path(given))
    if isinstance(given, type) and issubclass(given, nn.Module):
        what, hint = f"{described(given)} is no model yet", f"make one: {given.__name__}(…)"
    elif isinstance(given, dict) and given and all(isinstance(v, torch.Tensor) for v in given.values()):
        first = [f"{name} {tuple(value.shape)}" for name, value in list(given.items())[:3]]
        held = ", ".join([*first, *(["…"] if len(given) > 3 else [])])
        what = f"a state dict ({len(given)} tensors: {held}) is weights without layers"
        hint = "make the module whose weights these are, and load them:\nnet = Net()\nnet.load_state_dict(state_dict)"
    elif isinstance(given, dict):
        keys = ", ".join(map(repr, list(given)[:5]))
        what, hint = (
            f"a checkpoint is no model: it holds {keys}",
            "make the module, and load its entry of weights",
        )
    elif isinstance(given, (tuple, list)) and any(isinstance(value, nn.Module) for value in given):
        what, hint = (
            f"the model is {described(given)}",
            "give the module and its inputs as arguments of their own",
        )
    elif given is None:
        what, hint = "the model is None", f"{_TAKES}: does the function that makes it return it?"
    elif callable(given) and not isinstance(given, type):
        what = f"{described(given)} is no module"
        hint = "give what it returns, if it makes the model; if it computes, make it the forward() of an nn.Module"
    # Not by its class: what imports a model lies below what a Program is, and doesn't know it.
    elif type(given).__module__.startswith("tinyet.program"):
        what, hint = (
            "a Program is compiled already",
            "tinyet.generate(program, board, out) makes a project of it",
        )
    else:
        what, hint = f"the model is {described(given)}", _TAKES
    return UsageError(what, hint=hint)


def _of_file(path: Path) -> UsageError:
    """The answer to the path of a file in place of a model."""
    if not path.exists():
        return UsageError(f"the model is the path of a file, and there is no file {path}", hint=_TAKES)
    known = {
        ".tet": "it is compiled already: program = tinyet.load(path)",
        ".py": "import it, and give what its model() returns; on the command line: tinyet compile FILE.py -o OUT.tet",
        ".pt2": "load it: tinyet.compile(torch.export.load(path)), if you trust its author; without running anything "
        "that it brings: tinyet compile FILE.pt2 -o OUT.tet",
    }
    hint = known.get(path.suffix)
    if hint is None and path.is_file():
        return sniffed_error(path)
    return UsageError("the model is the path of a file, not a module", str(path), hint or _TAKES)
