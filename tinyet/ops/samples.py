# SPDX-License-Identifier: Apache-2.0
"""A converter's integers as int16 samples: unsigned ones, left-aligned ones of a word, ones around an offset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import ITSELF, Array, Attrs, DType, Node
from tinyet.ops.shared.shapes import same_shape
from tinyet.opset import ALONE, Call, Kernel, Op, Struct, elementwise, library_call

_MOST_SHIFT = {DType.INT16: (0, 15), DType.INT32: (1, 31)}
"""An offset from a number that has not lost a bit could leave 32 bits."""
_OFFSETS = (-32768, 65535)


@dataclass(frozen=True)
class Samples(Attrs):
    """inputs: x int16 or int32, of any shape. Output: int16, of the same: (x >> shift) - offset, saturated. unsigned:
    the 16 bits of x are a number from 0 to 65535."""

    name: ClassVar[str] = "samples"
    shift: int
    offset: int
    unsigned: bool


def attrs_of(node: Node) -> Samples:
    assert isinstance(node.attrs, Samples)
    return node.attrs


def check(node: Node) -> str | None:
    a, x, out = attrs_of(node), node.input(0), node.output
    if x.dtype not in _MOST_SHIFT or out.dtype is not DType.INT16:
        return f"makes int16 of int16 or int32, not {out.dtype.value} of {x.dtype.value}"
    if any(t.type.quant not in (None, ITSELF) for t in (x, out)):
        return "samples stand for themselves, not for real values"
    low, high = _MOST_SHIFT[x.dtype]
    if not low <= a.shift <= high:
        return f"the shift is {a.shift}, must be {low} to {high}"
    if a.unsigned and x.dtype is not DType.INT16:
        return "only 16 bits can be unsigned"
    if not _OFFSETS[0] <= a.offset <= _OFFSETS[1]:
        return f"the offset is {a.offset}, must be {_OFFSETS[0]} to {_OFFSETS[1]}"
    return None


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    a, x = attrs_of(node), inputs[0]
    assert x is not None
    values = x.astype(np.int64) & (0xFFFF if a.unsigned else -1)
    return (np.clip((values >> a.shift) - a.offset, -32768, 32767).astype(np.int16),)


def kernel(dtype: DType) -> Kernel:
    dtypes = "s16" if dtype is DType.INT16 else f"{dtype.suffix}_s16"
    symbol = f"tinyet_samples_{dtypes}"

    def lower(node: Node, _target: Target) -> Call:
        a = attrs_of(node)
        fields = {
            "count": node.output.type.count,
            "mask": 0xFFFF if a.unsigned else -1,
            "shift": a.shift,
            "offset": a.offset,
        }
        return library_call(symbol, node, [0], Struct("tinyet_samples_params", fields))

    return Kernel(symbol, dtypes, lower, ("tinyet_samples.h",), (f"{symbol}.c",), no_cost_model=ALONE)


OP = Op(
    attrs=Samples,
    summary="a converter's integers as int16 samples",
    infer=same_shape,
    reference=reference,
    iteration=elementwise,
    check=check,
    inplace=(0,),
    kernels=tuple(kernel(dtype) for dtype in _MOST_SHIFT),
)
