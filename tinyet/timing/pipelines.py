# SPDX-License-Identifier: Apache-2.0
"""Pipelines of cores whose maker publishes no table, from public models and measurements: data, each with its source.

LLVM: llvm/lib/Target/ARM/ARMScheduleM7.td, ARMScheduleM55.td and ARMScheduleM85.td of LLVM. jnk0le:
github.com/jnk0le/random, "pipeline cycle test", measured on chips. SLOTHY: targets/arm_v7m and targets/arm_v81m of
SLOTHY 0.2.2 (pypi.org/project/slothy), which calls its numbers approximate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tinyet.timing.instruction import LOADS, STORES, VECTORS, Instruction, Kind
from tinyet.timing.pipeline import Pair, Pipeline, Timing

_JNK0LE = 'jnk0le\'s "pipeline cycle test"'
_SLOTHY = "SLOTHY 0.2.2's"
_ALIGNED = "accesses to memory are aligned"
_CACHED = "code and data are in tightly coupled memory or in the caches, but for what is said of the flash"
_BANKS = "two loads are issued together if both are from one register, and from an even and an odd word"
_DIVISION = "a division takes 7 cycles (2 to 12)"

_PRODUCTS: tuple[Kind, ...] = (
    *("multiply", "multiply_add", "multiply_dsp", "multiply_long", "multiply_add_long"),
)
_SEVERAL: tuple[Kind, ...] = (
    *("load_double", "store_double", "load_multiple", "store_multiple", "load_multiple_pc"),
)
_CONSTANT_BRANCHES: tuple[Kind, ...] = ("branch", "compare_branch", "call")
_OTHER_BRANCHES: tuple[Kind, ...] = (
    *("branch_register", "call_register", "table_branch", "load_pc", "load_multiple_pc"),
)
_SYSTEM: tuple[Kind, ...] = ("system", "barrier", "interrupts", "exception")
_WORDS: frozenset[Kind] = frozenset(("load", "load_narrow"))
_TO_VECTORS = VECTORS & (LOADS | STORES)


def _all(kinds: Iterable[Kind], timing: Timing) -> dict[Kind, Timing]:
    return dict.fromkeys(kinds, timing)


# ---- which two go together ----


def _two_banks(first: Instruction, second: Instruction) -> bool:
    """Two loads go together from the even and the odd words of a memory: known of two from one register."""
    if first.kind not in LOADS or second.kind not in LOADS:
        return True
    words = first.kind in _WORDS and second.kind in _WORDS
    return words and first.address == second.address and (first.offset ^ second.offset) & 4 != 0


def _any_loads(first: Instruction, second: Instruction) -> bool:
    """Two loads always go together, but for those of several registers."""
    both = first.kind in LOADS and second.kind in LOADS
    return not both or (first.kind in _WORDS and second.kind in _WORDS)


def _one_load(first: Instruction, second: Instruction) -> bool:
    """Two loads never go together."""
    return first.kind not in LOADS or second.kind not in LOADS


def _short_behind(first: Instruction, second: Instruction) -> bool:
    """Of two short instructions, the second is a branch or does nothing."""
    short = first.size == second.size == 2
    return short and second.kind in ("hint", "it", "branch", "compare_branch", "branch_register")


def _short_with(first: Instruction, second: Instruction) -> bool:
    """Of two short instructions, one is among the simplest."""
    return first.size == second.size == 2 and (_simplest(first) or _simplest(second))


def _simplest(what: Instruction) -> bool:
    if what.kind == "data":  # with a constant: moves, additions and subtractions
        return len(what.operands) <= 1 and len(what.results) > 0 and what.results[0] < 16
    return what.kind in (
        "extend",
        "hint",
        "it",
        "branch",
        "compare_branch",
        "branch_register",
        "call_register",
    )


def _vector_behind(loads: Pair) -> Pair:
    """A vector instruction goes with a scalar one before it, unless both need the first place's units."""
    first_place = frozenset(("extend", "bits", "saturate"))

    def pair(first: Instruction, second: Instruction) -> bool:
        if first.kind in VECTORS:
            return False
        if second.kind in VECTORS - _TO_VECTORS and first.kind in first_place:
            return False
        return loads(first, second)

    return pair


# ---- Cortex-M7 ----

