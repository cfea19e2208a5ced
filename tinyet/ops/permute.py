# SPDX-License-Identifier: Apache-2.0
"""Dimensions in another order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, Node, Shape
from tinyet.ops.shared.movement import Move, check_rearranged, move_kernels, plan, strides
from tinyet.ops.shared.transposition import in_place_kernels
from tinyet.opset import Iteration, Nest, Op, operand


@dataclass(frozen=True)
class Permute(Attrs):
    """inputs: x; output dimension i is input dimension order[i], as numpy's transpose."""

    name: ClassVar[str] = "permute"
    order: tuple[int, ...]


def attrs_of(node: Node) -> Permute:
    assert isinstance(node.attrs, Permute)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    order, shape = attrs_of(node).order, node.input(0).shape
    if sorted(order) != list(range(len(shape))):
        raise UnsupportedShape(f"permute: {order} is no order of {len(shape)} dimensions", node.where)
    return (tuple(shape[axis] for axis in order),)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x = inputs[0]
    assert x is not None
    return (np.ascontiguousarray(x.transpose(attrs_of(node).order)).reshape(node.output.shape),)


def iterate(node: Node) -> Iteration:
    nest, order = Nest(), attrs_of(node).order
    out = nest.all_parallel(node.output.shape)
    return nest.iteration([operand(*(out[order.index(axis)] for axis in range(len(order))))], [operand(*out)])


def moves_nothing(shape: Shape, order: Sequence[int]) -> bool:
    """Only dimensions of size 1 change places, so the bytes stay as they are."""
    kept = [axis for axis in order if shape[axis] != 1]
    return kept == sorted(kept)


def plan_of(node: Node) -> Move:
    source = strides(node.input(0).shape)
    return plan(node.output.shape, tuple(source[axis] for axis in attrs_of(node).order))


OP = Op(
    attrs=Permute,
    summary="dimensions in another order (transpose, permute, channels-last)",
    infer=infer,
    reference=reference,
    iteration=iterate,
    check=check_rearranged,
    same_scale=True,
    kernels=(*move_kernels(plan_of), *in_place_kernels(plan_of)),
)
