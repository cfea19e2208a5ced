# SPDX-License-Identifier: Apache-2.0
"""Channels that are constant or unread are removed: small graphs, line by line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.golden_files import Golden
from tests.passes.build import Builder, assert_same, lines, per_tensor
from tinyet.custom import Form, custom_op
from tinyet.ir import Array, Graph, QuantParams, Tensor
from tinyet.numerics import bias_type
from tinyet.ops.add import Add
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.batch_norm import BatchNorm
from tinyet.ops.concat import Concat
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.dynamic_conv2d import DynamicConv2d
from tinyet.ops.dynamic_linear import DynamicLinear
from tinyet.ops.linear import Linear
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.mean import Mean
from tinyet.ops.mul import Mul
from tinyet.ops.pad import Pad
from tinyet.ops.resize import Resize
from tinyet.ops.slice import Slice
from tinyet.ops.softmax import OUT_SCALE, OUT_ZERO_POINT, Softmax
from tinyet.ops.unary import Unary
from tinyet.passes.prune_channels import macs_of, prune_channels, weight_bytes

RELU = (0.0, math.inf)
PADDED: dict[str, Any] = {"pad_top": 1, "pad_bottom": 1, "pad_left": 1, "pad_right": 1}


class Sparse(Builder):
    """Builds layers with filters and inputs of zeros."""

    def weights(
        self, *shape: int, quant: bool, dead: tuple[int, ...] = (), unread: tuple[int, ...] = ()
    ) -> Tensor:
        """dead: filters of zeros; unread: inputs that no filter reads."""
        data = self.rng.integers(1, 20, shape) * self.rng.choice((-1, 1), shape)
        data[list(dead)] = 0
        data[..., list(unread)] = 0
        scales = QuantParams(tuple(0.01 + 0.001 * i for i in range(shape[0])), (0,) * shape[0], 0)
        return self.const(data, scales if quant else None)

    def bias(self, x: Tensor, weights: Tensor, values: Array) -> Tensor:
        if weights.type.quant is None:
            return self.const(values)
        type_ = bias_type(weights.shape[0], x.type, weights.type.quant)
        self._count += 1
        return Tensor(f"c{self._count}", type_, values.astype(np.int32))

    def layer(
        self,
        x: Tensor,
        channels: int,
        kernel: int = 1,
        dead: tuple[int, ...] = (),
        unread: tuple[int, ...] = (),
        bias: float = 50,
        quant: QuantParams | None = None,
        kind: type[Conv2d | ConvTranspose2d] = Conv2d,
        **attrs: object,
    ) -> Tensor:
        """A convolution on an NHWC value; `bias` is that of the dead filters."""
        groups = attrs.get("groups", 1)
        assert isinstance(groups, int)
        integer = x.type.quant is not None
        weights = self.weights(
            channels, kernel, kernel, x.shape[3] // groups, quant=integer, dead=dead, unread=unread
        )
        biases = self.rng.integers(-9, 10, channels).astype(np.float32)
        biases[list(dead)] = bias
        out = quant or (per_tensor(0.2, -10) if integer else None)
        made = kind(**attrs)  # type: ignore[arg-type]
        return self.emit(made, x, weights, self.bias(x, weights, biases), quant=out)

    def dense(self, x: Tensor, width: int, unread: tuple[int, ...] = ()) -> Tensor:
        integer = x.type.quant is not None
        weights = self.weights(width, x.shape[-1], quant=integer, unread=unread)
        out = per_tensor(0.5, 3) if integer else None
        return self.emit(Linear(), x, weights, self.bias(x, weights, np.arange(width)), quant=out)


def pruned(before: Graph) -> Graph:
    after, notes = prune_channels(before)
    assert_same(before, after)
    assert [t.type for t in after.inputs + after.outputs] == [t.type for t in before.inputs + before.outputs]
    assert (after is before) == (not notes)
    return after


PLUS_ONE = "void plus_one(void) {\n}\nvoid at_least_5(void) {\n}\n"
IMAGE, ZERO = per_tensor(0.1, 4), per_tensor(0.2, -10)


@pytest.mark.parametrize("integer", [True, False])
def test_a_dead_filter_goes_with_all_that_only_passes_it_on(integer: bool) -> None:
    b = Sparse()
    x = b.input(1, 6, 6, 3, quant=IMAGE if integer else None)
    y = b.layer(x, 4, 3, dead=(1, 3), bias=0, clamp=RELU, **PADDED)
    y = b.layer(y, 4, 3, groups=4, bias=0, **PADDED)
    y = b.emit(MaxPool2d(2, 2, kernel_h=2, kernel_w=2), y)
    y = b.emit(Unary("abs"), y)
    flat = b.reshape(y, 1, 3 * 3 * 4)
    before = b.graph(b.dense(flat, 5))
    # The depthwise bias of a channel that is constant makes it another constant, which is not 0 in float.
    assert lines(pruned(before))[-2:] == (
        ["reshape(1x3x3x2) -> 1x18", "linear(1x18, 5x18, 5) -> 1x5"]
        if integer
        else ["reshape(1x3x3x4) -> 1x36", "linear(1x36, 5x36, 5) -> 1x5"]
    )


def test_whole_text_before_and_after(golden: Golden) -> None:
    b = Sparse()
    x = b.input(1, 6, 6, 3, quant=IMAGE)
    y = b.layer(x, 4, 3, dead=(1, 3), bias=0, **PADDED)
    y = b.layer(y, 4, 3, groups=4, **PADDED)
    y = b.emit(AvgPool2d(2, 2, kernel_h=2, kernel_w=2), y)
    z = b.layer(y, 6, 1)
    w = b.emit(Concat(3), y, z, quant=z.type.quant)
    pooled = b.emit(Mean((1, 2)), w)
    before = b.graph(b.dense(pooled, 5))
    after, notes = prune_channels(before)
    assert_same(before, after)
    golden("\n".join([*lines(before), "", *lines(after), "", *map(str, notes), ""]), "whole.txt")
    macs, size = (macs_of(before.nodes), macs_of(after.nodes)), (weight_bytes(before), weight_bytes(after))
    assert macs[1] < macs[0]
    assert str(notes[0]) == (
        f"pruned channels are removed: {macs[0]:,} to {macs[1]:,} MACs, {size[0]:,} to {size[1]:,} bytes of weights"
    )
    assert [note.origin.key for note in notes[1:] if note.origin] == [
        node.origins[0].key for node in before.nodes if node.op in ("conv2d", "linear")
    ]


def test_a_graph_without_zeros_is_returned_as_it_is() -> None:
    b = Sparse()
    before = b.graph(b.dense(b.emit(Mean((1, 2)), b.layer(b.input(1, 4, 4, 3, quant=IMAGE), 8, 3)), 2))
    assert prune_channels(before) == (before, ())


@pytest.mark.parametrize(("bias", "padded", "left"), [(500, False, 2), (500, True, 3), (0, True, 2)])
def test_a_constant_goes_into_the_bias_where_padding_does_not_see_it(
    bias: float, padded: bool, left: int
) -> None:
    """The dead filter's output is 0.1 * 0.011 * 500 / 0.2 = 3 steps from the zero point."""
    b = Sparse()
    y = b.layer(b.input(2, 5, 5, 3, quant=IMAGE), 3, dead=(1,), bias=bias)
    after = pruned(b.graph(b.layer(y, 4, 3, **(PADDED if padded else {}))))
    assert after.nodes[0].output.shape[3] == left
    folded = not np.array_equal(after.nodes[1].input(2).array, b.nodes[1].input(2).array)
    assert folded == (bias != 0 and not padded)


