# SPDX-License-Identifier: Apache-2.0
"""Values whose ranges turn out to be close get one set of parameters where a node wants them alike.

The quantizer leaves an input of `cat` and its kind its own parameters when somebody else reads it, too: the result's
may be far too coarse for that reader. Calibration then tells how far. Where they are close, sharing saves the
requantization on the way, and costs the other readers next to nothing.
"""

from __future__ import annotations

import torch
from torch import fx

from tinyet.importers.torch.quiet import quiet
from tinyet.quantization import annotate as rules

with quiet():
    from torchao.quantization.pt2e.observer import FixedQParamsObserver

CLOSE = 1.25
"""Most that a scale may grow for being shared. Rounding noise grows by this factor, that is by 1.9 dB."""


def share_close(module: fx.GraphModule) -> int:
    """Give inputs of ALL_SAME nodes the result's observer where its scale is at most CLOSE times their own and its
    range holds theirs. module: prepared and calibrated. Returns how many observers were replaced."""
    replaced = 0
    # An observer that several nodes share has several names.
    names: dict[torch.nn.Module, list[str]] = {}
    for name, observer in module.named_modules(remove_duplicate=False):
        names.setdefault(observer, []).append(name)
    # From the end: what is shared with a result is then that result's, for the nodes before it.
    for node in reversed(list(module.graph.nodes)):
        if node.op != "call_function" or node.target not in rules.ALL_SAME:
            continue
        result = next((o for user in node.users if (o := observer_of(module, user)) is not None), None)
        if result is None:
            continue
        for source in node.all_input_nodes:
            own = observer_of(module, source)
            if own is not None and own is not result and _are_close(own, result):
                for name in names[own]:
                    module.set_submodule(name, result)
                names[result] += names.pop(own)
                replaced += 1
    return replaced


def observer_of(module: fx.GraphModule, node: fx.Node) -> torch.nn.Module | None:
    """The observer that a node calls."""
    if node.op != "call_module":
        return None
    found = module.get_submodule(str(node.target))
    return found if hasattr(found, "calculate_qparams") else None


def _are_close(own: torch.nn.Module, result: torch.nn.Module) -> bool:
    if isinstance(own, FixedQParamsObserver) or isinstance(result, FixedQParamsObserver):
        return False
    if getattr(own, "dtype", None) is not getattr(result, "dtype", None):
        return False
    (scale, low, high), (shared, lowest, highest) = range_of(own), range_of(result)
    # Half a step beyond the range is rounded into it.
    holds = lowest - shared / 2 <= low and high <= highest + shared / 2
    return holds and shared <= CLOSE * scale


def range_of(observer: torch.nn.Module) -> tuple[float, float, float]:
    """Scale, and the smallest and largest value that is represented."""
    scales, zero_points = observer.calculate_qparams()  # type: ignore[operator]
    scale, zero_point = float(scales), int(zero_points)
    low, high = int(observer.quant_min), int(observer.quant_max)  # type: ignore[arg-type]
    return scale, (low - zero_point) * scale, (high - zero_point) * scale
