# SPDX-License-Identifier: Apache-2.0
"""Between float32 and int8 or int16 for Helium and an FPU, four values at a time (tinyet_quantize_mve.h)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d_mve import no_helium
from tinyet.ir import Node
from tinyet.ops import dequantize, quantize
from tinyet.opset import Call, CostModel, Kernel

HEADERS = ("tinyet_dsp.h", "tinyet_mve.h", "tinyet_quantize.h", "tinyet_quantize_mve.h")
DTYPES = "f32_s8", "f32_s16", "s8_f32", "s16_f32"


def refuse(_node: Node, target: Target) -> str | None:
    return no_helium(target) or (None if "fpu" in target.features else f"{target.cpu} has no FPU here")


def work(node: Node) -> Mapping[str, int]:
    return {"call": 1, "four values": -(-node.output.type.count // 4)}


def for_helium(portable: Kernel) -> Kernel:
    """The same function, of another name."""
    symbol = f"{portable.symbol}_mve"

    def lower(node: Node, target: Target) -> Call:
        return replace(portable.lower(node, target), symbol=symbol)

    return Kernel(
        symbol,
        portable.dtypes,
        lower,
        HEADERS,
        (f"{symbol}.c",),
        refuse,
        "cortex_m",
        cost_model=CostModel(work),
    )


QUANTIZE_KERNELS = tuple(for_helium(k) for k in quantize.OP.kernels if k.dtypes in DTYPES)
DEQUANTIZE_KERNELS = tuple(for_helium(k) for k in dequantize.OP.kernels if k.dtypes in DTYPES)
