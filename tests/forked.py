# SPDX-License-Identifier: Apache-2.0
"""Scripts that need torch, run in copies of this process, which has imported it: most of the time of a small one. What
they find is otherwise as in a new Python. Tests of starting itself (the wheel, the command line) start one."""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np

from tests.compilers import warm_python
from tinyet.build.process import ends_within

ROOT = Path(__file__).resolve().parents[1]
_ENVIRONMENT = {sys.prefix, sys.base_prefix, os.__file__.rpartition("/")[0]}
FIRST_SEED = 67280421310721
"""What torch's generator begins with."""


def python(
    words: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 500
) -> subprocess.CompletedProcess[str]:
    """What `python WORDS` does and prints, for `-m MODULE ...` and `SCRIPT ...`."""
    env = dict(os.environ if env is None else env)
    if not _may_fork():
        return subprocess.run(
            [sys.executable, *words],
            cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=timeout,
        )  # fmt: skip
    path = subprocess.check_output([sys.executable, "-c", _PATH], cwd=cwd, env=env, text=True)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, Path(os.devnull).open() as nothing:
        streams = [nothing.fileno(), out.fileno(), err.fileno()]
        with warnings.catch_warnings():
            # There are other threads: none of them is needed.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                _forget(json.loads(path))
                # What this process holds is not the script's: it is not walked through in search of garbage.
                gc.freeze()
                said = [f"{name}={value}" for name, value in env.items()]
                warm_python._run(str(cwd), list(words), said, streams)
            except BaseException:  # noqa: BLE001
                traceback.print_exc()
            finally:
                os._exit(1)
        with contextlib.suppress(OSError):  # It is so already, or has ended.
            os.setpgid(child, child)
        status = _ended(child, timeout)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode())
    return subprocess.CompletedProcess([sys.executable, *words], status, *texts)


_PATH = "import json, sys; print(json.dumps(sys.path))"


def _may_fork() -> bool:
    """Threads of OpenMP do not outlive it: there must be none."""
    torch = sys.modules.get("torch")
    known = sys.platform == "linux" and hasattr(os, "pidfd_open")
    return known and torch is not None and torch.get_num_threads() == 1


def _ended(child: int, timeout: float) -> int:
    in_time = ends_within(child, timeout)
    if not in_time:
        os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not in_time:
        raise TimeoutError(f"it takes longer than {timeout} s")
    return os.waitstatus_to_exitcode(status)


def _forget(path: list[str]) -> None:
    """What this process has that a new one has not, but for installed modules and tinyet's."""
    atexit._clear()  # Servers that run belong to the process that this is a copy of.
    # All are asked first: a folder without __init__ looks for the one above it.
    for name in [name for name, module in sys.modules.items() if not _stays(module)]:
        del sys.modules[name]
    # What a script does not import itself it must not find as an attribute of what it does import.
    for name, module in list(vars(sys.modules.get("tinyet", ModuleType("tinyet"))).items()):
        if isinstance(module, ModuleType) and module.__name__ == f"tinyet.{name}" and name != "version":
            delattr(sys.modules["tinyet"], name)
    sys.path[:] = path
    sys.meta_path[:] = [finder for finder in sys.meta_path if "pytest" not in type(finder).__module__]
    importlib.invalidate_caches()
    importlib.reload(warnings)  # pytest collects them.
    sys.unraisablehook, threading.excepthook = sys.__unraisablehook__, threading.__excepthook__
    random.seed()
    np.random.seed()  # noqa: NPY002 - of scripts that are run as a user has them
    sys.modules["torch"].manual_seed(FIRST_SEED)


def _stays(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if file is None:
        # A folder without __init__, or a module of Python's own.
        places = getattr(module, "__path__", ())
        return all(_installed(place) or not _is_in(place, str(ROOT)) for place in places)
    return _installed(file) or _is_in(file, str(ROOT / "tinyet"))


def _installed(path: str) -> bool:
    """The environment may lie in the project."""
    return any(_is_in(path, place) for place in _ENVIRONMENT)


def _is_in(path: str, place: str) -> bool:
    """As texts: thousands of modules are asked, and paths are slow."""
    return f"{path}/".startswith(f"{place}/")
