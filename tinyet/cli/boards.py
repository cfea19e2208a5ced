# SPDX-License-Identifier: Apache-2.0
"""`tinyet boards`: the boards that tinyet knows, and all that it knows of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from tinyet.boards import Board, all_boards, load_board
from tinyet.cli import ui
from tinyet.emit.kinds import KINDS, kinds_for


def boards(
    board: Annotated[
        str | None, typer.Argument(metavar="[BOARD]", help="tell all of this one: a name, or a .toml file")
    ] = None,
) -> None:
    """List the boards that come with tinyet, or tell all that is known of one."""
    if board is None:
        _show_all(all_boards())
    else:
        _show_one(load_board(board))


def _show_all(found: Sequence[Board]) -> None:
    everywhere = [kind for kind in KINDS if all(kind in kinds_for(board) for board in found)]
    rows = [
        (
            board.name,
            _kib(board.flash.bytes),
            _kib(board.ram.bytes),
            " ".join(kind for kind in kinds_for(board) if kind not in everywhere) or "–",
            " ".join(board.emulators) or "–",
            board.isa,
            board.title,
        )
        for board in found
    ]
    ui.table(
        [
            ("board", "name"),
            ("flash", "number"),
            ("RAM", "number"),
            ("projects", "name"),
            ("emulators", "name"),
            ("ISA", "detail"),
            ("what it is", "detail"),
        ],
        rows,
    )
    if everywhere:
        ui.say(f"\nprojects for every board: {', '.join(everywhere)}")


def _show_one(one: Board) -> None:
    """Show all of a board file, and the facts derived from it."""
    memories = [one.flash, one.ram, *([one.vectors] if one.vectors else []), *one.extra_memories]
    pairs = [
        (
            "core",
            " ".join([one.cpu, *sorted(one.target.features), *([one.target.mcu] if one.target.mcu else [])]),
        ),
        ("ISA", one.isa),
        ("clock", f"{one.clock_hz / 1e6:g} MHz"),
        *((m.name, f"{ui.size(m.bytes)} at {m.origin:#010x}, {m.access}") for m in memories),
        ("stack", f"{ui.size(one.stack_bytes)} of the RAM"),
    ]
    if one.flash_timing is not None:
        pairs.append(("flash wait states", str(one.flash_timing.wait_states)))
    if one.uart is not None:
        pairs.append(("UART", f"{one.uart.driver} at {one.uart.base:#010x}, {one.uart.baud} baud"))
    if one.platformio is not None:
        framework = f", framework {one.platformio.framework}" if one.platformio.framework else ""
        pairs.append(("PlatformIO", f"{one.platformio.platform}: {one.platformio.board}{framework}"))
    if one.arduino is not None:
        pairs.append(("Arduino", one.arduino.fqbn))
    if one.zephyr is not None:
        pairs.append(("Zephyr", one.zephyr.board))
    pairs += [
        ("projects", " ".join(kinds_for(one))),
        ("emulators", " ".join(one.emulators) or "–"),
        ("more", one.url or "–"),
    ]
    ui.facts(one.title, pairs)


def _kib(value: int) -> str:
    return f"{value // 1024}K" if value % 1024 == 0 else ui.number(value)
