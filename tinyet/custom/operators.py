# SPDX-License-Identifier: Apache-2.0
"""Operators of the user's own: a torch.library operator with its shape rule, numpy reference and C kernel, in one file.

    tinyet.custom_op("examples::snake", infer=…, float32=Form(reference, "snake_f32", C), int8=Form(…))

The registered operator goes through everything that tinyet's own operators go through. See docs/custom-ops.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tinyet import ops
from tinyet.custom.form import Form, kernel_of, no_macs
from tinyet.errors import ModelError, UnsupportedShape, UsageError
from tinyet.ir import Array, DType, Node, Shape
from tinyet.opset import Iteration, Nest, Op, broadcast, opaque, operand, parameters
from tinyet.opset.custom import CallSite, CustomAttrs, site_of

OutputQuant = Literal["own", "same"] | tuple[float, int]
"""The quantization of an int8 result: its own observed range, that of the first input, or a (scale, zero point)."""


MAX_INPUTS = 64
"""Of one operator."""


@dataclass(frozen=True, eq=False)
class CustomOp:
    """A registered operator. torch_name: "namespace::name". output: None when there is no int8 form."""

    torch_name: str
    op: Op
    output: OutputQuant | None


_REGISTERED: dict[str, CustomOp] = {}


def registered(target: object) -> CustomOp | None:
    """The operator that was registered for a call's target in a captured graph (`examples.snake.default`)."""
    namespace, _, rest = str(target).partition(".")
    return _REGISTERED.get(f"{namespace}::{rest.rpartition('.')[0] or rest}")


def named(code: str) -> CustomOp | None:
    """The operator that was registered under a name: its whole name in torch, the part behind the namespace, or its own
    name."""
    return next(
        (
            found
            for found in _REGISTERED.values()
            if code in (found.torch_name, found.torch_name.rpartition("::")[2], found.op.name)
        ),
        None,
    )


def iterate_pointwise(node: Node) -> Iteration | str:
    """The other inputs are parameters."""
    if node.input(0).shape != node.output.shape:
        return f"{node.op} changes the shape"
    nest = Nest()
    places = nest.all_parallel(node.output.shape)
    return nest.iteration([broadcast(node.input(0), places), *parameters(node, nest)], [operand(*places)])


def custom_op(
    torch_op: object,
    *,
    infer: Callable[[CallSite], Sequence[int]],
    float32: Form,
    int8: Form | None = None,
    name: str | None = None,
    output: OutputQuant = "own",
    macs: Callable[[CallSite], int] = no_macs,
    inplace: tuple[int, ...] = (),
    pointwise: bool = False,
    summary: str = "",
) -> CustomOp:
    """Make an operator of torch.library known to tinyet.

    torch_op: what `torch.library.custom_op` returned, an overload of torch.ops, or the name "namespace::name".
    infer: the result's shape from the inputs' shapes and parameters. int8: without it the operator stays in float32
    in a quantized model. output: quantization of the int8 result, "own", "same" (as the first input) or
    (scale, zero point). name: in reports, .tet files and C; by default the name in torch. inplace: inputs whose memory
    the result may take, since the kernel reads an element before it writes the same one, and never later. pointwise:
    each element of the result depends on the same element of the first input, and on nothing else that has a shape;
    then the operator works on images as they lie in memory (NHWC), without being moved to PyTorch's order.

    Raises UsageError for a name that is taken, C text without the function, a file that cannot be read.
    """
    torch_name = _torch_name(torch_op)
    title = name or torch_name.rpartition("::")[2]
    if not re.fullmatch(r"[a-z_][a-z0-9_]*", title):
        raise UsageError(f"{title!r} cannot be the name of an operator", hint="small letters, digits and _")
    if torch_name in _REGISTERED:
        raise UsageError(f"{torch_name} is registered already", hint="register each operator once")
    forms = {DType.FLOAT32: float32} | ({DType.INT8: int8} if int8 is not None else {})
    attrs = type(
        title.title().replace("_", ""),
        (CustomAttrs,),
        {"name": title, "pointwise": pointwise},
    )

    def infer_node(node: Node) -> tuple[Shape, ...]:
        try:
            return (tuple(int(size) for size in infer(site_of(node, output=False))),)
        except Exception as error:
            what = f"infer of operator {title} raises {type(error).__name__}: {error}"
            raise UnsupportedShape(what, node.where) from error

    def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        return (_checked(node, forms[node.output.dtype].reference(site_of(node), inputs)),)

    op = Op(
        attrs=attrs,
        summary=summary,
        infer=infer_node,
        reference=reference,
        kernels=tuple(kernel_of(title, form, dtype) for dtype, form in forms.items()),
        inputs=(1, MAX_INPUTS),
        check=lambda node: _complaint(node, forms),
        products=lambda node: macs(site_of(node)),
        inplace=inplace,
        iteration=iterate_pointwise if pointwise else opaque,
    )
    ops.register(op)
    found = CustomOp(torch_name, op, output if int8 is not None else None)
    _REGISTERED[torch_name] = found
    return found


def _torch_name(torch_op: object) -> str:
    """ "namespace::name" of whatever torch calls an operator; torch itself is not needed for that."""
    name: object = torch_op
    for attribute in ("_qualname", "_qualified_op_name"):
        name = getattr(torch_op, attribute, name)
    schema = getattr(torch_op, "_schema", None)
    name = getattr(schema, "name", name)
    if not isinstance(name, str) or not re.fullmatch(r"\w+::\w+", name):
        raise UsageError(
            f"{torch_op!r} is no operator of torch.library", hint='give the operator, or "namespace::name"'
        )
    return name


def _checked(node: Node, result: object) -> Array:
    """The reference's result, if it is what `infer` and the dtype say."""
    want = node.output
    if not isinstance(result, np.ndarray) or result.shape != want.shape or result.dtype != want.dtype.numpy:
        have = f"{result.dtype}{list(result.shape)}" if isinstance(result, np.ndarray) else repr(type(result))
        raise ModelError(
            f"the reference of operator {node.op} gives {have}, but by its infer the result is {want.type}",
            node.where,
            "make infer and reference of the operator agree",
        )
    return result


def _complaint(node: Node, forms: Mapping[DType, Form]) -> str | None:
    out = node.output
    if out.dtype not in forms:
        return f"it has no form in {out.dtype.value}"
    for tensor in node.inputs:
        if tensor is None or (tensor.is_constant and tensor.type.quant is None):
            continue
        if tensor.dtype not in (out.dtype, DType.INT32):
            return f"no form from {tensor.dtype.value} to {out.dtype.value}"
        if tensor.type.quant is not None and tensor.type.quant.axis is not None:
            return f"{tensor.name} must be quantized per tensor"
    try:
        return forms[out.dtype].check(site_of(node))
    except Exception as error:  # noqa: BLE001 - it is the user's own function
        return f"its check raises {type(error).__name__}: {error}"
