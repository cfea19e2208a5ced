# SPDX-License-Identifier: Apache-2.0
"""In what order a kernel reads an input and writes its output: what allows one to lie partly over the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tinyet.errors import InternalError
from tinyet.ir import Node

Bytes = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class AccessOrder:
    """A kernel's work on one input and its output in steps: in step k it reads no byte of the input before `needed[k]`,
    and when the step ends it has written no byte of the output from `written[k]` on.

    Both are arrays of int64, (steps,), ascending; bytes from the tensor's first. Within a step reads and writes come in
    any order: a loop that copies what a group of outputs needs, and then writes the group, may be cut between the two.
    The last entry of `written` is the output's size. Of its output the kernel reads at most what it has written itself;
    it may write it again (the last pixels of a row, say, or a clamp of all of them behind the last step).

    What loops have in common is in tinyet/ops/shared/access_orders.py.
    """

    written: Bytes
    needed: Bytes

    def __post_init__(self) -> None:
        same = self.written.shape == self.needed.shape and self.written.ndim == 1 and len(self.written) > 0
        if not same or any((np.diff(each) < 0).any() for each in (self.written, self.needed)):
            raise InternalError("the steps of an access order do not ascend, or there are none")

    @property
    def dependence_distance(self) -> int:
        """Bytes that the input has to begin behind where the output begins, at least, for all that is still to be read
        to be there; the output's size at most, where nothing overlaps. Any larger number is right as well."""
        return int((self.written - self.needed).max())


AccessOrders = Callable[[Node, int], AccessOrder | None]
"""Of a node that the kernel computes, and one of its inputs by number; None where it promises nothing. It is asked of
tensors that lie row-major without gaps."""
