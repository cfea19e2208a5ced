# SPDX-License-Identifier: Apache-2.0
"""What is generated, whole and byte for byte: a change of the C shows as a diff that a person reads.

Where a change is meant: `pytest tests/golden --update-golden`, and look at the diff before committing it.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.golden.programs import PROGRAMS, samples
from tests.golden_files import Golden
from tinyet.boards.cpus import Target
from tinyet.deployment import deploy
from tinyet.emit.model import model_files
from tinyet.program import Program

GOLDEN_FOLDER = "expected"
# A core for which the portable kernels are chosen, which a compiler for this machine understands, too; and one for
# which functions are made for each layer.
PORTABLE = Target("cortex-m3", frozenset())
TARGETS = {"nested": Target("cortex-m4", frozenset({"dsp", "fpu"}))}
WARNINGS = (
    *("-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Wcast-qual", "-Wcast-align"),
    *("-Wundef", "-Wdouble-promotion", "-Werror"),
)
# In C++17 designated initializers are an extension that GCC and Clang have: C++20 made them standard.
LANGUAGES = {
    "c11": ("gcc", "-xc", "-std=c11", "-pedantic"),
    "c++17": ("g++", "-xc++", "-std=c++17", "-Wuseless-cast"),
    "c++20": ("g++", "-xc++", "-std=c++20", "-pedantic", "-Wuseless-cast"),
}


def files_of(program: Program) -> dict[str, str]:
    """The generated files of a program, with an invented version and hash: these change with the program
    format, not with the code that is looked at here."""
    return model_files(
        deploy(program.graph, TARGETS.get(program.name, PORTABLE)),
        program.name,
        [f"{program.name}: golden file"],
        labels=program.labels,
        program_hash="0123456789abcdef" * 4,
        version="1.2.3",
    )


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("suffix", ["h", "c"])
def test_generated_model(name: str, suffix: str, golden: Golden) -> None:
    golden(files_of(PROGRAMS[name]())[f"{name}.{suffix}"], f"{name}.{suffix}")


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_compiles_without_a_warning(name: str, language: str, tmp_path: Path) -> None:
    compiler, *options = LANGUAGES[language]
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    files = files_of(PROGRAMS[name]())
    for path, text in files.items():
        (tmp_path / path).write_text(text, encoding="utf-8")
    sources = sorted(path for path in files if path.endswith(".c"))
    assert len(files) > 3, "the model and its kernels"
    if compiler == "g++":  # a program that asks for casts of C++ may include the header as it is
        (tmp_path / "other.cpp").write_text(
            f'#pragma GCC diagnostic error "-Wold-style-cast"\n#include "{name}.h"\nint ran = {name}_run();\n'
        )
        sources.append("other.cpp")
    command = [compiler, *options, *WARNINGS, "-O1", "-c", *sources]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="arm-none-eabi-gcc is not installed")
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiles_for_its_core(name: str, tmp_path: Path) -> None:
    """With the instructions that a compiler for this machine does not know, and optimised as in projects."""
    files = files_of(PROGRAMS[name]())
    for path, text in files.items():
        (tmp_path / path).write_text(text, encoding="utf-8")
    sources = sorted(path for path in files if path.endswith(".c"))
    flags = TARGETS.get(name, PORTABLE).machine_flags
    command = ["arm-none-eabi-gcc", *flags, "-std=c11", *WARNINGS, "-O2", "-c", *sources]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_programs_say_something(name: str) -> None:
    """A program that always answers alike, or saturates, would hide what the other tests look for."""
    program = PROGRAMS[name]()
    (stack,) = samples(program, 8)
    first = [program.values([x])[program.outputs[0]] for x in stack]
    assert len({a.tobytes() for a in first}) == len(first)
    values = np.concatenate([a.ravel() for a in first])
    assert len(np.unique(values)) > 8
    if values.dtype == np.int8:
        assert float(np.mean((values == -128) | (values == 127))) < 0.5
