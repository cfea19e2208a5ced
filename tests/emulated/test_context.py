# SPDX-License-Identifier: Apache-2.0
"""Models whose memory is the caller's: two instances in turns and one within the other, and nothing static in the C."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

import tinyet
from tests import small
from tests.emulated.test_sleep import SANITIZE, STRICT, TRACE, following
from tests.emulated.test_states import remembering
from tests.ops.cases import write_files
from tests.ops.emulated import require_emulator
from tests.ops.objects import compiled_object
from tinyet.boards import load_board
from tinyet.boards.cpus import HOST
from tinyet.build.gcc import build_firmware
from tinyet.deployment import Deployment, deploy
from tinyet.device import qemu
from tinyet.emit.model import model_files
from tinyet.errors import UsageError
from tinyet.ir import Array
from tinyet.planning.objective import Objective
from tinyet.program import Program
from tinyet.reference import Session

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

FRAMES = 7

# Two instances take frames of their own, in turns; in frame 3 the second runs in the midst of the first one's run.
MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"

static const int8_t frames[2][@FRAMES@][NET_INPUT_0_COUNT] = {
@VALUES@
};
static net_context nets[2];
static uint8_t first[NET_ARENA_BYTES] TINYET_ALIGNED(NET_ARENA_ALIGN);
static uint32_t sums[2][@FRAMES@];
static int within = 0; /* 1: the other instance runs within this run; 2: the same */
static uint32_t at = 0u;

static void run(uint32_t which, uint32_t frame) {
  net_context *const net = &nets[which];
#if defined(NET_INPUT_0_ROWS)
  if (net_push_rows(net, frames[which][frame] + 3u * NET_INPUT_0_ROW_COUNT, NET_INPUT_0_ROWS - 3u) != TINYET_OK) {
#else
  memcpy(net_input_0(net), frames[which][frame], NET_INPUT_0_BYTES);
  if (net_run(net) != TINYET_OK) {
#endif
    printf("failed ");
  }
  for (uint32_t i = 0u; i < NET_OUTPUT_0_BYTES; i++) {
    sums[which][frame] = sums[which][frame] * 31u + ((const uint8_t *)net_output_0(net))[i];
  }
}

static tinyet_status again(net_context *net) {
#if defined(NET_INPUT_0_ROWS)
  return net_push_rows(net, frames[0][0], 1u);
#else
  return net_run(net);
#endif
}

void tinyet_trace_begin(uint32_t layer) {
  const int what = within;
  if (layer == NET_NUM_LAYERS / 2 && what != 0) {
    within = 0;
    if (what == 1) {
      run(1u, at);
    } else {
      printf("busy: %d\\n", (int)again(&nets[0]));
    }
  }
}
int tinyet_trace_end(uint32_t layer) { return layer == 0xFFFFFFFFu; }

int main(void) {
#if defined(ON_HEAP)
  uint8_t *const second = (uint8_t *)malloc(NET_ARENA_BYTES);
  memset(second, 0xA5, NET_ARENA_BYTES);
#else
  static uint8_t second[NET_ARENA_BYTES] TINYET_ALIGNED(NET_ARENA_ALIGN);
#endif
  memset(&nets[1], 0xA5, sizeof nets[1]);
  printf("none: %d %d %d\\n", (int)again(&nets[0]), (int)net_init(&nets[0], NULL), (int)net_init(&nets[0], first + 4));
  printf("made: %d %d\\n", (int)net_init(&nets[0], first), (int)net_init(&nets[1], second));
  for (at = 0u; at < @FRAMES@u; at++) {
#if defined(NET_INPUT_0_ROWS)
    for (uint32_t which = 0u; which < 2u; which++) {
      if (net_push_rows(&nets[which], frames[which][at], 3u) != TINYET_MORE_ROWS) {
        printf("failed ");
      }
    }
#endif
    within = at == 3u ? 1 : at == 5u ? 2 : 0;
    run(0u, at);
    if (at != 3u) {
      run(1u, at);
    }
  }
  for (uint32_t which = 0u; which < 2u; which++) {
    for (at = 0u; at < @FRAMES@u; at++) {
      printf("%lu ", (unsigned long)sums[which][at]);
    }
    printf("\\n");
  }
#if defined(NET_STATE_BYTES)
  { /* what one instance has saved is the other's, and memory that was an instance's is a new one's */
    static uint8_t saved[NET_STATE_BYTES];
    net_save_state(&nets[0], saved);
    printf("restored: %d ", (int)net_restore_state(&nets[1], saved));
    printf("%d\\n", memcmp(net_state_0(&nets[0]), net_state_0(&nets[1]), NET_STATE_0_BYTES));
    (void)net_init(&nets[0], second);
    sums[0][0] = 0u;
#if defined(NET_INPUT_0_ROWS)
    (void)net_push_rows(&nets[0], frames[0][0], 3u);
#endif
    run(0u, 0u);
    printf("anew: %lu\\n", (unsigned long)sums[0][0]);
  }
#endif
#if defined(ON_HEAP)
  free(second);
#endif
  printf("done\\n");
  fflush(stdout);
  return 0;
}
"""


