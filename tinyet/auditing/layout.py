# SPDX-License-Identifier: Apache-2.0
"""Where each weight of a layer lies in the constants that a kernel has packed, found by packing again.

A kernel's packing is a function of the layer's weights, and its inverse is not written down anywhere. It is measured:
the layer is lowered again with some of its weights changed by one, and the places that change are those of these
weights. Weight i is among those that change in probe k if bit k of i + 1 is set, so as many probes as a count of the
weights has bits tell for each place the one weight that it depends on. Further probes, each of a drawn half of the
weights, tell whether that is true: a sum of many weights answers otherwise. A place is taken for a weight's only if
its value, too, can be read back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tinyet.boards.cpus import Target
from tinyet.deployment import Step
from tinyet.errors import TinyetError
from tinyet.ir import Array, DType, Tensor
from tinyet.memory.plan import MemoryPlan
from tinyet.numerics import Int64
from tinyet.opset import Call, InputArg, Layouts

CONFIRMATIONS = 16
"""Probes of drawn weights. A place that depends on many weights passes each by chance, every second time."""
_WIDTHS: dict[DType, tuple[int, ...]] = dict.fromkeys(DType, (8, 16, 32)) | {DType.INT4: (4, 8, 16, 32)}
"""Of a place, in bits, in the order of trying: the first width by which a weight can be read is taken."""
# Of biases, to which the sum of the weights is added: the words that depend on them are known, not more.
_WIDTHS |= dict.fromkeys((DType.INT32, DType.INT64), (32,))


@dataclass(frozen=True, eq=False)
class Places:
    """Weights of one constant input of a layer that can be read back out of one of its packed arrays.

    constant: the array's name in the call. width: of a place, in bits. at: int64, (n,), places counted in units of the
    width; weight: int64, (n,), the index of the weight there, in row-major order. shift: int64, (n,), to the left, by
    which it is stored. borrows: whether a negative value in the place below takes one of it: two values in a lane,
    a + 2^width b. raised: whether it is stored without a sign, more by half of what the place can hold.
    """

    constant: str
    width: int
    at: Int64
    weight: Int64
    shift: Int64
    borrows: bool
    raised: bool = False

    def read(self, data: bytes) -> Array:
        """The weights' values in an array of this layout, int64 (n,); bits of an integer for floats."""
        return self._stored(data) >> self.shift

    def holds(self, data: bytes, weights: Int64) -> npt.NDArray[np.bool_]:
        """Whether each of these places holds its weight exactly; bool, (n,)."""
        return np.asarray(self._stored(data) == weights[self.weight] << self.shift)

    def _stored(self, data: bytes) -> Int64:
        found = _values(_units(data, self.width), self.at, self.borrows)
        # Signed units: the lower half of those without a sign is what is not negative.
        half = 1 << self.width - 1
        return np.where(found < 0, found + half, found - half) if self.raised else found


@dataclass(frozen=True, eq=False)
class InputLayout:
    """One constant input of a layer: the places of its weights, and the places that depend on a single one of its
    values without being it, such as a bias to which something was added: (constant, byte offset, index).

    count: of its values. readable: of those that can be read back.
    """

    tensor: Tensor
    places: tuple[Places, ...]
    depends: Mapping[tuple[str, int], int]

    @property
    def count(self) -> int:
        return self.tensor.type.count

    @property
    def readable(self) -> int:
        return len(np.unique(np.concatenate([p.weight for p in self.places]))) if self.places else 0


def layouts_of(step: Step, plan: MemoryPlan, target: Target) -> tuple[InputLayout, ...]:
    """The layouts of a layer's constant inputs in the arrays of its call; none for a layer that cannot be packed
    again, and for inputs that its call takes as they are."""
    lower = _lowering(step, plan, target)
    operands = {arg.index for arg in step.call.args if isinstance(arg, InputArg)}
    if lower is None:
        return ()
    return tuple(
        _layout(step, index, tensor, lower)
        for index, tensor in enumerate(step.node.inputs)
        if tensor is not None and tensor.is_constant and tensor.type.count and index not in operands
    )


class _Lowering:
    """Packs a layer again, with one of its inputs replaced."""

    def __init__(self, step: Step, layouts: Layouts | None, target: Target) -> None:
        self.step, self.layouts, self.target = step, layouts, target

    def call(self, index: int | None = None, values: Array | None = None) -> Call:
        node, kernel = self.step.node, self.step.choice.kernel
        if index is not None:
            tensor = node.input(index)
            inputs = list(node.inputs)
            inputs[index] = Tensor(tensor.name, tensor.type, values)
            node = node.replace(inputs=inputs)
        if self.layouts is None or kernel.layout_support is None:
            return kernel.lower(node, self.target)
        return kernel.layout_support.lower(node, self.target, self.layouts)

    def arrays(self, index: int, values: Array) -> dict[str, bytes] | None:
        """The packed arrays; None where the kernel does not take these values, or packs them into other sizes."""
        try:
            call = self.call(index, values)
        except (TinyetError, ValueError, AssertionError):
            return None
        found = {c.name: np.ascontiguousarray(c.data).tobytes() for c in call.constants}
        sizes = {c.name: c.data.nbytes for c in self.step.call.constants}
        return found if {name: len(data) for name, data in found.items()} == sizes else None


