# SPDX-License-Identifier: Apache-2.0
"""One inference as trace events and folded stacks: every count is there once, in its module, with its line."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tinyet.cycles.estimate import CycleEstimate
from tinyet.errors import UsageError
from tinyet.profiles.forms import folded_stacks, trace_events
from tinyet.profiles.spans import profile_of
from tinyet.timing.work import Work
from tinyet.validation import LayerResult, PartResult, ValidationResult

_LAYERS = (
    ("stem", 100),
    ("body.0.conv", 300),
    ("body.0.add", 50),
    ("body.1", 200),
    ("stem_2", 0),
    ("head;x", 40),
)


def _layer(name: str, count: int | None) -> LayerResult:
    return LayerResult(
        name, "v", "conv2d", "tinyet_conv2d_s8", "net.py:7", "net.py:7: x = y", 10, count, None
    )


RESULT = ValidationResult(
    on="qemu",
    board="mps2_an386",
    samples=1,
    mismatches=0,
    first_mismatch=None,
    accuracy=None,
    host_accuracy=None,
    float_accuracy=None,
    count=700,
    count_unit="instructions",
    macs=60,
    arena_bytes=1,
    ram_bytes=None,
    flash_bytes=None,
    stack_bytes=None,
    layers=tuple(_layer(name, count) for name, count in _LAYERS),
    outputs=[[np.zeros(1, np.int8)]],
)


def _events(result: ValidationResult) -> list[dict[str, Any]]:
    record: Any = trace_events(profile_of(result), "net")
    return [event for event in record["traceEvents"] if event["ph"] == "X"]


def test_modules_span_their_layers_and_nothing_is_lost() -> None:
    events = _events(RESULT)
    spans = {event["name"]: (event["ts"], event["dur"]) for event in events}
    assert spans["stem"] == (0, 100)
    assert spans["body"] == (100, 550), "both of its blocks"
    assert spans["0"] == (100, 350)
    assert spans["body.0.add"] == (400, 50)
    assert spans["between layers"] == (690, 10)
    layers = [event for event in events if "op" in event["args"] or event["name"] == "between layers"]
    assert sum(event["dur"] for event in layers) == 700
    assert layers[0]["args"] == {
        "instructions": 100,
        "op": "conv2d",
        "kernel": "tinyet_conv2d_s8",
        "macs": 10,
        "line": "net.py:7: x = y",
    }
    names = [event["name"] for event in events]
    assert names.index("body") < names.index("0"), "outer ones first: viewers nest by order"


def test_a_module_that_is_entered_again_is_there_twice() -> None:
    layers = tuple(_layer(name, 10) for name in ("a.x", "b", "a.y"))
    events = _events(dataclasses.replace(RESULT, layers=layers, count=30))
    assert [(e["ts"], e["dur"]) for e in events if e["name"] == "a"] == [(0, 10), (20, 10)]


def test_estimated_cycles_are_real_time() -> None:
    each = tuple(Work(cycles=200) for _ in RESULT.layers)
    estimate = CycleEstimate("Cortex-M4", "", (), "", 8_000_000, each, Work(cycles=400))
    works = tuple(
        dataclasses.replace(layer, estimate=work) for layer, work in zip(RESULT.layers, each, strict=True)
    )
    events = _events(dataclasses.replace(RESULT, layers=works, estimate=estimate))
    assert (events[-2]["ts"], events[-2]["dur"]) == (125.0, 25.0)
    assert events[-2]["args"]["estimated cycles"] == 200
    assert events[-1]["dur"] == 50.0, "what is between layers"


def test_parts_of_a_delegate_are_spans_of_their_layer() -> None:
    parts = (PartResult("npu.conv", "", 30), PartResult("npu.none", "", None))
    layer = dataclasses.replace(RESULT.layers[0], parts=parts)
    spans = profile_of(dataclasses.replace(RESULT, layers=(layer,), count=100)).spans
    assert [(s.path, s.start, s.count) for s in spans] == [(("stem", "npu.conv"), 0, 30), (("stem",), 30, 70)]


def test_folded_stacks_have_the_line_and_no_stray_semicolon() -> None:
    text = folded_stacks(profile_of(RESULT), "net")
    lines = text.splitlines()
    assert lines[1] == "net;body;0;conv;conv2d (net.py:7);tinyet_conv2d_s8 300"
    assert lines[-2] == "net;head,x;conv2d (net.py:7);tinyet_conv2d_s8 40"
    assert lines[-1] == "net;between layers 10"
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == 700


@pytest.mark.parametrize(
    "change", [{"count_unit": "nanoseconds", "on": "host"}, {"count": None}, {"layers": (_layer("a", None),)}]
)
def test_what_was_not_counted_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="nothing was counted"):
        profile_of(dataclasses.replace(RESULT, **change))
