# SPDX-License-Identifier: Apache-2.0
"""Finds the user's own file and line in Python tracebacks and in the stack traces that torch.export
records."""

from __future__ import annotations

import inspect
import linecache
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
from torch import nn
from torch.fx import proxy
from torch.fx.proxy import TracerBase

from tinyet.ir import place_of

_FRAME = re.compile(
    r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)(?:\n +(?P<text>[^\n]+))?'
)


@dataclass(frozen=True)
class Frame:
    """A place in Python source; `file` is the path under which Python knows it."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{shown_path(self.file)}:{self.line}" + (f": {self.text}" if self.text else "")


@cache
def _roots() -> tuple[Path, Path, Path, tuple[Path, ...]]:
    """The directories of torch, of this package, of the standard library, and of installed packages."""
    packages = {Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")}
    stdlib = Path(sysconfig.get_path("stdlib")).resolve()
    return (
        Path(torch.__file__).resolve().parent,
        Path(__file__).resolve().parents[1],
        stdlib,
        tuple(sorted(packages)),
    )


@cache
def _is_users(file: str) -> bool:
    """False for torch, torchao, this package, the standard library, generated code ("<string>")."""
    if file.startswith("<"):
        return False
    torch_dir, own_dir, stdlib, packages = _roots()
    path = Path(file).resolve()
    if any(path.is_relative_to(d) for d in (torch_dir, torch_dir.parent / "torchao", own_dir)):
        return False
    installed = any(path.is_relative_to(d) for d in packages)
    return installed or not path.is_relative_to(stdlib)


def is_users_module(name: str) -> bool:
    """Whether a Python module, by its name, is the user's: not torch's, this package's, the standard library's."""
    file = getattr(sys.modules.get(name), "__file__", None)
    return _is_users(file) if file else name not in sys.builtin_module_names


def shown_path(file: str) -> str:
    """The path for messages: relative to the working directory when below it, as it is otherwise."""
    path = Path(file).resolve()
    return path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else file


def portable_path(file: str, root: Path | None) -> str:
    """The path for generated files: relative to `root` (the directory of the user's model) or to the
    installed packages, else its last part. Never absolute, so that output does not depend on where a
    checkout lies."""
    path = Path(file).resolve()
    for base in (*([root] if root is not None else []), *_roots()[3]):
        if path.is_relative_to(base):
            return path.relative_to(base).as_posix()
    return path.name


def directory_of(kind: type) -> Path | None:
    """The directory of the file that defines a user's class; None when it has none or is torch's."""
    try:
        file = inspect.getfile(kind)
    except (TypeError, OSError):
        return None
    return Path(file).resolve().parent if _is_users(file) else None


def _frame(file: str, line: int, text: str | None) -> Frame:
    return Frame(file, line, (text or linecache.getline(file, line)).strip())


def frame_of_exception(error: BaseException) -> Frame | None:
    """The deepest frame of the user's code that the exception passed; a syntax error's own place."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return _frame(error.filename, error.lineno, error.text)
    frames = traceback.extract_tb(error.__traceback__)
    for entry in reversed(frames):
        if _is_users(entry.filename) and entry.lineno:
            return _frame(entry.filename, entry.lineno, entry.line)
    cause = error.__cause__ or error.__context__
    return frame_of_exception(cause) if cause is not None else None


def layer_of_exception(error: BaseException, model: nn.Module) -> str:
    """The place in the model where no line of the user's is known: the deepest of its modules that the exception
    passed, as `2.0 (Linear of the Sequential)`, or the line at which the model's own forward() begins."""
    names = {module: name for name, module in model.named_modules()}
    owners = [frame.f_locals.get("self") for frame, _ in traceback.walk_tb(error.__traceback__)]
    passed = [owner for owner in owners if isinstance(owner, nn.Module) and owner in names]
    if not passed or passed[-1] is model:
        return place_of_forward(model)
    layer = passed[-1]
    return place_of(names[layer], f"{type(layer).__name__} of the {type(model).__name__}")


def place_of_forward(model: nn.Module) -> str:
    """File and line of the model's forward(); the model's class where that is not the user's own."""
    code = getattr(getattr(model.forward, "__func__", model.forward), "__code__", None)
    if code is None or not _is_users(code.co_filename):
        return type(model).__name__
    return str(_frame(code.co_filename, code.co_firstlineno, None))


def frame_of_stack_trace(text: str | None) -> Frame | None:
    """The deepest frame of the user's code in a stack trace as torch.export keeps it in a node's metadata."""
    for match in reversed(list(_FRAME.finditer(text or ""))):
        if _is_users(match["file"]):
            return _frame(match["file"], int(match["line"]), match["text"])
    return None


def frame_at(code: CodeType, line: int) -> Frame | None:
    """A line of running code as a place; None where the code is not the user's."""
    return _frame(code.co_filename, line, None) if _is_users(code.co_filename) else None


class _UsersFrames:
    """Stands in for what torch takes a traceback with: keeps forward() and the user's functions below it.

    torch makes text of all frames of each operator that is recorded, a hundred, before it leaves out its own.
    """

    @classmethod
    def extract(cls) -> _UsersFrames:
        return cls()

    def summary(self) -> traceback.StackSummary:
        kept: list[FrameType] = []
        below = 0  # Of those kept, how many are at or below the outermost forward().
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            if code.co_name == "forward" or _is_users(code.co_filename):
                kept.append(frame)
                if code.co_name == "forward":
                    below = len(kept)
            frame = frame.f_back
        return traceback.StackSummary.from_list(
            traceback.FrameSummary(each.f_code.co_filename, each.f_lineno, each.f_code.co_name)
            for each in reversed(kept[:below])
        )


@contextmanager
def users_frames_recorded() -> Iterator[None]:
    """While this lasts, torch.export records the user's helper functions too.

    By itself it keeps functions called forward only: a helper's line is named by its call in forward().
    """
    traced: Any = proxy
    before = traced.CapturedTraceback, TracerBase._filter_traceback_frames
    traced.CapturedTraceback = _UsersFrames
    TracerBase._filter_traceback_frames = lambda _self, frames: frames  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        traced.CapturedTraceback, TracerBase._filter_traceback_frames = before  # type: ignore[method-assign]


def message_of(error: BaseException) -> str:
    """`Type: first line` of an exception; the first line that says something when it starts with an empty
    one."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
