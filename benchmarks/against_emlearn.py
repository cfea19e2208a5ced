# SPDX-License-Identifier: Apache-2.0
"""The same forests by emlearn (PyPI) and by tinyet: bytes and instructions on emulated boards, and whose answers are
scikit-learn's.

    python benchmarks/against_emlearn.py [--board mps2_an386 --board microbit] [--results NAME]

Features are int16. emlearn 0.23 asks `feature < threshold` with thresholds that are cut to integers, where scikit-learn
asks `feature <= threshold`: between two integers that is another question (x <= 4.5 becomes x < 4). Features that are
even integers have odd thresholds, for which both mean the same; "even" is of those, "plain" of the integers as they
are. emlearn's inline trees vote for one class each, scikit-learn's and ours add the fractions of their leaves: the rest
of the difference. Flash is what a firmware has more than one whose model answers 0. Skips, by name, where emlearn is
not installed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets, ensemble

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks import record
from tinyet.boards import Board, load_board
from tinyet.boards.cpus import Target
from tinyet.build.gcc import build_firmware
from tinyet.build.size import measure
from tinyet.delegates import DEFAULT, Delegate
from tinyet.deployment import deploy
from tinyet.device.device import open_device
from tinyet.emit.facts import ModelFacts, TensorFacts
from tinyet.emit.model import model_files
from tinyet.emit.project import project_files
from tinyet.ir import DType, Graph, Node, QuantParams, Tensor, TensorType, constant
from tinyet.ops.tree_ensemble import TreeEnsemble
from tinyet.opset import Call, Definition, InputArg, Kernel, OutputArg
from tinyet.planning.objective import Objective

Figures = dict[str, Any]
ROWS = 100
"""Samples that each firmware computes."""

FORESTS: Mapping[str, Callable[[], Any]] = {
    "random forest, 10 trees to depth 6": lambda: ensemble.RandomForestClassifier(
        10, max_depth=6, random_state=0
    ),
    "extra trees, 20 to depth 8": lambda: ensemble.ExtraTreesClassifier(20, max_depth=8, random_state=0),
}


def answering(body: str, text: str) -> Delegate:
    """A delegate that computes trees by C of its own: `body` sets output[0], `text` is a header with what it calls."""

    def lower(_node: Node, _target: Target) -> Call:
        function = Definition(
            "other", "TINYET_FUNCTION void", ("const int16_t *input", "int32_t *output"), (f"  {body}",)
        )
        return Call(function, (InputArg(0), OutputArg(0)))

    kernel = Kernel(
        "other", "s16_s32", lower, ("other.h",), (), texts={"other.h": text}, no_cost_model="not planned"
    )
    return Delegate("other", {TreeEnsemble: (kernel,)})


def one_answer(features: int) -> Graph:
    """A node that takes a row and gives one number, for C of another tool."""
    x = Tensor("x", TensorType((1, features), DType.INT16, QuantParams.per_tensor(1.0, 0)))
    arrays = [
        np.zeros(1, np.int32), np.zeros(1, np.int16), np.array([[~0, ~0]], np.int32), np.zeros(1, np.int32),
        np.zeros((1, 1), np.int16), np.zeros(1, np.int32), np.zeros(1, np.int32),
    ]  # fmt: skip
    held = [constant(f"c{i}", array) for i, array in enumerate(arrays)]
    y = Tensor("y", TensorType((1, 1), DType.INT32))
    return Graph("layers", (x,), (y,), (Node(TreeEnsemble(), (x, *held), (y,)),))


def measured(
    graph: Graph, rows: Any, board: Board, delegates: Sequence[Delegate], objective: Objective | None = None
) -> tuple[Any, float, int]:
    """Answers, instructions of the model a row on average, and flash of the whole firmware."""
    deployment = deploy(graph, board.target, delegates, objective=objective)
    files = model_files(deployment, graph.name, ["layers"])

    def facts(t: Tensor) -> TensorFacts:
        return TensorFacts(t.name, t.dtype, t.shape, t.type.bytes, deployment.plan.offset(t), None, None)

    tensors = tuple(map(facts, graph.inputs)), tuple(map(facts, graph.outputs))
    arena, steps = deployment.plan.arena_bytes, len(deployment.steps)
    raw = (rows[0].tobytes(),)
    described = ModelFacts(graph.name, graph.name.upper(), "0" * 64, arena, steps, *tensors, raw)
    description = project_files("platformio", board, described, files)["harness/model_desc.c"]
    with tempfile.TemporaryDirectory(prefix="tinyet-emlearn-") as where:
        folder = Path(where)
        for name, text in {**files, "model_desc.c": description}.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        sources = sorted(folder.rglob("*.c"))
        elf = build_firmware(board, sources, [folder], folder / "build", flags=("-O2", "-g1"))
        flash = measure(elf).flash
        with open_device(board, elf, "qemu") as device:
            runs = [device.run([row.tobytes()]) for row in rows]
    answers = [int(np.frombuffer(run.outputs[0], np.int32)[0]) for run in runs]
    return np.array(answers), sum(sum(run.layer_counts) for run in runs) / len(runs), flash


def own(forest: Any, rows: Any, board: Board, optimize: str) -> tuple[Any, float, int]:
    program = tinyet.from_sklearn(forest, input_dtype="int16", leaf_dtype="int16", name="layers")
    return measured(program.graph, rows, board, DEFAULT, Objective(optimize))  # type: ignore[arg-type]


def others(forest: Any, rows: Any, board: Board) -> tuple[Any, float, int]:
    import emlearn

    # It compiles its trees for the host, too, in tmp/ of where it runs.
    with tempfile.TemporaryDirectory(prefix="tinyet-emlearn-") as where, contextlib.chdir(where):
        text = emlearn.convert(forest, method="inline", dtype="int16_t").save(
            name="other", format="c", include_proba=False
        )
    count = rows.shape[1]
    # Functions of a header are the file's own; it is included once.
    text = "#pragma once\n" + text.replace("int32_t other_predict(", "static inline int32_t other_predict(")
    return measured(
        one_answer(count), rows, board, [answering(f"output[0] = other_predict(input, {count});", text)]
    )


def compared(title: str, make: Callable[[], Any], boards: Sequence[Board]) -> list[Figures]:
    x, y = datasets.load_digits(return_X_y=True)
    found = []
    for kind, factor in (("plain", 1), ("even", 2)):
        rows = np.rint(x * factor).astype(np.int16)
        forest = make().fit(rows[:900], y[:900])
        some, right = rows[900 : 900 + ROWS], forest.predict(rows[900 : 900 + ROWS])
        for board in boards:
            nothing = answering("(void)input;\n  output[0] = 0;", "")
            empty = measured(one_answer(x.shape[1]), some[:1], board, [nothing])
            ways = {
                "emlearn, inline": lambda b=board, f=forest, s=some: others(f, s, b),
                "tinyet, size": lambda b=board, f=forest, s=some: own(f, s, b, "size"),
                "tinyet, speed": lambda b=board, f=forest, s=some: own(f, s, b, "speed"),
            }
            for way, run in ways.items():
                answers, instructions, flash = run()
                found.append(
                    {
                        "forest": title,
                        "features": kind,
                        "board": board.name,
                        "way": way,
                        "same": int((answers == right).sum()),
                        "rows": ROWS,
                        "instructions": round(instructions),
                        "flash": flash - empty[2],
                    }
                )
                sys.stdout.write(f"{found[-1]}\n")
                sys.stdout.flush()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--board", action="append")
    record.add_option(parser)
    options = parser.parse_args()
    if importlib.util.find_spec("emlearn") is None:
        sys.stdout.write("skipped: emlearn is not installed\n")
        return
    boards = [load_board(name) for name in options.board or ("mps2_an386", "microbit")]
    rows = [row for title, make in FORESTS.items() for row in compared(title, make, boards)]
    record.write(options.results, rows)


if __name__ == "__main__":
    main()
