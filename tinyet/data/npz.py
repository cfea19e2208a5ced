# SPDX-License-Identifier: Apache-2.0
"""Reads and writes `data.npz`: one array per model input (or `inputs`), samples first, and optionally `labels`."""

from __future__ import annotations

import ast
import io
import math
import struct
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from tinyet.errors import DataError, UsageError
from tinyet.errors.arguments import described
from tinyet.files.reading import open_regular
from tinyet.ir import Array

LABELS = "labels"

_MOST_BYTES = 1 << 30
_CHUNK = 1 << 20
_MOST_ARRAYS = 256
_MOST_DIMENSIONS = 16
# Of an array's header, which numpy evaluates: what it writes has some 120.
_MOST_HEADER_BYTES = 4096
# What damaged archives and headers raise, and a machine that has less memory than the arrays take.
_UNREADABLE: tuple[type[Exception], ...] = (
    *(OSError, ValueError, TypeError, EOFError, KeyError, NotImplementedError, RuntimeError, RecursionError),
    *(MemoryError, SyntaxError, OverflowError, struct.error, zlib.error, zipfile.BadZipFile),
)


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
    file's order. Raises DataError when the file cannot be read or holds no array, more than 1 GiB or anything else than
    arrays of plain elements, or lacks the samples of an input.
    """
    place = str(path)
    try:
        with open_regular(place) as file, zipfile.ZipFile(file) as archive:
            arrays = _arrays(archive)
    except _UNREADABLE as error:
        raise DataError(
            f"cannot read the data: {str(error) or type(error).__name__}",
            place,
            "save it with numpy.savez(path, inputs=…, labels=…)",
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


def _arrays(archive: zipfile.ZipFile) -> dict[str, Array]:
    """The arrays by name, in the order of the file. Raises ValueError, and what damaged archives raise."""
    infos = archive.infolist()
    if len(infos) > _MOST_ARRAYS:
        raise ValueError(f"the file holds {len(infos)} arrays; {_MOST_ARRAYS} is the most")
    size = sum(info.file_size for info in infos)
    if size > _MOST_BYTES:
        raise ValueError(f"the arrays take {size:,} bytes; {_MOST_BYTES:,} is the most: store fewer samples")
    arrays: dict[str, Array] = {}
    for info in infos:
        name = info.filename.removesuffix(".npy")
        if name in arrays:
            raise ValueError(f"the file holds {name!r} twice")
        with archive.open(info) as entry:
            try:
                arrays[name] = _array(entry, info.file_size)
            except (ValueError, SyntaxError, TypeError) as error:
                raise ValueError(f"{name!r} is no array of numpy's: {error}") from error
    return arrays


def _header(text: bytes) -> tuple[tuple[int, ...], bool, np.dtype[np.generic]]:
    """Shape, order and type of elements, as an array says. Raises ValueError, and what Python's parser raises."""
    fields = ast.literal_eval(text.decode("latin1").strip())
    if not isinstance(fields, dict) or set(fields) != {"descr", "fortran_order", "shape"}:
        raise ValueError("its header says something else than type, order and shape")
    shape, is_column_major, kind = fields["shape"], fields["fortran_order"], fields["descr"]
    dtype = np.dtype(kind) if isinstance(kind, str) else None
    if dtype is None or dtype.hasobject or dtype.names is not None or dtype.itemsize == 0:
        raise ValueError(f"its elements are {kind!r}: objects and records are not read")
    if not isinstance(shape, tuple) or not isinstance(is_column_major, bool):
        raise ValueError(f"its shape is {shape!r}, its order {is_column_major!r}")
    return shape, is_column_major, dtype


def _array(entry: IO[bytes], size: int) -> Array:
    """An array from its .npy form of `size` bytes. What it says of itself is checked before anything is allocated."""
    start = entry.read(8)
    if start[:6] != b"\x93NUMPY" or len(start) != 8 or start[6] not in (1, 2, 3):
        raise ValueError("it begins otherwise")
    form = struct.Struct("<H" if start[6] == 1 else "<I")
    (length,) = form.unpack(entry.read(form.size))
    if length > _MOST_HEADER_BYTES:
        raise ValueError(f"its header has {length:,} bytes; {_MOST_HEADER_BYTES:,} is the most")
    shape, is_column_major, dtype = _header(entry.read(length))
    if len(shape) > _MOST_DIMENSIONS or any(type(n) is not int or n < 0 for n in shape):
        raise ValueError(f"its shape is {shape}")
    rest = size - len(start) - form.size - length
    if math.prod(shape) * dtype.itemsize != rest:
        raise ValueError(f"its shape is {shape}, its elements {dtype}, and {rest:,} bytes follow")
    data = memoryview(bytearray(rest))
    for at in range(0, rest, _CHUNK):
        part = entry.read(min(_CHUNK, rest - at))
        data[at : at + len(part)] = part
        if len(part) != min(_CHUNK, rest - at):
            raise ValueError("it ends early")
    array = np.frombuffer(data, dtype).reshape(shape, order="F" if is_column_major else "C")
    return array.astype(dtype.newbyteorder("="), copy=False)


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


def data_given(given: object, names: Sequence[str]) -> Data | None:
    """Evaluation data in the one form that is worked with. names: of the inputs. Raises UsageError, and DataError for a
    file."""
    if given is None or isinstance(given, Data):
        return given
    if isinstance(given, (str, Path)):
        return read_data(given, names)
    raise UsageError(
        f"evaluation is {described(given)}",
        hint="the path of a file: numpy.savez(path, inputs=…, labels=…); or tinyet.data.Data((inputs,), labels)",
    )
