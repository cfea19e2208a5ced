# SPDX-License-Identifier: Apache-2.0
"""Networks over a window of time, drawn and made by hand; each can be made for a longer window, with its weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.streamed import Net
from tinyet.ir import Array, DType, Graph, QuantParams, Tensor
from tinyet.ops.add import Add
from tinyet.ops.amax import Amax
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.concat import Concat
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.linear import Linear
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.mean import Mean
from tinyet.ops.pad import Pad
from tinyet.ops.permute import Permute
from tinyet.ops.reshape import Reshape
from tinyet.ops.slice import Slice
from tinyet.ops.unary import Unary
from tinyet.ops.unfold import Unfold


@dataclass(frozen=True)
class Layer:
    """kind: conv, max, avg, residual, both (concatenated with its input), unary, or unfold. before, after: padding in
    time."""

    kind: str
    kernel: int = 1
    stride: int = 1
    dilation: int = 1
    before: int = 0
    after: int = 0
    padded_by: str = "conv"

    @property
    def reach(self) -> int:
        return self.dilation * (self.kernel - 1)


@dataclass(frozen=True)
class Drawn:
    """form: how the input lies: "line" (1, channels, time); "rows" or "columns": an image whose height or width is
    time."""

    form: str
    dtype: DType
    layers: tuple[Layer, ...]
    head: str

    @property
    def axis(self) -> int:
        return {"line": 2, "rows": 1, "columns": 2}[self.form]

    def shape(self, frames: int) -> tuple[int, ...]:
        return {"line": (1, 3, frames), "rows": (1, frames, 4, 2), "columns": (1, 4, frames, 2)}[self.form]

    def graph(self, frames: int) -> Graph:
        """Raises UnsupportedShape for a window that is too short."""
        net = TimeNet(self.dtype, self.shape(frames))
        return net.build(self)

    def unpadded(self) -> Drawn:
        return replace(self, layers=tuple(replace(layer, before=0, after=0) for layer in self.layers))

    def data(self, frames: int, seed: int) -> Array:
        rng = np.random.default_rng(seed)
        if self.dtype is DType.INT8:
            return rng.integers(-128, 128, self.shape(frames)).astype(np.int8)
        return rng.standard_normal(self.shape(frames)).astype(np.float32)


class TimeNet(Net):
    """Its weights do not depend on how long the window is."""

    def build(self, drawn: Drawn) -> Graph:
        self.axis = drawn.axis
        x = self.x
        if drawn.form == "line":
            x = self.add(Reshape((1, 3, 1, x.shape[2])), x, like=x)
            x = self.add(Permute((0, 2, 3, 1)), x, like=x)
        for layer in drawn.layers:
            x = self.layer(layer, x)
        return self.finish(self.head(drawn.head, x)).graph

    def sides(self, time: Any, other: Any) -> tuple[Any, Any]:
        """Of height and width."""
        return (time, other) if self.axis == 1 else (other, time)

    def window(self, kind: Callable[..., Any], layer: Layer, **more: Any) -> Any:
        """Attributes of an operator with a window."""
        folded = layer.padded_by != "pad"
        (top, bottom), (left, right) = self.sides((layer.before, layer.after) if folded else (0, 0), (0, 0))
        stride_h, stride_w = self.sides(layer.stride, 1)
        dilation_h, dilation_w = self.sides(layer.dilation, 1)
        return kind(
            stride_h=stride_h, stride_w=stride_w, dilation_h=dilation_h, dilation_w=dilation_w,
            pad_top=top, pad_bottom=bottom, pad_left=left, pad_right=right, **more,
        )  # fmt: skip

    def time_conv(self, layer: Layer, x: Tensor, channels: int) -> Tensor:
        return self.layer_of(self.window(Conv2d, layer), x, channels, self.sides(layer.kernel, 1))

    def layer_of(self, attrs: Conv2d, x: Tensor, channels: int, kernel: tuple[int, int]) -> Tensor:
        shape = (channels, *kernel, x.shape[3])
        if self.dtype is DType.FLOAT32:
            weights = self.constant((self.rng.standard_normal(shape) / 4).astype(np.float32))
            return self.add(attrs, x, weights, self.constant(np.linspace(-1, 1, channels).astype(np.float32)))
        scales = QuantParams(tuple(0.004 + 0.0007 * i for i in range(channels)), (0,) * channels, 0)
        weights = self.constant(self.rng.integers(-127, 128, shape).astype(np.int8), scales)
        bias = self.constant(self.rng.integers(-900, 900, channels).astype(np.int32))
        return self.add(attrs, x, weights, bias)

    def layer(self, layer: Layer, x: Tensor) -> Tensor:
        if layer.padded_by == "pad" and (layer.before or layer.after):
            pads = [(0, 0)] * 4
            pads[self.axis] = (layer.before, layer.after)
            padded = self.add(Pad(tuple(pads)), x, like=x)
        else:
            padded = x
        kernel_h, kernel_w = self.sides(layer.kernel, 1)
        match layer.kind:
            case "conv":
                return self.time_conv(layer, padded, 4)
            case "max":
                return self.add(
                    self.window(MaxPool2d, layer, kernel_h=kernel_h, kernel_w=kernel_w), padded, like=x
                )
            case "avg":
                return self.add(
                    self.window(AvgPool2d, layer, kernel_h=kernel_h, kernel_w=kernel_w), padded, like=x
                )
            case "unary":
                return self.add(Unary("sigmoid"), x)
            case "unfold":  # each window's largest value
                windows = self.add(
                    Unfold(self.axis, layer.kernel, layer.stride, layer.dilation), padded, like=x
                )
                return self.add(Amax((4,)), windows, like=x)
        y = self.time_conv(layer, padded, x.shape[3])
        # The shortcut without what the convolution has no steps for.
        steps = y.shape[self.axis]
        start = layer.reach - layer.before
        cut = (
            x if steps == x.shape[self.axis] else self.add(Slice(self.axis, start, start + steps), x, like=x)
        )
        if layer.kind == "residual":
            return self.add(Add(), y, cut)
        same = self.add(Unary("tanh"), cut), self.add(Unary("tanh"), y)
        return self.add(Concat(3), *same)

    def head(self, head: str, x: Tensor) -> Tensor:
        steps = x.shape[self.axis]
        match head:
            case "sequence":
                return x
            case "last":
                x = self.add(Slice(self.axis, steps - 1, steps), x, like=x)
            case "mean":
                x = self.add(Mean((1, 2)), x)
            case "max":
                x = self.add(Amax((self.axis,)), x, like=x)
        flat = self.add(Reshape((1, x.type.count)), x, like=x)
        shape = 3, flat.shape[1]
        if self.dtype is DType.FLOAT32:
            return self.add(Linear(), flat, self.constant(self.rng.standard_normal(shape).astype(np.float32)))
        weights = self.rng.integers(-127, 128, shape).astype(np.int8)
        return self.add(Linear(), flat, self.constant(weights, QuantParams((0.01,) * 3, (0,) * 3, 0)))


@st.composite
def layers(draw: st.DrawFn, pads: Sequence[str]) -> Layer:
    """pads: of what kinds the padding may be: none, causal, late (one step more than causal), or same."""
    kind = draw(st.sampled_from(["conv", "conv", "max", "avg", "residual", "both", "unary", "unfold"]))
    if kind == "unary":
        return Layer(kind)
    stride = draw(st.sampled_from([1, 1, 2, 3])) if kind in ("conv", "max", "avg", "unfold") else 1
    layer = Layer(kind, draw(st.integers(1, 3)), stride, draw(st.integers(1, 3)))
    pad = draw(st.sampled_from(pads))
    by = "pad" if kind == "unfold" else draw(st.sampled_from(["conv", "pad"]))
    if pad == "none" or layer.reach == 0:
        return layer
    if pad == "causal":
        return replace(layer, before=layer.reach, padded_by=by)
    # Half of it on each side, which an average pool counts, and a shortcut needs no crop for.
    return replace(layer, before=layer.reach // 2, after=layer.reach - layer.reach // 2, padded_by=by)


@st.composite
def nets(draw: st.DrawFn, pads: Sequence[str], heads: Sequence[str]) -> Drawn:
    return Drawn(
        draw(st.sampled_from(["line", "rows", "columns"])),
        draw(st.sampled_from([DType.INT8, DType.FLOAT32])),
        tuple(draw(st.lists(layers(pads), min_size=1, max_size=4))),
        draw(st.sampled_from(heads)),
    )
