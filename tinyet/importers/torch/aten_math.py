# SPDX-License-Identifier: Apache-2.0
"""ATen handlers of arithmetic: products, element by element, reductions, normalisations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import fx

from tinyet.errors import RefusedError
from tinyet.importers.torch.aten_dynamic import source_of, weighted
from tinyet.importers.torch.aten_where import where
from tinyet.importers.torch.context import Args, Constant, Context, Dynamic, Handler, Value, axes_of, axis_of
from tinyet.ir import Attrs, DType, Tensor
from tinyet.ops.add import Add
from tinyet.ops.amax import Amax
from tinyet.ops.amin import Amin
from tinyet.ops.argmax import ArgMax
from tinyet.ops.argsort import ArgSort
from tinyet.ops.batch_norm import BatchNorm
from tinyet.ops.clamp import Clamp
from tinyet.ops.cumsum import CumSum
from tinyet.ops.div import Div
from tinyet.ops.layer_norm import LayerNorm
from tinyet.ops.linear import Linear
from tinyet.ops.log_softmax import LogSoftmax
from tinyet.ops.matmul import MatMul
from tinyet.ops.maximum import Maximum
from tinyet.ops.mean import Mean
from tinyet.ops.minimum import Minimum
from tinyet.ops.mul import Mul
from tinyet.ops.prelu import PRelu
from tinyet.ops.shared.unary_functions import FunctionName
from tinyet.ops.softmax import Softmax
from tinyet.ops.sub import Sub
from tinyet.ops.sum import Sum
from tinyet.ops.unary import Unary

aten = torch.ops.aten

Floats = npt.NDArray[np.float64]

# ---------------------------------------------------------------- products


def _linear(ctx: Context, source: tuple[Tensor, Dynamic | None], weight: Constant, bias: object) -> Tensor:
    """x (…, K) by weight (N, K)."""
    held = ctx.optional_constant(bias, "bias")
    bias_tensor = None if held is None else ctx.hold(Constant(ctx.parameter_name("bias"), held.real()))
    named = weight.named(ctx.parameter_name("weight"))
    return weighted(ctx, Linear(), source, named, bias_tensor, (*source[0].shape[:-1], weight.shape[0]))


def linear(ctx: Context, a: Args) -> Value:
    weight = ctx.constant(a["weight"])
    if weight is not None:
        return _linear(ctx, source_of(ctx, a["input"]), weight, a["bias"])
    x, w = ctx.real(a["input"]), ctx.real(a["weight"])
    product = ctx.emit(MatMul(), [x, ctx.permute(w, (1, 0))], (*x.shape[:-1], w.shape[0]))
    return product if a["bias"] is None else _add(ctx, product, ctx.real(a["bias"]))


def _suits_linear(weight: Constant | None) -> bool:
    """Whether a (K, N) constant can be a Linear layer's weight: float, or symmetric with its scales along
    N."""
    if weight is None or len(weight.shape) != 2:
        return False
    return weight.quant is None or (not any(weight.quant.zero_point) and weight.quant.axis in (None, 1))


def _is_int16(argument: object) -> bool:
    """Whether the argument is a value of an int16, dequantized."""
    if not isinstance(argument, fx.Node) or argument.op != "call_function":
        return False
    return "dequantize" in str(argument.target) and torch.int16 in argument.args


def matmul(ctx: Context, a: Args) -> Value:
    """matmul, mm, bmm; a constant second operand of two dimensions makes it a linear layer, but in int16, whose layers
    have weights of eight bits."""
    left, right = a["self"], a["other"] if "other" in a else a["mat2"]
    x, weight = ctx.real(left), ctx.constant(right)
    if weight is not None and _suits_linear(weight) and len(x.shape) >= 1 and not _is_int16(right):
        return _linear(ctx, (x, None), weight.permute((1, 0)), None)
    return _matmul(ctx, x, ctx.real(right))


def _matmul(ctx: Context, a: Tensor, b: Tensor) -> Tensor:
    """torch.matmul's rule for vectors: they become a row or a column, and the result loses that dimension."""
    row, column = len(a.shape) == 1, len(b.shape) == 1
    a = ctx.reshape(a, (1, *a.shape)) if row else a
    b = ctx.reshape(b, (*b.shape, 1)) if column else b
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    product = ctx.emit(MatMul(), [a, b], (*batch, a.shape[-2], b.shape[-1]))
    shape = [*batch, *([] if row else [a.shape[-2]]), *([] if column else [b.shape[-1]])]
    return ctx.reshape(product, shape)


