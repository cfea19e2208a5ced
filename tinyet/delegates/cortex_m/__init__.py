# SPDX-License-Identifier: Apache-2.0
"""Specialised int8 kernels for Arm cores with the DSP extension: Cortex-M4, M7, M33 and larger.

Each layer becomes a small C function around an always-inline kernel of firmware/include/tinyet_dsp*.h with every shape
and rounding constant known to the compiler, and weights packed in the order in which it reads them.
"""

from __future__ import annotations

from tinyet.boards import Target
from tinyet.delegates.delegate import Delegate
from tinyet.delegates.cortex_m import conv2d, depthwise
from tinyet.ops.conv2d import Conv2d


def supports(target: Target) -> str | None:
    return None if "dsp" in target.features else f"{target.cpu} has no DSP instructions"


CORTEX_M = Delegate("cortex_m", {Conv2d: (*depthwise.KERNELS, *conv2d.KERNELS)}, supports)
