# SPDX-License-Identifier: Apache-2.0
"""Values whose ranges turn out to be close get one set of parameters where a node wants them alike.

The quantizer leaves two kinds of values parameters of their own until calibration has told the ranges:

An input of `cat` and its kind that somebody else reads, too: the result's scale may be far too coarse for that reader.
Where they are close, sharing saves the requantization on the way, and costs the other readers next to nothing.

What a clamp (ReLU, ReLU6, …) leaves of a value that others read as it was, or that was moved about in between: its
bounds may lie beyond what the value's integers hold, or between two of them. And what an average pooling gives: the
mean of many values has a smaller range than these, and is more exact than their steps.

What is padded with a value far below all others, in front of a max pooling: where no window lies in the padding alone,
nobody sees that value, and it may saturate.
"""

from __future__ import annotations

import math
import operator

import torch
from torch import fx

from tinyet.fx.log_filter import quiet
from tinyet.quantization import annotate as rules
from tinyet.quantization.observers import CLOSE, CLOSE_INT16, KnownRangeObserver

with quiet():
    from torchao.quantization.pt2e.observer import FixedQParamsObserver

aten = torch.ops.aten


class Observers:
    """The observers of a prepared module. One that several nodes share has several names."""

    def __init__(self, module: fx.GraphModule) -> None:
        self.module = module
        self._names: dict[torch.nn.Module, list[str]] = {}
        for name, observer in module.named_modules(remove_duplicate=False):
            self._names.setdefault(observer, []).append(name)

    def called_by(self, node: fx.Node) -> torch.nn.Module | None:
        """The observer that a node calls."""
        return observer_of(self.module, node)

    def is_weight(self, node: fx.Node) -> bool:
        """Whether the node's observer sees a constant."""
        return node.all_input_nodes[0].op == "get_attr"

    def of_result(self, node: fx.Node) -> torch.nn.Module | None:
        """The observer of a node's result."""
        return next((o for user in node.users if (o := self.called_by(user)) is not None), None)

    def seen_by(self, observer: torch.nn.Module) -> list[fx.Node]:
        """The nodes whose results an observer sees."""
        nodes = self.module.graph.nodes
        return [n.all_input_nodes[0] for n in nodes if self.called_by(n) is observer]

    def replace(self, own: torch.nn.Module, result: torch.nn.Module) -> None:
        """`result` in the place of `own`."""
        for name in self._names[own]:
            self.module.set_submodule(name, result)
        self._names.setdefault(result, []).extend(self._names.pop(own))


def observer_of(module: fx.GraphModule, node: fx.Node) -> torch.nn.Module | None:
    """The observer that a node of a prepared module calls."""
    if node.op != "call_module":
        return None
    found = module.get_submodule(str(node.target))
    return found if hasattr(found, "calculate_qparams") else None


def inner_of(observer: torch.nn.Module) -> torch.nn.Module:
    """The observer that a fake quantizer asks; any other is its own."""
    inner: torch.nn.Module = getattr(observer, "activation_post_process", observer)
    return inner


def extremes_of(observer: torch.nn.Module) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The least and the greatest value that were seen, of one element or one a channel; None where the observer does
    not tell, as one whose range is fixed."""
    inner = inner_of(observer)
    low, high = getattr(inner, "min_val", None), getattr(inner, "max_val", None)
    return (low, high) if isinstance(low, torch.Tensor) and isinstance(high, torch.Tensor) else None


def share_kept(module: fx.GraphModule, count: int) -> None:
    """Let each of the last `count` outputs be observed by what observes the input that stands in the same place from
    the end: they are one value, at the end of a run and at the start of the next. module: prepared, not calibrated.

    What is observed when it is read is observed when it is written, too.
    """
    entries = [node for node in module.graph.nodes if node.op == "placeholder"][-count:] if count else []
    output = module.graph.output_node()
    results = list(output.args[0])  # type: ignore[arg-type]
    # One kept value may be the next of another, and so on; what is shared on the way there comes back.
    for _ in entries:
        for number, entry in enumerate(entries, len(results) - count):
            observers = Observers(module)
            read = _observers_of(observers, entry)
            written = observers.called_by(results[number])
            if written is None and read:
                results[number] = _observed(module, observers, results[number], read[0])
                output.args = (tuple(results),)
                observers = Observers(module)
                written = observers.called_by(results[number])
            for own in read:
                if written is not None and own is not written and _interchangeable(own, written):
                    observers.replace(own, written)
    module.recompile()


def _observers_of(observers: Observers, node: fx.Node) -> list[torch.nn.Module]:
    """All observers of a node's value, each once."""
    found = (observers.called_by(user) for user in node.users)
    return list(dict.fromkeys(o for o in found if o is not None and not getattr(o, "is_dynamic", False)))


