# SPDX-License-Identifier: Apache-2.0
"""Printed depthwise convolutions for Helium: bands of layers on an emulated Cortex-M55, the same as their references in
C, general and vector registers as they were, the instructions that they say; one firmware for all."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.calls import board
from tests.calls.board import Image
from tests.calls.emulated import skip_missing
from tests.delegates.test_cortex_m import layer
from tests.delegates.test_cortex_m_s16 import widened_node
from tests.delegates.test_helium import MVE
from tests.tiles import harness
from tests.tiles.harness import c_array
from tinyet.delegates import kernel_sources
from tinyet.delegates.cortex_m import conv2d_mve, conv2d_s16_mve, depthwise_mve, depthwise_s16_mve
from tinyet.delegates.cortex_m.depthwise_mve import pixels_of
from tinyet.device.device import open_device
from tinyet.errors import InternalError
from tinyet.ir import DType, Node
from tinyet.numerics import NO_CLAMP
from tinyet.ops.conv2d import Conv2d
from tinyet.tiles import helium_depthwise, helium_depthwise_s16
from tinyet.tiles.helium_depthwise_s16 import Channels16

RELU = (0.0, math.inf)
LAYERS = (
    # (height, width, channels), kernel, stride, padding, dilation, clamp
    ((25, 5, 4), (3, 3), 1, 1, 1, RELU),
    ((9, 8, 3), (3, 3), 1, 1, 1, NO_CLAMP),
    ((9, 16, 2), (3, 3), 2, 1, 1, (-900.0, 3000.0)),
    ((5, 11, 3), (1, 5), 1, 0, 1, RELU),
    ((9, 2, 2), (3, 1), 1, 1, 1, NO_CLAMP),
    ((7, 9, 2), (2, 5), 1, 0, 2, RELU),
    ((8, 9, 2), (5, 4), 1, 2, 1, (0.0, 3000.0)),
    ((9, 24, 2), (5, 5), 2, 2, 1, NO_CLAMP),
    ((9, 11, 1), (7, 7), 1, 3, 1, RELU),
    ((36, 20, 2), (3, 3), 1, 1, 1, RELU),
)
"""One output a gather and several, two of two, up to seven gathers; rows of eights and others; several bands."""


def nodes() -> list[Node]:
    """Of int8, then of int16, where the kernels take them."""
    rng, found = np.random.default_rng(5), []
    for size, kernel, stride, pad, dilation, clamp in LAYERS:
        attrs = Conv2d(
            stride_h=stride,
            stride_w=stride,
            pad_top=pad if kernel[0] > 1 else 0,
            pad_bottom=pad if kernel[0] > 1 else 0,
            pad_left=pad if kernel[1] > 1 else 0,
            pad_right=pad if kernel[1] > 1 else 0,
            dilation_h=dilation,
            dilation_w=dilation,
            groups=size[2],
            clamp=clamp,
        )
        node = layer(rng, attrs, (1, *size), (size[2], *kernel, 1)).node
        found += [node, node.replace(attrs=replace(attrs, rounding="half_even")), widened_node(node)]
    found = sorted(found, key=lambda node: node.input(0).dtype is DType.INT16)
    return [node for node in found if home(node).refuse(node, MVE) is None]


def home(node: Node) -> ModuleType:
    return depthwise_s16_mve if node.input(0).dtype is DType.INT16 else depthwise_mve


def printed_of(node: Node) -> helium_depthwise.Channels | Channels16:
    if node.input(0).dtype is DType.INT16:
        return depthwise_s16_mve.channels_of(depthwise_s16_mve.plan(node), conv2d_s16_mve.rounding_of(node))
    return depthwise_mve.channels_of(depthwise_mve.plan(node), conv2d_mve.rounding_of(node))


def stated(node: Node) -> int:
    """Instructions of the first band."""
    p = home(node).plan(node)
    return printed_of(node).instructions(p.geometry.in_c, pixels_of(p)[0], p.tiles)


def model(rng: np.random.Generator, all_nodes: list[Node]) -> str:
    """Layer 0 calls an empty function, the others a printed one for a layer's first band. The output: a word for each,
    0 where all is right."""
    arrays = [c_array("int32_t", "values", rng.integers(-(2**31), 2**31, 4096))]
    entries, before, references = [], [], []
    for i, node in enumerate(all_nodes, 1):
        call, printed = home(node).lower(node, MVE), printed_of(node)
        constants = {constant.name: constant.data for constant in call.constants}
        for name in ("weights", "vectors"):
            data = np.pad(constants[name], (0, -len(constants[name]) % 4)).view("<i4")
            arrays.append(c_array("int32_t", f"{name}_{i}", data))
        arrays.append(c_array("int32_t", f"shape_{i}", constants["shape"]))
        size = node.output.type.bytes
        arrays.append(f"static int8_t outputs_{i}[{size}], wanted_{i}[{size}];")
        arrays.append(f"static tinyet_depthwise_state_mve state_{i};")
        arrays.append(f"static uint32_t scratch_{i}[{-(-call.scratch_bytes // 4)}];")
        begin = (
            f"tinyet_depthwise_begin_mve(&state_{i}, (const int8_t *)values, %s_{i}, scratch_{i}, "
            f"(const int8_t *)weights_{i}, (const int8_t *)vectors_{i}, (const void *)shape_{i});"
        )
        before.append("  " + begin % "outputs")
        entries.append(f"{printed.name}, {{&state_{i}.job, NULL, NULL, NULL, NULL}}")
        if isinstance(printed, Channels16):
            reference = f"tinyet_depthwise_s16_mve_reference(job, {printed.exponent});"
        else:
            reference = printed.reference
        references += [
            "  {",
            f"    tinyet_depthwise_job_mve *const job = {begin % 'wanted'}",
            "    job->planes = NULL; /* addresses of patches are not offsets here */",
            f"    memset(wanted_{i}, 0x5a, sizeof wanted_{i});",
            f"    {reference}",
            f"    wrong[{i}] |= memcmp(wanted_{i}, outputs_{i}, sizeof wanted_{i}) != 0 ? 2u : 0u;",
            "  }",
        ]
        if isinstance(printed, Channels16):
            references += [
                f"  for (uint32_t p = 2; wrong[{i}] == 0u && memcmp(wanted_{i} + p, wanted_{i}, 2) == 0; p += 2u) {{",
                f"    wrong[{i}] = p == sizeof wanted_{i} - 2u ? 4u : 0u; /* all the same: nothing is tried */",
                "  }",
            ]
    names = dict.fromkeys(printed_of(node).name for node in all_nodes)
    text = "\n".join([*(f'#include "{name}.h"' for name in names), *arrays, harness.GUARDED])
    written = [f"outputs_{i}" for i in range(1, len(all_nodes) + 1)]
    return harness.model(
        "depthwise", 1 + len(entries), text + harness.calls(written, entries, references, before)
    )


@pytest.mark.emulated
@pytest.mark.parametrize("image", [board.M55, board.M55_CLANG], ids=str)
def test_outputs_registers_and_instructions(image: Image, tmp_path: Path) -> None:
    skip_missing([image])
    all_nodes = nodes()
    printed = [printed_of(node) for node in all_nodes]
    assert {(p.outputs, p.groups) for p in printed if isinstance(p, Channels16)} >= {
        (2, 1),
        (2, 2),
        (1, 2),
        (1, 3),
        (1, 4),
        (1, 7),
    }
    kernel_sources.write(
        tmp_path,
        ["tinyet_depthwise_mve.c", *(f"tinyet_depthwise_{kind}_mve.c" for kind in ("s8", "s8_rne", "s16"))],
    )
    files = [
        helium_depthwise_s16.files(p) if isinstance(p, Channels16) else helium_depthwise.files(p)
        for p in dict.fromkeys(printed)
    ]
    flags = "-Wno-cast-align", "-Wno-cast-function-type"
    elf = harness.built(image, tmp_path, files, model(np.random.default_rng(3), all_nodes), *flags)
    with open_device(image.board, elf, "qemu") as device:
        result = device.run([bytes(4)])
    said = {
        f"{i}: {node.input(0).shape} {p.name}": stated(node)
        for i, (node, p) in enumerate(zip(all_nodes, printed, strict=True))
    }
    harness.assert_as_stated(result, said)


def test_what_there_is_not() -> None:
    for outputs, groups in ((3, 1), (2, 3), (1, 8), (1, 0)):
        with pytest.raises(InternalError):
            Channels16(outputs, groups, 20, 0, False, False)
    with pytest.raises(InternalError):
        Channels16(1, 1, 16, 17, False, False)
    with pytest.raises(InternalError):
        Channels16(1, 1, 16, 0, False, False, eights=2, row=20)
    with pytest.raises(InternalError):
        Channels16(1, 1, 16, 0, False, False, tiles=2).instructions(1, 8, 3)
