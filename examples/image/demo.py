# SPDX-License-Identifier: Apache-2.0
"""Traffic signs in small pictures, by a residual network on an emulated board.

python examples/image/demo.py [--board mps2_an386] [--out build/image] [--train] [--plot FILE]
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import gallery
import model as network
import signs

NAME = "image"
# The sheet of pictures, and how many in it were taken for something else, if there are as many.
ROWS, COLUMNS, WRONG = 2, 5, 4


def draw(figure: Any, pictures: np.ndarray, labels: np.ndarray, found: np.ndarray) -> None:
    """A sheet of pictures under what the board says they are, beside the confusion matrix."""
    sheet, matrix = figure.subfigures(1, 2, width_ratios=(1.5, 1))
    wrong, right = np.flatnonzero(labels != found)[:WRONG], np.flatnonzero(labels == found)
    order = np.concatenate([right[: ROWS * COLUMNS - len(wrong)], wrong])
    for axes, index in zip(sheet.subplots(ROWS, COLUMNS).flat, order, strict=True):
        axes.imshow(pictures[index].transpose(1, 2, 0), interpolation="none")
        axes.axis("off")
        color = "black" if labels[index] == found[index] else gallery.COLORS[1]
        axes.set_title(signs.CLASSES[found[index]], color=color, fontsize=9, fontweight="normal")
    sheet.suptitle("what the board says (red: wrong)", fontsize=10, fontweight="bold")
    gallery.draw_confusion(matrix.subplots(), labels, found, signs.CLASSES, "held-out pictures")


def main() -> int:
    options = gallery.options(str(__doc__), NAME, network.WEIGHTS)
    print("drawing the held-out pictures (with --train, the training set first, and training on it) ...")
    trained = network.model()
    inputs, labels = network.evaluation()
    deployment = gallery.deploy(
        trained,
        network.example_inputs(),
        network.calibration(),
        inputs.numpy(),
        labels.numpy(),
        name=NAME,
        classes=signs.CLASSES,
        board=options.board,
        out=options.out,
    )
    gallery.show(options, deployment, gallery.accuracies(deployment))
    found = deployment.outputs.reshape(len(labels), -1).argmax(1)
    gallery.plot(
        options, NAME, lambda figure: draw(figure, inputs.numpy(), labels.numpy(), found), inches=(9.0, 3.6)
    )
    return 0 if deployment.result.bit_exact else 1


if __name__ == "__main__":
    sys.exit(main())