def addmm(ctx: Context, a: Args) -> Value:
    """addmm, baddbmm: beta * self + alpha * (mat1 @ mat2)."""
    plain = a["beta"] == 1 and a["alpha"] == 1
    left, right = (a["mat1"], a["mat2"]) if "mat1" in a else (a["batch1"], a["batch2"])
    x, weight, bias = ctx.real(left), ctx.constant(right), ctx.constant(a["self"])
    if plain and weight is not None and _suits_linear(weight) and bias is not None and len(bias.shape) == 1:
        return _linear(ctx, (x, None), weight.permute((1, 0)), a["self"])
    product = _scaled(ctx, _matmul(ctx, x, ctx.real(right)), a["alpha"])
    return _add(ctx, product, _scaled(ctx, ctx.real(a["self"]), a["beta"]))


# ---------------------------------------------------------------- element by element


def _broadcast(ctx: Context, attrs: Attrs, a: Tensor, b: Tensor) -> Tensor:
    return ctx.emit(attrs, [a, b], np.broadcast_shapes(a.shape, b.shape))


def _add(ctx: Context, a: Tensor, b: Tensor) -> Tensor:
    return _broadcast(ctx, Add(), a, b)


def _scaled(ctx: Context, x: Tensor, factor: float) -> Tensor:
    """factor * x; nothing is emitted for 1."""
    return x if factor == 1 else _broadcast(ctx, Mul(), x, ctx.real(float(factor)))


def _operand(ctx: Context, argument: object) -> Tensor:
    """A tensor or a number; a constant of one number that torch holds as an integer or a double counts as
    float32."""
    constant = ctx.constant(argument)
    if constant is not None and constant.quant is None and not constant.shape:
        return ctx.hold(Constant(constant.name, constant.data.astype(np.float32)))
    return ctx.real(argument)


def _binary(attrs: Callable[[], Attrs]) -> Handler:
    """Two operands; `alpha`, where the operator has it, scales the second."""

    def row(ctx: Context, a: Args) -> Value:
        if a.get("rounding_mode") is not None:
            raise RefusedError(
                f"division with rounding_mode={a['rounding_mode']!r}", "divide, then torch.floor"
            )
        first, second = _operand(ctx, a["self"]), _operand(ctx, a["other"])
        return _broadcast(ctx, attrs(), first, _scaled(ctx, second, a.get("alpha") or 1))

    return row


def rsub(ctx: Context, a: Args) -> Value:
    scaled = _scaled(ctx, _operand(ctx, a["self"]), a["alpha"])
    return _broadcast(ctx, Sub(), _operand(ctx, a["other"]), scaled)


def _clamped(ctx: Context, x: Tensor, low: object, high: object) -> Tensor:
    bounds = []
    for bound, absent in ((low, -math.inf), (high, math.inf)):
        if bound is not None and not isinstance(bound, (int, float)):
            raise RefusedError("a clamp whose bounds are tensors", "use torch.minimum and torch.maximum")
        bounds.append(absent if bound is None else float(bound))
    return ctx.emit(Clamp(bounds[0], bounds[1]), [x], x.shape)


def clamp_to_tensors(ctx: Context, a: Args) -> Value:
    x = ctx.real(a["self"])
    for bound, attrs in ((a["min"], Maximum()), (a["max"], Minimum())):
        x = x if bound is None else _broadcast(ctx, attrs, x, _operand(ctx, bound))
    return x


