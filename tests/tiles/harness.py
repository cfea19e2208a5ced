# SPDX-License-Identifier: Apache-2.0
"""A firmware of functions that a test calls one by one: the C of the model that the harness runs."""

from __future__ import annotations

import numpy as np

from tinyet.ir import Array

_BEFORE = """
#include <string.h>
#include "tinyet_harness.h"

TINYET_ALIGNED(16) static uint8_t arena[4 + 4 * %(count)d];
static uint32_t *const wrong = (uint32_t *)(void *)(arena + 4);
"""
_BEHIND = """
static const tinyet_io ins[] = {{0u, 4u}};
static const tinyet_io outs[] = {{4u, 4u * %(count)du}};

const tinyet_model tinyet_harness_model = {
    "%(name)s", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    TINYET_ABI_VERSION, arena, sizeof arena, %(count)du, 1u, ins, 1u, outs, run, 0u, NULL, NULL, 0u, NULL, NULL, NULL,
    NULL, NULL,
};
"""


def model(name: str, count: int, text: str) -> str:
    """With `count` layers, and an output of as many words: `wrong`, which text's `run` writes."""
    facts = {"name": name, "count": count}
    return _BEFORE % facts + text + _BEHIND % facts


def c_array(kind: str, name: str, values: Array) -> str:
    words = values.astype(np.int64) % 2**32
    cast = "" if kind == "uint32_t" else f"({kind})"
    return f"static const {kind} {name}[] = {{{', '.join(f'{cast}{v}u' for v in words)}}};"
