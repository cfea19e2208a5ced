# SPDX-License-Identifier: Apache-2.0
"""--tflm-header: a sketch that makes TensorFlow Lite Micro's calls, in front of generated models."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from tests import small
from tests.emulated.test_states import remembering
from tests.golden.programs import branches, input_s8, mixed, samples
from tests.ops.cases import HOST_FLAGS, SANITIZERS, WARNINGS
from tests.ops.objects import compiled_object
from tinyet import from_tflite, ops
from tinyet.errors import UsageError
from tinyet.ir import Array, DType, Graph, Node, Tensor, TensorType, constant
from tinyet.ops.lookup import Lookup
from tinyet.program import Program
from tinyet.project import Project
from tinyet.projects.one import generate

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")

_BOARD = "mps2_an385"
_CXX = ("g++", "-std=c++11", "-pedantic", "-O0", "-g1", *WARNINGS, "-Wno-variadic-macros", *SANITIZERS)
_CC = ("gcc", "-std=c11", *HOST_FLAGS, *SANITIZERS)
_FLIP = (np.arange(256) ^ 128).astype(np.uint8).reshape(1, 256)

# As the examples of TFLM and of its Arduino library are written: only the includes are ours.
SKETCH = """
#include "@NAME@_tflm.h"

namespace {
const tflite::Model *model = nullptr;
tflite::MicroInterpreter *interpreter = nullptr;
tflite::ErrorReporter *error_reporter = nullptr;
constexpr int kTensorArenaSize = 2000;
alignas(16) uint8_t tensor_arena[kTensorArenaSize];

using OpResolver = tflite::MicroMutableOpResolver<3>;

TfLiteStatus RegisterOps(OpResolver &op_resolver) {
  TF_LITE_ENSURE_STATUS(op_resolver.AddFullyConnected());
  TF_LITE_ENSURE_STATUS(op_resolver.AddDepthwiseConv2D());
  return kTfLiteOk;
}

void describe(const char *kind, size_t i, const TfLiteTensor *tensor) {
  MicroPrintf("%s %d type %d bytes %d scale %.9g zero point %d dims %d", kind, static_cast<int>(i),
              static_cast<int>(tensor->type), static_cast<int>(tensor->bytes),
              static_cast<double>(tensor->params.scale), static_cast<int>(tensor->params.zero_point),
              tensor->dims->size);
  for (int k = 0; k < tensor->dims->size; k++) {
    MicroPrintf("%d", tensor->dims->data[k]);
  }
}
} // namespace

void @NAME@_setup() {
  tflite::InitializeTarget();
  static tflite::MicroErrorReporter micro_error_reporter;
  error_reporter = &micro_error_reporter;
  model = tflite::GetModel(@ARRAY@);
  if (model->version() != TFLITE_SCHEMA_VERSION) {
    TF_LITE_REPORT_ERROR(error_reporter, "Model provided is schema version %d", static_cast<int>(model->version()));
    return;
  }
  static OpResolver resolver;
  if (RegisterOps(resolver) != kTfLiteOk) {
    return;
  }
  static tflite::MicroInterpreter static_interpreter(model, resolver, tensor_arena, kTensorArenaSize@MORE@);
  interpreter = &static_interpreter;
  TfLiteStatus allocate_status = interpreter->AllocateTensors();
  if (allocate_status != kTfLiteOk) {
    MicroPrintf("AllocateTensors() failed");
    return;
  }
  TFLITE_CHECK_EQ(interpreter->arena_used_bytes(), @ARENA@);
  TFLITE_CHECK(interpreter->input(interpreter->inputs_size()) == nullptr);
  TFLITE_CHECK(interpreter->output(interpreter->outputs_size()) == nullptr);
}

void @NAME@_describe() {
  for (size_t i = 0; i < interpreter->inputs_size(); i++) {
    describe("input", i, interpreter->input(i));
  }
  for (size_t i = 0; i < interpreter->outputs_size(); i++) {
    describe("output", i, interpreter->output(i));
  }
  // The same memory by each of its names, and by no other type.
  TfLiteTensor *input = interpreter->input(0);
  TFLITE_CHECK(static_cast<void *>(input->data.@MEMBER@) == input->data.data);
  TFLITE_CHECK(tflite::GetTensorData<@TYPE@>(input) == input->data.@MEMBER@);
  TFLITE_CHECK(interpreter->typed_input_tensor<@TYPE@>(0) == input->data.@MEMBER@);
  TFLITE_CHECK(interpreter->typed_input_tensor<int32_t>(0) == nullptr);
}

