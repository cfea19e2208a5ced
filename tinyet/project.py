# SPDX-License-Identifier: Apache-2.0
"""A generated project on disk: made from a program, built, and validated. Needs no torch."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from tinyet import __version__, ops
from tinyet.boards import Board, board_names, load_board
from tinyet.custom import CustomAttrs
from tinyet.data import Data, encode_data, read_data
from tinyet.delegates import DEFAULT, Delegate, delegates_named
from tinyet.deployment import Deployment, deploy
from tinyet.emit.literals import identifier
from tinyet.emit.model import model_files
from tinyet.emit.project import Kind, ModelFacts, TensorFacts, check_kind, project_files
from tinyet.errors import FitError, ProjectError, ToolchainError, UsageError, bullet_list
from tinyet.fit import LARGEST, Contributor, Use, check_fit, check_sizes, largest_constants
from tinyet.ir import Array, DType, Tensor
from tinyet.program import Program, load, prepare_inputs
from tinyet.toolchain import arduino, cmake, gcc, platformio, zephyr
from tinyet.toolchain.device import open_device
from tinyet.toolchain.host import build_host
from tinyet.toolchain.size import Size, measure
from tinyet.toolchain.tree import MANIFEST, read_manifest, write_project
from tinyet.validate import (
    DEFAULT_SQNR_SAMPLES,
    Progress,
    Samples,
    Sizes,
    ValidationResult,
    make_samples,
    validate,
)

HARNESS = "harness"
# Kinds of projects that build a harness for emulators themselves.
_BARE_METAL = ("platformio", "cmake")
EVALUATION = "evaluation.npz"


@dataclass(frozen=True, eq=False)
class Project:
    """A directory that `generate` wrote."""

    path: Path

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
        return str(self.manifest["model"])

    @cached_property
    def board(self) -> Board:
        own = self.path / f"{self.manifest['board']}.toml"
        return load_board(own if own.is_file() else str(self.manifest["board"]))

    @cached_property
    def program(self) -> Program:
        program = load(self.path / f"{self.name}.tet")
        if program.hash != self.manifest["hash"]:
            raise ProjectError(
                f"{self.name}.tet is not the program that this project was generated from",
                str(self.path),
                "generate the project again",
            )
        return program

    @property
    def delegates(self) -> tuple[Delegate, ...]:
        """Who was asked for kernels, in this order. Raises UsageError when one of them is not here."""
        names = self.manifest.get("delegates")
        return delegates_named([str(n) for n in names]) if isinstance(names, list) else DEFAULT

    @property
    def require_delegate(self) -> bool:
        """Whether nobody else may compute anything."""
        return self.manifest.get("require_delegate") is True

    @cached_property
    def deployment(self) -> Deployment:
        return deploy(self.program.graph, self.board.target, self.delegates, require=self.require_delegate)

    @property
    def limits(self) -> dict[str, int | None]:
        """The limits in bytes that were given to `generate`, by name: max_ram, max_flash."""
        values = self.manifest.get("limits")
        limits = values if isinstance(values, dict) else {}
        return {
            key: limits.get(key) if isinstance(limits.get(key), int) else None
            for key in ("max_ram", "max_flash")
        }

    @cached_property
    def evaluation(self) -> Data | None:
        """The samples that were stored with the project, or None."""
        path = self.path / EVALUATION
        return read_data(path, [t.name for t in self.program.inputs]) if path.is_file() else None

    def build(self, *, on_output: Callable[[str], None] | None = None) -> Size:
        """Build application and harness with the project's build system; returns the application's size.

        Raises ToolchainError when a tool is missing or fails, FitError when the linker finds that the board's
        memory does not suffice, or a limit given to `generate` is exceeded.
        """
        try:
            match self.manifest["kind"]:
                case "cmake":
                    cmake.build(self.path, self.board, on_output=on_output)
                case "platformio":
                    for env in (self.board.name, HARNESS):
                        platformio.build(self.path, env, on_output=on_output)
                case "arduino":
                    arduino.build(self.path, self.board, on_output=on_output)
                case "zephyr":
                    zephyr.build(self.path, self.board, on_output=on_output)
                case kind:
                    raise ProjectError(
                        f"a {kind} project has no build of its own",
                        str(self.path),
                        "add its C files to your own build",
                    )
        except ToolchainError as error:
            self._explain_overflow(error)
            raise
        size = measure(self.elf(self.board.name))
        count = len(size.symbols)
        ram, flash = (
            [Contributor(s.bytes, s.name) for s in size.largest(where, count)] for where in ("ram", "flash")
        )
        check_sizes(
            (Use("RAM", size.ram + size.stack, ram), self.limits["max_ram"]),
            (Use("flash", size.flash, flash), self.limits["max_flash"]),
        )
        return size

    def _explain_overflow(self, error: ToolchainError) -> None:
        """Raise FitError when it was the linker's complaint that a memory of the board is too small."""
        found = re.findall(r"region .(\w+).? overflowed by (\d+) bytes", error.what)
        if found:
            lines = [
                f"{region.lower()}: {count} bytes too many for {self.board.name}" for region, count in found
            ]
            largest = bullet_list([str(c) for c in largest_constants(self.deployment)[:LARGEST]])
            raise FitError(
                "\n".join(lines) + f"\nthe arena takes {self.deployment.plan.arena_bytes} bytes of RAM; "
                f"the largest weights in flash:\n{largest}",
                str(self.path),
                "a smaller model, or a board with more memory",
            ) from error

    def elf(self, env: str) -> Path:
        """The built firmware of an environment (`harness`, or the board's name for the application).

        Raises ProjectError when it has not been built.
        """
        path = self._elf_path(env)
        if not path.is_file():
            raise ProjectError(
                f"the project has not been built: no {env} firmware",
                str(self.path),
                f"tinyet build {self.path}",
            )
        return path

    def _elf_path(self, env: str) -> Path:
        match self.manifest["kind"]:
            case "cmake":
                program = f"{self.name}_{'harness' if env == HARNESS else 'app'}"
                return cmake.elf_path(self.path, self.board, program)
            case "arduino":
                return arduino.elf_path(self.path, harness=env == HARNESS)
            case "zephyr":
                return zephyr.elf_path(self.path, harness=env == HARNESS)
            case _:
                return self.path / ".pio" / "build" / env / "firmware.elf"

    @property
    def sizes(self) -> Sizes:
        """Of the application, if it has been built."""
        path = self._elf_path(self.board.name)
        if not path.is_file():
            return Sizes()
        size = measure(path)
        return Sizes(size.ram, size.flash)

    def validate(
        self,
        *inputs: Array,
        labels: Array | None = None,
        on: str = "qemu",
        limit: int | None = None,
        sqnr_samples: int = DEFAULT_SQNR_SAMPLES,
        timeout: float = 60.0,
        progress: Progress | None = None,
    ) -> ValidationResult:
        """Run data on the device and compare with the host reference.

        inputs: one array per model input, samples along the first dimension; none takes the evaluation data
        stored with the project, or else a fixed pattern. labels: class indices, for accuracy. on: "host",
        "qemu", "renode" or "serial:PORT".
        limit: the most samples to run. timeout: seconds that one run may take.
        """
        samples = self.samples(inputs, labels).first(limit)
        with tempfile.TemporaryDirectory(prefix="tinyet-") as scratch:
            elf = self.firmware(on, Path(scratch))
            with open_device(self.board, elf, on, timeout=timeout) as device:
                return validate(
                    self.program,
                    self.deployment,
                    device,
                    samples,
                    on=on,
                    board=self.board.name,
                    sizes=self.sizes,
                    sqnr_samples=sqnr_samples,
                    progress=progress,
                )

    def firmware(self, on: str, where: Path, *, compile_anew: bool = False) -> Path:
        """The harness as it runs in a place: an executable for "host", an elf for the others.

        where: a directory for what has to be compiled for it. compile_anew: from the project's C files with the
        compiler alone, whatever the project's own build has made. Raises ProjectError when the project has not been
        built, ToolchainError.
        """
        self._check_harness()
        if on == "host":
            return build_host(self._harness_sources, [self._model_dir], where)
        if compile_anew and self.board.bare_metal:
            return gcc.build_firmware(self.board, self._harness_sources, [self._model_dir], where)
        return self._harness(where, on)

    def samples(self, inputs: Sequence[Array], labels: Array | None = None) -> Samples:
        """Data as `validate` takes it, one sample after the other; for no inputs, what the project has stored."""
        self._check_harness()
        tensors = self.program.inputs
        if inputs:
            return make_samples(
                tensors, [np.asarray(x) for x in inputs], None if labels is None else np.asarray(labels)
            )
        if self.evaluation is not None:
            return make_samples(tensors, self.evaluation.arrays, self.evaluation.labels)
        return Samples((tuple(sample_inputs(self.program)),))

    def _check_harness(self) -> None:
        """Raise ProjectError when the project has nothing to run the model with."""
        if not self.manifest.get("desc"):
            raise ProjectError(
                f"a {self.manifest['kind']} project holds the C files only, nothing to run them with",
                str(self.path),
                "generate a project of another kind to validate: --project platformio",
            )

    @property
    def _model_dir(self) -> Path:
        return self.path / str(self.manifest["model_dir"])

    @property
    def _harness_sources(self) -> list[Path]:
        return [*sorted(self._model_dir.rglob("*.c")), self.path / str(self.manifest["desc"])]

    @property
    def _framework_harness(self) -> str | None:
        """The environment of the harness that a framework builds for the real board; None where there is none."""
        board = self.board
        match self.manifest["kind"]:
            case "arduino" | "zephyr":
                return HARNESS
            case "platformio" if board.platformio is not None and board.platformio.framework:
                if not board.bare_metal:
                    return HARNESS
                return "arduino_harness" if board.platformio.framework == "arduino" else None
            case _:
                return None

    def _harness(self, where: Path, on: str) -> Path:
        """The harness for the board: as the project has built it, or, when its build is one of a framework that no
        emulator runs, the same C files compiled for the bare board."""
        if on.startswith("serial:") and (env := self._framework_harness) is not None:
            # The board has it already, maybe from an IDE; there may be no file of it here.
            return self._elf_path(env)
        if self.manifest["kind"] in _BARE_METAL or not self.board.bare_metal:
            return self.elf(HARNESS)
        return gcc.build_firmware(self.board, self._harness_sources, [self._model_dir], where)


