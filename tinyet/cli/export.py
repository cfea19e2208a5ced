# SPDX-License-Identifier: Apache-2.0
"""`tinyet export`: a model, as tinyet computes it, as a file of another tool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, get_args

import typer

from tinyet.cli import ui
from tinyet.cli.model import CaptureOptions, obtain
from tinyet.cli.options import (
    Calibration,
    ChannelsLast,
    FloatIo,
    Model,
    RoundingOption,
    SignatureOption,
    rounding_of,
)
from tinyet.errors import UsageError
from tinyet.exporters.tflite import Runtime
from tinyet.to_files import export_tflite


def export(
    model: Model,
    tflite: Annotated[Path, typer.Option("--tflite", metavar="FILE", help="the .tflite file to write")],
    runtime: Annotated[
        str,
        typer.Option(
            "--for", metavar="RUNTIME", help="whose kernels give the program's bits: litert or tflm"
        ),
    ] = "litert",
    calibration: Calibration = None,
    float_io: FloatIo = False,
    channels_last: ChannelsLast = False,
    rounding: RoundingOption = "tflm",
    signature: SignatureOption = None,
) -> None:
    """Write the program of a model as a .tflite file.

    The runtime computes it to the same integers, bit for bit. Notes say what the other runtime does otherwise.
    """
    if tflite.suffix != ".tflite":
        raise UsageError(
            f"{tflite} does not end in .tflite", "--tflite", f"--tflite {tflite.with_suffix('.tflite')}"
        )
    if not tflite.parent.is_dir():
        raise UsageError(f"there is no directory {tflite.parent}", "--tflite")
    if Path(model).resolve() == tflite.resolve():
        raise UsageError("MODEL and the file to write are one", str(tflite), "another name for --tflite")
    options = CaptureOptions(
        calibration,
        float_io=float_io,
        channels_last=channels_last,
        rounding=rounding_of(rounding),
        signature=signature,
    )
    compiled = obtain(model, options)
    with ui.stages("writing the .tflite file"):
        notes = export_tflite(compiled.program, tflite, runtime=_runtime_of(runtime))
    ui.notes((*compiled.warnings, *map(str, notes)))
    ui.say(f"{tflite}: program {compiled.program.name}, {tflite.stat().st_size} bytes")
    ui.say(f"next: tinyet validate DIR --oracle {tflite}, of a project of the same model")


def _runtime_of(text: str) -> Runtime:
    known: dict[str, Runtime] = {each: each for each in get_args(Runtime)}
    if text not in known:
        raise UsageError(f"--for {text} is not known", hint=f"--for {' or '.join(known)}")
    return known[text]
