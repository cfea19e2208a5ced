# SPDX-License-Identifier: Apache-2.0
"""A compiled module inside a larger `nn.Module`.

It runs eagerly through the host reference, exports as one node, `tinyet::lowered`, and becomes one Region when the
module around it is compiled. The graph travels beside torch: the node holds its content's hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from tinyet import numerics, ops
from tinyet.errors import DataError, ModelError, RefusedError
from tinyet.importers.torch.context import Args, Context, Handler, Value
from tinyet.ir import Array, DType, Graph, Node, Tensor, TensorType, to_text
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.quantize import Quantize
from tinyet.ops.region import Region, without_key
from tinyet.opset import delegate_name

_GRAPHS: dict[str, Graph] = {}

_TORCH = {
    DType.FLOAT32: torch.float32,
    DType.INT32: torch.int64,
    DType.INT8: torch.int8,
    DType.UINT8: torch.uint8,
    DType.INT16: torch.int16,
}


def content_hash(graph: Graph) -> str:
    """SHA-256 of the graph's text and its constants, as 64 hex digits."""
    digest = hashlib.sha256(to_text(graph).encode())
    for tensor in graph.constants:
        digest.update(np.ascontiguousarray(tensor.array).tobytes())
    return digest.hexdigest()


def graph_of(key: str) -> Graph:
    """The graph with this hash. Raises ModelError when no LoweredModule of this process holds it."""
    graph = _GRAPHS.get(key)
    if graph is None:
        raise ModelError(
            f"the program calls a lowered module ({key[:12]}…) that this process does not hold",
            hint="load or make that LoweredModule first, then compile the program",
        )
    return graph


class LoweredModule(nn.Module):
    """A module that is compiled already, for one delegate. `tinyet.lower` makes it.

    Its inputs and outputs are torch's: float32 tensors where the compiled graph is quantized, with the shapes it was
    compiled for. It computes exactly what the firmware will.
    """

    def __init__(self, graph: Graph, delegate: str) -> None:
        super().__init__()
        self.graph = graph
        self.delegate = delegate
        self.key = content_hash(graph)
        _GRAPHS.setdefault(self.key, graph)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor | list[torch.Tensor]:
        outputs = torch.ops.tinyet.lowered(list(inputs), self.key, self.delegate)
        return outputs[0] if len(outputs) == 1 else list(outputs)

    def extra_repr(self) -> str:
        return f"delegate={self.delegate!r}, nodes={[node.op for node in self.graph.nodes]}"

    def __setstate__(self, state: dict[str, object]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]  # torch's own has no annotations
        _GRAPHS.setdefault(self.key, self.graph)


@torch.library.custom_op("tinyet::lowered", mutates_args=())
def lowered(inputs: list[torch.Tensor], key: str, delegate: str) -> list[torch.Tensor]:
    """The host reference of a lowered module."""
    graph = graph_of(key)
    _check(graph, inputs)
    arrays = [_to_integer(x, t) for x, t in zip(inputs, graph.inputs, strict=True)]
    region = Node(Region(delegate_name(delegate), graph), graph.inputs, graph.outputs)
    results = ops.evaluate(region, arrays)
    return [_to_torch(array, t) for array, t in zip(results, graph.outputs, strict=True)]


@lowered.register_fake
def _(inputs: list[torch.Tensor], key: str, delegate: str) -> list[torch.Tensor]:  # noqa: ARG001 - the op's signature
    graph = graph_of(key)
    _check(graph, inputs)
    return [torch.empty(t.shape, dtype=_torch_dtype(t)) for t in graph.outputs]


def _torch_dtype(tensor: Tensor) -> torch.dtype:
    return torch.float32 if tensor.type.quant is not None else _TORCH[tensor.dtype]


def _check(graph: Graph, inputs: Sequence[torch.Tensor]) -> None:
    given = [tuple(x.shape) for x in inputs]
    wanted = [t.shape for t in graph.inputs]
    if given != wanted:
        raise DataError(
            f"the lowered module {graph.name} takes tensors of shapes {wanted}, got {given}",
            hint="shapes are fixed when a module is lowered: lower it again with these",
        )


def _to_integer(x: torch.Tensor, tensor: Tensor) -> Array:
    values = x.detach().cpu().numpy()
    if tensor.type.quant is not None:
        return numerics.quantize(values.astype(np.float32), tensor.type)
    return np.asarray(values.astype(tensor.dtype.numpy))


def _to_torch(array: Array, tensor: Tensor) -> torch.Tensor:
    if tensor.type.quant is not None:
        array = numerics.dequantize(array, tensor.type.quant)
    return torch.from_numpy(np.ascontiguousarray(array)).to(_torch_dtype(tensor))


# ---------------------------------------------------------------- import


def _lowered_row(ctx: Context, a: Args) -> Value:
    """One Region, with a Quantize before each input that it takes quantized and a Dequantize behind such outputs."""
    graph = graph_of(a["key"])
    inputs: list[Tensor] = []
    for argument, wanted in zip(a["inputs"], graph.inputs, strict=True):
        x = ctx.tensor(argument)
        if wanted.type.quant is not None:
            x = ctx.emit(
                Quantize(),
                [x],
                wanted.shape,
                wanted.dtype,
                wanted.type.quant,
                f"{ctx.node.name}_{wanted.name}",
            )
        if x.type != wanted.type:
            raise RefusedError(f"reads {x.type} where the lowered module wants {wanted.type}")
        inputs.append(x)
    outputs = [
        Tensor(ctx.name(f"{ctx.node.name}_{t.name}"), TensorType(t.shape, t.dtype, t.type.quant))
        for t in graph.outputs
    ]
    inside = dict.fromkeys(without_key(o) for node in graph.nodes for o in node.origins)
    ctx.append(Region(delegate_name(a["delegate"]), graph), inputs, outputs, tuple(inside))
    return tuple(
        ctx.emit(Dequantize(), [t], t.shape, name=f"{t.name}_real") if t.type.quant is not None else t
        for t in outputs
    )


LOWERED_HANDLERS: dict[object, Handler] = {torch.ops.tinyet.lowered.default: _lowered_row}
