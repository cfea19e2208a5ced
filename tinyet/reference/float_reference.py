# SPDX-License-Identifier: Apache-2.0
"""The float graph of an integer graph: which float value each integer value stands for, and how far they are apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tinyet.answers import OutputQuality, decibels
from tinyet.ir import Array, DType, Graph, Node, Tensor
from tinyet.numerics import Float64, dequantize
from tinyet.reference.nearly import NearSession


def pair_values(graph: Graph, float_graph: Graph) -> dict[Tensor, Tensor]:
    """Integer value → float value of the same layer, by the names that both had in the exported model.

    A fused node carries the names of all that it computes; the last one names its result. A value without a
    partner of the same shape is left out.
    """
    by_key: dict[str, list[Node]] = {}
    for node in float_graph.nodes:
        for origin in node.origins:
            by_key.setdefault(origin.key, []).append(node)
    pairs: dict[Tensor, Tensor] = {}
    for node in graph.nodes:
        for origin in reversed(node.origins):
            partner = _same_of(node, by_key.get(origin.key, ())) if origin.key else None
            if partner is None or len(partner.outputs) != len(node.outputs):
                continue
            if all(a.shape == b.shape for a, b in zip(node.outputs, partner.outputs, strict=True)):
                pairs.update(zip(node.outputs, partner.outputs, strict=True))
                break
    return pairs


def _same_of(node: Node, candidates: Sequence[Node]) -> Node | None:
    """Of the nodes that one call of the model became, the last that computes the same as `node`; else the last."""

    def kind(each: Node) -> tuple[str, object]:
        return each.op, getattr(each.attrs, "function", None)

    same = [each for each in candidates if kind(each) == kind(node)]
    return (same or [*candidates])[-1] if candidates else None


@dataclass
class Powers:
    """Sums over all samples of one value: squares of the float signal, squares of what quantization added to it, and
    the signal itself, element by element. Where the signal is not finite nothing is compared."""

    signal: float = 0.0
    noise: float = 0.0
    total: Float64 | float = 0.0
    samples: int = 0

    def add(self, exact: Array, found: Array) -> None:
        """Take in one sample of the float value and the real number that the integers stand for."""
        known = np.isfinite(exact)
        wanted = np.where(known, exact, 0.0).astype(np.float64)
        error = np.where(known, found.astype(np.float64) - wanted, 0.0)
        self.signal += float(np.sum(wanted**2))
        self.noise += float(np.sum(np.where(np.isfinite(error), error, math.inf) ** 2))
        self.total = self.total + wanted
        self.samples += 1

    @property
    def sqnr_db(self) -> float | None:
        """10 log10(signal / noise); None without a signal, infinite without noise."""
        return decibels(self.signal, self.noise)

    @property
    def quality(self) -> OutputQuality:
        """With what moves from sample to sample, of which one alone says nothing."""
        if self.samples < 2:
            return OutputQuality(self.sqnr_db, None)
        still = float(np.sum(np.square(self.total))) / self.samples
        moving = self.signal - still
        # What is left of two equal sums by rounding is no signal.
        return OutputQuality(self.sqnr_db, decibels(moving if moving > 1e-12 * still else 0.0, self.noise))


@dataclass
class Comparison:
    """Collects the integer graph's error against its float graph, sample by sample; the float graph's states go along.

    pairs: integer value → float value; inputs and outputs are among them. exact: the float graph's values of the last
    sample.
    """

    graph: Graph
    float_graph: Graph
    pairs: dict[Tensor, Tensor] = field(init=False)
    powers: dict[Tensor, Powers] = field(init=False)
    session: NearSession = field(init=False)
    exact: Mapping[Tensor, Array] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        ends = (
            *zip(self.graph.user_inputs, self.float_graph.user_inputs, strict=True),
            *zip(self.graph.user_outputs, self.float_graph.user_outputs, strict=True),
        )
        pairs = {**pair_values(self.graph, self.float_graph), **dict(ends)}
        self.pairs = {a: b for a, b in pairs.items() if a.type.quant is not None or a.dtype is DType.FLOAT32}
        self.powers = {tensor: Powers() for tensor in self.pairs}
        # A layer that stays in float makes no error, not even in the last bit.
        floats = {b for a, b in self.pairs.items() if a.dtype is DType.FLOAT32}
        self.session = NearSession(self.float_graph, floats)

    def add(self, values: Mapping[Tensor, Array], inputs: Sequence[Array]) -> list[Array]:
        """Take in one sample: the integer graph's values and the float inputs. Returns the float graph's outputs."""
        exact = self.exact = self.session.values(inputs)
        for tensor, partner in self.pairs.items():
            quant = tensor.type.quant
            real = values[tensor] if quant is None else dequantize(values[tensor], quant)
            self.powers[tensor].add(exact[partner], real)
        return [exact[t] for t in self.float_graph.user_outputs]

    def sqnr_db(self, tensor: Tensor) -> float | None:
        """Signal to quantization noise ratio of a value in dB; None where it has no float partner."""
        powers = self.powers.get(tensor)
        return None if powers is None else powers.sqnr_db

    def quality(self, tensor: Tensor) -> OutputQuality | None:
        """The same with what moves from sample to sample."""
        powers = self.powers.get(tensor)
        return None if powers is None or not powers.samples else powers.quality


def float_inputs(
    tensors: Sequence[Tensor], float_tensors: Sequence[Tensor], arrays: Sequence[Array]
) -> list[Array]:
    """A sample as the float graph takes it, whose inputs are `float_tensors`: the user's own float data, or integers
    made real again; integers where the float graph has them, too."""
    result: list[Array] = []
    for tensor, float_tensor, array in zip(tensors, float_tensors, arrays, strict=True):
        x = array.reshape(tensor.shape) if array.size == tensor.type.count else array
        if float_tensor.dtype is not DType.FLOAT32:
            result.append(x.astype(float_tensor.dtype.numpy))
        elif x.dtype.kind == "f":
            result.append(x.astype(np.float32))
        elif tensor.type.quant is not None:
            result.append(dequantize(x, tensor.type.quant))
        else:
            result.append(x.astype(tensor.dtype.numpy))
    return result
