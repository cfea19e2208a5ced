# SPDX-License-Identifier: Apache-2.0
"""An ONNX model, in float or quantized → Graph.

The rule of a quantized one, with QuantizeLinear and DequantizeLinear between its operators, is ONNX Runtime's: an
operator whose inputs come from DequantizeLinear nodes and whose output goes into one QuantizeLinear is one operator of
integers, where ONNX Runtime has one; the others compute in float32, as all of a float model. The graph is in the
integers of the file, except that uint8 activations are kept as int8, less 128.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from tinyet.errors import Complaints, RefusedError
from tinyet.importers.onnx.context import WIDE_LAYERS, Context
from tinyet.importers.onnx.dynamic import as_layers
from tinyet.importers.onnx.fold import FOLDED, constant_of, filled, folded
from tinyet.importers.onnx.handlers import ALL, handler_of
from tinyet.importers.onnx.handlers_shape import moved, tensor_of
from tinyet.importers.onnx.handlers_whole import truth
from tinyet.importers.onnx.qoperator import as_qdq
from tinyet.importers.onnx.read import OnnxModel, OnnxNode, OnnxValue
from tinyet.importers.onnx.values import Bytes, Integers, Numbers, Scale, Value, shape_of
from tinyet.ir import ITSELF, Array, DType, Graph, Note, Tensor, TensorType
from tinyet.ops.copy import Copy
from tinyet.ops.lookup import Lookup

_FLIPPED: Array = (np.arange(256) ^ 128).astype(np.uint8).reshape(1, 256)
"""Each byte with its highest bit turned over: uint8 less 128 as int8, and back."""


def import_model(
    model: OnnxModel,
    *,
    name: str,
    exact: bool = False,
    float_io: bool = False,
    channels_last: bool = False,
) -> tuple[Graph, tuple[Note, ...]]:
    """The model as a Graph called `name`, and notes about it.

    exact: refuse nodes that may differ from ONNX Runtime by a last bit, instead of noting them. float_io: inputs and
    outputs that the model has in float32 stay so; else they are the integers behind and before them. channels_last:
    images, inputs of four dimensions, are (N, H, W, C) in memory.

    Raises UnsupportedOp (UnsupportedShape, when every operator is known but some arguments are not) with all complaints
    at once.
    """
    model = as_layers(as_qdq(model))
    ctx, complaints = Context(model, exact), Complaints(model.file)
    for title, data in model.constants.items():
        ctx.values[title] = Numbers(data, None, title)
    inputs = _inputs(ctx, complaints, float_io, channels_last)
    _walk(ctx, complaints)
    complaints.raise_any()
    outputs = _outputs(ctx, complaints, float_io)
    complaints.raise_any()
    graph = Graph(name, tuple(inputs), tuple(outputs), tuple(ctx.nodes))
    said = (*model.notes, *([WIDE_LAYERS] if model.has_int16 else []))
    return graph, (*(Note(text) for text in said), *ctx.notes)


def _scale_behind(ctx: Context, name: str, op: str) -> Scale | None:
    """The scale of the first node of this kind that reads a value, as far as its scale is a constant of the file."""
    for node in ctx.readers.get(name, []):
        if node.op == op and node.inputs[0] == name:
            return ctx.scale_of(node)
    return None


def _inputs(ctx: Context, complaints: Complaints, float_io: bool, channels_last: bool) -> list[Tensor]:
    inputs: list[Tensor] = []

    def take(value: OnnxValue) -> None:
        images = channels_last and len(value.shape) == 4
        shape = tuple(value.shape[axis] for axis in (0, 2, 3, 1)) if images else value.shape
        tensor, found = _input(ctx, replace(value, shape=shape), float_io)
        ctx.values[value.name] = (
            moved(found, ctx.permute(tensor_of(ctx, found), (0, 3, 1, 2))) if images else found
        )
        inputs.append(tensor)

    for value in ctx.model.inputs:
        complaints.attempt(f"input {value.name}", partial(take, value))
    return inputs


def _input(ctx: Context, value: OnnxValue, float_io: bool) -> tuple[Tensor, Value]:
    """The graph's input, and the value that the nodes read."""
    title = ctx.name(value.name)
    ctx.budget.run(math.prod(value.shape), 4 * math.prod(value.shape))
    if value.dtype in ("float32", "float64", "float16"):
        quantizers = ctx.quantizers(value.name)
        if float_io or quantizers is None:
            plain = Tensor(title, TensorType(value.shape, DType.FLOAT32))
            return plain, plain
        scale = ctx.scale_of(quantizers[0])
        if scale.is_wide:  # made integers when the operators are
            plain = Tensor(title, TensorType(value.shape, DType.FLOAT32))
            return plain, plain
        tensor = Tensor(title, TensorType(value.shape, DType.INT8, scale.per_tensor()))
        return tensor, Integers(tensor, scale.dtype == "uint8")
    if value.dtype in ("int8", "uint8"):
        found = _scale_behind(ctx, value.name, "DequantizeLinear")
        if found is not None and found.dtype == value.dtype:
            kind = TensorType(value.shape, DType.INT8, found.per_tensor())
            if value.dtype == "int8":
                tensor = Tensor(title, kind)
                return tensor, Integers(tensor, False)
            tensor = Tensor(title, TensorType(value.shape, DType.UINT8))
            return tensor, Integers(_flip(ctx, tensor, kind), True)
        if value.dtype == "uint8":
            tensor = Tensor(title, TensorType(value.shape, DType.UINT8))
            return tensor, tensor
    if value.dtype in ("int8", "int16"):
        tensor = Tensor(title, TensorType(value.shape, DType(value.dtype), ITSELF))
        return tensor, tensor
    if value.dtype in ("int32", "int64", "bool"):
        tensor = Tensor(title, TensorType(value.shape, DType.INT32))
        # Callers have many ways to say true.
        return tensor, truth(ctx, tensor) if value.dtype == "bool" else tensor
    raise RefusedError(f"is {value.dtype}", "take int32, or float32")


