# SPDX-License-Identifier: Apache-2.0
"""Learned rounding: each weight of a layer is rounded up or down so that the layer's output is right, not the weight.

Rounding to nearest makes the error of each weight least. What counts is the error of their sum: where one weight was
rounded up, it pays to round another down that is multiplied by similar numbers. For each layer, from the front, the
rounding is learned that makes the squared error of its output least on calibration data:

    sum over samples and places of (f(W x + b) - f(Q x' + b))²

f is the activation function that is fused into the layer, where it is a clamp (ReLU, ReLU6, …); W x + b what the float
model has there; x' what the quantized one has, with all errors and learned roundings before it. That is the objective
of Nagel et al., "Up or Down? Adaptive Rounding for Post-Training Quantization", 2020, eq. 25. They relax it to real
numbers and descend its gradient, on random samples; here it is made less by coordinate descent: one weight of each
channel after the other is rounded the other way where that makes the sum less, until none does. That takes no random
numbers and no rate, and sums only in float64, so it comes to the same integers on every processor (`exact`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx
from torch.export import ExportedProgram

from tinyet.fx.capture import example_inputs_of, re_export
from tinyet.fx.edit import add_constant, bind, drop_unused, get_constant
from tinyet.fx.exact import call
from tinyet.fx.examples import Inputs
from tinyet.fx.log_filter import quiet
from tinyet.fx.mutable_buffers import put_back, take_out
from tinyet.quantization import annotate as rules
from tinyet.quantization.layer_walk import is_quantized_layer, walk, weighted_layers, with_states
from tinyet.quantization.threads import one_thread

aten = torch.ops.aten

_LEARNED = {aten.conv1d.default, aten.conv2d.default, aten.linear.default}
_PLACES = 8192
"""Most places of a layer's output, of all samples, at which its error is counted."""
_NUMBERS = 1 << 25
"""Places times what a weight's channel reads there, at most: 256 MB."""
_SWEEPS = 20
"""Most sweeps over a layer's weights. Nearly all settle in fewer."""
_LEAST = 1e-9
"""The part of a channel's error by which a change must make it less: far beyond what sums of float64 differ by."""
_DAMPING = 0.01
"""Weight of the weights' own error beside the output's, times the inputs' mean square: decides where samples are too
few to tell."""


@dataclass(frozen=True)
class Rounded:
    """A layer whose rounding was learned. name: of its node. changed: how many of its weights are not the nearest
    integers. before, after: mean squared error of its output, behind its clamp, with nearest integers and with learned
    ones."""

    name: str
    weights: int
    changed: int
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class _Layer:
    """A quantized layer and its float partner. low, high: of the clamp behind it."""

    node: fx.Node
    partner: fx.Node
    low: float
    high: float

    @property
    def groups(self) -> int:
        return 1 if self.node.target is aten.linear.default else int(bind(self.node)["groups"])


def _learnable(module: fx.GraphModule, node: fx.Node) -> bool:
    """Whether the weight is a constant of one scale a channel that nothing else reads."""
    if node.target not in _LEARNED or not is_quantized_layer(node):
        return False
    weight: Any = node.args[1]
    held = weight.args[0] if "dequantize_per_channel" in str(weight.target) else None
    return (
        isinstance(held, fx.Node)
        and get_constant(module, held) is not None
        and weight.args[3] == 0
        and len(weight.users) == len(held.users) == 1
    )


def _is_alone(reference: fx.GraphModule, partner: fx.Node) -> bool:
    """Whether a float layer's weight is a constant that no other layer has. What is one tensor stays one."""
    weight = get_constant(reference, partner.args[1])
    if weight is None:
        return False
    # A tensor that no module owns is captured once a call.
    shared = [
        n
        for n in reference.graph.nodes
        if (other := get_constant(reference, n)) is not None and other.data_ptr() == weight.data_ptr()
    ]
    return sum(len(reader.users) for reader in shared) == 1


def _clamp_behind(node: fx.Node) -> tuple[float, float]:
    """The bounds of the clamp that is fused into a layer; infinite where there is none."""
    users = list(node.users)
    if len(users) == 1 and users[0].target in rules.CLAMPS:
        return rules.bounds(users[0])
    return -math.inf, math.inf


def _chosen(places: int, count: int, sample: int) -> torch.Tensor:
    """`count` of the places of one sample's output, spread evenly, others for each sample."""
    if count >= places:
        return torch.arange(places)
    # The fractions of the multiples of the golden ratio fill the unit interval evenly.
    golden = (math.sqrt(5) - 1) / 2
    return torch.tensor([int((sample * count + i) * golden % 1 * places) for i in range(count)])


