# SPDX-License-Identifier: Apache-2.0
"""Specialised int8 kernels for Arm cores with the DSP extension: Cortex-M4, M7, M33 and larger.

Each layer becomes a small C function around an always-inline kernel of firmware/include/tinyet_dsp*.h with
every shape and rounding constant known to the compiler, and weights packed in the order it reads them in.

The first kernel of an operator that takes a node is the one that is used. Those of CONV2D_FOR_FLASH take flash for
speed, so they stand last, behind one that takes all that they take: `Delegate.preferring` asks them first.
"""

from __future__ import annotations

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import conv2d, depthwise, elementwise, linear, pool, winograd
from tinyet.delegates.delegate import Delegate, arm_target
from tinyet.ops.add import Add
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.linear import Linear
from tinyet.ops.mean import Mean
from tinyet.ops.sub import Sub
from tinyet.ops.sum import Sum


def supports(target: Target) -> str | None:
    """Why a target cannot have these kernels, or None."""
    has_dsp = "dsp" in target.features
    return arm_target(target) or (None if has_dsp else f"{target.cpu} has no DSP instructions")


CONV2D_FOR_FLASH = (*winograd.KERNELS, *conv2d.WIDE_KERNELS)

CORTEX_M = Delegate(
    "cortex_m",
    {
        Conv2d: (*depthwise.KERNELS, *conv2d.KERNELS, *CONV2D_FOR_FLASH),
        Linear: linear.KERNELS,
        Add: elementwise.ADD_KERNELS,
        Sub: elementwise.SUB_KERNELS,
        AvgPool2d: pool.AVERAGE_KERNELS,
        Mean: pool.MEAN_KERNELS,
        Sum: pool.SUM_KERNELS,
    },
    supports,
)
