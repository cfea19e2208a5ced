# SPDX-License-Identifier: Apache-2.0
"""How hypothesis draws: with new examples in every run at home, with the same ones in continuous integration, where a
failure must belong to the change that is tested. And where a session keeps the objects that its tests share, and what
spares it time."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import tempfile
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, Phase, control, core, settings
from hypothesis.strategies._internal import core as strategies

from tests import kept_strategies
from tests.compilers import launcher, quick_cmake, quick_platformio
from tests.compilers.sanitizers import QUICK
from tests.ops.objects import DIRECTORY, directory, stored, stored_together
from tinyet.build import gcc, objects
from tinyet.device import host

# The fixture `golden` and its option; the slowest files and what they compile, at the end; workers.
pytest_plugins = ["tests.golden_files", "tests.slowest", "tests.workers"]

# Compilers and emulators are slow on a busy machine, and strategies discard what an operator refuses.
CALM = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]

settings.register_profile("home", deadline=None, suppress_health_check=CALM)
# Nothing that fails is made smaller there: each attempt may be a compiler run, and the printed blob does it at home.
settings.register_profile(
    "ci",
    deadline=None,
    suppress_health_check=CALM,
    derandomize=True,
    print_blob=True,
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.target),
)
settings.load_profile("ci" if os.environ.get("CI") else "home")


def pytest_configure(config: pytest.Config) -> None:
    """A fresh directory for the session's objects; workers, and sessions that a test starts, inherit it."""
    if DIRECTORY not in os.environ:
        holder = tempfile.TemporaryDirectory(prefix="tinyet-objects-")
        os.environ[DIRECTORY] = holder.name
        config.add_cleanup(functools.partial(os.environ.__delitem__, DIRECTORY))
        config.add_cleanup(holder.cleanup)
    patch = pytest.MonkeyPatch()
    cache = getattr(config, "cache", None)  # There is none with -p no:cacheprovider.
    launcher.install(directory(), cache and cache.mkdir("compiled"), patch)
    quick_cmake.install(directory(), patch)
    quick_platformio.install(patch)
    patch.setattr(objects, "compile_object", stored(objects.compile_object))
    patch.setattr(objects, "compile_objects", stored_together(objects.compile_objects))
    kept_strategies.install(patch)
    # Nobody draws from numpy's own generator or Python's (ruff's NPY002 and TID251): to keep their states around each
    # example, and to look whether a strategy has changed them, takes as long as a small one.
    unchanged = contextlib.nullcontext()
    patch.setattr(core, "deterministic_PRNG", lambda: unchanged)
    for place in (control, strategies):
        patch.setattr(place, "deprecate_random_in_strategy", lambda *_: unchanged)
    # No test asks for variables and types, which are a fifth of a compiler's time: code, lines and frames are the same.
    patch.setattr(gcc, "_DEBUG_INFORMATION", "-g1")
    # Of a harness on this machine, -O1 is kept: what is compiled is what users have. -g1 says the line.
    patch.setattr(host, "_SANITIZE", (*host._SANITIZE, "-g1", *QUICK))
    config.add_cleanup(patch.undo)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Imports make little that could go, and much to walk through: collecting garbage meanwhile is a fifth of their
    time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """All of torch is loaded now, and stays: the garbage collector need not walk through it again and again. Nor once:
    of 1.2 million objects it would find 80,000 to remove, in 0.7 seconds."""
    gc.freeze()
    # What hypothesis and torch make and drop at once is looked through less often.
    gc.set_threshold(10_000, 10, 10)


@pytest.fixture
def young() -> Iterator[None]:
    """For tests that collect garbage: what is made within is young, so `gc.collect(0)`, and `gc.collect(1)` behind
    that, finds all of it. A whole collection walks through everything that a worker's tests have left."""
    gc.disable()
    gc.collect(1)
    yield
    gc.enable()
