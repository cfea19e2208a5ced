# SPDX-License-Identifier: Apache-2.0
"""Names of classes: what a program takes, what its file keeps, and what the generated header makes of them."""

from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from flatbuffers.table import Table

from tests import small
from tests.golden.programs import nested
from tinyet.boards.cpus import Target
from tinyet.deployment import deploy
from tinyet.emit.model import model_files
from tinyet.errors import ModelError, ProgramError
from tinyet.ir import DType, Tensor, TensorType
from tinyet.program import Program, check_labels, load
from tinyet.tet.format import DIGEST_BYTES

SCORES = Tensor("scores", TensorType((1, 3), DType.FLOAT32))
INDEX = Tensor("index", TensorType((1,), DType.INT32))
# What C reads otherwise: quotes, escapes, digits behind an escape, trigraphs, comments, and what is not ASCII.
HOSTILE = (
    'say "hi"',
    "back\\slash\\n",
    "größer1",
    "??/ ??=",
    "/* no */ // end",
    "是",
    "%s, {0}",
    "a, b",
    "'",
    "é7",
)


# ---------------------------------------------------------------- what is taken


def test_one_name_for_each_element() -> None:
    assert check_labels(["a", "b", "c"], SCORES, "here") == ("a", "b", "c")
    assert check_labels(("a", "a", "ß c"), SCORES, "here") == ("a", "a", "ß c")
    assert check_labels(["a", "b"], INDEX, "here") == ("a", "b"), (
        "an index can stand for any number of classes"
    )


@pytest.mark.parametrize(
    ("labels", "output", "message"),
    [
        ("abc", SCORES, "the labels are a str"),
        ({"a", "b", "c"}, SCORES, "the labels are a set"),
        ([], SCORES, r"0 label\(s\) for the output scores, which is of 3 elements"),
        (["a", "b"], SCORES, r"2 label\(s\) for the output scores, which is of 3 elements"),
        ([], INDEX, r"0 label\(s\) for the output index, which is of an index, some"),
        (["a", 1, "c"], SCORES, "label 1 is 1, not a name"),
        (["", "b", " "], SCORES, "label 0 is '', not a name; label 2 is ' ', not a name"),
        (
            ["a\n", "b\0", "\ud800"],
            SCORES,
            r"label 0 is 'a\\n', .*; label 1 is 'b\\x00', .*; label 2 is '\\ud800'",
        ),
    ],
)
def test_what_is_no_label(labels: object, output: Tensor, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        check_labels(labels, output, "labels in model.py")
    assert caught.value.where == "labels in model.py"
    assert caught.value.hint


# ---------------------------------------------------------------- files


def labelled(*labels: str) -> Program:
    return replace(small.program(), labels=labels)


def test_labels_come_back(tmp_path: Path) -> None:
    program = labelled("a", "ß", "a", "d", "e")
    program.save(tmp_path / "labelled.tet")
    again = load(tmp_path / "labelled.tet")
    assert again.labels == ("a", "ß", "a", "d", "e")
    assert again.data == program.data
    assert program.hash != small.program().hash


def test_a_program_without_labels_is_written_as_before_there_were_any() -> None:
    """Its hash must not change: the root table knows no field behind `subgraphs`, the eighth."""
    payload = bytearray(small.program().data[:-DIGEST_BYTES])
    root = Table(payload, struct.unpack_from("<I", payload)[0])
    (back,) = struct.unpack_from("<i", payload, root.Pos)
    (bytes_of_vtable,) = struct.unpack_from("<H", payload, root.Pos - back)
    assert bytes_of_vtable <= 4 + 2 * 8
    assert root.Offset(4 + 2 * 8) == 0


def test_a_file_with_labels_that_do_not_fit_is_refused(tmp_path: Path) -> None:
    labelled("only", "two").save(tmp_path / "wrong.tet")
    with pytest.raises(ProgramError, match=r"2 label\(s\) for the output") as caught:
        load(tmp_path / "wrong.tet")
    assert caught.value.where == str(tmp_path / "wrong.tet")


# ---------------------------------------------------------------- the header


def header(*labels: str) -> str:
    deployment = deploy(nested().graph, Target("cortex-m3", frozenset()))
    files = model_files(deployment, "kws", ["kws"], labels=labels, program_hash="ab" * 32, version="1.2.3")
    return files["kws.h"]


def test_macros_tell_version_and_hash() -> None:
    text = header()
    assert '#define KWS_TINYET_VERSION "1.2.3"\n' in text
    assert f'#define KWS_MODEL_HASH "{"ab" * 32}"\n' in text
    assert "LABELS" not in text
    assert "CLASSES" not in text


PROGRAM = """
#include <stdio.h>
#include "kws.h"
static const char *const labels[] = KWS_LABELS;
typedef char one_name_a_class[sizeof labels / sizeof *labels == KWS_NUM_CLASSES ? 1 : -1];
int main(void) {
  for (int i = 0; i < KWS_NUM_CLASSES; i++) {
    puts(labels[i]);
  }
  return 0;
}
"""


@pytest.mark.parametrize(
    "compiler", [("gcc", "-xc", "-std=c11"), ("g++", "-xc++", "-std=c++17", "-trigraphs")]
)
@pytest.mark.parametrize("labels", [HOSTILE, tuple(f"class {i}" for i in range(100)), ("one",)], ids=len)
def test_the_labels_that_c_sees(labels: tuple[str, ...], compiler: tuple[str, ...], tmp_path: Path) -> None:
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"{compiler[0]} is not installed")
    deployment = deploy(nested().graph, Target("cortex-m3", frozenset()))
    files = model_files(deployment, "kws", ["kws"], labels=labels)
    assert max(map(len, files["kws.h"].splitlines())) < 140
    for path, text in files.items():
        (tmp_path / path).write_text(text, encoding="utf-8")
    (tmp_path / "main.c").write_text(PROGRAM)
    warnings = ("-Wall", "-Wextra", "-Wno-unused-local-typedefs", "-pedantic", "-Werror")
    command = [*compiler, *warnings, "main.c", "-o", "labels"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    seen = subprocess.run([tmp_path / "labels"], capture_output=True, check=True, timeout=10).stdout
    assert seen.decode().splitlines() == list(labels)
