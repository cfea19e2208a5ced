# SPDX-License-Identifier: Apache-2.0
"""Models whose arena and weights lie in other memories of a board, linked and run: the ELF file's symbols are in these
memories, and the answers are the host reference's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests import small
from tests.emulated.test_states import remembering
from tests.ops.emulated import require_emulator
from tests.streamed import everything, validated
from tinyet.boards import load_board
from tinyet.budget.placing import arena_traffic
from tinyet.build.gcc import build_firmware
from tinyet.build.size import Size, measure
from tinyet.cycles.inference import cycle_model
from tinyet.data import pattern_inputs
from tinyet.device.device import open_device
from tinyet.emit.placed import check_placed
from tinyet.emit.symbols import symbols_of
from tinyet.errors import ProjectError
from tinyet.ir import DType
from tinyet.program import Program
from tinyet.project import Project
from tinyet.projects.one import generate
from tinyet.validation import as_bytes

pytestmark = pytest.mark.emulated

# Each board once, and one of them with all of the compiler's ways to move things.
CASES = [
    ("mps2_an386", {"arena": "psram", "weights": "ram"}, ("-O2",)),
    ("mps2_an386", {"arena": "psram", "weights": "ram"}, ("-Os",)),
    ("mps2_an386", {"arena": "psram", "weights": "ram"}, ("-O2", "-flto")),
    ("mps2_an500", {"conv": "psram", "head": "ram"}, ("-Os", "-flto")),
    ("mps2_an505", {"arena": "psram", "head": "psram"}, ("-O2",)),
    ("mps2_an386", {"conv": "arena", "head": "arena"}, ("-O2", "-flto")),
    ("mps2_an500", {"arena": "psram", "weights": "arena"}, ("-O2",)),
    ("mps3_an547", {"arena": "dtcm", "weights": "dtcm"}, ("-O2",)),
]


def _built(project: Project, where: Path, flags: tuple[str, ...]) -> Path:
    sources = [*sorted(project._model_dir.rglob("*.c")), project.path / str(project.manifest["desc"])]
    return build_firmware(project.board, sources, [project._model_dir], where, flags=flags)


@pytest.mark.parametrize(
    ("board", "place", "flags"), CASES, ids=lambda v: v if isinstance(v, str) else "".join(v)
)
def test_placed_where_asked(
    board: str, place: dict[str, str], flags: tuple[str, ...], tmp_path: Path
) -> None:
    require_emulator(board)
    program = small.program()
    project = generate(program, board, tmp_path / "project", kind="cmake", name="net", place=place)
    elf = _built(project, tmp_path / "built", flags)
    size = measure(elf)
    ranges = {m.name: (m.origin, m.end) for m in (project.board.ram, *project.board.extra_memories)}
    expected = symbols_of(project.deployment, "net").placed
    wanted = {place.get("arena"), *(place.get(n, place.get("weights")) for n in ("conv", "head"))}
    # Copies ahead of a layer are bytes of the arena, and no objects.
    assert {memory.name for memory in expected.values()} == wanted - {None, "arena"}
    found = {symbol.name.partition(".")[0]: symbol for symbol in size.symbols}
    for name, memory in expected.items():
        start, end = ranges[memory.name]
        assert start <= found[name].address, name
        assert found[name].address + found[name].bytes <= end, name
    check_placed(project.deployment, "net", size, str(elf))
    inputs = pattern_inputs(program.inputs)
    with open_device(project.board, elf, "qemu", timeout=30) as device:
        # Twice: the copies are made before the first run only.
        runs = [device.run(as_bytes(inputs)) for _ in range(2)]
    outputs = [np.ascontiguousarray(o).tobytes() for o in program.outputs_for(inputs)]
    assert [list(run.outputs) for run in runs] == [outputs, outputs]


@pytest.mark.parametrize(
    ("program", "fast", "most"),
    [(small.program(), 200, None), (everything(DType.INT8), 1504, 5000), (remembering(), 208, None)],
    ids=["layers", "rows", "states"],
)
def test_an_arena_in_two_memories(program: Program, fast: int, most: int | None, tmp_path: Path) -> None:
    """Both arrays lie where they should, a run is the reference's, and QEMU counts accesses of both."""
    require_emulator("mps2_an386")
    own = tmp_path / "own.toml"
    own.write_text(load_board_text("mps2_an386").replace("bytes = 0x01000000", f"bytes = {fast}"))
    project = generate(
        program, own, tmp_path / "net", kind="cmake", name="net", place={"arena": "psram+ram"}, max_ram=most
    )
    plan = project.deployment.plan
    assert plan.second_from is not None
    assert bool(plan.fusion_groups) is (most is not None)
    elf = _built(project, tmp_path / "built", ("-O2",))
    size = measure(elf)
    assert {n: m.name for n, m in symbols_of(project.deployment, "net").placed.items()} == {
        "net_arena": "psram",
        "net_arena_2": "ram",
    }
    check_placed(project.deployment, "net", size, str(elf))
    found = {symbol.name: symbol.bytes for symbol in size.symbols}
    assert (found["net_arena"], found["net_arena_2"]) == (
        plan.second_from,
        plan.arena_bytes - plan.second_from,
    )
    assert validated(program, project.deployment, elf, "qemu", project.board).bit_exact
    if program.graph.states:
        return
    (tmp_path / "counted").mkdir()
    memories = (project.board.ram, *project.board.extra_memories)
    inputs = [as_bytes(pattern_inputs(program.inputs))]
    counted = cycle_model(project.board, tmp_path).estimate(
        elf, inputs, tmp_path / "counted", timeout=30, memories=memories
    )
    first, second = arena_traffic(project.deployment)
    # Kernels read values more than once; nothing else lies in the further memory.
    assert counted.accesses["psram"].read_bytes >= first.read > 0
    assert counted.accesses["psram"].written_bytes >= first.written > 0
    assert counted.accesses["ram"].read_bytes >= second.read > 0


