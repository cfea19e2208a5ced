# SPDX-License-Identifier: Apache-2.0
"""Handlers of TFLM's custom operators on signals: the audio front end.

Values that they keep from run to run are states of the graph. If TFLM says by a truth value that an output is not
ready, the output has a value all the same (see the operators).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.tflite.context import Context, Handler
from tinyet.importers.tflite.flexbuffer import integers_of
from tinyet.importers.tflite.values import Constant
from tinyet.ir import Attrs, DType, Shape, Tensor, TensorType
from tinyet.ops.signal_delay import SignalDelay
from tinyet.ops.signal_energy import SignalEnergy
from tinyet.ops.signal_fft_auto_scale import SignalFftAutoScale
from tinyet.ops.signal_filter_bank import TABLES, WEIGHTS, SignalFilterBank
from tinyet.ops.signal_filter_bank_log import SignalFilterBankLog
from tinyet.ops.signal_filter_bank_spectral_subtraction import SignalFilterBankSpectralSubtraction
from tinyet.ops.signal_filter_bank_square_root import SignalFilterBankSquareRoot
from tinyet.ops.signal_framer import SignalFramer
from tinyet.ops.signal_irfft import SignalIrfft
from tinyet.ops.signal_overlap_add import SignalOverlapAdd
from tinyet.ops.signal_pcan import SignalPcan
from tinyet.ops.signal_rfft import SignalRfft
from tinyet.ops.signal_stacker import SignalStacker
from tinyet.ops.signal_window import SignalWindow


def options(ctx: Context, *names: str) -> tuple[int, ...]:
    """Of the operator at hand, in this order."""
    found = integers_of(ctx.op.custom_options, names)
    return tuple(found[name] for name in names)


def table(ctx: Context, position: int, role: str, count: int | None = None) -> Tensor:
    """A constant input; its first `count` numbers where that is given."""
    found = ctx.constant(position, role)
    return ctx.hold(Constant(found.name, np.ascontiguousarray(found.data[:count]), found.quant))


def kept(ctx: Context, role: str, type_: TensorType, first: int = 0) -> Tensor:
    """A state of the operator at hand, full of `first` before the first run."""
    return ctx.begin_state(
        f"{ctx.out_info().name}_{role}", type_, ctx.filled(type_.shape, first, type_.dtype)
    )


def emit_all(ctx: Context, attrs: Attrs, inputs: tuple[Tensor, ...], states: tuple[Tensor, ...] = ()) -> None:
    """The node that gives all outputs of the operator at hand, and its states for the next run."""
    count = len(ctx.op.outputs)
    types = [ctx.out_type(position) for position in range(count)] + [state.type for state in states]
    names = [ctx.out_info(position).name for position in range(count)]
    names += [f"{state.name}_after" for state in states]
    made = ctx.emit_many(attrs, (*inputs, *states), types, names)
    for position in range(count):
        ctx.alias(made[position], position)
    for state, value in zip(states, made[count:], strict=True):
        ctx.replace_state(state, value)


def expect_outputs(ctx: Context, count: int) -> None:
    """Raises RefusedError for another number of outputs."""
    if len(ctx.op.outputs) != count:
        raise RefusedError(f"has {len(ctx.op.outputs)} outputs", shape=False)


def last(x: Tensor) -> tuple[Shape, int]:
    """The outer dimensions, and the last one."""
    if not x.shape:
        raise RefusedError("takes a single number")
    return x.shape[:-1], x.shape[-1]


def state_type(x: Tensor, shape: Shape) -> TensorType:
    """The type of the state of x's values."""
    return TensorType(shape, x.dtype, x.type.quant)


# ---------------------------------------------------------------- without states


def window(ctx: Context) -> None:
    ctx.expect_inputs(2)
    (shift,) = options(ctx, "shift")
    ctx.emit(SignalWindow(shift), [ctx.x(0), table(ctx, 1, "window")])


def fft_auto_scale(ctx: Context) -> None:
    ctx.expect_inputs(1)
    expect_outputs(ctx, 2)
    emit_all(ctx, SignalFftAutoScale(), (ctx.x(0),))


def rfft(ctx: Context) -> None:
    ctx.expect_inputs(1)
    (length,) = options(ctx, "fft_length")
    ctx.emit(SignalRfft(length), [ctx.x(0)])


def irfft(ctx: Context) -> None:
    ctx.expect_inputs(1)
    (length,) = options(ctx, "fft_length")
    ctx.emit(SignalIrfft(length), [ctx.x(0)])


def energy(ctx: Context) -> None:
    ctx.expect_inputs(1)
    start, end = options(ctx, "start_index", "end_index")
    ctx.emit(SignalEnergy(start, end), [ctx.x(0)])


def filter_bank(ctx: Context) -> None:
    """Numbers of 64 bits, which are two of 32 in the graph."""
    ctx.expect_inputs(6)
    (channels,) = options(ctx, "num_channels")
    info = ctx.out_info()
    if info.type != "uint64" or info.shape != (channels,):
        raise RefusedError(f"gives {info.type} {list(info.shape)} for {channels} channels")
    tables = [
        table(ctx, index, name.replace("_", " "), None if index <= WEIGHTS + 1 else channels + 1)
        for name, index in TABLES.items()
    ]
    type_ = TensorType((channels, 2), DType.UINT32)
    ctx.alias(ctx.emit_as(SignalFilterBank(), [ctx.x(0), *tables], type_))
    if ctx.out_index() in ctx.subgraph.outputs:
        ctx.note("numbers of 64 bits are given as two of 32, the lower one first")


