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

from tinyet.timing.instruction import BRANCHES, Instruction, Kind
from tinyet.timing.thumb import decode, is_wide, it_length
from tinyet.timing.vectors import FLAGS, PREDICATE, SINGLE

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
    (f"(?:ldr|ldrt|ldrex|lda){COND}", "load"),
    (f"(?:ldrs?[bh]t?|ldrex[bh]|lda[bh]){COND}", "load_narrow"),
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
    (f"(?:and|orr|orn|eor|bic|mvn)s?{COND}|(?:tst|teq){COND}", "logic"),
    (f"(?:lsl|lsr|asr|ror)s?{COND}|rrxs?", "shift"),
    (f"[su]xt[bh](?:16)?{COND}", "extend"),
    (
        f"[su](?:sat|sat16){COND}|q(?:d?add|d?sub){COND}|u?q(?:add|sub)(?:8|16){COND}|u?q(?:asx|sax){COND}",
        "saturate",
    ),
    (f"(?:[su]bfx|bf[ic]|rev|rev16|revsh|rbit|clz|sel|pkhbt|pkhtb|[su]xta[bh](?:16)?){COND}", "bits"),
    (f"(?:[su]h?)(?:add|sub)(?:8|16){COND}|(?:[su]h?)(?:asx|sax){COND}", "bits"),
    ("cs(?:el|inc|inv|neg|et|etm)|c(?:inc|inv|neg)", "select"),
    ("[su]q?r?sh[lr]l?|asrl|lsll|lsrl|[su]qrsh[lr]l?", "long_shift"),
    ("dls(?:tp)?|wls(?:tp)?|lctp", "loop_start"),
    ("le(?:tp)?", "loop_end"),
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
# The same of instructions with a vector; behind some of these stands whether they are predicated.
VECTOR_NAMES: tuple[tuple[str, Kind], ...] = (
    ("vldr[bhwd]", "vector_load"),
    ("vstr[bhwd]", "vector_store"),
    ("vld[24][0-3]", "vector_load_interleaved"),
    ("vst[24][0-3]", "vector_store_interleaved"),
    ("vr?ml[as]l?davh?a?x?|vr?mlalvh?a?|vmlava?", "vector_dot"),
    ("vaddl?va?", "vector_sum"),
    ("v(?:max|min)(?:nm)?a?v|vabav", "vector_extreme"),
    ("vcmp|vpt[te]*", "vector_compare"),
    ("vctp|vpst[te]*|vpnot", "predicate"),
    ("vmovn[bt]|vqmovu?n[bt]|vq?r?shru?n[bt]", "vector_narrow"),
    ("vrshr|vqr?shlu?|vrshl|vadci?|vsbci?", "vector_slow"),
    (
        "vr?mulh|vmul|vmull[bt]|vmlas?|vqr?dmulh|vqdmull[bt]|vqr?dml[as]s?d?hx?|vqr?dml[as]dhx?",
        "vector_multiply",
    ),
    (
        "vand|vbic|veor|vorn|vorr|vpsel|vrev(?:16|32|64)|vcls|vclz|vbrsr|v[di]?w?dup|vq?abs|vq?neg|vabd|vmvn",
        "vector",
    ),
    (
        "v(?:q|h|rh)?(?:add|sub)|vh?cadd|v(?:max|min)a?|vmovl[bt]|vshl|vshr|vshll[bt]|vsli|vsri|vshlc",
        "vector",
    ),
)
REGISTERS = {"sl": 10, "fp": 11, "ip": 12, "sp": 13, "lr": 14, "pc": 15}
CORE_REGISTER = re.compile(r"\b(?:r\d+|sl|fp|ip|sp|lr)\b")
# Whose registers no model waits for, or nobody writes down.
UNNAMED: frozenset[Kind] = (
    BRANCHES - {"branch_register", "call_register", "compare_branch", "load_multiple_pc", "load_pc"}
) | {"coprocessor", "barrier", "hint"}


class Line(NamedTuple):
    """One instruction of a disassembly; operands without the comment."""

    words: tuple[int, int]
    name: str
    operands: str
    type_: str = ""