def open_project(path: str | Path) -> Project:
    """A project that exists. Raises ProjectError when the directory is none."""
    project = Project(Path(path))
    if not (project.path / MANIFEST).is_file():
        raise ProjectError(
            "this directory is not a tinyet project",
            str(path),
            "make one: tinyet generate MODEL --board BOARD",
        )
    operators = project.manifest.get("operators")
    unknown = [n for n in operators if ops.by_name(str(n)) is None] if isinstance(operators, list) else []
    if unknown:
        raise ProjectError(
            f"this program uses the operator {', '.join(map(str, unknown))}, which tinyet does not know",
            str(path),
            "load the Python file that registers it first: tinyet --plugin FILE.py …, or import it",
        )
    return project


def generate(
    program: Program,
    board: str | Path | Board,
    out: str | Path,
    *,
    project: Kind = "platformio",
    name: str | None = None,
    delegates: Sequence[Delegate] = DEFAULT,
    require_delegate: bool = False,
    max_ram: int | None = None,
    max_flash: int | None = None,
    sample: Sequence[Array] | None = None,
    evaluation: Data | None = None,
) -> Project:
    """Write a project for a board.

    project: the kind: platformio, cmake, arduino, ... (`KINDS`), or model for the C files alone.
    board: a name, the path of a board file (which is copied into the project), or a Board that comes with tinyet.
    out: a directory that is new, empty, or an earlier project (whose src/main.c is kept when it was changed).
    delegates: who is asked for kernels, in this order. require_delegate: nobody else may compute anything; without
    it the portable kernels take what these refuse.
    max_ram, max_flash: limits in bytes, the board's own by default. sample: one array per input for the application's
    demonstration; by default the first of `evaluation`, or a fixed pattern. evaluation: samples that the
    project keeps, for `validate`.
    Raises FitError when the model does not fit, UnsupportedOp when an operator has no kernel for the board,
    ProjectError when the directory cannot be used. Nothing is written unless everything is.
    """
    target = board if isinstance(board, Board) else load_board(board)
    check_kind(project, target)
    model = name or program.name
    if model != identifier(model):
        raise UsageError(
            f"the name {model!r} is not a C identifier", hint=f"for example {identifier(model)!r}"
        )
    deployment = deploy(program.graph, target.target, delegates, require=require_delegate)
    check_fit(deployment, target, max_ram=max_ram, max_flash=max_flash)
    if evaluation is not None:
        samples = make_samples(program.inputs, evaluation.arrays, evaluation.labels)
        sample = samples.inputs[0] if sample is None else sample
    arrays = (
        sample_inputs(program)
        if sample is None
        else prepare_inputs(program.inputs, [np.asarray(x) for x in sample])
    )
    facts = ModelFacts(
        name=model,
        macro=model.upper(),
        hash=program.hash,
        arena_bytes=deployment.plan.arena_bytes,
        layers=len(deployment.steps),
        inputs=tuple(_facts(t, deployment) for t in program.inputs),
        outputs=tuple(_facts(t, deployment) for t in program.outputs),
        samples=tuple(np.ascontiguousarray(a).tobytes() for a in arrays),
        events=len(deployment.events),
        has_init=any(step.call.init for step in deployment.steps),
        expected=_expected(program, arrays) if project == "zephyr" else (),
    )
    banner = [
        f"{model}: generated by tinyet {__version__} for {target.cpu}; do not edit, generate it again.",
        f"program {program.hash}",
    ]
    sources = model_files(deployment, model, banner, labels=program.labels, program_hash=program.hash)
    texts = project_files(project, target, facts, sources)
    files: dict[str, str | bytes] = {**texts}
    if project != "model":
        files[f"{model}.tet"] = program.data
    manifest = _with_options(texts[MANIFEST], delegates, require_delegate, max_ram, max_flash)
    files[MANIFEST] = _with_operators(manifest, program)
    if evaluation is not None and project != "model":
        files[EVALUATION] = encode_data(evaluation, [t.name for t in program.inputs])
    if not isinstance(board, Board) and str(board) not in board_names():
        files[f"{target.name}.toml"] = Path(board).read_bytes()
    write_project(Path(out), files)
    return Project(Path(out))


