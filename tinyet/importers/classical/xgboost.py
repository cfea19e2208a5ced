# SPDX-License-Identifier: Apache-2.0
"""XGBoost's model files, in JSON: data from a stranger until each number has been checked.

The format: https://xgboost.readthedocs.io/en/stable/tutorials/saving_model.html. A node asks whether its feature is
less than the condition; a leaf's value stands in its condition's place. Or it asks whether it is in a set of
categories: what is goes right, all else, negative numbers, too, goes left. Sums are float32 there, too, in this order.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tinyet.errors import ModelError, RefusedError
from tinyet.files.reading import read_bounded
from tinyet.importers.classical.boosted import MAX_NODES, Boosted, Link
from tinyet.importers.classical.categories import choice_of
from tinyet.messages.text import shown
from tinyet.ops.shared.forest import MAX_LINKS, MAX_TREES, Choice, Numeric, Tree, below

MAX_BYTES = 1 << 26

NO_CATEGORY = 1 << 24
"""From here on a number is no category, whatever the file says."""

_OBJECTIVES: Mapping[str, tuple[Link, bool]] = {
    "binary:hinge": ("identity", True),
    "binary:logistic": ("logistic", True),
    "binary:logitraw": ("identity", False),
    "count:poisson": ("exp", False),
    "multi:softmax": ("softmax", True),
    "multi:softprob": ("softmax", True),
    "rank:map": ("identity", False),
    "rank:ndcg": ("identity", False),
    "rank:pairwise": ("identity", False),
    "reg:absoluteerror": ("identity", False),
    "reg:gamma": ("exp", False),
    "reg:logistic": ("logistic", False),
    "reg:pseudohubererror": ("identity", False),
    "reg:quantileerror": ("identity", False),
    "reg:squarederror": ("identity", False),
    "reg:squaredlogerror": ("identity", False),
    "reg:tweedie": ("exp", False),
}
"""What becomes of the sums, and whether the answer is a class."""


def read_xgboost(path: Path, *, missing_values: bool = False) -> Boosted:
    """The model of a JSON file. missing_values: NaN goes where the file says; else to the second child.

    Raises ModelError for a file that is none, damaged, too large, or holds what is not known, by its name.
    """
    where = str(path)
    try:
        data = read_bounded(path, MAX_BYTES)
    except OSError as error:
        raise ModelError(f"the model cannot be read: {error.strerror}", where) from error
    try:
        learner = json.loads(data)["learner"]
        return _model(learner, path.name, missing_values)
    except RefusedError as error:
        raise ModelError(f"the model {error.reason}", where, error.hint or None) from error
    except KeyError as error:
        what = f"this is no model of XGBoost's, or a damaged one: it has no {shown(str(error), 60)}"
        raise ModelError(what, where, "model.save_model('model.json')") from error
    except (ValueError, TypeError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        raise ModelError(f"the file is damaged: {shown(str(error), 200)}", where) from error


def _model(learner: Any, file: str, missing_values: bool) -> Boosted:
    objective = learner["objective"]["name"]
    if objective not in _OBJECTIVES:
        raise RefusedError(
            f"has the objective {shown(str(objective), 60)}", f"known: {', '.join(_OBJECTIVES)}"
        )
    link, is_class = _OBJECTIVES[objective]
    booster = learner["gradient_booster"]
    if booster["name"] != "gbtree":
        raise RefusedError(f"is a {shown(str(booster['name']), 40)}", "train it with booster='gbtree'")
    model, parameters = booster["model"], learner["learner_model_param"]
    width = _count(parameters["num_feature"], MAX_LINKS, "features")
    targets = _count(parameters.get("num_target", "1"), MAX_LINKS, "targets")
    classes = _count(parameters["num_class"], MAX_LINKS, "classes") if int(parameters["num_class"]) else 0
    sums = max(classes, targets)
    trees, numbers = model["trees"], model["tree_info"]
    used, notes = _used(learner, model, len(trees))
    if not 1 <= used <= MAX_TREES or len(numbers) != len(trees):
        raise RefusedError(f"has {used} trees")
    if sum(len(tree["left_children"]) for tree in trees) > MAX_NODES:
        raise RefusedError("has too many nodes for firmware", "train fewer trees, or a smaller max_depth")
    made = tuple(_tree(trees[i], numbers[i], sums, width, missing_values) for i in range(used))
    base = _base(parameters["base_score"], sums, link)
    count = max(classes, 2) if is_class else 0
    return Boosted(file, "XGBoost", width, made, base, link, count, notes=notes)


def _count(value: Any, most: int, what: str) -> int:
    number = int(value)
    if not 1 <= number <= most:
        raise RefusedError(f"has {number} {what}, at most {most:,}")
    return number


def _used(learner: Any, model: Any, trees: int) -> tuple[int, tuple[str, ...]]:
    """How many of the trees: those up to the best round, if training has stopped early."""
    best = learner.get("attributes", {}).get("best_iteration")
    ends = model.get("iteration_indptr")
    if best is None or not ends:
        return trees, ()
    last = int(best) + 1
    if not 0 < last < len(ends) or not 0 < int(ends[last]) <= trees:
        raise RefusedError("has a best_iteration that it has no trees of")
    count = int(ends[last])
    return count, (f"{count} of {trees} trees: up to the best round of early stopping, as predict() does",)


def _base(text: Any, sums: int, link: Link) -> tuple[float, ...]:
    """What the sums begin with. In the file it is a value of the answer, a probability or a mean."""
    given = json.loads(text) if isinstance(text, str) else text
    values = [float(v) for v in (given if isinstance(given, list) else [given])]
    values = values * sums if len(values) == 1 else values
    if len(values) != sums:
        raise RefusedError(f"has {len(values)} base scores for {sums} sums")
    if link == "logistic":
        if not all(0 < v < 1 for v in values):
            raise RefusedError("has a base_score that is no probability")
        return tuple(float(-np.log(np.float32(1) / np.float32(v) - np.float32(1))) for v in values)
    if link == "exp":
        if not all(v > 0 for v in values):
            raise RefusedError("has a base_score that is not positive")
        return tuple(math.log(v) for v in values)
    return tuple(values)


def _numbers(values: Any, count: int, kind: type[np.generic], what: str) -> Numeric:
    """A list of so many numbers of the file."""
    if not isinstance(values, list) or len(values) != count:
        raise RefusedError(f"has a tree with another number of {what} than belong to it")
    found = np.asarray(values)
    if found.dtype.kind not in "iufb" or found.ndim != 1:
        raise RefusedError(f"has {what} that are no numbers")
    if kind is not np.float32 and (np.abs(found.astype(np.float64)) > 2**31 - 1).any():
        raise RefusedError(f"has {what} beyond 32 bits")
    with np.errstate(over="ignore"):
        return np.asarray(found.astype(kind))


def _tree(tree: Any, number: Any, sums: int, width: int, missing_values: bool) -> Tree:
    if int(tree["tree_param"].get("size_leaf_vector", "1")) > 1:
        raise RefusedError("has several values a leaf", "train with multi_strategy='one_output_per_tree'")
    left_given = tree["left_children"]
    count = len(left_given)
    left = _numbers(left_given, count, np.int32, "left_children")
    right = _numbers(tree["right_children"], count, np.int32, "right_children")
    numbers = _numbers(tree["split_indices"], count, np.int32, "split_indices")
    conditions = _numbers(tree["split_conditions"], count, np.float32, "split_conditions")
    missing = _numbers(tree["default_left"], count, np.int32, "default_left") != 0
    leaf = left < 0
    choices = _choices(tree, count)
    by_set = np.isin(np.arange(count), list(choices)) & ~leaf
    conditions = np.where(by_set, np.float32(0), conditions)  # which have none
    if not np.isfinite(conditions).all():
        raise RefusedError("has conditions that are no finite float32")
    if ((numbers < 0) | (numbers >= width))[~leaf].any() or not 0 <= int(number) < sums:
        raise RefusedError("reads a feature, or adds to a sum, that it has not")
    return Tree(
        left,
        right,
        np.where(leaf, 0, numbers).astype(np.int32),
        below(np.where(leaf, np.float32(0), conditions)),
        conditions[:, None],
        int(number),
        missing & ~leaf if missing_values else None,
        choices,
    )


def _choices(tree: Any, count: int) -> dict[int, Choice]:
    """The sets of the nodes that ask for categories."""
    nodes = tree.get("categories_nodes", [])
    types = tree.get("split_type", [])
    if not nodes and not any(types):
        return {}
    numbers = _numbers(nodes, len(nodes), np.int64, "categories_nodes")
    by_set = np.flatnonzero(_numbers(types, count, np.int64, "split_type"))
    if numbers.tolist() != by_set.tolist():
        raise RefusedError("says of others in split_type than in categories_nodes that they have categories")
    sizes = _numbers(tree["categories_sizes"], len(numbers), np.int64, "categories_sizes")
    begins = _numbers(tree["categories_segments"], len(numbers), np.int64, "categories_segments")
    categories = _numbers(tree["categories"], int(sizes.sum()), np.int64, "categories")
    ends = np.cumsum(sizes)
    if (sizes < 1).any() or (begins != ends - sizes).any():
        raise RefusedError("has categories_segments that are not behind each other")
    if (categories < 0).any():
        raise RefusedError("has negative categories")
    made = {}
    for node, begin, end in zip(numbers.tolist(), begins.tolist(), ends.tolist(), strict=True):
        members = np.unique(categories[begin:end])
        made[node] = choice_of(members[members < NO_CATEGORY], 1, cut_off_to_zero=False)
    return made
