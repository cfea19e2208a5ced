# SPDX-License-Identifier: Apache-2.0
"""An electrocardiogram as a converter of 12 bits gives it, synthesised: 125 samples a second, five seconds.

Each beat is a sum of bell curves, one a wave (McSharry et al., "A dynamical model for generating synthetic
electrocardiogram signals", 2003, has their places and widths). Every recording is made anew: rate, size and shape of
the waves, the breath in the baseline, the muscles' and the mains' noise. It teaches a network nothing about patients.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

RATE = 125
WINDOW = 5 * RATE
CLASSES = ("regular", "fibrillation", "extra beats", "loose electrode")
MIDDLE, COUNTS_A_MILLIVOLT = 2048, 400

Reals = npt.NDArray[np.float64]

# Of each wave its place (s from the R wave, at a beat a second), its width (s), its size (mV).
WAVES = {
    "P": (-0.20, 0.025, 0.12),
    "Q": (-0.03, 0.010, -0.10),
    "R": (0.0, 0.011, 1.0),
    "S": (0.03, 0.010, -0.20),
    "T": (0.28, 0.045, 0.25),
}
EXTRA = {"R": (0.0, 0.030, 1.1), "S": (0.07, 0.030, -0.4), "T": (0.30, 0.060, -0.2)}
"""A beat that begins in the ventricle: wide, without a P wave, its T wave the other way round."""


def _beat(time: Reals, at: float, stretch: float, shape: dict[str, tuple[float, float, float]]) -> Reals:
    out = np.zeros(len(time))
    for name, (place, width, size) in shape.items():
        moved = place * (stretch if name in "PT" else 1.0)
        out += size * np.exp(-0.5 * ((time - at - moved) / width) ** 2)
    return out


def _shape(rng: np.random.Generator) -> dict[str, tuple[float, float, float]]:
    """A person's own waves."""
    return {
        name: (place * rng.uniform(0.9, 1.1), width * rng.uniform(0.85, 1.2), size * rng.uniform(0.6, 1.4))
        for name, (place, width, size) in WAVES.items()
    }


def recording(seed: int, kind: str) -> npt.NDArray[np.uint16]:
    """(625,) counts of the converter; the same for the same arguments."""
    rng = np.random.default_rng([seed, CLASSES.index(kind)])
    time = np.arange(WINDOW) / RATE
    usual, shape = 60.0 / rng.uniform(55, 110), _shape(rng)
    irregular = rng.uniform(0.07, 0.25) if kind == "fibrillation" else rng.uniform(0.01, 0.07)
    signal = np.zeros(WINDOW)
    if kind == "fibrillation":
        # The atria tremble: no P wave, but waves of four to seven a second.
        shape["P"] = (-0.2, 0.02, 0.0)
        tremble = 2 * np.pi * rng.uniform(4, 7) * time + np.cumsum(rng.normal(0, 0.15, WINDOW))
        signal += rng.uniform(0.01, 0.07) * np.sin(tremble)
    at, beats = -rng.uniform(0, usual), 0
    extras = rng.permutation(4)[: rng.integers(1, 3)] + 1
    while at < time[-1] + 1:
        stretch = np.sqrt(usual)
        signal += _beat(time, at, stretch, shape)
        pause = usual * float(np.clip(1 + rng.normal(0, irregular), 0.5, 1.8))
        if kind == "extra beats" and beats in extras:
            extra = {n: (p, w, s * rng.uniform(0.8, 1.2)) for n, (p, w, s) in EXTRA.items()}
            signal += _beat(time, at + usual * rng.uniform(0.5, 0.7), stretch, extra)
            pause = usual * 2
        at += pause
        beats += 1
    noise = rng.uniform(0.02, 0.15)
    if kind == "loose electrode":
        signal *= rng.uniform(0.0, 0.8)
        noise = rng.uniform(0.12, 0.5)
        for _ in range(rng.integers(1, 5)):
            since = time - rng.uniform(0, 5)
            signal += np.where(since > 0, rng.normal(0, 1.0) * np.exp(-np.abs(since) / 0.5), 0.0)
    signal += rng.uniform(0.05, 0.3) * np.sin(2 * np.pi * rng.uniform(0.15, 0.4) * time + rng.uniform(0, 6))
    signal += rng.uniform(0.0, 0.1) * np.sin(2 * np.pi * 50 * time + rng.uniform(0, 6))
    signal += noise * rng.standard_normal(WINDOW) + rng.uniform(-0.5, 0.5)
    counts = np.clip(np.rint(MIDDLE + COUNTS_A_MILLIVOLT * signal), 0, 4095)
    return np.asarray(counts, np.uint16)


def recordings(each: int, seed: int) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64]]:
    """(4 * each, 625) counts, the classes in turn, and their numbers."""
    kinds = [number for _ in range(each) for number in range(len(CLASSES))]
    made = [recording(seed + i, CLASSES[number]) for i, number in enumerate(kinds)]
    return np.stack(made), np.array(kinds)
