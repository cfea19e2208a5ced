# SPDX-License-Identifier: Apache-2.0
"""A model's C files as a project that builds: PlatformIO or CMake, for one board. Pure: returns texts.

Both kinds have the same shape, which the README of each project explains to its user:

    src/                 the application: one run on an embedded sample
    lib/<name>/src/      the model and the kernels it uses
    harness/             the firmware that serves the model to a host
    platform/support/    startup code, UART and linker script of the board
    tinyet.json          the manifest: what the project was made from
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from tinyet import __version__, assets
from tinyet.boards import Board
from tinyet.emit.render import environment, render
from tinyet.errors import InternalError, UsageError
from tinyet.ir import DType

Kind = Literal["platformio", "cmake"]

# The file that belongs to the user once it has been changed.
USER_FILES = ("src/main.c",)

_HARNESS_SOURCES = ("harness/main.c", "harness/tinyet_fault.c", "harness/tinyet_harness.c")

# Width of the sample's lines: 16 bytes each.
_BYTES_A_LINE = 16


@dataclass(frozen=True)
class TensorFacts:
    """One input or output of the model, as it lies in the arena.

    shape:      in elements, as the user's PyTorch code sees it or as the layout says; for documentation.
    offset:     bytes from the start of the arena.
    scale:      real = scale * (value - zero_point); None, with zero_point None, when it is not quantized.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    bytes: int
    offset: int
    scale: float | None
    zero_point: int | None

    def __post_init__(self) -> None:
        if self.bytes != math.prod(self.shape) * self.dtype.bytes:
            raise InternalError(f"tensor {self.name!r}: {self.bytes} bytes do not hold {list(self.shape)}")
        if (self.scale is None) != (self.zero_point is None):
            raise InternalError(f"tensor {self.name!r} has only one of scale and zero point")

    @property
    def is_float(self) -> bool:
        return self.dtype is DType.FLOAT32

    @property
    def is_quantized(self) -> bool:
        return self.scale is not None

    @property
    def description(self) -> str:
        """The tensor in one line, for a README."""
        text = f"`{self.name}` {self.dtype.value} {list(self.shape)}"
        return f"{text}, scale {self.scale:.9g}, zero point {self.zero_point}" if self.is_quantized else text


@dataclass(frozen=True)
class ModelFacts:
    """What a project says about its model.

    name:    a C identifier: prefix of the functions; `macro` is the prefix of the macros.
    hash:    64 hexadecimal digits, of the program.
    layers:  number of calls in `<name>_run`; events: of parts of calls that a trace tells apart.
    has_init: whether there is a `<name>_init`.
    samples: one for each input, as its bytes lie in the arena; the application runs on them.
    """

    name: str
    macro: str
    hash: str
    arena_bytes: int
    layers: int
    inputs: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts, ...]
    samples: tuple[bytes, ...]
    events: int = 0
    has_init: bool = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z_]\w*", self.name, re.ASCII):
            raise InternalError(f"the model's name {self.name!r} is not a C identifier")
        if not re.fullmatch(r"[0-9a-f]{64}", self.hash):
            raise InternalError(f"the program's hash {self.hash!r} is not 64 hexadecimal digits")
        if [len(sample) for sample in self.samples] != [tensor.bytes for tensor in self.inputs]:
            raise InternalError("the samples do not have the sizes of the inputs")
        if not self.inputs or not self.outputs:
            raise InternalError("a model without inputs or without outputs")


def project_files(
    kind: Kind, board: Board, facts: ModelFacts, model_sources: Mapping[str, str]
) -> dict[str, str]:
    """Return a whole project: relative POSIX path -> text, sorted by path.

    model_sources: file name -> text of `<name>.h`, `<name>.c` and every kernel source and header they need.
    Raises UsageError for an unknown kind.
    """
    if kind not in get_args(Kind):
        raise UsageError(
            what=f"there is no project kind {kind!r}",
            where="--project",
            hint=f"one of {', '.join(get_args(Kind))}",
        )
    context = _context(board, facts, model_sources)
    files = _common_files(kind, board, facts, model_sources, context)
    files |= (
        _platformio_files(board, facts, context) if kind == "platformio" else _cmake_files(board, context)
    )
    return dict(sorted(files.items()))


def _context(board: Board, facts: ModelFacts, model_sources: Mapping[str, str]) -> dict[str, object]:
    """The names that the templates may use."""
    qemu = board.qemu
    return {
        "version": __version__,
        # PlatformIO and CMake want three numbers, no more; the program's hash tells models apart.
        "library_version": ".".join(re.findall(r"\d+", __version__)[:3]),
        "board": board,
        "facts": facts,
        "machine_flags": board.machine_flags,
        "board_defines": board.defines,
        "board_sources": [_basename(path) for path in board.support_sources],
        "model_sources": sorted(path for path in model_sources if path.endswith(".c")),
        "model_headers": sorted(path for path in model_sources if path.endswith(".h")),
        "input_lines": [tensor.description for tensor in facts.inputs],
        "output_lines": [tensor.description for tensor in facts.outputs],
        "sample_lines": [_byte_lines(sample) for sample in facts.samples],
        "prints_reals": any(tensor.is_float or tensor.is_quantized for tensor in facts.outputs),
        "qemu": "" if qemu is None else _qemu_command(board),
    }