# Stages from the issue on: EX1 (0) has an ALU for the simplest instructions, a shifter and the addresses; EX2 (1) the
# other ALU, and what a load of a word brings; EX3 (2) sums of products and other loads; EX4 (3) stores' data.
_M7_SHIFTED = Timing(stages=(1,), shifted=-1, units=("shifter",))
_M7_FIELD = Timing(stages=(1,), shifted=-1, units=("shifter", "packed"), first=True)
_M7_TIMINGS: Mapping[Kind, Timing] = {
    **_all(("data", "shift"), Timing(stages=(0, 1))),
    **_all(("logic", "it", "hint"), Timing(stages=(1,))),
    "shifted": _M7_SHIFTED,
    "extend": Timing(stages=(1,), units=("packed",), first=True),
    "bits": _M7_FIELD,
    "saturate": replace(_M7_FIELD, result=2),
    **_all(_PRODUCTS, Timing(stages=(1,), result=2, late=1, units=("mac",))),
    "divide": Timing(stages=(1,), hold=7, alone=True),
    "load": Timing(result=2),
    "load_narrow": Timing(result=3),
    # A store takes the places in the register file that a product needs.
    "store": Timing(late=3, units=("store", "mac")),
    **_all(_SEVERAL, Timing(result=2, late=3, words=2, alone=True)),
    # Branches are predicted: they wait for nothing.
    **_all((*_CONSTANT_BRANCHES, "branch_register", "call_register"), Timing(stages=(9,), units=("branch",))),
    **_all(("load_pc", "table_branch"), Timing(hold=2, alone=True)),
    **_all(_SYSTEM, Timing(hold=3, alone=True)),
    "float": Timing(stages=(1,), result=3, units=("float",)),
    "float_multiply_add": Timing(stages=(1,), result=6, late=3, units=("float",)),
    "float_divide": Timing(stages=(1,), hold=16, units=("float",)),
    "float_root": Timing(stages=(1,), hold=14, units=("float",)),
    "float_move": Timing(stages=(1,), result=3),
    "float_move_two": Timing(stages=(1,), result=3, alone=True),
}
_M7 = Pipeline(
    "Cortex-M7",
    f"LLVM's ARMScheduleM7.td, {_JNK0LE} (an STM32H743 measured) and {_SLOTHY} cortex_m7.py; Arm publishes no table",
    (
        _BANKS,
        "a branch costs no more where it goes as it mostly does in a layer, and 6 cycles else (0 to 8)",
        "no instruction is issued beside a branch and behind it",
        _DIVISION,
        "the store buffer is never full, and two instructions are fetched in a cycle wherever they stand",
        _CACHED,
        _ALIGNED,
    ),
    _M7_TIMINGS,
    width=2,
    pair=_two_banks,
    # The load of a word is early enough for an addition in the next cycle, not for a factor or what is shifted.
    delays={("load", kind): 1 for kind in (*_PRODUCTS, "shifted", "bits")},
    missed=6,
)

# ---- Cortex-M33 ----

_M33_TAKEN: Mapping[Kind, int] = {**dict.fromkeys(_CONSTANT_BRANCHES, 1), **dict.fromkeys(_OTHER_BRANCHES, 3)}
_M33_TIMINGS: Mapping[Kind, Timing] = {
    **_all(("shifted", "bits", "saturate"), Timing(result=2)),
    **_all(_PRODUCTS, Timing(result=2, late=1)),
    "divide": Timing(hold=7),
    **_all(("load", "load_narrow"), Timing(result=2)),
    "store": Timing(late=1),
    **_all(_SEVERAL, Timing(result=2, late=1, words=1)),
    "load_pc": Timing(hold=2),
    "table_branch": Timing(hold=2),
    **_all(_SYSTEM, Timing(hold=2)),
    "float": Timing(result=2, units=("float",)),
    "float_multiply_add": Timing(result=4, late=1, units=("float",), busy=3),
    **_all(("float_divide", "float_root"), Timing(hold=14)),
    "float_move": Timing(result=2),
    "float_move_two": Timing(result=2, hold=2),
}
_M33 = Pipeline(
    "Cortex-M33",
    f"{_JNK0LE} (an RP2350 measured); Arm publishes no table",
    (
        "a taken branch costs a cycle more to a constant address, 3 cycles more to others (1 to 3)",
        _DIVISION,
        "root and quotient of floats take 14 cycles, as on the Cortex-M4",
        _ALIGNED,
    ),
    _M33_TIMINGS,
    width=2,
    pair=_short_behind,
    taken=_M33_TAKEN,
)

# ---- Cortex-M55 ----

