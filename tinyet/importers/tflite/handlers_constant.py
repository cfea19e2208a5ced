# SPDX-License-Identifier: Apache-2.0
"""Handlers whose results are known from the file: shapes, ranks, ranges, zeros."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.tflite.building import broadcast
from tinyet.importers.tflite.context import Context, Handler
from tinyet.ir import Array
from tinyet.ir.limits import MAX_DIMS, shape_complaint

_TYPES = {"float32": np.float32, "int64": np.int64, "int8": np.int8, "int16": np.int16}


def _expect_count(ctx: Context, count: int) -> None:
    """The output has so many elements, and there is room for them. Raises RefusedError."""
    shape = ctx.out_info().shape
    if (complaint := shape_complaint(shape)) is not None:
        raise RefusedError(f"has an output of which {complaint}")
    if count != math.prod(shape):
        raise RefusedError(f"gives {count} values, the file says {list(shape)}")
    ctx.all.budget.hold(8 * count)


def _as_declared(ctx: Context, data: Array) -> None:
    """The values in the output's type and shape."""
    _expect_count(ctx, data.size)
    info = ctx.out_info()
    ctx.fold(data.reshape(info.shape).astype(_TYPES.get(info.type, np.int32)))


def shape(ctx: Context) -> None:
    _as_declared(ctx, np.array(ctx.info(0).shape, np.int64))


def rank(ctx: Context) -> None:
    _as_declared(ctx, np.array(len(ctx.info(0).shape)))


def zeros_like(ctx: Context) -> None:
    """Zeros as bytes in memory, for any zero point."""
    shape = ctx.out_info().shape
    _expect_count(ctx, math.prod(shape))
    _as_declared(ctx, np.zeros(shape))


def range_(ctx: Context) -> None:
    """inputs: start, limit, step."""
    ctx.expect_inputs(3)
    start, limit, step = (_number(ctx, i, role) for i, role in enumerate(("start", "limit", "step")))
    if not step:
        raise RefusedError("has a step of 0")
    with np.errstate(over="ignore"):
        count = (limit - start) / step
    if not -(2**31) < count < 2**31:
        raise RefusedError(f"goes from {start} to {limit} in steps of {step}")
    _expect_count(ctx, max(0, math.ceil(count)))
    kind = np.float32 if ctx.out_info().type == "float32" else np.int64
    # One step after another, as the original adds them.
    numbers = np.full(max(0, math.ceil(count)), step, kind)
    numbers[:1] = start
    _as_declared(ctx, np.cumsum(numbers, dtype=kind))


def _number(ctx: Context, position: int, role: str) -> Any:
    """An input of one finite number. Raises RefusedError."""
    data = ctx.constant(position, role).data
    if data.size != 1 or not np.isfinite(data).all():
        raise RefusedError(f"has a {role} that is no finite number")
    number = data.reshape(-1)[0]
    return number if data.dtype.kind == "f" else int(number)


def broadcast_args(ctx: Context) -> None:
    """The common shape of two shapes."""
    ctx.expect_inputs(2)
    a, b = ctx.numbers(0, "first shape"), ctx.numbers(1, "second shape")
    if max(len(a), len(b)) > MAX_DIMS or any(not 0 <= n < 2**31 for n in (*a, *b)):
        raise RefusedError("has shapes that no tensor has")
    _as_declared(ctx, np.array(broadcast(a, b), np.int64))


HANDLERS: Mapping[str, Handler] = {
    "SHAPE": shape,
    "RANK": rank,
    "ZEROS_LIKE": zeros_like,
    "RANGE": range_,
    "BROADCAST_ARGS": broadcast_args,
}
