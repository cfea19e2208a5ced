# SPDX-License-Identifier: Apache-2.0
"""The cost of the convolution that all layers share (tinyet_conv2d_packed_dsp.h): its printed functions are summed up
for the sizes of a layer, and what is around them is measured part by part."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tinyet.delegates.cortex_m import conv2d, conv2d_s8
from tinyet.delegates.cortex_m.cost_models import bounds
from tinyet.delegates.cortex_m.packing import lane_pairs
from tinyet.delegates.cortex_m.rounding import Form
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.shared.cost_models import Parts, axis
from tinyet.opset import CostModel, Layouts
from tinyet.opset.cost import ByCore, Exact
from tinyet.tiles import shared, shared_rows
from tinyet.tiles.core import ARMV7E_M
from tinyet.timing.cores import CORES
from tinyet.timing.work import Work, total

_CORES = (*ARMV7E_M.cores, "cortex-m55", "cortex-m85")
"""All that execute the functions; none has an order of its own."""


def blocks_of(g: conv2d.Geometry) -> int:
    """Of three pixels, of which the last ones overlap those before."""
    return g.batch * -(-(g.out_h * g.out_w) // shared.PIXELS)


def pixels_of(g: conv2d.Geometry) -> tuple[Int64, npt.NDArray[np.bool_], Int64]:
    """Of all pixels of an image, as often as they are gathered: kernel rows in the image, whether it sees all columns
    of these side by side, and how many of them."""
    rows = axis(g.in_h, g.out_h, g.kernel_h, g.stride_h, g.dilation_h, g.pad_top)
    columns = axis(g.in_w, g.out_w, g.kernel_w, g.stride_w, g.dilation_w, g.pad_left)
    count = g.out_h * g.out_w
    starts = np.minimum(np.arange(0, count, shared.PIXELS), count - shared.PIXELS)
    which = (starts[:, None] + np.arange(shared.PIXELS)).ravel()
    whole = columns.whole[which % g.out_w] & (g.dilation_w == 1)
    return (
        rows.inside.sum(axis=1)[which // g.out_w].astype(np.int64),
        whole,
        columns.inside.sum(axis=1)[which % g.out_w].astype(np.int64),
    )


def shared_work(node: Node) -> Mapping[str, int]:
    """What is around the printed functions."""
    g, r = conv2d.geometry(node), conv2d_s8.chosen_rounding(node)
    seen, whole, columns = pixels_of(g)
    blocks, values = blocks_of(g), g.in_c * g.kernel_w
    hidden = g.batch * int((g.kernel_h - seen).sum())
    edges, taps = int(seen[~whole].sum()), int((seen * columns)[~whole].sum())
    at_edge = g.batch * int((~whole).sum())
    parts: Parts = {
        "call": 1,
        "block": blocks,
        "pixel": shared.PIXELS * blocks,
        "row above or below": hidden,
        "blank word": hidden * len(lane_pairs(values)),
        "row": g.batch * int(seen[whole].sum()),
        "pixel at an edge": at_edge,
        "word of a pixel at an edge": at_edge * (values // 4),
        "edge": g.batch * edges,
        "tap of an edge": g.batch * edges * g.kernel_w,
        "copied tap": g.batch * taps,
        "copied word": g.batch * taps * (g.in_c // 4),
        "copied byte": g.batch * taps * (g.in_c % 4),
        "odd channel": blocks * (g.out_c % 2),
        "clamped output": g.batch * g.out_h * g.out_w * g.out_c * (bounds(r.low, r.high) > 0),
    }
    return parts


@functools.cache
def _channels(core: str, steps: int, doubles: int, one_sided: bool) -> Work:
    return shared.work(CORES[core], steps, doubles, one_sided=one_sided)


@functools.cache
def _rows(core: str, values: int, rows: int) -> Work:
    return shared_rows.work(CORES[core], values, rows)


def shared_exact(node: Node, _layouts: Layouts, _core: str) -> Exact:
    """The same code on every core."""
    g, r = conv2d.geometry(node), conv2d_s8.chosen_rounding(node)
    seen, whole, _ = pixels_of(g)
    # Calls, by how many rows each has: the whole ones of a pixel together, others one by one.
    calls = np.bincount(seen[whole], minlength=2)
    calls[1] += seen[~whole].sum()
    blocks, steps = blocks_of(g), len(conv2d_s8.even_order(g)) // 2
    one_sided = r.form is Form.ONE_SIDED
    values = g.in_c * g.kernel_w
    doubles = [g.out_c // 2, *([1] if g.out_c % 2 else [])]

    def of(core: str) -> Work:
        works = [_channels(core, steps, count, one_sided).times(blocks) for count in doubles]
        works += [
            _rows(core, values, rows).times(g.batch * int(times))
            for rows, times in enumerate(calls)
            if rows and times
        ]
        return total(works)

    instructions = of(ARMV7E_M.cores[0]).instructions
    return Exact(
        instructions=instructions,
        cycles=ByCore(_CORES, lambda core: of(core).cycles),
        functions={
            shared.NAME: shared.function().code_bytes,
            shared_rows.NAME: shared_rows.function().code_bytes,
        },
        reads={
            "printed code": ARMV7E_M.instruction_bytes * instructions,
            "read weights": 4 * blocks * sum(doubles) * (2 * steps + 5),
        },
    )


COST_MODELS: Mapping[str, CostModel] = {
    conv2d_s8.SYMBOL: CostModel(shared_work, exact=shared_exact),
}
"""By the kernel's name."""
