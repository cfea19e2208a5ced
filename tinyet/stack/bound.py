# SPDX-License-Identifier: Apache-2.0
"""The most bytes of stack that a function of a firmware can take, with all that it calls; or why nobody can say.

What a bound does not know it says: recursion, a call by a pointer that is not in the list of known ones, a frame of
variable size. It never guesses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tinyet.stack.body import Body, Call, body_of
from tinyet.stack.image import Image, plain_name

# Whom a function calls by pointers: functions by name, or all whose names begin so, and objects that hold nothing but
# the pointers it takes. Of the generated code and its kernels, recurrent layers alone have such a call.
_CONSTRUCTORS = ("__preinit_array", "__init_array")
KNOWN_POINTERS: Mapping[str, Sequence[str]] = {
    "Reset_Handler": _CONSTRUCTORS,
    "tinyet_start": _CONSTRUCTORS,
    "__libc_init_array": _CONSTRUCTORS,
    # Each layer hands over those that were printed for its matrices.
    "tinyet_gate_sums_dsp": ("tinyet_gates_*",),
    # The harness runs the model that it was linked with, or measures what measuring costs.
    "measure": ("tinyet_harness_model", "run_nothing", "run_empty_layers"),
    "tinyet_harness_serve": ("tinyet_harness_model", "run_nothing", "run_empty_layers"),
}

_VECTORS = "vectors"  # the table of exceptions in tinyet_startup.c
# Exceptions from which control comes back: SVCall, PendSV, SysTick, and whatever stands behind. Faults end the program.
_RETURNING = (11, 14)
_DEFAULT = 12  # DebugMonitor, which nobody handles
_MOST_REASONS = 3  # in a line
# What the core puts on the stack for an exception: eight registers, with an FPU 17 float registers and a word more, and
# up to four bytes in order to begin at a multiple of eight.
_EXCEPTION_BYTES, _EXCEPTION_FPU_BYTES = 32 + 4, 32 + 72 + 4


@dataclass(frozen=True)
class Frame:
    """A function in a chain of calls: bytes of the stack between its entry and that of the next one. The last one's are
    all that it takes."""

    function: str
    bytes: int


@dataclass(frozen=True)
class Bound:
    """bytes: of stack at most; None where there is no bound. chain: the calls that get there, from the first function
    on. unknown: why there is none, each reason once."""

    bytes: int | None
    chain: tuple[Frame, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """Why there is no bound, in a line; empty where there is one."""
        if self.bytes is not None:
            return ""
        more = len(self.unknown) - _MOST_REASONS
        ending = f"; and {more} more" if more > 0 else ""
        return f"no bound: {'; '.join(self.unknown[:_MOST_REASONS])}{ending}"

    def to_json(self) -> dict[str, object]:
        return {
            "bytes": self.bytes,
            "chain": [vars(frame) for frame in self.chain],
            "unknown": list(self.unknown),
        }


class Stack:
    """The call graph of a firmware with the frames of its functions."""

    def __init__(self, elf: Path) -> None:
        """Raises ToolchainError: no ELF file, or one without symbols."""
        self.image = Image(elf)
        self._bodies: dict[int, Body] = {}
        self._deepest: dict[int, tuple[int, int | None]] = {}  # bytes, and the call through which
        self._bounds: dict[str, Bound] = {}

    def function(self, name: str) -> Bound:
        """The bound of a function by its name in C."""
        if name not in self._bounds:
            found = self.image.named(name)
            if len(found) != 1:
                why = "is not in the firmware by itself" if not found else "there is more than once"
                self._bounds[name] = Bound(None, (), (f"{name} {why}",))
            else:
                self._bounds[name] = self._bound(found)
        return self._bounds[name]

    @cached_property
    def firmware(self) -> Bound:
        """The bound of all that runs on the stack that the core has after a reset: from the entry point on, and on top
        of it each exception from which control comes back, once, since one may interrupt the other."""
        if self.image.entry not in self.image.functions:
            return Bound(None, (), ("the entry point is no function",))
        handlers = self._handlers()
        bound = self._bound([self.image.entry, *handlers])
        if bound.bytes is None:
            return bound
        chain = list(self._bound([self.image.entry]).chain)
        for handler in handlers:
            chain += [Frame("(exception)", self._exception_bytes), *self._bound([handler]).chain]
        return Bound(sum(frame.bytes for frame in chain), tuple(chain))

    @property
    def _exception_bytes(self) -> int:
        return _EXCEPTION_FPU_BYTES if self.image.has_fpu else _EXCEPTION_BYTES

    def _handlers(self) -> list[int]:
        table = self.image.words(_VECTORS)
        if len(table) <= _DEFAULT:
            return []
        default = self.image.address(table[_DEFAULT])
        found = [table[n] for n in (_RETURNING[0], *range(_RETURNING[1], len(table))) if table[n]]
        return sorted({self.image.address(handler) for handler in found} - {default})

    def _bound(self, roots: Sequence[int]) -> Bound:
        """Of the first root; without a bound, where anything that the roots reach has none."""
        machine = self.image.machine
        if machine is None:
            return Bound(None, (), (f"tinyet reads no code of {self.image.isa.removeprefix('EM_')}",))
        unknown: list[str] = []
        order: list[int] = []  # callees before their callers
        done: set[int] = set()
        for root in roots:
            self._visit(root, (), done, order, unknown)
        if unknown:
            return Bound(None, (), tuple(dict.fromkeys(unknown)))
        for address in order:
            body = self._bodies[address]
            below = [
                (call.depth + self._deepest[call.target][0], call.target) for call in self._calls(address)
            ]
            through = max(below, default=(0, None), key=lambda pair: (pair[0], -(pair[1] or 0)))
            self._deepest[address] = through if through[0] > body.depth else (body.depth, None)
        return Bound(self._deepest[roots[0]][0], self._chain(roots[0]))

    def _visit(
        self, address: int, callers: tuple[int, ...], done: set[int], order: list[int], unknown: list[str]
    ) -> None:
        name = self.image.functions[address].name
        if address in callers:
            cycle = [self.image.functions[a].name for a in callers[callers.index(address) :]]
            unknown.append(
                f"{name} calls itself" + (f" ({' → '.join([*cycle, name])})" if len(cycle) > 1 else "")
            )
            return
        if address in done:
            return
        done.add(address)
        body = self._body(address)
        unknown += [f"{name} {why}" for why in sorted(body.unknown)]
        if body.by_pointer and self._known(name) is None:
            unknown.append(
                f"{name} calls a function by a pointer, of which tinyet does not know where it leads"
            )
        for target in sorted({call.target for call in self._calls(address)}):
            self._visit(target, (*callers, address), done, order, unknown)
        order.append(address)

    def _body(self, address: int) -> Body:
        if address not in self._bodies:
            machine = self.image.machine
            assert machine is not None
            self._bodies[address] = body_of(self.image, machine, self.image.functions[address])
        return self._bodies[address]

    def _calls(self, address: int) -> list[Call]:
        """The calls of a function, by name and by pointer."""
        body = self._body(address)
        pointers = self._known(self.image.functions[address].name) or ()
        by_pointer = [Call(depth, target) for depth in body.by_pointer for target in pointers]
        return [*body.calls, *by_pointer]

    def _known(self, name: str) -> list[int] | None:
        """Targets of a function's pointers; None where they are unknown."""
        names = KNOWN_POINTERS.get(plain_name(name))
        if names is None:
            return None
        found: list[int] = []
        for one in names:
            if one.endswith("*"):
                found += [
                    a
                    for a, each in self.image.functions.items()
                    if each.name.startswith(one.removesuffix("*"))
                ]
                continue
            held = self.image.pointers(one)
            found += self.image.named(one) if held is None else held
        return found

    def _chain(self, address: int) -> tuple[Frame, ...]:
        frames: list[Frame] = []
        at: int | None = address
        while at is not None:
            bytes_, through = self._deepest[at]
            below = 0 if through is None else self._deepest[through][0]
            frames.append(Frame(plain_name(self.image.functions[at].name), bytes_ - below))
            at = through
        return tuple(frames)
