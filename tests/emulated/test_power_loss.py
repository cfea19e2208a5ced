# SPDX-License-Identifier: Apache-2.0
"""Power is lost a thousand times: an emulated core begins anew between slices, and goes on from what was retained."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests import streamed
from tests.emulated.test_states import remembering
from tests.emulated.test_steps import FRAMES, drawn, wanted
from tests.ops.cases import write_files
from tests.ops.emulated import require_emulator
from tinyet.boards import load_board
from tinyet.build.gcc import build_firmware
from tinyet.delegates import DEFAULT
from tinyet.deployment import deploy
from tinyet.device import qemu
from tinyet.emit.model import model_files
from tinyet.emit.slices import slice_limit, slices_of
from tinyet.ir import DType
from tinyet.planning.objective import Objective, Optimize
from tinyet.program import Program

pytestmark = pytest.mark.emulated

BOARD, CUTS = load_board("mps2_an386"), 1000
# The memory that keeps its power is the PSRAM, which start-up does not touch. The arena, the context and all registers
# are filled with other bytes; then the firmware begins anew at its reset handler, with its stack, .data and .bss. Every
# 50th time the whole machine is reset, which takes the emulator's loop 10 to 20 ms.
MAIN = """
#include <stdio.h>
#include <string.h>

#include "net.h"

#define KEPT UINT32_C(0x4B455054)

static const uint8_t frames[@COUNT@][@INPUT_BYTES@] = {
@FRAMES@
};
static uint8_t arena[NET_ARENA_BYTES] TINYET_ALIGNED(NET_ARENA_ALIGN);
static net_context net;
static struct {
  uint32_t mark; /* KEPT once the first power loss has been prepared */
  uint32_t cuts;
  uint32_t frame;
  uint32_t random;
  uint32_t slices; /* of this run, that have been done */
  net_context net;
  uint8_t bytes[NET_RETAINED_BYTES];
} store __attribute__((section(".tinyet.psram")));

static uint32_t drawn(void) {
  store.random ^= store.random << 13;
  store.random ^= store.random >> 17;
  store.random ^= store.random << 5;
  return store.random;
}

static void lose_power(void) {
  uint32_t count, at = 0u;
  const tinyet_range *alive = net_retained(&net, &count);
  for (uint32_t i = 0u; i < count; i++) {
    memcpy(store.bytes + at, arena + alive[i].offset, alive[i].bytes);
    at += alive[i].bytes;
  }
  store.net = net;
  store.cuts++;
  fflush(stdout);
  for (uint32_t i = 0u; i < sizeof arena; i++) {
    arena[i] = (uint8_t)drawn();
  }
  memset(&net, 0xA5, sizeof net);
  while (store.cuts % 50u == 0u) {
    *(volatile uint32_t *)0xE000ED0Cu = 0x05FA0004u; /* AIRCR: SYSRESETREQ */
  }
  const uint32_t *const vectors = (const uint32_t *)(uintptr_t)*(volatile uint32_t *)0xE000ED08u; /* VTOR */
  __asm volatile(
      "msr msp, %0\\n\\tmov r0, %1\\n\\tmov r1, %2\\n\\tmov r2, r1\\n\\tmov r3, r1\\n\\t"
      "mov r4, r1\\n\\tmov r5, r1\\n\\tmov r6, r1\\n\\tmov r7, r1\\n\\tmov r8, r1\\n\\t"
      "mov r9, r1\\n\\tmov r10, r1\\n\\tmov r11, r1\\n\\tmov r12, r1\\n\\tmov lr, r1\\n\\t"
      "vmov s0, r1\\n\\tvmov s8, r1\\n\\tvmov s16, r1\\n\\tvmov s31, r1\\n\\tbx r0"
      :
      : "r"(vectors[0]), "r"(vectors[1]), "r"(drawn()));
  __builtin_unreachable();
}

static void wake(void) {
  uint32_t count, at = 0u;
  net = store.net;
  const tinyet_range *alive = net_retained(&net, &count);
  for (uint32_t i = 0u; i < count; i++) {
    memcpy(arena + alive[i].offset, store.bytes + at, alive[i].bytes);
    at += alive[i].bytes;
  }
}

