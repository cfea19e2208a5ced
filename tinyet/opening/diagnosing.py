# SPDX-License-Identifier: Apache-2.0
"""Whether a model is healthy when it is quantized: a module, or a float model's file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyet.boards import DEFAULT_BOARD, Board
from tinyet.compiler import cost_on, without_torch
from tinyet.data import Data, data_given
from tinyet.delegates import Delegates
from tinyet.errors import UsageError
from tinyet.opening.float_models import module_given

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram

    from tinyet.quality.remedies import Diagnosis, Phase
    from tinyet.quantization.quantizer import TinyetQuantizer


def diagnose(
    model: torch.nn.Module | ExportedProgram | str | Path,
    example_inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    calibration: Iterable[Any] | str | Path,
    evaluation: Data | str | Path | None = None,
    config: str = "int8",
    observer: str | None = None,
    quantizer: TinyetQuantizer | None = None,
    equalize: bool = False,
    correct_bias: bool = False,
    board: str | Path | Board = DEFAULT_BOARD,
    delegates: Delegates | None = None,
    channels_last: bool = False,
    float_io: bool = False,
    worst: int | None = None,
    progress: Phase | None = None,
) -> Diagnosis:
    """Whether a model is healthy when it is quantized, which layers hurt, and what helps: `tinyet quantize --report`.

    model: as for `tinyet.compile`, or the path of a float .tflite or .onnx file, whose layers have the file's names.
    example_inputs, calibration: as for `tinyet.compile`; a file has its own example inputs, and may be calibrated with
    a .npz file. evaluation: samples to measure with, and labels; by default the calibration data. config: "int8",
    "int16", "int4" or "dynamic" for all layers, with the observer that is named; or a quantizer, which says it all.
    equalize, correct_bias: as it would be compiled. board, delegates, channels_last, float_io: what bytes are counted
    for. worst: exceptions are tried for so many layers, by default for all. progress: told the name of a phase, how
    many are done in it, of how many.

    Raises what `tinyet.compile` raises, and for a file what `tinyet.from_tflite` and `tinyet.from_onnx` raise;
    DataError for evaluation data that does not fit, UsageError where config or observer and a quantizer are given.
    """
    module, example_inputs, batches = module_given(model, example_inputs, calibration)
    try:
        from tinyet.quality.remedies import diagnosis_of
    except ImportError as error:
        raise without_torch(error) from error
    if quantizer is not None and (config != "int8" or observer is not None):
        raise UsageError("the quantizer says how to quantize", hint="leave config and observer away")
    return diagnosis_of(
        module,
        example_inputs,
        batches,
        data_given(evaluation, ()),
        config,
        observer,
        quantizer,
        equalize=equalize,
        correct_bias=correct_bias,
        cost=cost_on(board, delegates, channels_last=channels_last, float_io=float_io),
        worst=worst,
        progress=progress,
    )
