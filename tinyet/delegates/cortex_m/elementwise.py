# SPDX-License-Identifier: Apache-2.0
"""int8 arithmetic element by element, four values at a time (tinyet_elementwise_dsp.h): a + b, a - b, a * b, the
larger and the lesser, values within bounds, batch norms and requantization. Operands are of one shape, or one has a
value for each row or column of the other.

Sums, batch norms and requantization are one affine form with 16 fraction bits, proved exact for every value or pair of
values; products have the two roundings of the specification.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Node
from tinyet.numerics import Int64, clamp_range
from tinyet.ops import batch_norm, clamp, mul, requantize
from tinyet.ops.shared import addition, affine, broadcast, factors
from tinyet.ops.shared.addition import Scaling
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.counting import Parts
from tinyet.ops.shared.shapes import around_axis
from tinyet.opset import (
    Call,
    Constant,
    CostModel,
    FieldValue,
    Kernel,
    Lower,
    Pointer,
    Reference,
    Refuse,
    Struct,
    library_call,
)

HEADERS = ("tinyet_elementwise_dsp.h",)
INT8 = (-128, 127)
INT32_LIMIT = 2**31 - 1
INT16_LIMIT = 2**15 - 1
KINDS = ("same", "per_row", "per_column")


# ---------------------------------------------------------------- what is walked


@dataclass(frozen=True)
class Walk:
    """kind: one of KINDS. swapped: whether the second operand of the C function is the node's first."""

    kind: str
    swapped: bool
    rows: int
    row: int

    @property
    def order(self) -> list[int]:
        return [1, 0] if self.swapped else [0, 1]


def walk_of(node: Node) -> Walk | None:
    """None where the operands repeat in another way."""
    loops = broadcast.node_loops(node)
    rows, row = (1, *loops.size)[-2:]
    strides = (loops.a_stride, loops.b_stride)
    if len(loops.size) == 1 and strides == ((1,), (1,)):
        return Walk("same", False, 1, row)
    for swapped, (whole, other) in ((False, strides), (True, strides[::-1])):
        kind = {(0,): "per_row", (1, 0): "per_row", (0, 1): "per_column"}.get(other)
        if len(loops.size) <= 2 and whole == (row, 1)[-len(loops.size) :] and kind is not None:
            return Walk(kind, swapped, rows, row)
    return None


def refuse_walk(node: Node, kind: str) -> str | None:
    walk = walk_of(node)
    if walk is not None and walk.kind == kind:
        return None
    wanted = {
        "same": "operands of one shape",
        "per_row": "one value of an operand for each row of the other",
        "per_column": "one value of an operand for each column of the other",
    }
    return f"only {wanted[kind]}"


def rows_struct(rows: int, row: int, bounds: tuple[int, int]) -> Struct:
    return Struct(
        "tinyet_elementwise_shape_dsp",
        {"rows": rows, "row": row, "clamp_low": bounds[0], "clamp_high": bounds[1]},
    )


def bounds_of(node: Node) -> tuple[int, int]:
    return clamp_range(clamp_of(node), node.output.type)


# ---------------------------------------------------------------- what costs grow with


def one_row(node: Node) -> Parts:
    fours, last = divmod(node.output.type.count, 4)
    return {"call": 1, "four values": fours, "last value": last}


def clipped(node: Node) -> Parts:
    """The pass behind an operator that has bounds of its own."""
    if bounds_of(node) == INT8:
        return {}
    fours, last = divmod(node.output.type.count, 4)
    return {"clip": 1, "four values within bounds": fours, "last value within bounds": last}


def same_work(node: Node) -> Parts:
    return one_row(node) | clipped(node)


def rows_parts(rows: int, row: int) -> Parts:
    fours, last = divmod(row, 4)
    return {
        "call": 1,
        "row": rows,
        "row with fours": rows * int(fours > 0),
        "four values": rows * fours,
        "row with a rest": rows * int(last > 0),
        "last value": rows * last,
    }


def rows_work(node: Node) -> Parts:
    walk = walk_of(node)
    assert walk is not None
    return rows_parts(walk.rows, walk.row) | clipped(node)


def columns_parts(rows: int, row: int) -> Parts:
    fours, last = divmod(row, 4)
    return {
        "call": 1,
        "any four columns": int(fours > 0),
        "four columns": fours,
        "four values": rows * fours,
        "any last column": int(last > 0),
        "last column": last,
        "last value": rows * last,
    }


def columns_work(node: Node) -> Parts:
    walk = walk_of(node)
    assert walk is not None
    return columns_parts(walk.rows, walk.row) | clipped(node)


