# SPDX-License-Identifier: Apache-2.0
"""Printed output rows of depthwise convolutions of any size: on an emulated Cortex-M4 the same bytes as their reference
in C, registers as they were, the instructions that they say, the machine code that was described; one firmware for
all."""

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
from tinyet.tiles.core import PAGES, CorePage
from tinyet.tiles.form import Form
from tinyet.tiles.windows import Runs, Windows
from tinyet.tiles.windows_code import code_of, files, made
from tinyet.tiles.windows_forms import LARGEST_KEPT, best, forms, least_cycles

ROWS = 3


def windows(outputs: int, taps: int, kernel_rows: int, **more: Any) -> Windows:
    """Of output rows that are stored densely; of one block where nothing else is said."""
    stride, dilation = more.get("stride", 1), more.get("dilation", 1)
    whole = kernel_rows * taps if kernel_rows == 1 or more.get("rest") else taps
    part = (outputs - 1) * stride // dilation + 2 * ((whole + more.get("rest", 0) + 1) // 2)
    part += part % 2
    row = dilation * part // 2
    base = Windows(
        outputs=outputs,
        taps=taps,
        kernel_rows=kernel_rows,
        rest=0,
        stride=stride,
        dilation=dilation,
        part=part,
        kernel_row=row,
        next_row=row,
        plane=(ROWS + kernel_rows) * row,
        channels=2,
        step=2,
        below=2 * outputs,
        form=Form.ONE_SIDED,
        exponent=12,
        zero_point=-128,
        low=-128,
        high=127,
        block=outputs,
        turn=kernel_rows,
        by_taps=False,
    )
    return replace(base, **more)


def to_int16(exponent: int, low: int = -32768, high: int = 32767) -> dict[str, Any]:
    """Of outputs of int16, each beside the other channel's."""
    rounding = {"exponent": exponent, "zero_point": 0, "low": low, "high": high}
    return {"bits": 16, "step": 6, "below": 96, **rounding}


TWO_SIDED: dict[str, Any] = {"form": Form.TWO_SIDED, "zero_point": 3}
PLAIN: dict[str, Any] = {"form": Form.PLAIN, "zero_point": -7}
WINDOWS = (
    windows(12, 5, 5, block=6, by_taps=True),
    windows(11, 5, 3, block=4, turn=1, **TWO_SIDED),
    windows(7, 3, 3, block=2, **PLAIN, channels=3),
    windows(9, 1, 4, block=4, turn=2, **PLAIN, low=-100, high=90),
    windows(1, 1, 1),
    windows(5, 2, 2, block=5, plane=0, channels=3, by_taps=True),
    windows(9, 4, 2, stride=2, block=4, **TWO_SIDED, low=-3),
    windows(10, 7, 2, stride=2, block=3, turn=1, high=100),
    windows(8, 3, 1, stride=3, block=2),
    windows(5, 4, 2, stride=4, block=1, by_taps=True, **TWO_SIDED),
    # A long row, in parts.
    windows(6, 8, 3, rest=5, kernel_row=4, block=4, turn=1),
    windows(4, 8, 2, rest=1, kernel_row=4, block=4, **PLAIN),
    # Dilated: runs alike, of two lengths, and each of its own; one that begins in the upper half of a word.
    windows(12, 3, 1, dilation=2, block=4),
    windows(11, 3, 2, dilation=4, block=2, by_taps=True, **TWO_SIDED),
    windows(7, 4, 1, dilation=2, stride=3, block=2),
    windows(9, 3, 1, dilation=4, stride=6, block=4, **PLAIN),
    windows(3, 2, 1, dilation=5, block=1),
    # Outputs too far apart for one address.
    windows(4, 3, 2, step=1500, below=1, block=4),
    windows(6, 3, 1, step=2100, below=1, block=2, **TWO_SIDED),
    # Kernel rows too far from one another.
    windows(3, 3, 2, kernel_row=1100, next_row=2, block=2, turn=1),
    # To int16.
    windows(12, 5, 5, block=6, by_taps=True, **to_int16(0)),
    windows(11, 5, 3, block=4, turn=1, **to_int16(5)),
    windows(7, 3, 3, block=2, channels=3, **to_int16(13, low=0)),
    windows(9, 4, 2, stride=2, block=4, **to_int16(0, low=-32767, high=32766)),
    windows(5, 2, 2, block=5, plane=0, channels=3, **to_int16(1, low=0, high=0)),
    windows(6, 8, 3, rest=5, kernel_row=4, block=4, turn=1, **to_int16(2, low=-1, high=20000)),
    windows(11, 3, 2, dilation=4, block=2, by_taps=True, **to_int16(3)),
    windows(4, 3, 2, block=4, **to_int16(0) | {"step": 1500, "below": 2}),
)
"""All roundings and types of outputs, straddling pairs of taps and none, blocks with and without a rest, loops over
kernel rows, parts of rows, planes that channels share."""
PRINTED = [(w, page) for page in PAGES for w in WINDOWS]


