# SPDX-License-Identifier: Apache-2.0
"""A quantized program in torch with its roundings switched one by one: what the outputs are like when some operators
alone are quantized, or some alone are not.

The scales are those of the program that ships, so one calibration serves hundreds of variants, and each computes only
what differs from what is known already. float32 stands in for integers: kernels that round inside (a recurrent layer's,
say) do so no more here. It ranks what is worth trying; `sensitivity` verifies that in the integers that ship.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import fx
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from tinyet.fx.edit import get_constant
from tinyet.fx.examples import Inputs
from tinyet.fx.log_filter import quiet
from tinyet.fx.mutable_buffers import take_out
from tinyet.fx.origins import module_stack, origin_of
from tinyet.quality.yardstick import Quality, compare
from tinyet.quantization.annotate import CLAMPS, KNOWN, LAYERS, SAME_AS_INPUT, SEVERAL_OUTPUTS
from tinyet.quantization.threads import one_thread

Bits = Literal["float", "int16", "int8"]
"""Of an operator that is not as the program has it: float; int16 values beside the same weights; int8 weights beside
the same values."""

Rescaled = Callable[[torch.Tensor], torch.Tensor]
"""A value as other parameters would round it."""

MOST_SAMPLES = 16
FEWEST_SAMPLES = 4
MOST_ROUNDED = 0.6
"""Of a constant's energy, that rounding takes at most; two bits take a third."""
MOST_ELEMENTS = 1 << 23
"""Of intermediate values that are kept: with fewer samples where a network has more of them."""


@dataclass(frozen=True)
class Step:
    """Parameters that a value is rounded with: value = scale · (integer − zero_point)."""

    scale: float
    zero_point: int
    low: int
    high: int

    @property
    def range(self) -> tuple[float, float]:
        return self.scale * (self.low - self.zero_point), self.scale * (self.high - self.zero_point)

    def rounded(self, value: torch.Tensor) -> torch.Tensor:
        # What is no number, a logarithm of zero's say, is some integer on every device.
        integers = torch.round(torch.nan_to_num(value, 0.0) / self.scale) + self.zero_point
        return (torch.clamp(integers, self.low, self.high) - self.zero_point) * self.scale

    def in_int16(self, value: torch.Tensor) -> torch.Tensor:
        scale = max(map(abs, self.range)) / 32767 or 1.0
        return torch.clamp(torch.round(torch.nan_to_num(value, 0.0) / scale), -32768, 32767) * scale


@dataclass(frozen=True, eq=False)
class Read:
    """An argument: where it comes from, and the roundings on its way. first: the producer's own; last: the reader's,
    where it has one beside that. constant: as the integers have it, and in float, where the argument is one; `first` is
    None then where each channel has a scale of its own."""

    source: fx.Node
    first: Step | None = None
    last: Step | None = None
    constant: torch.Tensor | None = None
    exact: torch.Tensor | None = None


@dataclass(frozen=True)
class Operator:
    """An operator that is quantized, with the clamp that is fused into it.

    name: in the captured graph. op: the ATen name. module: path of the innermost module; modules: of all that it is in.
    source: the user's line. makes: whether it computes values of its own, and does not only move, clamp or pick others.
    """

    name: str
    op: str
    module: str
    modules: tuple[str, ...]
    source: str
    makes: bool
    nodes: tuple[fx.Node, ...]

    @property
    def layer(self) -> bool:
        """Whether it is a layer with weights."""
        return self.nodes[0].target in LAYERS


@dataclass(frozen=True, eq=False)
class Run:
    """inside: operators' nodes that are not as in the program; values: of each sample's nodes, as they are computed."""

    inside: Mapping[fx.Node, Bits]
    values: list[dict[fx.Node, Any]]


