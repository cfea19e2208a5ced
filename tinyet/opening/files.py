# SPDX-License-Identifier: Apache-2.0
"""Programs of models that other tools have made: from a file to a Program."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tinyet import passes
from tinyet.boards import Board, load_board
from tinyet.compiler import DumpTo, Progress, compiled, dump_given, require_integer
from tinyet.delegates import Delegates, delegates_or_default
from tinyet.deployment import deploy
from tinyet.errors import TinyetWarning, ToolchainError, UsageError
from tinyet.errors.arguments import function_given, path_given, runtime_given
from tinyet.files.model_name import given_or_derived
from tinyet.importers.onnx import importer as onnx_importer
from tinyet.importers.onnx import read as onnx_read
from tinyet.importers.tflite.importer import import_model
from tinyet.program import Program, check_labels
from tinyet.tflite import Runtime, read_file


def file_names(path: Path) -> tuple[str, str]:
    """What a model may be called by: its file, or where that says nothing its folder."""
    return path.stem, path.resolve().parent.name


def from_tflite(
    path: str | Path,
    *,
    runtime: Runtime = "tflm",
    signature: str | None = None,
    name: str | None = None,
    labels: Sequence[str] | None = None,
    dump: DumpTo | None = None,
) -> Program:
    """The Program of a .tflite file, in the file's own integers: the outputs are those of the original kernels, bit for
    bit. No torch is needed.

    runtime: whose arithmetic is followed where TensorFlow Lite Micro and LiteRT differ: "tflm" or "litert".
    signature: which of the file's signatures; by default its main subgraph. name: the prefix of the C functions; by
    default the file's, or its folder's where that is a word like `model`. labels: names of the classes, one for each
    element of the first output. dump: receives the graph's text after each pass; or a directory.

    Raises ModelError for a file that is damaged or no such file, UnsupportedOp (UnsupportedShape) that lists all
    operators that cannot be taken, UsageError for arguments that cannot be.
    """
    file = path_given(path, "from_tflite takes the path of a .tflite file")
    runtime_given(runtime)
    title = given_or_derived(name, *file_names(file))
    graph, notes = import_model(
        read_file(file), name=title, file=file.name, runtime=runtime, signature=signature
    )
    graph, more = passes.run(graph, exact=True, dump=dump_given(dump))
    names = () if labels is None else check_labels(labels, graph.user_outputs[0], "labels")
    return Program(title, graph, None, (*notes, *more), names)


def from_onnx(
    path: str | Path,
    calibration: Iterable[Any] | None = None,
    *,
    name: str | None = None,
    exact: bool = False,
    float_io: bool = False,
    labels: Sequence[str] | None = None,
    dump: DumpTo | None = None,
    **options: Any,
) -> Program:
    """The Program of an ONNX file (opset 13 or newer).

    A model that holds QuantizeLinear and DequantizeLinear nodes, as ONNX Runtime's quantizer writes them
    (quantize_static, QuantFormat.QDQ), is taken in its own integers, which are ONNX Runtime's: see docs/onnx.md. No
    torch is needed. Any other is a float model, made a torch module and given to `tinyet.compile`.

    calibration: batches of typical data (a tensor or array, or a tuple of one for each input) to quantize a float model
    with; without it the model stays float. name: the prefix of the C functions; by default as of `from_tflite`. exact:
    refuse what may differ from ONNX Runtime by a last bit, instead of a note. float_io: inputs and outputs stay float32
    where they are in the file. labels: names of the classes, one for each element of the first output. dump: receives
    the graph's text after each pass; or a directory. options: for a float model, those of `tinyet.compile`.

    Raises ModelError (DynamicShape) for a file that is damaged, too old, or no such file, UnsupportedOp
    (UnsupportedShape) that lists all operators that cannot be taken, ToolchainError without the `onnx` package,
    UsageError for arguments that would have no effect. That a float model's quantized answers are not its own is a
    TinyetWarning.
    """
    file = path_given(path, "from_onnx takes the path of an .onnx file")
    title = given_or_derived(name, *file_names(file))
    model = onnx_read.read_file(file)
    if not model.is_quantized and exact:
        what = "exact=True is for quantized models: a float model is computed in another order"
        raise UsageError(what, str(file), "leave exact away")
    if not model.is_quantized and calibration is None and not _FOR_INTEGERS & _asked(options):
        kept = {key: value for key, value in options.items() if key not in _FOR_INTEGERS}
        return _in_float(model, title, float_io, labels, dump, **kept)
    if not model.is_quantized:
        program = _of_floats(model, calibration, title, float_io, labels, dump, options)
        if program.answers is not None and not program.answers.healthy:
            warnings.warn(TinyetWarning(program.answers.warning), stacklevel=2)
        return program
    late = [*(["calibration"] if calibration is not None else []), *options]
    if late:
        what = f"{', '.join(late)}: the model is quantized already"
        raise UsageError(what, str(file), "give the float model, or leave them away")
    graph, notes = onnx_importer.import_model(model, name=title, exact=exact, float_io=float_io)
    graph, more = passes.run(graph, exact=True, dump=dump_given(dump))
    names = () if labels is None else check_labels(labels, graph.user_outputs[0], "labels")
    return Program(title, graph, None, (*notes, *more), names)


_FOR_INTEGERS = frozenset(("quantizer", "equalize", "correct_bias", "learn_rounding"))
"""Options of `tinyet.compile` that make integers of floats, or fail because they cannot."""


def _asked(options: Mapping[str, Any]) -> set[str]:
    """The options that ask for something."""
    return {name for name, value in options.items() if value is not None and value is not False}


def _in_float(
    model: onnx_read.OnnxModel,
    name: str,
    float_io: bool,
    labels: Sequence[str] | None,
    dump: DumpTo | None,
    *,
    channels_last: bool = False,
    prune: bool = True,
    stateful: bool = False,
    strict: bool = False,
    board: str | Path | Board | None = None,
    delegates: Delegates | None = None,
    progress: Progress | None = None,
) -> Program:
    """A float model that stays one, by the passes of a float model of torch's; progress has nothing to tell."""
    if channels_last and not any(len(value.shape) == 4 for value in model.inputs):
        what = "channels_last says how images lie in memory, and no input has four dimensions"
        raise UsageError(what, model.file, "leave it away")
    function_given(progress, "progress", "it receives how many batches are done, and of how many")
    graph, notes = onnx_importer.import_model(model, name=name, channels_last=channels_last)
    graph, more = passes.run(graph, float_io=float_io, prune=prune, stateful=stateful, dump=dump_given(dump))
    names = () if labels is None else check_labels(labels, graph.user_outputs[0], "labels")
    program = Program(name, graph, None, (*notes, *more), names)
    if strict:
        require_integer(program, ())
    if board is not None:
        deploy(graph, load_board(board).target, delegates_or_default(delegates))
    return program


