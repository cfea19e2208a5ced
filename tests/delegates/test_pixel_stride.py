# SPDX-License-Identifier: Apache-2.0
"""Kernels whose tensors do not lie row-major: pixels with others' between them, because they are interleaved in a
larger tensor, and pairs of pixels in int16."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.delegates.test_cortex_m import BOARDS, DSP, NODES, layer, only, takes, windows
from tests.ops import drawing
from tests.ops.cases import HOST_WITH_DSP, Case, placed_quickly, renamed, run_on_host
from tests.ops.emulated import require_emulator, run_emulated
from tinyet import ops
from tinyet.delegates import CORTEX_M
from tinyet.delegates.cortex_m.int16x2 import NHW2C2
from tinyet.deployment import deploy
from tinyet.ir import Array, DType, Graph, Node, Tensor, TensorType
from tinyet.numerics import NO_CLAMP
from tinyet.ops.concat import Concat
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.unary import Unary
from tinyet.opset import Layouts
from tinyet.planning.objective import Objective
from tinyet.reference.evaluate import run_graph

KERNELS = sorted(
    {
        k.symbol
        for kernels in CORTEX_M.kernels.values()
        for k in kernels
        if k.layout_support is not None and not k.symbol.endswith("_mve")  # these: test_helium.py
    }
)


def mirrored(x: Tensor, name: str) -> Node:
    """A layer by a table, which leaves room between pixels."""
    return Node(Unary("abs"), (x,), (Tensor(name, x.type),))


def joined(parts: Sequence[Tensor], name: str) -> Node:
    first = parts[0].type
    shape = (*first.shape[:-1], sum(t.shape[-1] for t in parts))
    kind = TensorType(shape, first.dtype, first.quant)
    return Node(Concat(len(shape) - 1), tuple(parts), (Tensor(name, kind),))


def interleaved(cases: Sequence[Case]) -> tuple[Graph, list[Array]]:
    """Each case's layer between two concatenations: of its input with a neighbour, and of its output with another."""
    nodes: list[Node] = []
    inputs: list[Tensor] = []
    arrays: list[Array] = []
    outputs: list[Tensor] = []

    def given_(t: Tensor, label: str, channels: int, data: Array | None = None) -> Tensor:
        kind = TensorType((*t.shape[:-1], channels), DType.INT8, t.type.quant)
        inputs.append(Tensor(f"{label}_in", kind))
        rng = np.random.default_rng(len(inputs))
        arrays.append(rng.integers(-128, 128, kind.shape, np.int8) if data is None else data)
        nodes.append(mirrored(inputs[-1], label))
        return nodes[-1].output

    for i, case in enumerate(cases):
        layer = renamed(case, f"c{i}")
        x = given_(layer.input(0), f"x{i}", layer.input(0).shape[-1], case.inputs[0])
        beside = given_(x, f"beside{i}", 1 + i % 5)
        layer = layer.replace(inputs=[x, *layer.inputs[1:]])
        after = given_(layer.output, f"after{i}", 1 + (i + 2) % 5)
        nodes.append(joined((x, beside) if i % 2 else (beside, x), f"both{i}"))
        nodes += [layer, joined((after, layer.output) if i % 3 else (layer.output, after), f"all{i}")]
        outputs += [nodes[-1].output, nodes[-3].output]
    return ops.check(Graph("cases", tuple(inputs), tuple(outputs), tuple(nodes)), "weaving"), arrays


def compare(graph: Graph, arrays: Sequence[Array], raw: bytes) -> None:
    position = 0
    for tensor, want in zip(graph.outputs, run_graph(graph, arrays), strict=True):
        got = np.frombuffer(raw, np.int8, tensor.type.count, position).reshape(tensor.shape)
        np.testing.assert_array_equal(got, want, err_msg=tensor.name)
        position += tensor.type.bytes
    assert position == len(raw)


def wanted(symbol: str, cases: Sequence[Case]) -> list[Case]:
    """Those that the kernel takes, and whose output has pixels to leave room between."""
    delegate = only(symbol)
    return [case for case in cases if takes(delegate, case) and math.prod(case.node.output.shape[:-1]) > 1]


