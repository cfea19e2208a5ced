# SPDX-License-Identifier: Apache-2.0
"""The definitions and calls of a generated model, in C: constants, parameters, functions, and the steps of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tinyet.deployment import Deployment, Step, StoredArray, ahead_bytes
from tinyet.emit.constants import NONE_COMMON, Common
from tinyet.emit.fusion import (
    CallView,
    CaseView,
    FusionGroupView,
    ParamsView,
    RowPointers,
    cases,
    order,
    order_lines,
    part_lines,
)
from tinyet.emit.instance import Instance
from tinyet.emit.literals import CTYPES, array, integer, real, struct
from tinyet.emit.names import Names, declared, function_names
from tinyet.emit.places import CopyView, attribute, copies_at
from tinyet.emit.pointers import Pointers
from tinyet.emit.sizes import SizeCode
from tinyet.errors import InternalError
from tinyet.files.model_name import interface
from tinyet.ir import Tensor
from tinyet.memory.fusion import FusionGroup, Run, Shift
from tinyet.memory.tile_records import Fill, Repeat, Take
from tinyet.messages.text import c_comment
from tinyet.ops.region import Region
from tinyet.opset import (
    Arg,
    ConstantArg,
    Definition,
    EventArg,
    InputArg,
    LiteralArg,
    OutputArg,
    ParamsArg,
    ScratchArg,
    SizeArg,
    StateArg,
    wrapped,
)
from tinyet.planning.layer_names import identifier
from tinyet.planning.places import Places
from tinyet.sizes.merge import SIZE


@dataclass(frozen=True)
class ConstantView:
    """rom: only kernels that know it for a constant read it. place: behind its name."""

    name: str
    rom: bool
    ctype: str
    count: int
    align: int
    comment: str
    lines: tuple[str, ...]
    place: str


@dataclass(frozen=True)
class StepView:
    """pointers: declarations of the values that the call is the first to use. ahead: the call comes before a fusion
    group that takes rows, which is resumed many times an image. parts: of a call that is made in parts, of so many
    groups of channels; `call` is the first of them."""

    index: int
    title: str
    notes: tuple[str, ...]
    pointers: tuple[str, ...]
    call: CallView
    ahead: bool
    cases: tuple[()] = ()
    parts: tuple[PartView, ...] = ()
    groups: int = 1


@dataclass(frozen=True)
class PartView:
    """What makes the parts of a group of channels up to row `end`, which is not included, but for those that others
    have made."""

    group: int
    end: int
    call: CallView


@dataclass(frozen=True)
class StateView:
    """Static memory of one call: its name in C and its size."""

    name: str
    bytes: int


def constant_view(array_: StoredArray, name: str, places: Places) -> ConstantView:
    """The array as the template prints it, under its C name."""
    ctype = CTYPES.get(array_.data.dtype.name)
    if ctype is None:
        raise InternalError(f"a constant of type {array_.data.dtype} cannot be printed")
    shape = "x".join(map(str, array_.data.shape))
    label = f"{shape} {array_.comment}" if array_.comment else shape
    # C has no empty arrays; one zero stands for them.
    lines = tuple(array(array_.data)) or ("0",)
    memory = places.weights.get(array_.uses[0][0].name)
    apart = memory is not None and memory.read_only
    place = attribute(memory).strip() if apart else "TINYET_WEIGHTS_PLACE"
    return ConstantView(name, array_.rom, ctype, max(array_.data.size, 1), array_.align, label, lines, place)


def code_of(
    deployment: Deployment,
    instance: Instance,
    kernels: Mapping[str, str],
    *,
    sliced: bool = False,
    common: Common = NONE_COMMON,
) -> ModelCode:
    """kernels: the C files that stand beside the model. sliced: a run stops between tiles. common: the constants that
    are in other models, too."""
    graph = deployment.graph
    names = Names(
        interface(instance.name, len(graph.user_inputs), len(graph.user_outputs), len(graph.states))
    )
    names.reserve(*(declared(text) for path, text in kernels.items() if path.endswith(".h")))
    names.reserve(_called(deployment))
    instance.reserve(names)
    names.reserve([array.name for array in common.arrays.values()])
    headers = [text for path, text in kernels.items() if path.endswith(".h")]
    sizes = None if deployment.sized is None else SizeCode(deployment.sized.size, names, headers)
    return ModelCode(deployment, instance, names, sliced, sizes, common)


def _called(deployment: Deployment) -> frozenset[str]:
    """The functions of libraries that the model calls."""
    calls = [step.call for step in deployment.calls]
    symbols = [c.symbol for c in calls if isinstance(c.symbol, str)]
    return frozenset(symbols + [c.init.symbol for c in calls if c.init is not None])


def _function(definition: Definition, name: str) -> list[str]:
    """A function that was made for a call, as lines of C."""
    head = wrapped(f"{definition.returns} {name}({', '.join(definition.parameters)}) {{")
    above = [f"/* {c_comment(definition.comment)} */"] if definition.comment else []
    return [*above, *head, *definition.body, "}"]


class ModelCode:
    """The parts of `<name>.c`, each step's after those of the step before."""

    def __init__(
        self,
        deployment: Deployment,
        instance: Instance,
        names: Names,
        sliced: bool,
        sizes: SizeCode | None,
        common: Common,
    ) -> None:
        self.deployment = deployment
        self.common = common
        self.sizes = sizes
        self.sliced = sliced
        self.instance = instance
        # Where constants have an address space of their own, parameters are there, too, and copied for each call.
        self.parameters_in_rom = "progmem" in deployment.target.features
        names_in_c = (identifier(step.name) for step in deployment.steps)
        self.layers = tuple(f"layer_{n}" if n[0].isdigit() else n for n in names_in_c)
        self.functions = function_names(deployment.calls, self.layers, names)
        self.definitions = [["", *_function(d, text)] for d, text in self.functions.items()]
        self.constants: list[tuple[StoredArray, str]] = []
        self.own_constants: dict[Step, tuple[str, ...]] = {}
        self.constant_names: dict[Step, dict[str | int, str]] = {step: {} for step in deployment.calls}
        self.copies: list[CopyView] = []
        self.ahead_of: dict[Step, list[str]] = {}
        self.parameters: list[ParamsView] = []
        self.states = {
            step: StateView(names.unique(f"{self.layers[step.index]}_state", "layer"), step.call.state_bytes)
            for step in deployment.steps
            if step.call.state_bytes
        }
        # All names at file scope are there before those in `run`, which must not hide them.
        made = [self._constants(step, names) for step in deployment.calls]
        self.pointers = Pointers(deployment, instance, names)
        self.inputs = [self.pointers.declare(t) for t in self.pointers.inputs_read()]
        calls, fusion_groups = deployment.plan.calls, deployment.plan.fusion_groups
        taking = (calls.index(found.nodes[0]) for found in fusion_groups if found.tiled_input is not None)
        self.ahead = frozenset(calls[: next(taking, 0)])
        self.inits = [CallView(copy.statement, None) for copy in self.copies]
        if deployment.places.state is not None and not instance.context:
            # Where nobody sets it to zero at reset.
            clear = [f"  memset({s.name}, 0, sizeof {s.name});" for s in self.states.values()]
            self.inits += [CallView((line,), None) for line in clear]
        self.made = dict(zip(deployment.calls, made, strict=True))
        self.steps: list[StepView | FusionGroupView] = []
        for step in deployment.steps:
            fusion_group = deployment.plan.fusion_group(step.node)
            if fusion_group is None:
                self.steps.append(self._step(step))
            elif step.node is fusion_group.nodes[0]:
                self.steps.append(self._stream(fusion_group, names))

    def _constants(self, step: Step, names: Names) -> tuple[dict[str | int, str], ParamsView | None]:
        """The C names of a call's constants, by role, and of constant inputs, by index; and its parameters."""
        call, layer = step.call, self.layers[step.index]
        layer_ahead = step.name in self.deployment.places.ahead
        offset = copies_at(self.deployment, step) if layer_ahead else 0
        for stored in (each for each in self.deployment.arrays_of(step) if each.uses[0][0] is step):
            name = self.common.of(stored) or names.unique(f"{layer}_{stored.role}")
            self.constants.append((stored, name))
            self.own_constants[step] = (*self.own_constants.get(step, ()), name)
            used = self._copied(stored, name, names)
            for user, role in stored.uses:
                self.constant_names[user][role] = used
            if layer_ahead:
                ahead = f"{self.instance.piece(offset)} + {self.instance.within(offset)}"
                offset += ahead_bytes([stored])
                self.ahead_of.setdefault(step, []).append(f"memcpy({ahead}, {name}, sizeof {name});")
                ctype = constant_view(stored, name, self.deployment.places).ctype
                for _, role in (use for use in stored.uses if use[0] is step):
                    self.constant_names[step][role] = f"(const {ctype} *)(const void *)({ahead})"
        found = self.constant_names[step]
        if call.params is None:
            return found, None
        text = struct(call.params, found.__getitem__)
        if self.parameters_in_rom:
            # Equal ones are printed once; GCC would merge them, and warn of the rest of the second.
            for known in self.parameters:
                if (known.ctype, known.text) == (call.params.ctype, text):
                    return found, known
        own = ParamsView(names.unique(f"{layer}_params", "layer"), call.params.ctype, text)
        self.parameters.append(own)
        self.own_constants[step] = (*self.own_constants.get(step, ()), own.name)
        return found, own

    def _copied(self, stored: StoredArray, name: str, names: Names) -> str:
        """The array that kernels read: itself, or its copy in the memory that the layer's weights were placed in."""
        memory = self.deployment.places.weights.get(stored.uses[0][0].name)
        if memory is None or memory.read_only:
            return name
        view = constant_view(stored, name, self.deployment.places)
        copy = names.unique(f"{name}_copy")
        self.copies.append(CopyView(copy, name, view.ctype, view.count, view.align, attribute(memory)))
        return copy

    def _step(self, step: Step) -> StepView:
        """The call as the template prints it; the one that prepares it goes among `inits`."""
        node = step.node
        inputs = {i: self.pointers.names.get(t, "") for i, t in enumerate(node.inputs) if t is not None}
        outputs = [self.pointers.names[t] for t in node.outputs]
        pointers = self.pointers.for_call(step)
        if step.parts:
            parts = tuple(self._parts(step, inputs, outputs[0]))
            return StepView(
                step.index, _title(step), _notes(step), pointers, parts[0].call, False, (), parts, step.groups
            )
        self._init(step)
        ahead = node in self.ahead
        indent = "    " if ahead else "  "
        call = self._call(step, inputs, outputs, indent)
        copies = tuple(text for line in self.ahead_of.get(step, ()) for text in wrapped(indent + line))
        call = replace(call, statement=(*copies, *call.statement))
        return StepView(step.index, _title(step), _notes(step), pointers, call, ahead)

    def _parts(self, step: Step, inputs: Mapping[int, str], output: str) -> Iterator[PartView]:
        """The calls of a layer in parts, each for some of its rows and for a group of channels."""
        for stretch in self.deployment.stretches[step]:
            row, group = divmod(stretch.first, step.groups)

            def at(name: str, tensor: Tensor, place: tuple[int, int], first: int = row) -> str:
                start, by = (each // tensor.dtype.bytes for each in place)
                number = f"(row - {first}u)" if first else "row"
                return name + (f" + {start}" if start else "") + (f" + {number} * {by}u" if by else "")

            reads = {
                i: at(name, step.node.input(i), stretch.reads.get(i, (0, 0))) for i, name in inputs.items()
            }
            written = at(output, step.node.output, stretch.writes)
            scratch = self.pointers.scratch.get(step, "")
            call = self._call(stretch.step, reads, [written], "        ", scratch)
            yield PartView(group, row + stretch.count, call)

    def _stream(self, fusion_group: FusionGroup, names: Names) -> FusionGroupView:
        """The layers of a stream in one loop."""
        steps = {step.node: step for step in self.deployment.steps if step.node in fusion_group.rules}
        pointers = [
            line
            for step in steps.values()
            for line in self.pointers.for_call(step, fusion_group.stacked_buffers)
        ]
        sums = [
            f"tinyet_line_buffer_fill({self.pointers.scratch[step]}, 0, {step.call.scratch_bytes}u);"
            for step in steps.values()
            if fusion_group.rules[step.node].reduces
        ]
        resumed = fusion_group.tiled_input is not None or self.sliced
        field = self.instance.field if resumed else ""
        rows = RowPointers(
            self.deployment.plan, fusion_group, self.pointers.names, names, self.pointers.at, field
        )
        working = {node for node, step in steps.items() if step.call.scratch_bytes}
        done, numbers = order(cases(fusion_group, working))
        views: list[CaseView] = []
        for case, number in numbers.items():
            action = case.action
            ahead = [line for opened in case.ahead for line in rows.opened(opened)]
            behind = [rows.drop(dropped) for dropped in case.behind]
            match action:
                case Run():
                    step = steps[action.node]
                    inputs = {
                        i: rows.read(action, i)
                        if i in fusion_group.rules[action.node].inputs
                        else self.pointers.names.get(t, "")
                        for i, t in enumerate(action.node.inputs)
                        if t is not None
                    }
                    call = self._call(step, inputs, [rows.written(action)], " " * 12, rows.top(action))
                    notes = () if any(view.layer == step.index for view in views) else _notes(step)
                    lines = [*rows.behind(action), *behind]
                    views.append(CaseView(number, _title(step), notes, ahead, step.index, call, lines))
                case Fill() | Repeat():
                    title = f"around {self.pointers.names[action.tensor]}"
                    made = rows.fill(action) if isinstance(action, Fill) else rows.repeat(action)
                    lines = [made, *behind]
                    views.append(CaseView(number, title, (), ahead, None, None, lines))
                case Shift():
                    views.append(CaseView(number, "windows move", (), (), None, None, [rows.shift(action)]))
                case Take():
                    title = f"a row of {self.pointers.names[action.tensor]}"
                    views.append(CaseView(number, title, (), ahead, None, None, behind, rows.take(action)))
        for step in steps.values():
            self._init(step)
        first, last = (step.index for step in (steps[fusion_group.nodes[0]], steps[fusion_group.nodes[-1]]))
        return FusionGroupView(
            title=f"{first} to {last}, row by row: a layer computes rows as soon as there is what they need.",
            notes=tuple(f"{step.index}: {_title(step)}" for step in steps.values()),
            pointers=tuple(pointers),
            kept=tuple(rows.variables),
            starts=(*rows.starts, *sums),
            tiled_input=self.pointers.names[fusion_group.tiled_input.tensor]
            if fusion_group.tiled_input is not None
            else "",
            ahead=fusion_group.nodes[0] in self.ahead,
            code_type="uint8_t" if len(numbers) <= 256 else "uint16_t",
            order=order_lines(done),
            order_count=len(done.codes),
            parts=part_lines(done),
            part_count=len(done.parts),
            cases=tuple(views),
        )

    def _init(self, step: Step) -> None:
        if step.call.init is not None:
            spelled = self._written(step, step.call.init.symbol, step.call.init.args, {}, (), True, "  ")
            self.inits.append(spelled)

    def _call(
        self, step: Step, inputs: Mapping[int, str], outputs: Sequence[str], indent: str, scratch: str = ""
    ) -> CallView:
        """inputs, outputs: the call's pointers to them, for those in the arena; scratch: to scratch memory, if it has
        none of its own."""
        call = step.call
        symbol = call.symbol if isinstance(call.symbol, str) else self.functions[call.symbol]
        return self._written(step, symbol, call.args, inputs, outputs, call.returns_status, indent, scratch)

    def _written(
        self,
        step: Step,
        symbol: str,
        args: Sequence[Arg],
        inputs: Mapping[int, str],
        outputs: Sequence[str],
        checked: bool,
        indent: str,
        scratch: str = "",
    ) -> CallView:
        constants, params = self.made[step]
        sets: tuple[str, ...] = ()
        if self.sizes is not None and params is not None and ParamsArg() in args:
            sets = self.sizes.sets(step, params.name, step.call.params)
        copied = params if (self.parameters_in_rom or sets) and ParamsArg() in args else None

        def spell(arg: Arg) -> str:
            match arg:
                case InputArg(index):
                    return constants.get(index) or inputs[index]
                case OutputArg(index):
                    return outputs[index]
                case ScratchArg():
                    return self.pointers.scratch.get(step, scratch)
                case ParamsArg():
                    assert params is not None
                    return "&params" if copied is not None else f"&{params.name}"
                case ConstantArg(name):
                    return constants[name]
                case StateArg():
                    return self.instance.field + self.states[step].name
                case EventArg():
                    return f"{step.first_event}u"
                case SizeArg():
                    return SIZE
                case LiteralArg(value):
                    return real(value) if isinstance(value, float) else integer(value)

        text = f"{symbol}({', '.join(spell(arg) for arg in args)})"
        line = f"TINYET_TRY({text});" if checked else f"{text};"
        return CallView(tuple(wrapped(("  " if copied else "") + indent + line)), copied, sets)


def _notes(step: Step) -> tuple[str, ...]:
    """The origin of a layer, as comment lines."""
    return tuple(dict.fromkeys(str(o) for o in step.node.origins if o.module or o.file or o.text))


def _title(step: Step) -> str:
    """The heading of a step: operator, shapes, cost. The lines below it give its origin."""
    node = step.node
    sources = " + ".join(
        "x".join(map(str, t.shape)) for t in node.inputs if t is not None and not t.is_constant
    )
    results = " + ".join("x".join(map(str, t.shape)) for t in node.outputs)
    op = f"{node.op} ({node.attrs})" if isinstance(node.attrs, Region) else node.op
    macs = f", {step.macs} MACs" if step.macs else ""
    return f"{op} {sources} -> {results}{macs}"
