# SPDX-License-Identifier: Apache-2.0
"""What a few values of a captured graph lose when they become integers, tried in float64 without a kernel.

Each value is rounded as its type would round it: int8 to 256 steps between the least and the greatest number seen,
int16 to 65536 steps around zero; functions that the kernels have as 512 straight pieces in int16 are these pieces. Sums
are exact. That is enough to choose types by; what the program really loses is measured on its own integers.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from tinyet.fx.edit import get_constant
from tinyet.fx.exact import call, widen
from tinyet.fx.examples import Inputs
from tinyet.quantization import annotate as rules

aten = torch.ops.aten

FLOAT = 64
"""Of a value that is not quantized, as a number of bits."""

_PIECES = 512
_IN_PIECES: frozenset[object] = rules.UNARY - {
    aten.abs.default, aten.neg.default, aten.leaky_relu.default, aten.prelu.default, aten.mean.dim,
    aten.sum.dim_IntList, aten.cumsum.default, aten.layer_norm.default,
}  # fmt: skip
_FEW = 8
"""With fewer samples than this, what moves from sample to sample is not told from what stays."""


def moves(node: fx.Node) -> bool:
    """Whether the node's values are some of its input's, as they are."""
    moved = rules.SAME_AS_INPUT | rules.SEVERAL_OUTPUTS
    return node.target is operator.getitem or node.target in moved - rules.CLAMPS - rules.AVERAGING


@dataclass(frozen=True)
class Range:
    """The least and the greatest number that a value has on the samples. masks: whether some are infinite in the float
    model, too: quantization keeps those apart from numbers (`masks`)."""

    low: float
    high: float
    masks: bool = False

    def rounded(self, value: torch.Tensor, bits: int) -> torch.Tensor:
        """float64: the value as an integer of so many bits holds it."""
        if bits == FLOAT:
            return value
        held = self._held(value, bits)
        return torch.where(value.isinf(), value, held) if self.masks else held

    def _held(self, value: torch.Tensor, bits: int) -> torch.Tensor:
        low, high = min(self.low, 0.0), max(self.high, 0.0)
        least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        scale = (high - low) / (most - least) if bits == 8 else max(high, -low) / most
        if not scale > 0:
            return torch.zeros_like(value)
        zero = round(least - low / scale) if bits == 8 else 0
        finite = torch.nan_to_num(value, nan=0.0, posinf=high, neginf=low)
        # All in one place, which is this function's own.
        number = finite.div_(scale).round_().add_(zero).clamp_(least, most)
        return number.sub_(zero).mul_(scale)


def range_of(values: Sequence[torch.Tensor]) -> Range:
    """Of the finite numbers in the values; 0 ... 0 where there are none."""
    flat = torch.cat([v.flatten() for v in values])
    finite = flat[torch.isfinite(flat)]
    if not finite.numel():
        return Range(0.0, 0.0, bool(flat.isinf().any()))
    return Range(float(finite.min()), float(finite.max()), bool(flat.isinf().any()))


@dataclass(frozen=True)
class _Seen:
    """The float model's own values of one sample, of the nodes and the readers."""

    values: dict[fx.Node, Any]
    results: list[torch.Tensor]


