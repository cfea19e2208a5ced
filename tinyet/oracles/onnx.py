# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime. A model's file takes and gives real numbers where the program has integers at its border: the same
numbers stand for them."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tinyet.errors import ModelError
from tinyet.importers.onnx.oracle import LEVELS, Level, run_onnxruntime
from tinyet.importers.onnx.read import read_file
from tinyet.ir import Array
from tinyet.numerics import dequantize, quantize
from tinyet.program import Program

OTHER_LEVELS = LEVELS[1:]


def run_onnx(
    path: Path, program: Program, inputs: Sequence[Sequence[Array]], level: Level = "ORT_ENABLE_ALL"
) -> tuple[str, list[list[Array]]]:
    """(the runtime and its level of optimization, its outputs for each run, as integers where the program has them).
    Raises ToolchainError, ModelError, DataError."""
    values = read_file(path).inputs
    if len(values) != len(program.inputs):
        raise ModelError(
            f"the original takes {len(values)} inputs, the program {len(program.inputs)}", str(path)
        )
    answers = []
    for given in inputs:
        feed: dict[str, Array] = {}
        for value, tensor, x in zip(values, program.inputs, given, strict=True):
            real = value.dtype.startswith("float") and tensor.type.quant is not None
            numbers = dequantize(x, tensor.type.quant) if real and tensor.type.quant is not None else x
            feed[value.name] = np.asarray(numbers).astype(value.dtype).reshape(value.shape)
        found = run_onnxruntime(path, feed, level)
        if len(found) != len(program.outputs):
            raise ModelError(
                f"the original has {len(found)} outputs, the program {len(program.outputs)}", str(path)
            )
        answers.append(
            [
                quantize(y, tensor.type) if y.dtype.kind == "f" and tensor.type.quant is not None else y
                for y, tensor in zip(found, program.outputs, strict=True)
            ]
        )
    return f"ONNX Runtime {importlib.metadata.version('onnxruntime')} ({level})", answers
