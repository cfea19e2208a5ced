# SPDX-License-Identifier: Apache-2.0
"""An ELF file holds the program, or what differs is named; nothing in flash is nobody's."""

from __future__ import annotations

import itertools
import json
import random
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests import small
from tests.cli.command import tinyet
from tinyet.auditing.audit import Audit, audit
from tinyet.auditing.flash import Flash
from tinyet.auditing.owners import Owner
from tinyet.errors import ToolchainError, UsageError
from tinyet.project import Project
from tinyet.projects.one import generate

pytestmark = pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None, reason="arm-none-eabi-gcc is not installed"
)
FLAGS = ("-mcpu=cortex-m4", "-mthumb", "-O2", "-g", "-ffunction-sections", "-fdata-sections")
MAIN = """
#include "small.h"
int main(void) { return (int)small_run(); }
void _exit(int status) { (void)status; for (;;) { } }
"""
# Six bytes without a symbol.
NOBODY = '.section .rodata.x, "a"\n.byte 1, 2, 3, 200, 201, 202\n'


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    program = small.program(size=8, channels=8, hidden=16)
    out = tmp_path_factory.mktemp("audit") / "p"
    # Kernels that layers share have structs of parameters; others are functions with constants in them.
    return generate(program, "mps2_an386", out, kind="cmake", name="small", optimize="size")


def linked(project: Project, *extra: Path, flags: tuple[str, ...] = FLAGS) -> Path:
    """The model's C files in a firmware of somebody's own."""
    where = project.path.parent
    main = where / "main.c"
    main.write_text(MAIN)
    source = project.path / "lib/small/src"
    elf = where / f"{'_'.join(e.stem for e in extra) or 'firmware'}{len(flags)}.elf"
    files = [*sorted(source.glob("*.c")), main, *extra]
    command: list[str | Path] = [
        "arm-none-eabi-gcc",
        "-Wl,--gc-sections",
        *flags,
        "--specs=nosys.specs",
        f"-I{source}",
    ]
    subprocess.run([*command, *files, f"-Wl,-Map={elf}.map", "-o", elf], check=True, capture_output=True)
    return elf


def audited(project: Project, elf: Path) -> Audit:
    """With the map that the linker has written beside it."""
    return audit(project, elf, link_map=f"{elf}.map")


@pytest.fixture(scope="module")
def firmware(project: Project) -> Path:
    return linked(project)


def test_all_weights_are_found_and_all_bytes_are_somebodys(project: Project, firmware: Path) -> None:
    found = audited(project, firmware)
    assert found.ok, (found.faults, found.unexplained)
    weights = [w for w in found.weights if w.name.endswith("_w")]
    assert [w.name for w in weights] == ["conv_w", "hidden_w", "head_w"]
    assert [w.read_back for w in weights] == [8 * 3 * 3 * 3, 16 * 4 * 4 * 8, 5 * 16]
    assert all(a.address is not None for a in found.arrays)
    assert found.parameters[0] == found.parameters[1] > 0
    assert found.bytes_of(Owner.WEIGHTS) == sum(a.bytes for a in found.arrays)
    # Spans cover each section of the image without gaps and overlaps.
    for part in Flash(firmware).parts:
        inside = sorted((s.start, s.end) for s in found.spans if part.start <= s.start < part.end)
        assert inside[0][0] == part.start
        assert inside[-1][1] == part.end
        assert all(a[1] == b[0] for a, b in itertools.pairwise(inside))


@pytest.mark.parametrize("more", [("-flto",), ("-Os", "-fno-data-sections")], ids=" ".join)
def test_other_builds(project: Project, more: tuple[str, ...]) -> None:
    found = audited(project, linked(project, flags=(*FLAGS, *more)))
    assert found.ok, (found.faults, found.unexplained)


def flipped(firmware: Path, address: int, bit: int) -> Path:
    """The firmware with one bit of its flash turned over."""
    data = bytearray(firmware.read_bytes())
    part = next(p for p in Flash(firmware).parts if p.start <= address < p.end)
    data[data.find(part.data) + address - part.start] ^= 1 << bit
    to = firmware.with_name("flipped.elf")
    to.write_bytes(data)
    return to


