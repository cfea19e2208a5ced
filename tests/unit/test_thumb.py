# SPDX-License-Identifier: Apache-2.0
"""What kind each Thumb instruction is: against the disassembler's names, over the compiler's own libraries."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tinyet.cycles.thumb import PROCESSING, Instruction, Kind, decode, is_wide, it_length

GCC, OBJDUMP, AS = (f"arm-none-eabi-{tool}" for tool in ("gcc", "objdump", "as"))
needs_tools = pytest.mark.skipif(
    not all(map(shutil.which, (GCC, OBJDUMP, AS))), reason="arm-none-eabi-gcc is not installed"
)

COND = "(?:eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)?"
# Names of instructions, whole and with a condition behind; the first that matches decides.
NAMES: tuple[tuple[str, Kind], ...] = (
    (f"b{COND}", "branch"),
    (f"bl{COND}", "call"),
    (f"bx(?:ns)?{COND}", "branch_register"),
    (f"blx(?:ns)?{COND}", "call_register"),
    ("cbn?z", "compare_branch"),
    ("tb[bh]", "table_branch"),
    ("it[te]{0,3}", "it"),
    (f"(?:push|stm(?:ia|db)?){COND}", "store_multiple"),
    (f"(?:pop|ldm(?:ia|db)?){COND}", "load_multiple"),
    (f"ldrd{COND}", "load_double"),
    (f"strd{COND}", "store_double"),
    (f"(?:ldr|ldrb|ldrh|ldrsb|ldrsh|ldrbt|ldrex|ldrexb|ldrexh|lda|ldab|ldah){COND}", "load"),
    (f"(?:str|strb|strh|strbt|strex|strexb|strexh|stl|stlb|stlh){COND}", "store"),
    (f"muls?{COND}", "multiply"),
    (f"ml[as]{COND}", "multiply_add"),
    (f"[su]mull{COND}", "multiply_long"),
    (f"(?:smlal(?:[bt][bt]|dx?)?|smlsldx?|umlal|umaal){COND}", "multiply_add_long"),
    (
        f"(?:smu[ls][bt][bt]|sml[as][bt][bt]|sm[ul]+[aw]+[bt]|sm[ul][as]dx?|sml[as]dx?|smmulr?|smml[as]r?|usada?8){COND}",
        "multiply_dsp",
    ),
    (f"[su]div{COND}", "divide"),
    (f"(?:nop|yield|wfe|wfi|sev|sg|pldw?|pli){COND}", "hint"),
    (f"(?:dmb|dsb|isb){COND}", "barrier"),
    (f"m(?:rs|sr){COND}", "system"),
    ("cps(?:ie|id)", "interrupts"),
    (f"(?:svc|udf){COND}|bkpt", "exception"),
    (f"(?:vmla|vmls|vnmla|vnmls|vfma|vfms|vfnma|vfnms){COND}", "float_multiply_add"),
    (f"vdiv{COND}", "float_divide"),
    (f"vsqrt{COND}", "float_root"),
    (f"vldr{COND}", "load"),
    (f"vstr{COND}", "store"),
    (f"(?:vpop|vldmia|vldmdb|fldmiax){COND}", "load_multiple"),
    (f"(?:vpush|vstmia|vstmdb|fstmiax){COND}", "store_multiple"),
    (f"vm(?:rs|sr){COND}", "float_move"),
    (f"(?:(?:ldc|stc)2?l?|(?:mcrr?|mrrc|mrc|cdp)2?|(?:ld|st)f[sdep]|[ls]fm){COND}", "coprocessor"),
    (f"v[a-z0-9]+?{COND}", "float"),
)
REGISTERS = {"sl": 10, "fp": 11, "ip": 12, "sp": 13, "lr": 14, "pc": 15}
CORE_REGISTER = re.compile(r"r\d+|sl|fp|ip|sp|lr")


class Line(NamedTuple):
    """One instruction of a disassembly; operands without the comment."""

    words: tuple[int, int]
    name: str
    operands: str


@cache
def kind_of(name: str) -> Kind:
    return next((kind for pattern, kind in NAMES if re.fullmatch(pattern, name)), "data")


def expected(line: Line) -> tuple[Kind, int]:
    """(kind, registers) after the disassembler's words alone."""
    kind = kind_of(line.name)
    operands = [operand.strip() for operand in line.operands.split(",")]
    first = operands[0]
    if kind in ("load_multiple", "store_multiple"):
        count = listed(line.operands)
        return ("load_multiple_pc" if re.search(r"\bpc\b.*}", line.operands) else kind), count
    if kind in ("load_double", "store_double"):
        return kind, 2
    if line.name.startswith(("vldr", "vstr")) and first.startswith("d"):
        return ("load_double" if kind == "load" else "store_double"), 2
    if kind == "load" and first == "pc":
        return "load_pc", 1
    if line.words[0] == 0x46C0:
        return "data", 1  # `mov r8, r8`, which the disassembler calls nop
    if kind == "data" and first == "pc":
        return "branch_register", 1
    if line.name.startswith("vmov"):
        core = sum(CORE_REGISTER.fullmatch(operand) is not None for operand in operands)
        return ("float", "float_move", "float_move_two")[core], 1
    return kind, 1


