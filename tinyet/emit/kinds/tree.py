# SPDX-License-Identifier: Apache-2.0
"""The interface of every project kind, and the parts that several kinds share."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from tinyet import assets
from tinyet.assets.templating import render
from tinyet.boards import Board
from tinyet.boards.linker import linker_script
from tinyet.emit.facts import ModelFacts
from tinyet.errors import InternalError
from tinyet.version import __version__

# The include of a model's header for applications of TensorFlow Lite Micro.
TFLM_COMMON = "tinyet_tflm.h"
# Width of the sample's lines: 16 bytes each.
_BYTES_A_LINE = 16


@dataclass(frozen=True)
class Tree:
    """A project's files, without its manifest.

    files:     relative POSIX path -> text.
    model_dir: where `<name>.c` and all that it includes are.
    desc:      the file that describes the model to the harness (model_desc.c), or "" where there is none.
    yours:     the files that belong to the user once they have been changed.
    """

    files: Mapping[str, str]
    model_dir: str
    desc: str
    yours: tuple[str, ...]


def context_of(board: Board, facts: ModelFacts, model_sources: Mapping[str, str]) -> dict[str, object]:
    """The names that the templates may use."""
    return {
        "version": __version__,
        "board": board,
        "facts": facts,
        "instance": facts.instance,
        "models": facts.parts,
        "names": ", ".join(part.name for part in facts.parts),
        "machine_flags": board.machine_flags,
        "board_defines": board.defines,
        "board_sources": [basename(path) for path in board.support_sources],
        "model_sources": sorted(path for path in model_sources if path.endswith(".c")),
        "model_headers": sorted(path for path in model_sources if path.endswith(".h")),
        "tflm_header": tflm_header(facts.name) if tflm_header(facts.name) in model_sources else "",
        "input_lines": [tensor.description for tensor in facts.inputs],
        "output_lines": [tensor.description for tensor in facts.outputs],
        "sample_lines": [byte_lines(sample) for sample in facts.samples],
        # Programs on this machine read the same sample; if only AVR reads it, it stays out of the RAM.
        "sample_in_progmem": False,
        "prints_reals": any(t.is_float or t.is_quantized for part in facts.parts for t in part.outputs),
        "qemu": "" if board.qemu is None else qemu_command(board),
    }


def sample_files(directory: str, context: Mapping[str, object], template: str = "common") -> dict[str, str]:
    """A sample of each model's inputs, for the application."""
    facts = context["facts"]
    assert isinstance(facts, ModelFacts)
    return {
        f"{directory}/{part.name}_sample.h": render(
            f"project/{template}/sample.h.j2",
            {**context, "facts": part, "sample_lines": [byte_lines(sample) for sample in part.samples]},
        )
        for part in facts.parts
    }


def model_files(directory: str, model_sources: Mapping[str, str]) -> dict[str, str]:
    """The model's C files in a directory of the project."""
    return {f"{directory}/{path}": text for path, text in model_sources.items()}


def tflm_header(model: str) -> str:
    """The file that shows a model of this name under the names of TensorFlow Lite Micro."""
    return f"{model}_tflm.h"


def support_files(directory: str, board: Board) -> dict[str, str]:
    """Startup code, drivers and linker script of a bare-metal board."""
    files = {
        f"{directory}/{basename(path)}": firmware(path)
        for path in (*board.support_sources, *board.support_headers)
    }
    return files | {f"{directory}/linker.ld": linker_script(board)}


def harness_files(directory: str, context: Mapping[str, object]) -> dict[str, str]:
    """The firmware that serves the model to a host, and its description of the model (model_desc.c)."""
    board = context["board"]
    assert isinstance(board, Board)
    files = {
        f"{directory}/{basename(path)}": firmware(path)
        for path in ("include/tinyet_frames.h", "include/tinyet_harness.h", *board.harness_sources)
    }
    return files | {f"{directory}/model_desc.c": render("project/common/model_desc.c.j2", context)}


def qemu_command(board: Board) -> str:
    """The command that runs a firmware with the UART on the terminal, still without `-kernel FILE`."""
    qemu, tool = board.qemu, board.toolchain.qemu
    if qemu is None or tool is None:
        raise InternalError(f"QEMU has no machine for the board {board.name}")
    serial = [*["-serial", "null"] * qemu.serial, "-serial", "stdio"]
    return shlex.join([tool, "-M", qemu.machine, *qemu.args, "-display", "none", "-monitor", "none", *serial])


def byte_lines(data: bytes) -> list[str]:
    """Bytes as the lines of a C array."""
    lines = (data[at : at + _BYTES_A_LINE] for at in range(0, len(data), _BYTES_A_LINE))
    return [f"0x{line.hex(',').replace(',', ', 0x')}," for line in lines]


def firmware(path: str) -> str:
    """A file of the `firmware` directory."""
    return (assets.path("firmware") / path).read_text(encoding="utf-8")


def template_text(path: str) -> str:
    """A file of templates/project that goes into a project as it is."""
    return (assets.path("templates") / "project" / path).read_text(encoding="utf-8")


def basename(path: str) -> str:
    """The part behind the last slash."""
    return path.rpartition("/")[2]
