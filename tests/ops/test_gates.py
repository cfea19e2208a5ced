# SPDX-License-Identifier: Apache-2.0
"""The functions of gates, over all int16: in C as in Python, and gemmlowp's near what they stand for."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.ops.cases import SANITIZERS, WARNINGS
from tests.ops.objects import run
from tinyet import assets
from tinyet.ir import Array
from tinyet.ops.shared import gates, gates_lut
from tinyet.opset import Constant

MAIN = """
#include <stdio.h>
#include HEADER
TABLE
static int16_t values[65536];
int main(void) {
  for (int32_t function = -1; function <= 6; function++) {
    for (int32_t x = 0; x < 65536; x++)
      values[x] = (int16_t)(x + INT16_MIN);
    if (function < 0)
      SIGMOID(values, 65536);
    else
      TANH(values, 65536, function);
    fwrite(values, sizeof values, 1, stdout);
  }
  return 0;
}
"""


def computed(header: str, sigmoid: str, tanh: str, table: Constant | None = None, *flags: str) -> Array:
    """All values of the sigmoid, and of tanh with 0 ... 6 integer bits: int16 (8, 65536)."""
    text = f'#define HEADER "{header}"\n#define SIGMOID({sigmoid}\n#define TANH({tanh}\n' + MAIN
    numbers = "" if table is None else ", ".join(map(str, table.data.tolist()))
    kind = "" if table is None else f"{table.data.dtype}_t"
    text = text.replace("\nTABLE\n", f"\nstatic const {kind} table[] = {{{numbers}}};\n" if kind else "\n")
    with tempfile.TemporaryDirectory() as where:
        source, binary = Path(where, "main.c"), f"{where}/gates"
        source.write_text(text, encoding="utf-8")
        include = f"-I{assets.path('firmware') / 'include'}"
        run(["gcc", "-std=c11", "-O1", *flags, *WARNINGS, *SANITIZERS, include, "-o", binary, str(source)])
        return np.frombuffer(run([binary]), np.int16).reshape(8, -1)


@pytest.mark.parametrize("dsp", [0, 1])
def test_c_equals_python(dsp: int) -> None:
    """As all cores compute, and in the form for those with DSP."""
    names = "v, n) tinyet_gate_sigmoid(v, n)", "v, n, b) tinyet_gate_tanh(v, n, b)"
    got = computed("tinyet_gates.h", *names, None, f"-DTINYET_GATE_DSP={dsp}")
    want = [gates.sigmoid_table(), *(gates.tanh_table(bits) for bits in range(7))]
    np.testing.assert_array_equal(got, np.stack(want))


@pytest.mark.parametrize("form", ["lut", "pwl"])
def test_tables(form: str) -> None:
    """TFLM's, by its table and by its pieces."""
    names = f"v, n) tinyet_{form}_sigmoids(table, v, n)", f"v, n, b) tinyet_{form}_tanhs(table, v, n, b)"
    table = gates_lut.lut_constant() if form == "lut" else gates_lut.pwl_constant()
    x = np.arange(-32768, 32768)
    want = [gates_lut.sigmoid(x), *(gates_lut.tanh(x, bits) for bits in range(7))]
    np.testing.assert_array_equal(computed(f"tinyet_gates_{form}.h", *names, table), np.stack(want))


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
