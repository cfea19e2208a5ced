# SPDX-License-Identifier: Apache-2.0
"""Mutants of .npz files. One that is read holds, to the bit, what numpy itself reads of it."""

from __future__ import annotations

import io
import random
import struct
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from tests.fuzz.run import Case, Outcome, Result, refusal
from tinyet.data import read_data
from tinyet.ir import Array

SHAPES = (
    "()", "(0,)", "(-1,)", "(6,)", "(2, 3)", "(3, 2)", "(1099511627776,)", "(4294967296, 4294967296)", "(2,)",
    "(True,)", "(1,) * 99", "[2, 3]", "None", "(2.0, 3)", "(" + "1, " * 40 + ")", "(0, 18446744073709551616)",
    "(6, 1)", "(1, 6)",
)  # fmt: skip
TYPES = (
    "'<f4'", "'>f4'", "'<f8'", "'|i1'", "'|u1'", "'<i2'", "'<i8'", "'|O'", "'<U3'", "'|S4'", "'|V4'", "'<c8'",
    "'|b1'", "'f4,f4'", "[('a', '<f4')]", "[]", "'<m8[s]'", "'x'", "3", "None", "'(2,2)f4'", "'<f4' * 9",
    "'<f16'", "'<f2'", "''",
)  # fmt: skip
HEADERS = (
    b"", b"{" * 3000, b"(" * 3000, b"[" * 60_000, b"1" * 5000, b"__import__('os')", b"\xff\xfe", b"{}",
    b"{1: 2}",
)  # fmt: skip
INTERESTING = (0, 1, 2, 3, 4, 6, 8, 9, 10, 0x7F, 0x80, 0xFE, 0xFF, 0x4D, 0x50)


class NpzFiles:
    """See the module."""

    name = "npz"

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tinyet-fuzz-"))

    def mutate(self, rng: random.Random) -> Case:
        labels, entries = [], []
        for name in rng.choice((["inputs"], ["inputs", "labels"], ["a", "b", "c"], [])):
            data, label = _npy(rng)
            entries.append(
                (
                    rng.choice(
                        (f"{name}.npy",) * 5 + (name, "../x.npy", "inputs.npy", "\x1b[2J.npy", ".npy")
                    ),
                    data,
                )
            )
            labels.append(f"{name}: {label}")
        buffer = io.BytesIO()
        compression = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
        with zipfile.ZipFile(buffer, "w", compression) as archive:
            for name, data in entries:
                if name not in archive.namelist():
                    archive.writestr(zipfile.ZipInfo(name), data, compression)
        whole = bytearray(buffer.getvalue())
        if rng.random() < 0.3:
            labels.append(_damage(whole, rng))
        return Case("; ".join(labels), bytes(whole))

    def check(self, case: Case) -> Outcome | None:
        path = self.folder / "data.npz"
        path.write_bytes(case.data)
        with refusal() as refused:
            data = read_data(path)
        if refused:
            assert str(refused[0])
            return Outcome.REFUSED
        with np.load(path, allow_pickle=False) as archive:
            keys = [key for key in archive.files if key != "labels"]
            wanted = [archive[key] for key in (["inputs"] if "inputs" in keys else keys)]
            _same(data.labels, archive["labels"] if "labels" in archive.files else None)
        assert len(data.arrays) == len(wanted)
        for got, right in zip(data.arrays, wanted, strict=True):
            _same(got, right)
        return Outcome.EXACT

    def flush(self) -> list[Result]:
        (self.folder / "data.npz").unlink(missing_ok=True)
        return []


def _same(got: Array | None, right: Array | None) -> None:
    assert (got is None) == (right is None)
    if got is not None and right is not None:
        assert (got.shape, got.dtype) == (right.shape, right.dtype.newbyteorder("="))
        assert got.tobytes() == right.astype(got.dtype).tobytes()


def _npy(rng: random.Random) -> tuple[bytes, str]:
    """An array's .npy form, right or with one thing in it that is not."""
    shape, kind, order = "(2, 3)", "'<f4'", "False"
    data = rng.randbytes(24)
    match rng.randrange(7):
        case 0:
            shape = rng.choice(SHAPES)
        case 1:
            kind = rng.choice(TYPES)
        case 2:
            order = rng.choice(("True", "None", "1", "'x'"))
        case 3:
            data = rng.randbytes(rng.choice((0, 1, 4, 12, 23, 25, 48, 1000)))
        case 4:
            shape, kind = rng.choice(SHAPES), rng.choice(TYPES)
    header = f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    if rng.random() < 0.1:
        header = rng.choice(HEADERS)
    version = rng.choice((1,) * 20 + (2, 3, 0, 9))
    length = (
        len(header) if rng.random() < 0.9 else rng.choice((0, 1, 0xFFFF, len(header) + 1, len(header) - 1))
    )
    form = "<H" if version == 1 else "<I"
    if version != 1 and rng.random() < 0.3:
        length = rng.choice((0xFFFF_FFFF, 1 << 31, 5000))
    start = (
        b"\x93NUMPY"
        + bytes([version, 0])
        + struct.pack(form, max(0, min(length, 0xFFFF if form == "<H" else length)))
    )
    return (
        start + header + data,
        f"version {version}, header {length} bytes {header[:80]!r}, {len(data)} bytes",
    )


def _damage(data: bytearray, rng: random.Random) -> str:
    """Change bytes of the archive itself: its directory is at the end."""
    match rng.randrange(4):
        case 0:
            at = rng.randrange(len(data) + 1)
            del data[at:]
            return f"cut at {at}"
        case 1:
            at, value = rng.randrange(max(0, len(data) - 100), len(data)), rng.choice(INTERESTING)
            data[at] = value
            return f"byte {at} = {value}"
        case 2:
            # A size or an offset of the directory.
            at = max(data.rfind(b"PK\x01\x02"), 0) + rng.choice((20, 24, 42, 28, 10, 8))
            value = rng.choice((0, 1, 0xFFFF_FFFF, 0x7FFF_FFFF, 1 << 30))
            data[at : at + 4] = struct.pack("<I", value)
            return f"field {at} = {value}"
    at = rng.randrange(len(data))
    data[at] ^= 1 << rng.randrange(8)
    return f"a bit of byte {at}"
