# SPDX-License-Identifier: Apache-2.0
"""What each slice of a run takes, counted on a device."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from tinyet.data import Samples
from tinyet.device.device import open_device
from tinyet.emit.slices import SlicePlan
from tinyet.errors import MismatchError, UsageError
from tinyet.messages.stages import stage
from tinyet.project import Project
from tinyet.validation import sample_bytes


@dataclass(frozen=True)
class StepCounts:
    """counts: of each slice, the most of all samples, in `unit`s. layers: of each slice, for reports."""

    plan: SlicePlan
    unit: str
    counts: tuple[int, ...]
    layers: tuple[str, ...]

    @property
    def worst(self) -> int:
        """The number of the longest slice."""
        return max(range(len(self.counts)), key=self.counts.__getitem__)

    def to_json(self) -> dict[str, object]:
        return {
            "unit": self.unit,
            "asked": self.plan.limit.text,
            "retained_bytes": self.plan.retained_most,
            "slices": [
                {"layers": layers, "count": count}
                for layers, count in zip(self.layers, self.counts, strict=True)
            ],
        }


def count_steps(project: Project, samples: Samples, on: str = "qemu", *, timeout: float = 60.0) -> StepCounts:
    """Run a project's model in slices, for each sample, and count every slice. on: as for `Project.validate`.

    Raises UsageError: the project was generated without `max_step`; MismatchError: outputs in slices are not those of a
    whole run; EmulatorError.
    """
    plan = project.slices
    if plan is None:
        raise UsageError(
            "this project's model runs as a whole",
            str(project.path),
            "tinyet generate … --context --max-step 1ms",
        )
    stage("counting slices")
    with tempfile.TemporaryDirectory(prefix="tinyet-") as scratch:
        elf = project.firmware(on, Path(scratch))
        with open_device(project.board, elf, on, timeout=timeout) as device:
            worst = [0] * plan.count
            for data in sample_bytes(project.deployment, samples):
                if device.info().num_states:
                    device.reset()
                counts, outputs = device.steps(data, plan.runs)
                worst = [max(pair) for pair in zip(worst, counts, strict=True)]
                if device.info().num_states:
                    device.reset()
                if device.run(data).outputs != outputs:
                    raise MismatchError("a run in slices has other outputs than one as a whole", str(elf))
            unit = device.count_unit
    names = [step.name for step in project.deployment.steps]
    where = [plan.where(number) for number in range(plan.count)]
    layers = [names[w[0]] if len(w) == 1 else f"{names[w[0]]} to {names[w[-1]]}" for w in where]
    return StepCounts(plan, unit, tuple(worst), tuple(layers))
