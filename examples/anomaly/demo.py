# SPDX-License-Identifier: Apache-2.0
"""Faults of a motor, found by an autoencoder that has only seen healthy ones, on an emulated board.

python examples/anomaly/demo.py [--board mps2_an386] [--out build/anomaly] [--train] [--plot FILE]
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import gallery
import model as anomaly
import motor

from tinyet.numerics import quantize

NAME = "anomaly"
HEALTHY, EACH_FAULT, LIFE = 200, 40, 100
TICKS = (0.3, 0.5, 1, 2, 4)
# One healthy motor in a hundred may give a false alarm.
QUANTILE = 0.99


def roc_auc(healthy: np.ndarray, faulty: np.ndarray) -> float:
    """The share of pairs of a healthy and a faulty motor in which the faulty one has the larger score."""
    above = (faulty[:, None] > healthy).mean()
    return float(above + 0.5 * (faulty[:, None] == healthy).mean())


def draw(
    figure: Any, healthy: np.ndarray, faulty: dict[str, np.ndarray], life: np.ndarray, at: float
) -> None:
    """Histograms of the scores on the board, and a bearing's life."""
    histogram, line = figure.subplots(1, 2, width_ratios=(1.2, 1))
    every = np.concatenate([healthy, *faulty.values()])
    edges = np.geomspace(every.min() * 0.95, every.max() * 1.05, 36)
    histogram.hist(
        [healthy, *faulty.values()],
        bins=edges,
        stacked=True,
        histtype="stepfilled",
        color=["#b8c4d0", *gallery.COLORS[: len(faulty)]],
        label=["healthy", *faulty],
    )
    histogram.axvline(at, color="black", ls="--", lw=1)
    histogram.set(xscale="log", xlabel="reconstruction error on the board", ylabel="motors")
    histogram.set_xticks(TICKS, map(str, TICKS))
    histogram.minorticks_off()
    histogram.set_title(f"ROC AUC {roc_auc(healthy, np.concatenate(list(faulty.values()))):.3f}")
    histogram.legend(frameon=False, loc="upper right")
    hours = np.linspace(0, 100, len(life))
    alarms = life > at
    line.plot(hours, life, color="#8d99ae", lw=0.8)
    line.scatter(hours[~alarms], life[~alarms], s=8, color=gallery.COLORS[0])
    line.scatter(hours[alarms], life[alarms], s=8, color=gallery.COLORS[1])
    line.axhline(at, color="black", ls="--", lw=1)
    line.text(1, at, " threshold", va="bottom")
    line.axvspan(40, 100, color=gallery.COLORS[1], alpha=0.08, lw=0)
    line.set(yscale="log")
    line.set_yticks(TICKS, map(str, TICKS))
    line.minorticks_off()
    line.set(xlabel="life of a bearing, %", ylabel="reconstruction error", xlim=(0, 100))
    line.set_title("a bearing that begins to wear at 40 %")


def main() -> int:
    options = gallery.options(str(__doc__), NAME, anomaly.WEIGHTS)
    print("running the motors (with --train, training the autoencoder on healthy ones first) ...")
    network = anomaly.model()
    # The threshold is chosen on healthy motors that are neither trained on nor tested.
    chosen_on = motor.healthy(HEALTHY, 800_000)
    healthy = motor.healthy(HEALTHY, 900_000)
    faulty, names = motor.faulty(EACH_FAULT, 950_000)
    life = motor.wearing_out(LIFE, 970_000)
    samples = np.concatenate([chosen_on, healthy, faulty, life])
    deployment = gallery.deploy(
        network,
        anomaly.example_inputs(),
        anomaly.calibration(),
        samples,
        None,
        name=NAME,
        board=options.board,
        out=options.out,
    )
    # The board compares its output with the input that it has: in int8.
    seen = deployment.program.inputs[0]
    assert seen.type.quant is not None
    held = gallery.real([quantize(samples, seen.type)], seen)
    with torch.no_grad():
        outputs = network(torch.from_numpy(samples)).numpy()
    scores = {
        "float model": anomaly.scores(samples, outputs),
        "int8 on the host": anomaly.scores(held, deployment.host_outputs(samples)),
        "int8 on the device": anomaly.scores(held, deployment.outputs),
    }
    parts = {key: np.split(all_, np.cumsum([HEALTHY, HEALTHY, len(faulty)])) for key, all_ in scores.items()}
    rows = [(f"ROC AUC, {key}", f"{roc_auc(part[1], part[2]):.4f}") for key, part in parts.items()]
    first, good, bad, lifetime = parts["int8 on the device"]
    threshold = float(np.quantile(first, QUANTILE))
    by_fault = {fault: bad[np.array(names) == fault] for fault in motor.FAULTS}
    rows += [
        (f"threshold ({QUANTILE:.0%} of healthy motors)", f"{threshold:.3f}"),
        ("false alarms, other healthy motors", f"{(good > threshold).mean():.1%}"),
    ]
    rows += [(f"found: {fault}", f"{(part > threshold).mean():.1%}") for fault, part in by_fault.items()]
    gallery.show(options, deployment, rows)
    gallery.plot(
        options, NAME, lambda figure: draw(figure, good, by_fault, lifetime, threshold), inches=(9.0, 3.4)
    )
    return 0 if deployment.result.bit_exact else 1


if __name__ == "__main__":
    sys.exit(main())
