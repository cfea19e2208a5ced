# SPDX-License-Identifier: Apache-2.0
"""LightGBM's model files, text: data from a stranger until each number has been checked.

The format is that of LightGBM's `Booster.save_model`: a head of `name=value` lines, and a block of such lines for each
tree. A node asks whether its feature is at most the threshold, in float64, as `forest.nearest` explains, or whether it
is in a set of categories, which are bits of words: what is in it is on the left, all else, negative numbers and NaN,
on the right. Sums are float64 there, float32 here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tinyet.errors import ModelError, RefusedError
from tinyet.files.reading import read_bounded
from tinyet.importers.classical.boosted import MAX_NODES, Boosted, Link
from tinyet.importers.classical.categories import choice_of
from tinyet.messages.text import shown
from tinyet.ops.shared.forest import MAX_LINKS, MAX_TREES, Choice, Numeric, Tree, nearest

MAX_BYTES = 1 << 26

MAX_WORDS = 1 << 16
"""Of the sets of a tree, 32 categories each."""

_OBJECTIVES: Mapping[str, tuple[Link, bool]] = {
    "binary": ("logistic", True),
    "cross_entropy": ("logistic", False),
    "fair": ("identity", False),
    "gamma": ("exp", False),
    "huber": ("identity", False),
    "lambdarank": ("identity", False),
    "mape": ("identity", False),
    "multiclass": ("softmax", True),
    "multiclassova": ("one_against_all", True),
    "poisson": ("exp", False),
    "quantile": ("identity", False),
    "rank_xendcg": ("identity", False),
    "regression": ("identity", False),
    "regression_l1": ("identity", False),
    "tweedie": ("exp", False),
}
"""What becomes of the sums, and whether the answer is a class."""

# Bits of a node's decision_type.
_CATEGORIES, _DEFAULT_LEFT, _MISSING_SHIFT = 1, 2, 2
_MISSING_NONE, _MISSING_ZERO, _MISSING_NAN = 0, 1, 2


def read_lightgbm(path: Path, *, missing_values: bool = False) -> Boosted:
    """The model of a text file. missing_values: NaN goes where the file says; else to the second child.

    Raises ModelError for a file that is none, damaged, too large, or holds what is not known, by its name.
    """
    where = str(path)
    try:
        text = read_bounded(path, MAX_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise ModelError(f"the model cannot be read: {error.strerror}", where) from error
    head, *blocks = text.split("end of trees")[0].split("\nTree=")
    if head.split("\n", 1)[0].strip() != "tree" or "version=" not in head:
        raise ModelError("this is no model of LightGBM's", where, "booster.save_model('model.txt')")
    try:
        return _model(head, blocks, path.name, missing_values)
    except RefusedError as error:
        raise ModelError(f"the model {error.reason}", where, error.hint or None) from error
    except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
        raise ModelError(f"the file is damaged: {shown(str(error), 200)}", where) from error


def _values(block: str) -> dict[str, str]:
    """The `name=value` lines of a block; a line without `=` is a name."""
    pairs = (line.partition("=") for line in block.split("\n") if line.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _model(head: str, blocks: list[str], file: str, missing_values: bool) -> Boosted:
    values = _values(head)
    words = values.get("objective", "").split()
    objective = words[0] if words else "none"
    if objective not in _OBJECTIVES:
        raise RefusedError(f"has the objective {shown(objective, 60)}", f"known: {', '.join(_OBJECTIVES)}")
    link, is_class = _OBJECTIVES[objective]
    options = dict(word.partition(":")[::2] for word in words[1:])
    if "sqrt" in options:
        raise RefusedError(
            "squares its sums (reg_sqrt)", "train it without reg_sqrt, on roots of the targets"
        )
    sums, width = int(values["num_tree_per_iteration"]), int(values["max_feature_idx"]) + 1
    if not 1 <= sums <= MAX_LINKS or not 1 <= width <= MAX_LINKS:
        raise RefusedError(f"has {width} features and {sums} sums, at most {MAX_LINKS:,} of each")
    if not 1 <= len(blocks) <= MAX_TREES or len(blocks) % sums:
        raise RefusedError(f"has {len(blocks)} trees for {sums} sums")
    trees, nodes = [], 0
    for number, block in enumerate(blocks):
        # The block begins behind "Tree=": with the tree's number.
        tree = _tree(_values(block.partition("\n")[2]), number % sums, width, missing_values)
        nodes += len(tree.left)
        if nodes > MAX_NODES:
            raise RefusedError("has too many nodes for firmware", "train fewer trees, or fewer num_leaves")
        trees.append(tree)
    factor = float(options.get("sigmoid", "1")) if link in ("logistic", "one_against_all") else 1.0
    if "average_output" in values:
        factor /= len(blocks) // sums
    if not (np.isfinite(factor) and factor > 0):
        raise RefusedError(f"has sigmoid:{shown(str(options.get('sigmoid')), 40)}")
    classes = max(sums, 2) if is_class else 0
    return Boosted(file, "LightGBM", width, tuple(trees), (0.0,) * sums, link, classes, factor)


def _numbers(
    values: Mapping[str, str],
    name: str,
    count: int,
    kind: type[int | float],
    *,
    finite: bool = True,
    most: int = 2**31 - 1,
) -> Numeric:
    """A line of so many numbers. Raises ValueError for what is none. most: how large integers are."""
    words = values[name].split()
    if len(words) != count:
        raise RefusedError(f"has a tree with {len(words)} numbers of {name}, not {count}")
    found = np.array([float(word) for word in words]) if kind is float else np.array([int(w) for w in words])
    if found.dtype.kind not in "if" or (finite and not np.isfinite(found).all()):
        raise RefusedError(f"has {name} that are no finite numbers")
    if kind is int and (np.abs(found) > most).any():
        raise RefusedError(f"has {name} beyond 32 bits")
    return found


def _tree(values: Mapping[str, str], target: int, width: int, missing_values: bool) -> Tree:
    """Nodes that ask first, as the file has them, then the leaves."""
    if int(values.get("is_linear", "0")):
        raise RefusedError("has linear functions in its leaves", "train it without linear_tree")
    leaves = int(values["num_leaves"])
    if not 1 <= leaves <= MAX_LINKS:
        raise RefusedError(f"has a tree of {leaves} leaves, at most {MAX_LINKS:,}")
    results = _numbers(values, "leaf_value", leaves, float)
    asking = leaves - 1
    if not asking:
        nothing = np.full(1, -1, np.int32)
        zero = np.zeros(1, np.float32)
        return Tree(nothing, nothing, np.zeros(1, np.int32), zero, _finite(results)[:, None], target)
    kinds = _numbers(values, "decision_type", asking, int)
    by_set = (kinds & _CATEGORIES) != 0
    missing = (kinds >> _MISSING_SHIFT) & 3
    if ((missing == _MISSING_ZERO) & ~by_set).any():
        raise RefusedError("takes zeros for missing values", "train it with zero_as_missing=false")
    numbers = _numbers(values, "split_feature", asking, int)
    if (numbers < 0).any() or (numbers >= width).any():
        raise RefusedError("reads a feature that it has not")
    given = _numbers(values, "threshold", asking, float, finite=False)
    # Only missing values are on the left of NaN: no number is at most NaN, and none but -inf at most -inf.
    thresholds = nearest(np.where(np.isnan(given), -np.inf, given))
    children = [_numbers(values, side, asking, int) for side in ("left_child", "right_child")]
    if any((side < -leaves).any() or (side >= asking).any() for side in children):
        raise RefusedError("is no tree: a link leads nowhere", "save the model again")
    left, right = (np.where(side < 0, asking + ~side, side) for side in children)
    none = np.full(leaves, -1)
    # Where no value was missing in training, NaN is 0.
    to_left = np.where(missing == _MISSING_NAN, (kinds & _DEFAULT_LEFT) != 0, thresholds >= 0) & ~by_set
    return Tree(
        np.concatenate([left, none]).astype(np.int32),
        np.concatenate([right, none]).astype(np.int32),
        np.concatenate([numbers, np.zeros(leaves)]).astype(np.int32),
        np.concatenate([thresholds, np.zeros(leaves, np.float32)]),
        np.concatenate([np.zeros(asking, np.float32), _finite(results)])[:, None],
        target,
        np.concatenate([to_left, np.zeros(leaves, bool)]) if missing_values else None,
        _choices(values, np.flatnonzero(by_set), given),
    )


def _choices(values: Mapping[str, str], nodes: Numeric, which: Numeric) -> dict[int, Choice]:
    """The sets of some nodes. which: of each node of the tree the number of its set, in place of a threshold."""
    if not len(nodes):
        return {}
    count = int(values["num_cat"])
    if not 1 <= count <= MAX_LINKS:
        raise RefusedError(f"has a tree with {count} sets of categories, at most {MAX_LINKS:,}")
    bounds = _numbers(values, "cat_boundaries", count + 1, int)
    if bounds[0] != 0 or (np.diff(bounds) < 0).any() or bounds[-1] > MAX_WORDS:
        raise RefusedError("has cat_boundaries that are none", "save the model again")
    words = _numbers(values, "cat_threshold", int(bounds[-1]), int, most=2**32 - 1)
    if (words < 0).any():
        raise RefusedError("has negative words of cat_threshold", "save the model again")
    asked = which[nodes]
    if not ((asked >= 0) & (asked < count)).all() or (asked != np.floor(asked)).any():
        raise RefusedError("has a node with a set of categories that there is not", "save the model again")
    sets: dict[int, Choice] = {}
    for number in {int(n) for n in asked}:
        bits = words[bounds[number] : bounds[number + 1]].astype("<u4").view(np.uint8)
        members = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
        sets[number] = choice_of(members, 0, cut_off_to_zero=True)
    return {int(node): sets[int(number)] for node, number in zip(nodes, asked, strict=True)}


def _finite(values: Numeric) -> Numeric:
    with np.errstate(over="ignore"):
        found = np.asarray(values, np.float32)
    if not np.isfinite(found).all():
        raise RefusedError("has leaves that are no finite float32", "scale the targets")
    return found
