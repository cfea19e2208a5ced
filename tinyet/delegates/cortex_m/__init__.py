# SPDX-License-Identifier: Apache-2.0
"""Specialised int8 kernels for Arm cores with the DSP extension: Cortex-M4, M7, M33 and larger; those for Helium (M52,
M55, M85) come first where they are for the same node.

Each layer becomes a small C function around an always-inline kernel of firmware/include/tinyet_*_dsp.h with
every shape and rounding constant known to the compiler, and weights packed in the order it reads them in.

Those of FOR_FLASH take flash for speed, of int4 weights, too. They stand last, behind a kernel that takes all that they
take, so that they are used only where their costs are weighed, or by a pin. Those for Helium hold int4 weights as
bytes.
"""

from __future__ import annotations

from dataclasses import replace

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import (
    adaptive_pool_mve,
    batch_norm_mve,
    conv2d_k8,
    conv2d_mve,
    conv2d_s8,
    conv2d_s16,
    conv2d_s16_mve,
    conv2d_tiles,
    conv_transpose2d,
    conv_transpose2d_mve,
    copy_runs_mve,
    cost_models,
    cost_models_depthwise,
    cost_models_flash,
    cost_models_pixels,
    cost_models_pooling,
    cost_models_rows,
    cost_models_s16,
    cost_models_shared,
    cost_models_transposed,
    depthwise_3x3,
    depthwise_mve,
    depthwise_s16,
    depthwise_s16_mve,
    elementwise,
    elementwise_mve,
    elementwise_s16_mve,
    layer_norm_mve,
    linear,
    linear_mve,
    linear_s16,
    linear_s16_mve,
    linear_w4,
    log_bands_mve,
    lut_mve,
    matmul_mve,
    matmul_s16_mve,
    pool,
    pool_mve,
    prelu_mve,
    quantize_mve,
    recurrent,
    recurrent_s16_mve,
    resize,
    select_mve,
    slabs_mve,
    softmax,
    sum_mve,
    transpose_mve,
    wide_sums_mve,
    winograd,
)
from tinyet.delegates.delegate import Delegate, arm_target
from tinyet.ops import add, clamp, div, mul, prelu, requantize, sub
from tinyet.ops.adaptive_avg_pool2d import AdaptiveAvgPool2d
from tinyet.ops.add import Add
from tinyet.ops.amax import Amax
from tinyet.ops.amin import Amin
from tinyet.ops.argmax import ArgMax
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.batch_norm import BatchNorm
from tinyet.ops.clamp import Clamp
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.div import Div
from tinyet.ops.expand import Expand
from tinyet.ops.flip import Flip
from tinyet.ops.gru import Gru
from tinyet.ops.layer_norm import LayerNorm
from tinyet.ops.linear import Linear
from tinyet.ops.log_bands import LogBands
from tinyet.ops.log_softmax import LogSoftmax
from tinyet.ops.lstm import Lstm
from tinyet.ops.matmul import MatMul
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.maximum import Maximum
from tinyet.ops.mean import Mean
from tinyet.ops.minimum import Minimum
from tinyet.ops.mul import Mul
from tinyet.ops.permute import Permute
from tinyet.ops.prelu import PRelu
from tinyet.ops.quantize import Quantize
from tinyet.ops.requantize import Requantize
from tinyet.ops.resize import Resize, Sampled
from tinyet.ops.rnn import Rnn
from tinyet.ops.slice import Slice
from tinyet.ops.softmax import Softmax
from tinyet.ops.sub import Sub
from tinyet.ops.sum import Sum
from tinyet.ops.unary import Unary
from tinyet.ops.unfold import Unfold
from tinyet.opset import with_cost_models


def supports(target: Target) -> str | None:
    """Why a target cannot have these kernels, or None."""
    has_dsp = "dsp" in target.features
    return arm_target(target) or (None if has_dsp else f"{target.cpu} has no DSP instructions")


HELIUM_CONV2D = (*conv2d_mve.KERNELS, *depthwise_mve.KERNELS)
CONV2D_FOR_FLASH = (
    *winograd.KERNELS,
    *conv2d_tiles.FOR_FLASH,
    *conv2d_k8.KERNELS,
    *depthwise_3x3.WIDE_KERNELS,
)
FOR_FLASH = (*CONV2D_FOR_FLASH, *linear.FOR_FLASH)

COST_MODELS = {
    **cost_models.COST_MODELS,
    **conv2d_mve.COST_MODELS,
    **conv2d_s16_mve.COST_MODELS,
    **depthwise_mve.COST_MODELS,
    **depthwise_s16_mve.COST_MODELS,
    **linear_mve.COST_MODELS,
    **linear_s16_mve.COST_MODELS,
    **pool_mve.COST_MODELS,
    **cost_models_depthwise.COST_MODELS,
    **cost_models_flash.COST_MODELS,
    **cost_models_pixels.COST_MODELS,
    **cost_models_rows.COST_MODELS,
    **cost_models_transposed.COST_MODELS,
    **cost_models_pooling.COST_MODELS,
    **cost_models_s16.COST_MODELS,
    **cost_models_shared.COST_MODELS,
}

