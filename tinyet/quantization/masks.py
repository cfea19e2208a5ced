# SPDX-License-Identifier: Apache-2.0
"""Masks in front of softmax and its kind: what is only there to be "as small as possible" costs no range.

A mask puts -infinity, or a number like -1e4, where softmax shall give 0. Quantized as it is, its range leaves
nothing for the other values. But softmax cannot tell -1e4 from a value some ten below the greatest of its row:
that is where an integer saturates, then.

- Constant masks (causal ones, of lengths) become one `minimum` right in front of their reader, with constants beyond
  all range, which saturate: `sink_masks`, before anything is annotated.
- What a softmax reads is observed by a `saturating` observer: values far below the greatest of their row count as
  `margin` below it.
- Masks that are computed from inputs are terms of sums in front of a softmax: after calibration their ranges end
  where the sum saturates (`range_clipping`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from tinyet.fx.edit import add_call, add_constant, get_constant
from tinyet.fx.origins import origin_of, stamp_node
from tinyet.ir import Origin
from tinyet.quantization import annotate as rules
from tinyet.quantization.observers import MASKED
from tinyet.quantization.saturation import BEYOND, Sight, greatest_sight, log_softmax_sight, softmax_sight

aten = torch.ops.aten

FACTOR = -1e4
"""The least factor that is left in a mask that is computed."""

SOFTMAX: frozenset[object] = frozenset({aten.softmax.int, aten.log_softmax.int})

_GREATEST: frozenset[object] = frozenset({aten.amax.default, aten.argmax.default, aten.max.dim})
"""Readers that see the greatest value of a row only."""

MOVES: frozenset[object] = frozenset({
    aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.permute.default,
    aten.transpose.int, aten.t.default, aten.squeeze.dim, aten.squeeze.dims, aten.unsqueeze.default,
    aten.expand.default, aten.repeat.default, aten.slice.Tensor, aten.select.int, aten.clone.default,
})  # fmt: skip
"""Operators that put each value somewhere, and compute nothing."""

SUMS: frozenset[object] = frozenset({aten.add.Tensor, aten.sub.Tensor})
PRODUCTS: frozenset[object] = frozenset({aten.mul.Tensor, aten.div.Tensor})


# ---------------------------------------------------------------- constant masks


@dataclass
class _Found:
    """The mask in a value. added: float64, of the value's shape: what masks add to it, -infinity where they replace
    it. terms: sums with a constant → what of the constant is no mask. fills: `where` nodes → the value that is kept.
    """

    added: torch.Tensor
    terms: dict[fx.Node, torch.Tensor] = field(default_factory=dict)
    fills: dict[fx.Node, fx.Node] = field(default_factory=dict)

    def moved(self, added: torch.Tensor) -> _Found:
        return _Found(added, self.terms, self.fills)


def sink_masks(module: fx.GraphModule, is_quantized: Callable[[fx.Node], bool]) -> None:
    """Put constant masks, as one `minimum`, right in front of the softmax (or what takes a maximum) that alone sees
    them, if that will be quantized. In place. Node `val` metadata must be there."""
    for reader in list(module.graph.nodes):
        known = reader.op == "call_function" and reader.target in SOFTMAX | _GREATEST
        if not known or not is_quantized(reader):
            continue
        value = reader.args[0]
        if not rules.is_float(value):
            continue
        found = _masks_in(module, value)
        masked = None if found is None else _masked(found, reader)
        if found is not None and masked is not None:
            _sink(module, reader, found, masked)
    module.graph.eliminate_dead_code()  # the sums that added them still read what they added them to
    _limit_computed(module, is_quantized)
    module.graph.eliminate_dead_code()
    module.recompile()


def _masks_in(module: fx.GraphModule, node: object) -> _Found | None:
    """The constant masks in a value that has one reader; None where there are none."""
    if not isinstance(node, fx.Node) or node.op != "call_function" or len(node.users) != 1:
        return None
    if node.target in MOVES:
        inner = _masks_in(module, node.args[0])
        return None if inner is None else inner.moved(node.target(inner.added, *node.args[1:], **node.kwargs))  # type: ignore[operator]
    if node.target in PRODUCTS:
        factor = _number(module, node.args[1])
        inner = _masks_in(module, node.args[0]) if factor is not None and factor > 0 else None
        return None if inner is None else inner.moved(node.target(inner.added, factor))  # type: ignore[operator]
    if node.target is aten.where.self:
        return _fill(module, node)
    if node.target in SUMS and not node.kwargs:
        return _sum(module, node)
    return None


def _limit_computed(module: fx.GraphModule, is_quantized: Callable[[fx.Node], bool]) -> None:
    """Masks that are computed, in values that only softmaxes see: numbers far below that are chosen while the model
    runs become -BEYOND, infinity or not; and no factor in a term of a sum is below FACTOR, for a product with -1e9, or
    with the least float32, has no integer form, and softmax sees it as it sees one with FACTOR."""
    # Values that only softmaxes see, and whether each time as a term of a sum.
    terms: dict[fx.Node, bool] = {}
    for node in reversed(list(module.graph.nodes)):
        ways = []
        for reader in node.users:
            if reader.target in SOFTMAX and is_quantized(reader):
                ways.append(False)
            elif reader in terms and passes_on(reader, node):
                ways.append(terms[reader])
            elif reader in terms and (_scales(module, reader, node) or adds(reader, node)):
                ways.append(terms[reader] or adds(reader, node))
            else:
                break
        if ways and len(ways) == len(node.users):
            terms[node] = all(ways)
    for node, is_term in terms.items():
        if node.target is aten.where.self:
            _limit_choices(module, node)
        factor = _number(module, node.args[1]) if is_term and node.target is aten.mul.Tensor else None
        if factor is not None and factor < FACTOR:
            limited = add_constant(module, node, f"{node.name}_factor", torch.tensor(FACTOR))
            node.args = (node.args[0], limited)


def _limit_choices(module: fx.GraphModule, node: fx.Node) -> None:
    args: list[Any] = list(node.args)
    for index in (1, 2):
        numbers = get_constant(module, args[index])
        if numbers is not None and bool((numbers <= MASKED).any()):
            limited = torch.where(numbers <= MASKED, -BEYOND, numbers)
            args[index] = add_constant(module, node, f"{node.name}_mask", limited)
    node.args = tuple(args)


def passes_on(reader: fx.Node, node: fx.Node) -> bool:
    """Whether values of the node are found in the reader as they are."""
    if reader.target is aten.where.self:
        return node is not reader.args[0]
    return reader.target in MOVES or reader.target is aten.minimum.default


def adds(reader: fx.Node, node: fx.Node) -> bool:
    """Whether the node is a term of the sum that the reader is."""
    return reader.target is aten.add.Tensor or (reader.target is aten.sub.Tensor and reader.args[0] is node)


def _scales(module: fx.GraphModule, reader: fx.Node, node: fx.Node) -> bool:
    """Whether the reader multiplies the node by a positive constant."""
    factor = _number(module, reader.args[1]) if reader.target in PRODUCTS and reader.args[0] is node else None
    return factor is not None and factor > 0


def _number(module: fx.GraphModule, argument: object) -> float | None:
    """The argument as a number, when it is one, or a constant of one element."""
    if isinstance(argument, (int, float)):
        return float(argument)
    constant = get_constant(module, argument)
    return float(constant) if constant is not None and constant.numel() == 1 else None


def _fill(module: fx.GraphModule, node: fx.Node) -> _Found | None:
    """where(constant condition, x, numbers far below) and the other way round."""
    condition = get_constant(module, node.args[0])
    if condition is None:
        return None
    for kept, filled, places in ((1, 2, ~condition.bool()), (2, 1, condition.bool())):
        source, numbers = node.args[kept], get_constant(module, node.args[filled])
        if numbers is None or not rules.is_float(source):
            continue
        shape = node.meta["val"].shape
        there = places.expand(shape)
        if not bool((numbers.expand(shape)[there] <= MASKED).all()):
            return None
        assert isinstance(source, fx.Node)
        inner = _masks_in(module, source)
        found = inner or _Found(torch.zeros(shape, dtype=torch.float64))
        added = found.added.expand(shape).masked_fill(there, -math.inf)
        return _Found(added, found.terms, {**found.fills, node: source})
    return None


def _sum(module: fx.GraphModule, node: fx.Node) -> _Found | None:
    shape = node.meta["val"].shape
    sign = -1 if node.target is aten.sub.Tensor else 1
    constant = get_constant(module, node.args[1])
    if constant is None and sign == 1 and get_constant(module, node.args[0]) is not None:
        node.args = (node.args[1], node.args[0])
        constant = get_constant(module, node.args[1])
    parts = [_masks_in(module, node.args[0])]
    if constant is not None and constant.is_floating_point():
        added = sign * constant.double()
        if bool((added <= MASKED).any()):
            there = added <= MASKED
            rest = torch.where(there, 0.0, constant)
            parts.append(_Found(torch.where(there, added, 0.0), {node: rest}))
    elif sign == 1:
        parts.append(_masks_in(module, node.args[1]))
    held = [part for part in parts if part is not None]
    if not held:
        return None
    total = torch.zeros(shape, dtype=torch.float64)
    result = _Found(total)
    for part in held:
        result = _Found(
            result.added + part.added, {**result.terms, **part.terms}, {**result.fills, **part.fills}
        )
    return result


def _axis(reader: fx.Node) -> tuple[int, ...] | None:
    """The axes over which the reader goes; None for all."""
    dim = reader.args[1] if len(reader.args) > 1 else reader.kwargs.get("dim")
    if dim is None or dim == []:
        return None
    return (dim,) if isinstance(dim, int) else tuple(dim)  # type: ignore[arg-type]


def _masked(found: _Found, reader: fx.Node) -> torch.Tensor | None:
    """Elements of the value that the reader ignores, bool; None where a minimum would not be the same.

    A row that is masked wholly by sums is, to softmax, the row without the mask: all are moved alike.
    """
    axes = _axis(reader) or tuple(range(found.added.ndim))
    greatest = found.added.amax(axes, keepdim=True)
    relative = torch.where(torch.isinf(greatest), found.added, found.added - greatest)
    masked = relative <= MASKED
    moved = torch.isfinite(greatest) & (greatest <= MASKED)
    if reader.target in SOFTMAX:
        # What is left of a mask beside a row's greatest would be lost.
        return None if bool(((relative != 0) & ~masked & moved).any()) else masked
    return None if bool((greatest <= MASKED).any()) else masked


def _sink(module: fx.GraphModule, reader: fx.Node, found: _Found, masked: torch.Tensor) -> None:
    graph = module.graph
    first = origin_of(next(iter((*found.terms, *found.fills))))
    for node, rest in found.terms.items():
        if bool((rest != 0).any()):
            constant = add_constant(module, node, f"{node.name}_unmasked", rest)
            node.replace_input_with(node.args[1], constant)  # type: ignore[arg-type]
        else:
            _replace(graph, node, node.args[0])  # type: ignore[arg-type]
    for node, kept in found.fills.items():
        _replace(graph, node, kept)
    value = reader.args[0]
    assert isinstance(value, fx.Node)
    bounds = _smallest(torch.where(masked, -BEYOND, BEYOND).float())
    name = add_constant(module, reader, f"{value.name}_mask", bounds)
    new = add_call(graph, reader, aten.minimum.default, (value, name), value)
    # Without a key: its values stand for none of the float model's.
    stamp_node(new, Origin(first.aten, first.module, first.file, first.line, first.text, ""))
    reader.replace_input_with(value, new)


def _replace(graph: fx.Graph, node: fx.Node, source: fx.Node) -> None:
    """`source` in the node's place, expanded to its shape."""
    if source.meta["val"].shape != node.meta["val"].shape:
        shape = list(node.meta["val"].shape)
        source = add_call(graph, node, aten.expand.default, (source, shape), node)
    node.replace_all_uses_with(source)


def _smallest(x: torch.Tensor) -> torch.Tensor:
    """The least tensor that broadcasts to x."""
    for axis in range(x.ndim):
        first = x.narrow(axis, 0, 1)
        if bool((x == first).all()):
            x = first
    while x.ndim > 1 and x.shape[0] == 1:
        x = x[0]
    return x


# ---------------------------------------------------------------- what readers see


def sight_of(reader: fx.Node, bits: int) -> Sight | None:
    """The part of its input that a softmax or its kind sees, or an argmax along one axis behind a mask; None for
    other readers. bits: of the reader's integers."""
    if reader.target not in SOFTMAX | _GREATEST:
        return None
    value, axes = reader.args[0], _axis(reader)
    if not rules.is_float(value) or axes is None or len(axes) != 1:
        return None
    assert isinstance(value, fx.Node)
    shape = value.meta["val"].shape
    axis = axes[0] - len(shape) if axes[0] >= 0 else axes[0]
    size = int(shape[axis])
    if reader.target is aten.softmax.int:
        return softmax_sight(axis, size, bits)
    if reader.target is aten.log_softmax.int:
        return log_softmax_sight(axis, size)
    return greatest_sight(axis, size) if value.target is aten.minimum.default else None