def test_a_linker_script_of_another_mind_is_found(tmp_path: Path) -> None:
    """The build looks at the addresses: a section that the script has put elsewhere is an error."""
    require_emulator("mps2_an386")
    project = generate(
        small.program(), "mps2_an386", tmp_path / "net", kind="cmake", name="net", place={"arena": "psram"}
    )
    script = next((tmp_path / "net").rglob("*.ld"))
    script.write_text(script.read_text().replace("> PSRAM", "> RAM"))
    with pytest.raises(ProjectError, match=r"net_arena lies at 0x2000\w+ to 0x2000\w+, outside of psram"):
        project.build()


def test_constants_in_a_flash_of_their_own(tmp_path: Path) -> None:
    """A memory that is read only: no copy is made, and the linker puts the array itself there."""
    require_emulator("mps2_an386")
    text = load_board_text("mps2_an386").replace(
        "[memory.psram]", "[memory.psram]\nread_only = true\nread_waits = 9"
    )
    own = tmp_path / "own.toml"
    own.write_text(text)
    program = small.program()
    project = generate(
        program, own, tmp_path / "net", kind="cmake", name="net", place={"weights": "psram"}, selftest=True
    )
    elf = _built(project, tmp_path / "built", ("-O2",))
    size: Size = measure(elf)
    there = {s.name for s in size.symbols if s.section.name == ".tinyet.psram"}
    assert there == {"conv_weights", "head_weights"}
    check_placed(project.deployment, "net", size, str(elf))
    inputs = pattern_inputs(program.inputs)
    with open_device(project.board, elf, "qemu", timeout=30) as device:
        run = device.run(as_bytes(inputs))
    assert list(run.outputs) == [np.ascontiguousarray(o).tobytes() for o in program.outputs_for(inputs)]
    # QEMU counts who is read: all weights there at least once, nothing written, and the arena in the RAM.
    (tmp_path / "counted").mkdir()
    memories = (project.board.ram, *project.board.extra_memories)
    model = cycle_model(project.board, tmp_path)
    found = model.estimate(elf, [as_bytes(inputs)], tmp_path / "counted", timeout=30, memories=memories)
    weights = sum(s.bytes for s in size.symbols if s.section.name == ".tinyet.psram")
    assert found.accesses["psram"].read_bytes >= weights
    assert found.accesses["psram"].writes == 0
    assert found.accesses["ram"].writes > 0


def load_board_text(name: str) -> str:
    from tinyet import assets

    assert load_board(name).name == name
    return (assets.path("boards") / f"{name}.toml").read_text()
