# SPDX-License-Identifier: Apache-2.0
"""Files of XGBoost, LightGBM, skops and joblib: the answers are the libraries'; damaged ones are refused."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyet
from tinyet.errors import ModelError, TinyetError, UnsupportedOp, UnsupportedShape, UsageError
from tinyet.ops.shared.forest import Numeric
from tinyet.reference.evaluate import run_graph

datasets = pytest.importorskip("sklearn.datasets")


def rows_of(name: str, *, holes: bool = False) -> tuple[Numeric, Numeric]:
    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    x = x.astype(np.float32)
    if holes:
        x[np.random.default_rng(0).random(x.shape) < 0.2] = np.nan
    return x, y


def agree(program: tinyet.Program, x: Numeric, own: list[Any], tolerance: float) -> None:
    """The outputs for some rows; NaN is no data for a program's own entrances."""
    for row, *wanted in zip(x, *own, strict=True):
        for got, want in zip(run_graph(program.graph, [row[None]]), wanted, strict=True):
            np.testing.assert_allclose(got.reshape(np.shape(want)), want, tolerance, tolerance)


CATEGORIES = np.array(
    [
        [c, b, e]
        for c in (*range(-1, 42), -0.5, 0.5, 38.99, 1e9, np.inf)
        for b in (-1, 1)
        for e in (-7, 0, 1, 5, 6.5)
    ],
    np.float32,
)
"""Rows with categories of training, others, negative ones, and numbers that are not whole; the second is a number."""


def by_categories() -> tuple[Numeric, Numeric]:
    """Numbers that depend on categories, so that sets of them are learned."""
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.integers(0, 40, 600), rng.normal(size=600), rng.integers(0, 7, 600)])
    effects = rng.normal(size=40) * 3
    return x.astype(np.float32), effects[x[:, 0].astype(int)] + x[:, 1] + 2 * (x[:, 2] % 3 == 1)


# ---------------------------------------------------------------- XGBoost


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("name", ["wine", "breast_cancer"])
def test_xgboost_classes(name: str, holes: bool, tmp_path: Path) -> None:
    """The sums are those of XGBoost to the last bits: float32, in the same order."""
    xgboost = pytest.importorskip("xgboost")
    x, y = rows_of(name, holes=holes)
    model = xgboost.XGBClassifier(n_estimators=6, max_depth=4).fit(x, y)
    model.save_model(tmp_path / "model.json")
    methods = ["predict", "predict_proba", "decision_function"]
    program = tinyet.open(tmp_path / "model.json", methods=methods, missing_values=holes)
    assert isinstance(program, tinyet.Program)
    x = x[::9]
    own = [model.predict(x), model.predict_proba(x), model.predict(x, output_margin=True)]
    agree(program, x, own, 1e-6)
    assert program.labels == tuple(map(str, range(len(np.unique(y)))))


@pytest.mark.parametrize("objective", ["reg:squarederror", "count:poisson", "reg:logistic"])
def test_xgboost_numbers(objective: str, tmp_path: Path) -> None:
    xgboost = pytest.importorskip("xgboost")
    x, y = rows_of("diabetes")
    model = xgboost.XGBRegressor(n_estimators=5, objective=objective).fit(x, y / 400)
    model.save_model(tmp_path / "model.json")
    agree(tinyet.from_xgboost(tmp_path / "model.json"), x[::20], [model.predict(x[::20])], 1e-6)


def test_xgboost_stops_early(tmp_path: Path) -> None:
    xgboost = pytest.importorskip("xgboost")
    x, y = rows_of("diabetes")
    model = xgboost.XGBRegressor(n_estimators=60, early_stopping_rounds=2)
    model.fit(x[::2], y[::2], eval_set=[(x[1::2], y[1::2])], verbose=False)
    model.save_model(tmp_path / "model.json")
    program = tinyet.from_xgboost(tmp_path / "model.json")
    assert any("early stopping" in str(note) for note in program.notes)
    agree(program, x[::20], [model.predict(x[::20])], 1e-6)


