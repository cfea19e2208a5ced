# SPDX-License-Identifier: Apache-2.0
"""A profile as other tools read it: the trace event format of Chrome and Perfetto, and folded stacks.

Both are written by their specifications: "Trace Event Format" (Google, 2016), complete events, nested by time; and the
folded form of Brendan Gregg's FlameGraph, a line a stack, frames between semicolons, the count behind a blank.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinyet.messages.text import printable
from tinyet.profiles.spans import Profile, Span


def trace_events(profile: Profile, name: str) -> dict[str, object]:
    """An inference as trace events for ui.perfetto.dev or chrome://tracing. name: the model's.

    Microseconds of the trace are real ones, at the board's clock, where cycles were estimated; else one of them is one
    instruction (or cycle), as the name of the track says. Modules span the layers in them."""
    scale = 1.0 if profile.clock_hz is None else 1e6 / profile.clock_hz
    axis = profile.unit if profile.clock_hz is not None else f"1 µs = 1 of its {profile.unit}"
    events: list[dict[str, object]] = [
        {"name": "process_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": printable(name)}},
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": axis}},
    ]

    def event(title: str, start: int, count: int, more: dict[str, object]) -> dict[str, object]:
        times = {"ts": start * scale, "dur": count * scale}
        return {"name": title, "ph": "X", "pid": 1, "tid": 1, **times, "args": {profile.unit: count, **more}}

    events += [event(path[-1], start, count, {}) for path, start, count in _modules(profile.spans)]
    for span in profile.spans:
        layer = span.layer
        more: dict[str, object] = (
            {}
            if layer is None
            else {"op": layer.op, "kernel": layer.kernel, "macs": layer.macs, "line": printable(layer.source)}
        )
        events.append(event(".".join(span.path), span.start, span.count, more))
    return {"displayTimeUnit": "ms", "traceEvents": events}


def _modules(spans: Sequence[Span]) -> list[tuple[tuple[str, ...], int, int]]:
    """The modules around neighbouring layers, as (path, start, count); a module that is left and entered again is
    there twice. Outer ones come first, so that a viewer nests the inner ones."""
    found: list[tuple[tuple[str, ...], int, int]] = []
    open_: list[tuple[tuple[str, ...], int]] = []
    end = 0
    for span in spans:
        around = [span.path[:depth] for depth in range(1, len(span.path))]
        while open_ and open_[-1][0] not in around:
            path, start = open_.pop()
            found.append((path, start, end - start))
        open_ += [(path, span.start) for path in around[len(open_) :]]
        end = span.start + span.count
    found += [(path, start, end - start) for path, start in open_]
    return sorted(found, key=lambda module: (module[1], len(module[0])))


def folded_stacks(profile: Profile, name: str) -> str:
    """An inference as folded stacks for flamegraph.pl, speedscope or inferno: model, modules, operator with its line,
    kernel. name: the model's."""
    lines = []
    for span in profile.spans:
        frames = [name, *span.path]
        if span.layer is not None:
            line = f" ({span.layer.line})" if span.layer.line else ""
            frames += [f"{span.layer.op}{line}", span.layer.kernel]
        lines.append(f"{';'.join(_frame(frame) for frame in frames)} {span.count}\n")
    return "".join(lines)


def _frame(text: str) -> str:
    return printable(text).replace(";", ",")
