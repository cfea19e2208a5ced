# SPDX-License-Identifier: Apache-2.0
"""The memory of a graph: which tensors share bytes, in what order nodes run, where everything lies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tinyet.errors import InternalError
from tinyet.ir import Graph, Node, Tensor
from tinyet.memory import offsets as packing
from tinyet.memory import schedule as ordering
from tinyet.memory.check import check_plan
from tinyet.memory.layout import Layout, Member, both_own_nothing_common
from tinyet.memory.moves import Move, moves
from tinyet.memory.plan import Block, Lifetime, MemoryPlan, Storage
from tinyet.opset import Op


def plan_memory(
    graph: Graph,
    op_of: Callable[[Node], Op],
    scratch: Mapping[Node, int],
    *,
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
        align: every tensor's offset is a multiple of this (a power of two), and of its element's size.
        scratch_align: the same for scratch memory.
        search_budget: steps of the search for offsets.
        order_budget: steps of the search for an order.

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
    planner = _Planner(graph, op_of, scratch, align, scratch_align, order_budget)
    chosen = planner.best()
    placement = packing.place(chosen.buffers, budget=search_budget)
    if placement.peak > chosen.bound and chosen.schedule.peak < chosen.schedule.given_peak:
        # Fewer bytes alive do not always make a smaller arena: gaps may eat the gain.
        given = planner.draft(chosen.copied, reorder=False)
        other = packing.place(given.buffers, budget=search_budget)
        if other.peak < placement.peak:
            chosen, placement = given, other
    plan = planner.finish(chosen, placement)
    check_plan(graph, plan, op_of, scratch, align=align, scratch_align=scratch_align)
    return plan


@dataclass(frozen=True)
class _Moments:
    """Calls (-1: before the first, their number: after the last) at which a tensor's bytes are written by
    whatever owns them, and at which each tensor is last used under its own name."""

    written: dict[Tensor, int]
    used: dict[Tensor, int]


@dataclass(frozen=True)
class _Draft:
    """One complete set of decisions but the offsets."""

    copied: frozenset[Node]  # moves that are computed although they need not be
    layout: Layout
    elided: frozenset[Node]
    calls: tuple[Node, ...]
    overwrites: dict[Node, tuple[int, int]]
    schedule: ordering.Schedule
    buffers: list[packing.Buffer]
    bound: int


class _Planner:
    def __init__(
        self,
        graph: Graph,
        op_of: Callable[[Node], Op],
        scratch: Mapping[Node, int],
        align: int,
        scratch_align: int,
        order_budget: int,
    ) -> None:
        self.graph = graph
        self.ops = {node: op_of(node) for node in graph.nodes}
        self.scratch = scratch
        self.align = align
        self.scratch_align = scratch_align
        self.order_budget = order_budget
        self.moves = {
            node: found for node in graph.nodes if (found := moves(node, self.ops[node])) is not None
        }
        outputs = (t for node in graph.nodes for t in node.outputs)
        self.tensors = tuple(dict.fromkeys((*graph.inputs, *outputs)))

    # ------------------------------------------------------------ choices

    def best(self) -> _Draft:
        """All moves without a call; then each move that is no plain view is tried with one."""
        copied: frozenset[Node] = frozenset()
        best = self.draft(copied)
        for node in self.graph.nodes:
            if node in best.elided and not self.ops[node].view and self.matters(best, node):
                tried = self.draft(copied | {node})
                if tried.bound < best.bound:
                    copied, best = copied | {node}, tried
        return best

    @staticmethod
    def matters(draft: _Draft, node: Node) -> bool:
        """Is the block of the node's output alive whenever memory is at its fullest? If not, that moment
        stays as full whatever becomes of the block."""
        block = draft.layout.roots().index(draft.layout.root(node.outputs[0]))
        own = draft.buffers[block]
        alive = [
            sum(packing.align_up(b.bytes, b.align) for b in draft.buffers if b.first <= moment <= b.last)
            for moment in range(-1, len(draft.calls) + 1)
        ]
        return all(
            own.first <= moment <= own.last
            for moment, bytes_alive in enumerate(alive, start=-1)
            if bytes_alive == max(alive)
        )

    def draft(self, copied: frozenset[Node], *, reorder: bool = True) -> _Draft:
        layout, elided = self.share(copied)
        calls, schedule = self.arrange(layout, elided, self.order_budget if reorder else 0)
        layout, overwrites, buffers = self.overwrite(layout, calls)
        return _Draft(
            copied, layout, elided, calls, overwrites, schedule, buffers, packing.lower_bound(buffers)
        )

    def share(self, copied: frozenset[Node]) -> tuple[Layout, frozenset[Node]]:
        """Views and windows: what needs no call because its bytes can lie where they are wanted."""
        layout = Layout(self.tensors, self.align)
        elided: set[Node] = set()
        for node, found in self.moves.items():
            if node in copied:
                continue
            trial = layout.copy()
            for output in node.outputs:
                trial.renounce(output)
            if all(self.unite(trial, node, move) for move in found):
                layout = trial
                elided.add(node)
        return layout, frozenset(elided)

    @staticmethod
    def unite(layout: Layout, node: Node, move: Move) -> bool:
        source, output = node.input(move.input), node.outputs[move.output]
        return layout.join(output, move.start, source, move.input_start, both_own_nothing_common)

    # ------------------------------------------------------------ order

    def arrange(
        self, layout: Layout, elided: frozenset[Node], budget: int
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
            after = frozenset[int]().union(*(needs[t] for t in _variables(node)))
            if node in elided:
                needs.update(dict.fromkeys(node.outputs, after))
                continue
            needs.update(dict.fromkeys(node.outputs, frozenset((position[node],))))
            steps.append(
                ordering.Step(
                    tuple(sorted(after)),
                    tuple(dict.fromkeys(number[layout.root(t)] for t in _variables(node))),
                    tuple(dict.fromkeys(number[layout.root(t)] for t in node.outputs)),
                    packing.align_up(self.scratch.get(node, 0), self.align),
                    tuple(
                        (number[layout.root(source)], number[layout.root(output)])
                        for source, output in self.candidates(layout, node)
                        if layout.size(source) == source.type.bytes == layout.size(output)
                    ),
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

    def candidates(self, layout: Layout, node: Node) -> list[tuple[Tensor, Tensor]]:
        """Pairs (input, output) such that the kernel may write the second over the first while reading
        both.

        Another input in the same bytes is all right only if it may be overwritten too and lies exactly
        there.
        """
        found = []
        allowed = [t for i in self.ops[node].inplace if (t := node.optional_input(i)) is not None]
        for source in dict.fromkeys(allowed):
            if source.is_constant:
                continue
            here = layout.member(source)
            others = (
                (t, layout.member(t)) for t in _variables(node) if layout.root(t) is layout.root(source)
            )
            safe = all(
                m.end <= here.start
                or here.end <= m.start
                or (t in allowed and (m.start, m.end) == (here.start, here.end))
                for t, m in others
            )
            if safe:
                found += [(source, o) for o in node.outputs if o.type.bytes == source.type.bytes]
        return found

    # ------------------------------------------------------------ in place

    def overwrite(
        self, layout: Layout, calls: Sequence[Node]
    ) -> tuple[Layout, dict[Node, tuple[int, int]], list[packing.Buffer]]:
        """Let outputs take the place of inputs that die, where that does not raise the memory in use.

        Returns the new layout, (input index, output index) per node that works in place, and the buffers.
        """
        moments = self.moments(calls)
        taken: dict[Node, tuple[int, int]] = {}
        buffers = self.buffers(layout, calls, moments)
        bound = packing.lower_bound(buffers)
        for position, node in enumerate(calls):
            pairs = self.candidates(layout, node)
            for source, output in pairs:
                readable = frozenset(s for s, o in pairs if o is output)
                rule = _replaces(position, output, readable, moments)
                trial = layout.copy()
                if not trial.join(source, 0, output, 0, rule):
                    continue
                fewer = self.buffers(trial, calls, moments)
                after = packing.lower_bound(fewer)
                if after <= bound:
                    layout, buffers, bound = trial, fewer, after
                    taken[node] = (node.inputs.index(source), node.outputs.index(output))
                    break
        return layout, taken, buffers

    def moments(self, calls: Sequence[Node]) -> _Moments:
        written = dict.fromkeys(self.graph.inputs, -1)
        used = dict.fromkeys(self.tensors, -1)
        for position, node in enumerate(calls):
            for tensor in node.outputs:
                written[tensor] = used[tensor] = position
            for tensor in _variables(node):
                used[tensor] = max(used[tensor], position)
        used.update(dict.fromkeys(self.graph.outputs, len(calls)))
        return _Moments(written, used)

    # ------------------------------------------------------------ offsets

    def buffers(self, layout: Layout, calls: Sequence[Node], moments: _Moments) -> list[packing.Buffer]:
        """One buffer a block, in the order of `layout.roots()`, then one a call that has scratch memory."""
        found = []
        for root in layout.roots():
            members = layout.members(root)
            first = min(moments.written[m.tensor] for m in members if m.owns)
            last = max(moments.used[m.tensor] for m in members)
            strictest = max(layout.alignment(m.tensor) for m in members)
            found.append(packing.Buffer(root.name, layout.size(root), first, last, strictest))
        for position, node in enumerate(calls):
            size = self.scratch.get(node, 0)
            if size:
                found.append(
                    packing.Buffer(_scratch_name(node), size, position, position, self.scratch_align)
                )
        return found

    def finish(self, draft: _Draft, placement: packing.Placement) -> MemoryPlan:
        """The plan in the terms of the graph."""
        layout = draft.layout
        index = {root: i for i, root in enumerate(layout.roots())}
        blocks = tuple(
            Block(b.name, placement.offsets[b.name], b.bytes, Lifetime(b.first, b.last))
            for b in draft.buffers[: len(index)]
        )
        order = self.order(draft)
        return MemoryPlan(
            order=order,
            calls=draft.calls,
            elided=tuple(node for node in order if node in draft.elided),
            overwrites=draft.overwrites,
            blocks=blocks,
            storage={t: Storage(index[layout.root(t)], layout.member(t).start) for t in self.tensors},
            lifetimes=self.lifetimes(draft, order),
            scratch={n: placement.offsets[_scratch_name(n)] for n in draft.calls if self.scratch.get(n, 0)},
            arena_bytes=placement.peak,
            lower_bound=placement.lower_bound,
            optimal=placement.optimal,
            order_optimal=draft.schedule.optimal,
            given_order_bytes=draft.schedule.given_peak,
        )

    def order(self, draft: _Draft) -> tuple[Node, ...]:
        """The calls, each elided node standing where the last of its inputs is there."""
        waiting = [node for node in self.graph.nodes if node in draft.elided]
        known = set(self.graph.inputs)
        order: list[Node] = []

        def settle() -> None:
            # Elided nodes wait in the graph's order, so one pass follows a chain of them to its end.
            for node in list(waiting):
                if known.issuperset(_variables(node)):
                    waiting.remove(node)
                    order.append(node)
                    known.update(node.outputs)

        settle()
        for node in draft.calls:
            order.append(node)
            known.update(node.outputs)
            settle()
        return tuple(order)

    def lifetimes(self, draft: _Draft, order: Sequence[Node]) -> dict[Tensor, Lifetime]:
        """From the call that completes a value to the last one that reads its bytes under any name."""
        moments = self.moments(draft.calls)
        complete, used = moments.written, moments.used
        for node in order:
            if node in draft.elided:
                ready = max(complete[t] for t in _variables(node))
                complete.update(dict.fromkeys(node.outputs, ready))
        for node in reversed(order):
            if node in draft.elided:
                last = max(used[t] for t in node.outputs)
                used.update((t, max(used[t], last)) for t in _variables(node))
        return {t: Lifetime(complete[t], max(complete[t], used[t])) for t in self.tensors}


def _replaces(
    position: int, output: Tensor, readable: frozenset[Tensor], moments: _Moments
) -> Callable[[Member, Member], bool]:
    """The rule for bytes shared in time: everything on the input's side is finished before `output` is
    written at call `position`, but for the inputs that this call may overwrite exactly while it reads
    them."""

    def rule(old: Member, new: Member) -> bool:
        if not new.owns:
            # The members that own a view's bytes lie over `old` as well and are asked themselves.
            return True
        if moments.used[old.tensor] == position:
            exact = (old.start, old.end) == (new.start, new.end)
            return new.tensor is output and exact and old.tensor in readable
        return moments.used[old.tensor] < position <= moments.written[new.tensor]

    return rule


def _variables(node: Node) -> list[Tensor]:
    """The node's inputs that stand in the arena, each once."""
    return [t for t in dict.fromkeys(node.inputs) if t is not None and not t.is_constant]


def _scratch_name(node: Node) -> str:
    # No tensor's name holds a space, so this cannot be one.
    return f"scratch of {node.outputs[0].name}"
