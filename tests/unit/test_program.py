# SPDX-License-Identifier: Apache-2.0
"""Programs and their files: what comes back after saving, and what is refused without ever crashing."""

from __future__ import annotations

import hashlib
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from flatbuffers.table import Table
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import small
from tinyet.errors import DataError, ProgramError
from tinyet.ir import to_text
from tinyet.program import Program, load
from tinyet.tet.format import DIGEST_BYTES, FORMAT_VERSION, Contents, decode

_PROGRAM = small.program()
_DATA = _PROGRAM.data
_PAYLOAD = _DATA[:-DIGEST_BYTES]


def _sealed(payload: bytes) -> bytes:
    """A payload with a right checksum."""
    return payload + hashlib.sha256(payload).digest()


def _with_version(version: int) -> bytes:
    """The program's file with another number of the format, and a right checksum."""
    payload = bytearray(_PAYLOAD)
    table = Table(payload, struct.unpack_from("<I", payload)[0])
    struct.pack_into("<i", payload, table.Pos + table.Offset(4), version)
    return _sealed(bytes(payload))


# ---- there and back ----


def test_everything_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "small.tet"
    _PROGRAM.save(path)
    again = load(path)
    assert again.name == "small"
    assert again.notes == _PROGRAM.notes
    assert _PROGRAM.float_graph is not None
    assert again.float_graph is not None
    for one, other in ((again.graph, _PROGRAM.graph), (again.float_graph, _PROGRAM.float_graph)):
        assert to_text(one) == to_text(other)
        for a, b in zip(one.constants, other.constants, strict=True):
            assert a.type == b.type
            assert a.array.dtype == b.array.dtype
            np.testing.assert_array_equal(a.array, b.array)
    assert path.read_bytes() == _DATA
    assert again.data == _DATA
    assert again.hash == _PROGRAM.hash == hashlib.sha256(_DATA).hexdigest()
    x = small.images(1)
    np.testing.assert_array_equal(again.run(x), _PROGRAM.run(x))


def test_the_same_program_gives_the_same_bytes_and_another_gives_others() -> None:
    assert small.program().data == _DATA
    assert small.program(channels=5).data != _DATA


def test_a_program_without_float_graph_and_notes_comes_back() -> None:
    bare = Program("bare", small.graph())
    contents = decode(bare.data, "bare.tet")
    assert contents.float_graph is None
    assert contents.notes == ()


def test_saving_replaces_a_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "small.tet"
    path.write_text("old")
    _PROGRAM.save(path)
    assert load(path).hash == _PROGRAM.hash
    assert [entry.name for entry in tmp_path.iterdir()] == ["small.tet"]


def test_saving_where_there_is_no_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="cannot be saved"):
        _PROGRAM.save(tmp_path / "missing" / "small.tet")
    assert list(tmp_path.iterdir()) == []


# ---- files that are no programs ----


def _refused(data: bytes) -> ProgramError:
    with pytest.raises(ProgramError) as caught:
        decode(data, "small.tet")
    assert caught.value.where == "small.tet"
    assert caught.value.hint
    return caught.value


