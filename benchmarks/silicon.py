# SPDX-License-Identifier: Apache-2.0
"""Estimates of cycles of the four networks of MLPerf Tiny beside what others have published, measured on chips.

    python benchmarks/silicon.py [FOLDER] [--board NAME ...] [--network kws|ic|vww|ad ...] [--results NAME]

FOLDER, TINYET_TFLITE_DIR by default, holds the networks as submitters get them, files of mlcommons/tiny:
kws_ref_model.tflite, pretrainedResnet_quant.tflite, vww_96_int8.tflite, ad01_int8.tflite. Without it, the networks are
those of benchmarks/programs.py: two trained ones, two with random weights. The published figures are read from
TINYET_SILICON (default ../shared/baselines/silicon.json), which names board, core, runtime and millions of cycles.

Each network is estimated on each board with the default kernels, for `balanced` and for `speed`, and with those of
CMSIS-NN alone where somebody has published CMSIS-NN on that board; the autoencoder, whose weights are read once each,
also with its weights in the RAM of a board whose flash waits, where they fit. A board's clock and flash are in its
file, in boards/ or benchmarks/boards/. What runs is compared bit for bit with the reference.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks import record
from benchmarks.programs import program_of
from benchmarks.tflite import drawn
from tinyet.boards import load_board
from tinyet.cycles.inference import cycle_model
from tinyet.delegates import CMSIS_NN, DEFAULT, Delegate
from tinyet.device.device import open_device
from tinyet.ir import Array
from tinyet.planning.objective import Optimize
from tinyet.program import Program
from tinyet.timing.cores import CORES
from tinyet.validation import sample_bytes, validate

SECONDS = 600.0
"""That a run in QEMU may take."""

ROOT = Path(__file__).resolve().parent.parent

NETWORKS: Mapping[str, tuple[str, str]] = {
    "kws": ("kws_ref_model", "ds_cnn"),
    "ic": ("pretrainedResnet_quant", "resnet8"),
    "vww": ("vww_96_int8", "mobilenet_v1"),
    "ad": ("ad01_int8", "autoencoder"),
}
"""Of MLPerf Tiny: the file, and the network of benchmarks/programs.py that is the same or has the same layers."""

BOARDS: Mapping[str, str] = {
    "NUCLEO-L4R5ZI": "nucleo_l4r5zi",
    "NUCLEO-U575ZI-Q": "nucleo_u575zi_q",
    "B-U585I-IOT02A": "nucleo_u575zi_q",
    "NUCLEO-H7A3ZI-Q": "nucleo_h7a3zi_q",
    "NUCLEO-H7A3ZI": "nucleo_h7a3zi_q",
    "DISCO-F746NG": "disco_f746ng",
    "NUCLEO-G0B1RE": "nucleo_g0b1re",
    "EK-RA8D1": "ek_ra8d1",
}
"""Published board → the board that is estimated for it: itself, or one with the same chip family at the same clock."""

IN_RAM = "speed, weights in RAM"
VARIANTS: Mapping[str, tuple[Optimize, tuple[Delegate, ...]]] = {
    "balanced": ("balanced", tuple(DEFAULT)),
    "speed": ("speed", tuple(DEFAULT)),
    "cmsis_nn": ("balanced", (CMSIS_NN,)),
    IN_RAM: ("speed", tuple(DEFAULT)),
}
PLACED = ("ad",)
"""Networks whose weights are placed in RAM, too."""


def load_published() -> list[dict[str, Any]]:
    """The published figures; ends the program where there are none."""
    place = Path(os.environ.get("TINYET_SILICON", ROOT / "../shared/baselines/silicon.json"))
    if not place.is_file():
        sys.exit(f"no published figures at {place}: set TINYET_SILICON")
    entries: list[dict[str, Any]] = json.loads(place.read_text(encoding="utf-8"))["entries"]
    return entries


def load_network(name: str, folder: Path | None) -> tuple[Program, list[Array]]:
    """A network and one sample of each input."""
    file, same = NETWORKS[name]
    if folder is None:
        program, data = program_of(same, 1)
        return program, [data.numpy()]
    program = tinyet.from_tflite(folder / f"{file}.tflite")
    rng = np.random.default_rng(0)
    return program, [drawn(tensor, rng)[np.newaxis] for tensor in program.inputs]


def board_of(entry: Mapping[str, Any]) -> str | Path | None:
    """The board to estimate for an entry, a name or a file; None, with a line that says so, where its core has no
    model."""
    name = BOARDS.get(entry["board"])
    if name is None:
        print(f"{entry['board']}: no board file, left out", flush=True)
        return None
    own = ROOT / "benchmarks" / "boards" / f"{name}.toml"
    place = own if own.is_file() else name
    board = load_board(place)
    if board.clock_hz != entry["mhz"] * 1_000_000:
        sys.exit(f"{entry['board']} was measured at {entry['mhz']} MHz, and {name} has {board.clock_hz} Hz")
    if board.core != entry["core"] or entry["core"] not in CORES:
        print(
            f"{entry['board']}: there is no model of {entry['core']} for {board.core}, left out", flush=True
        )
        return None
    return place


def estimate(program: Program, sample: list[Array], board: str | Path, variant: str) -> dict[str, Any]:
    """One row. Ends the program where what runs differs from the reference."""
    optimize, delegates = VARIANTS[variant]
    with tempfile.TemporaryDirectory(prefix="tinyet-silicon-") as where:
        folder = Path(where)
        project = tinyet.generate(
            program,
            board,
            folder / "project",
            kind="arduino",
            optimize=optimize,
            delegates=delegates,
            place={"weights": "auto"} if variant == IN_RAM else None,
        )
        # In QEMU alone: this machine's sanitizers refuse CMSIS-NN's shifts of negative numbers.
        model = cycle_model(project.board, folder)
        elf = project.firmware_for(model.machine, folder)
        samples = project.samples(sample)
        with open_device(model.machine, elf, "qemu", timeout=SECONDS) as device:
            ran = validate(
                program,
                project.deployment,
                device,
                samples,
                on="qemu",
                board=model.machine.name,
                sizes=project.sizes,
                sqnr_samples=0,
            )
        raw = sample_bytes(project.deployment, samples)
        found = model.estimate(elf, raw, folder, timeout=SECONDS, order=project.deployment.order)
    if not ran.bit_exact:
        sys.exit(f"{program.name} on {board}, {variant}: the result differs from the reference")
    return {
        "board": project.board.name,
        "core": found.model,
        "clock_hz": found.clock_hz,
        "variant": variant,
        "cycles": found.cycles,
        # Of a core whose source leaves nothing open both are the estimate.
        "cycles_at_least": (found.ends or (found.cycles,))[0],
        "cycles_at_most": (found.ends or (found.cycles,))[-1],
        "wait_cycles": found.whole.wait_cycles,
        "instructions": found.whole.instructions,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=os.environ.get("TINYET_TFLITE_DIR"))
    parser.add_argument("--board", action="append", choices=sorted(set(BOARDS.values())))
    parser.add_argument("--network", action="append", choices=[*NETWORKS])
    record.add_option(parser)
    options = parser.parse_args()
    torch.set_num_threads(1)
    folder = None if options.folder is None else Path(options.folder)
    published, variants = [], dict[str | Path, set[str]]()
    for entry in load_published():
        board = board_of(entry)
        name = BOARDS.get(entry["board"])
        if board is None or name not in (options.board or BOARDS.values()):
            continue
        published.append({**entry, "estimated": name})
        chosen = variants.setdefault(board, {"balanced", "speed"})
        if "CMSIS-NN" in entry["runtime"]:
            chosen.add("cmsis_nn")
    rows = []
    for network in options.network or NETWORKS:
        program, sample = load_network(network, folder)
        for board, chosen in variants.items():
            flash = load_board(board).target.flash
            placed = {IN_RAM} if network in PLACED and flash is not None and flash.wait_states else set()
            for variant in sorted(chosen | placed):
                rows.append({"network": network, **estimate(program, sample, board, variant)})
                print(rows[-1], flush=True)
    record.write(
        options.results,
        {"files": folder is not None, "estimates": rows, "published": published},
    )


if __name__ == "__main__":
    main()
