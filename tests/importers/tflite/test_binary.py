# SPDX-License-Identifier: Apache-2.0
"""Functions of two values, comparisons, choices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.importers.tflite.one_operator import BOTH, File, Fixed, Oracle, Value, scaled
from tinyet.errors import UnsupportedShape
from tinyet.tflite.options import AddOptions, DivOptions, MulOptions, Options, SubOptions

ARITHMETIC: dict[str, Callable[..., Options]] = {"ADD": AddOptions, "SUB": SubOptions, "MUL": MulOptions}
SHAPES = (
    ((4, 5, 6), (4, 5, 6)),
    ((4, 5, 6), (6,)),
    ((4, 5, 6), (4, 1, 6)),
    ((2, 1, 3, 1), (2, 4, 1, 5)),
    ((7,), ()),
)
COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")


def common(shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    return tuple(np.broadcast_shapes(*shapes))


@pytest.mark.parametrize("oracle", BOTH)
def test_float(oracle: Oracle) -> None:
    file = File()
    for shapes in SHAPES:
        a, b, out = Value(shapes[0]), Value(shapes[1]), Value(common(shapes))
        for activation in (0, 1, 3):
            for code, kind in (ARITHMETIC | {"DIV": DivOptions}).items():
                file.add(code, [a, b], out, kind(activation))
        for code in ("MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"):
            file.add(code, [a, b], out)
        for code in COMPARISONS:
            file.add(code, [a, b], Value(out.shape, "bool"))
        for code in ("LOGICAL_AND", "LOGICAL_OR"):
            file.add(code, [Value(s, "bool") for s in shapes], Value(out.shape, "bool"))
        file.add("SELECT_V2", [Value(shapes[0], "bool"), b, Value(())], out)
    same = Value((3, 8))
    file.add("ADD_N", [same] * 4, same)
    file.check([oracle])


@pytest.mark.parametrize("type_", ["int8", "int16"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("oracle", BOTH)
def test_integers(oracle: Oracle, type_: str, seed: int) -> None:
    rng, file = np.random.default_rng(seed), File()
    around = 0.05 if type_ == "int8" else 1e-3
    for shapes in (*SHAPES, ((30, 40), (30, 40))):
        out = common(shapes)
        for activation in (0, 1, 3):
            for code, kind in ARITHMETIC.items():
                a, b, y = (scaled(rng, shape, type_, around) for shape in (*shapes, out))
                if code == "MUL":
                    y = Value(out, type_, y.scale * y.scale * 100, y.zero_point)
                # int16 of any scale: what the converter says since it makes such.
                more = {} if code == "MUL" else {"pot_scale_int16": False}
                file.add(code, [a, b], y, kind(activation, **more))
        a, b, y = (scaled(rng, shape, type_, around) for shape in (*shapes, out))
        if type_ == "int8" or oracle == "tflm":
            file.add("SQUARED_DIFFERENCE", [a, b], Value(out, type_, y.scale * 20, y.zero_point))
        same = scaled(rng, out, type_, around)
        first, second = (Value(s, type_, same.scale, same.zero_point) for s in shapes)
        for code in ("MAXIMUM", "MINIMUM"):
            file.add(code, [first, second], same)
        file.add("SELECT_V2", [Value(shapes[0], "bool"), first, second], same)
        if type_ == "int8":
            for code in COMPARISONS:
                file.add(code, [scaled(rng, s) for s in shapes], Value(out, "bool"))
            nonzero = Value(shapes[1], "int8", 0.05, -128, low=-100)
            # 0 divided, and tiny quotients, are shifted by more bits than C defines.
            large = Value(shapes[0], "int8", scaled(rng, ()).scale, -128, low=-60)
            file.add("DIV", [large, nonzero], scaled(rng, out, around=0.01), DivOptions())
    file.check([oracle])


def test_sums_of_bytes() -> None:
    """TFLM's alone; three and more are refused where they are not the original's bits."""
    taken = 0
    for seed in range(6):
        rng, file = np.random.default_rng(seed), File()
        x = scaled(rng, (20, 30))
        file.add("ADD_N", [x, x], scaled(rng, x.shape))
        file.add("ADD_N", [x] * 5, scaled(rng, x.shape))
        try:
            file.check(["tflm"])
            taken += 1
        except UnsupportedShape:
            pass
    assert taken


@pytest.mark.parametrize("oracle", BOTH)
def test_whole_numbers(oracle: Oracle) -> None:
    file = File()
    for shapes in SHAPES[:3]:
        a, b = (Value(shape, "int32", low=-3, high=3) for shape in shapes)
        out = Value(common(shapes), "int32")
        for code in COMPARISONS:
            file.add(code, [a, b], Value(out.shape, "bool"))
        for activation in (0, 1, 3):
            for code, kind in ARITHMETIC.items():
                file.add(code, [a, b], out, kind(activation))
        for code in ("MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"):
            file.add(code, [a, b], out)
        if oracle == "litert":
            above = Value(shapes[1], "int32", low=1, high=3)
            for code in ("DIV", "FLOOR_DIV", "FLOOR_MOD"):
                file.add(code, [a, above], out)
    file.check([oracle])


def test_constants_are_folded() -> None:
    """A shape is computed from constants, and used."""
    file = File()
    file.add("RESHAPE", [Value((2, 6)), Fixed(np.array([3, 4], np.int32))], Value((3, 4)))
    file.check()
