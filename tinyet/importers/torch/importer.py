# SPDX-License-Identifier: Apache-2.0
"""ExportedProgram → Graph. The program may be float or hold quantize and dequantize operators of any
quantizer.

The graph says what the program says, node by node: float arithmetic between explicit Quantize and Dequantize
nodes, images permuted to NHWC and back around each operator on images. Passes make integer operators of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from tinyet.errors import ModelError, RefusedError, UnsupportedOp, UnsupportedShape, bullet_list
from tinyet.fx.capture import lower
from tinyet.fx.edit import bind, dtype_name
from tinyet.fx.mutable_buffers import written_buffers
from tinyet.fx.origins import is_stamped, op_name, origin_of, origins_of
from tinyet.importers.torch.aten import TABLE, advice
from tinyet.importers.torch.aten_custom import custom_handler
from tinyet.importers.torch.aten_truth import is_true
from tinyet.importers.torch.context import Constant, Context, StandIn, Value, dtype_of, shape_of, type_of
from tinyet.ir import Array, DType, Graph, State, Tensor, TensorType, constant
from tinyet.messages.stages import stage
from tinyet.messages.text import printable
from tinyet.ops.copy import Copy


class _Complaints:
    """All errors of the program, in its order; equal refusals of one line of the user's are listed once."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, str], int] = {}
        self.only_shapes = True

    def add(self, node: fx.Node, reason: str, hint: str, *, shape: bool) -> None:
        origin = origin_of(node)
        inside = f" in {printable(origin.module)}" if origin.module else ""
        advised = f"\n    do: {hint}" if hint else ""
        found = f"{printable(origin.aten) or op_name(node)}{inside}: {reason}", f"\n    at: {origin}{advised}"
        self._times[found] = self._times.get(found, 0) + 1
        self.only_shapes = self.only_shapes and shape

    def raise_any(self) -> None:
        if self._times:
            kind = UnsupportedShape if self.only_shapes else UnsupportedOp
            lines = [
                f"{what}{f' ({times} times)' if times > 1 else ''}{where}"
                for (what, where), times in self._times.items()
            ]
            what = "one operator" if len(lines) == 1 else f"{len(lines)} operators"
            raise kind(f"{what} of the model cannot be lowered:\n{bullet_list(lines)}")


def _array(value: torch.Tensor) -> Array:
    """A constant's numbers, copied: a model may be trained on, and what was made of it stays as it was. bfloat16 and
    half become float32, since numpy knows no bfloat16."""
    value = value.detach().cpu()
    if value.dtype in (torch.bfloat16, torch.float16, torch.float64):
        value = value.float()
    return np.array(value.numpy(), order="C").reshape(tuple(value.shape))


def _constants(program: ExportedProgram) -> Mapping[str, torch.Tensor]:
    """The value of every placeholder that is a parameter, buffer or lifted constant, by placeholder name."""
    found: dict[str, Any] = {}
    for spec in program.graph_signature.input_specs:
        if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
            target = str(spec.target)
            found[spec.arg.name] = program.state_dict.get(target, program.constants.get(target))
    return found


def _targets(program: ExportedProgram) -> Mapping[str, str]:
    """Placeholder name → the name that the parameter has in the user's module."""
    return {spec.arg.name: str(spec.target) for spec in program.graph_signature.input_specs if spec.target}


def _input(ctx: Context, node: fx.Node, channels_last: bool) -> tuple[Tensor, Tensor]:
    """The graph's input for a placeholder, and the value in torch's order that stands for it inside. Raises
    RefusedError."""
    dtype = DType.INT32 if node.meta["val"].dtype is torch.bool else dtype_of(node.meta["val"])
    shape = shape_of(node)
    if channels_last and len(shape) == 4:
        outer = Tensor(ctx.name(node.name), type_of((shape[0], shape[2], shape[3], shape[1]), dtype))
        inner = is_true(ctx, outer) if node.meta["val"].dtype is torch.bool else outer
        return outer, ctx.permute(inner, (0, 3, 1, 2))
    tensor = Tensor(ctx.name(node.name), type_of(shape, dtype))
    return tensor, is_true(ctx, tensor) if node.meta["val"].dtype is torch.bool else tensor


