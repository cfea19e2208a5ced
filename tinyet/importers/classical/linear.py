# SPDX-License-Identifier: Apache-2.0
"""Linear models, and networks of layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.classical.context import Context, Methods, array, only
from tinyet.ir import Tensor
from tinyet.ops.shared.unary_functions import FunctionName


def scores(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    weights = np.atleast_2d(array(estimator, "coef_"))
    bias = np.broadcast_to(np.asarray(estimator.intercept_, np.float64).reshape(-1), len(weights))
    return ctx.linear(x, weights, bias)


def value(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    found = scores(ctx, estimator, x)
    return ctx.reshape(found, (1,)) if found.shape == (1, 1) else found


def chosen(ctx: Context, found: Tensor) -> Tensor:
    """The class of scores; of two classes there is one score, the second's."""
    return ctx.above(found, 0.0) if found.shape[1] == 1 else ctx.argmax(found)


def class_(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    if np.ndim(getattr(estimator, "classes_", [])) != 1:
        raise RefusedError("has several labels a sample", "fit one estimator for each")
    return chosen(ctx, scores(ctx, estimator, x))


def proba(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    """Softmax; of two classes, and of one class against the others, the logistic function of each."""
    found = scores(ctx, estimator, x)
    if found.shape[1] == 1:
        return ctx.softmax(ctx.with_first(found))
    way = getattr(estimator, "multi_class", "auto")
    if way == "ovr" or getattr(estimator, "solver", "") == "liblinear":
        each = ctx.unary("sigmoid", found)
        return ctx.mul(each, ctx.unary("reciprocal", ctx.sum(each, 1, keepdims=True)))
    return ctx.softmax(found)


REGRESSOR: Methods = {"predict": value}
CLASSIFIER: Methods = {"predict": class_, "decision_function": scores}
LOGISTIC: Methods = {**CLASSIFIER, "predict_proba": proba}


def discriminant_transform(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    only(estimator, solver=("svd", "eigen"))
    directions = array(estimator, "scalings_")
    if estimator.solver == "svd":
        x = ctx.sub(ctx.real(x), array(estimator, "xbar_")[None])
    return ctx.linear(x, directions.T[: estimator._max_components], None)


DISCRIMINANT: Methods = {**LOGISTIC, "transform": discriminant_transform}


# ---------------------------------------------------------------- networks

_ACTIVATIONS: Mapping[str, FunctionName | None] = {
    "identity": None,
    "logistic": "sigmoid",
    "tanh": "tanh",
}


def network(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    """What comes out of the last layer, before its activation."""
    only(estimator, activation=(*_ACTIVATIONS, "relu"))
    layers = list(zip(estimator.coefs_, estimator.intercepts_, strict=True))
    for number, (weights, bias) in enumerate(layers, 1):
        x = ctx.linear(x, np.asarray(weights).T, bias)
        if number == len(layers):
            break
        if estimator.activation == "relu":
            x = ctx.relu(x)
        elif (function := _ACTIVATIONS[estimator.activation]) is not None:
            x = ctx.unary(function, x)
    return x


def network_scores(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    """Raises RefusedError for several labels a sample."""
    only(estimator, out_activation_=("softmax", "logistic"))
    found = network(ctx, estimator, x)
    if estimator.out_activation_ == "logistic" and found.shape[1] > 1:
        raise RefusedError("has several labels a sample", "fit one estimator for each")
    return found


def network_class(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    return chosen(ctx, network_scores(ctx, estimator, x))


def network_proba(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    found = network_scores(ctx, estimator, x)
    return ctx.softmax(ctx.with_first(found) if found.shape[1] == 1 else found)


def network_value(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    only(estimator, out_activation_=("identity", None))
    found = network(ctx, estimator, x)
    return ctx.reshape(found, (1,)) if found.shape == (1, 1) else found


NETWORK_CLASSIFIER: Methods = {"predict": network_class, "predict_proba": network_proba}
NETWORK_REGRESSOR: Methods = {"predict": network_value}
