# SPDX-License-Identifier: Apache-2.0
"""A module (or a captured program) and calibration data → graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.export import ExportedProgram

from tinyet.errors import QuantizationError, UsageError
from tinyet.fx.argument_checks import check_model
from tinyet.fx.capture import capture, example_inputs_of, lower
from tinyet.fx.examples import example_of
from tinyet.fx.fixed_point import in_float
from tinyet.fx.log_filter import quiet
from tinyet.fx.mutable_buffers import written_buffers
from tinyet.fx.origins import origin_of
from tinyet.fx.precision import said_of
from tinyet.importers.torch.importer import import_program
from tinyet.ir import Array, Graph, Note
from tinyet.quantization.batches import KeptSamples
from tinyet.quantization.fixed_fronts import choose
from tinyet.quantization.quantize import Progress, is_quantized, needs_calibration, quantize_fully

with quiet():
    from torchao.quantization.pt2e.quantizer.quantizer import Quantizer


@dataclass(frozen=True)
class Lowered:
    """graph: quantized where calibration was given, else as the program is. float_graph: its float graph,
    whose nodes have the same origin keys; None for a program that came quantized. notes: what a person should know of
    the calibration. in_float: the keys of the origins of what the quantizer was told to leave in float. samples: some
    of the calibration, each an array an input of the graph's."""

    graph: Graph
    float_graph: Graph | None
    notes: tuple[Note, ...] = ()
    in_float: frozenset[str] = frozenset()
    samples: tuple[tuple[Array, ...], ...] = ()


def lower_program(
    program: ExportedProgram,
    *,
    name: str,
    calibration: Iterable[Any] | None = None,
    quantizer: Quantizer | None = None,
    channels_last: bool = False,
    equalize: bool = False,
    correct_bias: bool = False,
    learn_rounding: bool = False,
    progress: Progress | None = None,
) -> Lowered:
    """A captured program, quantized when there is calibration data, as graphs.

    calibration: batches of inputs (see `quantize.samples`); None leaves the program as it is, unless the
    quantizer needs none.
    equalize, correct_bias, learn_rounding: see `quantize.quantize`. progress: called after each batch.

    Raises QuantizationError for data or a quantizer beside a program that is quantized already, for a quantizer, or
    options, that would need data; UsageError for channels_last without an image.
    """
    if calibration is None and (equalize or correct_bias or learn_rounding):
        raise QuantizationError(
            "there is no calibration data to equalize layers, correct biases or learn roundings with",
            hint="give calibration data, or leave these options away",
        )
    quantized_already = is_quantized(program)
    if quantized_already and (calibration is not None or quantizer is not None):
        raise QuantizationError(
            "the program is quantized already", hint="leave calibration data and quantizer away"
        )
    if calibration is None and quantizer is not None and needs_calibration(quantizer):
        raise QuantizationError(
            "there is no calibration data for the quantizer",
            hint="give calibration data, or leave the quantizer away, for a model in float",
        )
    if channels_last and not any(x.ndim == 4 for x in example_inputs_of(program)):
        raise UsageError(
            "channels_last says how images lie in memory, and no input has four dimensions",
            hint="leave it away",
        )
    if calibration is None and quantizer is not None:
        calibration = ()  # it needs none
    said = tuple(Note(text) for text in said_of(program))
    if calibration is None:
        chosen, told = (program, ()) if quantized_already else choose(program, ())
        graph = import_program(chosen, name=name, channels_last=channels_last)
        floats = in_float(chosen)
        if quantized_already or floats is chosen:
            return Lowered(graph, None if quantized_already else graph, (*said, *told))
        return Lowered(graph, import_program(floats, name=name, channels_last=channels_last), (*said, *told))
    # first, so that an operator that cannot be lowered is told before minutes of calibration
    float_graph = import_program(in_float(program), name=name, channels_last=channels_last)
    kept = KeptSamples(all_of=any(True for _ in written_buffers(program)))
    quantized = quantize_fully(
        program,
        calibration,
        quantizer,
        progress,
        equalize=equalize,
        correct_bias=correct_bias,
        learn_rounding=learn_rounding,
        seen=kept.add,
    )
    if quantized.float_program is not program:
        float_program = in_float(quantized.float_program)
        float_graph = import_program(float_program, name=name, channels_last=channels_last)
    graph = import_program(quantized.program, name=name, channels_last=channels_last)
    notes, samples = (*said, *quantized.notes), _as_taken(kept.samples, channels_last)
    return Lowered(graph, float_graph, notes, _left_in_float(program, quantizer), samples)


def _as_taken(samples: Iterable[Sequence[Array]], channels_last: bool) -> tuple[tuple[Array, ...], ...]:
    """Samples in the order of memory in which the graph takes images."""
    return tuple(
        tuple(np.moveaxis(x, 1, -1) if channels_last and x.ndim == 4 else x for x in sample)
        for sample in samples
    )


def _left_in_float(program: ExportedProgram, quantizer: Quantizer | None) -> frozenset[str]:
    """The keys of what a TinyetQuantizer was told not to quantize; another quantizer cannot be asked."""
    config_of = getattr(quantizer, "config_of", None)
    if config_of is None:
        return frozenset()
    graph = program.module(check_guards=False).graph
    return frozenset(
        origin_of(node).key for node in graph.nodes if node.op == "call_function" and config_of(node) is None
    )


def lower_model(
    model: nn.Module | ExportedProgram,
    example_inputs: torch.Tensor | Sequence[Any] | Mapping[str, Any] | None,
    *,
    name: str,
    calibration: Iterable[Any] | None = None,
    quantizer: Quantizer | None = None,
    channels_last: bool = False,
    equalize: bool = False,
    correct_bias: bool = False,
    learn_rounding: bool = False,
    progress: Progress | None = None,
) -> Lowered:
    """A module, or a program that `torch.export` made of one, captured, then `lower_program`.

    example_inputs, and what is raised: as of `captured`.
    """
    program, batches = captured(model, example_inputs, calibration)
    return lower_program(
        program, name=name, calibration=batches, quantizer=quantizer, channels_last=channels_last,
        equalize=equalize, correct_bias=correct_bias, learn_rounding=learn_rounding, progress=progress,
    )  # fmt: skip


def captured(
    model: nn.Module | ExportedProgram,
    example_inputs: torch.Tensor | Sequence[Any] | Mapping[str, Any] | None,
    calibration: Iterable[Any] | None,
) -> tuple[ExportedProgram, Iterable[Any] | None]:
    """A model as a captured program, and calibration data as batches of its inputs.

    example_inputs: as `capture.capture` takes them, for a module; a program has its own. Raises UsageError for a module
    without, for a program with them, and for what is neither.
    """
    check_model(model)
    if not isinstance(model, nn.Module):
        if example_inputs is not None:
            raise UsageError(
                "an exported program has its own example inputs", hint="leave example_inputs away"
            )
        return lower(model), calibration
    if example_inputs is None:
        raise UsageError(
            "a module needs example_inputs", hint="a tuple of tensors with the shapes that the firmware takes"
        )
    example = example_of(example_inputs)
    return capture(model, example), example.batches(calibration)
