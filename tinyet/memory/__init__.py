# SPDX-License-Identifier: Apache-2.0
"""Memory planning: shared bytes, order of execution, offsets in one arena, and their independent proof."""

from __future__ import annotations

from tinyet.memory.check import check_plan
from tinyet.memory.plan import Block, Lifetime, MemoryPlan, Storage
from tinyet.memory.planner import plan_memory
from tinyet.memory.timeline import access_schedule

__all__ = ["Block", "Lifetime", "MemoryPlan", "Storage", "access_schedule", "check_plan", "plan_memory"]