class Trial:
    """Nodes of a graph, and what the layers that read them and the whole model give with the nodes in one type or
    another.

    nodes: in the graph's order; all that they read are inputs of the graph, constants, or each other. readers: layers
    behind them; they and all that follows compute in float. samples: inputs of the graph.
    """

    def __init__(
        self,
        module: fx.GraphModule,
        nodes: Sequence[fx.Node],
        readers: Sequence[fx.Node],
        samples: Sequence[Inputs],
    ) -> None:
        self.nodes, self.readers = tuple(nodes), tuple(readers)
        # Where nothing is computed before the readers, there is nothing but their own inputs' rounding to look at.
        within = {*self.nodes, *self.readers}
        computes = not all(moves(node) for node in self.nodes)
        self._tail = (
            [n for n in module.graph.nodes if n.op == "call_function" and n not in within] if computes else []
        )
        outputs = (
            [n for n in module.graph.output_node().all_input_nodes if rules.is_float(n)] if computes else []
        )
        self._results = [*self.readers, *(n for n in outputs if n in self._tail)]
        self._constants = {
            n: widen(value) for n in module.graph.nodes if (value := get_constant(module, n)) is not None
        }
        entries = [n for n in module.graph.nodes if n.op == "placeholder"]
        self._inputs = [dict(zip(entries, widen(list(inputs)), strict=False)) for inputs in samples]
        self._rounded: dict[tuple[fx.Node, fx.Node, int], torch.Tensor] = {}
        self._seen = [self._exact(inputs) for inputs in self._inputs]
        self.ranges = {
            n: range_of([seen.values[n] for seen in self._seen])
            for n in (*entries, *self.nodes)
            if rules.is_float(n)
        }
        self._signal = [_moving([seen.results[i] for seen in self._seen]) for i in range(len(self._results))]

    def values_of(self, node: fx.Node) -> list[torch.Tensor]:
        """The float model's values of an input or a node, one a sample."""
        return [seen.values[node] for seen in self._seen]

    def _exact(self, inputs: dict[fx.Node, Any]) -> _Seen:
        values = dict(inputs)
        for node in (*self.nodes, *self.readers, *self._tail):
            values[node] = self._apply(node, {n: values[n] for n in node.all_input_nodes if n in values})
        return _Seen(values, [_first(values[node]) for node in self._results])

    def _apply(self, node: fx.Node, given: Mapping[fx.Node, Any]) -> Any:
        """The node on values; constants that are not among them are as they are."""

        def value(source: fx.Node) -> Any:
            return given[source] if source in given else self._constants[source]

        args, kwargs = fx.node.map_arg((node.args, dict(node.kwargs)), value)
        return call(node.target, args, kwargs)

    def quality(self, bits: Mapping[fx.Node, int], reader_bits: int) -> float:
        """The worst SQNR of what a reader or the model gives, in dB, with so many bits for each node and for what
        readers read. Of the model's outputs the noise is that of the tenth of the samples that have most: quiet samples
        count beside loud ones. Infinite where nothing is lost, or nothing was to be."""
        noise: list[list[float]] = [[] for _ in self._results]
        for inputs, seen in zip(self._inputs, self._seen, strict=True):
            results = self._run(inputs, seen, bits, reader_bits)
            for each, got, wanted in zip(noise, results, seen.results, strict=True):
                each.append(float((got - wanted).square().sum()))
        worst = math.inf
        for number, (each, signal) in enumerate(zip(noise, self._signal, strict=True)):
            alone = number < len(self.readers)
            total = sum(each) if alone else sorted(each)[(len(each) * 9) // 10] * len(each)
            if total > 0:
                worst = min(worst, 10 * math.log10(max(signal / total, 1e-10)))
        return worst

    def _run(
        self, inputs: dict[fx.Node, Any], seen: _Seen, bits: Mapping[fx.Node, int], reader_bits: int
    ) -> list[torch.Tensor]:
        values = dict(inputs)
        for node in self.nodes:
            own = bits[node]
            given = self._given(node, own, values, bits)
            if own == FLOAT and all(value is seen.values[source] for source, value in given.items()):
                values[node] = seen.values[node]  # nothing is rounded before it
                continue
            pieces = own == 16 and node.target in _IN_PIECES
            result = self._pieces(node, given) if pieces else self._apply(node, given)
            if own != FLOAT and rules.is_float(node) and not moves(node):
                result = self.ranges[node].rounded(result, own)
            values[node] = result
        for reader in self.readers:
            given = self._given(reader, reader_bits, values, bits, weights=False)
            values[reader] = self._apply(reader, given)
        for node in self._tail:
            values[node] = self._apply(node, {n: values[n] for n in node.all_input_nodes if n in values})
        return [_first(values[node]) for node in self._results]

    def _given(
        self,
        node: fx.Node,
        own: int,
        values: Mapping[fx.Node, Any],
        bits: Mapping[fx.Node, int],
        *,
        weights: bool = True,
    ) -> dict[fx.Node, Any]:
        """What the node reads, as it reads it: of a coarser type than the source's, rounded once more."""
        given: dict[fx.Node, Any] = {}
        for source in node.all_input_nodes:
            if source in self._constants:
                if weights and own != FLOAT:
                    given[source] = self._rounded_constant(node, source, own)
                continue
            value = values[source]
            coarser = rules.is_float(source) and own < bits.get(source, FLOAT)
            given[source] = self.ranges[source].rounded(value, own) if coarser else value
        return given

    def _rounded_constant(self, node: fx.Node, source: fx.Node, bits: int) -> torch.Tensor:
        """A constant as the node reads it, the same for each sample."""
        key = (node, source, bits)
        if key not in self._rounded:
            self._rounded[key] = _rounded_constant(node, source, self._constants[source], bits)
        return self._rounded[key]

    def _pieces(self, node: fx.Node, given: Mapping[fx.Node, Any]) -> torch.Tensor:
        """A function of one number as straight pieces over the range of an int16."""
        (source, *_) = (n for n in node.all_input_nodes if n in given)
        end = max(self.ranges[source].high, -self.ranges[source].low)
        step = 2 * end / _PIECES
        if not step > 0:
            return torch.zeros_like(self._apply(node, given))
        start = (given[source] / step).floor().clamp(-_PIECES // 2, _PIECES // 2 - 1) * step
        target = self.ranges[node]
        here, there = (
            torch.nan_to_num(
                self._apply(node, {**given, source: at}), nan=0.0, posinf=target.high, neginf=target.low
            ).clamp(target.low, target.high)
            for at in (start, start + step)
        )
        rise: torch.Tensor = (there - here) * (given[source] - start) / step
        return here + rise


def _rounded_constant(node: fx.Node, source: fx.Node, value: torch.Tensor, bits: int) -> torch.Tensor:
    if node.target not in rules.WEIGHTED:
        return range_of([value]).rounded(value, bits) if value.is_floating_point() else value
    if source is not node.args[1]:
        return value  # a bias: 32 bits and more
    axis = rules.WEIGHTED[node.target]
    others = [d for d in range(value.ndim) if d != axis]
    scale = value.abs().amax(others, keepdim=True) / 127
    return torch.where(scale > 0, (value / scale.clamp(min=1e-300)).round() * scale, value)


def _first(result: Any) -> torch.Tensor:
    while isinstance(result, tuple | list):
        result = result[0]
    assert isinstance(result, torch.Tensor)
    return result


def _moving(values: Sequence[torch.Tensor]) -> float:
    """The energy of what moves from sample to sample; of everything, where there are few."""
    stacked = torch.stack(list(values))
    centre = stacked.mean(0) if len(values) >= _FEW else torch.zeros_like(stacked[0])
    return float((stacked - centre).square().sum())
