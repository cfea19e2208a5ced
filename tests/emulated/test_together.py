# SPDX-License-Identifier: Apache-2.0
"""Several models in one project and one arena: what a schedule lets share, the proof of it, and the firmware."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import tinyet
from tests import small
from tests.cli.command import tinyet as command
from tests.emulated.test_sleep import filtering, following
from tests.emulated.test_states import remembering
from tests.ops.emulated import require_emulator
from tests.streamed import Net
from tinyet import assets
from tinyet.boards import all_boards
from tinyet.boards.cpus import HOST
from tinyet.deployment import Deployment, deploy
from tinyet.emit.kinds import Kind, kinds_for
from tinyet.errors import FitError, InternalError, UsageError
from tinyet.ir import DType, Graph
from tinyet.ops.add import Add
from tinyet.program import Program
from tinyet.project import Project
from tinyet.projects.together import TogetherProject, generate_together
from tinyet.together.arena import Shared, check, share
from tinyet.together.schedule import pairs_in_turn, parse

needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

NAMES = ["remembering", "following", "filtering", "small"]


@pytest.fixture(scope="module")
def apart() -> dict[str, Deployment]:
    """Each by itself."""
    programs = (remembering(), following(), filtering(), small.program())
    return {program.name: deploy(program.graph, HOST) for program in programs}


def giving() -> Program:
    """What it gives is of the type that it takes."""
    net = Net(DType.INT8, (1, 6, 6, 4))
    y = net.add(Add(), net.x, net.conv(net.x, 4), like=net.x)
    return Program("giving", Graph("giving", (net.x,), (y,), tuple(net.nodes)))


def taking() -> Program:
    net = Net(DType.INT8, (1, 6, 6, 4))
    y = net.conv(net.add(Add(), net.x, net.x, like=net.x), 8)
    return Program("taking", Graph("taking", (net.x,), (y,), tuple(net.nodes)))


# ---------------------------------------------------------------- schedules


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a, b, c", set()),
        ("a | b, c", {"ab"}),
        ("a | b | c", {"ab", "ac", "bc"}),
        ("a > b, c", {"ab"}),
        ("a(b | c)", {"bc"}),
        ("a | (b, c)", {"ab", "ac"}),
        ("a | b > c", {"ab", "ac", "bc"}),
        (" c|b(a) ", {"bc", "ac"}),
    ],
)
def test_who_never_runs_at_the_same_time(text: str, pairs: set[str]) -> None:
    assert pairs_in_turn(parse(text, ["a", "b", "c"])) == {frozenset(pair) for pair in pairs}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a | b", ["c is not named"]),
        ("a | b | c | a | d", ["d is no model of these", "a is named 2 times"]),
        ("a | | b", ["name is missing"]),
        ("a | b c", ["'c' is too much"]),
        ("a(b | c", ["bracket is not closed"]),
        ("a > (b, c)", ["single models"]),
        ("a & b", ["'& b' means nothing"]),
        ("(" * 40 + "a", ["too many brackets"]),
    ],
)
def test_schedules_that_are_none(text: str, said: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text, ["a", "b", "c"])
    assert all(part in caught.value.what for part in said), caught.value.what


# ---------------------------------------------------------------- one arena


def test_never_together_is_the_largest_and_all_states(apart: dict[str, Deployment]) -> None:
    found = share(parse(" | ".join(NAMES), NAMES), apart)
    pieces = found.pieces.values()
    states = sum(piece.kept_bytes for piece in pieces)
    assert found.arena_bytes == states + -(-max(piece.bytes for piece in pieces) // 16) * 16
    assert states > 0
    assert found.arena_bytes < found.apart_bytes


def test_what_may_run_at_any_time_shares_nothing(apart: dict[str, Deployment]) -> None:
    found = share(parse(None, NAMES), apart)
    places = sorted((p.start, p.start + p.bytes) for p in found.pieces.values())
    places += [(p.kept, p.kept + p.kept_bytes) for p in found.pieces.values() if p.kept_bytes]
    places.sort()
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(places))


def moved(shared: Shared, name: str, by: int, *, states: bool) -> Shared:
    """With the blocks of one model's states, or all its others, somewhere else."""
    each = shared.deployments[name]
    first = shared.pieces[name].start
    blocks = tuple(
        dataclasses.replace(b, offset=b.offset + by) if (b.offset < first) is states else b
        for b in each.plan.blocks
    )
    plan = dataclasses.replace(each.plan, blocks=blocks)
    changed = {**shared.deployments, name: dataclasses.replace(each, plan=plan)}
    return dataclasses.replace(shared, deployments=changed)


