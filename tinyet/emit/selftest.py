# SPDX-License-Identifier: Apache-2.0
"""A model that tests itself: who it is, the sum of its constants, and an input with the sum of its outputs."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tinyet.deployment import StoredArray
from tinyet.emit.literals import array, packed
from tinyet.ir import Array
from tinyet.messages.text import c_string

HEADER = "tinyet_selftest.h"
_NAME_BYTES, _VERSION_BYTES, _BUILD_BYTES = 32, 16, 32


@dataclass(frozen=True)
class Golden:
    """A run whose outputs are known: one array an input and an output, in their own dtypes, beginning with the initial
    states."""

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]


@dataclass(frozen=True)
class SelfTestView:
    """As the template prints it. inputs: lines of values of each. crc: of constants and of outputs, in C. hash: the
    program's, as lines of bytes. name, version, build: texts in C that fit the identity."""

    inputs: tuple[tuple[str, ...], ...]
    constant_crc: str
    constant_bytes: int
    output_crc: str
    hash: tuple[str, ...]
    name: str
    version: str
    build: str


def selftest_view(
    golden: Golden,
    arrays: Iterable[StoredArray],
    name: str,
    program_hash: str,
    version: str,
    sources: Mapping[str, str],
) -> SelfTestView:
    """arrays: in the order of the C file. sources: all other files of the model: their sum names a build that has no
    name of its own."""
    constants = b"".join(np.ascontiguousarray(a.data).tobytes() or bytes(a.bytes) for a in arrays)
    digest = hashlib.sha256()
    for path, text in sorted(sources.items()):
        digest.update(f"{path}\0{text}\0".encode())
    digest.update(constants)
    return SelfTestView(
        inputs=tuple(tuple(array(data)) for data in golden.inputs),
        constant_crc=_crc([constants]),
        constant_bytes=len(constants),
        output_crc=_crc([np.ascontiguousarray(data).tobytes() for data in golden.outputs]),
        hash=tuple(packed([f"0x{byte:02X}u," for byte in bytes.fromhex(program_hash)])),
        name=c_string(name[: _NAME_BYTES - 1]),
        version=c_string(version[: _VERSION_BYTES - 1]),
        build=c_string(digest.hexdigest()[: _BUILD_BYTES // 2]),
    )


def _crc(parts: Sequence[bytes]) -> str:
    return f"0x{zlib.crc32(b''.join(parts)):08X}"
