# SPDX-License-Identifier: Apache-2.0
"""The quantization of recurrent layers, as in LiteRT's integer LSTM, and TFLM's in int16: the state like the output,
the weights with a scale for each gate, and the cell in int16 with a scale that is a power of two."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from torch import fx

from tinyet.fx.edit import add_call
from tinyet.fx.log_filter import quiet
from tinyet.fx.recurrent_ops import C_N, CELLS, GRU, H_N, LSTM, RECURRENT, RNN, Y
from tinyet.ops.lstm import CELL_POWERS
from tinyet.quantization.annotate import SAME_AS_INPUT
from tinyet.quantization.config import QuantConfig

with quiet():
    from torchao.quantization.pt2e.fake_quantize import FakeQuantize, FakeQuantizeBase
    from torchao.quantization.pt2e.observer import MinMaxObserver, MovingAverageMinMaxObserver
    from torchao.quantization.pt2e.quantizer.quantizer import (
        QuantizationSpec,
        QuantizationSpecBase,
        SharedQuantizationSpec,
    )

GATES: dict[object, int] = {LSTM: 4, GRU: 3, RNN: 1}

_H = 1
_C = 2
"""Arguments that are the state and the cell before the first step."""

_W_HR = 6
"""The argument that is the projection of an LSTM."""


class _PowerOfTwo:
    """Mixed into an observer: its scale is the least power of two that a cell may have and that clips nothing seen."""

    def calculate_qparams(self) -> tuple[torch.Tensor, torch.Tensor]:
        largest = torch.maximum(self.min_val.abs(), self.max_val.abs())  # type: ignore[attr-defined]
        mantissa, exponent = torch.frexp(largest.double() / 32767)
        power = int(exponent) - int(mantissa == 0.5) if bool(mantissa > 0) else CELL_POWERS[0]
        scale = 2.0 ** min(max(power, CELL_POWERS[0]), CELL_POWERS[-1])
        return torch.tensor([scale]), torch.tensor([0])


class _PerGate:
    """Mixed into an observer of weights, one scale a channel: one scale for all rows of a gate."""

    def __init__(self, *, gates: int, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.gates = gates
        self._rows = 1

    def forward(self, x_orig: torch.Tensor) -> torch.Tensor:
        self._rows = len(x_orig) // self.gates
        super().forward(x_orig.reshape(self.gates, -1))  # type: ignore[misc]
        return x_orig

    def calculate_qparams(self) -> tuple[torch.Tensor, torch.Tensor]:
        scale, zero_point = super().calculate_qparams()  # type: ignore[misc]
        return scale.repeat_interleave(self._rows), zero_point.repeat_interleave(self._rows)


class _State:
    """Mixed into an observer of a state: zeros before the first step tell nothing, unless there is nothing else."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._saw_values = False

    def forward(self, x_orig: torch.Tensor) -> torch.Tensor:
        values = bool(x_orig.detach().any())
        if values and not self._saw_values and isinstance(self, MovingAverageMinMaxObserver):
            self.reset_min_max_vals()  # of zeros, from which it would move slowly
        if values or not self._saw_values:
            super().forward(x_orig)  # type: ignore[misc]
        self._saw_values = self._saw_values or values
        return x_orig


class CellObserver(_State, _PowerOfTwo, MinMaxObserver):  # type: ignore[misc]
    """Of all that calibration, or training, shows: 16 bits have room for it."""


def is_cell(observer: torch.nn.Module) -> bool:
    """Whether it is a cell's, whose scale has a rule of its own."""
    return isinstance(getattr(observer, "activation_post_process", observer), CellObserver)


@cache
def _class_of(mixin: type, observer: type) -> Any:
    return type(f"{mixin.__name__.strip('_')}{observer.__name__}", (mixin, observer), {})


def _mixed_into(mixin: type, factory: Any, **more: Any) -> Any:
    """The factory of such an observer, or of a fake quantizer with one; as torchao's specs hold it: a class, or what
    its `with_args` gave. more: arguments of the mixin."""
    partial = getattr(factory, "p", None)
    kind: Any = partial.func if isinstance(partial, functools.partial) else factory
    given = partial.keywords if isinstance(partial, functools.partial) else {}
    if issubclass(kind, FakeQuantizeBase):
        return kind.with_args(**{**given, "observer": _mixed_into(mixin, given["observer"], **more)})
    return _class_of(mixin, kind).with_args(**given, **more)


