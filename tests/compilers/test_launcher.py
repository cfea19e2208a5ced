# SPDX-License-Identifier: Apache-2.0
"""The launcher keeps what is the same, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.compilers import launcher
from tests.ops.objects import COMPILED, DIRECTORY

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("gcc") is None, reason="no gcc on a Linux machine"
)

# Notes each start, and compiles.
_NOTING = """\
#!/bin/sh
echo "$*" >> {log}
exec {gcc} "$@"
"""
_TEXTS = {
    "a.c": '#include "in/one.h"\nint a = TWO;\n',
    "in/one.h": "#include <two.h>\n",
    "lib/two.h": "#define TWO 2\n",
}


class Compilers:
    """A launcher in front of a compiler that notes what it is started for."""

    def __init__(self, where: Path) -> None:
        self.where, self.log = where, where / "log"
        real, front, self.kept = where / "real", where / "front", where / "kept"
        for directory in (real, front, self.kept):
            directory.mkdir()
        self.log.touch()
        # Another launcher of this name may be on PATH.
        gcc = shutil.which("gcc", path="/usr/bin") or shutil.which("gcc")
        (real / "gcc").write_text(_NOTING.format(log=self.log, gcc=gcc))
        (real / "gcc").chmod(0o755)
        self.command = launcher.build(front / "gcc", str(real), "-Wall", "-Wextra", "-Werror")
        self.path = os.pathsep.join([str(front), str(real), os.environ["PATH"]])

    def run(
        self, place: str, *words: str, files: Mapping[str, str] | None = None, keeps: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Compile a.c, which lies with its headers in `place`."""
        folder = self.where / place
        for name, text in (_TEXTS | dict(files or {})).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        command = [str(self.command), f"-I{folder}", "-I", f"{folder}/lib", *words, "-c", f"{folder}/a.c"]
        environment = os.environ | {
            "PATH": self.path,
            COMPILED: str(self.kept) if keeps else "",
        }
        return subprocess.run(
            [*command, "-o", f"{folder}/a.o"],
            env=environment,
            cwd=self.where,
            capture_output=True,
            text=True,
            check=False,
        )

    def compiles(
        self, place: str, *words: str, files: Mapping[str, str] | None = None, keeps: bool = True
    ) -> bool:
        """Whether the compiler is started. Either way the object is right, and nothing is said."""
        folder, before = self.where / place, len(self.log.read_text())
        done = self.run(place, *words, files=files, keeps=keeps)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        made, started = (folder / "a.o").read_bytes(), len(self.log.read_text()) > before
        self.run(place, *words, files=files, keeps=False)
        assert (folder / "a.o").read_bytes() == made
        return started


@pytest.fixture(scope="module")
def compilers(tmp_path_factory: pytest.TempPathFactory) -> Compilers:
    return Compilers(tmp_path_factory.mktemp("compilers"))


def test_the_same_is_compiled_once_and_anything_else_anew(compilers: Compilers) -> None:
    compiles = compilers.compiles
    assert compiles("first")
    assert not compiles("first")
    assert not compiles("other place")
    assert compiles("first", keeps=False)
    assert not compiles("third", files={"unrelated.h": "int x;\n"})
    assert compiles("first", "-O2")
    assert compiles("first", "-Wall")
    assert compiles("first", "-D", "X=1")
    assert compiles("first", "-D", "X=2")
    assert compiles("source", files={"a.c": _TEXTS["a.c"] + "int more;\n"})
    assert compiles("header", files={"lib/two.h": "#define TWO 3\n"})
    # A header that is found before the one that was taken, or would be in another way of looking.
    assert compiles("hidden", files={"in/two.h": "#define TWO 4\n"})
    assert compiles("hidden too", files={"two.h": "#define TWO 5\n"})
    asked = {"a.c": "#if __has_include(<three.h>)\nint three;\n#else\nint two;\n#endif\n"}
    assert compiles("asked", files=asked)
    assert compiles("answered", files=asked | {"three.h": ""})
    forced = {"forced.h": "#define FORCED 1\n"}
    word = str(compilers.where / "forced" / "forced.h")
    compilers.run("forced", files=forced)
    assert compiles("forced", "-include", word)
    assert compiles("forced", "-include", word, files={"forced.h": "#define FORCED 2\n"})


@pytest.mark.parametrize(
    "files",
    [
        {"a.c": "#define HEADER <two.h>\n#include HEADER\nint a = TWO;\n"},
        {"a.c": "#define NAME <two.h>\n#if __has_include(NAME)\nint a;\n#endif\n"},
        {"lib/two.h": "#define TWO (__TIME__[0] != 0)\n"},
        {"a.c": '__asm__(".incbin \\"log\\"");\n'},
    ],
    ids=["included by a macro", "asked for by a macro", "time", "incbin"],
)
def test_what_only_the_compiler_knows_is_never_kept(
    files: dict[str, str], compilers: Compilers, tmp_path: Path
) -> None:
    for _ in range(2):
        before = len(compilers.log.read_text())
        assert compilers.run(tmp_path.name, files=files).returncode == 0
        assert len(compilers.log.read_text()) > before


