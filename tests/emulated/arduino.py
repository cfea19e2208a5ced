# SPDX-License-Identifier: Apache-2.0
"""Builds sketches of a generated library as the Arduino IDE and arduino-cli do, with the flags of a core's
platform.txt: the core in one archive, the library in another (dot_a_linkage), the .ino file as C++."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tinyet.ir import Array
from tinyet.program import Program
from tinyet.project import Project

# Of the library's and the sketches' own files; a core is none of our business.
WARNINGS = ("-Wall", "-Wextra", "-Werror")
_SOURCES = (".c", ".cpp", ".S")


@dataclass(frozen=True)
class Core:
    """A core and how its platform.txt has it compiled.

    c, cpp: flags for files of either language, the processor's and the core's macros among them. link: those of the
    linker, behind the objects. sources: what the core's archive is made of, with the flags `own` in addition. includes:
    its directories of headers.
    """

    prefix: str
    c: tuple[str, ...]
    cpp: tuple[str, ...]
    link: tuple[str, ...]
    sources: tuple[Path, ...]
    includes: tuple[Path, ...]
    archiver: str = "gcc-ar"
    own: tuple[str, ...] = ("-w",)

    def compile(
        self, source: Path, out: Path, includes: Sequence[Path], extra: Sequence[str] = (), standard: str = ""
    ) -> Path:
        """The object file of one source. standard: of C++, in place of the core's."""
        cpp = source.suffix != ".c"
        flags = self.cpp if cpp else self.c
        if cpp and standard:
            flags = tuple(standard if flag.startswith("-std=") else flag for flag in flags)
        target = out / (source.name + ".o")
        assert not target.exists(), f"two sources are named {source.name}"
        command = [f"{self.prefix}{'g++' if cpp else 'gcc'}", *flags, *extra]
        run([*command, *(f"-I{path}" for path in includes), "-c", str(source), "-o", str(target)])
        return target

    def archive(self, objects: Sequence[Path], target: Path) -> Path:
        run([f"{self.prefix}{self.archiver}", "rcs", str(target), *map(str, objects)])
        return target

    def build(self, out: Path) -> Path:
        """The core's archive."""
        out.mkdir(parents=True)
        objects = []
        for source in self.sources:
            if source.suffix == ".S":
                target = out / (source.name + ".o")
                command = [f"{self.prefix}gcc", "-x", "assembler-with-cpp", *self.c]
                run([*command, *(f"-I{p}" for p in self.includes), "-c", str(source), "-o", str(target)])
                objects.append(target)
            else:
                objects.append(self.compile(source, out, self.includes, self.own))
        return self.archive(objects, out / "core.a")


def library_of(project: Project) -> Path:
    """The folder of the library in a project."""
    return project.path / Path(str(project.manifest["model_dir"])).parts[0]


def build_library(core: Core, library: Path, out: Path, standard: str = "") -> Path:
    """The archive of a library's src directory, every warning an error."""
    out.mkdir(parents=True)
    includes = (library / "src", *core.includes)
    sources = sorted(path for path in (library / "src").rglob("*") if path.suffix in _SOURCES)
    return core.archive([core.compile(s, out, includes, WARNINGS, standard) for s in sources], out / "lib.a")


def build_sketch(
    core: Core, library: Path, sketch: str, archives: Sequence[Path], out: Path, standard: str = ""
) -> Path:
    """The firmware of one of the library's examples."""
    out.mkdir(parents=True)
    folder = library / "examples" / sketch
    main = out / f"{sketch}.ino.cpp"
    main.write_text(preprocessed(folder / f"{sketch}.ino"), encoding="utf-8")
    includes = (folder, *core.includes, library / "src")
    sources = [main, *sorted(path for path in folder.iterdir() if path.suffix in _SOURCES)]
    objects = [core.compile(source, out, includes, WARNINGS, standard) for source in sources]
    elf = out / f"{sketch}.ino.elf"
    command = [f"{core.prefix}gcc", *map(str, objects), *map(str, archives), *core.link, "-o", str(elf)]
    run(command)
    return elf


def preprocessed(ino: Path) -> str:
    """A sketch as the IDE makes C++ of it: Arduino.h in front, prototypes in front of the first function."""
    text = ino.read_text(encoding="utf-8")
    functions = list(re.finditer(r"^((?:\w+ )+\**\w+\([^()]*\)) \{", text, re.MULTILINE))
    assert {"setup", "loop"} <= {match[1].split("(")[0].split()[-1] for match in functions}
    at = functions[0].start()
    prototypes = "".join(f"{match[1]};\n" for match in functions)
    line = text[:at].count("\n") + 1
    return (
        f'#include <Arduino.h>\n#line 1 "{ino}"\n{text[:at]}#line {line} "{ino}"\n{prototypes}'
        f'#line {line} "{ino}"\n{text[at:]}'
    )


def outputs_of(program: Program, sample: Array) -> list[Array]:
    """What the reference computes, each output as one row of the program's own integers or floats."""
    values = program.run(sample, as_float=False)
    return [np.asarray(value).reshape(-1) for value in (values if isinstance(values, list) else [values])]


def check_printed(lines: list[str], program: Program, sample: Array) -> None:
    """That a sketch has printed what the reference computes."""
    (expected,) = outputs_of(program, sample)
    assert re.fullmatch(r"small: \d+ us", lines[0])
    label, _, values = lines[1].partition(": ")
    assert label == "output 0"
    largest = re.fullmatch(r"  largest: index (\d+), value (\S+)", lines[2])
    assert largest is not None
    assert int(largest[1]) == int(np.argmax(expected))
    quant = program.outputs[0].type.quant
    if quant is None:
        np.testing.assert_allclose(
            np.array(values.split(), np.float64), expected.astype(np.float64), atol=1e-4
        )
        real = float(expected.max())
    else:
        assert [int(value) for value in values.split()] == expected.tolist()
        real = (int(expected.max()) - quant.one_zero_point) * quant.one_scale
    assert float(largest[2]) == pytest.approx(real, abs=1e-4)
    assert lines[3] == "done"


def run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
