# SPDX-License-Identifier: Apache-2.0
"""A graph computed layer by layer, for all samples at once: what is behind a layer is computed of what a visitor made
of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torch import fx

from tinyet.fx.edit import get_constant
from tinyet.fx.exact import Exact, call, widen
from tinyet.fx.examples import Inputs
from tinyet.fx.mutable_buffers import Kept, Running
from tinyet.fx.origins import origin_of
from tinyet.quantization.annotate import WEIGHTED

Visit = Callable[[fx.Node, list[tuple[Any, ...]], list[Any]], list[Any] | None]
"""Takes a layer, its arguments and its result for each sample, in float64; gives the results that it shall have, or
None for these."""


def walk(module: fx.GraphModule, samples: Sequence[Inputs], layers: Iterable[fx.Node], visit: Visit) -> None:
    """Compute the graph in float64 for all samples at once, node by node, and show each of the layers to `visit` before
    anything behind it is computed. Values are dropped when nothing reads them any more."""
    wanted, nodes = set(layers), list(module.graph.nodes)
    last = {source: node for node in nodes for source in node.all_input_nodes}
    dropped: dict[fx.Node, list[fx.Node]] = {}
    for source, node in last.items():
        dropped.setdefault(node, []).append(source)
    values: dict[fx.Node, list[Any]] = {}
    inputs = iter(range(len(samples[0])))
    for node in nodes:
        if not wanted:
            return
        if node.op == "placeholder":
            index = next(inputs)
            values[node] = [widen(sample[index]) for sample in samples]
        elif node.op == "get_attr":
            values[node] = [widen(get_constant(module, node))] * len(samples)
        elif node.op == "call_function":
            arguments = [_arguments(node, values, at) for at in range(len(samples))]
            values[node] = [call(node.target, args, kwargs) for args, kwargs in arguments]
            if node in wanted:
                wanted.discard(node)
                changed = visit(node, [args for args, _ in arguments], values[node])
                values[node] = values[node] if changed is None else changed
        for source in dropped.get(node, ()):
            del values[source]


def _arguments(node: fx.Node, values: dict[fx.Node, list[Any]], at: int) -> tuple[Any, Any]:
    def take(source: fx.Node) -> Any:
        return values[source][at]

    return fx.node.map_arg(node.args, take), fx.node.map_arg(node.kwargs, take)


def weighted_layers(module: fx.GraphModule) -> dict[str, fx.Node]:
    """Key of the origin → layer with a weight."""
    return {
        origin_of(node).key: node
        for node in module.graph.nodes
        if node.op == "call_function" and node.target in WEIGHTED
    }


def is_quantized_layer(node: fx.Node) -> bool:
    """Whether the weight of a layer is one of integers."""
    weight = node.args[1]
    return isinstance(weight, fx.Node) and "dequantize" in str(weight.target)


def with_states(reference: fx.GraphModule, kept: Kept, samples: Sequence[Inputs]) -> Sequence[Inputs]:
    """The samples with the states that the float program has before each: all samples go through one layer before the
    next, so what is kept between them is the float program's."""
    if not kept.buffers:
        return samples
    run, given = Running(Exact(reference).run, kept), []
    for inputs in samples:
        given.append((*inputs, *run.buffers))
        run(*inputs)
    return given
