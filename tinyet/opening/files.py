# SPDX-License-Identifier: Apache-2.0
"""Programs of models that other tools have made: from a file to a Program."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tinyet import passes
from tinyet.compiler import DumpTo, dump_given
from tinyet.errors import TinyetWarning, UsageError
from tinyet.errors.arguments import path_given, runtime_given
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

    A model that holds QuantizeLinear and DequantizeLinear nodes, as ONNX Runtime's quantizer writes them
    (quantize_static, QuantFormat.QDQ), is taken in its own integers, which are ONNX Runtime's: see docs/onnx.md. No
    torch is needed. Any other is a float model, made a torch module and given to `tinyet.compile`.

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
        return _told(_compiled(of_onnx(model, file), calibration, title, float_io, labels, dump, options))
    _refuse_more(file, calibration, options)
    graph, notes = onnx_importer.import_model(model, name=title, exact=exact, float_io=float_io)
    graph, more = passes.run(graph, exact=True, dump=dump_given(dump))
    names = () if labels is None else check_labels(labels, graph.user_outputs[0], "labels")
    return Program(title, graph, None, (*notes, *more), names)


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
