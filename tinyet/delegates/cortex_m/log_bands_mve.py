# SPDX-License-Identifier: Apache-2.0
"""Logarithms of bands of a spectrum for Helium (tinyet_log_bands_mve.h): four complex numbers at a time, of transforms
whose first stage is of radix 4."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d_mve import no_helium
from tinyet.ir import Node
from tinyet.ops import log_bands
from tinyet.ops.log_bands import FILTERS, WINDOW, X, attrs_of, bands_of, window_of
from tinyet.ops.shared import fixed_fft
from tinyet.opset import Call, Constant, CostModel, Kernel

SYMBOL = "tinyet_log_bands_s16_mve"
LANES = 4
MOST_LENGTH = 1 << 14
"""Of a transform whose blocks begin at places of 16 bits."""
_READ = {2: (1,), 3: (1, 2), 4: (1, 3, 2), 5: (1, 4, 2, 3)}
"""{radix: in which order the other numbers of a butterfly are read}."""

Halfwords = npt.NDArray[np.int16]


def refuse(node: Node, target: Target) -> str | None:
    length, given = attrs_of(node).length, node.input(X).shape[-1]
    if (reason := no_helium(target)) is not None:
        return reason
    if length % (2 * LANES) or length > MOST_LENGTH:
        return f"a transform of {length} values: a multiple of 8 up to {MOST_LENGTH} is needed"
    if 4 * given < length or given % 2 or (given % (length // 4)) % (2 * LANES):
        return f"{given} values of {length}: whole quarters and a multiple of 8 are needed"
    return None


def _in_lanes(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Filled up with zeros to the end of a vector."""
    missing = -len(values) % LANES
    return np.concatenate([values, np.zeros((missing, *values.shape[1:]), np.int64)])


def window_in_order(window: Halfwords, length: int) -> Halfwords:
    """[quarter / 4][4][8], the last quarter first, zeros where nothing is given."""
    whole = np.zeros(length, np.int64)
    whole[: len(window)] = window
    quarters = np.stack([_in_lanes(part) for part in whole.reshape(4, -1, 2)])
    vectors = quarters.reshape(4, -1, 2 * LANES)[::-1]
    return vectors.transpose(1, 0, 2).astype(np.int16).reshape(-1)


def twiddles_in_order(length: int) -> Halfwords:
    """Of all stages but the first, [size / 4][radix - 1][4][2] each."""
    count, table, found = length // 2, fixed_fft.twiddles(length), [np.zeros(0, np.int64)]
    first, *others = fixed_fft.radices(count)
    size = first
    for radix in others:
        at = np.arange(size).reshape(-1, 1, LANES) * (count // (size * radix))
        found.append(table[at * np.array(_READ[radix])[:, None]].reshape(-1))
        size *= radix
    return np.concatenate(found).astype(np.int16)


def split_in_order(length: int) -> Halfwords:
    """[count / 8][4][2], beginning with zeros."""
    split = fixed_fft.split_twiddles(length)[: length // 4 - 1]
    return _in_lanes(np.concatenate([np.zeros((1, 2), np.int64), split])).astype(np.int16).reshape(-1)


def lower(node: Node, target: Target) -> Call:
    portable = log_bands.lower(node, target)
    assert portable.params is not None
    length, count = attrs_of(node).length, attrs_of(node).length // 2
    bands = bands_of(node.input(FILTERS).array)
    runs = np.stack(
        [np.where(bands.counts > 0, bands.firsts - bands.low // LANES * LANES, 0), bands.counts], -1
    )
    order = 8 * fixed_fft.order(count)[: count // 4]
    tables = {
        "window": window_in_order(window_of(node.input(WINDOW).array), length),
        "order": _in_lanes(order).astype(np.uint16),
        "twiddles": twiddles_in_order(length),
        "split": split_in_order(length),
        "runs": runs.astype(np.uint16).reshape(-1),
    }
    if not len(tables["twiddles"]):  # one stage has none
        tables["twiddles"] = np.zeros(2, np.int16)
    constants = [Constant(c.name, tables[c.name]) if c.name in tables else c for c in portable.constants]
    fields = {**portable.params.fields, "given": node.input(X).shape[-1] // 2, "quarter": count // 4}
    params = replace(portable.params, ctype="tinyet_log_bands_s16_mve_params", fields=fields)
    return replace(
        portable, symbol=SYMBOL, params=params, constants=tuple(constants), scratch_bytes=8 * (count + LANES)
    )


def work(node: Node) -> Mapping[str, int]:
    a, x = attrs_of(node), node.input(X)
    frames, count = x.type.count // x.shape[-1], a.length // 2
    bands = bands_of(node.input(FILTERS).array)
    quarter, more = count // 4, (x.shape[-1] // 2) % (count // 4)
    _, *radices = fixed_fft.radices(count)
    found = {
        "call": 1,
        "frame": frames,
        "part of quarters": frames * (2 if more else 1),
        "four pairs": frames * (-(-more // LANES) + -(-(quarter - more) // LANES)),
        "four numbers made real": frames * -(-count // (2 * LANES)),
        "four bins": frames * -(-(bands.high - bands.low // LANES * LANES) // LANES),
        "band": frames * len(bands.counts),
        "four bands": frames * -(-len(bands.counts) // LANES),
        "four weights": frames * int(np.sum(-(-bands.counts // LANES))),
        "stage": frames * len(radices),
    }
    size = LANES
    for radix in radices:
        blocks, near = frames * (count // (size * radix)), size == LANES
        parts = {f"{'near' if near else 'far'} four butterflies of {radix}": blocks * (size // LANES)}
        if not near:
            parts["block of five" if radix == 5 else "block"] = blocks
        found |= {part: found.get(part, 0) + times for part, times in parts.items()}
        size *= radix
    return found


KERNELS = (
    Kernel(
        SYMBOL,
        "s16",
        lower,
        ("tinyet_log_bands_mve.h",),
        (f"{SYMBOL}.c",),
        refuse,
        "cortex_m",
        cost_model=CostModel(work),
    ),
)
