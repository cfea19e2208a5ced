# SPDX-License-Identifier: Apache-2.0
"""MODEL on the command line → a Program and the samples to validate it with. `tinyet.opening` knows what a file is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tinyet.answers import Answers
from tinyet.cli import ui
from tinyet.cli.options import ModelFlags
from tinyet.data import Data, encode_data
from tinyet.errors import IdleOptions, UsageError
from tinyet.opening import ModelOptions, Opened, look_closer, read
from tinyet.program import Program
from tinyet.quality.alarm import on_evaluation


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


def keep_evaluation(opened: Opened, out: Path | None, model: str) -> list[str]:
    """Write the samples of the source's evaluation() to `out`. Gives the note of it, or that they are in no .tet file
    where there is no `out`. Raises UsageError where there is nothing to write."""
    data = opened.evaluation
    if out is None:
        if data is None:
            return []
        count = f"{len(data.arrays[0])} samples of evaluation()"
        text = f"the {count} are not in the .tet: --save-evaluation FILE.npz keeps them, for "
        return [f"{text}`tinyet generate --evaluation FILE.npz`"]
    if data is None:
        raise UsageError("there is no evaluation() whose samples could be saved", model, "leave it away")
    ui.write_file(out, encode_data(data, input_names(opened.program)))
    kept = f"{len(data.arrays[0])} samples{'' if data.labels is None else ' with labels'}"
    return [f"{out}: {kept}, for `tinyet generate --evaluation {out}`"]


def judged(program: Program, data: Data | None) -> Program:
    """The program with its answers to evaluation data, where nobody knows yet what they are like, or where decibels
    alone say that they are bad."""
    known = program.answers
    if data is None or (known is not None and (known.healthy or known.source == "evaluation")):
        return program
    found = on_evaluation(program, data)
    return program if found is None else replace(program, answers=found)


def quantize_options(flags: ModelFlags) -> list[str]:
    """The options among these that `tinyet quantize` takes, too, but for those that only change numbers."""
    return [
        *(() if flags.calibration is None else ("--calibration", str(flags.calibration))),
        *(() if flags.labels is None else ("--labels", str(flags.labels))),
        *(("--float-io",) if flags.float_io else ()),
        *(("--channels-last",) if flags.channels_last else ()),
        *(() if flags.prune else ("--no-prune",)),
    ]


def show_answers(program: Program, model: str, flags: ModelFlags, types: Sequence[str] = ()) -> None:
    """Say how far a program's answers are from the float model's: loudly where that is too far. types: options of
    `tinyet quantize` that said how it was quantized."""
    if program.answers is not None:
        free = [
            *(("--equalize",) if flags.equalize else ()),
            *(("--correct-bias",) if flags.correct_bias else ()),
        ]
        tell_answers(program.answers, look_closer(model, [*quantize_options(flags), *types, *free]))


def tell_answers(answers: Answers, advice: str) -> None:
    """The same of a record; advice: how to look closer."""
    if answers.healthy:
        ui.say(f"answers: {answers.said}")
    else:
        title = f"the integers' answers are not the model's: {answers.said}"
        ui.alarm(title, [*answers.lines, advice])


def made_record(program: Program, facts: Mapping[str, object], notes: Sequence[str]) -> dict[str, object]:
    """The documented, stable form of `--json` of the commands that make something of a program (docs/json.md)."""
    answers = None if program.answers is None else program.answers.to_json()
    return {"version": 1, **facts, "hash": program.hash, "answers": answers, "notes": list(notes)}


def input_names(program: Program) -> Sequence[str]:
    return [tensor.name for tensor in program.inputs]