def _of_floats(
    model: onnx_read.OnnxModel,
    calibration: Iterable[Any] | None,
    name: str,
    float_io: bool,
    labels: Sequence[str] | None,
    dump: DumpTo | None,
    options: dict[str, Any],
) -> Program:
    """A float model by way of torch, called as in the file."""
    try:
        from tinyet.to_module.convert import to_module
    except ImportError as error:
        what = f"a float model is quantized by way of torch, which is not there ({error})"
        raise ToolchainError(
            what, model.file, "pip install 'tinyet[torch]', or quantize it (quantize_static)"
        ) from error
    graph, notes = onnx_importer.import_model(model, name=name)
    module, examples = to_module(graph)
    program = compiled(
        module,
        examples,
        calibration=calibration,
        name=name,
        float_io=float_io,
        labels=labels,
        dump=dump,
        **options,
    )
    return replace(program, notes=(*notes, *program.notes))


def examples_of(model: onnx_read.OnnxModel) -> tuple[Any, ...]:
    import torch

    kinds = {"float64": torch.float32, "float16": torch.float32, "bool": torch.int32, "int64": torch.int32}
    return tuple(
        torch.zeros(v.shape, dtype=kinds.get(v.dtype) or getattr(torch, v.dtype)) for v in model.inputs
    )
