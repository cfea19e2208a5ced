# SPDX-License-Identifier: Apache-2.0
"""Handlers of operators that work element by element.

A function of one int8 is a table of its 256 values, computed as ONNX Runtime does in float32. A sum or a product of
two is ONNX Runtime's (QLinearAdd, QLinearMul), if the operators of the graph can give it for all 65,536 pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.onnx.context import Context, through
from tinyet.importers.onnx.functions import Function, erf, in_float64, sigmoid, tanh
from tinyet.importers.onnx.handlers_layers import activation_bounds, in_float
from tinyet.importers.onnx.values import (
    EVERY,
    Bytes,
    Float32,
    Numbers,
    Scale,
    Value,
    plain_reals,
    shape_of,
)
from tinyet.ir import Attrs, DType, Node, Tensor, TensorType
from tinyet.numerics import ElementRounding
from tinyet.ops import evaluate, op_of
from tinyet.ops.add import Add
from tinyet.ops.clamp import Clamp
from tinyet.ops.div import Div
from tinyet.ops.maximum import Maximum
from tinyet.ops.minimum import Minimum
from tinyet.ops.mul import Mul
from tinyet.ops.prelu import PRelu
from tinyet.ops.shared.unary_functions import FUNCTIONS, FunctionName
from tinyet.ops.sub import Sub
from tinyet.ops.unary import Unary

UNARY: Mapping[str, tuple[str, Function]] = {
    "Abs": ("abs", np.abs),
    "Exp": ("exp", in_float64(np.exp)),
    "Log": ("log", in_float64(np.log)),
    "Neg": ("neg", lambda x: -x),
    "Sigmoid": ("sigmoid", sigmoid),
    "Sqrt": ("sqrt", in_float64(np.sqrt)),
    "Tanh": ("tanh", tanh),
    "Erf": ("erf", erf),
    "Sin": ("sin", in_float64(np.sin)),
    "Cos": ("cos", in_float64(np.cos)),
    "Floor": ("floor", np.floor),
    "Ceil": ("ceil", np.ceil),
    "Reciprocal": ("reciprocal", in_float64(lambda x: 1.0 / x)),
    "HardSwish": ("hardswish", lambda x: x * np.clip(x / np.float32(6) + np.float32(0.5), 0, 1)),
    "Mish": ("mish", in_float64(lambda x: x * np.tanh(np.logaddexp(0, x)))),
    "Softplus": ("softplus", in_float64(lambda x: np.logaddexp(0, x))),
    "Round": ("round", np.rint),
    "Selu": ("selu", in_float64(lambda x: FUNCTIONS["selu"].exact(x, 0.0, 0.0))),
    "Sign": ("sign", np.sign),
}

EXACT = ("Abs", "Ceil", "Floor", "Neg", "Round", "Sign", "Sqrt")
"""Functions that every float32 arithmetic has alike."""


def unary(ctx: Context) -> Value:
    name, function = UNARY[ctx.node.op]
    attrs = Unary(name, 1.0, 20.0) if name == "softplus" else Unary(name)  # type: ignore[arg-type]
    return apply(ctx, attrs, function)


def apply(ctx: Context, attrs: Attrs, function: Function) -> Value:
    """A function of each number of input 0."""
    x = ctx.value(0)
    if isinstance(x, Bytes):
        return through(x, attrs, function(x.reals))
    if ctx.node.op not in (*EXACT, "Clip", "LeakyRelu", "Relu"):
        last_bits(ctx)
    return ctx.emit(attrs, [ctx.real(x)])


def last_bits(ctx: Context) -> None:
    """The note on float32 results of values that are no bytes: each runtime has its own last bits."""
    ctx.inexact(
        f"{ctx.node.op} is computed in float32, by ONNX Runtime too, whose last bits are others",
        "put a QuantizeLinear and a DequantizeLinear before it: a function of one byte is a table",
    )


def leaky_relu(ctx: Context) -> Value:
    alpha = np.float32(ctx.attribute("alpha", 0.01))
    return apply(
        ctx, Unary("leaky_relu", float(alpha)), lambda x: np.where(x >= 0, x, x * alpha).astype(np.float32)
    )


def elu(ctx: Context) -> Value:
    alpha = ctx.attribute("alpha", 1.0)
    function = in_float64(lambda x: np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0))))
    return apply(ctx, Unary("elu", alpha), function)


def celu(ctx: Context) -> Value:
    alpha = ctx.attribute("alpha", 1.0)
    return apply(ctx, Unary("celu", alpha), of_float64("celu", alpha))


def gelu(ctx: Context) -> Value:
    kind = ctx.attribute("approximate", "none")
    if kind not in ("none", "tanh"):
        raise RefusedError(f"has approximate = {kind[:40]!r}")
    name: FunctionName = "gelu" if kind == "none" else "gelu_tanh"
    return apply(ctx, Unary(name), of_float64(name))


def thresholded_relu(ctx: Context) -> Value:
    alpha = ctx.attribute("alpha", 1.0)
    return apply(ctx, Unary("threshold", alpha, 0.0), of_float64("threshold", alpha))


_POWERS: Mapping[float, FunctionName] = {
    2.0: "square",
    0.5: "sqrt",
    -1.0: "reciprocal",
    -0.5: "rsqrt",
}


def power(ctx: Context) -> Value:
    """To a power that is one number."""
    exponents = np.unique(np.asarray(ctx.constant(1, "exponent").real, np.float32))
    if exponents.size != 1 or len(ctx.constant(1, "exponent").shape) > len(shape_of(ctx.value(0))):
        raise RefusedError("has several exponents", "take one number")
    exponent = float(exponents[0])
    if exponent == 1:
        return ctx.value(0)
    name = _POWERS.get(exponent, "pow")
    alpha = exponent if name == "pow" else 0.0
    return apply(ctx, Unary(name, alpha), in_float64(lambda x: np.power(x, exponent)))


def of_float64(name: FunctionName, alpha: float = 0.0) -> Function:
    """One of the graph's functions of one number, rounded to float32 once."""
    return in_float64(lambda x: FUNCTIONS[name].exact(np.asarray(x, np.float64), alpha, 0.0))


