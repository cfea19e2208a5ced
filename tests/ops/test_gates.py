# SPDX-License-Identifier: Apache-2.0
"""The functions of gates, over all int16: in C as in Python, and near what they stand for."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.ops.cases import SANITIZERS, WARNINGS
from tests.ops.objects import run
from tinyet import assets
from tinyet.ops.shared import gates

MAIN = """
#include <stdio.h>
#include "tinyet_gates.h"
static int16_t values[65536];
int main(void) {
  for (int32_t function = -1; function <= 6; function++) {
    for (int32_t x = 0; x < 65536; x++)
      values[x] = (int16_t)(x + INT16_MIN);
    if (function < 0)
      tinyet_gate_sigmoid(values, 65536);
    else
      tinyet_gate_tanh(values, 65536, function);
    fwrite(values, sizeof values, 1, stdout);
  }
  return 0;
}
"""


@pytest.mark.parametrize("dsp", [0, 1])
def test_c_equals_python(dsp: int) -> None:
    """As all cores compute, and in the form for those with DSP."""
    with tempfile.TemporaryDirectory() as where:
        source, binary = Path(where, "main.c"), f"{where}/gates"
        source.write_text(MAIN, encoding="utf-8")
        include = f"-I{assets.path('firmware') / 'include'}"
        flags = ["-std=c11", "-O1", f"-DTINYET_GATE_DSP={dsp}", *WARNINGS, *SANITIZERS, include]
        run(["gcc", *flags, "-o", binary, str(source)])
        got = np.frombuffer(run([binary]), np.int16).reshape(8, -1)
    want = [gates.sigmoid_table(), *(gates.tanh_table(bits) for bits in range(7))]
    np.testing.assert_array_equal(got, np.stack(want))


@pytest.mark.parametrize("bits", range(7))
def test_near_tanh(bits: int) -> None:
    """Within 13 steps of 2^-15, and odd."""
    x = np.arange(-32767, 32768)
    got = gates.tanh(x, bits)
    assert np.abs(got - 32768 * np.tanh(x / 2.0 ** (15 - bits))).max() < 13
    np.testing.assert_array_equal(got, -got[::-1])


def test_near_sigmoid() -> None:
    x = np.arange(-32768, 32768)
    assert np.abs(gates.sigmoid(x) - 32768 / (1 + np.exp(-x / 4096))).max() < 7
