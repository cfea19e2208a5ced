# SPDX-License-Identifier: Apache-2.0
"""Runs a harness in QEMU with the plugin that counts how often each block of its code ran, layer by layer."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from tinyet.boards import Board, Flash, Memory
from tinyet.cycles.code import Code
from tinyet.device import qemu
from tinyet.device.device import Device
from tinyet.errors import EmulatorError, ToolchainError

# What the plugin calls what lies between the layers.
_BETWEEN = -1
_RESTART, _COUNTER = "tinyet_platform_counter_restart", "tinyet_platform_counter"
_BEGIN, _END = "tinyet_trace_begin", "tinyet_trace_end"
# Functions that read the counter, and stand in a harness only where something has parts.
_MARKS = ("tinyet_trace_event_begin", "tinyet_trace_event_end")


@dataclass(frozen=True)
class Block:
    """Code that ran from its first instruction to its last, `count` times.

    behind: (start, instructions) of the blocks that it ran right behind → how often. The rest of `count` ran behind
    nothing that is known.
    """

    start: int
    instructions: int
    count: int
    behind: Mapping[tuple[int, int], int] = field(default_factory=dict)


@dataclass(frozen=True)
class Accesses:
    """Accesses of one memory for data: how many, and of how many bytes."""

    reads: int = 0
    writes: int = 0
    read_bytes: int = 0
    written_bytes: int = 0

    def plus(self, other: Accesses) -> Accesses:
        return Accesses(
            self.reads + other.reads,
            self.writes + other.writes,
            self.read_bytes + other.read_bytes,
            self.written_bytes + other.written_bytes,
        )


@dataclass
class Segment:
    """The execution profile of a layer. code_reads: flash lines read for instructions, next_reads: those of them
    directly behind the previous line, data_reads: lines read for data; 0 where not requested. accesses: of each memory
    that was asked for, in their order."""

    blocks: list[Block] = field(default_factory=list)
    code_reads: int = 0
    next_reads: int = 0
    data_reads: int = 0
    accesses: list[Accesses] = field(default_factory=list)


@dataclass(frozen=True)
class Run:
    """One run of a model: what each run of a layer executed, in order, and what lies between them."""

    layers: tuple[Segment, ...]
    between: Segment


class Profiler:
    """A harness that runs in QEMU with the plugin.

    machine: the board that is emulated. code: of `elf`. plugin: the shared object. where: a directory of the caller's,
    for files. flash: whose reads are counted; None for none. memories: whose accesses are. timeout: seconds
    that a run may take.
    Raises EmulatorError, ToolchainError.
    """

    def __init__(
        self,
        machine: Board,
        elf: Path,
        code: Code,
        plugin: Path,
        where: Path,
        flash: Flash | None,
        *,
        timeout: float,
        memories: Sequence[Memory] = (),
    ) -> None:
        self._out = where.resolve() / "profile"
        self._taken = 0
        words = [str(plugin.resolve()), f"out={self._out}", *_functions(code, elf)]
        if flash is not None:
            words += [f"flash={machine.flash.origin:x}-{machine.flash.end:x}", f"line={flash.line_bytes}"]
            words += [f"code={flash.code_lines}", f"data={0 if flash.shared else flash.data_lines}"]
        words += [f"memory={memory.origin:x}-{memory.end:x}" for memory in memories]
        self._device = Device(
            qemu.start(machine, elf, plugin=words),
            elf=elf,
            prefix=machine.toolchain.prefix,
            ticks_per_instruction=qemu.ticks_per_instruction(machine),
            bytes_per_second=qemu.BYTES_PER_SECOND,
            timeout=timeout,
        )
        try:
            # The greeting runs a model without layers and one with empty ones, each time it is asked.
            greeting = self._take()
            if len(greeting) < 2:
                raise EmulatorError(
                    what=f"QEMU's plugin saw {len(greeting)} runs where the harness measures itself in two",
                    where=str(elf),
                    hint="build the project again with this version of tinyet",
                )
        except BaseException:
            self._device.close()
            raise
        self.empty = (greeting[-2], greeting[-1])
        """A run without layers, and one whose layers do nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._device.close()

    def run(self, inputs: Sequence[bytes]) -> Run:
        """Run the model once. inputs: bytes of each input, in the model's order. Raises EmulatorError."""
        # An uninterrupted run reads no counter, and the plugin would not see it; handlers of interrupts are quiet.
        self._device.run(inputs)
        (run,) = self._take()
        return run

    def _take(self) -> list[Run]:
        """The runs since the last call; the files are gone afterwards."""
        found: list[Run] = []
        while (path := Path(f"{self._out}.{self._taken}")).is_file():
            found.append(_parse(path.read_text(encoding="ascii"), path))
            path.unlink()
            self._taken += 1
        return found


def _functions(code: Code, elf: Path) -> list[str]:
    """The plugin's arguments for the functions that it watches, and for code that is no part of a run."""
    missing = [name for name in (_RESTART, _COUNTER, _BEGIN, _END) if name not in code.functions]
    if missing:
        raise ToolchainError(
            f"the firmware has no function {', '.join(missing)}",
            str(elf),
            "build it as tinyet does: without link-time optimization, and not stripped",
        )
    functions = code.functions
    marks = [name for name in _MARKS if name in functions]
    handlers = [name for name, at in functions.items() if name.endswith("_Handler") and at.end > at.start]
    quiet = [functions[name] for name in (_RESTART, _COUNTER, _BEGIN, _END, *marks, *handlers)]
    return [
        f"restart={functions[_RESTART].start:x}",
        f"counter={functions[_COUNTER].start:x}",
        f"begin={functions[_BEGIN].start:x}",
        f"end={functions[_END].start:x}",
        *(f"mark={functions[name].start:x}" for name in marks),
        *(f"quiet={start:x}-{end:x}" for start, end in sorted({(at.start, at.end) for at in quiet})),
    ]


def _parse(text: str, path: Path) -> Run:
    """A run's file, as qemu/tinyet_profile.c describes it. Raises EmulatorError for one that is cut off."""
    segments: dict[int, Segment] = {}
    current, seen = Segment(), 0
    # A block of code may stand there several times: what lies between the layers comes in pieces.
    counts: defaultdict[int, Counter[tuple[int, int]]] = defaultdict(Counter)
    behind: defaultdict[tuple[int, tuple[int, int]], Counter[tuple[int, int]]] = defaultdict(Counter)
    number, at = 0, (0, 0)
    *lines, last = text.splitlines() or [""]
    if last != "end":
        raise EmulatorError(
            what="QEMU's plugin left a file without its end", where=str(path), hint="is the disk full?"
        )
    for line in lines:
        words = line.split()
        match words[0]:
            case "segment":
                number, seen = int(words[1]), 0
                current = segments.setdefault(number, Segment())
            case "flash":
                code_reads, next_reads, data_reads = map(int, words[1:])
                current.code_reads += code_reads
                current.next_reads += next_reads
                current.data_reads += data_reads
            case "memory":
                found = Accesses(*map(int, words[1:]))
                if seen < len(current.accesses):
                    current.accesses[seen] = current.accesses[seen].plus(found)
                else:
                    current.accesses.append(found)
                seen += 1
            case "behind":
                behind[number, at][int(words[1], 16), int(words[2])] += int(words[3])
            case start:
                at = int(start, 16), int(words[1])
                counts[number][at] += int(words[2])
    for number, ran in counts.items():
        segments[number].blocks = [Block(*at, count, behind[number, at]) for at, count in ran.items()]
    between = segments.pop(_BETWEEN, Segment())
    return Run(tuple(segments[i] for i in range(len(segments))), between)