WORK: Mapping[str, Callable[[Node], Parts]] = {
    "same": same_work,
    "per_row": rows_work,
    "per_column": columns_work,
}


def library_kernel(
    symbol: str, source: str, lower: Lower, refuse: Refuse, work: Callable[[Node], Parts]
) -> Kernel:
    file = f"tinyet_{source}_s8_dsp.c"
    # Those with bounds of their own call tinyet_clip_s8_dsp.
    sources = tuple(dict.fromkeys((file, "tinyet_clip_s8_dsp.c")))
    return Kernel(symbol, "s8", lower, HEADERS, sources, refuse, "cortex_m", cost_model=CostModel(work))


# ---------------------------------------------------------------- sums


@dataclass(frozen=True)
class Form:
    """clamp((w + (u * a >> 8) + (v * b >> 8)) >> 16), without the 128 that the C form has in its offset."""

    u: int
    v: int
    w: int


def form_for(
    a: Int64, b: Int64, want: Int64, factors: tuple[float, float], bounds: tuple[int, int]
) -> Form | None:
    """The affine form with factors of 24 fraction bits near these real ones that is exact for all of a and b, and fits;
    None where none was found."""
    found = affine.find(a, b, want, factors, bounds)
    tries = affine.candidates(factors[0] * 2.0**24, factors[1] * 2.0**24)
    if found is not None:
        tries.insert(
            0, (round(found.a * 2.0 ** (24 - found.shift)), round(found.b * 2.0 ** (24 - found.shift)))
        )
    forms = (form_with(pair, a, b, want, bounds) for pair in tries)
    return next((form for form in forms if form is not None), None)


def form_with(
    factors: tuple[int, int], a: Int64, b: Int64, want: Int64, bounds: tuple[int, int]
) -> Form | None:
    """The form with these factors, where it is exact."""
    u, v = factors
    if max(abs(u), abs(v)) > INT32_LIMIT:
        return None
    sums = (u * a >> 8) + (v * b >> 8)
    low, high = bounds
    least = int(((want << 16) - sums)[want > low].max(initial=-INT32_LIMIT))
    most = int(((want << 16) + 0xFFFF - sums)[want < high].min(initial=INT32_LIMIT))
    w = (least + most) // 2
    reach = int(np.abs(u * a >> 8).max() + np.abs(v * b >> 8).max())
    # In C the sum has the 128, and its upper half is an int16.
    fits = reach + abs(w) + (128 << 16) <= INT32_LIMIT
    return Form(u, v, w) if least <= most and fits else None


@lru_cache(maxsize=1024)
def form_of(s: Scaling) -> Form | None:
    every = np.arange(-128, 128, dtype=np.int8)
    a, b = every[:, None], every[None, :]
    return form_for(a.astype(np.int64), b.astype(np.int64), s.apply(a, b), s.ratios, s.clamp)


def affine_struct(form: Form, rows: Struct, *, swapped: bool = False) -> Struct:
    u, v = (form.v, form.u) if swapped else (form.u, form.v)
    fields: dict[str, FieldValue] = {
        "walk": rows,
        "a_factor": u,
        "b_factor": v,
        "offset": form.w + (128 << 16),
    }
    return Struct("tinyet_affine_s8_dsp_params", fields)


def sums(sign: int) -> tuple[Kernel, ...]:
    """For the operator in which b has this sign."""

    def of_kind(kind: str) -> Kernel:
        symbol = f"tinyet_affine_s8_{kind}_dsp"

        def refuse(node: Node, target: Target) -> str | None:
            found = form_of(addition.own_scaling(node, sign))
            return refuse_walk(node, kind) or (
                "no affine form of 16 fraction bits is exact for these scales" if found is None else None
            )

        def lower(node: Node, target: Target) -> Call:
            s, walk = addition.own_scaling(node, sign), walk_of(node)
            form = form_of(s)
            assert form is not None
            assert walk is not None
            params = affine_struct(form, rows_struct(walk.rows, walk.row, s.clamp), swapped=walk.swapped)
            return library_call(symbol, node, walk.order, params)

        return library_kernel(symbol, "affine", lower, refuse, WORK[kind])

    return tuple(of_kind(kind) for kind in KINDS)


# ---------------------------------------------------------------- one operand

EVERY = np.arange(-128, 128, dtype=np.int64)


