# SPDX-License-Identifier: Apache-2.0
"""A compiled model: what `tinyet.compile` returns, `.tet` files hold, and everything after needs, without torch."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tinyet.answers import Answers
from tinyet.data import array_of, as_arrays, make_samples, predicted, prepare_inputs, refuse_indices
from tinyet.errors import DataError, ModelError, ProgramError, UsageError
from tinyet.errors.arguments import over_time_given, path_given
from tinyet.files.atomic import write_whole
from tinyet.files.reading import read_bounded
from tinyet.files.sniffing import sniff
from tinyet.ir import Array, DType, Graph, Note, Size, State, Tensor
from tinyet.ir.limits import MAX_TEXT
from tinyet.messages.stages import stage
from tinyet.numerics import dequantize
from tinyet.over_time import axes_of, stream
from tinyet.pages import notebook
from tinyet.reference import Session, States
from tinyet.sizes import resize
from tinyet.tet.format import Contents, decode, encode
from tinyet.version import __version__

if TYPE_CHECKING:
    from tinyet.native import By, How

# Inputs and outputs that a repr shows.
_MOST_SIDES = 16


MAX_FILE_BYTES = 1 << 28
"""Of a .tet file."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What `Program.evaluate` found.

    outputs: an array for each output, (samples, *its shape), real numbers or integers as `Program.run` gives them.
    accuracy: the share of samples whose first output names their label; None without labels.
    by: what has computed the last sample, "numpy" or "native". why: the reason that there is no compiled C, where that
    was worth it; else None. judged: samples that compiled C and the host reference have computed, to the same bits.
    """

    outputs: list[Array]
    accuracy: float | None
    by: How
    why: str | None
    judged: int

    def __repr__(self) -> str:
        judged = f", {self.judged} judged by numpy" if self.by == "native" else ""
        accuracy = "" if self.accuracy is None else f", accuracy {self.accuracy:.2%}"
        return f"<evaluation of {len(self.outputs[0])} samples by {self.by}{judged}{accuracy}>"


@dataclass(frozen=True, eq=False)
class Program:
    """A lowered graph with its weights; the same for every board.

    graph:       integer where quantized, float32 elsewhere.
    float_graph: the model before quantization, or None when there was none.
    notes:       what the compiler thought worth telling: layers that stayed float, and why.
    labels:      names of the classes, one for each element of the first output (see `check_labels`); or none.
    answers:     how far the integers' answers are from the float model's, as `compile` has measured it; or None.
    size:        of the inputs, where it is known only when the firmware runs: the graphs are for the largest, and `at`
                 gives the program for another; or None.
    """

    name: str
    graph: Graph
    float_graph: Graph | None = None
    notes: tuple[Note, ...] = ()
    labels: tuple[str, ...] = ()
    answers: Answers | None = None
    size: Size | None = None

    def __repr__(self) -> str:
        """A line for each input, output and state, and what is in between."""
        kept = tuple(state.value for state in self.states)
        sides = (("in ", self.inputs), ("out", self.outputs), ("state", kept))
        lines = [f"  {side} {tensor.name}: {tensor.type}" for side, tensors in sides for tensor in tensors]
        constants = sum(tensor.array.nbytes for tensor in self.graph.constants)
        what = f"{len(self.graph.nodes)} nodes, {constants:,} bytes of constants"
        what += "" if self.size is None else f", {self.size}"
        return "\n".join([f"<tinyet.Program {self.name}: {what}", *lines[:_MOST_SIDES]]) + ">"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        constants = sum(tensor.array.nbytes for tensor in self.graph.constants)
        sides = (("input", self.inputs), ("output", self.outputs), ("state", [s.value for s in self.states]))
        pairs = [(side, f"{tensor.name}: {tensor.type}") for side, tensors in sides for tensor in tensors]
        rows = [
            (
                i,
                node.op,
                ", ".join(str(t.type) for t in node.outputs),
                str(node.origins[-1]) if node.origins else "",
            )
            for i, node in enumerate(self.graph.nodes)
        ]
        answers = None if self.answers is None else self.answers.said
        found: list[tuple[str, notebook.Cell]] = [
            *pairs[:_MOST_SIDES],
            ("constants, bytes", constants),
            ("answers", answers),
        ]
        return notebook.facts(
            f"Program {self.name}", found, notebook.table(("", "op", "output", "source"), rows)
        )

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The inputs of a caller; states are not among them."""
        return self.graph.user_inputs

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The outputs for a caller; states are not among them."""
        return self.graph.user_outputs

    @property
    def states(self) -> tuple[State, ...]:
        """The values kept from run to run."""
        return self.graph.states

    @cached_property
    def data(self) -> bytes:
        """The program as the bytes of a .tet file."""
        stage("encoding the program")
        return encode(self._contents(self.answers))

    def _contents(self, answers: Answers | None) -> Contents:
        return Contents(
            __version__, self.name, self.graph, self.float_graph, self.notes, self.labels, answers, self.size
        )

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the program as 64 hex digits: firmware tells by it which program it holds. What was measured of it
        does not count."""
        if self.answers is None:
            return hashlib.sha256(self.data).hexdigest()
        stage("encoding the program")
        return hashlib.sha256(encode(self._contents(None))).hexdigest()

    def save(self, path: str | Path) -> None:
        """Write a .tet file; an existing one is replaced whole or not at all. Raises ProgramError where it cannot be
        written, and for a program of more than MAX_FILE_BYTES."""
        target = path_given(path, "save takes the path of a .tet file")
        if len(self.data) > MAX_FILE_BYTES:
            what = f"the program has {len(self.data):,} bytes, a file at most {MAX_FILE_BYTES:,}"
            raise ProgramError(what, str(target), "a smaller model, or one that is quantized")
        try:
            write_whole(target, self.data)
        except OSError as error:
            raise ProgramError(f"the program cannot be saved: {error.strerror}", str(target)) from error

    def run(self, *inputs: Array, as_float: bool | None = None) -> Array | list[Array]:
        """The host reference: one sample in, its outputs out. A program with states runs as after a reset; `session`
        is for runs that follow each other.

        inputs: one array per input, of the input's shape; float32 data for a quantized input is quantized
        first, integers are taken as they are. as_float: outputs as real numbers (float32), or as the device's own
        integers (scale and zero point are in `outputs`); by default real numbers, unless a quantized input was given
        as the device's integers. What is no quantized value, an index, stays an integer. Returns one array, or a list
        when the model has several outputs. Raises DataError when number, shape or dtype do not fit, or an index is
        outside its table.
        """
        return self.session().run(*inputs, as_float=as_float)

    def session(self) -> ProgramSession:
        """Runs of the host reference one after the other, which carry the program's states along."""
        return ProgramSession(self)

    def evaluate(
        self, *inputs: Array, labels: Array | None = None, as_float: bool | None = None, by: By = "quickest"
    ) -> Evaluation:
        """Many samples, one after the other; states go from each to the next, and begin as after a reset.

        inputs: one array per input, (samples, …): as `run` takes each sample, without a first dimension of 1 where the
        input has one. labels: the class of each sample, for `accuracy`. as_float: as `run` takes it.
        by: "numpy", the host reference; "native", the program's C compiled for this machine, and every 256th sample by
        the host reference, too, which must find the same bits; or "quickest", which begins with the host reference and
        compiles when the samples that are left are worth it, silently staying with numpy where it cannot
        (`Evaluation.why` says why).

        Raises what `run` raises, with the number of the sample; UsageError for an unknown `by`; for "native"
        ToolchainError without a compiler, and UnsupportedOp for operators that have no portable C; InternalError where
        compiled C differs from the host reference, which is a fault of tinyet.
        """
        # It reads what a program itself does not need: kernels, planning, templates.
        from tinyet.native import Runs

        given = as_arrays(inputs)
        samples = make_samples(self.inputs, given, None if labels is None else array_of(labels))
        real = _as_float(self.inputs, given, as_float)
        stage("evaluating")
        runs = Runs(self.graph, len(samples), by)
        columns: list[list[Array]] = [[] for _ in self.outputs]
        right = 0
        for number, arrays in enumerate(samples.inputs):
            try:
                prepared = prepare_inputs(self.inputs, arrays)
                refuse_indices(self.graph, prepared)
            except DataError as error:
                error.where = f"sample {number}"
                raise
            found = runs.outputs(prepared)
            right += samples.labels is not None and predicted(found[0]) == samples.labels[number]
            for column, tensor, value in zip(columns, self.outputs, found, strict=True):
                column.append(_finish(tensor, value, real))
        return Evaluation(
            outputs=[np.stack(column) for column in columns],
            accuracy=None if samples.labels is None else right / len(samples),
            by=runs.how,
            why=runs.why,
            judged=runs.judged,
        )

    def at(self, value: int) -> Program:
        """The program for one value of its size, and no other.

        Raises UsageError where there is no such size, ModelError where a layer has no form for it.
        """
        if self.size is None or value not in self.size.values:
            known = "its inputs have one size only" if self.size is None else f"it is made for {self.size}"
            raise UsageError(f"{self.name} has no size {value}: {known}")
        if value not in self._at:
            graph = resize(self.graph, self.size, value)
            float_graph = self.float_graph and resize(self.float_graph, self.size, value)
            self._at[value] = replace(self, graph=graph, float_graph=float_graph, size=None, answers=None)
        return self._at[value]

    @cached_property
    def _at(self) -> dict[int, Program]:
        return {}

    def size_of(self, inputs: Sequence[Array]) -> int | None:
        """The size that arrays for the inputs have; None where the program has none. Raises DataError for arrays of
        different sizes, or of one that it is not made for."""
        if self.size is None:
            return None
        found = set()
        for tensor, axis, x in zip(self.inputs, self.size.axes, inputs, strict=False):
            rank = len(tensor.shape)
            if axis is not None and x.ndim in (rank, rank - 1):
                found.add(x.shape[axis - rank + x.ndim] if axis >= rank - x.ndim else 1)
        if len(found) != 1 or not found <= set(self.size.values):
            listed = " and ".join(map(str, sorted(found))) or "none"
            raise DataError(f"the inputs have {listed} elements along {self.size.name}", hint=f"{self.size}")
        return int(found.pop())

    def streaming(
        self,
        axis: int | Sequence[int | None] | None,
        *,
        hop: int | None = None,
        edges: str = "exact",
        channels_last: bool = False,
    ) -> Program:
        """The program of a network over a window made into one that takes the newest frames only, with states for what
        it reads again: see docs/streaming.md. The integers are the same.

        axis: the one that is time, of all inputs, or one for each input, None where it has none. hop: frames of a run;
        by default the fewest that give each layer a whole number of steps. edges: "exact", or "continue" to have frames
        in the place of padding in time. channels_last: the axis is that of images whose channels come before height and
        width, though the program was compiled to have them last.

        Raises UsageError for arguments that do not fit, ModelError that lists all layers in the way.
        """
        stage("streaming")
        if self.size is not None:
            raise UsageError(f"{self.name} takes {self.size} in a run, and a stream a fixed number of frames")
        asked = over_time_given(axis, hop, edges)
        axes = axes_of(asked, self.inputs, channels_last=channels_last)
        found = stream(self.graph, axes, hop=asked.hop, edges=asked.edges)
        float_graph = (
            self.float_graph and stream(self.float_graph, axes, hop=found.hop, edges=asked.edges).graph
        )
        same = found.graph.outputs[0].type.count == self.outputs[0].type.count
        labels = self.labels if same else ()  # where answers are steps, there are fewer of them
        notes = (*self.notes, *found.notes)
        return replace(self, graph=found.graph, float_graph=float_graph, notes=notes, labels=labels)

    def values(self, inputs: Sequence[Array]) -> Mapping[Tensor, Array]:
        """Every value of the graph, as after a reset, for inputs already in the program's own dtypes."""
        return Session(self.graph).values(inputs)

    def outputs_for(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs, as after a reset, for inputs already in the program's own dtypes, in the outputs' own."""
        return Session(self.graph).outputs(inputs)


class ProgramSession:
    """A program in use on the host: each run reads the states that the one before left, as the firmware does.

    `program.session()` makes one; many of the same program do not disturb each other. Of a program without states each
    run is like the first.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._session = Session(program.graph)

    def __repr__(self) -> str:
        return f"<session of {self.program.name}: {self.state!r}>"

    @property
    def state(self) -> States:
        """The states by name, as the next run will read them: read-only arrays in the device's own dtypes. To set
        one, put an array of its shape and dtype in its place: `session.state["h"] = array`. Raises DataError for
        another."""
        return self._session.state

    def reset(self) -> None:
        """Make the states what they are before the first run, as the firmware's reset does."""
        self._session.reset()

    def run(self, *inputs: Array, as_float: bool | None = None) -> Array | list[Array]:
        """The next run: takes, returns and raises what `Program.run` does. Inputs that do not fit leave the states as
        they were."""
        given = as_arrays(inputs)
        size = self.program.size
        if size is not None and self.program.size_of(given) != size.most:
            return self._at_size(given, as_float)
        tensors = self.program.inputs
        prepared = prepare_inputs(tensors, given)
        refuse_indices(self.program.graph, prepared)
        outputs = self._session.outputs(prepared)
        real = _as_float(tensors, given, as_float)
        results = [_finish(t, x, real) for t, x in zip(self.program.outputs, outputs, strict=True)]
        return results[0] if len(results) == 1 else results

    def _at_size(self, given: Sequence[Array], as_float: bool | None) -> Array | list[Array]:
        """A run on smaller inputs; the states are the same."""
        value = self.program.size_of(given)
        assert value is not None
        other = self.program.at(value).session()
        for name in self._session.state:
            other.state[name] = self._session.state[name]
        results = other.run(*given, as_float=as_float)
        for name in self._session.state:
            self._session.state[name] = other.state[name]
        return results


def check_labels(labels: object, output: Tensor, where: str) -> tuple[str, ...]:
    """Names of classes as a Program has them; `where` says in errors who gave them.

    labels: a list or tuple of printable strings, none empty: one for each element of the output. An output that is
    one index (int32) may have any number.
    Raises ModelError that lists all that is wrong.
    """
    if not isinstance(labels, (list, tuple)):
        raise ModelError(
            f"the labels are a {type(labels).__name__}", where, 'give a list of names: ["yes", "no"]'
        )
    names = tuple(str(label) for label in labels if isinstance(label, str))
    problems = [
        f"label {index} is {label!r}, not a name"
        for index, label in enumerate(labels)
        if not isinstance(label, str) or not label.strip() or not label.isprintable()
    ]
    problems += [
        f"label {index} has {len(n)} characters, at most {MAX_TEXT}"
        for index, n in enumerate(names)
        if len(n) > MAX_TEXT
    ]
    index_alone = output.type.count == 1 and output.dtype is DType.INT32
    if not labels or (len(labels) != output.type.count and not index_alone):
        wanted = "of an index, some" if index_alone else f"of {output.type.count} elements"
        problems.append(f"{len(labels)} label(s) for the output {output.name}, which is {wanted}")
    if problems:
        raise ModelError(
            "; ".join(problems), where, "one name for each element of the first output, in their order"
        )
    return names


def _as_float(tensors: Sequence[Tensor], given: Sequence[Array], as_float: bool | None) -> bool:
    """Whether outputs are to be real numbers: as asked, else unless a quantized input was given as integers."""
    if as_float is not None:
        return as_float
    quantized = [x for t, x in zip(tensors, given, strict=True) if not t.type.is_itself]
    return all(x.dtype.kind == "f" for x in quantized)


def _finish(tensor: Tensor, value: Array, as_float: bool) -> Array:
    if as_float and tensor.type.quant is not None and not tensor.type.is_itself:
        return dequantize(value, tensor.type.quant)
    return value


def load(path: str | Path) -> Program:
    """Read a .tet file. Raises ProgramError for one that is missing, truncated, damaged or of a newer format."""
    path = path_given(path, "load takes the path of a .tet file")
    if path.suffix in (".py", ".pt2"):
        hint = f"program = tinyet.compile(…), or tinyet compile {path.name} -o {path.stem}.tet, makes a program of it"
        raise ProgramError("this is a model, and load reads programs", str(path), hint)
    if path.suffix != ".tet" and path.is_file() and (other := sniff(path)) is not None:
        raise ProgramError(other.what, other.where, other.hint)
    try:
        data = read_bounded(path, MAX_FILE_BYTES)
    except OSError as error:
        raise ProgramError(f"the program cannot be read: {error.strerror}", str(path)) from error
    return from_bytes(data, str(path))


def from_bytes(data: bytes, where: str) -> Program:
    """The program of a .tet file's bytes; raises what `load` raises. where: the file, for errors."""
    stage("reading the program")
    contents = decode(data, where)
    if contents.labels:
        try:
            check_labels(contents.labels, contents.graph.user_outputs[0], where)
        except ModelError as error:
            raise ProgramError(error.what, where, "save the program again") from error
    return Program(
        contents.name,
        contents.graph,
        contents.float_graph,
        contents.notes,
        contents.labels,
        contents.answers,
        contents.size,
    )