static uint32_t summed(uint32_t sum, const void *output, uint32_t bytes) {
  for (uint32_t i = 0u; i < bytes; i++) {
    sum = sum * 31u + ((const uint8_t *)output)[i];
  }
  return sum;
}

int main(void) {
  if (store.mark == KEPT) {
    wake();
  } else {
    memset(&store, 0, sizeof store);
    store.mark = KEPT;
    store.random = 1u;
    if (net_init(&net, arena) != TINYET_OK) {
      return 1;
    }
  }
  while (store.cuts < @CUTS@u || store.slices != 0u || store.frame != 0u) {
    if (store.slices == 0u) {
@INPUTS@
    }
    const tinyet_status status = net_step(&net);
    store.slices++;
    if (status == TINYET_OK) {
      uint32_t sum = 0u;
@OUTPUTS@
      printf("%lu %lu\\n", (unsigned long)sum, (unsigned long)store.slices);
      store.slices = 0u;
      store.frame = (store.frame + 1u) % @COUNT@u;
      if (store.frame == 0u) {
        @RESET@
      }
    } else if (status != TINYET_MORE_STEPS) {
      printf("failed\\n");
    }
    if (drawn() % 2u == 0u) {
      lose_power();
    }
  }
  printf("%lu\\ndone\\n", (unsigned long)store.cuts);
  fflush(stdout);
  return 0;
}
"""

CASES: dict[str, tuple[Program, Optimize, int]] = {
    "states, parts of calls": (remembering(), "balanced", 1000),
    "rows, and sums over them": (streamed.averaged(DType.INT8), "size", 20000),
}


@pytest.mark.parametrize("case", CASES)
def test_a_thousand_power_losses(case: str, tmp_path: Path) -> None:
    require_emulator()
    program, optimize, length = CASES[case]
    whole = deploy(program.graph, BOARD.target, DEFAULT, objective=Objective(optimize))
    deployment, slices = slices_of(whole, BOARD, slice_limit(length))
    frames = drawn(program)
    files = model_files(deployment, "net", ["test"], program_hash=program.hash, context=True, slices=slices)
    rows = [", ".join(map(str, b"".join(array.tobytes() for array in frame))) for frame in frames]
    sizes = [tensor.type.bytes for tensor in program.inputs]
    inputs = [
        f"      memcpy(net_input_{i}(&net), frames[store.frame] + {sum(sizes[:i])}, {size});"
        for i, size in enumerate(sizes)
    ]
    outputs = [
        f"      sum = summed(sum, net_output_{i}(&net), NET_OUTPUT_{i}_BYTES);"
        for i in range(len(program.graph.user_outputs))
    ]
    said = {
        "INPUT_BYTES": str(sum(sizes)),
        "FRAMES": ",\n".join(f"  {{{row}}}" for row in rows),
        "COUNT": str(FRAMES),
        "CUTS": str(CUTS),
        "INPUTS": "\n".join(inputs),
        "OUTPUTS": "\n".join(outputs),
        "RESET": "net_reset(&net);" if program.graph.states else "",
    }
    main = MAIN
    for word, text in said.items():
        main = main.replace(f"@{word}@", text)
    write_files(tmp_path, files | {"main.c": main})
    sources = sorted(tmp_path.glob("*.c"))
    elf = build_firmware(BOARD, sources, [tmp_path], tmp_path / "build", harness=False)
    link = qemu.start(BOARD, elf)
    try:
        deadline, read = time.monotonic() + 60, b""
        while b"done" not in read:
            read += link.read(deadline)
    finally:
        link.close()
    *runs, cuts, _ = read.decode().split("\n")[:-1] if read.endswith(b"\n") else read.decode().split("\n")
    assert int(cuts) >= CUTS
    right = [f"{each} {slices.count}" for each in wanted(program, frames)]
    assert len(runs) % FRAMES == 0
    assert len(runs) >= FRAMES
    assert {tuple(runs[at : at + FRAMES]) for at in range(0, len(runs), FRAMES)} == {tuple(right)}
