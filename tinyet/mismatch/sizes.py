# SPDX-License-Identifier: Apache-2.0
"""A model whose size is known at run time, at all its sizes: each compared with the host reference at that size."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyet.data import prepare_inputs
from tinyet.deployment import Deployment
from tinyet.device.device import Device, ModelFailed
from tinyet.errors import EmulatorError
from tinyet.ir import Array, Graph
from tinyet.mismatch.locate import Mismatch, from_bytes, locate_mismatch, same
from tinyet.reference import Session

MOST_RUN = 128
"""Sizes that are run: all where there are no more, else so many from the smallest to the largest."""
BAD_SIZE = -7
"""TINYET_BAD_SIZE."""
_BEHIND = b"\x5a"
"""In the arena behind inputs that are smaller than the largest: nobody may read it."""


@dataclass(frozen=True)
class SizeResult:
    """Runs at one size. count: of one inference, in the device's unit. mismatch: the first layer that differs from the
    host reference; bit_exact: that no output does."""

    size: int
    bit_exact: bool
    count: int
    mismatch: Mismatch | None = None

    def to_json(self, unit: str) -> dict[str, object]:
        counted = {name: self.count if unit == name else None for name in ("instructions", "cycles")}
        return {"size": self.size, "bit_exact": self.bit_exact, **counted}


def request(deployment: Deployment, prepared: Sequence[Array], value: int | None = None) -> list[bytes]:
    """The inputs' bytes as the harness takes them: of a model with a size each as long as the largest, and the size
    behind them, the largest by default."""
    found = [np.ascontiguousarray(x).tobytes() for x in prepared]
    if deployment.sized is None:
        return found
    most = [tensor.type.bytes for tensor in deployment.graph.user_inputs]
    size = deployment.sized.size.most if value is None else value
    padded = [data + _BEHIND * (whole - len(data)) for data, whole in zip(found, most, strict=True)]
    return [*padded, struct.pack("<I", size)]


def input_bytes(deployment: Deployment) -> list[int]:
    """The sizes of a harness's inputs, in their order."""
    graph = deployment.graph
    size = [] if deployment.sized is None else [4]
    return [
        *(t.type.bytes for t in graph.user_inputs),
        *size,
        *(state.value.type.bytes for state in graph.states),
    ]


def run_at_sizes(
    deployment: Deployment, device: Device, samples: Sequence[Sequence[Array]]
) -> tuple[SizeResult, ...]:
    """Run the beginnings of the samples at each size, one sample a size in turns, with the first states; and ask for
    sizes that there are not, which must be refused.

    Raises EmulatorError where one is not refused, or a run fails.
    """
    sized = deployment.sized
    if sized is None or not samples:
        return ()
    values = sized.size.values
    numbers = np.unique(np.linspace(0, len(values) - 1, MOST_RUN).astype(int))
    found = []
    for turn, value in enumerate(values[int(number)] for number in numbers):
        arrays = _beginnings(deployment.graph, sized.size.axes, samples[turn % len(samples)], value)
        found.append(_run(deployment, sized.at[value], device, value, arrays, turn % len(samples)))
    least = _beginnings(deployment.graph, sized.size.axes, samples[0], values[0])
    for wrong in {values[0] - 1, values[-1] + 1, values[-1] + values.step, 0xFFFFFFFF} - set(values):
        _refused(deployment, device, wrong, least)
    return tuple(found)


def _beginnings(graph: Graph, axes: Sequence[int | None], arrays: Sequence[Array], value: int) -> list[Array]:
    found = []
    for tensor, axis, array in zip(graph.user_inputs, axes, arrays, strict=True):
        whole = array.reshape(tensor.shape)
        found.append(whole if axis is None else np.take(whole, np.arange(value), axis))
    return found


def _run(
    whole: Deployment, own: Deployment, device: Device, value: int, arrays: Sequence[Array], number: int
) -> SizeResult:
    graph = own.graph
    prepared = prepare_inputs(graph.user_inputs, arrays)
    states = [np.ascontiguousarray(state.initial.array).tobytes() for state in graph.states]
    raw = [*request(whole, prepared, value), *states]
    values = Session(graph).values(prepared)
    run = device.run(raw)
    right = all(
        same(from_bytes(data[: tensor.type.bytes], tensor), values[tensor]).all()
        for data, tensor in zip(run.outputs, graph.outputs, strict=True)
    )
    mismatch = None if right else locate_mismatch(own, device, raw, values, number)
    return SizeResult(value, right, run.total, mismatch)


def _refused(deployment: Deployment, device: Device, value: int, arrays: Sequence[Array]) -> None:
    sized = deployment.sized
    assert sized is not None
    graph = sized.at[sized.size.values[0]].graph
    states = [np.ascontiguousarray(state.initial.array).tobytes() for state in graph.states]
    try:
        device.run([*request(deployment, prepare_inputs(graph.user_inputs, arrays), value), *states])
    except ModelFailed as error:
        if error.status == BAD_SIZE:
            return
        raise
    raise EmulatorError(f"the device takes {sized.size.name} = {value}, and is made for {sized.size}")