@pytest.mark.parametrize("holes", [False, True])
def test_xgboost_categories(holes: bool, tmp_path: Path) -> None:
    """One category against the others, and sets of many."""
    xgboost = pytest.importorskip("xgboost")
    x, y = by_categories()
    rows = CATEGORIES[::3]
    if holes:
        rng = np.random.default_rng(0)
        x[rng.random(x.shape) < 0.2] = np.nan
        rows = np.where(rng.random(rows.shape) < 0.3, np.float32(np.nan), rows)
    model = xgboost.XGBRegressor(
        n_estimators=4,
        max_depth=5,
        max_cat_to_onehot=8,
        feature_types=["c", "q", "c"],
        enable_categorical=True,
    ).fit(x, y)
    model.save_model(tmp_path / "model.json")
    program = tinyet.from_xgboost(tmp_path / "model.json", missing_values=holes)
    agree(program, rows, [model.predict(rows)], 1e-6)


def xgboost_file() -> dict[str, Any]:
    """A model as XGBoost writes it: x[1] < 0.5 ? 2 : (x[0] < -1 ? 3 : 4), and what stands beside it."""
    tree = {
        "left_children": [1, -1, 3, -1, -1],
        "right_children": [2, -1, 4, -1, -1],
        "split_indices": [1, 0, 0, 0, 0],
        "split_conditions": [0.5, 2.0, -1.0, 3.0, 4.0],
        "default_left": [0, 0, 1, 0, 0],
        "split_type": [0, 0, 0, 0, 0],
        "tree_param": {"num_nodes": "5", "size_leaf_vector": "1"},
    }
    return {
        "learner": {
            "attributes": {},
            "objective": {"name": "reg:squarederror"},
            "learner_model_param": {
                "base_score": "1E1", "num_class": "0", "num_feature": "2", "num_target": "1",
            },
            "gradient_booster": {
                "name": "gbtree",
                "model": {"trees": [tree], "tree_info": [0], "iteration_indptr": [0, 1]},
            },
        }
    }  # fmt: skip


def test_xgboost_by_hand(tmp_path: Path) -> None:
    """Less than, not at most; NaN to the right, or where the file says."""
    (tmp_path / "m.json").write_text(json.dumps(xgboost_file()))
    program = tinyet.from_xgboost(tmp_path / "m.json")
    holes = tinyet.from_xgboost(tmp_path / "m.json", missing_values=True)
    nan = np.float32(np.nan)
    for row, plain, with_holes in (
        ((0, 0.4999), 12, 12), ((0, 0.5), 14, 14), ((-1, 0.5), 14, 14), ((-1.001, 0.5), 13, 13),
        ((nan, 0.5), 14, 13), ((0, nan), 14, 14),
    ):  # fmt: skip
        x = np.array([row], np.float32)
        assert run_graph(program.graph, [x])[0].tolist() == [plain]
        assert run_graph(holes.graph, [x])[0].tolist() == [with_holes]


def with_set(categories: list[int], **others: Any) -> dict[str, Any]:
    """The same model, whose root asks for a set: 2 where x[1] is not in it."""
    model = xgboost_file()
    tree_in(model).update(
        split_type=[1, 0, 0, 0, 0],
        split_conditions=[float("nan"), 2.0, -1.0, 3.0, 4.0],
        categories_nodes=[0],
        categories_segments=[0],
        categories_sizes=[len(categories)],
        categories=categories,
    )
    tree_in(model).update(others)
    return model


def test_xgboost_categories_by_hand(tmp_path: Path) -> None:
    """What is in the set is on the right, also before it is cut off to a whole number; negative numbers never are. NaN
    is in no set, or goes where the file says."""
    outcomes = {}
    for default in (0, 1):
        model = with_set([0, 1, 5, 2**24], default_left=[default, 0, 1, 0, 0])
        (tmp_path / "m.json").write_text(json.dumps(model))
        for holes in (False, True):
            program = tinyet.from_xgboost(tmp_path / "m.json", missing_values=holes)
            xs = [-1, -0.5, -0.0, 0, 1.999, 2, 4.999, 5, 5.999, 6, 2**24, np.inf, np.nan]
            rows = [np.array([[0, x]], np.float32) for x in xs]
            got = [int(run_graph(program.graph, [row])[0][0]) for row in rows]
            assert got[:-1] == [12, 12, 14, 14, 14, 12, 12, 14, 14, 12, 12, 12]
            outcomes[default, holes] = got[-1]
    assert outcomes == {(0, False): 12, (1, False): 12, (0, True): 14, (1, True): 12}


