# SPDX-License-Identifier: Apache-2.0
"""Plain PT2E, the judge: what torchao's own flow makes of a network when every value is observed by itself.

torchao's `prepare_pt2e` and `convert_pt2e` with torchao's `HistogramObserver`, int8 per tensor and affine; weights int8
per channel and symmetric, -127 … 127, by their smallest and largest; run as the torch graph that simulates it, in
float32. No value shares its parameters with another, and none has fixed ones:

- An operator that computes (all those that tinyet knows in integers, but the ones below) has its float inputs and its
  result quantized, each with the parameters that were observed there. A clamp behind a layer or a sum, product or
  quotient is fused: only its result is quantized, as in tinyet.
- An operator that moves, repeats or selects values (`MOVERS`) is not annotated: its result is exactly what was put in.
  What `cat` and `stack` put together is quantized on the way in, each input by itself, and so is their result: on the
  device an input of the model is int8, and so is a result.
- A mask is not annotated, nor is its result where it is read: `where`, `minimum` or a sum in which a constant is
  infinite or below -1000 (`FAR`). Plain PT2E has masks for free, and softmax sees them as they are.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import torch
from torch import fx
from torch.export import ExportedProgram

from tinyet.fx.edit import get_constant
from tinyet.fx.lazy_code import compiled_when_called
from tinyet.fx.log_filter import quiet
from tinyet.quantization import annotate as rules
from tinyet.quantization.observers import counted_within, rebinned, searched_bins
from tinyet.quantization.torchao_steps import convert_pt2e, prepare_pt2e

with quiet():
    from torchao.quantization.pt2e.observer import HistogramObserver, PerChannelMinMaxObserver
    from torchao.quantization.pt2e.quantizer.quantizer import (
        QuantizationAnnotation,
        QuantizationSpec,
        Quantizer,
    )

aten = torch.ops.aten

JOINS: frozenset[object] = frozenset({aten.cat.default, aten.stack.default})

MOVERS: frozenset[object] = frozenset({
    aten.max_pool1d.default, aten.max_pool2d.default, aten.amax.default, aten.amin.default,
    aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.permute.default,
    aten.transpose.int, aten.t.default, aten.squeeze.dim, aten.squeeze.dims, aten.unsqueeze.default,
    aten.expand.default, aten.repeat.default, aten.slice.Tensor, aten.select.int, aten.flip.default,
    aten.roll.default, aten.index_select.default, aten.clone.default, aten.constant_pad_nd.default,
    aten.pad.default, aten.reflection_pad1d.default, aten.reflection_pad2d.default,
    aten.replication_pad1d.default, aten.replication_pad2d.default, aten.upsample_nearest1d.vec,
    aten.upsample_nearest2d.vec, aten._upsample_nearest_exact1d.vec, aten._upsample_nearest_exact2d.vec,
    aten.pixel_shuffle.default, aten.pixel_unshuffle.default, aten.channel_shuffle.default,
    aten.split.Tensor, aten.split_with_sizes.default, aten.chunk.default, aten.unbind.int,
    aten.max_pool2d_with_indices.default, aten.adaptive_max_pool2d.default, operator.getitem,
})  # fmt: skip

MASKS: frozenset[object] = frozenset({
    aten.where.self, aten.minimum.default, aten.add.Tensor, aten.sub.Tensor,
})  # fmt: skip

FAR = -1000.0


class QuickObserver(HistogramObserver):  # type: ignore[misc]
    """torchao's, number for number, with quicker look-ups."""

    def forward(self, x_orig: torch.Tensor) -> torch.Tensor:
        if not counted_within(self, x_orig.detach()):
            super().forward(x_orig)
        return x_orig

    def _non_linear_param_search(self) -> tuple[torch.Tensor, torch.Tensor]:
        counts, total = torch.cumsum(self.histogram, dim=0).tolist(), torch.sum(self.histogram).item()
        # torch compares its counts, float32, with numbers of that type.
        low, high = searched_bins(
            counts, total, self._compute_quantization_error, lambda x: float(np.float32(x))
        )
        width = (self.max_val - self.min_val) / self.bins
        return self.min_val + width * low, self.min_val + width * (high + 1)

    def _upscale_histogram(
        self,
        histogram: torch.Tensor,
        orig_min: torch.Tensor,
        orig_max: torch.Tensor,
        update_min: torch.Tensor,
        update_max: torch.Tensor,
    ) -> torch.Tensor:
        parts = self.bins * self.upsample_rate
        middles = torch.linspace(orig_min, orig_max, parts + 1)[:-1] + 0.5 * ((orig_max - orig_min) / parts)
        borders = torch.linspace(update_min, update_max, self.bins + 1)
        if bool((middles[1:] < middles[:-1]).any() or (borders[1:] < borders[:-1]).any()):
            # torch.linspace counts from both ends: where the numbers are far and close, it may step back in the middle.
            found: torch.Tensor = super()._upscale_histogram(
                histogram, orig_min, orig_max, update_min, update_max
            )
            return found
        return rebinned(histogram, middles, borders)


