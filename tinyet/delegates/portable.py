# SPDX-License-Identifier: Apache-2.0
"""The portable kernels: those that the operators bring themselves. They run on every target."""

from __future__ import annotations

from tinyet.delegates.delegate import Delegate
from tinyet.ops import OPS, TILE_OPS

PORTABLE = Delegate("portable", {op.attrs: op.kernels for op in (*OPS, *TILE_OPS)})
