# SPDX-License-Identifier: Apache-2.0
"""nn.Module and example inputs → a functional ExportedProgram of core ATen operators, with static shapes.

Operators that torch would take apart into many but that are one kernel on the device stay whole
(`decompose.py`). Complex values become pairs of floats (`complex.py`). Batch norms are folded or become
depthwise convolutions, constants are folded, no-ops are dropped (`normalize.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from keyword import kwlist
from pathlib import Path
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor, fx, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from torch.fx.graph import CodeGen
from torch.nn.modules import transformer
from torch.nn.parameter import is_lazy
from torch.utils import _pytree as pytree

from tinyet.errors import DynamicShape, ModelError, bullet_list
from tinyet.fx.as_exported import as_exported
from tinyet.fx.complex import split_complex
from tinyet.fx.decompose import decompose
from tinyet.fx.examples import Example, Inputs, check_inputs, example_of
from tinyet.fx.known_indices import fold_known_indices
from tinyet.fx.lazy_code import compiled_when_called
from tinyet.fx.lfilter import split_lfilter, torchaudio_taken_whole
from tinyet.fx.log_filter import quiet
from tinyet.fx.module_snapshot import left_as_found
from tinyet.fx.mutable_buffers import put_back, take_out
from tinyet.fx.normalize import normalize
from tinyet.fx.origins import FileModule, is_stamped, origin_of, stamp
from tinyet.fx.precision import in_float32, refuse_others, say
from tinyet.fx.prune import with_plain_weights
from tinyet.fx.recurrent import keep_recurrent
from tinyet.fx.recurrent_loops import gather_loops
from tinyet.fx.signals import mark_signals
from tinyet.fx.source_locations import (
    directory_of,
    frame_of_exception,
    layer_of_exception,
    message_of,
    place_of_forward,
    users_frames_recorded,
)
from tinyet.fx.state import refuse_state
from tinyet.messages.stages import stage
from tinyet.messages.text import c_identifier, shown, unused

# Constants of a graph are computed here and now, whatever their size.
_MOST_BYTES = 1 << 28

STATIC_HINT = (
    "export without dynamic_shapes; instead of x[mask], nonzero or unique, whose size depends on values, keep the "
    "size: torch.where(mask, x, 0.0)"
)


def _check_devices(module: nn.Module) -> None:
    """Raise ModelError, listing them by device, for weights that are not in this machine's memory."""
    elsewhere: dict[str, list[str]] = {}
    for name, value in (*module.named_parameters(), *module.named_buffers()):
        if value.device.type != "cpu":
            elsewhere.setdefault(str(value.device), []).append(name)
    if elsewhere:
        lists = [
            f"on {device}: {', '.join(names[:4])}{', …' if len(names) > 4 else ''}"
            for device, names in elsewhere.items()
        ]
        raise ModelError(
            f"weights of the model are not on the CPU:\n{bullet_list(lists)}",
            place_of_forward(module),
            "load the weights; on the meta device they have no values"
            if "meta" in elsewhere
            else "move the model with .cpu()",
        )


@contextmanager
def _own_mistakes(module: nn.Module, inputs: Example) -> Iterator[None]:
    """The model is run as it is: what it raises is its own mistake, and no limit of the capture."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:
        frame = frame_of_exception(error)
        shapes = ", ".join(str(tuple(value.shape)) for value in inputs)
        raise ModelError(
            f"the model raises {message_of(error)}",
            str(frame) if frame else layer_of_exception(error, module),
            f"the example inputs have shapes {shapes}: make forward() run with them",
        ) from error


def _make_lazy_weights(module: nn.Module, inputs: Example) -> None:
    """Run a model once whose weights are made at the first call (LazyLinear); these it keeps."""
    if any(map(is_lazy, (*module.parameters(), *module.buffers()))):
        training = {child for child in module.modules() if child.training}
        module.eval()
        try:
            with torch.no_grad():
                inputs.run(module)
        finally:
            for child in training:
                child.training = True


@contextmanager
def _masks_taken_as_they_are() -> Iterator[None]:
    """nn.TransformerDecoder compares a mask with the causal one, for a faster kernel of its own; the comparison would
    be a decision by the values of a tensor. A mask that is given has the same effect either way."""
    original = transformer._detect_is_causal_mask

    def as_it_is(mask: Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:  # noqa: ARG001
        return is_causal is True

    transformer._detect_is_causal_mask = as_it_is
    try:
        yield
    finally:
        transformer._detect_is_causal_mask = original


def _capture_error(error: Exception, module: nn.Module) -> ModelError:
    """The refusal of torch.export, in terms of the user's own line."""
    frame = frame_of_exception(error)
    where = str(frame) if frame else None
    text = str(error)
    if type(error).__name__ == "GuardOnDataDependentSymNode" or "data-dependent" in text:
        return ModelError(
            "what is computed depends on the values of a tensor",
            where,
            "firmware runs a fixed list of operators: compute both sides of an if and choose with "
            "torch.where(condition, a, b); leave assert and float() away; let while and range() run a fixed number of "
            "times",
        )
    if "dynamic" in text.lower() and "shape" in text.lower() and "constraint" in text.lower():
        return DynamicShape(
            "a dimension that was declared dynamic is not", where, "export with static shapes"
        )
    if "__obj_flatten__" in text or "ScriptObject" in text:
        return ModelError(
            "the model holds packed weights, as the quantized modules of torch.ao have them",
            where or place_of_forward(module),
            "give the float model, and calibration data: tinyet quantizes it",
        )
    return ModelError(
        f"torch.export cannot capture the model: {message_of(error)}",
        where or layer_of_exception(error, module),
        "write this line with torch operators on tensors only (no numpy, no attributes assigned in "
        "forward())",
    )


