# SPDX-License-Identifier: Apache-2.0
"""Where device and host reference part: the device is halted behind each layer and its tensors are read back, of layers
that are computed by rows the rows that are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tinyet.deployment import Deployment, Step
from tinyet.device.device import Device
from tinyet.errors import MismatchError
from tinyet.ir import Array, Tensor
from tinyet.memory import MemoryPlan
from tinyet.memory.breakpoints import Breakpoint, Row, breakpoints, fewest
from tinyet.memory.fusion import FusionGroup


@dataclass(frozen=True)
class Mismatch:
    """The first difference between device and host: sample, layer, tensor and index, with both values as stored.

    count: elements that differ. rows: where the layer is computed by rows, the first and the last of those that it had
    just computed, which are what is compared; None where the whole value is.
    """

    sample: int
    layer: int
    name: str
    value: str
    op: str
    kernel: str
    index: tuple[int, ...]
    device: int | float
    host: int | float
    count: int
    source: str
    rows: tuple[int, int] | None = None

    def __str__(self) -> str:
        index = ", ".join(map(str, self.index))
        where = "" if self.rows is None else f" in row {self.rows[0]}"
        if self.rows is not None and self.rows[1] > self.rows[0]:
            where = f" in rows {self.rows[0]} to {self.rows[1]}"
        return (
            f"sample {self.sample}: layer {self.layer}, {self.name} ({self.op}, {self.kernel}) is the first to differ: "
            f"{self.value}[{index}] is {self.device} on the device, {self.host} in the reference ({self.count} differ"
            f"{where})"
        )

    def error(self) -> MismatchError:
        return MismatchError(
            str(self), self.source or None, "rebuild the project; if it stays, report it with the model"
        )


def from_bytes(data: bytes, tensor: Tensor) -> Array:
    """A tensor's array, of the bytes that a device holds of it."""
    return np.frombuffer(data, tensor.dtype.numpy).reshape(tensor.shape)


def same(a: Array, b: Array) -> npt.NDArray[np.bool_]:
    """Elementwise equality in which NaN equals NaN."""
    return np.asarray((a == b) | ((a != a) & (b != b)))


def locate_mismatch(
    deployment: Deployment, device: Device, raw: Sequence[bytes], values: Mapping[Tensor, Array], sample: int
) -> Mismatch | None:
    """The first layer whose result differs from the reference; None when none does when looked at alone."""
    plan = deployment.plan
    for step in deployment.steps:
        fusion_group = plan.fusion_group(step.node)
        found: Mismatch | None = None
        if fusion_group is None:
            device.run(raw, stop_after=step.index, runs=step.runs)
            found = _whole_difference(sample, step, plan, device, values)
        elif step.node is fusion_group.nodes[0]:
            found = _locate_by_rows(deployment, fusion_group, device, raw, values, sample)
        if found is not None:
            return found
    return None


def _whole_difference(
    sample: int, step: Step, plan: MemoryPlan, device: Device, values: Mapping[Tensor, Array]
) -> Mismatch | None:
    """The first difference in the whole outputs of a layer behind which the device has been halted."""
    found: Mismatch | None = None
    for tensor in step.node.outputs:
        read = plan.dense(tensor, device.read(plan.offset(tensor), plan.extent(tensor)))
        found = found or _difference(sample, step, tensor, from_bytes(read, tensor), values[tensor])
    return found


def _locate_by_rows(
    deployment: Deployment,
    fusion_group: FusionGroup,
    device: Device,
    raw: Sequence[bytes],
    values: Mapping[Tensor, Array],
    sample: int,
) -> Mismatch | None:
    """The first run of a stream's layers that computes rows that differ, or else the first layer whose runs make one
    value together that does; None when none does."""
    steps = {step.node: step for step in deployment.steps if step.node in fusion_group.rules}
    found = breakpoints(fusion_group)

    def look(at: Breakpoint, made: Sequence[Sequence[Row]]) -> Mismatch | None:
        """The first difference in what some runs have computed, as it is when the device is halted at a stop."""
        device.run(raw, stop_after=steps[at.node].index, runs=at.runs)
        for rows in made:
            tensor, first = rows[0]
            buffer = fusion_group.rows[tensor]
            offset = deployment.plan.row_offset(buffer, at.places[rows[0]])
            read = np.frombuffer(device.read(offset, len(rows) * buffer.row_bytes), tensor.dtype.numpy)
            wanted = values[tensor].take(range(first, first + len(rows)), buffer.axis)
            step = next(step for node, step in steps.items() if node.outputs[0] is tensor)
            row = first, buffer.axis
            different = _difference(sample, step, tensor, read.reshape(wanted.shape), wanted, row)
            if different is not None:
                return different
        return None

    begin = 0
    for number in fewest(found):
        part = found[begin : number + 1]
        different = look(found[number], [breakpoint_.made for breakpoint_ in part if breakpoint_.made])
        if different is not None:
            # It may have been right when it was computed, and spoilt by a later layer, which is wrong then.
            each = (look(breakpoint_, [breakpoint_.made]) for breakpoint_ in part if breakpoint_.made)
            return next((first for first in each if first is not None), different)
        begin = number + 1
    for node, step in steps.items():
        if fusion_group.rules[node].reduces:
            device.run(raw, stop_after=step.index, runs=fusion_group.runs(node))
            if (different := _whole_difference(sample, step, deployment.plan, device, values)) is not None:
                return different
    return None


def _difference(
    sample: int,
    step: Step,
    tensor: Tensor,
    got: Array,
    wanted: Array,
    rows: tuple[int, int] | None = None,
) -> Mismatch | None:
    """The first element in which a layer's value differs from the reference, or some of its rows do: (the first, their
    axis)."""
    alike = same(got, wanted)
    if alike.all():
        return None
    at = tuple(int(v) for v in np.argwhere(~alike)[0])
    first, axis = (0, 0) if rows is None else rows
    return Mismatch(
        sample=sample,
        layer=step.index,
        name=step.name,
        value=tensor.name,
        op=step.node.op,
        kernel=step.choice.kernel.symbol,
        index=(*at[:axis], at[axis] + first, *at[axis + 1 :]) if at else at,
        device=got[at].item(),
        host=wanted[at].item(),
        count=int((~alike).sum()),
        source=step.node.where or "",
        rows=None if rows is None else (first, first + got.shape[axis] - 1),
    )
