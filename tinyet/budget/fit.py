# SPDX-License-Identifier: Apache-2.0
"""Does it fit? Known before anything is compiled, and said with what takes the most room."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tinyet.boards import Board
from tinyet.budget.placing import held, shortages, with_places
from tinyet.budget.room import CALLER_STACK, HARNESS_STACK, Flash, PlannedStack, Room, room_of
from tinyet.budget.tables import around_table, core_table, table_of
from tinyet.delegates import DEFAULT, Delegate
from tinyet.deployment import Deployment, deploy
from tinyet.errors import FitError, ToolchainError, bullet_list
from tinyet.errors.arguments import whole_given
from tinyet.ir import Graph, Node, Size
from tinyet.memory.fusion import FusionGroup
from tinyet.opset.cost import core_of, measured
from tinyet.planning.objective import Capacity, Objective, check_buffers, check_optimize
from tinyet.planning.places import ARENA, AUTO, PIECES, USUAL
from tinyet.stack.use import StackUse

LARGEST = 5
ROUNDS = 4
"""Choices that are made for one pair of limits."""
_HARNESS, _COUNT, _LEAST_COUNTS = 744, 16, 8
"""Bytes of RAM that the harness has beside those of a model: static ones, at most, measured on Cortex-M, RISC-V and
Xtensa; for each layer's count (tinyet_harness.c), of so many at least."""
PROGMEM_REACH = 65536
"""AVR's instruction for constants in program memory has addresses of 16 bits."""


@dataclass(frozen=True)
class Contributor:
    """One thing that takes room: bytes, what it is, and the source line that asked for it."""

    bytes: int
    text: str

    def __str__(self) -> str:
        return f"{self.bytes} bytes: {self.text}"


@dataclass(frozen=True)
class Limits:
    """The limits of a deployment, in bytes. max_ram, max_flash: None for the board's own. stack: the bytes reserved
    for everything but an inference; None for the usual amount. bare: the firmware is tinyet's own, not a framework's.
    """

    max_ram: int | None = None
    max_flash: int | None = None
    stack: int | None = None
    bare: bool = True

    @staticmethod
    def read(values: object, *, bare: bool) -> Limits:
        """Of a project's manifest, which may hold anything."""
        found = values if isinstance(values, dict) else {}
        names = ("max_ram", "max_flash", "stack")
        given = {name: found[name] for name in names if isinstance(found.get(name), int)}
        return Limits(**given, bare=bare)


NO_LIMITS = Limits()


def limits_given(max_ram: int | None, max_flash: int | None, stack: int | None, *, bare: bool) -> Limits:
    """Limits as a user gives them. Raises UsageError for what is no number of bytes, or too few for a stack."""
    ram, flash = (
        None if limit is None else whole_given(limit, what, "bytes: 64 * 1024")
        for limit, what in ((max_ram, "max_ram"), (max_flash, "max_flash"))
    )
    if stack is not None:
        stack = whole_given(stack, "stack", "bytes for who calls an inference: 2048", HARNESS_STACK)
    return Limits(ram, flash, stack, bare)


def objective_of(
    board: Board,
    optimize: str = "balanced",
    limits: Limits = NO_LIMITS,
    *,
    pins: Mapping[str, str] | None = None,
    input_rows: bool = False,
    buffers: str = "arena",
    place: Mapping[str, str] | None = None,
) -> Objective:
    """The first objective for a board: its memories, or the given limits where these are tighter, less the measured
    size of the rest of the firmware and the stack of its callers. place: of an arena in another memory that one counts.

    Raises UsageError for an `optimize` or `buffers` that there is not.
    """
    table, around = measured(core_of(board.target)), around_table(board) if limits.bare else None
    base = 0 if table is None else table.base
    flash = _tighter(limits.max_flash, board.flash.bytes, board)[0] - base
    known = limits.bare and board.bare_metal and core_table(table_of(board.target)) is not None
    usual = min(CALLER_STACK, board.stack_bytes) if known else board.stack_bytes
    stack = usual if limits.stack is None else limits.stack
    static = 0 if around is None else around.ram
    available = board.ram.bytes - stack - static
    ram = _tighter(limits.max_ram, board.ram.bytes, board)[0] - stack - static
    wanted = dict(place or {})
    others = {m.name: m.bytes for m in board.extra_memories if not m.read_only}
    if (arena := wanted.get(ARENA)) in others or arena == AUTO:
        most = max([ram, *others.values()]) if arena == AUTO else others[str(arena)]
        ram, available = most, max(most, available) if arena == AUTO else most
    elif arena is not None and PIECES in arena:
        more = sum(size for name, size in others.items() if name in arena.split(PIECES))
        in_ram = board.ram.name in arena.split(PIECES)
        ram, available = more + (ram if in_ram else 0), more + (available if in_ram else 0)
    return Objective(
        check_optimize(optimize),
        max(flash, 0),
        max(ram, 0),
        dict(pins or {}),
        wanted,
        input_rows=input_rows,
        buffers=check_buffers(buffers, input_rows=input_rows),
        board=Capacity(max(board.flash.bytes - base, 0), max(available, 0)),
    )


