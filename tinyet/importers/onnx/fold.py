# SPDX-License-Identifier: Apache-2.0
"""Constant folding of constants and shapes at import: Shape, Gather, Concat, Cast …

The arithmetic is that of the `onnx` package's own reference implementation, one node at a time, and only of operators
in a list, within the import's budget.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.onnx.read import OnnxNode
from tinyet.importers.onnx.sizes import result_elements
from tinyet.ir import Array
from tinyet.ir.budget import Budget
from tinyet.ir.limits import MAX_DIMS

FOLDED = frozenset(
    """
    Abs Add And ArgMax ArgMin BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Clip Compress
    Concat Cos CumSum Div Equal Erf Exp Expand EyeLike Flatten Floor Gather GatherElements GatherND Greater
    GreaterOrEqual Identity IsInf IsNaN Less LessOrEqual Log MatMul Max Mean Min Mod Mul Neg NonZero Not OneHot Or Pad
    Pow Range Reciprocal ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu
    Reshape Round ScatterElements ScatterND Sigmoid Sign Sin Size Slice Split Sqrt Squeeze Sub Sum Tanh Tile TopK
    Transpose Trilu Unsqueeze Where Xor
    """.split()  # noqa: SIM905
)


def constant_of(node: OnnxNode) -> Array:
    """The value of a Constant. Raises RefusedError for one that is no numbers."""
    given = node.attributes
    if isinstance(given.get("value"), np.ndarray):
        value: Array = given["value"]
        return value
    for key, dtype in (
        ("value_float", np.float32),
        ("value_floats", np.float32),
        ("value_int", np.int64),
        ("value_ints", np.int64),
    ):
        if given.get(key) is not None:
            try:
                return np.asarray(given[key], dtype)
            except (ValueError, TypeError, OverflowError):
                raise RefusedError(f"has {key} = {str(given[key])[:60]}", shape=False) from None
    raise RefusedError("holds no numbers", "store a dense tensor", shape=False)


def filled(node: OnnxNode, shape: Array, budget: Budget) -> Array:
    """The value of a ConstantOfShape. Raises RefusedError for a shape that no constant has."""
    if shape.dtype.kind not in "iu" or shape.size > MAX_DIMS:
        raise RefusedError(f"has a shape of {shape.size} numbers of {shape.dtype}")
    sizes = [int(n) for n in shape.reshape(-1)]
    if any(n < 0 for n in sizes):
        raise RefusedError(f"makes a constant of shape {sizes}")
    budget.hold(8 * math.prod(sizes))
    value = node.attributes.get("value")
    fill = value.reshape(-1)[0] if isinstance(value, np.ndarray) and value.size == 1 else np.float32(0)
    return np.full(sizes, fill)


def folded(node: OnnxNode, inputs: Sequence[Array | None], opset: int, budget: Budget) -> list[Array]:
    """The outputs of a node whose inputs are all constants. Raises RefusedError where that goes wrong, and, before
    anything is computed, where the budget does not have as much."""
    count = result_elements(node, inputs)
    budget.fold(sum(x.size for x in inputs if x is not None) + count)
    budget.hold(8 * count)
    try:
        arrays = _computed(node, inputs, opset)
    # The reference implementation's errors for sizes and types that do not fit: it raises numpy's.
    except Exception as error:
        raise RefusedError(
            f"cannot be computed of its constants: {type(error).__name__}: {str(error)[:100]}"
        ) from error
    for array in arrays:
        if array.dtype.kind not in "fiub":
            raise RefusedError(f"makes constants of {array.dtype}", "use float32, or integers")
    return arrays


def _computed(node: OnnxNode, inputs: Sequence[Array | None], opset: int) -> list[Array]:
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator

    names = [f"i{k}" if x is not None else "" for k, x in enumerate(inputs)]
    outputs = [f"o{k}" for k in range(len(node.outputs))]
    attributes: Mapping[str, Any] = {k: v for k, v in node.attributes.items() if v is not None}
    proto = helper.make_node(node.op, names, outputs, **attributes)
    values = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for n, x in zip(names, inputs, strict=True)
        if x is not None
    ]
    results = [helper.make_tensor_value_info(o, TensorProto.UNDEFINED, None) for o in outputs]
    model = helper.make_model(
        helper.make_graph([proto], "fold", values, results),
        opset_imports=[helper.make_opsetid("", opset)],
    )
    with np.errstate(all="ignore"):
        found = ReferenceEvaluator(model).run(
            None, {n: x for n, x in zip(names, inputs, strict=True) if x is not None}
        )
    return [np.asarray(x) for x in found]
