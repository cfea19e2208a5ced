# SPDX-License-Identifier: Apache-2.0
"""Builds generated Zephyr projects against the stand-in: the real CMake, kconfiglib, devicetree and GCC."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from tinyet import assets
from tinyet.boards import load_board
from tinyet.build.process import run
from tinyet.emit.kinds.tree import support_files

STANDIN = Path(__file__).resolve().parent
# The machine below the stand-in.
MACHINE = "mps2_an386"

# Only with this overlay is the console on the UART that QEMU shows.
_ZEPHYR_TABLE = '''
[zephyr]
board = "mps2/an386"
conf = """
CONFIG_UART_LINE_CTRL=y
"""
overlay = """
/ {
\tchosen {
\t\tzephyr,console = &uart0;
\t};
};

&uart0 {
\tstatus = "okay";
\tcurrent-speed = <115200>;
};
"""
'''


def own_board(directory: Path) -> Path:
    """A user's board file: the machine below the stand-in, with a [zephyr] table that needs conf and overlay."""
    text = (assets.path("boards") / f"{MACHINE}.toml").read_text(encoding="utf-8")
    text = re.sub(r"\n\[zephyr\]\n(?:(?!\[).*\n)*", "\n", text)
    path = directory / "my_board.toml"
    path.write_text(text + _ZEPHYR_TABLE, encoding="utf-8")
    return path


def build(
    application: Path,
    directory: Path,
    *,
    board: str = "mps2/an386",
    conf: Sequence[str] = (),
    target: str = "all",
) -> Path:
    """Configure and build an application as `west build -b BOARD -d DIRECTORY` would; return its ELF file.

    conf: further files of options (EXTRA_CONF_FILE). target: what to build. Raises ToolchainError.
    """
    support = directory / "support"
    support.mkdir(parents=True, exist_ok=True)
    for path, text in support_files("support", load_board(MACHINE)).items():
        (directory / path).write_text(text, encoding="utf-8")
    commands: tuple[list[str | Path], ...] = (
        [
            *("cmake", "-S", application, "-B", directory),
            *(("-G", "Ninja") if shutil.which("ninja") else ()),
            f"-DBOARD={board}",
            f"-DPYTHON={sys.executable}",
            f"-DSTANDIN_SUPPORT={support}",
            f"-DEXTRA_CONF_FILE={';'.join(conf)}",
            "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
        ],
        ["cmake", "--build", directory, "--target", target],
    )
    env = os.environ | {"ZEPHYR_BASE": str(STANDIN)}
    for command in commands:
        run(command, timeout=120, env=env, what="building against the stand-in for Zephyr")
    return directory / "zephyr" / "zephyr.elf"
