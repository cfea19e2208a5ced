# SPDX-License-Identifier: Apache-2.0
"""Decision trees as arrays: how the operator's constants hold them, what is wrong with such constants, and how they
are made of trees as other tools have them.

A node asks `x[feature] <= threshold`: yes is its first child, no its second. Other comparisons become this one:

- scikit-learn compares a float32 feature with a float64 threshold. A float32 is at most t exactly if it is at most the
  greatest float32 f <= t, for no float32 lies between f and t: `at_most`.
- x < t, of float32 (XGBoost), is x <= p with p the float32 before t, for no float32 lies between them: `below`.
- LightGBM and scikit-learn's histogram trees compare float64 features, which are rounded to float32 on their way to us.
  Rounded to nearest, too, a threshold is still at least every feature that it was; and it is less than every greater
  one that does not round to the same float32: `nearest`. (`at_most` would fail where a threshold is itself a feature.)
- x = scale * (q - zero_point) in float32 grows with q, so that x <= t is q <= the greatest q for which it holds:
  `as_integers`, which asks that of every integer of the type, with the arithmetic of `dequantize`.
- Whether x is in a set of categories, which is a union of intervals, is a few comparisons with their ends, a balanced
  tree of them, whose outcomes share two children: `Choice`. So a child may be that of several nodes, all of one tree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tinyet.errors import RefusedError
from tinyet.ir import DType, QuantParams
from tinyet.numerics import dequantize

Int32 = npt.NDArray[np.int32]
Float32 = npt.NDArray[np.float32]
Numeric = npt.NDArray[Any]

MAX_LINKS = 1 << 15
"""Nodes, leaves and features are numbers of 15 bits in the table that firmware has."""

MAX_DEPTH = 255
"""Comparisons on the way to a leaf."""

MAX_TREES = 1 << 15

MAX_BASE = 1 << 30
"""What integer sums begin with: with MAX_TREES leaves of 16 bits they stay within int32."""

INT16_MOST = 32767

MAX_MADE = 1 << 18
"""Nodes of trees as they are made: what integers then leave out is more than firmware can have, not without bound."""


def at_most(thresholds: npt.ArrayLike) -> Float32:
    """The greatest float32 that is not greater than each float64."""
    wide = np.asarray(thresholds, np.float64)
    with np.errstate(over="ignore"):
        near = wide.astype(np.float32)
    down = np.nextafter(near, np.float32(-math.inf))
    # -0 is 0, which is what is compared.
    return np.asarray(np.where(near.astype(np.float64) > wide, down, near) + np.float32(0.0), np.float32)


def nearest(thresholds: npt.ArrayLike) -> Float32:
    """Float64 thresholds of features that are rounded as they are."""
    with np.errstate(over="ignore"):
        return np.asarray(np.asarray(thresholds, np.float64).astype(np.float32) + np.float32(0.0), np.float32)


def below(thresholds: npt.ArrayLike) -> Float32:
    """The float32 before each: x < t is x <= this. Raises RefusedError for -inf, which nothing is below."""
    given = np.asarray(thresholds, np.float32)
    if np.isneginf(given).any():
        raise RefusedError("asks whether a feature is below -inf", "train it without infinite features")
    down = np.nextafter(given, np.float32(-math.inf))
    return np.asarray(down + np.float32(0.0), np.float32)


@dataclass(frozen=True)
class Choice:
    """What a node asks instead of a comparison: whether its feature is above edges[0] and at most edges[1], or above
    edges[2] and at most edges[3], and so on. edges: ascending, an even number. inside: the child, 0 or 1, where it is;
    the other where it is not. NaN, where missing values go nowhere of their own, is above all.
    """

    edges: Float32
    inside: int


@dataclass(frozen=True)
class Tree:
    """A tree as other tools have it: arrays over all of its nodes, leaves included; node 0 is the root.

    left, right: numbers of the children; left < 0 marks a leaf. features, thresholds: of the others; float32, for <=.
    values: (nodes, width), of leaves. target: the output to which column 0 of its values is added. missing_left:
    where NaN goes left; None where it goes right of every threshold. choices: the nodes that ask for intervals.
    """

    left: Int32
    right: Int32
    features: Int32
    thresholds: Float32
    values: Float32
    target: int = 0
    missing_left: npt.NDArray[np.bool_] | None = None
    choices: Mapping[int, Choice] = field(default_factory=dict)


@dataclass(frozen=True)
class Forest:
    """Trees as the operator's constants: only nodes that ask; equal leaves are one.

    features, thresholds: (nodes,). children: (nodes, 2): a node, which has a greater number, or ~leaf; a node may be
    the child of several of its tree's. roots: (trees,), likewise. values: (leaves, width), float32 or int16. targets:
    (trees,): the output to which the first of a leaf's values is added. base: (outputs,): what the sums begin with,
    float32, or int32 beside int16. missing: (nodes,), 1 where NaN goes left; None for nowhere.
    """

    features: Int32
    thresholds: Numeric
    children: Int32
    roots: Int32
    values: Numeric
    targets: Int32
    base: Numeric
    missing: npt.NDArray[np.uint8] | None = None

    def complaint(self, width: int, kind: DType) -> str | None:
        """What is wrong with arrays that a stranger may have made, for rows of `width` features; None for nothing.
        Their dimensions agree already."""
        nodes, trees = len(self.features), len(self.roots)
        leaves, span = self.values.shape
        if max(nodes, leaves) > MAX_LINKS or width > MAX_LINKS or trees > MAX_TREES:
            return (
                f"{nodes:,} nodes, {leaves:,} different leaves, {width:,} features, {trees:,} trees: "
                f"at most {MAX_LINKS:,} of each"
            )
        if self.features.min() < 0 or self.features.max() >= width:
            return f"a node asks for a feature outside of 0 … {width - 1}"
        if self.targets.min() < 0 or self.targets.max() > len(self.base) - span:
            return f"a tree adds to an output outside of 0 … {len(self.base) - 1}"
        if self.values.dtype.kind == "i" and np.abs(self.base.astype(np.int64)).max() > MAX_BASE:
            return f"a sum begins beyond {MAX_BASE:,}, and might not stay within int32"
        if kind is DType.FLOAT32 and np.isnan(self.thresholds).any():
            return "a threshold is NaN"
        if self.missing is not None and (kind is not DType.FLOAT32 or self.missing.max() > 1):
            return "missing values are of float32, and 0 or 1 a node"
        links = np.concatenate([self.roots, self.children.reshape(-1)]).astype(np.int64)
        if links.max() >= nodes or (~links).max() >= leaves:
            return "a link leads to no node and to no leaf"
        if (self.children <= np.where(self.children < 0, -(2**31), np.arange(nodes)[:, None])).any():
            return "a child does not come after its node"
        if (complaint := self._shared(np.bincount(links[links >= 0], minlength=nodes))) is not None:
            return complaint
        if self.depth > MAX_DEPTH:
            return f"a tree is {self.depth} comparisons deep, at most {MAX_DEPTH}"
        return None

    def _shared(self, parents: Numeric) -> str | None:
        """What is wrong with nodes by how many links lead to each."""
        if (parents == 1).all():
            return None
        if (parents == 0).any():
            return "no link leads to a node"
        owners = [-1] * len(parents)
        for tree, root in enumerate(self.roots.tolist()):
            if root >= 0:
                if owners[root] >= 0:
                    return "two trees share a node"
                owners[root] = tree
        for node, both in enumerate(self.children.tolist()):
            for child in both:
                if child >= 0 and owners[child] not in (-1, owners[node]):
                    return "two trees share a node"
                if child >= 0:
                    owners[child] = owners[node]
        return None

    def _deepest(self) -> Numeric:
        """Comparisons from each node on at most; nodes are checked to come after their parents."""
        found = [0] * len(self.features)
        children = self.children.tolist()
        for node in range(len(found) - 1, -1, -1):
            found[node] = 1 + max(found[c] if c >= 0 else 0 for c in children[node])
        return np.array(found, np.int64)

    @property
    def depth(self) -> int:
        """Comparisons on the longest way to a leaf."""
        return int(self._deepest()[self.roots[self.roots >= 0]].max(initial=0))

    @property
    def worst_path(self) -> int:
        """Comparisons of one row at most: the depths of all trees together."""
        return int(self._deepest()[self.roots[self.roots >= 0]].sum())

    @property
    def mean_path(self) -> float:
        """Comparisons of one row where either answer is as likely as the other."""
        likely = [0.0] * len(self.features)
        for root in self.roots.tolist():
            if root >= 0:
                likely[root] = 1.0
        for node, both in enumerate(self.children.tolist()):
            for child in both:
                if child >= 0:
                    likely[child] += likely[node] / 2
        return math.fsum(likely)

    def evaluate(self, x: Numeric) -> Numeric:
        """Sums of the rows of x, (rows, features): the trees' values added one tree after another, in float32, or exact
        in int32 where the leaves are int16."""
        rows = np.arange(len(x))[:, None]
        at = np.broadcast_to(self.roots, (len(x), len(self.roots))).copy()
        while (active := at >= 0).any():
            node = np.where(active, at, 0)
            values = x[rows, self.features[node]]
            left = values <= self.thresholds[node]
            if self.missing is not None:
                left |= np.isnan(values) & (self.missing[node] != 0)
            at = np.where(active, np.where(left, self.children[node, 0], self.children[node, 1]), at)
        sums = np.broadcast_to(self.base, (len(x), len(self.base))).copy()
        width = self.values.shape[1]
        for tree, target in enumerate(self.targets):
            sums[:, target : target + width] += self.values[~at[:, tree]]
        return sums

    def fixed_point(self) -> FixedPoint:
        """The same forest with int16 leaves that stand for 2^-fraction times themselves, as many fractional bits as the
        greatest leaf and the greatest base leave; rounded to nearest, ties to even."""
        most = max(float(np.abs(self.values).max()), 2.0**-100)
        fraction = math.floor(math.log2((INT16_MOST + 0.5) / most))
        while np.rint(np.ldexp(np.float64(most), fraction)) > INT16_MOST:
            fraction -= 1
        largest = float(np.abs(self.base).max())
        while largest and np.rint(np.ldexp(largest, fraction)) > MAX_BASE:
            fraction -= 1
        fraction = min(max(fraction, -100), 100)
        exact, start = np.ldexp(self.values.astype(np.float64), fraction), np.ldexp(self.base, fraction)
        values, base = np.rint(exact), np.rint(start)
        off = np.ldexp(np.abs(values - exact).max(1), -fraction)
        error = self.worst_sum(off) + float(np.ldexp(np.abs(base - start).max(), -fraction))
        forest = replace(self, values=values.astype(np.int16), base=base.astype(np.int32))
        return FixedPoint(forest, fraction, error)

    def worst_sum(self, of_leaves: Numeric) -> float:
        """Over all trees, the greatest figure of a leaf of each, added up. of_leaves: (leaves,)."""
        worst = np.zeros(len(self.features))
        for node in range(len(self.features) - 1, -1, -1):
            worst[node] = max(float(worst[c] if c >= 0 else of_leaves[~c]) for c in self.children[node])
        return float(sum(worst[r] if r >= 0 else of_leaves[~r] for r in self.roots))


@dataclass(frozen=True)
class FixedPoint:
    """A forest of int16 leaves. fraction: the bits behind the point. error: of a sum at most, by the leaves' rounding;
    what float32 would have lost in adding is not in it."""

    forest: Forest
    fraction: int
    error: float


@dataclass
class _Nodes:
    """The nodes of a forest as it grows."""

    features: list[int] = field(default_factory=list)
    thresholds: list[np.float32] = field(default_factory=list)
    children: list[list[int]] = field(default_factory=list)
    missing: list[bool] = field(default_factory=list)

    def ask(self, tree: Tree, node: int) -> tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int]], int]:
        """Append what a node asks: the links that lead to its first child, those to its second, and how many
        comparisons are on the way at most."""
        feature = int(tree.features[node])
        to_left = None if tree.missing_left is None else bool(tree.missing_left[node])
        choice = tree.choices.get(node)
        if choice is None:
            link = self._append(feature, tree.thresholds[node], bool(to_left))
            return [(link, 0)], [(link, 1)], 1
        found: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
        # Interval i ends at edges[i], the last one nowhere; the odd ones are inside. NaN goes to the last one of its
        # child.
        count = len(choice.edges)
        self._take(count)
        aside = to_left is not None and (choice.inside == 0) == to_left
        nan, deepest = count - 1 if aside else count, 0
        waiting: list[tuple[int, int, tuple[int, int] | None, int]] = [(0, count, None, 0)]
        while waiting:
            low, high, place, depth = waiting.pop()
            deepest = max(deepest, depth)
            if low == high:
                assert place is not None
                found[choice.inside if low % 2 else 1 - choice.inside].append(place)
                continue
            middle = (low + high) // 2
            link = self._append(feature, choice.edges[middle], low <= nan <= middle)
            if place is not None:
                self.children[place[0]][place[1]] = link
            waiting += [(middle + 1, high, (link, 1), depth + 1), (low, middle, (link, 0), depth + 1)]
        return *found, deepest

    def _take(self, count: int) -> None:
        """Refuse so many more before they are made."""
        if len(self.features) + count > MAX_MADE:
            raise RefusedError(
                "has too many comparisons for firmware", "train it smaller, with fewer categories"
            )

    def _append(self, feature: int, threshold: np.float32, missing: bool) -> int:
        self._take(1)
        self.features.append(feature)
        self.thresholds.append(threshold)
        self.children.append([0, 0])
        self.missing.append(missing)
        return len(self.features) - 1


def forest_of(trees: Sequence[Tree], base: npt.ArrayLike) -> Forest:
    """One forest of trees, in their order. Nodes are numbered as they are met from each root, the first child first.

    Raises RefusedError for trees that are none: children that are no nodes, cycles, more than MAX_DEPTH comparisons.
    """
    made = _Nodes()
    roots: list[int] = []
    leaves: dict[bytes, int] = {}

    for tree in trees:
        rows = np.ascontiguousarray(tree.values + np.float32(0.0), np.float32)
        seen = 0
        # (node, the links to it: of which nodes, and which child; depth)
        waiting: list[tuple[int, Sequence[tuple[int, int]], int]] = [(0, (), 0)]
        while waiting:
            node, links, depth = waiting.pop()
            seen += 1
            if not 0 <= node < len(tree.left) or seen > len(tree.left):
                raise RefusedError("is no tree: a link leads nowhere, or back", "save the model again")
            if tree.left[node] < 0:
                link = ~leaves.setdefault(rows[node].tobytes(), len(leaves))
            else:
                link = len(made.features)
                first, second, more = made.ask(tree, node)
                if depth + more > MAX_DEPTH:
                    raise RefusedError(f"is deeper than {MAX_DEPTH} comparisons", "train it with a max_depth")
                waiting.append((int(tree.right[node]), second, depth + more))
                waiting.append((int(tree.left[node]), first, depth + more))
            if not links:
                roots.append(link)
            for parent, side in links:
                made.children[parent][side] = link
    width = trees[0].values.shape[1]
    values = np.frombuffer(b"".join(leaves), np.float32).reshape(-1, width)
    forest = Forest(
        np.array(made.features, np.int32),
        np.array(made.thresholds, np.float32),
        np.array(made.children, np.int32).reshape(-1, 2),
        np.array(roots, np.int32),
        values,
        np.array([tree.target for tree in trees], np.int32),
        np.asarray(base, np.float32),
        np.array(made.missing, np.uint8) if any(made.missing) else None,
    )
    return _with_a_node(forest)


def _with_a_node(forest: Forest) -> Forest:
    """No constant is empty: of leaves alone, the first becomes a node with that leaf on both sides."""
    if len(forest.features):
        return forest
    leaf, rest = forest.roots[0], forest.roots[1:]
    return replace(
        forest,
        features=np.zeros(1, np.int32),
        thresholds=np.zeros(1, forest.thresholds.dtype),
        children=np.array([[leaf, leaf]], np.int32),
        roots=np.concatenate([np.zeros(1, np.int32), rest]),
        missing=None,
    )


def as_integers(forest: Forest, kind: DType, quant: QuantParams) -> Forest:
    """The same forest of features that are integers: the same answers for all of them. Nodes whose answer is the same
    for all integers are left out, with what is behind the other."""
    low, high = kind.range
    every = np.arange(low, high + 1)
    reals = dequantize(every.astype(kind.numpy), quant)
    count = np.searchsorted(reals, forest.thresholds, side="right")  # integers for which the answer is yes
    links: Any = {}
    kept = (count > 0) & (count < len(every))
    number = np.cumsum(kept) - 1
    for node in range(len(kept) - 1, -1, -1):
        if kept[node]:
            links[node] = int(number[node])
        else:
            child = int(forest.children[node, 0 if count[node] else 1])
            links[node] = links[child] if child >= 0 else child
    # What hangs on the sides that are left out is not reached any more.
    reached = np.zeros(len(kept), bool)
    met = np.zeros(len(kept), bool)
    stack = [int(r) for r in forest.roots if r >= 0]
    while stack:
        node = stack.pop()
        if met[node]:
            continue
        met[node], reached[node] = True, kept[node]
        sides = (0, 1) if kept[node] else (0 if count[node] else 1,)
        stack += [int(c) for c in forest.children[node, sides] if c >= 0]
    renumber = np.cumsum(reached) - 1
    back = {int(number[node]): int(renumber[node]) for node in np.flatnonzero(reached)}

    def followed(link: int) -> int:
        final = links[link] if link >= 0 else link
        return back[final] if final >= 0 else final

    at = np.flatnonzero(reached)
    children = [[followed(int(c)) for c in forest.children[node]] for node in at]
    return _with_a_node(
        replace(
            forest,
            features=forest.features[at],
            thresholds=every[count[at] - 1].astype(kind.numpy) if len(at) else np.zeros(0, kind.numpy),
            children=np.array(children, np.int32).reshape(-1, 2),
            roots=np.array([followed(int(r)) for r in forest.roots], np.int32),
            missing=None,
        )
    )
