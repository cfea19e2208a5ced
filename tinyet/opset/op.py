# SPDX-License-Identifier: Apache-2.0
"""The meaning of an operator: shapes, a bit-exact numpy reference, a cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tinyet.ir import Array, Attrs, Node, Shape
from tinyet.opset.iteration import Iterate, contractions, opaque
from tinyet.opset.kernel import Kernel
from tinyet.opset.tiles import ReduceTiles, never

Part = Callable[[Node, int, int], Attrs | str | None]
Reference = Callable[[Node, Sequence[Array | None]], tuple[Array, ...]]


def exact(node: Node) -> bool:
    return False


def no_complaint(node: Node) -> str | None:
    return None


def same_attrs(node: Node, _axis: int, _count: int) -> Attrs | str | None:
    return node.attrs


@dataclass(frozen=True)
class Op:
    """The meaning of an operator.

    attrs:      its attribute class, whose `name` is the operator's name.
    summary:    one line for the operator table.
    infer:      shapes of the outputs from shapes and attributes of the inputs; raises UnsupportedShape.
    reference:  node and one array per input (None where absent) → one array per output. Integer results are
                exact; float results are float32, computed in the order of the C kernel.
    kernels:    the portable kernels, best first.
    inputs:     how many there are, at least and at most; those beyond the least may be absent.
    check:      what is wrong with the dtypes, the quantization or the values of this node's constants and attributes,
                or None. It is asked after `infer`, and with the rest of the rule by rule.complaints.
    products:   multiply-accumulates of one inference, of an operator that is no contraction of two operands.
    inplace:    inputs that an output of the same byte size may overwrite while they are read.
    same_scale: the integer form moves or selects values only: every input and output has the same quantization.
    rounds:     whether the integer form of a node of one scale rounds, as averages do, where the float form does not.
    view:       the bytes do not change at all: the output is its input under another shape.
    bias:       index of the input that the integer form wants as int32 with scale = scale(input 0) *
                scale(weight), and of that weight, or None.
    carried:    for each of the last outputs, the input that is the same state before the first step, and that has the
                same quantization. Such operators take values of several types beside each other.
    state_bias: like `bias`, of sums over a state: index of the bias, of the weight and of the state, or None.
    iteration:  the loops it consists of, and how its operands are indexed by them.
    part:       attributes of the operator that makes `count` indices of an axis of the output of no more indices of
                its inputs than the iteration says, those outside of them included; None where these are the indices
                read, as they are, a text where there is no such operator. From node, axis and count.
    reduce_tiles: how all rows together make the output, a few at a time, where they can.
    """

    attrs: type[Attrs]
    summary: str
    infer: Callable[[Node], tuple[Shape, ...]]
    reference: Reference
    kernels: tuple[Kernel, ...]
    inputs: tuple[int, int] = (1, 1)
    check: Callable[[Node], str | None] = no_complaint
    products: Callable[[Node], int] | None = None
    inplace: tuple[int, ...] = ()
    same_scale: bool = False
    rounds: Callable[[Node], bool] = exact
    view: bool = False
    bias: tuple[int, int] | None = None
    carried: tuple[int, ...] = ()
    state_bias: tuple[int, int, int] | None = None
    iteration: Iterate = opaque
    part: Part = same_attrs
    reduce_tiles: ReduceTiles = never

    @property
    def name(self) -> str:
        return self.attrs.name

    def macs(self, node: Node) -> int:
        """Multiply-accumulates of one inference."""
        return contractions(self.iteration(node)) if self.products is None else self.products(node)