def _columns(layer: _Layer, x: torch.Tensor) -> torch.Tensor:
    """What a layer's weights are multiplied by: (places, groups, weights of a channel)."""
    if layer.node.target is aten.linear.default:
        return x.reshape(-1, 1, x.shape[-1])
    bound = bind(layer.node)
    kernel: tuple[int, ...] = tuple(layer.node.args[1].meta["val"].shape[2:])  # type: ignore[union-attr]
    stride, padding, dilation = (tuple(bound[name]) for name in ("stride", "padding", "dilation"))
    if layer.node.target is aten.conv1d.default:
        x = x.unsqueeze(2)
        kernel, stride, padding, dilation = (1, *kernel), (1, *stride), (0, *padding), (1, *dilation)
    found = F.unfold(x, kernel, dilation, padding, stride)
    columns: torch.Tensor = found.unflatten(1, (layer.groups, -1))
    return columns.permute(0, 3, 1, 2).flatten(0, 1)


def _rows(layer: _Layer, y: torch.Tensor) -> torch.Tensor:
    """A layer's output as (places, groups, channels of a group)."""
    rows = y.reshape(-1, y.shape[-1]) if layer.node.target is aten.linear.default else y.flatten(2)
    if layer.node.target is not aten.linear.default:
        rows = rows.transpose(1, 2).flatten(0, 1)
    result: torch.Tensor = rows.unflatten(1, (layer.groups, -1))
    return result


