# SPDX-License-Identifier: Apache-2.0
"""The passes in their order, on networks as the importer gives them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.golden_files import Golden
from tests.passes.build import (
    Builder,
    assert_same,
    before_and_after,
    ops_of,
    origins_of,
    per_tensor,
    random_inputs,
)
from tinyet import passes
from tinyet.errors import InternalError
from tinyet.ir import Array, DType, Graph, QuantParams, Tensor, TensorType, to_text
from tinyet.numerics import dequantize
from tinyet.ops.add import Add
from tinyet.ops.batch_norm import BatchNorm
from tinyet.ops.clamp import Clamp
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.linear import Linear
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.mean import Mean
from tinyet.ops.pad import Pad
from tinyet.ops.permute import Permute
from tinyet.passes import fold_constants
from tinyet.reference import run_graph

RELU = Clamp(0.0, math.inf)


class Quantized(Builder):
    """Puts a Quantize and a Dequantize behind a value, as a quantizer's observers become."""

    def observed(self, x: Tensor, scale: float, zero_point: int) -> Tensor:
        return self.dequantize(self.quantize(x, per_tensor(scale, zero_point)))

    def weights(self, *shape: int) -> Tensor:
        scales = tuple(0.005 + 0.001 * i for i in range(shape[0]))
        quant = QuantParams(scales, (0,) * shape[0], 0)
        return self.dequantize(self.const(self.rng.integers(-127, 128, shape), quant))

    def block(self, x: Tensor, channels: int, scale: float, stride: int = 1) -> Tensor:
        """Convolution and ReLU on an NCHW value."""
        y = self.permute(x, 0, 2, 3, 1)
        attrs = Conv2d(stride, stride, pad_top=1, pad_bottom=1, pad_left=1, pad_right=1)
        y = self.emit(attrs, y, self.weights(channels, 3, 3, x.shape[1]), self.random(channels))
        return self.observed(self.emit(RELU, self.permute(y, 0, 3, 1, 2)), scale, -128)


def quantized_network(channels: int) -> Graph:
    b = Quantized(checked=False)
    x = b.observed(b.input(1, channels, 10, 8), 4 / 127, 0)
    y = b.block(x, 8, 0.05)
    y = b.permute(b.emit(MaxPool2d(2, 2, kernel_h=2, kernel_w=2), b.permute(y, 0, 2, 3, 1)), 0, 3, 1, 2)
    y = b.observed(y, 0.05, -128)
    y = b.observed(b.emit(RELU, b.emit(Add(), y, b.block(y, 8, 0.06))), 0.1, -128)
    flat = b.observed(b.reshape(y, 1, 8 * 5 * 4), 0.1, -128)
    weights = b.weights(4, 160)
    features = b.observed(b.emit(Linear(), flat, weights, b.random(4)), 0.2, 5)
    mean = b.observed(b.emit(Mean((2, 3)), y), 0.08, -128)
    return b.graph(features, mean)


@pytest.mark.parametrize(("channels", "first"), [(3, "permute"), (1, "reshape")])
def test_quantized_network(channels: int, first: str, golden: Golden) -> None:
    before = quantized_network(channels)
    after, notes = passes.run(before)
    golden(before_and_after(before, after), f"quantized_{first}.txt")
    assert notes == ()
    expected = [first, "conv2d", "max_pool2d", "conv2d", "add", "reshape", "linear", "mean"]
    assert ops_of(after) == expected
    assert all(t.dtype is DType.INT8 for n in after.nodes for t in n.outputs)
    assert [t.dtype for t in after.inputs] == [DType.INT8]
    assert [key.rstrip("0123456789") for key in origins_of(after, "conv2d")[0]] == ["conv2d", "clamp"]
    x = random_inputs(before)[0]
    integer: Array = np.round(x.astype(np.float32) / (4 / 127)).clip(-128, 127).astype(np.int8)
    for want, got, out in zip(
        run_graph(before, [x]), run_graph(after, [integer]), after.outputs, strict=True
    ):
        assert out.type.quant is not None
        # Roundings of several layers: a few steps of the output's scale.
        assert np.abs(dequantize(got, out.type.quant) - want.astype(np.float32)).max() <= 3 * out.type.scale


