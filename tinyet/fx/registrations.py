# SPDX-License-Identifier: Apache-2.0
"""What torch registers anew with its dispatcher for each decomposition: made once, kept, and put there at once.

For one decomposition torch lists all composite operators of each of its namespaces, sorts them by its table, and gives
each of them twenty-two kernels, which it takes away behind it: of a small model that is more than half of the time that
the decomposition takes. All of it is made here by torch's own functions, and only as long as the dispatcher and the
operators are as they were when it was made; a torch without these functions works as it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._C import DispatchKey
from torch._export import utils
from torch._ops import OperatorBase
from torch._subclasses import fake_impls
from torch.export import exported_program

Table = dict[Any, Callable[..., Any]]
"""What operators are decomposed by."""

_LIST = getattr(utils, "_materialize_cpp_cia_ops", None)
_SORT = getattr(exported_program, "_split_decomp_table_to_cia_and_python_decomp", None)
_OVERRIDE = getattr(exported_program, "_override_composite_implicit_decomp", None)
_RULES = getattr(fake_impls, "op_implementations_dict", None)


@contextmanager
def _listed_once() -> Iterator[None]:
    """torch makes a Python object of every composite operator for each of its 33 namespaces, twice. None is registered
    meanwhile, so that once will do."""
    assert _LIST is not None
    _LIST()
    utils._materialize_cpp_cia_ops = lambda: None
    try:
        yield
    finally:
        utils._materialize_cpp_cia_ops = _LIST


@contextmanager
def _noted_quickly() -> Iterator[None]:
    """torch notes eleven thousand kernels, and builds the types of two annotations for each: more than half of the time
    that noting takes. Here are none."""
    original = OperatorBase.py_impl

    def py_impl(self: OperatorBase, key: Any) -> Any:
        if type(key) is not DispatchKey or key == DispatchKey.Python or key in self.py_kernels:
            return original(self, key)

        def note(kernel: Any) -> Any:
            self.py_kernels[key] = kernel
            self._dispatch_cache.clear()
            return kernel

        return note

    OperatorBase.py_impl = py_impl  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        OperatorBase.py_impl = original  # type: ignore[method-assign]


@dataclass(frozen=True)
class _Kernels:
    """An operator's kernels, and its rule for tensors without values, or None."""

    kernels: Mapping[Any, Any]
    rule: object


def _now(operators: Mapping[Any, Any]) -> dict[Any, _Kernels]:
    assert _RULES is not None
    return {op: _Kernels(op.py_kernels.copy(), _RULES.get(op)) for op in operators}


@dataclass
class Registrations:
    """Of one table. make: makes it, of torch's functions.

    registered: the dispatcher's composite operators for which the rest was made. composite, others: the table, sorted
    as torch wants it. outside, inside: the composite operators' kernels before torch has given them its own, and with
    them.
    """

    make: Callable[[], Table]
    registered: list[str] = field(default_factory=list)
    table: Table = field(default_factory=dict)
    composite: Table = field(default_factory=dict)
    others: Table = field(default_factory=dict)
    outside: dict[Any, _Kernels] = field(default_factory=dict)
    inside: dict[Any, _Kernels] = field(default_factory=dict)

    def known(self) -> Table:
        """The table, perhaps without composite operators that were registered since it was made. (torch takes as long
        to list what is registered as to look through a small program.)"""
        if not self.table:
            with self.within() as made:
                self.table = made
        return self.table

    @contextmanager
    def within(self) -> Iterator[Table]:
        """The table; decompositions by it take what is kept."""
        if _LIST is None or _SORT is None or _OVERRIDE is None or _RULES is None:
            yield self.make()
            return
        self._renew()
        changed: Any = exported_program
        changed._split_decomp_table_to_cia_and_python_decomp = self._sorted
        changed._override_composite_implicit_decomp = self._overridden
        try:
            yield self.table
        finally:
            changed._split_decomp_table_to_cia_and_python_decomp = _SORT
            changed._override_composite_implicit_decomp = _OVERRIDE

    def _renew(self) -> None:
        """Make all anew where operators were registered since."""
        assert _SORT is not None
        registered = torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")
        if registered != self.registered:
            with _listed_once():
                self.table = dict(self.make())
                self.composite, self.others = _SORT(dict(self.table))
            self.outside = {}
            self.registered = registered

    def _sorted(self, table: Table) -> tuple[Table, Table]:
        """As torch's function of the same place."""
        assert _SORT is not None
        if table != self.table:
            sorted_: tuple[Table, Table] = _SORT(table)
            return sorted_
        return self.composite, dict(self.others)

    def _overridden(self, composite: Table) -> AbstractContextManager[None]:
        """As torch's function of the same place: within, the operators have its kernels."""
        if composite is self.composite and _now(composite) == self.outside:
            return self._put_back()
        return self._made(composite)

    @contextmanager
    def _made(self, composite: Table) -> Iterator[None]:
        """By torch; what it has made is kept for the next time."""
        assert _OVERRIDE is not None
        before = _now(composite)
        with _noted_quickly(), _OVERRIDE(composite):
            if composite is self.composite:
                self.outside, self.inside = before, _now(composite)
            yield

    @contextmanager
    def _put_back(self) -> Iterator[None]:
        """What torch has made before."""
        self._set(self.inside)
        try:
            yield
        finally:
            self._set(self.outside)

    @staticmethod
    def _set(states: Mapping[Any, _Kernels]) -> None:
        assert _RULES is not None
        for op, state in states.items():
            op.py_kernels.clear()
            op.py_kernels.update(state.kernels)
            op._dispatch_cache.clear()
            if state.rule is None:
                _RULES.pop(op, None)
            else:
                _RULES[op] = state.rule
