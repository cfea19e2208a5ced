# SPDX-License-Identifier: Apache-2.0
"""A run in slices: cuts of the list of calls, so that none is longer than asked, and the bytes that live at each cut.

A slice is one call or several, or some tiles of layers that are computed by rows. Its length is the sum of what the
kernels state. A call that is longer than a slice may be is made in parts, each a slice; what is longer still is named.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tinyet.boards import Board
from tinyet.deployment import Deployment, Step, with_parts
from tinyet.emit.fusion import Case, cases
from tinyet.emit.literals import packed
from tinyet.errors import UsageError
from tinyet.ir import Node
from tinyet.memory.fusion import Close, FusionGroup, Move, Open, Run, Shift
from tinyet.planning.parts import Cut, cut_of
from tinyet.planning.tiling import CYCLES, INSTRUCTIONS

_AN_ACTION = 60
"""Instructions around a tile, as the planner counts them, and around rows that are filled or moved."""
_LIMIT = re.compile(r"(\d+(?:\.\d+)?)(s|ms|us)?", re.ASCII)
_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


@dataclass(frozen=True)
class SliceLimit:
    """How long a slice may be: instructions, or seconds as cycles of a board's clock. text: as it was given."""

    text: str
    instructions: int | None
    seconds: float | None

    def most(self, board: Board) -> int:
        """In instructions, or in cycles."""
        if self.instructions is not None:
            return self.instructions
        return int((self.seconds or 0.0) * board.clock_hz)


def slice_limit(given: object) -> SliceLimit:
    """The limit that a user has given: 100000, "100000" (instructions), "1ms", "250us" or "0.5s" of estimated time.
    Raises UsageError."""
    match = _LIMIT.fullmatch(str(given)) if isinstance(given, (int, str)) else None
    number = 0.0 if match is None or isinstance(given, bool) else float(match[1])
    unit = None if match is None else match[2]
    if number <= 0 or not math.isfinite(number) or (unit is None and number != int(number)):
        raise UsageError(
            f"{given!r} is no length of a slice",
            "--max-step",
            "instructions, as in 100000, or an estimated time: 1ms, 250us, 0.5s",
        )
    if unit is None:
        return SliceLimit(str(int(number)), int(number), None)
    return SliceLimit(str(given), None, number * _UNITS[unit])


def slices_given(
    deployment: Deployment, board: Board, max_step: object, *, context: bool
) -> tuple[Deployment, SlicePlan | None]:
    """The deployment with long calls in parts, and the cuts for `generate`'s max_step; as it is, and None, where that
    is None. Raises UsageError: no length, or static memory."""
    if max_step is None:
        return deployment, None
    limit = slice_limit(max_step)
    if deployment.sized is not None:
        raise UsageError(
            "the slices of a run are cut for one size, and the model's is known at run time",
            "--max-step",
            "leave --max-step away, or compile the model for one size",
        )
    if not context:
        raise UsageError(
            "a run that can be left and gone on with needs a context that says where it has come to",
            "--max-step",
            "--context, too: the caller gives the memory of each instance",
        )
    return slices_of(deployment, board, limit)


@dataclass(frozen=True)
class Segment:
    """Calls that are one slice; or a fusion group, of `actions` actions a slice; or a call in parts, of one a slice.

    steps: of the deployment, by their indices. slices: their number. cost: stated, of the longest; None where a kernel
    states none. runs: of layers, in each slice.
    """

    steps: tuple[int, ...]
    group: FusionGroup | None
    actions: int
    slices: int
    cost: int | None
    runs: tuple[int, ...]


