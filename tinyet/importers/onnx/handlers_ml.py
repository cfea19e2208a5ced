# SPDX-License-Identifier: Apache-2.0
"""Handlers of classical models, ONNX's domain ai.onnx.ml: trees, linear models and what stands before them.

Classifiers give an index of the class, where ONNX gives its label, and scores; ZipMap, which makes dictionaries of
these, is left out. Sums over trees are float32, in the order of the trees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tinyet.errors import RefusedError
from tinyet.importers.onnx.context import Context, Handler
from tinyet.importers.onnx.handlers_shape import tensor_of
from tinyet.importers.onnx.values import Numbers, Value
from tinyet.ir import DType, Note, Tensor
from tinyet.ops.add import Add
from tinyet.ops.argmax import ArgMax
from tinyet.ops.cast import Cast
from tinyet.ops.clamp import Clamp
from tinyet.ops.compare import Compare
from tinyet.ops.gather import Gather
from tinyet.ops.linear import Linear
from tinyet.ops.mul import Mul
from tinyet.ops.reshape import Reshape
from tinyet.ops.shared.forest import MAX_LINKS, Tree, below, forest_of
from tinyet.ops.softmax import Softmax
from tinyet.ops.sub import Sub
from tinyet.ops.sum import Sum
from tinyet.ops.tree_ensemble import TreeEnsemble
from tinyet.ops.unary import Unary

DOMAIN = "ai.onnx.ml"
Numeric = npt.NDArray[Any]
_MAX_NODES = 8 * MAX_LINKS


def features(ctx: Context) -> Tensor:
    """The rows, in float32."""
    x = ctx.value(0)
    found = tensor_of(ctx, x)
    if isinstance(x, Tensor) and x.dtype is DType.INT32:
        found = ctx.emit(Cast(), [x], dtype=DType.FLOAT32)
    if found.dtype is not DType.FLOAT32 or len(found.shape) != 2:
        raise RefusedError(f"takes {found.type}", "give rows of float features")
    return found


def numbers(ctx: Context, name: str, count: int | None = None, *, whole: bool = False) -> Numeric:
    """A list of numbers. Raises RefusedError for words, and for another number of them."""
    found = np.asarray(ctx.attribute(name, []))
    if found.ndim != 1 or (found.size and found.dtype.kind not in ("i" if whole else "fi")):
        raise RefusedError(f"has {name} that are no numbers")
    if count is not None and found.size != count:
        raise RefusedError(f"has {found.size} {name}, not {count}")
    if not np.isfinite(found.astype(np.float64)).all():
        raise RefusedError(f"has {name} that are not finite")
    return np.asarray(found.astype(np.int64 if whole else np.float32))


def held(ctx: Context, name: str, data: Numeric) -> Tensor:
    return ctx.held(name, np.ascontiguousarray(data))


def row(ctx: Context, values: Sequence[float]) -> Tensor:
    return held(ctx, "operand", np.array([values], np.float32))


# ---------------------------------------------------------------- scores and classes


def transformed(ctx: Context, scores: Tensor) -> Tensor:
    """The scores behind the node's post_transform."""
    how = ctx.attribute("post_transform", "NONE")
    if how == "NONE":
        return scores
    if how == "SOFTMAX":
        return ctx.emit(Softmax(1), [scores])
    if how == "LOGISTIC":
        return ctx.emit(Unary("sigmoid"), [scores])
    raise RefusedError(f"has post_transform {how[:40]}", "NONE, SOFTMAX or LOGISTIC")


def two(ctx: Context, scores: Tensor, *, positive: bool, column: int = 0) -> list[Value]:
    """Of two classes that have one score: a probability where no weight is negative, else log-odds. It is the second's,
    and ONNX Runtime makes the first's of it where its number is that of the first; else that is 0."""
    bound = held(ctx, "bound", np.array([[0.5 if positive else 0.0]], np.float32))
    count = scores.shape[0]
    above = ctx.emit(Compare("greater"), [scores, bound], dtype=DType.INT32)
    first = ctx.emit(Reshape((count,)), [above])
    signs = ctx.emit(Mul(), [scores, row(ctx, [0.0 if column else -1.0, 1.0])])
    positive = positive and not column
    return [first, ctx.emit(Add(), [signs, row(ctx, [1.0, 0.0])]) if positive else transformed(ctx, signs)]


def classes(ctx: Context) -> int:
    """How many there are; a note where the index of one is not its label."""
    words, given = ctx.attribute("classlabels_strings", []), ctx.attribute("classlabels_int64s", [])
    words = words or ctx.attribute("classlabels_ints", [])
    found = list(given or words)
    noted(ctx, found)
    return len(found)


def noted(ctx: Context, found: Sequence[object]) -> None:
    """A note where the index of a class is not its label."""
    if list(found) != list(range(len(found))):
        said = ", ".join(str(label)[:20] for label in found[:8]) + (" …" if len(found) > 8 else "")
        ctx.notes.append(Note(f"the class is its index; the labels of 0, 1, … are {said}", ctx.origin))


