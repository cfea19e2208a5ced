# SPDX-License-Identifier: Apache-2.0
"""`tinyet quantize`: choose how each layer is quantized, see what suffers, let the exceptions be found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinyet.boards import load_board
from tinyet.cli import ui
from tinyet.cli.model import calibration_of, call_users, check_path, evaluation_of, labels_of, warnings_of
from tinyet.compiler import compile as compile_model
from tinyet.compiler import cost_on
from tinyet.data import Data
from tinyet.emit.model_name import check_name, safe_name
from tinyet.errors import DataError, QuantizationError, ToolchainError, UsageError
from tinyet.program import Program
from tinyet.stages import stage
from tinyet.validate import predicted

if TYPE_CHECKING:
    from tinyet.importers.torch.source import ModelSource
    from tinyet.quantization.quantizer import TinyetQuantizer
    from tinyet.quantization.sensitivity import Exception_, Found, Sensitivity

# How often the search is repeated with a higher aim when the host reference falls below the torch program.
_ATTEMPTS = 3
MOST_EXCEPTIONS = 12


@dataclass(frozen=True)
class _Task:
    """A captured model with all that says how it is to be quantized. program: its ExportedProgram, equalized where that
    was asked for."""

    source: ModelSource
    program: Any
    batches: list[Any]
    quantizer: TinyetQuantizer
    board: str
    name: str
    correct_bias: bool
    float_io: bool
    channels_last: bool

    def cost(self) -> Any:
        return cost_on(self.board, channels_last=self.channels_last, float_io=self.float_io)

    def compile(self, quantizer: TinyetQuantizer, progress: ui.Advance) -> Program:
        return compile_model(
            self.program,
            calibration=self.batches,
            name=self.name,
            quantizer=quantizer,
            board=self.board,
            channels_last=self.channels_last,
            float_io=self.float_io,
            correct_bias=self.correct_bias,
            labels=labels_of(self.source),
            progress=progress,
        )


def quantize(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="file.py, file.py:factory, or a saved .pt2 in float")
    ],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="TET", help="write the quantized program")
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="KIND",
            help="int8, int16, int4, dynamic or float, for all layers; int8 by default",
        ),
    ] = None,
    layer: Annotated[
        list[str] | None,
        typer.Option("--layer", metavar="NAME=KIND", help="another configuration for a module; repeatable"),
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
    equalize: Annotated[bool, typer.Option("--equalize", help="balance channels between layers")] = False,
    correct_bias: Annotated[
        bool, typer.Option("--correct-bias", help="let biases take back the mean error")
    ] = False,
    report: Annotated[
        bool,
        typer.Option("--report", help="show how much each layer suffers, and what exceptions bring and cost"),
    ] = False,
    worst: Annotated[
        int | None,
        typer.Option("--worst", min=1, metavar="N", help="try exceptions for the N worst layers only"),
    ] = None,
    auto: Annotated[
        bool, typer.Option("--auto", help="apply the cheapest exceptions that keep the accuracy")
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
    samples: Annotated[
        int | None, typer.Option("--samples", min=1, help="evaluate no more samples than this")
    ] = None,
    calibration: Annotated[
        Path | None, typer.Option("--calibration", metavar="NPZ", help="as in `generate`")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="as in `generate`")] = None,
    board: Annotated[
        str, typer.Option("--board", help="whose kernels the bytes are counted for")
    ] = "mps2_an386",
    float_io: Annotated[bool, typer.Option("--float-io", help="as in `generate`")] = False,
    channels_last: Annotated[bool, typer.Option("--channels-last", help="as in `generate`")] = False,
    json: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="write the report as JSON, too; - prints only that"),
    ] = None,
) -> None:
    """Quantize a model: choose how, see which layers suffer, find the exceptions.

    With --auto the accuracy on the model's evaluation() decides; it is that of the host reference, which the device
    repeats bit for bit.
    """
    _check(model, out, report, auto, accuracy, max_drop, json)
    load_board(board)
    with ui.stages("loading torch"):
        task = _task(model, config, layer or [], observer, outputs, equalize, correct_bias, calibration, name, board,
                     float_io, channels_last)  # fmt: skip
    sensitivity = _measure(task, worst) if report else None
    found, program, host = None, None, None
    if auto:
        found, program, host = _search(
            task, accuracy, max_drop, samples, sensitivity if worst is None else None
        )
        sensitivity = sensitivity or found.sensitivity
    if out is not None:
        with ui.stages("compiling") as progress:
            program = program or task.compile(task.quantizer, progress)
            program.save(out)
    if json is not None:
        ui.write_json(json, _record(task, sensitivity, found, host, out))
    if json == "-":
        return
    if sensitivity is not None and report:
        _show_sensitivity(sensitivity)
    if found is not None and host is not None:
        _show_found(found, host)
    if out is not None and program is not None:
        ui.notes(warnings_of(program))
        ui.say(f"{out}: program {program.name}, {out.stat().st_size} bytes")
        ui.say(f"next: tinyet generate {out} --board BOARD")


def _check(
    model: str,
    out: Path | None,
    report: bool,
    auto: bool,
    accuracy: float | None,
    max_drop: float | None,
    json: str | None,
) -> None:
    """What is quickly found to be wrong with the command line."""
    check_path(model)
    if model.endswith(".tet"):
        raise UsageError("a .tet program is compiled already", model, "name the model that it was made from")
    if out is not None and out.suffix != ".tet":
        raise UsageError(f"{out} does not end in .tet", "-o", f"-o {out.with_suffix('.tet')}")
    if out is not None and not out.parent.is_dir():
        raise UsageError(f"there is no directory {out.parent}", "-o")
    if out is None and not report and not auto:
        raise UsageError("there is nothing to do", "tinyet quantize", "give -o FILE.tet, --report or --auto")
    if auto and (accuracy is None) == (max_drop is None):
        raise UsageError(
            "--auto wants one aim", "--auto", "--accuracy 0.95, or --max-drop 0.01 below the float model"
        )
    if not auto and (accuracy is not None or max_drop is not None):
        raise UsageError("--accuracy and --max-drop belong to --auto", hint="give --auto, too")
    if json is not None and not report and not auto:
        raise UsageError("--json writes what --report or --auto found", "--json", "give one of them, too")


def _task(
    model: str,
    config: str | None,
    layers: Sequence[str],
    observer: str | None,
    outputs: str,
    equalize: bool,
    correct_bias: bool,
    calibration: Path | None,
    name: str | None,
    board: str,
    float_io: bool,
    channels_last: bool,
) -> _Task:
    try:
        from tinyet.importers.torch.source import load_source
        from tinyet.quantization.equalize import equalize as equalize_layers
        from tinyet.quantization.quantize import is_quantized, needs_calibration, samples
    except ImportError as error:
        raise ToolchainError(
            f"quantizing a model needs torch and torchao: {error}", model, "pip install 'tinyet[torch]'"
        ) from error
    if name is not None:
        check_name(name, "--name")
    source = load_source(model)
    if is_quantized(source.program):
        raise UsageError("the model is quantized already", model, f"tinyet compile {model} -o FILE.tet")
    quantizer = _quantizer(source, config, layers, observer, outputs)
    given = calibration_of(source, calibration)
    if given is None and (needs_calibration(quantizer) or equalize or correct_bias):
        raise UsageError(
            "there is no calibration data",
            model,
            "define calibration() in the model's file, or give --calibration",
        )
    batches = [] if given is None else list(given)
    program = source.program
    if equalize:
        stage("equalizing layers")
        program, _ = equalize_layers(
            program, [inputs for _, inputs in samples(batches, source.example_inputs)]
        )
    return _Task(
        source,
        program,
        batches,
        quantizer,
        board,
        name or safe_name(source.name),
        correct_bias,
        float_io,
        channels_last,
    )


def _quantizer(
    source: ModelSource, config: str | None, layers: Sequence[str], observer: str | None, outputs: str
) -> TinyetQuantizer:
    """The model's own quantizer, or one of --config, --observer and --outputs; with the --layer settings in either
    case."""
    from tinyet.quantization.config import make_config
    from tinyet.quantization.quantizer import TinyetQuantizer

    quantizer = TinyetQuantizer()
    if config is not None or observer is not None or outputs != "calibrated":
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
    for text in layers:
        path, equals, kind = text.partition("=")
        if not equals or not path:
            raise UsageError(f"{text!r} is not NAME=KIND", "--layer", "for example --layer head=int16")
        quantizer.set_module_name(path, make_config(kind, observer, outputs))
    return quantizer


# ---------------------------------------------------------------- measuring and searching


def _measure(task: _Task, worst: int | None) -> Sensitivity:
    from tinyet.quantization.sensitivity import measure

    with ui.counting("measuring layers") as progress:
        return measure(
            task.program,
            task.batches,
            task.quantizer,
            worst=worst,
            cost=task.cost(),
            correct_bias=task.correct_bias,
            progress=progress,
        )


def _search(
    task: _Task, accuracy: float | None, max_drop: float | None, limit: int | None, known: Sensitivity | None
) -> tuple[Found, Program, float]:
    """The exceptions, the program with them, and its accuracy as the host reference computes it."""
    from tinyet.quantization.batches import batches_of
    from tinyet.quantization.sensitivity import accuracy_of, search

    with ui.stages("compiling"):
        as_torch = _evaluation(task, channels_last=False, limit=limit)
        as_program = _evaluation(task, channels_last=True, limit=limit) if task.channels_last else as_torch
    assert as_torch.labels is not None
    labels = [int(label) for label in as_torch.labels]
    evaluate = accuracy_of(
        batches_of(as_torch.arrays, task.source.example_inputs, str(task.source.path)), labels
    )
    with ui.stages("evaluating the float model"):
        target = accuracy if accuracy is not None else evaluate(task.program) - (max_drop or 0.0)
    aim = target
    for _ in range(_ATTEMPTS):
        with ui.counting("searching exceptions") as progress:
            found = search(
                task.program,
                task.batches,
                evaluate,
                aim,
                task.quantizer,
                cost=task.cost(),
                correct_bias=task.correct_bias,
                sensitivity=known,
                progress=progress,
            )
        with ui.stages("compiling") as progress:
            program = task.compile(found.quantizer, progress)
        host = _host_accuracy(program, as_program, labels)
        if host >= target:
            return found, program, host
        known = known or found.sensitivity
        # The reference rounds as the device does, torch a little differently: aim higher by what that took.
        aim = found.accuracy + 1 / len(labels) / 2
    raise QuantizationError(
        f"the host reference reaches {host:.4f}, less than {target:.4f}, which the torch program kept",
        hint="ask for a little less",
    )


def _evaluation(task: _Task, *, channels_last: bool, limit: int | None) -> Data:
    """The model's labelled samples in the order of memory that is asked for."""
    float_program = compile_model(task.source.program, name=task.name, channels_last=channels_last)
    data, remarks = evaluation_of(task.source, float_program, channels_last)
    if data is None or data.labels is None:
        raise DataError(
            "--auto needs evaluation data with labels",
            str(task.source.path),
            "; ".join(remarks) or "define evaluation(): it returns inputs, labels",
        )
    return Data(tuple(array[:limit] for array in data.arrays), data.labels[:limit])


