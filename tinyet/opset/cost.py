# SPDX-License-Identifier: Apache-2.0
"""The cost of a kernel for a node, stated before the choice: instructions, cycles, code, constants, scratch.

A kernel says what its cost grows with (`CostModel`: so many taps, so many outputs, …); how much each of these is on
a core is measured, and stands in `measured/<cpu>.json` with the toolchain that it was measured with. Constants and
scratch come from the `Call`, to the byte.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tinyet.boards.cpus import Target
from tinyet.boards.flash import Flash
from tinyet.ir import Node
from tinyet.opset.call import Call, FieldValue, Pointer, Struct
from tinyet.opset.data_layout import DENSE, Layouts

Features = Callable[[Node], Mapping[str, int]]
"""What something grows with: how often each of its parts is there, by the part's name."""

MEASURED = Path(__file__).parent / "measured"

# Cores for which GCC makes the code of another, or nearly so: with DSP, benchmarks/costs.py finds them within the same
# limits. LX6 and LX7 have all instructions of LX106 and a few more, which their own compilers, for which there is no
# emulator here, use for less: loops without branches, products of 64 bits, extensions of signs.
_SAME_CODE = {
    "cortex-m0plus": "cortex-m0",
    "cortex-m7": "cortex-m4",
    "cortex-m33": "cortex-m4",
    "rv32imc": "rv32imac",
    "xtensa-lx6": "xtensa-lx106",
    "xtensa-lx7": "xtensa-lx106",
}
_MOST_KEPT = 2 * 64 * 16
"""Bytes of code that a flash keeps at most so that the lines are stated that were counted: twice what the one keeps for
which they were. A larger cache holds what a call executes again and again, but not until the next inference."""


def one_call(_node: Node) -> Mapping[str, int]:
    """Code that is the same for every call."""
    return {"call": 1}


@dataclass(frozen=True)
class ByCore(Mapping[str, int]):
    """Cycles by a core's name, summed up when one asks: a plan asks for one core, and a pipeline takes its time.

    cores: those that may be asked for. of: what a core comes to.
    """

    cores: tuple[str, ...]
    of: Callable[[str], int]

    def __getitem__(self, core: str) -> int:
        if core not in self.cores:
            raise KeyError(core)
        return self.of(core)

    def __iter__(self) -> Iterator[str]:
        return iter(self.cores)

    def __len__(self) -> int:
        return len(self.cores)


@dataclass(frozen=True)
class Exact:
    """What a call executes of printed code (`tinyet.tiles`), summed up instruction by instruction, not measured.

    instructions: of one call. cycles: of them, by the core's name in `tinyet.timing.cores`. functions: bytes of
    code, by name, that calls share. reads: bytes of code and of weights that it reads, parts of the lines of the flash.
    A kernel that is not printed may state the weights that it reads, and nothing else.
    """

    instructions: int
    cycles: Mapping[str, int]
    functions: Mapping[str, int]
    reads: Mapping[str, int]


NOTHING = Exact(0, {}, {}, {})


@dataclass(frozen=True)
class CostModel:
    """What a kernel's cost grows with.

    work: parts of the instructions that one call executes. code: parts of the bytes of code that a call has of its own;
    what calls share is a matter of the kernel alone. layout_work: the work where input or output lie in a
    `DataLayout`; of kernels that take none it is not asked. kind: of which kind a call is, where the compiler makes
    other code of the same source for some constants: kinds have rates of their own, as far as they were measured.
    apart: each kind is a function of its own, which alone is code that its calls share.
    exact: what the parts leave out because it is known to the instruction, of code that is printed for a core, by its
    name in `tinyet.timing.cores`; None for nothing.
    """

    work: Features
    code: Features = one_call
    layout_work: Callable[[Node, Layouts], Mapping[str, int]] | None = None
    kind: Callable[[Node], str] | None = None
    exact: Callable[[Node, Layouts, str], Exact] | None = None
    apart: bool = False