bool @NAME@_loop() {
  for (size_t i = 0; i < interpreter->inputs_size(); i++) {
    TfLiteTensor *input = interpreter->input(i);
    if (fread(input->data.raw, 1, input->bytes, stdin) != input->bytes) {
      return false;
    }
  }
  if (interpreter->Invoke() != kTfLiteOk) {
    MicroPrintf("Invoke failed");
    return false;
  }
  for (size_t i = 0; i < interpreter->outputs_size(); i++) {
    const TfLiteTensor *output = interpreter->output(i);
    fwrite(output->data.raw_const, 1, output->bytes, stdout);
  }
  return true;
}

void @NAME@_again() { (void)interpreter->Reset(); }
"""
MAIN = """
#include <string.h>
@DECLARED@
int main(int, char **arguments) {
@CALLED@
  return 3;
}
"""
CALLED = """
  if (strcmp(arguments[1], "@NAME@") == 0) {
    @NAME@_setup();
    @NAME@_describe();
    for (const char *at = arguments[2]; *at != 0; at++) {
      if (*at == 's') {
        @NAME@_setup();
      } else if (*at == 'z') {
        @NAME@_again();
      } else if (!@NAME@_loop()) {
        return 2;
      }
    }
    return 0;
  }
"""
RUNS = "rrrzrrrsrr"


def flipped() -> Program:
    """uint8 in and out, as in files of before int8: two stand for the real numbers of an int8, one for nothing."""
    x, out, plain = (Tensor(name, TensorType((1, 5), DType.UINT8)) for name in ("bytes", "out", "plain"))
    inner = input_s8("inner", (1, 5), 0.5, -3)
    halves = constant("halves", (np.arange(256) // 2).astype(np.uint8).reshape(1, 256))
    nodes = (
        Node(Lookup(0), (x, constant("there", _FLIP.view(np.int8), inner.type.quant)), (inner,)),
        Node(Lookup(0), (inner, constant("back", _FLIP)), (out,)),
        Node(Lookup(0), (inner, halves), (plain,)),
    )
    return Program("flipped", ops.check(Graph("flipped", (x,), (out, plain), nodes), "building it by hand"))


PROGRAMS: Mapping[str, Callable[[], Program]] = {
    "small": small.program,
    "mixed": mixed,
    "branches": branches,
    "remembering": remembering,
    "flipped": flipped,
}
TYPES = {DType.INT8: ("int8", "int8_t"), DType.UINT8: ("uint8", "uint8_t"), DType.FLOAT32: ("f", "float")}
NUMBERS = {DType.FLOAT32: 1, DType.UINT8: 3, DType.INT16: 7, DType.INT8: 9}
# How sketches name the array, and what they give to the interpreter behind it.
ARRAYS = {"small": "g_model", "mixed": "g_mixed_model_data", "branches": "my_own_array"}
MORE = {"small": ", error_reporter", "mixed": ", nullptr"}


def sketch(project: Project, program: Program) -> str:
    member, ctype = TYPES[program.inputs[0].dtype]
    text = SKETCH.replace("@NAME@", project.name).replace("@ARRAY@", ARRAYS.get(project.name, "g_model"))
    text = (
        text.replace("@MORE@", MORE.get(project.name, ""))
        .replace("@MEMBER@", member)
        .replace("@TYPE@", ctype)
    )
    text = text.replace("@ARENA@", str(project.manifest["arena_bytes"]))
    return f'#include "model.h"\n{text}' if project.name == "branches" else text


def made(program: Program, place: Path, **options: object) -> Project:
    return generate(program, _BOARD, place, kind="model", tflm_header=True, **options)  # type: ignore[arg-type]


def objects(project: Project, program: Program) -> list[Path]:
    """The model's and the sketch's."""
    source = project.path / f"{project.name}_sketch.cpp"
    source.write_text(sketch(project, program), encoding="utf-8")
    (project.path / "model.h").write_text("alignas(8) extern const unsigned char my_own_array[];\n")
    (project.path / "model.cpp").write_text(
        '#include "model.h"\nalignas(8) const unsigned char my_own_array[] = {1, 2, 3};\n'
    )
    parts = [compiled_object((*_CC, f"-I{project.path}"), c) for c in sorted(project.path.glob("*.c"))]
    sources = [source, *([project.path / "model.cpp"] if project.name == "branches" else [])]
    return [*parts, *(compiled_object((*_CXX, f"-I{project.path}"), cpp) for cpp in sources)]


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One program that has all models, each in a sketch of its own."""
    place = tmp_path_factory.mktemp("tflm")
    parts = []
    for name, program in PROGRAMS.items():
        parts += objects(made(program(), place / name), program())
    return linked(list(PROGRAMS), parts, place)


