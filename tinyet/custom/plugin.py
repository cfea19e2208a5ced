# SPDX-License-Identifier: Apache-2.0
"""Python files that register operators or delegates."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from tinyet.errors import UsageError


def load_plugin(path: str | Path) -> ModuleType:
    """Import a Python file that registers operators (or delegates); a second time it is not run again.

    Raises UsageError when it cannot be read or raises.
    """
    file = Path(path).resolve()
    # Under its own name, so that a model's `import` of the same file finds it and does not register all again;
    # under another where a module of that name is loaded already.
    for name in (file.stem, f"tinyet_plugin_{file.stem}"):
        known = sys.modules.get(name)
        if known is None:
            break
        if getattr(known, "__file__", None) == str(file):
            return known
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise UsageError(
            f"{path} is no Python file", hint="--plugin FILE.py, a file that calls tinyet.custom_op"
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except UsageError:
        del sys.modules[name]
        raise
    except Exception as error:
        del sys.modules[name]
        raise UsageError(f"{path} raises {type(error).__name__}: {error}", str(path)) from error
    return module
