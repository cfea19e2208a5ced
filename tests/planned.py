# SPDX-License-Identifier: Apache-2.0
"""What was said of a project before it was built, against what the linker and the compiler made of it."""

from __future__ import annotations

from tinyet.build.size import Size
from tinyet.project import Project

STATED = 0.01
"""Largest error of the stated flash, as a share of the linked."""
LEAST = 96
"""Bytes that it may be off in any case: of some kilobytes the code of one layer is more than a percent."""


def check_planned(project: Project, size: Size) -> None:
    """Flash is what was stated, to a percent or some bytes; and nothing is more than was counted.

    size: of the built application."""
    room, deployment, stack = project.room, project.deployment, project.stack
    linked = size.flash - size.sample
    assert abs(room.flash.stated - linked) <= max(STATED * linked, LEAST), (room.flash, linked)
    assert linked <= room.flash.at_most, (room.flash, linked)
    assert room.stack.inference is not None
    assert stack.inference.bytes is not None
    assert stack.inference.bytes <= room.stack.inference, stack.inference
    assert stack.reserved == size.stack == room.stack.total == project.board.stack_bytes
    assert stack.firmware.bytes is not None
    assert stack.firmware.bytes <= room.stack.total, stack.firmware
    # The arena begins at 16 bytes, and the section ends at 8.
    most = deployment.plan.arena_bytes + deployment.state_bytes + room.static
    assert size.ram <= most + 16, (size.ram, most)
