# SPDX-License-Identifier: Apache-2.0
"""Bias correction: what quantization shifts on average, the biases shift back.

Rounded weights change not only the spread of a layer's output but also its mean, channel by channel, and the
next layers take that for signal. The mean error is measured on calibration data, layer after layer from the
front (each with the corrections before it in place), and added to the float bias, before the import makes it
an integer. (Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction", 2019,
section 4.2, in its empirical form.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import fx, nn
from torch.export import ExportedProgram

from tinyet.fx.capture import example_inputs_of, re_export
from tinyet.fx.edit import add_constant, drop_unused, get_constant
from tinyet.fx.exact import Exact, call, widen
from tinyet.fx.examples import Inputs
from tinyet.fx.log_filter import quiet
from tinyet.fx.mutable_buffers import Running, put_back, take_out
from tinyet.fx.origins import origin_of
from tinyet.quantization.annotate import WEIGHTED
from tinyet.quantization.threads import one_thread

aten = torch.ops.aten


Shift = Callable[[fx.Node, torch.Tensor], torch.Tensor | None]
"""Takes a layer and the mean of each of its channels, (channels,) float64; gives what is to be added to each."""


def _channel_axis(node: fx.Node) -> int:
    """Of a layer's output: the last axis of a linear layer, the second of a convolution."""
    return node.meta["val"].ndim - 1 if node.target is aten.linear.default else 1


def _walk(module: fx.GraphModule, samples: Sequence[Inputs], layers: Iterable[fx.Node], shift: Shift) -> None:
    """Compute the graph in float64 for all samples at once, node by node, and show the mean of each layer to `shift`
    before anything behind it is computed. Values are dropped when nothing reads them any more."""
    wanted, nodes = set(layers), list(module.graph.nodes)
    last = {source: node for node in nodes for source in node.all_input_nodes}
    dropped: dict[fx.Node, list[fx.Node]] = {}
    for source, node in last.items():
        dropped.setdefault(node, []).append(source)
    values: dict[fx.Node, list[Any]] = {}
    inputs = iter(range(len(samples[0])))
    for node in nodes:
        if node.op == "placeholder":
            index = next(inputs)
            values[node] = [widen(sample[index]) for sample in samples]
        elif node.op == "get_attr":
            values[node] = [widen(get_constant(module, node))] * len(samples)
        elif node.op == "call_function":
            values[node] = [_call(node, values, at) for at in range(len(samples))]
        if node in wanted:
            axis = _channel_axis(node)
            means = [value.transpose(0, axis).flatten(1).mean(1) for value in values[node]]
            change = shift(node, torch.stack(means).mean(0))
            wanted.discard(node)
            if change is not None:
                added = change.reshape(-1, *[1] * (node.meta["val"].ndim - 1 - axis))
                values[node] = [value + added for value in values[node]]
        if not wanted:
            return
        for source in dropped.get(node, ()):
            del values[source]


def _call(node: fx.Node, values: dict[fx.Node, list[Any]], at: int) -> Any:
    def take(source: fx.Node) -> Any:
        return values[source][at]

    return call(node.target, fx.node.map_arg(node.args, take), fx.node.map_arg(node.kwargs, take))


def _layers(module: fx.GraphModule) -> dict[str, fx.Node]:
    """Key of the origin → layer with a constant weight and a constant bias or none."""
    return {
        origin_of(node).key: node
        for node in module.graph.nodes
        if node.op == "call_function" and node.target in WEIGHTED and _bias_is_ours(module, node)
    }


def _bias_is_ours(module: fx.GraphModule, node: fx.Node) -> bool:
    bias = node.args[2] if len(node.args) > 2 else None
    if bias is None:
        return True
    return isinstance(bias, fx.Node) and len(bias.users) == 1 and get_constant(module, bias) is not None


def _is_quantized(node: fx.Node) -> bool:
    weight = node.args[1]
    return isinstance(weight, fx.Node) and "dequantize" in str(weight.target)


def _add_to_bias(module: fx.GraphModule, node: fx.Node, shift: torch.Tensor) -> None:
    """Give the layer a new bias, larger by `shift`. shift: (channels,) float64."""
    old = node.args[2] if len(node.args) > 2 else None
    held = get_constant(module, old)
    value = (shift if held is None else held.detach().double() + shift).float()
    name = f"{node.name}_corrected_bias"
    new = add_constant(module, node, name, nn.Parameter(value, requires_grad=False))
    node.args = (*node.args[:2], new, *node.args[3:])


def correct_bias(
    program: ExportedProgram, quantized: ExportedProgram, samples: Sequence[Inputs]
) -> ExportedProgram:
    """The quantized program with biases that give each layer with weights the float program's mean, channel by
    channel, on the samples (of the program's own shapes)."""
    if not samples:
        return quantized
    with quiet():
        reference = program.module(check_guards=False)
        module = quantized.module(check_guards=False)
        kept = take_out(reference)
        kept_quantized = take_out(module)
    exact = _layers(reference)
    partners = {
        node: exact[key] for key, node in _layers(module).items() if key in exact and _is_quantized(node)
    }
    wanted: dict[fx.Node, torch.Tensor] = {}

    def remember(node: fx.Node, mean: torch.Tensor) -> None:
        wanted[node] = mean

    def correct(node: fx.Node, mean: torch.Tensor) -> torch.Tensor:
        shift = wanted[partners[node]] - mean
        _add_to_bias(module, node, shift)
        return shift

    with torch.no_grad(), one_thread():
        # All samples go through one layer before the next: what is kept between them is the float program's.
        run, given = Running(Exact(reference).run, kept), []
        for inputs in samples if kept.buffers else ():
            given.append((*inputs, *run.buffers))
            run(*inputs)
        samples = given or samples
        _walk(reference, samples, partners.values(), remember)
        _walk(module, samples, partners, correct)
    drop_unused(module)
    put_back(module, kept_quantized)
    return re_export(module, example_inputs_of(quantized))
