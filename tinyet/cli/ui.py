# SPDX-License-Identifier: Apache-2.0
"""Output of the command line: results on standard output; errors, notes and progress on standard error.

Progress is for a person at a terminal only. rich leaves colours out where there is no terminal or NO_COLOR
is set.
"""

from __future__ import annotations

import itertools
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from tinyet.errors import InternalError, TinyetError, UsageError
from tinyet.files.atomic import write_whole
from tinyet.messages.stages import listening
from tinyet.messages.text import json_text, printable, printable_block

if TYPE_CHECKING:
    from tinyet.stack.use import StackUse

# Of tables that go into a file or a pipe; a terminal has its own.
WIDTH = 100
# A wrapped column keeps this width.
_LEAST_WIDTH = 12

Cell = str | int | float | None
Kind = Literal["name", "number", "text", "detail"]
MOST_NOTES = 12


def _console(*, stderr: bool = False) -> Console:
    """A console for what the stream is now (tests and pipes replace it). Text is data, never markup."""
    console = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDTH
    return console


# ---------------------------------------------------------------- text


def say(text: str = "", style: str = "") -> None:
    """A line of the result. It is not wrapped, so that copied text stays whole."""
    _console().print(Text(printable_block(text), style), soft_wrap=True)


def tell(text: str) -> None:
    """A line on standard error."""
    _console(stderr=True).print(Text(printable_block(text)), soft_wrap=True)


def warn(title: str, lines: Sequence[str]) -> None:
    """A heading and an item a line, on standard error; nothing when there is no line."""
    if not lines:
        return
    console = _console(stderr=True)
    console.print(Text(printable(title), "yellow"), soft_wrap=True)
    for line in lines:
        console.print(Text("  - " + printable_block(line).replace("\n", "\n    ")), soft_wrap=True)


def alarm(title: str, lines: Sequence[str]) -> None:
    """What must not be overlooked, on standard error: a heading in red, and a line each."""
    console = _console(stderr=True)
    console.print(Text.assemble(("ALARM: ", "bold red"), (printable(title), "bold")), soft_wrap=True)
    for line in lines:
        console.print(Text("  " + printable_block(line).replace("\n", "\n  ")), soft_wrap=True)


def notes(lines: Sequence[str]) -> None:
    """Notes about a compiled model, shortened where there are many."""
    shown = [*lines[:MOST_NOTES]]
    if len(lines) > MOST_NOTES:
        shown.append(f"… and {len(lines) - MOST_NOTES} more: `tinyet analyze` lists every layer")
    warn("note:" if len(lines) == 1 else "notes:", shown)


def show_error(error: TinyetError) -> None:
    """The one block that an error is: what, at, do."""
    title, rest = str(error).split(":", 1)
    _console(stderr=True).print(Text.assemble((title, "bold red"), ":", rest), soft_wrap=True)


def explain_bug(error: BaseException) -> TinyetError:
    """An unexpected exception, as the block of a bug in tinyet."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno} in {frames[-1].name}" if frames else None
    return InternalError(
        f"{type(error).__name__}: {str(error).strip() or '(no message)'}",
        where,
        "this is a bug in tinyet: please report it with the model and the traceback that\n"
        "`tinyet --debug …` shows",
    )


# ---------------------------------------------------------------- numbers


def number(value: float | None, digits: int = 0) -> str:
    """A number with thousands apart by spaces; a dash for none."""
    return "–" if value is None else f"{value:,.{digits}f}".replace(",", " ")


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.2f} %"


def size(value: int | None) -> str:
    return "–" if value is None else f"{number(value)} bytes"


def stack_rows(stack: StackUse, ram: int | None) -> list[tuple[str, str]]:
    """The stack bound of a firmware as table rows. ram: bytes of static data."""
    inference, firmware = stack.inference, stack.firmware
    rows = [("stack of an inference", inference.said or f"at most {size(inference.bytes)}")]
    room = "" if stack.reserved is None else f" of the {number(stack.reserved)} reserved"
    rows.append(("stack of the firmware", firmware.said or f"at most {size(firmware.bytes)}{room}"))
    if ram is not None and firmware.bytes is not None:
        rows.append(("RAM with that stack", size(stack.with_data(ram))))
    return rows


def kernel(symbol: str) -> str:
    """A kernel's C function as tables name it."""
    return symbol.removeprefix("tinyet_")


# ---------------------------------------------------------------- tables


def table(columns: Sequence[tuple[str, Kind]], rows: Sequence[Sequence[Cell]]) -> None:
    """Print an empty line and a table as wide as the terminal, or narrower. No character of a cell is ever left out.

    columns: (heading, kind); kind is "name" (in one line), "number" (likewise, to the right), "text" (wrapped
    when there is no room) or "detail" (when there is no room, on a line below its row; these are the last columns).
    """
    texts = [[printable(cell) if isinstance(cell, str) else number(cell) for cell in row] for row in rows]
    headings, kinds = [name for name, _ in columns], [kind for _, kind in columns]
    widths = [max(map(cell_len, cells)) for cells in zip(headings, *texts, strict=True)]
    room = _console().width
    shown = len(columns)
    if _total(widths) > room:
        shown = sum(kind != "detail" for kind in kinds)
        widths = _narrow(widths[:shown], kinds, room)
    say()
    _row(headings[:shown], widths, kinds, "bold")
    say(_MARGIN + "─" * (_total(widths) - len(_MARGIN)))
    # Below the second column: the first is a number or short.
    under = " " * (len(_MARGIN) + (widths[0] + len(_GAP) if kinds[0] == "number" else len(_GAP)))
    for row in texts:
        _row(row[:shown], widths, kinds)
        details = [text for text in row[shown:] if text not in ("", "–")]
        if details:
            say(under + ", ".join(details), "dim")


