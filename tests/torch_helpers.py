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

import pytest
import torch
from torch import fx, nn
from torch.export import ExportedProgram

torch.set_num_threads(1)  # networks this small only wait for more

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
    with torch.no_grad():
        return program.module(check_guards=False)(*inputs)


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
