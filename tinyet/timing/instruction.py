# SPDX-License-Identifier: Apache-2.0
"""What a model of cycles knows of an instruction: the same for every instruction set, filled in by its decoder."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal[
    "data",  # one result in one cycle: addition, subtraction, comparison, move
    "logic",  # AND, ORR, EOR, BIC, …
    "shift",  # by a constant or a register
    "shifted",  # arithmetic or logic with a shifted register
    "extend",  # a byte or a half, and nothing else
    "bits",  # fields, reversals, packed arithmetic, extensions with an addition, counts
    "saturate",  # SSAT, QADD, …
    "select",  # CSEL, …
    "long_shift",  # of 64 bits, or one that rounds or saturates: LSLL, SQRSHR, …
    "multiply",  # of 32 bits: MUL, and Armv6-M's only one
    "multiply_add",  # 32 bits and an addition or subtraction: MLA, MLS
    "multiply_dsp",  # products of halves, words' upper halves and sums of them: SMLAD, SMMLA, SMULBB, USAD8, …
    "multiply_long",  # a 64-bit product: SMULL, UMULL
    "multiply_add_long",  # and an addition to it: SMLAL, UMLAL, UMAAL, SMLALD, …
    "divide",
    "load",
    "load_narrow",  # of a byte or a half
    "store",
    "load_double",
    "store_double",
    "load_multiple",
    "store_multiple",
    "load_multiple_pc",  # POP {…, pc}
    "load_pc",
    "branch",
    "call",
    "branch_register",  # BX, and data processing that writes the program counter
    "call_register",
    "compare_branch",
    "table_branch",
    "loop_start",  # DLS, WLS, …
    "loop_end",  # LE, LETP
    "it",
    "hint",  # NOP, YIELD, …
    "barrier",
    "system",  # MRS, MSR
    "interrupts",  # CPS
    "exception",  # SVC, BKPT, UDF
    "coprocessor",  # any but the floating-point and the vector extension
    "float",  # addition, multiplication, comparison, conversion
    "float_multiply_add",
    "float_divide",
    "float_root",
    "float_move",
    "float_move_two",  # two core registers at once, lanes of a vector, too
    "vector",  # integers in one step: VADD, VAND, VSHL, VDUP, VMAX, …
    "vector_slow",  # in two: rounding and saturating shifts, with carry
    "vector_narrow",  # to halves of lanes: VMOVN, VQRSHRN, …
    "vector_multiply",  # VMUL, VMULL, VMLA, VQRDMULH, …
    "vector_constant",  # VMOV of a constant
    "vector_float",
    "vector_dot",  # a sum of products in core registers: VMLADAV, …
    "vector_sum",  # VADDV, VADDLV
    "vector_extreme",  # VMAXV, VABAV, …
    "vector_compare",  # VCMP, VPT
    "predicate",  # VPST, VPNOT, VCTP
    "vector_load",
    "vector_store",
    "vector_gather",  # from addresses in a vector
    "vector_scatter",
    "vector_load_interleaved",  # a part of VLD2, VLD4
    "vector_store_interleaved",
]

# Kinds whose result is in one core register, and is needed for no address in the next cycle.
PROCESSING: frozenset[Kind] = frozenset(
    (
        *("data", "logic", "shift", "shifted", "extend", "bits", "saturate", "select"),
        *("multiply", "multiply_add", "multiply_dsp", "divide"),
    )
)
LOADS: frozenset[Kind] = frozenset(
    (
        *("load", "load_narrow", "load_double", "load_multiple", "load_multiple_pc", "load_pc"),
        *("vector_load", "vector_gather", "vector_load_interleaved"),
    )
)
STORES: frozenset[Kind] = frozenset(
    (
        *("store", "store_double", "store_multiple"),
        *("vector_store", "vector_scatter", "vector_store_interleaved"),
    )
)
MULTIPLIES: frozenset[Kind] = frozenset(
    (
        *("multiply", "multiply_add", "multiply_dsp", "multiply_long", "multiply_add_long"),
        *("float_multiply_add", "vector_multiply", "vector_dot"),
    )
)
DIVIDES: frozenset[Kind] = frozenset(("divide", "float_divide", "float_root"))
BRANCHES: frozenset[Kind] = frozenset(
    (
        *("branch", "compare_branch", "call", "branch_register", "call_register", "table_branch"),
        *("load_pc", "load_multiple_pc", "loop_end"),
    )
)
VECTORS: frozenset[Kind] = frozenset(
    (
        *("vector", "vector_slow", "vector_narrow", "vector_multiply", "vector_constant", "vector_float"),
        *("vector_dot", "vector_sum", "vector_extreme", "vector_compare"),
        *("vector_load", "vector_store", "vector_gather", "vector_scatter"),
        *("vector_load_interleaved", "vector_store_interleaved"),
    )
)


class Instruction(NamedTuple):
    """One instruction. Registers are numbers, as the instruction set's decoder says.

    size: bytes. registers: how many words a multiple transfer moves; 1 else. conditional: it may do nothing, and
    control then goes on behind it though it is a branch. results: the registers that it computes or loads. operands:
    those that it reads, but for these: address: of a load or store, what its address is computed from; shifted: what
    it shifts or extends before it computes; late: what it adds to a product, or stores. updated: registers that a
    load or store moves on. indexed: its address is the sum of two registers. offset: bytes that a constant adds to it.
    """

    kind: Kind
    size: int
    registers: int = 1
    conditional: bool = False
    results: tuple[int, ...] = ()
    operands: tuple[int, ...] = ()
    address: tuple[int, ...] = ()
    shifted: tuple[int, ...] = ()
    late: tuple[int, ...] = ()
    updated: tuple[int, ...] = ()
    indexed: bool = False
    offset: int = 0