@dataclass(frozen=True)
class Cost:
    """Of one call. code, constants and scratch are in bytes.

    instructions: executed by one call; an average where they depend on the values.
    cycles:       estimated, waits of the flash included; None of a core whose cycles nobody has a model of.
    code:         of its own, the call itself included; calls of equal functions share it.
    shared:       code that all calls of some kernels share, by name: counted once, whoever needs it.
    constants:    weights, tables and parameter structs. scratch: in the arena, while the call runs.
    """

    instructions: int
    cycles: int | None
    code: int
    shared: Mapping[str, int]
    constants: int
    scratch: int

    @property
    def time(self) -> int:
        """What plans are compared by: cycles, on a core without a model of them instructions."""
        return self.instructions if self.cycles is None else self.cycles

    def times(self, count: int, instructions: int, time: int) -> Cost:
        """Of so many calls, each with more instructions and time around it."""
        cycles = None if self.cycles is None else count * (self.cycles + time)
        return replace(self, instructions=count * (self.instructions + instructions), cycles=cycles)


@dataclass(frozen=True)
class Rates:
    """What each part of a call comes to on one core.

    instructions, and code in bytes. cycles: without waits, by core: those that execute the same code. lines: of the
    flash that are read, for none of its buffers holds them; next_lines: likewise, code right behind the executed line.
    bytes: of executed code; empty where only the average of an instruction was measured, for the kernel as a whole.
    """

    instructions: Mapping[str, float]
    cycles: Mapping[str, Mapping[str, float]]
    lines: Mapping[str, float]
    next_lines: Mapping[str, float]
    code: Mapping[str, float]
    bytes: Mapping[str, float]


@dataclass(frozen=True)
class Coefficients:
    """What the features of a kernel's cost model come to on one core.

    rates: of all calls; kinds: of calls of some kinds, which take the place of those of all. bytes_each: of an executed
    instruction, on average. shared: code by name, in bytes; shared_of: that of each kind, where kinds are apart.
    """

    rates: Rates
    bytes_each: float
    shared: Mapping[str, int]
    kinds: Mapping[str, Rates]
    shared_of: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def of(self, cost_model: CostModel, node: Node) -> Rates:
        """The rates of a call."""
        own = self.kinds.get(cost_model.kind(node)) if cost_model.kind is not None else None
        return self.rates if own is None else own

    def shared_by(self, cost_model: CostModel, node: Node) -> Mapping[str, int]:
        """The code that a call shares with others."""
        return (
            self.shared_of.get(cost_model.kind(node), {})
            if self.shared_of and cost_model.kind
            else self.shared
        )


@dataclass(frozen=True)
class Measured:
    """The rates of all kernels on one core. toolchain: what they were measured with.

    base: bytes of flash of a firmware around the model: startup, C library, application. cores: those whose cycles
    all kernels state. line_bytes: of the flash whose lines were counted.
    """

    toolchain: str
    base: int
    cores: frozenset[str]
    line_bytes: int
    kernels: Mapping[str, Coefficients]


def core_of(target: Target) -> str:
    """The core in whose file the rates are."""
    cpu = _SAME_CODE.get(target.cpu, target.cpu)
    # Code for Helium or DSP is another kernel's than the code without.
    return "-".join([cpu, *(f for f in ("dsp", "mve") if f in target.features)])


def cycles_of(target: Target) -> str:
    """The core whose cycles are assumed for a target's."""
    return target.timed_as or target.cpu


@functools.cache
def measured(core: str) -> Measured | None:
    """The rates measured on a core; None for an unmeasured core."""
    path = MEASURED / f"{core}.json"
    if not path.is_file():
        return None
    table = json.loads(path.read_text(encoding="utf-8"))
    kernels = {name: coefficients_in(entry) for name, entry in table["kernels"].items()}
    cores = [set(found.rates.cycles) for found in kernels.values()]
    stated = frozenset[str]().union(*cores).intersection(*cores)
    return Measured(table["toolchain"], table["base"], stated, table["line_bytes"], kernels)


def coefficients_in(entry: Mapping[str, Any]) -> Coefficients:
    """Of a kernel's entry in the file of a core."""
    work = entry["work"]

    def by_part(rates: Sequence[float]) -> dict[str, float]:
        return dict(zip(work, rates, strict=True)) if rates else {}

    def of(part: Mapping[str, Any]) -> Rates:
        return Rates(
            by_part(part["instructions"]),
            {core: by_part(rates) for core, rates in part["cycles"].items()},
            by_part(part["lines"]),
            by_part(part["next_lines"]),
            part["code"],
            by_part(part.get("bytes", [])),
        )

    kinds = {kind: of(part) for kind, part in entry["kinds"].items()}
    return Coefficients(of(entry), entry["bytes_each"], entry["shared"], kinds, entry.get("shared_of", {}))


