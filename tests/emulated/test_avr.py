# SPDX-License-Identifier: Apache-2.0
"""AVR, where int has 16 bits and constants lie in program memory: every portable kernel, whole models on the
ATmega328P, and what its float arithmetic is. All bit for bit, in simavr."""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from benchmarks import costs
from benchmarks.kernels import conv, linear, side_by_side
from tests.delegates.test_cortex_m import layer
from tests.emulated.avr import FLAGS, HZ, run_on_avr, target
from tests.emulated.simavr import build_runner, execute
from tests.golden.programs import PROGRAMS, Builder, samples, weights_f32
from tests.ops.cases import Case, arenas_of_any_size, assert_exact, expected, tensor
from tests.ops.objects import run as run_tool
from tests.ops.strategies import strategy_of
from tests.ops.test_half_even import rounded_otherwise
from tests.ops.test_int4 import int4
from tests.ops.test_unary import every_function
from tinyet import assets
from tinyet.boards import load_board
from tinyet.budget.room import room_of
from tinyet.delegates import PORTABLE, Delegate, kernel_sources
from tinyet.deployment import Deployment, deploy
from tinyet.ir import Array, DType, Graph, Node, QuantParams, Tensor, TensorType, constant
from tinyet.ops import OPS
from tinyet.ops.add import Add
from tinyet.ops.clamp import Clamp
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.gru import Gru
from tinyet.ops.linear import Linear
from tinyet.ops.shared import byte_products
from tinyet.ops.shared.two_products import Rescaling
from tinyet.ops.softmax import Softmax
from tinyet.ops.unary import Unary
from tinyet.opset import Kernel, Op
from tinyet.planning.objective import Objective

pytestmark = pytest.mark.emulated

UNO = "atmega328p"
# Of the chips that simavr knows the one with most RAM: 16 KB, and 128 KB of flash. One firmware holds many cases.
LARGE = "atmega1284p"
AT_ONCE = 14
"""Kernels in one firmware."""
EACH = 3
"""Cases of each kernel."""
CASE_BYTES = 400
"""Room for the tensors of a case, constants included."""
MORE_BYTES = {"lookup": 700}
"""The same for operators of which a constant alone is larger: 256 values of int16."""
SLACK = 160
"""Bytes of stack by which a bound may be above what a model takes."""
AROUND_MODEL = 900
"""Bytes of flash that a firmware of these tests has around its model, at most."""
SAYS_SOMETHING = 8
"""Different output values from which on a case is no trivial one: hypothesis draws many of these."""
# Kernels that the strategies of these operators do not lead to, or only with more elements. They are run as kernels of
# another operator, or in test_every_function.
ELSEWHERE = {
    ("clamp", "tinyet_lut_s8"),
    ("clamp", "tinyet_requantize_s8_s16"),
    ("clamp", "tinyet_requantize_s16_s8"),
    ("requantize", "tinyet_lut_s8"),
    ("unary", "tinyet_sigmoid_s16"),
    ("unary", "tinyet_tanh_s16"),
}

Work = tuple[Op, Kernel]


def runs_here(op: Op, kernel: Kernel) -> bool:
    """Changes of scale from and to int32 run in ops/test_requantize.py; they are compiled for AVR all the same."""
    wide = op.name == "requantize" and "s32" in kernel.dtypes
    return not wide and (op.name, kernel.symbol) not in ELSEWHERE


def rounds() -> list[list[Work]]:
    """All kernels of all operators in firmwares that hold, of any operator, one."""
    found: list[list[Work]] = []
    for k in range(max(len(op.kernels) for op in OPS)):
        works = [(op, op.kernels[k]) for op in OPS if k < len(op.kernels)]
        works = [(op, kernel) for op, kernel in works if runs_here(op, kernel)]
        found += [works[i : i + AT_ONCE] for i in range(0, len(works), AT_ONCE)]
    return found


def values_of(case: Case) -> int:
    """How many different values the reference gives."""
    return len(np.unique(expected(case.node, case.inputs)[0]))


def size_of(case: Case) -> int:
    return sum(t.type.bytes for t in (*case.node.inputs, *case.node.outputs) if t is not None)


