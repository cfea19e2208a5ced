# SPDX-License-Identifier: Apache-2.0
"""Estimated flash and stack of a deployment, before anything is built.

Constants and functions of the library are known to the byte. Functions that are made for layers are known as well as
their kernels state their code; how far the compiler's may be from that has been learned, and is counted beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tinyet.boards import Board
from tinyet.budget.tables import Around, Core, around_table, core_table, table_of
from tinyet.deployment import Deployment, Step
from tinyet.ir import DType, Tensor
from tinyet.opset import Definition
from tinyet.opset.cost import field_bytes

CALLER_STACK = 1024
"""Bytes of stack that are reserved for whoever calls an inference, and for interrupts, where nobody says more."""
HARNESS_STACK = 384
"""The least that can be reserved: the harness's own functions take as many around an inference."""

CALL = 24
"""Bytes of code of a call, where its kernel states none."""

_CALL_AGAIN = 20  # of a further call of a function that was made for a layer
_WORD = 4
_RUN = 16  # bytes of code of an inference beside its calls
_FRAME = 64  # bytes of stack of an inference's own function, arguments of calls beyond the fourth not counted
_STREAM_FRAME = 160  # of one that computes layers by rows
_REGISTERS = 4  # arguments of a call that lie in registers, at least
_OTHER_STACK = 32  # bytes by which functions may go deeper on a core whose table is that of a similar one
_OTHER_CODE = 50  # and their code may be larger by one part in so many
_ALWAYS_ABOVE = 64  # bytes by which alignment and the linker's veneers may exceed what is counted


@dataclass(frozen=True)
class Flash:
    """Bytes of flash. constants: weights, tables and parameters. code: of kernels and their calls. around: what the
    firmware has beside its model; None where a framework brings that. margin: by so much the linked firmware may be
    larger than stated. unknown: kernels of whose code nothing is known."""

    constants: int
    code: int
    around: int | None
    margin: int
    unknown: tuple[str, ...] = ()

    @property
    def stated(self) -> int:
        return self.constants + self.code + (self.around or 0)

    @property
    def at_most(self) -> int:
        return self.stated + self.margin

    def to_json(self) -> dict[str, object]:
        """The documented, stable form of `--json` (docs/json.md)."""
        return {
            "stated_bytes": self.stated,
            "at_most_bytes": self.at_most,
            "constant_bytes": self.constants,
            "code_bytes": self.code,
            "around_bytes": self.around,
            "unknown": list(self.unknown),
        }


@dataclass(frozen=True)
class PlannedStack:
    """Bytes of stack. inference: what `<name>_run` takes at most; None where it is not known of some kernel. caller:
    reserved for its callers and for interrupts. total: what the linker script reserves."""

    inference: int | None
    caller: int
    total: int

    def to_json(self) -> dict[str, object]:
        """The documented, stable form of `--json` (docs/json.md)."""
        return {"inference_bytes": self.inference, "caller_bytes": self.caller, "total_bytes": self.total}


@dataclass(frozen=True)
class Room:
    """The memory that a deployment needs on a board. static: the known bytes of RAM beside the model."""

    flash: Flash
    stack: PlannedStack
    static: int


def room_of(deployment: Deployment, board: Board, *, bare: bool = True, stack: int | None = None) -> Room:
    """bare: the firmware is tinyet's own, not one of a framework; where the board has such. stack: bytes of it for
    everything but an inference, where they are given."""
    core = core_table(table_of(deployment.target))
    around = around_table(board) if bare else None
    return Room(
        flash_of(deployment, core, around),
        stack_of(deployment, core, board, bare=bare and board.bare_metal, caller=stack),
        0 if around is None else around.ram,
    )


