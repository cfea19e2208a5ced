# SPDX-License-Identifier: Apache-2.0
"""Handlers of ONNX's support vector machines (domain ai.onnx.ml), in float32 as all classical models.

Of a kernel of distances |x - v|^2 is |x|^2 - 2 x.v + |v|^2, with all moved so that the mean of the vectors is the
origin, so that little is lost in it.
"""

from __future__ import annotations

import math

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.onnx.context import Context
from tinyet.importers.onnx.handlers_ml import Numeric, classes, features, held, numbers, row, transformed
from tinyet.importers.onnx.values import Value
from tinyet.ir import DType, Tensor
from tinyet.ops.add import Add
from tinyet.ops.argmax import ArgMax
from tinyet.ops.cast import Cast
from tinyet.ops.clamp import Clamp
from tinyet.ops.compare import Compare
from tinyet.ops.linear import Linear
from tinyet.ops.mul import Mul
from tinyet.ops.reshape import Reshape
from tinyet.ops.shared.forest import MAX_LINKS
from tinyet.ops.sub import Sub
from tinyet.ops.sum import Sum
from tinyet.ops.unary import Unary

_MOST_CLASSES = 256
_DEGREES = (1, 2, 3, 4)


def weighted(ctx: Context, x: Tensor, weights: Numeric, bias: Numeric) -> Tensor:
    return ctx.emit(Linear(), [x, held(ctx, "weights", weights), held(ctx, "bias", bias)])


def kernels(ctx: Context, x: Tensor, vectors: Numeric) -> Tensor:
    """(rows, features) → (rows, vectors)."""
    kind = ctx.attribute("kernel_type", "LINEAR")
    gamma, shift, degree = (*numbers(ctx, "kernel_params").tolist(), 0.0, 0.0, 0.0)[:3]
    zeros = np.zeros(len(vectors), np.float32)
    if kind == "LINEAR":
        return weighted(ctx, x, vectors, zeros)
    if kind == "RBF":
        middle = vectors.mean(0, dtype=np.float64)
        centered = vectors - middle
        moved = ctx.emit(Sub(), [x, held(ctx, "middle", middle[None].astype(np.float32))])
        weights, sizes = 2 * centered, -(centered**2).sum(1)
        near = weighted(ctx, moved, weights.astype(np.float32), sizes.astype(np.float32))
        size = ctx.emit(Sum((1,), True), [ctx.emit(Unary("square"), [moved])])
        # Rounding must not make a distance negative.
        apart = ctx.emit(Clamp(-math.inf, 0.0), [ctx.emit(Sub(), [near, size])])
        return ctx.emit(Unary("exp"), [ctx.emit(Mul(), [apart, row(ctx, [gamma])])])
    if kind not in ("POLY", "SIGMOID"):
        raise RefusedError(f"has kernel_type {kind[:40]}", "LINEAR, RBF, POLY or SIGMOID")
    inner = weighted(ctx, x, np.float32(gamma) * vectors, zeros + np.float32(shift))
    if kind == "SIGMOID":
        return ctx.emit(Unary("tanh"), [inner])
    if degree not in _DEGREES:
        raise RefusedError(f"has degree {degree}", "1 to 4")
    power = inner
    for _ in range(int(degree) - 1):
        power = ctx.emit(Mul(), [power, inner])
    return power


def vectors_of(ctx: Context, x: Tensor, count: int) -> Numeric:
    if not 1 <= count <= MAX_LINKS:
        raise RefusedError(f"has {count:,} support vectors, at most {MAX_LINKS:,}")
    return numbers(ctx, "support_vectors", count * x.shape[1]).reshape(count, x.shape[1])


def svm_regressor(ctx: Context) -> Value:
    x, count = features(ctx), ctx.attribute("n_supports", 0)
    rho = numbers(ctx, "rho", 1)
    if count:
        found = kernels(ctx, x, vectors_of(ctx, x, count))
    elif ctx.attribute("kernel_type", "LINEAR") == "LINEAR":
        found = x
    else:
        raise RefusedError("has no support vectors", "convert it again")
    margin = weighted(ctx, found, numbers(ctx, "coefficients", found.shape[1])[None], rho)
    if not ctx.attribute("one_class", 0):
        return transformed(ctx, margin)
    inlier = ctx.emit(Compare("greater"), [margin, row(ctx, [0.0])], dtype=DType.INT32)
    signs = ctx.emit(Cast(), [inlier], dtype=DType.FLOAT32)
    return ctx.emit(Add(), [ctx.emit(Mul(), [signs, row(ctx, [2.0])]), row(ctx, [-1.0])])


def svm_classifier(ctx: Context) -> list[Value]:
    """The label by the most pairs won, the first of equal ones; as scores ONNX Runtime's margins of all pairs, of two
    classes the margin of each."""
    x, count = features(ctx), classes(ctx)
    if not 2 <= count <= _MOST_CLASSES:
        raise RefusedError(f"has {count} classes, 2 to {_MOST_CLASSES}")
    own = numbers(ctx, "vectors_per_class", whole=True)
    if own.size != count or (own < 0).any():
        raise RefusedError(
            f"has vectors_per_class of {own.size} classes, not {count}", "a LinearClassifier has no vectors"
        )
    if numbers(ctx, "prob_a").size:
        raise RefusedError(
            "makes probabilities of margins by iterations that stop early",
            "convert it without probability=True; CalibratedClassifierCV is another way",
        )
    total = int(own.sum())
    vectors = vectors_of(ctx, x, total)
    dual = numbers(ctx, "coefficients", (count - 1) * total).reshape(count - 1, total)
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    ends = np.cumsum(own)
    places = [slice(end - size, end) for end, size in zip(ends.tolist(), own.tolist(), strict=True)]
    weights = np.zeros((len(pairs), total), np.float32)
    for number, (i, j) in enumerate(pairs):
        weights[number, places[i]] = dual[j - 1, places[i]]
        weights[number, places[j]] = dual[i, places[j]]
    margins = weighted(ctx, kernels(ctx, x, vectors), weights, numbers(ctx, "rho", len(pairs)))
    if count == 2:
        zero = row(ctx, [0.0])
        second = ctx.emit(Compare("greater_equal"), [zero, margins], dtype=DType.INT32)
        label = ctx.emit(Reshape((x.shape[0],)), [second])
        return [label, transformed(ctx, ctx.emit(Mul(), [margins, row(ctx, [-1.0, 1.0])]))]
    first = ctx.emit(
        Compare("greater"), [margins, held(ctx, "zero", np.zeros((1, 1), np.float32))], dtype=DType.INT32
    )
    won, bias = np.zeros((count, len(pairs)), np.float32), np.zeros(count, np.float32)
    for number, (i, j) in enumerate(pairs):
        won[i, number], won[j, number] = 1, -1
        bias[j] += 1  # who has not won has lost to the second
    votes = weighted(ctx, ctx.emit(Cast(), [first], dtype=DType.FLOAT32), won, bias)
    return [ctx.emit(ArgMax(1), [votes], dtype=DType.INT32), transformed(ctx, margins)]


SVM_HANDLERS = {
    "ai.onnx.ml.SVMClassifier": svm_classifier,
    "ai.onnx.ml.SVMRegressor": svm_regressor,
}
