# SPDX-License-Identifier: Apache-2.0
"""The front door: what lies at a path, and the way from it to a Program or a Project.

`open` and, for the command line and the pytest plugin, `read` decide by a file's ending, here and nowhere else. Torch
is imported where a model needs it, and not before.
"""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyet.anomaly import FALSE_ALARMS
from tinyet.anomaly.drift import with_drift
from tinyet.anomaly.threshold import with_flag
from tinyet.boards import Board, load_board
from tinyet.build.tree import is_project
from tinyet.compiler import (
    DumpTo,
    Progress,
    compiled,
    float_layers,
    require_answers,
    require_integer,
)
from tinyet.data import Data, array_of, read_data
from tinyet.data.watched import Watched, data_warnings_of, watch
from tinyet.delegates import Delegates, delegates_or_default
from tinyet.deployment import deploy
from tinyet.errors import IdleOptions, TinyetWarning, UsageError
from tinyet.errors.arguments import OverTime, path_given
from tinyet.files.model_name import check_name, given_or_derived
from tinyet.files.reading import open_regular
from tinyet.files.sniffing import sniffed_error
from tinyet.importers.onnx.read import read_file as read_onnx
from tinyet.importers.tflite.floats import holds_integers
from tinyet.ir import DType, Note
from tinyet.messages.stages import stage
from tinyet.opening.classical import from_lightgbm, from_sklearn, from_xgboost
from tinyet.opening.estimator_files import PICKLES, load_estimator
from tinyet.opening.files import asks_for_integers, file_names, from_onnx, from_tflite
from tinyet.opening.float_models import FloatModel, of_onnx, of_tflite
from tinyet.opening.loader import (
    calibration_of,
    call_users,
    dynamic_of,
    evaluation_of,
    labels_of,
    load_entries,
    load_model,
    name_of,
)
from tinyet.opening.options import ModelOptions
from tinyet.program import Program, load
from tinyet.project import Project
from tinyet.projects import open_project
from tinyet.tflite import Runtime
from tinyet.tflite import read_file as read_tflite

if TYPE_CHECKING:
    from tinyet.importers.torch.source import ModelSource

__all__ = ["PROJECT", "ModelOptions", "Opened", "kind_of", "open", "read", "warnings_of"]

PROJECT = "project"
_KINDS = (
    "it opens file.py, file.py:factory, a .pt2 of torch.export.save, a .tflite, an .onnx, a .tet, a .skops or .joblib "
    "of scikit-learn's, a .json of XGBoost's, a .txt of LightGBM's, or a project"
)
_BOOSTED = {".json": b'"learner"', ".txt": b"num_tree_per_iteration="}
"""What models of XGBoost's and LightGBM's have near their beginning."""

_HEAD = 1 << 12
_ANY = frozenset(
    {"board", "delegates", "strict", "streaming", "hop", "edges", "flag", "false_alarms", "drift"}
)
_CONVERTED = _ANY | {"name", "labels", "dump"}


@dataclass(frozen=True)
class Opened:
    """A program, the samples that came with its model, and what a person should be told beside the program's notes."""

    program: Program
    evaluation: Data | None = None
    remarks: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """All that a person should be told."""
        return (*warnings_of(self.program), *self.remarks)


