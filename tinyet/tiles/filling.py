# SPDX-License-Identifier: Apache-2.0
"""Parts of a tile of one pixel whose loads bring as many words as registers are free (loads.py).

What a group of channels reads of the stream of weights is one run of words, biases and what rounds included: so the
first load brings weights beside the biases, and the last one what rounds beside weights.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tinyet.tiles import int16, loads
from tinyet.tiles.blocks import PIXELS, WEIGHTS, rounded, total
from tinyet.tiles.core import CorePage
from tinyet.tiles.loads import Step
from tinyet.tiles.operation import (
    Operation,
    accumulate_long,
    compute,
    constant,
    load,
    load_and_move,
    load_several,
    moved,
)
from tinyet.tiles.schedule import ordered
from tinyet.tiles.tile import Tile, Weights


@dataclass
class _Stretch:
    """Straight code: what it computes, step by step, and the names of the words that it reads of both streams."""

    inputs: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    parts: list[tuple[Step, list[Operation]]] = field(default_factory=list)

    def step(self, operations: list[Operation], inputs: int, words: int) -> None:
        """All words named so far are needed; so many of each stream nothing reads any more."""
        self.parts.append((Step((len(self.inputs), len(self.words)), (inputs, words)), operations))

    def operations(self, room: int, page: CorePage, t: Tile, *, begin: bool = False) -> list[Operation]:
        """With its loads. begin: the stream of weights begins with what the sums begin with, which no step uses up."""
        first = _sums(t) if begin else ()
        if not page.pipeline:
            # What is made of digits beside the words that it is made of.
            return self._filled(room - (2 if t.weights.int4 else 0), first)
        outputs = tuple(total(channel, 0) for channel in range(t.channels))
        return self._interleaved(room, page, first, (*_sums(t), *outputs))

    def _interleaved(
        self, room: int, page: CorePage, first: tuple[str, ...], sums: tuple[str, ...]
    ) -> list[Operation]:
        """With a load for each word, beside what is computed."""
        words = (*first, *self.words)
        found = [load(name, WEIGHTS, 4 * at, "" if at else "weights") for at, name in enumerate(words)]
        found += [load(name, PIXELS, 4 * at) for at, name in enumerate(self.inputs)]
        found += [operation for _, operations in self.parts for operation in operations]
        found = ordered(found, room, page, sums)
        return [*found, *moved(WEIGHTS, 4 * len(words)), *moved(PIXELS, 4 * len(self.inputs))]

    def _filled(self, room: int, first: tuple[str, ...]) -> list[Operation]:
        """With loads that fill all registers that are free."""
        streams, bases = (self.inputs, self.words), (PIXELS, WEIGHTS)
        loaded = [0, 0]

        def several(stream: int, count: int, before: tuple[str, ...] = ()) -> Operation:
            names = (*before, *streams[stream][loaded[stream] : loaded[stream] + count])
            loaded[stream] += count
            text = "bias" if before else "inputs" if stream == 0 else "weights"
            if len(names) == 1:
                return load_and_move(names[0], bases[stream], text)
            return load_several(names, bases[stream], text)

        begin, *plan = loads.planned([step for step, _ in self.parts], room, begun=bool(first))
        found = [several(1, sum(count for _, count in begin), first)] if first else []
        for (_, operations), before in zip(self.parts, plan, strict=True):
            found += [several(stream, count) for stream, count in before]
            found += operations
        return found


def whole(t: Tile, room: int, page: CorePage) -> list[Operation]:
    """All of a group of channels but the stores, without a loop. room: registers for words of both streams."""
    made = _Stretch()
    _products(t, made, t.pairs)
    _ends(t, made)
    return made.operations(room, page, t, begin=True)


def head(t: Tile, room: int, page: CorePage) -> list[Operation]:
    """The biases, and the pairs before the loop."""
    made = _Stretch()
    _products(t, made, t.before)
    return made.operations(room, page, t, begin=True)


def turn(t: Tile, room: int, page: CorePage) -> list[Operation]:
    made = _Stretch()
    _products(t, made, t.turn)
    return made.operations(room, page, t)


def tail(t: Tile, room: int, page: CorePage) -> list[Operation]:
    """What is behind the products, up to the stores."""
    made = _Stretch()
    _ends(t, made)
    return made.operations(room, page, t)


def _sums(t: Tile) -> tuple[str, ...]:
    """In the order of what they begin with."""
    if t.weights is Weights.LONG:
        evens = range(0, t.channels, 2)
        both = (name for a in evens for name in _both(a))
        return (*both, *(total(a, 0) for a in evens))
    if t.weights is Weights.LONG_DIGITS:
        return (*(total(channel, 0) for channel in range(3)), *_both(3))
    return tuple(total(channel, 0) for channel in range(t.channels))


def _both(a: int) -> tuple[str, str]:
    """The lower and the upper word of 256 times the sum of channel a + 1, and that of a; of LONG_DIGITS of all four."""
    return f"low{a}", f"high{a}"


def _products(t: Tile, made: _Stretch, pairs: int) -> None:
    """Of so many pairs."""
    for x in range(0, pairs, 2 if t.weights.crossed else 1):
        _PARTS[t.weights](t, made, x)


def _crossed(t: Tile, made: _Stretch, x: int) -> None:
    """Of a pair and the next one, by two channels after another."""
    x0, x1 = f"x{x}", f"x{x + 1}"
    made.inputs += [x0, x1]
    for k in range(t.words):
        w = x * t.words + 2 * k
        u, v = f"w{w}", f"w{w + 1}"
        made.words += [u, v]
        both, one = total(2 * k + 1, 0), total(2 * k, 0)
        operations = [
            compute("smlad", both, u, x0, both),
            compute("smlad", both, v, x1, both),
            compute("sxtab16", u, x1, u),
            compute("sxtab16", v, x0, v),
            compute("smlad", one, u, v, one),
        ]
        made.step(operations, x + 2 if k == t.words - 1 else x, len(made.words))


def _crossed_digits(t: Tile, made: _Stretch, x: int) -> None:
    """Of a pair and the next one, four channels."""
    x0, x1, u, v = f"x{x}", f"x{x + 1}", f"w{x}", f"w{x + 1}"
    made.inputs += [x0, x1]
    made.words += [u, v]
    a, b, c, d = (total(channel, 0) for channel in range(t.channels))
    found: list[Operation] = []
    for word, pixel in ((u, x0), (v, x1)):
        if t.weights is Weights.LONG_DIGITS:
            found.append(accumulate_long(*_both(3), word, pixel))
        else:
            found.append(compute("smlad", d, word, pixel, d))
    found += [compute("and.w", f"odd_{word}", word, behind="#0x0f0f0f0f") for word in (u, v)]
    found += [compute("smlad", c, f"odd_{word}", pixel, c) for word, pixel in ((u, x0), (v, x1))]
    for of, total_of in (("", b), ("odd_", a)):
        left, right = f"left_{of}{u}", f"right_{of}{v}"
        found += [
            compute("uxtab16", left, x1, of + u),
            compute("uxtab16", right, x0, of + v),
            compute("smlad", total_of, left, right, total_of),
        ]
    made.step(found, x + 2, x + 2)


def _wide(t: Tile, made: _Stretch, x: int) -> None:
    """Of a pair, by one channel after another."""
    made.inputs.append(f"x{x}")
    for channel in range(t.channels):
        w = f"w{x * t.words + channel}"
        made.words.append(w)
        operation = compute("smlad", total(channel, 0), w, f"x{x}", total(channel, 0))
        made.step([operation], x + 1 if channel == t.channels - 1 else x, len(made.words))


def _long(t: Tile, made: _Stretch, x: int) -> None:
    """Of a pair, by two channels after another."""
    made.inputs.append(f"x{x}")
    for a in range(0, t.channels, 2):
        at, one = x * t.words + a // 2, total(a, 0)
        w, v = f"w{at}", f"v{at}"
        made.words.append(w)
        operations = [
            accumulate_long(*_both(a), w, f"x{x}"),
            compute("sxtb16", v, w),
            compute("smlad", one, v, f"x{x}", one),
        ]
        made.step(operations, x + 1 if a == t.channels - 2 else x, len(made.words))


_PARTS = {
    Weights.CROSSED: _crossed,
    Weights.CROSSED_DIGITS: _crossed_digits,
    Weights.LONG_DIGITS: _crossed_digits,
    Weights.WIDE: _wide,
    Weights.LONG: _long,
}


def _int16_ends(t: Tile, made: _Stretch) -> None:
    """Sums of channels that have words of their own, and their rounding."""
    if t.weights is Weights.LONG:
        apart = [operation for a in range(0, t.channels, 2) for operation in _apart(a)]
        made.step(apart, len(made.inputs), len(made.words))
    if t.bits == 32:
        return
    channels = range(t.channels)
    multipliers = [f"multiplier{c}" for c in channels]
    made.words += multipliers
    offset = constant("offset", int16.offset(t.exponent)) if t.exponent else []
    found = int16.rounded([total(c, 0) for c in channels], t.exponent or 0, t.low, t.high, multipliers)
    made.step([*offset, *found], len(made.inputs), len(made.words))


def _apart(a: int) -> list[Operation]:
    """The sum of channel a + 1, of 256 times itself and that of a."""
    (low, high), b = _both(a), total(a + 1, 0)
    return [
        compute("lsr.w", low, low, behind="#8", step=f"channel {a + 1} without channel {a}"),
        compute("orr.w", low, low, high, behind="lsl #24"),
        compute("sub.w", b, low, total(a, 0), behind="asr #8"),
    ]


def _ends(t: Tile, made: _Stretch) -> None:
    """What comes behind the products of a group of channels: its rounding."""
    if t.bits > 8:
        _int16_ends(t, made)
        return
    if t.weights is Weights.WIDE:
        _wide_ends(t, made)
        return
    if t.weights.int4:
        made.inputs += ["rest", "rest_b", "rest_c"]
        made.step(_digits_apart(t), len(made.inputs), len(made.words))
    else:
        made.inputs.append("rest")
        made.step(_lifted(t), len(made.inputs), len(made.words))
    for a in range(0, t.channels, 2):
        down = f"asr #{t.lift}" if t.lift else ""
        both, one = total(a + 1, 0), total(a, 0)
        text = f"256 times channel {a + 1} without channel {a}"
        apart = compute("sub.w", both, both, one, behind=down, step=text)
        # Alike, what rounds both lies together; otherwise that of the second comes first.
        together = ((a, a + 1),) if t.alike else ((a + 1,), (a,))
        names = ("multiplier", "offset") if t.alike else ("multiplier", "offset", "shift")
        for channels in together:
            made.words += [f"{name}{channel}" for name in names for channel in channels]
            operations = [operation for c in channels for part in rounded(t, c) for operation in part]
            first = [apart] if channels[-1] == a + 1 and not t.weights.int4 else []
            made.step([*first, *operations], len(made.inputs), len(made.words))


def _lifted(t: Tile) -> list[Operation]:
    """The sums of crossed channels without the products of inputs, shifted."""
    up = f"lsl #{t.lift}" if t.lift else ""
    sums = [total(a, 0) for a in range(0, t.channels, 2)]
    step = "without the products of neighbouring inputs"
    return [compute("rsb.w", s, "rest", s, behind=up, step="" if i else step) for i, s in enumerate(sums)]


def _digits_apart(t: Tile) -> list[Operation]:
    """The sums of crossed digits: A, lifted, 16 * B, 256 * C, and 4096 * D, or D of 64 bits.

    With S eight times the sum of all inputs, P that of products of neighbours, what is summed up is A + P + S,
    16 * B + A + P + 17 * S, 256 * C + A + 257 * S, and 4096 * D + 256 * C + 16 * B + A + 273 * S. Behind the inputs are
    P + S, lifted, 16 * S and 257 * S."""
    a, b, c, d = (total(channel, 0) for channel in range(t.channels))
    up, down = (f"{to} #{t.lift}" if t.lift else "" for to in ("lsl", "asr"))
    found = [compute("sub.w", b, b, a, step="sums of digits apart")]
    if t.weights is Weights.LONG_DIGITS:
        low, high = _both(3)
        # The lower twelve bits of both are the same.
        found += [
            compute("add.w", "three", c, b),
            compute("lsr.w", low, low, behind="#12"),
            compute("orr.w", low, low, high, behind="lsl #20"),
            compute("sub.w", d, low, "three", behind="asr #12"),
        ]
    else:
        found += [compute("sub.w", d, d, c), compute("sub.w", d, d, b)]
    return [
        *found,
        compute("rsb.w", a, "rest", a, behind=up, step="without what inputs add"),
        compute("sub.w", b, b, "rest_b"),
        compute("sub.w", c, c, "rest_c"),
        compute("sub.w", c, c, a, behind=down),
    ]


def _wide_ends(t: Tile, made: _Stretch) -> None:
    channels = range(t.channels)
    made.words += [f"{name}{c}" for name in ("multiplier", "offset") for c in channels]
    each = [rounded(t, c) for c in channels]
    made.step([o for products, _ in each for o in products], len(made.inputs), len(made.words))
    if t.exponent is None:
        made.words += [f"shift{c}" for c in channels]
    made.step([o for _, behind in each for o in behind], len(made.inputs), len(made.words))
