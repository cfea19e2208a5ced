# SPDX-License-Identifier: Apache-2.0
"""The order of straight code for Helium (MVE).

A vector goes through its unit in two halves, so that loads and products that alternate are issued without waiting, and
of two loads, one behind the other, the second one waits. Sums of products have their loads between these
(`loads_between`). What is computed of sums waits for results: there the pipeline's model says what comes next, of all
that its operands allow (`listed`), so that one tile begins while the one before ends.
"""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import chain, pairwise

from tinyet.timing.instruction import LOADS, STORES, Instruction, Kind
from tinyet.timing.pipeline import USUAL, Pipeline, Scoreboard
from tinyet.timing.pipelines import PIPELINE_ENDS, PIPELINES
from tinyet.timing.vectors import PREDICATE, SINGLE

_AT_MOST = PIPELINE_ENDS["cortex-m55"][1]
_ORDERING = (PIPELINES["cortex-m55"], _AT_MOST)
_JUDGING = (*_ORDERING, PIPELINES["cortex-m85"])
"""Models by which orders are made and compared; of what the Cortex-M55's sources leave open, also the most."""
_REGISTER = re.compile(r"\b(?:[qr]\d+|lr|sp)\b")
_ADDRESS = re.compile(r"\[([^]]*)\]")
_MOVES_BASE = re.compile(r"\[(\w+)[^]]*\](?:!|, #)|(\w+)!")
_KINDS: Mapping[str, Kind] = {
    "ldm": "load_multiple",
    "stm": "store_multiple",
    "ldrd": "load_double",
    "ldr": "load",
    "vldr": "vector_load",
    "vstr": "vector_store",
    "vmladav": "vector_dot",
    "vqrdml": "vector_multiply",
    "vqrdmulh": "vector_multiply",
    "vqdmulh": "vector_multiply",
    "vrshl": "vector_slow",
    "vqrshrn": "vector_narrow",
    "vqmov": "vector_narrow",
    "vmov": "vector_constant",
    "vcvt": "vector_float",
    "vmul.f": "vector_float",
    "vadd.f": "vector_float",
    "vctp": "predicate",
    "v": "vector",
}
"""{how a mnemonic begins: kind}, the more special ones first; all others are "data"."""
_INDEXED: Mapping[Kind, Kind] = {"vector_load": "vector_gather", "vector_store": "vector_scatter"}
_SEVERAL = ("load_multiple", "store_multiple", "load_double")
_READS_ITS_RESULT = ("vqrdmla", "vqrshrn", "vqmov")
_PREDICATES = "vps"
"""How VPST begins, behind which a letter says of each line that it belongs to it."""
_WINDOW = 60
"""Instructions among which the next one is looked for."""


def _number(register: str) -> int:
    """As the decoder has them; of a vector its first quarter."""
    if register.startswith("q"):
        return SINGLE + 4 * int(register[1:])
    return {"sp": 13, "lr": 14}[register] if register in ("sp", "lr") else int(register[1:])


def decoded(text: str) -> Instruction:
    """What the decoder makes of the assembled line, but for the quarters of a vector, of which there is the first."""
    operation, _, operands = text.partition(" ")
    kind: Kind = next((kind for start, kind in _KINDS.items() if operation.startswith(start)), "data")
    address = [name for part in _ADDRESS.findall(operands) for name in _REGISTER.findall(part)]
    updated = tuple(_number(name) for match in _MOVES_BASE.findall(operands) for name in match if name)
    rest = _REGISTER.findall(_ADDRESS.sub("", operands))
    if kind.endswith("_multiple"):
        address, rest = rest[:1], rest[1:]
    if any(name.startswith("q") for name in address):
        kind = _INDEXED.get(kind, kind)
    registers, at = tuple(map(_number, rest)), tuple(map(_number, address))
    count = len(registers) if kind in _SEVERAL else 1
    if address and operation.lstrip("v").startswith("st"):
        return Instruction(kind, 4, count, late=registers, address=at, updated=updated)
    if address:
        return Instruction(kind, 4, count, results=registers, address=at, updated=updated)
    if kind == "predicate":
        return Instruction(kind, 4, results=(PREDICATE,), operands=registers)
    to, operands_of = registers[:1], registers[1:]
    if kind == "vector_dot":
        return Instruction(kind, 4, results=to, operands=operands_of, late=to if "ava" in operation else ())
    twice = operation.startswith(_READS_ITS_RESULT) or (kind == "vector_slow" and len(registers) == 2)
    return Instruction(kind, 4, results=to, operands=registers if twice else operands_of)


@dataclass(frozen=True)
class _Lines:
    """Lines that stay together, mostly one."""

    texts: tuple[str, ...]

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        return tuple(decoded(text) for text in self.texts if not text.startswith(_PREDICATES))

    @cached_property
    def reads(self) -> frozenset[int | str]:
        """Registers, and of memory where what is loaded lies, by its base."""
        found: set[int | str] = {PREDICATE} if len(self.texts) > 1 else set()
        for what in self.instructions:
            found |= {*what.operands, *what.address, *what.shifted, *what.late}
            found |= {f"at {base}" for base in what.address[:1] if what.kind in LOADS}
        return frozenset(found)

    @cached_property
    def writes(self) -> frozenset[int | str]:
        found: set[int | str] = set()
        for what in self.instructions:
            found |= {*what.results, *what.updated}
            found |= {f"at {base}" for base in what.address[:1] if what.kind in STORES}
        return frozenset(found)

    @cached_property
    def movable(self) -> bool:
        """A load of a vector, or what makes its address: all others keep their order."""
        return self.texts[0].startswith("vldr") or self.instructions[0].kind == "data"


