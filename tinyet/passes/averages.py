# SPDX-License-Identifier: Apache-2.0
"""Averages that have a scale of their own: sums that are requantized once, instead of averages in the input's steps.

The mean of many values has a smaller range than the values, and is more exact than their steps.
"""

from __future__ import annotations

import numpy as np

from tinyet.ir import Node, QuantParams, constant
from tinyet.ops import avg_pool2d
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.mean import Mean
from tinyet.passes.rewrite import Names


def as_sums(node: Node, names: Names) -> Node | None:
    """The operator that computes an average pooling at any scale: the mean of the image where the window covers it,
    else a depthwise convolution with ones. None where windows divide by different numbers, and for other operators.
    """
    attrs = node.attrs
    if not isinstance(attrs, AvgPool2d):
        return None
    counts = avg_pool2d.distinct_counts(node)
    divisor = attrs.fixed_divisor or counts[0]
    if attrs.fixed_divisor is None and len(counts) > 1:
        return None
    _, height, width, channels = node.input(0).shape
    if counts == [height * width] == [divisor] and node.output.shape[1:3] == (1, 1):
        return node.replace(attrs=Mean((1, 2), keepdims=True))
    ones = np.ones((channels, attrs.kernel_h, attrs.kernel_w, 1), np.int8)
    weights = constant(names.fresh(f"{node.output.name}_ones"), ones, QuantParams.per_tensor(1 / divisor, 0))
    window = Conv2d(
        attrs.stride_h, attrs.stride_w, attrs.dilation_h, attrs.dilation_w,
        attrs.pad_top, attrs.pad_bottom, attrs.pad_left, attrs.pad_right, groups=channels,
    )  # fmt: skip
    return node.replace(attrs=window, inputs=(node.input(0), weights, None))
