# SPDX-License-Identifier: Apache-2.0
"""`tinyet export`: a model, as tinyet computes it, as a file of another tool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tinyet.cli import ui
from tinyet.cli.model import obtain
from tinyet.cli.options import Model, ModelFlags, runtime_of, takes_model
from tinyet.errors import UsageError
from tinyet.opening import kind_of
from tinyet.to_files import export_tflite


@takes_model()
def export(
    model: Model,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="the .tflite file to write")],
    runtime: Annotated[
        str | None,
        typer.Option(
            "--runtime",
            metavar="NAME",
            help="whose kernels give the program's bits: litert, the default, or tflm; a .tflite is read so, too",
        ),
    ] = None,
    *,
    flags: ModelFlags,
) -> None:
    """Write the program of a model as a .tflite file.

    The runtime computes it to the same integers, bit for bit. Notes say what the other runtime does otherwise.
    """
    if out.suffix != ".tflite":
        raise UsageError(f"{out} does not end in .tflite", "-o", f"-o {out.with_suffix('.tflite')}")
    if not out.parent.is_dir():
        raise UsageError(f"there is no directory {out.parent}", "-o")
    if Path(model).resolve() == out.resolve():
        raise UsageError("MODEL and the file to write are one", str(out), "another name for -o")
    wanted = runtime_of(runtime or "litert")
    reads_runtime = runtime is not None and kind_of(model) == ".tflite"
    options = flags.options(runtime=wanted) if reads_runtime else flags.options()
    compiled = obtain(model, options)
    with ui.stages("writing the .tflite file"):
        notes = export_tflite(compiled.program, out, runtime=wanted)
    ui.notes((*compiled.warnings, *map(str, notes)))
    ui.say(f"{out}: program {compiled.program.name}, {out.stat().st_size} bytes")
    ui.say(f"next: tinyet validate DIR --oracle {out}, of a project of the same model")
