# SPDX-License-Identifier: Apache-2.0
"""The harness of a project in one place, as tests share it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tinyet.build.gcc import build_firmware
from tinyet.build.size import measure
from tinyet.device.device import Device, open_device
from tinyet.errors import DataError
from tinyet.project import Project
from tinyet.validation import Sizes


@dataclass
class Harness:
    """A project's harness in one place: compiled once, started when it is needed; one runs at a time."""

    project: Project
    on: str
    where: Path
    compile_anew: bool
    timeout: float
    siblings: Mapping[object, Harness]
    _device: Device | None = None

    @cached_property
    def _elf(self) -> Path:
        if self.on.startswith("serial:") and self.compile_anew:
            # What is on the board was built elsewhere: no elf of here could tell where it faults.
            return self.where / "none.elf"
        compile_anew = (self.compile_anew and self.project.board.compiled_alone) or self.on == "simavr"
        if self.on != "host" and not self.on.startswith("serial:") and not compile_anew:
            self.project.build()
        return self.project.firmware(self.on, self.where / "harness", compile_anew=compile_anew)

    @property
    def device(self) -> Device:
        if self._device is None:
            # One at a time: an emulator behind a socket goes on spending a core on waiting for a request.
            for other in self.siblings.values():
                other.close()
            self._device = open_device(self.project.board, self._elf, self.on, timeout=self.timeout)
            if self._device.info().hash != self.project.program.hash:
                self.close()
                raise DataError(
                    "the device holds another program than the test wants",
                    f"{self.on}, {self.project.path}",
                    "flash the harness of this project",
                )
        return self._device

    @cached_property
    def sizes(self) -> Sizes:
        """Of the application, with the compiler of the board; of one that is built elsewhere, nothing."""
        elsewhere = self.on == "host" or self.on.startswith("serial:")
        if not self.compile_anew or elsewhere or not self.project.board.bare_metal:
            return self.project.sizes
        model = self.project.path / str(self.project.manifest["model_dir"])
        application = self.project.path / "src"
        sources = [*sorted(model.rglob("*.c")), application / "main.c"]
        out = self.where / "application"
        size = measure(build_firmware(self.project.board, sources, [model, application], out, harness=False))
        return Sizes(size.ram, size.flash - size.sample)

    def close(self) -> None:
        if self._device is not None:
            self._device.close()
            self._device = None
