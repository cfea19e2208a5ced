# SPDX-License-Identifier: Apache-2.0
"""ONNX's operators of classical models, against ONNX Runtime, and what is refused of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyet
from tinyet.errors import ModelError, UnsupportedOp, UnsupportedShape

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper  # noqa: E402 - it may be absent

ROWS = np.random.default_rng(0).normal(0, 1, (40, 3)).astype(np.float32)


def model_of(nodes: list[Any], outputs: dict[str, int], opset: int = 9) -> bytes:
    """Of features `x`, one row of three. outputs: their element types."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3])
    results = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()]
    graph = helper.make_graph(nodes, "g", [x], results)
    sets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 1)]
    return bytes(helper.make_model(graph, opset_imports=sets, ir_version=8).SerializeToString())


def ml(op: str, outputs: list[str], **attributes: Any) -> Any:
    return helper.make_node(op, ["x"], outputs, domain="ai.onnx.ml", **attributes)


# x[0] <= 0 ? (x[2] <= 1 ? leaf 3 : leaf 4) : leaf 2, and x[1] <= -0.5 ? leaf 1 : leaf 2
TREES: dict[str, Any] = {
    "nodes_treeids": [0, 0, 0, 0, 0, 7, 7, 7],
    "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
    "nodes_featureids": [0, 2, 0, 0, 0, 1, 0, 0],
    "nodes_truenodeids": [1, 3, 0, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [2, 4, 0, 0, 0, 2, 0, 0],
    "nodes_values": [0.0, 1.0, 0.0, 0.0, 0.0, -0.5, 0.0, 0.0],
    "nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF", "LEAF", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"],
}
LEAVES = {"treeids": [0, 0, 0, 7, 7, 7], "nodeids": [2, 3, 4, 1, 2, 2]}


def classifier(ids: list[int], weights: list[float], classes: int, **more: Any) -> Any:
    found = {f"class_{name}": places for name, places in LEAVES.items()}
    return ml(
        "TreeEnsembleClassifier", ["label", "scores"],
        **{**TREES, **found, "class_ids": ids, "class_weights": weights, **more},
        classlabels_int64s=list(range(classes)),
    )  # fmt: skip


def regressor(**more: Any) -> Any:
    found = {f"target_{name}": places for name, places in LEAVES.items()}
    weights = [0.5, 1.25, -2.0, 3.0, 0.1, 7.0]
    return ml(
        "TreeEnsembleRegressor", ["y"],
        **{**TREES, **found, "target_ids": [0, 1, 0, 1, 0, 1], "target_weights": weights, "n_targets": 2, **more},
    )  # fmt: skip


def machine(kind: str, classes: int, **more: Any) -> Any:
    """Of two vectors for the first class and one for each other one."""
    rng, total = np.random.default_rng(classes), classes + 1
    given: dict[str, Any] = {
        "classlabels_ints": list(range(classes)),
        "kernel_type": kind,
        "kernel_params": [0.4, 0.25, 2.0],
        "vectors_per_class": [2, *[1] * (classes - 1)],
        "support_vectors": rng.normal(0, 1, 3 * total).tolist(),
        "coefficients": rng.normal(0, 1, (classes - 1) * total).tolist(),
        "rho": rng.normal(0, 0.3, classes * (classes - 1) // 2).tolist(),
    }
    return ml("SVMClassifier", ["label", "scores"], **{**given, **more})


def vector_regressor(**more: Any) -> Any:
    given: dict[str, Any] = {
        "kernel_params": [0.4, 0.25, 3.0],
        "n_supports": 2,
        "support_vectors": [0.5, 1.0, -1.0, 0.0, -0.5, 2.0],
        "coefficients": [1.5, -1.0],
        "rho": [0.1],
    }
    return ml("SVMRegressor", ["y"], **{**given, **more})


MODELS: dict[str, list[Any]] = {
    "three classes": [classifier([0, 1, 2, 0, 1, 2], [0.5, 1.0, 0.25, 0.5, 0.3, 0.7], 3)],
    "softmax": [classifier([0, 1, 2, 0, 1, 2], [0.5, 1, 0.2, 0.5, 0.3, 0.7], 3, post_transform="SOFTMAX")],
    "two classes": [classifier([1, 1, 1, 1, 1, 1], [0.25, 0.5, 0.0, 0.5, 0.125, 0.25], 2)],
    "log-odds": [classifier([1, 1, 1, 1, 1, 1], [-1.0, 0.5, 2.0, -0.5, 0.1, 0.2], 2, post_transform="LOGISTIC")],
    "less than": [classifier([0, 1, 2, 0, 1, 2], [0.5, 1, 0.2, 0.5, 0.3, 0.7], 3, nodes_modes=[
        mode.replace("LEQ", "LT") for mode in TREES["nodes_modes"]])],
    "base": [classifier([0, 1, 2, 0, 1, 2], [0.5, 1, 0.2, 0.5, 0.3, 0.7], 3, base_values=[0.1, 0.6, 0.2])],
    "targets": [regressor()],
    "mean": [regressor(aggregate_function="AVERAGE")],
    "linear": [ml("LinearClassifier", ["label", "scores"], coefficients=[1.0, 2, 3, -1, 0, 2, 0.5, 0.25, -3],
        intercepts=[0.1, 0.2, -0.3], classlabels_ints=[0, 1, 2], post_transform="SOFTMAX")],
    "regression": [ml("LinearRegressor", ["y"], coefficients=[1.0, 2, 3], intercepts=[0.5])],
    "scaler": [ml("Scaler", ["y"], offset=[1.0, 2, 3], scale=[0.5, 2, 1])],
    **{norm: [ml("Normalizer", ["y"], norm=norm)] for norm in ("L1", "L2")},
    **{
        f"{kind} {count}": [machine(kind, count)]
        for kind, count in (("RBF", 2), ("RBF", 3), ("POLY", 3), ("SIGMOID", 2), ("LINEAR", 3))
    },
    "vector regression": [vector_regressor(kernel_type="RBF")],
    "one class": [vector_regressor(one_class=1, kernel_type="POLY")],
    "linear vector regression": [
        ml("SVMRegressor", ["y"], coefficients=[1.0, -2, 3], rho=[0.5], kernel_type="LINEAR", n_supports=0,
            kernel_params=[0.1, 0.0, 3.0])],
    "columns": [
        helper.make_node("Constant", [], ["i"], value=helper.make_tensor("i", TensorProto.INT64, [2], [2, 0])),
        helper.make_node("ArrayFeatureExtractor", ["x", "i"], ["y"], domain="ai.onnx.ml"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("which", MODELS)
def test_answers(which: str, tmp_path: Path) -> None:
    """Features that are a threshold, and its neighbours, are among the rows."""
    names = list(MODELS[which][-1].output)
    kinds = [TensorProto.INT64 if name == "label" else TensorProto.FLOAT for name in names]
    data = model_of(MODELS[which], dict(zip(names, kinds, strict=True)))
    (tmp_path / "m.onnx").write_bytes(data)
    program = tinyet.from_onnx(tmp_path / "m.onnx")
    rows = ROWS.copy()
    rows[:6] = [
        [0, -0.5, 1], [0, np.nextafter(np.float32(-0.5), np.float32(0)), 1], [-0.0, 0, np.nextafter(1, 2)],
        [1e-45, -1, 0], [0, 0, 1], [-1, 1, 2],
    ]  # fmt: skip
    own = runtime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": rows})
    for got, want in zip(program.evaluate(rows, by="numpy").outputs, own, strict=True):
        np.testing.assert_allclose(got.reshape(want.shape), want, 1e-5, 1e-6)


def test_missing_values() -> None:
    from tinyet.importers.onnx.importer import import_model
    from tinyet.importers.onnx.read import read_model
    from tinyet.reference.evaluate import run_graph

    node = regressor(nodes_missing_value_tracks_true=[1, 0, 0, 0, 0, 0, 0, 0])
    data = model_of([node], {"y": TensorProto.FLOAT})
    graph, _ = import_model(read_model(data, "m.onnx", "m.onnx"), name="m")
    rows = np.array([[math.nan, 0, 0], [math.nan, math.nan, math.nan], [0, math.nan, 2]], np.float32)
    own = runtime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": rows})[0]
    for row, want in zip(rows, own, strict=True):
        np.testing.assert_allclose(run_graph(graph, [row[None]])[0][0], want, 1e-6)


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (regressor(nodes_modes=["BRANCH_GT", *TREES["nodes_modes"][1:]]), "BRANCH_GT"),
        (regressor(nodes_truenodeids=[1, 0, 0, 0, 0, 1, 0, 0]), "no tree"),
        (regressor(nodes_truenodeids=[9, 3, 0, 0, 0, 1, 0, 0]), "link to no node"),
        (regressor(nodes_nodeids=[0, 1, 1, 3, 4, 0, 1, 2]), "two nodes of one name"),
        (regressor(nodes_featureids=[3, 2, 0, 0, 0, 1, 0, 0]), "feature outside"),
        (regressor(nodes_values=[0.0]), "1 nodes_values, not 8"),
        (regressor(nodes_values=[math.inf] * 8), "not finite"),
        (regressor(target_nodeids=[2, 3, 4, 1, 2, 8]), "a weight of no leaf"),
        (regressor(target_ids=[0, 1, 0, 1, 0, 2]), "a weight of no leaf, or of no class"),
        (regressor(n_targets=0), "0 targets"),
        (regressor(n_targets=2**30), "targets"),
        (regressor(aggregate_function="MIN"), "aggregate_function MIN"),
        (regressor(base_values=[1.0] * 3), "3 base_values"),
        (ml("LinearRegressor", ["y"], coefficients=[1.0, 2]), "2 coefficients, not 3"),
        (ml("Scaler", ["y"], offset=[1.0, 2], scale=[1.0]), "2 numbers of offset"),
        (ml("Normalizer", ["y"], norm="MAX"), "norm MAX"),
        (ml("FeatureVectorizer", ["y"]), "tinyet.from_sklearn takes more"),
        (vector_regressor(kernel_type="COSINE"), "kernel_type COSINE"),
        (vector_regressor(kernel_type="POLY", kernel_params=[1.0, 0.0, 2.5]), "degree 2.5"),
        (vector_regressor(n_supports=3), "6 support_vectors, not 9"),
        (vector_regressor(n_supports=2**30), "support vectors, at most"),
        (vector_regressor(n_supports=0, kernel_type="RBF"), "has no support vectors"),
        (machine("RBF", 3, prob_a=[1.0] * 3, prob_b=[1.0] * 3), "probabilities"),
        (machine("RBF", 3, vectors_per_class=[3, 1]), "vectors_per_class of 2 classes, not 3"),
        (machine("RBF", 3, rho=[1.0]), "1 rho, not 3"),
        (machine("RBF", 3, coefficients=[1.0] * 4), "4 coefficients, not 8"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refusals(node: Any, words: str, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(model_of([node], {node.output[-1]: TensorProto.FLOAT}))
    with pytest.raises((UnsupportedOp, UnsupportedShape)) as caught:
        tinyet.from_onnx(tmp_path / "m.onnx")
    assert words in str(caught.value)


def test_labels_that_are_no_indices(tmp_path: Path) -> None:
    node = ml(
        "LinearClassifier", ["label", "scores"], coefficients=[1.0] * 9, classlabels_strings=["a", "b", "c"]
    )
    (tmp_path / "m.onnx").write_bytes(
        model_of([node], {"label": TensorProto.STRING, "scores": TensorProto.FLOAT})
    )
    program = tinyet.from_onnx(tmp_path / "m.onnx")
    assert any("are a, b, c" in str(note) for note in program.notes)


def test_old_opsets_are_those_of_classical_models(tmp_path: Path) -> None:
    nodes = [ml("Scaler", ["s"], offset=[1.0], scale=[0.5]), helper.make_node("Softmax", ["s"], ["y"])]
    (tmp_path / "m.onnx").write_bytes(model_of(nodes, {"y": TensorProto.FLOAT}))
    with pytest.raises(ModelError, match="opset 9"):
        tinyet.from_onnx(tmp_path / "m.onnx")
