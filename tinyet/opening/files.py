# SPDX-License-Identifier: Apache-2.0
"""Programs of models that other tools have made: from a file to a Program."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tinyet import passes
from tinyet.compiler import DumpTo, compiled, dump_given
from tinyet.errors import TinyetWarning, ToolchainError, UsageError
from tinyet.errors.arguments import path_given, runtime_given
from tinyet.files.model_name import given_or_derived, safe_name
from tinyet.importers.onnx import importer as onnx_importer
from tinyet.importers.onnx import read as onnx_read
from tinyet.importers.tflite.importer import import_model
from tinyet.ir import Graph, Note, Origin, Tensor, substitute
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
    if not model.is_quantized:
        if exact:
            what = "exact=True is for quantized models: a float model is computed in another order"
            raise UsageError(what, str(file), "leave exact away")
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


def _of_floats(
    model: onnx_read.OnnxModel,
    calibration: Iterable[Any] | None,
    name: str,
    float_io: bool,
    labels: Sequence[str] | None,
    dump: DumpTo | None,
    options: dict[str, Any],
) -> Program:
    """A float model by way of torch; its nodes are called after those of the file."""
    try:
        from tinyet.importers.onnx.to_torch import to_torch
    except ImportError as error:
        what = f"a float model is compiled by way of torch, which is not there ({error})"
        raise ToolchainError(
            what, model.file, "pip install 'tinyet[torch]', or quantize it (quantize_static)"
        ) from error
    module, examples = to_torch(model)
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
    notes = (*(Note(text) for text in model.notes), *(_named_note(n, module.origins) for n in program.notes))
    titles = [value.name for value in model.inputs]
    float_graph = program.float_graph and _named(program.float_graph, module.origins, titles)
    graph = _named(program.graph, module.origins, titles)
    answers = program.answers
    if answers is not None:
        called = {a.where: b.where for a, b in zip(program.graph.nodes, graph.nodes, strict=True)}
        begins = [replace(each, layer=called.get(each.layer) or each.layer) for each in answers.begins]
        answers = replace(answers, begins=tuple(begins))
    return replace(program, graph=graph, float_graph=float_graph, notes=notes, answers=answers)


def _named(graph: Graph, origins: Mapping[str, Origin], titles: Sequence[str]) -> Graph:
    """The graph with the file's nodes for debug handles, in the place of lines of the module that was made of them, and
    the file's names of its inputs."""
    nodes = [n.replace(origins=[_named_origin(o, origins) for o in n.origins]) for n in graph.nodes]
    taken = {t.name for n in nodes for t in (*n.inputs, *n.outputs) if t is not None} | {
        t.name for t in graph.inputs
    }
    renamed: dict[Tensor, Tensor] = {}
    for tensor, title in zip(graph.user_inputs, titles, strict=True):
        wanted = safe_name(title)
        if wanted not in taken:
            taken.add(wanted)
            renamed[tensor] = replace(tensor, name=wanted)
    inputs = [renamed.get(tensor, tensor) for tensor in graph.inputs]
    return substitute(graph.replace(nodes=nodes, inputs=inputs), renamed)


def _named_origin(origin: Origin, origins: Mapping[str, Origin]) -> Origin:
    path = origin.module
    while path and path not in origins:
        path = path.rpartition(".")[0]
    found = origins.get(path)
    # The key ties an integer node to its float graph.
    return origin if found is None else replace(found, key=origin.key)


def _named_note(note: Note, origins: Mapping[str, Origin]) -> Note:
    return note if note.origin is None else replace(note, origin=_named_origin(note.origin, origins))
