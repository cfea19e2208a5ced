# SPDX-License-Identifier: Apache-2.0
"""The limits of the runtimes' kernels: element types and dimensions, where these are fewer than ours.

From the kernels' own checks (tensorflow/lite/kernels, tflite-micro's tensorflow/lite/micro/kernels); the tests run what
is not refused here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tinyet.tflite import Runtime

TITLES: Mapping[Runtime, str] = {"litert": "LiteRT", "tflm": "TensorFlow Lite Micro"}


@dataclass(frozen=True)
class Limit:
    """types: of the first input; empty for all that we have. rank: the most dimensions."""

    types: tuple[str, ...] = ()
    rank: int = 8


_BASIC = ("float32", "int8")
_WITH_INT16 = (*_BASIC, "int16")
_WITH_INT32 = (*_WITH_INT16, "int32")

LIMITS: Mapping[Runtime, Mapping[str, Limit]] = {
    "litert": {
        "GATHER": Limit((*_WITH_INT32, "uint8")),
        "MIRROR_PAD": Limit(rank=6),
        "PAD": Limit(rank=5),
        "PADV2": Limit(rank=5),
        "PRELU": Limit(rank=4),
        "STRIDED_SLICE": Limit(rank=5),
        "TRANSPOSE": Limit(rank=6),
    },
    "tflm": {
        "BROADCAST_TO": Limit(rank=5),
        "CAST": Limit(_WITH_INT32),
        "CONCATENATION": Limit(_WITH_INT32),
        "GATHER": Limit(_BASIC),
        "MIRROR_PAD": Limit(_BASIC),
        "PAD": Limit(_WITH_INT32, 5),
        "PADV2": Limit(_WITH_INT32, 5),
        "PRELU": Limit(_BASIC, 4),
        "REDUCE_MAX": Limit(_BASIC),
        "REDUCE_MIN": Limit(_BASIC),
        "RESIZE_BILINEAR": Limit(_BASIC),
        "RESIZE_NEAREST_NEIGHBOR": Limit(_WITH_INT16),
        "STRIDED_SLICE": Limit(_WITH_INT32, 4),
        "TRANSPOSE": Limit(_WITH_INT16, 5),
    },
}

VERSIONS: Mapping[str, int] = {"BROADCAST_TO": 2}
"""Versions of operators that LiteRT has not from the first on."""


def complaint(runtime: Runtime, code: str, type_: str, rank: int) -> str | None:
    """The runtime's objection to an operator with this element type and rank of its first input; None for none."""
    limit = LIMITS[runtime].get(code, Limit())
    if limit.types and type_ not in limit.types:
        return f"has no {code} of {type_}"
    return f"has no {code} of {rank} dimensions, at most {limit.rank}" if rank > limit.rank else None
