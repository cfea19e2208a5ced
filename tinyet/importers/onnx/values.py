# SPDX-License-Identifier: Apache-2.0
"""The values of ONNX while a quantized graph is read: constants, integers, integers with their scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tinyet.errors import RefusedError
from tinyet.importers.onnx.read import WIDE
from tinyet.ir import Array, Attrs, QuantParams, Shape, Tensor

Float32 = npt.NDArray[np.float32]

EVERY = np.arange(-128, 128)
"""The integers of int8, in the order of `Bytes.reals`."""


@dataclass(frozen=True, eq=False)
class Scale:
    """Of a QuantizeLinear or DequantizeLinear. One scale, or one for each index of `axis`; scales are float32, zero
    points as the file has them. dtype: numpy's name of the integers."""

    scale: Float32
    zero_point: npt.NDArray[np.int64]
    axis: int | None
    dtype: str

    @property
    def shift(self) -> int:
        """The difference of the file's integers and the graph's: uint8 is kept as int8, uint16 as int16."""
        return {"uint8": 128, "uint16": 32768}.get(self.dtype, 0)

    @property
    def is_wide(self) -> bool:
        """Whether of 16 bits."""
        return self.dtype in WIDE

    def per_tensor(self) -> QuantParams:
        """Of the graph's int8 or int16. Raises RefusedError for one that is by channel, of other integers, or of 16
        bits that are not symmetric."""
        if self.axis is not None:
            raise RefusedError("quantizes activations by channel", "quantize activations per tensor")
        if self.dtype not in ("int8", "uint8", *WIDE):
            raise RefusedError(
                f"quantizes to {self.dtype}",
                "use int8, uint8 or int16 activations (activation_type=QuantType.QInt8)",
            )
        zero = int(self.zero_point.reshape(-1)[0]) - self.shift
        if self.is_wide and zero:
            raise RefusedError(
                f"quantizes to {self.dtype} with a zero point of {zero + self.shift}: layers of 16 bits are symmetric",
                'quantize with extra_options={"ActivationSymmetric": True}',
            )
        return QuantParams.per_tensor(float(self.scale.reshape(-1)[0]), zero)

    def broadcast(self, ndim: int) -> tuple[Float32, npt.NDArray[np.int64]]:
        """Scales and zero points that broadcast against a tensor of `ndim` dimensions."""
        if self.axis is None:
            return self.scale.reshape(()), self.zero_point.reshape(())
        shape = [1] * ndim
        shape[self.axis] = -1
        return self.scale.reshape(shape), self.zero_point.reshape(shape)

    def quantized(self, values: Array) -> Array:
        """QuantizeLinear of ONNX: values / scale to nearest, halves to even, plus the zero point, saturated."""
        scale, zero = self.broadcast(values.ndim)
        limits = np.iinfo(self.dtype)
        with np.errstate(all="ignore"):
            steps = np.rint(np.nan_to_num(values.astype(np.float32) / scale, nan=0.0))
        whole = np.clip(steps, -(2.0**40), 2.0**40).astype(np.int64) + zero
        return np.asarray(np.clip(whole, limits.min, limits.max), self.dtype)

    def real(self, values: Array) -> Float32:
        """DequantizeLinear of ONNX, in float32."""
        scale, zero = self.broadcast(values.ndim)
        return np.asarray((values.astype(np.int64) - zero).astype(np.float32) * scale, np.float32)


@dataclass(frozen=True, eq=False)
class Integers:
    """The graph's integers behind a QuantizeLinear (or an input of the model)."""

    tensor: Tensor
    unsigned: bool


@dataclass(frozen=True, eq=False)
class Bytes:
    """Integers, with the real number of each: the result of a DequantizeLinear, and functions of it.

    reals: float32 (256,), in the order of EVERY. functions: those applied since the DequantizeLinear, for readers
    that need the value in float32.
    """

    tensor: Tensor
    unsigned: bool
    reals: Float32
    functions: tuple[Attrs, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether the real numbers are those of the tensor's own scale."""
        return not self.functions

    def of(self, tensor: Tensor) -> Bytes:
        """The same meaning of integers that have been moved."""
        return replace(self, tensor=tensor)


@dataclass(frozen=True, eq=False)
class Numbers:
    """A constant; with `scale`, the result of a DequantizeLinear on the integers in `data`."""

    data: Array
    scale: Scale | None = None
    name: str = ""

    @property
    def shape(self) -> Shape:
        return tuple(self.data.shape)

    @property
    def real(self) -> Array:
        return self.data if self.scale is None else self.scale.real(self.data)

    def integers(self) -> list[int]:
        if self.data.dtype.kind not in "iu" or self.scale is not None:
            raise RefusedError(f"takes a {self.data.dtype} for whole numbers")
        return [int(n) for n in self.data.reshape(-1)]


Value = Tensor | Integers | Bytes | Numbers


def plain_reals(quant: QuantParams) -> Float32:
    """The real number of each int8, as DequantizeLinear computes it."""
    steps = (EVERY - quant.one_zero_point).astype(np.float32)
    return np.asarray(steps * np.float32(quant.one_scale), np.float32)


def shape_of(value: Value) -> Shape:
    return value.shape if isinstance(value, (Tensor, Numbers)) else value.tensor.shape


def axis_of(axis: int, rank: int) -> int:
    """A possibly negative axis as 0 … rank - 1; raises RefusedError outside."""
    if not -rank <= axis < rank:
        raise RefusedError(f"axis {axis} of {rank} dimensions")
    return axis % rank


def axes_of(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    return tuple(sorted({axis_of(a, rank) for a in axes}))
