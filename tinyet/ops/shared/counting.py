# SPDX-License-Identifier: Apache-2.0
"""What claims are made of: how often each part of a loop runs, by the part's name."""

from __future__ import annotations

from tinyet.ir import Node

Parts = dict[str, int]


def add(parts: Parts, name: str, count: int) -> None:
    """So many more of a part."""
    parts[name] = parts.get(name, 0) + count


def copied(parts: Parts, name: str, times: int, size: int) -> None:
    """memcpy or memset of `size` bytes, so many times: by bytes or by words, as the C library has it."""
    add(parts, name, times)
    add(parts, f"{name}: word", times * (size // 4))
    add(parts, f"{name}: rest", times * (size % 4))


def values(node: Node) -> Parts:
    """One value of the output after another."""
    return {"call": 1, "value": node.output.type.count}


def looked_up(node: Node) -> Parts:
    """A table's entries, four at a time."""
    fours, rest = divmod(node.output.type.count, 4)
    return {"call": 1, "four values": fours, "last value": rest}
