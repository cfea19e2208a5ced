# SPDX-License-Identifier: Apache-2.0
"""Simplifies a captured graph before it is quantized: fewer kinds of nodes, same values.

Batch norms disappear here. One behind a convolution or a linear layer that nothing else reads is folded into
the weights; any other becomes a depthwise convolution of one tap, which is what it computes, and which
quantizes with one scale a channel. (torchao folds too, but also where the convolution has other readers or
shares its weights, which changes results, and spends a minute on each batch norm that it cannot fold.)
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx, nn

from tinyet.fx.exact import call, widen
from tinyet.fx.origins import origin_of, stamp_node

aten = torch.ops.aten

_CONVOLUTIONS: dict[object, bool] = {
    aten.conv1d.default: False,
    aten.conv2d.default: False,
    aten.conv_transpose1d.default: True,
    aten.conv_transpose2d.input: True,
}
"""Convolutions that can take in a batch norm → whether they are transposed (input channels come first
then)."""

_BATCH_NORM = aten._native_batch_norm_legit_no_training.default
_IDENTITIES = {
    aten.clone.default, aten.alias.default, aten.detach.default, aten.lift_fresh_copy.default,
    aten.contiguous.default, aten._to_copy.default, aten.expand.default, aten.view.default,
    aten.permute.default, aten.slice.Tensor, aten.squeeze.dims, aten.constant_pad_nd.default,
    aten.dropout.default,
}  # fmt: skip
_CHECKS = {
    "aten::_assert_tensor_metadata",
    "aten::_assert_async",
    "aten::_assert_scalar",
    "aten::sym_constrain_range",
}
_LARGEST_FOLDED = 1 << 24
"""Elements; a constant expression of more is left as it is rather than written out."""


def _schema_name(node: fx.Node) -> str:
    schema = getattr(node.target, "_schema", None)
    return str(schema.name) if schema is not None else ""


def get_constant(module: fx.GraphModule, node: object) -> torch.Tensor | None:
    """The value of a get_attr node; None for anything else."""
    if not isinstance(node, fx.Node) or node.op != "get_attr":
        return None
    value: Any = module
    for part in str(node.target).split("."):
        value = getattr(value, part)
    return value if isinstance(value, torch.Tensor) else None


def add_constant(module: fx.GraphModule, before: fx.Node, name: str, value: torch.Tensor) -> fx.Node:
    """A new get_attr node of a new buffer (or parameter, if `value` is one) called `name` or name_1, …."""
    base = "".join(c if c.isalnum() else "_" for c in name)
    unique, count = base, 0
    while hasattr(module, unique):
        count += 1
        unique = f"{base}_{count}"
    if isinstance(value, nn.Parameter):
        module.register_parameter(unique, value)
    else:
        module.register_buffer(unique, value.detach().contiguous())
    with module.graph.inserting_before(before):
        node = module.graph.get_attr(unique)
    mode = before.meta["val"].fake_mode if hasattr(before.meta.get("val"), "fake_mode") else None
    node.meta["val"] = (
        mode.from_tensor(value.detach(), static_shapes=True) if mode is not None else value.detach()
    )
    return node


def add_call(
    graph: fx.Graph,
    before: fx.Node,
    target: Callable[..., Any],
    args: tuple[Any, ...],
    like: fx.Node,
    **options: Any,
) -> fx.Node:
    """A call in front of `before` that carries the origin and module of `like`; its value is computed from
    args."""
    with graph.inserting_before(before):
        node = graph.call_function(target, args, options)
    for key in ("stack_trace", "nn_module_stack"):
        if key in like.meta:
            node.meta[key] = like.meta[key]
    stamp_node(node, origin_of(like))
    values = fx.node.map_arg(args, lambda n: n.meta["val"])
    node.meta["val"] = target(*values, **options)
    return node


def _drop_input_writes(module: fx.GraphModule) -> None:
    """In-place changes of an input are visible to the caller in Python; the firmware's caller never looks."""
    for node in list(module.graph.nodes):
        if (
            node.op == "call_function"
            and node.target is aten.copy_.default
            and node.args[0].op == "placeholder"
        ):
            for user in list(node.users):
                user.replace_input_with(node, node.args[1])
            module.graph.erase_node(node)


