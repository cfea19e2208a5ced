# SPDX-License-Identifier: Apache-2.0
"""Bytes of code of kernels and of what a model calls them by, as the linker and `nm` say."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.cost_rates import Sample
from tinyet import assets
from tinyet.boards import Board
from tinyet.deployment import Deployment
from tinyet.emit.model import model_files
from tinyet.ir import Graph
from tinyet.opset import Definition

DEFINED = re.compile(
    r"^(?:TINYET_DSP_FUNCTION void|TINYET_FUNCTION void|static tinyet_status) (\w+)\(", re.MULTILINE
)
"""A function that the generated model defines for a call."""


def own_code(deployment: Deployment, graph: Graph, board: Board) -> tuple[dict[str, int], str]:
    """Bytes of the functions of the generated model, compiled as an application is, and its text."""
    files = model_files(deployment, graph.name, ["layers"])
    firmware = assets.path("firmware")
    with tempfile.TemporaryDirectory(prefix="tinyet-costs-") as where:
        for name, text in files.items():
            path = Path(where) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        # As gcc.py compiles for the board.
        standard = "-std=c11" if board.simavr is None else "-std=gnu11"
        flags = [*board.machine_flags, *board.toolchain.library_flags, standard, board.toolchain.optimization]
        flags += ["-ffp-contract=off"]
        include = [f"-I{firmware / 'include'}", f"-I{where}"]
        # A function that is called once may become part of its caller: then nobody can tell what is whose.
        once = (
            "-fno-inline-functions-called-once"
            if "TINYET_DSP_FUNCTION" in files["layers.c"]
            else "-fno-inline"
        )
        flags += ["-ffunction-sections", once]
        command = [board.toolchain.compiler, *flags, *include, "-c", "layers.c", "-o", "x.o"]
        subprocess.run(command, cwd=where, check=True)
        tool = board.toolchain.prefix + "nm"
        lines = subprocess.run([tool, "-S", "x.o"], cwd=where, check=True, capture_output=True, text=True)
        rows = [line.split() for line in lines.stdout.splitlines()]
        return {row[3].split(".")[0]: int(row[1], 16) for row in rows if len(row) == 4}, files["layers.c"]


def wrappers(deployment: Deployment, sizes: Mapping[str, int], text: str) -> dict[Definition, int]:
    """Bytes of each function that a call defines, of what `own_code` gives."""
    called = [step.call.symbol for step in deployment.steps]
    defined = dict.fromkeys(symbol for symbol in called if isinstance(symbol, Definition))
    return {definition: sizes[name] for definition, name in zip(defined, DEFINED.findall(text), strict=True)}


def library_functions(found: Sample, base: Mapping[str, int]) -> dict[str, int]:
    """What the kernel needs of the library beside what every firmware has, rounded up to words."""
    extra = {n: b for n, b in found.functions.items() if n not in base and n not in found.own}
    return {name: -(-size // 4) * 4 for name, size in sorted(extra.items()) if not name.startswith("layers_")}
