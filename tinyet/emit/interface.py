# SPDX-License-Identifier: Apache-2.0
"""The public part of a model's arena, as the templates print it: inputs, outputs and states."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyet.deployment import Deployment
from tinyet.emit.literals import array, packed, real
from tinyet.ir import DType, Tensor
from tinyet.messages.text import c_string
from tinyet.opset import WIDTH


@dataclass(frozen=True)
class IoView:
    """One input, output or state as the templates print it. align: of its address, in
    bytes, where that is the caller's. rows, and bytes and elements of each: of an input that comes row by row."""

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
    align: int = 0
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


@dataclass(frozen=True)
class StatesView:
    """The mark that shows that memory holds this model's states.

    mark: offset in the arena of the word that says that they are set; is_set: that word, of this program and its
    states' places. saved: the first word of saved states, of this program with its states at any place; sum: the
    start value of the sum of their bytes. bytes: of everything that is saved.
    """

    mark: int
    is_set: int
    saved: int
    sum: int
    bytes: int


def io_view(kind: str, index: int, tensor: Tensor, deployment: Deployment) -> IoView:
    quant = tensor.type.quant
    low, high = (0, 0) if tensor.dtype is DType.FLOAT32 else tensor.dtype.range
    shape = ", ".join(map(str, tensor.shape))
    rows = deployment.plan.input_line_buffer(tensor)
    row = ", ".join(map(str, rows.tensor.shape[rows.axis + 1 :])) if rows is not None else ""
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
        align=deployment.plan.buffer_align(tensor),
        rows=rows.height if rows is not None else 0,
        row_bytes=rows.row_bytes if rows is not None else 0,
        row_count=rows.row_bytes // tensor.dtype.bytes if rows is not None else 0,
        row_layout=f"{tensor.dtype.c}, shape ({row}), last dimension contiguous",
    )


HEAD_BYTES = 8
"""Of saved states, before the first of them: whose they are, and the sum of their bytes."""


def states_view(deployment: Deployment, program_hash: str) -> StatesView | None:
    """None for a model without states."""
    plan, states = deployment.plan, [state.value for state in deployment.graph.states]
    if plan.mark is None:
        return None
    places = " ".join(f"{plan.offset(t)}+{t.type.bytes}" for t in states)
    here = hashlib.sha256(f"set {program_hash} {plan.mark} {places}".encode()).digest()
    anywhere = hashlib.sha256(f"saved {program_hash}".encode()).digest()
    return StatesView(
        mark=plan.mark,
        is_set=_word(here),
        saved=_word(anywhere),
        sum=_word(anywhere[4:]),
        bytes=HEAD_BYTES + sum(t.type.bytes for t in states),
    )


def _word(digest: bytes) -> int:
    """Its first four bytes."""
    return int.from_bytes(digest[:4], "little")


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


def labels_macro(macro: str, labels: Sequence[str]) -> list[str]:
    """A macro that initialises an array of strings, so that nothing is stored unless it is used."""
    texts = [c_string(label) for label in labels]
    line = f"#define {macro} {{{', '.join(texts)}}}"
    if len(line) <= WIDTH:
        return [line]
    rows = [f"    {row}" for row in packed([f"{text}," for text in texts])]
    return [f"{row} \\" for row in (f"#define {macro}", "  {", *rows)] + ["  }"]
