# SPDX-License-Identifier: Apache-2.0
"""Generated Arduino libraries on Cortex-M: compiled as real cores do, against a small core of our own, run in QEMU."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests import small
from tests.emulated import arduino
from tinyet import assets
from tinyet.boards import Board, load_board
from tinyet.boards.linker import linker_script
from tinyet.data import make_samples
from tinyet.delegates import CMSIS_NN
from tinyet.device import qemu
from tinyet.device.device import open_device
from tinyet.program import Program
from tinyet.project import Project
from tinyet.projects.one import generate
from tinyet.validation import validate

API = Path(__file__).parents[1] / "arduino_api"
FUSED = re.compile(r"\tvfn?m[as]\.f32\s")

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(
        shutil.which("arm-none-eabi-g++") is None, reason="arm-none-eabi-g++ is not installed"
    ),
    pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="qemu-system-arm is not installed"),
]


@dataclass(frozen=True)
class Platform:
    """A core as its platform.txt and boards.txt have it: the flags that change what is compiled.

    board: one with the same processor, or, for Armv6-M, one that runs its code; cpu: of the board file. c, cpp: flags.
    """

    board: str
    cpu: str
    fqbn: str
    machine: tuple[str, ...]
    both: tuple[str, ...]
    c: tuple[str, ...]
    cpp: tuple[str, ...]


_INLINE = ("--param", "max-inline-insns-single=500")
PLATFORMS: Mapping[str, Platform] = {
    # arduino/ArduinoCore-samd, arduino_zero_native
    "samd": Platform(
        "mps2_an385",
        "cortex-m0plus",
        "arduino:samd:arduino_zero_native",
        ("-mcpu=cortex-m0plus", "-mthumb"),
        ("-g", "-Os", "-ffunction-sections", "-fdata-sections", "-nostdlib", *_INLINE),
        ("-std=gnu11",),
        ("-std=gnu++11", "-fno-threadsafe-statics", "-fno-rtti", "-fno-exceptions"),
    ),
    # arduino/ArduinoCore-mbed, nano33ble
    "mbed": Platform(
        "mps2_an386",
        "cortex-m4",
        "arduino:mbed_nano:nano33ble",
        ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=softfp", "-mfpu=fpv4-sp-d16"),
        (
            *("-Os", "-fdata-sections", "-ffunction-sections", "-fmessage-length=0", "-fno-exceptions"),
            *(
                "-fno-delete-null-pointer-checks",
                "-fomit-frame-pointer",
                "-funsigned-char",
                "-g3",
                "-nostdlib",
            ),
        ),
        ("-std=gnu11",),
        ("-std=gnu++14", "-fno-rtti", "-Wvla"),
    ),
    # PJRC's core for Teensy 4
    "teensy": Platform(
        "mps2_an500",
        "cortex-m7",
        "teensy:avr:teensy41",
        ("-mthumb", "-mcpu=cortex-m7", "-mfloat-abi=hard", "-mfpu=fpv5-d16"),
        ("-O2", "-g", "-ffunction-sections", "-fdata-sections", "-nostdlib"),
        (),
        (
            *("-std=gnu++17", "-fno-exceptions", "-fpermissive", "-fno-rtti", "-fno-threadsafe-statics"),
            *("-felide-constructors", "-Wno-error=narrowing"),
        ),
    ),
    # stm32duino/Arduino_Core_STM32
    "stm32": Platform(
        "mps2_an386",
        "cortex-m4",
        "STMicroelectronics:stm32:Nucleo_64:pnum=NUCLEO_F446RE",
        ("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard", "-mthumb"),
        ("-Os", "-ffunction-sections", "-fdata-sections", "-nostdlib", *_INLINE),
        ("-std=gnu11",),
        (
            *("-std=gnu++17", "-fno-threadsafe-statics", "-fno-rtti", "-fno-exceptions"),
            "-fno-use-cxa-atexit",
        ),
    ),
}
MODELS: Mapping[str, Callable[[], Program]] = {
    "int8": small.program,
    "float": lambda: Program("small", small.graph(real=True), None, ()),
}


def board_file(name: str, place: Path) -> Path:
    """A user's own board: one that QEMU has, with a name in Arduino."""
    platform = PLATFORMS[name]
    text = (assets.path("boards") / f"{platform.board}.toml").read_text(encoding="utf-8")
    if platform.cpu not in text:
        text = text.replace('cpu = "cortex-m3"', f'cpu = "{platform.cpu}"')
    path = place / f"{name}.toml"
    path.write_text(f'{text}\n[arduino]\nfqbn = "{platform.fqbn}"\n', encoding="utf-8")
    return path