class Simulation:
    """Of a float program and what quantizing made of it, on some samples; each variant in what differs from `quantized`
    or from `exact`."""

    def __init__(
        self, program: ExportedProgram, quantized: ExportedProgram, samples: Sequence[Inputs]
    ) -> None:
        """program: captured, in float; quantized: of it. samples: of which as many are taken as memory allows; the
        first ones, one sequence, of a program that keeps something."""
        with quiet():
            reference = program.module(check_guards=False)
            self._module = quantized.module(check_guards=False)
            self._reference_kept, self._kept = take_out(reference), take_out(self._module)
        self._constants: dict[str, Any] = {}
        self._reads = _reads_of(self._module, reference)
        graph = self._module.graph
        self._entries = [n for n in graph.nodes if n.op == "placeholder"]
        self.nodes = [n for n in graph.nodes if n in self._reads and n.op == "call_function"]
        self._output = graph.output_node()
        self.operators = _operators(self.nodes, self._reads)
        self._free = frozenset(self.nodes) - {n for o in self.operators for n in o.nodes}
        self.samples = _taken(samples, self.nodes, bool(self._kept.buffers))
        with torch.no_grad(), one_thread():
            self._targets = self._true_outputs(reference)
            everything = {node: "float" for operator in self.operators for node in operator.nodes}
            self.quantized = self._base({})
            self.exact = self._base(everything)  # type: ignore[arg-type]

    # ------------------------------------------------------------ what is asked

    def quality(
        self,
        inside: Mapping[fx.Node, Bits],
        base: Run | None = None,
        rescaled: Mapping[fx.Node, Rescaled] | None = None,
    ) -> Quality:
        """Of the outputs with these operators in other types. base: the run that most is alike with, `quantized` by
        default. rescaled: values that are rounded in another way, by their producers."""
        with torch.no_grad(), one_thread():
            return self._judged(self._outputs(inside, base or self.quantized, rescaled or {}))

    def left(self, operators: Iterable[Operator], bits: Bits) -> Quality:
        """The outputs' quality with these operators in other types."""
        return self.quality({node: bits for operator in operators for node in operator.nodes})

    def alone(self, operators: Iterable[Operator]) -> Quality:
        """The outputs' quality with the constants and the results of these operators alone rounded; not what they read
        of others."""
        own = {node for operator in operators for node in operator.nodes}
        given = {read.source for node in own for read in self._reads[node].values()} - own
        inside = {n: b for n, b in self.exact.inside.items() if n not in own}
        return self.quality(inside, self.exact, dict.fromkeys(given, _unchanged))

    def rounded(self, node: fx.Node, how: Rescaled) -> Quality:
        """The outputs' quality with this node's value alone rounded."""
        return self.quality(self.exact.inside, self.exact, {node: how})

    @property
    def inputs(self) -> list[tuple[fx.Node, Step]]:
        """The model's inputs that are rounded, and how."""
        steps = [(node, self.step_of(node)) for node in self._entries]
        return [(node, step) for node, step in steps if step is not None]

    def values(self, node: fx.Node, run: Run) -> torch.Tensor | None:
        """What the node computes, (samples, ...); None where that is no tensor of real numbers."""
        found = [values[node] for values in run.values]
        if not all(isinstance(v, torch.Tensor) and v.is_floating_point() for v in found):
            return None
        return torch.stack(found)

    def reads(self, node: fx.Node) -> list[Read]:
        """The arguments of a node that are rounded, or may be."""
        return list(self._reads[node].values())

    def step_of(self, node: fx.Node) -> Step | None:
        """The parameters of the node's result, where it has any."""
        readers = [*node.users, *(user for q in node.users for user in q.users)]
        for reader in {r for user in readers for r in (user, *user.users)}:
            for read in self._reads.get(reader, {}).values():
                if read.source is node and read.first is not None:
                    return read.first
        return None

    def readers(self, node: fx.Node) -> list[fx.Node]:
        """The nodes that read the node's result, rounded or not."""
        return [n for n in self.nodes if any(read.source is node for read in self._reads[n].values())]

    # ------------------------------------------------------------ how it is computed

    def _true_outputs(self, reference: fx.GraphModule) -> list[list[torch.Tensor]]:
        buffers = [buffer.first for buffer in self._reference_kept.buffers]
        results = []
        for sample in self.samples:
            found = pytree.tree_leaves(fx.Interpreter(reference).run(*sample, *buffers))
            count = len(found) - len(buffers)
            results.append(found[:count])
            buffers = found[count:]
        return results

    def _base(self, inside: Mapping[fx.Node, Bits]) -> Run:
        run = Run(inside, [])
        state: list[Any] = [buffer.first for buffer in self._kept.buffers]
        for sample in self.samples:
            values: dict[fx.Node, Any] = dict(zip(self._entries, (*sample, *state), strict=True))
            for node in self.nodes:
                values[node] = self._computed(node, values, inside, {})
            state = self._results(values, inside, {})[1]
            run.values.append(values)
        return run

    def _outputs(
        self, inside: Mapping[fx.Node, Bits], base: Run, rescaled: Mapping[fx.Node, Rescaled]
    ) -> list[list[torch.Tensor]]:
        changed = {n for n in self.nodes if inside.get(n) != base.inside.get(n)} | rescaled.keys()
        if self._kept.buffers:
            changed |= set(self._entries[-len(self._kept.buffers) :])
        anew: dict[fx.Node, None] = {}
        for node in self.nodes:
            sources = {read.source for read in self._reads[node].values()}
            if node in changed or not sources.isdisjoint(changed) or not sources.isdisjoint(anew.keys()):
                anew[node] = None
        found = []
        state: list[Any] = [buffer.first for buffer in self._kept.buffers]
        for known in base.values:
            values = dict(known)
            values.update(zip(self._entries[len(self._entries) - len(state) :], state, strict=True))
            for node in anew:
                values[node] = self._computed(node, values, inside, rescaled)
            results, state = self._results(values, inside, rescaled)
            found.append(results)
        return found

    def _results(
        self,
        values: Mapping[fx.Node, Any],
        inside: Mapping[fx.Node, Bits],
        rescaled: Mapping[fx.Node, Rescaled],
    ) -> tuple[list[Any], list[Any]]:
        leaves = [
            self._read(leaf, self._output, values, inside, rescaled)
            for leaf in pytree.tree_leaves(self._output.args[0])
        ]
        count = len(leaves) - len(self._kept.buffers)
        return leaves[:count], leaves[count:]

    def _computed(
        self,
        node: fx.Node,
        values: Mapping[fx.Node, Any],
        inside: Mapping[fx.Node, Bits],
        rescaled: Mapping[fx.Node, Rescaled],
    ) -> Any:
        args, kwargs = fx.map_arg(
            (node.args, node.kwargs), lambda source: self._read(source, node, values, inside, rescaled)
        )
        assert callable(node.target)
        return node.target(*args, **kwargs)

    def _read(
        self,
        argument: Any,
        reader: fx.Node,
        values: Mapping[fx.Node, Any],
        inside: Mapping[fx.Node, Bits],
        rescaled: Mapping[fx.Node, Rescaled],
    ) -> Any:
        read = self._reads[reader].get(argument) if isinstance(argument, fx.Node) else None
        if read is None:
            return argument
        own = inside.get(reader)
        if read.constant is not None:
            if read.exact is None or own is None or (own == "int16" and read.first is None):
                return read.constant
            return (
                read.first.in_int16(read.exact) if own == "int16" and read.first is not None else read.exact
            )
        source = read.source
        value = values[source] if source in values else self._constant(source)
        if read.first is None or not isinstance(value, torch.Tensor):
            return value
        if source in rescaled:
            return rescaled[source](value)
        # Whatever stays float in the program is as if it had been left so; an output is as its producer makes it.
        made = "float" if source in self._free or source.op == "placeholder" else inside.get(source)
        if reader is self._output or reader in self._free:
            own = made
        wide = own in ("float", "int16") and made in ("float", "int16")
        if wide:
            return read.first.in_int16(value) if "int16" in (own, made) and made != "float" else value
        if read.last is None or made not in ("float", "int16"):
            value = read.first.rounded(value)
        if read.last is not None and own not in ("float", "int16"):
            value = read.last.rounded(value)
        return value

    def _constant(self, node: fx.Node) -> Any:
        name = str(node.target)
        if name not in self._constants:
            value: Any = self._module
            for part in name.split("."):
                value = getattr(value, part)
            self._constants[name] = value.detach() if isinstance(value, torch.Tensor) else value
        return self._constants[name]

    def _judged(self, found: list[list[torch.Tensor]]) -> Quality:
        pairs = [
            (np.stack([t.numpy() for t in exact]), np.stack([t.numpy() for t in answers]))
            for exact, answers in zip(zip(*self._targets, strict=True), zip(*found, strict=True), strict=True)
        ]
        real = [pair for pair in pairs if pair[0].dtype.kind == "f"]
        same = [exact == values for exact, values in pairs if exact.dtype.kind != "f"]
        equal = min((float(values.mean()) for values in same), default=1.0)
        return Quality(tuple(compare(*pair) for pair in real), len(found), equal)


