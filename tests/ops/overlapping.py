# SPDX-License-Identifier: Apache-2.0
"""Kernels whose output lies partly, or exactly, over their input: computed in one buffer, whose other bytes are poison.

The plan is made here, case by case: neither the planner nor the checker of memory has a say in it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tests.ops.cases import Case, expected, renamed
from tinyet.boards.cpus import Target
from tinyet.delegates import DELEGATES, Delegate
from tinyet.deployment import Deployment, Step, deploy
from tinyet.ir import DType, Graph, Node, Tensor, TensorType
from tinyet.memory.plan import Block, Lifetime, Storage
from tinyet.opset import Kernel
from tinyet.planning.kernel_selection import Choice

Bytes = npt.NDArray[np.uint8]

GUARD = 24
"""Bytes of poison before, between and behind what a call may touch."""


@dataclass(frozen=True)
class Placed:
    """A case, the kernel that computes it, and how many bytes the non-constant input `index` begins behind the output
    (before it, where that is negative)."""

    case: Case
    kernel: Kernel
    dependence_distance: int
    index: int = 0


def stated(case: Case, kernel: Kernel, index: int = 0) -> int | None:
    """The distance that the kernel's access order asks for, in whole elements; None where it promises nothing."""
    access_order = None if kernel.access_order is None else kernel.access_order(case.node, index)
    if access_order is None:
        return None
    width = max(case.node.input(index).dtype.bytes, case.node.output.dtype.bytes)
    assert access_order.written[-1] == case.node.output.type.bytes
    assert access_order.needed[0] >= 0
    assert access_order.needed[-1] <= case.node.input(index).type.bytes
    return -(-access_order.dependence_distance // width) * width


@dataclass(frozen=True)
class Laid:
    """A node of the graph with its case: where its output lies, and what may be left there of others: its scratch."""

    placed: Placed
    node: Node
    output: slice
    scratch: slice


@dataclass(frozen=True)
class Buffer:
    """All cases in one model, whose only input and output is its whole arena."""

    deployment: Deployment
    laid: tuple[Laid, ...]
    before: Bytes

    def wrong(self, raw: bytes) -> list[str]:
        """Of each case that went wrong: the kernel, and how."""
        after = np.frombuffer(raw, np.uint8)
        touched = np.zeros(len(after), np.bool_)
        found = []
        for laid in self.laid:
            node, case = laid.node, laid.placed.case
            (want,) = expected(node, case.inputs)
            got = np.frombuffer(raw[laid.output], node.output.dtype.numpy).reshape(node.output.shape)
            same = (got == want) | ((got != got) & (want != want))
            if not same.all():
                count, what = int((~same).sum()), f"{node.attrs} of {node.input(0).type}"
                found.append(f"{laid.placed.kernel.symbol}: {count} of {same.size} outputs differ: {what}")
            touched[laid.output] = touched[laid.scratch] = True
        others = np.flatnonzero(~touched & (after != self.before))
        return found + [f"byte {at} is no call's to write" for at in others[:5]]


def buffer(placed: Sequence[Placed], target: Target, seed: int = 0) -> Buffer:
    """The model that computes the cases where they are placed."""
    nodes = [renamed(p.case, f"c{i}") for i, p in enumerate(placed)]
    inputs = [tuple(dict.fromkeys(t for t in n.inputs if t is not None and not t.is_constant)) for n in nodes]
    kernels = {node: p.kernel for node, p in zip(nodes, placed, strict=True)}
    # Of one node alone: nothing of it is left but what is the same for all deployments.
    deployment = deploy(Graph("cases", inputs[0], nodes[0].outputs, (nodes[0],)), target)
    # All nodes are computed, by these kernels: also those that need not be, or would be by others.
    steps = tuple(
        Step(i, f"c{i}", node, Choice(k, owner(k), ()), k.lower(node, target), 0)
        for i, (node, k) in enumerate(kernels.items())
    )
    calls = {step.node: step.call for step in steps}
    offsets: dict[Tensor, int] = {}
    scratch: dict[Node, int] = {}
    laid, end = [], 0

    def room(size: int, align: int = 8) -> int:
        nonlocal end
        start = -(-(end + GUARD) // align) * align
        end = start + size
        return start

    for i, (node, p) in enumerate(zip(nodes, placed, strict=True)):
        x, out = node.input(p.index), node.output
        low, high = min(0, p.dependence_distance), max(out.type.bytes, p.dependence_distance + x.type.bytes)
        width = max(x.dtype.bytes, out.dtype.bytes)
        # Odd addresses, too: the distance alone is not enough to know them by.
        at = room(high - low + 3 * width) + i % 4 * width - low
        offsets[out], offsets[x] = at, at + p.dependence_distance
        for other in inputs[i]:
            if other is not x:
                offsets[other] = room(other.type.bytes)
        room_bytes = calls[node].scratch_bytes
        start = room(room_bytes)
        if room_bytes:
            scratch[node] = start
        laid.append(Laid(p, node, slice(at, at + out.type.bytes), slice(start, start + room_bytes)))
    total = room(0)
    arena = Tensor("arena", TensorType((total,), DType.INT8, None))
    before = np.random.default_rng(seed).integers(0, 256, total, np.uint8)
    for names, p in zip(inputs, placed, strict=True):
        for tensor, data in zip(names, p.case.inputs, strict=True):
            before[offsets[tensor] : offsets[tensor] + tensor.type.bytes] = np.frombuffer(
                np.ascontiguousarray(data).tobytes(), np.uint8
            )
    always = Lifetime(-1, len(steps))
    tensors = [arena, *offsets]
    plan = dataclasses.replace(
        deployment.plan,
        calls=tuple(nodes),
        blocks=(Block("arena", 0, total, always),),
        storage={t: Storage(0, offsets.get(t, 0)) for t in tensors},
        lifetimes=dict.fromkeys(tensors, always),
        scratch=scratch,
        arena_bytes=total,
    )
    whole = Graph("cases", (arena,), (arena,), tuple(nodes))
    return Buffer(dataclasses.replace(deployment, graph=whole, plan=plan, steps=steps), tuple(laid), before)


def owner(kernel: Kernel) -> Delegate:
    return next(d for d in DELEGATES if any(kernel in kernels for kernels in d.kernels.values()))


Runner = Callable[[Deployment, bytes], bytes]


def wrong(placed: Sequence[Placed], target: Target, runner: Runner) -> list[str]:
    """What went wrong where the cases were computed."""
    made = buffer(placed, target)
    return made.wrong(runner(made.deployment, made.before.tobytes()))
