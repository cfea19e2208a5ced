# SPDX-License-Identifier: Apache-2.0
"""Finds the files that are not Python: templates, the C runtime, board descriptions, Renode platforms, a QEMU plugin,
what runs simavr.

In a checkout they stand at the top level, beside `tinyet/`; a wheel carries them in `tinyet/_assets/`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Literal

from tinyet.errors import InternalError

Kind = Literal["templates", "firmware", "boards", "renode", "qemu", "simavr"]

CMSIS_NN_VERSION = "7.0.0"
"""The release of Arm's CMSIS-NN that the delegate cmsis_nn is made for."""

_PACKAGE = Path(__file__).resolve().parents[1]


def path(kind: Kind) -> Path:
    """Return the directory of one kind of asset.

    Raises InternalError when it is in neither place, which means a broken installation.
    """
    for root in (_PACKAGE / "_assets", _PACKAGE.parent):
        candidate = root / kind
        if candidate.is_dir():
            return candidate
    raise InternalError(
        what=f"the {kind} directory of tinyet is missing",
        where=str(_PACKAGE),
        hint="install tinyet again: pip install --force-reinstall tinyet",
    )


def cache_dir() -> Path:
    """Return tinyet's directory in the user's cache (it may not exist yet).

    `$XDG_CACHE_HOME/tinyet`, else `%LOCALAPPDATA%\\tinyet` on Windows, else `~/.cache/tinyet`.
    """
    base = os.environ.get("XDG_CACHE_HOME") or (
        os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else None
    )
    return (Path(base) if base else Path.home() / ".cache") / "tinyet"


def cmsis_nn_is_given() -> bool:
    """Return whether the user says where CMSIS-NN is: `$TINYET_CMSIS_NN`."""
    return bool(os.environ.get("TINYET_CMSIS_NN"))


def cmsis_nn_place() -> Path:
    """Return where the sources of CMSIS-NN belong: `$TINYET_CMSIS_NN` when set, else a directory of its version in
    the cache. It may not exist."""
    override = os.environ.get("TINYET_CMSIS_NN")
    return Path(override).expanduser() if override else cache_dir() / "cmsis-nn" / CMSIS_NN_VERSION


def cmsis_nn_dir() -> Path | None:
    """Return the directory of the CMSIS-NN sources, or None when they are not on this machine."""
    directory = cmsis_nn_place()
    return directory if (directory / "Include" / "arm_nnfunctions.h").is_file() else None
