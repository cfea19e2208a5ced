# SPDX-License-Identifier: Apache-2.0
"""The vibration of a small motor, synthesised: healthy at any speed and load, or with one of four faults.

An accelerometer on its case gives 8000 samples a second; what the network sees is a spectrum in 64 bands.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

RATE = 8000
SAMPLES = 2048  # a quarter of a second
BANDS = 64
FLOOR = 1e-3  # added to a power, in g squared
FAULTS = ("bearing", "imbalance", "misalignment", "looseness")

Reals = npt.NDArray[np.float64]

# The case rings at these frequencies (Hz), whatever strikes it, and each ring fades within some time (s).
RESONANCES = ((640.0, 0.006, 1.0), (1450.0, 0.004, 0.7), (2900.0, 0.002, 0.5))


def _ring(impulses: Reals) -> Reals:
    """The case's answer to a row of impulses of the same length."""
    time = np.arange(400) / RATE
    answer = sum(a * np.exp(-time / fade) * np.sin(2 * np.pi * f * time) for f, fade, a in RESONANCES)
    return np.asarray(np.convolve(impulses, answer)[: len(impulses)])


def _impulses(rate: float, jitter: float, time: Reals, rng: np.random.Generator) -> Reals:
    """Impulses at `rate` a second, a little early or late each and not all as strong."""
    at = np.arange(rng.uniform(0, 1 / rate), time[-1], 1 / rate)
    at += rng.normal(0, jitter / rate, len(at))
    out = np.zeros(len(time))
    np.add.at(out, np.clip((at * RATE).astype(int), 0, len(out) - 1), rng.uniform(0.6, 1.4, len(at)))
    return out


def vibration(seed: int, fault: str | None = None, severity: float | None = None) -> Reals:
    """Acceleration (2048,) in g; the same for the same arguments. severity: 0 (none) to 1; drawn when not given."""
    rng = np.random.default_rng([seed, 0 if fault is None else 1 + FAULTS.index(fault)])
    time = np.arange(SAMPLES) / RATE
    shaft, load = rng.uniform(24.0, 29.0), rng.uniform(0.3, 1.0)
    severity = rng.uniform(0.35, 1.0) if severity is None else severity
    turn = 2 * np.pi * shaft * time + rng.uniform(0, 2 * np.pi)

    def harmonic(order: float, size: float) -> Reals:
        return np.asarray(size * rng.uniform(0.8, 1.25) * np.sin(order * turn + rng.uniform(0, 2 * np.pi)))

    sound = harmonic(1, 0.05) + harmonic(2, 0.02 + 0.01 * load) + harmonic(3, 0.01)
    # Gears mesh twenty-three times a turn, with sidebands; the coils hum at twice the mains.
    sound += harmonic(23, 0.03 + 0.05 * load) * (1 + 0.3 * np.sin(turn)) + harmonic(46, 0.02 * load)
    sound += rng.uniform(0.01, 0.02) * np.sin(2 * np.pi * 100 * time + rng.uniform(0, 2 * np.pi))
    sound += _ring(0.02 * (0.5 + load) * rng.standard_normal(SAMPLES))
    if fault == "bearing":  # a pit in the outer race, hit by each ball
        sound += _ring(0.5 * severity * _impulses(3.58 * shaft, 0.02, time, rng))
    elif fault == "imbalance":
        sound += harmonic(1, 0.25 * severity)
    elif fault == "misalignment":
        sound += harmonic(2, 0.25 * severity) + harmonic(4, 0.08 * severity)
    elif fault == "looseness":  # knocks once a turn, and the whole series of half orders
        sound += _ring(0.5 * severity * _impulses(shaft, 0.05, time, rng))
        sound += sum(harmonic(n / 2, 0.04 * severity) for n in range(1, 14, 2))
    return sound + 0.01 * rng.standard_normal(SAMPLES)


def _bands() -> list[slice]:
    """Bins of each band: single ones where the orders of the shaft are, wider ones further up, up to 4 kHz."""
    edges = np.unique(np.rint(np.geomspace(4, SAMPLES // 2 + 1, 3 * BANDS)).astype(int))
    while (
        len(edges) > BANDS + 1
    ):  # drop the edge between the two narrowest neighbours, relative to where they lie
        ratios = edges[2:] / edges[:-2]
        edges = np.delete(edges, 1 + int(ratios.argmin()))
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]


BINS = _bands()


def _logarithms(sounds: Reals) -> Reals:
    """Accelerations (n, 2048) to the logarithms (n, 64) of the power in each band."""
    power = np.abs(np.fft.rfft(sounds * np.hanning(SAMPLES))) ** 2
    return np.log(np.stack([power[:, bins].mean(1) for bins in BINS], axis=1) + FLOOR)


@cache
def scale() -> tuple[Reals, Reals]:
    """Mean and deviation (64,) of each band over 400 healthy motors: on a device, a table."""
    logarithms = _logarithms(np.stack([vibration(i) for i in range(400)]))
    return logarithms.mean(0), logarithms.std(0)


def features(sounds: Reals) -> npt.NDArray[np.float32]:
    """Accelerations (n, 2048) to features (n, 64): how far each band is from usual, in its own deviations."""
    mean, deviation = scale()
    return ((_logarithms(sounds) - mean) / deviation).astype(np.float32)


def healthy(count: int, seed: int) -> npt.NDArray[np.float32]:
    """Features (count, 64) of healthy motors."""
    return features(np.stack([vibration(seed + i) for i in range(count)]))


def faulty(each: int, seed: int) -> tuple[npt.NDArray[np.float32], list[str]]:
    """Features of `each` motors with every fault, in turn, and its names."""
    names = [fault for _ in range(each) for fault in FAULTS]
    return features(np.stack([vibration(seed + i, fault) for i, fault in enumerate(names)])), names


def wearing_out(count: int, seed: int) -> npt.NDArray[np.float32]:
    """Features (count, 64) of one bearing: good for two fifths of its life, then worse and worse."""
    severities = np.clip(np.linspace(-0.8, 1.2, count), 0, 1)
    return features(np.stack([vibration(seed + i, "bearing", float(s)) for i, s in enumerate(severities)]))
