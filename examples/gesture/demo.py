# SPDX-License-Identifier: Apache-2.0
"""Gestures from a three-axis accelerometer on an emulated board: held-out windows, and a stream as a sensor gives it.

python examples/gesture/demo.py [--board mps2_an386] [--out build/gesture] [--train] [--plot FILE]
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import gallery
import model as gestures
import motion

import tinyet

NAME = "gesture"
HOP = 32  # as in main.c
# What the firmware's recording holds, by a hand that nothing else here has seen.
PERFORMED, LENGTH, HAND = ("circle", "tap", "shake", "still", "flick", "tap", "shake"), 224, 700_000


def recording() -> np.ndarray:
    """The stream of raw samples (n, 3) in the firmware."""
    return motion.stream([motion.CLASSES.index(name) for name in PERFORMED], HAND, LENGTH)


def application(stream: np.ndarray) -> dict[str, str]:
    """The files that put a sensor before the network: main.c, and the recording in the sensor's place."""
    setup = f"""/* Written by demo.py. */
#include <stdint.h>

#define COUNTS_A_G {motion.COUNTS_A_G}.0f

static const int16_t recording[{len(stream)}][3] = {gallery.c_array(stream)};
"""
    return {"main.c": Path(__file__).with_name("main.c").read_text(encoding="utf-8"), "setup.h": setup}


def expected(program: tinyet.Program, stream: np.ndarray) -> list[str]:
    """The lines that the application has to print."""
    lines = []
    for end in range(motion.WINDOW, len(stream) + 1, HOP):
        window = gestures.features(stream[None, end - motion.WINDOW : end].transpose(0, 2, 1))
        scores = np.ravel(program.run(window[0].numpy(), as_float=False))
        lines.append(" ".join([motion.CLASSES[int(scores.argmax())], *map(str, scores)]))
    return lines


def draw(figure: Any, stream: np.ndarray, seen: list[str], labels: np.ndarray, found: np.ndarray) -> None:
    """The stream under what the board saw in it, beside the confusion matrix."""
    grid = figure.add_gridspec(2, 2, width_ratios=(2.2, 1), height_ratios=(1, 5))
    bars, lines = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0])
    time = np.arange(len(stream)) / motion.RATE
    for axis, name in enumerate("xyz"):
        lines.plot(
            time[::3], stream[::3, axis] / motion.COUNTS_A_G, color=gallery.COLORS[axis], lw=0.8, label=name
        )
    lines.legend(loc="lower left", ncols=3, frameon=False)
    lines.set(xlim=(0, time[-1]), xlabel="s", ylabel="acceleration, g")
    for i, name in enumerate(seen):
        # An answer is about its whole window; it is drawn at the middle of it.
        middle = (motion.WINDOW / 2 + i * HOP) / motion.RATE
        if name != "still":
            color = gallery.COLORS[motion.CLASSES.index(name)]
            bars.barh(0, HOP / motion.RATE, left=middle - HOP / 2 / motion.RATE, color=color, height=0.8)
    for i, name in enumerate(PERFORMED):
        bars.text((i + 0.5) * LENGTH / motion.RATE, 0.75, name, ha="center")
    for i, name in enumerate(motion.CLASSES[1:], 1):
        bars.bar(0, 0, color=gallery.COLORS[i], label=name)
    bars.set(xlim=(0, time[-1]), ylim=(-0.5, 1.3), xticks=[], yticks=[])
    bars.spines["left"].set_visible(False)
    bars.set_title("a stream of gestures (text), and what the board saw in it (bars)")
    bars.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=4, frameon=False)
    gallery.draw_confusion(figure.add_subplot(grid[:, 1]), labels, found, motion.CLASSES, "held-out gestures")


def main() -> int:
    options = gallery.options(str(__doc__), NAME, gestures.WEIGHTS)
    print("performing the held-out gestures (with --train, the training set first, and training on it) ...")
    network = gestures.model()
    inputs, labels = gestures.evaluation()
    stream = recording()
    deployment = gallery.deploy(
        network,
        gestures.example_inputs(),
        gestures.calibration(),
        inputs.numpy(),
        labels.numpy(),
        name=NAME,
        classes=motion.CLASSES,
        board=options.board,
        out=options.out,
        prepare=lambda project: gallery.use_application(project, application(stream)),
    )
    print("running the application: a sensor's samples in, gestures out ...")
    printed = gallery.run_application(deployment.project)
    exact = printed == expected(deployment.program, stream)
    gallery.show(
        options,
        deployment,
        [
            *gallery.accuracies(deployment),
            ("application = host, bit for bit", f"{exact} ({len(printed)} windows of a stream)"),
        ],
    )
    found = deployment.outputs.reshape(len(labels), -1).argmax(1)
    seen = [line.split()[0] for line in printed]
    gallery.plot(
        options, NAME, lambda figure: draw(figure, stream, seen, labels.numpy(), found), inches=(9.0, 3.8)
    )
    return 0 if deployment.result.bit_exact and exact else 1


if __name__ == "__main__":
    sys.exit(main())
