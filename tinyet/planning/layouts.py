# SPDX-License-Identifier: Apache-2.0
"""Layouts of values between layers that are not row-major: writers and readers agree on them, if the whole is
cheaper."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tinyet.boards.cpus import Target
from tinyet.errors import InternalError
from tinyet.ir import Graph, Node, Tensor
from tinyet.ir.kept import Kept
from tinyet.ir.memoize import memoize
from tinyet.memory import MemoryPlan, check_plan, offsets, plan_memory, schedule
from tinyet.memory.fusion import FusionGroup
from tinyet.memory.split import Split
from tinyet.memory.timeline import AccessSchedule, access_schedule
from tinyet.messages.stages import stage
from tinyet.ops import op_of
from tinyet.opset import NO_LAYOUTS, AccessOrder, AccessOrders, DataLayout, Kernel, Layouts
from tinyet.planning.candidates import Candidate, Chosen

_ALIGN, _SCRATCH_ALIGN = 4, 8
"""Of all plans, in bytes."""
_MOST_PLANS = 256
"""Of a graph's plans that are kept: some tens of kilobytes each."""
_MOST_AGREEMENTS = 24
"""Agreements, those that save most time, that are tried one by one if there is no room for all: each
costs one or two plans of the memory."""


class AccessOrderCache:
    """The kernels' access orders, asked once each: some kernels compare many ways to do their work first."""

    def __init__(self) -> None:
        self._access_orders: dict[tuple[AccessOrders, Node, int], AccessOrder | None] = {}
        self._access_schedules: dict[tuple[AccessOrders, Node], AccessSchedule | None] = {}
        self._replaces: dict[tuple[Callable[[Node, int], bool], Node, int], bool] = {}

    def access_order(self, kernel: Kernel, node: Node, index: int) -> AccessOrder | None:
        """Which part of an input it still reads when it has written a part of its output; None if it promises
        nothing."""
        if kernel.access_order is None:
            return None
        key = kernel.access_order, node, index
        if key not in self._access_orders:
            self._access_orders[key] = kernel.access_order(node, index)
        return self._access_orders[key]

    def access_schedule(self, kernel: Kernel, node: Node) -> AccessSchedule | None:
        """The steps of its call of a node; None if it promises nothing."""
        if kernel.access_order is None:
            return None
        key = kernel.access_order, node
        if key not in self._access_schedules:
            self._access_schedules[key] = access_schedule(node, lambda n, i: self.access_order(kernel, n, i))
        return self._access_schedules[key]

    def replaces(self, kernel: Kernel, node: Node, index: int) -> bool:
        """Whether its output may lie exactly over an input, or over its first bytes."""
        if kernel.replaces is None:
            return False
        key = kernel.replaces, node, index
        if key not in self._replaces:
            self._replaces[key] = kernel.replaces(node, index)
        return self._replaces[key]


def planned(
    graph: Graph,
    chosen: Chosen,
    access_orders: AccessOrderCache,
    data_layouts: Mapping[Tensor, DataLayout] = NO_LAYOUTS,
    fusion_groups: Sequence[FusionGroup] = (),
    first: bool = False,
    in_order: bool = False,
    states_apart: bool = False,
    callers: bool = False,
    split: Split | None = None,
    checked: bool = True,
) -> MemoryPlan:
    """The memory of a graph computed by these candidates, with the layouts of tensors, and calls by rows.
    first: the addresses are the first ones found, not the best; the live bytes are the same. in_order: the calls keep
    the graph's order. states_apart: they share the arena with nothing; callers:
    inputs and outputs lie in the caller's buffers; split: the arena is two pieces; checked: the plan has been checked
    when this returns (`plan_memory`)."""
    stage("planning memory")

    def may_stride(node: Node, tensor: Tensor, pixel_stride: int) -> bool:
        return chosen[node].choice.kernel.may_stride(node, tensor, pixel_stride)

    return plan_memory(
        graph,
        op_of,
        _scratch_of(chosen),
        may_stride=may_stride,
        data_layouts=data_layouts,
        access_order=lambda node, index: access_orders.access_order(chosen[node].choice.kernel, node, index),
        replaces=lambda node, index: access_orders.replaces(chosen[node].choice.kernel, node, index),
        fusion_groups=fusion_groups,
        checked=checked,
        align=_ALIGN,
        scratch_align=_SCRATCH_ALIGN,
        states_apart=states_apart,
        callers=callers,
        split=split,
        called=frozenset(node for node, v in chosen.items() if v.choice.kernel.always_called),
        search_budget=0 if first else offsets.DEFAULT_BUDGET,
        order_budget=0 if in_order else schedule.DEFAULT_BUDGET,
    )


