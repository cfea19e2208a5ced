# SPDX-License-Identifier: Apache-2.0
"""Inputs that are indices into tables: which values they may have.

Firmware checks nothing that comes from its caller: an index outside a table takes the table's nearest row, on every
device and in the host reference. PyTorch raises IndexError there, so data that a person gives is refused here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tinyet.errors import DataError
from tinyet.ir import Array, DType, Graph, Node, Tensor
from tinyet.ops.embedding import Embedding

_WHOLE = (DType.INT32, DType.UINT8)


def tables_of(graph: Graph) -> dict[Tensor, Node]:
    """The caller's inputs that reach a table as its indices, through what only moves them → of those tables' nodes the
    one with the fewest rows."""
    found: dict[Tensor, Node] = {}
    for start in graph.user_inputs:
        if start.dtype not in _WHOLE:
            continue
        stack, seen = [start], set()
        while stack:
            tensor = stack.pop()
            if tensor in seen:
                continue
            seen.add(tensor)
            for node in graph.consumers(tensor):
                if not isinstance(node.attrs, Embedding):
                    stack += [out for out in node.outputs if out.dtype in _WHOLE]
                elif start not in found or _rows(node) < _rows(found[start]):
                    found[start] = node
    return found


def _rows(node: Node) -> int:
    return node.input(1).shape[0]


def refuse_indices(graph: Graph, arrays: Sequence[Array]) -> None:
    """Raise DataError, listing all, for inputs that hold indices beyond the ends of their tables. arrays: one an input,
    integers, of one sample or of several."""
    problems = []
    for tensor, node in tables_of(graph).items():
        array: npt.NDArray[np.integer[Any]] = np.asarray(arrays[graph.user_inputs.index(tensor)])
        rows = _rows(node)
        bad = (array < 0) | (array >= rows)
        if bad.any():
            where = f" ({node.where})" if node.where else ""
            problems.append(
                f"input {tensor.name} holds {int(bad.sum())} index(es) outside 0 … {rows - 1}, the first is "
                f"{int(array[bad][0])}: the table of {node.input(1).name}{where} has {rows} rows"
            )
    if problems:
        raise DataError(
            "; ".join(problems),
            hint="give indices that the table has; firmware takes the nearest row for others, without a word",
        )
