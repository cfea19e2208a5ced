# SPDX-License-Identifier: Apache-2.0
"""Reading and writing data.npz."""

from __future__ import annotations

import io
import struct
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinyet.data import Data, encode_data, read_data
from tinyet.errors import DataError

_A = np.arange(6, dtype=np.float32).reshape(2, 3)
_B = np.arange(4, dtype=np.int32).reshape(2, 2)
_LABELS = np.array([1, 0])


def _file(tmp_path: Path, **arrays: Any) -> Path:
    path = tmp_path / "data.npz"
    with path.open("wb") as file:
        np.savez(file, **arrays)
    return path


def _same(data: Data, *arrays: np.ndarray) -> None:
    assert len(data.arrays) == len(arrays)
    for got, wanted in zip(data.arrays, arrays, strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)


# ---- reading ----


def test_arrays_are_taken_by_the_names_of_the_inputs(tmp_path: Path) -> None:
    data = read_data(_file(tmp_path, b=_B, a=_A, labels=_LABELS, other=_A), ["a", "b"])
    _same(data, _A, _B)
    assert data.labels is not None
    np.testing.assert_array_equal(data.labels, _LABELS)


def test_inputs_is_the_only_input(tmp_path: Path) -> None:
    data = read_data(_file(tmp_path, inputs=_A, whatever=_B), ["x"])
    _same(data, _A)
    assert data.labels is None


def test_other_names_are_taken_in_the_order_of_the_file(tmp_path: Path) -> None:
    _same(read_data(_file(tmp_path, q=_B, p=_A), ["x", "y"]), _B, _A)
    _same(read_data(_file(tmp_path, q=_B, p=_A)), _B, _A)


def test_another_number_of_arrays_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the file holds q, p; the model's inputs are x") as caught:
        read_data(_file(tmp_path, q=_B, p=_A), ["x"])
    assert caught.value.where is not None


def test_labels_alone_are_no_data(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no input array"):
        read_data(_file(tmp_path, labels=_LABELS), ["x"])


def _npy() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, _A)
    return buffer.getvalue()


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04" + bytes(50), _npy()])
def test_files_that_are_no_archives(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "data.npz"
    path.write_bytes(content)
    with pytest.raises(DataError, match="cannot read the data") as caught:
        read_data(path)
    assert caught.value.where == str(path)
    assert caught.value.hint is not None


def test_missing_file_and_directory(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.npz", tmp_path):
        with pytest.raises(DataError, match="cannot read the data"):
            read_data(path)


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    path = _file(tmp_path, inputs=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DataError, match="cannot read the data"):
        read_data(path)


@pytest.mark.parametrize("compressed", [False, True])
def test_damaged_archives(tmp_path: Path, compressed: bool) -> None:
    """Whatever is damaged: the data, or one clear error."""
    buffer = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, inputs=_A, labels=_LABELS)
    content = buffer.getvalue()
    path = tmp_path / "data.npz"
    refused = 0
    for at in range(0, len(content), 3):
        for damaged in (content[:at], content[:at] + bytes([content[at] ^ 0x41]) + content[at + 1 :]):
            path.write_bytes(damaged)
            try:
                read_data(path, ["inputs"])
            except DataError:
                refused += 1
    assert refused > len(content) // 3


def _entry(
    header: bytes, data: bytes = b"", *, magic: bytes = b"\x93NUMPY\x01\x00", length: int | None = None
) -> bytes:
    form = "<H" if magic[6:7] == b"\x01" else "<I"
    return magic + struct.pack(form, len(header) if length is None else length) + header + data


def _header(shape: str = "(2, 3)", descr: str = "'<f4'", order: str = "False") -> bytes:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()


@pytest.mark.parametrize(
    ("entry", "part"),
    [
        (_entry(b" " * 60_000), "its header has 60,000 bytes; 4,096 is the most"),
        (_entry(b"", magic=b"\x93NUMPY\x02\x00", length=0xFFFF_FFFF), "its header has 4,294,967,295 bytes"),
        (_entry(_header("(1 << 40,)")), "no array"),
        (_entry(_header("(1099511627776, 1099511627776)")), "and 0 bytes follow"),
        (_entry(_header("(-2, -3)"), bytes(24)), "its shape is (-2, -3)"),
        (_entry(_header("(2, 3)"), bytes(23)), "and 23 bytes follow"),
        (_entry(_header("(2, 3)"), bytes(25)), "and 25 bytes follow"),
        (_entry(_header("(0, 1099511627776)"), bytes(4)), "and 4 bytes follow"),
        (_entry(_header("(1,)" * 1), b"", magic=b"\x93NUMPZ\x01\x00"), "it begins otherwise"),
        (_entry(_header(), b"", magic=b"\x93NUMPY\x09\x00"), "it begins otherwise"),
        (_entry(_header(descr="'|O'"), bytes(48)), "objects and records are not read"),
        (_entry(_header(descr="[('a', '<f4')]"), bytes(24)), "objects and records are not read"),
        (_entry(_header(descr="'<U0'"), b""), "objects and records are not read"),
        (_entry(_header("(" + "1," * 17 + ")"), bytes(4)), "its shape is"),
        (_entry(_header("(True,)"), bytes(4)), "its shape is"),
        (_entry(b"(" * 3000), "no array"),
        (_entry(b"__import__('os').system('touch pwned')"), "no array"),
        (b"", "it begins otherwise"),
        (b"\x93NUMPY\x01\x00", "cannot read the data"),
    ],
)
def test_what_an_array_says_of_itself_is_checked_first(tmp_path: Path, entry: bytes, part: str) -> None:
    path = tmp_path / "data.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inputs.npy", entry)
    with pytest.raises(DataError, match="cannot read the data") as caught:
        read_data(path)
    assert part in str(caught.value)


