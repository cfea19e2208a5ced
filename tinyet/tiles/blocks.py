# SPDX-License-Identifier: Apache-2.0
"""A tile's parts in instructions of values: products, rounding, stores."""

from __future__ import annotations

from tinyet.tiles import int16
from tinyet.tiles.core import CorePage
from tinyet.tiles.operation import (
    Operation,
    compute,
    constant,
    load,
    load_and_move,
    load_several,
    saturate,
    store,
    store_byte,
    store_half,
)
from tinyet.tiles.tile import Tile, Weights

LARGEST_OFFSET = 4095
"""Of a store, in bytes."""
WEIGHTS, PIXELS = "weights", "pixels"
"""The values that point at the streams."""
_LEAST_BEFORE = 4
"""Shifts that a one-sided rounding of sums of int4 weights has at least: up to such a scale to the left."""


def total(channel: int, pixel: int) -> str:
    """The value that is the sum of an output."""
    return f"sum{channel}_{pixel}"


def biases(t: Tile) -> Operation:
    """Those of the group's channels, as sums of the last pixel."""
    if t.channels == 1:
        return load_and_move(total(0, t.pixels - 1), WEIGHTS, "bias")
    sums = tuple(total(channel, t.pixels - 1) for channel in range(t.channels))
    return load_several(sums, WEIGHTS, "bias")


def products(t: Tile, first: int, count: int, page: CorePage, *, begin: bool) -> list[Operation]:
    """Of `count` pairs from where the pointers are. first: the number of the first, for comments. begin: the sums of
    all pixels but the last begin with that of the last, a bias."""
    found: list[Operation] = []
    at_once = max(t.at_once, 1)
    for pair in range(0, count, at_once):
        inputs = tuple(f"x{p}_{m}" for p in range(pair, pair + at_once) for m in range(t.pixels))
        words = tuple(f"w{p}_{k}" for p in range(pair, pair + at_once) for k in range(t.words))
        number = (
            f"pair {first + pair}"
            if at_once == 1
            else f"pairs {first + pair} to {first + pair + at_once - 1}"
        )
        if t.at_once:
            found += [load_several(inputs, PIXELS, number), load_several(words, WEIGHTS)]
        else:
            for k, w in enumerate(words):
                found.append(load(w, WEIGHTS, 4 * (pair * t.words + k), number if k == 0 else ""))
            found += [load(x, PIXELS, 4 * _place(t, pair, m)) for m, x in enumerate(inputs)]
        for p in range(pair, pair + at_once):
            found += _pair(t, p, page, begin=begin and p == 0)
    return found


def _place(t: Tile, pair: int, pixel: int) -> int:
    """Of a word of the inputs, from where the pointer is."""
    if t.lanes is not None:
        return t.lanes.place(pair, pixel)
    after, beside = divmod(pixel, t.side)
    return (after * t.pairs + pair) * t.side + beside


def _pair(t: Tile, pair: int, page: CorePage, *, begin: bool) -> list[Operation]:
    def multiplied(channel: int, word: str) -> list[Operation]:
        return [
            compute(
                "smlad",
                total(channel, m),
                word,
                f"x{pair}_{m}",
                total(channel, t.pixels - 1 if begin else m),
            )
            for m in range(t.pixels)
        ]

    found: list[Operation] = []
    if t.lanes is not None:
        # Weights of all channels last while the inputs come by twos.
        if t.weights is Weights.BYTES:
            for k in range(t.words):
                found.append(compute("sxtb16", f"v{pair}_{2 * k}", f"w{pair}_{k}"))
                found.append(compute("sxtb16", f"v{pair}_{2 * k + 1}", f"w{pair}_{k}", behind="ror #8"))
        name = "v" if t.weights is Weights.BYTES else "w"
        of_channels = [multiplied(channel, f"{name}{pair}_{channel}") for channel in range(t.channels)]
        return found + [products[m] for m in range(t.pixels) for products in of_channels]
    if t.weights is Weights.WIDE:
        for channel in range(t.channels):
            found += multiplied(channel, f"w{pair}_{channel}")
    elif t.weights.int4:
        for operation, channel, word in (_nibbles if t.weights is Weights.NIBBLES else _digits)(f"w{pair}_0"):
            found += operation
            found += multiplied(channel, word)
    elif t.pixels > t.channels:
        # Both forms of few words last while the inputs come one by one.
        for k in range(t.words):
            found.append(compute("sxtb16", f"v{pair}_{k}", f"w{pair}_{k}"))
        by_channel = [multiplied(2 * k + i, f"{'vw'[i]}{pair}_{k}") for k in range(t.words) for i in (1, 0)]
        found += [products[m] for m in range(t.pixels) for products in by_channel]
    elif page.pipeline:
        # A word that is used up early makes room for the next one's load.
        for k in range(t.words):
            found += multiplied(2 * k + 1, f"w{pair}_{k}")
            found.append(compute("sxtb16", f"v{pair}_{k}", f"w{pair}_{k}"))
            found += multiplied(2 * k, f"v{pair}_{k}")
    else:
        for k in range(t.words):
            found += multiplied(2 * k + 1, f"w{pair}_{k}")
        for k in range(t.words):
            found.append(compute("sxtb16", f"v{pair}_{k}", f"w{pair}_{k}"))
        for k in range(t.words):
            found += multiplied(2 * k, f"v{pair}_{k}")
    return found


