# SPDX-License-Identifier: Apache-2.0
"""Runs by compiled C: the same bits as the host reference's, which judges some of them."""

from __future__ import annotations

import gc
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests import small
from tests.ops.cases import Case, arenas_of_any_size, build_graph
from tests.ops.strategies import strategy_of
from tests.unit.test_session import total
from tinyet.data import prepare_inputs
from tinyet.errors import DataError, InternalError, UsageError
from tinyet.ir import Array
from tinyet.native import Runs, library, runs
from tinyet.native.library import Library
from tinyet.ops import OPS
from tinyet.reference import run_graph

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="nothing is compiled on Windows"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
]

MANY = 10**9
"""Runs that are worth a compiler's time, however short they are."""


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of this file's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.mark.parametrize("names", [[op.name for op in OPS[i::4]] for i in range(4)], ids=lambda n: n[0])
def test_operators(names: list[str]) -> None:
    """Layers of all operators side by side, outputs that are inputs among them, twice: nothing is left over."""

    @settings(max_examples=1, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.tuples(*(strategy_of(name) for name in names)))
    def check(drawn: tuple[Case, ...]) -> None:
        graph = build_graph(drawn)
        inputs = [array for case in drawn for array in case.inputs]
        with arenas_of_any_size():
            found = Runs(graph, 2, "native")
        for _ in range(2):
            for tensor, value, wanted in zip(
                graph.outputs, found.outputs(inputs), run_graph(graph, inputs), strict=True
            ):
                assert value.dtype == wanted.dtype, tensor.name
                assert np.array_equal(value, wanted, equal_nan=wanted.dtype.kind == "f"), tensor.name
        assert (found.how, found.judged) == ("native", 1)

    check()


@pytest.mark.parametrize("quantized", [False, True])
def test_states_go_from_run_to_run(quantized: bool) -> None:
    program = total(quantized)
    one, other, session = (
        Runs(program.graph, 9, "native"),
        Runs(program.graph, 9, "native"),
        program.session(),
    )
    for i in range(6):
        x = prepare_inputs(program.inputs, [np.array([[i, 0.5, -0.5]], np.float32)])
        assert np.array_equal(one.outputs(x)[0], session.run(*x, as_float=False))
        assert np.array_equal(one.state["total"], session.state["total"])
    # Another of the same library begins at the beginning.
    x = prepare_inputs(program.inputs, [np.ones((1, 3), np.float32)])
    assert np.array_equal(other.outputs(x)[0], program.run(*x, as_float=False))
    session.reset()
    one.state["total"] = session.state["total"]
    assert np.array_equal(one.outputs(x)[0], session.run(*x, as_float=False))


def test_an_evaluation_is_its_runs() -> None:
    program, images = small.program(), small.images(40)
    wanted = np.stack([np.asarray(program.run(image)) for image in images])
    labels = wanted.reshape(40, -1).argmax(axis=1)
    labels[:10] += 1
    found = program.evaluate(images, labels=labels, by="native")
    assert np.array_equal(found.outputs[0], wanted)
    assert (found.accuracy, found.by, found.why, found.judged) == (0.75, "native", None, 1)
    assert repr(found) == "<evaluation of 40 samples by native, 1 judged by numpy, accuracy 75.00%>"
    by_numpy = program.evaluate(images, as_float=False, by="numpy")
    assert (by_numpy.by, by_numpy.judged, by_numpy.accuracy) == ("numpy", 0, None)
    assert by_numpy.outputs[0].dtype == np.int8
    # The integers that a device takes give its integers.
    integers = np.stack([np.round(image / 0.05 + 3).clip(-128, 127).astype(np.int8) for image in images])
    assert np.array_equal(program.evaluate(integers, by="native").outputs[0], by_numpy.outputs[0])


def test_few_runs_stay_with_numpy_and_many_do_not() -> None:
    graph, image = small.program().graph, np.zeros((1, 6, 6, 3), np.int8)
    few, many = Runs(graph, 3), Runs(graph, MANY)
    ways = []
    for _ in range(4):
        assert np.array_equal(few.outputs([image])[0], many.outputs([image])[0])
        ways.append((few.how, many.how))
    assert ways == [("numpy", "numpy"), ("numpy", "numpy"), ("numpy", "native"), ("numpy", "native")]
    assert (few.why, many.why, many.judged) == (None, None, 1)


@contextmanager
def flipped(first: int, what: str) -> Iterator[None]:
    """Within, compiled C is wrong by a bit from its run of this number on: in the outputs, or the states."""
    right, count = Library.run, iter(range(100))

    def wrong(self: Library, inputs: list[Array], states: list[Array]) -> tuple[list[Array], list[Array]]:
        found = right(self, inputs, states)
        if next(count) >= first:
            array = found[what == "state"][0]
            array.view(np.uint8).reshape(-1)[1] ^= 1
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Library, "run", wrong)
        yield


def test_the_first_run_is_judged() -> None:
    differ = r"C of small .* differ in sample 0, head, element 1: .*\n.*by=.numpy"
    with flipped(0, "output"), pytest.raises(InternalError, match=differ):
        small.program().evaluate(small.images(2), by="native")
    differ = r"C of total .* differ in sample 0, total, element 0"
    with flipped(0, "state"), pytest.raises(InternalError, match=differ):
        total().evaluate(np.zeros((2, 3), np.float32), by="native")


def test_others_are_judged_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "JUDGED_EVERY", 4)
    program, images = small.program(), small.images(9)
    assert program.evaluate(images, by="native").judged == 3
    with flipped(2, "output"), pytest.raises(InternalError, match="differ in sample 4, head"):
        program.evaluate(images, by="native")


def test_one_nan_is_like_another() -> None:
    nan, other = (np.array([[0.5, np.uint32(0x7FC00000 + i).view(np.float32)]], np.float32) for i in range(2))
    runs.agree("net", 7, {"y": nan}, [other])
    with pytest.raises(InternalError, match=r"sample 7, y, element 1: 2\.0 where it is nan"):
        runs.agree("net", 7, {"y": nan}, [np.array([[0.5, 2.0]], np.float32)])


def test_what_does_not_fit_is_refused() -> None:
    program = small.program()
    with pytest.raises(UsageError, match="nothing evaluates by 'gcc'"):
        program.evaluate(small.images(2), by="gcc")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="input x is int8"):
        Runs(program.graph, 1, "native").outputs([np.zeros((1, 6, 6, 3), np.float32)])
    images = small.images(3).astype(np.float64)
    with pytest.raises(DataError, match="different numbers of samples"):
        program.evaluate(images, labels=np.zeros(2, np.int64))
    wide = np.zeros((3, 6, 6, 3), np.int16)
    wide[2, 0, 0, 0] = 128
    with pytest.raises(DataError, match=r"values for input x leave int8\n  at: sample 2"):
        program.evaluate(wide)


@pytest.mark.usefixtures("young")
def test_the_library_is_unloaded_with_its_last_user() -> None:
    before, graph = library.loaded(), small.program(hidden=3).graph
    first, second = Runs(graph, 1, "native"), Runs(graph, 1, "native")
    (path,) = set(library.loaded()) - set(before)
    assert str(path) in mapped()
    del first
    gc.collect(0)
    assert path in library.loaded()
    del second
    gc.collect(1)
    assert library.loaded() == before
    assert str(path) not in mapped()


def mapped() -> str:
    """The files in this process's memory, where the system says that; else nothing but what is loaded."""
    maps = Path("/proc/self/maps")
    return maps.read_text(encoding="utf-8") if maps.exists() else " ".join(map(str, library.loaded()))
