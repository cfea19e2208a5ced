# SPDX-License-Identifier: Apache-2.0
"""Limits on the sizes of values and graphs, and the types that a value can have.

The limits lie far beyond what a microcontroller holds. They keep every size, offset and product of sizes that is
computed ahead of time, printed into C or allocated on the host within 32 bits and within what a desktop has, whoever
made the graph.
"""

from __future__ import annotations

import math

from tinyet.ir.types import DType, TensorType

MAX_DIMS = 8
MAX_ELEMENTS = 1 << 24
"""Of a tensor that is computed."""

MAX_CONSTANT_ELEMENTS = 1 << 28
"""Of a constant, whose bytes are in the file."""

MAX_GRAPH_BYTES = 1 << 28
"""Of all values of a graph together that are computed."""

MAX_MACS = 1 << 34
"""Multiply-accumulates of one inference."""

MAX_NODES = 1 << 16
"""Of a graph with those in it."""

MAX_DEPTH = 8
"""Of graphs in graphs."""

MAX_NAME = 512
"""Characters of the name of a tensor or a graph."""

MAX_TEXT = 4096
"""Characters of a note, a source line, a label."""

SMALLEST_SCALE = 2.0**-126
"""The least normal float32: some machines take smaller ones for zero."""


def shape_complaint(shape: tuple[int, ...], most: int = MAX_ELEMENTS) -> str | None:
    """The error in a shape of at most `most` elements, or None."""
    if len(shape) > MAX_DIMS:
        return f"it has {len(shape)} dimensions, at most {MAX_DIMS}"
    if any(size < 1 for size in shape):
        return f"its shape {shape} has a dimension of less than 1"
    if math.prod(shape) > most:
        return f"its shape {shape} has more than {most} elements"
    return None


def type_complaint(type_: TensorType, most: int = MAX_ELEMENTS) -> str | None:
    """The error in a value's type, or None: a shape with more than `most` elements, or a quantization that does not
    suit dtype or shape."""
    complaint = shape_complaint(type_.shape, most)
    quant = type_.quant
    if complaint is not None or quant is None:
        return complaint
    if type_.dtype is DType.FLOAT32:
        return "it is float32 and quantized"
    if quant.axis is not None:
        if not 0 <= quant.axis < len(type_.shape):
            return f"it is quantized along axis {quant.axis} of {len(type_.shape)} dimensions"
        if len(quant.scale) != type_.shape[quant.axis]:
            return (
                f"it has {len(quant.scale)} scales for {type_.shape[quant.axis]} indices of axis {quant.axis}"
            )
    low, high = type_.dtype.range
    for zero_point in quant.zero_point:
        if not low <= zero_point <= high:
            return (
                f"its zero point {zero_point} is none of the integers {low} … {high} of {type_.dtype.value}"
            )
    for scale in quant.scale:
        if scale < SMALLEST_SCALE:
            return f"its scale {scale:.9g} is no normal float32"
    return None
