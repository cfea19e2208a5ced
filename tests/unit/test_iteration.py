# SPDX-License-Identifier: Apache-2.0
"""Footprints that are known by heart: a map that says too much would pass the drawn tests, and is found here."""

from __future__ import annotations

import numpy as np
import pytest

from tinyet import ops
from tinyet.ir import Attrs, DType, Node, Shape, Tensor, TensorType, constant
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.concat import Concat
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.flip import Flip
from tinyet.ops.linear import Linear
from tinyet.ops.matmul import MatMul
from tinyet.ops.pad import Pad
from tinyet.ops.permute import Permute
from tinyet.ops.reshape import Reshape
from tinyet.ops.resize import Resize
from tinyet.ops.slice import Slice
from tinyet.ops.softmax import Softmax
from tinyet.opset import Index, Iteration
from tinyet.opset.blocks import footprints

KERNEL = constant("w", np.zeros((2, 3, 3, 4), np.float32))
NEAREST = Resize(8, 8, "nearest", False, True, 0.5, 0.5)
BILINEAR = Resize(8, 8, "bilinear", False, True, 0.5, 0.5)


def space_of(attrs: Attrs, inputs: list[Shape | Tensor]) -> Iteration:
    kind = DType.FLOAT32
    given = [
        t if isinstance(t, Tensor) else Tensor(f"x{k}", TensorType(t, kind)) for k, t in enumerate(inputs)
    ]
    node = Node(attrs, tuple(given), (Tensor("y", TensorType((), kind)),))
    (shape,) = ops.infer(node)
    node = node.replace(outputs=[Tensor("y", TensorType(shape, kind))])
    space = ops.op_of(node).iteration(node)
    assert isinstance(space, Iteration)
    return space


@pytest.mark.parametrize(
    ("attrs", "inputs", "number", "read", "written", "asked", "expected"),
    [
        # A window of three rows, one of padding above: rows 1 to 3 need rows 0 to 4.
        (Conv2d(pad_top=1, pad_bottom=1), [(1, 8, 8, 4), KERNEL, None], 0, 1, 1, (1, 3), (0, 4)),
        (Conv2d(pad_top=1, pad_bottom=1), [(1, 8, 8, 4), KERNEL, None], 0, 1, 1, (0, 0), (-1, 1)),
        (Conv2d(stride_h=2, dilation_h=2), [(1, 9, 8, 4), KERNEL, None], 0, 1, 1, (1, 2), (2, 8)),
        (Conv2d(), [(1, 8, 8, 4), KERNEL, None], 0, 3, 3, (1, 1), (0, 3)),
        (Conv2d(), [(1, 8, 8, 4), KERNEL, None], 1, 0, 3, (1, 1), (1, 1)),
        (AvgPool2d(kernel_h=2, kernel_w=2, stride_h=2), [(1, 8, 8, 4)], 0, 3, 3, (2, 2), (2, 2)),
        (AvgPool2d(kernel_h=2, kernel_w=2, stride_h=2), [(1, 8, 8, 4)], 0, 1, 1, (3, 3), (6, 7)),
        # Row 5 of a kernel of three and a stride of two lies between two rows, row 4 in the middle of one.
        (ConvTranspose2d(stride_h=2, pad_top=1), [(1, 8, 8, 4), KERNEL, None], 0, 1, 1, (5, 5), (2, 3)),
        (ConvTranspose2d(stride_h=2, pad_top=1), [(1, 8, 8, 4), KERNEL, None], 0, 1, 1, (4, 4), (2, 2)),
        (NEAREST, [(1, 4, 4, 3)], 0, 1, 1, (4, 5), (2, 2)),
        (BILINEAR, [(1, 4, 4, 3)], 0, 1, 1, (4, 5), (1, 3)),
        (BILINEAR, [(1, 4, 4, 3)], 0, 3, 3, (1, 1), (1, 1)),
        (Linear(), [(5, 4), constant("w", np.zeros((3, 4), np.float32)), None], 0, 0, 0, (2, 2), (2, 2)),
        (MatMul(), [(2, 5, 4), (2, 4, 3)], 0, 1, 1, (2, 3), (2, 3)),
        (MatMul(), [(2, 5, 4), (2, 4, 3)], 1, 1, 1, (2, 3), (0, 3)),
        (Softmax(axis=1), [(5, 4)], 0, 0, 0, (2, 2), (2, 2)),
        (Softmax(axis=1), [(5, 4)], 0, 1, 1, (2, 2), (0, 3)),
        (Permute((2, 0, 1)), [(2, 3, 4)], 0, 2, 0, (1, 2), (1, 2)),
        (Slice(0, 2, 8, 3), [(9, 4)], 0, 0, 0, (1, 1), (5, 5)),
        (Pad(((2, 1), (0, 0))), [(3, 4)], 0, 0, 0, (0, 2), (-2, 0)),
        (Pad(((2, 1), (0, 0)), "reflect"), [(3, 4)], 0, 0, 0, (0, 0), (-2, -2)),
        (Concat(0), [(3, 4), (2, 4)], 1, 0, 0, (3, 4), (0, 1)),
        (Flip((0,)), [(5, 4)], 0, 0, 0, (0, 1), (3, 4)),
        # (6, 4) as (3, 8): row 1 of the one is rows 2 and 3 of the other.
        (Reshape((3, 8)), [(6, 4)], 0, 0, 0, (1, 1), (2, 3)),
        (Reshape((3, 8)), [(6, 4)], 0, 1, 0, (1, 1), (0, 3)),
        (Reshape((3, 8)), [(6, 4)], 0, 0, 1, (4, 7), (1, 5)),
        # (4, 6) and (6, 4) have no sizes in common: all is made of all, and around it as it was.
        (Reshape((5, 6, 4)), [(5, 4, 6)], 0, 1, 1, (2, 2), (0, 3)),
        (Reshape((5, 6, 4)), [(5, 4, 6)], 0, 0, 0, (2, 2), (2, 2)),
    ],
)
def test_footprint(
    attrs: Attrs,
    inputs: list[Shape | Tensor | None],
    number: int,
    read: int,
    written: int,
    asked: tuple[int, int],
    expected: tuple[int, int],
) -> None:
    space = space_of(attrs, [t for t in inputs if t is not None])
    operand = space.inputs[number]
    assert operand is not None
    place = space.outputs[0].axes[written]
    assert isinstance(place, Index)
    each = footprints(space, operand.axes[read], place, max(asked) + 1)
    asked_for = slice(asked[0], asked[1] + 1)
    assert (each.low[asked_for].min(), each.high[asked_for].max()) == expected