def filter_bank_square_root(ctx: Context) -> None:
    ctx.expect_inputs(2)
    ctx.emit(SignalFilterBankSquareRoot(), [ctx.x(0), ctx.x(1)])


def pcan(ctx: Context) -> None:
    ctx.expect_inputs(3)
    (shift,) = options(ctx, "snr_shift")
    ctx.emit(SignalPcan(shift), [ctx.x(0), ctx.x(1), table(ctx, 2, "gains")])


def filter_bank_log(ctx: Context) -> None:
    ctx.expect_inputs(1)
    scale, bits = options(ctx, "output_scale", "input_correction_bits")
    ctx.emit(SignalFilterBankLog(scale, bits), [ctx.x(0)])


# ---------------------------------------------------------------- with states


def spectral_subtraction(ctx: Context) -> None:
    """The noise is a result, too."""
    ctx.expect_inputs(1)
    expect_outputs(ctx, 2)
    weights = ("smoothing", "one_minus_smoothing", "alternate_smoothing", "alternate_one_minus_smoothing")
    even, even_rest, odd, odd_rest = options(ctx, *weights)
    least, up, down = options(ctx, "min_signal_remaining", "smoothing_bits", "spectral_subtraction_bits")
    clamping, channels = options(ctx, "clamping", "num_channels")
    x = ctx.x(0)
    if x.shape != (channels,):
        raise RefusedError(f"takes {list(x.shape)} for {channels} channels")
    before = kept(ctx, "noise", TensorType(x.shape, DType.UINT32))
    types = ctx.out_type(0), ctx.out_type(1)
    titles = ctx.out_info(0).name, ctx.out_info(1).name
    attrs = SignalFilterBankSpectralSubtraction(
        even, even_rest, odd, odd_rest, least, up, down, bool(clamping)
    )
    result, noise = ctx.emit_many(attrs, (x, before), types, titles)
    ctx.alias(result, 0)
    ctx.alias(noise, 1)
    ctx.replace_state(before, noise)


def delay(ctx: Context) -> None:
    ctx.expect_inputs(1)
    (length,) = options(ctx, "delay_length")
    x = ctx.x(0)
    outer, _ = last(x)
    if length < 1:
        raise RefusedError(f"has a delay of {length} samples")
    emit_all(ctx, SignalDelay(), (x,), (kept(ctx, "before", state_type(x, (*outer, length))),))


def framer(ctx: Context) -> None:
    ctx.expect_inputs(1)
    expect_outputs(ctx, 2)
    size, step, prefill = options(ctx, "frame_size", "frame_step", "prefill")
    x = ctx.x(0)
    outer, _ = last(x)
    if not 0 < step < size:
        raise RefusedError(f"has frames of {size} samples, each {step} on: they do not overlap")
    count = size - step if prefill else (size - 1) // step * step
    before = kept(ctx, "before", state_type(x, (*outer, count)))
    missing = kept(ctx, "missing", TensorType((), DType.INT32), 0 if prefill else count)
    emit_all(ctx, SignalFramer(size, step), (x,), (before, missing))


def stacker(ctx: Context) -> None:
    ctx.expect_inputs(1)
    expect_outputs(ctx, 2)
    titles = ("num_channels", "stacker_left_context", "stacker_right_context", "stacker_step")
    channels, left, right, step = options(ctx, *titles)
    x = ctx.x(0)
    if x.shape != (channels,) or min(left, right) < 0 or left + right < 1:
        raise RefusedError(f"stacks {left} and {right} frames of {channels} around one of {list(x.shape)}")
    before = kept(ctx, "before", state_type(x, (channels * (left + right),)))
    missing = kept(ctx, "missing", TensorType((), DType.INT32), -1)
    emit_all(ctx, SignalStacker(right, step), (x,), (before, missing))


def overlap_add(ctx: Context) -> None:
    ctx.expect_inputs(1)
    (step,) = options(ctx, "frame_step")
    x = ctx.x(0)
    outer, size = last(x)
    if not outer or not 0 < step < size:
        raise RefusedError(f"has frames {list(x.shape)}, each {step} on: they do not overlap")
    left = kept(ctx, "left", state_type(x, (*outer[:-1], size - step)))
    emit_all(ctx, SignalOverlapAdd(step), (x,), (left,))


HANDLERS: Mapping[str, Handler] = {
    "SignalDelay": delay,
    "SignalEnergy": energy,
    "SignalFftAutoScale": fft_auto_scale,
    "SignalFilterBank": filter_bank,
    "SignalFilterBankLog": filter_bank_log,
    "SignalFilterBankSpectralSubtraction": spectral_subtraction,
    "SignalFilterBankSquareRoot": filter_bank_square_root,
    "SignalFramer": framer,
    "SignalIrfft": irfft,
    "SignalOverlapAdd": overlap_add,
    "SignalPCAN": pcan,
    "SignalRfft": rfft,
    "SignalStacker": stacker,
    "SignalWindow": window,
}
