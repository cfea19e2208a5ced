# SPDX-License-Identifier: Apache-2.0
"""Which classes are taken for which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Cells = tuple[tuple[int, int, int], ...]
"""(label, class that was named, samples), in the order of labels and classes, those without samples left out."""


@dataclass(frozen=True)
class Confusion:
    """Of labelled samples. classes: names, or none. device, host, float: who names what; host: the host reference,
    which is the int8 model; None where there was no device, or no float model."""

    classes: tuple[str, ...]
    device: Cells | None
    host: Cells
    float: Cells | None

    def to_json(self) -> dict[str, object]:
        """The documented, stable form of `--json` (docs/json.md)."""

        def listed(cells: Cells | None) -> list[list[int]] | None:
            return None if cells is None else [list(cell) for cell in cells]

        return {
            "classes": list(self.classes),
            "device": listed(self.device),
            "host": listed(self.host),
            "float": listed(self.float),
        }


def confusion_of(
    classes: Sequence[str], named: Iterable[tuple[int, int | None, int, int | None]]
) -> Confusion | None:
    """named: of each labelled sample the label, and what device, host and float model name, None where there is none.
    None of no samples."""
    rows = list(named)
    if not rows:
        return None
    labels = [row[0] for row in rows]

    def known(who: int) -> Cells | None:
        found = [row[who] for row in rows]
        return None if None in found else _cells(zip(labels, found, strict=True))

    host = _cells((row[0], row[2]) for row in rows)
    return Confusion(tuple(classes), known(1), host, known(3))


def _cells(pairs: Iterable[tuple[int, int | None]]) -> Cells:
    counted = Counter((label, named) for label, named in pairs if named is not None)
    return tuple((*pair, count) for pair, count in sorted(counted.items()))
