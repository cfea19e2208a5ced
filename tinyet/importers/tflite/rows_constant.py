# SPDX-License-Identifier: Apache-2.0
"""Rows whose results stand in the file before anything runs: shapes, ranks, ranges, zeros."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.tflite.context import Context, Row
from tinyet.ir import Array

_TYPES = {"float32": np.float32, "int64": np.int64, "int8": np.int8, "int16": np.int16}


def _as_declared(ctx: Context, data: Array) -> None:
    """The values in the output's type and shape."""
    info = ctx.out_info()
    if data.size != int(np.prod(info.shape, dtype=np.int64)):
        raise RefusedError(f"gives {data.size} values, the file says {list(info.shape)}")
    ctx.fold(data.reshape(info.shape).astype(_TYPES.get(info.type, np.int32)))


def shape(ctx: Context) -> None:
    _as_declared(ctx, np.array(ctx.info(0).shape, np.int64))


def rank(ctx: Context) -> None:
    _as_declared(ctx, np.array(len(ctx.info(0).shape)))


def zeros_like(ctx: Context) -> None:
    """Zeros as they stand in memory, whatever the zero point."""
    _as_declared(ctx, np.zeros(ctx.out_info().shape))


def range_(ctx: Context) -> None:
    """inputs: start, limit, step."""
    ctx.expect_inputs(3)
    start, limit, step = (
        ctx.constant(position, role).data.reshape(-1)[0]
        for position, role in enumerate(("start", "limit", "step"))
    )
    if not step:
        raise RefusedError("has a step of 0")
    _as_declared(ctx, np.arange(start, limit, step))


def broadcast_args(ctx: Context) -> None:
    """The common shape of two shapes."""
    ctx.expect_inputs(2)
    a, b = ctx.numbers(0, "first shape"), ctx.numbers(1, "second shape")
    try:
        common = np.broadcast_shapes(tuple(a), tuple(b))
    except ValueError:
        raise RefusedError(f"has the shapes {a} and {b}, which do not broadcast") from None
    _as_declared(ctx, np.array(common, np.int64))


ROWS: Mapping[str, Row] = {
    "SHAPE": shape,
    "RANK": rank,
    "ZEROS_LIKE": zeros_like,
    "RANGE": range_,
    "BROADCAST_ARGS": broadcast_args,
}
