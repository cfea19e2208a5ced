# SPDX-License-Identifier: Apache-2.0
"""Samples for a model's inputs: shapes and dtypes checked, float data quantized, a pattern where there is no data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyet.data.npz import Data
from tinyet.errors import DataError
from tinyet.errors.arguments import described
from tinyet.ir import Array, DType, Tensor
from tinyet.numerics import quantize

_AN_ARRAY_EACH = (
    "give each input as an argument of its own, as one array: f(images, ranges), not f([images, ranges])"
)


@dataclass(frozen=True, eq=False)
class Samples:
    """Data to validate with: per sample one array per input, and its label if there are labels.

    synthetic: nobody's data, but a pattern that visits all values: it shows whether bits agree, and nothing else.
    """

    inputs: tuple[tuple[Array, ...], ...]
    labels: tuple[int, ...] | None = None
    synthetic: bool = False

    def __repr__(self) -> str:
        return f"<{len(self)} samples{'' if self.labels is None else ', labels'}>"

    def __len__(self) -> int:
        return len(self.inputs)

    def first(self, count: int | None) -> Samples:
        """The first `count` of them; all for None."""
        labels = None if self.labels is None else self.labels[:count]
        return Samples(self.inputs[:count], labels, self.synthetic)


def array_of(value: Any) -> Array:
    """A tensor, an array, a number or nested lists of them as an array. Raises what numpy and torch do."""
    if not hasattr(value, "detach"):
        return np.asarray(value)
    tensor = value.detach().cpu()
    # numpy has no bfloat16; float32 holds it.
    return np.asarray(tensor.float().numpy() if str(tensor.dtype) == "torch.bfloat16" else tensor.numpy())


def as_arrays(given: Sequence[object], what: str = "input") -> list[Array]:
    """The user's value for each input as an array: an array, a tensor (on any device, trained or not), or lists of
    numbers. Raises DataError that lists all other values."""
    arrays, problems = [], []
    for index, value in enumerate(given):
        label = what if len(given) == 1 else f"{what} {index}"
        try:
            array = array_of(value)
        # Lists of unequal lengths, and types of torch's that numpy does not have.
        except (ValueError, TypeError) as error:
            problems.append(f"{label} is {_what(value)}: {error}")
            continue
        if array.dtype.kind not in "biuf":
            problems.append(f"{label} is {_what(value)} of {array.dtype}, not of numbers")
        arrays.append(array)
    if problems:
        raise DataError("\n".join(problems), hint=_AN_ARRAY_EACH)
    return arrays


def _what(value: object) -> str:
    """A value, and the shapes of the arrays in a list: of several inputs in one list, or samples of several shapes."""
    shapes = [str(tuple(v.shape)) for v in value if hasattr(v, "shape")] if isinstance(value, list) else []
    return described(value) + (f" arrays of shapes {', '.join(shapes[:4])}" if shapes else "")


def make_samples(tensors: Sequence[Tensor], arrays: Sequence[Array], labels: Array | None = None) -> Samples:
    """Samples from one stacked array per input, the first dimension running over samples.

    Raises DataError for a wrong number of arrays, different numbers of samples, samples of a wrong shape, or values
    that are NaN or infinite.
    """
    if len(arrays) != len(tensors):
        names = ", ".join(t.name for t in tensors)
        raise DataError(f"the model has {len(tensors)} input(s) ({names}), the data {len(arrays)}")
    problems = []
    for tensor, array in zip(tensors, arrays, strict=True):
        each = tensor.shape[1:] if tensor.shape[:1] == (1,) else tensor.shape
        if array.ndim == 0 or array.shape[1:] not in (each, tensor.shape):
            problems.append(
                f"data for input {tensor.name} must be (samples, {', '.join(map(str, each))}), is {array.shape}"
            )
        elif problem := _not_finite(tensor, array):
            problems.append(problem)
    counts = {len(a) for a in (*arrays, *([] if labels is None else [labels])) if a.ndim}
    if len(counts) > 1:
        problems.append(f"the arrays hold different numbers of samples: {sorted(counts)}")
    if counts == {0}:
        problems.append("the data holds no sample")
    if labels is not None and not _are_classes(labels):
        problems.append(
            f"labels must be one class index a sample, are {labels.dtype} of shape {labels.shape}"
        )
    if problems:
        hint = "one array per input, one row per sample; leave out samples that are not of numbers alone"
        raise DataError("; ".join(problems), hint=hint)
    inputs = tuple(tuple(a[i] for a in arrays) for i in range(len(arrays[0])))
    return Samples(inputs, None if labels is None else tuple(int(v) for v in np.asarray(labels).ravel()))


def _not_finite(tensor: Tensor, array: Array) -> str:
    """Says which values of stacked samples are no numbers; empty when all are."""
    bad = ~np.isfinite(array) if array.dtype.kind == "f" else np.zeros(array.shape, bool)
    if not bad.any():
        return ""
    samples = np.flatnonzero(bad.reshape(len(array), -1).any(axis=1))
    return (
        f"data for input {tensor.name} holds {int(bad.sum())} values that are NaN or infinite, in {len(samples)} "
        f"sample(s), first in sample {samples[0]}"
    )


def _are_classes(labels: Array) -> bool:
    """Whether there is one whole number a sample."""
    one_each = labels.ndim >= 1 and labels.size == len(labels)
    return one_each and labels.dtype.kind in "iub"


def prepare_inputs(tensors: Sequence[Tensor], arrays: Sequence[Array]) -> list[Array]:
    """One sample in the program's own dtypes: float data is quantized, a missing batch dimension of 1 added.

    Raises DataError that lists all that is wrong.
    """
    if len(arrays) != len(tensors):
        names = ", ".join(t.name for t in tensors)
        raise DataError(f"the model has {len(tensors)} input(s) ({names}), {len(arrays)} array(s) were given")
    prepared: list[Array] = []
    problems: list[str] = []
    for tensor, given in zip(tensors, arrays, strict=True):
        alone = given.shape == tensor.shape[1:] and tensor.shape[:1] == (1,)
        array = given[None] if alone else given
        if array.shape != tensor.shape:
            problems.append(f"input {tensor.name} has shape {tensor.shape}, the array {array.shape}")
            continue
        if array.dtype.kind == "f":
            if not np.all(np.isfinite(array)):
                problems.append(f"the array for input {tensor.name} holds NaN or infinity")
                continue
            if tensor.type.quant is not None and tensor.type.is_itself and np.any(array != np.rint(array)):
                problems.append(
                    f"input {tensor.name} is int16 as a converter gives it, the array holds fractions such as "
                    f"{float(array[array != np.rint(array)][0]):.6g}"
                )
                continue
            if tensor.type.quant is not None:
                prepared.append(quantize(array.astype(np.float32), tensor.type))
                continue
            if tensor.dtype is DType.FLOAT32:
                prepared.append(array.astype(np.float32))
                continue
        if array.dtype.kind in "iub" and tensor.dtype is not DType.FLOAT32:
            low, high = tensor.dtype.range
            if array.size and (int(array.min()) < low or int(array.max()) > high):
                problems.append(f"values for input {tensor.name} leave {tensor.dtype.value}")
                continue
            prepared.append(array.astype(tensor.dtype.numpy))
            continue
        what = (
            "bytes as they come from the camera (uint8)"
            if tensor.dtype is DType.UINT8
            else tensor.dtype.value
        )
        problems.append(f"input {tensor.name} is {what}, the array {array.dtype}")
    if problems:
        raise DataError("; ".join(problems), hint="give one sample as float32, or in the input's own dtype")
    return prepared


def demonstration(
    tensors: Sequence[Tensor], sample: Sequence[Array] | None, evaluation: Data | None
) -> list[Array]:
    """One array an input, in its own dtype: the sample, or the first one of the evaluation data, or a fixed pattern.

    Raises DataError for a sample, or evaluation data, that does not fit the inputs.
    """
    if evaluation is not None:
        first = make_samples(tensors, evaluation.arrays, evaluation.labels).inputs[0]
        sample = first if sample is None else sample
    if sample is None:
        return pattern_inputs(tensors)
    return prepare_inputs(tensors, as_arrays(sample))


def pattern_inputs(tensors: Sequence[Tensor]) -> list[Array]:
    """A fixed sample in the inputs' own dtypes: a pattern that visits the whole range of each input's values."""
    arrays: list[Array] = []
    for tensor in tensors:
        ramp = (np.arange(tensor.type.count, dtype=np.int64) * 37) % 256 - 128
        if tensor.dtype.numpy.kind == "f":
            arrays.append((ramp / 128).astype(np.float32).reshape(tensor.shape))
        elif tensor.dtype is DType.UINT8:
            arrays.append((ramp + 128).astype(np.uint8).reshape(tensor.shape))
        elif tensor.type.quant is None:
            # Indices: zero is the one that always exists.
            arrays.append(np.zeros(tensor.shape, tensor.dtype.numpy))
        else:
            low, high = tensor.dtype.range
            # Of int16, too: any odd step visits all of a power of two.
            step = 37 if tensor.dtype is DType.INT8 else 37 * 256 + 1
            values = (np.arange(tensor.type.count, dtype=np.int64) * step) % (high - low + 1) + low
            arrays.append(values.astype(tensor.dtype.numpy).reshape(tensor.shape))
    return arrays


def predicted(output: Array) -> int:
    """The class that a classifier's output names."""
    return int(output.ravel()[0]) if output.size == 1 else int(np.argmax(output.ravel()))
