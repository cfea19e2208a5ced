# SPDX-License-Identifier: Apache-2.0
"""A fitted estimator of scikit-learn, or a pipeline of them → Graph. The one table of handlers, and what combines
estimators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tinyet.errors import Complaints, RefusedError, UsageError
from tinyet.importers.classical import distances, linear, preprocessing, trees
from tinyet.importers.classical.context import Context, Imported, Methods, features, finished, only
from tinyet.ir import DType, Tensor
from tinyet.messages.text import shown

HANDLERS: Mapping[str, Methods] = {
    "AdaBoostClassifier": trees.ADA_CLASSIFIER,
    "BayesianRidge": linear.REGRESSOR,
    "Binarizer": preprocessing.BINARIZER,
    "DecisionTreeClassifier": trees.CLASSIFIER,
    "DecisionTreeRegressor": trees.REGRESSOR,
    "ElasticNet": linear.REGRESSOR,
    "ElasticNetCV": linear.REGRESSOR,
    "EllipticEnvelope": distances.ENVELOPE,
    "ExtraTreeClassifier": trees.CLASSIFIER,
    "ExtraTreeRegressor": trees.REGRESSOR,
    "ExtraTreesClassifier": trees.CLASSIFIER,
    "ExtraTreesRegressor": trees.REGRESSOR,
    "GaussianMixture": distances.MIXTURE,
    "GaussianNB": distances.NAIVE,
    "GradientBoostingClassifier": trees.BOOSTED_CLASSIFIER,
    "GradientBoostingRegressor": trees.BOOSTED_REGRESSOR,
    "HistGradientBoostingClassifier": trees.HISTOGRAM_CLASSIFIER,
    "HistGradientBoostingRegressor": trees.HISTOGRAM_REGRESSOR,
    "HuberRegressor": linear.REGRESSOR,
    "IsolationForest": trees.ISOLATION,
    "KMeans": distances.KMEANS,
    "KNeighborsClassifier": distances.NEIGHBOUR_CLASSIFIER,
    "KNeighborsRegressor": distances.NEIGHBOUR_REGRESSOR,
    "Lars": linear.REGRESSOR,
    "Lasso": linear.REGRESSOR,
    "LassoCV": linear.REGRESSOR,
    "LinearDiscriminantAnalysis": linear.DISCRIMINANT,
    "LinearRegression": linear.REGRESSOR,
    "LinearSVC": linear.CLASSIFIER,
    "LinearSVR": linear.REGRESSOR,
    "LogisticRegression": linear.LOGISTIC,
    "LogisticRegressionCV": linear.LOGISTIC,
    "MLPClassifier": linear.NETWORK_CLASSIFIER,
    "MLPRegressor": linear.NETWORK_REGRESSOR,
    "MaxAbsScaler": preprocessing.GREATEST_ABSOLUTE,
    "MinMaxScaler": preprocessing.LEAST_GREATEST,
    "MiniBatchKMeans": distances.KMEANS,
    "Normalizer": preprocessing.NORMALIZER,
    "NuSVC": distances.MACHINE_CLASSIFIER,
    "NuSVR": distances.MACHINE_REGRESSOR,
    "OneClassSVM": distances.ONE_CLASS,
    "OneHotEncoder": preprocessing.ONE_HOT,
    "PCA": preprocessing.COMPONENTS,
    "Perceptron": linear.CLASSIFIER,
    "RandomForestClassifier": trees.CLASSIFIER,
    "RandomForestRegressor": trees.REGRESSOR,
    "Ridge": linear.REGRESSOR,
    "RidgeCV": linear.REGRESSOR,
    "RidgeClassifier": linear.CLASSIFIER,
    "RidgeClassifierCV": linear.CLASSIFIER,
    "RobustScaler": preprocessing.ROBUST,
    "SGDClassifier": linear.CLASSIFIER,
    "SGDRegressor": linear.REGRESSOR,
    "SVC": distances.MACHINE_CLASSIFIER,
    "SVR": distances.MACHINE_REGRESSOR,
    "SelectFromModel": preprocessing.SELECTED,
    "SelectKBest": preprocessing.SELECTED,
    "SelectPercentile": preprocessing.SELECTED,
    "StandardScaler": preprocessing.STANDARD,
    "TruncatedSVD": preprocessing.SINGULAR,
    "VarianceThreshold": preprocessing.SELECTED,
}

INLIERS = ("EllipticEnvelope", "IsolationForest", "OneClassSVM")
"""Whose `predict` is 1 or -1; here 1 or 0."""


def import_estimator(
    estimator: Any,
    methods: Sequence[str] | None = None,
    *,
    name: str,
    dtype: DType = DType.FLOAT32,
    scale: float = 1.0,
    zero_point: int = 0,
    missing_values: bool = False,
    leaf_dtype: DType = DType.FLOAT32,
) -> Imported:
    """A fitted estimator as a graph of one row of features, (1, n).

    methods: those whose results are the outputs; by default `predict`, of a transformer `transform`. dtype, scale,
    zero_point: of the features; integers q stand for scale * (q - zero_point). missing_values: features may be NaN,
    and go where training has sent missing ones; otherwise NaN goes to the right child everywhere. leaf_dtype: of what
    trees add up: float32, or int16, whose sums are int32.

    Raises UsageError for a method that the estimator has not, or that nothing is known of, UnsupportedOp
    (UnsupportedShape, when every estimator is known, but not its options) with all complaints at once.
    """
    last = last_of(estimator)
    if methods is None:
        known = HANDLERS.get(type(last).__name__, {})
        methods = ("transform",) if "predict" not in known and "transform" in known else ("predict",)
    ctx = Context(missing_values, leaf_dtype)
    complaints = Complaints(type(estimator).__name__)
    width = getattr(estimator, "n_features_in_", None)
    for place, step in steps_of(estimator, ""):
        complaints.attempt(titled(place, step), partial(known_estimator, step))
    complaints.raise_any()
    if width is None:
        raise UsageError(f"the {type(estimator).__name__} is not fitted", hint="fit it first")
    x = features(ctx, int(width), dtype, scale, zero_point)
    outputs: list[Tensor] = []
    for method in methods:
        failed: Callable[[], None] = partial(_into, outputs, ctx, estimator, method, x)
        complaints.attempt(titled(ctx.place, last), failed)
    complaints.raise_any()
    return finished(ctx, name, x, outputs, methods, labels_of(last, methods[0], outputs[0]))


def _into(outputs: list[Tensor], ctx: Context, estimator: Any, method: str, x: Tensor) -> None:
    outputs.append(applied(ctx, estimator, method, x, ""))


def labels_of(last: Any, method: str, output: Tensor) -> tuple[str, ...]:
    """Names of the classes, where the output is a class or has an element for each."""
    if method == "predict" and type(last).__name__ in INLIERS:
        return ("outlier", "inlier")
    classes = getattr(last, "classes_", None)
    if classes is None or np.ndim(classes) != 1 or method == "transform":
        return ()
    names = tuple(str(c) for c in classes)
    fits = method == "predict" or output.type.count == len(names)
    return names if fits and all(n.strip() and n.isprintable() for n in names) else ()


# ---------------------------------------------------------------- estimators, and what combines them


def titled(place: str, estimator: Any) -> str:
    kind = type(estimator).__name__
    return f"{kind}, step {place}" if place else kind


def last_of(estimator: Any) -> Any:
    """What answers: the last step of a pipeline, the chosen one of a search."""
    while (inner := inner_of(estimator)) is not estimator:
        estimator = inner
    return estimator


def inner_of(estimator: Any) -> Any:
    kind = type(estimator).__name__
    if kind == "Pipeline" and estimator.steps:
        found = [step for _, step in estimator.steps if not nothing(step)]
        return found[-1] if found else estimator
    return getattr(estimator, "best_estimator_", estimator)


def nothing(step: Any) -> bool:
    """Whether a step changes nothing; a fitted ColumnTransformer has such a function in place of the word."""
    if type(step).__name__ == "FunctionTransformer" and getattr(step, "func", 0) is None:
        return True
    return step is None or (isinstance(step, str) and step == "passthrough")


def steps_of(estimator: Any, place: str) -> list[tuple[str, Any]]:
    """All estimators within one, with their paths."""
    kind = type(estimator).__name__
    if kind == "Pipeline":
        inner = [(name, step) for name, step in estimator.steps if not nothing(step)]
    elif kind == "ColumnTransformer":
        fitted = getattr(estimator, "transformers_", estimator.transformers)
        inner = [(name, step) for name, step, _ in fitted if not nothing(step) and not isinstance(step, str)]
    elif kind == "FeatureUnion":
        listed = estimator.transformer_list
        inner = [(name, step) for name, step in listed if not nothing(step) and not isinstance(step, str)]
    elif hasattr(estimator, "best_estimator_"):
        return steps_of(estimator.best_estimator_, place)
    else:
        return [(place, estimator)]
    return [found for name, step in inner for found in steps_of(step, joined(place, name))]


def joined(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def known_estimator(estimator: Any) -> None:
    """Raises RefusedError for one without handlers. What a class derived from scikit-learn's computes, only its author
    knows."""
    kind = type(estimator)
    if kind.__module__.partition(".")[0] in ("xgboost", "lightgbm"):
        how = (
            "save_model('model.json')"
            if kind.__module__.startswith("xgb")
            else "booster_.save_model('model.txt')"
        )
        raise RefusedError("is no estimator of scikit-learn's", f"{how}, and open that file", shape=False)
    if kind.__module__.partition(".")[0] != "sklearn" or kind.__name__ not in HANDLERS:
        raise RefusedError("is not supported", advice(kind.__name__), shape=False)


def advice(kind: str) -> str:
    """The advice for an estimator without handlers."""
    if kind in ("FunctionTransformer", "PolynomialFeatures", "KBinsDiscretizer", "SplineTransformer"):
        return "compute its features in the application, and fit the rest on them"
    if kind in ("SimpleImputer", "KNNImputer", "OrdinalEncoder", "LabelEncoder", "TargetEncoder"):
        return "leave it to the application, or fit a HistGradientBoosting model, which takes missing values"
    if kind.startswith(("CalibratedClassifier", "Voting", "Stacking", "Bagging", "OneVs", "MultiOutput")):
        return "fit one of the models in it by itself"
    return "docs/classical.md lists the estimators that are"


def applied(ctx: Context, estimator: Any, method: str, x: Tensor, place: str) -> Tensor:
    """What a method of an estimator makes of x."""
    kind = type(estimator).__name__
    if kind == "Pipeline":
        steps = [(name, step) for name, step in estimator.steps if not nothing(step)]
        for name, step in steps[:-1]:
            x = applied(ctx, step, "transform", x, joined(place, name))
        if not steps:
            return x
        name, step = steps[-1]
        return applied(ctx, step, method, x, joined(place, name))
    if kind == "ColumnTransformer":
        return by_columns(ctx, estimator, x, place)
    if kind == "FeatureUnion":
        return union(ctx, estimator, x, place)
    if hasattr(estimator, "best_estimator_"):
        return applied(ctx, estimator.best_estimator_, method, x, place)
    ctx.place, ctx.estimator = place, estimator
    known = HANDLERS[kind]
    if method not in known:
        raise RefusedError(f"has no {method} here", f"what is known: {', '.join(known)}")
    width = getattr(estimator, "n_features_in_", x.shape[1])
    if width != x.shape[1]:
        raise RefusedError(f"was fitted on {width} features, and is given {x.shape[1]}")
    return known[method](ctx, estimator, x)


def union(ctx: Context, estimator: Any, x: Tensor, place: str) -> Tensor:
    """A FeatureUnion: each of its transformers on all columns."""
    only(estimator, transformer_weights=None)
    kept = [
        (n, step) for n, step in estimator.transformer_list if not (isinstance(step, str) and step == "drop")
    ]
    return ctx.concat(
        [
            ctx.real(x) if nothing(step) else applied(ctx, step, "transform", x, joined(place, n))
            for n, step in kept
        ]
    )


def by_columns(ctx: Context, estimator: Any, x: Tensor, place: str) -> Tensor:
    """A ColumnTransformer: each of its transformers on some columns, one result beside the other."""
    parts: list[Tensor] = []
    for name, step, columns in estimator.transformers_:
        if isinstance(step, str) and step == "drop":
            continue
        indices = column_numbers(estimator, columns)
        if not indices:
            continue
        own = ctx.columns(x, indices)
        parts.append(
            ctx.real(own) if nothing(step) else applied(ctx, step, "transform", own, joined(place, name))
        )
    if not parts:
        raise RefusedError("keeps no column")
    return ctx.concat(parts)


def column_numbers(estimator: Any, columns: Any) -> list[int]:
    """Which columns a transformer takes: by number, by name, as a slice or as a mask."""
    width, names = estimator.n_features_in_, list(getattr(estimator, "feature_names_in_", ()))
    if callable(columns):
        raise RefusedError("chooses columns by a function", "name them")
    if isinstance(columns, slice):
        edges = [names.index(e) if isinstance(e, str) else e for e in (columns.start, columns.stop)]
        if isinstance(columns.stop, str):  # by names, the last is meant, too
            edges[1] += 1
        return list(range(width))[edges[0] : edges[1] : columns.step]
    listed = [columns] if isinstance(columns, (int, str, np.integer)) else list(columns)
    if len(listed) == width and all(isinstance(c, (bool, np.bool_)) for c in listed):
        return [i for i, wanted in enumerate(listed) if wanted]
    unknown = [c for c in listed if isinstance(c, str) and c not in names]
    if unknown:
        raise RefusedError(f"names the columns {shown(unknown, 80)}, which it was not fitted with")
    return [names.index(c) if isinstance(c, str) else int(c) % width for c in listed]