class PlanCache:
    """The plans of one graph's memory that have been made for a search, unchecked."""

    def __init__(self) -> None:
        self._made = Kept[MemoryPlan](_MOST_PLANS, lambda _: 1)

    def planned(
        self,
        graph: Graph,
        chosen: Chosen,
        access_orders: AccessOrderCache,
        fusion_groups: Sequence[FusionGroup],
        *,
        first: bool,
        in_order: bool,
        callers: bool,
    ) -> MemoryPlan:
        """`planned`, made once for all candidates that need the same."""
        # Not the graph, which goes when nobody else has it, and this with it.
        needs = frozenset(
            (node, v.call.scratch_bytes, *_promises(v.choice.kernel)) for node, v in chosen.items()
        )
        return self._made.get(
            (needs, tuple(fusion_groups), first, in_order, callers),
            lambda: planned(
                graph,
                chosen,
                access_orders,
                fusion_groups=fusion_groups,
                first=first,
                in_order=in_order,
                callers=callers,
                checked=False,
            ),
        )


@memoize
def plan_cache_of(_graph: Graph) -> PlanCache:
    """A graph's own, as long as the graph is there: searches for other aims, limits and targets have it in common."""
    return PlanCache()


def _promises(kernel: Kernel) -> tuple[Hashable, ...]:
    """What a plan of the memory asks of a kernel, beside scratch memory."""
    takes = None if kernel.layout_support is None else kernel.layout_support.takes
    return takes, kernel.access_order, kernel.replaces, kernel.always_called


def check_planned(graph: Graph, chosen: Chosen, access_orders: AccessOrderCache, plan: MemoryPlan) -> None:
    """Prove a plan that `planned` has made unchecked, of the same candidates. Raises InternalError, as `check_plan`."""
    check_plan(
        graph,
        plan,
        op_of,
        _scratch_of(chosen),
        align=_ALIGN,
        scratch_align=_SCRATCH_ALIGN,
        access_order=lambda node, index: access_orders.access_order(chosen[node].choice.kernel, node, index),
        replaces=lambda node, index: access_orders.replaces(chosen[node].choice.kernel, node, index),
    )


def _scratch_of(chosen: Chosen) -> dict[Node, int]:
    """Bytes of scratch memory of the calls that need some."""
    return {node: v.call.scratch_bytes for node, v in chosen.items() if v.call.scratch_bytes}


@dataclass(frozen=True)
class Agreement:
    """A tensor in a layout. candidates: of its writer and its readers. saved: time."""

    tensor: Tensor
    data_layout: DataLayout
    candidates: Chosen
    saved: int


def saved_by(agreements: Sequence[Agreement]) -> int:
    """Time that all of them save."""
    return sum(agreement.saved for agreement in agreements)


