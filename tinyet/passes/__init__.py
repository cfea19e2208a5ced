# SPDX-License-Identifier: Apache-2.0
"""The lowering, read from top to bottom: which passes run, in which order, and why there."""

from __future__ import annotations

from collections.abc import Callable

from tinyet.errors import InternalError, bullet_list
from tinyet.ir import Graph, Note, to_text
from tinyet.messages.stages import stage
from tinyet.ops import check, check_limits, check_whole, state_problems
from tinyet.passes import fold_constants
from tinyet.passes.boundary import copied_outputs, integer_boundary
from tinyet.passes.common_subexpressions import share_common_subexpressions
from tinyet.passes.dead_code import eliminate_dead_code
from tinyet.passes.dead_time_steps import last_steps
from tinyet.passes.fold_batch_norm import fold_batch_norm
from tinyet.passes.fold_pad import fold_pad
from tinyet.passes.fold_requantize import fold_requantize
from tinyet.passes.fuse_clamp import fuse_clamp
from tinyet.passes.keep_integers import keep_integers
from tinyet.passes.layout_apply import optimize_layout
from tinyet.passes.linear_bands import linear_bands
from tinyet.passes.lower_qdq import lower_qdq
from tinyet.passes.merge_reshapes import merge_reshapes
from tinyet.passes.prune_channels import prune_channels
from tinyet.passes.states import carry_states, integer_states, write_states
from tinyet.passes.sum_of_squares import sum_of_squares
from tinyet.passes.tabulate_bytes import tabulate_bytes
from tinyet.passes.widen_int4 import widen_int4

Rewrite = Callable[[Graph], Graph]
Lowering = Callable[[Graph], tuple[Graph, tuple[Note, ...]]]

PIPELINE: tuple[tuple[str, Rewrite | Lowering], ...] = (
    # First, so that all later passes find outputs that nodes compute; a fold or merge leaves such a copy.
    ("copied_outputs", copied_outputs),
    # Unread nodes must not keep others from seeing a single consumer.
    ("dead_code", eliminate_dead_code),
    # Exported graphs compute masks, positions and reshaped parameters; later passes want to see constants.
    ("fold_constants", fold_constants.before_lowering),
    ("common_subexpressions", share_common_subexpressions),
    # Permutes stand between convolutions and operators that fuse with them; chains of reshapes hide their effect.
    ("merge_reshapes", merge_reshapes),
    ("layout", optimize_layout),
    # Before clamps: a ReLU behind a batch norm reaches the convolution only when the batch norm is in it.
    ("fold_batch_norm", fold_batch_norm),
    ("fold_pad", fold_pad),
    # Before integers: LiteRT's int8 operators have the clamp inside, and a value that is only clamped needs
    # no scale.
    ("fuse_clamp", fuse_clamp),
    # Operators that know int8 weights but not int4 ones must see int8 when integer operators are formed.
    ("widen_int4", widen_int4),
    # Moves Dequantize down and Quantize up, so that the next pass finds integers on both sides of more
    # operators.
    ("keep_integers", keep_integers),
    # Behind keep_integers, which has moved each Quantize right behind its value's producer; before integers, because
    # a byte needs only its own.
    ("tabulate_bytes", tabulate_bytes),
    ("lower_qdq", lower_qdq),
    # The float forms of weights are dead now; those that float operators still read become constants.
    ("dead_code_integer", eliminate_dead_code),
    ("fold_constants_integer", fold_constants.after_lowering),
    # Now the activations are known: operators that take int4 weights do not take them beside any activation.
    ("widen_int4_integer", widen_int4),
    # Requantize nodes of one value to one scale must be one before its producer can write that scale.
    ("common_subexpressions_integer", share_common_subexpressions),
    # Operators that stood between Quantize and Dequantize until now: the same folds once more, on integers.
    ("fold_requantize", fold_requantize),
    ("fuse_clamp_integer", fuse_clamp),
    ("fold_pad_integer", fold_pad),
    # The integers are final, and the cost of a layout depends on the number of channels.
    ("prune_channels", prune_channels),
    # Only now are a Permute's moved bytes known, and Linear weights are constants that can absorb one.
    ("integer_boundary", integer_boundary),
    ("integer_states", integer_states),
    ("layout_integer", optimize_layout),
    ("merge_reshapes_integer", merge_reshapes),
    # The last that looks for float products has been: layouts put permutes into their weights.
    ("linear_bands", linear_bands),
    # Reshapes that stood between squares and sums are gone.
    ("sum_of_squares", sum_of_squares),
    # Behind all passes that move permutes and changes of scale between a layer and the readers of its last step.
    ("last_steps", last_steps),
    ("merge_reshapes_last", merge_reshapes),
    ("common_subexpressions_last", share_common_subexpressions),
    ("dead_code_last", eliminate_dead_code),
    # The last state of a layer is no constant, so the first is none either.
    ("carry_states", carry_states),
    ("write_states", write_states),
)

ONLY_OF_FLOATS = frozenset(
    # They make integers of floats, fewer roundings of several, or leave products with 0 away.
    "fold_batch_norm lower_qdq fold_requantize integer_boundary integer_states linear_bands".split()  # noqa: SIM905
)
"""Steps that change results, if only by a last bit: not for graphs whose integers are another tool's own."""


def run(
    graph: Graph,
    *,
    exact: bool = False,
    float_io: bool = False,
    prune: bool = True,
    stateful: bool = False,
    dump: Callable[[str, str], None] | None = None,
) -> tuple[Graph, tuple[Note, ...]]:
    """The graph after all passes, verified after each, and their notes to the user.

    exact: the graph's integers are final, so no step may change a bit of its results. float_io: inputs and outputs
    stay float32 if the model is quantized. prune: remove channels that are constant or unread. stateful: recurrent
    layers continue from the previous run. dump: receives each pass's numbered name and the graph's text after it.
    Raises InternalError, naming the pass, when one leaves an invalid graph, UnsupportedShape for a model that is
    beyond what tinyet holds (ir/limits.py), and ModelError for one that cannot be stateful.
    """
    notes: list[Note] = []
    check_limits(graph)
    check(graph, "import")
    if dump is not None:
        dump("00_import", to_text(graph))
    whole = False
    asked = {"integer_boundary": not float_io, "prune_channels": prune, "carry_states": stateful}
    left_out = {name for name, wanted in asked.items() if not wanted} | (ONLY_OF_FLOATS if exact else set())
    for number, (name, step) in enumerate(PIPELINE, 1):
        if name in left_out:
            continue
        stage(f"passes: {name.replace('_', ' ')}")
        before, was_whole = _content(graph), whole
        result = step(graph)
        if isinstance(result, tuple):
            graph, more = result
            notes += more
        else:
            graph = result
        whole = whole or step is fold_constants.after_lowering
        if _content(graph) == before and whole == was_whole:
            pass  # the very nodes that were found right before: most passes find nothing to do
        elif whole:
            check_whole(graph, f"invalid graph after {name}")
        else:
            check(graph, name)
        if dump is not None:
            dump(f"{number:02d}_{name}", to_text(graph))
    if problems := state_problems(graph):
        raise InternalError(f"invalid states after the last pass:\n{bullet_list(problems)}", graph.name)
    return graph, tuple(notes)


def _content(graph: Graph) -> tuple[tuple[object, ...], ...]:
    """Equal for graphs of the same nodes and tensors, which are frozen and compare by identity."""
    return graph.inputs, graph.outputs, graph.nodes, graph.initial
