# SPDX-License-Identifier: Apache-2.0
"""Numbers of one type as another, as C converts: to float32 bytes exactly, int32 to the nearest one, ties to even;
between integers the lowest bits are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tinyet.boards.cpus import Target
from tinyet.ir import ITSELF, Array, Attrs, DType, Node
from tinyet.ops.shared.counting import values
from tinyet.ops.shared.movement import copied_whole, lower_copy
from tinyet.ops.shared.shapes import same_shape
from tinyet.opset import ALONE, Call, CostModel, Kernel, Op, Struct, elementwise, library_call

_FORMS = (
    (DType.UINT8, DType.FLOAT32),
    (DType.INT32, DType.FLOAT32),
    (DType.INT8, DType.INT32),
    (DType.INT16, DType.INT32),
    (DType.INT32, DType.INT8),
    (DType.INT32, DType.INT16),
    (DType.INT32, DType.UINT32),
    (DType.UINT32, DType.INT32),
)


@dataclass(frozen=True)
class Cast(Attrs):
    """inputs: x of any shape: numbers, not what stands for real ones. From uint8 or int32 to float32, from int8, int16
    or uint32 to int32 or back."""

    name: ClassVar[str] = "cast"


def check(node: Node) -> str | None:
    x, out = node.input(0), node.output
    if (x.dtype, out.dtype) not in _FORMS:
        return (
            f"casts uint8 and int32 to float32, and int32 from and to other integers, not {x.dtype.value} to "
            + (out.dtype.value)
        )
    for tensor in (x, out):
        if tensor.type.quant not in (None, ITSELF):
            return f"{tensor.name} stands for real values: it is to be dequantized"
    return None


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    assert inputs[0] is not None
    return (inputs[0].astype(node.output.dtype.numpy),)


def kernel(from_: DType, to: DType) -> Kernel:
    dtypes = f"{from_.suffix}_{to.suffix}"
    if DType.UINT32 in (from_, to):
        return Kernel(
            "tinyet_copy",
            dtypes,
            lower_copy,
            ("tinyet_copy.h",),
            ("tinyet_copy.c",),
            cost_model=CostModel(copied_whole),
        )
    symbol = f"tinyet_cast_{dtypes}"

    def lower(node: Node, _target: Target) -> Call:
        params = Struct("tinyet_cast_params", {"count": node.output.type.count})
        return library_call(symbol, node, [0], params)

    files = ("tinyet_cast.h",), (f"{symbol}.c",)
    if to is DType.FLOAT32:
        return Kernel(symbol, dtypes, lower, *files, cost_model=CostModel(values))
    return Kernel(symbol, dtypes, lower, *files, no_cost_model=ALONE)


OP = Op(
    attrs=Cast,
    summary="numbers of one type as another",
    infer=same_shape,
    reference=reference,
    iteration=elementwise,
    check=check,
    kernels=tuple(kernel(*form) for form in _FORMS),
)