def _places(layer: _Layer, samples: int) -> Callable[[int], torch.Tensor]:
    """The places of a sample's output, by the number of the sample, at which the layer's error is counted."""
    value, weight = layer.node.meta["val"], layer.node.args[1].meta["val"]  # type: ignore[union-attr]
    channels = value.shape[-1] if layer.node.target is aten.linear.default else value.shape[1]
    reads = weight.numel() // weight.shape[0] * layer.groups
    most = -(-min(_PLACES, _NUMBERS // reads) // samples)
    return lambda sample: _chosen(value.numel() // channels, most, sample)


class _Learning:
    """The rounding of one layer, all in float64. x: what the weights are multiplied by, (n, groups, places). wanted:
    (channels, places), behind the clamp."""

    def __init__(self, layer: _Layer, x: torch.Tensor, wanted: torch.Tensor) -> None:
        self.low, self.high = layer.low, layer.high
        self.x = x.permute(2, 1, 0).contiguous()
        self.wanted = wanted.clamp(self.low, self.high).flatten(1).T.contiguous()
        self.group = torch.arange(len(self.wanted)) // (len(self.wanted) // x.shape[1])
        """Of each channel."""

    def _error(self, y: torch.Tensor, channels: torch.Tensor) -> torch.Tensor:
        """Sums of squares of these channels; y: their outputs, (channels, places)."""
        return y.clamp(self.low, self.high).sub_(self.wanted[channels]).square_().sum(1)

    def _products(self, values: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """(n, channels): sums over the places of `values`, (channels, places), times x."""
        found = torch.einsum("gcp,ngp->ngc", values.unflatten(0, (x.shape[1], -1)), x)
        return found.flatten(1)

    def _promising(self, y: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        """Which steps of weights, (n, channels), would make the error less if no place came to either side of the clamp
        by them."""
        inside = ((y > self.low) & (y < self.high)).to(y)
        slope = self._products(inside * (y - self.wanted), self.x)
        return step * (2 * slope + step * self._products(inside, self.x.square())) < 0

    def learn(
        self, exact: torch.Tensor, nearest: torch.Tensor, other: torch.Tensor, bias: torch.Tensor
    ) -> tuple[torch.Tensor, float, float]:
        """Which weights take `other`, bool, and the mean squared errors before and after. exact, nearest, other: values
        of weights, (channels, n). bias: (channels,)."""
        everywhere = torch.arange(len(self.wanted))
        damping = _DAMPING * float(self.x.square().sum((1, 2)).mean()) / self.x.shape[1]
        step = (other - nearest).T.contiguous()
        cost = damping * ((other - exact).square() - (nearest - exact).square()).T
        flipped = torch.zeros_like(step, dtype=torch.bool)
        y = torch.einsum("gcn,ngp->gcp", nearest.unflatten(0, (self.x.shape[1], -1)), self.x).flatten(0, 1)
        y += bias[:, None]
        error = before = self._error(y, everywhere)
        for _ in range(_SWEEPS):
            any_better = False
            promising = self._promising(y, step)
            for j in promising.any(1).nonzero().flatten().tolist():
                channels = promising[j].nonzero().flatten()
                tried = y[channels] + step[j, channels, None] * self.x[j, self.group[channels]]
                then = self._error(tried, channels)
                better = then - error[channels] + cost[j, channels] < -_LEAST * error[channels]
                if bool(better.any()):
                    any_better = True
                    changed = channels[better]
                    y[changed] = tried[better]
                    error = error.index_copy(0, changed, then[better])
                    flipped[j, changed] ^= True
                    step[j, changed] *= -1
                    cost[j, changed] *= -1
            if not any_better:
                break
        count = self.wanted.numel()
        return flipped.T, float(before.sum()) / count, float(error.sum()) / count


def _learn(
    module: fx.GraphModule,
    reference: fx.GraphModule,
    layer: _Layer,
    x: torch.Tensor,
    wanted: torch.Tensor,
) -> tuple[torch.Tensor, Rounded]:
    """New integers for a layer's weight, which they become in the module."""
    dequantized: Any = layer.node.args[1]
    held, scales, zero_points, _, least, greatest, _ = dequantized.args
    weight = get_constant(reference, layer.partner.args[1])
    old, scale, zero_point = (get_constant(module, each) for each in (held, scales, zero_points))
    assert weight is not None
    assert old is not None
    assert scale is not None
    assert zero_point is not None
    by_channel = [-1, *[1] * (old.ndim - 1)]
    factor, offset = scale.double().reshape(by_channel), zero_point.double().reshape(by_channel)
    exact = weight.detach().double()
    nearest = old.double()
    # The integer on the other side of the exact value, where the type has it.
    beyond = torch.where(exact / factor + offset >= nearest, nearest + 1, nearest - 1)
    other = torch.where((beyond < least) | (beyond > greatest), nearest, beyond)
    bias = get_constant(module, bind(layer.node)["bias"])
    given = torch.zeros(old.shape[0], dtype=torch.float64) if bias is None else bias.detach().double()
    flipped, before, after = _Learning(layer, x, wanted).learn(
        exact.flatten(1),
        ((nearest - offset) * factor).flatten(1),
        ((other - offset) * factor).flatten(1),
        given,
    )
    flips = flipped.reshape(old.shape)
    learned = torch.where(flips, other, nearest).to(old.dtype)
    new = add_constant(module, dequantized, f"{layer.node.name}_learned_weight", learned)
    dequantized.update_arg(0, new)
    done = Rounded(layer.node.name, old.numel(), int(flips.sum()), before, after)
    return ((learned.double() - offset) * factor), done


def learn_rounding(
    program: ExportedProgram, quantized: ExportedProgram, samples: Sequence[Inputs]
) -> tuple[ExportedProgram, tuple[Rounded, ...]]:
    """The quantized program with learned integers in its convolutions and linear layers, and which these are.
    Transposed convolutions, recurrent layers and weights that several layers read keep the nearest.

    program: in float, of which `quantized` was made. samples: inputs of the program's shapes (`quantize.samples`).
    """
    with quiet():
        reference, module = (each.module(check_guards=False) for each in (program, quantized))
        kept, kept_quantized = take_out(reference), take_out(module)
    floats = weighted_layers(reference)
    layers = {
        node: _Layer(node, floats[key], *_clamp_behind(floats[key]))
        for key, node in weighted_layers(module).items()
        if key in floats and _learnable(module, node)
    }
    layers = {node: each for node, each in layers.items() if _is_alone(reference, each.partner)}
    if not layers or not samples:
        return quantized, ()
    places = {node: _places(layer, len(samples)) for node, layer in layers.items()}
    by_partner = {layer.partner: node for node, layer in layers.items()}
    wanted: dict[fx.Node, torch.Tensor] = {}
    done: list[Rounded] = []

    def remember(partner: fx.Node, _: object, results: list[Any]) -> None:
        node = by_partner[partner]
        rows = [_rows(layers[node], y)[places[node](at)] for at, y in enumerate(results)]
        wanted[node] = torch.cat(rows)

    def learn(node: fx.Node, arguments: list[tuple[Any, ...]], _: object) -> list[Any]:
        layer = layers[node]
        columns = [_columns(layer, args[0])[places[node](at)] for at, args in enumerate(arguments)]
        weight, found = _learn(module, reference, layer, torch.cat(columns), wanted.pop(node))
        done.append(found)
        return [call(node.target, (args[0], weight, *args[2:]), node.kwargs) for args in arguments]

    with torch.no_grad(), one_thread():
        samples = with_states(reference, kept, samples)
        walk(reference, samples, by_partner, remember)
        walk(module, samples, layers, learn)
    drop_unused(module)
    put_back(module, kept_quantized)
    return re_export(module, example_inputs_of(quantized)), tuple(done)