_Unpacked = list[tuple[list[Operation], int, str]]
"""What makes a word of factors, of which channel, and which word."""


def _digits(w: str) -> _Unpacked:
    """Of a word of DIGITS."""
    byte, lifted, three, lowest = (f"{kind}_{w}" for kind in ("byte", "lifted", "three", "lowest"))
    apart = [
        compute("lsl.w", lifted, w, behind="#4"),
        # What came over from the lower half.
        compute("bic.w", three, lifted, behind="#0x000f0000"),
    ]
    return [
        ([], 3, w),
        ([compute("sxtb16", byte, w)], 1, byte),
        (apart, 2, three),
        ([compute("sxtb16", lowest, three)], 0, lowest),
    ]


def _nibbles(w: str) -> _Unpacked:
    """Of a word of NIBBLES. The upper halves of bytes are masked twice: a register more there is not."""
    found: _Unpacked = []
    upper = [(f"upper{c}_{w}", f"v{c}_{w}", c) for c in (0, 1)]
    for masked, factor, channel in upper:
        behind = "ror #8" if channel else ""
        made = [
            compute("and.w", masked, w, behind="#0xf0f0f0f0"),
            compute("sxtb16", factor, masked, behind=behind),
        ]
        found.append((made, channel, factor))
    lifted, lower = f"lifted_{w}", f"lower_{w}"
    made = [
        compute("lsl.w", lifted, w, behind="#4"),
        compute("and.w", lower, lifted, behind="#0xf0f0f0f0"),
        compute("sxtb16", f"v3_{w}", lower, behind="ror #8"),
    ]
    found.append((made, 3, f"v3_{w}"))
    found.append(([compute("sxtb16", f"v2_{w}", lower)], 2, f"v2_{w}"))
    return found


def rounding(t: Tile) -> list[Operation]:
    """The outputs of the sums, in their place."""
    if t.bits > 8:
        return _rounded_to_int16(t)
    if t.plain:
        return [
            o for c in range(t.channels) for o in _rounded(t, range(c, c + 1), f"rounding of channel {c}")
        ]
    if t.weights is Weights.WIDE:
        return _rounded(t, range(t.channels), "rounding")
    found = _digits_apart(t) if t.weights is Weights.DIGITS else []
    for a in range(0, t.channels, 2):
        b = a + 1
        for m in range(0 if t.weights.int4 else t.pixels):
            step = f"256 times channel {b} without channel {a}" if m == 0 else ""
            found.append(compute("sub.w", total(b, m), total(b, m), total(a, m), step=step))
        if t.alike:
            found += _rounded(t, range(a, b + 1), f"rounding of channels {a} and {b}")
            continue
        for channel in (b, a):
            found += _rounded(t, range(channel, channel + 1), f"rounding of channel {channel}")
    return found


