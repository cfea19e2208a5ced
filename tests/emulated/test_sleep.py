# SPDX-License-Identifier: Apache-2.0
"""States over a deep sleep: they and the word that says that they are set are in the arena, which is kept or lost as a
whole; saved bytes bring them back, and nothing else is taken for them."""

from __future__ import annotations

import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.compilers.sanitizers import QUICK
from tests.emulated.test_states import remembering
from tests.ops.cases import write_files
from tests.ops.emulated import require_emulator
from tests.ops.objects import compiled_object
from tests.streamed import Net
from tinyet.boards import load_board
from tinyet.boards.cpus import HOST
from tinyet.build.gcc import build_firmware
from tinyet.deployment import Deployment, deploy
from tinyet.device import qemu
from tinyet.emit.interface import HEAD_BYTES
from tinyet.emit.model import model_files
from tinyet.ir import Array, DType, Graph, Tensor
from tinyet.ops.add import Add
from tinyet.ops.mean import Mean
from tinyet.ops.mul import Mul
from tinyet.ops.reshape import Reshape
from tinyet.passes.states import write_states
from tinyet.planning.objective import Objective
from tinyet.program import Program, from_bytes
from tinyet.reference import Session

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

STRICT = (
    *("-std=c11", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Wcast-qual"),
    *("-Wcast-align", "-Wundef", "-Wdouble-promotion", "-Werror"),
)
TRACE = ("TINYET_TRACE", "1")
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g1", *QUICK)
FRAMES, AWAKE = 9, 4

# Runs frames, and between them sleeps: what a sleep leaves of the arena, and what is done about it, is the line's name.
MAIN = """
#include <stdio.h>
#include <string.h>

#include "net.h"

static const int8_t frames[][NET_INPUT_0_COUNT] = {
@FRAMES@
};
static uint8_t flash[NET_STATE_BYTES + 1u];
static uint8_t retained[NET_ARENA_BYTES];

static int wakes = 0;

static uint32_t summed(uint32_t sum, const void *output, uint32_t bytes) {
  for (uint32_t i = 0u; i < bytes; i++) {
    sum = sum * 31u + ((const uint8_t *)output)[i];
  }
  return sum;
}

/* May end a run behind its last layer, when the states have changed, as a watchdog's reset does. */
static int breaks_off = 0;
void tinyet_trace_begin(uint32_t layer) { (void)layer; }
int tinyet_trace_end(uint32_t layer) { return breaks_off && layer == NET_NUM_LAYERS - 1u; }

static void run(uint32_t from, uint32_t to) {
  for (uint32_t frame = from; frame < to; frame++) {
#if defined(NET_INPUT_0_ROWS)
    if (net_push_rows(frames[frame], 3u) != TINYET_MORE_ROWS) {
      printf("failed ");
    }
    if (wakes) { /* what has been saved in the midst of an image is from before it */
      net_save_state(flash + 1);
      memset(net_arena, 0, sizeof net_arena);
      if (net_restore_state(flash + 1) != TINYET_OK || net_push_rows(frames[frame], 3u) != TINYET_MORE_ROWS) {
        printf("failed ");
      }
    }
    if (net_push_rows(frames[frame] + 3u * NET_INPUT_0_ROW_COUNT, NET_INPUT_0_ROWS - 3u) != TINYET_OK) {
      printf("failed ");
    }
#else
    memcpy(net_input_0(), frames[frame], NET_INPUT_0_BYTES);
    if (net_run() != TINYET_OK) {
      printf("failed ");
    }
#endif
    uint32_t sum = 0u;
@OUTPUTS@
    printf("%lu ", (unsigned long)sum);
  }
  printf("\\n");
}

int main(void) {
  uint8_t *const saved = flash + 1; /* any bytes will do */
  memset(net_arena, 0xA5, sizeof net_arena); /* as RAM is at power-up */
  printf("power-up: ");
  run(0u, @AWAKE@u);
  net_save_state(saved);
  memcpy(retained, net_arena, sizeof net_arena);

  printf("kept: ");
  run(@AWAKE@u, @FRAMES_COUNT@u);

  memset(net_arena, 0, sizeof net_arena);
  printf("restored: %d ", (int)net_restore_state(saved));
  run(@AWAKE@u, @FRAMES_COUNT@u);

  memcpy(net_arena, retained, sizeof net_arena);
  printf("retained: ");
  run(@AWAKE@u, @FRAMES_COUNT@u);

  memset(net_arena, 0xFF, sizeof net_arena);
  wakes = 1;
  printf("lost: ");
  run(0u, @AWAKE@u);

  uint32_t refused = 0u, asked = 0u;
  for (uint32_t i = 0u; i < NET_STATE_BYTES; i++, asked++) {
    saved[i] ^= 0x10u;
    memcpy(net_arena, retained, sizeof net_arena);
    const int same = net_restore_state(saved) == TINYET_OTHER_STATE;
    refused += same && memcmp(net_arena, retained, sizeof net_arena) == 0 ? 1u : 0u;
    saved[i] ^= 0x10u;
  }
  printf("refused: %s\\n", refused == asked ? "all" : "some");

  wakes = 0;
  net_reset();
  net_save_state(saved);
  printf("reset: %d ", (int)net_restore_state(saved));
  run(0u, @AWAKE@u);

  memset(net_arena, 0, sizeof net_arena);
  net_save_state(saved);
  memset(net_arena, 0, sizeof net_arena);
  printf("never set: %d ", (int)net_restore_state(saved));
  run(0u, @AWAKE@u);

  breaks_off = 1;
#if defined(NET_INPUT_0_ROWS)
  printf("broken off: %d ", (int)net_push_rows(frames[0], NET_INPUT_0_ROWS));
#else
  printf("broken off: %d ", (int)net_run());
#endif
  breaks_off = 0;
  run(0u, @AWAKE@u);
  printf("done\\n");
  fflush(stdout);
  return 0;
}
"""


def following() -> Program:
    """An image a run, to which is added what is computed, in two steps, of a state alone; the state is needed by
    nothing else, so that it could be written before the first row."""
    net = Net(DType.INT8, (1, 18, 6, 4))
    before = Tensor("before", net.type((1, 1, 40, 4), DType.INT8))
    small = net.constant(np.full((1, 1, 1, 4), 9, np.int8), net.x.type.quant)
    after = net.add(Add(), before, small, like=before)
    gain = net.constant(np.array([[[[100, -40, 7, 60]]]], np.int8), net.x.type.quant)
    means = net.add(Mean((2,)), net.add(Mul(), after, gain))
    shift = net.add(Reshape((1, 1, 1, 4)), means, like=means)
    y = net.conv(net.add(Add(), net.x, shift), 4)
    initial = net.constant(np.arange(160, dtype=np.int8).reshape(before.shape), before.type.quant)
    graph = Graph("following", (net.x, before), (y, after), tuple(net.nodes), (initial,))
    return from_bytes(Program("following", write_states(graph)).data, "following")


def filtering() -> Program:
    """An image a run, to which is added what layers make of a state, row by row."""
    net = Net(DType.INT8, (1, 18, 6, 4))
    before = Tensor("before", net.type((1, 18, 6, 4), DType.INT8))
    z = net.conv(net.conv(before, 16), 4)
    means = net.add(Mean((1, 2)), z)
    shift = net.add(Reshape((1, 1, 1, 4)), means, like=means)
    y = net.conv(net.add(Add(), net.x, shift), 4)
    initial = net.constant(np.full(before.shape, 3, np.int8), before.type.quant)
    after = net.add(Add(), before, y, like=before)
    graph = Graph("filtering", (net.x, before), (y, after), tuple(net.nodes), (initial,))
    return from_bytes(Program("filtering", write_states(graph)).data, "filtering")


def drawn(program: Program) -> list[Array]:
    rng = np.random.default_rng(8)
    return [rng.integers(-128, 128, program.inputs[0].shape).astype(np.int8) for _ in range(FRAMES)]


def wanted(program: Program, frames: list[Array]) -> list[str]:
    """What the program prints, by the reference."""
    session, sums = Session(program.graph), list[str]()
    for frame in frames:
        values = session.values([frame])
        total = 0
        for tensor in program.graph.user_outputs:
            for byte in values[tensor].tobytes():
                total = (total * 31 + byte) & 0xFFFFFFFF
        sums.append(str(total))
    first, rest = " ".join(sums[:AWAKE]), " ".join(sums[AWAKE:])
    return [
        f"power-up: {first}",
        f"kept: {rest}",
        f"restored: 0 {rest}",
        f"retained: {rest}",
        f"lost: {first}",
        "refused: all",
        f"reset: 0 {first}",
        f"never set: 0 {first}",
        f"broken off: 1 {first}",
        "done",
    ]


def sources(program: Program, deployment: Deployment, frames: list[Array], where: Path) -> list[Path]:
    files = model_files(deployment, "net", ["test"], program_hash=program.hash)
    rows = ",\n".join(f"  {{{', '.join(map(str, frame.ravel()))}}}" for frame in frames)
    main = MAIN.replace("@FRAMES@", rows).replace("@AWAKE@", str(AWAKE))
    outputs = (
        f"    sum = summed(sum, net_output_{i}(), NET_OUTPUT_{i}_BYTES);"
        for i in range(len(program.graph.user_outputs))
    )
    main = main.replace("@OUTPUTS@", "\n".join(outputs))
    files["main.c"] = main.replace("@FRAMES_COUNT@", str(FRAMES))
    write_files(where, files)
    return [where / name for name in sorted(files) if name.endswith(".c")]


@pytest.mark.parametrize(
    "program", [remembering(), following(), filtering()], ids=lambda program: program.name
)
def test_on_the_host(program: Program, tmp_path: Path) -> None:
    """Under the sanitizers. Static memory of the model is its arena alone, but for the place in an image: nothing that
    a state needs can be lost without it. A state is what it was until the image's last row, and what comes before the
    rows is computed before the first alone: their windows lie over it."""
    rows = program.name != "remembering"
    frames = drawn(program)
    deployment = deploy(program.graph, HOST, objective=Objective(input_rows=rows))
    compiler = ["gcc", *STRICT, *SANITIZE, f"-D{'='.join(TRACE)}", f"-I{tmp_path}"]
    objects = [compiled_object(compiler, source) for source in sources(program, deployment, frames, tmp_path)]
    subprocess.run(["gcc", *SANITIZE, *objects, "-lm", "-o", tmp_path / "main"], check=True)
    printed = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    assert [line.rstrip() for line in printed.splitlines()] == wanted(program, frames)
    plain = compiled_object(["gcc", *STRICT, "-fno-pie", f"-I{tmp_path}"], tmp_path / "net.c")
    symbols = subprocess.run(["nm", plain], capture_output=True, text=True, check=True).stdout
    kinds = {words[-1]: words[-2] for line in symbols.splitlines() if len(words := line.split()) > 1}
    static = {name for name, kind in kinds.items() if kind in "bBdDsSC"}
    assert static == {"net_arena"} if not rows else "net_image" in static
    total = sum(state.value.type.bytes for state in program.graph.states)
    assert f"#define NET_STATE_BYTES {HEAD_BYTES + total}u" in (tmp_path / "net.h").read_text()


@pytest.mark.emulated
@pytest.mark.parametrize("name", ["mps2_an386"])
def test_on_a_board(name: str, tmp_path: Path) -> None:
    require_emulator(name)
    program, board = remembering(), load_board(name)
    frames = drawn(program)
    c_files = sources(program, deploy(program.graph, board.target), frames, tmp_path)
    elf = build_firmware(board, c_files, [tmp_path], tmp_path / "build", [TRACE], harness=False)
    link = qemu.start(board, elf)
    try:
        deadline, text = time.monotonic() + 30, b""
        while b"done" not in text:
            text += link.read(deadline)
    finally:
        link.close()
    assert [line.rstrip() for line in text.decode().splitlines()] == wanted(program, frames)


def test_what_is_kept_is_of_one_program_and_one_map() -> None:
    """The word in the arena is another's where the program or its places differ, the saved one only where the program
    does."""
    program = remembering()

    def words(deployment: Deployment, program_hash: str) -> tuple[str, str]:
        text = model_files(deployment, "net", ["test"], program_hash=program_hash)["net.c"]
        lines = {words[1]: words[2] for line in text.splitlines() if len(words := line.split()) == 3}
        return lines["NET_IS_SET"], lines["NET_SAVED"]

    one = deploy(program.graph, HOST)
    assert one.plan.mark is not None
    other = replace(one, plan=replace(one.plan, mark=one.plan.mark + 4))
    is_set, saved = words(one, program.hash)
    assert words(one, program.hash) == (is_set, saved)
    other_set, other_saved = words(other, program.hash)
    assert (other_set != is_set, other_saved) == (True, saved)
    stranger = words(one, "ab" * 32)
    assert stranger[0] != is_set
    assert stranger[1] != saved