Damage = Callable[[dict[str, Any]], object]


def tree_in(model: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = model["learner"]["gradient_booster"]["model"]["trees"][0]
    return found


DAMAGE: dict[str, tuple[Damage, str]] = {
    "a loop": (lambda m: tree_in(m).update(right_children=[2, -1, 0, -1, -1]), "no tree"),
    "a link beyond": (lambda m: tree_in(m).update(left_children=[9, -1, 3, -1, -1]), "no tree"),
    "a feature beyond": (lambda m: tree_in(m).update(split_indices=[2, 0, 0, 0, 0]), "it has not"),
    "a negative feature": (lambda m: tree_in(m).update(split_indices=[-1, 0, 0, 0, 0]), "it has not"),
    "too few": (lambda m: tree_in(m).update(split_indices=[1]), "another number of split_indices"),
    "no list": (lambda m: tree_in(m).update(split_conditions="12345"), "another number"),
    "words": (lambda m: tree_in(m).update(split_conditions=list("abcde")), "no numbers"),
    "nested": (lambda m: tree_in(m).update(split_conditions=[[1]] * 5), "no numbers"),
    "not finite": (lambda m: tree_in(m).update(split_conditions=[1e99] * 5), "no finite"),
    "beyond 32 bits": (lambda m: tree_in(m).update(split_indices=[2**40] * 5), "beyond 32 bits"),
    "no sets": (lambda m: tree_in(m).update(split_type=[1, 0, 0, 0, 0]), "in categories_nodes"),
    "another node": (lambda m: m.update(with_set([1], categories_nodes=[2])), "in categories_nodes"),
    "an empty set": (lambda m: m.update(with_set([])), "not behind each other"),
    "a set beyond": (lambda m: m.update(with_set([1], categories_sizes=[2])), "number of categories"),
    "a huge set": (lambda m: m.update(with_set([1], categories_sizes=[2**40])), "beyond 32 bits"),
    "sets over each other": (lambda m: m.update(with_set([1], categories_segments=[1])), "behind each other"),
    "negative categories": (lambda m: m.update(with_set([-1])), "negative categories"),
    "no category": (lambda m: m.update(with_set([2**24])), "nothing is in"),
    "many intervals": (lambda m: m.update(with_set(list(range(0, 2**19, 2)))), "too many comparisons"),
    "a sum beyond": (lambda m: m["learner"]["gradient_booster"]["model"].update(tree_info=[1]), "it has not"),
    "another booster": (lambda m: m["learner"]["gradient_booster"].update(name="gblinear"), "gblinear"),
    "another objective": (lambda m: m["learner"]["objective"].update(name="survival:cox"), "survival:cox"),
    "many features": (lambda m: m["learner"]["learner_model_param"].update(num_feature="99999"), "99999"),
    "no trees": (
        lambda m: m["learner"]["gradient_booster"]["model"].update(trees=[], tree_info=[]),
        "0 trees",
    ),
    "nothing": (lambda m: m.pop("learner"), "no model of XGBoost's"),
    "no learner": (lambda m: m.update(learner=7), "damaged"),
}


@pytest.mark.parametrize("which", DAMAGE)
def test_damaged_xgboost(which: str, tmp_path: Path) -> None:
    model = copy.deepcopy(xgboost_file())
    DAMAGE[which][0](model)
    (tmp_path / "m.json").write_text(json.dumps(model))
    with pytest.raises((ModelError, UnsupportedShape)) as caught:
        tinyet.from_xgboost(tmp_path / "m.json")
    assert DAMAGE[which][1] in str(caught.value)


def test_texts_that_are_no_models(tmp_path: Path) -> None:
    for text in ("", "[", "[" * 100_000, "tree", "null", '{"learner": {}}', "9" * 10_000):
        for name in ("m.json", "m.txt"):
            (tmp_path / name).write_text(text)
            with pytest.raises((ModelError, UsageError)):
                tinyet.open(tmp_path / name)
            with pytest.raises(ModelError):
                (tinyet.from_xgboost if name == "m.json" else tinyet.from_lightgbm)(tmp_path / name)


# ---------------------------------------------------------------- LightGBM


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize(
    ("name", "more"), [("wine", {}), ("breast_cancer", {}), ("wine", {"objective": "multiclassova"})]
)
def test_lightgbm_classes(name: str, more: dict[str, Any], holes: bool, tmp_path: Path) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    x, y = rows_of(name, holes=holes)
    model = lightgbm.LGBMClassifier(n_estimators=6, max_depth=4, verbose=-1, **more).fit(x, y)
    model.booster_.save_model(tmp_path / "model.txt")
    methods = ["predict", "predict_proba"]
    program = tinyet.open(tmp_path / "model.txt", methods=methods, missing_values=holes)
    assert isinstance(program, tinyet.Program)
    agree(program, x[::9], [model.predict(x[::9]), model.predict_proba(x[::9])], 1e-5)


@pytest.mark.parametrize(
    "more",
    [{}, {"objective": "poisson"}, {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.7}],
    ids=str,
)
def test_lightgbm_numbers(more: dict[str, Any], tmp_path: Path) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    x, y = rows_of("diabetes")
    model = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, **more).fit(x, y)
    model.booster_.save_model(tmp_path / "model.txt")
    agree(tinyet.from_lightgbm(tmp_path / "model.txt"), x[::20], [model.predict(x[::20])], 1e-5)


