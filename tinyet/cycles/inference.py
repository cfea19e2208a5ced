# SPDX-License-Identifier: Apache-2.0
"""The estimate of a firmware's inference: everything that it takes, from the board to the figures."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tinyet.boards import Board, Flash, Memory, load_board
from tinyet.cycles.code import read_code
from tinyet.cycles.estimate import CycleEstimate, Estimator
from tinyet.cycles.plugin import build_plugin, core_of
from tinyet.cycles.profile import Accesses, Profiler, Run
from tinyet.timing.cores import ENDS
from tinyet.timing.model import Model
from tinyet.timing.work import Work, total

# Boards that run the code of a core in QEMU where the core's own board has no machine there: those with the largest
# memories whose core knows all of its instructions.
_STAND_INS: Mapping[str, str] = {
    "cortex-m0": "mps2_an385",
    "cortex-m0plus": "mps2_an385",
    "cortex-m3": "mps2_an385",
    "cortex-m4": "mps2_an386",
    "cortex-m7": "mps2_an500",
    "cortex-m33": "mps2_an505",
    "cortex-m55": "mps3_an547",
    "rv32imc": "riscv32_virt",
    "rv32imac": "riscv32_virt",
    "xtensa-lx106": "xtensa_lx60",
}


@dataclass(frozen=True)
class CycleModel:
    """The model of an estimate for one board.

    machine: the board that QEMU emulates for it, the board itself where QEMU has it. plugin: for that QEMU.
    """

    board: Board
    core: Model
    machine: Board
    plugin: Path

    @property
    def stands_in(self) -> bool:
        """Whether the machine is another board, for which the firmware must be compiled."""
        return self.machine is not self.board

    def estimate(
        self,
        elf: Path,
        samples: Iterable[Sequence[bytes]],
        where: Path,
        *,
        timeout: float,
        order: Sequence[int] | None = None,
        memories: Sequence[Memory] = (),
    ) -> CycleEstimate:
        """Run samples, at least one, and estimate the cycles of an inference.

        elf: the harness, for `machine`. samples: bytes of each input. where: a directory of the caller's, for files.
        timeout: seconds that a run may take. order: the layer of each run of a layer, where some run several times.
        memories: of `machine`, whose accesses are counted, too; that takes longer.
        Raises EmulatorError, ToolchainError.
        """
        timing = self.board.flash_timing
        flash = timing if timing is not None and timing.wait_states else None
        code = read_code(elf)
        with Profiler(
            self.machine, elf, code, self.plugin, where, flash, timeout=timeout, memories=memories
        ) as profiler:
            first, *others = samples
            if flash is not None:
                profiler.run(first)  # the buffers hold what an inference leaves there, not nothing
            runs = [profiler.run(sample) for sample in (first, *others)]

        def mean(core: Model) -> tuple[tuple[Work, ...], Work]:
            return Estimator(core, code, flash).mean(profiler.empty, runs, order)

        layers, between = mean(self.core)
        ends = ENDS.get(self.board.core)
        if ends is not None:
            least, most = (total((*parts, rest)).cycles for parts, rest in map(mean, ends))
        return CycleEstimate(
            self.core.title,
            self.core.source,
            (*self.core.assumed, *_other_code(self.board), flash_sentence(timing)),
            self.machine.name,
            self.board.clock_hz,
            layers,
            between,
            None if ends is None else (least, most),
            {memory.name: _accesses(runs, number) for number, memory in enumerate(memories)},
        )


def cycle_model(board: Board, where: Path) -> CycleModel:
    """Find out how a board's cycles can be estimated, and build the plugin in the directory `where`.

    Raises UsageError: its core has no model, or QEMU no plugins; MissingTool, ToolchainError.
    """
    core = core_of(board)
    machine = board
    if board.qemu is None:
        # With the board's own target, the compiler makes the code that the board would run.
        machine = dataclasses.replace(load_board(_STAND_INS[board.cpu]), target=board.target)
    return CycleModel(board, core, machine, build_plugin(machine, where))


def _accesses(runs: Sequence[Run], memory: int) -> Accesses:
    """Of the layers of a run, a mean over all."""
    each = [layer.accesses[memory] for run in runs for layer in run.layers if layer.accesses]
    sums = (sum(getattr(one, field.name) for one in each) for field in dataclasses.fields(Accesses))
    return Accesses(*(round(n / len(runs)) for n in sums))


def _other_code(board: Board) -> tuple[str, ...]:
    if board.core == board.cpu:
        return ()
    return (f"the code is that of the {board.cpu}, which the compiler knows, and not made for this core",)


def _unconfirmed(flash: Flash) -> str:
    return f"which is what is known of the family {flash.family}, not confirmed for this board"


def flash_sentence(flash: Flash | None) -> str:
    """The assumption about a board's flash, as a sentence."""
    if flash is None:
        return "the board's file does not say how long its flash lets the core wait: not at all"
    if flash.wait_states == 0:
        said = _unconfirmed(flash) if flash.family else "as the board's file says"
        return f"the flash lets the core wait for nothing, {said}"
    if flash.shared:
        kept = f"{flash.code_lines} of code and data"
    else:
        kept = f"{flash.code_lines} of code or {flash.data_lines} of data"
    ahead = (
        ", less for the line behind the one that is executed, which is read ahead" if flash.prefetch else ""
    )
    whose = f"; {_unconfirmed(flash)}" if flash.family else ""
    return (
        f"the flash takes {flash.wait_states} cycles longer for each line of {flash.line_bytes} bytes that is not "
        f"among the last {kept}{ahead}{whose}"
    )
