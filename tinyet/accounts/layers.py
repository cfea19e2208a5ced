# SPDX-License-Identifier: Apache-2.0
"""Each call of the generated code, with what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tinyet.accounts.trees import TreesAnalysis, trees_of
from tinyet.boards.cpus import Target
from tinyet.budget.code import Function, call_bytes, plain_name
from tinyet.build.size import Size
from tinyet.deployment import Deployment
from tinyet.emit.symbols import Symbols
from tinyet.ir import Node, Tensor, place_of
from tinyet.memory import MemoryPlan
from tinyet.opset.cost import constant_bytes
from tinyet.planning.decision import Decision


@dataclass(frozen=True)
class CandidateAnalysis:
    """A kernel that could compute a layer, and what it says that costs: instructions and estimated cycles of a call,
    bytes of flash (constants, code of its own, shared code that may be there already), scratch in the arena. None: it
    does not say."""

    kernel: str
    delegate: str
    instructions: int | None
    cycles: int | None
    constant_bytes: int
    code_bytes: int | None
    shared_bytes: int | None
    scratch_bytes: int

    @property
    def flash_bytes(self) -> int:
        """Estimated flash, all code counted."""
        return self.constant_bytes + (self.code_bytes or 0) + (self.shared_bytes or 0)


@dataclass(frozen=True)
class LayerAnalysis:
    """One call of the generated code. Bytes: `constant_bytes` and `code_bytes` in flash, `output_bytes` and
    `scratch_bytes` in the arena. code_bytes: of its call, and of the function that was made for it where no layer
    before it has the same; None where that is not stated. linked_bytes: of its constants and that function in the
    firmware, None where it is not built. name: as every report names it; value: the tensor that it computes; runs:
    how often its call is made in an inference; form: how
    that lies in the arena, empty for row-major; over: the inputs that it lies partly over, written row by row while
    they are read; line: `file:line`, source: the line's text behind it, both empty where they are not known.
    instructions, cycles: stated for its kernel, the cycles as estimated for the board, or None.
    reads: the layers whose values it reads, by index, -1 for the model's inputs and states; call: its C, as a project
    with static memory has it; low, high: the least and the largest real number that its first output can hold, None
    where that is not quantized, or has a scale for each channel; trees: its decision trees, or None.
    candidates: all kernels that could compute it, in the order of asking, that one among them."""

    index: int
    name: str
    value: str
    op: str
    kernel: str
    delegate: str
    dtype: str
    shape: tuple[int, ...]
    form: str
    over: tuple[str, ...]
    macs: int
    constant_bytes: int
    code_bytes: int | None
    linked_bytes: int | None
    output_bytes: int
    scratch_bytes: int
    refusals: tuple[str, ...]
    line: str
    source: str
    instructions: int | None
    cycles: int | None
    candidates: tuple[CandidateAnalysis, ...]
    runs: int
    reads: tuple[int, ...]
    call: str
    low: float | None
    high: float | None
    trees: TreesAnalysis | None

    @property
    def label(self) -> str:
        """The layer as every report names it."""
        return place_of(self.name, self.line)


def layers_of(
    deployment: Deployment,
    symbols: Symbols,
    functions: Sequence[Function],
    linked: Mapping[str, int] | None,
) -> tuple[LayerAnalysis, ...]:
    """symbols: of the generated code. functions: all of it. linked: bytes by the name in C, of what was built."""
    plan, decision = deployment.plan, deployment.decision
    costs = {node: candidate.cost for node, candidate in decision.chosen.items()}
    made: dict[int, list[Function]] = {}
    for function in (f for f in functions if f.made):
        made.setdefault(function.steps[0].index, []).append(function)
    reads = _reads(deployment)
    ranges = {s: _range(s.node.outputs[0]) for s in deployment.steps}
    return tuple(
        LayerAnalysis(
            index=s.index,
            name=s.name,
            value=s.node.outputs[0].name,
            op=s.node.op,
            kernel=s.choice.kernel.symbol,
            delegate=s.choice.delegate.name,
            dtype=s.choice.kernel.dtypes,
            shape=s.node.outputs[0].shape,
            form=deployment.plan.form(s.node.outputs[0]),
            over=tuple(t.name for t in deployment.plan.over(s.node)),
            macs=s.macs,
            constant_bytes=sum(a.bytes for a in deployment.arrays_of(s)),
            code_bytes=sum_known([call_bytes(deployment, s), *(f.bytes for f in made.get(s.index, ()))]),
            linked_bytes=None
            if linked is None
            else sum(
                linked.get(name, 0)
                for name in (
                    *(name for call in deployment.calls_of(s) for name in symbols.constants.get(call, ())),
                    *(f.name for f in made.get(s.index, ())),
                )
            ),
            output_bytes=sum(_there(plan, t) for t in s.node.outputs),
            scratch_bytes=s.call.scratch_bytes,
            refusals=tuple(str(r) for r in s.choice.refusals),
            line=s.line,
            source=s.source,
            instructions=None if (cost := costs[s.node]) is None else cost.instructions,
            cycles=None if cost is None else cost.cycles,
            candidates=candidate_analyses(decision, s.node, deployment.target),
            runs=s.runs,
            reads=reads[s.node],
            call=symbols.calls[s.index],
            low=ranges[s][0],
            high=ranges[s][1],
            trees=trees_of(s.node),
        )
        for s in deployment.steps
    )


def _reads(deployment: Deployment) -> dict[Node, tuple[int, ...]]:
    """The layers whose values each node reads, through views, which are no layers."""
    index = {step.node: step.index for step in deployment.steps}
    made: dict[Tensor, frozenset[int]] = {}
    found = {}
    for node in deployment.graph.nodes:
        given = [t for t in node.inputs if t is not None and not t.is_constant]
        read = frozenset[int]().union(*(made.get(tensor, {-1}) for tensor in given))
        found[node] = tuple(sorted(read))
        made |= dict.fromkeys(node.outputs, frozenset({index[node]}) if node in index else read)
    return found


def _range(tensor: Tensor) -> tuple[float | None, float | None]:
    """The real numbers at the ends of a quantized tensor's integers."""
    quant, dtype = tensor.type.quant, tensor.type.dtype
    if quant is None or len(quant.scale) > 1 or tensor.type.is_itself:
        return None, None
    half = 1 << (dtype.bits - 1)
    scale, zero_point = quant.one_scale, quant.one_zero_point
    return scale * (-half - zero_point), scale * (half - 1 - zero_point)


