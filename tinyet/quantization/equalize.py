# SPDX-License-Identifier: Apache-2.0
"""Cross-layer equalization: the same function, in numbers that quantize with less error.

Between two layers with weights that only a positively homogeneous step separates (f(s x) = s f(x) for s > 0:
ReLU, pooling, moving data), each channel may be divided by a factor in the first and multiplied by it in the
second. In float nothing changes but rounding. Quantized, it does: one scale serves all channels of an
activation, so a channel whose values are small beside the others' loses most of its bits.

    s[c] = a[c]                  in front of a depthwise convolution, whose weights have a scale a channel
    s[c] = sqrt(a[c] / w[c])     else: between the activation and the next layer's columns

a[c] is the channel's largest magnitude on calibration data; w[c] the largest magnitude in the next layer's
weights that read the channel, each row (of one output, with a scale of its own) taken relative to its largest.
The second formula is that of Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias
Correction", 2019, eq. 11, with the activation's range in place of the weight's, which has a scale a channel here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn
from torch.export import ExportedProgram

from tinyet.fx.capture import example_inputs_of, re_export
from tinyet.fx.edit import add_constant, drop_unused, get_constant
from tinyet.fx.exact import Exact
from tinyet.fx.examples import Inputs
from tinyet.fx.log_filter import quiet
from tinyet.fx.mutable_buffers import Running, put_back, take_out
from tinyet.quantization.threads import one_thread

aten = torch.ops.aten

_CONVOLUTIONS = {aten.conv1d.default, aten.conv2d.default}
_HOMOGENEOUS = {
    aten.relu.default, aten.leaky_relu.default, aten.max_pool1d.default, aten.max_pool2d.default,
    aten.avg_pool1d.default, aten.avg_pool2d.default, aten.adaptive_avg_pool1d.default,
    aten.adaptive_avg_pool2d.default, aten.clone.default, aten.upsample_nearest1d.vec,
    aten.upsample_nearest2d.vec,
}  # fmt: skip
_LARGEST_FACTOR = 1e3
"""Of the factors' ratio to their mean: beyond, float32 itself would lose bits."""


@dataclass(frozen=True)
class Equalized:
    """One pair of layers: the names of their nodes, and the factor of each channel."""

    first: str
    second: str
    factors: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class _Pair:
    first: fx.Node
    last: fx.Node
    """The input of the second layer: the result of the last step between them."""
    second: fx.Node
    repeat: int
    """Columns of the second layer's weight for each channel of the first: more than 1 behind a flatten."""

    @property
    def depthwise(self) -> bool:
        groups = _argument(self.second, 6, 1) if self.second.target in _CONVOLUTIONS else 1
        return bool(groups == self.first.meta["val"].shape[1] and groups > 1)


def _argument(node: fx.Node, index: int, default: Any) -> Any:
    return node.args[index] if len(node.args) > index else default


