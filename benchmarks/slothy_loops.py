# SPDX-License-Identifier: Apache-2.0
"""Inner loops for Helium beside the best order that SLOTHY, a superoptimizer, finds for them.

    VENV/bin/python benchmarks/slothy_loops.py [--only LOOP ...] [--seconds 30] [--results NAME]

VENV: a virtual environment with SLOTHY (`pip install slothy==0.2.2`), which tinyet itself does not need. For each loop
and core a line: instructions of a turn; cycles of a turn by tinyet's model; by SLOTHY's in the printed order; by
SLOTHY's in the best order that it finds within the time of a search, with other vector registers and loads for the next
turn where these help. The compare and branch at a loop's end are not in it, since SLOTHY has none. Of a loop that it
cannot read, the instructions that it lacks are named. Searches for long loops take long: a turn of several tiles is
beside so many times the best of a loop over one.

SLOTHY 0.2.2 lacks instructions; here they are added, with the cycles of similar ones of its own: VMLADAVA those of
VMLALDAVA, with a sum in an even register; LDM and STM have tinyet's cycles, in which nothing else is issued.
"""

from __future__ import annotations

import argparse
import logging
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import record
from tinyet.tiles.helium import Sums
from tinyet.tiles.helium_depthwise import Channels
from tinyet.tiles.helium_linear import Products
from tinyet.timing.instruction import Instruction
from tinyet.timing.pipelines import PIPELINES
from tinyet.timing.thumb import decode, is_wide

CORES = {"cortex-m55": "cortex_m55r1", "cortex-m85": "cortex_m85r1"}
"""{core: SLOTHY's module}."""


@dataclass(frozen=True)
class Loop:
    """turn: as it is printed, of so many tiles; tile: a turn of one, where there are several."""

    turn: Sequence[str]
    tiles: int = 1
    tile: Sequence[str] = ()


def depthwise(outputs: int, tiles: int, *, narrow: bool) -> Loop:
    turns = [Channels(outputs, 1, 24, True, True, narrow, False, False, tiles=n).turn for n in (tiles, 1)]
    return Loop(turns[0], tiles, turns[1])


LOOPS = {
    "pointwise, 16 inputs": Loop(Sums(1, 1, 1, 0, 0, 16).turn),
    "pointwise, 32 inputs": Loop(Sums(1, 1, 2, 0, 0, 32).turn),
    "convolution 3x3, held": Loop(Sums(3, 3, 1, 320, 16, 32, held=True).turn),
    "linear, 16 inputs": Loop(Products(1).turn),
    "depthwise 3x3, five tiles": depthwise(4, 5, narrow=True),
    "depthwise 3x3, stride 2, five tiles": depthwise(2, 5, narrow=False),
}
LACKED: dict[str, tuple[str, str, dict[str, list[str]]]] = {
    "vmladava": (
        "vmlaldava",
        "vmladava.<dt> <Rda>, <Qn>, <Qm>",
        {"inputs": ["Qn", "Qm"], "in_outs": ["Rda"]},
    ),
    "vqrdmlash": (
        "vqrdmlah",
        "vqrdmlash.<dt> <Qda>, <Qn>, <Rm>",
        {"inputs": ["Qn", "Rm"], "in_outs": ["Qda"]},
    ),
    "vqmovnb": ("vshrnb", "vqmovnb.<dt> <Qd>, <Qm>", {"inputs": ["Qm"], "in_outs": ["Qd"]}),
    "vqmovnt": ("vshrnt", "vqmovnt.<dt> <Qd>, <Qm>", {"inputs": ["Qm"], "in_outs": ["Qd"]}),
    "vstrb_scatter": ("vstrw_scatter", "vstrb.<dt> <Qd>, [<Rn>, <Qm>]", {"inputs": ["Qd", "Rn", "Qm"]}),
}
"""{instruction that SLOTHY lacks: (that of its own whose cycles it has, pattern, operands)}."""
SEVERAL = {
    "ldm_eight": (8, False),
    "ldm_eight_moves": (8, True),
    "ldm_four_moves": (4, True),
    "stm_eight": (8, False),
    "stm_eight_moves": (8, True),
}
"""{LDM or STM: (registers, whether its base moves)}."""
_END = ("cmp", "bne")
_EVEN = tuple(f"r{n}" for n in range(0, 15, 2))
_REGISTERS = re.compile(r"\b\w+\b")
_STALLS = 64
"""Of a turn, with which SLOTHY begins to search."""
_PATIENCE = 200
"""Seconds for an order that is given."""


