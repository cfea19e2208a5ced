# SPDX-License-Identifier: Apache-2.0
"""Sums over an image a tile of rows at a time, measured by themselves: what the first of so many tiles takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from benchmarks import kernels as layers
from tinyet.boards.cpus import Target
from tinyet.ir import Attrs, Node, Tensor, TensorType
from tinyet.numerics import quantize_multiplier
from tinyet.ops.shared.averaging import division
from tinyet.ops.shared.row_sums import RowSums, attrs_of
from tinyet.opset import Call, CostModel, Kernel
from tinyet.opset.call import ScratchArg, StateArg

MANY = 1 << 20
"""Tiles, of which the first is not the last."""


def row_sums(rng: np.random.Generator) -> Node:
    """A tile, either of many or of one."""
    rows, columns = int(rng.integers(1, 5)), int(rng.integers(1, 33))
    x = layers.activation("x", (1, rows, columns, int(rng.choice([3, 4, 8, 10, 16, 20, 64, 66]))))
    finish = (
        division(rows * columns, rows * columns, x.type.zero_point)
        if rng.random() < 0.5
        else quantize_multiplier(1 / (rows * columns))
    )
    made = RowSums(1 if rng.random() < 0.5 else MANY, 0, finish)
    return Node(made, (x,), (Tensor("y", TensorType((1, x.shape[-1]), x.dtype, x.type.quant)),))


def alone(attrs: type[Attrs], kernel: Kernel) -> Kernel:
    """A kernel that can be run by itself: tiled sums have a state of their own, which is 0 at the start, instead of
    scratch memory, and the outputs that the first tile rounds; others are as they are."""
    if attrs is not RowSums or kernel.cost_model is None:
        return kernel
    stated = kernel.cost_model

    def lower(node: Node, target: Target) -> Call:
        call = kernel.lower(node, target)
        args = tuple(StateArg() if isinstance(arg, ScratchArg) else arg for arg in call.args)
        return dataclasses.replace(call, args=args, scratch_bytes=0, state_bytes=call.scratch_bytes)

    def work(node: Node) -> Mapping[str, int]:
        ends = attrs_of(node).tiles == 1
        return {**stated.work(node), "outputs": node.input(0).shape[-1] if ends else 0}

    return dataclasses.replace(kernel, lower=lower, cost_model=CostModel(work))
