# SPDX-License-Identifier: Apache-2.0
"""The handler of the operators that users register (tinyet.custom_op)."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from tinyet.custom import CustomOp, Params, Scalar, registered
from tinyet.errors import RefusedError, TinyetError, UnsupportedShape
from tinyet.fx.source_locations import message_of
from tinyet.importers.torch.context import Args, Context, Handler, Value, dtype_of
from tinyet.ir import Array, DType, Node, Tensor, TensorType


def custom_handler(target: object) -> Handler | None:
    """The handler of a registered operator; None for any other target."""
    found = registered(target)
    return None if found is None else partial(_row, found)


def _row(found: CustomOp, ctx: Context, a: Args) -> Value:
    """Tensor arguments become inputs, all others parameters of the node."""
    result = ctx.node.meta["val"]
    if not isinstance(result, torch.Tensor) or dtype_of(result) is not DType.FLOAT32:
        raise RefusedError("a custom operator must give one float32 tensor")
    inputs: list[Tensor | None] = []
    params: list[tuple[str, Scalar | tuple[Scalar, ...]]] = []
    for argument in ctx.node.target._schema.arguments:  # type: ignore[union-attr]
        value = a[argument.name]
        if "Tensor" in str(argument.type):
            if isinstance(value, (list, tuple)):
                raise RefusedError(f"{argument.name} is a list of tensors", "make each one an argument")
            inputs.append(None if value is None else ctx.tensor(value))
        else:
            params.append((argument.name, _parameter(argument.name, value)))
    _agree(found, ctx, tuple(inputs), tuple(params))
    return ctx.emit(found.op.attrs(tuple(params)), inputs, ctx.shape)  # type: ignore[call-arg]


def _parameter(name: str, value: object) -> Scalar | tuple[Scalar, ...]:
    if isinstance(value, (list, tuple)) and all(isinstance(v, (int, float, bool, str)) for v in value):
        return tuple(value)
    if value is None or isinstance(value, (int, float, bool, str)):
        return value
    raise RefusedError(f"{name} is a {type(value).__name__}", "give numbers, strings, or lists of them")


def _agree(found: CustomOp, ctx: Context, inputs: tuple[Tensor | None, ...], params: Params) -> None:
    """RefusedError unless infer, the reference (tried on zeros) and torch agree about the result's shape."""
    attrs = found.op.attrs(params)  # type: ignore[call-arg]
    draft = Node(attrs, inputs, (Tensor(ctx.node.name, TensorType(ctx.shape, DType.FLOAT32)),))
    name = found.op.name
    try:
        (shape,) = found.op.infer(draft)
    except UnsupportedShape as error:
        raise RefusedError(error.what, shape=False) from error
    if shape != ctx.shape:
        raise RefusedError(
            f"infer of operator {name} gives {shape}, torch's own rule gives {ctx.shape}",
            "make them agree: register_fake, and infer of tinyet.custom_op",
        )
    complaint = found.op.check(draft)
    if complaint is not None:
        raise RefusedError(complaint)
    arrays: list[Array | None] = [
        None if t is None else t.data if t.is_constant else np.zeros(t.shape, t.dtype.numpy) for t in inputs
    ]
    try:
        with np.errstate(all="ignore"):
            found.op.reference(draft, arrays)
    except TinyetError as error:
        raise RefusedError(error.what, error.hint or "", shape=False) from error
    except Exception as error:
        raise RefusedError(
            f"the reference of operator {name} raises {message_of(error)}", shape=False
        ) from error
