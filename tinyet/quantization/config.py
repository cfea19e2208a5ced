# SPDX-License-Identifier: Apache-2.0
"""The quantization of a layer: the type of its activations and weights, and the search for their ranges.

A `QuantConfig` is given to `TinyetQuantizer`: for all, or for named modules, types of modules, operators.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from tinyet.errors import QuantizationError
from tinyet.fx.log_filter import quiet
from tinyet.quantization import observers

with quiet():
    from torchao.quantization.pt2e.observer import PlaceholderObserver
    from torchao.quantization.pt2e.quantizer.quantizer import (
        FixedQParamsQuantizationSpec,
        QuantizationSpec,
        QuantizationSpecBase,
    )

OUTPUTS = ("calibrated", "litert")
"""Which parameters the results of sigmoid, tanh, hardsigmoid, softmax and log_softmax have, whose range is known in
advance: LiteRT's unless those that calibration finds are better (`observers.Known`), or LiteRT's always."""

SMALLEST_DYNAMIC_SCALE = 2.0**-100
"""Of an input that is quantized at run time: times a weight's scale it is still a normal float32."""


@dataclass(frozen=True)
class KnownRangeSpec(QuantizationSpec):  # type: ignore[misc]
    """Of a result whose range is known in advance; `known` goes to the observer."""

    known: observers.Known | None = None


@dataclass(frozen=True)
class QuantConfig:
    """activation: per tensor; with `is_dynamic` its parameters are found on the device, and only layers with
    weights are quantized. weight: per output channel, symmetric. outputs: one of OUTPUTS. trained: fake quantizers
    stand in the observers' place.
    """

    activation: QuantizationSpec
    weight: QuantizationSpec
    outputs: str = "calibrated"
    trained: bool = False

    def __post_init__(self) -> None:
        if self.outputs not in OUTPUTS:
            raise QuantizationError(
                f"there are no {self.outputs!r} outputs", hint=f"one of {', '.join(OUTPUTS)}"
            )

    def of_known_range(self, known: observers.Known) -> QuantizationSpecBase:
        """The spec of a result whose range is known in advance."""
        spec = self.activation
        if self.outputs == "litert":
            return FixedQParamsQuantizationSpec(
                spec.dtype, known.scale, known.zero_point, spec.quant_min, spec.quant_max,
                torch.per_tensor_affine,
            )  # fmt: skip
        observer = observers.KNOWN_RANGE_FAKE_QUANTIZE if self.trained else observers.KNOWN_RANGE_OBSERVER
        return KnownRangeSpec(spec.dtype, observer, spec.quant_min, spec.quant_max, spec.qscheme, known=known)

    @property
    def dynamic(self) -> bool:
        """Whether activations are quantized at run time."""
        return bool(self.activation.is_dynamic)

    def for_training(self) -> QuantConfig:
        """The same with fake quantizers in the observers' place. Raises QuantizationError when dynamic."""
        if self.dynamic:
            raise QuantizationError(
                "activations that are quantized at run time cannot be trained for",
                hint="train with int8_config(), int16_config() or int4_config()",
            )
        weight = self.weight.observer_or_fake_quant_ctr
        return replace(
            self,
            trained=True,
            activation=replace(
                self.activation, observer_or_fake_quant_ctr=observers.activation_fake_quantize()
            ),
            weight=replace(self.weight, observer_or_fake_quant_ctr=observers.weight_fake_quantize(weight)),
        )


def _weights(limit: int, observer: str) -> QuantizationSpec:
    return QuantizationSpec(
        torch.int8, observers.weight_observer(observer), -limit, limit, torch.per_channel_symmetric, 0
    )


def _int8_activations(observer: str) -> QuantizationSpec:
    return QuantizationSpec(
        torch.int8, observers.activation_observer(observer), -128, 127, torch.per_tensor_affine
    )


def int8_config(
    observer: str = "histogram", weights: str = "minmax", outputs: str = "calibrated"
) -> QuantConfig:
    """int8 activations per tensor, affine, and int8 weights per channel.

    observer: how an activation's range is found (see `observers`). weights: the same for weights, "minmax" or
    "mse". outputs: "litert" gives sigmoid, softmax and their kind LiteRT's scales, and so LiteRT's bits (OUTPUTS).
    """
    return QuantConfig(_int8_activations(observer), _weights(127, weights), outputs)


def int16_config(
    observer: str = "minmax", weights: str = "minmax", outputs: str = "calibrated"
) -> QuantConfig:
    """int16 activations per tensor, symmetric, and int8 weights per channel ("16x8"). With 65536 steps there
    is nothing to win by clipping, so `minmax` is the default."""
    spec = QuantizationSpec(
        torch.int16, observers.activation_observer(observer), -32768, 32767, torch.per_tensor_symmetric
    )
    return QuantConfig(spec, _weights(127, weights), outputs)


def int4_config(
    observer: str = "histogram", weights: str = "mse", bits: int = 4, outputs: str = "calibrated"
) -> QuantConfig:
    """int8 activations and int4 weights (-7..7) per channel, two to a byte in flash.

    bits: 3 or 2 use -3..3 or -1..1 of what four bits can hold: no smaller in flash, but what training must
    cope with. Raises QuantizationError for others.
    """
    if bits not in (2, 3, 4):
        raise QuantizationError(f"int4 weights cannot have {bits} bits", hint="bits is 4, 3 or 2")
    return QuantConfig(_int8_activations(observer), _weights(2 ** (bits - 1) - 1, weights), outputs)


def dynamic_config(weights: str = "minmax") -> QuantConfig:
    """int8 weights per channel; a layer's input is quantized when it runs, by its own range, and its output is
    float. Linear layers and convolutions only, everything else stays in float; needs no calibration data."""
    observer = PlaceholderObserver.with_args(eps=SMALLEST_DYNAMIC_SCALE)
    spec = QuantizationSpec(torch.int8, observer, -128, 127, torch.per_tensor_affine, is_dynamic=True)
    return QuantConfig(spec, _weights(127, weights))


KINDS = ("int8", "int16", "int4", "dynamic", "float")

USUAL_OBSERVERS = {"int8": "histogram", "int16": "minmax", "int4": "histogram"}
"""Of the kinds that have one, where none is named."""


def make_config(kind: str, observer: str | None = None, outputs: str = "calibrated") -> QuantConfig | None:
    """The configuration that a name means; None, which leaves in float, for "float". observer: of activations, outputs:
    as in `int8_config`, where the kind has any. Raises QuantizationError for an unknown name."""
    named = observer or USUAL_OBSERVERS.get(kind, "")
    made: dict[str, Callable[[], QuantConfig | None]] = {
        "int8": lambda: int8_config(named, outputs=outputs),
        "int16": lambda: int16_config(named, outputs=outputs),
        "int4": lambda: int4_config(named, outputs=outputs),
        "dynamic": dynamic_config,
        "float": lambda: None,
    }
    if kind not in made:
        raise QuantizationError(f"there is no configuration {kind!r}", hint=f"one of {', '.join(KINDS)}")
    return made[kind]()
