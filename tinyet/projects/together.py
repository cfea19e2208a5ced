# SPDX-License-Identifier: Apache-2.0
"""A generated project of several models on disk: made from programs and a schedule, built, and validated."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from tinyet.boards import Board, file_of, load_board
from tinyet.budget.fit import Contributor, FitRequest, Limits, fitted, limits_given, objective_of
from tinyet.budget.room import room_of
from tinyet.build.builders import BUILDERS
from tinyet.build.tree import write_project
from tinyet.custom import CustomAttrs
from tinyet.data import Samples, demonstration, pattern_inputs
from tinyet.delegates import Delegates, delegates_or_default
from tinyet.deployment import Deployment
from tinyet.device.device import Device, open_device
from tinyet.emit.constants import Common, common_of
from tinyet.emit.facts import facts_of
from tinyet.emit.kinds import PROJECT_KINDS
from tinyet.emit.project import Kind, Options, check_kind, is_bare, project_files
from tinyet.emit.together import Source, hash_of, readme_of, together_facts, together_sources
from tinyet.errors import FitError, ProjectError, UsageError, bullet_list
from tinyet.errors.arguments import instance_given, path_given, text_given, whole_given
from tinyet.files.model_name import check_name
from tinyet.ir import Array, DType, Graph, Tensor
from tinyet.messages.stages import stage
from tinyet.mismatch.locate import from_bytes, same
from tinyet.program import Program, load
from tinyet.project import Project
from tinyet.projects.parameters import SharedParameter, shared_parameters
from tinyet.reference import Session
from tinyet.stack.use import StackUse, inference_bound, stack_of
from tinyet.together.arena import Shared, share
from tinyet.together.schedule import Apart, Model, Part, chains, names_of, parse
from tinyet.validation import ValidationResult, as_bytes, validate

_TURNS = 8
"""Rounds in which all models run one after another, at most."""


def generate_together(
    programs: Sequence[Program],
    board: str | Path | Board,
    out: str | Path,
    *,
    schedule: str | None = None,
    kind: Kind = "platformio",
    name: str | None = None,
    buffers: str = "arena",
    context: bool = False,
    delegates: Delegates | None = None,
    require_delegate: bool = False,
    optimize: str = "balanced",
    max_ram: int | None = None,
    max_flash: int | None = None,
    stack: int | None = None,
) -> TogetherProject:
    """Write one project of several models; arguments as for `generate`.

    schedule: which of them never run at the same time (`tinyet/together/schedule.py`); name: of the project.
    Raises UsageError for models of one name, or a schedule that is not of these; FitError when together they do not
    fit; and what `generate` raises for one of them.
    """
    given_names = _programs(programs)
    sized = [model for model, program in given_names.items() if program.size is not None]
    if sized:
        raise UsageError(
            f"the size of {', '.join(sized)} is known at run time: such a model shares no arena yet",
            hint="generate it by itself, or compile it for one size",
        )
    part = parse(schedule, list(given_names))
    # The application runs them in the schedule's order, in which a chain's values are handed on.
    by_name = {model: given_names[model] for model in names_of(part)}
    place = path_given(out, "out is the project's directory")
    project = check_name("models" if name is None else text_given(name, "name", "of the project"))
    if {project, f"{project}_arena", f"{project}_constants"} & by_name.keys():
        raise UsageError(
            f"the project is called {project!r}, as one of its models", "--name", "--name another"
        )
    target = load_board(board)
    project_kind = PROJECT_KINDS[check_kind(kind, target)]
    chosen = delegates_or_default(delegates, require=require_delegate)
    limits = limits_given(max_ram, max_flash, stack, bare=is_bare(kind, target))
    objective = objective_of(target, optimize, limits, buffers=buffers)
    shared = share(
        part,
        {
            model: fitted(
                FitRequest(program.graph, target, objective, limits, tuple(chosen), require_delegate)
            )
            for model, program in by_name.items()
        },
    )
    reserved = _check_fit(shared, common_of(project, shared.deployments), target, limits)
    target = dataclasses.replace(target, stack_bytes=reserved)
    said = schedule or ", ".join(by_name)
    taking = {link.name for chain in chains(part) for link in chain.parts[1:]}
    parts = []
    inputs: dict[str, Sequence[Array]] = {}
    for model, program in by_name.items():
        given: Sequence[Array] = demonstration(program.inputs, None, None)
        before = _before(part, model)
        if before is not None:
            given = list(by_name[before].outputs_for(inputs[before]))
        inputs[model] = given
        expected = program.outputs_for(given) if project_kind.tells_outputs else ()
        facts = facts_of(shared.deployments[model], model, program.hash, given, expected)
        parts.append(dataclasses.replace(facts, context=context, shared=project, takes=model in taking))
    origins = {model: Source(program.hash, tuple(program.labels)) for model, program in by_name.items()}
    facts = together_facts(project, hash_of(origins.values()), parts)
    stage("generating C")
    sources = together_sources(project, origins, shared, said, target.cpu, context=context)
    options = Options(
        delegates=tuple(delegate.name for delegate in chosen),
        require_delegate=require_delegate,
        max_ram=limits.max_ram,
        max_flash=limits.max_flash,
        stack=limits.stack,
        reserved=reserved,
        optimize=objective.optimize,
        buffers=objective.buffers,
        context=context,
        operators=tuple(
            sorted(
                {n.op for p in by_name.values() for n in p.graph.nodes if isinstance(n.attrs, CustomAttrs)}
            )
        ),
        models={model: program.hash for model, program in by_name.items()},
        schedule=said,
    )
    readme = readme_of(kind, target, facts, shared, said)
    files = project_files(kind, target, facts, sources, options, readme=readme)
    stage("writing the project")
    if (builder := BUILDERS.get(kind)) is not None:
        builder.check_directory(place)
    data = file_of(board, target)
    if project_kind.application:
        data |= {f"{model}.tet": program.data for model, program in by_name.items()}
    write_project(place, {**files, **data})
    return TogetherProject(place)


def _programs(programs: Sequence[Program]) -> dict[str, Program]:
    """The programs by their names. Raises UsageError for less than two, and for names that are not different."""
    if not isinstance(programs, list | tuple):
        instance_given(
            programs, Program, "generate takes a Program, or a list of several", "tinyet.load(path)"
        )
    if len(programs) < 2:
        raise UsageError(
            f"one project of several models takes two programs or more, not {len(programs)}",
            hint="generate(program, …)",
        )
    found: dict[str, Program] = {}
    twice: list[str] = []
    for program in programs:
        instance_given(program, Program, "generate takes Programs", "tinyet.load(path)")
        name = check_name(program.name)
        # Upper and lower case are the same on many disks, and in macros.
        twice += [name] if name.upper() in {known.upper() for known in found} else []
        found[name] = program
    if twice:
        raise UsageError(
            f"several models have the name {', '.join(dict.fromkeys(twice))}",
            hint="tinyet compile MODEL --name NAME -o NAME.tet gives each its own",
        )
    return found


def _before(part: Part, model: str) -> str | None:
    """The model whose output this one takes as its input."""
    for chain in chains(part):
        for giver, taker in zip(chain.parts, chain.parts[1:], strict=False):
            if taker.name == model:
                return giver.name
    return None


# ---------------------------------------------------------------- fit


def _check_fit(shared: Shared, common: Common, board: Board, limits: Limits) -> int:
    """The bytes of stack to reserve. Raises FitError when the models together need more RAM than there is, or their
    constants more flash."""
    rooms = {
        name: room_of(each, board, bare=limits.bare, stack=limits.stack)
        for name, each in shared.deployments.items()
    }
    deepest = {name: room.stack.inference or 0 for name, room in rooms.items()}
    beside = max(room.stack.total - (room.stack.inference or 0) for room in rooms.values())
    stack = beside + _inference(shared.schedule, deepest)
    static = max(room.static for room in rooms.values())
    states = sum(each.state_bytes for each in shared.deployments.values())
    ram = min(board.ram.bytes, limits.max_ram or board.ram.bytes)
    flash = min(board.flash.bytes, limits.max_flash or board.flash.bytes)
    problems = []
    if (total := shared.arena_bytes + states + static + stack) > ram:
        largest = sorted(
            (
                Contributor(piece.bytes + piece.kept_bytes, f"{name}, {piece.kept_bytes} of it states")
                for name, piece in shared.pieces.items()
            ),
            key=lambda c: -c.bytes,
        )
        problems.append(
            f"RAM: arena {shared.arena_bytes} + state {states} + the firmware's own data {static} + stack {stack} = "
            f"{total} bytes of {ram}; of the arena:\n{bullet_list([str(each) for each in largest])}"
        )
    constants = {
        name: each.constant_bytes + each.parameter_bytes for name, each in shared.deployments.items()
    }
    if (total := sum(constants.values()) - common.saved_bytes) > flash:
        each_one = [f"{size} bytes: {name}" for name, size in constants.items()]
        each_one += [f"-{common.saved_bytes} bytes, which are in common"] if common.arrays else []
        problems.append(
            f"flash: weights and parameters alone take {total} bytes of {flash}:\n{bullet_list(each_one)}"
        )
    if problems:
        raise FitError(
            "\n".join(problems),
            board.name,
            "RAM: --schedule says which models never run at the same time; or a board with more memory",
        )
    return stack


def _inference(part: Part, deepest: Mapping[str, int]) -> int:
    """Bytes of stack that runs take at most: of models that call each other, all of theirs."""
    if isinstance(part, Model):
        return deepest[part.name]
    each = [_inference(inner, deepest) for inner in part.parts]
    return sum(each) if isinstance(part, Apart) and part.nested else max(each)


# ---------------------------------------------------------------- the project


@dataclass(frozen=True, eq=False)
class TogetherValidation:
    """results: of each model by itself, by its name. turns: rounds in which all ran one after another, each going on
    with its own states; differing: what differed in them, a line each."""

    results: Mapping[str, ValidationResult]
    turns: int
    differing: tuple[str, ...]

    @property
    def bit_exact(self) -> bool:
        """Whether all models gave the host reference's bits, each by itself and in turns."""
        return not self.differing and all(result.bit_exact for result in self.results.values())

    def to_json(self) -> dict[str, object]:
        """The documented, stable form of `--json` (docs/json.md)."""
        return {
            "version": 1,
            "bit_exact": self.bit_exact,
            "turns": self.turns,
            "differing": list(self.differing),
            "models": {name: result.to_json() for name, result in self.results.items()},
        }


