# SPDX-License-Identifier: Apache-2.0
"""Many runs of a graph on this machine: by its own C, compiled as a library, with the host reference as the judge."""

from __future__ import annotations

from tinyet.native.runs import JUDGED_EVERY, By, How, Runs

__all__ = ["JUDGED_EVERY", "By", "How", "Runs"]
