# SPDX-License-Identifier: Apache-2.0
"""Signals in front of a network: the keyword example from samples to the word, and Fourier transforms by size.

    python benchmarks/signals.py [--board mps2_an386] [--samples 24] [--results NAME]

The keyword example is built four times: its front end in C and its network (demo.py); both in one program (sound.py),
as it is and with the least RAM; and that program as a listener, 80 ms a run. All run on the emulated board, where every
byte must be the host's. Instructions are those of one second of sound. Transforms are in one program; their error is
that of the numpy reference, whose bits the board's are, against float64.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples" / "keyword_spotting"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import demo
import gallery
import model as keywords
import sound
import words

import tinyet
from benchmarks import record

SIZES = (64, 128, 256, 480, 512, 1024)
LEAST_RAM = 40_000
"""Bytes that the second of samples, 32,000, and everything else must do with."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--board", default="mps2_an386")
    parser.add_argument(
        "--samples", default=24, type=int, help="recordings that each program runs on the board"
    )
    record.add_option(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tinyet-signals-") as where:
        folder = Path(where)
        found = {
            "keywords": list(ways(options.board, folder, options.samples)),
            "transforms": transforms(options.board, folder),
        }
    for rows in found.values():
        for row in rows:
            sys.stdout.write(f"{row}\n")
    record.write(options.results, found)


def ways(board: str, folder: Path, count: int) -> Iterable[dict[str, Any]]:
    yield in_two_parts(board, folder / "parts")
    sounds, labels = (part.numpy() for part in sound.evaluation())
    program = tinyet.compile(
        sound.model(),
        sound.example_inputs(),
        calibration=sound.calibration(),
        name="sound",
        labels=words.CLASSES,
    )
    accuracy = program.evaluate(sounds, labels=labels).accuracy
    for name, ram in (("one program", None), ("one program, least RAM", LEAST_RAM)):
        measured = on_board(program, board, folder / f"whole{ram}", sounds[:count], ram)
        yield {"way": name, "accuracy": accuracy, **measured}
    listener = tinyet.compile(sound.hearing(), calibration=sound.calibration(), name="hearing")
    runs = sounds[0].size // sound.HOP
    pieces = sounds[0, : runs * sound.HOP].reshape(runs, 1, -1)
    measured = on_board(listener, board, folder / "hearing", pieces, None)
    for key in ("instructions", "front"):
        measured[key] = round(measured[key] * words.RATE / sound.HOP)
    yield {"way": "a listener, 80 ms a run", "accuracy": heard(listener, sounds, labels), **measured}


def heard(listener: tinyet.Program, sounds: np.ndarray, labels: np.ndarray) -> float:
    """How many of the recordings are known by the last answer to them, each after a reset."""
    right = 0
    for samples, label in zip(sounds, labels, strict=True):
        pieces = samples[samples.size % sound.HOP :].reshape(-1, 1, sound.HOP)
        outputs = listener.evaluate(pieces, by="native").outputs[0]
        right += int(np.argmax(outputs[-1])) == label
    return right / len(labels)


def on_board(
    program: tinyet.Program, board: str, folder: Path, samples: np.ndarray, max_ram: int | None
) -> dict[str, Any]:
    project = tinyet.generate(program, board, folder, max_ram=max_ram)
    size = project.build()
    result = project.validate(samples, on="qemu")
    assert result.bit_exact, f"{program.name} is not what the host computes"
    return {
        "instructions": result.instructions,
        "front": sum(layer.count or 0 for layer in result.layers[: front_of(program, result)]),
        "ram": size.ram,
        "flash": size.flash - size.sample,
        "samples": result.samples,
    }


def front_of(program: tinyet.Program, result: tinyet.ValidationResult) -> int:
    """How many layers stand before the network's integers."""
    names = [layer.op for layer in result.layers]
    assert "quantize" in names, program.name
    return names.index("quantize") + 1


def in_two_parts(board: str, folder: Path) -> dict[str, Any]:
    """mfcc.c and the network, as demo.py has them; the network's accuracy on the integers of mfcc.py."""
    inputs, labels = keywords.evaluation()
    program = tinyet.compile(
        keywords.model(),
        keywords.example_inputs(),
        calibration=keywords.calibration(),
        name=demo.NAME,
        labels=words.CLASSES,
    )
    sounds, _ = words.recordings(1, demo.HEARD)
    project = tinyet.generate(program, board, folder)
    gallery.use_application(project, demo.application(sounds))
    size = project.build()
    answers = demo.listen(project)
    assert all(demo.agrees(program, *pair) for pair in zip(sounds, answers, strict=True))
    front = round(np.mean([each.front_end for each in answers]))
    return {
        "way": "mfcc.c and a network",
        "accuracy": program.evaluate(inputs.numpy(), labels=labels.numpy()).accuracy,
        "instructions": front + round(np.mean([each.network for each in answers])),
        "front": front,
        "ram": size.ram,
        "flash": size.flash - sounds.nbytes,
        "samples": len(answers),
    }


class Transforms(nn.Module):
    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [torch.view_as_real(torch.fft.rfft(x[:, :size])) for size in SIZES]


def transforms(board: str, folder: Path) -> list[dict[str, Any]]:
    x = torch.randn(8, 1, max(SIZES), generator=torch.Generator().manual_seed(0))
    program = tinyet.compile(Transforms().eval(), (x[0],), name="transforms")
    project = tinyet.generate(program, board, folder / "transforms")
    project.build()
    result = project.validate(x.numpy(), on="qemu")
    assert result.bit_exact, "a transform is not what the host computes"
    # Layers are in the order in which they run; the values that they make tell them apart.
    sizes = {node.output.name: node.input(0).shape[-1] for node in program.graph.nodes}
    counts = {sizes[layer.value]: layer.count for layer in result.layers if layer.op == "signal_rfft"}
    rows = []
    for index, size in enumerate(SIZES):
        exact = np.fft.rfft(x.numpy()[..., :size].astype(np.float64))
        wanted = np.stack([exact.real, exact.imag], -1)
        found = np.stack([np.asarray(program.run(each)[index], np.float64) for each in x.numpy()])
        noise = np.sum((found - wanted) ** 2) / np.sum(wanted**2)
        rows.append(
            {"size": size, "instructions": counts[size], "error_db": round(float(10 * np.log10(noise)), 1)}
        )
    return rows


if __name__ == "__main__":
    main()