class WeightObserver(PerChannelMinMaxObserver):  # type: ignore[misc]
    """torchao's, which looks at a weight once, not at each sample anew."""

    _seen: tuple[torch.Tensor, ...] = ()

    def forward(self, x_orig: torch.Tensor) -> torch.Tensor:
        if not any(x_orig is seen for seen in self._seen):
            super().forward(x_orig)
            # In a tuple: a parameter would become this module's own.
            self._seen = (x_orig,)
        return x_orig


ACTIVATION = QuantizationSpec(torch.int8, QuickObserver, -128, 127, torch.per_tensor_affine)


class PlainQuantizer(Quantizer):  # type: ignore[misc]
    """Annotates as the module's docstring says."""

    def annotate(self, model: fx.GraphModule) -> fx.GraphModule:
        masks: set[fx.Node] = set()
        for node in model.graph.nodes:
            if node.op != "call_function" or "quantization_annotation" in node.meta:
                continue
            inputs = [source for source in rules.float_inputs(node) if source not in masks]
            if _is_mask(model, node) or (node.target in MOVERS and node.args[0] in masks):
                masks.add(node)
            elif node.target in rules.WEIGHTED:
                self._weighted(node)
            elif node.target in JOINS:
                _set(node, dict.fromkeys(inputs, ACTIVATION), ACTIVATION)
            elif node.target is aten.embedding.default:
                _set(node, {node.args[0]: ACTIVATION}, None)
            elif node.target in rules.KNOWN - MOVERS and inputs:
                result = ACTIVATION if rules.is_float(node) else None
                fused = _clamp_behind(node) if node.target in rules.BINARY else None
                _set(node, dict.fromkeys(inputs, ACTIVATION), None if fused else result)
                if fused is not None:
                    _set(fused, {}, ACTIVATION)
        return model

    def _weighted(self, node: fx.Node) -> None:
        source, weight = node.args[0], node.args[1]
        spec = QuantizationSpec(
            torch.int8, WeightObserver, -127, 127, torch.per_channel_symmetric, _axis(node)
        )
        constant = isinstance(weight, fx.Node) and weight.op == "get_attr"
        fused = _clamp_behind(node)
        _set(
            node,
            {source: ACTIVATION, weight: spec if constant else ACTIVATION},
            None if fused else ACTIVATION,
        )
        if fused is not None:
            _set(fused, {}, ACTIVATION)

    def validate(self, model: fx.GraphModule) -> None:
        """Nothing to refuse."""


def _axis(node: fx.Node) -> int:
    """Of the weight's output channels; a depthwise transposed convolution has them first."""
    axis = rules.WEIGHTED[node.target]
    depthwise = axis == 1 and len(node.args) > 6 and node.args[6] != 1
    return 0 if depthwise else axis


def _set(node: fx.Node, inputs: dict[Any, QuantizationSpec], output: QuantizationSpec | None) -> None:
    node.meta["quantization_annotation"] = QuantizationAnnotation(
        input_qspec_map=inputs, output_qspec=output, _annotated=True
    )


def _clamp_behind(node: fx.Node) -> fx.Node | None:
    """The clamp that alone reads the node's result."""
    if len(node.users) != 1:
        return None
    (reader,) = node.users
    return reader if reader.target in rules.CLAMPS else None


def _is_mask(model: fx.GraphModule, node: fx.Node) -> bool:
    if node.target not in MASKS:
        return False
    found = (get_constant(model, a) if isinstance(a, fx.Node) else a for a in node.args)
    constants = [torch.as_tensor(c) for c in found if isinstance(c, (int, float, torch.Tensor))]
    return any(bool((c < FAR).any()) for c in constants)


@compiled_when_called()
def plain(program: ExportedProgram, calibration: tuple[torch.Tensor, ...]) -> fx.GraphModule:
    """The simulated int8 graph of a captured program. calibration: one tensor an input, samples first."""
    with quiet(), torch.no_grad():
        prepared = prepare_pt2e(program.module(check_guards=False), PlainQuantizer())
        for index in range(len(calibration[0])):
            prepared(*(x[index : index + 1] for x in calibration))
        converted: fx.GraphModule = convert_pt2e(prepared)
    return converted