def drawn(program: Program, which: int) -> list[Array]:
    rng = np.random.default_rng(which)
    return [rng.integers(-128, 128, program.inputs[0].shape).astype(np.int8) for _ in range(FRAMES)]


def wanted(program: Program) -> list[str]:
    """What the program prints, by one reference for each instance."""
    lines = []
    for which in range(2):
        session, sums = Session(program.graph), list[str]()
        for frame in drawn(program, which):
            total = 0
            for byte in session.values([frame])[program.graph.user_outputs[0]].tobytes():
                total = (total * 31 + byte) & 0xFFFFFFFF
            sums.append(str(total))
        lines.append(" ".join(sums))
    kept = ["restored: 0 0", f"anew: {lines[0].split()[0]}"] if program.graph.states else []
    return ["none: -5 -5 -5", "made: 0 0", "busy: -4", *lines, *kept, "done"]


def sources(program: Program, deployment: Deployment, where: Path) -> list[Path]:
    files = model_files(deployment, "net", ["test"], program_hash=program.hash, context=True)
    rows = (
        f"  {{{', '.join('{' + ', '.join(map(str, f.ravel())) + '}' for f in drawn(program, which))}}}"
        for which in range(2)
    )
    files["main.c"] = MAIN.replace("@VALUES@", ",\n".join(rows)).replace("@FRAMES@", str(FRAMES))
    write_files(where, files)
    return [where / name for name in sorted(files) if name.endswith(".c")]


@pytest.mark.parametrize("program", [remembering(), following()], ids=lambda program: program.name)
def test_two_instances_on_the_host(program: Program, tmp_path: Path) -> None:
    """Under the sanitizers, one arena on a heap, and both contexts full of anything before."""
    rows = program.name == "following"
    deployment = deploy(program.graph, HOST, objective=Objective(input_rows=rows))
    compiler = ["gcc", *STRICT, *SANITIZE, f"-D{'='.join(TRACE)}", "-DON_HEAP", f"-I{tmp_path}"]
    made = sources(program, deployment, tmp_path)
    objects = [compiled_object(compiler, source) for source in made]
    subprocess.run(["gcc", *SANITIZE, *objects, "-lm", "-o", tmp_path / "main"], check=True)
    printed = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    assert [line.rstrip() for line in printed.splitlines()] == wanted(program)
    plain = [
        compiled_object(["gcc", *STRICT, "-fno-pie", f"-I{tmp_path}"], p) for p in made if p.name != "main.c"
    ]
    assert not variables(plain)


def variables(objects: list[Path]) -> set[str]:
    """The names of what is written to, of all object files."""
    text = subprocess.run(["nm", *objects], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in text.splitlines() if re.search(r"(^|\s)[bBdDsSC]\s", line)}


@pytest.mark.emulated
def test_two_instances_on_a_board(tmp_path: Path) -> None:
    name, program = "mps2_an386", remembering()
    require_emulator(name)
    board = load_board(name)
    made = sources(program, deploy(program.graph, board.target), tmp_path)
    elf = build_firmware(board, made, [tmp_path], tmp_path / "build", [TRACE], harness=False)
    link = qemu.start(board, elf)
    try:
        deadline, text = time.monotonic() + 30, b""
        while b"done" not in text:
            text += link.read(deadline)
    finally:
        link.close()
    assert [line.rstrip() for line in text.decode().splitlines()] == wanted(program)


@pytest.mark.parametrize("rows", [False, True])
def test_a_harness_has_an_instance(rows: bool, tmp_path: Path) -> None:
    program = Program("small", small.graph(size=16), small.graph(real=True, size=16))
    made = tinyet.generate(program, "mps2_an386", tmp_path / "p", kind="cmake", context=True, input_rows=rows)
    assert made.manifest["context"] is True
    assert made.validate(on="host").bit_exact


def test_what_knows_one_instance_only(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one instance"):
        tinyet.generate(small.program(), "mps2_an386", tmp_path / "p", context=True, tflm_header=True)
