# SPDX-License-Identifier: Apache-2.0
"""The commands, each imported when it is asked for: `tinyet --help` and one command need not wait for all others."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import typer
import typer.core
import typer.main

# In the order of `tinyet --help`: a first look, from the model to the project, on to the proof, the surroundings.
_COMMANDS = {
    "check": "check",
    "generate": "generate",
    "compile": "compile_",
    "quantize": "quantize",
    "export": "export",
    "build": "build",
    "validate": "validate",
    "analyze": "analyze",
    "audit": "audit",
    "compare": "compare",
    "boards": "boards",
    "delegates": "delegates",
    "doctor": "doctor",
}
"""The function of each command, in the module of the command's name."""


class _Loaded(MutableMapping[str, Any]):
    """typer's commands by name, made when they are looked up."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            function = _COMMANDS[name]
            module = importlib.import_module(f"tinyet.cli.{name}")
            alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
            alone.command(name)(getattr(module, function))
            self._made[name] = typer.main.get_command(alone)
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


def summary(name: str) -> str:
    """The first line of what a command says of itself, read from its source: importing all of them takes a second."""
    found = importlib.util.find_spec(f"tinyet.cli.{name}")
    assert found is not None
    assert found.origin is not None
    for node in ast.parse(Path(found.origin).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == _COMMANDS[name]:
            return (ast.get_docstring(node) or "").partition("\n")[0]
    raise AssertionError(f"{name}: no function {_COMMANDS[name]}")


class Commands(typer.core.TyperGroup):
    """A group whose commands are imported one by one."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = _Loaded()

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - typer's signature
        """Write name and summary of each."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary(name)) for name in _COMMANDS])