def test_a_layer_without_bias_gets_one() -> None:
    b = Sparse()
    y = b.layer(b.input(1, 5, 5, 3, quant=IMAGE), 3, dead=(0,), bias=500)
    weights = b.weights(4, 1, 1, 3, quant=True)
    after = pruned(b.graph(b.emit(Conv2d(), y, weights, None, quant=ZERO)))
    bias = after.nodes[1].input(2)
    assert bias.array.tolist() == (3 * weights.array[:, 0, 0, 0].astype(np.int32)).tolist()
    assert weights.type.quant is not None
    assert bias.type == bias_type(4, y.type, weights.type.quant)


def test_padding_with_weights_of_zero_at_the_border_sees_nothing() -> None:
    b = Sparse()
    y = b.layer(b.input(1, 5, 5, 3, quant=IMAGE), 2, dead=(1,), bias=500)
    weights = b.weights(4, 3, 3, 2, quant=True)
    data = weights.array.copy()
    data[..., 1] = 0
    data[:, 1, 1, 1] = 7
    y = b.emit(Conv2d(**PADDED), y, b.const(data, weights.type.quant), None, quant=ZERO)
    assert pruned(b.graph(y)).nodes[0].output.shape[3] == 1


def test_a_channel_that_nobody_reads_goes_with_its_filter() -> None:
    b = Sparse()
    y = b.layer(b.input(1, 5, 5, 3, quant=IMAGE), 6, 3)
    first, second = b.layer(y, 4, 3, unread=(0, 2, 5), **PADDED), b.layer(y, 4, 1, unread=(2, 5))
    after = pruned(b.graph(first, second))
    assert lines(after)[0] == "conv2d(1x5x5x3, 4x3x3x3, 4) -> 1x3x3x4"


