# SPDX-License-Identifier: Apache-2.0
"""Models whose input has a size that is known only when they run: the same graph at another size, and one call for all
sizes."""

from __future__ import annotations

from tinyet.sizes.resize import resize, resized_inputs

__all__ = ["resize", "resized_inputs"]
