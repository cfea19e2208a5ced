# SPDX-License-Identifier: Apache-2.0
"""What a graph computes of constants and of shapes is known when it is read: Shape, Gather, Concat, Cast … of them.

The arithmetic is that of the `onnx` package's own reference implementation, one node at a time, and only of operators
in a list, of bounded size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.onnx.read import OnnxNode
from tinyet.ir import Array

FOLDED = frozenset(
    """
    Abs Add And Cast Ceil Clip Concat Div Equal Expand Flatten Floor Gather Greater Identity Less Max Min Mul Neg Not
    Or Pow Range ReduceMax ReduceMin ReduceProd ReduceSum Reshape Round ScatterND Slice Split Sqrt Squeeze Sub Tile
    Transpose Unsqueeze Where
    """.split()  # noqa: SIM905
)
MOST_ELEMENTS = 1 << 22
"""Of what folding may read, and of a Range, an Expand or a Tile."""


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
            return np.asarray(given[key], dtype)
    raise RefusedError("holds no numbers", "store a dense tensor", shape=False)


def filled(node: OnnxNode, shape: Array) -> Array:
    """The value of a ConstantOfShape."""
    sizes = [int(n) for n in shape.reshape(-1)]
    if any(n < 0 for n in sizes) or np.prod([float(n) for n in sizes]) > MOST_ELEMENTS:
        raise RefusedError(f"makes a constant of shape {sizes}")
    value = node.attributes.get("value")
    fill = value.reshape(-1)[0] if isinstance(value, np.ndarray) and value.size == 1 else np.float32(0)
    return np.full(sizes, fill)


def folded(node: OnnxNode, inputs: Sequence[Array | None], opset: int) -> list[Array]:
    """The outputs of a node whose inputs are all constants. Raises RefusedError where that goes wrong."""
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator

    total = sum(x.size for x in inputs if x is not None)
    growing = node.op in ("Range", "Expand", "Tile")
    numbers = [
        abs(float(n)) for x in inputs[int(node.op != "Range") :] if x is not None for n in x.reshape(-1)[:64]
    ]
    if total > MOST_ELEMENTS or (growing and np.prod([max(n, 1.0) for n in numbers]) * total > MOST_ELEMENTS):
        raise RefusedError(f"computes constants of more than {MOST_ELEMENTS} elements")
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
    try:
        with np.errstate(all="ignore"):
            found = ReferenceEvaluator(model).run(
                None, {n: x for n, x in zip(names, inputs, strict=True) if x is not None}
            )
    except Exception as error:
        raise RefusedError(
            f"cannot be computed of its constants: {type(error).__name__}: {str(error)[:100]}"
        ) from error
    arrays = [np.asarray(x) for x in found]
    if sum(x.size for x in arrays) > MOST_ELEMENTS:
        raise RefusedError(f"computes constants of more than {MOST_ELEMENTS} elements")
    return arrays
