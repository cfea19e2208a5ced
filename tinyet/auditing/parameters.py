# SPDX-License-Identifier: Apache-2.0
"""A kernel's parameters in a firmware, field by field, with the layout that the compiler's debug information tells."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

from elftools.dwarf.die import DIE

from tinyet.opset import FieldValue, Pointer, Struct


def wrong_fields(
    data: bytes, kind: DIE, wanted: Struct, address_of: Callable[[str], int | None]
) -> list[str]:
    """The fields of a struct that do not hold what they should: "name is 3, should be 4" each.

    data: the struct's bytes. kind: its type. address_of: the address of an array by its role.
    """
    return list(_compare("", data, 0, _bare(kind), wanted, address_of))


def _bare(kind: DIE) -> DIE:
    """Without typedefs and qualifiers."""
    while kind.tag in ("DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_typedef"):
        kind = kind.get_DIE_from_attribute("DW_AT_type")
    return kind


def _members(kind: DIE) -> Mapping[str, tuple[int, DIE]]:
    return {
        die.attributes["DW_AT_name"].value.decode(): (
            die.attributes["DW_AT_data_member_location"].value,
            _bare(die.get_DIE_from_attribute("DW_AT_type")),
        )
        for die in kind.iter_children()
        if die.tag == "DW_TAG_member" and "DW_AT_name" in die.attributes
    }


def _compare(
    name: str, data: bytes, at: int, kind: DIE, wanted: FieldValue, address_of: Callable[[str], int | None]
) -> list[str]:
    if isinstance(wanted, Struct):
        members, wrong = _members(kind), list[str]()
        for field, value in wanted.fields.items():
            inner = f"{name}.{field}" if name else field
            if field not in members:
                wrong.append(f"{inner} is not in the struct")
                continue
            offset, of = members[field]
            wrong += _compare(inner, data, at + offset, of, value, address_of)
        return wrong
    if isinstance(wanted, tuple):
        of = _bare(kind.get_DIE_from_attribute("DW_AT_type"))
        size = of.attributes["DW_AT_byte_size"].value
        return [
            text
            for index, value in enumerate(wanted)
            for text in _compare(f"{name}[{index}]", data, at + index * size, of, value, address_of)
        ]
    size = kind.attributes["DW_AT_byte_size"].value
    stored = data[at : at + size]
    if isinstance(wanted, Pointer):
        there = int.from_bytes(stored, "little")
        address = address_of(wanted.constant)
        # An array whose symbol is gone is found by its bytes, or missed, elsewhere.
        return [] if address in (None, there) else [f"{name} points to {there:#x}, should to {address:#x}"]
    if isinstance(wanted, float):
        expected = struct.pack("<f", wanted)
        return [] if stored == expected else [f"{name} is {stored.hex()}, should be {expected.hex()}"]
    value = int.from_bytes(stored, "little")
    expected_value = int(wanted) & ((1 << 8 * size) - 1)
    return [] if value == expected_value else [f"{name} is {value:#x}, should be {expected_value:#x}"]
