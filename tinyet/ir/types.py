# SPDX-License-Identifier: Apache-2.0
"""Element types, quantization and shapes: what is known of a value before it exists."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tinyet.errors import InternalError, QuantizationError

Array = npt.NDArray[np.generic]
Shape = tuple[int, ...]


class DType(enum.Enum):
    """Element type of a tensor; the value is numpy's name, but for int4, which numpy holds as int8.

    INT4 (weights, packed two to a byte by the kernels that read them) and INT64 (biases of int16 layers) are for
    constants only. UINT8 are bytes that come from outside, of a camera: they stand for themselves, are never quantized,
    and can be moved about, cast and looked up, nothing else. UINT32 are energies and magnitudes of signals: they stand
    for themselves, too, and are moved about, cast, and taken by the operators on signals. INT8 and INT16 are always
    quantized: what stands for itself (an int16 of a converter) has scale 1 and zero point 0 (ITSELF).
    """

    INT4 = "int4"
    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT32 = "uint32"
    FLOAT32 = "float32"

    def __init__(self, name: str) -> None:
        """bits, bytes: of one element; an int4 takes a whole byte when it stands alone."""
        self.bits = 4 if name == "int4" else 8 * np.dtype(name).itemsize
        self.bytes = (self.bits + 7) // 8

    @property
    def numpy(self) -> np.dtype[np.generic]:
        return np.dtype("int8" if self is DType.INT4 else self.value)

    @property
    def c(self) -> str:
        """The C type."""
        return "float" if self is DType.FLOAT32 else f"{self.numpy.name}_t"

    @property
    def suffix(self) -> str:
        """Short name in kernel symbols: s4, s8, u8, s16, s32, u32, s64, f32."""
        if self is DType.FLOAT32:
            return "f32"
        return f"{'u' if self in _UNSIGNED else 's'}{self.bits}"

    @property
    def range(self) -> tuple[int, int]:
        """Smallest and largest integer; raises for float32."""
        if self is DType.FLOAT32:
            raise InternalError("float32 has no range of integers")
        if self in _UNSIGNED:
            return 0, (1 << self.bits) - 1
        return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1


_UNSIGNED = (DType.UINT8, DType.UINT32)


@dataclass(frozen=True)
class QuantParams:
    """real = scale * (q - zero_point), per tensor (axis None, one scale) or per index of `axis`.

    Scales are held as the float64 value of a float32, because float32 is what the device computes with.
    Raises QuantizationError when a scale is not finite and positive, or the lengths differ.
    """

    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", tuple(float(np.float32(s)) for s in self.scale))
        object.__setattr__(self, "zero_point", tuple(int(z) for z in self.zero_point))
        if len(self.scale) != len(self.zero_point) or not self.scale:
            raise QuantizationError(f"{len(self.scale)} scales beside {len(self.zero_point)} zero points")
        if self.axis is None and len(self.scale) != 1:
            raise QuantizationError(f"{len(self.scale)} scales but no axis")
        bad = [s for s in self.scale if not (math.isfinite(s) and s > 0)]
        if bad:
            raise QuantizationError(f"scale {bad[0]} is not a positive finite number")

    @staticmethod
    def per_tensor(scale: float, zero_point: int) -> QuantParams:
        return QuantParams((scale,), (zero_point,))

    @property
    def one_scale(self) -> float:
        if self.axis is not None:
            raise InternalError("a per-channel tensor has no single scale")
        return self.scale[0]

    @property
    def one_zero_point(self) -> int:
        if self.axis is not None:
            raise InternalError("a per-channel tensor has no single zero point")
        return self.zero_point[0]


ITSELF = QuantParams.per_tensor(1.0, 0)
"""Of int8 and int16 that stand for themselves: these types must be quantized."""


@dataclass(frozen=True)
class TensorType:
    shape: Shape
    dtype: DType
    quant: QuantParams | None = None

    @cached_property
    def count(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @cached_property
    def bytes(self) -> int:
        return (self.count * self.dtype.bits + 7) // 8

    @property
    def is_itself(self) -> bool:
        """Whether the values are the numbers that they stand for: not quantized, or int16 as a converter gives it; int8
        of scale 1 may well be what quantizing gave."""
        return self.quant is None or (self.dtype is DType.INT16 and self.quant == ITSELF)

    @property
    def scale(self) -> float:
        if self.quant is None:
            raise InternalError(f"tensor of type {self} has no scale")
        return self.quant.one_scale

    @property
    def zero_point(self) -> int:
        if self.quant is None:
            raise InternalError(f"tensor of type {self} has no zero point")
        return self.quant.one_zero_point

    def __str__(self) -> str:
        text = f"{self.dtype.value}[{'x'.join(map(str, self.shape))}]"
        if self.quant is not None:
            if self.quant.axis is None:
                text += f" scale={self.quant.scale[0]:.9g} zero_point={self.quant.zero_point[0]}"
            else:
                text += f" {len(self.quant.scale)} scales on axis {self.quant.axis}"
        return text
