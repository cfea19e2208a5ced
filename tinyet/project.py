# SPDX-License-Identifier: Apache-2.0
"""A generated project on disk: opened, built, and validated. Needs no torch."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tinyet.boards import Board, load_board
from tinyet.budget.fit import (
    Contributor,
    FitRequest,
    Limits,
    Use,
    check_sizes,
    explain_overflow,
    fitted,
    objective_of,
)
from tinyet.budget.placing import for_framework
from tinyet.budget.room import Room, room_of
from tinyet.build import gcc
from tinyet.build.builder import HARNESS, Builder
from tinyet.build.builders import BUILDERS
from tinyet.build.clang import GCC
from tinyet.build.manifest import MANIFEST
from tinyet.build.size import Size, check_elf, measure
from tinyet.build.tree import building, read_manifest
from tinyet.cycles.estimate import CycleEstimate
from tinyet.cycles.inference import CycleModel, cycle_model
from tinyet.data import (
    Data,
    Samples,
    as_arrays,
    data_given,
    make_samples,
    pattern_inputs,
    read_data,
    refuse_indices,
)
from tinyet.delegates import DEFAULT, Delegate, delegates_named
from tinyet.deployment import Deployment
from tinyet.device.device import open_device
from tinyet.device.host import build_host
from tinyet.emit.kinds import PROJECT_KINDS
from tinyet.emit.placed import check_placed
from tinyet.emit.places import stand_in_sections
from tinyet.emit.project import (
    is_bare,
)
from tinyet.emit.slices import SlicePlan, slices_given
from tinyet.errors import ProjectError, ToolchainError, UsageError
from tinyet.errors.arguments import (
    place_given,
    seconds_given,
    whole_given,
)
from tinyet.ir import Array
from tinyet.messages.stages import stage
from tinyet.pages import notebook
from tinyet.planning.objective import Objective
from tinyet.program import Program, load
from tinyet.stack.use import StackUse, inference_bound, stack_of
from tinyet.validation import (
    DEFAULT_SQNR_SAMPLES,
    Progress,
    Sizes,
    ValidationResult,
    sample_bytes,
    validate,
)

EVALUATION = "evaluation.npz"


@dataclass(frozen=True, eq=False)
class Written:
    """What `generate` has just made: of which program, what it asked of `fitted`, and what that gave."""

    program: Program
    asked: FitRequest
    deployment: Deployment


@dataclass(frozen=True, eq=False)
class Project:
    """A directory that `generate` wrote."""

    path: Path

    def _repr_html_(self) -> str:
        """What a notebook shows: the plan of the project, and the sizes of what was built."""
        deployment, sizes = self.deployment, self.sizes
        found: list[tuple[str, notebook.Cell]] = [
            ("path", str(self.path)),
            ("board", f"{self.board.name}, {self.board.cpu}"),
            ("layers", len(deployment.steps)),
            ("MACs", deployment.macs),
            ("arena, bytes", deployment.plan.arena_bytes),
            ("weights and tables, bytes", deployment.constant_bytes),
            ("flash, bytes", sizes.flash_bytes),
            ("RAM, bytes", sizes.ram_bytes),
        ]
        rows = [
            (step.index, step.name, step.node.op, step.macs, step.choice.kernel.symbol, step.line)
            for step in deployment.steps
        ]
        return notebook.facts(
            f"Project {self.name}",
            found,
            notebook.table(("", "layer", "op", "MACs", "kernel", "line"), rows),
        )

    @cached_property
    def manifest(self) -> dict[str, object]:
        manifest = read_manifest(self.path)
        missing = [
            key
            for key in ("model", "board", "hash", "kind", "model_dir", "desc")
            if not isinstance(manifest.get(key), str)
        ]
        if missing:
            raise ProjectError(
                f"the manifest does not say {', '.join(missing)}",
                str(self.path / MANIFEST),
                "generate the project again",
            )
        return manifest

    @property
    def name(self) -> str:
        """The model's, which its C files and functions have."""
        return str(self.manifest["model"])

    @property
    def archive(self) -> Path | None:
        """The .zip file of the Arduino library, where it was asked for."""
        file = read_manifest(self.path).get("archive")
        return self.path / file if isinstance(file, str) else None

    @cached_property
    def board(self) -> Board:
        """With the bytes of stack that the project reserves."""
        reserved = self.manifest.get("stack_bytes")
        if isinstance(reserved, int) and 0 < reserved < self._board.ram.bytes:
            return dataclasses.replace(self._board, stack_bytes=reserved)
        return self._board

    @cached_property
    def _board(self) -> Board:
        own = self.path / f"{self.manifest['board']}.toml"
        board = load_board(own if own.is_file() else str(self.manifest["board"]))
        kind = PROJECT_KINDS.get(str(self.manifest["kind"]))
        return board if kind is None else for_framework(board, kind.framework(board))

    @cached_property
    def written(self) -> Written | None:
        """What `generate` has just written; None where the project is only in its files."""
        return None

    @cached_property
    def program(self) -> Program:
        file, written = self.path / f"{self.name}.tet", self.written
        # The same bytes are the same program, of which much is known already.
        same = written is not None and file.is_file() and file.read_bytes() == written.program.data
        program = written.program if same and written is not None else load(file)
        if program.hash != self.manifest["hash"]:
            raise ProjectError(
                f"{self.name}.tet is not the program that this project was generated from",
                str(self.path),
                "generate the project again",
            )
        return program

    @property
    def delegates(self) -> tuple[Delegate, ...]:
        """The delegates that were asked, in this order. Raises UsageError when one of them is not here."""
        names = self.manifest.get("delegates")
        return delegates_named([str(n) for n in names]) if isinstance(names, list) else DEFAULT

    @property
    def require_delegate(self) -> bool:
        """Whether nobody else may compute anything."""
        return self.manifest.get("require_delegate") is True

    @property
    def deployment(self) -> Deployment:
        """Every decision for the board, made of the program again, with the same result."""
        return self._made[0]

    @property
    def slices(self) -> SlicePlan | None:
        """The cuts of a run; None for a project that was generated without `max_step`."""
        return self._made[1] if self.manifest.get("max_step") else None

    @cached_property
    def _made(self) -> tuple[Deployment, SlicePlan | None]:
        return self._made_of(self.program)

    def deployment_of(self, program: Program) -> Deployment:
        """What `generate` made of the program for this project."""
        return self._made_of(program)[0]

    def _made_of(self, program: Program) -> tuple[Deployment, SlicePlan | None]:
        asked, written = self._request_of(program), self.written
        whole = fitted(asked) if written is None or written.asked != asked else written.deployment
        given = self.manifest.get("max_step")
        return slices_given(whole, self._board, str(given) if given else None, context=True)

    def _request_of(self, program: Program) -> FitRequest:
        """What `generate` has asked of `fitted` for a program of this project."""
        return FitRequest(
            program.graph,
            self._board,
            self.objective,
            self.limits,
            self.delegates,
            self.require_delegate,
            program.size,
        )

    @property
    def room(self) -> Room:
        """The flash and the stack that were counted when the project was generated."""
        return room_of(self.deployment, self._board, bare=self.limits.bare, stack=self.limits.stack)

    @property
    def objective(self) -> Objective:
        """The first objective of the choice of kernels."""
        return objective_of(
            self._board,
            self.optimize,
            self.limits,
            pins=self.pins,
            input_rows=self.input_rows,
            buffers=self.buffers,
            place=self.place,
        )

    @property
    def optimize(self) -> str:
        """The objective given to `generate`."""
        return str(self.manifest.get("optimize", "balanced"))

    @property
    def input_rows(self) -> bool:
        """Whether the model takes its input row by row."""
        return self.manifest.get("input_rows") is True

    @property
    def buffers(self) -> str:
        """Where inputs and outputs lie: "arena" or "caller"."""
        return str(self.manifest.get("buffers", "arena"))

    @property
    def pins(self) -> dict[str, str]:
        """The kernels that were named for layers."""
        pins = self.manifest.get("pins")
        return {str(k): str(v) for k, v in pins.items()} if isinstance(pins, dict) else {}

    @property
    def place(self) -> dict[str, str]:
        """The memories that were named for the arena, the state and weights."""
        place = self.manifest.get("place")
        return {str(k): str(v) for k, v in place.items()} if isinstance(place, dict) else {}

    @property
    def limits(self) -> Limits:
        """The limits in bytes that were given to `generate`."""
        return Limits.read(self.manifest.get("limits"), bare=is_bare(str(self.manifest["kind"]), self._board))

    @cached_property
    def evaluation(self) -> Data | None:
        """The samples that were stored with the project, or None."""
        path = self.path / EVALUATION
        return read_data(path, [t.name for t in self.program.inputs]) if path.is_file() else None

    def build(self, *, compiler: str = GCC, on_output: Callable[[str], None] | None = None) -> Size:
        """Build application and harness with the project's build system; returns the application's size.

        compiler: "gcc", or, in a CMake project for a Cortex-M, "clang" or one version of it, such as "clang-16".
        on_output: called with each line that the build prints, as it appears.
        One build at a time: another one, or `generate`, in the same directory waits, and tells for whom.
        Raises ToolchainError when a tool is missing or fails, FitError when the linker finds that the board's
        memory does not suffice, or a limit given to `generate` is exceeded.
        """
        if compiler != GCC and not (self._builder and self._builder.chooses):
            choosing = " or ".join(kind for kind, builder in BUILDERS.items() if builder.chooses)
            raise UsageError(
                f"a {self.manifest['kind']} project chooses its compiler itself",
                str(self.path),
                f"for another compiler: tinyet generate --kind {choosing}",
            )
        with building(self.path, on_wait=on_output):
            return self._build(compiler, on_output)

    def _build(self, compiler: str, on_output: Callable[[str], None] | None) -> Size:
        try:
            if self._builder is None:
                raise ProjectError(
                    f"a {self.manifest['kind']} project has no build of its own",
                    str(self.path),
                    "add its C files to your own build",
                )
            self._builder.build(self.path, self.board, compiler, on_output)
        except ToolchainError as error:
            explain_overflow(error, self.deployment, self.board, str(self.path))
            raise
        for env in (self.board.name, HARNESS):
            check_elf(self._builder.elf(self.path, self.board, self.name, env))
        size = measure(self.elf(self.board.name))
        count = len(size.symbols)
        ram, flash = (
            [Contributor(s.bytes, s.name) for s in size.largest(where, count)] for where in ("ram", "flash")
        )
        check_placed(self.deployment, self.name, size, str(self.elf(self.board.name)))
        stack, limits = self.stack, self.limits
        apart = size.bytes_in(self.board.extra_memories)
        uses = Use("RAM", size.ram - apart + stack.taken, ram), Use("flash", size.flash - size.sample, flash)
        check_sizes((uses[0], limits.max_ram), (uses[1], limits.max_flash), stack=stack, board=self.board)
        return size

    def elf(self, env: str) -> Path:
        """The built firmware of an environment (`harness`, or the board's name for the application).

        Raises ProjectError when it has not been built.
        """
        path = self._elf_path(env)
        if path is None or not path.is_file():
            raise ProjectError(
                f"the project has not been built: no {env} firmware",
                str(self.path),
                f"tinyet build {self.path}",
            )
        return path

    @property
    def _builder(self) -> Builder | None:
        """What builds the project; None for C files alone, and for a kind that is not known."""
        return BUILDERS.get(str(self.manifest["kind"]))

    def _elf_path(self, env: str) -> Path | None:
        builder = self._builder
        return None if builder is None else builder.elf(self.path, self.board, self.name, env)

    @property
    def application(self) -> Path | None:
        """The application's ELF file, if it has been built."""
        path = self._elf_path(self.board.name)
        return path if path is not None and path.is_file() else None

    @property
    def stack(self) -> StackUse:
        """The stack bound of the application. Raises ProjectError when it has not been built."""
        return stack_of(self.elf(self.board.name), self.name)

    @property
    def sizes(self) -> Sizes:
        """Of the application, if it has been built."""
        if self.application is None:
            return Sizes()
        size = measure(self.application)
        return Sizes(size.ram, size.flash - size.sample, self.stack.firmware.bytes)

    def validate(
        self,
        *inputs: Array,
        labels: Array | None = None,
        evaluation: Data | str | Path | None = None,
        on: str | None = None,
        max_samples: int | None = None,
        sqnr_samples: int = DEFAULT_SQNR_SAMPLES,
        timeout: float = 60.0,
        estimate: bool = False,
        oracle: str | Path | None = None,
        progress: Progress | None = None,
    ) -> ValidationResult:
        """Run data on the device and compare with the host reference.

        inputs: one array per model input, samples along the first dimension; none takes the evaluation data
        stored with the project, or else a fixed pattern. labels: class indices, for accuracy. evaluation: both at once,
        as for `generate`. on: "host", "qemu", "renode", "simavr" or "serial:PORT"; None for the board's first emulator.
        max_samples: of those, that are run. sqnr_samples: that the float model is asked for. timeout: seconds that one
        run may take. estimate: cycles, too, from what QEMU executes for the same samples; wherever they run, the
        result's `estimate` is none of its counts. oracle: the model's original .tflite or .onnx file, whose own runtime
        is asked for the same samples.
        Raises UsageError when there is no model of the board's core, or QEMU takes no plugins.
        """
        if max_samples is not None:
            max_samples = whole_given(max_samples, "max_samples", "how many samples to run; None for all")
        whole_given(sqnr_samples, "sqnr_samples", "how many samples the float model is asked for", 0)
        timeout = seconds_given(timeout, "timeout")
        on = self.board.emulator if on is None else place_given(on)
        samples = self.samples(inputs, labels, evaluation).first(max_samples)
        with tempfile.TemporaryDirectory(prefix="tinyet-") as scratch:
            model = cycle_model(self.board, Path(scratch)) if estimate else None
            elf = self.firmware(on, Path(scratch))
            with open_device(self.board, elf, on, timeout=timeout) as device:
                result = validate(
                    self.program,
                    self.deployment,
                    device,
                    samples,
                    on=on,
                    board=self.board.name,
                    sizes=self.sizes,
                    stack_bound=inference_bound(elf, self.name) if on != "host" else None,
                    sqnr_samples=sqnr_samples,
                    progress=progress,
                )
            if model is not None and samples.inputs:
                estimated = self._estimate(model, samples, Path(scratch, "cycles"), timeout)
                result = result.with_estimate(estimated)
        return result if oracle is None else result.with_oracle(oracle, self.program, samples)

    def _estimate(self, model: CycleModel, samples: Samples, where: Path, timeout: float) -> CycleEstimate:
        """An estimate of the samples' cycles; `where` is a new directory."""
        where.mkdir()
        elf = self.firmware_for(model.machine, where) if model.stands_in else self.firmware("qemu", where)
        stage("estimating cycles")
        raw = sample_bytes(self.deployment, samples)
        machine = model.machine
        memories = (machine.flash, machine.ram, *machine.extra_memories) if self.place else ()
        return model.estimate(
            elf, raw, where, timeout=timeout, order=self.deployment.order, memories=memories
        )

    def firmware(self, on: str, where: Path, *, compile_anew: bool = False) -> Path:
        """The harness as it runs in a place: an executable for "host", an elf for the others.

        where: a directory for what has to be compiled for it. compile_anew: from the project's C files with the
        compiler alone, whatever the project's own build has made. Raises ProjectError when the project has not been
        built, ToolchainError.
        """
        self._check_harness()
        stage("compiling the harness")
        if on == "host":
            return build_host(self._harness_sources, [self._model_dir], where)
        if (compile_anew and self.board.compiled_alone) or (on == "simavr" and self.board.simavr is not None):
            return gcc.build_firmware(self.board, self._harness_sources, [self._model_dir], where)
        return self._harness(where, on)

    def firmware_for(self, machine: Board, where: Path) -> Path:
        """The harness for another board, which runs the code of this one's core; where: a directory for the file.
        Raises ProjectError, ToolchainError."""
        self._check_harness()
        stage(f"compiling for {machine.name}")
        defines = stand_in_sections(self.deployment.places, machine)
        return gcc.build_firmware(machine, self._harness_sources, [self._model_dir], where, defines)

    def samples(
        self,
        inputs: Sequence[Array],
        labels: Array | None = None,
        evaluation: Data | str | Path | None = None,
    ) -> Samples:
        """Data as `validate` takes it, one sample after the other; for no inputs, what the project has stored."""
        self._check_harness()
        tensors = self.program.inputs
        given = data_given(evaluation, [tensor.name for tensor in tensors])
        if given is not None:
            if inputs or labels is not None:
                raise UsageError("evaluation and inputs say twice what to run", hint="give one of them")
            inputs, labels = given.arrays, given.labels
        if inputs:
            arrays = as_arrays(inputs)
            samples = make_samples(
                tensors, arrays, None if labels is None else as_arrays([labels], "labels")[0]
            )
            refuse_indices(self.program.graph, arrays)
            return samples
        if labels is not None:
            raise UsageError(
                "there are labels, and no samples that they are of", hint="validate(images, labels=labels)"
            )
        if self.evaluation is not None:
            refuse_indices(self.program.graph, self.evaluation.arrays)
            return make_samples(tensors, self.evaluation.arrays, self.evaluation.labels)
        return Samples((tuple(pattern_inputs(tensors)),), synthetic=True)

    def _check_harness(self) -> None:
        """Raise ProjectError when the project has nothing to run the model with."""
        if not self.manifest.get("desc"):
            raise ProjectError(
                f"a {self.manifest['kind']} project holds the C files only, nothing to run them with",
                str(self.path),
                "generate a project of another kind to validate: --kind platformio",
            )

    @property
    def _model_dir(self) -> Path:
        return self.path / str(self.manifest["model_dir"])

    @property
    def _harness_sources(self) -> list[Path]:
        return [*sorted(self._model_dir.rglob("*.c")), self.path / str(self.manifest["desc"])]

    def _harness(self, where: Path, on: str) -> Path:
        """The harness for the board: as the project has built it, or, when its build is one of a framework that no
        emulator runs, the same C files compiled for the bare board."""
        builder = self._builder
        if builder is not None and on.startswith("serial:"):
            env = builder.framework_harness(self.board)
            if env is not None:
                # The board has it already, maybe from an IDE; there may be no file of it here.
                return builder.elf(self.path, self.board, self.name, env)
        if (builder is not None and builder.emulated) or not self.board.bare_metal:
            return self.elf(HARNESS)
        return gcc.build_firmware(self.board, self._harness_sources, [self._model_dir], where)
