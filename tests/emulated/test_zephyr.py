# SPDX-License-Identifier: Apache-2.0
"""Generated Zephyr projects, built by CMake against a stand-in for Zephyr (tests/zephyr_standin) with Zephyr's own
warnings, each an error, and run in QEMU."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests import small, tiny_model
from tests.golden import programs
from tinyet import assets
from tinyet.boards import load_board
from tinyet.build.builder import HARNESS
from tinyet.build.process import run
from tinyet.build.tree import write_project
from tinyet.data import make_samples, pattern_inputs
from tinyet.delegates import CMSIS_NN
from tinyet.device.device import DeviceFault, open_device
from tinyet.device.protocol import CounterKind
from tinyet.emit.kinds import console
from tinyet.emit.kinds.zephyr import platformio_files
from tinyet.emit.project import project_files
from tinyet.errors import ToolchainError
from tinyet.program import Program
from tinyet.project import Project
from tinyet.projects.one import generate
from tinyet.validation import ValidationResult, validate

for _module in ("kconfiglib", "devicetree", "pykwalify", "yaml"):
    pytest.importorskip(_module, reason=f"{_module} is not installed")

import yaml  # noqa: E402

from tests import zephyr_standin  # noqa: E402

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed"),
    pytest.mark.skipif(
        shutil.which("arm-none-eabi-gcc") is None, reason="arm-none-eabi-gcc is not installed"
    ),
    pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="qemu-system-arm is not installed"),
]

# int8; int8 and float32; several outputs.
PROGRAMS: dict[str, Callable[[], Program]] = {
    "small": small.program,
    "mixed": programs.mixed,
    "branches": programs.branches,
}


def _project(tmp_path: Path, program: Program, delegates: str | None = None) -> Project:
    board = zephyr_standin.own_board(tmp_path)
    return generate(program, board, tmp_path / "p", kind="zephyr", delegates=delegates)


def _console(elf: Path, seconds: float = 30.0) -> list[str]:
    """What a firmware prints until it says that it is done, or for so long."""
    command = [
        "qemu-system-arm",
        "-M",
        "mps2-an386",
        "-display",
        "none",
        "-monitor",
        "none",
        "-serial",
        "stdio",
    ]
    qemu = subprocess.Popen([*command, "-kernel", str(elf)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    watchdog = threading.Timer(seconds, qemu.kill)
    watchdog.start()
    assert qemu.stdout is not None
    lines = []
    with qemu:
        for line in qemu.stdout:
            assert line.endswith(b"\r\n")
            lines.append(line.decode("ascii").rstrip())
            if lines[-1] == "done":
                break
        qemu.kill()
    watchdog.cancel()
    return lines


def _ordered_match(regexes: list[str], lines: list[str]) -> bool:
    """Twister's console harness of the type multi_line, ordered: each expression in some line, in this order."""
    rest = iter(lines)
    return all(any(re.search(regex, line) for line in rest) for regex in regexes)


def _validate(project: Project, elf: Path, count: int) -> ValidationResult:
    program = project.program
    drawn = programs.samples(program, count)
    columns = [x.reshape(count, *tensor.shape[1:]) for x, tensor in zip(drawn, program.inputs, strict=True)]
    with open_device(project.board, elf, "qemu") as device:
        return validate(
            program,
            project.deployment,
            device,
            make_samples(program.inputs, columns, None),
            on="qemu",
            board=project.board.name,
            sizes=project.sizes,
        )


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_application_prints_what_the_reference_computes(name: str, tmp_path: Path) -> None:
    program = PROGRAMS[name]()
    project = _project(tmp_path, program)
    lines = _console(zephyr_standin.build(project.path, tmp_path / "b"))
    values = program.values(pattern_inputs(program.inputs))
    for index, tensor in enumerate(program.outputs):
        (line,) = [line for line in lines if line.startswith(f"output {index}: ")]
        words = line.partition(": ")[2].removesuffix(" ...").split()
        wanted = values[tensor].ravel()[:16]
        if wanted.dtype.kind == "f":
            assert words == [console.real(x) for x in wanted]
            assert np.allclose([float(word) for word in words], wanted, atol=1e-4, rtol=1e-3)
        else:
            assert words == [str(x) for x in wanted]
    # What twister is told to expect is this very output, and not just any.
    sample = yaml.safe_load((project.path / "sample.yaml").read_text())
    config = sample["tests"][f"sample.tinyet.{project.name}"]["harness_config"]
    assert (config["type"], config["ordered"]) == ("multi_line", True)
    assert len(config["regex"]) == 2 + 2 * len(program.outputs)
    assert _ordered_match(config["regex"], lines)
    for at, line in enumerate(lines[1:], start=1):
        damaged = re.sub(r"\d(?=\D*$)", lambda digit: str(9 - int(digit[0])), line)
        assert damaged != line or line == "done"
        if line != "done":
            assert not _ordered_match(config["regex"], [*lines[:at], damaged, *lines[at + 1 :]]), line


