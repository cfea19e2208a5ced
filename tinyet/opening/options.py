# SPDX-License-Identifier: Apache-2.0
"""How a program is made of a model's file: one record for every entrance."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from tinyet.anomaly import FALSE_ALARMS
from tinyet.boards import Board
from tinyet.compiler import DumpTo, Progress
from tinyet.delegates import Delegates
from tinyet.errors import IdleOptions, UsageError
from tinyet.errors.arguments import OverTime, over_time_given
from tinyet.tflite import Runtime


@dataclass(frozen=True)
class ModelOptions:
    """The options of `tinyet.open`, which says what each means. Their names are those of the command line and of the
    pytest marker, too."""

    calibration: Iterable[Any] | str | Path | None = None
    name: str | None = None
    quantizer: Any = None
    board: str | Path | Board | None = None
    delegates: Delegates | None = None
    channels_last: bool = False
    float_io: bool = False
    equalize: bool = False
    correct_bias: bool = False
    learn_rounding: bool = False
    prune: bool = True
    stateful: bool = False
    labels: Sequence[str] | None = None
    strict: bool = False
    runtime: Runtime = "tflm"
    signature: str | None = None
    exact: bool = False
    methods: str | Sequence[str] | None = None
    input_dtype: str = "float32"
    input_scale: float = 1.0
    input_zero_point: int = 0
    missing_values: bool = False
    leaf_dtype: str = "float32"
    flag: Any = None
    false_alarms: float = FALSE_ALARMS
    drift: Any = None
    trust_pickle: bool = False
    streaming: int | Sequence[int | None] | None = None
    hop: int | None = None
    edges: str = "exact"
    dump: DumpTo | None = None
    progress: Progress | None = None

    def reporting(self, progress: Progress) -> ModelOptions:
        """The same, with progress told."""
        return replace(self, progress=progress)

    @property
    def given(self) -> tuple[str, ...]:
        """The names of those that differ from their default. To be told of progress asks nothing of a model."""
        return tuple(
            field.name
            for field in fields(self)
            if field.name != "progress" and not _same(getattr(self, field.name), field.default)
        )

    @property
    def over_time(self) -> OverTime | None:
        """What streaming, hop and edges ask for. Raises UsageError for what cannot be together."""
        if self.streaming is None:
            if self.hop is not None or self.edges != "exact":
                raise IdleOptions(
                    [name for name in ("hop", "edges") if name in self.given],
                    "nothing is to be streamed",
                    hint="say which axis is time: streaming=AXIS, --streaming AXIS",
                )
            return None
        if self.stateful:
            raise UsageError("a streaming program is stateful already", hint="leave stateful away")
        return over_time_given(self.streaming, self.hop, self.edges)

    def refuse_others(self, taken: Collection[str], why: str, where: str, hint: str) -> None:
        """Raise IdleOptions where an option is given that is not among those taken."""
        idle = [name for name in self.given if name not in taken]
        if idle:
            raise IdleOptions(idle, why, where, hint)


def _same(value: object, default: object) -> bool:
    """Equal numbers are not one object; data must not be compared at all."""
    return value is default or (type(value) is type(default) is float and value == default)
