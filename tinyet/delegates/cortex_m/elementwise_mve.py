# SPDX-License-Identifier: Apache-2.0
"""int8 sums and differences of two tensors of one shape for Helium, sixteen values at a time
(tinyet_elementwise_mve.h): one affine form with 21 fraction bits, proved exact for every pair of values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d_mve import no_helium
from tinyet.delegates.cortex_m.elementwise import INT8, refuse_walk
from tinyet.ir import Node
from tinyet.ops.shared import addition, affine
from tinyet.ops.shared.addition import Scaling
from tinyet.ops.shared.affine import INT32_LIMIT, Affine
from tinyet.opset import Call, CostModel, Kernel, Struct, library_call

SYMBOL = "tinyet_affine_s8_same_mve"
HEADERS = ("tinyet_dsp.h", "tinyet_mve.h", "tinyet_elementwise_mve.h")
SHIFT = 21
ROUNDING = 2**15 + 2**20
"""What a rounding shift by 16 and one by 5 add to the sum."""


@lru_cache(maxsize=1024)
def form_of(s: Scaling) -> Affine | None:
    """Its offset is that of the C form."""
    every = np.arange(-128, 128, dtype=np.int8)
    a, b = every[:, None], every[None, :]
    wide = a.astype(np.int64), b.astype(np.int64)
    found = affine.find_at(*wide, s.apply(a, b), s.ratios, s.clamp, SHIFT)
    if found is None:
        return None
    sums = np.abs(found.a * wide[0]) + np.abs(found.b * wide[1])
    fits = int(sums.max()) + abs(found.c) + ROUNDING <= INT32_LIMIT
    return Affine(found.a, found.b, found.c - ROUNDING, SHIFT) if fits else None


def work(node: Node) -> Mapping[str, int]:
    sixteens, last = divmod(node.output.type.count, 16)
    clamped = addition.own_scaling(node, 1).clamp != INT8
    return {
        "call": 1,
        "sixteen values": sixteens,
        "sixteen values within bounds": sixteens * int(clamped),
        "last value": last,
    }


def same(sign: int) -> Kernel:
    """For the operator in which b has this sign."""

    def refuse(node: Node, target: Target) -> str | None:
        if (reason := no_helium(target) or refuse_walk(node, "same")) is not None:
            return reason
        found = form_of(addition.own_scaling(node, sign))
        return f"no affine form of {SHIFT} fraction bits is exact for these scales" if found is None else None

    def lower(node: Node, target: Target) -> Call:
        s = addition.own_scaling(node, sign)
        found = form_of(s)
        assert found is not None
        low, high = s.clamp
        fields = {
            "count": node.output.type.count,
            "a_factor": found.a,
            "b_factor": found.b,
            "offset": found.c,
        }
        return library_call(
            SYMBOL, node, [0, 1], Struct("tinyet_affine_s8_mve_params", {**fields, "low": low, "high": high})
        )

    return Kernel(
        SYMBOL, "s8", lower, HEADERS, (f"{SYMBOL}.c",), refuse, "cortex_m", cost_model=CostModel(work)
    )


ADD_KERNELS, SUB_KERNELS = (same(1),), (same(-1),)
