# SPDX-License-Identifier: Apache-2.0
"""int4 weights: the arithmetic of int8 ones in half the bytes. Nodes are drawn by the strategies of the operators."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calls import board
from tests.calls.emulated import calls_of, check_library, skip_missing
from tests.calls.exact import assert_kernels
from tests.ops import bodies, drawing
from tests.ops.cases import Case, tensor
from tests.ops.test_conv2d import KINDS, conv2d_nodes
from tests.ops.test_linear import linear_nodes
from tinyet import ops
from tinyet.boards.cpus import HOST
from tinyet.delegates import DEFAULT
from tinyet.deployment import deploy
from tinyet.errors import UnsupportedOp
from tinyet.ir import Array, DType, Graph, Node, QuantParams, Tensor, constant
from tinyet.ops import linear
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.linear import Linear
from tinyet.ops.shared.nibbles import pack_nibbles
from tinyet.opset import Kernel, signature


def int4(case: Case) -> Case:
    """The case with the upper four bits of its weights as int4 weights."""
    weights = case.node.input(1)
    narrow = constant(
        "weights", np.right_shift(weights.array.astype(np.int8), 4), weights.type.quant, DType.INT4
    )
    return Case(case.node.replace(inputs=(case.node.input(0), narrow, *case.node.inputs[2:])), case.inputs)


def unpacked(packed: Array, axis: int) -> Array:
    """What pack_nibbles packed, along `axis` an even number, written with divisions instead of masks."""
    low = np.stack([packed.astype(np.int64) % 16, packed.astype(np.int64) // 16], axis + 1)
    shape = list(packed.shape)
    shape[axis] *= 2
    return np.asarray(np.where(low > 7, low - 16, low).reshape(shape), np.int8)


@pytest.mark.parametrize(
    ("shape", "axis"), [((5, 4), 0), ((2, 3, 4), 1), ((3, 2, 4, 4), 1), ((2, 2, 7, 4), 2)]
)
def test_packing(shape: tuple[int, ...], axis: int) -> None:
    rng = np.random.default_rng(1)
    weights = rng.integers(-8, 8, shape).astype(np.int8)
    packed = pack_nibbles(weights, axis)
    assert packed.shape[axis] == (shape[axis] + 1) // 2
    back = unpacked(packed, axis)
    np.testing.assert_array_equal(np.take(back, range(shape[axis]), axis), weights)
    assert not np.take(back, range(shape[axis], back.shape[axis]), axis).any()


@drawing.quick
@given(st.one_of(conv2d_nodes(DType.INT8), linear_nodes(DType.INT8)))
def test_same_numbers_as_int8(case: Case) -> None:
    """The reference takes int4 weights for int8 ones of the same value."""
    narrow = int4(case)
    w = narrow.node.input(1)
    wide = narrow.node.replace(
        inputs=(case.node.input(0), constant("w", w.array, w.type.quant), *case.node.inputs[2:])
    )
    assert (signature(wide), signature(narrow.node)) == ("s8", "s8_w4")
    assert ops.op_of(narrow.node).check(narrow.node) is None
    np.testing.assert_array_equal(drawing.reference(narrow), drawing.reference(Case(wide, case.inputs)))


@pytest.mark.parametrize("kind", KINDS)
def test_conv2d_on_host(kind: str) -> None:
    """Every kernel that takes a node, not only the one that would be chosen."""
    bodies.host(conv2d_nodes(DType.INT8, kind).map(int4), "s8_w4")()


test_linear_on_host = bodies.host(linear_nodes(DType.INT8).map(int4))


@pytest.mark.emulated
def test_emulated() -> None:
    """Without and with the DSP extension, which unpacks in another way; and on cores with Helium."""
    check_library(st.one_of(conv2d_nodes(DType.INT8), linear_nodes(DType.INT8)).map(int4))


def extreme(node: Node, fill: int) -> Case:
    x = node.input(0)
    return Case(node, (np.full(x.shape, fill, np.int8),))


def widest_sums() -> list[Case]:
    """All weights at one end, all inputs at one end, zero points at the other: the largest sums there are."""
    cases = []
    for weight, fill, zero_point in ((-8, -128, 127), (7, 127, -128), (-8, 127, -128), (7, -128, 127)):
        quant = QuantParams.per_tensor(0.01, 0)
        x, y = (
            tensor("x", (1, 3, 3, 70), scale=0.1, zero_point=zero_point),
            tensor("y", (1, 1, 1, 3), scale=20.0),
        )
        w = constant("w", np.full((3, 3, 3, 70), weight, np.int8), quant, DType.INT4)
        cases.append(extreme(Node(Conv2d(), (x, w), (y,)), fill))
        x, y = tensor("x", (630,), scale=0.1, zero_point=zero_point), tensor("y", (3,), scale=20.0)
        w = constant("w", np.full((3, 630), weight, np.int8), quant, DType.INT4)
        cases.append(extreme(Node(Linear(), (x, w), (y,)), fill))
    return cases


def test_widest_sums_on_host() -> None:
    assert_kernels(widest_sums())


@pytest.mark.emulated
def test_widest_sums_with_dsp() -> None:
    skip_missing([board.M4])
    for case in widest_sums():
        assert calls_of(case, None, [board.M4])[board.M4]


def long_row(depth: int) -> Node:
    w = constant("w", np.full((1, depth), -8, np.int8), QuantParams.per_tensor(0.1, 0), DType.INT4)
    return Node(Linear(), (tensor("x", (depth,), scale=0.1), w), (tensor("y", (1,), scale=1.0),))


def test_sums_beyond_the_masks() -> None:
    """16 * 128 * 8 * depth must stay below 2**31."""
    (kernel,) = (k for k in linear.OP.kernels if k.dtypes == "s8_w4")
    assert kernel.why_not(long_row(131071), HOST) is None
    assert "2**20" in (kernel.why_not(long_row(131072), HOST) or "")


def lowered(kernel: Kernel, node: Node) -> int:
    """Bytes of the weights that a kernel prints."""
    return int(next(c.data.nbytes for c in kernel.lower(node, HOST).constants if c.name == "weights"))


@pytest.mark.parametrize(
    ("shape", "groups", "symbol"),
    [
        ((8, 3, 3, 16), 1, "tinyet_conv2d_s8_w4"),
        ((8, 1, 1, 16), 1, "tinyet_conv2d_1x1_s8_w4"),
        ((8, 2, 4, 1), 8, "tinyet_depthwise_s8_w4"),
    ],
)
def test_half_the_bytes(shape: tuple[int, ...], groups: int, symbol: str) -> None:
    """The constants that are printed, and by which flash is counted."""
    rng = np.random.default_rng(2)
    w = constant("w", rng.integers(-8, 8, shape).astype(np.int8), QuantParams.per_tensor(0.1, 0), DType.INT4)
    x, y = tensor("x", (1, 6, 6, shape[3] * groups), scale=0.1), tensor("y", (), scale=0.1)
    node = Node(Conv2d(groups=groups), (x, w), (y,))
    node = node.replace(outputs=[tensor("y", ops.infer(node)[0], scale=0.1)])
    deployment = deploy(Graph("g", (x,), node.outputs, (node,)), HOST)
    (step,) = deployment.steps
    assert step.choice.kernel.symbol == symbol
    assert lowered(step.choice.kernel, node) == w.type.count // 2 == w.type.bytes
    assert deployment.constant_bytes == w.type.count // 2 + shape[0] * (4 + 4 + 1)


def test_refusals_name_the_layer() -> None:
    """A kernel set without int4 says so; who has none at all is an error that names the layer and its types."""
    w = constant("w", np.ones((2, 3, 3, 4), np.int8), QuantParams.per_tensor(0.1, 0), DType.INT4)
    x, y = tensor("x", (1, 4, 4, 4), scale=0.1), tensor("logits", (1, 2, 2, 2), scale=0.1)
    node = Node(Conv2d(), (x, w), (y,))
    (step,) = deploy(Graph("g", (x,), (y,), (node,)), HOST, DEFAULT).steps
    assert any("computes s8, the node is s8_w4" in str(r) for r in step.choice.refusals)
    transposed = node.replace(attrs=ConvTranspose2d(), outputs=[tensor("logits", (1, 6, 6, 2), scale=0.1)])
    assert ops.op_of(transposed).check(transposed) is None
    with pytest.raises(UnsupportedOp, match=r"conv_transpose2d \(s8_w4\), logits: .*the node is s8_w4"):
        deploy(Graph("g", (x,), transposed.outputs, (transposed,)), HOST, DEFAULT)


def test_constants_hold_four_bits() -> None:
    held: Tensor = constant("w", np.array([[-8, 7, 3]], np.int8), QuantParams.per_tensor(0.1, 0), DType.INT4)
    assert (held.type.bytes, held.dtype.suffix, held.dtype.range) == (2, "s4", (-8, 7))