# ---------------------------------------------------------------- trees


def trees_of(ctx: Context, prefix: str, width: int) -> list[Tree]:
    """The trees, with a column for each class or target, whose weights are called by the prefix."""
    modes = ctx.attribute("nodes_modes", [])
    count = len(modes)
    if not 1 <= count <= _MAX_NODES:
        raise RefusedError(f"has {count:,} nodes, at most {_MAX_NODES:,}")
    unknown = sorted({str(m)[:30] for m in modes} - {"BRANCH_LEQ", "BRANCH_LT", "LEAF"})
    if unknown:
        raise RefusedError(f"has nodes {', '.join(unknown[:5])}", "BRANCH_LEQ and BRANCH_LT are known")
    owners, names, asked, yes, no = (
        numbers(ctx, f"nodes_{name}", count, whole=True)
        for name in ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids")
    )
    thresholds = numbers(ctx, "nodes_values", count).astype(np.float32)
    missing = numbers(ctx, "nodes_missing_value_tracks_true", whole=True)
    missing = missing if missing.size else np.zeros(count, np.int64)
    if missing.size != count:
        raise RefusedError(f"has {missing.size} nodes_missing_value_tracks_true, not {count}")
    modes_ = np.array(modes)
    strict = modes_ == "BRANCH_LT"
    thresholds = np.where(strict, below(np.where(strict, thresholds, 0)), thresholds + np.float32(0))
    # Each node's place within its tree, by tree and name.
    order: dict[int, list[int]] = {}
    for place, owner in enumerate(owners.tolist()):
        order.setdefault(owner, []).append(place)
    places = {
        (owner, name): i for i, (owner, name) in enumerate(zip(owners.tolist(), names.tolist(), strict=True))
    }
    if len(places) != count:
        raise RefusedError("has two nodes of one name")
    if len(order) * width > 1 << 26 or count * width > 1 << 26:
        raise RefusedError("has too many leaves and classes for firmware")
    values = np.zeros((count, width), np.float32)
    total = len(numbers(ctx, f"{prefix}_weights"))
    for owner, name, column, weight in zip(
        *(
            numbers(ctx, f"{prefix}_{each}", total, whole=True).tolist()
            for each in ("treeids", "nodeids", "ids")
        ),
        numbers(ctx, f"{prefix}_weights").tolist(),
        strict=True,
    ):
        if (owner, name) not in places or not 0 <= column < width:
            raise RefusedError("has a weight of no leaf, or of no class")
        values[places[owner, name], column] += np.float32(weight)
    made = []
    for owner, inside in order.items():
        local = {int(names[place]): number for number, place in enumerate(inside)}
        leaf = modes_[inside] == "LEAF"
        sides = [
            np.array(
                [
                    -1 if end else local.get(int(child), -2)
                    for end, child in zip(leaf, side[inside], strict=True)
                ]
            )
            for side in (yes, no)
        ]
        if any((side == -2).any() for side in sides):
            raise RefusedError(f"has a link to no node of tree {owner}")
        made.append(
            Tree(
                sides[0].astype(np.int32),
                sides[1].astype(np.int32),
                np.where(leaf, 0, np.clip(asked[inside], -1, MAX_LINKS)).astype(np.int32),
                np.where(leaf, 0, thresholds[inside]).astype(np.float32),
                values[inside],
                0,
                (missing[inside] != 0) & ~leaf,
            )
        )
    return made


def sums(ctx: Context, x: Tensor, trees: Sequence[Tree], base: Numeric) -> Tensor:
    forest = forest_of(trees, base)
    arrays = [
        forest.features,
        forest.thresholds,
        forest.children,
        forest.roots,
        forest.values,
        forest.targets,
        forest.base,
        *([] if forest.missing is None else [forest.missing]),
    ]
    return ctx.emit(
        TreeEnsemble(), [x, *(held(ctx, "trees", array) for array in arrays)], dtype=DType.FLOAT32
    )


def base_of(ctx: Context, width: int) -> Numeric:
    given = numbers(ctx, "base_values")
    if given.size not in (0, width):
        raise RefusedError(f"has {given.size} base_values for {width} sums")
    return given if given.size else np.zeros(width, np.float32)


def tree_classifier(ctx: Context) -> list[Value]:
    x, count = features(ctx), classes(ctx)
    ids = numbers(ctx, "class_ids", whole=True)
    if count < 1 or count > MAX_LINKS:
        raise RefusedError(f"has {count} classes")
    if count == 2 and len(set(ids.tolist())) == 1:
        positive = bool((numbers(ctx, "class_weights") >= 0).all())
        trees = trees_of(ctx, "class", 2)
        column = int(ids[0])
        one = [
            Tree(t.left, t.right, t.features, t.thresholds, t.values[:, [column]], 0, t.missing_left)
            for t in trees
        ]
        given = numbers(ctx, "base_values")
        start = given[-1:] if given.size else np.zeros(1, np.float32)
        return two(ctx, sums(ctx, x, one, start), positive=positive, column=column)
    scores = sums(ctx, x, trees_of(ctx, "class", count), base_of(ctx, count))
    return [ctx.emit(ArgMax(1), [scores], dtype=DType.INT32), transformed(ctx, scores)]


