# SPDX-License-Identifier: Apache-2.0
"""How near small networks of unusual ranges stay to their float models in int8, beside plain PT2E.

    python benchmarks/networks.py [--only TEXT] [--worse] [--json FILE] [--results NAME]

Each network of `tests/networks` is quantized twice with the same calibration data, by `tinyet.compile` and by torchao's
own flow with every value observed by itself (`tests/networks/plain.py` says how exactly), and judged by the same
other data: the SQNR in dB against the float model, of the output that is furthest below plain PT2E. What is exact
counts as 60 dB. Ours are the integers that ship (`program.run`).

Fails when a network is more than 3 dB below plain PT2E, or does not compile.
"""

import argparse
import json
import sys
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.record import add_option, write
from tests.networks.measure import EXACT_DB, WORSE_DB, Result, measure
from tests.networks.suite import NETWORKS
from tinyet.errors import TinyetError


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="networks whose name or theme holds this")
    parser.add_argument("--worse", action="store_true", help="show only those that fail")
    parser.add_argument("--json", type=Path, default=None)
    add_option(parser)
    options = parser.parse_args()
    torch.set_num_threads(1)
    console = Console(width=110)
    table = Table("network", "theme", "plain", "tinyet", "difference", title="SQNR in dB")
    for column in table.columns[2:]:
        column.justify = "right"
    results: list[Result] = []
    failed = 0
    chosen = [n for n in NETWORKS if options.only in n.name or options.only in n.theme]
    for done, network in enumerate(chosen):
        if console.is_terminal:
            console.print(f"[dim]{done} of {len(chosen)}: {network.name}[/dim]", end="\r")
        try:
            result = measure(network)
        except TinyetError as error:
            failed += 1
            table.add_row(network.name, network.theme, "", "[red]refused", "")
            console.print(f"[red]{network.name}[/red]: {error}", highlight=False)
            continue
        results.append(result)
        if result.worse or not options.worse:
            text = f"{result.difference:+.1f}"
            table.add_row(
                network.name, network.theme, f"{result.plain_db:.1f}", f"{result.ours_db:.1f}",
                f"[red]{text}" if result.worse else text,
            )  # fmt: skip
    console.print(table)
    worse = [result for result in results if result.worse]
    console.print(
        f"{len(results)} networks, {len(worse)} of them more than {WORSE_DB:g} dB below plain PT2E"
        + (f", {failed} refused" if failed else "")
    )
    if results:
        least = min(results, key=lambda result: result.difference)
        mean = sum(result.difference for result in results) / len(results)
        console.print(f"worst {least.difference:+.1f} dB ({least.network.name}), mean {mean:+.1f} dB")
    rows = [
        {
            "name": r.network.name,
            "theme": r.network.theme,
            "plain_db": round(min(r.plain_db, EXACT_DB), 1),
            "ours_db": round(min(r.ours_db, EXACT_DB), 1),
        }
        for r in results
    ]
    write(options.results, rows)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 1 if worse or failed else 0


if __name__ == "__main__":
    sys.exit(main())
