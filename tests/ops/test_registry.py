# SPDX-License-Identifier: Apache-2.0
"""Every operator has all that an operator needs; a new one that lacks something fails here, by name."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, is_dataclass
from typing import ClassVar

import pytest

from tests.ops.strategies import module_of, strategy_of
from tinyet import assets, ops
from tinyet.delegates import CORTEX_M, PORTABLE, kernel_sources
from tinyet.errors import InternalError
from tinyet.ir import Attrs
from tinyet.opset import Op, attributes

# Conversions exist in one direction only, as does what bytes become; dynamic layers are float outside; lengths in
# float32 are composed; truth values are int32; signals are as TFLM has them, features and sums over trees in float32,
# bands of a spectrum in fixed point.
ONE_FORM = {
    "biquads": {"f32"},
    "compare": {"f32_s32", "s32"},
    "where": {"s32", "s32_s8", "s32_s16", "s32_f32"},
    "quantize": {"f32_s8", "f32_s16"},
    "dequantize": {"s8_f32", "s16_f32"},
    "cast": {"u8_f32", "s32_f32", "s16_s32", "s32_s8", "u32_s32", "s32_u32"},
    "lookup": {"u8_s8", "u8_s16"},
    "requantize": {"s8", "s16", "s8_s16", "s16_s8"},
    "l2_normalize": {"s8"},
    "linear_bands": {"f32"},
    "linear_single_rounding": {"s8", "s16"},
    "log_bands": {"s16"},
    "pairwise": {"s32"},
    "sum_of_squares": {"f32"},
    "squared_difference": {"s8", "s16"},
    "dynamic_conv2d": {"f32"},
    "dynamic_linear": {"f32"},
    "samples": {"s16", "s32_s16"},
    "signal_delay": {"s16"},
    "signal_energy": {"s16_u32"},
    "signal_fft_auto_scale": {"s16"},
    "signal_filter_bank": {"u32"},
    "signal_filter_bank_log": {"u32_s16"},
    "signal_filter_bank_spectral_subtraction": {"u32"},
    "signal_filter_bank_square_root": {"u32"},
    "signal_framer": {"s16"},
    "signal_irfft": {"s16", "s32", "f32"},
    "signal_overlap_add": {"s16", "f32"},
    "signal_pcan": {"u32"},
    "signal_rfft": {"s16", "s32", "f32"},
    "signal_stacker": {"s16"},
    "signal_window": {"s16"},
    "tree_ensemble": {"f32", "s16_f32", "s8_f32", "f32_s32", "s16_s32", "s8_s32"},
}


@pytest.mark.parametrize("op", ops.OPS, ids=lambda op: op.name)
def test_complete(op: Op) -> None:
    assert is_dataclass(op.attrs)
    assert re.fullmatch(r"[a-z][a-z0-9_]*", op.name)
    assert op.summary
    assert op.kernels, "no portable kernel"
    for kernel in op.kernels:
        assert re.fullmatch(r"tinyet_[a-z0-9_]+(?<!_dsp)(?<!_mve)", kernel.symbol)
        assert kernel.delegate == "portable"
        for header in kernel.headers:
            assert (assets.path("firmware") / "include" / header).is_file(), header
        for source in kernel.sources:
            assert kernel_sources.text(source) is not None, source
    forms = {kernel.dtypes.split("_")[0] for kernel in op.kernels}
    if op.name in ONE_FORM:
        assert {k.dtypes for k in op.kernels} >= ONE_FORM[op.name]
    elif op.name != "embedding":
        assert {"s8", "f32"} <= forms, "an int8 and a float32 form"


@pytest.mark.parametrize("op", ops.OPS, ids=lambda op: op.name)
def test_tested(op: Op) -> None:
    assert strategy_of(op.name) is not None, "a strategy that draws whole nodes"
    assert hasattr(module_of(op.name), "test_host"), "the portable C against the reference"


def test_names_are_unique() -> None:
    names = [op.name for op in ops.OPS]
    assert len(set(names)) == len(names)
    assert names == sorted(names), "the list is kept in order"


def test_attributes_are_plain() -> None:
    """Programs store attributes as JSON: numbers, booleans, None, words of an enumeration, and tuples of them."""
    for op in ops.OPS:
        assert set(attributes.schema(op.attrs)) == {item.name for item in fields(op.attrs)}


def test_attributes_that_are_text_are_refused() -> None:
    """Text of a file could become C; a Literal's words stand in the source."""

    @dataclass(frozen=True)
    class Texts(Attrs):
        name: ClassVar[str] = "texts"
        function: str

    with pytest.raises(InternalError, match="no attribute is text"):
        attributes.schema(Texts)


def test_names_of_kernels_for_a_core() -> None:
    """They say types before method and tile, and the core last (docs/kernels.md)."""
    for kernel in (kernel for kernels in CORTEX_M.kernels.values() for kernel in kernels):
        if kernel.symbol == "tinyet_copy_runs_mve":  # of bytes, whatever they are
            continue
        # A table of 256 values is looked up alike, whatever has rounded these.
        activations = kernel.dtypes.removesuffix("_w4").removesuffix("_rne")
        if kernel.symbol.startswith("tinyet_argmax_"):
            activations = activations.removesuffix("_s32")  # an index, whatever is searched
        form = rf"_{activations}_(w4_|w16_)?([a-z0-9]+_)*(dsp|mve)"
        assert re.fullmatch(rf"tinyet_[a-z0-9_]+?{form}", kernel.symbol)


def test_firmware_sources_are_used() -> None:
    """A source that no kernel names, and no fusion group needs, would be dead code."""
    by_op = [*PORTABLE.kernels.values(), *CORTEX_M.kernels.values()]
    used = {source for kernels in by_op for kernel in kernels for source in kernel.sources} | {
        "tinyet_line_buffers.c"
    }
    assert set(kernel_sources.names()) == used
