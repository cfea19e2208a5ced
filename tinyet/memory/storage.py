# SPDX-License-Identifier: Apache-2.0
"""The memory of a graph: which tensors share bytes, in what order nodes run, where everything lies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from tinyet.errors import InternalError
from tinyet.ir import Graph, Node, Tensor
from tinyet.memory import offsets as packing
from tinyet.memory import schedule as ordering
from tinyet.memory.check import check_plan
from tinyet.memory.contract import OP as STREAM_OP
from tinyet.memory.contract import borders_of, contracted, course_of, expanded, scratch_name, stream_of
from tinyet.memory.draft import Draft, Moments, StreamRefusedError, order_of, variables_of
from tinyet.memory.extents import Extent, alive_between, extent, gaps, most_alive
from tinyet.memory.inplace import overwritten_exactly, replaces_at
from tinyet.memory.layout import NEVER, Layout, nothing_owned_twice
from tinyet.memory.live import LiveBytes
from tinyet.memory.moves import Move, moves
from tinyet.memory.plan import MARK, Block, Lifetime, MemoryPlan, Storage
from tinyet.memory.states import States
from tinyet.memory.streams import Stream
from tinyet.memory.sweeping import Course, Replaces, Sweeping, course, no_replacing, no_sweep, overlapping
from tinyet.memory.weave import Group, MayPitch, no_pitch, weave
from tinyet.opset import NO_LAYOUTS, DataLayout, Op, Sweeps

_LOOKS_A_CALL = 30
"""What a draft costs a call, measured in looks of the search for an order."""
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
    may_pitch: MayPitch = no_pitch,
    data_layouts: Mapping[Tensor, DataLayout] = NO_LAYOUTS,
    sweep: Sweeps = no_sweep,
    replaces: Replaces = no_replacing,
    streams: Sequence[Stream] = (),
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
        may_pitch: which tensors the kernels can read and write with their pixels apart.
        data_layouts: of tensors that do not lie row-major; none of the graph's own.
        sweep: what a call whose tensors all lie row-major has read of an input by the time it writes its output; one
            may lie partly over the other where that is safe.
        replaces: inputs of such calls over which the output may lie exactly, beside those of the operator.
        streams: calls that are computed by rows, one with another; no node is in two.
        align: every tensor's offset is a multiple of this (a power of two), and of its element's size; of the latter
            alone where its pixels lie apart.
        scratch_align: the same for scratch memory.
        search_budget: steps of the search for offsets; with 0 the first that are found serve, and what lies partly over
            something stays there.
        order_budget: steps of the search for an order; with 0 the calls keep the graph's, and all moves that can be
            done without a call are.

    A view costs no call. A slice or a concatenation costs none either unless its copy makes the arena
    smaller (a slice that outlives a large tensor is better copied out). The plan has been checked when this
    returns.

    Raises:
        InternalError: a constant among the graph's outputs (it has no place in the arena: a copy must
            produce it), or a plan that its check refuses.
    """
    for tensor in graph.outputs:
        if tensor.is_constant:
            raise InternalError(
                f"output {tensor.name} is a constant, which has no place in the arena", graph.name
            )
    planner = _Planner(
        contracted(graph, streams, scratch, scratch_align) if streams else graph,
        op_of,
        scratch,
        may_pitch,
        data_layouts,
        sweep,
        replaces,
        align,
        scratch_align,
        order_budget,
    )
    chosen = planner.best() if order_budget else planner.draft(frozenset())
    placement = planner.place(chosen, search_budget)
    if search_budget:
        chosen, placement = planner.apart(chosen, placement, search_budget)
    if placement.peak > chosen.bound and chosen.schedule.peak < chosen.schedule.given_peak:
        # Fewer bytes alive do not always make a smaller arena: gaps may eat the gain.
        given = planner.draft(chosen.copied, chosen.apart, reorder=False)
        other = planner.place(given, search_budget)
        if other.peak < placement.peak:
            chosen, placement = given, other
    plan = planner.finish(chosen, placement)
    if streams:
        plan = expanded(plan, streams, placement.offsets, scratch, scratch_align)
    check_plan(
        graph,
        plan,
        op_of,
        scratch,
        sweep=sweep,
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
        may_pitch: MayPitch,
        data_layouts: Mapping[Tensor, DataLayout],
        sweep: Sweeps,
        replaces: Replaces,
        align: int,
        scratch_align: int,
        order_budget: int,
    ) -> None:
        self.graph = graph
        self.states = States(graph)
        self.ops = {node: op_of(node) if stream_of(node) is None else STREAM_OP for node in graph.nodes}
        self.streams = {
            node: made
            for node in graph.nodes
            if (made := course_of(node, scratch, align, scratch_align)) is not None
        }
        self.scratch = {**scratch, **{node: made.inner_bytes for node, made in self.streams.items()}}
        self.may_pitch: MayPitch = lambda n, t, pitch: n not in self.streams and may_pitch(n, t, pitch)
        self.data_layouts = data_layouts
        self.sweep = sweep
        self.replaces: Replaces = lambda n, index: n not in self.streams and replaces(n, index)
        self.align = align
        self.scratch_align = scratch_align
        self.order_budget = order_budget
        self.moves = {
            node: found for node in graph.nodes if (found := moves(node, self.ops[node])) is not None
        }
        outputs = (t for node in graph.nodes for t in node.outputs)
        self.tensors = tuple(dict.fromkeys((*graph.inputs, *outputs)))
        self.known_courses: dict[Node, Course | None] = {}
        self.of_streams = {scratch_name(node) for node in self.streams}  # they stand for what is in them

    # ------------------------------------------------------------ choices

    def best(self) -> Draft:
        """All moves without a call; then moves that are no plain views are tried with one, each that may help, and
        the others as long as the graph is small enough to try whatever there is."""
        best = self.draft(frozenset())
        spent = 0
        for node in self.graph.nodes:
            if node not in best.elided or self.ops[node].view or not self.matters(best, node):
                continue
            if spent > (_PROMISING_BUDGET if self.promises(best, node) else _TRIAL_BUDGET):
                continue
            tried = self.draft(best.copied | {node})
            spent += tried.schedule.looks + _LOOKS_A_CALL * len(tried.calls)
            if tried.bound < best.bound:
                best = tried
        return best

    @staticmethod
    def matters(draft: Draft, node: Node) -> bool:
        """Is the block of the node's output alive whenever memory is at its fullest? If not, that moment
        stays as full whatever becomes of the block."""
        own = draft.blocks[draft.layout.root(node.outputs[0])]
        return own.first <= draft.fullest[0] and draft.fullest[1] <= own.last

    def promises(self, draft: Draft, node: Node) -> bool:
        """Would a copy help if the order of the calls stayed? Not when the block without the copied part is as large
        as before and still alive whenever memory is at its fullest. When in doubt, it would."""
        variables = variables_of(node)
        if len(variables) != 1:
            return True
        layout, root = draft.layout, draft.layout.root(variables[0])
        low, high = layout.extent(variables[0])
        part = list(node.outputs)
        for tensor in part:
            start, end = layout.extent(tensor)
            if start < low or high < end:
                return True
            part += (
                t
                for reader in self.graph.consumers(tensor)
                if reader in draft.elided or reader in draft.overwrites
                for t in reader.outputs
                if layout.root(t) is root
            )
        copied = set(part)
        last = next((used for used, t in draft.last_used[root] if t not in copied), NEVER)
        return not (draft.blocks[root].first <= draft.fullest[0] and draft.fullest[1] <= last)

    def apart(
        self, draft: Draft, placement: packing.Placement, budget: int
    ) -> tuple[Draft, packing.Placement]:
        """Where what lies partly over something keeps the arena from being as small as what is alive: calls do not work
        in place, the largest first, of which that makes it smaller.

        An output that begins before its input leaves room only below itself, and in place it cannot go elsewhere. Two
        places for it need more at its own call, and may need less around it.
        """
        if not draft.sweeping.courses:
            return draft, placement
        size = {node: draft.layout.size(node.outputs[index]) for node, (_, index) in draft.overwrites.items()}
        for node in sorted(size, key=lambda n: -size[n])[:_MOST_APART]:
            if placement.peak <= placement.lower_bound:
                break
            tried = self.draft(draft.copied, draft.apart | {node})
            if tried.bound < placement.peak:
                other = self.place(tried, min(budget, _APART_BUDGET))
                if other.peak < placement.peak:
                    draft, placement = tried, other
        if draft.apart:
            placement = self.place(draft, budget)
        return draft, placement

    def draft(
        self, copied: frozenset[Node], apart: frozenset[Node] = frozenset(), *, reorder: bool = True
    ) -> Draft:
        layout, elided, woven = self.share(copied)
        calls, schedule = self.arrange(layout, elided, woven, self.order_budget if reorder else 0)
        sweeping = Sweeping(calls, self.courses(calls, woven))
        overwrites, buffers, live = self.overwrite(layout, calls, woven, sweeping, apart)
        return Draft(
            copied=copied,
            apart=apart,
            layout=layout,
            woven=woven,
            elided=elided,
            calls=calls,
            overwrites=overwrites,
            schedule=schedule,
            buffers=buffers,
            sweeping=sweeping,
            bound=live.bound,
            fullest=live.fullest,
            used=self.moments(calls).used,
        )

    def share(self, copied: frozenset[Node]) -> tuple[Layout, frozenset[Node], dict[Tensor, Group]]:
        """Views and windows: what needs no call because its bytes can lie where they are wanted."""
        borders = [border.bytes for node in self.streams for border in borders_of(node)]
        layout = Layout(self.tensors, self.align, borders)
        for node in self.streams:
            stream = stream_of(node)
            base = None if stream is None else stream.base
            if base is not None:
                self.states.refuse_spread(base)
                layout.spread(base, base.type.bytes, self.scratch_align)
        for tensor, data_layout in self.data_layouts.items():
            layout.spread(tensor, data_layout.size(tensor), data_layout.align)
        otherwise = {node for t in self.data_layouts for node in self.graph.consumers(t)}
        self.states.place(layout)
        woven = weave(self.graph, self.may_pitch, copied | otherwise)
        elided = set(woven.elided)
        for node in woven.elided:
            layout.renounce(node.output)
        for group in woven.groups:
            first, *others = group.at
            layout.spread(first, group.bytes)
            for tensor in others:
                layout.spread(tensor, group.bytes)
                # Who owns which byte of a pixel is for the weaving to see to.
                layout.join(first, 0, tensor, 0, lambda _old, _new: True)
        layout.keep()
        apart = {t: group for group in woven.groups for t in group.at if group.apart(t)}
        for node, found in self.moves.items():
            if node in copied or any(
                t in apart or t in self.data_layouts for t in (*variables_of(node), *node.outputs)
            ):
                continue
            for output in node.outputs:
                layout.renounce(output)
            if all(self.unite(layout, node, move) for move in found):
                layout.keep()
                elided.add(node)
            else:
                layout.undo()
        for node in self.streams:
            for border in borders_of(node):
                joined = layout.join(border.rows.tensor, border.start, border.bytes, 0, nothing_owned_twice)
                if not joined:
                    raise StreamRefusedError(f"{border.rows.tensor.name} has no room around it")
        layout.keep()
        return layout, frozenset(elided), apart

    @staticmethod
    def unite(layout: Layout, node: Node, move: Move) -> bool:
        source, output = node.input(move.input), node.outputs[move.output]
        return layout.join(output, move.start, source, move.input_start, nothing_owned_twice)

    # ------------------------------------------------------------ order

    def arrange(
        self, layout: Layout, elided: frozenset[Node], woven: Mapping[Tensor, Group], budget: int
    ) -> tuple[tuple[Node, ...], ordering.Schedule]:
        """Order the calls; with a budget of 0, as the graph has them."""
        roots = layout.roots()
        number = {root: i for i, root in enumerate(roots)}
        sizes = [packing.align_up(layout.size(root), self.align) for root in roots]
        calls = [node for node in self.graph.nodes if node not in elided]
        position = {node: i for i, node in enumerate(calls)}
        needs: dict[Tensor, frozenset[int]] = {t: frozenset() for t in self.graph.inputs}
        steps = []
        for node in self.graph.nodes:
            after = frozenset[int]().union(*(needs[t] for t in variables_of(node)))
            if node in elided:
                needs.update(dict.fromkeys(node.outputs, after))
                continue
            after |= {position[reader] for reader in self.states.before(layout, node, calls)}
            needs.update(dict.fromkeys(node.outputs, frozenset((position[node],))))
            steps.append(
                ordering.Step(
                    tuple(sorted(after)),
                    tuple(dict.fromkeys(number[layout.root(t)] for t in variables_of(node))),
                    tuple(dict.fromkeys(number[layout.root(t)] for t in node.outputs)),
                    packing.align_up(self.scratch.get(node, 0), self.align),
                    tuple(
                        (number[layout.root(source)], number[layout.root(output)])
                        for source, output in self.candidates(layout, node, woven)
                        if layout.size(source) == source.type.bytes == layout.size(output)
                    ),
                    self.overlaps(layout, number, self.courses([node], woven).get(node)),
                )
            )
        result = ordering.schedule(
            steps,
            sizes,
            inputs=frozenset(number[layout.root(t)] for t in self.graph.inputs),
            outputs=frozenset(number[layout.root(t)] for t in self.graph.outputs),
            budget=budget,
        )
        return tuple(calls[i] for i in result.order), result

    def overlaps(
        self, layout: Layout, number: Mapping[Tensor, int], course: Course | None
    ) -> tuple[tuple[int, int, int], ...]:
        """What the order may count on: tensors alone in their blocks that can lie partly over each other, the pair that
        saves the most bytes first."""
        if course is None or len(course.written) != 1:
            return ()
        (output,) = course.written
        if layout.size(output) != output.type.bytes:
            return ()
        return tuple(
            (number[layout.root(source)], number[layout.root(output)], saved)
            for source in sorted(course.needed, key=lambda t: -course.saved(t))
            if layout.size(source) == source.type.bytes and (saved := course.saved(source) & -self.align) > 0
        )

    def courses(self, calls: Iterable[Node], woven: Mapping[Tensor, Group]) -> dict[Node, Course]:
        """Of the calls that have one."""
        found = {}
        for node in calls:
            if node in self.states.kept:
                continue  # what its output lies over is the state itself
            if node not in self.known_courses:
                self.known_courses[node] = self.streams.get(node) or course(node, self.sweep)
            known = self.known_courses[node]
            if known is not None and self.dense(node, woven):
                found[node] = known
        return found

    def dense(self, node: Node, woven: Mapping[Tensor, Group]) -> bool:
        """Whether all tensors of a call lie row-major without gaps."""
        return not any(t in woven or t in self.data_layouts for t in (*variables_of(node), *node.outputs))

    def candidates(
        self, layout: Layout, node: Node, woven: Mapping[Tensor, Group]
    ) -> list[tuple[Tensor, Tensor]]:
        """Pairs (input, output) such that the kernel may write the second over the first while reading
        both.

        Another input in the same bytes is all right only if it may be overwritten too and lies exactly
        there. Tensors whose pixels lie apart stay where they are.
        """
        found: list[tuple[Tensor, Tensor]] = []
        if node in self.states.kept:
            return found  # it lies in its place already
        may = set(self.ops[node].inplace)
        if len(node.outputs) == 1 and self.dense(node, woven):
            may.update(i for i in range(len(node.inputs)) if self.replaces(node, i))
        allowed = [t for i in sorted(may) if (t := node.optional_input(i)) is not None]
        for source in dict.fromkeys(allowed):
            if source.is_constant or source in woven or source in self.data_layouts:
                continue
            start, end = layout.extent(source)
            others = (
                (t, layout.extent(t)) for t in variables_of(node) if layout.root(t) is layout.root(source)
            )
            safe = all(
                extent[1] <= start or end <= extent[0] or (t in allowed and extent == (start, end))
                for t, extent in others
            )
            if safe:
                found += [
                    (source, o)
                    for o in node.outputs
                    if o.type.bytes == source.type.bytes and o not in woven and o not in self.data_layouts
                ]
        return found

    # ------------------------------------------------------------ in place

    def overwrite(
        self,
        layout: Layout,
        calls: Sequence[Node],
        woven: Mapping[Tensor, Group],
        sweeping: Sweeping,
        apart: frozenset[Node],
    ) -> tuple[dict[Node, tuple[int, int]], list[packing.Buffer], LiveBytes]:
        """Let outputs take the place of inputs that die, where that does not raise the memory in use, but for those of
        calls that are to be `apart`.

        Changes the layout. Returns (input index, output index) per node that works in place; the buffers: one a block,
        in the order of `layout.roots()`, then the others; and how many bytes are alive.
        """
        moments = self.moments(calls)
        layout.set_moments(moments.written, moments.used)
        taken: dict[Node, tuple[int, int]] = {}
        blocks = {root: self.block(layout, root, moments) for root in layout.roots()}
        live = LiveBytes([*blocks.values(), *self.other_buffers(calls)], range(-1, len(calls) + 1))
        for position in range(len(calls)):
            live.save(position, sweeping.saving(layout, position, moments.used))
        bound = live.bound
        for position, node in enumerate(calls):
            pairs = self.candidates(layout, node, woven) if node not in apart else []
            for source, output in pairs:
                readable = {s for s, o in pairs if o is output}
                now_used = [t for t in (*variables_of(node), *node.outputs) if moments.used[t] == position]
                if not overwritten_exactly(layout, source, output, now_used, readable):
                    continue
                a, b = blocks[layout.root(source)], blocks[layout.root(output)]
                if not layout.join(source, 0, output, 0, replaces_at(position)):
                    continue
                root = layout.root(source)
                first, last = min(a.first, b.first), max(a.last, b.last)
                both = packing.Buffer(root.name, layout.size(root), first, last, layout.strictest(root))
                live.replace((a, b), both)
                # What lay partly over another may now be in a block that lives on.
                touched = {p for each in (a, b) for p in (each.first, each.last) if 0 <= p < len(calls)}
                before = {p: live.save(p, sweeping.saving(layout, p, moments.used)) for p in touched}
                if live.bound > bound:
                    live.replace((both,), a, b)
                    for p, saving in before.items():
                        live.save(p, saving)
                    layout.undo()
                    continue
                layout.keep()
                blocks[root], bound = both, live.bound
                taken[node] = (node.inputs.index(source), node.outputs.index(output))
                break
        return taken, [*(blocks[root] for root in layout.roots()), *self.other_buffers(calls)], live

    def moments(self, calls: Sequence[Node]) -> Moments:
        written = dict.fromkeys(self.graph.inputs, -1)
        used = dict.fromkeys(self.tensors, -1)
        for position, node in enumerate(calls):
            for tensor in node.outputs:
                written[tensor] = used[tensor] = position
            for tensor in variables_of(node):
                used[tensor] = max(used[tensor], position)
        used.update(dict.fromkeys(self.graph.outputs, len(calls)))
        return Moments(written, used)

    # ------------------------------------------------------------ offsets

    @staticmethod
    def block(layout: Layout, root: Tensor, moments: Moments) -> packing.Buffer:
        members = layout.members(root)
        first = min(moments.written[t] for t in members if layout.owns(t))
        last = max(moments.used[t] for t in members)
        return packing.Buffer(root.name, layout.size(root), first, last, layout.strictest(root))

    def other_buffers(self, calls: Sequence[Node]) -> list[packing.Buffer]:
        """What no tensor is in: the states' mark, and one a call that has scratch memory."""
        return self.states.mark(len(calls)) + [
            packing.Buffer(scratch_name(node), size, position, position, self.scratch_align)
            for position, node in enumerate(calls)
            if (size := self.scratch.get(node, 0))
        ]

    def place(self, draft: Draft, budget: int) -> packing.Placement:
        """Offsets of a draft's buffers."""
        extents = self.extents(draft)
        known = {buffer.name: buffer for buffer in draft.buffers}
        buffers = [known.get(each.name) or self.inner_buffer(draft, each) for each in extents]
        return packing.place(buffers, gaps=gaps(extents), floor=most_alive(extents), budget=budget)

    def extents(self, draft: Draft) -> list[Extent]:
        """Of each buffer, those that streams work in among them."""
        buffers = [b for b in draft.buffers if b.name not in self.of_streams]
        found = draft.sweeping.extents(draft.layout, buffers)
        for position, node in enumerate(draft.calls):
            if node in self.streams:
                start = draft.sweeping.boundaries[position + 1]
                for inner in self.streams[node].inner:
                    at = start + np.arange(len(inner.low) + 1)
                    found.append(extent(inner.name, at, inner.low, inner.high, inner.bytes, inner.align))
        return found

    def inner_buffer(self, draft: Draft, inner: Extent) -> packing.Buffer:
        """Of what a stream works in."""
        position = next(
            p
            for p, node in enumerate(draft.calls)
            if node in self.streams and any(b.name == inner.name for b in self.streams[node].inner)
        )
        return packing.Buffer(inner.name, inner.bytes, position, position, inner.align)

    def alive(self, draft: Draft) -> tuple[int, ...]:
        """The most bytes alive before the first call, at each call or layer of a stream, and after the last."""
        extents, boundaries = self.extents(draft), draft.sweeping.boundaries
        whole = alive_between(extents, boundaries)
        found = whole[:1]
        for position, node in enumerate(draft.calls):
            stream = stream_of(node)
            if stream is None:
                found.append(whole[position + 1])
                continue
            moments = np.arange(boundaries[position + 1], boundaries[position + 2] + 1)
            each = np.array(alive_between(extents, moments))
            found += [int(each[stream.moments(layer)].max()) for layer in stream.nodes]
        return (*found, whole[-1])

    def finish(self, draft: Draft, placement: packing.Placement) -> MemoryPlan:
        """The plan in the terms of the graph."""
        layout = draft.layout
        index = {root: i for i, root in enumerate(layout.roots())}
        blocks = tuple(
            Block(b.name, placement.offsets[b.name], b.bytes, Lifetime(b.first, b.last))
            for b in (*draft.buffers[: len(index)], *self.states.mark(len(draft.calls)))
        )
        order = order_of(self.graph, draft)
        return MemoryPlan(
            order=order,
            calls=draft.calls,
            elided=tuple(node for node in order if node in draft.elided),
            overwrites=draft.overwrites,
            overlaps=overlapping(layout, draft.sweeping, placement.offsets),
            blocks=blocks,
            storage={
                t: Storage(index[layout.root(t)], layout.start(t) + at, pitch, self.data_layouts.get(t))
                for t, at, pitch in map(draft.lying, self.tensors)
            },
            lifetimes=self.lifetimes(draft, order),
            scratch={
                n: placement.offsets[scratch_name(n)]
                for n in draft.calls
                if self.scratch.get(n, 0) and n not in self.streams
            },
            arena_bytes=placement.peak,
            lower_bound=placement.lower_bound,
            optimal=placement.optimal,
            order_optimal=draft.schedule.optimal,
            given_order_bytes=draft.schedule.given_peak,
            alive=self.alive(draft),
            mark=placement.offsets.get(MARK),
        )

    def lifetimes(self, draft: Draft, order: Sequence[Node]) -> dict[Tensor, Lifetime]:
        """From the call that completes a value to the last one that reads its bytes under any name."""
        moments = self.moments(draft.calls)
        complete, used = moments.written, moments.used
        for node in order:
            if node in draft.elided:
                ready = max(complete[t] for t in variables_of(node))
                complete.update(dict.fromkeys(node.outputs, ready))
        for node in reversed(order):
            if node in draft.elided:
                last = max(used[t] for t in node.outputs)
                used.update((t, max(used[t], last)) for t in variables_of(node))
        return {t: Lifetime(complete[t], max(complete[t], used[t])) for t in self.tensors}
