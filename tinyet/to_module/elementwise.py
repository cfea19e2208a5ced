# SPDX-License-Identifier: Apache-2.0
"""Operators on elements, along axes, and choices: torch's functions, in whatever form the values are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from tinyet.errors import RefusedError
from tinyet.ir import DType
from tinyet.ops.argmax import ArgMax
from tinyet.ops.argsort import ArgSort
from tinyet.ops.cast import Cast
from tinyet.ops.clamp import Clamp
from tinyet.ops.compare import Compare
from tinyet.ops.pairwise import Pairwise
from tinyet.ops.shared.broadcast import Arithmetic
from tinyet.ops.shared.reduction import Reduce
from tinyet.ops.shared.softmax import AlongAxis
from tinyet.ops.softmax import Softmax
from tinyet.ops.unary import Unary
from tinyet.to_module.build import Build, Handler, Value, constant
from tinyet.to_module.form import Form

Tensor = torch.Tensor

# ---------------------------------------------------------------- of one number


def clamp(b: Build) -> None:
    attrs, x = b.attrs(Clamp), b.computed(b.value(0))
    b.give(b.clamped(x, (attrs.low, attrs.high)), x.form)


_FUNCTIONS: Mapping[str, Callable[[float, float], Callable[[Tensor], Tensor] | nn.Module]] = {
    "abs": lambda _a, _b: torch.abs,
    "ceil": lambda _a, _b: torch.ceil,
    "celu": lambda a, _: nn.CELU(a),
    "cos": lambda _a, _b: torch.cos,
    "elu": lambda a, _: nn.ELU(a),
    "erf": lambda _a, _b: torch.erf,
    "exp": lambda _a, _b: torch.exp,
    "expm1": lambda _a, _b: torch.expm1,
    "floor": lambda _a, _b: torch.floor,
    "gelu": lambda _a, _b: nn.GELU(),
    "gelu_tanh": lambda _a, _b: nn.GELU("tanh"),
    "hardshrink": lambda a, _: nn.Hardshrink(a),
    "hardsigmoid": lambda _a, _b: nn.Hardsigmoid(),
    "hardswish": lambda _a, _b: nn.Hardswish(),
    "leaky_relu": lambda a, _: nn.LeakyReLU(a),
    "log": lambda _a, _b: torch.log,
    "log1p": lambda _a, _b: torch.log1p,
    "mish": lambda _a, _b: nn.Mish(),
    "neg": lambda _a, _b: torch.neg,
    "pow": lambda a, _: partial(torch.pow, exponent=a),
    "reciprocal": lambda _a, _b: torch.reciprocal,
    "round": lambda _a, _b: torch.round,
    "rsqrt": lambda _a, _b: torch.rsqrt,
    "selu": lambda _a, _b: nn.SELU(),
    "sigmoid": lambda _a, _b: nn.Sigmoid(),
    "sign": lambda _a, _b: torch.sign,
    "silu": lambda _a, _b: nn.SiLU(),
    "sin": lambda _a, _b: torch.sin,
    "softplus": nn.Softplus,
    "softshrink": lambda a, _: nn.Softshrink(a),
    "sqrt": lambda _a, _b: torch.sqrt,
    "square": lambda _a, _b: torch.square,
    "tanh": lambda _a, _b: nn.Tanh(),
    "threshold": nn.Threshold,
}
"""Each function of Unary as torch's, by its parameters alpha and beta."""


def unary(b: Build) -> None:
    attrs, x = b.attrs(Unary), b.computed(b.value(0))
    function = _FUNCTIONS[attrs.function](attrs.alpha, attrs.beta)
    if isinstance(function, nn.Module):
        (made,) = b.step(function, [x])
    else:
        made = b.call(function, [x])
    b.give(made, x.form)


def cast(b: Build) -> None:
    """An int32 of truth values becomes a float as these do; every other conversion is torch's, too."""
    b.attrs(Cast)
    x = b.value(0)
    to = {DType.FLOAT32: torch.float32, DType.INT32: torch.int32}.get(b.node.output.dtype)
    if to is None or b.node.input(0).dtype is DType.FLOAT32:
        raise RefusedError(f"makes {b.node.output.dtype.value} of {b.node.input(0).dtype.value}")
    b.give(b.call(partial(_as_type, dtype=to), [x]), x.form)


