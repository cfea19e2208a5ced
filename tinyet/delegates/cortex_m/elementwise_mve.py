# SPDX-License-Identifier: Apache-2.0
"""int8 sums and differences of two tensors of one shape for Helium, sixteen values at a time
(tinyet_elementwise_mve.h): one affine form with 21 or 22 fraction bits, proved exact for every pair of values."""

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
SHIFTS = (6, 5)
"""The second of two rounding shifts, behind one by 16: one has finer factors, one leaves sums more room."""


@lru_cache(maxsize=1024)
def form_of(s: Scaling) -> Affine | None:
    """Its offset and its shift are those of the C form."""
    every = np.arange(-128, 128, dtype=np.int8)
    a, b = every[:, None], every[None, :]
    wide = a.astype(np.int64), b.astype(np.int64)
    want = s.apply(a, b)
    for shift in SHIFTS:
        found = affine.find_at(*wide, want, s.ratios, s.clamp, 16 + shift)
        if found is None:
            continue
        sums = np.abs(found.a * wide[0]) + np.abs(found.b * wide[1])
        rounding = 2**15 + 2 ** (15 + shift)
        if int(sums.max()) + abs(found.c) + rounding <= INT32_LIMIT:
            return Affine(found.a, found.b, found.c - rounding, shift)
    return None


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
        return "no affine form of 21 or 22 fraction bits is exact for these scales" if found is None else None

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
            "shift": found.shift,
        }
        return library_call(
            SYMBOL, node, [0, 1], Struct("tinyet_affine_s8_mve_params", {**fields, "low": low, "high": high})
        )

    return Kernel(
        SYMBOL, "s8", lower, HEADERS, (f"{SYMBOL}.c",), refuse, "cortex_m", cost_model=CostModel(work)
    )


ADD_KERNELS, SUB_KERNELS = (same(1),), (same(-1),)
