# SPDX-License-Identifier: Apache-2.0
"""`tinyet delegates`: who can be asked for kernels."""

from __future__ import annotations

from collections.abc import Sequence

from tinyet.cli import ui
from tinyet.delegates import Delegate, delegate_names, delegates_named


def delegates() -> None:
    """List who can be asked for kernels: tinyet's own delegates and those of installed packages."""
    _show(delegates_named(delegate_names()))


def _show(found: Sequence[Delegate]) -> None:
    rows = [
        (
            delegate.name,
            "regions" if delegate.partition else "layers",
            " ".join(sorted(kind.name for kind in delegate.kernels)) or "what it takes",
        )
        for delegate in found
    ]
    ui.table([("delegate", "name"), ("takes", "name"), ("operators", "text")], rows)
