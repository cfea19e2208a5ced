# SPDX-License-Identifier: Apache-2.0
"""How each operator of the graph is in torch: the one table. What has no row is refused."""

from __future__ import annotations

import operator
from collections.abc import Mapping

import torch
from torch import nn

from tinyet.ir import Attrs
from tinyet.ops.adaptive_avg_pool2d import AdaptiveAvgPool2d
from tinyet.ops.add import Add
from tinyet.ops.amax import Amax
from tinyet.ops.amin import Amin
from tinyet.ops.argmax import ArgMax
from tinyet.ops.argsort import ArgSort
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.batch_norm import BatchNorm
from tinyet.ops.cast import Cast
from tinyet.ops.clamp import Clamp
from tinyet.ops.compare import Compare
from tinyet.ops.concat import Concat
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.copy import Copy
from tinyet.ops.cumsum import CumSum
from tinyet.ops.div import Div
from tinyet.ops.embedding import Embedding
from tinyet.ops.expand import Expand
from tinyet.ops.flip import Flip
from tinyet.ops.gather import Gather
from tinyet.ops.gru import Gru
from tinyet.ops.layer_norm import LayerNorm
from tinyet.ops.linear import Linear
from tinyet.ops.log_softmax import LogSoftmax
from tinyet.ops.lstm import Lstm
from tinyet.ops.matmul import MatMul
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.maximum import Maximum
from tinyet.ops.mean import Mean
from tinyet.ops.minimum import Minimum
from tinyet.ops.mul import Mul
from tinyet.ops.pad import Pad
from tinyet.ops.pairwise import Pairwise
from tinyet.ops.permute import Permute
from tinyet.ops.prelu import PRelu
from tinyet.ops.reshape import Reshape
from tinyet.ops.resize import Resize
from tinyet.ops.rnn import Rnn
from tinyet.ops.slice import Slice
from tinyet.ops.softmax import Softmax
from tinyet.ops.state_write import StateWrite
from tinyet.ops.sub import Sub
from tinyet.ops.sum import Sum
from tinyet.ops.svdf import Svdf
from tinyet.ops.tree_ensemble import TreeEnsemble
from tinyet.ops.unary import Unary
from tinyet.ops.unfold import Unfold
from tinyet.ops.where import Where
from tinyet.to_module import elementwise, images, layers, recurrent, shapes
from tinyet.to_module.build import Handler

HANDLERS: Mapping[type[Attrs], Handler] = {
    AdaptiveAvgPool2d: images.adaptive_avg_pool2d,
    Add: elementwise.arithmetic(operator.add),
    Amax: elementwise.reduction(torch.amax),
    Amin: elementwise.reduction(torch.amin),
    ArgMax: elementwise.argmax,
    ArgSort: elementwise.argsort,
    AvgPool2d: images.avg_pool2d,
    BatchNorm: layers.batch_norm,
    Cast: elementwise.cast,
    Clamp: elementwise.clamp,
    Compare: elementwise.compare,
    Concat: shapes.concat,
    Conv2d: layers.conv2d,
    ConvTranspose2d: layers.conv_transpose2d,
    Copy: shapes.copy,
    CumSum: shapes.cumsum,
    Div: elementwise.arithmetic(operator.truediv),
    Embedding: layers.embedding,
    Expand: shapes.expand,
    Flip: shapes.flip,
    Gather: shapes.gather,
    Gru: recurrent.gru,
    LayerNorm: layers.layer_norm,
    Linear: layers.linear,
    LogSoftmax: elementwise.along(nn.LogSoftmax),
    Lstm: recurrent.lstm,
    MatMul: layers.matmul,
    MaxPool2d: images.max_pool2d,
    Maximum: elementwise.extremum(torch.maximum, "min"),
    Mean: elementwise.reduction(torch.mean),
    Minimum: elementwise.extremum(torch.minimum, "max"),
    Mul: elementwise.arithmetic(operator.mul),
    PRelu: layers.prelu,
    Pad: shapes.pad,
    Pairwise: elementwise.pairwise,
    Permute: shapes.permute,
    Reshape: shapes.reshape,
    Resize: images.resize,
    Rnn: recurrent.rnn,
    Slice: shapes.slice_,
    Softmax: elementwise.along(nn.Softmax),
    StateWrite: shapes.copy,
    Sub: elementwise.arithmetic(operator.sub),
    Sum: elementwise.reduction(torch.sum),
    Svdf: recurrent.svdf,
    TreeEnsemble: layers.tree_ensemble,
    Unary: elementwise.unary,
    Unfold: shapes.unfold,
    Where: elementwise.where,
}
