# SPDX-License-Identifier: Apache-2.0
"""The file's tensors in the graph: types, and the arrays of constants.

uint8 that is quantized becomes int8, 128 less, with a zero point of 128 less: the same real numbers. int64, and truth
values, are int32 in the graph. float16 and bfloat16 constants become float32, which holds them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tinyet.errors import RefusedError
from tinyet.ir import Array, DType, QuantParams, Shape, TensorType
from tinyet.ir.budget import Budget
from tinyet.ir.limits import MAX_CONSTANT_ELEMENTS, shape_complaint
from tinyet.tflite import Quantization, TensorInfo

_HALF = 128
_INT32_RANGE = -(2**31), 2**31 - 1

COMPUTED = {
    "float32": DType.FLOAT32,
    "int8": DType.INT8,
    "uint8": DType.INT8,
    "int16": DType.INT16,
    "int32": DType.INT32,
    "uint32": DType.UINT32,
    "int64": DType.INT32,
    "bool": DType.INT32,
}
"""Types of computed values in the graph."""

_NUMPY = {
    "float32": "<f4",
    "float16": "<f2",
    "float64": "<f8",
    "int8": "<i1",
    "uint8": "<u1",
    "int16": "<i2",
    "uint16": "<u2",
    "int32": "<i4",
    "uint32": "<u4",
    "int64": "<i8",
    "uint64": "<u8",
}


@dataclass(frozen=True, eq=False)
class Constant:
    """A constant of the file. data: its numbers (float32 for halves; int8 for int4 and quantized uint8; otherwise its
    own type). dtype: INT4 where numpy's type does not say it."""

    name: str
    data: Array
    quant: QuantParams | None = None
    dtype: DType | None = None

    @property
    def shape(self) -> Shape:
        return tuple(self.data.shape)

    def reshaped(self, shape: Shape) -> Constant:
        return replace(self, data=self.data.reshape(shape))


def quant_of(info: TensorInfo) -> QuantParams | None:
    """The quantization in the graph's terms; None if there is none. Raises RefusedError for an invalid one."""
    found = info.quantization
    if found is None:
        return None
    shift = _HALF if info.type == "uint8" else 0
    axis = None if len(found.scale) == 1 else found.axis
    if axis is not None and not (0 <= axis < len(info.shape) and len(found.scale) == info.shape[axis]):
        raise RefusedError(
            f"tensor {info.name!r} has {len(found.scale)} scales for axis {axis} of {list(info.shape)}"
        )
    if len(set(found.scale)) == 1 and len(set(found.zero_point)) == 1 and info.data is None:
        axis, found = None, Quantization(found.scale[:1], found.zero_point[:1])
    if not all(np.isfinite(s) and s > 0 for s in found.scale):
        raise RefusedError(f"tensor {info.name!r} has a scale that is not positive and finite")
    if not all(abs(z) <= _INT32_RANGE[1] for z in found.zero_point):
        raise RefusedError(f"tensor {info.name!r} has a zero point that is no int32")
    return QuantParams(found.scale, tuple(z - shift for z in found.zero_point), axis)


def type_of(info: TensorInfo) -> TensorType:
    """The type that a computed tensor has in the graph. Raises RefusedError for one that it cannot have."""
    if info.unusual:
        raise RefusedError(f"tensor {info.name!r} is {info.unusual}", shape=False)
    dtype = COMPUTED.get(info.type)
    if info.type == "uint8" and info.quantization is None:
        dtype = DType.UINT8
    if dtype is None:
        raise RefusedError(
            f"computes {info.type} values", "int8, int16, int32 and float32 can be", shape=False
        )
    if (complaint := shape_complaint(info.shape)) is not None:
        raise RefusedError(f"tensor {info.name!r}: {complaint}")
    quant = quant_of(info)
    if quant is not None and quant.axis is not None:
        raise RefusedError(
            f"tensor {info.name!r} is computed, and quantized along axis {quant.axis}",
            "quantize activations per tensor",
        )
    if dtype not in (DType.INT8, DType.INT16):
        return TensorType(info.shape, dtype)
    # Integers without a scale are whole numbers.
    return TensorType(info.shape, dtype, quant or QuantParams.per_tensor(1.0, 0))


def constant_of(info: TensorInfo, budget: Budget) -> Constant:
    """The constant that a tensor is. Raises RefusedError where it is of a type that has no numbers, or the budget has
    no room for it: tensors can share their bytes in the file."""
    if info.unusual:
        raise RefusedError(f"tensor {info.name!r} is {info.unusual}", shape=False)
    assert info.data is not None
    if (complaint := shape_complaint(info.shape, MAX_CONSTANT_ELEMENTS)) is not None:
        raise RefusedError(f"tensor {info.name!r}: {complaint}")
    raw, count = info.data, math.prod(info.shape)
    budget.hold(4 * count)
    if info.type in ("int4", "int2"):
        bits = 4 if info.type == "int4" else 2
        return Constant(info.name, _narrow(raw, bits, count).reshape(info.shape), quant_of(info), DType.INT4)
    if info.type == "bool":
        return Constant(info.name, np.frombuffer(raw, np.uint8).reshape(info.shape) != 0)
    if info.type == "bfloat16":
        wide = np.frombuffer(raw, "<u2").astype(np.uint32) << 16
        return Constant(info.name, wide.view(np.float32).reshape(info.shape))
    if info.type not in _NUMPY:
        raise RefusedError(f"tensor {info.name!r} holds {info.type} values", shape=False)
    data = np.frombuffer(raw, _NUMPY[info.type]).reshape(info.shape)
    data = np.ascontiguousarray(data.astype(data.dtype.newbyteorder("="))).reshape(info.shape)
    # Biases and indices are integers whose meaning the operator defines; scales that converters wrote beside them are
    # ignored.
    quant = quant_of(info) if info.type in ("int8", "uint8", "int16") else None
    if info.type in ("float16", "float64"):
        data = data.astype(np.float32)
    elif info.type == "uint8" and quant is not None:
        data = (data ^ _HALF).astype(np.uint8).view(np.int8)
    return Constant(info.name, data, quant)


def _narrow(raw: bytes, bits: int, count: int) -> Array:
    """Numbers of a few bits, the first in a byte's lowest, as int8."""
    every = np.frombuffer(raw, np.uint8)[:, None] >> np.arange(0, 8, bits, dtype=np.uint8)
    unsigned = (every & ((1 << bits) - 1)).reshape(-1)[:count].astype(np.int8)
    half = 1 << (bits - 1)
    return np.asarray((unsigned ^ half) - half, np.int8)
