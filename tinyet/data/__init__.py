# SPDX-License-Identifier: Apache-2.0
"""Data for a model: .npz files, and samples in the form that its inputs want."""

from __future__ import annotations

from tinyet.data.indices import refuse_indices
from tinyet.data.npz import LABELS, Data, data_given, encode_data, read_data
from tinyet.data.samples import (
    Samples,
    array_of,
    as_arrays,
    demonstration,
    make_samples,
    pattern_inputs,
    predicted,
    prepare_inputs,
)

__all__ = [
    "LABELS",
    "Data",
    "Samples",
    "array_of",
    "as_arrays",
    "data_given",
    "demonstration",
    "encode_data",
    "make_samples",
    "pattern_inputs",
    "predicted",
    "prepare_inputs",
    "read_data",
    "refuse_indices",
]
