# SPDX-License-Identifier: Apache-2.0
"""A Zephyr application with the model as a Zephyr module, for `west build`; and Zephyr's part of a PlatformIO project.

src/                 the application: one run on an embedded sample
modules/<name>/      the model and the kernels it uses, as a module that other applications can take, too
harness/             the firmware that serves the model to a host, instead of the application
boards/              what the board needs of Kconfig and devicetree
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tinyet.assets.templating import render
from tinyet.boards import Board
from tinyet.emit.facts import ModelFacts
from tinyet.emit.kinds.console import printed_outputs
from tinyet.emit.kinds.kind import ProjectKind
from tinyet.emit.kinds.tree import (
    Tree,
    basename,
    context_of,
    firmware,
    model_files,
    sample_files,
    template_text,
)
from tinyet.errors import InternalError
from tinyet.messages.text import c_comment

# The release that generated projects are pinned to, as a tag of its repository.
ZEPHYR_VERSION = "v4.4.0"

# The harness takes at least this many counts when it starts (EMPTY_LAYERS of tinyet_harness.c).
_LEAST_COUNTS = 8

# A chip family's module of hardware drivers, by the name of PlatformIO's platform ...
_HAL_BY_PLATFORM: Mapping[str, str] = {
    "atmelsam": "hal_atmel",
    "espressif32": "hal_espressif",
    "freescalekinetis": "hal_nxp",
    "nordicnrf51": "hal_nordic",
    "nordicnrf52": "hal_nordic",
    "nxpimxrt": "hal_nxp",
    "nxplpc": "hal_nxp",
    "raspberrypi": "hal_rpi_pico",
    "renesas-ra": "hal_renesas",
    "siliconlabsefm32": "hal_silabs",
    "ststm32": "hal_stm32",
    "teensy": "hal_nxp",
    "ticc13x0": "hal_ti",
    "titiva": "hal_ti",
}
# ... or by Zephyr's name of the board, which mostly has the chip's in it; "" where Zephyr brings all drivers itself.
_HAL_BY_BOARD: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"nrf\d|microbit|nano_33_ble|xiao_ble"), "hal_nordic"),
    (re.compile(r"stm32|nucleo|disco_"), "hal_stm32"),
    (re.compile(r"esp32"), "hal_espressif"),
    (re.compile(r"rpi_pico|rp2040|rp2350"), "hal_rpi_pico"),
    (re.compile(r"^(qemu_|mps2|mps3)"), ""),
)

# The harness's files, relative to the `firmware` directory.
_HARNESS = (
    "include/tinyet_frames.h",
    "include/tinyet_harness.h",
    "include/tinyet_platform.h",
    "harness/tinyet_harness.c",
    "platform/tinyet_zephyr.c",
)
_YOURS = ("src/main.c", "prj.conf", "west.yml")
# Tells the host of a fault. Written for the release above; PlatformIO's Zephyr is older and names things differently.
_FAULT = "platform/tinyet_zephyr_fault.c"


def refusal(board: Board) -> str | None:
    """Why there can be no project of this kind for a board, or None."""
    return None if board.zephyr else "its file has no [zephyr] table with the board's name there"


def tree(board: Board, facts: ModelFacts, model_sources: Mapping[str, str]) -> Tree:
    """The project's files."""
    model_dir = f"modules/{facts.name}/src"
    context = _context(board, facts, model_sources) | {"module": True}
    boards = f"boards/{context['board_file']}"
    files = (
        model_files(model_dir, model_sources)
        | _application_files(context)
        | {
            f"harness/{basename(_FAULT)}": firmware(_FAULT),
            ".gitignore": "/build*/\n/twister-out*/\n",
            "LICENSE": template_text("common/LICENSE"),
            "README.md": render("project/zephyr/README.md.j2", context),
            "CMakeLists.txt": render("project/zephyr/CMakeLists.txt.j2", context),
            "Kconfig": render("project/zephyr/Kconfig.j2", context),
            "prj.conf": render("project/zephyr/prj.conf.j2", context),
            "harness.conf": render("project/zephyr/harness.conf.j2", context),
            "west.yml": render("project/zephyr/west.yml.j2", context),
            "sample.yaml": render("project/zephyr/sample.yaml.j2", context),
            f"{boards}.conf": render("project/zephyr/board.conf.j2", context),
            f"modules/{facts.name}/zephyr/module.yml": render("project/zephyr/module/module.yml.j2", context),
            f"modules/{facts.name}/zephyr/Kconfig": render("project/zephyr/module/Kconfig.j2", context),
            f"modules/{facts.name}/zephyr/CMakeLists.txt": render(
                "project/zephyr/module/CMakeLists.txt.j2", context
            ),
        }
    )
    return Tree(files | _overlay(board, boards), model_dir, "harness/model_desc.c", _YOURS)


