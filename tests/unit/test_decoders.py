# SPDX-License-Identifier: Apache-2.0
"""What RISC-V and Xtensa instructions are: against the disassemblers' words, over the compilers' own libraries."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tinyet.timing import riscv, xtensa
from tinyet.timing.in_order import RV32, XTENSA
from tinyet.timing.instruction import Instruction, Kind
from tinyet.timing.table import Core

RISCV_NAMES = ("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", *(f"a{i}" for i in range(8)))
RISCV_REGISTERS = {
    name: number
    for number, name in enumerate((*RISCV_NAMES, *(f"s{i}" for i in range(2, 12)), "t3", "t4", "t5", "t6"))
}


EXCW = 0x002080


class Line(NamedTuple):
    """One instruction of a disassembly; registers are numbers, in the order of the text."""

    word: int
    size: int
    name: str
    registers: list[int]


class InstructionSet(NamedTuple):
    """kinds: names, as regular expressions; the first that matches decides, and "data" is what none does. changed:
    names of instructions that also read what they write."""

    prefix: str
    options: tuple[str, ...]
    decode: Callable[[int], Instruction]
    register: Callable[[str], list[int]]
    kinds: tuple[tuple[str, Kind], ...]
    changed: str
    """What calls write, and returns read, without saying so."""
    link: int


def riscv_registers(text: str) -> list[int]:
    return [RISCV_REGISTERS[word] for word in re.split(r"[,()]", text) if word in RISCV_REGISTERS]


def xtensa_registers(text: str) -> list[int]:
    return [int(word[1:]) for word in re.split(r", ?", text) if re.fullmatch(r"a\d+", word)]


RISCV = InstructionSet(
    "riscv64-unknown-elf-",
    ("-M", "no-aliases"),
    riscv.decode,
    riscv_registers,
    (
        (r"c\.j|jal zero", "branch"),
        (r"beq|bne|bltu?|bgeu?|c\.beqz|c\.bnez", "branch"),
        (r"jal|c\.jal", "call"),
        (r"jalr zero|c\.jr|mret", "branch_register"),
        (r"jalr|c\.jalr", "call_register"),
        (r"l[bh]u?|lw|c\.lw|c\.lwsp|lr\.w.*|amo.*", "load"),
        (r"s[bhw]|c\.sw|c\.swsp|sc\.w.*", "store"),
        ("mul", "multiply"),
        ("mulhs?u?", "multiply_long"),
        ("divu?|remu?", "divide"),
        (r"fence.*", "barrier"),
        ("csrr.*", "system"),
        (r"ecall|ebreak|c\.ebreak", "exception"),
        ("wfi", "hint"),
    ),
    r"c\.(?:add|sub|and|or|xor|andi|addi|slli|srli|srai|addi16sp)",
    1,
)
XTENSA_SET = InstructionSet(
    "xtensa-lx106-elf-",
    (),
    xtensa.decode,
    xtensa_registers,
    (
        (r"j|b(?:eq|ne|ge|lt|any|none|all|nall|bc|bs|bci|bsi)(?:z|i|u|ui)?", "branch"),
        (r"call0", "call"),
        (r"ret|jx|rfe|rfi", "branch_register"),
        (r"callx0", "call_register"),
        (r"l(?:8ui|16[us]i|32i|32r|32ai)", "load"),
        (r"s(?:8i|16i|32i|32ri|32c1i)", "store"),
        (r"mul(?:l|16[us])", "multiply"),
        (r"mul[us]h", "multiply_long"),
        (r"quo[us]|rem[us]", "divide"),
        (r"memw|extw|isync|dsync|esync|rsync|excw", "barrier"),
        (r"rsr|wsr|xsr|rsil", "system"),
        (r"ill|break|syscall", "exception"),
        (r"nop|waiti", "hint"),
    ),
    r"mov(?:eqz|nez|ltz|gez)|xsr",
    0,
)


@cache
def kind_of(name: str, kinds: tuple[tuple[str, Kind], ...]) -> Kind:
    return next((kind for pattern, kind in kinds if re.fullmatch(pattern, name)), "data")


def disassembly(file: Path, given: InstructionSet) -> Iterator[Line]:
    text = subprocess.run(
        [f"{given.prefix}objdump", "-d", *given.options, file],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    for word, name, rest in re.findall(r"^ *[0-9a-f]+:\t([0-9a-f]+) +\t([^\s.]\S*)(.*)$", text, re.MULTILINE):
        if name == "excw" and int(word, 16) != EXCW:
            continue  # the disassembler's word for what is no instruction
        # An address in hexadecimal may look like a register.
        operands = re.split(r"[;#]", re.sub(r"\b[0-9a-f]+ <[^>]*>", "", rest))[0].strip()
        registers = given.register(operands)
        plain = name if given is RISCV else re.sub(r"\.\w+$", "", name)
        if name in ("jal", "jalr") and registers[0] == 0:
            plain += " zero"
        if given is RISCV:
            plain = re.sub(r"\.(?:aq|rl|aqrl)$", "", plain)
        yield Line(int(word, 16), len(word) // 2, plain, registers)


def expected(line: Line, given: InstructionSet) -> tuple[Kind, set[int], set[int]]:
    """(kind, what it writes, what it reads) after the disassembler's words alone."""
    kind = kind_of(line.name, given.kinds)
    results, operands = line.registers[:1], line.registers[1:]
    if re.fullmatch(given.changed, line.name):
        operands = line.registers
    if kind in ("branch", "branch_register", "exception") or line.name.startswith(("ss", "wsr")):
        results, operands = [], line.registers
    if kind == "store" and line.name not in ("sc.w", "s32c1i"):
        results, operands = [], line.registers
    if line.name == "s32c1i":
        operands = line.registers
    if line.name in ("call0", "callx0", "c.jal", "c.jalr"):
        results, operands = [given.link], line.registers
    if line.name == "ret":
        operands = [given.link]
    if line.name in ("jal zero", "jalr zero", "c.j"):
        results = []
    never = {0} if given is RISCV else set[int]()
    return kind, set(results) - never, set(operands) - never


