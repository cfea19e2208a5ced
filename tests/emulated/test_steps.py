# SPDX-License-Identifier: Apache-2.0
"""A run in slices: bit-exact, none longer than asked, and of the arena nothing is needed but what is said to live."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import tinyet
from tests import small, streamed
from tests.emulated.test_sleep import SANITIZE, STRICT
from tests.emulated.test_states import remembering
from tests.ops.cases import objects_for_host, write_files
from tests.ops.emulated import require_emulator
from tinyet.boards import load_board
from tinyet.data import demonstration
from tinyet.delegates import DEFAULT, PORTABLE
from tinyet.deployment import Deployment, deploy
from tinyet.device.device import open_device
from tinyet.emit.model import model_files
from tinyet.emit.selftest import Golden
from tinyet.emit.slices import SlicePlan, slice_limit, slices_of
from tinyet.errors import EmulatorError, UsageError
from tinyet.ir import Array, DType
from tinyet.planning.objective import Objective
from tinyet.program import Program
from tinyet.reference import Session, evaluate

BOARD = load_board("mps2_an386")
FRAMES, CUTS = 6, 1000
# At a power cut what is retained, and the context, is in a store; everything else is lost.
MAIN = """
#include <stdio.h>
#include <string.h>

#include "net.h"

static const uint8_t frames[FRAMES][@INPUT_BYTES@] = {
@FRAMES@
};
static uint8_t arena[NET_ARENA_BYTES] TINYET_ALIGNED(NET_ARENA_ALIGN);
static uint8_t store[NET_RETAINED_BYTES];
static net_context net, kept;
static uint32_t cuts, steps, random = 1u;

static uint32_t drawn(void) {
  random ^= random << 13;
  random ^= random >> 17;
  random ^= random << 5;
  return random;
}

static void power_cut(void) {
  uint32_t count, at = 0u;
  const tinyet_range *alive = net_retained(&net, &count);
  for (uint32_t i = 0u; i < count; i++) {
    memcpy(store + at, arena + alive[i].offset, alive[i].bytes);
    at += alive[i].bytes;
  }
  kept = net;
  memset(arena, (int)(drawn() & 0xFFu), sizeof arena);
  memset(&net, 0xA5, sizeof net);
  net = kept;
  alive = net_retained(&net, &count);
  at = 0u;
  for (uint32_t i = 0u; i < count; i++) {
    memcpy(arena + alive[i].offset, store + at, alive[i].bytes);
    at += alive[i].bytes;
  }
  cuts++;
}

static uint32_t summed(uint32_t sum, const void *output, uint32_t bytes) {
  for (uint32_t i = 0u; i < bytes; i++) {
    sum = sum * 31u + ((const uint8_t *)output)[i];
  }
  return sum;
}

static void print_outputs(void) {
  uint32_t sum = 0u;
@OUTPUTS@
  printf("%lu ", (unsigned long)sum);
}

/* how: 0 as one run, 1 in steps, 2 with a cut after every step, 3 with cuts at drawn steps. */
static void run(uint32_t frame, int how) {
  tinyet_status status;
@INPUTS@
  if (how == 0) {
    status = net_run(&net);
  } else {
    uint32_t slices = 0u;
    if (how == 2) {
      power_cut();
    }
    do {
      status = net_step(&net);
      slices++;
      if (how == 2 || (how == 3 && drawn() % 3u == 0u)) {
        power_cut();
      }
    } while (status == TINYET_MORE_STEPS);
    steps += slices;
    if (slices != NET_NUM_SLICES) {
      printf("slices! ");
    }
  }
  if (status != TINYET_OK) {
    printf("failed ");
  }
  print_outputs();
}

