# SPDX-License-Identifier: Apache-2.0
"""A model's self-test: it passes on what was generated, and not on what a bit of flash has left of it."""

from __future__ import annotations

import random
import shutil
import subprocess
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests import small
from tests.emulated.test_sleep import STRICT, following
from tests.emulated.test_states import remembering
from tests.ops.cases import write_files
from tests.ops.emulated import require_emulator
from tinyet.auditing.audit import audit
from tinyet.auditing.flash import Flash
from tinyet.auditing.owners import Owner
from tinyet.boards.cpus import HOST
from tinyet.data import demonstration
from tinyet.deployment import Deployment, deploy
from tinyet.device.device import open_device
from tinyet.emit.model import model_files
from tinyet.emit.selftest import Golden
from tinyet.emit.symbols import symbols_of
from tinyet.errors import EmulatorError
from tinyet.files.identity import Identity, identities, read_identity
from tinyet.planning.objective import Objective
from tinyet.program import Program
from tinyet.project import Project
from tinyet.projects.one import generate

OK, DAMAGED = 0, -6
MAIN = """
#include <stdio.h>

#include "net.h"

#if @CONTEXT@
static uint8_t arena[NET_ARENA_BYTES] TINYET_ALIGNED(NET_ARENA_ALIGN);
static net_context net;
#define NET &net
#else
#define NET
#endif

int main(void) {
#if @CONTEXT@
  (void)net_init(&net, arena);
#endif
  tinyet_identity is;
  net_identity(&is);
  printf("%d %d %s %s\\n", (int)net_check_constants(), (int)net_selftest(NET), is.name, is.build);
  printf("%d\\n", (int)net_selftest(NET));
  return 0;
}
"""


@dataclass(frozen=True)
class Built:
    executable: Path
    deployment: Deployment


def built(program: Program, where: Path, *, context: bool, rows: bool, wrong: bool = False) -> Built:
    """A program that checks itself twice; wrong: against outputs that are not its own."""
    deployment = deploy(program.graph, HOST, objective=Objective(input_rows=rows))
    inputs = demonstration(program.inputs, None, None)
    outputs = program.outputs_for(inputs)
    if wrong:
        outputs = [np.roll(output, 1) for output in outputs]
    golden = Golden(tuple(inputs), tuple(outputs))
    files = model_files(
        deployment, "net", ["test"], program_hash=program.hash, context=context, golden=golden
    )
    write_files(where, files | {"main.c": MAIN.replace("@CONTEXT@", str(int(context)))})
    sources = sorted(where.glob("*.c"))
    flags = [*STRICT, "-ffp-contract=off", '-DTINYET_BUILD_ID="1.4.2+8f3c"', f"-I{where}"]
    subprocess.run(["gcc", *flags, *sources, "-lm", "-o", where / "main"], check=True)
    return Built(where / "main", deployment)


def printed(executable: Path) -> str:
    return subprocess.run([executable], capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
@pytest.mark.parametrize(
    ("program", "context", "rows"),
    [(small.program(), False, False), (remembering(), True, False), (following(), True, True)],
    ids=lambda value: value.name if isinstance(value, Program) else "",
)
def test_on_the_host(program: Program, context: bool, rows: bool, tmp_path: Path) -> None:
    """The second time like the first, with states, too. Each array of the file is looked at: a bit of any of them is
    found."""
    made = built(program, tmp_path, context=context, rows=rows)
    assert printed(made.executable) == "0 0 net 1.4.2+8f3c\n0\n"
    flash = Flash(made.executable)
    names = symbols_of(made.deployment, "net").arrays
    rng = random.Random(program.name)
    data = made.executable.read_bytes()
    spoilt = made.executable.with_name("spoilt")
    seen = 0
    for name in names:
        for symbol in flash.objects(name):
            at = rng.randrange(symbol.start, symbol.end)
            part = flash.part_at(at)
            assert part is not None
            place = data.find(part.data) + at - part.start
            spoilt.write_bytes(
                data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]
            )
            spoilt.chmod(0o755)
            assert printed(spoilt).startswith(f"{DAMAGED} {DAMAGED} "), name
            seen += 1
    assert seen == len(names) > 0


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_other_outputs_are_found(tmp_path: Path) -> None:
    made = built(small.program(), tmp_path, context=False, rows=False, wrong=True)
    assert printed(made.executable) == f"{OK} {DAMAGED} net 1.4.2+8f3c\n{DAMAGED}\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    program, where = small.program(size=8, channels=8), tmp_path_factory.mktemp("selftest")
    return generate(
        program, "mps2_an386", where / "p", kind="cmake", name="small", selftest=True, context=True
    )


