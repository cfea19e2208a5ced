# SPDX-License-Identifier: Apache-2.0
"""The memory of a graph: shared bytes, order of execution, addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tinyet.errors import InternalError
from tinyet.ir import Graph, Node, Tensor
from tinyet.memory import offsets as packing
from tinyet.memory import schedule as ordering
from tinyet.memory.aliases import AliasSets, nothing_owned_twice
from tinyet.memory.apart import place_apart
from tinyet.memory.caller_buffers import CallerBuffers, first_offset
from tinyet.memory.candidate_plan import (
    CandidatePlan,
    FusionRefusedError,
    block_of,
    lifetimes,
    moments_of,
    order_of,
    variables_of,
)
from tinyet.memory.check import check_plan
from tinyet.memory.concat_elision import Group, MayStride, elide_concats, no_stride
from tinyet.memory.fused_node import OP as FUSED_OP
from tinyet.memory.fused_node import (
    access_schedule_of,
    alive_at_calls,
    borders_of,
    fusion_group_of,
    inner_buffer,
    scratch_name,
    with_fused_nodes,
    with_layers,
)
from tinyet.memory.fusion import FusionGroup
from tinyet.memory.inplace import fits_over, overwritten_exactly, replaces_at
from tinyet.memory.live_ranges import LiveRange, gaps, live_range, most_alive
from tinyet.memory.liveness import LiveBytes
from tinyet.memory.plan import MARK, Block, Lifetime, MemoryPlan, Storage
from tinyet.memory.split import Split, place_split
from tinyet.memory.states import States
from tinyet.memory.timeline import (
    AccessSchedule,
    Replaces,
    Timeline,
    access_schedule,
    expected_overlaps,
    no_access_order,
    no_replacing,
    overlapping,
)
from tinyet.memory.views import View, views
from tinyet.opset import NO_LAYOUTS, AccessOrders, DataLayout, Op

_LOOKS_A_CALL = 30
"""The cost of a draft for each call, in steps of the search for an order."""
_TRIAL_BUDGET = 100_000
"""Looks that go into trials of copies that are not expected to help: about half a second."""
_MOST_APART = 16
"""Calls that work in place and are tried without."""
_APART_BUDGET = 10_000
"""Steps of the search for offsets for each of these."""
_PROMISING_BUDGET = 4 * _TRIAL_BUDGET


def plan_memory(
    graph: Graph,
    op_of: Callable[[Node], Op],
    scratch: Mapping[Node, int],
    *,
    may_stride: MayStride = no_stride,
    data_layouts: Mapping[Tensor, DataLayout] = NO_LAYOUTS,
    access_order: AccessOrders = no_access_order,
    replaces: Replaces = no_replacing,
    fusion_groups: Sequence[FusionGroup] = (),
    states_apart: bool = False,
    called: frozenset[Node] = frozenset(),
    callers: bool = False,
    split: Split | None = None,
    checked: bool = True,
    align: int = 4,
    scratch_align: int = 8,
    search_budget: int = packing.DEFAULT_BUDGET,
    order_budget: int = ordering.DEFAULT_BUDGET,
) -> MemoryPlan:
    """Decide storage, order of execution and offsets for one arena.

    Args:
        graph: a verified graph. Inputs are alive from before the first call to their last use.
        op_of: the operator of a node.
        scratch: bytes of scratch memory of each node's call; a node that is missing needs none.
        may_stride: which tensors the kernels can read and write with their pixels apart.
        data_layouts: of tensors that do not lie row-major; none of the graph's own.
        access_order: what a call whose tensors all lie row-major has read of an input by the time it writes its
            output; one may lie partly over the other where that is safe.
        replaces: inputs of such calls where the output may begin, beside those of the operator.
        fusion_groups: calls that are computed by rows, together; no node is in two.
        states_apart: the states lie at the arena's start and share bytes with nothing; inputs and outputs lie at
            multiples of 16. Other models can then have the rest in turns.
        called: nodes whose call is made though their output's bytes lie in an input.
        callers: inputs and outputs lie in the caller's buffers, and inputs are only read.
        split: the arena is two pieces, if both get something; not with states apart, nor with the caller's buffers.
        checked: whether the plan is to be checked; the caller checks it otherwise, if it is used.
        align: every tensor's offset is a multiple of this (a power of two), and of its element's size; of the latter
            alone where its pixels lie apart.
        scratch_align: the same for scratch memory.
        search_budget: steps of the search for offsets; with 0 the first that are found serve, and what lies partly over
            something stays there.
        order_budget: steps of the search for an order; with 0 the calls keep the graph's, and all moves that can be
            done without a call are.

    A view costs no call. A slice or a concatenation costs none either unless its copy makes the arena smaller (a slice
    that outlives a large tensor is better copied out).

    Raises:
        InternalError: a constant among the graph's outputs (a copy must produce it), or a plan that its check refuses.
    """
    for tensor in graph.outputs:
        if tensor.is_constant:
            raise InternalError(
                f"output {tensor.name} is a constant, which has no place in the arena", graph.name
            )
    planner = _Planner(
        with_fused_nodes(graph, fusion_groups, scratch, scratch_align) if fusion_groups else graph,
        op_of,
        scratch,
        may_stride,
        data_layouts,
        access_order,
        replaces,
        align,
        scratch_align,
        order_budget,
        states_apart,
        called,
        callers,
    )
    chosen = planner.best() if order_budget else planner.candidate(called)
    placement = planner.place(chosen, search_budget)
    if search_budget:
        chosen, placement = planner.apart(chosen, placement, search_budget)
    if placement.peak > chosen.bound and chosen.schedule.peak < chosen.schedule.given_peak:
        # Fewer bytes alive do not always make a smaller arena: gaps may eat the gain.
        given = planner.candidate(chosen.copied, chosen.apart, reorder=False)
        other = planner.place(given, search_budget)
        if other.peak < placement.peak:
            chosen, placement = given, other
    start = None
    if split is not None and (pieces := place_split(*planner.unplaced(chosen), split, search_budget)):
        placement, start = replace(pieces[0], lower_bound=placement.lower_bound), pieces[1]
    plan = replace(planner.finish(chosen, placement), second_from=start)
    if fusion_groups:
        plan = with_layers(plan, fusion_groups, placement.offsets, scratch, scratch_align)
    if checked:
        check_plan(
            graph,
            plan,
            op_of,
            scratch,
            access_order=access_order,
            replaces=replaces,
            align=align,
            scratch_align=scratch_align,
        )
    return plan


class _Planner:
    def __init__(
        self,
        graph: Graph,
        op_of: Callable[[Node], Op],
        scratch: Mapping[Node, int],
        may_stride: MayStride,
        data_layouts: Mapping[Tensor, DataLayout],
        access_order: AccessOrders,
        replaces: Replaces,
        align: int,
        scratch_align: int,
        order_budget: int,
        states_apart: bool,
        called: frozenset[Node],
        callers: bool,
    ) -> None:
        self.graph = graph
        self.callers = CallerBuffers(graph, callers)
        self.called = called
        self.states_apart = states_apart
        self.states = States(graph)
        self.ops = {node: op_of(node) if fusion_group_of(node) is None else FUSED_OP for node in graph.nodes}
        self.fusion_groups = {
            node: made
            for node in graph.nodes
            if (made := access_schedule_of(node, scratch, align, scratch_align)) is not None
        }
        self.scratch = {**scratch, **{node: made.inner_bytes for node, made in self.fusion_groups.items()}}
        self.may_stride: MayStride = lambda n, t, pixel_stride: (
            n not in self.fusion_groups and may_stride(n, t, pixel_stride)
        )
        self.data_layouts = data_layouts
        self.access_order = access_order
        self.replaces: Replaces = lambda n, index: n not in self.fusion_groups and replaces(n, index)
        self.align = align
        self.scratch_align = scratch_align
        self.order_budget = order_budget
        self.views = {
            node: found for node in graph.nodes if (found := views(node, self.ops[node])) is not None
        }
        outputs = (t for node in graph.nodes for t in node.outputs)
        self.tensors = tuple(dict.fromkeys((*graph.inputs, *outputs)))
        self.known_schedules: dict[Node, AccessSchedule | None] = {}
        # They stand for the buffers inside them.
        self.of_fusion_groups = {scratch_name(node) for node in self.fusion_groups}

    # ------------------------------------------------------------ choices

    def best(self) -> CandidatePlan:
        """All moves without a call; then moves that are no plain views are tried with one, each that may help, and
        the others as long as the graph is small enough to try whatever there is."""
        best = self.candidate(self.called)
        spent = 0
        for node in self.graph.nodes:
            if node not in best.elided or self.ops[node].view or not best.matters(node):
                continue
            if spent > (_PROMISING_BUDGET if best.may_pay(self.graph, node) else _TRIAL_BUDGET):
                continue
            tried = self.candidate(best.copied | {node})
            spent += tried.schedule.looks + _LOOKS_A_CALL * len(tried.calls)
            if tried.bound < best.bound:
                best = tried
        return best

    def apart(
        self, candidate: CandidatePlan, placement: packing.Placement, budget: int
    ) -> tuple[CandidatePlan, packing.Placement]:
        """If partial overlaps keep the arena above the live bytes: some calls do not work in place, the largest
        first, if that makes the arena smaller.

        An output that begins before its input leaves room only below itself, and in place it cannot go elsewhere. Two
        places for it need more at its own call, and may need less around it.
        """
        if not candidate.timeline.access_schedules:
            return candidate, placement
        size = {
            node: candidate.aliases.size(node.outputs[index])
            for node, (_, index) in candidate.overwrites.items()
        }
        for node in sorted(size, key=lambda n: -size[n])[:_MOST_APART]:
            if placement.peak <= placement.lower_bound:
                break
            tried = self.candidate(candidate.copied, candidate.apart | {node})
            if tried.bound < placement.peak:
                other = self.place(tried, min(budget, _APART_BUDGET))
                if other.peak < placement.peak:
                    candidate, placement = tried, other
        if candidate.apart:
            placement = self.place(candidate, budget)
        return candidate, placement

    def candidate(
        self, copied: frozenset[Node], apart: frozenset[Node] = frozenset(), *, reorder: bool = True
    ) -> CandidatePlan:
        aliases, elided, strided = self.share(copied)
        calls, schedule = self.arrange(aliases, elided, strided, self.order_budget if reorder else 0)
        timeline = Timeline(calls, self.access_schedules(calls, strided))
        overwrites, buffers, live = self.overwrite(aliases, calls, strided, timeline, apart)
        return CandidatePlan(
            copied=copied,
            apart=apart,
            aliases=aliases,
            strided=strided,
            elided=elided,
            calls=calls,
            overwrites=overwrites,
            schedule=schedule,
            buffers=buffers,
            inside=self.of_fusion_groups,
            timeline=timeline,
            bound=live.bound,
            fullest=live.fullest,
            used=moments_of(self.graph, self.tensors, calls).used,
        )

    def share(self, copied: frozenset[Node]) -> tuple[AliasSets, frozenset[Node], dict[Tensor, Group]]:
        """Views and windows: nodes without a call, because their bytes can lie where they are wanted."""
        loose = {t for node in self.fusion_groups if (known := fusion_group_of(node)) for t in known.loose}
        borders = [border for node in self.fusion_groups for border in borders_of(node)]
        anywhere = {b.bytes for b in borders if b.start > 0 or b.rows.tensor not in loose} | loose
        aliases = AliasSets(self.tensors, self.align, anywhere)
        for node in self.fusion_groups:
            fusion_group = fusion_group_of(node)
            base = None if fusion_group is None else fusion_group.base
            if base is not None:
                self.states.refuse_spread(base)
                self.refuse_room(aliases, base)
                aliases.spread(base, base.type.bytes, self.scratch_align)
        for tensor, data_layout in self.data_layouts.items():
            aliases.spread(tensor, data_layout.size(tensor), data_layout.align)
        otherwise = {node for t in self.data_layouts for node in self.graph.consumers(t)}
        self.states.place(aliases)
        strided = elide_concats(self.graph, self.may_stride, copied | otherwise)
        if wrong := self.callers.concats(strided):
            strided = elide_concats(self.graph, self.may_stride, copied | otherwise | wrong)
        elided = set(strided.elided)
        for node in strided.elided:
            aliases.renounce(node.output)
        for group in strided.groups:
            first, *others = group.at
            aliases.spread(first, group.bytes)
            for tensor in others:
                aliases.spread(tensor, group.bytes)
                # Concat elision decides which tensor owns which byte of a pixel.
                aliases.join(first, 0, tensor, 0, lambda _old, _new: True)
        aliases.keep()
        apart = {t: group for group in strided.groups for t in group.at if group.apart(t)}
        for node, moves in self.views.items():
            if node in copied or any(
                t in apart or t in self.data_layouts for t in (*variables_of(node), *node.outputs)
            ):
                continue
            for output in node.outputs:
                aliases.renounce(output)
            united = all(self.unite(aliases, node, move) for move in moves)
            if united and all(self.callers.allow(aliases, t) for t in node.outputs):
                aliases.keep()
                elided.add(node)
            else:
                aliases.undo()
        for node in self.fusion_groups:
            for border in borders_of(node):
                self.refuse_room(aliases, border.rows.tensor)
                joined = aliases.join(border.rows.tensor, border.start, border.bytes, 0, nothing_owned_twice)
                if not joined:
                    raise FusionRefusedError(f"{border.rows.tensor.name} has no room around it")
        aliases.keep()
        return aliases, frozenset(elided), apart

    def refuse_room(self, aliases: AliasSets, tensor: Tensor) -> None:
        """Raise FusionRefusedError for a tensor that has no room around it, because the buffer is the caller's."""
        if self.callers.hold(aliases, tensor):
            raise FusionRefusedError(f"{tensor.name} is in a buffer of the caller's")

    @staticmethod
    def unite(aliases: AliasSets, node: Node, move: View) -> bool:
        source, output = node.input(move.input), node.outputs[move.output]
        return aliases.join(output, move.start, source, move.input_start, nothing_owned_twice)

    # ------------------------------------------------------------ order

    def arrange(
        self, aliases: AliasSets, elided: frozenset[Node], strided: Mapping[Tensor, Group], budget: int
    ) -> tuple[tuple[Node, ...], ordering.Schedule]:
        """Order the calls; with a budget of 0, as the graph has them."""
        roots = aliases.roots()
        number = {root: i for i, root in enumerate(roots)}
        outside = {root for root in roots if self.callers.hold(aliases, root)}
        sizes = [0 if root in outside else packing.align_up(aliases.size(root), self.align) for root in roots]
        calls = [node for node in self.graph.nodes if node not in elided]
        position = {node: i for i, node in enumerate(calls)}
        needs: dict[Tensor, frozenset[int]] = {t: frozenset() for t in self.graph.inputs}
        steps = []
        for node in self.graph.nodes:
            after = frozenset[int]().union(*(needs[t] for t in variables_of(node)))
            if node in elided:
                needs.update(dict.fromkeys(node.outputs, after))
                continue
            after |= {position[reader] for reader in self.states.before(aliases, node, calls)}
            needs.update(dict.fromkeys(node.outputs, frozenset((position[node],))))
            accesses = self.access_schedules([node], strided)
            steps.append(
                ordering.Step(
                    tuple(sorted(after)),
                    tuple(dict.fromkeys(number[aliases.root(t)] for t in variables_of(node))),
                    tuple(dict.fromkeys(number[aliases.root(t)] for t in node.outputs)),
                    packing.align_up(self.scratch.get(node, 0), self.align),
                    tuple(
                        (number[aliases.root(source)], number[aliases.root(output)])
                        for source, output in self.candidates(aliases, node, strided)
                        if aliases.size(source) == source.type.bytes == aliases.size(output)
                        and outside.isdisjoint((aliases.root(source), aliases.root(output)))
                    ),
                    expected_overlaps(aliases, number, accesses.get(node), self.callers.hold, self.align),
                )
            )
        result = ordering.scheduled(
            tuple(steps),
            tuple(sizes),
            frozenset(number[aliases.root(t)] for t in self.graph.inputs),
            frozenset(number[aliases.root(t)] for t in self.graph.outputs),
            budget,
        )
        return tuple(calls[i] for i in result.order), result

    def access_schedules(
        self, calls: Iterable[Node], strided: Mapping[Tensor, Group]
    ) -> dict[Node, AccessSchedule]:
        """Of the calls that have one."""
        found = {}
        for node in calls:
            if node in self.states.kept:
                continue  # its output lies over the state itself
            if node not in self.known_schedules:
                self.known_schedules[node] = self.fusion_groups.get(node) or access_schedule(
                    node, self.access_order
                )
            known = self.known_schedules[node]
            if known is not None and self.dense(node, strided):
                found[node] = known
        return found

    def dense(self, node: Node, strided: Mapping[Tensor, Group]) -> bool:
        """Whether all tensors of a call lie row-major without gaps."""
        return not any(t in strided or t in self.data_layouts for t in (*variables_of(node), *node.outputs))

    def candidates(
        self, aliases: AliasSets, node: Node, strided: Mapping[Tensor, Group]
    ) -> list[tuple[Tensor, Tensor]]:
        """Pairs (input, output) such that the kernel may write the second over the first while reading
        both.

        Another input in the same bytes is all right only if it may be overwritten too and lies exactly
        there. Tensors whose pixels lie apart stay where they are.
        """
        if node in self.states.kept:
            return []  # it lies in its place already
        found: list[tuple[Tensor, Tensor]] = []
        may, larger = set(self.ops[node].inplace), set[Tensor | None]()
        if len(node.outputs) == 1 and self.dense(node, strided):
            may.update(over := [i for i in range(len(node.inputs)) if self.replaces(node, i)])
            larger.update(node.inputs[i] for i in over)
        allowed = [t for i in sorted(may) if (t := node.optional_input(i)) is not None]
        for source in dict.fromkeys(allowed):
            if source.is_constant or source in strided or source in self.data_layouts:
                continue
            start, end = aliases.extent(source)
            others = (
                (t, aliases.extent(t)) for t in variables_of(node) if aliases.root(t) is aliases.root(source)
            )
            safe = all(
                live_range[1] <= start
                or end <= live_range[0]
                or (t in allowed and live_range == (start, end))
                for t, live_range in others
            )
            if safe:
                found += [
                    (source, o)
                    for o in node.outputs
                    if fits_over(o, source, source in larger) and o not in strided | self.data_layouts.keys()
                ]
        return found

    # ------------------------------------------------------------ in place

    def overwrite(
        self,
        aliases: AliasSets,
        calls: Sequence[Node],
        strided: Mapping[Tensor, Group],
        timeline: Timeline,
        apart: frozenset[Node],
    ) -> tuple[dict[Node, tuple[int, int]], list[packing.Buffer], LiveBytes]:
        """Let outputs take the place of inputs that die, if that does not raise the memory in use, except outputs of
        calls that are to be `apart`.

        Changes the layout. Returns (input index, output index) per node that works in place; the buffers: one a block,
        in the order of `aliases.roots()`, then the others; and how many bytes are alive.
        """
        moments = moments_of(self.graph, self.tensors, calls)
        aliases.set_moments(moments.written, moments.used)
        taken: dict[Node, tuple[int, int]] = {}
        blocks = {
            root: self.callers.counted(aliases, root, block_of(aliases, root, moments))
            for root in aliases.roots()
        }
        live = LiveBytes([*blocks.values(), *self.other_buffers(calls)], range(-1, len(calls) + 1))
        for position in range(len(calls)):
            live.save(position, timeline.saving(aliases, position, moments.used, self.callers.hold))
        bound = live.bound
        for position, node in enumerate(calls):
            pairs = self.candidates(aliases, node, strided) if node not in apart else []
            for source, output in pairs:
                readable = {s for s, o in pairs if o is output}
                now_used = [t for t in (*variables_of(node), *node.outputs) if moments.used[t] == position]
                if not overwritten_exactly(aliases, source, output, now_used, readable):
                    continue
                a, b = blocks[aliases.root(source)], blocks[aliases.root(output)]
                if not aliases.join(source, 0, output, 0, replaces_at(position)):
                    continue
                if not self.callers.allow(aliases, source):
                    aliases.undo()
                    continue
                root = aliases.root(source)
                first, last = min(a.first, b.first), max(a.last, b.last)
                joined = packing.Buffer(root.name, aliases.size(root), first, last, aliases.strictest(root))
                both = self.callers.counted(aliases, root, joined)
                live.replace((a, b), both)
                # A tensor that lay partly over another may now be in a block that lives on.
                touched = {p for each in (a, b) for p in (each.first, each.last) if 0 <= p < len(calls)}
                before = {
                    p: live.save(p, timeline.saving(aliases, p, moments.used, self.callers.hold))
                    for p in touched
                }
                if live.bound > bound:
                    live.replace((both,), a, b)
                    for p, saving in before.items():
                        live.save(p, saving)
                    aliases.undo()
                    continue
                aliases.keep()
                blocks[root], bound = both, live.bound
                taken[node] = (node.inputs.index(source), node.outputs.index(output))
                break
        return taken, [*(blocks[root] for root in aliases.roots()), *self.other_buffers(calls)], live

    # ------------------------------------------------------------ offsets

    def other_buffers(self, calls: Sequence[Node]) -> list[packing.Buffer]:
        """Buffers without tensors: the states' mark, and one a call that has scratch memory."""
        return self.states.mark(len(calls)) + [
            packing.Buffer(scratch_name(node), size, position, position, self.scratch_align)
            for position, node in enumerate(calls)
            if (size := self.scratch.get(node, 0))
        ]

    def place(self, candidate: CandidatePlan, budget: int) -> packing.Placement:
        """Offsets of a draft's buffers."""
        buffers, live_ranges = self.unplaced(candidate)
        if self.states_apart:
            found = place_apart(self.graph, candidate.aliases.root, buffers, live_ranges, budget)
        else:
            floor = most_alive(live_ranges)
            found = packing.place(buffers, gaps=gaps(live_ranges), floor=floor, budget=budget)
        beside = self.callers.offsets(self.callers.bytes_of(candidate.aliases), found.peak)
        return replace(found, offsets=found.offsets | beside)

    def unplaced(self, candidate: CandidatePlan) -> tuple[list[packing.Buffer], list[LiveRange]]:
        """A draft's buffers, and what is live of each."""
        live_ranges = self.live_ranges(candidate)
        known, calls, groups = {b.name: b for b in candidate.buffers}, candidate.calls, self.fusion_groups
        buffers = [known.get(each.name) or inner_buffer(calls, groups, each) for each in live_ranges]
        return buffers, live_ranges

    def live_ranges(self, candidate: CandidatePlan) -> list[LiveRange]:
        """Of each buffer, including the fusion groups' own."""
        outside = self.callers.bytes_of(candidate.aliases)
        found = [each for each in candidate.live_ranges if each.name not in outside]
        for position, node in enumerate(candidate.calls):
            if node in self.fusion_groups:
                start = candidate.timeline.boundaries[position + 1]
                for inner in self.fusion_groups[node].inner:
                    at = start + np.arange(len(inner.low) + 1)
                    found.append(live_range(inner.name, at, inner.low, inner.high, inner.bytes, inner.align))
        return found

    def finish(self, candidate: CandidatePlan, placement: packing.Placement) -> MemoryPlan:
        """The plan in the terms of the graph."""
        aliases = candidate.aliases
        index = {root: i for i, root in enumerate(aliases.roots())}
        size = self.callers.bytes_of(candidate.aliases)
        blocks = tuple(
            Block(b.name, placement.offsets[b.name], size.get(b.name, b.bytes), Lifetime(b.first, b.last))
            for b in (*candidate.buffers[: len(index)], *self.states.mark(len(candidate.calls)))
        )
        order = order_of(self.graph, candidate)
        return MemoryPlan(
            order=order,
            calls=candidate.calls,
            elided=tuple(node for node in order if node in candidate.elided),
            overwrites=candidate.overwrites,
            overlaps=overlapping(aliases, candidate.timeline, placement.offsets),
            blocks=blocks,
            storage={
                t: Storage(
                    index[aliases.root(t)], aliases.start(t) + at, pixel_stride, self.data_layouts.get(t)
                )
                for t, at, pixel_stride in map(candidate.lying, self.tensors)
            },
            lifetimes=lifetimes(candidate, order, moments_of(self.graph, self.tensors, candidate.calls)),
            scratch={
                n: placement.offsets[scratch_name(n)]
                for n in candidate.calls
                if self.scratch.get(n, 0) and n not in self.fusion_groups
            },
            arena_bytes=placement.peak,
            lower_bound=placement.lower_bound,
            optimal=placement.optimal,
            order_optimal=candidate.schedule.optimal,
            given_order_bytes=candidate.schedule.given_peak,
            alive=alive_at_calls(self.live_ranges(candidate), candidate.timeline.boundaries, candidate.calls),
            mark=placement.offsets.get(MARK),
            kept_bytes=placement.kept_bytes,
            buffers_from=first_offset(placement.peak) if self.callers.tensors else None,
        )