def _host_accuracy(program: Program, data: Data, labels: Sequence[int]) -> float:
    right = 0
    with ui.counting("verifying on the host reference") as progress:
        for index, label in enumerate(labels):
            result = program.run(*(array[index] for array in data.arrays))
            right += predicted(result[0] if isinstance(result, list) else result) == label
            progress(index + 1, len(labels))
    return right / len(labels)


# ---------------------------------------------------------------- showing


def _record(
    task: _Task, sensitivity: Sensitivity | None, found: Found | None, host: float | None, out: Path | None
) -> dict[str, object]:
    """The documented, stable form of `--json` (docs/json.md)."""
    measured: dict[str, object] = {"output_sqnr_db": None, "layers": [], "exceptions": []}
    if sensitivity is not None:
        measured = sensitivity.to_json()
    cost = found.cost if found is not None else sensitivity.cost if sensitivity is not None else None
    automatic: dict[str, object] | None = None
    if found is not None:
        automatic = {
            "base_accuracy": found.base_accuracy,
            "accuracy": found.accuracy,
            "host_accuracy": host,
            "exceptions": dict(found.exceptions),
            "steps": [
                {"exceptions": dict(step.exceptions), "accuracy": step.accuracy} for step in found.steps
            ],
        }
    return {
        "version": 1,
        "name": task.name,
        "board": task.board,
        "program": None if out is None else str(out),
        "flash_bytes": None if cost is None else cost.flash_bytes,
        "arena_bytes": None if cost is None else cost.arena_bytes,
        **measured,
        "auto": automatic,
    }