def test_a_thread_whose_stack_is_the_bound(tmp_path: Path) -> None:
    """A model whose memory is the caller's runs in a thread of its own. The stand-in stops where something is written
    below that thread's stack."""
    program = small.program()
    board = zephyr_standin.own_board(tmp_path)
    project = generate(program, board, tmp_path / "p", kind="zephyr", context=True, max_step=2000)
    stated = project.room.stack.inference
    header = project.path / str(project.manifest["model_dir"]) / "small.h"
    assert f"#define SMALL_STACK_BYTES {stated}u" in header.read_text()
    main = project.path / "src" / "main.c"
    assert "K_THREAD_STACK_DEFINE(model_stack, SMALL_STACK_BYTES + OWN_STACK_BYTES)" in main.read_text()
    lines = _console(zephyr_standin.build(project.path, tmp_path / "b"))
    values = program.values(pattern_inputs(program.inputs))
    wanted = " ".join(str(x) for x in values[program.outputs[0]].ravel()[:16])
    assert (lines[1], lines[-1]) == (f"output 0: {wanted}", "done")
    # With less than the bound it does not come that far: the guard below the stack is written.
    main.write_text(main.read_text().replace("SMALL_STACK_BYTES + OWN_STACK_BYTES", "64"))
    assert "done" not in _console(zephyr_standin.build(project.path, tmp_path / "b"), seconds=2.0)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_harness_is_bit_exact(name: str, tmp_path: Path) -> None:
    project = _project(tmp_path, PROGRAMS[name]())
    elf = zephyr_standin.build(project.path, tmp_path / "b", conf=["harness.conf"])
    result = _validate(project, elf, 5)
    assert result.bit_exact
    assert result.samples == 5
    # A timer at the core's clock, under an emulator that counts instructions.
    assert result.count_unit == "instructions"
    assert result.count is not None
    assert result.count > 100
    assert result.stack_bytes is not None
    assert 0 < result.stack_bytes < project.board.stack_bytes
    assert [bool(layer.count) for layer in result.layers] == [True] * len(project.deployment.steps)


@pytest.mark.skipif(
    assets.cmsis_nn_dir() is None, reason=f"the sources of CMSIS-NN {assets.CMSIS_NN_VERSION} are not here"
)
def test_cmsis_nn_is_a_part_of_the_module(tmp_path: Path) -> None:
    board = zephyr_standin.own_board(tmp_path)
    project = generate(small.program(), board, tmp_path / "p", kind="zephyr", delegates=(CMSIS_NN,))
    assert "CMSIS-NN, Apache-2.0" in (project.path / "README.md").read_text()
    elf = zephyr_standin.build(project.path, tmp_path / "b", conf=["harness.conf"])
    result = _validate(project, elf, 2)
    assert result.bit_exact
    assert [layer.kernel for layer in result.layers] == [
        "arm_convolve_s8",
        "arm_max_pool_s8",
        "arm_fully_connected_s8",
    ]