def test_a_place_counts_where_it_is_named(compilers: Compilers) -> None:
    compiles = compilers.compiles
    for number, words in enumerate((["-g"], ["-fsanitize=address"])):
        assert compiles(f"one {number}", *words)
        assert not compiles(f"one {number}", *words)
        assert compiles(f"two {number}", *words)
    named = {"a.c": "const char *name = __FILE__;\n"}
    assert compiles("named", files=named)
    assert compiles("named again", files=named)
    # But not where it is left out of what is named.
    for place in ("mapped", "somewhere else"):
        mapped = f"-ffile-prefix-map={compilers.where / place}=."
        here = f"-ffile-prefix-map={compilers.where}=here"
        assert compiles(place, "-g", here, mapped, files=named) == (place == "mapped")
    assert compiles("mapped", "-g", f"-ffile-prefix-map={compilers.where / 'mapped'}=other", files=named)


def test_the_trace_counts_where_it_is_used(compilers: Compilers) -> None:
    common = {
        "a.c": '#include "tinyet_common.h"\nint kernel;\n',
        "tinyet_common.h": "#if TINYET_TRACE\nvoid tinyet_trace_begin(void);\n#endif\n",
    }
    assert compilers.compiles("kernel", files=common)
    assert not compilers.compiles("kernel", "-DTINYET_TRACE=1", files=common)
    model = common | {"a.c": "#if TINYET_TRACE\nint trace;\n#endif\nint model;\n"}
    assert compilers.compiles("model", files=model)
    assert compilers.compiles("model", "-DTINYET_TRACE=1", files=model)
    assert not compilers.compiles("model", "-DTINYET_TRACE=1", files=model)


def test_a_board_s_macro_counts_where_it_is_named(compilers: Compilers) -> None:
    kernel = {"a.c": "int another_kernel;\n"}
    assert compilers.compiles("any board", "-DTINYET_CLOCK_HZ=1u", files=kernel)
    assert not compilers.compiles("any board", "-DTINYET_CLOCK_HZ=2u", files=kernel)
    assert not compilers.compiles("any board", files=kernel)
    # Debug information of this kind keeps macros.
    mapped = f"-ffile-prefix-map={compilers.where}=."
    for value in (1, 2):
        assert compilers.compiles("any board", "-g3", mapped, f"-DTINYET_CLOCK_HZ={value}", files=kernel)
    for number, text in enumerate(("TINYET_CLOCK_HZ", "0\n#define JOIN(x) TINYET_##x\n")):
        clock = {"lib/two.h": f"#define TWO {text}\n"}
        for value in (1, 2):
            assert compilers.compiles(f"one board {number}", f"-DTINYET_CLOCK_HZ={value}", files=clock)
            assert not compilers.compiles(f"one board {number}", f"-DTINYET_CLOCK_HZ={value}", files=clock)


def test_what_is_said_is_said_each_time(compilers: Compilers) -> None:
    warned = {"a.c": "#warning careful\n"}
    for _ in range(2):
        done = compilers.run("warned", files=warned)
        assert done.returncode == 0
        assert "careful" in done.stderr
        failed = compilers.run("failed", "-Werror", files=warned)
        assert failed.returncode == 1
        assert "careful" in failed.stderr
        assert compilers.run("wrong", files={"a.c": "int f(\n"}).returncode == 1


def test_names_of_a_model_s_folders_do_not_count_for_the_library(compilers: Compilers) -> None:
    """In debug information, which says lines alone. Where it names the project's own folder, it counts."""

    def compiles(place: str, to: str, *words: str, model: str = "one", source: str = "tinyet_a.c") -> bool:
        folder = compilers.where / place / model
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "header.h").write_text("static inline int two(void) { return 2; }\n")
        (folder / source).write_text('#include "header.h"\nint a(void);\nint a(void) { return two(); }\n')
        before, made = len(compilers.log.read_text()), folder / "a.o"
        command = [str(compilers.command), *words, f"-ffile-prefix-map={compilers.where / place}={to}"]
        command += ["-c", f"{model}/{source}", "-o", str(made)]
        environment = os.environ | {"PATH": compilers.path, COMPILED: str(compilers.kept)}
        subprocess.run(command, env=environment, cwd=compilers.where / place, check=True)
        assert str(compilers.where).encode() not in made.read_bytes() or to != "."
        return len(compilers.log.read_text()) > before

    assert compiles("here", ".", "-g")
    assert compilers.log.read_text().splitlines()[-1].startswith("-g1 ")
    assert not compiles("there", ".", "-g", model="two")
    assert not compiles("there", ".", "-g1", model="two")
    assert compiles("there", "/absolute", "-g")
    assert compiles("here", "/another", "-g")
    assert compiles("there", ".", "-g", "-fsanitize=address", model="two")
    assert compiles("here", ".", "-g", "-fsanitize=address")
    assert compiles("here", ".", "-g3")
    assert compiles("there", ".", "-g3", model="two")
    assert compiles("here", ".", "-g", source="model.c")
    assert compiles("there", ".", "-g", source="model.c", model="two")
    assert compilers.log.read_text().splitlines()[-1].startswith("-g ")