@dataclass(frozen=True)
class SlicePlan:
    """limit: in `unit`s, "instructions" or "cycles". retained: before each slice, and after the last, ranges (offset,
    bytes) of the arena, ascending, that are alive. notes: slices that are longer than asked, and what was changed so
    that others are not, a line each."""

    limit: SliceLimit
    most: int
    unit: str
    segments: tuple[Segment, ...]
    retained: tuple[tuple[tuple[int, int], ...], ...]
    notes: tuple[str, ...]

    @property
    def count(self) -> int:
        return sum(segment.slices for segment in self.segments)

    @property
    def runs(self) -> tuple[int, ...]:
        """How many runs of layers each slice has."""
        return tuple(runs for segment in self.segments for runs in segment.runs)

    @property
    def retained_most(self) -> int:
        """Bytes, of the cut that keeps most."""
        return max(sum(size for _, size in ranges) for ranges in self.retained)

    def where(self, number: int) -> tuple[int, ...]:
        """The steps of a slice."""
        for segment in self.segments:
            if number < segment.slices:
                return segment.steps
            number -= segment.slices
        raise IndexError(number)


def slices_of(deployment: Deployment, board: Board, limit: SliceLimit) -> tuple[Deployment, SlicePlan]:
    """The deployment with calls in parts that are longer than a slice may be, the cuts of a run, and what lives there.
    Raises UsageError: a model that takes its input row by row is cut by its caller already."""
    if any(group.tiled_input is not None for group in deployment.plan.fusion_groups):
        raise UsageError(
            "a model that takes its input row by row stops after every row by itself",
            "--max-step",
            "leave --max-step or --input-rows away",
        )
    by_time = limit.seconds is not None
    most = limit.most(board)
    unit = "cycles" if by_time else "instructions"
    cuts, reasons = _cuts(deployment, most, by_time=by_time)
    before, deployment = deployment, with_parts(deployment, cuts)
    plan = deployment.plan
    segments: list[Segment] = []
    notes = _changes(before, deployment)
    waiting: list[int] = []
    length = 0

    def close() -> None:
        nonlocal length
        if waiting:
            segments.append(Segment(tuple(waiting), None, 0, 1, length, (len(waiting),)))
        waiting.clear()
        length = 0

    for step in deployment.steps:
        group = plan.fusion_group(step.node)
        cost = _cost(deployment, step, by_time=by_time)
        if group is not None:
            if step.node is group.nodes[0]:
                close()
                segments.append(_group(deployment, group, limit, most, notes, unit, by_time=by_time))
            continue
        if step.parts:
            close()
            longest, count = cuts[step.node].longest(by_time=by_time), len(step.parts)
            segments.append(Segment((step.index,), None, 0, count, longest, (1,) * count))
            if longest > most:
                known = f"its smallest parts take {longest:,} {unit}, by {step.call.kernel}"
                notes.append(f"a slice longer than {limit.text}: {step}: {step.node.op}: {known}")
            continue
        if cost is None or cost > most:
            close()
            segments.append(Segment((step.index,), None, 0, 1, cost, (1,)))
            notes.append(f"a slice longer than {limit.text}: {_too_long(step, cost, unit, reasons)}")
            continue
        if length + cost > most:
            close()
        waiting.append(step.index)
        length += cost
    close()
    slices = SlicePlan(limit, most, unit, tuple(segments), _retained(deployment, segments), tuple(notes))
    return deployment, slices


def _cuts(deployment: Deployment, most: int, *, by_time: bool) -> tuple[dict[Node, Cut], dict[Node, str]]:
    """The calls that are made in parts; and why others, which are too long, are not."""
    plan, decision = deployment.plan, deployment.decision
    found, reasons = dict[Node, Cut](), dict[Node, str]()
    for step in deployment.steps:
        cost = _cost(deployment, step, by_time=by_time)
        if cost is None or cost <= most or plan.fusion_group(step.node) is not None:
            continue
        if step.name in deployment.places.ahead:
            reasons[step.node] = "its weights are copied ahead of it"
            continue
        pinned = step.name in decision.objective.pins
        cut = cut_of(step.node, decision, plan, deployment.target, most, by_time=by_time, pinned=pinned)
        if isinstance(cut, str):
            reasons[step.node] = cut
        else:
            found[step.node] = cut
    return found, reasons


