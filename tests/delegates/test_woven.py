# SPDX-License-Identifier: Apache-2.0
"""Kernels that leave room between pixels: their first input is woven into another tensor, and so is their output."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given

from tests.delegates.test_cortex_m import BOARDS, NODES, only, takes
from tests.ops import drawing
from tests.ops.cases import HOST_WITH_DSP, Case, renamed, run_on_host
from tests.ops.emulated import require_emulator, run_emulated
from tinyet import ops
from tinyet.delegates import CORTEX_M
from tinyet.deployment import deploy
from tinyet.ir import Array, DType, Graph, Node, Tensor, TensorType
from tinyet.ops.concat import Concat
from tinyet.ops.unary import Unary
from tinyet.opset import Arrangement
from tinyet.reference.evaluate import run_graph

KERNELS = sorted(
    {k.symbol for kernels in CORTEX_M.kernels.values() for k in kernels if k.arranged is not None}
)


def mirrored(x: Tensor, name: str) -> Node:
    """A layer by a table, which leaves room between pixels."""
    return Node(Unary("abs"), (x,), (Tensor(name, x.type),))


def joined(parts: Sequence[Tensor], name: str) -> Node:
    first = parts[0].type
    shape = (*first.shape[:-1], sum(t.shape[-1] for t in parts))
    kind = TensorType(shape, first.dtype, first.quant)
    return Node(Concat(len(shape) - 1), tuple(parts), (Tensor(name, kind),))


def woven(cases: Sequence[Case]) -> tuple[Graph, list[Array]]:
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


def pitches(graph: Graph, symbol: str) -> list[Arrangement]:
    """Of the layers that a kernel computes."""
    found = deploy(graph, HOST_WITH_DSP, (only(symbol),))
    plan = found.plan
    steps = [step.node for step in found.steps if step.choice.kernel.symbol == symbol]
    return [Arrangement(plan.pitch(n.input(0)), plan.pitch(n.output)) for n in steps]


@pytest.mark.parametrize("symbol", KERNELS)
def test_host(symbol: str) -> None:
    """Under ASan and UBSan."""
    seen: list[Arrangement] = []

    @drawing.emulated
    @given(drawing.many(NODES[symbol]()))
    def run(cases: list[Case]) -> None:
        taken = wanted(symbol, cases)
        assume(taken)
        graph, arrays = woven(taken)
        deployment = deploy(graph, HOST_WITH_DSP, (only(symbol),))
        seen.extend(pitches(graph, symbol))
        compare(graph, arrays, run_on_host(deployment, b"".join(a.tobytes() for a in arrays)))

    run()
    assert all(pitch.output for pitch in seen)
    assert any(pitch.input for pitch in seen)


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("symbol", "board"), [(symbol, BOARDS[i % len(BOARDS)]) for i, symbol in enumerate(KERNELS)]
)
def test_emulated(symbol: str, board: str) -> None:
    """The instructions themselves."""
    require_emulator()

    @drawing.emulated
    @given(drawing.many(NODES[symbol]()))
    def run(cases: list[Case]) -> None:
        taken = wanted(symbol, cases)
        assume(taken)
        graph, arrays = woven(taken)
        _, raw = run_emulated(graph, arrays, board, (only(symbol),))
        compare(graph, arrays, raw)

    run()
