# SPDX-License-Identifier: Apache-2.0
"""One model: is every operator supported, what stays float, what it would cost on a board, does it fit there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tinyet.analysis import Analysis, analyze_deployment
from tinyet.boards import DEFAULT_BOARD, Board, load_board
from tinyet.budget.fit import NO_LIMITS, FitRequest, check_fit, fitted, objective_of
from tinyet.compiler import compiled, float_layers
from tinyet.delegates import Delegates, delegates_or_default
from tinyet.errors import FitError, TinyetError, UsageError
from tinyet.errors.arguments import path_given
from tinyet.importers.onnx.read import read_file as read_onnx
from tinyet.importers.tflite.floats import holds_integers
from tinyet.ir import DType
from tinyet.messages.stages import stage
from tinyet.opening import PROJECT, ModelOptions, kind_of, read, warnings_of
from tinyet.opening.loader import call_users, dynamic_of, load_model, name_of
from tinyet.pages import notebook
from tinyet.program import Program
from tinyet.tflite import read_file as read_tflite

Integers = Literal["its own", "by noise", "none"]


@dataclass(frozen=True, eq=False)
class Check:
    """What `check` found.

    path: as it was given. error: why the model cannot become firmware at all, with everything that is in the way; or
    None, and the rest is there. program, analysis: as they would be; of a model that nobody has calibrated its scales
    mean nothing. integers: where its integers are from: the file's own, calibration with noise, or it has none.
    too_large: why it does not fit the board, or None. floats: layers that compute in float32, each with its reason or
    its line. notes: what else the compiler remarks.
    """

    path: str
    board: str
    error: TinyetError | None
    program: Program | None = None
    analysis: Analysis | None = None
    integers: Integers = "none"
    too_large: FitError | None = None
    floats: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<check of {self.path} for {self.board}: {self.verdict}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        record = self.to_json()
        texts = ("verdict", "error", "too_large", "integers")
        numbers = (
            "macs",
            "constant_bytes",
            "arena_bytes",
            "flash_bytes",
            "stack_bytes",
            "cycles",
            "milliseconds",
        )
        found: list[tuple[str, notebook.Cell]] = []
        for key in (*texts, *numbers):
            value = record[key]
            assert value is None or isinstance(value, (str, int, float))
            found.append((key, value))
        operators = notebook.table(("operator", "layers"), list(self.operators.items()))
        return notebook.facts(f"{self.path} for {self.board}", found, operators)

    @property
    def verdict(self) -> Literal["ok", "refused", "too large"]:
        """In a word or two."""
        if self.error is not None:
            return "refused"
        return "ok" if self.too_large is None else "too large"

    @property
    def ok(self) -> bool:
        """It can become firmware of the board."""
        return self.verdict == "ok"

    @property
    def operators(self) -> Mapping[str, int]:
        """How many layers each operator has, the most frequent first; empty where the model is refused."""
        if self.program is None:
            return {}
        counted = Counter(node.op for node in self.program.graph.nodes)
        return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))

    def to_json(self) -> dict[str, object]:
        """The documented, stable form of `--json` (docs/json.md)."""
        found = self.analysis
        return {
            "path": self.path,
            "board": self.board,
            "verdict": self.verdict,
            "error": None if self.error is None else str(self.error),
            "too_large": None if self.too_large is None else str(self.too_large),
            "integers": self.integers,
            "operators": dict(self.operators),
            "floats": list(self.floats),
            "notes": list(self.notes),
            "macs": None if found is None else found.macs,
            "constant_bytes": None if found is None else found.constant_bytes,
            "arena_bytes": None if found is None else found.arena_bytes,
            "flash_bytes": None if found is None else found.flash.at_most,
            "stack_bytes": None if found is None else found.planned_stack.total,
            "cycles": None if found is None else found.cycles,
            "milliseconds": None if found is None else found.milliseconds,
        }


def check(
    path: str | Path,
    *,
    board: str | Path | Board | None = None,
    delegates: Delegates | None = None,
    optimize: str = "balanced",
) -> Check:
    """A look at a model before there is data for it, in seconds.

    path: as `tinyet.open` takes it, no project. A Python file is code, and is run; but neither its calibration() nor
    its evaluation(). What is to be quantized is calibrated with noise, so that each layer is what it will be, but for
    its scales. board, delegates, optimize: as `tinyet.generate` takes them; the board is DEFAULT_BOARD where none is
    named.

    What is wrong with the model is in the result; raises UsageError for what cannot be opened, and errors of the board.
    """
    place = str(path) if isinstance(path, str) else str(path_given(path, "check takes a path"))
    target = load_board(DEFAULT_BOARD if board is None else board)
    chosen = delegates_or_default(delegates)
    objective = objective_of(target, optimize, NO_LIMITS)
    require_model(place)
    try:
        program, integers = _program(place)
        stage("analyzing")
        deployment = fitted(
            FitRequest(program.graph, target, objective, delegates=tuple(chosen), size=program.size)
        )
    except TinyetError as error:
        return Check(place, target.name, error)
    too_large = None
    try:
        check_fit(deployment, target)
    except FitError as error:
        too_large = error
    analysis = analyze_deployment(program, deployment, target, NO_LIMITS)
    floats = tuple(str(node.origins[-1]) if node.origins else node.op for node in float_layers(program.graph))
    notes = warnings_of(program)
    return Check(place, target.name, None, program, analysis, integers, too_large, floats, notes)


def require_model(path: str) -> None:
    """Raises UsageError for a path at which no model lies, before anything is read."""
    if kind_of(path) == PROJECT:
        raise UsageError(
            "this is a project, and a model is wanted", path, "tinyet analyze DIR looks at a project"
        )


def _program(path: str) -> tuple[Program, Integers]:
    """The program of a model, with integers where it has any or can have them."""
    if not _is_float(path):
        program = read(path, ModelOptions()).program
        integers = any(
            t.dtype in (DType.INT8, DType.INT16) for node in program.graph.nodes for t in node.outputs
        )
        return program, "its own" if integers else "none"
    stage("loading torch")
    source = load_model(path)
    from tinyet.quantization.noise import noise_like
    from tinyet.quantization.quantize import is_quantized

    if is_quantized(source.program):
        return read(path, ModelOptions()).program, "its own"
    quantizer = None if source.quantizer is None else call_users(source.quantizer, "quantizer()")
    batches = noise_like(source.example_inputs)
    program = compiled(
        source.program,
        calibration=batches,
        name=name_of(source, None),
        quantizer=quantizer,
        dynamic=dynamic_of(source),
    )
    if (asked := source.over_time) is not None:
        program = program.streaming(asked.axis, hop=asked.hop, edges=asked.edges)
    return program, "by noise"


def _is_float(path: str) -> bool:
    """Whether a model comes by way of torch, to be quantized here or not."""
    kind = kind_of(path)
    if kind == ".tflite":
        return not holds_integers(read_tflite(Path(path)))
    if kind == ".onnx":
        return not read_onnx(Path(path)).is_quantized
    return kind in (".py", ".pt2")
