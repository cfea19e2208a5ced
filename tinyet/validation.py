# SPDX-License-Identifier: Apache-2.0
"""Proof that a device computes what the host reference computes: every sample, bit for bit.

On a mismatch the first layer that differs is found by halting the device behind each layer and reading its tensors
back, of layers that are computed by rows the rows that are there.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tinyet.answers import Answers
from tinyet.answers.confusion import Confusion, confusion_of
from tinyet.cycles.estimate import CycleEstimate
from tinyet.data import Samples, predicted, prepare_inputs
from tinyet.data.warnings import fit_warnings, fits_of, label_warnings
from tinyet.deployment import Deployment, Step
from tinyet.device.device import Device, DeviceFault, ModelFailed, RunResult
from tinyet.device.protocol import Info
from tinyet.errors import DataError, EmulatorError, bullet_list
from tinyet.ir import Array, Tensor
from tinyet.messages.stages import stage
from tinyet.mismatch.locate import Mismatch, from_bytes, locate_mismatch, same
from tinyet.mismatch.sizes import SizeResult, input_bytes, request, run_at_sizes
from tinyet.oracles import Agreement, compare
from tinyet.pages import notebook
from tinyet.program import Program
from tinyet.quality.alarm import Judge, beginning_as_known, names_classes
from tinyet.reference import Session
from tinyet.reference.histograms import Histograms
from tinyet.stack.bound import Bound
from tinyet.timing.work import Work

Progress = Callable[[int, int], None]

# The float graph is slow in numpy and an error figure needs no thousand samples.
DEFAULT_SQNR_SAMPLES = 32

SYNTHETIC = "the sample is synthetic: it proves the bits and says nothing of accuracy"
GIVE_DATA = (
    "--evaluation FILE.npz gives labelled data, here or to `tinyet generate`, which keeps it in the project"
)


@dataclass(frozen=True)
class LayerResult:
    """One call of the generated code.

    name: as every report names it; value: the tensor that it computes; line: `file:line`, source: the line's text
    behind it, both empty where they are not known. count: mean over the samples, in the result's `count_unit`.
    sqnr_db: signal to quantization noise of its value against the float model; None where it has no float partner.
    estimate: its part of the result's estimate of cycles; None where none was asked for. histogram: of its value's
    integers on the host, in equal steps from the least that the type has to the largest; empty where they stand for no
    real numbers. at_ends: how many of these are the least or the largest; None likewise.
    """

    name: str
    value: str
    op: str
    kernel: str
    line: str
    source: str
    macs: int
    count: int | None
    sqnr_db: float | None
    parts: tuple[PartResult, ...] = ()
    estimate: Work | None = None
    histogram: tuple[int, ...] = ()
    at_ends: int | None = None


@dataclass(frozen=True)
class PartResult:
    """A part of a layer that a delegate tells apart: its count, like the layer's, and what telling it apart costs."""

    name: str
    source: str
    count: int | None


class Counted:
    """A cost, `count`, that names what was counted: one is never printed as another."""

    count: int | None
    count_unit: str

    @property
    def instructions(self) -> int | None:
        """Executed instructions per inference; None where something else was counted."""
        return self.count if self.count_unit == "instructions" else None

    @property
    def cycles(self) -> int | None:
        """Cycles of the core's clock per inference, on hardware or in simavr; None elsewhere."""
        return self.count if self.count_unit == "cycles" else None


