# SPDX-License-Identifier: Apache-2.0
"""A deployment as C: one header and one source for the model, beside the kernels it uses. Pure: returns texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tinyet.assets.templating import render
from tinyet.delegates import Delegate
from tinyet.delegates.delegate import included, own_files
from tinyet.deployment import Deployment
from tinyet.emit.constants import NONE_COMMON, Common
from tinyet.emit.definitions import code_of, constant_view
from tinyet.emit.fusion import (
    FusionGroupView,
)
from tinyet.emit.instance import instance_of
from tinyet.emit.interface import HEAD_BYTES, io_view, kept_views, labels_macro, states_view
from tinyet.emit.kernels import shareable
from tinyet.emit.places import attribute, sections_of
from tinyet.emit.pointers import Pointers
from tinyet.emit.selftest import HEADER as SELFTEST_HEADER
from tinyet.emit.selftest import Golden, selftest_view
from tinyet.emit.sizes import size_view
from tinyet.emit.slices import SlicePlan, slices_view
from tinyet.errors import InternalError, UsageError
from tinyet.memory.arena_map import ArenaBlock, arena_map
from tinyet.memory.plan import MARK
from tinyet.version import __version__

ABI_VERSION = 2
BUFFERS_HEADER = "tinyet_buffers.h"
"""Of models whose inputs and outputs are the caller's."""


@dataclass(frozen=True)
class ArenaRow:
    offset: int
    bytes: int
    alive: str
    text: str


def model_files(
    deployment: Deployment,
    name: str,
    banner: Sequence[str],
    *,
    labels: Sequence[str] = (),
    program_hash: str = "",
    version: str = __version__,
    context: bool = False,
    golden: Golden | None = None,
    slices: SlicePlan | None = None,
    shared: str = "",
    common: Common = NONE_COMMON,
    stack: int = 0,
) -> dict[str, str]:
    """`<name>.h`, `<name>.c`, `<name>_kernels.h` and the kernels' headers and sources: {file name: text}.

    name: a C identifier. banner: lines for the head of both files. labels: names of the classes, or none.
    program_hash, version: of the program and of tinyet, for the macros that tell them. context: callers give the memory
    of each instance; otherwise there is one, with static memory. golden: the run that the model tests itself with, or
    none. slices: how a run is cut, of a model whose context is the caller's; None for a run as a whole.
    shared: the name of the arena that it has with others; common: the constants. stack: bytes that an inference takes
    at most; 0 where that is not known.
    """
    graph, plan = deployment.graph, deployment.plan
    if slices is None and any(step.parts for step in deployment.steps):
        raise InternalError("calls are made in parts, and the run is not in slices")
    kernels, symbols = shareable(kernel_files(deployment))
    instance = instance_of(deployment, name, context=context, shared=shared)
    if context:
        kernels |= own_files(["tinyet_context.h"], [])
    if instance.ends:
        kernels |= own_files([BUFFERS_HEADER], [])
    if golden is not None:
        kernels |= own_files([SELFTEST_HEADER], [])
    own = {f"{name}{ending}" for ending in (".h", ".c", "_kernels.h")}
    if taken := sorted(path for path in kernels if path.lower() in {file.lower() for file in own}):
        raise UsageError(
            f"a model cannot be called {name!r}: a kernel's file is {taken[0]}", hint="--name another"
        )
    code = code_of(deployment, instance, kernels, sliced=slices is not None, common=common)
    own_arrays = [(stored, text) for stored, text in code.constants if common.of(stored) is None]
    note = "optimal (the lower bound)"
    if plan.second_from is not None:
        note = f"in two pieces, the second from {plan.second_from} on"
    elif shared:
        note = f"together with other models: {shared}_arena.h"
    elif gap := plan.arena_bytes - plan.lower_bound:
        known = "no addresses make it smaller" if plan.optimal else "not proved optimal"
        note = f"{known} (lower bound {plan.lower_bound}: {gap} less)"
    printed = {
        "name": name,
        "instance": instance,
        "macro": name.upper(),
        "abi": ABI_VERSION,
        "version": version,
        "program_hash": program_hash,
        "num_labels": len(labels),
        "labels": labels_macro(f"{name.upper()}_LABELS", labels),
        "banner": list(banner),
        "stack": stack,
        "arena_bytes": max(plan.first_bytes, 1),
        "second_bytes": plan.arena_bytes - plan.first_bytes,
        "whole_bytes": max(plan.arena_bytes, 1),
        "arena_note": note,
        "arena_map": _arena_map(deployment, code.pointers),
        "symbols": symbols,
        "headers": sorted(
            {h for s in deployment.steps for h in s.choice.kernel.headers}
            | {f for s in deployment.calls for f in s.call.files if f.endswith(".h")}
            | set(_rows_headers(deployment))
        ),
        "constants": [constant_view(stored, text, deployment.places) for stored, text in own_arrays],
        "common": common.file if len(own_arrays) < len(code.constants) else "",
        "common_bytes": deployment.constant_bytes - sum(stored.bytes for stored, _ in own_arrays),
        "copies": code.copies,
        "sections": sections_of(deployment.places),
        "arena_place": attribute(deployment.places.arena) or " TINYET_ARENA_PLACE",
        "second_place": attribute(deployment.places.second),
        "arena_placed": deployment.places.arena is not None,
        "state_place": attribute(deployment.places.state),
        "constant_bytes": sum(stored.bytes for stored, _ in own_arrays),
        "definitions": [line for lines in code.definitions for line in lines],
        "parameters": code.parameters,
        "parameters_in_rom": code.parameters_in_rom,
        "inputs_used": code.inputs,
        "arena_used": code.pointers.arena_used,
        "steps": code.steps,
        "tiled_input": next(
            (step for step in code.steps if isinstance(step, FusionGroupView) and step.tiled_input), None
        ),
        "num_layers": len(deployment.steps),
        "num_events": len(deployment.events),
        "states": list(code.states.values()),
        "inits": code.inits,
        "inputs": [io_view("input", i, t, deployment) for i, t in enumerate(graph.user_inputs)],
        "outputs": [io_view("output", i, t, deployment) for i, t in enumerate(graph.user_outputs)],
        "size": None if code.sizes is None else size_view(deployment, code.sizes),
        "kept": kept_views(deployment),
        "words": (words := states_view(deployment, program_hash)),
        "mark": "" if words is None else f"{instance.piece(words.mark)} + {instance.within(words.mark)}",
        "head_bytes": HEAD_BYTES,
        "slices": None if slices is None else slices_view(slices, code.steps),
        "selftest": None
        if golden is None
        else selftest_view(golden, (a for a, _ in code.constants), name, program_hash, version, kernels),
    }
    files = {
        f"{name}.h": render("model/model.h.j2", printed),
        f"{name}.c": render("model/model.c.j2", printed),
    }
    if symbols:
        files[f"{name}_kernels.h"] = render("model/kernels.h.j2", printed)
    return files | kernels