_MARGIN, _GAP = " ", "  "


def _total(widths: Sequence[int]) -> int:
    return len(_MARGIN) + sum(widths) + len(_GAP) * (len(widths) - 1)


def _narrow(widths: Sequence[int], kinds: Sequence[Kind], room: int) -> list[int]:
    """Widths with those of texts made smaller, the widest first, as far as needed and useful."""
    found = list(widths)
    wrapped = [index for index, kind in enumerate(kinds[: len(widths)]) if kind == "text"]
    while _total(found) > room and wrapped:
        widest = max(wrapped, key=lambda index: found[index])
        if found[widest] <= _LEAST_WIDTH:
            break
        found[widest] -= 1
    return found


def _row(cells: Sequence[str], widths: Sequence[int], kinds: Sequence[Kind], style: str = "") -> None:
    """Print a row, in several lines where a text is wrapped."""
    console = _console()
    parts = [
        [line.plain.rstrip() for line in Text(cell).wrap(console, width)] if kind == "text" else [cell]
        for cell, width, kind in zip(cells, widths, kinds, strict=False)
    ]
    for line in itertools.zip_longest(*parts, fillvalue=""):
        padded = [
            " " * (width - cell_len(cell)) + cell
            if kind == "number"
            else cell + " " * (width - cell_len(cell))
            for cell, width, kind in zip(line, widths, kinds, strict=False)
        ]
        say((_MARGIN + _GAP.join(padded)).rstrip(), style)


def facts(title: str, pairs: Sequence[tuple[str, str]]) -> None:
    """Print a block of names and their values, below a title or an empty line."""
    say(title, "bold")
    shown = [(printable(name), printable_block(value)) for name, value in pairs]
    longest = [
        max(cell_len(line) for text in column for line in text.split("\n"))
        for column in zip(*shown, strict=True)
    ]
    widths = _narrow(longest, _FACT, _console().width)
    for pair in shown:
        _row(pair, widths, _FACT)


_FACT: tuple[Kind, Kind] = ("name", "text")

# ---------------------------------------------------------------- progress

Advance = Callable[[int, int | None], None]


class _Count(MofNCompleteColumn):
    """A progress count; nothing while nothing is counted."""

    def render(self, task: Task) -> Text:
        return super().render(task) if task.completed or task.total is not None else Text()


def _terminal() -> Console | None:
    """Standard error, when it is a terminal: a momentary text would stay in a file."""
    return _console(stderr=True) if sys.stderr.isatty() else None


@contextmanager
def counting(label: str) -> Iterator[Advance]:
    """A bar while something is counted: the function takes how many are done, and of how many, if known."""
    with _bar(label) as (_, advance):
        yield advance


@contextmanager
def stages(label: str) -> Iterator[Advance]:
    """A bar that names tinyet's current stage: `label` until the first stage begins (`messages/stages.py`). The
    function counts within a stage."""
    with _bar(label) as (rename, advance), listening(rename):
        yield advance


@contextmanager
def phases(label: str) -> Iterator[Callable[[str, int, int | None], None]]:
    """A bar for work of several phases: the function takes the name of the phase, how many are done in it, of how
    many."""
    with _bar(label) as (rename, advance):
        shown = label

        def tell(phase: str, done: int, total: int | None) -> None:
            nonlocal shown
            if phase != shown:
                rename(phase)
                shown = phase
            advance(done, total)

        yield tell


@contextmanager
def _bar(label: str) -> Iterator[tuple[Callable[[str], None], Advance]]:
    """A bar on a terminal, and nothing elsewhere: functions that begin it anew under another name, and move it."""
    console = _terminal()
    if console is None:
        yield lambda _name: None, lambda _done, _total: None
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), _Count(), TimeElapsedColumn())
    # The output of the user's own code stays out of the bar; in a file it belongs where it was sent.
    with Progress(*columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty()) as progress:
        task = progress.add_task(printable(label), total=None)

        def rename(name: str) -> None:
            # Another task, because a task never forgets its total.
            nonlocal task
            progress.remove_task(task)
            task = progress.add_task(printable(name), total=None)
            progress.refresh()

        yield rename, lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def working(label: str) -> Iterator[Callable[[str], None]]:
    """A spinner while something works; the function takes the last line that it has said."""
    console = _terminal()
    if console is None:
        yield lambda _line: None
        return
    with console.status(Text(label)) as status:
        room = max(10, console.width - len(label) - 6)
        yield lambda line: status.update(Text(f"{label}  {printable(line.strip())[:room]}"))


# ---------------------------------------------------------------- files


def write_file(path: Path, data: bytes) -> None:
    """Write a file whole or not at all. Raises UsageError: the path was the user's wish."""
    try:
        write_whole(path, data)
    except OSError as error:
        raise UsageError(
            f"cannot write the file: {error.strerror}", str(path), "name a file in a directory that exists"
        ) from error


def write_json(path: str, record: Mapping[str, object]) -> None:
    """Write a report; to standard output when the path is `-`."""
    write_text(path, json_text(record) + "\n")


def write_text(path: str, text: str) -> None:
    """Write a report of lines; to standard output when the path is `-`."""
    if path == "-":
        _console().print(Text(text.removesuffix("\n")), soft_wrap=True)
    else:
        write_file(Path(path), text.encode())
