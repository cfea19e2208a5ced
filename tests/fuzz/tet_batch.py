# SPDX-License-Identifier: Apache-2.0
"""Many generated models in one program under sanitizers: one compiler run for hundreds of mutants.

Each model's C is as it was generated, but for its names at file scope, which get a number, so that all can stand in one
source. The kernels are objects that a session compiles once.
"""

from __future__ import annotations

import os
import re
import resource
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.fuzz.run import Case, Outcome, Result
from tests.ops.cases import HOST_FLAGS, SANITIZERS, WARNINGS, write_files
from tests.ops.objects import compiled_object
from tinyet.ir import Array

KERNEL_FLAGS = (*HOST_FLAGS, *WARNINGS, *SANITIZERS)
MODEL_FLAGS = ("-O0", "-ffp-contract=off", *WARNINGS, *SANITIZERS)

MAIN = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
typedef struct { unsigned offset, bytes; } span;
typedef struct { uint8_t *arena; tinyet_status (*run)(void); unsigned inputs, outputs; span spans[64]; } model;
static const model models[] = {
%s
};
/* argv: where to start. stdin: for each model and run its inputs. stdout: number and outputs of each run. */
int main(int argc, char **argv) {
  const unsigned first = argc > 1 ? (unsigned)atoi(argv[1]) : 0u;
  for (unsigned m = first; m < sizeof models / sizeof *models; m++) {
    for (unsigned run = 0; run < %du; run++) {
      const model *it = &models[m];
      const struct itimerval limit = { { 0, 0 }, { 1, 0 } };
      setitimer(ITIMER_VIRTUAL, &limit, NULL);
      fwrite(&m, 4, 1, stdout);
      fflush(stdout);
      for (unsigned i = 0; i < it->inputs; i++)
        if (fread(it->arena + it->spans[i].offset, 1, it->spans[i].bytes, stdin) != it->spans[i].bytes) return 2;
      if (it->run() != TINYET_OK) return 3;
      for (unsigned i = 0; i < it->outputs; i++)
        fwrite(it->arena + it->spans[it->inputs + i].offset, 1, it->spans[it->inputs + i].bytes, stdout);
    }
  }
  return 0;
}
"""

MAX_SPANS = 64

_AT_FILE_SCOPE = re.compile(r"^(?:static |uint8_t )[^;{=]*?(\w+)(?=\[|\(| = )", re.MULTILINE)


@dataclass(frozen=True)
class Model:
    """name, files: of model_files. spans: (offset, bytes) in the arena of inputs and of outputs. inputs: the bytes of
    each run; outputs: the reference's arrays of each run."""

    case: Case
    name: str
    files: Mapping[str, str]
    spans: tuple[list[tuple[int, int]], list[tuple[int, int]]]
    inputs: Sequence[bytes]
    outputs: Sequence[Sequence[Array]]


@dataclass
class Batch:
    """Models that wait to be run together."""

    models: list[Model] = field(default_factory=list)

    def add(self, model: Model) -> None:
        self.models.append(model)

    def run(self) -> list[Result]:
        """What became of all that were added since the last time."""
        models, self.models = self.models, []
        if not models:
            return []
        with tempfile.TemporaryDirectory(prefix="tinyet-fuzz-") as where:
            folder = Path(where)
            built = _build(folder, models)
            if built is not None:
                return _halved(models, built)
            return _results(folder, models)


def _halved(models: Sequence[Model], complaint: str) -> list[Result]:
    """One of the models does not compile: which?"""
    if len(models) == 1:
        return [Result(models[0].case, Outcome.FAILED, complaint)]
    middle = len(models) // 2
    return Batch(list(models[:middle])).run() + Batch(list(models[middle:])).run()


