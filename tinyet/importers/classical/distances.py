# SPDX-License-Identifier: Apache-2.0
"""Models of distances: k-means, neighbours, kernels, Gaussians.

Few centers are subtracted one by one, and the squares added. Of many (support vectors, neighbours) |x - c|^2 is
|x|^2 - 2 x.c + |c|^2, which needs no memory for the differences; all are moved so that their mean is the origin first,
so that little is lost in it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.classical.context import Context, Methods, array, only
from tinyet.importers.classical.outliers import outlier_methods
from tinyet.ir import DType, Tensor
from tinyet.ops.amax import Amax
from tinyet.ops.amin import Amin
from tinyet.ops.argsort import ArgSort
from tinyet.ops.cast import Cast
from tinyet.ops.clamp import Clamp
from tinyet.ops.compare import Compare
from tinyet.ops.embedding import Embedding
from tinyet.ops.shared.forest import Numeric


def squares(ctx: Context, x: Tensor, centers: Numeric, factors: Numeric | None = None) -> Tensor:
    """(1, n) → (1, centers): sums of the squared differences, each times its factor."""
    width = centers.shape[1]
    apart = ctx.sub(ctx.reshape(ctx.real(x), (1, 1, width)), centers[None])
    squared = ctx.unary("square", apart)
    return ctx.sum(squared if factors is None else ctx.mul(squared, factors[None]), 2)


def nearness(ctx: Context, x: Tensor, points: Numeric) -> tuple[Tensor, Tensor]:
    """Of many points: 2 x.p - |p|^2, (1, points), the greater the nearer; and the x that it is of, moved."""
    middle = points.mean(0)
    moved = ctx.sub(ctx.real(x), middle[None])
    centered = points - middle
    return ctx.linear(moved, 2 * centered, -(centered**2).sum(1)), moved


# ---------------------------------------------------------------- k-means


def cluster(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    return ctx.argmax(ctx.mul(squares(ctx, x, array(estimator, "cluster_centers_")), [[-1.0]]))


def cluster_distances(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    return ctx.unary("sqrt", squares(ctx, x, array(estimator, "cluster_centers_")))


def cluster_nearest(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    """The distance to the nearest center."""
    near = ctx.emit(Amin((1,), True), [squares(ctx, x, array(estimator, "cluster_centers_"))])
    return ctx.reshape(ctx.unary("sqrt", near), (1,))


KMEANS: Methods = {"predict": cluster, "transform": cluster_distances, "anomaly_score": cluster_nearest}


# ---------------------------------------------------------------- neighbours


def neighbours(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    """The places of the nearest samples, (1, k)."""
    only(estimator, weights="uniform", effective_metric_=("euclidean", "minkowski"))
    if estimator.effective_metric_ == "minkowski" and estimator.effective_metric_params_.get("p", 2) != 2:
        raise RefusedError("measures distances with another p than 2", "fit it with p=2")
    near, _ = nearness(ctx, x, array(estimator, "_fit_X"))
    return ctx.emit(ArgSort(1, int(estimator.n_neighbors), descending=True), [near], DType.INT32)


def votes(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    """How many of the neighbours are of each class."""
    if estimator.outputs_2d_:
        raise RefusedError("has several outputs", "fit one estimator for each")
    classes = np.arange(len(estimator.classes_)) == np.asarray(estimator._y).reshape(-1, 1)
    table = ctx.held("classes", classes)
    return ctx.sum(ctx.emit(Embedding(), [neighbours(ctx, estimator, x), table], DType.FLOAT32), 1)


def neighbour_class(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    return ctx.argmax(votes(ctx, estimator, x))


def neighbour_proba(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    return ctx.mul(votes(ctx, estimator, x), [[1 / int(estimator.n_neighbors)]])


def neighbour_mean(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    values = np.asarray(estimator._y, np.float64)
    table = ctx.held("targets", values.reshape(len(values), -1))
    near = ctx.emit(Embedding(), [neighbours(ctx, estimator, x), table], DType.FLOAT32)
    mean = ctx.mul(ctx.sum(near, 1), [[1 / int(estimator.n_neighbors)]])
    return ctx.reshape(mean, (1,)) if values.ndim == 1 else mean


NEIGHBOUR_CLASSIFIER: Methods = {"predict": neighbour_class, "predict_proba": neighbour_proba}
NEIGHBOUR_REGRESSOR: Methods = {"predict": neighbour_mean}


# ---------------------------------------------------------------- support vectors


def kernels(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    """(1, n) → (1, support vectors)."""
    only(estimator, kernel=("rbf", "linear", "poly", "sigmoid"))
    vectors = array(estimator, "support_vectors_")
    gamma, shift = float(estimator._gamma), float(estimator.coef0)
    if estimator.kernel == "rbf":
        near, moved = nearness(ctx, x, vectors)
        size = ctx.sum(ctx.unary("square", moved), 1, keepdims=True)
        # Rounding must not make a distance negative.
        apart = ctx.emit(Clamp(-math.inf, 0.0), [ctx.sub(near, size)])
        return ctx.unary("exp", ctx.mul(apart, [[gamma]]))
    if estimator.kernel == "linear":
        return ctx.linear(x, vectors, None)
    inner = ctx.linear(x, gamma * vectors, np.full(len(vectors), shift))
    if estimator.kernel == "sigmoid":
        return ctx.unary("tanh", inner)
    if estimator.degree not in (1, 2, 3, 4):
        raise RefusedError(f"has degree={estimator.degree}", "1 to 4")
    power = inner
    for _ in range(int(estimator.degree) - 1):
        power = ctx.mul(power, inner)
    return power


def margin(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    """(1, 1): of regression, of two classes, of one class."""
    return ctx.linear(kernels(ctx, estimator, x), array(estimator, "dual_coef_"), estimator.intercept_)


def pairs_of(estimator: Any) -> list[tuple[int, int]]:
    count = len(estimator.classes_)
    return [(i, j) for i in range(count) for j in range(i + 1, count)]


def one_against_one(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    """The margins of each pair of classes, (1, pairs): positive for the first."""
    ends = np.cumsum(np.asarray(estimator.n_support_))
    own = [slice(end - count, end) for end, count in zip(ends, estimator.n_support_, strict=True)]
    dual, pairs = array(estimator, "_dual_coef_"), pairs_of(estimator)
    weights = np.zeros((len(pairs), dual.shape[1]))
    for row, (i, j) in enumerate(pairs):
        weights[row, own[i]] = dual[j - 1, own[i]]
        weights[row, own[j]] = dual[i, own[j]]
    return ctx.linear(kernels(ctx, estimator, x), weights, estimator._intercept_)


def wins(ctx: Context, estimator: Any, margins: Tensor) -> Tensor:
    """How many pairs each class has won, (1, classes)."""
    pairs, count = pairs_of(estimator), len(estimator.classes_)
    zero = ctx.held("zero", np.zeros(margins.shape))
    first = ctx.emit(Cast(), [ctx.emit(Compare("greater"), [margins, zero], DType.INT32)], DType.FLOAT32)
    # Who has not won has lost to the second.
    weights, bias = np.zeros((count, len(pairs))), np.zeros(count)
    for column, (i, j) in enumerate(pairs):
        weights[i, column], weights[j, column] = 1, -1
        bias[j] += 1
    return ctx.linear(first, weights, bias)


def machine_class(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    only(estimator, break_ties=False)
    if len(estimator.classes_) == 2:
        return ctx.above(margin(ctx, estimator, x), 0.0)
    return ctx.argmax(wins(ctx, estimator, one_against_one(ctx, estimator, x)))


def machine_scores(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    """One against one, or what scikit-learn makes of it for each class: wins, and the margins as less than one."""
    if len(estimator.classes_) == 2:
        return margin(ctx, estimator, x)
    margins = one_against_one(ctx, estimator, x)
    if estimator.decision_function_shape == "ovo":
        return margins
    pairs = pairs_of(estimator)
    signs = np.zeros((len(estimator.classes_), len(pairs)))
    for column, (i, j) in enumerate(pairs):
        signs[i, column], signs[j, column] = 1, -1
    sums = ctx.linear(margins, signs, None)
    bounded = ctx.unary("reciprocal", ctx.mul(ctx.add(ctx.unary("abs", sums), [[1.0]]), [[3.0]]))
    return ctx.add(wins(ctx, estimator, margins), ctx.mul(sums, bounded))


def machine_value(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    return ctx.reshape(margin(ctx, estimator, x), (1,))


def one_class_inlier(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    return ctx.above(margin(ctx, estimator, x), 0.0)


def one_class_anomaly(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    return ctx.mul(one_class_scores(ctx, estimator, x), [[-1.0]])


def one_class_scores(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    return ctx.add(margin(ctx, estimator, x), [[float(estimator.offset_[0])]])


MACHINE_CLASSIFIER: Methods = {"predict": machine_class, "decision_function": machine_scores}
MACHINE_REGRESSOR: Methods = {"predict": machine_value}
ONE_CLASS: Methods = {
    "predict": one_class_inlier,
    "decision_function": margin,
    "score_samples": one_class_scores,
    "anomaly_score": one_class_anomaly,
}


# ---------------------------------------------------------------- Gaussians


def naive(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    """Logarithms of the classes' joint likelihoods, (1, classes)."""
    variance, priors = array(estimator, "var_"), array(estimator, "class_prior_")
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(priors), -1e30)
    start = logs - 0.5 * np.log(2 * np.pi * variance).sum(1)
    return ctx.add(squares(ctx, x, array(estimator, "theta_"), -0.5 / variance), start[None])


