# SPDX-License-Identifier: Apache-2.0
"""Printed output rows of 3x3 depthwise convolutions: on an emulated Cortex-M4 the same bytes as their reference in
C, registers as they were, the instructions that they say, the machine code that was described; one firmware for all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tests.calls import board
from tests.calls.board import Image
from tests.calls.emulated import skip_missing
from tests.tiles import channels, harness
from tinyet.cycles.code import Code, read_code
from tinyet.device.device import Device, open_device
from tinyet.errors import InternalError
from tinyet.numerics import Int64
from tinyet.tiles.core import CORTEX_M7, CORTEX_M33, PAGES, CorePage
from tinyet.tiles.depthwise import Rows
from tinyet.tiles.depthwise_code import files, function, turns_of
from tinyet.timing.cores import CORES

M4 = CORES["cortex-m4"]


def rows(outputs: int, stride: int, tile: int, **more: Any) -> Rows:
    """Of a tile of so many output rows, densely stored, row-major."""
    stride_v, dilation_v = more.get("stride_v", stride), more.get("dilation_v", 1)
    count, turn = more.get("channels", 2), more.get("turn", 1)
    base = Rows(
        outputs=outputs,
        stride=stride,
        stride_v=stride_v,
        dilation_v=dilation_v,
        row_words=(outputs + 1) // 2 + 1 if stride == 1 else outputs + 1,
        plane_rows=(tile - 1) * stride_v + 2 * dilation_v + 1,
        channels=count,
        together=1,
        alone=False,
        step=count,
        two=2 * count,
        below=outputs * count,
        pairs=False,
        turn=min(turn, outputs // 2),
        wide=True,
        exponent=12,
    )
    return replace(base, **{name: value for name, value in more.items() if name != "turn"})


def to_int16(exponent: int, low: int = -32768, high: int = 32767) -> dict[str, Any]:
    """Of outputs of int16, each beside the other channel's."""
    rounding = {"exponent": exponent, "wide": False, "low": low, "high": high}
    return {"bits": 16, "step": 6, "two": 12, "below": 160, **rounding}


TWO: dict[str, Any] = {"together": 2, "stride_v": 1}
ROWS = (
    rows(25, 1, 5, **TWO, alone=True, turn=4),
    rows(5, 1, 4, **TWO, channels=4, wide=False, zero_point=-128, turn=2),
    rows(4, 1, 3, **TWO, alone=True, exponent=None),
    rows(6, 1, 2, **TWO, turn=3, exponent=None, wide=False, zero_point=3),
    rows(1, 1, 2, **TWO, channels=4),
    # Outputs far apart, and so is the next row, behind or before.
    rows(8, 1, 4, **TWO, step=150, two=300, below=1, turn=2, low=-128, high=90),
    rows(4, 1, 2, **TWO, step=2, two=4, below=3000, turn=2, low=-100),
    rows(7, 1, 3, stride_v=2, channels=3, turn=3),
    rows(4, 1, 3, dilation_v=2, exponent=None, turn=1, low=-7, high=19),
    rows(12, 1, 1, stride_v=2, wide=False, exponent=9, zero_point=-5, turn=3),
    rows(6, 1, 2, stride_v=1, step=1100, two=2200, below=1, turn=3, exponent=None),
    rows(9, 2, 2, channels=4, turn=2),
    rows(8, 2, 3, exponent=None, turn=4),
    rows(5, 2, 2, dilation_v=2, wide=False, exponent=15, zero_point=100, turn=1),
    rows(2, 2, 1, stride_v=1, wide=False, exponent=None, zero_point=-128),
    # Pairs of channels in int16: of two, and of four, which lie in both halves of words.
    rows(6, 1, 4, **TWO, step=4, two=8, below=24, pairs=True, turn=3),
    rows(4, 2, 2, channels=4, step=4, two=16, below=32, pairs=True, turn=2),
    rows(
        4,
        1,
        3,
        **TWO,
        alone=True,
        channels=4,
        step=4,
        two=16,
        below=32,
        pairs=True,
        exponent=None,
        wide=False,
    ),
    # To int16.
    rows(25, 1, 5, **TWO, alone=True, turn=4, **to_int16(0)),
    rows(6, 1, 2, **TWO, turn=3, **to_int16(7, low=0)),
    rows(4, 1, 3, **TWO, alone=True, turn=1, **to_int16(13, low=-32767, high=32766)),
    rows(7, 1, 3, stride_v=2, turn=3, channels=3, **to_int16(1, high=0)),
    rows(9, 2, 2, turn=2, **to_int16(0, low=-1)),
    rows(8, 2, 3, turn=4, **to_int16(2)),
    rows(8, 1, 4, **TWO, turn=2, **to_int16(0) | {"step": 150, "two": 300, "below": 2}),
)
"""Both strides, weights and types of outputs, all roundings; rows of two, alone behind those, and one at a time; an odd
last output, nothing else, and none; one tile and several, outputs far apart, clamps, pairs."""
PRINTED = [(r, page) for page in PAGES for r in ROWS]


