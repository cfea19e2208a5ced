# SPDX-License-Identifier: Apache-2.0
"""tinyet turns a PyTorch model into int8 firmware in plain C.

The public names below are loaded on first use, so that `import tinyet` stays fast and needs no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinyet.errors import TinyetError as TinyetError

__version__ = "0.1.0"

# Public name -> the module that defines it.
_PUBLIC = {
    "TinyetError": "tinyet.errors",
}

__all__ = ["TinyetError", "__version__"]


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
