# SPDX-License-Identifier: Apache-2.0
"""Delegates: who brings kernels for which operators. The portable set is itself one, and always the last resort."""

from __future__ import annotations

from collections.abc import Sequence

from tinyet.delegates.cortex_m import CORTEX_M
from tinyet.delegates.delegate import Delegate
from tinyet.delegates.portable import PORTABLE
from tinyet.errors import UsageError

DELEGATES: tuple[Delegate, ...] = (CORTEX_M, PORTABLE)
"""All that come with tinyet, in the order in which they are asked when the user gives none."""

DEFAULT = DELEGATES


def delegates_named(names: Sequence[str]) -> tuple[Delegate, ...]:
    """Delegates by name, in the given order. Raises UsageError for names that do not exist."""
    known = {delegate.name: delegate for delegate in DELEGATES}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(f"no delegate called {', '.join(unknown)}", hint=f"one of {', '.join(known)}")
    return tuple(known[name] for name in names)


__all__ = ["CORTEX_M", "DEFAULT", "DELEGATES", "PORTABLE", "Delegate", "delegates_named"]