@dataclass(frozen=True)
class FitRequest:
    """All that a deployment which fits follows from: equal requests have equal deployments.

    objective: of `objective_of`. delegates: in the order in which they are asked. require: nobody else may compute
    anything. size: of the graph's inputs, known at run time.
    """

    graph: Graph
    board: Board
    objective: Objective
    limits: Limits = NO_LIMITS
    delegates: tuple[Delegate, ...] = DEFAULT
    require: bool = False
    size: Size | None = None


def fitted(request: FitRequest) -> Deployment:
    """The deployment for the objective, chosen again for less where code, stack or the margin of what is stated are
    above what that has left for them. Where nothing fits, the last that was tried; `check_fit` says so. Where it leaves
    no room for the harness, so that it could not be validated, one that does, if there is: but for a limit that is
    given, which is for the user's firmware.

    Raises what `deploy` does.
    """
    board, limits = request.board, request.limits
    deployment = _fitted(request)
    if limits.max_ram is not None or not (limits.bare and board.bare_metal):
        return deployment
    most = board.ram.bytes - _HARNESS - _COUNT * max(len(deployment.steps), _LEAST_COUNTS)
    if not most < _needed(deployment, board, limits) <= board.ram.bytes:
        return deployment
    found = _fitted(replace(request, limits=replace(limits, max_ram=most)))
    return found if _needed(found, board, limits) <= most else deployment


def _needed(deployment: Deployment, board: Board, limits: Limits) -> int:
    """Bytes of RAM."""
    return _ram(deployment, board, room_of(deployment, board, bare=limits.bare, stack=limits.stack))


def _fitted(request: FitRequest) -> Deployment:
    """The same without a look at the harness."""
    board, objective, limits = request.board, request.objective, request.limits
    for left in reversed(range(ROUNDS)):
        deployment = deploy(
            request.graph,
            board.target,
            request.delegates,
            require=request.require,
            objective=objective,
            size=request.size,
        )
        room = room_of(deployment, board, bare=limits.bare, stack=limits.stack)
        left_ram = _tighter(limits.max_ram, board.ram.bytes, board)[0] - room.static - room.stack.total
        deployment = with_places(deployment, board, objective.place, left_ram)
        own, flash = (
            deployment.plan.arena_bytes + deployment.state_bytes,
            deployment.decision.kernels.figures.flash,
        )
        more_ram = _ram(deployment, board, room) - _tighter(limits.max_ram, board.ram.bytes, board)[0]
        # Of an arena in two pieces the first is as large as its memory lets it be.
        second = deployment.places.second
        if (arena := second or deployment.places.arena) is not None and arena != board.ram:
            more_ram = held(deployment, board)[arena.name] - arena.bytes
        more_flash = _flash(deployment, room) - _tighter(limits.max_flash, board.flash.bytes, board)[0]
        # What was above an objective already is the least that there is.
        again_ram = more_ram > 0 and objective.ram is not None and own <= objective.ram
        again_flash = more_flash > 0 and objective.flash is not None and flash <= objective.flash
        if not left or not (again_ram or again_flash):
            break
        objective = replace(
            objective,
            ram=max(own - more_ram, 0) if again_ram else objective.ram,
            flash=max(flash - more_flash, 0) if again_flash else objective.flash,
        )
    return deployment


def _ram(deployment: Deployment, board: Board, room: Room) -> int:
    """Bytes of RAM that are counted of a deployment."""
    copied = deployment.operand_bytes if "progmem" in board.target.features else 0
    return sum(_placed_in_ram(deployment, board)) + copied + room.static + room.stack.total


