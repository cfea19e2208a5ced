# SPDX-License-Identifier: Apache-2.0
"""Does it fit? Known before anything is compiled, and said with what takes the most room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tinyet.boards import Board
from tinyet.delegates.decide import Objective, check_optimize
from tinyet.deployment import Deployment
from tinyet.errors import FitError, bullet_list
from tinyet.ir import Node
from tinyet.memory.streams import Stream
from tinyet.opset.cost import core_of, measured
from tinyet.stack.use import StackUse

LARGEST = 5
PROGMEM_REACH = 65536
"""AVR's instruction for constants in program memory has addresses of 16 bits."""


@dataclass(frozen=True)
class Contributor:
    """One thing that takes room: bytes, what it is, and the source line that asked for it."""

    bytes: int
    text: str

    def __str__(self) -> str:
        return f"{self.bytes} bytes: {self.text}"


def objective_of(
    board: Board,
    optimize: str = "balanced",
    *,
    max_ram: int | None = None,
    max_flash: int | None = None,
    pins: Mapping[str, str] | None = None,
    input_rows: bool = False,
) -> Objective:
    """What kernels are chosen for on a board: within its memories, or the given limits in bytes where these are
    tighter, less the stack and what a firmware has around a model, as far as that has been measured for the core.

    Raises UsageError for an `optimize` that there is not.
    """
    table = measured(core_of(board.target))
    flash = min(board.flash.bytes, max_flash or board.flash.bytes) - (0 if table is None else table.base)
    ram = min(board.ram.bytes, max_ram or board.ram.bytes) - board.stack_bytes
    return Objective(
        check_optimize(optimize), max(flash, 0), max(ram, 0), dict(pins or {}), input_rows=input_rows
    )


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
        stream = None if call is None else plan.stream(call)
        found = [] if stream is None or call is None else rows_alive(stream, call, named)
        by_rows = set() if stream is None else {plan.storage[t].block for t in stream.rows}
        for number, block in enumerate(plan.blocks):
            if number in by_rows or not block.lifetime.first <= step <= block.lifetime.last:
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


def rows_alive(stream: Stream, node: Node, named: Mapping[str, str]) -> list[Contributor]:
    """The rows that are there when a layer of a stream runs, at the run when they take the most bytes.

    named: what tensors are called, by their names.
    """
    held = {t: (rows.behind - rows.first) * rows.row_bytes for t, rows in stream.rows.items()}
    moments = stream.moments(node)
    worst = max(moments, key=lambda moment: sum(int(each[moment]) for each in held.values()))
    found = []
    for tensor, each in held.items():
        rows, name = int(each[worst]) // stream.rows[tensor].row_bytes, named.get(tensor.name, tensor.name)
        if rows:
            text = name if rows >= tensor.shape[1] else f"{rows} of {tensor.shape[1]} rows of {name}"
            found.append(Contributor(int(each[worst]), text))
    return found


def largest_constants(deployment: Deployment) -> list[Contributor]:
    """Weights and tables by layer, largest first: each array once, with the layer that is the first to need it."""
    found = []
    for step in deployment.steps:
        mine = [a for a in deployment.arrays_of(step) if a.rom]
        size = sum(a.bytes for a in mine)
        if size:
            others = len({user for a in mine for user, _ in a.uses}) - 1
            shared = f" (and {others} more that share them)" if others else ""
            found.append(Contributor(size, f"{step}: {step.node.op}{shared}"))
    return sorted(found, key=lambda c: -c.bytes)


def operands(deployment: Deployment) -> list[Contributor]:
    """Constants that are operands of kernels, largest first, each once."""
    found = [Contributor(a.bytes, f"constant {a.comment}") for a in deployment.arrays if not a.rom]
    return sorted(found, key=lambda c: (-c.bytes, c.text))


def check_fit(
    deployment: Deployment, board: Board, *, max_ram: int | None = None, max_flash: int | None = None
) -> None:
    """Raise FitError when arena and stack exceed the RAM, or constants the flash, of the board or of the given limits.

    Where constants have an address space of their own (`progmem`), those that kernels take as they take activations
    are copied to RAM at the start, so they count twice; and parameters stay in flash. Code is not counted here: it is
    known only after the build, when `check_sizes` looks again.
    """
    progmem = "progmem" in board.target.features
    kept = operands(deployment)
    kept_bytes = deployment.operand_bytes
    problems, hints = [], []
    arena, state, stack = deployment.plan.arena_bytes, deployment.state_bytes, board.stack_bytes
    limit, whose = _tighter(max_ram, board.ram.bytes, board)
    copied = kept_bytes if progmem else 0
    total = arena + state + copied + stack
    if total > limit:
        step, tensors = peak_tensors(deployment)
        where = deployment.steps[step] if 0 <= step < len(deployment.steps) else None
        at = f"layer {where.index}, {where}: {where.node.op}" if where else "the boundary"
        terms = [
            ("arena", arena),
            ("state", state),
            ("constants that are operands", copied),
            ("stack", stack),
        ]
        text = " + ".join(f"{name} {size}" for name, size in terms if size or name in ("arena", "stack"))
        largest = tensors[:LARGEST] + (kept[:LARGEST] if progmem else [])
        problems.append(
            f"RAM: {text} = {total} bytes, {whose} {limit}; most is alive at {at}:\n"
            + bullet_list([str(c) for c in largest])
        )
        hints.append("RAM: smaller images, fewer channels or earlier strides; or a board with more RAM")
    constants = deployment.constant_bytes + deployment.parameter_bytes
    flash, whose = _tighter(max_flash, board.flash.bytes, board)
    if constants > flash:
        largest = sorted(largest_constants(deployment) + kept, key=lambda c: -c.bytes)
        problems.append(
            f"flash: weights and parameters alone take {constants} bytes, {whose} {flash}; the largest:\n"
            + bullet_list([str(c) for c in largest[:LARGEST]])
        )
        hints.append("flash: fewer channels, int8 instead of float layers; or a board with more flash")
    elif progmem and constants - kept_bytes > PROGMEM_REACH:
        problems.append(
            f"flash: weights and parameters take {constants - kept_bytes} bytes, "
            f"constants can lie in the first {PROGMEM_REACH} only"
        )
        hints.append("flash: fewer channels, int8 instead of float layers; or a board that is no AVR")
    if problems:
        raise FitError("\n".join(problems), hint="\n".join(hints))


def _tighter(limit: int | None, available: int, board: Board) -> tuple[int, str]:
    """The smaller of a limit and what the board has, in bytes, and the words that introduce it."""
    if limit is None or available < limit:
        return available, f"{board.name} has"
    return limit, "the limit is"


@dataclass(frozen=True)
class Use:
    """What a built application takes of one memory, and its symbols, largest first. Of RAM with its stack: the bound,
    or what is reserved where there is none."""

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
            "or generate again for a board file of your own with more stack_bytes"
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
