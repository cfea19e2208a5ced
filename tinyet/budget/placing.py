# SPDX-License-Identifier: Apache-2.0
"""Which memory of a board holds the arena, the state, and the weights of each layer: what the user names, or what the
estimate of their accesses speaks for.

The model: each byte of a layer's inputs is read once an inference, each of its outputs written once, each of scratch
and state both. Of weights a call reads what its kernel states (printed tiles do); otherwise dense convolutions and
linear layers read them once for every four pixels, which is the largest tile there is, and others once. So it is a
lower bound. An access of a memory brings `line_bytes`, and waits `read_waits` or `write_waits` cycles; what fits into
the lines that a flash, or the core's cache, keeps, is read once. A copy at the start is no part of an inference.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tinyet.boards import Board, Memory
from tinyet.budget.arena_pieces import pieces_of, pieces_problems, worth_of
from tinyet.deployment import Deployment, Step, ahead_bytes, with_arena_split, with_copies_ahead
from tinyet.errors import InternalError, UsageError, bullet_list
from tinyet.errors.arguments import described
from tinyet.memory.split import Split
from tinyet.opset.cost import cycles_of
from tinyet.planning.places import ARENA, AUTO, PIECES, SECOND, STATE, USUAL, WEIGHTS, Places

_ALIGN = 16
"""Bytes: of every object, as it is counted. The strictest alignment of any array."""
_BY_PIXELS = ("conv2d", "linear")
"""Operators that have each weight for all of several pixels, or rows."""
_MOST_PIXELS, _WINOGRAD_PIXELS = 4, 16
"""Pixels that a kernel computes together at most: those of its tile, or of a tile of Winograd's F(4x4)."""
_MOST_AHEAD = 8
"""Layers for which copies ahead of their calls are tried: each is a plan of the memory."""
_COPIED_A_CYCLE = 1
"""Bytes that memcpy moves in a cycle at least, without waits: a load and a store of a word take four, or less."""
_MOST_ROUNDS = 16
"""Turns of exchanging the places of weights."""
_READ_WEIGHTS = "read weights"
"""The part of a cost model that states the bytes of weights that a call reads."""


@dataclass(frozen=True)
class Traffic:
    """Bytes of an object, and those of them that an inference reads and writes; each as often as it does."""

    bytes: int
    read: int
    written: int


@dataclass(frozen=True)
class Placed:
    """An object and the memory that it lies in. layer: of weights, else empty. copied: from flash, at the start; ahead:
    into the arena, before each call.
    waits: estimated cycles that an inference waits for its accesses; None where nobody has stated the memory's."""

    name: str
    layer: str
    memory: Memory
    bytes: int
    copied: bool
    ahead: bool
    waits: float | None


def placed(deployment: Deployment, board: Board) -> tuple[Placed, ...]:
    """Arena, state, and the weights of each layer that has some, in this order; of an arena in two pieces both."""
    places, (whole, second) = deployment.places, arena_traffic(deployment)
    rows = [(ARENA, "", places.arena or board.ram, whole)]
    if places.second is not None:
        rows.append((SECOND, "", places.second, second))
    if (state := _state_traffic(deployment)).bytes:
        rows.append((STATE, "", places.state or board.ram, state))
    for step in _weighted(deployment):
        memory = places.weights.get(step.name, board.flash)
        if step.name in places.ahead:
            memory = _memory_ahead(deployment, board, step)
        rows.append((f"weights of {step.name}", step.name, memory, weight_traffic(deployment, step)))
    return tuple(
        Placed(
            name,
            layer,
            memory,
            traffic.bytes,
            bool(layer) and not memory.read_only and layer not in places.ahead,
            layer in places.ahead,
            _ahead_waits(board, memory, traffic) if layer in places.ahead else waits(board, memory, traffic),
        )
        for name, layer, memory, traffic in rows
    )