@pytest.mark.parametrize(
    ("options", "kind", "hz"),
    [
        ({"CORTEX_M_SYSTICK": "n"}, CounterKind.NANOSECONDS, 1_000_000_000),
        ({"TIMER_HAS_64BIT_CYCLE_COUNTER": "y"}, CounterKind.CORE_CLOCK, 25_000_000),
        # QEMU's unit stands still, but this is what a real board has.
        ({"QEMU_TARGET": "n", "TIMER_HAS_64BIT_CYCLE_COUNTER": "y"}, CounterKind.CORE_CLOCK, 25_000_000),
    ],
)
def test_the_counter_is_the_best_that_a_board_has(
    options: dict[str, str], kind: CounterKind, hz: int, tmp_path: Path
) -> None:
    project = _project(tmp_path, small.program())
    (project.path / "other.conf").write_text(
        "".join(f"CONFIG_{key}={value}\n" for key, value in options.items())
    )
    elf = zephyr_standin.build(project.path, tmp_path / "b", conf=["harness.conf", "other.conf"])
    with open_device(project.board, elf, "qemu") as device:
        info = device.info()
        assert (info.counter_kind, info.counter_hz) == (kind, hz)
        raw = [x.tobytes() for x in pattern_inputs(project.program.inputs)]
        (output,) = device.run(raw).outputs
    wanted = project.program.values(pattern_inputs(project.program.inputs))[project.program.outputs[0]]
    assert output == wanted.tobytes()
    config = (tmp_path / "b" / "zephyr" / ".config").read_text()
    assert ("CONFIG_TINYET_HARNESS_COUNTER_DWT=y" in config) == ("QEMU_TARGET" in options)


def test_a_fault_is_told_with_its_place(tmp_path: Path) -> None:
    sources = tiny_model.sources()
    sources["tiny.c"] = sources["tiny.c"].replace(
        "float sum = 0.0f;", '__asm volatile("udf #0"); float sum = 0.0f;'
    )
    board = load_board(zephyr_standin.own_board(tmp_path))
    write_project(tmp_path / "p", project_files("zephyr", board, tiny_model.FACTS, sources))
    elf = zephyr_standin.build(tmp_path / "p", tmp_path / "b", conf=["harness.conf"])
    with open_device(board, elf, "qemu") as device, pytest.raises(DeviceFault) as caught:
        device.run([tiny_model.FACTS.samples[0]])
    assert caught.value.layer == 1
    assert caught.value.location is not None
    assert re.search(r"tiny\.c:\d+ pairs", caught.value.location)


def test_the_model_is_compiled_with_its_own_options_last(tmp_path: Path) -> None:
    project = _project(tmp_path, small.program())
    zephyr_standin.build(project.path, tmp_path / "b", target="tinyet_small")
    commands = json.loads((tmp_path / "b" / "compile_commands.json").read_text())
    (words,) = [entry["command"].split() for entry in commands if entry["file"].endswith("/small.c")]
    assert words.index("-Os") < words.index("-O2")
    assert {"-fno-fast-math", "-ffp-contract=off"} <= set(words)
    assert not [word for word in words if "_SECTION" in word]
    assert "-DTINYET_TRACE=1" not in words


@pytest.mark.parametrize(
    "chosen", [["CONFIG_TINYET_SMALL_SPEED=n"], ["CONFIG_DEBUG_OPTIMIZATIONS=y"]], ids=["size", "debug"]
)
def test_an_applications_own_choices_are_the_models(chosen: list[str], tmp_path: Path) -> None:
    """Of optimization, and of sections; the model's objects are where it says."""
    project = _project(tmp_path, small.program())
    chosen = [
        *chosen,
        'CONFIG_TINYET_SMALL_ARENA_SECTION=".noinit.small"',
        'CONFIG_TINYET_SMALL_WEIGHTS_SECTION=".rodata.external"',
    ]
    (project.path / "own.conf").write_text("\n".join([*chosen, ""]))
    zephyr_standin.build(project.path, tmp_path / "b", conf=["own.conf"], target="tinyet_small")
    commands = json.loads((tmp_path / "b" / "compile_commands.json").read_text())
    (words,) = [entry["command"].split() for entry in commands if entry["file"].endswith("/small.c")]
    assert "-O2" not in words
    (made,) = (tmp_path / "b").rglob("small.c.obj")
    sections = run(["arm-none-eabi-objdump", "-h", made], timeout=10, what="reading sections").stdout
    assert re.search(r" \.noinit\.small .*\n +ALLOC\n", sections)
    assert re.search(r" \.rodata\.external .*\n +CONTENTS, ALLOC, LOAD, READONLY, DATA\n", sections)


