# SPDX-License-Identifier: Apache-2.0
"""An operator as a nest of loops: its iteration dimensions, and how each operand's axes are indexed by them.

This is all that the rest of tinyet knows of what an operator does to dimensions, as in MLIR's linalg: which rows or
steps of time an output needs, which dimensions may lie in another order, which channels stay or go together. A
convolution, say, is `out[n, h, w, o] += x[n, 2 * h + i - 1, 2 * w + j - 1, c] * weights[o, i, j, c]`, of the parallel
dimensions n, h, w and o and the reduced ones i, j and c:

    nest = Nest()
    n, h, w, o = (nest.parallel(size) for size in node.output.shape)
    i, j, c = (nest.reduced(size) for size in node.input(1).shape[1:])
    return nest.iteration(
        [operand(n, 2 * h + i - 1, 2 * w + j - 1, c, outside=0), operand(o, i, j, c)], [operand(n, h, w, o)]
    )

A map may say more than is true (an element that is said to be read, and is not), never less.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

from tinyet.ir import Node, Shape, Tensor


class Kind(Enum):
    """PARALLEL: each of its indices is computed for itself. REDUCED: all of them make one element. SEQUENTIAL: in
    order, each from what the one before left behind."""

    PARALLEL = "parallel"
    REDUCED = "reduced"
    SEQUENTIAL = "sequential"


@dataclass(frozen=True)
class Dim:
    size: int
    kind: Kind = Kind.PARALLEL


@dataclass(frozen=True)
class Index:
    """An axis's index: the sum of dimensions times coefficients, (dimension, coefficient), and an offset."""

    terms: tuple[tuple[int, int], ...] = ()
    offset: int = 0

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return replace(self, offset=self.offset + other)
        return Index(self.terms + other.terms, self.offset + other.offset)

    def __sub__(self, other: int) -> Index:
        return self + -other

    def __mul__(self, factor: int) -> Index:
        return Index(tuple((dim, factor * c) for dim, c in self.terms), factor * self.offset)

    __rmul__ = __mul__

    @property
    def dims(self) -> tuple[int, ...]:
        return tuple(dim for dim, _ in self.terms)

    @property
    def dim(self) -> int | None:
        """The dimension that this index is, as it is; None for every other sum."""
        return (
            self.terms[0][0] if len(self.terms) == 1 and self.terms[0][1] == 1 and not self.offset else None
        )


@dataclass(frozen=True)
class Spans:
    """An axis's indices where no sum gives them: of each index of a dimension, the first one and how many."""

    dim: int
    spans: tuple[tuple[int, int], ...]

    @property
    def dims(self) -> tuple[int, ...]:
        return (self.dim,)


AxisMap = Index | Spans

ONE = Index()
"""Of an axis of one element, which is read at every index of the dimensions."""

Outside = float | Literal["edge", "reflect"] | None
"""What an index outside of the tensor reads: a value, as it is stored; the nearest element, or the one as far behind
that; nothing, it is left out."""


@dataclass(frozen=True)
class Operand:
    """A tensor of the node: how each of its axes is indexed."""

    axes: tuple[AxisMap, ...]
    outside: Outside = None


def operand(*axes: AxisMap, outside: Outside = None) -> Operand:
    return Operand(axes, outside)


@dataclass(frozen=True)
class Iteration:
    """inputs, outputs: in the node's order; None for an input that is absent.

    whole: inputs on all elements of which every element of the output depends beyond what the map says, and how.
    ordered: the results may depend on the order in which the indices of reduced dimensions are taken: that of the
    first input's axes, from the first index to the last. Sums of floats do.
    """

    dims: tuple[Dim, ...]
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand, ...]
    whole: Mapping[int, str]
    ordered: bool = True

    def kind(self, dim: int) -> Kind:
        return self.dims[dim].kind


Iterate = Callable[[Node], Iteration | str]
"""A node's iteration; a text says why it has none."""


def opaque(node: Node) -> Iteration | str:
    """Of operators that nobody has said more of."""
    return f"{node.op} is not described by dimensions"


class Nest:
    """Dimensions that are named as they are made."""

    def __init__(self) -> None:
        self._dims: list[Dim] = []

    def dim(self, size: int, kind: Kind) -> Index:
        self._dims.append(Dim(size, kind))
        return Index(((len(self._dims) - 1, 1),))

    def parallel(self, size: int) -> Index:
        return self.dim(size, Kind.PARALLEL)

    def reduced(self, size: int) -> Index:
        return self.dim(size, Kind.REDUCED)

    def sequential(self, size: int) -> Index:
        return self.dim(size, Kind.SEQUENTIAL)

    def all_parallel(self, shape: Shape) -> list[Index]:
        return [self.parallel(size) for size in shape]

    def all_reduced(self, shape: Shape) -> list[Index]:
        return [self.reduced(size) for size in shape]

    def iteration(
        self,
        inputs: Sequence[Operand | None],
        outputs: Sequence[Operand],
        whole: Mapping[int, str] | None = None,
        *,
        ordered: bool = True,
    ) -> Iteration:
        return Iteration(tuple(self._dims), tuple(inputs), tuple(outputs), whole or {}, ordered)


# ---------------------------------------------------------------- common forms


def broadcast(tensor: Tensor, places: Sequence[AxisMap]) -> Operand:
    """A tensor that broadcasts to a result with these indices, as numpy has it."""
    own = places[len(places) - len(tensor.shape) :]
    return Operand(tuple(ONE if size == 1 else place for size, place in zip(tensor.shape, own, strict=True)))


def elementwise(node: Node) -> Iteration:
    """Of operators that make an element of the output of the same element of their inputs, which broadcast."""
    nest = Nest()
    places = nest.all_parallel(node.outputs[0].shape)
    inputs = [None if t is None else broadcast(t, places) for t in node.inputs]
    return nest.iteration(inputs, [operand(*places)])


def mixing(mixed: Callable[[Node], Iterable[int]]) -> Iterate:
    """Of operators of one input of the output's shape that are computed element by element along all axes but
    `mixed`, along which everything depends on everything. Their other inputs are parameters."""

    def iterate(node: Node) -> Iteration:
        nest, among = Nest(), set(mixed(node))
        out = nest.all_parallel(node.outputs[0].shape)
        read = [
            nest.reduced(size) if axis in among else out[axis]
            for axis, size in enumerate(node.input(0).shape)
        ]
        return nest.iteration([operand(*read), *parameters(node, nest)], [operand(*out)] * len(node.outputs))

    return iterate


def parameters(node: Node, nest: Nest, first: int = 1) -> list[Operand | None]:
    """The inputs from `first` on, on all of which every element depends."""
    return [None if t is None else operand(*nest.all_reduced(t.shape)) for t in node.inputs[first:]]


def everything(node: Node) -> Iteration:
    """Of operators all of whose outputs depend on all of their inputs."""
    nest = Nest()
    outputs = [operand(*nest.all_parallel(t.shape)) for t in node.outputs]
    return nest.iteration(parameters(node, nest, 0), outputs)


# ---------------------------------------------------------------- questions


def contractions(space: Iteration | str) -> int:
    """The products that are added up where two inputs are indexed by the same reduced dimension, as in a matrix product
    or a convolution, one at each point of the iteration; 0 for everything else."""
    if isinstance(space, str):
        return 0
    indexed = [{dim for axis in read.axes for dim in axis.dims} for read in space.inputs if read is not None]
    shared = {dim for one, other in itertools.combinations(indexed, 2) for dim in one & other}
    if not any(space.kind(dim) is Kind.REDUCED for dim in shared):
        return 0
    return math.prod(dim.size for dim in space.dims)
