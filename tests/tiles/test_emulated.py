# SPDX-License-Identifier: Apache-2.0
"""Printed tiles on an emulated Cortex-M4: the same bytes as their references in C, the registers as they were, the
instructions and cycles that they say; one firmware for all tiles."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.calls import board
from tests.calls.board import Image
from tests.calls.emulated import skip_missing
from tests.tiles import harness
from tests.tiles.harness import c_array
from tests.tiles.samples import PRINTED, Sample, sample
from tinyet.cycles.code import Code, read_code
from tinyet.cycles.estimate import Estimator
from tinyet.cycles.plugin import build_plugin
from tinyet.cycles.profile import Profiler
from tinyet.device.device import open_device
from tinyet.tiles.core import ARMV7E_M
from tinyet.tiles.function import Function, function
from tinyet.tiles.printer import files, shape_literal, types_of
from tinyet.tiles.tile import Tile
from tinyet.timing.cores import CORES
from tinyet.timing.instruction import Instruction
from tinyet.timing.model import Model
from tinyet.timing.work import Work

pytestmark = pytest.mark.emulated

CORE = CORES["cortex-m4"]
TRACE_PAGE = 1024
"""Bytes behind which the emulator ends a block of code: loads on both sides of such an end overlap, and are counted as
if they did not."""
TRACE_INSTRUCTIONS = 90
"""So many are in a block of code at least where it ends because its translation would be too long."""

TEXT = """
%(includes)s

%(arrays)s

typedef struct {
  tinyet_tile_function_dsp tile;
  const int32_t *weights;
  const uint32_t *pixels;
  int32_t output_bytes;
} entry;

%(called)s
static const entry entries[] = {{nothing, NULL, NULL, 0}, %(entries)s};

static int8_t outputs[%(count)d][4352], wanted[sizeof outputs[0]];

static tinyet_status run(void) {
  memset(outputs, 0x5a, sizeof outputs);
  for (uint32_t i = 0; i < %(count)du; i++) {
    const entry *const at = &entries[i];
    int8_t *const out = outputs[i] + 8;
    TINYET_LAYER_BEGIN(i);
    wrong[i] = guarded(at->weights, at->pixels, out, out + at->output_bytes, at->tile);
    TINYET_LAYER_END(i);
  }
  for (uint32_t i = 1; i < %(count)du; i++) {
    const entry *const at = &entries[i];
    int8_t *const out = wanted + 8;
    memset(wanted, 0x5a, sizeof wanted);
%(references)s
    wrong[i] |= memcmp(wanted, outputs[i], sizeof wanted) != 0 ? 2u : 0u;
  }
  return TINYET_OK;
}
"""


def model(samples: Sequence[Sample]) -> str:
    """Layer 0 calls an empty function, layer i + 1 tile i. The output: a word for each, 0 where all is right."""
    arrays, entries, references = [], [], []
    for i, ((tile, page), drawn) in enumerate(zip(PRINTED, samples, strict=True), 1):
        arrays.append(c_array("int32_t", f"weights_{i}", drawn.stream))
        arrays.append(c_array("uint32_t", f"pixels_{i}", drawn.inputs))
        size, types = drawn.channels * tile.bits // 8, types_of(tile)
        entries.append(f"{{{page.named(tile.name)}, weights_{i}, pixels_{i}, {size}}}")
        references.append(
            [
                f"const tinyet_tile{types}_shape_dsp shape = {shape_literal(tile)};",
                f"tinyet_tile{types}_dsp(at->weights, at->pixels, out, out + at->output_bytes, shape);",
            ]
        )
    text = TEXT % {
        "includes": "\n".join(f'#include "{page.named(tile.name)}.h"' for tile, page in PRINTED),
        "arrays": "\n".join(arrays),
        "entries": ", ".join(entries),
        "called": harness.called(
            "tinyet_tile_function_dsp", "const int32_t *w, const uint32_t *x, void *o, const void *e"
        ),
        "count": len(PRINTED) + 1,
        "references": harness.references(references),
    }
    return harness.model("tiles", len(PRINTED) + 1, text)


@dataclass(frozen=True)
class Built:
    image: Image
    elf: Path
    code: Code
    samples: tuple[Sample, ...]


@pytest.fixture(scope="module", params=[board.M4, board.M4_CLANG], ids=str)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    image: Image = request.param
    skip_missing([image])
    where = tmp_path_factory.mktemp("tiles")
    rng = np.random.default_rng(5)
    samples = tuple(sample(tile, rng) for tile, _ in PRINTED)
    elf = harness.built(image, where, itertools.starmap(files, PRINTED), model(samples))
    return Built(image, elf, read_code(elf), samples)


def test_outputs_registers_and_instructions(built: Built) -> None:
    with open_device(built.image.board, built.elf, "qemu") as device:
        result = device.run([bytes(4)])
    stated = {
        page.named(t.name): function(t, page).work(CORE, drawn.channels).instructions
        for (t, page), drawn in zip(PRINTED, built.samples, strict=True)
    }
    harness.assert_as_stated(result, stated)


def test_decoded_code_is_what_was_described(built: Built) -> None:
    """Instruction by instruction; so any model of cycles says the same of both."""
    for tile, page in PRINTED:
        made, name = function(tile, page), page.named(tile.name)
        parts = [made.entry, *(part for group in made.groups for part in group), made.leave]
        placed = [each for part in parts for each in part]
        harness.assert_described(built.code, name, placed, page, made.code_bytes)


def test_cycles(built: Built, tmp_path: Path) -> None:
    """What `validate --estimate` would say of each call, on each core that runs this code."""
    plugin = build_plugin(built.image.board, tmp_path)
    with Profiler(
        built.image.board, built.elf, built.code, plugin, tmp_path, None, timeout=120.0
    ) as profiler:
        empty, run = profiler.empty, profiler.run([bytes(4)])
    for core in ARMV7E_M.cores:
        model = CORES[core]
        layers, _ = Estimator(model, built.code, None).mean(empty, [run])
        compared = 0
        for (tile, page), drawn, layer in zip(PRINTED, built.samples, layers[1:], strict=True):
            if core not in page.cores:
                continue
            compared += compare(model, built, function(tile, page), drawn.channels, layers[0], layer)
        assert compared >= 4, "tiles whose code crosses no such end are exact"


def compare(
    model: Model, built: Built, made: Function[Tile], channels: int, nothing: Work, layer: Work
) -> bool:
    """Whether a call has no end of a block of the emulator in it. nothing: a call of the empty function."""
    tile, name = made.tile, made.page.named(made.tile.name)
    said = made.work(model, channels)
    # BX of the empty function: a cycle, and its refill.
    measured = layer.cycles - nothing.cycles + 1 + model.refill(Instruction("branch_register", 2))
    start = built.code.functions[name].start
    ends = (start + made.code_bytes - 1) // TRACE_PAGE - start // TRACE_PAGE
    ends += made.code_bytes // ARMV7E_M.instruction_bytes // TRACE_INSTRUCTIONS
    turns = channels // tile.channels * max(tile.turns, 1)
    # An end is passed with each turn, and once more where it lies in what leads into the loop or out of it. Behind it
    # the first turn of a loop shares its branch with the others, which may then go where it seldom goes.
    missed = model.mispredicted(Instruction("branch", 4, conditional=True)) if ends else 0
    assert 0 <= measured - said.cycles <= (ends + missed) * (turns + 1), (model.title, name)
    assert (layer.loads, layer.stores, layer.multiplies) == (
        said.loads + nothing.loads,
        said.stores + nothing.stores,
        said.multiplies + nothing.multiplies,
    )
    return not ends