@cache
def kind_of(name: str) -> Kind:
    return next((kind for pattern, kind in NAMES if re.fullmatch(pattern, name)), "data")


def vector_kind(line: Line) -> Kind:
    if "f" in line.type_:
        extreme = re.fullmatch("v(?:max|min)nma?v", line.name)
        if not extreme and not re.fullmatch("vcmp|vpt[te]*|vld.*|vst.*|vdup", line.name):
            return "vector_float"
    if line.name in ("vmov", "vmvn") and "#" in line.operands:
        return "vector_constant"
    names = (line.name, line.name[:-1])  # the last letter may say that it is predicated: t or e
    kind = next(kind for name in names for pattern, kind in VECTOR_NAMES if re.fullmatch(pattern, name))
    if kind in ("vector_load", "vector_store") and re.search(r"\[.*q", line.operands):
        return "vector_gather" if kind == "vector_load" else "vector_scatter"
    return kind


def expected(line: Line) -> tuple[Kind, int]:
    """(kind, registers) after the disassembler's words alone."""
    operands = [operand.strip() for operand in line.operands.split(",")]
    if line.name in ("vctp", "vpnot") or line.name.startswith("vpst"):
        return "predicate", 1
    if re.search(r"\bq\d", line.operands) and not (
        line.name == "vmov" and CORE_REGISTER.search(line.operands)
    ):
        if line.name == "vmov" and "#" not in line.operands:
            return "vector", 1  # that is VORR
        return vector_kind(line), 1
    kind = kind_of(line.name)
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
    if kind in ("data", "logic") and first == "pc":
        return "branch_register", 1
    if kind in ("data", "logic") and re.search(r"(?:lsl|lsr|asr|ror|rrx)(?: #\d+)?$", line.operands):
        return ("shift" if line.name.startswith("mov") else "shifted"), 1
    if line.name.startswith("mvn") and "#" in line.operands:
        return "data", 1  # a move
    if kind == "shift" and line.operands.endswith("#0"):
        return "data", 1
    if line.name.startswith("vmov"):
        core = sum(CORE_REGISTER.fullmatch(operand) is not None for operand in operands)
        return ("float", "float_move", "float_move_two")[core], 1
    return kind, 1


def named(line: Line) -> set[int]:
    """The registers that the disassembler's words name; of the flags, of what pushes move on, it tells nothing."""
    if line.words[0] == 0x46C0:
        return {8}
    text = re.sub(r"#.*?(?=[,\]\s]|$)", "", line.operands)
    if line.name.startswith(("cb", "wls", "tb")):  # what is behind is a place in the code
        text = line.operands.rpartition(",")[0] if not line.name.startswith("tb") else line.operands
    if line.name.startswith(("mrs", "msr", "cps", "vmrs", "vmsr")):
        text = " ".join(CORE_REGISTER.findall(text))
    found: set[int] = set()
    for number, lane in re.findall(r"\bq(\d)\[(\d)\]", text):
        found.add(SINGLE + 4 * int(number) + int(lane))
    text = re.sub(r"\bq\d\[\d\]", "", text)
    for kind, low, high in re.findall(r"\b([rsdq])(\d+)\b(?:\s*-\s*[rsdq](\d+))?", text):
        words = {"r": 0, "s": 1, "d": 2, "q": 4}[kind]
        for number in range(int(low), int(high or low) + 1):
            at = SINGLE + words * number
            found |= set(range(at, at + words)) or {number}
    for low, high in re.findall(r"\b(r\d+|sl|fp|ip|sp|lr)\b(?:\s*-\s*(r\d+|sl|fp|ip|lr))?", text):
        ends = [REGISTERS[end] if end in REGISTERS else int(end[1:]) for end in (low, high or low)]
        found |= set(range(ends[0], ends[1] + 1))
    if re.match("push|pop|vpush|vpop", line.name):
        found.add(REGISTERS["sp"])
    return found - {REGISTERS["pc"]}


