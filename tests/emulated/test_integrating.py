# SPDX-License-Identifier: Apache-2.0
"""docs/integrating.md: its C, compiled and run as it stands there."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from tests import small
from tests.emulated.test_sleep import SANITIZE, STRICT
from tests.emulated.test_together import giving
from tests.ops.emulated import require_emulator
from tests.ops.objects import compiled_object
from tinyet.boards import load_board
from tinyet.build.gcc import build_firmware
from tinyet.device import qemu
from tinyet.ir import Array
from tinyet.program import Program
from tinyet.projects import generate
from tinyet.reference import Session

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

PAGE = Path(__file__).parents[2] / "docs" / "integrating.md"
BLOCK = re.compile(r"<!-- integrate: (\w+) -->\n```c\n(.*?)```", re.DOTALL)
BLOCKS = dict(BLOCK.findall(PAGE.read_text(encoding="utf-8")))

# What a page's functions are called by. Each prints a line: what it is, and the scores.
OF_KWS = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

@BLOCKS@

static const int8_t windows[2][KWS_INPUT_0_COUNT] = {@WINDOWS@};

static void tell(const char *what, tinyet_status status, const int8_t *scores) {
  printf("%s: %d", what, (int)status);
  for (uint32_t i = 0u; i < KWS_OUTPUT_0_COUNT; i++) {
    printf(" %d", scores[i]);
  }
  printf("\\n");
}

static listener listeners[2];
static int8_t heard_by[2][KWS_OUTPUT_0_COUNT];
static tinyet_status ended[2];

static void *thread(void *argument) {
  const uint32_t which = *(const uint32_t *)argument;
  ended[which] = make(&listeners[which]);
  for (uint32_t i = 0u; i < 200u && ended[which] == TINYET_OK; i++) {
    ended[which] = listen(&listeners[which], windows[which], heard_by[which]);
  }
  return NULL;
}

int main(void) {
  static kws_context kws;
  static uint32_t numbers[2] = {0u, 1u};
  int8_t scores[KWS_OUTPUT_0_COUNT];
@RUN@
  for (uint32_t which = 0u; which < 2u; which++) {
    tell("threads", ended[which], heard_by[which]);
  }
  tinyet_status status = classify_once(windows[0], scores);
  tell("heap", status, scores);
  status = classify(&kws, windows[1], scores);
  tell("section", status, scores);
  printf("done\\n");
  fflush(stdout);
  return 0;
}
"""
THREADS = """
  pthread_t threads[2];
  for (uint32_t which = 0u; which < 2u; which++) {
    if (pthread_create(&threads[which], NULL, thread, &numbers[which]) != 0) {
      return 1;
    }
  }
  for (uint32_t which = 0u; which < 2u; which++) {
    (void)pthread_join(threads[which], NULL);
  }
"""
IN_TURN = """
  for (uint32_t which = 0u; which < 2u; which++) {
    (void)thread(&numbers[which]);
  }
"""
OF_PLACED = """
#include <stdio.h>
#include <string.h>

@BLOCKS@

static const int8_t windows[2][KWS_INPUT_0_COUNT] = {@WINDOWS@};

int main(void) {
  int8_t scores[KWS_OUTPUT_0_COUNT];
  printf("%d", (int)at_start());
  for (uint32_t turn = 0u; turn < 2u; turn++) {
    printf(" %d", (int)classify_placed(windows[turn], scores));
    for (uint32_t i = 0u; i < KWS_OUTPUT_0_COUNT; i++) {
      printf(" %d", scores[i]);
    }
  }
  printf("\\ndone\\n");
  fflush(stdout);
  return 0;
}
"""
OF_BUFFERS = """
#include <stdio.h>
#include <string.h>

@BLOCKS@

static const int8_t windows[2][KWS_INPUT_0_COUNT] = {@WINDOWS@};

int main(void) {
  int8_t scores[(KWS_OUTPUT_0_COUNT + 3u) / 4u * 4u] TINYET_ALIGNED(KWS_OUTPUT_0_ALIGN);
  for (uint32_t turn = 0u; turn < 2u; turn++) {
    memcpy(halves[turn], windows[turn], sizeof windows[turn]);
    printf(" %d", (int)classify_half(turn, scores));
    for (uint32_t i = 0u; i < KWS_OUTPUT_0_COUNT; i++) {
      printf(" %d", scores[i]);
    }
  }
  printf("\\ndone\\n");
  fflush(stdout);
  return 0;
}
"""
OF_BOTH = """
#include <stdio.h>
#include <string.h>

@BLOCKS@

static const int8_t windows[@COUNT@][KWS_INPUT_0_COUNT] = {@WINDOWS@};
static const int8_t images[@COUNT@][PERSON_INPUT_0_COUNT] = {@IMAGES@};

int main(void) {
  for (uint32_t i = 0u; i < @COUNT@u; i++) {
    printf("%d ", heard(windows[i], images[i]));
  }
  printf("\\ndone\\n");
  fflush(stdout);
  return 0;
}
"""


def kws() -> Program:
    return Program("kws", small.graph())


def person() -> Program:
    return Program("person", giving().graph)