def _clamp(low: object, high: object) -> Handler:
    """A clamp between two arguments (named by strings) or numbers."""

    def row(ctx: Context, a: Args) -> Value:
        bounds = [a[bound] if isinstance(bound, str) else bound for bound in (low, high)]
        return _clamped(ctx, ctx.real(a["self"]), *bounds)

    return row


def _call(ctx: Context, function: FunctionName, x: Tensor, alpha: float = 0.0, beta: float = 0.0) -> Tensor:
    return ctx.emit(Unary(function, float(alpha), float(beta)), [x], x.shape)


def _unary(function: FunctionName, alpha: str = "", beta: str = "") -> Handler:
    """One of Unary's functions; alpha and beta name the ATen arguments that become its parameters."""

    def row(ctx: Context, a: Args) -> Value:
        x = ctx.real(a["self"])
        return _call(ctx, function, x, a[alpha] if alpha else 0.0, a[beta] if beta else 0.0)

    return row


def gelu(ctx: Context, a: Args) -> Value:
    return _call(ctx, "gelu_tanh" if a["approximate"] == "tanh" else "gelu", ctx.real(a["self"]))


def elu(ctx: Context, a: Args) -> Value:
    if a["scale"] != 1 or a["input_scale"] != 1:
        raise RefusedError("elu with a scale", "multiply instead")
    return _call(ctx, "elu", ctx.real(a["self"]), a["alpha"])


def power(ctx: Context, a: Args) -> Value:
    x, exponent = ctx.real(a["self"]), float(a["exponent"])
    plain: dict[float, FunctionName] = {2.0: "square", 0.5: "sqrt", -1.0: "reciprocal", -0.5: "rsqrt"}
    if exponent == 1:
        return x
    return _call(ctx, plain[exponent], x) if exponent in plain else _call(ctx, "pow", x, exponent)


def log_sigmoid(ctx: Context, a: Args) -> Value:
    """log(sigmoid(x)) = -softplus(-x)."""
    negative = _call(ctx, "neg", ctx.real(a["self"]))
    return _call(ctx, "neg", _call(ctx, "softplus", negative, 1.0, 20.0))


def _log(base: float) -> Handler:
    def row(ctx: Context, a: Args) -> Value:
        return _scaled(ctx, _call(ctx, "log", ctx.real(a["self"])), 1 / math.log(base))

    return row


def prelu(ctx: Context, a: Args) -> Value:
    x, slope = ctx.real(a["self"]), ctx.optional_constant(a["weight"], "slope")
    assert slope is not None
    values = slope.real().reshape(-1)
    if values.size > 1 and len(x.shape) > 1:
        values = values.reshape(-1, *[1] * (len(x.shape) - 2))
    return ctx.emit(PRelu(), [x, ctx.hold(Constant(ctx.parameter_name("slope"), values))], x.shape)


# ---------------------------------------------------------------- reductions


def _reduced(shape: Sequence[int], axes: Sequence[int], keep: bool) -> list[int]:
    return [1 if i in axes else size for i, size in enumerate(shape) if keep or i not in axes]


def _reduce(
    ctx: Context, make: type[Mean] | type[Sum] | type[Amax] | type[Amin], x: Tensor, dim: object, keep: bool
) -> Tensor:
    """Over `dim`, as `axes_of` reads it."""
    axes = axes_of(dim, len(x.shape))
    return ctx.emit(make(axes, keep), [x], _reduced(x.shape, axes, keep)) if axes else x


def _reduction(make: type[Mean] | type[Sum] | type[Amax] | type[Amin]) -> Handler:
    def row(ctx: Context, a: Args) -> Value:
        return _reduce(ctx, make, ctx.real(a["self"]), a.get("dim"), bool(a.get("keepdim")))

    return row


def _argmax(ctx: Context, x: Tensor, dim: int | None, keep: bool) -> Tensor:
    rank = len(x.shape)
    if dim is None:
        flat = ctx.reshape(x, (x.type.count,))
        index = ctx.emit(ArgMax(0, False), [flat], (), DType.INT32)
        return ctx.reshape(index, [1] * rank if keep else [])
    axis = axis_of(dim, rank)
    return ctx.emit(ArgMax(axis, keep), [x], _reduced(x.shape, [axis], keep), DType.INT32)