CORTEX_M = Delegate(
    "cortex_m",
    {
        Conv2d: with_cost_models(
            (
                *HELIUM_CONV2D,
                *slabs_mve.KERNELS,
                *depthwise_3x3.KERNELS,
                *conv2d_s8.KERNELS,
                *conv2d_tiles.KERNELS,
                *CONV2D_FOR_FLASH,
                *(replace(kernel, dtypes="s8_w4") for kernel in HELIUM_CONV2D if kernel.dtypes == "s8"),
                *depthwise_3x3.NIBBLE_KERNELS,
                *conv2d_tiles.INT4_KERNELS,
                *(replace(kernel, dtypes="s8_w4") for kernel in (*conv2d_tiles.KERNELS, *CONV2D_FOR_FLASH)),
                *conv2d_s16_mve.KERNELS,
                *depthwise_s16_mve.KERNELS,
                *wide_sums_mve.CONV2D_KERNELS,
                *depthwise_s16.KERNELS,
                *conv2d_s16.KERNELS,
                *conv2d_s16.WIDE_KERNELS,
            ),
            COST_MODELS,
        ),
        ConvTranspose2d: with_cost_models(
            (*conv_transpose2d_mve.KERNELS, *conv_transpose2d.KERNELS), COST_MODELS
        ),
        Linear: with_cost_models(
            (
                *linear_mve.KERNELS,
                *linear.KERNELS,
                *linear.FOR_FLASH,
                *(replace(kernel, dtypes="s8_w4") for kernel in linear_mve.KERNELS if kernel.dtypes == "s8"),
                *linear_w4.KERNELS,
                *linear_w4.WIDE_KERNELS,
                *linear_s16_mve.KERNELS,
                *wide_sums_mve.LINEAR_KERNELS,
                *linear_s16.KERNELS,
                *linear_s16.WIDE_KERNELS,
            ),
            COST_MODELS,
        ),
        Add: (
            *lut_mve.gathered(add.OP.kernels),
            *elementwise_mve.ADD_KERNELS,
            *elementwise.ADD_KERNELS,
            *elementwise_s16_mve.ADD_KERNELS,
        ),
        Sub: (
            *lut_mve.gathered(sub.OP.kernels),
            *elementwise_mve.SUB_KERNELS,
            *elementwise.SUB_KERNELS,
            *elementwise_s16_mve.SUB_KERNELS,
        ),
        Mul: (
            *lut_mve.gathered(mul.OP.kernels),
            *elementwise_mve.MUL_KERNELS,
            *elementwise.MUL_KERNELS,
            *elementwise_s16_mve.MUL_KERNELS,
        ),
        Div: lut_mve.gathered(div.OP.kernels),
        PRelu: (*lut_mve.gathered(prelu.OP.kernels), *prelu_mve.KERNELS),
        Maximum: (
            *elementwise_mve.MAXIMUM_KERNELS,
            *elementwise.MAXIMUM_KERNELS,
            *elementwise_s16_mve.MAXIMUM_KERNELS,
        ),
        Minimum: (
            *elementwise_mve.MINIMUM_KERNELS,
            *elementwise.MINIMUM_KERNELS,
            *elementwise_s16_mve.MINIMUM_KERNELS,
        ),
        Clamp: (
            *elementwise_mve.CLAMP_KERNELS,
            *lut_mve.gathered(clamp.OP.kernels),
            *elementwise.CLAMP_KERNELS,
            *elementwise_s16_mve.CLAMP_KERNELS,
        ),
        Requantize: (
            *lut_mve.gathered(requantize.OP.kernels),
            *elementwise.REQUANTIZE_KERNELS,
            *elementwise_s16_mve.REQUANTIZE_KERNELS,
        ),
        Quantize: quantize_mve.QUANTIZE_KERNELS,
        Dequantize: quantize_mve.DEQUANTIZE_KERNELS,
        MatMul: (*matmul_mve.KERNELS, *matmul_s16_mve.KERNELS),
        LayerNorm: layer_norm_mve.KERNELS,
        BatchNorm: (*batch_norm_mve.KERNELS, *elementwise.BATCH_NORM_KERNELS),
        Permute: (*transpose_mve.KERNELS, *copy_runs_mve.PERMUTE_KERNELS),
        Slice: copy_runs_mve.SLICE_KERNELS,
        Expand: copy_runs_mve.EXPAND_KERNELS,
        Flip: copy_runs_mve.FLIP_KERNELS,
        Unfold: copy_runs_mve.UNFOLD_KERNELS,
        Resize: resize.KERNELS,
        Sampled: resize.KERNELS,
        Softmax: softmax.KERNELS,
        LogSoftmax: softmax.LOG_KERNELS,
        LogBands: log_bands_mve.KERNELS,
        AvgPool2d: with_cost_models((*pool_mve.AVERAGE_KERNELS, *pool.AVERAGE_KERNELS), COST_MODELS),
        MaxPool2d: with_cost_models((*pool_mve.MAX_KERNELS, *pool.MAX_KERNELS), COST_MODELS),
        AdaptiveAvgPool2d: adaptive_pool_mve.KERNELS,
        Mean: with_cost_models((*sum_mve.MEAN_KERNELS, *pool.MEAN_KERNELS), COST_MODELS),
        Sum: with_cost_models((*sum_mve.SUM_KERNELS, *pool.SUM_KERNELS), COST_MODELS),
        Amax: select_mve.AMAX_KERNELS,
        Amin: select_mve.AMIN_KERNELS,
        ArgMax: select_mve.ARGMAX_KERNELS,
        Unary: lut_mve.KERNELS,
        Lstm: (*recurrent.LSTM, recurrent_s16_mve.LSTM),
        Gru: (*recurrent.GRU, recurrent_s16_mve.GRU),
        Rnn: (*recurrent.RNN, recurrent_s16_mve.RNN),
    },
    supports,
)
