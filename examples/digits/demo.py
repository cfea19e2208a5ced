# SPDX-License-Identifier: Apache-2.0
"""From training to proof in one run: train, quantize, generate, build, and run the whole held-out set on an
emulated board.

python examples/digits/demo.py [--board mps2_an386] [--out build/digits] [--train] [--plot FILE]
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import gallery
import model as digits

NAME = "digits"


def main() -> int:
    options = gallery.options(str(__doc__), NAME, digits.WEIGHTS)
    print("training a small CNN on 8x8 digits, unless its weights are here ...")
    network = digits.model()
    images, labels = digits.evaluation()
    deployment = gallery.deploy(
        network,
        digits.example_inputs(),
        digits.calibration(),
        images.numpy(),
        labels.numpy(),
        name=NAME,
        classes=list("0123456789"),
        board=options.board,
        out=options.out,
    )
    gallery.show(options, deployment, gallery.accuracies(deployment))
    found = deployment.outputs.argmax(1)
    gallery.plot(
        options,
        NAME,
        lambda figure: gallery.draw_confusion(
            figure.subplots(), labels.numpy(), found, list("0123456789"), "held-out digits"
        ),
        inches=(5.0, 4.4),
    )
    return 0 if deployment.result.bit_exact else 1


if __name__ == "__main__":
    sys.exit(main())
