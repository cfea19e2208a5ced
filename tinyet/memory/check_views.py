# SPDX-License-Identifier: Apache-2.0
"""Proofs that outputs without a call are bytes of their inputs: the operators' references say so, of random values."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator

import numpy as np

from tinyet.errors import InternalError
from tinyet.ir import Array, Node, Tensor
from tinyet.memory.accesses import Alias, Piece, Span
from tinyet.opset import Op


def _numbered(span: Span) -> Iterator[tuple[tuple[int, int], int]]:
    """The runs of a span, each with the number of its first byte."""
    number = 0
    for run in span.runs():
        yield run, number
        number += run[1]


def aliases_tried(node: Node, span: Callable[[Tensor], Span], op: Op) -> list[Alias]:
    """The parts of an elided node's outputs according to the plan, tried out on the node's reference."""
    sources = [t for t in dict.fromkeys(node.inputs) if t is not None and not t.is_constant]
    # Contents: (offset, bytes, tensor, its byte there); of two at one place either is right.
    lying = sorted(
        (at, size, number, number_of_byte)
        for number, t in enumerate(sources)
        for (at, size), number_of_byte in _numbered(span(t))
    )
    starts = [at for at, *_ in lying]
    result = []
    for output in node.outputs:
        pieces: list[Piece] = []
        for (begin, size), number_of_byte in _numbered(span(output)):
            at, shift = begin, number_of_byte - begin
            while at < begin + size:
                before = (lying[i] for i in range(bisect_right(starts, at) - 1, -1, -1))
                here = next((run for run in before if at < run[0] + run[1]), None)
                if here is None:
                    raise InternalError(
                        f"{node.op} has no call, but byte {at + shift} of {output.name} is in none of its inputs",
                        node.where,
                    )
                start, length, number, first = here
                stop = min(begin + size, start + length)
                pieces.append(Piece(at + shift, stop - at, sources[number].name, first + at - start))
                at = stop
        result.append(Alias(output.name, tuple(pieces)))
    random = np.random.default_rng(len(sources))
    values = {t: _random(t, random) for t in sources}
    arrays = [None if t is None else t.data if t.data is not None else values[t] for t in node.inputs]
    raw = {t.name: values[t].tobytes() for t in sources}
    for alias, array in zip(result, op.reference(node, arrays), strict=True):
        claimed = b"".join(raw[p.source][p.source_start : p.source_start + p.bytes] for p in alias.pieces)
        if claimed != np.ascontiguousarray(array).tobytes():
            raise InternalError(
                f"{node.op} has no call, but {alias.tensor} is not what lies there", node.where
            )
    return result


def check_view(node: Node, op: Op) -> None:
    """Raise InternalError unless a node's output is the bytes of its only input that is no constant."""
    sources = {
        t: _random(t, np.random.default_rng(1)) for t in node.inputs if t is not None and not t.is_constant
    }
    values = [None if t is None else t.data if t.data is not None else sources[t] for t in node.inputs]
    (output,) = op.reference(node, values)
    if [np.ascontiguousarray(output).tobytes()] != [value.tobytes() for value in sources.values()]:
        raise InternalError(f"the rows of {node.output.name} are not those of the input", node.where)


def _random(tensor: Tensor, random: np.random.Generator) -> Array:
    """Any bits: the operator must not look at them."""
    count = tensor.type.count * tensor.dtype.numpy.itemsize
    return np.frombuffer(random.bytes(count), tensor.dtype.numpy).reshape(tensor.shape)