@dataclass(frozen=True, eq=False)
class ValidationResult(Counted):
    """The measurements of `validate`.

    outputs: a list of arrays a sample, as the device gave them. synthetic: there was no data, and the one sample is a
    pattern; no layer has an SQNR then, because that of a pattern means nothing. count: mean per inference, in
    `count_unit`: "instructions" in QEMU and Renode, "cycles" in simavr and on hardware, "nanoseconds" on the host; one
    is never printed as another. ram_bytes: static data, the arena included, without the stack; flash_bytes: code and
    constants;
    both of the application, None when it was not built. stack_bytes: the model's own, in a run of the
    first sample that nothing interrupts; None where it cannot be measured. stack_bound: what it takes at most, with
    the calls that get there, or why there is no bound; None where the firmware cannot be looked into (on the host, or
    flashed by somebody else). ram_with_stack_bytes: the application's static data and what it takes of the stack at
    most, None where one of them is not known. clipped: share of the samples' real values that lie outside
    of the inputs' calibrated ranges; None where no input takes such. data_warnings: what is doubtful about the samples,
    a sentence each. estimate: of cycles, where it was asked for; it is no count, wherever the model ran.
    oracle: how the answers compare with those of the model's original runtime, where that was asked. answers: how far
    the host reference's are from the float model's on these samples; None without a float model, and for a made-up
    sample. confusion: of labelled samples, what each of the three takes for what. at_sizes: of a model with a size that
    is known at run time, the runs at its sizes, on the beginnings of the samples; everything else is for the largest.
    """

    on: str
    board: str
    samples: int
    mismatches: int
    first_mismatch: Mismatch | None
    accuracy: float | None
    host_accuracy: float | None
    float_accuracy: float | None
    count: int | None
    count_unit: str
    macs: int
    arena_bytes: int
    ram_bytes: int | None
    flash_bytes: int | None
    stack_bytes: int | None
    layers: tuple[LayerResult, ...]
    outputs: list[list[Array]]
    synthetic: bool = False
    clipped: float | None = None
    data_warnings: tuple[str, ...] = ()
    estimate: CycleEstimate | None = None
    oracle: Agreement | None = None
    stack_bound: Bound | None = None
    ram_with_stack_bytes: int | None = None
    answers: Answers | None = None
    confusion: Confusion | None = None
    at_sizes: tuple[SizeResult, ...] = ()

    def __repr__(self) -> str:
        exact = "bit-exact" if self.bit_exact else f"{self.mismatches} differ"
        count = "" if self.count is None else f", {self.count:,} {self.count_unit} per inference"
        return f"<validation on {self.on}, {self.board}: {self.samples} samples, {exact}{count}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        accuracies = [("device", self.accuracy), ("host", self.host_accuracy), ("float", self.float_accuracy)]
        found: list[tuple[str, notebook.Cell]] = [
            ("run on", f"{self.on}, {self.board}"),
            ("device = host reference", "bit-exact" if self.bit_exact else "NO"),
            ("samples", self.samples),
            *((f"accuracy, {who}", share) for who, share in accuracies),
            (self.count_unit, self.count),
            ("arena, bytes", self.arena_bytes),
            ("flash, bytes", self.flash_bytes),
            ("RAM without stack, bytes", self.ram_bytes),
            ("stack, highest use, bytes", self.stack_bytes),
        ]
        headings = ("layer", "op", "MACs", self.count_unit, "SQNR dB", "kernel", "line")
        rows = [
            (one.name, one.op, one.macs, one.count, one.sqnr_db, one.kernel, one.line) for one in self.layers
        ]
        return notebook.facts("Validation", found, notebook.table(headings, rows))

    @property
    def bit_exact(self) -> bool:
        """Whether all outputs were the host reference's, of other sizes, too."""
        return self.mismatches == 0 and all(result.bit_exact for result in self.at_sizes)

    @property
    def data_note(self) -> str | None:
        """The limits of the data, and the way to get better data; None where it has none."""
        if self.synthetic:
            return f"{SYNTHETIC}: no accuracy and no SQNR; {GIVE_DATA}"
        return f"no accuracy, because the data has no labels; {GIVE_DATA}" if self.accuracy is None else None

    def with_estimate(self, estimate: CycleEstimate) -> ValidationResult:
        """The same with an estimate of cycles, which has as many layers."""
        pairs = zip(self.layers, estimate.layers, strict=True)
        layers = tuple(dataclasses.replace(layer, estimate=work) for layer, work in pairs)
        return dataclasses.replace(self, layers=layers, estimate=estimate)

    def with_oracle(self, original: str | Path, program: Program, samples: Samples) -> ValidationResult:
        """The same with what the runtime of the model's original file says to these samples, which were run."""
        runs = [prepare_inputs(program.inputs, list(arrays)) for arrays in samples.inputs]
        return dataclasses.replace(self, oracle=compare(original, program, runs, self.outputs))

    def to_json(self) -> dict[str, object]:
        """The documented, stable form of `--json` (docs/json.md)."""
        return {
            "version": 4,
            "on": self.on,
            "board": self.board,
            "bit_exact": self.bit_exact,
            "samples": self.samples,
            "synthetic": self.synthetic,
            "data_note": self.data_note,
            "mismatches": self.mismatches,
            "first_mismatch": None if self.first_mismatch is None else _plain(self.first_mismatch),
            "accuracy": self.accuracy,
            "host_accuracy": self.host_accuracy,
            "float_accuracy": self.float_accuracy,
            "instructions": self.instructions,
            "cycles": self.cycles,
            "macs": self.macs,
            "arena_bytes": self.arena_bytes,
            "ram_bytes": self.ram_bytes,
            "flash_bytes": self.flash_bytes,
            "stack_bytes": self.stack_bytes,
            "stack_bound": None if self.stack_bound is None else self.stack_bound.to_json(),
            "ram_with_stack_bytes": self.ram_with_stack_bytes,
            "clipped": self.clipped,
            "data_warnings": list(self.data_warnings),
            "estimate": None if self.estimate is None else self.estimate.to_json(),
            "oracle": None if self.oracle is None else self.oracle.to_json(),
            "answers": None if self.answers is None else self.answers.to_json(),
            "confusion": None if self.confusion is None else self.confusion.to_json(),
            "at_sizes": [result.to_json(self.count_unit) for result in self.at_sizes],
            "layers": [self._layer(layer) for layer in self.layers],
        }

    def _layer(self, layer: LayerResult) -> dict[str, object]:
        fields = self._counted(layer)
        del fields["parts"], fields["estimate"]
        fields["histogram"] = list(layer.histogram)
        fields["parts"] = [self._counted(part) for part in layer.parts]
        fields["estimate"] = None if layer.estimate is None else dataclasses.asdict(layer.estimate)
        return fields

    def _counted(self, record: LayerResult | PartResult) -> dict[str, object]:
        """The record's fields with its count under the name of its unit."""
        fields = _plain(record)
        count = fields.pop("count")
        fields["instructions"] = count if self.count_unit == "instructions" else None
        fields["cycles"] = count if self.count_unit == "cycles" else None
        return fields