def waits(board: Board, memory: Memory, traffic: Traffic) -> float | None:
    """Cycles of an inference; None where they are not stated."""
    timing, ram = board.flash_timing, board.ram.read_waits or 0
    lines = 0 if timing is None else timing.code_lines if timing.shared else timing.data_lines
    kept = 0 if timing is None else lines * timing.line_bytes
    if memory == board.flash:
        if timing is None:
            return None
        read = min(traffic.read, traffic.bytes) if traffic.bytes <= kept else traffic.read
        return (timing.wait_states + ram) * read / timing.line_bytes
    if memory == board.ram and memory.read_waits is None:
        return 0.0  # those of the flash are more than the RAM's
    if memory.read_waits is None:
        return None
    read = traffic.read
    if memory.cached and traffic.bytes <= kept:
        read = min(read, traffic.bytes)
    return (memory.read_waits * read + (memory.write_waits or 0) * traffic.written) / memory.line_bytes


def _ahead_waits(board: Board, memory: Memory, traffic: Traffic) -> float | None:
    """Of weights that are copied into the arena's memory before each call: read once in flash."""
    copied = waits(board, board.flash, Traffic(traffic.bytes, traffic.bytes, 0))
    used = waits(board, memory, Traffic(traffic.bytes, traffic.read, traffic.bytes))
    return None if copied is None or used is None else copied + used + traffic.bytes / _COPIED_A_CYCLE


def _memory_ahead(deployment: Deployment, board: Board, step: Step) -> Memory:
    """The memory of what is copied into the arena ahead of a layer."""
    places, plan = deployment.places, deployment.plan
    if places.second is not None and plan.in_second(plan.scratch[step.node]):
        return places.second
    return places.arena or board.ram


def arena_traffic(deployment: Deployment) -> tuple[Traffic, Traffic]:
    """Of the arena, or of its first piece, and of its second."""
    plan, read, written = deployment.plan, [0, 0], [0, 0]
    for step in deployment.steps:
        inputs = dict.fromkeys(t for t in step.node.inputs if t is not None and not t.is_constant)
        for tensor in inputs:
            read[plan.in_second(plan.offset(tensor))] += tensor.type.bytes
        for tensor in step.node.outputs:
            written[plan.in_second(plan.offset(tensor))] += tensor.type.bytes
        if step.call.scratch_bytes:
            # On top of stacked buffers it is in their block.
            there = plan.in_second(plan.scratch.get(step.node, plan.offset(step.node.outputs[0])))
            read[there] += step.call.scratch_bytes
            written[there] += step.call.scratch_bytes
    sizes = max(plan.first_bytes, 1), plan.arena_bytes - plan.first_bytes
    first, second = (Traffic(*each) for each in zip(sizes, read, written, strict=True))
    return first, second


def _state_traffic(deployment: Deployment) -> Traffic:
    size = sum(step.call.state_bytes for step in deployment.steps)
    return Traffic(size, size, size)


def weight_traffic(deployment: Deployment, step: Step) -> Traffic:
    """Of the arrays that this layer is the first to need; others that share them read them as often."""
    arrays = deployment.arrays_of(step)
    users = {user: None for array in arrays for user, _ in array.uses}
    own = sum(array.bytes for array in arrays)
    read = 0
    for user in users:
        stated = _stated_reads(deployment, user)
        mine = sum(a.bytes for a in arrays if any(user is each for each, _ in a.uses))
        read += mine * _times(user) if stated is None else max(stated, mine)
    return Traffic(own, read, 0)


def _stated_reads(deployment: Deployment, step: Step) -> int | None:
    """Bytes of weights that all calls of a layer read, as its kernel states them."""
    model, node, plan = step.choice.kernel.cost_model, step.node, deployment.plan
    if model is None or model.exact is None or step.runs != 1:
        return None
    core = cycles_of(deployment.target)
    return model.exact(node, plan.layouts(node), core).reads.get(_READ_WEIGHTS)


