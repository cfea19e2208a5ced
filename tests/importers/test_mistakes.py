# SPDX-License-Identifier: Apache-2.0
"""Every mistake of the list is answered with what, where and what to do; what the answer says to do works; and
docs/mistakes.md shows just these answers."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.golden_files import difference, write_changed
from tests.importers import mistaken_models, mistakes
from tests.importers.mistaken_arguments import MORE_MISTAKES
from tests.importers.mistakes import Attempt, Mistake
from tinyet.errors import TinyetError
from tinyet.program import Program
from tinyet.reference import Session

MISTAKES = (*mistakes.MISTAKES, *MORE_MISTAKES)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "mistakes.md"
SOURCE = r"\S*mistake\w+\.py"

_HEAD = """\
# Mistakes and their answers

This page is what `tests/importers/test_mistakes.py` was told when it made each mistake; the same test does what
the last column says, and that compiles. `pytest tests/importers/test_mistakes.py --update-golden` writes the page anew.

An answer lists all that is wrong, once each, with your own file and line (here `model.py`) where it is a line of yours.
It is a `TinyetError` of the class in the second column; its parts are `what`, `where` and `hint`.

| mistake | answer | where | what to do |
|---|---|---|---|
"""


def answer(mistake: Mistake) -> TinyetError:
    with pytest.raises(TinyetError) as caught:
        mistake.wrong()
    return caught.value


@pytest.fixture(scope="module")
def answers() -> dict[Mistake, TinyetError]:
    """Each mistake, made once."""
    return {mistake: answer(mistake) for mistake in MISTAKES}


ALL = pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: re.sub(r"\W+", " ", m.title).strip())


@ALL
def test_the_answer_says_what_where_and_what_to_do(
    mistake: Mistake, answers: dict[Mistake, TinyetError]
) -> None:
    error = answers[mistake]
    assert type(error) is mistake.error
    assert not str(error).splitlines()[0].endswith(": ")
    assert "do: " in str(error)
    assert mistake.at in str(error)
    lines, first = mistake.wrong.source if isinstance(mistake.wrong, Attempt) else ([], 0)
    numbers = [first + index for index, line in enumerate(lines) if mistake.at in line]
    assert not numbers or re.search(rf"{SOURCE}:{numbers[0]}: ", str(error))


def test_each_complaint_is_made_once(answers: dict[Mistake, TinyetError]) -> None:
    for error in answers.values():
        complaints = re.split(r"\n  - ", str(error))
        assert len(complaints) == len(set(complaints)), str(error)


@ALL
def test_what_the_answer_says_works(mistake: Mistake) -> None:
    made = mistake.right()
    if mistake.same:
        assert isinstance(mistake.wrong, Attempt)
        assert isinstance(made, Program)
        with torch.no_grad():
            wanted = mistake.wrong.model.eval()(*mistake.wrong.example)
        given = [x if x.is_floating_point() else x.int() for x in mistake.wrong.example]
        found = Session(made.graph).outputs([np.asarray(x) for x in given])
        np.testing.assert_allclose(np.asarray(found[0], np.float64), wanted.numpy(), rtol=1e-4, atol=1e-5)


def test_all_calibration_data_may_be_one_tensor() -> None:
    """It is one batch where it has the input's dimensions, and a batch in each element where it has one more."""
    batches = mistaken_models.BATCHES
    ranges = set()
    for given in (batches, torch.cat(batches), torch.stack(batches)):
        for correct_bias in (False, True):
            program = Attempt(
                mistaken_models.LINEAR, mistaken_models.ROW, calibration=given, correct_bias=correct_bias
            )()
            ranges.add((correct_bias, program.graph.inputs[0].type, program.graph.outputs[0].type))
    assert len(ranges) == 2


def cell(text: str) -> str:
    """Text as a cell of a table; places have the name of a user's file, and not the line number, which changes."""
    text = re.sub(rf"{SOURCE}:\d+", "model.py", text)
    text = text.replace("|", "\\|").replace("<", "&lt;").replace("\n", "<br>")
    return " ".join(text.split())


def row(mistake: Mistake, error: TinyetError) -> str:
    """what: the complaint; where: the place; do: the hint. Those of a list stand in its lines."""
    listed = re.findall(r"  - (.*?)\n +at: (.*?)(?:\n +do: (.*?))?(?=\n  - |\Z)", error.what, re.DOTALL)
    if listed:
        what, where, hint = ("\n".join(dict.fromkeys(part)) for part in zip(*listed, strict=True))
    else:
        what, where, hint = error.what, error.where or "", error.hint or ""
    return f"| {mistake.title} | {type(error).__name__}: {cell(what)} | {cell(where)} | {cell(hint)} |\n"


def test_the_page_shows_these_answers(
    answers: dict[Mistake, TinyetError], request: pytest.FixtureRequest
) -> None:
    text = _HEAD + "".join(row(mistake, error) for mistake, error in answers.items())
    if request.config.getoption("update_golden"):
        write_changed(PAGE, text)
    complaint = difference(PAGE, text)
    assert complaint is None, f"{complaint}\nto accept it: pytest {Path(__file__).name} --update-golden"