def has_int16_form(node: fx.Node) -> bool:
    """Whether a layer can have int16 values: not with a projection, which TFLM does not have."""
    return node.target is not LSTM or node.args[_W_HR] is None


def _state_spec(config: QuantConfig) -> QuantizationSpec:
    spec = config.activation
    return replace(spec, observer_or_fake_quant_ctr=_mixed_into(_State, spec.observer_or_fake_quant_ctr))


def weight_spec(node: fx.Node, argument: int, config: QuantConfig) -> QuantizationSpec:
    """Of a matrix that the layer multiplies by: int8, also where others are narrower. A projection has one scale."""
    gates = 1 if node.target is LSTM and argument == _W_HR else GATES[node.target]
    spec = config.weight
    factory = _mixed_into(_PerGate, spec.observer_or_fake_quant_ctr, gates=gates)
    return replace(spec, observer_or_fake_quant_ctr=factory, ch_axis=0, quant_min=-127, quant_max=127)


@dataclass(frozen=True)
class CellSpec(QuantizationSpec):  # type: ignore[misc]
    """Of the LSTM's cell; what moves it keeps it so."""


def cell_spec(config: QuantConfig) -> CellSpec:
    """Of the LSTM's cell."""
    observer: Any = CellObserver
    if config.trained:
        observer = FakeQuantize.with_args(observer=CellObserver)
    return CellSpec(torch.int16, observer, -32768, 32767, torch.per_tensor_symmetric)


def matrices(node: fx.Node) -> dict[int, fx.Node]:
    """The constant weights by the number of the argument."""
    first = _C + 1 if node.target is LSTM else _C
    numbers = (first, first + 1, *([_W_HR] if node.target is LSTM else []))
    return {n: w for n in numbers if isinstance(w := node.args[n], fx.Node) and w.op == "get_attr"}


def specs(
    node: fx.Node, x: QuantizationSpecBase, config: QuantConfig
) -> tuple[dict[fx.Node, QuantizationSpecBase], dict[fx.Node, QuantizationSpecBase]]:
    """The specs of the layer's operands, and of its results. x: of the input."""
    source, h = node.args[0], node.args[_H]
    assert isinstance(source, fx.Node)
    assert isinstance(h, fx.Node)
    inputs: dict[fx.Node, QuantizationSpecBase] = {source: x, h: _state_spec(config)}
    state = SharedQuantizationSpec((h, node))
    shared: dict[int, QuantizationSpecBase] = {Y: state, H_N: state}
    if node.target is LSTM:
        c = node.args[_C]
        assert isinstance(c, fx.Node)
        inputs[c] = cell_spec(config)
        shared[C_N] = shared[CELLS] = SharedQuantizationSpec((c, node))
    for number, weight in matrices(node).items():
        inputs[weight] = weight_spec(node, number, config)
    return inputs, {result: shared[int(result.args[1])] for result in node.users}  # type: ignore[arg-type]


def ways_to_cells(graph: fx.Graph) -> set[fx.Node]:
    """Operators that only move values to the initial cells."""
    found: set[fx.Node] = set()
    for node in reversed(graph.nodes):
        if node.target in SAME_AS_INPUT and node.users:
            ends = [user in found or (user.target is LSTM and user.args[_C] is node) for user in node.users]
            if all(ends):
                found.add(node)
    return found


def show_all_steps(module: fx.GraphModule) -> None:
    """Give each recurrent layer the results that calibration wants to see, whoever else reads them: the state and the
    cell behind every step."""
    for node in module.graph.nodes:
        if node.target not in RECURRENT:
            continue
        there = {user.args[1] for user in node.users if user.target is operator.getitem}
        for index in (Y, CELLS) if node.target is LSTM else (Y,):
            if index not in there:
                add_call(module.graph, node.next, operator.getitem, (node, index), node)