def test_bombs_twins_and_crowds_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    # More than 1 GiB, from a few bytes: the directory's figures suffice.
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inputs.npy", _entry(_header("(65536, 16384)"), b"x"))
    content = path.read_bytes()
    size = struct.pack("<I", len(_entry(_header("(65536, 16384)"), b"x")))
    path.write_bytes(content.replace(size, struct.pack("<I", 0xFFFF_FFF0)))
    with pytest.raises(DataError, match="1,073,741,824 is the most: store fewer samples"):
        read_data(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("inputs.npy", _npy())
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("inputs.npy", _npy())
    with pytest.raises(DataError, match="holds 'inputs' twice"):
        read_data(path)
    with zipfile.ZipFile(path, "w") as archive:
        for index in range(257):
            archive.writestr(f"a{index}.npy", _npy())
    with pytest.raises(DataError, match="257 arrays; 256 is the most"):
        read_data(path)


def test_every_order_and_byte_order_is_read(tmp_path: Path) -> None:
    turned = np.asfortranarray(np.arange(24, dtype=">f4").reshape(2, 3, 4))
    data = read_data(_file(tmp_path, a=turned, b=np.zeros((0, 3), np.int8), c=np.float64(3)))
    _same(data, turned.astype(np.float32), np.zeros((0, 3), np.int8), np.array(3.0))
    assert data.arrays[0].dtype == np.dtype("<f4")
    data.arrays[0][0, 0, 0] = 7


# ---- writing ----


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    path.write_bytes(encode_data(Data((_A, _B), _LABELS), ["a", "b"]))
    data = read_data(path, ["a", "b"])
    _same(data, _A, _B)
    assert data.labels is not None
    np.testing.assert_array_equal(data.labels, _LABELS)


@pytest.mark.parametrize("names", [["labels", "b"], ["file", "allow_pickle"], ["self", "labels"]])
def test_inputs_may_have_any_name(tmp_path: Path, names: list[str]) -> None:
    path = tmp_path / "data.npz"
    path.write_bytes(encode_data(Data((_A, _B), _LABELS), names))
    data = read_data(path, names)
    _same(data, _A, _B)
    assert data.labels is not None


def test_the_same_data_gives_the_same_bytes_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    data = Data((_A[:, ::-1], _B), _LABELS)
    first = encode_data(data, ["a", "b"])
    monkeypatch.setattr(time, "time", lambda: 2e9)
    monkeypatch.setattr(time, "localtime", lambda *_: time.struct_time((2033, 5, 18, 3, 33, 20, 2, 138, 0)))
    assert encode_data(data, ["a", "b"]) == first
    assert encode_data(Data((_A, _B), _LABELS), ["a", "b"]) != first
