# SPDX-License-Identifier: Apache-2.0
"""What a model shows of its arena: inputs, outputs and states, as the templates print them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyet.deployment import Deployment
from tinyet.emit.literals import array, real
from tinyet.ir import DType, Tensor


@dataclass(frozen=True)
class IoView:
    """One input, output or state as the templates print it. rows, and bytes and elements of each: of an input that
    comes row by row."""

    kind: str
    index: int
    comment: str
    layout: str
    ctype: str
    offset: int
    bytes: int
    count: int
    scale: str | None
    zero_point: int
    low: int
    high: int
    rows: int = 0
    row_bytes: int = 0
    row_count: int = 0
    row_layout: str = ""


@dataclass(frozen=True)
class KeptView:
    """A state. fill: the byte that it is full of at first; or, where there is none, its values as lines of C."""

    io: IoView
    fill: int | None
    lines: tuple[str, ...]


def io_view(kind: str, index: int, tensor: Tensor, deployment: Deployment) -> IoView:
    quant = tensor.type.quant
    low, high = (0, 0) if tensor.dtype is DType.FLOAT32 else tensor.dtype.range
    shape = ", ".join(map(str, tensor.shape))
    rows = deployment.plan.taken_rows(tensor)
    row = ", ".join(map(str, rows.tensor.shape[2:])) if rows is not None else ""
    return IoView(
        kind=kind,
        index=index,
        comment=f"{tensor.name}, {tensor.type}",
        layout=f"{tensor.dtype.c}[{tensor.type.count}], shape ({shape}), last dimension contiguous.",
        ctype=tensor.dtype.c,
        offset=deployment.plan.offset(tensor),
        bytes=tensor.type.bytes,
        count=tensor.type.count,
        scale=real(quant.one_scale) if quant is not None else None,
        zero_point=quant.one_zero_point if quant is not None else 0,
        low=low,
        high=high,
        rows=rows.tensor.shape[1] if rows is not None else 0,
        row_bytes=rows.row_bytes if rows is not None else 0,
        row_count=rows.row_bytes // tensor.dtype.bytes if rows is not None else 0,
        row_layout=f"{tensor.dtype.c}, shape ({row}), last dimension contiguous",
    )


def kept_views(deployment: Deployment) -> list[KeptView]:
    """The states, in their order."""
    found = []
    for number, state in enumerate(deployment.graph.states):
        first = np.unique(np.frombuffer(state.initial.array.tobytes(), np.uint8))
        uniform = len(first) == 1
        found.append(
            KeptView(
                io_view("state", number, state.value, deployment),
                int(first[0]) if uniform else None,
                () if uniform else tuple(array(state.initial.array)),
            )
        )
    return found