def platformio_files(board: Board, facts: ModelFacts, model_sources: Mapping[str, str]) -> dict[str, str]:
    """The files of a PlatformIO project with `framework = zephyr` beside platformio.ini, the model's library
    lib/<name>/ and its README: relative POSIX path -> text.

    PlatformIO configures Zephyr from the directory zephyr/ and compiles src/ and lib/ itself. The harness
    is an environment of platformio.ini with

        build_src_filter = -<*> +<../harness/>
        build_flags = ... -DTINYET_TRACE=1
        board_build.zephyr.cmake_extra_args = -DOVERLAY_CONFIG=harness.conf
    """
    context = _context(board, facts, model_sources) | {"module": False}
    return (
        _application_files(context)
        | {
            "zephyr/CMakeLists.txt": render("project/zephyr/platformio/CMakeLists.txt.j2", context),
            "zephyr/Kconfig": render("project/zephyr/Kconfig.j2", context),
            "zephyr/prj.conf": render("project/zephyr/prj.conf.j2", context),
            "zephyr/harness.conf": render("project/zephyr/harness.conf.j2", context),
        }
        | _overlay(board, "zephyr/app")
    )


def board_file(name: str) -> str:
    """The stem of an application's files for a board, from the name that `west build -b` takes: without the
    revision, and _ for the slashes in front of the chip's name."""
    return re.sub(r"@[^/]*", "", name).rstrip("/").replace("/", "_")


def west_modules(board: Board) -> tuple[tuple[str, str], ...] | None:
    """The modules of Zephyr's manifest that a board needs, each with the reason; None when that is not known."""
    if board.zephyr is None:
        raise InternalError(f"the board {board.name} has no name in Zephyr")
    by_board = (hal for pattern, hal in _HAL_BY_BOARD if pattern.search(board.zephyr.board))
    by_platform = _HAL_BY_PLATFORM.get(board.platformio.platform) if board.platformio else None
    hal = by_platform or next(by_board, None)
    if hal is None:
        return None
    core = (("cmsis_6", "Arm's registers of the core"),) if board.target.family == "arm" else ()
    return core + (((hal, "the chip's drivers"),) if hal else ())


def _context(board: Board, facts: ModelFacts, model_sources: Mapping[str, str]) -> dict[str, object]:
    """The names that the templates may use, without `module`: whether the model is a Zephyr module."""
    if board.zephyr is None:
        raise InternalError(f"the board {board.name} has no name in Zephyr")
    return context_of(board, facts, model_sources) | {
        "board_file": board_file(board.zephyr.board),
        "board_conf": board.zephyr.conf.splitlines(),
        # For other families, Zephyr's own board files suffice.
        # A model whose memory and whose stack are known can have a thread of its own.
        "threaded": len(facts.parts) == 1 and facts.context and facts.stack > 0 and facts.tiled_input is None,
        "fpu": board.target.family == "arm" and "fpu" in board.target.features,
        "harness_counts": max(facts.layers + facts.events, _LEAST_COUNTS),
        "harness_sources": sorted(
            ["model_desc.c", *(basename(path) for path in (*_HARNESS, _FAULT) if path.endswith(".c"))]
        ),
        "console_regexes": console_regexes(facts),
        "west_modules": west_modules(board),
        "zephyr_version": ZEPHYR_VERSION,
    }


def console_regexes(facts: ModelFacts) -> list[str]:
    """Regular expressions for the application's console output, line by line, in order.

    Twister searches for them in lines that it may have stripped; `$` keeps 1 from standing for 12.
    """
    lines = [line.strip() for line in printed_outputs(facts)]
    escaped = [re.escape(line).replace(r"\ ", " ").replace(r"\-", "-") for line in lines]
    return [rf"{regex}\s*$" for regex in (rf"{facts.name}: \d+ us", *escaped, "done")]


def _application_files(context: Mapping[str, object]) -> dict[str, str]:
    """The application's and the harness's C files: the same for `west` and for PlatformIO."""
    facts = context["facts"]
    if not isinstance(facts, ModelFacts):
        raise InternalError("the templates' names hold no facts of the model")
    return {f"harness/{basename(path)}": firmware(path) for path in _HARNESS} | {
        "harness/model_desc.c": render("project/common/model_desc.c.j2", context),
        "src/main.c": render("project/zephyr/main.c.j2", context),
        **sample_files("src", context),
    }


def _overlay(board: Board, stem: str) -> dict[str, str]:
    """The devicetree overlay, where the board needs one."""
    if board.zephyr is None or not board.zephyr.overlay:
        return {}
    title = c_comment(board.title)
    head = f"/* SPDX-License-Identifier: Apache-2.0 */\n/* {title}. Generated by tinyet: do not edit. */\n"
    return {f"{stem}.overlay": head + board.zephyr.overlay.rstrip("\n") + "\n"}


KIND = ProjectKind(
    "zephyr",
    (
        "`zephyr`",
        "`west`: an application and a module",
        "boards that Zephyr has",
        "[zephyr.md](zephyr.md)",
    ),
    refusal,
    tree,
    framework=lambda _board: "zephyr",
    # Zephyr's own test runner reads the console, so it gets the expected text.
    tells_outputs=True,
)