def _placed_in_ram(deployment: Deployment, board: Board) -> tuple[int, int, int]:
    """Bytes of arena, state and copies of weights in the RAM."""
    places = deployment.places
    if places == USUAL:
        return deployment.plan.arena_bytes, deployment.state_bytes, 0
    plan = deployment.plan
    arena = plan.first_bytes if places.arena is None else 0
    if places.second == board.ram:
        arena = plan.arena_bytes - plan.first_bytes
    kept = sum(fusion_group.kept_bytes for fusion_group in deployment.plan.fusion_groups)
    state = deployment.state_bytes if places.state is None else kept
    own = held(deployment, board)[board.ram.name]
    return arena, state, max(own - arena - (state - kept), 0)


def _flash(deployment: Deployment, room: Room) -> int:
    """Bytes that the flash takes at most: constants in other memories are not there."""
    return room.flash.at_most - _elsewhere(deployment)


def _elsewhere(deployment: Deployment) -> int:
    """Bytes of constants that lie in another memory than the flash, and nowhere else."""
    apart = {name for name, memory in deployment.places.weights.items() if memory.read_only}
    return sum(a.bytes for s in deployment.steps if s.name in apart for a in deployment.arrays_of(s))


def peak_tensors(deployment: Deployment) -> tuple[int, list[Contributor]]:
    """(step, contributors): the step at which most bytes are alive, and the blocks alive then, largest first. Of an
    output that lies partly over an input, it is what lies beside that; of what is computed by rows, the rows that are
    there when that layer needs the most."""
    plan = deployment.plan
    named = {t.name: f"input {t.name}" for t in deployment.graph.user_inputs}
    named |= {state.name: f"state {state.name}" for state in deployment.graph.states}
    named |= {t.name: f"output of {step}" for step in deployment.steps for t in step.node.outputs}

    def alive(step: int) -> list[Contributor]:
        call = plan.calls[step] if 0 <= step < len(plan.calls) else None
        over = {} if call is None else plan.over(call)
        fusion_group = None if call is None else plan.fusion_group(call)
        found = [] if fusion_group is None or call is None else rows_alive(fusion_group, call, named)
        by_rows = set() if fusion_group is None else {plan.storage[t].block for t in fusion_group.rows}
        for number, block in enumerate(plan.blocks):
            if (
                number in by_rows
                or plan.beside(block)
                or not block.lifetime.first <= step <= block.lifetime.last
            ):
                continue
            size, text = block.bytes, named.get(block.name, block.name)
            if call is not None and over and number == plan.storage[call.output].block:
                size -= sum(over.values())
                names = " and ".join(named.get(t.name, t.name) for t in over)
                text += f", of {block.bytes} bytes; the others lie over {names}, row by row"
            found.append(Contributor(size, text))
        if 0 <= step < len(deployment.steps) and deployment.steps[step].call.scratch_bytes:
            size = deployment.steps[step].call.scratch_bytes
            found.append(Contributor(size, f"scratch of {deployment.steps[step]}"))
        return found

    worst = plan.alive.index(max(plan.alive)) - 1
    return worst, sorted(alive(worst), key=lambda c: (-c.bytes, c.text))


def rows_alive(fusion_group: FusionGroup, node: Node, named: Mapping[str, str]) -> list[Contributor]:
    """The rows that are there when a layer of a stream runs, at the run when they take the most bytes, and the gaps
    between those of stacked buffers.

    named: what tensors are called, by their names.
    """
    held = {t: (rows.behind - rows.first) * rows.row_bytes for t, rows in fusion_group.rows.items()}
    gaps = fusion_group.heights - sum(held[tensor] for tensor in fusion_group.stacked_buffers)
    moments = fusion_group.moments(node)
    worst = max(moments, key=lambda moment: int(gaps[moment] + sum(each[moment] for each in held.values())))
    found = []
    for tensor, each in held.items():
        buffer, name = fusion_group.rows[tensor], named.get(tensor.name, tensor.name)
        rows = int(each[worst]) // buffer.row_bytes
        if rows:
            text = name if rows >= buffer.height else f"{rows} of {buffer.height} rows of {name}"
            found.append(Contributor(int(each[worst]), text))
    if gaps[worst]:
        found.append(Contributor(int(gaps[worst]), "room of rows that are dropped, for those that come next"))
    return found


