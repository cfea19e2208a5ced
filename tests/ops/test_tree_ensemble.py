# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.calls.exact import assert_drawn, assert_kernels
from tests.ops import drawing
from tests.ops.cases import Case
from tinyet import ops
from tinyet.errors import RefusedError
from tinyet.ir import DType, Node, QuantParams, Tensor, TensorType, constant
from tinyet.numerics import dequantize
from tinyet.ops import tree_ensemble
from tinyet.ops.shared.forest import (
    INT16_MOST,
    MAX_BASE,
    MAX_DEPTH,
    Choice,
    Forest,
    Numeric,
    Tree,
    as_integers,
    at_most,
    below,
    forest_of,
    nearest,
)
from tinyet.ops.shared.tree_branches import Branches
from tinyet.ops.tree_ensemble import OP, TreeEnsemble, keys
from tinyet.opset import rule

KINDS = (DType.FLOAT32, DType.INT16, DType.INT8)
SPECIAL = np.array(
    [0.0, -0.0, math.inf, -math.inf, 1e-45, -1e-45, 1.0, -1.0, 3.4028235e38, -3.4028235e38], np.float32
)
NANS = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001, 0xFFFFFFFF], np.uint32).view(np.float32)


def drawn_tree(
    rng: np.random.Generator, width: int, features: int, kind: DType, outputs: int, missing: bool
) -> Tree:
    """A tree of any form of up to 20 nodes that ask, some of them for intervals."""
    left, right = [-1], [-1]
    for _ in range(rng.integers(0, 20)):
        leaf = int(rng.choice([i for i, child in enumerate(left) if child < 0]))
        left[leaf], right[leaf] = len(left), len(left) + 1
        left += [-1, -1]
        right += [-1, -1]
    count = len(left)
    thresholds = drawing.data(rng, (count,), kind).astype(np.float32)
    if kind is DType.FLOAT32:
        special = rng.random(count) < 0.5
        thresholds = np.where(special, rng.choice(SPECIAL, count), thresholds)
    choices = {}
    for node in np.flatnonzero(rng.random(count) < 0.3):
        edges = np.unique(rng.choice(thresholds, rng.integers(2, 12)) + np.float32(0))
        if len(edges) > 1:
            choices[int(node)] = Choice(edges[: len(edges) // 2 * 2], int(rng.integers(0, 2)))
    return Tree(
        np.array(left, np.int32),
        np.array(right, np.int32),
        rng.integers(0, features, count, np.int32),
        thresholds,
        # Few different ones: equal leaves are shared.
        (rng.integers(-3, 4, (count, width)) * 0.37).astype(np.float32),
        int(rng.integers(0, outputs - width + 1)),
        rng.random(count) < 0.5 if missing else None,
        choices,
    )


def node_of(forest: Forest, x: Tensor) -> Node:
    arrays = [
        forest.features,
        forest.thresholds,
        forest.children,
        forest.roots,
        forest.values,
        forest.targets,
        forest.base,
    ]
    inputs: list[Tensor | None] = [x, *(constant(f"c{i}", array) for i, array in enumerate(arrays))]
    if forest.missing is not None:
        inputs.append(constant("missing", forest.missing))
    kind = TensorType((x.shape[0], len(forest.base)), DType(forest.base.dtype.name))
    return Node(TreeEnsemble(), tuple(inputs), (Tensor("y", kind),))


@st.composite
def tree_ensemble_nodes(draw: st.DrawFn, kinds: Sequence[DType] = KINDS) -> Case:
    """Leaves in float32 or int16, of the whole range; one value or several."""
    rng = drawing.random(draw)
    kind = draw(st.sampled_from(kinds))
    missing = kind is DType.FLOAT32 and draw(st.booleans())
    features, outputs = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    width = draw(st.integers(1, outputs))
    trees = [drawn_tree(rng, width, features, kind, outputs, missing) for _ in range(draw(st.integers(1, 6)))]
    forest = forest_of(trees, drawing.float_data(rng, (outputs,)))
    forest = replace(forest, thresholds=forest.thresholds.astype(kind.numpy))
    if draw(st.booleans()):
        leaves = drawing.integer_data(rng, forest.values.shape, DType.INT16)
        base = rng.integers(-MAX_BASE, MAX_BASE, outputs, np.int32, endpoint=True)
        forest = replace(forest, values=leaves, base=base)
    x = draw(drawing.activations("x", (draw(st.integers(1, 3)), features), kind))
    data = drawing.data(rng, x.shape, kind)
    if kind is DType.FLOAT32:
        # Features are often a threshold, and NaN of every kind.
        which = rng.random(x.shape)
        data = np.where(which < 0.4, rng.choice(forest.thresholds, x.shape), data)
        data = np.where(which > 0.8, rng.choice(np.concatenate([SPECIAL, NANS]), x.shape), data)
    return Case(node_of(forest, x), (data.astype(kind.numpy),))


TABLES = [kernel for kernel in OP.kernels if not kernel.symbol.startswith(tree_ensemble.BRANCHES)]
BRANCHES = [kernel for kernel in OP.kernels if kernel.symbol.startswith(tree_ensemble.BRANCHES)]


@drawing.called
@given(tree_ensemble_nodes())
def test_host(case: Case) -> None:
    assert_kernels([case], TABLES)


def test_branches() -> None:
    """The same trees as code, which is compiled: many at once."""
    lists = st.lists(tree_ensemble_nodes(), min_size=20, max_size=30)
    assert_drawn(lists, settings(max_examples=3, deadline=None), BRANCHES)


def walked(tree: Tree, row: Numeric) -> Numeric:
    """The leaf of one row, node by node, as the words of the definition have it."""
    node = 0
    while tree.left[node] >= 0:
        value, choice = row[tree.features[node]], tree.choices.get(node)
        if np.isnan(value) and tree.missing_left is not None:
            left = bool(tree.missing_left[node])
        elif choice is None:
            left = value <= tree.thresholds[node]
        else:
            left = (np.sum(choice.edges < value) % 2 == 1) == (choice.inside == 0)
        node = int(tree.left[node] if left else tree.right[node])
    return np.asarray(tree.values[node])


@drawing.quick
@given(drawing.SEEDS)
def test_a_forest_answers_as_its_trees(seed: int) -> None:
    rng = np.random.default_rng(seed)
    trees = [drawn_tree(rng, 2, 3, DType.FLOAT32, 3, True) for _ in range(4)]
    x = rng.choice(np.concatenate([SPECIAL, NANS, trees[0].thresholds]), (8, 3))
    got = forest_of(trees, [0.0, 1.0, 2.0]).evaluate(x)
    for row, sums in zip(x, got, strict=True):
        want = np.array([0, 1, 2], np.float32)
        for tree in trees:
            want[tree.target : tree.target + 2] += walked(tree, row)
        assert (want == sums).all()


@drawing.quick
@given(drawing.SEEDS, st.sampled_from((DType.INT8, DType.INT16)), st.floats(1e-3, 3.0))
def test_integers_answer_as_the_reals_they_stand_for(seed: int, kind: DType, scale: float) -> None:
    rng = np.random.default_rng(seed)
    quant = QuantParams.per_tensor(scale, int(rng.integers(-9, 9)) if kind is DType.INT8 else 0)
    trees = [drawn_tree(rng, 1, 3, DType.FLOAT32, 1, False) for _ in range(4)]
    # Thresholds that are the reals of integers, just beside them, or outside of what the type holds.
    reals = dequantize(drawing.integer_data(rng, (4, len(trees[0].left)), kind), quant)
    edges = np.array([-math.inf, math.inf], np.float32)
    beside = np.nextafter(reals, rng.choice(edges, reals.shape))
    near = [
        np.where(rng.random(row.shape) < 0.5, row, other) for row, other in zip(reals, beside, strict=True)
    ]
    trees[0] = replace(trees[0], thresholds=near[0].astype(np.float32))
    forest = forest_of(trees, [0.5])
    x = drawing.integer_data(rng, (64, 3), kind)
    narrow = as_integers(forest, kind, quant)
    assert narrow.complaint(3, kind) is None
    assert (narrow.evaluate(x) == forest.evaluate(dequantize(x, quant))).all()


@given(st.floats(allow_nan=False), st.floats(width=32, allow_nan=False))
def test_thresholds_of_other_tools(threshold: float, x: float) -> None:
    value = np.float32(x)
    with np.errstate(over="ignore"):
        others = (value, np.nextafter(np.float32(threshold), value))
    for near in others:
        assert (near <= at_most(threshold)) == (float(near) <= threshold)
        assert math.isinf(x) or (near <= below(value)) == (near < value)
    with pytest.raises(RefusedError, match="below -inf"):
        below(-math.inf)


@given(st.floats(-1e30, 1e30), st.floats(-1e30, 1e30), st.booleans())
def test_thresholds_that_are_rounded_as_features_are(threshold: float, x: float, same: bool) -> None:
    x = threshold if same else x
    if x <= threshold or np.float32(x) != np.float32(threshold):
        assert (np.float32(x) <= nearest(threshold)) == (x <= threshold)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_keys_are_in_the_order_of_floats(first: int, second: int) -> None:
    x, t = np.array([first, second], np.uint32).view(np.float32)
    if not np.isnan(t):
        assert (keys(x) <= keys(t + np.float32(0))) == (x <= t)


@drawing.quick
@given(drawing.SEEDS, st.floats(1e-6, 1e6), st.floats(0, 1e9))
def test_fixed_point_is_as_near_as_it_says(seed: int, size: float, start: float) -> None:
    rng = np.random.default_rng(seed)
    trees = [drawn_tree(rng, 2, 3, DType.FLOAT32, 3, False) for _ in range(5)]
    trees = [
        replace(tree, values=rng.normal(0, size, tree.values.shape).astype(np.float32)) for tree in trees
    ]
    forest = forest_of(trees, np.array([start, 0.0, -start]))
    fixed = forest.fixed_point()
    assert fixed.forest.complaint(3, DType.FLOAT32) is None
    x = rng.normal(0, 3, (50, 3)).astype(np.float32)
    exact = replace(forest, values=forest.values.astype(np.float64), base=forest.base.astype(np.float64))
    sums = np.ldexp(fixed.forest.evaluate(x).astype(np.float64), -fixed.fraction)
    assert np.abs(sums - exact.evaluate(x)).max() <= fixed.error
    # No bit is given away: of the leaves, or of what the sums begin with.
    leaves, base = np.abs(fixed.forest.values.astype(int)).max(), np.abs(fixed.forest.base.astype(int)).max()
    assert leaves > INT16_MOST // 2 - 1 or base > MAX_BASE // 2 - 1


def test_whole_numbers_are_exact_in_fixed_point() -> None:
    """Votes of pure leaves stay as even as they were."""
    fixed = forest_of([replace(chain(2), values=np.eye(5, dtype=np.float32))] * 3, np.zeros(5)).fixed_point()
    assert (fixed.error, fixed.fraction) == (0.0, 14)
    assert set(fixed.forest.values.reshape(-1).tolist()) == {0, 1 << 14}


def chain(depth: int) -> Tree:
    """Each node's second child is the next."""
    count = 2 * depth + 1
    left = np.array([i + 1 if i % 2 == 0 and i < count - 1 else -1 for i in range(count)], np.int32)
    right = np.array([i + 2 if i % 2 == 0 and i < count - 1 else -1 for i in range(count)], np.int32)
    zeros = np.zeros(count, np.float32)
    return Tree(left, right, np.zeros(count, np.int32), zeros, zeros[:, None])


def test_paths_are_counted() -> None:
    forest = forest_of([chain(3), chain(1)], [0.0])
    assert (forest.depth, forest.worst_path, forest.mean_path) == (3, 4, 1 + 0.5 + 0.25 + 1)


def ladder(count: int) -> Forest:
    """One tree of so many nodes, each of which leads to the next two: a hundred have more ways than there are atoms."""
    nodes = np.arange(count, dtype=np.int32)
    children = np.column_stack([nodes + 1, nodes + 2]).astype(np.int32)
    children = np.where(children < count, children, -1 - (children & 1)).astype(np.int32)
    arrays = (nodes % 2, (0.5 * (nodes % 9)).astype(np.float32), children, np.zeros(1, np.int32))
    values = np.array([[1.0], [2.0]], np.float32)
    return Forest(*arrays, values, np.zeros(1, np.int32), np.zeros(1, np.float32))


def test_shared_nodes_are_met_once() -> None:
    """Counted, made smaller, and printed, in the time and the bytes of its nodes."""
    forest = ladder(100)
    assert forest.complaint(2, DType.FLOAT32) is None
    assert (forest.depth, forest.worst_path) == (100, 100)
    assert 66 < forest.mean_path < 68
    narrow = as_integers(forest, DType.INT8, QuantParams.per_tensor(1.0, 0))
    assert len(narrow.features) == 100
    made = Branches(narrow, narrow.thresholds, DType.INT8, 127, 1)
    lines = made.tree(0)
    assert sum("if (" in line for line in lines) == 100
    assert sum("goto " in line for line in lines) == 98


def test_trees_that_are_none_are_refused() -> None:
    loop = replace(chain(2), right=np.array([2, -1, 0, -1, -1], np.int32))
    with pytest.raises(RefusedError, match="no tree"):
        forest_of([loop], [0.0])
    with pytest.raises(RefusedError, match="no tree"):
        forest_of([replace(chain(2), right=np.array([2, -1, 9, -1, -1], np.int32))], [0.0])
    with pytest.raises(RefusedError, match="deeper than 255"):
        forest_of([chain(MAX_DEPTH + 1)], [0.0])
    assert forest_of([chain(MAX_DEPTH)], [0.0]).complaint(1, DType.FLOAT32) is None


GOOD = forest_of([chain(3), chain(2)], [0.0])
FIXED = GOOD.fixed_point().forest


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (replace(GOOD, features=GOOD.features + 2), "feature outside"),
        (replace(GOOD, features=GOOD.features - 1), "feature outside"),
        (replace(GOOD, targets=GOOD.targets + 1), "output outside"),
        (replace(GOOD, thresholds=GOOD.thresholds * np.float32(math.nan)), "NaN"),
        (replace(GOOD, roots=GOOD.roots + np.int32(3)), "no node and to no leaf"),
        (replace(GOOD, children=np.where(GOOD.children < 0, -3, GOOD.children)), "no node and to no leaf"),
        (replace(GOOD, children=np.where(GOOD.children == 2, 1, GOOD.children)), "after its node"),
        (replace(GOOD, children=np.where(GOOD.children == 1, 2, GOOD.children)), "no link leads"),
        (replace(GOOD, roots=GOOD.roots[::-1] * 0), "no link leads"),
        (replace(GOOD, roots=np.array([0, 3, 3], np.int32), targets=np.zeros(3, np.int32)), "trees share"),
        (replace(GOOD, roots=np.array([0, 1, 3], np.int32), targets=np.zeros(3, np.int32)), "trees share"),
        (
            replace(
                GOOD, children=np.where(np.arange(5)[:, None] == 2, [[-1, 4]], GOOD.children).astype(np.int32)
            ),
            "trees share",
        ),
        (replace(FIXED, base=FIXED.base + np.int32(MAX_BASE + 1)), "within int32"),
        (replace(GOOD, values=FIXED.values), "no form"),
        (replace(GOOD, base=FIXED.base), "no form"),
        (replace(GOOD, missing=np.full(5, 2, np.uint8)), "0 or 1"),
        (replace(GOOD, children=GOOD.children.astype(np.int16)), "constant of int32"),
        (replace(GOOD, targets=GOOD.targets[:1]), "different lengths"),
        (replace(GOOD, thresholds=GOOD.thresholds[None]), "dimensions"),
    ],
)
def test_what_a_file_may_not_say(bad: Forest, words: str) -> None:
    x = Tensor("x", TensorType((1, 2), DType.FLOAT32))
    assert rule.complaints(ops.op_of(node_of(GOOD, x)), node_of(GOOD, x)) == []
    node = node_of(bad, x)
    assert words in "; ".join(rule.complaints(ops.op_of(node), node))


@pytest.mark.parametrize("sampled", [-0.5, 5.5])
def test_a_mean_beyond_what_it_is_of(sampled: float) -> None:
    node = node_of(GOOD, Tensor("x", TensorType((1, 2), DType.FLOAT32)))
    assert GOOD.worst_path == 5
    assert ops.op_of(node).check(node.replace(attrs=TreeEnsemble(5.0))) is None
    assert "where 5 are the most" in str(ops.op_of(node).check(node.replace(attrs=TreeEnsemble(sampled))))


def test_a_table_that_is_computed_is_refused() -> None:
    node = node_of(GOOD, Tensor("x", TensorType((1, 2), DType.FLOAT32)))
    moving = [Tensor("c", t.type) if i == 3 and t is not None else t for i, t in enumerate(node.inputs)]
    assert "constant" in str(ops.op_of(node).check(node.replace(inputs=moving)))