def argmax(ctx: Context, a: Args) -> Value:
    x = ctx.tensor(a["self"])
    return _argmax(ctx, x if x.dtype is DType.INT32 else ctx.real(a["self"]), a["dim"], a["keepdim"])


def argmin(ctx: Context, a: Args) -> Value:
    return _argmax(ctx, _call(ctx, "neg", ctx.real(a["self"])), a["dim"], a["keepdim"])


def top(ctx: Context, a: Args) -> Value:
    """topk: of its two results the places; the values are those at these places (`places`)."""
    x = ctx.tensor(a["self"])
    if not x.shape:
        raise RefusedError("orders a single number", "leave it out")
    axis = axis_of(a["dim"], len(x.shape))
    shape = (*x.shape[:axis], a["k"], *x.shape[axis + 1 :])
    return None, ctx.emit(ArgSort(axis, a["k"], a["largest"]), [x], shape, DType.INT32)


def _extreme_along(make: type[Amax] | type[Amin]) -> Handler:
    """max.dim and min.dim: values and their indices."""

    def row(ctx: Context, a: Args) -> Value:
        x = ctx.real(a["self"])
        used = ctx.results_used()
        values = _reduce(ctx, make, x, a["dim"], a["keepdim"]) if 0 in used else None
        source = x if make is Amax or 1 not in used else _call(ctx, "neg", x)
        return values, _argmax(ctx, source, a["dim"], a["keepdim"]) if 1 in used else None

    return row


def _variance(ctx: Context, x: Tensor, dim: object, correction: float, keep: bool) -> Tensor:
    """sum((x - mean)²) / (n - correction), as a mean times n / (n - correction)."""
    mean = _reduce(ctx, Mean, x, dim, True)
    squares = _call(ctx, "square", _broadcast(ctx, Sub(), x, mean))
    count = x.type.count // max(mean.type.count, 1)
    if count <= correction:
        raise RefusedError(f"a variance of {count} values with correction {correction}", "use correction=0")
    return _scaled(ctx, _reduce(ctx, Mean, squares, dim, keep), count / (count - correction))


def vector_norm(ctx: Context, a: Args) -> Value:
    """The length of vectors: sqrt(sum(x²)), or sum(|x|) for order 1."""
    x, order = ctx.real(a["self"]), float(a["ord"])
    if order == 1:
        return _reduce(ctx, Sum, _call(ctx, "abs", x), a["dim"], a["keepdim"])
    if order != 2:
        raise RefusedError(f"a norm of order {order}", "use order 1 or 2")
    return _call(ctx, "sqrt", _reduce(ctx, Sum, _call(ctx, "square", x), a["dim"], a["keepdim"]))


def _correction(a: Args) -> float:
    if "unbiased" in a:
        return 1.0 if a["unbiased"] else 0.0
    return 1.0 if a["correction"] is None else float(a["correction"])


def variance(ctx: Context, a: Args) -> Value:
    return _variance(ctx, ctx.real(a["self"]), a["dim"], _correction(a), a["keepdim"])


def deviation(ctx: Context, a: Args) -> Value:
    return _call(ctx, "sqrt", _variance(ctx, ctx.real(a["self"]), a["dim"], _correction(a), a["keepdim"]))


# ---------------------------------------------------------------- normalisations


def _softmax(make: type[Softmax] | type[LogSoftmax]) -> Handler:
    def row(ctx: Context, a: Args) -> Value:
        x = ctx.real(a["self"])
        return ctx.emit(make(axis_of(a["dim"], len(x.shape))), [x], x.shape)

    return row


def _optional(ctx: Context, argument: object, role: str) -> Tensor | None:
    constant = ctx.optional_constant(argument, role)
    return None if constant is None else ctx.hold(Constant(ctx.parameter_name(role), constant.real()))


def cumsum(ctx: Context, a: Args) -> Value:
    x = ctx.real(a["self"])
    return ctx.emit(CumSum(axis_of(a["dim"], len(x.shape))), [x], x.shape)


