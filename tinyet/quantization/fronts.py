# SPDX-License-Identifier: Apache-2.0
"""What a network computes before its first learned layer, mended where eight bits would spoil it.

A scaler, a log-mel image, features of a window: there, powers stand beside silence and incomes beside volts, and one
scale an int8 tensor leaves nothing of the smaller ones. What the first learned layers give is measured with the
front in integers (`trial`). Where that is good enough, nothing changes. Where not, two things help, and neither changes
what the float model computes:

- Columns of a learned layer's input that differ in size or lie far from 0 are shifted and scaled by powers of two, and
  the layer's weights and bias take that back: W x + b = (W / d) (d (x - m)) + (b + W m).
- Values of the front get more bits: int16 where that holds them, float32 where not even 16 bits do, and int8 still
  wherever that is enough.

Features of signals (`fx.signals`) are not tried: they stay in float32, unless the quantizer was told of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import fx, nn
from torch.export import ExportedProgram

from tinyet.custom import registered
from tinyet.fx.capture import example_inputs_of, re_export
from tinyet.fx.edit import add_call, add_constant, drop_unused, get_constant
from tinyet.fx.examples import Inputs
from tinyet.fx.log_filter import quiet
from tinyet.fx.mutable_buffers import take_out
from tinyet.fx.origins import op_name, origin_of, stamp_node
from tinyet.fx.recurrent_ops import RECURRENT
from tinyet.fx.signals import is_signal
from tinyet.ir import Note
from tinyet.quantization import annotate as rules
from tinyet.quantization.config import QuantConfig, int16_config
from tinyet.quantization.pixels import pixels_of
from tinyet.quantization.quantizer import TinyetQuantizer
from tinyet.quantization.threads import one_thread
from tinyet.quantization.trial import FLOAT, Trial

aten = torch.ops.aten

ENOUGH = 18.0
"""dB of what a learned layer gives, with its front in integers: where less is left, accuracy suffers (`quality`)."""
AIM = 30.0
"""dB that a mended front leaves, if it can: its noise is then small beside that of the layers behind it."""
WORTH = 6.0
"""dB that a change must bring: a bit."""
MOST_SAMPLES = 32
_DENSE: frozenset[object] = frozenset({aten.linear.default, aten.conv1d.default, aten.conv2d.default})


@dataclass(frozen=True)
class Mended:
    """program: the same function; the very program where no columns were rescaled. quantizer: with more bits for some
    values; the very quantizer where none needs them. notes: what was done, and where. module: the program's, where one
    was made that is as it was."""

    program: ExportedProgram
    quantizer: TinyetQuantizer
    notes: tuple[Note, ...] = ()
    module: fx.GraphModule | None = None


@dataclass(frozen=True, eq=False)
class _Front:
    """nodes: in the graph's order; they read inputs of the model, constants and each other. readers: the learned
    layers behind them. bits: of what readers read."""

    nodes: tuple[fx.Node, ...]
    readers: tuple[fx.Node, ...]
    bits: int


def mend_fronts(
    program: ExportedProgram, quantizer: TinyetQuantizer, samples: Sequence[Inputs], *, rescale: bool = True
) -> Mended:
    """What is to be quantized, and how, so that no front is spoilt. What the quantizer was told of a place by name,
    operator or type stays as it was told.

    program: of `capture`, not quantized. samples: inputs of the program's shapes; MOST_SAMPLES of them are looked at.
    rescale: columns, too, which changes the program; otherwise types alone.
    """
    step = max(len(samples) / MOST_SAMPLES, 1)
    chosen = [samples[int(i * step)] for i in range(min(len(samples), MOST_SAMPLES))]
    with quiet():
        module = program.module(check_guards=False)
        kept = take_out(module)
    if kept.buffers or not chosen:
        return Mended(program, quantizer)
    spoilt: dict[fx.Node, float] = {}
    with torch.no_grad(), one_thread():
        for front in _fronts(module, quantizer):
            trial = Trial(module, front.nodes, front.readers, chosen)
            before = trial.quality(_given_bits(front, quantizer), front.bits)
            if before >= ENOUGH:
                continue
            spoilt.update(dict.fromkeys(front.readers, before))
            if rescale and trial.quality(dict.fromkeys(front.nodes, FLOAT), front.bits) < ENOUGH:
                _rescale_columns(module, front, trial)
        if not spoilt:
            return Mended(program, quantizer, module=module)
        return _with_types(program, module, quantizer, chosen, {n.name: db for n, db in spoilt.items()})


def _with_types(
    program: ExportedProgram,
    module: fx.GraphModule,
    quantizer: TinyetQuantizer,
    samples: Sequence[Inputs],
    before: Mapping[str, float],
) -> Mended:
    """The mended program and quantizer: module is the program's, perhaps with columns rescaled; before: dB by the name
    of each reader that a spoilt front has."""
    rescaled = False
    more: dict[str, QuantConfig | None] = {}
    notes = []
    for front in _fronts(module, quantizer):
        worst = min((before[r.name] for r in front.readers if r.name in before), default=math.inf)
        if worst >= ENOUGH:
            continue
        trial = Trial(module, front.nodes, front.readers, samples)
        types, after = _choose(trial, front, quantizer)
        if after < worst + WORTH:
            continue
        rescaled |= any(_is_ours(node) for node in front.nodes)
        given = _given_bits(front, quantizer)
        changed = {node: bits for node, bits in types.items() if bits != given[node]}
        for node, bits in changed.items():
            key = origin_of(node).key
            if key in more and (more[key] is None or bits == 16):
                continue  # several nodes of one operator have the widest type
            more[key] = None if bits == FLOAT else int16_config()
        notes.append(_note(front, changed, _fewest(front, given), worst, after))
    if not notes:
        return Mended(program, quantizer)
    if rescaled:
        drop_unused(module)
        program = re_export(module, example_inputs_of(program))
    return Mended(program, quantizer.with_operators(more), tuple(notes))


def note_signals(program: ExportedProgram, quantizer: TinyetQuantizer) -> tuple[Note, ...]:
    """What is left in float because it computes features of signals, if the quantizer was told nothing of it."""
    left = [
        node
        for node in program.graph.nodes
        if is_signal(node) and node.target in rules.KNOWN and quantizer.config_of(node) is None
    ]
    if not left:
        return ()
    first, last = (origin_of(node).key for node in (left[0], left[-1]))
    which = "one operator" if len(left) == 1 else f"{len(left)} operators, {first} … {last},"
    return (
        Note(
            f"features of signals in front of the first learned layer stay in float32: {which} which eight bits would "
            "spoil",
            origin_of(left[0]),
        ),
    )


# ---------------------------------------------------------------- which nodes


def _is_learned(module: fx.GraphModule, node: fx.Node) -> bool:
    """Whether the node is a layer with weights of its own; a matrix in a buffer is part of a front."""
    if (
        node.target in RECURRENT
        or node.target is aten.embedding.default
        or registered(node.target) is not None
    ):
        return True
    if node.target not in rules.WEIGHTED:
        return False
    return isinstance(get_constant(module, node.args[1]), nn.Parameter)


def _fronts(module: fx.GraphModule, quantizer: TinyetQuantizer) -> list[_Front]:
    """The fronts of a graph, those that have values in common as one. Not of images made of bytes, whose parameters
    are known."""
    inside: set[fx.Node] = set()
    readers: list[fx.Node] = []
    for node in module.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            inside.add(node)
        elif node.op == "call_function" and all(source in inside for source in node.all_input_nodes):
            if not _is_learned(module, node):
                inside.add(node)
            elif rules.is_float(node.args[0]):
                readers.append(node)  # one that stays float, too: int8 before it spoils what it reads
    pixels = pixels_of(module)
    fronts: list[_Front] = []
    for together in _groups(readers):
        needed = {n for reader in together for n in _before(reader)}
        nodes = tuple(n for n in module.graph.nodes if n in needed and n.op == "call_function")
        if any(n in pixels for n in needed):
            continue
        bits = min(_bits(quantizer.config_of(reader)) or FLOAT for reader in together)
        fronts.append(_Front(nodes, tuple(together), bits))
    return fronts


def _before(node: fx.Node) -> Iterator[fx.Node]:
    """All that the node's value hangs on but constants, each once."""
    seen: set[fx.Node] = set()
    waiting = list(node.all_input_nodes)
    while waiting:
        source = waiting.pop()
        if source not in seen and source.op != "get_attr":
            seen.add(source)
            waiting.extend(source.all_input_nodes)
            yield source