def decoded(lines: Sequence[str]) -> list[Instruction]:
    """What the assembler makes of straight code."""
    with tempfile.TemporaryDirectory() as folder:
        code, binary = Path(folder, "loop.o"), Path(folder, "loop.bin")
        text = "\n".join((".syntax unified", ".thumb", *lines, ""))
        gcc = ("arm-none-eabi-gcc", "-mcpu=cortex-m55", "-mfloat-abi=hard", "-mthumb")
        command = (*gcc, "-x", "assembler", "-c", "-", "-o", str(code))
        subprocess.run(command, input=text, text=True, check=True)
        subprocess.run(("arm-none-eabi-objcopy", "-O", "binary", str(code), str(binary)), check=True)
        halves = [half for (half,) in struct.iter_unpack("<H", binary.read_bytes())]
    found, at = [], 0
    while at < len(halves):
        wide = is_wide(halves[at])
        found.append(decode(*halves[at : at + 1 + wide]))
        at += 1 + wide
    return found


def declare(arch: Any, core: str, target: Any) -> None:
    """Add what LACKED and SEVERAL have to SLOTHY's instructions of a core."""

    def made(name: str, restricted: str, allowed: Sequence[list[str] | None], **fields: object) -> Any:
        def make(cls: Any, text: object) -> Any:
            found = arch.MVEInstruction.build(cls, text)
            if allowed:
                setattr(found, restricted, list(allowed))
            return found

        return type(name, (arch.MVEInstruction,), {**fields, "make": classmethod(make)})

    if not hasattr(arch, "vmladava"):
        for name, (_, pattern, operands) in LACKED.items():
            allowed = [list(_EVEN)] if "Rda" in operands.get("in_outs", ()) else []
            fields: dict[str, Any] = {"pattern": pattern, **operands}
            setattr(arch, name, made(name, "args_in_out_restrictions", allowed, **fields))
        for name, (count, moves) in SEVERAL.items():
            registers = [f"R{letter}" for letter in "abcdefgh"[:count]]
            kind = name[:3]
            listed = ", ".join(f"<{register}>" for register in registers)
            pattern = f"{kind} <Rn>{'!' if moves else ''}, {{{listed}}}"
            bases = {"in_outs" if moves else "inputs": ["Rn"]}
            fixed = [[register] for register in _EVEN[:count]]
            if kind == "stm":
                inputs = [*bases.pop("inputs", []), *registers]
                restrictions: list[list[str] | None] = [*([] if moves else [None]), *fixed]
                each = made(
                    name, "args_in_restrictions", restrictions, pattern=pattern, inputs=inputs, **bases
                )
            else:
                each = made(name, "args_out_restrictions", fixed, pattern=pattern, outputs=registers, **bases)
            setattr(arch, name, each)
        arch.Instruction.all_subclass_leaves = arch.all_subclass_leaves(arch.Instruction)

    for table in (target.execution_units, target.inverse_throughput, target.default_latencies):
        for name, (like, _, _) in LACKED.items():
            known = getattr(arch, like)
            table[getattr(arch, name)] = next(
                v for k, v in table.items() if k is known or (isinstance(k, tuple) and known in k)
            )
    timing, units = PIPELINES[core].timings["load_multiple"], target.ExecutionUnit
    for name, (count, _) in SEVERAL.items():
        each, cycles = getattr(arch, name), -(-count // timing.words)
        unit = units.LOAD if name.startswith("ldm") else units.STORE
        target.execution_units[each] = [[unit, units.SCALAR, units.VEC_INT, units.VEC_MUL]]
        target.inverse_throughput[each] = cycles
        target.default_latencies[each] = timing.result + cycles - 1


def straight(turn: Sequence[str]) -> list[str]:
    """Without the end of the loop."""
    return [line for line in turn if not line.startswith(_END)]


def spelled(line: str) -> str:
    """As SLOTHY reads it, which knows of memory what is said."""
    tag = ""
    if "sp" in _REGISTERS.findall(line):
        tag = f" // @slothy:{'writes' if line.startswith('stm') else 'reads'}=stack"
    return line.replace(".w", "").replace("lr", "r14").replace("sp", "r13") + tag


def lacking(arch: Any, lines: Sequence[str]) -> list[str]:
    """Mnemonics of the lines that SLOTHY cannot read."""
    from slothy.helper import SourceLine
    from slothy.targets.exceptions import ParsingException

    found: list[str] = []
    for line in lines:
        try:
            arch.Instruction.parser(SourceLine(line))
        except ParsingException:
            found.append(line.split()[0])
    return list(dict.fromkeys(found))


def cycles_by_slothy(arch: Any, target: Any, lines: Sequence[str], seconds: int, kept: bool) -> int | None:
    """Of a turn, in the order of the lines or in the best one; None where SLOTHY finds none in time."""
    from slothy import Slothy
    from slothy.core.heuristics import Heuristics
    from slothy.helper import SourceLine

    log = logging.getLogger("slothy")
    config = Slothy(arch, target, logger=log).config
    config.variable_size = True
    # What a loop does not name is in use around it.
    named = {name for line in lines for name in _REGISTERS.findall(line)}
    config.reserved_regs = ["r13", *(f"r{n}" for n in range(15) if n != 13 and f"r{n}" not in named)]
    config.inputs_are_outputs = True
    config.selfcheck = False
    config.timeout = seconds
    config.constraints.stalls_first_attempt = _STALLS
    config.constraints.stalls_maximum_attempt = 2 * _STALLS
    config.sw_pipelining.enabled = True
    if kept:
        config.constraints.allow_reordering = config.constraints.allow_renaming = False
        config.sw_pipelining.allow_pre = config.sw_pipelining.allow_post = False
    found = Heuristics.optimize_binsearch(SourceLine.read_multiline("\n".join(lines)), log, config)
    return int(found.cycles) if found.success else None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=LOOPS, default=list(LOOPS), metavar="LOOP")
    parser.add_argument("--seconds", type=int, default=30, help="of a search (30)")
    record.add_option(parser)
    options = parser.parse_args()
    try:
        from importlib import import_module

        arch = import_module("slothy.targets.arm_v81m.arch_v81m")
        targets = {core: import_module(f"slothy.targets.arm_v81m.{name}") for core, name in CORES.items()}
    except ImportError:
        sys.exit("no SLOTHY here: run this by the Python of a virtual environment with slothy==0.2.2")
    logging.disable(logging.CRITICAL)
    figures: list[dict[str, object]] = []
    for core, target in targets.items():
        declare(arch, core, target)
        for name in options.only:
            loop = LOOPS[name]
            lines = straight(loop.turn)
            code = decoded(lines)
            row: dict[str, object] = {"core": core, "loop": name, "instructions": len(lines)}
            row["cycles"] = PIPELINES[core].straight(code, code)
            texts = list(map(spelled, lines))
            if missing := lacking(arch, texts):
                row["lacking"] = missing
            else:
                row["in_order"] = cycles_by_slothy(arch, target, texts, _PATIENCE, kept=True)
                searched = list(map(spelled, straight(loop.tile))) if loop.tile else texts
                best = cycles_by_slothy(arch, target, searched, options.seconds, kept=False)
                row["best"] = None if best is None else best * loop.tiles
            figures.append(row)
            print(*(f"{key} {value}" for key, value in row.items()), sep=", ", flush=True)
    record.write(options.results, figures)


if __name__ == "__main__":
    main()
