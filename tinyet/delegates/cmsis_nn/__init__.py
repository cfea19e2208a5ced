# SPDX-License-Identifier: Apache-2.0
"""Arm's CMSIS-NN, on every Cortex-M: plain C, DSP or MVE (Helium) code, as the compiler's target has it.

Each layer becomes a small C function that fills the library's structs with literals and calls one of its functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from tinyet.delegates.cmsis_nn.cost_models import COST_MODELS
from tinyet.delegates.cmsis_nn.cost_models_moves import COST_MODELS as MOVES
from tinyet.delegates.cmsis_nn.library import files
from tinyet.delegates.cmsis_nn.wrapper import NAME
from tinyet.delegates.delegate import Delegate, arm_target
from tinyet.ir import Attrs
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
from tinyet.opset import Kernel, with_cost_models

_KERNELS: Mapping[type[Attrs], Sequence[Kernel]] = {
    Conv2d: (*depthwise.KERNELS, *conv2d.KERNELS, *int16.CONV2D_KERNELS, *int4.CONV2D_KERNELS),
    ConvTranspose2d: conv_transpose2d.KERNELS,
    Linear: (*linear.KERNELS, *int16.LINEAR_KERNELS, *int4.LINEAR_KERNELS),
    MatMul: matmul.KERNELS,
    Add: elementwise.ADD_KERNELS,
    Mul: elementwise.MUL_KERNELS,
    Minimum: elementwise.MINIMUM_KERNELS,
    Maximum: elementwise.MAXIMUM_KERNELS,
    AvgPool2d: pool.AVERAGE_KERNELS,
    MaxPool2d: pool.MAXIMUM_KERNELS,
    Softmax: softmax.KERNELS,
    Pad: movement.PAD_KERNELS,
    Permute: movement.TRANSPOSE_KERNELS,
    Concat: movement.CONCAT_KERNELS,
}

CMSIS_NN = Delegate(
    NAME,
    {attrs: with_cost_models(kernels, {**COST_MODELS, **MOVES}) for attrs, kernels in _KERNELS.items()},
    arm_target,
    files,
)