def _groups(readers: Sequence[fx.Node]) -> list[list[fx.Node]]:
    """The readers, those together whose values hang on one."""
    groups: list[tuple[set[fx.Node], list[fx.Node]]] = []
    for reader in readers:
        needed = set(_before(reader))
        touching = [group for group in groups if group[0] & needed]
        groups = [group for group in groups if not group[0] & needed]
        members = [node for _, nodes in touching for node in nodes]
        groups.append((needed.union(*(nodes for nodes, _ in touching)), [*members, reader]))
    return [nodes for _, nodes in groups]


def _bits(config: QuantConfig | None) -> int | None:
    """Of activations; None for what stays float or is quantized at run time."""
    return None if config is None or config.dynamic else torch.iinfo(config.activation.dtype).bits


def _given_bits(front: _Front, quantizer: TinyetQuantizer) -> dict[fx.Node, int]:
    """The types that the quantizer gives as it is."""
    return {
        n: (_bits(quantizer.config_of(n)) or FLOAT) if n.target in rules.KNOWN else FLOAT for n in front.nodes
    }


def _fewest(front: _Front, given: Mapping[fx.Node, int]) -> int:
    """Bits that the front has at least somewhere, as it is given."""
    return min([front.bits, *given.values()])


# ---------------------------------------------------------------- columns


