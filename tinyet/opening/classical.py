# SPDX-License-Identifier: Apache-2.0
"""Programs of classical models: scikit-learn's estimators, XGBoost's and LightGBM's files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyet import passes
from tinyet.compiler import DumpTo, dump_given, without_torch
from tinyet.errors import UsageError
from tinyet.errors.arguments import path_given
from tinyet.files.model_name import class_name, given_or_derived
from tinyet.importers.classical.boosted import Boosted, import_boosted
from tinyet.importers.classical.context import INPUTS, LEAVES, METHODS, Imported
from tinyet.importers.classical.lightgbm import read_lightgbm
from tinyet.importers.classical.sklearn import import_estimator, last_of
from tinyet.importers.classical.xgboost import read_xgboost
from tinyet.ir import DType, Note
from tinyet.ir.limits import SMALLEST_SCALE
from tinyet.opening.files import file_names
from tinyet.ops.shared.forest import Numeric
from tinyet.program import Program, check_labels

if TYPE_CHECKING:
    from torch import nn

MOST_COMPARED = 2000
"""Samples of which a program's answers are compared with the estimator's own."""


def from_sklearn(
    estimator: Any,
    methods: str | Sequence[str] | None = None,
    *,
    input_dtype: str = "float32",
    input_scale: float = 1.0,
    input_zero_point: int = 0,
    missing_values: bool = False,
    leaf_dtype: str = "float32",
    compared_on: Any = None,
    name: str | None = None,
    labels: Sequence[str] | None = None,
    dump: DumpTo | None = None,
) -> Program:
    """The Program of a fitted estimator of scikit-learn, or of a Pipeline of them; docs/classical.md lists which.

    methods: one of "predict", "predict_proba", "decision_function", "score_samples", "transform", "anomaly_score", or
        several, whose results are the outputs in that order; "predict" by default, of a transformer "transform".
        `predict` of a classifier is the index of the class, which `labels` names.
    input_dtype: of the features: "float32", "int16" or "int8"; integers q stand for
        input_scale * (q - input_zero_point). Trees compare the integers themselves.
    missing_values: features may be NaN, and go where training has sent missing values; otherwise NaN goes to the right
        child of every node.
    leaf_dtype: of what trees add up: "float32", or "int16", whose sums are exact integers: no float is added, compared
        or stored for `predict` of trees, which is what cores without FPU want. A note says how far the sums may be off.
    compared_on: rows of features: a note of the program says how far its answers are from the estimator's own on them.
    name: the prefix of the C functions; by default the class of the estimator. labels: names of the classes; by default
        its `classes_`. dump: as for `tinyet.compile`.

    Raises UnsupportedOp (UnsupportedShape) that lists all estimators and options that are not known, UsageError for
    arguments that cannot be.
    """
    asked = methods_given(methods)
    kind = dtype_given(input_dtype, input_scale, input_zero_point)
    title = given_or_derived(name, class_name(last_of(estimator)))
    imported = import_estimator(
        estimator,
        asked,
        name=title,
        dtype=kind,
        scale=input_scale,
        zero_point=input_zero_point,
        missing_values=missing_values,
        leaf_dtype=leaf_dtype_given(leaf_dtype),
    )
    program = _program(imported, title, labels, dump)
    if compared_on is not None:
        outputs = asked or (imported.graph.outputs[0].name,)
        notes = compared(program, estimator, outputs, np.asarray(compared_on))
        program = replace(program, notes=(*program.notes, *notes))
    return program


def sklearn_to_torch(
    estimator: Any,
    methods: str | Sequence[str] | None = None,
    *,
    missing_values: bool = False,
    leaf_dtype: str = "float32",
) -> nn.Module:
    """A fitted estimator as a torch module in eval mode, which takes a row of features, (1, n) float32: to be part of
    another module, or to be quantized by `tinyet.compile`. All arguments are as for `from_sklearn`. Trees are one
    operator, without a gradient; layers have weights that can be trained.

    Raises what `from_sklearn` raises, and ToolchainError without torch.
    """
    try:
        from tinyet.to_module.convert import to_module
    except ImportError as error:
        raise without_torch(error) from error
    title = class_name(last_of(estimator)) or "model"
    imported = import_estimator(
        estimator,
        methods_given(methods),
        name=title,
        missing_values=missing_values,
        leaf_dtype=leaf_dtype_given(leaf_dtype),
    )
    return to_module(imported.graph)[0]


def from_xgboost(
    path: str | Path,
    methods: str | Sequence[str] | None = None,
    *,
    input_dtype: str = "float32",
    input_scale: float = 1.0,
    input_zero_point: int = 0,
    missing_values: bool = False,
    leaf_dtype: str = "float32",
    name: str | None = None,
    labels: Sequence[str] | None = None,
    dump: DumpTo | None = None,
) -> Program:
    """The Program of a model that XGBoost has saved as JSON. methods: "predict", of classifiers "predict_proba",
    "decision_function"; all else as for `from_sklearn`.

    Raises ModelError for a file that is damaged, no such file, or holds what is not known, UnsupportedShape for trees
    that are none, UsageError for arguments that cannot be.
    """
    file = path_given(path, "from_xgboost takes the path of a JSON file")
    model = read_xgboost(file, missing_values=missing_values)
    return _boosted(
        model, file, methods, (input_dtype, input_scale, input_zero_point), leaf_dtype, name, labels, dump
    )


def from_lightgbm(
    path: str | Path,
    methods: str | Sequence[str] | None = None,
    *,
    input_dtype: str = "float32",
    input_scale: float = 1.0,
    input_zero_point: int = 0,
    missing_values: bool = False,
    leaf_dtype: str = "float32",
    name: str | None = None,
    labels: Sequence[str] | None = None,
    dump: DumpTo | None = None,
) -> Program:
    """The same of a model that LightGBM has saved as text."""
    file = path_given(path, "from_lightgbm takes the path of a text file")
    model = read_lightgbm(file, missing_values=missing_values)
    return _boosted(
        model, file, methods, (input_dtype, input_scale, input_zero_point), leaf_dtype, name, labels, dump
    )


def _boosted(
    model: Boosted,
    file: Path,
    methods: str | Sequence[str] | None,
    integers: tuple[str, float, int],
    leaf_dtype: str,
    name: str | None,
    labels: Sequence[str] | None,
    dump: DumpTo | None,
) -> Program:
    kind, (_, scale, zero_point) = dtype_given(*integers), integers
    title = given_or_derived(name, *file_names(file))
    asked = methods_given(methods)
    leaves = leaf_dtype_given(leaf_dtype)
    imported = import_boosted(
        model, asked, name=title, dtype=kind, scale=scale, zero_point=zero_point, leaf_dtype=leaves
    )
    return _program(imported, title, labels, dump)


def methods_given(methods: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Raises UsageError for one that no model has."""
    if methods is None:
        return None
    asked = (methods,) if isinstance(methods, str) else tuple(methods)
    wrong = [str(method) for method in asked if method not in METHODS]
    if wrong or not asked:
        raise UsageError(
            f"methods: {', '.join(wrong) or 'none'}", hint=f"one or several of {', '.join(METHODS)}"
        )
    return asked


