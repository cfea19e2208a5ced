# SPDX-License-Identifier: Apache-2.0
"""ATen operators → core ATen operators, and those that are one kernel on the device."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload
from torch.export import ExportedProgram

from tinyet.fx.expansions import SPELLED
from tinyet.fx.registrations import Registrations
from tinyet.fx.respell import respelled

KEPT_WHOLE: frozenset[str] = frozenset(
    """
    conv1d conv2d conv_transpose1d conv_transpose2d linear matmul addmm
    hardswish hardsigmoid hardtanh silu mish gelu elu selu celu softplus leaky_relu prelu log_sigmoid clamp
    threshold hardshrink softshrink
    softmax log_softmax _safe_softmax layer_norm group_norm instance_norm argmax argmin
    max_pool1d max_pool2d avg_pool1d avg_pool2d adaptive_avg_pool1d adaptive_avg_pool2d
    adaptive_max_pool1d adaptive_max_pool2d upsample_nearest1d upsample_nearest2d upsample_linear1d
    upsample_bilinear2d _upsample_nearest_exact1d _upsample_nearest_exact2d
    pixel_shuffle pixel_unshuffle channel_shuffle im2col pad constant_pad_nd
    reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d
    stack split chunk split_with_sizes unbind embedding index_select select_scatter slice_scatter full_like
    lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
    """.split()  # noqa: SIM905
)
"""Products and convolutions, because quantizer and kernels want the weights in PyTorch's own layout; what is
one table look-up or kernel on the device and three to eight nodes when decomposed; what moves bytes in one
go; recurrent layers, which would be taken apart step by step."""


REFUSED_WHOLE: frozenset[str] = frozenset(
    """
    conv3d conv_transpose3d max_pool3d avg_pool3d bilinear col2im max_unpool2d
    upsample_bicubic2d upsample_trilinear3d upsample_nearest3d _upsample_bilinear2d_aa
    cross_entropy_loss nll_loss_nd rrelu embedding_bag
    """.split()  # noqa: SIM905
)
"""Operators that cannot be lowered either way, so that they are refused once and by their user's name, not part by
part."""


_WHOLE = frozenset(f"aten::{name}" for name in KEPT_WHOLE | REFUSED_WHOLE)


def decomposition_table() -> dict[Any, Any]:
    """torch's table of core ATen decompositions without the operators of `KEPT_WHOLE` and
    `REFUSED_WHOLE`, and with `SPELLED`."""
    table: Any = torch.export.default_decompositions()
    for op in list(table):
        schema = getattr(op, "_schema", None)
        if schema is not None and schema.name in _WHOLE:
            table.pop(op)
    table.update(SPELLED)
    decompositions: dict[Any, Any] = table
    return decompositions


_LEFT = frozenset(
    f"aten::{name}"
    for name in """
    conv1d conv2d conv_transpose1d conv_transpose2d linear matmul softmax log_softmax layer_norm pad prelu
    max_pool1d max_pool2d avg_pool1d adaptive_avg_pool1d adaptive_avg_pool2d
    upsample_nearest1d upsample_nearest2d upsample_linear1d upsample_bilinear2d
    """.split()  # noqa: SIM905
)
"""Composite operators of `KEPT_WHOLE` that torch leaves exactly as they are. Of others (chunk) it makes one that is
kept, too."""


def stays(node: fx.Node, table: Mapping[Any, Any]) -> bool:
    """Whether a decomposition by the table leaves the node as it is: it changes no tensor, is needed, and is neither in
    the table nor composite, but for those of `_LEFT`."""
    if node.op != "call_function":
        return node.op in ("placeholder", "output")
    if not node.users:
        return False
    op = node.target
    if op is operator.getitem:
        return True
    if not isinstance(op, OpOverload) or op in table or op._schema.is_mutable:
        return False
    composite = torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "CompositeImplicitAutograd")
    return not composite or op._schema.name in _LEFT


_REGISTRATIONS = Registrations(decomposition_table)


def decompose(program: ExportedProgram) -> ExportedProgram:
    """The program, functional, of core ATen operators and those of `KEPT_WHOLE`; the same one if it is so already.
    Raises what torch raises."""
    # An operator that the table lacks, because it was registered since, is composite.
    table = _REGISTRATIONS.known()
    others = {node for node in program.graph.nodes if not stays(node, table)}
    if not others:
        return program
    core = respelled(program, others)
    if core is None:
        with _REGISTRATIONS.within() as table:
            core = program.run_decompositions(table)
    return core
