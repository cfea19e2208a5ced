# SPDX-License-Identifier: Apache-2.0
"""Quantization-aware training: fine-tune a model with the rounding of its firmware in the loop.

    session = prepare_training(model, example_inputs, batch_size=32, quantizer=TinyetQuantizer(int4_config()))
    optimizer = torch.optim.Adam(session.parameters(), lr=1e-3)
    for x, y in loader:                                    # batches of exactly 32
        optimizer.zero_grad()
        loss_function(session(x), y).backward()
        optimizer.step()
    program = tinyet.compile(session.convert())

Batch norms are folded before training, so what is trained is what the firmware computes: they take no more
part. Dropout is off. The caller's module is left as it was.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx, nn
from torch.export import ExportedProgram

from tinyet.errors import QuantizationError, UsageError
from tinyet.errors.arguments import whole_given
from tinyet.fx.argument_checks import check_model
from tinyet.fx.capture import capture
from tinyet.fx.examples import example_of
from tinyet.fx.log_filter import quiet
from tinyet.fx.mutable_buffers import Running
from tinyet.quantization.quantize import Prepared, convert, prepare
from tinyet.quantization.range_clipping import narrow_masks

with quiet():
    from torchao.quantization.pt2e.fake_quantize import disable_observer, enable_observer
    from torchao.quantization.pt2e.quantizer.quantizer import Quantizer


@dataclass(frozen=True)
class Training:
    """A model in training. `large` takes batches of `batch_size` samples; `small`, of the same parameters,
    inputs of the firmware's shapes. What the model keeps goes from call to call, without gradients; `reset` begins a
    new sequence."""

    large: Prepared
    small: Prepared
    batch_size: int
    running: Running = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "running", Running(self.large.module, self.large.kept))

    def __repr__(self) -> str:
        count = sum(parameter.numel() for parameter in self.parameters())
        return f"<tinyet training: batches of {self.batch_size}, {count:,} parameters>"

    def __call__(self, *inputs: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
        """The model's outputs with all rounding, for one batch. Raises QuantizationError for another size."""
        sizes = {len(x) for x in inputs}
        if sizes != {self.batch_size}:
            raise QuantizationError(
                f"a batch of {', '.join(map(str, sorted(sizes)))} samples, the session takes {self.batch_size}",
                hint="let the loader drop the last, smaller batch",
            )
        if self.large.kept.buffers:
            outputs = self.running(*inputs)
            return outputs[0] if len(outputs) == 1 else tuple(outputs)
        result: torch.Tensor | tuple[torch.Tensor, ...] = self.large.module(*inputs)
        return result

    def reset(self) -> None:
        """Make what the model keeps what it is before its first run: the next call begins a sequence."""
        self.running.reset()

    def parameters(self) -> Iterator[nn.Parameter]:
        """The parameters for an optimizer: weights and biases, batch norms folded into them."""
        yield from self.large.module.parameters()

    def freeze_ranges(self, frozen: bool = True) -> None:
        """Leave the ranges of all activations as they are now. In the last epochs that lets the weights settle;
        weights' own ranges follow them until the end."""
        modules = dict(self.large.module.named_modules(remove_duplicate=False))
        for node in self.large.module.graph.nodes:
            if node.op == "call_module" and node.all_input_nodes[0].op != "get_attr":
                (disable_observer if frozen else enable_observer)(modules[str(node.target)])

    def convert(self) -> ExportedProgram:
        """The trained model as a quantized program with the firmware's input shapes, for `tinyet.compile`. Training
        may go on afterwards."""
        with quiet():
            target = copy.deepcopy(self.small.module)
        for observer, partner in _pairs(target, self.large.module):
            observer.load_state_dict(partner.state_dict())
        trained = dict(self.large.module.named_parameters())
        with torch.no_grad():
            for name, parameter in target.named_parameters():
                parameter.copy_(trained[name])
        narrow_masks(target)
        return convert(Prepared(target, self.small.example_inputs, self.small.kept))


def prepare_training(
    model: nn.Module,
    example_inputs: torch.Tensor | Sequence[Any] | Mapping[str, Any],
    *,
    batch_size: int,
    quantizer: Quantizer | None = None,
) -> Training:
    """A copy of the model with fake quantizers, to be trained in batches of `batch_size` samples.

    example_inputs: in the shapes that the firmware takes, as for `tinyet.compile`; what is trained takes their tensors
    one by one. quantizer: TinyetQuantizer() by default.

    Raises what `capture` raises, and QuantizationError for settings that cannot be trained for, or when the
    model is another graph for another batch size.
    """
    check_model(model)
    if isinstance(model, ExportedProgram):
        raise UsageError("an exported program has one batch size", hint="give the module that it was made of")
    example = example_of(example_inputs)
    inputs = example.tensors
    batch_size = whole_given(batch_size, "batch_size", "samples in a batch, as the loader gives them")
    if any(batch_size % len(x) for x in inputs if x.ndim):
        raise QuantizationError(
            f"batch_size {batch_size} is no multiple of the example inputs' {len(inputs[0])} samples"
        )
    with quiet():
        own, twin = copy.deepcopy(model), copy.deepcopy(model)
    many = tuple(x.repeat(batch_size // len(x), *[1] * (x.ndim - 1)) if x.ndim else x for x in inputs)
    small = prepare(capture(own, example), quantizer, training=True)
    large = prepare(capture(twin, example.replaced(many)), quantizer, training=True)
    _pairs(small.module, large.module)  # so that it is told now and not when training has ended
    return Training(large, small, batch_size)


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


def _pairs(small: fx.GraphModule, large: fx.GraphModule) -> list[tuple[nn.Module, nn.Module]]:
    """Each fake quantizer of the one graph with its partner in the other. What only moves data may be there for
    one batch size and not for another (a clone, say); its fake quantizer is that of its source.

    Raises QuantizationError when one has no partner.
    """
    there = _observers(large)
    pairs: dict[nn.Module, nn.Module | None] = {}
    for role, observer in _observers(small).items():
        if pairs.get(observer) is None:
            pairs[observer] = there.get(role)
    result = [(observer, partner) for observer, partner in pairs.items() if partner is not None]
    if len(result) < len(pairs):
        raise QuantizationError(
            "the model captured for a batch has other layers than for the firmware's inputs",
            hint="train with batch_size equal to the example inputs' own",
        )
    return result
