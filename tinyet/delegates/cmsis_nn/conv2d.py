# SPDX-License-Identifier: Apache-2.0
"""Convolutions: of one group or several, as matrix products.

The library's wrapper chooses among these functions when it runs; here the choice is made ahead of time, so that the
others are not linked.
"""

from __future__ import annotations

from tinyet.boards.cpus import Target
from tinyet.delegates.cmsis_nn import buffer_sizes
from tinyet.delegates.cmsis_nn.buffer_sizes import Code, code_of
from tinyet.delegates.cmsis_nn.weighted import (
    CONVOLUTION_ARGUMENTS,
    image_locals,
    refuse_weighted,
    summary,
    upscaled_arguments,
    weighted_call,
    weighted_constants,
)
from tinyet.delegates.cmsis_nn.wrapper import kernel
from tinyet.ir import Node
from tinyet.ops.shared.convolution import attrs_of
from tinyet.opset import Call, Kernel, Refuse


def is_padded(node: Node) -> bool:
    a = attrs_of(node)
    return any((a.pad_top, a.pad_bottom, a.pad_left, a.pad_right))


def refuse_1x1_kernel(node: Node) -> str | None:
    if node.input(1).shape[1:3] != (1, 1) or attrs_of(node).groups != 1:
        return "only 1x1 kernels of one group"
    return "only without padding" if is_padded(node) else refuse_weighted(node)


def refuse_1x1_fast(node: Node, _target: Target) -> str | None:
    a = attrs_of(node)
    return refuse_1x1_kernel(node) or ("only stride 1" if (a.stride_h, a.stride_w) != (1, 1) else None)


def refuse_1x1(node: Node, _target: Target) -> str | None:
    return refuse_1x1_kernel(node)


def refuse_1_x_n(node: Node, target: Target) -> str | None:
    """The code for MVE takes rows only whose padding is what it reckons with."""
    if code_of(target) is not Code.MVE:
        return "only MVE has code of its own for one row"
    a, channels = attrs_of(node), node.input(0).shape[3]
    if (node.input(0).shape[1], node.input(1).shape[1], node.output.shape[1], a.groups) != (1, 1, 1, 1):
        return "only images of one row, one group"
    if a.pad_top or a.dilation_w != 1 or a.stride_w * channels % 4:
        return "only undilated, a stride of a multiple of four values"
    in_w, kernel_w, out_w = node.input(0).shape[2], node.input(1).shape[2], node.output.shape[2]
    left, whole, right = buffer_sizes.one_row_parts(in_w, out_w, kernel_w, a.stride_w, a.pad_left)
    excess = buffer_sizes.right_excess(in_w, out_w, kernel_w, a.stride_w)
    total = (out_w - 1) * a.stride_w + kernel_w - in_w
    if 2 * a.pad_left + excess != total or left + whole + right != out_w or kernel_w > in_w:
        return "only padding that is the same on both sides, or one more on the right, and less than the row"
    # Where the part over the right edge begins, and what of it is in the row; the library takes it for kernel - 1.
    start = a.stride_w * (left + whole) - a.pad_left
    after = right if excess else a.pad_left
    exact = in_w - start == kernel_w - 1 and (right == 0 or (right - 1) * a.stride_w + 1 <= after)
    if not exact or a.stride_w * left < a.pad_left:
        return "the row's edge does not lie where the library takes it to be"
    return refuse_weighted(node)


def refuse_any(node: Node, _target: Target) -> str | None:
    return refuse_weighted(node)


def scratch_bytes(function: str, node: Node, code: Code) -> int:
    _, kernel_h, kernel_w, group_c = node.input(1).shape
    if function == "arm_convolve_s8":
        return buffer_sizes.convolve_s8(code, kernel_h * kernel_w * group_c)
    if function == "arm_convolve_1_x_n_s8":
        a, in_w, out_w = attrs_of(node), node.input(0).shape[2], node.output.shape[2]
        size = buffer_sizes.convolve_1_x_n_s8(code, group_c, in_w, out_w, kernel_w, a.stride_w, a.pad_left)
        # As plain C, on the host, it is a convolution like any other.
        return max(size, buffer_sizes.convolve_s8(Code.SCALAR, kernel_w * group_c))
    return 0


def convolution(function: str, refuse: Refuse) -> Kernel:
    arguments = upscaled_arguments() if function == "arm_convolve_s8" else CONVOLUTION_ARGUMENTS

    def lower(node: Node, target: Target) -> Call:
        code = code_of(target)
        constants = weighted_constants(node, node.input(1).array, code)
        scratch = scratch_bytes(function, node, code)
        text = summary(node, attrs_of(node))
        return weighted_call(function, text, image_locals(node), arguments, constants, scratch)

    return kernel(function, "s8", lower, refuse)


KERNELS = (
    convolution("arm_convolve_1x1_s8_fast", refuse_1x1_fast),
    convolution("arm_convolve_1x1_s8", refuse_1x1),
    convolution("arm_convolve_1_x_n_s8", refuse_1_x_n),
    convolution("arm_convolve_s8", refuse_any),
)