def test_lightgbm_categories(tmp_path: Path) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    x, y = by_categories()
    model = lightgbm.LGBMRegressor(n_estimators=4, verbose=-1, min_data_per_group=5, cat_smooth=1)
    model.fit(x, y, categorical_feature=[0, 2])
    model.booster_.save_model(tmp_path / "model.txt")
    rows = CATEGORIES[::3].copy()
    rows[::4, 0] = np.nan
    for holes in (False, True):
        program = tinyet.from_lightgbm(tmp_path / "model.txt", missing_values=holes)
        agree(program, rows, [model.predict(rows)], 1e-5)


LIGHTGBM = """tree
version=v4
num_class=1
num_tree_per_iteration=1
max_feature_idx=1
objective=regression
feature_names=a b

Tree=0
num_leaves=3
num_cat=0
split_feature=1 0
threshold=0.5 -1
decision_type=2 8
left_child=-1 -2
right_child=1 -3
leaf_value=2 3 4
is_linear=0
shrinkage=1


Tree=1
num_leaves=1
leaf_value=10


end of trees
"""


def test_lightgbm_by_hand(tmp_path: Path) -> None:
    """At most; NaN is 0 where none was missing in training, else goes where the file says: here to the right."""
    (tmp_path / "m.txt").write_text(LIGHTGBM)
    program = tinyet.from_lightgbm(tmp_path / "m.txt")
    holes = tinyet.from_lightgbm(tmp_path / "m.txt", missing_values=True)
    nan = np.float32(np.nan)
    for row, plain, with_holes in (
        ((0, 0.5), 12, 12), ((0, 0.5001), 14, 14), ((-1, 1), 13, 13), ((0, nan), 14, 12), ((nan, 1), 14, 14),
    ):  # fmt: skip
        x = np.array([row], np.float32)
        assert run_graph(program.graph, [x])[0].tolist() == [plain]
        assert run_graph(holes.graph, [x])[0].tolist() == [with_holes]


def lightgbm_with_set(words: str = "35 0 16", bounds: str = "0 1 3", which: str = "1") -> str:
    """The same model, whose root asks for a set: 2 where x[1] is in it."""
    text = LIGHTGBM.replace("num_cat=0", f"num_cat=2\ncat_boundaries={bounds}\ncat_threshold={words}")
    return text.replace("decision_type=2", "decision_type=1").replace("threshold=0.5", f"threshold={which}")


