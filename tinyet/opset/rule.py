# SPDX-License-Identifier: Apache-2.0
"""Whether a node is one that the compiler may write: the whole rule of its operator, in one place.

An operator states its rule in four fields of its `Op`: `inputs` (how many), the declared types of its attributes
(attributes.py), `infer` (ranks, sizes and the attributes that decide them) and `check` (dtypes, quantization, values).
Limits that all operators share are in ir/limits.py. The rule holds for what a .tet file says and, after each pass from
the first that leaves whole integer operators, for what the compiler makes.
"""

from __future__ import annotations

import numpy as np

from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node, Tensor
from tinyet.ir.limits import MAX_CONSTANT_ELEMENTS, MAX_ELEMENTS, shape_complaint, type_complaint
from tinyet.opset import attributes
from tinyet.opset.op import Op

CONSTANTS_ONLY = (DType.INT4, DType.INT64)
"""Types that nothing has while a model runs."""

QUANTIZED = (DType.INT8, DType.INT16)
"""Types of what stands for real numbers while a model runs; others stand for themselves."""


def complaints(op: Op, node: Node) -> list[str]:
    """All errors in a node, as far as one lets the others be checked."""
    found = attributes.attribute_complaints(node.attrs) + _wiring(op, node)
    for tensor in dict.fromkeys(t for t in (*node.inputs, *node.outputs) if t is not None):
        complaint = tensor_complaint(tensor)
        if complaint is not None:
            found.append(f"{tensor.name}: {complaint}")
    if found:
        return found
    try:
        shapes = tuple(tuple(shape) for shape in op.infer(node))
    except UnsupportedShape as error:
        return [error.what]
    for shape in shapes:
        complaint = shape_complaint(shape)
        if complaint is not None:
            return [f"its result: {complaint}"]
    actual = tuple(t.shape for t in node.outputs)
    if shapes != actual:
        return [f"{node.op} gives {_shapes(shapes)}, typed {_shapes(actual)}"]
    complaint = op.check(node)
    return [] if complaint is None else [complaint]


def _shapes(shapes: tuple[tuple[int, ...], ...]) -> str:
    return " and ".join(map(str, shapes)) or "nothing"


def _wiring(op: Op, node: Node) -> list[str]:
    """Inputs that are missing or too many."""
    least, most = op.inputs
    if not least <= len(node.inputs) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        return [f"{len(node.inputs)} input(s), {node.op} takes {wanted}"]
    return [f"{node.op} has no input {i}" for i, tensor in enumerate(node.inputs[:least]) if tensor is None]


def tensor_complaint(tensor: Tensor) -> str | None:
    """The error in a tensor, or None."""
    most = MAX_CONSTANT_ELEMENTS if tensor.is_constant else MAX_ELEMENTS
    complaint = type_complaint(tensor.type, most)
    if complaint is not None:
        return complaint
    if tensor.data is None:
        if tensor.dtype in CONSTANTS_ONLY:
            return f"{tensor.dtype.value} is for constants only"
        quant = tensor.type.quant
        if quant is not None and quant.axis is not None:
            return "it is quantized per channel, which only constants can be"
        if (quant is not None) is not (tensor.dtype in QUANTIZED):
            return f"it is {tensor.dtype.value} and {'not ' if quant is None else ''}quantized"
    elif tensor.dtype is DType.INT4 and np.abs(2 * tensor.data.astype(np.int64) + 1).max() > 15:
        return "it holds values that are no int4"
    return None