def test_what_is_unread_after_a_removal_goes_too() -> None:
    """Input 1 of the middle layer is read by its filter 0 only, which nobody reads."""
    b = Sparse()
    y = b.layer(b.input(1, 4, 4, 3, quant=IMAGE), 3)
    weights = b.weights(2, 1, 1, 3, quant=True).array.copy()
    weights[1, ..., 1] = 0
    z = b.emit(Conv2d(), y, b.const(weights, QuantParams((0.1, 0.1), (0, 0), 0)), None, quant=ZERO)
    after = pruned(b.graph(b.layer(z, 2, unread=(0,))))
    assert lines(after) == [
        "conv2d(1x4x4x3, 2x1x1x3, 2) -> 1x4x4x2",
        "conv2d(1x4x4x2, 1x1x1x2, -) -> 1x4x4x1",
        "conv2d(1x4x4x1, 2x1x1x1, 2) -> 1x4x4x2",
    ]


@pytest.mark.parametrize(("dead", "left"), [((0, 2), 2), ((2, 3), 3)])
def test_through_a_sum_a_channel_goes_where_all_agree(dead: tuple[int, ...], left: int) -> None:
    b = Sparse()
    x = b.input(1, 4, 4, 3, quant=IMAGE)
    one, other = b.layer(x, 4, dead=(0, 2)), b.layer(x, 4, dead=dead)
    total = b.emit(Add(RELU), one, other, quant=ZERO)
    again = b.emit(Add(), total, b.layer(total, 4, 1, dead=(0, 1, 2, 3)), quant=ZERO)
    after = pruned(b.graph(b.layer(again, 2)))
    assert [n.output.shape[3] for n in after.nodes if n.op == "add"] == [left, left]


def test_inputs_and_outputs_of_the_graph_stay_whole() -> None:
    b = Sparse()
    x = b.input(1, 4, 4, 3, quant=IMAGE)
    y = b.layer(x, 4, dead=(1,), unread=(2,))
    before = b.graph(y, b.emit(Softmax(3), b.layer(y, 2, unread=(0,)), quant=per_tensor(1 / 256, -128)))
    assert pruned(before) is before


def test_one_channel_stays_of_a_layer_of_zeros() -> None:
    b = Sparse()
    y = b.layer(b.input(1, 4, 4, 3, quant=IMAGE), 4, dead=(0, 1, 2, 3), bias=300)
    assert [n.output.shape[3] for n in pruned(b.graph(b.layer(y, 2))).nodes] == [1, 2]


