# SPDX-License-Identifier: Apache-2.0
"""Programs as the files of other tools."""

from __future__ import annotations

from pathlib import Path

from tinyet.errors import ProgramError, UsageError
from tinyet.errors.arguments import path_given, runtime_given
from tinyet.exporters.tflite import export_graph
from tinyet.files.atomic import write_whole
from tinyet.ir import Note
from tinyet.messages.stages import stage
from tinyet.program import Program
from tinyet.tflite import MAX_FILE_BYTES, Runtime
from tinyet.tflite.write import write_model


def export_tflite(program: Program, path: str | Path, *, runtime: Runtime = "litert") -> tuple[Note, ...]:
    """Write the program as a .tflite file, which the runtime computes to the program's own integers, bit for bit.

    runtime: whose kernels these are: "litert" (its reference kernels; the optimised ones give other bits) or "tflm",
    TensorFlow Lite Micro. An existing file is replaced whole or not at all. Returns notes: what the other runtime
    computes otherwise, and where an operator costs more than in the program.

    Raises UnsupportedOp that lists, with their places, all operators that the runtime has not with these bits;
    ProgramError where the file cannot be written or would be larger than one may be; UsageError for arguments that
    cannot be.
    """
    target = path_given(path, "export_tflite takes a program and the path of the .tflite file to write")
    if not isinstance(program, Program):
        raise UsageError(
            f"export_tflite takes a Program, not a {type(program).__name__}",
            hint="tinyet.compile, tinyet.open",
        )
    runtime_given(runtime)
    stage("writing the .tflite file")
    model, notes = export_graph(program.graph, runtime)
    data = write_model(model)
    if len(data) > MAX_FILE_BYTES:
        what = f"the file would have {len(data):,} bytes, and may have {MAX_FILE_BYTES:,}"
        raise ProgramError(what, str(target), "a smaller model, or one that is quantized")
    try:
        write_whole(target, data)
    except OSError as error:
        raise ProgramError(f"the file cannot be written: {error.strerror}", str(target)) from error
    return notes