int main(void) {
  if (net_init(&net, arena) != TINYET_OK) {
    return 1;
  }
  for (int how = 0; how < 4; how++) {
    @RESET@
    for (uint32_t frame = 0u; frame < FRAMES; frame++) {
      run(frame, how);
    }
    printf("\\n");
  }
  /* A run that is left in the midst: the next one is as if it had not been. */
  (void)net_step(&net);
  net_restart(&net);
  @RESET@
  run(0u, 1);
  printf("\\n");
  while (cuts < @CUTS@u) {
    @RESET@
    for (uint32_t frame = 0u; frame < FRAMES; frame++) {
      run(frame, 3);
    }
    printf("\\n");
  }
  printf("%lu\\n", (unsigned long)cuts);
  return 0;
}
"""


def drawn(program: Program) -> list[list[Array]]:
    """Samples of all inputs."""
    rng = np.random.default_rng(8)

    def values(dtype: DType, shape: tuple[int, ...]) -> Array:
        if dtype is DType.FLOAT32:
            return rng.normal(size=shape).astype(np.float32)
        low, high = dtype.range
        return rng.integers(low, high + 1, shape).astype(dtype.numpy)

    return [[values(t.dtype, t.shape) for t in program.inputs] for _ in range(FRAMES)]


def wanted(program: Program, frames: list[list[Array]]) -> list[str]:
    session, sums = Session(program.graph), list[str]()
    for frame in frames:
        total, values = 0, session.values(frame)
        for tensor in program.graph.user_outputs:
            for byte in values[tensor].tobytes():
                total = (total * 31 + byte) & 0xFFFFFFFF
        sums.append(str(total))
    return sums


def sources(
    program: Program, deployment: Deployment, slices: SlicePlan, frames: list[list[Array]], where: Path
) -> list[Path]:
    files = model_files(deployment, "net", ["test"], program_hash=program.hash, context=True, slices=slices)
    data = [b"".join(array.tobytes() for array in frame) for frame in frames]
    rows = ",\n".join(f"  {{{', '.join(map(str, frame))}}}" for frame in data)
    inputs, at = [], 0
    for i, tensor in enumerate(program.inputs):
        inputs.append(f"  memcpy(net_input_{i}(&net), frames[frame] + {at}, NET_INPUT_{i}_BYTES);")
        at += tensor.type.bytes
    outputs = [
        f"  sum = summed(sum, net_output_{i}(&net), NET_OUTPUT_{i}_BYTES);"
        for i in range(len(program.graph.user_outputs))
    ]
    main = MAIN.replace("@INPUT_BYTES@", str(at)).replace("@FRAMES@", rows).replace("FRAMES", str(FRAMES))
    main = main.replace("@INPUTS@", "\n".join(inputs)).replace("@OUTPUTS@", "\n".join(outputs))
    main = main.replace("@RESET@", "net_reset(&net);" if program.graph.states else "").replace(
        "@CUTS@", str(CUTS)
    )
    files["main.c"] = main
    write_files(where, files)
    return [where / name for name in sorted(files) if name.endswith(".c")]


# (program, objective, length of a slice in instructions)
CASES: dict[str, tuple[Program, Literal["balanced", "size"], int]] = {
    "calls": (small.program(), "balanced", 1),
    "several calls": (small.program(hidden=16), "balanced", 4000),
    "states": (remembering(), "balanced", 1),
    "tiles": (streamed.chain(DType.INT8), "size", 1),
    "several tiles": (streamed.inverted(DType.INT8), "size", 60000),
    "branches": (streamed.branched(DType.INT16), "size", 100000),
    "sums": (streamed.averaged(DType.INT8), "size", 1),
    "attention": (streamed.heads(DType.INT8), "size", 30000),
    "parts": (streamed.everything(DType.INT8), "balanced", 1),
    "parts of channels": (streamed.chain(DType.INT8), "balanced", 2500),
}
IN_PARTS = {"calls", "states", "parts", "parts of channels"}


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
@pytest.mark.parametrize("case", CASES)
def test_power_cuts_on_the_host(case: str, tmp_path: Path) -> None:
    """Under the sanitizers: a run in slices is the run, and so it is if all memory but what is retained is lost after
    each slice, or at a thousand drawn ones."""
    program, optimize, length = CASES[case]
    frames = drawn(program)
    delegates = DEFAULT if case == "parts of channels" else (PORTABLE,)
    deployment = deploy(program.graph, BOARD.target, delegates, objective=Objective(optimize))
    deployment, slices = slices_of(deployment, BOARD, slice_limit(length))
    assert case not in IN_PARTS or any(step.parts for step in deployment.steps)
    assert any(step.groups > 1 for step in deployment.steps) == (case == "parts of channels")
    rows = [segment.group is not None for segment in slices.segments]
    assert any(rows) == (optimize == "size")
    assert slices.count > 1
    compiler = ["gcc", *STRICT, *SANITIZE, "-ffp-contract=off"]
    objects = objects_for_host(compiler, sources(program, deployment, slices, frames, tmp_path))
    subprocess.run(["gcc", *SANITIZE, *objects, "-lm", "-o", tmp_path / "main"], check=True)
    lines = subprocess.run(
        [tmp_path / "main"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    right = " ".join(wanted(program, frames))
    first = right.split()[0]
    assert [line.strip() for line in lines[:5]] == [right, right, right, right, first]
    assert {line.strip() for line in lines[5:-1]} <= {right}
    assert int(lines[-1]) >= CUTS


@pytest.mark.parametrize(
    ("optimize", "max_step"), [("balanced", "5000"), ("size", 60000), ("balanced", "1ms")]
)
def test_no_slice_is_longer_than_asked(optimize: str, max_step: int | str, tmp_path: Path) -> None:
    """Counted on an emulated board, slice by slice, and compared with what was stated; the outputs are the run's."""
    require_emulator()
    program = streamed.inverted(DType.INT8)
    project = tinyet.generate(
        program,
        BOARD,
        tmp_path / "p",
        kind="cmake",
        name="net",
        context=True,
        max_step=max_step,
        optimize=optimize,
    )
    slices = project.slices
    assert slices is not None
    assert project.manifest["max_step"] == str(max_step)
    elf = project.firmware("qemu", tmp_path, compile_anew=True)
    frame = drawn(program)[0]
    with open_device(BOARD, elf) as device:
        counts, outputs = device.steps([array.tobytes() for array in frame], slices.runs)
        whole = device.run([array.tobytes() for array in frame])
        # A layer in parts can be looked at, as the search for a wrong one does.
        values = evaluate(project.deployment.graph, frame)
        for step in [each for each in project.deployment.steps if each.parts][:2]:
            device.run([array.tobytes() for array in frame], stop_after=step.index, runs=step.runs)
            plan, tensor = project.deployment.plan, step.node.output
            read = plan.dense(tensor, device.read(plan.offset(tensor), plan.extent(tensor)))
            assert read == values[tensor].tobytes()
    assert any(step.parts for step in project.deployment.steps) == (optimize == "balanced")
    assert list(outputs) == [array.tobytes() for array in program.outputs_for(frame)] == list(whole.outputs)
    assert len(counts) == slices.count > 1
    assert sum(counts) == pytest.approx(whole.total, rel=0.05)
    stated = max(s.cost for s in slices.segments if s.cost is not None)
    assert stated <= slices.most or slices.notes
    if slices.unit == "instructions":
        # What kernels state is off by so much for layers as small as these.
        assert stated / 2 < max(counts) < 2 * slices.most
    else:
        assert (slices.most, bool(slices.notes)) == (BOARD.clock_hz // 1000, True)


def test_lengths_that_are_none(tmp_path: Path) -> None:
    for wrong in (0, -5, "1 ms", "fast", "1.5", True, 2.5, "1h"):
        with pytest.raises(UsageError, match="no length of a slice"):
            slice_limit(wrong)
    assert slice_limit("1ms").most(BOARD) == BOARD.clock_hz // 1000
    assert slice_limit("250us").most(BOARD) == BOARD.clock_hz // 4000
    with pytest.raises(UsageError, match="needs a context"):
        tinyet.generate(small.program(), BOARD, tmp_path / "p", max_step=1000)
    with pytest.raises(UsageError, match="stops after every row by itself"):
        tinyet.generate(
            streamed.chain(DType.INT8), BOARD, tmp_path / "p", context=True, max_step=1000, input_rows=True
        )
    assert not (tmp_path / "p").exists()


def test_a_call_that_cannot_be_cut_is_named() -> None:
    deployment = deploy(small.program().graph, BOARD.target)
    (note,) = slices_of(deployment, BOARD, slice_limit(2000))[1].notes
    assert note.startswith("a slice longer than 2000: conv (net.py:11): conv2d by ")
    assert note.endswith(" instructions, in one call: its rows do not begin at whole words")


def test_a_model_without_slices_says_so(tmp_path: Path) -> None:
    require_emulator()
    plain = tinyet.generate(small.program(), BOARD, tmp_path / "p", kind="cmake", name="small")
    with open_device(BOARD, plain.firmware("qemu", tmp_path, compile_anew=True)) as device:
        data = [array.tobytes() for array in drawn(small.program())[0]]
        with pytest.raises(EmulatorError, match="does not know command 7"):
            device.steps(data, [1])
        assert device.run(data).outputs  # the line is as it was


PAGE = Path(__file__).parents[2] / "docs" / "integrating.md"
AROUND = """
#include <stdio.h>

static int fed, served;
void feed_watchdog(void) { fed++; }
void serve_radio(void) { served++; }
void halt(void) { printf("halted "); }

static uint8_t arena[KWS_ARENA_BYTES] TINYET_ALIGNED(KWS_ARENA_ALIGN);
static kws_context kws;

int main(void) {
  int8_t spectrogram[KWS_INPUT_0_COUNT], scores[KWS_OUTPUT_0_COUNT], again[KWS_OUTPUT_0_COUNT];
  for (uint32_t i = 0u; i < KWS_INPUT_0_COUNT; i++) {
    spectrogram[i] = (int8_t)((i * 37u) % 256u - 128u);
  }
  (void)kws_init(&kws, arena);
  at_start(&kws);
  once_an_hour();
  printf("%d ", (int)classify(&kws, spectrogram, scores));
  printf("%d %d ", fed == (int)KWS_NUM_SLICES, served == fed);
  memcpy(kws_input_0(&kws), spectrogram, KWS_INPUT_0_BYTES);
  tinyet_status status;
  do {
    status = kws_step(&kws);
    before_power_off(&kws);
    memset(arena, 0x5A, sizeof arena);
    memset(&kws, 0x5A, sizeof kws);
    after_power_on(&kws);
  } while (status == TINYET_MORE_STEPS);
  memcpy(again, kws_output_0(&kws), KWS_OUTPUT_0_BYTES);
  printf("%d\\n", memcmp(scores, again, sizeof scores));
  return 0;
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_what_the_page_shows(tmp_path: Path) -> None:
    """A watchdog that is fed, a sleep after every step, and the checks at start: the page's own code."""
    blocks = re.findall(r"<!-- steps: (\w+) -->\n```c\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert [name for name, _ in blocks] == ["watchdog", "sleep", "selftest"]
    program = small.program(hidden=16)
    deployment = deploy(program.graph, BOARD.target, (PORTABLE,))
    inputs = demonstration(program.inputs, None, None)
    golden = Golden(tuple(inputs), tuple(program.outputs_for(inputs)))
    deployment, slices = slices_of(deployment, BOARD, slice_limit(1))
    files = model_files(
        deployment, "kws", ["test"], program_hash=program.hash, context=True, golden=golden, slices=slices
    )
    files["main.c"] = "\n".join(text for _, text in blocks) + AROUND
    write_files(tmp_path, files)
    objects = objects_for_host(["gcc", *STRICT, *SANITIZE], sorted(tmp_path.glob("*.c")))
    subprocess.run(["gcc", *SANITIZE, *objects, "-o", tmp_path / "main"], check=True)
    assert (
        subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout == "0 1 1 0\n"
    )


# What FreeRTOS declares, as far as the page uses it: a task runs when it is told to, once.
FREERTOS = """
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
typedef uint32_t StackType_t;
typedef long BaseType_t;
typedef unsigned long UBaseType_t;
typedef void (*TaskFunction_t)(void *);
typedef struct { TaskFunction_t run; } StaticTask_t;
typedef StaticTask_t *TaskHandle_t;
#define pdTRUE 1
#define portMAX_DELAY UINT32_MAX
#define tskIDLE_PRIORITY 0u
TaskHandle_t xTaskCreateStatic(TaskFunction_t run, const char *name, uint32_t words, void *parameters,
                               UBaseType_t priority, StackType_t *stack, StaticTask_t *task);
uint32_t ulTaskNotifyTake(BaseType_t clear, uint32_t ticks);
BaseType_t xTaskNotifyGive(TaskHandle_t task);
"""
AROUND_TASK = """
#include <setjmp.h>

static jmp_buf end;
static int taken;
static uint8_t arena[KWS_ARENA_BYTES] TINYET_ALIGNED(KWS_ARENA_ALIGN);
TaskHandle_t xTaskCreateStatic(TaskFunction_t run, const char *name, uint32_t words, void *parameters,
                               UBaseType_t priority, StackType_t *stack, StaticTask_t *task) {
  (void)name, (void)parameters, (void)stack;
  task->run = run;
  printf("%d ", words * sizeof(StackType_t) >= KWS_STACK_BYTES && priority == 1u);
  return task;
}
uint32_t ulTaskNotifyTake(BaseType_t clear, uint32_t ticks) {
  if (taken++ != 0) {
    longjmp(end, 1);
  }
  return (uint32_t)clear & ticks;
}
BaseType_t xTaskNotifyGive(TaskHandle_t task) { return task == NULL ? 0 : 1; }

int main(void) {
  (void)kws_init(&instance, arena);
  waiting = start_model();
  if (setjmp(end) == 0) {
    waiting->run(NULL);
  }
  printf("%d\\n", (int)status);
  return 0;
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_the_pages_task(tmp_path: Path) -> None:
    """FreeRTOS itself is not here: the page's C is compiled against what it declares of it."""
    (block,) = re.findall(
        r"<!-- tasks: freertos -->\n```c\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
    )
    program = small.program()
    deployment = deploy(program.graph, BOARD.target, (PORTABLE,))
    files = model_files(deployment, "kws", ["test"], program_hash=program.hash, context=True, stack=240)
    files |= {"main.c": block + AROUND_TASK, "FreeRTOS.h": FREERTOS, "task.h": ""}
    write_files(tmp_path, files)
    objects = objects_for_host(["gcc", *STRICT, *SANITIZE], sorted(tmp_path.glob("*.c")))
    subprocess.run(["gcc", *SANITIZE, *objects, "-o", tmp_path / "main"], check=True)
    said = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    assert said == "1 0\n"
