# SPDX-License-Identifier: Apache-2.0
"""The exception tree. Every error says what is wrong, where (in the user's own source) and what to do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tinyet.messages.text import printable, printable_block, shown


class TinyetError(Exception):
    """Root of everything that tinyet raises on purpose.

    what:  one sentence, or several lines when several things are wrong.
    where: the user's file and line, the file at fault, or the command that failed.
    hint:  what to do about it.
    """

    title = "error"

    def __init__(self, what: str, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"{self.title}: {self.what}"]
        if self.where:
            lines += ["  at: " + self.where.replace("\n", "\n      ")]
        if self.hint:
            lines += ["  do: " + self.hint.replace("\n", "\n      ")]
        return printable_block("\n".join(lines))


class TinyetWarning(UserWarning):
    """What a person should know and no error says: a remark about a model's data, a limit that cannot be measured where
    a test runs."""


class UsageError(TinyetError):
    """The command line or an argument is off (exit status 2)."""

    title = "usage error"


class IdleOptions(UsageError):
    """Options that a model of this kind does not take. names: as in Python; why: what the model is."""

    def __init__(
        self, names: Collection[str], why: str, where: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(f"{', '.join(names)}: {why}", where, hint)
        self.names = tuple(names)
        self.why = why


class ModelError(TinyetError):
    """The user's model cannot be captured or lowered."""

    title = "model error"


class UnsupportedOp(ModelError):
    """Operators that tinyet does not know; lists all of them."""

    title = "unsupported operator"


class UnsupportedShape(ModelError):
    """A known operator with shapes or attributes outside what it supports."""

    title = "unsupported shape"


class DynamicShape(ModelError):
    """A dimension that is not known when compiling."""

    title = "dynamic shape"


class QuantizationError(TinyetError):
    """Calibration data or quantization parameters that cannot be used."""

    title = "quantization error"


class DataError(TinyetError):
    """Input data whose number, shape, dtype or values do not fit the program."""

    title = "data error"


class ProgramError(TinyetError):
    """A .tet file that is truncated, corrupted, or of another version."""

    title = "program error"


class BoardError(TinyetError):
    """An unknown board, or a board file that is wrong."""

    title = "board error"


class ProjectError(TinyetError):
    """A directory that is not a tinyet project, or cannot become one."""

    title = "project error"


class FitError(TinyetError):
    """The model needs more RAM or flash than the board or the given limit has."""

    title = "does not fit"


class LimitError(TinyetError):
    """What was measured breaks a limit that was set for it."""

    title = "over the limit"


class ToolchainError(TinyetError):
    """An external tool is missing or failed; carries the command and the end of its output."""

    title = "toolchain error"


class MissingTool(ToolchainError):
    """An external tool is not on this machine."""


class EmulatorError(TinyetError):
    """The emulated (or real) device did not answer, or answered nonsense."""

    title = "device error"


class MismatchError(TinyetError):
    """The device computed something else than the host reference."""

    title = "mismatch"


class InternalError(TinyetError):
    """tinyet contradicts itself: a bug of ours."""

    title = "internal error"

    def __init__(self, what: str, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(what, where, hint or "this is a bug in tinyet: please report it with the model")


def bullet_list(items: Sequence[str]) -> str:
    """Several complaints as one block of text."""
    return "\n".join(f"  - {item}" for item in items)


class RefusedError(Exception):
    """A refusal by an importer's handler; the importer collects all of them.

    shape: the operator is known, but not with these shapes, types or attributes.
    """

    def __init__(self, reason: str, hint: str = "", *, shape: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.shape = shape


class Complaints:
    """Everything that is wrong with a model, in its order."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._found: dict[str, None] = {}
        self._only_shapes = True

    def add(self, where: str, refused: RefusedError) -> None:
        hint = f"\n    do: {refused.hint}" if refused.hint else ""
        # Names and words of a file stand in both: none of them begins a line.
        self._found[f"{printable(where)}: {printable(refused.reason)}{hint}"] = None
        self._only_shapes = self._only_shapes and refused.shape

    def attempt(self, where: str, action: Callable[[], None]) -> bool:
        """Whether an action is done; what it refuses is a complaint. Raises InternalError, with the same place, for
        whatever else it trips over."""
        try:
            action()
        except RefusedError as error:
            self.add(where, error)
        except (UnsupportedShape, QuantizationError) as error:
            self.add(where, RefusedError(error.what, error.hint or ""))
        except InternalError as error:
            raise InternalError(f"{printable(where)}: {error.what}", self._file, error.hint) from error
        except TinyetError:
            raise
        # Whatever it is: the user is to see at which operator.
        except Exception as error:
            text = f"{type(error).__name__}: {shown(str(error), 200)}"
            raise InternalError(f"{printable(where)}: {text}", self._file) from error
        else:
            return True
        return False

    def raise_any(self) -> None:
        """Raises UnsupportedOp, or UnsupportedShape where all operators are known."""
        if self._found:
            lines = list(self._found)
            kind = UnsupportedShape if self._only_shapes else UnsupportedOp
            what = "one operator" if len(lines) == 1 else f"{len(lines)} operators"
            raise kind(f"{what} of the model cannot be taken:\n{bullet_list(lines)}", self._file)
