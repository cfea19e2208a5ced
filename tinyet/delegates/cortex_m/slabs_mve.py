# SPDX-License-Identifier: Apache-2.0
"""int8 convolutions of many groups for Helium: channels are cut into slabs of whole groups and whole vectors, each of
which is a convolution of its own, as of one group, of the pixels' bytes from its first channel on. Only weights between
groups of a slab are zeros."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import conv2d_mve
from tinyet.delegates.cortex_m.conv2d import Geometry, geometry
from tinyet.delegates.cortex_m.conv2d_mve import HEADERS, Plan, refuse_core, rounding_of
from tinyet.delegates.cortex_m.rounding_mve import HEADERS_EVEN, RoundingMve
from tinyet.delegates.cortex_m.summary import summary
from tinyet.delegates.cortex_m.wrapper import specialised_call
from tinyet.ir import Node
from tinyet.ops.shared.convolution import attrs_of
from tinyet.opset import DENSE, Call, Constant, CostModel, Exact, Kernel, Layouts, LayoutSupport
from tinyet.tiles.helium import LANES, MOST_VECTORS, Sums

SYMBOL, SYMBOL_EVEN = "tinyet_conv2d_s8_slabs_4x2_mve", "tinyet_conv2d_s8_rne_slabs_4x2_mve"


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
        return plan_of(replace(whole, out_c=whole.out_c // self.count), self.width // LANES)

    def rounding(self, slab: int) -> RoundingMve:
        """Of a slab's outputs, with weights of all its inputs."""
        r, outputs = rounding_of(self.node), self.plan.geometry.out_c
        groups = attrs_of(self.node).groups // self.count
        own = slice(slab * outputs, (slab + 1) * outputs)
        _, kernel_h, kernel_w, inputs = self.node.input(1).shape
        narrow = r.weights[own].reshape(groups, -1, kernel_h, kernel_w, inputs)
        wide = np.zeros((groups, outputs // groups, kernel_h, kernel_w, groups, inputs), np.int64)
        each = np.arange(groups)
        wide[each, :, :, :, each] = narrow
        return replace(
            r,
            weights=wide.reshape(outputs, -1),
            bias=r.bias[own],
            multiplier=r.multiplier[own],
            shift=r.shift[own],
        )


def plan_of(g: Geometry, depth: int) -> Plan:
    """Of so many vectors of each pixel."""
    channels, step = g.out_c + -g.out_c % 4, g.stride_w * g.in_c
    if g.kernel_h * g.kernel_w == 1 and g.inside:
        sums = Sums(1, 1, depth, 0, 0, step)
        return Plan(g, True, 0, 0, 0, conv2d_mve.pairs_of(sums, channels), channels, slab=True)
    rows, row = conv2d_mve.window_of(g)
    sums = Sums(g.kernel_h, g.kernel_w, depth, g.dilation_h * row, g.dilation_w * g.in_c, step)
    return Plan(g, False, 0, rows, row, conv2d_mve.pairs_of(sums, channels), channels, slab=True)


def width_of(node: Node) -> int:
    """Of whole groups and whole vectors."""
    return math.lcm(node.input(1).shape[3], LANES)


def refuse(node: Node, target: Target) -> str | None:
    if (reason := refuse_core(node, target)) is not None:
        return reason
    groups, (*_, inputs), (*_, outputs) = attrs_of(node).groups, node.input(0).shape, node.output.shape
    if groups == inputs == outputs:
        return "one channel a group"
    width = width_of(node)
    if inputs % width or inputs == width:
        return f"{groups} groups of {inputs} channels: no slabs of {width}"
    seen = math.prod(node.input(1).shape[1:3]) * width // LANES
    if seen > MOST_VECTORS:
        return f"{seen} vectors of weights a channel, takes up to {MOST_VECTORS}"
    return rounding_of(node).refused


def lower(node: Node, _target: Target, layouts: Layouts = DENSE) -> Call:
    slabs = Slabs(node, layouts)
    p, roundings = slabs.plan, [slabs.rounding(slab) for slab in range(slabs.count)]
    made = conv2d_mve.piece(p, roundings[0])
    streams = [conv2d_mve.stream(p, r)[0] for r in roundings]
    weights = Constant(
        "weights", np.concatenate(streams), "of each slab biases and weights, then the rounding"
    )
    printed = p.blocks_of(roundings[0])
    body = (
        f"for (int32_t slab = 0; slab < {slabs.count}; slab++) {{",
        f"  const int8_t *const own = weights + slab * {len(streams[0])};",
        "  tinyet_conv2d_state_mve state;",
        f"  int8_t *const to = output + slab * {p.geometry.out_c};",
        "  const int8_t *pixels = tinyet_conv2d_begin_mve(&state, input, to, scratch, own,",
        "      (const tinyet_conv2d_shape_mve *)(const void *)shape);",
        "  for (; pixels != NULL; pixels = tinyet_conv2d_next_mve(&state)) {",
        f"    {printed.name}(own, pixels + slab * {slabs.width}, &state.blocks);",
        "  }",
        "}",
    )
    symbol = SYMBOL_EVEN if roundings[0].even else SYMBOL
    constants = (weights, *(c for c in made.constants if c.name != weights.name))
    call = specialised_call(symbol, summary(node), constants, body, scratch_bytes=p.scratch_bytes)
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
)
