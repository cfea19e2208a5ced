# SPDX-License-Identifier: Apache-2.0
"""Advice is proved: what it says is what the options that it names then give."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests import small
from tests.streamed import residual
from tinyet.advising.trials import LEAST_GAIN, Advice
from tinyet.analysis import Analysis, analyze
from tinyet.ir import DType
from tinyet.program import Program

_BOARD = "mps2_an386"


def instructions(found: Analysis) -> int:
    (plan,) = [plan for plan in found.plans if plan.chosen]
    return plan.instructions


def differences(before: Analysis, after: Analysis) -> tuple[int, int, int, int]:
    assert before.cycles is not None
    assert after.cycles is not None
    return (
        after.arena_bytes - before.arena_bytes,
        after.flash.stated - before.flash.stated,
        instructions(after) - instructions(before),
        after.cycles - before.cycles,
    )


def said(one: Advice) -> tuple[int, int, int, int | None]:
    return one.arena_bytes, one.flash_bytes, one.instructions, one.cycles


def options(do: str) -> dict[str, Any]:
    """The parameters that an advice names as options of the command line."""
    if match := re.fullmatch(r"--optimize (\w+)", do):
        return {"optimize": match[1]}
    if match := re.fullmatch(r"--max-ram (\d+)", do):
        return {"max_ram": int(match[1])}
    if match := re.fullmatch(r"--delegates ([\w,]+)", do):
        return {"delegates": match[1].split(",")}
    return {"input_rows": True} if do == "--input-rows" else {}


def helps(one: Advice, base: Analysis) -> bool:
    assert one.cycles is not None
    assert base.cycles is not None
    pairs = (
        (one.arena_bytes, base.arena_bytes),
        (one.flash_bytes, base.flash.stated),
        (one.cycles, base.cycles),
    )
    return any(-more >= LEAST_GAIN * of for more, of in pairs)


def test_what_is_said_is_what_the_options_give() -> None:
    program = residual(DType.INT8)
    base = analyze(program, _BOARD, advice=True)
    assert base.advice is not None
    kinds = [next(iter(options(one.do)), one.do) for one in base.advice]
    assert {"optimize", "input_rows", "delegates"} <= set(kinds)
    assert any(one.helps for one in base.advice)
    assert [one.helps for one in base.advice] == sorted((one.helps for one in base.advice), reverse=True)
    for one in base.advice:
        if one.refused is None and (given := options(one.do)):
            assert said(one) == differences(base, analyze(program, _BOARD, **given)), one
            assert one.helps == helps(one, base)
    assert analyze(program, _BOARD).advice is None


def test_what_is_impossible_says_why() -> None:
    found = analyze(small.program(), _BOARD, advice=True).advice
    assert found is not None
    refused = [one for one in found if one.refused is not None]
    assert all(said(one)[:3] == (0, 0, 0) and not one.helps for one in refused)


def test_a_model_in_float_and_its_ends() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    import tinyet

    torch.manual_seed(0)
    nn = torch.nn
    parts = (nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 4))
    ended, bare = (nn.Sequential(*parts, *more).eval() for more in ((nn.Softmax(dim=-1),), ()))
    example = (torch.zeros(1, 1, 8, 8),)
    batches = [torch.randn(4, 1, 8, 8)]

    def made(model: Any = ended, **given: Any) -> Program:
        return tinyet.compile(model, example, name="net", **given)

    floats = analyze(made(), _BOARD, advice=True)
    (int8,) = [one for one in floats.advice or () if one.what.startswith("int8")]
    assert int8.helps
    assert int8.arena_bytes < 0
    assert int8.flash_bytes < 0

    outside = analyze(made(calibration=batches, float_io=True), _BOARD, advice=True)
    (integers,) = [one for one in outside.advice or () if one.what.startswith("integers")]
    inside = analyze(made(calibration=batches), _BOARD, advice=True)
    assert said(integers) == differences(outside, inside)
    (softmax,) = [one for one in inside.advice or () if "softmax" in one.what]
    without = analyze(made(bare, calibration=batches), _BOARD, advice=True)
    assert said(softmax) == differences(inside, without)
    assert not [one for one in without.advice or () if "softmax" in one.what or "integers" in one.what]
