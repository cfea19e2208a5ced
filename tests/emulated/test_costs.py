# SPDX-License-Identifier: Apache-2.0
"""What kernels say that they cost, against what the emulator counts and the compiler makes, on layers of known
networks.

`python benchmarks/costs.py` does the same over a grid of drawn shapes for each kernel.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from benchmarks import costs, kernels
from tests.ops.emulated import require_emulator
from tinyet.boards import load_board
from tinyet.boards.cpus import Target
from tinyet.delegates import CORTEX_M, PORTABLE, Delegate
from tinyet.ir import Array, Attrs, Node
from tinyet.opset import Definition, Kernel

ALL, EACH = 0.03, 0.07
"""Largest error of the sum of all layers, and of one."""


def layers_and_kernels(target: Target) -> list[tuple[Node, Delegate, Kernel]]:
    """Each layer, with each kernel that can compute it; layers of one shape once."""
    found = {}
    homes = [delegate for delegate in (CORTEX_M, PORTABLE) if delegate.supports(target) is None]
    for node in [node for model in kernels.MODELS.values() for node in model]:
        for delegate in homes:
            for kernel in delegate.kernels[type(node.attrs)]:
                if kernel.claim is not None and kernel.why_not(node, target) is None:
                    found[str(node.attrs), node.input(0).shape, node.output.shape, kernel.symbol] = (
                        node,
                        delegate,
                        kernel,
                    )
    return list(found.values())


def only(numbers: set[int], kernel: Kernel) -> Kernel:
    """A kernel for the layers of these numbers alone."""

    def refuse(node: Node, _target: Target) -> str | None:
        return None if int(node.output.name[1:]) in numbers else "another kernel's"

    return dataclasses.replace(kernel, refuse=refuse)


@pytest.mark.parametrize(
    ("board_name", "of_so_many"),
    [("mps2_an386", 2), ("mps2_an505", 5), ("mps2_an385", 2), ("microbit", 2), ("riscv32_virt", 2)],
)
def test_costs_of_known_layers(board_name: str, of_so_many: int) -> None:
    """On cores that have rates of their own, and on one that has those of another."""
    board = costs.with_memory(load_board(board_name))
    require_emulator(board.name)
    cases = layers_and_kernels(board.target)[::of_so_many]
    graph = kernels.side_by_side([node for node, _, _ in cases])
    delegates = []
    for home in (CORTEX_M, PORTABLE):
        numbers: dict[type[Attrs], dict[str, set[int]]] = {}
        for number, (node, delegate, kernel) in enumerate(cases):
            if delegate is home:
                of_symbol = numbers.setdefault(type(node.attrs), {})
                of_symbol.setdefault(kernel.symbol, set()).add(number)
        chosen = {
            attrs: tuple(
                only(of_symbol[kernel.symbol], kernel)
                for kernel in home.kernels[attrs]
                if kernel.symbol in of_symbol
            )
            for attrs, of_symbol in numbers.items()
        }
        delegates.append(Delegate(f"some_{home.name}", chosen, files=home.files))
    rng = np.random.default_rng(3)
    arrays: list[Array] = [rng.integers(-128, 128, t.shape).astype(np.int8) for t in graph.inputs]
    measured = kernels.run(graph, arrays, board, delegates)
    sizes, text = costs.own_code(measured.deployment, graph, board)
    functions = costs.wrappers(measured.deployment, sizes, text)
    stated, counted, constants = 0, 0, 0
    code: dict[Definition, int] = {}
    for step, count in zip(measured.deployment.steps, measured.counts, strict=True):
        cost = step.choice.kernel.cost(step.node, board.target, step.call)
        assert cost is not None, step.choice.kernel.symbol
        assert cost.scratch == step.call.scratch_bytes
        assert abs(cost.instructions / count - 1) <= EACH, (
            f"{step.choice.kernel.symbol}, {step.node.input(0).shape} to {step.node.output.shape}: "
            f"{cost.instructions} stated, {count} counted"
        )
        stated, counted = stated + cost.instructions, counted + count
        constants += cost.constants
        if isinstance(step.call.symbol, Definition):
            code.setdefault(step.call.symbol, cost.code)
    assert abs(stated / counted - 1) <= ALL
    # Each wrapper's call is some 20 bytes more.
    compiled = sum(functions.values()) + 20 * len(functions)
    assert abs(sum(code.values()) - compiled) <= 2 * ALL * compiled
    of_calls = sum(c.data.nbytes for step in measured.deployment.steps for c in step.call.constants)
    assert constants == of_calls + measured.deployment.parameter_bytes


def test_a_board_with_memory_counts_the_same() -> None:
    """The instructions of a core are those of another that runs its code."""
    require_emulator("microbit")
    own = load_board("microbit")
    nodes = [kernels.conv((8, 8, 8), 10, (3, 3)), kernels.conv((8, 8, 8), 0, (3, 3)), kernels.linear(64, 10)]
    graph = kernels.side_by_side(nodes)
    rng = np.random.default_rng(5)
    arrays: list[Array] = [rng.integers(-128, 128, t.shape).astype(np.int8) for t in graph.inputs]
    counts = [kernels.run(graph, arrays, board, [PORTABLE]).counts for board in (own, costs.with_memory(own))]
    assert counts[0] == counts[1]
