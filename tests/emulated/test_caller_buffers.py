# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs in the caller's buffers: exactly as large and aligned as is stated, the inputs in memory that
cannot be written to, on this machine under the sanitizers; at the very end of a memory on a board."""

from __future__ import annotations

import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import tinyet
from tests import small
from tests.emulated.test_sleep import SANITIZE, STRICT
from tests.emulated.test_states import remembering
from tests.ops.cases import write_files
from tests.ops.emulated import require_emulator
from tests.ops.objects import compiled_object
from tinyet.boards import load_board
from tinyet.boards.cpus import HOST, Target
from tinyet.build.gcc import build_firmware
from tinyet.deployment import Deployment, deploy
from tinyet.device import qemu
from tinyet.emit.model import model_files
from tinyet.emit.slices import slice_limit, slices_of
from tinyet.ir import Array, DType, Graph, Node, QuantParams, Tensor, TensorType
from tinyet.ops.concat import Concat
from tinyet.ops.copy import Copy
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.reshape import Reshape
from tinyet.planning.objective import Objective
from tinyet.program import Program
from tinyet.reference import Session

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

RUNS = 3
BAD = -8


def moving() -> Graph:
    """Two inputs, three outputs: an input under another shape, a concatenation, and a pool of it, each of which would
    be bytes of another value in an arena."""
    quant = QuantParams.per_tensor(0.1, 0)

    def tensor(name: str, *shape: int) -> Tensor:
        return Tensor(name, TensorType(shape, DType.INT8, quant))

    a, b = tensor("a", 1, 6, 6, 3), tensor("b", 1, 6, 6, 2)
    flat, both, pooled = tensor("flat", 1, 108), tensor("both", 1, 6, 6, 5), tensor("pooled", 1, 3, 3, 5)
    copied = tensor("copied", 1, 3, 3, 5)
    nodes = (
        Node(Reshape((1, 108)), (a,), (flat,)),
        Node(Concat(3), (a, b), (both,)),
        Node(MaxPool2d(kernel_h=2, kernel_w=2, stride_h=2, stride_w=2), (both,), (pooled,)),
        Node(Copy(), (pooled,), (copied,)),
    )
    return Graph("moving", (a, b), (flat, both, copied), nodes)


def pooled_first() -> Graph:
    """The small network behind a pool, which reads rows of the input without any around it."""
    inner = small.graph(size=16)
    (x,) = inner.inputs
    larger = Tensor("larger", TensorType((1, 32, 32, 3), DType.INT8, x.type.quant))
    pool = Node(MaxPool2d(kernel_h=2, kernel_w=2, stride_h=2, stride_w=2), (larger,), (x,))
    return inner.replace(inputs=(larger,), nodes=(pool, *inner.nodes))


@dataclass(frozen=True)
class Case:
    """name: of the model in C. form: how its run is called: "static", "context" or "steps"."""

    name: str
    graph: Graph
    form: str
    objective: Objective


def cases() -> list[Case]:
    by_rows = Objective("size", buffers="caller")
    usual = Objective(buffers="caller")
    return [
        Case("remembers", remembering().graph, "static", usual),
        Case("kept", remembering().graph, "context", usual),
        Case("small", pooled_first(), "static", by_rows),
        Case("sliced", pooled_first(), "steps", by_rows),
        Case("moves", moving(), "static", usual),
        Case("moved", moving(), "steps", usual),
        Case("floats", small.graph(real=True, size=8), "context", usual),
    ]


HEAD = """
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
@INCLUDES@
#if defined(__linux__)
#include <stdlib.h>
#include <sys/mman.h>
#define ROOM 65536u
/* A copy that ends where the memory does, in pages that nobody can write to. */
static void *given(const void *from, uint32_t bytes, uint32_t align) {
  uint8_t *const pages = (uint8_t *)mmap(NULL, 2u * ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  uint8_t *const at = pages + (ROOM - bytes) / align * align;
  memcpy(at, from, bytes);
  if (mprotect(pages, ROOM, PROT_READ) != 0 || mprotect(pages + ROOM, ROOM, PROT_NONE) != 0) {
    abort();
  }
  return at;
}
/* Not aligned to more than is asked for; a sanitizer sees every byte beside it. */
static void *taken(uint32_t bytes, uint32_t align) { return (uint8_t *)malloc(bytes + align) + align; }
#else
/* The last bytes of the PSRAM: behind them is nothing. */
#define END 0x22000000u
static void *given(const void *from, uint32_t bytes, uint32_t align) {
  void *const at = (void *)(uintptr_t)((END - bytes) / align * align);
  memcpy(at, from, bytes);
  return at;
}
static uint32_t room[4096];
static uint32_t next = 0u;
static void *taken(uint32_t bytes, uint32_t align) {
  next += 2u + (align == 4u ? next % 2u == 0u : 0u);
  void *const at = room + next;
  next += (bytes + 3u) / 4u + 1u;
  return at;
}
#endif

static void sum(const void *bytes, uint32_t count) {
  uint32_t total = 0u;
  for (uint32_t i = 0u; i < count; i++) {
    total = total * 31u + ((const uint8_t *)bytes)[i];
  }
  printf(" %lu", (unsigned long)total);
}
"""


def argument_lists(case: Case) -> tuple[list[str], list[str]]:
    inputs = [f"(const {t.dtype.c} *)in_{i}" for i, t in enumerate(case.graph.user_inputs)]
    outputs = [f"({t.dtype.c} *)out_{i}" for i, t in enumerate(case.graph.user_outputs)]
    return inputs, outputs


def main_of(case: Case) -> str:
    """A function that runs a model on RUNS samples, and then in ways that it refuses."""
    name, macro = case.name, case.name.upper()
    inputs, outputs = argument_lists(case)
    own = case.form != "static"
    lines = [f"static void {name}(void) {{"]
    if own:
        lines += [
            f"  static uint8_t arena[{macro}_ARENA_BYTES] TINYET_ALIGNED({macro}_ARENA_ALIGN);",
            f"  static {name}_context net;",
            f"  (void){name}_init(&net, arena);",
        ]
    else:
        lines.append(f"  uint8_t *const arena = {name}_arena;")
    for i in range(len(outputs)):
        lines.append(f"  void *const out_{i} = taken({macro}_OUTPUT_{i}_BYTES, {macro}_OUTPUT_{i}_ALIGN);")

    def call(arguments: list[str], function: str = "run") -> str:
        return f"{name}_{function}({', '.join([*['&net'] * own, *arguments])})"

    lines.append(f"  for (uint32_t run = 0u; run < {RUNS}u; run++) {{")
    for i in range(len(inputs)):
        size = f"{macro}_INPUT_{i}_BYTES"
        where = "given" if i == 0 else "other"
        lines.append(
            f"    const void *const in_{i} = {where}({name}_{i}[run], {size}, {macro}_INPUT_{i}_ALIGN);"
        )
    if case.form == "steps":
        lines += [
            "    tinyet_status status = TINYET_MORE_STEPS;",
            "    while (status == TINYET_MORE_STEPS) {",
            f"      status = {call([*inputs, *outputs], 'step')};",
            "    }",
        ]
    else:
        lines.append(f"    const tinyet_status status = {call([*inputs, *outputs])};")
    lines.append(f'    printf("{name} %d:", (int)status);')
    lines += [f"    sum(out_{i}, {macro}_OUTPUT_{i}_BYTES);" for i in range(len(outputs))]
    lines += [f"    sum(in_{i}, {macro}_INPUT_{i}_BYTES);" for i in range(len(inputs))]
    lines += ['    printf("\\n");']
    cast = inputs[0].split(")")[0] + ")"
    plain = outputs[0].split(")")[0] + ")"
    wrong = [
        [f"{cast}NULL", *inputs[1:], *outputs],
        [f"{cast}(const void *)((const uint8_t *)in_0 + 1)", *inputs[1:], *outputs],
        [*inputs, f"{plain}(void *)((uint8_t *)out_0 + 2)", *outputs[1:]],
        [*inputs, f"{plain}(uintptr_t)in_0", *outputs[1:]],
        [*inputs, f"{plain}(void *)arena", *outputs[1:]],
        [f"{cast}(const void *)arena", *inputs[1:], *outputs],
    ]
    lines.append("    if (run == 0u) {")
    lines.append(f'      printf("{name}:");')
    lines += [f'      printf(" %d", (int){call(each)});' for each in wrong]
    lines += ['      printf("\\n");', "    }", "  }", "}"]
    return "\n".join(lines)


def samples(case: Case) -> list[list[Array]]:
    rng = np.random.default_rng(7)
    return [
        [
            rng.uniform(-2, 2, t.shape).astype(np.float32)
            if t.dtype is DType.FLOAT32
            else rng.integers(-128, 128, t.shape).astype(np.int8)
            for t in case.graph.user_inputs
        ]
        for _ in range(RUNS)
    ]


def total(array: Array) -> str:
    found = 0
    for byte in np.ascontiguousarray(array).tobytes():
        found = (found * 31 + byte) & 0xFFFFFFFF
    return str(found)


def wanted() -> list[str]:
    lines = []
    for case in cases():
        session = Session(case.graph)
        for number, given in enumerate(samples(case)):
            values = session.values(given)
            sums = [total(values[t]) for t in case.graph.user_outputs] + [total(array) for array in given]
            lines.append(f"{case.name} 0: {' '.join(sums)}")
            if number == 0:
                lines.append(f"{case.name}:" + f" {BAD}" * 6)
    return [*lines, "done"]


def deployed(case: Case, target: Target) -> Deployment:
    return deploy(case.graph, target, objective=case.objective)


def sources(where: Path, target: Target) -> list[Path]:
    board = load_board("mps2_an386")
    files: dict[str, str] = {}
    data = []
    for case in cases():
        found = deployed(case, target)
        assert found.plan.buffers_from is not None
        cut = None
        if case.form == "steps":
            found, cut = slices_of(found, board, slice_limit(2000))
        files |= model_files(
            found, case.name, ["test"], program_hash="0" * 64, context=case.form != "static", slices=cut
        )
        for i, tensor in enumerate(case.graph.user_inputs):
            rows = [", ".join(str(b) for b in np.ascontiguousarray(s[i]).tobytes()) for s in samples(case)]
            body = ",\n".join(f"  {{{row}}}" for row in rows)
            data.append(
                f"static const uint8_t {case.name}_{i}[{RUNS}][{tensor.type.bytes}] = {{\n{body}\n}};"
            )
    includes = "\n".join(f'#include "{case.name}.h"' for case in cases())
    other = (
        "static void *other(const void *from, uint32_t bytes, uint32_t align) {\n"
        "  void *const at = taken(bytes, align);\n  memcpy(at, from, bytes);\n  return at;\n}\n"
    )
    calls = "\n".join(f"  {case.name}();" for case in cases())
    main = f'int main(void) {{\n{calls}\n  printf("done\\n");\n  fflush(stdout);\n  return 0;\n}}\n'
    files["main.c"] = "\n".join(
        [HEAD.replace("@INCLUDES@", includes), other, *data, *map(main_of, cases()), main]
    )
    write_files(where, files)
    return [where / name for name in sorted(files) if name.endswith(".c")]


def test_the_plans_are_of_all_kinds() -> None:
    """Layers by rows, copies that an arena does not need, and values that lie in an output's buffer before it does."""
    made = {case.name: deployed(case, HOST) for case in cases()}
    assert made["small"].plan.fusion_groups
    assert {step.node.op for step in made["moves"].steps} >= {"reshape", "concat"}
    others = [t for t in made["moves"].plan.storage if made["moves"].plan.is_callers(t)]
    assert len(others) > 5


def test_buffers_on_the_host(tmp_path: Path) -> None:
    made = sources(tmp_path, HOST)
    objects = [compiled_object(["gcc", *STRICT, *SANITIZE, f"-I{tmp_path}"], source) for source in made]
    subprocess.run(["gcc", *SANITIZE, *objects, "-lm", "-o", tmp_path / "main"], check=True)
    # What is given away is not given back.
    done = subprocess.run(
        [tmp_path / "main"],
        check=False,
        capture_output=True,
        text=True,
        env={"ASAN_OPTIONS": "detect_leaks=0"},
    )
    assert done.returncode == 0, done.stderr
    assert [line.rstrip() for line in done.stdout.splitlines()] == wanted()


@pytest.mark.emulated
def test_buffers_on_a_board(tmp_path: Path) -> None:
    name = "mps2_an386"
    require_emulator(name)
    board = load_board(name)
    elf = build_firmware(
        board, sources(tmp_path, board.target), [tmp_path], tmp_path / "build", [], harness=False
    )
    link = qemu.start(board, elf)
    try:
        deadline, text = time.monotonic() + 30, b""
        while b"done" not in text:
            text += link.read(deadline)
    finally:
        link.close()
    assert [line.rstrip() for line in text.decode().splitlines()] == wanted()


@pytest.mark.emulated
def test_a_project_with_all_that_goes_with_it(tmp_path: Path) -> None:
    """Steps, a self-test, a context, and constants that are found in the firmware."""
    require_emulator("mps2_an386")
    options = {"context": True, "selftest": True, "max_step": 2000, "buffers": "caller"}
    program = Program("pooled", pooled_first(), pooled_first())
    made = tinyet.generate(program, "mps2_an386", tmp_path / "p", kind="cmake", **options)  # type: ignore[arg-type]
    assert made.manifest["buffers"] == "caller"
    assert made.deployment.plan.buffers_from is not None
    made.build()
    result = made.validate(on="qemu")
    assert result.bit_exact
    assert tinyet.audit(made).ok


def test_a_wrong_layer_is_found_in_the_callers_memory(tmp_path: Path) -> None:
    made = tinyet.generate(small.program(), "mps2_an386", tmp_path / "p", kind="cmake", buffers="caller")
    source = next(made.path.rglob("small.c"))
    text = source.read_text()
    assert "= output_0;" in text
    source.write_text(text.replace("= output_0;", "= output_0 - 1;"))
    result = made.validate(on="host")
    assert not result.bit_exact
    assert result.first_mismatch is not None
    assert result.first_mismatch.layer == len(made.deployment.steps) - 1
