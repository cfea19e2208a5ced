# SPDX-License-Identifier: Apache-2.0
"""All networks of the suite."""

from __future__ import annotations

from tests.networks import joins, ranges, sequences, whole

THEMES = (*ranges.THEMES, *joins.THEMES, *sequences.THEMES, *whole.THEMES)
NETWORKS = tuple(network for theme in THEMES for network in theme)
