# SPDX-License-Identifier: Apache-2.0
"""Features of signals as torch modules: what stands between a sensor's samples and a network, in the same program.

Modules take float32 of any leading dimensions and work along the last one, which is time; they have no trained weights,
and stay in float32 where the network behind them is quantized. `decisions` has what stands behind a network.
"""

from tinyet.features.filters import FIR, Biquads, PreEmphasis, Resample
from tinyet.features.frames import Frame, PowerSpectrum, Spectrum
from tinyet.features.mel import (
    DCT,
    MFCC,
    PCEN,
    LogBands,
    LogMel,
    LogSpectrum,
    MelFilterBank,
    mel_filters,
    smoothing_of,
)
from tinyet.features.samples import Samples
from tinyet.features.statistics import Autocorrelation, Quantiles, Statistics, moving
from tinyet.features.transforms import Daubechies, Envelope, Goertzel, Haar

__all__ = [
    "DCT",
    "FIR",
    "MFCC",
    "PCEN",
    "Autocorrelation",
    "Biquads",
    "Daubechies",
    "Envelope",
    "Frame",
    "Goertzel",
    "Haar",
    "LogBands",
    "LogMel",
    "LogSpectrum",
    "MelFilterBank",
    "PowerSpectrum",
    "PreEmphasis",
    "Quantiles",
    "Resample",
    "Samples",
    "Spectrum",
    "Statistics",
    "mel_filters",
    "moving",
    "smoothing_of",
]
