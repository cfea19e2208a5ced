# SPDX-License-Identifier: Apache-2.0
"""Training with the rounding in the loop, of a module or of a float model's file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyet.errors import UsageError
from tinyet.opening.float_models import module_given
from tinyet.quantization import training

if TYPE_CHECKING:
    import torch
    from torch import nn
    from torchao.quantization.pt2e.quantizer.quantizer import Quantizer


def prepare_training(
    model: nn.Module | str | Path,
    example_inputs: torch.Tensor | Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    batch_size: int | None = None,
    quantizer: Quantizer | None = None,
    calibration: Iterable[Any] | str | Path | None = None,
) -> training.Training:
    """A copy of the model with fake quantizers, to be trained in batches of any size.

    model: a module, or the path of a float .tflite or .onnx file, whose layers have the file's names. example_inputs:
        of a module, in the shapes that the firmware takes, as for `tinyet.compile`; what is trained takes their tensors
        one by one. A file has its own.
    batch_size: the usual number of samples in a batch: captured now, so that a model that has no graph for it is
        refused here; otherwise with the first batch.
    quantizer: TinyetQuantizer() by default.
    calibration: typical data, as for `tinyet.compile`, or of a file's model the path of a .npz file; what stands before
        the first layer has the types then that it has there, where int8 would spoil it. Nothing else is done with it:
        training finds the ranges.

    Raises what `tinyet.compile` raises for a model that cannot be captured, what `tinyet.from_tflite` and
    `tinyet.from_onnx` raise for a file, and QuantizationError for settings that cannot be trained for, or when the
    model is another graph for another batch size.
    """
    module, example_inputs, batches = module_given(model, example_inputs, calibration)
    if example_inputs is None:
        raise UsageError(
            "a module needs example_inputs", hint="a tuple of tensors with the shapes that the firmware takes"
        )
    return training.prepare_training(
        module, example_inputs, batch_size=batch_size, quantizer=quantizer, calibration=batches
    )
