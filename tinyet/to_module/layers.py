# SPDX-License-Identifier: Apache-2.0
"""Layers with weights: torch's own, whose parameters can be trained."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch import nn

from tinyet.errors import RefusedError
from tinyet.fx.tree_ops import TREE_ENSEMBLE
from tinyet.ir import Array
from tinyet.ops.batch_norm import BatchNorm
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.layer_norm import LayerNorm
from tinyet.ops.linear import Linear
from tinyet.ops.matmul import MatMul
from tinyet.ops.prelu import PRelu
from tinyet.to_module.build import NO_CLAMP, Build, Value, constant
from tinyet.to_module.form import IMAGE, Form, plain
from tinyet.to_module.network import parameter
from tinyet.to_module.shapes import padded

_META = torch.device("meta")
"""Where layers are made whose numbers are set right behind."""


def _with_bias(weight: Array, bias: Array | None) -> dict[str, nn.Parameter]:
    return {"weight": parameter(weight)} | ({} if bias is None else {"bias": parameter(bias)})


def conv2d(b: Build) -> None:
    """Zeros around the image are the layer's own where they are as many on both sides, else a step in front of it."""
    attrs = b.attrs(Conv2d)
    weight, bias = b.array(1, "weights").transpose(0, 3, 1, 2), b.optional_array(2, "bias")
    out_c, group_c, *kernel = weight.shape
    x = b.take(0, IMAGE)
    around = (attrs.pad_top, attrs.pad_bottom), (attrs.pad_left, attrs.pad_right)
    pads = attrs.pad_top, attrs.pad_left
    if any(before != after for before, after in around):
        pads = 0, 0
        x = padded(b, x, ((0, 0), *around, (0, 0)))
    layer = nn.Conv2d(
        group_c * attrs.groups,
        out_c,
        (kernel[0], kernel[1]),
        (attrs.stride_h, attrs.stride_w),
        pads,
        (attrs.dilation_h, attrs.dilation_w),
        attrs.groups,
        bias is not None,
        device=_META,
    )
    (made,) = b.step(b.layer(layer, _with_bias(weight, bias)), [x])
    b.give(made, IMAGE, clamp=attrs.clamp)


