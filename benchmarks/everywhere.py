# SPDX-License-Identifier: Apache-2.0
"""Models of the examples on every emulated board: whether they fit, whether the answers are the host's, what they cost.

    python benchmarks/everywhere.py [MODEL …] [--results NAME]

What `tinyet validate examples/MODEL/model.py --boards all-emulated --max-samples 1` shows. Fails where answers differ.
Instructions are executed ones, of the emulator; milliseconds an estimate.
"""

import argparse
import sys
from pathlib import Path

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.programs import show
from benchmarks.record import ROOT, add_option, write
from tinyet.opening import ModelOptions, read
from tinyet.survey.everywhere import ALL_EMULATED, boards_given, validate_on

MODELS = ("gesture", "anomaly", "digits", "keyword_spotting")


def measured(model: str) -> list[dict[str, object]]:
    """A record for each board."""
    opened = read(str(ROOT / "examples" / model / "model.py"), ModelOptions())
    rows: list[dict[str, object]] = []
    for board in boards_given(ALL_EMULATED):
        found = validate_on(opened.program, board, evaluation=opened.evaluation, max_samples=1)
        if found.verdict in ("NOT EXACT", "failed"):
            raise SystemExit(f"{model} on {board.name}: {found.verdict} {found.error}")
        result = found.result
        rows.append(
            {
                "board": found.board,
                "cpu": found.cpu,
                "verdict": found.verdict,
                "instructions": None if result is None else result.instructions,
                "milliseconds": found.milliseconds,
                "ram_bytes": None if result is None else result.ram_with_stack_bytes,
                "flash_bytes": None if result is None else result.flash_bytes,
            }
        )
    return rows


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def main() -> int:
    """Measure, print, and write what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL")
    add_option(parser)
    options = parser.parse_args()
    console, found = Console(), {}
    for model in options.models:
        found[model] = measured(model)
        heads = ("board", "core", "answers", "instructions", "est. ms", "RAM", "flash")
        rows = [[_shown(value) for value in row.values()] for row in found[model]]
        show(console, model, heads, rows, 3)
    write(options.results, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
