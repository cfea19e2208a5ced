# SPDX-License-Identifier: Apache-2.0
"""From a microphone's buffer to a word, on an emulated board: front end and network in one firmware, both proved.

python examples/keyword_spotting/demo.py [--board mps2_an386] [--out build/keyword_spotting] [--train] [--plot FILE]
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import gallery
import mfcc
import model as keywords
import words

import tinyet
from tinyet.device import qemu

NAME = "keyword_spotting"
# Seed of the recordings that the firmware holds: one of each class, by voices that nothing else here has heard.
HEARD = 700_000


@dataclass(frozen=True)
class Heard:
    """What the application said of one recording. The counts are instructions."""

    word: str
    scores: np.ndarray
    cepstra: np.ndarray
    front_end: int
    network: int


def application(sounds: np.ndarray) -> dict[str, str]:
    """The files that make the generated project hear: main.c, the front end with its tables, and the recordings."""
    scale = ", ".join(f"{float(value).hex()}f" for value in keywords.SCALE)
    setup = f"""/* Written by demo.py. */
#include <stdint.h>

#include "mfcc.h"

static const int32_t feature_mean[MFCC_CEPSTRA] = {gallery.c_array(np.array(keywords.MEAN))};
static const float feature_scale[MFCC_CEPSTRA] = {{{scale}}};
static const int16_t recordings[{len(sounds)}][MFCC_SAMPLES] = {gallery.c_array(sounds)};
"""
    sources = [Path(__file__).with_name(name) for name in ("main.c", "mfcc.c", "mfcc.h")]
    files = {path.name: path.read_text(encoding="utf-8") for path in sources}
    return files | {"mfcc_tables.h": mfcc.tables(), "setup.h": setup}


def listen(project: tinyet.Project) -> list[Heard]:
    """Run the application; what it heard in each of its recordings."""
    lines = [line.split() for line in gallery.run_application(project)]
    per_instruction = qemu.ticks_per_instruction(project.board)
    heard = []
    for word, scores, ticks, cepstra in zip(*(lines[i::4] for i in range(4)), strict=True):
        assert [word[0], scores[0], ticks[0], cepstra[0]] == ["heard", "scores", "ticks", "cepstra"]
        counts = [round(int(value) / per_instruction) for value in ticks[1:]]
        values = np.array(cepstra[1:], np.int16).reshape(mfcc.FRAMES, mfcc.CEPSTRA)
        heard.append(Heard(word[1], np.array(scores[1:], np.int8), values, *counts))
    return heard


def agrees(program: tinyet.Program, sound: np.ndarray, heard: Heard) -> bool:
    """Whether the board computed the reference's cepstra and, from these, the host reference's scores."""
    cepstra = mfcc.mfcc(sound)
    scores = program.run(keywords.features(cepstra[None])[0].numpy(), as_float=False)
    return np.array_equal(heard.cepstra, cepstra) and np.array_equal(heard.scores, np.ravel(scores))


def draw(figure: Any, sounds: np.ndarray, heard: list[Heard], labels: np.ndarray, found: np.ndarray) -> None:
    """Recordings with their cepstra and what was heard, beside the confusion matrix."""
    grid = figure.add_gridspec(4, 3, width_ratios=(1, 1, 2.1), height_ratios=(1, 2, 1, 2))
    for place, index in enumerate((2, 3, 4, 5)):
        row, column = 2 * (place // 2), place % 2
        wave, picture = figure.add_subplot(grid[row, column]), figure.add_subplot(grid[row + 1, column])
        blocks = sounds[index].reshape(-1, 250)
        time = np.arange(len(blocks))
        wave.fill_between(time, blocks.min(1), blocks.max(1), color=gallery.COLORS[0], linewidth=0)
        wave.set(xlim=(0, len(blocks)), xticks=[], yticks=[])
        wave.set_title(f"said “{words.CLASSES[index]}”, heard “{heard[index].word}”")
        cepstra = keywords.features(heard[index].cepstra[None])[0, 0].numpy()
        picture.imshow(
            cepstra.T, aspect="auto", origin="lower", cmap="magma", vmin=-3, vmax=3, interpolation="none"
        )
        picture.set(xticks=[], yticks=[])
        if column == 0:
            picture.set_ylabel("cepstra")
        if row == 2:
            picture.set_xlabel("1 s")
    gallery.draw_confusion(
        figure.add_subplot(grid[:, 2]), labels, found, words.CLASSES, "held-out recordings"
    )


def main() -> int:
    options = gallery.options(str(__doc__), NAME, keywords.WEIGHTS)
    print("speaking the held-out words (with --train, the training words first, and training on them) ...")
    network = keywords.model()
    inputs, labels = keywords.evaluation()
    sounds, _ = words.recordings(1, HEARD)
    deployment = gallery.deploy(
        network,
        keywords.example_inputs(),
        keywords.calibration(),
        inputs.numpy(),
        labels.numpy(),
        name=NAME,
        classes=words.CLASSES,
        board=options.board,
        out=options.out,
        prepare=lambda project: gallery.use_application(project, application(sounds)),
    )
    print("running the application: microphone buffers in, words out ...")
    heard = listen(deployment.project)
    exact = [agrees(deployment.program, *pair) for pair in zip(sounds, heard, strict=True)]
    gallery.show(
        options,
        deployment,
        [
            *gallery.accuracies(deployment),
            (
                "front end + network = reference, bit for bit",
                f"{all(exact)} ({len(exact)} microphone buffers)",
            ),
            ("instructions of the front end, 1 s", f"{np.mean([h.front_end for h in heard]):,.0f}"),
            ("flash without the recordings", f"{deployment.size.flash - sounds.nbytes:,} bytes"),
        ],
    )
    for said, answer in zip(words.CLASSES, heard, strict=True):
        print(f"said {said:10} heard {answer.word}")
    found = deployment.outputs.reshape(len(labels), -1).argmax(1)
    gallery.plot(
        options, NAME, lambda figure: draw(figure, sounds, heard, labels.numpy(), found), inches=(9.0, 4.6)
    )
    return 0 if deployment.result.bit_exact and all(exact) else 1


if __name__ == "__main__":
    sys.exit(main())
