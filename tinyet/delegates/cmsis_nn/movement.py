# SPDX-License-Identifier: Apache-2.0
"""Kernels that only move values: padding, transposition, and concatenation where it has to copy."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tinyet.boards.cpus import Target
from tinyet.delegates.cmsis_nn.buffer_sizes import Code, code_of
from tinyet.delegates.cmsis_nn.wrapper import Local, checked, delegated_call, dims, kernel
from tinyet.ir import Node, Shape
from tinyet.ops import concat, pad, permute
from tinyet.opset import Call

MOST = 65535
"""Sizes are uint16 in most of these functions."""

# ---------------------------------------------------------------- pad


def pad_axes(node: Node) -> list[pad.Axis]:
    axes, item = pad.axes(node)
    return [*axes, pad.Axis(item)] if item > 1 else list(axes)


def refuse_pad(node: Node, _target: Target) -> str | None:
    a = pad.attrs_of(node)
    if a.mode != "constant":
        return "only padding with a constant"
    if min(min(pair) for pair in a.pads) < 0:
        return "no cropping"
    count = len(pad_axes(node))
    return f"{count} dimensions after merging, at most 4" if count > 4 else None


def lower_pad(node: Node, _target: Target) -> Call:
    axes = pad_axes(node)
    axes = [pad.Axis(1)] * (4 - len(axes)) + axes
    fill = int(pad.fill_value(node)[0])
    statements: list[Local | str] = [
        dims("input_dims", *(axis.size for axis in axes)),
        dims("before", *(axis.before for axis in axes)),
        dims("after", *(axis.after for axis in axes)),
        checked("arm_pad_s8", ["input", "output", f"/* value */ {fill}", "&input_dims", "&before", "&after"]),
    ]
    sizes = ["x".join(map(str, t.shape)) for t in (node.input(0), node.output)]
    return delegated_call("arm_pad_s8", f"{node.op} {sizes[0]} -> {sizes[1]}", statements)


# ---------------------------------------------------------------- transpose


def merged_order(shape: Shape, order: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(shape, order) of the same transposition without dimensions of size 1, neighbours that stay together as one."""
    groups: list[list[int]] = []
    # Dimensions of size 1 are nobody's neighbours and in nobody's way.
    real = [axis for axis in range(len(shape)) if shape[axis] != 1]
    rank = {axis: i for i, axis in enumerate(real)}
    for axis in (rank[axis] for axis in order if axis in rank):
        if groups and groups[-1][-1] == axis - 1:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    by_place = sorted(groups)
    sizes = tuple(math.prod(shape[real[axis]] for axis in group) for group in by_place)
    return sizes, tuple(by_place.index(group) for group in groups)


def refuse_transpose(node: Node, _target: Target) -> str | None:
    sizes, order = merged_order(node.input(0).shape, permute.attrs_of(node).order)
    if not 2 <= len(order) <= 4:
        return f"{len(order)} dimensions move on their own, only 2 to 4 do here"
    # The code for MVE reckons eight rows' offsets in 16 bits.
    return f"a dimension of {max(sizes)}, at most {MOST // 8}" if max(sizes) > MOST // 8 else None


def transposition(
    sizes: Sequence[int], order: Sequence[int], code: Code, source: str, target: str
) -> tuple[list[Local | str], list[str]]:
    """(statements before, arguments of arm_transpose_s8) for 2 to 4 dimensions."""
    if code is Code.MVE and tuple(order) == (0, 2, 1):
        # Only with four dimensions do the last two get the vector code.
        sizes, order = (1, *sizes), (0, 1, 3, 2)
    out = [sizes[axis] for axis in order]
    missing = 4 - len(sizes)
    statements: list[Local | str] = [
        dims("from_dims", *sizes, *[1] * missing),
        dims("to_dims", *out, *[1] * missing),
        f"const uint32_t order[{len(order)}] = {{{', '.join(map(str, order))}}};",
        Local("cmsis_nn_transpose_params", "transposition", (("", f"{len(order)}, order"),)),
    ]
    return statements, [source, target, "&from_dims", "&to_dims", "&transposition"]


def lower_transpose(node: Node, target: Target) -> Call:
    sizes, order = merged_order(node.input(0).shape, permute.attrs_of(node).order)
    statements, arguments = transposition(sizes, order, code_of(target), "input", "output")
    text = f"{node.op} {'x'.join(map(str, node.input(0).shape))} to {'x'.join(map(str, node.output.shape))}"
    return delegated_call("arm_transpose_s8", text, [*statements, checked("arm_transpose_s8", arguments)])


# ---------------------------------------------------------------- concatenation


def rows_and_widths(node: Node) -> tuple[int, list[int]]:
    """Rows of the output, and of each input what it gives to a row."""
    rows = math.prod(node.output.shape[: concat.attrs_of(node).axis])
    return rows, [node.input(index).type.count // rows for index in range(len(node.inputs))]


def refuse_concat(node: Node, _target: Target) -> str | None:
    rows, widths = rows_and_widths(node)
    if max(rows, sum(widths)) > MOST:
        return f"{rows} rows of {sum(widths)} values, at most {MOST} of {MOST}"
    return None


def lower_concat(node: Node, _target: Target) -> Call:
    rows, widths = rows_and_widths(node)
    names = ["input"] if len(widths) == 1 else [f"input_{i}" for i in range(len(widths))]
    statements, offset = [], 0
    for name, width in zip(names, widths, strict=True):
        sizes = f"/* width, rows */ {width}, {rows}, 1, 1, output, /* whole width */ {sum(widths)}"
        statements.append(f"arm_concatenation_s8_x({name}, {sizes}, /* from */ {offset});")
        offset += width
    text = f"{node.op} {rows}x({' + '.join(map(str, widths))})"
    return delegated_call(
        "arm_concatenation_s8_x", text, [*statements, "return TINYET_OK;"], inputs=range(len(widths))
    )


PAD_KERNELS = (kernel("arm_pad_s8", "s8", lower_pad, refuse_pad),)
TRANSPOSE_KERNELS = (kernel("arm_transpose_s8", "s8", lower_transpose, refuse_transpose),)
CONCAT_KERNELS = (kernel("arm_concatenation_s8_x", "s8", lower_concat, refuse_concat),)