def layer_norm(ctx: Context, a: Args) -> Value:
    x = ctx.real(a["input"])
    attrs = LayerNorm(len(x.shape) - len(a["normalized_shape"]), float(a["eps"]))
    return ctx.emit(
        attrs, [x, _optional(ctx, a["weight"], "weight"), _optional(ctx, a["bias"], "bias")], x.shape
    )


def native_layer_norm(ctx: Context, a: Args) -> Value:
    return layer_norm(ctx, a), None, None


def _affine(ctx: Context, x: Tensor, multiplier: Floats, offset: Floats, axis: int) -> Tensor:
    """multiplier[c] * x + offset[c] along `axis`; both were computed in float64."""
    held = [
        ctx.hold(Constant(ctx.parameter_name(role), values.astype(np.float32)))
        for role, values in (("multiplier", multiplier), ("offset", offset))
    ]
    return ctx.emit(BatchNorm(axis), [x, *held], x.shape)


def _channels(ctx: Context, argument: object, role: str, count: int, absent: float) -> Floats:
    constant = ctx.optional_constant(argument, role)
    return np.full(count, absent) if constant is None else constant.real().astype(np.float64)


def batch_norm(ctx: Context, a: Args) -> Value:
    """With running statistics: x * w / sqrt(var + eps) + b - mean * w / sqrt(var + eps)."""
    if a.get("training") or a["running_mean"] is None or a["running_var"] is None:
        raise RefusedError(
            "a batch norm with the statistics of the batch", "use running statistics: model.eval()"
        )
    x = ctx.real(a["input"])
    count = x.shape[1]
    mean = _channels(ctx, a["running_mean"], "running mean", count, 0)
    scale = 1 / np.sqrt(_channels(ctx, a["running_var"], "running variance", count, 1) + a["eps"])
    multiplier = _channels(ctx, a["weight"], "weight", count, 1) * scale
    offset = _channels(ctx, a["bias"], "bias", count, 0) - mean * multiplier
    return _affine(ctx, x, multiplier, offset, 1)


def batch_norm_tuple(ctx: Context, a: Args) -> Value:
    return batch_norm(ctx, a), None, None