def test_warnings_and_wrong_options_are_errors(tmp_path: Path) -> None:
    """The stand-in is as strict as it says: otherwise the tests above would prove nothing."""
    project = _project(tmp_path, small.program())
    (project.path / "extra.c").write_text("int extra(void) { return 0; }\n")
    shutil.copy(project.path / "extra.c", project.path / "src" / "extra.c")
    with pytest.raises(ToolchainError, match="missing-prototypes"):
        zephyr_standin.build(project.path, tmp_path / "b")
    (project.path / "src" / "extra.c").unlink()
    for text, complaint in (
        ("CONFIG_NO_SUCH_OPTION=y\n", "NO_SUCH_OPTION"),
        ("CONFIG_CONSOLE=n\n", "UART_CONSOLE was set to y and is n"),
        ("CONFIG_BOOT_BANNER=y\nCONFIG_PRINTK=n\n", "PRINTK"),
    ):
        (project.path / "wrong.conf").write_text(text)
        with pytest.raises(ToolchainError, match=complaint):
            zephyr_standin.build(project.path, tmp_path / "c", conf=["wrong.conf"])


def test_the_overlay_moves_the_console(tmp_path: Path) -> None:
    project = _project(tmp_path, small.program())
    for address in ("0x40004000", "0x40005000"):
        zephyr_standin.build(project.path, tmp_path / address, target="help")
        assert f"address {address}" in (tmp_path / address / "zephyr" / "config.cmake").read_text()
        (project.path / "boards" / "mps2_an386.overlay").unlink(missing_ok=True)


def test_another_application_uses_two_models(tmp_path: Path) -> None:
    """Modules moved out of their projects; the models have a kernel in common."""
    project = _project(tmp_path, small.program(), "portable")
    board = tmp_path / "my_board.toml"
    second = generate(
        small.program(hidden=3), board, tmp_path / "q", kind="zephyr", name="second", delegates="portable"
    )
    application = tmp_path / "other"
    application.mkdir()
    modules = [tmp_path / "one", tmp_path / "two"]
    for path, place in zip(
        (project.path / "modules/small", second.path / "modules/second"), modules, strict=True
    ):
        path.rename(place)
    assert all((place / "src" / "tinyet_max_pool2d_s8.c").is_file() for place in modules)
    (application / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20.0)\n"
        f"list(APPEND EXTRA_ZEPHYR_MODULES {modules[0]} {modules[1]})\n"
        "find_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})\n"
        "project(other LANGUAGES C)\n"
        "target_sources(app PRIVATE main.c)\n"
    )
    (application / "prj.conf").write_text(
        "CONFIG_TINYET_SMALL=y\nCONFIG_TINYET_SECOND=y\nCONFIG_SERIAL=y\nCONFIG_CONSOLE=y\n"
        "CONFIG_UART_CONSOLE=y\nCONFIG_FPU=y\n"
    )
    shutil.copy(project.path / "boards" / "mps2_an386.overlay", application / "app.overlay")
    (application / "main.c").write_text(
        '#include <zephyr/sys/printk.h>\n#include "second.h"\n#include "small.h"\n'
        "static float values[SMALL_INPUT_0_COUNT];\n"
        "int main(void) {\n"
        "  small_set_input_0(values);\n"
        "  second_set_input_0(values);\n"
        '  printk("%s", small_run() == TINYET_OK && second_run() == TINYET_OK ? "ran\\n" : "failed\\n");\n'
        "  for (uint32_t i = 0; i < SMALL_OUTPUT_0_COUNT; i++) {\n"
        '    printk("%s", small_output_0()[i] < 0 ? "-\\n" : "+\\n");\n'
        '    printk("%s", second_output_0()[i] < 0 ? "-\\n" : "+\\n");\n'
        "  }\n"
        '  printk("%s", "done\\n");\n'
        "  return 0;\n"
        "}\n"
    )
    lines = _console(zephyr_standin.build(application, tmp_path / "b"))
    zeros = np.zeros((1, 6, 6, 3), np.float32)
    outputs = [p.program.run(zeros, as_float=False) for p in (project, second)]
    signs = ["-" if value < 0 else "+" for value in np.stack(outputs, axis=-1).ravel().tolist()]
    assert lines == ["ran", *signs, "done"]


