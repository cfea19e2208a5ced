# SPDX-License-Identifier: Apache-2.0
"""Only the library files that a model needs, as they go into a project: below one folder, `cmsis_nn/`.

The library's includes are quoted and relative, so that they resolve by themselves once its headers lie beside its
sources: a project needs no include path and no flag for it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tinyet.delegates.cmsis_nn import sources as origin
from tinyet.errors import InternalError

FOLDER = "cmsis_nn"
HEADER = f"{FOLDER}/cmsis_nn.h"
"""The header that the generated model includes."""
BUILD_HEADER = "build_options.h"

_HEADER_TEXT = """\
/* SPDX-License-Identifier: Apache-2.0 */
/* CMSIS-NN @VERSION@ for a generated model. */
#ifndef CMSIS_NN_H
#define CMSIS_NN_H

/* The library's headers are not written for the warnings that tinyet's own code is free of. */
#if defined(__GNUC__)
#pragma GCC system_header
#endif

#ifdef CMSIS_NN_USE_SINGLE_ROUNDING
#error "CMSIS_NN_USE_SINGLE_ROUNDING changes results: a model of tinyet needs the library's default rounding"
#endif

#include "arm_nnfunctions.h"

#endif
"""

_BUILD_HEADER_TEXT = """\
/* SPDX-License-Identifier: Apache-2.0 */
/* How the files of CMSIS-NN @VERSION@ are compiled, whatever the flags of the project: each of them includes this
 * first. That line is all that tinyet changed in them. */
#ifndef CMSIS_NN_BUILD_OPTIONS_H
#define CMSIS_NN_BUILD_OPTIONS_H

#ifdef CMSIS_NN_USE_SINGLE_ROUNDING
#error "CMSIS_NN_USE_SINGLE_ROUNDING changes results: a model of tinyet needs the library's default rounding"
#endif

/* The library is not written for these warnings. */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#if defined(__clang__)
/* They say how GCC is to optimize. */
#pragma GCC diagnostic ignored "-Wunknown-attributes"
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
/* The library's vector assembly does not say which outputs are written before all inputs have been read: Clang gives
 * some of them one register. With this macro the library leaves those loops to the compiler. */
#define ARM_MATH_AUTOVECTORIZE
#endif

/* Its vector code is fastest so, by count of instructions; the other code is fastest as the project compiles it. */
#if defined(__ARM_FEATURE_MVE) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-ivopts")
#endif

#if defined(__ARM_FEATURE_DSP) && !defined(__ARM_FEATURE_MVE) && defined(__GNUC__)
#include "arm_nnsupportfunctions.h"

/* arm_nn_requantize in fewer instructions: the same result for a multiplier of 2^30 and more (or of zero, with a shift
 * of zero) and a value that, shifted left by a positive shift, is in [-2^30, 2^30). tinyet gives the library no other.
 * The double rounding then comes to (2 v m + 2^31) / 2^32 + half - (1 if v < 0), divided by 2^right, rounded down. */
__attribute__((always_inline)) static inline int32_t tinyet_arm_requantize(int32_t value, int32_t multiplier,
                                                                           int32_t shift) {
  const int32_t left = __usat(shift, 5);
  const int32_t right = __usat(-shift, 5);
  const int32_t doubled = (int32_t)((uint32_t)value << (left + 1));
  /* A shift to the right is negative as the value may be: one bit tells when both are. */
  const int32_t rest = ((value & shift) >> 31) + (int32_t)((UINT32_C(1) << right) >> 1);
  int32_t sum;
  __asm("smmlar %0, %1, %2, %3" : "=r"(sum) : "r"(doubled), "r"(multiplier), "r"(rest));
  return sum >> right;
}
#define arm_nn_requantize tinyet_arm_requantize
#endif

#endif
"""

_README_TEXT = """\
# CMSIS-NN @VERSION@

The files of Arm's neural network kernels (https://github.com/ARM-software/CMSIS-NN, tag v@VERSION@) that this model
needs, under the Apache License 2.0: see LICENSE. They lie in one folder, and each source file has lines added at
its top: one includes `build_options.h`, the others let models of one program share it. Otherwise they are as
Arm released them.
"""


def files(headers: Sequence[str], sources: Sequence[str]) -> Mapping[str, str]:
    """{path: text} of what kernels with these headers and sources need. Sources are library files by name.

    Raises ToolchainError when the library is neither on this machine nor to be had.
    """
    unknown = set(headers) - {HEADER}
    if unknown:
        raise InternalError(f"CMSIS-NN has no headers {', '.join(sorted(unknown))}")
    library = Library.load(origin.directory())
    texts = {
        HEADER: _HEADER_TEXT,
        f"{FOLDER}/{BUILD_HEADER}": _BUILD_HEADER_TEXT,
        f"{FOLDER}/README.md": _README_TEXT,
    }
    found = {path: text.replace("@VERSION@", origin.VERSION) for path, text in texts.items()}
    found[f"{FOLDER}/LICENSE"] = library.licence
    for name in library.closure(sources):
        text = library.texts[name]
        if name.endswith(".c"):
            text = f'#include "{BUILD_HEADER}" /* added by tinyet */\n{text}'
        found[f"{FOLDER}/{name}"] = text
    return found


class Library:
    """The sources and headers of the library: their texts, and what each needs.

    texts: name → text; sources by bare name, headers by the path with which they are included.
    """

    def __init__(self, directory: Path) -> None:
        self.licence = _read(directory / "LICENSE")
        headers = directory / "Include"
        self.texts = {p.relative_to(headers).as_posix(): _read(p) for p in headers.rglob("*.h")}
        self.texts |= {p.name: _read(p) for p in (directory / "Source").rglob("*.c")}
        self._words = {name: set(_WORD.findall(_COMMENT.sub(" ", text))) for name, text in self.texts.items()}
        self._defined = {
            name: set(_DEFINITION.findall(_COMMENT.sub(" ", text)))
            for name, text in self.texts.items()
            if name.endswith(".c")
        }

    @staticmethod
    @functools.cache
    def load(directory: Path) -> Library:
        return Library(directory)

    def closure(self, sources: Sequence[str]) -> list[str]:
        """The given sources, the sources of all functions and tables that they mention, directly or not, and the
        headers of all these; sorted."""
        found: set[str] = set()
        todo = list(sources)
        while todo:
            name = todo.pop()
            if name in found:
                continue
            if name not in self.texts:
                raise InternalError(f"CMSIS-NN {origin.VERSION} has no file {name}")
            found.add(name)
            todo += _INCLUDE.findall(self.texts[name])
            if name.endswith(".c"):
                todo += [
                    other
                    for other, defined in self._defined.items()
                    if self._words[name] - self._defined[name] & defined and other != name
                ]
        return sorted(found)


_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
# Definitions begin in the first column, where no call and no prototype of a source file stands.
_DEFINITION = re.compile(
    r"^(?!static\b|__STATIC)(?:[A-Za-z_][\w *]*[ *])?(\w+)(?:\(|\[\w*\] *=)", re.MULTILINE
)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8").replace("\r\n", "\n")