def laid_out(
    graph: Graph,
    chosen: Chosen,
    plan: MemoryPlan,
    agreements: Sequence[Agreement],
    most: int | None,
    target: Target,
    access_orders: AccessOrderCache,
) -> Iterator[tuple[dict[Node, Candidate], MemoryPlan]]:
    """The candidates and the memory with each layout of the values: all row-major first; then as agreed on, where that
    saves time and the arena has no more than `most` bytes, with all agreements or as many as have room, the best first.

    Candidates of layers whose tensors do not lie row-major have calls for that. Plans that are made here are not
    checked.
    """
    yield _lowered(chosen, plan, target), plan
    if not agreements:
        return
    outside = plan.buffers_from is not None
    found, lying = _with(graph, chosen, agreements, access_orders, plan.fusion_groups, callers=outside)
    if most is not None and lying.arena_bytes > most:
        taken: list[Agreement] = []
        for agreement in agreements[:_MOST_AGREEMENTS]:
            _, tried = _with(
                graph,
                chosen,
                [*taken, agreement],
                access_orders,
                plan.fusion_groups,
                first=True,
                callers=outside,
            )
            if tried.arena_bytes > most >= tried.lower_bound:
                _, tried = _with(
                    graph, chosen, [*taken, agreement], access_orders, plan.fusion_groups, callers=outside
                )
            if tried.arena_bytes <= most:
                taken.append(agreement)
        if not taken:
            return
        found, lying = _with(graph, chosen, taken, access_orders, plan.fusion_groups, callers=outside)
        if lying.arena_bytes > most:
            return
    yield _lowered(found, lying, target), lying


def _with(
    graph: Graph,
    chosen: Chosen,
    agreements: Sequence[Agreement],
    access_orders: AccessOrderCache,
    fusion_groups: Sequence[FusionGroup],
    *,
    first: bool = False,
    callers: bool,
) -> tuple[Chosen, MemoryPlan]:
    found = dict(chosen)
    for agreement in agreements:
        found |= agreement.candidates
    data_layouts = {a.tensor: a.data_layout for a in agreements}
    return found, planned(
        graph, found, access_orders, data_layouts, fusion_groups, first, callers=callers, checked=False
    )


def agreements_of(graph: Graph, chosen: Chosen, plan: MemoryPlan, target: Target) -> list[Agreement]:
    """All agreements that would save time, the best first."""
    found = []
    for writer in plan.calls:
        tensor = writer.outputs[0]
        readers = graph.consumers(tensor)
        if (
            len(readers) != 1
            or readers[0] not in chosen
            or tensor in graph.outputs
            or plan.pixel_stride(tensor)
        ):
            continue
        reader = readers[0]
        data_layout = _common(writer, reader, tensor, chosen)
        if data_layout is None or any(plan.fusion_group(node) is not None for node in (writer, reader)):
            continue  # fusion groups read and write rows
        candidates = {
            writer: _candidate(writer, chosen[writer], Layouts(writes=data_layout), target),
            reader: _candidate(reader, chosen[reader], Layouts(reads=data_layout), target),
        }
        saved = sum(chosen[node].time - c.time for node, c in candidates.items())
        if saved > 0:
            found.append(Agreement(tensor, data_layout, candidates, saved))
    return sorted(found, key=lambda a: -a.saved)


def _common(writer: Node, reader: Node, tensor: Tensor, chosen: Chosen) -> DataLayout | None:
    """The first layout of the writer's kernel that both take for the tensor between them."""
    support = chosen[writer].choice.kernel.layout_support
    for found in () if support is None else support.data_layouts:
        if all(chosen[node].choice.kernel.takes_layout(node, tensor, found) for node in (writer, reader)):
            return found
    return None


def _candidate(node: Node, candidate: Candidate, layouts: Layouts, target: Target) -> Candidate:
    """The candidate's kernel for the layouts."""
    kernel = candidate.choice.kernel
    if kernel.layout_support is None:
        raise InternalError(f"{kernel.symbol} takes only what is row-major", node.where)
    call = kernel.layout_support.lower(node, target, layouts)
    return replace(candidate, call=call, cost=kernel.cost(node, target, call, layouts))


def _lowered(chosen: Chosen, plan: MemoryPlan, target: Target) -> dict[Node, Candidate]:
    """The candidates, with calls for the layouts that tensors have in a plan."""
    found = dict(chosen)
    for node in plan.calls:
        if plan.fusion_group(node) is not None:
            continue
        layouts = plan.layouts(node)
        # Those of layouts alone have been lowered, to learn what they cost.
        if layouts.input or layouts.output:
            found[node] = _candidate(node, chosen[node], layouts, target)
            if found[node].call.scratch_bytes != chosen[node].call.scratch_bytes:
                raise InternalError(f"{found[node].call.kernel} needs other scratch memory", node.where)
    return found