def open(  # noqa: A001 - the public name is tinyet.open
    path: str | Path,
    *,
    calibration: Iterable[Any] | str | Path | None = None,
    name: str | None = None,
    quantizer: Any = None,
    board: str | Path | Board | None = None,
    delegates: Delegates | None = None,
    channels_last: bool = False,
    float_io: bool = False,
    equalize: bool = False,
    correct_bias: bool = False,
    learn_rounding: bool = False,
    prune: bool = True,
    stateful: bool = False,
    labels: Sequence[str] | None = None,
    strict: bool = False,
    runtime: Runtime = "tflm",
    signature: str | None = None,
    exact: bool = False,
    methods: str | Sequence[str] | None = None,
    input_dtype: str = "float32",
    input_scale: float = 1.0,
    input_zero_point: int = 0,
    missing_values: bool = False,
    leaf_dtype: str = "float32",
    trust_pickle: bool = False,
    flag: Any = None,
    false_alarms: float = FALSE_ALARMS,
    drift: Any = None,
    streaming: int | Sequence[int | None] | None = None,
    hop: int | None = None,
    edges: str = "exact",
    dump: DumpTo | None = None,
    progress: Progress | None = None,
) -> Program | Project:
    """What lies at a path: a model of any format as a Program, a directory that `generate` wrote as a Project.

    path: `file.py` with the functions that docs/cli.md lists, `file.py:factory`, a `.pt2`, `.tflite`, `.onnx` or `.tet`
        file, a `.skops`, `.joblib` or `.pkl` of scikit-learn's, a `.json` of XGBoost's, a `.txt` of LightGBM's, or a
        project. A Python file is code, and is run; so is a pickle, if `trust_pickle` says that it may be.
    calibration: batches as for `tinyet.compile`, or the path of a .npz file; by default the calibration() of the file.
    name: the prefix of the C functions. By default what the model is called elsewhere: its factory or its file; where
        that is a word like `model`, its class; else its folder. A `.tet` has its own.
    quantizer, board, delegates, channels_last, float_io, equalize, correct_bias, learn_rounding, prune,
        stateful, dump, progress: as for `tinyet.compile`. labels: names of the classes; by default those of the file.
    strict: raise ModelError, listing them, when layers compute in float unasked, and QuantizationError when the
        integers' answers are not the model's.
    runtime, signature: of a `.tflite`, as for `tinyet.from_tflite`. exact: of a quantized `.onnx`, as for
        `tinyet.from_onnx`.
    methods, input_dtype, input_scale, input_zero_point, missing_values, leaf_dtype: of classical models, as for
        `tinyet.from_sklearn`. trust_pickle: of a `.joblib` or `.pkl`: run the code in it.
    flag: an array of samples, several for several inputs, or the path of a .npz file, maybe with labels of 0 and 1: an
        output says whether the last one, a score, is above a threshold chosen on them, of which at most the share
        `false_alarms` is flagged (`tinyet.with_flag`). drift: samples likewise: an output says how far an input is
        from them (`tinyet.with_drift`).
    streaming: the axis that is time, of all inputs, or one for each; the program takes the newest frames then. hop,
        edges: as for `Program.streaming`.

    What is doubtful about the model's data is a TinyetWarning; what the compiler remarks is in the program's notes. An
    option that the file at hand does not take raises UsageError. Raises UsageError, too, for what cannot be opened,
    with what it is and what to do; else what the typed doors raise: `tinyet.compile`, `tinyet.from_tflite`,
    `tinyet.from_onnx`, `tinyet.load`, `tinyet.open_project`.
    """
    place = str(path) if isinstance(path, str) else str(path_given(path, "open takes a path"))
    options = ModelOptions(
        calibration=calibration,
        name=name,
        quantizer=quantizer,
        board=board,
        delegates=delegates,
        channels_last=channels_last,
        float_io=float_io,
        equalize=equalize,
        correct_bias=correct_bias,
        learn_rounding=learn_rounding,
        prune=prune,
        stateful=stateful,
        labels=labels,
        strict=strict,
        runtime=runtime,
        signature=signature,
        exact=exact,
        methods=methods,
        input_dtype=input_dtype,
        input_scale=input_scale,
        input_zero_point=input_zero_point,
        missing_values=missing_values,
        leaf_dtype=leaf_dtype,
        trust_pickle=trust_pickle,
        flag=flag,
        false_alarms=false_alarms,
        drift=drift,
        streaming=streaming,
        hop=hop,
        edges=edges,
        dump=dump,
        progress=progress,
    )
    if kind_of(place) == PROJECT:
        options.refuse_others((), "a project is generated already", place, "leave it away")
        return open_project(place)
    opened = read(place, options)
    alarm = opened.program.answers
    if alarm is not None and not alarm.healthy:
        warnings.warn(TinyetWarning(f"{alarm.warning}\n{look_closer(place)}"), stacklevel=2)
    for remark in opened.remarks:
        warnings.warn(TinyetWarning(remark), stacklevel=2)
    return opened.program


