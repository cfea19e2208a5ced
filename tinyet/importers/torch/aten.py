# SPDX-License-Identifier: Apache-2.0
"""The table: ATen overload → function that emits what it means in the IR. And advice for what is not in
it."""

from __future__ import annotations

import operator

from tinyet.importers.torch.aten_math import MATH_ROWS
from tinyet.importers.torch.aten_quant import quant_rows
from tinyet.importers.torch.aten_shape import SHAPE_ROWS, getitem
from tinyet.importers.torch.aten_truth import TRUTH_ROWS
from tinyet.importers.torch.aten_window import WINDOW_ROWS
from tinyet.importers.torch.context import Row
from tinyet.importers.torch.lowered import LOWERED_ROWS

TABLE: dict[object, Row] = {
    operator.getitem: getitem,
    **WINDOW_ROWS,
    **MATH_ROWS,
    **SHAPE_ROWS,
    **TRUTH_ROWS,
    **quant_rows(),
    **LOWERED_ROWS,
}

_ADVICE = {
    "conv3d": "use 2-d convolutions over slices of the volume",
    "topk": "return the scores and choose on the caller's side",
    "sort": "return the scores and sort on the caller's side",
    "nonzero": "its result has a size that depends on values",
    "bernoulli": "remove random operators, or make the noise an input",
    "rand": "make the noise an input",
    "randn": "make the noise an input",
    "choose_qparams_symmetric": "quantize with torch.per_tensor_affine at run time",
    "cumsum": "multiply by a constant triangular matrix",
    "flip": "reorder the weights that read it instead",
    "gather": "use constant indices (slices), or torch.nn.Embedding for a table",
    "index": "use constant slices, or torch.nn.Embedding for a table",
    "_native_batch_norm_legit": "give the norm running statistics and call model.eval()",
    "upsample_bicubic2d": "use mode='bilinear' or 'nearest'",
    "stft": "compute the spectrogram before the model",
    "_fft_r2c": "compute the spectrum before the model",
}


def advice(name: str) -> str:
    """What to do about an operator that has no row; `name` as in aten.topk.default."""
    parts = name.split(".")
    return _ADVICE.get(
        parts[1] if len(parts) > 1 else name, "write it with supported operators, or keep it out of the model"
    )
