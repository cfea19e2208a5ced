# SPDX-License-Identifier: Apache-2.0
"""The differences between two sides: figures, parts, and the answers of their programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from tinyet.boards import Board
from tinyet.comparison.conditions import Condition, condition_of, pairs_known
from tinyet.comparison.sides import BETTER_LARGER, FIGURES, Comparable, Part, Side, side_of
from tinyet.data import Data, data_given, pattern_inputs, predicted
from tinyet.errors import UsageError
from tinyet.ir import Array, Tensor
from tinyet.messages.stages import stage
from tinyet.messages.text import markdown, markdown_code
from tinyet.numerics import dequantize
from tinyet.pages import notebook
from tinyet.program import Program

MOST_ROWS = 20
"""Of layers, in a table: those that changed most."""


@dataclass(frozen=True)
class Change:
    """A figure before and after."""

    figure: str
    before: float
    after: float

    @property
    def difference(self) -> float:
        """After less before, in the figure's unit."""
        return self.after - self.before

    @property
    def share(self) -> float | None:
        """The difference as a share of what it was; None where that was zero."""
        return None if self.before == 0 else self.difference / abs(self.before)

    @property
    def verdict(self) -> Literal["same", "better", "worse"]:
        """Smaller is better, but for those of BETTER_LARGER."""
        if self.difference == 0:
            return "same"
        return "better" if (self.difference > 0) == (self.figure in BETTER_LARGER) else "worse"


@dataclass(frozen=True)
class PartChange:
    """A layer (of a firmware, a symbol) by its name. before, after: None where that side has none of this name."""

    name: str
    before: Part | None
    after: Part | None

    @property
    def changes(self) -> tuple[Change, ...]:
        """The figures that both sides know of it, equal ones included."""
        if self.before is None or self.after is None:
            return ()
        pairs = pairs_known(self.before.figures, self.after.figures)
        return tuple(Change(name, *pair) for name, pair in pairs.items())

    @property
    def differs(self) -> bool:
        """Whether anything does: a figure, the kernel, or that it is there."""
        if self.before is None or self.after is None:
            return True
        return self.before.kernel != self.after.kernel or any(change.difference for change in self.changes)


@dataclass(frozen=True)
class AnswersChange:
    """Both programs' answers to the same samples, by the host reference.

    same_program: they are one, so nothing was run. equal: samples whose outputs are equal in every bit, where both have
    outputs of the same types, else None. largest: the largest difference of an output's real values, None where shapes
    differ. accuracies: share of samples whose label each names, None without labels. synthetic: there was no data, and
    the one sample is a pattern.
    """

    same_program: bool
    samples: int
    equal: int | None
    largest: float | None
    accuracies: tuple[float, float] | None
    synthetic: bool

    @property
    def said(self) -> str:
        """In a sentence."""
        if self.same_program:
            return "the same program"
        of = f"{self.samples} {'synthetic sample' if self.synthetic else 'samples'}"
        said = "outputs of other types" if self.equal is None else f"{self.equal} of {of} equal in every bit"
        if self.largest is not None and self.equal != self.samples:
            said += f", real values at most {self.largest:.4g} apart"
        if self.accuracies is not None:
            said += f"; accuracy {self.accuracies[0]:.2%} → {self.accuracies[1]:.2%}"
        return said


