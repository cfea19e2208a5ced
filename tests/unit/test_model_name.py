# SPDX-License-Identifier: Apache-2.0
"""What a model may be called: whatever else is called so, somewhere, is refused or made another name."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import small
from tests.cli.command import tinyet
from tinyet.errors import UsageError
from tinyet.files import model_name
from tinyet.files.model_name import check_name, name_problem, safe_name
from tinyet.projects.one import generate

REFUSED = [
    # headers, whatever their case
    "stdint", "string", "math", "Math", "stdio", "time", "limits", "print", "Wire", "SPI",
    "arduino", "arm_math", "zephyr",
    # devices of Windows, targets of CMake, libraries of toolchains, words of CMake
    "con", "NUL", "com1", "test", "all", "install", "clean", "package", "help", "m", "c", "gcc", "pthread", "rt",
    "STATIC", "VERSION", "CMAKE", "PROJECT",
    # tinyet's own
    "tinyet", "tinyet_common", "TINYET_x", "main", "model_desc", "print_outputs",
    # no identifiers of C
    "é", "größe", "", "2d", "a b", "a-b", "a.b", "_x", "a/b", "../x", "a\n", "١", "a;b", "$(x)", "x" * 64,
]  # fmt: skip
# Keywords, functions and macros of C are no files: with more behind them they are names like others.
ALLOWED = [
    "int", "for", "class", "register", "exit", "abs", "linux", "ON",
    "if", "KWS", "kws", "a", "model", "X" * 57,
]  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_names_come_with_one_that_is_not(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be called") as caught:
        check_name(name, "--name")
    assert caught.value.hint is not None
    other = caught.value.hint.rpartition(" ")[2]
    assert check_name(other) == other


@pytest.mark.parametrize("name", ALLOWED)
def test_allowed_names_stay(name: str) -> None:
    assert check_name(name) == name == safe_name(name)


@given(
    st.one_of(st.text(max_size=80), st.sampled_from(REFUSED), st.from_regex(r"\A(?i:tinyet|con|test)\w*\Z"))
)
def test_every_text_gives_a_name(text: str) -> None:
    assert name_problem(safe_name(text)) is None


def test_every_header_of_the_c_libraries_is_refused() -> None:
    """<name>.h of ours must not stand for it."""
    found: set[str] = set()
    for compiler in ("arm-none-eabi-gcc", "avr-gcc", "riscv64-unknown-elf-gcc"):
        if shutil.which(compiler) is None:
            continue
        done = subprocess.run(
            [compiler, "-E", "-v", "-xc", "/dev/null"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        places = re.findall(r"^ (\S+)$", done.stderr.partition("search starts here:")[2], re.MULTILINE)
        for place in places:
            # A compiler's own are mostly intrinsics of processors; a system's are of whatever is installed.
            if "/lib/gcc" in place or place.startswith("/usr/include"):
                continue
            found.update(path.stem for path in Path(place).glob("*.h"))
    known = {name for name in found if re.fullmatch(r"[A-Za-z]\w*", name)}
    assert {name for name in known if name_problem(name) is None} == set()


def test_a_models_file_may_be_called_as_it_likes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name is made safe; one that was asked for is refused before anything is done."""
    monkeypatch.chdir(tmp_path)
    small.program().save(tmp_path / "small.tet")
    for name in ("string", "é"):
        ended = tinyet("generate", "small.tet", "--board", "microbit", "--name", name)
        assert ended.status == 2
        assert f"cannot be called '{name}'" in ended.err
        assert "--name" in ended.err
    assert not (tmp_path / "build").exists()
    with pytest.raises(UsageError, match="header"):
        generate(small.program(), "microbit", tmp_path / "p", name="string")
    assert not (tmp_path / "p").exists()


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
def test_strange_names_that_are_allowed_build(tmp_path: Path) -> None:
    """All in one build of CMake, each as a library beside the others, without programs."""
    names = ["int", "ON", "if", "KWS"]
    assert set(names) < set(ALLOWED)
    lines = ["cmake_minimum_required(VERSION 3.20)", "project(all_of_them C)"]
    for name in names:
        generate(small.program(), "microbit", tmp_path / name, kind="cmake", name=name)
        lines.append(f"add_subdirectory({name})")
    uses = "".join(f'#include "{name}.h"\n' for name in names)
    calls = " + ".join(f"{name}_run()" for name in names)
    (tmp_path / "main.c").write_text(f"{uses}int main(void) {{ return (int)({calls}); }}\n")
    lines += ["add_executable(program main.c)"]
    lines += [f"target_link_libraries(program PRIVATE {name}::{name})" for name in names]
    (tmp_path / "CMakeLists.txt").write_text("\n".join(lines) + "\n")
    for command in (["cmake", "-S", ".", "-B", "b"], ["cmake", "--build", "b", "-j2"]):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
    assert subprocess.run([tmp_path / "b" / "program"], check=False, timeout=60).returncode == 0


def test_the_lists_hold_no_word_twice_and_only_words() -> None:
    for words, reason in model_name._TAKEN:
        assert words, reason
        assert all(word == word.lower() for word in words)