def hard_sigmoid(ctx: Context) -> Value:
    alpha, beta = np.float32(ctx.attribute("alpha", 0.2)), np.float32(ctx.attribute("beta", 0.5))
    x = ctx.value(0)

    def of(reals: Float32) -> Float32:
        return np.asarray(np.clip(reals * alpha + beta, 0, 1), np.float32)

    if isinstance(x, Bytes) and ctx.target() is not None:
        return through(x, Unary("hardsigmoid"), of(x.reals))
    last_bits(ctx)
    if math.isclose(alpha, 1 / 6, rel_tol=1e-5) and beta == 0.5:
        return ctx.emit(Unary("hardsigmoid"), [ctx.real(x)])
    made = ctx.emit(Mul(), [ctx.real(x), ctx.held("alpha", np.asarray(alpha))])
    return ctx.emit(Add((0.0, 1.0)), [made, ctx.held("beta", np.asarray(beta))])


def relu(ctx: Context) -> Value:
    return apply(ctx, Clamp(0.0, math.inf), lambda x: np.maximum(x, np.float32(0)))


def clip(ctx: Context) -> Value:
    low, high = activation_bounds(ctx, "Clip", ctx.node.inputs)
    if not low <= high:
        raise RefusedError(f"clips to {low} … {high}")
    if (low, high) == (-math.inf, math.inf):
        return ctx.value(0)
    return apply(ctx, Clamp(low, high), lambda x: np.clip(x, np.float32(low), np.float32(high)))


# ---------------------------------------------------------------- of two operands

BINARY: Mapping[str, tuple[type[Attrs], Callable[[Float32, Float32], Float32]]] = {
    "Add": (Add, lambda a, b: a + b),
    "Sub": (Sub, lambda a, b: a - b),
    "Mul": (Mul, lambda a, b: a * b),
    "Div": (Div, lambda a, b: a / b),
    "Max": (Maximum, np.maximum),
    "Min": (Minimum, np.minimum),
}


def binary(ctx: Context) -> Value:
    op = ctx.node.op
    kind, function = BINARY[op]
    if len(ctx.node.inputs) != 2:
        return one_by_one(ctx, kind)
    a, b = ctx.value(0), ctx.value(1)
    target = ctx.target()
    if target is not None and op in ("Add", "Mul") and all(_is_plain(v) for v in (a, b)):
        return quantized_pair(ctx, a, b, target)
    one = of_one_byte(a, b, function)
    if one is not None and target is not None:
        return one
    if op == "Div" and not (isinstance(b, Numbers) and np.all(b.real)):
        ctx.inexact("0 divided by 0 gives the zero point; in ONNX Runtime the lowest integer")
    return ctx.emit(kind(), [ctx.real(a), ctx.real(b)])


def one_by_one(ctx: Context, kind: type[Attrs]) -> Value:
    """Max, Min, Sum and Mean of any number of values, in float32, from first to last."""
    total = ctx.real(ctx.value(0))
    for place in range(1, len(ctx.node.inputs)):
        total = ctx.emit(kind(), [total, ctx.real(ctx.value(place))])
    if len(ctx.node.inputs) > 1:
        in_float(ctx)
    return total


