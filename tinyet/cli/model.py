# SPDX-License-Identifier: Apache-2.0
"""MODEL on the command line → a Program and the samples to validate it with. `tinyet.opening` knows what a file is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tinyet.cli import ui
from tinyet.data import encode_data
from tinyet.errors import IdleOptions, UsageError
from tinyet.opening import ModelOptions, Opened, read
from tinyet.program import Program


def obtain(model: str, options: ModelOptions) -> Opened:
    """The program that MODEL names. Raises UsageError when there is no such file, and the model's own errors."""
    with ui.stages("reading the model") as progress:
        try:
            return read(model, options.reporting(progress))
        except IdleOptions as error:
            raise UsageError(f"{spelled(error.names)}: {error.why}", error.where, error.hint) from error


def spelled(names: Iterable[str]) -> str:
    """Parameters of Python as options of the command line."""
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def keep_evaluation(opened: Opened, out: Path | None, model: str) -> None:
    """Write the samples of the source's evaluation() to `out`; say that they are in no .tet file where there is none.
    Raises UsageError where there is nothing to write."""
    data = opened.evaluation
    if out is None:
        if data is not None:
            count = f"{len(data.arrays[0])} samples of evaluation()"
            text = f"the {count} are not in the .tet: --save-evaluation FILE.npz keeps them, for "
            ui.notes([f"{text}`tinyet generate --evaluation FILE.npz`"])
        return
    if data is None:
        raise UsageError("there is no evaluation() whose samples could be saved", model, "leave it away")
    ui.write_file(out, encode_data(data, input_names(opened.program)))
    kept = f"{len(data.arrays[0])} samples{'' if data.labels is None else ' with labels'}"
    ui.notes([f"{out}: {kept}, for `tinyet generate --evaluation {out}`"])


def input_names(program: Program) -> Sequence[str]:
    return [tensor.name for tensor in program.inputs]
