# SPDX-License-Identifier: Apache-2.0
"""A firmware of functions that a test calls one by one: the C of the model that the harness runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.calls.board import STRICT, Image
from tests.calls.emulated import skip_missing
from tinyet.build.gcc import build_firmware
from tinyet.cycles.code import Code, read_code
from tinyet.device.device import RunResult, open_device
from tinyet.ir import Array
from tinyet.tiles.core import CorePage
from tinyet.tiles.nest import Nest
from tinyet.tiles.registers import Placed
from tinyet.timing.cores import CORES

_BEFORE = """
#include <string.h>
#include "tinyet_harness.h"

TINYET_ALIGNED(16) static uint8_t arena[4 + 4 * %(count)d];
static uint32_t *const wrong = (uint32_t *)(void *)(arena + 4);
"""
_BEHIND = """
static const tinyet_io ins[] = {{0u, 4u}};
static const tinyet_io outs[] = {{4u, 4u * %(count)du}};

const tinyet_model tinyet_harness_model = {
    "%(name)s", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    TINYET_ABI_VERSION, arena, sizeof arena, %(count)du, 1u, ins, 1u, outs, run, 0u, NULL, NULL, 0u, NULL, NULL, NULL,
    NULL, NULL,
};
"""


def model(name: str, count: int, text: str) -> str:
    """With `count` layers, and an output of as many words: `wrong`, which text's `run` writes."""
    facts = {"name": name, "count": count}
    return _BEFORE % facts + text + _BEHIND % facts


def c_array(kind: str, name: str, values: Array) -> str:
    words = values.astype(np.int64) % 2**32
    cast = "" if kind == "uint32_t" else f"({kind})"
    return f"static const {kind} {name}[] = {{{', '.join(f'{cast}{v}u' for v in words)}}};"


def references(layers: Iterable[Sequence[str]]) -> str:
    """C, in the loop over the layers `i`: what the reference of each does, from layer 1 on. Functions that are printed
    for several cores have the same reference, which is compiled once."""
    numbers: dict[tuple[str, ...], list[int]] = {}
    for i, lines in enumerate(layers, 1):
        numbers.setdefault(tuple(lines), []).append(i)
    found = []
    for lines, same in numbers.items():
        found += [f"    if ({' || '.join(f'i == {i}u' for i in same)}) {{"]
        found += [*(f"      {line}" for line in lines), "    }"]
    return "\n".join(found)


_KEPT = range(4, 12)
REGISTERS = {
    "poison": "\n".join(f'      "mov r{r}, #{0x51 + r}\\n"' for r in _KEPT),
    "check": "\n".join(f'      "cmp r{r}, #{0x51 + r}\\n" "it ne\\n" "movne r0, #1\\n"' for r in _KEPT),
}
"""Assembly: a value of its own for each register that a function must keep, and whether it is still there."""

_VECTORS = range(16, 32)
_DIFFERS = 'it ne\\n" "movne r0, #1\\n'
VECTOR_REGISTERS = {
    "poison": "\n".join(
        f'      "{line}"'
        for line in (
            *(f"mov r{r}, #{0x51 + r}\\n" for r in _KEPT),
            *(f"vmov s{r}, r{4 + r % 8}\\n" for r in _VECTORS),
        )
    ),
    "check": "\n".join(
        f'      "{line}"'
        for line in (
            *(f'cmp r{r}, #{0x51 + r}\\n" "{_DIFFERS}' for r in _KEPT),
            *(f'vmov r1, s{r}\\n" "cmp r1, r{4 + r % 8}\\n" "{_DIFFERS}' for r in _VECTORS),
        )
    ),
}
"""The same with the vector registers that a function must keep."""

GUARDED = f"""
typedef struct {{
  const void *first, *second;
  const void *third;
  const void *fourth, *fifth;
}} arguments;
typedef void (*any_function)(void);

__attribute__((naked)) static void nothing(void) {{
  __asm__ volatile("bx.n lr");
}}

/* Whether the function leaves r4 ... r11 and d8 ... d15 as they were, with values of their own in them. */
__attribute__((naked, noinline)) static uint32_t guarded(const arguments *a, any_function f) {{
  __asm__ volatile(
      ".syntax unified\\n"
      "push {{r4-r11, lr}}\\n"
      "vpush {{d8-d15}}\\n"
      "sub sp, sp, #12\\n"
      "mov r12, r1\\n"
      "ldr r2, [r0, #16]\\n"
      "str r2, [sp]\\n"
{VECTOR_REGISTERS["poison"]}
      "ldm r0, {{r0-r3}}\\n"
      "blx r12\\n"
      "movs r0, #0\\n"
{VECTOR_REGISTERS["check"]}
      "add sp, sp, #12\\n"
      "vpop {{d8-d15}}\\n"
      "pop {{r4-r11, pc}}\\n");
}}
"""
"""C: `nothing`, an empty function, and `guarded`, which calls a function of up to five arguments and says
whether it leaves these registers as they were."""


