# SPDX-License-Identifier: Apache-2.0
"""Who a model in a firmware is: the record that its self-test puts into flash, found in an ELF file, an image, or a
dump of a device's memory.

firmware/include/tinyet_selftest.h is the other side.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

MAGIC = b"TINYET\xb5\x01"
_RECORD = struct.Struct("<8sII32s16s32s32s")
BYTES = _RECORD.size


@dataclass(frozen=True)
class Identity:
    """constant_bytes, constant_crc: of the weights and tables, and their CRC-32. hash: of the program, in hexadecimal
    digits. version: of the tinyet that generated the code. build: of the firmware, as its makers call it."""

    name: str
    version: str
    hash: str
    build: str
    constant_bytes: int
    constant_crc: int


def read_identity(record: bytes) -> Identity | None:
    """None for bytes that are no such record."""
    if len(record) != BYTES or not record.startswith(MAGIC):
        return None
    _, count, crc, digest, *texts = _RECORD.unpack(record)
    try:
        version, name, build = (text.partition(b"\0")[0].decode("utf-8") for text in texts)
    except UnicodeDecodeError:
        return None
    return Identity(name, version, digest.hex(), build, count, crc) if name and version else None


def identities(image: bytes) -> tuple[Identity, ...]:
    """All records in an image, in the order in which they lie there."""
    found, at = list[Identity](), image.find(MAGIC)
    while at >= 0:
        identity = read_identity(image[at : at + BYTES])
        if identity is not None:
            found.append(identity)
        at = image.find(MAGIC, at + 1)
    return tuple(found)