def _drop_identities(module: fx.GraphModule) -> None:
    for node in list(module.graph.nodes):
        if node.op != "call_function":
            continue
        if _schema_name(node) in _CHECKS:
            if not node.users:
                module.graph.erase_node(node)
            continue
        if node.target not in _IDENTITIES:
            continue
        source = node.args[0]
        if _same_value(node, source):
            node.replace_all_uses_with(source)
            module.graph.erase_node(node)


def _same_value(node: fx.Node, source: fx.Node) -> bool:
    """Whether a node of `_IDENTITIES` passes its source on unchanged."""
    before, after = source.meta.get("val"), node.meta.get("val")
    second: Any = node.args[1] if len(node.args) > 1 else None
    if not isinstance(before, torch.Tensor) or not isinstance(after, torch.Tensor):
        return False
    if before.shape != after.shape or before.dtype != after.dtype:
        return False
    if before.stride() != after.stride():
        return False  # a view behind it may rely on the order of its bytes
    if node.target is aten.permute.default:
        return all(d % before.ndim == i for i, d in enumerate(second))
    if node.target is aten.dropout.default:
        return not node.args[2]
    if node.target is aten.slice.Tensor:
        return before.numel() > 0
    if node.target is aten.constant_pad_nd.default:
        return not any(second)  # pads of -1 and +1 give the same shape, but not the same value
    return True


def _plain_copies(module: fx.GraphModule) -> None:
    """copy(over, x), which is left of `t[:, 1] = x`, → x, cast and expanded to what it is written over."""
    for node in list(module.graph.nodes):
        if node.op != "call_function" or node.target is not aten.copy.default:
            continue
        value, wanted = node.args[1], node.meta["val"]
        if value.meta["val"].dtype != wanted.dtype:
            value = add_call(module.graph, node, aten._to_copy.default, (value,), node, dtype=wanted.dtype)
        if value.meta["val"].shape != wanted.shape:
            value = add_call(module.graph, node, aten.expand.default, (value, list(wanted.shape)), node)
        if value.meta["val"].stride() != wanted.stride():
            form = torch.contiguous_format
            value = add_call(module.graph, node, aten.clone.default, (value,), node, memory_format=form)
        node.replace_all_uses_with(value)
        module.graph.erase_node(node)


def _explicit_casts(module: fx.GraphModule) -> None:
    """bytes / 255 → bytes.float() / 255: torch's own promotion of bytes and int16 to float32, where an operator of both
    gives floats."""
    for node in list(module.graph.nodes):
        value = node.meta.get("val")
        floating = isinstance(value, torch.Tensor) and value.dtype is torch.float32
        # Those of quantizers read integers as what these stand for.
        if not floating or node.target in _IDENTITIES or not _schema_name(node).startswith("aten::"):
            continue
        for source in node.all_input_nodes:
            given = source.meta.get("val")
            if isinstance(given, torch.Tensor) and given.dtype in (torch.uint8, torch.int8, torch.int16):
                cast = add_call(
                    module.graph, node, aten._to_copy.default, (source,), node, dtype=torch.float32
                )
                node.replace_input_with(source, cast)


def _fold_constants(module: fx.GraphModule) -> None:
    """Compute calls that read constants only (masks, position codes, weight normalisation) once, here, in float64
    rounded to the type that the call has.

    Quantize and dequantize stay: they say how a constant is held. Random operators stay, to be refused by
    name.
    """
    for node in list(module.graph.nodes):
        if node.op != "call_function" or torch.Tag.nondeterministic_seeded in getattr(
            node.target, "tags", ()
        ):
            continue
        if not _schema_name(node).startswith("aten::"):
            continue
        value = node.meta.get("val")
        values = value if isinstance(value, (tuple, list)) else [value]
        if not all(isinstance(v, torch.Tensor) and v.numel() <= _LARGEST_FOLDED for v in values):
            continue
        constants = {source: get_constant(module, source) for source in node.all_input_nodes}
        if any(constant is None for constant in constants.values()):
            continue
        constants = {source: widen(constant) for source, constant in constants.items()}
        args = fx.node.map_arg(node.args, constants.__getitem__)
        kwargs = fx.node.map_arg(node.kwargs, constants.__getitem__)
        with torch.no_grad():
            results = call(node.target, args, kwargs)
        if isinstance(value, torch.Tensor):
            _hold(module, node, results.to(value.dtype))
            continue
        # Parts of a constant, such as the weights of queries, keys and values that attention packs into one.
        for part in list(node.users):
            index: Any = part.args[1]
            _hold(module, part, results[index].to(values[index].dtype))
        module.graph.erase_node(node)