def tree_regressor(ctx: Context) -> Value:
    x, width = features(ctx), ctx.attribute("n_targets", 1)
    if not 1 <= width <= MAX_LINKS:
        raise RefusedError(f"has {width} targets")
    how = ctx.attribute("aggregate_function", "SUM")
    if how not in ("SUM", "AVERAGE"):
        raise RefusedError(f"has aggregate_function {how[:40]}", "SUM or AVERAGE")
    trees, base = trees_of(ctx, "target", width), base_of(ctx, width)
    if how == "AVERAGE":
        mean = ctx.emit(Mul(), [sums(ctx, x, trees, 0 * base), row(ctx, [1 / len(trees)])])
        return transformed(
            ctx, ctx.emit(Add(), [mean, held(ctx, "base", base[None])]) if base.any() else mean
        )
    return transformed(ctx, sums(ctx, x, trees, base))


# ---------------------------------------------------------------- linear models


def linear(ctx: Context, count: int) -> Tensor:
    x = features(ctx)
    weights = numbers(ctx, "coefficients", count * x.shape[1]).reshape(count, x.shape[1])
    bias = numbers(ctx, "intercepts")
    if bias.size not in (0, count):
        raise RefusedError(f"has {bias.size} intercepts for {count} sums")
    return ctx.emit(
        Linear(), [x, held(ctx, "weights", weights), held(ctx, "bias", bias) if bias.size else None]
    )


def linear_classifier(ctx: Context) -> list[Value]:
    x, count = features(ctx), classes(ctx)
    rows = numbers(ctx, "coefficients").size // x.shape[1]
    if rows == 1 and count == 2:
        return two(ctx, linear(ctx, 1), positive=False)
    if rows != count or count < 1:
        raise RefusedError(f"has weights of {rows} sums for {count} classes")
    scores = linear(ctx, count)
    return [ctx.emit(ArgMax(1), [scores], dtype=DType.INT32), transformed(ctx, scores)]


def linear_regressor(ctx: Context) -> Value:
    count = ctx.attribute("targets", 1)
    if not 1 <= count <= MAX_LINKS:
        raise RefusedError(f"has {count} targets")
    return transformed(ctx, linear(ctx, count))


# ---------------------------------------------------------------- what stands before


def scaler(ctx: Context) -> Value:
    """(x - offset) * scale; one number is that of all features."""
    x = features(ctx)
    for attrs, name in ((Sub(), "offset"), (Mul(), "scale")):
        given = numbers(ctx, name)
        if given.size not in (1, x.shape[1]):
            raise RefusedError(f"has {given.size} numbers of {name} for {x.shape[1]} features")
        x = ctx.emit(attrs, [x, held(ctx, name, given[None])])
    return x


def normalizer(ctx: Context) -> Value:
    """Divided by the row's norm; a row of zeros stays one."""
    x, how = features(ctx), ctx.attribute("norm", "MAX")
    if how not in ("L1", "L2"):  # MAX is of the numbers, not of their sizes: a row of negative ones has none
        raise RefusedError(f"has norm {how[:40]}", "L1 or L2")
    sizes = ctx.emit(Unary("square" if how == "L2" else "abs"), [x])
    norm = ctx.emit(Sum((1,), True), [sizes])
    limits = np.finfo(np.float32)
    floor = ctx.emit(Clamp(float(limits.tiny), float(limits.max)), [norm])
    return ctx.emit(Mul(), [x, ctx.emit(Unary("rsqrt" if how == "L2" else "reciprocal"), [floor])])


def same(ctx: Context) -> Value:
    return ctx.value(0)


def extractor(ctx: Context) -> Value:
    """Some columns, or the elements of a list of constants."""
    x, places = ctx.value(0), ctx.value(1)
    if not isinstance(places, Numbers) or isinstance(x, Numbers):
        raise RefusedError(
            "looks labels up", "convert with options={'zipmap': False}, or leave the labels away"
        )
    indices, found = places.integers(), features(ctx)
    if not indices or not all(0 <= i < found.shape[1] for i in indices):
        raise RefusedError("takes columns that are not there")
    return ctx.emit(Gather(1), [found, ctx.held("columns", np.array(indices, np.int32))])


Rows = dict[str, Handler]
_HANDLERS: dict[str, Callable[[Context], Value | list[Value]]] = {
    "ArrayFeatureExtractor": extractor,
    "LinearClassifier": linear_classifier,
    "LinearRegressor": linear_regressor,
    "Normalizer": normalizer,
    "Scaler": scaler,
    "TreeEnsembleClassifier": tree_classifier,
    "TreeEnsembleRegressor": tree_regressor,
    "ZipMap": same,
}
ML_HANDLERS: Rows = {f"{DOMAIN}.{op}": handler for op, handler in _HANDLERS.items()}