def _plain(record: LayerResult | PartResult | Mismatch) -> dict[str, object]:
    """A record as JSON knows it; infinity, which JSON lacks, becomes null."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in vars(record).items()
    }


@dataclass(frozen=True)
class Sizes:
    """Of the application firmware; None where it was not built. ram_bytes: static data. stack_bytes: at most, None
    where there is no bound."""

    ram_bytes: int | None = None
    flash_bytes: int | None = None
    stack_bytes: int | None = None


def validate(
    program: Program,
    deployment: Deployment,
    device: Device,
    samples: Samples,
    *,
    on: str,
    board: str,
    sizes: Sizes,
    stack_bound: Bound | None = None,
    sqnr_samples: int = DEFAULT_SQNR_SAMPLES,
    progress: Progress | None = None,
) -> ValidationResult:
    """Run every sample on the device and compare all outputs with the host reference, bit for bit.

    stack_bound: of an inference in the firmware that the device runs, where that is known.
    Raises EmulatorError when the device fails or holds another program, DataError for data that does not fit.
    """
    stage(f"running on {on}")
    graph = deployment.graph
    info = device.info()
    if info.hash != program.hash:
        raise DataError(
            "the device holds another program than the project", hint="build (and flash) the project again"
        )
    _check_description(info, deployment)
    exact_graph = None if samples.synthetic else program.float_graph
    classifies = bool(program.labels) or names_classes(program.graph)
    judge = None if exact_graph is None else Judge(graph, exact_graph, classifies)
    tally = _Tally(len(deployment.steps), len(deployment.events))
    # Of a pattern they would mean nothing.
    counted = () if samples.synthetic else deployment.steps
    histograms = Histograms(step.node.outputs[0] for step in counted)
    outputs: list[list[Array]] = []
    mismatches, first = 0, None
    session, count = Session(graph), len(graph.user_outputs)
    states_agree = True  # the device's own with those of the host
    if graph.states:
        device.reset()
    for i, arrays in enumerate(samples.inputs):
        prepared = prepare_inputs(graph.user_inputs, list(arrays))
        raw, states = request(deployment, prepared), as_bytes(session.state.values())
        values = session.values(prepared)
        run = _run(device, raw if states_agree else [*raw, *states], deployment)
        got = [from_bytes(b, t) for b, t in zip(run.outputs, graph.outputs, strict=True)]
        outputs.append(got[:count])
        wanted = [values[t] for t in graph.outputs]
        right = all(same(a, b).all() for a, b in zip(got, wanted, strict=True))
        states_agree = right or not graph.states
        if not right:
            mismatches += 1
            first = first or locate_mismatch(deployment, device, [*raw, *states], values, i)
        histograms.add(values)
        tally.counts(run.layer_counts, run.event_counts, run.total)
        exact = None
        if judge is not None and (i < sqnr_samples or samples.labels is not None):
            exact = judge.add(values, arrays, None if samples.labels is None else samples.labels[i])
        if samples.labels is not None:
            tally.label(samples.labels[i], got, wanted, exact)
        if progress is not None:
            progress(i + 1, len(samples))
    at_sizes = run_at_sizes(deployment, device, samples.inputs)
    wrong = next((result for result in at_sizes if not result.bit_exact), None)
    first = first or (None if wrong is None else wrong.mismatch)
    stack = 0
    if samples.inputs:
        raw = next(sample_bytes(deployment, samples))
        raw += as_bytes(state.initial.array for state in graph.states)
        # The other runs have the frames of the counter's interrupt in it, where one happened to come.
        stack = device.run(raw, uninterrupted=True).stack_bytes
    layers = tuple(
        LayerResult(
            step.name,
            step.node.outputs[0].name,
            step.node.op,
            step.choice.kernel.symbol,
            step.line,
            step.source,
            step.macs,
            tally.mean(tally.layers[step.index]),
            None if judge is None else judge.comparison.sqnr_db(step.node.outputs[0]),
            _parts(step, tally, len(deployment.steps)),
            histogram=histograms.of(step.node.outputs[0]),
            at_ends=histograms.at_ends(step.node.outputs[0]),
        )
        for step in deployment.steps
    )
    clipped, data_warnings = _data_warnings(graph.user_inputs, graph.user_outputs, samples)
    return ValidationResult(
        on=on,
        board=board,
        samples=len(samples),
        mismatches=mismatches,
        first_mismatch=first,
        accuracy=tally.share(1),
        host_accuracy=tally.share(2),
        float_accuracy=tally.share(3) if judge is not None else None,
        count=tally.mean(tally.total),
        count_unit=device.count_unit,
        macs=deployment.macs,
        arena_bytes=deployment.plan.arena_bytes,
        ram_bytes=sizes.ram_bytes,
        flash_bytes=sizes.flash_bytes,
        stack_bytes=stack or None,
        layers=layers,
        outputs=outputs,
        synthetic=samples.synthetic,
        clipped=clipped,
        data_warnings=data_warnings,
        stack_bound=stack_bound,
        ram_with_stack_bytes=None
        if sizes.ram_bytes is None or sizes.stack_bytes is None
        else sizes.ram_bytes + sizes.stack_bytes,
        answers=None if judge is None else beginning_as_known(program, judge.answers("evaluation")),
        confusion=confusion_of(program.labels, tally.named),
        at_sizes=at_sizes,
    )


def as_bytes(arrays: Iterable[Array]) -> list[bytes]:
    """Arrays as a device takes them."""
    return [np.ascontiguousarray(a).tobytes() for a in arrays]


def sample_bytes(deployment: Deployment, samples: Samples) -> Iterator[list[bytes]]:
    """Each sample as the device takes it: the bytes of each input."""
    for arrays in samples.inputs:
        yield request(deployment, prepare_inputs(deployment.graph.user_inputs, list(arrays)))


def _data_warnings(
    inputs: Sequence[Tensor], outputs: Sequence[Tensor], samples: Samples
) -> tuple[float | None, tuple[str, ...]]:
    """The share of clipped values, and what is doubtful about the samples."""
    columns = [np.stack(column) for column in zip(*samples.inputs, strict=True)]
    fits = fits_of(inputs, columns) if columns else []
    values = sum(fit.values.count for fit in fits)
    labels = None if samples.labels is None else np.asarray(samples.labels)
    return (
        sum(fit.outside * fit.values.count for fit in fits) / values if values else None,
        (*fit_warnings(fits), *label_warnings(labels, outputs[0].type.count)),
    )


def _parts(step: Step, tally: _Tally, layers: int) -> tuple[PartResult, ...]:
    return tuple(
        PartResult(
            event.label,
            str(event.origins[-1]) if event.origins else "",
            tally.mean(tally.events[step.first_event - layers + part]),
        )
        for part, event in enumerate(step.call.events)
    )


def _check_description(info: Info, deployment: Deployment) -> None:
    """Raise EmulatorError unless the device, which has the right program, has it in the right sizes."""
    graph = deployment.graph
    said = [slot.bytes for slot in info.inputs], [slot.bytes for slot in info.outputs], info.num_layers
    right = input_bytes(deployment), [t.type.bytes for t in graph.outputs], len(deployment.steps)
    if said != right:
        raise EmulatorError(
            what=f"the device has inputs, outputs and layers of the sizes {said}, the project of {right}",
            hint="build (and flash) the project again",
        )


def _run(device: Device, raw: Sequence[bytes], deployment: Deployment) -> RunResult:
    """One run; a fault or a negative status names the user's source line of the layer it happened in."""
    try:
        run = device.run(raw)
        if len(run.layer_counts) > len(deployment.steps) or len(run.event_counts) > len(deployment.events):
            raise EmulatorError(
                what=f"the device counted {len(run.layer_counts)} layers and {len(run.event_counts)} parts of layers, "
                f"where there are {len(deployment.steps)} and {len(deployment.events)}"
            )
        _check_runs(run.layer_runs, deployment)
        if run.stopped or len(run.outputs) != len(deployment.graph.outputs):
            raise EmulatorError(what="the device stopped before the last layer, where nobody asked it to")
        return run
    except (DeviceFault, ModelFailed) as error:
        if error.layer is not None:
            place = deployment.origin_of(error.layer)
            error.where = f"{place}\n{error.where}" if error.where else place
        raise


