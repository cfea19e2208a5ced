# SPDX-License-Identifier: Apache-2.0
"""`tinyet quantize`: choose how each layer is quantized, see what suffers, let the exceptions be found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinyet.boards import DEFAULT_BOARD, load_board
from tinyet.cli import ui
from tinyet.cli.model import keep_evaluation, quantize_options, show_answers
from tinyet.cli.options import (
    HtmlFile,
    JsonFile,
    MaxSamples,
    ModelFlags,
    SaveEvaluation,
    labels_in,
    takes_model,
)
from tinyet.cli.quantize_report import record_of, say_finding, show_choice, show_diagnosis
from tinyet.compiler import compiled as compile_model
from tinyet.compiler import cost_on
from tinyet.data import Data
from tinyet.data.warnings import label_warnings
from tinyet.data.watched import Watched, data_warnings_of, watch
from tinyet.errors import DataError, UsageError
from tinyet.files.model_name import check_name
from tinyet.ir import Graph
from tinyet.opening import PROJECT, Opened, kind_of, warnings_of
from tinyet.opening.loader import (
    calibration_of,
    call_users,
    dynamic_of,
    evaluation_of,
    labels_of,
    load_model,
    measured_with,
    name_of,
)
from tinyet.pages.page import page_of
from tinyet.program import Program

if TYPE_CHECKING:
    from tinyet.importers.torch.source import ModelSource
    from tinyet.quality.remedies import Choice, Diagnosis, Settings, Workbench
    from tinyet.quality.sensitivity import Tell
    from tinyet.quantization.quantizer import TinyetQuantizer


@dataclass(frozen=True)
class _Task:
    """A captured model with all that says how it is to be quantized.

    settings: what is free, as it was given. observers: names to try; none where the model's own quantizer says it.
    whole: configurations with more bits for all layers. make: a quantizer with the observer that is named.
    """

    source: ModelSource
    batches: Watched
    kept: list[Any]
    make: Callable[[str | None], TinyetQuantizer]
    settings: Settings
    observers: tuple[str, ...]
    whole: tuple[str, ...]
    board: str
    name: str
    flags: ModelFlags

    def cost(self) -> Any:
        return cost_on(self.board, channels_last=self.flags.channels_last, float_io=self.flags.float_io)

    @cached_property
    def float_program(self) -> Program:
        return compile_model(self.source.program, name=self.name)

    @property
    def graph(self) -> Graph:
        return self.float_program.graph

    def evaluation(self, limit: int | None) -> tuple[Data | None, list[str]]:
        """The model's evaluation data in PyTorch's order of memory, and remarks about it."""
        data, remarks = evaluation_of(self.source, self.float_program, channels_last=False)
        if data is None:
            return None, remarks
        labels = None if data.labels is None else data.labels[:limit]
        return Data(tuple(array[:limit] for array in data.arrays), labels), remarks

    def bench(self, data: Data | None) -> Workbench:
        """data: to measure with, the calibration data for none."""
        from tinyet.quality.remedies import Workbench
        from tinyet.quality.sensitivity import calibration_samples
        from tinyet.quality.yardstick import Yardstick
        from tinyet.quantization.batches import batches_of

        program = self.source.program
        if data is None:
            yardstick = Yardstick(program, calibration_samples(program, self.kept))
        else:
            labels = None if data.labels is None else [int(label) for label in data.labels]
            samples = batches_of(data.arrays, self.source.example_inputs, str(self.source.path))
            yardstick = Yardstick(program, samples, labels)
        return Workbench(program, self.kept, self.make, yardstick)

    def compile(self, choice: Choice | None, progress: ui.Advance) -> Program:
        """Compile with the settings that `--auto` chose, else as given."""
        settings = self.settings if choice is None else choice.settings
        quantizer = self.make(settings.observer) if choice is None else choice.found.quantizer
        return compile_model(
            self.source.program,
            calibration=self.kept,
            name=self.name,
            quantizer=quantizer,
            board=self.board,
            channels_last=self.flags.channels_last,
            float_io=self.flags.float_io,
            equalize=settings.equalize,
            correct_bias=settings.correct_bias,
            learn_rounding=self.flags.learn_rounding,
            prune=self.flags.prune,
            labels=labels_in(self.flags.labels) or labels_of(self.source),
            progress=progress,
            evaluation=lambda made: evaluation_of(self.source, made, self.flags.channels_last)[0],
            dynamic=dynamic_of(self.source),
        )


@dataclass(frozen=True)
class _Exceptions:
    """As they were given: NAME=CONFIG of --layer and of --op."""

    layers: Sequence[str]
    ops: Sequence[str]


@takes_model(
    *("calibration", "name", "labels", "channels_last", "float_io", "equalize", "correct_bias"),
    *("learn_rounding", "prune"),
)
def quantize(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="file.py, file.py:factory, a saved .pt2, a .tflite or .onnx, in float"
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="TET", help="write the quantized program")
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="CONFIG",
            help="int8, int16, int4, dynamic or float, for all layers; int8 by default",
        ),
    ] = None,
    layer: Annotated[
        list[str] | None,
        typer.Option("--layer", metavar="NAME=CONFIG", help="another configuration for a module; repeatable"),
    ] = None,
    op: Annotated[
        list[str] | None,
        typer.Option(
            "--op",
            metavar="NAME=CONFIG",
            help="another configuration for operators: log, matmul..log, aten.log (--report names them); repeatable",
        ),
    ] = None,
    observer: Annotated[
        str | None,
        typer.Option(
            "--observer", metavar="NAME", help="histogram, minmax, moving_average, mse or percentile[:P]"
        ),
    ] = None,
    outputs: Annotated[
        str,
        typer.Option(
            "--outputs",
            metavar="NAME",
            help="scales of sigmoid, softmax and their kind: calibrated where that is better, or litert",
        ),
    ] = "calibrated",
    report: Annotated[
        bool,
        typer.Option("--report", help="say whether the model is healthy, which layer hurts, and what helps"),
    ] = False,
    worst: Annotated[
        int | None,
        typer.Option("--worst", min=1, metavar="N", help="verify exceptions for the N parts that gain most"),
    ] = None,
    auto: Annotated[
        bool,
        typer.Option("--auto", help="apply what is free, else the cheapest exceptions, to keep the accuracy"),
    ] = False,
    accuracy: Annotated[
        float | None,
        typer.Option(
            "--accuracy", min=0.0, max=1.0, metavar="SHARE", help="for --auto: the least accuracy, 0 to 1"
        ),
    ] = None,
    max_drop: Annotated[
        float | None,
        typer.Option(
            "--max-drop", min=0.0, max=1.0, metavar="SHARE", help="for --auto: below the float model's"
        ),
    ] = None,
    evaluation: Annotated[
        Path | None,
        typer.Option(
            "--evaluation",
            metavar="NPZ",
            help="samples and labels to measure with, instead of the model's evaluation()",
        ),
    ] = None,
    max_samples: MaxSamples = None,
    board: Annotated[
        str, typer.Option("--board", help="whose kernels the bytes are counted for")
    ] = DEFAULT_BOARD,
    save_evaluation: SaveEvaluation = None,
    html: HtmlFile = None,
    json: JsonFile = None,
    *,
    flags: ModelFlags,
) -> None:
    """Quantize a model: choose how, see whether it is healthy and what helps, let that be found.

    With --auto the accuracy on the model's evaluation() decides; it is that of the host reference, which the device
    repeats bit for bit.
    """
    _check(model, out, report, auto, accuracy, max_drop, save_evaluation, flags.learn_rounding)
    found = {"--json": json, "--html": html}
    if not (report or auto) and (idle := [name for name, value in found.items() if value is not None]):
        what = f"{', '.join(idle)}: written is what --report or --auto found"
        raise UsageError(what, idle[0], "give one of them, too")
    load_board(board)
    if flags.name is not None:
        check_name(flags.name, "--name")
    with ui.stages("loading torch"):
        source = measured_with(load_model(model), evaluation)
        task = _task(source, config, _Exceptions(layer or [], op or []), observer, outputs, board, flags)
        data, remarks = (_labelled(task, max_samples), []) if auto else task.evaluation(max_samples)
    tell = None if json == "-" else say_finding
    diagnosis = _diagnose(task, data, worst, tell) if report else None
    choice = _search(task, data, accuracy, max_drop, tell) if auto and data is not None else None
    program = None
    kept: list[str] = []
    if out is not None:
        with ui.stages("compiling") as progress:
            program = task.compile(choice, progress)
            samples, _ = evaluation_of(task.source, program, flags.channels_last)
        kept = keep_evaluation(Opened(program, samples), save_evaluation, model)
        program.save(out)
    graph = (choice or diagnosis or task).graph if program is None else program.graph
    data_warnings = data_warnings_of(graph.user_inputs, graph.user_outputs, task.batches, data)
    record = record_of(task.name, task.board, diagnosis, choice, out, data_warnings)
    if html is not None:
        ui.write_text(
            str(html), page_of(f"{task.name}, quantized", quantization=record, remarks=data_warnings)
        )
    if json is not None:
        ui.write_json(json, record)
    if json == "-":
        return
    types = [
        *(["--config", config] if config else []),
        *(f"--layer={text}" for text in layer or []),
        *(f"--op={text}" for text in op or []),
    ]
    kept_outputs = ["--outputs", outputs] if outputs != "calibrated" else []
    if program is not None and diagnosis is None:  # which says the same, and more
        said = [*types, *(["--observer", observer] if observer else []), *kept_outputs]
        show_answers(program, model, flags, said)
    if diagnosis is not None:
        show_diagnosis(
            diagnosis, ["tinyet", "quantize", model, *quantize_options(flags), *kept_outputs], types
        )
    if choice is not None:
        show_choice(choice)
    ui.notes(
        [
            *map(str, task.source.notes),
            *kept,
            *(() if program is None else warnings_of(program)),
            *remarks,
            *data_warnings,
        ]
    )
    if out is not None and program is not None:
        ui.say(f"{out}: program {program.name}, {out.stat().st_size} bytes")
        ui.say(f"next: tinyet generate {out} --board BOARD")


def _check(
    model: str,
    out: Path | None,
    report: bool,
    auto: bool,
    accuracy: float | None,
    max_drop: float | None,
    save_evaluation: Path | None,
    learn_rounding: bool,
) -> None:
    """Early checks of the command line."""
    kind = kind_of(model)
    if kind in (".tet", PROJECT):
        what = f"a {'.tet program' if kind == '.tet' else 'project'} is compiled already"
        raise UsageError(what, model, "name the model that it was made from")
    if out is not None and out.suffix != ".tet":
        raise UsageError(f"{out} does not end in .tet", "-o", f"-o {out.with_suffix('.tet')}")
    if out is not None and not out.parent.is_dir():
        raise UsageError(f"there is no directory {out.parent}", "-o")
    if save_evaluation is not None and out is None:
        raise UsageError(
            "--save-evaluation goes beside a program", "--save-evaluation", "give -o FILE.tet, too"
        )
    if out is None and not report and not auto:
        raise UsageError("there is nothing to do", "tinyet quantize", "give -o FILE.tet, --report or --auto")
    if auto and (accuracy is None) == (max_drop is None):
        raise UsageError(
            "--auto wants one aim", "--auto", "--accuracy 0.95, or --max-drop 0.01 below the float model"
        )
    if not auto and (accuracy is not None or max_drop is not None):
        raise UsageError("--accuracy and --max-drop belong to --auto", hint="give --auto, too")
    if learn_rounding and (report or auto):
        raise UsageError(
            "--report and --auto measure weights rounded to nearest, dozens of times",
            "--learn-rounding",
            "leave it away, and give it with -o and the options that they find",
        )


def _task(
    source: ModelSource,
    config: str | None,
    exceptions: _Exceptions,
    observer: str | None,
    outputs: str,
    board: str,
    flags: ModelFlags,
) -> _Task:
    from tinyet.quality.remedies import MORE_BITS, Settings, observers_to_try
    from tinyet.quantization.quantize import is_quantized, needs_calibration

    if is_quantized(source.program):
        path = str(source.path)
        raise UsageError("the model is quantized already", path, f"tinyet compile {path} -o FILE.tet")
    settings = Settings(flags.equalize, flags.correct_bias, observer)
    quantizer = _quantizer(source, config, exceptions, observer, outputs)
    given = calibration_of(source, flags.calibration)
    if given is None and (
        needs_calibration(quantizer) or flags.equalize or flags.correct_bias or flags.learn_rounding
    ):
        raise UsageError(
            "there is no calibration data",
            str(source.path),
            "give --calibration"
            if source.path.suffix != ".py"
            else "define calibration() in the model's file, or give --calibration",
        )
    batches = watch([] if given is None else given)
    # With a quantizer of the model's own, --observer would replace all that it says.
    own = None if _says_how(config, observer, outputs) else source.quantizer
    kind = config or "int8"
    return _Task(
        source,
        batches,
        list(batches),
        lambda name: _quantizer(source, config, exceptions, name, outputs),
        settings,
        observers_to_try(kind, observer, own),
        MORE_BITS.get(kind, ()),
        board,
        name_of(source, flags.name),
        flags,
    )


def _says_how(config: str | None, observer: str | None, outputs: str) -> bool:
    """Whether the command line says how to quantize, in place of the model's own quantizer."""
    return config is not None or observer is not None or outputs != "calibrated"


