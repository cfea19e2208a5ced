# SPDX-License-Identifier: Apache-2.0
"""Operators that users register, by the custom code of a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from flatbuffers import flexbuffers

from tests.tflite_files import Writer
from tinyet import from_tflite
from tinyet.custom import CallSite, Form, custom_op
from tinyet.errors import TinyetError
from tinyet.ir import Array

SOURCE = """
#include <stdint.h>
void scaled_rows(const float *x, float *y, int32_t count, float factor) {
  for (int32_t i = 0; i < count; i++) y[i] = factor * x[i];
}
"""


def scaled(site: CallSite, inputs: list[Array]) -> Array:
    total = site.params["factor"] + sum(site.params["more"])  # type: ignore[operator,arg-type]
    return np.asarray(inputs[0].astype(np.float32) * np.float32(total), np.float32)


@pytest.fixture(scope="module")
def registered() -> None:
    custom_op(
        "tflite::ScaledRows",
        name="scaled_rows",
        infer=lambda site: site.x.shape,
        float32=Form(scaled, "scaled_rows", SOURCE),  # type: ignore[arg-type]
    )


def file_of(options: bytes, folder: Path, code: str = "ScaledRows") -> Path:
    w = Writer()
    x, y = w.value((1, 3), "float32", None), w.value((1, 3), "float32", None)
    w.call("CUSTOM", (x,), (y,), custom=code, custom_options=options)
    path = folder / "custom.tflite"
    path.write_bytes(w.file((x,), (y,)))
    return path


@pytest.mark.usefixtures("registered")
def test_by_the_custom_code(tmp_path: Path) -> None:
    options = {"factor": 2.5, "more": [1, 2], "deep": True, "mode": "rows"}
    program = from_tflite(file_of(bytes(flexbuffers.Dumps(options)), tmp_path))
    answer = program.run(np.array([[1, -2, 4]], np.float32))
    np.testing.assert_array_equal(answer, np.array([[5.5, -11, 22]], np.float32))


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (bytes(flexbuffers.Dumps({"factor": {"a": 1}})), "no number, text, or list"),
        (bytes(flexbuffers.Dumps([1, 2])), "no options by name"),
        (b"\xff\xff\xff\x7f", "option"),
    ],
)
def test_damaged_options_are_refused(options: bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(TinyetError, match=words):
        from_tflite(file_of(options, tmp_path))


def test_unknown_codes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TinyetError, match="Nobody, operator 0"):
        from_tflite(file_of(b"", tmp_path, "Nobody"))
