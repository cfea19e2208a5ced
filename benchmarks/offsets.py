# SPDX-License-Identifier: Apache-2.0
"""How near to their lower bound buffers are placed: families of dense graphs, of some hundreds of buffers each.

    python benchmarks/offsets.py [--only FAMILY ...] [--count N] [--budget STEPS] [--csv FILE ...]

A line for each set of buffers: their number, how many are alive at once at most, the peak of the heuristics alone and
of the whole (`place`), the lower bound and the gap to it in per cent, whether the peak is proved to be the smallest,
and CPU seconds. `--csv` takes files in the format of the MiniMalloc benchmarks (columns lower, upper, size; buffers
live from lower to before upper).
"""

from __future__ import annotations

import argparse
import csv
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tinyet.memory.buffers import sections
from tinyet.memory.offsets import DEFAULT_BUDGET, Buffer, place

ALIGN = 4


def _buffers(lives: Sequence[tuple[int, int, int]]) -> list[Buffer]:
    """From (bytes, first step, last step)."""
    return [Buffer(f"b{i}", size, first, last, ALIGN) for i, (size, first, last) in enumerate(lives)]


def intervals(source: random.Random) -> list[Buffer]:
    """Lifetimes anywhere, most of them short; sizes over three decades."""
    count = source.randrange(200, 401)
    lives = []
    for _ in range(count):
        first = source.randrange(count)
        length = 1 + int(source.expovariate(1 / source.choice((3, 10, 40))))
        lives.append((int(10 ** source.uniform(1, 4)), first, min(first + length, count)))
    return _buffers(lives)


def even(source: random.Random) -> list[Buffer]:
    """Lifetimes anywhere, sizes even: many alive together, none of which decides."""
    count = source.randrange(200, 401)
    lives = []
    for _ in range(count):
        first = source.randrange(count)
        lives.append((source.randrange(64, 1025), first, first + source.randrange(1, 40)))
    return _buffers(lives)


def tiles(source: random.Random) -> list[Buffer]:
    """A full arena, cut up: a placement without a hole exists, and the bound is met."""
    count = source.randrange(200, 401)
    pieces = [(0, 4 * count, 0, 64 * count)]  # (first step, behind the last, lowest byte, behind the highest)
    while len(pieces) < count:
        first, end, low, high = pieces.pop(
            max(range(len(pieces)), key=lambda i: _area(pieces[i]) * source.random())
        )
        if (source.random() < 0.5 and end - first > 1) or high - low < 2 * ALIGN:
            at = source.randrange(first + 1, end)
            pieces += [(first, at, low, high), (at, end, low, high)]
        else:
            cut = source.randrange(low + ALIGN, high - ALIGN + 1, ALIGN)
            pieces += [(first, end, low, cut), (first, end, cut, high)]
    return _buffers([(high - low, first, end - 1) for first, end, low, high in pieces])


def _area(piece: tuple[int, int, int, int]) -> int:
    return (piece[1] - piece[0]) * (piece[3] - piece[2])


class _Net:
    """Layers one after another: a tensor lives from the layer that writes it to the last that reads it."""

    def __init__(self) -> None:
        self.lives: list[list[int]] = []

    def layer(self, size: int, *reads: int) -> int:
        step = len(self.lives)
        self.lives.append([size, step, step])
        for tensor in reads:
            self.lives[tensor][2] = step
        return step

    @property
    def buffers(self) -> list[Buffer]:
        return _buffers([(size, first, last) for size, first, last in self.lives])


