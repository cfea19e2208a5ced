# SPDX-License-Identifier: Apache-2.0
"""The whole front end: a module (or a captured program) and calibration data → graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram

from tinyet.errors import QuantizationError
from tinyet.importers.torch.capture import capture
from tinyet.importers.torch.importer import import_program
from tinyet.importers.torch.quiet import quiet
from tinyet.ir import Graph
from tinyet.quantization.quantize import Progress, is_quantized, needs_calibration, quantize_fully

with quiet():
    from torchao.quantization.pt2e.quantizer.quantizer import Quantizer


@dataclass(frozen=True)
class FrontendResult:
    """graph: quantized where calibration was given, else as the program is. float_graph: its float twin,
    whose nodes have the same origin keys; None for a program that came quantized."""

    graph: Graph
    float_graph: Graph | None


def trace(model: nn.Module, example_inputs: torch.Tensor | Sequence[torch.Tensor]) -> ExportedProgram:
    """`capture.capture`: the module as a normalised program of core ATen operators."""
    return capture(model, example_inputs)


def lower_program(
    program: ExportedProgram,
    *,
    name: str,
    calibration: Iterable[Any] | None = None,
    quantizer: Quantizer | None = None,
    channels_last: bool = False,
    equalize: bool = False,
    correct_bias: bool = False,
    progress: Progress | None = None,
) -> FrontendResult:
    """A captured program, quantized when there is calibration data, as graphs.

    calibration: batches of inputs (see `quantize.samples`); None leaves the program as it is, unless the
    quantizer needs none. equalize, correct_bias: see `quantize.quantize`. progress: called after each batch.
    """
    if calibration is None and (equalize or correct_bias):
        raise QuantizationError(
            "there is no calibration data to equalize layers or correct biases with",
            hint="give calibration data, or leave these options away",
        )
    if calibration is None and not needs_calibration(quantizer) and not is_quantized(program):
        calibration = ()
    if calibration is None:
        graph = import_program(program, name=name, channels_last=channels_last)
        return FrontendResult(graph, None if is_quantized(program) else graph)
    # first, so that an operator that cannot be lowered is told before minutes of calibration
    float_graph = import_program(program, name=name, channels_last=channels_last)
    quantized = quantize_fully(
        program, calibration, quantizer, progress, equalize=equalize, correct_bias=correct_bias
    )
    if quantized.float_program is not program:
        float_graph = import_program(quantized.float_program, name=name, channels_last=channels_last)
    graph = import_program(quantized.program, name=name, channels_last=channels_last)
    return FrontendResult(graph, float_graph)


def lower_module(
    model: nn.Module,
    example_inputs: torch.Tensor | Sequence[torch.Tensor],
    *,
    name: str,
    calibration: Iterable[Any] | None = None,
    quantizer: Quantizer | None = None,
    channels_last: bool = False,
    equalize: bool = False,
    correct_bias: bool = False,
    progress: Progress | None = None,
) -> FrontendResult:
    """trace, then `lower_program`."""
    return lower_program(
        trace(model, example_inputs), name=name, calibration=calibration, quantizer=quantizer,
        channels_last=channels_last, equalize=equalize, correct_bias=correct_bias, progress=progress,
    )  # fmt: skip
