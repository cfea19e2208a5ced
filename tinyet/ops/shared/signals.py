# SPDX-License-Identifier: Apache-2.0
"""Shared parts of operators on signals: their type rule.

They are TFLM's (the `signal` library of tensorflow/tflite-micro), which work on integers as they are, whatever these
stand for: the scale of an int16 tensor says nothing to them. It is kept, because int16 is quantized everywhere; where
nothing is known of it, it is 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, DType, Node, Shape, Tensor
from tinyet.ops.shared.integers import check_activations
from tinyet.opset import Index, Iteration, Nest, Operand, operand

Words = npt.NDArray[np.uint64]
"""Numbers of up to 64 bits; products and sums of these wrap as in C."""


def check_types(
    node: Node, inputs: Sequence[DType], outputs: Sequence[DType], constants: Sequence[int] = ()
) -> str | None:
    """Check that inputs and outputs have these types, that an int16 one is quantized with the zero point 0 unless it
    is a constant, and that the inputs `constants` are constants of one dimension."""
    tensors = [node.input(index) for index in range(len(inputs))]
    for tensor, wanted in zip((*tensors, *node.outputs), (*inputs, *outputs), strict=True):
        if tensor.dtype is not wanted:
            return f"{tensor.name} must be {wanted.value}, is {tensor.dtype.value}"
        if wanted is DType.INT16 and not tensor.is_constant and (complaint := check_activations(tensor)):
            return complaint
    for index in constants:
        if not tensors[index].is_constant:
            return f"{tensors[index].name} must be a constant"
    return None


def check_moved(node: Node, *indices: int) -> str | None:
    """Check that the inputs of these numbers and all outputs of their type have one quantization."""
    first = node.input(indices[0])
    moved = [node.input(index) for index in indices]
    moved += [t for t in node.outputs if t.dtype is first.dtype]
    if any(t.type.quant != first.type.quant for t in moved):
        return f"{node.op} moves values, so all of {first.dtype.value} must be quantized alike"
    return None


def check_range(name: str, value: int, low: int, high: int) -> str | None:
    """Check that an attribute lies in low … high."""
    return None if low <= value <= high else f"{name} is {value}, must be {low} to {high}"


def expect_vector(node: Node, index: int, count: int | None = None) -> int:
    """The length of an input of one dimension, `count` where it is given. Raises UnsupportedShape."""
    shape = node.input(index).shape
    if len(shape) != 1 or count not in (None, shape[0]):
        wanted = "one dimension" if count is None else f"the shape ({count},)"
        raise UnsupportedShape(f"{node.op}: input {index} must have {wanted}, has {shape}", node.where)
    return shape[0]


def frames_of(shape: Shape) -> tuple[int, int]:
    """Number of rows, and their length."""
    return math.prod(shape[:-1]), shape[-1]


def iterate_signals(node: Node) -> Iteration:
    """Of operators on signals along the last axis, or the last two, several side by side. What they keep from run to
    run is along the last axis, too; numbers of one element say how far they are."""
    nest = Nest()
    beside = nest.all_parallel(min((t.shape[:-1] for t in node.outputs if t.shape), key=len))

    def along_last(tensor: Tensor, make: Callable[[Shape], list[Index]]) -> Operand:
        own = beside[: len(tensor.shape[:-1])] if tensor.shape else []
        return operand(*own, *make(tensor.shape[len(own) :]))

    inputs = [None if t is None else along_last(t, nest.all_reduced) for t in node.inputs]
    return nest.iteration(inputs, [along_last(t, nest.all_parallel) for t in node.outputs])


def words(x: Array | None) -> Words:
    """uint32 as numbers that may grow."""
    assert x is not None
    return x.astype(np.uint64)


def bits(x: Words) -> Words:
    """Number of bits of each number: the place of the highest set bit, from 1; 0 for 0. Numbers of 32 bits."""
    # float64 is exact for these.
    return np.asarray(np.frexp(x.astype(np.float64))[1], np.uint64)