def _digits_apart(t: Tile) -> list[Operation]:
    """Of sums of digits 16 * A, 16 * B + A, 16 times that and 4096 * C, and that and 4096 * D of the fourth without
    what was shifted: 16 * A, 16 * B, 4096 * C, 4096 * D."""
    found: list[Operation] = []
    for m in range(t.pixels):
        a, b, c, d = (total(channel, m) for channel in range(t.channels))
        found += [
            compute("sub.w", d, d, c, behind="asr #4", step="" if m else "sums of digits apart"),
            compute("sub.w", c, c, b, behind="lsl #4"),
            compute("sub.w", b, b, a, behind="asr #4"),
        ]
    return found


def _rounded_to_int16(t: Tile) -> list[Operation]:
    if t.bits == 32:
        return []
    names = tuple(f"multiplier{c}" for c in range(t.channels))
    if t.channels == 1:
        found = [load_and_move(names[0], WEIGHTS, "rounding")]
    else:
        found = [load_several(names, WEIGHTS, "rounding")]
    if t.exponent:
        found += constant("offset", int16.offset(t.exponent))
    sums = [(total(c, m), name) for c, name in enumerate(names) for m in range(t.pixels)]
    values, multipliers = zip(*sums, strict=True)
    return found + int16.rounded(values, t.exponent or 0, t.low, t.high, multipliers)


def _rounded(t: Tile, channels: range, step: str) -> list[Operation]:
    shifts = not t.alike and (t.weights.packed or t.exponent is None)
    names: tuple[str, ...] = ("multiplier", "offset", "shift") if shifts else ("multiplier", "offset")
    names += ("before", "mask") if t.plain else ()
    found = [load_several(tuple(f"{name}{c}" for name in names for c in channels), WEIGHTS, step)]
    for channel in channels:
        products, behind = rounded(t, channel)
        found += products + behind
    return found


def rounded(t: Tile, channel: int) -> tuple[list[Operation], list[Operation]]:
    """Of the sums of a channel: what needs its multiplier and its offset, and what comes behind that."""
    sums = [total(channel, m) for m in range(t.pixels)]
    multiplier, offset, shift = f"multiplier{channel}", f"offset{channel}", f"shift{channel}"
    found: list[Operation] = []
    if t.weights.packed and not _is_lifted(t, channel):
        scale = t.weights.scale(channel)
        mnemonic = "asr.w" if scale > (t.lift or _LEAST_BEFORE) else "lsl.w"
        if t.alike or t.exponent is None:
            by = abs(t.lift - scale)
            found += [compute(mnemonic, s, s, behind=f"#{by}") for s in sums if by]
        else:
            found += [compute(mnemonic, s, s, shift) for s in sums]
    if t.exponent is not None:
        found += [compute("smmla", s, s, multiplier, offset) for s in sums]
        return found, [saturate(s, t.exponent) for s in sums]
    for m, s in enumerate(sums):
        corrected = f"corrected{channel}_{m}"
        if t.plain:
            found.append(compute("lsl.w", s, s, f"before{channel}"))
            found.append(compute("and.w", corrected, f"mask{channel}", s, behind="asr #31"))
            found.append(compute("add.w", corrected, corrected, offset))
        else:
            found.append(compute("add.w", corrected, offset, s, behind="asr #31"))
        found.append(compute("smmlar", s, s, multiplier, corrected))
    return found, [*(compute("asr.w", s, s, shift) for s in sums), *(saturate(s) for s in sums)]


def _is_lifted(t: Tile, channel: int) -> bool:
    """Whether the sums of a channel are shifted to the left before."""
    return t.weights.crossed and channel % t.weights.of_word == 0 and t.lift > 0


def stores(t: Tile, output: str, first: int) -> list[Operation]:
    """All outputs but the first, `first` bytes behind where `output` points."""
    places = [(m, channel) for m in reversed(range(t.pixels)) for channel in reversed(range(t.channels))]
    size = t.bits // 8
    found: list[Operation] = []
    for m, c in places[:-1]:
        base, offset = output, m * t.step + first
        if offset + size * t.channels > LARGEST_OFFSET:
            base = "far"
            if c == t.channels - 1:
                found += [*constant(base, offset), compute("add.w", base, output, base)]
            offset = 0
        found.append(stored(t, total(c, m), base, offset + size * c))
    return found


def stored(t: Tile, value: str, output: str, offset: int) -> Operation:
    """An output, in as many bits as it has."""
    return {8: store_byte, 16: store_half, 32: store}[t.bits](value, output, offset)