def _unchanged(value: torch.Tensor) -> torch.Tensor:
    return value


# ---------------------------------------------------------------- reading a quantized graph


def _named(node: object, word: str) -> bool:
    return isinstance(node, fx.Node) and node.op == "call_function" and f".{word}_per_" in str(node.target)


def _reads_of(module: fx.GraphModule, reference: fx.GraphModule) -> dict[fx.Node, dict[fx.Node, Read]]:
    """Of each node that computes, and of the output: argument → what is read there."""
    exact = {
        origin_of(node).key: _arguments(node) for node in reference.graph.nodes if node.op == "call_function"
    }
    reads: dict[fx.Node, dict[fx.Node, Read]] = {}
    for node in module.graph.nodes:
        if (
            node.op not in ("call_function", "output")
            or _named(node, "quantize")
            or _named(node, "dequantize")
        ):
            continue
        originals = exact.get(origin_of(node).key, []) if node.op == "call_function" else []
        arguments = _arguments(node)
        found = {}
        for place, argument in enumerate(arguments):
            original = originals[place] if len(originals) == len(arguments) else None
            found[argument] = _read_of(
                module, argument, None if original is None else get_constant(reference, original)
            )
        if any(read.first is not None or read.constant is not None for read in found.values()):
            for place, original in enumerate(originals if len(originals) == len(arguments) else ()):
                plain = found[arguments[place]]
                if plain.first is None and plain.constant is None:
                    found[arguments[place]] = _changed(module, plain, get_constant(reference, original))
        reads[node] = found
    return reads


