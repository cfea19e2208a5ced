# SPDX-License-Identifier: Apache-2.0
"""Arm's CMSIS-NN, on every Cortex-M: plain C, DSP or MVE (Helium) code, as the compiler's target has it.

Each layer becomes a small C function that fills the library's structs with literals and calls one of its functions.
"""

from __future__ import annotations

from tinyet.delegates.cmsis_nn import (
    conv2d,
    conv_transpose2d,
    depthwise,
    elementwise,
    int4,
    int16,
    linear,
    matmul,
    movement,
    pool,
    softmax,
)
from tinyet.delegates.cmsis_nn.claims import CLAIMS
from tinyet.delegates.cmsis_nn.library import files
from tinyet.delegates.cmsis_nn.wrapper import NAME
from tinyet.delegates.delegate import Delegate, arm_target
from tinyet.ops.add import Add
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.concat import Concat
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.linear import Linear
from tinyet.ops.matmul import MatMul
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.maximum import Maximum
from tinyet.ops.minimum import Minimum
from tinyet.ops.mul import Mul
from tinyet.ops.pad import Pad
from tinyet.ops.permute import Permute
from tinyet.ops.softmax import Softmax
from tinyet.opset import claimed

CMSIS_NN = Delegate(
    NAME,
    {
        Conv2d: (
            *claimed((*depthwise.KERNELS, *conv2d.KERNELS), CLAIMS),
            *int16.CONV2D_KERNELS,
            *int4.CONV2D_KERNELS,
        ),
        ConvTranspose2d: conv_transpose2d.KERNELS,
        Linear: (*claimed(linear.KERNELS, CLAIMS), *int16.LINEAR_KERNELS, *int4.LINEAR_KERNELS),
        MatMul: matmul.KERNELS,
        Add: claimed(elementwise.ADD_KERNELS, CLAIMS),
        Mul: claimed(elementwise.MUL_KERNELS, CLAIMS),
        Minimum: elementwise.MINIMUM_KERNELS,
        Maximum: elementwise.MAXIMUM_KERNELS,
        AvgPool2d: claimed(pool.AVERAGE_KERNELS, CLAIMS),
        MaxPool2d: claimed(pool.MAXIMUM_KERNELS, CLAIMS),
        Softmax: claimed(softmax.KERNELS, CLAIMS),
        Pad: movement.PAD_KERNELS,
        Permute: movement.TRANSPOSE_KERNELS,
        Concat: movement.CONCAT_KERNELS,
    },
    arm_target,
    files,
)