def flash_of(deployment: Deployment, core: Core | None, around: Around | None) -> Flash:
    """Functions and constants that several need are counted once. Of a core that nobody has measured, constants alone
    are known."""
    if core is None:
        kernels = dict.fromkeys(step.choice.kernel.symbol for step in deployment.steps)
        return Flash(deployment.constant_bytes + deployment.parameter_bytes, 0, None, 0, tuple(kernels))
    sizes: dict[str, int] = {}
    made: dict[str, dict[Definition, int]] = {}
    calls, unknown = _RUN, list[str]()
    for step in deployment.calls:
        cost, symbol = deployment.cost_of(step), step.call.symbol
        known = _library(step, core)
        kernel = step.choice.kernel.symbol
        if isinstance(symbol, Definition):
            # What is stated of it has one call in it.
            calls += _CALL_AGAIN if symbol in made.setdefault(kernel, {}) else 0
            made[kernel][symbol] = CALL if cost is None else cost.code
        else:
            calls += CALL if cost is None else cost.code
        if known is not None:
            sizes |= known
        if cost is not None and (known is None or isinstance(symbol, Definition)):
            sizes |= _shared(cost.shared, kernel, core)
        if cost is None and (known is None or (isinstance(symbol, Definition) and kernel not in core.made)):
            unknown.append(kernel)
    if around is not None:
        sizes |= around.functions
        sizes |= around.reals if any(_kind(t) != "whole" for t in deployment.graph.user_outputs) else {}
    own = 0 if around is None else sum({**around.functions, **around.reals}.get(n, 0) for n in sizes)
    linked, above = 0.0, [0.0]
    for kernel, functions in made.items():
        learned = core.made.get(kernel, core.largest)
        linked += learned.ratio * sum(functions.values())
        above.append(learned.ratio * learned.above * sum(functions.values()))
    code = sum(sizes.values()) - own + round(linked) + calls
    return Flash(
        constants=sum(_words(a.bytes) for a in deployment.arrays) + deployment.parameter_bytes,
        code=code,
        around=None if around is None else own + _application(deployment, around),
        # Functions of one kernel are wrong alike, those of different kernels are not.
        margin=math.ceil(math.hypot(*above))
        + _ALWAYS_ABOVE
        + (code // _OTHER_CODE if _of_another(deployment) else 0),
        unknown=tuple(dict.fromkeys(unknown)),
    )


def stack_of(
    deployment: Deployment, core: Core | None, board: Board, *, bare: bool, caller: int | None
) -> PlannedStack:
    """Of a framework's firmware, and where it is not known what an inference takes, the total is the board's."""
    inference = _inference(deployment, core)
    if inference is None or (not bare and caller is None):
        return PlannedStack(inference, max(board.stack_bytes - (inference or 0), 0), board.stack_bytes)
    if caller is None:
        caller = min(CALLER_STACK, max(board.stack_bytes - inference, HARNESS_STACK))
    return PlannedStack(inference, caller, _words(inference + caller, 8))


def _inference(deployment: Deployment, core: Core | None) -> int | None:
    if core is None:
        return None
    kernels = [_stack(step, core) for step in deployment.calls]
    known = [stack for stack in kernels if stack is not None]
    if len(known) < len(kernels):
        return None
    fusion_groups = bool(deployment.plan.fusion_groups)
    arguments = max((len(step.call.args) - _REGISTERS for step in deployment.calls), default=0)
    own = (_STREAM_FRAME if fusion_groups else _FRAME) + _WORD * max(arguments, 0)
    own += _OTHER_STACK if _of_another(deployment) else 0
    if "progmem" in deployment.target.features:  # a call's parameters are copied to where kernels read
        structs = [step.call.params for step in deployment.calls if step.call.params is not None]
        own += max((field_bytes(params, deployment.target) for params in structs), default=0)
    return _words(max(known, default=0) + own, 8)


def _of_another(deployment: Deployment) -> bool:
    """Whether the core's table is that of a similar core."""
    target = deployment.target
    return table_of(target).partition("-dsp")[0].removesuffix("-fpu") != target.cpu


def _stack(step: Step, core: Core) -> int | None:
    """Bytes that a layer's function takes with all that it calls; None where nobody knows."""
    symbol, kernel = step.call.symbol, step.choice.kernel.symbol
    if isinstance(symbol, Definition) and kernel in core.made:
        return core.made[kernel].stack + step.call.frame_bytes
    # What is made for a layer of a kernel of the library is a part of that kernel's function.
    names = [kernel if isinstance(symbol, Definition) else symbol]
    names += [step.call.init.symbol] if step.call.init is not None else []
    found = [core.library.get(name) for name in names]
    return max((one.stack for one in found if one is not None), default=None) if all(found) else None


def _library(step: Step, core: Core) -> Mapping[str, int] | None:
    """Linked library code of a layer, beside code printed for it; None where it was not measured."""
    symbol = step.call.symbol
    names = [] if isinstance(symbol, Definition) else [symbol]
    names += [step.call.init.symbol] if step.call.init is not None else []
    if any(name not in core.library for name in names):
        return None
    return {need: core.sizes[need] for name in names for need in core.library[name].needs}


def _shared(stated: Mapping[str, int], kernel: str, core: Core) -> Mapping[str, int]:
    """What a layer states to share with others: a function of the library that is called by one made for the layer has
    copies of its own of what several files have."""
    if kernel not in stated or kernel not in core.library:
        return stated
    linked = {need: core.sizes[need] for need in core.library[kernel].needs}
    names = {need.rpartition(":")[2] for need in linked}
    return linked | {name: size for name, size in stated.items() if name not in names}


def _kind(tensor: Tensor) -> str:
    """The number format in which main() prints an output."""
    if tensor.type.quant is not None:
        return "quantized"
    return "real" if tensor.dtype is DType.FLOAT32 else "whole"


def _application(deployment: Deployment, around: Around) -> int:
    """Bytes of the generated main.c."""
    kinds = [_kind(t) for t in deployment.graph.user_outputs]
    more = sum(around.more[kind] for kind in kinds[1:])
    return around.first[kinds[0]] + more + around.input * (len(deployment.graph.user_inputs) - 1)


def _words(size: int, multiple: int = _WORD) -> int:
    return -(-size // multiple) * multiple
