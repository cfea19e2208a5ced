# SPDX-License-Identifier: Apache-2.0
"""The command line. Results go to standard output, everything else to standard error.

Exit status: 0 when all went well; 1 for an error, a mismatch or a failed check; 2 for a command line that is
wrong; 130 after Ctrl-C.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tinyet import __version__, cli_report, ui
from tinyet.analyze import analyze as analyze_program
from tinyet.boards import Board, all_boards, load_board
from tinyet.cli_model import CaptureOptions, input_names, obtain
from tinyet.cli_quantize import quantize
from tinyet.custom import load_plugin
from tinyet.data import read_data
from tinyet.delegates import DEFAULT, Delegate, delegate_names, delegates_named
from tinyet.emit.project import KINDS, check_kind
from tinyet.errors import TinyetError, UsageError
from tinyet.project import generate as generate_project
from tinyet.project import open_project
from tinyet.toolchain.doctor import NEEDED, checks
from tinyet.toolchain.tree import read_manifest

DEFAULT_BOARD = "mps2_an386"
INTERRUPTED = 130

_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20}

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="PyTorch models as int8 firmware: plain C, one arena, proved bit-exact on the board.",
)


@dataclass
class Settings:
    """The global options, as `run` reads them after the command has ended."""

    debug: bool = False


# ---------------------------------------------------------------- options


def size_in_bytes(text: str | int) -> int:
    """`65536`, `64k`, `64K`, `64KiB`, `1.5M`: bytes, K = 1024, M = 1024 K."""
    if isinstance(text, int):
        return text
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:([km])(?:i?b)?)?", text.strip().lower())
    size = float(match[1]) * _FACTORS[match[2] or ""] if match else 0.0
    if size < 1 or size != int(size):
        raise typer.BadParameter(f"{text!r} is not a size; write 65536, 64K or 1.5M")
    return int(size)


def delegates_of(names: str | None, require: bool) -> tuple[Delegate, ...]:
    """The delegates of `--delegate a,b`; the usual ones for None."""
    if names is None:
        if require:
            raise UsageError(
                "--require-delegate needs --delegate", hint="--delegate cmsis_nn --require-delegate"
            )
        return DEFAULT
    return delegates_named([name.strip() for name in names.split(",") if name.strip()])


def place_to_run(text: str) -> str:
    """One of the places that `validate` can run on."""
    if text in ("host", "qemu", "renode") or (text.startswith("serial:") and text != "serial:"):
        return text
    raise typer.BadParameter(f"{text!r} is none of host, qemu, renode, serial:PORT")


Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="file.py, file.py:factory, a saved .pt2, or a .tet program")
]
Directory = Annotated[Path, typer.Argument(metavar="DIR", help="a project that `tinyet generate` made")]
BoardOption = Annotated[
    str, typer.Option("--board", help="a name (see `tinyet boards`), or your own board's .toml file")
]
Calibration = Annotated[
    Path | None,
    typer.Option("--calibration", metavar="NPZ", help="typical inputs, instead of the model's calibration()"),
]
Name = Annotated[
    str | None, typer.Option("--name", help="prefix of the C functions; by default the file's name")
]
Strict = Annotated[bool, typer.Option("--strict", help="fail when a layer computes in float unasked")]
FloatIo = Annotated[bool, typer.Option("--float-io", help="float32 inputs and outputs around the integers")]
ChannelsLast = Annotated[
    bool, typer.Option("--channels-last", help="images are (N, H, W, C) at the boundary, not (N, C, H, W)")
]
DumpIr = Annotated[
    Path | None, typer.Option("--dump-ir", metavar="DIR", help="write the graph as text after each pass")
]
DelegateNames = Annotated[
    str | None,
    typer.Option(
        "--delegate",
        metavar="NAMES",
        help="who is asked for kernels, in this order, as in cmsis_nn,portable (see `tinyet delegates`)",
    ),
]
RequireDelegate = Annotated[
    bool,
    typer.Option(
        "--require-delegate", help="fail when a layer would go to a delegate that --delegate does not name"
    ),
]
Size = Annotated[Any, typer.Option(parser=size_in_bytes, metavar="BYTES")]
JsonFile = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="write the report as JSON, too; - prints only that"),
]


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
    for file in plugin or ():
        load_plugin(file)


# ---------------------------------------------------------------- from the model to the project


@app.command()
def generate(
    model: Model,
    board: BoardOption,
    project: Annotated[
        str, typer.Option(help=", ".join(kind for kind in KINDS if kind != "model"))
    ] = "platformio",
    model_only: Annotated[
        bool, typer.Option("--model-only", help="write just the C of model and kernels, no project")
    ] = False,
    calibration: Calibration = None,
    name: Name = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="by default build/NAME")
    ] = None,
    max_ram: Annotated[
        Any, typer.Option(parser=size_in_bytes, metavar="BYTES", help="limit for data and stack, as in 64K")
    ] = None,
    max_flash: Annotated[
        Any, typer.Option(parser=size_in_bytes, metavar="BYTES", help="limit for code and weights, as in 1M")
    ] = None,
    delegate: DelegateNames = None,
    require_delegate: RequireDelegate = False,
    strict: Strict = False,
    float_io: FloatIo = False,
    channels_last: ChannelsLast = False,
    dump_ir: DumpIr = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="TET", help="save the compiled program, too")
    ] = None,
) -> None:
    """Write a C project for a board from a model."""
    # What is quickly found to be wrong is told before the minutes that calibration may take.
    target = load_board(board)
    kind = check_kind("model" if model_only else project, target)
    delegates = delegates_of(delegate, require_delegate)
    if out is not None:
        _check_out(out)
    options = CaptureOptions(calibration, name, board, strict, float_io, channels_last, dump_ir, delegates)
    compiled = obtain(model, options)
    directory = out or Path("build") / (name or compiled.program.name)
    made = generate_project(
        compiled.program,
        target if board == target.name else board,
        directory,
        project=kind,
        name=name,
        delegates=delegates,
        require_delegate=require_delegate,
        max_ram=max_ram,
        max_flash=max_flash,
        evaluation=compiled.evaluation,
    )
    if save is not None:
        compiled.program.save(save)
    cli_report.warnings(compiled.warnings)
    cli_report.generated(made)


def _check_out(directory: Path) -> None:
    """Raise ProjectError for a place that `generate` would refuse."""
    if directory.is_dir() and any(directory.iterdir()):
        read_manifest(directory)
    elif directory.exists() and not directory.is_dir():
        raise UsageError(
            "there is a file where the project should be", str(directory), "name another directory"
        )


@app.command("compile")
def compile_(
    model: Model,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="TET", help="the .tet file to write")],
    calibration: Calibration = None,
    name: Name = None,
    board: Annotated[
        str | None, typer.Option("--board", help="make sure that every layer has a kernel for this board")
    ] = None,
    strict: Strict = False,
    float_io: FloatIo = False,
    channels_last: ChannelsLast = False,
    dump_ir: DumpIr = None,
) -> None:
    """Compile a model into a .tet file.

    All other commands take that, and need no torch then.
    """
    if model.endswith(".tet"):
        raise UsageError(
            "a .tet program is compiled already", model, f"tinyet generate {model} --board BOARD"
        )
    if out.suffix != ".tet":
        raise UsageError(f"{out} does not end in .tet", "-o", f"-o {out.with_suffix('.tet')}")
    if not out.parent.is_dir():
        raise UsageError(f"there is no directory {out.parent}", "-o")
    if board is not None:
        load_board(board)
    options = CaptureOptions(calibration, name, board, strict, float_io, channels_last, dump_ir)
    compiled = obtain(model, options)
    compiled.program.save(out)
    cli_report.warnings(compiled.warnings)
    ui.say(f"{out}: program {compiled.program.name}, {out.stat().st_size} bytes")
    ui.say(f"next: tinyet generate {out} --board BOARD")


app.command()(quantize)


# ---------------------------------------------------------------- from the project to the proof


@app.command()
def build(directory: Directory) -> None:
    """Build the application and the harness of a project."""
    project = open_project(directory)
    with ui.working(f"building {project.name} for {project.board.name}") as tell:
        size = project.build(on_output=tell)
    cli_report.built(project, size)


@app.command()
def validate(
    directory: Directory,
    on: Annotated[
        str, typer.Option(parser=place_to_run, metavar="PLACE", help="host, qemu, renode or serial:PORT")
    ] = "qemu",
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="NPZ", help="one array per input, and labels; by default the project's evaluation"
        ),
    ] = None,
    samples: Annotated[int | None, typer.Option(min=1, help="run no more samples than this")] = None,
    json: JsonFile = None,
) -> int:
    """Prove that the device computes what the host does.

    Every sample is compared bit for bit; on a mismatch the first layer that differs is named, and the exit
    status is 1. Without --data the project's evaluation data is run, or else one fixed pattern.
    """
    project = open_project(directory)
    given = None if data is None else read_data(data, input_names(project.program))
    with ui.counting(f"running on {on}") as progress:
        result = project.validate(
            *(() if given is None else given.arrays),
            labels=None if given is None else given.labels,
            on=on,
            limit=samples,
            progress=progress,
        )
    if json is not None:
        ui.write_json(json, result.to_json())
    if json != "-":
        cli_report.validated(result)
    if result.bit_exact:
        return 0
    ui.show_error(cli_report.mismatch_error(result))
    return 1


@app.command()
def analyze(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL|DIR", help="a model as for `generate`, a .tet program, or a project"),
    ],
    board: Annotated[
        str | None,
        typer.Option("--board", help=f"by default the project's own, or {DEFAULT_BOARD} for a model"),
    ] = None,
    calibration: Calibration = None,
    delegate: DelegateNames = None,
    require_delegate: RequireDelegate = False,
    json: JsonFile = None,
) -> None:
    """Show what each layer costs on a board, before anything is built."""
    chosen = None if board is None else load_board(board)
    delegates = delegates_of(delegate, require_delegate)
    warnings: tuple[str, ...] = ()
    if Path(model).is_dir():
        if calibration is not None:
            raise UsageError("--calibration: a project is compiled already", model)
        project = open_project(model)
        program, default = project.program, project.board
        if delegate is None:
            delegates, require_delegate = project.delegates, project.require_delegate
    else:
        default = load_board(DEFAULT_BOARD)
        compiled = obtain(model, CaptureOptions(calibration=calibration))
        program, warnings = compiled.program, compiled.warnings
    target: Board = chosen or default
    analysis = analyze_program(program, target, delegates, require=require_delegate)
    if json is not None:
        ui.write_json(json, analysis.to_json())
    if json != "-":
        cli_report.warnings(warnings)
        cli_report.analyzed(analysis, target)


# ---------------------------------------------------------------- the surroundings


@app.command()
def boards(
    board: Annotated[
        str | None, typer.Argument(metavar="[BOARD]", help="tell all of this one: a name, or a .toml file")
    ] = None,
) -> None:
    """List the boards that come with tinyet, or tell all that is known of one."""
    if board is None:
        cli_report.boards(all_boards())
    else:
        cli_report.board(load_board(board))


@app.command("delegates")
def delegates_() -> None:
    """List who can be asked for kernels: tinyet's own delegates and those of installed packages."""
    cli_report.delegates(delegates_named(delegate_names()))


@app.command()
def doctor(
    project: Annotated[
        str, typer.Option(help="the kind of project to insist on: " + ", ".join(NEEDED))
    ] = "platformio",
) -> int:
    """Show which tools are here, and how to install the others.

    Exit status 1 when one is missing that projects of this kind need, without a network: capturing a model, building
    it and, where an emulator runs such firmware, running it.
    """
    if project not in NEEDED:
        raise UsageError(f"there is no project kind {project!r}", "--project", f"one of {', '.join(NEEDED)}")
    needed = NEEDED[project]
    found = checks()
    cli_report.doctor(found, needed)
    return 1 if any(not check.ok and check.name in needed for check in found) else 0


# ---------------------------------------------------------------- running


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
        sys.stderr.write("".join(traceback.format_exception(error)))


def _as_usage_error(error: Exception) -> UsageError | None:
    """What typer says of a wrong command line, in our form; None for another exception.

    typer brings its own copy of click since 0.26, so the classes are known by what they have.
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
    sys.exit(run(sys.argv[1:]))
