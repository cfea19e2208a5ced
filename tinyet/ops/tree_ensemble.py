# SPDX-License-Identifier: Apache-2.0
"""Sums over decision trees: forests, boosted trees, isolation forests.

A node asks whether a feature is at most its threshold: of floats as IEEE 754 has it, so that -0 is 0, and NaN is at
most nothing, except at nodes where missing values go to the first child. The answers never round. The sums are float32:
base, then the values of the first tree's leaf, the second's, and so on; or, of int16 leaves, int32, which are exact.

The trees are tables that one function of the library walks through, or code (`shared/tree_branches.py`): the planner
takes what is worth its bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import ITSELF, Array, Attrs, DType, Node, Shape
from tinyet.ops.shared.counting import Parts
from tinyet.ops.shared.forest import Forest, Numeric
from tinyet.ops.shared.tree_branches import Branches, refusal
from tinyet.ops.shared.tree_branches import parameters as branch_parameters
from tinyet.opset import (
    Arg,
    Call,
    Constant,
    ConstantArg,
    CostModel,
    Definition,
    FieldValue,
    InputArg,
    Iteration,
    Kernel,
    Nest,
    Op,
    OutputArg,
    Pointer,
    ScratchArg,
    Struct,
    library_call,
    operand,
    parameters,
    signature,
)

HEADERS = ("tinyet_tree_ensemble.h",)
BRANCHES = "tinyet_tree_branches"
_LEAF = 0x8000
_DTYPES = (DType.FLOAT32, DType.INT16, DType.INT8)
_MISSING = 8
_VALUES = 5
_KINDS = (DType.INT32, None, DType.INT32, DType.INT32, DType.FLOAT32, DType.INT32, DType.FLOAT32, DType.UINT8)
_FIXED = (DType.INT32, None, DType.INT32, DType.INT32, DType.INT16, DType.INT32, DType.INT32, DType.UINT8)
"""Types of the inputs from 1 on, for sums in float32 and in integers; thresholds have that of the features."""


@dataclass(frozen=True)
class TreeEnsemble(Attrs):
    """inputs: x (rows, features), float32, int16 or int8; and constants, which are a `Forest`: features (nodes,) int32;
    thresholds (nodes,), as x; children (nodes, 2) int32: a node or ~leaf; roots (trees,) int32, likewise; values
    (leaves, width) float32 or int16; targets (trees,) int32; base (outputs,) float32, or int32 for int16 leaves; and,
    of float32 features, missing (nodes,) uint8, or absent. Output: (rows, outputs), as base. Tree t adds column i of
    its leaf to output targets[t] + i.

    sampled_path: comparisons of a row of the training's, on average, for reports; None where that is not known.
    """

    name: ClassVar[str] = "tree_ensemble"
    sampled_path: float | None = None


def forest_in(node: Node) -> Forest:
    """The constants of a node."""
    arrays: list[Any] = [node.input(i).array for i in range(1, _MISSING)]
    missing = node.optional_input(_MISSING)
    arrays.append(None if missing is None else missing.array)
    return Forest(*arrays)


def infer(node: Node) -> tuple[Shape, ...]:
    x, features, thresholds, children, roots, values, targets, base = (
        node.input(i).shape for i in range(_MISSING)
    )
    missing = node.optional_input(_MISSING)
    ranks = [len(s) for s in (x, features, thresholds, children, roots, values, targets, base)]
    if ranks != [2, 1, 1, 2, 1, 2, 1, 1]:
        raise UnsupportedShape(f"tree_ensemble: operands of {ranks} dimensions", node.where)
    nodes = [features, thresholds, *([] if missing is None else [missing.shape])]
    if any(shape != features for shape in nodes) or children != (*features, 2) or targets != roots:
        raise UnsupportedShape("tree_ensemble: arrays of nodes or trees of different lengths", node.where)
    return ((x[0], base[0]),)


def check(node: Node) -> str | None:
    x = node.input(0)
    kinds = _FIXED if node.input(_VALUES).dtype is DType.INT16 else _KINDS
    if x.dtype not in _DTYPES or node.output.dtype is not kinds[_VALUES + 1]:
        return f"no form from {x.dtype.value} to {node.output.dtype.value}"
    if node.output.type.quant is not None:
        return "sums are numbers, which stand for nothing else"
    for position, kind in enumerate(kinds, 1):
        tensor = node.optional_input(position)
        if tensor is None:
            continue
        if not tensor.is_constant or tensor.dtype is not (kind or x.dtype):
            return f"input {position} must be a constant of {(kind or x.dtype).value}"
        if tensor.type.quant not in (None, ITSELF):
            return f"input {position} is quantized"
    forest = forest_in(node)
    if (complaint := forest.complaint(x.shape[1], x.dtype)) is not None:
        return complaint
    assert isinstance(node.attrs, TreeEnsemble)
    sampled = node.attrs.sampled_path
    if sampled is not None and not 0 <= sampled <= forest.worst_path:
        return f"{sampled:g} comparisons on average, where {forest.worst_path:,} are the most"
    return None


def iterate(node: Node) -> Iteration:
    nest = Nest()
    row = nest.parallel(node.input(0).shape[0])
    read = operand(row, nest.reduced(node.input(0).shape[1]))
    output = operand(row, nest.parallel(node.output.shape[1]))
    return nest.iteration([read, *parameters(node, nest)], [output])


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x = inputs[0]
    assert x is not None
    with np.errstate(over="ignore", invalid="ignore"):
        return (forest_in(node).evaluate(x),)


def keys(values: Numeric) -> Numeric:
    """float32 as uint32 in the same order, so that comparing them is comparing the floats: from -inf, 0, up to inf, and
    above it every NaN. Of a negative number all bits are turned over, of another the sign; then what was -inf is taken
    off, and the negative NaNs, which lay below it, come out at the top."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    turned = np.where(bits >> 31 != 0, ~bits, bits | np.uint32(0x80000000))
    return np.asarray(turned - np.uint32(0x007FFFFF), np.uint32)