def conv_transpose2d(b: Build) -> None:
    """torch cuts off as much on both sides; what is cut off more behind, is so by a step of its own."""
    attrs = b.attrs(ConvTranspose2d)
    given, bias = b.array(1, "weights"), b.optional_array(2, "bias")
    out_c, kernel_h, kernel_w, group_c = given.shape
    # (out, h, w, in / groups) → (in, out / groups, h, w)
    split = given.reshape(attrs.groups, out_c // attrs.groups, kernel_h, kernel_w, group_c)
    weight = split.transpose(0, 4, 1, 2, 3).reshape(-1, out_c // attrs.groups, kernel_h, kernel_w)
    more, cut = [], []
    for before, behind, step in (
        (attrs.pad_top, attrs.pad_bottom - attrs.out_pad_h, max(attrs.stride_h, attrs.dilation_h)),
        (attrs.pad_left, attrs.pad_right - attrs.out_pad_w, max(attrs.stride_w, attrs.dilation_w)),
    ):
        more.append(max(before - behind, 0))
        cut.append(max(behind - before, 0))
        if more[-1] >= step:
            raise RefusedError(f"adds {more[-1]} rows or columns behind its image, with a stride of {step}")
    layer = nn.ConvTranspose2d(
        group_c * attrs.groups,
        out_c,
        (kernel_h, kernel_w),
        (attrs.stride_h, attrs.stride_w),
        (attrs.pad_top, attrs.pad_left),
        (more[0], more[1]),
        attrs.groups,
        bias is not None,
        (attrs.dilation_h, attrs.dilation_w),
        device=_META,
    )
    (made,) = b.step(b.layer(layer, _with_bias(weight, bias)), [b.take(0, IMAGE)])
    batch, height, width, _ = b.node.output.shape
    whole = Value(made, (batch, height + cut[0], width + cut[1], out_c), IMAGE)
    if attrs.clamp != NO_CLAMP:
        whole = Value(b.clamped(whole, attrs.clamp), whole.shape, IMAGE)
    if any(cut):
        whole = padded(b, whole, ((0, 0), (0, -cut[0]), (0, -cut[1]), (0, 0)), role="crop")
    b.give(whole.slot, IMAGE)


def _fully_connected(b: Build, weight: Array, bias: Array | None, clamp: tuple[float, float]) -> None:
    """On the last dimension; in which order the others stand does not matter."""
    x = b.value(0)
    last = x.form.dims[-1]
    form = x.form if last == x.form.rank - 1 else plain(len(x.shape))
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias is not None, device=_META)
    x = b.computed(b.in_form(x, form))
    (made,) = b.step(b.layer(layer, _with_bias(weight, bias)), [x])
    b.give(made, form, clamp=clamp)


def linear(b: Build) -> None:
    clamp = b.attrs(Linear).clamp
    _fully_connected(b, b.array(1, "weights"), b.optional_array(2, "bias"), clamp)


def matmul(b: Build) -> None:
    """By a constant matrix it is a fully connected layer."""
    attrs, right = b.attrs(MatMul), b.value(1)
    if right.data is not None and len(right.shape) == 2 and len(b.value(0).shape) >= 2:
        _fully_connected(b, right.data.T, None, attrs.clamp)
        return
    rank = len(b.node.output.shape)
    operands = [b.in_form(b.value(i), plain(len(b.value(i).shape))) for i in (0, 1)]
    b.give(b.call(torch.matmul, operands), plain(rank), clamp=attrs.clamp)


def batch_norm(b: Build) -> None:
    """Of mean 0 and variance 1: the factors are its weight and bias."""
    attrs, x = b.attrs(BatchNorm), b.value(0)
    factor, offset = b.array(1, "factors"), b.array(2, "offsets")
    rank = len(x.shape)
    if not 2 <= rank <= 4 or attrs.axis == 0:
        across = [1] * rank
        across[attrs.axis] = -1
        form = plain(rank)
        held = [constant(data.reshape(across)) for data in (factor, offset)]
        made = b.call(_scaled, [b.in_form(x, form), *held])
        b.give(made, form, clamp=attrs.clamp)
        return
    kind = nn.BatchNorm2d if rank == 4 else nn.BatchNorm1d
    layer = kind(len(factor), eps=0.0, device=_META)
    found = {
        **_with_bias(factor, offset),
        "running_mean": torch.zeros(len(factor)),
        "running_var": torch.ones(len(factor)),
        "num_batches_tracked": torch.tensor(0),
    }
    # The channels are torch's second dimension.
    form = x.form
    if form.rank != rank or form.dims[attrs.axis] != 1:
        rest = [axis for axis in range(rank) if axis != attrs.axis]
        order = [rest[0], attrs.axis, *rest[1:]]
        form = Form(rank, tuple(order.index(axis) for axis in range(rank)))
    (made,) = b.step(b.layer(layer, found), [b.computed(b.in_form(x, form))])
    b.give(made, form, clamp=attrs.clamp)


def _scaled(x: torch.Tensor, factor: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
    return x * factor + offset


def layer_norm(b: Build) -> None:
    attrs, x = b.attrs(LayerNorm), b.take(0)
    weight, bias = b.optional_array(1, "weight"), b.optional_array(2, "bias")
    size = x.shape[attrs.axis :]
    if weight is None and bias is not None:
        weight = np.ones(size, np.float32)
    layer = nn.LayerNorm(list(size), attrs.epsilon, weight is not None, bias is not None, device=_META)
    found = {} if weight is None else _with_bias(weight, bias)
    (made,) = b.step(b.layer(layer, found), [x])
    b.give(made, plain(len(x.shape)))


def embedding(b: Build) -> None:
    table, x = b.array(1, "table"), b.take(0)
    (made,) = b.step(nn.Embedding.from_pretrained(parameter(table), freeze=False), [x])
    b.give(made, plain(len(b.node.output.shape)))


def tree_ensemble(b: Build) -> None:
    """The trees are buffers: nothing in them is trained."""
    missing = b.optional(8)
    values = [b.take(0), *(b.value(i) for i in range(1, 8)), *([] if missing is None else [missing])]
    function = partial(TREE_ENSEMBLE, missing=None) if missing is None else TREE_ENSEMBLE
    b.give(b.call(function, values), plain(2))


def prelu(b: Build) -> None:
    """torch's own has one slope, or one for each channel."""
    b.attrs(PRelu)
    x, slope = b.value(0), b.value(1)
    rank = len(x.shape)
    slope = slope.lifted(rank)
    if slope.data is not None:
        long = [axis for axis, size in enumerate(slope.shape) if size != 1]
        channel = len(long) == 1 and x.form.dims[long[0]] == 1 and x.data is None
        if not long or channel:
            layer = nn.PReLU(slope.data.size, device=_META)
            found = {"weight": parameter(slope.data.reshape(-1))}
            (made,) = b.step(b.layer(layer, found), [b.computed(x)])
            b.give(made, x.form)
            return
    form = b.common([x, slope], x.shape)
    made = b.call(_steep, [b.in_form(x, form), b.in_form(slope, form)])
    b.give(made, form)


def _steep(x: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) + slope * torch.clamp(x, max=0.0)