_INPUT_HINTS = {
    torch.complex64: "take real and imaginary part as two float32 inputs",
}


def _inputs(
    ctx: Context, program: ExportedProgram, channels_last: bool, kept: Mapping[str, fx.Node]
) -> list[Tensor]:
    """The graph's inputs, without the states. Raises ModelError with all that no graph can take, or keep."""
    constants, targets = _constants(program), _targets(program)
    inputs: list[Tensor] = []
    refused: list[str] = []
    for node in program.graph.nodes:
        if node.op != "placeholder":
            continue
        ctx.enter(node)
        if node.name in kept:
            try:
                kind = type_of(shape_of(node), dtype_of(node.meta["val"]))
            except RefusedError:
                dtype, place = node.meta["val"].dtype, origin_of(kept[node.name])
                hint = _INPUT_HINTS.get(dtype, "keep it as float32, int8, int16, int32 or int64")
                which = f"buffer {targets[node.name]}, which forward() writes"
                refused.append(f"{which}: it is {dtype_name(dtype)}\n    at: {place}\n    do: {hint}")
            else:
                ctx.values[node] = Tensor(ctx.name(targets[node.name]), kind)
            continue
        if node.name in constants:
            title = targets.get(node.name, node.name)
            ctx.values[node] = Constant(title, _array(constants[node.name]))
            continue
        try:
            outer, ctx.values[node] = _input(ctx, node, channels_last)
        except RefusedError:
            dtype = node.meta["val"].dtype
            hint = _INPUT_HINTS.get(dtype, "take it as float32, bool, uint8, int8, int16, int32 or int64")
            which = f"input {len(inputs) + len(refused)}, {node.name}"
            refused.append(f"{which}: it is {dtype_name(dtype)}\n    at: {origin_of(node)}\n    do: {hint}")
        else:
            inputs.append(outer)
    if refused:
        count = "one input" if len(refused) == 1 else f"{len(refused)} inputs"
        raise ModelError(f"{count} of the model cannot be taken:\n{bullet_list(refused)}")
    return inputs


def _stand_in(node: fx.Node) -> Value:
    """The placeholder for the results of a refused node."""

    def one(value: object) -> StandIn | None:
        if not isinstance(value, torch.Tensor):
            return None
        whole = not (value.is_floating_point() or value.is_complex())
        dtype = DType.UINT8 if value.dtype is torch.uint8 else DType.INT32 if whole else DType.FLOAT32
        type_ = TensorType(tuple(int(s) for s in value.shape), dtype)
        return StandIn(node.name, type_, has_type=not value.is_complex())

    value = node.meta.get("val")
    if isinstance(value, (tuple, list)):
        return tuple(one(part) for part in value)
    return one(value) or StandIn(node.name, TensorType((1,), DType.FLOAT32), has_type=False)


def _reads_what_cannot_be(ctx: Context, node: fx.Node) -> bool:
    """Whether the node reads a refused value that no graph has, whatever its readers are (complex, a number)."""
    values = (ctx.values.get(source) for source in node.all_input_nodes)
    return any(isinstance(value, StandIn) and not value.has_type for value in values)


def _used(program: ExportedProgram, kept: Mapping[str, fx.Node]) -> set[fx.Node]:
    """The nodes on which an output, or a state, depends. Export adds a getitem for every result of split and the
    like."""
    used: set[fx.Node] = set()
    stack = [node for node in program.graph.nodes if node.op == "output"] + [*kept.values()]
    while stack:
        node = stack.pop()
        if node not in used:
            used.add(node)
            stack += node.all_input_nodes
    return used


