# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's estimators: the program's answers are the estimator's; what is not known is refused by its name."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyet
from tinyet.cli import run
from tinyet.errors import UnsupportedOp, UnsupportedShape, UsageError
from tinyet.importers.classical.context import METHODS, Context, finished
from tinyet.importers.classical.sklearn import HANDLERS
from tinyet.ir import DType, Tensor, TensorType
from tinyet.numerics import dequantize
from tinyet.opening.classical import anomaly_scores, compared
from tinyet.ops.shared.forest import Numeric
from tinyet.reference.evaluate import run_graph

pytest.importorskip("sklearn")

from sklearn import (
    base,
    cluster,
    compose,
    covariance,
    datasets,
    decomposition,
    discriminant_analysis,
    ensemble,
    feature_selection,
    linear_model,
    mixture,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
    tree,
)

piped, scaled = pipeline.make_pipeline, preprocessing.StandardScaler

CLASSIFIERS: Sequence[Any] = (
    tree.DecisionTreeClassifier(random_state=0),
    tree.ExtraTreeClassifier(random_state=0),
    ensemble.RandomForestClassifier(8, random_state=0),
    ensemble.RandomForestClassifier(8, max_depth=3, random_state=0),
    ensemble.ExtraTreesClassifier(8, random_state=0),
    ensemble.GradientBoostingClassifier(n_estimators=5, random_state=0),
    ensemble.HistGradientBoostingClassifier(max_iter=5),
    ensemble.AdaBoostClassifier(n_estimators=5, random_state=0),
    piped(scaled(), linear_model.LogisticRegression()),
    piped(preprocessing.RobustScaler(), linear_model.RidgeClassifier()),
    piped(preprocessing.Normalizer(), linear_model.SGDClassifier(random_state=0)),
    piped(preprocessing.MaxAbsScaler(), linear_model.Perceptron(random_state=0)),
    piped(scaled(), svm.LinearSVC(random_state=0)),
    piped(scaled(), svm.SVC()),
    piped(scaled(), svm.SVC(kernel="linear", decision_function_shape="ovo")),
    piped(preprocessing.MinMaxScaler(), svm.NuSVC(nu=0.2, kernel="poly")),
    piped(scaled(), neighbors.KNeighborsClassifier(3)),
    naive_bayes.GaussianNB(),
    discriminant_analysis.LinearDiscriminantAnalysis(),
    piped(scaled(), neural_network.MLPClassifier((8,), max_iter=20, random_state=0)),
    piped(scaled(), neural_network.MLPClassifier((8,), "tanh", max_iter=20, random_state=0)),
    piped(feature_selection.SelectKBest(k=5), scaled(), decomposition.PCA(3), svm.SVC(kernel="sigmoid")),
)
REGRESSORS: Sequence[Any] = (
    tree.DecisionTreeRegressor(max_depth=5, random_state=0),
    ensemble.RandomForestRegressor(8, max_depth=5, random_state=0),
    ensemble.GradientBoostingRegressor(n_estimators=5, random_state=0),
    ensemble.HistGradientBoostingRegressor(max_iter=5),
    ensemble.HistGradientBoostingRegressor(loss="poisson", max_iter=5),
    linear_model.LinearRegression(),
    linear_model.Lasso(0.1),
    piped(scaled(), svm.SVR()),
    piped(scaled(), svm.LinearSVR(random_state=0)),
    neighbors.KNeighborsRegressor(),
    piped(scaled(), neural_network.MLPRegressor(hidden_layer_sizes=(8,), max_iter=20, random_state=0)),
)
OTHERS: Sequence[Any] = (
    cluster.KMeans(4, random_state=0),
    piped(scaled(), mixture.GaussianMixture(2, random_state=0)),
    piped(scaled(), mixture.GaussianMixture(2, covariance_type="diag", random_state=0)),
    piped(scaled(), mixture.GaussianMixture(2, covariance_type="tied", random_state=0)),
    piped(scaled(), mixture.GaussianMixture(2, covariance_type="spherical", random_state=0)),
    ensemble.IsolationForest(n_estimators=8, random_state=0),
    ensemble.IsolationForest(n_estimators=8, max_features=0.5, random_state=0),
    piped(scaled(), svm.OneClassSVM()),
)
TRANSFORMERS: Sequence[Any] = (
    scaled(),
    preprocessing.MinMaxScaler((-1, 1), clip=True),
    preprocessing.Normalizer("l1"),
    preprocessing.Normalizer("max"),
    preprocessing.Binarizer(threshold=2.0),
    decomposition.PCA(3, whiten=True),
    decomposition.TruncatedSVD(3),
    discriminant_analysis.LinearDiscriminantAnalysis(),
    cluster.KMeans(3, random_state=0),
    feature_selection.VarianceThreshold(0.1),
    pipeline.make_union(scaled(), decomposition.PCA(2)),
    compose.ColumnTransformer(
        [
            ("a", scaled(), [1, 3]),
            ("b", "passthrough", slice(5, 7)),
            ("c", preprocessing.Normalizer(), [8, 2]),
        ],
        remainder=preprocessing.MinMaxScaler(),
    ),
)


