# SPDX-License-Identifier: Apache-2.0
"""Every public function, given what it does not take: an error of ours that says what it was given, never Python's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyet
from tests import small
from tinyet.errors import DataError, InternalError, TinyetError, UsageError
from tinyet.project import Project

# What people put in each other's place.
WRONG: tuple[object, ...] = (None, 3, 2.5, b"x", [1], {"a": 1}, object(), str, print)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return tinyet.generate(small.program(), "mps2_an386", tmp_path_factory.mktemp("arguments") / "p")


def _says(call: Callable[[], object]) -> TinyetError:
    with pytest.raises(TinyetError) as caught:
        call()
    assert not isinstance(caught.value, InternalError)
    assert caught.value.hint or caught.value.where
    return caught.value


@pytest.mark.parametrize("given", WRONG, ids=[type(value).__name__ for value in WRONG])
def test_places_of_files(given: Any) -> None:
    program = small.program()
    for call in (
        lambda: tinyet.load(given),
        lambda: tinyet.open_project(given),
        lambda: program.save(given),
        lambda: tinyet.load_board(given),
        lambda: tinyet.generate(program, "mps2_an386", given),
        lambda: tinyet.generate(program, given, "never"),
        lambda: tinyet.generate(given, "mps2_an386", "never"),
    ):
        assert "not" in _says(call).what


OPTIONS: Mapping[str, tuple[object, ...]] = {
    "kind": (3, "arduin", None, ["cmake"]),
    "name": (3, ["x"], b"x"),
    "delegates": (3, 2.5, object()),
    "max_ram": ("64K", 0, -1, 1.5, True),
    "max_flash": ("1M", [1]),
    "sample": (3, "a", np.zeros(4), {"x": 1}),
    "evaluation": (3, [1, 2], {"inputs": 1}, "there_is_no_such.npz"),
    "library_version": (1, 1.0),
    "homepage": (3, b"http://x.y"),
}


@pytest.mark.parametrize("option", OPTIONS)
def test_options_of_generate(option: str, tmp_path: Path) -> None:
    for given in OPTIONS[option]:
        _says(partial(tinyet.generate, small.program(), "mps2_an386", tmp_path / "p", **{option: given}))  # type: ignore[arg-type]
    assert not (tmp_path / "p").exists()


RUNS: Mapping[str, tuple[object, ...]] = {
    "on": (3, None, "moon", "serial:", ["qemu"]),
    "max_samples": (0, -1, "x", 2.5),
    "timeout": ("x", 0, -1.0, None, float("inf")),
    "sqnr_samples": ("x", -1, None),
    "labels": ("abc", [0.5], 3, ["a"], [1, 2], [[1], [2, 3]]),
}


@pytest.mark.parametrize("option", RUNS)
def test_options_of_validate(option: str, project: Project) -> None:
    shape = project.program.inputs[0].shape
    for given in RUNS[option]:
        options = {"on": "host", option: given}
        _says(partial(project.validate, np.zeros(shape), **options))  # type: ignore[arg-type]


def test_data_of_several_shapes_in_one_list(project: Project) -> None:
    """`validate([a, b])`: it is said what was given, and that inputs are arguments of their own."""
    a, b = np.zeros(4, np.float32), np.zeros(3, np.float32)
    for call in (
        lambda: project.validate([a, b], on="host"),  # type: ignore[arg-type]
        lambda: project.program.run([a, b]),  # type: ignore[arg-type]
        lambda: project.samples([[a, b]]),  # type: ignore[list-item]
    ):
        error = _says(call)
        assert isinstance(error, DataError)
        assert "a list of 2 arrays of shapes (4,), (3,)" in error.what
        assert "f(images, ranges), not f([images, ranges])" in str(error.hint)
    for given in ("x", object(), np.array(["a"]), np.zeros(4, complex), None):
        assert isinstance(_says(lambda given=given: project.program.run(given)), DataError)  # type: ignore[misc]


def test_labels_without_samples_are_refused(project: Project) -> None:
    with pytest.raises(UsageError, match="no samples that they are of"):
        project.validate(labels=np.zeros(1, int), on="host")


def test_tensors_are_arrays_whatever_torch_remembers_of_them(project: Project) -> None:
    torch = pytest.importorskip("torch")
    x = torch.rand(project.program.inputs[0].shape)
    wanted = project.program.run(x.numpy())
    assert np.array_equal(project.program.run(x.requires_grad_()), wanted)
