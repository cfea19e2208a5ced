# SPDX-License-Identifier: Apache-2.0
"""The delegate cmsis_nn on DS-CNN and ResNet8 of MLPerf Tiny: exactness, and instructions beside those of TFLM with
CMSIS-NN.

    python benchmarks/cmsis_nn.py [ds_cnn|resnet8 ...] [--board mps2_an386 ...] [--samples N] [--results NAME]

Needs what benchmarks/mlperf_tiny.py needs, and CMSIS-NN. The exit status is 1 where a result is not bit-exact, or where
the strongest build of TFLM with CMSIS-NN in the baselines takes fewer instructions.
"""

import argparse
import sys

from mlperf_tiny import DEFAULT_SAMPLES, load_models, run, strongest
from rich.console import Console
from rich.table import Table

from benchmarks import record
from tinyet.boards import load_board
from tinyet.delegates import CMSIS_NN

BOARDS = ("mps2_an386", "mps3_an547")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", choices=[*DEFAULT_SAMPLES, []], default=[])
    parser.add_argument("--board", action="append")
    parser.add_argument("--samples", type=int, default=20)
    record.add_option(parser)
    options = parser.parse_args()
    models, console = load_models(), Console(width=150)
    table = Table(title="tinyet with the delegate cmsis_nn beside TFLM with CMSIS-NN: executed instructions")
    for title in ("model", "board", "bit-exact", "arena", "instructions", "TFLM + CMSIS-NN", "its build"):
        table.add_column(
            title, justify="right" if title in ("arena", "instructions", "TFLM + CMSIS-NN") else "left"
        )
    passed, rows = True, []
    for name in options.models or list(DEFAULT_SAMPLES):
        for board in options.board or BOARDS:
            result, figures = run(models, name, board, options.samples, console, (CMSIS_NN,))
            rows.append(figures)
            count, theirs = result.instructions or 0, strongest(name, load_board(board).cpu)
            best = None if theirs is None else (theirs[0], int(str(theirs[1]["instructions"])))
            passed = passed and result.bit_exact and (best is None or count <= best[1])
            table.add_row(
                name,
                board,
                "yes" if result.bit_exact else "NO",
                f"{result.arena_bytes:,}",
                f"{count:,}",
                f"{best[1]:,}" if best else "",
                best[0] if best else "",
            )
    console.print(table)
    record.write(options.results, rows)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