def _walk(
    ctx: Context, program: ExportedProgram, kept: Mapping[str, fx.Node], complaints: _Complaints
) -> None:
    """Run the handlers over all computing nodes whose results are used."""
    used = _used(program, kept)
    for node in program.graph.nodes:
        if node.op != "call_function" or node not in used:
            continue
        ctx.enter(node)
        handler = TABLE.get(node.target) or custom_handler(node.target)
        ctx.values[node] = _stand_in(node)
        if _reads_what_cannot_be(ctx, node):
            continue
        if handler is None:
            name = op_name(node)
            complaints.add(node, "is not supported", advice(name), shape=False)
            continue
        try:
            ctx.values[node] = handler(ctx, bind(node))
        except RefusedError as refused:
            complaints.add(node, refused.reason, refused.hint, shape=refused.shape)
        except UnsupportedShape as error:
            complaints.add(node, error.what, error.hint or "", shape=True)


def _outputs(
    ctx: Context, program: ExportedProgram, channels_last: bool, complaints: _Complaints
) -> list[Tensor]:
    by_name = {node.name: node for node in program.graph.nodes}
    outputs: list[Tensor] = []
    for spec in program.graph_signature.output_specs:
        if spec.kind is not OutputKind.USER_OUTPUT:
            continue
        node = by_name[spec.arg.name]
        ctx.enter(node)
        try:
            tensor = ctx.tensor(node)
        except RefusedError as refused:
            complaints.add(node, f"as an output, {refused.reason}", refused.hint, shape=refused.shape)
            continue
        if channels_last and len(tensor.shape) == 4:
            tensor = ctx.permute(tensor, (0, 2, 3, 1))
        # an output has a place of its own in memory, even when the model hands an input or a constant through
        passed_on = tensor in outputs or all(tensor not in made.outputs for made in ctx.nodes)
        outputs.append(ctx.move(Copy(), [tensor], tensor.shape, f"{node.name}_out") if passed_on else tensor)
    return outputs


def _states(
    ctx: Context, program: ExportedProgram, kept: Mapping[str, fx.Node], complaints: _Complaints
) -> list[State]:
    """The program's states, in the order in which it writes them."""
    constants = _constants(program)
    entries = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    states: list[State] = []
    for name, written in kept.items():
        ctx.enter(written)
        value = ctx.values[entries[name]]
        assert isinstance(value, Tensor)
        try:
            tensor = ctx.tensor(written)
        except RefusedError as refused:
            complaints.add(written, f"to be kept, {refused.reason}", refused.hint, shape=refused.shape)
            continue
        if tensor.type.dtype is not value.dtype:
            what = f"as {value.dtype.value} {tensor.dtype.value} are kept"
            complaints.add(written, what, "give the buffer the type of what is written", shape=False)
            continue
        first = _array(constants[name]).astype(value.dtype.numpy)
        states.append(State(value, tensor, constant(f"{value.name}_initial", first, value.type.quant)))
    return states


def import_program(
    program: ExportedProgram, *, name: str, channels_last: bool = False, root: Path | None = None
) -> Graph:
    """The program as a Graph called `name`.

    channels_last: inputs and outputs with four dimensions are NHWC at the boundary, not torch's NCHW.
    root: directory to which file names in debug handles are made relative, for programs that `capture` has
    not made.

    Raises UnsupportedOp (UnsupportedShape, when every operator is known but some arguments are not) with all
    complaints at once, and what `capture.lower` raises.
    """
    calls = [node for node in program.graph.nodes if node.op == "call_function"]
    if not all(is_stamped(node) for node in calls):
        program = lower(program, root)
    stage("importing the graph")
    ctx, complaints = Context(origins_of(program.graph)), _Complaints()
    kept = {entry.name: written for _, entry, written in written_buffers(program)}
    inputs = _inputs(ctx, program, channels_last, kept)
    _walk(ctx, program, kept, complaints)
    complaints.raise_any()
    outputs = _outputs(ctx, program, channels_last, complaints)
    states = _states(ctx, program, kept, complaints)
    complaints.raise_any()
    return Graph(
        name,
        (*inputs, *(state.value for state in states)),
        (*outputs, *(state.next for state in states)),
        tuple(ctx.nodes),
        tuple(state.initial for state in states),
    )
