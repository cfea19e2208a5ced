# SPDX-License-Identifier: Apache-2.0
"""tinyet turns a PyTorch model into int8 firmware in plain C.

The public names below are loaded on first use, so that `import tinyet` stays fast and needs no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinyet.boards import Board as Board
    from tinyet.boards import load_board as load_board
    from tinyet.compiler import compile as compile  # noqa: A004
    from tinyet.errors import TinyetError as TinyetError
    from tinyet.program import Program as Program
    from tinyet.program import load as load
    from tinyet.project import Project as Project
    from tinyet.project import generate as generate
    from tinyet.project import open_project as open_project
    from tinyet.validate import ValidationResult as ValidationResult

__version__ = "0.1.0"

# Public name -> the module that defines it.
_PUBLIC = {
    "Board": "tinyet.boards",
    "Program": "tinyet.program",
    "Project": "tinyet.project",
    "TinyetError": "tinyet.errors",
    "TinyetQuantizer": "tinyet.frontend.quantizer",  # the only one that needs torch
    "ValidationResult": "tinyet.validate",
    "compile": "tinyet.compiler",
    "generate": "tinyet.project",
    "load": "tinyet.program",
    "load_board": "tinyet.boards",
    "open_project": "tinyet.project",
}

__all__ = [
    "Board",
    "Program",
    "Project",
    "TinyetError",
    "TinyetQuantizer",
    "ValidationResult",
    "__version__",
    "compile",
    "generate",
    "load",
    "load_board",
    "open_project",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module (PEP 562)."""
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
