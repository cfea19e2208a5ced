# SPDX-License-Identifier: Apache-2.0
"""Bias correction: what quantization shifts on average, the biases shift back.

Rounded weights change not only the spread of a layer's output but also its mean, channel by channel, and the
next layers take that for signal. The mean error is measured on calibration data, layer after layer from the
front (each with the corrections before it in place), and added to the float bias, before the import makes it
an integer. (Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction", 2019,
section 4.2, in its empirical form.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx, nn
from torch.export import ExportedProgram

from tinyet.fx.capture import example_inputs_of, re_export
from tinyet.fx.edit import add_constant, drop_unused, get_constant
from tinyet.fx.examples import Inputs
from tinyet.fx.log_filter import quiet
from tinyet.fx.mutable_buffers import put_back, take_out
from tinyet.quantization.layer_walk import is_quantized_layer, walk, weighted_layers, with_states
from tinyet.quantization.threads import one_thread

aten = torch.ops.aten


def _channel_axis(node: fx.Node) -> int:
    """Of a layer's output: the last axis of a linear layer, the second of a convolution."""
    return node.meta["val"].ndim - 1 if node.target is aten.linear.default else 1


def _means(node: fx.Node, results: Sequence[torch.Tensor]) -> torch.Tensor:
    """The mean of each channel of a layer, (channels,) float64."""
    axis = _channel_axis(node)
    return torch.stack([value.transpose(0, axis).flatten(1).mean(1) for value in results]).mean(0)


def _layers(module: fx.GraphModule) -> dict[str, fx.Node]:
    """Key of the origin → layer with a constant weight and a constant bias or none."""
    found = weighted_layers(module)
    return {key: node for key, node in found.items() if _bias_is_ours(module, node)}


def _bias_is_ours(module: fx.GraphModule, node: fx.Node) -> bool:
    bias = node.args[2] if len(node.args) > 2 else None
    if bias is None:
        return True
    return isinstance(bias, fx.Node) and len(bias.users) == 1 and get_constant(module, bias) is not None


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
        node: exact[key] for key, node in _layers(module).items() if key in exact and is_quantized_layer(node)
    }
    wanted: dict[fx.Node, torch.Tensor] = {}

    def remember(node: fx.Node, _: object, results: list[Any]) -> None:
        wanted[node] = _means(node, results)

    def correct(node: fx.Node, _: object, results: list[Any]) -> list[Any]:
        shift = wanted[partners[node]] - _means(node, results)
        _add_to_bias(module, node, shift)
        added = shift.reshape(-1, *[1] * (node.meta["val"].ndim - 1 - _channel_axis(node)))
        return [value + added for value in results]

    with torch.no_grad(), one_thread():
        samples = with_states(reference, kept, samples)
        walk(reference, samples, partners.values(), remember)
        walk(module, samples, partners, correct)
    drop_unused(module)
    put_back(module, kept_quantized)
    return re_export(module, example_inputs_of(quantized))
