# SPDX-License-Identifier: Apache-2.0
"""From a tile to instructions: order, registers, counts, and what does not fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.tiles.samples import (
    BYTES,
    CROSSED,
    CROSSED_DIGITS,
    DIGITS,
    LONG,
    LONG_DIGITS,
    NIBBLES,
    PACKED,
    PRINTED,
    TILES,
    WIDE,
)
from tinyet.errors import InternalError
from tinyet.tiles.core import ARMV7E_M, CORTEX_M7, CORTEX_M33, CorePage
from tinyet.tiles.function import Function, function
from tinyet.tiles.interleaved import interleaved
from tinyet.tiles.lanes import Lanes
from tinyet.tiles.loads import Step, planned
from tinyet.tiles.operation import SP, Operation, compute, load
from tinyet.tiles.printer import files
from tinyet.tiles.registers import allocated
from tinyet.tiles.schedule import ordered, stepped
from tinyet.tiles.tile import Tile
from tinyet.timing.cores import CORES
from tinyet.timing.instruction import Instruction
from tinyet.timing.pipelines import PIPELINES

M4, M7 = CORES["cortex-m4"], CORES["cortex-m7"]


def straight_pair(tile: Tile) -> tuple[int, int]:
    """(instructions, cycles) that a pair more of straight code takes, for one group of channels."""
    works = [function(replace(tile, pairs=n)).work(M4, tile.channels * tile.groups) for n in (8, 12)]
    return (works[1].instructions - works[0].instructions) // 4, (works[1].cycles - works[0].cycles) // 4


def test_a_pair_takes_what_the_manual_says() -> None:
    """Packed, two by four: four loads side by side in five cycles, two extensions, eight products. Wide, two by two:
    two loads of four words for two pairs, in five cycles each, and eight products."""
    assert straight_pair(Tile(2, 4, PACKED, 8, 12, 8)) == (4 + 2 + 8, 5 + 2 + 8)
    assert straight_pair(Tile(2, 2, WIDE, 8, 12, 8, at_once=2)) == ((2 + 8) // 2, (10 + 8) // 2)
    # Two loads of two words, in three cycles each, are two instructions less.
    assert straight_pair(Tile(2, 4, PACKED, 8, 12, 8, at_once=1)) == (2 + 2 + 8, 6 + 2 + 8)
    # Five loads in two runs: there are registers for four values.
    assert straight_pair(Tile(4, 2, PACKED, 8, 12, 8)) == (5 + 1 + 8, 4 + 3 + 1 + 8)


def test_a_pair_of_int4_weights() -> None:
    """Of four channels: a load of a word and two of inputs, four cycles, eight products, and what makes three of the
    four factors, or all."""
    assert straight_pair(Tile(2, 4, DIGITS, 8, 12, 8)) == (3 + 4 + 8, 4 + 4 + 8)
    assert straight_pair(Tile(2, 4, NIBBLES, 8, 12, 8)) == (3 + 8 + 8, 4 + 8 + 8)


def test_what_four_pixels_of_int16_take() -> None:
    """By bytes: five loads, of which the last two are one instruction, two extensions, eight products. By words of each
    channel a load more, and no extension."""
    by_bytes, by_words = (Tile(4, 2, weights, 12, 0, 8, bits=16, lanes=Lanes()) for weights in (BYTES, WIDE))
    tiles = [replace(tile, lanes=Lanes(3)) for tile in (by_bytes, by_words)]
    assert [straight_lane(tile) for tile in tiles] == [(14, 4 + 3 + 2 + 8), (13, 5 + 3 + 8)]
    assert [pair_on_m7(tile, CORTEX_M7) for tile in (by_bytes, by_words)] == [9, 8]


def straight_lane(tile: Tile) -> tuple[float, float]:
    """The same of a pair of lanes of three taps."""
    works = [function(replace(tile, pairs=n)).work(M4, tile.channels) for n in (12, 24)]
    return (works[1].instructions - works[0].instructions) / 12, (works[1].cycles - works[0].cycles) / 12


def test_a_loop_moves_its_pointers_by_loads() -> None:
    """Behind the sums of a turn of five pairs come a load of where the inputs end, a comparison and a branch."""
    tile = Tile(4, 2, BYTES, 20, 0, 8, straight=10, turn=5, bits=16, lanes=Lanes())
    less, more = (function(replace(tile, pairs=n)).work(M4, 2) for n in (20, 25))
    assert more.instructions - less.instructions == 5 * 14 + 3
    assert more.cycles - less.cycles == 5 * 17 + 2 + 1 + 1 + M4.refill(Instruction("branch", 4))


def test_a_base_moves_by_its_first_load_alone() -> None:
    loads = [load("a", "p", 0), load("b", "p", 4), compute("smlad", "s", "a", "b", "s")]
    found = stepped(loads, "p", 24)
    assert found is not None
    assert [o.text for o in found] == ["{a}, [{p}], #24", "{b}, [{p}, #-20]", loads[2].text]
    assert stepped(loads, "p", 256) is None
    assert stepped(loads[1:], "p", 24) is None
    assert stepped(loads, "q", 24) is None


def test_what_sums_that_are_alike_save() -> None:
    """Of four channels of two pixels: two loads of four words instead of four of three, and a shift a pixel for two."""
    one, other = (function(Tile(2, 4, PACKED, 8, 12, 8, alike=alike)).work(M4, 4) for alike in (False, True))
    assert one.instructions - other.instructions == (4 - 2) + 2 * 2
    assert one.cycles - other.cycles == (4 * 4 - 2 * 5) + 2 * 2


def test_loads_stand_side_by_side_as_far_as_there_is_room() -> None:
    def order(room: int) -> list[str]:
        loads = [load(name, SP, 4 * i) for i, name in enumerate("abcd")]
        sums = [compute("smlad", "s", x, y, "s") for x, y in ("ab", "cd")]
        return [operation.text.split("}")[0][1:] for operation in ordered([*loads, *sums], room, ARMV7E_M)]

    assert order(4) == ["a", "b", "c", "d", "s", "s"]
    assert order(3) == ["a", "b", "c", "s", "d", "s"]
    assert order(2) == ["a", "b", "s", "c", "d", "s"]


def pair_on_m7(tile: Tile, page: CorePage) -> float:
    """Cycles that a pair more of straight code takes, for one group of channels."""
    short, long = (
        function(replace(tile, pairs=n, straight=64, turn=64), page).work(M7, tile.channels) for n in (16, 48)
    )
    return (long.cycles - short.cycles) / 32


def test_a_core_of_two_issues_has_loads_beside_products() -> None:
    """A product a cycle is the least. Packed, two by four: eight of them, and a cycle for an extension that nothing
    else is ready for. Wide, two by two: nothing is in the way of four. Crossed, one by four: six for two pairs, and
    four sums of halves that go beside them."""
    packed, wide, crossed = (
        Tile(2, 4, PACKED, 8, 12, 8),
        Tile(2, 2, WIDE, 8, 12, 8),
        Tile(1, 4, CROSSED, 8, 12, 0, filling=True),
    )
    assert [pair_on_m7(tile, CORTEX_M7) for tile in (packed, wide, crossed)] == [9, 4, 4]
    digits = Tile(2, 4, DIGITS, 8, 12, 8), replace(crossed, weights=CROSSED_DIGITS)
    assert [pair_on_m7(tile, CORTEX_M7) for tile in digits] == [9, 4]
    assert [pair_on_m7(tile, ARMV7E_M) for tile in (packed, wide)] == [11, 5.5]


def test_an_order_of_its_own_computes_in_the_same_order() -> None:
    """Sums of a pair are added as often and by the same words: the multiset of instructions is the same, but for loads
    of several registers."""
    for tile in TILES:
        if not tile.filling:
            plain, *own = (texts(function(tile, page)) for page in (ARMV7E_M, CORTEX_M7, CORTEX_M33))
            assert own == [plain, plain], tile.name


def texts(made: Function[Tile]) -> list[str]:
    """Operations by their values, in any order."""
    every = [o for _, code in made.sections() for o, _ in code]
    if made.tile.lanes is not None:
        # Two neighbours may be one load.
        loaded = sorted(name for o in every if o.is_load(made.page) for name in o.writes)
        return loaded + sorted(f"{o.mnemonic} {o.text}" for o in every if not o.is_load(made.page))
    return sorted(f"{o.mnemonic} {o.text}" for o in every)


@pytest.mark.parametrize("page", [CORTEX_M7, CORTEX_M33], ids=lambda page: page.title)
def test_an_order_of_its_own_is_never_slower(page: CorePage) -> None:
    model = CORES[page.cores[0]]
    for tile in TILES:
        plain, own = (function(tile, p).work(model, 4 * tile.units).cycles for p in (ARMV7E_M, page))
        assert own <= plain, tile.name


def test_no_room_leaves_the_order_as_it_was() -> None:
    """Two values that are made early would leave no register for the load that comes next."""
    made = [compute("sxtb16", name, "w") for name in "ab"]
    code = [load("w", SP, 0), *made, compute("smlad", "s", "a", "b", "s")]
    assert interleaved(code, 2, CORTEX_M7, PIPELINES["cortex-m7"]) == code


def test_one_pixel_takes_as_few_loads_as_registers_allow() -> None:
    """Crossed, four channels: ten instructions and six words for two pairs of inputs, in eight registers: five loads
    for four times that. Of digits twelve and four words, in eight registers of which two are for what is made of them:
    a load for that; a register less, where a sum has 64 bits, two. Wide, a word of each channel and one of the input
    for a pair: five words a load. Of sums of 64 bits, which leave six registers, six instructions and three words for
    a pair: thirteen loads for sixteen of them."""
    crossed, wide = (Tile(1, 4, weights, 8, 12, 0, filling=True) for weights in (CROSSED, WIDE))
    long = Tile(1, 4, LONG, 8, 3, 0, filling=True, bits=16)

    def more(tile: Tile) -> tuple[int, int]:
        short, long = (function(replace(tile, pairs=n, straight=64, turn=64)).work(M4, 4) for n in (24, 56))
        return long.instructions - short.instructions, long.cycles - short.cycles

    assert more(crossed) == (16 * 10 + 4 * 5, 16 * 10 + 4 * 5 + 16 * 6)
    for weights, loads in ((CROSSED_DIGITS, 16), (LONG_DIGITS, 32)):
        digits = replace(crossed, weights=weights)
        assert more(digits) == (16 * 12 + loads, 16 * 12 + loads + 16 * 4)
    assert more(wide) == (32 * 4 + 32, 32 * 4 + 32 + 32 * 5)
    assert more(long) == (32 * 6 + 2 * 13, 32 * 6 + 2 * 13 + 32 * 3)


def test_loads_are_planned_as_late_and_as_large_as_there_is_room() -> None:
    steps = [Step((1, 2), (0, 2)), Step((1, 4), (1, 4)), Step((2, 6), (2, 6))]
    assert planned(steps, 8) == [(), ((0, 2), (1, 6)), (), ()]
    assert planned(steps, 8, begun=True) == [((1, 6),), ((0, 2),), (), ()]
    assert sum(len(loads) for loads in planned(steps, 4)) == 4
    with pytest.raises(InternalError, match="more than 2 registers"):
        planned(steps, 2)


def test_a_load_stays_behind_what_changes_its_base() -> None:
    code = [load("a", "p", 0), compute("addw", "p", "p", behind="#4"), load("b", "p", 0)]
    code.append(compute("smlad", "s", "a", "b", "s"))
    assert ordered(code, 8, ARMV7E_M) == code


def test_registers_of_values_that_live_at_a_time_differ() -> None:
    """Every value is still in its register when it is read: written there last, by the operation that made it."""
    for tile, page in PRINTED:
        made = function(tile, page)
        for code in straight_runs(made):
            holds: dict[str, tuple[str, int]] = {made.page.registers[0]: ("weights", 0)}
            version = {"weights": 0}
            for operation, home in code:
                for name in operation.reads:
                    assert holds[home[name]] == (name, version[name]), f"{page.named(tile.name)}: {operation}"
                for name in operation.writes:
                    version[name] = version.get(name, 0) + 1
                    holds[home[name]] = name, version[name]


def straight_runs(made: Function[Tile]) -> list[list[tuple[Operation, dict[str, str]]]]:
    """A turn of the loop over channels, with no, one and two turns of that over pairs."""
    runs = []
    for turns in (0, 1, 2):
        parts = [p for head, turn, tail in made.groups for p in (head, *([turn] * turns), tail)]
        runs.append([(operation, dict(home)) for part in parts for operation, home in part])
    return runs


def test_a_tile_that_does_not_fit_says_where_and_what() -> None:
    with pytest.raises(
        InternalError, match=r"4x3_w16.* does not fit Armv7E-M: instruction .* registers are free"
    ) as e:
        function(Tile(4, 3, WIDE, 4, 12, 8))
    assert "sum0_0" in str(e.value)
    assert "fewer pixels or channels" in str(e.value)


def test_a_value_that_nothing_wrote() -> None:
    with pytest.raises(InternalError, match=r"reads b, which nothing has written"):
        allocated([load("a", SP, 0), compute("sub.w", "a", "a", "b")], {}, ARMV7E_M, "t")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"channels": 3}, "packed channels are pairs"),
        ({"pairs": 0}, "at least one pixel, channel and pair"),
        ({"at_once": 3}, "whole loads"),
        ({"exponent": 0}, "an exponent of 1 to 31"),
        ({"exponent": None, "alike": True}, "alike are packed channels of a one-sided rounding"),
        ({"weights": WIDE, "alike": True}, "alike are packed channels of a one-sided rounding"),
        ({"weights": CROSSED, "filling": True}, "crossed weights are of two pairs, one pixel"),
        (
            {"weights": CROSSED, "pixels": 1},
            "crossed weights are of two pairs, one pixel and loads that fill",
        ),
        (
            {"pixels": 1, "filling": True},
            "loads that fill are of one pixel, and of weights that need no other",
        ),
        ({"weights": DIGITS, "channels": 2}, "int4 weights are of four channels"),
        (
            {"weights": DIGITS, "at_once": 2},
            "NIBBLES and DIGITS are of up to three pixels, and of loads of one",
        ),
        ({"weights": NIBBLES, "pixels": 4}, "NIBBLES and DIGITS are of up to three pixels"),
        ({"weights": LONG_DIGITS, "filling": True}, "crossed weights are of two pairs, one pixel"),
        ({"bits": 4}, "outputs of 8, 16 or 32 bits"),
        ({"bits": 16}, "LONG weights, and they alone beside WIDE ones, for int16 values"),
        ({"pixels": 1, "weights": LONG, "filling": True}, "LONG weights, and they alone"),
        ({"pixels": 1, "weights": CROSSED, "filling": True, "bits": 32}, "LONG weights, and they alone"),
        ({"lanes": Lanes()}, "lanes of four pixels, of int16 values"),
        ({"pixels": 4, "channels": 2, "bits": 16, "lanes": Lanes()}, "lanes of four pixels, of int16 values"),
        (
            {"pixels": 4, "channels": 2, "bits": 16, "weights": BYTES, "pairs": 8, "lanes": Lanes(3)},
            "whole ones in straight code",
        ),
        ({"exponent": None, "bits": 16}, "16 bits rounded as int16 is"),
        ({"bits": 16, "low": 1}, "16 bits rounded as int16 is"),
    ],
)
def test_a_description_that_makes_no_sense(change: dict[str, Any], match: str) -> None:
    with pytest.raises(InternalError, match=match):
        replace(Tile(2, 4, PACKED, 8, 12, 8), **change)


def test_a_call_of_channels_that_are_no_whole_groups() -> None:
    made = function(Tile(2, 4, PACKED, 8, 12, 8, groups=2))
    with pytest.raises(InternalError, match="12 units by tinyet_tile"):
        made.work(M4, 12)


def test_names_say_all_that_the_text_depends_on() -> None:
    base = replace(TILES[0], pairs=4)
    changes: tuple[dict[str, Any], ...] = (
        *({"pixels": 1}, {"channels": 2}, {"pairs": 2}, {"exponent": None}, {"exponent": 9}, {"step": 9}),
        *({"groups": 2}, {"at_once": 1}, {"straight": 1, "turn": 2}, {"alike": True}),
        *({"weights": w} for w in (DIGITS, NIBBLES)),
        *({"pixels": 1, "weights": w, "filling": True} for w in (CROSSED, CROSSED_DIGITS, LONG_DIGITS, WIDE)),
        *(
            {"pixels": 1, "weights": LONG, "filling": True, **ends}
            for ends in ({"bits": 16}, {"bits": 32}, {"bits": 16, "low": 0}, {"bits": 16, "high": 9})
        ),
    )
    changed = [replace(base, **change) for change in changes]
    texts = {tile.name: files(tile)[f"{tile.name}.c"] for tile in (base, *changed)}
    assert len(texts) == len(set(texts.values())) == 1 + len(changed)


def test_text_is_plain_assembly() -> None:
    """A comment a step; no directive, no operand of the compiler's, nothing that a reader must expand."""
    text = files(TILES[1])[f"{TILES[1].name}.c"]
    body = text[text.index("__asm__") : text.index("#else")]
    lines = [line.strip() for line in body.splitlines()[1:]]
    assert all(line.startswith(('"', "/*", ");", "}")) for line in lines)
    assert "%" not in body
    assert not [line for line in lines if line.startswith('".')]
    assert sum(line.startswith("/*") for line in lines) > 40
