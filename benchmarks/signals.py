# SPDX-License-Identifier: Apache-2.0
"""Signals in front of a network: the keyword example from samples to the word, and Fourier transforms by size.

    python benchmarks/signals.py [--board mps2_an386] [--samples 24] [--results NAME]

The keyword example is built five times: its front end in C and its network (demo.py); both in one program (sound.py),
with spectra in float32 and in fixed point, and with the least RAM; and that program as a listener, 80 ms a run. All run
on the emulated board, where every byte must be the host's. Instructions are those of one second of sound. A log-mel
front end alone is built for several cores. Transforms are in one program; their error is that of the numpy reference,
whose bits the board's are, against float64.
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
from tinyet import features
from tinyet.features.mel import Arithmetic

SIZES = (64, 128, 256, 480, 512, 1024)
FRONT_FRAMES = 4
FRONT_SAMPLES = 400 + (FRONT_FRAMES - 1) * 160
FRONT_BOARDS = {"mps2_an386": "M4 with FPU", "mps2_an385": "M3", "microbit": "M0"}
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
            "fronts": list(fronts(folder)),
            "transforms": transforms(options.board, folder),
        }
    for rows in found.values():
        for row in rows:
            sys.stdout.write(f"{row}\n")
    record.write(options.results, found)


def ways(board: str, folder: Path, count: int) -> Iterable[dict[str, Any]]:
    yield in_two_parts(board, folder / "parts")
    sounds, labels = (part.numpy() for part in sound.evaluation())
    for name, arithmetic, ram in (
        ("one program, spectra in float32", "float", None),
        ("one program, spectra in fixed point", "auto", None),
        ("the same, least RAM", "auto", LEAST_RAM),
    ):
        program = tinyet.compile(
            sound.model(arithmetic),
            sound.example_inputs(),
            calibration=sound.calibration(),
            name="sound",
            labels=words.CLASSES,
        )
        assert any(node.op == "log_bands" for node in program.graph.nodes) == (arithmetic == "auto")
        accuracy = program.evaluate(sounds, labels=labels).accuracy
        measured = on_board(program, board, folder / f"{arithmetic}{ram}", sounds[:count], ram)
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
        right += bool(np.argmax(outputs[-1]) == label)
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


class Front(nn.Module):
    """(1, FRONT_SAMPLES) int16 to (1, FRONT_FRAMES, 40): frames of 25 ms every 10 ms, in a transform of 512."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        super().__init__()
        self.mel = features.LogMel(
            words.RATE, 512, 160, 40, frame=400, low=20.0, floor=1.0, arithmetic=arithmetic
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.mel(x)
        return y


def fronts(folder: Path) -> Iterable[dict[str, Any]]:
    """A log-mel front end of 40 bands alone, in both arithmetics, on cores with and without an FPU."""
    sounds = sound.evaluation()[0].numpy()[:8, None, 4000 : 4000 + FRONT_SAMPLES]
    for board, core in FRONT_BOARDS.items():
        nothing = around(board, folder)
        for arithmetic in ("float", "fixed"):
            program = tinyet.compile(Front(arithmetic).eval(), (torch.from_numpy(sounds[0]),), name="front")
            project = tinyet.generate(program, board, folder / f"front_{board}_{arithmetic}")
            size = project.build()
            result = project.validate(sounds[: 2 if core == "M0" else 8], on="qemu")
            assert result.bit_exact, "a front end is not what the host computes"
            yield {
                "core": core,
                "arithmetic": arithmetic,
                "instructions": round(result.instructions / FRONT_FRAMES * 100),
                "ram": size.ram,
                "flash": size.flash - size.sample - nothing,
                "error": error(program, sounds),
            }


class Nothing(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1.0


def around(board: str, folder: Path) -> int:
    """Bytes of flash of a firmware whose program adds up two numbers."""
    program = tinyet.compile(Nothing().eval(), (torch.zeros(1, 1),), name="nothing")
    size = tinyet.generate(program, board, folder / f"nothing_{board}").build()
    return size.flash - size.sample


def error(program: tinyet.Program, sounds: np.ndarray) -> float:
    """RMS of how far logarithms are from those in float64."""
    mel = Front("float").double().mel
    squares = []
    for x in sounds:
        frames = np.lib.stride_tricks.sliding_window_view(x[0].astype(np.float64), 400)[::160]
        power = np.abs(np.fft.rfft(frames * mel.power.frame.window.numpy(), 512)) ** 2
        wanted = np.log(power @ mel.bank.filters.numpy().T + 1.0)
        squares.append((np.asarray(program.run(x), np.float64)[0] - wanted) ** 2)
    return float(f"{np.sqrt(np.mean(squares)):.2g}")


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
