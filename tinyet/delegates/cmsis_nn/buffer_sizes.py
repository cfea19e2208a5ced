# SPDX-License-Identifier: Apache-2.0
"""Bytes of scratch memory that the functions of CMSIS-NN want: the library's own `…_get_buffer_size`, in Python.

Each instruction set has its own sizes, because it has its own code. These are the sizes of one function each; the
library's wrappers take the same, but forget that a grouped convolution is never the short one of 1x1 kernels.
"""

from __future__ import annotations

import enum

from tinyet.boards.cpus import Target

MVE_CHANNELS = 124
"""Channels of a block of the depthwise convolutions for MVE (CH_IN_BLOCK_MVE)."""


class Code(enum.Enum):
    """Which of its three implementations the library compiles to."""

    SCALAR = "scalar"
    DSP = "dsp"
    MVE = "mve"


def code_of(target: Target) -> Code:
    for code in (Code.MVE, Code.DSP):
        if code.value in target.features:
            return code
    return Code.SCALAR


def round_up(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple


def convolve_s8(code: Code, depth: int) -> int:
    """Patches of four pixels for MVE, of two as int16 else. depth: elements of a patch, channels of one group."""
    return 4 * round_up(depth, 16) if code is Code.MVE else 4 * round_up(depth, 4)


def convolve_s16(code: Code, depth: int) -> int:
    """Patches as in convolve_s8, always int16; those for MVE end with whole vectors."""
    return 8 * round_up(depth, 8) if code is Code.MVE else 4 * depth


def convolve_1_x_n_s8(
    code: Code, channels: int, in_w: int, out_w: int, kernel_w: int, stride_w: int, pad_left: int
) -> int:
    """The patches that reach over the left and the right edge, for MVE."""
    if code is not Code.MVE:
        return convolve_s8(code, kernel_w * channels)
    left, whole, right = one_row_parts(in_w, out_w, kernel_w, stride_w, pad_left)
    if left + whole + right != out_w:
        return convolve_s8(code, kernel_w * channels)
    odd = right_excess(in_w, out_w, kernel_w, stride_w)
    after = right * channels if odd else pad_left * channels
    return max(kernel_w * channels + pad_left * channels, (kernel_w - 1) * channels + after)


def right_excess(in_w: int, out_w: int, kernel_w: int, stride_w: int) -> int:
    """The rest of a row's total padding when both sides have the same; C's remainder."""
    total = (out_w - 1) * stride_w + kernel_w - in_w
    return total % 2 if total >= 0 else -(-total % 2)


def one_row_parts(in_w: int, out_w: int, kernel_w: int, stride_w: int, pad_left: int) -> tuple[int, int, int]:
    """Output pixels that arm_convolve_1_x_n_s8 counts as reaching over the left edge, as within, over the right."""
    pad_right = pad_left + right_excess(in_w, out_w, kernel_w, stride_w)
    right = max(1, (pad_right + stride_w - 1) // stride_w) if pad_right != 0 else 0
    left = max(1, (pad_left + stride_w - 1) // stride_w) if pad_left != 0 else 0
    return left, max(out_w - (right + left), 0), right


def depthwise_s8_opt(code: Code, channels: int, taps: int) -> int:
    """arm_depthwise_conv_s8_opt; taps: pixels of the kernel."""
    return {Code.SCALAR: 0, Code.DSP: 2 * channels * taps, Code.MVE: 4 * MVE_CHANNELS * taps}[code]


def avgpool(code: Code, channels: int) -> int:
    """arm_avgpool_s8 and arm_avgpool_s16."""
    return 4 * channels if code is Code.DSP else 0


def batch_matmul_s8(code: Code, columns: int) -> int:
    """arm_batch_matmul_s8: a sum of each row of the second matrix, as the library reads it."""
    return 4 * columns if code is Code.MVE else 0


def transpose_conv_s8(
    out_c: int, in_w: int, kernel_h: int, kernel_w: int, stride_h: int, stride_w: int
) -> int:
    """Rows of sums. Where a stride is wider than the kernel, the library's own function takes the one stride for the
    other and may say less than the code writes."""
    return 4 * out_c * ((in_w - 1) * stride_w + max(kernel_w, stride_w)) * max(kernel_h, stride_h)
