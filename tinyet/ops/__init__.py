# SPDX-License-Identifier: Apache-2.0
"""The operators, one file each. This list is the only place that names them all."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence

from tinyet import opset
from tinyet.errors import InternalError, TinyetError, UnsupportedShape, UsageError, bullet_list
from tinyet.ir import Array, Attrs, Graph, Node, Shape, State, Tensor, problems_of, size_complaints, subgraphs
from tinyet.ir.budget import Budget
from tinyet.ir.limits import MAX_NODES, shape_complaint
from tinyet.ir.memoize import memoize
from tinyet.ops import (
    adaptive_avg_pool2d,
    add,
    amax,
    amin,
    argmax,
    argsort,
    avg_pool2d,
    batch_norm,
    biquads,
    cast,
    clamp,
    compare,
    concat,
    conv2d,
    conv_transpose2d,
    copy,
    cumsum,
    dequantize,
    div,
    dynamic_conv2d,
    dynamic_linear,
    embedding,
    expand,
    flip,
    gather,
    gru,
    l2_normalize,
    layer_norm,
    linear,
    linear_bands,
    linear_single_rounding,
    log_bands,
    log_softmax,
    lookup,
    lstm,
    matmul,
    max_pool2d,
    maximum,
    mean,
    minimum,
    mul,
    pad,
    pairwise,
    permute,
    prelu,
    quantize,
    region,
    requantize,
    reshape,
    resize,
    rnn,
    samples,
    signal_delay,
    signal_energy,
    signal_fft_auto_scale,
    signal_filter_bank,
    signal_filter_bank_log,
    signal_filter_bank_spectral_subtraction,
    signal_filter_bank_square_root,
    signal_framer,
    signal_irfft,
    signal_overlap_add,
    signal_pcan,
    signal_rfft,
    signal_stacker,
    signal_window,
    softmax,
    squared_difference,
    state_write,
    sub,
    sum_of_squares,
    svdf,
    tree_ensemble,
    unary,
    unfold,
    where,
)
from tinyet.ops import slice as slice_
from tinyet.ops import sum as sum_
from tinyet.ops.shared import row_sums
from tinyet.opset import Op, TileMap, TimeAxes, TimeRule, attribute_complaints, complaints, tensor_complaint

OPS: tuple[Op, ...] = (
    adaptive_avg_pool2d.OP,
    add.OP,
    amax.OP,
    amin.OP,
    argmax.OP,
    argsort.OP,
    avg_pool2d.OP,
    batch_norm.OP,
    biquads.OP,
    cast.OP,
    clamp.OP,
    compare.OP,
    concat.OP,
    conv2d.OP,
    conv_transpose2d.OP,
    copy.OP,
    cumsum.OP,
    dequantize.OP,
    div.OP,
    dynamic_conv2d.OP,
    dynamic_linear.OP,
    embedding.OP,
    expand.OP,
    flip.OP,
    gather.OP,
    gru.OP,
    l2_normalize.OP,
    layer_norm.OP,
    linear.OP,
    linear_bands.OP,
    linear_single_rounding.OP,
    log_bands.OP,
    log_softmax.OP,
    lookup.OP,
    lstm.OP,
    matmul.OP,
    max_pool2d.OP,
    maximum.OP,
    mean.OP,
    minimum.OP,
    mul.OP,
    pad.OP,
    pairwise.OP,
    permute.OP,
    prelu.OP,
    quantize.OP,
    requantize.OP,
    reshape.OP,
    resize.OP,
    rnn.OP,
    samples.OP,
    signal_delay.OP,
    signal_energy.OP,
    signal_fft_auto_scale.OP,
    signal_filter_bank.OP,
    signal_filter_bank_log.OP,
    signal_filter_bank_spectral_subtraction.OP,
    signal_filter_bank_square_root.OP,
    signal_framer.OP,
    signal_irfft.OP,
    signal_overlap_add.OP,
    signal_pcan.OP,
    signal_rfft.OP,
    signal_stacker.OP,
    signal_window.OP,
    slice_.OP,
    softmax.OP,
    squared_difference.OP,
    state_write.OP,
    sub.OP,
    sum_.OP,
    sum_of_squares.OP,
    svdf.OP,
    tree_ensemble.OP,
    unary.OP,
    unfold.OP,
    where.OP,
)


def op_of(node: Node) -> Op:
    """The operator of a node; raises InternalError for attributes that no operator owns."""
    found = _BY_ATTRS.get(type(node.attrs))
    if found is None:
        raise InternalError(f"no operator has attributes of type {type(node.attrs).__name__}", node.where)
    return found


TILE_OPS: tuple[Op, ...] = (row_sums.OP, resize.PART)
"""What stands for a tile of an operator. It is in no program, and has no name there."""

# A region is no operator of its own: it holds others, and a delegate brings its kernel.
_REGION = region.operator(op_of)
_BY_ATTRS: dict[type[Attrs], Op] = {op.attrs: op for op in (*OPS, _REGION, *TILE_OPS)}
_BY_NAME: dict[str, Op] = {op.name: op for op in (*OPS, _REGION)}


def by_name(name: str) -> Op | None:
    return _BY_NAME.get(name)


def register(op: Op) -> None:
    """Add an operator that tinyet does not come with. Raises UsageError when its name or attributes are taken."""
    taken = _BY_NAME.get(op.name) or _BY_ATTRS.get(op.attrs)
    if taken is not None:
        raise UsageError(f"there is an operator {taken.name} already", hint="give the operator another name")
    _BY_ATTRS[op.attrs] = op
    _BY_NAME[op.name] = op


def infer(node: Node) -> tuple[Shape, ...]:
    return op_of(node).infer(node)


def evaluate(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    """The node's outputs by its numpy reference."""
    return op_of(node).reference(node, inputs)


