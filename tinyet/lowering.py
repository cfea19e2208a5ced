# SPDX-License-Identifier: Apache-2.0
"""A module lowered to one delegate as a whole, to be used alone or inside a larger module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyet.boards import Board, load_board
from tinyet.compiler import Progress
from tinyet.compiler import compile as compile_module
from tinyet.delegates import Delegate, delegates_named
from tinyet.deployment import deploy
from tinyet.errors import ModelError
from tinyet.ir import Graph, Node
from tinyet.ops.region import Region
from tinyet.opset import delegate_name

if TYPE_CHECKING:
    import torch

    from tinyet.importers.torch.lowered import LoweredModule


def lower(
    model: torch.nn.Module,
    example_inputs: Sequence[Any] | Mapping[str, Any],
    delegate: str | Delegate,
    *,
    calibration: Iterable[Any] | None = None,
    quantizer: Any = None,
    name: str = "lowered",
    board: str | Path | Board | None = None,
    channels_last: bool = False,
    equalize: bool = False,
    correct_bias: bool = False,
    learn_rounding: bool = False,
    prune: bool = True,
    progress: Progress | None = None,
) -> LoweredModule:
    """Compile a module now, for one delegate that must take all of it.

    The result is an `nn.Module` that computes, in torch, exactly what the firmware will. A module around it exports it
    as one node and compiles it in: quantized with this module's own parameters, whatever the parent's are. Used twice,
    it keeps its weights once. `tinyet.compile(lowered, example_inputs)` makes a program of it alone.

    delegate: a name, or a Delegate (which `register_delegate` must know when a project is opened again).
    board: when given, whether the delegate takes everything is found out now and not when a project is generated.
    The other arguments are those of `tinyet.compile`. Raises UsageError for an unknown delegate, what
    `tinyet.compile` raises, and with a board UnsupportedOp with all that the delegate refuses.
    """
    (chosen,) = delegates_named(delegate)
    program = compile_module(
        model,
        example_inputs,
        calibration=calibration,
        quantizer=quantizer,
        name=name,
        channels_last=channels_last,
        equalize=equalize,
        correct_bias=correct_bias,
        learn_rounding=learn_rounding,
        prune=prune,
        progress=progress,
    )
    if program.states:
        names = ", ".join(state.name for state in program.states)
        raise ModelError(
            f"the module keeps state between runs, {names}, and one layer of a network has none",
            hint="make the state an input and an output of forward(), or compile the whole network as one",
        )
    from tinyet.importers.torch.lowered import LoweredModule

    if board is not None:
        target = load_board(board).target
        graph = program.graph
        whole = Node(Region(delegate_name(chosen.name), graph), graph.inputs, graph.outputs)
        deploy(Graph(name, graph.inputs, graph.outputs, (whole,)), target, (chosen,))
    return LoweredModule(program.graph, chosen.name)
