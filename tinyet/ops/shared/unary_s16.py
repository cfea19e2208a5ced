# SPDX-License-Identifier: Apache-2.0
"""Functions of one number in int16.

leaky_relu and abs are LiteRT's integer arithmetic, and neg is a requantization of -x. sigmoid and tanh are
LiteRT's and CMSIS-NN's int16 formula where the output has the scale that these demand, 1/32768. Everything
else is LiteRT's table of 513 values with interpolation (EXP, LOG, RSQRT, GELU: bit for bit), except for
functions that jump, which straight pieces cannot follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tinyet.errors import QuantizationError
from tinyet.ir import Array, DType, Node
from tinyet.numerics import Int64, Multiplier, quantize_multiplier, requantize
from tinyet.ops.shared import table_s16
from tinyet.ops.shared.integers import saturated
from tinyet.ops.shared.unary_functions import FUNCTIONS, FunctionName
from tinyet.opset import Call, Struct, library_call

JUMPING: tuple[FunctionName, ...] = (
    "ceil",
    "floor",
    "hardshrink",
    "reciprocal",
    "round",
    "sign",
    "threshold",
)

KINDS = {
    "pwl": "tinyet_pwl_s16.c",
    "sigmoid": "tinyet_lut_s16.c",
    "tanh": "tinyet_lut_s16.c",
    "lut": "tinyet_lut_s16.c",
}
"""The kernels tinyet_<kind>_s16 and their sources."""


@dataclass(frozen=True)
class Form:
    """The function with its parameters, and the scales of input and output. tflm: as Unary has it."""

    function: FunctionName
    alpha: float
    beta: float
    x: float
    out: float
    tflm: bool = False


@dataclass(frozen=True)
class Slope:
    """One side of zero: after * requantize(before * x, factor)."""

    factor: Multiplier
    before: int = 1
    after: int = 1

    def apply(self, x: Int64) -> Int64:
        return self.after * requantize(self.before * x, self.factor.multiplier, self.factor.shift)


def ratios(x: float, out: float, alpha: float, tflm: bool) -> tuple[float, float]:
    """x / out and x * alpha / out: in float32, as LiteRT, or in float64, as TFLM."""
    kind = np.float64 if tflm else np.float32
    return float(kind(x) / kind(out)), float(kind(x) * kind(np.float32(alpha)) / kind(out))


def slopes(form: Form) -> tuple[Slope, Slope]:
    """For x >= 0 and x < 0. A factor that leaves int32 raises QuantizationError."""
    ratio, slope = ratios(form.x, form.out, form.alpha, form.tflm)
    plain = quantize_multiplier(ratio)
    if form.function == "leaky_relu":
        pair = Slope(plain), Slope(quantize_multiplier(abs(slope)), after=1 if slope >= 0 else -1)
    elif form.function == "abs":
        pair = Slope(plain), Slope(plain, before=-1)
    else:
        pair = Slope(plain, before=-1), Slope(plain, before=-1)
    if max(s.factor.shift for s in pair) > 15:
        raise QuantizationError("the output's scale is too small for the input's")
    return pair


def scaling(form: Form) -> tuple[int, int] | None:
    """The scaling of the argument of sigmoid and tanh, or None where LiteRT's formula does not hold."""
    if form.out != table_s16.OUT_SCALE or form.function not in ("sigmoid", "tanh"):
        return None
    return table_s16.argument_scaling(form.x, (-12, -11) if form.function == "tanh" else (-12,))


def kind(form: Form) -> str:
    """Which of KINDS computes it."""
    if form.function in ("leaky_relu", "abs", "neg"):
        return "pwl"
    return "lut" if scaling(form) is None else form.function


def check(form: Form) -> str | None:
    if form.function in JUMPING:
        return f"{form.function} jumps, which a table with interpolation cannot follow"
    if kind(form) == "pwl":
        try:
            slopes(form)
        except QuantizationError as error:
            return error.what
    return None


@lru_cache(maxsize=64)
def table(form: Form) -> Int64:
    function = FUNCTIONS[form.function].exact

    def single(x: table_s16.Float) -> table_s16.Float:
        return np.asarray(function(x.astype(np.float64), form.alpha, form.beta), np.float64).astype(
            np.float32
        )

    return table_s16.populate(single, (form.x, 0), (form.out, 0))


def reference(form: Form, x: Array) -> Array:
    values = x.astype(np.int64)
    own = kind(form)
    if own == "lut":
        return table_s16.look_up(table(form), values).astype(np.int16)
    if own == "pwl":
        above, below = slopes(form)
        return saturated(np.where(values >= 0, above.apply(values), below.apply(values)), DType.INT16)
    found = scaling(form)
    assert found is not None
    return table_s16.sigmoid_or_tanh(x, found, own == "tanh").astype(np.int16)


def slope_struct(slope: Slope) -> Struct:
    return Struct(
        "tinyet_pwl_segment_s16",
        {
            "multiplier": slope.factor.multiplier,
            "shift": slope.factor.shift,
            "before": slope.before,
            "after": slope.after,
        },
    )


def lower(node: Node, form: Form) -> Call:
    own = kind(form)
    if own == "lut":
        return table_s16.table_call(node, table(form))
    if own == "pwl":
        above, below = slopes(form)
        params = Struct(
            "tinyet_pwl_s16_params",
            {"above": slope_struct(above), "below": slope_struct(below), "count": node.output.type.count},
        )
        return library_call("tinyet_pwl_s16", node, [0], params)
    found = scaling(form)
    assert found is not None
    return table_s16.sigmoid_call(node, found, own == "tanh")
