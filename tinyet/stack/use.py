# SPDX-License-Identifier: Apache-2.0
"""Stack use of a built firmware: a model's inference alone, and the whole program."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tinyet.stack.bound import Bound, Stack

# The linker script of every board reserves the stack between these two symbols.
_LIMIT, _TOP = "__stack_limit", "__stack_top"


@dataclass(frozen=True)
class StackUse:
    """inference: of `<model>_run`, or of `<model>_push_rows` where the input comes by rows. firmware: from the entry
    point on, with the exceptions that come back. reserved: bytes that the linker script keeps for the stack; None where
    a framework does that, in its own way."""

    inference: Bound
    firmware: Bound
    reserved: int | None

    @property
    def needed(self) -> Bound:
        """The whole program's bound; where there is none, that of an inference, which is less."""
        return self.inference if self.firmware.bytes is None else self.firmware

    @property
    def taken(self) -> int:
        """Bytes of RAM for the stack: at most what is used of it, else what is reserved."""
        return (self.reserved or 0) if self.firmware.bytes is None else self.firmware.bytes

    def with_data(self, ram: int) -> int | None:
        """Static data and what the firmware takes of the stack at most, in bytes; None where that has no bound."""
        return None if self.firmware.bytes is None else ram + self.firmware.bytes

    def to_json(self) -> dict[str, object]:
        """The documented, stable form of `--json` (docs/json.md)."""
        return {
            "inference": self.inference.to_json(),
            "firmware": self.firmware.to_json(),
            "reserved_bytes": self.reserved,
        }


def inference_bound(elf: Path, model: str) -> Bound | None:
    """The bound of an inference in a firmware; None where there is no file of it, as of one that an IDE has built.
    Raises ToolchainError: no ELF file, or one without symbols."""
    return _inference(Stack(elf), model) if elf.is_file() else None


def stack_of(elf: Path, model: str) -> StackUse:
    """The bounds of a firmware with a model. Raises ToolchainError: no ELF file, or one without symbols."""
    stack = Stack(elf)
    inference = _inference(stack, model)
    limit, top = (stack.image.symbol(name) for name in (_LIMIT, _TOP))
    if limit is None or top is None:
        frameworks = Bound(None, (), ("its framework decides what runs on which stack",))
        return StackUse(inference, frameworks, None)
    return StackUse(inference, stack.firmware, top - limit)


def _inference(stack: Stack, model: str) -> Bound:
    """Of the function that the firmware has for an inference; the harness's own, where the model takes rows."""
    names = ("push_image", f"{model}_push_rows", f"{model}_run")
    return stack.function(next((name for name in names if stack.image.named(name)), names[-1]))
