# SPDX-License-Identifier: Apache-2.0
"""Every .tflite file of a folder: taken or refused, its bits beside TFLM's and LiteRT's, and what it costs on a board.

    python benchmarks/tflite.py [FOLDER] [--only TEXT ...] [--runs N] [--host] [--json FILE]
                                [--results NAME]

FOLDER is TINYET_TFLITE_DIR by default: a copy of the files that tensorflow/tflite-micro and mlcommons/tiny carry, say.
Inputs are drawn from all integers of their type (floats: from a normal distribution), the same for all. A runtime's
column says how many runs agree with the program on all integers; of floats, the largest difference in ulps of the
output's largest value. The board's columns are instructions of one inference as QEMU counts them on an emulated
Cortex-M4, each run compared with the host reference bit for bit, and the application's arena and flash.
"""

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks import record
from tinyet.errors import TinyetError
from tinyet.ir import Array, DType, Tensor
from tinyet.oracles import compare_runs
from tinyet.oracles.tflite import run_litert, run_tflm
from tinyet.program import Program
from tinyet.tflite import read_file

BOARD = "mps2_an386"


def drawn(tensor: Tensor, rng: np.random.Generator) -> Array:
    """Values of an input."""
    if tensor.dtype is DType.FLOAT32:
        return rng.standard_normal(tensor.shape).astype(np.float32)
    if tensor.dtype is DType.INT32:
        return np.zeros(tensor.shape, np.int32)
    low, high = tensor.dtype.range
    return rng.integers(low, high + 1, tensor.shape).astype(tensor.dtype.numpy)


def operators(path: Path) -> str:
    """The operators of a file and how many there are of each."""
    every = (op.custom or op.code for g in read_file(path).subgraphs for op in g.operators)
    return ", ".join(f"{count} {name}" if count > 1 else name for name, count in Counter(every).items())


def agreement(path: Path, oracle: Any, inputs: list[list[Array]], outputs: list[list[Array]]) -> str:
    """How a runtime's answers compare, in a word or two."""
    subgraph = read_file(path).subgraphs[0]
    kinds = [(subgraph.tensors[i].type, subgraph.tensors[i].shape) for i in subgraph.inputs]
    runs = [[x.reshape(s).astype(k) for x, (k, s) in zip(given, kinds, strict=True)] for given in inputs]
    try:
        # LiteRT's kernels write beyond a state of 8 bits: a process of its own may die of that.
        with ProcessPoolExecutor(1, get_context("fork")) as apart:
            answers = apart.submit(oracle, path, runs).result()
    except BrokenProcessPool:
        return "crashes"
    except (RuntimeError, ValueError, TinyetError) as error:
        return f"does not run: {str(error).splitlines()[0][:60]}"
    found = compare_runs("", answers, outputs)
    if found.ulps is not None:
        return f"{found.ulps:.0f} ulps"
    return "all" if found.agrees else f"{found.runs - found.differing} of {found.runs}"


def row(path: Path, runs: int, *, on_board: bool) -> dict[str, Any]:
    """Figures of one file. Raises SystemExit where the board computes anything else than the host."""
    figures: dict[str, Any] = {"operators": operators(path)}
    try:
        program: Program = tinyet.from_tflite(path)
    except TinyetError as error:
        return {**figures, "refused": str(error)}
    rng = np.random.default_rng(0)
    inputs = [[drawn(t, rng) for t in program.inputs] for _ in range(runs)]
    session = program.session()
    outputs = []
    for given in inputs:
        out = session.run(*given, as_float=False)
        outputs.append(out if isinstance(out, list) else [out])
    figures["tflm"] = agreement(path, run_tflm, inputs, outputs)
    figures["litert"] = agreement(path, run_litert, inputs, outputs)
    if on_board:
        with tempfile.TemporaryDirectory() as where:
            project = tinyet.generate(program, BOARD, Path(where) / "project", project="cmake")
            project.build()
            result = project.validate(*(np.stack(column) for column in zip(*inputs, strict=True)))
        if result.mismatches:
            sys.exit(f"{path}: the board differs from the host")
        figures |= {
            "instructions": result.count,
            "macs": result.macs,
            "arena": result.arena_bytes,
            "ram": result.ram_bytes,
            "flash": result.flash_bytes,
        }
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=os.environ.get("TINYET_TFLITE_DIR"))
    parser.add_argument("--only", nargs="*", default=[""])
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--host", action="store_true")
    parser.add_argument("--json", type=Path)
    record.add_option(parser)
    arguments = parser.parse_args()
    if arguments.folder is None:
        sys.exit("which folder of .tflite files? Give it, or set TINYET_TFLITE_DIR")
    folder = Path(arguments.folder)
    table: dict[str, dict[str, Any]] = {}
    print(f"{'file':44}{'TFLM':>10}{'LiteRT':>10}{'instructions':>14}{'arena':>9}{'flash':>9}", flush=True)
    for path in sorted(folder.rglob("*.tflite")):
        name = str(path.relative_to(folder))
        if not any(text in name for text in arguments.only):
            continue
        found = table[name] = row(path, arguments.runs, on_board=not arguments.host)
        short = name[-43:]
        if "refused" in found:
            print(f"{short:44}refused: {' '.join(found['refused'].split())[:160]}", flush=True)
            continue
        figures = "".join(
            f"{found.get(key, 0):>{n},}" for key, n in (("instructions", 14), ("arena", 9), ("flash", 9))
        )
        print(f"{short:44}{found['tflm']:>10}{found['litert']:>10}{figures}", flush=True)
    taken = [found for found in table.values() if "refused" not in found]
    print(f"{len(taken)} of {len(table)} files taken")
    record.write(arguments.results, table)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
