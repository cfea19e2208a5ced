# SPDX-License-Identifier: Apache-2.0
"""Generated models on an AVR in simavr: inputs and outputs go over its first UART as they lie in the arena."""

from __future__ import annotations

import struct
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.emulated.simavr import build_runner, execute
from tests.ops.cases import write_files
from tests.ops.objects import compiled_object
from tinyet.boards.cpus import Target
from tinyet.delegates import DEFAULT, Delegate
from tinyet.deployment import Deployment, deploy
from tinyet.emit.model import model_files
from tinyet.ir import Array, Graph
from tinyet.planning.objective import Objective

HZ = 16_000_000
# In the order of the product's own: objects of kernels are then those of firmwares with the harness, too.
_OF_ALL = (
    *("-g1", "-ffp-contract=off", "-ffunction-sections", "-fdata-sections", "-Os"),
    *("-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Werror"),
)
FLAGS = ("-std=gnu11", *_OF_ALL)
CXX_FLAGS = ("-x", "c++", "-std=gnu++14", *_OF_ALL)
# A limit for firmwares that hang; in seconds of the simulated clock.
SECONDS = 600.0
_DATA = 0x100
"""Behind the registers."""

MAIN = """
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include "%(name)s.h"

typedef struct { uint16_t offset, bytes; } span;
static const TINYET_ROM span inputs[] = { %(inputs)s };
static const TINYET_ROM span outputs[] = { %(outputs)s };
enum { PAINT = 0xc5, GUARD = 16 };
extern uint8_t __heap_start;

static uint8_t get(void) {
  while ((UCSR0A & (1 << RXC0)) == 0) {
  }
  return UDR0;
}

static void put(uint8_t byte) {
  while ((UCSR0A & (1 << UDRE0)) == 0) {
  }
  UCSR0A |= 1 << TXC0;
  UDR0 = byte;
}

/* Bytes of stack, from here on, that the run takes, and its time in units of 1024 cycles. */
static __attribute__((noinline)) tinyet_status run(uint16_t *stack, uint16_t *time) {
  uint8_t *const here = (uint8_t *)SP;
  for (uint8_t *at = &__heap_start; at < here - GUARD; at++) {
    *at = PAINT;
  }
  TCCR1B = (1 << CS12) | (1 << CS10);
  TCNT1 = 0;
  const tinyet_status status = %(name)s_run();
  *time = TCNT1;
  const uint8_t *deepest = &__heap_start;
  while (*deepest == PAINT) {
    deepest++;
  }
  *stack = deepest == &__heap_start ? UINT16_MAX : (uint16_t)(here - deepest);
  return status;
}

int main(void) {
  UCSR0A = 1 << U2X0;
  UBRR0 = 0;
  UCSR0B = (1 << RXEN0) | (1 << TXEN0);
  for (uint8_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
    for (uint16_t k = 0; k < inputs[i].bytes; k++) {
      %(name)s_arena[inputs[i].offset + k] = get();
    }
  }
  uint16_t stack, time;
  put((uint8_t)run(&stack, &time));
  put((uint8_t)stack);
  put((uint8_t)(stack >> 8));
  put((uint8_t)time);
  put((uint8_t)(time >> 8));
  for (uint8_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
    for (uint16_t k = 0; k < outputs[i].bytes; k++) {
      put(%(name)s_arena[outputs[i].offset + k]);
    }
  }
  while ((UCSR0A & (1 << TXC0)) == 0) {
  }
  cli();
  sleep_enable();
  for (;;) {
    sleep_cpu();
  }
}
"""


@dataclass(frozen=True)
class AvrRun:
    """outputs: their bytes in order. stack: what the run took of it. text, data: bytes of program memory and of
    initialised RAM of the whole firmware; cycles: of the run, within 1024."""

    deployment: Deployment
    outputs: bytes
    stack: int
    text: int
    data: int
    cycles: int


def target(mcu: str) -> Target:
    return Target("avr5", frozenset({"progmem"}), mcu)


def run_on_avr(
    graph: Graph,
    inputs: Sequence[Array],
    mcu: str,
    delegates: Sequence[Delegate] = DEFAULT,
    objective: Objective | None = None,
    data_at: int = _DATA,
    *,
    cxx: bool = False,
) -> AvrRun:
    """Generate, compile and run a graph, its variables from this address on; cxx: all of it as C++. Fails on a warning,
    on a status that is not 0, and when the stack meets what lies below it. Skips where simavr or its compiler is
    absent."""
    build_runner()
    deployment = deploy(graph, target(mcu), delegates, objective=objective)
    files = model_files(deployment, graph.name, [graph.name])
    plan = deployment.plan
    spans = {
        kind: ", ".join(f"{{{plan.offset(t)}u, {t.type.bytes}u}}" for t in tensors)
        for kind, tensors in (("inputs", graph.inputs), ("outputs", graph.outputs))
    }
    with tempfile.TemporaryDirectory(prefix="tinyet-avr-") as where:
        folder = Path(where)
        write_files(folder, {**files, "main.c": MAIN % {"name": graph.name, **spans}})
        compiler = [
            *("avr-g++" if cxx else "avr-gcc", f"-mmcu={mcu}"),
            *(CXX_FLAGS if cxx else FLAGS),
        ]
        own = f"{graph.name}.c"
        objects = [
            str(compiled_object([*compiler, f"-I{where}"], folder / name))
            for name in sorted(files)
            if name.endswith(".c") and name != own
        ]
        elf = folder / "firmware.elf"
        own_sources = [f"{where}/{own}", f"{where}/main.c"]
        link = ["-Wl,--gc-sections", f"-Wl,-Tdata={0x800000 + data_at:#x}"]  # RAM as the linker counts it
        of_objects = ["-x", "none"] if cxx else []
        _call([*compiler, *link, "-I", where, *own_sources, *of_objects, *objects, "-lm", "-o", str(elf)])
        text, data = map(int, _call(["avr-size", str(elf)]).splitlines()[1].split()[:2])
        run = execute(elf, mcu, HZ, SECONDS, b"".join(np.ascontiguousarray(a).tobytes() for a in inputs))
    status, stack, time = struct.unpack_from("<BHH", run.output)
    assert status == 0, f"{graph.name}_run gave {status}"
    assert stack != 0xFFFF, "the stack met the data below it"
    return AvrRun(deployment, run.output[5:], stack, text, data, 1024 * time)


def _call(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr[-6000:]}"
    return done.stdout