def _times(step: Step) -> int:
    """How often an inference reads a layer's weights at least: once a call; a convolution or a linear layer that has
    each weight for several pixels, once for as many as a kernel computes together."""
    node = step.node
    weights = node.inputs[1] if len(node.inputs) > 1 else None
    if node.op not in _BY_PIXELS or weights is None or getattr(node.attrs, "groups", 1) != 1:
        return step.runs
    pixels = step.macs * step.runs // max(weights.type.count, 1)
    together = _WINOGRAD_PIXELS if "winograd" in step.choice.kernel.symbol else _MOST_PIXELS
    return max(step.runs, -(-pixels // together))


def _weighted(deployment: Deployment) -> list[Step]:
    return [step for step in deployment.steps if deployment.arrays_of(step)]


def held(deployment: Deployment, board: Board) -> dict[str, int]:
    """Bytes that the model's objects take of each memory, by its name; of the flash what was not placed elsewhere."""
    found = {memory.name: 0 for memory in (board.flash, board.ram, *board.extra_memories)}
    for each in placed(deployment, board):
        # Copies ahead of a layer are a part of the arena, whose weights stay in flash.
        found[board.flash.name if each.ahead else each.memory.name] += _aligned(each.bytes)
    return found


def _aligned(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN


# ---------------------------------------------------------------- what the user names


def places_given(place: Mapping[str, str] | None) -> dict[str, str]:
    """As a user gives it. Raises UsageError for what is no mapping of names to names."""
    found: object = {} if place is None else place
    if not isinstance(found, Mapping) or not all(isinstance(t, str) for pair in found.items() for t in pair):
        raise UsageError(
            f"place is {described(found)}",
            hint='names and memories: place={"arena": "dtcm", "weights": "auto"}',
        )
    return dict(found)


def for_framework(board: Board, framework: str | None) -> Board:
    """The board as a project sees that a framework's linker script links: the estimate puts nothing into memories in
    which that has no section."""
    if framework is None:
        return board
    return replace(
        board,
        extra_memories=tuple(
            memory
            if memory.section_of(framework)
            else replace(memory, read_waits=None, write_waits=None, line_bytes=4, family="")
            for memory in board.extra_memories
        ),
    )


def check_context(wanted: Mapping[str, str]) -> None:
    """Raise UsageError for what cannot be placed where the caller gives each instance its memory."""
    if apart := [what for what in (ARENA, STATE) if what in wanted]:
        raise UsageError(
            f"with context the caller gives the memory of {' and '.join(apart)}",
            "--place",
            "put your own arrays into the section, or leave context away",
        )
    if ahead := [what for what, to in wanted.items() if to == ARENA]:
        raise UsageError(
            f"with context kernels' parameters cannot point into the arena: {', '.join(ahead)}",
            "--place",
            "copy these weights into a memory at the start, or leave context away",
        )


def check_sections(board: Board, places: Places, framework: str) -> None:
    """Raise UsageError for memories in which a framework's linker script has no section."""
    missing = [
        f"{memory.name}: the board file names no section of {framework}'s linker script in it"
        for memory in places.memories
        if memory != board.ram and memory.section_of(framework) is None
    ]
    if missing:
        raise UsageError(
            f"nothing can be placed there by a project of {framework}:\n{bullet_list(missing)}",
            "--place",
            f'[memory.NAME.sections] in a board file of yours, with {framework} = ".section"; or another kind of '
            "project, whose linker script is yours or tinyet's",
        )


def places_of(deployment: Deployment, board: Board, wanted: Mapping[str, str], room: int) -> Places:
    """The memories of all objects. wanted: as given. room: bytes of the RAM that stack and other data leave.

    Raises UsageError with everything that is wrong with `wanted`.
    """
    if not wanted:
        return USUAL
    steps = {step.name: step for step in _weighted(deployment)}
    problems = _problems(deployment, board, wanted, steps)
    if problems:
        raise UsageError(
            f"not placed as asked: {len(problems)}\n{bullet_list(problems)}",
            "--place",
            f"objects: {', '.join([ARENA, STATE, WEIGHTS, *steps])}; memories of {board.name}: "
            f"{', '.join(m.name for m in memories_on(board))}, or {AUTO}; of weights also {ARENA}, ahead of each call",
        )
    named = {memory.name: memory for memory in memories_on(board)}
    first, second = pieces_of(wanted.get(ARENA, AUTO))
    of_layer = {name: wanted.get(name, wanted.get(WEIGHTS, board.flash.name)) for name in steps}
    fixed = Places(
        _variables(named, board, first),
        _variables(named, board, wanted.get(STATE, AUTO)),
        {name: named[to] for name, to in of_layer.items() if to not in (AUTO, ARENA, board.flash.name)},
        frozenset(
            name for name, to in of_layer.items() if to == ARENA and not _by_rows(deployment, steps[name])
        ),
        named[second] if second else None,
    )
    movable = {what for what in (ARENA, STATE) if wanted.get(what) == AUTO}
    movable |= {name for name, to in of_layer.items() if to == AUTO}
    if not _state_traffic(deployment).bytes:
        movable.discard(STATE)
    return _best(deployment, board, fixed, movable, room) if movable else fixed


def _variables(named: Mapping[str, Memory], board: Board, to: str) -> Memory | None:
    """The memory of arena or state; None for the RAM, and for what is not decided yet."""
    return None if to in (AUTO, board.ram.name) else named[to]


def _by_rows(deployment: Deployment, step: Step) -> bool:
    return deployment.plan.fusion_group(step.node) is not None


def memories_on(board: Board) -> list[Memory]:
    """Flash, RAM, and the others in the order of the board file."""
    return [board.flash, board.ram, *board.extra_memories]


def _problems(
    deployment: Deployment, board: Board, wanted: Mapping[str, str], steps: Mapping[str, Step]
) -> list[str]:
    named = {memory.name: memory for memory in memories_on(board)}
    problems = []
    for what, to in wanted.items():
        memory = named.get(to)
        if what == ARENA and PIECES in to:
            problems += pieces_problems(deployment, board.name, named, to)
            continue
        if what not in (ARENA, STATE, WEIGHTS, *steps):
            constant = any(step.name == what for step in deployment.steps)
            problems.append(
                f"{what}: {'that layer has no weights' if constant else 'nothing is called that'}"
            )
        elif what == STATE and to != AUTO and not _state_traffic(deployment).bytes:
            problems.append(
                f"{what}: no layer keeps memory of its own; states from run to run are in the arena"
            )
        if to == ARENA and what not in (ARENA, STATE):
            if what in steps and _by_rows(deployment, steps[what]):
                problems.append(
                    f"{what}: it is computed by rows, and has no single call to copy weights ahead of"
                )
        elif to != AUTO and memory is None:
            problems.append(f"{what}: {board.name} has no memory {to!r}")
        elif memory is not None and memory.read_only and what in (ARENA, STATE):
            problems.append(f"{what}: {to} cannot be written")
    if "progmem" in board.target.features and any(to != AUTO for to in wanted.values()):
        problems.append(f"on {board.cpu} constants are in an address space of their own, and cannot be moved")
    return problems


# ---------------------------------------------------------------- what the estimate speaks for


def _best(deployment: Deployment, board: Board, fixed: Places, movable: set[str], room: int) -> Places:
    """The places with the fewest cycles of waiting. Every pair of memories for arena and state is tried; for each, the
    weights that gain most a byte go first, and are exchanged while that gains. That is no proof of the optimum. Of
    equal places the usual ones."""
    if "progmem" in board.target.features:
        return fixed
    choices = [
        [m for m in (board.ram, *board.extra_memories) if not m.read_only] if what in movable else [usual]
        for what, usual in ((ARENA, fixed.arena or board.ram), (STATE, fixed.state or board.ram))
    ]
    traffic = {step.name: weight_traffic(deployment, step) for step in _weighted(deployment)}
    own = {ARENA: arena_traffic(deployment)[0], STATE: _state_traffic(deployment)}
    best: tuple[tuple[int, float], Places] | None = None
    for arena, state in itertools.product(*choices):
        left = {memory.name: memory.bytes for memory in memories_on(board)} | {board.ram.name: room}
        left[arena.name] -= _aligned(own[ARENA].bytes)
        left[state.name] -= _aligned(own[STATE].bytes)
        for name, memory in fixed.weights.items():
            left[memory.name] -= _aligned(traffic[name].bytes)
        cycles = sum(waits(board, m, own[w]) or 0.0 for m, w in ((arena, ARENA), (state, STATE)))
        unknown = sum(waits(board, m, own[w]) is None for m, w in ((arena, ARENA), (state, STATE)))
        free = [name for name in traffic if name in movable]
        weights, saved = _moved_weights(board, {name: traffic[name] for name in free}, left)
        short = -sum(min(each, 0) for each in left.values())
        found = Places(
            None if arena == board.ram else arena,
            None if state == board.ram else state,
            {name: m for name in traffic if (m := weights.get(name, fixed.weights.get(name))) is not None},
            fixed.ahead,
            fixed.second,
        )
        # What does not fit is worst, then what nobody can estimate; of equal ones the first, which is the usual.
        key = (short + (unknown << 40 if not short else 0), cycles - saved)
        if best is None or key < best[0]:
            best = key, found
    if best is None:
        raise InternalError("there is no memory to place anything in")
    return best[1]


def _moved_weights(
    board: Board, traffic: Mapping[str, Traffic], left: dict[str, int]
) -> tuple[dict[str, Memory], float]:
    """The weights that are moved, and the cycles that this saves. left: bytes of each memory, which it lowers."""
    others = [memory for memory in (board.ram, *board.extra_memories) if memory.read_waits is not None]
    others += [board.ram] if board.ram not in others else []
    gains = {
        name: {m.name: gain for m in others if (gain := _gain(board, m, each)) > 0}
        for name, each in traffic.items()
    }
    sizes = {name: _aligned(each.bytes) for name, each in traffic.items()}
    moved: dict[str, str] = {}

    def put(name: str, to: str | None) -> None:
        if name in moved:
            left[moved.pop(name)] += sizes[name]
        if to is not None:
            left[to] -= sizes[name]
            moved[name] = to

    def best_of(name: str) -> str | None:
        """The best memory that has room."""
        open_ = [m for m in gains[name] if sizes[name] <= left[m]]
        return max(open_, key=lambda m: gains[name][m], default=None)

    def total() -> float:
        return sum(gains[name][to] for name, to in moved.items())

    rank = sorted(
        gains, key=lambda name: (-max(gains[name].values(), default=0.0) / max(sizes[name], 1), name)
    )
    for name in rank:
        put(name, best_of(name))
    # One that gains more than another has the other's place, and that the best that is left.
    for _ in range(_MOST_ROUNDS):
        before = total()
        for one, two in itertools.permutations(rank, 2):
            was, place, now = moved.get(one), moved.get(two), total()
            if place is None or place not in gains[one] or place == was:
                continue
            put(two, None)
            put(one, None)
            if sizes[one] <= left[place]:
                put(one, place)
                put(two, best_of(two))
                if total() > now:
                    continue
            put(one, None)
            put(two, None)
            put(one, was)
            put(two, place)
        if total() <= before:
            break
    named = {memory.name: memory for memory in others}
    return {name: named[moved[name]] for name in traffic if name in moved}, total()


def _gain(board: Board, memory: Memory, traffic: Traffic) -> float:
    usual, other = waits(board, board.flash, traffic), waits(board, memory, traffic)
    return 0.0 if usual is None or other is None else usual - other


# ---------------------------------------------------------------- the proof


def shortages(deployment: Deployment, board: Board) -> list[tuple[Memory, int, list[Placed]]]:
    """The further memories that do not hold what was placed in them: each with the bytes that it would take, and with
    the objects, largest first. RAM and flash are the budget's."""
    if deployment.places == USUAL:
        return []
    found, all_ = held(deployment, board), placed(deployment, board)
    return [
        (
            memory,
            found[memory.name],
            sorted((each for each in all_ if each.memory == memory), key=lambda each: -each.bytes),
        )
        for memory in board.extra_memories
        if found[memory.name] > memory.bytes
    ]


def check_addresses(symbols: Iterable[tuple[str, int, int]], expected: Mapping[str, Memory]) -> list[str]:
    """What is wrong with a linked firmware: objects that do not lie in their memory, or over one another.

    symbols: name, address and bytes of all in the firmware. expected: the memory of each placed object, by its name.
    """
    faults: list[str] = []
    there: dict[str, tuple[int, int]] = {}
    for name, address, size in symbols:
        if name in expected:
            there[name] = (address, address + size)
    for name, memory in expected.items():
        if name not in there:
            faults.append(f"{name} has no symbol, so nobody knows whether it lies in {memory.name}")
            continue
        start, end = there[name]
        if not memory.origin <= start <= end <= memory.end:
            faults.append(
                f"{name} lies at {start:#010x} to {end:#010x}, outside of {memory.name}: {memory.origin:#010x} to "
                f"{memory.end:#010x}"
            )
    ordered: Sequence[tuple[str, tuple[int, int]]] = sorted(there.items(), key=lambda each: each[1])
    for (one, (_, end)), (two, (start, _)) in itertools.pairwise(ordered):
        if start < end:
            faults.append(f"{one} and {two} lie over each other at {start:#010x}")
    return faults


def with_places(deployment: Deployment, board: Board, wanted: Mapping[str, str], room: int) -> Deployment:
    """The deployment with its objects placed, and a plan with what is copied ahead of layers. room: of `places_of`."""
    if not wanted:
        return deployment
    places = places_of(deployment, board, wanted, room)
    if places.second is not None:
        return _split(_planned(deployment, replace(places, second=None)), board, places, room)
    made = _planned(deployment, places)
    for name in _worth_ahead(made, board, wanted, room):
        more = _planned(deployment, replace(places, ahead=places.ahead | {name}))
        if more.plan.arena_bytes <= max(deployment.plan.arena_bytes, _room_of_arena(made, board, room)):
            places, made = more.places, more
    return made


def _split(deployment: Deployment, board: Board, places: Places, room: int) -> Deployment:
    """The deployment, placed but for the second piece of its arena, with an arena in two pieces; in one, where all of
    it fits into the memory of the first. Raises UsageError where nothing does."""
    first, second = places.arena or board.ram, places.second
    capacity = _room_of_arena(deployment, board, room)
    if second is None or _aligned(deployment.plan.arena_bytes) <= capacity:
        return deployment
    # The array of the first piece is rounded up.
    rest = (room if second == board.ram else second.bytes) - held(deployment, board)[second.name]
    split = Split(max(capacity, 0) // _ALIGN * _ALIGN, max(rest, 0), worth_of(deployment, first, second))
    made = with_arena_split(deployment, split)
    if made.plan.second_from is None:
        raise UsageError(
            f"nothing of the arena fits into the {max(capacity, 0)} bytes that {first.name} has left for it",
            f"--place {ARENA}={first.name}{PIECES}{second.name}",
            f"--place {ARENA}={second.name}; or place less in {first.name}",
        )
    return replace(made, places=places)


def _planned(deployment: Deployment, places: Places) -> Deployment:
    found = with_copies_ahead(deployment, places.ahead) if places.ahead else deployment
    return replace(found, places=places)


def _room_of_arena(deployment: Deployment, board: Board, room: int) -> int:
    """Bytes that the arena can have in its memory, beside what else is there."""
    memory = deployment.places.arena or board.ram
    capacity = room if memory == board.ram else memory.bytes
    return capacity - held(deployment, board)[memory.name] + _aligned(deployment.plan.arena_bytes)


def _worth_ahead(deployment: Deployment, board: Board, wanted: Mapping[str, str], room: int) -> list[str]:
    """Layers left to the estimate whose weights are still read in flash and would wait less as copies in the arena, for
    which there is room beside what lives at their calls; those that gain most first."""
    memory, most = deployment.places.arena or board.ram, _room_of_arena(deployment, board, room)
    if "progmem" in board.target.features:
        return []
    found: list[tuple[float, str]] = []
    for step in _weighted(deployment):
        name = step.name
        if wanted.get(name, wanted.get(WEIGHTS)) != AUTO or name in deployment.places.weights:
            continue
        traffic = weight_traffic(deployment, step)
        now, then = waits(board, board.flash, traffic), _ahead_waits(board, memory, traffic)
        alive = deployment.plan.alive[step.index + 1] + ahead_bytes(deployment.arrays_of(step))
        if now is None or then is None or _by_rows(deployment, step):
            continue
        if then < now and alive <= most:
            found.append((then - now, name))
    return [name for _, name in sorted(found)[:_MOST_AHEAD]]
