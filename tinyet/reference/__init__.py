# SPDX-License-Identifier: Apache-2.0
"""The host reference that every device is compared with, and the float model beside it."""

from __future__ import annotations

from tinyet.reference.evaluate import evaluate, run_graph
from tinyet.reference.session import Session, States

__all__ = ["Session", "States", "evaluate", "run_graph"]
