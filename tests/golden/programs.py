# SPDX-License-Identifier: Apache-2.0
"""Four tiny programs built by hand from the IR: no torch, the same numbers on every machine and for ever.

They are small enough to read what is generated from them, and together they hold what generated code can
hold: weights, packed and plain; parameter structs in int8 and float32; scratch; views and windows; functions
made for one layer and for several; several outputs; names that C does not take as they are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyet import ops
from tinyet.ir import (
    Array,
    Attrs,
    DType,
    Graph,
    Node,
    Origin,
    QuantParams,
    Shape,
    Tensor,
    TensorType,
    constant,
)
from tinyet.numerics import Int64
from tinyet.ops.add import Add
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.concat import Concat
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.linear import Linear
from tinyet.ops.quantize import Quantize
from tinyet.ops.reshape import Reshape
from tinyet.ops.slice import Slice
from tinyet.ops.softmax import OUT_SCALE, OUT_ZERO_POINT, Softmax
from tinyet.program import Program

RELU = (0.0, float("inf"))


def ramp(count: int, step: int, low: int = -127, high: int = 127) -> Int64:
    """`count` integers that walk through low … high in strides. (A random stream may change with numpy.)"""
    return np.asarray((np.arange(count, dtype=np.int64) * step) % (high - low + 1) + low, np.int64)


def weights_s8(name: str, shape: Shape, step: int) -> Tensor:
    """int8 weights with a scale for each output channel (axis 0)."""
    scales = tuple(0.004 + 0.0005 * i for i in range(shape[0]))
    data = ramp(int(np.prod(shape)), step).astype(np.int8).reshape(shape)
    return constant(name, data, QuantParams(scales, (0,) * shape[0], 0))


def bias_s32(name: str, count: int, step: int) -> Tensor:
    return constant(name, ramp(count, step, -900, 900).astype(np.int32))


def weights_f32(name: str, shape: Shape, step: int) -> Tensor:
    return constant(name, (ramp(int(np.prod(shape)), step) / 256).astype(np.float32).reshape(shape))


class Builder:
    """Appends one node after the other; each stands on a line of an imagined model.py."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[Node] = []

    def add(
        self,
        attrs: Attrs,
        *inputs: Tensor,
        out: str,
        source: str,
        quant: tuple[float, int] | None = None,
        module: str = "",
    ) -> Tensor:
        """The output of a node, in its shape by the operator's own rule; int8 where `quant` is given."""
        blank = Tensor(out, TensorType((), DType.FLOAT32))
        (shape,) = ops.infer(Node(attrs, inputs, (blank,)))
        params = None if quant is None else QuantParams.per_tensor(*quant)
        dtype = DType.FLOAT32 if quant is None else DType.INT8
        tensor = Tensor(out, TensorType(shape, dtype, params))
        line = 10 + len(self.nodes)
        origin = Origin(f"aten.{attrs.name}.default", module, "model.py", line, source, out)
        self.nodes.append(Node(attrs, inputs, (tensor,), (origin,)))
        return tensor

    def finish(self, inputs: tuple[Tensor, ...], *outputs: Tensor, labels: tuple[str, ...] = ()) -> Program:
        graph = Graph(self.name, inputs, outputs, tuple(self.nodes))
        for node in graph.nodes:
            complaint = ops.op_of(node).check(node)
            assert complaint is None, f"{node.op}: {complaint}"
        return Program(self.name, ops.check(graph, "building it by hand"), labels=labels)


def input_s8(name: str, shape: Shape, scale: float, zero_point: int) -> Tensor:
    return Tensor(name, TensorType(shape, DType.INT8, QuantParams.per_tensor(scale, zero_point)))


def separable() -> Program:
    """All int8: a strided convolution with padding, a depthwise one, a linear layer over the pixels."""
    b = Builder("separable")
    x = input_s8("x", (1, 8, 6, 3), 0.05, -7)
    y = b.add(
        Conv2d(stride_h=2, stride_w=2, pad_top=1, pad_left=1, pad_right=1, pad_bottom=1, clamp=RELU),
        x, weights_s8("conv_w", (4, 3, 3, 3), 37), bias_s32("conv_b", 4, 411),
        out="relu", source="x = F.relu(self.conv(x))", quant=(0.031, -128),
    )  # fmt: skip
    y = b.add(
        Conv2d(pad_top=1, pad_bottom=1, pad_left=1, pad_right=1, groups=4),
        y, weights_s8("depthwise_w", (4, 3, 3, 1), 53), bias_s32("depthwise_b", 4, 173),
        out="depthwise", source="x = self.depthwise(x)", quant=(0.041, 9),
    )  # fmt: skip
    y = b.add(Reshape((1, 48)), y, out="flat", source="x = x.flatten(1)", quant=(0.041, 9))
    y = b.add(
        Linear(), y, weights_s8("linear_w", (5, 48), 29), bias_s32("linear_b", 5, 97),
        out="logits", source="return self.linear(x)", quant=(0.09, 3),
    )  # fmt: skip
    return b.finish((x,), y)


