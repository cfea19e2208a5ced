# SPDX-License-Identifier: Apache-2.0
"""Trees: single ones, forests, boosted ones, isolation forests. All of an estimator's trees are one node of the graph.

scikit-learn adds in float64; here the sums are float32, in the order of the trees. What is added for `predict` of a
forest are the leaves' fractions themselves, not yet divided by the number of trees: of pure leaves these sums are
exact, as are the ties between classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.classical.context import Context, Methods, only
from tinyet.importers.classical.outliers import outlier_methods
from tinyet.ir import DType, Tensor
from tinyet.ops.shared.forest import Forest, Numeric, Tree, as_integers, at_most, forest_of, nearest
from tinyet.ops.tree_ensemble import TreeEnsemble


def emitted(ctx: Context, x: Tensor, forest: Forest, samples: float | None = None) -> Tensor:
    """The node of a forest. Thresholds become those of the features' own integers, where it reads these; leaves
    int16 where this is asked for, whose sums are in fixed point. samples: the comparisons of a training sample, on
    average, which is not known any more where integers leave nodes out."""
    if x.dtype is not DType.FLOAT32:
        assert x.type.quant is not None
        if forest.missing is not None:
            raise RefusedError("takes missing values, which integers have not", "take float32 features")
        nodes = len(forest.features)
        forest = as_integers(forest, x.dtype, x.type.quant)
        samples = samples if len(forest.features) == nodes else None
    # Rounded, a mean may be above what it is the mean of.
    sampled = None if samples is None else min(float(samples), float(forest.worst_path))
    mean = forest.mean_path if sampled is None else sampled
    fixed = forest.fixed_point() if ctx.leaf_dtype is DType.INT16 else None
    forest = forest if fixed is None else fixed.forest
    arrays = [
        ("feature_numbers", forest.features),
        ("thresholds", forest.thresholds),
        ("children", forest.children),
        ("roots", forest.roots),
        ("leaves", forest.values),
        ("targets", forest.targets),
        ("base", forest.base),
        *([] if forest.missing is None else [("missing", forest.missing)]),
    ]
    ctx.note(
        f"{len(forest.roots):,} tree(s), {len(forest.features):,} nodes, {len(forest.values):,} different leaves, at "
        f"most {forest.depth} deep; comparisons of a row: at most {forest.worst_path:,}, {mean:,.0f} on average"
    )
    held = [ctx.held(name, data, data.dtype, finite=name != "thresholds") for name, data in arrays]
    if fixed is None:
        return ctx.emit(TreeEnsemble(sampled), [x, *held], DType.FLOAT32)
    ctx.note(
        f"leaves are int16 with {fixed.fraction} fractional bits, and their sums exact: at most {fixed.error:.3g} from "
        f"the sums of the leaves as they were, {fixed.error / len(forest.roots):.3g} from their mean"
    )
    sums = ctx.emit(TreeEnsemble(sampled), [x, *held], DType.INT32)
    ctx.fractions[sums] = fixed.fraction
    return sums


def tree_of(
    ctx: Context, fitted: Any, values: Numeric, target: int = 0, columns: Sequence[int] | None = None
) -> Tree:
    """A `tree_` of scikit-learn. values: (nodes, width), what its leaves add. columns: those of the features that the
    tree was given."""
    left = np.asarray(fitted.children_left, np.int32)
    features = np.maximum(np.asarray(fitted.feature, np.int32), 0)
    if columns is not None:
        features = np.asarray(columns, np.int32)[features]
    missing = getattr(fitted, "missing_go_to_left", None) if ctx.missing_values else None
    with np.errstate(over="ignore"):
        rows = np.asarray(values, np.float32)
    if not np.isfinite(rows).all():
        raise RefusedError("has leaves that are no finite float32", "scale the targets")
    return Tree(
        left,
        np.asarray(fitted.children_right, np.int32),
        features,
        at_most(fitted.threshold),
        rows,
        target,
        None if missing is None else np.asarray(missing, bool) & (left >= 0),
    )


def sampled_path(fitted: Any) -> float:
    """Comparisons of a training sample, on average."""
    inner = np.asarray(fitted.children_left) >= 0
    counts = np.asarray(fitted.weighted_n_node_samples, np.float64)
    return float(counts[inner].sum() / counts[0]) if counts[0] > 0 else 0.0


def one_output(estimator: Any) -> None:
    if getattr(estimator, "n_outputs_", 1) != 1:
        raise RefusedError(f"has {estimator.n_outputs_} outputs", "fit one estimator for each")


def members(estimator: Any) -> list[Any]:
    """The trees of an estimator, which may be a single one."""
    one_output(estimator)
    found = getattr(estimator, "estimators_", None)
    trees = [estimator] if found is None else list(found)
    if not all(hasattr(tree, "tree_") for tree in trees):
        raise RefusedError("is not fitted", "fit it first")
    return trees


# ---------------------------------------------------------------- single trees and forests


def fractions(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    """The classes' fractions of the leaves, added up."""
    trees, made = members(estimator), []
    for tree in trees:
        values = np.asarray(tree.tree_.value, np.float64)[:, 0, :]
        total = values.sum(1, keepdims=True)
        made.append(tree_of(ctx, tree.tree_, values / np.where(total == 0, 1, total)))
    forest = forest_of(made, np.zeros(made[0].values.shape[1]))
    return emitted(ctx, x, forest, sum(sampled_path(tree.tree_) for tree in trees))