def test_lightgbm_categories_by_hand(tmp_path: Path) -> None:
    """What is in the set is on the left, also before it is cut off to a whole number; NaN never is."""
    for which, words, inside in (("0", "35 0 16", (0, 1, 5)), ("1", "35 0 2147483648", (63,))):
        (tmp_path / "m.txt").write_text(lightgbm_with_set(words, which=which))
        for holes in (False, True):
            program = tinyet.from_lightgbm(tmp_path / "m.txt", missing_values=holes)
            for x in (-1, -0.999, 0, 1, 1.999, 2, 4.999, 5, 5.5, 6, 62.9, 63, 63.9, 64, 1e9, np.inf, np.nan):
                got = int(run_graph(program.graph, [np.array([[0, x]], np.float32)])[0][0])
                assert got == (12 if np.isfinite(x) and x > -1 and int(x) in inside else 14), x


def test_categories_of_integers(tmp_path: Path) -> None:
    """Integers ask for the same sets; what none of them can be is left out."""
    (tmp_path / "m.txt").write_text(lightgbm_with_set("35 0 16", which="0"))
    program = tinyet.from_lightgbm(tmp_path / "m.txt", input_dtype="int8")
    got = [run_graph(program.graph, [np.array([[0, q]], np.int8)])[0][0] for q in range(-128, 128)]
    assert [q - 128 for q, value in enumerate(got) if value == 12] == [0, 1, 5]


@pytest.mark.parametrize(
    ("words", "bounds", "which", "said"),
    [
        ("35 0 16", "0 1 3", "2", "there is not"),
        ("35 0 16", "0 1 3", "-1", "there is not"),
        ("35 0 16", "0 1 3", "0.5", "there is not"),
        ("35 0 16", "0 1 3", "nan", "there is not"),
        ("35 0 16", "1 1 3", "0", "cat_boundaries that are none"),
        ("35 0 16", "0 3 1", "0", "cat_boundaries that are none"),
        ("35 0 16", "0 1 99999999", "0", "cat_boundaries that are none"),
        ("35 0 16", "0 1 4", "0", "3 numbers of cat_threshold, not 4"),
        ("35 0", "0 3", "0", "2 numbers of cat_boundaries, not 3"),
        ("-35 0 16", "0 1 3", "0", "negative words"),
        ("35 0 4294967296", "0 1 3", "0", "beyond 32 bits"),
        ("0 0 16", "0 1 3", "0", "nothing is in"),
    ],
)
def test_damaged_sets(words: str, bounds: str, which: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text(lightgbm_with_set(words, bounds, which))
    with pytest.raises(ModelError, match=said):
        tinyet.open(tmp_path / "m.txt")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("left_child=-1 -2", "left_child=0 -2", "no tree"),
        ("right_child=1 -3", "right_child=7 -3", "leads nowhere"),
        ("right_child=1 -3", "right_child=1 -9", "leads nowhere"),
        ("split_feature=1 0", "split_feature=2 0", "it has not"),
        ("split_feature=1 0", "split_feature=1", "1 numbers of split_feature"),
        ("split_feature=1 0", "split_feature=1 x", "damaged"),
        ("num_leaves=3", "num_leaves=99999999999", "99999999999 leaves"),
        ("num_leaves=3", "num_leaves=-3", "-3 leaves"),
        ("decision_type=2 8", "decision_type=1 8", "0 sets of categories"),
        ("decision_type=2 8", "decision_type=6 8", "zeros for missing"),
        ("leaf_value=2 3 4", "leaf_value=2 3 nan", "no finite numbers"),
        ("leaf_value=2 3 4", "leaf_value=2 3 1e99", "no finite float32"),
        ("is_linear=0", "is_linear=1", "linear functions"),
        ("objective=regression", "objective=regression sqrt", "reg_sqrt"),
        ("objective=regression", "objective=custom", "objective 'custom'"),
        ("max_feature_idx=1", "max_feature_idx=1000000", "1000001 features"),
        ("num_tree_per_iteration=1", "num_tree_per_iteration=3", "2 trees for 3 sums"),
        ("threshold=0.5 -1\n", "", "threshold"),
    ],
)
def test_damaged_lightgbm(old: str, new: str, words: str, tmp_path: Path) -> None:
    assert old in LIGHTGBM
    (tmp_path / "m.txt").write_text(LIGHTGBM.replace(old, new, 1))
    with pytest.raises((ModelError, UnsupportedShape)) as caught:
        tinyet.open(tmp_path / "m.txt")
    assert words in str(caught.value)