def largest_constants(deployment: Deployment) -> list[Contributor]:
    """Weights and tables by layer, largest first: each array once, with the layer that is the first to need it."""
    found = []
    for step in deployment.steps:
        mine = [a for a in deployment.arrays_of(step) if a.rom]
        size = sum(a.bytes for a in mine)
        if size:
            others = len({user.index for a in mine for user, _ in a.uses}) - 1
            shared = f" (and {others} more that share them)" if others else ""
            found.append(Contributor(size, f"{step}: {step.node.op}{shared}"))
    return sorted(found, key=lambda c: -c.bytes)


def operands(deployment: Deployment) -> list[Contributor]:
    """Constants that are operands of kernels, largest first, each once."""
    found = [Contributor(a.bytes, f"constant {a.comment}") for a in deployment.arrays if not a.rom]
    return sorted(found, key=lambda c: (-c.bytes, c.text))


def check_fit(deployment: Deployment, board: Board, limits: Limits = NO_LIMITS) -> None:
    """Raise FitError when data and stack exceed the RAM, or constants and code the flash, of the board or the limits.

    Where constants have an address space of their own (`progmem`), those that kernels take as they take activations
    are copied to RAM at the start, so they count twice; and parameters stay in flash. Flash counts as it is at most, as
    far as it is known before a build; `check_sizes` looks again behind it.
    """
    progmem = "progmem" in board.target.features
    kept = operands(deployment)
    kept_bytes = deployment.operand_bytes
    room = room_of(deployment, board, bare=limits.bare, stack=limits.stack)
    problems, hints = [], []
    limit, whose = _tighter(limits.max_ram, board.ram.bytes, board)
    total = _ram(deployment, board, room)
    arena, state, copies = _placed_in_ram(deployment, board)
    if total > limit:
        step, tensors = peak_tensors(deployment)
        where = deployment.steps[step] if 0 <= step < len(deployment.steps) else None
        at = f"layer {where.index}, {where}: {where.node.op}" if where else "the boundary"
        inference = room.stack.inference is not None
        terms = [
            ("arena", arena),
            ("state", state),
            ("copies of weights", copies),
            ("constants that are operands", kept_bytes if progmem else 0),
            ("the firmware's own data", room.static),
            ("stack of an inference", room.stack.inference or 0),
            (
                "stack of its callers" if inference else "stack",
                room.stack.total - (room.stack.inference or 0),
            ),
        ]
        text = " + ".join(f"{name} {size}" for name, size in terms if size or name == "arena")
        largest = tensors[:LARGEST] + (kept[:LARGEST] if progmem else [])
        problems.append(
            f"RAM: {text} = {total} bytes, {whose} {limit}; most is alive at {at}:\n"
            + bullet_list([str(c) for c in largest])
        )
        hints.append("RAM: smaller images, fewer channels or earlier strides; or a board with more RAM")
        if inference and total - room.stack.caller < limit:
            hints.append("RAM: a smaller reserve of stack for who calls an inference: --stack BYTES")
        writable = [m for m in board.extra_memories if not m.read_only]
        places = deployment.places
        if places.arena is None and (others := [m.name for m in writable if m.bytes >= arena > 0]):
            hints.append(f"RAM: the arena in another memory: --place arena={others[0]}")
        elif places.second is None and places.arena is None and writable and arena > 0:
            hints.append(
                f"RAM: an arena in two memories: --place arena={writable[0].name}{PIECES}{board.ram.name}"
            )
    for memory, taken, objects in shortages(deployment, board):
        problems.append(
            f"{memory.name}: {taken} bytes were placed there, {board.name} has {memory.bytes}, {taken - memory.bytes} "
            f"too few; the largest:\n"
            + bullet_list([f"{each.bytes} bytes: {each.name}" for each in objects[:LARGEST]])
        )
        hints.append(f"{memory.name}: place less there, or let the estimate choose: --place weights=auto")
    constants = deployment.constant_bytes + deployment.parameter_bytes - _elsewhere(deployment)
    flash, whose = _tighter(limits.max_flash, board.flash.bytes, board)
    largest = sorted(largest_constants(deployment) + kept, key=lambda c: -c.bytes)[:LARGEST]
    smaller = "flash: fewer channels, int8 instead of float layers; or a board with more flash"
    if constants > flash:
        problems.append(
            f"flash: weights and parameters alone take {constants} bytes, {whose} {flash}; the largest:\n"
            + bullet_list([str(c) for c in largest])
        )
        hints.append(smaller)
    elif _flash(deployment, room) > flash:
        problems.append(
            f"flash: {said_of(room.flash)}, {whose} {flash}; the largest constants:\n"
            + bullet_list([str(c) for c in largest])
        )
        hints.append(smaller)
    elif progmem and constants - kept_bytes > PROGMEM_REACH:
        problems.append(
            f"flash: weights and parameters take {constants - kept_bytes} bytes, "
            f"constants can lie in the first {PROGMEM_REACH} only"
        )
        hints.append("flash: fewer channels, int8 instead of float layers; or a board that is no AVR")
    if problems:
        raise FitError("\n".join(problems), hint="\n".join(hints))


