# SPDX-License-Identifier: Apache-2.0
"""Old names of modules that documents of 0.1 told users to import: each still leads to its module."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "tinyet.cpus": "tinyet.boards.cpus",
    "tinyet.float32": "tinyet.numerics.float32",
    "tinyet.frontend": "tinyet.quantization",
    "tinyet.frontend.capture": "tinyet.fx.capture",
    "tinyet.frontend.quantize": "tinyet.quantization.quantize",
    "tinyet.frontend.sensitivity": "tinyet.quantization.sensitivity",
    "tinyet.frontend.training": "tinyet.quantization.training",
}


class _Finder(MetaPathFinder, Loader):
    """Finds the old names."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the protocol's
        target: ModuleType | None = None,  # noqa: ARG002 - the protocol's
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        # The import system takes what is in sys.modules afterwards: the module itself, not a copy of it.
        sys.modules[module.__name__] = importlib.import_module(MOVED[module.__name__])


def install() -> None:
    """Make the old names importable."""
    # First: below tinyet.frontend, which is tinyet.quantization now, the usual finder would load its files again.
    sys.meta_path.insert(0, _Finder())
