# SPDX-License-Identifier: Apache-2.0
"""A C++ header that shows the model under the names of TensorFlow Lite Micro, for applications that were written for
it. The interface is in firmware/include/tinyet_tflm.h, the same for all models; the model's tensors and functions are
generated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyet.assets.templating import render
from tinyet.deployment import Deployment
from tinyet.emit.facts import ModelFacts
from tinyet.emit.kinds.tree import TFLM_COMMON, firmware, tflm_header
from tinyet.emit.literals import real
from tinyet.errors import UsageError
from tinyet.ir import DType, Graph, QuantParams, Tensor
from tinyet.ops.lookup import Lookup
from tinyet.version import __version__

_TYPES = {
    DType.FLOAT32: "kTfLiteFloat32",
    DType.INT8: "kTfLiteInt8",
    DType.UINT8: "kTfLiteUInt8",
    DType.INT16: "kTfLiteInt16",
    DType.INT32: "kTfLiteInt32",
    DType.UINT32: "kTfLiteUInt32",
}
# uint8 and int8 of the same real numbers: entry i of a table that converts one to the other.
_FLIPPED = (np.arange(256, dtype=np.uint8) ^ 0x80).tobytes()


@dataclass(frozen=True)
class _TensorView:
    """An input or output as the template prints it. scale: of C; 0.0f where it is not quantized."""

    comment: str
    sizes: str
    rank: int
    scale: str
    zero_point: int
    type: str


def tflm_files(deployment: Deployment, facts: ModelFacts) -> dict[str, str]:
    """The header and what it includes: file name → text. They go beside the model's own header.

    Raises UsageError: the model takes its input row by row, which TFLM has no call for, its memory or its
    buffers from the caller, or has an arena in two memories.
    """
    if facts.tiled_input is not None:
        raise UsageError(
            "a model that takes its input row by row cannot be called as one of TensorFlow Lite Micro",
            "--tflm-header",
            "leave --tflm-header or --input-rows away",
        )
    if facts.ends:
        raise UsageError(
            "applications of TensorFlow Lite Micro ask the model for its inputs and outputs",
            "--tflm-header",
            "leave --tflm-header or --buffers away",
        )
    if facts.context:
        raise UsageError(
            "applications of TensorFlow Lite Micro know one instance of a model, with memory of its own",
            "--tflm-header",
            "leave --tflm-header or --context away",
        )
    if facts.second_from is not None:
        raise UsageError(
            "applications of TensorFlow Lite Micro know one arena of a model, and this one is in two memories",
            "--tflm-header",
            "leave --tflm-header away, or --place arena=MEMORY",
        )
    graph = deployment.graph
    context = {
        "version": __version__,
        "facts": facts,
        "inputs": [_view(tensor, graph) for tensor in graph.user_inputs],
        "outputs": [_view(tensor, graph) for tensor in graph.user_outputs],
    }
    return {
        tflm_header(facts.name): render("model/tflm.h.j2", context),
        TFLM_COMMON: firmware(f"include/{TFLM_COMMON}"),
    }


def _view(tensor: Tensor, graph: Graph) -> _TensorView:
    quant = tensor.type.quant or _bytes_quant(tensor, graph)
    # A scalar has one element, and C no empty array.
    sizes = tensor.shape or (1,)
    return _TensorView(
        comment=f"{tensor.name}, {tensor.type}",
        sizes=", ".join(map(str, sizes)),
        rank=len(tensor.shape),
        scale="0.0f" if quant is None else real(quant.one_scale),
        zero_point=0 if quant is None else quant.one_zero_point,
        type=_TYPES[tensor.dtype],
    )


def _bytes_quant(tensor: Tensor, graph: Graph) -> QuantParams | None:
    """The quantization that the bytes of a uint8 tensor represent, where a table converts them to or from int8: the
    same scale, and a zero point higher by 128. None for other bytes."""
    if tensor.dtype is not DType.UINT8:
        return None
    for node in graph.nodes:
        if not isinstance(node.attrs, Lookup) or tensor not in (node.inputs[0], node.outputs[0]):
            continue
        table, other = node.inputs[1], node.outputs[0] if tensor is node.inputs[0] else node.inputs[0]
        if table is None or other is None or not table.is_constant or other.type.quant is None:
            continue
        if table.array.tobytes() == _FLIPPED:
            quant = other.type.quant
            return QuantParams.per_tensor(quant.one_scale, quant.one_zero_point + 128)
    return None