def _check_outputs(program: ExportedProgram, where: str | None = None) -> None:
    """Every output is a tensor. where: the place of forward(), if it is known."""
    specs = [s for s in program.graph_signature.output_specs if s.kind is OutputKind.USER_OUTPUT]
    wrong = [
        f"output {index} of forward() is {shown(spec.arg.value)}"
        for index, spec in enumerate(specs)
        if isinstance(spec.arg, ConstantArgument)
    ]
    if wrong:
        raise ModelError(", ".join(wrong) + ": no tensor", where, "return tensors only")


def _check_static(program: ExportedProgram) -> None:
    """Every value has a shape of plain integers and a size that can be."""
    dynamic, large = [], []
    for node in program.graph.nodes:
        value = node.meta.get("val")
        values = value if isinstance(value, (tuple, list)) else (value,)
        for tensor in values:
            if isinstance(tensor, torch.Tensor) and not all(isinstance(size, int) for size in tensor.shape):
                shape = ", ".join(str(size) for size in tensor.shape)
                kind = "input" if node.op == "placeholder" else "value"
                dynamic.append(f"{kind} {node.name} ({shape}) {origin_of(node)}")
                break
            if isinstance(tensor, torch.Tensor) and tensor.numel() * tensor.itemsize > _MOST_BYTES:
                large.append(f"{node.name} {tuple(tensor.shape)} {origin_of(node)}")
    if large:
        raise ModelError(
            f"values of more than {_MOST_BYTES:,} bytes, which no board has:\n{bullet_list(large[:8])}",
            hint="make the example inputs, or what is computed of them, smaller",
        )
    if dynamic:
        raise DynamicShape(
            "shapes that are not known when compiling:\n" + bullet_list(dynamic[:8]),
            hint=STATIC_HINT,
        )
    unknown = [s.arg.name for s in program.graph_signature.input_specs if s.kind is InputKind.CUSTOM_OBJ]
    if unknown:
        raise ModelError(
            f"the model holds script objects: {', '.join(unknown)}", hint="use tensors and modules only"
        )


def example_inputs_of(program: ExportedProgram) -> Inputs:
    """The example inputs that the program was exported with, or zeros of their shapes when it was saved
    without."""
    if program.example_inputs is not None:
        leaves = pytree.tree_leaves(program.example_inputs)
        return check_inputs([leaf for leaf in leaves if isinstance(leaf, torch.Tensor)])
    names = set(program.graph_signature.user_inputs)
    nodes = [node for node in program.graph.nodes if node.op == "placeholder" and node.name in names]
    values = [node.meta["val"] for node in nodes]
    return tuple(torch.zeros(tuple(v.shape), dtype=v.dtype) for v in values if isinstance(v, torch.Tensor))


def _flattened(program: ExportedProgram, module: fx.GraphModule) -> fx.GraphModule:
    """The program's module, of which forward() takes the tensors one by one, called after their paths, and gives them
    so; what is no tensor is a constant in it."""
    graph = module.graph
    entries = [node for node in graph.nodes if node.op == "placeholder"]
    plain = pytree.tree_structure((tuple(range(len(entries))), {}))
    numbers = [node for node in entries if not isinstance(node.meta.get("val"), torch.Tensor)]
    if program.call_spec.in_spec == plain and not numbers:
        return module
    for node in numbers:
        if node.users:
            raise ModelError(f"input {node.name} is no tensor, and what is computed depends on it")
        graph.erase_node(node)
    output = graph.output_node()
    output.args = (tuple(pytree.tree_leaves(output.args[0])),)
    graph.set_codegen(CodeGen())
    return fx.GraphModule(module, graph)