def _is_ours(node: fx.Node) -> bool:
    return bool(node.meta.get("tinyet_columns"))


def _rescale_columns(module: fx.GraphModule, front: _Front, trial: Trial) -> None:
    """Shift and scale the columns of what the front's readers read, where their weights can take that back."""
    for reader in front.readers:
        source = reader.args[0]
        weight = get_constant(module, reader.args[1]) if reader.target in _DENSE else None
        if weight is None or not isinstance(source, fx.Node) or not _is_dense(reader, weight):
            continue
        axis = source.meta["val"].ndim - 1 if reader.target is aten.linear.default else 1
        columns = torch.cat([v.movedim(axis, 0).flatten(1) for v in trial.values_of(source)], 1)
        low, high = columns.amin(1), columns.amax(1)
        padded = reader.target is not aten.linear.default and _argument(reader, 4, [0]) not in ([0], [0, 0])
        shift = torch.zeros_like(low) if padded else _shifts(low, high)
        size = torch.maximum((low - shift).abs(), (high - shift).abs())
        factor = torch.where(size > 0, torch.exp2(-torch.floor(torch.log2(size.clamp(min=1e-30)))), 1.0)
        if bool((factor == factor[0]).all()) and not bool(shift.any()):
            continue
        _insert(module, reader, source, axis, shift, factor, weight)


def _is_dense(reader: fx.Node, weight: torch.Tensor) -> bool:
    source = reader.args[0]
    assert isinstance(source, fx.Node)
    if reader.target is aten.linear.default:
        return True
    return weight.ndim == source.meta["val"].ndim and _argument(reader, 6, 1) == 1


def _argument(node: fx.Node, index: int, default: object) -> object:
    return node.args[index] if len(node.args) > index else default