def _quantizer(
    source: ModelSource, config: str | None, exceptions: _Exceptions, observer: str | None, outputs: str
) -> TinyetQuantizer:
    """The model's own quantizer, or one of --config, --observer and --outputs; with the --layer and --op settings in
    either case."""
    from tinyet.quality.parts import operators_named
    from tinyet.quantization.config import make_config
    from tinyet.quantization.quantizer import TinyetQuantizer

    quantizer = TinyetQuantizer()
    if _says_how(config, observer, outputs):
        quantizer.set_global(make_config(config or "int8", observer, outputs))
    elif source.quantizer is not None:
        own = call_users(source.quantizer, "quantizer()")
        if not isinstance(own, TinyetQuantizer):
            raise UsageError(
                f"quantizer() gives a {type(own).__name__}",
                str(source.path),
                "`tinyet quantize` works with TinyetQuantizer; use `tinyet compile` for another, or give --config",
            )
        quantizer = own.copy()
    for text in exceptions.layers:
        path, kind = _setting(text, "--layer", "for example --layer head=int16")
        quantizer.set_module_name(path, make_config(kind, observer, outputs))
    for text in exceptions.ops:
        name, kind = _setting(text, "--op", "for example --op matmul..log=int16")
        for operator in operators_named(source.program, name):
            quantizer.set_operator(operator, make_config(kind, observer, outputs))
    return quantizer