def test_flipped_bytes(tmp_path: Path) -> None:
    """Whatever is damaged, a program is one that holds its rule, or the file is refused."""
    rng = np.random.default_rng(0)
    texts = [("m.txt", LIGHTGBM), ("m.txt", lightgbm_with_set())]
    texts += [("m.json", json.dumps(model)) for model in (xgboost_file(), with_set([1, 2, 9]))]
    made = 0
    for name, text in texts:
        for _ in range(80):
            data = bytearray(text.encode())
            for at in rng.integers(0, len(data), rng.integers(1, 4)):
                data[at] = rng.choice(list(b'0123456789-.,[]{}"=e \nx'))
            (tmp_path / name).write_bytes(data)
            try:
                program = tinyet.open(tmp_path / name)
            except (ModelError, UnsupportedOp, UnsupportedShape, UsageError):
                continue
            made += isinstance(program, tinyet.Program)
    assert made > 20


# ---------------------------------------------------------------- scikit-learn's files


def fitted() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = rows_of("iris")
    forest = make_pipeline(StandardScaler(), RandomForestClassifier(3, random_state=0)).fit(x, y)
    return forest, HistGradientBoostingClassifier(max_iter=3).fit(x, y)


@pytest.mark.parametrize("kind", ["skops", "joblib", "pkl"])
def test_files_of_estimators(kind: str, tmp_path: Path) -> None:
    x, _ = rows_of("iris")
    for estimator in fitted():
        path = tmp_path / f"flowers.{kind}"
        if kind == "skops":
            pytest.importorskip("skops.io").dump(estimator, path)
        elif kind == "joblib":
            pytest.importorskip("joblib").dump(estimator, path)
        else:
            path.write_bytes(pickle.dumps(estimator))
        trusted = {} if kind == "skops" else {"trust_pickle": True}
        program = tinyet.open(path, **trusted)  # type: ignore[arg-type]
        assert isinstance(program, tinyet.Program)
        assert program.name == "flowers"
        agree(program, x[::10], [estimator.predict(x[::10])], 0)


class Run:
    """What a pickle can do."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_a_pickle_is_not_run_unasked(tmp_path: Path) -> None:
    trace = tmp_path / "it ran"
    for name in ("m.pkl", "m.joblib", "m.pickle"):
        (tmp_path / name).write_bytes(pickle.dumps(Run(trace)))
        with pytest.raises(UsageError, match="run whatever code is in it"):
            tinyet.open(tmp_path / name)
        (tmp_path / "m.skops").write_bytes((tmp_path / name).read_bytes())
        with pytest.raises(TinyetError):
            tinyet.open(tmp_path / "m.skops")
    assert not trace.exists()


def test_damaged_estimators(tmp_path: Path) -> None:
    (tmp_path / "m.joblib").write_bytes(b"nothing")
    with pytest.raises(ModelError, match="cannot be unpickled"):
        tinyet.open(tmp_path / "m.joblib", trust_pickle=True)
    (tmp_path / "m.skops").write_bytes(b"PK")
    with pytest.raises(UsageError, match="trust_pickle"):
        tinyet.open(tmp_path / "m.skops", trust_pickle=True)


def test_types_that_skops_does_not_know(tmp_path: Path) -> None:
    io = pytest.importorskip("skops.io")
    io.dump(Run(tmp_path / "it ran"), tmp_path / "m.skops")
    with pytest.raises(ModelError, match="types that are not scikit-learn's"):
        tinyet.open(tmp_path / "m.skops")
    assert not (tmp_path / "it ran").exists()