def core_of(name: str, board: Board, place: Path) -> arduino.Core:
    """Our core, compiled as the platform's own is."""
    platform = PLATFORMS[name]
    assert board.uart is not None
    script = place / f"{name}.ld"
    script.write_text(linker_script(board), encoding="utf-8")
    macros = ("-DARDUINO=10819", f"-DARDUINO_ARCH_{platform.fqbn.split(':')[1].upper()}")
    own = (f"-DTINYET_CLOCK_HZ={board.clock_hz}u", f"-DTINYET_UART_BASE={board.uart.base:#x}u")
    flags = (*platform.machine, *platform.both, *macros)
    return arduino.Core(
        prefix="arm-none-eabi-",
        c=(*flags, *platform.c),
        cpp=(*flags, *platform.cpp),
        link=(
            *(*platform.machine, "-Os", "-Wl,--gc-sections", "--specs=nano.specs", "--specs=nosys.specs"),
            *("-nostartfiles", "-Wl,--check-sections", "-Wl,--warn-common", f"-T{script}", "-lm"),
            "-Wl,--undefined=Reset_Handler",
        ),
        sources=(API / "core.cpp",),
        includes=(API,),
        own=(*own, *arduino.WARNINGS),
    )


@dataclass(frozen=True)
class Built:
    board: Board
    project: Project
    run: Path
    harness: Path


def build(name: str, program: Program, place: Path, **options: object) -> Built:
    """A generated project and both of its sketches: the one in the core's C++, the other in C++17."""
    path = board_file(name, place)
    project = generate(program, path, place / "p", kind="arduino", **options)  # type: ignore[arg-type]
    board = load_board(path)
    core = core_of(name, board, place)
    archive = core.build(place / "core")
    library = arduino.build_library(core, arduino.library_of(project), place / "library")
    archives = (library, archive)
    run = arduino.build_sketch(core, arduino.library_of(project), "RunSmallModel", archives, place / "run")
    harness = arduino.build_sketch(
        core, arduino.library_of(project), "Harness", archives, place / "harness", "-std=gnu++17"
    )
    return Built(board, project, run, harness)


def output_of(board: Board, elf: Path) -> list[str]:
    """What a sketch prints until it is done."""
    link = qemu.start(board, elf)
    text = b""
    try:
        deadline = time.monotonic() + 30.0
        while b"done\r\n" not in text:
            text += link.read(deadline)
    finally:
        link.close()
    return text.decode().splitlines()


@pytest.mark.parametrize(
    ("name", "model"),
    [*((name, "int8") for name in sorted(PLATFORMS)), ("mbed", "float"), ("teensy", "float")],
)
def test_both_sketches(name: str, model: str, tmp_path: Path) -> None:
    program = MODELS[model]()
    sample = small.images(1, seed=3)
    built = build(name, program, tmp_path, sample=[sample])
    arduino.check_printed(output_of(built.board, built.run), program, sample)

    data = small.images(3)
    with open_device(built.board, built.harness) as device:
        assert device.count_unit == "nanoseconds"
        assert device.info().stack_bytes == 0
        result = validate(
            program,
            built.project.deployment,
            device,
            make_samples(program.inputs, [data], None),
            on="qemu",
            board=built.board.name,
            sizes=built.project.sizes,
        )
    assert result.bit_exact
    assert [layer.kernel for layer in result.layers] == [
        step.choice.kernel.symbol for step in built.project.deployment.steps
    ]
    assert sum(layer.count or 0 for layer in result.layers) > 0


def test_validate_takes_the_same_files(tmp_path: Path) -> None:
    """`tinyet validate` of a library, without anything of Arduino's."""
    program = small.program()
    project = generate(program, board_file("mbed", tmp_path), tmp_path / "p", kind="arduino")
    assert project.validate(small.images(2), on="qemu").bit_exact
    assert project.validate(small.images(2), on="host").bit_exact


@pytest.mark.skipif(
    assets.cmsis_nn_dir() is None, reason=f"the sources of CMSIS-NN {assets.CMSIS_NN_VERSION} are not here"
)
def test_cmsis_nn(tmp_path: Path) -> None:
    """Arm's kernels keep their folder, and the README names their licence."""
    program = small.program()
    sample = small.images(1, seed=3)
    built = build("mbed", program, tmp_path, sample=[sample], delegates=(CMSIS_NN,))
    arduino.check_printed(output_of(built.board, built.run), program, sample)
    assert "src/small/cmsis_nn/LICENSE" in (arduino.library_of(built.project) / "README.md").read_text()
    properties = (arduino.library_of(built.project) / "library.properties").read_text()
    assert "\narchitectures=mbed_nano\n" in properties


