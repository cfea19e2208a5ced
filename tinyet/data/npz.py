# SPDX-License-Identifier: Apache-2.0
"""Reads and writes `data.npz`: one array per model input (or `inputs`), samples first, and optionally `labels`."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tinyet.errors import DataError
from tinyet.ir import Array

LABELS = "labels"


@dataclass(frozen=True, eq=False)
class Data:
    """Stacked samples: one array per model input, and class labels if the file has them."""

    arrays: tuple[Array, ...]
    labels: Array | None = None

    def __repr__(self) -> str:
        shapes = ", ".join(f"{a.dtype}{list(a.shape)}" for a in self.arrays)
        return f"<data {shapes}{'' if self.labels is None else ', labels'}>"


def read_data(path: str | Path, names: Sequence[str] | None = None) -> Data:
    """Read a .npz file.

    names: the model's input names; arrays so called are taken in that order, otherwise arrays are taken in the
    file's order. Raises DataError when the file cannot be read or holds no array, or lacks the samples of an input.
    """
    place = str(path)
    try:
        with np.load(place, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    # TypeError: a .npy file is an array, which is no archive. The rest is what damaged archives raise.
    except (OSError, ValueError, TypeError, EOFError, KeyError, NotImplementedError, RuntimeError, zlib.error,
            zipfile.BadZipFile) as error:  # fmt: skip
        raise DataError(
            f"cannot read the data: {error}", place, "save it with numpy.savez(path, inputs=…, labels=…)"
        ) from error
    labels = arrays.pop(LABELS, None)
    if not arrays:
        raise DataError("the file holds no input array", place, "numpy.savez(path, inputs=…, labels=…)")
    if names is not None and all(name in arrays for name in names):
        return Data(tuple(arrays[name] for name in names), labels)
    if "inputs" in arrays and (names is None or len(names) == 1):
        return Data((arrays["inputs"],), labels)
    if names is not None and len(arrays) != len(names):
        raise DataError(
            f"the file holds {', '.join(arrays)}; the model's inputs are {', '.join(names)}",
            place,
            "name the arrays like the inputs",
        )
    return Data(tuple(arrays.values()), labels)


def encode_data(data: Data, names: Sequence[str]) -> bytes:
    """The bytes of a .npz file with the arrays under the inputs' names; the same data always gives the same bytes.

    Nothing is compressed, because the result would depend on the zlib at hand. An input called `labels` is renamed:
    that name is taken.
    """
    keys = [f"{name}_input" if name == LABELS else name for name in names]
    fields = dict(zip(keys, data.arrays, strict=True))
    if data.labels is not None:
        fields[LABELS] = data.labels
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for key, array in fields.items():
            entry = zipfile.ZipInfo(f"{key}.npy")  # dated 1980, not now
            entry.create_system = 3  # the same on every system
            with archive.open(entry, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()