def holds_subnormals(case: Case) -> bool:
    """Whether a float output is subnormal: as the result of a division it may be off there."""
    floats = [a for a in expected(case.node, case.inputs) if a.dtype == np.float32]
    return any(bool(np.any((a != 0) & (np.abs(a) < np.finfo(np.float32).tiny))) for a in floats)


def draw(name: str, count: int, attempt: int) -> list[Case]:
    """Small cases of an operator, with int4 weights and by other roundings, too, where it has kernels for these; others
    for each attempt."""
    cases: list[Case] = []
    fixed = settings().derandomize

    @settings(
        max_examples=count,
        # It would draw the same in every attempt: where draws must not change, their seed is the attempt's number.
        derandomize=False,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(strategy_of(name))
    def collect(case: Case) -> None:
        if size_of(case) <= MORE_BYTES.get(name, CASE_BYTES) and not holds_subnormals(case):
            cases.append(case)

    (seed(attempt)(collect) if fixed else collect)()
    if name == "conv2d":  # few of what is drawn is this
        cases += [depthwise(EACH * attempt + number, 3, 3) for number in range(EACH)]
    if name in ("conv2d", "linear"):
        cases += [int4(case) for case in cases if case.node.input(0).dtype is DType.INT8]
    return cases + [other for case in cases for other in rounded_otherwise(case)]


def depthwise(number: int, kernel_h: int, kernel_w: int) -> Case:
    """A small one of int8, whose size, borders, strides and channels the number decides."""
    rng = np.random.default_rng(number)
    sides = ("pad_top", "pad_bottom", "pad_left", "pad_right", "stride_h", "stride_w")
    around = {side: int(rng.integers(0, 2)) + side.startswith("stride") for side in sides}
    channels = int(rng.integers(1, 4))
    more_h, more_w = (int(n) for n in rng.integers(0, 3, 2))
    shape = 1, kernel_h + more_h, kernel_w + more_w, channels
    attrs = Conv2d(**around, groups=channels)  # type: ignore[arg-type]
    return layer(rng, attrs, shape, (channels, kernel_h, kernel_w, 1))


@functools.cache
def cases_of(name: str) -> dict[tuple[str, str], list[Case]]:
    """For each kernel of an operator, by symbol and types, those of the cases that it takes with most output values."""
    op = next(op for op in OPS if op.name == name)
    kernels = [kernel for kernel in op.kernels if runs_here(op, kernel)]
    found: dict[tuple[str, str], list[tuple[int, Case]]] = {(k.symbol, k.dtypes): [] for k in kernels}
    for attempt in range(64):
        drawn = [(values_of(case), case) for case in draw(name, 32, attempt)]
        for kernel in kernels:
            own = found[kernel.symbol, kernel.dtypes]
            taken = [one for one in drawn if kernel.why_not(one[1].node, target(LARGE)) is None]
            # Of those that were the best before, and the new ones: of equal ones, the older.
            own[:] = sorted(own + taken, key=lambda one: one[0], reverse=True)[:EACH]
        telling = all(len(own) == EACH and own[-1][0] >= SAYS_SOMETHING for own in found.values())
        if telling or (attempt >= 2 and all(found.values())):
            break
    return {kernel: [case for _, case in own] for kernel, own in found.items()}


def run_large(delegate: Delegate, graph: Graph, inputs: Sequence[Array]) -> tuple[Deployment, bytes]:
    with arenas_of_any_size():
        run = run_on_avr(graph, inputs, LARGE, (delegate,))
    return run.deployment, run.outputs


def check(cases: Sequence[Case], works: Sequence[Work]) -> None:
    """Run cases with these kernels, whatever others would be chosen before them."""
    only = Delegate("only", {op.attrs: (kernel,) for op, kernel in works})
    deployment = assert_exact(cases, on=functools.partial(run_large, only))
    assert {step.choice.delegate.name for step in deployment.steps} == {"only"}


@pytest.mark.parametrize("index", range(len(rounds())))
def test_every_kernel(index: int) -> None:
    build_runner()
    works = rounds()[index]
    cases = []
    for op, kernel in works:
        own = cases_of(op.name)[kernel.symbol, kernel.dtypes]
        assert own, f"{op.name}: no case for {kernel.symbol}, {kernel.dtypes}"
        cases += own
    check(cases, works)


def test_depthwise_windows_of_any_shape() -> None:
    """Rows and columns, as wide as the image, too, and such as have more of both."""
    build_runner()
    (op,) = (op for op in OPS if op.attrs is Conv2d)
    (kernel,) = (k for k in op.kernels if k.symbol == "tinyet_depthwise_s8_bytes")
    for window in ((1, 1), (1, 5), (1, 2), (5, 1), (2, 1), (3, 3), (5, 5), (2, 4), (7, 3)):
        drawn = [depthwise(number, *window) for number in range(8)]
        cases = [case for case in drawn if kernel.why_not(case.node, target(LARGE)) is None]
        assert len(cases) >= EACH
        check(cases, [(op, kernel)])


def test_a_smaller_output_over_its_input() -> None:
    """A depthwise layer with a stride, whose output begins where its input does: a channel is copied before."""
    build_runner()
    node = conv((1, 40, 12), 0, (1, 5), 2)
    data = np.random.default_rng(5).integers(-128, 128, node.input(0).shape).astype(np.int8)
    x, y = node.input(0), node.outputs[0]
    given = Tensor("given", x.type)
    before = Node(Clamp(-5.0, 5.0), (given,), (x,))
    graph = Graph("smaller", (given,), (y,), (before, node))
    run = run_on_avr(graph, [data], UNO)
    plan = run.deployment.plan
    assert plan.offset(x) == plan.offset(y)
    assert plan.overwrites[node] == (0, 0)
    kernels = {step.choice.kernel.symbol for step in run.deployment.steps}
    assert "tinyet_depthwise_s8_bytes" in kernels
    assert run.outputs == expected(node, expected(before, [data]))[0].tobytes()


def test_every_function() -> None:
    """All functions of floats of all sizes, and those of int16 that have kernels of their own."""
    build_runner()
    unary = next(op for op in OPS if op.attrs is Unary)
    by_symbol = {kernel.symbol: kernel for kernel in unary.kernels}
    cases = []
    for case in every_function(DType.FLOAT32, 1):
        x, y = tensor("x", (24,), DType.FLOAT32), tensor("y", (24,), DType.FLOAT32)
        cases.append(Case(Node(case.node.attrs, (x,), (y,)), (case.inputs[0][:24],)))
    check(cases, [(unary, by_symbol["tinyet_unary_f32"])])
    data = (np.arange(-32768, 32768, 257)).astype(np.int16)
    for function in ("sigmoid", "tanh"):
        x, y = tensor("x", data.shape, DType.INT16, 3e-4), tensor("y", data.shape, DType.INT16, 2.0**-15)
        case = Case(Node(Unary(function), (x,), (y,)), (data,))
        check([case], [(unary, by_symbol[f"tinyet_{function}_s16"])])


@pytest.mark.parametrize(
    ("node", "symbols"),
    [
        (conv((8, 6, 3), 4, (3, 3)), ("tinyet_conv2d_s8", "tinyet_conv2d_s8_bytes_4x1")),
        (conv((3, 4, 64), 2, (3, 3)), ("tinyet_conv2d_s8", "tinyet_conv2d_s8_bytes_4x1")),
        (
            conv((5, 6, 4), 0, (3, 3), relu=False),
            ("tinyet_depthwise_s8", "tinyet_depthwise_s8_bytes_3x3"),
        ),
        (conv((1, 40, 4), 0, (1, 5), 2), ("tinyet_depthwise_s8", "tinyet_depthwise_s8_bytes")),
        (conv((16, 17, 2), 0, (15, 17), relu=False), ("tinyet_depthwise_s8", "tinyet_depthwise_s8_bytes")),
        (linear(300, 5), ("tinyet_linear_s8", "tinyet_linear_s8_bytes")),
    ],
    ids=["conv2d", "many_taps", "depthwise", "depthwise_row", "depthwise_many_taps", "linear"],
)
def test_products_of_bytes_take_less_than_half_the_cycles(node: Node, symbols: tuple[str, str]) -> None:
    """And are those that are taken, beside portable ones; sums of more than 256 products are as exact as others. The
    portable rows of fully connected layers are of products of bytes, too, four at once."""
    build_runner()
    graph = side_by_side([node])
    data = np.random.default_rng(5).integers(-128, 128, node.input(0).shape).astype(np.int8)
    runs = []
    for symbol in symbols:
        (kernel,) = (k for k in PORTABLE.kernels[type(node.attrs)] if k.symbol == symbol)
        runs.append(run_on_avr(graph, [data], LARGE, (Delegate("only", {type(node.attrs): (kernel,)}),)))
    assert runs[0].outputs == runs[1].outputs
    assert (1.2 if symbols[0] == "tinyet_linear_s8" else 2) * runs[1].cycles < runs[0].cycles
    (taken,) = deploy(graph, target(LARGE)).steps
    assert taken.choice.kernel.symbol == symbols[1]


def fully_connected(
    depth: int, count: int, out_scale: float, weights: Array | None = None, rows: int = 1
) -> Node:
    """With weights of the whole range, unless they are given."""
    rng = np.random.default_rng(depth)
    drawn = rng.integers(-127, 128, (count, depth)).astype(np.int8) if weights is None else weights
    w = constant("w", drawn, QuantParams(tuple(np.linspace(0.012, 0.021, count)), (0,) * count, 0))
    x = tensor("x", (rows, depth), DType.INT8, 0.05)
    y = TensorType((rows, count), DType.INT8, QuantParams.per_tensor(out_scale, -3))
    return Node(Linear(), (x, w, None), (Tensor("y", y),))


def run_alone(node: Node, symbol: str, data: Array) -> int:
    """The cycles of a node's one kernel, whose outputs are the reference's."""
    build_runner()
    (kernel,) = (k for k in PORTABLE.kernels[type(node.attrs)] if k.symbol == symbol)
    only = Delegate("only", {type(node.attrs): (kernel,)})
    run = run_on_avr(Graph("alone", (node.input(0),), node.outputs, (node,)), [data], LARGE, (only,))
    assert run.outputs == expected(node, [data])[0].tobytes()
    return run.cycles


def test_sums_of_many_bits() -> None:
    """Whose factor has eight bits more: rows whose sums are those that are rounded otherwise without these."""
    depth, rows = 300, 12
    weights = np.full((16, depth), 127, np.int8)
    weights[:, -1] = 1  # so that any sum can be made
    node = fully_connected(depth, 16, 2.0, weights, rows)
    found = byte_products.rescaling(node)
    assert isinstance(found, Rescaling)
    sums = np.arange(-200_000, 200_000)
    parts = (found.start, found.limit, found.upper, found.lower, found.lowest)
    start, limit, upper, lower, lowest = (part[:, None] for part in parts)
    a = np.clip(sums - start, 0, limit - 1)
    value = a * upper + (a * lower >> 8) + found.offset[:, None]
    differs = (value + (a * lowest >> 16) >> 24 != value >> 24).any(axis=0)
    assert differs.sum() > rows
    telling = sums[differs][:: differs.sum() // rows][:rows]
    data = np.zeros((rows, depth), np.int8)
    for row, total in zip(data, telling, strict=True):
        most, row[-1] = divmod(total, 127)
        each, rest = divmod(most, depth - 1)
        row[:-1] = each
        row[:rest] += 1
    run_alone(node, "tinyet_linear_s8_bytes", data)


def test_sums_of_more_than_24_bits() -> None:
    """Of four outputs at once: runs of as many products as these hold, with both signs, and some more."""
    signs = np.array([[1], [-1], [1], [-1], [1]], np.int8)
    for depth in (508, 509, 1203):
        weights = np.broadcast_to(127 * signs, (5, depth)).astype(np.int8)
        node = fully_connected(depth, 5, 2000.0, weights)
        run_alone(node, "tinyet_linear_s8", np.full((1, depth), -128, np.int8))
        node = fully_connected(depth, 5, 2.0)
        data = np.random.default_rng(depth).integers(-128, 128, (1, depth)).astype(np.int8)
        run_alone(node, "tinyet_linear_s8", data)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("scale", [0.01, 0.05, 0.3])
def test_softmax_of_many_values(scale: float, axis: int) -> None:
    """By the upper bytes of exponentials and reciprocals; and all of them where an output is near a half."""
    data = np.random.default_rng(1).integers(-128, 128, (36, 100)).astype(np.int8)
    cycles = run_alone(probabilities(data.shape, scale, axis), "tinyet_softmax_s8", data)
    assert cycles < 140 * data.size + 2000 * data.shape[1 - axis]


@pytest.mark.parametrize("depth", [1, 2, 512, 1024])
def test_softmax_of_equal_values(depth: int) -> None:
    """Half a step of 1/256 each, where there are 512; one, which is more than the largest output; and nothing."""
    data = np.full((2, depth), 7, np.int8)
    run_alone(probabilities(data.shape, 0.1, 1), "tinyet_softmax_s8", data)


@pytest.mark.parametrize(("scale", "below"), [(0.0303, 98), (0.0352, 76), (0.0919, 26)])
def test_softmax_just_above_a_half(scale: float, below: int) -> None:
    """Less than a half by the upper bytes, and rounded up by all of them: the larger of two values."""
    data = np.array([[60, 60 - below], [60 - below, 60]], np.int8)
    run_alone(probabilities(data.shape, float(np.float32(scale)), 1), "tinyet_softmax_s8", data)


def probabilities(shape: tuple[int, int], scale: float, axis: int) -> Node:
    x = tensor("x", shape, DType.INT8, scale)
    return Node(Softmax(axis=axis), (x,), (tensor("y", shape, DType.INT8, 1 / 256, -128),))


def test_operands_of_bytes(tmp_path: Path) -> None:
    """Sums and products in assembly, to the last bit of what is rounded on the way, where outputs of layers rarely show
    it: as many sets of parameters as avr_bytes.c has, three kernels each."""
    build_runner()
    names = [f"tinyet_{name}_s8.c" for name in ("affine", "mul", "add")]
    sources = [Path(__file__).with_name("avr_bytes.c"), *kernel_sources.write(tmp_path, names)]
    elf, include = tmp_path / "bytes.elf", assets.path("firmware") / "include"
    flags = [flag for flag in FLAGS if "onversion" not in flag]
    command = ["avr-gcc", f"-mmcu={UNO}", *flags, "-I", str(include), *map(str, sources), "-o", str(elf)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    wrong = np.frombuffer(execute(elf, UNO, HZ, 60.0).output, np.uint16).reshape(-1, 3)
    assert len(wrong) == 24
    np.testing.assert_array_equal(wrong, np.zeros_like(wrong))


def test_a_callers_buffer_may_lie_at_any_address(tmp_path: Path) -> None:
    """Nothing is aligned there, so nothing asks for it; the compiler sees that neither call is ever made."""
    source, made = tmp_path / "buffers.c", tmp_path / "buffers.o"
    source.write_text(
        '#include "tinyet_buffers.h"\n'
        "void refused(void);\n"
        "int main(void) {\n"
        "  if (!tinyet_is_buffer((const void *)0x101, 4u) || tinyet_is_buffer(NULL, 4u)) {\n"
        "    refused();\n"
        "  }\n"
        "}\n",
        encoding="utf-8",
    )
    include = assets.path("firmware") / "include"
    run_tool(["avr-gcc", f"-mmcu={UNO}", *FLAGS, "-I", str(include), "-c", str(source), "-o", str(made)])
    assert "refused" not in run_tool(["avr-nm", str(made)]).decode()


@pytest.mark.parametrize("name", PROGRAMS)
def test_models_on_the_uno(name: str) -> None:
    """Weights and parameters stay in flash, and what the run takes is what the board says it has."""
    build_runner()
    program, board = PROGRAMS[name](), load_board("arduino_uno")
    assert replace(board.target, flash=None) == target(UNO)
    for k in range(2):
        inputs = [stack[k] for stack in samples(program, 2)]
        run = run_on_avr(program.graph, inputs, UNO)
        values = program.values(inputs)
        assert run.outputs == b"".join(values[t].tobytes() for t in program.outputs)
        assert run.data == 0, "no constant in RAM"
        assert run.stack <= board.stack_bytes
        assert run.text <= board.flash.bytes
        room = room_of(run.deployment, board, bare=False)
        if room.stack.inference is not None:
            assert room.stack.inference - SLACK <= run.stack <= room.stack.inference
        around = run.text - room.flash.stated
        assert 0 < around < AROUND_MODEL


def test_layers_as_cxx() -> None:
    """Which has no types for constants in program memory: the kernels' assembly reads them in the RAM."""
    build_runner()
    rng = np.random.default_rng(4)
    nodes = [conv((8, 6, 3), 4, (3, 3)), conv((5, 6, 4), 0, (3, 3)), linear(64, 10)]
    drawn = [(Gru, "tinyet_gru_s8"), (Softmax, "tinyet_softmax_s8")]
    board = load_board("arduino_uno")
    for attrs, symbol in drawn:
        kernel = next(kernel for kernel in PORTABLE.kernels[attrs] if kernel.symbol == symbol)
        nodes += costs.grid(attrs, kernel, board, costs.COMPARE, 1)
    graph = side_by_side(nodes)
    inputs = [costs.values(t, rng) for t in graph.inputs]
    run = run_on_avr(graph, inputs, LARGE, [PORTABLE], cxx=True)
    symbols = {step.choice.kernel.symbol for step in run.deployment.steps}
    assert symbols >= {
        "tinyet_conv2d_s8_bytes_4x1",
        "tinyet_depthwise_s8_bytes_3x3",
        "tinyet_linear_s8_bytes",
    }
    values = dict(zip(graph.inputs, inputs, strict=True))
    wanted = [
        expected(node, [values[t] for t in node.inputs if t is not None and not t.is_constant])
        for node in graph.nodes
    ]
    assert run.outputs == b"".join(array.tobytes() for arrays in wanted for array in arrays)


def test_an_arena_of_rows_at_any_address() -> None:
    """Nothing aligns it on an AVR, nor the scratch memory that lies on top of line buffers."""
    build_runner()
    rng = np.random.default_rng(3)

    def row_of(x: Tensor, out_c: int, kernel_w: int, stride: int, groups: int = 1) -> Node:
        size = (out_c, 1, kernel_w, x.shape[3] // groups)
        steps = QuantParams((0.02,) * out_c, (0,) * out_c, 0)
        w = constant("w", rng.integers(-127, 128, size).astype(np.int8), steps)
        beside = kernel_w // 2
        attrs = Conv2d(groups=groups, stride_w=stride, pad_left=beside, pad_right=beside)
        y = TensorType((1, 1, x.shape[2] // stride, out_c), DType.INT8, QuantParams.per_tensor(0.2, -3))
        return Node(attrs, (x, w, None), (Tensor(f"y{kernel_w}", y),))

    x = Tensor("x", TensorType((1, 1, 128, 3), DType.INT8, QuantParams.per_tensor(0.05, 5)))
    first = row_of(x, 16, 9, 1)
    nodes = (first, row_of(first.output, 16, 5, 2, groups=16))
    graph = Graph("rows", (x,), (nodes[-1].output,), nodes)
    data = rng.integers(-128, 128, x.shape).astype(np.int8)
    between = expected(nodes[0], [data])
    wanted = expected(nodes[1], between)[0].tobytes()
    for data_at in range(0x100, 0x108):
        run = run_on_avr(graph, [data], UNO, objective=Objective(ram=1436), data_at=data_at)
        assert run.deployment.plan.fusion_groups
        assert run.outputs == wanted, f"{data_at:#x}"


def test_operands_lie_in_ram() -> None:
    """A constant that a kernel takes as it takes activations, beside an equal one that only kernels read."""
    build_runner()
    b = Builder("operands")
    x = Tensor("x", TensorType((1, 4), DType.FLOAT32))
    offsets = weights_f32("offsets", (6,), 17)
    y = b.add(Linear(), x, weights_f32("weights", (6, 4), 41), offsets, out="y", source="y = self.linear(x)")
    z = b.add(Add(), y, offsets, out="z", source="return y + self.linear.bias")
    program = b.finish((x,), z)
    inputs = [stack[0] for stack in samples(program, 1)]
    run = run_on_avr(program.graph, inputs, UNO)
    assert run.outputs == program.values(inputs)[z].tobytes()
    assert [a.comment for a in run.deployment.arrays if not a.rom] == ["offsets"]
    assert run.data == offsets.type.bytes


def test_kernels_are_clean(tmp_path: Path) -> None:
    """No warning of -Wconversion either: what int's 16 bits would cut off is cast or wide enough. The level makes no
    difference where nothing is optimized: strict aliasing is warned of at this one, too."""
    if shutil.which("avr-gcc") is None:
        pytest.skip("avr-gcc is not installed")
    # Those of the portable kernels: others are for cores that have their instructions.
    names = {source for op in OPS for kernel in op.kernels for source in kernel.sources}
    sources = map(str, kernel_sources.write(tmp_path, sorted(names)))
    include = assets.path("firmware") / "include"
    command = ["avr-gcc", f"-mmcu={UNO}", *FLAGS, "-fsyntax-only", "-I", str(include)]
    done = subprocess.run([*command, *sources], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]


def numbers(rng: np.random.Generator, exponents: tuple[int, int], count: int) -> npt.NDArray[np.float32]:
    """Floats of either sign; one in eight has all or none of its lower bits."""
    mantissa = rng.integers(0, 1 << 23, count)
    edge = rng.integers(0, 8, count)
    mantissa = np.where(edge == 0, mantissa & 0x700000, np.where(edge == 1, mantissa | 0x0FFFFF, mantissa))
    sign = rng.integers(0, 2, count)
    bits = (sign << 31) | (rng.integers(*exponents, count) << 23) | mantissa
    return bits.astype(np.uint32).view(np.float32)


SPECIAL = (0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000,
           0x3F800000, 0xBF800000, 0x3F000000, 0x4B800000)  # fmt: skip


def test_float_arithmetic(tmp_path: Path) -> None:
    """docs/numerics.md: IEEE 754 to the bit, subnormals, infinities and NaN included, but for quotients that are
    subnormal, which may be one unit too small."""
    build_runner()
    elf = tmp_path / "float.elf"
    source = Path(__file__).with_name("avr_float.c")
    command = ["avr-gcc", f"-mmcu={UNO}", *FLAGS, str(source), "-lm", "-o", str(elf)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    rng, count = np.random.default_rng(0), 1500
    special = np.array(SPECIAL, np.uint32).view(np.float32)
    ranges = [((0, 255), (0, 255)), ((110, 145), (110, 145)), ((0, 30), (0, 30)), ((1, 100), (110, 254))]
    pairs = [np.stack([numbers(rng, a, count), numbers(rng, b, count)]) for a, b in ranges]
    pairs.append(np.array(np.meshgrid(special, special)).reshape(2, -1))
    a, b = np.concatenate(pairs, 1)
    data = np.uint32(a.size).tobytes() + np.ascontiguousarray(np.stack([a, b], 1)).tobytes()
    raw = np.frombuffer(execute(elf, UNO, HZ, 60.0, data).output, np.uint32).reshape(-1, 7)
    got = raw[:, :5].view(np.float32)
    with np.errstate(all="ignore"):
        wanted = np.stack([a + b, a - b, a * b, a / b, b.view(np.int32).astype(np.float32)], 1)
        whole = np.where((a > -(2.0**31)) & (a < 2.0**31), a, 0).astype(np.int32)
    order = (a < b) | (a <= b) << 1 | (a > b) << 2 | (a >= b) << 3 | (a == b) << 4 | (a != b) << 5
    same = (raw[:, :5] == wanted.view(np.uint32)) | (np.isnan(got) & np.isnan(wanted))
    tiny = (np.abs(wanted) < np.finfo(np.float32).tiny) & (wanted != 0)
    for k, name in enumerate(("+", "-", "*", "/", "(float)")):
        allowed = tiny[:, k] & (name == "/")
        wrong = ~same[:, k] & ~allowed
        assert not wrong.any(), f"{name}: {a[wrong][:4]} {b[wrong][:4]} {got[wrong, k][:4]}"
    quotients = tiny[:, 3]
    assert quotients.sum() > 100
    short = wanted[quotients, 3].view(np.uint32).astype(np.int64) - raw[quotients, 3]
    assert set(short.tolist()) <= {0, 1}
    np.testing.assert_array_equal(raw[:, 5].view(np.int32), whole)
    np.testing.assert_array_equal(raw[:, 6], order)
