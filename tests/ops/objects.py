# SPDX-License-Identifier: Apache-2.0
"""Object files by what goes into them: each source is compiled once for a set of flags, whoever needs it first."""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

DIRECTORY = "TINYET_TEST_OBJECTS"
"""The environment variable that names the directory of a session; tests/conftest.py sets it."""
COMPILED = "TINYET_TEST_COMPILED"
"""The environment variable that names the directory of kept objects. A test of what compilers make of the same source
again removes it: then each compilation is made."""

TOOLS = "tools"
"""Where in the session's directory the launchers of compilers lie."""

MACRO = re.compile(r"-D(TINYET_\w+)")
"""A macro of a board or of a harness: it decides only where a file names it, which none of the compiler's own does."""
DEBUG = ("-g", "-g1")
NAMED = re.compile(rb"TINYET_\w+")
TRACE = re.compile(rb"TINYET_(?:LAYER_BEGIN|LAYER_END|EVENT_BEGIN|EVENT_END)\b|tinyet_trace_")
"""What a text uses whose code depends on TINYET_TRACE."""
DECLARES_TRACE = "tinyet_common.h"

WARNED = re.compile(rb"#pragma GCC diagnostic (?!pop)(?:(?!#pragma GCC diagnostic pop).)*\Z", re.DOTALL)
"""A text that changes what is warned of, also behind its end."""

INCLUDE = re.compile(rb"""^[ \t]*#[ \t]*include[ \t]+(?:["<]([^">\n]+)[">])?""", re.MULTILINE)


def compiled_object(compiler: Sequence[str | Path], source: Path) -> Path:
    """The object of a source, compiled and kept. Fails with the compiler's messages.

    compiler: with its flags. What include directories are called makes no difference, only what is in them.
    """

    def compile_it(compiler: Sequence[str | Path], source: Path, out: Path, *, what: str) -> Path:  # noqa: ARG001
        run([*map(str, compiler), "-c", str(source), "-o", str(out)])
        return out

    return stored(compile_it)(compiler, source, Path(f"{source}.o"), what="compiling for a test")


class Compile(Protocol):
    """As tinyet.build.objects.compile_object."""

    def __call__(self, compiler: Sequence[str | Path], source: Path, out: Path, *, what: str) -> Path: ...


class CompileAll(Protocol):
    """As tinyet.build.objects.compile_objects."""

    def __call__(
        self, compiler: Sequence[str | Path], sources: Sequence[Path], directory: Path, *, what: str
    ) -> list[Path]: ...


def stored(compile_it: Compile) -> Compile:
    """The same function, which looks first whether the object is kept."""

    def compile_once(compiler: Sequence[str | Path], source: Path, out: Path, *, what: str) -> Path:
        kept = _place(compiler, source)
        if kept is None:
            return compile_it(compiler, source, out, what=what)
        try:
            os.utime(kept)  # What was asked for last is kept longest.
        except FileNotFoundError:
            with _new(kept) as made:
                compile_it(compiler, source, made, what=what)
        return kept

    return compile_once


def stored_together(compile_all: CompileAll) -> CompileAll:
    """The same function, before which clang makes in one process what is not kept: a third of its time for a kernel is
    its start. Each source is a unit of its own all the same."""

    def compile_them(
        compiler: Sequence[str | Path], sources: Sequence[Path], directory: Path, *, what: str
    ) -> list[Path]:
        if re.fullmatch(r"clang(-\d+)?", str(compiler[0])):
            words = [str(word) for word in compiler]
            # It puts an object beside its source: not into the package.
            own = [source for source in sources if source.is_relative_to(tempfile.gettempdir())]
            # What one source is not to be warned of the others would not be, either.
            own = [
                source for source in own if not any(WARNED.search(text) for *_, text in _texts(words, source))
            ]
            places = {source: _place(words, source) for source in own}
            missing = {source: kept for source, kept in places.items() if kept and not kept.exists()}
            if missing and _made_by_clang([*words, "-c"], list(missing)):
                for source, kept in missing.items():
                    with _new(kept) as made:
                        shutil.move(source.with_suffix(".o"), made)
        return compile_all(compiler, sources, directory, what=what)

    return compile_them


def _made_by_clang(command: Sequence[str], sources: Sequence[Path]) -> bool:
    """Whether clang makes objects of all, without a word. What it does not like is compiled alone then, and said."""
    done = subprocess.run(
        [*without_driver(command, sources[0]), *map(str, sources)],
        capture_output=True, check=False, timeout=300,
    )  # fmt: skip
    return done.returncode == 0 and not done.stderr


def without_driver(command: Sequence[str], source: Path) -> list[str]:
    """The compiler that clang's driver starts for a source, which takes any number of them, one by one."""
    said = subprocess.run([*command, "-###", str(source)], capture_output=True, text=True, check=True).stderr
    words = shlex.split(said.splitlines()[-1])
    assert "-cc1" in words, said
    if "-o" in words:
        at = words.index("-o")
        del words[at : at + 2]
    return [word for word in words if word != str(source)]


