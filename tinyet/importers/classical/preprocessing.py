# SPDX-License-Identifier: Apache-2.0
"""What stands before a model: scalers, encoders, projections, selections."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.classical.context import Context, Methods, array, only
from tinyet.ir import DType, Tensor
from tinyet.ops.amax import Amax
from tinyet.ops.cast import Cast
from tinyet.ops.clamp import Clamp
from tinyet.ops.compare import Compare


def standard(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    x = ctx.real(x)
    if estimator.with_mean:
        x = ctx.sub(x, array(estimator, "mean_")[None])
    return ctx.mul(x, 1 / array(estimator, "scale_")[None]) if estimator.with_std else x


def robust(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    x = ctx.real(x)
    if estimator.with_centering:
        x = ctx.sub(x, array(estimator, "center_")[None])
    return ctx.mul(x, 1 / array(estimator, "scale_")[None]) if estimator.with_scaling else x


def least_greatest(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    """(x - least) * scale + low: scikit-learn's x * scale + min, without the difference of large numbers."""
    low, high = (float(bound) for bound in estimator.feature_range)
    x = ctx.mul(ctx.sub(ctx.real(x), array(estimator, "data_min_")[None]), array(estimator, "scale_")[None])
    x = ctx.add(x, [[low]]) if low else x
    return ctx.emit(Clamp(low, high), [x]) if estimator.clip else x


def greatest_absolute(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    only(estimator, clip=(False, None))
    return ctx.mul(ctx.real(x), 1 / array(estimator, "scale_")[None])


def normalizer(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    """Divided by the row's norm; of a row of zeros by 1."""
    only(estimator, norm=("l1", "l2", "max"))
    x = ctx.real(x)
    sizes = ctx.unary("square" if estimator.norm == "l2" else "abs", x)
    norm = (
        ctx.emit(Amax((1,), True), [sizes]) if estimator.norm == "max" else ctx.sum(sizes, 1, keepdims=True)
    )
    # The least float32 that is no denormal: a row with a norm below it is one of zeros.
    floor = ctx.emit(Clamp(float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)), [norm])
    return ctx.mul(x, ctx.unary("rsqrt" if estimator.norm == "l2" else "reciprocal", floor))


def binarizer(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    bound = ctx.held("bound", np.full(x.shape, float(estimator.threshold)))
    above = ctx.emit(Compare("greater"), [ctx.real(x), bound], DType.INT32)
    return ctx.emit(Cast(), [above], DType.FLOAT32)


def components(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    """PCA: what is left of the mean, along the components."""
    x = ctx.sub(ctx.real(x), array(estimator, "mean_")[None])
    along = array(estimator, "components_")
    if estimator.whiten:
        spread = np.sqrt(array(estimator, "explained_variance_"))
        along = along / np.maximum(spread, np.finfo(np.float64).eps)[:, None]
    return ctx.linear(x, along, None)


def singular(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    return ctx.linear(x, array(estimator, "components_"), None)


def selected(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    return ctx.columns(x, [int(i) for i in np.flatnonzero(estimator.get_support())])


def one_hot(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    """Whether a feature is each of its categories: 1 or 0."""
    if getattr(estimator, "infrequent_categories_", None) and any(
        c is not None for c in estimator.infrequent_categories_
    ):
        raise RefusedError("puts infrequent categories together", "leave min_frequency, max_categories away")
    columns: list[int] = []
    categories: list[float] = []
    dropped = estimator.drop_idx_
    for feature, known in enumerate(estimator.categories_):
        if np.asarray(known).dtype.kind not in "fiub":
            raise RefusedError(
                "has categories that are no numbers", "number them before: firmware has no text"
            )
        drop = None if dropped is None else dropped[feature]
        for index, category in enumerate(np.asarray(known, np.float64)):
            if index != drop:
                if float(np.float32(category)) != category:
                    raise RefusedError(
                        f"has a category {category!r} that is no float32", "number them before"
                    )
                columns.append(feature)
                categories.append(float(category))
    if estimator.handle_unknown == "error":
        ctx.note("unknown categories are all zeros, where scikit-learn raises an error")
    elif estimator.handle_unknown not in ("ignore", "warn"):
        only(estimator, handle_unknown=("error", "ignore"))
    spread = ctx.columns(ctx.real(x), columns)
    equal = ctx.emit(Compare("equal"), [spread, ctx.held("categories", [categories])], DType.INT32)
    return ctx.emit(Cast(), [equal], DType.FLOAT32)


STANDARD: Methods = {"transform": standard}
ROBUST: Methods = {"transform": robust}
LEAST_GREATEST: Methods = {"transform": least_greatest}
GREATEST_ABSOLUTE: Methods = {"transform": greatest_absolute}
NORMALIZER: Methods = {"transform": normalizer}
BINARIZER: Methods = {"transform": binarizer}
COMPONENTS: Methods = {"transform": components}
SINGULAR: Methods = {"transform": singular}
SELECTED: Methods = {"transform": selected}
ONE_HOT: Methods = {"transform": one_hot}
