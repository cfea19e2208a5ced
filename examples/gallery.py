# SPDX-License-Identifier: Apache-2.0
"""What the demos share: options, training, the way from a network to a proved firmware, a table and a plot."""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import nn

import tinyet
from tinyet.boards import Board, load_board
from tinyet.build.size import Size
from tinyet.device import qemu
from tinyet.device.links import LinkClosed
from tinyet.errors import EmulatorError
from tinyet.ir import Array, Tensor
from tinyet.numerics import dequantize

torch.set_num_threads(1)  # networks this small are slower on more, and the same sums come out everywhere

COLORS = ("#2f6fab", "#d1495b", "#5b8c5a", "#edae49", "#7a5195", "#8d99ae")


# ---------------------------------------------------------------- training


def fit(
    network: nn.Module,
    inputs: torch.Tensor,
    targets: torch.Tensor,
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    *,
    epochs: int,
    rate: float = 3e-3,
    batch: int = 64,
    augment: Callable[[torch.Tensor], torch.Tensor] = lambda x: x,
) -> None:
    """Train in place with Adam and a cosine schedule; call torch.manual_seed before the network is made."""
    network.train()
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        for rows in torch.randperm(len(inputs)).split(batch):
            optimizer.zero_grad()
            loss(network(augment(inputs[rows])), targets[rows]).backward()
            optimizer.step()
        schedule.step()


def trained(make: Callable[[], nn.Module], train: Callable[[nn.Module], None], weights: Path) -> nn.Module:
    """The network in eval mode with the weights of a file, which is written by training when it is not there."""
    torch.manual_seed(0)
    network = make()
    if weights.exists():
        network.load_state_dict(torch.load(weights, weights_only=True))
    else:
        train(network)
        torch.save(network.state_dict(), weights)
    return network.eval()


# ---------------------------------------------------------------- from a network to a proved firmware


@dataclass(frozen=True)
class Options:
    """plot, json: where a copy of the plot and what was measured go, or None."""

    board: Board
    out: Path
    plot: Path | None
    json: Path | None = None


def options(description: str, name: str, weights: Path) -> Options:
    """The command line that every demo has. With --train, the weights are removed, and so made anew."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--board", default="mps2_an386", help="a name (tinyet boards) or a board file")
    parser.add_argument("--out", default=f"build/{name}", type=Path, help="the project's directory")
    parser.add_argument("--train", action="store_true", help="train again, instead of taking the weights")
    parser.add_argument("--plot", type=Path, help="also write the plot here; an .svg or .png file")
    parser.add_argument("--json", type=Path, help="also write what was measured here")
    given = parser.parse_args()
    board = load_board(given.board)
    if given.train:
        weights.unlink(missing_ok=True)
    return Options(board, given.out, given.plot, given.json)


@dataclass(frozen=True)
class Deployment:
    """A network on a board: what it was made into, and what was measured there."""

    program: tinyet.Program
    project: tinyet.Project
    size: Size
    result: tinyet.ValidationResult

    @property
    def outputs(self) -> Array:
        """The board's first output for each sample, as real numbers; samples first."""
        return real([sample[0] for sample in self.result.outputs], self.program.outputs[0])

    def host_outputs(self, samples: Array) -> Array:
        """The same from the host reference."""
        outputs = [np.asarray(self.program.run(sample, as_float=False)) for sample in samples]
        return real(outputs, self.program.outputs[0])


def real(values: Sequence[Array], tensor: Tensor) -> Array:
    """Batches of a tensor's values as real numbers, one after the other."""
    quant = tensor.type.quant
    return np.concatenate([array if quant is None else dequantize(array, quant) for array in values])


def deploy(
    network: nn.Module,
    example_inputs: tuple[torch.Tensor, ...],
    calibration: list[torch.Tensor],
    samples: Array,
    labels: Array | None,
    *,
    name: str,
    board: Board,
    out: Path,
    classes: Sequence[str] | None = None,
    prepare: Callable[[tinyet.Project], None] = lambda project: None,  # noqa: ARG005
) -> Deployment:
    """Quantize to int8, generate, build, and run every sample on the emulated board.

    classes: their names, for the firmware. prepare: may put files of its own into the project before it is built.
    """
    console = Console()
    console.print("quantizing to int8 ...")
    program = tinyet.compile(network, example_inputs, calibration=calibration, name=name, labels=classes)
    console.print(f"generating C for {board.title} and building it with PlatformIO ...")
    project = tinyet.generate(program, board, out, sample=[samples[0]])
    prepare(project)
    size = project.build()
    console.print(f"running {len(samples)} held-out samples in QEMU ...")
    result = project.validate(samples, labels=labels, on="qemu")
    return Deployment(program, project, size, result)


Row = tuple[str, str]


def accuracies(deployment: Deployment) -> list[Row]:
    """The rows of a classifier."""
    result = deployment.result
    values = (result.float_accuracy, result.host_accuracy, result.accuracy)
    names = ("float model", "int8 on the host", "int8 on the device")
    return [
        (f"accuracy, {name}", "none" if value is None else f"{value:.2%}")
        for name, value in zip(names, values, strict=True)
    ]


