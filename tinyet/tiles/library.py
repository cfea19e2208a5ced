# SPDX-License-Identifier: Apache-2.0
"""Sources of the kernel library that are printed: functions of which one is shared by all layers of a program. Their
declarations, and their references in C, are in written headers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from tinyet.tiles import shared, shared_rows


@cache
def sources() -> Mapping[str, str]:
    """{file's name: its text}."""
    return shared.files() | shared_rows.files()