@dataclass(frozen=True)
class Comparison:
    """Two sides beside each other: see `tinyet.compare`.

    changes: of the figures that both have. parts: of all layers (symbols of firmwares) of either, in the order of the
    second, those that only the first has behind them. answers: None where a side has no program, or where they take
    other inputs. notes: what makes the comparison a doubtful one.
    """

    before: Side
    after: Side
    changes: tuple[Change, ...]
    parts: tuple[PartChange, ...]
    answers: AnswersChange | None
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        worse = [c.figure for c in self.changes if c.verdict == "worse"]
        said = f"worse in {', '.join(worse)}" if worse else "worse in nothing"
        return f"<comparison of {self.before.name} and {self.after.name}: {said}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        rows: list[tuple[notebook.Cell, ...]]
        rows = [(FIGURES[c.figure], c.before, c.after, c.difference, c.verdict) for c in self.changes]
        rows += [(f"{row.name}: {row.figure}", row.before, row.after, row.change, "") for row in self.rows()]
        sides: list[tuple[str, notebook.Cell]] = [
            ("A", self.before.name),
            ("B", self.after.name),
            ("answers", None if self.answers is None else self.answers.said),
        ]
        return notebook.facts("Comparison", sides, notebook.table(("", "A", "B", "change", ""), rows))

    def broken(self, conditions: Sequence[str | Condition]) -> tuple[str, ...]:
        """The conditions that hold, and should not, each in a line with its figures.

        conditions: `instructions>+1%` and the like, as `conditions.condition_of` reads them. Raises UsageError that
        lists those that are none, and those whose figure a side does not have: what is not known is not passed."""
        read, wrong = [], []
        for one in conditions:
            try:
                read.append(condition_of(one) if isinstance(one, str) else one)
            except UsageError as error:
                wrong.append(error.what)
        wrong += [f"{c.text}: {self._missing(c)}" for c in read if not self._pairs(c)]
        if wrong:
            known = ", ".join(change.figure for change in self.changes) or "none"
            raise UsageError("\n".join(wrong), hint=f"figures that both have: {known}")
        found = []
        for condition in read:
            for name, before, after in self._pairs(condition):
                if condition.holds(before, after):
                    of = f", {name}" if name else ""
                    found.append(
                        f"{condition.text}{of}: {_change_said(Change(condition.figure, before, after))}"
                    )
        return tuple(found)

    def _pairs(self, condition: Condition) -> list[tuple[str, float, float]]:
        wholes = [("", self.changes)]
        places = [(p.name, p.changes) for p in self.parts] if condition.of_layers else wholes
        return [
            (name, change.before, change.after)
            for name, changes in places
            for change in changes
            if change.figure == condition.figure
        ]

    def _missing(self, condition: Condition) -> str:
        if condition.of_layers:
            return f"no layer of both has {condition.figure}"
        sides = [s.name for s in (self.before, self.after) if condition.figure not in s.figures]
        return f"{condition.figure} is not known of {' and '.join(sides)}"

    def to_json(self) -> dict[str, object]:
        """The documented, stable form of `--json` (docs/json.md)."""
        return {
            "version": 1,
            "before": _side_json(self.before),
            "after": _side_json(self.after),
            "figures": [_change_json(change) for change in self.changes],
            "layers": [
                {
                    "name": part.name,
                    "before_kernel": None if part.before is None else part.before.kernel,
                    "after_kernel": None if part.after is None else part.after.kernel,
                    "figures": [_change_json(change) for change in part.changes],
                }
                for part in self.parts
            ],
            "answers": None
            if self.answers is None
            else {
                "same_program": self.answers.same_program,
                "samples": self.answers.samples,
                "equal": self.answers.equal,
                "largest": self.answers.largest,
                "accuracies": None if self.answers.accuracies is None else list(self.answers.accuracies),
                "synthetic": self.answers.synthetic,
            },
            "notes": list(self.notes),
        }

    def to_markdown(self, broken: Sequence[str] = ()) -> str:
        """For a pull request: the figures, the layers that differ, and what is broken of the conditions."""
        lines = [f"### `{markdown_code(self.before.name)}` → `{markdown_code(self.after.name)}`", ""]
        lines += [f"- ❌ {markdown(line)}" for line in broken] + ([""] if broken else [])
        lines += ["| figure | before | after | change |", "|---|--:|--:|--:|"]
        for c in self.changes:
            mark = {"same": "", "better": " ✅", "worse": " 🔺"}[c.verdict]
            lines.append(
                f"| {FIGURES[c.figure]} | {shown(c.figure, c.before)} | {shown(c.figure, c.after)} | "
                f"{difference_said(c)}{mark} |"
            )
        if self.answers is not None:
            lines += ["", f"Answers: {markdown(self.answers.said)}."]
        rows = self.rows()
        if rows:
            lines += ["", "<details><summary>layers that differ</summary>", ""]
            lines += ["| layer | kernel | | before | after | change |", "|---|---|---|--:|--:|--:|"]
            for row in rows[:MOST_ROWS]:
                name, kernel = markdown(row.name), markdown(row.kernel)
                lines.append(
                    f"| {name} | {kernel} | {row.figure} | {row.before} | {row.after} | {row.change} |"
                )
            if len(rows) > MOST_ROWS:
                lines += ["", f"… and {len(rows) - MOST_ROWS} more."]
            lines += ["", "</details>"]
        lines += [line for note in self.notes for line in ("", f"Note: {markdown(note)}.")]
        return "\n".join(lines) + "\n"

    def rows(self) -> list[Row]:
        """The layers that differ, what changed most first; see `Row`."""
        found = [_row(part) for part in self.parts if part.differs]
        return sorted(found, key=lambda row: -row.size)