# A vector is computed in two halves, one behind the other: an instruction holds its unit for two cycles, and one that
# needs another unit begins a cycle behind it, with the first half of what that one computes.
_M55_MEMORY = Timing(units=("memory",), busy=2)
_M55_INTEGER = Timing(units=("integer",), busy=2)
_M55_PRODUCT = Timing(result=2, units=("product",), busy=2)
_M55_TIMINGS: Mapping[Kind, Timing] = {
    **_all(("shifted", "bits", "saturate", "long_shift"), Timing(result=2)),
    **_all(_PRODUCTS, Timing(result=2, late=1)),
    "divide": Timing(hold=7),
    **_all(("load", "load_narrow"), Timing(result=2)),
    "store": Timing(late=1),
    **_all(_SEVERAL, Timing(result=2, late=1, words=2)),
    "load_pc": Timing(hold=2),
    "table_branch": Timing(hold=2),
    "loop_end": Timing(free=True),
    **_all(_SYSTEM, Timing(hold=2)),
    "float": Timing(result=2, units=("product",)),
    "float_multiply_add": Timing(result=4, units=("product",)),
    **_all(("float_divide", "float_root"), Timing(hold=16)),
    "float_move": Timing(result=2, units=("product",)),
    "float_move_two": _M55_PRODUCT,
    "vector": _M55_INTEGER,
    "vector_slow": replace(_M55_INTEGER, result=2),
    "vector_narrow": replace(_M55_INTEGER, result=3),
    "vector_extreme": replace(_M55_INTEGER, result=3),
    **_all(("vector_multiply", "vector_constant", "vector_float", "vector_sum", "vector_dot"), _M55_PRODUCT),
    "vector_compare": replace(_M55_PRODUCT, result=1),
    "predicate": Timing(units=("control",)),
    "vector_load": _M55_MEMORY,
    "vector_store": replace(_M55_MEMORY, late=1),
    # Addresses in a vector are needed four cycles before.
    "vector_gather": replace(_M55_MEMORY, result=2, address=-4),
    "vector_scatter": replace(_M55_MEMORY, late=1, address=-4),
    "vector_load_interleaved": replace(_M55_MEMORY, result=2),
    "vector_store_interleaved": _M55_MEMORY,
}
_M55_LOOP = "the end of a low-overhead loop takes no time, also the first one"
_M55 = Pipeline(
    "Cortex-M55",
    f"LLVM's ARMScheduleM55.td and {_SLOTHY} cortex_m55r1.py; Arm publishes no table",
    (
        "two instructions are issued together if both are short and one of them is among the simplest",
        "a taken branch costs as on the Cortex-M33: a cycle more to a constant address, 3 more to others (1 to 3)",
        _M55_LOOP,
        "a sum of products takes its addend a cycle later than its factors, as on the Cortex-M33 (or with them)",
        "several registers are loaded and stored two in a cycle (or one)",
        "a sum of products over a vector is there after 2 cycles (3 in SLOTHY's model)",
        "elements that are gathered from or scattered to one bank of the memory wait for nothing",
        _DIVISION,
        _CACHED,
        _ALIGNED,
    ),
    _M55_TIMINGS,
    width=2,
    pair=_short_with,
    taken=_M33_TAKEN,
)

# ---- Cortex-M85 ----