def test_in_generated_models() -> None:
    """A model of layers that leave room between pixels, under ASan and UBSan.

    Each kernel's calls are tested one by one, with all of their placements, with the other calls.
    """
    seen: list[Layouts] = []

    @settings(drawing.emulated, max_examples=1)
    @given(st.tuples(*(st.lists(NODES[symbol](), min_size=8, max_size=8) for symbol in KERNELS)))
    def run(drawn: tuple[list[Case], ...]) -> None:
        taken = [
            case for symbol, cases in zip(KERNELS, drawn, strict=True) for case in wanted(symbol, cases)[:2]
        ]
        graph, arrays = interleaved(taken)
        deployment = placed_quickly(graph, HOST_WITH_DSP, (only(*KERNELS),))
        compare(graph, arrays, run_on_host(deployment, b"".join(a.tobytes() for a in arrays)))
        seen.extend(
            Layouts(
                deployment.plan.pixel_stride(step.node.input(0)),
                deployment.plan.pixel_stride(step.node.output),
            )
            for step in deployment.steps
            if step.choice.kernel.symbol in KERNELS
        )

    run()
    assert any(layouts.output for layouts in seen)
    assert any(layouts.input for layouts in seen)


# ---------------------------------------------------------------- pairs of pixels


@st.composite
def separable(draw: st.DrawFn) -> tuple[Case, Case]:
    """A 3x3 depthwise convolution with rows of an even number of pixels, and a pointwise one behind it, most of them
    of so many channels that pairs are worth it."""
    rng = drawing.random(draw)
    outs = draw(st.integers(1, 9)), 2 * draw(st.integers(1, 6))
    window, kernel, size = draw(windows(outs, st.just(3), 1))
    batch, channels = draw(st.integers(1, 2)), 4 * draw(st.sampled_from((1, 2, 5, 6, 8, 9)))
    first = layer(
        rng,
        Conv2d(**window, groups=channels, clamp=NO_CLAMP),
        (batch, *size, channels),
        (channels, *kernel, 1),
    )
    second = layer(
        rng,
        Conv2d(clamp=NO_CLAMP),
        (batch, *outs, channels),
        (draw(st.sampled_from((2, 4, 7, 8, 12, 17))), 1, 1, channels),
    )
    return first, second


def chained(cases: Sequence[tuple[Case, Case]]) -> tuple[Graph, list[Array]]:
    """The pointwise layers read what the depthwise ones write."""
    nodes: list[Node] = []
    for i, (first, second) in enumerate(cases):
        depthwise, pointwise = renamed(first, f"d{i}"), renamed(second, f"p{i}")
        quant = pointwise.input(0).type
        between = Tensor(f"between{i}", TensorType(quant.shape, quant.dtype, depthwise.output.type.quant))
        nodes.append(depthwise.replace(outputs=[between]))
        nodes.append(pointwise.replace(inputs=[between, *pointwise.inputs[1:]]))
    graph = Graph(
        "cases",
        tuple(node.input(0) for node in nodes[::2]),
        tuple(node.output for node in nodes[1::2]),
        tuple(nodes),
    )
    return ops.check(graph, "chaining"), [first.inputs[0] for first, _ in cases]


FAST = Objective("speed")


def test_pairs_on_host() -> None:
    """Depthwise kernels write, and pointwise ones read, what lies as pairs of pixels; under ASan and UBSan."""
    seen: list[bool] = []

    @drawing.compiled
    @given(st.lists(separable(), min_size=1, max_size=6))
    def run(cases: list[tuple[Case, Case]]) -> None:
        graph, arrays = chained(cases)
        deployment = deploy(graph, DSP, (CORTEX_M,), objective=FAST)
        seen.extend(deployment.plan.data_layout(node.output) is NHW2C2 for node in graph.nodes[::2])
        compare(graph, arrays, run_on_host(deployment, b"".join(a.tobytes() for a in arrays)))

    run()
    assert any(seen)


@pytest.mark.emulated
@pytest.mark.parametrize("board", BOARDS)
def test_pairs_emulated(board: str) -> None:
    require_emulator()

    @drawing.emulated
    @given(st.lists(separable(), min_size=1, max_size=6))
    def run(cases: list[tuple[Case, Case]]) -> None:
        graph, arrays = chained(cases)
        deployment, raw = run_emulated(graph, arrays, board, (CORTEX_M,), objective=FAST)
        assert deployment.steps
        compare(graph, arrays, raw)

    run()