def _grouped_norm(ctx: Context, a: Args, x: Tensor, groups: int) -> Tensor:
    """A layer norm over each group of channels, then the scale and offset of each channel."""
    batch, channels = x.shape[:2]
    flat = ctx.reshape(x, (batch, groups, x.type.count // (batch * groups)))
    normed = ctx.reshape(ctx.emit(LayerNorm(2, float(a["eps"])), [flat, None, None], flat.shape), x.shape)
    if a["weight"] is None and a["bias"] is None:
        return normed
    multiplier = _channels(ctx, a["weight"], "weight", channels, 1)
    return _affine(ctx, normed, multiplier, _channels(ctx, a["bias"], "bias", channels, 0), 1)


def group_norm(ctx: Context, a: Args) -> Value:
    return _grouped_norm(ctx, a, ctx.real(a["input"]), a["num_groups"])


def instance_norm(ctx: Context, a: Args) -> Value:
    if not a["use_input_stats"]:
        return batch_norm(ctx, a)
    x = ctx.real(a["input"])
    return _grouped_norm(ctx, a, x, x.shape[1])


MATH_HANDLERS: dict[object, Handler] = {
    aten.linear.default: linear,
    aten.matmul.default: matmul,
    aten.mm.default: matmul,
    aten.bmm.default: matmul,
    aten.addmm.default: addmm,
    aten.baddbmm.default: addmm,
    aten.add.Tensor: _binary(Add),
    aten.add.Scalar: _binary(Add),
    aten.sub.Tensor: _binary(Sub),
    aten.sub.Scalar: _binary(Sub),
    aten.rsub.Tensor: rsub,
    aten.rsub.Scalar: rsub,
    aten.mul.Tensor: _binary(Mul),
    aten.mul.Scalar: _binary(Mul),
    aten.div.Tensor: _binary(Div),
    aten.div.Scalar: _binary(Div),
    aten.div.Tensor_mode: _binary(Div),
    aten.where.self: where,
    aten.minimum.default: _binary(Minimum),
    aten.maximum.default: _binary(Maximum),
    aten.relu.default: _clamp(0.0, None),
    aten.relu6.default: _clamp(0.0, 6.0),
    aten.hardtanh.default: _clamp("min_val", "max_val"),
    aten.clamp.default: _clamp("min", "max"),
    aten.clamp.Tensor: clamp_to_tensors,
    aten.clamp_min.default: _clamp("min", None),
    aten.clamp_max.default: _clamp(None, "max"),
    aten.sigmoid.default: _unary("sigmoid"),
    aten.hardsigmoid.default: _unary("hardsigmoid"),
    aten.tanh.default: _unary("tanh"),
    aten.silu.default: _unary("silu"),
    aten.hardswish.default: _unary("hardswish"),
    aten.mish.default: _unary("mish"),
    aten.selu.default: _unary("selu"),
    aten.celu.default: _unary("celu", "alpha"),
    aten.softplus.default: _unary("softplus", "beta", "threshold"),
    aten.leaky_relu.default: _unary("leaky_relu", "negative_slope"),
    aten.hardshrink.default: _unary("hardshrink", "lambd"),
    aten.softshrink.default: _unary("softshrink", "lambd"),
    aten.threshold.default: _unary("threshold", "threshold", "value"),
    aten.gelu.default: gelu,
    aten.elu.default: elu,
    aten.log_sigmoid.default: log_sigmoid,
    aten.prelu.default: prelu,
    aten._prelu_kernel.default: prelu,
    aten.pow.Tensor_Scalar: power,
    aten.square.default: _unary("square"),
    aten.exp.default: _unary("exp"),
    aten.expm1.default: _unary("expm1"),
    aten.log.default: _unary("log"),
    aten.log1p.default: _unary("log1p"),
    aten.log2.default: _log(2),
    aten.log10.default: _log(10),
    aten.sqrt.default: _unary("sqrt"),
    aten.rsqrt.default: _unary("rsqrt"),
    aten.reciprocal.default: _unary("reciprocal"),
    aten.abs.default: _unary("abs"),
    aten.neg.default: _unary("neg"),
    aten.sin.default: _unary("sin"),
    aten.cos.default: _unary("cos"),
    aten.erf.default: _unary("erf"),
    aten.sign.default: _unary("sign"),
    aten.floor.default: _unary("floor"),
    aten.ceil.default: _unary("ceil"),
    aten.round.default: _unary("round"),
    aten.mean.dim: _reduction(Mean),
    aten.mean.default: _reduction(Mean),
    aten.sum.dim_IntList: _reduction(Sum),
    aten.sum.default: _reduction(Sum),
    aten.amax.default: _reduction(Amax),
    aten.amin.default: _reduction(Amin),
    aten.max.default: _reduction(Amax),
    aten.min.default: _reduction(Amin),
    aten.topk.default: top,
    aten.max.dim: _extreme_along(Amax),
    aten.min.dim: _extreme_along(Amin),
    aten.argmax.default: argmax,
    aten.argmin.default: argmin,
    aten.var.correction: variance,
    aten.var.dim: variance,
    aten.std.correction: deviation,
    aten.std.dim: deviation,
    aten.linalg_vector_norm.default: vector_norm,
    aten.softmax.int: _softmax(Softmax),
    aten._softmax.default: _softmax(Softmax),
    aten.log_softmax.int: _softmax(LogSoftmax),
    aten._log_softmax.default: _softmax(LogSoftmax),
    aten.cumsum.default: cumsum,
    aten.layer_norm.default: layer_norm,
    aten.native_layer_norm.default: native_layer_norm,
    aten.batch_norm.default: batch_norm,
    aten._native_batch_norm_legit_no_training.default: batch_norm_tuple,
    aten.group_norm.default: group_norm,
    aten.instance_norm.default: instance_norm,
}
