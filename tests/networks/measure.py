# SPDX-License-Identifier: Apache-2.0
"""How near a network's int8 program is to its float model, beside plain PT2E."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

import tinyet
from tests.networks.network import Network
from tests.networks.plain import plain
from tests.torch_helpers import unrolled
from tinyet.fx.capture import capture, lower
from tinyet.fx.recurrent_ops import RECURRENT
from tinyet.program import Program

EXACT_DB = 60.0
"""Ratios above are all the same: 256 steps over a uniform range give 48 dB, and nothing in int8 that is not exact, or
next to it, gives 60."""

WORSE_DB = 3.0
"""More than this below plain PT2E is a fault."""

Values = npt.NDArray[Any]


@dataclass(frozen=True)
class Result:
    """SQNR in dB against the float model over the samples to judge by, of the output that is furthest below plain PT2E.
    Infinite where every value is the float model's."""

    network: Network
    program: Program
    plain_db: float
    ours_db: float

    @property
    def difference(self) -> float:
        """Ours above plain in dB, both taken as `EXACT_DB` at most."""
        return _difference(self.plain_db, self.ours_db)

    @property
    def worse(self) -> bool:
        """Whether it is more than `WORSE_DB` below plain PT2E."""
        return not self.difference >= -WORSE_DB


def _difference(plain_db: float, ours_db: float) -> float:
    return min(ours_db, EXACT_DB) - min(plain_db, EXACT_DB)


def sqnr_db(exact: Values, found: Values) -> float:
    """Power of the signal over power of the error; all errors 0 is infinite, a value that is NaN minus infinite."""
    exact, found = exact.astype(np.float64), found.astype(np.float64)
    noise = float(((exact - found) ** 2).sum())
    signal = float((exact**2).sum())
    if noise == 0.0:
        return math.inf
    if not math.isfinite(noise) or signal == 0.0:
        return -math.inf
    return 10 * math.log10(signal / noise)


def _outputs(run: Callable[..., Any], data: Sequence[torch.Tensor]) -> list[Values]:
    """Each output over all samples, which are run one by one."""
    rows = []
    for index in range(len(data[0])):
        found = run(*(x[index : index + 1] for x in data))
        rows.append([np.asarray(y) for y in (found if isinstance(found, (tuple, list)) else (found,))])
    return [np.stack(column) for column in zip(*rows, strict=True)]


def measure(network: Network) -> Result:
    """Quantize the network both ways with the same data, and judge both by the same other data."""
    model = network.build()
    calibration, evaluation = network.samples()
    example = tuple(x[:1] for x in calibration)
    captured = capture(model, example)
    # The judge knows no recurrent layers, but what torch makes of them.
    whole = any(node.target in RECURRENT for node in captured.graph.nodes)
    simulated = plain(lower(unrolled(model, example)) if whole else captured, calibration)
    program = tinyet.compile(captured, calibration=[calibration])
    with torch.no_grad():
        exact = _outputs(model, evaluation)
        judged = _outputs(simulated, evaluation)
    ours = _outputs(lambda *x: program.run(*(v.numpy() for v in x), as_float=True), evaluation)
    pairs = [(sqnr_db(a, b), sqnr_db(a, c)) for a, b, c in zip(exact, judged, ours, strict=True)]
    worst = min(pairs, key=lambda pair: _difference(*pair))
    return Result(network, program, *worst)
