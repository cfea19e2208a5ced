# SPDX-License-Identifier: Apache-2.0
"""From an `nn.Module` to a Program: the whole lowering in one function."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyet import passes
from tinyet.boards import Board, load_board
from tinyet.data import Data
from tinyet.delegates import Delegates, delegates_or_default
from tinyet.deployment import deploy
from tinyet.errors import (
    ModelError,
    QuantizationError,
    TinyetWarning,
    ToolchainError,
    UsageError,
    bullet_list,
)
from tinyet.errors.arguments import OverTime, function_given
from tinyet.files.atomic import write_whole
from tinyet.files.model_name import class_name, given_or_derived
from tinyet.ir import DType, Graph, Node
from tinyet.ops import op_of
from tinyet.ops.cast import Cast
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.dynamic_conv2d import DynamicConv2d
from tinyet.ops.dynamic_linear import DynamicLinear
from tinyet.ops.gather import Gather
from tinyet.ops.quantize import Quantize
from tinyet.opset import moves
from tinyet.program import Program, check_labels
from tinyet.quality.alarm import measured
from tinyet.sizes import resize

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram

    from tinyet.quality.sensitivity import Cost
    from tinyet.quantization.lowering import Lowered
    from tinyet.quantization.sizes import Dynamic

Dump = Callable[[str, str], None]
"""Receives (pass name, graph text) after each pass."""

DumpTo = Dump | str | Path
"""Likewise, or the directory in which each text becomes a file."""

Progress = Callable[[int, int | None], None]


def compile(  # noqa: A001 - the public name is tinyet.compile
    model: torch.nn.Module | ExportedProgram,
    example_inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    calibration: Iterable[Any] | None = None,
    name: str | None = None,
    quantizer: Any = None,
    board: str | Path | Board | None = None,
    delegates: Delegates | None = None,
    channels_last: bool = False,
    float_io: bool = False,
    equalize: bool = False,
    correct_bias: bool = False,
    learn_rounding: bool = False,
    prune: bool = True,
    stateful: bool = False,
    dynamic_shapes: Any = None,
    labels: Sequence[str] | None = None,
    strict: bool = False,
    dump: DumpTo | None = None,
    progress: Progress | None = None,
) -> Program:
    """Capture, quantize and lower a model.

    model: in eval mode, or an ExportedProgram (quantized already or not), or what `tinyet.streaming` gives: the network
        over the window is captured, quantized and lowered, and then becomes one that takes its newest frames.
    example_inputs: a tuple of tensors with the shapes the firmware shall take, or a dict of them by the names of
        forward()'s arguments. Tensors in tuples, lists and dicts are inputs, too, called after their paths; numbers and
        None are constants. An ExportedProgram, and what `tinyet.streaming` gives, has its own.
    calibration: batches (a tensor, a tuple of one tensor per input, or what the example inputs are) of typical data, or
        all of it as one tensor, where the model has one input; without it the model stays float, unless it is
        quantized already.
    name: the prefix of the C functions; by default that of the model's class, `KeywordNet` as keyword_net, or `model`
        where the class says nothing (Net, Model, one of torch's).
    quantizer: a torchao PT2E quantizer; TinyetQuantizer() by default.
    board: when given (a name, the path of a board file, or a Board), every operator's kernel is looked for now, so that
        errors come early. delegates: who is asked for them then, by name or as objects; as in `generate`.
    channels_last: the image inputs are (N, H, W, C) in memory instead of PyTorch's (N, C, H, W).
    float_io: inputs and outputs of the firmware are float32; otherwise they are the model's own integers where it is
        quantized.
    equalize, correct_bias, learn_rounding: lose less by quantizing, at no cost on the device: see docs/quantization.md.
        All want to see the calibration data several times, so it is kept in memory. learn_rounding takes seconds to
        minutes.
    prune: channels that are constant or that nobody reads are removed, which changes no output: see docs/pruning.md.
    stateful: recurrent layers that are given no first state begin each run where the run before has stopped; see
        docs/state.md. Calibration is as in torch: each sample begins with a first state of zero.
    dynamic_shapes: as torch.export takes it, for a size that is known only when the firmware runs, with its largest
        value: ({1: torch.export.Dim("steps", min=4, max=98)},). Memory is planned for the largest, and a run is told
        the size; example inputs and calibration data have the largest. See docs/sizes.md.
    labels: names of the classes, one for each element of the first output; the generated header has them.
    strict: raise ModelError, listing them, when layers compute in float that the quantizer was not told to leave so,
        and QuantizationError when the integers' answers are not the model's.
    dump: receives the graph's text after each pass; or a directory, for a file a pass.

    A quantized program's answers to some of the calibration data are compared with the float model's: `Program.answers`
    holds how far they are apart. That they are too far is a TinyetWarning.

    Raises ModelError (and its subclasses) for a model that cannot be captured or lowered, QuantizationError
    for calibration data that cannot be used, UsageError for arguments that would have no effect beside the others.
    """
    dynamic = None
    if dynamic_shapes is not None:
        dynamic = dynamic_given(model, example_inputs, dynamic_shapes)
    program = compiled(
        model,
        example_inputs,
        calibration=calibration,
        name=name,
        quantizer=quantizer,
        board=board,
        delegates=delegates,
        channels_last=channels_last,
        float_io=float_io,
        equalize=equalize,
        correct_bias=correct_bias,
        learn_rounding=learn_rounding,
        prune=prune,
        stateful=stateful,
        labels=labels,
        strict=strict,
        dump=dump,
        progress=progress,
        dynamic=dynamic,
    )
    if program.answers is not None and not program.answers.healthy:
        warnings.warn(TinyetWarning(f"{program.answers.warning}\n{look_closer(quantizer)}"), stacklevel=2)
    return program


def look_closer(quantizer: object) -> str:
    """The call that says why the answers of a program are not the model's."""
    own = "" if quantizer is None else ", quantizer=quantizer"
    return f"to look closer: tinyet.diagnose(model, example_inputs, calibration=batches{own})"


def compiled(
    model: torch.nn.Module | ExportedProgram,
    example_inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    calibration: Iterable[Any] | None = None,
    name: str | None = None,
    quantizer: Any = None,
    board: str | Path | Board | None = None,
    delegates: Delegates | None = None,
    channels_last: bool = False,
    float_io: bool = False,
    equalize: bool = False,
    correct_bias: bool = False,
    learn_rounding: bool = False,
    prune: bool = True,
    stateful: bool = False,
    labels: Sequence[str] | None = None,
    strict: bool = False,
    dump: DumpTo | None = None,
    progress: Progress | None = None,
    evaluation: Callable[[Program], Data | None] | None = None,
    dynamic: Dynamic | None = None,
) -> Program:
    """`compile` without its warning: who calls this tells of the program's answers. evaluation: gives the model's
    evaluation data, in the shapes of a program, where answers to the calibration data are not good enough. dynamic: the
    size that is known at run time, as `dynamic_given` gives it."""
    if delegates is not None and board is None:
        raise UsageError(
            "delegates choose kernels for a board, and there is no board",
            hint="give board=, too, or give the delegates to `generate`: a program is the same for all of them",
        )
    chosen = delegates_or_default(delegates)
    written = dump_given(dump)
    function_given(progress, "progress", "it receives how many batches are done, and of how many")
    target = None if board is None else load_board(board).target
    over_time = getattr(model, "over_time", None)
    if isinstance(over_time, OverTime):
        if example_inputs is not None:
            raise UsageError("a streaming model has its own example inputs", hint="leave example_inputs away")
        if stateful:
            raise UsageError("a streaming model is stateful already", hint="leave stateful away")
        model, example_inputs = model.model, model.example_inputs  # type: ignore[union-attr, assignment]
    name = given_or_derived(name, class_name(model))
    lowered = _graphs(
        model,
        example_inputs,
        name=name,
        calibration=calibration,
        quantizer=quantizer,
        channels_last=channels_last,
        equalize=equalize,
        correct_bias=correct_bias,
        learn_rounding=learn_rounding,
        progress=progress,
    )
    graph, notes = passes.run(lowered.graph, float_io=float_io, prune=prune, stateful=stateful, dump=written)
    float_graph = None
    if lowered.float_graph is not None and lowered.float_graph is not lowered.graph:
        # A module in it that was lowered before is quantized all the same; the float graph takes floats none the less.
        # It keeps its channels: which of them are constant is not the same before and after quantizing.
        float_graph, _ = passes.run(lowered.float_graph, float_io=True, prune=False, stateful=stateful)
    names = () if labels is None else check_labels(labels, graph.user_outputs[0], "labels")
    program = Program(name, graph, float_graph, (*lowered.notes, *notes), names)
    if dynamic is not None:
        program = _with_size(program, dynamic, channels_last=channels_last)
    if strict:
        require_integer(program, lowered.in_float)
    program = measured(program, lowered.samples, evaluation)
    if strict:
        require_answers(program, look_closer(quantizer) if evaluation is None else None)
    if isinstance(over_time, OverTime):
        program = program.streaming(
            over_time.axis, hop=over_time.hop, edges=over_time.edges, channels_last=channels_last
        )
    if target is not None:
        deploy(program.graph, target, chosen, size=program.size)
    return program


def dynamic_given(model: object, example_inputs: Any, dynamic_shapes: Any) -> Dynamic:
    """The size that dynamic_shapes declares of a module and its example inputs. Raises UsageError for anything else."""
    try:
        from tinyet.quantization.sizes import dynamic_of
    except ImportError as error:
        raise without_torch(error) from error
    if isinstance(getattr(model, "over_time", None), OverTime):
        raise UsageError(
            "a streaming model takes as many frames in each run",
            "dynamic_shapes",
            "leave dynamic_shapes away, or give the network over the window",
        )
    return dynamic_of(model, example_inputs, dynamic_shapes)


def _with_size(program: Program, dynamic: Dynamic, *, channels_last: bool) -> Program:
    """The program with its size; the graph at other sizes has been compared with the module."""
    from tinyet.quantization.sizes import check_sizes

    axes = tuple(
        (0, 3, 1, 2)[axis] if channels_last and axis is not None and len(tensor.shape) == 4 else axis
        for tensor, axis in zip(program.inputs, dynamic.size.axes, strict=True)
    )
    size = replace(dynamic.size, axes=axes)
    wrong = size.complaints(program.inputs)
    if wrong:
        raise ModelError("; ".join(wrong), "dynamic_shapes")
    exact = program.graph if program.float_graph is None else program.float_graph
    check_sizes(dynamic, exact, size, channels_last=channels_last)
    for value in size.values:
        resize(program.graph, size, value)
    notes = program.notes if dynamic.note is None else (*program.notes, dynamic.note)
    return replace(program, size=size, notes=notes)


def _graphs(
    model: torch.nn.Module | ExportedProgram,
    example_inputs: Sequence[Any] | Mapping[str, Any] | None,
    **options: Any,
) -> Lowered:
    """The imported graphs; the only step that needs torch. options: those of `lower_model`."""
    try:
        from tinyet.quantization.lowering import lower_model
    except ImportError as error:
        raise without_torch(error) from error
    return lower_model(model, example_inputs, **options)


def cost_on(
    board: str | Path | Board,
    delegates: Delegates | None = None,
    *,
    channels_last: bool = False,
    float_io: bool = False,
) -> Callable[[ExportedProgram], Cost]:
    """The cost function of `quantization.sensitivity`: it compiles a quantized program for the board and returns its
    bytes. Raises ModelError for a program that cannot be compiled."""
    from tinyet.quality.sensitivity import Cost
    from tinyet.quantization.lowering import lower_program

    target = load_board(board).target
    chosen = delegates_or_default(delegates)

    def cost(program: ExportedProgram) -> Cost:
        lowered = lower_program(program, name="model", channels_last=channels_last)
        graph, _ = passes.run(lowered.graph, float_io=float_io)
        deployment = deploy(graph, target, chosen)
        return Cost(deployment.constant_bytes, deployment.plan.arena_bytes)

    return cost


def without_torch(error: ImportError) -> ToolchainError:
    return ToolchainError(
        f"capturing a model needs torch and torchao ({error})", hint="pip install 'tinyet[torch]'"
    )


def float_layers(graph: Graph) -> list[Node]:
    """The nodes that compute in float32: not integer (a layer that quantizes its input at run time is), no conversion
    at the border of the integers, and no mere moving."""
    return [
        node
        for node in graph.nodes
        # A gather moves values to places that only the device knows.
        if not isinstance(node.attrs, Cast | Quantize | Dequantize | Gather | DynamicConv2d | DynamicLinear)
        and not moves(op_of(node), node)
        and any(
            t.dtype is DType.FLOAT32
            for t in (*node.inputs, *node.outputs)
            if t is not None and not t.is_constant
        )
    ]


def dump_given(dump: DumpTo | None) -> Dump | None:
    """A function that receives each pass's text. Of a directory, what is there already when a later pass fails stays:
    to look at it is what it is for. Raises UsageError for one that cannot be made or written."""
    if not isinstance(dump, (str, Path)):
        hint = "a directory, or a function: it receives the name of each pass and the graph's text behind it"
        function_given(dump, "dump", hint)
        return dump
    directory = Path(dump)

    def write(name: str, text: str) -> None:
        try:
            write_whole(directory / f"{name}.txt", text.encode())
        except OSError as error:
            raise UsageError(
                f"dump: cannot write: {error.strerror}", str(directory), "name another"
            ) from error

    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"dump: cannot make the directory: {error.strerror}", str(directory)) from error
    return write


