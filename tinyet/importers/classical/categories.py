# SPDX-License-Identifier: Apache-2.0
"""Sets of categories as intervals of float32.

Libraries cut a feature off to a whole number before they look it up, so that a category c is all of c <= x < c + 1. Of
0 LightGBM has -1 < x < 0, too, which are cut off to it; XGBoost has these negative numbers in no set.
"""

from __future__ import annotations

import numpy as np

from tinyet.errors import RefusedError
from tinyet.ops.shared.forest import Choice, Numeric, at_most


def choice_of(members: Numeric, inside: int, *, cut_off_to_zero: bool) -> Choice:
    """members: categories, whole numbers from 0 on, ascending, each once. inside: the child of what is in the set.
    cut_off_to_zero: whether 0 has what is above -1.

    Raises RefusedError for a set that no float32 is in."""
    last = np.flatnonzero(np.diff(members, append=np.inf) != 1)
    first = np.concatenate([[0], last[:-1] + 1]) if len(last) else last
    ends = np.column_stack([members[first], members[last] + 1.0]).reshape(-1).astype(np.float64)
    # x is at least c where it is not at most the number before c; less than c + 1 where it is at most that before it.
    edges = at_most(np.nextafter(ends, -np.inf))
    if cut_off_to_zero and len(ends) and ends[0] == 0:
        edges[0] = -1.0
    # Beyond 2^24 an interval, or what is between two, may have no float32 in it: ends that are twice the same.
    found, times = np.unique(edges, return_counts=True)
    found = found[times % 2 == 1]
    if not len(found):
        raise RefusedError("has a node with a set of categories that nothing is in", "save the model again")
    return Choice(found, inside)
