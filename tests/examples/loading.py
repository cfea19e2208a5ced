# SPDX-License-Identifier: Apache-2.0
"""Loads the files of examples/ as modules. They import each other by bare names, and several are called model.py."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# Names that more than one example has.
SHARED_NAMES = ("model", "demo")


def load(path: str) -> ModuleType:
    """A file below examples/, with its own neighbours and nobody else's; what was imported before stays so."""
    place = EXAMPLES / path
    others = {name: sys.modules.pop(name) for name in SHARED_NAMES if name in sys.modules}
    search = list(sys.path)
    sys.path[:0] = [str(place.parent), str(EXAMPLES)]
    try:
        spec = importlib.util.spec_from_file_location(f"examples_{path.replace('/', '_')[:-3]}", place)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = search
        for name in SHARED_NAMES:
            sys.modules.pop(name, None)
        sys.modules.update(others)
    return module