def written(line: Line) -> int:
    """The register that data processing writes, after the disassembler's words."""
    if line.words[0] == 0x46C0:
        return 8
    if re.fullmatch(f"(?:cmp|cmn|tst|teq){COND}", line.name):
        return -1
    first = line.operands.partition(",")[0].strip()
    return REGISTERS[first] if first in REGISTERS else int(first[1:])


def listed(operands: str) -> int:
    """Words that the registers in braces hold."""
    words = 0
    for part in re.findall(r"{(.*?)}", operands)[0].split(","):
        first, _, last = part.strip().partition("-")
        ends = [REGISTERS[end] if end in REGISTERS else int(end[1:]) for end in (first, last or first)]
        words += (ends[1] - ends[0] + 1) * (2 if first.startswith("d") else 1)
    return words


def disassembly(file: Path, *options: str) -> Iterator[Line]:
    text = subprocess.run(
        [OBJDUMP, "-d", *options, file], capture_output=True, text=True, check=True, timeout=120
    ).stdout
    for match in re.finditer(
        r"^ *[0-9a-f]+:\t([0-9a-f]{4})(?: ([0-9a-f]{4}))? +\t(\S+)(.*)$", text, re.MULTILINE
    ):
        first, second, name, rest = match.groups()
        if name.startswith("."):
            continue
        operands = re.split(r"[;@<]", rest)[0].strip()
        yield Line((int(first, 16), int(second or "0", 16)), re.sub(r"\.[nw]$|\..*", "", name), operands)


def wrong(lines: Iterator[Line], seen: Counter[Kind]) -> list[str]:
    """The instructions that decode says something else of; counts those of each kind."""
    found = []
    for line in lines:
        got = decode(*line.words)
        seen[got.kind] += 1
        size = 4 if is_wide(line.words[0]) else 2
        told = (got.kind, got.registers) == expected(line) and got.size == size
        if not told or (got.kind in PROCESSING and got.target != written(line)):
            found.append(f"{line}: {got}, not {expected(line)}")
    return found


