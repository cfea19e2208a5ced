# SPDX-License-Identifier: Apache-2.0
"""Quantization-aware training: fine-tune a model with the rounding of its firmware in the loop.

    session = prepare_training(model, example_inputs, quantizer=TinyetQuantizer(int4_config()))
    optimizer = torch.optim.Adam(session.parameters(), lr=1e-3)
    for x, y in loader:                                    # batches of any size
        optimizer.zero_grad()
        loss_function(session(x), y).backward()
        optimizer.step()
    program = tinyet.compile(session.convert())

The session is an `nn.Module`, for whatever trains modules. Batch norms are folded before training, so what is trained
is what the firmware computes: they take no more part. Dropout is off. The caller's module is left as it was.

A captured graph has one batch size. There is one for each size that comes; all are of the same parameters and fake
quantizers.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import Any, NoReturn

import torch
from torch import fx, nn
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from tinyet.errors import QuantizationError, UsageError
from tinyet.errors.arguments import described, whole_given
from tinyet.fx.argument_checks import check_model
from tinyet.fx.capture import capture
from tinyet.fx.examples import Example, example_of
from tinyet.fx.log_filter import quiet
from tinyet.quantization.fronts import MOST_SAMPLES, mend_fronts
from tinyet.quantization.qparam_sharing import extremes_of
from tinyet.quantization.quantize import Prepared, as_batches, convert, prepare, samples
from tinyet.quantization.quantizer import TinyetQuantizer
from tinyet.quantization.range_clipping import narrow_masks

with quiet():
    from torchao.quantization.pt2e.fake_quantize import disable_observer, enable_observer
    from torchao.quantization.pt2e.quantizer.quantizer import Quantizer


@dataclass(frozen=True)
class _Source:
    """What graphs are captured from. model: a copy of the user's, never run."""

    model: nn.Module
    example: Example
    quantizer: Quantizer | None

    def prepared(self, times: int) -> Prepared:
        """The graph with fake quantizers for inputs of `times` as many samples as the example's.

        It may be asked for anywhere in a training or validation: without a trace in random numbers, and not under
        inference mode, whose tensors never train.
        """
        tensors = tuple(x.repeat(times, *[1] * (x.ndim - 1)) if x.ndim else x for x in self.example)
        with quiet(), torch.inference_mode(False), torch.enable_grad(), torch.random.fork_rng(devices=[]):
            program = capture(copy.deepcopy(self.model), self.example.replaced(tensors))
            return prepare(program, self.quantizer, training=True)


