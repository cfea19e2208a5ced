# SPDX-License-Identifier: Apache-2.0
"""Handlers of operators on signals: recursive filters, and Fourier transforms, of which `complex` has made those of
real values.

Even lengths without other prime factors than 2, 3 and 5 are transformed fast. For others a short transform is a
product with a matrix of cosines and sines; a long one is refused.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from tinyet.errors import RefusedError
from tinyet.fx.biquad_ops import BIQUADS
from tinyet.fx.log_bands_ops import LOG_BANDS
from tinyet.fx.samples_ops import SAMPLES
from tinyet.fx.spectrum_ops import IRFFT, RFFT, bins_of
from tinyet.importers.torch.context import Args, Constant, Context, Handler, StandIn, Value
from tinyet.ir import ITSELF, DType, QuantParams, Tensor, TensorType
from tinyet.ops import op_of
from tinyet.ops.biquads import Biquads
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.linear import Linear
from tinyet.ops.log_bands import SCALE, LogBands
from tinyet.ops.samples import Samples
from tinyet.ops.shared.fft import length_complaint
from tinyet.ops.signal_irfft import SignalIrfft
from tinyet.ops.signal_rfft import SignalRfft

_LONGEST_BY_MATRIX = 64
"""Values; the matrix has their number to the square, as floats."""

Matrix = npt.NDArray[np.float64]


def _angles(n: int) -> Matrix:
    """2 pi j k / n of each number k of the transform and each value j, by the remainder of j k, which is exact."""
    return 2 * np.pi * (np.outer(np.arange(bins_of(n)), np.arange(n)) % n) / n


def forward_matrix(n: int) -> Matrix:
    """(2 * bins, n): rows of cosines and of sines in turn."""
    angles = _angles(n)
    return np.stack([np.cos(angles), -np.sin(angles)], 1).reshape(-1, n)


def inverse_matrix(n: int) -> Matrix:
    """(n, 2 * bins). Numbers in the middle stand for their conjugates, too."""
    weights = np.full(bins_of(n), 2.0 / n)
    weights[0] = 1.0 / n
    if n % 2 == 0:
        weights[-1] = 1.0 / n
    return np.ascontiguousarray((forward_matrix(n) * np.repeat(weights, 2)[:, None]).T)


def _by_matrix(ctx: Context, x: Tensor, n: int, matrix: Matrix) -> Value:
    name = f"fourier_{n}" if len(matrix) != n else f"fourier_inverse_{n}"
    weight = ctx.hold(Constant(name, matrix.astype(np.float32)))
    return ctx.emit(Linear(), [x, weight, None], ctx.shape)


def _check(n: int) -> None:
    complaint = length_complaint(n)
    if complaint is not None and n > _LONGEST_BY_MATRIX:
        better = next((m for m in range(n, 2 * n + 2) if length_complaint(m) is None), None)
        raise RefusedError(
            complaint,
            "split the signal into shorter frames"
            if better is None
            else f"pad the signal with zeros: torch.fft.rfft(x, n={better}), or n_fft={better} with "
            f"win_length={n} in torch.stft",
        )


def rfft(ctx: Context, a: Args) -> Value:
    x, n = ctx.real(a["x"]), int(a["n"])
    _check(n)
    if length_complaint(n) is not None:
        return _by_matrix(ctx, x, n, forward_matrix(n))
    return ctx.emit(SignalRfft(n), [x], ctx.shape)


def irfft(ctx: Context, a: Args) -> Value:
    x, n = ctx.real(a["x"]), int(a["n"])
    _check(n)
    if length_complaint(n) is not None:
        return _by_matrix(ctx, x, n, inverse_matrix(n))
    return ctx.emit(SignalIrfft(n), [x], ctx.shape)


def biquads(ctx: Context, a: Args) -> Value:
    """The filtered values, and the state behind the last."""
    x, state = ctx.real(a["x"]), ctx.real(a["state"])
    sections = ctx.optional_constant(a["sections"], "sections")
    assert sections is not None
    held = ctx.hold(Constant(ctx.parameter_name("sections"), sections.data.astype("float32")))
    name = ctx.node.name
    outputs = [
        Tensor(ctx.name(title), TensorType(like.shape, DType.FLOAT32))
        for title, like in ((name, x), (f"{name}_state", state))
    ]
    ctx.append(Biquads(), [x, state, held], outputs)
    return tuple(outputs)


def log_bands(ctx: Context, a: Args) -> Value:
    """In fixed point: what stays in float32 has been spelled out (`fx.log_bands_ops.in_float`)."""
    x, n = ctx.tensor(a["x"]), int(a["n"])
    if isinstance(x, StandIn):
        return StandIn(ctx.node.name, TensorType(ctx.shape, DType.FLOAT32))
    _check(n)
    constants = []
    for role in ("window", "filters"):
        constant = ctx.optional_constant(a[role], role)
        assert constant is not None
        constants.append(ctx.hold(Constant(ctx.parameter_name(role), constant.data.astype("float32"))))
    name, scale = f"{ctx.node.name}_fixed", QuantParams.per_tensor(SCALE, 0)
    found = ctx.emit(LogBands(n, float(a["floor"])), [x, *constants], ctx.shape, DType.INT16, scale, name)
    complaint = op_of(ctx.nodes[-1]).check(ctx.nodes[-1])
    if complaint is not None:
        hint = 'give the module arithmetic="float"'
        raise RefusedError(f"has no form in fixed point: {complaint}", hint, shape=False)
    return ctx.emit(Dequantize(), [found], ctx.shape)


def samples(ctx: Context, a: Args) -> Value:
    attrs = Samples(int(a["shift"]), int(a["offset"]), bool(a["unsigned"]))
    return ctx.emit(attrs, [ctx.tensor(a["x"])], ctx.shape, DType.INT16, ITSELF)


def read_as_complex(_ctx: Context, _a: Args) -> Value:
    """What `complex` has left for an operator that has no form on pairs, whose origin it has."""
    raise RefusedError(
        "is not supported on complex values",
        "take .real and .imag, .abs() or torch.view_as_real, and compute with floats",
        shape=False,
    )


SIGNAL_HANDLERS: dict[object, Handler] = {
    RFFT: rfft,
    IRFFT: irfft,
    BIQUADS: biquads,
    LOG_BANDS: log_bands,
    SAMPLES: samples,
    torch.ops.aten.view_as_complex.default: read_as_complex,
}