def touched(line: Line, got: Instruction) -> set[int]:
    """The registers that `decode` says an instruction reads or writes, but for those that no words name."""
    found = {*got.results, *got.operands, *got.address, *got.shifted, *got.late, *got.updated}
    if got.kind == "loop_start" and line.name == "lctp":
        found -= {REGISTERS["lr"]}
    return found - {FLAGS, PREDICATE, REGISTERS["pc"]}


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
        name, _, type_ = re.sub(r"\.[nw]$", "", name).partition(".")
        yield Line((int(first, 16), int(second or "0", 16)), name, operands, type_)


def wrong(lines: Iterator[Line], seen: Counter[Kind]) -> list[str]:
    """The instructions that decode says something else of; counts those of each kind."""
    found = []
    # Each different one once: most are there again and again.
    for line, count in Counter(lines).items():
        got = decode(*line.words)
        seen[got.kind] += count
        size = 4 if is_wide(line.words[0]) else 2
        told = (got.kind, got.registers) == expected(line) and got.size == size
        if not told or (got.kind not in UNNAMED and touched(line, got) != named(line)):
            found.append(f"{line}: {got}, not {expected(line)}")
    return found


@needs_tools
@pytest.mark.parametrize(
    ("flags", "libraries"),
    [
        (("-mcpu=cortex-m0",), ("libc_nano.a", "libgcc.a")),
        (("-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"), ("libc_nano.a", "libm.a", "libgcc.a")),
        (("-mcpu=cortex-m33", "-mfloat-abi=hard", "-mfpu=fpv5-sp-d16"), ("libc_nano.a", "libgcc.a")),
        (("-mcpu=cortex-m55", "-mfloat-abi=hard", "-mfpu=auto"), ("libc_nano.a", "libm.a", "libgcc.a")),
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
    "cortex-m55": """
        dls lr, r1; wls lr, r2, end; dlstp.8 lr, r3; wlstp.16 lr, r4, end; le lr, start; letp lr, start; lctp;
        vctp.8 r1; vpst; vaddt.i8 q0, q1, q2; vpnot; vpt.s16 le, q0, q1; vmult.i16 q1, q2, q3;
        vcmp.u8 hi, q1, q2; vcmp.s32 gt, q1, r3; vcmp.f32 eq, q1, q2; vpsel q0, q1, q2;
        vldrb.u8 q0, [r1], #16; vldrb.s16 q1, [r2, #8]; vldrh.u32 q2, [r3]; vldrw.u32 q3, [r9, #16]!;
        vldrb.u8 q0, [r1, q2]; vldrh.u16 q0, [r1, q2, uxtw #1]; vldrw.u32 q0, [q1, #4]; vldrd.u64 q0, [q1]!;
        vstrb.8 q0, [r1], #16; vstrb.32 q1, [r2]; vstrw.32 q3, [r10]; vstrh.16 q0, [r1, q2]; vstrw.32 q0, [q1, #8];
        vld20.8 {q0, q1}, [r1]; vld21.16 {q2, q3}, [r2]!; vld43.32 {q0, q1, q2, q3}, [r3]!;
        vst40.8 {q4, q5, q6, q7}, [r4]; vst21.8 {q1, q2}, [r5]!;
        vmladav.s8 r0, q1, q2; vmladava.s16 r2, q3, q4; vmladavax.s16 r4, q0, q0; vmlsdav.s32 lr, q1, q2;
        vmlaldav.s16 r0, r1, q1, q2; vmlaldava.u32 r2, r3, q4, q5; vrmlaldavh.s32 r4, r5, q6, q7;
        vaddv.u8 r0, q1; vaddva.s32 r2, q3; vaddlv.s32 r0, r1, q2; vmaxv.s8 r1, q2; vminav.s16 r3, q4;
        vabav.u8 r5, q6, q7; vadd.i32 q0, q1, q2; vadd.i8 q0, q1, r2; vsub.i16 q3, q4, r5; vhadd.s8 q0, q1, q2;
        vrhadd.u8 q0, q1, q2; vqadd.s16 q0, q1, r3; vqsub.u8 q0, q1, q2; vmul.i32 q0, q1, q2; vmul.i8 q0, q1, r2;
        vmla.s32 q0, q1, r2; vmlas.s16 q0, q1, r2; vmulh.s8 q0, q1, q2; vrmulh.u16 q0, q1, q2;
        vmullb.s8 q0, q1, q2; vmullt.u16 q0, q1, q2; vqdmulh.s32 q0, q1, q2; vqrdmulh.s32 q0, q1, r2;
        vqrdmulh.s32 q0, q1, q2; vqdmlah.s16 q0, q1, r2; vqrdmladh.s32 q0, q1, q2; vqdmullb.s16 q0, q1, q2;
        vshl.s32 q0, q1, q2; vshl.i16 q0, q1, #3; vshl.s32 q0, r1; vrshl.s32 q0, q1, q2; vrshl.s32 q0, r1;
        vqshl.s8 q0, r2; vqrshl.s16 q0, q1, q2; vshr.s8 q0, q1, #3; vrshr.u16 q0, q1, #2; vsli.8 q0, q1, #2;
        vsri.16 q0, q1, #2; vshlc q0, r1, #4; vshllb.s8 q0, q1, #3; vmovlb.s8 q0, q1; vmovlt.u16 q0, q1;
        vmovnb.i32 q0, q1; vqmovnt.s32 q0, q1; vqmovunb.s16 q0, q1; vshrnb.i16 q0, q1, #2; vqrshrnt.s32 q0, q1, #5;
        vqrshrunb.s16 q0, q1, #3; vand q0, q1, q2; vorr q0, q1, q2; veor q0, q1, q2; vmvn q0, q1; vbic.i32 q0, #1;
        vmov.i32 q0, #0; vmvn.i32 q0, #1; vdup.8 q0, r1; vdup.32 q1, r2; vidup.u8 q0, r2, #1; viwdup.u8 q0, r2, r3, #4;
        vmax.s8 q0, q1, q2; vmina.s8 q0, q1; vabs.s8 q0, q1; vqneg.s8 q0, q1; vclz.i32 q0, q1; vrev64.8 q0, q1;
        vcadd.i8 q0, q1, q2, #90; vhcadd.s8 q0, q1, q2, #270; vadc.i32 q0, q1, q2; vbrsr.8 q0, q1, r2;
        vmov.32 q0[1], r2; vmov.u8 r3, q1[5]; vmov q0[2], q0[0], r1, r2; vmov r1, r2, q0[3], q0[1];
        vadd.f32 q0, q1, q2; vmul.f16 q0, q1, r2; vfma.f32 q0, q1, q2; vfmas.f32 q0, q1, r2; vcvt.s32.f32 q0, q1;
        vmaxnmv.f32 r1, q2; vcmul.f32 q0, q1, q2, #90; vcmla.f32 q0, q1, q2, #0; vadd.f32 q0, q1, r3;
        csel r0, r1, r2, eq; csinc r0, r1, r2, ne; cset r3, gt; lsll r0, r1, #4; asrl r2, r3, r4; sqrshr r0, r1;
        urshrl r2, r3, #5; uqshl r0, #4; vadd.f16 s0, s1, s2; vldr.16 s0, [r1]
    """,
}


@needs_tools
@pytest.mark.parametrize("core", RARE)
def test_encodings(core: str, tmp_path: Path) -> None:
    source, made = tmp_path / "rare.s", tmp_path / "rare.o"
    fpu = {"cortex-m4": ".fpu fpv4-sp-d16", "cortex-m33": ".fpu fpv5-sp-d16"}.get(core, "")
    # The assembler does not know this core by its name.
    flags = ["-march=armv8.1-m.main+mve.fp+fp.dp"] if core == "cortex-m55" else [f"-mcpu={core}"]
    lines = [word.strip() for word in RARE[core].split(";")]
    source.write_text(
        "\n".join([".syntax unified", ".thumb", fpu, "start:", *lines, "end:", ""]), encoding="utf-8"
    )
    subprocess.run([AS, *flags, "-mthumb", "-o", made, source], check=True, timeout=60)
    seen: Counter[Kind] = Counter()
    assert wrong(disassembly(made, *(("-m", "armv8.1-m.main") if core == "cortex-m55" else ())), seen) == []
    assert seen.total() == len(lines)


@pytest.mark.parametrize(
    ("word", "length"),
    [(0xBF08, 1), (0xBF04, 2), (0xBF0A, 3), (0xBF15, 4), (0xBF00, 0), (0xBF30, 0), (0x4770, 0)],
)
def test_how_many_instructions_an_it_makes_conditional(word: int, length: int) -> None:
    # IT EQ, ITT EQ, ITET EQ, ITETE NE, NOP, WFI, BX
    assert it_length(word) == length


@pytest.mark.parametrize(
    ("words", "results", "address", "updated", "indexed", "offset"),
    [
        ((0x5888, 0), (0,), (1, 2), (), True, 0),  # ldr r0, [r1, r2]
        ((0x6848, 0), (0,), (1,), (), False, 4),  # ldr r0, [r1, #4]
        ((0x7888, 0), (0,), (1,), (), False, 2),  # ldrb r0, [r1, #2]
        ((0x4801, 0), (0,), (15,), (), False, 4),  # ldr r0, [pc, #4]
        ((0x9802, 0), (0,), (13,), (), False, 8),  # ldr r0, [sp, #8]
        ((0xF851, 0x0022), (0,), (1, 2), (), True, 0),  # ldr.w r0, [r1, r2, lsl #2]
        ((0xF851, 0x0B04), (0,), (1,), (1,), False, 0),  # ldr.w r0, [r1], #4
        ((0xF851, 0x0D04), (0,), (1,), (1,), False, -4),  # ldr.w r0, [r1, #-4]!
        ((0xF8D1, 0x0190), (0,), (1,), (), False, 400),  # ldr.w r0, [r1, #400]
        ((0x5088, 0), (), (1, 2), (), True, 0),  # str r0, [r1, r2]
        ((0xED91, 0x0A01), (32,), (1,), (), False, 0),  # vldr s0, [r1, #4]
        ((0xECB1, 0x1F04), (32, 33, 34, 35), (1,), (1,), False, 0),  # vldrw.u32 q0, [r1], #16
    ],
)
def test_what_an_address_is_made_of(
    words: tuple[int, int],
    results: tuple[int, ...],
    address: tuple[int, ...],
    updated: tuple[int, ...],
    indexed: bool,
    offset: int,
) -> None:
    got: Instruction = decode(*words)
    assert (got.results, got.address, got.updated) == (results, address, updated)
    assert (got.indexed, got.offset) == (indexed, offset)


@pytest.mark.parametrize(
    ("words", "results", "operands", "shifted", "late"),
    [
        ((0x1888, 0), (0, FLAGS), (1, 2), (), ()),  # adds r0, r1, r2
        ((0x4288, 0), (FLAGS,), (0, 1), (), ()),  # cmp r0, r1
        ((0xEB01, 0x0042), (0,), (1,), (2,), ()),  # add.w r0, r1, r2, lsl #1
        ((0xFB01, 0x3002), (0,), (1, 2), (), (3,)),  # mla r0, r1, r2, r3
        ((0xFBC2, 0x0103), (0, 1), (2, 3), (), (0, 1)),  # smlal r0, r1, r2, r3
        ((0xFA41, 0xF082), (0,), (1,), (2,), ()),  # sxtab r0, r1, r2
        ((0x6008, 0), (), (), (), (0,)),  # str r0, [r1]
        ((0xD1FE, 0), (), (FLAGS,), (), ()),  # bne
        ((0xEEF0, 0x0E22), (0,), (*range(32, 36), *range(36, 40)), (), (0,)),  # vmladava.s16 r0, q0, q1
    ],
)
def test_what_is_read_where(
    words: tuple[int, int],
    results: tuple[int, ...],
    operands: tuple[int, ...],
    shifted: tuple[int, ...],
    late: tuple[int, ...],
) -> None:
    got = decode(*words)
    assert (got.results, got.operands, got.shifted, got.late) == (results, operands, shifted, late)
