# SPDX-License-Identifier: Apache-2.0
"""The models below a folder, without running any of them."""

from __future__ import annotations

import ast
from pathlib import Path

from tinyet.build.tree import is_project
from tinyet.errors import UsageError
from tinyet.files.reading import read_bounded

_ENDINGS = (".pt2", ".tflite", ".onnx", ".tet")
_MOST_BYTES = 1 << 20
"""Of a Python file that is looked into."""
MOST_MODELS = 1000


def models_below(folder: Path) -> list[Path]:
    """Files that `tinyet.open` takes, in the order of their names: by their endings, and Python files that define
    `model()`, which are read and not run. Hidden folders and generated projects are left out.

    Raises UsageError where there is none, or more than MOST_MODELS."""
    found: list[Path] = []
    folders = [folder]
    while folders:
        here = folders.pop()
        for path in sorted(here.iterdir()):
            if path.name.startswith(".") or path.is_symlink():
                continue
            if path.is_dir():
                folders += [] if is_project(path) else [path]
            elif path.suffix in _ENDINGS or (path.suffix == ".py" and _gives_model(path)):
                found.append(path)
    if not found:
        hint = f"a folder with {', '.join(_ENDINGS)} files, or .py files that define model()"
        raise UsageError("there is no model below this folder", str(folder), hint)
    if len(found) > MOST_MODELS:
        raise UsageError(f"{len(found)} models, at most {MOST_MODELS}", str(folder), "name a smaller folder")
    return sorted(found)


def _gives_model(path: Path) -> bool:
    """Whether a Python file defines `model` at its top level; False for what is no Python."""
    try:
        parsed = ast.parse(read_bounded(path, _MOST_BYTES))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(isinstance(node, ast.FunctionDef) and node.name == "model" for node in parsed.body)
