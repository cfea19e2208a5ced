# SPDX-License-Identifier: Apache-2.0
"""A deployment as C: one header and one source for the model, beside the kernels it uses. Pure: returns texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from tinyet.assets.templating import render
from tinyet.delegates import Delegate
from tinyet.delegates.delegate import included, own_files
from tinyet.deployment import Deployment, Step
from tinyet.emit.literals import CTYPES, array, comment, identifier, real, struct
from tinyet.errors import InternalError, UsageError
from tinyet.ir import Array, DType, Tensor
from tinyet.ops.region import Region
from tinyet.opset import (
    Arg,
    ConstantArg,
    EventArg,
    InputArg,
    LiteralArg,
    OutputArg,
    ParamsArg,
    ScratchArg,
    StateArg,
)

ABI_VERSION = 1


@dataclass(frozen=True)
class IoView:
    """One input or output as the templates print it."""

    kind: str
    index: int
    comment: str
    layout: str
    ctype: str
    offset: int
    bytes: int
    count: int
    scale: str | None
    zero_point: int
    low: int
    high: int


@dataclass(frozen=True)
class ConstantView:
    """rom: only kernels that know it for a constant read it."""

    name: str
    rom: bool
    ctype: str
    count: int
    align: int
    comment: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class ParamsView:
    name: str
    ctype: str
    text: str


@dataclass(frozen=True)
class CallView:
    """copied: the parameters that the call wants in RAM, where they are kept elsewhere."""

    statement: str
    copied: ParamsView | None


@dataclass(frozen=True)
class StepView:
    index: int
    title: str
    notes: tuple[str, ...]
    call: CallView


@dataclass(frozen=True)
class StateView:
    """Static memory of one call: its name in C and its size."""

    name: str
    bytes: int


@dataclass(frozen=True)
class ArenaRow:
    offset: int
    bytes: int
    alive: str
    text: str


@dataclass
class _Constants:
    """Const arrays by content: equal arrays of one address space are printed once."""

    views: list[ConstantView] = field(default_factory=list)
    by_content: dict[tuple[bytes, str, bool], str] = field(default_factory=dict)
    bytes: int = 0

    def add(self, name: str, data: Array, align: int, text: str, *, rom: bool) -> str:
        """The C name under which the array can be had.

        rom: its pointers have TINYET_ROM in their type; a constant that a kernel takes as it takes activations has not.
        """
        key = (np.ascontiguousarray(data).tobytes(), data.dtype.name, rom)
        known = self.by_content.get(key)
        if known is not None:
            return known
        ctype = CTYPES.get(data.dtype.name)
        if ctype is None:
            raise InternalError(f"a constant of type {data.dtype} cannot be printed")
        shape = "x".join(map(str, data.shape))
        label = comment(f"{shape} {text}" if text else shape)
        # C has no empty arrays; one zero stands for them.
        lines = tuple(array(data)) or ("0",)
        self.views.append(ConstantView(name, rom, ctype, max(data.size, 1), align, label, lines))
        self.by_content[key] = name
        self.bytes += data.nbytes
        return name


def model_files(deployment: Deployment, name: str, banner: Sequence[str]) -> dict[str, str]:
    """`<name>.h`, `<name>.c` and the kernels' headers and sources: {file name: text}.

    name: a C identifier. banner: lines for the head of both files (version, model, hash, options).
    """
    macro = name.upper()
    graph, plan = deployment.graph, deployment.plan
    constants = _Constants()
    parameters: list[ParamsView] = []
    definitions: list[str] = []
    steps: list[StepView] = []
    inits: list[CallView] = []
    for step in deployment.steps:
        view, init = _step(step, deployment, constants, parameters)
        steps.append(view)
        inits += [] if init is None else [init]
        definitions += [d for d in step.call.definitions if d not in definitions]
    headers = {h for s in deployment.steps for h in s.choice.kernel.headers}
    bound = "the lower bound" if plan.arena_bytes == plan.lower_bound else f"lower bound {plan.lower_bound}"
    note = f"optimal ({bound})" if plan.optimal else f"not proved optimal ({bound})"
    context = {
        "name": name,
        "macro": macro,
        "abi": ABI_VERSION,
        "banner": [comment(line) for line in banner],
        "arena_bytes": max(plan.arena_bytes, 1),
        "arena_note": note,
        "arena_map": _arena_map(deployment),
        "headers": sorted(headers),
        "constants": constants.views,
        "constant_bytes": constants.bytes,
        "definitions": definitions,
        "parameters": parameters,
        "parameters_in_rom": _parameters_in_rom(deployment),
        "steps": steps,
        "num_events": len(deployment.events),
        "states": [
            StateView(f"{_prefix(s)}_state", s.call.state_bytes)
            for s in deployment.steps
            if s.call.state_bytes
        ],
        "inits": inits,
        "inputs": [_io("input", i, t, deployment) for i, t in enumerate(graph.inputs)],
        "outputs": [_io("output", i, t, deployment) for i, t in enumerate(graph.outputs)],
    }
    files = {
        f"{name}.h": render("model/model.h.j2", context),
        f"{name}.c": render("model/model.c.j2", context),
    }
    return files | _kernel_files(deployment)


def _kernel_files(deployment: Deployment) -> dict[str, str]:
    """The C files of all kernels, each delegate's by its own `files`, and tinyet's headers that they include.

    Raises UsageError when two bring different files of one name.
    """
    carried: dict[str, str] = {}
    wanted: dict[Delegate, tuple[list[str], list[str]]] = {}
    for step in deployment.steps:
        kernel, delegate = step.choice.kernel, step.choice.delegate
        _merge(carried, kernel.texts, kernel.symbol)
        headers, sources = wanted.setdefault(delegate, ([], []))
        headers += [h for h in kernel.headers if h not in kernel.texts and h not in headers]
        sources += [f for f in kernel.sources if f not in kernel.texts and f not in sources]
    files = dict(carried)
    for delegate, (headers, sources) in wanted.items():
        _merge(files, delegate.files(headers, sources), delegate.name)
    common = {name for text in files.values() for name in included(text) if name.startswith("tinyet_")}
    _merge(files, own_files(sorted({"tinyet_common.h", *common} - files.keys()), []), "tinyet")
    return files


def _merge(files: dict[str, str], more: Mapping[str, str], who: str) -> None:
    for name, text in more.items():
        if files.setdefault(name, text) != text:
            raise UsageError(f"{who} brings a file {name} that another kernel brings with other contents")


def _io(kind: str, index: int, tensor: Tensor, deployment: Deployment) -> IoView:
    quant = tensor.type.quant
    low, high = (0, 0) if tensor.dtype is DType.FLOAT32 else tensor.dtype.range
    shape = ", ".join(map(str, tensor.shape))
    return IoView(
        kind=kind,
        index=index,
        comment=comment(f"{tensor.name}, {tensor.type}"),
        layout=comment(f"{tensor.dtype.c}[{tensor.type.count}], shape ({shape}), last dimension contiguous."),
        ctype=tensor.dtype.c,
        offset=deployment.plan.offset(tensor),
        bytes=tensor.type.bytes,
        count=tensor.type.count,
        scale=real(quant.one_scale) if quant is not None else None,
        zero_point=quant.one_zero_point if quant is not None else 0,
        low=low,
        high=high,
    )


def _prefix(step: Step) -> str:
    """What the C names of a call's constants begin with."""
    return f"{identifier(step.node.op)}_{step.index}"


