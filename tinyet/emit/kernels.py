# SPDX-License-Identifier: Apache-2.0
"""Kernels that the models of one program share.

Each model comes with the C files of its kernels. Two models in one program bring many of them twice, maybe from
different versions of tinyet, or of a file of the user's. So every function of such a file is a weak symbol, of which
the linker takes one, and has a digest of all its text in its name: merged functions are equal, and unequal ones have
different names.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from tinyet.delegates.delegate import included

_DIGITS = 8
_NOT_CODE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_RENAMED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([A-Za-z_]\w*)[ \t]*$", re.MULTILINE)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([^)\n]*)\)((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)
_CALL = re.compile(r"^(\w+)\(([^\n]*)\)[ \t]*;?[ \t]*$", re.MULTILINE)
# The text before the braces of a function, or before the value of a variable, from the last ; or } on. Tried from every
# character instead, long declarations would take the square of their length.
_DEFINITION = re.compile(
    r"(?:\A|(?<=[;{}=]))([^;{}=]*[\s*])(\w+)\s*(?:\([^;{}=]*\)\s*\{\}|(?:\[[^\]]*\]\s*)?=)"
)
_NOT_EXTERNAL = re.compile(r"static|inline|extern|typedef", re.IGNORECASE)
_OPENING = re.compile(r"\A\s*/\*.*?\*/[ \t]*\n", re.DOTALL)

_NOTE = "/* Added by tinyet: models of one program share kernels of the same text. The symbol has a digest of it. */"


def shareable(files: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """C files of kernels as several models of a program may have them, and {function: its symbol}.

    files: path → text, of all sources and headers that lie beside a model. Other files come back as they are.
    """
    sources = [path for path in sorted(files) if path.endswith(".c")]
    closures = {path: tuple(_closure(path, files)) for path in sources}
    code = {path: _code(closure) for path, closure in closures.items()}
    owner = {name: path for path in sources for name in _definitions(closures[path])}
    used = {
        path: sorted(name for name in owner.keys() & code[path][1] if owner[name] != path) for path in sources
    }
    digests: dict[str, str] = {}
    for path in dict.fromkeys(owner.values()):
        reached, queue = {path}, [path]
        for at in queue:
            more = {owner[other] for other in used[at]} - reached
            reached |= more
            queue += sorted(more)
        digests[path] = _digest(tuple(closures[p] for p in sorted(reached)))
    symbols = {name: f"{name}_{digests[path]}" for name, path in owner.items()}
    found = dict(files)
    for path in sources:
        own = [name for name in sorted(owner) if owner[name] == path]
        found[path] = _marked(files[path], own, used[path], symbols)
    return found, dict(sorted(symbols.items()))


def definitions(text: str) -> tuple[str, ...]:
    """The functions and variables that a C source, with all that it includes, defines for others; sorted."""
    return _definitions((text,))


# A process that generates often reads the same kernels again and again.
@lru_cache(maxsize=512)
def _digest(closures: tuple[tuple[str, ...], ...]) -> str:
    """Of the texts of sources, with all that they include."""
    return hashlib.sha256("\0".join(map("\n".join, closures)).encode()).hexdigest()[:_DIGITS]


@lru_cache(maxsize=512)
def _definitions(closure: tuple[str, ...]) -> tuple[str, ...]:
    renamed = {name: other for text in closure for name, other in _taken_apart(text).renamed}
    # The file that includes a body has defined what KERNEL is.
    return tuple(sorted({renamed.get(name, name) for text in _code(closure)[0] for name in _defined(text)}))


# Apart from what includes it, as `_taken_apart`.
@lru_cache(maxsize=1024)
def _defined(text: str) -> tuple[str, ...]:
    """What a text at file scope defines for others."""
    found = _DEFINITION.findall(text)
    return tuple(name for head, name in found if not _NOT_EXTERNAL.search(head) and head.strip())


def _closure(path: str, files: Mapping[str, str]) -> Iterator[str]:
    """The texts of a file and of all that it includes, each once, the included first."""
    seen: set[str] = set()

    def walk(at: str) -> Iterator[str]:
        if at in seen or at not in files:
            return
        seen.add(at)
        for name in included(files[at]):
            beside = posixpath.normpath(posixpath.join(posixpath.dirname(at), name))
            yield from walk(beside if beside in files else name)
        yield files[at]

    return walk(path)


class _File(NamedTuple):
    """code: C without comments, texts and directives. called: what lines that only call something call. macros: (name,
    parameters, body) of those with parameters; renamed: (name, other name) of those that stand for another name."""

    code: str
    called: tuple[str, ...]
    macros: list[tuple[str, str, str]]
    renamed: list[tuple[str, str]]


# Apart from what includes it: many sources include one header.
@lru_cache(maxsize=512)
def _taken_apart(text: str) -> _File:
    text = _NOT_CODE.sub(" ", text)
    code = _DIRECTIVE.sub("", text)
    called = dict.fromkeys(name for name, _ in _CALL.findall(code))
    return _File(code, tuple(called), _MACRO.findall(text), _RENAMED.findall(text))


class _Scopes(NamedTuple):
    """outer: the text at file scope, {} in place of blocks; words: those in the blocks. depth: of blocks that are open
    behind it."""

    outer: str
    words: frozenset[str]
    depth: int


@lru_cache(maxsize=512)
def _code(closure: tuple[str, ...]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Of files one after another: the text at file scope, {} in place of blocks, cut between files where no definition
    is; the words in these blocks."""
    files = [_taken_apart(text) for text in closure]
    macros = {name: (words, body) for file in files for name, words, body in file.macros}
    outer: list[str] = []
    words: set[str] = set()
    depth = 0
    for file in files:
        called = tuple((name, *macros[name]) for name in file.called if name in macros)
        scopes = _scopes(file.code, called, depth)
        if outer and (depth or not outer[-1].rstrip().endswith((";", "}"))):
            # The line's end between two files belongs to the block that is open there, if one is.
            outer[-1] += ("" if depth else "\n") + scopes.outer
        else:
            outer.append(scopes.outer)
        words |= scopes.words
        depth = scopes.depth
    return tuple(outer), frozenset(words)


