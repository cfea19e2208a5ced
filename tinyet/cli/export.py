# SPDX-License-Identifier: Apache-2.0
"""`tinyet export`: a model, as tinyet computes it, as a file of another tool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tinyet.analysis import analyze
from tinyet.boards import DEFAULT_BOARD
from tinyet.cli import ui
from tinyet.cli.model import obtain
from tinyet.cli.options import Model, ModelFlags, runtime_of, takes_model
from tinyet.errors import DataError, UsageError
from tinyet.files.reading import read_bounded
from tinyet.messages.text import json_text
from tinyet.opening import Opened, kind_of
from tinyet.pages import viewers
from tinyet.tflite import Runtime
from tinyet.to_files import export_tflite

_MOST_BYTES = 64 << 20
"""Of a report: some kilobytes a layer."""


@takes_model()
def export(
    model: Model,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="the .tflite file to write")
    ] = None,
    runtime: Annotated[
        str | None,
        typer.Option(
            "--runtime",
            metavar="NAME",
            help="whose kernels give the program's bits: litert, the default, or tflm; a .tflite is read so, too",
        ),
    ] = None,
    model_explorer: Annotated[
        Path | None,
        typer.Option(
            "--model-explorer",
            metavar="FILE",
            help="write the graph for Google's Model Explorer, a .json, and beside it one for each figure to colour it",
        ),
    ] = None,
    netron: Annotated[
        Path | None,
        typer.Option(
            "--netron", metavar="FILE", help="write the graph for Netron, an .onnx that nothing runs"
        ),
    ] = None,
    board: Annotated[
        str | None,
        typer.Option("--board", help=f"of the graphs: whose kernels they show; by default {DEFAULT_BOARD}"),
    ] = None,
    measured: Annotated[
        Path | None,
        typer.Option(
            "--measured",
            metavar="JSON",
            help="of the graphs: a report of `tinyet validate`, whose counts and SQNR they show",
        ),
    ] = None,
    *,
    flags: ModelFlags,
) -> None:
    """Write the program of a model as a .tflite file, or its graph for viewers of graphs.

    Another runtime computes the .tflite file to the same integers, bit for bit; notes say what it does otherwise.
    """
    _check(
        model,
        {
            "-o": (out, ".tflite"),
            "--model-explorer": (model_explorer, ".json"),
            "--netron": (netron, ".onnx"),
        },
    )
    if model_explorer is None and netron is None and (board is not None or measured is not None):
        raise UsageError(
            "--board and --measured are of graphs", hint="give --model-explorer or --netron, too"
        )
    report = None if measured is None else _measured(measured)
    wanted = runtime_of(runtime or "litert")
    reads_runtime = runtime is not None and kind_of(model) == ".tflite"
    options = flags.options(runtime=wanted) if reads_runtime else flags.options()
    compiled = obtain(model, options)
    if model_explorer is not None or netron is not None:
        with ui.stages("analyzing"):
            analysis = analyze(compiled.program, board).to_json()
        if model_explorer is not None:
            _explorer(model_explorer, analysis, report)
        if netron is not None:
            ui.write_file(netron, viewers.netron(analysis, report))
            ui.say(f"{netron}: for Netron")
    if out is not None:
        _tflite(compiled, out, wanted)


def _check(model: str, files: dict[str, tuple[Path | None, str]]) -> None:
    """Early checks of the command line."""
    if all(file is None for file, _ in files.values()):
        raise UsageError(
            "there is nothing to write", "tinyet export", "-o FILE.tflite, --model-explorer or --netron"
        )
    for option, (file, ending) in files.items():
        if file is None:
            continue
        if file.suffix != ending:
            raise UsageError(
                f"{file} does not end in {ending}", option, f"{option} {file.with_suffix(ending)}"
            )
        if not file.parent.is_dir():
            raise UsageError(f"there is no directory {file.parent}", option)
        if Path(model).resolve() == file.resolve():
            raise UsageError("MODEL and the file to write are one", str(file), f"another name for {option}")


def _tflite(compiled: Opened, out: Path, runtime: Runtime) -> None:
    with ui.stages("writing the .tflite file"):
        notes = export_tflite(compiled.program, out, runtime=runtime)
    ui.notes((*compiled.warnings, *map(str, notes)))
    ui.say(f"{out}: program {compiled.program.name}, {out.stat().st_size} bytes")
    ui.say(f"next: tinyet validate DIR --oracle {out}, of a project of the same model")


def _explorer(file: Path, analysis: viewers.Report, report: viewers.Report | None) -> None:
    """The graph, and a file for each figure."""
    ui.write_file(file, (json_text(viewers.model_explorer(analysis, report)) + "\n").encode())
    figures = viewers.node_data(analysis, report)
    for name, data in figures.items():
        ui.write_file(file.with_name(f"{file.stem}.{name}.json"), (json_text(data) + "\n").encode())
    ui.say(f"{file}: for Model Explorer; per-node data: {file.stem}.FIGURE.json of {', '.join(figures)}")


def _measured(path: Path) -> dict[str, Any]:
    """A report of `tinyet validate`. Raises DataError for a file that is none."""
    try:
        found: Any = json.loads(read_bounded(path, _MOST_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"the report cannot be read: {error}", str(path)) from error
    layers = found.get("layers") if isinstance(found, dict) else None
    if (
        not isinstance(layers, list)
        or "bit_exact" not in found
        or not all(isinstance(layer, dict) and isinstance(layer.get("name"), str) for layer in layers)
    ):
        raise DataError("this is no report of `tinyet validate`", str(path), "write one with --json FILE")
    for layer in layers:
        for key in ("instructions", "cycles", "sqnr_db"):
            value = layer.get(key)
            if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
                raise DataError(f"{key} of {layer['name']} is no number", str(path))
    return dict(found)