def _check_runs(runs: Sequence[int], deployment: Deployment) -> None:
    """Raise EmulatorError where layers ran more or less often than the deployment's: it has other rows."""
    wrong = [
        f"{step} {count} times, where it is {step.runs}"
        for step, count in zip(deployment.steps, runs, strict=True)
        if count != step.runs
    ]
    if wrong:
        raise EmulatorError(
            what=f"the device has layers run another number of times than the project:\n{bullet_list(wrong)}",
            hint="build (and flash) the project again",
        )


class _Tally:
    """Sums over samples."""

    def __init__(self, layers: int, events: int) -> None:
        self.layers = [0] * layers
        self.events = [0] * events
        self.total = 0
        self.runs = 0
        self.named: list[tuple[int, int, int, int | None]] = []

    def counts(self, layers: Sequence[int], events: Sequence[int], total: int) -> None:
        self.runs += 1
        self.total += total
        for i, count in enumerate(layers):
            self.layers[i] += count
        for i, count in enumerate(events):
            self.events[i] += count

    def label(
        self, label: int, device: Sequence[Array], host: Sequence[Array], exact: Sequence[Array] | None
    ) -> None:
        """The class is the index of the largest element of the first output (of a single integer, that itself)."""
        self.named.append(
            (
                label,
                predicted(device[0]),
                predicted(host[0]),
                None if exact is None else predicted(exact[0]),
            )
        )

    def mean(self, total: int) -> int | None:
        return round(total / self.runs) if self.runs else None

    def share(self, who: int) -> float | None:
        """Of the labelled samples, those that one of them names rightly; who: its place in `named`."""
        right = sum(row[who] == row[0] for row in self.named)
        return right / len(self.named) if self.named else None
