# SPDX-License-Identifier: Apache-2.0
"""Layer normalisation of int8 for Helium, four values at a time (tinyet_layer_norm_mve.h): normalised values and
weights are shifted to the left so that VQRDMULH is the product's rounding."""

from __future__ import annotations

from collections.abc import Mapping

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d_mve import no_helium, vectors
from tinyet.ir import Node
from tinyet.ops import layer_norm
from tinyet.ops.layer_norm import NORMAL_BITS, count_of
from tinyet.opset import Call, Constant, CostModel, Kernel, Pointer, Struct, library_call

SYMBOL = "tinyet_layer_norm_s8_mve"
HEADERS = ("tinyet_dsp.h", "tinyet_mve.h", "tinyet_layer_norm.h", "tinyet_layer_norm_mve.h")
BOTH = 31 - NORMAL_BITS
"""Bits by which a product of both is shifted to the left."""


def weight_bits(count: int) -> int:
    """Those of weights: the power of two is above the root of the count and at most twice that, so that neither these,
    below 2**29 over the root, nor normalised values, below 2**20 times the root, leave 31 bits."""
    return next(bits for bits in range(BOTH) if 4**bits > count)


def refuse(node: Node, target: Target) -> str | None:
    return no_helium(target)


def lower(node: Node, _target: Target) -> Call:
    count, constants = count_of(node), layer_norm.integers(node)
    left = weight_bits(count)
    params = Struct(
        "tinyet_layer_norm_s8_mve_params",
        {
            "weight": Pointer("weight"),
            "bias": Pointer("bias"),
            "epsilon": constants.epsilon,
            "rows": node.output.type.count // count,
            "count": count,
            "half_fraction": constants.half_fraction,
            "shift": constants.shift,
            "left": BOTH - left,
            "in_zero_point": node.input(0).type.zero_point,
            "out_zero_point": node.output.type.zero_point,
        },
    )
    half = (1 << constants.shift) >> 1
    arrays = (
        Constant("weight", (constants.weight << left).astype("int32")),
        Constant("bias", (constants.bias + half).astype("int32")),
    )
    return library_call(SYMBOL, node, [0], params, arrays)


def work(node: Node) -> Mapping[str, int]:
    count = count_of(node)
    rows = node.output.type.count // count
    return {
        "call": 1,
        "row": rows,
        "sixteen values": rows * vectors(count),
        "four values": rows * -(-count // 4),
    }


KERNELS = (
    Kernel(SYMBOL, "s8", lower, HEADERS, (f"{SYMBOL}.c",), refuse, "cortex_m", cost_model=CostModel(work)),
)