def _changes(before: Deployment, deployment: Deployment) -> list[str]:
    """What parts have changed besides."""
    notes = [
        f"{step}: by {step.call.kernel}, whose parts are shorter than those of {known.call.kernel}"
        for step, known in zip(deployment.steps, before.steps, strict=True)
        if step.choice is not known.choice
    ]
    if (now := deployment.plan.arena_bytes) != (then := before.plan.arena_bytes):
        notes.append(f"an arena of {now:,} bytes in place of {then:,}: parts find their input as it was")
    return notes


@dataclass(frozen=True)
class SegmentView:
    """A segment as the template prints it. steps: the calls' views, or a fusion group's. actions: of it, a slice.
    parts: of a call that is made in so many; 0 for others."""

    comment: str
    steps: tuple[object, ...]
    actions: int
    parts: int


@dataclass(frozen=True)
class SlicesView:
    """The slices as the template prints them. ranges: all that are named; range_lines, alive_lines: of the tables.
    groups: the views of the fusion groups, whose variables the context holds. parted: whether some call is made in
    parts."""

    count: int
    retained_most: int
    segments: tuple[SegmentView, ...]
    groups: tuple[object, ...]
    parted: bool
    ranges: tuple[tuple[int, int], ...]
    range_lines: tuple[str, ...]
    alive_lines: tuple[str, ...]


def slices_view(plan: SlicePlan, views: Sequence[object]) -> SlicesView:
    """views: of calls outside of fusion groups and of these groups, in order."""
    rest, segments, groups = list(views), list[SegmentView](), list[object]()
    number = 0
    for segment in plan.segments:
        count = 1 if segment.group is not None else len(segment.steps)
        taken, rest = tuple(rest[:count]), rest[count:]
        groups += taken if segment.group is not None else ()
        which = (
            f"slice {number}" if segment.slices == 1 else f"slices {number} to {number + segment.slices - 1}"
        )
        stated = f": {segment.cost} {plan.unit} at most, as stated" if segment.cost is not None else ""
        parts = segment.slices if segment.group is None and segment.slices > 1 else 0
        segments.append(SegmentView(which + stated, taken, segment.actions, parts))
        number += segment.slices
    ranges: list[tuple[int, int]] = []
    entries: dict[tuple[tuple[int, int], ...], str] = {}
    for alive in plan.retained:
        if alive not in entries:
            entries[alive] = f"{{{len(ranges)}u, {len(alive)}u}},"
            ranges += alive
    # C has no empty arrays.
    ranges = ranges or [(0, 0)]
    return SlicesView(
        plan.count,
        plan.retained_most,
        tuple(segments),
        tuple(groups),
        any(segment.parts for segment in segments),
        tuple(ranges),
        tuple(packed([f"{{{offset}u, {size}u}}," for offset, size in ranges])),
        tuple(packed([entries[alive] for alive in plan.retained])),
    )


def _cost(deployment: Deployment, step: Step, *, by_time: bool) -> int | None:
    """Of all its calls; None where its kernel states none."""
    cost = deployment.decision.chosen[step.node].cost
    if cost is None:
        return None
    return cost.time if by_time else cost.instructions


def _too_long(step: Step, cost: int | None, unit: str, reasons: Mapping[Node, str]) -> str:
    known = f"takes {cost:,} {unit}" if cost is not None else "states no cost"
    why = f": {reasons[step.node]}" if step.node in reasons else ""
    return f"{step}: {step.node.op} by {step.call.kernel} {known}, in one call{why}"


