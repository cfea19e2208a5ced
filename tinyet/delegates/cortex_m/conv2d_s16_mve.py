# SPDX-License-Identifier: Apache-2.0
"""Convolutions with int16 activations for Helium (tinyet_conv2d_mve.h): int8 weights are widened as they
are loaded, and a sum of 32 bits is proved to be enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import conv2d_mve
from tinyet.delegates.cortex_m.conv2d import Geometry, geometry
from tinyet.delegates.cortex_m.conv2d_mve import AROUND, HEADERS, Plan, no_helium, plan_of, vectors
from tinyet.delegates.cortex_m.groups_mve import of_one_group, refuse_groups
from tinyet.delegates.cortex_m.rounding_s16 import Rounding16, parts_refusal, rounding
from tinyet.delegates.cortex_m.summary import summary
from tinyet.ir import Node
from tinyet.ops.shared.access_orders import of_input
from tinyet.opset import AccessOrder, Call, CostModel, Exact, Kernel, Layouts
from tinyet.tiles.helium import MOST_VECTORS

SYMBOL = "tinyet_conv2d_s16_4x2_mve"
SOURCES = (AROUND, f"{SYMBOL}.c")
BITS, BYTES = 16, 2
UPPER = 31
"""Bits of a product that VQRDMULH rounds away."""


def rounding_of(node: Node) -> Rounding16:
    return rounding(node, UPPER)


def in_bytes(g: Geometry) -> Geometry:
    """With pixels' bytes in place of their values."""
    return replace(
        g,
        in_c=BYTES * g.in_c,
        in_pixel_stride=BYTES * g.in_pixel_stride,
        out_pixel_stride=BYTES * g.out_pixel_stride,
    )


def plan_in_bytes(g: Geometry) -> Plan:
    return plan_of(in_bytes(g), BITS)


def plan(node: Node) -> Plan:
    return plan_in_bytes(geometry(node))


def refuse_rounding(node: Node, target: Target) -> str | None:
    if (reason := no_helium(target)) is not None:
        return reason
    r = rounding_of(node)
    return r.refusal or parts_refusal(r, [r.weights])


def refuse(node: Node, target: Target) -> str | None:
    if (reason := no_helium(target)) is not None:
        return reason
    if (reason := refuse_groups(node)) is not None:
        return reason
    g = in_bytes(geometry(node))
    seen = g.kernel_h * g.kernel_w * vectors(g.in_c)
    if seen > MOST_VECTORS:
        return f"{seen} vectors of weights a channel, takes up to {MOST_VECTORS}"
    return refuse_rounding(of_one_group(node), target)


def lower(node: Node, target: Target) -> Call:
    return conv2d_mve.call(SYMBOL, plan(node), rounding_of(of_one_group(node)), summary(node))


@of_input
def by_blocks(node: Node) -> AccessOrder:
    return conv2d_mve.blocks_order(node, plan(node).pixels)


def work(node: Node) -> Mapping[str, int]:
    return conv2d_mve.work_of(plan(node), rounding_of(of_one_group(node)))


def exact(node: Node, _layouts: Layouts, _core: str) -> Exact:
    return conv2d_mve.exact_of(plan(node), rounding_of(of_one_group(node)))


COST_MODELS: Mapping[str, CostModel] = {SYMBOL: CostModel(work, exact=exact)}

KERNELS = (Kernel(SYMBOL, "s16", lower, HEADERS, SOURCES, refuse, "cortex_m", access_order=by_blocks),)