def _shifts(low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """Middles of the columns that lie off 0 by more than they move, to a bit or two of how far they move: few digits,
    so that little of a float32 is lost to them."""
    half, middle = (high - low) / 2, (high + low) / 2
    grain = torch.exp2(torch.floor(torch.log2(half.clamp(min=1e-30))))
    return torch.where((middle.abs() > half) & (half > 0), (middle / grain).round() * grain, 0.0)


def _insert(
    module: fx.GraphModule,
    reader: fx.Node,
    source: fx.Node,
    axis: int,
    shift: torch.Tensor,
    factor: torch.Tensor,
    weight: torch.Tensor,
) -> None:
    value = source
    shape = [1] * source.meta["val"].ndim
    shape[axis] = -1
    for name, target, numbers in (
        ("shift", aten.sub.Tensor, shift if bool(shift.any()) else None),
        ("factor", aten.mul.Tensor, factor),
    ):
        if numbers is None:
            continue
        constant = add_constant(module, reader, f"{reader.name}_{name}", numbers.float().reshape(shape))
        value = add_call(module.graph, reader, target, (value, constant), reader)
        stamp_node(value, replace(origin_of(reader), aten=op_name(value), key=f"{reader.name}_{name}"))
        value.meta["tinyet_columns"] = True
    columns = weight.detach().double()
    divisor = factor.reshape([1, -1] + [1] * (columns.ndim - 2))
    taken = columns.flatten(2).sum(2) if columns.ndim > 2 else columns
    scaled = nn.Parameter((columns / divisor).float(), weight.requires_grad)
    arguments = list(reader.args)
    arguments[0] = value
    arguments[1] = add_constant(module, reader, f"{reader.name}_weight_rescaled", scaled)
    if bool(shift.any()):
        arguments += [None] * (3 - len(arguments))
        bias = get_constant(module, arguments[2])
        offset = taken @ shift + (0.0 if bias is None else bias.detach().double())
        moved = nn.Parameter(offset.float(), weight.requires_grad)
        arguments[2] = add_constant(module, reader, f"{reader.name}_bias_rescaled", moved)
    reader.args = tuple(arguments)


# ---------------------------------------------------------------- types


def _choose(trial: Trial, front: _Front, quantizer: TinyetQuantizer) -> tuple[dict[fx.Node, int], float]:
    """The fewest bits for each node, and the dB that they leave.

    All in float is where it begins. From the readers backward as many nodes as can be get the type that they were
    given, then from the inputs onward; then the same with 16 bits for those that are left. As many as can be: so that
    the result keeps the aim, or a decibel less than all in float gives.
    """
    given = _given_bits(front, quantizer)
    # What rescales columns stands in the layer's module, of which a user may have said something: not of this.
    free = [n for n in front.nodes if (quantizer.is_free(n) or _is_ours(n)) and n.target in rules.KNOWN]
    best = {**given, **dict.fromkeys(free, FLOAT)}
    aim = min(AIM, trial.quality(best, front.bits) - 1.0)
    behind, ahead = _distances(front)
    for bits in sorted({_fewest(front, given), 16}):
        for distance in (behind, ahead):
            best = _narrowed(trial, front, best, free, distance, bits, aim)
    return best, trial.quality(best, front.bits)


def _narrowed(
    trial: Trial,
    front: _Front,
    types: dict[fx.Node, int],
    free: Sequence[fx.Node],
    distance: Mapping[fx.Node, int],
    bits: int,
    aim: float,
) -> dict[fx.Node, int]:
    """With so many bits for all that is near enough: the farthest that keeps the aim, by bisection."""

    def near(limit: int) -> dict[fx.Node, int]:
        changed = {n: min(types[n], bits) for n in free if distance[n] < limit and _has_form(n, bits)}
        return {**types, **changed}

    low, high = 0, max(distance.values(), default=-1) + 1
    while low < high:
        limit = (low + high + 1) // 2
        if trial.quality(near(limit), front.bits) >= aim:
            low = limit
        else:
            high = limit - 1
    return near(low)


def _has_form(node: fx.Node, bits: int) -> bool:
    """Whether kernels compute it in so many bits: in 16 there is no division by what is computed, and no reciprocal."""
    if bits == 8:
        return True
    divides = (
        node.target is aten.div.Tensor and isinstance(node.args[1], fx.Node) and node.args[1].op != "get_attr"
    )
    return not divides and node.target is not aten.reciprocal.default


def _distances(front: _Front) -> tuple[dict[fx.Node, int], dict[fx.Node, int]]:
    """How many nodes lie at most between each node and the readers, and between the inputs and it."""
    ahead: dict[fx.Node, int] = {}
    for node in front.nodes:
        ahead[node] = max((ahead[s] + 1 for s in node.all_input_nodes if s in ahead), default=0)
    behind: dict[fx.Node, int] = {}
    for node in reversed(front.nodes):
        behind[node] = max((behind[u] + 1 for u in node.users if u in behind), default=0)
    return behind, ahead


def _note(front: _Front, changed: Mapping[fx.Node, int], bits: int, before: float, after: float) -> Note:
    reader = front.readers[0]
    origin = origin_of(reader)
    done = []
    if any(_is_ours(node) for node in front.nodes):
        done.append("its columns are shifted and scaled, which its weights take back")
    for more, words in ((16, "in int16"), (FLOAT, "in float")):
        named = [node for node, own in changed.items() if own == more and not _is_ours(node)]
        names = dict.fromkeys(origin_of(node).key for node in named)  # as --op and set_operator take them
        if names:
            done.append(f"{', '.join(names)} {words}")
    return Note(
        f"in front of {origin.module or op_name(reader)}, {bits} bits leave {max(before, -99.0):.1f} dB of what "
        f"it computes, {ENOUGH:.0f} are enough; {after:.1f} dB with {'; '.join(done)}",
        origin,
    )