def _parameters_in_rom(deployment: Deployment) -> bool:
    """Whether the kernels' parameters are kept out of RAM and copied there for each call."""
    return "progmem" in deployment.target.features


def _step(
    step: Step, deployment: Deployment, constants: _Constants, parameters: list[ParamsView]
) -> tuple[StepView, CallView | None]:
    """The call as the template prints it, and the call that prepares it, or None."""
    node, call = step.node, step.call
    prefix = _prefix(step)
    names = {
        c.name: constants.add(f"{prefix}_{c.name}", c.data, c.align, c.comment, rom=True)
        for c in call.constants
    }
    copied: ParamsView | None = None
    if call.params is not None:
        own = ParamsView(f"{prefix}_params", call.params.ctype, struct(call.params, names.__getitem__))
        if _parameters_in_rom(deployment):
            # Equal ones are printed once; GCC would merge them, and warn of what it leaves of the second.
            same = (p for p in parameters if (p.ctype, p.text) == (own.ctype, own.text))
            copied = next(same, own)
        if copied is None or copied is own:
            parameters.append(own)
    spell = partial(
        _argument,
        step=step,
        deployment=deployment,
        constants=constants,
        names=names,
        prefix=prefix,
        params="params" if copied else f"{prefix}_params",
    )

    def written(symbol: str, args: Sequence[Arg], checked: bool) -> CallView:
        wanted = copied if any(isinstance(arg, ParamsArg) for arg in args) else None
        text = f"{symbol}({', '.join(spell(arg) for arg in args)})"
        return CallView(f"TINYET_TRY({text});" if checked else f"{text};", wanted)

    shapes = " + ".join(
        "x".join(map(str, t.shape)) for t in node.inputs if t is not None and not t.is_constant
    )
    results = " + ".join("x".join(map(str, t.shape)) for t in node.outputs)
    op = f"{node.op} ({node.attrs})" if isinstance(node.attrs, Region) else node.op
    title = comment(
        f"{op} {shapes} -> {results}, {step.macs} MACs" if step.macs else f"{op} {shapes} -> {results}"
    )
    notes = tuple(
        dict.fromkeys(comment(str(origin)) for origin in node.origins if origin.file or origin.text)
    )
    view = StepView(step.index, title, notes, written(call.symbol, call.args, call.returns_status))
    return view, None if call.init is None else written(call.init.symbol, call.init.args, True)