def test_two_libraries_in_one_sketch(tmp_path: Path) -> None:
    """They share kernels by name: the archives give each of them once."""
    path = board_file("mbed", tmp_path)
    programs = {"first": small.program(), "second": small.program(channels=8)}
    board = load_board(path)
    core = core_of("mbed", board, tmp_path)
    archives = []
    folder = tmp_path / "both" / "examples" / "Both"
    folder.mkdir(parents=True)
    for name, program in programs.items():
        project = generate(program, path, tmp_path / name, kind="arduino", name=name)
        archives.append(
            arduino.build_library(core, arduino.library_of(project), tmp_path / f"{name}-objects")
        )
        shutil.copytree(arduino.library_of(project) / "src", tmp_path / "both" / "src", dirs_exist_ok=True)
    (folder / "Both.ino").write_text(
        "#include <FirstModel.h>\n#include <SecondModel.h>\n"
        "void setup() {\n  Serial.begin(115200);\n"
        "  memset(first_input_0(), 1, FIRST_INPUT_0_BYTES);\n  memset(second_input_0(), 1, SECOND_INPUT_0_BYTES);\n"
        "  Serial.println(first_run() + second_run());\n"
        "  Serial.println(first_output_0()[0]);\n  Serial.println(second_output_0()[0]);\n"
        '  Serial.println("done");\n}\n'
        "void loop() {\n}\n"
    )
    archives.append(core.build(tmp_path / "core"))
    elf = arduino.build_sketch(core, tmp_path / "both", "Both", archives, tmp_path / "out")
    ones = np.ones((1, 6, 6, 3), np.int8)
    expected = [int(arduino.outputs_of(program, ones)[0][0]) for program in programs.values()]
    assert [int(line) for line in output_of(board, elf)[:3]] == [0, *expected]


TFLM_SKETCH = """\
#include <SmallModelTflm.h>

namespace {
tflite::MicroInterpreter *interpreter = nullptr;
TfLiteTensor *input = nullptr;
TfLiteTensor *output = nullptr;
constexpr int kTensorArenaSize = 2000;
alignas(16) uint8_t tensor_arena[kTensorArenaSize];
} // namespace

void setup() {
  tflite::InitializeTarget();
  const tflite::Model *model = tflite::GetModel(g_model);
  if (model->version() != TFLITE_SCHEMA_VERSION) {
    MicroPrintf("Model provided is schema version %d", static_cast<int>(model->version()));
    return;
  }
  static tflite::AllOpsResolver resolver;
  static tflite::MicroInterpreter static_interpreter(model, resolver, tensor_arena, kTensorArenaSize);
  interpreter = &static_interpreter;
  if (interpreter->AllocateTensors() != kTfLiteOk) {
    MicroPrintf("AllocateTensors() failed");
    return;
  }
  input = interpreter->input(0);
  output = interpreter->output(0);
}

void loop() {
  for (size_t i = 0; i < input->bytes; i++) {
    input->data.int8[i] = static_cast<int8_t>(i);
  }
  if (interpreter->Invoke() != kTfLiteOk) {
    MicroPrintf("Invoke failed");
  }
  for (int i = 0; i < output->dims->data[1]; i++) {
    MicroPrintf("%d", output->data.int8[i]);
  }
  MicroPrintf("done");
}
"""


def test_a_sketch_of_tensorflow_lite_micro(tmp_path: Path) -> None:
    """Written for TFLM but for its include. The arena that it sets aside takes no RAM."""
    path = board_file("samd", tmp_path)
    board, program = load_board(path), small.program()
    project = generate(program, path, tmp_path / "p", kind="arduino", tflm_header=True)
    library, core = arduino.library_of(project), core_of("samd", board, tmp_path)
    (library / "examples" / "Tflm").mkdir()
    (library / "examples" / "Tflm" / "Tflm.ino").write_text(TFLM_SKETCH)
    assert "\narchitectures=*\n" in (library / "library.properties").read_text()
    archives = [arduino.build_library(core, library, tmp_path / "library"), core.build(tmp_path / "core")]
    elf = arduino.build_sketch(core, library, "Tflm", archives, tmp_path / "out")
    (expected,) = arduino.outputs_of(program, np.arange(108).astype(np.int8).reshape(1, 6, 6, 3))
    assert [int(line) for line in output_of(board, elf)[:5]] == expected.tolist()
    symbols = subprocess.run(
        ["arm-none-eabi-nm", str(elf)], capture_output=True, text=True, check=True
    ).stdout
    assert " small_arena" in symbols
    assert "tensor_arena" not in symbols


@pytest.mark.parametrize("name", ["mbed", "stm32", "teensy"])
def test_nothing_is_rounded_once_that_should_be_rounded_twice(name: str, tmp_path: Path) -> None:
    """A core's flags allow fused multiplications and additions; tinyet_common.h forbids them."""
    platform = PLATFORMS[name]
    project = generate(MODELS["float"](), board_file(name, tmp_path), tmp_path / "p", kind="arduino")
    folder = arduino.library_of(project) / "src" / "small"
    kernels = sorted(folder.glob("tinyet_*_f32.c"))
    assert kernels

    def fused(*flags: str) -> int:
        count = 0
        for kernel in kernels:
            target = tmp_path / "kernel.o"
            command = ["arm-none-eabi-gcc", *platform.machine, *platform.both, *platform.c, *flags]
            arduino.run([*command, f"-I{folder}", "-c", str(kernel), "-o", str(target)])
            dump = ["arm-none-eabi-objdump", "-d", str(target)]
            count += len(
                FUSED.findall(subprocess.run(dump, capture_output=True, text=True, check=True).stdout)
            )
        return count

    assert fused() > 0
    assert fused("-DARDUINO=10819") == 0