@needs_tools
@pytest.mark.parametrize(
    ("flags", "libraries"),
    [
        (("-mcpu=cortex-m0",), ("libc_nano.a", "libgcc.a")),
        (("-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"), ("libc_nano.a", "libm.a", "libgcc.a")),
        (("-mcpu=cortex-m33", "-mfloat-abi=hard", "-mfpu=fpv5-sp-d16"), ("libc_nano.a", "libgcc.a")),
    ],
)
def test_the_compilers_libraries(flags: tuple[str, ...], libraries: tuple[str, ...]) -> None:
    seen: Counter[Kind] = Counter()
    problems: list[str] = []
    for library in libraries:
        found = subprocess.run(
            [GCC, "-mthumb", *flags, f"-print-file-name={library}"],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout.strip()
        problems += wrong(disassembly(Path(found)), seen)
    assert not problems, "\n".join(problems[:20])
    assert seen.total() > 10_000
    assert {"data", "load", "store", "branch", "call", "load_multiple_pc", "multiply"} <= set(seen)


# What libraries hardly hold: core → instructions.
RARE = {
    "cortex-m0": """
        add pc, r3; mov pc, r2; blx r1; bx lr; cpsid i; mrs r0, primask; msr primask, r0; dmb; isb; nop;
        wfi; muls r1, r2, r1; ldr r0, [r1, r2]; ldrsh r0, [r1, r2]; str r0, [sp, #8]; svc 1; bkpt 0;
        pop {r1, pc}; stmia r0!, {r1, r2}; ldmia r0!, {r1, r2, r3}; sxtb r0, r1; rev r0, r1; sub sp, #8
    """,
    "cortex-m4": """
        smlad r0, r1, r2, r3; smladx r0, r1, r2, r3; smlsd r0, r1, r2, r3; smuad r0, r1, r2;
        smusd r0, r1, r2; smulbb r0, r1, r2; smultt r0, r1, r2; smlabt r0, r1, r2, r3; smulwb r0, r1, r2;
        smlawt r0, r1, r2, r3; smmul r0, r1, r2; smmla r0, r1, r2, r3; smmlar r0, r1, r2, r3;
        smmls r0, r1, r2, r3; usad8 r0, r1, r2; usada8 r0, r1, r2, r3; smlald r0, r1, r2, r3;
        smlsld r0, r1, r2, r3; smlalbb r0, r1, r2, r3; umaal r0, r1, r2, r3; smull r0, r1, r2, r3;
        umlal r0, r1, r2, r3; sdiv r0, r1, r2; mul r0, r1, r8; mla r0, r1, r2, r3; mls r0, r1, r2, r3;
        ssat r0, #8, r1; usat16 r0, #4, r1; sxtb16 r0, r1; sxtab16 r0, r1, r2; pkhbt r0, r1, r2;
        sadd16 r0, r1, r2; qadd r0, r1, r2; sel r0, r1, r2; clz r0, r1; ubfx r0, r1, #3, #4;
        bfi r0, r1, #3, #4; movw r0, #4660; ldr r0, [r1, r2, lsl #2]; ldr r0, [r1], #4;
        ldr r0, [r1, #-4]; ldr.w r0, [r1, #400]; ldrsb r8, [r1, r9]; str r0, [r1, r2, lsl #2];
        str r0, [r1, #4]!; ldr pc, [r0]; ldrd r0, r1, [r2, #8]; strd r0, r1, [r2], #8; ldrex r0, [r1];
        strexb r0, r1, [r2]; tbb [pc, r0]; tbh [pc, r0, lsl #1]; pld [r0]; nop.w; dsb; mrs r0, basepri;
        stmdb r8!, {r0-r3}; ldmia.w r8!, {r0-r7}; ldmia.w sp!, {r4, r5, pc}; add.w r0, r1, r2, asr #3;
        tst.w r0, #1; vmla.f32 s0, s1, s2; vfma.f32 s0, s1, s2; vfnms.f32 s0, s1, s2;
        vnmul.f32 s0, s1, s2; vdiv.f32 s0, s1, s2; vsqrt.f32 s0, s1; vadd.f32 s0, s1, s2;
        vcmp.f32 s0, s1; vcvt.s32.f32 s0, s1; vmov.f32 s0, #1.0; vmov s0, r1; vmov s0, s1, r2, r3;
        vmov d0, r2, r3; vmrs apsr_nzcv, fpscr; vldr s0, [r1, #4]; vldr d1, [r2]; vstr s0, [r1];
        vldmia r0!, {s0-s3}; vpush {d8-d11}; vpop {s16-s17}; vabs.f32 s0, s1; vneg.f32 s2, s3
    """,
    "cortex-m33": """
        sg; tt r0, r1; lda r0, [r1]; stl r0, [r1]; bxns lr; blxns r3; vmaxnm.f32 s0, s1, s2;
        udiv r0, r1, r2; vseleq.f32 s0, s1, s2; vrintn.f32 s0, s1; vcvta.s32.f32 s0, s1; movw r0, #1;
        b.n .; cbz r0, .+8
    """,
}


@needs_tools
@pytest.mark.parametrize("core", RARE)
def test_encodings(core: str, tmp_path: Path) -> None:
    source, made = tmp_path / "rare.s", tmp_path / "rare.o"
    fpu = {"cortex-m4": ".fpu fpv4-sp-d16", "cortex-m33": ".fpu fpv5-sp-d16"}.get(core, "")
    lines = [word.strip() for word in RARE[core].split(";")]
    source.write_text("\n".join([".syntax unified", ".thumb", fpu, *lines, ""]), encoding="utf-8")
    subprocess.run([AS, f"-mcpu={core}", "-mthumb", "-o", made, source], check=True, timeout=60)
    seen: Counter[Kind] = Counter()
    assert wrong(disassembly(made), seen) == []
    assert seen.total() == len(lines)


@pytest.mark.parametrize(
    ("word", "length"),
    [(0xBF08, 1), (0xBF04, 2), (0xBF0A, 3), (0xBF15, 4), (0xBF00, 0), (0xBF30, 0), (0x4770, 0)],
)
def test_how_many_instructions_an_it_makes_conditional(word: int, length: int) -> None:
    # IT EQ, ITT EQ, ITET EQ, ITETE NE, NOP, WFI, BX
    assert it_length(word) == length


@pytest.mark.parametrize(
    ("words", "target", "address", "indexed"),
    [
        ((0x5888, 0), 0, (1, 2), True),  # ldr r0, [r1, r2]
        ((0x6848, 0), 0, (1,), False),  # ldr r0, [r1, #4]
        ((0x4801, 0), 0, (15,), False),  # ldr r0, [pc, #4]
        ((0x9802, 0), 0, (13,), False),  # ldr r0, [sp, #8]
        ((0xF851, 0x0022), 0, (1, 2), True),  # ldr.w r0, [r1, r2, lsl #2]
        ((0xF851, 0x0B04), 0, (1,), False),  # ldr.w r0, [r1], #4
        ((0xF8D1, 0x0190), 0, (1,), False),  # ldr.w r0, [r1, #400]
        ((0x5088, 0), -1, (1, 2), True),  # str r0, [r1, r2]
        ((0xED91, 0x0A01), -1, (1,), False),  # vldr s0, [r1, #4]
    ],
)
def test_what_an_address_is_made_of(
    words: tuple[int, int], target: int, address: tuple[int, ...], indexed: bool
) -> None:
    got: Instruction = decode(*words)
    assert (got.target, got.address, got.indexed) == (target, address, indexed)
