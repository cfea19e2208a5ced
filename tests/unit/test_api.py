# SPDX-License-Identifier: Apache-2.0
"""What Python users meet: names at the top, arguments that are used or refused, a repr that fits on a screen."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tinyet
from tests import small
from tinyet.analysis import analyze
from tinyet.data import Data, Samples
from tinyet.delegates import CMSIS_NN, CORTEX_M, DEFAULT, PORTABLE, Delegates, delegates_named
from tinyet.deployment import deploy
from tinyet.errors import UsageError
from tinyet.projects.one import generate
from tinyet.validation import ValidationResult

_BOARD = tinyet.load_board("mps2_an386")


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ("cmsis_nn", ["cmsis_nn"]),
        (CMSIS_NN, ["cmsis_nn"]),
        (["cortex_m", PORTABLE], ["cortex_m", "portable"]),
        ((), []),
    ],
)
def test_delegates_by_name_or_as_objects(wanted: Delegates, names: list[str]) -> None:
    assert [delegate.name for delegate in delegates_named(wanted)] == names


def test_what_is_no_delegate_is_listed() -> None:
    with pytest.raises(UsageError) as caught:
        delegates_named(["cortex_m", 3, None])  # type: ignore[list-item]
    assert "3, None" in caught.value.what
    with pytest.raises(UsageError) as caught:
        delegates_named(["cortex_m", "fast", "faster"])
    assert "fast, faster" in caught.value.what


def test_generate_and_analyze_take_delegates_either_way(tmp_path: Path) -> None:
    program = small.program()
    by_name = generate(program, "mps2_an386", tmp_path / "a", delegates="cortex_m")
    by_object = generate(program, _BOARD, tmp_path / "b", delegates=[CORTEX_M])
    assert by_name.manifest == by_object.manifest
    assert by_name.delegates == (CORTEX_M,)
    assert analyze(program, "mps2_an386", delegates="portable") == analyze(
        program, _BOARD, delegates=(PORTABLE,)
    )


def test_arguments_without_effect_are_refused(tmp_path: Path) -> None:
    program = small.program()
    with pytest.raises(UsageError, match="required"):
        generate(program, _BOARD, tmp_path / "p", require_delegate=True)
    with pytest.raises(UsageError, match="required"):
        analyze(program, _BOARD, require_delegate=True)
    arrays = (np.zeros((1, 6, 6, 3), np.int8),)
    with pytest.raises(UsageError, match="no application"):
        generate(program, _BOARD, tmp_path / "p", kind="model", sample=arrays)
    with pytest.raises(UsageError, match="no application"):
        generate(program, _BOARD, tmp_path / "p", kind="model", evaluation=Data(arrays))
    assert not (tmp_path / "p").exists()


def test_a_repr_is_short() -> None:
    program = small.program(hidden=300)
    deployment = deploy(program.graph, _BOARD.target, DEFAULT)
    result = ValidationResult(
        "qemu", "mps2_an386", 1000, 0, None, None, None, None, 12345, "instructions", 1, 2, 3, 4, 5, (),
        [[np.zeros(1000)]] * 1000,
    )  # fmt: skip
    things = (
        *(
            program,
            program.graph,
            *program.graph.nodes,
            *program.graph.constants,
            deployment,
            *deployment.steps,
        ),
        *(
            analyze(program, _BOARD),
            result,
            Data((np.zeros((5000, 100)),)),
            Samples(((np.zeros(10**6),),) * 9),
        ),
    )
    for thing in things:
        text = repr(thing)
        assert len(text) < 400, text
        assert text.count("\n") < 20
    assert "conv2d" in repr(program.graph.nodes[0])
    assert "net.py:11" in repr(program.graph.nodes[0])
    assert "12,345 instructions" in repr(result)
    assert program.inputs[0].name in repr(program)


def test_every_public_name_is_there() -> None:
    for name in ("load", "open_project", "prepare_training", "compile", "generate"):
        assert name in dir(tinyet)
        assert callable(getattr(tinyet, name))


def test_the_page_has_every_public_name() -> None:
    text = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} | {"__version__"} == set(
        tinyet.__all__
    )


def test_python_m_tinyet_is_the_command() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tinyet", "--version"], capture_output=True, text=True, check=True
    )
    assert ended.stdout == f"tinyet {tinyet.__version__}\n"
