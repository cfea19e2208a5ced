# SPDX-License-Identifier: Apache-2.0
"""What an accelerometer in a hand measures, synthesised: 100 samples a second of three axes, raw int16 of +-4 g.

Every gesture is made anew: how it is held, which way it goes, how fast and how strong it is, when it begins, how the
hand trembles, and the sensor's noise and offset.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

RATE = 100
WINDOW = 128
CLASSES = ("still", "tap", "shake", "flick", "circle")
COUNTS_A_G = 8192

Reals = npt.NDArray[np.float64]
Raw = npt.NDArray[np.int16]


def _rotation(rng: np.random.Generator) -> Reals:
    """How the device is held, (3, 3): any way round, tilted by up to 40 degrees."""
    turn, lean, towards = rng.uniform(0, 2 * np.pi), rng.uniform(0, np.radians(40)), rng.uniform(0, 2 * np.pi)
    axis = np.array([np.cos(towards), np.sin(towards), 0.0])
    cross = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    tilt = np.eye(3) + np.sin(lean) * cross + (1 - np.cos(lean)) * cross @ cross
    c, s = np.cos(turn), np.sin(turn)
    return np.asarray(tilt @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]))


def _direction(rng: np.random.Generator, upright: float) -> Reals:
    """A unit vector; `upright` makes it likelier to point up or down."""
    vector = rng.standard_normal(3) * np.array([1.0, 1.0, upright])
    return np.asarray(vector / np.linalg.norm(vector))


def _bump(time: Reals, begin: float, end: float) -> Reals:
    """From 0 to 1 and back, smoothly, between two times."""
    inside = np.clip((time - begin) / (end - begin), 0, 1)
    return np.asarray(np.sin(np.pi * inside) ** 2)


def _tap(time: Reals, rng: np.random.Generator) -> Reals:
    """One hit, or two: the case rings for a moment."""
    along = _direction(rng, upright=2.0)
    out = np.zeros((3, len(time)))
    at = rng.uniform(0.15, 0.75)
    for _ in range(rng.integers(1, 3)):
        after = time - at
        ring = np.exp(-after / rng.uniform(0.015, 0.04)) * np.cos(2 * np.pi * rng.uniform(18, 40) * after)
        out += np.outer(along, rng.uniform(0.3, 2.0) * np.where(after >= 0, ring, 0))
        at += rng.uniform(0.15, 0.35)
    return out


def _shake(time: Reals, rng: np.random.Generator) -> Reals:
    """To and fro, two to six times a second."""
    phase = 2 * np.pi * rng.uniform(2.2, 6.0) * time + rng.uniform(0, 2 * np.pi)
    wave = np.sin(phase) + rng.uniform(0, 0.25) * np.sin(2 * phase + rng.uniform(0, 2 * np.pi))
    begin = rng.uniform(-0.1, 0.3)
    return np.outer(_direction(rng, 0.6), rng.uniform(0.35, 1.8) * wave * _plateau(time, begin, rng))


def _flick(time: Reals, rng: np.random.Generator) -> Reals:
    """One quick swing: speeding up, and harder, stopping."""
    begin, length = rng.uniform(0.1, 0.8), rng.uniform(0.16, 0.45)
    middle = begin + length * rng.uniform(0.45, 0.6)
    swing = _bump(time, begin, middle) - rng.uniform(0.8, 1.6) * _bump(time, middle, begin + length)
    sideways = _bump(time, begin, begin + length)
    return rng.uniform(0.45, 1.8) * (
        np.outer(_direction(rng, 0.6), swing) + np.outer(_direction(rng, 1.0), rng.uniform(0, 0.4) * sideways)
    )


def _circle(time: Reals, rng: np.random.Generator) -> Reals:
    """Round and round in some plane, a little oval."""
    first, other = _direction(rng, 0.7), _direction(rng, 0.7)
    second = np.cross(first, other)
    second /= np.linalg.norm(second)
    phase = 2 * np.pi * rng.uniform(0.9, 2.8) * time + rng.uniform(0, 2 * np.pi)
    size = rng.uniform(0.25, 0.9) * _plateau(time, rng.uniform(-0.3, 0.1), rng)
    return np.outer(first, size * np.cos(phase)) + np.outer(
        second, rng.uniform(0.7, 1) * size * np.sin(phase)
    )


def _plateau(time: Reals, begin: float, rng: np.random.Generator) -> Reals:
    """0, then 1 for at least most of a second, then 0 again; soft edges."""
    end = begin + rng.uniform(0.9, 1.6)
    return np.asarray(np.clip((time - begin) / 0.12, 0, 1) * np.clip((end - time) / 0.12, 0, 1))


def _sway(time: Reals, rng: np.random.Generator) -> Reals:
    """What is no gesture: whoever holds it turns or walks."""
    phase = 2 * np.pi * rng.uniform(0.5, 3.0) * time + rng.uniform(0, 2 * np.pi)
    return np.outer(_direction(rng, 1.0), rng.uniform(0, 0.2) * np.sin(phase))


_GESTURES = {"tap": _tap, "shake": _shake, "flick": _flick, "circle": _circle}


def _measured(moved: Reals, time: Reals, rng: np.random.Generator) -> Raw:
    """Raw samples of a movement (3, n) in g: with gravity, in the sensor's axes, and with all that is no gesture."""
    tremor = np.cumsum(rng.standard_normal(moved.shape), axis=1)
    tremor = (tremor - tremor.mean(1, keepdims=True)) * rng.uniform(0.001, 0.006)
    held = _rotation(rng).T @ (np.array([[0.0], [0.0], [1.0]]) + moved + tremor + _sway(time, rng))
    noise = rng.normal(0, 0.02, (3, 1)) + rng.uniform(0.004, 0.02) * rng.standard_normal(held.shape)
    return np.clip(np.rint((held + noise) * COUNTS_A_G), -32768, 32767).astype(np.int16)


def _moved(label: int, time: Reals, rng: np.random.Generator) -> Reals:
    gesture = _GESTURES.get(CLASSES[label])
    return np.zeros((3, len(time))) if gesture is None else gesture(time, rng)


def perform(label: int, seed: int) -> Raw:
    """A window (3, 128) of the gesture `label`; the same for the same seed."""
    rng = np.random.default_rng([label, seed])
    time = np.arange(WINDOW) / RATE
    return _measured(_moved(label, time, rng), time, rng)


def windows(each: int, seed: int) -> tuple[Raw, npt.NDArray[np.int64]]:
    """`each` windows of every class, (n, 3, 128), in turn, and their labels."""
    labels = np.tile(np.arange(len(CLASSES)), each)
    return np.stack([perform(int(label), seed + i) for i, label in enumerate(labels)]), labels


def stream(labels: list[int], seed: int, length: int) -> Raw:
    """Gestures one after the other in one hand, (n, 3): each within `length` samples, from rest to rest."""
    rng = np.random.default_rng(seed)
    time = np.arange(length) / RATE - 0.4
    moved = np.concatenate([_moved(label, time, rng) for label in labels], axis=1)
    return _measured(moved, np.arange(moved.shape[1]) / RATE, rng).T
