# SPDX-License-Identifier: Apache-2.0
"""Inputs that are indices into tables: which values each of their elements may have.

Firmware checks nothing that comes from its caller: an index outside a table takes the table's nearest row, on every
device and in the host reference. PyTorch raises IndexError there, so data that a person gives is refused here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tinyet.errors import DataError
from tinyet.ir import Array, DType, Graph, Node, Tensor, TensorType
from tinyet.ops import evaluate, op_of
from tinyet.ops.cast import Cast
from tinyet.ops.copy import Copy
from tinyet.ops.embedding import Embedding
from tinyet.ops.pad import Pad
from tinyet.ops.where import Where
from tinyet.opset import moves

_WHOLE = (DType.INT8, DType.INT16, DType.INT32, DType.UINT8)

Numbered = list[npt.NDArray[np.int32]]
"""For each element of a value which element of the caller's inputs it is, all counted through from 1, and 0 for none;
more than one array where it may be one or another."""


def _numbered_inputs(graph: Graph) -> dict[Tensor, Numbered]:
    """The caller's inputs of whole numbers, and what they are moved into."""
    found: dict[Tensor, Numbered] = {}
    first = 1
    for tensor in graph.user_inputs:
        if tensor.dtype in _WHOLE:
            numbers = np.arange(first, first + tensor.type.count, dtype=np.int32)
            found[tensor] = [numbers.reshape(tensor.shape)]
        first += tensor.type.count
    for node in graph.nodes:
        if any(t in found for t in node.inputs if t is not None) and (made := _moved(node, found)):
            found[node.outputs[0]] = made
    return found


def _moved(node: Node, numbered: Mapping[Tensor, Numbered]) -> Numbered:
    """The result of an operator that only moves elements, applied to numbered ones; nothing for any other operator."""
    if len(node.outputs) != 1 or node.output.dtype not in _WHOLE:
        return []
    inputs = [numbered.get(t, [np.zeros(t.shape, np.int32)]) for t in node.inputs if t is not None]
    if isinstance(node.attrs, Where):
        return [np.broadcast_to(each, node.output.shape) for side in inputs[1:] for each in side]
    if not isinstance(node.attrs, Cast) and not moves(op_of(node), node):
        return []
    attrs = Copy() if isinstance(node.attrs, Cast) else node.attrs
    if isinstance(attrs, Pad):
        attrs = replace(attrs, value=0.0)
    wide = [_as_int32(t) for t in node.inputs if t is not None]
    mover = Node(attrs, tuple(wide), (_as_int32(node.output),))
    made = []
    for turn in range(max(map(len, inputs))):
        (numbers,) = evaluate(mover, [side[min(turn, len(side) - 1)] for side in inputs])
        made.append(np.asarray(numbers, np.int32))
    return made


def _as_int32(tensor: Tensor) -> Tensor:
    return Tensor(tensor.name, TensorType(tensor.shape, DType.INT32))


def refuse_indices(graph: Graph, arrays: Sequence[Array]) -> None:
    """Raise DataError, listing all, for inputs that hold indices beyond the ends of the tables that read them. arrays:
    one an input, integers, of one sample or of several."""
    tables = [node for node in graph.nodes if isinstance(node.attrs, Embedding)]
    numbered = _numbered_inputs(graph) if tables else {}
    problems = []
    first = 1
    for tensor, given in zip(graph.user_inputs, arrays, strict=True):
        count = tensor.type.count
        for node in tables:
            rows = node.input(1).shape[0]
            read = np.zeros(count, bool)
            for numbers in numbered.get(node.input(0), []):
                own = numbers[(numbers >= first) & (numbers < first + count)]
                read[own - first] = True
            if read.any():
                problems += _outside(tensor, node, rows, np.asarray(given).reshape(-1, count)[:, read])
        first += count
    if problems:
        raise DataError(
            "; ".join(problems),
            hint="give indices that the table has; firmware takes the nearest row for others, without a word",
        )


def _outside(tensor: Tensor, node: Node, rows: int, read: npt.NDArray[Any]) -> list[str]:
    """The error in the elements of an input that a table reads."""
    bad = (read < 0) | (read >= rows)
    if not bad.any():
        return []
    where = f" ({node.where})" if node.where else ""
    what = (
        f"input {tensor.name} holds {int(bad.sum())} index(es) outside 0 … {rows - 1}, the first is "
        f"{int(read[bad][0])}: the table of {node.input(1).name}{where} has {rows} rows"
    )
    return [what]
