# SPDX-License-Identifier: Apache-2.0
"""A generated project on disk: made from a program, built, and validated. Needs no torch."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from tinyet import __version__
from tinyet.boards import Board, load_board
from tinyet.delegates import Delegate
from tinyet.deployment import Deployment, deploy
from tinyet.emit.literals import identifier
from tinyet.emit.model import model_files
from tinyet.emit.project import Kind, ModelFacts, TensorFacts, project_files
from tinyet.errors import ProjectError, UsageError
from tinyet.fit import Contributor, check_fit, check_sizes
from tinyet.ir import Array, Tensor
from tinyet.program import Program, load, prepare_inputs
from tinyet.toolchain import platformio
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


@dataclass(frozen=True, eq=False)
class Project:
    """A directory that `generate` wrote."""

    path: Path

    @cached_property
    def manifest(self) -> dict[str, object]:
        return read_manifest(self.path)

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

    @cached_property
    def deployment(self) -> Deployment:
        return deploy(self.program.graph, self.board.target)

    def build(self, *, on_output: Callable[[str], None] | None = None) -> Size:
        """Build application and harness with PlatformIO; returns the application's size.

        Raises ToolchainError when a tool is missing or fails, FitError when a limit given to `generate` is exceeded.
        """
        elf = platformio.build(self.path, self.board.name, on_output=on_output)
        platformio.build(self.path, HARNESS, on_output=on_output)
        size = measure(elf)
        limits = self.manifest.get("limits") or {}
        assert isinstance(limits, dict)
        symbols = sorted(size.symbols, key=lambda s: -s.bytes)
        contributors = [Contributor(s.bytes, s.name) for s in symbols]
        check_sizes(
            size.ram + size.stack,
            size.flash,
            contributors,
            max_ram=limits.get("max_ram"),
            max_flash=limits.get("max_flash"),
        )
        return size

    def elf(self, env: str) -> Path:
        """The built firmware of an environment (`harness`, or the board's name for the application).

        Raises ProjectError when it has not been built.
        """
        path = self.path / ".pio" / "build" / env / "firmware.elf"
        if not path.is_file():
            raise ProjectError(f"the project has not been built: no {env} firmware", str(self.path), f"tinyet build {self.path}")
        return path

    @property
    def sizes(self) -> Sizes:
        """Of the application, if it has been built."""
        path = self.path / ".pio" / "build" / self.board.name / "firmware.elf"
        if not path.is_file():
            return Sizes()
        size = measure(path)
        return Sizes(size.ram, size.flash)

    def validate(
        self,
        *inputs: Array,
        labels: Array | None = None,
        on: str = "qemu",
        sqnr_samples: int = DEFAULT_SQNR_SAMPLES,
        timeout: float = 60.0,
        progress: Progress | None = None,
    ) -> ValidationResult:
        """Run data on the device and compare with the host reference.

        inputs: one array per model input, samples along the first dimension; none takes the embedded sample. labels: class
        indices, for accuracy. on: "host", "qemu", "renode" or "serial:PORT". timeout: seconds that one run may take.
        """
        tensors = self.program.inputs
        if inputs:
            samples = make_samples(tensors, [np.asarray(x) for x in inputs], None if labels is None else np.asarray(labels))
        else:
            samples = Samples((tuple(sample_inputs(self.program)),))
        with tempfile.TemporaryDirectory(prefix="tinyet-") as scratch:
            elf = self._host_executable(Path(scratch)) if on == "host" else self.elf(HARNESS)
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

    def _host_executable(self, where: Path) -> Path:
        sources = [*sorted((self.path / "lib" / self.name / "src").glob("*.c")), self.path / "harness" / "model_desc.c"]
        return build_host(sources, [self.path / "lib" / self.name / "src"], where)


def open_project(path: str | Path) -> Project:
    """A project that exists. Raises ProjectError when the directory is none."""
    project = Project(Path(path))
    if not (project.path / MANIFEST).is_file():
        raise ProjectError("this directory is not a tinyet project", str(path), "make one: tinyet generate MODEL --board BOARD")
    return project


def generate(
    program: Program,
    board: str | Board,
    out: str | Path,
    *,
    project: Kind = "platformio",
    name: str | None = None,
    delegates: Sequence[Delegate] = (),
    max_ram: int | None = None,
    max_flash: int | None = None,
    sample: Sequence[Array] | None = None,
) -> Project:
    """Write a project for a board.

    out: a directory that is new, empty, or an earlier project (whose src/main.c is kept when it was changed).
    max_ram, max_flash: limits in bytes, the board's own by default. sample: one array per input for the application's
    demonstration; by default a fixed pattern.
    Raises FitError when the model does not fit, UnsupportedOp when an operator has no kernel for the board, ProjectError when
    the directory cannot be used. Nothing is written unless everything is.
    """
    target = load_board(board) if isinstance(board, str) else board
    model = name or program.name
    if model != identifier(model):
        raise UsageError(f"the name {model!r} is not a C identifier", hint=f"for example {identifier(model)!r}")
    deployment = deploy(program.graph, target.target, delegates)
    check_fit(deployment, target, max_ram=max_ram, max_flash=max_flash)
    arrays = sample_inputs(program) if sample is None else prepare_inputs(program.inputs, [np.asarray(x) for x in sample])
    facts = ModelFacts(
        name=model,
        macro=model.upper(),
        hash=program.hash,
        arena_bytes=deployment.plan.arena_bytes,
        layers=len(deployment.steps),
        inputs=tuple(_facts(t, deployment) for t in program.inputs),
        outputs=tuple(_facts(t, deployment) for t in program.outputs),
        samples=tuple(np.ascontiguousarray(a).tobytes() for a in arrays),
    )
    banner = [
        f"{model}: generated by tinyet {__version__} for {target.cpu}; do not edit, generate it again.",
        f"program {program.hash}",
    ]
    texts = project_files(project, target, facts, model_files(deployment, model, banner))
    files: dict[str, str | bytes] = {**texts, f"{model}.tet": program.data}
    files[MANIFEST] = _with_limits(texts[MANIFEST], max_ram, max_flash)
    write_project(Path(out), files)
    return Project(Path(out))


def _with_limits(manifest: str, max_ram: int | None, max_flash: int | None) -> str:
    values = json.loads(manifest)
    values["limits"] = {"max_ram": max_ram, "max_flash": max_flash}
    return json.dumps(values, indent=2) + "\n"


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
            arrays.append(ramp.astype(tensor.dtype.numpy).reshape(tensor.shape))
    return arrays
