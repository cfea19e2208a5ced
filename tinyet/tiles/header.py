# SPDX-License-Identifier: Apache-2.0
"""The header of a printed function."""

from __future__ import annotations

from collections.abc import Sequence

LICENCE = "/* SPDX-License-Identifier: Apache-2.0 */"


def header_of(name: str, summary: str, parameters: Sequence[str], include: str) -> str:
    """The text of NAME.h. include: the header that the function's types and its reference in C are declared in."""
    guard = f"{name.upper()}_H"
    return "\n".join(
        (
            *(LICENCE, f"#ifndef {guard}", f"#define {guard}", "", f'#include "{include}"', ""),
            *("#ifdef __cplusplus", 'extern "C" {', "#endif", ""),
            f"/* {summary} */",
            f"void {name}({', '.join(parameters)});",
            *("", "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""),
        )
    )