def _argument(
    arg: Arg,
    *,
    step: Step,
    deployment: Deployment,
    constants: _Constants,
    names: dict[str, str],
    prefix: str,
    params: str,
) -> str:
    """One argument of a call as C."""
    node, plan = step.node, deployment.plan
    match arg:
        case InputArg(index):
            tensor = node.input(index)
            if tensor.is_constant:
                return constants.add(f"{prefix}_input_{index}", tensor.array, 4, tensor.name, rom=False)
            return f"(const {tensor.dtype.c} *)(const void *)(arena + {plan.offset(tensor)})"
        case OutputArg(index):
            tensor = node.outputs[index]
            return f"({tensor.dtype.c} *)(void *)(arena + {plan.offset(tensor)})"
        case ScratchArg():
            return f"arena + {plan.scratch[node]}"
        case ParamsArg():
            return f"&{params}"
        case ConstantArg(name):
            return names[name]
        case StateArg():
            return f"{prefix}_state"
        case EventArg():
            return f"{step.first_event}u"
        case LiteralArg(text):
            return text


def _arena_map(deployment: Deployment) -> list[ArenaRow]:
    """A row for each tensor and each scratch area, by offset and then by time."""
    plan, rows = deployment.plan, []
    end = len(plan.calls)

    def alive(first: int, last: int) -> str:
        start = "in" if first < 0 else str(first)
        stop = "out" if last >= end else str(last)
        return start if start == stop else f"{start}..{stop}"

    for tensor in plan.storage:
        life = plan.lifetimes[tensor]
        text = comment(f"{tensor.name}: {tensor.type}")
        rows.append(
            (
                plan.offset(tensor),
                life.first,
                ArenaRow(plan.offset(tensor), tensor.type.bytes, alive(life.first, life.last), text),
            )
        )
    for step in deployment.steps:
        offset = plan.scratch.get(step.node)
        if offset is not None:
            text = f"scratch of {step.index}"
            rows.append(
                (offset, step.index, ArenaRow(offset, step.call.scratch_bytes, str(step.index), text))
            )
    return [row for _, _, row in sorted(rows, key=lambda r: (r[0], r[1], r[2].text))]
