# SPDX-License-Identifier: Apache-2.0
"""Classical models: how often a program's answers are scikit-learn's, of 20 data sets and 8 estimators.

    python benchmarks/trees.py agreement [--board mps2_an386]
    python benchmarks/trees.py programs

Data sets come with scikit-learn or are made by it; each estimator is fitted on one half and compared on the other,
whose numbers are float32. `programs` are those of benchmarks/classical_programs.py, on a Cortex-M0, a Cortex-M4, a
RISC-V core and an AVR, of which the last counts cycles.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import base, datasets, ensemble, linear_model, neural_network, pipeline, preprocessing, svm, tree

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks import record
from benchmarks.classical_programs import DEMONSTRATIONS
from tests.emulated.avr import run_on_avr
from tinyet.boards import load_board
from tinyet.data import Data, prepare_inputs
from tinyet.deployment import deploy
from tinyet.opset.cost import constant_bytes
from tinyet.survey.everywhere import validate_on

Samples = tuple[Any, Any]
Figures = dict[str, Any]


def made(function: Callable[..., Samples], **options: Any) -> Callable[[], Samples]:
    return partial(function, **options, random_state=0)


AVR = "atmega1284p"
COUNT = 1000
DATA: Mapping[str, Callable[[], Samples]] = {
    "iris": partial(datasets.load_iris, return_X_y=True),
    "wine": partial(datasets.load_wine, return_X_y=True),
    "breast_cancer": partial(datasets.load_breast_cancer, return_X_y=True),
    "digits": partial(datasets.load_digits, return_X_y=True),
    "moons": made(datasets.make_moons, n_samples=COUNT, noise=0.3),
    "circles": made(datasets.make_circles, n_samples=COUNT, noise=0.15, factor=0.5),
    "hastie": made(datasets.make_hastie_10_2, n_samples=COUNT),
    **{
        f"blobs_{classes}": made(
            datasets.make_blobs, n_samples=COUNT, centers=classes, n_features=classes, cluster_std=3.0
        )
        for classes in (2, 5, 10)
    },
    **{
        f"quantiles_{classes}": made(
            datasets.make_gaussian_quantiles, n_samples=COUNT, n_features=6, n_classes=classes
        )
        for classes in (2, 4, 8)
    },
    **{
        f"classification_{width}_{classes}": made(
            datasets.make_classification,
            n_samples=COUNT,
            n_features=width,
            n_informative=width // 2,
            n_classes=classes,
            flip_y=0.05,
        )
        for width, classes in ((8, 2), (8, 3), (16, 2), (16, 4), (32, 5), (64, 2), (64, 8))
    },
}

ESTIMATORS: Mapping[str, Any] = {
    "decision tree": tree.DecisionTreeClassifier(random_state=0),
    "random forest": ensemble.RandomForestClassifier(20, random_state=0),
    "extra trees": ensemble.ExtraTreesClassifier(20, max_depth=8, random_state=0),
    "gradient boosting": ensemble.GradientBoostingClassifier(n_estimators=20, random_state=0),
    "histogram gradient boosting": ensemble.HistGradientBoostingClassifier(max_iter=20),
    "scaler, logistic regression": pipeline.make_pipeline(
        preprocessing.StandardScaler(), linear_model.LogisticRegression(max_iter=1000)
    ),
    "scaler, support vectors (RBF)": pipeline.make_pipeline(preprocessing.StandardScaler(), svm.SVC()),
    "scaler, MLP": pipeline.make_pipeline(
        preprocessing.StandardScaler(), neural_network.MLPClassifier((32,), max_iter=200, random_state=0)
    ),
}

OF_TREES = tuple(ESTIMATORS)[:5]
"""Whose leaves may be int16, too."""


def halves(name: str) -> tuple[Samples, Samples]:
    """Samples to fit and to compare on."""
    x, y = DATA[name]()
    x, y = np.asarray(x, np.float32), np.asarray(y)
    order = np.random.default_rng(0).permutation(len(x))
    first, second = order[: len(x) // 2], order[len(x) // 2 :]
    return (x[first], y[first]), (x[second], y[second])


def planned(program: tinyet.Program, board: str) -> Figures:
    """Bytes of trees, weights and parameters, and of what is printed as code, and instructions of a row: as planned."""
    target = load_board(board).target
    deployment = deploy(program.graph, target)
    costs = [deployment.decision.chosen[step.node].cost for step in deployment.steps]
    return {
        "bytes": sum(constant_bytes(step.call, target) for step in deployment.steps),
        "code": sum(0 if cost is None else cost.code for cost in costs),
        "instructions": None
        if None in costs
        else sum(cost.instructions for cost in costs if cost is not None),
        "kernel": deployment.steps[0].call.kernel,
    }


def agreement(board: str) -> list[Figures]:
    rows = []
    for title, estimator in ESTIMATORS.items():
        for name in DATA:
            (x, y), (unseen, labels) = halves(name)
            fitted = base.clone(estimator).fit(x, y)
            own = fitted.predict(unseen)
            program = tinyet.from_sklearn(fitted)
            answers = answers_of(program, fitted, unseen)
            rows.append(
                {
                    "estimator": title,
                    "data": name,
                    "samples": len(unseen),
                    "accuracy_sklearn": float((own == labels).mean()),
                    "accuracy": float((answers == labels).mean()),
                    "same": int((answers == own).sum()),
                    **planned(program, board),
                }
            )
            if title in OF_TREES:
                fixed = tinyet.from_sklearn(fitted, leaf_dtype="int16")
                rows[-1]["same_int16"] = int((answers_of(fixed, fitted, unseen) == own).sum())
                rows[-1] |= {f"{name}_int16": value for name, value in planned(fixed, board).items()}
            sys.stdout.write(f"{rows[-1]}\n")
    return rows


def answers_of(program: tinyet.Program, fitted: Any, rows: Any) -> Any:
    return fitted.classes_[program.evaluate(rows, by="numpy").outputs[0][:, 0]]


SAMPLES = 8
"""Of a program, on each board."""


def programs() -> list[Figures]:
    rows: list[Figures] = []
    for title, make in DEMONSTRATIONS.items():
        made = make()
        some = made.samples[:: max(len(made.samples) // SAMPLES, 1)][:SAMPLES]
        head = {"program": title, "samples": len(made.labels), "own": made.own, "accuracy": made.accuracy()}
        for name in ("microbit", "mps2_an386", "riscv32_virt"):
            found = validate_on(made.program, load_board(name), evaluation=Data((some,)))
            assert found.result is not None, found.error
            result = found.result
            rows.append(
                head
                | {
                    "board": name,
                    "exact": found.verdict == "exact",
                    "instructions": result.count,
                    "ram": result.ram_bytes,
                    "flash": result.flash_bytes,
                }
            )
            sys.stdout.write(f"{rows[-1]}\n")
        inputs = prepare_inputs(made.program.inputs, [some[-1]])
        run = run_on_avr(made.program.graph, inputs, AVR)
        wanted = b"".join(x.tobytes() for x in made.program.outputs_for(inputs))
        arena = run.deployment.plan.arena_bytes
        rows.append(
            head
            | {
                "board": AVR,
                "exact": run.outputs == wanted,
                "cycles": run.cycles,
                "ram": arena + run.data,
                "flash": run.text,
            }
        )
        sys.stdout.write(f"{rows[-1]}\n")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("agreement", "programs"))
    parser.add_argument("--board", default="mps2_an386")
    record.add_option(parser)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = agreement(options.board) if options.what == "agreement" else programs()
    record.write(options.results, rows)


if __name__ == "__main__":
    main()