def estimate(
    symbol: str,
    cost_model: CostModel | None,
    node: Node,
    target: Target,
    call: Call,
    layouts: Layouts = DENSE,
) -> Cost | None:
    """The cost of a call that the kernel `symbol` made of a node; None where none is stated for the target."""
    table = measured(core_of(target))
    coefficients = None if table is None or cost_model is None else table.kernels.get(symbol)
    if cost_model is None or table is None or coefficients is None:
        return None
    if cost_model.apart and cost_model.kind is not None and cost_model.kind(node) not in coefficients.kinds:
        return None
    if cost_model.layout_work is not None and (layouts.reads is not None or layouts.writes is not None):
        parts = cost_model.layout_work(node, layouts)
    else:
        parts = cost_model.work(node)
    cycles, core = None, cycles_of(target)
    exact = NOTHING if cost_model.exact is None else cost_model.exact(node, layouts, core)
    parts = {**parts, **exact.reads}
    rates = coefficients.of(cost_model, node)
    instructions = max(1, round(total(rates.instructions, parts)) + exact.instructions)
    if core in table.cores:
        executing = max(1.0, total(rates.cycles[core], parts) + exact.cycles.get(core, 0))
        cycles = round(executing)
        if target.flash is None or target.flash.wait_states == 0:
            pass
        elif target.flash.code_lines * target.flash.line_bytes > _MOST_KEPT:
            weights = exact.reads.get("read weights", 0)
            cycles = round(
                executing + _waits_for_constants(target.flash, constant_bytes(call, target), weights)
            )
        else:
            executed = total(rates.bytes, parts) + exact.reads.get("printed code", 0)
            per_byte = executing / (executed if rates.bytes else instructions * coefficients.bytes_each)
            scale = table.line_bytes / target.flash.line_bytes
            lines, behind = (scale * total(read, parts) for read in (rates.lines, rates.next_lines))
            cycles = round(executing + target.flash.waits(lines, behind, per_byte))
    return Cost(
        instructions=instructions,
        cycles=cycles,
        code=max(0, round(total(rates.code, cost_model.code(node)))),
        shared={**coefficients.shared_by(cost_model, node), **exact.functions},
        constants=constant_bytes(call, target),
        scratch=call.scratch_bytes,
    )


def _waits_for_constants(flash: Flash, constants: int, weights: int) -> float:
    """Of a call behind a large cache: each constant is read once an inference, for others have taken its place since.
    weights: bytes of them that the call reads, where that is known: again and again where the cache is too small."""
    kept = (flash.code_lines if flash.shared else flash.data_lines) * flash.line_bytes
    read = max(constants, weights) if constants > kept else constants
    return flash.wait_states * read / flash.line_bytes


def counts_cycles(target: Target) -> bool:
    """Whether plans for a target are compared by cycles, for its core has a model of them; else by instructions."""
    table = measured(core_of(target))
    return table is not None and cycles_of(target) in table.cores


def total(rates: Mapping[str, float], parts: Mapping[str, int]) -> float:
    """What all parts of a call come to."""
    return sum(rates.get(name, 0.0) * count for name, count in parts.items())


def constant_bytes(call: Call, target: Target) -> int:
    """Of a call's own arrays and parameter struct."""
    arrays = sum(max(c.data.nbytes, c.data.itemsize) for c in call.constants)
    return arrays + (0 if call.params is None else field_bytes(call.params, target))


def field_bytes(value: FieldValue, target: Target) -> int:
    """Bytes of a field of a parameter struct, whose numbers have 32 bits, or 64 where they need them."""
    match value:
        case Struct():
            return sum(field_bytes(item, target) for item in value.fields.values())
        case Pointer():
            return target.pointer_bytes
        case tuple():
            return sum(field_bytes(item, target) for item in value)
        case float():
            return 4
        case _:
            return 4 if -(2**31) <= value < 2**32 else 8
