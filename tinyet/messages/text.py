# SPDX-License-Identifier: Apache-2.0
"""Text from elsewhere, made fit for where it is read: a terminal, a comment, a string, a README, a report.

Names of models, layers, boards and tensors, source lines, notes and versions come out of files, and files come from
strangers. Whatever such a text holds, what these functions give cannot end a comment, a string or a line, and cannot
command a terminal: a character that is not printed is spelt out (`\\x1b`, `\\u202e`).
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable

# Printed as nothing or as a blank, although Unicode calls them letters, symbols or marks.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | frozenset(
    map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)
# More marks than this on one letter are no writing: they grow over the lines above and below.
_MOST_MARKS = 4
_MARKS = frozenset({"Mn", "Me", "Mc"})
_MARKDOWN = re.compile(r"[\\`*\[\]<>|&~$]|:(?=//)|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])|^[#+=-]")
# Signs that ASCII has a spelling for.
_SPELLINGS = str.maketrans(
    dict(
        zip(
            "…‐‑–—−‘’“”×·→←≤≥≠±µμ",
            "... - - - - - ' ' ' ' x . -> <- <= >= != +- u u".split(),  # noqa: SIM905
            strict=True,
        )
    )
)
_TRIGRAPH = re.compile(r"\?(?=\?)")


def _spelt(char: str) -> str:
    """A character's escape: \\n, \\x1b, \\u202e."""
    return char.encode("unicode_escape").decode("ascii")


def is_shown(char: str) -> bool:
    """Whether a character is one that people see (or the plain blank): no control, direction, join or width mark, no
    other blank, no half of a pair, no line separator."""
    return char.isprintable() and char not in _INVISIBLE


def printable(text: str) -> str:
    """Text for one line of a terminal, a report or a line comment: every character in it is seen."""
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    marks = 0
    for char in text:
        marks = marks + 1 if unicodedata.category(char) in _MARKS else 0
        shown.append(char if is_shown(char) and marks <= _MOST_MARKS else _spelt(char))
    return "".join(shown)


def printable_block(text: str) -> str:
    """Text of several lines, each as `printable` gives it."""
    return "\n".join(printable(line) for line in text.split("\n"))


def storable(text: str, most: int) -> str:
    """Text as files hold it: of at most so many characters, and without halves of pairs, which UTF-8 has not. What is
    cut short ends in a digest of the whole, so that no two are alike that were not."""
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode()
    if len(text) <= most:
        return text
    end = f"…{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return text[: most - len(end)] + end


def shown(value: object, most: int = 60) -> str:
    """A value of a file as an error names it, as Python writes it: in one line, of at most so many characters."""
    # Of a long text no more is looked at than is shown.
    text = printable(repr(value[:most] if isinstance(value, str) else value))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def json_text(value: object, *, indent: int | None = 2) -> str:
    """A value as JSON that a terminal may show: the characters that are not printed are escapes, as JSON writes them.

    Raises ValueError for NaN and infinities, which JSON has not.
    """
    text = json.dumps(value, indent=indent, allow_nan=False, ensure_ascii=False)
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(c if c == "\n" or is_shown(c) else json.dumps(c)[1:-1] for c in text)


def _in_ascii(text: str) -> str:
    """The text with ASCII's spelling of what has one: of some signs, and of letters with accents, which lose them."""
    if text.isascii():
        return text
    decomposed = ((char, unicodedata.normalize("NFD", char)[0]) for char in text.translate(_SPELLINGS))
    return "".join(plain if plain.isascii() and plain.isalpha() else char for char, plain in decomposed)


def c_comment(text: str) -> str:
    """Text that can stand inside a C comment: no end of comment, no trigraph, no line break or splice, only ASCII,
    because compilers for other character sets stumble over the rest. Letters that ASCII has no like of are escapes."""
    flat = " ".join(_in_ascii(text).split()).replace("*/", "* /").replace("/*", "/ *")
    flat = printable(_TRIGRAPH.sub("? ", flat)).encode("ascii", "backslashreplace").decode()
    return flat[:-1] + "\\x5c" if flat.endswith("\\") else flat


def c_string(text: str) -> str:
    """A C string constant of UTF-8, in ASCII: what C could read otherwise (trigraphs, too) is escaped."""
    out = []
    for byte in text.encode("utf-8", "replace"):
        char = chr(byte)
        if char in '"\\?':
            out.append("\\" + char)
        else:
            # Octal escapes end after three digits, whatever stands behind them.
            out.append(char if 0x20 <= byte < 0x7F else f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def cmake_argument(text: str) -> str:
    """One argument of a CMake command, quoted or not: what CMake could read otherwise has a backslash in front."""
    return re.sub(r"[ !\"#$&'()*;<>?\[\\\]^`{|}~]", lambda found: "\\" + found[0], printable(text))


def cmake_string(text: str) -> str:
    """A quoted argument of a CMake command."""
    return '"' + re.sub(r'([\\"$])', r"\\\1", printable(text)) + '"'


def kconfig_string(text: str) -> str:
    """A string of Kconfig."""
    return '"' + re.sub(r'([\\"])', r"\\\1", printable(text)) + '"'


def markdown(text: str) -> str:
    """Text in a sentence, a heading or a table of a README: no markup, no tag, no link, no new line."""
    return _MARKDOWN.sub(lambda found: "\\" + found[0], printable(text))


def markdown_code(text: str) -> str:
    """Text between the backticks of a README, in a table, too."""
    return printable(text).replace("`", "'").replace("|", "\\|")


KCONFIG_SETTING = re.compile(
    r"CONFIG_[A-Z0-9_]{1,80}=(?:y|n|m|-?[0-9]{1,10}|0x[0-9A-Fa-f]{1,8})|#[\x20-\x7e]*|"
)


def kconfig_setting(line: str) -> str:
    """A line of a .conf file that says yes, no or a number, or a comment. Raises ValueError for any other: strings of
    Kconfig reach compilers as options."""
    if not KCONFIG_SETTING.fullmatch(line):
        raise ValueError(f"not a setting of Kconfig: {line!r}")
    return line


C_WORDS = frozenset(
    """
    auto bool break case char class const continue default delete do double else enum extern false float for
    friend goto if inline int long namespace new operator private public register restrict return short signed
    sizeof static struct switch template this throw true try typedef union unsigned using virtual void
    volatile while
    """.split()  # noqa: SIM905
)
"""Keywords of C and C++, which no identifier is."""

_LONGEST = 96


def c_identifier(steps: Iterable[str]) -> str:
    """The steps of a path as one C identifier, underscores between; `value` for nothing."""
    base = re.sub(r"[^A-Za-z0-9_]+", "_", "_".join(steps)).strip("_")[:_LONGEST] or "value"
    base = f"value_{base}" if base[0].isdigit() else base
    return f"{base}_" if base in C_WORDS else base


def unused(wanted: str, taken: set[str]) -> str:
    """`wanted`, or where that is taken `wanted_1`, `wanted_2`, …; taken from now on."""
    name, count = wanted, 0
    while name in taken:
        count += 1
        name = f"{wanted}_{count}"
    taken.add(name)
    return name
