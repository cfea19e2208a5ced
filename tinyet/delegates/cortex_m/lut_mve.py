# SPDX-License-Identifier: Apache-2.0
"""Functions of one int8 or int16 for Helium, whose table's entries are gathered (tinyet_lut_mve.h): the calls of the
portable kernels, of other functions; those of all operators that have a table of one int8."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d_mve import no_helium
from tinyet.ir import Node
from tinyet.ops import unary
from tinyet.opset import Call, CostModel, Kernel

HEADERS = ("tinyet_dsp.h", "tinyet_mve.h", "tinyet_lut.h", "tinyet_lut_mve.h")
SOURCES = {
    "lut": "tinyet_lut_s16_mve.c",
    "sigmoid": "tinyet_sigmoid_s16_mve.c",
    "tanh": "tinyet_sigmoid_s16_mve.c",
}
"""Of the kernels tinyet_<kind>_s16_mve."""
TABLE = "tinyet_lut_s8_mve"
LANES = {"lut": 8, "sigmoid": 4, "tanh": 4}


def symbol_of(kind: str) -> str:
    return f"tinyet_{kind}_s16_mve"


def work_s8(node: Node) -> Mapping[str, int]:
    return {"call": 1, "sixteen values": -(-node.output.type.count // 16)}


def lower_s16(node: Node, target: Target, kind: str) -> Call:
    return replace(unary.lower_s16(node, target), symbol=symbol_of(kind))


def refuse_s16(node: Node, target: Target, kind: str) -> str | None:
    return no_helium(target) or unary.refuse_kind(kind)(node, target)


def work_s16(node: Node, kind: str) -> Mapping[str, int]:
    """Tables of eight values at a time have another loop for the last ones."""
    count = node.output.type.count
    if kind != "lut":
        return {"call": 1, "four values": -(-count // LANES[kind])}
    eights, last = divmod(count, LANES[kind])
    return {"call": 1, "loop": int(eights > 0), "eight values": eights, "last values": int(last > 0)}


def gathered(kernels: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """Of an operator's portable kernels those by a table of one int8, for Helium."""

    def of(kernel: Kernel) -> Kernel:
        def lower(node: Node, target: Target) -> Call:
            return replace(kernel.lower(node, target), symbol=TABLE)

        def refuse(node: Node, target: Target) -> str | None:
            return no_helium(target) or kernel.refuse(node, target)

        sources = (f"{TABLE}.c",)
        return Kernel(
            TABLE, kernel.dtypes, lower, HEADERS, sources, refuse, "cortex_m", cost_model=CostModel(work_s8)
        )

    return tuple(of(kernel) for kernel in kernels if kernel.symbol == "tinyet_lut_s8")


KERNELS = (
    *gathered(unary.OP.kernels),
    *(
        Kernel(
            symbol_of(kind),
            "s16",
            partial(lower_s16, kind=kind),
            HEADERS,
            (source,),
            partial(refuse_s16, kind=kind),
            "cortex_m",
            cost_model=CostModel(partial(work_s16, kind=kind)),
        )
        for kind, source in SOURCES.items()
    ),
)
