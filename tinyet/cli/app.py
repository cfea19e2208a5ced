# SPDX-License-Identifier: Apache-2.0
"""The command line. Results go to standard output, everything else to standard error.

Exit status: 0 when all went well; 1 for an error, a mismatch or a failed check; 2 for a command line that is
wrong; 130 after Ctrl-C; 143 and 129 after the signals TERM and HUP.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tinyet.build.ending import Ended, ended_by_signals
from tinyet.cli import ui
from tinyet.cli.commands import Commands
from tinyet.errors import TinyetError, UsageError
from tinyet.messages.text import printable_block
from tinyet.version import __version__

INTERRUPTED = 130

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="PyTorch models as int8 firmware: plain C, one arena, proved bit-exact on the board.",
)


@dataclass
class Settings:
    """The global options, as `run` reads them after the command has ended."""

    debug: bool = False


def _show_version(wanted: bool) -> None:
    if wanted:
        ui.say(f"tinyet {__version__}")
        raise typer.Exit


@app.callback()
def _global_options(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="show the traceback of an error")] = False,
    version: Annotated[  # noqa: ARG001 - the callback does the work
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="show the version")
    ] = False,
    plugin: Annotated[
        list[Path] | None,
        typer.Option("--plugin", metavar="FILE.py", help="load operators or delegates of your own first"),
    ] = None,
) -> None:
    context.ensure_object(Settings).debug = debug
    if plugin:
        # Only who has a plugin waits for all operators.
        from tinyet.custom import load_plugin

        for file in plugin:
            load_plugin(file)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit status; every error has been shown by then."""
    settings = Settings()
    try:
        status = app(
            args=list(arguments) or ["--help"], prog_name="tinyet", standalone_mode=False, obj=settings
        )
    except TinyetError as error:
        _show_traceback(error, settings)
        ui.show_error(error)
        return 2 if isinstance(error, UsageError) else 1
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    except Ended as ended:
        # With SIGHUP the terminal may be gone.
        with contextlib.suppress(OSError):
            ui.tell(f"ended by {ended.signal}")
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it becomes one block
        usage = _as_usage_error(error)
        if usage is not None:
            ui.show_error(usage)
            return 2
        _show_traceback(error, settings)
        ui.show_error(ui.explain_bug(error))
        return 1
    if status == INTERRUPTED:
        ui.tell("interrupted")
    return status if isinstance(status, int) else 0


def _show_traceback(error: BaseException, settings: Settings) -> None:
    if settings.debug:
        sys.stderr.write(printable_block("".join(traceback.format_exception(error))))


def _as_usage_error(error: Exception) -> UsageError | None:
    """An error of typer's in our form; None for another exception.

    typer brings its own copy of click since 0.26, so the classes are known by their attributes.
    """
    context, text = getattr(error, "ctx", None), getattr(error, "format_message", None)
    if text is None or getattr(error, "exit_code", None) != 2:
        return None
    command = "tinyet" if context is None else context.command_path
    return UsageError(str(text()), command, f"{command} --help")


def main() -> None:
    """The `tinyet` command."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            # A terminal that knows no en dash gets a question mark, not a failure.
            reconfigure(errors="replace")
    with ended_by_signals():
        status = run(sys.argv[1:])
    sys.exit(status)