def _observed(
    module: fx.GraphModule, observers: Observers, node: fx.Node, observer: torch.nn.Module
) -> fx.Node:
    """The node's value, observed as it is already or, where it is not, by `observer`."""
    already = [user for user in node.users if observers.called_by(user) in _observers_of(observers, node)]
    if already:
        return already[0]
    (name, *_) = (n for n, each in module.named_modules(remove_duplicate=False) if each is observer)
    with module.graph.inserting_before(module.graph.output_node()):
        made = module.graph.call_module(name, (node,))
    made.meta["val"] = node.meta.get("val")
    return made


def _interchangeable(own: torch.nn.Module, other: torch.nn.Module) -> bool:
    """Whether the one may observe what the other does: integers of one type, and parameters that are not fixed."""
    return not isinstance(inner_of(own), FixedQParamsObserver) and all(
        getattr(own, name, None) == getattr(other, name, None)
        for name in ("dtype", "quant_min", "quant_max", "is_dynamic")
    )


def share_close(module: fx.GraphModule) -> int:
    """Give inputs of ALL_SAME nodes the result's observer where its scale is at most CLOSE times their own and its
    range holds theirs. module: prepared and calibrated. Returns how many observers were replaced."""
    replaced = 0
    observers = Observers(module)
    # From the end: what is shared with a result is then that result's, for the nodes before it.
    for node in reversed(list(module.graph.nodes)):
        if node.op != "call_function" or node.target not in rules.ALL_SAME:
            continue
        result = observers.of_result(node)
        if result is None:
            continue
        for source in node.all_input_nodes:
            own = observers.called_by(source)
            if own is not None and own is not result and _are_close(own, result):
                observers.replace(own, result)
                replaced += 1
    return replaced


def share_with_inputs(module: fx.GraphModule) -> int:
    """Give the result of a clamp, an average or a pad the observer of its input where that serves it as well, so that
    the clamp is one of integers, or none at all. module: prepared and calibrated. Returns how many were replaced.

    It serves as well where the two scales are close. A coarser one serves a clamp, too, where it holds the bounds
    (ReLU's 0 always is): what lies between them was rounded to it before. Not where the clamp goes into the operator
    that computes its input, through movers that nobody else reads: that operator then writes the finer scale itself.
    """
    replaced = 0
    observers = Observers(module)
    for node in module.graph.nodes:
        source = observers.called_by(node.all_input_nodes[0]) if node.all_input_nodes else None
        own = observers.of_result(node)
        if node.op != "call_function" or source is None or own is None or source is own:
            continue
        if _pads_unseen(node, observers):
            observers.replace(own, source)
            replaced += 1
            continue
        if node.target not in rules.CLAMPS | rules.AVERAGING or not _holds(source, own):
            continue
        rounded = (
            node.target in rules.CLAMPS
            and all(n is node or _moves(n) for n in observers.seen_by(own))
            and not _is_foldable(node)
            and _has_bounds(source, own, rules.bounds(node))
        )
        margin = CLOSE_INT16 if int(own.quant_max) > 127 else CLOSE  # type: ignore[arg-type]
        if _are_close(own, source, margin) or rounded:
            observers.replace(own, source)
            replaced += 1
    return replaced


