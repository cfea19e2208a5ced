# SPDX-License-Identifier: Apache-2.0
"""The bound of the stack on every emulated core: never below what is measured; and where there is none, the reason."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest

import tinyet
from tests import small
from tests.emulated.test_riscv import BOARDS as OTHERS
from tests.ops.emulated import require_emulator
from tests.planned import check_planned
from tinyet.boards import Board, load_board
from tinyet.build.gcc import build_firmware
from tinyet.device import qemu
from tinyet.emit.project import Kind
from tinyet.errors import FitError
from tinyet.stack.bound import Stack

CASES = Path(__file__).with_name("stack_cases.c")
# In the order in which the program measures them; the last three have no bound.
NAMES = (
    *(
        "nothing",
        "small_array",
        "large_array",
        "two_ways",
        "tail",
        "many_arguments",
        "chosen",
        "floats",
        "wide",
    ),
    *("in_assembly", "copies", "recursive", "of_variable_size", "by_pointer"),
)
WITHOUT = {
    "recursive": ("down calls itself", "once calls itself (once → again → once)"),
    "of_variable_size": ("of_variable_size sets the stack pointer to what neither",),
    "by_pointer": ("by_pointer calls a function by a pointer",),
}
# One board for each core: M0, M3, M4, M7, M33, M55, RV32IMAC, Xtensa LX106.
CORES = ("nrf51_dk", "mps2_an385", "mps2_an386", "mps2_an500", "mps2_an505", "mps3_an547", *OTHERS)
SLACK = 16  # what is reserved and not written: for the stack pointer's alignment, and for registers on paths not taken

pytestmark = pytest.mark.emulated


def _measured(board: Board, elf: Path) -> dict[str, int]:
    """Bytes of stack that each case took."""
    link = qemu.start(board, elf)
    try:
        text = b""
        deadline = time.monotonic() + 30
        while b"done" not in text:
            text += link.read(deadline)
    finally:
        link.close()
    return dict(zip(NAMES, map(int, text.split()[:-1]), strict=True))


@pytest.mark.parametrize(
    ("name", "compiler", "flags"),
    [
        *((name, "gcc", "-O2") for name in CORES),
        *((name, "gcc", flags) for name in ("mps3_an547", "riscv32_virt") for flags in ("-O0", "-Os")),
        ("nrf51_dk", "gcc", "-Os"),
        ("mps2_an386", "clang", "-O2"),
        ("nrf51_dk", "clang", "-O2"),
    ],
)
def test_measured_never_exceeds_the_bound(name: str, compiler: str, flags: str, tmp_path: Path) -> None:
    require_emulator(name)
    board = load_board(name)
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    elf = build_firmware(board, [CASES], [], tmp_path, harness=False, flags=(flags,), compiler=compiler)
    measured, stack = _measured(board, elf), Stack(elf)
    bounds = {case: stack.function(case) for case in NAMES}
    for case in NAMES[: -len(WITHOUT)]:
        bound = bounds[case]
        assert bound.bytes is not None, bound.unknown
        assert measured[case] <= bound.bytes, (case, bound)
        if case != "chosen":
            assert bound.bytes <= measured[case] + SLACK, (case, bound)
        assert bound.bytes == sum(frame.bytes for frame in bound.chain)
    # Of its ways the program has not gone the deepest.
    assert {"chosen", "two_ways"} <= {frame.function for frame in bounds["chosen"].chain}
    for case, reasons in WITHOUT.items():
        assert bounds[case].bytes is None, case
        for reason in reasons:
            assert any(found.startswith(reason) for found in bounds[case].unknown), bounds[case].unknown
    assert stack.firmware.said.startswith("no bound: measured calls a function by a pointer")


_ARRAY = "  volatile uint8_t mine[{bytes}];\n  mine[sizeof mine - 1u] = mine[0];\n  fill_inputs();"


@pytest.mark.parametrize(("kind", "name"), [("cmake", "nrf51_dk"), ("platformio", "mps2_an386")])
def test_a_build_fails_whose_stack_may_not_suffice(kind: Kind, name: str, tmp_path: Path) -> None:
    """As much of an array in the user's main() as is left of the board's stack, and eight bytes more."""
    require_emulator(name)
    if kind == "cmake" and shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    project = tinyet.generate(small.program(), name, tmp_path / "project", kind=kind)
    size = project.build()
    stack = project.stack
    assert stack.inference.bytes is not None
    assert stack.firmware.bytes is not None
    check_planned(project, size)
    names = [frame.function for frame in stack.firmware.chain]
    assert names[0] == "Reset_Handler"
    assert "main" in names
    main = project.path / "src" / "main.c"
    text = main.read_text()
    left = size.stack - stack.firmware.bytes
    for more, fits in ((-8, True), (8, False)):
        main.write_text(text.replace("  fill_inputs();", _ARRAY.format(bytes=left + more), 1))
        if fits:
            project.build()
            continue
        with pytest.raises(FitError) as caught:
            project.build()
        assert re.search(
            rf"stack: the application may take \d+ bytes, {name} has {size.stack};", caught.value.what
        )
        assert re.search(r"- \d+ bytes: main", caught.value.what)
        assert "--stack BYTES" in str(caught.value.hint)
    main.write_text(text)
    project.build()
    result = project.validate(small.images(2), on="qemu", sqnr_samples=0)
    assert result.stack_bound is not None
    assert result.stack_bytes is not None
    assert result.stack_bound.bytes is not None
    assert 0 < result.stack_bytes <= result.stack_bound.bytes
    assert result.ram_with_stack_bytes == size.ram + stack.firmware.bytes
    record = result.to_json()
    assert record["stack_bound"] == result.stack_bound.to_json()