@dataclass(frozen=True)
class Drawn:
    stream: Int64
    planes: Int64
    count: int
    """Output rows."""


def drawn(r: Rows, rng: np.random.Generator) -> Drawn:
    """A stream such as the delegate packs, of which shifts are in their range, and one output row less than a tile
    has where that is of no matter."""
    stream = []
    for _ in range(r.channels):
        shift = int(rng.integers(2, 9) if r.exponent is not None else rng.integers(1, 20))
        bias, multiplier = int(rng.integers(-(2**20), 2**20)), int(rng.integers(2**30, 2**31))
        if r.wide:
            body = rng.integers(-(2**31), 2**31, r.weight_words)
            if r.stride == 1:
                body[1::2] = body[1::2] & ~0xFFFF | body[0::2] >> 16 & 0xFFFF  # both have w1
            ends = [
                bias,
                multiplier,
                int(rng.integers(-(2**20), 2**20)),
                *([] if r.exponent is not None else [shift]),
            ]
        else:
            body = rng.integers(-(2**31), 2**31, 3)
            body[0] = body[0] & ~0xFF00 | shift << 8
            ends = [bias, multiplier]
        stream += [*body, *ends]
    values = rng.integers(-128, 128, (r.channels * r.plane_rows * r.row_words, 2)) << (8 if r.to_int16 else 0)
    planes = (values[:, 0] & 0xFFFF) | values[:, 1] << 16
    fewer = r.tile > 2 and r.together == 1
    return Drawn(np.asarray(stream, np.int64), np.asarray(planes, np.int64), r.tile - fewer)


def called(r: Rows, page: CorePage, d: Drawn) -> channels.Call:
    end = (d.count - r.alone) * r.stride_v * r.row_words
    shape = "tinyet_depthwise_rows_shape_dsp"
    reference = f"tinyet_depthwise_rows{'_s16' if r.to_int16 else ''}_dsp"
    name = page.named(r.name)
    return channels.Call(name, reference, shape, r.literal, d.stream, d.planes, end, f"int{r.bits}_t")


@dataclass(frozen=True)
class Built:
    device: Device
    code: Code
    samples: list[Drawn]


@pytest.fixture(scope="module", params=[board.M4, board.M4_CLANG], ids=str)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    image: Image = request.param
    skip_missing([image])
    where = tmp_path_factory.mktemp("depthwise")
    rng = np.random.default_rng(6)
    samples = [drawn(r, rng) for r, _ in PRINTED]
    calls = [called(r, page, d) for (r, page), d in zip(PRINTED, samples, strict=True)]
    printed = (files(r, page) for r, page in PRINTED)
    elf = harness.built(image, where, printed, channels.model("depthwise", calls))
    with open_device(image.board, elf, "qemu") as device:
        yield Built(device, read_code(elf), samples)


