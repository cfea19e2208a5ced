# SPDX-License-Identifier: Apache-2.0
"""The library kernels of delegates: their headers, their C files, and all of their functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tests.calls.table import FunctionTable, function_table
from tests.ops.cases import WARNINGS as OF_MODELS
from tests.ops.cases import write_files
from tests.ops.objects import run
from tinyet import assets
from tinyet.delegates import DELEGATES, Delegate, kernel_sources
from tinyet.emit.kernels import shareable
from tinyet.opset import Kernel

WARNINGS = (
    *OF_MODELS,
    *("-Wshadow", "-Wcast-qual", "-Wcast-align", "-Wundef", "-Wdouble-promotion"),
)
"""Those that the library's kernels have none of."""


def kernels(delegates: Sequence[Delegate]) -> list[Kernel]:
    return [kernel for delegate in delegates for found in delegate.kernels.values() for kernel in found]


def sources(wanted: Sequence[Kernel], folder: Path) -> tuple[list[Path], dict[str, str]]:
    """The C files, written into the folder as a model has them, and {function: its symbol there}. Their objects are
    those of generated models."""
    files: dict[str, str] = {}
    for delegate in DELEGATES:
        own = [kernel for kernel in wanted if kernel.delegate == delegate.name]
        headers = sorted({header for kernel in own for header in kernel.headers})
        files |= delegate.files(headers, sorted({source for kernel in own for source in kernel.sources}))
    found, symbols = shareable(files)
    texts = {name: text for name, text in sorted(found.items()) if name.endswith(".c")}
    write_files(folder, texts)
    return [folder / name for name in texts], symbols


def table(wanted: Sequence[Kernel]) -> FunctionTable:
    """All functions of the kernels' headers that their C files name: headers are shared with other kernels."""
    headers = sorted({header for kernel in wanted for header in kernel.headers})
    text = "".join(f'#include "{header}"\n' for header in headers)
    include = assets.path("firmware") / "include"
    made = run(["gcc", "-E", "-P", "-std=c11", f"-I{include}", "-"], text.encode()).decode()
    return function_table(headers, made, _named(wanted, made))


def _named(wanted: Sequence[Kernel], declarations: str) -> set[str]:
    """Functions that the kernels' C files name, also by pasting: tinyet_##NAME##_s8."""
    names = {source for kernel in wanted for source in kernel.sources}
    text = "".join(kernel_sources.text(name) or "" for name in sorted(names))
    pasted = {re.sub(r"##\w+?(##|\b)", r"\\w+", word) for word in re.findall(r"tinyet_[\w#]+", text)}
    declared = re.findall(r"\btinyet_\w+(?= *\()", declarations)
    named = re.compile("|".join(sorted(pasted)))
    return {symbol for symbol in declared if named.fullmatch(symbol)}
