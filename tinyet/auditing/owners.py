# SPDX-License-Identifier: Apache-2.0
"""Whose each byte of a firmware's flash is."""

from __future__ import annotations

import bisect
import enum
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from tinyet.auditing.flash import Flash, Part, Symbol, plain_name
from tinyet.auditing.link_map import LinkMap
from tinyet.project import Project

MOST_PADDING = 63
"""Bytes in a row that alignment may leave: one less than that of a cache's line, the largest alignment in use."""
_UNWINDING = re.compile(r"\.(ARM\.ex|eh_frame|gcc_except|init|fini|preinit|ctors|dtors|xt\.|note)")
_FILLERS = {0x00, 0x13, 0x46, 0xBF, 0xC0}
"""Bytes of what assemblers align code with: zeros, and instructions that do nothing, of Thumb and RISC-V."""


class Owner(enum.Enum):
    """In the order of the report."""

    WEIGHTS = "weights and tables of the model"
    PARAMETERS = "kernels' parameters"
    MODEL = "other constants of the model"
    KERNELS = "tables of kernels and of the board's code"
    OTHERS = "constants of the application and of libraries"
    TEXTS = "texts"
    CODE = "code"
    STARTUP = "tables for start-up and unwinding"
    PADDING = "padding"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True)
class Span:
    """Bytes of one owner: [start, end)."""

    start: int
    end: int
    owner: Owner
    name: str

    @property
    def bytes(self) -> int:
        return self.end - self.start


def owners(
    flash: Flash,
    project: Project,
    models: Sequence[str],
    common: str,
    known: Sequence[Span],
    link_map: LinkMap | None,
) -> tuple[Span, ...]:
    """All bytes of a firmware with their owners, in the order of their addresses. models: their names; common: of the
    file with what they have in common, or none. known: the models' bytes.

    link_map: tells of bytes without a symbol which object file they come from; an object file of the project has none
    but texts and tables.
    """
    own = {path.name for path in project.path.rglob("tinyet_*.[ch]*")}
    ours = {f"{name}.c" for name in (*models, project.name, *([common] if common else []))}
    objects = {*ours, *own, *(f"{PurePath(n).stem}.o" for n in (*ours, *own))}
    claimed = [*known, *(_of_symbol(s, ours, own) for s in flash.symbols if s.end > s.start)]
    found: list[Span] = []
    for part in flash.parts:
        # What is known best comes first, and keeps its bytes.
        rest = [(part.start, part.end)]
        spans: list[Span] = []
        for span in claimed:
            if span.end > part.start and span.start < part.end:
                taken, rest = _take(rest, span)
                spans += taken
        for start, end in rest:
            for span in _unnamed(flash, part, start, end):
                if link_map is not None and span.owner is Owner.UNEXPLAINED:
                    spans += _by_object(flash, part, span, link_map, objects)
                else:
                    spans.append(span)
        found += sorted(spans, key=lambda s: s.start)
    return tuple(found)


def _take(free: Sequence[tuple[int, int]], span: Span) -> tuple[list[Span], list[tuple[int, int]]]:
    """The bytes of a span that are free, and what is free without them."""
    taken, rest = list[Span](), list[tuple[int, int]]()
    for start, end in free:
        low, high = max(start, span.start), min(end, span.end)
        if low >= high:
            rest.append((start, end))
            continue
        taken.append(Span(low, high, span.owner, span.name))
        rest += [(a, b) for a, b in ((start, low), (high, end)) if a < b]
    return taken, rest


def _by_object(flash: Flash, part: Part, span: Span, link_map: LinkMap, own: set[str]) -> Iterator[Span]:
    """Bytes without an owner, by the object files that they come from."""
    at = span.start
    while at < span.end:
        file, end = link_map.at(at)
        until = min(end, span.end)
        if file and not any(file.startswith(name) for name in own):
            yield Span(at, until, Owner.OTHERS, file)
        else:
            yield _data(flash, part, at, until)
        at = until


def _of_symbol(symbol: Symbol, models: set[str], own: set[str]) -> Span:
    name = plain_name(symbol.name)
    if symbol.code:
        owner = Owner.CODE
    elif name == "vectors":
        owner = Owner.STARTUP
    elif symbol.file in models:
        owner = Owner.MODEL
    elif symbol.file in own or name.startswith("tinyet_"):
        owner = Owner.KERNELS
    else:
        owner = Owner.OTHERS
    return Span(symbol.start, symbol.end, owner, name)


def _unnamed(flash: Flash, part: Part, start: int, end: int) -> Iterator[Span]:
    """Bytes that no symbol of a size has."""
    if _UNWINDING.match(part.name):
        yield Span(start, end, Owner.STARTUP, part.name)
        return
    at = start
    while at < end:
        mark, until = flash.mark(at), flash.next_mark(at, end)
        # Assembly leaves out how large its functions are: code goes on as long as the marks say so, and where there
        # are none, up to the section's last function.
        last = max(
            (stop for begin, stop in flash.functions if part.start <= begin < part.end), default=part.end
        )
        if mark if mark is not None else part.code and at < last:
            yield Span(at, until, Owner.CODE, part.name)
        else:
            yield _data(flash, part, at, until)
        at = until


def _data(flash: Flash, part: Part, start: int, end: int) -> Span:
    data = part.data[start - part.start : end - part.start]
    if set(data) <= _FILLERS and end - start <= MOST_PADDING:
        return Span(start, end, Owner.PADDING, "")
    if text := _text(data):
        return Span(start, end, Owner.TEXTS, text)
    if _all_code(flash, data):
        return Span(start, end, Owner.STARTUP, "addresses of code")
    return Span(start, end, Owner.UNEXPLAINED, part.name)


def _text(data: bytes) -> str:
    """The first of the strings that bytes are, each with a zero behind it; empty where they are others."""
    try:
        strings = [text for text in data.decode("utf-8").split("\0") if text]
    except UnicodeDecodeError:
        return ""
    readable = all(text.isprintable() or text.strip("\t\n\r\x1b").isprintable() for text in strings)
    return strings[0] if strings and readable and data.endswith(b"\0") else ""


def _all_code(flash: Flash, data: bytes) -> bool:
    """Whether these are addresses of code alone: tables of constructors, or of a switch's cases; and padding."""
    size, bounds = flash.word_bytes, flash.functions
    words = [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]
    while words and not words[-1]:
        del words[-1]
    found = [bounds[max(bisect.bisect_right(bounds, (word, word + 1)) - 1, 0)] for word in words]
    return bool(words) and all(start <= word < end for word, (start, end) in zip(words, found, strict=True))