def drawn(program: Program, count: int) -> list[Array]:
    rng = np.random.default_rng(6)
    return [rng.integers(-128, 128, program.inputs[0].shape).astype(np.int8) for _ in range(count)]


def rows(arrays: list[Array]) -> str:
    return ", ".join("{" + ", ".join(map(str, array.ravel())) + "}" for array in arrays)


def scores(program: Program, window: Array) -> str:
    return " ".join(map(str, Session(program.graph).outputs([window])[0].ravel()))


def files_of(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.c"))


def run_here(folder: Path, *flags: str) -> list[str]:
    compiler = ["gcc", *STRICT, *SANITIZE, *flags, f"-I{folder}"]
    objects = [compiled_object(compiler, source) for source in files_of(folder)]
    subprocess.run(["gcc", *SANITIZE, *flags, *objects, "-lm", "-o", folder / "main"], check=True)
    return subprocess.run([folder / "main"], capture_output=True, text=True, check=True).stdout.splitlines()


def run_on_a_board(folder: Path) -> list[str]:
    board = load_board("mps2_an386")
    elf = build_firmware(board, files_of(folder), [folder], folder / "build", harness=False)
    link = qemu.start(board, elf)
    try:
        deadline, text = time.monotonic() + 30, b""
        while b"done" not in text:
            text += link.read(deadline)
    finally:
        link.close()
    return text.decode().splitlines()


def one_model(folder: Path, run: str, includes: str = "") -> list[str]:
    """Write the page's functions for one model; the lines that they have to print."""
    windows = drawn(kws(), 2)
    generate(kws(), "mps2_an386", folder, kind="model", context=True)
    blocks = includes + "\n".join(BLOCKS[name] for name in ("threads", "heap", "section"))
    text = OF_KWS.replace("@BLOCKS@", blocks).replace("@WINDOWS@", rows(windows)).replace("@RUN@", run)
    (folder / "main.c").write_text(text)
    first, second = (f"0 {scores(kws(), window)}" for window in windows)
    return [f"threads: {first}", f"threads: {second}", f"heap: {first}", f"section: {second}", "done"]


def two_models(folder: Path) -> list[str]:
    count = 12
    windows, images = drawn(kws(), count), drawn(person(), count)
    generate([kws(), person()], "mps2_an386", folder, kind="model", name="sentry", schedule="kws | person")
    text = OF_BOTH.replace("@BLOCKS@", BLOCKS["cascade"]).replace("@COUNT@", str(count))
    (folder / "main.c").write_text(text.replace("@WINDOWS@", rows(windows)).replace("@IMAGES@", rows(images)))
    said = [
        int(
            Session(kws().graph).outputs([window])[0].ravel()[0] >= 0
            and Session(person().graph).outputs([image])[0].ravel()[0] > 0
        )
        for window, image in zip(windows, images, strict=True)
    ]
    assert set(said) == {0, 1}
    return [" ".join(map(str, said)), "done"]


def placed_model(folder: Path) -> list[str]:
    """In a memory beside the RAM, with copies of the weights in the RAM."""
    windows, place = drawn(kws(), 2), {"arena": "psram", "weights": "ram"}
    generate(kws(), "mps2_an386", folder, kind="model", place=place)
    text = OF_PLACED.replace("@BLOCKS@", BLOCKS["placed"]).replace("@WINDOWS@", rows(windows))
    (folder / "main.c").write_text(text)
    return [" ".join(["0", *(f"0 {scores(kws(), window)}" for window in windows)]), "done"]


def model_with_buffers(folder: Path) -> list[str]:
    windows = drawn(kws(), 2)
    generate(kws(), "mps2_an386", folder, kind="model", buffers="caller")
    text = OF_BUFFERS.replace("@BLOCKS@", BLOCKS["buffers"]).replace("@WINDOWS@", rows(windows))
    (folder / "main.c").write_text(text)
    return ["".join(f" 0 {scores(kws(), window)}" for window in windows), "done"]


def test_the_page_has_these_questions() -> None:
    assert set(BLOCKS) == {"threads", "heap", "section", "buffers", "placed", "cascade"}


def test_a_placed_model_here(tmp_path: Path) -> None:
    wanted = placed_model(tmp_path)
    assert run_here(tmp_path) == wanted


def test_buffers_here(tmp_path: Path) -> None:
    wanted = model_with_buffers(tmp_path)
    assert run_here(tmp_path) == wanted


def test_one_model_here(tmp_path: Path) -> None:
    """Two threads at the same time, of one program."""
    wanted = one_model(tmp_path, THREADS, "#include <pthread.h>\n")
    assert [line.rstrip() for line in run_here(tmp_path, "-pthread")] == wanted


def test_two_models_here(tmp_path: Path) -> None:
    wanted = two_models(tmp_path)
    assert [line.rstrip() for line in run_here(tmp_path)] == wanted


@pytest.mark.emulated
@pytest.mark.parametrize("what", ["one", "two", "placed"])
def test_on_a_board(what: str, tmp_path: Path) -> None:
    require_emulator()
    made = {"one": lambda to: one_model(to, IN_TURN), "two": two_models, "placed": placed_model}
    wanted = made[what](tmp_path)
    assert [line.rstrip() for line in run_on_a_board(tmp_path)] == wanted
