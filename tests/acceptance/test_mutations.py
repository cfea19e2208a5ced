# SPDX-License-Identifier: Apache-2.0
"""The proof proves something: one thing broken in a generated project, and `validate` says which layer.

Each case edits the text of one generated file the way a bug would, runs the project on this machine, and
expects the mismatch at the layer that the edit is in. The unedited project passes.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.golden.programs import samples, separable
from tinyet import generate
from tinyet.project import Project

# Exact halves are rare: a layer meets one in about 2**(right shift) values.
COUNT = 100

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


@dataclass(frozen=True)
class Mutation:
    """A single edit: in `file`, the first place where `pattern` (a regular expression) is becomes `text`.

    layer: the first layer that computes something else by it; None where any may be.
    """

    file: str
    pattern: str
    text: str
    layer: int | None


MUTATIONS = {
    # ---- one rounding step
    "round_shift: negative halves go up": Mutation(
        "tinyet_common.h", r"\(mask >> 1\) \+ \(x < 0 \? 1 : 0\)", "(mask >> 1)", None
    ),
    "round_shift: truncates": Mutation(
        "tinyet_common.h", r"\(x & mask\) > threshold", "(x & mask) > mask", None
    ),
    "high_mul: does not round": Mutation("tinyet_common.h", r" \+ \(INT64_C\(1\) << 30\)\)", ")", None),
    "high_mul: adds a quarter, not a half": Mutation(
        "tinyet_common.h", r"INT64_C\(1\) << 30", "INT64_C(1) << 29", None
    ),
    # ---- one padding value
    "convolution pads with 0, not with the zero point": Mutation(
        "separable.c", r"\.in_zero_point = -7,", ".in_zero_point = 0,", 0
    ),
    "depthwise convolution pads with 0": Mutation(
        "separable.c", r"\.in_zero_point = -128,", ".in_zero_point = 0,", 1
    ),
    "convolution starts one row lower": Mutation("separable.c", r"\.pad_top = 1,", ".pad_top = 0,", 0),
    # ---- one arena offset
    "the depthwise layer writes one byte further": Mutation(
        "separable.c", r"(?<=\(arena \+ 144\), \(int8_t \*\)\(void \*\)\(arena \+ )0", "1", 1
    ),
    "the linear layer reads one byte further": Mutation(
        "separable.c", r"(?<=tinyet_linear_s8\(\(const int8_t \*\)\(const void \*\)\(arena \+ )0", "1", 2
    ),
    "the scratch lies over the output": Mutation("separable.c", r"arena \+ 192", "arena + 150", 0),
    # ---- one constant
    "one weight": Mutation("separable.c", r"(conv2d_1_weights\[36\] [^{]*\{\s*)-127, 95", r"\1-127, 96", 1),
    "one bias": Mutation("separable.c", r"(linear_2_bias\[5\] [^{]*\{\s*)2826", r"\g<1>3826", 2),
    "one multiplier": Mutation(
        "separable.c", r"(linear_2_multiplier\[5\] [^{]*\{\s*)2003554593", r"\g<1>1983554593", 2
    ),
    "a clamp": Mutation("separable.c", r"\.clamp_low = -128,", ".clamp_low = -127,", 0),
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return generate(separable(), "mps2_an386", tmp_path / "separable")


def test_the_unbroken_project_is_exact(project: Project) -> None:
    result = project.validate(*samples(project.program, COUNT), on="host")
    assert result.bit_exact
    assert (result.samples, result.mismatches, result.first_mismatch) == (COUNT, 0, None)


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_one_is_caught(project: Project, name: str) -> None:
    mutation = MUTATIONS[name]
    place = project.path / "lib" / "separable" / "src" / mutation.file
    text, count = re.subn(mutation.pattern, mutation.text, place.read_text(encoding="utf-8"), count=1)
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