def forest_proba(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    sums, count = fractions(ctx, estimator, x), len(members(estimator))
    return sums if count == 1 else ctx.mul(sums, [[1 / count]])


def forest_class(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    return ctx.argmax(fractions(ctx, estimator, x))


def forest_mean(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    trees = members(estimator)
    made = [tree_of(ctx, tree.tree_, np.asarray(tree.tree_.value)[:, 0, :]) for tree in trees]
    sums = emitted(ctx, x, forest_of(made, [0.0]), sum(sampled_path(tree.tree_) for tree in trees))
    return ctx.reshape(sums if len(trees) == 1 else ctx.mul(sums, [[1 / len(trees)]]), (1,))


CLASSIFIER: Methods = {"predict": forest_class, "predict_proba": forest_proba}
REGRESSOR: Methods = {"predict": forest_mean}


# ---------------------------------------------------------------- gradient boosting


def raw_boosted(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    """What the trees add up to: (1, classes); of two classes and of regression (1, 1)."""
    if estimator.init_ != "zero" and type(estimator.init_).__name__ not in (
        "DummyClassifier",
        "DummyRegressor",
    ):
        raise RefusedError(f"starts from {type(estimator.init_).__name__}", "leave init away, or init='zero'")
    stages = np.asarray(estimator.estimators_, object)
    start = estimator._raw_predict_init(np.zeros((1, estimator.n_features_in_), np.float32))
    rate = float(estimator.learning_rate)
    made, path = [], 0.0
    for stage in stages:
        for target, tree in enumerate(stage):
            values = rate * np.asarray(tree.tree_.value, np.float64)[:, 0, :]
            made.append(tree_of(ctx, tree.tree_, values, target))
            path += sampled_path(tree.tree_)
    return emitted(ctx, x, forest_of(made, np.asarray(start, np.float64)[0]), path)


def boosted_loss(estimator: Any) -> None:
    if hasattr(estimator, "classes_"):
        only(estimator, loss=("log_loss", "exponential"))


def boosted_scores(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    boosted_loss(estimator)
    return raw_boosted(ctx, estimator, x)


def boosted_proba(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    raw = boosted_scores(ctx, estimator, x)
    return proba_of(ctx, ctx.mul(raw, [[2.0]]) if estimator.loss == "exponential" else raw)


def proba_of(ctx: Context, raw: Tensor) -> Tensor:
    """Of log-odds: of two classes the second's."""
    return ctx.softmax(ctx.with_first(raw) if raw.shape[1] == 1 else raw)


def class_of(ctx: Context, raw: Tensor, *, equal: bool) -> Tensor:
    """The class of log-odds; equal: of two, the second has 0, too."""
    return ctx.above(raw, 0.0, equal=equal) if raw.shape[1] == 1 else ctx.argmax(raw)


def boosted_class(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    return class_of(ctx, boosted_scores(ctx, estimator, x), equal=True)


def boosted_value(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    return ctx.reshape(raw_boosted(ctx, estimator, x), (1,))


BOOSTED_CLASSIFIER: Methods = {
    "predict": boosted_class,
    "predict_proba": boosted_proba,
    "decision_function": boosted_scores,
}
BOOSTED_REGRESSOR: Methods = {"predict": boosted_value}


# ---------------------------------------------------------------- histogram gradient boosting


def histogram_tree(ctx: Context, nodes: Any, target: int) -> Tree:
    if np.asarray(nodes["is_categorical"]).any():
        raise RefusedError("splits by categories", "encode them before (OneHotEncoder, OrdinalEncoder)")
    leaf = np.asarray(nodes["is_leaf"]).astype(bool)
    left = np.where(leaf, -1, nodes["left"].astype(np.int64)).astype(np.int32)
    missing = np.asarray(nodes["missing_go_to_left"]).astype(bool) & ~leaf
    return Tree(
        left,
        nodes["right"].astype(np.int32),
        np.where(leaf, 0, nodes["feature_idx"]).astype(np.int32),
        nearest(np.where(leaf, 0, nodes["num_threshold"])),
        nodes["value"].astype(np.float32)[:, None],
        target,
        missing if ctx.missing_values else None,
    )


def raw_histogram(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    made, path = [], 0.0
    for stage in estimator._predictors:
        for target, predictor in enumerate(stage):
            nodes = predictor.nodes
            made.append(histogram_tree(ctx, nodes, target))
            count = nodes["count"].astype(np.float64)
            path += float(count[nodes["is_leaf"] == 0].sum() / max(count[0], 1))
    base = np.asarray(estimator._baseline_prediction, np.float64).reshape(-1)
    if not made:
        raise RefusedError("has no trees", "fit it with max_iter of at least 1")
    return emitted(ctx, x, forest_of(made, base), path)


def histogram_proba(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    return proba_of(ctx, raw_histogram(ctx, estimator, x))


def histogram_class(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    return class_of(ctx, raw_histogram(ctx, estimator, x), equal=False)


def histogram_value(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    only(estimator, loss=("squared_error", "absolute_error", "quantile", "poisson", "gamma"))
    raw = raw_histogram(ctx, estimator, x)
    return ctx.reshape(ctx.unary("exp", raw) if estimator.loss in ("poisson", "gamma") else raw, (1,))


HISTOGRAM_CLASSIFIER: Methods = {
    "predict": histogram_class,
    "predict_proba": histogram_proba,
    "decision_function": raw_histogram,
}
HISTOGRAM_REGRESSOR: Methods = {"predict": histogram_value}


# ---------------------------------------------------------------- AdaBoost


def voted(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    """The trees' votes, each as heavy as its weight."""
    only(estimator, algorithm=("SAMME", "deprecated", None))
    count, made = len(estimator.classes_), []
    trees = members(estimator)
    for tree, weight in zip(trees, estimator.estimator_weights_, strict=False):
        own = np.asarray(tree.tree_.value)[:, 0, :]
        # A member may have met fewer classes.
        chosen = np.searchsorted(estimator.classes_, np.asarray(tree.classes_)[own.argmax(1)])
        votes = np.where(np.arange(count) == chosen[:, None], 1.0, -1.0 / (count - 1))
        made.append(tree_of(ctx, tree.tree_, votes * float(weight)))
    return emitted(ctx, x, forest_of(made, np.zeros(count)), sum(sampled_path(t.tree_) for t in trees))


def ada_class(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    return ctx.argmax(voted(ctx, estimator, x))


def ada_scores(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    votes = ctx.mul(voted(ctx, estimator, x), [[1 / float(np.sum(estimator.estimator_weights_))]])
    if len(estimator.classes_) == 2:
        # The first class counts against the second.
        return ctx.linear(votes, [[-1.0, 1.0]], None)
    return votes


ADA_CLASSIFIER: Methods = {"predict": ada_class, "decision_function": ada_scores}


# ---------------------------------------------------------------- isolation forests


def average_depth(samples: Numeric) -> Numeric:
    """The comparisons that isolate one of so many samples, on average (Liu, Ting, Zhou: Isolation Forest, 2008)."""
    n = np.asarray(samples, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        many = 2.0 * (np.log(n - 1.0) + np.euler_gamma) - 2.0 * (n - 1.0) / n
    return np.where(n <= 1, 0.0, np.where(n == 2, 1.0, many))


def depths_of(left: Numeric, right: Numeric) -> Numeric:
    """Comparisons before each node."""
    found = np.zeros(len(left), np.int64)
    for node in range(len(left)):
        if left[node] >= 0:
            found[left[node]] = found[right[node]] = found[node] + 1
    return found


def isolation_depth(ctx: Context, estimator: Any, x: Tensor) -> tuple[Tensor, float]:
    """How deep the sample lies in all trees together, and how deep an average one would."""
    made = []
    for tree, columns in zip(members(estimator), estimator.estimators_features_, strict=True):
        fitted = tree.tree_
        deep = depths_of(np.asarray(fitted.children_left), np.asarray(fitted.children_right))
        isolated = deep + average_depth(np.asarray(fitted.n_node_samples))
        made.append(tree_of(ctx, fitted, isolated[:, None], columns=columns))
    whole = len(made) * float(average_depth(np.array([estimator._max_samples]))[0])
    path = sum(sampled_path(tree.tree_) for tree in members(estimator))
    return emitted(ctx, x, forest_of(made, [0.0]), path), whole


def isolation_anomaly(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
    """From 0 to 1: 2^-(depth / that of an average sample)."""
    depth, whole = isolation_depth(ctx, estimator, x)
    return ctx.unary("exp", ctx.mul(depth, [[-math.log(2) / whole]]))


ISOLATION = outlier_methods(isolation_anomaly)
