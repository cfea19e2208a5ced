# SPDX-License-Identifier: Apache-2.0
"""Parameters that one observer alone cannot choose, because others must fit them: of values that were always zero,
and of weights beside a large bias. Decided at last, when all else is known.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import fx

from tinyet.fx.edit import get_constant
from tinyet.fx.log_filter import quiet
from tinyet.numerics import SUM_BITS_64
from tinyet.quantization import annotate as rules
from tinyet.quantization.observers import WeightPerChannelObserver
from tinyet.quantization.qparam_sharing import Observers, extremes_of, inner_of, observer_of
from tinyet.quantization.recurrent import is_cell

with quiet():
    from torchao.quantization.pt2e.observer import FixedQParamsObserver

_BIAS_BITS = {torch.int8: 30, torch.int16: SUM_BITS_64 - 2}
"""By the type of the activations, of a bias: half of what a sum holds, so that products and a correction find room."""


def settle(module: fx.GraphModule) -> None:
    """Both. module: prepared and calibrated, or trained; it is changed."""
    scale_zeros(module)
    fit_biases(module)


def scale_zeros(module: fx.GraphModule) -> None:
    """Give what was always zero the scale of the nearest value that was not, first of those that are computed from it.

    Its own would be the smallest there is, which no multiplier reaches from its inputs. A much larger one would cost
    those that it is added to their precision.
    """
    observers = Observers(module)
    for node in list(module.graph.nodes):
        own = observers.called_by(node)
        if own is None or not _is_zero(own) or observers.is_weight(node) or is_cell(own):
            continue
        others = (o for n in _nearest(node) if (o := observers.called_by(n)) is not None)
        live = next((o for o in others if o is not own and not _is_zero(o) and o.dtype is own.dtype), None)
        scale = 1.0 if live is None else float(live.calculate_qparams()[0])  # type: ignore[operator]
        zeros = FixedQParamsObserver(scale, 0, own.dtype, quant_min=own.quant_min, quant_max=own.quant_max)
        observers.replace(own, zeros)


def _is_zero(observer: torch.nn.Module) -> bool:
    """Whether a tensor's observer saw zeros only."""
    extremes = extremes_of(observer)
    if extremes is None or extremes[0].numel() != 1:
        return False
    low, high = extremes
    return float(low) == float(high) == 0 and getattr(inner_of(observer), "known", None) is None


def _nearest(node: fx.Node) -> Iterator[fx.Node]:
    """All nodes behind this one, then those before it, the nearest first."""
    for step in (lambda n: list(n.users), lambda n: n.all_input_nodes):
        seen, front = {node}, [node]
        while front:
            front = [n for n in dict.fromkeys(m for n in front for m in step(n)) if n not in seen]
            seen.update(front)
            yield from front


def fit_biases(module: fx.GraphModule) -> None:
    """Make the weights' scales large enough for the biases to fit into the sums, which have the input's scale times the
    weights'. What the weights of a channel lose by it, is far below a step of an output that holds its bias."""
    for node in module.graph.nodes:
        bias = node.args[2] if node.target in rules.WEIGHTED and len(node.args) > 2 else None
        if not isinstance(bias, fx.Node):
            continue
        values = get_constant(module, bias)
        activation, weight = (observer_of(module, n) for n in node.all_input_nodes[:2])
        if values is None or activation is None or weight is None:
            continue
        weight = inner_of(weight)
        if not isinstance(weight, WeightPerChannelObserver):
            continue
        if activation.is_dynamic:  # quantized at run time: the bias stays float
            continue
        scale = float(activation.calculate_qparams()[0])  # type: ignore[operator]
        # A transposed convolution in groups has one scale for a channel of each.
        largest = values.detach().abs().double().reshape(-1, len(weight.min_val)).amax(0)
        weight.least = (largest / (scale * 2.0 ** _BIAS_BITS[activation.dtype])).float()  # type: ignore[index]