@pytest.mark.parametrize("groups", [2, 3])
def test_groups_go_as_a_whole(groups: int) -> None:
    """The dead filters are all of the first group's inputs; of the others one each."""
    b = Sparse()
    size = 6 // groups
    dead = (*range(size), size)
    y = b.layer(b.input(1, 4, 4, 3, quant=IMAGE), 6, dead=dead, bias=0)
    y = b.layer(y, 12, 3, groups=groups, **PADDED)
    after = pruned(b.graph(b.layer(y, 2)))
    conv = after.nodes[1].attrs
    assert isinstance(conv, Conv2d)
    assert conv.groups == groups - 1
    assert after.nodes[1].output.shape[3] == 12 - 12 // groups


def test_depthwise_with_several_filters_a_channel_and_transposed() -> None:
    b = Sparse()
    y = b.layer(b.input(1, 4, 4, 3, quant=IMAGE), 4, dead=(2,), bias=0)
    y = b.layer(y, 8, 3, groups=4, **PADDED)
    y = b.layer(y, 5, 2, kind=ConvTranspose2d, stride_h=2, stride_w=2, dead=(0,), bias=0)
    after = pruned(b.graph(b.layer(y, 2)))
    assert [n.output.shape[3] for n in after.nodes] == [3, 6, 4, 2]


def test_a_disturbed_depthwise_constant_stays() -> None:
    """The constant is not the zero point, so the depthwise layer's border differs from its middle."""
    b = Sparse()
    y = b.layer(b.input(1, 4, 4, 3, quant=IMAGE), 4, dead=(2,), bias=900)
    before = b.graph(b.layer(b.layer(y, 4, 3, groups=4, **PADDED), 2))
    assert pruned(before) is before


def test_movers(golden: Golden) -> None:
    b = Sparse()
    y = b.layer(b.input(1, 4, 6, 3, quant=IMAGE), 6, dead=(0, 4), bias=0)
    y = b.emit(Slice(3, 0, 5), y)
    y = b.emit(Pad(((0, 0), (1, 1), (0, 0), (2, 1))), y)
    y = b.permute(y, 0, 3, 1, 2)
    y = b.emit(Slice(2, 0, 4, 2), y)
    y = b.reshape(y, 1, 8, 12)
    after = pruned(b.graph(b.dense(b.reshape(b.permute(y, 0, 2, 1), 1, 96), 3)))
    # Of six channels one is sliced off and two are dead; of the three added none is left.
    golden("\n".join([*lines(after), ""]), "movers.txt")


def test_channels_that_a_reshape_ties_together_go_together() -> None:
    """12 features as 3 x 4: of the columns 1 and 2 only the first is dead in all three rows."""
    b = Sparse()
    x = b.input(2, 5, quant=IMAGE)
    weights = b.weights(12, 5, quant=True, dead=(1, 5, 9, 2, 6))
    y = b.reshape(b.emit(Linear(), x, weights, None, quant=ZERO), 2, 3, 4)
    after = pruned(b.graph(b.emit(Linear(), y, b.weights(2, 4, quant=True), None, quant=ZERO)))
    assert lines(after) == [
        "linear(2x5, 9x5, -) -> 2x9",
        "reshape(2x9) -> 2x3x3",
        "linear(2x3x3, 2x3, -) -> 2x3x2",
    ]


def test_gates_masks_and_norms() -> None:
    b = Sparse()
    x = b.input(1, 4, 4, 3, quant=IMAGE)
    y = b.layer(x, 4, dead=(1,), bias=0)
    gate = b.emit(Unary("sigmoid"), b.dense(b.emit(Mean((1, 2)), x), 4), quant=per_tensor(1 / 256, -128))
    y = b.emit(Mul(), y, b.reshape(gate, 1, 1, 1, 4), quant=ZERO)
    mask = b.const([9, 9, 9, 5], per_tensor(0.25, 5))
    y = b.emit(Mul(), y, mask, quant=ZERO)
    y = b.emit(BatchNorm(3), y, b.const([1.0, 2.0, 0.0, 1.0]), b.const([0.0, 0.5, 0.0, 0.25]), quant=ZERO)
    y = b.emit(Resize(8, 8, "nearest", False, False, 0.5, 0.5), y)
    after = pruned(b.graph(b.layer(y, 2)))
    assert [n.output.shape[-1] for n in after.nodes] == [1, 3, 1, 1, 1, 1, 1, 1, 1, 2]