def wrong(lines: Iterator[Line], given: InstructionSet, seen: Counter[Kind]) -> list[str]:
    """The instructions that decode says something else of; counts those of each kind."""
    found = []
    for line in lines:
        got = given.decode(line.word)
        seen[got.kind] += 1
        told = got.kind, set(got.results), {*got.operands, *got.address, *got.late}
        if told != expected(line, given) or got.size != line.size:
            found.append(f"{line}: {got}, not {expected(line, given)}")
    return found


def library(given: InstructionSet, name: str, *flags: str) -> Path:
    done = subprocess.run(
        [f"{given.prefix}gcc", *flags, f"-print-file-name={name}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return Path(done.stdout.strip())


def needs(given: InstructionSet) -> None:
    tools = [f"{given.prefix}{tool}" for tool in ("gcc", "objdump", "as")]
    if not all(map(shutil.which, tools)):
        pytest.skip(f"{' or '.join(tools)} is not installed")


RV32_FLAGS = ("-march=rv32imac", "-mabi=ilp32")


@pytest.mark.parametrize(
    ("given", "flags", "libraries"),
    [(RISCV, RV32_FLAGS, ("libgcc.a",)), (XTENSA_SET, (), ("libc.a", "libm.a", "libgcc.a"))],
)
def test_the_compilers_libraries(
    given: InstructionSet, flags: tuple[str, ...], libraries: tuple[str, ...]
) -> None:
    needs(given)
    seen: Counter[Kind] = Counter()
    problems: list[str] = []
    for name in libraries:
        problems += wrong(disassembly(library(given, name, *flags), given), given, seen)
    assert not problems, "\n".join(problems[:20])
    assert seen.total() > 10_000
    assert {"data", "load", "store", "branch", "branch_register", "multiply"} <= set(seen)


# What libraries hardly hold.
RARE = (
    (
        RISCV,
        ("-march=rv32imac_zicsr_zifencei", "-mabi=ilp32"),
        """
        mulhsu a0, a1, a2; mulhu a0, a1, a2; div a0, a1, a2; remu a0, a1, a2; lr.w a0, (a1); sc.w a0, a1, (a2);
        amoadd.w a0, a1, (a2); amoswap.w.aq x0, a1, (a2); csrr a0, mcycle; csrrwi x0, mstatus, 3; csrw mstatus, a0;
        csrrsi a1, mstatus, 8; mret; wfi; fence; fence.i; ecall; ebreak; c.ebreak; c.jal .; jal t0, .; jalr t0, 4(a0);
        jalr x0, 4(a0); c.jalr a5; c.jr a5; lb a0, 3(a1); lh a0, 2(a1); sb a0, 3(a1); c.nop; c.lui a4, 1;
        c.addi16sp sp, 64; c.addi4spn a0, sp, 8; slti a0, a1, 3; auipc a0, 1; lui s11, 5; c.srai a0, 3; c.xor a0, a1
        """,
    ),
    (
        XTENSA_SET,
        (),
        """
        call0 .; callx0 a3; jx a4; ret; ret.n; l16si a2, a3, 4; l32i a2, a3, 400; s16i a2, a3, 4; s32i a2, a3, 400;
        mul16s a2, a3, a4; mul16u a2, a3, a4; mull a2, a3, a4; memw; isync; dsync; extw; rsil a2, 3; rsr a2, ccount;
        wsr a2, ccompare0; xsr a2, sar; break 1, 2; nop; nop.n; waiti 0; ssa8l a3; ssai 4; sll a2, a3; src a2, a3, a4;
        srl a2, a3; sra a2, a3; nsa a2, a3; extui a2, a3, 4, 5; addx4 a2, a3, a4; subx8 a2, a3, a4; movltz a2, a3, a4;
        beqi a2, 5, .; bltui a2, 5, .; bgeui a2, 5, .; bnall a2, a3, .; bbci a2, 20, .; bbs a2, a3, .; bltz a2, .;
        beqz.n a2, .+10; bnez.n a2, .+10; movi a2, -900; movi.n a2, 40; addmi a2, a3, 512; rfe; excw
        """,
    ),
)


@pytest.mark.parametrize(("given", "flags", "source"), RARE)
def test_what_libraries_hardly_hold(
    given: InstructionSet, flags: tuple[str, ...], source: str, tmp_path: Path
) -> None:
    needs(given)
    lines = [line.strip() for line in source.split(";")]
    file = tmp_path / "rare.o"
    options = ["--no-transform"] if given is XTENSA_SET else []
    text = "\n".join((".option norelax" if given is RISCV else "", *lines, ""))
    subprocess.run(
        [f"{given.prefix}as", *flags, *options, "-o", file, "-"],
        input=text,
        text=True,
        check=True,
        timeout=60,
    )
    seen: Counter[Kind] = Counter()
    problems = wrong(disassembly(file, given), given, seen)
    assert not problems, "\n".join(problems)
    assert seen.total() >= len(lines)


# ---- the models ----

LW, USES, OTHER = (
    riscv.decode(word) for word in (0x0005A503, 0x00A50633, 0x00D70633)
)  # lw a0; add a2, a0, a0; …
BNEZ, DIV, RET = (riscv.decode(word) for word in (0xE119, 0x02C5C533, 0x8082))


@pytest.mark.parametrize(
    ("block", "before", "cycles"),
    [
        ([LW, USES], [], 3),
        ([LW, OTHER], [], 2),
        ([LW, OTHER, USES], [], 3),
        ([USES], [LW], 2),
        ([USES], [OTHER], 1),
        ([LW, LW], [], 2),
        ([DIV, BNEZ], [], 34),
    ],
)
def test_what_waits_for_a_load(block: list[Instruction], before: list[Instruction], cycles: int) -> None:
    assert RV32.straight(block, before) == cycles


@pytest.mark.parametrize("model", [RV32, XTENSA])
def test_what_a_branch_costs_and_that_all_is_said_to_be_assumed(model: Core) -> None:
    assert [model.refill(last) for last in (BNEZ, RET, LW)] == [2, 2, 0]
    assert model.source.startswith("none: ")
    for what in ("load", "product", "division", "branch"):
        assert any(what in sentence for sentence in model.assumed), what