def summed(ctx: Context) -> Value:
    y = one_by_one(ctx, Add)
    if ctx.node.op == "Sum" or len(ctx.node.inputs) == 1:
        return y
    share = ctx.held("share", np.asarray(1 / len(ctx.node.inputs), np.float32))
    return ctx.emit(Mul(), [ctx.real(y), share])


def _is_plain(value: Value) -> bool:
    """Whether ONNX Runtime's integer operators take it: activations or constants of one scale."""
    if isinstance(value, Bytes):
        return value.is_plain
    return isinstance(value, Numbers) and value.scale is not None and value.scale.axis is None


def of_one_byte(a: Value, b: Value, function: Callable[[Float32, Float32], Float32]) -> Bytes | None:
    """A function of one int8, where both operands are that, or one is a number."""
    with np.errstate(all="ignore"):
        for x, y, swapped in ((a, b, False), (b, a, True)):
            if not isinstance(x, Bytes):
                continue
            if isinstance(y, Numbers) and y.data.size == 1 and len(y.shape) <= len(x.tensor.shape):
                other = np.asarray(y.real, np.float32).reshape(())
            elif isinstance(y, Bytes) and y.tensor is x.tensor:
                other = y.reals
            else:
                continue
            results = function(other, x.reals) if swapped else function(x.reals, other)
            # Nothing but a QuantizeLinear reads it: the function in float32 is never asked for.
            return through(x, Clamp(), np.asarray(results, np.float32))
    return None


def quantized_pair(ctx: Context, a: Value, b: Value, target: Scale) -> Value:
    """QLinearAdd or QLinearMul."""
    unsigned = target.dtype == "uint8"
    quant = target.per_tensor()
    if math.prod(shape_of(a)) < math.prod(shape_of(b)):
        a, b = b, a  # the repeated operand is ONNX Runtime's second
    x, y = (_integers(ctx, v) for v in (a, b))
    if {v.unsigned for v in (a, b) if isinstance(v, Bytes)} != {unsigned}:
        ctx.inexact("its operands and its result are not all signed, or all unsigned, bytes")
    rounding: ElementRounding = "half_even_u8" if unsigned else "half_even"
    kind = Add if ctx.node.op == "Add" else Mul
    shape = np.broadcast_shapes(x.shape, y.shape)
    out = Tensor("draft", TensorType(tuple(shape), DType.INT8, quant))
    draft = Node(kind(rounding=rounding), (x, y), (out,), (ctx.origin,))
    if op_of(draft).check(draft) is None:
        made = ctx.emit(draft.attrs, [x, y], quant)
    else:
        other = draft.replace(attrs=kind())
        differing = _differing(draft, other) if op_of(other).check(other) is None else 65536
        if op_of(other).check(other) is not None:
            raise RefusedError(op_of(other).check(other) or "", "choose another scale for its result")
        ctx.inexact(
            f"no {kind.name} of the graph rounds as ONNX Runtime's for all pairs of these scales: of the 65,536, "
            f"{differing:,} differ by 1",
            "other scales, none of which is another times a power of two, have an exact form",
        )
        made = ctx.emit(other.attrs, [x, y], quant)
    return Bytes(made, unsigned, plain_reals(quant))


def _integers(ctx: Context, value: Value) -> Tensor:
    if isinstance(value, Bytes):
        return value.tensor
    assert isinstance(value, Numbers)
    assert value.scale is not None
    shift = value.scale.shift
    data = (value.data.astype(np.int64) - shift).astype(np.int8)
    return ctx.held(value.name or "constant", data, value.scale.per_tensor())


def _differing(node: Node, other: Node) -> int:
    """The pairs of int8 for which two nodes of the same operands have different results."""
    every = EVERY.astype(np.int8)
    grid = [every[:, None], every[None, :]]
    kinds = [
        Tensor(t.name, TensorType(g.shape, DType.INT8, t.type.quant))
        for t, g in zip((node.input(0), node.input(1)), grid, strict=True)
    ]
    out = Tensor("out", TensorType((256, 256), DType.INT8, node.output.type.quant))
    (one,), (two,) = (evaluate(n.replace(inputs=kinds, outputs=(out,)), [*grid]) for n in (node, other))
    return int((one != two).sum())


def prelu(ctx: Context) -> Value:
    return ctx.emit(PRelu(), [ctx.real(ctx.value(0)), ctx.real(ctx.constant(1, "slope"))])