def look_closer(path: str, options: Sequence[str] = ()) -> str:
    """The command that says why the answers of a model, quantized, are not the model's. options: those of
    `tinyet quantize` that it was quantized with."""
    if path.endswith(".tet"):
        path = "MODEL.py"
    return f"to look closer: {shlex.join(['tinyet', 'quantize', path, *options])} --report"


def kind_of(path: str) -> str:
    """The ending of a model's file (`.py` of a `file.py:factory`, too), or "project". Raises UsageError for what cannot
    be opened, before anything slow begins."""
    match = re.fullmatch(r"(.+\.py):([A-Za-z_]\w*)", path)
    place = Path(match[1] if match else path)
    if place.is_dir():
        if is_project(place):
            return PROJECT
        if (place / "saved_model.pb").is_file():
            raise UsageError(
                "this is a TensorFlow SavedModel", str(place), f"convert it to .tflite; tinyet: {_KINDS}"
            )
        raise UsageError("this directory is not a tinyet project", str(place), f"name a file: {_KINDS}")
    if not place.is_file():
        raise UsageError(f"there is no file {place}", hint=f"tinyet: {_KINDS}")
    if place.suffix not in _READERS or not _begins_as_model(place):
        raise sniffed_error(place)
    return place.suffix


def _begins_as_model(path: Path) -> bool:
    """Whether a text is boosted trees: many others have these endings. A file that cannot be read is for its reader."""
    if path.suffix not in _BOOSTED:
        return True
    try:
        with open_regular(path) as file:
            return _BOOSTED[path.suffix] in file.read(_HEAD)
    except OSError:
        return True


def read(model: str, options: ModelOptions) -> Opened:
    """The program that a model's file makes, and what comes with it. Raises what `open` raises, and UsageError for a
    project."""
    kind = kind_of(model)
    if kind == PROJECT:
        raise UsageError("this is a project, and a model is wanted", model, f"name a file: {_KINDS}")
    if options.name is not None and kind != ".tet":
        check_name(options.name, "name")
    over_time = options.over_time
    if options.delegates is not None and options.board is None:
        raise IdleOptions(
            ["delegates"], "there is no board to choose kernels for", model, "say the board, too"
        )
    opened, calibrated, own = _READERS[kind](model, options)
    program = opened.program
    asked = over_time or own
    if asked is not None:
        last = kind == ".tflite" or options.channels_last
        program = program.streaming(asked.axis, hop=asked.hop, edges=asked.edges, channels_last=last)
    program = watched_over(program, options)
    # What evaluation() gives are windows, which a streaming program does not take.
    evaluation = opened.evaluation if asked is None else None
    remarks = opened.remarks if asked is None else ()
    if options.board is not None:
        target = load_board(options.board).target
        deploy(program.graph, target, delegates_or_default(options.delegates), size=program.size)
    data_warnings = data_warnings_of(program.inputs, program.outputs, calibrated, evaluation)
    return Opened(program, evaluation, (*remarks, *data_warnings))


def watched_over(program: Program, options: ModelOptions) -> Program:
    """The program with the outputs `flag` and `drift` that were asked for. Raises what with_flag and with_drift do."""
    if options.flag is None and options.false_alarms != FALSE_ALARMS:
        raise IdleOptions(["false_alarms"], "there is no flag", "", "say the data of the flag, too")
    if options.flag is not None:
        samples = samples_given(options.flag, program)
        program = with_flag(
            program, *samples.arrays, labels=samples.labels, false_alarms=options.false_alarms
        )
    if options.drift is not None:
        program = with_drift(program, *samples_given(options.drift, program).arrays)
    return program


def samples_given(given: Any, program: Program) -> Data:
    if isinstance(given, (str, Path)):
        return read_data(given, [tensor.name for tensor in program.inputs])
    several = isinstance(given, (list, tuple))
    return Data(tuple(array_of(each) for each in (given if several else [given])), None)