@dataclass(frozen=True)
class Row:
    """A layer that differs, as tables have it: by the first figure that does, in the order of FIGURES.

    name, kernel (before → after, where it is another), figure (its title), before, after, change: texts, empty where
    nothing is known. size: of the difference, to sort by.
    """

    name: str
    kernel: str
    figure: str
    before: str
    after: str
    change: str
    size: float


def _row(part: PartChange) -> Row:
    sides = [side for side in (part.before, part.after) if side is not None]
    kernel = " → ".join(dict.fromkeys(side.kernel.removeprefix("tinyet_") for side in sides))
    if len(sides) == 1:
        figure = next((name for name in FIGURES if name in sides[0].figures), "")
        value = sides[0].figures.get(figure)
        said = "" if value is None else shown(figure, value)
        before, after, change = ("", said, "only after") if part.before is None else (said, "", "only before")
        return Row(part.name, kernel, FIGURES.get(figure, ""), before, after, change, abs(value or 0))
    changes = part.changes
    first = next((c for c in changes if c.difference), changes[0] if changes else None)
    if first is None:
        return Row(part.name, kernel, "", "", "", "", 0)
    texts = (shown(first.figure, first.before), shown(first.figure, first.after), difference_said(first))
    return Row(part.name, kernel, FIGURES[first.figure], *texts, abs(first.difference))


def compare(
    before: Comparable,
    after: Comparable,
    *,
    board: str | Path | Board | None = None,
    optimize: str | None = None,
    evaluation: Data | str | Path | None = None,
) -> Comparison:
    """Two measured things beside each other: what became better and what worse, by figure and by layer.

    before, after: a report that `--json` of `validate`, `analyze` or `build` wrote, what `tinyet.open` takes, an ELF
        file; or in Python a Program, a Project, an Analysis, a ValidationResult. They need not be of one kind: figures
        of the same meaning are compared, and each is known to the side that has it.
    board, optimize: for programs and models, as `tinyet.analyze` takes them; for a project instead of its own.
    evaluation: samples, with labels or without, that both programs answer; by default those that came with the second
        or the first, or else one synthetic sample.

    Raises UsageError for what cannot be compared, DataError for files and data that do not fit; else what `tinyet.open`
    and `tinyet.analyze` raise."""
    stage("reading both sides")
    first, second = (side_of(each, board, optimize) for each in (before, after))
    pairs = pairs_known(first.figures, second.figures)
    if not pairs:
        what = f"{first.what} and {second.what} have no figure in common"
        raise UsageError(what, f"{first.name} and {second.name}", "compare reports of one command")
    changes = tuple(Change(name, *pair) for name, pair in pairs.items())
    parts = _parts(first, second)
    answers = _answers(first, second, evaluation)
    if answers is not None and answers.accuracies is not None and "accuracy" not in pairs:
        changes = (*changes, Change("accuracy", *answers.accuracies))
    notes = []
    if first.board and second.board and first.board != second.board:
        notes.append(f"they are of two boards, {first.board} and {second.board}")
    if answers is None and evaluation is not None:
        notes.append("the answers are not compared: there are no two programs that take the same inputs")
    return Comparison(first, second, changes, parts, answers, tuple(notes))


def _parts(first: Side, second: Side) -> tuple[PartChange, ...]:
    befores = {part.name: part for part in first.parts}
    afters = {part.name: part for part in second.parts}
    if not befores or not afters:
        return ()
    names = dict.fromkeys((*afters, *befores))
    return tuple(PartChange(name, befores.get(name), afters.get(name)) for name in names)


