# SPDX-License-Identifier: Apache-2.0
"""Kernels against the reference, call by call: the same bits, nothing read or written beside what is the call's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tests.calls import definitions
from tests.calls.encoding import APART, Placement, Shared, prepare
from tests.calls.host import library
from tests.calls.process import Process
from tests.ops.cases import Case, expected
from tests.ops.overlapping import stated
from tinyet import ops
from tinyet.boards.cpus import HOST, Target
from tinyet.delegates import Delegate
from tinyet.ir import Array, Node, Tensor
from tinyet.opset import DENSE, Call, Definition, Kernel, Layouts


@dataclass(frozen=True)
class Attempt:
    """A case, computed by one kernel with its memory in one way."""

    case: Case
    kernel: Kernel
    call: Call
    placement: Placement = APART


def arrays_of(case: Case) -> list[Array | None]:
    """One for each input of the node, constants included."""
    rest = dict(zip(variables_of(case.node), case.inputs, strict=True))
    return [None if t is None else t.array if t.is_constant else rest[t] for t in case.node.inputs]


def variables_of(node: Node) -> list[Tensor]:
    return list(dict.fromkeys(t for t in node.inputs if t is not None and not t.is_constant))


def placements(case: Case, kernel: Kernel) -> list[Placement]:
    """The ways in which a plan may lay a call's activations: apart, at odd addresses, and with an output over an input
    as far as the operator or the kernel allows it; each alone, and all that can be at once."""
    node = case.node
    pairs: list[Shared] = []
    for tensor in variables_of(node):
        indices = [i for i, t in enumerate(node.inputs) if t is tensor]
        replaces = kernel.replaces if len(node.outputs) == 1 else None
        may = ops.op_of(node).inplace
        smaller = any(replaces is not None and replaces(node, i) for i in indices)
        if smaller or any(i in may for i in indices):
            pairs += [
                Shared(indices[0], number, 0)
                for number, output in enumerate(node.outputs)
                if output.type.bytes == tensor.type.bytes
                or (smaller and output.type.bytes < tensor.type.bytes)
            ]
        if len(node.outputs) == 1 and len(indices) == 1:
            distance = stated(case, kernel, indices[0])
            if distance is not None and distance < node.output.type.bytes:
                pairs.append(Shared(indices[0], 0, distance))
    at_once: dict[int, Shared] = {}
    for pair in pairs:
        if all(pair.output != other.output for other in at_once.values()):
            at_once.setdefault(pair.input, pair)
    width = max(t.dtype.bytes for t in (*variables_of(node), *node.outputs))
    found = [APART, Placement(shift=width), *(Placement((pair,)) for pair in pairs)]
    return [*found, Placement(tuple(at_once.values()), width)] if len(at_once) > 1 else found


def strided(case: Case, kernel: Kernel) -> Layouts:
    """A layout with others' bytes between pixels, of the input, of the output or of both; DENSE where the kernel
    takes none."""
    support, node = kernel.layout_support, case.node
    if support is None or len(node.outputs) != 1:
        return DENSE
    x, y = node.input(0), node.output

    def stride(tensor: Tensor, gap: int) -> int:
        """With a gap of so many values; 0 where the kernel takes none, or there is one pixel."""
        pixel = tensor.shape[-1] * tensor.dtype.bytes if tensor.shape else 0
        found = pixel + gap * tensor.dtype.bytes
        return found if 0 < pixel < tensor.type.bytes and kernel.may_stride(node, tensor, found) else 0

    number = x.type.count + y.type.count
    of_x, of_y = stride(x, 1 + number % 5), stride(y, 5 - number % 5)
    ways = [way for way in (Layouts(of_x, of_y), Layouts(of_x), Layouts(0, of_y)) if support.takes(node, way)]
    return ways[number % len(ways)] if ways else DENSE


def attempts(case: Case, kernels: Iterable[Kernel], target: Target = HOST) -> list[Attempt]:
    """Every kernel that takes the case, in every way that its memory may lie."""
    found = []
    for kernel in kernels:
        if kernel.why_not(case.node, target) is None:
            call = kernel.lower(case.node, target)
            found += [Attempt(case, kernel, call, placement) for placement in placements(case, kernel)]
            if (layouts := strided(case, kernel)) != DENSE:
                assert kernel.layout_support is not None
                apart = kernel.layout_support.lower(case.node, target, layouts)
                found.append(Attempt(case, kernel, apart, Placement(layouts=layouts)))
    return found


def problems(attempt: Attempt, wanted: Sequence[Array], process: Process) -> list[str] | None:
    """What is wrong with a kernel's outputs, or with what it wrote beside them; None where the server's memory does not
    hold the call. Fails where it was stopped."""
    prepared = prepare(
        process.server, attempt.call, attempt.case.node, arrays_of(attempt.case), attempt.placement
    )
    if not process.takes(prepared):
        return None
    result = process.run(prepared)
    if result.status != 0:
        return [f"status {result.status}"]
    found = prepared.touched(result)
    for tensor, got, want in zip(attempt.case.node.outputs, prepared.arrays(result), wanted, strict=True):
        assert tuple(want.shape) == tensor.shape, f"reference gave shape {want.shape} for {tensor.type}"
        if got.dtype == want.dtype and got.tobytes() == want.tobytes():
            continue
        # Floats may be equal without: zeros of either sign, numbers that are none.
        same = (got == want) | ((got != got) & (want != want))
        if not np.all(same):
            index = tuple(int(v) for v in np.argwhere(~same)[0])
            found.append(
                f"differs at {index} of {tensor.name}: C {got[index]}, reference {want[index]}; "
                f"{int((~same).sum())} of {same.size} differ"
            )
    return found


def described(attempt: Attempt) -> str:
    node = attempt.case.node
    lines = [f"{attempt.kernel.symbol}, {attempt.placement}", repr(node.attrs)]
    return "\n".join(
        lines + [f"  {t.name}: {t.type}" for t in (*node.inputs, *node.outputs) if t is not None]
    )


Wanted = dict[int, tuple[Array, ...]]
"""The reference's outputs, by the case's id."""


def assert_right(found: Sequence[Attempt], process: Process, wanted: Wanted | None = None) -> int:
    """Fail unless each attempt gives the reference's outputs: integers bit for bit, floats equal (NaN equals NaN).
    Returns how many the server had memory for.

    wanted: what the reference has said already; it is added to.
    """
    wanted = {} if wanted is None else wanted
    made = 0
    for attempt in found:
        case = attempt.case
        if id(case) not in wanted:
            wanted[id(case)] = expected(case.node, case.inputs)
        try:
            wrong = problems(attempt, wanted[id(case)], process)
        except AssertionError as error:
            raise AssertionError(f"{described(attempt)}\n{error}") from None
        assert not wrong, "\n".join([described(attempt), *wrong])
        made += wrong is not None
    return made


def assert_kernels(
    cases: Sequence[Case], kernels: Sequence[Kernel] | Delegate | None = None, target: Target = HOST
) -> None:
    """Fail unless every kernel that takes a case gives the reference's outputs, wherever its memory may lie.

    kernels: those that are asked; the operator's own for None. Fails for a case that none takes. What is made for
    single calls is compiled, all of it at once.
    """
    compiled: list[Attempt] = []
    for case in cases:
        found = attempts(case, asked(case, kernels), target)
        assert found, f"no kernel takes {case.node}"
        compiled += [attempt for attempt in found if isinstance(attempt.call.symbol, Definition)]
        if called := [attempt for attempt in found if isinstance(attempt.call.symbol, str)]:
            assert_right(called, library())
    if compiled:
        with definitions.served([(a.kernel, a.call) for a in compiled]) as (process, calls):
            assert_right([replace(a, call=call) for a, call in zip(compiled, calls, strict=True)], process)


def asked(case: Case, kernels: Sequence[Kernel] | Delegate | None) -> Sequence[Kernel]:
    if isinstance(kernels, Delegate):
        return kernels.kernels.get(type(case.node.attrs), ())
    return ops.op_of(case.node).kernels if kernels is None else kernels