@contextmanager
def _new(kept: Path) -> Iterator[Path]:
    """Where an object is made before it is kept: at once, so that another worker sees all of it or none."""
    kept.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_shelves()) as where:
        made = Path(where, "made.o")
        yield made
        made.replace(kept)


def _shelves() -> Path:
    return Path(os.environ.get(COMPILED) or directory())


def _place(compiler: Sequence[str | Path], source: Path) -> Path | None:
    """Where the object of a source is kept, or is to be; None where the compiler is not here."""
    tool = shutil.which(compiler[0])
    if tool is None:
        return None
    if Path(tool).parent == directory() / TOOLS:
        tool = Path(tool).name  # Of the compilers that decide the place.
    words = [str(word) for word in compiler[1:]]
    shelf = _shelves() / f"{source.stem}-{_digest(tool, words, source)}"
    warnings = {word for word in words if _warns(word)}
    # The object is the same, whichever warnings it was made with.
    with suppress(FileNotFoundError):
        for kept in shelf.iterdir():  # A glob takes five times as long.
            if kept.name.endswith(".o") and _serves(kept, warnings):
                return kept
    return shelf / f"{''.join(sorted(warnings))}.o"


def _warns(word: str) -> bool:
    """Whether a flag asks for warnings, which changes no code."""
    return word.startswith("-W") and not word.startswith(("-Wa,", "-Wl,", "-Wp,"))


def _serves(kept: Path, wanted: set[str]) -> bool:
    """Whether nothing would fail with the wanted warnings: the object was made with all of them, or they are no
    errors."""
    had = {f"-W{word}" for word in kept.stem.split("-W")[1:]}
    no_longer = {word for word in had ^ wanted if word.startswith("-Wno-")}
    return "-Werror" not in wanted or (wanted <= had and not no_longer)


@functools.cache
def _named(name: str, text: bytes) -> tuple[frozenset[str], tuple[bytes, ...]]:
    """The macros that a file names, with TINYET_TRACE where its code depends on it, and the files that it includes."""
    assert not re.search(rb"TINYET_\s*##", text), f"{name} puts a macro's name together"
    found = {word.decode() for word in NAMED.findall(text)}
    if name == DECLARES_TRACE:
        found.discard("TINYET_TRACE")
    elif TRACE.search(text):
        found.add("TINYET_TRACE")
    includes = tuple(INCLUDE.finditer(text))
    unknown = [match[0] for match in includes if not match[1]]
    assert not unknown, f"{name} includes what only the compiler knows: {unknown[0]!r}"
    return frozenset(found), tuple(match[1] for match in includes)


def _texts(flags: Sequence[str], source: Path) -> list[tuple[Path, bytes, bytes]]:
    """A source and every file that it may include but those of the compiler's own: the path, the name that it is
    included by, and the text."""
    places = [Path(word[2:]) for word in flags if word.startswith("-I")]
    assert all(places), "an include directory is one word with its -I"
    queue = [(source, source.name.encode())]
    seen = {source}
    texts: list[tuple[Path, bytes, bytes]] = []
    for path, as_named in queue:
        text = path.read_bytes()
        texts.append((path, as_named, text))
        for name in _named(path.name, text)[1]:
            found = next(
                (at for at in (place / name.decode() for place in (path.parent, *places)) if at.is_file()),
                None,
            )
            if found is not None and found not in seen:
                seen.add(found)
                queue.append((found, name))
    return texts


def _digest(tool: str, flags: Sequence[str], source: Path) -> str:
    """Of the compiler, its flags that change code, the source and every file that it may include but those of the
    compiler's own."""
    texts = _texts(flags, source)
    named = set().union(*(_named(path.name, text)[0] for path, _, text in texts))
    parts = [part for _, as_named, text in texts for part in (as_named, text)]
    kept = [word for word in flags if not word.startswith("-I") and not _warns(word)]
    kept = [word for word in kept if not (of := MACRO.match(word)) or of[1] in named]
    if source.name.startswith("tinyet_"):
        # Of a kernel, lines are asked for at most, which are the same of each kind of debug information.
        kept = [word for word in kept if word not in DEBUG] + [str(any(word in DEBUG for word in kept))]
    return hashlib.sha256(b"\0".join([tool.encode(), *map(str.encode, kept), b"", *parts])).hexdigest()[:32]


def run(command: Sequence[str], data: bytes | None = None) -> bytes:
    """Run a command with `data` as its input, and return what it prints. Fails with its errors."""
    done = subprocess.run(command, input=data, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, (
        f"{' '.join(command)}\nstatus {done.returncode}\n{done.stderr.decode()[-6000:]}"
    )
    return done.stdout


@functools.cache
def directory() -> Path:
    if DIRECTORY in os.environ:
        return Path(os.environ[DIRECTORY])
    own = Path(tempfile.mkdtemp(prefix="tinyet-objects-"))
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return own