@cache
def samples(name: str) -> tuple[Numeric, Numeric]:
    """Of the iris or wine data, whose numbers are moved by random ones: no distances are equal."""
    rng = np.random.default_rng(0)
    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return np.asarray(x + rng.normal(0, 1e-3, x.shape), np.float32), y


def answers(program: tinyet.Program, rows: Numeric) -> list[Numeric]:
    return program.evaluate(rows, by="numpy").outputs


def methods_of(estimator: Any) -> list[str]:
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    return [m for m in METHODS[:4] if hasattr(estimator, m) and m in HANDLERS[type(last).__name__]]


def agree(estimator: Any, rows: Numeric, methods: Sequence[str] | None = None) -> None:
    """The answers of all methods are the estimator's."""
    asked = list(methods or methods_of(estimator))
    for method, found in zip(asked, answers(tinyet.from_sklearn(estimator, asked), rows), strict=True):
        own, got = np.asarray(getattr(estimator, method)(rows)), found
        if method == "predict" and hasattr(estimator, "classes_"):
            assert (estimator.classes_[got[:, 0]] == own).all()
            continue
        if method == "predict" and set(np.unique(own)) == {-1, 1}:
            got = 2 * found - 1
        np.testing.assert_allclose(got.reshape(own.shape), own, 2e-4, 2e-4, err_msg=method)


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("data", ["three", "two"])
@pytest.mark.parametrize(
    "estimator", CLASSIFIERS, ids=lambda e: type(getattr(e, "steps", [[0, e]])[-1][1]).__name__
)
def test_classifiers(estimator: Any, data: str) -> None:
    """Of three classes, called 5, 6 and 7, and of two that are words."""
    x, y = samples("wine")
    if data == "two":
        x, y = x[y < 2], np.where(y[y < 2] == 0, "no", "yes")
    fitted = base.clone(estimator).fit(x[::2], y[::2] if data == "two" else y[::2] + 5)
    agree(fitted, x[:: len(x) // 40])


@pytest.mark.parametrize(
    "estimator", REGRESSORS, ids=lambda e: type(getattr(e, "steps", [[0, e]])[-1][1]).__name__
)
def test_regressors(estimator: Any) -> None:
    x, y = samples("wine")
    target = x[:, 0] + 0.1 * y
    agree(base.clone(estimator).fit(x[::2, 1:], target[::2]), x[::5, 1:])


@pytest.mark.parametrize(
    "estimator", OTHERS, ids=lambda e: type(getattr(e, "steps", [[0, e]])[-1][1]).__name__
)
def test_without_classes(estimator: Any) -> None:
    x, _ = samples("wine")
    agree(base.clone(estimator).fit(x[::2]), x[::5])


DETECTORS = (
    ensemble.IsolationForest(n_estimators=10, random_state=0),
    piped(scaled(), cluster.KMeans(3, random_state=0)),
    piped(scaled(), mixture.GaussianMixture(2, random_state=0)),
    piped(scaled(), covariance.EllipticEnvelope(random_state=0)),
    piped(scaled(), svm.OneClassSVM()),
)


@pytest.mark.parametrize(
    "estimator", DETECTORS, ids=lambda e: type(getattr(e, "steps", [[0, e]])[-1][1]).__name__
)
def test_anomaly_scores(estimator: Any) -> None:
    x, _ = samples("wine")
    fitted = base.clone(estimator).fit(x[::2])
    (got,) = answers(tinyet.from_sklearn(fitted, "anomaly_score"), x[::5])
    np.testing.assert_allclose(got.reshape(-1), anomaly_scores(fitted, x[::5]), 2e-4, 2e-4)


@pytest.mark.parametrize("estimator", TRANSFORMERS, ids=lambda e: type(e).__name__)
def test_transformers(estimator: Any) -> None:
    x, y = samples("wine")
    agree(base.clone(estimator).fit(x, y), x[::5], ["transform"])


def test_one_hot() -> None:
    x = np.array([[0, 1], [2, 1], [5, 3]], np.float32)
    fitted = preprocessing.OneHotEncoder(handle_unknown="ignore", sparse_output=False, drop=[2, 1]).fit(x)
    agree(fitted, np.array([[0, 1], [5, 3], [2, 3], [7, 7]], np.float32), ["transform"])


@pytest.mark.parametrize("dtype", [DType.INT16, DType.INT8])
def test_trees_of_integers(dtype: DType) -> None:
    """The thresholds are integers, and the answers those for the reals that the integers stand for."""
    x, y = samples("iris")
    scale, zero = (0.04, -100) if dtype is DType.INT8 else (0.0003, 0)
    forest = ensemble.RandomForestClassifier(8, random_state=0).fit(x, y)
    program = tinyet.from_sklearn(forest, input_dtype=dtype.value, input_scale=scale, input_zero_point=zero)
    assert [node.op for node in program.graph.nodes] == ["tree_ensemble", "argmax"]
    quant = program.inputs[0].type.quant
    assert quant is not None
    low, high = dtype.range
    rows = np.random.default_rng(0).integers(low, high + 1, (60, 4)).astype(dtype.numpy)
    assert (answers(program, rows)[0][:, 0] == forest.predict(dequantize(rows, quant))).all()


FIXED = (
    ensemble.RandomForestClassifier(8, max_depth=4, random_state=0),
    ensemble.GradientBoostingClassifier(n_estimators=5, random_state=0),
    ensemble.HistGradientBoostingClassifier(max_iter=5),
    ensemble.AdaBoostClassifier(n_estimators=5, random_state=0),
    ensemble.IsolationForest(n_estimators=10, random_state=0),
    ensemble.GradientBoostingRegressor(n_estimators=5, random_state=0),
)


@pytest.mark.parametrize("estimator", FIXED, ids=lambda e: type(e).__name__)
def test_leaves_in_fixed_point(estimator: Any) -> None:
    """The same classes, of integers alone; sums within the error of the note, and hardly ever at it."""
    x, y = samples("wine")
    fitted = base.clone(estimator).fit(x[::2], y[::2])
    regression = hasattr(fitted, "score") and not hasattr(fitted, "classes_")
    programs = [tinyet.from_sklearn(fitted, leaf_dtype=leaf) for leaf in ("float32", "int16")]
    own, fixed = (answers(program, x)[0] for program in programs)
    (trees,) = (node for node in programs[1].graph.nodes if node.op == "tree_ensemble")
    assert trees.output.dtype is DType.INT32
    if regression:
        (note,) = (str(n) for n in programs[1].notes if "leaves are int16" in str(n))
        most = float(note.split("at most ")[1].split()[0])
        assert 0 < np.abs(own - fixed).max() <= most + 1e-5
        assert most < 1e-3
        return
    assert (own == fixed).all()
    if hasattr(fitted, "classes_"):
        assert {node.op for node in programs[1].graph.nodes} <= {
            *("tree_ensemble", "argmax", "compare", "reshape")
        }


def test_two_classes_in_fixed_point() -> None:
    """One sum, of which 0 is the second class's: compared as the integer that it is."""
    x, y = samples("wine")
    for estimator in (FIXED[1], FIXED[2]):
        fitted = base.clone(estimator).fit(x[::2], y[::2] > 0)
        program = tinyet.from_sklearn(fitted, leaf_dtype="int16")
        assert (fitted.classes_[answers(program, x)[0][:, 0]] == fitted.predict(x)).all()
        assert "cast" not in {node.op for node in program.graph.nodes}


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("bound", [-1.3, -0.25, 0.0, 0.3, 0.5, 1e30, -1e30])
def test_a_bound_of_sums_in_fixed_point(bound: float, equal: bool) -> None:
    """Sums are compared as integers, also with a number between two of them."""
    ctx = Context()
    x = Tensor("x", TensorType((1, 1), DType.INT32))
    ctx.fractions[x] = 2
    graph = finished(ctx, "bounded", x, [ctx.above(x, bound, equal=equal)], ["predict"], ()).graph
    for q in range(-9, 10):
        wanted = q / 4 >= bound if equal else q / 4 > bound
        assert run_graph(graph, [np.array([[q]], np.int32)])[0].tolist() == [wanted], q


def test_the_notes_of_a_program() -> None:
    x, y = samples("iris")
    forest = ensemble.RandomForestClassifier(3, max_depth=2, random_state=0).fit(x, y)
    program = tinyet.from_sklearn(forest, ["predict", "predict_proba"], compared_on=x)
    text = "\n".join(map(str, program.notes))
    assert "3 tree(s)" in text
    assert "at most 2 deep" in text
    assert "predict equals scikit-learn's for 150 of 150 samples" in text
    assert "predict_proba: the largest difference" in text
    assert program.labels == ("0", "1", "2")
    other = ensemble.RandomForestClassifier(3, max_depth=2, random_state=0).fit(x, y[::-1])
    note, _ = compared(program, other, ["predict", "predict_proba"], x[:5])
    assert "0 of 5 samples; it differs for the samples 0, 1, 2, 3, 4" in str(note)


def test_what_trees_cost_is_in_the_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the program that a file holds, too; the mean of the training's samples is that of scikit-learn's own paths."""
    x, y = samples("iris")
    forest = ensemble.RandomForestClassifier(4, max_depth=5, bootstrap=False, random_state=0).fit(x, y)
    program = tinyet.from_sklearn(forest)
    program.save(tmp_path / "flowers.tet")
    assert run(["analyze", str(tmp_path / "flowers.tet"), "--json", "-"]) == 0
    first, *others = json.loads(capsys.readouterr().out)["layers"]
    paths, _ = forest.decision_path(x)
    trees = [tree.tree_ for tree in forest.estimators_]
    assert first["trees"] == {
        "trees": 4,
        "nodes": sum(int((tree.children_left >= 0).sum()) for tree in trees),
        "leaves": first["trees"]["leaves"],
        "depth": max(tree.max_depth for tree in trees),
        "worst_path": sum(tree.max_depth for tree in trees),
        "mean_path": first["trees"]["mean_path"],
        # Without the leaf, of each tree.
        "sampled_path": pytest.approx(paths.sum() / len(x) - 4),
    }
    assert 4 < first["trees"]["mean_path"] < first["trees"]["worst_path"]
    assert 3 <= first["trees"]["leaves"] <= first["trees"]["nodes"] + 4
    assert [layer["trees"] for layer in others] == [None] * len(others)
    assert run(["analyze", str(tmp_path / "flowers.tet")]) == 0
    assert "comparisons at most" in capsys.readouterr().out
    # Integers that are all on one side of most thresholds.
    narrow = tinyet.analyze(tinyet.from_sklearn(forest, input_dtype="int8", input_scale=0.02)).layers[0].trees
    assert narrow is not None
    assert narrow.nodes < first["trees"]["nodes"]
    assert narrow.sampled_path is None


def test_missing_values_go_where_training_has_sent_them() -> None:
    x, y = samples("iris")
    holes = np.where(np.random.default_rng(1).random(x.shape) < 0.3, np.float32(np.nan), x)
    for estimator in (
        ensemble.HistGradientBoostingClassifier(max_iter=5),
        ensemble.RandomForestClassifier(5, random_state=0),
    ):
        fitted = estimator.fit(holes, y)
        program = tinyet.from_sklearn(fitted, missing_values=True)
        got = [run_graph(program.graph, [row[None]])[0][0] for row in holes]
        assert (np.array(got) == fitted.predict(holes)).all()


# ---------------------------------------------------------------- refusals


def fitted_on_iris(estimator: Any) -> Any:
    return estimator.fit(*samples("iris"))


REFUSED: Mapping[str, tuple[Any, str]] = {
    "a high power": (svm.SVC(kernel="poly", degree=9), "degree=9"),
    "a function": (preprocessing.FunctionTransformer(np.abs), "FunctionTransformer: is not supported"),
    "weights by distance": (neighbors.KNeighborsClassifier(weights="distance"), "weights='distance'"),
    "another metric": (neighbors.KNeighborsClassifier(metric="manhattan"), "effective_metric_='manhattan'"),
    "another start": (
        ensemble.GradientBoostingClassifier(n_estimators=2, init=naive_bayes.GaussianNB()),
        "starts from GaussianNB",
    ),
    "an unknown estimator": (naive_bayes.BernoulliNB(), "BernoulliNB: is not supported"),
    "several": (
        piped(preprocessing.PolynomialFeatures(), preprocessing.KBinsDiscretizer(2), svm.SVC()),
        "KBinsDiscretizer, step kbinsdiscretizer",
    ),
}


@pytest.mark.parametrize("which", REFUSED)
def test_what_is_refused(which: str) -> None:
    estimator, words = REFUSED[which]
    with pytest.raises((UnsupportedOp, UnsupportedShape)) as caught:
        tinyet.from_sklearn(fitted_on_iris(estimator))
    assert words in str(caught.value)
    if which == "several":
        assert "PolynomialFeatures, step polynomialfeatures" in str(caught.value)


def test_classes_of_ones_own_are_refused() -> None:
    mine = type("Mine", (tree.DecisionTreeClassifier,), {"predict": lambda _, x: [0] * len(x)})
    with pytest.raises(UnsupportedOp, match="Mine: is not supported"):
        tinyet.from_sklearn(fitted_on_iris(mine()))


def test_arguments_that_cannot_be() -> None:
    fitted = fitted_on_iris(tree.DecisionTreeClassifier())
    with pytest.raises(UsageError, match="leaf_dtype"):
        tinyet.from_sklearn(fitted, leaf_dtype="int8")
    with pytest.raises(UsageError, match="not fitted"):
        tinyet.from_sklearn(tree.DecisionTreeClassifier())
    with pytest.raises(UsageError, match="methods: guess"):
        tinyet.from_sklearn(fitted, "guess")
    with pytest.raises(UnsupportedShape, match="has no decision_function here"):
        tinyet.from_sklearn(fitted, "decision_function")
    with pytest.raises(UsageError, match="features are float32"):
        tinyet.from_sklearn(fitted, input_scale=0.5)
    with pytest.raises(UsageError, match="float64"):
        tinyet.from_sklearn(fitted, input_dtype="float64")
    with pytest.raises(UsageError, match="rows of 4 features"):
        tinyet.from_sklearn(fitted, compared_on=np.zeros((3, 5)))