def test_missing_file_and_directory(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.tet", tmp_path):
        with pytest.raises(ProgramError, match="cannot be read") as caught:
            load(path)
        assert caught.value.where == str(path)


def test_a_file_that_is_none_or_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.tet")
    for place in (tmp_path / "pipe.tet", Path("/dev/zero")):
        with pytest.raises(ProgramError, match="cannot be read: it is no regular file"):
            load(place)
    path = tmp_path / "small.tet"
    path.write_bytes(_DATA)
    monkeypatch.setattr("tinyet.program.MAX_FILE_BYTES", len(_DATA) - 1)
    with pytest.raises(ProgramError, match="it has more than"):
        load(path)


@pytest.mark.parametrize(
    "data", [b"", b"TNYT", bytes(64), b"\x7fELF" + bytes(100), b"PK\x03\x04" + bytes(99)]
)
def test_other_files(data: bytes) -> None:
    assert "not a tinyet program" in _refused(data).what


def test_truncated_at_every_length() -> None:
    for length in range(len(_DATA)):
        _refused(_DATA[:length])


def test_something_behind_the_end() -> None:
    assert "checksum" in _refused(_DATA + b"\0").what


def test_every_single_damaged_byte_is_noticed() -> None:
    for at in range(len(_DATA)):
        damaged = bytearray(_DATA)
        damaged[at] ^= 0x10
        _refused(bytes(damaged))


def test_a_newer_format_is_refused_by_name() -> None:
    assert decode(_with_version(FORMAT_VERSION), "x").name == "small"
    error = _refused(_with_version(FORMAT_VERSION + 1))
    assert f"format {FORMAT_VERSION + 1}" in error.what
    assert error.hint is not None
    assert "newer tinyet" in error.hint


@pytest.mark.parametrize("version", [0, -1, -(2**31)])
def test_a_format_that_never_was(version: int) -> None:
    assert "does not exist" in _refused(_with_version(version)).what


def test_an_unknown_operator_is_named() -> None:
    assert _PAYLOAD.count(b"linear") == 1
    error = _refused(_sealed(_PAYLOAD.replace(b"linear", b"lineal")))
    assert "lineal" in error.what


@pytest.mark.parametrize(
    ("attribute", "nonsense"),
    [
        (b'"stride_h": 2', b'"stride_h": 0'),
        (b'"kernel_h": 2', b'"kernel_h": 0'),
        (b'"kernel_h": 2', b'"kernel_i": 2'),
        (b'"pad_top": 1', b'"pad_top":""'),
        (b'"pad_top": 1, ', b'"pad_top":1.5,'),
        (b'"groups": 1,', b'"groups":"",'),
        (b'"clamp": [0.0, Infinity]', b'"clamp": {"a": Infinity}'),
        (b'"clamp": [0.0, Infinity]', b'"clamp": [0.0]          '),
        (b'{"shape": [1, 36]}', b'{"shape": [0,-36]}'),
        (b'{"shape": [1, 36]}', b'{"shape": [[1,3]]}'),
        (b'{"shape": [1, 36]}', b"[[[[[[[[[]]]]]]]]]"),
    ],
)
def test_attributes_that_make_no_sense(attribute: bytes, nonsense: bytes) -> None:
    assert _PAYLOAD.count(attribute) >= 1
    assert len(attribute) == len(nonsense)
    _refused(_sealed(_PAYLOAD.replace(attribute, nonsense)))


def _decode_or_refuse(payload: bytes) -> Contents | None:
    """Anything but a ProgramError passes through and fails the test."""
    try:
        return decode(_sealed(payload), "small.tet")
    except ProgramError:
        return None


def test_nonsense_in_each_word_with_a_right_checksum() -> None:
    refused = 0
    for at in range(8, len(_PAYLOAD) - 4, 4):
        for word in (0xFFFFFFFF, len(_PAYLOAD)):
            payload = bytearray(_PAYLOAD)
            struct.pack_into("<I", payload, at, word)
            refused += _decode_or_refuse(bytes(payload)) is None
    assert refused > 100  # the tables' offsets and lengths; weights may be anything


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(8, len(_PAYLOAD) - 1), st.integers(0, 255)), min_size=1, max_size=8))
def test_damage_with_a_right_checksum_never_crashes(changes: list[tuple[int, int]]) -> None:
    payload = bytearray(_PAYLOAD)
    for at, value in changes:
        payload[at] = value
    _decode_or_refuse(bytes(payload))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_random_content_with_a_right_checksum_never_crashes(content: bytes) -> None:
    _decode_or_refuse(_PAYLOAD[:8] + content)


# ---- running ----


def test_floats_are_quantized_and_integers_are_taken_as_they_are() -> None:
    x = small.images(1)
    quantized = np.clip(np.rint(x / np.float32(0.05)) + 3, -128, 127).astype(np.int8)
    as_integers = _PROGRAM.run(quantized)
    assert isinstance(as_integers, np.ndarray)
    assert as_integers.dtype == np.int8
    as_reals = _PROGRAM.run(x)
    assert isinstance(as_reals, np.ndarray)
    assert as_reals.dtype == np.float32
    np.testing.assert_allclose(
        as_reals.astype(np.float64), (as_integers.astype(np.float64) + 5) * 0.2, rtol=1e-6
    )
    np.testing.assert_array_equal(_PROGRAM.run(x, as_float=False), as_integers)
    np.testing.assert_array_equal(_PROGRAM.run(x[0]), as_reals)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((), "1 input"),
        ((small.images(1), small.images(1)), "2 array"),
        ((small.images(2),), "shape"),
        ((np.zeros((1, 3, 6, 6), np.float32),), "shape"),
        ((np.full((1, 6, 6, 3), np.nan, np.float32),), "NaN"),
        ((np.full((1, 6, 6, 3), 200, np.int32),), "leave int8"),
        ((np.zeros((1, 6, 6, 3), np.complex64),), "complex64"),
        ((np.full((1, 6, 6, 3), "a"),), "<U1"),
    ],
)
def test_data_that_does_not_fit(arrays: tuple[np.ndarray, ...], message: str) -> None:
    with pytest.raises(DataError, match=message):
        _PROGRAM.run(*arrays)
