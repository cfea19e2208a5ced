# SPDX-License-Identifier: Apache-2.0
"""What quantization does to the answers of networks of many kinds, what the alarm says of it, and whether what it says
to do helps.

    python benchmarks/quality.py [NAME ...] [--results NAME]

For each network of `quality_networks.py`: its task's figure in float; in plain PT2E, where nothing is mended; as
`tinyet compile` makes it; and, where the alarm rings, with what the report that it names says to do: the very commands,
one after the other, as they are printed. All figures are those of the integers that ship, by the host reference.
Seconds are the processor's. Those of MLPerf Tiny need TINYET_MLPERF_DIR (see mlperf_tiny.py).
"""

import argparse
import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks.quality_networks import NETWORKS, Trained, trained
from benchmarks.record import add_option, write
from tinyet.cli import run
from tinyet.fx.capture import capture
from tinyet.quantization.quantize import quantize_fully

MODEL = """\
from benchmarks.quality_networks import trained

net = trained({name!r})
model = lambda: net.module
example_inputs = lambda: (net.x[:1],)
calibration = lambda: net.calibration
evaluation = lambda: (net.x, net.y if net.labels else None)
"""
QUANTIZER = "quantizer = net.quantizer\n"


@dataclass(frozen=True)
class Row:
    """network: what tables call it. float_score, plain, default, after: the task's figure, 0 … 1; after: None where
    nothing was to be done. said: the alarm's line or the quiet one; rings: which. advice: options the report gives.
    seconds: of the processor, to compile, and of the report."""

    name: str
    network: str
    figure: str
    float_score: float
    plain: float
    default: float
    after: float | None
    rings: bool
    said: str
    advice: str
    compile_seconds: float
    report_seconds: float | None


def scored(network: Trained, program: tinyet.Program) -> float:
    found = [program.run(sample[None].numpy(), as_float=True) for sample in network.x]
    rows = [row if isinstance(row, tuple | list) else [row] for row in found]
    outputs = [torch.cat([torch.as_tensor(part) for part in column]) for column in zip(*rows, strict=True)]
    return network.score(outputs, network.y)


def float_score(network: Trained) -> float:
    with torch.no_grad():
        found = network.module(network.x)
    return network.score(found if isinstance(found, tuple) else [found], network.y)


def plain_score(network: Trained) -> float:
    """PT2E without mending."""
    program = capture(network.module, (network.x[:1],))
    own = None if network.quantizer is None else network.quantizer()
    quantized = quantize_fully(program, network.calibration, own, mend=False)
    return scored(network, tinyet.compile(quantized.program, name="net"))


def command(words: list[str]) -> tuple[str, float]:
    """What a command line prints, on both streams, and the processor's seconds. Raises SystemExit where it fails."""
    text = io.StringIO()
    began = time.process_time()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        status = run(words)
    if status != 0:
        sys.exit(f"{shlex.join(words)} ends with {status}:\n{text.getvalue()}")
    return text.getvalue(), time.process_time() - began


def row_of(name: str) -> Row:
    network = trained(name)
    Path(f"{name}.py").write_text(
        MODEL.format(name=name) + (QUANTIZER if network.quantizer is not None else ""), encoding="utf-8"
    )
    text, compiling = command(["compile", f"{name}.py", "-o", f"{name}.tet"])
    lines = text.splitlines()
    said = next(line for line in lines if line.startswith(("ALARM: ", "answers: ")))
    rings = said.startswith("ALARM")
    default = scored(network, tinyet.load(f"{name}.tet"))
    after, advice, reporting = None, "", None
    if rings:
        look = next(line for line in lines if "to look closer: " in line).partition("closer: tinyet ")[2]
        report, reporting = command(shlex.split(look))
        told = re.search(r"^(?:to do|brings most): tinyet (.+)$", report, re.MULTILINE)
        if told is not None:
            words = [word.replace("FILE.tet", "after.tet") for word in shlex.split(told[1])]
            command(words)
            advice = shlex.join(words[2:-2])
            after = scored(network, tinyet.load("after.tet"))
    return Row(
        name,
        NETWORKS[name][0],
        network.figure,
        round(float_score(network), 4),
        round(plain_score(network), 4),
        round(default, 4),
        None if after is None else round(after, 4),
        rings,
        re.sub(r"^ALARM: the integers' answers are not the model's: |^answers: ", "", said),
        advice,
        round(compiling, 1),
        None if reporting is None else round(reporting, 1),
    )


def show(console: Console, rows: list[Row]) -> None:
    table = Table()
    for title in ("network", "figure", "float", "plain", "default", "after", "alarm", "compile", "report"):
        table.add_column(title)
    for row in rows:
        after = "" if row.after is None else f"{row.after:.2%}"
        alarm = f"{'RINGS' if row.rings else 'silent'}: {row.said} {row.advice}"
        seconds = "" if row.report_seconds is None else f"{row.report_seconds}"
        scores = [f"{score:.2%}" for score in (row.float_score, row.plain, row.default)]
        table.add_row(row.name, row.figure, *scores, after, alarm, f"{row.compile_seconds}", seconds)
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", choices=[*NETWORKS, []], default=[])
    add_option(parser)
    options = parser.parse_args()
    console = Console(width=150)
    rows = []
    here = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="tinyet-bench-") as where:
        os.chdir(where)
        for name in options.networks or NETWORKS:
            rows.append(row_of(name))
            console.print(rows[-1])
        os.chdir(here)
    show(console, rows)
    write(options.results, [asdict(row) for row in rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