def test_each_flipped_weight_is_named(project: Project, firmware: Path) -> None:
    """By its layer, its place in the tensor and its channel: the one whose value differs."""
    sound = audit(project, firmware)
    places = {a.name: a for a in sound.arrays}
    rng = random.Random(8)
    for name, tensor, layer in (("conv_weights", "conv_w", "conv"), ("head_weights", "hidden_w", "head")):
        for _ in range(4):
            array = places[name]
            assert array.address is not None
            at = rng.randrange(array.bytes)
            found = audit(project, flipped(firmware, array.address + at, rng.randrange(8)))
            first = found.faults[0]
            assert f"{name} + {at} ({array.address + at:#x})" in first
            assert first.startswith(f"{layer} (net.py:"), first
            named = [fault for fault in found.faults if "is not" in fault]
            if named:  # a weight itself, not what is packed beside it
                weight = np.array(project.program.graph.nodes[0].inputs[1].array)  # type: ignore[union-attr]
                assert f"{tensor}[" in named[0]
                assert ", channel " in named[0]
                if tensor == "conv_w":
                    index = json.loads("[" + named[0].split("[")[1].split("]")[0] + "]")
                    assert f"is not {weight[tuple(index)]} in" in named[0]


def test_each_flipped_parameter_is_named(project: Project, firmware: Path) -> None:
    sound = audit(project, firmware)
    structs = [s for s in sound.spans if s.owner is Owner.PARAMETERS]
    assert structs
    seen = 0
    for span in structs:
        for at in range(0, span.bytes, 4):
            found = audit(project, flipped(firmware, span.start + at, 1))
            assert len(found.faults) == 1, (span.name, at)
            assert f"{span.name}." in found.faults[0]
            seen += 1
            if seen % 6 == 0:
                break
    assert seen >= 6


def test_bytes_without_an_owner(project: Project) -> None:
    source = project.path.parent / "tinyet_startup.S"
    source.write_text(NOBODY)
    stranger = source.with_suffix(".o")
    subprocess.run(["arm-none-eabi-gcc", *FLAGS[:2], "-c", source, "-o", stranger], check=True)
    elf = linked(project, stranger, flags=(*FLAGS, "-Wl,--no-gc-sections"))
    found = audited(project, elf)
    assert not found.ok
    assert not found.faults
    mine = bytes([1, 2, 3, 200, 201, 202])
    assert [Flash(elf).bytes_at(s.start, s.start + 6) for s in found.unexplained] == [mine]
    # Without a map those of libraries have no owner, either.
    assert len(audit(project, elf).unexplained) > 1


def test_another_program_is_refused_or_found_out(project: Project, firmware: Path, tmp_path: Path) -> None:
    other = small.program(size=8, channels=8, hidden=24)
    with pytest.raises(UsageError, match="is not the one that the project was generated from"):
        audit(project, firmware, program=other)
    elsewhere = generate(other, "mps2_an386", tmp_path / "other", kind="model", name="small")
    found: Audit = audit(elsewhere, firmware, program=other)
    assert any("hidden" in fault for fault in found.faults)
    empty = tmp_path / "empty.elf"
    empty.write_bytes(b"")
    with pytest.raises(ToolchainError, match="cannot be read"):
        audit(project, empty)


def test_the_command(project: Project, firmware: Path) -> None:
    ended = tinyet("audit", project.path, "--elf", firmware, "--link-map", f"{firmware}.map", "--json", "-")
    assert ended.status == 0
    report = json.loads(ended.out)
    assert report == audited(project, firmware).to_json()
    page = (Path(__file__).parents[2] / "docs/json.md").read_text(encoding="utf-8")
    section = page.split("## `tinyet audit`")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(report)
    array = next(a for a in audit(project, firmware).arrays if a.name == "conv_weights")
    assert array.address is not None
    ended = tinyet("audit", project.path, "--elf", flipped(firmware, array.address + 64, 3))
    assert ended.status == 1
    assert "conv_w[" in ended.err
