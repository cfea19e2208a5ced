# SPDX-License-Identifier: Apache-2.0
"""What the kernels whose products are of two bytes (tinyet_byte_products.h) cost, loop by loop as in their C files."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tinyet.ir import Node
from tinyet.ops.shared import byte_products, counting, packed_words
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.convolution import attrs_of
from tinyet.ops.shared.cost_models import axes
from tinyet.ops.shared.two_products import Rescaling
from tinyet.opset import CostModel

Parts = counting.Parts


def bytes_conv2d(node: Node) -> Mapping[str, int]:
    """tinyet_conv2d_s8_bytes_4x1."""
    a, (out_c, kernel_h, kernel_w, count) = attrs_of(node), node.input(1).shape
    rows, columns = axes(node, a, kernel_h, kernel_w)
    batch, taps = node.input(0).shape[0], kernel_h * kernel_w * count
    pixels = rows.positions * columns.positions
    channels = batch * -(-pixels // byte_products.PIXELS) * out_c
    there = batch * rows.in_image * columns.in_image
    blank = batch * pixels * kernel_h * kernel_w - there
    gaps = a.dilation_w != 1 and kernel_w != 1
    inner = 0 if gaps else batch * int(rows.whole.sum() * columns.whole.sum())
    # Without gaps a row's taps are one piece.
    seen = columns.in_image if gaps else int(columns.inside.any(axis=1).sum())
    pieces = kernel_h * (kernel_w if gaps else 1)  # of a window
    copied, inner_pieces = batch * rows.in_image * seen, inner * pieces
    return {
        "call": 1,
        "cleared": byte_products.PIXELS * taps,
        "output row": batch * rows.positions,
        "pixel": batch * pixels,
        "inner row": inner_pieces,
        "edge pixel": batch * pixels - inner,
        "edge column": (batch * pixels - inner) * pieces // kernel_h,
        "piece": copied - inner_pieces,
        "blank piece": batch * pixels * pieces - copied,
        "input": there * count,
        "blank input": blank * count,
        "four pixels": batch * -(-pixels // byte_products.PIXELS),
        "channel": channels,
        "long channel": channels * (taps > byte_products.RUN),
        "run": channels * (-(-taps // byte_products.RUN) - 1),
        "products": channels * taps,
        **outputs_of_bytes(node, batch * pixels * out_c),
    }


def bytes_rows(node: Node) -> Mapping[str, int]:
    """tinyet_linear_s8_bytes."""
    (out_c, depth), rows = node.input(1).shape, math.prod(node.output.shape[:-1])
    last = depth % byte_products.RUN
    return {
        "call": 1,
        "row": rows,
        "input": rows * depth,
        "run": rows * out_c * (depth // byte_products.RUN + (last >= 4)),
        "four products": rows * out_c * (depth // 4),
        "rest": rows * out_c * (last % 4 > 0),
        "product": rows * out_c * (last % 4),
        **outputs_of_bytes(node, rows * out_c),
    }


def bytes_depthwise(node: Node) -> Mapping[str, int]:
    """tinyet_depthwise_s8_bytes."""
    (_, kernel_h, kernel_w, _), outputs = node.input(1).shape, node.output.type.count
    rows = 1 if node.output.shape[2] == 1 else kernel_h
    return {
        **bytes_depthwise_3x3(node),
        "window row": outputs * rows,
        "tap": outputs * kernel_h * kernel_w,
    }


def bytes_depthwise_3x3(node: Node) -> Mapping[str, int]:
    """tinyet_depthwise_s8_bytes_3x3."""
    (batch, out_h, _, channels), (height, width) = node.output.shape, packed_words.seen(node)
    planes = batch * channels
    return {
        "call": 1,
        "plane": planes,
        "border": planes * (packed_words.plane_bytes(node) - height * width),
        "input row": planes * height,
        "input": planes * height * width,
        "output row": planes * out_h,
        **outputs_of_bytes(node, node.output.type.count),
    }


def outputs_of_bytes(node: Node, count: int) -> Parts:
    """So many outputs, rounded by 24 bits of sums. Eight bits more of a factor, which few layers of hundreds of
    products ask for, are 15 cycles: less than a percent of theirs."""
    sums = byte_products.rescaling(node)
    assert isinstance(sums, Rescaling)
    open_below = math.isinf(clamp_of(node)[0])
    return {
        "output": count,
        # Compared with what there is of random inputs: values at the lower limit need no product.
        "output not rectified": count * open_below,
        "two-sided output": count * sums.two_sided,
    }


COST_MODELS: Mapping[str, CostModel] = {
    "tinyet_conv2d_s8_bytes_4x1": CostModel(bytes_conv2d),
    "tinyet_depthwise_s8_bytes": CostModel(bytes_depthwise),
    "tinyet_depthwise_s8_bytes_3x3": CostModel(bytes_depthwise_3x3),
    "tinyet_linear_s8_bytes": CostModel(bytes_rows),
}
"""By the kernels' names."""