def _hold(module: fx.GraphModule, node: fx.Node, value: torch.Tensor) -> None:
    """A constant in the node's place."""
    node.replace_all_uses_with(add_constant(module, node, node.name, value.clone()))
    module.graph.erase_node(node)


def _settle_safe_softmax(module: fx.GraphModule) -> None:
    """_safe_softmax, which attention takes, → softmax. They differ in rows of -infinity, where the former gives 0:
    such rows, known where a constant mask is added, are not masked then, but multiplied by 0 behind the softmax."""
    for node in list(module.graph.nodes):
        if node.op != "call_function" or node.target is not aten._safe_softmax.default:
            continue
        source, dim = node.args[:2]
        mask = None
        if source.op == "call_function" and source.target is aten.add.Tensor and len(source.users) == 1:
            mask = get_constant(module, source.args[1])
        empty = None
        if mask is not None and mask.ndim and _axis_in(mask, dim, source) and not source.kwargs:
            empty = (mask == -math.inf).all(dim, keepdim=True)
        if mask is None or empty is None or not bool(empty.any()):
            new = add_call(module.graph, node, aten.softmax.int, (source, dim), node)
        else:
            freed = add_constant(module, source, f"{source.name}_mask", torch.where(empty, 0.0, mask))
            total = add_call(module.graph, node, aten.add.Tensor, (source.args[0], freed), source)
            soft = add_call(module.graph, node, aten.softmax.int, (total, dim), node)
            kept = add_constant(module, node, f"{node.name}_rows", (~empty).float())
            new = add_call(module.graph, node, aten.mul.Tensor, (soft, kept), node)
        node.replace_all_uses_with(new)
        module.graph.erase_node(node)


def _axis_in(mask: torch.Tensor, dim: int, value: fx.Node) -> bool:
    """Whether the mask has all elements along the axis, which is counted from the end, of the value it is added to."""
    shape = value.meta["val"].shape
    return dim < 0 and mask.ndim >= -dim and mask.shape[dim] == shape[dim]


