# SPDX-License-Identifier: Apache-2.0
"""The reference of mfcc.c in numpy: the same integers, bit for bit, from the same tables, which it also writes.

    python examples/keyword_spotting/mfcc.py mfcc_tables.h

`exact` is what both approximate: the same coefficients in float64.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]

# These are the constants of mfcc.h.
RATE, FRAME, HOP, BANDS, CEPSTRA, SAMPLES, FRAMES, FRACTION = 16000, 512, 320, 32, 13, 16000, 49, 7
HALF = FRAME // 2
AT_ONCE = 4

LOWEST_HZ, HIGHEST_HZ = 100.0, 7600.0
# Added to each band's energy, which is in units of squared samples: what is quieter is all the same silence.
FLOOR = 1024

# ---------------------------------------------------------------- tables


def _mel(hertz: npt.ArrayLike) -> Reals:
    return np.asarray(1127.0 * np.log1p(np.asarray(hertz, np.float64) / 700.0), np.float64)


def _filters() -> tuple[Integers, Integers, Reals]:
    """Of each bin within the bands: its number, the interval between peaks that it lies in, and how far (0...1)."""
    edges = np.linspace(_mel(LOWEST_HZ), _mel(HIGHEST_HZ), BANDS + 2)
    mels = _mel(np.arange(HALF + 1) * RATE / FRAME)
    bins = np.flatnonzero((mels >= edges[0]) & (mels < edges[-1]))
    interval = np.searchsorted(edges, mels[bins], side="right") - 1
    rise = (mels[bins] - edges[interval]) / (edges[interval + 1] - edges[interval])
    return bins, interval, rise


def _rounded(values: npt.ArrayLike, fraction: int) -> Integers:
    return np.rint(np.asarray(values) * 2.0**fraction).astype(np.int64)


_REAL_HANN = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / FRAME)
_REAL_DCT = np.sqrt(2 / BANDS) * np.cos(np.pi / BANDS * np.outer(np.arange(CEPSTRA), np.arange(BANDS) + 0.5))
_REAL_DCT[0] /= np.sqrt(2)
BINS, INTERVAL, _REAL_RISE = _filters()

COSINE = _rounded(np.cos(2 * np.pi * np.arange(HALF + 1) / FRAME), 30)
REVERSED = np.array([int(f"{i:08b}"[::-1], 2) for i in range(HALF)], np.int64)
RISE = _rounded(_REAL_RISE, 15)
LOG2 = _rounded(np.log2(1 + np.arange(129) / 128), 16)
DCT = _rounded(np.log(2) * _REAL_DCT, 17)


def tables() -> str:
    """The text of mfcc_tables.h."""
    arrays = [
        ("int32_t mfcc_cosine[MFCC_FRAME / 2 + 1]", "cos(2 pi k / MFCC_FRAME), Q30", COSINE),
        ("uint8_t mfcc_reversed[MFCC_FRAME / 2]", "The bits of an index in reverse", REVERSED),
        ("uint8_t mfcc_interval[]", "Between which peaks each bin lies, from MFCC_FIRST_BIN on", INTERVAL),
        ("uint16_t mfcc_rise[]", "How far it is on the way from one to the other, Q15", RISE),
        ("int32_t mfcc_log2[129]", "log2(1 + k / 128), Q16", LOG2),
        ("int16_t mfcc_dct[MFCC_CEPSTRA][MFCC_BANDS]", "log(2) times the orthonormal DCT-II, Q17", DCT),
    ]
    sizes = {"FRAME": FRAME, "BANDS": BANDS, "CEPSTRA": CEPSTRA, "RATE": RATE, "FRACTION": FRACTION}
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0 */",
        "/* Written by mfcc.py: do not edit. Included by mfcc.c only. */",
        "#if " + " || ".join(f"MFCC_{name} != {value}" for name, value in sizes.items()),
        '#error "mfcc.h and mfcc.py have different constants"',
        "#endif",
        f"#define MFCC_FIRST_BIN {BINS[0]}",
        f"#define MFCC_LAST_BIN {BINS[-1]}",
        f"#define MFCC_FLOOR UINT64_C({FLOOR << 15})",
    ]
    for declaration, comment, values in arrays:
        lines += [f"/* {comment}. */", f"static const {declaration} = {_literal(values)};"]
    return "\n".join(lines) + "\n"


def _literal(values: Integers) -> str:
    if values.ndim > 1:
        return "{" + ",\n".join(_literal(row) for row in values) + "}"
    rows = [", ".join(map(str, values[i : i + 16].tolist())) for i in range(0, len(values), 16)]
    return "{" + ",\n".join(rows) + "}"


# ---------------------------------------------------------------- the reference


def frames(samples: npt.ArrayLike) -> Integers:
    """int16 samples (..., SAMPLES) as overlapping frames (..., FRAMES, FRAME)."""
    windows = np.lib.stride_tricks.sliding_window_view(np.asarray(samples, np.int64), FRAME, axis=-1)
    return np.asarray(windows[..., ::HOP, :][..., :FRAMES, :])


def mfcc(samples: npt.ArrayLike) -> npt.NDArray[np.int16]:
    """int16 samples (..., SAMPLES) to cepstral coefficients (..., FRAMES, CEPSTRA), Q8.7, as mfcc() in C."""
    samples = np.asarray(samples)
    # A few recordings at a time stay in the processor's cache: a third of the time of all at once.
    if samples.ndim > 1 and len(samples) > AT_ONCE:
        return np.concatenate([mfcc(samples[i : i + AT_ONCE]) for i in range(0, len(samples), AT_ONCE)])
    energies = _energies(_transform(frames(samples)))
    logs = _log2(energies + np.uint64(FLOOR << 15)) - 15 * 65536
    sums = logs @ DCT.T + (1 << 25)
    return (sums >> 26).astype(np.int16)


def _cos_sin(k: Integers) -> tuple[Integers, Integers]:
    return COSINE[k], COSINE[np.abs(k - HALF // 2)]


def _transform(frame: Integers) -> tuple[Integers, Integers]:
    """Frames (..., FRAME) to the real and imaginary parts (..., HALF) of the complex transform."""
    window = (1 << 30) - np.concatenate([COSINE, COSINE[HALF - 1 : 0 : -1]])
    windowed = (frame * window + (1 << 15)) >> 16
    # Reversing bits twice is nothing, so gathering is scattering.
    re, im = windowed[..., ::2][..., REVERSED], windowed[..., 1::2][..., REVERSED]
    half = 1
    while half < HALF:
        shape = (*re.shape[:-1], HALF // (2 * half), 2, half)
        re, im = re.reshape(shape), im.reshape(shape)
        c, s = _cos_sin(np.arange(half) * (HALF // half))
        (a_re, b_re), (a_im, b_im) = (np.moveaxis(part, -2, 0) for part in (re, im))
        t_re = (b_re * c + b_im * s + (1 << 30)) >> 31
        t_im = (b_im * c - b_re * s + (1 << 30)) >> 31
        a_re, a_im = (a_re + 1) >> 1, (a_im + 1) >> 1
        re = np.stack([a_re + t_re, a_re - t_re], -2).reshape(*shape[:-3], HALF)
        im = np.stack([a_im + t_im, a_im - t_im], -2).reshape(*shape[:-3], HALF)
        half *= 2
    return re, im


def _energies(transformed: tuple[Integers, Integers]) -> npt.NDArray[np.uint64]:
    """Energies (..., BANDS) of the mel bands, Q15."""
    re, im = transformed
    i, j = BINS & (HALF - 1), (HALF - BINS) & (HALF - 1)
    sum_re, sum_im = re[..., i] + re[..., j], im[..., i] - im[..., j]
    difference_re, difference_im = re[..., i] - re[..., j], im[..., i] + im[..., j]
    c, s = _cos_sin(BINS)
    x_re = ((sum_re << 30) + c * difference_im - s * difference_re + (1 << 31)) >> 32
    x_im = ((sum_im << 30) - c * difference_re - s * difference_im + (1 << 31)) >> 32
    power = (x_re * x_re + x_im * x_im).astype(np.uint64) >> np.uint64(12)
    energies = np.zeros((*power.shape[:-1], BANDS + 2), np.uint64)
    for at, interval in enumerate(INTERVAL):
        energies[..., interval] += power[..., at] * np.uint64(32768 - RISE[at])
        energies[..., interval + 1] += power[..., at] * np.uint64(RISE[at])
    return energies[..., 1:-1]


def _log2(x: npt.NDArray[np.uint64]) -> Integers:
    """Base-2 logarithms of numbers above zero, Q16."""
    exponent = np.full(x.shape, 63, np.int64)
    mantissa = x.copy()
    for shift in (32, 16, 8, 4, 2, 1):
        small = mantissa < np.uint64(1) << np.uint64(64 - shift)
        mantissa = np.where(small, mantissa << np.uint64(shift), mantissa)
        exponent -= np.where(small, shift, 0)
    step = (mantissa >> np.uint64(56)).astype(np.int64) & 127
    rest = (mantissa >> np.uint64(40)).astype(np.int64) & 0xFFFF
    low, high = LOG2[step], LOG2[step + 1]
    return np.asarray((exponent << 16) + low + (((high - low) * rest + 32768) >> 16), np.int64)


# ---------------------------------------------------------------- what it approximates


def exact(samples: npt.ArrayLike) -> Reals:
    """The coefficients (..., FRAMES, CEPSTRA) in float64, with nothing rounded on the way."""
    power = np.abs(np.fft.rfft(frames(samples) * _REAL_HANN)[..., BINS]) ** 2
    energies = np.zeros((*power.shape[:-1], BANDS + 2))
    for at, interval in enumerate(INTERVAL):
        energies[..., interval] += power[..., at] * (1 - _REAL_RISE[at])
        energies[..., interval + 1] += power[..., at] * _REAL_RISE[at]
    return np.asarray(np.log(energies[..., 1:-1] + FLOOR) @ _REAL_DCT.T, np.float64)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(tables(), encoding="utf-8")
