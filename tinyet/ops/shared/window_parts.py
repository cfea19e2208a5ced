# SPDX-License-Identifier: Apache-2.0
"""Parts of kernels that write what windows of pixels see: inputs by themselves, or with those of other pixels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.shared import counting
from tinyet.ops.shared.convolution import attrs_of
from tinyet.ops.shared.cost_models import Axis, axes

Parts = counting.Parts


def copied(parts: Parts, times: int, count: int, at_once: int) -> None:
    """So many pieces of `count` inputs, so many of them in a turn of the loop."""
    counting.add(parts, "piece", times)
    counting.add(parts, "inputs of a turn", times * (count // at_once))
    counting.add(parts, "input", times * (count % at_once))


def filled(parts: Parts, times: int, count: int) -> None:
    counting.add(parts, "blank piece", times)
    counting.add(parts, "blank input", times * count)


def gathered(parts: Parts, node: Node, at_once: int) -> None:
    """The windows of all pixels."""
    a, (_, kernel_h, kernel_w, count) = attrs_of(node), node.input(1).shape
    rows, columns = axes(node, a, kernel_h, kernel_w)
    batch, whole = node.input(0).shape[0], columns.whole & (a.dilation_w == 1)
    edge = columns.inside[~whole]
    there, tap_rows = int(edge.sum()), batch * rows.in_image
    copied(parts, tap_rows * int(whole.sum()), kernel_w * count, at_once)
    copied(parts, tap_rows * there, count, at_once)
    filled(parts, tap_rows * (edge.size - there), count)
    filled(parts, batch * rows.outside * columns.positions, kernel_w * count)
    counting.add(parts, "window row", batch * rows.positions * columns.positions * kernel_h)


def pointwise(node: Node) -> bool:
    """Whether a pixel sees its own inputs, and nothing else."""
    a, (_, kernel_h, kernel_w, _) = attrs_of(node), node.input(1).shape
    same = node.input(0).shape[1:3] == node.output.shape[1:3] and a.stride_h == a.stride_w == 1
    return same and (kernel_h, kernel_w) == (1, 1) and a.pad_top == a.pad_left == 0


def gathered_in_twos(parts: Parts, node: Node, together: int = 2, *, padded: bool = False) -> None:
    """The same of two pixels at once where both windows lie in the image, or of more; else of each by itself, whose
    rows are what lies left of the image, in it, and right of it. padded: all lie in it."""
    a, (_, kernel_h, kernel_w, count) = attrs_of(node), node.input(1).shape
    gaps = (a.dilation_h != 1, a.dilation_w != 1)
    rows, columns = axes(node, a, kernel_h, kernel_w)
    if padded:
        rows, columns = Axis(np.ones_like(rows.inside)), Axis(np.ones_like(columns.inside))
    windows_in_twos(parts, (rows, columns), node.input(0).shape[0], count, gaps, together)


def windows_in_twos(
    parts: Parts,
    along: tuple[Axis, Axis],
    batch: int,
    count: int,
    gaps: tuple[bool, bool] = (False, False),
    together: int = 2,
) -> None:
    """along: rows and columns of the windows; count: of channels; gaps: whether there are such between taps."""
    pixel = np.arange(along[0].positions * along[1].positions)
    whole = whole_windows(along, pixel, any(gaps))
    both = np.append(whole, [False] * (-len(pixel) % together)).reshape(-1, together).all(axis=1)
    windows_together(parts, along, batch * int(both.sum()), count, "two")
    windows_apart(parts, along, batch, count, gaps, pixel[~np.repeat(both, together)[: len(pixel)]])


def windows_in_threes(parts: Parts, node: Node) -> None:
    """Those of three pixels, of which the last is there again where there are fewer."""
    a, (_, kernel_h, kernel_w, count) = attrs_of(node), node.input(1).shape
    gaps, batch = (a.dilation_h != 1, a.dilation_w != 1), node.input(0).shape[0]
    along = axes(node, a, kernel_h, kernel_w)
    pixel = np.arange(along[0].positions * along[1].positions)
    pixel = np.append(pixel, pixel[-1:].repeat(-len(pixel) % 3))
    if pointwise(node):
        times = batch * len(pixel) // 3
        counting.add(parts, "row of three", times)
        counting.add(parts, "four inputs of three", times * (count // 4))
        counting.add(parts, "input of three", times * (count % 4))
        return
    whole = whole_windows(along, pixel, any(gaps)).reshape(-1, 3).all(axis=1)
    first, second, third = pixel.reshape(-1, 3).T
    in_row = (first // along[1].positions == third // along[1].positions) & (second != third)
    windows_together(parts, along, batch * int(whole.sum()), count, "three")
    counting.add(parts, "three windows not of a row", batch * int((whole & ~in_row).sum()))
    windows_apart(parts, along, batch, count, gaps, pixel[~np.repeat(whole, 3)])


def windows_in_fives(parts: Parts, node: Node, *, padded: bool) -> None:
    """Those of five pixels of a row, or of some that are copied first, each with what lies beside the image. padded:
    all lie in it."""
    (_, kernel_h, kernel_w, count), batch = node.input(1).shape, node.input(0).shape[0]
    along = axes(node, attrs_of(node), kernel_h, kernel_w)
    if padded:
        along = Axis(np.ones_like(along[0].inside)), Axis(np.ones_like(along[1].inside))
    out_w = along[1].positions
    pixel = np.arange(along[0].positions * out_w)
    times = -(-len(pixel) // 5)

    def gathered(calls: int, inputs: int) -> None:
        counting.add(parts, "row of five", batch * calls)
        counting.add(parts, "four inputs of five", batch * calls * (inputs // 4))
        counting.add(parts, "input of five", batch * calls * (inputs % 4))

    if pointwise(node):
        counting.add(parts, "five pixels", batch * times)
        gathered(times, count)
        return
    fives = pixel[: len(pixel) // 5 * 5].reshape(-1, 5)
    whole = whole_windows(along, fives, False).all(axis=1) & (fives[:, 0] // out_w == fives[:, 4] // out_w)
    together = int(whole.sum())
    counting.add(parts, "five windows", batch * together)
    gathered(together * kernel_h, kernel_w * count)
    counting.add(parts, "five windows apart", batch * (times - together))
    gathered(times - together, kernel_h * kernel_w * count)
    single = np.append(fives[~whole].ravel(), pixel[fives.size :])
    windows_apart(parts, along, batch, count, (False, False), single)


def whole_windows(along: tuple[Axis, Axis], pixel: Int64, gaps: bool) -> npt.NDArray[np.bool_]:
    """Which pixels' windows lie in the image; of those with gaps, none counts."""
    rows, columns = along
    inside = rows.whole[pixel // columns.positions] & columns.whole[pixel % columns.positions]
    return np.asarray(inside & (not gaps), np.bool_)


def windows_together(parts: Parts, along: tuple[Axis, Axis], times: int, count: int, name: str) -> None:
    """Windows of several pixels at once."""
    rows, columns = along
    taps = columns.taps * count
    counting.add(parts, f"{name} windows", times)
    counting.add(parts, f"row of {name}", times * rows.taps)
    counting.add(parts, f"four inputs of {name}", times * rows.taps * (taps // 4))
    counting.add(parts, f"input of {name}", times * rows.taps * (taps % 4))


def windows_apart(
    parts: Parts,
    along: tuple[Axis, Axis],
    batch: int,
    count: int,
    gaps: tuple[bool, bool],
    single: Int64,
) -> None:
    """Windows of pixels by themselves."""
    rows, columns = along
    kernel_h, kernel_w, out_w = rows.taps, columns.taps, columns.positions
    there = rows.inside.sum(axis=1)[single // out_w]
    inside = columns.inside.sum(axis=1)[single % out_w]
    counting.add(parts, "window", batch * len(single))
    counting.add(parts, "row outside", batch * int((kernel_h - there).sum()))
    counting.add(parts, "row", batch * int(there.sum()) * (not gaps[1]))
    counting.add(parts, "tap of a row", batch * int(there.sum()) * kernel_w * gaps[1])
    blank = (kernel_h - there) * kernel_w + there * (kernel_w - inside)
    counting.add(parts, "blank input", batch * int(blank.sum()) * count)
    if not gaps[1]:
        fours, rest = there * (inside * count // 4), there * (inside * count % 4)
    else:
        fours, rest = there * inside * (count // 4), there * inside * (count % 4)
    counting.add(parts, "four inputs", batch * int(fours.sum()))
    counting.add(parts, "input", batch * int(rest.sum()))
