# SPDX-License-Identifier: Apache-2.0
"""Which nodes only rename bytes: a reshape, a slice without gaps, a concatenation of whole runs.

An operator's record says that it moves values, and its attributes say where. To avoid a second copy of each
operator's rule, its numpy reference is run on values that tell elements apart, and the result is looked up in the
inputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyet.ir import Array, DType, Node, Tensor
from tinyet.ir.memoize import memoize
from tinyet.ops.copy import Copy
from tinyet.opset import Op, moves
from tinyet.opset.op import Reference


@dataclass(frozen=True)
class View:
    """`bytes` bytes of output `output` from `start` are those of input `input` from `input_start`."""

    output: int
    start: int
    input: int
    input_start: int
    bytes: int


def views(node: Node, op: Op) -> tuple[View, ...] | None:
    """The outputs as runs of the inputs' bytes, or None where a kernel has to compute them.

    Two forms are known: each output is one run of the single input, or the single output is all inputs back
    to back. A copy, which is there to have bytes of its own, is of neither form; nor is a node that reads a
    constant, because constants are not in the arena.
    """
    if isinstance(node.attrs, Copy) or any(t is not None and t.is_constant for t in node.inputs):
        return None
    inputs = [(i, t) for i, t in enumerate(node.inputs) if t is not None]
    if not inputs or len({t.dtype for _, t in inputs} | {t.dtype for t in node.outputs}) != 1:
        return None
    if op.view:
        return (View(0, 0, inputs[0][0], 0, node.output.type.bytes),)
    if not op.same_scale or not _may_move(op, node, inputs):
        return None
    return _tried(node, op.reference)


@memoize
def _tried(node: Node, reference: Reference) -> tuple[View, ...] | None:
    """`views` of a node that may move elements, which is run to see where they go. Each plan of a graph asks."""
    inputs = [(i, t) for i, t in enumerate(node.inputs) if t is not None]
    trials = _trials(node, reference)
    if len(inputs) == 1:
        return _runs(node, inputs[0][0], trials)
    return _back_to_back(node, inputs, trials)


def _may_move(op: Op, node: Node, inputs: Sequence[tuple[int, Tensor]]) -> bool:
    """Whether the sizes allow one of the two forms, so that no large window or sum is tried out for nothing."""
    given, made = sum(t.type.count for _, t in inputs), sum(t.type.count for t in node.outputs)
    return given == made or (made < given and moves(op, node))


_SIGNALLING = np.uint32(0x7F800001).view(np.float32)
"""No number; any arithmetic with it changes its bits."""

_Trial = tuple[dict[int, bytes], list[bytes]]


def _trials(node: Node, reference: Reference) -> list[_Trial]:
    """Inputs and outputs of the reference, as bytes. Random values tell the elements apart; the same in reverse order
    of size expose a minimum or a maximum, which may well stand at the same place in each random trial; all-smallest
    and all-largest ones expose a clamp, which moves only values within it; NaNs, and zeros of both signs, expose
    arithmetic that only happens to give numbers back (x * 1 + x * 0)."""
    dtype = node.outputs[0].dtype
    random = np.random.default_rng(0)
    drawn = [[None if t is None else _values(t, None, random) for t in node.inputs] for _ in range(3)]
    reverse = np.negative if dtype is DType.FLOAT32 else np.invert
    reversed_ = [None if a is None else np.asarray(reverse(a)) for a in drawn[0]]
    ends = (-3.0e38, 3.0e38) if dtype is DType.FLOAT32 else dtype.range
    odd = (-0.0, math.inf, _SIGNALLING) if dtype is DType.FLOAT32 else ()
    filled = [[None if t is None else _values(t, end, random) for t in node.inputs] for end in (*ends, *odd)]
    trials = []
    for arrays in (*drawn, reversed_, *filled):
        with np.errstate(all="ignore"):
            outputs = reference(node, arrays)
        given = {i: a.tobytes() for i, a in enumerate(arrays) if a is not None}
        trials.append((given, [np.ascontiguousarray(a).tobytes() for a in outputs]))
    return trials


def _values(tensor: Tensor, fill: float | int | np.float32 | None, random: np.random.Generator) -> Array:
    if fill is not None:
        return np.full(tensor.shape, fill, tensor.dtype.numpy)
    bits = random.integers(0, 256, tensor.type.bytes, np.uint8)
    if tensor.dtype is DType.FLOAT32:
        # Finite floats of both signs and all sizes: the exponent's lowest bit is cleared, so it is never
        # all ones.
        bits[2::4] &= 0x7F
    return bits.view(tensor.dtype.numpy).reshape(tensor.shape)


def _runs(node: Node, index: int, trials: Sequence[_Trial]) -> tuple[View, ...] | None:
    """Each output as one run of the only input."""
    width = node.outputs[0].dtype.bytes
    found = []
    for number, output in enumerate(node.outputs):
        size = output.type.bytes
        start = _find(trials, index, number, width)
        if start is None:
            return None
        found.append(View(number, 0, index, start, size))
    return tuple(found)


def _find(trials: Sequence[_Trial], index: int, number: int, width: int) -> int | None:
    """The first byte offset at which every trial's output stands in its input."""
    given, outputs = trials[0]
    at = given[index].find(outputs[number])
    while at >= 0:
        if at % width == 0 and all(t[0][index].startswith(t[1][number], at) for t in trials):
            return at
        at = given[index].find(outputs[number], at + 1)
    return None


def _back_to_back(
    node: Node, inputs: Sequence[tuple[int, Tensor]], trials: Sequence[_Trial]
) -> tuple[View, ...] | None:
    """The only output as all inputs, one after the other."""
    if len(node.outputs) != 1:
        return None
    for given, outputs in trials:
        if b"".join(given[i] for i, _ in inputs) != outputs[0]:
            return None
    found = []
    start = 0
    for i, tensor in inputs:
        found.append(View(0, start, i, 0, tensor.type.bytes))
        start += tensor.type.bytes
    return tuple(found)