def dense(source: random.Random) -> list[Buffer]:
    """A DenseNet: each layer reads all before it in its block, through a bottleneck."""
    net, side, channels = _Net(), source.choice((24, 28, 32, 48)), 16
    last = net.layer(side * side * channels)
    growth = source.randrange(6, 25)
    for _ in range(4):
        block = [last]
        for _ in range(source.randrange(16, 33)):
            narrow = net.layer(side * side * growth * source.choice((2, 3, 4)), *block)
            block.append(net.layer(side * side * growth, narrow))
            channels += growth
        channels //= 2
        wide = net.layer(side * side * channels, *block)
        side = max(side // 2, 2)
        last = net.layer(side * side * channels, wide)
    return net.buffers


def inception(source: random.Random) -> list[Buffer]:
    """Branches of several layers from one tensor into one, of which each is computed layer by layer, all at once."""
    net, side, channels = _Net(), 28, 24
    last = net.layer(side * side * channels)
    while len(net.lives) < 250:
        branches = [[last] for _ in range(source.randrange(3, 7))]
        for _ in range(source.randrange(2, 5)):
            for branch in branches:
                if source.random() < 0.75:
                    branch.append(net.layer(side * side * source.randrange(4, 4 + channels), branch[-1]))
        last = net.layer(side * side * channels, *{branch[-1] for branch in branches})
        if source.random() < 0.3:
            side, channels = max(side * 3 // 4, 4), channels * 5 // 4
            last = net.layer(side * side * channels, last)
    return net.buffers


def cells(source: random.Random) -> list[Buffer]:
    """Searched cells: each node adds two results of earlier nodes, or of the two cells before."""
    net, side, channels = _Net(), 32, 12
    states = [net.layer(side * side * channels), net.layer(side * side * channels)]
    while len(net.lives) < 300:
        nodes = list(states)
        for _ in range(source.randrange(5, 9)):
            operands = []
            for origin in source.sample(nodes, 2):
                wide = net.layer(side * side * channels * source.choice((1, 2, 3)), origin)
                operands.append(net.layer(side * side * channels, wide))
            nodes.append(net.layer(side * side * channels, *operands))
        out = net.layer(side * side * channels * source.randrange(2, 5), *nodes[2:])
        states = [states[-1], out]
        if source.random() < 0.25:
            side, channels = max(side * 3 // 4, 4), channels * 4 // 3
    return net.buffers


def randomly_wired(source: random.Random) -> list[Buffer]:
    """Each layer reads some of the last forty tensors."""
    net = _Net()
    for number in range(source.randrange(200, 401)):
        near = range(max(0, number - 40), number)
        reads = source.sample(near, min(len(near), source.randrange(1, 4)))
        net.layer(16 * source.randrange(8, 512), *reads)
    return net.buffers


FAMILIES: dict[str, Callable[[random.Random], list[Buffer]]] = {
    f.__name__: f for f in (intervals, even, tiles, dense, inception, cells, randomly_wired)
}


def _from_csv(path: Path) -> list[Buffer]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [Buffer(r["id"], int(r["size"]), int(r["lower"]), int(r["upper"]) - 1) for r in rows]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--count", type=int, default=4, help="sets of buffers a family")
    parser.add_argument("--budget", type=int, default=DEFAULT_BUDGET, help="steps of the search")
    parser.add_argument("--csv", nargs="*", type=Path, default=[])
    arguments = parser.parse_args()
    cases = [
        (f"{name} {seed}", FAMILIES[name](random.Random(f"{name} {seed}")))
        for name in arguments.only
        for seed in range(arguments.count)
    ]
    cases += [(path.name, _from_csv(path)) for path in arguments.csv]
    print(
        f"{'set':<20}{'buffers':>8}{'alive':>6}{'first fit':>11}{'peak':>11}{'bound':>11}{'gap %':>7}  proved  CPU s"
    )
    for name, buffers in cases:
        alive = max(len(section) for section in sections(buffers))
        heuristic = place(buffers, budget=0)
        start = time.process_time()
        placement = place(buffers, budget=arguments.budget)
        seconds = time.process_time() - start
        gap = 100 * (placement.peak / placement.lower_bound - 1)
        print(
            f"{name:<20}{len(buffers):>8}{alive:>6}{heuristic.peak:>11}{placement.peak:>11}"
            f"{placement.lower_bound:>11}{gap:>7.2f}  {'yes' if placement.optimal else 'no':<6}{seconds:>7.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
