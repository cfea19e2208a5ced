# SPDX-License-Identifier: Apache-2.0
"""Python code of torch's graphs, written and compiled when it is asked for.

torch does both at each change of a graph module: forty times while a model is captured and quantized, nine tenths of
them for code that nobody calls, since graphs are interpreted.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch.fx import GraphModule
from torch.fx.graph import _PyTreeCodeGen

_RECOMPILE = GraphModule.recompile


class _Later:
    """Stands for what `recompile` gives a module's class, each module having its own; asked for, it recompiles."""

    def __init__(self, module: GraphModule, name: str) -> None:
        self.module = weakref.ref(module)
        self.name = name

    def __get__(self, instance: GraphModule | None, owner: type[GraphModule]) -> Any:
        _compile(self.module())
        return getattr(owner if instance is None else instance, self.name)

    def __set__(self, instance: GraphModule, value: object) -> None:
        delattr(type(instance), self.name)
        setattr(instance, self.name, value)


_MADE = ("forward", "_code", "_lineno_map", "_prologue_start")


def _compile(module: GraphModule | None) -> None:
    assert module is not None
    kind = type(module)
    for name in _MADE:
        if isinstance(vars(kind).get(name), _Later):
            delattr(kind, name)
    _RECOMPILE(module)


def _recompile_later(module: GraphModule) -> Any:
    codegen = module._graph._codegen
    if isinstance(codegen, _PyTreeCodeGen):
        module._in_spec = codegen.pytree_info.in_spec
        module._out_spec = codegen.pytree_info.out_spec
    for name in _MADE:
        module.__dict__.pop(name, None)
        setattr(type(module), name, _Later(module, name))
    module._recompile_submodules()


@contextmanager
def compiled_when_called() -> Iterator[None]:
    """Within, `recompile` of a graph module notes only that there is something to do."""
    before = GraphModule.recompile
    GraphModule.recompile = _recompile_later  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        GraphModule.recompile = before  # type: ignore[method-assign]