# Apart from what includes it, as `_taken_apart`.
@lru_cache(maxsize=1024)
def _scopes(code: str, macros: tuple[tuple[str, str, str], ...], depth: int) -> _Scopes:
    """Of one file. macros: those that its lines call; depth: of blocks that are open before it."""
    known = {name: (words.split(","), body) for name, words, body in macros}

    def expanded(call: re.Match[str]) -> str:
        """A line that only calls a macro: it may define a function."""
        words, body = known.get(call[1], ([], ""))
        for word, value in zip(words, call[2].split(","), strict=False):
            body = re.sub(rf"\b{word.strip()}\b", value.strip().replace("\\", ""), body)
        return re.sub(r"\s*##\s*", "", body.replace("\\\n", "\n")) if body else call[0]

    code = _CALL.sub(expanded, code) if known else code
    code = re.sub(r"\bextern\s*\{", "", code)
    outer: list[str] = []
    inner: list[str] = []
    for part in re.split(r"([{}])", code):
        if part == "{":
            depth += 1
            outer += ["{"] if depth == 1 else []
        elif part == "}":
            outer += ["}"] if depth == 1 else []
            depth = max(depth - 1, 0)
        else:
            (inner if depth else outer).append(part)
    return _Scopes("".join(outer), frozenset(re.findall(r"\w+", " ".join(inner))), depth)


def _marked(text: str, own: list[str], used: list[str], symbols: Mapping[str, str]) -> str:
    """A source with the symbols that it defines and those that it takes from other sources."""
    if not own:
        return text
    lines = [_NOTE, *(f"#define {name} {symbols[name]}" for name in sorted([*own, *used]))]
    lines += [
        "#if defined(__GNUC__) && !defined(_WIN32)",
        *(f"#pragma weak {symbols[name]}" for name in own),
        "#endif",
    ]
    opening = _OPENING.match(text)
    at = opening.end() if opening else 0
    return text[:at] + "\n".join(lines) + "\n" + text[at:]
