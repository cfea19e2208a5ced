# SPDX-License-Identifier: Apache-2.0
"""MODEL on the command line → a Program and the samples to validate it with.

`.tet`, `.tflite` and quantized `.onnx` files are read as they are; for everything else torch is imported, here and not
before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyet.boards import load_board
from tinyet.cli import ui
from tinyet.compiler import compile as compile_model
from tinyet.compiler import float_layers, require_integer
from tinyet.data import Data, array_of, encode_data, make_samples, read_data, refuse_indices
from tinyet.data.watched import Watched, doubts_of, watch
from tinyet.delegates import Delegate, delegates_or_default
from tinyet.deployment import deploy
from tinyet.errors import DataError, ModelError, TinyetError, ToolchainError, UsageError
from tinyet.errors.arguments import OverTime
from tinyet.files.model_name import check_name, safe_name
from tinyet.files.sniffing import foreign_error
from tinyet.importers.onnx.read import read_file as read_onnx
from tinyet.importers.tflite.context import Rounding
from tinyet.ir import Array, DType, Note
from tinyet.opening.files import from_onnx, from_tflite
from tinyet.program import Program, load

if TYPE_CHECKING:
    from tinyet.importers.torch.source import ModelSource


@dataclass(frozen=True)
class CaptureOptions:
    """How to make a program of a model; each is the command-line option of its name."""

    calibration: Path | None = None
    name: str | None = None
    board: str | None = None
    strict: bool = False
    float_io: bool = False
    channels_last: bool = False
    dump_ir: Path | None = None
    delegates: tuple[Delegate, ...] | None = None
    over_time: OverTime | None = None
    stateful: bool = False
    rounding: Rounding = "tflm"
    signature: str | None = None


@dataclass(frozen=True)
class Compiled:
    """A program, the samples that came with its source, and what a person should be told."""

    program: Program
    evaluation: Data | None = None
    warnings: tuple[str, ...] = ()


def obtain(model: str, options: CaptureOptions) -> Compiled:
    """The program that MODEL names. Raises UsageError when there is no such file, and whatever is wrong with
    the model."""
    check_path(model)
    if options.name is not None:
        check_name(options.name, "--name")
    if model.endswith(".tet"):
        with ui.stages("reading the program"):
            return _read(model, options)
    if model.endswith(".tflite"):
        with ui.stages("reading the model"):
            return _converted(model, options)
    if (options.rounding, options.signature) != ("tflm", None):
        raise UsageError("--rounding and --signature are about .tflite files", model, "leave them away")
    if model.endswith(".onnx"):
        with ui.stages("reading the model") as progress:
            return _of_onnx(model, options, progress)
    with ui.stages("loading torch") as progress:
        return _capture(model, options, progress)


def _capture(model: str, options: CaptureOptions, progress: ui.Advance) -> Compiled:
    try:
        from tinyet.importers.torch.source import load_source
    except ImportError as error:
        raise ToolchainError(
            f"capturing a model needs torch and torchao: {error}",
            model,
            "pip install 'tinyet[torch]', or capture it elsewhere with `tinyet compile` and bring the .tet",
        ) from error
    source = load_source(model)
    quantizer = None if source.quantizer is None else call_users(source.quantizer, "quantizer()")
    labels = labels_of(source)
    given = calibration_of(source, options.calibration)
    batches = None if given is None else watch(given)
    program = compile_model(
        source.program,
        calibration=batches,
        name=options.name or safe_name(source.name),
        quantizer=quantizer,
        board=options.board,
        delegates=options.delegates,
        channels_last=options.channels_last,
        float_io=options.float_io,
        stateful=options.stateful,
        labels=labels,
        dump=None if options.dump_ir is None else _dumper(options.dump_ir),
        progress=progress,
    )
    if options.strict:
        require_integer(program, asked_keys=_left_in_float(source, quantizer))
    over_time = options.over_time or source.over_time
    if over_time is not None:
        return _streaming(program, over_time, options.channels_last, batches)
    evaluation, remarks = evaluation_of(source, program, options.channels_last)
    doubts = doubts_of(program.inputs, program.outputs, batches, evaluation)
    return Compiled(program, evaluation, (*warnings_of(program), *remarks, *doubts))


def _streaming(program: Program, asked: OverTime, channels_last: bool, batches: Watched | None) -> Compiled:
    """A program of windows made to take frames. What evaluation() gives are windows, which it does not take."""
    doubts = doubts_of(program.inputs, program.outputs, batches, None)
    program = program.streaming(asked.axis, hop=asked.hop, edges=asked.edges, channels_last=channels_last)
    return Compiled(program, None, (*warnings_of(program), *doubts))


def check_path(model: str) -> None:
    """Raise UsageError unless MODEL names a file of a kind that is known, before anything slow begins."""
    match = re.fullmatch(r"(.+\.py):([A-Za-z_]\w*)", model)
    path = Path(match[1] if match else model)
    kinds = (
        "MODEL is file.py, file.py:factory, a .pt2 saved by torch.export.save, a .tflite, an .onnx, "
        "or a .tet program"
    )
    if (path / "saved_model.pb").is_file():
        raise UsageError("MODEL is a TensorFlow SavedModel", str(path), f"{kinds}; convert it to .tflite")
    if path.is_dir():
        raise UsageError("MODEL is a directory", str(path), kinds)
    if not path.is_file():
        raise UsageError(f"there is no file {path}", hint=kinds)
    if path.suffix not in (".py", ".pt2", ".tet", ".tflite", ".onnx"):
        raise foreign_error(path)


def _read(path: str, options: CaptureOptions) -> Compiled:
    given = {
        "--calibration": options.calibration is not None,
        "--float-io": options.float_io,
        "--channels-last": options.channels_last,
        "--dump-ir": options.dump_ir is not None,
        "--stateful": options.stateful,
    }
    late = [option for option, is_given in given.items() if is_given]
    if late:
        raise UsageError(
            f"{', '.join(late)}: a .tet program is compiled already",
            path,
            "give these options when it is made from the model",
        )
    program = load(path)
    if options.strict:
        require_integer(program)
    if options.over_time is not None:
        return _streaming(program, options.over_time, channels_last=False, batches=None)
    return Compiled(program, None, warnings_of(program))


def _converted(path: str, options: CaptureOptions) -> Compiled:
    """A .tflite file: its integers are its own, and nothing about them is left to choose."""
    given = {
        "--calibration": options.calibration is not None,
        "--float-io": options.float_io,
        "--channels-last": options.channels_last,
        "--stateful": options.stateful,
    }
    idle = [option for option, is_given in given.items() if is_given]
    if idle:
        raise UsageError(
            f"{', '.join(idle)}: a .tflite model is quantized already, or float on purpose",
            path,
            "leave it away: inputs, outputs and states are as the file has them",
        )
    program = from_tflite(
        path,
        rounding=options.rounding,
        signature=options.signature,
        name=options.name,
        dump=None if options.dump_ir is None else _dumper(options.dump_ir),
    )
    if options.board is not None:
        deploy(program.graph, load_board(options.board).target, delegates_or_default(options.delegates))
    if options.strict:
        require_integer(program)
    if options.over_time is not None:
        return _streaming(program, options.over_time, channels_last=True, batches=None)
    return Compiled(program, None, warnings_of(program))


def _of_onnx(path: str, options: CaptureOptions, progress: ui.Advance) -> Compiled:
    """An .onnx file: quantized by ONNX Runtime's quantizer, or a float model, which is quantized here."""
    model = read_onnx(Path(path))
    calibration = None
    given: dict[str, Any] = {}
    if not model.is_quantized:
        given = {"channels_last": options.channels_last, "stateful": options.stateful, "progress": progress}
        if options.calibration is not None:
            from tinyet.importers.onnx.to_torch import examples_of
            from tinyet.quantization.batches import batches_of

            arrays = read_data(options.calibration, [value.name for value in model.inputs]).arrays
            calibration = batches_of(arrays, examples_of(model), str(options.calibration))
    else:
        asked = {
            "--calibration": options.calibration is not None,
            "--channels-last": options.channels_last,
            "--stateful": options.stateful,
        }
        if idle := [option for option, is_given in asked.items() if is_given]:
            raise UsageError(
                f"{', '.join(idle)}: this ONNX model is quantized already",
                path,
                "leave it away, or give the model before it was quantized",
            )
    batches = None if calibration is None else watch(calibration)
    program = from_onnx(
        path,
        batches,
        name=options.name,
        float_io=options.float_io,
        dump=None if options.dump_ir is None else _dumper(options.dump_ir),
        **given,
    )
    if options.board is not None:
        deploy(program.graph, load_board(options.board).target, delegates_or_default(options.delegates))
    if options.strict:
        require_integer(program)
    if options.over_time is not None:
        return _streaming(program, options.over_time, options.channels_last, batches)
    doubts = doubts_of(program.inputs, program.outputs, batches, None)
    return Compiled(program, None, (*warnings_of(program), *doubts))


