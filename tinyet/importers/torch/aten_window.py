# SPDX-License-Identifier: Apache-2.0
"""ATen handlers of operators on images and sequences: convolutions, pools, resizing. The IR has them NHWC.

Each is wrapped in permutes, which the layout pass cancels. A sequence (N, C, L) is an image of height 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch

from tinyet.errors import RefusedError
from tinyet.importers.torch.aten_dynamic import source_of, weighted
from tinyet.importers.torch.context import Args, Constant, Context, Handler, Value, pair
from tinyet.ir import QuantParams, Tensor
from tinyet.ops.adaptive_avg_pool2d import AdaptiveAvgPool2d
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.resize import Resize, ResizeMode, resizes_nothing
from tinyet.ops.shared.window import out_size

aten = torch.ops.aten

Restore = Callable[[Tensor], Tensor]


def to_image(ctx: Context, x: Tensor, spatial: int) -> tuple[Tensor, Restore]:
    """x, torch's (N, C, …) or (C, …) with 1 or 2 spatial dimensions, as NHWC, and the function that brings a result
    back."""
    rank = len(x.shape)
    if rank not in (spatial + 1, spatial + 2):
        raise RefusedError(f"{rank} dimensions where {spatial + 2} are wanted")
    name = ctx.node.name
    unbatched = rank == spatial + 1
    if unbatched:
        x = ctx.reshape(x, (1, *x.shape), f"{name}_batch")
    if spatial == 1:
        x = ctx.permute(x, (0, 2, 1), f"{name}_nlc")
        x = ctx.reshape(x, (x.shape[0], 1, x.shape[1], x.shape[2]), f"{name}_nhwc")
    else:
        x = ctx.permute(x, (0, 2, 3, 1), f"{name}_nhwc")

    def restore(y: Tensor) -> Tensor:
        if spatial == 1:
            y = ctx.reshape(y, (y.shape[0], y.shape[2], y.shape[3]), f"{name}_back")
            y = ctx.permute(y, (0, 2, 1), f"{name}_ncl")
        else:
            y = ctx.permute(y, (0, 3, 1, 2), f"{name}_nchw")
        return ctx.reshape(y, y.shape[1:], f"{name}_only") if unbatched else y

    return x, restore


def _hw(values: object, spatial: int, along: int) -> tuple[int, int]:
    """A per-dimension argument as (h, w); for sequences h is `along`."""
    if spatial == 1:
        items = [values] if isinstance(values, int) else list(values)  # type: ignore[call-overload]
        return along, int(items[0])
    return pair(values)


def _tail(size: int, kernel: int, stride: int, dilation: int, pad: int, ceil: bool) -> int:
    """Padding after the last pixel, in which ceil_mode lets the last window end (it must start before
    that)."""
    out = out_size(size, kernel, stride, dilation, pad, pad)
    covered = size + 2 * pad - dilation * (kernel - 1) - 1
    if ceil and covered % stride and out * stride < size + pad:
        return pad + stride - covered % stride
    return pad


# ---------------------------------------------------------------- convolutions


def _weight(ctx: Context, argument: object, *axes: int) -> Constant:
    """The constant weight, which may be quantized along one of these axes only."""
    weight = ctx.optional_constant(argument, "weight")
    assert weight is not None
    if weight.quant is not None and weight.quant.axis not in (None, *axes):
        raise RefusedError(
            f"weights are quantized along axis {weight.quant.axis}, not along the output channels ({axes[0]})"
        )
    return weight.named(ctx.parameter_name("weight"))


def _bias(ctx: Context, argument: object) -> Tensor | None:
    bias = ctx.optional_constant(argument, "bias")
    return None if bias is None else ctx.hold(Constant(ctx.parameter_name("bias"), bias.real()))


def _convolution(spatial: int) -> Handler:
    def row(ctx: Context, a: Args) -> Value:
        weight = _weight(ctx, a["weight"], 0)
        if spatial == 1:
            weight = weight.insert_axis(2)
        weight = weight.permute((0, 2, 3, 1))
        value, dynamic = source_of(ctx, a["input"])
        x, restore = to_image(ctx, value, spatial)
        stride_h, stride_w = _hw(a["stride"], spatial, 1)
        pad_h, pad_w = _hw(a["padding"], spatial, 0)
        dilation_h, dilation_w = _hw(a["dilation"], spatial, 1)
        attrs = Conv2d(
            stride_h=stride_h, stride_w=stride_w, dilation_h=dilation_h, dilation_w=dilation_w,
            pad_top=pad_h, pad_bottom=pad_h, pad_left=pad_w, pad_right=pad_w, groups=a["groups"],
        )  # fmt: skip
        out_c, kernel_h, kernel_w, _ = weight.shape
        out_h = out_size(x.shape[1], kernel_h, stride_h, dilation_h, pad_h, pad_h)
        out_w = out_size(x.shape[2], kernel_w, stride_w, dilation_w, pad_w, pad_w)
        shape = (x.shape[0], out_h, out_w, out_c)
        return restore(weighted(ctx, attrs, (x, dynamic), weight, _bias(ctx, a["bias"]), shape))

    return row


def transposed_weight(weight: Constant, groups: int) -> Constant:
    """(in, out / groups, h, w) → (out, h, w, in / groups); scales of axis 1 are repeated for every group."""
    in_c, group_out, kernel_h, kernel_w = weight.shape
    data = weight.data.reshape(groups, in_c // groups, group_out, kernel_h, kernel_w).transpose(0, 2, 3, 4, 1)
    data = np.ascontiguousarray(data.reshape(groups * group_out, kernel_h, kernel_w, in_c // groups))
    quant = weight.quant
    if quant is not None and quant.axis == 1:
        quant = QuantParams(quant.scale * groups, quant.zero_point * groups, 0)
    return replace(weight, data=data, quant=quant)


def _transposed_convolution(spatial: int) -> Handler:
    def row(ctx: Context, a: Args) -> Value:
        groups = a["groups"]
        given = ctx.optional_constant(a["weight"], "weight")
        assert given is not None
        # with one channel a group, input channels are output channels; of one channel in all, each axis counts them
        depthwise = given.shape[0] == groups and given.shape[1] == 1
        axes = (1, 0) if groups == 1 and depthwise else (0,) if depthwise else (1,)
        weight = _weight(ctx, a["weight"], *axes)
        if spatial == 1:
            weight = weight.insert_axis(2)
        weight = transposed_weight(weight, groups)
        x, restore = to_image(ctx, ctx.real(a["input"]), spatial)
        stride_h, stride_w = _hw(a["stride"], spatial, 1)
        pad_h, pad_w = _hw(a["padding"], spatial, 0)
        dilation_h, dilation_w = _hw(a["dilation"], spatial, 1)
        out_pad_h, out_pad_w = _hw(a["output_padding"], spatial, 0)
        attrs = ConvTranspose2d(
            stride_h=stride_h, stride_w=stride_w, dilation_h=dilation_h, dilation_w=dilation_w,
            pad_top=pad_h, pad_bottom=pad_h, pad_left=pad_w, pad_right=pad_w,
            out_pad_h=out_pad_h, out_pad_w=out_pad_w, groups=groups,
        )  # fmt: skip
        out_c, kernel_h, kernel_w, _ = weight.shape
        out_h = (x.shape[1] - 1) * stride_h - 2 * pad_h + dilation_h * (kernel_h - 1) + out_pad_h + 1
        out_w = (x.shape[2] - 1) * stride_w - 2 * pad_w + dilation_w * (kernel_w - 1) + out_pad_w + 1
        inputs = [x, ctx.hold(weight), _bias(ctx, a["bias"])]
        return restore(ctx.emit(attrs, inputs, (x.shape[0], out_h, out_w, out_c)))

    return row


# ---------------------------------------------------------------- pools


def _pooled(ctx: Context, attrs: MaxPool2d | AvgPool2d, x: Tensor, out_h: int, out_w: int) -> Tensor:
    """The pool of x; x itself where each window is one pixel, and each pixel is in one."""
    one = attrs.kernel_h == attrs.kernel_w == 1 and x.shape[1:3] == (out_h, out_w)
    if one and not (isinstance(attrs, AvgPool2d) and attrs.divisor not in (None, 1)):
        return x
    return ctx.emit(attrs, [x], (x.shape[0], out_h, out_w, x.shape[3]))


def _max_pool(spatial: int, *, with_indices: bool = False) -> Handler:
    def row(ctx: Context, a: Args) -> Value:
        x, restore = to_image(ctx, ctx.real(a["self"]), spatial)
        kernel_h, kernel_w = _hw(a["kernel_size"], spatial, 1)
        stride_h, stride_w = _hw(a["stride"] or a["kernel_size"], spatial, 1)
        dilation_h, dilation_w = _hw(a["dilation"], spatial, 1)
        pad_h, pad_w = _hw(a["padding"], spatial, 0)
        bottom = _tail(x.shape[1], kernel_h, stride_h, dilation_h, pad_h, a["ceil_mode"])
        right = _tail(x.shape[2], kernel_w, stride_w, dilation_w, pad_w, a["ceil_mode"])
        attrs = MaxPool2d(
            stride_h=stride_h, stride_w=stride_w, dilation_h=dilation_h, dilation_w=dilation_w,
            pad_top=pad_h, pad_bottom=bottom, pad_left=pad_w, pad_right=right, kernel_h=kernel_h,
            kernel_w=kernel_w,
        )  # fmt: skip
        out_h = out_size(x.shape[1], kernel_h, stride_h, dilation_h, pad_h, bottom)
        out_w = out_size(x.shape[2], kernel_w, stride_w, dilation_w, pad_w, right)
        y = restore(_pooled(ctx, attrs, x, out_h, out_w))
        return (y, None) if with_indices else y

    return row


def _avg_pool(spatial: int) -> Handler:
    def row(ctx: Context, a: Args) -> Value:
        x, restore = to_image(ctx, ctx.real(a["self"]), spatial)
        kernel_h, kernel_w = _hw(a["kernel_size"], spatial, 1)
        stride_h, stride_w = _hw(a["stride"] or a["kernel_size"], spatial, 1)
        pad_h, pad_w = _hw(a["padding"], spatial, 0)
        bottom = _tail(x.shape[1], kernel_h, stride_h, 1, pad_h, a["ceil_mode"])
        right = _tail(x.shape[2], kernel_w, stride_w, 1, pad_w, a["ceil_mode"])
        include = bool(a["count_include_pad"]) and bool(pad_h or pad_w)
        divisor = a.get("divisor_override")
        if include and divisor is None and (bottom > pad_h or right > pad_w):
            raise RefusedError(
                "ceil_mode together with counted padding", "set count_include_pad=False or ceil_mode=False"
            )
        attrs = AvgPool2d(
            stride_h=stride_h, stride_w=stride_w, pad_top=pad_h, pad_bottom=bottom, pad_left=pad_w,
            pad_right=right, kernel_h=kernel_h, kernel_w=kernel_w, count_include_pad=include, divisor=divisor,
        )  # fmt: skip
        out_h = out_size(x.shape[1], kernel_h, stride_h, 1, pad_h, bottom)
        out_w = out_size(x.shape[2], kernel_w, stride_w, 1, pad_w, right)
        return restore(_pooled(ctx, attrs, x, out_h, out_w))

    return row


def _even(x: Tensor, out_h: int, out_w: int) -> bool:
    """Whether all windows of an adaptive pool have one size and do not overlap."""
    return x.shape[1] % out_h == 0 and x.shape[2] % out_w == 0


def _adaptive_avg_pool(spatial: int) -> Handler:
    def row(ctx: Context, a: Args) -> Value:
        x, restore = to_image(ctx, ctx.real(a["self"]), spatial)
        out_h, out_w = _hw(a["output_size"], spatial, 1)
        shape = (x.shape[0], out_h, out_w, x.shape[3])
        if not _even(x, out_h, out_w):
            return restore(ctx.emit(AdaptiveAvgPool2d(out_h=out_h, out_w=out_w), [x], shape))
        height, width = x.shape[1] // out_h, x.shape[2] // out_w
        attrs = AvgPool2d(
            stride_h=height,
            stride_w=width,
            kernel_h=height,
            kernel_w=width,
            count_include_pad=False,
            divisor=None,
        )
        return restore(_pooled(ctx, attrs, x, out_h, out_w))

    return row


def _adaptive_max_pool(spatial: int) -> Handler:
    def row(ctx: Context, a: Args) -> Value:
        x, restore = to_image(ctx, ctx.real(a["self"]), spatial)
        out_h, out_w = _hw(a["output_size"], spatial, 1)
        if not _even(x, out_h, out_w):
            raise RefusedError(
                f"adaptive max pooling of {x.shape[1]}x{x.shape[2]} to {out_h}x{out_w} pixels has windows of "
                "several sizes", "choose an output size that divides the input's"
            )  # fmt: skip
        height, width = x.shape[1] // out_h, x.shape[2] // out_w
        attrs = MaxPool2d(stride_h=height, stride_w=width, kernel_h=height, kernel_w=width)
        return restore(_pooled(ctx, attrs, x, out_h, out_w)), None

    return row


# ---------------------------------------------------------------- resizing


def _ratio(size: int, out: int, factor: float | None, align_corners: bool) -> float:
    """Source pixels per output pixel as torch computes it, in float32: from the scale factor when one was
    given."""
    if align_corners:
        return float(np.float32(size - 1) / np.float32(out - 1)) if out > 1 else 0.0
    if factor is not None and factor > 0:
        return float(np.float32(1.0 / factor))
    return float(np.float32(size) / np.float32(out))


def _resize(spatial: int, mode: ResizeMode, *, half_pixel: bool) -> Handler:
    def row(ctx: Context, a: Args) -> Value:
        x, restore = to_image(ctx, ctx.real(a["input"] if "input" in a else a["self"]), spatial)
        sizes = ctx.shape[-spatial:]
        factors = _factors(a, spatial)
        align = bool(a.get("align_corners"))
        out_h, out_w = (1, sizes[0]) if spatial == 1 else (sizes[0], sizes[1])
        factor_h, factor_w = (1.0, factors[0]) if spatial == 1 else (factors[0], factors[1])
        attrs = Resize(
            out_h=out_h, out_w=out_w, mode=mode, align_corners=align, half_pixel=half_pixel and not align,
            ratio_h=_ratio(x.shape[1], out_h, factor_h, align), ratio_w=_ratio(x.shape[2], out_w, factor_w,
            align),
        )  # fmt: skip
        if resizes_nothing(attrs, x.shape):
            return restore(x)
        return restore(ctx.emit(attrs, [x], (x.shape[0], out_h, out_w, x.shape[3])))

    return row


def _factors(a: Args, spatial: int) -> Sequence[float | None]:
    """The scale factors that were given: a list (overload vec), one by one, or none."""
    if a.get("scale_factors") is not None:
        return list(a["scale_factors"])
    if spatial == 1:
        return [a.get("scales")]
    return [a.get("scales_h"), a.get("scales_w")]


WINDOW_HANDLERS: dict[object, Handler] = {
    aten.conv1d.default: _convolution(1),
    aten.conv2d.default: _convolution(2),
    aten.conv_transpose1d.default: _transposed_convolution(1),
    aten.conv_transpose2d.input: _transposed_convolution(2),
    aten.max_pool1d.default: _max_pool(1),
    aten.max_pool2d.default: _max_pool(2),
    aten.max_pool2d_with_indices.default: _max_pool(2, with_indices=True),
    aten.avg_pool1d.default: _avg_pool(1),
    aten.avg_pool2d.default: _avg_pool(2),
    aten.adaptive_avg_pool1d.default: _adaptive_avg_pool(1),
    aten.adaptive_avg_pool2d.default: _adaptive_avg_pool(2),
    aten._adaptive_avg_pool2d.default: _adaptive_avg_pool(2),
    aten.adaptive_max_pool1d.default: _adaptive_max_pool(1),
    aten.adaptive_max_pool2d.default: _adaptive_max_pool(2),
    aten.upsample_nearest1d.vec: _resize(1, "nearest", half_pixel=False),
    aten.upsample_nearest1d.default: _resize(1, "nearest", half_pixel=False),
    aten.upsample_nearest2d.vec: _resize(2, "nearest", half_pixel=False),
    aten.upsample_nearest2d.default: _resize(2, "nearest", half_pixel=False),
    aten._upsample_nearest_exact1d.vec: _resize(1, "nearest", half_pixel=True),
    aten._upsample_nearest_exact1d.default: _resize(1, "nearest", half_pixel=True),
    aten._upsample_nearest_exact2d.vec: _resize(2, "nearest", half_pixel=True),
    aten._upsample_nearest_exact2d.default: _resize(2, "nearest", half_pixel=True),
    aten.upsample_linear1d.vec: _resize(1, "bilinear", half_pixel=True),
    aten.upsample_linear1d.default: _resize(1, "bilinear", half_pixel=True),
    aten.upsample_bilinear2d.vec: _resize(2, "bilinear", half_pixel=True),
    aten.upsample_bilinear2d.default: _resize(2, "bilinear", half_pixel=True),
}