def called(function: str, parameters: str) -> str:
    """C: `nothing`, an empty function with these three or four parameters, and `guarded`, which calls one of the type
    `function` and says whether it leaves r4 ... r11 as they were, with values of their own in them."""
    # The function itself is behind the others.
    of_function = "mov r12, r3" if parameters.count(",") == 2 else "ldr r12, [sp, #36]"
    return f"""
__attribute__((naked)) static void nothing({parameters}) {{
  __asm__ volatile("bx.n lr");
}}

__attribute__((naked, noinline)) static uint32_t guarded({parameters}, {function} f) {{
  __asm__ volatile(
      ".syntax unified\\n"
      "push {{r4-r11, lr}}\\n"
      "{of_function}\\n"
{REGISTERS["poison"]}
      "blx r12\\n"
      "movs r0, #0\\n"
{REGISTERS["check"]}
      "pop {{r4-r11, pc}}\\n");
}}
"""


_CALLS = """
static const struct {
  any_function function;
  arguments all;
} entries[] = {{nothing, {NULL, NULL, NULL, NULL, NULL}}, %(entries)s};

static tinyet_status run(void) {
%(fill)s
%(before)s
  for (uint32_t i = 0; i < %(count)du; i++) {
    TINYET_LAYER_BEGIN(i);
    wrong[i] = guarded(&entries[i].all, entries[i].function);
    TINYET_LAYER_END(i);
  }
%(references)s
  return TINYET_OK;
}
"""


def calls(
    written: Sequence[str], entries: Sequence[str], references: Sequence[str], before: Sequence[str] = ()
) -> str:
    """C, behind GUARDED: the model's `run`. It calls the empty function, then each of `entries`, "function, {its five
    arguments}", with the arrays `written` full of 0x5a, behind the lines of `before`; then come those of
    `references`."""
    facts = {
        "fill": "\n".join(f"  memset({array}, 0x5a, sizeof {array});" for array in written),
        "before": "\n".join(before),
        "entries": ", ".join(f"{{(any_function){entry}}}" for entry in entries),
        "count": 1 + len(entries),
        "references": "\n".join(references),
    }
    return _CALLS % facts


def built(image: Image, where: Path, printed: Iterable[Mapping[str, str]], text: str, *flags: str) -> Path:
    """The firmware of printed files, a model's text, and the sources that lie in `where` already."""
    for name, content in (item for files in printed for item in files.items()):
        (where / name).write_text(content, encoding="utf-8")
    (where / "model.c").write_text(text, encoding="utf-8")
    # Parameters of a function that is assembly are unused in the model, too.
    flags = (*STRICT, "-Wno-unused-parameter", *flags)
    sources = sorted(where.glob("*.c"))
    return build_firmware(
        image.board, sources, [where], where / "build", flags=flags, compiler=image.compiler
    )


def assert_as_stated(result: RunResult, stated: Mapping[str, int]) -> None:
    """Layer 0 called the empty function, each other one its function: its word of the output is 0, and it executed the
    instructions that are stated."""
    wrong = np.frombuffer(result.outputs[0], np.uint32)[1:]
    assert {name: word for name, word in zip(stated, wrong, strict=True) if word} == {}
    nothing, *counts = result.layer_counts
    # The empty function returns by an instruction of its own.
    assert {name: count - nothing + 1 for name, count in zip(stated, counts, strict=True)} == dict(stated)


def assert_nests(
    image: Image,
    folder: Path,
    printed: Iterable[Mapping[str, str]],
    text: str,
    nests: Mapping[str, tuple[Nest[Any], Mapping[str, int]]],
) -> None:
    """The model's layers, built from files in a folder and run on the board, are right; each function of theirs, by its
    name, executes what its nest states for these turns, and its machine code is what was described."""
    skip_missing([image])
    elf = built(image, folder, printed, text)
    with open_device(image.board, elf, "qemu") as device:
        result = device.run([bytes(4)])
    core = CORES[image.board.cpu]
    stated = {name: nest.work(core, turns).instructions for name, (nest, turns) in nests.items()}
    assert_as_stated(result, stated)
    code = read_code(elf)
    for name, (nest, _) in nests.items():
        assert_described(code, name, nest.code, nest.page, nest.code_bytes)


def assert_described(code: Code, name: str, placed: Placed, page: CorePage, code_bytes: int) -> None:
    """The machine code of a function is what was described, instruction by instruction, and so long as it is stated."""
    described = [op.timed(page, registers) for op, registers in placed]
    assert code.block(code.functions[name].start, len(described)) == described, name
    assert sum(i.size for i in described) == code_bytes
