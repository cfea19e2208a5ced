# SPDX-License-Identifier: Apache-2.0
"""Masks that are computed: their ranges end where the softmax behind the sum sees no more of them.

(1 - mask) * -1e9, added to scores of -5 ... 5, would have steps of four million. What softmax reads has been observed
as it is seen (`saturating`): from there the range of each term follows.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import torch
from torch import fx

from tinyet.fx.edit import get_constant
from tinyet.fx.log_filter import quiet
from tinyet.quantization.masks import PRODUCTS, SOFTMAX, adds, passes_on
from tinyet.quantization.qparam_sharing import Observers, extremes_of, inner_of, observer_of, range_of
from tinyet.quantization.saturation import SUM_FAR

with quiet():
    from torchao.quantization.pt2e.observer import MinMaxObserver

aten = torch.ops.aten


class _Settled(MinMaxObserver):  # type: ignore[misc]
    """An observer whose range is as it was set, whatever it is shown (constants, at conversion, once more)."""

    min_val: torch.Tensor
    max_val: torch.Tensor

    def forward(self, x_orig: torch.Tensor) -> torch.Tensor:
        return x_orig


def narrow_masks(module: fx.GraphModule, infinite: Container[str] = ()) -> int:
    """Narrow the range of every value that holds a mask and that only softmaxes see. module: prepared and calibrated,
    or trained. infinite: names of the observers' nodes that were shown infinities. Returns how many observers were
    replaced."""
    floors: dict[fx.Node, float] = {}
    for node in reversed(list(module.graph.nodes)):
        seen = [_floor(module, node, reader, floors) for reader in node.users]
        known = [floor for floor in seen if floor is not None]
        if known and len(known) == len(seen):
            floors[node] = min(known)
    observers = Observers(module)
    lowest: dict[torch.nn.Module, list[float | None]] = {}
    for node in module.graph.nodes:
        observer = observers.called_by(node)
        if observer is not None:
            lowest.setdefault(observer, []).append(floors.get(node))
    replaced = 0
    endless = {observers.called_by(node) for node in module.graph.nodes if node.name in infinite}
    for observer, found in lowest.items():
        known = [floor for floor in found if floor is not None]
        if len(known) < len(found):
            continue
        low, high = _seen(observer)
        if low < min(known) - SUM_FAR or (observer in endless and low > min(known)):
            observers.replace(observer, _spread_over(observer, min(known), high))
            replaced += 1
    return replaced


def _spread_over(observer: torch.nn.Module, low: float, high: float) -> torch.nn.Module:
    """An observer of the same type that has seen the range."""
    given: Any = inner_of(observer)
    narrower = _Settled(
        dtype=given.dtype, qscheme=given.qscheme, quant_min=given.quant_min, quant_max=given.quant_max
    )
    narrower.min_val, narrower.max_val = torch.tensor(low), torch.tensor(high)
    return narrower


def _floor(
    module: fx.GraphModule, node: fx.Node, reader: fx.Node, floors: dict[fx.Node, float]
) -> float | None:
    """The number below which all values of the node are one to the reader; None where it sees every difference."""
    if reader.target in SOFTMAX:
        observer = observer_of(module, node)
        return None if observer is None else range_of(observer)[1]
    floor = floors.get(reader)
    if floor is None or reader.op == "call_module":
        return floor
    if passes_on(reader, node):
        return floor
    others = [argument for argument in reader.args if argument is not node]
    if reader.kwargs or len(others) != 1:
        return None
    other = others[0]
    if adds(reader, node):
        bounds = _bounds(module, other)
        if bounds is None:
            return None
        return floor - bounds[1] if reader.target is aten.add.Tensor else floor + bounds[0]
    if reader.target in PRODUCTS and reader.args[0] is node:
        bounds = _bounds(module, other)
        if bounds is None or bounds[0] != bounds[1] or bounds[0] <= 0:
            return None
        return floor * bounds[0] if reader.target is aten.div.Tensor else floor / bounds[0]
    return None


def _bounds(module: fx.GraphModule, argument: object) -> tuple[float, float] | None:
    """The least and the greatest value of an operand: of a constant, or what its observer has seen; None where that is
    not known."""
    if isinstance(argument, (int, float)):
        return float(argument), float(argument)
    if not isinstance(argument, fx.Node):
        return None
    observer = observer_of(module, argument)
    constant = get_constant(module, argument.args[0] if observer is not None else argument)
    if constant is not None:
        return float(constant.min()), float(constant.max())
    if observer is None:
        return None
    return _seen(observer)


def _seen(observer: torch.nn.Module) -> tuple[float, float]:
    """The least and the greatest value that were seen. The range that integers would have is coarser where a mask is in
    it; it is taken where the observer does not tell, as one whose range is fixed."""
    extremes = extremes_of(observer)
    if extremes is not None:
        return float(extremes[0]), float(extremes[1])
    _, least, greatest = range_of(observer)
    return least, greatest
