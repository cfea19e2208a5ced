# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers of a captured graph become calls of `recurrent_ops`: one a layer and direction, whatever the number
of steps."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import fx, nn

from tinyet.fx.normalize import add_call, add_constant, drop_unused, get_constant
from tinyet.fx.origins import origin_of, stamp_node
from tinyet.fx.recurrent_ops import C_N, GRU, H_N, LSTM, RNN, Y
from tinyet.importers.torch.context import bind

aten = torch.ops.aten

_LAYERS: dict[object, tuple[object, str]] = {
    aten.lstm.input: (LSTM, ""),
    aten.gru.input: (GRU, ""),
    aten.rnn_tanh.input: (RNN, "tanh"),
    aten.rnn_relu.input: (RNN, "relu"),
}
CELLS_OF_TORCH: dict[object, tuple[object, str]] = {
    aten.lstm_cell.default: (LSTM, ""),
    aten.gru_cell.default: (GRU, ""),
    aten.rnn_tanh_cell.default: (RNN, "tanh"),
    aten.rnn_relu_cell.default: (RNN, "relu"),
}
"""torch's layers and cells → the operator, and which function an RNN has."""

_SUMMED = "tinyet_summed"
"""In the metadata of a bias: the bias that it was added to, and the sum."""


@dataclass(frozen=True)
class Weights:
    """Of one direction of one layer."""

    w_ih: fx.Node
    w_hh: fx.Node
    b_ih: fx.Node | None
    b_hh: fx.Node | None
    w_hr: fx.Node | None = None


def keep_recurrent(module: fx.GraphModule) -> None:
    """In place. What drops between its layers, as in training, is left to be refused."""
    for node in list(module.graph.nodes):
        if node.op != "call_function":
            continue
        if node.target in _LAYERS:
            _rewrite_layer(module, node)
        elif node.target in CELLS_OF_TORCH:
            _rewrite_cell(module, node)
    module.graph.eliminate_dead_code()
    drop_unused(module)


def _rewrite_layer(module: fx.GraphModule, node: fx.Node) -> None:
    a = bind(node)
    if a["train"] and a["dropout"] and a["num_layers"] > 1:
        return
    x, firsts = a["input"], a["hx"] if isinstance(a["hx"], (list, tuple)) else [a["hx"]]
    graph, directions = module.graph, 2 if a["bidirectional"] else 1
    if not a["batch_first"]:
        x = add_call(graph, node, aten.transpose.int, (x, 0, 1), node)
    weights = _weights_of(a, firsts)
    lasts: list[list[fx.Node]] = [[] for _ in firsts]
    for layer in range(a["num_layers"]):
        results = []
        for reverse in range(directions):
            number = layer * directions + reverse
            states = [_first_state(module, node, first, number) for first in firsts]
            suffix = f"_l{layer}{'_reverse' if reverse else ''}"
            call = call_layer(module, node, x, states, weights[number], bool(reverse), suffix)
            results.append(result_of(graph, node, call, Y))
            for index, found in enumerate(lasts):
                found.append(result_of(graph, node, call, H_N + index))
        x = results[0] if directions == 1 else add_call(graph, node, aten.cat.default, (results, 2), node)
    if not a["batch_first"]:
        x = add_call(graph, node, aten.transpose.int, (x, 0, 1), node)
    for user in list(node.users):
        index = int(user.args[1])  # type: ignore[arg-type]
        if index == 0:
            user.replace_all_uses_with(x)
        else:
            _replace_stacked(graph, user, lasts[index - 1])
        graph.erase_node(user)
    graph.erase_node(node)


def _rewrite_cell(module: fx.GraphModule, node: fx.Node) -> None:
    a, graph = bind(node), module.graph
    firsts = a["hx"] if isinstance(a["hx"], (list, tuple)) else [a["hx"]]
    x = add_call(graph, node, aten.unsqueeze.default, (a["input"], 1), node)
    states = [own_state(module, node, first) for first in firsts]
    weights = Weights(a["w_ih"], a["w_hh"], a["b_ih"], a["b_hh"])
    call = call_layer(module, node, x, states, weights, False, "")
    if len(firsts) == 1:
        node.replace_all_uses_with(result_of(graph, node, call, H_N))
    else:
        for user in list(node.users):
            index = H_N if user.args[1] == 0 else C_N
            user.replace_all_uses_with(result_of(graph, node, call, index))
            graph.erase_node(user)
    graph.erase_node(node)


def _weights_of(a: dict[str, Any], firsts: Sequence[fx.Node]) -> list[Weights]:
    """Of each layer and direction, in torch's order: w_ih, w_hh, then biases and a projection where there are any."""
    parameters: list[fx.Node] = list(a["params"])
    count = len(parameters) // (a["num_layers"] * (2 if a["bidirectional"] else 1))
    biases = 2 if a["has_biases"] else 0
    found = []
    for start in range(0, len(parameters), count):
        w_ih, w_hh, *rest = parameters[start : start + count]
        b_ih, b_hh = rest[:2] if biases else (None, None)
        found.append(Weights(w_ih, w_hh, b_ih, b_hh, rest[biases] if len(rest) > biases else None))
    assert len(firsts) == 2 or all(weights.w_hr is None for weights in found)
    return found


