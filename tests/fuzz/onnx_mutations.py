# SPDX-License-Identifier: Apache-2.0
"""Changes of parsed .onnx files: nodes, attributes, wiring, constants, types, shapes, names, domains; and of bytes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.importers.onnx_models import helper, onnx
from tinyet.importers.onnx.fold import FOLDED
from tinyet.importers.onnx.handlers import ALL
from tinyet.importers.onnx.qoperator import TAKEN

NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    7,
    -2,
    127,
    255,
    4096,
    1 << 16,
    1 << 20,
    (1 << 31) - 1,
    1 << 40,
    -(1 << 63),
    (1 << 63) - 1,
)
REALS = (0.0, -1.0, 1.0, 0.5, 1e-45, 1e30, -1e30, float("inf"), float("-inf"), float("nan"), 0.02)
WORDS = (
    "",
    "constant",
    "reflect",
    "edge",
    "SAME_UPPER",
    "VALID",
    "linear",
    "nearest",
    "floor",
    "bidirectional",
    "x\n  at: y",
    "CRD",
    "bchw,hw->bc",
    "ij,jk",
)
NAMES = (
    "", "x", "inputs/a", "steps/b", "place/c", "a/b/../c", "forward", "_modules", "x\n  at: evil\n  do: it",
    "\x1b[2J", "*/ int pwned;", "e" * 600, "while", "0/1", "training", "net::a.b",
)  # fmt: skip
DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft", "my.own", "x\n  at: y")
OPS = tuple(
    sorted(
        {*ALL, *FOLDED, *TAKEN, "Shape", "Constant", "ConstantOfShape", "TopK", "If", "DynamicQuantizeLinear",
         "MatMulInteger", "ConvInteger"}
    )
)  # fmt: skip
ATTRIBUTES = (
    "axis", "axes", "perm", "keepdims", "group", "kernel_shape", "strides", "pads", "dilations", "auto_pad",
    "ceil_mode", "alpha", "beta", "epsilon", "to", "mode", "transA", "transB", "blocksize", "allowzero", "start", "end",
    "hidden_size", "direction", "block_size", "value", "channels_last", "opset", "num_groups", "nearest_mode",
    "equation", "coordinate_transformation_mode",
)  # fmt: skip
MOST = 1 << 16
"""Elements of a constant that a mutant is given."""


def mutated(seed: Any, rng: random.Random) -> tuple[Any, list[str]]:
    """A copy of a model, changed in a few places; what was done."""
    proto = onnx.ModelProto()
    proto.CopyFrom(seed)
    labels = []
    for _ in range(rng.choice((0, 1, 1, 1, 1, 2, 2, 3, 5))):
        change = rng.choice(_CHANGES)
        try:
            labels.append(change(proto, rng))
        except (ValueError, LookupError, TypeError, OverflowError):
            labels.append(f"{change.__name__} had nothing to change")
    return proto, labels


def _node(proto: Any, rng: random.Random) -> Any:
    return rng.choice(proto.graph.node)


def _known(proto: Any) -> list[str]:
    """All names of values."""
    g = proto.graph
    return [
        *(i.name for i in g.input),
        *(t.name for t in g.initializer),
        *(n for node in g.node for n in node.output),
    ]


def attribute(proto: Any, rng: random.Random) -> str:
    node = _node(proto, rng)
    if node.attribute and rng.random() < 0.7:
        given = rng.choice(node.attribute)
        if rng.random() < 0.15:
            node.attribute.remove(given)
            return f"{node.op_type} without {given.name}"
        name, old = given.name, helper.get_attribute_value(given)
        node.attribute.remove(given)
    else:
        name, old = rng.choice(ATTRIBUTES), None
    value = _attribute_value(old, rng)
    node.attribute.append(helper.make_attribute(name, value))
    return f"{node.op_type}.{name} = {str(value)[:40]}"


def _attribute_value(old: Any, rng: random.Random) -> Any:
    if rng.random() < 0.2:
        old = None
    match old:
        case int():
            return rng.choice(NUMBERS)
        case float():
            return rng.choice(REALS)
        case bytes():
            return rng.choice(WORDS)
        case None:
            return rng.choice(
                (
                    rng.choice(NUMBERS),
                    rng.choice(REALS),
                    rng.choice(WORDS),
                    [rng.choice(NUMBERS) for _ in range(rng.randrange(1, 5))],
                )
            )
    changed = list(old) if hasattr(old, "__len__") else [1]
    if changed and rng.random() < 0.6:
        changed[rng.randrange(len(changed))] = rng.choice(NUMBERS)
    else:
        changed = rng.choice((changed[1:], [*changed, 1], [*changed, *changed])) or [1]
    return changed


def rewired(proto: Any, rng: random.Random) -> str:
    node, names = _node(proto, rng), _known(proto)
    match rng.randrange(5):
        case 0:
            at = rng.randrange(len(node.input))
            node.input[at] = rng.choice((*names, "", "nowhere"))
            return f"{node.op_type} reads {node.input[at][:20]!r} as {at}"
        case 1:
            del node.input[rng.randrange(len(node.input)) :]
            return f"{node.op_type} with {len(node.input)} inputs"
        case 2:
            node.input.append(rng.choice((*names, "")))
            return f"{node.op_type} reads one more"
        case 3:
            turned = list(node.input)
            rng.shuffle(turned)
            node.input[:] = turned
            return f"{node.op_type} reads in another order"
    node.output.append(rng.choice((*names, "", "extra")))
    return f"{node.op_type} with {len(node.output)} outputs"


def other_nodes(proto: Any, rng: random.Random) -> str:
    g = proto.graph
    node = _node(proto, rng)
    match rng.randrange(7):
        case 0 | 1:
            old, node.op_type = node.op_type, rng.choice(OPS)
            return f"{old} is {node.op_type}"
        case 2:
            nodes = [onnx.NodeProto.FromString(n.SerializeToString()) for n in g.node if n is not node]
            del g.node[:]
            g.node.extend(nodes)
            return f"without {node.op_type}"
        case 3:
            nodes = list(g.node)
            rng.shuffle(nodes)
            copies = [onnx.NodeProto.FromString(n.SerializeToString()) for n in nodes]
            del g.node[:]
            g.node.extend(copies)
            return "nodes in another order"
        case 4:
            node.domain = rng.choice(DOMAINS)
            return f"{node.op_type} of {node.domain!r}"
        case 5:
            made = helper.make_node(
                rng.choice(OPS),
                [rng.choice(_known(proto)) for _ in range(rng.randrange(1, 4))],
                [f"new{len(g.node)}"],
            )
            g.node.append(made)
            g.output.append(helper.make_tensor_value_info(made.output[0], onnx.TensorProto.FLOAT, None))
            return f"{made.op_type} of {list(made.input)}"
    # In front of who reads it.
    at = rng.randrange(len(g.node))
    node = g.node[at]
    made = helper.make_node(
        rng.choice(OPS), list(node.input[:1]), [f"put{len(g.node)}"], name=f"put/{len(g.node)}"
    )
    rest = [onnx.NodeProto.FromString(n.SerializeToString()) for n in g.node]
    rest[at].input[0] = made.output[0]
    rest.insert(at, made)
    del g.node[:]
    g.node.extend(rest)
    return f"{made.op_type} in front of {node.op_type}"


def constants(proto: Any, rng: random.Random) -> str:
    g = proto.graph
    tensor = rng.choice(g.initializer)
    data = onnx.numpy_helper.to_array(tensor).copy()
    what = rng.randrange(7)
    if what == 0:
        tensor.dims[:] = rng.choice(
            ([*tensor.dims, 1], list(tensor.dims)[1:], [rng.choice(NUMBERS) for _ in tensor.dims] or [3], [0])
        )
        return f"{tensor.name} says {list(tensor.dims)}"
    if what == 1:
        tensor.data_type = rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 21, 22, 99))
        return f"{tensor.name} says type {tensor.data_type}"
    if what == 2:
        g.initializer.remove(tensor)
        return f"without {tensor.name}"
    if what in (3, 4):
        if data.size:
            flat = data.reshape(-1)
            value = rng.choice(REALS) if data.dtype.kind == "f" else rng.choice(NUMBERS)
            with np.errstate(all="ignore"):
                flat[rng.randrange(flat.size)] = np.array(value).astype(data.dtype)
    elif what == 5:
        data = _shaped(data, rng)
    else:
        kinds = (
            "float32",
            "float64",
            "float16",
            "int8",
            "uint8",
            "int16",
            "uint16",
            "int32",
            "int64",
            "bool",
        )
        with np.errstate(all="ignore"):
            data = data.astype(rng.choice(kinds))
    if rng.random() < 0.2:
        made = helper.make_node("Constant", [], [tensor.name], value=onnx.numpy_helper.from_array(data))
        rest = [onnx.NodeProto.FromString(n.SerializeToString()) for n in g.node]
        del g.node[:]
        g.node.extend([made, *rest])
        g.initializer.remove(tensor)
        return f"{tensor.name} by a Constant"
    tensor.CopyFrom(onnx.numpy_helper.from_array(data, tensor.name))
    return f"{tensor.name} is {data.dtype}{data.shape}"


def _shaped(data: Any, rng: random.Random) -> Any:
    match rng.randrange(4):
        case 0:
            return data.reshape((*data.shape, 1))
        case 1:
            return data.reshape(-1)
        case 2:
            return np.concatenate([data, data]) if data.ndim and data.size < MOST else data
    return data[:-1] if data.ndim else data.reshape(1)


def borders(proto: Any, rng: random.Random) -> str:
    g = proto.graph
    which = rng.choice((g.input, g.output))
    value = rng.choice(which)
    kind = value.type.tensor_type
    match rng.randrange(7):
        case 0 | 1:
            dim = rng.choice(kind.shape.dim)
            dim.dim_value = rng.choice(NUMBERS)
            return f"{value.name}: a dimension of {dim.dim_value}"
        case 2:
            rng.choice(kind.shape.dim).dim_param = "n"
            return f"{value.name}: a dimension n"
        case 3:
            kind.elem_type = rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16, 99))
            return f"{value.name}: type {kind.elem_type}"
        case 4:
            value.name = rng.choice((*_known(proto), *NAMES))
            return f"a border is called {value.name[:20]!r}"
        case 5:
            which.remove(value)
            return f"without {value.name}"
    which.add().CopyFrom(helper.make_tensor_value_info(rng.choice((*_known(proto), "more")), 1, [2, 3]))
    return "one more border"


def names(proto: Any, rng: random.Random) -> str:
    node, name = _node(proto, rng), rng.choice(NAMES)
    if rng.random() < 0.5:
        node.name = name
        return f"{node.op_type} is called {name[:20]!r}"
    # A value by another name, wherever it stands.
    old = rng.choice(_known(proto))
    for each in proto.graph.node:
        each.input[:] = [name if n == old else n for n in each.input]
        each.output[:] = [name if n == old else n for n in each.output]
    for each in (*proto.graph.input, *proto.graph.output, *proto.graph.initializer):
        each.name = name if each.name == old else each.name
    return f"{old[:20]!r} is called {name[:20]!r}"


def versions(proto: Any, rng: random.Random) -> str:
    if rng.random() < 0.3:
        proto.ir_version = rng.choice(NUMBERS)
        return f"IR version {proto.ir_version}"
    proto.opset_import[0].version = rng.choice((0, 1, 12, 13, 17, 18, 21, 22, 99, 1 << 40))
    proto.opset_import[0].domain = rng.choice((*DOMAINS[:2], *DOMAINS))
    return f"opset {proto.opset_import[0].version} of {proto.opset_import[0].domain!r}"


def quantization(proto: Any, rng: random.Random) -> str:
    """A scale or zero point of a QuantizeLinear or DequantizeLinear for itself."""
    node = rng.choice([n for n in proto.graph.node if n.op_type in ("QuantizeLinear", "DequantizeLinear")])
    name = f"own{len(proto.graph.initializer)}"
    at = rng.randrange(1, 3)
    if at == 1:
        data = np.array(rng.choice((rng.choice(REALS), [rng.choice(REALS)], [0.1, 0.2])), np.float32)
    else:
        kind = rng.choice(("int8", "uint8", "int16", "int32", "float32", "int4"))
        data = np.array(rng.choice((rng.choice((0, 3, -4, 127, 128)), [0], [1, 2]))).astype(
            "int8" if kind == "int4" else kind
        )
    proto.graph.initializer.append(onnx.numpy_helper.from_array(data, name))
    node.input[at] = name
    return f"{node.op_type} has {data.dtype} {data.tolist()} as {at}"


_CHANGES: Sequence[Callable[[Any, random.Random], str]] = (
    attribute, attribute, attribute, rewired, rewired, other_nodes, other_nodes, other_nodes, constants, constants,
    constants, borders, borders, names, versions, quantization, quantization,
)  # fmt: skip


def damage(data: bytearray, rng: random.Random) -> str:
    at = rng.randrange(len(data))
    match rng.randrange(4):
        case 0:
            del data[at:]
            return f"cut at {at}"
        case 1:
            data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
            return f"byte {at} = {data[at]}"
        case 2:
            end = rng.randrange(at, min(len(data), at + 60) + 1)
            data[at:at] = data[at:end] * rng.choice((1, 2, 50))
            return f"{at} to {end} again"
    data[at] ^= 1 << rng.randrange(8)
    return f"a bit of byte {at}"
