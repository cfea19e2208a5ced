# SPDX-License-Identifier: Apache-2.0
"""The cost limits of reading one model, charged before anything is allocated.

A few bytes of a file can ask for constants of gigabytes (a shape to fill, a size to resize to) and for hours of
arithmetic on constants. Whoever makes a constant, computes with constants or adds a value to the graph while a model is
read charges its `Budget` first. What a file brings along itself raises the limits: a large model may have large
constants.
"""

from __future__ import annotations

from tinyet.errors import RefusedError
from tinyet.ir.graph import Node
from tinyet.ir.limits import MAX_ELEMENTS, MAX_GRAPH_BYTES, MAX_NODES

MAX_MADE_BYTES = 1 << 26
"""Of all constants that are made, beside a few times what the file has."""

MAX_FOLDED_ELEMENTS = 1 << 22
"""Read and written in computing with constants, beside a few times the file's bytes."""

MAX_FOLDED_MACS = 1 << 22
"""Multiply-accumulates in computing with constants."""

_TIMES = 8
"""Factor of the file's own constants that may be held and computed: widened, transposed, dequantized."""

_HINT = "compute it before the model is exported, or leave it to the application"


class Budget:
    """The remaining budget of one import. given: bytes of constants in the model's file itself.

    is_spent: whether something was refused; nothing more is to be tried then.
    """

    def __init__(self, given: int = 0) -> None:
        self._limits = {
            "bytes of constants": MAX_MADE_BYTES + _TIMES * given,
            "elements of constants computed with": MAX_FOLDED_ELEMENTS + _TIMES * given,
            "multiply-accumulates on constants": MAX_FOLDED_MACS,
            "bytes of values": MAX_GRAPH_BYTES,
            "nodes": MAX_NODES,
        }
        self._spent = dict.fromkeys(self._limits, 0)
        self.is_spent = False

    def hold(self, size: int) -> None:
        """A constant of so many bytes is about to be made. Raises RefusedError."""
        self._charge("bytes of constants", size)

    def fold(self, elements: int, macs: int = 0) -> None:
        """So many elements of constants are about to be read and written, with so many multiply-accumulates. Raises
        RefusedError."""
        self._charge("elements of constants computed with", elements)
        self._charge("multiply-accumulates on constants", macs)

    def fold_node(self, node: Node, macs: int) -> None:
        """A node is about to be computed of constants. Raises RefusedError."""
        read = sum(tensor.type.count for tensor in node.inputs if tensor is not None)
        self.fold(read + sum(tensor.type.count for tensor in node.outputs), macs)
        # int4 is computed with as bytes.
        self.hold(sum(tensor.type.count * tensor.dtype.bytes for tensor in node.outputs))

    def run(self, elements: int, size: int) -> None:
        """A value of so many elements and bytes is about to be one of the graph's. Raises RefusedError."""
        if elements > MAX_ELEMENTS:
            raise RefusedError(f"makes a value of {elements:,} elements, at most {MAX_ELEMENTS:,}", _HINT)
        self._charge("nodes", 1)
        self._charge("bytes of values", size)

    def _charge(self, what: str, amount: int) -> None:
        spent, limit = self._spent[what], self._limits[what]
        if spent + amount > limit:
            self.is_spent = True
            before = f", beside {spent:,} before it" if spent else ""
            raise RefusedError(f"asks for {amount:,} {what}{before}; at most {limit:,}", _HINT)
        self._spent[what] = spent + amount