def _first_state(module: fx.GraphModule, node: fx.Node, states: fx.Node, number: int) -> fx.Node:
    """One layer's and direction's of all states before the first step, (layers * directions, N, R)."""
    held = get_constant(module, states)
    if held is not None:
        return add_constant(module, node, f"{states.target}_{number}", held.detach()[number].clone())
    return add_call(module.graph, node, aten.select.int, (states, 0, number), node)


def own_state(module: fx.GraphModule, node: fx.Node, state: fx.Node) -> fx.Node:
    """The state as a value that nothing else reads: a constant may stand for state and cell alike."""
    held = get_constant(module, state)
    if held is None:
        return state
    return add_constant(module, node, f"{state.target}_state", held.detach().clone())


def call_layer(
    module: fx.GraphModule,
    node: fx.Node,
    x: fx.Node,
    states: Sequence[fx.Node],
    weights: Weights,
    reverse: bool,
    suffix: str,
) -> fx.Node:
    """The call in place of `node`, or of one layer and direction of it: then its key has a suffix."""
    kind, nonlinearity = (_LAYERS | CELLS_OF_TORCH)[node.target]
    if len({x, *states}) < 1 + len(states):
        states = [add_call(module.graph, node, aten.clone.default, (state,), node) for state in states]
    matrices = (weights.w_ih, weights.w_hh)
    args: tuple[Any, ...]
    if kind is GRU:
        args = (x, *states, *matrices, weights.b_ih, weights.b_hh, reverse)
    elif kind is LSTM:
        args = (x, *states, *matrices, _summed(module, node, weights), weights.w_hr, reverse)
    else:
        args = (x, *states, *matrices, _summed(module, node, weights), nonlinearity, reverse)
    call = add_call(module.graph, node, kind, args, node)  # type: ignore[arg-type]
    origin = origin_of(node)
    stamp_node(call, replace(origin, key=f"{origin.key}{suffix}"))
    return call


def _summed(module: fx.GraphModule, node: fx.Node, weights: Weights) -> fx.Node | None:
    """torch's two biases, which are only added, as one: the same for all calls of a layer. Parameters stay a parameter,
    which can be trained."""
    if weights.b_ih is None or weights.b_hh is None:
        return None
    held = get_constant(module, weights.b_ih), get_constant(module, weights.b_hh)
    if held[0] is None or held[1] is None:
        return add_call(module.graph, node, aten.add.Tensor, (weights.b_ih, weights.b_hh), node)
    before = weights.b_ih.meta.get(_SUMMED)
    if before is not None and before[0] is weights.b_hh:
        return before[1]  # type: ignore[no-any-return]
    total = (held[0].detach().double() + held[1].detach().double()).float()
    name = str(weights.b_ih.target).replace("bias_ih", "bias")
    trained = isinstance(held[0], nn.Parameter)
    value = nn.Parameter(total, requires_grad=held[0].requires_grad) if trained else total
    made = add_constant(module, weights.b_ih, name, value)
    weights.b_ih.meta[_SUMMED] = weights.b_hh, made
    return made


def result_of(graph: fx.Graph, node: fx.Node, call: fx.Node, index: int) -> fx.Node:
    found = add_call(graph, node, operator.getitem, (call, index), node)
    origin = origin_of(call)
    stamp_node(found, replace(origin, key=f"{origin.key}_{index}"))
    return found


def _replace_stacked(graph: fx.Graph, stacked: fx.Node, states: Sequence[fx.Node]) -> None:
    """The last states of all layers and directions, (layers * directions, N, R); who reads only one, reads it alone."""
    for user in list(stacked.users):
        if user.target in _SQUEEZES and len(states) > 1 and _squeezed(user) == 1:  # a batch that there is not
            alone = [add_call(graph, user, aten.squeeze.dims, (state, [0]), user) for state in states]
            _replace_stacked(graph, user, alone)
            graph.erase_node(user)
        elif user.target is aten.select.int and user.args[1] == 0:
            user.replace_all_uses_with(states[int(user.args[2])])  # type: ignore[arg-type]
            graph.erase_node(user)
        elif user.target is aten.unbind.int and not any(user.args[1:]):
            for part in list(user.users):
                part.replace_all_uses_with(states[int(part.args[1])])  # type: ignore[arg-type]
                graph.erase_node(part)
            graph.erase_node(user)
    if not stacked.users:
        return
    if len(states) == 1:
        whole = add_call(graph, stacked, aten.unsqueeze.default, (states[0], 0), stacked)
    else:
        whole = add_call(graph, stacked, aten.stack.default, (list(states),), stacked)
    stacked.replace_all_uses_with(whole)


_SQUEEZES = {aten.squeeze.dim, aten.squeeze.dims}


def _squeezed(node: fx.Node) -> int | None:
    """The one axis that a squeeze removes; None for another number of them."""
    axes: Any = node.args[1]
    listed = [axes] if isinstance(axes, int) else list(axes)
    return listed[0] if len(listed) == 1 else None