_Read = tuple[Opened, Watched | None, OverTime | None]
"""A program with its samples and remarks, the calibration data that was used, what the model's own file streams."""


def _of_program(path: str, options: ModelOptions) -> _Read:
    options.refuse_others(
        _ANY, "a .tet program is compiled already", path, "give it when the program is made from the model"
    )
    program = load(path)
    if options.strict:
        require_integer(program)
        require_answers(program)
    return Opened(program), None, None


_OF_FLOATS = frozenset(
    ("quantizer", "channels_last", "equalize", "correct_bias", "learn_rounding", "prune", "stateful")
)
_TRAINED = _CONVERTED | _OF_FLOATS | {"calibration", "float_io"}
_NO_RUNTIME = "no runtime's arithmetic is followed, and there are no signatures: this is no .tflite model"


def _of_tflite(path: str, options: ModelOptions) -> _Read:
    """In its own integers, about which nothing is left to choose; or a float model, which may be quantized here."""
    model = read_tflite(path)
    if holds_integers(model):
        options.refuse_others(
            _CONVERTED | {"runtime", "signature"},
            "this .tflite model is quantized already",
            path,
            "leave it away: inputs, outputs and states are as the file has them",
        )
    elif not (_TRAINED - _CONVERTED).isdisjoint(options.given):
        options.refuse_others(
            _TRAINED | {"signature"},
            "this .tflite model is in float, and gets tinyet's own integers",
            path,
            "leave it away",
        )
        return _quantized(of_tflite(model, Path(path), options.signature), options)
    options.refuse_others(
        _CONVERTED | {"runtime", "signature"}, "this is a .tflite model", path, "leave it away"
    )
    program = from_tflite(
        path,
        runtime=options.runtime,
        signature=options.signature,
        name=options.name,
        labels=options.labels,
        dump=options.dump,
    )
    if options.strict:
        require_integer(program)
    return Opened(program), None, None


def _of_onnx(path: str, options: ModelOptions) -> _Read:
    """Quantized by ONNX Runtime's quantizer, or a float model, which is quantized here."""
    model = read_onnx(Path(path))
    if not model.is_quantized:
        options.refuse_others(_TRAINED, "this ONNX model is in float", path, "leave it away")
        asked = {each: getattr(options, each) for each in (*_OF_FLOATS, "progress")}
        if options.calibration is not None or asks_for_integers(asked):
            return _quantized(of_onnx(model, Path(path)), options)
        program = from_onnx(
            path,
            name=options.name,
            float_io=options.float_io,
            labels=options.labels,
            strict=options.strict,
            dump=options.dump,
            **asked,
        )
        return Opened(program), None, None
    why = "this ONNX model is quantized already, and no .tflite"
    hint = "leave it away, or give the model before it was quantized"
    options.refuse_others(_CONVERTED | {"exact", "float_io"}, why, path, hint)
    program = from_onnx(
        path,
        name=options.name,
        exact=options.exact,
        float_io=options.float_io,
        labels=options.labels,
        dump=options.dump,
    )
    if options.strict:
        require_integer(program)
        require_answers(program)
    return Opened(program), None, None


def _quantized(model: FloatModel, options: ModelOptions) -> _Read:
    """A float model of another tool's file, quantized where there is calibration data."""
    given = options.calibration
    batches = None if given is None else watch(model.batches(given))
    title = given_or_derived(options.name, *file_names(model.path))
    program = model.compiled(
        calibration=batches,
        name=title,
        float_io=options.float_io,
        labels=options.labels,
        strict=options.strict,
        dump=options.dump,
        **{each: getattr(options, each) for each in (*_OF_FLOATS, "progress")},
    )
    return Opened(program), batches, None


def _of_torch(model: str, options: ModelOptions) -> _Read:
    options.refuse_others(_TRAINED, _NO_RUNTIME, model, "leave it away")
    stage("loading torch")
    source = load_model(model)
    return _of_source(source, name_of(source, options.name), options)