def tile_map(
    node: Node, axes: tuple[int, int] | None = None, most: int | None = None, times: int = 1
) -> TileMap | str:
    """How a node is computed a few rows at a time; a text says why it is not. axes: of the output and of its inputs,
    that are their rows; None: `row_axis` of each. most: tiles where rows are single pixels. times: how many of the
    smallest tiles are one where they are several."""
    return opset.tile_map(op_of(node), node, copy.Copy(), axes, most, times)


def time_rule(node: Node, axes: TimeAxes) -> TimeRule | str:
    """How a node is computed step by step where these axes of its inputs are time; a text says why it is not."""
    rule = opset.time_rule(op_of(node), node, axes)
    if isinstance(rule, str) or not isinstance(rule.attrs(rule.out), tuple(op.attrs for op in TILE_OPS)):
        return rule
    return f"{node.op} takes samples between steps"


def fold(node: Node, inputs: Sequence[Array | None], budget: Budget) -> tuple[Array, ...]:
    """`evaluate` ahead of time, for inputs that are constants. Raises RefusedError, before anything is allocated, where
    the budget does not have as much as that takes."""
    charge(node, budget)
    return evaluate(node, inputs)


def charge(node: Node, budget: Budget) -> None:
    """Charge the folding of a node to a budget. Raises RefusedError where the budget is too small."""
    budget.fold_node(node, op_of(node).macs(node))


def check(graph: Graph, after: str) -> Graph:
    """The graph itself, if it is well formed and shapes are as the operators' rules say; `after` names the pass that
    made it. Raises InternalError. What `check_whole` demands beyond that holds only when all operators are lowered."""
    return _checked(
        problems_of(graph, _shape_complaints), graph, InternalError, f"invalid graph after {after}"
    )


def check_whole(
    graph: Graph, title: str, error: type[TinyetError] = InternalError, where: str | None = None
) -> Graph:
    """The graph itself, if the whole rule of every operator holds in it, and in those that it holds, and if it is
    within what can be planned and computed at all. Raises `error` with `title` and all that is wrong."""
    return _checked(whole_problems(graph), graph, error, title, where)


def check_limits(graph: Graph) -> None:
    """Raise UnsupportedShape, listing them with their source lines, for nodes of a user's model whose attributes or
    results are beyond what tinyet holds. Whether operators are in a form that it has is for later."""
    found = []
    for node in graph.nodes:
        texts = attribute_complaints(node.attrs)
        texts += [text for t in node.outputs if not t.is_constant and (text := shape_complaint(t.shape))]
        found += [f"{node.op}, {node.where or node.outputs[0].name}: {text}" for text in texts]
    found += [f"input {t.name}: {text}" for t in graph.inputs if (text := shape_complaint(t.shape))]
    if len(graph.nodes) > MAX_NODES:
        found.append(f"it has {len(graph.nodes)} nodes, at most {MAX_NODES}")
    _checked(found, graph, UnsupportedShape, "the model is beyond what tinyet holds")


