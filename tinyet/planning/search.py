# SPDX-License-Identifier: Apache-2.0
"""The search for plans for one target: a kernel for every node, the memory that these need, and which nodes are
computed by tiles."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from tinyet.boards.cpus import Target
from tinyet.delegates import Delegate
from tinyet.errors import InternalError, UsageError
from tinyet.ir import Graph, Node
from tinyet.memory import MemoryPlan
from tinyet.memory.candidate_plan import FusionRefusedError
from tinyet.memory.fusion import FusionGroup
from tinyet.messages.stages import stage
from tinyet.ops import op_of
from tinyet.ops.region import Region
from tinyet.opset import TileMap, has_rows, row_axis, row_pixels, rows_of
from tinyet.opset.cost import counts_cycles
from tinyet.passes.sink_reshapes import sink_reshapes
from tinyet.planning.candidates import (
    Allowed,
    Candidates,
    Chosen,
    candidates_of,
    chosen_by,
    comparable,
    front_of,
    of_one_delegate,
    parts_of,
    pinned,
)
from tinyet.planning.decision import Decision, Untiled
from tinyet.planning.fusion import fusion_cache_of
from tinyet.planning.kernel_front import KernelSet
from tinyet.planning.kernel_selection import Selection, select_kernels
from tinyet.planning.layer_names import names_of
from tinyet.planning.layouts import (
    AccessOrderCache,
    PlanCache,
    agreements_of,
    check_planned,
    laid_out,
    plan_cache_of,
    saved_by,
)
from tinyet.planning.objective import Objective
from tinyet.planning.pareto import Figures, Front, select
from tinyet.planning.plans import Assignment, Plan, Tiling, own_bytes
from tinyet.planning.price import MOST_SLOWDOWN, PlanPrice, Pricing, price
from tinyet.planning.row_axes import followed, unmoved
from tinyet.planning.sized import Sizing
from tinyet.planning.tiled_input import GIVE_WHOLE, tiled_input
from tinyet.planning.tiling import (
    CYCLES,
    FLASH_A_LAYER,
    INSTRUCTIONS,
    TileCandidates,
    TilingSearch,
    moving,
    tile_candidates_of,
    whole_first,
)

_MOST_ASSIGNMENTS = 12
"""Choices of kernels for one tiling, each with less memory at its fullest calls than the last."""
_LIMITS_A_HALVING = {"speed": 8, "balanced": 8, "size": 2}
"""Limits of the arena that are tried for tiled layers until half of it is left: each of eight is 8 % below the last."""
_HALVINGS = 6
"""How often the arena is halved: down to a 64th."""
_MOST_TILES = (None, 64, 16)
"""The most tiles of a layer whose rows are single pixels, as those of a sequence: fewer take more memory and fewer
calls. None: each row is a tile."""
_MOST_SINGLE_ROWS = 256
"""Of a sequence whose rows are tried one by one."""
_TIMES, _PAYS = 2, 0.98
"""How many of an image's smallest tiles are one in a second way, at layers of which that takes no more than this part
of the time: a row of few pixels fills no kernel's blocks, and Winograd's are of two rows."""
_MOST_BEYOND = 3
"""Number of plans, those with fewest live bytes, that are made if nothing has room."""


def decide(
    graph: Graph,
    target: Target,
    delegates: Sequence[Delegate],
    objective: Objective,
    *,
    require: bool = False,
    sizing: Sizing | None = None,
) -> tuple[Selection, Decision, MemoryPlan]:
    """A candidate for every node, and the memory plan, as the objective asks for them; and the kernels that they were
    taken from, whose graph has fewer reshapes where layers may be computed by rows.

    delegates: may be asked for kernels; require: no other may compute any. sizing: of a graph whose size is known at
    run time; its layers are untiled. Raises UnsupportedOp when a node has no kernel for the target, UsageError for a
    pin that no layer has.
    """
    fewer = sink_reshapes(graph)
    if sizing is None and fewer is not graph and _may_want_tiles(objective):
        selection = select_kernels(fewer, target, delegates)
        search = _PlanSearch(selection, target, delegates, objective, require=require)
        if search.wants_tiles(search.free):
            return selection, *search.decide()
    selection = select_kernels(graph, target, delegates, sizing)
    # Kernels for all sizes hold the graph, so nothing that knows them is kept beside it.
    own = None if sizing is None else PlanCache()
    return selection, *_PlanSearch(selection, target, delegates, objective, require=require, own=own).decide()


def _may_want_tiles(objective: Objective) -> bool:
    """Whether an objective could lead to layers by rows, of any network."""
    limited = objective.optimize == "size" or objective.ram is not None or objective.flash is not None
    return objective.input_rows or (limited and not objective.untiled)


class _PlanSearch:
    """Makes plans, and takes the one that the objective asks for from the Pareto front of time, flash and RAM.

    Limits do not change the set of plans, only which of them are tried: kernels of untiled layers, with ever less
    memory at the calls that need most of it; and, if the best of these has no room, the same of tiled layers, for
    ever smaller arenas. So a wider limit never leads to a worse plan.
    """

    def __init__(
        self,
        selection: Selection,
        target: Target,
        delegates: Sequence[Delegate],
        objective: Objective,
        *,
        require: bool,
        own: PlanCache | None = None,
    ) -> None:
        """own: for plans that are not to be kept with the graph."""
        self.selection, self.target, self.delegates = selection, target, delegates
        self.require, self.own = require, own
        self.objective = objective
        self.graph = selection.graph
        self.candidates = candidates_of(selection, target)
        self.access_orders = AccessOrderCache()
        self.front = Front[Plan]()
        self.beyond: list[Assignment] = []
        self.untiled: Plan | None = None
        self.fusion_cache = fusion_cache_of(self.graph)
        pins: dict[Node, int] = {}
        if objective.pins:
            firsts = {n: found[0] for n, found in self.candidates.items()}
            calls = self.planned(self.graph, firsts, first=True).calls
            layers = {name: node for node, name in names_of(self.graph, calls).items()}
            pins = pinned(self.candidates, layers, objective.pins)
        self.pins = pins
        self.allowed = self.allowed_of(self.candidates)
        unstated = sum(
            op_of(node).macs(node) + sum(t.type.count for t in node.outputs)
            for node, found in self.candidates.items()
            if found[0].cost is None
        )
        most = of_one_delegate(self.candidates, self.allowed)
        self.pricing = Pricing(objective.optimize, most, unstated, Figures(0, 0, 0), objective.board)
        self.actions = CYCLES if counts_cycles(target) else INSTRUCTIONS

    def decide(self) -> tuple[Decision, MemoryPlan]:
        best = self.searched()
        check_planned(self.graph, best.chosen, self.access_orders, best.memory)
        untiled = None
        if best.tiled:
            if self.untiled is None:  # no limit leaves room for it
                free = self.free.chosen
                untiled = Untiled(free, self.planned(self.graph, free).arena_bytes)
            else:
                untiled = Untiled(self.untiled.chosen, self.untiled.memory.arena_bytes)
        decision = Decision(
            self.objective,
            best.assignment.tiling.candidates,
            best.chosen,
            best.assignment.front,
            best.assignment.kernels,
            tuple(sorted((plan.figures for plan in self.front), key=lambda f: (f.ram, f.flash))),
            best.figures,
            self.price_of(best),
            untiled,
        )
        return decision, best.memory

    def searched(self) -> Plan:
        """The best of all plans that are tried."""
        free = self.free
        figures = self.figures(free.chosen, free.first)
        most = min(self.pricing.most, round(MOST_SLOWDOWN * figures.time))
        self.pricing = replace(self.pricing, most=most, free=figures)
        if not self.objective.input_rows:
            self.search(free)
        if self.wants_tiles(free):
            for assignment in self.tilings(free):
                self.search(assignment)
        if self.objective.input_rows and not self.front.points and not self.beyond:
            raise UsageError(
                f"the first layers of {self.graph.name} cannot be computed from rows of their input as they come",
                hint=GIVE_WHOLE,
            )
        return self.best(free)

    def planned(
        self,
        graph: Graph,
        chosen: Chosen,
        fusion_groups: Sequence[FusionGroup] = (),
        *,
        first: bool = False,
        in_order: bool = False,
    ) -> MemoryPlan:
        """The memory of a graph that is computed by these candidates, with inputs and outputs where the objective wants
        them. It is not checked: of the plans that are compared, only the one that is taken is."""
        cache = plan_cache_of(graph) if self.own is None else self.own
        return cache.planned(
            graph,
            chosen,
            self.access_orders,
            fusion_groups,
            first=first,
            in_order=in_order,
            callers=self.objective.callers,
        )

    # ------------------------------------------------------------ tilings and their kernels

    @cached_property
    def free(self) -> Assignment:
        """Untiled layers, with the kernels that would be chosen without a limit."""
        return self.assigned(self.candidates, (), front_of(self.candidates, self.allowed, self.target))

    def wants_tiles(self, free: Assignment) -> bool:
        """Whether tiled layers are worth a try: untiled layers without a limit have no room, in RAM or in flash, or RAM
        counts as much as time."""
        if self.objective.input_rows:
            return True
        if self.objective.untiled:
            return False
        figures = self.figures(free.chosen, free.first)
        return self.objective.optimize == "size" or self.objective.excess(figures) > 0

    def assigned(
        self, candidates: Candidates, fusion_groups: Sequence[FusionGroup], front: Front[KernelSet]
    ) -> Assignment:
        """A tiling, with the kernels that would be chosen for it without a limit.

        front: of its candidates. Raises FusionRefusedError.
        """
        allowed = self.allowed_of(candidates)
        kernels = self.fastest(front, fusion_groups, None)
        chosen = chosen_by(candidates, allowed, kernels)
        plan = self.planned(self.graph, chosen, fusion_groups, first=True)
        needs = {}
        for index, node in enumerate(plan.calls):
            own = {
                i: own_bytes(node, candidates[node][i], plan, index, self.access_orders)
                for i in allowed[node]
            }
            around = plan.alive[index + 1] - own_bytes(node, chosen[node], plan, index, self.access_orders)
            needs[node] = {i: around + need for i, need in own.items()}
        tiling = Tiling(candidates, allowed, tuple(fusion_groups), needs)
        return Assignment(tiling, allowed, chosen, front, kernels, plan)

    def allowed_of(self, candidates: Candidates) -> dict[Node, Sequence[int]]:
        """The indices of each node's candidates that may be compared, within what the user has pinned."""
        return {n: [self.pins[n]] if n in self.pins else comparable(c) for n, c in candidates.items()}

    def search(self, assignment: Assignment) -> None:
        """Plan the promising choices of a tiling: from the kernels that would be chosen without a limit, with
        ever less memory at the calls that need the most."""
        tiling, allowed, spare = assignment.tiling, assignment.tiling.allowed, self.objective.flash
        if spare is not None:
            spare -= _flash_of(tiling.fusion_groups, assignment.chosen)
        for number in range(_MOST_ASSIGNMENTS):
            kernels = self.fastest(assignment.front, tiling.fusion_groups, spare)
            if kernels != assignment.kernels:
                assignment = self.made(tiling, allowed, assignment.front, kernels)
            self.settle(assignment)
            if not self.promising(self.least(assignment), tiled=bool(tiling.fusion_groups)):
                break
            limit = max((needs[assignment.index(n)] for n, needs in tiling.choices.items()), default=0) - 1
            bound = self.ram(assignment.chosen, assignment.first, assignment.first.lower_bound)
            if self.over_ram(bound) > 0:
                # No kernels take less than the least, so nothing need be given up for it.
                limit = min(limit, max(self.room(assignment), tiling.least))
            fewer = tiling.within(limit)
            if fewer == allowed:
                break
            allowed = fewer
            if number == _MOST_ASSIGNMENTS - 1:
                break
            front = front_of(tiling.candidates, fewer, self.target)
            assignment = self.made(tiling, allowed, front, self.fastest(front, tiling.fusion_groups, spare))
        fewest = tiling.within(0)
        if self.objective.ram is not None and fewest != allowed and not any(map(self.fits, self.front)):
            # Blocks that have room by their sizes may not by their addresses.
            front = front_of(tiling.candidates, fewest, self.target)
            kernels = self.fastest(front, tiling.fusion_groups, spare)
            self.settle(self.made(tiling, fewest, front, kernels))

    def fastest(
        self, front: Front[KernelSet], fusion_groups: Sequence[FusionGroup], flash: int | None
    ) -> KernelSet:
        """The kernels with the least price within `flash`, beside the fusion groups' own code."""
        most = self.pricing.most - moving(fusion_groups, self.actions)
        return select(
            front,
            Objective(flash=flash).excess,
            lambda kernels: price(kernels.figures, self.objective.optimize, most, self.objective.board),
        )

    def made(
        self, tiling: Tiling, allowed: Allowed, front: Front[KernelSet], kernels: KernelSet
    ) -> Assignment:
        """The kernels of a front for a tiling, and a first plan of their memory."""
        chosen = chosen_by(tiling.candidates, allowed, kernels)
        plan = self.planned(self.graph, chosen, tiling.fusion_groups, first=True)
        return Assignment(tiling, allowed, chosen, front, kernels, plan)

    def tilings(self, free: Assignment) -> Iterator[Assignment]:
        """Tilings for ever smaller arenas: those that need hardly more than is available, until none is
        promising."""
        stage("planning memory by rows")
        frugal = {n: self.candidates[n][indices[0]] for n, indices in free.tiling.within(0).items()}
        least = self.planned(self.graph, frugal, first=True)
        known: list[dict[Node, TileMap]] = []
        for tiles in self.ways():
            used = {n: found.rule for n, found in tiles.items()}
            if used in known or not (used or self.objective.input_rows):
                continue
            known.append(used)
            taken = None
            if self.objective.input_rows:
                taken = tiled_input(self.graph, {n: used[n] for n in least.calls if n in used})
            yield from self.tilings_in_order(
                TilingSearch(
                    self.graph, least, free.chosen, tiles, self.actions, taken=taken, cache=self.fusion_cache
                ),
                free,
            )
            other = whole_first(self.graph, tiles)
            if other is not None:
                early = self.planned(other, frugal, first=True, in_order=True)
                search = TilingSearch(
                    self.graph, early, free.chosen, tiles, self.actions, taken=taken, cache=self.fusion_cache
                )
                yield from self.tilings_in_order(search, free)

    def tilings_in_order(self, search: TilingSearch, free: Assignment) -> Iterator[Assignment]:
        """The tilings of calls in one order."""
        tiles = search.tiles
        room = None if self.objective.ram is None else self.room(free)
        known = set[tuple[tuple[Node, ...], ...]]()
        optimize, top = self.objective.optimize, search.most_alive
        for step in range(_HALVINGS * _LIMITS_A_HALVING[optimize]):
            limit = round(top / 2 ** (step / _LIMITS_A_HALVING[optimize])) - 1
            if room is not None and 4 * limit > 5 * room:
                continue  # the final plan may have a little less than was counted
            fusion_groups = search.fusion_groups(limit)
            if fusion_groups is None:
                break
            layers = tuple(s.nodes for s in fusion_groups)
            if layers and layers not in known:
                known.add(layers)
                candidates, front, figures = self.with_tiles(tiles, fusion_groups)
                if not self.promising(replace(figures, ram=limit // 2), tiled=True):
                    break
                yield from self.stackings(search, candidates, fusion_groups, front)
        if optimize == "size" or not any(self.fits(plan) for plan in self.front):
            fusion_groups = search.smallest()
            if fusion_groups and tuple(s.nodes for s in fusion_groups) not in known:
                candidates, front, _ = self.with_tiles(tiles, fusion_groups)
                yield from self.stackings(search, candidates, fusion_groups, front)

    def with_tiles(
        self, tiles: Mapping[Node, TileCandidates], fusion_groups: Sequence[FusionGroup]
    ) -> tuple[Candidates, Front[KernelSet], Figures]:
        """The candidates of all nodes, those for tiles of nodes in fusion groups; their front, and the
        figures of its best without RAM."""
        inside = {node for found in fusion_groups for node in found.nodes}
        candidates = {n: tiles[n].candidates if n in inside else c for n, c in self.candidates.items()}
        allowed = self.allowed_of(candidates)
        front = front_of(candidates, allowed, self.target)
        kernels = self.fastest(front, fusion_groups, None)
        least = Figures(
            kernels.figures.time + moving(fusion_groups, self.actions),
            kernels.figures.flash + _flash_of(fusion_groups, chosen_by(candidates, allowed, kernels)),
            0,
            kernels.figures.instructions + moving(fusion_groups, INSTRUCTIONS),
        )
        return candidates, front, least

    def stackings(
        self,
        search: TilingSearch,
        candidates: Candidates,
        fusion_groups: Sequence[FusionGroup],
        front: Front[KernelSet],
    ) -> Iterator[Assignment]:
        """The same fusion groups with line buffers apart, stacked on the last layer's output, and stacked by
        themselves."""
        for stacked, on_output in ((False, False), (True, True), (True, False)):
            some = search.with_stacks(fusion_groups, on_output=on_output) if stacked else fusion_groups
            try:
                yield self.assigned(candidates, some, front)
            except FusionRefusedError:
                continue

    def ways(self) -> Iterator[dict[Node, TileCandidates]]:
        """The tiles of all nodes that can have some, in several ways: of as few rows as can be, and then of more rows
        at those layers of an image that are faster with these."""
        tried: list[dict[Node, TileMap]] = []
        least: dict[Node, TileCandidates] | None = None
        for rules in self.rules():
            if rules not in tried:
                tried.append(rules)
                tiles = self.tiles(rules)
                least = tiles if least is None else least
                yield tiles
        if least is not None:
            rules = unmoved(self.graph, times=_TIMES)
            more = {n: r for n, r in rules.items() if n in least and r.window > least[n].rule.window}
            yield least | {n: t for n, t in self.tiles(more).items() if 0 < t.time < _PAYS * least[n].time}

    def rules(self) -> Iterator[dict[Node, TileMap]]:
        """The tiles of all nodes that have some, of as few rows as can be, in several ways."""
        sequences = [
            t for n in self.graph.nodes for t in n.outputs if has_rows(t) and row_pixels(t, row_axis(t)) == 1
        ]
        longest = max((rows_of(t) for t in sequences), default=0)
        for most in _MOST_TILES:
            if most is not None or longest <= _MOST_SINGLE_ROWS:
                usual = unmoved(self.graph, most)
                moved = followed(self.graph, usual, most)
                yield usual
                yield moved
                if not sequences and moved == usual:
                    return  # no row is a single pixel

    def tiles(self, rules: Mapping[Node, TileMap]) -> dict[Node, TileCandidates]:
        """Nodes that can be computed by tiles: by kernels alone, not by regions."""
        nodes = [
            node
            for node in self.graph.nodes
            if not isinstance(node.attrs, Region)
            and node not in self.selection.pinned
            and node not in self.pins
        ]
        libraries = [delegate for delegate in self.delegates if delegate.partition is None]

        def offer(graph: Graph) -> Candidates:
            found = candidates_of(select_kernels(graph, self.target, libraries), self.target)
            if not self.require:
                return found
            return {n: tuple(c for c in all_ if c.choice.delegate in libraries) for n, all_ in found.items()}

        return tile_candidates_of(nodes, rules, offer)

    # ------------------------------------------------------------ plans and their figures

    def settle(self, assignment: Assignment) -> None:
        """Put the plans of a choice of kernels into the front, one for each layout of its values; unless there is no
        room for it at any addresses, or a better plan is there."""
        agreements = agreements_of(self.graph, assignment.chosen, assignment.first, self.target)
        bound = self.ram(assignment.chosen, assignment.first, assignment.first.lower_bound)
        stated = self.figures(assignment.chosen, assignment.first)
        fastest = replace(stated, time=stated.time - saved_by(agreements), ram=bound)
        if self.over_ram(bound) > 0:
            self.beyond.append(assignment)
        elif self.promising(fastest, tiled=bool(assignment.tiling.fusion_groups)):
            self.settled(assignment)

    def settled(self, assignment: Assignment) -> None:
        """As `settle`, without asking whether it is worth it."""
        memory, fusion_groups = assignment.first, assignment.tiling.fusion_groups
        if memory.arena_bytes > memory.lower_bound:
            memory = self.planned(self.graph, assignment.chosen, fusion_groups)
        agreements = agreements_of(self.graph, assignment.chosen, memory, self.target)
        # With more memory or without: the price decides, except where memory is the aim.
        most: list[int | None] = [memory.arena_bytes]
        if self.objective.optimize != "size":
            available = None if self.objective.ram is None else self.room(assignment)
            if available is None or available > memory.arena_bytes:
                most.append(available)
        known = set[int]()
        for limit in most:
            for chosen, lying in laid_out(
                self.graph, assignment.chosen, memory, agreements, limit, self.target, self.access_orders
            ):
                if id(lying) in known:
                    continue
                known.add(id(lying))
                plan = Plan(assignment, chosen, lying, self.figures(chosen, lying))
                if not fusion_groups and (
                    self.untiled is None or self.price_of(plan) < self.price_of(self.untiled)
                ):
                    self.untiled = plan
                self.front = self.front.with_point(plan)

    def best(self, free: Assignment) -> Plan:
        """The best plan for the objective that has room; if none has, the one that exceeds the limits least. free: the
        untiled layers that would be chosen without a limit."""
        if not any(self.fits(plan) for plan in self.front):

            def least(assignment: Assignment) -> tuple[int, PlanPrice]:
                ram = self.ram(assignment.chosen, assignment.first, assignment.first.lower_bound)
                figures = self.figures(assignment.chosen, assignment.first)
                return ram, self.pricing.of(figures, tiled=bool(assignment.tiling.fusion_groups))

            ordered = sorted(self.beyond, key=least)
            # There may be no addresses as good as a bound promises: untiled layers are tried, too, those with the
            # least bound and those that would be chosen without a limit, so that a limit makes nothing larger.
            untiled = [each for each in ordered if not each.tiling.fusion_groups]
            untiled += [] if self.objective.input_rows else [free]
            for assignment in dict.fromkeys((*ordered[:_MOST_BEYOND], *untiled[:1], *untiled[-1:])):
                self.settled(assignment)
            if self.objective.optimize == "size" and self.objective.ram is not None:
                # Without the limit, tilings were tried whose arenas are larger by their bounds, not by their addresses.
                self.front = self.front.with_point(self.without_limit().searched())
        return select(self.front, self.objective.excess, self.price_of)

    def without_limit(self) -> _PlanSearch:
        objective = replace(self.objective, ram=None)
        return _PlanSearch(
            self.selection, self.target, self.delegates, objective, require=self.require, own=self.own
        )

    def figures(self, chosen: Chosen, plan: MemoryPlan) -> Figures:
        """A plan's figures, as far as they are stated."""
        parts: dict[Hashable, int] = {}
        for candidate in chosen.values():
            parts.update(parts_of(candidate, self.target))
        # Kernels that state nothing are tiled all the same.
        silent = sum(plan.runs(n) for s in plan.fusion_groups for n in s.nodes if chosen[n].cost is None)
        return Figures(
            sum(c.time for c in chosen.values())
            + moving(plan.fusion_groups, self.actions)
            + self.actions.an_action * silent,
            sum(parts.values()) + _flash_of(plan.fusion_groups, chosen),
            self.ram(chosen, plan),
            sum(c.instructions for c in chosen.values())
            + moving(plan.fusion_groups, INSTRUCTIONS)
            + INSTRUCTIONS.an_action * silent,
        )

    @staticmethod
    def ram(chosen: Chosen, plan: MemoryPlan, arena: int | None = None) -> int:
        """Bytes of the arena, or of so many, and of state."""
        kept = sum(fusion_group.kept_bytes for fusion_group in plan.fusion_groups)
        state = sum(candidate.call.state_bytes for candidate in chosen.values())
        return (plan.arena_bytes if arena is None else arena) + state + kept

    def room(self, assignment: Assignment) -> int:
        """Bytes that there are for the arena."""
        limit = self.objective.ram
        if limit is None:
            raise InternalError("no limit leaves no room", self.graph.name)
        return limit - self.ram(assignment.chosen, assignment.first, 0)

    def over_ram(self, ram: int) -> int:
        """Bytes more than the objective allows; negative where it allows more."""
        return 0 if self.objective.ram is None else ram - self.objective.ram

    def fits(self, plan: Plan) -> bool:
        """Whether it is within the limits."""
        return self.objective.excess(plan.figures) == 0

    def least(self, assignment: Assignment) -> Figures:
        """Figures that no choice of kernels with less memory is below."""
        stated = self.figures(assignment.chosen, assignment.first)
        agreements = agreements_of(self.graph, assignment.chosen, assignment.first, self.target)
        ram = self.ram(assignment.chosen, assignment.first, assignment.tiling.least)
        return replace(stated, time=stated.time - saved_by(agreements), ram=ram)

    def price_of(self, plan: Plan) -> PlanPrice:
        return self.pricing.of(plan.figures, tiled=plan.tiled)

    def promising(self, figures: Figures, *, tiled: bool) -> bool:
        """Whether a plan that takes no less than that can be better than all that are there, or dominate the best."""
        fitting = [plan for plan in self.front if self.fits(plan)]
        if not fitting:
            return True
        best = min(fitting, key=self.price_of)
        better = self.pricing.of(figures, tiled=tiled) < self.price_of(best)
        better = better or figures.dominates(best.figures)
        return self.objective.excess(figures) == 0 and better and figures != best.figures


def _flash_of(fusion_groups: Sequence[FusionGroup], chosen: Chosen) -> int:
    """Bytes that fusion groups take beside their kernels, if these state theirs."""
    return FLASH_A_LAYER * sum(chosen[n].cost is not None for s in fusion_groups for n in s.nodes)