def test_rules_name_what_an_object_comes_of(compilers: Compilers) -> None:
    for place in ("rule", "rule again"):
        folder = compilers.where / place
        rule = folder / "a.rule"
        assert compilers.run(place, "-O1", "-MD", "-MP", "-MT", "target", "-MF", str(rule)).returncode == 0
        words = rule.read_text().replace("\\\n", " ").replace("\\ ", "?").split()
        assert words[0] == "target:"
        name = str(folder).replace(" ", "?")
        assert {f"{name}/a.c", f"{name}/in/one.h", f"{name}/lib/two.h", f"{name}/lib/two.h:"} <= set(words)
        assert compilers.run(place, "-O1", "-MMD").returncode == 0
        assert (folder / "a.d").is_file()


def test_other_starts_are_left_to_the_compiler(compilers: Compilers, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int main(void) { return 7; }\n")
    others = (["-E"], ["-S"], ["-c", "-fsyntax-only"], ["-v", "-c"], ["-c", "-save-temps"])
    for words in others:
        for _ in range(2):
            before = len(compilers.log.read_text())
            environment = os.environ | {
                "PATH": compilers.path,
                COMPILED: str(compilers.kept),
            }
            command = [str(compilers.command), *words, "a.c", "-o", "a.out"]
            subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
            assert len(compilers.log.read_text()) > before


def test_a_program_is_made_once(compilers: Compilers) -> None:
    def starts(
        place: str, *words: str, text: str = "int more(void) { return 3; }\n", out: str = "program"
    ) -> bool:
        """Whether the compiler is started for a program of a source, an object and another source."""
        folder = compilers.where / place
        folder.mkdir(exist_ok=True)
        (folder / "main.c").write_text("int more(void);\nint main(void) { return more(); }\n")
        (folder / "more.c").write_text(text)
        (folder / "other.c").write_text("int other;\n")
        environment = os.environ | {"PATH": compilers.path, COMPILED: str(compilers.kept)}

        def start(*command: str) -> None:
            subprocess.run([str(compilers.command), *command], cwd=folder, env=environment, check=True)

        start("-c", "more.c", "-o", "more.o")
        before = len(compilers.log.read_text())
        (folder / out).unlink(missing_ok=True)
        start("main.c", "more.o", "other.c", *words, *(["-o", out] if out != "a.out" else []))
        done = subprocess.run([str(folder / out)], check=False)
        assert done.returncode == (3 if "3" in text else 4)
        return len(compilers.log.read_text()) > before

    assert starts("program")
    assert not starts("program")
    assert not starts("program elsewhere")
    assert starts("program", "-lm")
    assert starts("program", text="int more(void) { return 4; }\n")
    # Whatever it is to be called.
    assert not starts("program", out="other")
    assert not starts("program elsewhere", out="a.out")
    # What else a linker reads and writes is not looked into.
    for word in ("-L.", "-Wl,-Map=map"):
        assert starts("program", word)
        assert starts("program", word)
    assert (compilers.where / "program" / "map").is_file()


def test_sources_are_checked_once(compilers: Compilers) -> None:
    def starts(place: str, *words: str, text: str = "int b;\n", status: int = 0) -> bool:
        folder = compilers.where / place
        folder.mkdir(exist_ok=True)
        (folder / "a.c").write_text("int a;\n")
        (folder / "b.c").write_text(text)
        environment = os.environ | {"PATH": compilers.path, COMPILED: str(compilers.kept)}
        before = len(compilers.log.read_text())
        command = [str(compilers.command), "-fsyntax-only", *words, "a.c", "b.c"]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
        assert done.returncode == status
        assert bool(done.stderr) == bool(status)
        return len(compilers.log.read_text()) > before

    assert starts("checked")
    assert not starts("checked")
    assert not starts("checked elsewhere")
    assert starts("checked", "-Wall", "-g")
    assert not starts("checked elsewhere", "-Wall", "-g")
    for _ in range(2):
        assert starts("checked", text="int b\n", status=1)
    assert starts("checked", text="const char *b = __FILE__;\n")
    assert starts("checked elsewhere", text="const char *b = __FILE__;\n")
    assert not starts("checked")


def test_objects_that_are_kept_elsewhere_are_not_kept_again(compilers: Compilers, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int a;\n")
    environment = os.environ | {"PATH": compilers.path, COMPILED: str(compilers.kept)}
    for directory, starts in ((tmp_path, 2), (tmp_path / "another", 1)):
        before = len(compilers.log.read_text().splitlines())
        for _ in range(2):
            command = [str(compilers.command), "-c", f"{tmp_path}/a.c", "-o", f"{tmp_path}/a.o"]
            subprocess.run(command, env=environment | {DIRECTORY: str(directory)}, check=True)
        assert len(compilers.log.read_text().splitlines()) - before == starts


def test_a_compiler_that_is_no_longer_on_the_path(compilers: Compilers) -> None:
    environment = {"PATH": str(compilers.command.parent)}
    done = subprocess.run(
        [str(compilers.command), "--version"], env=environment, capture_output=True, check=True
    )
    assert b"gcc" in done.stdout.lower()