# Stages from the issue on: EX1 (0) to EX3 (2), each with an ALU; shifters in the first two. Vectors as above.
_M85_A = Timing(stages=(1,), units=("a",), busy=2)
_M85_B = Timing(stages=(1,), result=2, units=("b",), busy=2)
_M85_LOAD = Timing(result=2, units=("load",), busy=2)
_M85_STORE = Timing(late=3, units=("store",), busy=2)
_M85_TIMINGS: Mapping[Kind, Timing] = {
    # The second of two registers goes through the shifter, also where it is not shifted.
    **_all(("data",), Timing(stages=(0, 1, 2), shifted=-1)),
    **_all(("logic", "shifted"), Timing(stages=(1, 2), shifted=-1)),
    "shift": Timing(stages=(0, 1)),
    "extend": Timing(stages=(1,), units=("first",)),
    "bits": Timing(stages=(1,), shifted=-1, units=("first",)),
    "saturate": Timing(stages=(1,), shifted=-1, result=2, units=("first",)),
    **_all(("select", "long_shift"), Timing(stages=(2,), units=("long",))),
    **_all(_PRODUCTS, Timing(stages=(1,), result=2, late=1, units=("mac",))),
    "divide": Timing(hold=7, alone=True),
    "load": Timing(result=2),
    "load_narrow": Timing(result=3),
    "store": Timing(late=2, units=("store",)),
    "load_double": Timing(result=2, units=("load",)),
    "store_double": Timing(late=2, units=("store",)),
    **_all(
        ("load_multiple", "store_multiple", "load_multiple_pc"),
        Timing(result=2, late=2, words=2, alone=True),
    ),
    **_all((*_CONSTANT_BRANCHES, "branch_register", "call_register"), Timing(stages=(9,), units=("branch",))),
    **_all(("load_pc", "table_branch"), Timing(hold=2, alone=True)),
    "loop_end": Timing(free=True),
    **_all(_SYSTEM, Timing(hold=3, alone=True)),
    "float": Timing(stages=(1,), result=2, units=("b",)),
    "float_multiply_add": Timing(stages=(1,), result=5, late=3, units=("b",)),
    **_all(("float_divide", "float_root"), Timing(stages=(1,), hold=14)),
    "float_move": Timing(stages=(1,), result=2, units=("first",)),
    "float_move_two": Timing(stages=(1,), result=4, units=("first",)),
    "vector": _M85_A,
    "vector_slow": replace(_M85_A, result=2),
    "vector_narrow": replace(_M85_A, result=2),
    "vector_extreme": replace(_M85_A, result=4, late=2),
    "vector_constant": replace(_M85_B, result=1),
    **_all(("vector_multiply", "vector_float"), _M85_B),
    **_all(("vector_sum", "vector_dot"), replace(_M85_B, result=4, late=2)),
    "vector_compare": Timing(stages=(1,), units=("c",), busy=2),
    "predicate": Timing(stages=(1,), units=("d",)),
    "vector_load": _M85_LOAD,
    "vector_store": _M85_STORE,
    # Neither goes beside another instruction, nor overlaps with the next one.
    "vector_gather": replace(_M85_LOAD, address=-1, hold=2, alone=True),
    "vector_scatter": replace(_M85_STORE, address=-1, hold=2, alone=True),
    "vector_load_interleaved": replace(_M85_LOAD, result=5),
    "vector_store_interleaved": _M85_STORE,
}
_M85 = Pipeline(
    "Cortex-M85",
    f"LLVM's ARMScheduleM85.td, {_JNK0LE} (an RA8D1 measured) and {_SLOTHY} cortex_m85r1.py",
    (
        _BANKS,
        "a branch costs no more where it goes as it mostly does in a layer, and 4 cycles else (0 to 7)",
        "no instruction is issued beside a branch and behind it, and never three in a cycle",
        _M55_LOOP,
        _DIVISION,
        "the store buffer is never full, and two instructions are fetched in a cycle wherever they stand",
        _CACHED,
        _ALIGNED,
    ),
    _M85_TIMINGS,
    width=2,
    pair=_vector_behind(_two_banks),
    # In the second half of a vector's load or store no other but vectors is issued.
    distances={
        kind: dict.fromkeys(_TO_VECTORS, 2)
        for kind in (*_M85_TIMINGS, "it", "hint", "loop_start")
        if kind not in VECTORS and not _M85_TIMINGS.get(kind, Timing()).free
    },
    missed=4,
)

PIPELINES: Mapping[str, Pipeline] = {
    "cortex-m7": _M7,
    "cortex-m33": _M33,
    "cortex-m55": _M55,
    "cortex-m85": _M85,
}

# ---- what the sources leave open ----


def _dividing(core: Pipeline, cycles: int) -> dict[Kind, Timing]:
    """The core's timings, but for a division's."""
    return {**core.timings, "divide": replace(core.timings["divide"], hold=cycles)}


def _m55_at_worst() -> dict[Kind, Timing]:
    changed: dict[Kind, Timing] = {kind: replace(_M55_TIMINGS[kind], late=0) for kind in _PRODUCTS}
    changed["vector_dot"] = replace(_M55_PRODUCT, result=3)
    changed |= {kind: replace(_M55_TIMINGS[kind], words=1) for kind in _SEVERAL}
    return {**_dividing(_M55, 12), **changed}


_ONE: Mapping[Kind, int] = dict.fromkeys((*_CONSTANT_BRANCHES, *_OTHER_BRANCHES), 1)
_THREE: Mapping[Kind, int] = dict.fromkeys((*_CONSTANT_BRANCHES, *_OTHER_BRANCHES), 3)
# core → the model with each number that a source leaves open at its least, and at its most.
PIPELINE_ENDS: Mapping[str, tuple[Pipeline, Pipeline]] = {
    "cortex-m7": (
        replace(_M7, timings=_dividing(_M7, 2), pair=_any_loads, missed=0),
        replace(_M7, timings=_dividing(_M7, 12), pair=_one_load, missed=8),
    ),
    "cortex-m33": (
        replace(_M33, timings=_dividing(_M33, 2), taken=_ONE),
        replace(_M33, timings=_dividing(_M33, 12)),
    ),
    "cortex-m55": (
        replace(_M55, timings=_dividing(_M55, 2), taken=_ONE),
        replace(_M55, timings=_m55_at_worst(), taken=_THREE),
    ),
    "cortex-m85": (
        replace(_M85, timings=_dividing(_M85, 2), pair=_vector_behind(_any_loads), missed=0),
        replace(_M85, timings=_dividing(_M85, 12), pair=_vector_behind(_one_load), missed=7),
    ),
}
