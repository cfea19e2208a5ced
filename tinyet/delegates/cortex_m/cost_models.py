# SPDX-License-Identifier: Apache-2.0
"""What instructions and code of the specialised kernels grow with, loop by loop as firmware/include/tinyet_*_dsp.h have
them."""

from __future__ import annotations

from collections.abc import Mapping

from tinyet.delegates.cortex_m.pool import LEAST_PART, MOST_PIXELS
from tinyet.delegates.cortex_m.rounding import Rounding
from tinyet.ir import Node
from tinyet.ops.shared.cost_models import Parts
from tinyet.opset import CostModel

KEPT_BYTES = 64 * 16
"""Of code in the buffers of the flash whose lines were counted. Of a longer loop nothing is left for its next turn."""


def form_name(r: Rounding) -> str:
    """The name of the form in the parts' names."""
    return r.form.name.lower().replace("_", " ")


def bounds(low: int, high: int) -> int:
    """Clamps beside the saturation of int8."""
    return (low > -128) + (high < 127)


def outputs(parts: Parts, r: Rounding, count: int) -> None:
    """`count` sums that become outputs."""
    parts[f"output, {form_name(r)}"] = count
    parts["clamped output"] = count * bounds(r.low, r.high)


def form_of(parts: Parts, r: Rounding) -> None:
    """Of the code: which rounding it has, and how many bounds."""
    parts[form_name(r)] = 1
    parts["bound"] = bounds(r.low, r.high)


def over_pixels(node: Node) -> Mapping[str, int]:
    """Global pools and sums: the pixels of an image, four channels at a time; many pixels in parts."""
    channels = node.input(0).shape[-1]
    values, out = node.input(0).type.count, node.output.type.count
    images = out // channels
    pixels = values // out
    quads = images * -(-channels // 4)
    parts: Parts = {"call": 1, "image": images, "four channels": quads, "pixel": quads * pixels}
    whole, first = divmod(pixels, LEAST_PART) if pixels > MOST_PIXELS else (0, pixels)
    parts["part"] = quads * whole
    looped = first if first > 8 else 0
    parts["eight pixels"] = quads * (looped // 8 + whole * (LEAST_PART // 8))
    parts["last pixels"] = quads * int(looped % 8 != 0)
    parts["last pixel"] = quads * (looped % 8)
    return parts


def over_pixels_code(node: Node) -> Mapping[str, int]:
    channels = node.input(0).shape[-1]
    pixels = node.input(0).type.count // node.output.type.count
    first = pixels % LEAST_PART if pixels > MOST_PIXELS else pixels
    return {
        "call": 1,
        "pixel": min(first, 8),
        "loop": int(first > 8),
        "last pixels": int(first > 8 and first % 8 != 0),
        "parts": int(pixels > MOST_PIXELS),
        "odd channels": int(channels % 4 != 0),
        "several images": int(node.output.type.count > channels),
    }


COST_MODELS: Mapping[str, CostModel] = {
    "tinyet_average_s8_dsp": CostModel(over_pixels, over_pixels_code),
    "tinyet_sum_s8_dsp": CostModel(over_pixels, over_pixels_code),
}
"""By the kernels' names."""
