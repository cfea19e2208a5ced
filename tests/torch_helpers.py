# SPDX-License-Identifier: Apache-2.0
"""What the tests of importing and quantizing share: reading captured programs, and the benchmark models."""

from __future__ import annotations

import importlib.util
import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import fx, nn
from torch.export import ExportedProgram

from tinyet.fx.lazy_code import compiled_when_called
from tinyet.fx.registrations import Registrations
from tinyet.ir import Array, Graph
from tinyet.ops.quantize import Quantize
from tinyet.reference import evaluate

torch.set_num_threads(1)  # networks this small only wait for more

FLOAT32_STEPS = 0.02
"""What float32 may be off at a tie, in steps of a quantized value: a sum of k products errs by at most (k + 4) 2**-24
of the sum of their magnitudes (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1; 4 for scale, bias
and division), and k times that sum is at most 300 000 steps in the networks here."""

QUANTIZE = "quantize_per_tensor"


def ops(program: ExportedProgram) -> list[str]:
    """The operators in order, without aten and overload: conv2d, relu, …"""
    return [
        str(n.target).split(".")[-2]
        for n in program.graph.nodes
        if n.op == "call_function" and "." in str(n.target)
    ]


def find(program: ExportedProgram, name: str) -> list[fx.Node]:
    """All calls of an operator."""
    return [
        n for n in program.graph.nodes if n.op == "call_function" and str(n.target).split(".")[-2:][0] == name
    ]


def run(program: ExportedProgram, *inputs: torch.Tensor) -> Any:
    with torch.no_grad(), compiled_when_called():
        return program.module(check_guards=False)(*inputs)


RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell")


def unrolled(model: nn.Module, inputs: Sequence[torch.Tensor]) -> ExportedProgram:
    """The module's program with each recurrent layer taken apart step by step, as torch does it."""
    with torch.no_grad():
        program = torch.export.export(model, tuple(inputs))
        with _UNROLLING.within() as table:
            core: ExportedProgram = program.run_decompositions(table)
    return core


def _unrolling() -> dict[Any, Any]:
    """torch's decompositions of recurrent layers alone."""
    names = {f"aten::{name}" for name in RECURRENT}
    return {
        op: how for op, how in torch.export.default_decompositions().items()
        if getattr(getattr(op, "_schema", None), "name", "") in names
    }  # fmt: skip


_UNROLLING = Registrations(_unrolling)


def pieces(data: torch.Tensor, size: int = 1) -> list[torch.Tensor]:
    """The data in batches of `size`."""
    return [data[start : start + size] for start in range(0, len(data), size)]


def output_params(node: fx.Node) -> tuple[float, int] | None:
    """(scale, zero point) that the node's value is quantized with right behind it; None when it is not."""
    for user in node.users:
        if QUANTIZE in str(user.target):
            return user.args[1], user.args[2]  # type: ignore[return-value]
    return None


def input_params(node: fx.Node, index: int = 0) -> tuple[float, int] | None:
    """(scale, zero point) of the dequantize in front of the node's tensor input; None when that is float."""
    sources: Sequence[Any] = list(node.all_input_nodes)
    source = sources[index]
    return (source.args[1], source.args[2]) if "dequantize_per_tensor" in str(source.target) else None


def line_of(function: Callable[..., object], text: str) -> int:
    """The line number in its file at which `text` stands inside the function or class."""
    lines, start = inspect.getsourcelines(function)
    return start + next(i for i, line in enumerate(lines) if text in line)


class Lambda(nn.Module):
    """A module that computes a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


def mlperf_models() -> ModuleType:
    """models.py with the trained benchmark networks, or a skip that says where it was looked for."""
    default = Path(__file__).resolve().parents[2] / "shared" / "mlperf_tiny"
    path = Path(os.environ.get("TINYET_MLPERF_DIR", default)) / "models.py"
    if not path.is_file():
        pytest.skip(f"needs the trained MLPerf Tiny networks: no {path} (set TINYET_MLPERF_DIR)")
    spec = importlib.util.spec_from_file_location("mlperf_tiny_models", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _Follow(fx.Interpreter):
    """Computes a quantized program in float64, and compares at each quantize with the integers that a graph has there,
    with which it then goes on: a tie that is rounded the other way is seen where it happens and is not carried on."""

    def __init__(self, program: ExportedProgram, integers: Sequence[Array]) -> None:
        super().__init__(program.module(check_guards=False))
        self._integers = iter(integers)
        self.excess = 0.0

    @property
    def finished(self) -> bool:
        return next(self._integers, None) is None

    def fetch_attr(self, target: str) -> Any:
        value = super().fetch_attr(target)
        return value.double() if value.is_floating_point() else value

    def run_node(self, n: fx.Node) -> Any:
        name = str(n.target)
        if "dequantize" in name:
            source, scale, zero_point, *rest = self.fetch_args_kwargs_from_env(n)[0]
            shape = [1] * source.ndim
            if "per_channel" in name:
                shape[rest[0]] = -1
            scale = torch.as_tensor(scale, dtype=torch.float64).reshape(shape)
            return (source.double() - torch.as_tensor(zero_point).reshape(shape)) * scale
        if QUANTIZE not in name:
            return super().run_node(n)
        x, scale, zero_point, low, high = self.fetch_args_kwargs_from_env(n)[0][:5]
        assert x.dtype is torch.float64
        exact = (x / scale + zero_point).clamp(low, high)
        found = torch.from_numpy(next(self._integers))
        assert found.shape == exact.shape
        self.excess = max(self.excess, float((found.double() - exact).abs().max()) - 0.5)
        return found


def rounding_excess(program: ExportedProgram, graph: Graph, *inputs: torch.Tensor) -> float:
    """How much more than half a step an integer in the graph is away from what the quantized program it was imported
    from computes there, in exact numbers and from the same integers. In steps, of all values the worst; 0 or less when
    every value is rounded right, and the error of float32 arithmetic where one lies next to a tie."""
    values = evaluate(graph, [np.asarray(x) for x in inputs])
    integers = [values[node.output] for node in graph.nodes if isinstance(node.attrs, Quantize)]
    follow = _Follow(program, integers)
    with torch.no_grad():
        found = follow.run(*(x.double() if x.is_floating_point() else x for x in inputs))
    assert follow.finished, "the graph quantizes more values than the program"
    results = [found] if isinstance(found, torch.Tensor) else found
    for result, tensor in zip(results, graph.outputs, strict=True):
        np.testing.assert_allclose(np.asarray(values[tensor], np.float64), result.numpy(), rtol=1e-6)
    return follow.excess
