# SPDX-License-Identifier: Apache-2.0
"""How kernels go over their outputs, and what of their inputs is read after that: the `AccessOrder` of each kind of
loop.

A loop makes groups of pixels, one after another. Of most kernels the reads and writes of a group are mixed; those that
copy all that a group needs into scratch first (`gathered`) may lie closer: when a group is written, only what the next
one sees is still needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.shared.window import Window
from tinyet.opset import AccessOrder, AccessOrders

MOST_STEPS = 4096
"""Of a access order. Groups of a longer one are taken together, which asks for some more distance than is needed."""

Places = Callable[[Int64], Int64]
"""Bytes, by the numbers of groups."""


def in_groups(
    count: int, end: Places, first: Places, in_bytes: int, *, gathered: bool = False
) -> AccessOrder:
    """The access order of a loop that makes `count` groups.

    end: where the outputs of a group end; first: the first byte of the input that it, or one behind it, reads. Both
    ascend. gathered: a group reads all that it needs before it writes.
    """
    together = -(-count // MOST_STEPS)
    starts = np.arange(0, count, together, dtype=np.int64)
    written = end(np.minimum(starts + together, count) - 1)
    if not gathered:
        return AccessOrder(written, first(starts))
    # A step is what a group writes, and what the next one reads.
    behind = np.where(starts + 1 < count, first(np.minimum(starts + 1, count - 1)), in_bytes)
    return AccessOrder(np.concatenate([[0], written]), np.concatenate([first(starts[:1]), behind]))


@dataclass(frozen=True, eq=False)
class Walk:
    """Over images of in_h x in_w pixels, where the windows of output rows and columns begin, as far as they lie in the
    image: int64 (out_h,) and (out_w,), ascending. in_pixel, out_pixel: bytes."""

    batch: int
    in_h: int
    in_w: int
    tops: Int64
    lefts: Int64
    in_pixel: int
    out_pixel: int

    @property
    def row(self) -> int:
        """Output pixels of a row."""
        return len(self.lefts)

    @property
    def image(self) -> int:
        """Output pixels of an image."""
        return len(self.tops) * self.row

    @property
    def in_bytes(self) -> int:
        return self.batch * self.in_h * self.in_w * self.in_pixel

    @cached_property
    def _corner(self) -> Int64:
        """The first pixel of an image that windows of each output row see, (out_h + 1,): behind the last, its end."""
        seen = np.minimum(self.tops * self.in_w + self.lefts[0], self.in_h * self.in_w)
        return np.append(seen, self.in_h * self.in_w).astype(np.int64)

    def first_byte(self, pixels: Int64) -> Int64:
        """The first byte of the input that these output pixels of the batch, or any behind them, see."""
        image, pixel = np.divmod(pixels, self.image)
        y, x = np.divmod(pixel, self.row)
        # Along a row windows move on; those of the next one may begin before.
        here = np.minimum(self._corner[y] + self.lefts[x] - self.lefts[0], self._corner[y + 1])
        return np.asarray((image * self.in_h * self.in_w + here) * self.in_pixel, np.int64)

    def by_pixels(
        self,
        at_once: int = 1,
        run: int | None = None,
        *,
        ahead: int = 0,
        moved_back: bool = False,
        gathered: bool = False,
    ) -> AccessOrder:
        """Groups of `at_once` output pixels that follow each other.

        run: pixels that are divided into groups; those of an image, if not given. ahead: so many pixels more may be
        written. moved_back: where a run does not divide, its last group is a whole one and overlaps the one before.
        """
        run = self.image if run is None else run
        of_run, total = -(-run // at_once), self.batch * self.image

        def end(groups: Int64) -> Int64:
            number, group = np.divmod(groups, of_run)
            pixels = number * run + np.minimum((group + 1) * at_once, run) + ahead
            return np.asarray(np.minimum(pixels, total) * self.out_pixel, np.int64)

        def first(groups: Int64) -> Int64:
            number, group = np.divmod(groups, of_run)
            start = np.minimum(group * at_once, run - at_once) if moved_back else group * at_once
            return self.first_byte(number * run + start)

        return in_groups(total // run * of_run, end, first, self.in_bytes, gathered=gathered)

    def by_rows(self, rows: int = 1, *, gathered: bool = False) -> AccessOrder:
        """Groups of `rows` output rows of an image."""
        return self.by_pixels(rows * self.row, gathered=gathered)


def starts(size: int, out: int, stride: int, pad: int) -> Int64:
    """First positions of the windows of `out` outputs along one dimension, (out,). Dilation is ignored, so a window
    may begin later."""
    return np.asarray(np.clip(np.arange(out, dtype=np.int64) * stride - pad, 0, size), np.int64)


def pixel_bytes(node: Node) -> tuple[int, int]:
    """Of the last axis of input 0 and of the output."""
    x, out = node.input(0), node.output
    return x.shape[-1] * x.dtype.bytes, out.shape[-1] * out.dtype.bytes


def window_walk(node: Node) -> Walk:
    """Of an operator that slides a window over its NHWC input 0."""
    assert isinstance(node.attrs, Window)
    a, (batch, in_h, in_w, _) = node.attrs, node.input(0).shape
    _, out_h, out_w, _ = node.output.shape
    tops, lefts = starts(in_h, out_h, a.stride_h, a.pad_top), starts(in_w, out_w, a.stride_w, a.pad_left)
    return Walk(batch, in_h, in_w, tops, lefts, *pixel_bytes(node))


def pixel_walk(node: Node) -> Walk:
    """Of an operator that makes each output pixel, all values of the last axis, of the pixel of the same number: one
    image of them all."""
    *rows, in_w, _ = (1, *node.input(0).shape)
    in_h = math.prod(rows)
    return Walk(
        1, in_h, in_w, np.arange(in_h, dtype=np.int64), np.arange(in_w, dtype=np.int64), *pixel_bytes(node)
    )


def of_input(made: Callable[[Node], AccessOrder | None]) -> AccessOrders:
    """A statement on input 0 alone."""

    def access_order(node: Node, index: int) -> AccessOrder | None:
        return made(node) if index == 0 else None

    return access_order


@of_input
def by_vectors(node: Node) -> AccessOrder:
    """One vector of the last axis after another."""
    return pixel_walk(node).by_pixels()


@of_input
def by_copied_vectors(node: Node) -> AccessOrder:
    """The same, but a vector is copied before any of its outputs is written."""
    return pixel_walk(node).by_pixels(gathered=True)


@of_input
def by_copy(node: Node) -> AccessOrder:
    """All of the input is copied before anything is written."""
    in_bytes, out_bytes = node.input(0).type.bytes, node.output.type.bytes
    return in_groups(1, lambda groups: groups + out_bytes, lambda groups: groups * 0, in_bytes, gathered=True)


@of_input
def by_window_pixels(node: Node) -> AccessOrder:
    """Of a kernel that slides a window, one output pixel after another."""
    return window_walk(node).by_pixels()
