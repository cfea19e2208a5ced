# SPDX-License-Identifier: Apache-2.0
"""Whether a graph's input can come row by row, and under which name the layers read it."""

from __future__ import annotations

from collections.abc import Mapping

from tinyet.errors import UsageError, bullet_list
from tinyet.ir import Graph, Node, Tensor
from tinyet.memory.tile_records import TiledInput
from tinyet.ops import op_of, tile_map
from tinyet.opset.tiles import TileMap, has_rows, rows_of

GIVE_WHOLE = "leave input_rows (--input-rows) away: the model takes its input as a whole then"
_CHANNELS_LAST = (
    "compile with channels_last=True (--channels-last): the model then takes pixels as cameras give them"
)


def tiled_input(graph: Graph, rules: Mapping[Node, TileMap]) -> TiledInput:
    """The graph's input as its first layers read it.

    rules: of the calls that can be computed by rows. Raises UsageError, listing all obstacles, if rows cannot
    be taken: there must be one input, and every layer that reads it must be one of these calls.
    """
    if len(graph.user_inputs) != 1:
        names = ", ".join(t.name for t in graph.user_inputs)
        raise UsageError(
            f"{graph.name} has {len(graph.user_inputs)} inputs, {names}; rows can be those of one alone",
            hint=GIVE_WHOLE,
        )
    tensor, views = graph.inputs[0], list[Node]()
    while (
        len(readers := graph.consumers(tensor)) == 1
        and op_of(readers[0]).view
        and tensor not in graph.outputs
    ):
        views.append(readers[0])
        tensor = readers[0].outputs[0]
    wrong = []
    if tensor in graph.outputs:
        wrong.append(f"{tensor.name} is an output, too")
    if not has_rows(tensor):
        wrong.append(
            f"{tensor.name} has no rows: its shape is {list(tensor.shape)}, not (1, rows, columns, …)"
        )
    first = tuple(dict.fromkeys(graph.consumers(tensor)))
    for node in first:
        where = f", {node.where}" if node.where else ""
        if node not in rules:
            why = tile_map(node)
            wrong.append(
                f"{node.op} needs the whole input{where}{f': {why}' if isinstance(why, str) else ''}"
            )
        elif rules[node].fill is None and _pads(node, rules[node], tensor):
            wrong.append(f"{node.op} pads an image of {tensor.dtype.value} above or below{where}")
    if wrong:
        turned = any(node.op == "permute" for node in first)
        raise UsageError(
            f"{graph.name} cannot take its input by rows:\n{bullet_list(wrong)}",
            hint=_CHANNELS_LAST if turned else GIVE_WHOLE,
        )
    return TiledInput(graph.inputs[0], tuple(views))


def _pads(node: Node, rule: TileMap, image: Tensor) -> bool:
    """Whether tiles need rows above or below the image."""
    last = rule.first_read(node, rule.tiles(node) - 1) + rule.window
    return rule.before > 0 or last > rows_of(image)