def _answers(first: Side, second: Side, evaluation: object) -> AnswersChange | None:
    """What both programs answer to the same samples; None where they take other ones, or are not there."""
    old, new = first.program, second.program
    if old is None or new is None:
        return None
    if old.hash == new.hash:
        return AnswersChange(True, 0, None, None, None, False)
    taken, also = ([(t.shape, t.dtype.numpy.kind) for t in program.inputs] for program in (old, new))
    if taken != also:
        return None
    given = data_given(evaluation, [tensor.name for tensor in old.inputs])
    data = next((each for each in (given, second.evaluation, first.evaluation) if each is not None), None)
    stage("comparing the answers")
    mine, others = (_outputs(program, old, data) for program in (old, new))
    count = len(mine[0])
    equal = None
    if [(t.shape, t.type) for t in old.outputs] == [(t.shape, t.type) for t in new.outputs]:
        same = [_same(a, b) for a, b in zip(mine, others, strict=True)]
        equal = int(np.logical_and.reduce(same).sum())
    largest = None
    if [t.shape for t in old.outputs] == [t.shape for t in new.outputs]:
        largest = _apart(mine, old.outputs, others, new.outputs)
    accuracies = None
    if data is not None and data.labels is not None:
        labels = list(np.asarray(data.labels).reshape(-1))
        rights = [
            sum(predicted(a) == label for a, label in zip(c[0], labels, strict=True)) for c in (mine, others)
        ]
        accuracies = (rights[0] / count, rights[1] / count)
    return AnswersChange(False, count, equal, largest, accuracies, data is None)


def _outputs(program: Program, first: Program, data: Data | None) -> list[Array]:
    """A program's outputs, (samples, …) each, in their own dtypes. States go on from sample to sample. first: whose
    pattern is the sample where there is no data; the other may have other scales, so both get the same real values."""
    if data is not None:
        return program.evaluate(*data.arrays, labels=data.labels, as_float=False).outputs
    pattern = [_real(a, t) for a, t in zip(pattern_inputs(first.inputs), first.inputs, strict=True)]
    found = program.run(*pattern, as_float=False)
    return [array[None] for array in (found if isinstance(found, list) else [found])]


def _same(mine: Array, others: Array) -> Array:
    """Samples in which an output is equal; NaN equals NaN."""
    equal = (mine == others) | ((mine != mine) & (others != others))
    samples: Array = equal.reshape(len(equal), -1).all(axis=1)
    return samples


def _real(array: Array, tensor: Tensor) -> Array:
    if tensor.type.quant is None or tensor.type.is_itself:
        return array
    return dequantize(array, tensor.type.quant)


def _apart(
    mine: Sequence[Array], of: Sequence[Tensor], others: Sequence[Array], theirs: Sequence[Tensor]
) -> float | None:
    """The largest difference of real values; None where one is no number."""
    largest = 0.0
    for a, t, b, u in zip(mine, of, others, theirs, strict=True):
        difference = np.abs(_real(a, t).astype(np.float64) - _real(b, u).astype(np.float64))
        largest = max(largest, float(np.max(difference, initial=0.0)))
    return largest if math.isfinite(largest) else None


# ---------------------------------------------------------------- texts


def shown(figure: str, value: float) -> str:
    """A figure's value as tables have it."""
    if figure == "accuracy":
        return f"{100 * value:.2f} %"
    return f"{value:,.1f}" if figure == "sqnr_db" else f"{value:,.0f}".replace(",", " ")


def difference_said(change: Change) -> str:
    """`+120 (+1.3 %)`; empty where there is none."""
    if change.difference == 0:
        return ""
    if change.figure == "accuracy":
        return f"{100 * change.difference:+.2f} points"
    digits = ",.1f" if change.figure == "sqnr_db" else ",.0f"
    said = f"{change.difference:+{digits}}".replace(",", " ")
    return said if change.share is None else f"{said} ({100 * change.share:+.1f} %)"


def _change_said(change: Change) -> str:
    return f"{shown(change.figure, change.before)} → {shown(change.figure, change.after)}, {difference_said(change)}"


def _change_json(change: Change) -> dict[str, object]:
    return {
        "figure": change.figure,
        "before": change.before,
        "after": change.after,
        "verdict": change.verdict,
    }


def _side_json(side: Side) -> dict[str, object]:
    return {"name": side.name, "what": side.what, "board": side.board}