def show(given: Options, deployment: Deployment, metrics: Sequence[Row]) -> None:
    """Print what was measured as a table, and where to look next."""
    result, project = deployment.result, deployment.project
    if given.json is not None:
        measured = {**result.to_json(), "metrics": dict(metrics), "flash_bytes": deployment.size.flash}
        given.json.write_text(json.dumps(measured), encoding="utf-8")
    console = Console()
    table = Table(title=f"{project.name} on an emulated {project.board.title}", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    bound = result.stack_bound
    at_most = "" if bound is None or bound.bytes is None else f", at most {bound.bytes:,}"
    rows = [
        *metrics,
        (
            "device = host, bit for bit",
            f"{result.bit_exact} ({result.samples} samples, {result.mismatches} differ)",
        ),
        ("instructions per inference", f"{result.instructions:,}"),
        ("multiply-accumulates", f"{result.macs:,}"),
        ("arena (all activations)", f"{result.arena_bytes:,} bytes"),
        ("stack", f"{result.stack_bytes:,} bytes{at_most}"),
        ("flash (code and weights)", f"{deployment.size.flash:,} bytes"),
    ]
    for row in rows:
        table.add_row(*row)
    console.print(table)
    name = project.name
    console.print(f"\nThe generated C: {project.path}/lib/{name}/src/{name}.c", soft_wrap=True)
    console.print(f"Every layer:     tinyet validate {project.path}", soft_wrap=True)
    console.print(
        "Your own model:  tinyet generate your_model.py --board BOARD   (tinyet boards lists them)",
        soft_wrap=True,
    )


# ---------------------------------------------------------------- an application of one's own


def use_application(project: tinyet.Project, files: dict[str, str]) -> None:
    """Put an application in place of the generated one: file name in src/ → text. tinyet never writes over them."""
    for name, text in files.items():
        (project.path / "src" / name).write_text(text, encoding="utf-8")


def run_application(project: tinyet.Project, seconds: float = 60.0) -> list[str]:
    """The lines that the built application prints in QEMU, up to the line `done`, which is not among them.

    Raises EmulatorError when it does not come within `seconds`.
    """
    link = qemu.start(project.board, project.elf(project.board.name))
    deadline, text = time.monotonic() + seconds, ""
    try:
        while "done\n" not in text:
            text += link.read(deadline).decode()
    except (LinkClosed, TimeoutError) as error:
        raise EmulatorError(
            "the application did not come to its end", hint=f"what it printed: {text[-200:]!r}"
        ) from error
    finally:
        link.close()
    return text.removesuffix("done\n").splitlines()


def c_array(values: Array) -> str:
    """An array's initialiser in C, nested like its dimensions."""
    if values.ndim > 1:
        return "{" + ",\n".join(c_array(row) for row in values) + "}"
    rows = [", ".join(map(str, values[i : i + 16].tolist())) for i in range(0, len(values), 16)]
    return "{" + ",\n".join(rows) + "}"


# ---------------------------------------------------------------- plots

METADATA = {"Date": None, "Creator": None}  # nothing that changes from day to day


def plot(given: Options, name: str, draw: Callable[[Any], None], *, inches: tuple[float, float]) -> None:
    """Draw a figure into the project's directory, and to where --plot says; the same data gives the same bytes.

    draw: gets the matplotlib Figure. Without matplotlib, a line says how to get it, and nothing is drawn.
    """
    console = Console()
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        console.print(
            "no plot: matplotlib is not installed (pip install 'tinyet\\[examples]')", soft_wrap=True
        )
        return
    style = {
        "svg.hashsalt": "tinyet",
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],
        "font.size": 9.0,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 10.0,
        "axes.titleweight": "bold",
        "figure.facecolor": "white",
    }
    with mpl.rc_context(style):
        for path in (given.out / f"{name}.svg", *([given.plot] if given.plot else [])):
            figure = Figure(figsize=inches, layout="constrained")
            draw(figure)
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=100, metadata=METADATA if path.suffix == ".svg" else {})
            if path.suffix == ".svg":
                # A hundredth of a point is more than an eye can see, and a third of the file.
                text = re.sub(r"(\d\.\d\d)\d+", r"\1", path.read_text(encoding="utf-8"))
                path.write_text(text, encoding="utf-8")
            console.print(f"The plot:        {path}", soft_wrap=True)


def draw_confusion(axes: Any, labels: Array, found: Array, classes: Sequence[str], title: str) -> None:
    """How often each class (a row) was taken for each (a column), in matplotlib Axes."""
    counts = np.zeros((len(classes), len(classes)), int)
    np.add.at(counts, (labels, found), 1)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    axes.pcolormesh(shares, cmap="Blues", vmin=0.0, vmax=1.0, edgecolors="white", linewidth=1.5)
    for row, column in np.argwhere(counts):
        color = "white" if shares[row, column] > 0.5 else "black"
        axes.text(column + 0.5, row + 0.5, str(counts[row, column]), ha="center", va="center", color=color)
    ticks = np.arange(len(classes)) + 0.5
    axes.set_xticks(ticks, classes, rotation=35, ha="right", rotation_mode="anchor")
    axes.set_yticks(ticks, classes)
    axes.invert_yaxis()
    axes.set_aspect("equal")
    axes.tick_params(length=0)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.set_title(title)
    axes.set_ylabel("true")
    axes.set_xlabel("on the device")