def test_the_proof_finds_what_is_wrong(apart: dict[str, Deployment]) -> None:
    """A model over another's states, one outside of the arena, and two at the same time in the same bytes."""
    found = share(parse("remembering | following | filtering, small", NAMES), apart)
    check(found)
    for wrong in (
        moved(found, "filtering", -320, states=False),
        moved(found, "filtering", 320, states=False),
        moved(found, "following", -64, states=True),
        dataclasses.replace(found, schedule=parse("remembering | following, filtering, small", NAMES)),
    ):
        with pytest.raises(InternalError):
            check(wrong)


def test_a_chain_hands_on_in_place() -> None:
    apart = {p.name: deploy(p.graph, HOST) for p in (giving(), taking())}
    found = share(parse("giving > taking", ["giving", "taking"]), apart)
    given, taken = (found.deployments[name] for name in ("giving", "taking"))
    assert given.plan.offset(given.graph.user_outputs[0]) == taken.plan.offset(taken.graph.user_inputs[0])
    assert found.arena_bytes < found.apart_bytes
    wrong = moved(found, "giving", -16, states=False)
    with pytest.raises(InternalError):
        check(wrong)


def test_chains_that_cannot_be(apart: dict[str, Deployment]) -> None:
    with pytest.raises(UsageError, match=r"small > following: the output head is int8\[1x5\]") as caught:
        share(parse("small > following > remembering, filtering", NAMES), apart)
    assert "following > remembering: the output" in caught.value.what


# ---------------------------------------------------------------- projects


def made(tmp_path: Path, schedule: str, *, context: bool = False, kind: Kind = "cmake") -> TogetherProject:
    programs = [remembering(), filtering(), giving(), taking()]
    generate_together(programs, "mps2_an386", tmp_path / "p", schedule=schedule, context=context, kind=kind)
    again = tinyet.open_project(tmp_path / "p")
    assert isinstance(again, TogetherProject)
    return again


SCHEDULE = "remembering | filtering | giving > taking"


@needs_compiler
@pytest.mark.parametrize("context", [False, True])
def test_on_the_host(context: bool, tmp_path: Path) -> None:
    """Static memory, and the caller's; kernels are there once; and a model that writes to another's states is found."""
    project = made(tmp_path, SCHEDULE, context=context)
    result = project.validate_each(on="host", max_samples=3)
    assert result.bit_exact
    assert list(result.results) == ["remembering", "filtering", "giving", "taking"]
    source = project.path / "lib/models/src/giving.c"
    text = source.read_text()
    arena = "ctx->arena" if context else "models_arena"
    assert f"const arena = {arena};" in text
    kept = sum(piece.kept_bytes for piece in project.shared.pieces.values())
    source.write_text(text.replace(f"const arena = {arena};", f"const arena = {arena} - {kept};"))
    spoilt = project.validate_each(on="host", max_samples=3)
    assert not spoilt.bit_exact
    assert any("remembering" in line for line in spoilt.differing)


@needs_compiler
def test_with_buffers_of_the_callers(tmp_path: Path) -> None:
    """They are behind the arena of all, and no part of it; a chain needs no place of its own."""
    programs = [remembering(), giving()]
    project = generate_together(
        programs,
        "mps2_an386",
        tmp_path / "p",
        schedule="remembering | giving",
        kind="cmake",
        buffers="caller",
    )
    assert project.validate_each(on="host", max_samples=3).bit_exact
    usual = generate_together(programs, "mps2_an386", tmp_path / "q", schedule="remembering | giving")
    assert project.shared.arena_bytes < usual.shared.arena_bytes
    with pytest.raises(UsageError, match="gives both the same buffer"):
        generate_together(
            [giving(), taking()], "mps2_an386", tmp_path / "r", schedule="giving > taking", buffers="caller"
        )


@pytest.mark.emulated
def test_on_a_board(tmp_path: Path) -> None:
    require_emulator()
    project = made(tmp_path, SCHEDULE)
    size = project.build()
    arenas = [s for s in size.largest("ram", len(size.symbols)) if s.name.endswith("_arena")]
    assert [(s.name, s.bytes) for s in arenas] == [("models_arena", project.shared.arena_bytes)]
    result = project.validate_each(on="qemu", max_samples=3)
    assert result.bit_exact
    assert result.to_json()["turns"] == 3
    for each in result.results.values():
        assert each.stack_bound is not None
        assert each.stack_bound.bytes is not None
        assert each.stack_bytes is not None
        assert each.stack_bytes <= each.stack_bound.bytes


