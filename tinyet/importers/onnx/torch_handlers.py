# SPDX-License-Identifier: Apache-2.0
"""Operator → torch: the operators that a float ONNX model may hold. Formulas are those of the ONNX operator
documentation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from tinyet.errors import RefusedError
from tinyet.importers.onnx.torch_recurrent import gru, lstm, rnn
from tinyet.importers.onnx.torch_selection import gather, scatter_nd, tile, where
from tinyet.importers.onnx.torch_steps import Build, Function, Step
from tinyet.importers.onnx.values import axes_of, axis_of

Handler = Callable[[Build], Function]


def elementwise(function: Callable[..., Any]) -> Handler:
    """A function of all inputs in order."""

    def handler(b: Build) -> Function:
        arguments = b.arguments()
        return lambda step, *inputs: function(*arguments(step, inputs))

    return handler


def folding(function: Callable[[Any, Any], Any]) -> Handler:
    """A function of two, over as many inputs as there are."""

    def handler(b: Build) -> Function:
        arguments = b.arguments()

        def run(step: Step, *inputs: torch.Tensor) -> torch.Tensor:
            first, *rest = arguments(step, inputs)
            for x in rest:
                first = function(first, x)
            return first

        return run

    return handler


def with_alpha(function: Callable[[Any, float], Any], alpha: float) -> Handler:
    def handler(b: Build) -> Function:
        given = b.attribute("alpha", alpha)
        return lambda _step, x: function(x, given)

    return handler


def hard_sigmoid(b: Build) -> Function:
    alpha, beta = b.attribute("alpha", 0.2), b.attribute("beta", 0.5)
    if math.isclose(alpha, 1 / 6, rel_tol=1e-5) and beta == 0.5:
        return lambda _step, x: F.hardsigmoid(x)
    return lambda _step, x: torch.clamp(x * alpha + beta, 0.0, 1.0)


def gelu(b: Build) -> Function:
    kind = b.attribute("approximate", "none")
    return lambda _step, x: F.gelu(x, approximate=kind)


def clip(b: Build) -> Function:
    low, high = (
        float(b.constant(i, "bound").reshape(-1)[0]) if b.has(i) and b.constant(i, "bound").size else None
        for i in (1, 2)
    )
    if low is None and high is None:
        return lambda _step, x: x
    if low == 0.0 and high is None:
        return lambda _step, x: F.relu(x)
    return lambda _step, x: torch.clamp(x, low, high)


# ---------------------------------------------------------------- layers


def pads_of(
    b: Build, kernel: Sequence[int], size: Sequence[int]
) -> tuple[list[int], list[int], list[int], list[int]]:
    """strides, dilations, and pads before and after."""
    dims = len(kernel)
    strides, dilations = b.attribute("strides", [1] * dims), b.attribute("dilations", [1] * dims)
    pads = b.attribute("pads", [0] * (2 * dims))
    if dims not in (1, 2) or len(strides) != dims or len(dilations) != dims or len(pads) != 2 * dims:
        raise RefusedError(f"has a window of {dims} dimensions", "images have 4 dimensions, rows 3")
    if min(*strides, *dilations) < 1 or min(pads) < 0:
        raise RefusedError(f"has strides {strides}, dilations {dilations}, pads {pads}")
    auto = b.attribute("auto_pad", "NOTSET")
    if auto == "VALID":
        pads = [0] * (2 * dims)
    elif auto in ("SAME_UPPER", "SAME_LOWER"):
        before, after = [], []
        for length, k, stride, dilation in zip(size, kernel, strides, dilations, strict=True):
            total = max((-(-length // stride) - 1) * stride + dilation * (k - 1) + 1 - length, 0)
            first = total // 2 if auto == "SAME_UPPER" else -(-total // 2)
            before.append(first)
            after.append(total - first)
        pads = [*before, *after]
    elif auto != "NOTSET":
        raise RefusedError(f"has auto_pad {auto[:40]!r}")
    return strides, dilations, list(pads[:dims]), list(pads[dims:])


def torch_pads(before: Sequence[int], after: Sequence[int]) -> list[int]:
    """Padding in the order of F.pad: the last dimension first."""
    return [n for pair in zip(reversed(before), reversed(after), strict=True) for n in pair]


def conv(b: Build) -> Function:
    weight = b.weights(1, "weight")
    strides, dilations, before, after = pads_of(b, weight.shape[2:], b.example().shape[2:])
    b.hold("weight", weight)
    if b.has(2):
        b.hold("bias", b.weights(2, "bias"))
    groups, function = b.attribute("group", 1), (F.conv1d, F.conv2d)[weight.ndim - 3]
    biased, same = b.has(2), before == after
    extra = torch_pads(before, after)

    def run(step: Step, x: torch.Tensor) -> torch.Tensor:
        x = x if same else F.pad(x, extra)
        weight, bias = step.get_parameter("weight"), step.get_parameter("bias") if biased else None
        return function(x, weight, bias, strides, before if same else 0, dilations, groups)

    return run


def conv_transpose(b: Build) -> Function:
    weight = b.weights(1, "weight")
    if b.node.attributes.get("output_shape") or b.attribute("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise RefusedError("has output_shape or auto_pad", "give it pads")
    strides, dilations, before, after = pads_of(b, weight.shape[2:], b.example().shape[2:])
    if before != after:
        raise RefusedError(f"crops {before} and {after}", "the same on both sides")
    added, groups = b.attribute("output_padding", [0] * len(strides)), b.attribute("group", 1)
    b.hold("weight", weight)
    biased = b.has(2)
    if biased:
        b.hold("bias", b.weights(2, "bias"))
    function = (F.conv_transpose1d, F.conv_transpose2d)[weight.ndim - 3]
    return lambda step, x: function(
        x, step.weight, step.bias if biased else None, strides, before, added, groups, dilations
    )


def gemm(b: Build) -> Function:
    alpha, beta = b.attribute("alpha", 1.0), b.attribute("beta", 1.0)
    if b.attribute("transA", 0):
        raise RefusedError("transposes its first input")
    weight = np.asarray(b.constant(1, "weight"), np.float32) * np.float32(alpha)
    weight = weight if b.attribute("transB", 0) else weight.T
    b.hold("weight", np.ascontiguousarray(weight))
    biased = b.has(2)
    if biased:
        bias = np.asarray(b.constant(2, "bias"), np.float32).reshape(-1) * np.float32(beta)
        b.hold("bias", np.broadcast_to(bias, (weight.shape[0],)).copy())
    return lambda step, x: F.linear(x, step.weight, step.bias if biased else None)


def matmul(b: Build) -> Function:
    second = b.given[1] if len(b.given) > 1 else None
    if isinstance(second, np.ndarray) and second.ndim == 2 and isinstance(b.given[0], torch.Tensor):
        b.hold("weight", np.ascontiguousarray(b.weights(1, "weight").T))
        return lambda step, x: F.linear(x, step.weight)
    return elementwise(torch.matmul)(b)


def batch_norm(b: Build) -> Function:
    if b.attribute("training_mode", 0):
        raise RefusedError("is in training mode", "export in eval mode")
    for position, role in enumerate(("weight", "bias", "mean", "variance"), 1):
        b.hold(role, b.weights(position, role))
    epsilon = b.attribute("epsilon", 1e-5)
    return lambda s, x: F.batch_norm(x, s.mean, s.variance, s.weight, s.bias, False, 0.0, epsilon)


def layer_norm(b: Build) -> Function:
    axis = axis_of(b.attribute("axis", -1), b.rank())
    shape, epsilon = list(b.example().shape[axis:]), b.attribute("epsilon", 1e-5)
    b.hold("weight", np.broadcast_to(b.weights(1, "scale"), shape).copy())
    biased = b.has(2)
    if biased:
        b.hold("bias", np.broadcast_to(b.weights(2, "bias"), shape).copy())
    return lambda s, x: F.layer_norm(x, shape, s.weight, s.bias if biased else None, epsilon)


# ---------------------------------------------------------------- pools and reductions


def pool(b: Build) -> Function:
    kernel = b.attribute("kernel_shape", [])
    if len(kernel) != b.rank() - 2 or not kernel or min(kernel) < 1:
        raise RefusedError(f"has a kernel {kernel} over {b.rank()} dimensions")
    strides, dilations, before, after = pads_of(b, kernel, b.example().shape[2:])
    ceil, same, extra = bool(b.attribute("ceil_mode", 0)), before == after, torch_pads(before, after)
    if b.node.op == "MaxPool":
        largest = (F.max_pool1d, F.max_pool2d)[len(kernel) - 1]
        if not same or any(2 * p > k for p, k in zip(before, kernel, strict=True)):
            return lambda _s, x: largest(
                F.pad(x, extra, value=-math.inf), kernel, strides, 0, dilations, ceil
            )
        return lambda _s, x: largest(x, kernel, strides, before, dilations, ceil)
    if set(dilations) != {1}:
        raise RefusedError("has dilations")
    counted = bool(b.attribute("count_include_pad", 0))
    mean = (F.avg_pool1d, F.avg_pool2d)[len(kernel) - 1]
    if not same:
        if not counted or ceil:
            raise RefusedError(f"pads by {before} and {after} without counting", "the same on both sides")
        return lambda _s, x: mean(F.pad(x, extra), kernel, strides)
    return lambda _s, x: mean(x, kernel, strides, before, ceil, counted)


def global_pool(b: Build) -> Function:
    axes = list(range(2, b.rank()))
    if b.node.op == "GlobalMaxPool":
        return lambda _s, x: torch.amax(x, axes, True)
    return lambda _s, x: torch.mean(x, axes, True)


REDUCTIONS: Mapping[str, Callable[..., Any]] = {
    "ReduceMax": torch.amax,
    "ReduceMean": torch.mean,
    "ReduceMin": torch.amin,
    "ReduceSum": torch.sum,
    "ReduceL2": lambda x, axes, keep: torch.sqrt(torch.sum(x * x, axes, keep)),
    "ReduceSumSquare": lambda x, axes, keep: torch.sum(x * x, axes, keep),
}


def reduced(b: Build) -> Function:
    given = b.integers(1, "axes") if b.has(1) else b.attribute("axes", [])
    if not given and b.attribute("noop_with_empty_axes", 0):
        return lambda _s, x: x
    axes, keep = list(axes_of(given or range(b.rank()), b.rank())), bool(b.attribute("keepdims", 1))
    function = REDUCTIONS[b.node.op]
    return lambda _s, x: function(x, axes, keep)


def softmax(b: Build) -> Function:
    axis = axis_of(b.attribute("axis", -1), b.rank())
    function = F.softmax if b.node.op == "Softmax" else F.log_softmax
    return lambda _s, x: function(x, axis)


def argmax(b: Build) -> Function:
    axis, keep = axis_of(b.attribute("axis", 0), b.rank()), bool(b.attribute("keepdims", 1))
    if b.attribute("select_last_index", 0):
        raise RefusedError("takes the last of several")
    return lambda _s, x: torch.argmax(x, axis, keep)


# ---------------------------------------------------------------- shapes


def reshape(b: Build) -> Function:
    old, wanted = list(b.example().shape), b.integers(1, "shape")
    if b.attribute("allowzero", 0) == 0:
        wanted = [old[i] if n == 0 and i < len(old) else n for i, n in enumerate(wanted)]
    shape = list(b.example().reshape(wanted).shape)
    return lambda _s, x: torch.reshape(x, shape)


def flatten(b: Build) -> Function:
    shape = list(b.example().shape)
    axis = b.attribute("axis", 1)
    axis = axis if axis == len(shape) else axis_of(axis, len(shape))
    if axis == 1:
        return lambda _s, x: torch.flatten(x, 1)
    flat = [math.prod(shape[:axis]), math.prod(shape[axis:])]
    return lambda _s, x: torch.reshape(x, flat)


def squeeze(b: Build) -> Function:
    shape = b.example().shape
    axes = axes_of(b.integers(1, "axes", [a for a, n in enumerate(shape) if n == 1]), b.rank())
    if any(shape[a] != 1 for a in axes):
        raise RefusedError(f"takes axes {axes} off {tuple(shape)}")
    left = [n for a, n in enumerate(shape) if a not in axes]
    return lambda _s, x: torch.reshape(x, left)


def unsqueeze(b: Build) -> Function:
    shape, given = list(b.example().shape), b.integers(1, "axes")
    for axis in axes_of(given, len(shape) + len(given)):
        shape.insert(axis, 1)
    return lambda _s, x: torch.reshape(x, shape)


def transpose(b: Build) -> Function:
    order = b.attribute("perm", list(range(b.rank()))[::-1])
    return lambda _s, x: torch.permute(x, order)


def concat(b: Build) -> Function:
    axis, arguments = axis_of(b.attribute("axis", 0), b.rank()), b.arguments()
    return lambda step, *inputs: torch.cat(arguments(step, inputs), axis)


def slice_(b: Build) -> Function:
    starts, stops = b.integers(1, "starts"), b.integers(2, "ends")
    axes, steps = b.integers(3, "axes", range(len(starts))), b.integers(4, "steps", [1] * len(starts))
    if not len(starts) == len(stops) == len(axes) == len(steps) or (steps and min(steps) < 1):
        raise RefusedError("has starts, ends, axes and steps that do not fit, or goes backwards")
    index = [slice(None)] * b.rank()
    for start, stop, axis, step in zip(starts, stops, axes, steps, strict=True):
        place = axis_of(axis, b.rank())
        index[place] = slice(*slice(start, stop, step).indices(b.example().shape[place]))
    cut = tuple(index)
    return lambda _s, x: x[cut]


def split(b: Build) -> Function:
    axis, count = axis_of(b.attribute("axis", 0), b.rank()), len(b.node.outputs)
    size = b.example().shape[axis]
    each = -(-size // count)
    sizes = b.integers(1, "split", [min(each, size - k * each) for k in range(count)])
    if len(sizes) != count or sum(sizes) != size or min(sizes) < 1:
        raise RefusedError(f"splits {size} into {sizes}")
    return lambda _s, x: tuple(torch.split(x, sizes, axis))


def pad(b: Build) -> Function:
    rank, given = b.rank(), b.integers(1, "pads")
    mode = {"constant": "constant", "reflect": "reflect", "edge": "replicate"}.get(
        b.attribute("mode", "constant")
    )
    axes = [axis_of(a, rank) for a in b.integers(3, "axes", range(rank))]
    if mode is None or len(given) != 2 * len(axes):
        raise RefusedError(f"pads by {given}")
    before, after = [0] * rank, [0] * rank
    for axis, first, last in zip(axes, given[: len(axes)], given[len(axes) :], strict=True):
        before[axis], after[axis] = first, last
    value = float(b.constant(2, "value").reshape(-1)[0]) if b.has(2) else 0.0
    if mode == "constant":
        extra = torch_pads(before, after)
        return lambda _s, x: F.pad(x, extra, value=value)
    used = max([a for a in range(rank) if before[a] or after[a]], default=rank - 1)
    first = min([a for a in range(rank) if before[a] or after[a]], default=rank - 1)
    if first < max(rank - 2, 1) or used < first:
        raise RefusedError(f"pads by {given} in the mode {mode}", "height and width of images")
    extra = torch_pads(before[first:], after[first:])
    return lambda _s, x: F.pad(x, extra, mode=mode)


def expand(b: Build) -> Function:
    shape = list(np.broadcast_shapes(tuple(b.example().shape), tuple(b.integers(1, "shape"))))
    return lambda _s, x: x.expand(shape)


def resize(b: Build) -> Function:
    shape = list(b.example().shape)
    mode, where = b.attribute("mode", "nearest"), b.attribute("coordinate_transformation_mode", "half_pixel")
    if b.has(3):
        sizes = b.integers(3, "sizes")
    else:
        scales = [float(s) for s in b.constant(2, "scales").reshape(-1)]
        if len(scales) != len(shape) or not all(0 < s <= 65536 for s in scales):
            raise RefusedError(f"has {len(scales)} scales for {len(shape)} dimensions")
        sizes = [math.floor(n * s) for n, s in zip(shape, scales, strict=True)]
    if len(shape) not in (3, 4) or len(sizes) != len(shape) or sizes[:2] != shape[:2] or min(sizes) < 1:
        raise RefusedError(f"makes {tuple(sizes)} of {tuple(shape)}", "resize height and width of images")
    size = sizes[2:]
    if mode == "nearest":
        whole = all(n % m == 0 for n, m in zip(size, shape[2:], strict=True))
        floor = b.attribute("nearest_mode", "round_prefer_floor") == "floor"
        if where == "asymmetric" and floor:
            return lambda _s, x: F.interpolate(x, size, mode="nearest")
        if where in ("half_pixel", "pytorch_half_pixel") and whole:
            return lambda _s, x: F.interpolate(x, size, mode="nearest-exact")
        raise RefusedError(f"resizes to the nearest by {where[:40]!r}", "asymmetric, floor")
    corners = where == "align_corners"
    if mode != "linear" or len(shape) != 4 or not (corners or where in ("half_pixel", "pytorch_half_pixel")):
        raise RefusedError(f"resizes by {mode[:40]!r}, {where[:40]!r}", "nearest, or linear of images")
    return lambda _s, x: F.interpolate(x, size, mode="bilinear", align_corners=corners)


def depth_to_space(b: Build) -> Function:
    block, mode = b.attribute("blocksize", 0), b.attribute("mode", "DCR")
    if b.rank() != 4 or block < 1 or b.example().shape[1] % (block * block):
        raise RefusedError(f"has blocks of {block} over {tuple(b.example().shape)}")
    n, c, h, w = b.example().shape
    each = c // (block * block)
    split, order = (
        ((n, block, block, each, h, w), (0, 3, 4, 1, 5, 2))
        if mode == "DCR"
        else (
            (n, each, block, block, h, w),
            (0, 1, 4, 2, 5, 3),
        )
    )
    return lambda _s, x: x.reshape(split).permute(order).reshape(n, each, h * block, w * block)


def space_to_depth(b: Build) -> Function:
    block = b.attribute("blocksize", 0)
    n, c, h, w = b.example().shape
    if block < 1 or h % block or w % block:
        raise RefusedError(f"has blocks of {block} over {tuple(b.example().shape)}")
    split, made = (n, c, h // block, block, w // block, block), (n, c * block * block, h // block, w // block)
    return lambda _s, x: x.reshape(split).permute(0, 3, 5, 1, 2, 4).reshape(made)


def identity(b: Build) -> Function:
    if b.node.op == "Dropout" and b.has(2) and np.any(b.constant(2, "training mode")):
        raise RefusedError("is in training mode", "export in eval mode")
    return lambda _s, x: x


def cast(b: Build) -> Function:
    kinds = {1: torch.float32, 10: torch.float32, 11: torch.float32, 6: torch.int64, 7: torch.int64}
    to = kinds.get(b.attribute("to", 0))
    if to is None:
        raise RefusedError(f"casts to type {b.attribute('to', 0)}")
    return lambda _s, x: x.to(to)


TABLE: Mapping[str, Handler] = {
    **dict.fromkeys(REDUCTIONS, reduced),
    "Abs": elementwise(torch.abs),
    "Add": elementwise(torch.add),
    "ArgMax": argmax,
    "AveragePool": pool,
    "BatchNormalization": batch_norm,
    "Cast": cast,
    "Ceil": elementwise(torch.ceil),
    "Clip": clip,
    "Concat": concat,
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "Cos": elementwise(torch.cos),
    "DepthToSpace": depth_to_space,
    "Div": elementwise(torch.div),
    "Dropout": identity,
    "Elu": with_alpha(F.elu, 1.0),
    "Erf": elementwise(torch.erf),
    "Exp": elementwise(torch.exp),
    "Expand": expand,
    "Flatten": flatten,
    "Floor": elementwise(torch.floor),
    "GRU": gru,
    "Gather": gather,
    "Gelu": gelu,
    "Gemm": gemm,
    "GlobalAveragePool": global_pool,
    "GlobalMaxPool": global_pool,
    "HardSigmoid": hard_sigmoid,
    "HardSwish": elementwise(F.hardswish),
    "Identity": identity,
    "LSTM": lstm,
    "LayerNormalization": layer_norm,
    "LeakyRelu": with_alpha(F.leaky_relu, 0.01),
    "Log": elementwise(torch.log),
    "LogSoftmax": softmax,
    "MatMul": matmul,
    "Max": folding(torch.maximum),
    "MaxPool": pool,
    "Min": folding(torch.minimum),
    "Mish": elementwise(F.mish),
    "Mul": elementwise(torch.mul),
    "Neg": elementwise(torch.neg),
    "PRelu": elementwise(lambda x, slope: torch.where(x > 0, x, x * slope)),
    "Pad": pad,
    "Pow": elementwise(torch.pow),
    "RNN": rnn,
    "Reciprocal": elementwise(torch.reciprocal),
    "Relu": elementwise(F.relu),
    "Reshape": reshape,
    "Resize": resize,
    "ScatterND": scatter_nd,
    "Selu": elementwise(F.selu),
    "Sigmoid": elementwise(torch.sigmoid),
    "Sin": elementwise(torch.sin),
    "Slice": slice_,
    "Softmax": softmax,
    "Softplus": elementwise(F.softplus),
    "SpaceToDepth": space_to_depth,
    "Split": split,
    "Sqrt": elementwise(torch.sqrt),
    "Squeeze": squeeze,
    "Sub": elementwise(torch.sub),
    "Sum": folding(torch.add),
    "Tanh": elementwise(torch.tanh),
    "Tile": tile,
    "Transpose": transpose,
    "Unsqueeze": unsqueeze,
    "Where": where,
}
