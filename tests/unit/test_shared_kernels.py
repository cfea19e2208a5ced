# SPDX-License-Identifier: Apache-2.0
"""Several models in one program: their C files are simply compiled together, and they share what is the same."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

import tinyet
from tests import small
from tests.calls import host
from tests.ops.objects import compiled_object
from tinyet import assets
from tinyet.data import pattern_inputs
from tinyet.delegates import kernel_sources
from tinyet.emit import model as emitter
from tinyet.emit.kernels import definitions, shareable
from tinyet.projects.one import generate

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

_FLAGS = ("-std=c11", "-O1", "-ffp-contract=off", "-ffunction-sections", "-Wall", "-Wextra", "-Werror")
_BOARD = "mps2_an385"


def _programs() -> dict[str, tinyet.Program]:
    real = tinyet.Program("small", small.graph(real=True), None, ())
    return {"one": small.program(), "two": small.program(channels=6), "real": real}


def _generate(name: str, program: tinyet.Program, where: Path) -> Path:
    generate(program, _BOARD, where / name, kind="model", name=name, optimize="size")
    return where / name


def _objects(folder: Path) -> list[Path]:
    return [compiled_object(["gcc", *_FLAGS, f"-I{folder}"], path) for path in sorted(folder.glob("*.c"))]


def _main(names: Sequence[str]) -> str:
    """A program that prints the first output of each model, its inputs' bytes being those of standard input."""
    lines = [f'#include "{name}/{name}.h"' for name in names]
    lines += ["#include <stdio.h>", "int main(void) {"]
    for name in names:
        macro = name.upper()
        lines += [
            f"  if (fread({name}_input_0(), 1, {macro}_INPUT_0_BYTES, stdin) != {macro}_INPUT_0_BYTES",
            f"      || {name}_run() != TINYET_OK",
            f"      || fwrite({name}_output_0(), 1, {macro}_OUTPUT_0_BYTES, stdout) != {macro}_OUTPUT_0_BYTES) {{",
            "    return 1;",
            "  }",
        ]
    return "\n".join([*lines, "  return 0;", "}", ""])


def _run(
    tmp_path: Path, programs: Mapping[str, tinyet.Program], parts: Sequence[Path]
) -> tuple[list[bytes], list[str]]:
    """What each model answers in one program, and the kernels that the linker left in it."""
    main, binary = tmp_path / "main.c", tmp_path / "program"
    main.write_text(_main(list(programs)))
    command = ["gcc", *_FLAGS, f"-I{tmp_path}", str(main), *map(str, parts), "-Wl,--gc-sections", "-lm"]
    subprocess.run([*command, "-o", str(binary)], check=True, timeout=60)
    sent = b"".join(pattern_inputs(program.inputs)[0].tobytes() for program in programs.values())
    got = subprocess.run([binary], input=sent, capture_output=True, check=True, timeout=60).stdout
    answers = []
    for program in programs.values():
        size = program.outputs[0].type.bytes
        answers.append(got[:size])
        got = got[size:]
    listing = subprocess.run(["nm", str(binary)], capture_output=True, text=True, check=True).stdout
    return answers, re.findall(r" [TW] (tinyet_\w+)$", listing, re.MULTILINE)


def _expected(program: tinyet.Program) -> bytes:
    return np.ascontiguousarray(program.run(*pattern_inputs(program.inputs), as_float=False)).tobytes()


@pytest.mark.parametrize("archived", [False, True])
def test_three_models_in_one_program_answer_right_and_share_kernels(tmp_path: Path, archived: bool) -> None:
    """As files that are linked one by one (CMake, make, Zephyr), and as libraries (Arduino, PlatformIO)."""
    programs = _programs()
    folders = [_generate(name, program, tmp_path) for name, program in programs.items()]
    parts = [part for folder in folders for part in _objects(folder)]
    if archived:
        parts = [tmp_path / f"lib{folder.name}.a" for folder in folders]
        for folder, archive in zip(folders, parts, strict=True):
            subprocess.run(["ar", "rcs", str(archive), *map(str, _objects(folder))], check=True, timeout=60)
    answers, kernels = _run(tmp_path, programs, parts)
    assert answers == [_expected(program) for program in programs.values()]
    # The two models in int8 have the same kernels, and the program has each of them once.
    used = [
        re.findall(r"^#define (\w+) ", (f / f"{f.name}_kernels.h").read_text(), re.MULTILINE) for f in folders
    ]
    assert used[0] == used[1]
    assert len(kernels) <= len({*used[0], *used[2]})
    assert len([k for k in kernels if k.startswith("tinyet_conv2d_s8_")]) == 1