def _lowering(step: Step, plan: MemoryPlan, target: Target) -> _Lowering | None:
    """As the layer was lowered: its tensors may have gaps, or lie otherwise. None where that is not found."""
    tried: list[Layouts | None] = [None]
    if step.node.inputs and step.node.inputs[0] is not None and step.choice.kernel.layout_support is not None:
        lying = plan.layouts(step.whole or step.node)
        tried.append(lying)
        # Of some channels, between which those of others lie.
        apart = step.node.output.dtype.bytes * (step.whole or step.node).output.shape[-1]
        tried += [replace(lying, output=apart)] if step.whole is not None else []
    for layouts in tried:
        lowering = _Lowering(step, layouts, target)
        call = lowering.call()
        same = [(c.name, c.data.tobytes()) for c in call.constants] == [
            (c.name, c.data.tobytes()) for c in step.call.constants
        ]
        if same:
            return lowering
    return None


def _layout(step: Step, index: int, tensor: Tensor, lower: _Lowering) -> InputLayout:
    nothing = InputLayout(tensor, (), {})
    values = tensor.array
    count = values.size
    codes = np.arange(1, count + 1)
    chosen = [(codes >> k & 1).astype(bool) for k in range(count.bit_length())]
    rng = np.random.default_rng(count)
    chosen += [rng.integers(0, 2, count).astype(bool) for _ in range(CONFIRMATIONS)]
    moved = _neighbours(values.ravel(), tensor.dtype)
    probes = []
    for which in chosen:
        found = lower.arrays(index, np.where(which, moved, values.ravel()).reshape(values.shape))
        if found is None:
            return nothing
        probes.append(found)
    exact = _as_integers(values.ravel(), tensor.dtype)
    steps = _as_integers(moved, tensor.dtype) - exact
    places: list[Places] = []
    depends: dict[tuple[str, int], int] = {}
    for constant in step.call.constants:
        base = np.ascontiguousarray(constant.data).tobytes()
        after = [found[constant.name] for found in probes]
        covered = np.zeros(count, bool)
        for width in _WIDTHS[tensor.dtype]:
            at, weight, delta = _single(base, after, chosen, width)
            for place, on in zip((at * width // 8).tolist(), weight.tolist(), strict=True):
                depends.setdefault((constant.name, place), on)
            if tensor.dtype in (DType.INT32, DType.INT64):
                continue
            read = _readable(constant.name, base, width, at, weight, delta, exact, steps)
            fresh = [p for p in read if not covered[p.weight].all()]
            for p in fresh:
                covered[p.weight] = True
            places += fresh
            if covered.all():
                break
    return InputLayout(tensor, tuple(places), depends)


def _neighbours(values: Array, dtype: DType) -> Array:
    """Values next to these, of the same sign: those with the last bit flipped. -127 has -128 beside it, which is no
    weight to some kernels."""
    if dtype is DType.FLOAT32:
        return (np.ascontiguousarray(values).view(np.int32) ^ 1).view(np.float32)
    moved = np.bitwise_xor(values, 1, dtype=values.dtype)
    return np.where(values == -127, values.dtype.type(-126), moved) if dtype is DType.INT8 else moved


def _as_integers(values: Array, dtype: DType) -> Int64:
    """int64; of floats their bits."""
    bits = np.ascontiguousarray(values).view(np.int32) if dtype is DType.FLOAT32 else values
    return bits.astype(np.int64)


def _units(data: bytes, width: int) -> Int64:
    """The values of an array's places, signed, int64."""
    if width == 4:
        pairs = np.frombuffer(data, np.uint8)
        nibbles = np.stack([pairs & 15, pairs >> 4], axis=1).ravel().astype(np.int64)
        return nibbles - 16 * (nibbles > 7)
    dtype = np.dtype(f"<i{width // 8}")
    whole = len(data) // dtype.itemsize * dtype.itemsize
    return np.frombuffer(data[:whole], dtype).astype(np.int64)


def _values(units: Int64, at: Int64, borrows: bool) -> Int64:
    """The values at places; where a negative value below has taken one, it is given back."""
    if not borrows:
        return units[at]
    below = np.where(at % 2 == 1, units[np.maximum(at - 1, 0)], 0)
    return units[at] + (below < 0)


def _single(
    base: bytes, after: Sequence[bytes], chosen: Sequence[Array], width: int
) -> tuple[Int64, Int64, Int64]:
    """Places that depend on one weight alone: (place, weight, change of the place's value when that weight changes)."""
    before = _units(base, width)
    code = np.zeros(len(before), np.int64)
    for bit, data in enumerate(after[:-CONFIRMATIONS]):
        code |= (_units(data, width) != before).astype(np.int64) << bit
    at = np.flatnonzero((code > 0) & (code <= len(chosen[0])))
    weight = code[at] - 1
    delta = np.zeros(len(at), np.int64)
    alone = np.ones(len(at), bool)
    for data, which in zip(after, chosen, strict=True):
        change, among = _units(data, width)[at] - before[at], which[weight]
        delta = np.where((delta == 0) & among, change, delta)
        # The same change whatever others do, and none without it: else it depends on them, too.
        alone &= change == np.where(among, delta, 0)
    return at[alone], weight[alone], delta[alone]


def _readable(
    constant: str,
    base: bytes,
    width: int,
    at: Int64,
    weight: Int64,
    delta: Int64,
    exact: Int64,
    steps: Int64,
) -> list[Places]:
    """Of these places, those whose weight can be read: by a shift, with or without a borrow, or raised."""
    ratio = delta // steps[weight]
    powers = (ratio > 0) & (ratio & (ratio - 1) == 0) & (ratio * steps[weight] == delta)
    at, weight, ratio = at[powers], weight[powers], ratio[powers]
    shift = np.round(np.log2(ratio)).astype(np.int64)
    found: list[Places] = []
    for form in ((False, False), (True, False), (False, True)):
        good: npt.NDArray[np.bool_] = Places(constant, width, at, weight, shift, *form).holds(base, exact)
        if good.any():
            found.append(Places(constant, width, at[good], weight[good], shift[good], *form))
            at, weight, shift = at[~good], weight[~good], shift[~good]
    return found
