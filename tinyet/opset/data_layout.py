# SPDX-License-Identifier: Apache-2.0
"""The layout of a tensor's values in memory, where it is not row-major without gaps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tinyet.ir import Tensor


@dataclass(frozen=True)
class DataLayout:
    """A way for a tensor's values to lie that kernels of a delegate write and read, and agree on between layers.

    name:        the field's: which dimensions in which order, in blocks of how many, and the type.
    description: the same for people, in a word or two.
    size:        bytes of a tensor in it.
    align:       what its offset in the arena is a multiple of, in bytes.
    holds:       whether the tensor's shape and type come out even.
    row_major:   the tensor's bytes, row-major, out of those that it has in this layout: the conversion, for who
                 looks at values from outside. No kernel converts: writer and reader both know the layout.
    """

    name: str
    description: str
    size: Callable[[Tensor], int]
    align: int
    holds: Callable[[Tensor], bool]
    row_major: Callable[[Tensor, bytes], bytes]


NO_LAYOUTS: Mapping[Tensor, DataLayout] = MappingProxyType({})
"""All tensors lie row-major."""


@dataclass(frozen=True)
class Layouts:
    """The layout of a node's first input and of its output in the arena; by default row-major without gaps.

    input, output: bytes from one pixel, all values of the last axis, to the next, where other tensors' values lie
    between them; 0 where nothing does. reads, writes: the layout of the first input, and of the output, where that is
    another one.
    """

    input: int = 0
    output: int = 0
    reads: DataLayout | None = None
    writes: DataLayout | None = None


DENSE = Layouts()
"""Row-major without gaps, both."""
