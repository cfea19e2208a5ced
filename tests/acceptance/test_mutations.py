# SPDX-License-Identifier: Apache-2.0
"""The proof proves something: one thing broken in a generated project, and `validate` says which layer.

Each case edits the text of one generated file the way a bug would, runs the project on this machine, and
expects the mismatch at the layer that the edit is in. The unedited project passes.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.golden.programs import Builder, input_s8, samples, separable
from tinyet import generate
from tinyet.ops.mean import Mean
from tinyet.program import Program
from tinyet.project import Project

# Exact halves are rare: a layer meets one in about 2**(right shift) values.
COUNT = 100

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


def averages() -> Program:
    """Means over pixels: a kernel that requantizes by the rule as it is written."""
    b = Builder("averages")
    x = input_s8("x", (1, 3, 3, 64), 0.05, -7)
    y = b.add(Mean((1, 2)), x, out="means", source="return x.mean((1, 2))", quant=(0.021, 3))
    return b.finish((x,), y)


Edit = Callable[[re.Match[str]], str]


def by(amount: int) -> Edit:
    """Adds to the number behind the pattern's first group."""
    return lambda match: f"{match[1]}{int(match[2]) + amount}"


@dataclass(frozen=True)
class Mutation:
    """A single edit: in `file`, the first place where `pattern` (a regular expression) is becomes `edit`.

    layer: the first layer that computes something else by it; None where any may be.
    """

    file: str
    pattern: str
    edit: str | Edit
    layer: int | None
    make: Callable[[], Program] = separable


def padding(layer: int) -> str:
    """The value that a convolution pads with."""
    return rf"(conv2d_{layer}_params = \{{[^;]*?\.in_zero_point = )(-?\d+)"


MUTATIONS = {
    # ---- one rounding step, of the rule itself
    "the rule's second rounding: negative halves go up": Mutation(
        "tinyet_common.h", r"\(mask >> 1\) \+ \(x < 0 \? 1 : 0\)", "(mask >> 1)", 0, averages
    ),
    "the rule's second rounding: truncates": Mutation(
        "tinyet_common.h", r"\(x & mask\) > threshold", "(x & mask) > mask", 0, averages
    ),
    "the rule's first rounding: truncates": Mutation(
        "tinyet_common.h", r" \+ \(INT64_C\(1\) << 30\)\)", ")", 0, averages
    ),
    "the rule's first rounding: adds a quarter": Mutation(
        "tinyet_common.h", r"INT64_C\(1\) << 30", "INT64_C(1) << 29", 0, averages
    ),
    # ---- and of the cheap form that convolutions take where it is exact
    "a convolution's second rounding: negative halves go up": Mutation(
        "tinyet_int16x2.h", r"\(high - \(int32_t\)\(\(uint32_t\)high >> 31\)\)", "high", None
    ),
    "a convolution's second rounding: truncates": Mutation(
        "tinyet_int16x2.h", r"2 \* zero_point \+ 1\)\) >> 1", "2 * zero_point)) >> 1", None
    ),
    "a convolution's first rounding: truncates": Mutation(
        "tinyet_int16x2.h", r" \+ \(INT64_C\(1\) << 31\)\) >> 32", ") >> 32", None
    ),
    # ---- one padding value
    "the convolution pads with another value": Mutation("separable.c", padding(0), by(7), 0),
    "the depthwise convolution pads with another value": Mutation("separable.c", padding(1), by(128), 1),
    "the convolution starts one row lower": Mutation("separable.c", r"(\.pad_top = )(1)", by(-1), 0),
    # ---- one arena offset
    "the depthwise layer writes one byte further": Mutation(
        "separable.c", r"(tinyet_depthwise_s8\(\w+, \w+)", r"\1 + 1", 1
    ),
    "the linear layer reads one byte further": Mutation(
        "separable.c", r"(tinyet_linear_s8\(\w+)", r"\1 + 1", 2
    ),
    "the scratch reaches into the output": Mutation(
        "separable.c", r"(scratch_0 = arena \+ )(\d+)", by(-112), 0
    ),
    # ---- one constant
    "one weight": Mutation("separable.c", r"(conv2d_1_weights\[\d+\] [^{]*\{\s*)(-127)", by(1), 1),
    "one bias": Mutation("separable.c", r"(linear_2_bias\[\d+\] [^{]*\{\s*)(-?\d+)", by(1000), 2),
    "one multiplier": Mutation(
        "separable.c", r"(linear_2_multiplier\[\d+\] [^{]*\{\s*)(\d+)", by(-20_000_000), 2
    ),
    "a clamp": Mutation("separable.c", r"(\.clamp_low = )(-128)", by(1), 0),
}


PINS = {
    "separable": {
        "conv2d_0": "tinyet_conv2d_s8",
        "conv2d_1": "tinyet_depthwise_s8",
        "linear_2": "tinyet_linear_s8",
    }
}
"""By a program's name: kernels that are written for no core."""


def project_of(program: Program, directory: Path) -> Project:
    """For a core whose C this machine's compiler understands."""
    return generate(program, "xtensa_lx60", directory, pins=PINS.get(program.name))


@pytest.mark.parametrize("make", [separable, averages])
def test_the_unbroken_project_is_exact(make: Callable[[], Program], tmp_path: Path) -> None:
    project = project_of(make(), tmp_path / "project")
    result = project.validate(*samples(project.program, COUNT), on="host")
    assert result.bit_exact
    assert (result.samples, result.mismatches, result.first_mismatch) == (COUNT, 0, None)


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_one_is_caught(name: str, tmp_path: Path) -> None:
    mutation = MUTATIONS[name]
    project = project_of(mutation.make(), tmp_path / "project")
    place = project.path / "lib" / project.name / "src" / mutation.file
    text, count = re.subn(mutation.pattern, mutation.edit, place.read_text(encoding="utf-8"), count=1)
    assert count == 1, "the edit no longer finds its place in the generated code"
    place.write_text(text, encoding="utf-8")
    result = project.validate(*samples(project.program, COUNT), on="host")
    assert not result.bit_exact
    assert 0 < result.mismatches <= COUNT
    first = result.first_mismatch
    assert first is not None, "no layer is named"
    assert mutation.layer is None or first.layer == mutation.layer
    assert first.device != first.host
    assert first.count > 0
    layer = result.layers[first.layer]
    assert (layer.name, layer.op, layer.kernel) == (first.name, first.op, first.kernel)
    assert re.fullmatch(r"model\.py:1\d: .+", first.source), "the line of the user's model"
    assert first.source in str(first.error())