def _joined(lines: Sequence[str]) -> list[_Lines]:
    found: list[_Lines] = []
    left = list(lines)
    while left:
        operation = left[0].partition(" ")[0]
        count = 1 + (len(operation) - len(_PREDICATES) if operation.startswith(_PREDICATES) else 0)
        found.append(_lines(tuple(left[:count])))
        del left[:count]
    return found


# Kernels of all layers are made of the same lines.
@lru_cache(maxsize=4096)
def _lines(texts: tuple[str, ...]) -> _Lines:
    return _Lines(texts)


def loads_between(lines: Sequence[str]) -> list[str]:
    """Each load of a vector as late as its value allows where it has a place of its own; all else in its order.

    lines: without labels and branches, in an order that computes the right values."""
    return list(_between(tuple(lines)))


@cache
def _between(lines: tuple[str, ...]) -> tuple[str, ...]:
    parts = _joined(lines)
    ahead = _predecessors(parts)
    fixed = [number for number, part in enumerate(parts) if not part.movable]
    for earlier, later in pairwise(fixed):
        ahead[later].add(earlier)
    waiting = [0] * len(parts)  # how many of those behind a part keep it where it is
    for i in chain.from_iterable(ahead):
        waiting[i] += 1
    free = [i for i, count in enumerate(waiting) if not count]
    found: list[str] = []  # from the end
    alternate = False
    while free:
        moved = [i for i in free if parts[i].movable]
        others = [i for i in free if not parts[i].movable]
        # Behind a load stands something else, wherever that is free.
        last = (moved if moved and (not others or alternate) else others)[-1]
        alternate = not parts[last].movable
        found += reversed(parts[last].texts)
        free.remove(last)
        for i in ahead[last]:
            waiting[i] -= 1
            if not waiting[i]:
                insort(free, i)
    return tuple(reversed(found))


def listed(lines: Sequence[str]) -> list[str]:
    """As they are, or in the order in which a core may issue them first: of several that which most waits for, the same
    behind what holds the core alone, or the first one. The best of these, executed again and again.

    lines: without labels and branches, in an order that computes the right values. What is stored from one base is not
    loaded from another."""
    return list(_listed(tuple(lines)))


@cache
def _listed(lines: tuple[str, ...]) -> tuple[str, ...]:
    joined = _joined(lines)
    before = _predecessors(joined)
    orders = (
        _greedy(core, joined, before, waits)
        for core in _ORDERING
        for waits in _priorities(core, joined, before)
    )

    def cycles(order: Sequence[_Lines]) -> int:
        code = [what for each in order for what in each.instructions]
        return sum(core.straight(code, code) for core in _JUDGING)

    distinct = dict.fromkeys(map(tuple, (joined, *orders)))
    return tuple(text for each in min(distinct, key=cycles) for text in each.texts)


def _predecessors(joined: Sequence[_Lines]) -> list[set[int]]:
    """Of each those that must stay before it; of those that must anyway, for another one's sake, not all."""
    written: dict[int | str, int] = {}
    readers: dict[int | str, list[int]] = {}
    found: list[set[int]] = []
    for i, each in enumerate(joined):
        needed = {written[name] for name in each.reads | each.writes if name in written}
        needed.update(reader for name in each.writes for reader in readers.get(name, ()))
        for name in each.reads:
            readers.setdefault(name, []).append(i)
        for name in each.writes:
            written[name], readers[name] = i, []
        found.append(needed - {i})
    return found


def _greedy(
    core: Pipeline, joined: Sequence[_Lines], before: Sequence[set[int]], waits: Sequence[int]
) -> list[_Lines]:
    board = Scoreboard(core)
    waiting, done = list(range(len(joined))), set[int]()
    found: list[_Lines] = []
    while waiting:
        free = [i for i in waiting[:_WINDOW] if before[i] <= done]
        chosen = min(free, key=lambda i: (board.earliest(joined[i].instructions[0]), -waits[i], i))
        waiting.remove(chosen)
        for what in joined[chosen].instructions:
            board.issue(what)
        done.add(chosen)
        found.append(joined[chosen])
    return found


def _waits(core: Pipeline, joined: Sequence[_Lines], before: Sequence[set[int]]) -> list[int]:
    """Cycles from each to the end of all, at least."""
    found = [_held(core, each.instructions[0]) for each in joined]
    for later in reversed(range(len(joined))):
        for earlier in before[later]:
            behind = _distance(core, joined[earlier], joined[later])
            found[earlier] = max(found[earlier], found[later] + behind)
    return found


def _priorities(
    core: Pipeline, joined: Sequence[_Lines], before: Sequence[set[int]]
) -> Iterator[Sequence[int]]:
    """What is alone in its cycles, as LDM is, does not wait where it can be issued: behind STM it is issued while what
    was stored is not there yet."""
    waits = _waits(core, joined, before)
    alone = [_held(core, each.instructions[0]) > 1 for each in joined]
    yield waits
    yield [wait + max(waits) * first for wait, first in zip(waits, alone, strict=True)]
    yield [0] * len(joined)


def _held(core: Pipeline, what: Instruction) -> int:
    """Cycles in which nothing else is issued."""
    timing = core.timings.get(what.kind, USUAL)
    return -(-what.registers // timing.words) if timing.words else timing.hold


def _distance(core: Pipeline, earlier: _Lines, later: _Lines) -> int:
    """Cycles, about, from one to what needs its result."""
    first, second = earlier.instructions[-1], later.instructions[0]
    timing, reads = core.timings.get(first.kind, USUAL), core.timings.get(second.kind, USUAL)
    results = {*first.results}
    if not results & later.reads:
        return 0
    cycles = timing.stages[0] + timing.result + _held(core, first) - 1
    if results & {*second.address}:
        return cycles - reads.address
    return max(1, cycles - (0 if results & {*second.operands} else reads.late))
