# SPDX-License-Identifier: Apache-2.0
"""Gates of recurrent layers on an AVR, whose assembly drops what cannot change a result: numbers near every edge of
that, which layers rarely have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.emulated.avr import FLAGS, HZ
from tests.emulated.simavr import build_runner, execute
from tests.ops.objects import run as run_tool
from tinyet import assets
from tinyet.ir import Array
from tinyet.numerics import Int64, high_mul, requantize, round_shift
from tinyet.ops.shared import gates

pytestmark = pytest.mark.emulated

UNO = "atmega328p"


def test_gates(tmp_path: Path) -> None:
    """For numbers of 16 bits from the least to the largest, and all near zero."""
    build_runner()
    elf, include = tmp_path / "gates.elf", assets.path("firmware") / "include"
    source = str(Path(__file__).with_name("avr_gates.c"))
    run_tool(["avr-gcc", f"-mmcu={UNO}", *FLAGS, "-I", str(include), source, "-o", str(elf)])
    got = np.frombuffer(execute(elf, UNO, HZ, 60.0).output, np.int16).reshape(-1, 2, 64)
    far = -32768 + 7 * np.arange((len(got) - 7) * 64, dtype=np.int64).reshape(-1, 64)
    x = np.concatenate([far, np.tile(np.arange(-32, 32), (7, 1))])
    assert far.max() > 32600
    np.testing.assert_array_equal(got[:, 0], gates.sigmoid(x))
    for number, (values, found) in enumerate(zip(x, got[:, 1], strict=True)):
        np.testing.assert_array_equal(found, gates.tanh(values, number % 7))


def test_states_of_gates(tmp_path: Path) -> None:
    """Of drawn gates, by factors of all sizes, and where bounds of what is left out decide: states of gated units and
    LSTMs, of plain units, and cells."""
    build_runner()
    elf, include = tmp_path / "states.elf", assets.path("firmware") / "include"
    source = str(Path(__file__).with_name("avr_gate_states.c"))
    run_tool(["avr-gcc", f"-mmcu={UNO}", *FLAGS, "-I", str(include), source, "-o", str(elf)])
    wrong = np.frombuffer(execute(elf, UNO, HZ, 60.0).output, np.uint16)
    np.testing.assert_array_equal(wrong, [0, 0, 0, 0])


SHIFTS = (-1, 1, 2, 3, 5, 8, 9, 14, 20, 31)
"""Of sums, to the right."""
ROWS = 64
DECIDED = {5: (1142446333, 168693), 9: (1711003359, 13816)}
"""By shift a multiplier and a sum, of 24 bits and of 16, that both roundings carry where the bounds of what is left out
just say that they may."""


def sums_of(multiplier: int, shift: int, rng: np.random.Generator) -> Int64:
    """int64 (64,): of any size up to 24 bits, near ties of the second rounding, and of the first where that decides the
    second, of 16 bits, too; beyond 24 bits, and beyond 16 behind them."""
    factor = multiplier / 2.0 ** (31 + shift)
    ties = np.rint((rng.integers(-32000, 32000, 9) + 0.5) / factor) + rng.integers(-1, 2, 9)
    drawn = rng.integers(-(2**23), 2**23, 400_000)
    first, fraction = high_mul(drawn, multiplier), drawn * multiplier & (2**31 - 1)
    differ = round_shift(first, max(shift, 0)) != round_shift(first - 1, max(shift, 0))
    above = (fraction >= 2**30) & (fraction < 2**30 + 2**22)
    near = [*drawn[above & differ][:16], *drawn[:16]][:16]
    # Of 16 bits, where the last of both roundings' carries decides: with a sign and without, just there and just not.
    short = np.arange(-(2**15), 2**15)
    both = 2 * short * multiplier + (1 << 31) + (1 << (31 + max(shift, 0))) - ((short < 0) * 1 << 32)
    order = short[np.argsort(both & ((1 << (32 + max(shift, 0))) - 1), kind="stable")]
    for with_sign in (order < 0, order >= 0):
        near += [*order[with_sign][:2], *order[with_sign][-2:]]
    sizes = 2.0 ** rng.uniform(0, 23, 16) * rng.choice([-1, 1], 16)
    edges = [0, -1, 1, 2**23 - 1, 2**23, -(2**23), -(2**23) - 1, *(last for _, last in DECIDED.values())]
    far = rng.integers(-(2**29), 2**29, ROWS - 24 - 9 - 16 - len(edges))
    every = np.concatenate([ties, near, sizes, edges, far])
    return np.asarray(np.clip(np.trunc(every), -(2**29), 2**29), np.int64)


def table(kind: str, name: str, values: Array) -> str:
    """A constant array of C, with its dimensions."""
    rows = [
        ", ".join(f"INT32_C({v})" if kind == "int32_t" else str(v) for v in row)
        for row in np.atleast_2d(values)
    ]
    sizes = "".join(f"[{n}]" for n in values.shape)
    held = rows[0] if values.ndim == 1 else "}, {".join(rows).join(("{", "}"))
    return f"static const __flash {kind} {name}{sizes} = {{{held}}};\n"


def test_outputs_of_sums(tmp_path: Path) -> None:
    """Of layers whose products are of bytes, by factors of all sizes: sums of 24 bits, by factors below 2^-8, and of 16
    by larger ones; where the bytes that are left out carry, too; and clamped ones."""
    build_runner()
    rng = np.random.default_rng(3)
    uppers = np.trunc(2.0 ** rng.uniform(9, 23, 24)).astype(np.int64)
    limits = np.minimum((2**32 - 2**26) // uppers, 2**24 - 1)
    lowers, lowest = rng.integers(0, 256, 24), rng.integers(0, 256, 24) * (rng.random(24) < 0.5)
    added = rng.integers(0, 2**32, 24)
    split, less = limits // 2, rng.integers(0, 2**25, 24)
    factors = np.stack([split, less, limits, uppers | lowers << 24, lowest, added], axis=1)
    rows = "}, {".join(", ".join(f"UINT32_C({n})" for n in row) for row in factors.tolist())
    text = f"enum {{ SETS = {len(factors)} }};\n"
    text += f"static const __flash uint32_t factors[SETS][6] = {{{{{rows}}}}};\n"
    (tmp_path / "cases.h").write_text(text, encoding="utf-8")
    elf, include = tmp_path / "outputs.elf", assets.path("firmware") / "include"
    source, where = str(Path(__file__).with_name("avr_outputs.c")), ["-I", str(include), "-I", str(tmp_path)]
    run_tool(["avr-gcc", f"-mmcu={UNO}", *FLAGS, *where, source, "-o", str(elf)])
    wrong = np.frombuffer(execute(elf, UNO, HZ, 60.0).output, np.uint16)
    np.testing.assert_array_equal(wrong, np.zeros(len(factors)))


@pytest.mark.parametrize("depth", [7, 516])
def test_sums_of_gates(tmp_path: Path, depth: int) -> None:
    """Of few inputs, and of more than are summed in 24 bits."""
    build_runner()
    rng = np.random.default_rng(depth)
    shifts = np.array(SHIFTS if depth < 100 else SHIFTS[:2])
    rows = ROWS if depth < 100 else 16
    multipliers = rng.integers(2**30, 2**31, len(shifts))
    # The largest, with which -2^23 stays what it is; with the last it does no more.
    multipliers[:2] = 2**31 - 1
    if len(multipliers) > 3:
        multipliers[2:4] = 2**31 - 127, 2**31 - 128
        for shift, (multiplier, _) in DECIDED.items():
            multipliers[shifts == shift] = multiplier
    inputs, weights = rng.integers(-128, 128, depth), rng.integers(-128, 128, (rows, depth))
    if depth > 100:  # the largest sum
        inputs[:], weights[0] = -128, -128
    wanted = np.stack(
        [sums_of(int(m), int(s), rng)[-rows:] for m, s in zip(multipliers, shifts, strict=True)]
    )
    forms = np.where(shifts > 0, shifts - 1, -shifts - 31)
    start = rng.integers(-32768, 32768, rows)
    filled = np.zeros((rows, -(-depth // 4) * 4), np.int64)
    filled[:, :depth] = weights
    blocks = filled.reshape(rows // 4, 4, -1, 4).transpose(0, 2, 1, 3)
    text = f"enum {{ SETS = {len(shifts)}, ROWS = {rows}, DEPTH = {depth} }};\n"
    text += table("int8_t", "weights", blocks.reshape(-1)) + table("int16_t", "start", start)
    text += table("int32_t", "multipliers", multipliers) + table("int8_t", "forms", forms)
    text += table("int32_t", "biases", wanted - weights @ inputs)
    text += f"static const int8_t inputs[{depth}] = {{{', '.join(map(str, inputs.tolist()))}}};\n"
    (tmp_path / "cases.h").write_text(text, encoding="utf-8")
    elf, include = tmp_path / "sums.elf", assets.path("firmware") / "include"
    source = str(Path(__file__).with_name("avr_gate_sums.c"))
    where = ["-I", str(include), "-I", str(tmp_path)]
    run_tool(["avr-gcc", f"-mmcu={UNO}", *FLAGS, *where, source, "-o", str(elf)])
    sent = np.frombuffer(execute(elf, UNO, HZ, 60.0).output, np.int16)
    assert sent[-1] == 0, "products of two gates that differ"
    got = sent[:-1].reshape(-1, rows)
    for m, s, sums, found in zip(multipliers, shifts, wanted, got, strict=True):
        added = requantize(sums, m, -s)
        np.testing.assert_array_equal(found, np.clip(start + added, -32768, 32767))
