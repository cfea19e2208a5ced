# SPDX-License-Identifier: Apache-2.0
"""Arguments of logarithms, roots and divisions that integers take to where the function has no value, floats not.

Zero is always among what integers stand for. A logarithm's argument that is small beside its scale's step, `mean(x²) +
1e-10` next to a mean of 2, becomes zero there. What follows depends on who computes on: a table saturates, a layer in
float32 gives an infinity. Neither is the model's answer, so each is a note with the line that asks for it.

And masks of a large finite number in front of softmax, which take up the range of what it sees.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tinyet.ir import Array, DType, Graph, Node, Note, Tensor
from tinyet.numerics import dequantize
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.div import Div
from tinyet.ops.softmax import Softmax
from tinyet.ops.unary import Unary
from tinyet.reference.float_reference import pair_values

_BOUNDS: Mapping[str, float] = {"log": 0.0, "log1p": -1.0, "sqrt": 0.0, "rsqrt": 0.0, "reciprocal": 0.0}
"""From where on downwards a function has no finite value; the root of zero is one."""


@dataclass
class _Watched:
    """One argument: of a node of the integer graph and of the same node of the float graph, and how near they come to
    the bound, over all samples.

    step: of the integers; 0 where the argument is no image of integers. exact: the least and the greatest in float.
    low: the least of the integers' numbers, above the bound; nearest: on either side of it.
    """

    node: Node
    tensor: Tensor
    partner: Tensor
    bound: float
    both_sides: bool
    step: float
    exact: list[float] = field(default_factory=lambda: [math.inf, -math.inf])
    nearest: float = math.inf
    low: float = math.inf

    def add(self, exact: Array, found: Array) -> None:
        """Take in the float argument and the real numbers that the integers stand for."""
        exact, distance = exact.astype(np.float64), found.astype(np.float64) - self.bound
        if exact.size and distance.size:
            self.exact = [min(self.exact[0], float(exact.min())), max(self.exact[1], float(exact.max()))]
            self.nearest = min(self.nearest, float(np.abs(distance).min()))
            self.low = min(self.low, float(distance.min()))

    @property
    def note(self) -> Note | None:
        """What is wrong; None where integers stay where floats are."""
        low, high = self.exact
        inside = low > self.bound or (self.both_sides and high < self.bound)
        reached = self.low <= 0.0 if not self.both_sides else self.nearest == 0.0
        if not inside or not reached:
            return None
        function = self.node.attrs.function if isinstance(self.node.attrs, Unary) else "division"
        what = "divisor" if self.both_sides and function == "division" else "argument"
        step = f", which have steps of {self.step:.3g}" if self.step else ""
        text = (
            f"{function}: its {what} is {low:.3g} ... {high:.3g} in float, and becomes {self.bound:g} in "
            f"integers{step}; {self._there(function)}: give what computes it int16, or keep it above "
            "by half a step at least"
        )
        return Note(text, self.node.origins[-1] if self.node.origins else None)

    def _there(self, function: str) -> str:
        """What the device gives."""
        if function == "sqrt" and self.low == 0.0:
            return "there the root is 0"
        if self.node.output.dtype is DType.FLOAT32:
            return "there it gives an infinity or NaN"
        low, high = self.node.output.dtype.range
        quant = self.node.output.type.quant
        if quant is None:
            return "there it is saturated"
        ends = dequantize(np.array([low, high], self.node.output.dtype.numpy), quant)
        return f"there it is saturated, to {float(ends[0]):.3g} or {float(ends[1]):.3g}"


FAR = 32.0
"""Of a softmax's argument, below the greatest of its row: exp(-32) beside 1 is nothing in a float32 sum."""
WIDE = 2.0
"""Times as wide as what softmax sees: a bit of eight is lost. A mask of -100 makes it ten times, in the suite of small
networks, and costs 13 dB there."""