def kernel_files(deployment: Deployment) -> dict[str, str]:
    """The C files of all kernels, each delegate's by its own `files`, and tinyet's headers that they include.

    Raises UsageError when two bring different files of one name.
    """
    carried: dict[str, str] = {}
    wanted: dict[Delegate, tuple[list[str], list[str]]] = {}
    for step in deployment.calls:
        kernel, delegate = step.choice.kernel, step.choice.delegate
        _merge(carried, kernel.texts, kernel.symbol)
        _merge(carried, step.call.files, kernel.symbol)
        headers, sources = wanted.setdefault(delegate, ([], []))
        headers += [h for h in kernel.headers if h not in kernel.texts and h not in headers]
        sources += [f for f in kernel.sources if f not in kernel.texts and f not in sources]
    files = dict(carried)
    for delegate, (headers, sources) in wanted.items():
        _merge(files, delegate.files(headers, sources), delegate.name)
    if headers := _rows_headers(deployment):
        _merge(files, own_files(headers, ["tinyet_line_buffers.c"]), "tinyet")
    common = {name for text in files.values() for name in included(text) if name.startswith("tinyet_")}
    _merge(files, own_files(sorted({"tinyet_common.h", *common} - files.keys()), []), "tinyet")
    return files


def _rows_headers(deployment: Deployment) -> list[str]:
    """Headers of fusion groups, beside those of their layers' kernels."""
    return ["tinyet_line_buffers.h"] if deployment.plan.fusion_groups else []


def _merge(files: dict[str, str], more: Mapping[str, str], who: str) -> None:
    for name, text in more.items():
        if files.setdefault(name, text) != text:
            raise UsageError(f"{who} brings a file {name} that another kernel brings with other contents")


def _arena_map(deployment: Deployment, pointers: Pointers) -> list[ArenaRow]:
    """A row for each tensor and each scratch area, by offset and then by time."""
    plan, end = deployment.plan, len(deployment.plan.calls)
    over = {node.output: plan.over(node) for node in plan.overlaps}
    areas = {step.node: name for step, name in pointers.scratch.items()}

    def alive(block: ArenaBlock) -> str:
        start = "in" if block.first < 0 else str(block.first)
        stop = "out" if block.last >= end else str(block.last)
        return start if start == stop else f"{start}..{stop}"

    def text(block: ArenaBlock) -> str:
        tensor = block.tensor
        if tensor is None:
            if block.node is not None:
                return areas[block.node]
            return (
                MARK
                if block.kind == "mark"
                else "stacked windows: one above the other, and scratch memory on top"
            )
        form = plan.form(tensor)
        said = f"{pointers.names[tensor]}: {tensor.type}" + (f", {form}" if form else "")
        if tensor in over:
            said += f", over {' and '.join(pointers.names[t] for t in over[tensor])} row by row"
        window = plan.line_buffer(tensor)
        return f"{said}, stacked" if window is not None and window.stacked else said

    scratch = {step.node: step.call.scratch_bytes for step in pointers.scratch}
    blocks = arena_map(plan, scratch)
    rows = [(block.first, ArenaRow(block.offset, block.bytes, alive(block), text(block))) for block in blocks]
    return [row for _, row in sorted(rows, key=lambda r: (r[1].offset, r[0], r[1].text))]
