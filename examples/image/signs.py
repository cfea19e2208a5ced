# SPDX-License-Identifier: Apache-2.0
"""Pictures of traffic signs, 32 x 32 in colour, drawn by formulas: each turned, tilted, lit and hidden its own way."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

SIZE = 32
CLASSES = ("none", "stop", "yield", "limit", "no entry", "priority", "parking")

Reals = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

RED = np.array((0.75, 0.08, 0.10))
WHITE = np.array((0.95, 0.95, 0.95))
BLACK = np.array((0.06, 0.06, 0.06))
BLUE = np.array((0.08, 0.22, 0.65))
YELLOW = np.array((0.95, 0.75, 0.10))

# Each pixel is the mean of this many points a side.
FINE = 3


def _polygon(x: Reals, y: Reals, sides: int, turn: float, radius: float) -> Mask:
    """Whether points lie in a regular polygon; `radius` is from the centre to an edge."""
    angles = turn + 2 * np.pi * np.arange(sides) / sides
    return np.all([x * np.cos(a) + y * np.sin(a) <= radius for a in angles], axis=0)


def _box(x: Reals, y: Reals, cx: float, cy: float, half_width: float, half_height: float) -> Mask:
    return np.asarray((np.abs(x - cx) <= half_width) & (np.abs(y - cy) <= half_height))


def _ring(x: Reals, y: Reals, cx: float, cy: float, inner: float, outer: float) -> Mask:
    distance = np.hypot(x - cx, y - cy)
    return np.asarray((distance >= inner) & (distance <= outer))


def _sign(name: str, x: Reals, y: Reals, rng: np.random.Generator) -> list[tuple[Mask, Reals]]:
    """Areas of a sign, which reaches from -1 to 1 (y downwards), with their colours; later ones lie on top."""
    if name == "stop":
        letters = [_box(x, y, cx, 0, 0.07, 0.26) for cx in (-0.54, -0.18, 0.18, 0.54)]
        bars = [_box(x, y, cx, 0.2, 0.14, 0.06) for cx in (-0.5, 0.22)]
        octagon = _polygon(x, y, 8, 0, 0.98), _polygon(x, y, 8, 0, 0.88)
        return [(octagon[0], WHITE), (octagon[1], RED), (np.any([*letters, *bars], axis=0), WHITE)]
    if name == "yield":
        return [
            (_polygon(x, y + 0.3, 3, -np.pi / 2, 0.6), RED),
            (_polygon(x, y + 0.3, 3, -np.pi / 2, 0.36), WHITE),
        ]
    if name == "limit":
        left = _ring(x, y, -0.27, 0, 0.12, 0.25) if rng.random() < 0.5 else _box(x, y, -0.27, 0, 0.08, 0.27)
        right = _ring(x, y, 0.27, 0, 0.12, 0.25)
        return [(_ring(x, y, 0, 0, 0, 1), RED), (_ring(x, y, 0, 0, 0, 0.72), WHITE), (left | right, BLACK)]
    if name == "no entry":
        return [(_ring(x, y, 0, 0, 0, 1), RED), (_box(x, y, 0, 0, 0.7, 0.17), WHITE)]
    if name == "priority":
        return [(_polygon(x, y, 4, np.pi / 4, 0.7), WHITE), (_polygon(x, y, 4, np.pi / 4, 0.48), YELLOW)]
    if name == "parking":
        letter = _box(x, y, -0.22, 0, 0.12, 0.58) | (_ring(x, y, 0.0, -0.24, 0.16, 0.36) & (x > -0.2))
        return [(_polygon(x, y, 4, 0, 0.9), BLUE), (letter, WHITE)]
    return []


def _clutter(x: Reals, y: Reals, rng: np.random.Generator) -> Reals:
    """A background (h, w, 3): sky over ground, and houses, trees and discs of any colour, signs' colours too."""
    horizon = rng.uniform(-0.4, 0.8)
    sky, ground = rng.uniform(0.4, 0.95, 3), rng.uniform(0.1, 0.6, 3)
    sky[2] = max(sky[2], 0.6)
    picture = np.where((y > horizon + 0.2 * rng.standard_normal() * x)[..., None], ground, sky)
    for _ in range(rng.integers(2, 7)):
        cx, cy, size = rng.uniform(-1.2, 1.2), rng.uniform(-1.0, 1.2), rng.uniform(0.1, 0.6)
        shape = (
            _box(x, y, cx, cy, size, rng.uniform(0.2, 1.5) * size)
            if rng.random() < 0.6
            else _ring(x, y, cx, cy, 0, size)
        )
        color = rng.uniform(0.05, 0.9, 3)
        if rng.random() < 0.3:
            color = (RED, BLUE, YELLOW, WHITE)[rng.integers(4)]
        picture[shape] = np.clip(color + rng.normal(0, 0.05, 3), 0, 1)
    return picture


def draw(label: int, seed: int) -> npt.NDArray[np.float32]:
    """A picture (3, 32, 32), 0...1, of the class `label`; the same for the same seed."""
    rng = np.random.default_rng([label, seed])
    line = (np.arange(SIZE * FINE) + 0.5) / (SIZE * FINE) * 2 - 1
    x, y = np.meshgrid(line, line)
    picture = _clutter(x, y, rng)
    # Where the sign is, how large, turned, and seen from the side.
    cx, cy, size, turn = *rng.uniform(-0.3, 0.3, 2), rng.uniform(0.38, 0.8), rng.normal(0, 0.2)
    u, v = (x - cx) / size, (y - cy) / size
    u, v = np.cos(turn) * u + np.sin(turn) * v, np.cos(turn) * v - np.sin(turn) * u
    u = u / rng.uniform(0.6, 1.0) + rng.normal(0, 0.1) * v
    fade = rng.uniform(0.7, 1.0)
    if label:
        picture[_box(u, v, 0, 2.0, 0.07, 1.4)] = 0.45
    for area, color in _sign(CLASSES[label], u, v, rng):
        picture[area] = fade * color + (1 - fade) * 0.5
    if rng.random() < 0.3:  # a twig or a lamp post in front
        at = rng.uniform(-0.8, 0.8)
        picture[np.abs(x - at - rng.uniform(-0.6, 0.6) * y) < rng.uniform(0.03, 0.09)] = rng.uniform(
            0.1, 0.5, 3
        )
    # Light: how much, of which colour, from which side; and a shadow across.
    light = rng.uniform(0.35, 1.15) * rng.uniform(0.85, 1.1, 3)
    slope = rng.uniform(-0.3, 0.3) * x + rng.uniform(-0.3, 0.3) * y
    shadow = np.where(x * rng.normal() + y * rng.normal() > rng.uniform(0.2, 1.5), rng.uniform(0.4, 0.9), 1.0)
    picture = picture * light * ((1 + slope) * shadow)[..., None]
    small = picture.reshape(SIZE, FINE, SIZE, FINE, 3).mean((1, 3))
    blur = rng.uniform(0, 0.25)
    small = (1 - 2 * blur) * small + blur * (np.roll(small, 1, 1) + np.roll(small, -1, 1))
    small += rng.uniform(0.005, 0.04) * rng.standard_normal(small.shape)
    # A camera gives bytes.
    return (np.rint(np.clip(small, 0, 1) * 255) / 255).astype(np.float32).transpose(2, 0, 1)


def pictures(each: int, seed: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """`each` pictures of every class, (n, 3, 32, 32), in turn, and their labels."""
    labels = np.tile(np.arange(len(CLASSES)), each)
    return np.stack([draw(int(label), seed + i) for i, label in enumerate(labels)]), labels