def said_of(flash: Flash) -> str:
    """The sentence about estimated flash and its upper bound."""
    parts = [f"constants {flash.constants}"]
    parts += [f"code {flash.code}"] if flash.code else []
    parts += [f"around the model {flash.around}"] if flash.around is not None else []
    more = f", at most {flash.at_most}" if flash.margin else ""
    unknown = f"; not counted, code of {', '.join(flash.unknown)}" if flash.unknown else ""
    return f"{' + '.join(parts)} = {flash.stated} bytes{more}{unknown}"


def stack_said(stack: PlannedStack) -> str:
    """The sentence about the counted stack."""
    if stack.inference is None:
        return f"{stack.total} bytes, as the board reserves: what an inference takes is known after the build"
    return f"an inference {stack.inference} + its callers {stack.caller} = {stack.total} bytes"


def _tighter(limit: int | None, available: int, board: Board) -> tuple[int, str]:
    """The smaller of a limit and what the board has, in bytes, and the words that introduce it."""
    if limit is None or available < limit:
        return available, f"{board.name} has"
    return limit, "the limit is"


@dataclass(frozen=True)
class Use:
    """The use of one memory by a built application, with its symbols, largest first. For RAM the stack is included:
    its bound, or the reserved size where there is no bound."""

    kind: str
    bytes: int
    symbols: Sequence[Contributor]


def check_sizes(*uses: tuple[Use, int | None], stack: StackUse, board: Board) -> None:
    """Raise FitError when a built application takes more of a memory than the limit beside it, or may take more stack
    than there is."""
    problems, hints = [], []
    needed, room = stack.needed, board.stack_bytes if stack.reserved is None else stack.reserved
    if needed.bytes is not None and needed.bytes > room:
        who = "an inference" if needed is stack.inference else "the application"
        chain = bullet_list([f"{frame.bytes} bytes: {frame.function}" for frame in needed.chain])
        problems.append(
            f"stack: {who} may take {needed.bytes} bytes, {board.name} has {room}; "
            f"the deepest chain of calls:\n{chain}"
        )
        hints.append(
            "stack: make large arrays of your own functions static; "
            "or generate again with a larger reserve for them: --stack BYTES"
        )
    for use, limit in uses:
        if limit is not None and use.bytes > limit:
            largest = bullet_list([str(c) for c in use.symbols[:LARGEST]])
            problems.append(
                f"{use.kind}: the application takes {use.bytes} bytes, the limit is {limit}; "
                f"its largest symbols:\n{largest}"
            )
            hints.append("generate again with a higher limit, or make the largest layers smaller")
    if problems:
        raise FitError("\n".join(problems), hint="\n".join(dict.fromkeys(hints)))


def explain_overflow(error: ToolchainError, deployment: Deployment, board: Board, where: str) -> None:
    """Raise FitError when it was the linker's complaint that a memory of the board is too small. where: the project."""
    found = re.findall(r"region .(\w+).? overflowed by (\d+) bytes", error.what)
    if not found:
        return
    lines = [f"{region.lower()}: {count} bytes too many for {board.name}" for region, count in found]
    largest = bullet_list([str(c) for c in largest_constants(deployment)[:LARGEST]])
    raise FitError(
        "\n".join(lines) + f"\nthe arena takes {deployment.plan.arena_bytes} bytes of RAM; "
        f"the largest weights in flash:\n{largest}",
        where,
        "a smaller model, or a board with more memory",
    ) from error