def _pads_unseen(node: fx.Node, observers: Observers) -> bool:
    """Whether the node pads with a value below 0 that no reader's result shows: all take the greatest of windows, none
    of which lies in the padding alone. Saturated, at the input's least integer, it is no more than any value there."""
    if rules.padded_with(node) >= 0:
        return False
    readers = [
        reader for user in node.users for reader in (user.users if observers.called_by(user) else (user,))
    ]
    if not all(reader.target in rules.MAX_POOLS for reader in readers):
        return False
    (source,) = node.all_input_nodes
    given = source.all_input_nodes[0] if observers.called_by(source) is not None else source
    inside = torch.zeros(given.meta["val"].shape)
    padded = aten.constant_pad_nd.default(inside, node.args[1], -1.0)
    results = [reader.target(padded, *reader.args[1:], **reader.kwargs) for reader in readers]  # type: ignore[operator]
    return all(bool((x[0] if isinstance(x, tuple) else x).eq(0).all()) for x in results)


def _moves(node: fx.Node) -> bool:
    """Whether the node's result has its input's parameters whatever was seen."""
    return node.target is operator.getitem or (
        node.target in rules.SAME_AS_INPUT | rules.SEVERAL_OUTPUTS
        and node.target not in rules.CLAMPS | rules.AVERAGING
    )


def _is_foldable(node: fx.Node) -> bool:
    """Whether a clamp goes into the operator that computes its input, across movers that nobody else reads."""
    source = node.all_input_nodes[0]
    while len(source.users) == 1:
        if source.target in rules.WEIGHTED or source.target in rules.BINARY:
            return True
        if source.op != "call_module" and source.target not in rules.SELECTING:
            return False
        source = source.all_input_nodes[0]
    return False


def _has_bounds(source: torch.nn.Module, own: torch.nn.Module, bounds: tuple[float, float]) -> bool:
    """Whether the bounds that values came to are numbers of `source`, to half a step of `own`."""
    scale, (fine, low, high) = range_of(source)[0], range_of(own)
    reached = low <= bounds[0] + fine, bounds[1] - fine <= high
    return all(
        abs(bound - round(bound / scale) * scale) <= fine / 2
        for bound, counts in zip(bounds, reached, strict=True)
        if counts and math.isfinite(bound)
    )


def _are_close(own: torch.nn.Module, result: torch.nn.Module, margin: float = CLOSE) -> bool:
    if _is_fixed(own) or _is_fixed(result):
        return False
    return _holds(result, own) and range_of(result)[0] <= margin * range_of(own)[0]


def _is_fixed(observer: torch.nn.Module) -> bool:
    """Whether its parameters are not of what was seen but known in advance."""
    known = observer.known.scale if isinstance(observer, KnownRangeObserver) else None
    return isinstance(observer, FixedQParamsObserver) or range_of(observer)[0] == known


def _holds(result: torch.nn.Module, own: torch.nn.Module) -> bool:
    """Whether the numbers of `result` reach as far as those of `own`, of the same type."""
    if getattr(own, "dtype", None) is not getattr(result, "dtype", None):
        return False
    (_, low, high), (shared, lowest, highest) = range_of(own), range_of(result)
    # Half a step beyond the range is rounded into it.
    return lowest - shared / 2 <= low and high <= highest + shared / 2


def range_of(observer: torch.nn.Module) -> tuple[float, float, float]:
    """Scale, and the smallest and largest value that is represented."""
    scales, zero_points = observer.calculate_qparams()  # type: ignore[operator]
    scale, zero_point = float(scales), int(zero_points)
    low, high = int(observer.quant_min), int(observer.quant_max)  # type: ignore[arg-type]
    return scale, (low - zero_point) * scale, (high - zero_point) * scale