@dataclass(frozen=True, eq=False)
class TogetherProject(Project):
    """A directory that `generate` wrote of several models."""

    @cached_property
    def programs(self) -> dict[str, Program]:
        """By their names, in the order in which the application runs them."""
        found = {}
        models = self.manifest["models"]
        assert isinstance(models, dict)
        for name, digest in models.items():
            found[name] = load(self.path / f"{name}.tet")
            if found[name].hash != digest:
                raise ProjectError(
                    f"{name}.tet is not the program that this project was generated from",
                    str(self.path),
                    "generate the project again",
                )
        return found

    @cached_property
    def shared(self) -> Shared:
        """The models in their arena, as they were when the project was generated."""
        apart = {name: fitted(self._request_of(program)) for name, program in self.programs.items()}
        return share(parse(str(self.manifest["schedule"]), list(self.programs)), apart)

    @property
    def common(self) -> Common:
        """The constants that models have in common."""
        return common_of(self.name, self.shared.deployments)

    @property
    def shared_parameters(self) -> tuple[SharedParameter, ...]:
        """Weights that several models have, as entry points of one module do, and whether each is there once."""
        return shared_parameters(self.programs, self.shared.deployments, self.common)

    @property
    def program(self) -> Program:
        """Raises UsageError: there are several, `programs`."""
        raise UsageError(f"this project has several programs: {', '.join(self.programs)}", str(self.path))

    @property
    def deployment(self) -> Deployment:
        """The one that takes the most of the arena."""
        sizes = {name: piece.bytes for name, piece in self.shared.pieces.items()}
        return self.shared.deployments[max(sizes, key=lambda name: sizes[name])]

    @property
    def stack(self) -> StackUse:
        """The stack bound of the application, and of the inference that takes the most."""
        elf = self.elf(self.board.name)
        uses = [stack_of(elf, name) for name in self.programs]
        return max(uses, key=lambda use: use.inference.bytes or 0)

    def validate_each(
        self,
        *,
        on: str | None = None,
        max_samples: int | None = None,
        timeout: float = 60.0,
    ) -> TogetherValidation:
        """Prove each model by itself, on a fixed pattern, and then that they leave each other alone: all of them in
        turns, on drawn samples, each with the states that its own last run has left."""
        turns = (
            _TURNS
            if max_samples is None
            else whole_given(max_samples, "max_samples", "how many rounds to run")
        )
        on = self.board.emulator if on is None else on
        with tempfile.TemporaryDirectory(prefix="tinyet-") as scratch:
            elf = self.firmware(on, Path(scratch))
            with open_device(self.board, elf, on, timeout=timeout) as device:
                results = {}
                for number, (name, program) in enumerate(self.programs.items()):
                    device.select(number)
                    results[name] = validate(
                        program,
                        self.shared.deployments[name],
                        device,
                        Samples((tuple(pattern_inputs(program.inputs)),), synthetic=True),
                        on=on,
                        board=self.board.name,
                        sizes=self.sizes,
                        stack_bound=inference_bound(elf, name) if on != "host" else None,
                    )
                differing = self._in_turns(device, turns)
        return TogetherValidation(results, turns, tuple(differing))

    def _in_turns(self, device: Device, turns: int) -> list[str]:
        """What differs from the host reference when all models run in turns. Those of a chain take what is there."""
        part, differing = self.shared.schedule, []
        sessions = {name: Session(self.shared.deployments[name].graph) for name in self.programs}
        rng = np.random.default_rng(0)
        for number in range(len(self.programs)):
            device.select(number)
            device.reset()
        for turn in range(turns):
            last: dict[str, list[Array]] = {}
            for number, (name, session) in enumerate(sessions.items()):
                graph = self.shared.deployments[name].graph
                before = _before(part, name)
                inputs = last[before] if before is not None else _drawn(graph, rng)
                device.select(number)
                run = device.run(as_bytes(inputs))
                values = session.values(inputs)
                got = [from_bytes(b, t) for b, t in zip(run.outputs, graph.outputs, strict=True)]
                wrong = [
                    t.name for a, t in zip(got, graph.outputs, strict=True) if not same(a, values[t]).all()
                ]
                if wrong:
                    differing.append(f"round {turn}, {name}: {', '.join(wrong)}")
                last[name] = [values[t] for t in graph.user_outputs]
        return differing


def _drawn(graph: Graph, rng: np.random.Generator) -> list[Array]:
    """A drawn sample of a graph's inputs."""
    return [_some(tensor, rng) for tensor in graph.user_inputs]


def _some(tensor: Tensor, rng: np.random.Generator) -> Array:
    if tensor.dtype is DType.FLOAT32:
        return rng.uniform(-3, 3, tensor.shape).astype(np.float32)
    if tensor.dtype.bytes > 2:
        # Indices: small ones are in every table.
        return np.zeros(tensor.shape, tensor.dtype.numpy)
    low, high = tensor.dtype.range
    return rng.integers(low, high + 1, tensor.shape).astype(tensor.dtype.numpy)
