# SPDX-License-Identifier: Apache-2.0
"""ATen operators → core ATen operators, and those that are one kernel on the device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._C import DispatchKey
from torch._export import utils
from torch._ops import OperatorBase
from torch.export import ExportedProgram

from tinyet.fx.expansions import SPELLED

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
    upsample_bicubic2d upsample_trilinear3d upsample_nearest3d _upsample_bilinear2d_aa stft
    cross_entropy_loss nll_loss_nd rrelu embedding_bag
    """.split()  # noqa: SIM905
)
"""Operators that cannot be lowered either way, so that they are refused once and by their user's name, not part by
part."""


def decomposition_table() -> dict[Any, Any]:
    """torch's table of core ATen decompositions without the operators of `KEPT_WHOLE` and
    `REFUSED_WHOLE`, and with `SPELLED`."""
    kept = {f"aten::{name}" for name in KEPT_WHOLE | REFUSED_WHOLE}
    table: Any = torch.export.default_decompositions()
    for op in list(table):
        schema = getattr(op, "_schema", None)
        if schema is not None and schema.name in kept:
            table.pop(op)
    table.update(SPELLED)
    decompositions: dict[Any, Any] = table
    return decompositions


_LIST_OPERATORS = getattr(utils, "_materialize_cpp_cia_ops", None)
"""torch's function that makes a Python object of every composite operator the dispatcher knows."""


@contextmanager
def _operators_listed_once() -> Iterator[None]:
    """torch lists all composite operators anew for each of its 33 namespaces, twice: a quarter of the time that a
    capture takes. None is registered meanwhile, so that once will do. A torch without this function works as it does.
    """
    if _LIST_OPERATORS is None:
        yield
        return
    _LIST_OPERATORS()
    utils._materialize_cpp_cia_ops = lambda: None
    try:
        yield
    finally:
        utils._materialize_cpp_cia_ops = _LIST_OPERATORS


@contextmanager
def _kernels_noted_quickly() -> Iterator[None]:
    """torch notes eleven thousand kernels for one decomposition, and builds the types of two annotations for each: more
    than half of the time that noting takes. Here are none."""
    original = OperatorBase.py_impl

    def py_impl(self: OperatorBase, key: Any) -> Any:
        if type(key) is not DispatchKey or key == DispatchKey.Python or key in self.py_kernels:
            return original(self, key)

        def note(kernel: Any) -> Any:
            self.py_kernels[key] = kernel
            self._dispatch_cache.clear()
            return kernel

        return note

    OperatorBase.py_impl = py_impl  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        OperatorBase.py_impl = original  # type: ignore[method-assign]


def decompose(program: ExportedProgram) -> ExportedProgram:
    """The program, functional, of core ATen operators and those of `KEPT_WHOLE`. Raises what torch raises."""
    with _operators_listed_once(), _kernels_noted_quickly():
        core: ExportedProgram = program.run_decompositions(decomposition_table())
    return core
