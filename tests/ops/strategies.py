# SPDX-License-Identifier: Apache-2.0
"""Where each operator's strategy is: a function that draws whole nodes with their inputs."""

from __future__ import annotations

import importlib
from typing import Any

from hypothesis import strategies as st

from tests.ops.cases import Case
from tinyet import ops

# Operators that share a test file with their kin: the file, and the strategy in it.
SHARED = {
    "amax": ("test_reduce", "reduce_nodes"),
    "amin": ("test_reduce", "reduce_nodes"),
    "mean": ("test_reduce", "reduce_nodes"),
    "sum": ("test_reduce", "reduce_nodes"),
    "copy": ("test_reshape", "copy_nodes"),
}


def module_of(name: str) -> Any:
    """The test module of an operator. Raises ModuleNotFoundError when it has none."""
    file, _ = SHARED.get(name, (f"test_{name}", ""))
    return importlib.import_module(f"tests.ops.{file}")


def strategy_of(name: str) -> st.SearchStrategy[Case]:
    """Nodes of one operator. Raises AttributeError when its test module has no `<op>_nodes`."""
    _, function = SHARED.get(name, ("", f"{name}_nodes"))
    draw: Any = getattr(module_of(name), function)
    if function == "reduce_nodes":
        op = ops.by_name(name)
        assert op is not None
        shared: st.SearchStrategy[Case] = draw((op.attrs,))
        return shared
    own: st.SearchStrategy[Case] = draw()
    return own