def dtype_given(dtype: str, scale: float, zero_point: int) -> DType:
    """Raises UsageError for a type that features cannot have, and for a scale of floats or none of integers."""
    if dtype not in {kind.value for kind in INPUTS}:
        raise UsageError(f"input_dtype={dtype!r}", hint="float32, int16 or int8")
    kind = DType(dtype)
    if kind is DType.FLOAT32:
        if scale != 1.0 or zero_point:
            raise UsageError(
                "input_scale, input_zero_point: the features are float32", hint="input_dtype='int16'"
            )
        return kind
    low, high = kind.range
    if not (math.isfinite(scale) and scale >= SMALLEST_SCALE):
        raise UsageError(f"input_scale={scale}", hint="a positive number")
    if not low <= zero_point <= high:
        raise UsageError(f"input_zero_point={zero_point}", hint=f"an integer of {dtype}: {low} … {high}")
    return kind


def leaf_dtype_given(dtype: str) -> DType:
    """Raises UsageError for a type that leaves cannot have."""
    if dtype not in {kind.value for kind in LEAVES}:
        raise UsageError(f"leaf_dtype={dtype!r}", hint="float32 or int16")
    return DType(dtype)


def _program(imported: Imported, name: str, labels: Sequence[str] | None, dump: DumpTo | None) -> Program:
    graph, notes = passes.run(imported.graph, float_io=True, dump=dump_given(dump))
    given = imported.labels if labels is None else labels
    names = check_labels(given, graph.user_outputs[0], "labels") if given else ()
    return Program(name, graph, None, (*imported.notes, *notes), names)


def as_given(program: Program, rows: Numeric) -> Numeric:
    """Features as the program takes them: float32, or the nearest integers."""
    kind = program.inputs[0].type
    if kind.quant is None:
        return rows.astype(np.float32)
    low, high = kind.dtype.range
    nearest = np.rint(rows / kind.scale) + kind.zero_point
    return np.asarray(np.clip(nearest, low, high).astype(kind.dtype.numpy))


def compared(program: Program, estimator: Any, methods: Sequence[str], rows: Numeric) -> list[Note]:
    """How far the program's answers are from the estimator's own. Raises UsageError for rows of another width."""
    width = program.inputs[0].shape[1]
    if rows.ndim != 2 or rows.shape[1] != width or not len(rows):
        raise UsageError(f"compared_on has the shape {rows.shape}", hint=f"rows of {width} features")
    rows = rows[:MOST_COMPARED]
    taken = as_given(program, rows)
    answers = program.evaluate(taken).outputs
    notes = []
    for method, got in zip(methods, answers, strict=True):
        own = (
            anomaly_scores(estimator, rows) if method == "anomaly_score" else getattr(estimator, method)(rows)
        )
        notes.append(Note(difference(estimator, method, np.asarray(own), got.reshape(len(rows), -1))))
    return notes


def anomaly_scores(estimator: Any, rows: Numeric) -> Numeric:
    """Those of scikit-learn's own methods that the scores stand for."""
    if hasattr(estimator, "score_samples"):
        return -np.asarray(estimator.score_samples(rows))
    return np.asarray(np.asarray(estimator.transform(rows)).min(1))


def difference(estimator: Any, method: str, own: Numeric, got: Numeric) -> str:
    """A sentence about the answers of all samples: classes that differ, by their places; of numbers the largest error.
    own: the estimator's; got: the program's, (samples, n)."""
    if method == "predict" and got.dtype.kind == "i":
        classes = getattr(last_of(estimator), "classes_", None)
        given = got[:, 0]
        mine = np.asarray(classes)[given] if classes is not None else given
        if classes is None and set(np.unique(own)) <= {-1, 1}:
            mine = 2 * given - 1
        differ = np.flatnonzero(mine != own)
        where = ", ".join(map(str, differ[:20].tolist())) + (" …" if len(differ) > 20 else "")
        least = f"; it differs for the samples {where}: float32 here, float64 there" if len(differ) else ""
        return f"predict equals scikit-learn's for {len(own) - len(differ)} of {len(own)} samples{least}"
    error = np.abs(own.reshape(got.shape).astype(np.float64) - got)
    return f"{method}: the largest difference from scikit-learn's is {error.max():.3g}, of {len(own)} samples"