def test_models_with_different_texts_of_a_kernel_each_keep_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As two versions of tinyet give them: nothing is merged that is not the same."""
    programs = {name: _programs()[name] for name in ("one", "two")}
    files = emitter.kernel_files

    def other_version(deployment: object) -> dict[str, str]:
        found = files(deployment)  # type: ignore[arg-type]
        name = "tinyet_window.h"  # included by the kernel for pooling, not by the one for linear layers
        found[name] = found[name].replace("\n", "\n/* another version */\n", 1)
        body = "tinyet_linear_s8_body.h"  # all of its text
        assert "tinyet_clamp(" in found[body]
        found[body] = found[body].replace("tinyet_clamp(", "1 + 0 * tinyet_clamp(")
        return found

    _generate("one", programs["one"], tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(emitter, "kernel_files", other_version)
        _generate("two", programs["two"], tmp_path)
    parts = [part for name in programs for part in _objects(tmp_path / name)]
    answers, kernels = _run(tmp_path, programs, parts)
    assert answers == [_expected(programs["one"]), bytes([1] * 5)]
    counts = {
        name: len([k for k in kernels if k.startswith(f"tinyet_{name}_")])
        for name in ("linear_s8", "max_pool2d_s8")
    }
    assert counts == {"linear_s8": 2, "max_pool2d_s8": 2}


def test_models_for_different_runtimes_do_not_compile_together(tmp_path: Path) -> None:
    for name in ("one", "two"):
        _generate(name, _programs()[name], tmp_path)
    header = tmp_path / "one" / "tinyet_common.h"
    header.write_text(re.sub(r"(#define TINYET_ABI_VERSION) \d+", r"\1 1", header.read_text()))
    (tmp_path / "one" / "one.h").write_text(
        re.sub(r"(TINYET_ABI_VERSION) != \d+", r"\1 != 1", (tmp_path / "one" / "one.h").read_text())
    )
    (tmp_path / "main.c").write_text(_main(["one", "two"]))
    command = ["gcc", "-fsyntax-only", f"-I{tmp_path}", str(tmp_path / "main.c")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert "two was generated for another version of the tinyet runtime" in done.stderr


def test_what_a_source_defines_is_what_the_compiler_finds_in_it(tmp_path: Path) -> None:
    """Of every kernel, and of C as others write it."""
    headers = (assets.path("firmware") / "include").iterdir()
    files = {path.name: path.read_text(encoding="utf-8") for path in headers}
    files |= {name: kernel_sources.text(name) or "" for name in kernel_sources.names()}
    files["strange.c"] = """
#include "tinyet_common.h"
#define NAMED hidden
#define MAKE(NAME, N) \\
  int make_##NAME(int x) { return x + N; }
enum { FIRST = 1, SECOND };
struct pair { int a, b; };
static const int table[2] = {1, 2};
const short shared_table[3] = {1, 2, 3};
extern int elsewhere;
int counter = 0;
struct pair pair_of(int a) { struct pair p = {a, a}; return p; }
static struct pair private_one(void) { return pair_of(table[0]); }
static inline int small(int (*f)(int)) { if (f != 0) { return f(1); } return 0; }
extern "C" {
const char *text_of(void) { return "} { /* void fake(void) { */"; }
}
int
NAMED(int x,
      int y)
{
  for (;;) { while (x < y) { x += shared_table[SECOND] + small(0) + private_one().a; } return x; }
}
MAKE(one, 1)
MAKE(two, 2)
"""
    kernels, _ = shareable(files)
    found: dict[str, set[str]] = {}
    for path in sorted(p for p in kernels if p.endswith(".c")):
        found[path] = set(re.findall(r"^#pragma weak (\w+_[0-9a-f]{8})$", kernels[path], re.MULTILINE))
    assert {symbol.rpartition("_")[0] for symbol in found.pop("strange.c")} == {
        "shared_table", "counter", "pair_of", "text_of", "hidden", "make_one", "make_two",
    }  # fmt: skip
    objects: dict[str, str] = {}
    for path in found:
        (tmp_path / path).write_text(kernels[path], encoding="utf-8")
        # As the call server of this machine has them. What was not found has no digest in its name there.
        objects[str(compiled_object(host.compiler(), tmp_path / path))] = path
    listing = subprocess.run(
        ["nm", "-A", "--defined-only", "-g", *objects],
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip
    compiled: dict[str, set[str]] = {path: set() for path in found}
    for line in listing.splitlines():
        place, _, rest = line.partition(":")
        symbol = rest.split()[-1]
        if not symbol.startswith("__odr_asan."):
            compiled[objects[place]].add(symbol)
    assert compiled == found
    assert definitions("static int f(void) { return 0; }\nint g(void);\n") == ()


def test_the_digest_is_of_everything_that_the_function_is_made_of() -> None:
    files = {
        "a.h": "void b(void);\n",
        "a.c": '#include "a.h"\nvoid a(void) { b(); }\n',
        "b.c": '#include "c.h"\nvoid b(void) { c(); }\n',
        "c.h": "static inline void c(void) {}\n",
        "d.c": '#include "a.h"\nvoid d(void) {}\n',
    }
    _, symbols = shareable(files)
    assert set(symbols) == {"a", "b", "d"}
    for name, changed in (("a.c", {"a"}), ("a.h", {"a", "d"}), ("b.c", {"a", "b"}), ("c.h", {"a", "b"})):
        _, other = shareable(files | {name: files[name] + "/* changed */\n"})
        assert {function for function in symbols if symbols[function] != other[function]} == changed, name
    # What else a model brings makes no difference: that is how two models have the same.
    _, alone = shareable({name: files[name] for name in ("a.h", "d.c")})
    assert alone["d"] == symbols["d"]
