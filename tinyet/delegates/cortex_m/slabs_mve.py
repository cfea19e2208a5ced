# SPDX-License-Identifier: Apache-2.0
"""Convolutions of several groups for Helium, of int8 and int16: channels are cut into slabs of whole groups and whole
vectors, each of which is a convolution of its own, as of one group, of pixels from its first channel on. Only
weights between groups of a slab are zeros."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import conv2d_mve, conv2d_s16_mve
from tinyet.delegates.cortex_m.conv2d import Geometry, geometry
from tinyet.delegates.cortex_m.conv2d_mve import HEADERS, Plan, refuse_core, rounding_of
from tinyet.delegates.cortex_m.rounding_mve import HEADERS_EVEN, RoundingMve
from tinyet.delegates.cortex_m.rounding_s16 import Rounding16
from tinyet.delegates.cortex_m.summary import summary
from tinyet.delegates.cortex_m.wrapper import specialised_call
from tinyet.ir import DType, Node
from tinyet.ops.shared.convolution import attrs_of
from tinyet.opset import DENSE, Call, Constant, CostModel, Exact, Kernel, Layouts, LayoutSupport, signature
from tinyet.tiles.helium import LANES, MOST_VECTORS, Sums

SYMBOL, SYMBOL_EVEN = "tinyet_conv2d_s8_slabs_4x2_mve", "tinyet_conv2d_s8_rne_slabs_4x2_mve"
SYMBOL_S16 = "tinyet_conv2d_s16_slabs_4x2_mve"


@dataclass(frozen=True)
class Slabs:
    """width: input channels of each. plan: of the first one, whose outputs lie among those of all."""

    node: Node
    layouts: Layouts

    @property
    def width(self) -> int:
        return width_of(self.node)

    @property
    def count(self) -> int:
        return self.node.input(0).shape[3] // self.width

    @cached_property
    def plan(self) -> Plan:
        whole = geometry(self.node, self.layouts)
        own = replace(whole, out_c=whole.out_c // self.count)
        size = self.node.input(0).dtype.bytes
        return plan_of(
            own if size == 1 else conv2d_s16_mve.in_bytes(own), self.width * size // LANES, 8 * size
        )

    def rounding(self, slab: int) -> RoundingMve | Rounding16:
        """Of a slab's outputs, with weights of all its inputs."""
        wide = self.node.input(0).dtype is DType.INT16
        r = conv2d_s16_mve.rounding_of(self.node) if wide else rounding_of(self.node)
        outputs = self.plan.geometry.out_c
        groups = attrs_of(self.node).groups // self.count
        own = slice(slab * outputs, (slab + 1) * outputs)
        _, kernel_h, kernel_w, inputs = self.node.input(1).shape
        narrow = r.weights[own].reshape(groups, -1, kernel_h, kernel_w, inputs)
        filled = np.zeros((groups, outputs // groups, kernel_h, kernel_w, groups, inputs), np.int64)
        each = np.arange(groups)
        filled[each, :, :, :, each] = narrow
        found = replace(
            r, weights=filled.reshape(outputs, -1), bias=r.bias[own], multiplier=r.multiplier[own]
        )
        return replace(found, shift=found.shift[own]) if isinstance(found, RoundingMve) else found


def plan_of(g: Geometry, depth: int, bits: int) -> Plan:
    """Of so many vectors of each pixel."""
    channels, step = g.out_c + -g.out_c % 4, g.stride_w * g.in_c
    if g.kernel_h * g.kernel_w == 1 and g.inside:
        sums = Sums(1, 1, depth, 0, 0, step, bits=bits)
        return Plan(g, True, 0, 0, 0, conv2d_mve.pairs_of(sums, channels), channels, slab=True)
    rows, row = conv2d_mve.window_of(g)
    sums = Sums(g.kernel_h, g.kernel_w, depth, g.dilation_h * row, g.dilation_w * g.in_c, step, bits=bits)
    return Plan(g, False, 0, rows, row, conv2d_mve.pairs_of(sums, channels), channels, slab=True)


def width_of(node: Node) -> int:
    """Of whole groups and whole vectors."""
    return math.lcm(node.input(1).shape[3], LANES // node.input(0).dtype.bytes)


def refuse(node: Node, target: Target) -> str | None:
    return refuse_core(node, target) or refuse_slabs(node) or rounding_of(node).refused


def refuse_s16(node: Node, target: Target) -> str | None:
    return refuse_core(node, target) or refuse_slabs(node) or conv2d_s16_mve.refuse_rounding(node, target)


def refuse_slabs(node: Node) -> str | None:
    groups, (*_, inputs), (*_, outputs) = attrs_of(node).groups, node.input(0).shape, node.output.shape
    if groups == inputs == outputs:
        return "one channel a group"
    width = width_of(node)
    if inputs % width or inputs == width:
        return f"{groups} groups of {inputs} channels: no slabs of {width}"
    seen = math.prod(node.input(1).shape[1:3]) * width * node.input(0).dtype.bytes // LANES
    return f"{seen} vectors of weights a channel, takes up to {MOST_VECTORS}" if seen > MOST_VECTORS else None


def lower(node: Node, _target: Target, layouts: Layouts = DENSE) -> Call:
    slabs = Slabs(node, layouts)
    p, roundings = slabs.plan, [slabs.rounding(slab) for slab in range(slabs.count)]
    made = conv2d_mve.piece(p, roundings[0])
    streams = [conv2d_mve.stream(p, r)[0] for r in roundings]
    weights = Constant(
        "weights", np.concatenate(streams), "of each slab biases and weights, then the rounding"
    )
    printed = p.blocks_of(roundings[0])
    bytes_of = "%s" if p.size == 1 else "(int8_t *)(%s)"
    source = "input" if p.size == 1 else "(const int8_t *)input"
    body = (
        f"for (int32_t slab = 0; slab < {slabs.count}; slab++) {{",
        f"  const int8_t *const own = weights + slab * {len(streams[0])};",
        "  tinyet_conv2d_state_mve state;",
        f"  int8_t *const to = {bytes_of % f'output + slab * {p.geometry.out_c}'};",
        f"  const int8_t *pixels = tinyet_conv2d_begin_mve(&state, {source}, to, scratch, own,",
        "      (const tinyet_conv2d_shape_mve *)(const void *)shape);",
        "  for (; pixels != NULL; pixels = tinyet_conv2d_next_mve(&state)) {",
        f"    {printed.name}(own, pixels + slab * {p.size * slabs.width}, &state.blocks);",
        "  }",
        "}",
    )
    symbol = next(kernel.symbol for kernel in KERNELS if kernel.dtypes == signature(node))
    constants = (weights, *(c for c in made.constants if c.name != weights.name))
    element = "int8_t" if p.size == 1 else "int16_t"
    call = specialised_call(
        symbol, summary(node), constants, body, scratch_bytes=p.scratch_bytes, element=element
    )
    return replace(call, files=made.files)


def work(node: Node, layouts: Layouts = DENSE) -> Mapping[str, int]:
    slabs = Slabs(node, layouts)
    of_one = conv2d_mve.work_of(slabs.plan, slabs.rounding(0))
    return {**{part: slabs.count * times for part, times in of_one.items()}, "call": 1, "slab": slabs.count}


def exact(node: Node, layouts: Layouts, _core: str) -> Exact:
    slabs = Slabs(node, layouts)
    of_one = conv2d_mve.exact_of(slabs.plan, slabs.rounding(0))
    return replace(of_one, instructions=slabs.count * of_one.instructions)


_KERNEL = Kernel(
    SYMBOL,
    "s8",
    lower,
    HEADERS,
    conv2d_mve.SOURCES,
    refuse,
    "cortex_m",
    cost_model=CostModel(work, layout_work=work, exact=exact),
    layout_support=LayoutSupport(lower, conv2d_mve.takes),
)
KERNELS = (
    _KERNEL,
    replace(
        _KERNEL,
        symbol=SYMBOL_EVEN,
        dtypes="s8_rne",
        headers=(*HEADERS, *HEADERS_EVEN),
        sources=conv2d_mve.SOURCES_EVEN,
    ),
    replace(
        _KERNEL,
        symbol=SYMBOL_S16,
        dtypes="s16",
        sources=conv2d_s16_mve.SOURCES,
        refuse=refuse_s16,
        layout_support=None,
    ),
)
