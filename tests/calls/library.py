# SPDX-License-Identifier: Apache-2.0
"""The library kernels of delegates: their headers, their C files, and all of their functions."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path

from tests.calls.table import FunctionTable, function_table
from tests.ops.objects import run
from tinyet import assets
from tinyet.assets import kernel_sources
from tinyet.delegates import Delegate
from tinyet.opset import Kernel


def _kernels(delegates: Sequence[Delegate]) -> list[Kernel]:
    return [kernel for delegate in delegates for found in delegate.kernels.values() for kernel in found]


def sources(delegates: Sequence[Delegate], folder: Path) -> list[Path]:
    """The C files, written into the folder."""
    names = sorted({source for kernel in _kernels(delegates) for source in kernel.sources})
    return kernel_sources.write(folder, names)


@functools.cache
def table(delegates: tuple[Delegate, ...]) -> FunctionTable:
    """All functions of the delegates' headers that their own files name: headers are shared."""
    names = {source for kernel in _kernels(delegates) for source in kernel.sources}
    named = {word for name in names for word in re.findall(r"tinyet_\w+", kernel_sources.text(name) or "")}
    headers = sorted({header for kernel in _kernels(delegates) for header in kernel.headers})
    text = "".join(f'#include "{header}"\n' for header in headers)
    include = assets.path("firmware") / "include"
    made = run(["gcc", "-E", "-P", "-std=c11", f"-I{include}", "-"], text.encode())
    return function_table(headers, made.decode(), named)
