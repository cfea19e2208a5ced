# SPDX-License-Identifier: Apache-2.0
"""The C sources of tinyet's kernels, by name: written files, lines of one table, `firmware/src/instances.toml`, and
what `tinyet.tiles` prints for all layers.

Many kernels are one body for several types or cores; what is left to say of each is a few words. The table has these
words, and this module prints the file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from string import Template
from typing import cast

from tinyet import assets
from tinyet.tiles import library

_LICENCE = "/* SPDX-License-Identifier: Apache-2.0 */\n"


def directory() -> Path:
    """Where the written sources and the table lie."""
    return assets.path("firmware") / "src"


@cache
def instances() -> dict[str, str]:
    """{file's name: its text} of every source that is a line of the table."""
    table = tomllib.loads((directory() / "instances.toml").read_text(encoding="utf-8"))
    printed: dict[str, str] = {}
    for family in table.values():
        text = Template(_LICENCE + family["text"])
        for kernel, words in family["kernels"].items():
            values = {word: _printed(value) for word, value in words.items()}
            printed[f"{kernel}.c"] = text.substitute(values, kernel=kernel)
    return printed


@cache
def printed() -> Mapping[str, str]:
    """{file's name: its text} of every source that is no file."""
    return {**instances(), **library.sources()}


def _printed(value: object) -> str:
    """A value of the table as C: a list is headers."""
    if isinstance(value, list):
        return "\n".join(f'#include "{header}"' for header in cast(list[str], value))
    return str(value)


def names() -> tuple[str, ...]:
    """Every source, written or printed, sorted."""
    return tuple(sorted({path.name for path in directory().glob("*.c")} | printed().keys()))


def text(name: str) -> str | None:
    """The text of a source; None where there is none of that name."""
    if name in printed():
        return printed()[name]
    path = directory() / name
    return path.read_text(encoding="utf-8") if path.is_file() else None


def write(into: Path, wanted: Iterable[str]) -> list[Path]:
    """Sources as files of a directory, for a compiler: their paths, in the order of `wanted`.

    Raises KeyError for a name that no source has.
    """
    into.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in wanted:
        found = text(name)
        if found is None:
            raise KeyError(name)
        paths.append(into / name)
        paths[-1].write_text(found, encoding="utf-8", newline="\n")
    return paths