def warnings_of(program: Program) -> tuple[str, ...]:
    """The compiler's notes, and the layers that compute in float, each in a line with its source."""
    floats = float_layers(program.graph)
    # Weights of layers that quantize their input at run time are the only integers of some models.
    tensors = (*program.graph.constants, *(t for node in program.graph.nodes for t in node.outputs))
    if floats and not any(t.dtype in (DType.INT8, DType.INT16) for t in tensors):
        return (*map(str, program.notes), "nothing is quantized: every layer computes in float32")
    told = {note.origin for note in program.notes}
    silent = [node for node in floats if not told & set(node.origins)]
    lines = [
        str(Note(f"{node.op} computes in float32", node.origins[-1] if node.origins else None))
        for node in silent
    ]
    return tuple(dict.fromkeys((*map(str, program.notes), *lines)))


def call_users(function: Callable[[], Any], label: str) -> Any:
    """The result of one of the user's functions; its exceptions become a ModelError at the user's line."""
    from tinyet.fx.blame import frame_of_exception, message_of

    try:
        return function()
    except TinyetError:
        raise
    except Exception as error:
        frame = frame_of_exception(error)
        raise ModelError(f"{label} raises {message_of(error)}", str(frame) if frame else None) from error


def _dumper(directory: Path) -> Callable[[str, str], None]:
    """Writes the graph after each pass as `directory`/<pass>.txt. What is there already when a later pass
    fails stays: to look at it is what the option is for."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the directory: {error.strerror}", str(directory)) from error

    def dump(name: str, text: str) -> None:
        ui.write_file(directory / f"{name}.txt", text.encode())

    return dump


# ---------------------------------------------------------------- quantization


def _left_in_float(source: ModelSource, quantizer: Any) -> frozenset[str]:
    """The keys of what a TinyetQuantizer was told not to quantize; another quantizer cannot be asked."""
    config_of = getattr(quantizer, "config_of", None)
    if config_of is None:
        return frozenset()
    from tinyet.fx.origins import origin_of

    graph = source.program.module(check_guards=False).graph
    return frozenset(
        origin_of(node).key for node in graph.nodes if node.op == "call_function" and config_of(node) is None
    )


def calibration_of(source: ModelSource, path: Path | None) -> Iterable[Any] | None:
    """The batches of --calibration, or of the source's own calibration(), or None."""
    if path is None:
        return None if source.calibration is None else call_users(source.calibration, "calibration()")
    from tinyet.quantization.batches import batches_of

    arrays = read_data(path, list(source.program.graph_signature.user_inputs)).arrays
    return batches_of(arrays, source.example_inputs, str(path))