def _setting(text: str, option: str, example: str) -> tuple[str, str]:
    """NAME=CONFIG in its parts."""
    name, equals, kind = text.partition("=")
    if not equals or not name:
        raise UsageError(f"{text!r} is not NAME=CONFIG", option, example)
    return name, kind


# ---------------------------------------------------------------- measuring and searching


def _labelled(task: _Task, limit: int | None) -> Data:
    """The model's evaluation data. Raises DataError for none with labels, or with labels that name no class."""
    data, remarks = task.evaluation(limit)
    if data is None or data.labels is None:
        raise DataError(
            "--auto needs evaluation data with labels",
            str(task.source.path),
            "; ".join(remarks) or "define evaluation(): it returns inputs, labels",
        )
    wrong = label_warnings(data.labels, task.graph.user_outputs[0].type.count)
    if wrong:
        raise DataError(wrong[0], f"evaluation() in {task.source.path}")
    return data


def _search(
    task: _Task, data: Data, accuracy: float | None, max_drop: float | None, tell: Tell | None
) -> Choice:
    from tinyet.quality.remedies import choose
    from tinyet.quality.search import accuracy_of

    bench = task.bench(data)
    labels = bench.yardstick.labels
    assert labels is not None
    evaluate = accuracy_of(bench.yardstick.samples, labels)
    with ui.phases("evaluating the float model") as progress:
        target = accuracy if accuracy is not None else evaluate(task.source.program) - (max_drop or 0.0)
        return choose(
            bench,
            evaluate,
            target,
            task.settings,
            task.observers,
            cost=task.cost(),
            progress=progress,
            tell=tell,
        )


def _diagnose(task: _Task, data: Data | None, worst: int | None, tell: Tell | None) -> Diagnosis:
    from tinyet.quality.remedies import diagnose

    with ui.phases("measuring the quantized model") as progress:
        return diagnose(
            task.bench(data),
            task.settings,
            task.observers,
            whole=task.whole,
            cost=task.cost(),
            worst=worst,
            progress=progress,
            tell=tell,
        )