def _with_options(
    manifest: str, delegates: Sequence[Delegate], require: bool, max_ram: int | None, max_flash: int | None
) -> str:
    """The manifest with what the project must be built and checked with again."""
    values = json.loads(manifest)
    values["delegates"] = [delegate.name for delegate in delegates]
    values["require_delegate"] = require
    values["limits"] = {"max_ram": max_ram, "max_flash": max_flash}
    return json.dumps(values, indent=2) + "\n"


def _with_operators(manifest: str, program: Program) -> str:
    """The manifest with the names of the operators that a file of the user's registers, if there are any."""
    names = sorted({n.op for n in program.graph.nodes if isinstance(n.attrs, CustomAttrs)})
    return json.dumps({**json.loads(manifest), "operators": names}, indent=2) + "\n" if names else manifest


def _facts(tensor: Tensor, deployment: Deployment) -> TensorFacts:
    quant = tensor.type.quant
    return TensorFacts(
        name=tensor.name,
        dtype=tensor.dtype,
        shape=tensor.shape,
        bytes=tensor.type.bytes,
        offset=deployment.plan.offset(tensor),
        scale=None if quant is None else quant.one_scale,
        zero_point=None if quant is None else quant.one_zero_point,
    )


def _expected(program: Program, inputs: Sequence[Array]) -> tuple[bytes, ...]:
    """The reference's outputs, as their bytes lie in the arena."""
    values = program.values(inputs)
    return tuple(np.ascontiguousarray(values[tensor]).tobytes() for tensor in program.outputs)


def sample_inputs(program: Program) -> list[Array]:
    """A fixed sample in the program's own dtypes: a pattern that visits the whole range of each input's values."""
    arrays: list[Array] = []
    for tensor in program.inputs:
        ramp = (np.arange(tensor.type.count, dtype=np.int64) * 37) % 256 - 128
        if tensor.dtype.numpy.kind == "f":
            arrays.append((ramp / 128).astype(np.float32).reshape(tensor.shape))
        elif tensor.type.quant is None:
            # Indices: zero is the one that always exists.
            arrays.append(np.zeros(tensor.shape, tensor.dtype.numpy))
        else:
            low, high = tensor.dtype.range
            # Of int16, too: any odd step visits all of a power of two.
            step = 37 if tensor.dtype is DType.INT8 else 37 * 256 + 1
            values = (np.arange(tensor.type.count, dtype=np.int64) * step) % (high - low + 1) + low
            arrays.append(values.astype(tensor.dtype.numpy).reshape(tensor.shape))
    return arrays
