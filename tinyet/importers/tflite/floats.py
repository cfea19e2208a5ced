# SPDX-License-Identifier: Apache-2.0
"""A file whose values are floats as one whose weights are floats, too: what its layers are before they are quantized.

Dynamic-range files have int8 weights beside float values; float16 files widen theirs by DEQUANTIZE, which the importer
computes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from tinyet.errors import Complaints, RefusedError
from tinyet.importers.tflite.values import constant_of
from tinyet.ir.budget import Budget
from tinyet.numerics import dequantize
from tinyet.tflite import Model, Subgraph, TensorInfo

_INTEGERS = ("int2", "int4", "int8", "uint8", "int16")


def holds_integers(model: Model) -> bool:
    """Whether values that the model takes or computes are integers that stand for real numbers."""
    for subgraph in model.subgraphs:
        made = [index for op in subgraph.operators for index in op.outputs]
        for index in (*subgraph.inputs, *made):
            info = subgraph.tensors[index]
            if info.type in _INTEGERS and info.quantization is not None:
                return True
    return False


def with_float_weights(model: Model, file: str) -> Model:
    """The same model; constants that are integers with a scale are the float32 that they stand for.

    model: one that holds no integers (`holds_integers`). Raises UnsupportedOp (UnsupportedShape) with all weights that
    have no numbers, or that are more than the budget of the file has.
    """
    held = {id(t.data): len(t.data) for g in model.subgraphs for t in g.tensors if t.data}
    budget, complaints = Budget(sum(held.values())), Complaints(file)
    subgraphs: list[Subgraph] = []
    for subgraph in model.subgraphs:
        # What DEQUANTIZE reads stays as it is.
        read = {i for op in subgraph.operators if op.code != "DEQUANTIZE" for i in op.inputs if i >= 0}
        tensors = list(subgraph.tensors)
        for index in sorted(read):
            info = tensors[index]
            if info.data is not None and info.type in _INTEGERS and info.quantization is not None:
                complaints.attempt(f"weights {info.name}", partial(_widen, tensors, index, budget))
            if budget.is_spent:
                complaints.raise_any()
        subgraphs.append(replace(subgraph, tensors=tuple(tensors)))
    complaints.raise_any()
    return replace(model, subgraphs=tuple(subgraphs))


def _widen(tensors: list[TensorInfo], index: int, budget: Budget) -> None:
    info = tensors[index]
    found = constant_of(info, budget)
    if found.quant is None:
        raise RefusedError("have no scale")
    budget.hold(4 * found.data.size)
    data = dequantize(found.data, found.quant).astype("<f4")
    tensors[index] = replace(
        info, type="float32", data=np.ascontiguousarray(data).tobytes(), quantization=None
    )