def _arguments(node: fx.Node) -> list[fx.Node]:
    return [leaf for leaf in pytree.tree_leaves((node.args, node.kwargs)) if isinstance(leaf, fx.Node)]


def _read_of(module: fx.GraphModule, argument: fx.Node, exact: torch.Tensor | None) -> Read:
    steps: list[Step] = []
    node = argument
    while _named(node, "dequantize"):
        before = node.args[0]
        assert isinstance(before, fx.Node)
        if not _named(before, "quantize"):
            constant = _folded(module, node)
            return Read(before, _step(node), None, constant, exact if _is_image(constant, exact) else None)
        step = _step(before)
        if step is None:
            return Read(argument)  # parameters of run time: as the program has it
        steps.insert(0, step)
        node = before.args[0]  # type: ignore[assignment]
    if not steps:
        return Read(node)
    return Read(node, steps[0], steps[-1] if len(steps) > 1 else None)


def _changed(module: fx.GraphModule, read: Read, exact: torch.Tensor | None) -> Read:
    """Of a constant that is not rounded, a bias: as quantizing has corrected it, and in float."""
    constant = get_constant(module, read.source)
    if constant is None or exact is None or constant.shape != exact.shape or torch.equal(constant, exact):
        return read
    return Read(read.source, None, None, constant.detach(), exact.detach())


def _is_image(constant: torch.Tensor | None, exact: torch.Tensor | None) -> bool:
    """Whether the one is the other, rounded; where constants were rewritten it is not."""
    if constant is None or exact is None or constant.shape != exact.shape:
        return False
    lost, whole = ((constant - exact.detach()) ** 2).sum(), (exact.detach() ** 2).sum()
    return bool(lost <= MOST_ROUNDED * whole)


def _step(node: fx.Node) -> Step | None:
    """The parameters of a quantize or dequantize node; None where it has several, or finds them when it runs."""
    numbers = node.args[1:5]
    if len(numbers) < 4 or not all(isinstance(number, int | float) for number in numbers):
        return None
    scale, zero_point, low, high = numbers
    return Step(float(scale), int(zero_point), int(low), int(high))  # type: ignore[arg-type]


def _folded(module: fx.GraphModule, dequantize: fx.Node) -> torch.Tensor | None:
    """A constant that is held in integers, as real numbers."""
    source = dequantize.args[0]
    if not isinstance(source, fx.Node) or source.op != "get_attr":
        return None
    args = [get_constant(module, arg) if isinstance(arg, fx.Node) else arg for arg in dequantize.args]
    assert callable(dequantize.target)
    return dequantize.target(*args, **dequantize.kwargs)  # type: ignore[no-any-return]


def _operators(
    nodes: Sequence[fx.Node], reads: Mapping[fx.Node, Mapping[fx.Node, Read]]
) -> tuple[Operator, ...]:
    """Those that are quantized, in the program's order."""
    grouped: dict[fx.Node, list[fx.Node]] = {}
    home: dict[fx.Node, fx.Node] = {}
    read_by: dict[fx.Node, int] = {}
    for found in reads.values():
        for read in found.values():
            read_by[read.source] = read_by.get(read.source, 0) + 1
    for node in nodes:
        own = list(reads[node].values())
        source = own[0].source if own else None
        joined = source in home and own[0].first is None and not _is_value(node)
        fused = joined and node.target in CLAMPS and source is not None and read_by[source] == 1
        if (
            source is not None
            and joined
            and (fused or node.target not in KNOWN or "getitem" in str(node.target))
        ):
            home[node] = home[source]
            grouped[home[node]].append(node)
        elif any(read.first is not None or read.constant is not None for read in own):
            home[node] = node
            grouped[node] = [node]
    return tuple(_operator(head, tuple(members)) for head, members in grouped.items())


def _is_value(node: fx.Node) -> bool:
    return node.target in LAYERS


def _operator(head: fx.Node, members: tuple[fx.Node, ...]) -> Operator:
    origin = origin_of(head)
    stack = tuple(path for path, _ in module_stack(head) if path)
    moves = head.target in SAME_AS_INPUT | SEVERAL_OUTPUTS
    return Operator(
        origin.key, origin.aten, stack[-1] if stack else "", stack, origin.source, not moves, members
    )


def _taken(samples: Sequence[Inputs], nodes: Sequence[fx.Node], keeps: bool) -> list[Inputs]:
    elements = sum(
        node.meta["val"].numel() for node in nodes if isinstance(node.meta.get("val"), torch.Tensor)
    )
    room = MOST_ELEMENTS // max(elements, 1)
    count = min(len(samples), max(FEWEST_SAMPLES, min(MOST_SAMPLES, room)))
    step = 1 if keeps else max(1, len(samples) // count)
    return list(samples[::step][:count])