@dataclass(frozen=True)
class Drawn:
    stream: Int64
    planes: Int64


def drawn(w: Windows, rng: np.random.Generator) -> Drawn:
    """A stream such as the delegate packs, of which shifts are in their range."""
    stream = []
    for _ in range(w.channels):
        shifts = {Form.ONE_SIDED: (2, 9), Form.TWO_SIDED: (1, 20), Form.PLAIN: (-31, 8)}[w.form]
        shift = int(rng.integers(*shifts))
        multiplier = int(rng.integers(2**30, 2**31)) * (2 if w.form is Form.PLAIN else 1)
        weights = rng.integers(-(2**31), 2**31, w.weight_words)
        ends = [int(rng.integers(-(2**20), 2**20)), multiplier, shift]
        stream += [*weights, *(ends[:2] if w.to_int16 else ends)]
    count = w.channels * w.plane if w.plane else (ROWS + w.kernel_rows) * w.next_row
    far = w.kernel_rows * w.kernel_row + w.part * w.dilation
    values = rng.integers(-128, 128, (count + far, 2)) << (8 if w.to_int16 else 0)
    return Drawn(np.asarray(stream, np.int64), (values[:, 0] & 0xFFFF) | values[:, 1] << 16)


def called(w: Windows, page: CorePage, d: Drawn) -> channels.Call:
    shape = "tinyet_depthwise_windows_shape_dsp"
    reference = f"tinyet_depthwise_windows{'_s16' if w.to_int16 else ''}_dsp"
    name, end = page.named(w.name), ROWS * w.next_row
    return channels.Call(name, reference, shape, w.literal, d.stream, d.planes, end, f"int{w.bits}_t")


@dataclass(frozen=True)
class Built:
    device: Device
    code: Code


@pytest.fixture(scope="module", params=[board.M4, board.M4_CLANG], ids=str)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    image: Image = request.param
    skip_missing([image])
    where = tmp_path_factory.mktemp("windows")
    rng = np.random.default_rng(7)
    calls = [called(w, page, drawn(w, rng)) for w, page in PRINTED]
    printed = (files(w, page) for w, page in PRINTED)
    elf = harness.built(image, where, printed, channels.model("windows", calls))
    with open_device(image.board, elf, "qemu") as device:
        yield Built(device, read_code(elf))


@pytest.mark.emulated
def test_outputs_registers_and_instructions(built: Built) -> None:
    result = built.device.run([bytes(4)])
    stated = {page.named(w.name): made(w, page).work("cortex-m4", ROWS).instructions for w, page in PRINTED}
    harness.assert_as_stated(result, stated)


@pytest.mark.emulated
def test_decoded_code_is_what_was_described(built: Built) -> None:
    for w, page in PRINTED:
        nest, name = made(w, page).nest, page.named(w.name)
        harness.assert_described(built.code, name, nest.code, page, nest.code_bytes)