def _there(plan: MemoryPlan, tensor: Tensor) -> int:
    """Bytes of the arena that a layer's output takes: of its window, where it passes through one."""
    window = plan.line_buffer(tensor)
    if window is not None:
        return window.bytes
    return plan.size(tensor)


def candidate_analyses(decision: Decision, node: Node, target: Target) -> tuple[CandidateAnalysis, ...]:
    return tuple(
        CandidateAnalysis(
            kernel=candidate.choice.kernel.symbol,
            delegate=candidate.choice.delegate.name,
            instructions=None if candidate.cost is None else candidate.cost.instructions,
            cycles=None if candidate.cost is None else candidate.cost.cycles,
            constant_bytes=constant_bytes(candidate.call, target),
            code_bytes=None if candidate.cost is None else candidate.cost.code,
            shared_bytes=None if candidate.cost is None else sum(candidate.cost.shared.values()),
            scratch_bytes=candidate.call.scratch_bytes,
        )
        for candidate in decision.candidates[node]
    )


def linked_sizes(size: Size) -> dict[str, int]:
    """Bytes of flash by the name in C; of functions of one name in several files the sum."""
    found: dict[str, int] = {}
    for symbol in size.symbols:
        if symbol.section.in_flash:
            name = plain_name(symbol.name)
            found[name] = found.get(name, 0) + symbol.bytes
    return found


def sum_known(numbers: Sequence[int | None]) -> int | None:
    """None where one is not known."""
    known = [n for n in numbers if n is not None]
    return sum(known) if len(known) == len(numbers) else None
