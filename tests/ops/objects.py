# SPDX-License-Identifier: Apache-2.0
"""Object files by what goes into them: each source is compiled once a session for a set of flags, whichever test or
worker needs it first."""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

DIRECTORY = "TINYET_TEST_OBJECTS"
"""The environment variable that names the directory of a session's objects; tests/conftest.py sets it."""


def compiled_object(command: Sequence[str], source: str, files: Mapping[str, str], folder: Path) -> Path:
    """A source of `files`, which stand in `folder`, compiled and kept for the session.

    command: the compiler and its flags, without `folder`, which is put on its include path: with a path of one test
    only, no other would find the object. Fails with the compiler's messages.
    """
    # Any header may be included, but a model's own.
    headers = "".join(
        text for name, text in sorted(files.items()) if name.endswith(".h") and "cases" not in name
    )
    digest = hashlib.sha256("\0".join((*command, source, files[source], headers)).encode()).hexdigest()
    out = _directory() / f"{Path(source).stem}-{digest[:32]}.o"
    if not out.exists():
        with tempfile.TemporaryDirectory(dir=out.parent) as where:
            made = Path(where, "made.o")
            run([*command, "-I", str(folder), "-c", str(folder / source), "-o", str(made)])
            # At once: another worker sees the whole object or none.
            made.replace(out)
    return out


def run(command: Sequence[str], data: bytes | None = None) -> bytes:
    """Run a command with `data` as its input, and return what it prints. Fails with its errors."""
    done = subprocess.run(command, input=data, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, (
        f"{' '.join(command)}\nstatus {done.returncode}\n{done.stderr.decode()[-6000:]}"
    )
    return done.stdout


@functools.cache
def _directory() -> Path:
    if DIRECTORY in os.environ:
        return Path(os.environ[DIRECTORY])
    own = Path(tempfile.mkdtemp(prefix="tinyet-objects-"))
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return own
