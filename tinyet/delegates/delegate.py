# SPDX-License-Identifier: Apache-2.0
"""A delegate: a library of kernels, or a backend that takes whole regions of the graph, or both.

A kernel library is asked node by node and refuses with a reason. A region delegate is asked once: it *takes* groups of
nodes, each of which becomes one node, and *preprocesses* each into a payload: C that is opaque to everybody else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

from tinyet import assets
from tinyet.boards.cpus import Target
from tinyet.delegates import kernel_sources
from tinyet.errors import InternalError, UsageError
from tinyet.ir import Attrs, Graph, Node
from tinyet.opset import Call, Kernel

Files = Callable[[Sequence[str], Sequence[str]], Mapping[str, str]]
"""(headers, sources) → {path: text}: those files and whatever they need, as they go beside the generated code."""


def any_target(_target: Target) -> str | None:
    """A delegate that runs everywhere."""
    return None


def arm_target(target: Target) -> str | None:
    """A delegate for Arm cores; also compiled as plain C for this machine, which is no core of the table."""
    return f"{target.cpu} is not an Arm core" if target.family not in ("arm", "host") else None


def files_of(*directories: Path) -> Files:
    """Files looked up by name in the given directories, in tinyet's own firmware after these.

    What they include is found and taken along; raises UsageError for a file that is nowhere.
    """

    def text_of(name: str) -> str | None:
        path = next((place / name for place in directories if (place / name).is_file()), None)
        return _own_text(name) if path is None else path.read_text(encoding="utf-8")

    def files(headers: Sequence[str], sources: Sequence[str]) -> Mapping[str, str]:
        found: dict[str, str] = {}
        todo = [*headers, *sources]
        while todo:
            name = todo.pop(0)
            if name in found:
                continue
            text = text_of(name)
            if text is None:
                everywhere = ", ".join(map(str, (*directories, _headers(), kernel_sources.directory())))
                raise UsageError(f"a kernel needs the file {name}, which is in none of {everywhere}")
            found[name] = text
            todo += [n for n in included(text) if text_of(n) is not None]
        return found

    return files


def _headers() -> Path:
    return assets.path("firmware") / "include"


@cache
def _own_text(name: str) -> str | None:
    """A header or a source of tinyet's own, read once; None where there is none of that name."""
    path = _headers() / name
    return path.read_text(encoding="utf-8") if path.is_file() else kernel_sources.text(name)


@lru_cache(maxsize=1024)
def included(text: str) -> tuple[str, ...]:
    """The files that a C text includes in quotes."""
    return tuple(line.split('"')[1] for line in text.splitlines() if line.startswith('#include "'))


def own_files(headers: Sequence[str], sources: Sequence[str]) -> Mapping[str, str]:
    """The files of tinyet's own kernels."""
    return files_of()(headers, sources)


@dataclass(frozen=True)
class Partition:
    """The regions that a delegate takes.

    regions: groups of nodes; each becomes one call. No path may leave a group and come back to it (`regions_of` in
    partition.py makes such groups). refusals: why it did not take a node, for every other one.
    """

    regions: tuple[tuple[Node, ...], ...]
    refusals: Mapping[Node, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Payload:
    """The result of a region: one call, whose InputArg and OutputArg count the region graph's inputs and outputs.

    headers, sources: files by the names that the delegate's `files` knows. texts: further C files, {name: text}.
    """

    call: Call
    headers: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)


Partitioner = Callable[[Graph, Collection[Node], Target], Partition]
"""(graph, nodes that are still free, target) → what the delegate takes of them."""

Preprocess = Callable[[Graph, Target], Payload]
"""The nodes of one region as a graph, its constants included → its payload."""


@dataclass(frozen=True, eq=False)
class Delegate:
    """A backend by name.

    kernels:    operator → its kernels here, best first.
    supports:   why the delegate cannot be used on a target at all, or None.
    files:      the C files of its kernels and payloads.
    partition, preprocess: of a region delegate; both or none.
    """

    name: str
    kernels: Mapping[type[Attrs], tuple[Kernel, ...]] = field(default_factory=dict)
    supports: Callable[[Target], str | None] = any_target
    files: Files = own_files
    partition: Partitioner | None = None
    preprocess: Preprocess | None = None

    def __post_init__(self) -> None:
        if (self.partition is None) != (self.preprocess is None):
            raise InternalError(f"delegate {self.name} has only one of partition and preprocess")
