# SPDX-License-Identifier: Apache-2.0
"""Decision trees as C: a node is an `if`, its children are the two branches.

A comparison is then a load, a comparison with a number in the instruction or behind the code, and a branch: two to five
times as fast as a walk through tables, for about twice their bytes. Features in float32 are turned once a row into
integers of the same order (`tinyet_tree_key`), so that no node compares floats. What several nodes lead to is
printed behind one of them, with a label that the others jump to: all ways through a tree end behind its first `if`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinyet.ir import DType
from tinyet.ops.shared.forest import Forest, Numeric

MAX_NESTED = 120
"""Branches within each other: C promises 127 blocks, of which functions, loops and calls of other layers take some."""

MAX_BRANCHES = 4096
"""Nodes of one function: enough for 60 KB of code, and compiled in seconds."""

_INDENTED = 20
"""Levels that are indented; beyond them lines would be wider than a screen."""


class Branches:
    """The body of the function of a forest. thresholds: of each node, as the C compares them. most: the greatest value
    of their type, which every feature is at most. features: of which type they are."""

    def __init__(self, forest: Forest, thresholds: Numeric, kind: DType, most: int, rows: int) -> None:
        self.forest = forest
        self.thresholds = [int(t) for t in thresholds]
        self.real = kind is DType.FLOAT32
        self.most = most
        self.rows = rows
        self.integers = forest.values.dtype.kind == "i"
        self.literal = self.integers and forest.values.shape[1] == 1
        """Whether leaves are numbers in the code, not places in a table."""

    @property
    def leaf_type(self) -> str:
        if self.literal:
            return "int16_t"
        return "uint16_t" if self.forest.values.size <= 1 << 16 else "uint32_t"

    def body(self, features: int) -> tuple[str, ...]:
        """Lines on the parameters: input, output, scratch where features are floats, base, values."""
        lines = [f"{self.leaf_type} leaf;"]
        if self.real:
            lines.append(f"tinyet_tree_keys(input, keys, {features}u);")
        outputs = len(self.forest.base)
        lines += [f"for (uint32_t i = 0; i < {outputs}u; i++) {{", "  output[i] = base[i];", "}"]
        for root, target in zip(self.forest.roots.tolist(), self.forest.targets.tolist(), strict=True):
            lines += [*self.tree(root), self.added(target)]
        keys = ["uint32_t *const keys = (uint32_t *)scratch;"] if self.real else []
        if self.rows > 1:
            step = [f"input += {features};", f"output += {outputs};"]
            head = f"for (uint32_t row = 0; row < {self.rows}u; row++) {{"
            lines = [head, *(f"  {line}" for line in (*lines, *step)), "}"]
        return tuple(f"  {line}" for line in (*keys, *lines))

    def added(self, target: int) -> str:
        if self.literal:
            return f"output[{target}] += leaf;"
        suffix = "s32" if self.integers else "f32"
        width = self.forest.values.shape[1]
        return f"tinyet_tree_add_{suffix}(output + {target}, values + leaf, {width}u);"

    def tree(self, root: int) -> list[str]:
        """The branches of a tree, without recursion: it may be deep."""
        lines: list[str] = []
        printed: dict[int, int] = {}  # in which line a node is
        labels: set[int] = set()
        waiting: list[tuple[str, int, int]] = [("", root, 0)]  # text, or a link, and its depth
        while waiting:
            text, link, depth = waiting.pop()
            pad = "  " * min(depth, _INDENTED)
            if text:
                lines.append(pad + text)
            elif link < 0:
                lines.append(f"{pad}leaf = {self.leaf(~link)};")
            else:
                first, second = self.forest.children[link].tolist()
                if self.thresholds[link] >= self.most:
                    waiting.append(("", first, depth))  # compilers warn of what is always so
                    continue
                if link in printed:
                    if link not in labels:
                        labels.add(link)
                        at = lines[printed[link]]
                        lines[printed[link]] = f"{at[: -len(at.lstrip())]}node_{link}: {at.lstrip()}"
                    lines.append(f"{pad}goto node_{link};")
                    continue
                printed[link] = len(lines)
                waiting += [("}", 0, depth), ("", second, depth + 1), ("} else {", 0, depth)]
                waiting.append(("", first, depth + 1))
                lines.append(f"{pad}if ({self.condition(link)}) {{")
        return lines

    def leaf(self, number: int) -> str:
        values = self.forest.values
        return str(int(values[number, 0])) if self.literal else f"{number * values.shape[1]}u"

    def condition(self, node: int) -> str:
        feature, threshold = int(self.forest.features[node]), self.thresholds[node]
        if not self.real:
            return f"input[{feature}] <= {threshold}"
        missing = self.forest.missing is not None and self.forest.missing[node]
        return f"keys[{feature}]{' + TINYET_TREE_NANS' if missing else ''} <= {threshold:#010x}u"


def refusal(forest: Forest) -> str | None:
    """Why a forest is not made code; None where it can be."""
    if forest.depth > MAX_NESTED:
        return f"a tree is {forest.depth} comparisons deep, C has at most {MAX_NESTED} branches in each other"
    if len(forest.features) > MAX_BRANCHES:
        return f"{len(forest.features):,} nodes, at most {MAX_BRANCHES:,} in one function"
    return None


def parameters(kind: DType, integers: bool, *, table: bool) -> Sequence[str]:
    """Of the function, in the order of its call's arguments."""
    element = {DType.FLOAT32: "float", DType.INT16: "int16_t", DType.INT8: "int8_t"}[kind]
    leaf, total = ("int16_t", "int32_t") if integers else ("float", "float")
    return (
        f"const {element} *input",
        f"{total} *output",
        *(["void *scratch"] if kind is DType.FLOAT32 else []),
        f"const TINYET_ROM {total} *base",
        *([f"const TINYET_ROM {leaf} *values"] if table else []),
    )