NANS = 0x00FFFFFE
"""How many NaNs there are: added to a key, they become the smallest, and -inf comes behind them."""


def compared_with(node: Node, forest: Forest) -> Numeric:
    """The thresholds as C compares them: of float32 as keys."""
    if node.input(0).dtype is not DType.FLOAT32:
        return forest.thresholds
    # -0 and 0 are one threshold, of which only 0 is at least as great as both.
    made = keys(forest.thresholds + np.float32(0.0))
    return made if forest.missing is None else made + forest.missing.astype(np.uint32) * np.uint32(NANS)


def lower(node: Node, _target: Target) -> Call:
    forest = forest_in(node)
    features = forest.features.astype(np.uint16)
    if forest.missing is not None:
        features = features | (forest.missing.astype(np.uint16) << np.uint16(15))
    children = np.where(forest.children < 0, ~forest.children | _LEAF, forest.children)
    roots = np.where(forest.roots < 0, ~forest.roots | _LEAF, forest.roots)
    fields: dict[str, FieldValue] = {
        "thresholds": Pointer("thresholds"),
        "links": Pointer("nodes"),
        "trees": Pointer("trees"),
        "values": Pointer("leaves"),
        "base": Pointer("base"),
        "rows": node.output.shape[0],
        "features": node.input(0).shape[1],
        "num_trees": len(forest.roots),
        "outputs": node.output.shape[1],
        "width": forest.values.shape[1],
    }
    trees = np.stack([roots, forest.targets], axis=1)
    constants = [
        Constant("thresholds", np.ascontiguousarray(compared_with(node, forest))),
        Constant(
            "nodes",
            np.column_stack([features, children.astype(np.uint16)]).reshape(-1),
            "feature, child where it is at most the threshold, child where not; 0x8000: a leaf",
        ),
        Constant("trees", trees.astype(np.uint16).reshape(-1), "root, first output"),
        Constant("leaves", np.ascontiguousarray(forest.values).reshape(-1)),
        Constant("base", np.ascontiguousarray(forest.base)),
    ]
    struct = f"tinyet_tree_ensemble_{signature(node)}_params"
    return library_call(symbol_of(node), node, [0], Struct(struct, fields), constants)


def lower_branches(node: Node, _target: Target) -> Call:
    forest, x = forest_in(node), node.input(0)
    real = x.dtype is DType.FLOAT32
    most = 2**32 - 1 if real else x.dtype.range[1]
    made = Branches(forest, compared_with(node, forest), x.dtype, most, x.shape[0])
    function = Definition(
        f"{BRANCHES}_{signature(node)}",
        "TINYET_FUNCTION void",
        tuple(branch_parameters(x.dtype, made.integers, table=not made.literal)),
        made.body(x.shape[1]),
        f"{len(forest.roots)} tree(s), {len(forest.features)} nodes",
    )
    constants = [Constant("base", np.ascontiguousarray(forest.base))]
    if not made.literal:
        constants.append(Constant("values", np.ascontiguousarray(forest.values).reshape(-1)))
    args: list[Arg] = [InputArg(0), OutputArg(0), *([ScratchArg()] if real else [])]
    args += [ConstantArg(constant.name) for constant in constants]
    return Call(function, tuple(args), None, tuple(constants), 4 * x.shape[1] if real else 0)


