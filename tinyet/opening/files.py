# SPDX-License-Identifier: Apache-2.0
"""Programs of models that other tools have made: from a file to a Program."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tinyet import passes
from tinyet.boards import Board, load_board
from tinyet.compiler import DumpTo, Progress, dump_given, require_integer
from tinyet.delegates import Delegates, delegates_or_default
from tinyet.deployment import deploy
from tinyet.errors import TinyetWarning, UsageError
from tinyet.errors.arguments import function_given, path_given, runtime_given
from tinyet.files.model_name import given_or_derived
from tinyet.importers.onnx import importer as onnx_importer
from tinyet.importers.onnx import read as onnx_read
from tinyet.importers.tflite.floats import holds_integers
from tinyet.importers.tflite.importer import import_model
from tinyet.opening.float_models import FloatModel, of_onnx, of_tflite
from tinyet.program import Program, check_labels
from tinyet.tflite import Runtime, read_file


def file_names(path: Path) -> tuple[str, str]:
    """What a model may be called by: its file, or where that says nothing its folder."""
    return path.stem, path.resolve().parent.name


def from_tflite(
    path: str | Path,
    calibration: Iterable[Any] | str | Path | None = None,
    *,
    runtime: Runtime = "tflm",
    signature: str | None = None,
    name: str | None = None,
    float_io: bool = False,
    labels: Sequence[str] | None = None,
    dump: DumpTo | None = None,
    **options: Any,
) -> Program:
    """The Program of a .tflite file.

    A quantized model is taken in its own integers: the outputs are those of the original kernels, bit for bit. A float
    model stays float, or is quantized here, with its layers' names; weights of a dynamic-range or float16 file become
    the floats that they stand for first. Only quantizing needs torch.

    calibration: batches of typical data (a tensor or array, or a tuple of one for each input), or the path of a .npz
    file, to quantize a float model with. runtime: whose arithmetic is followed where TensorFlow Lite Micro and LiteRT
    differ: "tflm" or "litert". signature: which of the file's signatures; by default its main subgraph. name: the
    prefix of the C functions; by default the file's, or its folder's where that is a word like `model`. float_io:
    inputs and outputs of a model that is quantized here stay float32. labels: names of the classes, one for each
    element of the first output. dump: receives the graph's text after each pass; or a directory. options: for a float
    model, those of `tinyet.compile`.

    Raises ModelError for a file that is damaged or no such file, UnsupportedOp (UnsupportedShape) that lists all
    operators that cannot be taken, UsageError for arguments that cannot be, ToolchainError where torch is needed and is
    not there. That a float model's quantized answers are not its own is a TinyetWarning.
    """
    file = path_given(path, "from_tflite takes the path of a .tflite file")
    runtime_given(runtime)
    title = given_or_derived(name, *file_names(file))
    model = read_file(file)
    if holds_integers(model):
        _refuse_more(file, calibration, {**options, **({"float_io": float_io} if float_io else {})})
    elif calibration is not None or options:
        if runtime != "tflm":
            what = "runtime: a float model gets tinyet's own integers, which follow no runtime's choices"
            raise UsageError(what, str(file), "leave runtime away")
        found = of_tflite(model, file, signature)
        return _told(_compiled(found, calibration, title, float_io, labels, dump, options))
    graph, notes = import_model(model, name=title, file=file.name, runtime=runtime, signature=signature)
    graph, more = passes.run(graph, exact=True, dump=dump_given(dump))
    names = () if labels is None else check_labels(labels, graph.user_outputs[0], "labels")
    return Program(title, graph, None, (*notes, *more), names)


def from_onnx(
    path: str | Path,
    calibration: Iterable[Any] | str | Path | None = None,
    *,
    name: str | None = None,
    exact: bool = False,
    float_io: bool = False,
    labels: Sequence[str] | None = None,
    dump: DumpTo | None = None,
    **options: Any,
) -> Program:
    """The Program of an ONNX file (opset 13 or newer).

    A model that ONNX Runtime's quantizer has made (quantize_static, quantize_dynamic) is taken in its own integers,
    which are ONNX Runtime's: see docs/onnx.md. A float model stays float, or is quantized here, with its layers' names.
    Only quantizing needs torch.

    calibration: batches of typical data (a tensor or array, or a tuple of one for each input), or the path of a .npz
    file, to quantize a float model with; without it the model stays float. name: the prefix of the C functions; by
    default as of `from_tflite`. exact: refuse what may differ from ONNX Runtime by a last bit, instead of a note.
    float_io: inputs and outputs stay float32 where they are in the file. labels: names of the classes, one for each
    element of the first output. dump: receives the graph's text after each pass; or a directory. options: for a float
    model, those of `tinyet.compile`.

    Raises ModelError (DynamicShape) for a file that is damaged, too old, or no such file, UnsupportedOp
    (UnsupportedShape) that lists all operators that cannot be taken, ToolchainError without the `onnx` package,
    UsageError for arguments that would have no effect. That a float model's quantized answers are not its own is a
    TinyetWarning.
    """
    file = path_given(path, "from_onnx takes the path of an .onnx file")
    title = given_or_derived(name, *file_names(file))
    model = onnx_read.read_file(file)
    if not model.is_quantized:
        if exact:
            what = "exact=True is for quantized models: a float model is computed in another order"
            raise UsageError(what, str(file), "leave exact away")
        if calibration is None and not asks_for_integers(options):
            kept = {key: value for key, value in options.items() if key not in _FOR_INTEGERS}
            return _in_float(model, title, float_io, labels, dump, **kept)
        return _told(_compiled(of_onnx(model, file), calibration, title, float_io, labels, dump, options))
    _refuse_more(file, calibration, options)
    graph, notes = onnx_importer.import_model(model, name=title, exact=exact, float_io=float_io)
    # Of 16 bits ONNX Runtime has no operators of integers: ours are formed of the float ones between them.
    wide = model.has_int16
    graph, more = passes.run(graph, exact=not wide, float_io=wide and float_io, dump=dump_given(dump))
    names = () if labels is None else check_labels(labels, graph.user_outputs[0], "labels")
    return Program(title, graph, None, (*notes, *more), names)


_FOR_INTEGERS = frozenset(("quantizer", "equalize", "correct_bias", "learn_rounding"))
"""Options of `tinyet.compile` that make integers of floats, or fail because they cannot."""


def asks_for_integers(options: Mapping[str, Any]) -> bool:
    """Whether options of a float model's, without calibration data, are for the quantizer to judge."""
    return any(options.get(name) not in (None, False) for name in _FOR_INTEGERS)


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
    if delegates is not None and board is None:
        what = "delegates choose kernels for a board, and there is no board"
        raise UsageError(what, model.file, "give board=, too, or give the delegates to `generate`")
    function_given(progress, "progress", "it receives how many batches are done, and of how many")
    graph, notes = onnx_importer.import_model(model, name=name, channels_last=channels_last)
    written = dump_given(dump)
    graph, more = passes.run(graph, float_io=float_io, prune=prune, stateful=stateful, dump=written)
    names = () if labels is None else check_labels(labels, graph.user_outputs[0], "labels")
    program = Program(name, graph, None, (*notes, *more), names)
    if strict:
        require_integer(program, ())
    if board is not None:
        deploy(graph, load_board(board).target, delegates_or_default(delegates))
    return program


def _refuse_more(file: Path, calibration: object, options: Mapping[str, Any]) -> None:
    """Raise UsageError where it is said how to quantize a model that has integers of its own."""
    given = [*(["calibration"] if calibration is not None else []), *options]
    if given:
        what = f"{', '.join(given)}: the model is quantized already"
        raise UsageError(what, str(file), "give the float model, or leave them away")


def _compiled(
    model: FloatModel,
    calibration: Iterable[Any] | str | Path | None,
    name: str,
    float_io: bool,
    labels: Sequence[str] | None,
    dump: DumpTo | None,
    options: Mapping[str, Any],
) -> Program:
    return model.compiled(
        calibration=None if calibration is None else model.batches(calibration),
        name=name,
        float_io=float_io,
        labels=labels,
        dump=dump,
        **options,
    )


def _told(program: Program) -> Program:
    """The program; a warning where its answers are not the float model's."""
    if program.answers is not None and not program.answers.healthy:
        warnings.warn(TinyetWarning(program.answers.warning), stacklevel=3)
    return program