@lru_cache(maxsize=4096)
def form_of_table(table: bytes, factor: float, bounds: tuple[int, int] = INT8) -> Form | None:
    """Of the outputs for -128 … 127, int8 as bytes, which are about `factor` apart and lie within the bounds."""
    want, none = np.frombuffer(table, np.int8).astype(np.int64), np.zeros(1, np.int64)
    if np.all(want == want[0]):
        return Form(0, 0, int(want[0]) << 16)
    return form_for(EVERY, none, want, (factor, 0.0), bounds)


def of_one(reference: Reference, factor: Callable[[Node, int], float | None]) -> Kernel:
    """For an operator in which one int8 operand varies. factor: of the node and the operand's index, from steps of the
    operand to steps of the output, or None where there is no such factor."""
    symbol = "tinyet_affine_s8_unary_dsp"

    def index_of(node: Node) -> int | None:
        return broadcast.varying_input(node) if len(node.inputs) > 1 else 0

    def form(node: Node) -> Form | None:
        index = index_of(node)
        slope = None if index is None else factor(node, index)
        if index is None or slope is None:
            return None
        varying = node.input(index)
        inputs: list[Array | None] = [
            EVERY.astype(np.int8) if t is varying else node.input(i).array.reshape(-1)
            for i, t in enumerate(node.inputs)
        ]
        return form_of_table(reference(node, inputs)[0].astype(np.int8).tobytes(), slope)

    def refuse(node: Node, target: Target) -> str | None:
        if index_of(node) is None:
            return "only where one operand is a scalar constant"
        return None if form(node) is not None else "no affine form of 16 fraction bits is exact"

    def lower(node: Node, target: Target) -> Call:
        index, found = index_of(node), form(node)
        assert index is not None
        assert found is not None
        params = affine_struct(found, rows_struct(1, node.output.type.count, INT8))
        return library_call(symbol, node, [index], params)

    return library_kernel(symbol, "affine", lower, refuse, one_row)


def sum_factor(sign: int) -> Callable[[Node, int], float]:
    def factor(node: Node, index: int) -> float:
        a, b = (node.input(i).type.scale / node.output.type.scale for i in (0, 1))
        if node.input(0) is node.input(1):
            return a + sign * b
        return (a, sign * b)[index]

    return factor


def product_factor(node: Node, index: int) -> float | None:
    other = node.input(1 - index)
    if not other.is_constant:
        return None
    scale = mul.factor(node)
    value = int(other.array.reshape(-1)[0]) - other.type.zero_point
    return value * scale.multiplier * 2.0 ** (scale.shift - 31)


def ratio(node: Node, _index: int) -> float:
    return node.input(0).type.scale / node.output.type.scale


# ---------------------------------------------------------------- one operand, a form for each channel


def forms_of_channels(node: Node) -> list[Form] | None:
    """Of a batch norm; None where there is none for some channel."""
    c = batch_norm.channels(node)
    sums = (EVERY - node.input(0).type.zero_point) * c.weight[:, None] + c.bias[:, None]
    tables = factors.rescaled(node, sums, c.multiplier[:, None], c.shift[:, None]).astype(np.int8)
    slopes = c.weight * c.multiplier * 2.0 ** (c.shift - 31)
    bounds = bounds_of(node)
    forms = [
        form_of_table(table.tobytes(), float(slope), bounds)
        for table, slope in zip(tables, slopes, strict=True)
    ]
    found = [form for form in forms if form is not None]
    return found if len(found) == len(forms) else None


def by_channel(kind: str) -> Kernel:
    """kind: "channels_last", where channels are columns, or "channels_first", where they are rows."""
    symbol = f"tinyet_affine_s8_{kind}_dsp"

    def sizes(node: Node) -> tuple[int, int, int]:
        return around_axis(node.input(0).shape, batch_norm.attrs_of(node).axis)

    def refuse(node: Node, target: Target) -> str | None:
        if (sizes(node)[2] == 1) != (kind == "channels_last"):
            return f"only where each {kind} is a channel"
        return (
            None
            if forms_of_channels(node)
            else "no affine form of 16 fraction bits is exact for some channel"
        )

    def lower(node: Node, target: Target) -> Call:
        outer, channels, inner = sizes(node)
        forms = forms_of_channels(node)
        assert forms is not None
        pairs = np.array([(f.u, f.w + (128 << 16)) for f in forms], np.int32)
        constant = Constant("constants", pairs, "factor and offset of each channel")
        rows, row = (outer, channels) if kind == "channels_last" else (outer * channels, inner)
        params = Struct(
            "tinyet_affine_s8_channels_dsp_params",
            {
                "walk": rows_struct(rows, row, bounds_of(node)),
                "channels": channels,
                "constants": Pointer(constant.name),
            },
        )
        return library_call(symbol, node, [0], params, [constant])

    def work(node: Node) -> Parts:
        outer, channels, inner = sizes(node)
        if kind == "channels_last":
            return columns_parts(outer, channels) | clipped(node)
        return rows_parts(outer * channels, inner) | clipped(node)

    return library_kernel(symbol, "affine", lower, refuse, work)