# `west build -b BOARD -d DIRECTORY -p auto . [-- OPTIONS]`, on the stand-in.
_WEST = """\
#!{python}
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from tests import zephyr_standin
words = sys.argv[1:]
options = words[words.index("--") + 1:] if "--" in words else []
assert words[:2] == ["build", "-b"] and words[3] == "-d" and words[5:8] == ["-p", "auto", "."], words
conf = [option.removeprefix("-DEXTRA_CONF_FILE=") for option in options]
print("west builds", words[4])
zephyr_standin.build(Path.cwd(), Path.cwd() / words[4], board=words[2], conf=conf)
"""


def test_west_builds_application_and_harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = _project(tmp_path, small.program())
    tools = tmp_path / "tools"
    tools.mkdir()
    root = str(Path(__file__).resolve().parents[2])
    (tools / "west").write_text(_WEST.format(python=sys.executable, root=root))
    (tools / "west").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    # As `west init -l` leaves it.
    (tmp_path / ".west").mkdir()
    (tmp_path / ".west" / "config").write_text("[manifest]\npath = p\nfile = west.yml\n")
    with pytest.raises(ToolchainError, match="does not have Zephyr's sources yet"):
        project.build()
    (tmp_path / "zephyr").mkdir()
    (tmp_path / "zephyr" / "Kconfig.zephyr").write_text("")
    lines: list[str] = []
    size = project.build(on_output=lines.append)
    assert lines == ["west builds build", "west builds build-harness"]
    symbols = {symbol.name for symbol in size.symbols}
    assert {"small_run", "small_arena"} <= symbols
    assert "tinyet_harness_serve" not in symbols
    assert size.sample
    assert project.sizes.flash_bytes == size.flash - size.sample
    assert project.elf(HARNESS) == project.path / "build-harness" / "zephyr" / "zephyr.elf"
    assert _validate(project, project.elf(HARNESS), 2).bit_exact


def test_platformio_has_the_same_application_and_harness(tmp_path: Path) -> None:
    """CMake reads options and devicetree as for PlatformIO, and compiles what PlatformIO compiles itself."""
    board = load_board(zephyr_standin.own_board(tmp_path))
    files = platformio_files(board, tiny_model.FACTS, tiny_model.sources())
    project = tmp_path / "p"
    library = {f"lib/tiny/src/{path}": text for path, text in tiny_model.sources().items()}
    for path, text in (files | library).items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(text)
    zephyr_standin.build(project / "zephyr", tmp_path / "b", target="app")
    # Its harness: other sources, and the options that harness.conf turns on.
    cmake = project / "zephyr" / "CMakeLists.txt"
    sources = "../harness/*.c ${CMAKE_CURRENT_SOURCE_DIR}/../lib/tiny/src/*.c"
    text = cmake.read_text().replace("../src/*.c", sources).replace("../src ", "../harness ")
    cmake.write_text(text + "target_compile_definitions(app PRIVATE TINYET_TRACE=1)\n")
    elf = zephyr_standin.build(project / "zephyr", tmp_path / "c", conf=["harness.conf"])
    with open_device(board, elf, "qemu") as device:
        outputs = device.run([tiny_model.FACTS.samples[0]]).outputs
    pairs, mean = tiny_model.expected(tiny_model.SAMPLE)
    assert np.frombuffer(outputs[0], np.int8).tolist() == pairs
    assert np.frombuffer(outputs[1], np.float32).tolist() == [mean]