def _common_files(
    kind: Kind,
    board: Board,
    facts: ModelFacts,
    model_sources: Mapping[str, str],
    context: Mapping[str, object],
) -> dict[str, str]:
    name = facts.name
    files = {f"lib/{name}/src/{path}": text for path, text in model_sources.items()}
    for path in (*board.support_sources, *board.support_headers):
        files[f"platform/support/{_basename(path)}"] = _firmware(path)
    for path in ("include/tinyet_harness.h", *_HARNESS_SOURCES):
        files[f"harness/{_basename(path)}"] = _firmware(path)
    manifest = {
        "tinyet": __version__,
        "kind": kind,
        "model": name,
        "hash": facts.hash,
        "board": board.name,
        "arena_bytes": facts.arena_bytes,
        "layers": facts.layers,
        "yours": list(USER_FILES),
    }
    return files | {
        ".gitignore": "/.pio/\n/build*/\n",
        "README.md": render(f"project/{kind}/README.md.j2", context),
        "harness/model_desc.c": render("project/common/model_desc.c.j2", context),
        "platform/support/linker.ld": _linker_script(board),
        "src/main.c": render("project/common/main.c.j2", context),
        f"src/{name}_sample.h": render("project/common/sample.h.j2", context),
        "tinyet.json": json.dumps(manifest, indent=2) + "\n",
    }


def _platformio_files(board: Board, facts: ModelFacts, context: Mapping[str, object]) -> dict[str, str]:
    # PlatformIO follows this link to the local platform. It would write one itself, with the absolute path of
    # the project; this one stays right when the project is moved or copied.
    link = {"cwd": ".", "spec": {"owner": None, "id": None, "name": "platform", "uri": "symlink://platform"}}
    return {
        "platformio.ini": render("project/platformio/platformio.ini.j2", context),
        f"lib/{facts.name}/library.json": render("project/platformio/library.json.j2", context),
        "platform/platform.json": render("project/platformio/platform/platform.json.j2", context),
        "platform/platform.py": _template_text("platformio/platform/platform.py"),
        "platform/builder/main.py": _template_text("platformio/platform/builder/main.py"),
        "platform/link/platform.pio-link": json.dumps(link, indent=2) + "\n",
        f"platform/boards/{board.name}.json": _board_json(board),
    }


def _cmake_files(board: Board, context: Mapping[str, object]) -> dict[str, str]:
    return {
        "CMakeLists.txt": render("project/cmake/CMakeLists.txt.j2", context),
        f"cmake/{board.name}.cmake": render("project/cmake/toolchain.cmake.j2", context),
        "platform/support/tinyet_posix.c": _firmware("platform/tinyet_posix.c"),
    }


def _board_json(board: Board) -> str:
    """The board in PlatformIO's form; its sizes are the limits of PlatformIO's own size check."""
    text = {
        "name": board.title,
        "vendor": board.vendor or "generic",
        "url": board.url,
        "platforms": ["tinyet"],
        "frameworks": [],
        "build": {
            "mcu": board.name,
            "cpu": board.cpu,
            "f_cpu": f"{board.clock_hz}L",
            "machine_flags": list(board.machine_flags),
            "defines": [list(pair) for pair in board.defines],
            "qemu": _qemu_command(board) if board.qemu else "",
        },
        "upload": {"maximum_size": board.flash.bytes, "maximum_ram_size": board.ram.bytes},
    }
    return json.dumps(text, indent=2) + "\n"


def _qemu_command(board: Board) -> str:
    """The command that runs a firmware with the UART on the terminal, still without `-kernel FILE`."""
    qemu = board.qemu
    if qemu is None:
        raise InternalError(f"QEMU has no machine for the board {board.name}")
    serial = [*["-serial", "null"] * qemu.serial, "-serial", "stdio"]
    return shlex.join(
        ["qemu-system-arm", "-M", qemu.machine, *qemu.args, "-display", "none", "-monitor", "none", *serial]
    )


def _linker_script(board: Board) -> str:
    # This template says itself where lines end.
    return (
        environment()
        .overlay(trim_blocks=False, lstrip_blocks=False)
        .get_template("support/linker.ld.j2")
        .render(board=board)
    )


def _byte_lines(data: bytes) -> list[str]:
    """Bytes as the lines of a C array."""
    return [
        ", ".join(f"0x{byte:02x}" for byte in data[at : at + _BYTES_A_LINE]) + ","
        for at in range(0, len(data), _BYTES_A_LINE)
    ]


def _firmware(path: str) -> str:
    return (assets.path("firmware") / path).read_text(encoding="utf-8")


def _template_text(path: str) -> str:
    """A file that goes into a project as it is."""
    return (assets.path("templates") / "project" / path).read_text(encoding="utf-8")


def _basename(path: str) -> str:
    return path.rpartition("/")[2]