def test_floats_lose_what_is_zero_and_nothing_else() -> None:
    """Channel 0 is the constant 0, channel 1 the constant 2, channel 3 is read by nobody."""
    b = Sparse()
    weights = b.weights(4, 1, 1, 3, quant=False, dead=(0, 1))
    y = b.emit(Conv2d(clamp=RELU), b.input(1, 4, 4, 3), weights, b.const([-1, 2, 3, 4]))
    after = pruned(b.graph(b.layer(y, 3, 3, unread=(3,), **PADDED)))
    assert after.nodes[0].input(2).array.tolist() == [2, 3]


def test_layers_that_quantize_their_input_at_run_time() -> None:
    """Its range must stay: channel 1 is the constant 2, channel 3 is read by nobody, only channel 0 can go."""
    b = Sparse()
    weights = b.weights(4, 1, 1, 3, quant=True, dead=(0, 1))
    y = b.emit(DynamicConv2d(clamp=RELU), b.input(1, 4, 4, 3), weights, b.const([-1, 2, 3, 4]))
    y = b.emit(DynamicConv2d(**PADDED), y, b.weights(5, 3, 3, 4, quant=True, unread=(3,)), None)
    y = b.emit(DynamicConv2d(groups=5), y, b.weights(5, 1, 1, 1, quant=True, dead=(2,)), None)
    flat = b.reshape(y, 1, 80)
    after = pruned(b.graph(b.emit(DynamicLinear(), flat, b.weights(2, 80, quant=True), None)))
    assert [n.output.shape[-1] for n in after.nodes] == [3, 5, 5, 80, 2]


def test_across_quantize_and_dequantize() -> None:
    b = Sparse()
    y = b.dequantize(b.layer(b.input(1, 4, 4, 3, quant=IMAGE), 4, dead=(1, 2), bias=0))
    after = pruned(b.graph(b.layer(b.quantize(y, ZERO), 3)))
    assert [n.output.shape[3] for n in after.nodes] == [2, 2, 2, 3]


def test_registered_operators_that_are_pointwise() -> None:
    custom = custom_op(
        "tests::plus_one",
        infer=lambda site: site.x.shape,
        float32=Form(lambda _site, inputs: np.asarray(inputs[0]) + np.float32(1), "plus_one", PLUS_ONE),
        int8=Form(lambda _site, inputs: np.maximum(np.asarray(inputs[0]), 5), "at_least_5", PLUS_ONE),
        pointwise=True,
    )
    b = Sparse()
    y = b.layer(b.input(1, 4, 4, 3, quant=IMAGE), 4, dead=(1, 2), bias=0)
    after = pruned(b.graph(b.layer(b.emit(custom.op.attrs(), y), 2)))
    assert [n.output.shape[3] for n in after.nodes] == [2, 2, 2]


def test_what_is_not_followed_keeps_its_inputs() -> None:
    b = Sparse()
    y = b.layer(b.input(1, 4, 4, 3, quant=IMAGE), 4, dead=(1, 2))
    shares = b.emit(Softmax(3), y, quant=per_tensor(OUT_SCALE, OUT_ZERO_POINT))
    before = b.graph(b.layer(shares, 2))
    assert pruned(before) is before


def test_constants_that_two_layers_share_keep_their_names() -> None:
    b = Sparse()
    x = b.input(1, 4, 4, 4, quant=IMAGE)
    weights, quant = b.weights(4, 1, 1, 4, quant=True, dead=(1,)), per_tensor(0.1, 4)
    y = b.emit(Conv2d(), x, weights, None, quant=quant)
    y = b.emit(Conv2d(), y, weights, None, quant=quant)
    after = pruned(b.graph(b.layer(y, 2)))
    assert [n.input(1).shape[0] for n in after.nodes] == [3, 3, 2]
    assert len({n.input(1).name for n in after.nodes}) == 3
