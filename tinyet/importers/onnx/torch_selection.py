# SPDX-License-Identifier: Apache-2.0
"""Handlers of operators that choose or overwrite elements by constants, as the older exporter of torch writes them for
masks and for assignments to slices."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from tinyet.errors import RefusedError
from tinyet.importers.onnx.torch_steps import Build, Function, Step
from tinyet.importers.onnx.values import axis_of
from tinyet.ir import Array


def gather(b: Build) -> Function:
    axis = axis_of(b.attribute("axis", 0), b.rank())
    if isinstance(b.given[0], np.ndarray):
        if axis != 0 or b.given[0].ndim != 2:
            raise RefusedError(f"looks up along axis {axis} of {b.given[0].ndim} dimensions")
        b.hold("table", b.given[0])
        return lambda step, indices: F.embedding(indices, step.table)
    shape, indices = b.example().shape, b.constant(1, "indices")
    chosen = [axis_of(i, shape[axis]) for i in b.integers(1, "indices")]
    if indices.ndim == 0:
        return lambda _s, x: torch.select(x, axis, chosen[0])
    if not chosen:
        raise RefusedError("gathers nothing")
    runs = [[chosen[0], 1]]
    for index in chosen[1:]:
        if index == sum(runs[-1]):
            runs[-1][1] += 1
        else:
            runs.append([index, 1])
    wanted = (*shape[:axis], *indices.shape, *shape[axis + 1 :])

    def run(_step: Step, x: torch.Tensor) -> torch.Tensor:
        parts = [torch.narrow(x, axis, *each) for each in runs]
        joined = parts[0] if len(parts) == 1 else torch.cat(parts, axis)
        return joined if indices.ndim == 1 else joined.reshape(wanted)

    return run


def tile(b: Build) -> Function:
    times = b.integers(1, "repeats")
    if len(times) != b.rank() or any(n < 1 for n in times):
        raise RefusedError(f"repeats {b.rank()} dimensions {times} times")

    def run(_step: Step, x: torch.Tensor) -> torch.Tensor:
        for axis, count in enumerate(times):
            x = torch.cat([x] * count, axis) if count > 1 else x
        return x

    return run


def where(b: Build) -> Function:
    """By a mask that is a constant, as of attention; a computed one has truth values already."""
    mask = b.given[0]
    held = isinstance(mask, np.ndarray)
    if isinstance(mask, np.ndarray):
        _mask(b, mask)
    rest = b.with_inputs([None, *b.given[1:]]).arguments()

    def run(step: Step, *inputs: torch.Tensor) -> torch.Tensor:
        yes, no = rest(step, inputs if held else inputs[1:])
        return torch.where(_held(step, "mask") if held else inputs[0], yes, no)

    return run


def scatter_nd(b: Build) -> Function:
    """At constant indices: constants, or a box of computed values (an assignment to slices)."""
    if b.attribute("reduction", "none") != "none":
        raise RefusedError("adds or multiplies at its indices", "assign instead")
    shape, given = tuple(b.example().shape), b.given[2] if b.has(2) else None
    if given is None:
        raise RefusedError("has no input 2", shape=False)
    indices = b.constant(1, "indices")
    b.budget.fold(2 * math.prod(shape) + indices.size)
    every = np.arange(math.prod(shape)).reshape(shape)
    places = every[tuple(np.moveaxis(indices, -1, 0))]
    if places.shape != tuple(given.shape):
        raise RefusedError(f"puts {tuple(given.shape)} where {places.shape} have room")
    mask = np.zeros(shape, np.bool_)
    mask.reshape(-1)[places.reshape(-1)] = True
    _mask(b, mask)
    data = b.with_inputs([b.given[0], None, None]).arguments()
    if isinstance(given, np.ndarray):
        b.budget.hold(8 * mask.size)
        spread = np.zeros(shape, given.dtype)
        spread.reshape(-1)[places.reshape(-1)] = given.reshape(-1)
        b.hold("updates", spread)
        return lambda step, *inputs: torch.where(
            _held(step, "mask"), _held(step, "updates"), data(step, inputs)[0]
        )
    box = _box(mask, every, places)

    def run(step: Step, *inputs: torch.Tensor) -> torch.Tensor:
        sizes = [stop - start for start, stop in box]
        around = [n for (start, stop), size in zip(box, shape, strict=True) for n in (start, size - stop)]
        pairs = [around[i : i + 2] for i in range(0, len(around), 2)][::-1]
        put = F.pad(inputs[-1].reshape(sizes), [n for pair in pairs for n in pair])
        return torch.where(_held(step, "mask"), put, data(step, inputs[:-1])[0])

    return run


def _box(mask: Array, every: Array, places: Array) -> list[tuple[int, int]]:
    """From where to where the indices are, along each axis. Raises RefusedError where they are no box, in order."""
    found = [
        np.flatnonzero(mask.any(axis=tuple(b for b in range(mask.ndim) if b != a))) for a in range(mask.ndim)
    ]
    box = [(int(at[0]), int(at[-1]) + 1) for at in found]
    inside = every[tuple(slice(*each) for each in box)]
    if inside.size != places.size or not np.array_equal(inside.reshape(-1), places.reshape(-1)):
        raise RefusedError(
            "puts computed values at scattered indices", "assign to slices of step 1, or concatenate"
        )
    return box


def _mask(b: Build, mask: Array) -> None:
    b.budget.hold(mask.size)
    b.step.register_buffer("mask", torch.from_numpy(mask.astype(np.bool_)))


def _held(step: Step, role: str) -> torch.Tensor:
    found = getattr(step, role)
    assert isinstance(found, torch.Tensor)
    return found
