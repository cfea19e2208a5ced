# SPDX-License-Identifier: Apache-2.0
"""The cost of a kernel for a node, stated before the choice: instructions, code, constants, scratch.

A kernel says what its cost grows with (`CostModel`: so many taps, so many outputs, …); how much each of these is on
a core is measured, and stands in `measured/<cpu>.json` with the toolchain that it was measured with. Constants and
scratch come from the `Call`, to the byte.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tinyet.boards.cpus import Target
from tinyet.ir import Node
from tinyet.opset.call import Call, FieldValue, Pointer, Struct
from tinyet.opset.data_layout import DENSE, Layouts

Features = Callable[[Node], Mapping[str, int]]
"""What something grows with: how often each of its parts is there, by the part's name."""

MEASURED = Path(__file__).parent / "measured"

# Cores for which GCC makes the code of another, or nearly so: with DSP, benchmarks/costs.py finds them within the same
# limits.
_SAME_CODE = {
    "cortex-m0plus": "cortex-m0",
    "cortex-m7": "cortex-m4",
    "cortex-m33": "cortex-m4",
    "rv32imc": "rv32imac",
}


def one_call(_node: Node) -> Mapping[str, int]:
    """Code that is the same for every call."""
    return {"call": 1}


@dataclass(frozen=True)
class CostModel:
    """What a kernel's cost grows with.

    work: parts of the instructions that one call executes. code: parts of the bytes of code that a call has of its own;
    what calls share is a matter of the kernel alone. layout_work: the work where input or output lie in a
    `DataLayout`; of kernels that take none it is not asked. kind: of which kind a call is, where the compiler makes
    other code of the same source for some constants: kinds have rates of their own, as far as they were measured.
    """

    work: Features
    code: Features = one_call
    layout_work: Callable[[Node, Layouts], Mapping[str, int]] | None = None
    kind: Callable[[Node], str] | None = None


@dataclass(frozen=True)
class Cost:
    """Of one call. All but `instructions` are in bytes.

    instructions: executed by one call; an average where they depend on the values.
    code:         of its own, the call itself included; calls of equal functions share it.
    shared:       code that all calls of some kernels share, by name: counted once, whoever needs it.
    constants:    weights, tables and parameter structs. scratch: in the arena, while the call runs.
    """

    instructions: int
    code: int
    shared: Mapping[str, int]
    constants: int
    scratch: int


@dataclass(frozen=True)
class Coefficients:
    """What the features of a kernel's cost model come to on one core: instructions and bytes each; and the
    shared code. kinds: instructions and code of calls of some kinds, which take the place of those of all."""

    instructions: Mapping[str, float]
    code: Mapping[str, float]
    shared: Mapping[str, int]
    kinds: Mapping[str, Mapping[str, Mapping[str, float]]]

    def of(self, cost_model: CostModel, node: Node) -> tuple[int, int]:
        """Instructions and bytes of code of a call."""
        own = self.kinds.get(cost_model.kind(node)) if cost_model.kind is not None else None
        instructions, code = (
            (self.instructions, self.code) if own is None else (own["instructions"], own["code"])
        )
        return max(1, _total(instructions, cost_model.work(node))), max(
            0, _total(code, cost_model.code(node))
        )


@dataclass(frozen=True)
class Measured:
    """The rates of all kernels on one core. toolchain: what they were measured with.

    base: bytes of flash of a firmware around the model: startup, C library, application.
    """

    toolchain: str
    base: int
    kernels: Mapping[str, Coefficients]


def core_of(target: Target) -> str:
    """The core in whose file the rates are."""
    cpu = _SAME_CODE.get(target.cpu, target.cpu)
    # Code for Helium or DSP is another kernel's than the code without.
    return "-".join([cpu, *(f for f in ("dsp", "mve") if f in target.features)])


@functools.cache
def measured(core: str) -> Measured | None:
    """The rates measured on a core; None for an unmeasured core."""
    path = MEASURED / f"{core}.json"
    if not path.is_file():
        return None
    table = json.loads(path.read_text(encoding="utf-8"))
    kernels = {
        name: Coefficients(entry["instructions"], entry["code"], entry["shared"], entry.get("kinds", {}))
        for name, entry in table["kernels"].items()
    }
    return Measured(table["toolchain"], table["base"], kernels)


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
    if cost_model is None or coefficients is None:
        return None
    if cost_model.layout_work is not None and (layouts.reads is not None or layouts.writes is not None):
        parts = cost_model.layout_work(node, layouts)
        cost_model = replace(cost_model, work=lambda _node: parts)
    instructions, code = coefficients.of(cost_model, node)
    return Cost(
        instructions=instructions,
        code=code,
        shared=coefficients.shared,
        constants=constant_bytes(call, target),
        scratch=call.scratch_bytes,
    )


def _total(coefficients: Mapping[str, float], parts: Mapping[str, int]) -> int:
    return round(sum(coefficients.get(name, 0.0) * count for name, count in parts.items()))


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