def _group(
    deployment: Deployment,
    group: FusionGroup,
    limit: SliceLimit,
    most: int,
    notes: list[str],
    unit: str,
    *,
    by_time: bool,
) -> Segment:
    """As many actions a slice as all slices can have."""
    steps = {step.node: step for step in deployment.steps if step.node in group.rules}
    found = cases(group, {node for node, step in steps.items() if step.call.scratch_bytes})
    moved = _moved(group)
    costs = [
        _action(deployment, steps, case, count, by_time=by_time)
        for case, count in zip(found, moved, strict=True)
    ]
    known = [cost for cost in costs if cost is not None]
    count = 1
    if len(known) == len(costs):
        while count < len(costs) and _longest(known, count + 1) <= most:
            count += 1
    longest = _longest(known, count) if len(known) == len(costs) else None
    if longest is None or longest > most:
        said = f"{longest:,} {unit}" if longest is not None else "of unknown cost"
        names = ", ".join(str(step) for step in steps.values())
        notes.append(f"a slice longer than {limit.text}: {names}: computed by rows, {said} a tile")
    cuts = range(0, len(found), count)
    runs = tuple(sum(isinstance(c.action, Run) for c in found[at : at + count]) for at in cuts)
    return Segment(tuple(step.index for step in steps.values()), group, count, len(cuts), longest, runs)


def _longest(costs: Sequence[int], count: int) -> int:
    return max(sum(costs[at : at + count]) for at in range(0, len(costs), count))


def _moved(group: FusionGroup) -> list[int]:
    """Bytes of rows that move with each case of a fusion group."""
    found: list[int] = []
    for action in group.actions:
        match action:
            case Shift():
                found.append(group.moved_by(action))
            case Move():
                found[-1] += group.moved_by(action)
            case Open() | Close():
                continue
            case _:
                found.append(0)
    return found


def _action(
    deployment: Deployment, steps: Mapping[Node, Step], case: Case, moved: int, *, by_time: bool
) -> int | None:
    """Of one tile, or of rows that are filled, and of the moves around them, of `moved` bytes."""
    a_byte = (CYCLES if by_time else INSTRUCTIONS).a_byte
    around = _AN_ACTION * (1 + len(case.ahead) + len(case.behind)) + math.ceil(a_byte * moved)
    if not isinstance(case.action, Run):
        return around
    step = steps[case.action.node]
    cost = _cost(deployment, step, by_time=by_time)
    return None if cost is None else -(-cost // step.runs) + around


def _retained(deployment: Deployment, segments: Sequence[Segment]) -> tuple[tuple[tuple[int, int], ...], ...]:
    """What lives before each slice, and after the last: blocks that a call before the cut has begun, and one behind it
    still reads. In the midst of a fusion group that is all that its layers use."""
    before = _alive(deployment, -1, 0)
    found = [_merged(before)]
    for segment in segments:
        first, last = segment.steps[0], segment.steps[-1]
        midst = [*_alive(deployment, last, first), *_sums(deployment, segment)]
        found += [_merged(midst)] * (segment.slices - 1)
        found.append(_merged(_alive(deployment, last, last + 1)))
    # After the last slice the caller reads outputs, and writes the inputs of the next run.
    found[-1] = _merged([*found[-1], *before])
    return tuple(found)


def _sums(deployment: Deployment, segment: Segment) -> list[tuple[int, int]]:
    """Scratch memory that layers of a fusion group keep from tile to tile: sums over all rows."""
    plan, group = deployment.plan, segment.group
    return [
        (plan.scratch[step.node], step.call.scratch_bytes)
        for step in deployment.steps
        if group is not None and step.node in group.rules and group.rules[step.node].reduces
    ]


def _alive(deployment: Deployment, begun: int, needed: int) -> list[tuple[int, int]]:
    """The blocks, (offset, bytes) each, that are written by call `begun` or one before it, and read by call `needed` or
    a later one."""
    return [
        (block.offset, block.bytes)
        for block in deployment.plan.arena_blocks
        if block.bytes and block.lifetime.first <= begun and block.lifetime.last >= needed
    ]


def _merged(found: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The ranges in order, those that touch as one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted((offset, offset + size) for offset, size in found):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple((start, end - start) for start, end in merged)