@dataclass
class _Masked:
    """The argument of a softmax: of the integer graph, and in float.

    seen: the least and the greatest of its values that count. far: the greatest finite one that does not.
    """

    node: Node
    partner: Tensor
    seen: list[float] = field(default_factory=lambda: [math.inf, -math.inf])
    far: float = -math.inf

    def add(self, exact: Array) -> None:
        """Take in the float argument."""
        attrs = self.node.attrs
        assert isinstance(attrs, Softmax)
        greatest = exact.max(attrs.axis, keepdims=True)
        near = exact >= greatest - FAR
        # So far below the greatest of its row a value stands for all that are 0 behind a softmax of eight bits.
        nothing = float(greatest.min()) - math.log(exact.shape[attrs.axis] * 2.0**9)
        self.seen = [
            min(self.seen[0], float(exact[near].min()), nothing),
            max(self.seen[1], float(greatest.max())),
        ]
        self.far = max(self.far, float(exact[~near & np.isfinite(exact)].max(initial=-math.inf)))

    @property
    def note(self) -> Note | None:
        """What it costs; None where it costs less than a bit."""
        quant = self.node.input(0).type.quant
        if quant is None or not math.isfinite(self.far):
            return None
        first, last = self.node.input(0).dtype.range
        whole, seen = (last - first) * quant.one_scale, self.seen[1] - self.seen[0]
        if whole <= WIDE * seen:
            return None
        text = (
            f"softmax: values such as {self.far:.4g} are 0 behind it and take up the range of its argument, which is "
            f"{whole:.3g} wide for values of {self.seen[0]:.3g} ... {self.seen[1]:.3g} that count: -infinity in the "
            'mask, float("-inf"), costs no range'
        )
        return Note(text, self.node.origins[-1] if self.node.origins else None)


@dataclass
class Arguments:
    """Watches the arguments of a graph that have a bound, and those of softmax. float_graph: the float graph."""

    graph: Graph
    float_graph: Graph
    watched: list[_Watched] = field(default_factory=list)
    masked: list[_Masked] = field(default_factory=list)

    def __post_init__(self) -> None:
        pairs = pair_values(self.graph, self.float_graph)
        makers = {tensor: node for node in self.float_graph.nodes for tensor in node.outputs}
        own = {tensor: node for node in self.graph.nodes for tensor in node.outputs}
        for node in self.graph.nodes:
            partner = makers.get(pairs.get(node.outputs[0], node.outputs[0]))
            if partner is not None and isinstance(node.attrs, Softmax) and node.attrs == partner.attrs:
                self.masked.append(_Masked(node, partner.input(0)))
            found = None if partner is None else _bounded(node)
            if found is None or partner is None or type(partner.attrs) is not type(node.attrs):
                continue
            index, bound, both_sides = found
            ours, theirs = node.inputs[index], partner.inputs[index]
            if ours is not None and theirs is not None and ours.shape == theirs.shape:
                step = _step(ours, own)
                self.watched.append(_Watched(node, ours, theirs, bound, both_sides, step))

    def add(self, values: Mapping[Tensor, Array], exact: Mapping[Tensor, Array]) -> None:
        """One sample: all values of both graphs."""
        for each in self.watched:
            quant = each.tensor.type.quant
            real = values[each.tensor] if quant is None else dequantize(values[each.tensor], quant)
            each.add(exact[each.partner], real)
        for row in self.masked:
            row.add(exact[row.partner])

    @property
    def notes(self) -> tuple[Note, ...]:
        """A note for each argument that integers take where it has no business, and each range that a mask costs."""
        notes = [*(each.note for each in self.watched), *(each.note for each in self.masked)]
        return tuple(note for note in notes if note is not None)


def _bounded(node: Node) -> tuple[int, float, bool] | None:
    """Which input of a node has a bound, the bound, and whether it may lie on both sides of it; None for most."""
    if isinstance(node.attrs, Div):
        return 1, 0.0, True
    if not isinstance(node.attrs, Unary):
        return None
    function, alpha = node.attrs.function, node.attrs.alpha
    if function == "pow" and (alpha < 0 or alpha != round(alpha)):
        return 0, 0.0, alpha == round(alpha)
    bound = _BOUNDS.get(function)
    return None if bound is None else (0, bound, function == "reciprocal")


def _step(tensor: Tensor, makers: Mapping[Tensor, Node]) -> float:
    """Of the integers that a value is an image of."""
    maker = makers.get(tensor)
    if maker is not None and isinstance(maker.attrs, Dequantize):
        tensor = maker.input(0)
    quant = tensor.type.quant
    return 0.0 if quant is None or quant.axis is not None else quant.one_scale