def _explicit_padding(module: fx.GraphModule) -> None:
    """conv(padding="same" | "valid") → conv with numbers; uneven "same" padding gets a pad in front."""
    overloads = {aten.conv1d.padding: aten.conv1d.default, aten.conv2d.padding: aten.conv2d.default}
    for node in list(module.graph.nodes):
        if node.op != "call_function" or node.target not in overloads:
            continue
        given: list[Any] = list(node.args)
        x, weight, bias, stride, mode, dilation, groups = (
            given + [None, [1], "valid", [1], 1][len(given) - 2 :]
        )
        kernel = list(weight.meta["val"].shape[2:])
        dilation = list(dilation) * (len(kernel) if len(dilation) == 1 else 1)
        total = [d * (k - 1) if mode == "same" else 0 for k, d in zip(kernel, dilation, strict=True)]
        padding = [t // 2 for t in total]
        if any(t % 2 for t in total):
            amounts = [amount for t in reversed(total) for amount in (t // 2, t - t // 2)]
            x = add_call(module.graph, node, aten.constant_pad_nd.default, (x, amounts, 0.0), node)
            padding = [0] * len(total)
        args = (x, weight, bias, stride, padding, dilation, groups)
        new = add_call(module.graph, node, overloads[node.target], args, node)
        node.replace_all_uses_with(new)
        module.graph.erase_node(node)


def _fold_into(module: fx.GraphModule, producer: fx.Node, factor: torch.Tensor, offset: torch.Tensor) -> bool:
    """Scale the output channels of a convolution or linear layer by `factor` and add `offset`; False if it
    cannot."""
    transposed = _CONVOLUTIONS.get(producer.target)
    if transposed is None and not (producer.target is aten.linear.default and producer.meta["val"].ndim == 2):
        return False
    if len(producer.users) != 1:
        return False
    args: list[Any] = list(producer.args) + [None] * (3 - len(producer.args))
    weight, bias = get_constant(module, args[1]), get_constant(module, args[2])
    if weight is None or (bias is None and args[2] is not None):
        return False
    if transposed:
        groups = args[6] if len(args) > 6 else 1
        # weight (in, out / groups, …): input channel i belongs to group i * groups // in
        factors = factor.reshape(groups, 1, -1).expand(groups, weight.shape[0] // groups, -1)
        scaled = weight * factors.reshape(*weight.shape[:2], *[1] * (weight.ndim - 2))
    else:
        scaled = weight * factor.reshape(-1, *[1] * (weight.ndim - 1))
    shifted = offset if bias is None else bias * factor + offset
    name = str(args[1].target)
    trained = isinstance(weight, nn.Parameter)
    stem = name.removesuffix("weight").rstrip("._") or "folded"
    for index, suffix, value in ((1, "weight", scaled), (2, "bias", shifted)):
        data = value.detach().clone()
        held = nn.Parameter(data, requires_grad=weight.requires_grad) if trained else data
        args[index] = add_constant(module, producer, f"{stem}_folded_{suffix}", held)
    producer.args = tuple(args)
    return True


def _as_depthwise(
    module: fx.GraphModule, norm: fx.Node, factor: torch.Tensor, offset: torch.Tensor
) -> fx.Node | None:
    """factor[c] * x[:, c] + offset[c] as a depthwise convolution with one tap; None for ranks without one."""
    source = norm.args[0]
    assert isinstance(source, fx.Node)
    shape = list(source.meta["val"].shape)
    spatial = {2: 1, 3: 1, 4: 2}.get(len(shape))
    if spatial is None:
        return None
    stem = origin_of(norm).module or norm.name
    weight = add_constant(module, norm, f"{stem}_factor", factor.reshape(-1, *[1] * (spatial + 1)).clone())
    bias = add_constant(module, norm, f"{stem}_offset", offset.clone())
    convolution = aten.conv1d.default if spatial == 1 else aten.conv2d.default
    ones, zeros = [1] * spatial, [0] * spatial
    graph = module.graph
    x = source if len(shape) > 2 else add_call(graph, norm, aten.view.default, (source, [*shape, 1]), norm)
    y = add_call(graph, norm, convolution, (x, weight, bias, ones, zeros, ones, shape[1]), norm)
    return y if len(shape) > 2 else add_call(graph, norm, aten.view.default, (y, shape), norm)


def _replace_batch_norms(module: fx.GraphModule) -> None:
    for norm in list(module.graph.nodes):
        if norm.op != "call_function" or norm.target is not _BATCH_NORM:
            continue
        readers = list(norm.users)
        if not all(r.target is operator.getitem and r.args[1] == 0 for r in readers):
            continue
        source, *parameters = norm.args[:5]
        gamma, beta, mean, variance = (get_constant(module, p) for p in parameters)
        if mean is None or variance is None:
            continue
        with torch.no_grad():
            # in float64, so that the folded weights are the nearest float32 to the exact ones
            factor = (torch.ones_like(mean) if gamma is None else gamma).double() / torch.sqrt(
                variance.double() + norm.args[6]
            )
            offset = (torch.zeros_like(mean) if beta is None else beta).double() - mean.double() * factor
            factor32, offset32 = factor.float(), offset.float()
            if _fold_into(module, source, factor32, offset32):
                result: fx.Node | None = source
            else:
                result = _as_depthwise(module, norm, factor32, offset32)
        if result is None:
            continue
        for reader in readers:
            reader.replace_all_uses_with(result)
            module.graph.erase_node(reader)
        module.graph.erase_node(norm)


def normalize(module: fx.GraphModule) -> None:
    """Run all simplifications on the graph module, in place. Node `val` metadata must be there (it is after
    export)."""
    passes: Sequence[Callable[[fx.GraphModule], None]] = (
        _drop_input_writes,  # first: keeps the rest functional
        _plain_copies,  # the quantizer knows a value by its first argument
        _explicit_casts,  # the folds and the quantizer know floats by their nodes
        _explicit_padding,  # before the folds, which know one overload only
        _drop_identities,  # a clone between a convolution and its batch norm would hide them from each other
        _fold_constants,  # parametrised weights become plain before batch norms are folded into them
        _settle_safe_softmax,  # when masks are constants
        _replace_batch_norms,
    )
    for step in passes:
        step(module)
        module.graph.eliminate_dead_code()
    drop_unused(module)


def drop_unused(module: fx.GraphModule) -> None:
    """Delete constants that no node reads, recompile, and check the graph."""
    graph = module.graph
    for node in list(graph.nodes):
        if node.op == "get_attr" and not node.users:
            graph.erase_node(node)
    used = {str(node.target) for node in graph.nodes if node.op == "get_attr"}
    named = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    for name, _ in named:
        if name not in used:
            owner_path, _, leaf = name.rpartition(".")
            delattr(module.get_submodule(owner_path), leaf)
    graph.lint()
    module.recompile()