def _flip(ctx: Context, x: Tensor, kind: TensorType) -> Tensor:
    """uint8 as int8 of the same real numbers, or back."""
    held = Tensor(
        ctx.name(f"{x.name}_table"),
        TensorType((1, 256), kind.dtype, kind.quant),
        _FLIPPED.view(kind.dtype.numpy),
    )
    return ctx.emit_as(Lookup(0), [x, held], kind, f"{x.name}_{kind.dtype.value}")


def _walk(ctx: Context, complaints: Complaints) -> None:
    """The handlers over all nodes that an output depends on. For nodes that read a refused input, or the results of a
    refused node, only the operator's name is checked."""
    refused = {value.name for value in ctx.model.inputs if value.name not in ctx.values}
    used = _used(ctx.model)
    for node in ctx.model.nodes:
        if node not in used:
            continue
        ctx.enter(node)
        if refused & set(node.inputs):
            refused |= set(node.outputs)
            if not is_known(node.op):
                complaints.add(node.title, unsupported(node.op))
        elif not complaints.attempt(node.title, partial(_run_handler, ctx, node)):
            refused |= set(node.outputs)
            if ctx.budget.is_spent:
                break
    ctx.enter(None)


def _run_handler(ctx: Context, node: OnnxNode) -> None:
    results = _results(ctx, node)
    given = [n for n in node.outputs if n]
    for title, value in zip(given, results, strict=False):
        ctx.values[title] = value
    missing = [n for n in given[len(results) :] if n in ctx.readers or n in ctx.model.outputs]
    if missing:
        raise RefusedError(f"gives {len(given)} outputs", "leave all but the first away")


