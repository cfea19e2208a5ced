# SPDX-License-Identifier: Apache-2.0
"""A firmware of printed output rows of depthwise convolutions: each function is called once, and its outputs are
compared with those of its reference in C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.tiles import harness
from tests.tiles.harness import c_array
from tinyet.numerics import Int64


@dataclass(frozen=True)
class Call:
    """function: its name; reference, shape: those of the reference and of the type of its shape; literal: the shape.
    weights, planes: words. end: where in the planes the input rows end that a turn begins with, in words. output: the
    type of its values."""

    function: str
    reference: str
    shape: str
    literal: str
    weights: Int64
    planes: Int64
    end: int
    output: str = "int8_t"


_TEXT = """
%(includes)s
#include "tinyet_depthwise_dsp.h"

%(arrays)s

%(called)s
static const struct {
  tinyet_depthwise_function_dsp function;
  const int32_t *weights;
  const uint32_t *planes, *end;
} entries[] = {{nothing, NULL, NULL, NULL}, %(entries)s};

static int16_t outputs[5400], wanted[5400];

static tinyet_status run(void) {
  for (uint32_t i = 0; i < %(count)du; i++) {
    void *const out = outputs + 8, *const same = wanted + 8;
    memset(outputs, 0x5a, sizeof outputs);
    memset(wanted, 0x5a, sizeof wanted);
    TINYET_LAYER_BEGIN(i);
    wrong[i] = guarded(entries[i].weights, entries[i].planes, out, entries[i].end, entries[i].function);
    TINYET_LAYER_END(i);
%(references)s
    wrong[i] |= memcmp(wanted, outputs, sizeof wanted) != 0 ? 2u : 0u;
  }
  return TINYET_OK;
}
"""


def model(name: str, calls: Sequence[Call]) -> str:
    """Layer 0 calls an empty function, layer i + 1 the function i. The output: a word for each, 0 where all is
    right."""
    arrays, entries, references = [], [], []
    for i, call in enumerate(calls, 1):
        arrays += [
            c_array("int32_t", f"weights_{i}", call.weights),
            c_array("uint32_t", f"planes_{i}", call.planes),
        ]
        entries.append(f"{{{call.function}, weights_{i}, planes_{i}, planes_{i} + {call.end}}}")
        arguments = f"entries[i].weights, entries[i].planes, ({call.output} *)same, entries[i].end"
        references.append(
            [f"const {call.shape} shape = {call.literal};", f"{call.reference}({arguments}, shape);"],
        )
    text = _TEXT % {
        "includes": "\n".join(f'#include "{call.function}.h"' for call in calls),
        "arrays": "\n".join(arrays),
        "entries": ", ".join(entries),
        "called": harness.called(
            "tinyet_depthwise_function_dsp",
            "const int32_t *w, const uint32_t *p, void *o, const uint32_t *e",
        ),
        "count": len(calls) + 1,
        "references": harness.references(references),
    }
    return harness.model(name, len(calls) + 1, text)