def labels_of(source: ModelSource) -> Any:
    """The names of the classes that the source gives, or None."""
    return None if source.labels is None else call_users(source.labels, "labels()")


# ---------------------------------------------------------------- evaluation


def evaluation_of(
    source: ModelSource, program: Program, channels_last: bool
) -> tuple[Data | None, list[str]]:
    """The samples of the source's evaluation() in the program's shapes, and remarks about them.

    evaluation() gives (inputs, expected), stacked, or an iterable of such pairs. What is expected counts as a
    label when it is one whole number a sample.
    """
    if source.evaluation is None:
        return None, []
    where = f"evaluation() in {source.path}"
    function = source.evaluation

    def collect() -> list[tuple[Any, Any]]:
        given = function()
        batches: Iterable[Any] = [given] if _is_single_pair(given) else given
        return list(batches)

    pairs = call_users(collect, "evaluation()")
    if not pairs or not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs):
        raise DataError("evaluation() must give inputs and what is expected", where, "return inputs, labels")
    columns: list[list[Array]] = [[] for _ in source.example_inputs]
    expected: list[Array] = []
    for inputs, answer in pairs:
        values = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
        if len(values) != len(columns):
            raise DataError(f"evaluation() gives {len(values)} inputs, the model takes {len(columns)}", where)
        for column, value, example in zip(columns, values, source.example_inputs, strict=True):
            array = array_of(value)
            column.append(array[None] if array.ndim == example.ndim - 1 else array)
        expected.append(np.atleast_1d(array_of(answer)))
    try:
        arrays = [np.concatenate(column) for column in columns]
        answers = np.concatenate(expected)
    except ValueError as error:
        raise DataError(f"the batches of evaluation() do not fit together: {error}", where) from error
    arrays = [
        _as_program(a, e.ndim, channels_last) for a, e in zip(arrays, source.example_inputs, strict=True)
    ]
    batch = program.inputs[0].shape[0] if program.inputs[0].shape else 1
    remarks: list[str] = []
    labels: Array | None = answers.reshape(-1)
    if batch > 1:
        labels = None
        arrays = [a[: len(a) // batch * batch].reshape(-1, batch, *a.shape[1:]) for a in arrays]
        remarks.append(f"evaluation(): no accuracy, because the model takes {batch} samples at a time")
    elif answers.dtype.kind not in "iub" or answers.size != len(answers):
        labels = None
        remarks.append("evaluation(): no accuracy, because what is expected is not one class index a sample")
    try:
        make_samples(program.inputs, arrays, labels)
        refuse_indices(program.graph, arrays)
    except DataError as error:
        raise DataError(error.what, where, error.hint) from error
    return Data(tuple(arrays), labels), remarks


def keep_evaluation(compiled: Compiled, out: Path | None, model: str) -> None:
    """Write the samples of the source's evaluation() to `out`; say that they are in no .tet file where there is none.
    Raises UsageError where there is nothing to write."""
    data = compiled.evaluation
    if out is None:
        if data is not None:
            count = f"{len(data.arrays[0])} samples of evaluation()"
            text = f"the {count} are not in the .tet: --save-evaluation FILE.npz keeps them, for "
            ui.notes([f"{text}`tinyet generate --evaluation FILE.npz`"])
        return
    if data is None:
        raise UsageError("there is no evaluation() whose samples could be saved", model, "leave it away")
    ui.write_file(out, encode_data(data, input_names(compiled.program)))
    kept = f"{len(data.arrays[0])} samples{'' if data.labels is None else ' with labels'}"
    ui.notes([f"{out}: {kept}, for `tinyet generate --evaluation {out}`"])


def _is_single_pair(given: object) -> bool:
    """Whether evaluation() gave (inputs, expected) and not a sequence of two such pairs."""
    if not isinstance(given, tuple) or len(given) != 2:
        return False
    expected = given[1]
    return not isinstance(expected, (tuple, list)) or all(isinstance(label, int) for label in expected)


def _as_program(array: Array, rank: int, channels_last: bool) -> Array:
    """Images in the order in which the program takes them."""
    return np.moveaxis(array, 1, -1) if channels_last and rank == 4 and array.ndim == 4 else array


def input_names(program: Program) -> Sequence[str]:
    return [tensor.name for tensor in program.inputs]
