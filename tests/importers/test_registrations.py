# SPDX-License-Identifier: Apache-2.0
"""What is spared while torch captures a model: kernels that are registered anew, code that nobody calls."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest
import torch
from torch import fx, nn
from torch._subclasses import fake_impls

from tests.torch_helpers import Lambda
from tinyet.fx import decompose, lazy_code
from tinyet.fx.decompose import decomposition_table
from tinyet.fx.lazy_code import compiled_when_called
from tinyet.fx.registrations import Registrations

X = (torch.ones(2, 8),)


def exported(model: nn.Module) -> torch.export.ExportedProgram:
    return torch.export.export(model.eval(), X)


@pytest.fixture
def by_torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Grows by one for each decomposition whose kernels torch registers itself."""
    made: list[int] = []
    original = Registrations._made

    def counted(self: Registrations, composite: dict[object, object]) -> object:
        made.append(len(composite))
        return original(self, composite)  # type: ignore[arg-type]

    monkeypatch.setattr(Registrations, "_made", counted)
    monkeypatch.setattr(decompose, "_REGISTRATIONS", Registrations(decomposition_table))
    return made  # type: ignore[return-value]


def kernels() -> dict[object, object]:
    """Of all operators of torch's table, with their rules for tensors without values."""
    rules = fake_impls.op_implementations_dict
    return {op: (dict(op.py_kernels), rules.get(op)) for op in decomposition_table()}


def test_kept_registrations_are_torchs_and_leave_nothing(by_torch: list[int]) -> None:
    model = Lambda(lambda x: nn.functional.hardswish(x).softmax(-1).std(1) * x.tanh().logsumexp(0).sum())
    programs = [exported(model) for _ in range(4)]
    want = programs[0].run_decompositions(decomposition_table())
    decompose.decompose(programs[1])
    before = kernels()
    found = [decompose.decompose(program) for program in programs[1:] * 2]
    # The first of all takes away rules that torch had before.
    assert 1 <= len(by_torch) <= 2
    assert kernels() == before
    assert {str(each.graph) for each in found} == {str(want.graph)}


def test_operators_that_are_registered_later_are_decomposed(by_torch: list[int]) -> None:
    with torch.library._scoped_library("tinyet_late", "DEF") as library:
        decompose.decompose(exported(Lambda(lambda x: x.logsumexp(0))))
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
        core = decompose.decompose(exported(Lambda(torch.ops.tinyet_late.twice)))
        targets = [str(node.target) for node in core.graph.nodes if node.op == "call_function"]
    assert targets == ["aten.add.Tensor"]
    assert len(by_torch) >= 2


def test_code_is_compiled_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[fx.GraphModule] = []
    original = lazy_code._RECOMPILE

    def counted(module: fx.GraphModule) -> object:
        made.append(module)
        return original(module)

    monkeypatch.setattr(lazy_code, "_RECOMPILE", counted)
    with compiled_when_called():
        module = fx.symbolic_trace(nn.ReLU())
        for node in module.graph.find_nodes(op="call_function", target=torch.nn.functional.relu):
            node.target, node.kwargs = torch.tanh, {}
        module.recompile()
        copied = fx.GraphModule(module, module.graph)
        assert not made
        assert torch.equal(module(X[0]), X[0].tanh())
        assert made == [module]
    assert "tanh" in copied.code
    assert made == [module, copied]
    with compiled_when_called():
        copied.recompile()
    assert list(inspect.signature(copied.forward).parameters) == ["input"]
    with compiled_when_called():
        copied.recompile()
    copied.forward = lambda x: x - 1
    assert torch.equal(copied(X[0]), X[0] - 1)