def refuse_branches(node: Node, _target: Target) -> str | None:
    return refusal(forest_in(node))


def symbol_of(node: Node) -> str:
    missing = "_missing" if node.optional_input(_MISSING) is not None else ""
    return f"tinyet_tree_ensemble_{signature(node)}{missing}"


def refuse_missing(node: Node, _target: Target) -> str | None:
    return (
        None if node.optional_input(_MISSING) is None else "some nodes send missing values to the first child"
    )


def refuse_others(node: Node, _target: Target) -> str | None:
    return (
        None
        if node.optional_input(_MISSING) is not None
        else "no node sends missing values to the first child"
    )


_SUMS_HELD, _FEATURES_HELD = 3, 8


def walked(node: Node) -> Parts:
    """Comparisons of a row, where either answer is as likely as the other."""
    forest, rows = forest_in(node), node.output.shape[0]
    trees = rows * len(forest.roots)
    return {
        "call": 1,
        "row": rows,
        "output": node.output.type.count,
        "tree": trees,
        "comparison": round(rows * forest.mean_path),
        "value": trees * forest.values.shape[1],
    }


def branched(node: Node) -> Parts:
    """The same of code, whose leaves may be numbers in it."""
    parts = walked(node)
    rows = parts["row"]
    if node.input(0).dtype is DType.FLOAT32:
        parts["feature"] = rows * node.input(0).shape[1]
    if literal(node):
        parts["leaf"] = parts.pop("tree")
        del parts["value"]
        # Of a core with few registers: more than they hold of sums, features, and the places of several rows.
        (_, features), (_, outputs) = node.input(0).shape, node.output.shape
        parts["leaf of many sums"] = parts["leaf"] * (outputs > _SUMS_HELD)
        parts["comparison of many features"] = parts["comparison"] * (features > _FEATURES_HELD)
        parts["comparison of many rows"] = parts["comparison"] * (rows > 1)
    return parts


def literal(node: Node) -> bool:
    """Whether leaves are numbers in the code."""
    values = node.input(_VALUES)
    return values.dtype is DType.INT16 and values.shape[1] == 1


def branch_code(node: Node) -> Parts:
    """Bytes: a node has a comparison and, behind one of its sides, a branch; the last ones choose between leaves."""
    forest = forest_in(node)
    last = int((forest.children < 0).all(1).sum())
    own = "leaf" if literal(node) else "tree"
    return {"call": 1, "node": len(forest.features), "last node": last, own: len(forest.roots)}


def kernel(dtypes: str, refuse: str = "") -> Kernel:
    symbol = f"tinyet_tree_ensemble_{dtypes}{refuse}"
    return Kernel(
        symbol,
        dtypes,
        lower,
        HEADERS,
        (f"{symbol}.c",),
        refuse_others if refuse else refuse_missing,
        cost_model=CostModel(walked),
    )


def branches(dtypes: str) -> Kernel:
    cost_model = CostModel(branched, branch_code)
    source = "tinyet_tree_add_s32.c" if dtypes.endswith("s32") else "tinyet_tree_add_f32.c"
    return Kernel(
        f"{BRANCHES}_{dtypes}",
        dtypes,
        lower_branches,
        HEADERS,
        (source,),
        refuse_branches,
        cost_model=cost_model,
    )


SIGNATURES = ("f32", "s16_f32", "s8_f32", "f32_s32", "s16_s32", "s8_s32")

OP = Op(
    attrs=TreeEnsemble,
    summary="sums over decision trees",
    infer=infer,
    inputs=(8, 9),
    reference=reference,
    iteration=iterate,
    check=check,
    kernels=(
        *(kernel(dtypes) for dtypes in SIGNATURES),
        *(kernel(dtypes, "_missing") for dtypes in ("f32", "f32_s32")),
        *(branches(dtypes) for dtypes in SIGNATURES),
    ),
)
