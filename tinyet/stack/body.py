# SPDX-License-Identifier: Apache-2.0
"""One function: how deep its own frame gets, and what it calls at which depth.

Two figures are held against each other at every instruction, and the larger one counts: the compiler's, and the sum
of what the instructions have moved the stack pointer by on the way there. The second is there for the first's blind
spots, assembly above all: kernels push registers in the middle of C functions, where no compiler counts them, and
libraries have functions in assembly that no compiler has seen. Where the code cannot be followed (the stack pointer is
set from a register), the compiler's figure is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tinyet.stack.image import Function, Image, Machine
from tinyet.stack.operation import Operation

# How often one instruction may be found deeper than before: where the stack grows in a loop, that has no end.
_MOST_REVISIONS = 32
_MOST_TO_RETURN = 16  # instructions from where the stack pointer is restored
_NO = object()


class Call(NamedTuple):
    """A call of the function at an address, `depth` bytes below the entry of the one that calls."""

    depth: int
    target: int


@dataclass
class Body:
    """depth: bytes of its frame at most. by_pointer: depths of calls to addresses that it has loaded or been given.
    unknown: why the depth is not known, a clause each that begins with a verb."""

    depth: int = 0
    calls: set[Call] = field(default_factory=set)
    by_pointer: set[int] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)


Facts = dict[int, int | None]
"""Constants in registers; None: what was on the stack. Only of the instructions right before."""


class _Walk:
    def __init__(self, image: Image, machine: Machine, function: Function) -> None:
        self.image, self.machine, self.function = image, machine, function
        self.body = Body()
        self.depths: dict[int, int] = {}  # at which each instruction that is reached begins
        self._held: dict[int, Facts] = {}
        self._revisions: dict[int, int] = {}
        self._conditional: set[int] = set()
        self._work: list[tuple[int, int, Facts]] = []
        # Jumps to where nobody knows, and whether they may be calls in tail position.
        self._jumps: dict[int, bool] = {}

    def walk(self) -> Body:
        self._reach(self.function.start, 0, {})
        self._finish()
        if not self._jumps:
            return self.body
        # What nothing leads to is behind such a jump; from how deep it comes there, nobody knows: as deep as any.
        remaining = [at for at in self._targets() if at not in self.depths]
        for at in remaining:
            if at not in self.depths:
                self._reach(at, max(self.depths.values()), {})
                self._finish()
        if len(tails := [at for at, is_tail in self._jumps.items() if is_tail]) > 1 or (
            tails and not remaining
        ):
            self.body.by_pointer.add(0)
        return self.body

    def _targets(self) -> Sequence[int]:
        """Possible targets of a computed jump inside the function."""
        if not self.machine.code_alone:
            return self.image.words_between(self.function.start, self.function.end)
        found, at = [], self.function.start
        while at < self.function.end:
            if not self.image.is_code(at):
                at += 2
                continue
            found.append(at)
            at += self.image.operation(self.machine, at).size
        # What fills up a function of assembly alone would only lead to the one behind it.
        while found and (last := self.image.operation(self.machine, found[-1])) == Operation(last.size):
            found.pop()
        return found

    def _reach(self, at: int, depth: int, facts: Facts, *, is_code: bool = False) -> None:
        """Control comes to an address at a depth: of this function, or another function's first, in tail position.
        is_code: it is known that code lies there."""
        if at != self.function.start and at in self.image.functions:
            self.body.calls.add(Call(depth, at))
        elif is_code or self.image.is_code(at):
            self._work.append((at, depth, facts))
        else:
            self.body.unknown.add(f"jumps to 0x{at:08x}, where no code is")

    def _finish(self) -> None:
        while self._work:
            at, depth, facts = self._work.pop()
            depth = max(depth, self.image.compilers_depth(self.machine, at) or 0)
            if at in self.depths:
                before, held = self.depths[at], self._held[at]
                facts = {
                    register: value for register, value in facts.items() if held.get(register, _NO) == value
                }
                if depth <= before and facts == held:
                    continue
                depth = max(depth, before)
            self.depths[at], self._held[at] = depth, facts
            self._revisions[at] = self._revisions.get(at, 0) + 1
            if self._revisions[at] > _MOST_REVISIONS:
                self.body.unknown.add("takes more of the stack at each turn of a loop")
                continue
            self._step(at, depth, facts)

    def _step(self, at: int, depth: int, facts: Facts) -> None:
        operation = self.image.operation(self.machine, at)
        behind = at + operation.size
        if operation.windowed:
            self.body.unknown.add("uses windows of registers, which are saved when others need them")
        after = self._moved(operation, depth, behind)
        self.body.depth = max(self.body.depth, depth, after)
        following = behind
        for _ in range(operation.makes_conditional):
            self._conditional.add(following)
            following += self.image.operation(self.machine, following).size
        maybe = at in self._conditional
        if maybe:
            after = max(after, depth)
        goes_on = self._flow(at, operation, depth, facts)
        code_behind = self.image.is_code(behind)
        if goes_on and not code_behind and behind < self.function.end:
            # Constants stand behind: the call never returns, or it is that of a helper which takes them for a switch.
            self._jumps[at] = False
        # What a function calls last may never return.
        called_last = operation.flow in ("call", "call_register") and behind == self.function.end
        if (goes_on or maybe) and code_behind and not called_last:
            self._reach(behind, after, _facts(operation, facts), is_code=True)

    def _moved(self, operation: Operation, depth: int, behind: int) -> int:
        """The depth behind an instruction. The entry point sets the stack pointer to where the stack begins."""
        if operation.down is not None:
            return max(depth + operation.down, 0)
        known = self.image.compilers_depth(self.machine, behind)
        if known is None:
            known = self._until_return(behind)
        if known is None and self.function.start != self.image.entry:
            self.body.unknown.add(
                "sets the stack pointer to what neither its code nor debug information tells, as functions do "
                "that have arrays of variable length or call alloca"
            )
        return known or 0

    def _until_return(self, at: int) -> int | None:
        """The depth at an address from which on straight code returns: all that is taken then is given back there. None
        where it does not."""
        depth = 0
        for _ in range(_MOST_TO_RETURN):
            if not self.image.is_code(at):
                return None
            operation = self.image.operation(self.machine, at)
            if operation.down is None or operation.flow not in ("next", "leave"):
                return None
            depth -= operation.down
            if operation.flow == "leave":
                return max(depth, 0)
            at += operation.size
        return None

    def _flow(self, at: int, operation: Operation, depth: int, facts: Facts) -> bool:
        """Targets of an instruction, and whether control also continues behind it."""
        target = operation.target
        known = facts.get(operation.register)
        match operation.flow:
            case "branch":
                self._reach(target, depth, {})
                return True
            case "jump":
                self._reach(target, depth, {})
                return False
            case "call" if self.function.start < target < self.function.end:
                # Thumb's first version has no other jump that reaches far; it takes one for a call.
                self._reach(target, depth, {})
                return False
            case "call":
                self._call(depth, target)
                return True
            case "call_register":
                if known is not None:
                    self._call(depth, self.image.address(known + operation.offset))
                else:
                    self.body.by_pointer.add(depth)
                return True
            case "jump_register":
                self._jump(at, operation, depth, facts)
                return False
            case "inside":
                self._jumps[at] = False
                return False
            case "leave":
                return False
        return True

    def _jump(self, at: int, operation: Operation, depth: int, facts: Facts) -> None:
        if operation.register not in facts:
            # Who calls in tail position has given its frame back; who jumps on has it still.
            self._jumps[at] = depth == 0
            return
        known = facts[operation.register]
        if known is not None:
            self._reach(self.image.address(known + operation.offset), depth, {})

    def _call(self, depth: int, target: int) -> None:
        if target in self.image.functions:
            self.body.calls.add(Call(depth, target))
        else:
            self.body.unknown.add(f"calls 0x{target:08x}, where no function begins")


def _facts(operation: Operation, facts: Facts) -> Facts:
    if operation.loads is not None:
        register, value = operation.loads
        return {register: value}
    if operation.pops:
        return {**facts, **{n: None for n in range(16) if operation.pops >> n & 1}}
    return facts if operation.down else {}


def body_of(image: Image, machine: Machine, function: Function) -> Body:
    """The stack of a function by itself, and its calls."""
    return _Walk(image, machine, function).walk()