def test_a_flipped_bit_is_found_at_start(project: Project, tmp_path: Path) -> None:
    """On an emulated board, over the harness; the run after it is exact."""
    require_emulator("mps2_an386")
    elf = project.firmware("qemu", tmp_path, compile_anew=True)
    inputs = demonstration(project.program.inputs, None, None)
    wanted = [output.tobytes() for output in project.program.outputs_for(inputs)]
    with open_device(project.board, elf, "qemu") as device:
        assert device.selftest() == (OK, OK)
        found = device.identity()
        assert list(device.run([data.tobytes() for data in inputs]).outputs) == wanted
    assert identities(elf.read_bytes()) == (found,)
    constants = [a.data.tobytes() for a in symbols_of(project.deployment, "small").arrays.values()]
    assert found == Identity(
        "small",
        str(project.manifest["tinyet"]),
        project.program.hash,
        found.build,
        sum(map(len, constants)),
        zlib.crc32(b"".join(constants)),
    )
    arrays = [span for span in audit(project, elf).spans if span.owner is Owner.WEIGHTS]
    weights = next(span for span in arrays if span.name == "conv_weights")
    data = bytearray(elf.read_bytes())
    part = Flash(elf).part_at(weights.start)
    assert part is not None
    data[data.find(part.data) + weights.start + 20 - part.start] ^= 0x04
    spoilt = tmp_path / "spoilt.elf"
    spoilt.write_bytes(data)
    with open_device(project.board, spoilt, "qemu") as device:
        assert device.selftest() == (DAMAGED, DAMAGED)


@pytest.mark.parametrize("more", [(), ("-flto",)], ids=["plain", "lto"])
def test_the_identity_stays_though_nobody_reads_it(project: Project, more: tuple[str, ...]) -> None:
    """And costs the run no instruction: one relocation tells the linker."""
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("arm-none-eabi-gcc is not installed")
    source, where = project.path / "lib/small/src", project.path.parent
    (where / "main.c").write_text(
        '#include "small.h"\nsmall_context net;\nint main(void) { return (int)small_run(&net); }\n'
    )
    elf = where / f"main{len(more)}.elf"
    flags = ["-mcpu=cortex-m4", "-mthumb", "-O2", "-ffunction-sections", "-fdata-sections", *more]
    link: list[str | Path] = ["-Wl,--gc-sections", "--specs=nosys.specs", f"-I{source}", "-o", elf]
    files = [*source.glob("*.c"), where / "main.c"]
    subprocess.run(["arm-none-eabi-gcc", *flags, *files, *link], check=True, capture_output=True)
    (found,) = identities(elf.read_bytes())
    assert (found.name, found.hash) == ("small", project.program.hash)
    assert not Flash(elf).objects("small_golden_0")  # it is the identity alone that stays


def test_what_is_no_identity() -> None:
    assert read_identity(b"TINYET\xb5\x01" + bytes(120)) is None
    assert read_identity(b"") is None
    assert identities(b"TINYET\xb5\x01 cut off") == ()


def test_a_model_without_one_says_so(tmp_path: Path) -> None:
    require_emulator("mps2_an386")
    plain = generate(small.program(), "mps2_an386", tmp_path / "p", kind="cmake", name="small")
    elf = plain.firmware("qemu", tmp_path, compile_anew=True)
    with open_device(plain.board, elf, "qemu") as device:
        with pytest.raises(EmulatorError, match="does not know command 5"):
            device.identity()
        with pytest.raises(EmulatorError, match="does not know command 6"):
            device.selftest()