def mixed() -> Program:
    """float32 around an int8 layer: convolution in float, linear + relu in int8, softmax in float."""
    b = Builder("mixed")
    x = Tensor("image", TensorType((1, 5, 5, 2), DType.FLOAT32))
    bias = constant("conv_b", np.array([0.5, -0.25, 0.125], np.float32))
    y = b.add(
        Conv2d(stride_h=2, stride_w=2), x, weights_f32("conv_w", (3, 2, 2, 2), 41), bias,
        out="conv", source="x = self.conv(x)",
    )  # fmt: skip
    y = b.add(Reshape((1, 12)), y, out="flat", source="x = x.flatten(1)")
    y = b.add(Quantize(), y, out="flat_s8", source="x = F.relu(self.head(x))", quant=(0.02, 5))
    y = b.add(
        Linear(clamp=RELU), y, weights_s8("head_w", (4, 12), 31), bias_s32("head_b", 4, 211),
        out="head", source="x = F.relu(self.head(x))", quant=(0.015, -128),
    )  # fmt: skip
    y = b.add(Dequantize(), y, out="head_f32", source="x = F.relu(self.head(x))")
    y = b.add(Softmax(1), y, out="probabilities", source="return F.softmax(x, -1)")
    return b.finish((x,), y)


def branches() -> Program:
    """Two halves of the input, one of them through a linear layer, put together again; two outputs."""
    b = Builder("branches")
    quant = (0.06, 4)
    x = input_s8("x", (1, 12), *quant)
    left = b.add(Slice(1, 0, 8), x, out="left", source="a, b = x[:, :8], x[:, 8:]", quant=quant)
    right = b.add(Slice(1, 8, 12), x, out="right", source="a, b = x[:, :8], x[:, 8:]", quant=quant)
    mapped = b.add(
        Linear(), left, weights_s8("linear_w", (6, 8), 43), bias_s32("linear_b", 6, 127),
        out="mapped", source="a = self.linear(a)", quant=quant,
    )  # fmt: skip
    joined = b.add(Concat(1), mapped, right, out="joined", source="y = torch.cat([a, b], 1)", quant=quant)
    result = b.add(
        Softmax(1), joined, out="probabilities", source="return y, F.softmax(y, -1)",
        quant=(OUT_SCALE, OUT_ZERO_POINT),
    )  # fmt: skip
    return b.finish((x,), joined, result)


def nested() -> Program:
    """Modules in modules, one of them called twice, and names that belong to C, to its library, to macros, or that the
    generated code would give to something else."""
    b = Builder("nested")
    same = (0.05, -3)
    x = input_s8("input", (1, 6, 6, 4), 0.05, -7)
    y = b.add(
        Conv2d(pad_top=1, pad_left=1, pad_right=1, pad_bottom=1, clamp=RELU),
        x, weights_s8("stem_w", (4, 3, 3, 4), 37), bias_s32("stem_b", 4, 411),
        out="default", source="x = F.relu(self.stem.conv(x))", quant=same, module="stem.conv",
    )  # fmt: skip
    body, bias = weights_s8("body_w", (4, 1, 1, 4), 53), bias_s32("body_b", 4, 173)
    for out in ("exp", "unix"):
        y = b.add(
            Conv2d(), y, body, bias,
            out=out, source="y = self.body(self.body(x))", quant=same, module="blocks.0.body",
        )  # fmt: skip
    for block, out in enumerate(("stem_conv_weights", "X")):
        y = b.add(
            Add(), y, y,
            out=out, source="return y + y", quant=same, module=f"blocks.{block}",
        )  # fmt: skip
    y = b.add(
        Conv2d(), y, weights_s8("narrow_w", (5, 1, 1, 4), 91), bias_s32("narrow_b", 5, 73),
        out="arena", source="x = self.blocks[1].body(x)", quant=same, module="blocks.1.body",
    )  # fmt: skip
    y = b.add(
        AvgPool2d(kernel_h=6, kernel_w=6, stride_h=6, stride_w=6),
        y, out="nested_run", source="x = F.adaptive_avg_pool2d(x, 1)", quant=same,
    )  # fmt: skip
    y = b.add(Reshape((1, 5)), y, out="5", source="x = x.flatten(1)", quant=same)
    y = b.add(
        Linear(), y, weights_s8("head_w", (4, 5), 29), bias_s32("head_b", 4, 97),
        out="tinyet_linear_s8", source="return self.heads['int'](x)", quant=(0.02, 3), module="2.int",
    )  # fmt: skip
    return b.finish((x,), y, labels=("yes", "no", 'the "what??/"', "größer"))


PROGRAMS: dict[str, Callable[[], Program]] = {
    "separable": separable,
    "mixed": mixed,
    "branches": branches,
    "nested": nested,
}


def scramble(index: Int64) -> Int64:
    """Index → -128 … 127 as if by chance: an integer hash (multiply, shift, xor), the same everywhere."""
    mixed = index.astype(np.uint32) * np.uint32(2654435769)
    mixed = (mixed ^ (mixed >> np.uint32(15))) * np.uint32(2246822519)
    return np.asarray((mixed >> np.uint32(24)).astype(np.int64) - 128, np.int64)


def samples(program: Program, count: int) -> list[Array]:
    """For each input `count` different samples that visit its whole range, in the program's own dtype."""
    arrays: list[Array] = []
    for tensor in program.inputs:
        values = scramble(np.arange(count * tensor.type.count, dtype=np.int64)).reshape(count, *tensor.shape)
        if tensor.dtype is DType.FLOAT32:
            arrays.append((values / 64).astype(np.float32))
        else:
            arrays.append(values.astype(tensor.dtype.numpy))
    return arrays