def _db(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def _show_sensitivity(sensitivity: Sensitivity) -> None:
    rows = [
        (layer.module, layer.op.removeprefix("aten.").split(".")[0], _db(layer.sqnr_db), _db(layer.alone_db),
         layer.source)
        for layer in sensitivity.worst
    ]  # fmt: skip
    ui.table(
        [
            ("layer, worst first", "text"),
            ("op", "name"),
            ("SQNR dB", "number"),
            ("alone, at output", "number"),
            ("source", "detail"),
        ],
        rows,
    )
    cost = sensitivity.cost
    facts = [("SQNR of the output", f"{_db(sensitivity.output_db)} dB")]
    if cost is not None:
        facts += [
            ("weights and tables", f"{ui.number(cost.flash_bytes)} bytes"),
            ("arena", f"{ui.number(cost.arena_bytes)} bytes"),
        ]
    ui.facts("", facts)
    _show_exceptions(sensitivity.exceptions)


def _show_exceptions(exceptions: Sequence[Exception_]) -> None:
    if not exceptions:
        return
    rows = [
        (
            entry.module,
            entry.kind,
            f"{entry.gain_db:+.1f}",
            "–" if entry.flash_bytes is None else f"{entry.flash_bytes:+d}",
            "–" if entry.arena_bytes is None else f"{entry.arena_bytes:+d}",
            entry.refused.split("\n")[0],
        )
        for entry in exceptions[:MOST_EXCEPTIONS]
    ]
    ui.table(
        [
            ("exception", "text"),
            ("as", "name"),
            ("output dB", "number"),
            ("flash", "number"),
            ("arena", "number"),
            ("refused", "detail"),
        ],
        rows,
    )
    best = exceptions[0]
    if not best.refused and best.gain_db > 0:
        ui.say(f"\nto take the first: --layer {best.module}={best.kind}")


def _show_found(found: Found, host: float) -> None:
    chosen = [(path, kind) for path, kind in found.exceptions.items()]
    pairs = [
        ("without exceptions", ui.percent(found.base_accuracy)),
        ("exceptions", ", ".join(f"{path}={kind}" for path, kind in chosen) or "none needed"),
        ("accuracy", f"{ui.percent(host)} on the host reference"),
        ("tried", f"{len(found.steps)} set(s) of exceptions"),
    ]
    if found.cost is not None:
        pairs += [
            ("weights and tables", f"{ui.number(found.cost.flash_bytes)} bytes"),
            ("arena", f"{ui.number(found.cost.arena_bytes)} bytes"),
        ]
    ui.facts("", pairs)