def re_export(module: fx.GraphModule, inputs: Inputs) -> ExportedProgram:
    """Export a graph module whose nodes are stamped with their origins."""
    stage("exporting the graph")
    with quiet(), torch.no_grad():
        return as_exported(module, inputs) or torch.export.export(module, inputs)


def _call_inputs(module: fx.GraphModule, names: Sequence[str]) -> None:
    """Call the inputs so, as identifiers that a function's arguments can have."""
    entries = [node for node in module.graph.nodes if node.op == "placeholder"]
    taken = {node.name for node in module.graph.nodes if node not in entries} | {*kwlist, "self", "torch"}
    for node, title in zip(entries, names, strict=True):
        name = unused(c_identifier([title]), taken)
        node.target = node.name = name
    output = module.graph.output_node()
    results = tuple(pytree.tree_leaves(output.args[0]))
    output.args = (results[0] if len(results) == 1 else results,)
    module.graph.set_codegen(CodeGen())
    module.recompile()


_LOWERED: WeakSet[ExportedProgram] = WeakSet()


@compiled_when_called()
def lower(
    program: ExportedProgram, root: Path | None = None, source: FileModule | None = None
) -> ExportedProgram:
    """Decompose, functionalise, check and normalise a program that torch.export made; one that has come from here is
    given back as it is.

    root: directory to which the debug handles' file names are made relative. source: the module that was captured,
    where it was made of a file, whose places and names the program has then.
    """
    if program in _LOWERED and all(
        is_stamped(node) for node in program.graph.nodes if node.op == "call_function"
    ):
        return program
    stage("decomposing the model")
    _check_outputs(program)
    refuse_others(program)
    _check_static(program)
    try:
        with quiet():
            core = decompose(program)
    except Exception as error:
        raise _capture_error(error, program.graph_module) from error
    _check_static(core)
    inputs = example_inputs_of(program)
    with quiet():
        module = _flattened(program, core.module(check_guards=False))
    stamp(module.graph, root, None if source is None else source.origins)
    if source is not None:
        _call_inputs(module, source.input_names)
    kept = take_out(module)
    split_complex(module)
    normalize(module)
    split_lfilter(module)
    fold_known_indices(module)
    gather_loops(module)
    keep_recurrent(module)
    stamp(module.graph, root)
    mark_signals(module)
    put_back(module, kept)
    lowered = re_export(module, inputs)
    _LOWERED.add(lowered)
    return lowered


@compiled_when_called()
def capture(
    module: nn.Module,
    example_inputs: torch.Tensor | Sequence[Any] | Mapping[str, Any] | Example,
    root: Path | None = None,
) -> ExportedProgram:
    """The module in eval mode as a normalised ExportedProgram; the module itself, with all that it holds, is left as it
    was, but for weights that are made at the first call.

    Pruning masks and parametrizations become plain weights, floats of another size float32 (`precision`). The program
    takes the tensors of the example inputs one by one, whatever these are nested in.

    root: directory to which debug handles' file names are made relative; that of the module's class by
    default.

    Raises ModelError (DynamicShape among them) with the user's own file and line: the model raises, a
    decision depends on tensor values, a shape is not static, or forward() keeps state between calls.
    """
    stage("exporting the model")
    compiled = getattr(module, "_orig_mod", None)
    if isinstance(compiled, nn.Module):
        module = compiled  # what torch.compile makes of it runs on this machine only
    _check_devices(module)
    inputs = example_of(example_inputs)
    kind = type(module)
    source = module if isinstance(module, FileModule) else None
    module, remarks = in_float32(module)
    with _own_mistakes(module, inputs):
        _make_lazy_weights(module, inputs)
    with left_as_found(module):
        module.eval()
        with _own_mistakes(module, inputs):
            refuse_state(module, inputs)
        try:
            whole = (_masks_taken_as_they_are(), torchaudio_taken_whole())
            with quiet(), torch.no_grad(), users_frames_recorded(), whole[0], whole[1]:
                program = torch.export.export(with_plain_weights(module), *inputs.copied().arguments)
        except Exception as error:
            raise _capture_error(error, module) from error
        _check_outputs(program, place_of_forward(module))
        lowered = lower(program, root or directory_of(kind), source)
    numbers = tuple(f"{constant} is a constant of the program" for constant in inputs.constants)
    say(lowered, (*remarks, *numbers))
    return lowered
