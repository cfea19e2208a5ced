# SPDX-License-Identifier: Apache-2.0
"""Random graphs full of zeros compute the same, bit for bit, after pruning."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.passes.build import Builder, per_tensor
from tinyet import ops
from tinyet.ir import Array, DType, Graph, QuantParams, Tensor
from tinyet.numerics import bias_type
from tinyet.ops.add import Add
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.batch_norm import BatchNorm
from tinyet.ops.clamp import Clamp
from tinyet.ops.concat import Concat
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.linear import Linear
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.mean import Mean
from tinyet.ops.mul import Mul
from tinyet.ops.pad import Pad
from tinyet.ops.prelu import PRelu
from tinyet.ops.slice import Slice
from tinyet.ops.sub import Sub
from tinyet.ops.unary import Unary
from tinyet.passes.prune_channels import prune_channels
from tinyet.reference import run_graph

CLAMPS = ((-math.inf, math.inf), (0.0, math.inf), (0.0, 6.0), (-1.0, 1.0))


class Random(Builder):
    """Every decision comes from the seeded generator; hypothesis draws the seed, the length and the type."""

    def __init__(self, seed: int, integer: bool) -> None:
        super().__init__(seed)
        self.integer = integer
        shape = (1, 5, 4, int(self.rng.integers(1, 5)))
        self.images = [self.input(*shape, quant=self.quant())]

    def pick(self, *options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def quant(self) -> QuantParams | None:
        if not self.integer:
            return None
        return per_tensor(float(self.rng.uniform(0.03, 0.3)), int(self.pick(-128, -5, 0, 3, 127)))

    def image(self) -> Tensor:
        return self.images[int(self.rng.integers(len(self.images)))]

    def clamp(self) -> tuple[float, float]:
        return CLAMPS[int(self.rng.integers(len(CLAMPS)))]

    def zeros(self, data: Array) -> Array:
        """Some filters and some inputs become 0, here and there all of them but one weight."""
        data[self.rng.random(len(data)) < 0.4] = 0
        data[..., self.rng.random(data.shape[-1]) < 0.25] = 0
        return data

    def weighted(self, x: Tensor, *shape: int) -> tuple[Tensor, Tensor | None]:
        biases = self.rng.integers(-60, 60, shape[0]) * (self.rng.random(shape[0]) < 0.6)
        if not self.integer:
            weights = self.const(self.zeros(self.rng.normal(0, 1, shape).astype(np.float32)))
            return weights, self.pick(None, self.const(biases))
        scales = QuantParams(tuple(self.rng.uniform(0.005, 0.05, shape[0])), (0,) * shape[0], 0)
        weights = self.const(self.zeros(self.rng.integers(-127, 128, shape)), scales)
        self._count += 1
        kind = bias_type(shape[0], x.type, scales)
        bias = Tensor(f"c{self._count}", kind, biases.astype(np.int32))
        return weights, self.pick(None, bias)

    def conv(self, x: Tensor, *_: Any, **__: Any) -> Tensor:
        kernel, pads = int(self.rng.integers(1, 4)), self.rng.integers(0, 2, 4).tolist()
        channels = x.shape[3]
        groups = int(self.pick(1, 1, channels, *(g for g in (2, 3) if channels % g == 0)))
        out = groups * int(self.rng.integers(1, 3)) if groups > 1 else int(self.rng.integers(1, 6))
        places = dict(zip(("pad_top", "pad_bottom", "pad_left", "pad_right"), pads, strict=True))
        if min(x.shape[1] + pads[0] + pads[1], x.shape[2] + pads[2] + pads[3]) < kernel:
            kernel = 1
        kind: Any = self.pick(Conv2d, Conv2d, Conv2d, ConvTranspose2d)
        if kind is ConvTranspose2d and min(x.shape[1:3]) < 3:
            kind = Conv2d
        stride = int(self.rng.integers(1, 3))
        attrs = kind(stride, stride, groups=groups, clamp=self.clamp(), **places)
        weights, bias = self.weighted(x, out, kernel, kernel, channels // groups)
        return self.emit(attrs, x, weights, bias, quant=self.quant())

    def binary(self) -> Tensor:
        """Two images of one shape, an image with its own means as a gate, or with a constant."""
        x = self.image()
        attrs = self.pick(Add, Sub, Mul)(clamp=self.clamp())
        alike = [t for t in self.images if t.shape == x.shape]
        other = self.pick(
            alike[int(self.rng.integers(len(alike)))],
            self.emit(Mean((1, 2), True), x, quant=self.quant()),
            self.const(
                self.rng.integers(-2, 3, self.pick((), (x.shape[3],), (1, 1, x.shape[2], 1))),
                per_tensor(0.2, int(self.rng.integers(-1, 2))) if self.integer else None,
            ),
        )
        pair = self.pick((x, other), (other, x))
        shapes = {pair[0].shape, pair[1].shape}
        if self.integer and len(shapes) == 1 and self.rng.random() < 0.2:
            return self.emit(PRelu(), *pair, quant=self.quant())
        return self.emit(attrs, *pair, quant=self.quant())

    def along(self) -> Tensor:
        """Concatenation, slices and pads on channels and beside them."""
        x = self.image()
        choice = self.rng.random()
        if choice < 0.5:
            fits = [t for t in self.images if t.shape[:3] == x.shape[:3] and t.type.quant == x.type.quant]
            axis = self.pick(3, 3, 1)
            fits = [t for t in fits if axis == 3 or t.shape == x.shape]
            return self.emit(Concat(axis), x, *self.pick(fits, fits[:1], [x]))
        if choice < 0.75:
            axis = self.pick(3, 3, 1)
            stop = int(self.rng.integers(1, x.shape[axis] + 1))
            return self.emit(Slice(axis, int(self.rng.integers(0, stop)), stop), x)
        pads = tuple((int(a), int(b)) for a, b in self.rng.integers(0, 2, (4, 2)) * [[0], [1], [1], [1]])
        return self.emit(Pad(pads, value=float(self.pick(0.0, 0.0, 0.5))), x)

    def alone(self) -> Tensor:
        x = self.image()
        channels = x.shape[3]
        step: Callable[[], Tensor] = self.pick(
            lambda: self.emit(Clamp(0.0, 6.0), x, quant=self.quant()),
            lambda: self.emit(Unary(self.pick("abs", "sigmoid", "exp")), x, quant=self.quant()),
            lambda: self.emit(MaxPool2d(1, 1, kernel_h=min(2, x.shape[1]), kernel_w=1), x),
            lambda: self.emit(AvgPool2d(1, 1, pad_left=1, kernel_h=1, kernel_w=2), x),
            lambda: self.emit(
                BatchNorm(3, self.clamp()),
                x,
                Builder.const(self, self.zeros(self.rng.normal(0, 1, (channels, 1)))[:, 0]),
                Builder.const(self, self.rng.normal(0, 1, channels)),
                quant=self.quant(),
            ),
        )
        return step()

    def finished(self) -> Graph:
        """Features of the last value, and of another by way of a reshape."""
        last, other = self.images[-1], self.image()
        means = self.emit(Mean((1, 2)), last, quant=self.quant())
        flat = self.reshape(other, 1, math.prod(other.shape))
        outputs = []
        for x in (means, flat):
            weights, bias = self.weighted(x, int(self.rng.integers(1, 4)), x.shape[-1])
            outputs.append(self.emit(Linear(), x, weights, bias, quant=self.quant()))
        return self.graph(*outputs)


def random_graph(seed: int, steps: int, integer: bool) -> Graph:
    b = Random(seed, integer)
    while len(b.images) <= steps:
        made = (lambda: b.conv(b.image()), lambda: b.conv(b.images[-1]), b.binary, b.along, b.alone)[
            int(b.rng.integers(5))
        ]()
        b.images.append(made)
    return b.finished()


def test_the_random_graphs_are_pruned() -> None:
    """Else the tests below would say nothing."""
    changed = [prune_channels(g)[0] is not g for g in (random_graph(seed, 8, True) for seed in range(20))]
    assert sum(changed) >= 15


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.booleans())
def test_bit_for_bit(seed: int, steps: int, integer: bool) -> None:
    before = random_graph(seed, steps, integer)
    after, _ = prune_channels(before)
    ops.check(after, "pruning")
    for node in after.nodes:
        assert ops.op_of(node).check(node) is None
    rng = np.random.default_rng(seed)
    for _ in range(2):
        if integer:
            x: Array = rng.integers(-128, 128, before.inputs[0].shape).astype(np.int8)
        else:
            x = rng.normal(0, 3, before.inputs[0].shape).astype(np.float32)
        for tensor, want, got in zip(
            before.outputs, run_graph(before, [x]), run_graph(after, [x]), strict=True
        ):
            # Of models that overflow float32, nothing is said.
            assume(tensor.dtype is not DType.FLOAT32 or bool(np.isfinite(want).all()))
            # Bytes, so that zeros of either sign count.
            assert want.tobytes() == got.tobytes()
