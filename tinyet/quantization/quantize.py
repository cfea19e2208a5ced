# SPDX-License-Identifier: Apache-2.0
"""Quantizes a captured program with torchao's PT2E flow: prepare (insert observers), calibrate, convert.

Training with quantization in the loop takes the same road with `prepare(…, training=True)`, the user's own
training instead of `calibrate`, and `convert`; `training` does so for batches larger than the firmware's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, NoReturn

import torch
from torch import fx
from torch.export import ExportedProgram

from tinyet.errors import QuantizationError
from tinyet.errors.arguments import described, instance_given
from tinyet.fx.capture import example_inputs_of, re_export
from tinyet.fx.edit import drop_unused, get_constant
from tinyet.fx.exact import Exact
from tinyet.fx.examples import Inputs
from tinyet.fx.fixed_point import has_log_bands
from tinyet.fx.lazy_code import compiled_when_called
from tinyet.fx.log_filter import quiet
from tinyet.fx.mutable_buffers import Kept, Running, put_back, take_out
from tinyet.fx.origins import op_name, origin_of, stamp
from tinyet.fx.source_locations import frame_of_exception, message_of
from tinyet.ir import Note
from tinyet.messages.stages import stage
from tinyet.quantization.batches import iterable_of
from tinyet.quantization.bias_correction import correct_bias as correct_biases
from tinyet.quantization.equalize import Equalized
from tinyet.quantization.equalize import equalize as equalize_layers
from tinyet.quantization.fixed_fronts import choose
from tinyet.quantization.fronts import MOST_SAMPLES, mend_fronts, note_signals
from tinyet.quantization.learned_rounding import Rounded
from tinyet.quantization.learned_rounding import learn_rounding as learn_roundings
from tinyet.quantization.observers import WeightPerChannelObserver
from tinyet.quantization.qparam_finalization import settle
from tinyet.quantization.qparam_sharing import (
    extremes_of,
    observer_of,
    range_of,
    share_close,
    share_kept,
    share_with_inputs,
)
from tinyet.quantization.quantizer import TinyetQuantizer
from tinyet.quantization.range_clipping import narrow_masks
from tinyet.quantization.threads import one_thread
from tinyet.quantization.torchao_steps import convert_pt2e, prepare_pt2e, prepare_qat_pt2e

with quiet():
    from torchao.quantization.pt2e.quantizer.quantizer import Quantizer

Progress = Callable[[int, int | None], None]
"""Called after each calibration batch with the number done and, when the batches can be counted, the number
in all."""

_FEW_SAMPLES = 32
"""With fewer samples than this, ranges are known to be clipped visibly."""


_QUANTIZER = "TinyetQuantizer(), or TinyetQuantizer(int16_config()); leave it away for int8"


@dataclass(frozen=True)
class Prepared:
    """A graph with observers in it. `module` runs on inputs like `example_inputs`, and what it keeps behind them.

    kept: the buffers that `take_out` made inputs and outputs of.
    infinite: names of the observers' nodes that calibration showed an infinity or NaN.
    """

    module: fx.GraphModule
    example_inputs: Inputs
    kept: Kept = field(default_factory=Kept)
    infinite: set[str] = field(default_factory=set)


def is_quantized(program: ExportedProgram) -> bool:
    """Whether the program holds quantize or dequantize operators already."""
    return any("quantize_" in str(node.target) for node in program.graph.nodes if node.op == "call_function")


@compiled_when_called()
def prepare(
    program: ExportedProgram,
    quantizer: Quantizer | None = None,
    *,
    training: bool = False,
    module: fx.GraphModule | None = None,
) -> Prepared:
    """Insert observers (or fake quantizers, to train with) where the quantizer wants them.

    program: of `capture`. quantizer: TinyetQuantizer() by default; another one must itself put fake quantizers
    into its specs to be trained with. module: the program's, if one was made that nobody else needs. Raises
    QuantizationError when the program is quantized already, or a setting names no module.
    """
    if is_quantized(program):
        raise QuantizationError("the program is quantized already", hint="leave the calibration away")
    stage("inserting observers")
    chosen = TinyetQuantizer() if quantizer is None else quantizer
    instance_given(chosen, Quantizer, "the quantizer is one of torchao's PT2E flow", _QUANTIZER)
    if training and isinstance(chosen, TinyetQuantizer):
        chosen = chosen.for_training()
    with quiet():
        if module is None:
            module = program.module(check_guards=False)
        kept = take_out(module)
        step = prepare_qat_pt2e if training else prepare_pt2e
        prepared = step(module, chosen)
    share_kept(prepared, len(kept.buffers))
    if training:
        _allow_any_strides(prepared)
    return Prepared(prepared, example_inputs_of(program), kept)


def _allow_any_strides(module: fx.GraphModule) -> None:
    """view → reshape: a fake quantizer passes on strides that the export did not foresee."""
    for node in module.graph.nodes:
        if node.op == "call_function" and node.target is torch.ops.aten.view.default:
            node.target = torch.ops.aten.reshape.default
    module.recompile()


def as_batches(batches: Iterable[Any], example: Inputs) -> Iterable[Any]:
    """Calibration data as the batches that it is made of. One tensor with the dimensions of the model's only input is
    one batch; with one dimension more, it holds a batch in each element of the first. Raises QuantizationError for what
    is no batches at all."""
    alone = isinstance(batches, torch.Tensor) and len(example) == 1 and batches.ndim == example[0].ndim
    return [batches] if alone else iterable_of(batches)


def samples(batches: Iterable[Any], example: Inputs) -> Iterator[tuple[int, Inputs]]:
    """The calibration batches as inputs of the program's own shapes, each with the index of its batch.

    batches: as `as_batches` takes them. A batch is a tensor, or a tuple or list of one tensor an input. Batches of
    another batch size than the example's are cut into pieces of its size. Raises QuantizationError naming the
    batch: number of inputs, shape, dtype, values that are not finite.
    """
    for index, batch in enumerate(as_batches(batches, example)):
        values = (batch,) if isinstance(batch, torch.Tensor) else batch
        if not isinstance(values, (tuple, list)) or not all(isinstance(v, torch.Tensor) for v in values):
            raise QuantizationError(
                f"calibration batch {index} is {described(batch)}",
                hint="yield a tensor or a tuple of tensors; torch.from_numpy(x) makes one of an array",
            )
        if len(values) != len(example):
            raise QuantizationError(
                f"calibration batch {index} has {len(values)} tensors, the model takes {len(example)}",
                hint="yield the inputs only, without labels",
            )
        floats = [
            v.is_floating_point() and w.is_floating_point() for v, w in zip(values, example, strict=True)
        ]
        values = [v.float() if is_float else v for v, is_float in zip(values, floats, strict=True)]
        for number, (value, wanted) in enumerate(zip(values, example, strict=True)):
            _check_value(value, wanted, f"calibration batch {index}, input {number}")
        sizes = {v.shape[0] // max(w.shape[0], 1) for v, w in zip(values, example, strict=True) if w.ndim}
        if len(sizes) > 1:
            raise QuantizationError(f"the inputs of calibration batch {index} have different batch sizes")
        for piece in range(sizes.pop() if sizes else 1):
            yield (
                index,
                tuple(
                    v[piece * w.shape[0] : (piece + 1) * w.shape[0]] if w.ndim else v
                    for v, w in zip(values, example, strict=True)
                ),
            )


def _all_finite(values: torch.Tensor) -> bool:
    """Whether none is NaN or infinite: their sum would be neither finite, and takes a third of the time."""
    return math.isfinite(values.sum().item()) or bool(torch.isfinite(values).all())


def _check_value(value: torch.Tensor, wanted: torch.Tensor, label: str) -> None:
    same_rank = value.ndim == wanted.ndim
    whole = not wanted.ndim or (same_rank and wanted.shape[0] > 0 and value.shape[0] % wanted.shape[0] == 0)
    if not same_rank or value.shape[1:] != wanted.shape[1:] or not whole:
        alone = value.shape == wanted.shape[1:]
        raise QuantizationError(
            f"{label} has shape {tuple(value.shape)}, the model takes {tuple(wanted.shape)}",
            hint="a batch has the batch dimension, too: x.unsqueeze(0); all data in one tensor is calibration=[data]"
            if alone
            else "only the first dimension, the batch, may be another multiple of the example's",
        )
    if value.dtype != wanted.dtype:
        raise QuantizationError(
            f"{label} is {value.dtype}, the model takes {wanted.dtype}",
            hint=f"give x.to({wanted.dtype}), scaled as the model was trained",
        )
    if value.is_floating_point() and not _all_finite(value):
        bad = int((~torch.isfinite(value)).sum())
        raise QuantizationError(f"{label} holds {bad} values that are NaN or infinite", hint="clean the data")


def calibrate(
    prepared: Prepared,
    batches: Iterable[Any],
    progress: Progress | None = None,
    seen: Callable[[Inputs], None] | None = None,
) -> int:
    """Run the batches through the observers; gives the number of samples (of the example's batch size) seen. seen: is
    given each of them.

    The graph computes in float64 (`exact`), and the observers see the nearest float32 numbers. What the model keeps
    goes from sample to sample: of such a model, they are one sequence, in their order.

    Raises QuantizationError for data that does not fit, and when there is none.
    """
    stage("calibrating")
    batches = as_batches(batches, prepared.example_inputs)
    total = len(batches) if isinstance(batches, Sized) else None
    last, count = -1, 0
    exact = Running(_Calibration(prepared.module, prepared.infinite).run, prepared.kept)
    try:
        for index, inputs in samples(batches, prepared.example_inputs):
            if progress is not None and index > last >= 0:
                progress(index, total)
            _observe(prepared.module, exact, inputs, index)
            if seen is not None:
                seen(inputs)
            last, count = index, count + 1
    except QuantizationError:
        raise
    except Exception as error:
        frame = frame_of_exception(error)
        raise QuantizationError(
            f"calibration batch {last + 1} raises {message_of(error)}", str(frame) if frame else None
        ) from error
    if count == 0:
        raise QuantizationError(
            "there are no calibration batches",
            hint=f"give at least {_FEW_SAMPLES} samples like those of the field",
        )
    if progress is not None:
        progress(last + 1, total)
    return count


class _Calibration(Exact):
    """Runs the observers, and notes which of them are shown a value that is infinite or NaN. Weights are the same in
    every sample, and shown once."""

    def __init__(self, module: fx.GraphModule, infinite: set[str]) -> None:
        super().__init__(module)
        self.infinite = infinite
        self._shown: set[str] = set()

    def run_node(self, n: fx.Node) -> Any:
        source = n.args[0] if n.op == "call_module" else None
        if isinstance(source, fx.Node) and source.op == "get_attr":
            if n.name in self._shown:
                return self.env[source]
            if isinstance(self.fetch_attr(str(n.target)), WeightPerChannelObserver):
                self._shown.add(n.name)
        result = super().run_node(n)
        observed = n.op == "call_module" and isinstance(result, torch.Tensor) and result.is_floating_point()
        if observed and n.name not in self.infinite and not _all_finite(result):
            self.infinite.add(n.name)
        return result


class _FindNotFinite(Exact):
    """Runs a prepared graph up to the first value that is NaN or infinite; raises QuantizationError there."""

    def __init__(self, module: fx.GraphModule, batch: int) -> None:
        super().__init__(module)
        self.batch = batch

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        computed = n.op == "call_function" and isinstance(result, torch.Tensor) and result.is_floating_point()
        if computed and not _all_finite(result.float()):
            origin = origin_of(n)
            raise QuantizationError(
                f"{origin.aten} gives NaN or infinity on calibration batch {self.batch}",
                str(origin),
                "look at what the float model computes on that batch",
            )
        return result


def _observe(module: fx.GraphModule, exact: Running, inputs: Inputs, batch: int) -> None:
    """Run the observers on one sample; their own errors about values that are not finite become ours."""
    with torch.no_grad(), one_thread():
        try:
            exact(*inputs)
        except (RuntimeError, ValueError):
            _FindNotFinite(module, batch).run(*inputs, *exact.buffers)
            raise


@compiled_when_called()
def convert(prepared: Prepared) -> ExportedProgram:
    """Replace observers by quantize and dequantize, hold weights as int8, and export again.

    Raises QuantizationError, with the values at fault, when something that was observed is not finite.
    """
    stage("converting to integers")
    _check_observers(prepared.module)
    _observe_weights(prepared.module)
    settle(prepared.module)
    with quiet():
        module = convert_pt2e(prepared.module)
    drop_unused(module)
    stamp(module.graph)
    put_back(module, prepared.kept)
    return re_export(module, prepared.example_inputs)


def _observe_weights(module: fx.GraphModule) -> None:
    """Show the observers of weights what these are now: training changed them after they were last seen."""
    observers = dict(module.named_modules(remove_duplicate=False))
    with torch.no_grad():
        for node in module.graph.nodes:
            weight = get_constant(module, node.args[0]) if node.op == "call_module" else None
            if weight is not None:
                observers[str(node.target)](weight)


def _saturated(prepared: Prepared) -> tuple[Note, ...]:
    """A note for each operator that gives infinities, of finite values: what these are in integers. `prepared`:
    calibrated, and its masks narrowed."""
    notes: list[Note] = []
    for node in prepared.module.graph.nodes:
        observer = observer_of(prepared.module, node)
        source = node.args[0] if node.name in prepared.infinite else None
        if observer is None or not isinstance(source, fx.Node) or source.op != "call_function":
            continue
        if any(before.name in prepared.infinite for before in source.all_input_nodes):
            continue
        _, low, high = range_of(observer)
        ends = f"its integers stand for {low:.4g} ... {high:.4g}"
        notes.append(
            Note(f"{op_name(source)} gives infinity or NaN on calibration data; {ends}", origin_of(source))
        )
    return tuple(notes)


def _check_observers(graph_module: fx.GraphModule) -> None:
    """Check that every range has a scale. Raises QuantizationError with all values that have none, at the first one."""
    observers = dict(graph_module.named_modules())
    bad: dict[str, str | None] = {}
    for node in graph_module.graph.nodes:
        module = observers.get(str(node.target)) if node.op == "call_module" else None
        extremes = None if module is None else extremes_of(module)
        if extremes is not None and extremes[0].numel():
            low, high = extremes
            seen = node.all_input_nodes[0]
            computed = seen.op == "call_function"
            place, name = (str(origin_of(seen)), origin_of(seen).aten) if computed else (None, str(seen))
            if low.numel() == 1 and bool(low > high):
                bad.setdefault(f"{name} never gets a finite value", place)
            elif not bool(torch.isfinite(low).all() and torch.isfinite(high).all()):
                bad.setdefault(f"{name} becomes NaN or infinite", place)
            elif not bool(torch.isfinite((high.clamp(min=0) - low.clamp(max=0)).float()).all()):
                bad.setdefault(f"{name} ranges over more than a float32 holds", place)
    if bad:
        raise QuantizationError(
            "while calibrating, " + "; ".join(bad),
            next((place for place in bad.values() if place is not None), None),
            "look at the model's float output on that data",
        )


@dataclass(frozen=True)
class Quantized:
    """program: quantized. float_program: the float model of which it is an image; equalized, where that was
    asked for. equalized: the pairs of layers that were. rounded: the layers whose rounding was learned. notes: what a
    person should know of the calibration."""

    program: ExportedProgram
    float_program: ExportedProgram
    equalized: tuple[Equalized, ...] = ()
    rounded: tuple[Rounded, ...] = ()
    notes: tuple[Note, ...] = ()


@compiled_when_called()
def quantize_fully(
    program: ExportedProgram,
    batches: Iterable[Any],
    quantizer: Quantizer | None = None,
    progress: Progress | None = None,
    *,
    equalize: bool = False,
    correct_bias: bool = False,
    learn_rounding: bool = False,
    mend: bool = True,
    seen: Callable[[Inputs], None] | None = None,
) -> Quantized:
    """mend the front, equalize, prepare, calibrate, convert, learn the rounding, correct biases. Batches are kept in
    memory where a step around the calibration wants to see them again.

    mend: `fronts.mend_fronts`, where tinyet's own quantizer is asked. seen: is given each sample of the calibration.
    """
    pairs: tuple[Equalized, ...] = ()
    mended: tuple[Note, ...] = ()
    module: fx.GraphModule | None = None
    example = example_inputs_of(program)
    batches = as_batches(batches, example)
    own = TinyetQuantizer() if quantizer is None else quantizer
    if has_log_bands(program) and not is_quantized(program):
        stage("looking at what fixed point loses")
        batches, first = _with_first(batches)
        program, mended = choose(program, [inputs for _, inputs in samples(first, example)])
    if mend and isinstance(own, TinyetQuantizer) and own.needs_calibration and not is_quantized(program):
        stage("looking at what stands before the first layer")
        batches, first = _with_first(batches)
        better = mend_fronts(program, own, [inputs for _, inputs in samples(first, example)])
        mended = (*mended, *note_signals(program, own), *better.notes)
        program, quantizer, module = better.program, better.quantizer, better.module
    if equalize or correct_bias or learn_rounding:
        batches = list(batches)
    if equalize:
        stage("equalizing layers")
        program, pairs = equalize_layers(program, [inputs for _, inputs in samples(batches, example)])
        module = None
    prepared = prepare(program, quantizer, module=module)
    if needs_calibration(quantizer):
        calibrate(prepared, batches, progress, seen)
        _check_observers(prepared.module)
        share_with_inputs(prepared.module)
        share_close(prepared.module)
        narrow_masks(prepared.module, prepared.infinite)
    notes = (*mended, *_saturated(prepared))
    quantized = convert(prepared)
    rounded: tuple[Rounded, ...] = ()
    if learn_rounding:
        stage("learning how to round weights")
        given = [inputs for _, inputs in samples(batches, example)]
        quantized, rounded = learn_roundings(program, quantized, given)
    if correct_bias:
        stage("correcting biases")
        quantized = correct_biases(program, quantized, [inputs for _, inputs in samples(batches, example)])
    return Quantized(quantized, program, pairs, rounded, notes)


def _with_first(batches: Iterable[Any]) -> tuple[Iterable[Any], list[Any]]:
    """The batches, and some of them to look at: of a sequence from everywhere, else the first."""
    if isinstance(batches, list | tuple):
        step = max(len(batches) / MOST_SAMPLES, 1)
        return batches, [batches[int(i * step)] for i in range(min(len(batches), MOST_SAMPLES))]
    rest = iter(batches)
    first: list[Any] = []
    try:
        first += islice(rest, MOST_SAMPLES)
    except Exception as error:  # noqa: BLE001 - the user's own loader
        # The calibration says which batch it is.
        return chain(first, map(_raise, [error])), first
    return chain(first, rest), first


def _raise(error: Exception) -> NoReturn:
    raise error


def needs_calibration(quantizer: Quantizer | None) -> bool:
    """Whether the quantizer observes anything: a TinyetQuantizer that quantizes all at run time does not."""
    return not isinstance(quantizer, TinyetQuantizer) or quantizer.needs_calibration


def quantize(
    program: ExportedProgram,
    batches: Iterable[Any],
    quantizer: Quantizer | None = None,
    progress: Progress | None = None,
    *,
    equalize: bool = False,
    correct_bias: bool = False,
    learn_rounding: bool = False,
) -> ExportedProgram:
    """prepare, calibrate, convert. See there for what each raises.

    equalize: first balance the channels between layers (`equalize`). learn_rounding: round each weight as the output of
    its layer wants it (`learned_rounding`). correct_bias: at last, let biases take back what quantization shifts on
    average (`bias_correction`).
    """
    return quantize_fully(
        program, batches, quantizer, progress,
        equalize=equalize, correct_bias=correct_bias, learn_rounding=learn_rounding,
    ).program  # fmt: skip
