# SPDX-License-Identifier: Apache-2.0
"""When an output may take the place of an input that dies, at its exact address."""

from __future__ import annotations

from collections.abc import Sequence

from tinyet.ir import Tensor
from tinyet.memory.aliases import NEVER, AliasSets, MayShare, Piece


def replaces_at(position: int) -> MayShare:
    """The rule for bytes shared in time: all tensors on the input's side are used for the last time before the
    output's side is written at call `position` or later. At `position` itself they may still be read:
    `overwritten_exactly` decides this."""

    def rule(old: Piece, new: Piece) -> bool:
        return new.written == NEVER or old.used <= position <= new.written

    return rule


def fits_over(output: Tensor, source: Tensor, said: bool) -> bool:
    """Whether the bytes of an output are as many as those of the input; or fewer, and begin where these do, where the
    kernel itself has said that it replaces the input."""
    size, room = output.type.bytes, source.type.bytes
    return size == room or (said and size < room)


def overwritten_exactly(
    aliases: AliasSets, source: Tensor, output: Tensor, now_used: Sequence[Tensor], readable: set[Tensor]
) -> bool:
    """With `output` where `source` is, does its call overwrite none of the tensors that it uses, except inputs that
    it may overwrite exactly while it reads them?

    now_used: tensors that the call reads or writes and that are not used later. readable: inputs that it may
    overwrite.
    """
    shift = aliases.start(output) - aliases.start(source)
    for tensor in now_used:
        if aliases.root(tensor) is not aliases.root(source):
            continue
        if tensor in readable and aliases.extent(tensor) == aliases.extent(source):
            continue
        start, end = aliases.extent(tensor)
        # A view's bytes are written by others, which are asked themselves.
        if any(p.written != NEVER for p in aliases.pieces(output, start + shift, end + shift)):
            return False
    return True