def _commutes(node: fx.Node) -> int | None:
    """Number of values in the result's second dimension for one channel of the input; None when the node does not
    commute with a factor a channel."""
    if node.op != "call_function":
        return None
    if node.target in _HOMOGENEOUS:
        return 1
    if node.target in (aten.constant_pad_nd.default, aten.pad.default):
        amounts: Any = node.args[1]
        if node.target is aten.pad.default:
            zeros = _argument(node, 2, "constant") == "constant" and not _argument(node, 3, None)
        else:
            zeros = not _argument(node, 2, 0.0)
        return 1 if zeros and len(amounts) <= 2 * (node.meta["val"].ndim - 2) else None
    if node.target in (aten.view.default, aten.reshape.default):
        source = node.args[0]
        assert isinstance(source, fx.Node)
        before, after = source.meta["val"].shape, node.meta["val"].shape
        flat = len(before) >= 2 and len(after) == 2 and before[0] == after[0] and after[1] % before[1] == 0
        return int(after[1] // before[1]) if flat else None
    return None


def _has_own_weights(module: fx.GraphModule, node: fx.Node) -> bool:
    """Whether weight and bias are constants that nothing else reads."""
    if node.op != "call_function" or node.target not in _CONVOLUTIONS | {aten.linear.default}:
        return False
    for argument in (node.args[1], _argument(node, 2, None)):
        if argument is None:
            continue
        held = get_constant(module, argument)
        if held is None or not isinstance(argument, fx.Node) or len(argument.users) != 1:
            return False
        others = [n for n in module.graph.nodes if n is not argument and get_constant(module, n) is held]
        if others:
            return False
    # A linear layer's channels are its last dimension: the second one of a matrix only.
    return node.target in _CONVOLUTIONS or node.meta["val"].ndim == 2


def _pairs(module: fx.GraphModule) -> list[_Pair]:
    pairs = []
    for first in module.graph.nodes:
        if not _has_own_weights(module, first):
            continue
        node, repeat = first, 1
        while len(node.users) == 1:
            (reader,) = node.users
            if _has_own_weights(module, reader):
                if reader.args[0] is node and _fits(reader, node):
                    pairs.append(_Pair(first, node, reader, repeat))
                break
            count = _commutes(reader)
            if count is None:
                break
            node, repeat = reader, repeat * count
    return pairs


def _fits(second: fx.Node, source: fx.Node) -> bool:
    """Dense and depthwise layers; a grouped convolution's columns are not told apart here."""
    groups = _argument(second, 6, 1) if second.target in _CONVOLUTIONS else 1
    return bool(groups == 1 or groups == source.meta["val"].shape[1])


class _Ranges(Exact):
    """Runs samples and keeps, for each wanted node, the largest magnitude of each channel."""

    def __init__(self, module: fx.GraphModule, wanted: Iterable[fx.Node]) -> None:
        super().__init__(module)
        self.ranges: dict[fx.Node, torch.Tensor | None] = dict.fromkeys(wanted)

    def run_node(self, n: fx.Node) -> Any:
        value = super().run_node(n)
        if n in self.ranges:
            seen = value.abs().transpose(0, 1).flatten(1).amax(1)
            before = self.ranges[n]
            self.ranges[n] = seen if before is None else torch.maximum(before, seen)
        return value


def _factors(pair: _Pair, weight: torch.Tensor, activation: torch.Tensor) -> torch.Tensor:
    """(channels,) of the first layer, float32. weight: of the second, float64. activation: largest magnitudes of what
    it reads, float64."""
    channels = int(pair.first.meta["val"].shape[1])
    largest = activation.reshape(channels, pair.repeat).amax(1)
    if pair.depthwise:
        factors = largest
        alive = largest > 0
    else:
        rows = weight.abs().flatten(2).amax(2) if weight.ndim > 2 else weight.abs()
        top = rows.amax(1, keepdim=True)
        columns = torch.where(top > 0, rows / top, torch.zeros_like(rows)).amax(0)
        columns = columns.reshape(channels, pair.repeat).amax(1)
        alive = (largest > 0) & (columns > 0)
        factors = torch.sqrt(largest / columns.clamp(min=torch.finfo(torch.float32).tiny))
    if not bool(alive.any()):
        return torch.ones(channels)
    mean = torch.exp(torch.log(factors[alive]).mean())
    factors = (factors / mean).clamp(1 / _LARGEST_FACTOR, _LARGEST_FACTOR)
    return torch.where(alive, factors, torch.ones_like(factors)).float()


def _rescale(module: fx.GraphModule, node: fx.Node, index: int, factor: torch.Tensor, axis: int) -> None:
    """Multiply a constant argument along an axis, in a new constant: the old one may be the user's own."""
    constant = get_constant(module, node.args[index])
    assert constant is not None
    shape = [1] * constant.ndim
    shape[axis] = -1
    data = (constant.detach() * factor.reshape(shape)).contiguous()
    held = nn.Parameter(data, constant.requires_grad) if isinstance(constant, nn.Parameter) else data
    source = node.args[index]
    assert isinstance(source, fx.Node)
    node.update_arg(index, add_constant(module, node, f"{source.target}_equalized", held))
    module.graph.erase_node(source)


def equalize(
    program: ExportedProgram, samples: Sequence[Inputs]
) -> tuple[ExportedProgram, tuple[Equalized, ...]]:
    """The program with equalized layers, and which these are.

    program: of `capture`, not quantized. samples: inputs of the program's shapes (`quantize.samples`).
    """
    with quiet():
        module = program.module(check_guards=False)
        kept = take_out(module)
    pairs = _pairs(module)
    ranges = _Ranges(module, [pair.last for pair in pairs])
    with torch.no_grad(), one_thread():
        run = Running(ranges.run, kept)
        for inputs in samples:
            run(*inputs)
    done = []
    for pair in pairs:
        weight, seen = get_constant(module, pair.second.args[1]), ranges.ranges[pair.last]
        if weight is None or seen is None:
            continue
        factors = _factors(pair, weight.detach().double(), seen)
        _rescale(module, pair.first, 1, 1 / factors, 0)
        if _argument(pair.first, 2, None) is not None:
            _rescale(module, pair.first, 2, 1 / factors, 0)
        # A depthwise convolution may have several filters a channel.
        times = weight.shape[0] // len(factors) if pair.depthwise else pair.repeat
        _rescale(module, pair.second, 1, factors.repeat_interleave(times), 0 if pair.depthwise else 1)
        done.append(Equalized(pair.first.name, pair.second.name, tuple(factors.tolist())))
    if not done:
        return program, ()
    drop_unused(module)
    put_back(module, kept)
    return re_export(module, example_inputs_of(program)), tuple(done)