def linked(names: list[str], parts: list[Path], place: Path) -> Path:
    declared = [f"void {n}_{call}();" for n in names for call in ("setup", "describe", "again")]
    declared += [f"bool {name}_loop();" for name in names]
    text = MAIN.replace("@DECLARED@", "\n".join(declared))
    text = text.replace("@CALLED@", "".join(CALLED.replace("@NAME@", name) for name in names))
    (place / "main.cpp").write_text(text, encoding="utf-8")
    made = [*parts, compiled_object(_CXX, place / "main.cpp")]
    command = ["g++", *SANITIZERS, *map(str, made), "-lm", "-o", str(place / "program")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return place / "program"


def expected(program: Program, arrays: list[Array]) -> bytes:
    """What the runs of RUNS give; a reset and a new interpreter begin anew."""
    answers = []
    session = program.session()
    runs = zip(*arrays, strict=True)
    for letter in RUNS:
        if letter != "r":
            session = program.session()
            continue
        values = session.run(*next(runs), as_float=False)
        answers += [
            np.ascontiguousarray(v).tobytes() for v in (values if isinstance(values, list) else [values])
        ]
    return b"".join(answers)


def described(program: Program, bytes_stand_for: Mapping[str, tuple[float, int]]) -> list[str]:
    lines = []
    for kind, tensors in (("input", program.inputs), ("output", program.outputs)):
        for i, t in enumerate(tensors):
            quant = t.type.quant
            scale, zero = bytes_stand_for.get(t.name, (0.0, 0))
            if quant is not None:
                scale, zero = float(np.float32(quant.one_scale)), quant.one_zero_point
            lines.append(
                f"{kind} {i} type {NUMBERS[t.dtype]} bytes {t.type.bytes} scale {scale:.9g} "
                f"zero point {zero} dims {len(t.shape)}"
            )
            lines += [str(size) for size in t.shape]
    return lines


def drawn(program: Program) -> list[Array]:
    count = RUNS.count("r")
    if program.name == "flipped":
        return [np.random.default_rng(1).integers(0, 256, (count, 1, 5)).astype(np.uint8)]
    return samples(program, count)


def check(binary: Path, program: Program, bytes_stand_for: Mapping[str, tuple[float, int]]) -> None:
    arrays = drawn(program)
    sent = b"".join(array.tobytes() for run in zip(*arrays, strict=True) for array in run)
    command = [str(binary), program.name, RUNS]
    done = subprocess.run(command, input=sent, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr.decode().splitlines() == described(program, bytes_stand_for)
    assert done.stdout == expected(program, arrays)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_sketch_gives_what_the_reference_gives(name: str, binary: Path) -> None:
    check(binary, PROGRAMS[name](), {"bytes": (0.5, 125), "out": (0.5, 125)})


def test_a_file_of_tflms(tmp_path: Path) -> None:
    """Its example's sketch reads the quantization from the tensors: they are the file's."""
    found = next(Path(os.environ.get("TINYET_TFLITE_DIR", "/nowhere")).rglob("hello_world_int8.tflite"), None)
    if found is None:
        pytest.skip("no hello_world_int8.tflite in TINYET_TFLITE_DIR")
    program = from_tflite(found)
    check(linked([program.name], objects(made(program, tmp_path), program), tmp_path), program, {})


# ---------------------------------------------------------------- what does not compile


def complaint(folder: Path, text: str, *flags: str) -> str:
    done = subprocess.run(
        ["g++", "-fsyntax-only", *(flags or ("-std=c++11",)), f"-I{folder}", "-xc" if flags else "-xc++", "-"],
        input=text, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode != 0, text
    return done.stderr


def test_what_the_header_cannot_do_does_not_compile(tmp_path: Path) -> None:
    project = made(small.program(), tmp_path)
    own = made(small.program(), tmp_path / "other", name="other")
    for file in own.path.glob("other*.h"):
        shutil.copy(file, project.path)
    start = '#include "small_tflm.h"\n'
    assert "another model's header" in complaint(tmp_path, f'{start}#include "other_tflm.h"\n')
    for wrong in ("t->data.int8 = nullptr", "t->params.scale = 1.0f", "t->type = kTfLiteInt8"):
        errors = complaint(tmp_path, f"{start}void f(TfLiteTensor *t) {{ {wrong}; }}\n")
        assert "read-only" in errors or "const" in errors
    assert "AddCustom" in complaint(
        tmp_path,
        f'{start}void f() {{ tflite::MicroMutableOpResolver<1> r; r.AddCustom("mine", nullptr); }}\n',
    )
    assert "is C++" in complaint(tmp_path, '#include "tinyet_tflm.h"\n', "-std=c11")


def test_a_compiler_may_take_it_for_a_header_of_c(tmp_path: Path) -> None:
    """As those for AVR take all of a system's."""
    made(small.program(), tmp_path)
    source = tmp_path / "system.cpp"
    system = "".join(
        f"#include <{name}>\n" for name in ("stdarg.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h")
    )
    source.write_text(f'{system}#include <string.h>\nextern "C" {{\n#include "small_tflm.h"\n}}\n')
    compiled_object(("g++", "-std=c++11", f"-I{tmp_path}"), source)


def test_it_costs_nothing_where_it_is_included_only(tmp_path: Path) -> None:
    """No code, no data, nothing that runs before main()."""
    made(small.program(), tmp_path)
    source = tmp_path / "only.cpp"
    source.write_text('#include "small_tflm.h"\n')
    made_object = compiled_object(("g++", "-std=c++11", "-Os", f"-I{tmp_path}"), source)
    seen = subprocess.run(["nm", str(made_object)], capture_output=True, text=True, check=True, timeout=10)
    assert [line for line in seen.stdout.splitlines() if line.split()[-2] in "TtDdBbiWV"] == []


# ---------------------------------------------------------------- projects


def test_rows_and_tflm_do_not_go_together(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="row by row"):
        made(small.program(size=12), tmp_path / "p", input_rows=True)
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize("kind", ["platformio", "cmake", "zephyr", "model"])
def test_every_kind_has_it_beside_the_models_own_header(kind: str, tmp_path: Path) -> None:
    program = small.program()
    without = generate(program, _BOARD, tmp_path / "without", kind=kind)  # type: ignore[arg-type]
    asked = generate(program, _BOARD, tmp_path / "asked", kind=kind, tflm_header=True)  # type: ignore[arg-type]
    place = Path(str(asked.manifest["model_dir"]))
    more = {place / "small_tflm.h", place / "tinyet_tflm.h"}
    assert files(asked) - files(without) == more
    assert files(without) <= files(asked)
    assert json.loads((asked.path / "tinyet.json").read_text())["tflm_header"] is True
    assert "tflm_header" not in without.manifest
    if kind == "cmake":
        public = (
            (asked.path / "CMakeLists.txt").read_text().partition("set(public_headers")[2].partition(")")[0]
        )
        assert {"small.h", "small_tflm.h", "tinyet_common.h", "tinyet_tflm.h"} == {
            Path(line).name for line in public.split()
        }
    again = generate(program, _BOARD, tmp_path / "asked", kind=kind)  # type: ignore[arg-type]
    assert files(again) == files(without)


def files(project: Project) -> set[Path]:
    return {path.relative_to(project.path) for path in project.path.rglob("*") if path.is_file()}


def test_an_arduino_library_has_a_header_for_the_sketch(tmp_path: Path) -> None:
    project = generate(small.program(), "nano_33_ble", tmp_path, kind="arduino", tflm_header=True)
    library = tmp_path / "SmallModel"
    assert {Path("SmallModel/src/SmallModelTflm.h"), Path("SmallModel/src/small/small_tflm.h")} <= files(
        project
    )
    assert '#include "small/small_tflm.h"' in (library / "src" / "SmallModelTflm.h").read_text()
    assert "SmallModelTflm.h" in (library / "README.md").read_text()