def read_entries(model: str, options: ModelOptions) -> dict[str, Opened]:
    """The programs of all entry points that a Python file declares with entries(), by their names, each called after
    the model and its entry. Raises what `open` raises, and IdleOptions for data in a file, which is one model's."""
    taken = {f.name for f in fields(ModelOptions)} - {"calibration", "labels", "flag", "drift", "streaming"}
    options.refuse_others(taken, "of several entry points", model, "say it in the Python file")
    options.refuse_others(_TRAINED, _NO_RUNTIME, model, "leave it away")
    stage("loading torch")
    found = {}
    for key, source in load_entries(model).items():
        base = replace(source, name=source.name.removesuffix(f"_{key}"))
        opened, calibrated, _ = _of_source(source, f"{name_of(base, options.name)}_{key}", options)
        program = opened.program
        remarks = data_warnings_of(program.inputs, program.outputs, calibrated, None)
        found[key] = Opened(program, None, tuple(remarks))
    return found


def _of_source(source: ModelSource, name: str, options: ModelOptions) -> _Read:
    """name: of the program."""
    quantizer = options.quantizer
    if quantizer is None and source.quantizer is not None:
        quantizer = call_users(source.quantizer, "quantizer()")
    given = calibration_of(source, options.calibration)
    batches = None if given is None else watch(given)
    program = compiled(
        source.program,
        calibration=batches,
        name=name,
        quantizer=quantizer,
        channels_last=options.channels_last,
        float_io=options.float_io,
        equalize=options.equalize,
        correct_bias=options.correct_bias,
        learn_rounding=options.learn_rounding,
        prune=options.prune,
        stateful=options.stateful,
        labels=labels_of(source) if options.labels is None else options.labels,
        strict=options.strict,
        dump=options.dump,
        progress=options.progress,
        evaluation=lambda made: evaluation_of(source, made, options.channels_last)[0],
        dynamic=dynamic_of(source),
    )
    over_time = options.over_time or source.over_time
    if over_time is not None:
        return Opened(program), batches, over_time
    evaluation, remarks = evaluation_of(source, program, options.channels_last)
    return Opened(program, evaluation, tuple(remarks)), batches, None


_CLASSICAL = _CONVERTED | {
    "methods",
    "input_dtype",
    "input_scale",
    "input_zero_point",
    "missing_values",
    "leaf_dtype",
}


def _classical(options: ModelOptions) -> dict[str, Any]:
    """The options of a classical model's door."""
    names = (
        "methods",
        "input_dtype",
        "input_scale",
        "input_zero_point",
        "missing_values",
        "leaf_dtype",
        "labels",
        "dump",
    )
    return {name: getattr(options, name) for name in names}


def _of_estimator(path: str, options: ModelOptions) -> _Read:
    """A file of scikit-learn's."""
    taken = _CLASSICAL | ({"trust_pickle"} if Path(path).suffix in PICKLES else set())
    options.refuse_others(taken, "this is a model of scikit-learn's", path, "leave it away")
    estimator = load_estimator(Path(path), trust_pickle=options.trust_pickle)
    title = given_or_derived(options.name, *file_names(Path(path)))
    return _strict(from_sklearn(estimator, name=title, **_classical(options)), options), None, None


def _of_boosted(path: str, options: ModelOptions) -> _Read:
    """A file of XGBoost's or LightGBM's."""
    options.refuse_others(_CLASSICAL, "this is a model of boosted trees", path, "leave it away")
    door = from_xgboost if Path(path).suffix == ".json" else from_lightgbm
    return _strict(door(path, name=options.name, **_classical(options)), options), None, None


def _strict(program: Program, options: ModelOptions) -> Opened:
    if options.strict:
        require_integer(program, ())
    return Opened(program)


_READERS: dict[str, Callable[[str, ModelOptions], _Read]] = {
    ".py": _of_torch,
    ".pt2": _of_torch,
    ".tet": _of_program,
    ".tflite": _of_tflite,
    ".onnx": _of_onnx,
    **dict.fromkeys((*PICKLES, ".skops"), _of_estimator),
    ".json": _of_boosted,
    ".txt": _of_boosted,
}


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