def _results(ctx: Context, node: OnnxNode) -> Sequence[Value]:
    if node.op == "Constant":
        return [Numbers(constant_of(node), None, node.outputs[0])]
    if node.op == "Shape":
        shape = np.array(shape_of(ctx.value(0)), np.int64)
        return [Numbers(shape[slice(ctx.attribute("start", 0), ctx.attribute("end", len(shape)))])]
    if node.op == "ConstantOfShape":
        return [Numbers(filled(node, ctx.constant(0, "shape").data, ctx.budget))]
    given = [ctx.values[name] if name else None for name in node.inputs]
    numbers = [None if v is None else v.real for v in given if v is None or isinstance(v, Numbers)]
    if node.op in FOLDED and len(numbers) == len(given) and given:
        return [
            Numbers(x, None, n)
            for x, n in zip(folded(node, numbers, ctx.model.opset, ctx.budget), node.outputs, strict=False)
        ]
    handler = handler_of(node.op, given)
    if handler is None:
        raise unsupported(node.op)
    result = handler(ctx)
    return list(result) if isinstance(result, (list, tuple)) else [result]  # type: ignore[list-item]


def is_known(op: str) -> bool:
    """Whether there is a way to take an operator: a handler, or a rule for constants."""
    return op in ALL or op in FOLDED or op in ("Constant", "Shape", "ConstantOfShape")


def unsupported(op: str) -> RefusedError:
    """The message for an operator without a handler."""
    return RefusedError("is not supported", advice(op), shape=False)


def advice(op: str) -> str:
    """The advice for an operator without a handler."""
    if op.startswith("ai.onnx.ml."):
        return "tinyet.from_sklearn takes more models than their conversions: docs/classical.md"
    if "." in op:
        return "export it as ONNX's own operators; functions: onnx.inliner.inline_local_functions"
    if op.startswith(("DynamicQuantize", "ConvInteger", "MatMulInteger")):
        return (
            "layers quantized at run time are taken as quantize_dynamic writes them: MatMulInteger or ConvInteger of a "
            "DynamicQuantizeLinear, Cast, Mul by both scales; else use quantize_static, or the float model"
        )
    if op.startswith(("QLinear", "QGemm", "QAttention")):
        return "it is not known in the QOperator format: quantize with quant_format=QuantFormat.QDQ"
    if op in ("If", "Loop", "Scan"):
        return "export without control flow"
    return ""


def _used(model: OnnxModel) -> set[OnnxNode]:
    """The nodes on which an output depends."""
    makers = {name: node for node in model.nodes for name in node.outputs if name}
    used: set[OnnxNode] = set()
    stack = [makers[name] for name in model.outputs if name in makers]
    while stack:
        node = stack.pop()
        if node not in used:
            used.add(node)
            stack += [makers[name] for name in node.inputs if name in makers]
    return used


def _held(ctx: Context, value: Numbers, title: str) -> Tensor:
    """A constant that is an output: real numbers in float32, integers as they are."""
    if value.scale is not None or value.data.dtype.kind == "f":
        return ctx.real(value)
    # The file does not state their scale, so they are plain integers.
    as_it_is = ITSELF if value.data.dtype in (np.int8, np.int16) else None
    return ctx.held(title, value.data, as_it_is)


def _outputs(ctx: Context, complaints: Complaints, float_io: bool) -> list[Tensor]:
    outputs: list[Tensor] = []
    made = {tensor for node in ctx.nodes for tensor in node.outputs}
    for title in ctx.model.outputs:
        try:
            value = ctx.values[title]
            if isinstance(value, Numbers):
                tensor = _held(ctx, value, title)
            elif isinstance(value, Bytes) and (value.functions or float_io):
                tensor = ctx.real(value)
            elif isinstance(value, Integers) and value.unsigned:
                tensor = _flip(ctx, value.tensor, TensorType(value.tensor.shape, DType.UINT8))
            else:
                tensor = value if isinstance(value, Tensor) else value.tensor
            made |= {t for node in ctx.nodes for t in node.outputs}
            # An output has a place of its own, even where the model hands an input or a constant through.
            if tensor in outputs or tensor not in made:
                tensor = ctx.emit(Copy(), [tensor], name=f"{title}_out")
            outputs.append(tensor)
        except RefusedError as error:
            complaints.add(f"output {title}", error)
    return outputs
