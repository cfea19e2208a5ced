# SPDX-License-Identifier: Apache-2.0
"""The table: ATen overload → function that emits its meaning in the IR. And advice for missing overloads."""

from __future__ import annotations

import operator

import torch

from tinyet.errors import RefusedError
from tinyet.importers.torch.aten_math import MATH_HANDLERS
from tinyet.importers.torch.aten_quant import quant_rows
from tinyet.importers.torch.aten_recurrent import RECURRENT_HANDLERS
from tinyet.importers.torch.aten_shape import SHAPE_HANDLERS, getitem
from tinyet.importers.torch.aten_signal import SIGNAL_HANDLERS
from tinyet.importers.torch.aten_trees import TREE_HANDLERS
from tinyet.importers.torch.aten_truth import TRUTH_HANDLERS
from tinyet.importers.torch.aten_whole import WHOLE_HANDLERS
from tinyet.importers.torch.aten_window import WINDOW_HANDLERS
from tinyet.importers.torch.context import Args, Context, Handler, Value
from tinyet.importers.torch.lowered import LOWERED_HANDLERS


def _by_kind(name: str, integers: Handler, truths: Handler | None, floats: Handler | None) -> Handler:
    """The handler of an operator that is one thing on whole numbers and another, or nothing, on floats; truth values
    are whole numbers where it says nothing else of them."""

    def handler(ctx: Context, a: Args) -> Value:
        value = ctx.node.meta["val"]
        if isinstance(value, torch.Tensor) and not (value.is_floating_point() or value.is_complex()):
            return (truths or integers if value.dtype is torch.bool else integers)(ctx, a)
        if floats is None:
            raise RefusedError("is not supported", advice(name), shape=False)
        return floats(ctx, a)

    return handler


_HANDLERS: dict[object, Handler] = {
    operator.getitem: getitem,
    **WINDOW_HANDLERS,
    **TREE_HANDLERS,
    **MATH_HANDLERS,
    **SHAPE_HANDLERS,
    **TRUTH_HANDLERS,
    **RECURRENT_HANDLERS,
    **SIGNAL_HANDLERS,
    **quant_rows(),
    **LOWERED_HANDLERS,
}
TABLE: dict[object, Handler] = _HANDLERS | {
    target: _by_kind(str(target), handler, TRUTH_HANDLERS.get(target), _HANDLERS.get(target))
    for target, handler in WHOLE_HANDLERS.items()
}

_SLICES_3D = "work on slices of the volume with the 2-d operator, and add or stack the results"
_NOISE = "make the noise an input"
_TRAINING = (
    "F.dropout, F.dropout2d and their kind drop unless told otherwise: give them training=self.training"
)
_STATISTICS = (
    "give the norm running statistics and call model.eval(), without training=True in its functional form"
)
_POLYNOMIAL = "approximate it by a polynomial, or compute it outside of the model"
_OUTSIDE = "compute it outside of the model"
_NUMBERS = "leave .item(), .tolist(), int() and float() away: compute with tensors, of one element, too"
_ONE_HOT = "use a mask, torch.arange(n) == index.unsqueeze(-1), in torch.where or a product"

ADVICE = {
    "conv3d": _SLICES_3D,
    "conv_transpose3d": _SLICES_3D,
    "max_pool3d": _SLICES_3D,
    "avg_pool3d": _SLICES_3D + "; torch.nn.LocalResponseNorm, which is made of it, is best a batch norm",
    "upsample_trilinear3d": _SLICES_3D,
    "upsample_nearest3d": _SLICES_3D,
    "native_dropout": _TRAINING,
    "bernoulli": _NOISE + "; " + _TRAINING,
    "rand": _NOISE,
    "randn": _NOISE,
    "rand_like": _NOISE,
    "randn_like": _NOISE,
    "randint": _NOISE,
    "normal": _NOISE,
    "rrelu": "use F.leaky_relu with the mean of lower and upper",
    "choose_qparams_symmetric": "quantize with torch.per_tensor_affine at run time",
    "cumprod": "multiply slices one after the other, and torch.cat them",
    "scatter": _ONE_HOT + ": torch.where(mask, value, x)",
    "scatter_add": _ONE_HOT + ": x + (mask * value).sum(dim)",
    "index_put": _ONE_HOT + ", or torch.cat of the parts, where the places are constant",
    "cross_entropy_loss": "leave the loss away: it is for training",
    "nll_loss_nd": "leave the loss away: it is for training",
    "grid_sampler_2d": "sample before the model; a resize by a fixed factor is F.interpolate",
    "upsample_bicubic2d": "use mode='bilinear' or 'nearest'",
    "_upsample_bilinear2d_aa": "leave antialias=True away",
    "col2im": "use F.conv_transpose2d with torch.eye(c * h * w).reshape(-1, c, h, w) as weight",
    "max_unpool2d": "use F.interpolate with mode='nearest'",
    "fractional_max_pool2d": "use F.max_pool2d, or F.adaptive_avg_pool2d",
    "embedding_bag": "use torch.nn.Embedding, and .mean(1) or .sum(1) of what it gives",
    "embedding_renorm": "leave max_norm away, and scale the table's rows once",
    "_cdist_forward": "(x.unsqueeze(-2) - y).square().sum(-1).sqrt()",
    "bilinear": "torch.einsum('bi,oij,bj->bo', a, weight, b) + bias",
    "pow": "x ** y is torch.exp(y * torch.log(x)) for positive x, and 2 ** x is torch.exp(x * math.log(2))",
    "remainder": "x - y * torch.floor(x / y)",
    "fmod": "x - y * torch.sign(x / y) * torch.floor(torch.abs(x / y))",
    "fmax": "torch.maximum(a, b), which differs for NaN only",
    "fmin": "torch.minimum(a, b), which differs for NaN only",
    "bucketize": "count: (x.unsqueeze(-1) > boundaries).float().sum(-1)",
    "searchsorted": "count: (x.unsqueeze(-1) > boundaries).float().sum(-1)",
    "tan": "torch.sin(x) / torch.cos(x)",
    "sinh": "(torch.exp(x) - torch.exp(-x)) / 2",
    "cosh": "(torch.exp(x) + torch.exp(-x)) / 2",
    "asinh": "torch.log(x + torch.sqrt(x * x + 1))",
    "acosh": "torch.log(x + torch.sqrt(x * x - 1))",
    "atanh": "torch.log((1 + x) / (1 - x)) / 2",
    "asin": _POLYNOMIAL,
    "acos": _POLYNOMIAL,
    "atan": _POLYNOMIAL,
    "atan2": _POLYNOMIAL,
    "erfinv": _POLYNOMIAL,
    "lgamma": _POLYNOMIAL,
    "histc": _OUTSIDE,
    "linalg_inv_ex": _OUTSIDE,
    "_linalg_svd": _OUTSIDE,
    "_linalg_det": _OUTSIDE,
    "_local_scalar_dense": _NUMBERS,
    "_native_batch_norm_legit": _STATISTICS,
    "_native_batch_norm_legit_functional": _STATISTICS,
}


def advice(name: str) -> str:
    """The advice for an operator without a handler; `name` as in aten.topk.default."""
    parts = name.split(".")
    return ADVICE.get(
        parts[1] if len(parts) > 1 else name, "write it with supported operators, or keep it out of the model"
    )
