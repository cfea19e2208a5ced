# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Lite Micro's interpreter where it is installed, else LiteRT's, both with their reference kernels."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Sequence
from pathlib import Path

from tinyet.errors import ModelError, ToolchainError
from tinyet.ir import Array
from tinyet.tflite import read_file

_ARENA_BYTES = 1 << 26
"""For TFLM's interpreter: it plans worse than we do, and is on a large machine here."""


def run_tflite(path: Path, inputs: Sequence[Sequence[Array]]) -> tuple[str, list[list[Array]]]:
    """(the runtime, its outputs for each run). Raises ToolchainError, ModelError."""
    subgraph = read_file(path).subgraphs[0]
    kinds = [(subgraph.tensors[i].type, subgraph.tensors[i].shape) for i in subgraph.inputs]
    for given in inputs:
        if len(given) != len(kinds):
            raise ModelError(f"the original takes {len(kinds)} inputs, the program {len(given)}", str(path))
    runs = [
        [x.reshape(shape).astype(kind) for x, (kind, shape) in zip(given, kinds, strict=True)]
        for given in inputs
    ]
    for module, run in (("tflite_micro", run_tflm), ("ai_edge_litert", run_litert)):
        if importlib.util.find_spec(module) is not None:
            title = "TensorFlow Lite Micro" if run is run_tflm else "LiteRT, reference kernels,"
            try:
                return f"{title} {importlib.metadata.version(module.replace('_', '-'))}", run(path, runs)
            except (RuntimeError, ValueError) as error:
                raise ToolchainError(f"{title} does not run this model: {error}", str(path)) from error
    raise ToolchainError(
        "no runtime of .tflite files is installed", hint="pip install tflite-micro, or ai-edge-litert"
    )


def run_tflm(path: Path, runs: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """By TFLM's own interpreter; variable tensors go on from run to run."""
    from tflite_micro.python.tflite_micro import runtime  # type: ignore[import-untyped, unused-ignore]

    outputs = len(read_file(path).subgraphs[0].outputs)
    interpreter = runtime.Interpreter.from_file(str(path), arena_size=_ARENA_BYTES)
    answers = []
    for given in runs:
        for index, x in enumerate(given):
            interpreter.set_input(x, index)
        interpreter.invoke()
        answers.append([interpreter.get_output(i).copy() for i in range(outputs)])
    return answers


def run_litert(path: Path, runs: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """By LiteRT with its reference kernels: the optimised ones give other bits."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    takes, gives = interpreter.get_input_details(), interpreter.get_output_details()
    answers = []
    for given in runs:
        for detail, x in zip(takes, given, strict=True):
            interpreter.set_tensor(detail["index"], x)
        interpreter.invoke()
        answers.append([interpreter.get_tensor(detail["index"]).copy() for detail in gives])
    return answers