def _build(folder: Path, models: Sequence[Model]) -> str | None:
    """Make `folder`/all; what the compiler complains about, or None."""
    kernels: dict[str, str] = {}
    renamed: dict[str, None] = {}
    texts, rows, headers = [], [], set()
    for number, model in enumerate(models):
        name = model.name
        source, header, symbols = f"{name}.c", f"{name}.h", f"{name}_kernels.h"
        kernels |= {f: text for f, text in model.files.items() if f not in (source, header, symbols)}
        # Which digest the symbol of a kernel has: the same in all models that have this kernel.
        renamed |= dict.fromkeys(re.findall(r"^#define \w+ \w+$", model.files.get(symbols, ""), re.MULTILINE))
        headers |= set(re.findall(r'^#include "(tinyet_.*)"$', model.files[source], re.MULTILINE))
        texts.append(_numbered(model.files[header], model.files[source], name, number))
        own = (*model.spans[0], *model.spans[1])
        assert len(own) <= MAX_SPANS
        spans = ", ".join(f"{{ {offset}u, {size}u }}" for offset, size in own)
        counts = f"{len(model.spans[0])}u, {len(model.spans[1])}u"
        rows.append(f"  {{ {name}_{number}_arena, {name}_{number}_run, {counts}, {{ {spans} }} }},")
    includes = "".join(f"{line}\n" for line in sorted(renamed))
    includes += "".join(f'#include "{h}"\n' for h in sorted(headers | {"tinyet_common.h"}))
    main = MAIN % ("\n".join(rows), len(models[0].inputs))
    write_files(folder, {**kernels, "all.c": includes + "\n".join(texts) + main})
    compiler = ["gcc", "-std=c11", *KERNEL_FLAGS, f"-I{folder}"]
    objects = [
        str(compiled_object(compiler, folder / name)) for name in sorted(kernels) if name.endswith(".c")
    ]
    command = [
        "gcc",
        "-std=gnu11",
        *MODEL_FLAGS,
        f"-I{folder}",
        "-o",
        str(folder / "all"),
        str(folder / "all.c"),
    ]
    done = subprocess.run([*command, *objects], capture_output=True, check=False, preexec_fn=_unlimited)
    return None if done.returncode == 0 else done.stderr.decode(errors="replace")[:4000]


def _unlimited() -> None:
    """Sanitizers want address space that the limit of a job does not give."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _numbered(header: str, source: str, name: str, number: int) -> str:
    """Both texts as a part of a larger source, with names of their own."""
    text = re.sub(r'^#include ".*"$', "", header + source, flags=re.MULTILINE)
    own = {match[1] for match in _AT_FILE_SCOPE.finditer(text)}
    own |= set(re.findall(rf"\b{name}_\w+", text))
    macro = name.upper()
    text = re.sub(r"\b(?:" + "|".join(map(re.escape, sorted(own, key=len, reverse=True))) + r")\b",
                  lambda m: _renamed(m[0], name, number), text)  # fmt: skip
    return re.sub(rf"\b{macro}_", f"{macro}_{number}_", text)


def _renamed(word: str, name: str, number: int) -> str:
    if word.startswith(f"{name}_"):
        return f"{name}_{number}_{word[len(name) + 1 :]}"
    return f"{word}_{number}"


def _results(folder: Path, models: Sequence[Model]) -> list[Result]:
    results: list[Result] = []
    start = 0
    while start < len(models):
        given = b"".join(data for model in models[start:] for data in model.inputs)
        done = subprocess.run(
            [str(folder / "all"), str(start)],
            input=given, capture_output=True, check=False, preexec_fn=_unlimited,
            env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0"},
        )  # fmt: skip
        at = 0
        while start < len(models):
            model = models[start]
            at, failure = _compared(start, model, done.stdout, at)
            if failure == INCOMPLETE:
                said = done.stderr.decode(errors="replace")[:3000]
                failure = f"the C did not come to its end: status {done.returncode}\n{said}"
                results.append(Result(model.case, Outcome.FAILED, failure))
                start += 1
                break  # and go on behind it
            start += 1
            outcome = Outcome.FAILED if failure else Outcome.EXACT
            results.append(Result(model.case, outcome, failure))
    return results


INCOMPLETE = "incomplete"


def _compared(number: int, model: Model, stdout: bytes, at: int) -> tuple[int, str]:
    """(where the next model's output begins, what is wrong or nothing)"""
    failure = ""
    for run, arrays in enumerate(model.outputs):
        size = 4 + sum(a.nbytes for a in arrays)
        if len(stdout) - at < size:
            return at, INCOMPLETE
        assert struct.unpack_from("=I", stdout, at)[0] == number
        at += 4
        for index, want in enumerate(arrays):
            got = np.frombuffer(stdout, want.dtype, want.size, at).reshape(want.shape)
            at += want.nbytes
            same = (got == want) | ((got != got) & (want != want))
            if not np.all(same) and not failure:
                where = tuple(int(i) for i in np.argwhere(~same)[0])
                failure = f"run {run}, output {index} at {where}: C {got[where]}, reference {want[where]}"
    return at, failure
