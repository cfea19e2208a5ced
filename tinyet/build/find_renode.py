# SPDX-License-Identifier: Apache-2.0
"""The one place that looks for Renode, both to run it and to report it."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
from pathlib import Path

from tinyet.errors import ToolchainError

VARIABLE = "TINYET_RENODE"
VERSION = "1.16.1"
RELEASE = f"https://github.com/renode/renode/releases/download/v{VERSION}/renode-{VERSION}.linux-portable-dotnet.tar.gz"
RENODE_RUN = f"renode-run install {RELEASE} --version-override {VERSION}"


def find_renode() -> Path | None:
    """Return Renode's executable: `$TINYET_RENODE`, `renode` on PATH, or the version that renode-run has
    installed."""
    override = os.environ.get(VARIABLE)
    if override:
        named = shutil.which(override)
        return Path(named) if named else Path(override).expanduser()
    found = shutil.which("renode")
    return Path(found) if found is not None else _of_renode_run()


def _of_renode_run() -> Path | None:
    try:
        from renode_run.get import get_default_renode_path
    except ImportError:
        return None
    # It prints where it looks, and ends the process or fails over a configuration of another version of itself.
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            # It would download hundreds of megabytes by itself otherwise.
            installed = get_default_renode_path(try_to_download=False)
        except (Exception, SystemExit):  # noqa: BLE001 - whatever another project's code raises, Renode is not found
            return None
    return Path(installed) if installed else None


def check_renode(place: Path) -> None:
    """Raise ToolchainError when there is nothing at a place that could be started."""
    if not place.exists():
        raise ToolchainError(f"there is no Renode at {place}", f"${VARIABLE}", hint())
    if not place.is_file() or not os.access(place, os.X_OK):
        kind = "a directory" if place.is_dir() else "no program"
        raise ToolchainError(f"{place} is {kind}, and not Renode's executable", f"${VARIABLE}", hint())


def hint() -> str:
    """Instructions to install Renode, or to point to it."""
    return f"{RENODE_RUN}, or get it from https://renode.io; or set {VARIABLE} to its executable"