def test_float_input_and_output() -> None:
    before = quantized_network(3)
    after, _ = passes.run(before, float_io=True)
    assert [t.type for t in after.inputs] == [t.type for t in before.inputs]
    assert [t.type for t in after.outputs] == [t.type for t in before.outputs]
    assert ops_of(after)[:3] == ["quantize", "permute", "conv2d"]
    assert ops_of(after).count("dequantize") == 2


def test_float_network(golden: Golden) -> None:
    b = Builder()
    x = b.emit(Pad(((0, 0), (0, 0), (1, 1), (1, 1))), b.input(1, 3, 6, 5))
    y = b.torch_conv(x, 4, 3)
    y = b.emit(RELU, b.emit(BatchNorm(1), y, b.random(4), b.random(4)))
    y = b.emit(MaxPool2d(2, 2, kernel_h=2, kernel_w=2), b.permute(y, 0, 2, 3, 1))
    flat = b.reshape(b.permute(y, 0, 3, 1, 2), 1, 24)
    before = b.graph(b.emit(Clamp(-100.0, 100.0), b.linear(flat, 3)))
    after, _ = passes.run(before)
    assert_same(before, after)
    golden(before_and_after(before, after), "float.txt")
    assert ops_of(after) == ["permute", "conv2d", "max_pool2d", "reshape", "linear"]


def test_dumps_are_numbered_and_parse_as_what_they_are() -> None:
    before = quantized_network(3)
    dumps: dict[str, str] = {}
    after, _ = passes.run(before, dump=dumps.__setitem__)
    assert list(dumps) == sorted(dumps)
    left_out = {"carry_states"}  # without stateful=
    assert {name[3:] for name in dumps} == {"import", *(name for name, _ in passes.PIPELINE)} - left_out
    assert len(dumps) == len(passes.PIPELINE) + 1 - len(left_out)
    assert dumps["00_import"] == to_text(before)
    assert list(dumps.values())[-1] == to_text(after)


def test_the_same_graph_gives_the_same_text() -> None:
    texts = {to_text(passes.run(quantized_network(3))[0]) for _ in range(3)}
    assert len(texts) == 1


@pytest.mark.parametrize("part", ["nodes", "outputs", "inputs"])
def test_a_pass_that_breaks_the_graph_is_named(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind one that leaves it as it was."""

    def broken(graph: Graph) -> Graph:
        unknown = Tensor("unknown", TensorType((1,), DType.FLOAT32))
        return {
            "nodes": graph.replace(nodes=graph.nodes[1:]),
            "outputs": graph.replace(outputs=(*graph.outputs, unknown)),
            "inputs": graph.replace(inputs=()),
        }[part]

    monkeypatch.setattr(passes, "PIPELINE", (("idle", lambda graph: graph), ("broken_pass", broken)))
    with pytest.raises(InternalError, match="invalid graph after broken_pass"):
        passes.run(quantized_network(3))


def test_the_whole_rule_holds_after_lowering(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for there, also where that step changes nothing."""

    def idle(graph: Graph) -> Graph:
        return graph

    monkeypatch.setattr(fold_constants, "after_lowering", idle)
    monkeypatch.setattr(passes, "PIPELINE", (("early", idle),))
    constant = Tensor("one", TensorType((1,), DType.FLOAT32), np.ones(1, np.float32))
    graph = quantized_network(3)
    with pytest.raises(InternalError, match="invalid graph after early"):
        passes.run(graph.replace(outputs=(*graph.outputs, constant)))


def test_names_of_passes_are_distinct() -> None:
    names = [name for name, _ in passes.PIPELINE]
    assert len(set(names)) == len(names)


def test_a_deep_network_is_lowered_in_seconds() -> None:
    b = Builder()
    y = b.torch_conv(b.input(1, 3, 8, 8), 4)
    for _ in range(60):
        y = b.emit(Add(), y, b.emit(RELU, b.torch_conv(b.emit(RELU, b.torch_conv(y, 4)), 4)))
    after, _ = passes.run(b.graph(y))
    assert [n.op for n in after.nodes if isinstance(n.attrs, Permute)] == ["permute", "permute"]
    assert ops_of(after).count("clamp") == 0