def whole_problems(graph: Graph) -> list[str]:
    """The problems that `check_whole` raises."""
    found = problems_of(graph, _rule_complaints)
    found += [f"output {t.name}: {text}" for t in graph.outputs if (text := tensor_complaint(t))]
    found += [f"input {t.name}: {text}" for t in graph.inputs if (text := tensor_complaint(t))]
    found += [f"output {t.name} is a constant" for t in graph.outputs if t.is_constant]
    if not graph.user_outputs:
        found.append("it has no outputs")
    return found or size_complaints(graph, _macs)


# Most passes leave most nodes as they are.
@memoize
def _macs(node: Node) -> int:
    return op_of(node).macs(node)


def may_lie_in(graph: Graph, tensor: Tensor, op_of: Callable[[Node], Op] = op_of) -> set[Tensor]:
    """The tensors in whose bytes a value may lie: its own, and those of what it is moved from without a change."""
    found, waiting = {tensor}, [tensor]
    while waiting:
        node = graph.producer(waiting.pop())
        if (
            node is None
            or isinstance(node.attrs, copy.Copy)
            or not (op_of(node).view or op_of(node).same_scale)
        ):
            continue
        new = {t for t in node.inputs if t is not None} - found
        found |= new
        waiting += new
    return found


def state_problems(graph: Graph) -> list[str]:
    """Each state is written by a node of its own, of the type that it is read in, and nobody reads that in this run.
    What is written, and a result, does not lie where a state is written."""
    found = []

    def under(tensor: Tensor) -> list[State]:
        places = may_lie_in(graph, tensor)
        return [state for state in graph.states if state.value in places]

    for tensor in graph.user_outputs if graph.initial else ():
        lies = [f"lies in state {state.name}, which is written" for state in under(tensor)]
        found += [f"output {tensor.name} {text}" for text in lies]
    for state in graph.states:
        if not state.value.type == state.next.type == state.initial.type:
            types = state.initial.type, state.value.type, state.next.type
            found.append(
                "state {}: it is {} at first, {} when read, {} when written".format(state.name, *types)
            )
        writer = graph.producer(state.next)
        if (
            writer is None
            or not isinstance(writer.attrs, state_write.StateWrite)
            or writer.inputs[1:] != (state.value,)
        ):
            found.append(f"state {state.name}: {state.next.name} is not kept in its place")
            continue
        others = [other.name for other in under(writer.input(0)) if other != state]
        found += [f"state {state.name}: what is kept lies in state {name}" for name in others]
        if graph.consumers(state.next) or graph.outputs.count(state.next) > 1:
            found.append(f"state {state.name}: {state.next.name} is read in the run that writes it")
    kept = {state.next for state in graph.states}
    found += [
        f"{node.output.name} is kept, and is no state"
        for node in graph.nodes
        if isinstance(node.attrs, state_write.StateWrite) and node.output not in kept
    ]
    return found


def _rule_complaints(node: Node) -> list[str]:
    if node in _SOUND:
        return []
    inner = [text for graph in subgraphs(node.attrs) for text in whole_problems(graph)]
    inner += ["it has states" for graph in subgraphs(node.attrs) if graph.initial]
    inner += [
        f"{kept.output.name} is kept, and is no state"
        for graph in subgraphs(node.attrs)
        for kept in graph.nodes
        if isinstance(kept.attrs, state_write.StateWrite)
    ]
    found = [f"in it, {text}" for text in inner] or complaints(op_of(node), node)
    if not found:
        _SOUND.add(node)
    return found


# Nodes are immutable, and passes keep most of them: each is looked at once.
_SOUND: weakref.WeakSet[Node] = weakref.WeakSet()


def _shape_complaints(node: Node) -> list[str]:
    shapes = tuple(tuple(s) for s in infer(node))
    actual = tuple(t.shape for t in node.outputs)
    return [] if shapes == actual else [f"should give {shapes}, typed {actual}"]


MAX_LISTED = 20


def _checked(
    problems: list[str], graph: Graph, error: type[TinyetError], title: str, where: str | None = None
) -> Graph:
    if problems:
        more = [f"and {len(problems) - MAX_LISTED} more"] if len(problems) > MAX_LISTED else []
        raise error(f"{title}:\n{bullet_list([*problems[:MAX_LISTED], *more])}", where)
    return graph
