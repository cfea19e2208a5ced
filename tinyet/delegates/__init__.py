# SPDX-License-Identifier: Apache-2.0
"""Delegates: who brings kernels for which operators. The portable set is itself one, and always the last resort.

Others come from packages that declare an entry point of the group `tinyet.delegates`, or by `register_delegate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import entry_points

from tinyet.delegates.cmsis_nn import CMSIS_NN
from tinyet.delegates.cortex_m import CORTEX_M
from tinyet.delegates.delegate import Delegate, Partition, Payload, files_of
from tinyet.delegates.portable import PORTABLE
from tinyet.delegates.regions import regions_of
from tinyet.errors import UsageError
from tinyet.errors.arguments import described

DELEGATES: tuple[Delegate, ...] = (CORTEX_M, CMSIS_NN, PORTABLE)
"""The delegates of tinyet itself."""

DEFAULT: tuple[Delegate, ...] = (CORTEX_M, PORTABLE)
"""The delegates that are asked where the user names none, in this order."""

Delegates = str | Delegate | Sequence[str | Delegate]
"""Delegates to ask for kernels, in this order, each by name or as an object."""

ENTRY_POINTS = "tinyet.delegates"

_REGISTERED: dict[str, Delegate] = {}


def register_delegate(delegate: Delegate) -> None:
    """Make a delegate known by its name in this process. Raises UsageError when another one has the name."""
    if (
        any(d.name == delegate.name for d in DELEGATES)
        or _REGISTERED.get(delegate.name, delegate) is not delegate
    ):
        raise UsageError(f"there is a delegate {delegate.name} already", hint="give yours another name")
    _REGISTERED[delegate.name] = delegate


def delegate_names() -> tuple[str, ...]:
    """All names that `delegates_named` knows: tinyet's own, registered ones, those of installed packages."""
    own = [delegate.name for delegate in DELEGATES]
    installed = sorted(point.name for point in entry_points(group=ENTRY_POINTS))
    return tuple(dict.fromkeys((*own, *_REGISTERED, *installed)))


def delegates_named(wanted: Delegates) -> tuple[Delegate, ...]:
    """Delegates, each by name or as it is, in the given order; one alone needs no list around it.

    Raises UsageError, listing them, for names that do not exist and for what is neither name nor Delegate; and for a
    name whose package cannot be loaded.
    """
    given: list[object] = [wanted] if isinstance(wanted, (str, Delegate)) else list(_listed(wanted))
    asked = [one for one in given if isinstance(one, (str, Delegate))]
    wrong = [repr(one) for one in given if one not in asked]
    if wrong:
        raise UsageError(f"no delegate: {', '.join(wrong)}", hint="give names or Delegate objects")
    known = {delegate.name: delegate for delegate in DELEGATES} | _REGISTERED
    unknown = [one for one in dict.fromkeys(asked) if isinstance(one, str) and one not in known]
    for name in list(unknown):
        for point in entry_points(group=ENTRY_POINTS, name=name):
            known[name] = _load(point.name, point.value, point.load)
            unknown.remove(name)
            break
    if unknown:
        raise UsageError(
            f"no delegate called {', '.join(unknown)}",
            hint=f"one of {', '.join(delegate_names())}; others come with the packages that bring them",
        )
    return tuple(known[one] if isinstance(one, str) else one for one in asked)


def _listed(given: object) -> Iterable[object]:
    if isinstance(given, Iterable):
        return given
    raise UsageError(
        f"delegates are names or Delegate objects, not {described(given)}", hint='delegates="cmsis_nn"'
    )


def delegates_or_default(wanted: Delegates | None, *, require: bool = False) -> tuple[Delegate, ...]:
    """`delegates_named`, or the usual ones for None. Raises UsageError when these are required: that says nothing."""
    if wanted is None and require:
        raise UsageError(
            "delegates are required, and none is named",
            hint="name them, as in delegates='cmsis_nn', or leave require_delegate away",
        )
    return DEFAULT if wanted is None else delegates_named(wanted)


def _load(name: str, place: str, load: object) -> Delegate:
    """The delegate behind an entry point."""
    assert callable(load)
    try:
        delegate = load()
    # Whatever a stranger's module does when it is imported, the user shall read who did it.
    except Exception as error:
        raise UsageError(
            f"delegate {name} cannot be loaded: {error}", place, "repair or remove its package"
        ) from error
    if not isinstance(delegate, Delegate) or delegate.name != name:
        raise UsageError(f"entry point {name} is no delegate of that name, but {delegate!r}", place)
    return delegate


__all__ = [
    "CMSIS_NN",
    "CORTEX_M",
    "DEFAULT",
    "DELEGATES",
    "PORTABLE",
    "Delegate",
    "Delegates",
    "Partition",
    "Payload",
    "delegate_names",
    "delegates_named",
    "delegates_or_default",
    "files_of",
    "regions_of",
    "register_delegate",
]