def _as_type(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.to(dtype)


# ---------------------------------------------------------------- of two


def met(b: Build, indices: Sequence[int] = (0, 1)) -> tuple[list[Value], Form]:
    """Operands, broadcast, in one form; and that. A constant of one number stays one number."""
    shape = b.node.output.shape
    values = [b.value(index).lifted(len(shape)) for index in indices]
    form = b.common(values, shape)
    return [b.in_form(value, form) for value in values], form


def arithmetic(function: Callable[[Any, Any], Any]) -> Handler:
    """Of two floats, with a fused activation. A constant of one number is one to torch, too."""

    def handler(b: Build) -> None:
        attrs, (operands, form) = b.attrs(Arithmetic), met(b)
        left, right = operands
        if left.is_number and right.data is None:
            made = b.call(partial(_from_left, function=function, number=left.number), [right])
        elif right.is_number and left.data is None:
            made = b.call(partial(_from_right, function=function, number=right.number), [left])
        else:
            made = b.call(function, operands)
        b.give(made, form, clamp=attrs.clamp)

    return handler


def _from_left(x: Tensor, function: Callable[[Any, Any], Any], number: float) -> Any:
    return function(number, x)


def _from_right(x: Tensor, function: Callable[[Any, Any], Any], number: float) -> Any:
    return function(x, number)


def extremum(function: Callable[[Any, Any], Any], bound: str) -> Handler:
    """bound: what a constant of one number is to torch.clamp."""

    def handler(b: Build) -> None:
        operands, form = met(b)
        computed = [value for value in operands if not value.is_number]
        numbers = [value for value in operands if value.is_number]
        if any(value.truth for value in operands):
            _logical(b, torch.logical_or if bound == "min" else torch.logical_and, operands, form)
        elif len(numbers) == 1:
            b.give(b.call(partial(torch.clamp, **{bound: numbers[0].number}), computed), form)
        else:
            b.give(b.call(function, operands), form)

    return handler


def _logical(b: Build, function: Callable[[Any, Any], Any], operands: Sequence[Value], form: Form) -> None:
    """Of truth values; a constant beside them is one, if it is 0 or 1 everywhere."""
    values = []
    for value in operands:
        if value.data is not None and ((value.data == 0) | (value.data == 1)).all():
            values.append(constant(value.data != 0))
        elif value.truth:
            values.append(value)
        else:
            raise RefusedError("computes with truth values and numbers", "make them floats first")
    b.give(b.call(function, values), form, truth=True)


_OF_TRUTH: Mapping[str, Callable[[Any, Any], Any]] = {
    "mul": torch.logical_and,
    "minimum": torch.logical_and,
    "bit_and": torch.logical_and,
    "maximum": torch.logical_or,
    "bit_or": torch.logical_or,
    "bit_xor": torch.logical_xor,
}


def pairwise(b: Build) -> None:
    """Arithmetic of int32: of truth values only."""
    function = b.attrs(Pairwise).function
    operands, form = met(b)
    if function not in _OF_TRUTH or not any(value.truth for value in operands):
        raise RefusedError(
            f"computes {function} of int32 values, which no layer of a quantized network does",
            "compute it in the application, or make the values floats",
        )
    _logical(b, _OF_TRUTH[function], operands, form)


_RELATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "equal": torch.eq,
    "not_equal": torch.ne,
    "greater": torch.gt,
    "greater_equal": torch.ge,
}


def compare(b: Build) -> None:
    """A comparison of truth values with 0 or 1 is that of int32."""
    relation, (operands, form) = b.attrs(Compare).relation, met(b)
    function = partial(_compared, function=_RELATIONS[relation])
    b.give(b.call(function, operands), form, truth=True)


def _compared(a: Tensor, b: Tensor, function: Callable[[Any, Any], Any]) -> Any:
    if a.dtype is torch.bool or b.dtype is torch.bool:
        a, b = a.to(torch.int32), b.to(torch.int32)
    return function(a, b)


def where(b: Build) -> None:
    operands, form = met(b, (0, 1, 2))
    condition, left, right = operands
    if left.truth != right.truth:
        raise RefusedError("chooses between truth values and numbers", "make them floats first")
    b.give(b.call(_chosen, [condition, left, right]), form, truth=left.truth)


def _chosen(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.where(condition if condition.dtype is torch.bool else condition != 0, a, b)


# ---------------------------------------------------------------- along axes


def reduction(function: Callable[..., Tensor]) -> Handler:
    """Over the axes that the tensor has: one of size 1 that it has not is reduced already."""

    def handler(b: Build) -> None:
        attrs, x = b.attrs(Reduce), b.computed(b.value(0))
        dims = sorted(dim for axis in attrs.axes if (dim := x.form.dims[axis]) is not None)
        slot = b.call(partial(function, dim=dims, keepdim=attrs.keepdims), [x]) if dims else x.slot
        form = x.form if attrs.keepdims else x.form.without(attrs.axes)
        b.give(slot, form)

    return handler


def along(layer: Callable[[int], nn.Module]) -> Handler:
    """A layer of torch's that is made with a dimension."""

    def handler(b: Build) -> None:
        attrs, x = b.node.attrs, b.value(0)
        assert isinstance(attrs, AlongAxis)
        if isinstance(attrs, Softmax) and attrs.beta != 1.0:
            raise RefusedError(f"has a beta of {attrs.beta}")
        form, dim = x.along(attrs.axis)
        (made,) = b.step(layer(dim), [b.computed(b.in_form(x, form))])
        b.give(made, form)

    return handler


def argmax(b: Build) -> None:
    attrs, x = b.attrs(ArgMax), b.value(0)
    form, dim = x.along(attrs.axis)
    made = b.call(partial(torch.argmax, dim=dim, keepdim=attrs.keepdims), [b.in_form(x, form)])
    b.give(made, form if attrs.keepdims else form.without((attrs.axis,)))


def argsort(b: Build) -> None:
    attrs, x = b.attrs(ArgSort), b.value(0)
    form, dim = x.along(attrs.axis)
    function = partial(_greatest, count=attrs.count, dim=dim, largest=attrs.descending)
    b.give(b.call(function, [b.in_form(x, form)]), form)


def _greatest(x: Tensor, count: int, dim: int, largest: bool) -> Tensor:
    return torch.topk(x, count, dim, largest)[1]