def require_integer(program: Program, asked: Container[str] | None = None) -> None:
    """Raise ModelError, listing them, when layers compute in float that nobody asked to (`strict`).

    asked: what the quantizer was told to leave in float, by the keys of its origins; None where it cannot be told.
    """
    told = () if asked is None else asked
    floats = [n for n in float_layers(program.graph) if not any(o.key in told for o in n.origins)]
    if floats:
        why = {note.origin: note.text for note in program.notes}
        lines = [
            f"{n.op} {n.where or n.outputs[0].name}"
            + (f" ({why[n.origins[-1]]})" if n.origins and n.origins[-1] in why else "")
            for n in floats
        ]
        raise ModelError(
            f"{len(floats)} layer(s) compute in float:\n{bullet_list(lines)}",
            hint=_on_purpose(program, floats if asked is not None else []),
        )


def _on_purpose(program: Program, floats: Sequence[Node]) -> str:
    """How to be strict with layers in float. floats: those that can be told by their names."""
    keys = dict.fromkeys(n.origins[-1].key for n in floats if n.origins)
    integers = any(t.type.quant is not None for node in program.graph.nodes for t in node.outputs)
    if not keys or not integers:
        return (
            "give calibration data, leave strict away, or exclude them on purpose: "
            "TinyetQuantizer().set_module_name(name, None)"
        )
    settings = "".join(f'.set_operator("{key}", None)' for key in keys)
    return f"leave strict away (its notes say what int8 would spoil), or say it on purpose: TinyetQuantizer(){settings}"


def require_answers(program: Program, hint: str | None = None) -> None:
    """Raise QuantizationError, with where it begins, when a program's answers are not the float model's (`strict`).

    hint: how to look closer.
    """
    answers = program.answers
    if answers is not None and not answers.healthy:
        where = answers.begins[0].layer if answers.begins else None
        raise QuantizationError(
            answers.warning, where, hint or "tinyet quantize MODEL --report finds what helps"
        )
