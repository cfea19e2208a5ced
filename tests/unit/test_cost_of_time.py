# SPDX-License-Identifier: Apache-2.0
"""What kernels state of time: cycles, and what a board's flash adds to them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import kernels
from tinyet.boards import Flash, Target, load_board
from tinyet.delegates import CORTEX_M, PORTABLE
from tinyet.ir import DType, Node, Tensor, TensorType
from tinyet.ops.linear import Linear
from tinyet.ops.unary import Unary
from tinyet.opset import DENSE, Cost, Kernel, cost
from tinyet.opset.cost import MEASURED, Measured, constant_bytes, core_of, counts_cycles, cycles_of, measured
from tinyet.timing.cores import CORES

M4 = load_board("mps2_an386").target
SLOW = Flash(wait_states=5, line_bytes=16, code_lines=64, data_lines=8, prefetch=True)


def tables() -> list[Measured]:
    found = [measured(path.stem) for path in sorted(MEASURED.glob("*.json"))]
    return [table for table in found if table is not None]


def taking(target: Target, node: Node, symbol: str) -> Kernel:
    every = (*CORTEX_M.kernels[type(node.attrs)], *PORTABLE.kernels[type(node.attrs)])
    return next(k for k in every if k.symbol == symbol and k.why_not(node, target) is None)


def stated(target: Target, node: Node, symbol: str = "tinyet_conv2d_s8_packed_3x2_dsp") -> Cost:
    kernel = taking(target, node, symbol)
    said = kernel.cost(node, target, kernel.lower(node, target))
    assert said is not None
    return said


def rows_of_values(depth: int) -> Node:
    """A fully connected layer of 125 rows and 64 outputs."""
    x = kernels.activation("x", (125, depth))
    return kernels.weighted(Linear(kernels.RELU), x, (64, depth), True)


def test_waits_of_a_flash() -> None:
    """Lines at 5 cycles each; one that is read ahead costs 6 cycles less those of the line before."""
    assert SLOW.waits(10, 0, 0.1) == 50
    assert SLOW.waits(10, 4, 0.25) == 50 + 4 * 2
    assert SLOW.waits(0, 4, 0.5) == 0, "the line before takes longer than the read"
    assert SLOW.waits(0, 4, 0.01) == 4 * 5, "no read takes longer than one that nobody has begun"
    assert replace(SLOW, prefetch=False).waits(10, 4, 0.5) == 70
    assert replace(SLOW, wait_states=0).waits(10, 4, 0.1) == 0


COUNTED = {"avr5"}
"""Cores whose cycles a simulator counts."""


def test_cores_with_a_model_state_cycles() -> None:
    """Each kernel on a core that has a model does, or whose cycles are counted; others state instructions."""
    for table in tables():
        counted = set(table.cores) <= COUNTED
        assert counted or set(table.cores) <= set(CORES)
        for symbol, found in table.kernels.items():
            for rates in (found.rates, *found.kinds.values()):
                assert set(rates.cycles) == set(table.cores), symbol
                assert all(any(rates.cycles[core].values()) for core in table.cores), symbol
            # Of executed code, for a flash that waits; AVR's never does.
            assert (found.bytes_each >= 2) == (bool(table.cores) and not counted), symbol
    said = {
        name: counts_cycles(load_board(name).target)
        for name in (
            *("microbit", "pico", "mps2_an385", "mps2_an386", "stm32f746g_disco", "mps2_an505", "mps3_an547"),
            *("riscv32_virt", "esp32c3", "xtensa_lx60", "arduino_uno"),
        )
    }
    assert all(said.values()), said
    assert not counts_cycles(load_board("esp32").target)
    m55 = load_board("mps3_an547").target
    assert counts_cycles(replace(m55, timed_as="cortex-m85"))
    assert cycles_of(load_board("mps2_an505").target) == "cortex-m33"
    assert cycles_of(load_board("pico").target) == "cortex-m0plus"


def test_cores_of_one_code_have_cycles_of_their_own() -> None:
    """Where the instructions are the same, the model of the core makes the difference."""
    node = kernels.linear(256, 64)
    microbit = load_board("microbit").target
    one, other = (
        stated(target, node, "tinyet_linear_s8")
        for target in (microbit, replace(microbit, cpu="cortex-m0plus"))
    )
    assert one.instructions == other.instructions
    assert one.cycles != other.cycles


@pytest.mark.parametrize(
    "symbol", ["tinyet_conv2d_s8_packed_2x4_dsp", "tinyet_conv2d_s8_w16_winograd_f4x4_dsp"]
)
def test_printed_code_has_cycles_of_each_core(symbol: str) -> None:
    """M7 issues two instructions in a cycle and M33 waits for loads: neither takes what M4 does."""
    node = kernels.MODELS["resnet8"][1]
    m4, m7, m33 = (
        stated(replace(M4, cpu=cpu), node, symbol) for cpu in ("cortex-m4", "cortex-m7", "cortex-m33")
    )
    # The others have orders of their own, in which two words are two loads.
    assert m4.instructions <= m33.instructions == m7.instructions
    assert m4.cycles is not None
    assert m7.cycles is not None
    assert m33.cycles is not None
    assert m7.cycles < 0.9 * m4.cycles
    assert m33.cycles != m4.cycles
    kernel = taking(M4, node, symbol)
    assert kernel.cost_model is not None
    assert kernel.cost_model.exact is not None
    exact, own = (kernel.cost_model.exact(node, DENSE, core) for core in ("cortex-m4", "cortex-m7"))
    assert set(exact.cycles) == {"cortex-m4", "cortex-m7", "cortex-m33"}
    assert 0.4 * m7.cycles < own.cycles["cortex-m7"] < m7.cycles
    assert own.cycles["cortex-m7"] < 0.85 * exact.cycles["cortex-m7"]
    with pytest.raises(KeyError):
        exact.cycles["cortex-m0"]


def test_sums_of_64_bits_are_few_instructions_and_many_cycles() -> None:
    """On M3 two pixels a product are the fewest instructions of a pointwise layer, and not the least time."""
    m3, node = load_board("mps2_an385").target, kernels.conv((25, 5, 64), 64, (1, 1))
    paired, tile = (
        stated(m3, node, symbol) for symbol in ("tinyet_conv2d_s8_paired_4x2", "tinyet_conv2d_s8_4x4")
    )
    assert paired.instructions < 0.6 * tile.instructions
    assert paired.time > tile.time


@pytest.mark.parametrize("node", kernels.MODELS["resnet8"][:2], ids=["few channels", "many"])
def test_a_flash_that_waits_makes_a_call_slower(node: Node) -> None:
    quick, none, slow, half = (
        stated(replace(M4, flash=flash), node)
        for flash in (None, replace(SLOW, wait_states=0), SLOW, replace(SLOW, line_bytes=32))
    )
    for said in (quick, none, slow, half):
        assert said.cycles is not None
        assert said.time == said.cycles
        assert said.instructions == quick.instructions
    assert none.time == quick.time > quick.instructions
    assert quick.time < half.time < slow.time


def test_a_loop_longer_than_the_buffers_is_read_in_each_turn() -> None:
    """32 pairs of inputs are 2 KB of straight code, and the flash keeps 1 KB. The figures are an emulator's, of this
    layer (`benchmarks/kernels.py`, `timed`)."""
    counted = SLOW.waits(1_153 + 9_761, 125_443, 590_566 / 2_031_278)
    symbol, node = "tinyet_linear_s8_packed_4x2_dsp", rows_of_values(64)
    waiting, quick = (stated(replace(M4, flash=flash), node, symbol).time for flash in (SLOW, None))
    assert waiting - quick == pytest.approx(counted, rel=0.05)
    # 8 pairs stay: what is left are the weights.
    short = rows_of_values(16)
    waiting, quick = (stated(replace(M4, flash=flash), short, symbol).time for flash in (SLOW, None))
    assert waiting - quick < counted / 3


def test_a_large_cache_reads_constants_once() -> None:
    """Code stays in it, weights do not stay until the next inference; those that it does not hold are read again."""
    large = Flash(wait_states=6, line_bytes=32, code_lines=512, data_lines=512, prefetch=False)
    symbol, node = "tinyet_conv2d_s8_packed_2x4_dsp", kernels.conv((25, 5, 64), 64, (1, 1))
    kernel = taking(M4, node, symbol)
    constants = constant_bytes(kernel.lower(node, M4), M4)

    def waits(flash: Flash) -> int:
        return stated(replace(M4, flash=flash), node, symbol).time - stated(M4, node, symbol).time

    assert waits(large) == pytest.approx(6 * constants / 32, abs=1)
    assert waits(replace(large, data_lines=1, shared=True)) == waits(large), "one cache, of code_lines"
    # 63 times for two pixels each.
    assert waits(replace(large, data_lines=64)) > 50 * waits(large)


def test_time_is_instructions_without_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    known = stated(M4, kernels.MODELS["resnet8"][1])
    table = measured(core_of(M4))
    assert table is not None
    monkeypatch.setattr(cost, "measured", lambda _core: replace(table, cores=frozenset()))
    assert not counts_cycles(M4)
    said = stated(M4, kernels.MODELS["resnet8"][1])
    assert said.cycles is None
    assert said.time == said.instructions == known.instructions
    # Of several calls, each with so many instructions and so much time around it.
    assert said.times(3, 10, 20).time == 3 * (said.instructions + 10)
    with_cycles = replace(said, cycles=1000).times(3, 10, 20)
    assert (with_cycles.instructions, with_cycles.time) == (3 * (said.instructions + 10), 3 * 1020)


def test_a_function_of_its_own_states_its_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a kernel's kinds are functions apart: a call shares that of its kind; of a kind that nobody has measured
    nothing is stated."""
    target = load_board("arduino_uno").target
    x = Tensor("x", TensorType((1, 40), DType.FLOAT32))
    symbol = "tinyet_unary_f32"
    nodes = {name: Node(Unary(name), (x,), (Tensor("y", x.type),)) for name in ("abs", "exp")}
    said = {name: stated(target, node, symbol) for name, node in nodes.items()}
    assert [*said["abs"].shared] == ["tinyet_abs_f32"]
    assert {"tinyet_exp_f32", "tinyet_expf"} <= {*said["exp"].shared}
    assert said["exp"].instructions > 20 * said["abs"].instructions
    table = measured(core_of(target))
    assert table is not None
    entry = table.kernels[symbol]
    fewer = replace(entry, kinds={"abs": entry.kinds["abs"]})
    monkeypatch.setattr(cost, "measured", lambda _: replace(table, kernels={symbol: fewer}))
    kernel = taking(target, nodes["exp"], symbol)
    costs = [kernel.cost(node, target, kernel.lower(node, target)) for node in nodes.values()]
    assert [found is None for found in costs] == [False, True]