@pytest.mark.emulated
def test_outputs_registers_and_instructions(built: Built) -> None:
    result = built.device.run([bytes(4)])
    stated = {
        page.named(r.name): function(r, page).work(M4, turns_of(r, d.count)).instructions
        for (r, page), d in zip(PRINTED, built.samples, strict=True)
    }
    harness.assert_as_stated(result, stated)


@pytest.mark.emulated
def test_decoded_code_is_what_was_described(built: Built) -> None:
    for r, page in PRINTED:
        made, name = function(r, page), page.named(r.name)
        harness.assert_described(built.code, name, made.code, page, made.code_bytes)


@pytest.mark.parametrize(
    ("page", "best"), [(CORTEX_M7, 0.8), (CORTEX_M33, 0.92)], ids=lambda value: getattr(value, "title", "")
)
def test_an_order_of_its_own_is_faster(page: CorePage, best: float) -> None:
    """Of none slower, and by so much of the function that gains most."""
    core = CORES[page.cores[0]]
    share = [
        function(r, page).work(core, turns_of(r, r.tile)).cycles
        / function(r).work(core, turns_of(r, r.tile)).cycles
        for r in ROWS
    ]
    assert max(share) <= 1
    assert min(share) <= best


def test_what_four_outputs_take() -> None:
    """Of two rows: three loads side by side and three of two words, 24 products, the two words of a rounding, and for
    each output a multiplication, a saturation and a store. Four more of a row are four times that for two channels."""
    four, eight = (function(rows(n, 1, 2, **TWO, turn=9)).work(M4, turns_of(ROWS[0], 2)) for n in (4, 8))
    assert eight.instructions - four.instructions == 4 * (3 + 3 + 24 + 1 + 3 * 4)
    assert eight.cycles - four.cycles == 4 * (4 + 3 * 3 + 24 + 3 + 3 * 4)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"stride": 3}, "a stride of 1 or 2"),
        ({"turn": 5}, "whole turns"),
        ({"stride_v": 2}, "two rows of strides and a dilation of 1"),
        ({"together": 1}, "a row alone behind rows of two"),
        ({"exponent": 32}, "an exponent of 1 to 31"),
        ({"zero_point": 1}, "no zero point where there are offsets"),
        ({"row_words": 90}, "rows within the reach of a load"),
        ({"bits": 4}, "outputs of 8 or 16 bits"),
        ({"bits": 16}, "16 bits rounded as int16 is"),
        (to_int16(3) | {"wide": True}, "16 bits rounded as int16 is"),
        (to_int16(3) | {"exponent": None}, "16 bits rounded as int16 is"),
    ],
)
def test_a_description_that_makes_no_sense(change: dict[str, Any], match: str) -> None:
    with pytest.raises(InternalError, match=match):
        replace(ROWS[0], **change)


def test_names_say_all_that_the_text_depends_on() -> None:
    base = rows(6, 1, 4)
    changes: tuple[dict[str, Any], ...] = (
        *(
            {"outputs": 4},
            {"stride": 2},
            {"stride_v": 2},
            {"dilation_v": 2},
            {"row_words": 9},
            {"plane_rows": 9},
        ),
        *(
            {"channels": 3},
            {"together": 2},
            {"together": 2, "alone": True},
            {"step": 3},
            {"two": 5},
            {"below": 3},
        ),
        *(
            {"pairs": True},
            {"turn": 3},
            {"wide": False},
            {"wide": False, "zero_point": 4},
            {"exponent": None},
        ),
        *({"exponent": 9}, {"low": -4}, {"high": 4}),
        *(to_int16(12), to_int16(0), to_int16(12, low=0), to_int16(12, high=9)),
    )
    changed = [replace(base, **change) for change in changes]
    texts = {r.name: files(r)[f"{r.name}.c"] for r in (base, *changed)}
    assert len(texts) == len(set(texts.values())) == 1 + len(changed)