class Training(nn.Module):
    """A model in training. Its parameters are weights and biases, batch norms folded into them; its state is these,
    the ranges, which of them are frozen, and what the model keeps from call to call.

    In training mode the ranges of activations follow what is seen; in eval mode nothing but what the model keeps
    changes, and a value that has no range yet is not rounded.
    """

    def __init__(self, source: _Source) -> None:
        super().__init__()
        self._source = source
        first = source.prepared(1)
        self._graphs = {1: first}
        """By the number of times that the example inputs' samples go into a batch."""
        self.network = first.module
        for number, value in enumerate(first.kept.buffers):
            self.register_buffer(f"kept_{number}", value.first.clone())

    def __repr__(self) -> str:
        count = sum(parameter.numel() for parameter in self.parameters())
        return f"<tinyet training: {count:,} parameters>"

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
        """The model's outputs with all rounding, for a batch of any size that is a multiple of the example inputs'.

        The first batch of a size takes as long as capturing the model. Raises QuantizationError for tensors that are
        no such batch, or when the model is another graph for this size.
        """
        graph = self.captured(self._times(inputs))
        kept = tuple(self.get_buffer(name) for name in self._kept_names)
        try:
            with nullcontext() if self.training else _held(self.network):
                results = graph.module(*inputs, *kept)
        except AssertionError as error:  # torchao's own, of a range
            raise QuantizationError(
                f"a value becomes NaN or infinite where it is rounded ({error})",
                hint="give calibration data, so that what stands before the first layer is not int8 where that spoils "
                "it: prepare_training(…, calibration=batches)",
            ) from error
        if not kept:
            return results  # type: ignore[no-any-return]
        outputs = pytree.tree_leaves(results)
        with torch.inference_mode(False), torch.no_grad():
            for name, value in zip(self._kept_names, outputs[-len(kept) :], strict=True):
                setattr(self, name, value.detach().clone())
        del outputs[-len(kept) :]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    @property
    def _kept_names(self) -> list[str]:
        return [f"kept_{number}" for number in range(len(self._graphs[1].kept.buffers))]

    def _times(self, inputs: Sequence[Any]) -> int:
        """How many times the example's samples the inputs hold."""
        example = self._source.example.tensors
        if len(inputs) != len(example):
            raise QuantizationError(f"{len(inputs)} inputs, the model takes {len(example)}")
        for number, (x, wanted) in enumerate(zip(inputs, example, strict=True)):
            if not isinstance(x, torch.Tensor):
                raise QuantizationError(f"input {number} is {described(x)}, no tensor")
            if x.ndim != wanted.ndim or x.shape[1:] != wanted.shape[1:]:
                shapes = f"{tuple(x.shape)}, the model takes {tuple(wanted.shape)}"
                raise QuantizationError(
                    f"input {number} has shape {shapes}",
                    hint="only the first dimension, the batch, may be another",
                )
            if x.dtype != wanted.dtype:
                raise QuantizationError(
                    f"input {number} is {x.dtype}, the model takes {wanted.dtype}",
                    hint=f"give x.to({wanted.dtype})",
                )
        sizes = {(len(x), len(wanted)) for x, wanted in zip(inputs, example, strict=True) if wanted.ndim}
        if not sizes:
            return 1
        times = {size // own if size % own == 0 else 0 for size, own in sizes}
        if len(times) > 1 or 0 in times:
            given, own = (", ".join(str(n) for n in dict.fromkeys(each)) for each in zip(*sizes, strict=True))
            raise QuantizationError(
                f"a batch of {given} samples is no multiple of the example inputs' {own}",
                hint="give example inputs of one sample, and inputs of one batch size",
            )
        return times.pop()

    def captured(self, times: int) -> Prepared:
        """The graph for inputs of `times` as many samples as the example's, of the session's own parameters and fake
        quantizers. Raises QuantizationError where the model has other layers for that size."""
        if times not in self._graphs:
            graph = self._source.prepared(times)
            _share(graph.module, self.network, times)
            self._graphs[times] = graph
        return self._graphs[times]

    def reset(self) -> None:
        """Make what the model keeps what it is before its first run: the next call begins a sequence."""
        for name, value in zip(self._kept_names, self._graphs[1].kept.buffers, strict=True):
            setattr(self, name, value.first.clone())

    def train(self, mode: bool = True) -> Training:
        """Training mode: ranges follow. Eval mode: they do not. There is no other difference."""
        self.training = mode  # an exported graph's own modules know no modes
        return self

    def freeze_ranges(self, frozen: bool = True) -> None:
        """Leave the ranges of all activations as they are now. In the last epochs that lets the weights settle;
        weights' own ranges follow them until the end."""
        for observer in _of_activations(self.network):
            (disable_observer if frozen else enable_observer)(observer)

    def convert(self) -> ExportedProgram:
        """The trained model as a quantized program with the firmware's input shapes, for `tinyet.compile`. Training
        may go on afterwards."""
        first = self._graphs[1]
        with quiet():
            target = copy.deepcopy(self.network)
        narrow_masks(target)
        return convert(Prepared(target, first.example_inputs, first.kept))

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Training:
        """What `to`, `cuda`, `half` and their kind do. Raises UsageError for all but the CPU and float32."""
        moved = fn(torch.zeros(1))
        if moved.device.type != "cpu" or moved.dtype is not torch.float32:
            raise UsageError(
                f"a training session cannot be moved to {moved.device}, {moved.dtype}: "
                "it computes on the CPU, in float32",
                hint="leave .to(), .cuda() and .half() away; for Lightning: "
                'Trainer(accelerator="cpu", precision=32)',
            )
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Training:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        with quiet():
            made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return made

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise UsageError(
            "a training session cannot be pickled",
            hint="torch.save(session.state_dict(), path); later, prepare_training(…) of the same model, then "
            "session.load_state_dict(torch.load(path))",
        )


def prepare_training(
    model: nn.Module,
    example_inputs: torch.Tensor | Sequence[Any] | Mapping[str, Any],
    *,
    batch_size: int | None = None,
    quantizer: Quantizer | None = None,
    calibration: Iterable[Any] | None = None,
) -> Training:
    """A copy of the model with fake quantizers, to be trained in batches of any size.

    example_inputs: in the shapes that the firmware takes, as for `tinyet.compile`; what is trained takes their tensors
    one by one. batch_size: the usual number of samples in a batch: captured now, so that a model that has no graph for
    it is refused here; otherwise with the first batch. quantizer: TinyetQuantizer() by default. calibration: typical
    data, as for `tinyet.compile`; what stands before the first layer has the types then that it has there, where int8
    would spoil it. Nothing else is done with it: training finds the ranges.

    Raises what `capture` raises, and QuantizationError for settings that cannot be trained for, or when the
    model is another graph for another batch size.
    """
    check_model(model)
    if isinstance(model, ExportedProgram):
        raise UsageError("an exported program has one batch size", hint="give the module that it was made of")
    example = example_of(example_inputs)
    times = 1
    if batch_size is not None:
        batch_size = whole_given(batch_size, "batch_size", "samples in a batch, as the loader gives them")
        sizes = [len(x) for x in example if x.ndim]
        if any(batch_size % size for size in sizes):
            raise QuantizationError(
                f"batch_size {batch_size} is no multiple of the example inputs' {sizes[0]} samples"
            )
        times = batch_size // sizes[0] if sizes else 1
    with quiet():
        own = copy.deepcopy(model)
    if calibration is not None:
        quantizer = _mended(own, example, quantizer, calibration)
    session = Training(_Source(own, example.copied(), quantizer))
    session.captured(times)
    return session


def _mended(
    model: nn.Module, example: Example, quantizer: Quantizer | None, calibration: Iterable[Any]
) -> Quantizer:
    """A quantizer with more bits for some values in front; another than tinyet's as it is."""
    chosen = TinyetQuantizer() if quantizer is None else quantizer
    if not isinstance(chosen, TinyetQuantizer):
        return chosen
    program = capture(copy.deepcopy(model), example)
    first = islice(as_batches(calibration, example.tensors), MOST_SAMPLES)
    given = [inputs for _, inputs in samples(first, example.tensors)]
    return mend_fronts(program, chosen, given, rescale=False).quantizer


def _of_activations(module: fx.GraphModule) -> Iterator[nn.Module]:
    """The fake quantizers of what is computed, each once; not those of weights."""
    seen: set[nn.Module] = set()
    for node in module.graph.nodes:
        if node.op == "call_module" and node.all_input_nodes[0].op != "get_attr":
            observer = module.get_submodule(str(node.target))
            if observer not in seen:
                seen.add(observer)
                yield observer


@contextmanager
def _held(module: fx.GraphModule) -> Iterator[None]:
    """No range of an activation follows what is seen. One that has seen nothing does not round, either."""
    switches: list[tuple[torch.Tensor, torch.Tensor]] = []
    for observer in _of_activations(module):
        off = [observer.observer_enabled] if hasattr(observer, "observer_enabled") else []
        extremes = extremes_of(observer)
        if extremes is not None and (not extremes[0].numel() or bool((extremes[0] > extremes[1]).any())):
            off.append(observer.fake_quant_enabled)
        switches += [(switch, switch.clone()) for switch in off]  # type: ignore[operator, misc]
    for switch, _ in switches:
        switch.zero_()
    try:
        yield
    finally:
        for switch, before in switches:
            switch.copy_(before)


Role = tuple[str, str, int]


def _observers(module: fx.GraphModule) -> dict[Role, nn.Module]:
    """The fake quantizers by what they see: the value's name, the fake quantizer's class and type, and which of
    those it is. One that several values share has several roles."""
    modules = dict(module.named_modules(remove_duplicate=False))
    found: dict[Role, nn.Module] = {}
    for node in module.graph.nodes:
        if node.op != "call_module":
            continue
        observer, source = modules[str(node.target)], node.all_input_nodes[0]
        while source.op == "call_module":
            source = source.all_input_nodes[0]
        name = str(source.target) if source.op == "get_attr" else source.name
        kind = f"{type(observer).__name__} {getattr(observer, 'dtype', None)}"
        number = sum(role[:2] == (name, kind) for role in found)
        found[name, kind, number] = observer
    return found


def _share(module: fx.GraphModule, own: fx.GraphModule, times: int) -> None:
    """Give a graph for another batch size the parameters and fake quantizers of the session's own. What only moves data
    may be there for one batch size and not for another (a clone, say); its fake quantizer is that of its source.

    Raises QuantizationError when one has no partner.
    """
    here, there = _observers(own), _observers(module)
    partners: dict[nn.Module, nn.Module] = {}
    for role, observer in there.items():
        if observer not in partners and role in here:
            partners[observer] = here[role]
    parameters = dict(own.named_parameters(remove_duplicate=False))
    names = [name for name, _ in module.named_parameters(remove_duplicate=False)]
    alone = set(here.values()) - set(partners.values()) or set(there.values()) - partners.keys()
    if alone or parameters.keys() != set(names):
        raise QuantizationError(
            f"the model captured for {times} times the example inputs' samples has other layers than for these",
            hint="train with batches of the example inputs' own size",
        )
    for name, observer in list(module.named_modules(remove_duplicate=False)):
        if observer in partners:
            module.set_submodule(name, partners[observer])
    for name in names:
        path, _, leaf = name.rpartition(".")
        setattr(module.get_submodule(path), leaf, parameters[name])