# ---------------------------------------------------------------- products


def refuse_product(node: Node) -> str | None:
    scale, zero_points = mul.factor(node), [node.input(i).type.zero_point for i in (0, 1)]
    if scale.shift >= 0:
        return "a factor of one half or more"
    sizes = [max(abs(end - z) for end in INT8) for z in zero_points]
    largest = sizes[0] * sizes[1] * scale.multiplier * 2.0 ** (scale.shift - 31)
    return None if largest + 512 <= INT16_LIMIT else "results that leave int16"


def product(kind: str) -> Kernel:
    symbol = f"tinyet_mul_s8_{kind}_dsp"

    def refuse(node: Node, target: Target) -> str | None:
        return refuse_walk(node, kind) or refuse_product(node)

    def lower(node: Node, target: Target) -> Call:
        walk, scale = walk_of(node), mul.factor(node)
        assert walk is not None
        shift = min(-scale.shift, mul.MAX_RIGHT_SHIFT)
        a, b = (node.input(i).type.zero_point for i in walk.order)
        fields: dict[str, FieldValue] = {
            "walk": rows_struct(walk.rows, walk.row, bounds_of(node)),
            "a_zero_point": a,
            "b_zero_point": b,
            "multiplier": scale.multiplier,
            "shift": shift,
            "offset": (1 << (shift - 1)) + ((node.output.type.zero_point + 128) << shift),
        }
        return library_call(symbol, node, walk.order, Struct("tinyet_mul_s8_dsp_params", fields))

    return library_kernel(symbol, "mul", lower, refuse, WORK[kind])


# ---------------------------------------------------------------- bounds


def extremum(name: str) -> Kernel:
    symbol = f"tinyet_{name}_s8_same_dsp"

    def refuse(node: Node, target: Target) -> str | None:
        return refuse_walk(node, "same")

    def lower(node: Node, target: Target) -> Call:
        return library_call(symbol, node, [0, 1], rows_struct(1, node.output.type.count, INT8))

    return library_kernel(symbol, "extremum", lower, refuse, one_row)


def clip(bounds: Callable[[Node], tuple[int, int]], refuse: Refuse) -> Kernel:
    """One operand within bounds."""
    symbol = "tinyet_clip_s8_dsp"

    def lower(node: Node, target: Target) -> Call:
        index = broadcast.varying_input(node) if len(node.inputs) > 1 else 0
        assert index is not None
        return library_call(symbol, node, [index], rows_struct(1, node.output.type.count, bounds(node)))

    return library_kernel(symbol, "clip", lower, refuse, one_row)


def extremum_bounds(
    bounds: Callable[[int], tuple[int, int]], whole: tuple[int, int] = INT8
) -> Callable[[Node], tuple[int, int]]:
    """`bounds` of the raw value of a scalar constant; of a tensor and itself the whole range."""

    def found(node: Node) -> tuple[int, int]:
        constants = [node.input(i) for i in (0, 1) if node.input(i).is_constant]
        return bounds(int(constants[0].array.reshape(-1)[0])) if constants else whole

    return found


ADD_KERNELS = (of_one(addition.reference_of(1), sum_factor(1)), *sums(1))
SUB_KERNELS = (of_one(addition.reference_of(-1), sum_factor(-1)), *sums(-1))
MUL_KERNELS = (of_one(mul.reference, product_factor), *(product(kind) for kind in KINDS))
MAXIMUM_KERNELS = (
    clip(extremum_bounds(lambda c: (c, INT8[1])), broadcast.refuse_fold),
    extremum("maximum"),
)
MINIMUM_KERNELS = (
    clip(extremum_bounds(lambda c: (INT8[0], c)), broadcast.refuse_fold),
    extremum("minimum"),
)
CLAMP_KERNELS = (clip(clamp.integer_range, clamp.refuse_clip), of_one(clamp.reference, ratio))
REQUANTIZE_KERNELS = (of_one(requantize.reference, ratio),)
BATCH_NORM_KERNELS = (by_channel("channels_last"), by_channel("channels_first"))