@pytest.mark.parametrize("kind", ["arduino", "platformio", "zephyr", "cmake"])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("buffers", ["arena", "caller"])
def test_applications_of_every_kind(buffers: str, several: bool, kind: Kind, tmp_path: Path) -> None:
    """With contexts, and with buffers of their own and static memory: what stands in the projects' own files compiles
    where it needs no core's headers."""
    boards = {
        "arduino": "nano_33_ble",
        "platformio": "arduino_uno",
        "zephyr": "nrf52840_dk",
        "cmake": "mps2_an386",
    }
    names = [b.name for b in all_boards() if kind in kinds_for(b)]
    board = boards[kind] if boards[kind] in names else names[0]
    program, context = small.program(), buffers == "arena"
    project: Project = (
        generate_together(
            [program, giving()], board, tmp_path / "p", kind=kind, context=context, buffers=buffers
        )
        if several
        else tinyet.generate(program, board, tmp_path / "p", kind=kind, context=context, buffers=buffers)
    )
    texts = {
        p: p.read_text() for p in project.path.rglob("*") if p.suffix in (".c", ".cpp", ".ino", ".h", ".md")
    }
    for path, text in texts.items():
        for call in re.findall(r"small_(?:run|input_0|output_0)\(\)", text):
            pytest.fail(f"{path} calls {call} without an instance")
        if not context:
            assert not re.search(r"small_(?:in|out)put_0\(", text), path
    if kind == "zephyr" or shutil.which("gcc") is None:
        return  # its headers are Zephyr's own
    api = Path(__file__).parents[1] / "arduino_api"
    folders = {p.parent for p in texts if p.suffix == ".h"} | {api, assets.path("firmware") / "include"}
    folders |= {assets.path("firmware") / "platform", project.path / str(project.manifest["model_dir"])}
    strict = ["-fsyntax-only", "-Wall", "-Wextra", "-Werror", *(f"-I{p}" for p in sorted(folders))]
    sources = [p for p in texts if "_sample.h" in texts[p] and p.suffix in (".c", ".cpp", ".ino")]
    sources += [p for p in texts if p.name == "model_desc.c"]
    assert len(sources) >= 2
    for source in sources:
        language = (
            ["-x", "c", "-std=c11"] if source.suffix == ".c" else ["-x", "c++", "-include", "Arduino.h"]
        )
        subprocess.run(["gcc", *language, "-DTINYET_TRACE=1", *strict, str(source)], check=True, timeout=60)


def test_what_cannot_be_is_told(tmp_path: Path) -> None:
    one = small.program()
    with pytest.raises(UsageError, match="several models have the name small"):
        tinyet.generate([one, one], "mps2_an386", tmp_path / "p")
    with pytest.raises(UsageError, match="two programs or more"):
        tinyet.generate([one], "mps2_an386", tmp_path / "p")
    with pytest.raises(UsageError, match="called 'small', as one of its models"):
        tinyet.generate([one, giving()], "mps2_an386", tmp_path / "p", name="small")
    with pytest.raises(UsageError, match="takes no input_rows, archive"):
        tinyet.generate([one, giving()], "mps2_an386", tmp_path / "p", input_rows=True, archive=True)
    with pytest.raises(UsageError, match="a schedule is of several"):
        tinyet.generate(one, "mps2_an386", tmp_path / "p", schedule="small")
    with pytest.raises(FitError, match=r"RAM: arena \d+ .* of 2500; of the arena:"):
        tinyet.generate([one, filtering()], "mps2_an386", tmp_path / "p", max_ram=5000 - 2500)
    assert not (tmp_path / "p").exists()


@needs_compiler
def test_the_command_line_takes_several(tmp_path: Path) -> None:
    for program in (small.program(), giving()):
        program.save(tmp_path / f"{program.name}.tet")
    files = [str(tmp_path / f"{name}.tet") for name in ("small", "giving")]
    out = str(tmp_path / "p")
    say = ["generate", *files, "--board", "mps2_an386", "--kind", "cmake", "-o", out]
    told = command(*say, "--schedule", "small | giving")
    assert told.status == 0, told.err
    assert "schedule: small | giving; proved" in told.out
    assert "apart" in command("analyze", out).out
    proved = command(
        "validate", out, "--on", "host", "--max-samples", "2", "--json", str(tmp_path / "report.json")
    )
    assert proved.status == 0, proved.err
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["bit_exact"] is True
    assert report["turns"] == 2
    assert set(report["models"]) == {"small", "giving"}
    refused = command("generate", files[0], "net.py", "--board", "mps2_an386")
    assert refused.status != 0