def naive_class(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    return ctx.argmax(naive(ctx, estimator, x))


def naive_proba(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    return ctx.softmax(naive(ctx, estimator, x))


NAIVE: Methods = {"predict": naive_class, "predict_proba": naive_proba}


def weighted(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    """Logarithms of the components' densities times their weights, (1, components)."""
    means, roots = array(estimator, "means_"), array(estimator, "precisions_cholesky_")
    count, width = means.shape
    way = estimator.covariance_type
    if way in ("full", "tied"):
        each = np.broadcast_to(roots, (count, width, width))
        middle = means.mean(0)
        moved = ctx.sub(ctx.real(x), middle[None])
        rows = np.concatenate([root.T for root in each])
        shift = np.concatenate([-(mean - middle) @ root for mean, root in zip(means, each, strict=True)])
        along = ctx.reshape(ctx.linear(moved, rows, shift), (1, count, width))
        distance = ctx.sum(ctx.unary("square", along), 2)
        logs = np.log(np.diagonal(each, axis1=1, axis2=2)).sum(1)
    else:
        spread = roots if way == "diag" else np.repeat(roots.reshape(-1, 1), width, 1)
        distance = squares(ctx, x, means, spread**2)
        logs = np.log(spread).sum(1)
    start = np.log(array(estimator, "weights_")) + logs - 0.5 * width * math.log(2 * math.pi)
    return ctx.add(ctx.mul(distance, [[-0.5]]), start[None])


def mixture_class(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    return ctx.argmax(weighted(ctx, estimator, x))


def mixture_proba(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    return ctx.softmax(weighted(ctx, estimator, x))


def mixture_scores(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    """The logarithm of the density."""
    each = weighted(ctx, estimator, x)
    most = ctx.emit(Amax((1,), True), [each])
    rest = ctx.sum(ctx.unary("exp", ctx.sub(each, most)), 1, keepdims=True)
    return ctx.reshape(ctx.add(most, ctx.unary("log", rest)), (1,))


def mixture_anomaly(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    return ctx.mul(mixture_scores(ctx, estimator, x), [-1.0])


MIXTURE: Methods = {
    "predict": mixture_class,
    "predict_proba": mixture_proba,
    "score_samples": mixture_scores,
    "anomaly_score": mixture_anomaly,
}


def envelope_distance(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    """Mahalanobis' distance from the data, squared: with L L^T the precision, |(x - mean) L|^2."""
    mean = array(estimator, "location_")
    try:
        root = np.linalg.cholesky(array(estimator, "precision_"))
    except np.linalg.LinAlgError as error:
        raise RefusedError("has a covariance that is not positive", "fit it on more samples") from error
    along = ctx.linear(ctx.sub(ctx.real(x), mean[None]), root.T, None)
    return ctx.sum(ctx.unary("square", along), 1, keepdims=True)


ENVELOPE = outlier_methods(envelope_distance)
