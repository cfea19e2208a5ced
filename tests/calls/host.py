# SPDX-License-Identifier: Apache-2.0
"""The call server of this machine: all library kernels under ASan and UBSan, built once a session, a process a worker.

Each input, constant, output and scratch has memory of its own of exactly its size: an access beside it is found.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.calls import library as kernel_library
from tests.calls.process import Process, built_once
from tests.calls.table import FunctionTable
from tests.ops.cases import HOST_FLAGS, SANITIZERS
from tests.ops.objects import compiled_object, run
from tinyet import assets
from tinyet.delegates import CORTEX_M, PORTABLE

ENVIRONMENT = {"ASAN_OPTIONS": "detect_leaks=0:quarantine_size_mb=8", "UBSAN_OPTIONS": "print_stacktrace=1"}
_CORE = ("harness/tinyet_call_server.c", "harness/call_main.c", "platform/tinyet_posix.c")


KERNELS = tuple(kernel_library.kernels((PORTABLE, CORTEX_M)))


def compiler(extra: Sequence[str] = SANITIZERS) -> list[str]:
    """As kernels are compiled for this machine."""
    include = f"-I{assets.path('firmware') / 'include'}"
    return ["gcc", "-std=c11", *HOST_FLAGS, *kernel_library.WARNINGS, *extra, include]


@functools.cache
def library_table() -> FunctionTable:
    """All functions of library kernels."""
    return kernel_library.table(KERNELS)


def build(
    folder: Path,
    sources: Sequence[Path],
    symbols: Mapping[str, str],
    table: FunctionTable,
    extra: Sequence[str] = SANITIZERS,
) -> Path:
    """Compile and link a server of these kernels into a folder; its path. symbols: of their functions."""
    command = compiler(extra)
    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(functools.partial(compiled_object, command), sources))
    return linked(folder, objects, symbols, table, command)


def linked(
    folder: Path,
    objects: Sequence[Path],
    symbols: Mapping[str, str],
    table: FunctionTable,
    compiler: Sequence[str],
) -> Path:
    """A server of kernels that are compiled already, in the folder; its path. compiler: as for the kernels."""
    firmware = assets.path("firmware")
    include = f"-I{firmware / 'include'}"
    # What only carries bytes is not under test, and takes its time under sanitizers.
    core = ["gcc", "-std=c11", *HOST_FLAGS, "-DTINYET_CALL_SEPARATE", include]
    objects = [*objects, *(compiled_object(core, firmware / name) for name in _CORE)]
    source, server = folder / "table.c", folder / "call_server"
    source.write_text(table.text(symbols), encoding="utf-8")
    mapped = f"-ffile-prefix-map={folder}=."
    run([*compiler, include, mapped, "-o", str(server), str(source), *map(str, objects), "-lm"])
    return server


@functools.cache
def library_server() -> Path:
    """The session's server."""
    folder = built_once(
        "call-server",
        lambda to: build(to, *kernel_library.sources(KERNELS, to / "kernels"), library_table()),
    )
    return folder / "call_server"


def process(program: Path, table: FunctionTable) -> Process:
    """A server of this machine."""
    return Process([str(program)], table, ENVIRONMENT)


@functools.cache
def library() -> Process:
    """This worker's server of all library kernels."""
    return process(library_server(), library_table())