def test_what_a_block_takes() -> None:
    """Six outputs of 5x5: of each kernel row five words of inputs, four of weights, and three products an output; the
    bias, the two words of a rounding, and for each output a multiplication, a saturation and a store."""
    two, three = (made(windows(n, 5, 5, block=6)).work("cortex-m4", 1) for n in (12, 18))
    loop = 1 + 3  # the pointer to inputs; again?
    assert three.instructions - two.instructions == 2 * (1 + 5 * (5 + 4 + 3 * 6) + 1 + 3 * 6 + loop)


def test_runs() -> None:
    assert windows(11, 3, 1, dilation=4).runs == (Runs(0, 6, 3, 3, 0), Runs(18, 0, 2, 1, 3))
    assert windows(6, 3, 1, stride=2).runs == (Runs(0, 0, 6, 1, 0),)


def test_the_best_of_much_code_has_a_loop() -> None:
    small, large = best(windows(12, 5, 5)), best(windows(12, 11, 11))
    assert (small.block, small.turn, large.turn) == (6, 5, 1)


@pytest.mark.parametrize("w", [WINDOWS[0], WINDOWS[2], WINDOWS[7], WINDOWS[10], windows(20, 6, 2)])
def test_no_form_is_cheaper_than_the_best(w: Windows) -> None:
    prices = {}
    for form in forms(replace(w, channels=1)):
        try:
            function = made(form)
        except InternalError:
            continue
        cycles = function.work("cortex-m4", 4).cycles
        assert least_cycles(code_of(form)) <= cycles
        size = function.nest.code_bytes
        prices[form.block, form.turn, form.by_taps] = size > LARGEST_KEPT, size * cycles**8
    found = best(w)
    assert prices[found.block, found.turn, found.by_taps] == min(prices.values())


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"taps": 0}, "an output, a tap, a kernel row, and a channel"),
        ({"turn": 2}, "whole turns"),
        ({"exponent": 32}, "an exponent of 1 to 31"),
        ({"part": 17}, "parts of whole words"),
        ({"block": 5}, "blocks of whole words"),
        ({"bits": 4}, "outputs of 8 or 16 bits"),
        ({"bits": 16}, "16 bits rounded as int16 is"),
        (to_int16(14), "16 bits rounded as int16 is"),
        (to_int16(3, low=1), "16 bits rounded as int16 is"),
    ],
)
def test_a_description_that_makes_no_sense(change: dict[str, Any], match: str) -> None:
    with pytest.raises(InternalError, match=match):
        replace(WINDOWS[0], **change)


def test_too_many_taps() -> None:
    with pytest.raises(InternalError, match="too many taps"):
        made(windows(2, 40, 40, turn=1))


def test_names_say_all_that_the_text_depends_on() -> None:
    base = windows(12, 4, 4, block=4)
    changes: tuple[dict[str, Any], ...] = (
        *(
            {"outputs": 14},
            {"taps": 5},
            {"kernel_rows": 8, "turn": 4},
            {"rest": 2},
            {"stride": 2},
            {"dilation": 2},
        ),
        *({"kernel_row": 90}, {"next_row": 90}, {"plane": 1}, {"channels": 3}, {"step": 9}, {"below": 9}),
        *({"dilation": 2, "part": 18}, {"form": Form.PLAIN}, {"form": Form.TWO_SIDED}, {"exponent": 9}),
        *({"zero_point": 4}, {"low": -4}, {"high": 4}, {"block": 6}, {"turn": 2}, {"by_taps": True}),
        *(to_int16(12), to_int16(0), to_int16(12, low=0), to_int16(12, high=9)),
    )
    changed = [replace(base, **change) for change in changes]
    texts = {w.name: files(w)[f"{w.name}.c"] for w in (base, *changed)}
    assert len(texts) == len(set(texts.values())) == 1 + len(changed)
