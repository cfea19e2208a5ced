# SPDX-License-Identifier: Apache-2.0
"""The graph that every pass reads and writes: types, values, nodes, and the check that it is well formed."""

from __future__ import annotations

from tinyet.ir.graph import Attrs, Graph, Node, Note, Origin, State, Tensor, constant, place_of, substitute
from tinyet.ir.size import MOST_SIZES, Size, size_decoded
from tinyet.ir.text import attrs_text, subgraphs, to_text
from tinyet.ir.types import ITSELF, Array, DType, QuantParams, Shape, TensorType
from tinyet.ir.verify import problems_of, size_complaints

__all__ = [
    "ITSELF",
    "MOST_SIZES",
    "Array",
    "Attrs",
    "DType",
    "Graph",
    "Node",
    "Note",
    "Origin",
    "QuantParams",
    "Shape",
    "Size",
    "State",
    "Tensor",
    "TensorType",
    "attrs_text",
    "constant",
    "place_of",
    "problems_of",
    "size_complaints",
    "size_decoded",
    "subgraphs",
    "substitute",
    "to_text",
]
