# SPDX-License-Identifier: Apache-2.0
"""From training to proof in one run: train, quantize, generate, build, and run the whole held-out set on an
emulated board.

python examples/digits/demo.py [--board mps2_an386] [--out build/digits]
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent))

import model as digits

import tinyet
from tinyet.boards import load_board


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--board", default="mps2_an386")
    parser.add_argument("--out", default="build/digits")
    options = parser.parse_args()
    console = Console()
    board = load_board(options.board)

    console.print("training a small CNN on 8x8 digits ...")
    network = digits.model()
    images, labels = digits.evaluation()
    console.print("quantizing to int8 ...")
    program = tinyet.compile(
        network, digits.example_inputs(), calibration=digits.calibration(), name="digits"
    )
    console.print(f"generating C for {board.title} and building it with PlatformIO ...")
    project = tinyet.generate(program, board, options.out, sample=[images[0].numpy()])
    size = project.build()
    console.print(f"running {len(images)} held-out images in QEMU ...")
    result = project.validate(images.numpy(), labels=labels.numpy(), on="qemu")

    table = Table(title=f"digits on an emulated {board.title}", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    rows = [
        ("accuracy, float model", f"{result.float_accuracy:.2%}"),
        ("accuracy, int8 on the host", f"{result.host_accuracy:.2%}"),
        ("accuracy, int8 on the device", f"{result.accuracy:.2%}"),
        (
            "device = host, bit for bit",
            f"{result.bit_exact} ({result.samples} images, {result.mismatches} differ)",
        ),
        ("instructions per image", f"{result.instructions:,}"),
        ("multiply-accumulates", f"{result.macs:,}"),
        ("arena (all activations)", f"{result.arena_bytes:,} bytes"),
        ("stack", f"{result.stack_bytes:,} bytes"),
        ("flash (code and weights)", f"{size.flash:,} bytes"),
    ]
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print(f"\nThe generated C: {project.path}/lib/digits/src/digits.c")
    console.print(f"Every layer:     tinyet validate {project.path}")
    console.print("Your own model:  tinyet generate your_model.py --board BOARD   (tinyet boards lists them)")
    return 0 if result.bit_exact and np.isfinite(result.float_accuracy or 0.0) else 1


if __name__ == "__main__":
    sys.exit(main())
