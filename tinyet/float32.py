# SPDX-License-Identifier: Apache-2.0
"""Twins in numpy of the float arithmetic in C (`firmware/include/tinyet_math.h`): same operations, same order, float32.

Every function takes and gives float32 arrays and rounds after each operation, so that host and device agree bit for bit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Float32 = npt.NDArray[np.float32]


def clamp(x: Float32, low: float, high: float) -> Float32:
    """x < low ? low : x > high ? high : x. NaN and the zero's sign stay, which np.clip does not promise."""
    bottom, top = np.float32(low), np.float32(high)
    return np.where(x < bottom, bottom, np.where(x > top, top, x)).astype(np.float32)
